/* dtype.h - what one element of a tensor is
 *
 * A buffer of tensors is (dtype, count): bytes follow from the two, and nothing but this table says
 * how many. Elements lie in the byte order of the machine. The order of the enum is neither on the
 * wire nor on disk: there the name stands. Any thread. */
#ifndef MS_DTYPE_H
#define MS_DTYPE_H

#include <assert.h>
#include <stddef.h>

enum ms_dtype {
    MS_F32,  /* float */
    MS_BF16, /* the upper half of a float; reserved: no code of ours computes with it yet */
    MS_I32,  /* int32_t: class numbers */
    MS_U8,   /* uint8_t: pixels as files hold them */
    MS_DTYPES
};

struct ms_dtype_traits {
    const char *name; /* "f32" */
    size_t bytes;     /* of one element */
};

/* Borrowed, for ever. */
static inline const struct ms_dtype_traits *ms_dtype_traits(enum ms_dtype dtype)
{
    static const struct ms_dtype_traits traits[MS_DTYPES] = {
        [MS_F32] = {"f32", 4},
        [MS_BF16] = {"bf16", 2},
        [MS_I32] = {"i32", 4},
        [MS_U8] = {"u8", 1},
    };
    assert((unsigned)dtype < MS_DTYPES);
    return &traits[dtype];
}

static inline const char *ms_dtype_name(enum ms_dtype dtype)
{
    return ms_dtype_traits(dtype)->name;
}

/* Of one element. */
static inline size_t ms_dtype_bytes(enum ms_dtype dtype)
{
    return ms_dtype_traits(dtype)->bytes;
}

/* Of so many elements. */
static inline size_t ms_dtype_size(enum ms_dtype dtype, size_t count)
{
    return count * ms_dtype_bytes(dtype);
}

#endif
