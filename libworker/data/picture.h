/* picture.h - JPEG and PNG files into pixels
 *
 * Through libjpeg-turbo and libpng, whose errors become ours with the file's name. Bytes of the
 * result are a function of the file alone: the exact integer DCT, no colour management, no gamma.
 *
 * What becomes what: greyscale is repeated for red, green and blue; colours become grey by ITU-R
 * 601-2 as Pillow's convert("L") rounds it, (19595 R + 38470 G + 7471 B + 32768) / 65536; palettes
 * become their colours; 16 bits 8, to the nearest; alpha is left out; CMYK, as Pillow converts it.
 * A JPEG's or PNG's EXIF orientation is applied. */
#ifndef DATA_PICTURE_H
#define DATA_PICTURE_H

#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PICTURE_FILE_MAX = 256 << 20,  /* bytes of a file */
    PICTURE_PIXELS_MAX = 64 << 20, /* 8192 x 8192: 192 MiB as colours */
    PICTURE_SIDE_MAX = 65500,      /* as libjpeg has it */
    PICTURE_SCANS_MAX = 500        /* of a progressive JPEG: each costs a pass over all pixels */
};

/* Of all scans together: a second's worth. 32 of the largest image; usual are 10. */
#define PICTURE_SCAN_PIXELS_MAX (INT64_C(32) * PICTURE_PIXELS_MAX)

struct picture {
    int64_t height, width;
    int channels;   /* 1 or 3 */
    uint8_t *bytes; /* (height, width, channels) */
    size_t room;    /* allocated for bytes; grows */
};

void picture_free(struct picture *picture);

/* Height and width that picture_decode gives, by the file's head. MS_E_INVALID: no such file, or
 * too large a one; name is for errors. Any thread. */
int picture_measure(const uint8_t *file, size_t size, const char *name, int64_t *ret_height,
                    int64_t *ret_width, struct ms_err *err);
/* channels: 1 or 3. A truncated or damaged file fails: half an image is none. *picture: empty, or
 * one that was filled before. Any thread. */
int picture_decode(const uint8_t *file, size_t size, const char *name, int channels,
                   struct picture *picture, struct ms_err *err);

/* ---- size ---- */

/* The picture resized until it covers height x width, cut in its middle, as (channels, height,
 * width): to the bit what torchvision's Resize and CenterCrop make of a PIL image (bilinear with
 * antialias, Pillow's Resample.c, 22 bits of weights). Of the same size: its bytes. work: grows to
 * what the rows take that are kept, the caller frees; name is for errors. */
struct picture_work {
    void *bytes;
    size_t room;
};
int picture_cover(const struct picture *picture, const char *name, int64_t height, int64_t width,
                  struct picture_work *work, uint8_t *dst, struct ms_err *err);

/* ---- inside: picture_jpeg.c, picture_png.c ---- */

struct picture_head {
    int64_t height, width; /* as they stand in the file */
    int orientation;       /* EXIF: 1 to 8 */
};
/* What is in the file's head; picture NULL: no more than that. Else also its pixels, not turned. */
int picture_read_jpeg(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                      struct picture *picture, struct ms_err *err);
int picture_read_png(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                     struct picture *picture, struct ms_err *err);
/* Sides against the limits. */
int picture_check(const char *name, int64_t height, int64_t width, struct ms_err *err);
/* Room for height x width x channels. */
int picture_reserve(struct picture *picture, int64_t height, int64_t width, int channels,
                    const char *name, struct ms_err *err);
/* Of a block that begins with TIFF's head (EXIF 2.3, 4.6.4 A): tag 0x0112; 1 where there is none.
 */
int picture_orientation(const uint8_t *exif, size_t size);

#endif
