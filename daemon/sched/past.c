/* past.c - jobs that ended: how many are kept, whose go first */
#include "daemon/sched/past.h"

#include "daemon/sched/check.h"
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

struct past {
    struct table_link link;
    struct share jobs, ranks;
    struct list bare, ended; /* by job.lane */
    char owner[MS_PRINCIPAL_MAX + 1];
};

static struct job *first(const struct list *list)
{
    return list_empty(list) ? NULL : list_item(list->next, struct job, lane);
}

static const struct job *oldest(const struct past *past)
{
    const struct job *bare = first(&past->bare);
    return bare != NULL ? bare : first(&past->ended);
}

static struct past *find(struct sched *s, const char *owner)
{
    uint64_t hash = table_hash_text(s->seed, owner);
    struct table_link *link = table_first(&s->pasts, hash);
    while (link != NULL && strcmp(list_item(link, struct past, link)->owner, owner) != 0) {
        link = table_next(link);
    }
    if (link != NULL) {
        return list_item(link, struct past, link);
    }
    struct past *past = memory_take(sizeof(*past));
    ms_text_copy(past->owner, sizeof(past->owner), owner);
    list_init(&past->bare);
    list_init(&past->ended);
    table_add(&s->pasts, &past->link, hash);
    return past;
}

/* Its jobs and ranks are so many now. It is freed with the last job. */
static void set(struct sched *s, struct past *past, uint64_t jobs, uint64_t ranks)
{
    struct job *front = NULL;
    while ((front = first(&past->ended)) != NULL && front->run == NULL) {
        list_remove(&front->lane);
        list_add_tail(&past->bare, &front->lane);
    }
    s->n_ended += (uint32_t)(jobs - past->jobs.n);
    s->n_members_kept += (uint32_t)(ranks - past->ranks.n);
    share_set(&s->past_jobs, &past->jobs, jobs, jobs > 0 ? oldest(past)->ended_no : 0);
    share_set(&s->past_ranks, &past->ranks, ranks, ranks > 0 ? front->ended_no : 0);
    if (jobs == 0) {
        table_remove(&s->pasts, &past->link);
        free(past);
    }
}

static void forget_ranks(struct sched *s, struct past *past)
{
    struct job *job = first(&past->ended);
    run_free(job->run);
    job->run = NULL;
    emit_drop_members(s, job);
    set(s, past, past->jobs.n, past->ranks.n - job->workers);
}

static void forget_job(struct sched *s, struct past *past)
{
    struct job *job = list_empty(&past->bare) ? first(&past->ended) : first(&past->bare);
    uint64_t ranks = job->run != NULL ? job->workers : 0;
    watch_last(s, job);
    if (ranks > 0) {
        emit_drop_members(s, job);
    }
    emit_drop_job(s, job->id);
    plan_detach(s, job);
    job_drop(s, job);
    set(s, past, past->jobs.n - 1, past->ranks.n - ranks);
}

void job_keep(struct sched *s, struct job *job)
{
    struct past *past = find(s, job->owner);
    job->ended_no = ++s->last_ended;
    job_slot_ended(s, job);
    list_add_tail(&past->ended, &job->lane);
    set(s, past, past->jobs.n + 1, past->ranks.n + (job->run != NULL ? job->workers : 0));
    if (!s->loading) {
        past_trim(s);
    }
}

void past_trim(struct sched *s)
{
    while (s->n_members_kept > s->cfg.members_kept_max && !sched_tick_is_full(s)) {
        forget_ranks(s, list_item(share_most(&s->past_ranks), struct past, ranks));
    }
    while (s->n_ended > s->cfg.jobs_kept_max && !sched_tick_is_full(s)) {
        forget_job(s, list_item(share_most(&s->past_jobs), struct past, jobs));
    }
    if (s->n_members_kept > s->cfg.members_kept_max || s->n_ended > s->cfg.jobs_kept_max) {
        s->due |= DUE_HISTORY;
    }
}

/* ---- life ---------------------------------------------------------------------------------------
 */

void pasts_init(struct sched *s)
{
    shares_init(&s->past_jobs);
    shares_init(&s->past_ranks);
}

void pasts_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->pasts.slots != NULL ? table_walk(&s->pasts, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->pasts, &slot, link);
        free(list_item(link, struct past, link));
        link = next;
    }
    table_fini(&s->pasts);
    heap_fini(&s->past_jobs);
    heap_fini(&s->past_ranks);
}

/* ---- what holds ---------------------------------------------------------------------------------
 */

/* Goes on behind *before; adds what is there to counts. */
static int check_list(const struct past *past, const struct list *list, uint64_t *before,
                      uint64_t counts[2], struct ms_err *err)
{
    for (const struct list *at = list->next; at != list; at = at->next) {
        const struct job *job = list_item(at, const struct job, lane);
        HOLDS(job_is_ended(job) && strcmp(job->owner, past->owner) == 0,
              "job %llu is in the history of %s", (ull)job->id, past->owner);
        HOLDS(job->ended_no > *before, "job %llu: history is out of order", (ull)job->id);
        HOLDS(list == &past->ended || job->run == NULL, "job %llu has ranks, and is listed without",
              (ull)job->id);
        *before = job->ended_no;
        counts[0]++;
        counts[1] += job->run != NULL ? job->workers : 0;
    }
    return 0;
}

static int check_past(const struct past *past, struct ms_err *err)
{
    uint64_t before = 0;
    uint64_t counts[2] = {0, 0};
    int rc = check_list(past, &past->bare, &before, counts, err);
    rc = rc == 0 ? check_list(past, &past->ended, &before, counts, err) : rc;
    if (rc < 0) {
        return rc;
    }
    const struct job *front = first(&past->ended);
    HOLDS(counts[0] > 0 && counts[0] == past->jobs.n && counts[1] == past->ranks.n,
          "%s has %llu ended jobs and %llu of their ranks, and the counts say %llu and %llu",
          past->owner, (ull)counts[0], (ull)counts[1], (ull)past->jobs.n, (ull)past->ranks.n);
    HOLDS(past->jobs.oldest == oldest(past)->ended_no && (front == NULL || front->run != NULL) &&
              past->ranks.oldest == (front != NULL ? front->ended_no : 0),
          "history of %s: what is oldest is not known", past->owner);
    return 0;
}

int pasts_check(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    uint64_t jobs = 0;
    uint64_t ranks = 0;
    struct table_link *link = table_walk(&s->pasts, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->pasts, &slot, link)) {
        const struct past *past = list_item(link, struct past, link);
        int rc = check_past(past, err);
        if (rc < 0) {
            return rc;
        }
        jobs += past->jobs.n;
        ranks += past->ranks.n;
    }
    HOLDS(jobs == s->n_ended && ranks == s->n_members_kept,
          "%llu ended jobs and %llu ranks are counted by owner, and %u and %u in all", (ull)jobs,
          (ull)ranks, s->n_ended, s->n_members_kept);
    int rc = heap_check(&s->past_jobs, "owners by jobs", err);
    return rc == 0 ? heap_check(&s->past_ranks, "owners by ranks", err) : rc;
}
