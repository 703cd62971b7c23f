/* fetch_serve.c - a node gives the results of its jobs to those whom the scheduler sent */
#include "libworker/agent/fetch_serve.h"

#include "libworker/agent/fetch_file.h"
#include "proto/addr.h"
#include "proto/clock.h"
#include "proto/conn.h"
#include "proto/log.h"
#include "proto/thread.h"
#include "proto/tls.h"
#include "proto/tls_pin.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE = MS_LOG_CHUNK_MAX - 1024, /* head room for the message */
    LOOK_AROUND_MS = 1000,           /* for what has expired */
    STILL_MS = 60000,                /* a client that asks for nothing gives its place back */
    BACKLOG = 16,
};

struct ask { /* a grant between the agent's thread and ours */
    struct ask *next;
    uint64_t route;
    struct fetch_want want;
    char principal[MS_PRINCIPAL_MAX + 1];
    char asker[MS_PRINCIPAL_MAX + 1];
    int is_admin;
};

struct grant {
    struct grant *next;
    struct fetch_want want;               /* what was granted */
    struct fetch_file file;               /* what is read: that, or what is saved */
    unsigned saved;                       /* enum ms_saved; 0: what was granted */
    uint8_t token[MS_TOKEN_LEN];          /* nulls once claimed */
    char principal[MS_PRINCIPAL_MAX + 1]; /* who may claim it; "": whoever has the token */
    char asker[MS_PRINCIPAL_MAX + 1];     /* of whose share it is */
    struct visit *visit;                  /* that claimed it; NULL: nobody yet */
    int64_t deadline_ms;
};

struct visit { /* a connection */
    struct visit *next;
    struct fetch_serve *serve;
    struct ms_conn *conn; /* NULL: closed, to be freed */
    struct grant *grant;  /* NULL until the token was shown */
    int64_t deadline_ms;
};

struct fetch_serve {
    struct fetch_serve_config cfg;
    pthread_mutex_t lock; /* guards asks */
    struct ask *asks, **asks_tail;
    pthread_t thread;
    int thread_runs;
    int wake_fd;
    atomic_int ending;

    /* the thread only */
    struct event_base *base;
    struct event *wake, *tick, *accept;
    int listen_fd; /* -1: nobody is expected */
    char address[MS_ADDR_MAX + 1];
    struct grant *grants;
    struct visit *visits;
    unsigned n_grants, n_visits;
    uint8_t piece[PIECE];
};

int fetch_open(const char *path, struct ms_err *err)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO must not hold the thread */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "cannot open %s",
                             path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ms_fail(err, MS_E_REFUSED, "%s is no regular file", path);
    }
    return fd;
}

/* ---- the listener ---- */

static void on_accept(evutil_socket_t fd, short what, void *arg);

static int listen_somewhere(const struct fetch_serve *serve, struct ms_err *err)
{
    struct ms_addr addr;
    int rc = MS_E_INVALID;
    for (int port = serve->cfg.port_min; port <= serve->cfg.port_max; port++) {
        memset(&addr, 0, sizeof(addr));
        snprintf(addr.host, sizeof(addr.host), "%s", serve->cfg.bind_ip);
        addr.port = port;
        rc = ms_addr_listen(&addr, BACKLOG, err);
        if (rc >= 0) {
            return rc;
        }
    }
    return rc != MS_E_EXISTS
               ? rc
               : ms_fail(
                     err, MS_E_EXISTS,
                     "no port from %d to %d (data_port_min, data_port_max) is free for results, "
                     "which need one beside the one that ranks listen on: widen the range",
                     serve->cfg.port_min, serve->cfg.port_max);
}

static void close_listener(struct fetch_serve *serve)
{
    if (serve->accept != NULL) {
        event_free(serve->accept);
        serve->accept = NULL;
    }
    if (serve->listen_fd >= 0) {
        close(serve->listen_fd);
        serve->listen_fd = -1;
    }
}

static int open_listener(struct fetch_serve *serve, struct ms_err *err)
{
    struct sockaddr_storage sa;
    socklen_t size = sizeof(sa);
    if (serve->listen_fd >= 0) {
        return MS_OK;
    }
    int fd = listen_somewhere(serve, err);
    if (fd < 0) {
        return fd;
    }
    serve->listen_fd = fd;
    memset(&sa, 0, sizeof(sa));
    if (getsockname(fd, (struct sockaddr *)&sa, &size) != 0) {
        int rc = ms_fail_errno(err, MS_E_IO, "cannot ask for the port of a socket");
        close_listener(serve);
        return rc;
    }
    ms_addr_print((const struct sockaddr *)&sa, size, serve->address);
    serve->accept = event_new(serve->base, fd, EV_READ | EV_PERSIST, on_accept, serve);
    if (serve->accept == NULL || event_add(serve->accept, NULL) != 0) {
        close_listener(serve);
        return ms_fail(err, MS_E_NOMEM, "no memory for a listener");
    }
    return MS_OK;
}

/* ---- grants ---- */

static void drop_grant(struct fetch_serve *serve, struct grant *grant)
{
    struct grant **link = &serve->grants;
    while (*link != grant) {
        link = &(*link)->next;
    }
    *link = grant->next;
    serve->n_grants--;
    if (grant->visit != NULL) {
        grant->visit->grant = NULL;
    }
    fetch_file_fini(&grant->file);
    OPENSSL_cleanse(grant, sizeof(*grant));
    free(grant);
    if (serve->n_grants == 0) {
        close_listener(serve);
    }
}

/* A claimed file is held for as long as its client asks for pieces: nobody's clients may hold all,
 * and admins get in whoever holds the others. */
static int take_place(const struct fetch_serve *serve, const struct ask *ask, struct ms_err *err)
{
    unsigned of_asker = 0;
    for (const struct grant *g = serve->grants; g != NULL; g = g->next) {
        of_asker += strcmp(g->asker, ask->asker) == 0;
    }
    if (of_asker >= MS_FETCH_GRANTS_OWNER) {
        return ms_fail(err, MS_E_FULL,
                       "%s has %u files of the node under way already, which is one principal's "
                       "share: wait for one to end",
                       ask->asker[0] != '\0' ? ms_principal_show(ask->asker) : "whoever asks",
                       of_asker);
    }
    unsigned places = MS_FETCH_GRANTS_MAX - (ask->is_admin ? 0 : MS_FETCH_GRANTS_ADMIN);
    if (serve->n_grants >= places) {
        return ms_fail(err, MS_E_FULL, "the node serves %u files already: try again", places);
    }
    return MS_OK;
}

static int make_grant(struct fetch_serve *serve, const struct ask *ask, struct grant **ret,
                      struct ms_err *err)
{
    int rc = take_place(serve, ask, err);
    if (rc != MS_OK) {
        return rc;
    }
    int fd = serve->cfg.open_file(serve->cfg.arg, &ask->want, err);
    if (fd < 0) {
        return fd;
    }
    struct grant *grant = (struct grant *)calloc(1, sizeof(*grant));
    if (grant == NULL) {
        close(fd);
        return ms_fail(err, MS_E_NOMEM, "no memory on the node");
    }
    rc = fetch_file_init(&grant->file, fd, err);
    if (rc == MS_OK && getrandom(grant->token, MS_TOKEN_LEN, 0) != MS_TOKEN_LEN) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot get random bytes");
        fetch_file_fini(&grant->file);
    }
    if (rc == MS_OK) {
        rc = open_listener(serve, err);
        if (rc != MS_OK) {
            fetch_file_fini(&grant->file);
        }
    }
    if (rc != MS_OK) {
        free(grant);
        return rc;
    }
    grant->want = ask->want;
    snprintf(grant->principal, sizeof(grant->principal), "%s", ask->principal);
    snprintf(grant->asker, sizeof(grant->asker), "%s", ask->asker);
    grant->deadline_ms = ms_mono_ms() + MS_FETCH_CLAIM_MS;
    grant->next = serve->grants;
    serve->grants = grant;
    serve->n_grants++;
    *ret = grant;
    return MS_OK;
}

static void arm_tick(struct fetch_serve *serve)
{
    struct timeval tv = {LOOK_AROUND_MS / 1000, LOOK_AROUND_MS % 1000 * 1000};
    if (!evtimer_pending(serve->tick, NULL)) {
        evtimer_add(serve->tick, &tv);
    }
}

static void serve_ask(struct fetch_serve *serve, const struct ask *ask)
{
    Ms__FetchReady ready = MS__FETCH_READY__INIT;
    struct ms_err err = {0, ""};
    struct grant *grant = NULL;
    char pin[MS_PIN_HEX + 1] = "";
    SSL_CTX *tls = serve->cfg.get_tls(serve->cfg.arg);
    int rc = tls != NULL ? ms_tls_pin_of(tls, pin, &err) : MS_OK;
    SSL_CTX_free(tls);
    if (rc == MS_OK) {
        rc = make_grant(serve, ask, &grant, &err);
    }
    ready.route = ask->route;
    ready.code = rc;
    ready.text = err.text;
    if (rc == MS_OK) {
        ready.text = (char *)"";
        ready.token.data = grant->token;
        ready.token.len = sizeof(grant->token);
        ready.address = serve->address;
        ready.size = grant->file.size;
        ready.cert_sha256 = pin;
        arm_tick(serve);
    }
    serve->cfg.answer(serve->cfg.arg, &ready);
}

/* ---- visits ---- */

static struct grant *find_grant(struct fetch_serve *serve, const struct ms_peer *peer,
                                const ProtobufCBinaryData *token)
{
    struct grant *found = NULL;
    for (struct grant *g = serve->grants; g != NULL && token->len == MS_TOKEN_LEN; g = g->next) {
        int is_it = CRYPTO_memcmp(g->token, token->data, MS_TOKEN_LEN) == 0; /* in constant time */
        if (is_it && g->visit == NULL && ms_mono_ms() < g->deadline_ms) {
            found = g;
        }
    }
    int is_his = found != NULL &&
                 (found->principal[0] == '\0' || strcmp(found->principal, peer->who.id) == 0);
    return is_his ? found : NULL;
}

/* In place of what was granted. */
static int take_saved(const struct fetch_serve *serve, struct grant *grant,
                      const Ms__FetchRead *request, struct ms_err *err)
{
    const struct fetch_saved saved = {.what = request->saved,
                                      .directory = request->directory,
                                      .prefix = request->prefix,
                                      .step = request->step,
                                      .borrower = request->borrower};
    struct fetch_file file;
    if (serve->cfg.open_saved == NULL) {
        return ms_fail(err, MS_E_UNSUPPORTED, "this node hands out no checkpoints");
    }
    int fd = serve->cfg.open_saved(serve->cfg.arg, &grant->want, &saved, err);
    int rc = fd < 0 ? fd : fetch_file_init(&file, fd, err);
    if (rc == MS_OK) {
        fetch_file_fini(&grant->file);
        grant->file = file;
        grant->saved = request->saved;
    }
    return rc;
}

static int claim(struct visit *visit, const Ms__FetchRead *request, struct ms_err *err)
{
    const struct ms_peer *peer = ms_conn_peer(visit->conn);
    struct grant *grant = find_grant(visit->serve, peer, &request->token);
    if (grant == NULL) {
        ms_log(MS_LOG_WARNING, "fetch.refused name=%s address=%s", MS_QUOTE(peer->who.id),
               peer->address);
        return ms_fail(err, MS_E_REFUSED,
                       "this token opens nothing here: it was used, is older than %d s, or belongs "
                       "to somebody else; ask again: msctl fetch",
                       MS_FETCH_CLAIM_MS / 1000);
    }
    OPENSSL_cleanse(grant->token, sizeof(grant->token));
    grant->visit = visit;
    visit->grant = grant;
    return request->saved == 0 ? MS_OK : take_saved(visit->serve, grant, request, err);
}

static int give_piece(struct visit *visit, uint32_t id, const Ms__FetchRead *request,
                      struct ms_err *err)
{
    struct fetch_file *file = &visit->grant->file;
    Ms__FetchChunk chunk = MS__FETCH_CHUNK__INIT;
    size_t n = 0;
    int rc = fetch_file_read(file, request->offset, visit->serve->piece, PIECE, &n, err);
    if (rc != MS_OK) {
        return rc;
    }
    chunk.offset = request->offset;
    chunk.data.data = visit->serve->piece;
    chunk.data.len = n;
    chunk.size = file->size;
    chunk.saved = visit->grant->saved;
    if (request->offset + n == file->size) {
        chunk.sha256 = file->sha256;
    }
    return ms_conn_send(visit->conn, MS_MSG_FETCH_CHUNK, id, &chunk.base, err);
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct visit *visit = (struct visit *)arg;
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    if (head->type != MS_MSG_FETCH_READ) {
        ms_conn_refuse(conn, head->id, MS_E_REFUSED,
                       "a node answers FetchRead only: the scheduler is elsewhere");
        return;
    }
    int rc = ms_wire_unpack(head->type, bytes, head->length, &msg, &err);
    const Ms__FetchRead *request = (const Ms__FetchRead *)msg;
    if (rc == MS_OK && visit->grant == NULL) {
        rc = claim(visit, request, &err);
    }
    if (rc == MS_OK) {
        visit->deadline_ms = ms_mono_ms() + STILL_MS;
        rc = give_piece(visit, head->id, request, &err);
    }
    ms_wire_free(msg);
    if (rc != MS_OK) {
        ms_conn_refuse(conn, head->id, rc, err.text);
    }
}

static void forget_visit(struct visit *visit)
{
    struct fetch_serve *serve = visit->serve;
    struct visit **link = &serve->visits;
    while (*link != visit) {
        link = &(*link)->next;
    }
    *link = visit->next;
    serve->n_visits--;
    if (visit->grant != NULL) {
        visit->grant->visit = NULL;
        drop_grant(serve, visit->grant);
    }
    free(visit);
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct visit *visit = (struct visit *)arg;
    (void)conn;
    (void)code;
    (void)reason;
    forget_visit(visit);
}

/* Room for one more. Who holds a place and has shown no token yields it to who comes, the oldest
 * first: silence must not keep out those whom the scheduler sent. */
static int make_place(struct fetch_serve *serve)
{
    struct visit *oldest = NULL;
    if (serve->n_visits < MS_FETCH_GRANTS_MAX) {
        return 1;
    }
    for (struct visit *v = serve->visits; v != NULL; v = v->next) { /* the newest is first */
        oldest = v->grant == NULL ? v : oldest;
    }
    if (oldest == NULL) {
        return 0;
    }
    ms_conn_destroy(oldest->conn);
    forget_visit(oldest);
    return 1;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    static const struct ms_conn_handler handler = {.on_frame = on_frame, .on_close = on_close};
    struct fetch_serve *serve = (struct fetch_serve *)arg;
    struct ms_conn_options options = {.software = serve->cfg.software,
                                      .cluster = "fetch",
                                      .plain_role = MS_ROLE_USER,
                                      .let_guests_in = 1};
    (void)what;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        event_del(serve->accept); /* it stays readable: the next tick listens again */
        return;
    }
    if (got < 0) {
        return;
    }
    struct visit *visit = make_place(serve) ? calloc(1, sizeof(*visit)) : NULL;
    if (visit == NULL) {
        close(got);
        return;
    }
    options.tls = serve->cfg.get_tls(serve->cfg.arg);
    visit->serve = serve;
    visit->deadline_ms = ms_mono_ms() + 2 * MS_HANDSHAKE_MS;
    int rc = ms_conn_accept(serve->base, got, &options, &handler, visit, &visit->conn, NULL);
    SSL_CTX_free(options.tls); /* the connection has its own reference */
    if (rc != MS_OK) {
        free(visit);
        return;
    }
    visit->next = serve->visits;
    serve->visits = visit;
    serve->n_visits++;
}

/* ---- the thread ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct fetch_serve *serve = (struct fetch_serve *)arg;
    int64_t now = ms_mono_ms();
    (void)fd;
    (void)what;
    for (struct visit *v = serve->visits; v != NULL; v = v->next) {
        if (now >= v->deadline_ms) {
            ms_conn_close(v->conn); /* on_close comes from the loop, and frees */
            v->deadline_ms = now + STILL_MS;
        }
    }
    for (struct grant *g = serve->grants; g != NULL;) {
        struct grant *next = g->next;
        if (g->visit == NULL && now >= g->deadline_ms) {
            drop_grant(serve, g);
        }
        g = next;
    }
    if (serve->accept != NULL && !event_pending(serve->accept, EV_READ, NULL)) {
        event_add(serve->accept, NULL);
    }
    if (serve->n_grants > 0 || serve->n_visits > 0) {
        arm_tick(serve);
    }
}

static struct ask *take_asks(struct fetch_serve *serve)
{
    pthread_mutex_lock(&serve->lock);
    struct ask *list = serve->asks;
    serve->asks = NULL;
    serve->asks_tail = &serve->asks;
    pthread_mutex_unlock(&serve->lock);
    return list;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct fetch_serve *serve = (struct fetch_serve *)arg;
    uint64_t count = 0;
    ssize_t n = read(fd, &count, sizeof(count));
    (void)n;
    (void)what;
    for (struct ask *ask = take_asks(serve); ask != NULL;) {
        struct ask *next = ask->next;
        serve_ask(serve, ask);
        free(ask);
        ask = next;
    }
    if (atomic_load(&serve->ending)) {
        event_base_loopbreak(serve->base);
    }
}

static void *serve_main(void *arg)
{
    struct fetch_serve *serve = (struct fetch_serve *)arg;
    event_base_loop(serve->base, EVLOOP_NO_EXIT_ON_EMPTY);
    while (serve->visits != NULL) {
        ms_conn_destroy(serve->visits->conn);
        forget_visit(serve->visits);
    }
    while (serve->grants != NULL) {
        drop_grant(serve, serve->grants);
    }
    return NULL;
}

/* ---- what the agent calls ---- */

static void wake(struct fetch_serve *serve)
{
    uint64_t one = 1;
    ssize_t n = write(serve->wake_fd, &one, sizeof(one));
    (void)n; /* a full counter wakes as well */
}

void fetch_serve_ask(struct fetch_serve *serve, const Ms__FetchGrant *grant)
{
    struct ask *ask = (struct ask *)calloc(1, sizeof(*ask));
    if (ask == NULL) {
        return; /* the scheduler tells its client that the node did not answer */
    }
    ask->route = grant->route;
    ask->want = (struct fetch_want){.job = grant->job, .rank = grant->rank, .what = grant->what};
    snprintf(ask->want.job_tag, sizeof(ask->want.job_tag), "%s", grant->job_tag);
    snprintf(ask->principal, sizeof(ask->principal), "%s", grant->principal);
    snprintf(ask->asker, sizeof(ask->asker), "%s", grant->asker);
    ask->is_admin = grant->admin;
    pthread_mutex_lock(&serve->lock);
    *serve->asks_tail = ask;
    serve->asks_tail = &ask->next;
    if (!serve->thread_runs) {
        serve->thread_runs = ms_thread_start(&serve->thread, serve_main, serve) == 0;
    }
    pthread_mutex_unlock(&serve->lock);
    wake(serve);
}

int fetch_serve_create(const struct fetch_serve_config *cfg, struct fetch_serve **ret,
                       struct ms_err *err)
{
    struct fetch_serve *serve = (struct fetch_serve *)calloc(1, sizeof(*serve));
    if (serve == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for serving results");
    }
    serve->cfg = *cfg;
    serve->listen_fd = -1;
    serve->asks_tail = &serve->asks;
    pthread_mutex_init(&serve->lock, NULL);
    serve->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    serve->base = event_base_new();
    if (serve->wake_fd >= 0 && serve->base != NULL) {
        serve->wake = event_new(serve->base, serve->wake_fd, EV_READ | EV_PERSIST, on_wake, serve);
        serve->tick = evtimer_new(serve->base, on_tick, serve);
    }
    if (serve->wake == NULL || serve->tick == NULL || event_add(serve->wake, NULL) != 0) {
        fetch_serve_destroy(serve);
        return ms_fail(err, MS_E_NOMEM, "no memory for serving results");
    }
    *ret = serve;
    return MS_OK;
}

void fetch_serve_destroy(struct fetch_serve *serve)
{
    if (serve == NULL) {
        return;
    }
    if (serve->thread_runs) {
        atomic_store(&serve->ending, 1);
        wake(serve);
        pthread_join(serve->thread, NULL);
    }
    for (struct ask *ask = take_asks(serve); ask != NULL;) {
        struct ask *next = ask->next;
        free(ask);
        ask = next;
    }
    close_listener(serve);
    struct event *const events[] = {serve->wake, serve->tick};
    for (size_t i = 0; i < MS_ARRAY_SIZE(events); i++) {
        if (events[i] != NULL) {
            event_free(events[i]);
        }
    }
    if (serve->base != NULL) {
        event_base_free(serve->base);
    }
    if (serve->wake_fd >= 0) {
        close(serve->wake_fd);
    }
    pthread_mutex_destroy(&serve->lock);
    free(serve);
}
