/* test_transform_colour.c - colours against torchvision's, value by value; what is drawn, and where
 * it may stand in a list */
#include "libworker/data/transform_colour.h"
#include "proto/macros.h"
#include "proto/rng.h"
#include "tests/test.h"
#include "tests/unit/colour_oracle.h"

#include <math.h>

START_TEST(each_step_is_torchvision_s)
{
    float values[ORACLE_VALUES];
    memcpy(values, oracle_image, sizeof(values));
    colour_apply(oracle[_i].step, oracle[_i].factor, values, 3, ORACLE_PLANE);
    for (int i = 0; i < ORACLE_VALUES; i++) {
        ck_assert_float_eq_tol(values[i], oracle[_i].want[i], 2e-3F);
    }
}
END_TEST

START_TEST(grey_is_torchvision_s)
{
    float grey[3 * ORACLE_PLANE];
    colour_grey(oracle_image, 3, ORACLE_PLANE, 3, grey);
    for (int i = 0; i < 3 * ORACLE_PLANE; i++) {
        ck_assert_float_eq_tol(grey[i], oracle_grey[i % ORACLE_PLANE], 1e-3F);
    }
}
END_TEST

START_TEST(one_channel_has_brightness_and_contrast_alone)
{
    float values[ORACLE_PLANE];
    memcpy(values, oracle_image, sizeof(values));
    colour_apply(COLOUR_SATURATION, 0.2, values, 1, ORACLE_PLANE);
    colour_apply(COLOUR_HUE, 0.2, values, 1, ORACLE_PLANE);
    ck_assert_mem_eq(values, oracle_image, sizeof(values));
    colour_apply(COLOUR_CONTRAST, 0.4, values, 1, ORACLE_PLANE);
    for (int i = 0; i < ORACLE_PLANE; i++) {
        ck_assert_float_eq_tol(values[i], oracle_one[i], 1e-3F);
    }
}
END_TEST

/* Whatever is drawn, values stay in their range, and a hue changes neither the largest nor the
 * smallest value of a pixel. */
START_TEST(values_stay_in_their_range)
{
    const struct transform all = {.kind = TRANSFORM_COLOUR_JITTER,
                                  .brightness = 3,
                                  .contrast = 3,
                                  .saturation = 3,
                                  .hue = 0.5};
    for (uint64_t round = 0; round < 500; round++) {
        float values[ORACLE_VALUES];
        struct draws draws = {ms_rng_stream(1, 2, round), 0};
        memcpy(values, oracle_image, sizeof(values));
        colour_jitter(&all, &draws, values, 3, ORACLE_PLANE);
        ck_assert_uint_eq(draws.next, 3 + 4);
        for (int i = 0; i < ORACLE_VALUES; i++) {
            ck_assert(values[i] >= 0 && values[i] <= 255);
        }
        memcpy(values, oracle_image, sizeof(values));
        colour_apply(COLOUR_HUE, (double)round / 500 - 0.5, values, 3, ORACLE_PLANE);
        for (int i = 0; i < ORACLE_PLANE; i++) {
            const float *was = oracle_image + i;
            const float *is = values + i;
            ck_assert_float_eq_tol(fmaxf(is[0], fmaxf(is[ORACLE_PLANE], is[2 * ORACLE_PLANE])),
                                   fmaxf(was[0], fmaxf(was[ORACLE_PLANE], was[2 * ORACLE_PLANE])),
                                   1e-3F);
        }
    }
}
END_TEST

/* Means over many images: factors lie evenly around 1, and each order of two steps comes. */
/* Numbers that are no colours, as a program may deliver: their range overflows. */
START_TEST(values_without_a_hue_stay_what_they_are)
{
    static const float pixels[][3] = {{3e38F, -3e38F, 0}, {-3e38F, 0, 3e38F}, {0, 3e38F, -3e38F}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(pixels); i++) {
        float values[3];
        memcpy(values, pixels[i], sizeof(values));
        colour_apply(COLOUR_HUE, 0.25, values, 3, 1);
        ck_assert_mem_eq(values, pixels[i], sizeof(values));
    }
}
END_TEST

START_TEST(factors_are_drawn_evenly)
{
    enum { N = 20000 };
    const struct transform bright = {.kind = TRANSFORM_COLOUR_JITTER, .brightness = 0.4};
    const struct transform wide = {.kind = TRANSFORM_COLOUR_JITTER, .brightness = 1.5};
    double sum[2] = {0, 0};
    double least = 2;
    double most = 0;
    for (uint64_t round = 0; round < N; round++) {
        float value[2] = {100, 100};
        struct draws draws[2] = {{ms_rng_stream(1, 0, round), 0}, {ms_rng_stream(1, 0, round), 0}};
        colour_jitter(&bright, &draws[0], &value[0], 1, 1);
        colour_jitter(&wide, &draws[1], &value[1], 1, 1);
        least = fmin(least, (double)value[0] / 100);
        most = fmax(most, (double)value[0] / 100);
        sum[0] += (double)value[0] / 100;
        sum[1] += (double)value[1] / 100;
    }
    ck_assert_double_eq_tol(sum[0] / N, 1, 0.01);
    ck_assert_double_eq_tol(least, 0.6, 0.001);
    ck_assert_double_eq_tol(most, 1.4, 0.001);
    ck_assert_double_eq_tol(sum[1] / N, 1.25, 0.02); /* from 0 to 2.5 */
}
END_TEST

/* In a list: the same bits from bytes and floats, between moves and an affine, by seed, epoch and
 * record alone. */
START_TEST(it_is_a_part_of_a_list)
{
    const struct transform list[] = {
        {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 1},
        {.kind = TRANSFORM_COLOUR_JITTER,
         .brightness = 0.3,
         .contrast = 0.3,
         .saturation = 0.3,
         .hue = 0.1},
        {.kind = TRANSFORM_TO_GREY, .channels = 1},
        {.kind = TRANSFORM_RESCALE, .scale = 0.5, .shift = 1},
    };
    uint8_t bytes[ORACLE_VALUES];
    float want[ORACLE_VALUES];
    float grey[ORACLE_PLANE];
    float out[2][ORACLE_VALUES];
    static float scratch[1024];
    int64_t shape[3] = {3, 4, 5};
    ck_ms_ok(transform_check(list, 4, &shape[0], &shape[1], &shape[2], err));
    ck_assert_int_eq(shape[0], 1);
    ck_assert_uint_le(transform_scratch(list, 4, 3, 4, 5), sizeof(scratch));
    for (int i = 0; i < ORACLE_VALUES; i++) {
        bytes[i] = (uint8_t)oracle_image[i];
    }
    const struct image image[] = {{MS_U8, bytes, 3, 4, 5}, {MS_F32, oracle_image, 3, 4, 5}};
    for (int64_t row = 0; row < 50; row++) {
        struct draws draws = {ms_rng_stream(7, 3, (uint64_t)row), 1}; /* the flip drew one */
        image_flip(&image[1], want);
        colour_jitter(&list[1], &draws, want, 3, ORACLE_PLANE);
        colour_grey(want, 3, ORACLE_PLANE, 1, grey);
        for (int k = 0; k < 2; k++) {
            out[k][ORACLE_PLANE] = -1;
            transform_apply(list, 4, &image[k], 7, 3, row, scratch, out[k]);
            for (int i = 0; i < ORACLE_PLANE; i++) {
                ck_assert_float_eq(out[k][i], grey[i] * 0.5F + 1);
            }
            ck_assert_float_eq(out[k][ORACLE_PLANE], -1);
        }
    }
}
END_TEST

static const struct {
    struct transform list[2];
    int64_t channels;
    const char *why;
} refused[] = {
    {{{.kind = TRANSFORM_COLOUR_JITTER}, {.kind = TRANSFORM_RESCALE}},
     2,
     "colour_jitter: images have 2"},
    {{{.kind = TRANSFORM_TO_GREY, .channels = 1}, {.kind = TRANSFORM_RESCALE}},
     4,
     "to_grey: images have 4"},
    {{{.kind = TRANSFORM_TO_GREY, .channels = 2}, {.kind = TRANSFORM_RESCALE}},
     3,
     "to_grey.channels: 2"},
    {{{.kind = TRANSFORM_RESCALE}, {.kind = TRANSFORM_COLOUR_JITTER}},
     3,
     "colour_jitter stands behind rescale"},
    {{{.kind = TRANSFORM_TO_GREY, .channels = 1}, {.kind = TRANSFORM_NORMALIZE, .n_channels = 3}},
     3,
     "the images have 1 channels"},
};

START_TEST(what_cannot_apply_is_refused)
{
    int64_t shape[3] = {refused[_i].channels, 4, 5};
    ck_ms_fails(transform_check(refused[_i].list, 2, &shape[0], &shape[1], &shape[2], err),
                MS_E_INVALID, refused[_i].why);
}
END_TEST

START_TEST(an_evaluation_leaves_the_jitter_out)
{
    const struct transform jitter = {.kind = TRANSFORM_COLOUR_JITTER};
    const struct transform grey = {.kind = TRANSFORM_TO_GREY, .channels = 1};
    ck_assert(transform_is_random(&jitter));
    ck_assert(!transform_is_random(&grey));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform_colour");
    TCase *tc = test_case_create("transform_colour");
    tcase_add_loop_test(tc, each_step_is_torchvision_s, 0, (int)MS_ARRAY_SIZE(oracle));
    tcase_add_test(tc, grey_is_torchvision_s);
    tcase_add_test(tc, one_channel_has_brightness_and_contrast_alone);
    tcase_add_test(tc, values_stay_in_their_range);
    tcase_add_test(tc, values_without_a_hue_stay_what_they_are);
    tcase_add_test(tc, factors_are_drawn_evenly);
    tcase_add_test(tc, it_is_a_part_of_a_list);
    tcase_add_loop_test(tc, what_cannot_apply_is_refused, 0, (int)MS_ARRAY_SIZE(refused));
    tcase_add_test(tc, an_evaluation_leaves_the_jitter_out);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
