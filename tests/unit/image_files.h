/* image_files.h - PNG files for the tests of their readers, by the format's text (ISO 15948) */
#ifndef TESTS_IMAGE_FILES_H
#define TESTS_IMAGE_FILES_H

#include "tests/unit/array_files.h"

#include <sys/stat.h>

static inline void png_number(struct bytes *b, uint32_t value)
{
    const uint8_t big[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                           (uint8_t)value};
    bytes_add(b, big, 4);
}

static inline void png_chunk(struct bytes *b, const char *kind, const uint8_t *data, size_t size)
{
    png_number(b, (uint32_t)size);
    const size_t at = b->size;
    bytes_add(b, kind, 4);
    bytes_add(b, data, size);
    png_number(b, (uint32_t)crc32_z(0, b->at + at, size + 4));
}

/* lines: a filter byte (0) before each, as they are packed. */
static inline struct bytes png_make(uint32_t width, uint32_t height, uint8_t depth, uint8_t colours,
                                    uint8_t interlace, const uint8_t *lines, size_t size)
{
    struct bytes b = {NULL, 0};
    struct bytes head = {NULL, 0};
    const uint8_t rest[] = {depth, colours, 0, 0, interlace};
    uLongf packed_size = compressBound(size);
    uint8_t *packed = malloc(packed_size);
    ck_assert_ptr_nonnull(packed);
    ck_assert_int_eq(compress2(packed, &packed_size, lines, size, 1), Z_OK);
    png_number(&head, width);
    png_number(&head, height);
    bytes_add(&head, rest, sizeof(rest));
    bytes_add(&b, "\x89PNG\r\n\x1A\n", 8);
    png_chunk(&b, "IHDR", head.at, head.size);
    png_chunk(&b, "IDAT", packed, packed_size);
    png_chunk(&b, "IEND", packed, 0);
    free(head.at);
    free(packed);
    return b;
}

/* dir/folder/name: height x width pixels of red, green, blue; pixel i has the bytes value + 3 i ...
 */
static inline void png_write(const char *dir, const char *folder, const char *name, uint32_t height,
                             uint32_t width, int value)
{
    char path[256];
    uint8_t *lines = malloc((size_t)height * (1 + 3 * (size_t)width));
    size_t size = 0;
    ck_assert_ptr_nonnull(lines);
    for (uint32_t y = 0; y < height; y++) {
        lines[size++] = 0;
        for (uint32_t i = 0; i < 3 * width; i++) {
            lines[size++] = (uint8_t)((uint32_t)value + y * 3 * width + i);
        }
    }
    struct bytes b = png_make(width, height, 8, 2, 0, lines, size);
    snprintf(path, sizeof(path), "%s/%s", dir, folder);
    (void)mkdir(path, 0755);
    file_write(path, name, b.at, b.size);
    free(b.at);
    free(lines);
}

#endif
