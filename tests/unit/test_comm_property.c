/* test_comm_property.c - every collective, over random worlds, groups, hosts and sizes, against a
 * plain model
 *
 * A case is a number: world, who sits on which host, the groups, and the collectives that all ranks
 * then do follow from it. First all ranks do some together; then each does others in two groups at
 * the same time, each on a thread of its own. Half of the cases have ranks that are processes, half
 * ranks that are threads of this one, which share OpenSSL and what the library may keep to itself.
 */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum {
    CASES = 36,
    ROUNDS = 6,            /* collectives of a case in each group */
    FLOATS = 1 << 19,      /* of an exchange buffer of all ranks ... */
    FEWER = 1 << 18,       /* ... of a smaller group ... */
    LARGE = (9 << 20) / 2, /* ... and of a few: more than the 16 MiB that go at a time */
    WORLD_MAX = 8,
    BUCKETS = 3,
};

struct property {
    struct comm_case *c;
    uint64_t seed;
    size_t floats;
};

/* A rank within a group. */
struct seat {
    const struct property *p;
    struct group *group;
    uint64_t salt; /* differs from group to group, not from rank to rank */
    size_t floats;
    int n, members[WORLD_MAX];
    int rank; /* in the mesh, as `rank` in everything below */
    int failed;
};

/* Number i of the group's stream for a purpose, below n. The same on all its ranks. */
static uint64_t draw_of(uint64_t seed, uint64_t purpose, uint64_t i, uint64_t n)
{
    return ms_rng_below(ms_rng_stream(seed, purpose, 77), i, n);
}

static uint64_t draw(const struct seat *seat, uint64_t purpose, uint64_t i, uint64_t n)
{
    return draw_of(seat->p->seed + (seat->salt << 32), purpose, i, n);
}

/* What a member contributes as element i. */
static float value(const struct seat *seat, int member, uint64_t step, size_t i)
{
    return comm_value(member, step + seat->salt * 32, i);
}

/* T(lo, hi) of element i over the group's ranks, from the definition. */
static float serial_tree(const struct seat *seat, uint64_t step, int lo, int hi, size_t i)
{
    if (hi - lo == 1) {
        return value(seat, seat->members[lo], step, i);
    }
    int mid = lo + (hi - lo + 1) / 2;
    return serial_tree(seat, step, lo, mid, i) + serial_tree(seat, step, mid, hi, i);
}

static double serial_tree_f64(const double *v, int lo, int hi)
{
    int mid = lo + (hi - lo + 1) / 2;
    return hi - lo == 1 ? v[lo] : serial_tree_f64(v, lo, mid) + serial_tree_f64(v, mid, hi);
}

/* Nothing, one, odd, and one more or less than where an algorithm, a slice, a chunk or a block
 * ends. */
static size_t draw_count(const struct seat *seat, uint64_t round)
{
    size_t n = (size_t)seat->n;
    const size_t borders[] = {
        1,
        16 * n,
        ALLREDUCE_FLAT_MAX / sizeof(float) / n,
        MESH_SMALL_MAX / sizeof(float),
        64 << 10,
        16 * n * 1024,
        n * (64 << 10),
        2 * n * (64 << 10),
    };
    size_t border = borders[draw(seat, 1, round, MS_ARRAY_SIZE(borders))];
    size_t count = 0;
    switch (draw(seat, 2, round, 3)) {
    case 0:
        count = border - 1 + (size_t)draw(seat, 3, round, 3);
        break;
    case 1:
        count = (size_t)draw(seat, 4, round, 2 * border) | 1;
        break;
    default:
        count = seat->floats - (size_t)draw(seat, 5, round, 100);
    }
    return count <= seat->floats ? count : seat->floats;
}

static struct slice draw_range(const struct seat *seat, uint64_t step)
{
    size_t count = draw_count(seat, step);
    size_t begin = (size_t)draw(seat, 6, step, seat->floats - count + 1);
    return (struct slice){.begin = begin, .count = count};
}

static void fill(const struct seat *seat, uint64_t step, size_t begin, size_t count)
{
    float *data = group_exchange(seat->group);
    for (size_t i = begin; i < begin + count; i++) {
        data[i] = value(seat, seat->rank, step, i);
    }
}

/* Elements `from` to `to` of a result, each stride-th from phase on, against the model. */
static int check_elements(const struct seat *seat, uint64_t step, const float *exchange,
                          struct slice part, size_t stride, size_t phase)
{
    int rank = seat->rank;
    size_t near = 2048; /* all of the begin and of the end */
    for (size_t k = 0; k < part.count; k++) {
        size_t i = part.begin + k;
        if (k < near || part.count - k <= near || (k / 16) % stride == phase) {
            float want = serial_tree(seat, step, 0, seat->n, i);
            CHILD_TRUE(memcmp(&want, &exchange[i], sizeof(want)) == 0,
                       "seed %llu: element %zu of %zu from %zu: %a instead of %a",
                       (unsigned long long)seat->p->seed, k, part.count, part.begin,
                       (double)exchange[i], (double)want);
        }
    }
    return 0;
}

/* This rank's share of the elements against the model; that all have the same is seen by a gather.
 */
static int check_sum(const struct seat *seat, uint64_t step, struct slice range)
{
    int rank = seat->rank;
    const float *exchange = group_exchange(seat->group);
    uint64_t hash = 0;
    uint64_t hashes[WORLD_MAX];
    for (size_t i = range.begin; i < range.begin + range.count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, &exchange[i], sizeof(bits));
        hash = (hash ^ bits) * 0x100000001B3U;
    }
    int wrong = check_elements(seat, step, exchange, range, (size_t)seat->n,
                               (size_t)group_rank(seat->group));
    CHILD_OK(group_all_gather(seat->group, &hash, sizeof(hash), hashes, err));
    for (int r = 0; r < seat->n; r++) {
        CHILD_TRUE(hashes[r] == hash, "seed %llu: rank %d has another sum of %zu from %zu",
                   (unsigned long long)seat->p->seed, seat->members[r], range.count, range.begin);
    }
    return wrong;
}

static int one_sum(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    struct slice range = draw_range(seat, step);
    const void *result = NULL;
    CHILD_OK(group_step_begin(seat->group, step, err));
    fill(seat, step, range.begin, range.count);
    CHILD_OK(group_all_reduce_sum(seat->group, range.begin, range.count, &result, err));
    CHILD_TRUE(result == (float *)group_exchange(seat->group) + range.begin,
               "the sum lies elsewhere");
    return check_sum(seat, step, range);
}

/* The two halves of a sum, with what the first leaves in the own slice. */
static int two_halves(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    struct slice range = draw_range(seat, step);
    const float *exchange = group_exchange(seat->group);
    struct slice own = slice_of(range.begin, range.count, group_rank(seat->group), seat->n);
    CHILD_OK(group_step_begin(seat->group, step, err));
    fill(seat, step, range.begin, range.count);
    CHILD_OK(group_reduce_scatter_sum(seat->group, range.begin, range.count, err));
    if (check_elements(seat, step, exchange, own, 4, 0) != 0) {
        return 1;
    }
    CHILD_OK(group_all_gather_slices(seat->group, range.begin, range.count, err));
    return check_sum(seat, step, range);
}

/* A step as a trainer has it: buckets side by side, summed while the next is filled. */
static int one_step(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    struct reducer_bucket buckets[BUCKETS];
    const void *results[BUCKETS];
    struct reducer *reducer = NULL;
    size_t begin = 0;
    for (int i = 0; i < BUCKETS; i++) {
        size_t left = seat->floats - begin;
        size_t count = draw_count(seat, step * 8 + (uint64_t)i);
        buckets[i] = (struct reducer_bucket){.begin = begin, .count = count < left ? count : left};
        begin += buckets[i].count;
    }
    CHILD_OK(reducer_create(seat->group, buckets, BUCKETS, &reducer, err));
    CHILD_OK(reducer_begin(reducer, step, err));
    for (int i = 0; i < BUCKETS; i++) {
        fill(seat, step, buckets[i].begin, buckets[i].count);
        reducer_post(reducer, i);
    }
    CHILD_OK(reducer_wait(reducer, results, err));
    reducer_destroy(reducer);
    for (int i = 0; i < BUCKETS; i++) {
        struct slice range = {.begin = buckets[i].begin, .count = buckets[i].count};
        if (check_sum(seat, step, range) != 0) {
            return 1;
        }
    }
    return 0;
}

static int one_of_doubles(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    double sums[1024];
    double largest[1024];
    double each[WORLD_MAX];
    size_t count = (size_t)draw(seat, 7, step, 1025);
    for (size_t i = 0; i < count; i++) {
        sums[i] = largest[i] = (double)value(seat, rank, step, i) * 1e-3;
    }
    CHILD_OK(group_all_reduce_sum_f64(seat->group, sums, count, err));
    CHILD_OK(group_all_reduce_max(seat->group, largest, count, err));
    for (size_t i = 0; i < count; i++) {
        double max = -INFINITY;
        for (int r = 0; r < seat->n; r++) {
            each[r] = (double)value(seat, seat->members[r], step, i) * 1e-3;
            max = fmax(max, each[r]);
        }
        CHILD_TRUE(sums[i] == serial_tree_f64(each, 0, seat->n), "seed %llu: sum of double %zu",
                   (unsigned long long)seat->p->seed, i);
        CHILD_TRUE(largest[i] == max, "seed %llu: maximum %zu", (unsigned long long)seat->p->seed,
                   i);
    }
    return 0;
}

/* Byte i of what a member has for another one, or for all (to -1). */
static uint8_t byte_of(const struct seat *seat, int member, int to, uint64_t step, size_t i)
{
    return (uint8_t)ms_rng_mix((step + seat->salt * 32) * 1000 + (uint64_t)member * 20 +
                               (uint64_t)(to + 1) + (i << 32));
}

static int one_broadcast(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    int root = (int)draw(seat, 8, step, (uint64_t)seat->n);
    int from = seat->members[root];
    size_t bytes = draw_count(seat, step) / 2;
    uint8_t *data = calloc(bytes + 1, 1);
    CHILD_TRUE(data != NULL, "memory");
    for (size_t i = 0; rank == from && i < bytes; i++) {
        data[i] = byte_of(seat, from, -1, step, i);
    }
    CHILD_OK(group_broadcast(seat->group, data, bytes, root, err));
    size_t wrong = data[bytes];
    for (size_t i = 0; i < bytes; i++) {
        wrong += data[i] != byte_of(seat, from, -1, step, i);
    }
    free(data);
    CHILD_TRUE(wrong == 0, "seed %llu: %zu of %zu bytes from rank %d are wrong",
               (unsigned long long)seat->p->seed, wrong, bytes, from);
    return 0;
}

/* Up to a slot and one, where it goes in one exchange, or some slots. */
static size_t draw_bytes(const struct seat *seat, uint64_t step)
{
    return draw(seat, 16, step, 2) == 0 ? MESH_SMALL_MAX - 1 + (size_t)draw(seat, 17, step, 3)
                                        : (size_t)draw(seat, 9, step, 3 * (uint64_t)MESH_SMALL_MAX);
}

static int one_gather(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    size_t n = (size_t)seat->n;
    size_t bytes = draw_bytes(seat, step);
    uint8_t *all = calloc(n * bytes + 1, 1);
    CHILD_TRUE(all != NULL, "memory");
    uint8_t *mine = all + (size_t)group_rank(seat->group) * bytes; /* in place */
    for (size_t i = 0; i < bytes; i++) {
        mine[i] = byte_of(seat, rank, -1, step, i);
    }
    CHILD_OK(group_all_gather(seat->group, mine, bytes, all, err));
    size_t wrong = all[n * bytes];
    for (size_t i = 0; i < n * bytes; i++) {
        wrong += all[i] != byte_of(seat, seat->members[i / bytes], -1, step, i % bytes);
    }
    free(all);
    CHILD_TRUE(wrong == 0, "seed %llu: %zu of %zu bytes are wrong",
               (unsigned long long)seat->p->seed, wrong, n * bytes);
    return 0;
}

static int one_trade(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    size_t n = (size_t)seat->n;
    size_t bytes = draw_bytes(seat, step);
    uint8_t *send = calloc(n * bytes + 1, 1);
    uint8_t *recv = calloc(n * bytes + 1, 1);
    CHILD_TRUE(send != NULL && recv != NULL, "memory");
    for (size_t i = 0; i < n * bytes; i++) {
        send[i] = byte_of(seat, rank, seat->members[i / bytes], step, i % bytes);
    }
    CHILD_OK(group_all_to_all(seat->group, send, recv, bytes, err));
    size_t wrong = recv[n * bytes];
    for (size_t i = 0; i < n * bytes; i++) {
        wrong += recv[i] != byte_of(seat, seat->members[i / bytes], rank, step, i % bytes);
    }
    free(send);
    free(recv);
    CHILD_TRUE(wrong == 0, "seed %llu: %zu of %zu bytes are wrong",
               (unsigned long long)seat->p->seed, wrong, n * bytes);
    return 0;
}

static int one_barrier(const struct seat *seat, uint64_t step)
{
    int rank = seat->rank;
    (void)step;
    CHILD_OK(group_barrier(seat->group, err));
    return 0;
}

/* Sums come as often as they matter. */
static int (*const kinds[])(const struct seat *seat, uint64_t step) = {
    one_sum,        one_sum,       one_sum,    two_halves, two_halves, one_step,
    one_of_doubles, one_broadcast, one_gather, one_trade,  one_barrier};

static void *do_rounds(void *arg)
{
    struct seat *seat = arg;
    for (uint64_t step = 1; step <= ROUNDS && seat->group != NULL && !seat->failed; step++) {
        comm_noise(seat->rank, (seat->p->seed + seat->salt) * ROUNDS + step);
        seat->failed = kinds[draw(seat, 10, step, MS_ARRAY_SIZE(kinds))](seat, step);
    }
    return NULL;
}

/* ---- groups
 * ---------------------------------------------------------------------------------------- */

/* Each rank is in one of as many groups as the case says, in random order, or in none. */
static int make_group(struct seat *seat, struct mesh *mesh)
{
    int rank = seat->rank;
    const struct property *p = seat->p;
    uint64_t purpose = 20 + seat->salt;
    uint64_t n_groups = 1 + draw_of(p->seed, purpose, 100, 3);
    uint64_t mine = draw_of(p->seed, purpose, (uint64_t)rank, n_groups);
    int all_in = (int)draw_of(p->seed, purpose, 101, 2);
    for (int r = 0; r < p->c->ranks.world; r++) {
        if (draw_of(p->seed, purpose, (uint64_t)r, n_groups) == mine) {
            seat->members[seat->n++] = r;
        }
    }
    seat->n = all_in || mine > 0 ? seat->n : 0;
    CHILD_OK(group_create(mesh, seat->members, seat->n, MS_F32, seat->floats, &seat->group, err));
    return 0;
}

/* Two groups at the same time. */
static int do_both(const struct property *p, int rank, struct mesh *mesh)
{
    struct seat seats[2];
    pthread_t other;
    for (uint64_t i = 0; i < 2; i++) {
        seats[i] = (struct seat){.p = p, .rank = rank, .salt = i + 1, .floats = FEWER};
        if (make_group(&seats[i], mesh) != 0) {
            return 1;
        }
    }
    CHILD_TRUE(pthread_create(&other, NULL, do_rounds, &seats[1]) == 0, "thread");
    (void)do_rounds(&seats[0]);
    CHILD_TRUE(pthread_join(other, NULL) == 0, "thread");
    if (p->seed % 2 == 0) { /* else mesh_destroy does it */
        group_destroy(seats[0].group);
    }
    return seats[0].failed || seats[1].failed;
}

static int do_case(int rank, void *arg)
{
    const struct property *p = arg;
    struct mesh_config cfg = comm_case_config(p->c, rank, p->floats);
    struct seat all = {.p = p, .rank = rank, .floats = p->floats, .n = cfg.world};
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (int r = 0; r < all.n; r++) {
        all.members[r] = r;
    }
    all.group = mesh_all(mesh);
    (void)do_rounds(&all);
    int failed = all.failed || do_both(p, rank, mesh);
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
    t->failed = do_case(t->rank, t->property);
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

/* Any host a rank, or rank after rank in blocks, as a scheduler seats them. */
static void draw_hosts(struct property *p)
{
    int world = p->c->ranks.world;
    uint64_t n_hosts = 1 + draw_of(p->seed, 11, 0, (uint64_t)world);
    int in_blocks = (int)draw_of(p->seed, 12, 0, 2);
    uint64_t host = 0;
    for (int r = 0; r < world; r++) {
        uint64_t i = (uint64_t)r;
        host = !in_blocks ? draw_of(p->seed, 13, i, n_hosts)
                          : host + (r > 0 && draw_of(p->seed, 13, i, (uint64_t)world) < n_hosts);
        snprintf(p->c->hosts[r], sizeof(p->c->hosts[r]), "host%d", (int)host);
    }
}

START_TEST(collectives_of_random_groups_are_those_of_the_model)
{
    struct property p = {.seed = (uint64_t)_i};
    int world = 1 + (int)draw_of(p.seed, 14, 0, WORLD_MAX);
    int has_tls = draw_of(p.seed, 15, 0, 4) == 0;
    p.floats = _i % 18 == 5 ? LARGE : FLOATS;
    p.c = comm_case_open(has_tls ? MODE_MIXED_TLS : MODE_MIXED, world);
    draw_hosts(&p);

    int failed = _i % 2 == 0 ? ranks_run(&p.c->ranks, do_case, &p) : run_in_threads(&p);

    ck_assert_msg(failed == 0, "seed %d, world %d: %d ranks failed", _i, world, failed);
    comm_case_close(p.c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_property");
    TCase *tc = tcase_create("property");
    tcase_add_loop_test(tc, collectives_of_random_groups_are_those_of_the_model, 0, CASES);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
