/* test_server.c - commit before reply, group commit, full disks and failed commits, passed sockets
 *
 * The server runs in a child with the real core; the store is played by this file, so that a commit
 * can wait, fail or find the disk full. Its numbers lie in memory that both sides see. */
#include "daemon/server.h"
#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

/* ---- a store that does as it is told ------------------------------------------------------------
 */

struct stage {
    atomic_int commits;   /* that were begun */
    atomic_int hold;      /* a commit waits while this is 1 */
    atomic_int commit_rc; /* what it returns */
    atomic_int idle_rc;
    atomic_int jobs; /* PUT_JOB effects that were committed */
    atomic_int exit_rc;
};

static struct stage *stage;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

int store_open_with(const struct store_setup *setup, struct store **ret, struct ms_err *err)
{
    (void)setup;
    (void)ret;
    return ms_fail(err, MS_E_UNSUPPORTED, "not in this test");
}

void store_close(struct store *store)
{
    (void)store;
}

const uint8_t *store_secret(const struct store *store)
{
    (void)store;
    return NULL;
}

int store_is_copy(const struct store *store)
{
    (void)store;
    return 0;
}

uint8_t *store_answer(struct store *store, const struct sched_read *read, size_t *ret_bytes)
{
    (void)store;
    (void)read;
    (void)ret_bytes;
    return NULL;
}

const char *store_note(const struct store *store, size_t i)
{
    (void)store;
    (void)i;
    return NULL;
}

int store_load(struct store *store, struct sched *sched, struct ms_err *err)
{
    (void)store;
    (void)sched;
    return ms_fail(err, MS_E_UNSUPPORTED, "not in this test");
}

int store_commit(struct store *store, const struct sched_effect *effects, size_t n,
                 struct ms_err *err)
{
    (void)store;
    stage->commits++;
    while (stage->hold == 1) {
        pause_ms(1);
    }
    if (stage->commit_rc < 0) {
        return ms_fail(err, stage->commit_rc, "the disk is gone");
    }
    for (size_t i = 0; i < n; i++) {
        stage->jobs += effects[i].kind == SCHED_DO_PUT_JOB;
    }
    return stage->commit_rc;
}

int store_idle(struct store *store)
{
    (void)store;
    return stage->idle_rc;
}

/* ---- the server in a child ----------------------------------------------------------------------
 */

static const char *dir;
static char socket_path[128];
static pid_t child;
static char config_path[128];

static int reload_fails(void *arg, struct server *server, struct ms_err *err)
{
    (void)arg;
    (void)server;
    return ms_fail(err, MS_E_CONFIG, "nothing to reload");
}

/* lowered: soft and hard limit of descriptors, 0: as they are. passed: a listening socket becomes
 * descriptor 3, as systemd does it. */
static void serve(int passed, unsigned lowered)
{
    char *argv[] = {(char[]){"msschedd"}, (char[]){"--config"},
                    config_path,          (char[]){"--socket"},
                    socket_path,          (char[]){"--listen"},
                    (char[]){"none"},     (char[]){"--tls"},
                    (char[]){"off"},      NULL};
    struct options *options = NULL;
    struct ms_err err = {0, ""};
    struct server *server = NULL;
    if (passed >= 0) {
        char text[16];
        dup2(passed, 3);
        snprintf(text, sizeof(text), "%ld", (long)getpid());
        setenv("LISTEN_PID", text, 1);
        setenv("LISTEN_FDS", "1", 1);
    }
    if (lowered > 0) {
        struct rlimit limit = {.rlim_cur = lowered, .rlim_max = lowered};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    ms_log_init(open("/dev/null", O_WRONLY), MS_LOG_ERR, 0);
    if (options_load(9, argv, &options, &err) < 0) {
        _exit(100);
    }
    struct sched *sched = sched_create(&options->sched, (struct sched_time){.mono_ms = 1});
    struct server_setup setup = {.options = options,
                                 .sched = sched,
                                 .store = (struct store *)(void *)stage, /* never looked into */
                                 .reload = reload_fails};
    if (sched_load_done(sched, (struct sched_time){.mono_ms = 1}, &err) < 0 ||
        server_open(&setup, &server, &err) < 0) {
        _exit(101);
    }
    stage->exit_rc = server_run(server, &err);
    server_close(server);
    sched_destroy(sched);
    options_destroy(options);
    _exit(stage->exit_rc < 0 ? 102 : stage->exit_rc);
}

static void start(int passed, unsigned lowered)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        serve(passed, lowered);
    }
}

static int end_of_child(void)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void setup(void)
{
    dir = test_dir_make();
    snprintf(socket_path, sizeof(socket_path), "%s/s.sock", dir);
    snprintf(config_path, sizeof(config_path), "%s/empty.conf", dir);
    close(open(config_path, O_CREAT | O_WRONLY, 0600));
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stage, MAP_FAILED);
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("NOTIFY_SOCKET");
}

static void teardown(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        child = 0;
    }
    munmap(stage, sizeof(*stage));
    test_dir_remove(dir);
}

/* ---- a client with plain system calls -----------------------------------------------------------
 */

static int try_dial(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int dial(void)
{
    int fd = -1;
    for (int i = 0; i < 60000 && fd < 0; i++) { /* a minute: the child has to start */
        fd = try_dial();
        if (fd < 0) {
            pause_ms(1);
        }
    }
    ck_assert_int_ge(fd, 0);
    return fd;
}

static size_t pack(uint16_t type, uint32_t id, const ProtobufCMessage *msg, uint8_t *buf)
{
    size_t size = ms_wire_size(msg);
    ck_ms_ok(ms_wire_pack(type, id, msg, buf, size, err));
    return size;
}

static size_t pack_submit(uint32_t id, uint8_t *buf)
{
    static uint8_t spec[] = "{\"workers\":1}";
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.job_json.data = spec;
    submit.job_json.len = sizeof(spec) - 1;
    submit.name = (char *)(uintptr_t) "job";
    submit.workers = 1;
    return pack(MS_MSG_SUBMIT, id, &submit.base, buf);
}

static void put(int fd, const uint8_t *bytes, size_t size)
{
    ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static int get_bytes(int fd, uint8_t *buf, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = recv(fd, buf + at, size - at, 0);
        if (n <= 0) {
            return -1;
        }
        at += (size_t)n;
    }
    return 0;
}

/* The type of the next frame, its id, and the message; 0: the connection is over. */
static uint16_t get(int fd, uint32_t *ret_id, ProtobufCMessage **ret)
{
    uint8_t start[MS_WIRE_HEADER];
    static uint8_t body[1 << 16];
    struct ms_wire_header head;
    *ret = NULL;
    if (get_bytes(fd, start, sizeof(start)) < 0) {
        return 0;
    }
    ck_ms_ok(ms_wire_parse_header(start, &head, err));
    ck_assert_uint_le(head.length, sizeof(body));
    ck_assert_int_eq(get_bytes(fd, body, head.length), 0);
    ck_ms_ok(ms_wire_unpack(head.type, body, head.length, ret, err));
    *ret_id = head.id;
    return head.type;
}

static int greet(void)
{
    uint8_t buf[256];
    uint32_t id;
    ProtobufCMessage *msg;
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = hello.protocol_max = MS_PROTOCOL_VERSION;
    hello.software = (char *)(uintptr_t) "test";
    int fd = dial();
    put(fd, buf, pack(MS_MSG_HELLO, 0, &hello.base, buf));
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_WELCOME);
    ms_wire_free(msg);
    return fd;
}

static uint16_t submit(int fd, uint32_t id, char *ret_text, size_t size)
{
    uint8_t buf[512];
    uint32_t got = 0;
    ProtobufCMessage *msg;
    put(fd, buf, pack_submit(id, buf));
    uint16_t type = get(fd, &got, &msg);
    if (type == MS_MSG_ERROR && ret_text != NULL) {
        snprintf(ret_text, size, "%s", ((Ms__Error *)msg)->text);
    }
    ck_assert(type == 0 || got == id);
    ms_wire_free(msg);
    return type;
}

static int is_readable(int fd, int wait_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, wait_ms) > 0;
}

static void await_commits(int n)
{
    for (int i = 0; i < 60000 && stage->commits < n; i++) {
        pause_ms(1);
    }
    ck_assert_int_ge(stage->commits, n);
}

/* ---- cases --------------------------------------------------------------------------------------
 */

START_TEST(no_reply_leaves_before_its_commit_returned)
{
    uint8_t buf[512];
    uint32_t id = 0;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    stage->hold = 1;

    put(fd, buf, pack_submit(7, buf));
    await_commits(1);

    ck_assert(!is_readable(fd, 300)); /* still not durable: nothing is said */
    stage->hold = 0;
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_SUBMITTED);
    ck_assert_uint_eq(id, 7);
    ck_assert_int_eq(stage->jobs, 1);
    ms_wire_free(msg);
    close(fd);
}
END_TEST

START_TEST(a_failed_commit_says_nothing_and_ends_the_server)
{
    uint8_t buf[512];
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    stage->commit_rc = MS_E_IO;

    put(fd, buf, pack_submit(7, buf));

    ck_assert_uint_eq(get(fd, &id, &msg), 0); /* closed, without an answer */
    ck_assert_int_eq(end_of_child(), 102);
    ck_assert_int_eq(stage->exit_rc, MS_E_IO);
    close(fd);
}
END_TEST

START_TEST(what_arrives_together_is_committed_together)
{
    enum { N = 200 };
    static uint8_t buf[N * 128];
    size_t size = 0;
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    for (uint32_t i = 1; i <= N; i++) {
        size += pack_submit(i, buf + size);
    }

    put(fd, buf, size);

    for (uint32_t i = 1; i <= N; i++) {
        ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_SUBMITTED);
        ck_assert_uint_eq(id, i);
        ms_wire_free(msg);
    }
    ck_assert_int_eq(stage->jobs, N);
    ck_assert_int_lt(stage->commits, N / 4);
    close(fd);
}
END_TEST

START_TEST(a_full_disk_refuses_new_work_until_there_is_space)
{
    char text[512] = "";
    start(-1, 0);
    int fd = greet();
    stage->commit_rc = 1;
    stage->idle_rc = 1;

    ck_assert_uint_eq(submit(fd, 1, NULL, 0),
                      MS_MSG_SUBMITTED); /* this one went into the reserve */
    ck_assert_uint_eq(submit(fd, 2, text, sizeof(text)), MS_MSG_ERROR);
    ck_assert_ptr_nonnull(strstr(text, "/var/lib/msched/state.db"));
    ck_assert_ptr_nonnull(strstr(text, "KiB free"));
    ck_assert_int_eq(stage->jobs, 1);

    stage->commit_rc = 0;
    stage->idle_rc = 0;
    uint16_t type = MS_MSG_ERROR;
    for (uint32_t i = 3; i < 60000 && type == MS_MSG_ERROR; i++) {
        type = submit(fd, i, NULL, 0);
        pause_ms(1);
    }
    ck_assert_uint_eq(type, MS_MSG_SUBMITTED);
    close(fd);
}
END_TEST

START_TEST(a_missing_reserve_at_the_start_refuses_from_the_first_submit)
{
    stage->idle_rc = 1;
    start(-1, 0);
    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_ERROR);
    close(fd);
}
END_TEST

START_TEST(term_ends_it_with_0_and_closes_connections_in_order)
{
    uint32_t id;
    ProtobufCMessage *msg;
    start(-1, 0);
    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);

    kill(child, SIGTERM);

    ck_assert_uint_eq(get(fd, &id, &msg), 0);
    ck_assert_int_eq(end_of_child(), 0);
    ck_assert_int_eq(try_dial(), -1);
    ck_assert_int_ne(access(socket_path, F_OK), 0);
    close(fd);
}
END_TEST

START_TEST(a_failed_reload_changes_nothing)
{
    start(-1, 0);
    int fd = greet();
    kill(child, SIGHUP);
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    close(fd);
}
END_TEST

START_TEST(a_passed_socket_is_served_and_its_file_left_alone)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
    int passed = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(passed, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(passed, 16), 0);
    int early = try_dial(); /* before anybody serves it */
    ck_assert_int_ge(early, 0);

    start(passed, 0);

    int fd = greet();
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    kill(child, SIGTERM);
    ck_assert_int_eq(end_of_child(), 0);
    ck_assert_int_eq(access(socket_path, F_OK), 0);
    close(fd);
    close(early);
    close(passed);
}
END_TEST

START_TEST(out_of_descriptors_it_waits_and_goes_on)
{
    enum { FDS = 40, N = 60 };
    int held[N];
    start(-1, FDS);
    int fd = greet();
    for (int i = 0; i < N; i++) {
        held[i] = dial(); /* the kernel's queue takes what the process cannot */
    }
    ck_assert_uint_eq(submit(fd, 1, NULL, 0), MS_MSG_SUBMITTED);
    for (int i = 0; i < N; i++) {
        close(held[i]);
    }

    int late = greet();

    ck_assert_uint_eq(submit(late, 2, NULL, 0), MS_MSG_SUBMITTED);
    close(late);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server");
    TCase *tcase = tcase_create("server");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, no_reply_leaves_before_its_commit_returned);
    tcase_add_test(tcase, a_failed_commit_says_nothing_and_ends_the_server);
    tcase_add_test(tcase, what_arrives_together_is_committed_together);
    tcase_add_test(tcase, a_full_disk_refuses_new_work_until_there_is_space);
    tcase_add_test(tcase, a_missing_reserve_at_the_start_refuses_from_the_first_submit);
    tcase_add_test(tcase, term_ends_it_with_0_and_closes_connections_in_order);
    tcase_add_test(tcase, a_failed_reload_changes_nothing);
    tcase_add_test(tcase, a_passed_socket_is_served_and_its_file_left_alone);
    tcase_add_test(tcase, out_of_descriptors_it_waits_and_goes_on);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
