/* run_silent.c - a scheduler of `msctl run` that lives and does not answer
 *
 *     nothing was heard for a while -> it is asked, each second, whether it is there
 *     RUN_SILENT_S                  -> said: the training goes on, but nobody sees it, and a rank
 *                                      that is lost meanwhile is not replaced
 *     RUN_HUNG_S                    -> killed, and run_restart.c starts it again: all that it has
 *                                      said is in its database, and whoever knocks is heard by the
 *                                      next one
 *
 * Seconds are counted as in run_frozen.c, so that one in which we stood still ourselves is one.
 * Left alone is who is debugged, or waits for a disk, as the next one would, too. */
#include "cli/run.h"

#include <stdio.h>

enum { SECOND_MS = 1000, ASKED_AFTER_S = 2 };

static int is_open(const struct run *run)
{
    return run->cli->client != NULL && client_get_state(run->cli->client) == CLIENT_OPEN;
}

/* What it answers does not matter. */
static void ask(struct run *run)
{
    Ms__StatusQuery request = MS__STATUS_QUERY__INIT;
    struct ms_err why = {0, ""};
    if (run->probe_id == 0 && is_open(run) &&
        client_send(run->cli->client, MS_MSG_STATUS_QUERY, &request.base, &run->probe_id, &why) <
            0) {
        run->probe_id = 0; /* the connection is lost: the next one shows whether it is there */
    }
}

/* ---- saying it ---- */

static void say(struct run *run, const char *what)
{
    const struct child *child = &run->children[0];
    char text[320];
    snprintf(text, sizeof(text), "%s (pid %ld) %s", child->name, (long)child->pid, what);
    cli_display_note(&run->display, text);
}

static void say_silent(struct run *run)
{
    char what[256];
    const long pid = (long)run->children[0].pid;
    const long tracer = child_tracer(&run->children[0]);
    int n = snprintf(what, sizeof(what), "lives, but has not answered for %d s: ", run->silent_s);
    char *rest = what + n;
    const size_t room = sizeof(what) - (size_t)n;
    if (tracer > 0) {
        snprintf(rest, room, "process %ld debugs it, and it is left alone", tracer);
    } else if (!run_needs(run, 0)) {
        snprintf(rest, room, "kill -CONT %ld wakes one that was stopped", pid);
    } else {
        snprintf(rest, room,
                 "kill -CONT %ld wakes one that was stopped; else it is killed in %d s and started "
                 "again, by which nothing is lost",
                 pid, RUN_HUNG_S - run->silent_s);
    }
    say(run, what);
}

/* ---- judging ---- */

static void judge(struct run *run)
{
    char what[96];
    struct child *child = &run->children[0];
    if (run->silent_s == RUN_SILENT_S) {
        say_silent(run);
    }
    if (run->silent_s < RUN_HUNG_S || child->sent != 0 || !run_needs(run, 0) ||
        child_tracer(child) > 0 || child_waits_for_disk(child)) {
        return;
    }
    snprintf(what, sizeof(what), "has not answered for %d s: it is killed", run->silent_s);
    say(run, what);
    child_signal(child, SIGKILL);
}

static void begin_anew(struct run *run)
{
    run->silent_s = 0;
    run->probe_id = 0;
}

void run_silent_look(struct run *run)
{
    const uint64_t heard = run->cli->client != NULL ? client_heard(run->cli->client) : 0;
    if (run->stage >= RUN_STOPPING) {
        return;
    }
    if (heard != run->heard) {
        if (run->silent_s >= RUN_SILENT_S) {
            say(run, "answers again");
        }
        begin_anew(run);
        run->heard = heard;
    } else if (!child_is_alive(&run->children[0])) {
        begin_anew(run); /* the next one has all the time to answer */
    } else if (run->fired[RUN_TIMER_SILENT]) {
        run->silent_s++;
        if (run->silent_s >= ASKED_AFTER_S) {
            ask(run);
        }
        judge(run);
    }
    if (run->fired[RUN_TIMER_SILENT] || !evtimer_pending(run->timers[RUN_TIMER_SILENT], NULL)) {
        run_timer_set(run, RUN_TIMER_SILENT, SECOND_MS);
    }
}
