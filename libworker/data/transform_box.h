/* transform_box.h - inside of transform.c: where random transforms cut and erase
 *
 * Formulas of torchvision's RandomResizedCrop.get_params and RandomErasing.get_params; random
 * numbers and the functions exp and log are ours (proto/rng.h, proto/exact.h). */
#ifndef DATA_TRANSFORM_BOX_H
#define DATA_TRANSFORM_BOX_H

#include "libworker/data/data.h"

struct draws { /* random numbers of one record */
    uint64_t stream, next;
};

struct box {
    int64_t y, x, height, width;
};

/* Of an area (share of the image) and a ratio (width / height) drawn from t's; after ten that do
 * not fit, the largest one in the middle whose ratio is allowed. */
struct box box_resized_crop(const struct transform *t, int64_t height, int64_t width,
                            struct draws *draws);
/* Likewise, smaller than the image; height 0: nothing is erased. */
struct box box_erasing(const struct transform *t, int64_t height, int64_t width,
                       struct draws *draws);
/* In the middle: torchvision's CenterCrop, whose offsets round halves to the even number. */
struct box box_centre(int64_t height, int64_t width, int64_t in_height, int64_t in_width);

#endif
