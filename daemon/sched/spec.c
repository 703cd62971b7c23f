/* spec.c - the descriptions of jobs: what is kept in memory, whose it is, and how much may be */
#include "daemon/sched/spec.h"

#include "daemon/sched/state.h"
#include "proto/digest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct purse {
    struct table_link link;
    uint64_t bytes;
    char owner[MS_PRINCIPAL_MAX + 1];
};

/* Nobody but a database can give it back later; a dynamic cluster's next start needs its bytes. */
static bool is_released(const struct sched *s)
{
    return s->cfg.has_database && s->cfg.mode != SCHED_DYNAMIC;
}

int spec_take(const struct sched *s, struct job *job, const struct sched_job_row *row)
{
    uint8_t digest[MS_SHA256_BYTES];
    job->spec_bytes = row->spec_bytes;
    if (row->spec_sha256[0] != '\0') {
        copy_text(job->spec_sha256, sizeof(job->spec_sha256), row->spec_sha256);
    } else {
        ms_sha256(row->spec_bytes > 0 ? row->spec : digest, row->spec_bytes, digest);
        ms_sha256_hex(digest, job->spec_sha256);
    }
    if (job_is_ended(job) && is_released(s)) {
        return 0;
    }
    job->spec = malloc(row->spec_bytes + 1);
    if (job->spec == NULL) {
        return MS_E_NOMEM;
    }
    if (row->spec_bytes > 0) {
        memcpy(job->spec, row->spec, row->spec_bytes);
    }
    return 0;
}

bool spec_is(const struct job *job, const uint8_t *bytes, size_t size)
{
    uint8_t digest[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];
    if (job->spec_bytes != size) {
        return false;
    }
    ms_sha256(bytes, size, digest);
    ms_sha256_hex(digest, hex);
    return strcmp(job->spec_sha256, hex) == 0;
}

static struct purse *find(const struct sched *s, const char *owner)
{
    struct table_link *link = table_first(&s->purses, table_hash_text(s->seed, owner));
    while (link != NULL && strcmp(list_item(link, struct purse, link)->owner, owner) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct purse, link) : NULL;
}

static uint64_t mib_or(uint32_t mib, uint32_t otherwise)
{
    return (uint64_t)(mib > 0 ? mib : otherwise) << 20;
}

const char *spec_over_budget(struct sched *s, const char *owner, size_t size)
{
    const struct purse *purse = find(s, owner);
    uint64_t used = purse != NULL ? purse->bytes : 0;
    uint64_t owner_max = mib_or(s->cfg.specs_owner_mib, MS_SPECS_OWNER_MIB);
    uint64_t all_max = mib_or(s->cfg.specs_mib, MS_SPECS_MIB);
    if (used + size > owner_max) {
        return emit_text(s,
                         "the jobs of %s that wait or run are described by %llu KiB, and %llu KiB "
                         "are the limit of one (specs_owner_mib of msschedd): wait until some have "
                         "ended, or cancel some",
                         owner, (unsigned long long)used / 1024,
                         (unsigned long long)owner_max / 1024);
    }
    if (s->specs_bytes + size > all_max) {
        return emit_text(
            s,
            "all jobs that wait or run are described by %llu KiB, and %llu KiB are the "
            "limit (specs_mib of msschedd): wait until some have ended",
            (unsigned long long)s->specs_bytes / 1024, (unsigned long long)all_max / 1024);
    }
    return NULL;
}

void spec_count(struct sched *s, const struct job *job)
{
    struct purse *purse = find(s, job->owner);
    if (purse == NULL) {
        purse = memory_take(sizeof(*purse));
        copy_text(purse->owner, sizeof(purse->owner), job->owner);
        table_add(&s->purses, &purse->link, table_hash_text(s->seed, purse->owner));
    }
    purse->bytes += job->spec_bytes;
    s->specs_bytes += job->spec_bytes;
}

void spec_settle(struct sched *s, struct job *job)
{
    struct purse *purse = find(s, job->owner);
    assert(purse != NULL && purse->bytes >= job->spec_bytes && s->specs_bytes >= job->spec_bytes);
    purse->bytes -= job->spec_bytes;
    s->specs_bytes -= job->spec_bytes;
    if (purse->bytes == 0) {
        table_remove(&s->purses, &purse->link);
        free(purse);
    }
    if (is_released(s)) {
        free(job->spec);
        job->spec = NULL;
    }
}

void specs_fini(struct sched *s)
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
