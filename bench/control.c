/* control.c - the control plane: a thousand ranks that come at once, ten thousand hearts that beat
 *
 *     build/bench/control [--quick] [RANKS NODES SECONDS]          1000 10000 20 unless given
 *
 * Starts msschedd, and plays light nodes in this process over mutual TLS (light.h). First so many
 * as a job that waits has ranks dial at the same moment: time until the last one has its rank, in
 * a few rounds, each with a scheduler that knows nothing yet. Then so many nodes beat once a
 * second: what the scheduler computes, and what it holds in memory for each. One figure a line;
 * what both ends of a handshake compute by itself stands beside them. */
#include "bench/handshake.h"
#include "bench/head.h"
#include "bench/light.h"
#include "proto/clock.h"
#include "proto/cluster.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 5, LIMIT_S = 200, DIALING_MAX = 128, SETTLE_S = 2, CORES = 2 };

static struct {
    struct head head;
    SSL_CTX *tls;
    struct event_base *base;
    struct handshake_cost bare;
    int rounds;
} b;

/* What this process computed: the clients. */
static double own_cpu_s(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static double by_round(double *values, int at)
{
    for (int i = 1; i < b.rounds; i++) { /* few: sorted by putting each where it belongs */
        for (int k = i; k > 0 && values[k] < values[k - 1]; k--) {
            double value = values[k];
            values[k] = values[k - 1];
            values[k - 1] = value;
        }
    }
    return values[at];
}

static void print_rounds(const char *what, const char *unit, double *values)
{
    printf("%s: %.2f %s, median %.2f %s\n", what, by_round(values, 0), unit,
           by_round(values, b.rounds / 2), unit);
}

static void run_until(const size_t *what, size_t n, const char *words)
{
    for (double until = ms_mono_s() + LIMIT_S; *what < n;) {
        event_base_loop(b.base, EVLOOP_ONCE);
        if (ms_mono_s() > until) {
            head_die(&b.head, words);
        }
    }
}

static void run_for(double seconds)
{
    for (double until = ms_mono_s() + seconds; ms_mono_s() < until;) {
        event_base_loop(b.base, EVLOOP_ONCE);
    }
}

/* ---- a job that waits for its nodes ---- */

struct submitter {
    struct ms_conn *conn;
    uint32_t ranks;
    size_t is_done;
};

static void on_open(struct ms_conn *conn, void *arg)
{
    const struct submitter *submitter = arg;
    Ms__Submit submit = MS__SUBMIT__INIT;
    submit.job_json.data = (uint8_t *)"{}";
    submit.job_json.len = 2;
    submit.name = (char *)"bench";
    submit.workers = submitter->ranks;
    (void)ms_conn_send(conn, MS_MSG_SUBMIT, 1, &submit.base, NULL);
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct submitter *submitter = arg;
    (void)conn;
    (void)bytes;
    if (head->type == MS_MSG_ERROR) {
        head_die(&b.head, "the job was refused");
    }
    submitter->is_done = 1;
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    (void)conn;
    (void)code;
    (void)arg;
    head_die(&b.head, reason);
}

static void submit_job(uint32_t ranks)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_open, .on_frame = on_frame, .on_close = on_close};
    struct ms_conn_options opt = {.software = "bench"};
    struct submitter submitter = {.ranks = ranks};
    if (ms_conn_connect(b.base, b.head.unix_address, &opt, &handler, &submitter, &submitter.conn,
                        NULL) < 0) {
        head_die(&b.head, "cannot connect to the socket");
    }
    run_until(&submitter.is_done, 1, "the job was not answered");
    ms_conn_destroy(submitter.conn);
}

/* ---- ranks ---- */

struct round {
    double registered_s, ranked_s, head_cpu_s, own_cpu_s;
};

static struct round give_ranks(size_t n)
{
    struct round ret;
    struct light_fleet fleet = {
        .base = b.base, .tls = b.tls, .address = b.head.address, .n = n, .dialing_max = n};
    head_start(&b.head, "127.0.0.1:0", n);
    submit_job((uint32_t)n);
    double head_s = head_cpu_s(&b.head);
    double own_s = own_cpu_s();
    double began = ms_mono_s();
    light_start(&fleet);
    run_until(&fleet.registered, n, "nodes did not register");
    ret.registered_s = ms_mono_s() - began;
    run_until(&fleet.ranked, n, "nodes have no ranks");
    ret.ranked_s = ms_mono_s() - began;
    ret.head_cpu_s = head_cpu_s(&b.head) - head_s;
    ret.own_cpu_s = own_cpu_s() - own_s;
    if (fleet.lost > 0) {
        printf("connections that ended, and were made again: %lu\n", fleet.lost);
    }
    light_stop(&fleet);
    head_kill(&b.head);
    head_forget(&b.head);
    return ret;
}

static void measure_ranks(size_t n)
{
    double registered[ROUNDS];
    double ranked[ROUNDS];
    double head[ROUNDS];
    double own[ROUNDS];
    double ratio[ROUNDS];
    for (int i = 0; i < b.rounds; i++) {
        struct round round = give_ranks(n);
        registered[i] = round.registered_s;
        ranked[i] = round.ranked_s;
        head[i] = round.head_cpu_s;
        own[i] = round.own_cpu_s;
        ratio[i] = round.ranked_s * CORES / ((double)n * (b.bare.client_s + b.bare.server_s));
    }
    printf("%zu ranks over TLS, %d rounds\n", n, b.rounds);
    print_rounds("the last one is registered", "s", registered);
    print_rounds("the last one has its rank", "s", ranked);
    print_rounds("... in bare handshakes on two cores", "times", ratio);
    print_rounds("computed by the scheduler", "s", head);
    print_rounds("computed by the clients", "s", own);
}

/* ---- hearts ---- */

static void measure_beats(size_t n, double seconds)
{
    struct light_fleet fleet = {.base = b.base,
                                .tls = b.tls,
                                .address = b.head.address,
                                .n = n,
                                .dialing_max = DIALING_MAX};
    head_start(&b.head, "127.0.0.1:0", n);
    size_t rss_before = head_rss_bytes(&b.head);
    double began = ms_mono_s();
    light_start(&fleet);
    run_until(&fleet.registered, n, "nodes did not register");
    printf("%zu nodes registered over TLS: %.1f s\n", n, ms_mono_s() - began);
    run_for(SETTLE_S);
    light_count(&fleet, seconds);
    double head_s = head_cpu_s(&b.head);
    double own_s = own_cpu_s();
    began = ms_mono_s();
    run_for(seconds);
    double took = ms_mono_s() - began;
    double beats = (double)fleet.beats / took;
    head_s = head_cpu_s(&b.head) - head_s;
    own_s = own_cpu_s() - own_s;
    size_t rss = head_rss_bytes(&b.head);
    printf("heartbeats: %.0f a second, answered %.2f %%, lost connections %lu\n", beats,
           100.0 * (double)fleet.answers / (double)fleet.beats, fleet.lost);
    printf("answered within: p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n",
           light_wait_s(&fleet, 0.5) * 1e3, light_wait_s(&fleet, 0.99) * 1e3,
           light_wait_s(&fleet, 1) * 1e3);
    printf("computed by the scheduler: %.1f %% of a core, %.1f us a heartbeat\n",
           100 * head_s / took, head_s / took / beats * 1e6);
    printf("computed by the clients: %.1f %% of a core\n", 100 * own_s / took);
    printf("memory of the scheduler: %.1f KiB a connection (%.1f MiB, %.1f MiB before)\n",
           (double)(rss - rss_before) / 1024 / (double)n, (double)rss / 1048576,
           (double)rss_before / 1048576);
    light_stop(&fleet);
    head_kill(&b.head);
}

static void allow_descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    size_t ranks = quick ? 32 : 1000;
    size_t nodes = quick ? 64 : 10000;
    double seconds = quick ? 1 : 20;
    b.rounds = quick ? 1 : ROUNDS;
    if (argc == 4) {
        ranks = strtoul(argv[1], NULL, 10);
        nodes = strtoul(argv[2], NULL, 10);
        seconds = strtod(argv[3], NULL);
    } else if (argc > 1 && !quick) {
        fprintf(stderr, "usage: control [--quick | RANKS NODES SECONDS]\n");
        return 2;
    }
    allow_descriptors();
    setvbuf(stdout, NULL, _IOLBF, 0);
    head_init(&b.head, "control");
    b.tls = head_tls(&b.head, "w.p12");
    b.base = event_base_new();
    SSL_CTX *own = head_tls(&b.head, "head.p12");
    if (handshake_measure(b.tls, own, b.rounds, &b.bare) < 0) {
        head_die(&b.head, "no handshake");
    }
    SSL_CTX_free(own);
    printf("a bare handshake: client %.2f ms, scheduler %.2f ms\n", b.bare.client_s * 1e3,
           b.bare.server_s * 1e3);
    if (ranks > 0) {
        measure_ranks(ranks);
    }
    if (nodes > 0) {
        measure_beats(nodes, seconds);
    }
    head_fini(&b.head);
    return 0;
}
