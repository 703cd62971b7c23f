/* frame.h - frames of the data plane after the hello: a 56-byte header, then the payload
 *
 *     0      4      6      7       8            16     24         32      40       48       52
 *     | MSD1 | type | kind | phase | generation | step | sequence | begin | offset | length |
 *     52      56
 *     | group | payload ...
 *
 * Integers are big-endian, floats in the payload little-endian as they lie in memory. */
#ifndef FRAME_H
#define FRAME_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stdint.h>

enum { FRAME_HEADER = 56 };

enum frame_type {
    FRAME_DATA = 1,
    FRAME_BYE = 2, /* the last frame of a rank that leaves on purpose */
};

/* Of BYE: why. begin then names the rank at fault, or FRAME_NOBODY. */
enum { FRAME_BYE_DONE = 0, FRAME_BYE_ABORTED = 1 };
#define FRAME_NOBODY UINT64_MAX

struct frame {
    uint16_t type;
    uint8_t kind;  /* DATA: enum mesh_kind, so that ranks which disagree are told */
    uint8_t phase; /* DATA: which part of the collective; BYE: why */
    uint64_t generation;
    uint64_t step;     /* for people; sequence decides */
    uint64_t sequence; /* collectives of this generation are counted from 1 */
    uint64_t begin;    /* what the payload is about, e.g. the first float of the slice */
    uint64_t offset;   /* bytes of the same (sequence, phase, begin) that came before */
    uint32_t length;   /* bytes of payload, <= MS_DATA_FRAME_MAX */
    uint32_t group;    /* 0: all ranks */
};

void frame_encode(const struct frame *frame, uint8_t bytes[FRAME_HEADER]);
/* MS_E_PROTOCOL: magic, type or length are wrong. */
int frame_decode(const uint8_t bytes[FRAME_HEADER], struct frame *ret, struct ms_err *err);

#endif
