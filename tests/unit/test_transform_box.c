/* test_transform_box.c - boxes that are cut and erased: torchvision's formulas, by other means */
#include "libworker/data/transform_box.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

static const struct transform crop = {
    .kind = TRANSFORM_RANDOM_RESIZED_CROP, .area = {0.08, 1}, .ratio = {0.75, 1.3333333333333333}};

static struct draws draws_of(uint64_t seed, uint64_t epoch, uint64_t row)
{
    return (struct draws){ms_rng_stream(seed, epoch, row), 0};
}

/* get_params of torchvision's RandomResizedCrop in Python with splitmix64 for its generator, of
 * 48 x 64 pixels: seed 5, epoch 2, rows 0 to 7. */
START_TEST(boxes_are_those_of_torchvisions_formula)
{
    static const struct box want[] = {
        {11, 19, 34, 26}, {6, 22, 38, 39}, {8, 26, 26, 24},  {6, 25, 37, 39},
        {1, 8, 46, 46},   {0, 5, 30, 38},  {11, 10, 33, 39}, {1, 0, 47, 62},
    };
    for (uint64_t row = 0; row < 8; row++) {
        struct draws draws = draws_of(5, 2, row);
        const struct box box = box_resized_crop(&crop, 48, 64, &draws);
        ck_assert_int_eq(box.y, want[row].y);
        ck_assert_int_eq(box.x, want[row].x);
        ck_assert_int_eq(box.height, want[row].height);
        ck_assert_int_eq(box.width, want[row].width);
    }
}
END_TEST

START_TEST(what_cannot_fit_is_cut_from_the_middle)
{
    struct transform large = crop;
    large.area[0] = 0.9;
    struct draws draws = draws_of(1, 1, 1);
    struct box box = box_resized_crop(&large, 4, 400, &draws);
    ck_assert_int_eq(box.x, 197);
    ck_assert_int_eq(box.y, 0);
    ck_assert_int_eq(box.height, 4);
    ck_assert_int_eq(box.width, 5);
    box = box_resized_crop(&large, 400, 4, &draws);
    ck_assert_int_eq(box.y, 197);
    ck_assert_int_eq(box.height, 5);
    ck_assert_int_eq(box.width, 4);
    box = box_resized_crop(&crop, 1, 1, &draws); /* a pixel is all there is */
    ck_assert_int_eq(box.height * box.width, 1);
}
END_TEST

/* Within the image, and the shares and ratios that are asked for, over all of their range. */
START_TEST(areas_and_ratios_are_drawn_from_their_range)
{
    enum { N = 4000, H = 250, W = 250 };
    double least = 1;
    double most = 0;
    double sum = 0;
    for (uint64_t row = 0; row < N; row++) {
        struct draws draws = draws_of(3, 0, row);
        const struct box box = box_resized_crop(&crop, H, W, &draws);
        const double share = (double)(box.height * box.width) / (H * W);
        const double ratio = (double)box.width / (double)box.height;
        ck_assert(box.y >= 0 && box.x >= 0);
        ck_assert(box.y + box.height <= H && box.x + box.width <= W);
        ck_assert(share > 0.075 && share <= 1);
        ck_assert(ratio > 0.73 && ratio < 1.36);
        least = fmin(least, share);
        most = fmax(most, share);
        sum += share;
    }
    ck_assert(least < 0.1 && most > 0.85);
    ck_assert(sum / N > 0.46 && sum / N < 0.5); /* 0.48 of 40,000 by Python's random */
}
END_TEST

START_TEST(as_many_are_erased_as_is_said)
{
    enum { N = 4000 };
    static const struct transform erasing = {.kind = TRANSFORM_RANDOM_ERASING,
                                             .probability = 0.25,
                                             .area = {0.02, 0.33},
                                             .ratio = {0.3, 3.3}};
    int n = 0;
    for (uint64_t row = 0; row < N; row++) {
        struct draws draws = draws_of(3, 0, row);
        const struct box box = box_erasing(&erasing, 32, 32, &draws);
        n += box.height > 0;
        ck_assert(box.y >= 0 && box.x >= 0 && box.y + box.height <= 32 && box.x + box.width <= 32);
        ck_assert(box.height < 32 && box.width < 32 && (box.height > 0) == (box.width > 0));
        ck_assert_int_le(box.height * box.width, 32 * 32 * 36 / 100);
    }
    ck_assert(n > N * 22 / 100 && n < N * 28 / 100);
}
END_TEST

/* int(round((height - size) / 2.0)) of Python. */
START_TEST(the_middle_rounds_as_python_does)
{
    static const int64_t sides[] = {4, 5, 6, 7, 8, 9, 10, 11};
    static const int64_t offsets[] = {0, 0, 1, 2, 2, 2, 3, 4};
    for (size_t i = 0; i < MS_ARRAY_SIZE(sides); i++) {
        const struct box box = box_centre(4, 4, sides[i], sides[7 - i]);
        ck_assert_int_eq(box.y, offsets[i]);
        ck_assert_int_eq(box.x, offsets[7 - i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform_box");
    TCase *tc = test_case_create("transform_box");
    tcase_add_test(tc, boxes_are_those_of_torchvisions_formula);
    tcase_add_test(tc, what_cannot_fit_is_cut_from_the_middle);
    tcase_add_test(tc, areas_and_ratios_are_drawn_from_their_range);
    tcase_add_test(tc, as_many_are_erased_as_is_said);
    tcase_add_test(tc, the_middle_rounds_as_python_does);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
