/* server_state.h - the server's struct, shared by its files; nothing else includes it */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include "daemon/clients.h"
#include "daemon/histogram.h"
#include "daemon/listen.h"
#include "daemon/server.h"
#include "daemon/standstill.h"
#include "daemon/throttle.h"

enum {
    SERVER_LISTENERS_MAX = 8,
    SERVER_DRAIN_MS = 5000, /* at the end outputs have this long to get out */
};

struct names;

struct server {
    const struct options *options;
    struct sched *sched;
    struct store *store;
    server_reload_fn *reload;
    void *reload_arg;

    struct event_base *base;
    struct listener *listeners[SERVER_LISTENERS_MAX];
    struct doorway doors[SERVER_LISTENERS_MAX]; /* of each listener */
    size_t listeners_n;
    int uid_asker; /* peer_uid.h; -1: none, addresses are all that is known */
    int listening;
    SSL_CTX *tls; /* NULL: plain */
    int needs_tls;
    struct clients clients;
    size_t conns_max, waiting_max; /* waiting: at each door */
    unsigned long turned_away;     /* since that was said last */
    int64_t turned_away_said_ms;
    int is_crowded;     /* somebody could not get in, and the core was not told yet ... */
    int64_t crowded_ms; /* ... as it was at this time */
    struct places places;
    struct throttle throttle;

    /* a turn is what happens between two commits */
    uint64_t turn;
    size_t turn_bytes;  /* answers of this turn */
    int due_went_first; /* at its beginning: what a full turn had left over */
    size_t unsent;      /* to all clients, as of the last look */
    struct list held, growing, active, fresh, writing;

    struct event *go_on;    /* the held have their turn */
    struct event *doors_on; /* somebody may give way */
    struct event *second;   /* what is idle, what does not read, what was not logged */
    struct event *wake;     /* the next deadline, or the pulse */
    struct event *idle;     /* a moment after the last commit */
    struct event *watchdog; /* half of WATCHDOG_USEC */
    struct event *check;    /* certificates expire */
    struct event *signals[4];
    int watchdog_due;

    struct standstill still;
    struct ms_shared *tail; /* of the frames that are being sent */
    const uint8_t *tail_source;
    int64_t tick_began_us;                      /* 0: nothing happened yet in this iteration */
    int64_t tick_cpu_us;                        /* what this thread had computed until then */
    struct histogram ticks, ticks_cpu, commits; /* microseconds */
    uint64_t commit_last_us;
    int is_refusing; /* the disk is full, or nothing would tell when it is */
    int refusal;     /* code: MS_E_FULL, or why there is no reserve */
    int64_t refusal_said_ms;
    char status[160]; /* the STATUS= that was sent last */

    /* server_names.c */
    struct names *names;            /* NULL until somebody has to be asked */
    char own_name[MS_NAME_MAX + 1]; /* of the daemon's own user */
    uint8_t is_told[WHO_MAP_MAX];   /* of user_map: the system gives that name to another, too */

    int is_stopping, closing_sent;
    int exit_status;
    char exit_text[MS_TEXT_MAX + 1]; /* one line: what made it stop */
    int64_t stop_by_ms;
};

int64_t server_mono_us(void);
int64_t server_mono_ms(void);
int64_t server_cpu_us(void); /* of this thread */

/* Before the core judges anyone by the clock: did we stand still ourselves? */
void server_judge_standstill(struct server *server, int64_t mono_ms);
/* server.c: one event into the core, with the time and the standstill judged first. */
void server_apply(struct server *server, const struct sched_event *event);
void server_arm(struct event *event, int64_t ms);
/* Begins the end: nobody new comes in, outputs are flushed within grace_ms. Again: at once. */
void server_stop(struct server *server, int status, int64_t grace_ms, const char *why);

/* Logs a line that a peer may have provoked; its first word is the event (throttle.h). */
void server_log(struct server *server, enum ms_log_level level, const char *fmt, ...)
    MS_PRINTF(3, 4);

/* server_tick.c: what an iteration changed: durable first, then visible. MS_E_: only a restart from
 * the disk is safe. */
int server_tick(struct server *server, struct ms_err *err);
/* Before somebody asks for the status: how long ticks took. Finding that out for each tick would be
 * a part of it. */
void server_tell_times(struct server *server);
/* Between two commits: folds the log in; new work is refused while the disk is full. */
void server_look_at_disk(struct server *server);
/* Before an end is asked for: while the disk is full, what is left may have gone to others. */
void server_look_at_room(struct server *server);

/* server_events.c: timers and signals. */
int server_add_events(struct server *server, struct ms_err *err);
void server_say_status(struct server *server); /* STATUS= where it changed */

/* server_accept.c: the listeners. */
int server_listen(struct server *server, struct ms_err *err);
void server_close_listeners(struct server *server);

/* server_door.c: who comes in through them. */
void server_accept(struct listener *listener, int fd, void *server);
void server_adjust_listeners(struct server *server); /* lets in who may, and listens or not */
void server_names_came(struct server *server);       /* who waited for his name waits no more */
void server_tell_crowd(struct server *server);       /* the core, that some cannot get in */
void server_end_mute(struct server *server);         /* who waits and says nothing for long */
void server_send_away(struct server *server);        /* all who wait */

/* server_turn.c: whose turn it is, and how long. */
void server_turn_init(struct server *server);
void server_turn_began(struct server *server); /* something is being worked on */
void server_turn_check(struct server *server); /* ... and may have taken the turn's time */
int server_turn_is_over(const struct server *server);
int server_may_take(void *client); /* for ms_conn_options */
int server_may_grow(void *client);
void server_has_shrunk(void *client);
void server_let_grow(struct server *server); /* those for whom there is room now */
void server_on_work(void *client);
void server_spent(struct client *client, size_t bytes); /* an answer was made */
void server_turn_end(struct server *server);
void server_go_on(struct server *server);

/* server_output.c: what peers have not read. */
void server_sent(struct server *server, struct client *client);
void server_flush(struct server *server); /* what was sent in this turn */
void server_look_at_output(struct server *server);
void server_drop_stalled(struct server *server);

/* server_conn.c: connections and their frames. */
extern const struct ms_conn_handler server_conn_handler;
/* The only end of a client: out of all lists first, then its connection (without on_close; NULL
 * once closed), then itself. */
void server_client_destroy(struct server *server, struct client *client);
void server_destroy_clients(struct server *server); /* all at once */
void server_end_idle(struct server *server);
void server_close_clients(struct server *server);
void server_reap(struct server *server);
void server_recheck(struct server *server);

/* server_names.c: whose connection on a Unix socket this is. */
struct server_who {
    struct ms_account account;
    int is_mapped; /* user_map named it */
};
enum server_name {
    SERVER_NAME_KNOWN,  /* *ret is filled, without a name for TCP */
    SERVER_NAME_LATER,  /* it is asked for; server_names_came follows */
    SERVER_NAME_FAILED, /* nobody could tell */
};
void server_names_open(struct server *server);
enum server_name server_name_of(struct server *server, struct listener *listener, int fd,
                                struct server_who *ret);
/* What user_map calls a uid, by itself or as an account's; NULL: nothing. */
const char *server_mapped_name(const struct server *server, unsigned uid, unsigned account);
void server_names_forget(struct server *server); /* a reload */
void server_names_close(struct server *server);

/* server_tls.c: certificates. */
int server_load_tls(const struct options *options, SSL_CTX **ret, struct ms_err *err);
void server_check_expiry(struct server *server);
/* Looks at them from now on as often as the options say. */
void server_arm_check(struct server *server);

#endif
