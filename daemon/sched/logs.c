/* logs.c - log reads: from a client to the node that has the file, and back */
#include "daemon/sched/stamp.h"
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

struct route *route_find(const struct sched *s, uint64_t number)
{
    struct table_link *link = table_first(&s->routes, table_hash_u64(number));
    while (link != NULL && list_item(link, struct route, link)->number != number) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct route, link) : NULL;
}

void route_drop(struct sched *s, struct route *route)
{
    timer_stop(s, &route->timer);
    table_remove(&s->routes, &route->link);
    free(route);
}

void route_fail(struct sched *s, struct route *route, int code, const char *cause)
{
    emit_error(s, route->client, route->frame_id, code, "%s of job %llu rank %u: node %s %.200s",
               result_name(route->fetch), (unsigned long long)route->job, route->rank,
               route->node->info.node_id, cause);
    route_drop(s, route);
}

void route_timeout(struct sched *s, struct route *route)
{
    route_fail(s, route, MS_E_TIMEOUT,
               emit_text(s, "did not answer within %d s: try again", MS_LOG_READ_MS / 1000));
}

/* Few at any time (MS_LOG_ROUTES_MAX), mostly none: walking them is cheap. */
static struct route *route_next(struct sched *s, uint64_t client, const struct node *node)
{
    size_t slot = 0;
    struct table_link *link = s->routes.n > 0 ? table_walk(&s->routes, &slot, NULL) : NULL;
    for (; link != NULL; link = table_walk(&s->routes, &slot, link)) {
        struct route *route = list_item(link, struct route, link);
        if (node != NULL ? route->node == node : route->client == client) {
            return route;
        }
    }
    return NULL;
}

void routes_drop_conn(struct sched *s, uint64_t client)
{
    struct route *route = route_next(s, client, NULL);
    for (; route != NULL; route = route_next(s, client, NULL)) {
        route_drop(s, route);
    }
}

void routes_drop_node(struct sched *s, const struct node *node, const char *reason)
{
    struct route *route = route_next(s, 0, node);
    for (; route != NULL; route = route_next(s, 0, node)) {
        route_fail(s, route, MS_E_CLOSED, emit_text(s, "was lost: %s", reason));
    }
}

const char *result_name(unsigned what)
{
    return what == MS_FETCH_WEIGHTS   ? "weights"
           : what == MS_FETCH_METRICS ? "metrics"
           : what == MS_FETCH_SAVED   ? "checkpoints"
                                      : "log";
}

const char *result_log(const struct run *run, uint32_t rank, unsigned what)
{
    const char *home = run->home.log_path != NULL ? run->home.log_path : "";
    return what == MS_FETCH_SAVED ? home : run->members[rank].log_path;
}

/* Where it lies on the node: the rank's log, or a file beside it. */
const char *result_words(struct sched *s, const struct job *job, uint32_t rank, unsigned what)
{
    const char *path = job->run->members[rank].log_path;
    const char *slash = strrchr(path, '/');
    if (what == MS_FETCH_SAVED) {
        path = result_log(job->run, rank, what);
        return path[0] != '\0' ? emit_text(s, "they lie beside its log: %.160s", path)
                               : "they lie in its folder of the job";
    }
    if (slash == NULL || (what != MS_FETCH_WEIGHTS && what != MS_FETCH_METRICS)) {
        return log_words(s, job, rank);
    }
    return emit_text(s, "its %s: %.*s/%s", result_name(what),
                     (int)(slash - path < 160 ? slash - path : 160), path,
                     what == MS_FETCH_WEIGHTS ? "weights.safetensors" : "metrics.jsonl");
}

/* Some tenths of a second, as a rule: who is away for longer is away. */
static bool begins_anew(const struct sched *s, const struct node *node)
{
    return node != NULL && node->state == NODE_LEFT && node->returns &&
           s->now.mono_ms - node->seen_ms < s->cfg.lease_ms;
}

/* Where the job's newest checkpoint is, and no rank 0 any more. */
static struct node *saved_holder(struct sched *s, const struct job *job, int *ret_code,
                                 const char **ret_text)
{
    const struct run *run = job->run;
    const unsigned long long id = job->id;
    const char *place = home_place(s, run);
    if (!home_is_elsewhere(s, run)) {
        *ret_text =
            emit_text(s,
                      "no other node than that of rank 0 has a newer checkpoint of job %llu, "
                      "as far as is known",
                      id);
        return NULL;
    }
    struct node *node = node_find(s, run->home.node_id);
    if (begins_anew(s, node)) {
        *ret_code = MS_E_UNAVAILABLE;
        *ret_text = emit_text(s,
                              "checkpoints of job %llu: %s begins anew for another job, and comes "
                              "back in a moment: try again",
                              id, place);
        return NULL;
    }
    if (node == NULL || node->conn == NULL || !home_is(run, node)) {
        const bool is_other = node != NULL && node->conn != NULL;
        *ret_code = MS_E_UNREACHABLE;
        *ret_text = emit_text(
            s, "checkpoints of job %llu: %s, which has that of step %llu or a later one, %s; %s",
            id, place, (unsigned long long)run->home.step,
            is_other ? "is another one's now, or has another folder of jobs "
                       "(jobs_dir)"
                     : "is not connected",
            result_words(s, job, 0, MS_FETCH_SAVED));
        return NULL;
    }
    return node;
}

struct node *result_holder(struct sched *s, uint64_t number, uint32_t rank, unsigned what,
                           int *ret_code, const char **ret_text)
{
    const struct job *job = job_find(s, number);
    const char *name = result_name(what);
    unsigned long long id = number;
    *ret_code = MS_E_NOT_FOUND;
    if (job == NULL) {
        *ret_text = emit_text(s, "job %llu does not exist: msctl jobs --all lists them", id);
        return NULL;
    }
    if (rank >= job->workers) {
        *ret_code = MS_E_INVALID;
        *ret_text = emit_text(s, "job %llu has no rank %u: its ranks are 0 to %u", id, rank,
                              job->workers - 1);
        return NULL;
    }
    if (job->run == NULL) {
        *ret_text = job->state == JOB_QUEUED ? emit_text(s, "job %llu has no %s yet: it %s", id,
                                                         name, job_reason(s, job))
                    : job->generation == 0
                        ? emit_text(s, "job %llu has no %s: it never started", id, name)
                        : emit_text(s,
                                    "job %llu ended too long ago: its %s lies in its run "
                                    "directory on the nodes",
                                    id, name);
        return NULL;
    }
    if (what == MS_FETCH_SAVED) {
        return saved_holder(s, job, ret_code, ret_text);
    }
    const struct member *member = &job->run->members[rank];
    struct node *node = node_find(s, member->node_id);
    if (begins_anew(s, node)) {
        *ret_code = MS_E_UNAVAILABLE;
        *ret_text = emit_text(
            s,
            "%s of job %llu rank %u: node %s on host %.64s begins anew for another "
            "job, and comes back in a moment: try again; %s",
            name, id, rank, member->node_id, member->host_name, result_words(s, job, rank, what));
        return NULL;
    }
    if (node == NULL || node->conn == NULL) {
        *ret_code = MS_E_UNREACHABLE;
        *ret_text = emit_text(s,
                              "%s of job %llu rank %u: node %s on host %.64s is not connected; "
                              "%s",
                              name, id, rank, member->node_id, member->host_name,
                              result_words(s, job, rank, what));
        return NULL;
    }
    if (principal_is_anothers(member->principal, node->info.principal)) {
        *ret_code = MS_E_UNREACHABLE;
        *ret_text = emit_text(s,
                              "%s of job %llu rank %u: node %s is %s's now, and was %s's on host "
                              "%.64s when it had the job",
                              name, id, rank, member->node_id, node->info.principal,
                              member->principal, member->host_name);
        return NULL;
    }
    return node;
}

/* Who asks for a node that does not answer has his places for as long as it may take. */
static const char *route_refusal(struct sched *s, const struct conn *conn)
{
    uint32_t by_conn = 0;
    uint32_t by_owner = 0;
    size_t slot = 0;
    struct table_link *link = s->routes.n > 0 ? table_walk(&s->routes, &slot, NULL) : NULL;
    for (; link != NULL; link = table_walk(&s->routes, &slot, link)) {
        const struct route *route = list_item(link, struct route, link);
        by_conn += route->client == conn->id;
        by_owner += strcmp(route->asker->peer.who.id, conn->peer.who.id) == 0;
    }
    if (s->routes.n >= MS_LOG_ROUTES_MAX) {
        return emit_text(s, "%d logs and results are being asked for already: try again",
                         MS_LOG_ROUTES_MAX);
    }
    if (by_conn >= MS_LOG_ROUTES_CONN) {
        return emit_text(s,
                         "this connection waits for %u logs and results already: read its answers "
                         "before the next question",
                         by_conn);
    }
    if (by_owner >= MS_LOG_ROUTES_OWNER) {
        return emit_text(s,
                         "%s waits for %u logs and results already, which is one principal's "
                         "share: try again",
                         ms_principal_show(conn->peer.who.id), by_owner);
    }
    return NULL;
}

struct route *route_open(struct sched *s, const struct conn *conn, uint32_t frame_id,
                         struct node *node, uint64_t job, uint32_t rank)
{
    const char *full = route_refusal(s, conn);
    if (full != NULL) {
        emit_error(s, conn->id, frame_id, MS_E_FULL, "%s", full);
        return NULL;
    }
    struct route *route = calloc(1, sizeof(*route));
    if (route == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOMEM, "no memory to read from node %s: try again",
                   node->info.node_id);
        return NULL;
    }
    route->number = ++s->next_route;
    route->client = conn->id;
    route->asker = conn;
    route->frame_id = frame_id;
    route->node = node;
    route->job = job;
    route->rank = rank;
    table_add(&s->routes, &route->link, table_hash_u64(route->number));
    timer_arm(s, &route->timer, TIMER_ROUTE, after_ms(s, MS_LOG_READ_MS));
    return route;
}

void on_log_query(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__LogQuery *msg = (const Ms__LogQuery *)event->msg;
    int code = 0;
    const char *text = NULL;
    struct node *node = result_holder(s, msg->job, msg->rank, MS_FETCH_LOG, &code, &text);
    if (node == NULL) {
        emit_error(s, conn->id, event->id, code, "%s", text);
        return;
    }
    struct route *route = route_open(s, conn, event->id, node, msg->job, msg->rank);
    if (route == NULL) {
        return;
    }
    Ms__LogRead read = MS__LOG_READ__INIT;
    read.route = route->number;
    read.job = msg->job;
    read.job_tag = (char *)job_tag(s, job_find(s, msg->job));
    read.rank = msg->rank;
    read.offset = msg->offset;
    read.bytes_max =
        msg->bytes_max > 0 && msg->bytes_max < MS_LOG_CHUNK_MAX ? msg->bytes_max : MS_LOG_CHUNK_MAX;
    emit_send(s, node->conn->id, MS_MSG_LOG_READ, 0, &read.base);
}

void on_log_chunk(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__LogChunk *msg = (const Ms__LogChunk *)event->msg;
    struct route *route = route_find(s, msg->route);
    if (route == NULL || route->node != conn->node || route->fetch != 0) {
        return; /* the asker is gone, or had to be told that it takes too long */
    }
    emit_send(s, route->client, MS_MSG_LOG_CHUNK, route->frame_id, &msg->base);
    route_drop(s, route);
}
