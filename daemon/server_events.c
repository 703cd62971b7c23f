/* server_events.c - the server's timers and signals */
#include "daemon/server_state.h"

#include "proto/notify.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP};

static void on_terminate(evutil_socket_t number, short what, void *arg)
{
    struct server *server = arg;
    const char *name = number == SIGINT ? "INT" : "TERM";
    (void)what;
    if (server->is_stopping) {
        server_stop(server, server->exit_status, 0, name);
        return;
    }
    /* a dynamic cluster that is ended before its job has failed; a service has just ended */
    int status = server->options->sched.mode == SCHED_DYNAMIC ? 1 : 0;
    (void)sched_is_ending(server->sched, &status);
    ms_log(MS_LOG_NOTICE, "scheduler.stop signal=%s", name);
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_DRAIN});
    server_stop(server, status, SERVER_DRAIN_MS, "a signal");
}

void server_say_status(struct server *server)
{
    struct sched_counts counts;
    char status[sizeof(server->status)];
    sched_count(server->sched, &counts);
    snprintf(status, sizeof(status),
             "STATUS=%u job%s placed, %u queued, %u node%s (%u idle, %u lost or left), last commit "
             "%.1f ms%s",
             counts.jobs_placed, counts.jobs_placed == 1 ? "" : "s", counts.jobs_queued,
             counts.nodes_registered, counts.nodes_registered == 1 ? "" : "s", counts.nodes_idle,
             counts.nodes_lost, (double)server->commit_last_us / 1000,
             !server->is_refusing           ? ""
             : server->refusal == MS_E_FULL ? "; THE DISK IS FULL"
                                            : "; NO NEW WORK: THE RESERVE FILE CANNOT BE MADE");
    if (strcmp(status, server->status) != 0 && !server->is_stopping) {
        memcpy(server->status, status, sizeof(status));
        ms_notify(status);
    }
}

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)fd;
    (void)what;
    server_look_at_disk(server);
    server_say_status(server);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ((struct server *)arg)->watchdog_due = 1; /* told after the tick that follows succeeded */
}

static void on_check(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    server_check_expiry(arg);
}

static void report_hidden(struct server *server)
{
    unsigned long hidden = 0;
    const char *event;
    while ((event = throttle_next_report(&server->throttle, server_mono_ms(), &hidden)) != NULL) {
        ms_log(MS_LOG_WARNING, "log.throttled event=%s lines=%lu", event, hidden);
    }
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
    struct server *server = arg;
    (void)fd;
    (void)what;
    server_let_grow(server); /* who was to grow may have left instead */
    server_end_idle(server);
    server_end_mute(server);
    server_drop_stalled(server);
    report_hidden(server);
}

static void on_go_on(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    server_go_on(arg);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg; /* the tick behind it does the work */
}

static void on_reload(evutil_socket_t number, short what, void *arg)
{
    struct server *server = arg;
    struct ms_err err = {0, ""};
    char state[128];
    (void)number;
    (void)what;
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)server_mono_us());
    ms_notify(state);
    if (server->reload != NULL && server->reload(server->reload_arg, server, &err) < 0) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "scheduler.reload_failed text=%s, keeping the old settings",
               ms_log_quote(quoted, sizeof(quoted), err.text));
    }
    ms_notify("READY=1");
}

int server_add_events(struct server *server, struct ms_err *err)
{
    struct event_base *base = server->base;
    server->wake = evtimer_new(base, on_wake, server);
    server->doors_on = evtimer_new(base, on_wake, server);
    server->go_on = evtimer_new(base, on_go_on, server);
    server->second = event_new(base, -1, EV_PERSIST, on_second, server);
    server->idle = evtimer_new(base, on_idle, server);
    server->watchdog = event_new(base, -1, EV_PERSIST, on_watchdog, server);
    server->check = event_new(base, -1, EV_PERSIST, on_check, server);
    int missing = server->wake == NULL || server->idle == NULL || server->watchdog == NULL ||
                  server->check == NULL || server->doors_on == NULL || server->go_on == NULL ||
                  server->second == NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(signal_numbers); i++) {
        int number = signal_numbers[i];
        server->signals[i] =
            evsignal_new(base, number, number == SIGHUP ? on_reload : on_terminate, server);
        missing |= server->signals[i] == NULL || evsignal_add(server->signals[i], NULL) != 0;
    }
    if (missing) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the event loop");
    }
    server_arm_check(server);
    event_add(server->second, &(struct timeval){.tv_sec = 1});
    uint64_t watchdog_us = ms_notify_watchdog_us() / 2;
    if (watchdog_us > 0) {
        struct timeval half = {.tv_sec = (time_t)(watchdog_us / 1000000),
                               .tv_usec = (suseconds_t)(watchdog_us % 1000000)};
        event_add(server->watchdog, &half);
    }
    return 0;
}
