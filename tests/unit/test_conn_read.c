/* test_conn_read.c - frames in: who may make room for large ones, and what counts as a step */
#include "proto/conn_private.h"
#include "tests/unit/conn_world.h"

/* ---- large frames ---- */

static int n_big;

static int may_grow(void *arg)
{
    (void)arg;
    n_big++;
    return 1;
}

static void has_shrunk(void *arg)
{
    (void)arg;
    n_big--;
}

/* The head of a large Submit, and nothing behind it. */
static void raw_big_head(int fd)
{
    static uint8_t spec[MS_FRAME_SMALL];
    static uint8_t frame[2 * MS_FRAME_SMALL];
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.workers = 1;
    submit.job_json.data = spec;
    submit.job_json.len = sizeof(spec);
    size_t size = ms_wire_size(&submit.base);
    ck_assert_uint_le(size, sizeof(frame));
    ck_ms_ok(ms_wire_pack(MS_MSG_SUBMIT, 7, &submit.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, MS_WIRE_HEADER), MS_WIRE_HEADER);
}

START_TEST(half_a_large_frame_keeps_its_deadline_while_answers_are_not_read)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    struct world w;
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    n_big = 0;
    world_init(&w, "127.0.0.1:0");
    w.server.may_grow = may_grow;
    w.server.has_shrunk = has_shrunk;
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);
    struct ms_conn *conn = w.ends[0].conn;

    raw_big_head(fd);
    run_until(&w, &n_big);
    while (ms_conn_unsent(conn) <= 2 * MS_OUTPUT_SOFT) { /* answers of before, that nobody reads */
        ck_ms_ok(ms_conn_send(conn, MS_MSG_LOG_CHUNK, 1, &chunk.base, err));
        event_base_loop(w.base, EVLOOP_NONBLOCK);
    }
    ck_assert_int_eq(write(fd, "x", 1), 1);
    run_until(&w, &conn->is_paused);

    ck_assert_int_eq(n_big, 1);
    ck_assert_msg(evtimer_pending(conn->deadline, NULL), "the place is taken without end");
    close(fd);
    world_fini(&w);
    ck_assert_int_eq(n_big, 0);
}
END_TEST

/* ---- steps of a handshake ---- */

static int n_steps;

static void count_step(void *arg)
{
    (void)arg;
    n_steps++;
}

START_TEST(a_handshake_that_comes_byte_by_byte_is_one_step)
{
    /* a record of 512 bytes of ClientHello, of which only the first 40 ever come */
    static const uint8_t start[40] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01,
                                      0x00, 0x01, 0xfc, 0x03, 0x03};
    struct world w;
    n_steps = 0;
    world_init_tls(&w, MS_ROLE_USER);
    w.server.on_work = count_step;
    int fd = raw_connect(&w);
    run_until(&w, &w.n_ends);

    for (size_t i = 0; i < sizeof(start); i++) {
        ck_assert_int_eq(write(fd, &start[i], 1), 1);
        while (ms_conn_has_unread(w.ends[0].conn)) {
            event_base_loop(w.base, EVLOOP_NONBLOCK);
        }
    }

    ck_assert_msg(n_steps <= 1, "%d steps", n_steps);
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(a_handshake_that_goes_on_is_seen_to)
{
    struct world w;
    n_steps = 0;
    world_init_tls(&w, MS_ROLE_USER);
    w.server.on_work = count_step;
    dial(&w);
    run_until(&w, &w.ends[0].opened);

    ck_assert_int_ge(n_steps, 2); /* the hello, and the certificate */
    world_fini(&w);
}
END_TEST

/* ---- what lies there when the peer is gone ---- */

enum { WORDS = 1000 };

static int may_take_now;

static int may_take(void *arg)
{
    (void)arg;
    return may_take_now;
}

static void answer(struct end *end, const struct ms_wire_header *head)
{
    ck_assert_uint_eq(head->id, (uint32_t)end->frames); /* in order, each once */
    send_ok(end->conn, head->id, "heard");
    ms_conn_flush(end->conn, 1);
}

/* As with a server that hangs meanwhile: more than it reads at once, and the answer to the first
 * word finds nobody. */
static void check_last_words(struct world *w)
{
    may_take_now = 0;
    w->server.may_take = may_take;
    w->server.is_flushed = 1;
    dial(w);
    run_until(w, &w->self.opened);
    run_until(w, &w->ends[0].opened);
    w->ends[0].on_frame = answer;
    for (uint32_t i = 1; i <= WORDS; i++) {
        send_ok(w->self.conn, i, "a word");
    }
    while (ms_conn_unsent(w->self.conn) > 0) {
        event_base_loop(w->base, EVLOOP_ONCE);
    }
    ms_conn_destroy(w->self.conn);
    w->self.conn = NULL;

    may_take_now = 1;
    ms_conn_resume(w->ends[0].conn);
    run_until(w, &w->ends[0].closed);

    ck_assert_int_eq(w->ends[0].frames, WORDS);
    ck_assert_int_eq(w->ends[0].code, MS_E_CLOSED);
    ck_contains(w->ends[0].reason, "closed the connection");
    world_fini(w);
}

START_TEST(words_of_a_peer_that_is_gone_are_heard_to_the_last)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    check_last_words(&w);
}
END_TEST

START_TEST(words_of_a_peer_that_is_gone_are_heard_over_tls_too)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    check_last_words(&w);
}
END_TEST

/* It takes nothing any more, says nothing, and does not close. */
START_TEST(a_peer_that_hears_nothing_and_stays_is_given_up)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    w.server.handshake_ms = 200;
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);
    struct ms_conn *conn = w.ends[0].conn;
    int ours = bufferevent_getfd(conn->bev);
    ck_assert_int_eq(shutdown(ours, SHUT_WR), 0); /* so that a write fails */
    send_ok(conn, 1, "to nobody");
    run_until(&w, &conn->is_deaf);
    send_ok(conn, 2, "nor this");

    run_until(&w, &w.ends[0].closed);

    ck_contains(w.ends[0].reason, "broke: Broken pipe");
    close(fd);
    world_fini(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_read");
    TCase *tcase = tcase_create("conn_read");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, half_a_large_frame_keeps_its_deadline_while_answers_are_not_read);
    tcase_add_test(tcase, a_handshake_that_comes_byte_by_byte_is_one_step);
    tcase_add_test(tcase, a_handshake_that_goes_on_is_seen_to);
    tcase_add_test(tcase, words_of_a_peer_that_is_gone_are_heard_to_the_last);
    tcase_add_test(tcase, words_of_a_peer_that_is_gone_are_heard_over_tls_too);
    tcase_add_test(tcase, a_peer_that_hears_nothing_and_stays_is_given_up);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
