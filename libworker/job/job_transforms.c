/* job_transforms.c - the tables of the kinds of transforms */
#include "libworker/job/job_schema.h"

#include "libworker/data/mixup.h"
#include "proto/limits.h"
#include "proto/macros.h"

#define IN_TRANSFORM(member) offsetof(struct transform, member)

static const char *const interpolations[] = {"bilinear", "nearest", NULL};

static const struct field crop_rows[] = {
    {.key = "size",
     .type = FIELD_SIZE,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(height),
     .min = 1,
     .max = MS_IMAGE_SIDE_MAX,
     .help = "[height, width] of the cut"},
    {.key = "padding",
     .type = FIELD_PADDING,
     .offset = IN_TRANSFORM(pad_left),
     .min = 0,
     .max = MS_IMAGE_SIDE_MAX,
     .builtin = "0",
     .help = "zeros around the image: [left, top, right, bottom]"},
};
static const struct field flip_rows[] = {
    {.key = "prob",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(probability),
     .min = 0,
     .max = 1,
     .builtin = "0.5",
     .help = "share of the images that are mirrored"},
};
static const struct field resize_rows[] = {
    {.key = "size",
     .type = FIELD_SIZE_PAIR,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(height),
     .min = 1,
     .max = MS_IMAGE_SIDE_MAX,
     .help = "[height, width]"},
    {.key = "interpolation",
     .type = FIELD_ENUM,
     .offset = IN_TRANSFORM(interpolation),
     .choices = interpolations,
     .builtin = "bilinear",
     .help = "half-pixel centres, not rounded"},
};
static const struct field rescale_rows[] = {
    {.key = "scale",
     .type = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(scale),
     .min = -1e6,
     .max = 1e6,
     .help = "x scale + shift"},
    {.key = "shift",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(shift),
     .min = -1e6,
     .max = 1e6,
     .builtin = "0",
     .help = "x scale + shift"},
};
static const struct field normalize_rows[] = {
    {.key = "mean",
     .type = FIELD_REALS,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(mean),
     .count_offset = IN_TRANSFORM(n_channels),
     .min = -1e6,
     .max = 1e6,
     .help = "one number a channel"},
    {.key = "std",
     .type = FIELD_REALS,
     .flags = FIELD_REQUIRED | FIELD_ABOVE,
     .offset = IN_TRANSFORM(std),
     .count_offset = IN_TRANSFORM(n_channels),
     .min = 0,
     .max = 1e6,
     .help = "one number a channel"},
};

/* area and ratio of a box, which are drawn from these */
#define BOX_ROWS(scale, ratios)                                                                    \
    {.key = "scale",                                                                               \
     .type = FIELD_REALS,                                                                          \
     .flags = FIELD_ABOVE,                                                                         \
     .offset = IN_TRANSFORM(area),                                                                 \
     .count_offset = IN_TRANSFORM(n_area),                                                         \
     .min = 0,                                                                                     \
     .max = 1,                                                                                     \
     .builtin = scale,                                                                             \
     .help = "[from, to]: share of the image"},                                                    \
    {                                                                                              \
        .key = "ratio", .type = FIELD_REALS, .flags = FIELD_ABOVE, .offset = IN_TRANSFORM(ratio),  \
        .count_offset = IN_TRANSFORM(n_ratio), .min = 0, .max = 100, .builtin = ratios,            \
        .help = "[from, to]: width by height",                                                     \
    }
static const struct field resized_crop_rows[] = {
    {.key = "size",
     .type = FIELD_SIZE,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(height),
     .min = 1,
     .max = MS_IMAGE_SIDE_MAX,
     .help = "[height, width] to which the cut is resized"},
    BOX_ROWS("[0.08, 1]", "[0.75, 1.3333333333333333]"),
};
static const struct field centre_crop_rows[] = {
    {.key = "size",
     .type = FIELD_SIZE,
     .flags = FIELD_REQUIRED,
     .offset = IN_TRANSFORM(height),
     .min = 1,
     .max = MS_IMAGE_SIDE_MAX,
     .help = "[height, width] of the cut"},
};
static const struct field erasing_rows[] = {
    {.key = "prob",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(probability),
     .min = 0,
     .max = 1,
     .builtin = "0.5",
     .help = "share of the images in which a box becomes 0"},
    BOX_ROWS("[0.02, 0.33]", "[0.3, 3.3]"),
};

static const struct field jitter_rows[] = {
    {.key = "brightness",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(brightness),
     .min = 0,
     .max = 100,
     .builtin = "0",
     .help = "factors from 1 - x, not below 0, to 1 + x"},
    {.key = "contrast",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(contrast),
     .min = 0,
     .max = 100,
     .builtin = "0",
     .help = "likewise"},
    {.key = "saturation",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(saturation),
     .min = 0,
     .max = 100,
     .builtin = "0",
     .help = "likewise"},
    {.key = "hue",
     .type = FIELD_REAL,
     .offset = IN_TRANSFORM(hue),
     .min = 0,
     .max = 0.5,
     .builtin = "0",
     .help = "turns from -x to x; 0.5 is the opposite colour"},
};
static const struct field grey_rows[] = {
    {.key = "channels",
     .type = FIELD_INT64,
     .offset = IN_TRANSFORM(channels),
     .min = 1,
     .max = 3,
     .builtin = "1",
     .help = "1, or 3 that are alike"},
};
static const struct field mixup_rows[] = {
    {.key = "alpha",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE,
     .offset = IN_TRANSFORM(alpha),
     .min = 0,
     .max = MIXUP_ALPHA_MAX,
     .builtin = "1",
     .help = "of Beta(alpha, alpha), from which it is drawn how much a sample counts itself"},
};

#define TABLE(rows)                                                                                \
    {                                                                                              \
        rows, MS_ARRAY_SIZE(rows), "a transform"                                                   \
    }
const struct job_transform_kind job_transform_kinds[] = {
    {"random_crop", TRANSFORM_RANDOM_CROP, TABLE(crop_rows)},
    {"random_horizontal_flip", TRANSFORM_RANDOM_HORIZONTAL_FLIP, TABLE(flip_rows)},
    {"resize", TRANSFORM_RESIZE, TABLE(resize_rows)},
    {"rescale", TRANSFORM_RESCALE, TABLE(rescale_rows)},
    {"normalize", TRANSFORM_NORMALIZE, TABLE(normalize_rows)},
    {"random_resized_crop", TRANSFORM_RANDOM_RESIZED_CROP, TABLE(resized_crop_rows)},
    {"centre_crop", TRANSFORM_CENTRE_CROP, TABLE(centre_crop_rows)},
    {"random_erasing", TRANSFORM_RANDOM_ERASING, TABLE(erasing_rows)},
    {"colour_jitter", TRANSFORM_COLOUR_JITTER, TABLE(jitter_rows)},
    {"to_grey", TRANSFORM_TO_GREY, TABLE(grey_rows)},
    {"mixup", TRANSFORM_MIXUP, TABLE(mixup_rows)},
};
const size_t job_n_transform_kinds = MS_ARRAY_SIZE(job_transform_kinds);
