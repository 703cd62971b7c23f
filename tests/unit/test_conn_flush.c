/* test_conn_flush.c - frames that wait for the end of a turn: out at once, in order, none lost */
#include "tests/unit/conn_world.h"

enum { FRAME_BYTES = 64, MANY = 4000 };

/* An Ok with this id, packed. Returns its size. */
static size_t pack_ok(uint32_t id, uint8_t buf[FRAME_BYTES])
{
    Ms__Ok ok = MS__OK__INIT;
    ok.text = (char *)"an answer";
    size_t size = ms_wire_size(&ok.base);
    ck_assert_uint_le(size, FRAME_BYTES);
    ck_ms_ok(ms_wire_pack(MS_MSG_OK, id, &ok.base, buf, size, err));
    return size;
}

static void send_kept(struct world *w, uint32_t id)
{
    uint8_t frame[FRAME_BYTES];
    size_t size = pack_ok(id, frame);
    ck_ms_ok(ms_conn_send_bytes(w->ends[0].conn, frame, size, err));
}

static void open_plain(struct world *w)
{
    world_init(w, "127.0.0.1:0");
    w->server.is_flushed = 1;
    dial(w);
    run_until(w, &w->self.opened);
    run_until(w, &w->ends[0].opened);
}

static void open_tls(struct world *w)
{
    world_init_tls(w, MS_ROLE_WORKER);
    w->server.is_flushed = 1;
    dial(w);
    run_until(w, &w->self.opened);
    run_until(w, &w->ends[0].opened);
}

/* Each frame follows the one before it. */
static void in_order(struct end *end, const struct ms_wire_header *head)
{
    ck_assert_uint_eq(head->id, (uint32_t)end->frames);
}

static void check_at_once(struct world *w)
{
    send_kept(w, 1);
    send_kept(w, 2);
    size_t kept = ms_conn_unsent(w->ends[0].conn);
    ms_conn_flush(w->ends[0].conn, 1);

    ck_assert_uint_gt(kept, 0);
    ck_assert_uint_eq(ms_conn_unsent(w->ends[0].conn), 0); /* and the loop did not run */
    ck_assert_int_eq(ms_conn_has_unread(w->self.conn), 1);
    w->self.on_frame = in_order;
    while (w->self.frames < 2) {
        event_base_loop(w->base, EVLOOP_ONCE);
    }
}

START_TEST(what_is_flushed_is_in_the_socket_without_the_loop)
{
    struct world w;
    open_plain(&w);
    check_at_once(&w);
    world_fini(&w);

    open_tls(&w);
    check_at_once(&w);
    world_fini(&w);
}
END_TEST

/* Far more than the sockets take: what is left over is the loop's, and comes as it was sent. */
static void check_many(struct world *w)
{
    static uint8_t data[4096];
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    static uint8_t frame[sizeof(data) + 256];
    chunk.data.data = data;
    chunk.data.len = sizeof(data);
    size_t size = ms_wire_size(&chunk.base);
    ck_assert_uint_le(size, sizeof(frame));
    size_t most = 0;
    w->self.on_frame = in_order;
    for (uint32_t i = 1; i <= MANY; i++) {
        memset(data, (int)i, sizeof(data));
        ck_ms_ok(ms_wire_pack(MS_MSG_LOG_CHUNK, i, &chunk.base, frame, size, err));
        ck_ms_ok(ms_conn_send_bytes(w->ends[0].conn, frame, size, err));
        ms_conn_flush(w->ends[0].conn, i % 7 != 0);
        most = ms_conn_unsent(w->ends[0].conn) > most ? ms_conn_unsent(w->ends[0].conn) : most;
        while (ms_conn_unsent(w->ends[0].conn) > MS_OUTPUT_SOFT) { /* now somebody reads */
            event_base_loop(w->base, EVLOOP_ONCE);
        }
    }
    while (w->self.frames < MANY) {
        event_base_loop(w->base, EVLOOP_ONCE);
    }
    ck_assert_uint_gt(most, MS_OUTPUT_SOFT); /* or nothing was left over */
}

START_TEST(what_the_socket_does_not_take_follows_in_order)
{
    struct world w;
    open_plain(&w);
    check_many(&w);
    world_fini(&w);

    open_tls(&w);
    check_many(&w);
    world_fini(&w);
}
END_TEST

START_TEST(a_frame_that_does_not_wait_overtakes_none)
{
    struct world w;
    open_tls(&w);
    w.self.on_frame = in_order;

    send_kept(&w, 1);
    send_ok(w.ends[0].conn, 2, "at once"); /* takes the first with it */
    while (w.self.frames < 2) {
        event_base_loop(w.base, EVLOOP_ONCE);
    }
    send_kept(&w, 3);
    send_ok(w.ends[0].conn, 4, "at once");
    send_kept(&w, 5);
    ms_conn_flush(w.ends[0].conn, 1);
    while (w.self.frames < 5) {
        event_base_loop(w.base, EVLOOP_ONCE);
    }

    ck_assert_uint_eq(w.self.last_id, 5);
    world_fini(&w);
}
END_TEST

START_TEST(an_end_takes_what_waits_with_it)
{
    struct world w;
    open_tls(&w);

    send_kept(&w, 1);
    ms_conn_close(w.ends[0].conn);
    ms_conn_flush(w.ends[0].conn, 1);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.frames, 1);
    world_fini(&w);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_found_out_by_the_loop)
{
    struct world w;
    open_tls(&w);
    ms_conn_destroy(w.self.conn);
    w.self.conn = NULL;

    for (uint32_t i = 1; i <= 8 && !w.ends[0].closed; i++) {
        send_kept(&w, i);
        ms_conn_flush(w.ends[0].conn, 1);
        ck_assert_int_eq(w.ends[0].closed, 0); /* not from inside of it */
    }
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_CLOSED);
    world_fini(&w);
}
END_TEST

/* The other end asks, each answer waits for a flush that never comes: it stops asking, and what it
 * was owed is not kept from it. */
static void answer_kept(struct end *end, const struct ms_wire_header *head)
{
    static uint8_t data[MS_LOG_CHUNK_MAX];
    static uint8_t frame[MS_LOG_CHUNK_MAX + 256];
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.data.data = data;
    chunk.data.len = sizeof(data) - 128;
    size_t size = ms_wire_size(&chunk.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_LOG_CHUNK, head->id, &chunk.base, frame, size, err));
    ck_ms_ok(ms_conn_send_bytes(end->conn, frame, size, err));
}

START_TEST(above_the_soft_limit_nothing_waits_for_a_flush)
{
    struct world w;
    open_plain(&w);
    w.ends[0].on_frame = answer_kept;
    w.self.on_frame = in_order;
    uint32_t enough = 2 * MS_OUTPUT_SOFT / MS_LOG_CHUNK_MAX + 1;

    for (uint32_t i = 1; i <= enough; i++) {
        send_ok(w.self.conn, i, "more");
    }
    while (w.ends[0].frames < (int)enough) {
        event_base_loop(w.base, EVLOOP_ONCE);
    }

    ms_conn_flush(w.ends[0].conn, 1);
    while (w.self.frames < (int)enough) {
        event_base_loop(w.base, EVLOOP_ONCE);
    }
    world_fini(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_flush");
    TCase *tcase = tcase_create("conn_flush");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, what_is_flushed_is_in_the_socket_without_the_loop);
    tcase_add_test(tcase, what_the_socket_does_not_take_follows_in_order);
    tcase_add_test(tcase, a_frame_that_does_not_wait_overtakes_none);
    tcase_add_test(tcase, an_end_takes_what_waits_with_it);
    tcase_add_test(tcase, a_peer_that_is_gone_is_found_out_by_the_loop);
    tcase_add_test(tcase, above_the_soft_limit_nothing_waits_for_a_flush);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
