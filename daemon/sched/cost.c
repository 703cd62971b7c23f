/* cost.c - what a change of the database takes of the disk */
#include "daemon/sched/cost.h"

#include "proto/limits.h"

#include <string.h>

enum {
    DROP_PAGES = 4,    /* where the row was, and what keeps count of free pages */
    DROP_MEMBER = 384, /* pages above those that become free, and others that SQLite writes first */
    SHA256_TEXT = 64,
};

/* The largest event of one turn: sizes in limits.h follow from it. */
_Static_assert(sizeof(((struct sched_member_row *)0)->node_id) +
                       sizeof(((struct sched_member_row *)0)->host_name) +
                       sizeof(((struct sched_member_row *)0)->log_path) +
                       sizeof(((struct sched_member_row *)0)->principal) +
                       sizeof(((struct sched_member_row *)0)->state) <=
                   MS_STORE_MEMBER_TEXTS + 5,
               "MS_STORE_MEMBER_TEXTS are the texts of a member");
_Static_assert(MS_STORE_RESERVE >= MS_STORE_UNFOLDED + 2 * MS_STORE_BATCH + MS_STORE_ENDS,
               "the largest turn fits the reserve, and what ends need is left");
_Static_assert(MS_STORE_ENDS > MS_STORE_LAST && MS_STORE_LAST >= 2 * MS_STORE_PIECE,
               "a cancel is refused before the last pieces go");

static size_t job_texts(const struct sched_job_row *job)
{
    return strlen(job->name) + strlen(job->owner) + strlen(job->reason) + strlen(job->key) +
           strlen(job->run_dir) + strlen(job->weights_sha256) + strlen(job->plan_sha256) +
           strlen(job->cancel_text) + strlen(job->plan) + SHA256_TEXT + job->results_bytes +
           job->spec_bytes;
}

static size_t member_texts(const struct sched_member_row *member)
{
    return strlen(member->node_id) + strlen(member->host_name) + strlen(member->log_path) +
           strlen(member->principal) + strlen(member->state);
}

static size_t event_texts(const struct sched_event_row *event)
{
    return strlen(event->kind) + strlen(event->node) + strlen(event->principal) +
           strlen(event->text) + strlen(event->facts);
}

static size_t aside_texts(const struct sched_aside_row *aside)
{
    return strlen(aside->key) + strlen(aside->name) + strlen(aside->why);
}

size_t sched_effect_cost(const struct sched_effect *effect)
{
    switch (effect->kind) {
    case SCHED_DO_PUT_JOB: /* a row that changes is written anew, its spec with it */
        return MS_STORE_COST(job_texts(effect->job)) +
               (effect->job->spec == NULL ? MS_STORE_PAGE : 0);
    case SCHED_DO_PUT_MEMBER:
        return MS_STORE_MEMBER_COST(member_texts(effect->member));
    case SCHED_DO_PUT_PLAN: /* anywhere among the others */
        return MS_STORE_COST(SHA256_TEXT + effect->plan->bytes) + 2 * MS_STORE_PAGE;
    case SCHED_DO_PUT_EVENT:
        return MS_STORE_COST(event_texts(effect->event));
    case SCHED_DO_PUT_ASIDE: /* by its key, anywhere; one that grows moves */
        return MS_STORE_COST(aside_texts(effect->aside)) + 2 * MS_STORE_PAGE;
    case SCHED_DO_DROP_MEMBERS:
        return DROP_PAGES * MS_STORE_PAGE + effect->workers * (size_t)DROP_MEMBER;
    case SCHED_DO_DROP_JOB:
    case SCHED_DO_DROP_PLAN:
    case SCHED_DO_DROP_ASIDE:
        return DROP_PAGES * MS_STORE_PAGE;
    case SCHED_DO_DROP_EVENT:
        return MS_STORE_PAGE;
    case SCHED_DO_PUT_META: /* these share a page or two, which are there once a transaction */
    case SCHED_DO_SEND:
    case SCHED_DO_CLOSE:
    case SCHED_DO_LOG:
    case SCHED_DO_READ:
    case SCHED_DO_EXIT:
        break;
    }
    return 0;
}
