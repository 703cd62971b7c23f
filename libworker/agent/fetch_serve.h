/* fetch_serve.h - a node gives the results of its jobs to those whom the scheduler sent
 *
 *     agent's thread           thread of this room                             client
 *     FetchGrant -> _ask ->    open the file, draw a token, listen
 *                              FetchReady{token, address} -> scheduler -> FetchTicket
 *                              <- TLS, Hello, FetchRead{token} ---------------
 *                              -- FetchChunk ... FetchChunk{sha256} --------->
 *
 * A token opens one file for one connection, once, within MS_FETCH_CLAIM_MS: the one that was
 * granted, or, where the claim says so, something that the same job has saved on this node, which
 * is for whoever may have the rest. There is no listener while nobody is expected. The thread is
 * its own, so that a slow disk delays no heartbeat. */
#ifndef FETCH_SERVE_H
#define FETCH_SERVE_H

#include "proto/cluster.pb-c.h"
#include "proto/err.h"
#include "proto/limits.h"
#include "proto/tls.h"

struct fetch_serve;

/* Which result is asked for. */
struct fetch_want {
    uint64_t job;
    char job_tag[MS_JOB_TAG_LEN + 1]; /* "": of whichever job has the number */
    uint32_t rank;
    unsigned what; /* enum ms_fetch */
};

/* What of that job's is read in its place, by who has the token. Borrowed for the call. */
struct fetch_saved {
    unsigned what; /* enum ms_saved */
    const char *directory, *prefix;
    uint64_t step, borrower;
};

struct fetch_serve_config { /* strings are borrowed for the life of the object */
    const char *bind_ip;    /* where clients find this node, as its data plane */
    int port_min, port_max; /* 0, 0: any */
    /* The node's context as it is now, a reference of the caller's; NULL: plain. This room's
     * thread. */
    SSL_CTX *(*get_tls)(void *arg);
    const char *software;
    /* The file's descriptor, or a negative ms_code. This room's thread. */
    int (*open_file)(void *arg, const struct fetch_want *want, struct ms_err *err);
    /* Likewise; want is what was granted. NULL: this node has nothing of that kind. */
    int (*open_saved)(void *arg, const struct fetch_want *want, const struct fetch_saved *saved,
                      struct ms_err *err);
    /* Sends the answer to the scheduler. This room's thread. */
    void (*answer)(void *arg, const Ms__FetchReady *ready);
    void *arg;
};

/* Returns owned. The thread begins with the first ask. */
int fetch_serve_create(const struct fetch_serve_config *cfg, struct fetch_serve **ret,
                       struct ms_err *err);
/* Ends what is being served and joins the thread. NULL allowed. */
void fetch_serve_destroy(struct fetch_serve *serve);

/* Hands a grant over; the answer comes through cfg.answer. Any thread, never blocks. */
void fetch_serve_ask(struct fetch_serve *serve, const Ms__FetchGrant *grant);

/* Opens path for reading if it is a regular file, and nothing that its name leads to. Returns a
 * descriptor or a negative ms_code. */
int fetch_open(const char *path, struct ms_err *err);

#endif
