/* test_decoded.c - decoded records in memory, once a host: found by all, whoever is killed when;
 * bounded, and never of another file */
#include "libworker/data/decoded_impl.h"
#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 50, SIDE = 20, RECORD = 3 * SIDE * SIDE };

static const char *dir;
static struct stat file; /* of which all records are */
static struct decoded_set set;

static void setup(void)
{
    dir = test_dir_make();
    ck_assert_int_eq(stat(dir, &file), 0);
    file.st_ctim.tv_sec -= 10; /* it was there before */
    set = (struct decoded_set){.device = (int64_t)file.st_dev,
                               .inode = (int64_t)file.st_ino,
                               .names = 7,
                               .channels = 3,
                               .height = SIDE,
                               .width = SIDE,
                               .rows = ROWS,
                               .bytes_max = 1 << 20};
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static struct decoded *opened(void)
{
    struct decoded *d = decoded_open(&set);
    ck_assert_ptr_nonnull(d);
    return d;
}

static void keep(struct decoded *d, int64_t row)
{
    uint8_t record[RECORD];
    memset(record, (int)(row + 1), sizeof(record));
    decoded_keep(d, row, &file, record);
}

static int has(const struct decoded *d, int64_t row)
{
    uint8_t record[RECORD];
    memset(record, (int)(row + 1), sizeof(record));
    const uint8_t *found = decoded_find(d, row, &file);
    ck_assert(found == NULL || memcmp(found, record, sizeof(record)) == 0);
    return found != NULL;
}

START_TEST(what_one_decodes_all_find)
{
    struct decoded *a = opened();
    struct decoded *b = opened();
    for (int64_t row = 0; row < ROWS; row += 2) {
        ck_assert(!has(b, row));
        keep(row % 4 == 0 ? a : b, row);
    }
    for (int64_t row = 0; row < ROWS; row++) {
        ck_assert_int_eq(has(a, row), row % 2 == 0);
        ck_assert_int_eq(has(b, row), row % 2 == 0);
    }
    ck_assert_int_eq(decoded_count(b), ROWS / 2);
    decoded_close(a);
    decoded_close(b);
    decoded_close(NULL);
}
END_TEST

START_TEST(of_another_file_it_is_not_there)
{
    struct decoded *d = opened();
    keep(d, 3);
    struct stat others[5];
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        others[i] = file;
    }
    others[0].st_size++;
    others[1].st_ino++;
    others[2].st_mtim.tv_nsec ^= 1;
    others[3].st_ctim.tv_sec++;
    others[4].st_dev++;
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        ck_assert_ptr_null(decoded_find(d, 3, &others[i]));
        decoded_keep(d, 3, &others[i], (const uint8_t *)"");
    }
    ck_assert(has(d, 3)); /* what is there is never written again: somebody may read it */
    decoded_close(d);
}
END_TEST

START_TEST(a_file_that_may_still_change_is_not_kept)
{
    struct decoded *d = opened();
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
    file.st_ctim = now;
    file.st_ctim.tv_sec += 3600; /* of a clock that is ahead */
    keep(d, 1);
    ck_assert(!has(d, 1));
    file.st_ctim.tv_sec -= 7200;
    keep(d, 1);
    ck_assert(has(d, 1));
    decoded_close(d);
}
END_TEST

START_TEST(another_set_is_other_memory)
{
    struct decoded *a = opened();
    keep(a, 1);
    set.names++;
    struct decoded *b = opened();
    ck_assert(!has(b, 1));
    decoded_close(a);
    decoded_close(b);
}
END_TEST

START_TEST(no_more_is_taken_than_may_be)
{
    struct stat st;
    set.bytes_max = 2 * 4096 + 10 * (RECORD + 64);
    struct decoded *d = opened();
    set.bytes_max = 1 << 20; /* of who comes later it is no question */
    struct decoded *guest = opened();
    for (int64_t row = 0; row < ROWS; row++) {
        keep(guest, row);
    }
    for (int64_t row = 0; row < ROWS; row++) {
        ck_assert_int_eq(has(d, row), row < 10);
    }
    ck_assert_int_eq(fstat(d->memory, &st), 0);
    ck_assert_int_le(st.st_size, 2 * 4096 + 10 * (RECORD + 64));
    decoded_close(d);
    decoded_close(guest);
    set.bytes_max = 4096;
    set.names++;
    ck_assert_ptr_null(decoded_open(&set));
}
END_TEST

/* One that says when it is there, and stays. */
static pid_t start_server(int kept)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct decoded *d = decoded_open(&set);
        for (int64_t row = 0; d != NULL && row < kept; row++) {
            keep(d, row);
        }
        if (write(ready[1], &byte, d != NULL) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_server(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Until somebody serves it again: a guest notices within moments. */
static void await_server(const struct host_copy_id *id)
{
    for (;;) {
        const int fd = copy_link_connect(id);
        if (fd >= 0) {
            close(fd);
            return;
        }
        (void)poll(NULL, 0, 1);
    }
}

START_TEST(who_is_left_serves_it_on)
{
    pid_t pid = start_server(20);
    struct decoded *a = opened();
    struct decoded *b = opened();
    ck_assert_int_eq(decoded_count(a), 20);
    end_server(pid);
    await_server(&a->id);
    for (int64_t row = 0; row < 25; row++) {
        ck_assert_int_eq(has(a, row), row < 20);
        keep(a, row);
    }
    struct decoded *c = opened(); /* who took the place of the one that was killed */
    ck_assert_int_eq(decoded_count(c), 25);
    ck_assert(has(c, 24) && has(b, 24));
    decoded_close(a);
    await_server(&b->id);
    struct decoded *d = opened();
    ck_assert(has(d, 24));
    decoded_close(b);
    decoded_close(c);
    decoded_close(d);
    d = opened(); /* and when the last one ended it is gone */
    ck_assert_int_eq(decoded_count(d), 0);
    decoded_close(d);
}
END_TEST

START_TEST(what_a_killed_writer_began_is_not_there)
{
    struct decoded *a = opened();
    struct decoded *b = opened();
    atomic_store(&a->marks[5].state, DECODED_BUSY);
    memset(a->records + 5 * RECORD, 99, RECORD / 2);
    ck_assert(!has(b, 5));
    keep(b, 5);
    ck_assert(!has(b, 5));
    keep(b, 6);
    ck_assert(has(a, 6));
    decoded_close(a);
    decoded_close(b);
}
END_TEST

/* Many processes, killed at any moment: what is found is right. */
START_TEST(no_kill_leaves_half_a_record)
{
    enum { TURNS = 60, WRITERS = 3 };
    struct decoded *d = opened();
    for (int turn = 0; turn < TURNS; turn++) {
        pid_t pids[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            pids[i] = fork();
            ck_assert_int_ge(pids[i], 0);
            if (pids[i] == 0) {
                struct decoded *own = decoded_open(&set);
                for (int64_t n = 0; own != NULL; n++) {
                    keep(own, (turn + i + 7 * n) % ROWS);
                }
                _exit(0);
            }
        }
        (void)poll(NULL, 0, turn % 4);
        for (int i = 0; i < WRITERS; i++) {
            end_server(pids[i]);
        }
        for (int64_t row = 0; row < ROWS; row++) {
            (void)has(d, row);
        }
        for (int64_t row = 0; row < ROWS; row++) { /* anew */
            atomic_store(&d->marks[row].state, DECODED_EMPTY);
        }
    }
    decoded_close(d);
}
END_TEST

/* A server that hands out what it likes. */
static void ck_refuses(int memory)
{
    const struct decoded_set other = {.device = 1,
                                      .inode = 2,
                                      .names = 3,
                                      .channels = 1,
                                      .height = 8,
                                      .width = 8,
                                      .rows = 4,
                                      .bytes_max = 1 << 20};
    struct decoded *d = decoded_open(&other); /* for its identity alone */
    ck_assert_ptr_nonnull(d);
    const struct host_copy_id id = d->id;
    decoded_close(d);
    const int listener = copy_link_listen(&id);
    ck_assert_int_ge(listener, 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(decoded_open(&other) == NULL ? 0 : 1);
    }
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, -1), 1);
    const int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(copy_link_send(fd, memory), 0);
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(fd);
    close(listener);
    close(memory);
}

START_TEST(memory_that_is_not_what_it_should_be_is_refused)
{
    const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_refuses(null_fd);
    int fd = memfd_create("case", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* it might shrink */
    ck_assert_int_eq(ftruncate(fd, 1 << 16), 0);
    ck_refuses(fd);
    fd = memfd_create("case", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* of nothing */
    ck_assert_int_eq(ftruncate(fd, 1 << 16), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    ck_refuses(fd);
    fd = memfd_create("case", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* too small for a head */
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    ck_refuses(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decoded");
    TCase *tc = tcase_create("decoded");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_one_decodes_all_find);
    tcase_add_test(tc, of_another_file_it_is_not_there);
    tcase_add_test(tc, a_file_that_may_still_change_is_not_kept);
    tcase_add_test(tc, another_set_is_other_memory);
    tcase_add_test(tc, no_more_is_taken_than_may_be);
    tcase_add_test(tc, who_is_left_serves_it_on);
    tcase_add_test(tc, what_a_killed_writer_began_is_not_there);
    tcase_add_test(tc, no_kill_leaves_half_a_record);
    tcase_add_test(tc, memory_that_is_not_what_it_should_be_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
