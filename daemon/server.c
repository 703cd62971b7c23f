/* server.c - the daemon's one loop: read -> decide -> commit -> reply */
#include "daemon/server.h"

#include "daemon/sched/memory.h"
#include "daemon/server_state.h"
#include "daemon/socket_group.h"
#include "daemon/store/files.h"
#include "proto/notify.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    IDLE_MS = 100,        /* this long without a commit is idle */
    STATUS_MS = 1000,     /* a change shows in systemctl status after this */
    FULL_RETRY_MS = 1000, /* look for free disk again */
    FULL_SAY_MS = 300000, /* and say so every five minutes */
    DRAIN_MS = 5000,      /* SIGTERM: outputs have this long to get out */
    FD_RESERVE = 64,      /* descriptors for SQLite, certificates, accept */
    SERVER_LINE_MAX = 2048,
    HALF_OPEN = MS_HALF_OPEN_MAX + MS_HALF_OPEN_UNIX, /* one listener of each kind */
};

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP};

static int64_t clock_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t server_mono_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t server_mono_ms(void)
{
    return server_mono_us() / 1000;
}

int64_t server_cpu_us(void)
{
    return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

static struct sched_time now_of(struct server *server)
{
    server_turn_began(server);
    return (struct sched_time){.mono_ms = server_mono_ms(),
                               .wall_ms = clock_us(CLOCK_REALTIME) / 1000};
}

/* Before the core judges anyone by the clock: did we stand still ourselves? */
static void judge_standstill(struct server *server, int64_t mono_ms)
{
    int64_t stretch = standstill_check(&server->still, mono_ms, clock_us(CLOCK_BOOTTIME) / 1000,
                                       server->options->sched.lease_ms);
    if (stretch > 0) {
        ms_log(stretch > STANDSTILL_MIN_MS ? MS_LOG_WARNING : MS_LOG_INFO,
               "scheduler.stood_still ms=%lld text=\"stretching every lease by it\"",
               (long long)stretch);
        sched_stood_still(server->sched, stretch);
    }
}

void server_apply(struct server *server, const struct sched_event *event)
{
    struct sched_time now = now_of(server);
    judge_standstill(server, now.mono_ms);
    sched_apply(server->sched, event, now);
}

void server_log(struct server *server, enum ms_log_level level, const char *fmt, ...)
{
    char line[SERVER_LINE_MAX];
    unsigned long hidden = 0;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n < 0 || !throttle_pass(&server->throttle, line, server_mono_ms(), &hidden)) {
        return;
    }
    if (hidden > 0) {
        ms_log(MS_LOG_WARNING, "log.throttled event=%.*s lines=%lu", (int)strcspn(line, " "), line,
               hidden);
    }
    ms_log(level, "%s", line);
}

/* ---- the tick -----------------------------------------------------------------------------------
 */

static void refuse_writes(struct server *server)
{
    char text[MS_TEXT_MAX + 1];
    int64_t now = server_mono_ms();
    uint64_t free_kib = store_free_bytes(server->options->database) / 1024;
    snprintf(
        text, sizeof(text),
        "the disk of the database %s is full (%llu KiB free, %u KiB are kept in reserve): free "
        "space there; running jobs go on",
        server->options->database, (unsigned long long)free_kib, MS_STORE_RESERVE / 1024);
    sched_refuse_writes(server->sched, text);
    if (!server->is_refusing || now - server->refusal_said_ms > FULL_SAY_MS) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "store.full text=%s", ms_log_quote(quoted, sizeof(quoted), text));
        server->refusal_said_ms = now;
    }
    server->is_refusing = 1;
}

static void accept_writes(struct server *server)
{
    if (server->is_refusing) {
        server->is_refusing = 0;
        sched_refuse_writes(server->sched, "");
        ms_log(MS_LOG_NOTICE, "store.space text=\"there is space again, taking new work\"");
    }
}

static void arm(struct event *event, int64_t ms)
{
    struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
                           .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    evtimer_add(event, &wait);
}

static int commit(struct server *server, const struct sched_effect *effects, size_t n,
                  struct ms_err *err)
{
    size_t durable = 0;
    for (size_t i = 0; i < n; i++) {
        durable += sched_effect_is_durable(effects[i].kind) != 0;
    }
    if (durable == 0 || server->store == NULL) {
        return 0;
    }
    int64_t began = server_mono_us();
    int rc = store_commit(server->store, effects, n, err);
    if (rc == MS_E_NOMEM && memory_spend()) { /* decided already: the reserve is for this, too */
        rc = store_commit(server->store, effects, n, err);
    }
    server->commit_last_us = (uint64_t)(server_mono_us() - began);
    histogram_add(&server->commits, server->commit_last_us);
    if (rc < 0) {
        return rc;
    }
    if (rc == 1) {
        refuse_writes(server);
    }
    arm(server->idle, server->is_refusing ? FULL_RETRY_MS : IDLE_MS);
    return 0;
}

/* Effects that share a tail follow each other: its copy lives until another one, or the tick's end.
 */
static struct ms_shared *tail_of(struct server *server, const struct sched_effect *effect)
{
    if (server->tail == NULL || server->tail_source != effect->tail) {
        ms_shared_unref(server->tail);
        server->tail = ms_shared_create(effect->tail, effect->tail_bytes);
        server->tail_source = effect->tail;
    }
    return server->tail;
}

static void tail_drop(struct server *server)
{
    ms_shared_unref(server->tail);
    server->tail = NULL;
}

static void send_frame(struct server *server, const struct client *client,
                       const struct sched_effect *effect)
{
    /* above the hard limit it closes itself, and on_close says why */
    if (effect->tail_bytes == 0) {
        (void)ms_conn_send_bytes(client->conn, effect->frame, effect->frame_bytes, NULL);
        return;
    }
    struct ms_shared *tail = tail_of(server, effect);
    if (tail == NULL || ms_conn_send_shared(client->conn, effect->frame, effect->frame_bytes, tail,
                                            NULL) == MS_E_NOMEM) {
        ms_conn_close(client->conn); /* half told is worse: it registers again */
    }
}

static void send_answer(struct server *server, const struct sched_effect *effect)
{
    struct client *client = clients_find(&server->clients, effect->conn);
    size_t size = 0;
    uint8_t *frame = client != NULL && server->store != NULL
                         ? store_answer(server->store, effect->read, &size)
                         : NULL;
    if (frame != NULL) {
        (void)ms_conn_send_bytes(client->conn, frame, size, NULL);
    } else if (client != NULL) {
        ms_conn_close(client->conn); /* no memory even to say so */
    }
    free(frame);
}

static void carry_out(struct server *server, const struct sched_effect *effect)
{
    struct client *client = NULL;
    switch (effect->kind) {
    case SCHED_DO_SEND:
        client = clients_find(&server->clients, effect->conn);
        if (client != NULL) {
            send_frame(server, client, effect);
            server_sent(server, client);
        }
        break;
    case SCHED_DO_CLOSE:
        client = clients_find(&server->clients, effect->conn);
        if (client != NULL) {
            ms_conn_close(client->conn);
        }
        break;
    case SCHED_DO_LOG:
        server_log(server, effect->level, "%s", effect->text);
        break;
    case SCHED_DO_READ:
        send_answer(server, effect);
        break;
    case SCHED_DO_EXIT:
        ms_log(effect->status == 0 ? MS_LOG_NOTICE : MS_LOG_ERR, "scheduler.exit status=%d %s",
               effect->status, effect->text);
        server_stop(server, effect->status, DRAIN_MS, "the job is over");
        break;
    case SCHED_DO_PUT_JOB:
    case SCHED_DO_PUT_MEMBER:
    case SCHED_DO_DROP_MEMBERS:
    case SCHED_DO_DROP_JOB:
    case SCHED_DO_PUT_EVENT:
    case SCHED_DO_PUT_META:
        break; /* committed already */
    }
}

static struct sched_times times_of(const struct histogram *histogram)
{
    return (struct sched_times){.n = histogram->n,
                                .p50_us = histogram_at(histogram, 500),
                                .p99_us = histogram_at(histogram, 990),
                                .p999_us = histogram_at(histogram, 999),
                                .max_us = histogram->max};
}

/* What the iteration changed: durable first, then visible. */
static int tick(struct server *server, struct ms_err *err)
{
    server_reap(server);
    server_look_at_output(server);
    int64_t now = server_mono_ms();
    judge_standstill(server, now);
    if (sched_deadline(server->sched) <= now && !server->is_stopping) {
        server_apply(server, &(struct sched_event){.kind = SCHED_EV_TIME});
    }
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(server->sched, &n);
    int rc = commit(server, effects, n, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        carry_out(server, &effects[i]);
    }
    tail_drop(server);
    sched_begin_tick(server->sched);
    if (n > 0 && !evtimer_pending(server->idle, NULL)) {
        arm(server->idle, STATUS_MS);
    }
    if (server->is_stopping && !server->closing_sent) {
        server->closing_sent = 1;
        server_close_clients(server);
    }
    server_adjust_listeners(server);
    if (server->tick_began_us != 0) {
        histogram_add(&server->ticks, (uint64_t)(server_mono_us() - server->tick_began_us));
        histogram_add(&server->ticks_cpu, (uint64_t)(server_cpu_us() - server->tick_cpu_us));
    }
    server_turn_end(server);
    sched_set_driver_stats(server->sched, &(struct sched_driver_stats){
                                              .ticks = times_of(&server->ticks),
                                              .ticks_cpu = times_of(&server->ticks_cpu),
                                              .commits = times_of(&server->commits),
                                              .commit_last_us = server->commit_last_us,
                                              .clients = (uint32_t)places_used(&server->places)});
    if (server->watchdog_due) {
        server->watchdog_due = 0;
        ms_notify("WATCHDOG=1");
    }
    return 0;
}

/* ---- the end ------------------------------------------------------------------------------------
 */

void server_stop(struct server *server, int status, int64_t grace_ms, const char *why)
{
    int64_t now = server_mono_ms();
    if (server->is_stopping) {
        server->stop_by_ms = now;
        return;
    }
    char state[256];
    snprintf(state, sizeof(state), "STOPPING=1\nSTATUS=stopping: %s", why);
    ms_notify(state);
    server->is_stopping = 1;
    server->exit_status = status;
    server->stop_by_ms = now + grace_ms;
    server_close_listeners(server);
}

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
    ms_log(MS_LOG_NOTICE, "scheduler.stop signal=%s", name);
    server_apply(server, &(struct sched_event){.kind = SCHED_EV_DRAIN});
    server_stop(server, status, DRAIN_MS, "a signal");
}

/* ---- timers and signals -------------------------------------------------------------------------
 */

static void say_status(struct server *server)
{
    struct sched_counts counts;
    char status[sizeof(server->status)];
    sched_count(server->sched, &counts);
    snprintf(status, sizeof(status),
             "STATUS=%u jobs placed, %u queued, %u nodes (%u idle, %u lost), last commit %.1f ms%s",
             counts.jobs_placed, counts.jobs_queued, counts.nodes_registered, counts.nodes_idle,
             counts.nodes_lost, (double)server->commit_last_us / 1000,
             server->is_refusing ? "; THE DISK IS FULL" : "");
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
    if (server->store != NULL) {
        if (store_idle(server->store) == 1) {
            refuse_writes(server);
            arm(server->idle, FULL_RETRY_MS);
        } else {
            accept_writes(server);
        }
    }
    say_status(server);
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
    server_end_idle(server);
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

static int add_events(struct server *server, struct ms_err *err)
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

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Soft limit up to the hard one: the soft one is low for the sake of select(2), which we do not
 * use. Returns how many connections fit. */
static size_t raise_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return MS_CONNS_MAX;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > MS_CONNS_MAX + HALF_OPEN + FD_RESERVE) {
        return MS_CONNS_MAX;
    }
    size_t kept = HALF_OPEN + FD_RESERVE;
    return limit.rlim_cur > 2 * kept ? limit.rlim_cur - kept : limit.rlim_cur / 2;
}

int server_open(const struct server_setup *setup, struct server **ret, struct ms_err *err)
{
    struct server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the server");
    }
    server->options = setup->options;
    server->sched = setup->sched;
    server->store = setup->store;
    server->reload = setup->reload;
    server->reload_arg = setup->reload_arg;
    clients_init(&server->clients);
    server_turn_init(server);
    signal(SIGPIPE, SIG_IGN);
    server->conns_max = raise_limits();
    places_init(&server->places, server->conns_max);
    server->base = event_base_new();
    int rc = server->base == NULL ? ms_fail(err, MS_E_NOMEM, "no memory for the event loop")
                                  : add_events(server, err);
    if (rc == 0) {
        rc = server_listen(server, err);
    }
    if (rc < 0) {
        server_close(server);
        return rc;
    }
    standstill_init(&server->still, server_mono_ms(), clock_us(CLOCK_BOOTTIME) / 1000);
    *ret = server;
    return 0;
}

void server_close(struct server *server)
{
    if (server == NULL) {
        return;
    }
    struct event *events[] = {server->wake,       server->idle,       server->watchdog,
                              server->check,      server->signals[0], server->signals[1],
                              server->signals[2], server->signals[3], server->doors_on,
                              server->go_on,      server->second};
    clients_fini(&server->clients);
    places_fini(&server->places);
    server_close_listeners(server);
    server_names_close(server);
    for (size_t i = 0; i < MS_ARRAY_SIZE(events); i++) {
        if (events[i] != NULL) {
            event_free(events[i]);
        }
    }
    if (server->base != NULL) {
        event_base_free(server->base);
    }
    SSL_CTX_free(server->tls);
    free(server);
}

const char *server_address(const struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        if (!listener_is_unix(server->listeners[i])) {
            return listener_address(server->listeners[i]);
        }
    }
    return "";
}

/* How long the loop may wait, and the appointment by which a standstill is measured. */
static void prepare_wait(struct server *server)
{
    int64_t now = server_mono_ms();
    int64_t until = server->is_stopping ? server->stop_by_ms : sched_deadline(server->sched);
    int64_t wait = until == INT64_MAX ? INT64_MAX : until - now;
    if (wait != INT64_MAX) {
        int64_t pulse = standstill_pulse_ms(server->options->sched.lease_ms);
        wait = wait < 1 ? 1 : wait > pulse ? pulse : wait;
        arm(server->wake, wait);
    } else {
        evtimer_del(server->wake);
    }
    standstill_expect(&server->still, now, wait);
}

static void announce(struct server *server)
{
    for (size_t i = 0; i < server->listeners_n; i++) {
        const struct listener *listener = server->listeners[i];
        ms_log(MS_LOG_NOTICE, "scheduler.listen address=%s tls=%s", listener_address(listener),
               listener_is_unix(listener) ? "unix"
               : server->needs_tls        ? "on"
                                          : "off");
    }
    const struct options *options = server->options;
    if (options->sched.mode == SCHED_STANDING && options->socket[0] != '\0' &&
        options->socket_gid == SOCKET_GROUP_NONE) {
        ms_log(MS_LOG_NOTICE,
               "socket.private path=%s reason=\"no group may use it: only root and "
               "the daemon's user can, see socket_group in msschedd(8)\"",
               options->socket);
    }
    ms_notify("READY=1");
    say_status(server);
}

int server_run(struct server *server, struct ms_err *err)
{
    server->listening = 1;
    if (server->store != NULL && store_idle(server->store) == 1) {
        refuse_writes(server);
        arm(server->idle, FULL_RETRY_MS);
    }
    int rc = tick(server, err); /* what loading decided */
    announce(server);
    while (rc == 0 && !(server->is_stopping &&
                        (server->clients.used == 0 || server_mono_ms() >= server->stop_by_ms))) {
        prepare_wait(server);
        int flags = server->clients.closed != NULL ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE;
        if (event_base_loop(server->base, flags) < 0) {
            return ms_fail_errno(err, MS_E_IO, "the event loop failed");
        }
        rc = tick(server, err);
    }
    server->listening = 0;
    return rc < 0 ? rc : server->exit_status;
}
