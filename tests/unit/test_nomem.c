/* test_nomem.c - every allocation of proto fails once, one after the other
 *
 * The linker redirects our calls of malloc, calloc and strdup to this file (--wrap). OpenSSL and
 * libevent keep their memory: theirs is not ours to mend (libevent 2.1.12 crashes in
 * bufferevent_openssl_socket_new when it finds none). Under AddressSanitizer a leak on any of these
 * paths is a failure too. */
#include "proto/settings.h"
#include "tests/unit/conn_world.h"
#include "tests/unit/fill.h"

/* Only the loop thread allocates here. */
static long countdown = -1; /* -1: nothing fails; 0: the next one does */
static int has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *text);

static int fails_now(void)
{
    if (countdown < 0 || countdown-- > 0) {
        return 0;
    }
    has_failed = 1;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

static void arm(long n)
{
    has_failed = 0;
    countdown = n;
}

/* 1 when the failure was reached: there may be more behind it. */
static int disarm(void)
{
    countdown = -1;
    return has_failed;
}

START_TEST(frames_are_refused_or_read_whole)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *row = ms_wire_at(i);
        const ProtobufCMessage *msg = fill_message(row->descriptor);
        static uint8_t frame[65536];
        size_t size = ms_wire_size(msg);
        int more = 1;
        ck_ms_ok(ms_wire_pack(row->type, 1, msg, frame, size, err));
        for (long n = 0; more; n++) {
            ProtobufCMessage *got = NULL;
            arm(n);
            int rc = ms_wire_unpack(row->type, frame + MS_WIRE_HEADER, size - MS_WIRE_HEADER, &got,
                                    NULL);
            more = disarm();
            ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
            ms_wire_free(got);
        }
        fill_free();
    }
}
END_TEST

START_TEST(settings_are_refused_or_read_whole)
{
    static const struct ms_setting table[] = {
        {"one", "--one", NULL, MS_SET_INT, 0, 9, NULL, "1", 0, "a number"},
        {"two", "--two", NULL, MS_SET_STRING, 0, 0, NULL, "x", 0, "a text"},
        {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
    };
    const char *dir = test_dir_make();
    char path[128];
    int more = 1;
    snprintf(path, sizeof(path), "%s/conf", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("one = 2\ntwo = y\n", file);
    fclose(file);
    for (long n = 0; more; n++) {
        char *argv[] = {(char *)"prog", (char *)"--one", (char *)"3", NULL};
        int argc = 3;
        struct ms_settings *s = NULL;
        arm(n);
        int rc = ms_settings_load(table, path, 1, &argc, argv, &s, NULL);
        more = disarm();
        ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
        ms_settings_destroy(s);
    }
    test_dir_remove(dir);
}
END_TEST

START_TEST(certificates_are_refused_or_made_whole)
{
    int more = 1;
    for (long n = 0; more; n++) {
        struct ms_ca *ca = NULL;
        arm(n);
        int rc = ms_ca_create("ca", 1, &ca, NULL);
        more = disarm();
        ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
        ms_ca_destroy(ca);
    }
}
END_TEST

/* ---- a whole conversation ---- */

/* Handlers without checks: Check allocates for each of them, and would be the one to fail. */
static void note_open(struct ms_conn *conn, void *arg)
{
    (void)conn;
    ((struct end *)arg)->opened = 1;
}

static void note_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                       const uint8_t *bytes, void *arg)
{
    struct end *end = arg;
    Ms__Ok ok = MS__OK__INIT;
    (void)bytes;
    end->frames++;
    if (end != &end->world->self &&
        ms_conn_send(conn, MS_MSG_OK, head->id, &ok.base, NULL) != MS_OK) {
        ms_conn_close(conn);
    }
}

static void note_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct end *end = arg;
    (void)conn;
    end->closed++;
    end->code = code;
    end->conn = NULL;
    snprintf(end->reason, sizeof(end->reason), "%s", reason);
}

static const struct ms_conn_handler noting = {
    .on_open = note_open, .on_frame = note_frame, .on_close = note_close};

static void on_accept_or_not(evutil_socket_t fd, short what, void *arg)
{
    struct world *w = arg;
    struct end *end = &w->ends[0];
    (void)what;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0) {
        return;
    }
    end->world = w;
    w->n_ends = 1;
    if (ms_conn_accept(w->base, got, &w->server, &noting, end, &end->conn, NULL) != MS_OK) {
        end->conn = NULL;
        end->closed = 1;
    }
}

/* Connects, asks, gets the answer, closes; with one failure on the way any part of it may miss, but
 * both ends come to an end that on_close told of, unless the call itself said no. */
static int converse(struct world *w, long n)
{
    Ms__Ok ok = MS__OK__INIT;
    memset(&w->self, 0, sizeof(w->self));
    memset(&w->ends[0], 0, sizeof(w->ends[0]));
    w->n_ends = 0;
    w->self.world = w;
    arm(n);
    int rc =
        ms_conn_connect(w->base, w->address, &w->client, &noting, &w->self, &w->self.conn, NULL);
    if (rc != MS_OK) {
        ck_assert_int_eq(rc, MS_E_NOMEM);
        return disarm();
    }
    int asked = 0;
    while (!w->self.closed) {
        event_base_loop(w->base, EVLOOP_ONCE);
        if (!asked && w->self.opened && w->self.conn != NULL) {
            asked = 1;
            if (ms_conn_send(w->self.conn, MS_MSG_OK, 1, &ok.base, NULL) != MS_OK) {
                ms_conn_close(w->self.conn);
            }
        } else if (w->self.frames > 0 && w->self.conn != NULL) {
            ms_conn_close(w->self.conn);
        }
    }
    int more = disarm();
    if (w->n_ends > 0) {
        run_until(w, &w->ends[0].closed);
    }
    ck_assert_int_eq(w->self.closed, 1);
    ck_assert_str_ne(w->self.reason, "");
    if (!more) {
        ck_assert_int_eq(w->self.frames, 1);
        ck_assert_int_eq(w->self.code, MS_OK);
    }
    return more;
}

static void check_conversations(struct world *w)
{
    long n = 0;
    event_free(w->listener);
    w->listener = event_new(w->base, w->listen_fd, EV_READ | EV_PERSIST, on_accept_or_not, w);
    event_add(w->listener, NULL);
    w->server.handshake_ms = 200; /* a Hello that found no memory is waited for this long */
    w->client.handshake_ms = 400;
    while (converse(w, n)) {
        n++;
    }
    printf("%ld allocations failed\n", n);
    ck_assert_int_gt(n, 4);
    w->n_ends = 0; /* both are gone */
    world_fini(w);
}

START_TEST(a_plain_conversation_ends_in_words)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    check_conversations(&w);
}
END_TEST

START_TEST(a_tls_conversation_ends_in_words)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_USER);
    check_conversations(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nomem");
    TCase *tc = tcase_create("nomem");
    tcase_add_test(tc, frames_are_refused_or_read_whole);
    tcase_add_test(tc, settings_are_refused_or_read_whole);
    tcase_add_test(tc, certificates_are_refused_or_made_whole);
    tcase_add_test(tc, a_plain_conversation_ends_in_words);
    tcase_add_test(tc, a_tls_conversation_ends_in_words);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
