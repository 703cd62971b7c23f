/* test_pieces.c - parameters that are updated at once, and what of a bucket is exchanged */
#include "libworker/train/pieces.h"

#include "libworker/plan/spec.h"
#include "tests/test.h"

enum { STATS = 32, LINE = 16 };

static struct job job;
static struct pieces pieces;

/* Five parameters in two buckets behind the statistics: a b | c d e, of 1, 2, 3, 4 and 5 lines. */
static struct plan_spec_param params[] = {{.name = "a.bias", .offset = 0, .count = LINE},
                                          {.name = "a", .offset = LINE, .count = 2 * LINE},
                                          {.name = "c", .offset = 3 * LINE, .count = 3 * LINE},
                                          {.name = "c.bias", .offset = 6 * LINE, .count = 4 * LINE},
                                          {.name = "e", .offset = 10 * LINE, .count = 5 * LINE}};
static struct plan_bucket buckets[] = {
    {0, STATS}, {STATS, 3 * LINE}, {STATS + 3 * LINE, 12 * LINE}};
static const struct plan_spec spec = {
    .n_params = 5, .params = params, .n_buckets = 3, .buckets = buckets};

static void setup(void)
{
    memset(&job, 0, sizeof(job));
}

static void teardown(void)
{
    pieces_fini(&pieces);
}

static struct job_group *add_group(const char *pattern)
{
    struct job_group *group = &job.groups[job.n_groups++];
    group->n_match = 1;
    snprintf(group->match[0], sizeof(group->match[0]), "%s", pattern);
    return group;
}

static void ck_piece(int i, int bucket, size_t begin, size_t count, const struct job_group *group)
{
    const struct piece *piece = &pieces.items[i];
    const size_t in_bucket = begin * LINE - (bucket == 2 ? 3 * LINE : 0);
    ck_assert_int_eq(piece->bucket, bucket);
    ck_assert_uint_eq(piece->begin, begin * LINE);
    ck_assert_uint_eq(piece->count, count * LINE);
    ck_assert_uint_eq(piece->in_bucket, in_bucket);
    ck_assert_ptr_eq(piece->group, group);
}

static void ck_bucket(int bucket, size_t begin, size_t count)
{
    const struct plan_bucket part = pieces_bucket(&pieces, bucket, buckets[bucket], STATS);
    ck_assert_uint_eq(part.begin, STATS + begin * LINE);
    ck_assert_uint_eq(part.count, count * LINE);
}

START_TEST(without_groups_a_piece_is_a_bucket)
{
    ck_ms_ok(pieces_create(&job, &spec, STATS, 0, &pieces, err));
    ck_assert_int_eq(pieces.n, 2);
    ck_piece(0, 1, 0, 3, NULL);
    ck_piece(1, 2, 3, 12, NULL);
    ck_bucket(1, 0, 3);
    ck_bucket(2, 3, 12);
}
END_TEST

START_TEST(a_piece_ends_where_the_group_is_another_one)
{
    const struct job_group *biases = add_group("*.bias");
    ck_ms_ok(pieces_create(&job, &spec, STATS, 0, &pieces, err));
    ck_assert_int_eq(pieces.n, 5);
    ck_piece(0, 1, 0, 1, biases);
    ck_piece(1, 1, 1, 2, NULL);
    ck_piece(3, 2, 6, 4, biases);
    ck_bucket(2, 3, 12);

    struct piece run;
    ck_assert_int_eq(pieces_run(&pieces, 0, &run), 2); /* all of the bucket */
    ck_assert_uint_eq(run.count, 3 * LINE);
    ck_assert_int_eq(pieces_run(&pieces, 2, &run), 5);
    ck_assert_uint_eq(run.begin, 3 * LINE);
    ck_assert_uint_eq(run.count, 12 * LINE);
}
END_TEST

START_TEST(what_is_frozen_at_the_ends_of_a_bucket_is_not_exchanged)
{
    add_group("c")->frozen = 1;
    add_group("e")->frozen = 1;
    ck_ms_ok(pieces_create(&job, &spec, STATS, 0, &pieces, err));
    ck_assert_int_eq(pieces.n, 2);
    ck_bucket(1, 0, 3);
    ck_bucket(2, 6, 4);
    ck_assert_uint_eq(pieces.items[1].begin, 6 * LINE);
    ck_assert_uint_eq(pieces.items[1].in_bucket, 0);
}
END_TEST

START_TEST(what_is_frozen_in_its_middle_is_and_no_sum_goes_over_it)
{
    add_group("c.bias")->frozen = 1;
    ck_ms_ok(pieces_create(&job, &spec, STATS, 0, &pieces, err));
    ck_bucket(2, 3, 12);

    struct piece run;
    ck_assert_int_eq(pieces_run(&pieces, 1, &run), 2);
    ck_assert_uint_eq(run.count, 3 * LINE);
    ck_assert_int_eq(pieces_run(&pieces, 2, &run), 3);
    ck_assert_uint_eq(run.begin, 10 * LINE);
    ck_assert_uint_eq(run.in_bucket, 7 * LINE);
}
END_TEST

START_TEST(a_bucket_that_is_all_frozen_is_empty)
{
    add_group("a*")->frozen = 1;
    ck_ms_ok(pieces_create(&job, &spec, STATS, 0, &pieces, err));
    ck_assert_int_eq(pieces.n, 1);
    ck_bucket(1, 3, 0);
    ck_bucket(2, 3, 12);
}
END_TEST

START_TEST(each_parameter_may_be_a_piece_of_its_own)
{
    ck_ms_ok(pieces_create(&job, &spec, STATS, 1, &pieces, err));
    ck_assert_int_eq(pieces.n, 5);
    ck_piece(1, 1, 1, 2, NULL);
    ck_piece(4, 2, 10, 5, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pieces");
    TCase *tc = tcase_create("pieces");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, without_groups_a_piece_is_a_bucket);
    tcase_add_test(tc, a_piece_ends_where_the_group_is_another_one);
    tcase_add_test(tc, what_is_frozen_at_the_ends_of_a_bucket_is_not_exchanged);
    tcase_add_test(tc, what_is_frozen_in_its_middle_is_and_no_sum_goes_over_it);
    tcase_add_test(tc, a_bucket_that_is_all_frozen_is_empty);
    tcase_add_test(tc, each_parameter_may_be_a_piece_of_its_own);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
