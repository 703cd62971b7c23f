/* test_callback.c - records that a function of the process makes: in the loader's order, with epoch
 * and seed, and checked */
#include "libworker/data/data.h"
#include "proto/macros.h"

#include "tests/test.h"

#include <math.h>

enum { ROWS = 11, CLASSES = 10 };

struct maker { /* what the function is to do, and how often it was called */
    int calls, says;
    int32_t label;
    float value, target;
};

/* Two values: row and epoch; the third is left to whoever cleared it. */
static int make(void *arg, struct data_callback_record *record)
{
    struct maker *maker = arg;
    float *values = record->values;
    maker->calls++;
    values[0] = (float)record->row;
    values[1] = (float)(record->epoch * 100 + record->seed);
    if (record->row == 3) {
        values[2] = maker->value;
    }
    if (record->targets != NULL) {
        record->targets[0] = maker->target;
    }
    record->label = record->row == 3 ? maker->label : (int32_t)(record->row % CLASSES);
    return record->row == 3 ? maker->says : 0;
}

static struct maker maker;
static const struct data_callback callback = {make, &maker, MS_F32};
static struct data_spec spec;
static struct data_source *source;

static void setup(void)
{
    maker = (struct maker){.label = 3};
    spec = (struct data_spec){.kind = DATA_CALLBACK,
                              .samples = ROWS,
                              .shape = {3, 1, 1, CLASSES, 0},
                              .callback = &callback};
    ck_ms_ok(data_open(&spec, &source, err));
}

static void teardown(void)
{
    data_close(source);
}

static void reopen(void)
{
    data_close(source);
    source = NULL;
    ck_ms_ok(data_open(&spec, &source, err));
}

START_TEST(records_come_in_the_order_of_the_loader_with_epoch_and_seed)
{
    const struct loader_config cfg = {
        .source = source, .batch = 3, .rank = 1, .world = 2, .shuffle = 1, .seed = 5, .epochs = 3};
    const struct data_shard shard = {
        .rows = ROWS, .rank = 1, .world = 2, .shuffle = 1, .seed = 5, .wrap = 1};
    struct loader *loader = NULL;
    struct batch batch;
    int64_t perm[ROWS];
    ck_ms_ok(loader_create(&cfg, &loader, err));
    for (int64_t i = 0; i < 6; i++) {
        ck_ms_ok(loader_next(loader, &batch, err));
        data_permute(&shard, (uint64_t)batch.epoch, perm);
        for (int64_t k = 0; k < batch.rows; k++) {
            const float *values = (const float *)batch.images.values + 3 * k;
            const int64_t row = data_shard_row(&shard, perm, i % 2 * 3 + k);
            ck_assert_float_eq(values[0], (float)row);
            ck_assert_float_eq(values[1], (float)(batch.epoch * 100 + 5));
            ck_assert_int_eq(((const int32_t *)batch.labels.values)[k], row % CLASSES);
        }
        loader_release(loader);
    }
    loader_destroy(loader);
}
END_TEST

START_TEST(what_the_function_leaves_out_is_0)
{
    struct data_record record;
    maker.value = 7;
    ck_ms_ok(data_read(source, 3, &record, err));
    ck_assert_float_eq(((const float *)record.values)[2], 7);
    ck_ms_ok(data_read(source, 4, &record, err));
    ck_assert_float_eq(((const float *)record.values)[2], 0);
}
END_TEST

START_TEST(nobody_gets_what_was_wanted_before)
{
    struct data_record record;
    ck_ms_ok(data_expect(source, 2, 9, 1, err));
    data_forget(source);
    ck_ms_ok(data_expect(source, 4, 0, 1, err));
    ck_ms_ok(data_read(source, 4, &record, err));
    ck_assert_float_eq(((const float *)record.values)[1], 1);
}
END_TEST

static const struct {
    struct maker maker;
    int has_targets;
    const char *text;
} bad[] = {
    {{.says = 7}, 0, "the program's data: record 3: the function that makes it returned 7"},
    {{.label = CLASSES}, 0, "record 3 has label 10; the program says 10 classes, 0 to 9"},
    {{.label = -1}, 0, "record 3 has label -1"},
    {{.value = NAN}, 0, "record 3: value 2 is nan, which is no finite number"},
    {{.target = INFINITY}, 1, "record 3: target 0 is inf, which is no finite number"},
};

START_TEST(a_record_that_is_none_is_named)
{
    struct data_record record;
    spec.shape.classes = bad[_i].has_targets ? 0 : CLASSES;
    spec.shape.target_width = bad[_i].has_targets;
    reopen();
    maker = bad[_i].maker;
    ck_ms_fails(data_read(source, 3, &record, err), bad[_i].maker.says ? MS_E_FAILED : MS_E_INVALID,
                bad[_i].text);
}
END_TEST

START_TEST(other_records_are_other_data)
{
    struct data_identity a;
    struct data_identity b;
    ck_ms_ok(data_identify(source, &a, err));
    ck_ms_ok(data_identify(source, &b, err));
    ck_assert(data_identity_is_same(&a, &b));
    maker.value = 1;
    ck_ms_ok(data_identify(source, &b, err));
    ck_assert(!data_identity_is_same(&a, &b));
}
END_TEST

START_TEST(a_process_without_the_function_says_whose_kind_it_is)
{
    struct data_source *none = NULL;
    struct data_spec bare = spec;
    bare.callback = NULL;
    ck_ms_fails(data_open(&bare, &none, err), MS_E_NOT_FOUND, "kind program starts a program");
}
END_TEST

START_TEST(a_shape_that_is_none_is_refused)
{
    struct data_source *none = NULL;
    struct data_spec empty = spec;
    empty.samples = 0;
    ck_ms_fails(data_open(&empty, &none, err), MS_E_INVALID, "0 records of 3x1x1");
    empty = spec;
    empty.shape.target_width = 1;
    ck_ms_fails(data_open(&empty, &none, err), MS_E_INVALID, "10 classes and 1 targets");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("callback");
    TCase *tc = tcase_create("callback");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, records_come_in_the_order_of_the_loader_with_epoch_and_seed);
    tcase_add_test(tc, what_the_function_leaves_out_is_0);
    tcase_add_test(tc, nobody_gets_what_was_wanted_before);
    tcase_add_loop_test(tc, a_record_that_is_none_is_named, 0, (int)MS_ARRAY_SIZE(bad));
    tcase_add_test(tc, other_records_are_other_data);
    tcase_add_test(tc, a_process_without_the_function_says_whose_kind_it_is);
    tcase_add_test(tc, a_shape_that_is_none_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
