/* test_transform.c - crop, flip, resize, rescale, normalize: geometry, numbers, randomness */
#include "libworker/data/data.h"
#include "libworker/data/transform_box.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { PIXELS_MAX = 3 * 256 * 256 };

static float out[PIXELS_MAX];
static float scratch[4 * PIXELS_MAX];

static struct image image_of(enum ms_dtype dtype, const void *values, int64_t channels,
                             int64_t height, int64_t width)
{
    return (struct image){dtype, values, channels, height, width};
}

static int check_of(const struct transform *list, int n, int64_t channels, int64_t *height,
                    int64_t *width, struct ms_err *err)
{
    return transform_check(list, n, &channels, height, width, err);
}

static void apply_to(const struct transform *list, int n, const struct image *image, int64_t row)
{
    ck_assert_uint_le(transform_scratch(list, n, image->channels, image->height, image->width),
                      sizeof(scratch));
    for (size_t i = 0; i < MS_ARRAY_SIZE(out); i++) {
        out[i] = -12345; /* whatever is not written shows */
    }
    transform_apply(list, n, image, 1, 0, row, scratch, out);
}

static void apply(const struct transform *list, int n, const float *src, int64_t channels,
                  int64_t height, int64_t width, int64_t row)
{
    const struct image image = image_of(MS_F32, src, channels, height, width);
    apply_to(list, n, &image, row);
}

START_TEST(no_transform_is_a_copy)
{
    const float src[4] = {1, 2, 3, 4};
    apply(NULL, 0, src, 1, 2, 2, 0);
    ck_assert_mem_eq(out, src, sizeof(src));
}
END_TEST

START_TEST(bilinear_has_half_pixel_centres)
{
    /* 2 -> 4: centres at -0.25, 0.25, 0.75, 1.25 of the source, clamped at the borders */
    const float src[2] = {10, 20};
    const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = 1, .width = 4};

    apply(&resize, 1, src, 1, 1, 2, 0);

    const float want[4] = {10, 12.5F, 17.5F, 20};
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq_tol(out[i], want[i], 1e-5F);
    }
}
END_TEST

/* The definition, one output at a time, in double. */
static double bilinear_at(const float *src, int64_t in_h, int64_t in_w, int64_t out_h,
                          int64_t out_w, int64_t y, int64_t x)
{
    double sy = fmax(((double)y + 0.5) * (double)in_h / (double)out_h - 0.5, 0);
    double sx = fmax(((double)x + 0.5) * (double)in_w / (double)out_w - 0.5, 0);
    int64_t y0 = (int64_t)sy;
    int64_t x0 = (int64_t)sx;
    int64_t y1 = y0 + 1 < in_h ? y0 + 1 : y0;
    int64_t x1 = x0 + 1 < in_w ? x0 + 1 : x0;
    double fy = sy - (double)y0;
    double fx = sx - (double)x0;
    return (1 - fy) * ((1 - fx) * src[y0 * in_w + x0] + fx * src[y0 * in_w + x1]) +
           fy * ((1 - fx) * src[y1 * in_w + x0] + fx * src[y1 * in_w + x1]);
}

static const int64_t sizes[][4] = {{32, 32, 224, 224}, {32, 32, 17, 45}, {28, 28, 32, 32},
                                   {7, 5, 3, 11},      {1, 1, 4, 4},     {9, 9, 9, 9},
                                   {5, 6, 1, 1}};

START_TEST(resize_equals_its_definition)
{
    const int64_t *s = sizes[_i];
    float src[32 * 32];
    for (int i = 0; i < 32 * 32; i++) {
        src[i] = (float)((i * 7919) % 256);
    }
    const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = s[2], .width = s[3]};

    apply(&resize, 1, src, 1, s[0], s[1], 0);

    for (int64_t y = 0; y < s[2]; y++) {
        for (int64_t x = 0; x < s[3]; x++) {
            ck_assert_float_eq_tol(out[y * s[3] + x],
                                   (float)bilinear_at(src, s[0], s[1], s[2], s[3], y, x), 1e-3F);
        }
    }
    ck_assert_float_eq(out[s[2] * s[3]], -12345);
}
END_TEST

START_TEST(nearest_takes_the_floor)
{
    const int64_t *s = sizes[_i];
    float src[32 * 32];
    for (int i = 0; i < 32 * 32; i++) {
        src[i] = (float)i;
    }
    const struct transform resize = {.kind = TRANSFORM_RESIZE,
                                     .height = s[2],
                                     .width = s[3],
                                     .interpolation = INTERPOLATION_NEAREST};

    apply(&resize, 1, src, 1, s[0], s[1], 0);

    for (int64_t y = 0; y < s[2]; y++) {
        for (int64_t x = 0; x < s[3]; x++) {
            ck_assert_float_eq(out[y * s[3] + x], src[y * s[0] / s[2] * s[1] + x * s[1] / s[3]]);
        }
    }
}
END_TEST

/* Image 0 of data_batch_1.bin, as the reference README gives it: resize_cifar.json. */
START_TEST(the_first_cifar_image_resizes_as_the_reference)
{
    static const struct {
        int y, x;
        float rgb[3];
    } want[] = {{0, 0, {59, 62, 63}},
                {3, 3, {59, 62, 63}},
                {4, 4, {50.5714F, 53.6327F, 54.2449F}},
                {10, 100, {109.5714F, 70.5714F, 33.2857F}},
                {111, 112, {248.3878F, 239.4694F, 221.2245F}},
                {200, 17, {187.7143F, 149.8571F, 24.2857F}},
                {223, 223, {123, 92, 72}}};
    static const double mean[3] = {141.205078, 105.099609, 64.037109};
    if (test_shared() == NULL) {
        test_skip_note("the_first_cifar_image_resizes_as_the_reference");
        return;
    }
    struct data_spec spec = {.kind = DATA_CIFAR10};
    snprintf(spec.path, sizeof(spec.path), "%s/data/cifar-10-batches-bin", test_shared());
    struct data_source *source = NULL;
    struct data_record record;
    ck_ms_ok(data_open(&spec, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    const struct image image = image_of(MS_U8, record.values, 3, 32, 32);
    const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = 224, .width = 224};

    apply_to(&resize, 1, &image, 0);

    ck_assert_int_eq(record.label, 6);
    for (size_t i = 0; i < MS_ARRAY_SIZE(want); i++) {
        for (int c = 0; c < 3; c++) {
            ck_assert_float_eq_tol(out[(c * 224 + want[i].y) * 224 + want[i].x], want[i].rgb[c],
                                   1e-3F);
        }
    }
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int i = 0; i < 224 * 224; i++) {
            sum += out[c * 224 * 224 + i];
        }
        ck_assert_double_eq_tol(sum / (224 * 224), mean[c], 1e-3);
    }
    data_close(source);
}
END_TEST

START_TEST(rescale_and_normalize_are_per_channel)
{
    const float src[4] = {0, 255, 51, 102}; /* two channels of two pixels */
    const struct transform list[] = {
        {.kind = TRANSFORM_RESCALE, .scale = 1.0 / 255, .shift = 0.5},
        {.kind = TRANSFORM_NORMALIZE, .n_channels = 2, .mean = {0.1, 0.2}, .std = {0.5, 0.25}}};

    apply(list, 2, src, 2, 1, 2, 0);

    for (int i = 0; i < 4; i++) {
        double mean = i < 2 ? 0.1 : 0.2;
        double std = i < 2 ? 0.5 : 0.25;
        ck_assert_float_eq_tol(out[i], (float)((src[i] / 255 + 0.5 - mean) / std), 1e-5F);
    }
}
END_TEST

START_TEST(what_goes_before_an_enlarging_resize_gives_the_same)
{
    float src[3 * 8 * 8];
    for (int i = 0; i < 3 * 8 * 8; i++) {
        src[i] = (float)((i * 37) % 256);
    }
    const struct transform after[] = {{.kind = TRANSFORM_RESIZE, .height = 20, .width = 20},
                                      {.kind = TRANSFORM_RESCALE, .scale = 1.0 / 255},
                                      {.kind = TRANSFORM_NORMALIZE,
                                       .n_channels = 3,
                                       .mean = {0.4, 0.5, 0.6},
                                       .std = {0.2, 0.3, 1}}};
    float plain[3 * 20 * 20];
    apply(after, 1, src, 3, 8, 8, 0);
    memcpy(plain, out, sizeof(plain));

    apply(after, 3, src, 3, 8, 8, 0);

    for (int i = 0; i < 3 * 20 * 20; i++) {
        int c = i / 400;
        double want = ((double)plain[i] / 255 - after[2].mean[c]) / after[2].std[c];
        ck_assert_float_eq_tol(out[i], (float)want, 1e-5F);
    }
}
END_TEST

START_TEST(a_shrinking_resize_with_normalize_is_exact_too)
{
    const float src[4] = {0, 10, 20, 30};
    const struct transform list[] = {
        {.kind = TRANSFORM_RESCALE, .scale = 2},
        {.kind = TRANSFORM_RESIZE, .height = 1, .width = 1},
        {.kind = TRANSFORM_RESCALE, .scale = 1, .shift = 1},
    };
    apply(list, 3, src, 1, 2, 2, 0);
    ck_assert_float_eq_tol(out[0], 31, 1e-5F); /* the middle of the four, doubled, plus one */
}
END_TEST

/* Where in the padded image a crop of a numbered image lies: from its pixels. */
static int matches_at(const struct transform *t, int64_t side, int64_t y0, int64_t x0)
{
    for (int64_t y = 0; y < t->height; y++) {
        for (int64_t x = 0; x < t->width; x++) {
            int64_t sy = y + y0 - t->pad_top;
            int64_t sx = x + x0 - t->pad_left;
            int is_inside = sy >= 0 && sx >= 0 && sy < side && sx < side;
            float want = is_inside ? (float)(1 + sy * side + sx) : 0;
            if (out[y * t->width + x] != want) {
                return 0;
            }
        }
    }
    return 1;
}

START_TEST(random_crop_reaches_every_offset_and_no_other)
{
    enum { SIDE = 5 };
    const struct transform crop = {.kind = TRANSFORM_RANDOM_CROP,
                                   .height = 4,
                                   .width = 3,
                                   .pad_left = 1,
                                   .pad_top = 2,
                                   .pad_right = 0,
                                   .pad_bottom = 1};
    float src[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        src[i] = (float)(i + 1);
    }
    int seen[5][4] = {{0}}; /* padded 8 x 6: offsets 0..4, 0..3 */

    for (int row = 0; row < 2000; row++) {
        apply(&crop, 1, src, 1, SIDE, SIDE, row);
        int found = 0;
        for (int y0 = 0; y0 < 5 && !found; y0++) {
            for (int x0 = 0; x0 < 4 && !found; x0++) {
                found = matches_at(&crop, SIDE, y0, x0);
                seen[y0][x0] += found;
            }
        }
        ck_assert_msg(found, "row %d is no crop of the image", row);
    }

    for (int y0 = 0; y0 < 5; y0++) {
        for (int x0 = 0; x0 < 4; x0++) { /* 100 expected, standard deviation 10 */
            ck_assert_int_gt(seen[y0][x0], 50);
            ck_assert_int_lt(seen[y0][x0], 150);
        }
    }
}
END_TEST

START_TEST(padding_may_be_wider_than_the_crop)
{
    const float src[1] = {7};
    const struct transform crop = {.kind = TRANSFORM_RANDOM_CROP,
                                   .height = 1,
                                   .width = 1,
                                   .pad_left = 3,
                                   .pad_top = 3,
                                   .pad_right = 3,
                                   .pad_bottom = 3};
    int zero = 0;
    int seven = 0;
    for (int row = 0; row < 1000; row++) {
        apply(&crop, 1, src, 1, 1, 1, row);
        zero += out[0] == 0;
        seven += out[0] == 7;
    }
    ck_assert_int_eq(zero + seven, 1000);
    ck_assert_int_gt(seven, 5); /* about 1000 / 49 */
    ck_assert_int_lt(seven, 50);
}
END_TEST

START_TEST(flip_mirrors_with_its_probability)
{
    const float src[3] = {1, 2, 3};
    struct transform flip = {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 0.5};
    int mirrored = 0;
    for (int row = 0; row < 1000; row++) {
        apply(&flip, 1, src, 1, 1, 3, row);
        ck_assert_float_eq(out[1], 2);
        ck_assert_float_eq(out[0] + out[2], 4);
        mirrored += out[0] == 3;
    }
    ck_assert_int_gt(mirrored, 400);
    ck_assert_int_lt(mirrored, 600);

    flip.probability = 0;
    apply(&flip, 1, src, 1, 1, 3, 0);
    ck_assert_float_eq(out[0], 1);
    flip.probability = 1;
    apply(&flip, 1, src, 1, 1, 3, 0);
    ck_assert_float_eq(out[0], 3);
}
END_TEST

START_TEST(randomness_is_a_function_of_seed_epoch_and_row)
{
    float src[64];
    float first[64];
    for (int i = 0; i < 64; i++) {
        src[i] = (float)i;
    }
    const struct transform list[] = {
        {.kind = TRANSFORM_RANDOM_CROP,
         .height = 8,
         .width = 8,
         .pad_left = 4,
         .pad_top = 4,
         .pad_right = 4,
         .pad_bottom = 4},
        {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 0.5}};
    const struct image image = image_of(MS_F32, src, 1, 8, 8);
    int differ[3] = {0, 0, 0};
    for (int64_t row = 0; row < 50; row++) {
        transform_apply(list, 2, &image, 1, 0, row, scratch, first);
        transform_apply(list, 2, &image, 1, 0, row, scratch, out);
        ck_assert_mem_eq(first, out, sizeof(first));
        transform_apply(list, 2, &image, 2, 0, row, scratch, out);
        differ[0] += memcmp(first, out, sizeof(first)) != 0;
        transform_apply(list, 2, &image, 1, 1, row, scratch, out);
        differ[1] += memcmp(first, out, sizeof(first)) != 0;
        transform_apply(list, 2, &image, 1, 0, row + 50, scratch, out);
        differ[2] += memcmp(first, out, sizeof(first)) != 0;
    }
    for (int i = 0; i < 3; i++) { /* 162 outcomes: hardly ever the same */
        ck_assert_int_gt(differ[i], 40);
    }
}
END_TEST

START_TEST(the_source_image_stays_as_it_is)
{
    float src[4] = {1, 2, 3, 4};
    const float before[4] = {1, 2, 3, 4};
    const struct transform list[] = {
        {.kind = TRANSFORM_RESCALE, .scale = 3},
        {.kind = TRANSFORM_RESIZE, .height = 9, .width = 9},
        {.kind = TRANSFORM_RESCALE, .scale = 5},
    };
    apply(list, 3, src, 1, 2, 2, 0);
    ck_assert_mem_eq(src, before, sizeof(src));
}
END_TEST

START_TEST(check_gives_the_final_shape_or_a_reason)
{
    struct transform list[2] = {
        {.kind = TRANSFORM_RANDOM_CROP, .height = 20, .width = 24},
        {.kind = TRANSFORM_RESIZE, .height = 40, .width = 50},
    };
    int64_t height = 32;
    int64_t width = 32;
    ck_ms_ok(check_of(list, 1, 3, &height, &width, err));
    ck_assert_int_eq(height, 20);
    ck_assert_int_eq(width, 24);
    ck_ms_ok(check_of(list, 2, 3, &height, &width, err));
    ck_assert_int_eq(height, 40);
    ck_assert_int_eq(width, 50);

    height = width = 16;
    ck_ms_fails(check_of(list, 2, 3, &height, &width, err), MS_E_INVALID,
                "random_crop: size [20, 24] is larger than the padded image, 16x16");
    ck_assert_int_eq(height, 16);
    list[0].pad_left = 49;
    ck_ms_fails(check_of(list, 2, 3, &height, &width, err), MS_E_INVALID, "padding [49, 0");
    const struct transform normalize = {.kind = TRANSFORM_NORMALIZE, .n_channels = 3};
    ck_ms_fails(check_of(&normalize, 1, 1, &height, &width, err), MS_E_INVALID,
                "mean and std have 3 numbers, the images have 1 channels");
}
END_TEST

/* ---- any list, over bytes and over floats, has the bits of the plain model ---- */

enum { SIDE_MAX = 24, MODEL_MAX = 3 * SIDE_MAX * SIDE_MAX };

struct model { /* everything a float, one pixel at a time */
    float values[MODEL_MAX];
    int64_t channels, height, width;
};

static float model_at(const struct model *m, int64_t c, int64_t y, int64_t x)
{
    int is_inside = y >= 0 && x >= 0 && y < m->height && x < m->width;
    return is_inside ? m->values[(c * m->height + y) * m->width + x] : 0;
}

static float model_blend(const struct model *m, int64_t c, double sy, double sx)
{
    const int64_t y = (int64_t)fmax(sy, 0);
    const int64_t x = (int64_t)fmax(sx, 0);
    const int64_t y1 = y + 1 < m->height ? y + 1 : y;
    const int64_t x1 = x + 1 < m->width ? x + 1 : x;
    const float fy = (float)(fmax(sy, 0) - (double)y);
    const float fx = (float)(fmax(sx, 0) - (double)x);
    const float upper = model_at(m, c, y, x) + fx * (model_at(m, c, y, x1) - model_at(m, c, y, x));
    const float lower =
        model_at(m, c, y1, x) + fx * (model_at(m, c, y1, x1) - model_at(m, c, y1, x));
    return upper + fy * (lower - upper);
}

static void model_resize(struct model *m, const struct transform *t)
{
    static struct model to;
    to.channels = m->channels;
    to.height = t->height;
    to.width = t->width;
    for (int64_t i = 0; i < to.channels * to.height * to.width; i++) {
        const int64_t c = i / (to.height * to.width);
        const int64_t y = i / to.width % to.height;
        const int64_t x = i % to.width;
        const double high = (double)m->height / (double)to.height;
        const double wide = (double)m->width / (double)to.width;
        to.values[i] =
            t->interpolation == INTERPOLATION_NEAREST
                ? model_at(m, c, y * m->height / to.height, x * m->width / to.width)
                : model_blend(m, c, ((double)y + 0.5) * high - 0.5, ((double)x + 0.5) * wide - 0.5);
    }
    *m = to;
}

/* y0, x0: of the first pixel; step -1: from right to left. */
static void model_move(struct model *m, int64_t height, int64_t width, int64_t y0, int64_t x0,
                       int64_t step)
{
    static struct model to;
    to.channels = m->channels;
    to.height = height;
    to.width = width;
    for (int64_t i = 0; i < to.channels * height * width; i++) {
        to.values[i] =
            model_at(m, i / (height * width), y0 + i / width % height, x0 + step * (i % width));
    }
    *m = to;
}

static int model_is_affine(const struct transform *t)
{
    return t->kind == TRANSFORM_RESCALE || t->kind == TRANSFORM_NORMALIZE;
}

/* A run of rescale and normalize is one multiplication and one addition. Returns its length. */
static int model_scale(struct model *m, const struct transform *list, int n)
{
    int run = 0;
    for (; run < n && model_is_affine(&list[run]); run++) {
    }
    for (int64_t c = 0; run > 0 && c < m->channels; c++) {
        double a = 1;
        double b = 0;
        for (int i = 0; i < run; i++) {
            const struct transform *t = &list[i];
            int is_rescale = t->kind == TRANSFORM_RESCALE;
            a = is_rescale ? a * t->scale : a / t->std[c];
            b = is_rescale ? b * t->scale + t->shift : (b - t->mean[c]) / t->std[c];
        }
        for (int64_t i = 0; i < m->height * m->width; i++) {
            float *at = &m->values[c * m->height * m->width + i];
            *at = *at * (float)a + (float)b;
        }
    }
    return run;
}

static void model_apply(struct model *m, const struct transform *list, int n, int64_t row)
{
    const uint64_t stream = ms_rng_stream(1, 0, (uint64_t)row);
    uint64_t drawn = 0;
    for (int i = 0; i < n; i++) {
        const struct transform *t = &list[i];
        if (model_is_affine(t)) {
            i += model_scale(m, t, n - i) - 1;
        } else if (t->kind == TRANSFORM_RANDOM_HORIZONTAL_FLIP) {
            if (ms_rng_unit(stream, drawn++) < t->probability) {
                model_move(m, m->height, m->width, 0, m->width - 1, -1);
            }
        } else if (t->kind == TRANSFORM_RANDOM_CROP) {
            int64_t wide = m->width + t->pad_left + t->pad_right - t->width + 1;
            int64_t high = m->height + t->pad_top + t->pad_bottom - t->height + 1;
            int64_t x0 = (int64_t)ms_rng_below(stream, drawn++, (uint64_t)wide) - t->pad_left;
            int64_t y0 = (int64_t)ms_rng_below(stream, drawn++, (uint64_t)high) - t->pad_top;
            model_move(m, t->height, t->width, y0, x0, 1);
        } else { /* what follows an enlarging one goes before it */
            int grows = t->height * t->width > m->height * m->width;
            int before = grows ? model_scale(m, t + 1, n - i - 1) : 0;
            model_resize(m, t);
            i += before;
        }
    }
}

static uint64_t drawn; /* numbers of the cases so far */

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)ms_rng_below(77, drawn++, (uint64_t)(high - low + 1));
}

static struct transform draw_transform(int64_t channels, int64_t height, int64_t width)
{
    struct transform t = {.kind = (enum transform_kind)draw(0, TRANSFORM_NORMALIZE),
                          .height = draw(1, SIDE_MAX),
                          .width = draw(1, SIDE_MAX),
                          .pad_left = draw(0, 2),
                          .pad_top = draw(0, 2),
                          .pad_right = draw(0, 2),
                          .pad_bottom = draw(0, 2),
                          .probability = (double)draw(0, 2) / 2,
                          .interpolation = (enum interpolation)draw(0, 1),
                          .scale = (double)draw(1, 300) / 255,
                          .shift = (double)draw(-9, 9) / 7,
                          .n_channels = (int)channels};
    if (t.kind == TRANSFORM_RANDOM_CROP) {
        int64_t high = height + t.pad_top + t.pad_bottom;
        int64_t wide = width + t.pad_left + t.pad_right;
        t.height = draw(1, high < SIDE_MAX ? high : SIDE_MAX);
        t.width = draw(1, wide < SIDE_MAX ? wide : SIDE_MAX);
    }
    for (int c = 0; c < MS_IMAGE_CHANNEL_MAX; c++) {
        t.mean[c] = (double)draw(-5, 5) / 11;
        t.std[c] = (double)draw(1, 9) / 13;
    }
    return t;
}

START_TEST(any_list_has_the_bits_of_the_plain_model)
{
    static struct model model;
    static uint8_t bytes[MODEL_MAX];
    static float floats[MODEL_MAX];
    for (int64_t round = 0; round < 3000; round++) {
        const int64_t channels = draw(1, 3);
        int64_t height = draw(1, SIDE_MAX);
        int64_t width = draw(1, SIDE_MAX);
        const struct image from = image_of(MS_U8, bytes, channels, height, width);
        const struct image same = image_of(MS_F32, floats, channels, height, width);
        struct transform list[6];
        int64_t after = channels;
        const int n = (int)draw(0, 6);
        model = (struct model){.channels = channels, .height = height, .width = width};
        for (int64_t i = 0; i < channels * height * width; i++) {
            bytes[i] = (uint8_t)draw(0, 255);
            floats[i] = (float)bytes[i];
            model.values[i] = (float)bytes[i];
        }
        for (int i = 0; i < n; i++) {
            list[i] = draw_transform(channels, height, width);
            ck_ms_ok(transform_check(&list[i], 1, &after, &height, &width, err));
        }

        model_apply(&model, list, n, round);

        const size_t size = (size_t)(channels * height * width) * sizeof(float);
        ck_assert_int_eq(model.height * model.width, height * width);
        apply_to(list, n, &from, round);
        ck_assert_msg(memcmp(out, model.values, size) == 0, "round %d: bytes", (int)round);
        ck_assert_float_eq(out[size / sizeof(float)], -12345);
        apply_to(list, n, &same, round);
        ck_assert_msg(memcmp(out, model.values, size) == 0, "round %d: floats", (int)round);
    }
}
END_TEST

/* ---- boxes: which ones, test_transform_box.c says ---- */

START_TEST(a_random_resized_crop_is_a_crop_and_a_resize)
{
    enum { H = 11, W = 13 };
    const struct transform both = {.kind = TRANSFORM_RANDOM_RESIZED_CROP,
                                   .height = 6,
                                   .width = 7,
                                   .n_area = 2,
                                   .n_ratio = 2,
                                   .area = {0.2, 0.9},
                                   .ratio = {0.5, 2}};
    uint8_t bytes[2 * H * W];
    float src[2 * H * W];
    float cut[2 * H * W];
    for (int i = 0; i < 2 * H * W; i++) {
        bytes[i] = (uint8_t)(i * 37);
        src[i] = bytes[i];
    }
    for (int row = 0; row < 20; row++) {
        struct draws draws = {ms_rng_stream(1, 0, (uint64_t)row), 0};
        const struct box box = box_resized_crop(&both, H, W, &draws);
        const struct image whole = image_of(MS_F32, src, 2, H, W);
        image_crop(&whole, box.y, box.x, box.height, box.width, cut);
        const struct image raw = image_of(MS_U8, bytes, 2, H, W);
        float from_bytes[2 * 6 * 7];
        apply_to(&both, 1, &raw, row);
        memcpy(from_bytes, out, sizeof(from_bytes));
        apply(&both, 1, src, 2, H, W, row);
        ck_assert_mem_eq(out, from_bytes, sizeof(from_bytes));
        for (int64_t i = 0; i < 2 * 6 * 7; i++) {
            const float *channel = cut + i / 42 * box.height * box.width;
            ck_assert_float_eq_tol(
                out[i], (float)bilinear_at(channel, box.height, box.width, 6, 7, i % 42 / 7, i % 7),
                1e-3F);
        }
        ck_assert_float_eq(out[2 * 6 * 7], -12345);
    }
}
END_TEST

START_TEST(erasing_makes_zeros_and_leaves_the_rest)
{
    enum { H = 9, W = 8 };
    const struct transform erasing = {.kind = TRANSFORM_RANDOM_ERASING,
                                      .probability = 1,
                                      .n_area = 2,
                                      .n_ratio = 2,
                                      .area = {0.1, 0.4},
                                      .ratio = {0.5, 2}};
    float src[2 * H * W];
    for (int i = 0; i < 2 * H * W; i++) {
        src[i] = (float)(i + 1);
    }
    struct draws draws = {ms_rng_stream(1, 0, 4), 0};
    const struct box box = box_erasing(&erasing, H, W, &draws);
    ck_assert_int_gt(box.height, 0);

    apply(&erasing, 1, src, 2, H, W, 4);

    for (int i = 0; i < 2 * H * W; i++) {
        const int y = i / W % H;
        const int x = i % W;
        const int is_inside =
            y >= box.y && y < box.y + box.height && x >= box.x && x < box.x + box.width;
        ck_assert_float_eq(out[i], is_inside ? 0 : src[i]);
    }
}
END_TEST

START_TEST(a_centre_crop_is_the_middle)
{
    float src[5 * 6];
    for (int i = 0; i < 30; i++) {
        src[i] = (float)i;
    }
    const struct transform centre = {.kind = TRANSFORM_CENTRE_CROP, .height = 3, .width = 2};
    int64_t h = 5;
    int64_t w = 6;
    ck_ms_ok(check_of(&centre, 1, 1, &h, &w, err));
    ck_assert_int_eq(h * 10 + w, 32);
    apply(&centre, 1, src, 1, 5, 6, 0);
    static const float want[] = {8, 9, 14, 15, 20, 21};
    ck_assert_mem_eq(out, want, sizeof(want));
    h = 2;
    ck_ms_fails(check_of(&centre, 1, 1, &h, &w, err), MS_E_INVALID,
                "centre_crop: size [3, 2] is larger than the image, 2x2");
}
END_TEST

START_TEST(ranges_that_fall_are_refused)
{
    struct transform t = {.kind = TRANSFORM_RANDOM_RESIZED_CROP,
                          .height = 2,
                          .width = 2,
                          .n_area = 2,
                          .n_ratio = 2,
                          .area = {0.5, 0.2},
                          .ratio = {1, 2}};
    int64_t h = 4;
    int64_t w = 4;
    ck_ms_fails(check_of(&t, 1, 1, &h, &w, err), MS_E_INVALID, "random_resized_crop.scale");
    t.area[1] = 0.7;
    t.n_ratio = 1;
    ck_ms_fails(check_of(&t, 1, 1, &h, &w, err), MS_E_INVALID, "random_resized_crop.ratio");
    t.kind = TRANSFORM_RANDOM_ERASING;
    ck_ms_fails(check_of(&t, 1, 1, &h, &w, err), MS_E_INVALID, "random_erasing.ratio");
    ck_ms_fails(check_of(&t, 1, 17, &h, &w, err), MS_E_INVALID, "17 channels");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform");
    TCase *tc = tcase_create("transform");
    tcase_add_test(tc, no_transform_is_a_copy);
    tcase_add_test(tc, bilinear_has_half_pixel_centres);
    tcase_add_loop_test(tc, resize_equals_its_definition, 0, (int)MS_ARRAY_SIZE(sizes));
    tcase_add_loop_test(tc, nearest_takes_the_floor, 0, (int)MS_ARRAY_SIZE(sizes));
    tcase_add_test(tc, the_first_cifar_image_resizes_as_the_reference);
    tcase_add_test(tc, rescale_and_normalize_are_per_channel);
    tcase_add_test(tc, what_goes_before_an_enlarging_resize_gives_the_same);
    tcase_add_test(tc, a_shrinking_resize_with_normalize_is_exact_too);
    tcase_add_test(tc, random_crop_reaches_every_offset_and_no_other);
    tcase_add_test(tc, padding_may_be_wider_than_the_crop);
    tcase_add_test(tc, flip_mirrors_with_its_probability);
    tcase_add_test(tc, randomness_is_a_function_of_seed_epoch_and_row);
    tcase_add_test(tc, the_source_image_stays_as_it_is);
    tcase_add_test(tc, check_gives_the_final_shape_or_a_reason);
    tcase_add_test(tc, any_list_has_the_bits_of_the_plain_model);
    tcase_add_test(tc, a_random_resized_crop_is_a_crop_and_a_resize);
    tcase_add_test(tc, erasing_makes_zeros_and_leaves_the_rest);
    tcase_add_test(tc, a_centre_crop_is_the_middle);
    tcase_add_test(tc, ranges_that_fall_are_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
