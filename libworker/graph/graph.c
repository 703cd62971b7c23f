/* graph.c - the graph as a container: tensors, ops, lists */
#include "libworker/graph/graph_impl.h"

#include "proto/grow.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->n_dims; i++) {
        count *= shape->dim[i];
    }
    return count;
}

int shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->n_dims != b->n_dims) {
        return 0;
    }
    for (int i = 0; i < a->n_dims; i++) {
        if (a->dim[i] != b->dim[i]) {
            return 0;
        }
    }
    return 1;
}

const char *shape_format(const struct shape *shape, char *buf, size_t size)
{
    size_t used = 0;
    int n = snprintf(buf, size, "(");
    for (int i = 0; i < shape->n_dims && n >= 0 && used + (size_t)n < size; i++) {
        used += (size_t)n;
        n = snprintf(buf + used, size - used, "%s%lld", i > 0 ? ", " : "",
                     (long long)shape->dim[i]);
    }
    if (n >= 0 && used + (size_t)n < size) {
        used += (size_t)n;
        snprintf(buf + used, size - used, ")");
    }
    return buf;
}

struct graph *graph_create(const char *name)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        return NULL;
    }
    snprintf(graph->name, sizeof(graph->name), "%s", name);
    graph->n_forward_ops = -1;
    graph->data = graph->label = graph->loss = graph->output = -1;
    return graph;
}

/* ---- settings ---- */

void graph_copy_settings(struct op *to, const struct op *from)
{
    to->window = from->window;
    to->groups = from->groups;
    to->first = from->first;
    to->size = from->size;
    to->mode = from->mode;
    to->of_pixels = from->of_pixels;
    to->is_causal = from->is_causal;
    to->is_reversed = from->is_reversed;
    to->epsilon = from->epsilon;
    to->alpha = from->alpha;
    to->beta = from->beta;
    to->rate = from->rate;
    to->of = from->of;
    to->smoothing = from->smoothing;
    to->class_weights = from->class_weights;
    to->n_class_weights = from->n_class_weights;
    to->has_ignored = from->has_ignored;
    to->ignored = from->ignored;
}

/* ---- names ---- */

uint64_t graph_hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3U;
    }
    return hash;
}

/* Where the name is in the table, or would be. */
static size_t place_of(const struct graph *graph, const char *name)
{
    const uint64_t hash = graph_hash_name(name);
    size_t at = (size_t)(hash ^ hash >> 32) & (graph->n_named_room - 1);
    while (graph->named[at] >= 0 && strcmp(graph->tensors[graph->named[at]]->name, name) != 0) {
        at = (at + 1) & (graph->n_named_room - 1);
    }
    return at;
}

static void name_all(struct graph *graph)
{
    for (size_t i = 0; i < graph->n_named_room; i++) {
        graph->named[i] = -1;
    }
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const int tensor = graph_stored_at(graph, i);
        graph->named[place_of(graph, graph->tensors[tensor]->name)] = tensor;
    }
}

/* The last one that was appended. */
static int name_tensor(struct graph *graph, int tensor)
{
    const size_t n = (size_t)graph_n_stored(graph);
    if (2 * n <= graph->n_named_room) {
        graph->named[place_of(graph, graph->tensors[tensor]->name)] = tensor;
        return MS_OK;
    }
    const size_t room = graph->n_named_room > 0 ? 2 * graph->n_named_room : 64;
    int *named = malloc(room * sizeof(*named));
    if (named == NULL) {
        return MS_E_NOMEM;
    }
    free(graph->named);
    graph->named = named;
    graph->n_named_room = room;
    name_all(graph);
    return MS_OK;
}

void graph_destroy(struct graph *graph)
{
    if (graph == NULL) {
        return;
    }
    graph_truncate(graph, 0, 0, 0);
    free(graph->tensors);
    free(graph->ops);
    free(graph->params);
    free(graph->states);
    free(graph->gradients);
    free(graph->named);
    free(graph);
}

void graph_truncate(struct graph *graph, int n_tensors, int n_ops, int n_gradients)
{
    const int n_stored = graph_n_stored(graph);
    while (graph->n_tensors > n_tensors) {
        free(graph->tensors[--graph->n_tensors]);
    }
    while (graph->n_ops > n_ops) {
        free(graph->ops[--graph->n_ops]);
    }
    while (graph->n_params > 0 && graph->params[graph->n_params - 1] >= n_tensors) {
        graph->n_params--;
    }
    while (graph->n_states > 0 && graph->states[graph->n_states - 1] >= n_tensors) {
        graph->n_states--;
    }
    for (int i = 0; i < graph->n_tensors; i++) {
        struct tensor *t = graph->tensors[i];
        t->reader = t->reader < n_ops ? t->reader : -1;
    }
    graph->n_gradients = n_gradients;
    if (graph_n_stored(graph) != n_stored) {
        name_all(graph);
    }
}

static int append_index(int **list, int *count, size_t *cap, int index)
{
    int *larger = ms_grow(*list, (size_t)*count, 1, sizeof(**list), cap);
    if (larger == NULL) {
        return MS_E_NOMEM;
    }
    *list = larger;
    larger[(*count)++] = index;
    return MS_OK;
}

int graph_append_tensor(struct graph *graph, const char *name, enum tensor_role role,
                        const struct shape *shape, struct ms_err *err)
{
    struct tensor **tensors =
        ms_grow(graph->tensors, (size_t)graph->n_tensors, 1, sizeof(*tensors), &graph->cap_tensors);
    graph->tensors = tensors != NULL ? tensors : graph->tensors;
    struct tensor *tensor = tensors != NULL ? calloc(1, sizeof(*tensor)) : NULL;
    if (tensor == NULL) {
        return ms_fail(err, MS_E_NOMEM, "graph %s: no memory for tensor %s", graph->name, name);
    }
    snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    tensor->role = role;
    tensor->dtype = MS_F32;
    tensor->shape = *shape;
    tensor->producer = -1;
    tensor->reader = -1;
    tensor->of = -1;
    int index = graph->n_tensors;
    int rc = MS_OK;
    if (role == TENSOR_PARAM) {
        rc = append_index(&graph->params, &graph->n_params, &graph->cap_params, index);
    } else if (role == TENSOR_STATE) {
        rc = append_index(&graph->states, &graph->n_states, &graph->cap_states, index);
    }
    if (rc < 0) {
        free(tensor);
        return ms_fail(err, rc, "graph %s: no memory for tensor %s", graph->name, name);
    }
    graph->tensors[graph->n_tensors++] = tensor;
    if ((role == TENSOR_PARAM || role == TENSOR_STATE) && name_tensor(graph, index) < 0) {
        graph_truncate(graph, index, graph->n_ops, graph->n_gradients);
        return ms_fail(err, MS_E_NOMEM, "graph %s: no memory for tensor %s", graph->name, name);
    }
    return index;
}

int graph_append_op(struct graph *graph, enum op_kind kind, int n_in, const int *in,
                    struct ms_err *err)
{
    struct op **ops = ms_grow(graph->ops, (size_t)graph->n_ops, 1, sizeof(*ops), &graph->cap_ops);
    graph->ops = ops != NULL ? ops : graph->ops;
    struct op *op = ops != NULL ? calloc(1, sizeof(*op)) : NULL;
    if (op == NULL) {
        return ms_fail(err, MS_E_NOMEM, "graph %s: no memory for a %s op", graph->name,
                       op_row(kind)->name);
    }
    op->kind = kind;
    op->n_in = n_in;
    op->n_out = op_row(kind)->n_out;
    op->forward = -1;
    for (int i = 0; i < GRAPH_OP_TENSORS_MAX; i++) {
        op->in[i] = i < op->n_in ? in[i] : -1;
        op->out[i] = -1;
    }
    for (int i = 0; i < op->n_in; i++) {
        struct tensor *read = op->in[i] >= 0 ? graph->tensors[op->in[i]] : NULL;
        if (read != NULL && read->reader < 0) {
            read->reader = graph->n_ops;
        }
    }
    graph->ops[graph->n_ops] = op;
    return graph->n_ops++;
}

int graph_append_output(struct graph *graph, int op, int slot, const char *name,
                        enum tensor_role role, const struct shape *shape, struct ms_err *err)
{
    int index = graph_append_tensor(graph, name, role, shape, err);
    if (index < 0) {
        return index;
    }
    graph->tensors[index]->producer = op;
    graph->ops[op]->out[slot] = index;
    return index;
}

int graph_append_gradient(struct graph *graph, int tensor, struct ms_err *err)
{
    if (append_index(&graph->gradients, &graph->n_gradients, &graph->cap_gradients, tensor) < 0) {
        return ms_fail(err, MS_E_NOMEM, "graph %s: no memory for the list of gradients",
                       graph->name);
    }
    return MS_OK;
}

int graph_n_tensors(const struct graph *graph)
{
    return graph->n_tensors;
}

int graph_n_ops(const struct graph *graph)
{
    return graph->n_ops;
}

int graph_n_forward_ops(const struct graph *graph)
{
    return graph->n_forward_ops >= 0 ? graph->n_forward_ops : graph->n_ops;
}

const struct tensor *graph_tensor(const struct graph *graph, int index)
{
    assert(index >= 0 && index < graph->n_tensors);
    return graph->tensors[index];
}

const struct op *graph_op(const struct graph *graph, int index)
{
    assert(index >= 0 && index < graph->n_ops);
    return graph->ops[index];
}

const char *graph_name(const struct graph *graph)
{
    return graph->name;
}

int graph_loss(const struct graph *graph)
{
    return graph->loss;
}

int graph_output(const struct graph *graph)
{
    return graph->output;
}

int graph_data_index(const struct graph *graph)
{
    return graph->data;
}

int graph_label_index(const struct graph *graph)
{
    return graph->label;
}

int graph_n_gradients(const struct graph *graph)
{
    return graph->n_gradients;
}

int graph_gradient(const struct graph *graph, int i)
{
    assert(i >= 0 && i < graph->n_gradients);
    return graph->gradients[i];
}

int graph_n_params(const struct graph *graph)
{
    return graph->n_params;
}

int graph_param_at(const struct graph *graph, int i)
{
    assert(i >= 0 && i < graph->n_params);
    return graph->params[i];
}

int graph_n_states(const struct graph *graph)
{
    return graph->n_states;
}

int graph_state_at(const struct graph *graph, int i)
{
    assert(i >= 0 && i < graph->n_states);
    return graph->states[i];
}

int graph_n_stored(const struct graph *graph)
{
    return graph_n_params(graph) + graph_n_states(graph);
}

int graph_stored_at(const struct graph *graph, int i)
{
    int n_params = graph_n_params(graph);
    return i < n_params ? graph_param_at(graph, i) : graph_state_at(graph, i - n_params);
}

int graph_find(const struct graph *graph, const char *name)
{
    return graph->n_named_room > 0 ? graph->named[place_of(graph, name)] : -1;
}
