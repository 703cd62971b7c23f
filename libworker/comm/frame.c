/* frame.c - frames of the data plane after the hello */
#include "libworker/comm/frame.h"

#include "libworker/comm/bytes.h"

#include <string.h>

static const uint8_t magic[4] = {'M', 'S', 'D', '1'};

void frame_encode(const struct frame *frame, uint8_t bytes[FRAME_HEADER])
{
    memcpy(bytes, magic, sizeof(magic));
    put_u16(bytes + 4, frame->type);
    bytes[6] = frame->kind;
    bytes[7] = frame->phase;
    put_u64(bytes + 8, frame->generation);
    put_u64(bytes + 16, frame->step);
    put_u64(bytes + 24, frame->sequence);
    put_u64(bytes + 32, frame->begin);
    put_u64(bytes + 40, frame->offset);
    put_u32(bytes + 48, frame->length);
    put_u32(bytes + 52, frame->group);
}

int frame_decode(const uint8_t bytes[FRAME_HEADER], struct frame *ret, struct ms_err *err)
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        return ms_fail(err, MS_E_PROTOCOL, "bytes %02x %02x %02x %02x where a frame must begin",
                       bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    struct frame frame = {
        .type = get_u16(bytes + 4),
        .kind = bytes[6],
        .phase = bytes[7],
        .generation = get_u64(bytes + 8),
        .step = get_u64(bytes + 16),
        .sequence = get_u64(bytes + 24),
        .begin = get_u64(bytes + 32),
        .offset = get_u64(bytes + 40),
        .length = get_u32(bytes + 48),
        .group = get_u32(bytes + 52),
    };
    if (frame.type != FRAME_DATA && frame.type != FRAME_BYE) {
        return ms_fail(err, MS_E_PROTOCOL, "frame of the unknown type %u", frame.type);
    }
    if (frame.length > MS_DATA_FRAME_MAX || (frame.type == FRAME_BYE && frame.length != 0)) {
        return ms_fail(err, MS_E_PROTOCOL, "frame of type %u with a length of %u bytes", frame.type,
                       frame.length);
    }
    *ret = frame;
    return 0;
}
