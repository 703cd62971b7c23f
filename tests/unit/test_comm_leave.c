/* test_comm_leave.c - goodbyes through a socket that takes little at a time, and often nothing
 *
 * The kernel fills a socket when it likes; so the library's writes go through a narrow one here,
 * and its clock stands still, so that no deadline ends what the test wants to see whole. */
#include "libworker/comm/group.h"
#include "tests/unit/comm_fake.h"

enum { HEAD_MAX = 7, BODY_MAX = 50000, LARGE = 64 << 20 };

static atomic_int is_narrow;
static atomic_int turns;

ssize_t __real_link_write(struct link *link, const void *head, size_t head_size, const void *body,
                          size_t body_size);
ssize_t __wrap_link_write(struct link *link, const void *head, size_t head_size, const void *body,
                          size_t body_size);
uint64_t __real_mesh_now_ns(void);
uint64_t __wrap_mesh_now_ns(void);

/* Every second time full; else a few bytes of a header, or some of a payload. */
ssize_t __wrap_link_write(struct link *link, const void *head, size_t head_size, const void *body,
                          size_t body_size)
{
    if (!atomic_load(&is_narrow)) {
        return __real_link_write(link, head, head_size, body, body_size);
    }
    if (atomic_fetch_add(&turns, 1) % 2 == 0) {
        link->write_wants = POLLOUT;
        return LINK_AGAIN;
    }
    if (head_size > 0) {
        return __real_link_write(link, head, head_size < HEAD_MAX ? head_size : HEAD_MAX, NULL, 0);
    }
    return __real_link_write(link, NULL, 0, body, body_size < BODY_MAX ? body_size : BODY_MAX);
}

uint64_t __wrap_mesh_now_ns(void)
{
    return atomic_load(&is_narrow) ? 1 : __real_mesh_now_ns();
}

struct sender {
    struct mesh_config cfg;
    int joined[2]; /* a pipe: the mesh stands ... */
    int leave[2];  /* ... and may be destroyed */
    struct mesh *mesh;
    size_t bytes; /* to broadcast */
    int rc;
    pthread_t thread;
};

static void *send_and_leave(void *arg)
{
    struct sender *sender = arg;
    uint8_t *data = calloc(sender->bytes + 1, 1);
    int rc = data != NULL ? mesh_create(&sender->cfg, &sender->mesh, NULL) : MS_E_NOMEM;
    atomic_store(&is_narrow, 1);
    rc = rc == 0 && write(sender->joined[1], "x", 1) != 1 ? MS_E_IO : rc;
    if (rc == 0 && sender->bytes > 0) {
        rc = mesh_broadcast(sender->mesh, data, sender->bytes, 0, NULL);
    }
    char byte = 0;
    sender->rc = read(sender->leave[0], &byte, 1) == 1 ? rc : MS_E_IO;
    mesh_destroy(sender->mesh);
    free(data);
    return NULL;
}

static int sender_start(struct sender *sender, const struct comm_case *c, size_t bytes)
{
    char byte = 0;
    *sender = (struct sender){.cfg = comm_case_config(c, 0, 100), .bytes = bytes};
    atomic_store(&is_narrow, 0);
    ck_assert_int_eq(pipe(sender->joined), 0);
    ck_assert_int_eq(pipe(sender->leave), 0);
    ck_assert_int_eq(pthread_create(&sender->thread, NULL, send_and_leave, sender), 0);
    int fd = fake_join(c);
    ck_assert_int_eq(read(sender->joined[0], &byte, 1), 1);
    return fd;
}

static void sender_let_go(struct sender *sender)
{
    ck_assert_int_eq(write(sender->leave[1], "x", 1), 1);
}

static void sender_end(struct sender *sender, int fd)
{
    ck_assert_int_eq(pthread_join(sender->thread, NULL), 0);
    for (int i = 0; i < 2; i++) {
        close(sender->joined[i]);
        close(sender->leave[i]);
    }
    close(fd);
}

/* The next frame, its payload left out: 0 at the end. */
static int take_frame(int fd, struct frame *ret)
{
    uint8_t head[FRAME_HEADER];
    uint8_t junk[4096];
    ssize_t n = recv(fd, head, sizeof(head), MSG_WAITALL);
    if (n == 0) {
        return 0;
    }
    ck_assert_msg(n == FRAME_HEADER, "%zd bytes of a header", n);
    ck_ms_ok(frame_decode(head, ret, err));
    for (size_t left = ret->length; left > 0;) {
        n = recv(fd, junk, left < sizeof(junk) ? left : sizeof(junk), MSG_WAITALL);
        ck_assert_msg(n > 0, "%zu bytes of a payload are missing", left);
        left -= (size_t)n;
    }
    return 1;
}

START_TEST(a_goodbye_that_the_socket_takes_piece_by_piece_arrives_whole)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct sender sender;
    struct frame frame;
    int fd = sender_start(&sender, c, 0);

    sender_let_go(&sender);
    ck_assert_int_eq(take_frame(fd, &frame), 1);

    ck_assert_int_eq(frame.type, FRAME_BYE);
    ck_assert_int_eq(frame.phase, FRAME_BYE_DONE);
    ck_assert_int_eq(take_frame(fd, &frame), 0);
    sender_end(&sender, fd);
    int used = atomic_load(&turns);
    ck_assert_int_ge(used, 2 * FRAME_HEADER / HEAD_MAX); /* it was that narrow */
    comm_case_close(c);
}
END_TEST

/* It gives up with the socket full: the frame that has begun is finished, and only then BYE. */
START_TEST(a_goodbye_within_a_frame_comes_behind_the_whole_frame)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 2);
    struct sender sender;
    struct frame frame = {0};
    uint64_t offset = 0;
    int fd = sender_start(&sender, c, LARGE);
    struct group *all = mesh_all(sender.mesh);
    while (atomic_load(&all->counters[all->self]->waits) < 5) {
        sched_yield(); /* nobody reads: it waits, once the socket is full, again and again */
    }

    mesh_abort(sender.mesh, "enough");
    sender_let_go(&sender);
    while (take_frame(fd, &frame) && frame.type == FRAME_DATA) {
        ck_assert_uint_eq(frame.offset, offset);
        offset += frame.length;
    }

    ck_assert_int_eq(frame.type, FRAME_BYE);
    ck_assert_int_eq(frame.phase, FRAME_BYE_ABORTED);
    ck_assert_uint_eq(frame.begin, FRAME_NOBODY);
    ck_assert_uint_eq(frame.sequence, 0); /* nothing was completed */
    ck_assert_uint_lt(offset, LARGE);
    ck_assert_int_eq(take_frame(fd, &frame), 0);
    sender_end(&sender, fd);
    ck_assert_int_eq(sender.rc, MS_E_ABORTED);
    comm_case_close(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_leave");
    TCase *tc = tcase_create("leave");
    tcase_add_test(tc, a_goodbye_that_the_socket_takes_piece_by_piece_arrives_whole);
    tcase_add_test(tc, a_goodbye_within_a_frame_comes_behind_the_whole_frame);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
