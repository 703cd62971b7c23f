/* wire.h - messages of the control plane as bytes: the table of types, frames, safe unpacking
 *
 * A frame is a 16-byte header (all integers big-endian) and a protobuf message:
 *
 *     0      4      6      8         12        16
 *     | MSC1 | type | zero | id      | length  | message ... |
 *
 * id is chosen by the side that asks and repeated in the answer; 0 where no answer is expected.
 * docs/protocol.md has the prose, tests/golden one frame of each type. */
#ifndef MS_WIRE_H
#define MS_WIRE_H

#include "proto/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#define MS_PROTOCOL_VERSION 1U
enum { MS_WIRE_HEADER = 16 };

/* Never renumber. */
enum ms_msg {
    MS_MSG_HELLO = 1,
    MS_MSG_WELCOME = 2,
    MS_MSG_ERROR = 3,
    MS_MSG_OK = 4,
    MS_MSG_REGISTER = 10,
    MS_MSG_HEARTBEAT = 11,
    MS_MSG_RANK_READY = 12,
    MS_MSG_PROGRESS = 13,
    MS_MSG_RANK_DONE = 14,
    MS_MSG_PEER_REPORT = 15,
    MS_MSG_LOG_CHUNK = 16, /* worker -> scheduler, and scheduler -> client */
    MS_MSG_LEAVE = 17,
    MS_MSG_RANK_PLAN = 18,
    MS_MSG_FETCH_READY = 19,
    MS_MSG_REGISTERED = 30,
    MS_MSG_HEARTBEAT_ACK = 31,
    MS_MSG_ASSIGN = 32,
    MS_MSG_START = 33,
    MS_MSG_STOP = 34,
    MS_MSG_LOG_READ = 35,
    MS_MSG_FETCH_GRANT = 37,
    MS_MSG_PLAN = 38,
    MS_MSG_SUBMIT = 50,
    MS_MSG_JOB_QUERY = 51,
    MS_MSG_CANCEL = 52,
    MS_MSG_WATCH = 53,
    MS_MSG_NODE_QUERY = 54,
    MS_MSG_STATUS_QUERY = 55,
    MS_MSG_LOG_QUERY = 56,
    MS_MSG_EVENT_QUERY = 57,
    MS_MSG_FETCH = 58,
    MS_MSG_SUBMITTED = 70,
    MS_MSG_JOB_LIST = 71,
    MS_MSG_JOB_UPDATE = 72,
    MS_MSG_NODE_LIST = 73,
    MS_MSG_STATUS_INFO = 74,
    MS_MSG_EVENT_LIST = 75,
    MS_MSG_FETCH_TICKET = 76,
    MS_MSG_FETCH_READ = 80,  /* client -> node */
    MS_MSG_FETCH_CHUNK = 81, /* node -> client */
};

/* Fetch.what: a result of a job. Never renumber. */
enum ms_fetch {
    MS_FETCH_WEIGHTS = 1,
    MS_FETCH_METRICS = 2,
    MS_FETCH_LOG = 3,
    MS_FETCH_SAVED =
        4, /* of the node with the newest checkpoint, which has no rank 0 now: its log */
};
/* FetchRead.saved: of what the job has saved on that node. Never renumber. */
enum ms_saved {
    MS_SAVED_LIST = 1,     /* which there are (libworker/train/saved_list.h) */
    MS_SAVED_DATA = 2,     /* a checkpoint's data, or the best weights */
    MS_SAVED_MANIFEST = 3, /* a checkpoint's manifest */
    MS_SAVED_LEND = 4,     /* likewise, and another job may go on from what lies there */
    MS_SAVED_BEST = 5,     /* of several best weights those of a step */
};

/* Assign.plan_from: where the plan of a rank comes from. Never renumber. */
enum ms_plan_from {
    MS_PLAN_OWN = 0,    /* each rank chooses for itself: one of them knows no Plan */
    MS_PLAN_RANK_0 = 1, /* rank 0 chooses and says RankPlan; all wait for Plan */
    MS_PLAN_GIVEN = 2,  /* somebody has chosen: all wait for Plan */
};

/* RankReady.state_from: where a rank has its state from. Never renumber. */
enum ms_state_from {
    MS_STATE_KEPT = 0,       /* it had it: it goes on, or its training begins */
    MS_STATE_PULLED = 1,     /* from another rank */
    MS_STATE_CHECKPOINT = 2, /* of which it has read a checkpoint, or another rank has for it */
};

/* Who may send a type; a bit each. A peer's role comes from its certificate or socket (tls.h). */
enum ms_role {
    MS_ROLE_NONE = 0,
    MS_ROLE_WORKER = 1,
    MS_ROLE_USER = 2,
    MS_ROLE_ADMIN = 4,
    MS_ROLE_SCHEDULER = 8,
};

/* "worker", "user", "admin", "scheduler" for exactly one role, else NULL. */
const char *ms_role_name(unsigned role);

struct ms_wire_type {
    uint16_t type;    /* enum ms_msg */
    const char *name; /* "Register" */
    const ProtobufCMessageDescriptor *descriptor;
    uint32_t bytes_max; /* of the packed message */
    unsigned senders;   /* enum ms_role, or-ed */
};

/* Which messages a release knows, told in Register: 0.1 knew those of level 0 and tells nothing.
 * Who is not known to know a type is not sent it: an unknown type ends the line, and a rank with
 * it. */
enum { MS_WIRE_LEVEL = 1 };

/* The level at which a type came in. Any thread. */
unsigned ms_wire_since(uint16_t type);

/* The row of a type, or NULL. Any thread. */
const struct ms_wire_type *ms_wire_find(uint16_t type);
/* Row i, or NULL past the end: for tests, fuzzers and the check against docs. */
const struct ms_wire_type *ms_wire_at(size_t i);

/* The first four bytes of a frame: MS_E_PROTOCOL says what else they look like, so that a stranger
 * is named before a whole header is in (a TLS alert has seven bytes). */
int ms_wire_check_magic(const uint8_t bytes[4], struct ms_err *err);

struct ms_wire_header {
    uint16_t type;
    uint32_t id;
    uint32_t length; /* of the message behind the header */
};

/* Reads a header. MS_E_PROTOCOL names what is wrong: magic (and what it looks like: HTTP, a TLS
 * record, MindSpore's RPC0), unknown type, reserved bits, a length above the type's limit. */
int ms_wire_parse_header(const uint8_t bytes[MS_WIRE_HEADER], struct ms_wire_header *ret,
                         struct ms_err *err);

/* Packed size of header and message. */
size_t ms_wire_size(const ProtobufCMessage *msg);
/* Packs header and message into buf of exactly ms_wire_size bytes. msg's descriptor must be that of
 * type; a message above its limit is MS_E_FULL, one that ms_wire_unpack would refuse (a string too
 * long, a name with control bytes) MS_E_INVALID with the field's name. Prose is mended
 * (ms_wire_mend). */
int ms_wire_pack(uint16_t type, uint32_t id, const ProtobufCMessage *msg, uint8_t *buf, size_t size,
                 struct ms_err *err);
/* The head of a frame whose payload is `own` and then shared_bytes bytes that another call of
 * ms_wire_pack made for the same type (fields of both count, protobuf joins them): what is the same
 * for many readers is packed and checked once. buf holds ms_wire_size(own) bytes. */
int ms_wire_pack_head(uint16_t type, uint32_t id, const ProtobufCMessage *own, size_t shared_bytes,
                      uint8_t *buf, size_t size, struct ms_err *err);

/* Unpacks and validates the length bytes behind a header. Memory comes from one capped arena:
 * destroy the result with ms_wire_free only. Refuses too many unknown fields, strings that
 * are no text (text.h) or over their limit, repeated fields over theirs. Returns owned. */
int ms_wire_unpack(uint16_t type, const uint8_t *bytes, size_t length, ProtobufCMessage **ret,
                   struct ms_err *err);
void ms_wire_free(ProtobufCMessage *msg); /* NULL allowed */

#endif
