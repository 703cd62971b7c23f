/* test_infer_rounds.c - batches that are computed side by side come in the order of the data */
#include "libworker/infer/rounds.h"
#include "tests/test.h"

#include <pthread.h>

enum { MEMBERS = 3, BATCH = 2, ROWS = 17, COLUMNS = 2 };

static struct rounds *rounds;
static int64_t seen;
static int fails_at; /* a sample; -1: none */

/* Row `sample` holds its number, and twice that; its label is three times it. */
static int take(void *arg, const struct rounds_row *row, struct ms_err *err)
{
    (void)arg;
    ck_assert_int_eq(row->sample, seen);
    ck_assert(row->values[0] == (float)seen && row->values[1] == (float)(2 * seen));
    ck_assert_int_eq(row->labels[0], 3 * seen);
    seen++;
    return row->sample == fails_at ? ms_fail(err, MS_E_IO, "the disk is full") : MS_OK;
}

static int run(int member)
{
    const int64_t mine = (ROWS - member + MEMBERS - 1) / MEMBERS;
    int rc = MS_OK;
    for (int64_t at = 0; rc == MS_OK && at < mine; at += BATCH) {
        float values[BATCH * COLUMNS];
        int32_t labels[BATCH];
        const int64_t rows = mine - at < BATCH ? mine - at : BATCH;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t sample = (at + i) * MEMBERS + member;
            values[i * COLUMNS] = (float)sample;
            values[i * COLUMNS + 1] = (float)(2 * sample);
            labels[i] = (int32_t)(3 * sample);
        }
        const struct batch batch = {.rows = rows,
                                    .labels = {.dtype = MS_I32, .count = BATCH, .values = labels}};
        const struct plan_evaluated made = {.predictions = values, .columns = COLUMNS};
        rc = rounds_put(rounds, member, &batch, &made, NULL);
    }
    rounds_end(rounds, member);
    return rc;
}

static void *run_thread(void *arg)
{
    return run(*(int *)arg) == MS_OK ? NULL : arg;
}

/* What member 0 came to, and how many of the others were given up. */
static int run_all(int *ret_given_up)
{
    static int numbers[MEMBERS] = {0, 1, 2};
    pthread_t threads[MEMBERS];
    seen = 0;
    ck_ms_ok(rounds_create(MEMBERS, BATCH, 0, COLUMNS, take, NULL, &rounds, err));
    for (int i = 1; i < MEMBERS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_thread, &numbers[i]), 0);
    }
    int rc = run(0);
    if (rc < 0) {
        rounds_stop(rounds);
    }
    *ret_given_up = 0;
    for (int i = 1; i < MEMBERS; i++) {
        void *is_given_up = NULL;
        pthread_join(threads[i], &is_given_up);
        *ret_given_up += is_given_up != NULL;
    }
    rounds_destroy(rounds);
    return rc;
}

START_TEST(rows_come_in_the_order_of_the_data)
{
    int given_up = 0;
    fails_at = -1;
    ck_assert_int_eq(run_all(&given_up), MS_OK);
    ck_assert_int_eq(seen, ROWS);
    ck_assert_int_eq(given_up, 0);
}
END_TEST

START_TEST(who_fails_stops_those_that_wait)
{
    int given_up = 0;
    fails_at = 0;
    ck_assert_int_eq(run_all(&given_up), MS_E_IO);
    ck_assert_int_eq(seen, 1);
    ck_assert_int_eq(given_up, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer_rounds");
    TCase *tc = test_case_create("infer_rounds");
    tcase_add_test(tc, rows_come_in_the_order_of_the_data);
    tcase_add_test(tc, who_fails_stops_those_that_wait);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
