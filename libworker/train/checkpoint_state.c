/* checkpoint_state.c - the state of a replica, tensor by tensor, under the names of files */
#include "libworker/train/checkpoint_state.h"

#include "libworker/host/memory.h"
#include "libworker/train/checkpoint_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what there is ---- */

static int add(struct checkpoint_state *state, const struct graph *graph, int index, int buffer,
               const char *slot, struct ms_err *err)
{
    const struct tensor *tensor = graph_tensor(graph, index);
    struct safetensors_entry *entry = &state->entries[state->n];
    int n = snprintf(entry->name, sizeof(entry->name), "%s%s%s", slot, slot[0] != '\0' ? "." : "",
                     tensor->name);
    if (n < 0 || (size_t)n >= sizeof(entry->name) || tensor->shape.n_dims > SAFETENSORS_DIMS_MAX) {
        return ms_fail(err, MS_E_UNSUPPORTED, "tensor %s cannot be named in a checkpoint",
                       tensor->name);
    }
    entry->n_dims = tensor->shape.n_dims;
    memcpy(entry->dim, tensor->shape.dim, (size_t)tensor->shape.n_dims * sizeof(entry->dim[0]));
    const size_t count = (size_t)shape_count(&tensor->shape);
    state->parts[state->n++] = (struct checkpoint_part){buffer, index, count};
    state->largest = count > state->largest ? count : state->largest;
    return 0;
}

static int by_name(const void *a, const void *b, void *arg)
{
    const struct safetensors_entry *entries = arg;
    return strcmp(entries[*(const size_t *)a].name, entries[*(const size_t *)b].name);
}

/* Entries and parts, in the order of names. */
static int sort(struct checkpoint_state *state, struct ms_err *err)
{
    const size_t n = state->n;
    size_t *order = calloc(n + 1, sizeof(*order));
    struct safetensors_entry *entries = calloc(n + 1, sizeof(*entries));
    struct checkpoint_part *parts = calloc(n + 1, sizeof(*parts));
    int rc = order == NULL || entries == NULL || parts == NULL
                 ? ms_fail(err, MS_E_NOMEM, "no memory for the names of a checkpoint")
                 : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        order[i] = i;
    }
    if (rc == 0) {
        qsort_r(order, n, sizeof(*order), by_name, state->entries);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        entries[i] = state->entries[order[i]];
        parts[i] = state->parts[order[i]];
    }
    free(order);
    free(rc == 0 ? state->entries : entries);
    free(rc == 0 ? state->parts : parts);
    if (rc == 0) {
        state->entries = entries;
        state->parts = parts;
    }
    return rc;
}

int checkpoint_state_init(struct checkpoint_state *state, const struct replica *replica,
                          const struct job_optimizer *optimizer, struct ms_err *err)
{
    const struct graph *graph = replica_graph(replica);
    const int n = graph_n_stored(graph);
    const size_t most = (size_t)n * (size_t)(1 + optimizer_slots(optimizer));
    const void *unused = NULL;
    memset(state, 0, sizeof(*state));
    snprintf(state->network, sizeof(state->network), "%s", graph_name(graph));
    for (size_t bytes = 0; replica_view_state(replica, state->n_buffers, &unused, &bytes);) {
        state->bytes[state->n_buffers++] = bytes;
    }
    state->entries = calloc(most + 1, sizeof(*state->entries));
    state->parts = calloc(most + 1, sizeof(*state->parts));
    int rc = state->entries == NULL || state->parts == NULL
                 ? ms_fail(err, MS_E_NOMEM, "no memory for the names of a checkpoint")
                 : 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        const int index = graph_stored_at(graph, i);
        const int is_state = graph_tensor(graph, index)->role == TENSOR_STATE;
        rc = add(state, graph, index, is_state, "", err);
        for (int s = 0; rc == 0 && !is_state && s < optimizer_slots(optimizer); s++) {
            rc = add(state, graph, index, 2 + s, optimizer_slot_name(optimizer, s), err);
        }
    }
    rc = rc < 0 ? rc : sort(state, err);
    if (rc < 0) {
        checkpoint_state_fini(state);
    }
    return rc;
}

void checkpoint_state_fini(struct checkpoint_state *state)
{
    free(state->entries);
    free(state->parts);
    memset(state, 0, sizeof(*state));
}

/* ---- saving ---- */

int checkpoint_state_save(const struct checkpoint_state *state, struct plan_layout *layout,
                          void *const *buffers, uint64_t step, const char *tag, const char *path,
                          struct safetensors_sum *ret, int *ret_fd, struct ms_err *err)
{
    struct safetensors_writer *writer = NULL;
    char steps[24];
    snprintf(steps, sizeof(steps), "%" PRIu64, step);
    const char *meta[] = {"format", CHECKPOINT_FORMAT, "network", state->network, "steps",
                          steps,    "job_tag",         tag};
    *ret_fd = -1;
    int rc = safetensors_create(path, state->entries, state->n, meta, 4, &writer, err);
    for (size_t i = 0; rc == 0 && i < state->n; i++) {
        const struct checkpoint_part *part = &state->parts[i];
        float *values = NULL;
        rc = safetensors_next(writer, part->count, &values, err);
        rc = rc < 0 ? rc
                    : plan_layout_get(layout, part->tensor, buffers[part->buffer], MS_F32, values,
                                      err);
        rc = rc < 0 ? rc : safetensors_put_next(writer, err);
    }
    rc = rc < 0 ? rc : safetensors_hold(writer, ret_fd, err);
    if (rc < 0) {
        safetensors_abandon(writer);
        return rc;
    }
    return safetensors_finish(writer, ret, err);
}

/* ---- comparing ---- */

static int check_entry(const char *path, const struct safetensors_entry *have,
                       const struct safetensors_entry *want, struct ms_err *err)
{
    const int is_same =
        have != NULL && have->n_dims == want->n_dims && strcmp(have->dtype, "F32") == 0 &&
        memcmp(have->dim, want->dim, (size_t)want->n_dims * sizeof(want->dim[0])) == 0;
    return is_same ? 0
                   : ms_fail(err, MS_E_INVALID,
                             "%.200s: tensor %.80s %s: this is no checkpoint of the job's training",
                             path, want->name,
                             have == NULL ? "is missing" : "has another shape or type");
}

static int is_part(const struct checkpoint_state *state, size_t i, struct plan_layout *layout,
                   void *const *buffers, struct safetensors *file, float *here, float *there)
{
    const struct checkpoint_part *part = &state->parts[i];
    const struct safetensors_entry *entry = safetensors_find(file, state->entries[i].name);
    int rc = check_entry("", entry, &state->entries[i], NULL);
    rc = rc < 0 ? rc : safetensors_read(file, entry, there, part->count, NULL);
    rc = rc < 0 ? rc
                : plan_layout_get(layout, part->tensor, buffers[part->buffer], MS_F32, here, NULL);
    return rc == MS_E_NOMEM ? rc : rc == 0 && memcmp(here, there, part->count * sizeof(*here)) == 0;
}

int checkpoint_state_is(const struct checkpoint_state *state, struct plan_layout *layout,
                        void *const *buffers, struct safetensors *file)
{
    float *here = malloc((state->largest + 1) * sizeof(*here));
    float *there = malloc((state->largest + 1) * sizeof(*there));
    int is = here == NULL || there == NULL ? MS_E_NOMEM : safetensors_count(file) == state->n;
    for (size_t i = 0; is > 0 && i < state->n; i++) {
        is = is_part(state, i, layout, buffers, file, here, there);
    }
    free(here);
    free(there);
    return is;
}

/* ---- loading ---- */

int checkpoint_state_check_size(const struct checkpoint_state *state, uint64_t size,
                                const char *path, struct ms_err *err)
{
    uint64_t values = 0;
    for (size_t i = 0; i < state->n; i++) {
        values += ms_dtype_size(MS_F32, state->parts[i].count);
    }
    return size > values && size - values <= SAFETENSORS_HEADER_MAX
               ? 0
               : ms_fail(err, MS_E_INVALID,
                         "%.200s has %" PRIu64 " bytes, and the state of network %s %" PRIu64
                         " beside a header: this is no checkpoint of the job's training",
                         path, size, state->network, values);
}

static int load_parts(const struct checkpoint_state *state, struct replica *replica,
                      struct safetensors *file, const char *path, void *const *buffers,
                      struct ms_err *err)
{
    float *values = malloc((state->largest + 1) * sizeof(*values));
    int rc = values != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "no memory to read %s", path);
    for (size_t i = 0; rc == 0 && i < state->n; i++) {
        const struct checkpoint_part *part = &state->parts[i];
        const struct safetensors_entry *entry = safetensors_find(file, state->entries[i].name);
        rc = check_entry(path, entry, &state->entries[i], err);
        rc = rc < 0 ? rc : safetensors_read(file, entry, values, part->count, err);
        rc =
            rc < 0 ? rc : replica_set_in(replica, part->tensor, buffers[part->buffer], values, err);
    }
    free(values);
    return rc;
}

/* Beside the replica first: what proves damaged has changed nothing. */
int checkpoint_state_load(const struct checkpoint_state *state, struct replica *replica,
                          struct safetensors *file, const char *path, struct ms_err *err)
{
    void *buffers[CHECKPOINT_BUFFERS] = {NULL};
    int rc = safetensors_count(file) == state->n
                 ? 0
                 : ms_fail(err, MS_E_INVALID,
                           "%.200s has %zu tensors, and the state of network %s %zu: this is no "
                           "checkpoint of the job's training",
                           path, safetensors_count(file), state->network, state->n);
    for (int i = 0; rc == 0 && i < state->n_buffers; i++) {
        rc = memory_alloc(state->bytes[i], "the state in a checkpoint", &buffers[i], err);
    }
    rc = rc < 0 ? rc : load_parts(state, replica, file, path, buffers, err);
    for (int i = 0; i < state->n_buffers; i++) {
        void *own = NULL;
        size_t bytes = 0;
        if (rc == 0 && replica_state(replica, i, &own, &bytes) && bytes > 0) {
            memcpy(own, buffers[i], bytes);
        }
        memory_free(buffers[i], state->bytes[i]);
    }
    return rc;
}
