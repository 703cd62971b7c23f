/* array_files.h - NumPy's files for the tests of their readers, by the formats' texts and not by
 * our code */
#ifndef TESTS_ARRAY_FILES_H
#define TESTS_ARRAY_FILES_H

#include "tests/unit/data_files.h"

struct bytes {
    uint8_t *at; /* owned */
    size_t size;
};

static inline void bytes_add(struct bytes *b, const void *more, size_t size)
{
    b->at = realloc(b->at, b->size + size + 1);
    ck_assert_ptr_nonnull(b->at);
    memcpy(b->at + b->size, more, size);
    b->size += size;
}

static inline void bytes_number(struct bytes *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)(i < 8 ? value >> (8 * i) : 0);
        bytes_add(b, &byte, 1);
    }
}

/* Version 1 (two bytes of length) or 2 and 3 (four); dictionary as given, without padding. */
static inline struct bytes npy_with(int version, const char *dictionary, const void *data,
                                    size_t size)
{
    struct bytes b = {NULL, 0};
    const uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)version, 0};
    bytes_add(&b, start, sizeof(start));
    bytes_number(&b, strlen(dictionary), version == 1 ? 2 : 4);
    bytes_add(&b, dictionary, strlen(dictionary));
    bytes_add(&b, data, size);
    return b;
}

/* npy_with as np.save writes it. */
static inline struct bytes npy_make(const char *descr, const char *shape, const void *data,
                                    size_t size)
{
    char dictionary[256];
    snprintf(dictionary, sizeof(dictionary),
             "{'descr': '%s', 'fortran_order': False, 'shape': %s, }  \n", descr, shape);
    return npy_with(1, dictionary, data, size);
}

static inline void npy_write(const char *dir, const char *name, const char *descr,
                             const char *shape, const void *data, size_t size)
{
    struct bytes b = npy_make(descr, shape, data, size);
    file_write(dir, name, b.at, b.size);
    free(b.at);
}

/* ---- an archive in the making ---- */

struct archive {
    struct bytes file, directory;
    int n;
    int with_zip64; /* sizes and places in extra fields, as for what is larger than 4 GiB */
};

static inline struct bytes deflate_bare(const struct bytes *plain)
{
    struct bytes b = {malloc(plain->size + plain->size / 8 + 64), 0};
    z_stream stream = {.next_in = plain->at,
                       .avail_in = (uInt)plain->size,
                       .next_out = b.at,
                       .avail_out = (uInt)(plain->size + plain->size / 8 + 64)};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    b.size = stream.total_out;
    deflateEnd(&stream);
    return b;
}

/* Takes member. */
static inline void archive_add(struct archive *a, const char *name, struct bytes member,
                               int is_deflated)
{
    const uint64_t at = a->file.size;
    const uint32_t crc = (uint32_t)crc32_z(0, member.at, member.size);
    struct bytes packed = is_deflated ? deflate_bare(&member) : member;
    const int is_64 = a->with_zip64;
    const uint64_t size = is_64 ? 0xFFFFFFFF : member.size;
    const uint64_t packed_size = is_64 ? 0xFFFFFFFF : packed.size;
    for (int directory = 0; directory < 2; directory++) {
        struct bytes *b = directory ? &a->directory : &a->file;
        const size_t extra = is_64 ? (directory ? 28 : 20) : 0;
        bytes_number(b, directory ? 0x02014B50 : 0x04034B50, 4);
        bytes_number(b, 45, directory ? 4 : 2);
        bytes_number(b, 0, 2);
        bytes_number(b, is_deflated ? 8 : 0, 2);
        bytes_number(b, 0, 4);
        bytes_number(b, crc, 4);
        bytes_number(b, packed_size, 4);
        bytes_number(b, size, 4);
        bytes_number(b, strlen(name), 2);
        bytes_number(b, extra, 2);
        if (directory) {
            bytes_number(b, 0, 10);
            bytes_number(b, is_64 ? 0xFFFFFFFF : at, 4);
        }
        bytes_add(b, name, strlen(name));
        if (is_64) {
            bytes_number(b, 1, 2);
            bytes_number(b, extra - 4, 2);
            bytes_number(b, member.size, 8);
            bytes_number(b, packed.size, 8);
            if (directory) {
                bytes_number(b, at, 8);
            }
        }
    }
    bytes_add(&a->file, packed.at, packed.size);
    if (is_deflated) {
        free(packed.at);
    }
    free(member.at);
    a->n++;
}

/* The whole file; frees the archive. Returns owned. */
static inline struct bytes archive_end(struct archive *a)
{
    struct bytes *b = &a->file;
    const uint64_t at = b->size;
    const uint64_t n = (uint64_t)a->n;
    bytes_add(b, a->directory.at, a->directory.size);
    if (a->with_zip64) {
        const uint64_t end = b->size;
        bytes_number(b, 0x06064B50, 4);
        bytes_number(b, 44, 8);
        bytes_number(b, 0, 12);
        bytes_number(b, n, 8);
        bytes_number(b, n, 8);
        bytes_number(b, a->directory.size, 8);
        bytes_number(b, at, 8);
        bytes_number(b, 0x07064B50, 4);
        bytes_number(b, 0, 4);
        bytes_number(b, end, 8);
        bytes_number(b, 1, 4);
    }
    bytes_number(b, 0x06054B50, 4);
    bytes_number(b, 0, 4);
    bytes_number(b, n, 2);
    bytes_number(b, n, 2);
    bytes_number(b, a->with_zip64 ? 0xFFFFFFFF : a->directory.size, 4);
    bytes_number(b, a->with_zip64 ? 0xFFFFFFFF : at, 4);
    bytes_number(b, 0, 2);
    free(a->directory.at);
    struct bytes file = *b;
    *a = (struct archive){.n = 0};
    return file;
}

#endif
