/* npy.c - the head of a NumPy array in a file: type, order, dimensions */
#include "libworker/data/npy.h"

#include "proto/limits.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct reader {
    const char *at, *end;
};

static int fail(const char *name, const char *what, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID, "%.160s is no NumPy array: %s; write it again with np.save",
                   name, what);
}

int npy_measure(const uint8_t *bytes, const char *name, int64_t *ret, struct ms_err *err)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        return fail(name, "its first bytes are not \\x93NUMPY", err);
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has version %u.%u of NumPy's format; 1.0, 2.0 and 3.0 are read",
                       name, bytes[6], bytes[7]);
    }
    const int is_short = bytes[6] == 1;
    int64_t length = bytes[8] | (int64_t)bytes[9] << 8;
    length |= is_short ? 0 : (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    length += is_short ? 10 : 12;
    if (length > NPY_HEAD_MAX || length < NPY_PREFIX) {
        return fail(name, "the length of its head makes no sense", err);
    }
    *ret = length;
    return MS_OK;
}

/* ---- the dictionary ---- */

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) {
        r->at++;
    }
}

static int take(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at < r->end && *r->at == c) {
        r->at++;
        return 1;
    }
    return 0;
}

static int take_text(struct reader *r, char *buf, size_t size)
{
    skip_blanks(r);
    const char quote = r->at < r->end ? *r->at : '\0';
    if (quote != '\'' && quote != '"') {
        return 0;
    }
    const char *from = r->at + 1;
    const char *to = memchr(from, quote, (size_t)(r->end - from));
    if (to == NULL || (size_t)(to - from) >= size) {
        return 0;
    }
    memcpy(buf, from, (size_t)(to - from));
    buf[to - from] = '\0';
    r->at = to + 1;
    return strlen(buf) == (size_t)(to - from);
}

static int take_word(struct reader *r, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) {
        return 0;
    }
    r->at += length;
    return 1;
}

static int take_bool(struct reader *r, int *ret)
{
    *ret = take_word(r, "True");
    return *ret || take_word(r, "False");
}

/* Old versions of Python wrote an L behind it. */
static int take_whole(struct reader *r, int64_t *ret)
{
    int64_t value = 0;
    skip_blanks(r);
    if (r->at == r->end || !isdigit((unsigned char)*r->at)) {
        return 0;
    }
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++) {
        if (value > (INT64_MAX - 9) / 10) {
            return 0;
        }
        value = value * 10 + (*r->at - '0');
    }
    (void)take(r, 'L');
    *ret = value;
    return 1;
}

static int take_shape(struct reader *r, struct npy_head *head)
{
    int more = take(r, '(');
    if (!more) {
        return 0;
    }
    while (more && !take(r, ')')) {
        if (head->n_dims == NPY_DIMS_MAX || !take_whole(r, &head->dim[head->n_dims])) {
            return 0;
        }
        head->n_dims++;
        more = take(r, ',');
        if (!more && !take(r, ')')) {
            return 0;
        }
    }
    return 1;
}

/* ---- the type ---- */

/* What it is called in Python: y_train of path/y_train.npy, y of path/all.npz: y. */
static void name_array(const char *name, char *buf, size_t size)
{
    const char *at = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
    const char *member = strstr(at, ": ");
    at = member != NULL ? member + 2 : at;
    const char *dot = strrchr(at, '.');
    const size_t length = dot != NULL && strcmp(dot, ".npy") == 0 ? (size_t)(dot - at) : strlen(at);
    size_t i = 0;
    while (i < length && (isalnum((unsigned char)at[i]) || at[i] == '_')) {
        i++;
    }
    if (i == length && length > 0 && length < size && !isdigit((unsigned char)at[0])) {
        snprintf(buf, size, "%.*s", (int)length, at);
    } else {
        snprintf(buf, size, "x");
    }
}

static int refuse_type(const char *name, const char *descr, const char *is, const char *mend,
                       struct ms_err *err)
{
    char array[MS_NAME_MAX + 1];
    name_array(name, array, sizeof(array));
    return ms_fail(err, MS_E_INVALID, "%.140s: its elements are %s ('%.20s'); write %s%s", name, is,
                   descr, mend[0] == '.' ? array : "", mend);
}

static int read_type(const char *descr, const char *name, struct npy_head *head, struct ms_err *err)
{
    static const char as_float[] = ".astype('float32')";
    const char order = descr[0];
    const char kind = order != '\0' ? descr[1] : '\0';
    const char *digits = order != '\0' && kind != '\0' ? descr + 2 : "";
    const int is_one = digits[0] != '\0' && digits[1] == '\0';
    const int item = is_one ? digits[0] - '0' : 0;
    if (strcmp(descr, "object") == 0 || strcmp(descr, "|O") == 0) {
        return refuse_type(name, descr, "Python objects", "an array of numbers", err);
    }
    if (kind == 'b') {
        return refuse_type(name, descr, "truth values", ".astype('uint8')", err);
    }
    if (kind == 'f' && strcmp(digits, "2") == 0) {
        return refuse_type(name, descr, "half floats", as_float, err);
    }
    if ((kind == 'f' && item != 4 && item != 8) || kind == 'c') {
        return refuse_type(name, descr, kind == 'c' ? "complex numbers" : "long floats", as_float,
                           err);
    }
    if ((kind != 'f' && kind != 'i' && kind != 'u') ||
        (item != 1 && item != 2 && item != 4 && item != 8)) {
        return refuse_type(name, descr, "no numbers", "an array of numbers", err);
    }
    if (order == '>' && item > 1) {
        char mend[64];
        snprintf(mend, sizeof(mend), ".astype('<%c%d')", kind, item);
        return refuse_type(name, descr, "big endian", mend, err);
    }
    if (order != '<' && order != '|' && order != '=' && order != '>') {
        return refuse_type(name, descr, "of an unknown order", as_float, err);
    }
    head->kind = kind == 'f' ? NPY_FLOAT : kind == 'i' ? NPY_SIGNED : NPY_UNSIGNED;
    head->item = item;
    return MS_OK;
}

static int count_elements(const char *name, struct npy_head *head, struct ms_err *err)
{
    head->count = 1;
    for (int i = 0; i < head->n_dims; i++) {
        const int64_t n = head->dim[i];
        if (n == 0) {
            return ms_fail(err, MS_E_INVALID, "%.200s has no elements: dimension %d is 0", name, i);
        }
        if (n > (INT64_MAX >> 4) / head->count) {
            return fail(name, "its dimensions are larger than any file", err);
        }
        head->count *= n;
    }
    return MS_OK;
}

static int read_dictionary(struct reader *r, const char *name, char descr[64], int *ret_fortran,
                           struct npy_head *head, struct ms_err *err)
{
    unsigned seen = 0;
    int more = take(r, '{');
    while (more && !take(r, '}')) {
        char key[32];
        int ok = take_text(r, key, sizeof(key)) && take(r, ':');
        const unsigned bit = !ok                                 ? 0
                             : strcmp(key, "descr") == 0         ? 1U
                             : strcmp(key, "fortran_order") == 0 ? 2U
                             : strcmp(key, "shape") == 0         ? 4U
                                                                 : 0;
        if (bit == 0 || (seen & bit) != 0) {
            return fail(name, "its head has other keys than descr, fortran_order and shape", err);
        }
        seen |= bit;
        if (bit == 1) {
            skip_blanks(r);
            if (r->at < r->end && *r->at == '[') {
                return ms_fail(err, MS_E_INVALID,
                               "%.160s is an array of records with fields; write one field, as "
                               "a['x'], with np.save",
                               name);
            }
        }
        ok = bit == 1   ? take_text(r, descr, 64)
             : bit == 2 ? take_bool(r, ret_fortran)
                        : take_shape(r, head);
        if (!ok) {
            return fail(name, "its head cannot be read", err);
        }
        more = take(r, ',');
        if (!more && !take(r, '}')) {
            return fail(name, "its head does not end", err);
        }
    }
    skip_blanks(r);
    return seen == 7 && r->at == r->end ? MS_OK : fail(name, "its head cannot be read", err);
}

int npy_parse(const uint8_t *bytes, int64_t size, const char *name, struct npy_head *ret,
              struct ms_err *err)
{
    struct npy_head head = {.size = size};
    char descr[64] = "";
    int is_fortran = 0;
    int64_t length = 0;
    int rc = size < NPY_PREFIX ? fail(name, "it ends within its head", err)
                               : npy_measure(bytes, name, &length, err);
    if (rc == MS_OK && length != size) {
        rc = fail(name, "it ends within its head", err);
    }
    if (rc < 0) {
        return rc;
    }
    struct reader r = {(const char *)bytes + (bytes[6] == 1 ? 10 : 12), (const char *)bytes + size};
    rc = read_dictionary(&r, name, descr, &is_fortran, &head, err);
    if (rc == MS_OK) {
        rc = read_type(descr, name, &head, err);
    }
    if (rc == MS_OK && is_fortran && head.n_dims > 1) {
        char array[MS_NAME_MAX + 1];
        name_array(name, array, sizeof(array));
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s is in Fortran's order, its records are not together; write "
                     "np.ascontiguousarray(%s)",
                     name, array);
    }
    rc = rc == MS_OK ? count_elements(name, &head, err) : rc;
    if (rc == MS_OK) {
        *ret = head;
    }
    return rc;
}

/* ---- elements ---- */

int npy_are_finite(const float *values, int64_t n)
{
    const uint32_t all = UINT32_C(0x7F800000); /* the exponent of infinity and NaN */
    int is_bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, values + i, sizeof(bits));
        is_bad |= (bits & all) == all;
    }
    return !is_bad;
}

int64_t npy_whole(const struct npy_head *head, const uint8_t *bytes, int64_t i)
{
    const uint8_t *at = bytes + i * head->item;
    uint64_t value = 0;
    for (int b = head->item; b-- > 0;) {
        value = value << 8 | at[b];
    }
    const int shift = 64 - 8 * head->item;
    if (head->kind == NPY_SIGNED) {
        return (int64_t)(value << shift) >> shift;
    }
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static float from_brain(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value = 0;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

/* binary16: sign, 5 bits of exponent, 10 of fraction; each is a float, too. */
static float from_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 0x1F;
    const float fraction = (float)(bits & 0x3FF);
    const float value = exponent == 0x1F ? (fraction == 0 ? INFINITY : NAN)
                        : exponent == 0  ? ldexpf(fraction, -24)
                                         : ldexpf(1024 + fraction, exponent - 25);
    return bits >> 15 != 0 ? -value : value;
}

void npy_floats(const struct npy_head *head, const uint8_t *bytes, int64_t n, float *dst)
{
    if (head->kind == NPY_FLOAT && head->item == 4) {
        memcpy(dst, bytes, (size_t)n * sizeof(*dst));
    } else if (head->kind == NPY_FLOAT && head->item == 2) {
        for (int64_t i = 0; i < n; i++) {
            const uint16_t bits = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
            dst[i] = head->is_brain ? from_brain(bits) : from_half(bits);
        }
    } else if (head->kind == NPY_FLOAT) {
        for (int64_t i = 0; i < n; i++) {
            double value = 0;
            memcpy(&value, bytes + i * 8, sizeof(value));
            dst[i] = (float)value;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            dst[i] = (float)npy_whole(head, bytes, i);
        }
    }
}
