/* test_train_memory.c - a job is judged by what memory there is: all of it, none, or nobody knows
 */
#include "libworker/host/memory.h"
#include "tests/unit/train_case.h"

static uint64_t memory;

uint64_t __wrap_memory_available(void);

uint64_t __wrap_memory_available(void)
{
    return memory;
}

static struct train_info info;
static int is_plan_given;

static int prepare_batch(uint64_t bytes, int64_t batch, struct ms_err *err)
{
    static const char *const larger[] = {"network=cifar_small", "dataset={kind: shapes}",
                                         "loss=softmax_cross_entropy"};
    static struct job job;
    memory = bytes;
    train_case_job(&job, larger, batch > 0 ? MS_ARRAY_SIZE(larger) : 0);
    job.batch_size = batch > 0 ? batch : job.batch_size;
    struct train_config cfg = train_case_config(&job, "");
    cfg.is_plan_given = is_plan_given;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    int rc = train_prepare(train, &info, err);
    train_destroy(train);
    return rc;
}

static int prepare(uint64_t bytes, struct ms_err *err)
{
    return prepare_batch(bytes, 0, err);
}

START_TEST(where_nothing_is_left_a_job_is_refused)
{
    ck_ms_fails(prepare(0, err), MS_E_FULL, "0 B are free; no batch size fits");
    ck_ms_fails(prepare(9, err), MS_E_FULL, "9 B are free; no batch size fits");
}
END_TEST

/* A plan that came with the job has batches of its own. */
START_TEST(another_batch_is_advised_without_the_plan_that_was_given)
{
    ck_ms_ok(prepare_batch(MEMORY_UNKNOWN, 5000, err));
    const uint64_t bytes = info.peak_bytes / 10;

    ck_ms_fails(prepare_batch(bytes, 5000, err), MS_E_FULL, " fits");
    is_plan_given = 1;
    ck_ms_fails(prepare_batch(bytes, 5000, err), MS_E_FULL, " (without --plan) fits");
}
END_TEST

START_TEST(where_nobody_knows_a_job_is_tried)
{
    ck_ms_ok(prepare(MEMORY_UNKNOWN, err));
}
END_TEST

/* The advice is one that can be followed, however far off the job was, and gives not too little. */
START_TEST(the_batch_that_is_said_to_fit_does)
{
    static const int64_t batches[] = {128, 1000, 5000};
    static const int percent[] = {80, 60, 40, 20, 10};
    int n_told = 0;
    ck_ms_ok(prepare_batch(MEMORY_UNKNOWN, batches[_i], err));
    const uint64_t peak = info.peak_bytes;
    for (size_t i = 0; i < MS_ARRAY_SIZE(percent); i++) {
        struct ms_err why = {0, ""};
        const uint64_t bytes = peak / 100 * (uint64_t)percent[i];
        int rc = prepare_batch(bytes, batches[_i], &why);
        const char *told = strstr(why.text, "batch_size ");
        if (rc == MS_OK ||
            told == NULL) { /* with activations made again it fits, or nothing does */
            continue;
        }
        n_told++;
        const int64_t batch = strtoll(told + strlen("batch_size "), NULL, 10);
        ck_assert_int_lt(batch, batches[_i]);
        ck_ms_ok(prepare_batch(bytes, batch, err));
        ck_assert(2 * batch >= batches[_i] || prepare_batch(bytes, 2 * batch, NULL) < 0);
    }
    ck_assert_int_gt(n_told, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_memory");
    TCase *tc = tcase_create("train_memory");
    tcase_add_test(tc, where_nothing_is_left_a_job_is_refused);
    tcase_add_test(tc, another_batch_is_advised_without_the_plan_that_was_given);
    tcase_add_test(tc, where_nobody_knows_a_job_is_tried);
    tcase_add_loop_test(tc, the_batch_that_is_said_to_fit_does, 0, 3);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
