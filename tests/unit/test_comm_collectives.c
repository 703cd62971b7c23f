/* test_comm_collectives.c - every collective on every transport against a serial sum, bit for bit
 */
#include "libworker/comm/group.h"
#include "libworker/kernel/kernel.h"
#include "tests/unit/comm_case.h"

#include <pthread.h>
#include <sys/mman.h>

enum { FLOATS = 300007 };

static const size_t counts[] = {0, 1, 15, 16, 17, 1000, 7850, 16384, 16385, 60003, 290000};
static const size_t begins[] = {0, 1, 16, 31, 50000};

/* The sum that every rank must have, made from all ranks' data in one place. */
static int check_sum(int rank, int world, uint64_t step, size_t begin, size_t count,
                     const float *result, float *const *all)
{
    const float *srcs[RANKS_MAX];
    for (int r = 0; r < world; r++) {
        for (size_t i = 0; i < count; i++) {
            all[r][i] = comm_value(r, step, begin + i);
        }
        srcs[r] = all[r];
    }
    kernel_sum_tree(all[world], srcs, world, count);
    CHILD_TRUE(memcmp(all[world], result, count * sizeof(float)) == 0,
               "sum of %zu floats from %zu at step %llu differs", count, begin,
               (unsigned long long)step);
    return 0;
}

static int sums_body(int rank, struct mesh *mesh, int world)
{
    float *all[RANKS_MAX + 1];
    uint64_t step = 0;
    for (int r = 0; r <= world; r++) {
        all[r] = aligned_alloc(64, (FLOATS * sizeof(float) + 63) / 64 * 64);
        CHILD_TRUE(all[r] != NULL, "memory");
    }
    for (size_t i = 0; i < FLOATS; i++) {
        CHILD_TRUE(((float *)mesh_exchange(mesh))[i] == 0.0F,
                   "the exchange buffer is not zero at %zu", i);
    }
    for (size_t c = 0; c < MS_ARRAY_SIZE(counts); c++) {
        size_t n_begins = counts[c] > 20000 ? 2 : MS_ARRAY_SIZE(begins);
        for (size_t b = 0; b < n_begins; b++) {
            size_t begin = begins[b];
            float *mine = (float *)mesh_exchange(mesh) + begin;
            const void *result = NULL;
            step++;
            comm_noise(rank, step);
            CHILD_OK(mesh_step_begin(mesh, step, err));
            for (size_t i = 0; i < counts[c]; i++) {
                mine[i] = comm_value(rank, step, begin + i);
            }
            CHILD_OK(mesh_all_reduce_sum(mesh, begin, counts[c], &result, err));
            if (check_sum(rank, world, step, begin, counts[c], result, all) != 0) {
                return 1;
            }
        }
    }
    for (int r = 0; r <= world; r++) {
        free(all[r]);
    }
    return 0;
}

static int sums(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, FLOATS);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int rc = sums_body(rank, mesh, c->ranks.world);
    mesh_destroy(mesh);
    return rc;
}

/* Small ones back to back on the same range: who is a step ahead must not spoil a slower reader. */
static int repeats(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, 4096);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (uint64_t step = 1; step <= 150; step++) {
        size_t count = 1 + (size_t)ms_rng_below(3, step, 4000);
        const void *result = NULL;
        comm_noise(rank, step);
        CHILD_OK(mesh_step_begin(mesh, step, err));
        for (size_t i = 0; i < count; i++) {
            ((float *)mesh_exchange(mesh))[i] = (float)((uint64_t)rank + step + i);
        }
        CHILD_OK(mesh_all_reduce_sum(mesh, 0, count, &result, err));
        float ranks = (float)(c->ranks.world * (c->ranks.world - 1) / 2);
        for (size_t i = 0; i < count; i++) {
            CHILD_TRUE(((const float *)result)[i] ==
                           ranks + (float)c->ranks.world * (float)(step + i),
                       "float %zu of step %llu", i, (unsigned long long)step);
        }
    }
    /* Two ranks in step may find all that they want there each time: somebody comes late until it
     * is counted that another waited for him. */
    double waited = 0;
    for (int i = 0; i < 200 && waited <= 0 && c->ranks.world > 1; i++) {
        if (rank == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
        CHILD_OK(mesh_barrier(mesh, err));
        waited = (double)mesh_take_wait_ns(mesh); /* one rank may always be the last */
        CHILD_OK(mesh_all_reduce_sum_f64(mesh, &waited, 1, err));
    }
    CHILD_TRUE(waited > 0 || c->ranks.world == 1, "nobody ever waited");
    mesh_destroy(mesh);
    return 0;
}

static int small_body(int rank, struct mesh *mesh, int world)
{
    double values[1024];
    double want[1024];
    for (size_t count = 0; count <= 1024; count = count * 3 + 1) {
        for (size_t i = 0; i < count; i++) {
            values[i] = (double)((rank * 31 + (int)i * 7) % 13) - 6.5;
            want[i] = -100.0;
            for (int r = 0; r < world; r++) {
                want[i] = fmax(want[i], (double)((r * 31 + (int)i * 7) % 13) - 6.5);
            }
        }
        CHILD_OK(mesh_all_reduce_max(mesh, values, count, err));
        CHILD_TRUE(memcmp(values, want, count * sizeof(double)) == 0, "max of %zu", count);
    }
    for (size_t i = 0; i < 1024; i++) {
        values[i] = ldexp(1.0 + rank, (int)(i % 60) * (rank % 2 == 0 ? 1 : -1));
    }
    CHILD_OK(mesh_all_reduce_sum_f64(mesh, values, 1024, err));
    /* more than go at once: each is the sum of its own place */
    enum { MANY = 2 * 1024 + 3 };
    static double many[MANY];
    for (size_t i = 0; i < MANY; i++) {
        many[i] = (double)(i * 10 + (size_t)rank);
    }
    CHILD_OK(mesh_all_reduce_sum_f64(mesh, many, MANY, err));
    for (size_t i = 0; i < MANY; i++) {
        CHILD_TRUE(many[i] == (double)((size_t)world * i * 10) + (double)(world * (world - 1) / 2),
                   "sum %zu of many is %g", i, many[i]);
    }
    uint8_t mine[sizeof(values)];
    static uint8_t all[RANKS_MAX][sizeof(values)];
    memcpy(mine, values, sizeof(values));
    CHILD_OK(mesh_all_gather(mesh, mine, sizeof(mine), all, err));
    for (int r = 0; r < world; r++) {
        CHILD_TRUE(memcmp(all[r], values, sizeof(values)) == 0, "f64 sum of rank %d differs", r);
    }
    values[0] = rank == world - 1 ? NAN : 1.0;
    CHILD_OK(mesh_all_reduce_max(mesh, values, 1, err));
    CHILD_TRUE(isnan(values[0]), "a NaN got lost");
    return 0;
}

/* T(lo, hi) in double, from the definition. */
static double serial_tree(const double *v, int lo, int hi)
{
    int mid = lo + (hi - lo + 1) / 2;
    return hi - lo == 1 ? v[lo] : serial_tree(v, lo, mid) + serial_tree(v, mid, hi);
}

static int small(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, 0);
    struct mesh *mesh = NULL;
    double each[RANKS_MAX];
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (uint64_t step = 0; step < 20; step++) {
        comm_noise(rank, step);
        CHILD_OK(mesh_barrier(mesh, err));
        for (int r = 0; r < c->ranks.world; r++) {
            each[r] = (double)comm_value(r, step, 0) * 1e-3;
        }
        double sum = each[rank];
        CHILD_OK(mesh_all_reduce_sum_f64(mesh, &sum, 1, err));
        CHILD_TRUE(sum == serial_tree(each, 0, c->ranks.world), "sum of doubles: %a", sum);
    }
    int rc = small_body(rank, mesh, c->ranks.world);
    mesh_destroy(mesh);
    return rc;
}

/* No two pieces of the ring are alike. */
static uint8_t piece_byte(size_t i, int root, size_t s)
{
    return (uint8_t)(i * 7 + (i >> 18) * 31 + (size_t)root + s);
}

static int broadcasts(int rank, void *arg)
{
    static const size_t sizes[] = {0, 1, 1000, 256 << 10, (256 << 10) + 1, 3000001};
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, 16);
    struct mesh *mesh = NULL;
    uint8_t *data = malloc(3000001 + 1);
    CHILD_TRUE(data != NULL, "memory");
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (size_t s = 0; s < MS_ARRAY_SIZE(sizes); s++) {
        for (int root = 0; root < c->ranks.world; root++) {
            comm_noise(rank, s * 10 + (size_t)root);
            for (size_t i = 0; i <= sizes[s]; i++) {
                data[i] = rank == root ? piece_byte(i, root, s) : 0xEE;
            }
            data[sizes[s]] = 0xDD;
            CHILD_OK(mesh_broadcast(mesh, data, sizes[s], root, err));
            for (size_t i = 0; i < sizes[s]; i++) {
                CHILD_TRUE(data[i] == piece_byte(i, root, s), "byte %zu of %zu from %d", i,
                           sizes[s], root);
            }
            CHILD_TRUE(data[sizes[s]] == 0xDD, "wrote behind the end");
        }
    }
    mesh_destroy(mesh);
    free(data);
    return 0;
}

static int gathers(int rank, void *arg)
{
    static const size_t sizes[] = {0, 1, 63, 4096, 64 << 10};
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, 16);
    struct mesh *mesh = NULL;
    size_t world = (size_t)c->ranks.world;
    uint8_t *mine = malloc(64 << 10);
    uint8_t *all = malloc(world * (64 << 10));
    CHILD_TRUE(mine != NULL && all != NULL, "memory");
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (size_t s = 0; s < MS_ARRAY_SIZE(sizes); s++) {
        memset(mine, rank + (int)s, sizes[s]);
        CHILD_OK(mesh_all_gather(mesh, mine, sizes[s], all, err));
        for (size_t i = 0; i < world * sizes[s]; i++) {
            CHILD_TRUE(all[i] == (uint8_t)(i / sizes[s] + s), "byte %zu of %zu", i, sizes[s]);
        }
    }
    mesh_destroy(mesh);
    free(mine);
    free(all);
    return 0;
}

enum { BARRIERS = 100 };
static pthread_barrier_t *beside; /* shared by the ranks */

static void come_late(int rank, int world, int step)
{
    for (int i = 0; i < 10 && (step + rank) % world == 0; i++) {
        sched_yield(); /* the others sleep by then */
    }
}

/* A sleeper that nobody wakes looks around every 50 ms only. Where the machine has other things to
 * do a barrier may take as long by itself: so does one of the C library then. */
static int sleepers(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, 0);
    struct mesh *mesh = NULL;
    uint64_t ours = 0;
    uint64_t theirs = 0;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (int step = 0; step < BARRIERS; step++) {
        const uint64_t start = mesh_now_ns();
        come_late(rank, c->ranks.world, step);
        CHILD_OK(mesh_barrier(mesh, err));
        const uint64_t middle = mesh_now_ns();
        come_late(rank, c->ranks.world, step);
        pthread_barrier_wait(beside);
        ours += middle - start;
        theirs += mesh_now_ns() - middle;
    }
    CHILD_TRUE((double)ours * 1e-9 < BARRIERS * 0.05 / 2 + 4e-9 * (double)theirs,
               "%d barriers took %.2f s, and those of the C library %.2f s", BARRIERS,
               (double)ours * 1e-9, (double)theirs * 1e-9);
    mesh_destroy(mesh);
    return 0;
}

START_TEST(the_last_to_arrive_wakes_the_others)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 4);
    pthread_barrierattr_t shared;
    beside = mmap(NULL, sizeof(*beside), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(beside, MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    ck_assert_int_eq(pthread_barrier_init(beside, &shared, (unsigned)c->ranks.world), 0);
    ck_assert_int_eq(ranks_run(&c->ranks, sleepers, c), 0);
    comm_case_close(c);
    munmap(beside, sizeof(*beside));
}
END_TEST

static const int worlds[] = {1, 2, 3, 5, 8, 12};

static void run_all(int (*fn)(int rank, void *arg))
{
    for (int mode = 0; mode < MODES; mode++) {
        for (size_t w = 0; w < MS_ARRAY_SIZE(worlds); w++) {
            if (worlds[w] == 12 && comm_mode_has_tls((enum comm_mode)mode)) {
                continue; /* 12 makes the tree, which MODE_TCP and MODE_MIXED have already seen */
            }
            struct comm_case *c = comm_case_open((enum comm_mode)mode, worlds[w]);
            int failed = ranks_run(&c->ranks, fn, c);
            ck_assert_msg(failed == 0, "mode %d, world %d: %d ranks failed", mode, worlds[w],
                          failed);
            comm_case_close(c);
        }
    }
}

START_TEST(sums_are_those_of_the_tree_bit_for_bit)
{
    run_all(sums);
}
END_TEST

START_TEST(small_sums_back_to_back_do_not_overtake_each_other)
{
    run_all(repeats);
}
END_TEST

START_TEST(doubles_are_combined_alike_on_all_ranks)
{
    run_all(small);
}
END_TEST

START_TEST(a_broadcast_reaches_everybody_from_any_root)
{
    run_all(broadcasts);
}
END_TEST

START_TEST(gathered_parts_come_in_rank_order)
{
    run_all(gathers);
}
END_TEST

/* More than a block, and ranks whose slices end within one. */
static int halves_rank(int rank, void *arg)
{
    enum { LONG_FLOATS = (9 << 20) + 77 };
    const struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, LONG_FLOATS);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    struct group *all = mesh_all(mesh);
    float *data = group_exchange(all);
    struct slice own = slice_of(0, LONG_FLOATS, rank, c->ranks.world);
    for (size_t i = 0; i < LONG_FLOATS; i++) {
        data[i] = (float)((i & 1023) * (size_t)(rank + 1));
    }
    CHILD_OK(group_reduce_scatter_sum(all, 0, LONG_FLOATS, err));
    for (size_t i = own.begin; i < own.begin + own.count; i++) {
        CHILD_TRUE(data[i] == (float)((i & 1023) * 10), "element %zu is %g", i, (double)data[i]);
    }
    for (size_t i = 0; i < LONG_FLOATS; i++) { /* what is beside the own slice does not matter */
        data[i] = i < own.begin || i >= own.begin + own.count ? -1.0F : data[i];
    }
    CHILD_OK(group_all_gather_slices(all, 0, LONG_FLOATS, err));
    for (size_t i = 0; i < LONG_FLOATS; i++) {
        CHILD_TRUE(data[i] == (float)((i & 1023) * 10), "element %zu is %g", i, (double)data[i]);
    }
    mesh_destroy(mesh);
    return 0;
}

START_TEST(halves_of_a_long_range_are_those_of_its_sum)
{
    static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_MIXED};
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct comm_case *c = comm_case_open(modes[m], 4);
        ck_assert_msg(ranks_run(&c->ranks, halves_rank, c) == 0, "mode %d", (int)modes[m]);
        comm_case_close(c);
    }
}
END_TEST

START_TEST(slices_cover_a_range_once_and_share_no_line)
{
    for (size_t c = 0; c < 400; c++) {
        size_t begin = (size_t)ms_rng_below(1, c, 5000);
        size_t count = (size_t)ms_rng_below(2, c, c % 2 == 0 ? 3000 : 2000000);
        int world = 1 + (int)ms_rng_below(3, c, 20);
        size_t at = begin;
        for (int r = 0; r < world; r++) {
            struct slice slice = slice_of(begin, count, r, world);
            if (slice.count > 0) {
                ck_assert_uint_eq(slice.begin, at);
                ck_assert(at == begin || at % 16 == 0);
                at += slice.count;
            }
        }
        ck_assert_uint_eq(at, begin + count);
    }
}
END_TEST

START_TEST(what_no_exchange_buffer_can_be_or_hold_is_refused)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 1);
    struct mesh_config cfg = comm_case_config(c, 0, 100);
    struct mesh *mesh = NULL;
    struct mesh *other = NULL;
    const void *result = NULL;
    double many[1] = {0};
    ck_ms_ok(mesh_create(&cfg, &mesh, err));

    struct group *group = NULL;
    cfg.exchange_dtype = MS_BF16;
    ck_ms_fails(mesh_create(&cfg, &other, err), MS_E_UNSUPPORTED,
                "an exchange buffer of bf16: sums over ranks are implemented for f32 only");
    ck_ms_fails(mesh_all_reduce_sum(mesh, 50, 51, &result, err), MS_E_INVALID, "100");
    ck_ms_fails(mesh_all_reduce_sum(mesh, SIZE_MAX, 2, &result, err), MS_E_INVALID, "100");
    ck_ms_fails(mesh_all_reduce_max(mesh, many, 1025, err), MS_E_INVALID, "1024");
    ck_ms_fails(mesh_broadcast(mesh, many, 8, 1, err), MS_E_INVALID, "rank 1");
    ck_ms_ok(mesh_barrier(mesh, err));
    const int alone[] = {0};
    ck_ms_fails(group_create(mesh, alone, 1, MS_I32, 10, &group, err), MS_E_UNSUPPORTED, "i32");

    mesh_destroy(mesh);
    comm_case_close(c);
}
END_TEST

START_TEST(the_algorithm_follows_size_and_place)
{
    struct group here = {.n_ranks = 8, .n_locals = 8};
    struct group shared = {.n_ranks = 8, .n_locals = 4, .n_remotes = 4, .sums_by_host = 1};
    struct group there = {.n_ranks = 8, .n_locals = 1, .n_remotes = 7};
    struct group many = {.n_ranks = 64, .n_locals = 1, .n_remotes = 63};
    struct group one = {.n_ranks = 1, .n_locals = 1};
    ck_assert_str_eq(allreduce_name(&one, 1 << 20), "none");
    ck_assert_str_eq(allreduce_name(&here, 1000), "flat");
    ck_assert_str_eq(allreduce_name(&here, 1 << 20), "slice");
    ck_assert_str_eq(allreduce_name(&shared, 1000), "flat");
    ck_assert_str_eq(allreduce_name(&shared, 1 << 20), "host");
    ck_assert_str_eq(allreduce_name(&there, 1000), "flat");
    ck_assert_str_eq(allreduce_name(&there, 1 << 20), "direct");
    ck_assert_str_eq(allreduce_name(&many, 1000), "tree");
    ck_assert_str_eq(allreduce_name(&many, 1 << 20), "direct");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_collectives");
    TCase *tc = tcase_create("collectives");
    tcase_add_test(tc, sums_are_those_of_the_tree_bit_for_bit);
    tcase_add_test(tc, small_sums_back_to_back_do_not_overtake_each_other);
    tcase_add_test(tc, doubles_are_combined_alike_on_all_ranks);
    tcase_add_test(tc, a_broadcast_reaches_everybody_from_any_root);
    tcase_add_test(tc, gathered_parts_come_in_rank_order);
    tcase_add_test(tc, the_last_to_arrive_wakes_the_others);
    tcase_add_test(tc, halves_of_a_long_range_are_those_of_its_sum);
    tcase_add_test(tc, slices_cover_a_range_once_and_share_no_line);
    tcase_add_test(tc, what_no_exchange_buffer_can_be_or_hold_is_refused);
    tcase_add_test(tc, the_algorithm_follows_size_and_place);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
