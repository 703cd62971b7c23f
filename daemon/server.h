/* server.h - the daemon's one loop: read -> decide -> commit -> reply
 *
 *     sockets, timers, signals  -> sched_apply ...       (event_base_loop, once)
 *     end of the iteration      -> store_commit, once -> send, log, close
 *
 * Everything happens on one thread. */
#ifndef SERVER_H
#define SERVER_H

#include "daemon/options.h"
#include "daemon/sched/sched.h"
#include "daemon/store/store.h"
#include "proto/err.h"

struct server;

/* SIGHUP: reads the options again; what may change is taken over with server_take_options. Failing
 * leaves everything as it was and fills err. */
typedef int server_reload_fn(void *arg, struct server *server, struct ms_err *err);

struct server_setup {
    const struct options *options; /* borrowed until server_take_options or server_close */
    struct sched *sched;           /* loaded; borrowed until server_close */
    struct store *store;           /* NULL: nothing is durable */
    server_reload_fn *reload;
    void *reload_arg;
};

/* Opens the listeners (or takes those that were passed) and the certificates. Nobody is accepted
 * yet. Returns owned. */
int server_open(const struct server_setup *setup, struct server **ret, struct ms_err *err);
/* Serves until a signal or the end of a dynamic cluster's job. Returns the exit status (>= 0), or
 * an ms_code: a commit that failed, after which only a restart from the disk is safe. */
int server_run(struct server *server, struct ms_err *err);
/* After a server_run that returned a status: what made it stop, one line. Borrowed until
 * server_close. */
const char *server_exit_text(const struct server *server);
void server_close(struct server *server); /* NULL allowed */

/* For the reload: builds the TLS context of the new options, then changes over to them (log level,
 * certificates). On failure the old ones stay. */
int server_take_options(struct server *server, const struct options *options, struct ms_err *err);

/* What a start would say about the address, the certificates, and where database and socket lie,
 * without opening or making anything. */
int server_check_options(const struct options *options, struct ms_err *err);
/* Logs which names of user_map the system gives to other uids. Asks NSS, which may block: for
 * --check-config. */
void server_check_names(const struct options *options);

/* Address as bound of the first TCP listener ("" without one): tests, log. */
const char *server_address(const struct server *server);

#endif
