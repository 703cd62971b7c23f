/* test_host_copy.c - one copy of a file for a host: shared, checked, and done without where it must
 */
#include "libworker/data/host_copy_impl.h"
#include "proto/clock.h"
#include "proto/rng.h"
#include "tests/unit/data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SKIP = 16, BYTES = 3 << 20, SIZE = SKIP + BYTES, TAIL = 8 /* of gzip: CRC and size */ };

static const char *dir;
static uint8_t *content; /* SIZE bytes */
static struct host_copy_file file;

/* A file of SIZE bytes that do not pack well; cut: that are missing at the end of it. */
static void make_file(int is_packed, long cut)
{
    char path[128];
    dir = test_dir_make();
    content = malloc(SIZE);
    ck_assert_ptr_nonnull(content);
    for (int i = 0; i < SIZE; i++) {
        content[i] = (uint8_t)ms_rng_u64(3, (uint64_t)i);
    }
    snprintf(path, sizeof(path), "%s/file", dir);
    if (is_packed) {
        file_write_gz(dir, "file", content, SIZE, cut);
    } else {
        file_write(dir, "file", content, (size_t)(SIZE - cut));
    }
    file = (struct host_copy_file){
        .fd = open(path, O_RDWR | O_CLOEXEC), .is_packed = is_packed, .skip = SKIP, .bytes = BYTES};
    ck_assert_int_ge(file.fd, 0);
}

static void remove_file(void)
{
    close(file.fd);
    free(content);
    test_dir_remove(dir);
}

/* Reads pieces in any order; 0: one is not there or is not the file's. */
enum reading { RIGHT, WRONG, NOT_SERVED };

static enum reading read_at_random(struct host_copy *copy, uint64_t seed)
{
    for (uint64_t i = 0; i < 200; i++) {
        const int64_t at = (int64_t)ms_rng_below(seed, 2 * i, BYTES);
        const int64_t size = 1 + (int64_t)ms_rng_below(seed, 2 * i + 1, (uint64_t)(BYTES - at));
        const uint8_t *bytes = host_copy_get(copy, at, size, 1);
        if (bytes == NULL) {
            return NOT_SERVED;
        }
        if (memcmp(bytes, content + SKIP + at, (size_t)size) != 0) {
            return WRONG;
        }
    }
    return RIGHT;
}

static int reads_right(struct host_copy *copy, uint64_t seed)
{
    return read_at_random(copy, seed) == RIGHT;
}

START_TEST(who_comes_first_makes_it_and_the_others_read_it)
{
    struct host_copy *copies[4];
    make_file(_i, 0);
    for (int i = 0; i < 4; i++) {
        copies[i] = host_copy_open(&file);
        ck_assert_ptr_nonnull(copies[i]);
        ck_assert_int_eq(copies[i]->maker != NULL, i == 0);
    }

    for (int i = 3; i >= 0; i--) {
        ck_assert(reads_right(copies[i], (uint64_t)i));
    }

    host_copy_close(copies[0]); /* what is whole stays, whoever made it */
    ck_assert(reads_right(copies[1], 9));
    for (int i = 1; i < 4; i++) {
        host_copy_close(copies[i]);
    }
    host_copy_close(NULL);
    remove_file();
}
END_TEST

static enum reading read_as_rank(uint64_t seed)
{
    struct host_copy *copy = host_copy_open(&file);
    enum reading reading = copy != NULL ? read_at_random(copy, seed) : NOT_SERVED;
    host_copy_close(copy);
    return reading;
}

enum { RANKS = 6 };

/* How many were served; all of them what is in the file. */
static int ranks_at_once(void)
{
    pid_t pids[RANKS];
    int served = 0;
    for (int i = 0; i < RANKS; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            _exit((int)read_as_rank((uint64_t)i));
        }
    }
    for (int i = 0; i < RANKS; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_ne(WEXITSTATUS(status), WRONG);
        served += WEXITSTATUS(status) == RIGHT;
    }
    return served;
}

/* On a machine that stood still for HOST_COPY_ANSWER_MS meanwhile a rank reads for itself: again.
 */
START_TEST(processes_that_come_at_once_share_one)
{
    enum { TRIES = 20 };
    int served = 0;
    make_file(_i, 0);
    for (int i = 0; i < TRIES && served < RANKS; i++) {
        served = ranks_at_once();
    }
    ck_assert_int_eq(served, RANKS);
    remove_file();
}
END_TEST

START_TEST(a_maker_that_is_killed_leaves_nothing_behind)
{
    int status = 0;
    int pipe_fds[2];
    char byte = 0;
    make_file(0, 0);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct host_copy *copy = host_copy_open(&file);
        int is_right = copy != NULL && copy->maker != NULL && reads_right(copy, 1);
        ssize_t n = write(pipe_fds[1], &byte, is_right);
        pause();
        _exit(n == 1);
    }
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    struct host_copy *guest = host_copy_open(&file);
    ck_assert_ptr_nonnull(guest);
    ck_assert_ptr_null(guest->maker);

    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);

    ck_assert(reads_right(guest, 2));
    struct host_copy *next = host_copy_open(&file);
    ck_assert_ptr_nonnull(next);
    ck_assert_ptr_nonnull(next->maker);
    ck_assert(reads_right(next, 3));
    host_copy_close(next);
    host_copy_close(guest);
    close(pipe_fds[0]);
    remove_file();
}
END_TEST

START_TEST(another_file_of_that_name_is_another_copy)
{
    make_file(0, 0);
    struct host_copy *first = host_copy_open(&file);
    ck_assert_ptr_nonnull(first);
    ck_assert(reads_right(first, 1));
    struct host_copy_file part = file;
    part.bytes--;
    struct host_copy *other = host_copy_open(&part);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_nonnull(other->maker);
    host_copy_close(other);

    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    ck_assert_int_eq(pwrite(file.fd, "other", 5, SKIP), 5);
    ck_assert_int_eq(futimens(file.fd, times), 0);
    struct host_copy *second = host_copy_open(&file);

    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_nonnull(second->maker);
    ck_assert_mem_eq(host_copy_get(second, 0, 5, 1), "other", 5);
    ck_assert(reads_right(first, 2));
    host_copy_close(first);
    host_copy_close(second);
    remove_file();
}
END_TEST

/* What comes before the damage may be read, what it may have changed is never there. */
START_TEST(a_file_that_ends_early_or_is_damaged_has_no_last_piece)
{
    static const struct {
        int is_packed;
        long cut;
        const char *over; /* written so far before the end: over the CRC, behind the size */
        long before;
    } cases[] = {{0, 100, NULL, 0},    {1, TAIL, NULL, 0}, {1, 3, NULL, 0},
                 {1, 0, "????", TAIL}, {1, 5000, NULL, 0}, {1, 0, "\x1f\x8b\b", 0}};
    make_file(cases[_i].is_packed, cases[_i].cut);
    if (cases[_i].over != NULL) {
        struct stat st;
        ck_assert_int_eq(fstat(file.fd, &st), 0);
        ck_assert_int_eq(pwrite(file.fd, cases[_i].over, 4, st.st_size - cases[_i].before), 4);
    }
    struct host_copy *maker = host_copy_open(&file);
    ck_assert_ptr_nonnull(maker);
    struct host_copy *guest = host_copy_open(&file); /* or a maker of its own, after the failure */

    ck_assert_ptr_null(host_copy_get(maker, BYTES - 1, 1, 1));
    ck_assert_ptr_null(guest != NULL ? host_copy_get(guest, BYTES - 1, 1, 1) : NULL);
    const uint8_t *front = host_copy_get(maker, 0, 1000, 1);
    ck_assert_ptr_nonnull(front);
    ck_assert_mem_eq(front, content + SKIP, 1000);
    host_copy_close(guest);
    host_copy_close(maker);
    remove_file();
}
END_TEST

START_TEST(what_is_not_there_yet_is_not_waited_for_unless_asked)
{
    make_file(0, 0);
    struct host_copy *copy = host_copy_open(&file);
    ck_assert_ptr_nonnull(copy);
    const uint8_t *early = host_copy_get(copy, BYTES - 1, 1, 0);
    ck_assert(early == NULL || *early == content[SIZE - 1]);
    ck_assert_ptr_nonnull(host_copy_get(copy, BYTES - 1, 1, 1));
    ck_assert_ptr_nonnull(host_copy_get(copy, BYTES - 1, 1, 0));
    host_copy_close(copy);
    remove_file();
}
END_TEST

START_TEST(closing_does_not_wait_for_the_rest)
{
    make_file(1, 0);
    for (int i = 0; i < 20; i++) {
        struct host_copy *maker = host_copy_open(&file);
        struct host_copy *guest = host_copy_open(&file);
        ck_assert_ptr_nonnull(maker);
        ck_assert_ptr_nonnull(guest);
        host_copy_close(maker);
        const uint8_t *last = host_copy_get(guest, BYTES - 1, 1, 1); /* or alone from here on */
        ck_assert(last == NULL || *last == content[SIZE - 1]);
        host_copy_close(guest);
    }
    remove_file();
}
END_TEST

/* ---- a maker that is not one ---- */

enum { HONEST = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL };

struct fake {
    int socket, memory;
    struct host_copy_id id;
    struct host_copy_head *head;
    pthread_t thread;
    int answers, ends; /* hands the memory over; and closes the connection then */
    int taken;
};

static void *fake_main(void *arg)
{
    struct fake *fake = arg;
    struct pollfd wait = {.fd = fake->socket, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, 60000), 1);
    fake->taken = accept(fake->socket, NULL, NULL);
    ck_assert_int_ge(fake->taken, 0);
    if (fake->answers) {
        ck_assert_int_eq(copy_link_send(fake->taken, fake->memory), 0);
    }
    if (fake->ends) {
        close(fake->taken);
        fake->taken = -1;
    }
    return NULL;
}

/* The id of the file as its copy has it. */
static struct host_copy_id id_of_file(void)
{
    struct host_copy *copy = host_copy_open(&file);
    ck_assert_ptr_nonnull(copy);
    struct host_copy_id id = copy->id;
    host_copy_close(copy);
    return id;
}

static void fake_start(struct fake *fake, int64_t size, int seals)
{
    fake->id = id_of_file();
    fake->socket = copy_link_listen(&fake->id);
    ck_assert_int_ge(fake->socket, 0);
    fake->memory = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fake->memory, 0);
    ck_assert_int_eq(ftruncate(fake->memory, size), 0);
    fake->head = mmap(NULL, HOST_COPY_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fake->memory, 0);
    ck_assert_ptr_ne(fake->head, MAP_FAILED);
    ck_assert_int_eq(fcntl(fake->memory, F_ADD_SEALS, seals), 0);
    memcpy(fake->head->magic, HOST_COPY_MAGIC, sizeof(fake->head->magic));
    fake->head->id = fake->id;
}

static void fake_serve(struct fake *fake)
{
    ck_assert_int_eq(pthread_create(&fake->thread, NULL, fake_main, fake), 0);
}

static void fake_end(struct fake *fake)
{
    pthread_join(fake->thread, NULL);
    munmap(fake->head, HOST_COPY_HEAD);
    close(fake->memory);
    close(fake->socket);
    if (fake->taken >= 0) {
        close(fake->taken);
    }
}

/* Connections that a maker has not looked at; takes them. */
static int n_waiting(int listening)
{
    int n = 0;
    ck_assert_int_eq(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
    for (int fd = accept(listening, NULL, NULL); fd >= 0; fd = accept(listening, NULL, NULL)) {
        close(fd);
        n++;
    }
    return n;
}

/* It is stopped, with all its threads. */
START_TEST(a_maker_that_does_not_answer_is_waited_for_once)
{
    enum { MANY = 10 };
    const struct host_copy_id id = id_of_file();
    const int listening = copy_link_listen(&id);
    ck_assert_int_ge(listening, 0);

    ck_assert_int_eq(host_copy_done(&file), 0);
    ck_assert_int_eq(n_waiting(listening), 1);
    const int64_t began_ms = ms_mono_ms();
    for (int i = 0; i < MANY; i++) {
        ck_assert_ptr_null(host_copy_open(&file));
        ck_assert_int_eq(host_copy_done(&file), 0);
    }

    const int64_t ms = ms_mono_ms() - began_ms;
    ck_assert_msg(ms < MANY * (int64_t)HOST_COPY_ANSWER_MS, "%lld ms", (long long)ms);
    copy_link_end(listening);
}
END_TEST

/* The id of that file as its copy has it; file is `bytes` of it from now on. */
static struct host_copy_id id_of_part(int64_t bytes)
{
    file.bytes = bytes;
    return id_of_file();
}

enum { FROZEN = 2, FILES = 2 };

/* A process that has the names of FILES copies, and looks at none who comes. */
static pid_t freeze_maker(int64_t first)
{
    struct host_copy_id ids[FILES];
    int pipe_fds[2];
    char is_there = 0;
    for (int i = 0; i < FILES; i++) {
        ids[i] = id_of_part(first + i);
    }
    ck_assert_int_eq(pipe(pipe_fds), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        is_there = copy_link_listen(&ids[0]) >= 0 && copy_link_listen(&ids[1]) >= 0;
        if (write(pipe_fds[1], &is_there, 1) == 1) {
            pause();
        }
        _exit(1);
    }
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &is_there, 1), 1);
    ck_assert_int_eq(is_there, 1);
    close(pipe_fds[0]);
    return pid;
}

/* The files of a job are asked for in turn (train, test), and makers may be frozen beside each
 * other: each of them is waited for once, whichever file it is asked for. */
START_TEST(a_maker_that_does_not_answer_is_waited_for_once_for_all_its_files)
{
    enum { TURNS = 4, ASKED = TURNS * FROZEN * FILES };
    pid_t pids[FROZEN];
    make_file(0, 0);
    for (int i = 0; i < FROZEN; i++) {
        pids[i] = freeze_maker(BYTES - FROZEN * FILES + FILES * (int64_t)i);
    }

    const int64_t began_ms = ms_mono_ms();
    for (int i = 0; i < ASKED; i++) {
        file.bytes = BYTES - FROZEN * FILES + i % (FROZEN * FILES);
        ck_assert_int_eq(host_copy_done(&file), 0);
    }

    const int64_t ms = ms_mono_ms() - began_ms;
    ck_assert_msg(ms < ASKED / 2 * (int64_t)HOST_COPY_ANSWER_MS, "%lld ms", (long long)ms);
    for (int i = 0; i < FROZEN; i++) {
        int status = 0;
        kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
    }
    remove_file();
}
END_TEST

START_TEST(memory_that_is_not_what_it_should_be_is_refused)
{
    static const struct {
        int64_t size;
        int seals, changes_magic, changes_id;
    } cases[] = {
        {HOST_COPY_HEAD + BYTES, HONEST & ~F_SEAL_SHRINK, 0, 0},
        {HOST_COPY_HEAD + BYTES, HONEST & ~F_SEAL_GROW, 0, 0},
        {HOST_COPY_HEAD + BYTES, HONEST & ~F_SEAL_FUTURE_WRITE, 0, 0},
        {HOST_COPY_HEAD + BYTES - 1, HONEST, 0, 0},
        {HOST_COPY_HEAD + BYTES + 1, HONEST, 0, 0},
        {HOST_COPY_HEAD + BYTES, HONEST, 1, 0},
        {HOST_COPY_HEAD + BYTES, HONEST, 0, 1},
    };
    struct fake fake = {.answers = 1};
    make_file(0, 0);
    fake_start(&fake, cases[_i].size, cases[_i].seals);
    fake.head->magic[0] ^= (char)cases[_i].changes_magic;
    fake.head->id.inode += cases[_i].changes_id;
    atomic_store(&fake.head->done, BYTES);
    fake_serve(&fake);

    ck_assert_ptr_null(host_copy_open(&file));

    fake_end(&fake);
    remove_file();
}
END_TEST

/* Half of it is there; the maker then ends, or says that it failed, or does nothing any more. */
START_TEST(a_rest_that_does_not_come_is_not_waited_for_for_ever)
{
    enum { ENDS, FAILS, STALLS };
    struct fake fake = {.answers = 1, .ends = _i == ENDS};
    make_file(1, 0);
    fake_start(&fake, HOST_COPY_HEAD + BYTES, HONEST);
    atomic_store(&fake.head->done, BYTES / 2);
    atomic_store(&fake.head->failed, _i == FAILS);
    fake_serve(&fake);

    struct host_copy *copy = host_copy_open(&file);

    ck_assert_ptr_nonnull(copy);
    ck_assert_ptr_nonnull(host_copy_get(copy, 0, BYTES / 2, 1));
    ck_assert_ptr_null(host_copy_get(copy, 1, BYTES / 2, 1));
    host_copy_close(copy);
    fake_end(&fake);
    remove_file();
}
END_TEST

START_TEST(a_maker_that_does_not_answer_is_done_without)
{
    struct fake fake = {.answers = 0, .ends = _i};
    make_file(0, 0);
    fake_start(&fake, HOST_COPY_HEAD + BYTES, HONEST);
    fake_serve(&fake);

    ck_assert_ptr_null(host_copy_open(&file));

    fake_end(&fake);
    remove_file();
}
END_TEST

/* ---- who only asks ---- */

START_TEST(who_asks_how_much_is_there_begins_no_copy_and_keeps_none)
{
    make_file(_i, 0);
    ck_assert_int_eq(host_copy_done(&file), 0);
    struct host_copy *maker = host_copy_open(&file);
    ck_assert_ptr_nonnull(maker);
    ck_assert_ptr_nonnull(maker->maker);
    ck_assert_ptr_nonnull(host_copy_get(maker, BYTES - 1, 1, 1));

    ck_assert_int_eq(host_copy_done(&file), BYTES);

    host_copy_close(maker);
    ck_assert_int_eq(host_copy_done(&file), 0);
    remove_file();
}
END_TEST

START_TEST(of_a_copy_that_is_not_whole_the_part_that_is_there_counts)
{
    struct fake fake = {.answers = 1};
    make_file(1, 0);
    fake_start(&fake, HOST_COPY_HEAD + BYTES, HONEST);
    atomic_store(&fake.head->done, BYTES / 2);
    fake_serve(&fake);

    ck_assert_int_eq(host_copy_done(&file), BYTES / 2);

    fake_end(&fake);
    remove_file();
}
END_TEST

/* While the copy grows, a maker has 64 places for those that wait for the rest, and answers one of
 * them a piece: this copy has four times as many pieces. */
START_TEST(who_only_asked_takes_nobodys_place)
{
    enum { LARGE = 64 << 20, PLACES = 64 };
    char path[128];
    dir = test_dir_make();
    content = calloc(1, LARGE);
    ck_assert_ptr_nonnull(content);
    file_write_gz(dir, "file", content, LARGE, 0);
    snprintf(path, sizeof(path), "%s/file", dir);
    file = (struct host_copy_file){.fd = open(path, O_RDONLY | O_CLOEXEC),
                                   .is_packed = 1,
                                   .skip = SKIP,
                                   .bytes = LARGE - SKIP};
    struct host_copy *maker = host_copy_open(&file);
    ck_assert_ptr_nonnull(maker);
    for (int i = 0; i < PLACES; i++) {
        (void)host_copy_done(&file);
    }

    struct host_copy *guest = host_copy_open(&file);

    ck_assert_ptr_nonnull(guest);
    host_copy_close(guest);
    host_copy_close(maker);
    remove_file();
}
END_TEST

/* ---- whom it is handed to ---- */

START_TEST(who_has_the_memory_cannot_change_it)
{
    make_file(0, 0);
    struct host_copy *maker = host_copy_open(&file);
    ck_assert_ptr_nonnull(maker);
    int fd = copy_link_connect(&maker->id);
    ck_assert_int_ge(fd, 0);
    int memory = copy_link_receive(fd, 60000);
    ck_assert_int_ge(memory, 0);

    ck_assert_int_lt(pwrite(memory, "x", 1, HOST_COPY_HEAD), 0);
    ck_assert_int_lt(ftruncate(memory, HOST_COPY_HEAD), 0);
    ck_assert_int_lt(
        fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HOST_COPY_HEAD, 4096), 0);
    ck_assert_ptr_eq(mmap(NULL, HOST_COPY_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0),
                     MAP_FAILED);

    ck_assert(reads_right(maker, 1));
    close(memory);
    close(fd);
    host_copy_close(maker);
    remove_file();
}
END_TEST

START_TEST(another_user_gets_nothing)
{
    int pipe_fds[2];
    int status = -1;
    char is_there = 0;
    if (geteuid() != 0) {
        test_skip_note("another_user_gets_nothing");
        return;
    }
    make_file(0, 0);
    const struct host_copy_id id = id_of_file();
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t pid = fork(); /* before the maker's thread: no child of two threads */
    if (pid == 0) {
        int rc = read(pipe_fds[0], &is_there, 1) == 1 ? setuid(65534) : -1;
        int fd = rc == 0 ? copy_link_connect(&id) : -1;
        _exit(fd >= 0 && !copy_link_is_ours(fd, NULL) && copy_link_receive(fd, 60000) < 0 ? 0 : 1);
    }
    struct host_copy *maker = host_copy_open(&file);
    ck_assert_ptr_nonnull(maker);
    ck_assert(memcmp(&maker->id, &id, sizeof(id)) == 0);
    ck_assert_int_eq(write(pipe_fds[1], "", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);

    ck_assert_int_eq(status, 0);
    ck_assert(reads_right(maker, 1));
    host_copy_close(maker);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    remove_file();
}
END_TEST

/* A TCP socket that has more to send than anybody reads, and lingers: its last close waits. */
static int make_lingering(void)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 600};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    static const char bytes[1 << 16];
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, size) < 0 || listen(listening, 1) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &size) < 0 ||
        connect(fd, (struct sockaddr *)&address, size) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0) {
        return -1;
    }
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
    return fd;
}

/* Leaves it to the maker, before that one begins, and stays: so does the end that listens. */
static void leave_lingering(const struct host_copy_id *id, int pipe_fd)
{
    int lingering = setuid(65534) == 0 ? make_lingering() : -1;
    int fd = lingering >= 0 ? copy_link_connect(id) : -1;
    char is_left = fd >= 0 && copy_link_send(fd, lingering) == 0;
    if (is_left) {
        close(lingering);
    }
    if (write(pipe_fd, &is_left, 1) == 1) {
        pause();
    }
    _exit(1);
}

/* Where one stays that a stranger left, the end of the copy would wait for ten minutes. */
START_TEST(what_a_stranger_leaves_is_not_waited_for)
{
    int pipe_fds[2];
    int status = 0;
    char is_left = 0;
    if (geteuid() != 0) {
        test_skip_note("what_a_stranger_leaves_is_not_waited_for");
        return;
    }
    make_file(0, 0);
    struct host_copy *copy = calloc(1, sizeof(*copy));
    ck_assert_ptr_nonnull(copy);
    copy->file = file;
    copy->id = id_of_file();
    copy->socket = -1;
    int listening = copy_link_listen(&copy->id);
    ck_assert_int_ge(listening, 0);
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        leave_lingering(&copy->id, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &is_left, 1), 1);
    ck_assert_int_eq(is_left, 1);
    copy->maker = copy_maker_start(&copy->file, &copy->id, listening, &copy->head);
    ck_assert_ptr_nonnull(copy->maker);

    ck_assert(reads_right(copy, 1));
    host_copy_close(copy);

    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(pipe_fds[0]);
    remove_file();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host_copy");
    TCase *tc = tcase_create("host_copy");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, who_comes_first_makes_it_and_the_others_read_it, 0, 2);
    tcase_add_loop_test(tc, processes_that_come_at_once_share_one, 0, 2);
    tcase_add_test(tc, a_maker_that_is_killed_leaves_nothing_behind);
    tcase_add_test(tc, another_file_of_that_name_is_another_copy);
    tcase_add_loop_test(tc, a_file_that_ends_early_or_is_damaged_has_no_last_piece, 0, 6);
    tcase_add_test(tc, what_is_not_there_yet_is_not_waited_for_unless_asked);
    tcase_add_test(tc, closing_does_not_wait_for_the_rest);
    tcase_add_test(tc, a_maker_that_does_not_answer_is_waited_for_once);
    tcase_add_test(tc, a_maker_that_does_not_answer_is_waited_for_once_for_all_its_files);
    tcase_add_loop_test(tc, memory_that_is_not_what_it_should_be_is_refused, 0, 7);
    tcase_add_loop_test(tc, a_rest_that_does_not_come_is_not_waited_for_for_ever, 0, 3);
    tcase_add_loop_test(tc, a_maker_that_does_not_answer_is_done_without, 0, 2);
    tcase_add_loop_test(tc, who_asks_how_much_is_there_begins_no_copy_and_keeps_none, 0, 2);
    tcase_add_test(tc, of_a_copy_that_is_not_whole_the_part_that_is_there_counts);
    tcase_add_test(tc, who_only_asked_takes_nobodys_place);
    tcase_add_test(tc, who_has_the_memory_cannot_change_it);
    tcase_add_test(tc, another_user_gets_nothing);
    tcase_add_test(tc, what_a_stranger_leaves_is_not_waited_for);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
