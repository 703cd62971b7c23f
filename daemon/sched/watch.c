/* watch.c - clients that follow a job: every change of state, reason or progress */
#include "daemon/sched/state.h"

#include <stdlib.h>

static void tell(struct sched *s, struct watch *watch)
{
    const struct job *job = watch->job;
    size_t before = s->tick_bytes;
    Ms__JobUpdate msg = MS__JOB_UPDATE__INIT;
    list_remove(&watch->stir);
    msg.job = info_job(s, job, INFO_WATCH);
    msg.ended = job_is_ended(job);
    watch->told = table_hash_text((uint64_t)job->state, msg.job->reason);
    emit_send(s, watch->conn->id, MS_MSG_JOB_UPDATE, watch->frame_id, &msg.base);
    s->news_bytes += s->tick_bytes - before;
    if (msg.ended) {
        watch_drop(watch);
    }
}

void watch_drop(struct watch *watch)
{
    list_remove(&watch->stir);
    list_remove(&watch->by_job);
    list_remove(&watch->by_conn);
    list_remove(&watch->all);
    watch->conn->n_watches--;
    free(watch);
}

/* Whoever has not read the last news gets the newest when he has: many changes are one update. */
static void stir(struct sched *s, struct watch *watch)
{
    if (list_empty(&watch->stir)) {
        list_add_tail(watch->conn->is_clogged ? &watch->conn->muted : &s->stirred, &watch->stir);
    }
}

void watch_stir(struct sched *s, struct job *job)
{
    for (struct list *at = job->watches.next; at != &job->watches; at = at->next) {
        stir(s, list_item(at, struct watch, by_job));
    }
}

void watch_settle(struct sched *s)
{
    s->due &= ~(unsigned)DUE_NEWS;
    while (!list_empty(&s->stirred)) {
        struct watch *watch = list_item(s->stirred.next, struct watch, stir);
        if (s->news_bytes >= MS_NEWS_BYTES || !emit_reserve(s, info_bytes(watch->job))) {
            s->due |= DUE_NEWS; /* in their order, in the next tick */
            return;
        }
        tell(s, watch);
    }
}

void watch_mute(struct sched *s, struct conn *conn, bool is_clogged)
{
    struct list *from = is_clogged ? &s->stirred : &conn->muted;
    conn->is_clogged = is_clogged;
    for (struct list *at = from->next; at != from;) {
        struct watch *watch = list_item(at, struct watch, stir);
        at = at->next;
        if (watch->conn == conn) {
            list_remove(&watch->stir);
            stir(s, watch);
        }
    }
}

void watch_last(struct sched *s, struct job *job)
{
    while (!list_empty(&job->watches)) {
        tell(s, list_item(job->watches.next, struct watch, by_job));
    }
}

/* Reasons of waiting jobs change with every node that comes or goes: they are gathered. */
void watch_news(struct sched *s)
{
    if (!timer_is_armed(&s->news_timer) && !list_empty(&s->watches)) {
        timer_arm(s, &s->news_timer, TIMER_NEWS, after_ms(s, MS_NEWS_MS));
    }
}

/* The words are made once for each job, however many watch it. */
static void stir_if_new(struct sched *s, struct watch *watch)
{
    struct job *job = watch->job;
    if (job->news_round != s->news_round) {
        job->news_round = s->news_round;
        job->news = table_hash_text((uint64_t)job->state, job_reason(s, job));
    }
    if (watch->told != job->news) {
        stir(s, watch);
    }
}

void watch_tell_news(struct sched *s, struct timer *timer)
{
    (void)timer;
    s->news_round++;
    for (struct list *at = s->watches.next; at != &s->watches; at = at->next) {
        stir_if_new(s, list_item(at, struct watch, all));
    }
}

void on_watch(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__Watch *msg = (const Ms__Watch *)event->msg;
    struct job *job = job_find(s, msg->job);
    if (job == NULL) {
        emit_error(s, conn->id, event->id, MS_E_NOT_FOUND,
                   "job %llu does not exist: msctl jobs --all lists them",
                   (unsigned long long)msg->job);
        return;
    }
    if (conn->n_watches >= MS_WATCHES_MAX) {
        emit_error(s, conn->id, event->id, MS_E_FULL,
                   "this connection watches %d jobs already, which is the limit: open another one",
                   MS_WATCHES_MAX);
        return;
    }
    struct watch *watch = emit_reserve(s, info_bytes(job)) ? calloc(1, sizeof(*watch)) : NULL;
    if (watch == NULL) {
        emit_error(s, conn->id, event->id, MS_E_NOMEM, "no memory to watch job %llu: try again",
                   (unsigned long long)job->id);
        return;
    }
    watch->conn = conn;
    watch->job = job;
    watch->frame_id = event->id;
    list_init(&watch->stir);
    list_add_tail(&job->watches, &watch->by_job);
    list_add_tail(&conn->watches, &watch->by_conn);
    list_add_tail(&s->watches, &watch->all);
    conn->n_watches++;
    tell(s, watch);
}
