/* queue.c - jobs that wait for nodes */
#include "daemon/sched/state.h"

#include <stdlib.h>

static int next_before(const struct heap_link *a, const struct heap_link *b)
{
    const struct job *x = list_item(a, struct job, queue);
    const struct job *y = list_item(b, struct job, queue);
    return x->priority != y->priority ? x->priority > y->priority : x->id < y->id;
}

static int smaller_before(const struct heap_link *a, const struct heap_link *b)
{
    const struct job *x = list_item(a, struct job, queue);
    const struct job *y = list_item(b, struct job, queue);
    return x->workers != y->workers ? x->workers < y->workers : next_before(a, b);
}

void queue_init(struct sched *s)
{
    heap_init(&s->queue.line, next_before);
    heap_init(&s->queue.aside, smaller_before);
    s->queue.n_nodes = UINT32_MAX; /* nobody knows yet who comes */
}

void queue_fini(struct sched *s)
{
    heap_fini(&s->queue.line);
    heap_fini(&s->queue.aside);
}

static void add(struct heap *heap, struct job *job)
{
    if (heap_add(heap, &job->queue) < 0) {
        abort();
    }
}

void queue_add(struct sched *s, struct job *job)
{
    job->aside = false;
    add(&s->queue.line, job);
    s->due |= DUE_PLACE;
    watch_news(s);
}

void queue_remove(struct sched *s, struct job *job)
{
    heap_remove(job->aside ? &s->queue.aside : &s->queue.line, &job->queue);
    s->due |= DUE_PLACE; /* it may have stood before a smaller one */
    watch_news(s);
}

uint32_t queue_n(const struct sched *s)
{
    return (uint32_t)(s->queue.line.n + s->queue.aside.n);
}

struct job *queue_first(const struct sched *s)
{
    struct heap_link *first = heap_first(&s->queue.line);
    return first != NULL ? list_item(first, struct job, queue) : NULL;
}

struct job *queue_next(struct sched *s)
{
    struct queue *queue = &s->queue;
    struct job *job = queue_first(s);
    while (job != NULL && job->workers > queue->n_nodes) {
        heap_remove(&queue->line, &job->queue);
        job->aside = true;
        add(&queue->aside, job);
        job = queue_first(s);
    }
    bool doubtful = job != NULL && job->workers > s->n_usable;
    if (!doubtful) {
        timer_stop(s, &queue->doubt);
    } else if (!timer_is_armed(&queue->doubt)) {
        timer_arm(s, &queue->doubt, TIMER_DOUBT, after_ms(s, s->cfg.lease_ms));
    }
    return job;
}

static void come_back(struct sched *s)
{
    struct queue *queue = &s->queue;
    struct heap_link *first = heap_first(&queue->aside);
    while (first != NULL && list_item(first, struct job, queue)->workers <= queue->n_nodes) {
        struct job *job = list_item(first, struct job, queue);
        heap_remove(&queue->aside, first);
        queue_add(s, job);
        first = heap_first(&queue->aside);
    }
}

void queue_nodes_changed(struct sched *s)
{
    if (s->n_usable > s->queue.n_nodes) {
        s->queue.n_nodes = s->n_usable;
        come_back(s);
    }
    s->due |= DUE_PLACE; /* whoever is next may be in doubt now, or no longer */
}

void queue_doubt(struct sched *s, struct timer *timer)
{
    (void)timer;
    s->queue.n_nodes = s->n_usable;
    s->due |= DUE_PLACE;
    watch_news(s);
}

bool queue_may_grow(struct sched *s, const struct job *job, uint64_t was_short)
{
    struct queue *queue = &s->queue;
    if (was_short != job->id) {
        timer_arm(s, &queue->late, TIMER_LATE, after_ms(s, s->cfg.lease_ms));
    }
    queue->short_job = job->id;
    return timer_is_armed(&queue->late);
}

void queue_late(struct sched *s, struct timer *timer)
{
    (void)timer;
    s->due |= DUE_PLACE;
}

/* ---- in words -----------------------------------------------------------------------------------
 */

/* Fewer others than a job has ranks come before it. */
static const char *old_words(struct sched *s)
{
    for (const struct list *at = s->idle.next; at != &s->idle; at = at->next) {
        const struct node *node = list_item(at, const struct node, idle);
        if (!node_knows_plans(node)) {
            return emit_text(s, "node %s on host %s is", node->info.node_id, node->info.host_name);
        }
    }
    return "others are";
}

static const char *place_words(struct sched *s, const struct job *job)
{
    const struct job *next = queue_first(s);
    if (s->draining) {
        return "waits for the scheduler's next start: it is shutting down";
    }
    if (s->refusal[0] != '\0') {
        return emit_text(s, "waits for disk space: %s", s->refusal);
    }
    if (!generations_left(s)) {
        return "waits for ever: the cluster's generations have run out; start it on a new database";
    }
    if (recover_wants_nodes(s) && s->n_idle > 0) {
        return "waits behind a job that lost ranks and takes the next idle nodes (msctl jobs)";
    }
    const char *paused = s->n_paused > 0
                             ? emit_text(s, ", %u host%s paused after a loss (msctl nodes)",
                                         s->n_paused, s->n_paused == 1 ? "" : "s")
                             : "";
    const char *stuck = s->n_stuck > 0 ? emit_text(s, ", %u stuck (msctl nodes)", s->n_stuck) : "";
    const uint32_t n_kept = home_mark(s);
    const char *kept =
        n_kept > 0 ? emit_text(s, ", %u kept for a job that lost its ranks (msctl jobs)", n_kept)
                   : "";
    if (job->workers > s->queue.n_nodes) {
        return emit_text(s, "needs %u node%s, the cluster has %u%s%s: waits until there are more",
                         job->workers, job->workers == 1 ? "" : "s", s->n_usable, paused, stuck);
    }
    const char *nodes =
        emit_text(s, "waits for %u idle node%s: %u registered, %u idle%s%s%s", next->workers,
                  next->workers == 1 ? "" : "s", s->n_registered, s->n_idle, kept, paused, stuck);
    if (!job_is_for_all(next) && next->workers + n_kept <= s->n_idle) {
        nodes =
            emit_text(s, "waits for %u idle node%s that %s: %s of release 0.1", next->workers,
                      next->workers == 1 ? "" : "s",
                      next->recovery ? "can go on after a loss" : "know its plan", old_words(s));
    }
    return job == next ? nodes
                       : emit_text(s, "waits behind job %llu, which %s",
                                   (unsigned long long)next->id, nodes);
}

const char *queue_reason(struct sched *s, const struct job *job)
{
    const char *words = place_words(s, job);
    return job->reason[0] == '\0' ? words
           : job->n_tries == 0    ? emit_text(s, "%s; it was placed before: %s", words, job->reason)
                                  : emit_text(s, "%s; it was placed %u time%s before: %s", words,
                                              job->n_tries, job->n_tries == 1 ? "" : "s", job->reason);
}
