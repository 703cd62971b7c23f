/* fetch.c - one result of a job: a ticket from the scheduler, the bytes from the node */
#include "cli/fetch.h"

#include "proto/addr.h"
#include "proto/clock.h"
#include "proto/tls_pin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW = 4,     /* reads under way: hides the way there and back */
    TRIES_MAX = 5,  /* connections without a byte of progress */
    PAUSE_MS = 300, /* between two of them; grows */
};

struct fetching {
    struct cli *cli;
    const struct fetch_wish *wish;
    struct download *download;
    Ms__FetchTicket *ticket; /* owned; of the connection in hand */
    int is_unused;           /* no connection had it yet: it takes a place of ours at the node */
    int64_t asked_ms;        /* when it was asked for, by the monotonic clock */
    struct client *client;   /* to the node; owned */
    uint64_t size;           /* of the whole file: that of the last ticket */
    char sha256[MS_SHA256_HEX];
    int has_grown; /* what was there already was the beginning of it */
    void (*on_progress)(void *arg, uint64_t have, uint64_t size);
    void *arg;
};

const char *fetch_name(const struct fetch_wish *wish, char *buf, size_t size)
{
    if (wish->saved != NULL) {
        snprintf(buf, size, "%s", wish->saved->name);
        return buf;
    }
    switch (wish->what) {
    case MS_FETCH_WEIGHTS:
        snprintf(buf, size, "weights.safetensors");
        break;
    case MS_FETCH_METRICS:
        snprintf(buf, size, "metrics.jsonl");
        break;
    default:
        snprintf(buf, size, "worker_%u.log", wish->rank);
        break;
    }
    return buf;
}

/* ---- the ticket ---- */

static void drop_ticket(struct fetching *f)
{
    if (f->ticket != NULL) {
        ms_wire_free(&f->ticket->base);
        f->ticket = NULL;
    }
}

/* What is saved is asked for by the log beside it, and of that the scheduler and the node speak
 * where it cannot be had. */
static int speak_of_saved(const struct fetch_wish *wish, int rc, struct ms_err *err)
{
    char of_log[64];
    const struct ms_err why = *err;
    const int n = snprintf(of_log, sizeof(of_log), "log of job %" PRIu64 " rank %" PRIu32 ": ",
                           wish->job, wish->rank);
    return wish->saved == NULL || strncmp(why.text, of_log, (size_t)n) != 0
               ? rc
               : ms_fail(err, rc,
                         "checkpoints of job %" PRIu64 " rank %" PRIu32 ", beside its log: %.310s",
                         wish->job, wish->rank, why.text + n);
}

static int get_ticket(struct fetching *f, struct ms_err *err)
{
    Ms__Fetch request = MS__FETCH__INIT;
    ProtobufCMessage *msg = NULL;
    struct ms_addr addr;
    drop_ticket(f);
    f->is_unused = 0;
    f->asked_ms = ms_mono_ms();
    request.job = f->wish->job;
    request.rank = f->wish->rank;
    request.what = f->wish->what;
    int rc = client_call_of_node(f->cli->client, MS_MSG_FETCH, &request.base, MS_MSG_FETCH_TICKET,
                                 &msg, err);
    if (rc != MS_OK) {
        return speak_of_saved(f->wish, rc, err);
    }
    f->ticket = (Ms__FetchTicket *)msg;
    f->is_unused = 1;
    /* an address comes from a node: it may send us to another machine, not to sockets of this one
     */
    rc = ms_addr_parse(f->ticket->address, 0, &addr, err);
    if (rc == MS_OK && addr.is_unix) {
        rc = ms_fail(err, MS_E_PROTOCOL, "node %s names no address of a network: %.100s",
                     f->ticket->node_id, f->ticket->address);
    }
    return rc;
}

/* ---- the connection ---- */

/* Where the scheduler was reached with a certificate, the node must show one of the same CA and of
 * its name; else the ticket says which certificate it has. Plain only where the cluster is. */
static int make_context(const struct fetching *f, SSL_CTX **ret, struct ms_err *err)
{
    const Ms__FetchTicket *ticket = f->ticket;
    if (f->cli->tls != NULL) {
        if (ticket->cert_name[0] == '\0') {
            return ms_fail(err, MS_E_REFUSED,
                           "node %s has no certificate, and this cluster uses TLS",
                           ticket->node_id);
        }
        SSL_CTX_up_ref(f->cli->tls);
        *ret = f->cli->tls;
        return MS_OK;
    }
    *ret = NULL;
    return ticket->cert_sha256[0] != '\0' ? ms_tls_pin_context(ticket->cert_sha256, ret, err)
                                          : MS_OK;
}

static int connect_node(struct fetching *f, struct ms_err *err)
{
    SSL_CTX *tls = NULL;
    int rc = make_context(f, &tls, err);
    if (rc != MS_OK) {
        return rc;
    }
    const char *cert_name = tls != NULL ? f->ticket->cert_name : "";
    f->client =
        client_create_node(f->cli->base, f->ticket->address, tls, cert_name, f->ticket->node_id);
    rc = f->client != NULL ? client_connect(f->client, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory for a connection");
    if (rc == MS_OK) {
        rc = client_wait_open(f->client, err);
    }
    SSL_CTX_free(tls); /* the connection has its own reference */
    return rc;
}

/* ---- the bytes ---- */

static int ask(struct fetching *f, uint64_t offset, int with_token, uint32_t *ret_id,
               struct ms_err *err)
{
    Ms__FetchRead request = MS__FETCH_READ__INIT;
    if (with_token) {
        const struct fetch_saved *saved = f->wish->saved;
        request.token = f->ticket->token;
        request.saved = saved != NULL ? saved->what : 0;
        request.directory = (char *)(saved != NULL ? saved->directory : "");
        request.prefix = (char *)(saved != NULL ? saved->prefix : "");
        request.step = saved != NULL ? saved->step : 0;
        request.borrower = saved != NULL ? saved->borrower : 0;
    }
    request.offset = offset;
    return client_send(f->client, MS_MSG_FETCH_READ, &request.base, ret_id, err);
}

/* It is read into memory, and from its beginning each time. */
static int is_text(const struct fetching *f)
{
    return f->download->is_nameless;
}

/* How long a text is comes with its first piece. */
static int learn_size(struct fetching *f, const Ms__FetchChunk *chunk, struct ms_err *err)
{
    const unsigned wanted = f->wish->saved != NULL ? f->wish->saved->what : 0;
    if (chunk->saved != wanted) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "node %s on host %.64s runs a release that hands no checkpoints out: update "
                       "msworker there, or copy by hand from beside %.160s",
                       f->ticket->node_id, f->ticket->host_name, f->ticket->log_path);
    }
    if (is_text(f) && f->size == 0) {
        f->size = chunk->size <= MS_SAVED_LIST_MAX ? chunk->size : 0;
    }
    return MS_OK;
}

/* Takes the piece at the end of what we have; *ret_n its length. */
static int take(struct fetching *f, uint32_t id, size_t *ret_n, struct ms_err *err)
{
    ProtobufCMessage *msg = NULL;
    int rc =
        client_await(f->client, id, MS_MSG_FETCH_CHUNK, ms_mono_ms() + CLIENT_ANSWER_MS, &msg, err);
    if (rc != MS_OK) {
        return rc == MS_E_TIMEOUT ? ms_fail(err, rc, "node %s sends nothing for %d s",
                                            f->ticket->node_id, CLIENT_ANSWER_MS / 1000)
                                  : rc;
    }
    const Ms__FetchChunk *chunk = (const Ms__FetchChunk *)msg;
    size_t n = chunk->data.len;
    uint64_t left = chunk->size > f->download->have ? chunk->size - f->download->have : 0;
    rc = learn_size(f, chunk, err);
    if (rc != MS_OK) {
        ms_wire_free(msg);
        return rc;
    }
    if (f->download->is_done && left > 0) { /* it has grown over there */
        rc = download_fail_exists(f->download, err);
    } else if (chunk->size != f->size) { /* else it goes on until the disk is full */
        rc = ms_fail(
            err, MS_E_PROTOCOL, "node %s promised a file of %llu bytes and sends one of %llu",
            f->ticket->node_id, (unsigned long long)f->size, (unsigned long long)chunk->size);
    } else if (chunk->offset != f->download->have || n > left || (n == 0 && left > 0)) {
        rc = ms_fail(err, MS_E_PROTOCOL, "node %s sent bytes that were not asked for",
                     f->ticket->node_id);
    } else {
        snprintf(f->sha256, sizeof(f->sha256), "%s", chunk->sha256);
        rc = download_add(f->download, chunk->data.data, n, err);
        *ret_n = n;
    }
    ms_wire_free(msg);
    if (rc == MS_OK && f->on_progress != NULL) {
        f->on_progress(f->arg, f->download->have, f->size);
    }
    return rc;
}

/* The first piece tells how long pieces are; from then on several are under way. */
static int pump(struct fetching *f, struct ms_err *err)
{
    uint32_t ids[WINDOW];
    unsigned first = 0;
    unsigned n_ids = 0;
    size_t piece = 0;
    uint32_t id = 0;
    int rc = ask(f, f->download->have, 1, &id, err);
    if (rc == MS_OK) {
        rc = take(f, id, &piece, err);
    }
    uint64_t asked = f->download->have;
    while (rc == MS_OK && f->download->have < f->size) {
        while (rc == MS_OK && n_ids < WINDOW && asked < f->size) {
            rc = ask(f, asked, 0, &ids[(first + n_ids) % WINDOW], err);
            n_ids += rc == MS_OK;
            asked += piece;
        }
        size_t n = 0;
        if (rc == MS_OK) {
            rc = take(f, ids[first], &n, err);
            first = (first + 1) % WINDOW;
            n_ids--;
        }
    }
    return rc;
}

/* One that gets old before its connection is there would be an alarm in the node's log. */
static int has_ticket(const struct fetching *f)
{
    return f->is_unused && ms_mono_ms() - f->asked_ms < MS_FETCH_CLAIM_MS / 2;
}

/* Of the file that comes, as far as is known before its first byte. */
static uint64_t promised(const struct fetching *f)
{
    return f->wish->saved != NULL ? f->wish->saved->bytes : f->ticket->size;
}

/* One connection's worth. *ret_with_node: it came as far as the node, for only the way there is
 * tried again. */
static int attempt(struct fetching *f, int *ret_with_node, struct ms_err *err)
{
    *ret_with_node = 0;
    int rc = has_ticket(f) ? MS_OK : get_ticket(f, err);
    if (rc != MS_OK) {
        return rc;
    }
    if (f->download->is_done && f->download->have != promised(f)) {
        rc = download_fail_exists(f->download, err);
    } else if (is_text(f) || f->download->have > promised(f)) { /* not the same file any more */
        rc = download_restart(f->download, err);
    }
    if (rc == MS_OK) {
        *ret_with_node = 1;
        f->is_unused = 0;
        f->size = promised(f);
        rc = connect_node(f, err);
    }
    if (rc == MS_OK) {
        rc = pump(f, err);
    }
    client_destroy(f->client);
    f->client = NULL;
    return rc;
}

static int may_try_again(int code)
{
    return cli_is_lost(code) || code == MS_E_TIMEOUT || code == MS_E_UNAVAILABLE;
}

/* Names host and path: who is cut off from the node can still ask for the file there. */
static int explain(const struct fetching *f, struct ms_err *err)
{
    struct ms_err why = *err;
    char name[DOWNLOAD_NAME_MAX];
    const struct fetch_saved *saved = f->wish->saved;
    const char *path = saved != NULL && saved->folder != NULL ? saved->folder : f->ticket->log_path;
    const char *slash = path == f->ticket->log_path ? strrchr(path, '/') : path + strlen(path);
    int dir = slash != NULL ? (int)(slash - path) : 0;
    return ms_fail(
        err, MS_E_UNAVAILABLE, "%.180s; the file is on host %.64s: %.*s/%s%s", why.text,
        f->ticket->host_name, dir < 120 ? dir : 120, path, fetch_name(f->wish, name, sizeof(name)),
        f->download->have > 0 && !f->download->is_done ? "; the same command goes on where it tore"
                                                       : "");
}

static int get_all(struct fetching *f, struct ms_err *err)
{
    int tries = 0;
    for (;;) {
        uint64_t before = f->download->have;
        uint64_t size = f->size;
        int with_node = 0;
        int was_kept = has_ticket(f);
        int rc = attempt(f, &with_node, err);
        if (rc == MS_E_REFUSED && with_node && was_kept) {
            continue; /* it got old while what is there was read: a new one is asked for, once */
        }
        if (rc == MS_OK || !with_node || !may_try_again(rc)) {
            return rc;
        }
        /* a file that is another one each time comes no nearer to its end */
        int is_same = tries == 0 || f->size == size;
        tries = is_same && f->download->have > before ? 1 : tries + 1;
        if (tries >= TRIES_MAX) {
            return explain(f, err);
        }
        cli_pause(f->cli, (int64_t)PAUSE_MS * tries);
    }
}

static int run(struct fetching *f, struct ms_err *err)
{
    int rc = get_all(f, err);
    if (rc != MS_OK) {
        return rc;
    }
    int went_on = f->download->resumed > 0;
    rc = download_finish(f->download, f->sha256, err);
    if (rc != MS_E_PROTOCOL) {
        return rc;
    }
    struct ms_err why = *err;
    rc = download_restart(f->download, err);
    if (rc == MS_OK && went_on) { /* what was there may be of another file: once from the start */
        rc = get_all(f, err);
        return rc == MS_OK ? download_finish(f->download, f->sha256, err) : rc;
    }
    *err = why;
    return rc == MS_OK ? ms_err_prefix(err, "the download was thrown away") : rc;
}

/* Metrics and logs of a job that ran then: they only grow. */
static int may_have_grown(const struct fetching *f)
{
    return f->wish->saved == NULL && f->wish->what != MS_FETCH_WEIGHTS && f->ticket != NULL &&
           f->download->have < f->ticket->size;
}

/* The rest of what done is the beginning of. MS_E_PROTOCOL: it came damaged, or is another file. */
static int get_rest(struct fetching *f, const struct download *done, struct ms_err *err)
{
    int fits = 0;
    int rc = get_all(f, err);
    if (rc == MS_OK) {
        rc = download_begins_with(f->download, done, &fits, err);
    }
    if (rc == MS_OK && !fits) {
        rc = MS_E_PROTOCOL;
    }
    return rc == MS_OK ? download_finish(f->download, f->sha256, err) : rc;
}

static int go_on(struct fetching *f, struct ms_err *err)
{
    struct download *done = f->download;
    struct download grown;
    int rc = download_grow(done, &grown, err);
    if (rc != MS_OK) {
        return rc;
    }
    int went_on = grown.resumed > done->have;
    f->download = &grown;
    rc = get_rest(f, done, err);
    if (rc == MS_E_PROTOCOL &&
        went_on) { /* an earlier time's may be wrong: once from what is there */
        rc = download_copy(done, &grown, err);
        rc = rc == MS_OK ? get_rest(f, done, err) : rc;
    }
    if (rc == MS_E_PROTOCOL) { /* it is the beginning of something else, and stays */
        (void)download_restart(&grown, NULL);
        rc = download_fail_exists(done, err);
    }
    f->has_grown = rc == MS_OK;
    done->resumed = grown.resumed;
    f->download = done;
    download_close(&grown);
    return rc;
}

/* Of a file that has its name already the node tells the digest without its bytes: who gives the
 * same command again, because another file of the job tore, shall not hear of a failure. */
static int compare(struct fetching *f, struct ms_err *err)
{
    int rc = get_all(f, err);
    if (rc == MS_E_EXISTS && may_have_grown(f)) {
        return go_on(f, err);
    }
    if (rc == MS_OK && !download_is_same(f->download, f->sha256)) {
        return download_fail_exists(f->download, err);
    }
    if (rc != MS_OK && rc != MS_E_EXISTS) {
        (void)ms_err_prefix(err, "a file of that name is there already, to be compared");
    }
    return rc;
}

static void name_node(const struct fetching *f, struct fetch_result *ret)
{
    snprintf(ret->node_id, sizeof(ret->node_id), "%s", f->ticket->node_id);
    snprintf(ret->host_name, sizeof(ret->host_name), "%s", f->ticket->host_name);
}

int fetch_one(struct cli *cli, const struct fetch_wish *wish, int dir_fd, int force,
              void (*on_progress)(void *arg, uint64_t have, uint64_t size), void *arg,
              struct fetch_result *ret, struct ms_err *err)
{
    char name[DOWNLOAD_NAME_MAX];
    struct download download;
    int rc = download_open(dir_fd, fetch_name(wish, name, sizeof(name)), force, &download, err);
    if (rc == MS_E_EXISTS && !force) {
        struct ms_err why = {0, ""};
        int done = download_open_done(dir_fd, name, &download, &why);
        if (done != MS_OK && done != MS_E_NOT_FOUND) {
            return ms_fail(err, done, "%s", why.text);
        }
        rc = done == MS_OK ? MS_OK : rc; /* else another msctl is at it: as was said */
    }
    if (rc != MS_OK) {
        return rc;
    }
    struct fetching f = {
        .cli = cli, .wish = wish, .download = &download, .on_progress = on_progress, .arg = arg};
    rc = download.is_done ? compare(&f, err) : run(&f, err);
    if (rc == MS_OK) {
        ret->bytes = f.size;
        ret->resumed = download.resumed;
        ret->was_there = download.is_done && !f.has_grown;
        snprintf(ret->sha256, sizeof(ret->sha256), "%s", f.sha256);
        name_node(&f, ret);
    }
    drop_ticket(&f);
    download_close(&download);
    return rc;
}

static int read_text(const struct download *download, char **ret, struct ms_err *err)
{
    char *text = malloc(download->have + 1);
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", download->name);
    }
    if (pread(download->fd, text, download->have, 0) != (ssize_t)download->have) {
        free(text);
        return ms_fail_errno(err, MS_E_IO, "cannot read %s", download->name);
    }
    text[download->have] = '\0';
    *ret = text;
    return MS_OK;
}

int fetch_text(struct cli *cli, const struct fetch_wish *wish, char **ret, size_t *ret_size,
               struct fetch_result *ret_of, struct ms_err *err)
{
    struct download download;
    int rc = download_open_memory(wish->saved->name, &download, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct fetching f = {.cli = cli, .wish = wish, .download = &download};
    rc = get_all(&f, err);
    if (rc == MS_OK && !download_is_same(&download, f.sha256)) {
        rc = ms_fail(err, MS_E_PROTOCOL, "%s came damaged from node %s: try again", download.name,
                     f.ticket->node_id);
    }
    rc = rc == MS_OK ? read_text(&download, ret, err) : rc;
    if (rc == MS_OK) {
        *ret_size = (size_t)download.have;
        name_node(&f, ret_of);
    }
    drop_ticket(&f);
    download_close(&download);
    return rc;
}
