/* test_comm_frames.c - a rank against a peer that sends the wrong frames */
#include "tests/unit/comm_fake.h"

#include "proto/clock.h"

static struct frame fake_frame(void)
{
    return (struct frame){
        .type = FRAME_DATA, .kind = MESH_BARRIER, .generation = 5, .sequence = 1, .length = 8};
}

static void fake_send_frame(int fd, const struct frame *frame, const char *magic)
{
    uint8_t bytes[FRAME_HEADER + 4096] = {0};
    frame_encode(frame, bytes);
    memcpy(bytes, magic, 4);
    size_t size = FRAME_HEADER + (frame->length < 4096 ? frame->length : 4096);
    ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Joins, sends one frame, and lets the barrier of rank 0 end. */
static struct maker barrier_against(struct comm_case *c, const struct frame *frame,
                                    const char *magic)
{
    struct maker maker = {.barriers = 1};
    maker.cfg = comm_case_config(c, 0, 100);
    maker.cfg.timeout_ms = 1000;
    maker_start(&maker, c, 0);
    int fd = fake_join(c);
    fake_send_frame(fd, frame, magic);
    maker_join(&maker);
    close(fd);
    return maker;
}

START_TEST(frames_that_do_not_belong_are_refused_and_named)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct frame frame = fake_frame();
    struct maker maker = barrier_against(c, &frame, "MSD1");
    ck_assert_msg(maker.rc == 0, "%s", maker.err.text);

    maker = barrier_against(c, &frame, "HTTP");
    check_failed(&maker, MS_E_PROTOCOL, "rank 1 (node w1 on host localhost) sent");
    frame.length = MS_DATA_FRAME_MAX + 1;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "1048577");
    frame = fake_frame();
    frame.generation = 6;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_ABORTED, "generation 6");
    frame = fake_frame();
    frame.kind = MESH_ALL_REDUCE;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "all_reduce");
    frame = fake_frame();
    frame.offset = 4;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "offset 4");
    frame = fake_frame();
    frame.length = 9;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "length 9");
    frame = fake_frame();
    frame.sequence = 2;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "number 2");
    frame = fake_frame();
    frame.group = 3;
    maker = barrier_against(c, &frame, "MSD1");
    check_failed(&maker, MS_E_PROTOCOL, "a frame of group 3 on the connection of group 0");
    comm_case_close(c);
}
END_TEST

START_TEST(frames_of_an_older_generation_are_skipped_and_named)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct maker maker = {.barriers = 1};
    struct frame old = fake_frame();
    struct frame frame = fake_frame();
    old.generation = 4;
    old.length = 3000;
    maker_start(&maker, c, 0);
    int fd = fake_join(c);
    fake_send_frame(fd, &old, "MSD1");
    fake_send_frame(fd, &old, "MSD1");
    fake_send_frame(fd, &frame, "MSD1");
    maker_join(&maker);
    close(fd);
    ck_assert_msg(maker.rc == 0, "%s", maker.err.text);

    maker = barrier_against(c, &old, "MSD1");
    check_failed(&maker, MS_E_TIMEOUT, "1 frames of the older generation 4 skipped");
    comm_case_close(c);
}
END_TEST

/* A peer whose process missed that there is a new generation, and that is quick. */
START_TEST(a_flood_of_an_older_generation_is_cut_off_and_named)
{
    enum { FRAMES = 64, PATIENCE_MS = 60000 };
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct maker maker = {.barriers = 1};
    struct frame old = fake_frame();
    uint8_t bytes[FRAMES][FRAME_HEADER + 8] = {{0}};
    old.generation = 4;
    for (int i = 0; i < FRAMES; i++) {
        frame_encode(&old, bytes[i]);
    }
    maker_start(&maker, c, 0);
    int fd = fake_join(c);
    int64_t begun = ms_mono_ms();
    while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0 && ms_mono_ms() - begun < PATIENCE_MS) {
    }

    ck_assert_int_lt(ms_mono_ms() - begun, PATIENCE_MS); /* it was cut off */
    maker_join(&maker);
    check_failed(
        &maker, MS_E_PROTOCOL,
        "rank 1 (node w1 on host localhost) sends data of the older generation 4 without end");
    close(fd);
    comm_case_close(c);
}
END_TEST

/* A rank 0 that waits at the gate, so that all that its peers do comes before its barrier. */
static void begin_gated(struct maker *maker, const struct comm_case *c, int gate[2])
{
    ck_assert_int_eq(pipe(gate), 0);
    *maker = (struct maker){.barriers = 1, .gate_fd = gate[0]};
    maker_start(maker, c, 0);
}

static void end_gated(struct maker *maker, int gate[2])
{
    ck_assert_int_eq(write(gate[1], "x", 1), 1);
    maker_join(maker);
    close(gate[0]);
    close(gate[1]);
}

static void send_garbage(int fd)
{
    uint8_t garbage[FRAME_HEADER];
    memset(garbage, 'G', sizeof(garbage));
    ck_assert_int_eq(send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL), FRAME_HEADER);
}

START_TEST(garbage_before_a_reset_is_named_by_whoever_looks_why_it_ended)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct linger at_once = {.l_onoff = 1};
    struct maker maker;
    int gate[2];
    begin_gated(&maker, c, gate);
    int fd = fake_join(c);
    send_garbage(fd);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);

    end_gated(&maker, gate);

    check_failed(&maker, MS_E_PROTOCOL,
                 "rank 1 (node w1 on host localhost) sent: bytes 47 47 47 47 where a frame must");
    comm_case_close(c);
}
END_TEST

START_TEST(garbage_of_one_peer_is_named_while_another_one_has_left)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 3);
    struct frame bye = {.type = FRAME_BYE, .generation = 5};
    struct maker maker;
    int gate[2];
    begin_gated(&maker, c, gate);
    int leaver = fake_join_as(c, 1);
    int liar = fake_join_as(c, 2);
    fake_send_frame(leaver, &bye, "MSD1");
    send_garbage(liar);
    ck_assert_int_eq(shutdown(liar, SHUT_WR), 0);

    end_gated(&maker, gate);

    check_failed(&maker, MS_E_PROTOCOL, "rank 2 (node w2 on host localhost) sent: bytes 47");
    close(leaver);
    close(liar);
    comm_case_close(c);
}
END_TEST

START_TEST(who_asks_for_no_words_gets_the_code)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct mesh_config cfg = comm_case_config(c, 0, 100);
    struct maker other = {.barriers = 0};
    struct mesh *mesh = NULL;
    maker_start(&other, c, 1);
    ck_assert_int_eq(mesh_create(&cfg, &mesh, NULL), 0);
    maker_join(&other);

    mesh_abort(mesh, "no more");

    ck_assert_int_eq(mesh_barrier(mesh, NULL), MS_E_ABORTED);
    ck_assert_int_eq(mesh_barrier(mesh, NULL), MS_E_ABORTED);
    mesh_destroy(mesh);
    comm_case_close(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_frames");
    TCase *tc = tcase_create("frames");
    tcase_add_test(tc, frames_that_do_not_belong_are_refused_and_named);
    tcase_add_test(tc, frames_of_an_older_generation_are_skipped_and_named);
    tcase_add_test(tc, a_flood_of_an_older_generation_is_cut_off_and_named);
    tcase_add_test(tc, garbage_before_a_reset_is_named_by_whoever_looks_why_it_ended);
    tcase_add_test(tc, garbage_of_one_peer_is_named_while_another_one_has_left);
    tcase_add_test(tc, who_asks_for_no_words_gets_the_code);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
