/* wire_check.c - judges the bytes of a message before anything is allocated for it
 *
 * Protocol buffers encoding: https://protobuf.dev/programming-guides/encoding/ */
#include "proto/wire_check.h"

#include "proto/limits.h"

#include <assert.h>
#include <string.h>

/* Limits of fields by name: a name means the same thing in every message of cluster.proto. */
struct field_limit {
    const char *name;
    size_t max;  /* bytes of a string or bytes field, count of a repeated one */
    size_t min;  /* when not empty */
    int is_text; /* prose: may hold newlines and tabs */
};

static const struct field_limit field_limits[] = {
    {"activity", MS_TEXT_MAX, 0, 0},
    {"address", MS_ADDR_MAX, 0, 0},
    {"cert_name", MS_NAME_MAX, 0, 0},
    {"cert_sha256", 64, 0, 0},
    {"cluster", MS_NAME_MAX, 0, 0},
    {"data", MS_LOG_CHUNK_MAX, 0, 0},
    {"data_address", MS_ADDR_MAX, 0, 0},
    {"data_unix", MS_ADDR_MAX, 0, 0},
    {"database", MS_PATH_MAX, 0, 0},
    {"evals", MS_EVALS_MAX, 0, 0},
    {"host_id", MS_HOST_MAX, 0, 0},
    {"host_name", MS_HOST_MAX, 0, 0},
    {"isa", MS_NAME_MAX, 0, 0},
    {"job_json", MS_SPEC_MAX, 0, 0},
    {"jobs", MS_LIST_PAGE_MAX, 0, 0},
    {"key", MS_NAME_MAX, 0, 0},
    {"log_path", MS_PATH_MAX, 0, 0},
    {"members", MS_WORKERS_MAX, 0, 0},
    {"name", MS_NAME_MAX, 0, 0},
    {"node_id", MS_NAME_MAX, 0, 0},
    {"nodes", MS_LIST_PAGE_MAX, 0, 0},
    {"onednn", MS_NAME_MAX, 0, 0},
    {"owner", MS_NAME_MAX, 0, 0},
    {"phase", MS_NAME_MAX, 0, 0},
    {"plan_sha256", 64, 0, 0},
    {"ranks", MS_WORKERS_MAX, 0, 0},
    {"reason", MS_TEXT_MAX, 0, 1},
    {"run_dir", MS_PATH_MAX, 0, 0},
    {"sha256", 64, 0, 0},
    {"software", MS_NAME_MAX, 0, 0},
    {"state", MS_NAME_MAX, 0, 0},
    {"text", MS_TEXT_MAX, 0, 1},
    {"token", MS_TOKEN_LEN, MS_TOKEN_LEN, 0},
    {"waiting_for", MS_TEXT_MAX, 0, 1},
    {"weights_sha256", 64, 0, 0},
};

static const struct field_limit *find_limit(const char *name)
{
    /* fields added later without a row: the tightest of the general limits */
    static const struct field_limit other = {"", MS_NAME_MAX, 0, 0};
    for (size_t i = 0; i < MS_ARRAY_SIZE(field_limits); i++) {
        if (strcmp(field_limits[i].name, name) == 0) {
            return &field_limits[i];
        }
    }
    return &other;
}

int ms_wire_has_limit(const char *field)
{
    return find_limit(field)->name[0] != '\0';
}

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

static int take_varint(struct cursor *cur, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && cur->at < cur->end; shift += 7) {
        uint8_t byte = *cur->at++;
        if (shift < 64) {
            value |= (uint64_t)(byte & 0x7f) << shift;
        }
        if ((byte & 0x80) == 0) {
            *ret = value;
            return 1;
        }
    }
    return 0;
}

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Moves past one value; for WIRE_BYTES *ret_bytes and *ret_size are the content. */
static int take_value(struct cursor *cur, unsigned wire_type, const uint8_t **ret_bytes,
                      size_t *ret_size)
{
    uint64_t number = 0;
    size_t size = 0;
    *ret_bytes = cur->at;
    *ret_size = 0;
    switch (wire_type) {
    case WIRE_VARINT:
        return take_varint(cur, &number);
    case WIRE_64:
        size = 8;
        break;
    case WIRE_32:
        size = 4;
        break;
    case WIRE_BYTES:
        if (!take_varint(cur, &number) || number > (size_t)(cur->end - cur->at)) {
            return 0;
        }
        size = (size_t)number;
        break;
    default: /* groups: dropped from the language, never ours */
        return 0;
    }
    if (size > (size_t)(cur->end - cur->at)) {
        return 0;
    }
    *ret_bytes = cur->at;
    *ret_size = size;
    cur->at += size;
    return 1;
}

static unsigned wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_64;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return WIRE_32;
    default:
        return WIRE_VARINT;
    }
}

static int check_size(const char *where, const struct field_limit *limit, size_t size,
                      struct ms_err *err)
{
    if (size > limit->max || (size > 0 && size < limit->min)) {
        return ms_fail(err, MS_E_PROTOCOL, "%s.%s has %zu bytes, the limit is %zu", where,
                       limit->name, size, limit->max);
    }
    return MS_OK;
}

static int check_string(const char *where, const char *field, const struct field_limit *limit,
                        const uint8_t *bytes, size_t size, struct ms_err *err)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t c = bytes[i];
        if ((c < 0x20 || c == 0x7f) && !(limit->is_text && (c == '\n' || c == '\t'))) {
            return ms_fail(err, MS_E_PROTOCOL, "%s.%s holds the control byte 0x%02x", where, field,
                           c);
        }
    }
    return MS_OK;
}

int ms_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t length,
                  struct ms_err *err)
{
    enum { FIELDS_MAX = 64 }; /* StatusInfo, Register and JobInfo have about twenty */
    size_t counts[FIELDS_MAX] = {0};
    size_t unknown = 0;
    const char *where = desc->short_name;
    struct cursor cur = {bytes, length > 0 ? bytes + length : bytes};
    assert(desc->n_fields <= FIELDS_MAX);

    while (cur.at < cur.end) {
        uint64_t tag = 0;
        const uint8_t *value = NULL;
        size_t size = 0;
        if (!take_varint(&cur, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff ||
            !take_value(&cur, (unsigned)(tag & 7), &value, &size)) {
            return ms_fail(err, MS_E_PROTOCOL, "%s is damaged at byte %zu of %zu", where,
                           (size_t)(cur.at - bytes), length);
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(desc, (unsigned)(tag >> 3));
        if (field == NULL) {
            if (++unknown > MS_UNKNOWN_FIELDS) {
                return ms_fail(err, MS_E_PROTOCOL, "%s has more than %d unknown fields", where,
                               MS_UNKNOWN_FIELDS);
            }
            continue;
        }
        if (wire_type_of(field->type) != (tag & 7)) {
            return ms_fail(err, MS_E_PROTOCOL, "%s.%s has the wrong type", where, field->name);
        }
        const struct field_limit *limit = find_limit(field->name);
        size_t count = ++counts[field - desc->fields];
        size_t count_max = field->label == PROTOBUF_C_LABEL_REPEATED ? limit->max : 1;
        if (count > count_max) {
            return ms_fail(err, MS_E_PROTOCOL, "%s.%s occurs more than %zu times", where,
                           field->name, count_max);
        }
        int rc = MS_OK;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            /* the schema has no recursive message: depth is bounded by it */
            rc = ms_wire_check((const ProtobufCMessageDescriptor *)field->descriptor, value, size,
                               err);
        } else if (field->type == PROTOBUF_C_TYPE_BYTES || field->type == PROTOBUF_C_TYPE_STRING) {
            rc = check_size(where, limit, size, err);
        }
        if (rc == MS_OK && field->type == PROTOBUF_C_TYPE_STRING) {
            rc = check_string(where, field->name, limit, value, size, err);
        }
        if (rc != MS_OK) {
            return rc;
        }
    }
    return MS_OK;
}
