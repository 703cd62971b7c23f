/* test_train_memory.c - a job is judged by what memory there is: all of it, none, or nobody knows
 */
#include "libworker/train/memory.h"
#include "tests/unit/train_case.h"

static uint64_t memory;

uint64_t __wrap_memory_available(void);

uint64_t __wrap_memory_available(void)
{
    return memory;
}

static int prepare(uint64_t bytes, struct ms_err *err)
{
    static struct job job;
    struct train_info info;
    memory = bytes;
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    int rc = train_prepare(train, &info, err);
    train_destroy(train);
    return rc;
}

START_TEST(where_nothing_is_left_a_job_is_refused)
{
    ck_ms_fails(prepare(0, err), MS_E_FULL, "0 B are free; no batch size fits");
    ck_ms_fails(prepare(9, err), MS_E_FULL, "9 B are free; no batch size fits");
}
END_TEST

START_TEST(where_nobody_knows_a_job_is_tried)
{
    ck_ms_ok(prepare(MEMORY_UNKNOWN, err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_memory");
    TCase *tc = tcase_create("train_memory");
    tcase_add_test(tc, where_nothing_is_left_a_job_is_refused);
    tcase_add_test(tc, where_nobody_knows_a_job_is_tried);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
