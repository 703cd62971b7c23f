/* test_nonlinear.c - the regression samples are those of the reference */
#include "libworker/data/data.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

START_TEST(rows_follow_the_formula)
{
    const struct data_spec spec = {.kind = DATA_NONLINEAR};
    struct data_source *source = NULL;
    ck_ms_ok(data_open(&spec, &source, err));
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, DATA_NONLINEAR_ROWS);
    ck_assert_int_eq(info->channels, 2);
    ck_assert_int_eq(info->height * info->width, 1);
    ck_assert_int_eq(info->classes, 0);
    ck_assert_int_eq(info->target_width, 1);

    for (int64_t i = 0; i < info->rows; i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, i, &record, err));
        const float *features = record.values;
        double x = 2 * ms_rng_unit(7, (uint64_t)i) - 1;
        double y = 2 * ms_rng_unit(8, (uint64_t)i) - 1;
        double noise = 0.03 * (2 * ms_rng_unit(9, (uint64_t)i) - 1);
        ck_assert_float_eq(features[0], (float)(x * x));
        ck_assert_float_eq(features[1], (float)(y * y * y));
        ck_assert_float_eq(record.targets[0], (float)(2 * x * x + 3 * y * y * y + 5 + noise));
        ck_assert_int_eq(record.label, -1);
    }
    data_close(source);
}
END_TEST

/* The loss of step 0 with all weights 0.02 is data alone: nonlinear_1.json begins with it. */
START_TEST(the_first_loss_is_that_of_the_reference)
{
    const struct data_spec spec = {.kind = DATA_NONLINEAR};
    struct data_source *source = NULL;
    double loss = 0;
    ck_ms_ok(data_open(&spec, &source, err));
    for (int64_t i = 0; i < 16; i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, i, &record, err));
        const float *f = record.values;
        loss += pow(0.02 * f[0] + 0.02 * f[1] + 0.02 - record.targets[0], 2) / 16;
    }
    ck_assert_double_eq_tol(loss, 40.155354133, 1e-5);
    data_close(source);
}
END_TEST

START_TEST(test_rows_are_others_and_samples_sets_their_number)
{
    const struct data_spec train = {.kind = DATA_NONLINEAR, .samples = 7};
    const struct data_spec test = {.kind = DATA_NONLINEAR, .samples = 7, .usage = DATA_TEST};
    struct data_source *a = NULL;
    struct data_source *b = NULL;
    ck_ms_ok(data_open(&train, &a, err));
    ck_ms_ok(data_open(&test, &b, err));
    ck_assert_int_eq(data_get_info(a)->rows, 7);
    for (int64_t i = 0; i < 7; i++) {
        struct data_record x;
        struct data_record y;
        ck_ms_ok(data_read(a, i, &x, err));
        ck_ms_ok(data_read(b, i, &y, err));
        ck_assert_float_ne(*(const float *)x.values, *(const float *)y.values);
    }
    data_close(a);
    data_close(b);
}
END_TEST

START_TEST(a_row_outside_is_refused)
{
    const struct data_spec spec = {.kind = DATA_NONLINEAR, .samples = 7};
    struct data_source *source = NULL;
    struct data_record record;
    ck_ms_ok(data_open(&spec, &source, err));
    ck_ms_fails(data_read(source, 7, &record, err), MS_E_INVALID, "record 7");
    ck_ms_fails(data_read(source, -1, &record, err), MS_E_INVALID, "record -1");
    data_close(source);
    data_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nonlinear");
    TCase *tc = tcase_create("nonlinear");
    tcase_add_test(tc, rows_follow_the_formula);
    tcase_add_test(tc, the_first_loss_is_that_of_the_reference);
    tcase_add_test(tc, test_rows_are_others_and_samples_sets_their_number);
    tcase_add_test(tc, a_row_outside_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
