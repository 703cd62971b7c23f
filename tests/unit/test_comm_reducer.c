/* test_comm_reducer.c - buckets summed on the communication thread; ranks are threads here, so that
 * ThreadSanitizer sees both sides of every counter */
#include "tests/unit/comm_case.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WORLD = 3, BUCKETS = 6, STEPS = 40 };

static const struct reducer_bucket buckets[BUCKETS] = {{0, 10},    {10, 3000}, {3010, 70000},
                                                       {73010, 0}, {73010, 1}, {73011, 20000}};
enum { FLOATS = 93011 };

struct trainer {
    const struct comm_case *c;
    int rank;
    int n_buckets;
    int steps;
    int fail_at; /* the step in which rank 1 aborts after its second bucket, or -1 */
    struct mesh *mesh;
    int rc;
    struct ms_err err;
    pthread_t thread;
};

static void compute(struct trainer *t, uint64_t step, int b)
{
    float *exchange = mesh_exchange(t->mesh);
    for (size_t i = buckets[b].begin; i < buckets[b].begin + buckets[b].count; i++) {
        exchange[i] = (float)((i + step * 3 + (uint64_t)t->rank) % 1000);
    }
}

/* Of none there is no result. */
static int is_right(const float *result, uint64_t step, int b)
{
    if (buckets[b].count == 0) {
        return result == NULL;
    }
    for (size_t i = 0; i < buckets[b].count; i++) {
        float want = 0;
        for (uint64_t r = 0; r < WORLD; r++) {
            want += (float)((i + buckets[b].begin + step * 3 + r) % 1000);
        }
        if (result[i] != want) {
            return 0;
        }
    }
    return 1;
}

static int train(struct trainer *t, struct reducer *reducer)
{
    const void *results[BUCKETS] = {NULL};
    for (uint64_t step = 1; step <= (uint64_t)t->steps; step++) {
        int rc = reducer_begin(reducer, step, &t->err);
        for (int b = 0; b < t->n_buckets; b++) {
            comm_noise(t->rank, step * 10 + (uint64_t)b);
            if (rc == 0) {
                compute(t, step, b);
            }
            reducer_post(reducer, b);
            if ((int)step == t->fail_at && t->rank == 1 && b == 1) {
                mesh_abort(t->mesh, "told to stop");
            }
        }
        int waited = reducer_wait(reducer, results, &t->err);
        if (rc < 0 || waited < 0) {
            return waited;
        }
        for (int b = 0; b < t->n_buckets; b++) {
            if (!is_right(results[b], step, b)) {
                return ms_fail(&t->err, MS_E_FAILED, "bucket %d of step %llu is wrong", b,
                               (unsigned long long)step);
            }
        }
    }
    return 0;
}

static void *trainer_main(void *arg)
{
    struct trainer *t = arg;
    struct reducer *reducer = NULL;
    struct mesh_config cfg = comm_case_config(t->c, t->rank, FLOATS);
    t->rc = mesh_create(&cfg, &t->mesh, &t->err);
    if (t->rc == 0) {
        t->rc = reducer_create(mesh_all(t->mesh), buckets, t->n_buckets, &reducer, &t->err);
    }
    if (t->rc == 0) {
        t->rc = train(t, reducer);
    }
    reducer_destroy(reducer);
    mesh_destroy(t->mesh);
    return NULL;
}

static void run_trainers(const struct comm_case *c, struct trainer *trainers, int n_buckets,
                         int steps, int fail_at)
{
    for (int r = 0; r < WORLD; r++) {
        trainers[r] = (struct trainer){
            .c = c, .rank = r, .n_buckets = n_buckets, .steps = steps, .fail_at = fail_at};
        ck_assert_int_eq(pthread_create(&trainers[r].thread, NULL, trainer_main, &trainers[r]), 0);
    }
    for (int r = 0; r < WORLD; r++) {
        pthread_join(trainers[r].thread, NULL);
    }
}

START_TEST(buckets_are_summed_while_backward_goes_on)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct trainer trainers[WORLD];
        struct comm_case *c = comm_case_open((enum comm_mode)mode, WORLD);
        run_trainers(c, trainers, BUCKETS, STEPS, -1);
        for (int r = 0; r < WORLD; r++) {
            ck_assert_msg(trainers[r].rc == 0, "mode %d rank %d: %s", mode, r,
                          trainers[r].err.text);
        }
        comm_case_close(c);
    }
}
END_TEST

START_TEST(one_bucket_needs_no_thread)
{
    struct trainer trainers[WORLD];
    struct comm_case *c = comm_case_open(MODE_SHM, WORLD);
    run_trainers(c, trainers, 1, STEPS, -1);
    for (int r = 0; r < WORLD; r++) {
        ck_assert_msg(trainers[r].rc == 0, "rank %d: %s", r, trainers[r].err.text);
    }
    comm_case_close(c);
}
END_TEST

START_TEST(an_abort_within_a_step_ends_the_wait_of_all)
{
    static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_MIXED_TLS};
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct trainer trainers[WORLD];
        struct comm_case *c = comm_case_open(modes[m], WORLD);
        run_trainers(c, trainers, BUCKETS, 20, 7);
        ck_assert_int_eq(trainers[1].rc, MS_E_ABORTED);
        ck_assert_str_eq(trainers[1].err.text, "told to stop");
        for (int r = 0; r < WORLD; r += 2) {
            ck_assert_msg(trainers[r].rc == MS_E_CLOSED &&
                              strstr(trainers[r].err.text, "rank 1 (node w1") != NULL,
                          "mode %d rank %d: %s: %s", (int)modes[m], r, ms_code_name(trainers[r].rc),
                          trainers[r].err.text);
        }
        comm_case_close(c);
    }
}
END_TEST

/* Rank 0 alone posts: its communication thread waits for the others inside the mesh. */
START_TEST(a_step_can_be_given_up)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct mesh *meshes[2] = {NULL, NULL};
    struct reducer *reducer = NULL;
    struct mesh_config cfg = comm_case_config(c, 1, FLOATS);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (mesh_create(&cfg, &meshes[1], NULL) == 0) {
            pause();
        }
        _exit(1);
    }
    cfg = comm_case_config(c, 0, FLOATS);
    ck_ms_ok(mesh_create(&cfg, &meshes[0], err));
    ck_ms_ok(reducer_create(mesh_all(meshes[0]), buckets, BUCKETS, &reducer, err));
    ck_ms_ok(reducer_begin(reducer, 1, err));
    reducer_post(reducer, 0);

    reducer_destroy(reducer); /* must come back */

    mesh_destroy(meshes[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    comm_case_close(c);
}
END_TEST

START_TEST(a_rank_alone_has_its_own_sums)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 1);
    struct mesh *mesh = NULL;
    struct reducer *reducer = NULL;
    struct mesh_config cfg = comm_case_config(c, 0, FLOATS);
    const void *results[BUCKETS];
    ck_ms_ok(mesh_create(&cfg, &mesh, err));
    ck_ms_ok(reducer_create(mesh_all(mesh), buckets, BUCKETS, &reducer, err));
    for (uint64_t step = 1; step < 4; step++) {
        ck_ms_ok(reducer_begin(reducer, step, err));
        for (int b = 0; b < BUCKETS; b++) {
            ((float *)mesh_exchange(mesh))[buckets[b].begin] = (float)(step + (uint64_t)b);
            reducer_post(reducer, b);
        }
        ck_ms_ok(reducer_wait(reducer, results, err));
        for (int b = 0; b < BUCKETS; b++) {
            if (buckets[b].count == 0) {
                ck_assert_ptr_null(results[b]);
                continue;
            }
            ck_assert(results[b] == (float *)mesh_exchange(mesh) + buckets[b].begin);
            ck_assert(((const float *)results[b])[0] == (float)(step + (uint64_t)b));
        }
    }
    reducer_destroy(reducer);
    mesh_destroy(mesh);
    comm_case_close(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_reducer");
    TCase *tc = tcase_create("reducer");
    tcase_add_test(tc, buckets_are_summed_while_backward_goes_on);
    tcase_add_test(tc, one_bucket_needs_no_thread);
    tcase_add_test(tc, an_abort_within_a_step_ends_the_wait_of_all);
    tcase_add_test(tc, a_step_can_be_given_up);
    tcase_add_test(tc, a_rank_alone_has_its_own_sums);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
