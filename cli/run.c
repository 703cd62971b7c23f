/* run.c - the private cluster of one `msctl run`: events, and what follows from them */
#include "cli/run.h"
#include "cli/watch.h"
#include "proto/clock.h"
#include "proto/file_write.h"
#include "proto/state_words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { RECONNECT_MS = 50, MS_PER_S = 1000 };

/* Its scheduler ends a cancelled job: after one grace where a rank does not stop, one more where
 * another has to save in the place of rank 0, and one more where it looks for the workers first. */
enum { CANCEL_MS = 3 * MS_CANCEL_GRACE_MS };

/* ---- noting ---- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(int *)arg = 1;
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct run *run = (struct run *)arg;
    (void)what;
    if (number == SIGCHLD) {
        run->has_dead = 1;
        return;
    }
    run->signal = run->signal != 0 ? run->signal : (int)number;
    run->n_signals++;
}

void run_timer_set(struct run *run, enum run_timer timer, int64_t ms)
{
    struct timeval tv = {ms / MS_PER_S, ms % MS_PER_S * 1000};
    run->fired[timer] = 0;
    evtimer_add(run->timers[timer], &tv);
}

int run_watch(struct run *run, struct ms_err *err)
{
    static const int numbers[RUN_SIGNALS + 1] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    for (size_t i = 0; i < RUN_TIMERS; i++) {
        run->timers[i] = evtimer_new(run->cli->base, on_timer, &run->fired[i]);
        if (run->timers[i] == NULL) {
            return ms_fail(err, MS_E_NOMEM, "no memory for a timer");
        }
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(numbers); i++) {
        if (!cli_hears_signal(numbers[i])) {
            continue;
        }
        run->signals[i] = evsignal_new(run->cli->base, numbers[i], on_signal, run);
        if (run->signals[i] == NULL || event_add(run->signals[i], NULL) != 0) {
            return ms_fail(err, MS_E_NOMEM, "cannot watch signals");
        }
    }
    return MS_OK;
}

/* ---- starting ---- */

int run_start(struct run *run, struct ms_err *err)
{
    char address[MS_PATH_MAX + 64];
    run->first_dead = -1;
    snprintf(address, sizeof(address), "unix:%s/scheduler.sock", run->dir.path);
    int rc = run_start_children(run, err);
    if (rc == MS_OK) {
        run->cli->client = client_create(run->cli->base, address, NULL, NULL);
        rc = run->cli->client != NULL ? client_connect(run->cli->client, err)
                                      : ms_fail(err, MS_E_NOMEM, "no memory for a connection");
    }
    return rc;
}

int run_job_ended(const struct run *run)
{
    return run->last != NULL && run->last->ended;
}

int run_is_cut(const struct run *run)
{
    return run->signal != 0 || run->failed;
}

static void note_failure(struct run *run, const struct ms_err *err)
{
    if (!run->failed) {
        run->failed = 1;
        run->err = *err;
    }
}

void run_fail(struct run *run, const struct ms_err *err)
{
    note_failure(run, err);
    run_stop(run, 0);
}

/* ---- the conversation with the scheduler ---- */

static int send_submit(struct run *run, struct ms_err *err)
{
    Ms__Submit request = MS__SUBMIT__INIT;
    request.job_json.data = (uint8_t *)job_format(&run->job, &request.job_json.len);
    if (request.job_json.data == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the job");
    }
    request.name = run->job.name;
    request.workers = (uint32_t)run->job.workers;
    request.priority = run->job.priority;
    request.recovery = run->job.recovery;
    request.run_dir = run->dir.path;
    request.key = run->key;
    request.plan = run->plan != NULL ? run->plan : request.plan;
    int rc = client_send(run->cli->client, MS_MSG_SUBMIT, &request.base, &run->submit_id, err);
    free(request.job_json.data);
    return rc;
}

static int send_watch(struct run *run, struct ms_err *err)
{
    Ms__Watch request = MS__WATCH__INIT;
    request.job = run->job_id;
    return client_send(run->cli->client, MS_MSG_WATCH, &request.base, &run->watch_id, err);
}

static int send_cancel(struct run *run, struct ms_err *err)
{
    Ms__Cancel request = MS__CANCEL__INIT;
    char reason[96];
    if (run->signal != 0) {
        snprintf(reason, sizeof(reason), "msctl run got signal %d (%s)", run->signal,
                 strsignal(run->signal));
    } else {
        snprintf(reason, sizeof(reason), "msctl run gave up, for %s does not come back",
                 run->given_up->name);
    }
    request.job = run->job_id;
    request.at_step = 1;
    request.reason = reason;
    return client_send(run->cli->client, MS_MSG_CANCEL, &request.base, &run->cancel_id, err);
}

/* A scheduler that was started again may not have heard of the cancel; two are one. It looks for
 * the workers first, and they have their time from then on. */
static int begin_watch(struct run *run, struct ms_err *err)
{
    int rc = send_watch(run, err);
    if (rc != MS_OK || !run_is_cut(run)) {
        return rc;
    }
    run_timer_set(run, RUN_TIMER_CANCEL, CANCEL_MS);
    return send_cancel(run, err);
}

/* ---- plan.txt: by which plan it trained ---- */

static void plan_note(struct run *run, const char *why)
{
    char text[MS_PATH_MAX + MS_ERR_TEXT_MAX];
    snprintf(text, sizeof(text), "%s/plan.txt is not written: %s", run->dir.shown, why);
    cli_display_note(&run->display, text);
}

/* Once the ranks have it: they obey it from then on. */
static void ask_plan(struct run *run)
{
    Ms__JobQuery request = MS__JOB_QUERY__INIT;
    struct ms_err why = {0, ""};
    request.job = run->job_id;
    request.plan = 1;
    if (run->plan_id == 0 && !run->plan_is_taken &&
        client_send(run->cli->client, MS_MSG_JOB_QUERY, &request.base, &run->plan_id, &why) < 0) {
        run->plan_id = 0; /* the connection is lost: asked again over the next one */
    }
}

static void take_plan(struct run *run, uint16_t type, const ProtobufCMessage *msg)
{
    char path[MS_PATH_MAX + sizeof("/plan.txt")];
    struct ms_err why = {0, ""};
    run->plan_id = 0;
    run->plan_is_taken = 1;
    const Ms__JobList *list = (const Ms__JobList *)msg;
    if (type != MS_MSG_JOB_LIST || list->n_jobs != 1) {
        (void)client_error(msg, &why);
        plan_note(run, why.text);
        return;
    }
    const char *text = list->jobs[0]->plan;
    snprintf(path, sizeof(path), "%s/plan.txt", run->dir.path);
    if (text[0] != '\0' && ms_file_save(path, text, strlen(text), &why) != MS_OK) {
        plan_note(run, why.text);
    }
}

/* Not for ever: it may have frozen with its last word. */
static int plan_is_awaited(const struct run *run)
{
    return run->plan_id != 0 && client_get_state(run->cli->client) == CLIENT_OPEN &&
           run->silent_s < RUN_SILENT_S;
}

static int take_update(struct run *run, ProtobufCMessage *msg, struct ms_err *err)
{
    Ms__JobUpdate *update = (Ms__JobUpdate *)msg;
    if (update->job == NULL) {
        ms_wire_free(msg);
        return ms_fail(err, MS_E_PROTOCOL, "the scheduler sent an update without a job");
    }
    if (run->last != NULL) {
        ms_wire_free(&run->last->base);
    }
    run->last = update;
    run_restart_look(run, update->job);
    if (run->stage == RUN_FORMING && strcmp(update->job->state, MS_JOB_STATE_RUNNING) == 0) {
        run->stage = RUN_TRAINING;
    }
    if (run->stage == RUN_TRAINING || update->ended) {
        ask_plan(run);
    }
    run->display.width = cli_terminal_width(run->display.out);
    cli_display_update(&run->display, update->job, (double)ms_mono_ms() / MS_PER_S);
    return MS_OK;
}

/* One frame; takes msg. */
static int take_frame(struct run *run, uint32_t id, uint16_t type, ProtobufCMessage *msg,
                      struct ms_err *err)
{
    int rc = MS_OK;
    if (id == run->plan_id) {
        take_plan(run, type, msg);
        ms_wire_free(msg);
        return MS_OK;
    }
    if (id == run->nodes_id) {
        run_frozen_take(run, type, msg);
        ms_wire_free(msg);
        return MS_OK;
    }
    if (id == run->probe_id) { /* whatever it is */
        run->probe_id = 0;
        ms_wire_free(msg);
        return MS_OK;
    }
    if (type == MS_MSG_JOB_UPDATE && id == run->watch_id) {
        return take_update(run, msg, err);
    }
    if (type == MS_MSG_SUBMITTED && id == run->submit_id) {
        run->job_id = ((const Ms__Submitted *)msg)->job;
        rc = begin_watch(run, err);
    } else if (type == MS_MSG_ERROR && id != run->cancel_id) {
        /* a cancel may come too late, which the update says better */
        rc = client_error(msg, err);
    }
    ms_wire_free(msg);
    return rc;
}

static int take_frames(struct run *run, struct ms_err *err)
{
    uint32_t *const ids[] = {&run->submit_id, &run->watch_id, &run->cancel_id,
                             &run->plan_id,   &run->nodes_id, &run->probe_id};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ids); i++) {
        uint16_t type = 0;
        ProtobufCMessage *msg = NULL;
        while (*ids[i] != 0 && client_take(run->cli->client, *ids[i], &type, &msg)) {
            int rc = take_frame(run, *ids[i], type, msg, err);
            if (rc != MS_OK) {
                return rc;
            }
        }
    }
    return MS_OK;
}

/* Again, as long as the scheduler lives; but not for ever. */
static int reconnect(struct run *run, struct ms_err *err)
{
    struct client *client = run->cli->client;
    run->lost_ms = run->lost_ms != 0 ? run->lost_ms : ms_mono_ms();
    if (ms_mono_ms() - run->lost_ms > CLIENT_ANSWER_MS) {
        client_reason(client, err);
        return ms_err_prefix(err, "the scheduler of this run lives but cannot be reached");
    }
    if (run->fired[RUN_TIMER_RECONNECT]) {
        struct ms_err why = {0, ""};
        run->fired[RUN_TIMER_RECONNECT] = 0;
        run->submit_id = run->watch_id = run->cancel_id = run->plan_id = run->nodes_id = 0;
        run->probe_id = 0;
        (void)client_connect(client, &why); /* the client keeps why */
    } else if (!evtimer_pending(run->timers[RUN_TIMER_RECONNECT], NULL)) {
        run_timer_set(run, RUN_TIMER_RECONNECT, RECONNECT_MS);
    }
    return MS_OK;
}

/* Connected: the first word of this connection. Lost: connect again. */
static int talk(struct run *run, struct ms_err *err)
{
    int rc = take_frames(run, err);
    if (rc != MS_OK) {
        return rc;
    }
    switch (client_get_state(run->cli->client)) {
    case CLIENT_OPEN:
        run->lost_ms = 0;
        if (run->submit_id == 0 && run->watch_id == 0) {
            return run->job_id == 0 ? send_submit(run, err) : begin_watch(run, err);
        }
        return MS_OK;
    case CLIENT_CLOSED:
        return reconnect(run, err);
    default:
        return MS_OK;
    }
}

/* ---- acting ---- */

/* The step in hand, or that at which the ranks hold, is the last: by the next connection where
 * there is none now. False: there is no scheduler any more who could be told. */
static int cut(struct run *run)
{
    struct ms_err why = {0, ""};
    run_timer_set(run, RUN_TIMER_CANCEL, CANCEL_MS);
    const int is_sent = run->cli->client != NULL &&
                        client_get_state(run->cli->client) == CLIENT_OPEN &&
                        send_cancel(run, &why) == MS_OK;
    return is_sent || (run->job.recovery && run_has_scheduler(run));
}

/* Without a scheduler TERM has the same done. */
void run_give_up(struct run *run, const struct child *child, const struct ms_err *err)
{
    const int has_more = !run_is_cut(run) && run->job.recovery && run->stage == RUN_TRAINING &&
                         !run_job_ended(run) && run_workers_alive(run) > 0;
    note_failure(run, err);
    run->given_up = run->given_up != NULL ? run->given_up : child;
    if (has_more) {
        cli_display_note(&run->display,
                         "gives up: the workers save what they hold first, where they can");
    }
    if (!has_more || !cut(run)) {
        run_stop(run, 0);
    }
}

static void on_first_signal(struct run *run)
{
    char text[128];
    snprintf(text, sizeof(text), "got %s: the job ends after its step; once more kills it",
             run->signal == SIGINT ? "Ctrl-C" : strsignal(run->signal));
    cli_display_note(&run->display, text);
    if (run->job_id == 0) {
        run_stop(run, 0); /* there is no job yet that could lose anything */
    } else if (!cut(run)) {
        run_stop(run, 0);
    }
}

static void check_signals(struct run *run, int *seen)
{
    if (run->n_signals == *seen) {
        return;
    }
    if (*seen == 0 && run->stage < RUN_STOPPING) {
        on_first_signal(run);
    }
    if (run->n_signals > 1) {
        if (*seen < 2) {
            cli_display_note(&run->display, "once more: everything is killed now; weights are not "
                                            "saved, logs and metrics stay");
        }
        run_kill(run);
    }
    *seen = run->n_signals;
}

/* A send may find the connection closed: that is talk's business at the next turn. */
static int is_lost_meanwhile(const struct run *run)
{
    return client_get_state(run->cli->client) == CLIENT_CLOSED && run->lost_ms == 0;
}

static void check_job(struct run *run)
{
    struct ms_err err = {0, ""};
    int rc = run->stage < RUN_STOPPING ? talk(run, &err) : MS_OK;
    if (rc != MS_OK && !is_lost_meanwhile(run)) {
        run_fail(run, &err);
        return;
    }
    if (run->stage < RUN_STOPPING && run_job_ended(run) && !plan_is_awaited(run)) {
        int good = strcmp(run->last->job->state, MS_JOB_STATE_SUCCEEDED) == 0;
        int at_step = run->n_signals == 1 || run->failed; /* they end by themselves, too */
        run_stop(run, good || at_step ? RUN_LEAVE_MS : RUN_WORDS_MS);
    } else if (run->fired[RUN_TIMER_VERDICT] && run->stage < RUN_STOPPING) {
        run->fired[RUN_TIMER_VERDICT] = 0;
        run_fail_dead(run);
    }
}

void run_loop(struct run *run)
{
    int signals_seen = 0;
    run->has_dead = 1; /* one may have died before anybody watched */
    while (run->stage != RUN_OVER) {
        if (event_base_loop(run->cli->base, EVLOOP_ONCE) != 0) {
            run_kill(run); /* cannot happen while signals are watched; never hang because of it */
        }
        /* Not before its signal was read: a Ctrl-C that came with it was read, too, and nobody is
         * started again. This process may have stood still anywhere. */
        if (run->has_dead) {
            run->has_dead = 0;
            run_reap(run);
        }
        check_signals(run, &signals_seen);
        check_job(run);
        run_restart_due(run);
        run_frozen_look(run);
        run_silent_look(run);
        if (run->fired[RUN_TIMER_CANCEL]) {
            run_kill(run);
        }
        if (run->stage == RUN_STOPPING) {
            run_stop_next(run);
        }
    }
}

void run_end(struct run *run)
{
    run_kill(run);
    for (size_t i = 0; i < run->n_children; i++) {
        if (child_is_alive(&run->children[i])) {
            waitpid(run->children[i].pid, &run->children[i].status, 0);
        }
    }
    client_destroy(run->cli->client);
    run->cli->client = NULL;
    for (size_t i = 0; i < RUN_TIMERS; i++) {
        if (run->timers[i] != NULL) {
            event_free(run->timers[i]);
        }
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(run->signals); i++) {
        if (run->signals[i] != NULL) {
            event_free(run->signals[i]);
        }
    }
    if (run->last != NULL) {
        ms_wire_free(&run->last->base);
    }
    free(run->children);
    free(run->plan);
    free(run->again);
}
