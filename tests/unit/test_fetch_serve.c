/* test_fetch_serve.c - a node's results: only for whom the scheduler sent, once, whole */
#include "libworker/agent/fetch_serve.h"

#include "libworker/agent/fetch_file.h"
#include "proto/addr.h"
#include "proto/tls_pin.h"
#include "tests/unit/conn_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 200000 }; /* four pieces */

static struct {
    char path[256], saved[256];
    uint8_t bytes[FILE_BYTES];
    char sha256[MS_SHA256_HEX];
    SSL_CTX *tls;
    struct fetch_serve *serve;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int answered, code;
    uint8_t token[MS_TOKEN_LEN];
    char text[MS_TEXT_MAX + 1], address[MS_ADDR_MAX + 1], pin[MS_PIN_HEX + 1];
} node = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* ---- a clock that can be moved, in place of the C library's: for libevent too ---- */

static atomic_int skew_s;

MS_API int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret);
    if (rc == 0 && (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE)) {
        ret->tv_sec += skew_s;
    }
    return rc;
}

/* ---- the node ---- */

static int open_file(void *arg, const struct fetch_want *want, struct ms_err *err)
{
    (void)arg;
    return want->job == 7 ? fetch_open(node.path, err)
                          : ms_fail(err, MS_E_NOT_FOUND, "there is no such file");
}

/* Of the granted job, in the folder and by the prefix that the client says. */
static int open_saved(void *arg, const struct fetch_want *want, const struct fetch_saved *saved,
                      struct ms_err *err)
{
    (void)arg;
    ck_assert_uint_eq(want->job, 7);
    ck_assert_str_eq(want->job_tag, "tag of 7");
    if (saved->what != MS_SAVED_DATA || saved->step != 13) {
        return ms_fail(err, MS_E_NOT_FOUND, "no such checkpoint");
    }
    ck_assert_str_eq(saved->directory, "checkpoints");
    ck_assert_str_eq(saved->prefix, "linear");
    return fetch_open(node.saved, err);
}

static void on_answer(void *arg, const Ms__FetchReady *ready)
{
    (void)arg;
    pthread_mutex_lock(&node.lock);
    node.code = ready->code;
    snprintf(node.text, sizeof(node.text), "%s", ready->text);
    snprintf(node.address, sizeof(node.address), "%s", ready->address);
    snprintf(node.pin, sizeof(node.pin), "%s", ready->cert_sha256);
    if (ready->token.len == MS_TOKEN_LEN) {
        memcpy(node.token, ready->token.data, MS_TOKEN_LEN);
    }
    node.answered = 1;
    pthread_cond_signal(&node.more);
    pthread_mutex_unlock(&node.lock);
}

static SSL_CTX *get_tls(void *arg)
{
    (void)arg;
    if (node.tls != NULL) {
        SSL_CTX_up_ref(node.tls);
    }
    return node.tls;
}

static void ask_as(uint64_t job, const char *principal, const char *asker, int is_admin)
{
    Ms__FetchGrant grant = MS__FETCH_GRANT__INIT;
    grant.job = job;
    grant.job_tag = (char *)"tag of 7";
    grant.what = MS_FETCH_WEIGHTS;
    grant.principal = (char *)principal;
    grant.asker = (char *)asker;
    grant.admin = is_admin;
    node.answered = 0;
    fetch_serve_ask(node.serve, &grant);
    pthread_mutex_lock(&node.lock);
    while (!node.answered) {
        pthread_cond_wait(&node.more, &node.lock);
    }
    pthread_mutex_unlock(&node.lock);
}

static void ask(uint64_t job, const char *principal)
{
    ask_as(job, principal, principal, 0);
}

static void start(struct world *w, int with_tls)
{
    static struct fetch_serve_config cfg;
    world_init(w, NULL);
    snprintf(node.path, sizeof(node.path), "%s/weights.safetensors", w->dir);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        node.bytes[i] = (uint8_t)(i * 2654435761U >> 13);
    }
    FILE *file = fopen(node.path, "w");
    ck_assert_uint_eq(fwrite(node.bytes, 1, FILE_BYTES, file), FILE_BYTES);
    fclose(file);
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(node.bytes, FILE_BYTES, digest);
    ms_sha256_hex(digest, node.sha256);
    memset(&cfg, 0, sizeof(cfg));
    if (with_tls) {
        make_ca(w, "ca");
        issue(w, "ca", MS_ROLE_WORKER, "n1", 10);
        issue(w, "ca", MS_ROLE_USER, "alice", 10);
        issue(w, "ca", MS_ROLE_USER, "bob", 10);
        issue(w, "ca", MS_ROLE_ADMIN, "root", 10);
        node.tls = context(w, "ca", "n1");
    }
    cfg.bind_ip = "127.0.0.1";
    cfg.get_tls = get_tls;
    cfg.software = "msworker test";
    cfg.open_file = open_file;
    cfg.open_saved = open_saved;
    cfg.answer = on_answer;
    ck_ms_ok(fetch_serve_create(&cfg, &node.serve, err));
}

static void stop(struct world *w)
{
    fetch_serve_destroy(node.serve);
    SSL_CTX_free(node.tls);
    node.serve = NULL;
    node.tls = NULL;
    world_fini(w);
}

/* ---- the client ---- */

static struct {
    uint8_t bytes[FILE_BYTES];
    uint64_t have, size;
    char sha256[MS_SHA256_HEX];
    int whole, over, code;
    char reason[MS_ERR_TEXT_MAX];
} got;

static struct {
    unsigned what; /* enum ms_saved; 0: what was granted */
    uint64_t step;
} wanted;

static void read_on(struct ms_conn *conn, int first)
{
    Ms__FetchRead request = MS__FETCH_READ__INIT;
    if (first) {
        request.token.data = node.token;
        request.token.len = MS_TOKEN_LEN;
        request.saved = wanted.what;
        request.step = wanted.step;
        request.directory = (char *)"checkpoints";
        request.prefix = (char *)"linear";
    }
    request.offset = got.have;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_FETCH_READ, 1, &request.base, err));
}

static void client_open(struct ms_conn *conn, void *arg)
{
    (void)arg;
    read_on(conn, 1);
}

static void client_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                         const uint8_t *bytes, void *arg)
{
    ProtobufCMessage *msg = NULL;
    (void)arg;
    ck_ms_ok(ms_wire_unpack(head->type, bytes, head->length, &msg, err));
    if (head->type == MS_MSG_ERROR) {
        got.over = 1;
        got.code = ((Ms__Error *)msg)->code;
        snprintf(got.reason, sizeof(got.reason), "%s", ((Ms__Error *)msg)->text);
    } else {
        const Ms__FetchChunk *chunk = (const Ms__FetchChunk *)msg;
        ck_assert_int_eq(head->type, MS_MSG_FETCH_CHUNK);
        ck_assert_uint_eq(chunk->offset, got.have);
        ck_assert_uint_eq(chunk->saved, wanted.what);
        for (size_t i = 0; i < chunk->data.len; i++) {
            got.bytes[got.have + i] = chunk->data.data[i];
        }
        got.have += chunk->data.len;
        got.size = chunk->size;
        snprintf(got.sha256, sizeof(got.sha256), "%s", chunk->sha256);
        got.whole = got.over = got.have == got.size;
        if (!got.over) {
            read_on(conn, 0);
        }
    }
    ms_wire_free(msg);
}

static void client_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    *(struct ms_conn **)arg = NULL;
    if (!got.over) {
        got.over = 1;
        got.code = code;
        snprintf(got.reason, sizeof(got.reason), "%s", reason);
    }
}

/* Reads from offset with the token as it is; tls NULL: plain. */
static void read_file(struct world *w, SSL_CTX *tls, const char *require_worker, uint64_t offset)
{
    static const struct ms_conn_handler client = {
        .on_open = client_open, .on_frame = client_frame, .on_close = client_close};
    struct ms_conn_options options = {
        .tls = tls, .software = "msctl test", .require_worker = require_worker, .what = "node n1"};
    struct ms_conn *conn = NULL;
    memset(&got, 0, sizeof(got));
    got.have = offset;
    ck_ms_ok(ms_conn_connect(w->base, node.address, &options, &client, &conn, &conn, err));
    run_until(w, &got.over);
    ms_conn_destroy(conn);
}

static void read_as(struct world *w, const char *who, uint64_t offset)
{
    SSL_CTX *tls = context(w, "ca", who);
    read_file(w, tls, "n1", offset);
    SSL_CTX_free(tls);
}

static void ck_whole(uint64_t from)
{
    ck_assert_msg(got.whole, "%s", got.reason);
    ck_assert_uint_eq(got.size, FILE_BYTES);
    ck_assert_mem_eq(got.bytes + from, node.bytes + from, FILE_BYTES - from);
    ck_assert_str_eq(got.sha256, node.sha256);
}

/* A connection that never says anything. */
static int dial_plain(const struct ms_addr *addr)
{
    struct sockaddr_storage sa;
    socklen_t size = 0;
    ck_ms_ok(ms_addr_resolve(addr, &sa, &size, err));
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&sa, size), 0);
    return fd;
}

/* ---- the tests ---- */

START_TEST(owner_with_his_certificate_gets_the_file_and_its_digest)
{
    struct world w;
    start(&w, 1);

    ask(7, "user:alice");
    ck_assert_int_eq(node.code, 0);
    read_as(&w, "alice", 0);

    ck_whole(0);
    stop(&w);
}
END_TEST

START_TEST(somebody_elses_certificate_is_refused_with_the_right_token)
{
    struct world w;
    start(&w, 1);

    ask(7, "user:alice");
    read_as(&w, "bob", 0);

    ck_assert(!got.whole);
    ck_assert_int_eq(got.code, MS_E_REFUSED);
    ck_contains(got.reason, "this token opens nothing here");
    read_as(&w, "alice", 0); /* whose it still is */
    ck_whole(0);
    stop(&w);
}
END_TEST

START_TEST(another_role_of_the_same_name_is_somebody_else)
{
    struct world w;
    start(&w, 1);

    ask(7, "user:root");
    read_as(&w, "root", 0); /* admin:root */

    ck_assert(!got.whole);
    ck_contains(got.reason, "this token opens nothing here");
    ask(7, "admin:root");
    read_as(&w, "root", 0);
    ck_whole(0);
    stop(&w);
}
END_TEST

START_TEST(client_without_a_certificate_reads_with_token_and_pin)
{
    struct world w;
    SSL_CTX *pinned = NULL;
    start(&w, 1);

    ask(7, "");
    ck_ms_ok(ms_tls_pin_context(node.pin, &pinned, err));
    read_file(&w, pinned, "n1", 0);

    ck_whole(0);
    SSL_CTX_free(pinned);
    stop(&w);
}
END_TEST

START_TEST(client_without_a_certificate_cannot_use_the_token_of_one_with)
{
    struct world w;
    SSL_CTX *pinned = NULL;
    start(&w, 1);

    ask(7, "user:alice");
    ck_ms_ok(ms_tls_pin_context(node.pin, &pinned, err));
    read_file(&w, pinned, "n1", 0);

    ck_assert(!got.whole);
    ck_contains(got.reason, "this token opens nothing here");
    SSL_CTX_free(pinned);
    stop(&w);
}
END_TEST

START_TEST(another_certificate_than_the_pinned_one_gets_no_token)
{
    struct world w;
    SSL_CTX *pinned = NULL;
    start(&w, 1);

    ask(7, "");
    node.pin[0] = node.pin[0] == 'a' ? 'b' : 'a';
    ck_ms_ok(ms_tls_pin_context(node.pin, &pinned, err));
    read_file(&w, pinned, NULL, 0);

    ck_assert(!got.whole);
    ck_assert_uint_eq(got.have, 0);
    SSL_CTX_free(pinned);
    stop(&w);
}
END_TEST

START_TEST(token_opens_once)
{
    struct world w;
    start(&w, 1);
    ask(7, "user:alice");
    read_as(&w, "alice", 0);
    ck_whole(0);

    ask(7, "user:bob"); /* the listener is open again */
    uint8_t fresh[MS_TOKEN_LEN];
    memcpy(fresh, node.token, sizeof(fresh));
    memset(node.token, 0, sizeof(node.token)); /* what a used token becomes */
    read_as(&w, "alice", 0);

    ck_assert(!got.whole);
    ck_assert_int_eq(got.code, MS_E_REFUSED);
    memcpy(node.token, fresh, sizeof(fresh));
    node.token[31] ^= 1;
    read_as(&w, "bob", 0);
    ck_assert(!got.whole);
    ck_assert_int_eq(got.code, MS_E_REFUSED);
    stop(&w);
}
END_TEST

START_TEST(token_that_nobody_shows_in_time_opens_nothing)
{
    struct world w;
    start(&w, 1);
    ask(7, "user:alice");

    skew_s += MS_FETCH_CLAIM_MS / 1000;
    read_as(&w, "alice", 0);

    ck_assert(!got.whole);
    ask(7, "user:alice"); /* a new one does */
    read_as(&w, "alice", 0);
    ck_whole(0);
    stop(&w);
}
END_TEST

START_TEST(token_that_nobody_shows_gives_its_place_back)
{
    struct world w;
    start(&w, 1);
    for (int i = 0; i < MS_FETCH_GRANTS_MAX; i++) {
        ask(7, "user:alice");
    }
    ask(7, "user:alice");
    ck_assert_int_eq(node.code, MS_E_FULL);

    skew_s += MS_FETCH_CLAIM_MS / 1000;
    for (int i = 0; i < 60000 && node.code == MS_E_FULL;
         i++) { /* a minute: a thread looks around */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ask(7, "user:alice");
    }

    ck_assert_int_eq(node.code, 0);
    stop(&w);
}
END_TEST

START_TEST(torn_download_goes_on_and_gets_the_digest_of_the_whole)
{
    struct world w;
    start(&w, 1);

    ask(7, "user:alice");
    read_as(&w, "alice", FILE_BYTES - 1000);
    ck_whole(FILE_BYTES - 1000);
    ask(7, "user:alice");
    read_as(&w, "alice", FILE_BYTES);

    ck_whole(FILE_BYTES);
    ask(7, "user:alice");
    read_as(&w, "alice", FILE_BYTES + 1);
    ck_contains(got.reason, "there is nothing at 200001");
    stop(&w);
}
END_TEST

START_TEST(worker_may_not_read)
{
    struct world w;
    start(&w, 1);
    issue(&w, "ca", MS_ROLE_WORKER, "n2", 10);

    ask(7, "");
    read_as(&w, "n2", 0);

    ck_assert(!got.whole);
    ck_assert_int_eq(got.code, MS_E_REFUSED);
    stop(&w);
}
END_TEST

START_TEST(where_tls_is_off_the_token_is_what_counts)
{
    struct world w;
    start(&w, 0);

    ask(7, "");
    ck_assert_str_eq(node.pin, "");
    read_file(&w, NULL, NULL, 0);
    ck_whole(0);
    ask(7, "");
    node.token[0] ^= 1;
    read_file(&w, NULL, NULL, 0);

    ck_assert(!got.whole);
    stop(&w);
}
END_TEST

START_TEST(missing_file_is_said_and_nobody_listens)
{
    struct world w;
    start(&w, 1);

    ask(8, "user:alice");

    ck_assert_int_eq(node.code, MS_E_NOT_FOUND);
    ck_assert_str_eq(node.text, "there is no such file");
    ck_assert_str_eq(node.address, "");
    stop(&w);
}
END_TEST

START_TEST(places_are_bounded)
{
    struct world w;
    start(&w, 1);

    for (int i = 0; i < MS_FETCH_GRANTS_MAX; i++) {
        char user[16];
        snprintf(user, sizeof(user), "user:u%d", i);
        ask(7, user);
        ck_assert_int_eq(node.code,
                         i < MS_FETCH_GRANTS_MAX - MS_FETCH_GRANTS_ADMIN ? 0 : MS_E_FULL);
    }
    ck_contains(node.text, "the node serves 56 files already");
    for (int i = 0; i < MS_FETCH_GRANTS_ADMIN; i++) {
        ask_as(7, "admin:root", "admin:root", 1);
        ck_assert_int_eq(node.code, 0);
    }
    ask_as(7, "admin:root", "admin:root", 1);

    ck_assert_int_eq(node.code, MS_E_FULL);
    stop(&w);
}
END_TEST

START_TEST(one_principal_has_a_share_whether_he_claims_or_not)
{
    struct world w;
    start(&w, 1);

    for (int i = 0; i < MS_FETCH_GRANTS_OWNER; i++) { /* by socket and by certificate: the same */
        ask_as(7, i % 2 == 0 ? "" : "user:alice", "user:alice", 0);
        ck_assert_int_eq(node.code, 0);
    }
    ask(7, "user:alice");
    ck_assert_int_eq(node.code, MS_E_FULL);
    ck_contains(node.text, "alice has 16 files of the node under way already");
    ask(7, "user:bob");

    ck_assert_int_eq(node.code, 0);
    read_as(&w, "bob", 0);
    ck_whole(0);
    stop(&w);
}
END_TEST

START_TEST(strangers_who_hold_every_place_keep_nobody_out)
{
    struct world w;
    struct ms_addr addr;
    int idle[MS_FETCH_GRANTS_MAX];
    start(&w, 1);
    ask(7, "user:alice");
    ck_ms_ok(ms_addr_parse(node.address, 0, &addr, err));
    for (int i = 0; i < MS_FETCH_GRANTS_MAX; i++) {
        idle[i] = dial_plain(&addr);
    }

    read_as(&w, "alice", 0);

    ck_whole(0);
    for (int i = 0; i < MS_FETCH_GRANTS_MAX; i++) {
        close(idle[i]);
    }
    stop(&w);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    struct world w;
    char path[300];
    struct ms_err err = {0, ""};
    start(&w, 0);
    snprintf(path, sizeof(path), "%s/fifo", w.dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(fetch_open(path, &err), MS_E_REFUSED);
    ck_contains(err.text, "is no regular file");
    snprintf(path, sizeof(path), "%s/link", w.dir);
    ck_assert_int_eq(symlink(node.path, path), 0);

    ck_assert_int_lt(fetch_open(path, &err), 0);
    ck_assert_int_lt(fetch_open(w.dir, &err), 0);
    stop(&w);
}
END_TEST

static void put_saved(const struct world *w)
{
    snprintf(node.saved, sizeof(node.saved), "%s/linear-13.safetensors", w->dir);
    FILE *file = fopen(node.saved, "w");
    ck_assert_ptr_nonnull(file);
    fputs("a checkpoint", file);
    fclose(file);
}

START_TEST(whoever_may_have_a_result_reads_what_the_job_has_saved_with_its_token)
{
    struct world w;
    start(&w, 1);
    put_saved(&w);
    wanted.what = MS_SAVED_DATA;
    wanted.step = 13;

    ask(7, "user:alice");
    read_as(&w, "alice", 0);

    ck_assert_msg(got.whole, "%s", got.reason);
    ck_assert_uint_eq(got.size, 12);
    ck_assert_mem_eq(got.bytes, "a checkpoint", 12);
    read_as(&w, "alice", 0); /* it was for one connection */
    ck_assert(!got.whole);
    wanted.what = 0;
    stop(&w);
}
END_TEST

START_TEST(what_is_saved_is_for_nobody_else)
{
    struct world w;
    start(&w, 1);
    put_saved(&w);
    wanted.what = MS_SAVED_DATA;
    wanted.step = 13;

    ask(7, "user:alice");
    read_as(&w, "bob", 0);
    ck_assert(!got.whole);
    ck_assert_int_eq(got.code, MS_E_REFUSED);

    wanted.step = 14;
    ask(7, "user:alice");
    read_as(&w, "alice", 0);
    ck_assert_int_eq(got.code, MS_E_NOT_FOUND);
    ck_contains(got.reason, "no such checkpoint");
    wanted.what = 0;
    stop(&w);
}
END_TEST

START_TEST(file_that_becomes_shorter_is_an_error)
{
    struct world w;
    struct fetch_file file;
    struct ms_err why = {0, ""};
    uint8_t buf[1000];
    size_t n = 0;
    start(&w, 0);
    ck_ms_ok(fetch_file_init(&file, fetch_open(node.path, NULL), err));
    ck_assert_int_eq(truncate(node.path, 500), 0);

    ck_assert_int_eq(fetch_file_read(&file, 0, buf, sizeof(buf), &n, &why), MS_E_IO);

    ck_contains(why.text, "became shorter");
    fetch_file_fini(&file);
    stop(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fetch_serve");
    TCase *t = tcase_create("fetch_serve");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, owner_with_his_certificate_gets_the_file_and_its_digest);
    tcase_add_test(t, somebody_elses_certificate_is_refused_with_the_right_token);
    tcase_add_test(t, another_role_of_the_same_name_is_somebody_else);
    tcase_add_test(t, client_without_a_certificate_reads_with_token_and_pin);
    tcase_add_test(t, client_without_a_certificate_cannot_use_the_token_of_one_with);
    tcase_add_test(t, another_certificate_than_the_pinned_one_gets_no_token);
    tcase_add_test(t, token_opens_once);
    tcase_add_test(t, token_that_nobody_shows_in_time_opens_nothing);
    tcase_add_test(t, token_that_nobody_shows_gives_its_place_back);
    tcase_add_test(t, torn_download_goes_on_and_gets_the_digest_of_the_whole);
    tcase_add_test(t, worker_may_not_read);
    tcase_add_test(t, where_tls_is_off_the_token_is_what_counts);
    tcase_add_test(t, missing_file_is_said_and_nobody_listens);
    tcase_add_test(t, places_are_bounded);
    tcase_add_test(t, one_principal_has_a_share_whether_he_claims_or_not);
    tcase_add_test(t, strangers_who_hold_every_place_keep_nobody_out);
    tcase_add_test(t, only_regular_files_are_opened);
    tcase_add_test(t, whoever_may_have_a_result_reads_what_the_job_has_saved_with_its_token);
    tcase_add_test(t, what_is_saved_is_for_nobody_else);
    tcase_add_test(t, file_that_becomes_shorter_is_an_error);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
