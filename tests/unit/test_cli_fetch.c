/* test_cli_fetch.c - results from nodes of every manner: torn, damaged, lying */
#include "cli/fetch.h"
#include "cli/saved.h"
#include "proto/addr.h"
#include "proto/cert.h"
#include "proto/certfile.h"
#include "proto/cluster.pb-c.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_BYTES = 50000, PIECE = 1000 };

static struct {
    struct event_base *base;
    int fds[2]; /* of the scheduler, of the node */
    struct event *accepts[2];
    char scheduler[128], node[64];
    const char *root;
    int dir_fd;
    struct cli cli;
    uint8_t file[FILE_BYTES];
    char sha256[MS_SHA256_HEX];
    /* what the two do */
    const char *address; /* in tickets; NULL: the node's */
    const char *named;   /* the certificate that tickets name; NULL: none */
    SSL_CTX *node_tls;   /* what the node shows; NULL: plain */
    int refuse;          /* the scheduler says no */
    int away, away_code; /* so often it says with that code that the node is away ... */
    const char *words;   /* ... and how; NULL: shortly */
    unsigned gone;       /* a bit for each rank whose node is away for good */
    int home_code;       /* why the node with the newest is none; 0: it is "home" */
    int age_s;           /* the clock goes on by this with each ticket */
    int refuse_tokens;   /* the node does, so often */
    int tear_after;      /* pieces a connection; 0: never */
    int tears_left;      /* connections that tear */
    int damage;          /* pieces that are flipped, counted down */
    int overrun, moved;  /* more bytes than the file has; at another offset */
    int endless;         /* chunks whose file grows with each of them */
    unsigned saved;      /* what chunks say they are of */
    unsigned asked;      /* ... and the last claim asked for */
    int grows;           /* tickets whose file grows with each of them */
    /* what was seen */
    int asks, tickets, visits, pieces;
    uint64_t first_offset; /* of the last visit */
} w;

/* In place of the C library's: for libevent too. */
static int skew_s;

MS_API int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret);
    if (rc == 0 && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)) {
        ret->tv_sec += skew_s;
    }
    return rc;
}

static void send_ticket(struct ms_conn *conn, uint32_t id, int is_home)
{
    static uint8_t token[MS_TOKEN_LEN] = {7};
    Ms__FetchTicket ticket = MS__FETCH_TICKET__INIT;
    ticket.node_id = (char *)(is_home ? "home" : "n1");
    ticket.host_name = (char *)"h1";
    ticket.address = (char *)(w.address != NULL ? w.address : w.node);
    ticket.log_path = (char *)"/jobs/7/worker_0.log";
    ticket.cert_name = (char *)(w.named != NULL ? w.named : "");
    ticket.size = FILE_BYTES + (w.grows ? (uint64_t)w.tickets * PIECE : 0);
    ticket.token.data = token;
    ticket.token.len = sizeof(token);
    w.tickets++;
    w.pieces = 0;
    skew_s += w.age_s;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_FETCH_TICKET, id, &ticket.base, err));
}

static void refuse(struct ms_conn *conn, uint32_t id, int code, const char *text)
{
    Ms__Error error = MS__ERROR__INIT;
    error.code = code;
    error.text = (char *)text;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_ERROR, id, &error.base, err));
}

static void send_piece(struct ms_conn *conn, uint32_t id, uint64_t offset)
{
    uint8_t bytes[PIECE];
    Ms__FetchChunk chunk = MS__FETCH_CHUNK__INIT;
    size_t left = offset < FILE_BYTES ? FILE_BYTES - offset : 0;
    size_t n = left < PIECE && !w.endless ? left : PIECE;
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, w.file + (offset < FILE_BYTES ? offset : 0), left < n ? left : n);
    if (w.damage > 0) {
        w.damage--;
        bytes[0] ^= 1;
    }
    chunk.offset = offset + (w.moved ? 1 : 0);
    chunk.size = w.overrun ? offset + 1 : FILE_BYTES;
    chunk.size = w.endless ? offset + 10 * FILE_BYTES : chunk.size;
    chunk.size = w.grows ? FILE_BYTES + (uint64_t)(w.tickets - 1) * PIECE : chunk.size;
    chunk.data.data = bytes;
    chunk.data.len = n;
    chunk.saved = w.saved;
    chunk.sha256 = offset + n == FILE_BYTES ? w.sha256 : (char *)"";
    ck_ms_ok(ms_conn_send(conn, MS_MSG_FETCH_CHUNK, id, &chunk.base, err));
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    ProtobufCMessage *msg = NULL;
    (void)arg;
    ck_ms_ok(ms_wire_unpack(head->type, bytes, head->length, &msg, err));
    if (head->type == MS_MSG_FETCH) {
        const Ms__Fetch *fetch = (const Ms__Fetch *)msg;
        w.asks++;
        const int is_home = fetch->what == MS_FETCH_SAVED;
        if (is_home && w.home_code != 0) {
            refuse(conn, head->id, w.home_code, "node home is not to be had");
        } else if (!is_home && (w.gone >> fetch->rank & 1) != 0) {
            refuse(conn, head->id, MS_E_UNREACHABLE, "node n9 is not connected");
        } else if (w.refuse) {
            refuse(conn, head->id, MS_E_REFUSED, "not yours");
        } else if (w.away > 0) {
            w.away--;
            skew_s += w.age_s;
            refuse(conn, head->id, w.away_code, w.words != NULL ? w.words : "node n1 is away");
        } else {
            send_ticket(conn, head->id, is_home);
        }
    } else if (head->type == MS_MSG_FETCH_READ) {
        const Ms__FetchRead *read = (const Ms__FetchRead *)msg;
        if (read->token.len > 0) {
            w.visits++;
            w.first_offset = read->offset;
            w.asked = read->saved;
        }
        if (read->token.len > 0 && w.refuse_tokens > 0) {
            w.refuse_tokens--;
            refuse(conn, head->id, MS_E_REFUSED, "not yours");
        } else if (w.tears_left > 0 && w.pieces++ == w.tear_after) {
            w.tears_left--;
            ms_conn_destroy(conn);
        } else {
            send_piece(conn, head->id, read->offset);
        }
    }
    ms_wire_free(msg);
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    (void)code;
    (void)reason;
    (void)arg;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    static const struct ms_conn_handler handler = {
        .on_open = NULL, .on_frame = on_frame, .on_close = on_close};
    struct ms_conn *conn = NULL;
    struct ms_conn_options options = {.software = "test",
                                      .cluster = "standing",
                                      .plain_role = MS_ROLE_USER,
                                      .owner_uid = (unsigned)getuid()};
    (void)what;
    (void)arg;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(got, 0);
    options.tls = fd == w.fds[1] ? w.node_tls : NULL;
    ck_ms_ok(ms_conn_accept(w.base, got, &options, &handler, NULL, &conn, err));
}

static void listen_at(int which, const char *text)
{
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse(text, 0, &addr, err));
    ck_ms_ok(w.fds[which] = ms_addr_listen(&addr, 16, err));
    w.accepts[which] = event_new(w.base, w.fds[which], EV_READ | EV_PERSIST, on_accept, NULL);
    event_add(w.accepts[which], NULL);
}

static void begin(void)
{
    struct sockaddr_in in;
    socklen_t size = sizeof(in);
    uint8_t digest[MS_SHA256_BYTES];
    memset(&w, 0, sizeof(w));
    w.root = test_dir_make();
    w.dir_fd = open(w.root, O_RDONLY | O_DIRECTORY);
    w.base = event_base_new();
    for (size_t i = 0; i < FILE_BYTES; i++) {
        w.file[i] = (uint8_t)(i * 2654435761U >> 11);
    }
    ms_sha256(w.file, FILE_BYTES, digest);
    ms_sha256_hex(digest, w.sha256);
    snprintf(w.scheduler, sizeof(w.scheduler), "unix:%s/s.sock", w.root);
    listen_at(0, w.scheduler);
    listen_at(1, "127.0.0.1:0");
    ck_assert_int_eq(getsockname(w.fds[1], (struct sockaddr *)&in, &size), 0);
    snprintf(w.node, sizeof(w.node), "127.0.0.1:%d", ntohs(in.sin_port));
    w.home_code = MS_E_NOT_FOUND;
    w.cli.base = w.base;
    w.cli.out = stdout;
    w.cli.err = stderr;
    w.cli.client = client_create(w.base, w.scheduler, NULL, NULL);
    ck_ms_ok(client_connect(w.cli.client, err));
    ck_ms_ok(client_wait_open(w.cli.client, err));
}

static void end(void)
{
    client_destroy(w.cli.client);
    for (int i = 0; i < 2; i++) {
        event_free(w.accepts[i]);
        close(w.fds[i]);
    }
    event_base_loop(w.base, EVLOOP_NONBLOCK);
    event_base_free(w.base);
    SSL_CTX_free(w.node_tls);
    SSL_CTX_free(w.cli.tls);
    close(w.dir_fd);
    test_dir_remove(w.root);
}

static int fetch(struct fetch_result *ret, struct ms_err *err)
{
    static const struct fetch_wish wish = {7, 0, MS_FETCH_WEIGHTS, NULL};
    memset(ret, 0, sizeof(*ret));
    return fetch_one(&w.cli, &wish, w.dir_fd, 0, NULL, NULL, ret, err);
}

/* 1 where the file is there and right. */
static int is_whole(void)
{
    static uint8_t bytes[FILE_BYTES + 1];
    int fd = openat(w.dir_fd, "weights.safetensors", O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return n == FILE_BYTES && memcmp(bytes, w.file, FILE_BYTES) == 0;
}

static int is_there(const char *name)
{
    struct stat st;
    return fstatat(w.dir_fd, name, &st, 0) == 0;
}

START_TEST(file_comes_whole_over_one_connection)
{
    struct fetch_result got;

    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
    ck_assert_uint_eq(got.bytes, FILE_BYTES);
    ck_assert_str_eq(got.sha256, w.sha256);
    ck_assert_str_eq(got.node_id, "n1");
    ck_assert_int_eq(w.visits, 1);
    ck_assert(!is_there(".weights.safetensors.part"));
}
END_TEST

START_TEST(torn_connections_are_made_again_where_they_tore)
{
    struct fetch_result got;
    w.tear_after = 7;
    w.tears_left = 3;

    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
    ck_assert_int_eq(w.visits, 4);
    ck_assert_int_eq(w.tickets, 4); /* a token opens once */
    ck_assert_uint_gt(w.first_offset, 0);
}
END_TEST

START_TEST(node_that_always_tears_is_given_up_with_host_and_path_and_what_came_stays)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    w.tear_after = 0;
    w.tears_left = 1000;

    ck_assert_int_eq(fetch(&got, &why), MS_E_UNAVAILABLE);
    ck_assert_msg(strstr(why.text, "node n1") != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, "on host h1: /jobs/7/weights.safetensors") != NULL, "%s",
                  why.text);
    ck_assert_int_le(w.tickets, 5);
    w.tear_after = 3;
    w.tears_left = 1;
    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
}
END_TEST

START_TEST(damaged_bytes_give_no_file)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    w.damage = 1;

    ck_assert_int_eq(fetch(&got, &why), MS_E_PROTOCOL);

    ck_assert_msg(strstr(why.text, "came damaged") != NULL, "%s", why.text);
    ck_assert(!is_there("weights.safetensors"));
    ck_assert(!is_there(".weights.safetensors.part"));
}
END_TEST

START_TEST(part_of_another_file_is_thrown_away_and_all_is_fetched)
{
    struct fetch_result got;
    int fd = openat(w.dir_fd, ".weights.safetensors.part", O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "something else", 14), 14);
    close(fd);

    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
    ck_assert_int_eq(w.visits, 2);
    ck_assert_uint_eq(got.resumed, 0);
}
END_TEST

START_TEST(file_that_is_there_and_the_same_is_no_failure_and_costs_no_bytes)
{
    struct fetch_result got;
    ck_ms_ok(fetch(&got, err));
    ck_assert_int_eq(got.was_there, 0);
    w.tear_after = 0;
    w.tears_left = 2; /* nor is a torn connection */

    ck_ms_ok(fetch(&got, err));

    ck_assert_int_eq(got.was_there, 1);
    ck_assert_uint_eq(got.bytes, FILE_BYTES);
    ck_assert_uint_eq(w.first_offset, FILE_BYTES);
    ck_assert(is_whole());
    ck_assert(!is_there(".weights.safetensors.part"));
}
END_TEST

START_TEST(file_that_is_there_and_differs_is_kept)
{
    struct fetch_result got;
    int fd = openat(w.dir_fd, "weights.safetensors", O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "mine", 4), 4);
    ck_ms_fails(fetch(&got, err), MS_E_EXISTS, "is there already");
    ck_assert_int_eq(w.visits, 0); /* another size says it all */
    ck_assert_int_eq(ftruncate(fd, FILE_BYTES), 0);
    ck_ms_fails(fetch(&got, err), MS_E_EXISTS, "--force");
    ck_assert_int_eq(w.visits, 1);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_ms_fails(fetch(&got, err), MS_E_EXISTS, "is there already");

    ck_assert(is_there("weights.safetensors"));
    ck_assert(!is_whole());
    ck_assert(!is_there(".weights.safetensors.part"));
    w.address = "unix:/x";
    ck_assert_int_eq(ftruncate(fd, FILE_BYTES), 0);
    ck_ms_fails(fetch(&got, err), MS_E_PROTOCOL, "there already, to be compared");
    close(fd);
}
END_TEST

static int fetch_log(struct fetch_result *got, struct ms_err *err)
{
    const struct fetch_wish wish = {7, 0, MS_FETCH_LOG, NULL};
    memset(got, 0, sizeof(*got));
    return fetch_one(&w.cli, &wish, w.dir_fd, 0, NULL, NULL, got, err);
}

static void have_log(const uint8_t *bytes, size_t n)
{
    int fd = openat(w.dir_fd, "worker_0.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static int log_is(const uint8_t *want, size_t size)
{
    static uint8_t bytes[FILE_BYTES + 1];
    int fd = openat(w.dir_fd, "worker_0.log", O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof(bytes));
    close(fd);
    return n == (ssize_t)size && memcmp(bytes, want, size) == 0;
}

/* Fetched while the job ran: what it wrote since was refused because of what was there. */
START_TEST(log_that_has_grown_goes_on_where_it_was)
{
    struct fetch_result got;
    have_log(w.file, 12345);

    ck_ms_ok(fetch_log(&got, err));

    ck_assert(log_is(w.file, FILE_BYTES));
    ck_assert_uint_eq(got.resumed, 12345);
    ck_assert_int_eq(got.was_there, 0);
    ck_assert_uint_eq(w.first_offset, 12345);
    ck_assert_int_eq(w.tickets, 1); /* each takes a place at the node */
    ck_assert(!is_there(".worker_0.log.part"));
}
END_TEST

START_TEST(log_that_has_grown_survives_torn_connections)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    have_log(w.file, 12345);
    w.tear_after = 0;
    w.tears_left = 1000;
    ck_assert_int_eq(fetch_log(&got, &why), MS_E_UNAVAILABLE);
    ck_assert(log_is(w.file, 12345)); /* not less than there was */

    w.tear_after = 3;
    w.tears_left = 1;
    ck_ms_ok(fetch_log(&got, err));

    ck_assert(log_is(w.file, FILE_BYTES));
}
END_TEST

START_TEST(log_of_another_job_does_not_grow)
{
    struct fetch_result got;
    static uint8_t other[100] = "mine";
    have_log(other, sizeof(other));

    ck_ms_fails(fetch_log(&got, err), MS_E_EXISTS, "is there already");

    ck_assert(log_is(other, sizeof(other)));
    ck_assert(!is_there(".worker_0.log.part"));
}
END_TEST

/* However the part came to be: what has its name is replaced by what begins with it alone. */
START_TEST(log_is_not_replaced_by_what_does_not_begin_with_it)
{
    struct fetch_result got;
    static uint8_t other[100] = "mine";
    have_log(other, sizeof(other));
    int fd = openat(w.dir_fd, ".worker_0.log.part", O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, w.file, FILE_BYTES), FILE_BYTES);
    close(fd);

    ck_ms_fails(fetch_log(&got, err), MS_E_EXISTS, "is there already");

    ck_assert(log_is(other, sizeof(other)));
}
END_TEST

/* A part that is shorter than the file is on the node, and longer than what has its name. */
static void have_part(const uint8_t *bytes, size_t n)
{
    int fd = openat(w.dir_fd, ".worker_0.log.part", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

START_TEST(stale_part_is_no_reason_to_refuse_what_has_grown)
{
    struct fetch_result got;
    uint8_t stale[3000] = "of something else";
    have_log(w.file, 100);
    have_part(stale, sizeof(stale));
    ck_ms_ok(fetch_log(&got, err));
    ck_assert(log_is(w.file, FILE_BYTES));
    ck_assert_uint_eq(got.resumed, 100);

    memcpy(stale, w.file, 200); /* and where only its end is wrong */
    have_log(w.file, 100);
    have_part(stale, sizeof(stale));
    ck_ms_ok(fetch_log(&got, err));
    ck_assert(log_is(w.file, FILE_BYTES));
    ck_assert(!is_there(".worker_0.log.part"));
}
END_TEST

START_TEST(what_was_not_compared_is_not_said_to_differ)
{
    static const char name[] = "weights.safetensors";
    struct fetch_result got;
    struct ms_err why = {0, ""};
    ck_ms_ok(fetch(&got, err));
    ck_assert_int_eq(linkat(w.dir_fd, name, w.dir_fd, "second", 0), 0);
    ck_ms_fails(fetch(&got, err), MS_E_EXISTS, "is no file of yours alone, so it was not compared");

    ck_assert_int_eq(unlinkat(w.dir_fd, name, 0) + symlinkat("second", w.dir_fd, name), 0);
    ck_assert_int_eq(fetch(&got, &why), MS_E_EXISTS);
    ck_assert_msg(strstr(why.text, "is a symbolic link, so it was not compared") != NULL, "%s",
                  why.text);
    ck_assert_msg(strstr(why.text, "--force") != NULL, "%s", why.text);
}
END_TEST

/* A ticket of the comparison may get old while what is there is read, some GB of it. */
START_TEST(refused_ticket_that_was_kept_is_exchanged_once)
{
    struct fetch_result got;
    have_log(w.file, 12345);
    w.refuse_tokens = 1;
    ck_ms_ok(fetch_log(&got, err));
    ck_assert(log_is(w.file, FILE_BYTES));
    ck_assert_int_eq(w.tickets, 2);

    have_log(w.file, 12345);
    w.refuse_tokens = 2;
    ck_ms_fails(fetch_log(&got, err), MS_E_REFUSED, "not yours");
    ck_assert_int_eq(w.tickets, 4);
    ck_assert_int_eq(w.refuse_tokens, 0);

    w.refuse_tokens = 1; /* and a new one is not asked for twice */
    ck_ms_fails(fetch(&got, err), MS_E_REFUSED, "not yours");
    ck_assert_int_eq(w.tickets, 5);
}
END_TEST

START_TEST(ticket_that_got_old_is_not_shown)
{
    struct fetch_result got;
    have_log(w.file, 12345);
    w.age_s = MS_FETCH_CLAIM_MS / 2000;
    ck_ms_ok(fetch_log(&got, err));
    ck_assert(log_is(w.file, FILE_BYTES));
    ck_assert_int_eq(w.tickets, 2);
    ck_assert_int_eq(w.visits, 1);
}
END_TEST

START_TEST(node_that_sends_what_was_not_asked_for_is_not_believed)
{
    struct fetch_result got;

    w.overrun = 1;
    ck_assert_int_eq(fetch(&got, NULL), MS_E_PROTOCOL);
    w.overrun = 0;
    w.moved = 1;
    ck_assert_int_eq(fetch(&got, NULL), MS_E_PROTOCOL);

    ck_assert(!is_there("weights.safetensors"));
}
END_TEST

START_TEST(node_cannot_make_the_file_longer_with_every_piece)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    w.endless = 1;

    ck_ms_fails(fetch(&got, err), MS_E_PROTOCOL, "promised a file of 50000 bytes");

    ck_assert(!is_there("weights.safetensors"));
    w.endless = 0;
    w.grows = 1; /* and with every connection, which ends before the file does */
    w.tear_after = 1;
    w.tears_left = 1000;
    ck_assert_int_lt(fetch(&got, &why), 0);
    ck_assert_int_le(w.tickets, 8);
}
END_TEST

START_TEST(node_cannot_send_us_to_a_socket_of_this_machine)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    w.address = "unix:/run/docker.sock";

    ck_assert_int_eq(fetch(&got, &why), MS_E_PROTOCOL);

    ck_assert_msg(strstr(why.text, "names no address of a network") != NULL, "%s", why.text);
    ck_assert_int_eq(w.tickets, 1);
}
END_TEST

/* ---- TLS: the certificate that the scheduler named is the node ---- */

static SSL_CTX *certificate(struct ms_ca *ca, enum ms_role role, const char *name)
{
    static const char *const hosts[] = {"127.0.0.1", NULL};
    struct ms_cert_request req = {role, name, hosts, 10, ""};
    char p12[256];
    char ca_path[256];
    struct ms_tls_config cfg = {.p12_path = p12, .p12_password = "", .ca_path = ca_path};
    SSL_CTX *ctx = NULL;
    snprintf(p12, sizeof(p12), "%s/%s.p12", w.root, name);
    snprintf(ca_path, sizeof(ca_path), "%s/ca/ca.crt", w.root);
    ck_ms_ok(ms_ca_issue(ca, &req, p12, NULL, err));
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    return ctx;
}

static void use_tls(const char *node)
{
    char path[256];
    struct ms_ca *ca = NULL;
    ck_ms_ok(ms_ca_create("ca", 10, &ca, err));
    snprintf(path, sizeof(path), "%s/ca", w.root);
    ck_ms_ok(ms_ca_save(ca, path, err));
    w.cli.tls = certificate(ca, MS_ROLE_USER, "alice");
    w.node_tls = certificate(ca, MS_ROLE_WORKER, node);
    ms_ca_destroy(ca);
}

START_TEST(node_that_shows_the_certificate_of_the_ticket_is_read_from)
{
    struct fetch_result got;
    use_tls("n1");
    w.named = "n1";

    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
}
END_TEST

START_TEST(node_with_another_certificate_than_the_tickets_is_not_read_from)
{
    struct fetch_result got;
    struct ms_err why = {0, ""};
    use_tls("n2");
    w.named = "n1";

    ck_assert_int_lt(fetch(&got, &why), 0);

    ck_assert_msg(strstr(why.text, "certificate of worker n2, not of worker n1") != NULL, "%s",
                  why.text);
    ck_assert_int_eq(w.visits, 0); /* and was not shown the token */
    ck_assert(!is_there("weights.safetensors"));
}
END_TEST

START_TEST(node_without_a_certificate_has_no_place_in_a_cluster_with_tls)
{
    struct fetch_result got;
    use_tls("n1");

    ck_ms_fails(fetch(&got, err), MS_E_REFUSED,
                "node n1 has no certificate, and this cluster uses TLS");

    ck_assert_int_eq(w.visits, 0);
}
END_TEST

START_TEST(refusal_of_the_scheduler_is_not_tried_again)
{
    struct fetch_result got;
    w.refuse = 1;

    ck_ms_fails(fetch(&got, err), MS_E_REFUSED, "not yours");

    ck_assert_int_eq(w.tickets, 0);
    ck_assert(!is_there(".weights.safetensors.part"));
}
END_TEST

/* Of `wait && fetch` where the next job needs another instruction set. */
START_TEST(node_that_comes_back_in_a_moment_is_asked_for_again)
{
    static const int codes[] = {MS_E_UNAVAILABLE, MS_E_CLOSED};
    struct fetch_result got;
    w.away = 2;
    w.away_code = codes[_i];

    ck_ms_ok(fetch(&got, err));

    ck_assert(is_whole());
    ck_assert_int_eq(w.asks, 3);
    ck_assert_int_eq(w.tickets, 1);
}
END_TEST

START_TEST(node_that_does_not_come_back_is_given_up)
{
    struct fetch_result got;
    w.away = 1000;
    w.away_code = MS_E_UNREACHABLE; /* gone for good: at once */
    ck_ms_fails(fetch(&got, err), MS_E_UNAVAILABLE, "node n1 is away");
    ck_assert_int_eq(w.asks, 1);

    w.away_code = MS_E_UNAVAILABLE;
    w.age_s = CLIENT_BACK_MS / 2000;
    ck_ms_fails(fetch(&got, err), MS_E_UNAVAILABLE, "node n1 is away");
    ck_assert_int_le(w.asks, 5);
    ck_assert(!is_there(".weights.safetensors.part"));
}
END_TEST

static int fetch_saved(struct fetch_result *got, struct ms_err *err)
{
    const struct fetch_saved saved = {.what = MS_SAVED_DATA,
                                      .directory = "checkpoints",
                                      .prefix = "lin",
                                      .step = 13,
                                      .bytes = FILE_BYTES,
                                      .name = "lin-13.safetensors",
                                      .folder = "/jobs/7/checkpoints"};
    const struct fetch_wish wish = {7, 0, MS_FETCH_LOG, &saved};
    memset(got, 0, sizeof(*got));
    return fetch_one(&w.cli, &wish, w.dir_fd, 0, NULL, NULL, got, err);
}

START_TEST(checkpoint_comes_by_the_ticket_of_a_log_and_goes_on_where_it_tore)
{
    struct fetch_result got;
    w.saved = MS_SAVED_DATA;
    w.tear_after = 20;
    w.tears_left = 1;

    ck_ms_ok(fetch_saved(&got, err));

    ck_assert_uint_eq(got.bytes, FILE_BYTES);
    ck_assert_uint_eq(w.asked, MS_SAVED_DATA);
    ck_assert_int_eq(w.tickets, 2);
    ck_assert_uint_gt(w.first_offset, 0);
    ck_assert_int_eq(faccessat(w.dir_fd, "lin-13.safetensors", R_OK, 0), 0);
}
END_TEST

START_TEST(checkpoints_that_cannot_be_had_are_not_called_the_log_by_which_they_are_asked_for)
{
    struct fetch_result got;
    w.away = 1000;
    w.away_code = MS_E_NOT_FOUND;
    w.words = "log of job 7 rank 0: node n1 on host h says: there is no /jobs/7/worker_0.log: the "
              "job wrote none, or its folder was cleaned";

    ck_ms_fails(fetch_saved(&got, err), MS_E_NOT_FOUND,
                "checkpoints of job 7 rank 0, beside its log: node n1 on host h says: there is no "
                "/jobs/7/worker_0.log: the job wrote none, or its folder was cleaned");
    ck_ms_fails(fetch(&got, err), MS_E_NOT_FOUND, w.words);
}
END_TEST

START_TEST(node_that_knows_no_checkpoints_is_told_from_one_that_has_none)
{
    struct fetch_result got;
    struct ms_err err = {0, ""};

    ck_assert_int_eq(fetch_saved(&got, &err), MS_E_UNSUPPORTED);

    ck_assert_msg(
        strstr(err.text, "node n1 on host h1 runs a release that hands no checkpoints out") != NULL,
        "%s", err.text);
    ck_assert_int_ne(faccessat(w.dir_fd, "lin-13.safetensors", R_OK, 0), 0);
}
END_TEST

START_TEST(node_that_tears_for_ever_is_named_with_the_folder_of_its_checkpoints)
{
    struct fetch_result got;
    struct ms_err err = {0, ""};
    w.saved = MS_SAVED_DATA;
    w.tears_left = 1000;

    ck_assert_int_eq(fetch_saved(&got, &err), MS_E_UNAVAILABLE);

    ck_assert_msg(strstr(err.text, "h1: /jobs/7/checkpoints/lin-13.safetensors") != NULL, "%s",
                  err.text);
}
END_TEST

/* ---- what a job has saved ---- */

/* What each node says that is there: one checkpoint, of the job's own. */
static void list_step(uint64_t step)
{
    uint8_t digest[MS_SHA256_BYTES];
    struct saved_entry entry = {.step = step,
                                .epoch = 1,
                                .step_in_epoch = 13,
                                .bytes = 4096,
                                .manifest_bytes = 900,
                                .sum = "00112233445566778899aabbccddeeff"};
    const struct saved_list list = {
        .folder = "/jobs/7/checkpoints",
        .entries = &entry,
        .n = 1,
        .best = {.step = step, .metric = "loss", .value = 0.5, .bytes = 2048},
    };
    size_t size = 0;
    char *text = saved_list_format(&list, &size);
    ck_assert_ptr_nonnull(text);
    memset(w.file, ' ', FILE_BYTES); /* which JSON does not mind */
    memcpy(w.file, text, size);
    free(text);
    ms_sha256(w.file, FILE_BYTES, digest);
    ms_sha256_hex(digest, w.sha256);
    w.saved = MS_SAVED_LIST;
}

static int find(uint32_t ranks_lost, uint64_t steps, const char *directory, struct cli_saved *ret,
                struct ms_err *err)
{
    char spec[128];
    Ms__RankInfo ranks[2] = {MS__RANK_INFO__INIT, MS__RANK_INFO__INIT};
    Ms__RankInfo *list[2] = {&ranks[0], &ranks[1]};
    Ms__JobInfo job = MS__JOB_INFO__INIT;
    snprintf(spec, sizeof(spec), "{\"checkpoint\":{\"directory\":\"%s\",\"prefix\":\"lin\"}}",
             directory);
    ranks[1].rank = 1;
    ranks[0].node_id = (char *)"n0";
    ranks[1].node_id = (char *)"n1";
    job.id = 7;
    job.steps = steps;
    job.ranks_lost = ranks_lost;
    job.ranks = list;
    job.n_ranks = 2;
    job.job_json.data = (uint8_t *)spec;
    job.job_json.len = strlen(spec);
    return cli_saved_find(&w.cli, &job, ret, err);
}

/* The rank that saves was moved there, and went with its node. */
START_TEST(newest_is_not_known_while_a_node_that_may_have_it_is_away)
{
    struct cli_saved saved;
    size_t chosen = 9;
    list_step(350);
    w.gone = 1;

    ck_ms_ok(find(1, 1200, "checkpoints", &saved, err));

    ck_assert(cli_saved_lacks(&saved));
    ck_ms_fails(cli_saved_choose(&saved, "latest", &chosen, err), MS_E_UNAVAILABLE,
                "the newest checkpoint of job 7 that can be had is lin-350 (the job came to step "
                "1200): a node that had a rank of it is away");
    ck_ms_fails(cli_saved_choose(&saved, "1200", &chosen, err), MS_E_UNAVAILABLE,
                "job 7 may have saved more");
    ck_assert_uint_eq(chosen, 9);
    ck_ms_ok(cli_saved_choose(&saved, "350", &chosen, err));
    ck_assert_uint_eq(chosen, 0);
    json_t *object = cli_saved_json(&saved);
    ck_assert(json_is_false(json_object_get(object, "complete")));
    json_decref(object);
    cli_saved_free(&saved);
}
END_TEST

START_TEST(newest_is_known_where_no_other_can_be_newer)
{
    static const struct {
        unsigned gone;
        uint32_t ranks_lost;
        uint64_t steps;
        const char *directory;
    } rows[] = {
        {0, 1, 1200, "checkpoints"}, /* all have answered */
        {2, 0, 1200, "checkpoints"}, /* rank 0 alone has saved */
        {1, 1, 350, "checkpoints"},  /* there is no later step */
        {1, 1, 1200, "/shared"},     /* of all nodes */
    };
    struct cli_saved saved;
    size_t chosen = 9;
    list_step(350);
    w.gone = rows[_i].gone;

    ck_ms_ok(find(rows[_i].ranks_lost, rows[_i].steps, rows[_i].directory, &saved, err));

    ck_ms_ok(cli_saved_choose(&saved, "latest", &chosen, err));
    ck_assert_uint_eq(chosen, 0);
    cli_saved_free(&saved);
}
END_TEST

/* Rank 1's node, of a job whose ranks were lost, may have been that of rank 0. */
START_TEST(any_node_of_a_job_that_lost_ranks_may_have_it)
{
    struct cli_saved saved;
    size_t chosen = 9;
    list_step(350);
    w.gone = 2;
    ck_ms_ok(find(1, 0, "checkpoints", &saved, err)); /* nobody knows how far it came */
    ck_ms_fails(cli_saved_choose(&saved, "latest", &chosen, err), MS_E_UNAVAILABLE,
                "can be had is lin-350: a node");
    cli_saved_free(&saved);
}
END_TEST

/* It has no rank any more. _i: or a rank was never lost. */
START_TEST(node_with_the_newest_is_asked_beside_those_of_the_ranks)
{
    struct cli_saved saved;
    list_step(350);
    w.home_code = 0;

    ck_ms_ok(find(_i == 0, 1200, "checkpoints", &saved, err));

    ck_assert_uint_eq(saved.n_nodes, _i == 0 ? 2 : 1);
    ck_assert_uint_eq(saved.nodes[0].what, MS_FETCH_LOG);
    if (_i == 0) {
        ck_assert_str_eq(saved.nodes[1].node_id, "home");
        ck_assert_uint_eq(saved.nodes[1].what, MS_FETCH_SAVED);
        ck_assert_uint_eq(saved.nodes[1].rank, 0);
    }
    ck_assert_uint_eq(saved.n, 1); /* a copy */
    cli_saved_free(&saved);
}
END_TEST

START_TEST(it_alone_may_have_them)
{
    struct cli_saved saved;
    size_t chosen = 9;
    list_step(350);
    w.gone = 3;
    w.home_code = 0;

    ck_ms_ok(find(1, 350, "checkpoints", &saved, err));

    ck_ms_ok(cli_saved_choose(&saved, "latest", &chosen, err));
    ck_assert_str_eq(saved.nodes[saved.ones[chosen].node].node_id, "home");
    cli_saved_free(&saved);
}
END_TEST

/* The scheduler knows of none, or is of an earlier release; or that node is away. */
START_TEST(without_it_there_is_what_the_others_have)
{
    static const int codes[] = {MS_E_NOT_FOUND, MS_E_INVALID, MS_E_UNREACHABLE};
    struct cli_saved saved;
    list_step(350);
    w.home_code = codes[_i];

    ck_ms_ok(find(1, 1200, "checkpoints", &saved, err));

    ck_assert_uint_eq(saved.n, 1);
    ck_assert_int_eq(cli_saved_lacks(&saved), codes[_i] == MS_E_UNREACHABLE);
    cli_saved_free(&saved);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_fetch");
    TCase *tc = tcase_create("fetch");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, file_comes_whole_over_one_connection);
    tcase_add_test(tc, torn_connections_are_made_again_where_they_tore);
    tcase_add_test(tc, node_that_always_tears_is_given_up_with_host_and_path_and_what_came_stays);
    tcase_add_test(tc, damaged_bytes_give_no_file);
    tcase_add_test(tc, part_of_another_file_is_thrown_away_and_all_is_fetched);
    tcase_add_test(tc, file_that_is_there_and_the_same_is_no_failure_and_costs_no_bytes);
    tcase_add_test(tc, file_that_is_there_and_differs_is_kept);
    tcase_add_test(tc, log_that_has_grown_goes_on_where_it_was);
    tcase_add_test(tc, log_that_has_grown_survives_torn_connections);
    tcase_add_test(tc, log_is_not_replaced_by_what_does_not_begin_with_it);
    tcase_add_test(tc, log_of_another_job_does_not_grow);
    tcase_add_test(tc, stale_part_is_no_reason_to_refuse_what_has_grown);
    tcase_add_test(tc, what_was_not_compared_is_not_said_to_differ);
    tcase_add_test(tc, refused_ticket_that_was_kept_is_exchanged_once);
    tcase_add_test(tc, ticket_that_got_old_is_not_shown);
    tcase_add_test(tc, node_that_sends_what_was_not_asked_for_is_not_believed);
    tcase_add_test(tc, node_cannot_make_the_file_longer_with_every_piece);
    tcase_add_test(tc, node_cannot_send_us_to_a_socket_of_this_machine);
    tcase_add_test(tc, node_that_shows_the_certificate_of_the_ticket_is_read_from);
    tcase_add_test(tc, node_with_another_certificate_than_the_tickets_is_not_read_from);
    tcase_add_test(tc, node_without_a_certificate_has_no_place_in_a_cluster_with_tls);
    tcase_add_test(tc, refusal_of_the_scheduler_is_not_tried_again);
    tcase_add_test(tc, checkpoint_comes_by_the_ticket_of_a_log_and_goes_on_where_it_tore);
    tcase_add_test(
        tc, checkpoints_that_cannot_be_had_are_not_called_the_log_by_which_they_are_asked_for);
    tcase_add_test(tc, node_that_knows_no_checkpoints_is_told_from_one_that_has_none);
    tcase_add_test(tc, node_that_tears_for_ever_is_named_with_the_folder_of_its_checkpoints);
    tcase_add_loop_test(tc, node_that_comes_back_in_a_moment_is_asked_for_again, 0, 2);
    tcase_add_test(tc, node_that_does_not_come_back_is_given_up);
    tcase_add_test(tc, newest_is_not_known_while_a_node_that_may_have_it_is_away);
    tcase_add_loop_test(tc, newest_is_known_where_no_other_can_be_newer, 0, 4);
    tcase_add_test(tc, any_node_of_a_job_that_lost_ranks_may_have_it);
    tcase_add_loop_test(tc, node_with_the_newest_is_asked_beside_those_of_the_ranks, 0, 2);
    tcase_add_test(tc, it_alone_may_have_them);
    tcase_add_loop_test(tc, without_it_there_is_what_the_others_have, 0, 3);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
