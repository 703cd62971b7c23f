/* wire.c - frames: the table of types, the header, packing, and unpacking into a capped arena */
#include "proto/wire.h"

#include "proto/cluster.pb-c.h"
#include "proto/limits.h"
#include "proto/wire_check.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'M', 'S', 'C', '1'};

enum {
    ANY = MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN | MS_ROLE_SCHEDULER,
    CLIENT = MS_ROLE_USER | MS_ROLE_ADMIN,
    FLAT = 4096,  /* numbers, names and one reason, with room for fields that a newer peer adds */
    PATHS = 8192, /* ... and up to two paths */
    SPEC = MS_SPEC_MAX + FLAT,                     /* ... and a job's JSON */
    MEMBERS = MS_SPEC_MAX + MS_WORKERS_MAX * 1280, /* a Member: 1 KiB of names, and its Offer */
    PLAN = MS_PLAN_MAX + FLAT,                     /* ... or a plan's text */
    SUBMIT = SPEC + MS_PLAN_MAX,                   /* ... or both */
    LOG = MS_LOG_CHUNK_MAX + FLAT,
    EVENTS = MS_EVENTS_BYTES + FLAT,
    LIST = MS_FRAME_MAX,
};

static const struct ms_wire_type types[] = {
    {MS_MSG_HELLO, "Hello", &ms__hello__descriptor, FLAT, ANY},
    {MS_MSG_WELCOME, "Welcome", &ms__welcome__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_ERROR, "Error", &ms__error__descriptor, FLAT, ANY},
    {MS_MSG_OK, "Ok", &ms__ok__descriptor, FLAT, ANY},
    {MS_MSG_REGISTER, "Register", &ms__register__descriptor, SPEC, MS_ROLE_WORKER},
    {MS_MSG_HEARTBEAT, "Heartbeat", &ms__heartbeat__descriptor, FLAT, MS_ROLE_WORKER},
    {MS_MSG_RANK_READY, "RankReady", &ms__rank_ready__descriptor, PATHS, MS_ROLE_WORKER},
    {MS_MSG_PROGRESS, "Progress", &ms__progress__descriptor, FLAT, MS_ROLE_WORKER},
    {MS_MSG_RANK_DONE, "RankDone", &ms__rank_done__descriptor, PATHS, MS_ROLE_WORKER},
    {MS_MSG_PEER_REPORT, "PeerReport", &ms__peer_report__descriptor, FLAT, MS_ROLE_WORKER},
    {MS_MSG_LOG_CHUNK, "LogChunk", &ms__log_chunk__descriptor, LOG,
     MS_ROLE_WORKER | MS_ROLE_SCHEDULER},
    {MS_MSG_LEAVE, "Leave", &ms__leave__descriptor, FLAT, MS_ROLE_WORKER},
    {MS_MSG_RANK_PLAN, "RankPlan", &ms__rank_plan__descriptor, PLAN, MS_ROLE_WORKER},
    {MS_MSG_FETCH_READY, "FetchReady", &ms__fetch_ready__descriptor, FLAT, MS_ROLE_WORKER},
    {MS_MSG_REGISTERED, "Registered", &ms__registered__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_HEARTBEAT_ACK, "HeartbeatAck", &ms__heartbeat_ack__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_ASSIGN, "Assign", &ms__assign__descriptor, MEMBERS, MS_ROLE_SCHEDULER},
    {MS_MSG_START, "Start", &ms__start__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_STOP, "Stop", &ms__stop__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_LOG_READ, "LogRead", &ms__log_read__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_FETCH_GRANT, "FetchGrant", &ms__fetch_grant__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_PLAN, "Plan", &ms__plan__descriptor, PLAN, MS_ROLE_SCHEDULER},
    {MS_MSG_SUBMIT, "Submit", &ms__submit__descriptor, SUBMIT, CLIENT},
    {MS_MSG_JOB_QUERY, "JobQuery", &ms__job_query__descriptor, FLAT, CLIENT},
    {MS_MSG_CANCEL, "Cancel", &ms__cancel__descriptor, FLAT, CLIENT},
    {MS_MSG_WATCH, "Watch", &ms__watch__descriptor, FLAT, CLIENT},
    {MS_MSG_NODE_QUERY, "NodeQuery", &ms__node_query__descriptor, FLAT, CLIENT},
    {MS_MSG_STATUS_QUERY, "StatusQuery", &ms__status_query__descriptor, FLAT, CLIENT},
    {MS_MSG_LOG_QUERY, "LogQuery", &ms__log_query__descriptor, FLAT, CLIENT},
    {MS_MSG_EVENT_QUERY, "EventQuery", &ms__event_query__descriptor, FLAT, CLIENT},
    {MS_MSG_FETCH, "Fetch", &ms__fetch__descriptor, FLAT, CLIENT},
    {MS_MSG_SUBMITTED, "Submitted", &ms__submitted__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_JOB_LIST, "JobList", &ms__job_list__descriptor, LIST, MS_ROLE_SCHEDULER},
    {MS_MSG_JOB_UPDATE, "JobUpdate", &ms__job_update__descriptor, LIST, MS_ROLE_SCHEDULER},
    {MS_MSG_NODE_LIST, "NodeList", &ms__node_list__descriptor, LIST, MS_ROLE_SCHEDULER},
    {MS_MSG_STATUS_INFO, "StatusInfo", &ms__status_info__descriptor, PATHS, MS_ROLE_SCHEDULER},
    {MS_MSG_EVENT_LIST, "EventList", &ms__event_list__descriptor, EVENTS, MS_ROLE_SCHEDULER},
    {MS_MSG_FETCH_TICKET, "FetchTicket", &ms__fetch_ticket__descriptor, FLAT, MS_ROLE_SCHEDULER},
    {MS_MSG_FETCH_READ, "FetchRead", &ms__fetch_read__descriptor, FLAT, CLIENT},
    {MS_MSG_FETCH_CHUNK, "FetchChunk", &ms__fetch_chunk__descriptor, LOG,
     MS_ROLE_WORKER | MS_ROLE_SCHEDULER}, /* where nobody vouches, a client sees a scheduler */
};

/* What 0.1 did not know. The next release's additions are of the next level. */
static const struct {
    uint16_t type;
    unsigned since;
} newer[] = {
    {MS_MSG_FETCH_READY, 1}, {MS_MSG_FETCH_GRANT, 1}, {MS_MSG_EVENT_QUERY, 1},
    {MS_MSG_FETCH, 1},       {MS_MSG_EVENT_LIST, 1},  {MS_MSG_FETCH_TICKET, 1},
    {MS_MSG_FETCH_READ, 1},  {MS_MSG_FETCH_CHUNK, 1}, {MS_MSG_RANK_PLAN, 1},
    {MS_MSG_PLAN, 1},
};

unsigned ms_wire_since(uint16_t type)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(newer); i++) {
        if (newer[i].type == type) {
            return newer[i].since;
        }
    }
    return 0;
}

const struct ms_wire_type *ms_wire_find(uint16_t type)
{
    /* in the order of their numbers; asked for several times a frame */
    size_t low = 0;
    size_t high = MS_ARRAY_SIZE(types);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (types[middle].type == type) {
            return &types[middle];
        }
        if (types[middle].type < type) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const struct ms_wire_type *ms_wire_at(size_t i)
{
    return i < MS_ARRAY_SIZE(types) ? &types[i] : NULL;
}

const char *ms_role_name(unsigned role)
{
    switch (role) {
    case MS_ROLE_WORKER:
        return "worker";
    case MS_ROLE_USER:
        return "user";
    case MS_ROLE_ADMIN:
        return "admin";
    case MS_ROLE_SCHEDULER:
        return "scheduler";
    default:
        return NULL;
    }
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 24);
    p[1] = (uint8_t)(value >> 16);
    p[2] = (uint8_t)(value >> 8);
    p[3] = (uint8_t)value;
}

/* What the first four bytes of a stranger look like. */
static const struct {
    const char *bytes;
    size_t size;
    const char *what;
} strangers[] = {
    {"GET ", 4, "an HTTP request: this is no web server"},
    {"POST", 4, "an HTTP request: this is no web server"},
    {"PUT ", 4, "an HTTP request: this is no web server"},
    {"HEAD", 4, "an HTTP request: this is no web server"},
    {"OPTI", 4, "an HTTP request: this is no web server"},
    {"DELE", 4, "an HTTP request: this is no web server"},
    {"PRI ", 4, "an HTTP/2 request: this is no web server"},
    {"HTTP", 4, "an HTTP answer: the address is that of a web server"},
    {"RPC0", 4, "a frame of MindSpore's own RPC: start msworker or msschedd on both ends"},
    {"SSH-", 4, "an SSH greeting: the address is that of an SSH server"},
    {"\x16\x03", 2, "a TLS handshake, and this end is plain: switch TLS on or off on both ends"},
    {"\x15\x03", 2, "a TLS alert, and this end is plain: switch TLS on or off on both ends"},
};

int ms_wire_check_magic(const uint8_t bytes[4], struct ms_err *err)
{
    if (memcmp(bytes, magic, sizeof(magic)) == 0) {
        return MS_OK;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(strangers); i++) {
        if (memcmp(bytes, strangers[i].bytes, strangers[i].size) == 0) {
            return ms_fail(err, MS_E_PROTOCOL, "the bytes received are %s", strangers[i].what);
        }
    }
    if (memcmp(bytes, magic, 3) == 0) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "the peer speaks another frame format (MSC%c, here MSC1): install the same "
                       "release on both ends",
                       bytes[3] > 0x20 && bytes[3] < 0x7f ? (char)bytes[3] : '?');
    }
    return ms_fail(err, MS_E_PROTOCOL,
                   "the bytes received (%02x %02x %02x %02x) are no frame of msched: check host "
                   "and port",
                   bytes[0], bytes[1], bytes[2], bytes[3]);
}

int ms_wire_parse_header(const uint8_t bytes[MS_WIRE_HEADER], struct ms_wire_header *ret,
                         struct ms_err *err)
{
    int rc = ms_wire_check_magic(bytes, err);
    if (rc != MS_OK) {
        return rc;
    }
    uint16_t number = (uint16_t)((uint16_t)bytes[4] << 8 | bytes[5]);
    uint32_t length = get32(bytes + 12);
    const struct ms_wire_type *type = ms_wire_find(number);
    if (type == NULL) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "frame of unknown type %u: a newer release on the other end?", number);
    }
    if (bytes[6] != 0 || bytes[7] != 0) {
        return ms_fail(err, MS_E_PROTOCOL, "%s frame with reserved bits %02x%02x set", type->name,
                       bytes[6], bytes[7]);
    }
    if (length > type->bytes_max) {
        return ms_fail(err, MS_E_PROTOCOL, "%s frame of %u bytes, the limit is %u", type->name,
                       length, type->bytes_max);
    }
    ret->type = number;
    ret->id = get32(bytes + 8);
    ret->length = length;
    return MS_OK;
}

size_t ms_wire_size(const ProtobufCMessage *msg)
{
    return MS_WIRE_HEADER + protobuf_c_message_get_packed_size(msg);
}

int ms_wire_pack_head(uint16_t type, uint32_t id, const ProtobufCMessage *own, size_t shared_bytes,
                      uint8_t *buf, size_t size, struct ms_err *err)
{
    const struct ms_wire_type *row = ms_wire_find(type);
    assert(row != NULL && row->descriptor == own->descriptor && size >= MS_WIRE_HEADER);
    size_t length = size - MS_WIRE_HEADER;
    if (shared_bytes > row->bytes_max || length > row->bytes_max - shared_bytes) {
        return ms_fail(err, MS_E_FULL, "%s message of %zu bytes, the limit is %u", row->name,
                       length + shared_bytes, row->bytes_max);
    }
    size_t packed = protobuf_c_message_pack(own, buf + MS_WIRE_HEADER);
    assert(packed == length);
    (void)packed;
    ms_wire_mend(row->descriptor, buf + MS_WIRE_HEADER, length);
    /* what the other end would refuse is better refused here, where the cause is */
    int rc = ms_wire_check(row->descriptor, buf + MS_WIRE_HEADER, length, err);
    if (rc != MS_OK) {
        return ms_err_recode(err, MS_E_INVALID);
    }
    memcpy(buf, magic, sizeof(magic));
    buf[4] = (uint8_t)(type >> 8);
    buf[5] = (uint8_t)type;
    buf[6] = 0;
    buf[7] = 0;
    put32(buf + 8, id);
    put32(buf + 12, (uint32_t)(length + shared_bytes));
    return MS_OK;
}

int ms_wire_pack(uint16_t type, uint32_t id, const ProtobufCMessage *msg, uint8_t *buf, size_t size,
                 struct ms_err *err)
{
    return ms_wire_pack_head(type, id, msg, 0, buf, size, err);
}

/* protobuf-c allocates up to 44 times the frame (a hostile mix of unknown fields). One block with a
 * cap bounds that, and makes freeing one call. The message is the block's first allocation:
 *
 *     | struct arena | message | strings, arrays, scratch of the scanner ... |
 */
struct arena {
    size_t size;
    size_t used;
    int overrun; /* an allocation did not fit */
    ProtobufCAllocator allocator;
};

enum { ARENA_ALIGN = 16, ARENA_HEAD = (sizeof(struct arena) + ARENA_ALIGN - 1) & ~15UL };

static void *arena_alloc(void *data, size_t size)
{
    struct arena *arena = (struct arena *)data;
    size_t room = arena->size - arena->used;
    if (size > room || ((size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1)) > room) {
        arena->overrun = 1;
        return NULL;
    }
    void *p = (uint8_t *)arena + arena->used;
    arena->used += (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    return p;
}

static void arena_free(void *data, void *p)
{
    (void)data;
    (void)p;
}

static struct arena *arena_create(size_t frame)
{
    size_t size = MS_UNPACK_FACTOR * frame + 4096; /* frame <= MS_FRAME_MAX: no overflow */
    if (size > MS_UNPACK_MAX) {
        size = MS_UNPACK_MAX;
    }
    struct arena *arena = (struct arena *)malloc(ARENA_HEAD + size);
    if (arena != NULL) {
        arena->size = ARENA_HEAD + size;
        arena->used = ARENA_HEAD;
        arena->overrun = 0;
        arena->allocator.alloc = arena_alloc;
        arena->allocator.free = arena_free;
        arena->allocator.allocator_data = arena;
    }
    return arena;
}

int ms_wire_unpack(uint16_t type, const uint8_t *bytes, size_t length, ProtobufCMessage **ret,
                   struct ms_err *err)
{
    const struct ms_wire_type *row = ms_wire_find(type);
    if (row == NULL) {
        return ms_fail(err, MS_E_PROTOCOL, "frame of unknown type %u", type);
    }
    if (length > row->bytes_max) {
        return ms_fail(err, MS_E_PROTOCOL, "%s frame of %zu bytes, the limit is %u", row->name,
                       length, row->bytes_max);
    }
    int rc = ms_wire_check(row->descriptor, bytes, length, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct arena *arena = arena_create(length);
    if (arena == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to unpack a %s frame", row->name);
    }
    /* protobuf-c wants a non-NULL pointer even for no bytes at all */
    static const uint8_t nothing[1] = {0};
    ProtobufCMessage *msg = protobuf_c_message_unpack(row->descriptor, &arena->allocator, length,
                                                      length > 0 ? bytes : nothing);
    if (msg == NULL) {
        rc = ms_fail(err, MS_E_PROTOCOL,
                     arena->overrun ? "%s frame of %zu bytes unpacks into more memory than allowed"
                                    : "%s frame of %zu bytes is no valid message",
                     row->name, length);
        free(arena);
        return rc;
    }
    assert((uint8_t *)msg == (uint8_t *)arena + ARENA_HEAD);
    *ret = msg;
    return MS_OK;
}

void ms_wire_free(ProtobufCMessage *msg)
{
    if (msg != NULL) {
        free((uint8_t *)msg - ARENA_HEAD);
    }
}
