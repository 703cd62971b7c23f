/* wire_check.c - judges the bytes of a message before anything is allocated for it
 *
 * Protocol buffers encoding: https://protobuf.dev/programming-guides/encoding/ */
#include "proto/wire_check.h"

#include "proto/limits.h"
#include "proto/text.h"
#include "proto/wire.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Limits of fields by name: a name means the same thing in every message of cluster.proto, and
 * "Message.field" is an exception to that. */
struct field_limit {
    const char *name;
    size_t max;   /* bytes of a string or bytes field, count of a repeated one */
    size_t min;   /* when not empty */
    unsigned how; /* MENDED, LINES */
};

enum {
    MENDED = 1, /* shown to people, not compared: its sender puts '?' over what is no text */
    LINES = 2,  /* may hold newlines and tabs: what one client alone reads, and texts of files */
};

static const struct field_limit field_limits[] = {
    {"activity", MS_TEXT_MAX, 0, MENDED},
    {"address", MS_ADDR_MAX, 0, 0},
    {"after", MS_CURSOR_MAX, 0, 0},
    {"asker", MS_PRINCIPAL_MAX, 0, 0},
    {"cert_name", MS_NAME_MAX, 0, 0},
    {"cert_sha256", 64, 0, 0},
    {"cluster", MS_NAME_MAX, 0, 0},
    {"cpuset", MS_CPUSET_BYTES, 0, 0},
    {"data", MS_LOG_CHUNK_MAX, 0, 0},
    {"data_address", MS_ADDR_MAX, 0, 0},
    {"data_unix", MS_ADDR_MAX, 0, 0},
    {"database", MS_PATH_MAX, 0, MENDED},
    {"directory", MS_PATH_MAX, 0, 0},
    {"evals", MS_EVALS_MAX, 0, 0},
    {"events", MS_EVENTS_PAGE, 0, 0},
    {"facts", MS_FACTS_MAX, 0, MENDED},
    {"host_id", MS_HOST_MAX, 0, 0},
    {"host_name", MS_HOST_MAX, 0, 0},
    {"isa", MS_NAME_MAX, 0, 0},
    {"job_json", MS_SPEC_MAX, 0, 0},
    {"jobs", MS_LIST_PAGE_MAX, 0, 0},
    {"job_tag", MS_JOB_TAG_LEN, 0, 0},
    {"key", MS_NAME_MAX, 0, 0},
    {"kind", MS_NAME_MAX, 0, 0},
    {"log_path", MS_PATH_MAX, 0, MENDED},
    {"members", MS_WORKERS_MAX, 0, 0},
    {"name", MS_NAME_MAX, 0, 0},
    {"next", MS_CURSOR_MAX, 0, 0},
    {"node_id", MS_NAME_MAX, 0, 0},
    {"nodes", MS_LIST_PAGE_MAX, 0, 0},
    {"onednn", MS_NAME_MAX, 0, 0},
    {"owner", MS_PRINCIPAL_MAX, 0, 0},
    {"phase", MS_NAME_MAX, 0, MENDED},
    {"plan", MS_PLAN_MAX, 0, LINES},
    {"plan_sha256", 64, 0, 0},
    {"prefix", MS_NAME_MAX, 0, 0},
    {"principal", MS_PRINCIPAL_MAX, 0, 0},
    {"ranks", MS_WORKERS_MAX, 0, 0},
    {"reason", MS_TEXT_MAX, 0, MENDED},
    {"run_dir", MS_PATH_MAX, 0, 0},
    {"sha256", 64, 0, 0},
    {"software", MS_NAME_MAX, 0, MENDED},
    {"state", MS_NAME_MAX, 0, 0},
    {"state_digest", MS_STATE_DIGEST_LEN, MS_STATE_DIGEST_LEN, 0},
    {"stamp", MS_STAMP_LEN, MS_STAMP_LEN, 0},
    {"tag", MS_JOB_TAG_LEN, 0, 0},
    {"text", MS_TEXT_MAX, 0, MENDED},
    {"token", MS_TOKEN_LEN, MS_TOKEN_LEN, 0},
    {"waiting_for", MS_TEXT_MAX, 0, MENDED},
    {"weights_sha256", 64, 0, 0},
    /* of rows that an older release let in, and of certificates */
    {"JobInfo.name", MS_NAME_MAX, 0, MENDED},
    {"JobInfo.owner", MS_PRINCIPAL_MAX, 0, MENDED},
    {"NodeInfo.cert_name", MS_NAME_MAX, 0, MENDED},
    {"Error.text", MS_TEXT_MAX, 0, MENDED | LINES},
    {"Ok.text", MS_TEXT_MAX, 0, MENDED | LINES},
};

static const struct field_limit *find_row(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(field_limits); i++) {
        if (strcmp(field_limits[i].name, name) == 0) {
            return &field_limits[i];
        }
    }
    return NULL;
}

int ms_wire_has_limit(const char *field)
{
    return find_row(field) != NULL;
}

/* ---- the limits of a message, found by its descriptor -------------------------------------------
 *
 * Comparing names for each field of each row of each list took a third of a tick. All messages of
 * the schema are compiled once, before the first check:
 *
 *     descriptor -> plan { rules[i] for fields[i]: limit, kind, the plan of a message inside }
 */
struct rule {
    const struct field_limit *limit;
    const struct plan *inside; /* NULL: no message */
    uint8_t wire_type;
    uint8_t is_repeated, is_string, is_bytes;
    enum ms_text_kind kind;
};

enum {
    FIELDS_MAX = 64,  /* of one message: StatusInfo, Register and JobInfo have about twenty */
    PLANS_MAX = 128,  /* messages of the schema: about forty, hashed */
    RULES_MAX = 1024, /* fields of all of them: about three hundred */
};

struct plan {
    const ProtobufCMessageDescriptor *desc;
    const struct rule *rules;
};

static struct {
    pthread_once_t once;
    struct plan plans[PLANS_MAX];
    struct rule rules[RULES_MAX];
    size_t n_plans, n_rules;
} compiled = {.once = PTHREAD_ONCE_INIT};

/* The slot of a descriptor, or the free one where it belongs. */
static struct plan *find_slot(const ProtobufCMessageDescriptor *desc)
{
    size_t slot = ((uintptr_t)desc >> 4) * 0x9e3779b1U % PLANS_MAX;
    while (compiled.plans[slot].desc != NULL && compiled.plans[slot].desc != desc) {
        slot = (slot + 1) % PLANS_MAX;
    }
    return &compiled.plans[slot];
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

static struct rule make_rule(const ProtobufCMessageDescriptor *desc,
                             const ProtobufCFieldDescriptor *field)
{
    /* fields added later without a row: the tightest of the general limits */
    static const struct field_limit other = {"", MS_NAME_MAX, 0, 0};
    char exact[128];
    snprintf(exact, sizeof(exact), "%s.%s", desc->short_name, field->name);
    const struct field_limit *limit = find_row(exact);
    limit = limit != NULL ? limit : find_row(field->name);
    limit = limit != NULL ? limit : &other;
    return (struct rule){
        .limit = limit,
        .wire_type = (uint8_t)wire_type_of(field->type),
        .is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED,
        .is_string = field->type == PROTOBUF_C_TYPE_STRING,
        .is_bytes = field->type == PROTOBUF_C_TYPE_BYTES,
        .kind = (limit->how & LINES) != 0 ? MS_TEXT_LINES : MS_TEXT_LINE,
    };
}

/* The schema has no recursive message: this ends. */
static const struct plan *compile(const ProtobufCMessageDescriptor *desc)
{
    struct plan *plan = find_slot(desc);
    if (plan->desc != NULL) {
        return plan;
    }
    struct rule *rules = &compiled.rules[compiled.n_rules];
    compiled.n_rules += desc->n_fields;
    compiled.n_plans++;
    assert(desc->n_fields <= FIELDS_MAX && compiled.n_rules <= RULES_MAX &&
           compiled.n_plans < PLANS_MAX);
    plan->desc = desc;
    plan->rules = rules;
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &desc->fields[i];
        rules[i] = make_rule(desc, field);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            rules[i].inside = compile((const ProtobufCMessageDescriptor *)field->descriptor);
        }
    }
    return plan;
}

static void compile_all(void)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        compile(ms_wire_at(i)->descriptor);
    }
}

static const struct plan *plan_of(const ProtobufCMessageDescriptor *desc)
{
    pthread_once(&compiled.once, compile_all);
    const struct plan *plan = find_slot(desc);
    assert(plan->desc == desc); /* a message that is part of no frame */
    return plan;
}

/* ---- the walk -----------------------------------------------------------------------------------
 */

static int check_size(const char *where, const ProtobufCFieldDescriptor *field,
                      const struct field_limit *limit, size_t size, struct ms_err *err)
{
    if (size > limit->max || (size > 0 && size < limit->min)) {
        return ms_fail(err, MS_E_PROTOCOL, "%s.%s has %zu bytes, the limit is %zu", where,
                       field->name, size, limit->max);
    }
    return MS_OK;
}

static int check_string(const char *where, const ProtobufCFieldDescriptor *field,
                        enum ms_text_kind kind, const uint8_t *bytes, size_t size,
                        struct ms_err *err)
{
    uint32_t code = 0;
    size_t at = ms_text_check(bytes, size, kind, &code);
    if (at == size) {
        return MS_OK;
    }
    if (code == UINT32_MAX) {
        return ms_fail(err, MS_E_PROTOCOL, "%s.%s is not UTF-8 at byte %zu (0x%02x)", where,
                       field->name, at, bytes[at]);
    }
    if (code < 0x80) {
        return ms_fail(err, MS_E_PROTOCOL, "%s.%s holds the control byte 0x%02x", where,
                       field->name, code);
    }
    return ms_fail(err, MS_E_PROTOCOL, "%s.%s holds the control character U+%04X", where,
                   field->name, code);
}

/* The next field: 1, 0 at the end, or a code. Unknown fields have no descriptor. */
static int take_field(const ProtobufCMessageDescriptor *desc, struct cursor *cur,
                      const uint8_t *begin, unsigned *ret_wire_type,
                      const ProtobufCFieldDescriptor **ret_field, const uint8_t **ret_value,
                      size_t *ret_size, struct ms_err *err)
{
    uint64_t tag = 0;
    if (cur->at >= cur->end) {
        return 0;
    }
    if (!take_varint(cur, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff ||
        !take_value(cur, (unsigned)(tag & 7), ret_value, ret_size)) {
        return ms_fail(err, MS_E_PROTOCOL, "%s is damaged at byte %zu of %zu", desc->short_name,
                       (size_t)(cur->at - begin), (size_t)(cur->end - begin));
    }
    *ret_wire_type = (unsigned)(tag & 7);
    *ret_field = protobuf_c_message_descriptor_get_field(desc, (unsigned)(tag >> 3));
    return 1;
}

static int walk(const struct plan *plan, const uint8_t *bytes, size_t length, struct ms_err *err);

static int check_value(const struct plan *plan, const ProtobufCFieldDescriptor *field,
                       const uint8_t *value, size_t size, struct ms_err *err)
{
    const struct rule *rule = &plan->rules[field - plan->desc->fields];
    if (rule->inside != NULL) {
        return walk(rule->inside, value, size, err);
    }
    int rc = MS_OK;
    if (rule->is_bytes || rule->is_string) {
        rc = check_size(plan->desc->short_name, field, rule->limit, size, err);
    }
    if (rc == MS_OK && rule->is_string) {
        rc = check_string(plan->desc->short_name, field, rule->kind, value, size, err);
    }
    return rc;
}

static int walk(const struct plan *plan, const uint8_t *bytes, size_t length, struct ms_err *err)
{
    uint32_t counts[FIELDS_MAX] = {0};
    size_t unknown = 0;
    const ProtobufCMessageDescriptor *desc = plan->desc;
    const char *where = desc->short_name;
    struct cursor cur = {bytes, length > 0 ? bytes + length : bytes};
    const ProtobufCFieldDescriptor *field = NULL;
    const uint8_t *value = NULL;
    size_t size = 0;
    unsigned wire_type = 0;
    int rc = 0;

    while ((rc = take_field(desc, &cur, bytes, &wire_type, &field, &value, &size, err)) > 0) {
        if (field == NULL) {
            if (++unknown > MS_UNKNOWN_FIELDS) {
                return ms_fail(err, MS_E_PROTOCOL, "%s has more than %d unknown fields", where,
                               MS_UNKNOWN_FIELDS);
            }
            continue;
        }
        const struct rule *rule = &plan->rules[field - desc->fields];
        if (rule->wire_type != wire_type) {
            return ms_fail(err, MS_E_PROTOCOL, "%s.%s has the wrong type", where, field->name);
        }
        size_t count_max = rule->is_repeated ? rule->limit->max : 1;
        if (++counts[field - desc->fields] > count_max) {
            return ms_fail(err, MS_E_PROTOCOL, "%s.%s occurs more than %zu times", where,
                           field->name, count_max);
        }
        rc = check_value(plan, field, value, size, err);
        if (rc != MS_OK) {
            return rc;
        }
    }
    return rc;
}

int ms_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t length,
                  struct ms_err *err)
{
    return walk(plan_of(desc), bytes, length, err);
}

/* ---- mending ------------------------------------------------------------------------------------
 */

static void mend(const struct plan *plan, uint8_t *bytes, size_t length)
{
    struct cursor cur = {bytes, length > 0 ? bytes + length : bytes};
    const ProtobufCFieldDescriptor *field = NULL;
    const uint8_t *value = NULL;
    size_t size = 0;
    unsigned wire_type = 0;
    while (take_field(plan->desc, &cur, bytes, &wire_type, &field, &value, &size, NULL) > 0) {
        const struct rule *rule = field != NULL ? &plan->rules[field - plan->desc->fields] : NULL;
        if (rule == NULL || rule->wire_type != wire_type) {
            continue;
        }
        if (rule->inside != NULL) {
            mend(rule->inside, bytes + (value - bytes), size);
        } else if (rule->is_string && (rule->limit->how & MENDED) != 0) {
            ms_text_mend(bytes + (value - bytes), size, rule->kind);
        }
    }
}

void ms_wire_mend(const ProtobufCMessageDescriptor *desc, uint8_t *bytes, size_t length)
{
    mend(plan_of(desc), bytes, length);
}
