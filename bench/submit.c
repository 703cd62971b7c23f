/* submit.c - durable submissions a second, beside what one fdatasync costs on the same disk
 *
 *     build/bench/submit [--quick] [DIR]
 *
 * Starts msschedd with its database in a folder below DIR (default: TMPDIR or /tmp), connects N
 * clients over its Unix socket, and lets each submit a job, wait for the id, and submit the next.
 * An id comes only after the transaction that holds its job was synced, so with one client every
 * submission costs a sync; with many, those that arrive together share one. One figure a line. */
#include "proto/cluster.pb-c.h"
#include "proto/macros.h"
#include "proto/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "proto/clock.h"

enum { CLIENTS_MAX = 256, SPEC_BYTES = 1200, START_LIMIT_S = 60, SYNCS = 500 };

struct bench {
    char dir[512];
    char socket_path[600];
    pid_t pid;
    int fds[CLIENTS_MAX];
    uint8_t frame[SPEC_BYTES + 256];
    size_t frame_bytes;
};

static void die(const char *what)
{
    fprintf(stderr, "submit: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Appends of 4 KiB, each synced: what a transaction of the database cannot be faster than. */
static double sync_ms(const struct bench *bench, int n)
{
    char path[600];
    char block[4096];
    memset(block, 'x', sizeof(block));
    snprintf(path, sizeof(path), "%s/sync", bench->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        die(path);
    }
    double began = ms_mono_s();
    for (int i = 0; i < n; i++) {
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) || fdatasync(fd) != 0) {
            die("write and fdatasync");
        }
    }
    double took = ms_mono_s() - began;
    close(fd);
    return took * 1000 / n;
}

static int dial(const struct bench *bench)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", bench->socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void start_daemon(struct bench *bench)
{
    char config[600];
    char database[600];
    char log[600];
    snprintf(bench->socket_path, sizeof(bench->socket_path), "%s/s.sock", bench->dir);
    snprintf(config, sizeof(config), "%s/empty.conf", bench->dir);
    snprintf(database, sizeof(database), "%s/state.db", bench->dir);
    snprintf(log, sizeof(log), "%s/log", bench->dir);
    close(open(config, O_CREAT | O_WRONLY, 0600));
    bench->pid = fork();
    if (bench->pid == 0) {
        int fd = open(log, O_CREAT | O_WRONLY, 0600);
        dup2(fd, STDERR_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(MSCHED_BUILD_ROOT "/daemon/msschedd", "msschedd", "--config", config, "--listen",
              "none", "--socket", bench->socket_path, "--database", database, "--log-level",
              "warning", (char *)NULL);
        _exit(127);
    }
    double until = ms_mono_s() + START_LIMIT_S;
    int fd = -1;
    while ((fd = dial(bench)) < 0) {
        if (ms_mono_s() > until || waitpid(bench->pid, NULL, WNOHANG) != 0) {
            die("msschedd did not start; is it built?");
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    close(fd);
}

static void get_bytes(int fd, uint8_t *buf, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = recv(fd, buf + at, size - at, 0);
        if (n <= 0) {
            die("the scheduler closed the connection");
        }
        at += (size_t)n;
    }
}

static void expect(int fd, uint16_t type)
{
    uint8_t start[MS_WIRE_HEADER];
    uint8_t body[4096];
    struct ms_wire_header head;
    struct ms_err err = {0, ""};
    get_bytes(fd, start, sizeof(start));
    if (ms_wire_parse_header(start, &head, &err) < 0 || head.length > sizeof(body)) {
        fprintf(stderr, "submit: %s\n", err.text);
        exit(1);
    }
    get_bytes(fd, body, head.length);
    if (head.type != type) {
        fprintf(stderr, "submit: got a %s\n", ms_wire_find(head.type)->name);
        exit(1);
    }
}

static void put(int fd, const uint8_t *bytes, size_t size)
{
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) {
        die("send");
    }
}

static void greet(int fd)
{
    uint8_t buf[128];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = hello.protocol_max = MS_PROTOCOL_VERSION;
    hello.software = (char *)(uintptr_t) "bench";
    size_t size = ms_wire_size(&hello.base);
    if (ms_wire_pack(MS_MSG_HELLO, 0, &hello.base, buf, size, NULL) < 0) {
        die("hello");
    }
    put(fd, buf, size);
    expect(fd, MS_MSG_WELCOME);
}

/* One job of the size that the samples have with all defaults filled in. */
static void make_frame(struct bench *bench)
{
    static uint8_t spec[SPEC_BYTES];
    memset(spec, ' ', sizeof(spec));
    memcpy(spec, "{\"workers\":8}", 13);
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.job_json.data = spec;
    submit.job_json.len = sizeof(spec);
    submit.name = (char *)(uintptr_t) "bench";
    submit.workers = 8;
    bench->frame_bytes = ms_wire_size(&submit.base);
    if (bench->frame_bytes > sizeof(bench->frame) ||
        ms_wire_pack(MS_MSG_SUBMIT, 1, &submit.base, bench->frame, bench->frame_bytes, NULL) < 0) {
        die("submit");
    }
}

/* Closed loop of n clients until total jobs are acknowledged. */
static void measure(struct bench *bench, int n, int total)
{
    struct pollfd polls[CLIENTS_MAX];
    int sent = 0;
    int done = 0;
    for (int i = 0; i < n; i++) {
        polls[i] = (struct pollfd){.fd = dial(bench), .events = POLLIN};
        if (polls[i].fd < 0) {
            die("connect");
        }
        greet(polls[i].fd);
    }
    double began = ms_mono_s();
    for (int i = 0; i < n && sent < total; i++, sent++) {
        put(polls[i].fd, bench->frame, bench->frame_bytes);
    }
    while (done < total) {
        if (poll(polls, (nfds_t)n, -1) < 0) {
            die("poll");
        }
        for (int i = 0; i < n; i++) {
            if (polls[i].revents != 0) {
                expect(polls[i].fd, MS_MSG_SUBMITTED);
                done++;
                if (sent < total) {
                    put(polls[i].fd, bench->frame, bench->frame_bytes);
                    sent++;
                }
            }
        }
    }
    double took = ms_mono_s() - began;
    for (int i = 0; i < n; i++) {
        close(polls[i].fd);
    }
    printf("submit: %d clients: %.0f durable submissions/s, %.3f ms each\n", n, total / took,
           took * 1000 * n / total);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char *base = argc > 1 + quick ? argv[1 + quick] : getenv("TMPDIR");
    snprintf(bench.dir, sizeof(bench.dir), "%s/msched-bench-XXXXXX",
             base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(bench.dir) == NULL) {
        die(bench.dir);
    }
    printf("submit: %.3f ms a 4 KiB append with fdatasync\n",
           sync_ms(&bench, quick ? SYNCS / 10 : SYNCS));
    make_frame(&bench);
    start_daemon(&bench);
    static const int clients[] = {1, 8, 64, 256};
    for (size_t i = 0; i < MS_ARRAY_SIZE(clients); i++) {
        measure(&bench, clients[i], quick ? 300 : clients[i] == 1 ? 3000 : 20000);
    }
    kill(bench.pid, SIGTERM);
    waitpid(bench.pid, NULL, 0);
    nftw(bench.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
