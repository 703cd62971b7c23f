/* read.c - answers that need what only the database has */
#include "daemon/store/store_private.h"
#include "proto/wire.h"

#include <stdlib.h>

/* Returns owned; NULL without memory, or too large for a frame. */
static uint8_t *pack(const struct sched_read *read, uint16_t type, const ProtobufCMessage *msg,
                     size_t *ret_bytes, struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    uint8_t *frame = malloc(size);
    if (frame == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for an answer of %zu bytes", size);
        return NULL;
    }
    if (ms_wire_pack(type, read->frame_id, msg, frame, size, err) < 0) {
        free(frame);
        return NULL;
    }
    *ret_bytes = size;
    return frame;
}

static uint8_t *answer_spec(struct store *store, const struct sched_read *read, size_t *ret_bytes,
                            struct ms_err *err)
{
    struct binder binder = bind_begin(store, ST_READ_SPEC);
    uint8_t *frame = NULL;
    bind_int(&binder, (int64_t)read->job);
    int rc = binder.rc == SQLITE_OK ? sqlite3_step(binder.statement) : binder.rc;
    int is_whole = rc == SQLITE_ROW && sqlite3_column_int(binder.statement, 1) == 1;
    if (is_whole) {
        struct reader reader = {.statement = binder.statement};
        size_t size = 0;
        read->list->jobs[0]->job_json.data = (uint8_t *)read_blob(&reader, &size);
        read->list->jobs[0]->job_json.len = size;
        frame = pack(read, MS_MSG_JOB_LIST, &read->list->base, ret_bytes, err);
        read->list->jobs[0]->job_json = (ProtobufCBinaryData){0, NULL};
    } else if (rc == SQLITE_DONE) { /* the tick that asked let it go */
        ms_fail(err, MS_E_NOT_FOUND,
                "job %llu does not exist any more: newer ones have taken its place in the history",
                (unsigned long long)read->job);
    } else {
        ms_fail(err, MS_E_IO, "the description of job %llu cannot be read from database %s: %s",
                (unsigned long long)read->job, store->path,
                rc == SQLITE_ROW ? "it does not match its digest" : sqlite3_errstr(rc));
    }
    sqlite3_reset(binder.statement);
    sqlite3_clear_bindings(binder.statement);
    return frame;
}

uint8_t *store_answer(struct store *store, const struct sched_read *read, size_t *ret_bytes)
{
    struct ms_err err = {0, ""};
    uint8_t *frame = answer_spec(store, read, ret_bytes, &err);
    if (frame == NULL) {
        Ms__Error msg = MS__ERROR__INIT;
        msg.code = err.code;
        msg.text = err.text;
        frame = pack(read, MS_MSG_ERROR, &msg.base, ret_bytes, NULL);
    }
    return frame;
}
