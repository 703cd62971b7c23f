/* check.c - every invariant of the core's state; docs/states.md lists them in words */
#include "daemon/sched/state.h"

#include <string.h>

typedef unsigned long long ull;

#define HOLDS(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            return ms_fail(err, MS_E_FAILED, __VA_ARGS__);                                         \
        }                                                                                          \
    } while (0)

static bool armed(const struct timer *timer)
{
    return timer->link.at != 0;
}

/* ---- nodes --------------------------------------------------------------------------------------
 */

static int check_node_lists(const struct sched *s, const struct node *node, struct ms_err *err)
{
    const char *id = node->info.node_id;
    bool registered = node->state == NODE_REGISTERED;
    bool gone = node->state == NODE_LOST || node->state == NODE_LEFT;
    HOLDS(registered == (node->conn != NULL), "node %s: state and connection disagree", id);
    HOLDS(!registered || node->conn->node == node, "node %s: its connection is another's", id);
    HOLDS(!registered || conn_find(s, node->conn->id) == node->conn,
          "node %s: its connection is forgotten", id);
    HOLDS(registered == !list_empty(&node->beating), "node %s: lease without state", id);
    HOLDS(node_is_idle(node) == !list_empty(&node->idle), "node %s: wrongly %s the idle list", id,
          node_is_idle(node) ? "off" : "on");
    HOLDS(gone == !list_empty(&node->gone), "node %s: gone and not listed, or listed", id);
    HOLDS(gone == armed(&node->forget), "node %s: nothing will forget it", id);
    HOLDS(!gone || (node->held_job == 0 && node->reason[0] != '\0'),
          "node %s: gone, and holds a rank or names no reason", id);
    return 0;
}

static int check_node_rank(const struct sched *s, const struct node *node, struct ms_err *err)
{
    const char *id = node->info.node_id;
    HOLDS(node->held_generation <= s->generation, "node %s holds generation %llu above %llu", id,
          (ull)node->held_generation, (ull)s->generation);
    HOLDS(node->state != NODE_NEW || node->job != NULL, "node %s is expected for nothing", id);
    if (node->job != NULL) {
        const struct job *job = node->job;
        HOLDS(job_is_placed(job), "node %s serves job %llu, which is not placed", id, (ull)job->id);
        HOLDS(node->held_job == job->id && node->held_generation == job->generation &&
                  node->held_rank < job->workers,
              "node %s: what it holds is not what it serves", id);
        const struct member *member = &job->run->members[node->held_rank];
        HOLDS(member->node == node && strcmp(member->node_id, id) == 0,
              "node %s: rank %u of job %llu is another's", id, node->held_rank, (ull)job->id);
        HOLDS(member->incarnation == node->info.incarnation,
              "node %s: rank %u of job %llu was given to another process", id, node->held_rank,
              (ull)job->id);
    }
    if (node->newcomer != NULL) {
        HOLDS(armed(&node->newcomer->timer) && node->newcomer->node == node &&
                  node->newcomer->conn->newcomer == node->newcomer && node->conn != NULL,
              "node %s: a newcomer waits for nothing", id);
    }
    return 0;
}

static int check_nodes(const struct sched *s, struct ms_err *err)
{
    uint32_t registered = 0;
    uint32_t idle = 0;
    uint32_t gone = 0;
    size_t slot = 0;
    struct table_link *link = table_walk(&s->nodes, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->nodes, &slot, link)) {
        const struct node *node = list_item(link, struct node, link);
        int rc = check_node_lists(s, node, err);
        rc = rc == 0 ? check_node_rank(s, node, err) : rc;
        if (rc < 0) {
            return rc;
        }
        registered += node->state == NODE_REGISTERED;
        idle += node_is_idle(node);
        gone += node->state == NODE_LOST || node->state == NODE_LEFT;
    }
    HOLDS(registered == s->n_registered && idle == s->n_idle && gone == s->n_gone,
          "%u registered, %u idle, %u gone nodes, and the counts say %u, %u, %u", registered, idle,
          gone, s->n_registered, s->n_idle, s->n_gone);
    HOLDS(registered <= MS_NODES_MAX && gone <= s->cfg.lost_nodes_max, "too many nodes");
    int64_t seen = INT64_MIN;
    for (const struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        const struct node *node = list_item(at, struct node, beating);
        HOLDS(node->seen_ms >= seen, "leases out of order at node %s", node->info.node_id);
        seen = node->seen_ms;
    }
    HOLDS(list_empty(&s->beating) || s->cfg.disable_heartbeat || sched_deadline(s) < INT64_MAX,
          "nodes are registered and no lease will be judged");
    return 0;
}

/* ---- jobs ---------------------------------------------------------------------------------------
 */

static int check_member(const struct job *job, uint32_t rank, struct ms_err *err)
{
    const struct member *member = &job->run->members[rank];
    HOLDS(member->node != NULL && member->node->job == job && member->node->held_rank == rank,
          "job %llu: rank %u is held by nobody", (ull)job->id, rank);
    HOLDS((member->state == RANK_MISSING) == (member->node->state == NODE_NEW),
          "job %llu: rank %u is missing and its node is not, or the reverse", (ull)job->id, rank);
    HOLDS(member->state != RANK_LOST, "job %llu goes on without rank %u", (ull)job->id, rank);
    return 0; /* two ranks on one node: its held_rank could equal only one of them */
}

static int check_run(const struct job *job, struct ms_err *err)
{
    const struct run *run = job->run;
    uint32_t counts[RANK_STATES] = {0};
    HOLDS(run != NULL && run->job == job, "job %llu is placed without members", (ull)job->id);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        int rc = check_member(job, rank, err);
        if (rc < 0) {
            return rc;
        }
        counts[run->members[rank].state]++;
    }
    uint32_t done = counts[RANK_DONE] + counts[RANK_STOPPED] + counts[RANK_FAILED];
    HOLDS(run->n_missing == counts[RANK_MISSING] && run->n_done == done &&
              run->n_stopped == counts[RANK_STOPPED],
          "job %llu: the counts of its ranks are wrong", (ull)job->id);
    HOLDS(done < job->workers, "job %llu: all ranks are done and it has not ended", (ull)job->id);
    HOLDS(armed(&run->adopt) == (run->n_missing > 0), "job %llu: nobody waits for missing ranks",
          (ull)job->id);
    HOLDS(armed(&run->grace) == run->cancelling, "job %llu: its cancel has no end", (ull)job->id);
    HOLDS(counts[RANK_FAILED] == 0 || armed(&run->blame),
          "job %llu: a rank failed, and no one judges", (ull)job->id);
    if (job->state == JOB_PLACING && !run->cancelling && !armed(&run->blame)) {
        HOLDS(counts[RANK_PREPARING] + counts[RANK_MISSING] > 0 &&
                  counts[RANK_READY] == run->n_ready,
              "job %llu: all ranks are ready and it was not started", (ull)job->id);
    }
    return 0;
}

static int check_job(const struct sched *s, const struct job *job, struct ms_err *err)
{
    ull id = job->id;
    HOLDS(job->generation <= s->generation, "job %llu: generation %llu above %llu", id,
          (ull)job->generation, (ull)s->generation);
    HOLDS((job->state == JOB_QUEUED) == (job->queue.at != 0), "job %llu: queue and state disagree",
          id);
    HOLDS((job->state == JOB_QUEUED) == list_empty(&job->lane),
          "job %llu: is in no list, or in two", id);
    HOLDS(job_is_placed(job) || list_empty(&job->waiters), "job %llu: a cancel was not answered",
          id);
    HOLDS(!job_is_ended(job) || list_empty(&job->watches), "job %llu: watchers wait for its end",
          id);
    HOLDS(list_empty(&job->waiters) || job->run->cancelling, "job %llu: a cancel waits for nothing",
          id);
    HOLDS(!job_is_ended(job) || job->reason[0] != '\0', "job %llu ended without a reason", id);
    if (job_is_placed(job)) {
        HOLDS(job->generation > 0, "job %llu: placed without a generation", id);
        return check_run(job, err);
    }
    if (job->run != NULL) {
        HOLDS(job_is_ended(job), "job %llu: queued, with members", id);
        HOLDS(!armed(&job->run->adopt) && !armed(&job->run->grace) && !armed(&job->run->blame),
              "job %llu: ended, with a deadline", id);
        for (uint32_t rank = 0; rank < job->workers; rank++) {
            HOLDS(job->run->members[rank].node == NULL, "job %llu: ended, with a node", id);
        }
    }
    return 0;
}

static int check_jobs(const struct sched *s, struct ms_err *err)
{
    uint32_t queued = 0;
    uint32_t placed = 0;
    uint32_t ended = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_slot *slot = &s->jobs[i];
        HOLDS(slot->id > before, "job ids out of order at %llu", (ull)slot->id);
        before = slot->id;
        if (slot->job == NULL) {
            continue;
        }
        HOLDS(slot->job->id == slot->id && slot->ended == job_is_ended(slot->job),
              "job %llu: the index is wrong", (ull)slot->id);
        int rc = check_job(s, slot->job, err);
        if (rc < 0) {
            return rc;
        }
        queued += slot->job->state == JOB_QUEUED;
        placed += job_is_placed(slot->job);
        ended += slot->ended;
    }
    HOLDS(before < s->next_job, "job id %llu was given, and the next is %llu", (ull)before,
          (ull)s->next_job);
    HOLDS(queued == s->queue.n && placed == s->n_placed && ended == s->n_ended,
          "%u queued, %u placed, %u ended jobs, and the counts say %zu, %u, %u", queued, placed,
          ended, s->queue.n, s->n_placed, s->n_ended);
    return 0;
}

/* Reasons are asked for only where somebody waits: QUEUED and PLACING. */
static int check_reasons(struct sched *s, struct ms_err *err)
{
    const struct heap_link *first = heap_first(&s->queue);
    if (first != NULL) {
        const struct job *head = list_item(first, struct job, queue);
        HOLDS(job_reason(s, head)[0] != '\0', "job %llu waits for no reason", (ull)head->id);
        HOLDS(s->loading || s->draining || s->refusal[0] != '\0' || head->workers > s->n_idle ||
                  s->place_due,
              "job %llu waits for %u nodes, and %u are idle", (ull)head->id, head->workers,
              s->n_idle);
    }
    uint64_t generation = 0;
    for (const struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        const struct job *job = list_item(at, struct job, lane);
        HOLDS(job->state == JOB_RUNNING || job_reason(s, job)[0] != '\0',
              "job %llu waits for no reason", (ull)job->id);
        for (const struct list *other = at->next; other != &s->placed; other = other->next) {
            generation = list_item(other, struct job, lane)->generation;
            HOLDS(generation != job->generation, "generation %llu is used twice", (ull)generation);
        }
    }
    return 0;
}

/* ---- the rest -----------------------------------------------------------------------------------
 */

static int check_heap(const struct heap *heap, const char *what, struct ms_err *err)
{
    for (size_t i = 0; i < heap->n; i++) {
        HOLDS(heap->items[i]->at == i + 1, "%s: item %zu does not know its place", what, i);
        HOLDS(i == 0 || !heap->before(heap->items[i], heap->items[(i - 1) / 2]),
              "%s: item %zu is out of order", what, i);
    }
    return 0;
}

static int check_routes(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    struct table_link *link = table_walk(&s->routes, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->routes, &slot, link)) {
        const struct route *route = list_item(link, struct route, link);
        HOLDS(armed(&route->timer) && route->node->conn != NULL &&
                  conn_find(s, route->client) != NULL,
              "log read %llu can never be answered", (ull)route->number);
    }
    return 0;
}

static int check_dynamic(const struct sched *s, struct ms_err *err)
{
    if (s->cfg.mode != SCHED_DYNAMIC) {
        return 0;
    }
    bool forming = s->topo == TOPO_INITIALIZING;
    HOLDS(!forming || s->n_placed == 0, "a job is placed and the topology is not complete");
    HOLDS(armed(&s->topo_timer) == (forming && s->cfg.topo_timeout_ms >= 0),
          "nothing will end the wait for workers");
    HOLDS(s->ending == (s->topo == TOPO_FINISHED || s->topo == TOPO_FAILED),
          "the topology has ended and the scheduler goes on");
    HOLDS(armed(&s->ending_timer) == (s->ending && !s->exited), "nothing will end the scheduler");
    HOLDS(s->n_registered <= s->cfg.worker_num, "more workers than MS_WORKER_NUM");
    return 0;
}

int sched_check(const struct sched *sched, struct ms_err *err)
{
    struct sched *s = (struct sched *)sched; /* reasons need tick memory; nothing else is touched */
    int rc = check_nodes(s, err);
    rc = rc == 0 ? check_jobs(s, err) : rc;
    rc = rc == 0 ? check_reasons(s, err) : rc;
    rc = rc == 0 ? check_heap(&s->timers, "timers", err) : rc;
    rc = rc == 0 ? check_heap(&s->queue, "queue", err) : rc;
    rc = rc == 0 ? check_routes(s, err) : rc;
    rc = rc == 0 ? check_dynamic(s, err) : rc;
    return rc;
}
