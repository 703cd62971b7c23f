/* group.c - the life of a group: made of some ranks of a mesh, its errors, closed */
#include "libworker/comm/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WARN_MS = 10000,       /* of waiting: somebody should look at it ... */
    WARN_AGAIN_MS = 60000, /* ... and may have to be told again */
};

static const char *const kind_names[MESH_KINDS] = {
    [MESH_NOTHING] = "nothing",
    [MESH_ALL_REDUCE] = "all_reduce",
    [MESH_ALL_REDUCE_MAX] = "all_reduce_max",
    [MESH_ALL_REDUCE_F64] = "all_reduce_sum_f64",
    [MESH_BROADCAST] = "broadcast",
    [MESH_ALL_GATHER] = "all_gather",
    [MESH_BARRIER] = "barrier",
    [MESH_GROUP] = "group_create",
    [MESH_REDUCE_SCATTER] = "reduce_scatter",
    [MESH_ALL_GATHER_SLICES] = "all_gather_slices",
    [MESH_ALL_TO_ALL] = "all_to_all",
};

void group_clock_start(struct group *group)
{
    group->looked_ns = mesh_now_ns();
}

uint64_t group_clock(struct group *group)
{
    uint64_t now = mesh_now_ns();
    uint64_t gap = now - group->looked_ns;
    uint64_t most = (uint64_t)MESH_STILL_MS * 1000000U;
    group->looked_ns = now;
    gap = gap < most ? gap : most;
    group->clock_ns += gap;
    if (group->wait != NULL) {
        atomic_fetch_add_explicit(&group->wait->waited_ns, gap, memory_order_relaxed);
    }
    return group->clock_ns / 1000000U;
}

const char *group_who(const struct group *group, int rank, char *buf)
{
    return mesh_who(group->mesh, group->peers[rank].member, buf);
}

const char *mesh_kind_name(uint64_t kind)
{
    return kind < MESH_KINDS ? kind_names[kind] : "an unknown collective";
}

static void print_what(char *buf, size_t size, const struct group *group, const struct group_op *op,
                       uint64_t step)
{
    unsigned long long n = op->size;
    unsigned long long begin = op->begin;
    char of[80] = "";
    char where[32] = "";
    switch (op->kind) {
    case MESH_ALL_REDUCE:
    case MESH_REDUCE_SCATTER:
    case MESH_ALL_GATHER_SLICES:
        snprintf(of, sizeof(of), " of %llu floats from %llu", n, begin);
        break;
    case MESH_BROADCAST:
        snprintf(of, sizeof(of), " of %llu bytes from rank %llu", n, begin);
        break;
    case MESH_GROUP:
        snprintf(of, sizeof(of), " of group %llu", begin);
        break;
    case MESH_BARRIER:
        break;
    default:
        snprintf(of, sizeof(of), " of %llu", n);
    }
    if (group->number > 0) {
        snprintf(where, sizeof(where), " in group %u", group->number);
    }
    snprintf(buf, size, "%s%s at step %llu%s", mesh_kind_name(op->kind), of,
             (unsigned long long)step, where);
}

const char *group_what(const struct group *group, char *buf, size_t size)
{
    print_what(buf, size, group, &group->op, group->step);
    return buf;
}

int group_disagree(struct group *group, int rank, const struct group_op *theirs, uint64_t step,
                   struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    char here[GROUP_WHAT_MAX];
    char there[GROUP_WHAT_MAX];
    print_what(there, sizeof(there), group, theirs, step);
    return group_blame(group, group->peers[rank].member, err, MS_E_PROTOCOL,
                       "%s does %s while this rank does %s: their plans differ",
                       group_who(group, rank, who), there, group_what(group, here, sizeof(here)));
}

int group_enter(struct group *group, enum mesh_kind kind, uint64_t begin, uint64_t size,
                struct ms_err *err)
{
    group->op = (struct group_op){.kind = kind,
                                  .sequence = group->op.sequence + 1,
                                  .begin = begin,
                                  .size = size,
                                  .start_ms = group->clock_ns / 1000000U};
    group->blamed = -1;
    return mesh_check(group->mesh, err);
}

int group_blame(struct group *group, int member, struct ms_err *err, int code, const char *fmt, ...)
{
    char text[MS_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    group->blamed = member;
    return ms_fail(err, code, "%s", text);
}

/* What a rank is short of is its own fault, whoever was to get it. */
static int culprit_of(const struct group *group, int rc)
{
    return group->blamed < 0 && rc == MS_E_NOMEM ? group->mesh->cfg.rank : group->blamed;
}

int group_leave(struct group *group, int rc, struct ms_err *err)
{
    if (rc >= 0) {
        return rc;
    }
    const char *text = ms_err_text(err);
    mesh_end(group->mesh, rc, culprit_of(group, rc), text[0] != '\0' ? text : ms_code_name(rc));
    group->op.sequence--; /* BYE tells how many were completed */
    return rc;
}

static int has_ended(const struct stream *stream)
{
    return stream->eof || stream->has_left || link_is_hung_up(&stream->link);
}

static int has_blamed(const struct group *group, const struct frame *bye)
{
    return bye->phase == FRAME_BYE_ABORTED && bye->begin < (uint64_t)group->mesh->cfg.world;
}

/* A rank that said BYE and will not come to this collective. */
static int blame_leaver(struct group *group, const struct peer *peer, struct ms_err *err)
{
    const struct frame *bye = &peer->stream.bye;
    const struct mesh_config *cfg = &group->mesh->cfg;
    int blames = has_blamed(group, bye);
    char who[MESH_WHO_MAX];
    char what[GROUP_WHAT_MAX];
    group_what(group, what, sizeof(what));
    int is_itself = blames && bye->begin == (uint64_t)peer->member;
    if (blames && !is_itself && bye->begin != (uint64_t)cfg->rank) {
        return group_blame(group, (int)bye->begin, err, MS_E_CLOSED,
                           "%s is lost, as rank %d reports, during %s; see the log of that rank",
                           mesh_who(group->mesh, (int)bye->begin, who), peer->member, what);
    }
    return group_blame(group, peer->member, err, MS_E_CLOSED,
                       "%s %s during %s; see the log of that rank",
                       group_who(group, peer->rank, who),
                       is_itself ? "reports a shortage of its own"
                       : blames  ? "gave this rank up"
                                 : "left the job on purpose",
                       what);
}

/* Of those who left, about why the mesh is over: the one who names a rank, else who gave it up. */
static int says_more(const struct group *group, const struct peer *one, const struct peer *other)
{
    const struct frame *a = &one->stream.bye;
    const struct frame *b = &other->stream.bye;
    return has_blamed(group, a) != has_blamed(group, b)
               ? has_blamed(group, a)
               : a->phase == FRAME_BYE_ABORTED && b->phase != FRAME_BYE_ABORTED;
}

int group_check_peers(struct group *group, struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    char what[GROUP_WHAT_MAX];
    int leaver = -1;
    for (int i = 0; i < group->n_ranks; i++) {
        struct peer *peer = &group->peers[i];
        if (i == group->rank || !has_ended(&peer->stream)) {
            continue;
        }
        enum stream_fate fate = FATE_UNKNOWN;
        int rc = stream_fate(group, peer, &fate, err);
        if (rc < 0) {
            return rc;
        }
        switch (fate) {
        case FATE_DEAD: /* the cause, while those who gave up because of it only tell */
            return group_blame(
                group, peer->member, err, MS_E_CLOSED,
                "%s has died or was cut off: its connection ended during %s; see the "
                "log of that rank",
                group_who(group, i, who), group_what(group, what, sizeof(what)));
        case FATE_LEFT: /* fine where it has completed this collective */
            if (peer->stream.bye.sequence < group->op.sequence &&
                (leaver < 0 || says_more(group, peer, &group->peers[leaver]))) {
                leaver = i;
            }
            break;
        case FATE_UNKNOWN:
            break;
        }
    }
    return leaver < 0 ? 0 : blame_leaver(group, &group->peers[leaver], err);
}

int group_scratch(struct group *group, size_t bytes, struct ms_err *err)
{
    if (bytes <= group->scratch_bytes) {
        return 0;
    }
    size_t size = (bytes + 4095) / 4096 * 4096;
    uint8_t *scratch = aligned_alloc(64, size);
    if (scratch == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory: %zu bytes for the data of remote ranks",
                       size);
    }
    free(group->scratch);
    group->scratch = scratch;
    group->scratch_bytes = size;
    return 0;
}

/* ---- long waits
 * -------------------------------------------------------------------------------------- */

uint64_t group_patience(const struct group *group)
{
    int warn_ms = group->mesh->cfg.warn_ms;
    return warn_ms > 0 ? (uint64_t)warn_ms : WARN_MS;
}

int group_may_tell(const struct group *group, uint64_t now_ms)
{
    return group->mesh->cfg.on_wait != NULL && now_ms >= group->quiet_until_ms;
}

void group_tell(struct group *group, const char *text, const char *condition)
{
    const struct mesh_config *cfg = &group->mesh->cfg;
    char whole[MS_ERR_TEXT_MAX];
    snprintf(whole, sizeof(whole), "%s; %sgiven up after %.1f s", text, condition,
             cfg->timeout_ms / 1e3);
    cfg->on_wait(cfg->arg, whole);
    group->quiet_until_ms = group->clock_ns / 1000000U + WARN_AGAIN_MS;
}

/* ---- made and closed
 * --------------------------------------------------------------------------------- */

static int alloc_group(struct group *group, struct ms_err *err)
{
    size_t n = (size_t)group->n_ranks;
    group->peers = calloc(n, sizeof(*group->peers));
    group->locals = calloc(n, sizeof(*group->locals));
    group->remotes = calloc(n, sizeof(*group->remotes));
    group->subtrees = calloc(n, sizeof(*group->subtrees));
    group->polls = calloc(n + 1, sizeof(*group->polls));
    group->segments = calloc(n, sizeof(*group->segments));
    group->exchanges = calloc(n, sizeof(*group->exchanges));
    group->counters = calloc(n, sizeof(*group->counters));
    for (size_t i = 0; i < n; i++) { /* before anything can fail: 0 is somebody else's */
        if (group->segments != NULL) {
            group->segments[i].fd = -1;
        }
        if (group->peers != NULL) {
            link_init(&group->peers[i].stream.link, -1);
        }
    }
    if (group->peers == NULL || group->locals == NULL || group->remotes == NULL ||
        group->subtrees == NULL || group->polls == NULL || group->segments == NULL ||
        group->exchanges == NULL || group->counters == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a group of %d ranks", group->n_ranks);
    }
    return 0;
}

static void sort_ranks(struct group *group, const int *members)
{
    const struct mesh *mesh = group->mesh;
    for (int i = 0; i < group->n_ranks; i++) {
        struct peer *peer = &group->peers[i];
        peer->rank = i;
        peer->member = members[i];
        peer->local = -1;
        while (!mesh_are_local(mesh, members[peer->host], members[i])) {
            peer->host++;
        }
        if (members[i] == mesh->cfg.rank) {
            group->rank = i;
            group->self = group->n_locals;
        }
        if (mesh_are_local(mesh, mesh->cfg.rank, members[i])) {
            peer->local = group->n_locals;
            group->locals[group->n_locals++] = i;
        } else {
            group->remotes[group->n_remotes++] = i;
        }
    }
    hosts_find(group);
}

struct shm_head group_head(const struct group *group, int rank)
{
    const struct mesh_config *cfg = &group->mesh->cfg;
    return (struct shm_head){
        .job = cfg->job,
        .generation = cfg->generation,
        .rank = (uint64_t)rank,
        .world = (uint64_t)group->n_ranks,
        .exchange_count = group->exchange_count,
        .group = group->number,
    };
}

int group_check_dtype(enum ms_dtype dtype, struct ms_err *err)
{
    if (dtype != MS_F32) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "an exchange buffer of %s: sums over ranks are implemented for %s only",
                       ms_dtype_name(dtype), ms_dtype_name(MS_F32));
    }
    return 0;
}

int group_open(struct mesh *mesh, uint32_t number, const int *members, int n,
               enum ms_dtype exchange_dtype, size_t exchange_count, struct group **ret,
               struct ms_err *err)
{
    struct group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a group of %d ranks", n);
    }
    *group = (struct group){.mesh = mesh,
                            .number = number,
                            .place = mesh_free_place(mesh),
                            .n_ranks = n,
                            .blamed = -1,
                            .exchange_dtype = exchange_dtype,
                            .exchange_count = exchange_count};
    int rc = alloc_group(group, err);
    if (rc == 0) {
        sort_ranks(group, members);
        struct shm_head head = group_head(group, group->rank);
        rc = segment_create(&group->segments[group->self], &head, exchange_dtype,
                            group->n_locals > 1, err);
    }
    if (rc == 0) {
        patience_open(group);
    }
    rc = rc == 0 && n > 1 ? group_join(group, err) : rc;
    if (rc < 0) { /* first the end of the mesh: BYE says why to those who have joined */
        mesh_end(mesh, rc, culprit_of(group, rc), ms_err_text(err));
        group_close(group);
        return rc;
    }
    group->quiet_until_ms = 0; /* what its collectives wait for is news */
    for (int i = 0; i < group->n_locals; i++) {
        group->exchanges[i] = segment_exchange(&group->segments[i]);
        group->counters[i] = segment_counters(&group->segments[i]);
    }
    if (group->segments[group->self].fd >= 0) { /* passed to all who need it */
        close(group->segments[group->self].fd);
        group->segments[group->self].fd = -1;
    }
    *ret = group;
    return 0;
}

void group_close(struct group *group)
{
    if (group == NULL) {
        return;
    }
    if (group->peers != NULL && group->polls != NULL) {
        streams_leave(group);
    }
    for (int i = 0; group->peers != NULL && i < group->n_ranks; i++) {
        stream_fini(&group->peers[i].stream);
    }
    for (int i = 0; group->segments != NULL && i < group->n_ranks; i++) {
        segment_fini(&group->segments[i]);
    }
    free(group->peers);
    free(group->locals);
    free(group->remotes);
    free(group->subtrees);
    free(group->polls);
    free(group->segments);
    free(group->exchanges);
    free(group->counters);
    free(group->scratch);
    free(group);
}

struct mesh *group_mesh(const struct group *group)
{
    return group->mesh;
}

void *group_exchange(struct group *group)
{
    return segment_exchange(&group->segments[group->self]);
}

int group_rank(const struct group *group)
{
    return group->rank;
}

int group_ranks(const struct group *group)
{
    return group->n_ranks;
}

int group_local_ranks(const struct group *group)
{
    return group->n_locals;
}

int group_step_begin(struct group *group, uint64_t step, struct ms_err *err)
{
    group->step = step;
    return mesh_check(group->mesh, err);
}
