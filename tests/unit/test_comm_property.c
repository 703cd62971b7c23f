/* test_comm_property.c - every collective, over random worlds, hosts and sizes, against a plain
 * model
 *
 * A case is a number: world, who sits on which host, and the collectives that all ranks then do
 * follow from it. Half of the cases have ranks that are processes, half ranks that are threads of
 * this one, which share OpenSSL and what the library may keep to itself. */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum {
    CASES = 36,
    ROUNDS = 12,           /* collectives of a case */
    FLOATS = 1 << 19,      /* of an exchange buffer ... */
    LARGE = (9 << 20) / 2, /* ... and of a few: more than the 16 MiB that go at a time */
    WORLD_MAX = 8,
    BUCKETS = 3,
};

struct property {
    struct comm_case *c;
    uint64_t seed;
    size_t floats;
};

/* Number i of the case's stream for a purpose, below n. The same on all ranks. */
static uint64_t draw(const struct property *p, uint64_t purpose, uint64_t i, uint64_t n)
{
    return ms_rng_below(ms_rng_stream(p->seed, purpose, 77), i, n);
}

/* T(lo, hi) of element i, from the definition. */
static float serial_tree(uint64_t step, int lo, int hi, size_t i)
{
    if (hi - lo == 1) {
        return comm_value(lo, step, i);
    }
    int mid = lo + (hi - lo + 1) / 2;
    return serial_tree(step, lo, mid, i) + serial_tree(step, mid, hi, i);
}

static double serial_tree_f64(const double *v, int lo, int hi)
{
    int mid = lo + (hi - lo + 1) / 2;
    return hi - lo == 1 ? v[lo] : serial_tree_f64(v, lo, mid) + serial_tree_f64(v, mid, hi);
}

/* Nothing, one, odd, and one more or less than where an algorithm, a slice, a chunk or a block
 * ends. */
static size_t draw_count(const struct property *p, uint64_t round)
{
    size_t world = (size_t)p->c->ranks.world;
    const size_t borders[] = {
        1,
        16 * world,
        ALLREDUCE_FLAT_MAX / sizeof(float) / world,
        MESH_SMALL_MAX / sizeof(float),
        64 << 10,
        16 * world * 1024,
        world * (64 << 10),
        2 * world * (64 << 10),
    };
    size_t border = borders[draw(p, 1, round, MS_ARRAY_SIZE(borders))];
    size_t count = 0;
    switch (draw(p, 2, round, 3)) {
    case 0:
        count = border - 1 + (size_t)draw(p, 3, round, 3);
        break;
    case 1:
        count = (size_t)draw(p, 4, round, 2 * border) | 1;
        break;
    default:
        count = p->floats - (size_t)draw(p, 5, round, 100);
    }
    return count <= p->floats ? count : p->floats;
}

/* This rank's share of the elements against the model; that all have the same is seen by a gather.
 */
static int check_sum(const struct property *p, int rank, struct mesh *mesh, uint64_t step,
                     size_t begin, size_t count, const float *result)
{
    size_t world = (size_t)p->c->ranks.world;
    uint64_t hash = 0;
    uint64_t hashes[WORLD_MAX];
    size_t near = 2048; /* all of the begin and of the end */
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, &result[i], sizeof(bits));
        hash = (hash ^ bits) * 0x100000001B3U;
        if (i < near || count - i <= near || (i / 16) % world == (size_t)rank) {
            float want = serial_tree(step, 0, (int)world, begin + i);
            CHILD_TRUE(memcmp(&want, &result[i], sizeof(want)) == 0,
                       "seed %llu: element %zu of %zu from %zu: %a instead of %a",
                       (unsigned long long)p->seed, i, count, begin, (double)result[i],
                       (double)want);
        }
    }
    CHILD_OK(mesh_all_gather(mesh, &hash, sizeof(hash), hashes, err));
    for (size_t r = 0; r < world; r++) {
        CHILD_TRUE(hashes[r] == hash, "seed %llu: rank %zu has another sum of %zu from %zu",
                   (unsigned long long)p->seed, r, count, begin);
    }
    return 0;
}

static void fill(float *data, int rank, uint64_t step, size_t begin, size_t count)
{
    for (size_t i = begin; i < begin + count; i++) {
        data[i] = comm_value(rank, step, i);
    }
}

static int one_sum(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    size_t count = draw_count(p, step);
    size_t begin = (size_t)draw(p, 6, step, p->floats - count + 1);
    const float *result = NULL;
    CHILD_OK(mesh_step_begin(mesh, step, err));
    fill(mesh_exchange(mesh), rank, step, begin, count);
    CHILD_OK(mesh_all_reduce_sum(mesh, begin, count, &result, err));
    return check_sum(p, rank, mesh, step, begin, count, result);
}

/* A step as a trainer has it: buckets side by side, summed while the next is filled. */
static int one_step(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    struct reducer_bucket buckets[BUCKETS];
    const float *results[BUCKETS];
    struct reducer *reducer = NULL;
    size_t begin = 0;
    for (int i = 0; i < BUCKETS; i++) {
        size_t left = p->floats - begin;
        size_t count = draw_count(p, step * 8 + (uint64_t)i);
        buckets[i] = (struct reducer_bucket){.begin = begin, .count = count < left ? count : left};
        begin += buckets[i].count;
    }
    CHILD_OK(reducer_create(mesh_all(mesh), buckets, BUCKETS, &reducer, err));
    CHILD_OK(reducer_begin(reducer, step, err));
    for (int i = 0; i < BUCKETS; i++) {
        fill(mesh_exchange(mesh), rank, step, buckets[i].begin, buckets[i].count);
        reducer_post(reducer, i);
    }
    CHILD_OK(reducer_wait(reducer, results, err));
    reducer_destroy(reducer);
    for (int i = 0; i < BUCKETS; i++) {
        if (check_sum(p, rank, mesh, step, buckets[i].begin, buckets[i].count, results[i]) != 0) {
            return 1;
        }
    }
    return 0;
}

static int one_of_doubles(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    double sums[1024];
    double largest[1024];
    double each[WORLD_MAX];
    int world = p->c->ranks.world;
    size_t count = (size_t)draw(p, 7, step, 1025);
    for (size_t i = 0; i < count; i++) {
        sums[i] = largest[i] = (double)comm_value(rank, step, i) * 1e-3;
    }
    CHILD_OK(mesh_all_reduce_sum_f64(mesh, sums, count, err));
    CHILD_OK(mesh_all_reduce_max(mesh, largest, count, err));
    for (size_t i = 0; i < count; i++) {
        double max = -INFINITY;
        for (int r = 0; r < world; r++) {
            each[r] = (double)comm_value(r, step, i) * 1e-3;
            max = fmax(max, each[r]);
        }
        CHILD_TRUE(sums[i] == serial_tree_f64(each, 0, world), "seed %llu: sum of double %zu",
                   (unsigned long long)p->seed, i);
        CHILD_TRUE(largest[i] == max, "seed %llu: maximum %zu", (unsigned long long)p->seed, i);
    }
    return 0;
}

static uint8_t byte_of(int rank, uint64_t step, size_t i)
{
    return (uint8_t)ms_rng_mix(step * 1000 + (uint64_t)rank + (i << 32));
}

static int one_broadcast(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    int root = (int)draw(p, 8, step, (uint64_t)p->c->ranks.world);
    size_t bytes = draw_count(p, step) / 2;
    uint8_t *data = calloc(bytes + 1, 1);
    CHILD_TRUE(data != NULL, "memory");
    for (size_t i = 0; rank == root && i < bytes; i++) {
        data[i] = byte_of(root, step, i);
    }
    CHILD_OK(mesh_broadcast(mesh, data, bytes, root, err));
    size_t wrong = data[bytes];
    for (size_t i = 0; i < bytes; i++) {
        wrong += data[i] != byte_of(root, step, i);
    }
    free(data);
    CHILD_TRUE(wrong == 0, "seed %llu: %zu of %zu bytes from rank %d are wrong",
               (unsigned long long)p->seed, wrong, bytes, root);
    return 0;
}

static int one_gather(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    size_t world = (size_t)p->c->ranks.world;
    size_t bytes = (size_t)draw(p, 9, step, MESH_SMALL_MAX + 1);
    uint8_t *all = calloc(world * bytes + 1, 1);
    CHILD_TRUE(all != NULL, "memory");
    uint8_t *mine = all + (size_t)rank * bytes; /* in place */
    for (size_t i = 0; i < bytes; i++) {
        mine[i] = byte_of(rank, step, i);
    }
    CHILD_OK(mesh_all_gather(mesh, mine, bytes, all, err));
    size_t wrong = all[world * bytes];
    for (size_t i = 0; i < world * bytes; i++) {
        wrong += all[i] != byte_of((int)(i / bytes), step, i % bytes);
    }
    free(all);
    CHILD_TRUE(wrong == 0, "seed %llu: %zu of %zu bytes are wrong", (unsigned long long)p->seed,
               wrong, world * bytes);
    return 0;
}

static int one_barrier(const struct property *p, int rank, struct mesh *mesh, uint64_t step)
{
    (void)p;
    (void)step;
    CHILD_OK(mesh_barrier(mesh, err));
    return 0;
}

/* Sums come as often as they matter. */
static int (*const kinds[])(const struct property *p, int rank, struct mesh *mesh,
                            uint64_t step) = {
    one_sum, one_sum, one_sum, one_step, one_of_doubles, one_broadcast, one_gather, one_barrier};

static int do_rounds(int rank, void *arg)
{
    const struct property *p = arg;
    struct mesh_config cfg = comm_case_config(p->c, rank, p->floats);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int failed = 0;
    for (uint64_t step = 1; step <= ROUNDS && !failed; step++) {
        comm_noise(rank, p->seed * ROUNDS + step);
        failed = kinds[draw(p, 10, step, MS_ARRAY_SIZE(kinds))](p, rank, mesh, step);
    }
    mesh_destroy(mesh);
    return failed;
}

/* ---- ranks as threads
 * ------------------------------------------------------------------------------ */

struct rank_thread {
    pthread_t thread;
    struct property *property;
    int rank, failed;
};

static void *rank_main(void *arg)
{
    struct rank_thread *t = arg;
    t->failed = do_rounds(t->rank, t->property);
    return NULL;
}

static int run_in_threads(struct property *p)
{
    struct rank_thread threads[WORLD_MAX];
    int failed = 0;
    for (int r = 0; r < p->c->ranks.world; r++) {
        threads[r] = (struct rank_thread){.property = p, .rank = r};
        ck_assert_int_eq(pthread_create(&threads[r].thread, NULL, rank_main, &threads[r]), 0);
    }
    for (int r = 0; r < p->c->ranks.world; r++) {
        ck_assert_int_eq(pthread_join(threads[r].thread, NULL), 0);
        failed += threads[r].failed != 0;
    }
    return failed;
}

/* ---- cases
 * ----------------------------------------------------------------------------------------- */

/* Any host a rank, or rank after rank in blocks, as a scheduler places them. */
static void draw_hosts(struct property *p)
{
    int world = p->c->ranks.world;
    uint64_t n_hosts = 1 + draw(p, 11, 0, (uint64_t)world);
    int in_blocks = (int)draw(p, 12, 0, 2);
    uint64_t host = 0;
    for (int r = 0; r < world; r++) {
        host = !in_blocks ? draw(p, 13, (uint64_t)r, n_hosts)
                          : host + (r > 0 && draw(p, 13, (uint64_t)r, (uint64_t)world) < n_hosts);
        snprintf(p->c->hosts[r], sizeof(p->c->hosts[r]), "host%d", (int)host);
    }
}

START_TEST(collectives_of_random_worlds_are_those_of_the_model)
{
    struct property p = {.seed = (uint64_t)_i};
    int world = 1 + (int)draw(&p, 14, 0, WORLD_MAX);
    int has_tls = draw(&p, 15, 0, 4) == 0;
    p.floats = _i % 18 == 5 ? LARGE : FLOATS;
    p.c = comm_case_open(has_tls ? MODE_MIXED_TLS : MODE_MIXED, world);
    draw_hosts(&p);

    int failed = _i % 2 == 0 ? ranks_run(&p.c->ranks, do_rounds, &p) : run_in_threads(&p);

    ck_assert_msg(failed == 0, "seed %d, world %d: %d ranks failed", _i, world, failed);
    comm_case_close(p.c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_property");
    TCase *tc = tcase_create("property");
    tcase_add_loop_test(tc, collectives_of_random_worlds_are_those_of_the_model, 0, CASES);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
