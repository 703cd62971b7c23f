/* server_state.h - the server's struct, shared by its files; nothing else includes it */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include "daemon/clients.h"
#include "daemon/histogram.h"
#include "daemon/listen.h"
#include "daemon/server.h"
#include "daemon/standstill.h"

enum { SERVER_LISTENERS_MAX = 8 };

/* Lines that peers can provoke: one in five seconds, with the number of those left out. */
struct throttle {
    int64_t next_ms;
    unsigned long hidden;
};

struct server {
    const struct options *options;
    struct sched *sched;
    struct store *store;
    server_reload_fn *reload;
    void *reload_arg;

    struct event_base *base;
    struct listener *listeners[SERVER_LISTENERS_MAX];
    size_t listeners_n;
    int listening;
    SSL_CTX *tls; /* NULL: plain */
    int needs_tls;
    struct clients clients;
    size_t half_open, opened, conns_max;
    struct throttle refused, crowded;

    struct event *wake;     /* the next deadline, or the pulse */
    struct event *idle;     /* a moment after the last commit */
    struct event *watchdog; /* half of WATCHDOG_USEC */
    struct event *check;    /* certificates expire */
    struct event *signals[4];
    int watchdog_due;

    struct standstill still;
    struct ms_shared *tail; /* of the frames that are being sent */
    const uint8_t *tail_source;
    int64_t tick_began_us;           /* 0: nothing happened yet in this iteration */
    struct histogram ticks, commits; /* microseconds */
    uint64_t commit_last_us;
    int is_refusing; /* the disk is full */
    int64_t refusal_said_ms;
    char status[160]; /* the STATUS= that was sent last */

    int is_stopping, closing_sent;
    int exit_status;
    int64_t stop_by_ms;
};

int64_t server_mono_us(void);
int64_t server_mono_ms(void);

/* server.c: one event into the core, with the time and the standstill judged first. */
void server_apply(struct server *server, const struct sched_event *event);
/* Begins the end: nobody new comes in, outputs are flushed within grace_ms. Again: at once. */
void server_stop(struct server *server, int status, int64_t grace_ms, const char *why);

/* server_conn.c: listeners and connections. */
int server_listen(struct server *server, struct ms_err *err);
void server_adjust_listeners(struct server *server);
void server_close_listeners(struct server *server);
void server_close_clients(struct server *server);
void server_reap(struct server *server);
void server_recheck(struct server *server);

/* server_tls.c: certificates. */
int server_load_tls(const struct options *options, SSL_CTX **ret, struct ms_err *err);
void server_check_expiry(struct server *server);
/* Looks at them from now on as often as the options say. */
void server_arm_check(struct server *server);

#endif
