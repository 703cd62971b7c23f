/* store_fixture.h - one database in a folder of its own, and a stand-in for the core
 *
 * The store calls the core only to give rows back; this file stands in for the core and keeps
 * them. */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include "daemon/store/store.h"

#include "tests/test.h"
#include "tests/unit/store_disk.h"

#include <sqlite3.h>
#include <sys/stat.h>

/* ---- in place of the core -----------------------------------------------------------------------
 */

struct sched {
    size_t jobs_n, members_n, metas_n;
    struct sched_job_row jobs[8];
    char spec[64];
    size_t plans_n, asides_n;
    struct sched_aside_row aside;   /* the last one */
    char plan[64], plan_sha256[65]; /* the last one */
    char plan_text[64];             /* of the last job that waits */
    char results[64];
    struct sched_member_row members[8];
    uint64_t generation, next_event, event_job;
    char event_principal[MS_PRINCIPAL_MAX + 1]; /* of the last one */
    uint64_t sum;                               /* of ids */
    uint64_t digest;                            /* of all that was given back, in its order */
};

static inline void digest_bytes(struct sched *sched, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        sched->digest = (sched->digest ^ ((const uint8_t *)bytes)[i]) * 1099511628211U;
    }
}

#define digest_value(sched, value) digest_bytes((sched), &(value), sizeof(value))
#define digest_text(sched, text)   digest_bytes((sched), (text), strlen(text) + 1)

static inline void digest_job(struct sched *sched, const struct sched_job_row *row)
{
    digest_value(sched, row->id);
    digest_value(sched, row->state);
    digest_text(sched, row->name);
    digest_text(sched, row->owner);
    digest_text(sched, row->reason);
    digest_text(sched, row->key);
    digest_text(sched, row->run_dir);
    digest_value(sched, row->workers);
    digest_value(sched, row->priority);
    digest_value(sched, row->code);
    digest_value(sched, row->generation);
    digest_value(sched, row->submitted_ms);
    digest_value(sched, row->started_ms);
    digest_value(sched, row->ended_ms);
    digest_value(sched, row->steps);
    digest_value(sched, row->seconds);
    digest_text(sched, row->weights_sha256);
    digest_text(sched, row->plan_sha256);
    digest_value(sched, row->recovery);
    digest_value(sched, row->cancel_at_step);
    digest_value(sched, row->n_tries);
    digest_text(sched, row->plan);
    digest_value(sched, row->plan_given);
    digest_text(sched, row->plan_text != NULL ? row->plan_text : "");
    digest_text(sched, row->cancel_text);
    digest_bytes(sched, row->results, row->results_bytes);
    digest_bytes(sched, row->spec, row->spec_bytes);
}

static inline void digest_member(struct sched *sched, const struct sched_member_row *row)
{
    digest_value(sched, row->job);
    digest_value(sched, row->rank);
    digest_text(sched, row->node_id);
    digest_value(sched, row->incarnation);
    digest_text(sched, row->host_name);
    digest_text(sched, row->log_path);
    digest_text(sched, row->principal);
    digest_value(sched, row->generation);
    digest_text(sched, row->state);
    digest_value(sched, row->step);
    digest_value(sched, row->pid);
}

int sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err)
{
    if (row->workers == 77) {
        return ms_fail(err, MS_E_CONFIG, "job %llu is not to my taste",
                       (unsigned long long)row->id);
    }
    sched->sum += row->id;
    digest_job(sched, row);
    if (sched->jobs_n < 8) {
        sched->jobs[sched->jobs_n] = *row;
        snprintf(sched->spec, sizeof(sched->spec), "%.*s", (int)row->spec_bytes,
                 (const char *)row->spec);
        snprintf(sched->plan_text, sizeof(sched->plan_text), "%s",
                 row->plan_text != NULL ? row->plan_text : "none");
        snprintf(sched->results, sizeof(sched->results), "%.*s", (int)row->results_bytes,
                 (const char *)row->results);
    }
    sched->jobs_n++;
    return 0;
}

int sched_load_aside(struct sched *sched, const struct sched_aside_row *row, struct ms_err *err)
{
    (void)err;
    sched->asides_n++;
    sched->aside = *row;
    digest_text(sched, row->key);
    digest_text(sched, row->name);
    digest_value(sched, row->until_ms);
    digest_text(sched, row->why);
    return 0;
}

int sched_load_plan(struct sched *sched, const struct sched_plan_row *row, struct ms_err *err)
{
    (void)err;
    sched->plans_n++;
    digest_text(sched, row->sha256);
    digest_bytes(sched, row->text, row->bytes);
    snprintf(sched->plan, sizeof(sched->plan), "%.*s", (int)row->bytes, row->text);
    memcpy(sched->plan_sha256, row->sha256, sizeof(sched->plan_sha256));
    return 0;
}

int sched_load_member(struct sched *sched, const struct sched_member_row *row, struct ms_err *err)
{
    (void)err;
    if (sched->members_n < 8) {
        sched->members[sched->members_n] = *row;
    }
    sched->members_n++;
    digest_member(sched, row);
    return 0;
}

int sched_load_meta(struct sched *sched, const char *key, uint64_t value, struct ms_err *err)
{
    (void)err;
    sched->metas_n++;
    digest_text(sched, key);
    digest_value(sched, value);
    if (strcmp(key, "generation") == 0) {
        sched->generation = value;
    } else if (strcmp(key, "next_event") == 0) {
        sched->next_event = value;
    }
    return 0;
}

int sched_load_event(struct sched *sched, const struct sched_event_row *row, struct ms_err *err)
{
    (void)err;
    sched->next_event = row->seq + 1;
    sched->event_job = row->job;
    snprintf(sched->event_principal, sizeof(sched->event_principal), "%s", row->principal);
    digest_value(sched, row->seq);
    digest_value(sched, row->at_ms);
    digest_text(sched, row->kind);
    digest_value(sched, row->job);
    digest_text(sched, row->principal);
    return 0;
}

int sched_effect_is_durable(enum sched_effect_kind kind)
{
    return kind >= SCHED_DO_PUT_JOB && kind <= SCHED_DO_PUT_META;
}

/* ---- helpers ------------------------------------------------------------------------------------
 */

static char path[128];
static struct store *store;
static struct sched loaded;
static const char *dir;

static inline void setup(void)
{
    disk_left = calls_left = INT64_MAX;
    full_errno = ENOSPC;
    swapped[0] = '\0';
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    ck_ms_ok(store_open(path, &store, err));
}

static inline void teardown(void)
{
    disk_left = calls_left = INT64_MAX;
    keeps_undos = 0;
    forget_undos(-1);
    store_close(store);
    store = NULL;
    test_dir_remove(dir);
}

static inline struct sched_job_row make_job(uint64_t id)
{
    static const char spec[] = "{\"workers\":2}";
    struct sched_job_row job = {.id = id,
                                .state = JOB_QUEUED,
                                .workers = 2,
                                .priority = -3,
                                .submitted_ms = 1700000000000,
                                .spec = (const uint8_t *)spec,
                                .spec_bytes = strlen(spec)};
    snprintf(job.name, sizeof(job.name), "job-%llu", (unsigned long long)id);
    snprintf(job.owner, sizeof(job.owner), "uid 1000");
    snprintf(job.reason, sizeof(job.reason), "waits for 2 idle nodes; \"quoted\" ä");
    snprintf(job.key, sizeof(job.key), "key'%llu", (unsigned long long)id);
    return job;
}

static inline int put(const struct sched_job_row *job)
{
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_LOG, .text = "not durable"},
        {.kind = SCHED_DO_PUT_JOB, .job = job},
        {.kind = SCHED_DO_PUT_META, .meta_key = "next_job", .meta_value = job->id + 1},
        {.kind = SCHED_DO_PUT_META, .meta_key = "ticks", .meta_value = job->id},
    };
    return store_commit(store, effects, 4, NULL);
}

static inline void load(void)
{
    loaded = (struct sched){.jobs_n = 0};
    ck_ms_ok(store_load(store, &loaded, err));
}

static inline void reopen(void)
{
    store_close(store);
    store = NULL;
    ck_ms_ok(store_open(path, &store, err));
    load();
}

static inline void sql(const char *text)
{
    sqlite3 *db = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    char *why = NULL;
    ck_assert_msg(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s: %s", text, why);
    sqlite3_close(db);
}

struct bytes {
    uint8_t *data;
    size_t size;
};

static inline struct bytes slurp(const char *suffix)
{
    char name[160];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    struct bytes bytes = {NULL, 0};
    FILE *file = fopen(name, "rb");
    if (file != NULL) {
        bytes.data = malloc(16 << 20);
        bytes.size = fread(bytes.data, 1, 16 << 20, file);
        fclose(file);
    }
    return bytes;
}

#endif
