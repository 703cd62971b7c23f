/* data_files.h - small data files for the tests of the readers */
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include "tests/test.h"

#include <stdint.h>
#include <sys/resource.h>
#include <zlib.h>

/* The most memory that this process had so far. */
static inline long peak_kib(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Writes size bytes to directory/name. */
static inline void file_write(const char *directory, const char *name, const void *bytes,
                              size_t size)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* The same through gzip; cut: bytes of the packed file to leave out at its end. */
static inline void file_write_gz(const char *directory, const char *name, const void *bytes,
                                 size_t size, long cut)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    gzFile file = gzopen(path, "wb1");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(file), Z_OK);
    if (cut > 0) {
        FILE *plain = fopen(path, "rb");
        ck_assert_ptr_nonnull(plain);
        fseek(plain, 0, SEEK_END);
        long length = ftell(plain);
        fclose(plain);
        ck_assert_int_eq(truncate(path, length - cut), 0);
    }
}

/* n records of CIFAR-10: record i has label (first + i) % 10 and pixel p = (i + p) % 256. Returns
 * owned (malloc), n * 3073 bytes. */
static inline uint8_t *cifar_make(int n, int first)
{
    uint8_t *bytes = malloc((size_t)n * 3073);
    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < n; i++) {
        bytes[i * 3073] = (uint8_t)((first + i) % 10);
        for (int p = 0; p < 3072; p++) {
            bytes[i * 3073 + 1 + p] = (uint8_t)(i + p);
        }
    }
    return bytes;
}

static inline void cifar_write(const char *directory, const char *name, int n, int first)
{
    uint8_t *bytes = cifar_make(n, first);
    file_write(directory, name, bytes, (size_t)n * 3073);
    free(bytes);
}

/* An IDX file in memory: magic, dimensions, then bytes i % modulus. Returns owned. */
static inline uint8_t *idx_make(uint32_t magic, uint32_t n, uint32_t rows, uint32_t columns,
                                unsigned modulus, size_t *ret_size)
{
    uint32_t words[4] = {magic, n, rows, columns};
    size_t header = magic % 256 == 1 ? 8 : 16;
    size_t data = magic % 256 == 1 ? n : (size_t)n * rows * columns;
    uint8_t *bytes = malloc(header + data);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < header; i++) {
        bytes[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i % 4)));
    }
    for (size_t i = 0; i < data; i++) {
        bytes[header + i] = (uint8_t)(i % modulus);
    }
    *ret_size = header + data;
    return bytes;
}

#endif
