/* skim.c - from a file of gigabytes the few of its bytes that are no weights
 *
 * A protobuf is fields, one behind the other: a tag (number << 3 | wire type) and a value; a
 * message inside is a field with a length. Three levels are walked here, model, graph and
 * initializer; raw_data that are long are passed over, and their place is noted. Each length is
 * held against the end of what it stands in. */
#include "libworker/onnx/skim.h"

#include "libworker/data/source.h"
#include "proto/grow.h"
#include "proto/limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW = 9 };

/* What the model is read for. */
static const unsigned model_fields[] = {1, 2, 3, 8, 0};
static const unsigned graph_fields[] = {1, 2, 11, 12, 0};
static const unsigned tensor_fields[] = {1, 2, 4, 5, 7, 8, 13, 14, 0};

struct window {
    int fd;
    const char *path;
    uint64_t at, size; /* of the file */
    uint64_t first;    /* byte of the file that bytes[0] is */
    size_t n;
    uint8_t bytes[1 << 16];
    struct ms_err *err;
};

struct bytes {
    uint8_t *at;
    size_t n, room;
};

static int fail(const struct window *w, const char *why)
{
    return ms_fail(w->err, MS_E_INVALID,
                   "%.160s: byte %llu: %s; the file is damaged or no ONNX model", w->path,
                   (unsigned long long)w->at, why);
}

/* ---- the file ---- */

static int read_byte(struct window *w, uint64_t end, uint8_t *ret)
{
    if (w->at >= end) {
        return fail(w, "a value ends too early");
    }
    if (w->at < w->first || w->at >= w->first + w->n) {
        const uint64_t left = w->size - w->at;
        w->first = w->at;
        w->n = left < sizeof(w->bytes) ? (size_t)left : sizeof(w->bytes);
        int rc = source_pread(w->fd, w->bytes, w->n, (int64_t)w->first, w->path, w->err);
        if (rc < 0) {
            w->n = 0;
            return rc;
        }
    }
    *ret = w->bytes[w->at++ - w->first];
    return MS_OK;
}

static int read_varint(struct window *w, uint64_t end, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = 0;
        int rc = read_byte(w, end, &byte);
        if (rc < 0) {
            return rc;
        }
        value |= shift < 64 ? (uint64_t)(byte & 0x7F) << shift : 0;
        if ((byte & 0x80) == 0) {
            *ret = value;
            return MS_OK;
        }
    }
    return fail(w, "a number of more than 64 bits");
}

/* ---- what is kept ---- */

static int put(struct window *w, struct bytes *dst, const uint8_t *src, size_t n)
{
    if (n > MS_ONNX_SKIM_MAX - dst->n) {
        return ms_fail(w->err, MS_E_INVALID,
                       "%.160s: more than %u MiB beside its weights; export the model without "
                       "constants of that size",
                       w->path, MS_ONNX_SKIM_MAX >> 20);
    }
    uint8_t *grown = n > 0 ? ms_grow(dst->at, dst->n, n, 1, &dst->room) : dst->at;
    if (n > 0 && grown == NULL) {
        return ms_fail(w->err, MS_E_NOMEM, "%.160s: no memory to read it", w->path);
    }
    dst->at = grown;
    memcpy(dst->at + dst->n, src, n);
    dst->n += n;
    return MS_OK;
}

static int put_varint(struct window *w, struct bytes *dst, uint64_t value)
{
    uint8_t buf[10];
    size_t n = 0;
    do {
        buf[n++] = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    return put(w, dst, buf, n);
}

/* A message as a field. */
static int put_message(struct window *w, struct bytes *dst, unsigned field,
                       const struct bytes *message)
{
    int rc = put_varint(w, dst, field << 3 | WIRE_BYTES);
    rc = rc < 0 ? rc : put_varint(w, dst, message->n);
    return rc < 0 || message->n == 0 ? rc : put(w, dst, message->at, message->n);
}

static int copy(struct window *w, struct bytes *dst, uint64_t n)
{
    int rc = n <= MS_ONNX_SKIM_MAX ? MS_OK : put(w, dst, NULL, SIZE_MAX);
    for (uint64_t end = w->at + n; rc == MS_OK && w->at < end;) {
        uint8_t byte = 0;
        rc = read_byte(w, end, &byte); /* fills the window */
        const uint64_t here = w->first + w->n - w->at;
        const size_t more = (size_t)(here < end - w->at ? here : end - w->at);
        rc = rc < 0 ? rc : put(w, dst, &w->bytes[w->at - w->first - 1], more + 1);
        w->at += more;
    }
    return rc;
}

/* ---- fields ---- */

struct field {
    unsigned number;
    enum wire wire;
    uint64_t value; /* of a varint */
    uint64_t size;  /* of what follows: bytes, or a fixed number */
};

static int read_field(struct window *w, uint64_t end, struct field *ret)
{
    uint64_t tag = 0;
    int rc = read_varint(w, end, &tag);
    if (rc < 0) {
        return rc;
    }
    if (tag >> 3 == 0 || tag >> 3 > (1U << 29)) {
        return fail(w, "a field without a number");
    }
    *ret = (struct field){.number = (unsigned)(tag >> 3), .wire = (enum wire)(tag & 7)};
    switch (ret->wire) {
    case WIRE_VARINT:
        return read_varint(w, end, &ret->value);
    case WIRE_64:
        ret->size = 8;
        break;
    case WIRE_32:
        ret->size = 4;
        break;
    case WIRE_BYTES:
        rc = read_varint(w, end, &ret->size);
        break;
    default:
        return fail(w, "a field of an unknown kind");
    }
    return rc < 0 ? rc : ret->size <= end - w->at ? MS_OK : fail(w, "a field that has no end");
}

static int is_kept(const unsigned *fields, unsigned number)
{
    while (*fields != 0 && *fields != number) {
        fields++;
    }
    return *fields != 0;
}

/* As it is, or passed over. */
static int pass(struct window *w, const struct field *field, const unsigned *fields,
                struct bytes *dst)
{
    if (!is_kept(fields, field->number)) {
        w->at += field->size;
        return MS_OK;
    }
    int rc = put_varint(w, dst, (uint64_t)field->number << 3 | field->wire);
    if (rc == MS_OK && field->wire == WIRE_VARINT) {
        return put_varint(w, dst, field->value);
    }
    if (rc == MS_OK && field->wire == WIRE_BYTES) {
        rc = put_varint(w, dst, field->size);
    }
    return rc < 0 ? rc : copy(w, dst, field->size);
}

/* ---- a tensor, the graph, the model ---- */

static int skim_tensor(struct window *w, uint64_t end, struct onnx_skim *skim, struct bytes *graph)
{
    static const unsigned with_raw[] = {TENSOR_RAW, 0};
    struct bytes tensor = {NULL, 0, 0};
    struct onnx_raw raw = {0, 0, 0};
    int rc = MS_OK;
    while (rc == MS_OK && w->at < end) {
        struct field field;
        rc = read_field(w, end, &field);
        if (rc == MS_OK && field.number == TENSOR_RAW && field.wire == WIRE_BYTES) {
            raw = (struct onnx_raw){w->at, field.size, field.size > ONNX_INLINE_MAX};
            rc = pass(w, &field, raw.is_out ? tensor_fields : with_raw, &tensor);
        } else if (rc == MS_OK) {
            rc = pass(w, &field, tensor_fields, &tensor);
        }
    }
    rc = rc < 0 ? rc : put_message(w, graph, GRAPH_INITIALIZER, &tensor);
    free(tensor.at);
    if (rc == MS_OK && skim->n_raw == MS_ONNX_TENSORS_MAX) {
        rc = ms_fail(w->err, MS_E_INVALID, "%.160s: more than %d initializers", w->path,
                     MS_ONNX_TENSORS_MAX);
    }
    void *grown = rc < 0 ? NULL : ms_grow(skim->raw, skim->n_raw, 1, sizeof(raw), &skim->raw_room);
    if (rc == MS_OK && grown == NULL) {
        rc = ms_fail(w->err, MS_E_NOMEM, "%.160s: no memory to read it", w->path);
    }
    if (rc == MS_OK) {
        skim->raw = grown;
        skim->raw[skim->n_raw++] = raw;
    }
    return rc;
}

static int skim_graph(struct window *w, uint64_t end, struct onnx_skim *skim, struct bytes *model)
{
    struct bytes graph = {NULL, 0, 0};
    int rc = MS_OK;
    while (rc == MS_OK && w->at < end) {
        struct field field;
        rc = read_field(w, end, &field);
        if (rc == MS_OK && field.number == GRAPH_INITIALIZER && field.wire == WIRE_BYTES) {
            rc = skim_tensor(w, w->at + field.size, skim, &graph);
        } else if (rc == MS_OK) {
            rc = pass(w, &field, graph_fields, &graph);
        }
    }
    rc = rc < 0 ? rc : put_message(w, model, MODEL_GRAPH, &graph);
    free(graph.at);
    return rc;
}

static int skim_model(struct window *w, struct onnx_skim *skim, struct bytes *model)
{
    int n_graphs = 0;
    int rc = MS_OK;
    while (rc == MS_OK && w->at < w->size) {
        struct field field;
        rc = read_field(w, w->size, &field);
        if (rc == MS_OK && field.number == MODEL_GRAPH && field.wire == WIRE_BYTES) {
            rc = ++n_graphs == 1 ? skim_graph(w, w->at + field.size, skim, model)
                                 : fail(w, "a second graph");
        } else if (rc == MS_OK) {
            rc = pass(w, &field, model_fields, model);
        }
    }
    return rc == MS_OK && n_graphs == 0 ? fail(w, "it has no graph") : rc;
}

int onnx_skim(int fd, const char *path, struct onnx_skim *ret, struct ms_err *err)
{
    struct stat st;
    struct bytes model = {NULL, 0, 0};
    struct onnx_skim skim = {.bytes = NULL};
    struct window *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", path);
    }
    w->fd = fd;
    w->path = path;
    w->err = err;
    int rc = fstat(fd, &st) == 0 ? MS_OK
                                 : ms_fail_errno(err, MS_E_IO, "%.200s cannot be looked at", path);
    if (rc == MS_OK) {
        w->size = (uint64_t)st.st_size;
        rc = skim_model(w, &skim, &model);
    }
    free(w);
    skim.bytes = model.at;
    skim.size = model.n;
    if (rc < 0) {
        onnx_skim_fini(&skim);
        return rc;
    }
    *ret = skim;
    return MS_OK;
}

void onnx_skim_fini(struct onnx_skim *skim)
{
    free(skim->bytes);
    free(skim->raw);
    *skim = (struct onnx_skim){.bytes = NULL};
}
