/* picture_png.c - a PNG file through libpng; the only file that knows it */
#include "libworker/data/picture.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>
#include <zlib.h>

/* All that a jump back must find again: nothing of it is a local variable of who is jumped to. */
struct png {
    png_structp png;
    png_infop info;
    const uint8_t *file;
    size_t size, at;
    char text[128];
    const char *name;
    struct picture *picture;
    int rc; /* of ours, where that stopped it */
    struct ms_err *err;
};

static PNG_NORETURN void on_error(png_structp png, png_const_charp text)
{
    struct png *p = png_get_error_ptr(png);
    snprintf(p->text, sizeof(p->text), "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void take_bytes(png_structp png, png_bytep dst, size_t size)
{
    struct png *p = png_get_io_ptr(png);
    if (size > p->size - p->at) {
        png_error(png, "it ends too early");
    }
    memcpy(dst, p->file + p->at, size);
    p->at += size;
}

/* What pixels do not depend on is passed over, not kept: a hundred texts of 8 MiB each pack to a
 * megabyte of file. Of all but the palette and transparent colours. */
static void keep_little(png_structp png)
{
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_chunk_malloc_max(png, 8 << 20); /* how long a chunk may be that is passed over, too */
    png_set_chunk_cache_max(png, 128);
}

/* Whatever it is becomes 8 bits of red, green and blue. */
static void ask_for_colours(struct png *p)
{
    png_set_expand(p->png); /* palettes, fewer than 8 bits, transparent colours */
    png_set_scale_16(p->png);
    png_set_strip_alpha(p->png);
    png_set_gray_to_rgb(p->png);
}

/* Row by row: pointers to all of them would be more than the pixels of a narrow image. */
static void read_rows(struct png *p, int64_t height, int64_t width)
{
    p->rc = picture_reserve(p->picture, height, width, 3, p->name, p->err);
    if (p->rc < 0) {
        return;
    }
    ask_for_colours(p);
    const int passes = png_set_interlace_handling(p->png);
    png_read_update_info(p->png, p->info);
    if (png_get_rowbytes(p->png, p->info) != (size_t)width * 3) {
        png_error(p->png, "its rows are no colours");
    }
    for (int pass = 0; pass < passes; pass++) {
        for (int64_t y = 0; y < height; y++) {
            png_read_row(p->png, p->picture->bytes + y * width * 3, NULL);
        }
    }
    png_read_end(p->png, NULL);
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Of the first chunk eXIf (extensions to ISO 15948, 1.5.0), before the pixels or behind them: what
 * measures and what decodes see the same. 1: there is none, or it is damaged. */
static int find_orientation(const uint8_t *file, size_t size)
{
    enum { SIGNATURE = 8, AROUND = 12 }; /* length and kind before, checksum behind */
    for (size_t at = SIGNATURE; size - at >= AROUND;) {
        const uint32_t length = number_at(file + at);
        const uint8_t *kind = file + at + 4;
        if (length > size - at - AROUND || memcmp(kind, "IEND", 4) == 0) {
            break;
        }
        if (memcmp(kind, "eXIf", 4) == 0) {
            const int is_sound =
                crc32_z(0, kind, 4 + (size_t)length) == number_at(kind + 4 + length);
            return is_sound ? picture_orientation(kind + 4, length) : 1;
        }
        at += AROUND + length;
    }
    return 1;
}

/* Without locals that live across the jump. 1: libpng gave up, text says why. */
static int run(struct png *p, struct picture_head *ret)
{
    if (setjmp(png_jmpbuf(p->png)) != 0) {
        return 1;
    }
    png_set_read_fn(p->png, p, take_bytes);
    png_set_user_limits(p->png, INT32_MAX, INT32_MAX); /* ours say more */
    keep_little(p->png);
    png_set_crc_action(p->png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
    png_read_info(p->png, p->info);
    ret->height = png_get_image_height(p->png, p->info);
    ret->width = png_get_image_width(p->png, p->info);
    ret->orientation = find_orientation(p->file, p->size);
    p->rc = picture_check(p->name, ret->height, ret->width, p->err);
    if (p->rc == MS_OK && p->picture != NULL) {
        read_rows(p, ret->height, ret->width);
    }
    return 0;
}

int picture_read_png(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                     struct picture *picture, struct ms_err *err)
{
    struct png p = {.file = file, .size = size, .name = name, .picture = picture, .err = err};
    p.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, on_error, on_warning);
    p.info = p.png != NULL ? png_create_info_struct(p.png) : NULL;
    int rc = MS_OK;
    if (p.info == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.200s: no memory to decode it", name);
    } else if (run(&p, ret) != 0) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.200s is truncated or damaged (PNG): %.100s; get the file again, or leave "
                     "it out",
                     name, p.text);
    } else {
        rc = p.rc;
    }
    png_destroy_read_struct(&p.png, &p.info, NULL);
    return rc;
}
