/* server_world.h - the real server in a child, with a store and a clock that tests play
 *
 * The server runs in a child with the real core; the store is played by this file, so that a commit
 * can wait, fail or find the disk full, and the clock is moved by whole
 * seconds. What both sides know lies in memory
 * that both see. */
#ifndef TESTS_SERVER_WORLD_H
#define TESTS_SERVER_WORLD_H

#include "daemon/sched/cost.h"
#include "daemon/server.h"
#include "tests/test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a store that does as it is told ------------------------------------------------------------
 */

struct stage {
    atomic_int commits;   /* that were begun */
    atomic_int hold;      /* a commit waits while this is 1; 2: while it is none of the first ... */
    atomic_int allowed;   /* ... so many */
    atomic_int commit_rc; /* what it returns */
    atomic_int nomem;     /* so many commits find no memory first */
    atomic_int settled;   /* jobs that a test submitted only to see that all is well */
    atomic_int start_ms;  /* a start stands still for so long once it has loaded; whole seconds */
    atomic_int skew_ms;   /* the clocks of both sides are ahead by this */
    atomic_llong stands;  /* they stand still at this nanosecond; 0: they go */
    atomic_int idle_rc;
    atomic_int looks;      /* how often the store was told that it is idle */
    atomic_int no_reserve; /* the disk is not full: the reserve cannot be made */
    atomic_int no_room;    /* ... or so full that no end can be stored */
    atomic_int jobs;       /* PUT_JOB effects that were committed */
    atomic_size_t largest; /* of the commits: what it took of the disk */
    atomic_int exit_rc;
    atomic_int may_reload;
    atomic_int reloads; /* that took new settings */
};

static struct stage *stage;

static inline void pause_ms(long ms)
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
    const int number = ++stage->commits;
    while (stage->hold == 1 || (stage->hold == 2 && number > stage->allowed)) {
        pause_ms(1);
    }
    if (stage->nomem > 0) {
        stage->nomem--;
        return ms_fail(err, MS_E_NOMEM, "no memory for a commit");
    }
    if (stage->commit_rc < 0) {
        return ms_fail(err, stage->commit_rc, "the disk is gone");
    }
    size_t cost = 0;
    for (size_t i = 0; i < n; i++) {
        stage->jobs += effects[i].kind == SCHED_DO_PUT_JOB;
        cost += sched_effect_cost(&effects[i]);
    }
    stage->largest = cost > stage->largest ? cost : stage->largest;
    return stage->commit_rc;
}

int store_idle(struct store *store)
{
    (void)store;
    stage->looks++;
    return stage->idle_rc;
}

int store_refusal(const struct store *store, struct ms_err *err)
{
    (void)store;
    return stage->no_reserve
               ? ms_fail(err, MS_E_IO, "reserve file /var/lib/msched/state.db.reserve: a folder")
               : ms_fail(err, MS_E_FULL,
                         "the disk of /var/lib/msched/state.db is full: 1 KiB free");
}

int store_has_room(struct store *store)
{
    (void)store;
    return !stage->no_room;
}

int store_take_warning(struct store *store, struct ms_err *ret)
{
    (void)store;
    (void)ret;
    return 0;
}

/* ---- a clock that does as it is told: in place of the C library's, for libevent too -------------
 */

MS_API int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret);
    int counts_up = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
    if (rc == 0 && counts_up && stage != NULL) {
        long long stands = stage->stands;
        if (stands != 0) {
            *ret = (struct timespec){stands / 1000000000, stands % 1000000000};
        }
        ret->tv_sec += stage->skew_ms / 1000;
    }
    return rc;
}

/* ---- the server in a child ----------------------------------------------------------------------
 */

static const char *dir;
static char socket_path[128];
static pid_t child;
static char config_path[128];

static const char *serve_tls = "off";

enum { SERVE_ARGS = 9 };

/* The settings that hold until then are left to the child's end. */
static inline int reload(void *argv, struct server *server, struct ms_err *err)
{
    struct options *options = NULL;
    if (!stage->may_reload) {
        return ms_fail(err, MS_E_CONFIG, "nothing to reload");
    }
    int rc = options_load(SERVE_ARGS, argv, &options, err);
    rc = rc == 0 ? server_take_options(server, options, err) : rc;
    stage->reloads += rc == 0;
    return rc;
}

/* lowered: soft and hard limit of descriptors, 0: as they are. passed: a listening socket becomes
 * descriptor 3, as systemd does it. */
static void (*load)(struct sched *sched); /* NULL: an empty database */

static inline struct sched_time world_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct sched_time){.mono_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000};
}

static inline struct sched *load_sched(const struct options *options)
{
    struct ms_err err = {0, ""};
    struct sched *sched = sched_create(&options->sched, world_time());
    if (load != NULL) {
        load(sched);
    }
    if (sched_load_done(sched, world_time(), &err) < 0) {
        _exit(101);
    }
    stage->skew_ms += stage->start_ms;
    return sched;
}

static inline void serve(int passed, unsigned lowered)
{
    char *argv[] = {(char[]){"msschedd"}, (char[]){"--config"},
                    config_path,          (char[]){"--socket"},
                    socket_path,          (char[]){"--listen"},
                    (char[]){"none"},     (char[]){"--tls"},
                    (char *)serve_tls,    NULL};
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
    if (options_load(SERVE_ARGS, argv, &options, &err) < 0) {
        _exit(100);
    }
    struct sched *sched = load_sched(options);
    struct server_setup setup = {.options = options,
                                 .sched = sched,
                                 .store = (struct store *)(void *)stage, /* never looked into */
                                 .reload = reload,
                                 .reload_arg = argv};
    if (server_open(&setup, &server, &err) < 0) {
        _exit(101);
    }
    stage->exit_rc = server_run(server, &err);
    server_close(server);
    sched_destroy(sched);
    options_destroy(options);
    _exit(stage->exit_rc < 0 ? 102 : stage->exit_rc);
}

static inline void start(int passed, unsigned lowered)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        serve(passed, lowered);
    }
}

static inline int end_of_child(void)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void setup(void)
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

static inline void teardown(void)
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

static inline int try_dial(void)
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

static inline int dial(void)
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

static inline size_t pack(uint16_t type, uint32_t id, const ProtobufCMessage *msg, uint8_t *buf)
{
    size_t size = ms_wire_size(msg);
    ck_ms_ok(ms_wire_pack(type, id, msg, buf, size, err));
    return size;
}

static inline size_t pack_submit(uint32_t id, uint8_t *buf)
{
    static uint8_t spec[] = "{\"workers\":1}";
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.job_json.data = spec;
    submit.job_json.len = sizeof(spec) - 1;
    submit.name = (char *)(uintptr_t) "job";
    submit.workers = 1;
    return pack(MS_MSG_SUBMIT, id, &submit.base, buf);
}

static inline void put(int fd, const uint8_t *bytes, size_t size)
{
    ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static inline int get_bytes(int fd, uint8_t *buf, size_t size)
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
static inline uint16_t get(int fd, uint32_t *ret_id, ProtobufCMessage **ret)
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

static inline int greet_over(int fd)
{
    uint8_t buf[256];
    uint32_t id;
    ProtobufCMessage *msg;
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = hello.protocol_max = MS_PROTOCOL_VERSION;
    hello.software = (char *)(uintptr_t) "test";
    put(fd, buf, pack(MS_MSG_HELLO, 0, &hello.base, buf));
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_WELCOME);
    ms_wire_free(msg);
    return fd;
}

static inline int greet(void)
{
    return greet_over(dial());
}

/* Puts a request of size bytes; the type of the answer, and its text where it is an Error. */
static inline uint16_t ask(int fd, uint32_t id, const uint8_t *bytes, size_t size, char *ret_text,
                           size_t text_size)
{
    uint32_t got = 0;
    ProtobufCMessage *msg;
    put(fd, bytes, size);
    uint16_t type = get(fd, &got, &msg);
    if (type == MS_MSG_ERROR && ret_text != NULL) {
        snprintf(ret_text, text_size, "%s", ((Ms__Error *)msg)->text);
    }
    ck_assert(type == 0 || got == id);
    ms_wire_free(msg);
    return type;
}

static inline uint16_t submit(int fd, uint32_t id, char *ret_text, size_t size)
{
    uint8_t buf[512];
    return ask(fd, id, buf, pack_submit(id, buf), ret_text, size);
}

static inline uint16_t cancel(int fd, uint32_t id, uint64_t job, char *ret_text, size_t size)
{
    uint8_t buf[512];
    Ms__Cancel msg = MS__CANCEL__INIT;
    msg.job = job;
    return ask(fd, id, buf, pack(MS_MSG_CANCEL, id, &msg.base, buf), ret_text, size);
}

static inline int is_readable(int fd, int wait_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, wait_ms) > 0;
}

/* What the next start, or a reload, reads. */
static inline void configure(const char *text)
{
    FILE *file = fopen(config_path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline void order_reload(const char *text)
{
    int n = stage->reloads;
    configure(text);
    kill(child, SIGHUP);
    for (int i = 0; i < 60000 && stage->reloads == n; i++) {
        pause_ms(1);
    }
    ck_assert_int_eq(stage->reloads, n + 1);
}

/* The next frame refuses with these words, and ends the connection. */
static inline void expect_end(int fd, const char *part)
{
    uint32_t id = 0;
    ProtobufCMessage *msg = NULL;
    ck_assert(is_readable(fd, 60000));
    ck_assert_uint_eq(get(fd, &id, &msg), MS_MSG_ERROR);
    ck_assert_msg(strstr(((Ms__Error *)msg)->text, part) != NULL, "%s", ((Ms__Error *)msg)->text);
    ms_wire_free(msg);
    ck_assert_uint_eq(get(fd, &id, &msg), 0);
    close(fd);
}

static inline void await_commits(int n)
{
    for (int i = 0; i < 60000 && stage->commits < n; i++) {
        pause_ms(1);
    }
    ck_assert_int_ge(stage->commits, n);
}

static inline int is_served(int fd)
{
    return submit(fd, 99, NULL, 0) == MS_MSG_SUBMITTED;
}

/* Everything that came before the clock moved has been seen by the server. */
static inline void settle(void)
{
    int fd = greet();
    ck_assert(is_served(fd));
    stage->settled++;
    close(fd);
}

#endif
