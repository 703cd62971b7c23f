/* transform_colour.h - inside of transform.c: what changes colours and leaves pixels where they are
 *
 * Formulas of torchvision's functional adjust_brightness, adjust_contrast, adjust_saturation,
 * adjust_hue and rgb_to_grayscale (transforms/_functional_tensor.py) on floats, of values from 0 to
 * 255 and not rounded in between; random numbers are ours (proto/rng.h). Any thread. */
#ifndef DATA_TRANSFORM_COLOUR_H
#define DATA_TRANSFORM_COLOUR_H

#include "libworker/data/transform_box.h"

#include <stdint.h>

enum colour_step {
    COLOUR_BRIGHTNESS,
    COLOUR_CONTRAST,
    COLOUR_SATURATION,
    COLOUR_HUE,
    COLOUR_STEPS
};

/* One step of an image of 1 or 3 channels of `plane` values each, in place. factor: 1 leaves it as
 * it is; of the hue 0 does, 0.5 and -0.5 are the opposite colour. One channel has neither
 * saturation nor hue. */
void colour_apply(enum colour_step step, double factor, float *values, int64_t channels,
                  int64_t plane);

/* ColorJitter: the four steps in a drawn order, with drawn factors. */
void colour_jitter(const struct transform *t, struct draws *draws, float *values, int64_t channels,
                   int64_t plane);

/* Of 1 or 3 channels: to channels that are all alike. dst is no part of src. */
void colour_grey(const float *src, int64_t channels, int64_t plane, int64_t to, float *dst);

#endif
