/* server.c - the daemon's one loop: read -> decide -> commit -> reply; its life and its clock */
#include "daemon/server.h"

#include "daemon/peer_uid.h"
#include "daemon/server_state.h"
#include "daemon/socket_group.h"
#include "proto/notify.h"
#include "proto/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    FD_RESERVE = 64, /* descriptors for SQLite, certificates, accept */
    SERVER_LINE_MAX = 2048,
    HALF_OPEN = MS_HALF_OPEN_MAX + MS_HALF_OPEN_UNIX, /* one listener of each kind */
    BEFORE_WELCOME = HALF_OPEN + FD_RESERVE + 2 * MS_WAITING_MAX,
};

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
void server_judge_standstill(struct server *server, int64_t mono_ms)
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
    server_judge_standstill(server, now.mono_ms);
    sched_apply(server->sched, event, now);
}

void server_arm(struct event *event, int64_t ms)
{
    struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
                           .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    evtimer_add(event, &wait);
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

void server_stop(struct server *server, int status, int64_t grace_ms, const char *why)
{
    int64_t now = server_mono_ms();
    if (server->is_stopping) {
        server->stop_by_ms = now;
        return;
    }
    char state[MS_TEXT_MAX + 64];
    char *line = server->exit_text;
    ms_text_copy(line, sizeof(server->exit_text), why);
    ms_text_mend((uint8_t *)line, strlen(line), MS_TEXT_LINE); /* a newline begins a variable */
    snprintf(state, sizeof(state), "STOPPING=1\nSTATUS=stopping: %s", line);
    ms_notify(state);
    server->is_stopping = 1;
    server->exit_status = status;
    server->stop_by_ms = now + grace_ms;
    server_close_listeners(server);
}

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Soft limit up to the hard one: the soft one is low for the sake of select(2), which we do not
 * use. Then how many connections fit, and how many may wait to become one. */
static void share_descriptors(struct server *server)
{
    struct rlimit limit;
    server->conns_max = MS_CONNS_MAX;
    server->waiting_max = MS_WAITING_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= MS_CONNS_MAX + BEFORE_WELCOME) {
        return;
    }
    size_t few = limit.rlim_cur / 16; /* for each of two listeners */
    server->waiting_max = few < MS_WAITING_MAX ? few : MS_WAITING_MAX;
    size_t kept = HALF_OPEN + FD_RESERVE + 2 * server->waiting_max;
    size_t rest = limit.rlim_cur > 2 * kept ? limit.rlim_cur - kept : limit.rlim_cur / 2;
    server->conns_max = rest < MS_CONNS_MAX ? rest : MS_CONNS_MAX;
}

int server_open(const struct server_setup *setup, struct server **ret, struct ms_err *err)
{
    struct server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the server");
    }
    server->uid_asker = peer_uid_open();
    server->options = setup->options;
    server->sched = setup->sched;
    server->store = setup->store;
    server->reload = setup->reload;
    server->reload_arg = setup->reload_arg;
    clients_init(&server->clients);
    server_turn_init(server);
    share_descriptors(server);
    places_init(&server->places, server->conns_max);
    places_set_nodes(&server->places, setup->options->sched.nodes_per_certificate);
    server->base = event_base_new();
    int rc = server->base == NULL ? ms_fail(err, MS_E_NOMEM, "no memory for the event loop")
                                  : server_add_events(server, err);
    if (rc == 0) {
        rc = server_listen(server, err);
    }
    if (rc < 0) {
        server_close(server);
        return rc;
    }
    standstill_init(&server->still, server_mono_ms(), clock_us(CLOCK_BOOTTIME) / 1000);
    /* deadlines run since loading ended, and nobody is heard before the loop begins */
    standstill_expect(&server->still, sched_clock_ms(server->sched), 0);
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
    server_destroy_clients(server);
    clients_fini(&server->clients);
    places_fini(&server->places);
    server_close_listeners(server);
    server_names_close(server);
    for (size_t i = 0; i < SERVER_LISTENERS_MAX; i++) {
        doorway_fini(&server->doors[i]);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(events); i++) {
        if (events[i] != NULL) {
            event_free(events[i]);
        }
    }
    if (server->base != NULL) {
        event_base_free(server->base);
    }
    if (server->uid_asker >= 0) {
        close(server->uid_asker);
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
    server_judge_standstill(server, now); /* in the commit, too */
    int64_t until = server->is_stopping ? server->stop_by_ms : sched_deadline(server->sched);
    int64_t wait = until == INT64_MAX ? INT64_MAX : until - now;
    if (wait != INT64_MAX) {
        int64_t pulse = standstill_pulse_ms(server->options->sched.lease_ms);
        wait = wait < 1 ? 1 : wait > pulse ? pulse : wait;
        server_arm(server->wake, wait);
    } else {
        evtimer_del(server->wake);
    }
    standstill_expect(&server->still, now, wait);
}

/* Somebody is to be reaped, or what is decided already waits for its commit. */
static int is_in_hand(const struct server *server)
{
    size_t n = 0;
    (void)sched_effects(server->sched, &n);
    return n > 0 || server->clients.closed != NULL;
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
    server_say_status(server);
}

const char *server_exit_text(const struct server *server)
{
    return server->exit_text;
}

int server_run(struct server *server, struct ms_err *err)
{
    server->listening = 1;
    server_look_at_disk(server);
    int rc = server_tick(server, err); /* what loading decided */
    announce(server);
    while (rc == 0 && !(server->is_stopping &&
                        (server->clients.used == 0 || server_mono_ms() >= server->stop_by_ms))) {
        prepare_wait(server);
        int flags = is_in_hand(server) ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE;
        if (event_base_loop(server->base, flags) < 0) {
            return ms_fail_errno(err, MS_E_IO, "the event loop failed");
        }
        rc = server_tick(server, err);
    }
    server->listening = 0;
    return rc < 0 ? rc : server->exit_status;
}
