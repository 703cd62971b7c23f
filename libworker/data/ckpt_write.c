/* ckpt_write.c - writes MindSpore's checkpoints */
#include "libworker/data/ckpt.h"
#include "proto/file_write.h"
#include "proto/message.h"

#include <stdlib.h>

struct ckpt_writer {
    struct ms_file_new file;
};

/* Fields of the messages in ckpt.h. */
enum { VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 2, DIM = 1, TYPE = 2, CONTENT = 3 };

/* Up to the values of the slice, of size bytes. */
static void make_header(const struct safetensors_entry *entry, uint64_t size,
                        struct ms_message *ret)
{
    struct ms_message tensor = {.bytes = NULL};
    struct ms_message value = {.bytes = NULL};
    for (int i = 0; i < entry->n_dims; i++) {
        ms_message_put_int(&tensor, DIM, entry->dim[i]);
    }
    ms_message_put_text(&tensor, TYPE, "Float32");
    ms_message_put_head(&tensor, CONTENT, size);
    ms_message_put_text(&value, VALUE_TAG, entry->name);
    ms_message_put_begin(&value, VALUE_TENSOR, &tensor, size);
    ms_message_put_begin(ret, VALUE, &value, size);
    ms_message_fini(&tensor);
    ms_message_fini(&value);
}

/* ... and them. */
static int write_slice(const struct ckpt_writer *writer, const struct safetensors_entry *entry,
                       const char *values, size_t size, struct ms_err *err)
{
    struct ms_message header = {.bytes = NULL};
    make_header(entry, size, &header);
    int rc = ms_message_failed(&header)
                 ? ms_fail(err, MS_E_NOMEM, "no memory to write %s", writer->file.path)
                 : ms_file_put(&writer->file, header.bytes, header.n, err);
    ms_message_fini(&header);
    return rc < 0 ? rc : ms_file_put(&writer->file, values, size, err);
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
        rc = write_slice(writer, entry, at, (size_t)size, err);
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
