/* transform_box.c - where random transforms cut and erase */
#include "libworker/data/transform_box.h"

#include "proto/exact.h"
#include "proto/rng.h"

#include <math.h>

enum { TRIES = 10 };

static double draw_unit(struct draws *draws)
{
    return ms_rng_unit(draws->stream, draws->next++);
}

static int64_t draw_below(struct draws *draws, int64_t n)
{
    return (int64_t)ms_rng_below(draws->stream, draws->next++, (uint64_t)n);
}

/* Height and width of one try; which may be larger than the image. */
static struct box draw_size(const struct transform *t, int64_t height, int64_t width,
                            struct draws *draws)
{
    const double low = ms_exact_log(t->ratio[0]);
    const double high = ms_exact_log(t->ratio[1]);
    const double share = t->area[0] + (t->area[1] - t->area[0]) * draw_unit(draws);
    const double area = share * (double)(height * width);
    const double ratio = ms_exact_exp(low + (high - low) * draw_unit(draws));
    return (struct box){.height = (int64_t)floor(sqrt(area / ratio) + 0.5),
                        .width = (int64_t)floor(sqrt(area * ratio) + 0.5)};
}

static struct box place(struct box box, int64_t height, int64_t width, struct draws *draws)
{
    box.y = draw_below(draws, height - box.height + 1);
    box.x = draw_below(draws, width - box.width + 1);
    return box;
}

/* At least a pixel of it. */
static int64_t scaled(double length)
{
    const int64_t n = (int64_t)floor(length + 0.5);
    return n > 0 ? n : 1;
}

struct box box_resized_crop(const struct transform *t, int64_t height, int64_t width,
                            struct draws *draws)
{
    for (int i = 0; i < TRIES; i++) {
        const struct box box = draw_size(t, height, width, draws);
        if (box.height > 0 && box.height <= height && box.width > 0 && box.width <= width) {
            return place(box, height, width, draws);
        }
    }
    const double ratio = (double)width / (double)height;
    int64_t h = height;
    int64_t w = width;
    if (ratio < t->ratio[0]) {
        h = scaled((double)width / t->ratio[0]);
    } else if (ratio > t->ratio[1]) {
        w = scaled((double)height * t->ratio[1]);
    }
    return (struct box){(height - h) / 2, (width - w) / 2, h, w};
}

struct box box_erasing(const struct transform *t, int64_t height, int64_t width,
                       struct draws *draws)
{
    if (draw_unit(draws) >= t->probability) {
        return (struct box){0, 0, 0, 0};
    }
    for (int i = 0; i < TRIES; i++) {
        const struct box box = draw_size(t, height, width, draws);
        if (box.height > 0 && box.height < height && box.width > 0 && box.width < width) {
            return place(box, height, width, draws);
        }
    }
    return (struct box){0, 0, 0, 0};
}

static int64_t half_to_even(int64_t n)
{
    const int64_t half = n / 2;
    return n % 2 == 0 || half % 2 == 0 ? half : half + 1;
}

struct box box_centre(int64_t height, int64_t width, int64_t in_height, int64_t in_width)
{
    return (struct box){half_to_even(in_height - height), half_to_even(in_width - width), height,
                        width};
}
