/* test_comm_frames.c - a rank against a peer that sends the wrong frames */
#include "tests/unit/comm_fake.h"

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

int main(void)
{
    Suite *suite = suite_create("comm_frames");
    TCase *tc = tcase_create("frames");
    tcase_add_test(tc, frames_that_do_not_belong_are_refused_and_named);
    tcase_add_test(tc, frames_of_an_older_generation_are_skipped_and_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
