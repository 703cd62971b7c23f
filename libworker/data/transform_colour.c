/* transform_colour.c - what changes colours and leaves pixels where they are */
#include "libworker/data/transform_colour.h"

#include "proto/rng.h"

#include <math.h>
#include <string.h>

#define WHITE 255.0F

static float clamp(float value)
{
    return value < 0 ? 0 : value > WHITE ? WHITE : value;
}

static float grey_of(float red, float green, float blue)
{
    return 0.2989F * red + 0.587F * green + 0.114F * blue;
}

/* share of the image and the rest of something else. */
static float blend(float share, float value, float other)
{
    return clamp(share * value + (1 - share) * other);
}

static void brighten(float factor, float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        values[i] = clamp(factor * values[i]);
    }
}

/* Around the mean of its grey. */
static void contrast(float factor, float *values, int64_t channels, int64_t plane)
{
    double sum = 0;
    for (int64_t i = 0; i < plane; i++) {
        sum += channels == 1 ? values[i]
                             : grey_of(values[i], values[i + plane], values[i + 2 * plane]);
    }
    const float mean = (float)(sum / (double)plane);
    for (int64_t i = 0; i < channels * plane; i++) {
        values[i] = blend(factor, values[i], mean);
    }
}

static void saturate(float factor, float *values, int64_t plane)
{
    for (int64_t i = 0; i < plane; i++) {
        float *pixel = values + i;
        const float grey = grey_of(pixel[0], pixel[plane], pixel[2 * plane]);
        for (int64_t c = 0; c < 3; c++) {
            pixel[c * plane] = blend(factor, pixel[c * plane], grey);
        }
    }
}

struct hsv {
    float hue, saturation, value; /* hue: 0 and less than 1, red at 0 */
};

static struct hsv hsv_of(float red, float green, float blue)
{
    const float most = fmaxf(red, fmaxf(green, blue));
    const float least = fminf(red, fminf(green, blue));
    const float range = most - least;
    if (range == 0) {
        return (struct hsv){0, 0, most};
    }
    const float r = (most - red) / range;
    const float g = (most - green) / range;
    const float b = (most - blue) / range;
    const float sixths = most == red ? b - g : most == green ? 2 + r - b : 4 + g - r;
    return (struct hsv){fmodf(sixths / 6 + 1, 1), range / most, most};
}

static void put_hsv(struct hsv hsv, float *pixel, int64_t plane)
{
    const float sixths = hsv.hue * 6;
    const float sixth = floorf(sixths);
    const float f = sixths - sixth;
    const float v = hsv.value;
    const float p = clamp(v * (1 - hsv.saturation));
    const float q = clamp(v * (1 - hsv.saturation * f));
    const float t = clamp(v * (1 - hsv.saturation * (1 - f)));
    const float colours[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    const float *colour = colours[(int)sixth % 6];
    for (int64_t c = 0; c < 3; c++) {
        pixel[c * plane] = colour[c];
    }
}

static void turn(float by, float *values, int64_t plane)
{
    for (int64_t i = 0; i < plane; i++) {
        float *pixel = values + i;
        struct hsv hsv = hsv_of(pixel[0], pixel[plane], pixel[2 * plane]);
        if (!isfinite(hsv.hue)) { /* of values that are no colours: their range is no number */
            continue;
        }
        hsv.hue = hsv.hue + by - floorf(hsv.hue + by);
        put_hsv(hsv, pixel, plane);
    }
}

void colour_apply(enum colour_step step, double factor, float *values, int64_t channels,
                  int64_t plane)
{
    if (step == COLOUR_BRIGHTNESS) {
        brighten((float)factor, values, channels * plane);
    } else if (step == COLOUR_CONTRAST) {
        contrast((float)factor, values, channels, plane);
    } else if (step == COLOUR_SATURATION && channels == 3) {
        saturate((float)factor, values, plane);
    } else if (step == COLOUR_HUE && channels == 3) {
        turn((float)factor, values, plane);
    }
}

/* As many numbers whatever the transform says, so that what follows draws the same ones. */
void colour_jitter(const struct transform *t, struct draws *draws, float *values, int64_t channels,
                   int64_t plane)
{
    const double spread[COLOUR_STEPS] = {t->brightness, t->contrast, t->saturation, t->hue};
    enum colour_step order[COLOUR_STEPS] = {COLOUR_BRIGHTNESS, COLOUR_CONTRAST, COLOUR_SATURATION,
                                            COLOUR_HUE};
    double factor[COLOUR_STEPS];
    for (uint64_t i = COLOUR_STEPS - 1; i > 0; i--) {
        const uint64_t j = ms_rng_below(draws->stream, draws->next++, i + 1);
        const enum colour_step swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int i = 0; i < COLOUR_STEPS; i++) {
        const double middle = i == COLOUR_HUE ? 0 : 1;
        const double low = i == COLOUR_HUE || spread[i] < 1 ? middle - spread[i] : 0;
        const double unit = ms_rng_unit(draws->stream, draws->next++);
        factor[i] = low + (middle + spread[i] - low) * unit;
    }
    for (int i = 0; i < COLOUR_STEPS; i++) {
        if (spread[order[i]] > 0) {
            colour_apply(order[i], factor[order[i]], values, channels, plane);
        }
    }
}

void colour_grey(const float *src, int64_t channels, int64_t plane, int64_t to, float *dst)
{
    for (int64_t i = 0; i < plane; i++) {
        dst[i] = channels == 1 ? src[i] : grey_of(src[i], src[i + plane], src[i + 2 * plane]);
    }
    for (int64_t c = 1; c < to; c++) {
        memcpy(dst + c * plane, dst, (size_t)plane * sizeof(*dst));
    }
}
