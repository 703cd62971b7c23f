/* test_server_limits.c - who says nothing, reads nothing or never ends his frame has to go in time
 *
 * The clock of the child is moved, for libevent too: a minute passes at once. */
#include "daemon/peer_uid.h"
#include "tests/unit/server_world.h"

#include <errno.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { GONE_MS = 60000, SLOW_UID = 4000 };

/* ---- a directory that answers when it is told to, in place of the C library's -------------------
 */

static struct directory {
    atomic_int asked, hold;
} * directory;

MS_API int getpwuid_r(uid_t uid, struct passwd *entry, char *buf, size_t size,
                      struct passwd **found)
{
    static char name[] = "dora";
    (void)buf;
    (void)size;
    *found = NULL;
    if (uid == SLOW_UID) {
        directory->asked++;
        while (directory->hold) {
            pause_ms(1);
        }
        memset(entry, 0, sizeof(*entry));
        entry->pw_name = name;
        *found = entry;
    }
    return 0;
}

static int await_end(int fd)
{
    uint32_t id = 0;
    ProtobufCMessage *msg = NULL;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    uint16_t type = 0;
    int code = 0;
    while (poll(&poll_fd, 1, GONE_MS) > 0 && (type = get(fd, &id, &msg)) != 0) {
        code = type == MS_MSG_ERROR ? (int)((Ms__Error *)msg)->code : code;
        ms_wire_free(msg);
    }
    ck_assert_uint_eq(type, 0);
    close(fd);
    return code;
}

/* In steps: a connection's deadline that comes far too late is taken for a sleep of our own. */
static void pass(int ms)
{
    for (int until = stage->skew_ms + ms; stage->skew_ms < until;) {
        stage->skew_ms += 1000;
        settle();
    }
}

static void ask_for_jobs(int fd, int times)
{
    uint8_t buf[256];
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.all = 1;
    size_t size = pack(MS_MSG_JOB_QUERY, 3, &query.base, buf);
    for (int i = 0; i < times; i++) {
        put(fd, buf, size);
    }
}

static int has_hung_up(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = 0};
    return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR)) != 0;
}

static void make_jobs(int n)
{
    int fd = greet();
    for (int i = 0; i < n; i++) {
        ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    }
    close(fd);
}

START_TEST(who_asks_nothing_for_a_minute_is_told_so_and_closed)
{
    start(-1, 0);
    int idle = greet();
    settle();

    stage->skew_ms = MS_IDLE_MS - 30000;
    settle();
    ck_assert(!is_readable(idle, 0));
    int late = greet();
    settle();
    stage->skew_ms = MS_IDLE_MS + 1000;

    ck_assert_int_eq(await_end(idle), MS_E_TIMEOUT);
    ck_assert(is_served(late));
    close(late);
}
END_TEST

START_TEST(a_frame_that_does_not_end_within_30_s_ends_its_connection)
{
    uint8_t buf[512];
    start(-1, 0);
    int half = greet();
    int whole = greet();
    size_t size = pack_submit(5, buf);
    put(half, buf, size - 1);
    settle();

    pass(MS_FRAME_MS / 2);
    ck_assert(!is_readable(half, 0));
    pass(MS_FRAME_MS / 2 + 2000);

    (void)await_end(half);
    ck_assert(is_served(whole));
    ck_assert_int_eq(stage->jobs, stage->settled + 1); /* half a submit is none */
    close(whole);
}
END_TEST

static int half_a_large_frame(void)
{
    static uint8_t spec[200000];
    static uint8_t frame[sizeof(spec) + 1024];
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.job_json = (ProtobufCBinaryData){sizeof(spec), spec};
    submit.workers = 1;
    pack(MS_MSG_SUBMIT, 1, &submit.base, frame);
    int fd = greet();
    put(fd, frame, 100);
    return fd;
}

/* It had asked, and was told that it had not. */
START_TEST(a_large_request_that_finds_no_place_is_told_so)
{
    enum { HALF = 3 * MS_BIG_FRAMES };
    int half[HALF];
    start(-1, 0);
    for (int i = 0; i < HALF; i++) { /* the next ones have their place when the first ones end */
        half[i] = half_a_large_frame();
        settle();
    }
    int last = half_a_large_frame();
    settle();
    pass(MS_FRAME_MS + 1000);
    ck_assert(!is_readable(last, 0));
    pass(MS_FRAME_MS + 1000);

    uint32_t id = 0;
    ProtobufCMessage *msg = NULL;
    ck_assert(is_readable(last, 60000));
    ck_assert_uint_eq(get(last, &id, &msg), MS_MSG_ERROR);
    ck_assert_int_eq(((Ms__Error *)msg)->code, MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(((Ms__Error *)msg)->text, "64 of 64 places for requests above"));
    ms_wire_free(msg);
    close(last);
    for (int i = 0; i < HALF; i++) {
        close(half[i]);
    }
}
END_TEST

START_TEST(who_reads_nothing_for_30_s_is_dropped)
{
    uint8_t byte;
    start(-1, 0);
    make_jobs(200);
    int deaf = greet();
    ask_for_jobs(deaf, 60);
    settle();

    stage->skew_ms = MS_STALL_MS / 2;
    settle();
    ck_assert(!has_hung_up(deaf));
    stage->skew_ms = 2 * MS_STALL_MS - 5000; /* idle it is not: something is unsent */

    for (int i = 0; i < GONE_MS && !has_hung_up(deaf); i++) {
        pause_ms(1);
    }
    ck_assert(has_hung_up(deaf));
    while (recv(deaf, &byte, 1, 0) > 0) { /* what the kernel had taken before */
    }
    close(deaf);
    settle();
}
END_TEST

/* Time stands still meanwhile: on a busy machine 30 s would pass, after which each is dropped by
 * itself. */
START_TEST(what_all_together_do_not_read_is_bounded)
{
    enum { DEAF = 180, ASKED = 60 }; /* 1 MiB each, then it is not read from any more */
    struct timespec now;
    int fds[DEAF];
    int dropped = 0;
    start(-1, 0);
    make_jobs(400);
    clock_gettime(CLOCK_MONOTONIC, &now);
    stage->stands = (long long)now.tv_sec * 1000000000 + now.tv_nsec;

    for (int i = 0; i < DEAF; i++) {
        fds[i] = greet();
        ask_for_jobs(fds[i], ASKED);
    }
    for (int i = 0; i < GONE_MS && dropped == 0; i++) {
        for (int k = 0; k < DEAF; k++) {
            dropped += has_hung_up(fds[k]);
        }
        pause_ms(1);
    }

    ck_assert_int_gt(dropped, 0);
    ck_assert_int_lt(dropped, DEAF / 2); /* only as many as it takes */
    settle();
    stage->stands = 0;
    for (int i = 0; i < DEAF; i++) {
        close(fds[i]);
    }
}
END_TEST

/* Time stands still meanwhile: a turn ends only where shares do. */
START_TEST(large_answers_to_one_wait_for_the_others_turn)
{
    enum { ROWS = 200, QUERIES = 8 }; /* 8 frames of 32, and more than the bytes of a share */
    struct timespec now;
    uint8_t buf[512];
    uint32_t id = 0;
    ProtobufCMessage *msg = NULL;
    start(-1, 0);
    make_jobs(ROWS);
    int first = greet();
    int greedy = greet();
    int modest = greet();
    clock_gettime(CLOCK_MONOTONIC, &now);
    stage->stands = (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    int commits = stage->commits;

    stage->hold = 1; /* what arrives while a commit waits is one turn's */
    put(first, buf, pack_submit(1, buf));
    await_commits(commits + 1);
    ask_for_jobs(greedy, QUERIES);
    put(greedy, buf, pack_submit(7, buf));
    put(modest, buf, pack_submit(8, buf));
    stage->hold = 0;
    while (id != 7) {
        ck_assert_uint_ne(get(greedy, &id, &msg), 0);
        ms_wire_free(msg);
    }

    ck_assert_uint_eq(get(modest, &id, &msg), MS_MSG_SUBMITTED);
    ms_wire_free(msg);
    ck_assert_int_ge(stage->commits, commits + 3); /* first; modest; greedy's own in a later one */
    stage->stands = 0;
    close(first);
    close(greedy);
    close(modest);
}
END_TEST

static int64_t cpu_ms_of_child(void)
{
    struct timespec used;
    clockid_t clock;
    ck_assert_int_eq(clock_getcpuclockid(child, &clock), 0);
    ck_assert_int_eq(clock_gettime(clock, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

START_TEST(out_of_descriptors_it_does_not_spin)
{
    enum { FDS = 40, N = 60, LOOK_MS = 2000 };
    int held[N];
    start(-1, FDS);
    int fd = greet();
    for (int i = 0; i < N; i++) {
        held[i] = dial(); /* the kernel's queue takes what the process cannot */
    }
    ck_assert(is_served(fd));
    int64_t before = cpu_ms_of_child();

    pause_ms(LOOK_MS); /* not to wait for something: to see what passes meanwhile */

    ck_assert_int_lt(cpu_ms_of_child() - before, LOOK_MS / 10);
    ck_assert(is_served(fd));
    for (int i = 0; i < N; i++) {
        close(held[i]);
    }
    close(fd);
}
END_TEST

/* The first bytes of a frame that needs a place for large ones: 20 of them, whatever they are. */
static void begin_large(int fd)
{
    enum { LENGTH_AT = 12, LARGE = 200000 };
    uint8_t buf[512];
    size_t size = pack_submit(7, buf);
    ck_assert_uint_gt(size, MS_WIRE_HEADER + 20);
    for (int i = 0; i < 4; i++) {
        buf[LENGTH_AT + i] = (uint8_t)(LARGE >> (8 * (3 - i)));
    }
    put(fd, buf, MS_WIRE_HEADER + 20);
}

START_TEST(an_end_with_large_frames_under_way_gives_no_place_to_who_is_gone)
{
    enum { WAITING = 20 };
    int waiting[WAITING];
    int sending[MS_BIG_FRAMES];
    start(-1, 0);
    for (int i = 0; i < WAITING; i++) {
        waiting[i] = greet(); /* before the others: these are destroyed first */
    }
    for (int i = 0; i < MS_BIG_FRAMES; i++) {
        sending[i] = greet();
        begin_large(sending[i]);
    }
    settle();
    for (int i = 0; i < WAITING; i++) {
        begin_large(waiting[i]);
    }
    settle();

    stage->commit_rc = MS_E_IO;
    int fd = greet();
    (void)submit(fd, 1, NULL, 0);

    ck_assert_int_eq(end_of_child(), 102); /* its own end, and neither a signal nor a sanitizer's */
    close(fd);
    for (int i = 0; i < WAITING; i++) {
        close(waiting[i]);
    }
    for (int i = 0; i < MS_BIG_FRAMES; i++) {
        close(sending[i]);
    }
}
END_TEST

static int dial_as(uid_t uid)
{
    ck_assert_int_eq(chmod(dir, 0711), 0);
    ck_assert_int_eq(chmod(socket_path, 0666), 0);
    ck_assert_int_eq(seteuid(uid), 0);
    int fd = dial();
    ck_assert_int_eq(seteuid(0), 0);
    return fd;
}

/* Takes all places before Hello, and knows when the server has them all. */
static void fill_the_door(int held[MS_HALF_OPEN_UNIX])
{
    int unread = 1;
    for (int i = 0; i < MS_HALF_OPEN_UNIX; i++) {
        held[i] = dial();
        put(held[i], (const uint8_t *)"M", 1); /* silent ones leave half of it to others */
    }
    while (unread > 0) {
        ck_assert_int_eq(ioctl(held[MS_HALF_OPEN_UNIX - 1], SIOCOUTQ, &unread), 0);
        pause_ms(1);
    }
}

START_TEST(who_waited_for_his_name_and_finds_no_place_gets_the_next)
{
    struct timespec now;
    int held[MS_HALF_OPEN_UNIX];
    if (geteuid() != 0) {
        printf("skip: only root can come as another uid\n");
        return;
    }
    directory =
        mmap(NULL, sizeof(*directory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(directory, MAP_FAILED);
    directory->hold = 1;
    start(-1, 0);
    close(greet());
    clock_gettime(CLOCK_MONOTONIC, &now);
    stage->stands = now.tv_sec * 1000000000LL + now.tv_nsec; /* nobody stands there too long */
    int waits = dial_as(SLOW_UID);
    while (directory->asked == 0) {
        pause_ms(1);
    }
    fill_the_door(held);

    directory->hold = 0;
    for (int i = 0; i < 100; i++) { /* its name is known, and nobody gives way */
        ck_assert(!is_readable(waits, 1));
    }
    close(held[0]);

    greet_over(waits);
    close(waits);
    for (int i = 1; i < MS_HALF_OPEN_UNIX; i++) {
        close(held[i]);
    }
    stage->stands = 0;
    int again = greet();
    ck_assert(is_served(again)); /* and the door is open again */
    close(again);
    munmap(directory, sizeof(*directory));
}
END_TEST

/* ---- crowds at the door -------------------------------------------------------------------------
 *
 * 4,000 silent connections of one stranger stood in the kernel's queue before everybody else, and
 * 64 or 256 of them a second were let in and timed out. */

enum { CROWD = 3000, SOON_MS = 5000 }; /* in the order of coming: 10 s on TCP, 45 on Unix */

static int64_t now_ms(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* In which that process wanted to run, and others had the processors. */
static int64_t ready_ms(pid_t pid)
{
    char path[64];
    long long waited_ns = 0;
    snprintf(path, sizeof(path), "/proc/%ld/schedstat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*d %lld", &waited_ns) != 1) {
            waited_ns = 0;
        }
        fclose(file);
    }
    return waited_ns / 1000000;
}

/* The time of the server and its clients, without that of other processes of this machine. */
static int64_t own_ms(void)
{
    return now_ms() - ready_ms(child) - ready_ms(getpid());
}

static void raise_descriptors(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    ck_assert_uint_gt(limit.rlim_cur, CROWD + 100);
}

static int dial_tcp(uint16_t port, uint32_t from, int flags)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in me = {.sin_family = AF_INET, .sin_addr = {htonl(from)}};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&me, sizeof(me)), 0);
    int rc = connect(fd, (struct sockaddr *)&at, sizeof(at));
    ck_assert(rc == 0 || (flags != 0 && errno == EINPROGRESS));
    return fd;
}

/* The whole crowd is in the kernel's queue before the server starts: in the order of coming it is
 * first. */
static void expect_served_beside(uint32_t (*address)(unsigned i))
{
    static int fds[CROWD];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(at);
    raise_descriptors();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(listener, 4096), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    for (unsigned i = 0; i < CROWD; i++) {
        fds[i] = dial_tcp(ntohs(at.sin_port), address(i), SOCK_NONBLOCK);
    }
    start(listener, 0);

    int64_t began = own_ms();
    for (int i = 0; i < 5; i++) {
        int fd = dial_tcp(ntohs(at.sin_port), INADDR_LOOPBACK, 0);
        greet_over(fd);
        close(fd);
    }

    ck_assert_int_lt(own_ms() - began, SOON_MS);
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
    close(listener);
}

static uint32_t one_address(unsigned i)
{
    (void)i;
    return 0x7f000005;
}

static uint32_t address_of_its_own(unsigned i)
{
    return 0x7f010001 + i % 250 * 0x10000 + i / 250 * 0x100;
}

START_TEST(a_crowd_of_one_address_keeps_no_other_out)
{
    expect_served_beside(one_address);
}
END_TEST

START_TEST(a_crowd_of_many_addresses_keeps_no_other_out)
{
    expect_served_beside(address_of_its_own);
}
END_TEST

/* As another uid, from many addresses: connects, begins a Hello, and stays until it is killed. */
static pid_t crowd_that_speaks(uid_t uid, uint16_t port, int said)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0) {
        return pid;
    }
    char byte = 'M';
    int n = 0;
    if (setgid(uid) == 0 && setuid(uid) == 0) {
        for (; n < CROWD; n++) {
            int fd = dial_tcp(port, address_of_its_own((unsigned)n), 0);
            if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) {
                break;
            }
        }
    }
    if (n < CROWD || write(said, &byte, 1) != 1) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

START_TEST(a_crowd_of_one_uid_keeps_no_other_out_whatever_its_addresses)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(at);
    int said[2];
    char byte;
    int asker = peer_uid_open();
    if (getuid() != 0 || asker < 0) {
        printf("skip: not root, or no sock_diag here\n");
        return;
    }
    close(asker);
    raise_descriptors();
    ck_assert_int_eq(pipe(said), 0);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(listener, 4096), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    pid_t crowd = crowd_that_speaks(65534, ntohs(at.sin_port), said[1]);
    close(said[1]);
    ck_assert_int_eq(read(said[0], &byte, 1), 1);
    start(listener, 0);

    int64_t began = own_ms();
    for (int i = 0; i < 5; i++) {
        int fd = dial_tcp(ntohs(at.sin_port), INADDR_LOOPBACK, 0);
        greet_over(fd);
        close(fd);
    }

    ck_assert_int_lt(own_ms() - began, SOON_MS);
    kill(crowd, SIGKILL);
    ck_assert_int_eq(waitpid(crowd, NULL, 0), crowd);
    close(said[0]);
    close(listener);
}
END_TEST

/* As another uid: connects and says nothing until it is killed. */
static pid_t crowd_of(uid_t uid, int said)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0) {
        return pid;
    }
    char byte = 0;
    int n = 0;
    if (setgid(uid) == 0 && setuid(uid) == 0) {
        for (n = 0; n < CROWD && try_dial() >= 0; n++) {
        }
    }
    if (n < CROWD || write(said, &byte, 1) != 1) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

static int listen_for_all(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 4096), 0);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chmod(socket_path, 0666), 0);
    return fd;
}

static int greet_as(uid_t uid)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setgid(uid) != 0 || setuid(uid) != 0 || close(greet()) != 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(a_crowd_of_one_uid_keeps_neither_root_nor_others_out)
{
    int said[2];
    char byte;
    if (getuid() != 0) { /* it takes three uids */
        printf("skip: not root\n");
        return;
    }
    raise_descriptors();
    ck_assert_int_eq(pipe(said), 0);
    int listener = listen_for_all();
    pid_t crowd = crowd_of(65534, said[1]);
    close(said[1]);
    ck_assert_int_eq(read(said[0], &byte, 1), 1); /* all of it is in the kernel's queue */
    start(listener, 0);

    int64_t began = own_ms();
    for (int i = 0; i < 5; i++) {
        close(greet());
    }
    ck_assert_int_eq(greet_as(4242), 0);

    ck_assert_int_lt(own_ms() - began, SOON_MS);
    kill(crowd, SIGKILL);
    ck_assert_int_eq(waitpid(crowd, NULL, 0), crowd);
    close(said[0]);
    close(listener);
}
END_TEST

int main(void)
{
    mallopt(M_PERTURB, 0x5a); /* what was freed looks like it, without a sanitizer too */
    Suite *suite = suite_create("server_limits");
    TCase *tcase = tcase_create("server_limits");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_asks_nothing_for_a_minute_is_told_so_and_closed);
    tcase_add_test(tcase, a_frame_that_does_not_end_within_30_s_ends_its_connection);
    tcase_add_test(tcase, a_large_request_that_finds_no_place_is_told_so);
    tcase_add_test(tcase, who_reads_nothing_for_30_s_is_dropped);
    tcase_add_test(tcase, what_all_together_do_not_read_is_bounded);
    tcase_add_test(tcase, large_answers_to_one_wait_for_the_others_turn);
    tcase_add_test(tcase, out_of_descriptors_it_does_not_spin);
    tcase_add_test(tcase, an_end_with_large_frames_under_way_gives_no_place_to_who_is_gone);
    tcase_add_test(tcase, who_waited_for_his_name_and_finds_no_place_gets_the_next);
    tcase_add_test(tcase, a_crowd_of_one_address_keeps_no_other_out);
    tcase_add_test(tcase, a_crowd_of_many_addresses_keeps_no_other_out);
    tcase_add_test(tcase, a_crowd_of_one_uid_keeps_no_other_out_whatever_its_addresses);
    tcase_add_test(tcase, a_crowd_of_one_uid_keeps_neither_root_nor_others_out);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
