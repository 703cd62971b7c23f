/* ckpt_write.c - writes MindSpore's checkpoints */
#include "libworker/data/ckpt.h"
#include "proto/file_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ckpt_writer {
    struct ms_file_new file;
};

enum {
    VARINT_MAX = 10,
    KEY_TAG = 0x0A,
    KEY_TENSOR = 0x12,
    KEY_DIM = 0x08,
    KEY_TYPE = 0x12,
    KEY_CONTENT = 0x1A,
    KEY_VALUE = 0x0A
};

struct text { /* of a header: name, dims and lengths */
    uint8_t bytes[SAFETENSORS_NAME_MAX + (SAFETENSORS_DIMS_MAX + 6) * (VARINT_MAX + 1) + 16];
    size_t n;
};

static void put_varint(struct text *text, uint64_t value)
{
    while (value >= 0x80) {
        text->bytes[text->n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    text->bytes[text->n++] = (uint8_t)value;
}

static void put_bytes(struct text *text, uint8_t key, const void *bytes, size_t size)
{
    text->bytes[text->n++] = key;
    put_varint(text, size);
    memcpy(text->bytes + text->n, bytes, size);
    text->n += size;
}

static size_t varint_size(uint64_t value)
{
    struct text text = {.n = 0};
    put_varint(&text, value);
    return text.n;
}

/* Up to the values of the slice, of size bytes. */
static void make_header(const struct safetensors_entry *entry, uint64_t size, struct text *ret)
{
    static const char type[] = "Float32";
    struct text tensor = {.n = 0};
    struct text tag = {.n = 0};
    for (int i = 0; i < entry->n_dims; i++) {
        tensor.bytes[tensor.n++] = KEY_DIM;
        put_varint(&tensor, (uint64_t)entry->dim[i]);
    }
    put_bytes(&tensor, KEY_TYPE, type, sizeof(type) - 1);
    tensor.bytes[tensor.n++] = KEY_CONTENT;
    put_varint(&tensor, size);
    put_bytes(&tag, KEY_TAG, entry->name, strlen(entry->name));
    const uint64_t tensor_size = tensor.n + size;
    ret->n = 0;
    ret->bytes[ret->n++] = KEY_VALUE;
    put_varint(ret, tag.n + 1 + varint_size(tensor_size) + tensor_size);
    memcpy(ret->bytes + ret->n, tag.bytes, tag.n);
    ret->n += tag.n;
    ret->bytes[ret->n++] = KEY_TENSOR;
    put_varint(ret, tensor_size);
    memcpy(ret->bytes + ret->n, tensor.bytes, tensor.n);
    ret->n += tensor.n;
}

static int write_all(const struct ckpt_writer *writer, const void *bytes, size_t size,
                     struct ms_err *err)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t n = write(writer->file.fd, at, size);
        if (n < 0 && errno != EINTR) {
            return ms_fail_errno(err, MS_E_IO, "cannot write %s", writer->file.path);
        }
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return MS_OK;
}

int ckpt_create(const char *path, struct ckpt_writer **ret, struct ms_err *err)
{
    struct ckpt_writer *writer = calloc(1, sizeof(*writer));
    if (writer == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to write %s", path);
    }
    int rc = ms_file_begin(path, 0666, &writer->file, err);
    if (rc < 0) {
        free(writer);
        return rc;
    }
    *ret = writer;
    return MS_OK;
}

int ckpt_put(struct ckpt_writer *writer, const struct safetensors_entry *entry, const float *data,
             struct ms_err *err)
{
    uint64_t rest = sizeof(float);
    for (int i = 0; i < entry->n_dims; i++) {
        rest *= (uint64_t)entry->dim[i];
    }
    const char *at = (const char *)data;
    int rc = MS_OK;
    do { /* one without elements has a value, too */
        const uint64_t size = rest < CKPT_SLICE_MAX ? rest : CKPT_SLICE_MAX;
        struct text header;
        make_header(entry, size, &header);
        rc = write_all(writer, header.bytes, header.n, err);
        rc = rc < 0 ? rc : write_all(writer, at, (size_t)size, err);
        at += size;
        rest -= size;
    } while (rc == MS_OK && rest > 0);
    return rc;
}

int ckpt_finish(struct ckpt_writer *writer, struct ms_err *err)
{
    int rc = ms_file_end(&writer->file, 0, err);
    free(writer);
    return rc;
}

void ckpt_abandon(struct ckpt_writer *writer)
{
    if (writer != NULL) {
        ms_file_drop(&writer->file);
        free(writer);
    }
}
