/* picture.c - JPEG and PNG files into pixels: which of them, colours, orientation */
#include "libworker/data/picture.h"

#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>

void picture_free(struct picture *picture)
{
    free(picture->bytes);
    *picture = (struct picture){.bytes = NULL};
}

int picture_check(const char *name, int64_t height, int64_t width, struct ms_err *err)
{
    if (height < 1 || width < 1 || height > PICTURE_SIDE_MAX || width > PICTURE_SIDE_MAX ||
        height > PICTURE_PIXELS_MAX / width) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s says that it has %lld x %lld pixels; at most %d are decoded, sides "
                       "of at most %d: scale it down, or leave it out",
                       name, (long long)height, (long long)width, PICTURE_PIXELS_MAX,
                       PICTURE_SIDE_MAX);
    }
    return MS_OK;
}

int picture_reserve(struct picture *picture, int64_t height, int64_t width, int channels,
                    const char *name, struct ms_err *err)
{
    const size_t need = (size_t)(height * width) * (size_t)channels;
    if (need > picture->room) {
        free(picture->bytes);
        picture->bytes = malloc(need);
        picture->room = picture->bytes != NULL ? need : 0;
        if (picture->bytes == NULL) {
            return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its %lld x %lld pixels", name,
                           (long long)height, (long long)width);
        }
    }
    picture->height = height;
    picture->width = width;
    picture->channels = channels;
    return MS_OK;
}

/* ---- orientation ---- */

static uint32_t number_at(const uint8_t *at, int n, int is_big)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++) {
        value = value << 8 | at[is_big ? i : n - 1 - i];
    }
    return value;
}

int picture_orientation(const uint8_t *exif, size_t size)
{
    enum { ENTRY = 12, TAG = 0x0112, SHORT = 3 };
    if (size < 8 || (memcmp(exif, "II*\0", 4) != 0 && memcmp(exif, "MM\0*", 4) != 0)) {
        return 1;
    }
    const int is_big = exif[0] == 'M';
    const size_t at = number_at(exif + 4, 4, is_big);
    if (at > size - 2 || size < 2) {
        return 1;
    }
    const size_t n = number_at(exif + at, 2, is_big);
    for (size_t i = 0; i < n && size - at - 2 >= (i + 1) * ENTRY; i++) {
        const uint8_t *entry = exif + at + 2 + i * ENTRY;
        if (number_at(entry, 2, is_big) == TAG && number_at(entry + 2, 2, is_big) == SHORT) {
            const uint32_t value = number_at(entry + 8, 2, is_big);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 1;
}

/* EXIF 2.3, table of tag 0x0112: where row 0 and column 0 of the file are seen. From 5 on, rows and
 * columns change places. */
static const struct {
    int swaps, flips_y, flips_x; /* of the picture that is seen */
} turns[] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 1, 0},
             {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, {1, 1, 0}};

static int turn(struct picture *picture, int orientation, const char *name, struct ms_err *err)
{
    struct picture seen = {.bytes = NULL};
    const int swaps = turns[orientation].swaps;
    const int64_t height = swaps ? picture->width : picture->height;
    const int64_t width = swaps ? picture->height : picture->width;
    const int channels = picture->channels;
    int rc = picture_reserve(&seen, height, width, channels, name, err);
    if (rc < 0) {
        return rc;
    }
    uint8_t *dst = seen.bytes;
    for (int64_t y = 0; y < height; y++) {
        const int64_t v = turns[orientation].flips_y ? height - 1 - y : y;
        for (int64_t x = 0; x < width; x++, dst += channels) {
            const int64_t u = turns[orientation].flips_x ? width - 1 - x : x;
            const int64_t from = swaps ? u * picture->width + v : v * picture->width + u;
            memcpy(dst, picture->bytes + from * channels, (size_t)channels);
        }
    }
    free(picture->bytes);
    *picture = seen;
    return MS_OK;
}

/* ---- which kind ---- */

static const struct {
    const char *magic;
    size_t n;
    int (*read)(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                struct picture *picture, struct ms_err *err);
    const char *what; /* read is NULL: what it is instead */
} kinds[] = {
    {"\xFF\xD8\xFF", 3, picture_read_jpeg, NULL},
    {"\x89PNG\r\n\x1A\n", 8, picture_read_png, NULL},
    {"GIF8", 4, NULL, "a GIF image"},
    {"BM", 2, NULL, "a BMP image"},
    {"RIFF", 4, NULL, "a WebP image"},
    {"II*", 3, NULL, "a TIFF image"},
    {"MM\0*", 4, NULL, "a TIFF image"},
    {"<", 1, NULL, "a web page or SVG image"},
    {"\0\0\0\0", 4, NULL, "zero bytes, an interrupted download"},
};

static int read_any(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                    struct picture *picture, struct ms_err *err)
{
    const char *what = size == 0 ? "empty" : "something else";
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        if (size >= kinds[i].n && memcmp(file, kinds[i].magic, kinds[i].n) == 0) {
            if (kinds[i].read != NULL) {
                return kinds[i].read(file, size, name, ret, picture, err);
            }
            what = kinds[i].what;
            break;
        }
    }
    return ms_fail(err, MS_E_INVALID,
                   "%.200s is neither a JPEG nor a PNG image (%s); convert it, or leave it out",
                   name, what);
}

int picture_measure(const uint8_t *file, size_t size, const char *name, int64_t *ret_height,
                    int64_t *ret_width, struct ms_err *err)
{
    struct picture_head head;
    int rc = read_any(file, size, name, &head, NULL, err);
    if (rc == MS_OK) {
        const int swaps = turns[head.orientation].swaps;
        *ret_height = swaps ? head.width : head.height;
        *ret_width = swaps ? head.height : head.width;
    }
    return rc;
}

int picture_decode(const uint8_t *file, size_t size, const char *name, int channels,
                   struct picture *picture, struct ms_err *err)
{
    struct picture_head head;
    int rc = read_any(file, size, name, &head, picture, err);
    if (rc == MS_OK && picture->channels != channels) { /* colours, and grey is wanted */
        const int64_t n = picture->height * picture->width;
        uint8_t *bytes = picture->bytes;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t sum =
                19595U * bytes[3 * i] + 38470U * bytes[3 * i + 1] + 7471U * bytes[3 * i + 2];
            bytes[i] = (uint8_t)((sum + 0x8000U) >> 16);
        }
        picture->channels = 1;
    }
    return rc == MS_OK && head.orientation > 1 ? turn(picture, head.orientation, name, err) : rc;
}
