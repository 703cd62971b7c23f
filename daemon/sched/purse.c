/* purse.c - what the jobs of each principal take while they wait or run, and how much they may */
#include "daemon/sched/purse.h"

#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

struct purse {
    struct table_link link;
    uint32_t n_jobs;
    uint64_t bytes;
    char owner[MS_PRINCIPAL_MAX + 1];
};

static struct purse *find(const struct sched *s, const char *owner)
{
    struct table_link *link = table_first(&s->purses, table_hash_text(s->seed, owner));
    while (link != NULL && strcmp(list_item(link, struct purse, link)->owner, owner) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct purse, link) : NULL;
}

/* What he can do about it himself. */
static const char *own_words(struct sched *s, const char *owner, uint32_t n)
{
    return n == 0
               ? emit_text(s, "none is of %s: wait until some have ended", owner)
               : emit_text(s,
                           "%u that wait or run are of %s: wait until some have ended, or cancel "
                           "some of those",
                           n, owner);
}

static uint32_t limit_or(uint32_t limit, uint32_t otherwise)
{
    return limit > 0 ? limit : otherwise;
}

static uint64_t mib_or(uint32_t mib, uint32_t otherwise)
{
    return (uint64_t)(mib > 0 ? mib : otherwise) << 20;
}

static const char *share_refusal(struct sched *s, const char *owner, const struct purse *purse,
                                 size_t size)
{
    const uint32_t jobs = limit_or(s->cfg.jobs_owner_max, MS_JOBS_OWNER_MAX);
    if (purse->n_jobs >= jobs) {
        return emit_text(s,
                         "%u jobs of %s wait or run, and %u are the limit of one: wait until some "
                         "have ended, or cancel some",
                         purse->n_jobs, owner, jobs);
    }
    const uint64_t bytes = mib_or(s->cfg.specs_owner_mib, MS_SPECS_OWNER_MIB);
    if (purse->bytes + size > bytes) {
        return emit_text(s,
                         "the jobs of %s that wait or run are described by %llu KiB, and %llu KiB "
                         "are the limit of one (specs_owner_mib of msschedd): wait until some have "
                         "ended, or cancel some",
                         owner, (ull)purse->bytes / 1024, (ull)bytes / 1024);
    }
    return NULL;
}

const char *purse_refusal(struct sched *s, const struct ms_principal *who, size_t size)
{
    static const struct purse empty;
    const struct purse *purse = find(s, who->id);
    purse = purse != NULL ? purse : &empty;
    const bool all = may(who, MAY_LAST_PLACES, "");
    const uint32_t kept = all ? 0 : limit_or(s->cfg.jobs_admin, MS_JOBS_ADMIN);
    const uint32_t jobs = limit_or(s->cfg.jobs_queued_max, MS_JOBS_QUEUED_MAX) - kept;
    const uint64_t bytes =
        mib_or(s->cfg.specs_mib, MS_SPECS_MIB) + (all ? (uint64_t)MS_SPECS_ADMIN_MIB << 20 : 0);
    const char *text = share_refusal(s, who->id, purse, size);
    if (text != NULL) {
        return text;
    }
    if (queue_n(s) >= jobs) {
        return emit_text(s, "%u jobs are queued, which is the limit%s; %s", queue_n(s),
                         all ? "" : " (what is left is kept for admins)",
                         own_words(s, who->id, purse->n_jobs));
    }
    if (s->specs_bytes + size > bytes) {
        return emit_text(
            s,
            "all jobs that wait or run are described by %llu KiB, and %llu KiB are the "
            "limit (specs_mib of msschedd); %s",
            (ull)s->specs_bytes / 1024, (ull)bytes / 1024, own_words(s, who->id, purse->n_jobs));
    }
    return NULL;
}

void purse_add(struct sched *s, const struct job *job)
{
    struct purse *purse = find(s, job->owner);
    if (purse == NULL) {
        purse = memory_take(sizeof(*purse));
        ms_text_copy(purse->owner, sizeof(purse->owner), job->owner);
        table_add(&s->purses, &purse->link, table_hash_text(s->seed, purse->owner));
    }
    purse->n_jobs++;
    purse->bytes += job->spec_bytes;
    s->specs_bytes += job->spec_bytes;
}

void purse_remove(struct sched *s, const struct job *job)
{
    struct purse *purse = find(s, job->owner);
    assert(purse != NULL && purse->n_jobs > 0 && purse->bytes >= job->spec_bytes);
    purse->bytes -= job->spec_bytes;
    s->specs_bytes -= job->spec_bytes;
    if (--purse->n_jobs == 0) {
        table_remove(&s->purses, &purse->link);
        free(purse);
    }
}

void purse_add_plan(struct sched *s, const struct job *job, size_t bytes)
{
    find(s, job->owner)->bytes += bytes;
    s->specs_bytes += bytes;
}

void purse_remove_plan(struct sched *s, const struct job *job, size_t bytes)
{
    struct purse *purse = find(s, job->owner);
    assert(purse != NULL && purse->bytes >= bytes);
    purse->bytes -= bytes;
    s->specs_bytes -= bytes;
}

void purses_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->purses.slots != NULL ? table_walk(&s->purses, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->purses, &slot, link);
        free(list_item(link, struct purse, link));
        link = next;
    }
    table_fini(&s->purses);
}

int purses_check(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    uint32_t n = 0;
    uint64_t bytes = 0;
    struct table_link *link = table_walk(&s->purses, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->purses, &slot, link)) {
        const struct purse *purse = list_item(link, struct purse, link);
        n += purse->n_jobs;
        bytes += purse->bytes;
    }
    return n == queue_n(s) + s->n_placed && bytes == s->specs_bytes
               ? 0
               : ms_fail(err, MS_E_FAILED,
                         "%u jobs and %llu bytes are counted by owner, %u and %llu wait or run", n,
                         (ull)bytes, queue_n(s) + s->n_placed, (ull)s->specs_bytes);
}
