/* mesh.c - the life of a mesh: made, ended by the first error or an abort, destroyed */
#include "libworker/comm/mesh.h"

#include "libworker/comm/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static const char *const kind_names[MESH_KINDS] = {
    [MESH_NOTHING] = "nothing",
    [MESH_ALL_REDUCE] = "all_reduce",
    [MESH_ALL_REDUCE_MAX] = "all_reduce_max",
    [MESH_ALL_REDUCE_F64] = "all_reduce_sum_f64",
    [MESH_BROADCAST] = "broadcast",
    [MESH_ALL_GATHER] = "all_gather",
    [MESH_BARRIER] = "barrier",
};

uint64_t mesh_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void mesh_clock_start(struct mesh *mesh)
{
    mesh->looked_ns = mesh_now_ns();
}

uint64_t mesh_clock(struct mesh *mesh)
{
    uint64_t now = mesh_now_ns();
    uint64_t gap = now - mesh->looked_ns;
    uint64_t most = (uint64_t)MESH_STILL_MS * 1000000U;
    mesh->looked_ns = now;
    mesh->clock_ns += gap < most ? gap : most;
    return mesh->clock_ns / 1000000U;
}

const char *mesh_who(const struct mesh *mesh, int rank, char *buf)
{
    const struct peer *peer = &mesh->peers[rank];
    snprintf(buf, MESH_WHO_MAX, "rank %d (node %s on host %s)", rank, peer->node_id,
             peer->host_name);
    return buf;
}

const char *mesh_kind_name(uint64_t kind)
{
    return kind < MESH_KINDS ? kind_names[kind] : "an unknown collective";
}

static void print_what(char *buf, size_t size, uint64_t kind, uint64_t begin, uint64_t amount,
                       uint64_t step)
{
    const char *name = mesh_kind_name(kind);
    unsigned long long n = amount;
    switch (kind) {
    case MESH_ALL_REDUCE:
        snprintf(buf, size, "%s of %llu floats from %llu at step %llu", name, n,
                 (unsigned long long)begin, (unsigned long long)step);
        break;
    case MESH_BROADCAST:
        snprintf(buf, size, "%s of %llu bytes from rank %llu at step %llu", name, n,
                 (unsigned long long)begin, (unsigned long long)step);
        break;
    case MESH_BARRIER:
        snprintf(buf, size, "%s at step %llu", name, (unsigned long long)step);
        break;
    default:
        snprintf(buf, size, "%s of %llu at step %llu", name, n, (unsigned long long)step);
    }
}

const char *mesh_what(const struct mesh *mesh, char *buf, size_t size)
{
    print_what(buf, size, mesh->op.kind, mesh->op.begin, mesh->op.size, mesh->step);
    return buf;
}

int mesh_disagree(struct mesh *mesh, int rank, uint64_t kind, uint64_t begin, uint64_t size,
                  uint64_t step, struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    char here[128];
    char there[128];
    print_what(there, sizeof(there), kind, begin, size, step);
    return mesh_blame(mesh, rank, err, MS_E_PROTOCOL,
                      "%s does %s while this rank does %s: their plans differ",
                      mesh_who(mesh, rank, who), there, mesh_what(mesh, here, sizeof(here)));
}

int mesh_check(struct mesh *mesh, struct ms_err *err)
{
    int code = atomic_load(&mesh->status);
    if (code == 0) {
        return 0;
    }
    pthread_mutex_lock(&mesh->text_lock);
    (void)ms_fail(err, code, "%s", mesh->text);
    pthread_mutex_unlock(&mesh->text_lock);
    return code;
}

/* The first end counts. */
static void end_with(struct mesh *mesh, int code, const char *text)
{
    pthread_mutex_lock(&mesh->text_lock);
    if (atomic_load(&mesh->status) == 0) {
        snprintf(mesh->text, sizeof(mesh->text), "%s", text);
        atomic_store(&mesh->status, code);
    }
    pthread_mutex_unlock(&mesh->text_lock);
}

void mesh_abort(struct mesh *mesh, const char *text)
{
    end_with(mesh, MS_E_ABORTED, text);
    uint64_t one = 1;
    (void)!write(mesh->wake_fd, &one, sizeof(one)); /* full: readable already */
    if (mesh->n_locals > 1) {
        shm_wake_all(mesh);
    }
}

int mesh_enter(struct mesh *mesh, enum mesh_kind kind, uint64_t begin, uint64_t size,
               struct ms_err *err)
{
    mesh->op = (struct mesh_op){.kind = kind,
                                .sequence = mesh->op.sequence + 1,
                                .begin = begin,
                                .size = size,
                                .start_ms = mesh->clock_ns / 1000000U};
    return mesh_check(mesh, err);
}

int mesh_leave(struct mesh *mesh, int rc, struct ms_err *err)
{
    if (rc >= 0) {
        return rc;
    }
    const char *text = ms_err_text(err);
    end_with(mesh, rc, text[0] != '\0' ? text : ms_code_name(rc));
    mesh->op.sequence--; /* BYE tells how many were completed */
    return rc;
}

int mesh_blame(struct mesh *mesh, int rank, struct ms_err *err, int code, const char *fmt, ...)
{
    char text[MS_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    uint64_t nobody = FRAME_NOBODY;
    atomic_compare_exchange_strong(&mesh->culprit, &nobody, (uint64_t)rank);
    return ms_fail(err, code, "%s", text);
}

int mesh_culprit(const struct mesh *mesh)
{
    uint64_t rank = atomic_load(&mesh->culprit);
    return rank < (uint64_t)mesh->world ? (int)rank : -1;
}

static int has_ended(const struct stream *stream)
{
    return stream->eof || stream->has_left || link_is_hung_up(&stream->link);
}

/* A rank that said BYE and will not come to this collective. */
static int blame_leaver(struct mesh *mesh, const struct peer *peer, struct ms_err *err)
{
    const struct frame *bye = &peer->stream.bye;
    char who[MESH_WHO_MAX];
    char what[128];
    mesh_what(mesh, what, sizeof(what));
    if (bye->phase == FRAME_BYE_ABORTED && bye->begin < (uint64_t)mesh->world &&
        bye->begin != (uint64_t)mesh->rank) {
        return mesh_blame(mesh, (int)bye->begin, err, MS_E_CLOSED,
                          "%s is lost, as rank %d reports, during %s; see the log of that rank",
                          mesh_who(mesh, (int)bye->begin, who), peer->rank, what);
    }
    return mesh_blame(mesh, peer->rank, err, MS_E_CLOSED,
                      "%s left the job on purpose during %s; see the log of that rank",
                      mesh_who(mesh, peer->rank, who), what);
}

int mesh_check_peers(struct mesh *mesh, struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    char what[128];
    int leaver = -1;
    for (int i = 0; i < mesh->world; i++) {
        struct peer *peer = &mesh->peers[i];
        if (i == mesh->rank || !has_ended(&peer->stream)) {
            continue;
        }
        enum stream_fate fate = FATE_UNKNOWN;
        int rc = stream_fate(mesh, peer, &fate, err);
        if (rc < 0) {
            return rc;
        }
        switch (fate) {
        case FATE_DEAD: /* the cause, while those who gave up because of it only tell */
            return mesh_blame(mesh, i, err, MS_E_CLOSED,
                              "%s has died or was cut off: its connection ended during %s; see the "
                              "log of that rank",
                              mesh_who(mesh, i, who), mesh_what(mesh, what, sizeof(what)));
        case FATE_LEFT: /* fine where it has completed this collective */
            if (peer->stream.bye.sequence < mesh->op.sequence &&
                (leaver < 0 || peer->stream.bye.phase == FRAME_BYE_ABORTED)) {
                leaver = i;
            }
            break;
        case FATE_UNKNOWN:
            break;
        }
    }
    return leaver < 0 ? 0 : blame_leaver(mesh, &mesh->peers[leaver], err);
}

int mesh_poll(struct pollfd *fds, nfds_t n, int timeout_ms, struct ms_err *err)
{
    int ready = poll(fds, n, timeout_ms);
    if (ready >= 0 || errno == EINTR) {
        return ready > 0 ? ready : 0;
    }
    return ms_fail_errno(err, MS_E_IO, "cannot wait for %lu connections of other ranks",
                         (unsigned long)n);
}

int mesh_scratch(struct mesh *mesh, size_t bytes, struct ms_err *err)
{
    if (bytes <= mesh->scratch_bytes) {
        return 0;
    }
    size_t size = (bytes + 4095) / 4096 * 4096;
    uint8_t *scratch = aligned_alloc(64, size);
    if (scratch == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory: %zu bytes for the data of remote ranks",
                       size);
    }
    free(mesh->scratch);
    mesh->scratch = scratch;
    mesh->scratch_bytes = size;
    return 0;
}

int mesh_are_local(const struct mesh_config *cfg, int a, int b)
{
    const struct mesh_member *x = &cfg->members[a];
    const struct mesh_member *y = &cfg->members[b];
    return a == b ||
           (!cfg->force_remote && x->host_id[0] != '\0' && x->data_unix[0] != '\0' &&
            y->data_unix[0] != '\0' && x->uid == y->uid && strcmp(x->host_id, y->host_id) == 0);
}

static int check_config(const struct mesh_config *cfg, struct ms_err *err)
{
    if (cfg->world < 1 || cfg->world > MS_WORKERS_MAX || cfg->rank < 0 || cfg->rank >= cfg->world) {
        return ms_fail(err, MS_E_INVALID, "rank %d of %d ranks: a job has 1 to %d", cfg->rank,
                       cfg->world, MS_WORKERS_MAX);
    }
    if (cfg->timeout_ms <= 0) {
        return ms_fail(err, MS_E_INVALID, "a data-plane timeout of %d ms: it must be positive",
                       cfg->timeout_ms);
    }
    if (cfg->world > 1 && (cfg->tls == NULL) != (cfg->listener->tls == NULL)) {
        return ms_fail(err, MS_E_INVALID, "TLS is %s on the data plane's listener only",
                       cfg->tls == NULL ? "on" : "off");
    }
    return 0;
}

static void sort_ranks(struct mesh *mesh, const struct mesh_config *cfg)
{
    for (int i = 0; i < mesh->world; i++) {
        struct peer *peer = &mesh->peers[i];
        const struct mesh_member *member = &cfg->members[i];
        peer->rank = i;
        peer->local = -1;
        snprintf(peer->node_id, sizeof(peer->node_id), "%s", member->node_id);
        snprintf(peer->host_name, sizeof(peer->host_name), "%s", member->host_name);
        while (!mesh_are_local(cfg, peer->host, i)) {
            peer->host++;
        }
        if (mesh_are_local(cfg, mesh->rank, i)) {
            if (i == mesh->rank) {
                mesh->self = mesh->n_locals;
            }
            peer->local = mesh->n_locals;
            mesh->locals[mesh->n_locals++] = i;
        } else {
            mesh->remotes[mesh->n_remotes++] = i;
        }
    }
    hosts_find(mesh);
}

static int alloc_mesh(struct mesh *mesh, const struct mesh_config *cfg, struct ms_err *err)
{
    size_t world = (size_t)cfg->world;
    mesh->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (mesh->wake_fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make an eventfd for the mesh");
    }
    mesh->peers = calloc(world, sizeof(*mesh->peers));
    mesh->locals = calloc(world, sizeof(*mesh->locals));
    mesh->remotes = calloc(world, sizeof(*mesh->remotes));
    mesh->subtrees = calloc(world, sizeof(*mesh->subtrees));
    mesh->polls = calloc(world + 1, sizeof(*mesh->polls));
    mesh->segments = calloc(world, sizeof(*mesh->segments));
    mesh->exchanges = calloc(world, sizeof(*mesh->exchanges));
    mesh->counters = calloc(world, sizeof(*mesh->counters));
    for (size_t i = 0; i < world; i++) { /* before anything can fail: 0 is somebody else's */
        if (mesh->segments != NULL) {
            mesh->segments[i].fd = -1;
        }
        if (mesh->peers != NULL) {
            link_init(&mesh->peers[i].stream.link, -1);
        }
    }
    if (mesh->peers == NULL || mesh->locals == NULL || mesh->remotes == NULL ||
        mesh->subtrees == NULL || mesh->polls == NULL || mesh->segments == NULL ||
        mesh->exchanges == NULL || mesh->counters == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a mesh of %d ranks", cfg->world);
    }
    return 0;
}

int mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err)
{
    struct ms_err local_err;
    err = err != NULL ? err : &local_err; /* mesh_leave and others keep its text */
    int rc = check_config(cfg, err);
    if (rc < 0) {
        return rc;
    }
    struct mesh *mesh = calloc(1, sizeof(*mesh));
    if (mesh == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a mesh");
    }
    *mesh = (struct mesh){
        .job = cfg->job,
        .generation = cfg->generation,
        .rank = cfg->rank,
        .world = cfg->world,
        .exchange_floats = cfg->exchange_floats,
        .timeout_ms = cfg->timeout_ms,
        .spin = cfg->spin,
        .wake_fd = -1,
        .culprit = FRAME_NOBODY,
    };
    pthread_mutex_init(&mesh->text_lock, NULL);
    rc = alloc_mesh(mesh, cfg, err);
    if (rc == 0) {
        sort_ranks(mesh, cfg);
        struct shm_head head = {
            .job = cfg->job,
            .generation = cfg->generation,
            .rank = (uint64_t)cfg->rank,
            .world = (uint64_t)cfg->world,
            .exchange_floats = cfg->exchange_floats,
        };
        rc = segment_create(&mesh->segments[mesh->self], &head, mesh->n_locals > 1, err);
    }
    if (rc == 0 && mesh->world > 1) {
        rc = mesh_join(mesh, cfg, err);
    }
    if (rc < 0) {
        mesh_destroy(mesh);
        return rc;
    }
    for (int i = 0; i < mesh->n_locals; i++) {
        mesh->exchanges[i] = segment_exchange(&mesh->segments[i]);
        mesh->counters[i] = segment_counters(&mesh->segments[i]);
    }
    if (mesh->segments[mesh->self].fd >= 0) { /* passed to all who need it */
        close(mesh->segments[mesh->self].fd);
        mesh->segments[mesh->self].fd = -1;
    }
    *ret = mesh;
    return 0;
}

void mesh_destroy(struct mesh *mesh)
{
    if (mesh == NULL) {
        return;
    }
    if (mesh->peers != NULL && mesh->polls != NULL) {
        streams_leave(mesh);
    }
    for (int i = 0; mesh->peers != NULL && i < mesh->world; i++) {
        stream_fini(&mesh->peers[i].stream);
    }
    for (int i = 0; mesh->segments != NULL && i < mesh->world; i++) {
        segment_fini(&mesh->segments[i]);
    }
    if (mesh->wake_fd >= 0) {
        close(mesh->wake_fd);
    }
    pthread_mutex_destroy(&mesh->text_lock);
    free(mesh->peers);
    free(mesh->locals);
    free(mesh->remotes);
    free(mesh->subtrees);
    free(mesh->polls);
    free(mesh->segments);
    free(mesh->exchanges);
    free(mesh->counters);
    free(mesh->scratch);
    free(mesh);
}

float *mesh_exchange(struct mesh *mesh)
{
    return segment_exchange(&mesh->segments[mesh->self]);
}

int mesh_rank(const struct mesh *mesh)
{
    return mesh->rank;
}

int mesh_world(const struct mesh *mesh)
{
    return mesh->world;
}

int mesh_local_ranks(const struct mesh *mesh)
{
    return mesh->n_locals;
}

int mesh_step_begin(struct mesh *mesh, uint64_t step, struct ms_err *err)
{
    mesh->step = step;
    return mesh_check(mesh, err);
}

uint64_t mesh_take_wait_ns(struct mesh *mesh)
{
    return atomic_exchange(&mesh->wait_ns, 0);
}
