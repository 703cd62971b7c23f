/* sim_disk.c - the database as far as the core can tell: rows that a commit made durable */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static void put_job(struct world *w, const struct sched_job_row *row)
{
    struct sim_disk *disk = &w->disk;
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
    *to = *row;
    to->results = NULL; /* nothing here shows them */
    to->results_bytes = 0;
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

static void put_member(struct world *w, const struct sched_member_row *row)
{
    struct sim_disk *disk = &w->disk;
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
        }
    }
    disk->n_jobs = n;
}

static void put_meta(struct sim_disk *disk, const char *key, uint64_t value)
{
    if (strcmp(key, "generation") == 0) {
        disk->generation = value;
        disk->has_generation = true;
    } else {
        disk->next_job = value;
        disk->has_next_job = true;
    }
}

void disk_write(struct world *w, const struct sched_effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (effects[i].kind) {
        case SCHED_DO_PUT_JOB:
            put_job(w, effects[i].job);
            break;
        case SCHED_DO_PUT_MEMBER:
            put_member(w, effects[i].member);
            break;
        case SCHED_DO_DROP_MEMBERS:
            drop_members(&w->disk, effects[i].job_id);
            break;
        case SCHED_DO_PUT_META:
            put_meta(&w->disk, effects[i].meta_key, effects[i].meta_value);
            break;
        case SCHED_DO_DROP_JOB:
            drop_job(&w->disk, effects[i].job_id);
            break;
        case SCHED_DO_SEND:
        case SCHED_DO_CLOSE:
        case SCHED_DO_LOG:
        case SCHED_DO_EXIT:
        default:
            break;
        }
    }
}

/* In the order in which it is worst: members first, jobs backwards. */
int disk_load(struct world *w, struct sched *sched, struct ms_err *err)
{
    const struct sim_disk *disk = &w->disk;
    bool backwards = sim_chance(w, 50);
    int rc = 0;
    for (size_t i = 0; rc == 0 && backwards && i < disk->n_members; i++) {
        rc = sched_load_member(sched, &disk->members[i], err);
    }
    for (size_t i = 0; rc == 0 && i < disk->n_jobs; i++) {
        rc = sched_load_job(sched, &disk->jobs[backwards ? disk->n_jobs - 1 - i : i], err);
    }
    for (size_t i = 0; rc == 0 && !backwards && i < disk->n_members; i++) {
        rc = sched_load_member(sched, &disk->members[i], err);
    }
    if (rc == 0 && disk->has_generation) {
        rc = sched_load_meta(sched, "generation", disk->generation, err);
    }
    if (rc == 0 && disk->has_next_job) {
        rc = sched_load_meta(sched, "next_job", disk->next_job, err);
    }
    return rc;
}

const struct sched_job_row *disk_job(const struct world *w, uint64_t id)
{
    for (size_t i = 0; i < w->disk.n_jobs; i++) {
        if (w->disk.jobs[i].id == id) {
            return &w->disk.jobs[i];
        }
    }
    return NULL;
}

const struct sched_member_row *disk_member(const struct world *w, uint64_t job, uint32_t rank)
{
    for (size_t i = 0; i < w->disk.n_members; i++) {
        if (w->disk.members[i].job == job && w->disk.members[i].rank == rank) {
            return &w->disk.members[i];
        }
    }
    return NULL;
}
