/* team.c - passes side by side, each with a network and data of its own */
#include "libworker/infer/team.h"

#include "libworker/host/memory.h"
#include "libworker/host/share.h"
#include "proto/thread.h"

#include <stdlib.h>
#include <string.h>

/* ---- how many ---- */

/* The first is there, and has not touched its memory yet. */
static int count_members(const struct pass *first, int most)
{
    const struct share_rank here = {"", &host_get()->offer};
    const int cores = share_threads(&here, 1);
    const int by_cores = cores / first->threads;
    const uint64_t by_memory = memory_available() / (net_bytes(first->net) + 1);
    int n = by_cores < most ? by_cores : most;
    n = (uint64_t)n > by_memory ? (int)by_memory : n;
    return n > 1 ? n : 1;
}

int team_open(struct team *team, const struct infer_config *cfg, int is_judged, int most,
              struct ms_err *err)
{
    memset(team, 0, sizeof(*team));
    team->common = (struct pass_common){.cfg = cfg, .is_judged = is_judged};
    pthread_mutex_init(&team->common.lock, NULL);
    team->passes = calloc((size_t)most, sizeof(*team->passes));
    int rc = team->passes != NULL ? pass_open(&team->passes[0], &team->common, 1, err)
                                  : ms_fail(err, MS_E_NOMEM, "no memory for %d networks", most);
    const int n = rc == MS_OK ? count_members(&team->passes[0], most) : 0;
    for (team->n = n > 0; rc == MS_OK && team->n < n; team->n++) {
        rc = pass_open(&team->passes[team->n], &team->common, 0, err);
    }
    if (rc < 0) {
        team_close(team);
    }
    return rc;
}

void team_close(struct team *team)
{
    for (int i = 0; i < team->n; i++) {
        pass_close(&team->passes[i]);
    }
    free(team->passes);
    pthread_mutex_destroy(&team->common.lock);
    memset(team, 0, sizeof(*team));
}

/* ---- together ---- */

struct run {
    struct team *team;
    team_fn *fn;
    void (*on_stop)(void *arg);
    void *arg;
    int rc; /* of the first that failed; under the team's lock */
    struct ms_err err;
};

struct member {
    struct run *run;
    int index;
    pthread_t thread;
};

static void note_failure(struct run *run, int rc, const struct ms_err *err)
{
    struct pass_common *common = &run->team->common;
    pthread_mutex_lock(&common->lock);
    if (run->rc == MS_OK) {
        run->rc = rc;
        run->err = *err;
    }
    pthread_mutex_unlock(&common->lock);
    atomic_store(&common->stop, 1);
    if (run->on_stop != NULL) {
        run->on_stop(run->arg);
    }
}

static void *run_member(void *arg)
{
    const struct member *member = arg;
    struct run *run = member->run;
    struct ms_err err = {0, ""};
    int rc = run->fn(run->arg, member->index, &run->team->passes[member->index], &err);
    if (rc < 0) {
        note_failure(run, rc, &err);
    }
    return NULL;
}

static int run_all(struct run *run, struct member *members)
{
    struct ms_err err = {0, ""};
    int n = 1;
    for (int i = 0; i < run->team->n; i++) {
        members[i] = (struct member){.run = run, .index = i};
    }
    for (; n < run->team->n; n++) {
        if (ms_thread_start(&members[n].thread, run_member, &members[n]) != 0) {
            note_failure(run, ms_fail(&err, MS_E_NOMEM, "no memory for a thread"), &err);
            break;
        }
    }
    run_member(&members[0]);
    for (int i = 1; i < n; i++) {
        pthread_join(members[i].thread, NULL);
    }
    return run->rc;
}

/* Which of them fails first is a matter of time; the first record that cannot be read is not. Where
 * reading is work, or is somebody else's, the one that was found has to do. */
static void find_first(const struct team *team, int rc, struct ms_err *err)
{
    struct data_source *source = team->passes[0].source;
    const enum data_kind kind = team->common.cfg->job->evaluate_dataset.kind;
    const struct data_info *info = data_get_info(source);
    struct data_record record;
    struct ms_err why = {0, ""};
    int found = MS_OK;
    if (rc != MS_E_INVALID || info->is_decoded || kind == DATA_PROGRAM || kind == DATA_CALLBACK) {
        return;
    }
    for (int64_t row = 0; found == MS_OK && row < info->rows; row++) {
        found = data_read(source, row, &record, &why);
    }
    if (found == rc) {
        *err = why;
    }
}

int team_run(struct team *team, team_fn *fn, void (*on_stop)(void *arg), void *arg,
             struct ms_err *err)
{
    struct run run = {.team = team, .fn = fn, .on_stop = on_stop, .arg = arg};
    struct member *members = calloc((size_t)team->n, sizeof(*members));
    if (members == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %d threads", team->n);
    }
    int rc = run_all(&run, members);
    free(members);
    if (rc < 0) {
        find_first(team, rc, &run.err);
        return ms_fail(err, rc, "%s", run.err.text);
    }
    for (int i = 0; rc == MS_OK && i < team->n; i++) {
        rc = pass_verify(&team->passes[i], err);
    }
    return rc;
}
