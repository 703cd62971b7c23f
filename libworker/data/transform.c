/* transform.c - what happens to one image: crop, flip, resize, rescale, normalize, colours
 *
 * Geometry is MindSpore's (docs/design.md, "data"), with two differences on purpose: random numbers
 * are a function of (seed, epoch, record), and a resize does not round to bytes in between. Pixels
 * stay bytes as long as they only move: what computes first makes floats of them, in the same pass.
 */
#include "libworker/data/image.h"

#include "libworker/data/data.h"
#include "libworker/data/mixup.h"
#include "libworker/data/transform_box.h"
#include "libworker/data/transform_colour.h"
#include "proto/rng.h"

#include <string.h>

/* ---- shapes ---- */

static int check_crop(const struct transform *t, int64_t *height, int64_t *width,
                      struct ms_err *err)
{
    /* MindSpore's own limit, which catches swapped arguments */
    if (t->pad_left > 3 * *width || t->pad_right > 3 * *width || t->pad_top > 3 * *height ||
        t->pad_bottom > 3 * *height) {
        return ms_fail(
            err, MS_E_INVALID,
            "random_crop: padding [%lld, %lld, %lld, %lld] (left, top, right, bottom) is "
            "more than three times the image of %lldx%lld",
            (long long)t->pad_left, (long long)t->pad_top, (long long)t->pad_right,
            (long long)t->pad_bottom, (long long)*height, (long long)*width);
    }
    int64_t padded_h = *height + t->pad_top + t->pad_bottom;
    int64_t padded_w = *width + t->pad_left + t->pad_right;
    if (t->height > padded_h || t->width > padded_w) {
        return ms_fail(err, MS_E_INVALID,
                       "random_crop: size [%lld, %lld] is larger than the padded image, %lldx%lld; "
                       "make it smaller or the padding larger",
                       (long long)t->height, (long long)t->width, (long long)padded_h,
                       (long long)padded_w);
    }
    *height = t->height;
    *width = t->width;
    return MS_OK;
}

static int check_centre(const struct transform *t, int64_t *height, int64_t *width,
                        struct ms_err *err)
{
    if (t->height > *height || t->width > *width) {
        return ms_fail(
            err, MS_E_INVALID,
            "centre_crop: size [%lld, %lld] is larger than the image, %lldx%lld; make it "
            "smaller, or put a resize before it",
            (long long)t->height, (long long)t->width, (long long)*height, (long long)*width);
    }
    *height = t->height;
    *width = t->width;
    return MS_OK;
}

static int check_range(const double range[], int n, double most, const char *what,
                       struct ms_err *err)
{
    return n == 2 && range[0] > 0 && range[0] <= range[1] && range[1] <= most
               ? MS_OK
               : ms_fail(
                     err, MS_E_INVALID,
                     "%s: give two numbers, [from, to], above 0 and at most %g, that do not fall",
                     what, most);
}

static int check_boxes(const struct transform *t, struct ms_err *err)
{
    const int is_crop = t->kind == TRANSFORM_RANDOM_RESIZED_CROP;
    int rc = check_range(t->area, t->n_area, 1,
                         is_crop ? "random_resized_crop.scale" : "random_erasing.scale", err);
    return rc < 0
               ? rc
               : check_range(t->ratio, t->n_ratio, 100,
                             is_crop ? "random_resized_crop.ratio" : "random_erasing.ratio", err);
}

int transform_is_random(const struct transform *t)
{
    return t->kind == TRANSFORM_RANDOM_CROP || t->kind == TRANSFORM_RANDOM_HORIZONTAL_FLIP ||
           t->kind == TRANSFORM_RANDOM_RESIZED_CROP || t->kind == TRANSFORM_RANDOM_ERASING ||
           t->kind == TRANSFORM_COLOUR_JITTER || t->kind == TRANSFORM_MIXUP;
}

static const char *colour_name(const struct transform *t)
{
    return t->kind == TRANSFORM_TO_GREY ? "to_grey" : "colour_jitter";
}

static int has_colours(const struct transform *t)
{
    return t->kind == TRANSFORM_TO_GREY || t->kind == TRANSFORM_COLOUR_JITTER;
}

static int check_colours(const struct transform *t, int64_t channels, struct ms_err *err)
{
    if (channels != 1 && channels != 3) {
        return ms_fail(err, MS_E_INVALID,
                       "%s: images have %lld channels; it is for 3 (red, green, blue) or 1",
                       colour_name(t), (long long)channels);
    }
    if (t->kind == TRANSFORM_TO_GREY && t->channels != 1 && t->channels != 3) {
        return ms_fail(err, MS_E_INVALID, "to_grey.channels: %lld; give 1 or 3",
                       (long long)t->channels);
    }
    return MS_OK;
}

static int check_one(const struct transform *t, int64_t *channels, int64_t *height, int64_t *width,
                     struct ms_err *err)
{
    int rc = MS_OK;
    switch (t->kind) {
    case TRANSFORM_RANDOM_CROP:
        return check_crop(t, height, width, err);
    case TRANSFORM_CENTRE_CROP:
        return check_centre(t, height, width, err);
    case TRANSFORM_RANDOM_ERASING:
        return check_boxes(t, err);
    case TRANSFORM_RANDOM_RESIZED_CROP:
    case TRANSFORM_RESIZE:
        *height = t->height;
        *width = t->width;
        return t->kind == TRANSFORM_RESIZE ? MS_OK : check_boxes(t, err);
    case TRANSFORM_NORMALIZE:
        if (t->n_channels != *channels) {
            return ms_fail(
                err, MS_E_INVALID,
                "normalize: mean and std have %d numbers, the images have %lld channels; "
                "give one a channel",
                t->n_channels, (long long)*channels);
        }
        return MS_OK;
    case TRANSFORM_COLOUR_JITTER:
        return check_colours(t, *channels, err);
    case TRANSFORM_TO_GREY:
        rc = check_colours(t, *channels, err);
        *channels = t->channels;
        return rc;
    case TRANSFORM_MIXUP:
        return t->alpha > 0 && t->alpha <= MIXUP_ALPHA_MAX
                   ? MS_OK
                   : ms_fail(err, MS_E_INVALID, "mixup.alpha: %g; give more than 0, at most %d",
                             t->alpha, MIXUP_ALPHA_MAX);
    default:
        return MS_OK;
    }
}

static int is_affine(const struct transform *t)
{
    return t->kind == TRANSFORM_RESCALE || t->kind == TRANSFORM_NORMALIZE;
}

/* What is black, white and grey is known of values from 0 to 255, and what is mixed is ready. */
static int check_place(const struct transform *list, int i, struct ms_err *err)
{
    if (i > 0 && list[i - 1].kind == TRANSFORM_MIXUP) {
        return ms_fail(err, MS_E_INVALID,
                       "mixup: samples are mixed when they are ready; put it last");
    }
    for (int k = 0; has_colours(&list[i]) && k < i; k++) {
        if (is_affine(&list[k])) {
            return ms_fail(err, MS_E_INVALID,
                           "%s stands behind %s: it is for values from 0 to 255; put it before",
                           colour_name(&list[i]),
                           list[k].kind == TRANSFORM_RESCALE ? "rescale" : "normalize");
        }
    }
    return MS_OK;
}

int transform_check(const struct transform *list, int n, int64_t *channels, int64_t *height,
                    int64_t *width, struct ms_err *err)
{
    int64_t c = *channels;
    int64_t h = *height;
    int64_t w = *width;
    if (n > 0 && c > MS_IMAGE_CHANNEL_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "transforms: records have %lld channels, images have at most %d; leave them "
                       "out",
                       (long long)c, MS_IMAGE_CHANNEL_MAX);
    }
    for (int i = 0; i < n; i++) {
        int rc = check_place(list, i, err);
        rc = rc < 0 ? rc : check_one(&list[i], &c, &h, &w, err);
        if (rc < 0) {
            return rc;
        }
        if (h < 1 || w < 1 || h > MS_IMAGE_SIDE_MAX || w > MS_IMAGE_SIDE_MAX) {
            return ms_fail(err, MS_E_INVALID,
                           "transform %d makes an image of %lldx%lld; sides are from 1 to %d", i,
                           (long long)h, (long long)w, MS_IMAGE_SIDE_MAX);
        }
    }
    *channels = c;
    *height = h;
    *width = w;
    return MS_OK;
}

/* ---- rescale and normalize: one multiply and add a channel ---- */

struct affine {
    int used;
    double a[MS_IMAGE_CHANNEL_MAX], b[MS_IMAGE_CHANNEL_MAX];
};

/* Changes values where they are. */
static int is_in_place(const struct transform *t)
{
    return is_affine(t) || t->kind == TRANSFORM_COLOUR_JITTER;
}

/* The run of affine transforms that begins at list[i]; returns how many there are. */
static int affine_collect(const struct transform *list, int n, int i, int64_t channels,
                          struct affine *ret)
{
    int first = i;
    ret->used = 0;
    for (int64_t c = 0; c < channels; c++) {
        ret->a[c] = 1;
        ret->b[c] = 0;
    }
    for (; i < n && is_affine(&list[i]); i++) {
        const struct transform *t = &list[i];
        ret->used = 1;
        for (int64_t c = 0; c < channels; c++) {
            if (t->kind == TRANSFORM_RESCALE) {
                ret->a[c] *= t->scale;
                ret->b[c] = ret->b[c] * t->scale + t->shift;
            } else {
                ret->a[c] /= t->std[c];
                ret->b[c] = (ret->b[c] - t->mean[c]) / t->std[c];
            }
        }
    }
    return i - first;
}

static void affine_apply(const struct affine *affine, float *values, int64_t channels,
                         int64_t plane)
{
    for (int64_t c = 0; affine->used && c < channels; c++) {
        const float a = (float)affine->a[c];
        const float b = (float)affine->b[c];
        float *at = values + c * plane;
        for (int64_t i = 0; i < plane; i++) {
            at[i] = at[i] * a + b;
        }
    }
}

/* The same from bytes, which become floats on the way; not used: only that. */
static void affine_from_bytes(const struct affine *affine, const uint8_t *src, int64_t channels,
                              int64_t plane, float *restrict dst)
{
    for (int64_t c = 0; c < channels; c++) {
        const float a = (float)affine->a[c]; /* 1 and 0 change no byte's value */
        const float b = (float)affine->b[c];
        for (int64_t i = c * plane; i < (c + 1) * plane; i++) {
            dst[i] = (float)src[i] * a + b;
        }
    }
}

/* ---- the list ---- */

static int64_t draw_below(struct draws *draws, int64_t n)
{
    return (int64_t)ms_rng_below(draws->stream, draws->next++, (uint64_t)n);
}

/* Zeros in the box of each channel. */
static void erase(const struct image *image, const struct box *box, void *dst)
{
    const size_t bytes = ms_dtype_bytes(image->dtype);
    memcpy(dst, image->values, image_bytes(image));
    for (int64_t c = 0; c < image->channels; c++) {
        for (int64_t y = box->y; y < box->y + box->height; y++) {
            const int64_t at = (c * image->height + y) * image->width + box->x;
            memset((char *)dst + (size_t)at * bytes, 0, (size_t)box->width * bytes);
        }
    }
}

/* A transform that moves pixels: *image is then what lies in dst. cut: room for one more image. */
static void move_pixels(const struct transform *t, struct draws *draws, float *across, void *cut,
                        struct image *image, void *dst)
{
    if (t->kind == TRANSFORM_RANDOM_ERASING) {
        const struct box box = box_erasing(t, image->height, image->width, draws);
        erase(image, &box, dst);
        image->values = dst;
        return;
    }
    if (t->kind == TRANSFORM_RANDOM_HORIZONTAL_FLIP) {
        if (ms_rng_unit(draws->stream, draws->next++) < t->probability) {
            image_flip(image, dst);
        } else {
            memcpy(dst, image->values, image_bytes(image));
        }
        image->values = dst;
        return;
    }
    if (t->kind == TRANSFORM_TO_GREY) {
        colour_grey(image->values, image->channels, image->height * image->width, t->channels, dst);
        *image = (struct image){image->dtype, dst, t->channels, image->height, image->width};
        return;
    }
    if (t->kind == TRANSFORM_RANDOM_CROP) { /* x before y, as MindSpore draws them */
        int64_t spare_w = image->width + t->pad_left + t->pad_right - t->width;
        int64_t spare_h = image->height + t->pad_top + t->pad_bottom - t->height;
        int64_t x0 = draw_below(draws, spare_w + 1) - t->pad_left;
        int64_t y0 = draw_below(draws, spare_h + 1) - t->pad_top;
        image_crop(image, y0, x0, t->height, t->width, dst);
    } else if (t->kind == TRANSFORM_CENTRE_CROP) {
        const struct box box = box_centre(t->height, t->width, image->height, image->width);
        image_crop(image, box.y, box.x, box.height, box.width, dst);
    } else if (t->kind == TRANSFORM_RANDOM_RESIZED_CROP) {
        const struct box box = box_resized_crop(t, image->height, image->width, draws);
        const struct image part = {image->dtype, cut, image->channels, box.height, box.width};
        image_crop(image, box.y, box.x, box.height, box.width, cut);
        image_resize_bilinear(&part, t->height, t->width, across, dst);
    } else if (t->interpolation == INTERPOLATION_NEAREST) {
        image_resize_nearest(image, t->height, t->width, dst);
    } else {
        image_resize_bilinear(image, t->height, t->width, across, dst);
    }
    *image = (struct image){image->dtype, dst, image->channels, t->height, t->width};
}

/* Memory of one call: of floats and of bytes two images each, which take turns, and what bilinear
 * and a cut before it need beside them. */
struct room {
    size_t image, across; /* elements */
};

static struct room room_measure(const struct transform *list, int n, int64_t channels,
                                int64_t height, int64_t width)
{
    int64_t image = channels * height * width;
    int64_t across = 0;
    for (int i = 0; i < n; i++) {
        int64_t before = height;
        (void)check_one(&list[i], &channels, &height, &width, NULL);
        image = channels * height * width > image ? channels * height * width : image;
        across = before * width > across ? before * width : across;
    }
    return (struct room){(size_t)image, (size_t)across};
}

size_t transform_scratch(const struct transform *list, int n, int64_t channels, int64_t height,
                         int64_t width)
{
    const struct room room = room_measure(list, n, channels, height, width);
    return (3 * room.image + room.across) * sizeof(float) + 2 * room.image;
}

/* The moves with which a list begins, as long as bytes can go through them; returns how many. */
static int move_bytes(const struct transform *list, int n, struct draws *draws, struct image *image,
                      uint8_t *const buffer[2])
{
    int i = 0;
    for (; i < n && !is_in_place(&list[i]); i++) {
        if (list[i].kind == TRANSFORM_TO_GREY ||
            (list[i].kind == TRANSFORM_RESIZE && list[i].interpolation != INTERPOLATION_NEAREST) ||
            list[i].kind == TRANSFORM_RANDOM_RESIZED_CROP) {
            break;
        }
        move_pixels(&list[i], draws, NULL, NULL, image, buffer[i % 2]);
    }
    return i;
}

/* Of more channels than transforms compute with none does. */
static void bytes_to_floats(const struct image *image, float *dst)
{
    const uint8_t *bytes = image->values;
    for (size_t i = 0; i < image_bytes(image); i++) {
        dst[i] = bytes[i];
    }
}

/* *image as floats in dst. Bytes take the affine transforms that begin at list[i] with them;
 * returns how many those are. */
static int make_floats(const struct transform *list, int n, int i, struct image *image, float *dst)
{
    int taken = 0;
    if (image->dtype == MS_U8 && image->channels > MS_IMAGE_CHANNEL_MAX) {
        bytes_to_floats(image, dst);
    } else if (image->dtype == MS_U8) {
        struct affine affine;
        taken = affine_collect(list, n, i, image->channels, &affine);
        affine_from_bytes(&affine, image->values, image->channels, image->height * image->width,
                          dst);
    } else { /* a copy, because what follows works in place */
        memcpy(dst, image->values, image_bytes(image));
    }
    image->dtype = MS_F32;
    image->values = dst;
    return taken;
}

void transform_apply(const struct transform *list, int n, const struct image *src, uint64_t seed,
                     uint64_t epoch, int64_t row, void *scratch, float *dst)
{
    const struct room room = room_measure(list, n, src->channels, src->height, src->width);
    float *const floats[2] = {scratch, (float *)scratch + room.image};
    float *const across = (float *)scratch + 2 * room.image;
    float *const cut = across + room.across;
    uint8_t *const first = (uint8_t *)(cut + room.image);
    uint8_t *const bytes[2] = {first, first + room.image};
    struct draws draws = {ms_rng_stream(seed, epoch, (uint64_t)row), 0};
    struct image now = *src;
    int last_move = -1;
    for (int i = 0; i < n; i++) {
        last_move = is_in_place(&list[i]) ? last_move : i;
    }

    int i = now.dtype == MS_U8 ? move_bytes(list, n, &draws, &now, bytes) : 0;
    float *values = last_move < i ? dst : floats[0];
    i += make_floats(list, n, i, &now, values);
    for (int turn = 1; i < n; i++) {
        struct affine affine;
        if (is_affine(&list[i])) {
            i += affine_collect(list, n, i, now.channels, &affine) - 1;
            affine_apply(&affine, values, now.channels, now.height * now.width);
            continue;
        }
        if (list[i].kind == TRANSFORM_COLOUR_JITTER) {
            colour_jitter(&list[i], &draws, values, now.channels, now.height * now.width);
            continue;
        }
        int absorbed = 0;
        if (list[i].kind == TRANSFORM_RESIZE &&
            list[i].height * list[i].width > now.height * now.width) {
            /* Weights of a resize sum to 1, so what follows per pixel may go before: 3 x 32 x 32
             * instead of 3 x 224 x 224 values, and no second pass over the large image. */
            absorbed = affine_collect(list, n, i + 1, now.channels, &affine);
            affine_apply(&affine, values, now.channels, now.height * now.width);
        }
        values = i == last_move ? dst : floats[turn];
        move_pixels(&list[i], &draws, across, cut, &now, values);
        turn = 1 - turn;
        i += absorbed;
    }
}
