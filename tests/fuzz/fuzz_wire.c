/* fuzz_wire.c - a stream of frames as it comes from a socket: headers, then messages */
#include "proto/wire.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* What was understood must survive being written and read again. */
static void write_and_read(const struct ms_wire_header *head, const ProtobufCMessage *msg)
{
    struct ms_err err = {0, ""};
    struct ms_wire_header again;
    ProtobufCMessage *twin = NULL;
    size_t size = ms_wire_size(msg);
    uint8_t *frame = (uint8_t *)malloc(size);
    FUZZ_CHECK(frame != NULL);
    int rc = ms_wire_pack(head->type, head->id, msg, frame, size, &err);
    if (rc == MS_E_FULL) { /* a negative int32 in five bytes is written in ten */
        FUZZ_CHECK(size - MS_WIRE_HEADER > head->length);
        free(frame);
        return;
    }
    FUZZ_CHECK(rc == MS_OK);
    FUZZ_CHECK(ms_wire_parse_header(frame, &again, &err) == MS_OK);
    FUZZ_CHECK(again.type == head->type && again.id == head->id);
    rc = ms_wire_unpack(again.type, frame + MS_WIRE_HEADER, again.length, &twin, &err);
    /* the shorter frame has a smaller allowance of memory, which is the only excuse */
    FUZZ_CHECK(rc == MS_OK || strstr(err.text, "more memory") != NULL);
    if (rc == MS_OK) {
        FUZZ_CHECK(ms_wire_size(twin) == size);
    }
    ms_wire_free(twin);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    while (size >= MS_WIRE_HEADER) {
        struct ms_wire_header head;
        struct ms_err err = {0, ""};
        ProtobufCMessage *msg = NULL;
        if (ms_wire_parse_header(data, &head, &err) != MS_OK) {
            FUZZ_CHECK(err.code == MS_E_PROTOCOL && err.text[0] != '\0');
            return 0;
        }
        size_t length = size - MS_WIRE_HEADER < head.length ? size - MS_WIRE_HEADER : head.length;
        head.length = (uint32_t)length;
        int rc = ms_wire_unpack(head.type, data + MS_WIRE_HEADER, length, &msg, &err);
        FUZZ_CHECK(rc == MS_OK || (rc == MS_E_PROTOCOL && err.text[0] != '\0'));
        if (rc == MS_OK) {
            write_and_read(&head, msg);
        }
        ms_wire_free(msg);
        data += MS_WIRE_HEADER + length;
        size -= MS_WIRE_HEADER + length;
    }
    return 0;
}
