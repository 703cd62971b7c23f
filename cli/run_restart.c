/* run_restart.c - children of `msctl run` that died are started again while the job lives */
#include "cli/run.h"

#include "proto/clock.h"
#include "proto/file_write.h"
#include "proto/log.h"
#include "proto/state_words.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MS_PER_S = 1000 };

static uint64_t job_step(const struct run *run)
{
    return run->last != NULL ? cli_progress_step(run->last->job) : 0;
}

int run_has_scheduler(const struct run *run)
{
    return child_is_alive(&run->children[0]) || run->children[0].restart.due_ms != 0;
}

/* ---- saying it ---- */

/* In the scheduler's log as a line of its own: the one place where a run is told from its
 * beginning to its end. */
static void log_again(const struct run *run, const struct child *child, const char *reason,
                      int pause_ms)
{
    int fd = ms_file_append(run->children[0].log, O_WRONLY, 0666, NULL);
    if (fd < 0) {
        return; /* it was said on the terminal */
    }
    ms_log_init(fd, MS_LOG_INFO, 0);
    ms_log(MS_LOG_WARNING, "run.restarts child=%s pid=%ld reason=%s pause_ms=%d",
           MS_QUOTE(child->name), (long)child->pid, MS_QUOTE(reason), pause_ms);
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);
    close(fd);
}

static void say_death(struct run *run, const struct child *child, int pause_ms)
{
    char text[256];
    char buf[96];
    char when[32] = "";
    const char *status = child_status_text(child, buf, sizeof(buf));
    if (pause_ms > 0) {
        snprintf(when, sizeof(when), " in %g s", (double)pause_ms / MS_PER_S);
    }
    snprintf(text, sizeof(text), "%s (pid %ld) %s: started again%s", child->name, (long)child->pid,
             status, when);
    cli_display_note(&run->display, text);
    log_again(run, child, status, pause_ms);
}

static void say_not_started(struct run *run, const struct child *child, const char *why,
                            int pause_ms)
{
    char text[MS_ERR_TEXT_MAX + 96];
    snprintf(text, sizeof(text), "%s could not be started: %s; tried again in %g s", child->name,
             why, (double)pause_ms / MS_PER_S);
    cli_display_note(&run->display, text);
    log_again(run, child, why, pause_ms);
}

/* ---- when ---- */

int run_needs(const struct run *run, size_t index)
{
    return run->job.recovery && run->stage < RUN_STOPPING && !run_job_ended(run) &&
           (index == 0 || !run_is_cut(run));
}

/* The job has made all its steps, and is not given up for a worker that it does not miss. */
static int is_spare(const struct run *run, size_t index)
{
    return index > 0 && run->last != NULL &&
           strncmp(run->last->job->reason, MS_REASON_ALL_MADE, sizeof(MS_REASON_ALL_MADE) - 1) == 0;
}

/* For the one that is due first. */
static void set_timer(struct run *run)
{
    int64_t first_ms = 0;
    for (size_t i = 0; i < run->n_children; i++) {
        int64_t due_ms = run->children[i].restart.due_ms;
        if (due_ms != 0 && (first_ms == 0 || due_ms < first_ms)) {
            first_ms = due_ms;
        }
    }
    if (first_ms != 0) {
        int64_t left_ms = first_ms - ms_mono_ms();
        run_timer_set(run, RUN_TIMER_RESTART, left_ms > 0 ? left_ms : 0);
    }
}

int run_restart_plan(struct run *run, size_t index)
{
    struct child *child = &run->children[index];
    const struct restart_facts facts = {
        .status = child->status,
        .is_worker = index > 0,
        .is_spare = is_spare(run, index),
        .is_forming = run->stage == RUN_FORMING && run->n_restarts == 0,
        .step = job_step(run),
        .now_ms = ms_mono_ms(),
    };
    if (!run_needs(run, index)) {
        child->restart.alike = 0; /* what died before is another matter */
        return 0;
    }
    int pause_ms = restart_judge(&child->restart, &facts);
    if (pause_ms < 0) {
        return 0;
    }
    run->n_restarts++;
    if (!child->restart.is_unsure) {
        say_death(run, child, pause_ms);
    }
    set_timer(run);
    return 1;
}

/* ---- again ---- */

/* What keeps a process from being started (a full disk for its log, no more processes) may pass: as
 * if it had died at once. */
static void not_started(struct run *run, size_t index, struct ms_err *err)
{
    struct child *child = &run->children[index];
    const struct restart_facts facts = {
        .status = RESTART_NOT_STARTED, .is_spare = is_spare(run, index), .now_ms = ms_mono_ms()};
    const int pause_ms = restart_judge(&child->restart, &facts);
    if (pause_ms >= 0) {
        say_not_started(run, child, err->text, pause_ms);
        return;
    }
    ms_err_prefix(err, "%s could not be started, %d times in a row", child->name,
                  child->restart.alike);
    ms_err_recode(err, MS_E_FAILED);
    run_give_up(run, child, err);
}

static void start_again(struct run *run, size_t index)
{
    struct ms_err err = {0, ""};
    struct child *child = &run->children[index];
    if (child->restart.is_unsure) {
        say_death(run, child, 0);
    }
    run->lost_ms = index == 0 ? 0 : run->lost_ms; /* it has all the time to answer */
    if (run_start_child(run, index, &err) != MS_OK) {
        not_started(run, index, &err);
    }
}

void run_restart_due(struct run *run)
{
    int64_t now = ms_mono_ms();
    for (size_t i = 0; i < run->n_children; i++) {
        struct restart *restart = &run->children[i].restart;
        if (restart->due_ms != 0 && !run_needs(run, i)) {
            restart->due_ms = 0;
        } else if (restart->due_ms != 0 && restart->due_ms <= now) {
            start_again(run, i);
        }
    }
    set_timer(run);
}

void run_restart_look(struct run *run, const Ms__JobInfo *job)
{
    int64_t now = ms_mono_ms();
    if (child_is_alive(&run->children[0])) { /* else it said so before */
        restart_ready(&run->children[0].restart, now);
    }
    for (size_t i = 0; i < job->n_ranks; i++) { /* here ranks are node ids */
        const Ms__RankInfo *rank = job->ranks[i];
        struct child *child = 1 + i < run->n_children ? &run->children[1 + i] : NULL;
        if (child != NULL && rank->pid == (uint32_t)child->pid && child_is_alive(child) &&
            (strcmp(rank->state, MS_RANK_STATE_TRAINING) == 0 ||
             strcmp(rank->state, MS_RANK_STATE_DONE) == 0)) {
            restart_ready(&child->restart, now);
        }
    }
}
