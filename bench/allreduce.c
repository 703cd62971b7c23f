/* allreduce.c - time of mesh_all_reduce_sum over ranks of this host: size, min, median, bus rate
 *
 * allreduce [-n RANKS] [-t shm|tcp|tls] [-s BYTES] [-i ITERATIONS] [--spin] [--bind] [--quick]
 *           [--on NETNS=IP --on NETNS=IP ... [--apart]]
 *
 * A line each: transport ranks bytes iterations min_us median_us bus_GB/s algorithm. Bus rate is
 * 2 (n - 1) / n * bytes / min, as NCCL's tests count it: what a ring would have to move. The
 * `memcpy` lines say what this machine's memory gives to n processes that copy at once. A sum is
 * checked once for each size. Small ones are called back to back, 20 a sample.
 *
 * --on: a network namespace that stands for a host (allreduce_hosts.sh makes two); the ranks are
 * shared out over them, and a line ends with the bytes of payload that a sum moves between them.
 * --apart: as if each rank were alone on its host. */
#include "bench/ranks.h"

#include "proto/cert.h"
#include "proto/clock.h"
#include "proto/macros.h"
#include "proto/tls.h"

#include <ftw.h>
#include <getopt.h>
#include <sched.h>
#include <sys/mman.h>

enum { TIMES_MAX = 4096, REPEAT_BELOW = 512 << 10, REPEATS = 20 };

static const size_t sizes[] = {1 << 10,   4 << 10, 16 << 10, 31400,   64 << 10,
                               256 << 10, 1 << 20, 8 << 20,  94 << 20};

enum transport { SHM, TCP, TLS, TRANSPORTS };
static const char *const transport_names[] = {"shm", "tcp", "tls"};

struct bench {
    struct ranks ranks;
    enum transport transport;
    size_t bytes, iterations;
    size_t repeat; /* calls in a row that a sample is the mean of: one is over too soon to time */
    int spin;
    int bind;      /* rank r to core r, as mpirun does with two ranks */
    double *times; /* shared: us of rank 0 */
    int apart;
    uint64_t *crossing; /* shared: bytes that each rank sent to another place */
};

static double now_us(void)
{
    return ms_mono_s() * 1e6;
}

static int complain(const char *what, const struct ms_err *err)
{
    fprintf(stderr, "allreduce: %s: %s\n", what, err->text);
    return 1;
}

static void fill(float *data, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)((i + (size_t)rank) % 7);
    }
}

static int is_right(const float *data, size_t count, int world)
{
    for (size_t i = 0; i < count; i++) {
        float want = 0;
        for (int r = 0; r < world; r++) {
            want += (float)((i + (size_t)r) % 7);
        }
        if (data[i] != want) {
            return 0;
        }
    }
    return 1;
}

static void bind_to_core(int core)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(core, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus); /* fewer cores: the kernel places it */
}

/* Payload that went from this rank to ranks in other places. */
static uint64_t count_crossing(const struct ranks *ranks, int rank, const struct mesh *mesh)
{
    struct mesh_counters counters;
    struct mesh_traffic peers[RANKS_MAX];
    uint64_t bytes = 0;
    mesh_counters(mesh, &counters, peers);
    for (int r = 0; r < ranks->world; r++) {
        bytes += ranks_place(ranks, r) != ranks_place(ranks, rank) ? peers[r].payload_out : 0;
    }
    return bytes;
}

static int run_rank(int rank, void *arg)
{
    struct bench *bench = arg;
    struct ms_err err;
    if (ranks_enter(&bench->ranks, rank, &err) < 0) {
        return complain("namespace", &err);
    }
    if (bench->bind) {
        bind_to_core(rank);
    }
    struct mesh *mesh = NULL;
    size_t count = bench->bytes / sizeof(float);
    struct mesh_config cfg = ranks_config(&bench->ranks, rank, count);
    cfg.force_remote = bench->apart || (bench->transport != SHM && bench->ranks.n_places == 0);
    cfg.spin = bench->spin;
    if (mesh_create(&cfg, &mesh, &err) < 0) {
        return complain("mesh_create", &err);
    }
    const void *result = NULL;
    fill(mesh_exchange(mesh), count, rank);
    uint64_t before = count_crossing(&bench->ranks, rank, mesh);
    if (mesh_all_reduce_sum(mesh, 0, count, &result, &err) < 0) {
        return complain("all_reduce", &err);
    }
    bench->crossing[rank] = count_crossing(&bench->ranks, rank, mesh) - before;
    if (!is_right(result, count, bench->ranks.world)) {
        fprintf(stderr, "allreduce: rank %d has a wrong sum\n", rank);
        return 1;
    }
    memset(mesh_exchange(mesh), 0, count * sizeof(float)); /* sums that stay finite */
    for (size_t i = 0; i < bench->iterations + 2; i++) {
        if (mesh_barrier(mesh, &err) < 0) {
            return complain("barrier", &err);
        }
        double start = now_us();
        for (size_t k = 0; k < bench->repeat; k++) {
            if (mesh_step_begin(mesh, i * bench->repeat + k, &err) < 0 ||
                mesh_all_reduce_sum(mesh, 0, count, &result, &err) < 0) {
                return complain("all_reduce", &err);
            }
        }
        if (rank == 0 && i >= 2) { /* the first two warm caches and page tables */
            bench->times[i - 2] = (now_us() - start) / (double)bench->repeat;
        }
    }
    mesh_destroy(mesh);
    return 0;
}

/* Each rank copies its own buffer: 2 bytes of traffic for one of bytes. */
static int run_memcpy(int rank, void *arg)
{
    struct bench *bench = arg;
    char *src = aligned_alloc(4096, bench->bytes);
    char *dst = aligned_alloc(4096, bench->bytes);
    if (src == NULL || dst == NULL) {
        return 1;
    }
    memset(src, rank, bench->bytes);
    memset(dst, rank, bench->bytes);
    for (size_t i = 0; i < bench->iterations; i++) {
        double start = now_us();
        memcpy(dst, src, bench->bytes);
        __asm__ volatile("" ::"r"(dst) : "memory");
        if (rank == 0) {
            bench->times[i] = now_us() - start;
        }
    }
    free(src);
    free(dst);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(struct bench *bench, const char *name, double bus)
{
    qsort(bench->times, bench->iterations, sizeof(double), by_value);
    double best = bench->times[0];
    printf("%-7s ranks %d bytes %9zu iterations %5zu min_us %10.1f median_us %10.1f bus_GB/s "
           "%6.2f",
           name, bench->ranks.world, bench->bytes, bench->iterations, best,
           bench->times[bench->iterations / 2], bus * (double)bench->bytes / best / 1e3);
    if (bench->ranks.n_places > 0) {
        uint64_t bytes = 0;
        for (int r = 0; r < bench->ranks.world; r++) {
            bytes += bench->crossing[r];
        }
        printf(" crossing %11llu", (unsigned long long)bytes);
    }
    printf("\n");
    fflush(stdout);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Certificates for w0, w1, ... */
static int make_tls(struct ranks *ranks, int world, struct ms_err *err)
{
    char dir[] = "/tmp/msched-bench-XXXXXX";
    char ca_path[128];
    char p12_path[128];
    struct ms_ca *ca = NULL;
    if (mkdtemp(dir) == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot make a directory in /tmp");
    }
    snprintf(ca_path, sizeof(ca_path), "%s/ca.crt", dir);
    int rc = ms_ca_create("bench", 1, &ca, err);
    rc = rc == 0 ? ms_ca_export(ca, ca_path, err) : rc;
    for (int i = 0; rc == 0 && i < world; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(p12_path, sizeof(p12_path), "%s/%s.p12", dir, name);
        struct ms_cert_request req = {
            .role = MS_ROLE_WORKER, .name = name, .days = 1, .password = ""};
        struct ms_tls_config cfg = {.p12_path = p12_path, .p12_password = "", .ca_path = ca_path};
        rc = ms_ca_issue(ca, &req, p12_path, NULL, err);
        rc = rc == 0 ? ms_tls_context(&cfg, &ranks->tls[i], NULL, err) : rc;
    }
    ms_ca_destroy(ca);
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return rc;
}

static int run_size(struct bench *bench, int world, size_t bytes, size_t iterations)
{
    struct ms_err err;
    bench->bytes = bytes;
    bench->repeat = bytes < REPEAT_BELOW ? REPEATS : 1;
    bench->iterations = (iterations + bench->repeat - 1) / bench->repeat;
    if (ranks_open(&bench->ranks, world, &err) < 0) {
        return complain("listen", &err);
    }
    int failed = ranks_run(&bench->ranks, run_rank, bench);
    ranks_close(&bench->ranks);
    if (failed == 0) {
        report(bench, transport_names[bench->transport], 2.0 * (world - 1) / world);
    }
    return failed;
}

/* About `seconds` a size, at 2 GB/s and 20 us each. */
static size_t iterations_for(size_t bytes, double seconds)
{
    double n = seconds / ((double)bytes / 2e9 + 20e-6);
    return n < 3 ? 3 : n > TIMES_MAX - 1 ? TIMES_MAX - 1 : (size_t)n;
}

struct options {
    int world, spin, quick, bind;
    int transport; /* -1: all */
    size_t bytes, iterations;
    int apart, n_places;
    struct place places[PLACES_MAX];
};

/* NETNS=IP */
static int parse_place(char *text, struct options *opt)
{
    char *ip = strchr(text, '=');
    if (ip == NULL || opt->n_places == PLACES_MAX) {
        return -1;
    }
    *ip++ = '\0';
    opt->places[opt->n_places++] = (struct place){.netns = text, .ip = ip};
    return 0;
}

static int parse(int argc, char **argv, struct options *opt)
{
    static const struct option longs[] = {
        {"quick", no_argument, NULL, 'q'}, {"bind", no_argument, NULL, 'b'},
        {"spin", no_argument, NULL, 'p'},  {"on", required_argument, NULL, 'o'},
        {"apart", no_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
    *opt = (struct options){.world = 2, .spin = -1, .transport = -1};
    for (int c; (c = getopt_long(argc, argv, "n:t:s:i:", longs, NULL)) != -1;) {
        switch (c) {
        case 'n':
            opt->world = (int)strtol(optarg, NULL, 10);
            break;
        case 't':
            for (int t = 0; t < TRANSPORTS; t++) {
                opt->transport = strcmp(optarg, transport_names[t]) == 0 ? t : opt->transport;
            }
            break;
        case 's':
            opt->bytes = strtoull(optarg, NULL, 10);
            break;
        case 'i':
            opt->iterations = strtoull(optarg, NULL, 10);
            break;
        case 'p':
            opt->spin = 1;
            break;
        case 'q':
            opt->quick = 1;
            break;
        case 'b':
            opt->bind = 1;
            break;
        case 'o':
            if (parse_place(optarg, opt) < 0) {
                return -1;
            }
            break;
        case 'a':
            opt->apart = 1;
            break;
        default:
            return -1;
        }
    }
    return opt->world >= 1 && opt->world <= RANKS_MAX && opt->iterations < TIMES_MAX ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options opt;
    struct bench bench = {0};
    struct ms_err err;
    if (parse(argc, argv, &opt) < 0) {
        fprintf(stderr, "usage: allreduce [-n RANKS] [-t shm|tcp|tls] [-s BYTES] [-i ITERATIONS] "
                        "[--spin] [--bind] [--quick] [--on NETNS=IP]... [--apart]\n");
        return 2;
    }
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    bench.spin = opt.spin >= 0 ? opt.spin : opt.world <= cores;
    bench.bind = opt.bind;
    bench.apart = opt.apart;
    bench.ranks.n_places = opt.n_places;
    memcpy(bench.ranks.places, opt.places, sizeof(opt.places));
    bench.times = mmap(NULL, TIMES_MAX * sizeof(double) + RANKS_MAX * sizeof(uint64_t),
                       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench.crossing = (uint64_t *)(void *)(bench.times + TIMES_MAX);
    if (bench.times == MAP_FAILED) {
        return 1;
    }
    int failed = 0;
    for (int t = 0; t < TRANSPORTS; t++) {
        if (opt.transport >= 0 ? opt.transport != t : t == SHM && opt.n_places > 0) {
            continue;
        }
        bench.transport = (enum transport)t;
        if (t == TLS && make_tls(&bench.ranks, opt.world, &err) < 0) {
            return complain("certificates", &err);
        }
        for (size_t i = 0; i < MS_ARRAY_SIZE(sizes); i++) {
            size_t bytes = opt.bytes > 0 ? opt.bytes : sizes[i];
            size_t n = iterations_for(bytes, opt.quick ? 0.02 : 1.0);
            failed += run_size(&bench, opt.world, bytes, opt.iterations > 0 ? opt.iterations : n);
            if (opt.bytes > 0) {
                break;
            }
        }
    }
    size_t copies[] = {1 << 20, 94 << 20};
    for (size_t i = 0; i < MS_ARRAY_SIZE(copies) && opt.n_places == 0; i++) {
        bench.bytes = copies[i];
        bench.iterations = iterations_for(copies[i], opt.quick ? 0.02 : 0.5);
        failed += ranks_run(&bench.ranks, run_memcpy, &bench);
        report(&bench, "memcpy", 1.0);
    }
    for (int i = 0; i < RANKS_MAX; i++) {
        SSL_CTX_free(bench.ranks.tls[i]);
    }
    return failed == 0 ? 0 : 1;
}
