/* test_judge.c - what early_stop counts, against a plain model; what a checkpoint says of it */
#include "libworker/train/checkpoint_manifest.h"
#include "libworker/train/judge.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

START_TEST(an_evaluation_counts_once)
{
    struct watch watch = {0};
    watch_count(&watch, 0, 0, 5, 1.0);
    watch_count(&watch, 0, 0, 10, 2.0);
    watch_count(&watch, 0, 0, 10, 2.0); /* made again, after a rank was lost in it */
    ck_assert_int_eq(watch.bad, 1);
    ck_assert_uint_eq(watch.step, 5);
    ck_assert_double_eq(watch.best, 1.0);
    ck_assert_uint_eq(watch.seen, 10);
}
END_TEST

START_TEST(an_equal_value_is_no_better)
{
    struct watch watch = {0};
    watch_count(&watch, 1, 0, 1, 0.5);
    watch_count(&watch, 1, 0, 2, 0.5);
    ck_assert_int_eq(watch.bad, 1);
}
END_TEST

START_TEST(what_is_no_number_is_no_better)
{
    struct watch watch = {0};
    watch_count(&watch, 0, 0, 1, (double)NAN);
    watch_count(&watch, 0, 0, 2, -(double)INFINITY);
    ck_assert_int_eq(watch.bad, 2);
    ck_assert_uint_eq(watch.step, 0);
    watch_count(&watch, 0, 0, 3, 7);
    ck_assert_int_eq(watch.bad, 0);
    ck_assert_double_eq(watch.best, 7);
}
END_TEST

/* All values are kept and gone through each time. */
START_TEST(it_counts_as_a_plain_model)
{
    enum { N = 60 };
    for (uint64_t turn = 0; turn < 200; turn++) {
        const int more = (int)(turn % 2);
        const double delta = 0.25 * (double)(turn % 3);
        struct watch watch = {0};
        double best = 0;
        int best_at = -1;
        for (int i = 0; i < N; i++) {
            const double value = 0.125 * (double)ms_rng_below(turn, (uint64_t)i, 64);
            const int is_better =
                best_at < 0 || (more ? value - best > delta : best - value > delta);
            best = is_better ? value : best;
            best_at = is_better ? i : best_at;
            watch_count(&watch, more, delta, (uint64_t)i + 1, value);
            ck_assert_double_eq(watch.best, best);
            ck_assert_uint_eq(watch.step, (uint64_t)best_at + 1);
            ck_assert_int_eq(watch.bad, i - best_at);
        }
    }
}
END_TEST

START_TEST(a_manifest_has_what_its_own_judge_counted)
{
    static struct job job;
    struct checkpoint_manifest manifest = {.step = 9};
    const struct watch counted = {9, 6, 0.5, 2};
    checkpoint_manifest_set_watch(&manifest, &job, &counted);
    ck_assert_str_eq(manifest.watch_of, "");
    job.has_early_stop = 1;
    checkpoint_manifest_set_watch(&manifest, &job, &counted);
    ck_assert_str_eq(manifest.watch_of, "loss-min");

    struct watch there = checkpoint_manifest_watch(&manifest, &job);
    ck_assert_uint_eq(there.seen, 9);
    ck_assert_int_eq(there.bad, 2);
    job.early_stop.metric = JOB_SCORE_ACCURACY;
    there = checkpoint_manifest_watch(&manifest, &job);
    ck_assert_uint_eq(there.seen, 0);
    ck_assert_int_eq(there.bad, 0);
}
END_TEST

/* Of what a file of a later judge, or of nobody, may say. */
START_TEST(a_manifest_is_read_as_it_was_written)
{
    static struct job job;
    job.has_early_stop = 1;
    job.early_stop.metric = JOB_SCORE_ACCURACY;
    const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct checkpoint_manifest written = {.step = 9,
                                          .epoch = 1,
                                          .step_in_epoch = 9,
                                          .loss = 1,
                                          .job = strdup("{}"),
                                          .plan = strdup("plan"),
                                          .name = "net",
                                          .data = "net-9.safetensors"};
    const struct watch counted[] = {{9, 6, 0.1, 2}, {0, 0, 0, 0}, {10, 6, 0.1, 2}, {9, 10, 0.1, 2}};
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256("{}", 2, digest);
    ms_sha256_hex(digest, written.job_sha256);
    memcpy(written.plan_sha256, zeros, sizeof(written.plan_sha256));
    memcpy(written.data_sum, zeros, sizeof(written.data_sum) - 1);
    for (size_t i = 0; i < MS_ARRAY_SIZE(counted); i++) {
        struct checkpoint_manifest read;
        size_t size = 0;
        checkpoint_manifest_set_watch(&written, &job, &counted[i]);
        char *text = checkpoint_manifest_format(&written, &size);
        ck_assert_ptr_nonnull(text);
        if (i < 2) {
            ck_ms_ok(checkpoint_manifest_parse(text, size, "m.json", &read, err));
            const struct watch have = checkpoint_manifest_watch(&read, &job);
            ck_assert_mem_eq(&have, &counted[i], sizeof(have));
            ck_assert_str_eq(read.watch_of, "accuracy-max");
            checkpoint_manifest_fini(&read);
        } else { /* of a step that is not there yet */
            ck_ms_fails(checkpoint_manifest_parse(text, size, "m.json", &read, err), MS_E_INVALID,
                        "early_stop is missing or wrong");
        }
        free(text);
    }
    checkpoint_manifest_fini(&written);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judge");
    TCase *tc = tcase_create("judge");
    tcase_add_test(tc, an_evaluation_counts_once);
    tcase_add_test(tc, an_equal_value_is_no_better);
    tcase_add_test(tc, what_is_no_number_is_no_better);
    tcase_add_test(tc, it_counts_as_a_plain_model);
    tcase_add_test(tc, a_manifest_has_what_its_own_judge_counted);
    tcase_add_test(tc, a_manifest_is_read_as_it_was_written);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
