/* plan.c - the plans of jobs: each text once, however many jobs have it */
#include "daemon/sched/plan.h"

#include "daemon/sched/check.h"
#include "daemon/sched/state.h"
#include "proto/digest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- the text -----------------------------------------------------------------------------------
 */

/* Bytes of the part that decides bits; 0: the text has no line that ends it. */
static size_t bits_size(const char *text)
{
    static const char end[] = "\nsection memory\n";
    const char *line = strstr(text, end);
    return line != NULL ? (size_t)(line + 1 - text) : 0;
}

static void digest_of(const char *text, size_t size, char ret_hex[MS_SHA256_HEX])
{
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256((const uint8_t *)text, size, digest);
    ms_sha256_hex(digest, ret_hex);
}

const char *plan_refusal(struct sched *s, const char *text)
{
    if (text[0] == '\0') {
        return "the plan is empty: `msctl show --plan JOB` prints one";
    }
    if (bits_size(text) == 0) {
        return emit_text(s,
                         "this is no plan: a text of %zu bytes that begins with '%.40s' and has no "
                         "line \"section memory\"; `msctl show --plan JOB` prints one",
                         strlen(text), text);
    }
    return NULL;
}

/* ---- all of them --------------------------------------------------------------------------------
 */

static struct plan *find(const struct sched *s, const char *sha256)
{
    struct table_link *link = table_first(&s->plans, table_hash_text(s->seed, sha256));
    while (link != NULL && strcmp(list_item(link, struct plan, link)->sha256, sha256) != 0) {
        link = table_next(link);
    }
    return link != NULL ? list_item(link, struct plan, link) : NULL;
}

static struct plan *add(struct sched *s, const char *sha256, const char *text, size_t bytes)
{
    struct plan *plan = memory_take(sizeof(*plan));
    ms_text_copy(plan->sha256, sizeof(plan->sha256), sha256);
    digest_of(text, bits_size(text), plan->bits_sha256);
    plan->bytes = bytes;
    table_add(&s->plans, &plan->link, table_hash_text(s->seed, plan->sha256));
    return plan;
}

static void drop(struct sched *s, struct plan *plan)
{
    emit_drop_plan(s, plan->sha256);
    table_remove(&s->plans, &plan->link);
    free(plan->text);
    free(plan);
}

/* ---- of a job -----------------------------------------------------------------------------------
 */

static void hold_text(struct sched *s, struct job *job, const char *text)
{
    struct plan *plan = job->plan;
    if (plan->text == NULL) {
        plan->text = dup_text(text);
    }
    plan->n_holds++;
    job->plan_held = true;
    purse_add_plan(s, job, plan->bytes);
}

/* It waits or gets ready by it, or may have to tell it to who takes a lost rank. */
static bool needs_text(const struct job *job)
{
    return job->state == JOB_QUEUED || job->state == JOB_PLACING ||
           (job->recovery && job_has_begun(job));
}

void plan_attach(struct sched *s, struct job *job, const char *text, bool given)
{
    char sha256[MS_SHA256_HEX];
    const size_t bytes = strlen(text);
    digest_of(text, bytes, sha256);
    struct plan *plan = find(s, sha256);
    assert(job->plan == NULL);
    if (plan == NULL) {
        plan = add(s, sha256, text, bytes);
        emit_put_plan(s, sha256, text, bytes);
    }
    plan->n_jobs++;
    job->plan = plan;
    job->plan_given = given;
    hold_text(s, job, text);
}

void plan_settle(struct sched *s, struct job *job)
{
    struct plan *plan = job->plan;
    if (!job->plan_held) {
        return;
    }
    purse_remove_plan(s, job, plan->bytes);
    job->plan_held = false;
    if (--plan->n_holds == 0 && s->cfg.has_database) { /* else nobody could give it back */
        free(plan->text);
        plan->text = NULL;
    }
}

void plan_detach(struct sched *s, struct job *job)
{
    struct plan *plan = job->plan;
    if (plan == NULL) {
        return;
    }
    plan_settle(s, job);
    job->plan = NULL;
    job->plan_given = false;
    if (--plan->n_jobs == 0) {
        drop(s, plan);
    }
}

bool plan_is(const struct job *job, const char *text)
{
    char sha256[MS_SHA256_HEX];
    digest_of(text, strlen(text), sha256);
    return job->plan != NULL && strcmp(job->plan->sha256, sha256) == 0;
}

/* ---- loading ------------------------------------------------------------------------------------
 */

int sched_load_plan(struct sched *s, const struct sched_plan_row *row, struct ms_err *err)
{
    if (bits_size(row->text) == 0 || strlen(row->text) != row->bytes) {
        return ms_fail(err, MS_E_CONFIG, "plan %.16s... of the database is no plan", row->sha256);
    }
    if (find(s, row->sha256) != NULL) {
        return ms_fail(err, MS_E_CONFIG, "the database holds plan %.16s... twice", row->sha256);
    }
    add(s, row->sha256, row->text, row->bytes);
    return 0;
}

int plan_load(struct sched *s, struct job *job, const struct sched_job_row *row, struct ms_err *err)
{
    if (row->plan[0] == '\0') {
        return 0;
    }
    struct plan *plan = find(s, row->plan);
    const bool is_held = needs_text(job);
    if (plan == NULL || (is_held && row->plan_text == NULL)) {
        return ms_fail(err, MS_E_CONFIG,
                       "job %llu of the database has plan %.16s..., which it does not hold",
                       (ull)job->id, row->plan);
    }
    plan->n_jobs++;
    job->plan = plan;
    job->plan_given = row->plan_given;
    if (is_held) {
        hold_text(s, job, row->plan_text);
    }
    return 0;
}

int plans_loaded(const struct sched *s, struct ms_err *err)
{
    size_t slot = 0;
    struct table_link *link = table_walk(&s->plans, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->plans, &slot, link)) {
        const struct plan *plan = list_item(link, struct plan, link);
        if (plan->n_jobs == 0) {
            return ms_fail(err, MS_E_CONFIG,
                           "database %s is damaged: it holds plan %.16s..., which is no job's; put "
                           "the newest copy back (with its -wal)",
                           s->database, plan->sha256);
        }
    }
    return 0;
}

void plans_fini(struct sched *s)
{
    size_t slot = 0;
    struct table_link *link = s->plans.slots != NULL ? table_walk(&s->plans, &slot, NULL) : NULL;
    while (link != NULL) {
        struct table_link *next = table_walk(&s->plans, &slot, link);
        struct plan *plan = list_item(link, struct plan, link);
        free(plan->text);
        free(plan);
        link = next;
    }
    table_fini(&s->plans);
}

/* ---- what holds ---------------------------------------------------------------------------------
 */

static int check_of_job(const struct sched *s, const struct job *job, struct ms_err *err)
{
    const struct plan *plan = job->plan;
    HOLDS(job->plan_held == (plan != NULL && needs_text(job)), "job %llu: its plan is %sheld",
          (ull)job->id, job->plan_held ? "" : "not ");
    HOLDS(plan != NULL || !job->plan_given, "job %llu: a plan was given, and it has none",
          (ull)job->id);
    HOLDS(plan == NULL || find(s, plan->sha256) == plan, "job %llu: its plan is not listed",
          (ull)job->id);
    HOLDS(job->state != JOB_QUEUED || plan == NULL || job->plan_given ||
              (s->due & DUE_REQUEUES) != 0 || s->loading,
          "job %llu waits with a plan of ranks that are gone", (ull)job->id);
    return 0;
}

int plans_check(const struct sched *s, struct ms_err *err)
{
    uint64_t jobs = 0;
    uint64_t holds = 0;
    uint64_t counts[2] = {0, 0};
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job *job = s->jobs[i].job;
        if (job == NULL) {
            continue;
        }
        int rc = check_of_job(s, job, err);
        if (rc < 0) {
            return rc;
        }
        jobs += job->plan != NULL;
        holds += job->plan_held;
    }
    size_t slot = 0;
    struct table_link *link = table_walk(&s->plans, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->plans, &slot, link)) {
        const struct plan *plan = list_item(link, struct plan, link);
        HOLDS(plan->n_jobs > 0, "plan %.16s is no job's", plan->sha256);
        HOLDS(plan->n_holds == 0 || plan->text != NULL, "plan %.16s: its text is not in memory",
              plan->sha256);
        HOLDS(plan->n_holds > 0 || plan->text == NULL || !s->cfg.has_database,
              "plan %.16s: its text is in memory for nobody", plan->sha256);
        counts[0] += plan->n_jobs;
        counts[1] += plan->n_holds;
    }
    HOLDS(counts[0] == jobs && counts[1] == holds,
          "%llu jobs have plans and %llu need their texts, and plans count %llu and %llu",
          (ull)jobs, (ull)holds, (ull)counts[0], (ull)counts[1]);
    return 0;
}
