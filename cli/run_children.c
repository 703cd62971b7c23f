/* run_children.c - the scheduler and the workers of `msctl run` as processes */
#include "cli/clean.h"
#include "cli/run.h"

#include "proto/limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { TAIL_LINES = 8 };

static int start_scheduler(struct run *run, struct ms_err *err)
{
    struct child *child = &run->children[0];
    const int fds[] = {run->dir.tcp_fd, run->dir.unix_fd};
    const char *const argv[] = {"msschedd", "--run-dir", run->dir.path, NULL};
    const struct child_spec spec = {run->scheduler, argv, NULL, fds, MS_ARRAY_SIZE(fds)};
    snprintf(child->name, sizeof(child->name), "scheduler");
    snprintf(child->log, sizeof(child->log), "%s/scheduler.log", run->dir.path);
    return child_start(child, &spec, err);
}

/* A team of OpenMP threads that waits for one of its own by spinning holds the core that the other
 * needs, up to libgomp's 300,000 turns (about 10 ms) a region. 5,000 turns are about 0.2 ms:
 * LeNet-5 trained 3.4 times as fast beside other work, and as fast alone. A user's own choice
 * stands. */
static const char *spin_setting(void)
{
    return getenv("GOMP_SPINCOUNT") == NULL && getenv("OMP_WAIT_POLICY") == NULL
               ? "GOMP_SPINCOUNT=5000"
               : NULL;
}

static int start_worker(struct run *run, int index, struct ms_err *err)
{
    struct child *child = &run->children[1 + index];
    char node[32];
    char port[40];
    char workers[40];
    const char *const argv[] = {"msworker", "--run-dir", run->dir.path, NULL};
    const char *const env[] = {
        "MS_ROLE=MS_WORKER", "MS_SCHED_HOST=127.0.0.1", node, port, workers, spin_setting(), NULL};
    const struct child_spec spec = {run->worker, argv, env, NULL, 0};
    snprintf(node, sizeof(node), "MS_NODE_ID=%d", index);
    snprintf(port, sizeof(port), "MS_SCHED_PORT=%d", run->dir.port);
    snprintf(workers, sizeof(workers), "MS_WORKER_NUM=%d", run->job.workers);
    snprintf(child->name, sizeof(child->name), "worker %d", index);
    snprintf(child->log, sizeof(child->log), "%s/worker_%d.log", run->dir.path, index);
    return child_start(child, &spec, err);
}

int run_start_child(struct run *run, size_t index, struct ms_err *err)
{
    return index == 0 ? start_scheduler(run, err) : start_worker(run, (int)index - 1, err);
}

int run_find_programs(struct run *run, struct ms_err *err)
{
    int rc = child_find_program("msschedd", "MSCHED_MSSCHEDD", "daemon", run->scheduler,
                                sizeof(run->scheduler), err);
    return rc == MS_OK ? child_find_program("msworker", "MSCHED_MSWORKER", "libworker", run->worker,
                                            sizeof(run->worker), err)
                       : rc;
}

int run_start_children(struct run *run, struct ms_err *err)
{
    run->n_children = 1 + (size_t)run->job.workers;
    run->children = (struct child *)calloc(run->n_children, sizeof(*run->children));
    if (run->children == NULL) {
        run->n_children = 0;
        return ms_fail(err, MS_E_NOMEM, "no memory for %d workers", run->job.workers);
    }
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < run->n_children; i++) {
        rc = run_start_child(run, i, err);
    }
    return rc;
}

/* A worker died under a cancel: while others live the scheduler, or the one that follows it, has
 * the lowest of them save what it holds, and says when all is over. */
static int others_save(const struct run *run)
{
    return run->job.recovery && run_is_cut(run) && run_has_scheduler(run) &&
           run_workers_alive(run) > 0;
}

static void say_others_save(struct run *run, const struct child *child)
{
    char text[256];
    char status[96];
    snprintf(text, sizeof(text),
             "%s (pid %ld) %s: not started again; those that are left save their step", child->name,
             (long)child->pid, child_status_text(child, status, sizeof(status)));
    cli_display_note(&run->display, text);
}

static void note_dead(struct run *run, size_t index)
{
    /* what died first is the cause */
    run->first_dead = run->first_dead >= 0 ? run->first_dead : (int)index;
    if (index == 0) {
        run_timer_set(run, RUN_TIMER_VERDICT, 0); /* nobody is left who could say more */
    } else if (others_save(run)) {
        if (child_was_killed(&run->children[index])) {
            say_others_save(run, &run->children[index]);
        }
    } else if (!run->fired[RUN_TIMER_VERDICT] &&
               !evtimer_pending(run->timers[RUN_TIMER_VERDICT], NULL)) {
        run_timer_set(run, RUN_TIMER_VERDICT,
                      run->stage == RUN_FORMING ? RUN_VERDICT_FORMING_MS : RUN_VERDICT_MS);
    }
}

void run_reap(struct run *run)
{
    for (size_t i = 0; i < run->n_children; i++) {
        if (child_reap(&run->children[i]) && run->stage < RUN_STOPPING && !run_job_ended(run) &&
            !run_restart_plan(run, i)) {
            note_dead(run, i);
        }
    }
}

/* On a full disk not even the log can say so. */
static int is_disk_full(const struct run *run)
{
    struct statvfs fs;
    return fstatvfs(run->dir.fd, &fs) == 0 &&
           (fs.f_bavail == 0 || (fs.f_files > 0 && fs.f_favail == 0));
}

void run_fail_dead(struct run *run)
{
    const struct child *child = &run->children[run->first_dead];
    char status[96];
    char times[64] = "";
    char tail[4096];
    struct ms_err err = {0, ""};
    if (run->failed) { /* that is said, and nobody saves any more */
        run_stop(run, 0);
        return;
    }
    if (child->restart.alike > 1) {
        snprintf(times, sizeof(times), ", %d times without a step in between",
                 child->restart.alike);
    }
    ms_fail(&err, MS_E_FAILED, "%s %s %s%s%s; its log: %s/%s", child->name,
            child_status_text(child, status, sizeof(status)),
            run->stage == RUN_FORMING ? "while the cluster formed" : "before the job had ended",
            times,
            is_disk_full(run) ? ", and no space is left on the disk of the run directory" : "",
            run->dir.shown, strrchr(child->log, '/') + 1);
    child_log_tail(child, tail, sizeof(tail), TAIL_LINES);
    if (tail[0] != '\0') {
        cli_display_end(&run->display);
        struct cli_filter filter = {{0}, 0}; /* a log is bytes of anybody's making */
        fprintf(run->cli->err, "  last lines of %s/%s:\n", run->dir.shown,
                strrchr(child->log, '/') + 1);
        cli_filter_write(&filter, run->cli->err, tail, strlen(tail), 1);
    }
    run_give_up(run, child, &err);
}
