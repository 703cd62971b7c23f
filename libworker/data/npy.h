/* npy.h - the head of a NumPy array in a file: type, order, dimensions
 *
 * numpy/lib/format.py, "Format Version 1.0" to "3.0": \x93NUMPY, version, the head's length (2
 * bytes little endian in 1.0, 4 from 2.0 on), then a Python dictionary with descr, fortran_order
 * and shape, blanks and a line feed; then the elements. Object arrays (pickles) are never read. */
#ifndef DATA_NPY_H
#define DATA_NPY_H

#include "proto/err.h"

#include <stdint.h>

enum {
    NPY_DIMS_MAX = 8,
    NPY_HEAD_MAX = 12 + 10000, /* NumPy's own limit (max_header_size), and what stands before */
    NPY_PREFIX = 12            /* bytes that tell how long the head is */
};

enum npy_kind { NPY_UNSIGNED, NPY_SIGNED, NPY_FLOAT };

struct npy_head {
    enum npy_kind kind;
    int item; /* bytes of an element: 1, 2, 4, 8 */
    int n_dims;
    int64_t dim[NPY_DIMS_MAX];
    int64_t count; /* elements */
    int64_t size;  /* bytes of the head: where the elements begin */
    int is_brain; /* a float of 2 bytes: the upper half of one of 4; else IEEE's. In no .npy file */
};

/* How long the head is by its first NPY_PREFIX bytes; name is for errors. */
int npy_measure(const uint8_t *bytes, const char *name, int64_t *ret, struct ms_err *err);
/* All of it. Refuses what no array of ours is (another byte order, Fortran's order, objects,
 * complex numbers, half floats, text) with the line of NumPy that mends it. */
int npy_parse(const uint8_t *bytes, int64_t size, const char *name, struct npy_head *ret,
              struct ms_err *err);

/* Element i of what is little endian: as a whole number (signed or unsigned kinds; what is above
 * INT64_MAX is INT64_MAX), or as a float, rounded to the nearest. */
int64_t npy_whole(const struct npy_head *head, const uint8_t *bytes, int64_t i);
void npy_floats(const struct npy_head *head, const uint8_t *bytes, int64_t n, float *dst);
int npy_are_finite(const float *values, int64_t n);

#endif
