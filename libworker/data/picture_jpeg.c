/* picture_jpeg.c - a JPEG file through libjpeg-turbo; the only file that knows it */
#include "libworker/data/picture.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> /* which of its codes there are, jpeglib.h says */

/* All that a jump back must find again: nothing of it is a local variable of who is jumped to. */
struct jpeg {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    const char *name;
    struct picture *picture;
    uint8_t *row; /* of CMYK */
    int rc;       /* of ours, where that stopped it */
    struct ms_err *err;
};

static void on_error(j_common_ptr common)
{
    struct jpeg *j = common->client_data;
    common->err->format_message(common, j->text);
    longjmp(j->back, 1);
}

/* libjpeg fills up with grey what is missing, and calls that a warning. */
static void on_message(j_common_ptr common, int level)
{
    const int code = common->err->msg_code;
    const int is_damage = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                          code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
                          code == JWRN_MUST_RESYNC;
    if (level < 0 && is_damage) {
        on_error(common);
    }
}

static void on_output(j_common_ptr common)
{
    (void)common;
}

/* A file of a few kilobytes can have thousands of scans, each a pass over all pixels. */
static void on_progress(j_common_ptr common)
{
    struct jpeg *j = common->client_data;
    const int64_t pixels = (int64_t)j->info.image_width * j->info.image_height;
    const int64_t by_pixels = PICTURE_SCAN_PIXELS_MAX / pixels;
    const int64_t most = by_pixels < PICTURE_SCANS_MAX ? by_pixels : PICTURE_SCANS_MAX;
    if (common->is_decompressor && j->info.input_scan_number > most) {
        snprintf(j->text, sizeof(j->text), "more than %lld scans of so many pixels",
                 (long long)most);
        longjmp(j->back, 1);
    }
}

static int find_orientation(const struct jpeg *j)
{
    static const uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0};
    for (jpeg_saved_marker_ptr m = j->info.marker_list; m != NULL; m = m->next) {
        if (m->data_length >= sizeof(exif) && memcmp(m->data, exif, sizeof(exif)) == 0) {
            return picture_orientation(m->data + sizeof(exif), m->data_length - sizeof(exif));
        }
    }
    return 1;
}

static unsigned multiply(unsigned a, unsigned b) /* a b / 255, rounded */
{
    const unsigned product = a * b + 128;
    return ((product >> 8) + product) >> 8;
}

/* Pillow's cmyk2rgb. All four are inverted, as Adobe's programs write them: with a marker of theirs
 * or without one, as Pillow has it. */
static void convert_cmyk(const uint8_t *src, int64_t n, uint8_t *dst)
{
    for (int64_t i = 0; i < n; i++, src += 4, dst += 3) {
        const unsigned k = src[3];
        for (int c = 0; c < 3; c++) {
            dst[c] = (uint8_t)(k - multiply(255U - src[c], k));
        }
    }
}

static void read_rows(struct jpeg *j)
{
    struct jpeg_decompress_struct *info = &j->info;
    const int is_cmyk = info->num_components == 4;
    info->out_color_space = is_cmyk                     ? JCS_CMYK
                            : info->num_components == 1 ? JCS_GRAYSCALE
                                                        : JCS_RGB;
    info->dct_method = JDCT_ISLOW;
    const int channels = info->num_components == 1 ? 1 : 3;
    const int64_t width = info->image_width;
    j->rc = picture_reserve(j->picture, info->image_height, width, channels, j->name, j->err);
    if (j->rc == MS_OK && is_cmyk && (j->row = malloc((size_t)width * 4)) == NULL) {
        j->rc = ms_fail(j->err, MS_E_NOMEM, "%.200s: no memory to decode it", j->name);
    }
    if (j->rc < 0) {
        return;
    }
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        uint8_t *to = j->picture->bytes + (int64_t)info->output_scanline * width * channels;
        JSAMPROW rows[1] = {is_cmyk ? j->row : to};
        if (jpeg_read_scanlines(info, rows, 1) == 1 && is_cmyk) {
            convert_cmyk(j->row, width, to);
        }
    }
    jpeg_finish_decompress(info);
}

/* Without locals that live across the jump. 1: libjpeg gave up, text says why. */
static int run(struct jpeg *j, const uint8_t *file, size_t size, struct picture_head *ret)
{
    if (setjmp(j->back) != 0) {
        return 1;
    }
    jpeg_create_decompress(&j->info);
    j->info.client_data = j;
    j->info.progress = &j->progress;
    jpeg_mem_src(&j->info, file, size);
    jpeg_save_markers(&j->info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&j->info, TRUE);
    *ret = (struct picture_head){j->info.image_height, j->info.image_width, find_orientation(j)};
    j->rc = picture_check(j->name, ret->height, ret->width, j->err);
    if (j->rc == MS_OK && j->picture != NULL) {
        read_rows(j);
    }
    return 0;
}

/* Grey is repeated for the three colours, as libpng does it. */
static int make_colours(struct picture *picture, const char *name, struct ms_err *err)
{
    const int64_t n = picture->height * picture->width;
    struct picture colours = {.bytes = NULL};
    int rc = picture_reserve(&colours, picture->height, picture->width, 3, name, err);
    if (rc < 0) {
        return rc;
    }
    for (int64_t i = 0; i < n; i++) {
        memset(colours.bytes + 3 * i, picture->bytes[i], 3);
    }
    picture_free(picture);
    *picture = colours;
    return MS_OK;
}

int picture_read_jpeg(const uint8_t *file, size_t size, const char *name, struct picture_head *ret,
                      struct picture *picture, struct ms_err *err)
{
    struct jpeg *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to decode it", name);
    }
    j->info.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_error;
    j->errors.emit_message = on_message;
    j->errors.output_message = on_output;
    j->progress.progress_monitor = on_progress;
    j->info.client_data = j;
    j->name = name;
    j->picture = picture;
    j->err = err;
    int rc = run(j, file, size, ret) == 0
                 ? j->rc
                 : ms_fail(err, MS_E_INVALID,
                           "%.200s is truncated or damaged (JPEG): %.100s; get the file again, or "
                           "leave it out",
                           name, j->text);
    jpeg_destroy_decompress(&j->info);
    free(j->row);
    free(j);
    return rc == MS_OK && picture != NULL && picture->channels == 1
               ? make_colours(picture, name, err)
               : rc;
}
