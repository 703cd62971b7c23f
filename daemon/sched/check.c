/* check.c - every invariant of the core's state; docs/states.md lists them in words */
#include "daemon/sched/check.h"
#include "daemon/sched/state.h"

#include <string.h>

typedef unsigned long long ull;

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
    HOLDS(gone == (node->holder == NULL), "node %s: it is wrongly somebody's, or nobody's", id);
    HOLDS(node_is_idle(node) == !list_empty(&node->idle), "node %s: wrongly %s the idle list", id,
          node_is_idle(node) ? "off" : "on");
    HOLDS(gone == !list_empty(&node->gone), "node %s: gone and not listed, or listed", id);
    HOLDS(gone == timer_is_armed(&node->forget), "node %s: nothing will forget it", id);
    HOLDS(!gone || (list_empty(&node->holds) && node->reason[0] != '\0'),
          "node %s: gone, and holds a rank or names no reason", id);
    return 0;
}

static int check_hold(const struct sched *s, const struct hold *hold, struct ms_err *err)
{
    const char *id = hold->node->info.node_id;
    HOLDS(hold->generation <= s->generation, "node %s holds generation %llu above %llu", id,
          (ull)hold->generation, (ull)s->generation);
    const struct job *job = hold->job;
    HOLDS((job == NULL && hold->keeps == NULL) == (timer_is_armed(&hold->answer) || hold->overdue),
          "node %s: nobody waits for it to let go of job %llu", id, (ull)hold->job_id);
    if (hold->keeps != NULL) {
        const struct job *other = hold->keeps->job;
        HOLDS(job == NULL && other->id == hold->job_id && other->state == JOB_RECOVERING,
              "node %s keeps the state of job %llu, which does not recover", id, (ull)hold->job_id);
        HOLDS(former_is(hold->keeps, hold), "node %s keeps a state that nobody knows of", id);
    }
    if (job != NULL) {
        HOLDS(job_is_placed(job), "node %s serves job %llu, which is not placed", id, (ull)job->id);
        const bool hears_of_none = job->run->cancelling || job->run->called_off;
        const bool is_older = job->recovery && hears_of_none && hold->generation < job->generation;
        HOLDS(hold->job_id == job->id && (hold->generation == job->generation || is_older) &&
                  hold->rank < job->workers,
              "node %s: what it holds is not what it serves", id);
        const struct member *member = &job->run->members[hold->rank];
        HOLDS(member->hold == hold && strcmp(member->node_id, id) == 0,
              "node %s: rank %u of job %llu is another's", id, hold->rank, (ull)job->id);
        HOLDS(member->incarnation == hold->node->info.incarnation,
              "node %s: rank %u of job %llu was given to another process", id, hold->rank,
              (ull)job->id);
    }
    return 0;
}

static int check_node_holds(const struct sched *s, const struct node *node, struct ms_err *err)
{
    const char *id = node->info.node_id;
    const struct hold *first = hold_first(node);
    HOLDS(node->state != NODE_NEW || (first != NULL && first->job != NULL),
          "node %s is expected for nothing", id);
    HOLDS(first == NULL || first->by_node.next == &node->holds, "node %s holds two ranks", id);
    for (const struct list *at = node->holds.next; at != &node->holds; at = at->next) {
        const struct hold *hold = list_item(at, struct hold, by_node);
        HOLDS(hold->node == node, "node %s: a hold is another's", id);
        int rc = check_hold(s, hold, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (node->newcomer != NULL) {
        HOLDS(timer_is_armed(&node->newcomer->timer) && node->newcomer->node == node &&
                  node->newcomer->conn->newcomer == node->newcomer &&
                  (node->conn != NULL || (s->mode->by_hand && node->state == NODE_NEW)),
              "node %s: a newcomer waits for nothing", id);
    }
    return 0;
}

static int check_hosts(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    size_t nodes = 0;
    uint32_t paused = 0;
    struct table_link *link = table_walk(&s->hosts, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->hosts, &slot, link)) {
        const struct host *host = list_item(link, struct host, link);
        HOLDS(host->is_aside == timer_is_armed(&host->aside),
              "host %s: nothing ends that it is aside", host->key);
        HOLDS(host->drained || host->is_aside || !list_empty(&host->nodes) ||
                  timer_is_armed(&host->unstored),
              "host %s is known for nothing", host->key);
        HOLDS(host->paused == timer_is_armed(&host->pause), "host %s: nothing ends its pause",
              host->key);
        paused += host->paused;
        for (const struct list *at = host->nodes.next; at != &host->nodes; at = at->next) {
            HOLDS(list_item(at, struct node, on_host)->host == host, "host %s: a node is another's",
                  host->key);
            nodes++;
        }
    }
    HOLDS(paused == s->n_paused, "%u hosts are paused, and the count says %u", paused, s->n_paused);
    HOLDS(nodes == s->nodes.n, "%zu nodes are on hosts, of %zu", nodes, s->nodes.n);
    return 0;
}

static int check_nodes(const struct sched *s, struct ms_err *err)
{
    uint32_t registered = 0;
    uint32_t idle = 0;
    uint32_t gone = 0;
    uint32_t usable = 0;
    size_t slot = 0;
    struct table_link *link = table_walk(&s->nodes, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->nodes, &slot, link)) {
        const struct node *node = list_item(link, struct node, link);
        int rc = check_node_lists(s, node, err);
        rc = rc == 0 ? check_node_holds(s, node, err) : rc;
        if (rc < 0) {
            return rc;
        }
        registered += node->state == NODE_REGISTERED;
        idle += node_is_idle(node);
        usable += node_is_usable(node);
        gone += node->state == NODE_LOST || node->state == NODE_LEFT;
    }
    HOLDS(registered == s->n_registered && idle == s->n_idle && gone == s->n_gone,
          "%u registered, %u idle, %u gone nodes, and the counts say %u, %u, %u", registered, idle,
          gone, s->n_registered, s->n_idle, s->n_gone);
    HOLDS(usable == s->n_usable, "%u nodes are usable, and the count says %u", usable, s->n_usable);
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
    const struct hold *hold = member->hold;
    const bool may_be_vacant = !list_empty(&job->run->recovering) || job->run->cancelling ||
                               (job->state == JOB_RUNNING && job->run->unsaved) ||
                               job->run->called_off;
    if (hold == NULL && job->recovery && may_be_vacant) {
        HOLDS(member->state == RANK_LOST, "job %llu: rank %u is vacant, and not lost", (ull)job->id,
              rank);
        return 0;
    }
    HOLDS(hold != NULL && hold->job == job && hold->rank == rank,
          "job %llu: rank %u is held by nobody", (ull)job->id, rank);
    HOLDS(member->state == RANK_MISSING || rank_is_over(member) || hold->node->state != NODE_NEW,
          "job %llu: rank %u is not missing and its node is", (ull)job->id, rank);
    HOLDS(member->state != RANK_MISSING || hold->node->state == NODE_NEW,
          "job %llu: rank %u is missing and its node is not", (ull)job->id, rank);
    HOLDS(member->state != RANK_LOST, "job %llu goes on without rank %u", (ull)job->id, rank);
    return 0; /* two ranks on one node: that node's hold could be only one of them */
}

/* Some have ended, and others may never; or all have, and nobody is at the weights, or will be. */
static bool waits_for_ever(const struct run *run)
{
    return (save_awaits(run) && !timer_is_armed(&run->tardy)) ||
           (save_is_owed(run) && !timer_is_armed(&run->save_again));
}

static int check_run(const struct sched *s, const struct job *job, struct ms_err *err)
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
    HOLDS(memcmp(counts, run->n_in, sizeof(counts)) == 0,
          "job %llu: the counts of its ranks are wrong", (ull)job->id);
    HOLDS(run_n_over(run) < job->workers ||
              (run->cancelling ? run->late_asked || timer_is_armed(&run->back)
                               : !list_empty(&run->recovering) || save_is_owed(run)),
          "job %llu: all ranks are done and it has not ended", (ull)job->id);
    HOLDS(job->state != JOB_RECOVERING || run->called_off || run->cancelling ||
              !list_empty(&run->recovering) || timer_is_armed(&run->hang),
          "job %llu: nobody looks whether its ranks get through their round", (ull)job->id);
    HOLDS(!waits_for_ever(run), "job %llu: nobody looks whether its ranks end, or save",
          (ull)job->id);
    HOLDS(timer_is_armed(&run->ready) ==
              (job->state != JOB_RUNNING && !run->called_off && ready_is_bounded(s)),
          "job %llu: nobody looks whether its ranks get ready", (ull)job->id);
    HOLDS(timer_is_armed(&run->adopt) == (counts[RANK_MISSING] > 0),
          "job %llu: nobody waits for missing ranks", (ull)job->id);
    HOLDS(timer_is_armed(&run->grace) == run->cancelling, "job %llu: its cancel has no end",
          (ull)job->id);
    HOLDS(timer_is_armed(&run->unfit_timer) == (run->n_unfit > 0),
          "job %llu: who could not serve is never asked again", (ull)job->id);
    HOLDS(timer_is_armed(&run->complaint.timer) == run->complaint.made,
          "job %llu: nobody judges a complaint", (ull)job->id);
    HOLDS(counts[RANK_FAILED] == 0 || run->complaint.made,
          "job %llu: a rank failed, and no one judges", (ull)job->id);
    HOLDS(list_empty(&run->recovering) || (job->recovery && job->state != JOB_RUNNING),
          "job %llu runs, and a round is due", (ull)job->id);
    HOLDS(list_empty(&run->recovering) || !run->cancelling,
          "job %llu is to stop, and a round is due", (ull)job->id);
    if (job->state != JOB_RUNNING && list_empty(&run->recovering) && !run->cancelling &&
        !run->called_off && !run->complaint.made) {
        HOLDS(counts[RANK_PREPARING] + counts[RANK_MISSING] > 0,
              "job %llu: all ranks are ready and it was not started", (ull)job->id);
    }
    return 0;
}

static int check_ended_run(const struct job *job, struct ms_err *err)
{
    const struct run *run = job->run;
    HOLDS(job_is_ended(job), "job %llu: queued, with members", (ull)job->id);
    HOLDS(list_empty(&run->recovering), "job %llu: ended, and recovers", (ull)job->id);
    HOLDS(!timer_is_armed(&run->ready) && !timer_is_armed(&run->adopt) &&
              !timer_is_armed(&run->grace) && !timer_is_armed(&run->back) &&
              !timer_is_armed(&run->complaint.timer) && !timer_is_armed(&run->unfit_timer) &&
              !timer_is_armed(&run->round) && !timer_is_armed(&run->evals_due) &&
              !timer_is_armed(&run->save_again) && !timer_is_armed(&run->tardy) &&
              !timer_is_armed(&run->hang),
          "job %llu: ended, with a deadline", (ull)job->id);
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        HOLDS(run->members[rank].hold == NULL, "job %llu: ended, with a node", (ull)job->id);
        HOLDS(rank_is_over(&run->members[rank]), "job %llu ended, and rank %u is %s", (ull)job->id,
              rank, rank_state_name(run->members[rank].state));
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
    for (struct list *at = job->watches.next; at != &job->watches; at = at->next) {
        HOLDS(!job_is_ended(job) || !list_empty(&list_item(at, struct watch, by_job)->stir),
              "job %llu: a watcher waits for its end", id);
    }
    HOLDS(list_empty(&job->waiters) || job->run->cancelling, "job %llu: a cancel waits for nothing",
          id);
    HOLDS(!job_is_ended(job) || job->reason[0] != '\0', "job %llu ended without a reason", id);
    if (job_is_placed(job)) {
        HOLDS(job->generation > 0, "job %llu: placed without a generation", id);
        return check_run(s, job, err);
    }
    return job->run != NULL ? check_ended_run(job, err) : 0;
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
    HOLDS(queued == queue_n(s) && placed == s->n_placed && ended == s->n_ended,
          "%u queued, %u placed, %u ended jobs, and the counts say %u, %u, %u", queued, placed,
          ended, queue_n(s), s->n_placed, s->n_ended);
    return 0;
}

/* Reasons are asked for only where somebody waits: QUEUED and PLACING. */
static int check_reasons(struct sched *s, struct ms_err *err)
{
    const struct job *head = queue_first(s);
    if (head != NULL) {
        HOLDS(job_reason(s, head)[0] != '\0', "job %llu waits for no reason", (ull)head->id);
        HOLDS(s->loading || s->draining || !generations_left(s) || s->refusal[0] != '\0' ||
                  head->workers + home_mark(s) > s->n_idle || !job_is_for_all(head) ||
                  recover_wants_nodes(s) || (s->due & DUE_PLACE) != 0,
              "job %llu waits for %u nodes, and %u are idle", (ull)head->id, head->workers,
              s->n_idle);
        HOLDS(s->loading || head->workers <= s->n_usable || (s->due & DUE_PLACE) != 0 ||
                  timer_is_armed(&s->queue.doubt),
              "job %llu is larger than the cluster and lets nobody pass", (ull)head->id);
    }
    for (size_t i = 0; i < s->queue.aside.n; i++) {
        const struct job *job = list_item(s->queue.aside.items[i], struct job, queue);
        HOLDS(job->workers > s->queue.n_nodes && s->queue.n_nodes >= s->n_usable,
              "job %llu stepped aside, and %u nodes are there", (ull)job->id, s->n_usable);
        HOLDS(job->state == JOB_QUEUED && job->aside && job_reason(s, job)[0] != '\0',
              "job %llu stepped aside for no reason", (ull)job->id);
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

int heap_check(const struct heap *heap, const char *what, struct ms_err *err)
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
        HOLDS(timer_is_armed(&route->timer) && route->node->conn != NULL &&
                  conn_find(s, route->client) != NULL,
              "log read %llu can never be answered", (ull)route->number);
    }
    return 0;
}

int sched_check(const struct sched *sched, struct ms_err *err)
{
    struct sched *s = (struct sched *)sched; /* reasons need tick memory; nothing else is touched */
    int rc = check_nodes(s, err);
    rc = rc == 0 ? check_hosts(s, err) : rc;
    rc = rc == 0 ? holders_check(s, err) : rc;
    rc = rc == 0 ? purses_check(s, err) : rc;
    rc = rc == 0 ? plans_check(s, err) : rc;
    rc = rc == 0 ? check_jobs(s, err) : rc;
    rc = rc == 0 ? pasts_check(s, err) : rc;
    rc = rc == 0 ? kept_check(s, err) : rc;
    rc = rc == 0 ? gone_check(s, err) : rc;
    rc = rc == 0 ? check_reasons(s, err) : rc;
    rc = rc == 0 ? heap_check(&s->timers, "timers", err) : rc;
    rc = rc == 0 ? heap_check(&s->queue.line, "queue", err) : rc;
    rc = rc == 0 ? heap_check(&s->queue.aside, "large jobs", err) : rc;
    rc = rc == 0 ? check_routes(s, err) : rc;
    rc = rc == 0 ? s->mode->check(s, err) : rc;
    return rc;
}
