/* nodes.c - ten thousand nodes over TLS, and a scheduler that restarts under their jobs
 *
 *     build/bench/nodes [--quick] [NODES JOBS RANKS]          10000 100 100 unless given
 *
 * Makes certificates, starts msschedd, and plays the nodes in this process: connections of the same
 * code that workers use, which register, beat, take ranks and hold them. Then the scheduler is
 * killed and started again; every node finds its connection broken at the same moment and comes
 * back as a worker does (libworker/agent/retry.h). One figure a line. Light clients on the same
 * machine take half of it: the figures are an upper bound for what a scheduler alone would need. */
#include "bench/head.h"
#include "libworker/agent/retry.h"
#include "proto/clock.h"
#include "proto/cluster.pb-c.h"
#include "proto/conn.h"
#include "proto/limits.h"
#include "proto/macros.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LIMIT_S = 900, BEAT_SLICES = 20, BEAT_MS = 2000, DIALING_MAX = 128 };

struct node {
    struct ms_conn *conn;
    struct event *retry;
    struct retry tries;    /* as a worker counts them */
    int64_t down_since_ms; /* 0: it never was up or down */
    int is_registered, is_running, is_dialing;
    uint64_t job, generation;
    uint32_t rank;
};

static struct {
    struct head head;
    struct event_base *base;
    SSL_CTX *tls;
    struct node *nodes;
    size_t n, registered, running, dialing;
    unsigned long stops, refused;
    unsigned slice;
    struct ms_conn *asker;
    int is_answered;
    Ms__StatusInfo status;
} b;

static void die(const char *what)
{
    head_die(&b.head, what);
}

/* ---- nodes ---- */

static void dial(struct node *node);

static void send_to(struct node *node, uint16_t type, const ProtobufCMessage *msg)
{
    (void)ms_conn_send(node->conn, type, type == MS_MSG_REGISTER ? 1 : 0, msg, NULL);
}

static void on_open(struct ms_conn *conn, void *arg)
{
    struct node *node = arg;
    Ms__Register msg = MS__REGISTER__INIT;
    size_t i = (size_t)(node - b.nodes);
    char id[32];
    char host[32];
    (void)conn;
    b.dialing--;
    node->is_dialing = 0;
    snprintf(id, sizeof(id), "w-%zu", i);
    snprintf(host, sizeof(host), "host%zu", i / 8);
    msg.node_id = id;
    msg.incarnation = i + 1;
    msg.host_name = host;
    msg.host_id = host;
    msg.data_address = (char *)"127.0.0.1:1";
    msg.cores = 8;
    msg.isa = (char *)"avx2";
    msg.onednn = (char *)"2.6.3";
    msg.pid = 1;
    msg.job = node->job;
    msg.generation = node->generation;
    msg.rank = node->rank;
    msg.running = node->is_running;
    send_to(node, MS_MSG_REGISTER, &msg.base);
}

static void take_rank(struct node *node, const Ms__Assign *assign)
{
    Ms__RankReady ready = MS__RANK_READY__INIT;
    node->job = ready.job = assign->job;
    node->generation = ready.generation = assign->generation;
    node->rank = ready.rank = assign->rank;
    ready.plan_sha256 = (char *)"plan";
    ready.log_path = (char *)"/tmp/worker.log";
    send_to(node, MS_MSG_RANK_READY, &ready.base);
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct node *node = arg;
    ProtobufCMessage *msg = NULL;
    (void)conn;
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, NULL) < 0) {
        die("a frame of the scheduler is damaged");
    }
    if (head->type == MS_MSG_REGISTERED && !node->is_registered) {
        node->is_registered = 1;
        node->tries = (struct retry){0};
        b.registered++;
    } else if (head->type == MS_MSG_ASSIGN) {
        take_rank(node, (const Ms__Assign *)msg);
    } else if (head->type == MS_MSG_START) {
        b.running += !node->is_running;
        node->is_running = 1;
    } else if (head->type == MS_MSG_STOP) {
        b.stops++;
    } else if (head->type == MS_MSG_ERROR && b.refused++ == 0) {
        fprintf(stderr, "nodes: refused: %s\n", ((const Ms__Error *)msg)->text);
    }
    ms_wire_free(msg);
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct node *node = arg;
    (void)conn;
    (void)reason;
    node->conn = NULL;
    b.dialing -= (size_t)node->is_dialing;
    node->is_dialing = 0;
    if (node->is_registered || node->down_since_ms == 0) {
        node->down_since_ms = ms_mono_ms();
    }
    code = node->is_registered ? MS_E_UNREACHABLE : code; /* as libworker/agent/line.c says it */
    b.registered -= (size_t)node->is_registered;
    node->is_registered = 0;
    int64_t most = node->job != 0 ? MS_LEASE_MS / MS_HEARTBEATS_PER_LEASE : 0;
    int64_t down = ms_mono_ms() - node->down_since_ms;
    int64_t wait =
        retry_wait_ms(&node->tries, retry_cause_of(code), down, most, (uint64_t)random());
    event_add(node->retry, &(struct timeval){.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000});
}

/* Each node is a machine of its own; here one thread plays all, and would keep its peers waiting.
 */
static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct node *node = arg;
    (void)fd;
    (void)what;
    if (b.dialing >= DIALING_MAX) {
        event_add(node->retry, &(struct timeval){.tv_usec = 20000 + random() % 200000});
        return;
    }
    b.dialing++;
    node->is_dialing = 1;
    dial(node);
}

static void dial(struct node *node)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_open, .on_frame = on_frame, .on_close = on_close};
    struct ms_conn_options opt = {.tls = b.tls,
                                  .tls_host = "127.0.0.1",
                                  .software = "bench",
                                  .require_scheduler = 1,
                                  .handshake_ms = 20000};
    if (ms_conn_connect(b.base, b.head.address, &opt, &handler, node, &node->conn, NULL) < 0) {
        on_close(NULL, 0, "", node);
    }
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    (void)fd;
    (void)what;
    (void)arg;
    for (size_t i = b.slice; i < b.n; i += BEAT_SLICES) {
        struct node *node = &b.nodes[i];
        if (node->is_registered && node->conn != NULL) {
            beat.job = node->job;
            beat.generation = node->generation;
            beat.step = node->is_running ? 1 : 0;
            send_to(node, MS_MSG_HEARTBEAT, &beat.base);
        }
    }
    b.slice = (b.slice + 1) % BEAT_SLICES;
}

/* ---- the one who asks ---- */

static void on_answer(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                      void *arg)
{
    ProtobufCMessage *msg = NULL;
    (void)conn;
    (void)arg;
    if (ms_wire_unpack(head->type, bytes, head->length, &msg, NULL) < 0) {
        die("an answer is damaged");
    }
    if (head->type == MS_MSG_STATUS_INFO) {
        b.status = *(const Ms__StatusInfo *)msg; /* numbers only are looked at */
    } else if (head->type == MS_MSG_ERROR && head->id == 0) {
        ms_wire_free(msg); /* no answer: it closes an asker that was idle for a minute */
        return;
    } else if (head->type == MS_MSG_ERROR) {
        fprintf(stderr, "nodes: %s\n", ((const Ms__Error *)msg)->text);
        die("a request was refused");
    }
    b.is_answered = 1;
    ms_wire_free(msg);
}

static void on_asker_open(struct ms_conn *conn, void *arg)
{
    (void)conn;
    (void)arg;
    b.is_answered = 1;
}

static void on_asker_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    (void)code;
    (void)reason;
    (void)arg;
    b.asker = NULL;
}

static void wait_answer(void)
{
    b.is_answered = 0;
    for (double until = ms_mono_s() + 60; !b.is_answered;) {
        event_base_loop(b.base, EVLOOP_ONCE);
        if (ms_mono_s() > until) {
            die("the scheduler does not answer");
        }
    }
}

static void ask(uint16_t type, const ProtobufCMessage *msg)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_asker_open, .on_frame = on_answer, .on_close = on_asker_close};
    struct ms_conn_options opt = {.software = "bench"};
    if (b.asker == NULL) {
        if (ms_conn_connect(b.base, b.head.unix_address, &opt, &handler, NULL, &b.asker, NULL) <
            0) {
            die("cannot connect to the socket");
        }
        wait_answer();
    }
    (void)ms_conn_send(b.asker, type, 5, msg, NULL);
    wait_answer();
}

static void ask_status(void)
{
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    ask(MS_MSG_STATUS_QUERY, &query.base);
}

/* ---- phases ---- */

static void until_all(const size_t *what, size_t n, const char *words)
{
    for (double until = ms_mono_s() + LIMIT_S; *what < n;) {
        event_base_loop(b.base, EVLOOP_ONCE);
        if (ms_mono_s() > until) {
            fprintf(stderr, "nodes: %zu of %zu\n", *what, n);
            die(words);
        }
    }
}

static void print_times(const char *phase)
{
    ask_status();
    printf("%s: ticks %llu, p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms, longest %.1f ms\n", phase,
           (unsigned long long)b.status.ticks, (double)b.status.tick_p50_us / 1000,
           (double)b.status.tick_p99_us / 1000, (double)b.status.tick_p999_us / 1000,
           (double)b.status.tick_max_us / 1000);
    printf("%s: computing, p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms, longest %.1f ms\n", phase,
           (double)b.status.tick_cpu_p50_us / 1000, (double)b.status.tick_cpu_p99_us / 1000,
           (double)b.status.tick_cpu_p999_us / 1000, (double)b.status.tick_cpu_max_us / 1000);
    printf("%s: commits %llu, p50 %.1f ms, p99.9 %.1f ms\n", phase,
           (unsigned long long)b.status.commits, (double)b.status.commit_p50_us / 1000,
           (double)b.status.commit_p999_us / 1000);
}

static void measure(size_t jobs, uint32_t ranks)
{
    Ms__Submit submit = MS__SUBMIT__INIT;
    double began = ms_mono_s();
    for (size_t i = 0; i < b.n; i++) {
        b.nodes[i].retry = evtimer_new(b.base, on_retry, &b.nodes[i]);
        on_close(NULL, 0, "", &b.nodes[i]);
    }
    until_all(&b.registered, b.n, "nodes did not register");
    printf("%zu nodes registered over TLS: %.1f s\n", b.n, ms_mono_s() - began);
    began = ms_mono_s();
    submit.job_json.data = (uint8_t *)"{}";
    submit.job_json.len = 2;
    submit.name = (char *)"bench";
    submit.workers = ranks;
    for (size_t i = 0; i < jobs; i++) {
        ask(MS_MSG_SUBMIT, &submit.base);
    }
    until_all(&b.running, jobs * ranks, "jobs did not start");
    printf("%zu jobs of %u ranks running: %.1f s\n", jobs, ranks, ms_mono_s() - began);
    print_times("before the restart");

    head_kill(&b.head);
    began = ms_mono_s();
    char listen[64];
    snprintf(listen, sizeof(listen), "%s", b.head.address);
    head_start(&b.head, listen, b.n);
    printf("the scheduler is back: %.2f s\n", ms_mono_s() - began);
    while (b.registered > 0 || b.asker != NULL) {
        event_base_loop(b.base, EVLOOP_ONCE);
        if (b.registered > 0 && ms_mono_s() - began > 2) {
            break; /* they come back already */
        }
    }
    until_all(&b.registered, b.n, "nodes did not come back");
    printf("%zu nodes are back: %.1f s\n", b.n, ms_mono_s() - began);
    print_times("after the restart");
    printf("jobs running %u of %zu, ended %llu, ranks told to stop %lu, refused %lu\n",
           b.status.jobs_running, jobs, (unsigned long long)b.status.jobs_ended, b.stops,
           b.refused);
    if (b.status.jobs_running != jobs || b.stops > 0) {
        die("running jobs did not survive the restart");
    }
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    size_t jobs = quick ? 4 : 100;
    uint32_t ranks = quick ? 8 : 100;
    b.n = quick ? 64 : 10000;
    if (argc == 4) {
        b.n = strtoul(argv[1], NULL, 10);
        jobs = strtoul(argv[2], NULL, 10);
        ranks = (uint32_t)strtoul(argv[3], NULL, 10);
    } else if (argc > 1 && !quick) {
        fprintf(stderr, "usage: nodes [--quick | NODES JOBS RANKS]\n");
        return 2;
    }
    if (ranks < 1 || jobs * ranks > b.n) {
        fprintf(stderr, "nodes: %zu nodes cannot hold %zu jobs of %u ranks\n", b.n, jobs, ranks);
        return 2;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    setvbuf(stdout, NULL, _IOLBF, 0);
    srandom(1);
    head_init(&b.head, "nodes");
    b.tls = head_tls(&b.head, "w.p12");
    b.base = event_base_new();
    b.nodes = calloc(b.n, sizeof(*b.nodes));
    struct event *beat = event_new(b.base, -1, EV_PERSIST, on_beat, NULL);
    event_add(beat, &(struct timeval){.tv_usec = BEAT_MS / BEAT_SLICES * 1000});
    head_start(&b.head, "127.0.0.1:0", b.n);
    measure(jobs, ranks);
    head_fini(&b.head);
    return 0;
}
