/* sim_disk.c - the database as far as the core can tell: rows that a commit made durable */
#include "proto/text.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

void disk_put_job(struct world *w, struct sim_disk *disk, const struct sched_job_row *row)
{
    size_t i = 0;
    while (i < disk->n_jobs && disk->jobs[i].id != row->id) {
        i++;
    }
    if (i == MS_ARRAY_SIZE(disk->jobs)) {
        sim_fail(w, "more jobs are stored than were submitted");
        return;
    }
    struct sched_job_row *to = &disk->jobs[i];
    const uint8_t *spec = i < disk->n_jobs ? to->spec : NULL;
    size_t spec_bytes = i < disk->n_jobs ? to->spec_bytes : 0;
    const uint8_t *results = i < disk->n_jobs ? to->results : NULL;
    *to = *row;
    to->plan_text = NULL;
    free((void *)results);
    to->results = NULL;
    if (row->results_bytes > 0) {
        uint8_t *copy = malloc(row->results_bytes);
        memcpy(copy, row->results, row->results_bytes);
        to->results = copy;
    }
    if (row->spec == NULL) {
        to->spec = spec;
        to->spec_bytes = spec_bytes;
    } else {
        uint8_t *copy = malloc(row->spec_bytes + 1);
        memcpy(copy, row->spec, row->spec_bytes);
        free((void *)spec);
        to->spec = copy;
    }
    if (to->spec == NULL) {
        sim_fail(w, "job %llu was stored without its spec", (unsigned long long)row->id);
    }
    disk->n_jobs += i == disk->n_jobs;
}

void disk_put_plan(struct world *w, struct sim_disk *disk, const char *sha256, const char *text)
{
    if (disk_plan(disk, sha256) != NULL) {
        return;
    }
    if (disk->n_plans == MS_ARRAY_SIZE(disk->plans)) {
        sim_fail(w, "more plans are stored than there are jobs");
        return;
    }
    struct sim_plan *plan = &disk->plans[disk->n_plans++];
    ms_text_copy(plan->sha256, sizeof(plan->sha256), sha256);
    ms_text_copy(plan->text, sizeof(plan->text), text);
}

void disk_drop_plan(struct sim_disk *disk, const char *sha256)
{
    size_t n = 0;
    for (size_t i = 0; i < disk->n_plans; i++) {
        if (strcmp(disk->plans[i].sha256, sha256) != 0) {
            disk->plans[n++] = disk->plans[i];
        }
    }
    disk->n_plans = n;
}

static size_t find_aside(const struct sim_disk *disk, const char *key)
{
    size_t i = 0;
    while (i < disk->n_asides && strcmp(disk->asides[i].key, key) != 0) {
        i++;
    }
    return i;
}

void disk_put_aside(struct world *w, struct sim_disk *disk, const struct sched_aside_row *row)
{
    const size_t i = find_aside(disk, row->key);
    if (i == SIM_DISK_ASIDES_MAX) {
        sim_fail(w, "more hosts are set aside than there are");
        return;
    }
    disk->asides[i] = *row;
    disk->n_asides += i == disk->n_asides;
}

void disk_drop_aside(struct sim_disk *disk, const char *key)
{
    const size_t i = find_aside(disk, key);
    if (i < disk->n_asides) {
        disk->asides[i] = disk->asides[--disk->n_asides];
    }
}

const char *disk_plan(const struct sim_disk *disk, const char *sha256)
{
    for (size_t i = 0; i < disk->n_plans; i++) {
        if (strcmp(disk->plans[i].sha256, sha256) == 0) {
            return disk->plans[i].text;
        }
    }
    return NULL;
}

void disk_put_member(struct sim_disk *disk, const struct sched_member_row *row)
{
    size_t i = 0;
    while (i < disk->n_members &&
           (disk->members[i].job != row->job || disk->members[i].rank != row->rank)) {
        i++;
    }
    if (i == disk->members_room) {
        disk->members_room = disk->members_room == 0 ? 64 : 2 * disk->members_room;
        disk->members = realloc(disk->members, disk->members_room * sizeof(*disk->members));
    }
    disk->members[i] = *row;
    disk->n_members += i == disk->n_members;
}

static void drop_members(struct sim_disk *disk, uint64_t job)
{
    size_t n = 0;
    for (size_t i = 0; i < disk->n_members; i++) {
        if (disk->members[i].job != job) {
            disk->members[n++] = disk->members[i];
        }
    }
    disk->n_members = n;
}

static void drop_job(struct sim_disk *disk, uint64_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < disk->n_jobs; i++) {
        if (disk->jobs[i].id != id) {
            disk->jobs[n++] = disk->jobs[i];
        } else {
            free((void *)disk->jobs[i].spec);
            free((void *)disk->jobs[i].results);
        }
    }
    disk->n_jobs = n;
}

void disk_put_meta(struct sim_disk *disk, const char *key, uint64_t value)
{
    if (strcmp(key, "generation") == 0) {
        disk->generation = value;
        disk->has_generation = true;
    } else if (strcmp(key, "ticks") == 0) {
        disk->ticks = value;
    } else if (strcmp(key, "next_event") == 0) {
        disk->last_event = value - 1;
    } else if (strcmp(key, "next_job") == 0) {
        disk->next_job = value;
        disk->has_next_job = true;
    }
}

void disk_put_event(struct sim_disk *disk, const struct sched_event_row *row)
{
    if (disk->n_events == disk->events_room) {
        disk->events_room = disk->events_room == 0 ? 64 : 2 * disk->events_room;
        disk->events = realloc(disk->events, disk->events_room * sizeof(*disk->events));
    }
    struct sim_told *told = &disk->events[disk->n_events++];
    told->seq = row->seq;
    told->at_ms = row->at_ms;
    told->job = row->job;
    ms_text_copy(told->kind, sizeof(told->kind), row->kind);
    ms_text_copy(told->principal, sizeof(told->principal), row->principal);
}

static struct sched_event_row event_row(const struct sim_told *told)
{
    return (struct sched_event_row){.seq = told->seq,
                                    .at_ms = told->at_ms,
                                    .kind = told->kind,
                                    .job = told->job,
                                    .principal = told->principal};
}

bool disk_has_event(const struct sim_disk *disk, uint64_t seq)
{
    for (size_t i = 0; i < disk->n_events; i++) {
        if (disk->events[i].seq == seq) {
            return true;
        }
    }
    return false;
}

/* Numbered without a gap, across restarts and crashes too. */
static void put_event(struct world *w, const struct sched_event_row *event)
{
    if (event->seq != w->disk.last_event + 1) {
        sim_fail(w, "event %s has number %llu, and the last one stored was %llu", event->kind,
                 (unsigned long long)event->seq, (unsigned long long)w->disk.last_event);
    }
    w->disk.last_event = event->seq;
    disk_put_event(&w->disk, event);
}

static void drop_event(struct sim_disk *disk, uint64_t seq)
{
    size_t n = 0;
    for (size_t i = 0; i < disk->n_events; i++) {
        if (disk->events[i].seq != seq) {
            disk->events[n++] = disk->events[i];
        }
    }
    disk->n_events = n;
}

/* Each commit of what was acknowledged is counted: a copy of the database is told by that number.
 * What happened is told to nobody who relies on it. */
void disk_write(struct world *w, const struct sched_effect *effects, size_t n)
{
    uint64_t ticks = w->disk.ticks;
    bool durable = false;
    for (size_t i = 0; i < n; i++) {
        durable = durable || sched_effect_acknowledges(effects[i].kind);
        switch (effects[i].kind) {
        case SCHED_DO_PUT_JOB:
            disk_put_job(w, &w->disk, effects[i].job);
            break;
        case SCHED_DO_PUT_MEMBER:
            disk_put_member(&w->disk, effects[i].member);
            break;
        case SCHED_DO_DROP_MEMBERS:
            drop_members(&w->disk, effects[i].job_id);
            break;
        case SCHED_DO_PUT_META:
            disk_put_meta(&w->disk, effects[i].meta_key, effects[i].meta_value);
            break;
        case SCHED_DO_PUT_EVENT:
            put_event(w, effects[i].event);
            break;
        case SCHED_DO_DROP_EVENT:
            drop_event(&w->disk, effects[i].event_seq);
            break;
        case SCHED_DO_PUT_PLAN:
            disk_put_plan(w, &w->disk, effects[i].plan->sha256, effects[i].plan->text);
            break;
        case SCHED_DO_DROP_PLAN:
            disk_drop_plan(&w->disk, effects[i].plan->sha256);
            break;
        case SCHED_DO_PUT_ASIDE:
            disk_put_aside(w, &w->disk, effects[i].aside);
            break;
        case SCHED_DO_DROP_ASIDE:
            disk_drop_aside(&w->disk, effects[i].aside->key);
            break;
        case SCHED_DO_DROP_JOB:
            drop_job(&w->disk, effects[i].job_id);
            break;
        case SCHED_DO_SEND:
        case SCHED_DO_CLOSE:
        case SCHED_DO_LOG:
        case SCHED_DO_READ:
        case SCHED_DO_EXIT:
        default:
            break;
        }
    }
    if (w->disk.ticks != ticks + durable) {
        sim_fail(w, "a commit after tick %llu is counted as %llu", (unsigned long long)ticks,
                 (unsigned long long)w->disk.ticks);
    }
}

static int load_plan(struct sched *sched, const struct sim_plan *plan, struct ms_err *err)
{
    struct sched_plan_row row = {.text = plan->text, .bytes = strlen(plan->text)};
    memcpy(row.sha256, plan->sha256, sizeof(row.sha256));
    return sched_load_plan(sched, &row, err);
}

static int load_job(const struct sim_disk *disk, struct sched *sched,
                    const struct sched_job_row *stored, struct ms_err *err)
{
    struct sched_job_row row = *stored;
    const bool waits = row.state == JOB_QUEUED || row.state == JOB_PLACING ||
                       (row.recovery && (row.state == JOB_RUNNING || row.state == JOB_RECOVERING));
    row.plan_text = waits ? disk_plan(disk, row.plan) : NULL;
    return sched_load_job(sched, &row, err);
}

/* In the order in which it is worst: members first, jobs backwards. */
int disk_load(struct world *w, struct sched *sched, struct ms_err *err)
{
    const struct sim_disk *disk = &w->disk;
    bool backwards = sim_chance(w, 50);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < disk->n_plans; i++) {
        rc = load_plan(sched, &disk->plans[i], err);
    }
    for (size_t i = 0; rc == 0 && i < disk->n_asides; i++) {
        rc = sched_load_aside(sched, &disk->asides[i], err);
    }
    for (size_t i = 0; rc == 0 && backwards && i < disk->n_members; i++) {
        rc = sched_load_member(sched, &disk->members[i], err);
    }
    for (size_t i = 0; rc == 0 && i < disk->n_jobs; i++) {
        rc = load_job(disk, sched, &disk->jobs[backwards ? disk->n_jobs - 1 - i : i], err);
    }
    for (size_t i = 0; rc == 0 && !backwards && i < disk->n_members; i++) {
        rc = sched_load_member(sched, &disk->members[i], err);
    }
    for (size_t i = 0; rc == 0 && i < disk->n_events; i++) {
        const struct sched_event_row row = event_row(&disk->events[i]);
        rc = sched_load_event(sched, &row, err);
    }
    if (rc == 0 && disk->has_generation) {
        rc = sched_load_meta(sched, "generation", disk->generation, err);
    }
    if (rc == 0) {
        rc = sched_load_meta(sched, "ticks", disk->ticks, err);
    }
    if (rc == 0) {
        rc = sched_load_meta(sched, "next_event", disk->last_event + 1, err);
    }
    if (rc == 0 && disk->has_next_job) {
        rc = sched_load_meta(sched, "next_job", disk->next_job, err);
    }
    return rc;
}

void disk_clear(struct sim_disk *disk)
{
    for (size_t i = 0; i < disk->n_jobs; i++) {
        free((void *)disk->jobs[i].spec);
        free((void *)disk->jobs[i].results);
    }
    disk->n_jobs = 0;
    disk->n_plans = 0;
    disk->n_asides = 0;
    disk->n_members = 0;
    disk->n_events = 0;
    disk->generation = 0;
    disk->next_job = 0;
    disk->ticks = 0;
    disk->last_event = 0;
    disk->has_generation = false;
    disk->has_next_job = false;
}

void disk_fini(struct sim_disk *disk)
{
    disk_clear(disk);
    free(disk->members);
    free(disk->events);
}

/* to is clear. */
void disk_copy(struct world *w, struct sim_disk *to, const struct sim_disk *from)
{
    for (size_t i = 0; i < from->n_jobs; i++) {
        disk_put_job(w, to, &from->jobs[i]);
    }
    for (size_t i = 0; i < from->n_plans; i++) {
        disk_put_plan(w, to, from->plans[i].sha256, from->plans[i].text);
    }
    for (size_t i = 0; i < from->n_asides; i++) {
        disk_put_aside(w, to, &from->asides[i]);
    }
    for (size_t i = 0; i < from->n_members; i++) {
        disk_put_member(to, &from->members[i]);
    }
    for (size_t i = 0; i < from->n_events; i++) {
        const struct sched_event_row row = event_row(&from->events[i]);
        disk_put_event(to, &row);
    }
    to->generation = from->generation;
    to->next_job = from->next_job;
    to->ticks = from->ticks;
    to->last_event = from->last_event;
    to->has_generation = from->has_generation;
    to->has_next_job = from->has_next_job;
    to->full = from->full;
}

const struct sched_job_row *disk_find_job(const struct sim_disk *disk, uint64_t id)
{
    for (size_t i = 0; i < disk->n_jobs; i++) {
        if (disk->jobs[i].id == id) {
            return &disk->jobs[i];
        }
    }
    return NULL;
}

const struct sched_member_row *disk_find_member(const struct sim_disk *disk, uint64_t job,
                                                uint32_t rank)
{
    for (size_t i = 0; i < disk->n_members; i++) {
        if (disk->members[i].job == job && disk->members[i].rank == rank) {
            return &disk->members[i];
        }
    }
    return NULL;
}

const struct sched_job_row *disk_job(const struct world *w, uint64_t id)
{
    return disk_find_job(&w->disk, id);
}

const struct sched_member_row *disk_member(const struct world *w, uint64_t job, uint32_t rank)
{
    return disk_find_member(&w->disk, job, rank);
}
