/* test_wire.c - frames: the table, the header, hostile bytes, and the frozen frames */
#include "proto/cluster.pb-c.h"
#include "proto/limits.h"
#include "proto/wire.h"
#include "proto/wire_check.h"
#include "tests/test.h"
#include "tests/unit/fill.h"

/* ---- help ---- */

struct frame {
    uint8_t *bytes;
    size_t size;
};

static struct frame pack(uint16_t type, const ProtobufCMessage *msg)
{
    struct frame frame = {NULL, ms_wire_size(msg)};
    frame.bytes = malloc(frame.size);
    ck_assert_ptr_nonnull(frame.bytes);
    ck_ms_ok(ms_wire_pack(type, 9, msg, frame.bytes, frame.size, err));
    return frame;
}

/* Packs without the checks of ms_wire_pack, as a hostile peer would, and unpacks. */
static int unpack_raw(uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    size_t size = protobuf_c_message_get_packed_size(msg);
    uint8_t *bytes = malloc(size + 1);
    ProtobufCMessage *got = NULL;
    ck_assert_ptr_nonnull(bytes);
    protobuf_c_message_pack(msg, bytes);
    int rc = ms_wire_unpack(type, bytes, size, &got, err);
    ms_wire_free(got);
    free(bytes);
    return rc;
}

static int unpack_bytes(uint16_t type, const void *bytes, size_t size, struct ms_err *err)
{
    ProtobufCMessage *got = NULL;
    uint8_t *copy = malloc(size + 1); /* its own block, so that sanitizers see an overrun */
    memcpy(copy, bytes, size);
    int rc = ms_wire_unpack(type, copy, size, &got, err);
    ms_wire_free(got);
    free(copy);
    return rc;
}

static char *text_of(size_t length, char c)
{
    char *text = malloc(length + 1);
    memset(text, c, length);
    text[length] = '\0';
    return text;
}

/* ---- the table ---- */

START_TEST(every_message_of_the_schema_is_a_type_or_a_part_of_one)
{
    static const char *const parts[] = {"Offer",      "Member",   "RankInfo",
                                        "JobInfo",    "NodeInfo", "EventInfo",
                                        "JobResults", "Former",   "Home"};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    char line[256];
    char name[64];
    size_t n_messages = 0;
    if (root == NULL) {
        return; /* run by hand */
    }
    snprintf(path, sizeof(path), "%s/proto/cluster.proto", root);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "message %63[A-Za-z]", name) != 1) {
            continue;
        }
        int known = 0;
        for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
            known |= strcmp(ms_wire_at(i)->name, name) == 0;
        }
        for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
            known |= strcmp(parts[i], name) == 0;
        }
        ck_assert_msg(known, "message %s has no row in wire.c", name);
        n_messages++;
    }
    fclose(file);
    ck_assert_uint_gt(n_messages, 30);
}
END_TEST

START_TEST(the_table_is_consistent)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *row = ms_wire_at(i);
        ck_assert_ptr_eq(ms_wire_find(row->type), row);
        ck_assert_str_eq(row->name, row->descriptor->short_name);
        ck_assert_uint_le(row->bytes_max, MS_FRAME_MAX);
        ck_assert_uint_ne(row->senders, 0);
    }
    ck_assert_ptr_null(ms_wire_find(0));
    ck_assert_ptr_null(ms_wire_find(999));
    ck_assert_ptr_null(ms_wire_at(100000));
}
END_TEST

static int has_line(const char *path, const char *start)
{
    char line[1024];
    int found = 0;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot read %s", path);
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = strncmp(line, start, strlen(start)) == 0;
    }
    fclose(file);
    return found;
}

/* Whoever adds a type says in wire.c since which level it is known. */
START_TEST(what_release_0_1_knew_is_level_0_and_nothing_else_is)
{
    static const uint16_t known[] = {1,  2,  3,  4,  10, 11, 12, 13, 14, 15, 16, 17, 30, 31, 32,
                                     33, 34, 35, 50, 51, 52, 53, 54, 55, 56, 70, 71, 72, 73, 74};
    const struct ms_wire_type *row = NULL;
    size_t n = 0;
    for (size_t i = 0; (row = ms_wire_at(i)) != NULL; i++) {
        int was_known = 0;
        for (size_t k = 0; k < MS_ARRAY_SIZE(known); k++) {
            was_known |= known[k] == row->type;
        }
        ck_assert_msg((ms_wire_since(row->type) == 0) == was_known, "%s", row->name);
        ck_assert_uint_le(ms_wire_since(row->type), MS_WIRE_LEVEL);
        n += (size_t)was_known;
    }
    ck_assert_uint_eq(n, MS_ARRAY_SIZE(known));
}
END_TEST

START_TEST(the_document_has_the_table_as_it_is)
{
    static const unsigned roles[] = {MS_ROLE_WORKER, MS_ROLE_USER, MS_ROLE_ADMIN,
                                     MS_ROLE_SCHEDULER};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    if (root == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s/docs/protocol.md", root);
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *row = ms_wire_at(i);
        char senders[64] = "";
        char want[256];
        for (size_t k = 0; k < MS_ARRAY_SIZE(roles); k++) {
            size_t used = strlen(senders);
            if ((row->senders & roles[k]) != 0) {
                snprintf(senders + used, sizeof(senders) - used, "%s%s", used > 0 ? ", " : "",
                         ms_role_name(roles[k]));
            }
        }
        snprintf(want, sizeof(want), "| %u | %s | %s | %u |", row->type, row->name,
                 strcmp(senders, "worker, user, admin, scheduler") == 0 ? "all" : senders,
                 row->bytes_max);
        ck_assert_msg(has_line(path, want), "docs/protocol.md lacks: %s", want);
    }
}
END_TEST

static void check_schema(const ProtobufCMessageDescriptor *desc, int depth)
{
    ck_assert_msg(depth < 8, "%s: recursive?", desc->short_name);
    ck_assert_uint_le(desc->n_fields, 64);
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &desc->fields[i];
        ck_assert_int_ne(field->label, PROTOBUF_C_LABEL_REQUIRED);
        int is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
        int is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        ck_assert_msg(!is_repeated || is_message, "%s.%s: repeated scalars have no check",
                      desc->short_name, field->name);
        if (is_repeated || field->type == PROTOBUF_C_TYPE_STRING ||
            field->type == PROTOBUF_C_TYPE_BYTES) {
            ck_assert_msg(ms_wire_has_limit(field->name), "%s.%s has no limit in wire_check.c",
                          desc->short_name, field->name);
        }
        if (is_message) {
            check_schema((const ProtobufCMessageDescriptor *)field->descriptor, depth + 1);
        }
    }
}

START_TEST(every_string_and_repeated_field_of_the_schema_has_a_limit)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        check_schema(ms_wire_at(i)->descriptor, 0);
    }
}
END_TEST

START_TEST(roles_send_what_the_protocol_gives_them)
{
    static const struct {
        uint16_t type;
        unsigned senders;
    } rows[] = {
        {MS_MSG_REGISTER, MS_ROLE_WORKER},
        {MS_MSG_HEARTBEAT, MS_ROLE_WORKER},
        {MS_MSG_RANK_DONE, MS_ROLE_WORKER},
        {MS_MSG_SUBMIT, MS_ROLE_USER | MS_ROLE_ADMIN},
        {MS_MSG_CANCEL, MS_ROLE_USER | MS_ROLE_ADMIN},
        {MS_MSG_ASSIGN, MS_ROLE_SCHEDULER},
        {MS_MSG_WELCOME, MS_ROLE_SCHEDULER},
        {MS_MSG_LOG_CHUNK, MS_ROLE_WORKER | MS_ROLE_SCHEDULER},
        {MS_MSG_ERROR, MS_ROLE_WORKER | MS_ROLE_USER | MS_ROLE_ADMIN | MS_ROLE_SCHEDULER},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        ck_assert_uint_eq(ms_wire_find(rows[i].type)->senders, rows[i].senders);
    }
    ck_assert_str_eq(ms_role_name(MS_ROLE_WORKER), "worker");
    ck_assert_ptr_null(ms_role_name(MS_ROLE_WORKER | MS_ROLE_USER));
    ck_assert_ptr_null(ms_role_name(MS_ROLE_NONE));
}
END_TEST

/* ---- headers ---- */

static int parse(const void *bytes, struct ms_err *err)
{
    uint8_t head[MS_WIRE_HEADER];
    struct ms_wire_header ret;
    memcpy(head, bytes, sizeof(head));
    return ms_wire_parse_header(head, &ret, err);
}

START_TEST(a_header_comes_back_as_it_was_packed)
{
    Ms__Start start = MS__START__INIT;
    struct ms_wire_header head;
    start.job = 17;
    start.generation = 3;
    uint8_t buf[64];
    size_t size = ms_wire_size(&start.base);

    ck_ms_ok(ms_wire_pack(MS_MSG_START, 0xdeadbeef, &start.base, buf, size, err));
    ck_ms_ok(ms_wire_parse_header(buf, &head, err));

    ck_assert_uint_eq(head.type, MS_MSG_START);
    ck_assert_uint_eq(head.id, 0xdeadbeef);
    ck_assert_uint_eq(head.length, 4);
    static const uint8_t want[20] = {'M',  'S',  'C', '1', 0, 33, 0, 0,  0xde, 0xad,
                                     0xbe, 0xef, 0,   0,   0, 4,  8, 17, 16,   3};
    ck_assert_uint_eq(size, sizeof(want));
    ck_assert_mem_eq(buf, want, sizeof(want));
}
END_TEST

START_TEST(strangers_are_described)
{
    ck_ms_fails(parse("GET / HTTP/1.1\r\n", err), MS_E_PROTOCOL, "HTTP");
    ck_ms_fails(parse("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03zzzzz", err), MS_E_PROTOCOL,
                "TLS handshake");
    ck_ms_fails(parse("RPC0............", err), MS_E_PROTOCOL, "MindSpore");
    ck_ms_fails(parse("SSH-2.0-OpenSSH.", err), MS_E_PROTOCOL, "SSH");
    ck_ms_fails(parse("MSC2............", err), MS_E_PROTOCOL, "MSC2");
    ck_ms_fails(parse("\0\0\0\0............", err), MS_E_PROTOCOL, "00 00 00 00");
}
END_TEST

START_TEST(wrong_headers_name_what_is_wrong)
{
    ck_ms_fails(parse("MSC1\x03\xe7\0\0\0\0\0\0\0\0\0\0", err), MS_E_PROTOCOL, "unknown type 999");
    ck_ms_fails(parse("MSC1\0\x0b\0\1\0\0\0\0\0\0\0\0", err), MS_E_PROTOCOL, "reserved bits 0001");
    ck_ms_fails(parse("MSC1\0\x0b\0\0\0\0\0\0\xff\xff\xff\xff", err), MS_E_PROTOCOL,
                "Heartbeat frame of 4294967295 bytes, the limit is 4096");
}
END_TEST

START_TEST(a_message_above_its_limit_is_not_packed)
{
    Ms__Heartbeat beat = MS__HEARTBEAT__INIT;
    Ms__Submit submit = MS__SUBMIT__INIT;
    static uint8_t buf[1 << 20];
    static uint8_t json[MS_SPEC_MAX + MS_PLAN_MAX + 8192];
    struct ms_err full = {0, ""};
    submit.job_json.data = json;
    submit.job_json.len = sizeof(json);
    size_t size = ms_wire_size(&submit.base);

    ck_assert_int_eq(ms_wire_pack(MS_MSG_SUBMIT, 1, &submit.base, buf, size, &full), MS_E_FULL);
    ck_assert_ptr_nonnull(strstr(full.text, "Submit"));
    ck_ms_ok(ms_wire_pack(MS_MSG_HEARTBEAT, 1, &beat.base, buf, ms_wire_size(&beat.base), err));
}
END_TEST

START_TEST(a_head_and_what_is_shared_are_one_message)
{
    uint8_t frame[256];
    uint8_t whole[256];
    ProtobufCMessage *msg = NULL;
    struct ms_wire_header header;
    Ms__Assign common = MS__ASSIGN__INIT;
    Ms__Assign own = MS__ASSIGN__INIT;
    common.job = 7;
    common.run_dir = (char *)"/run";
    own.rank = 300;
    size_t size = ms_wire_size(&common.base);
    size_t head_size = ms_wire_size(&own.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_ASSIGN, 0, &common.base, frame, size, err));
    size_t shared = size - MS_WIRE_HEADER;

    ck_ms_ok(ms_wire_pack_head(MS_MSG_ASSIGN, 9, &own.base, shared, whole, head_size, err));
    memcpy(whole + head_size, frame + MS_WIRE_HEADER, shared);

    ck_ms_ok(ms_wire_parse_header(whole, &header, err));
    ck_assert_uint_eq(header.id, 9);
    ck_assert_uint_eq(header.length, head_size - MS_WIRE_HEADER + shared);
    ck_ms_ok(ms_wire_unpack(header.type, whole + MS_WIRE_HEADER, header.length, &msg, err));
    const Ms__Assign *assign = (const Ms__Assign *)msg;
    ck_assert_uint_eq(assign->job, 7);
    ck_assert_uint_eq(assign->rank, 300);
    ck_assert_str_eq(assign->run_dir, "/run");
    ms_wire_free(msg);
    ck_ms_fails(ms_wire_pack_head(MS_MSG_ASSIGN, 9, &own.base, 100U << 20, whole, head_size, err),
                MS_E_FULL, "Assign message of");
}
END_TEST

START_TEST(a_message_that_the_peer_would_refuse_is_not_packed)
{
    Ms__Ok ok = MS__OK__INIT;
    uint8_t buf[1024];
    ok.text = text_of(MS_TEXT_MAX + 1, 'x');

    ck_ms_fails(ms_wire_pack(MS_MSG_OK, 1, &ok.base, buf, ms_wire_size(&ok.base), err),
                MS_E_INVALID, "Ok.text");
    free(ok.text);
}
END_TEST

/* ---- what a hostile peer may try ---- */

START_TEST(strings_over_their_limit_are_refused)
{
    Ms__Register reg = MS__REGISTER__INIT;

    reg.node_id = text_of(MS_NAME_MAX, 'n');
    ck_ms_ok(unpack_raw(MS_MSG_REGISTER, &reg.base, err));
    free(reg.node_id);
    reg.node_id = text_of(MS_NAME_MAX + 1, 'n');
    ck_ms_fails(unpack_raw(MS_MSG_REGISTER, &reg.base, err), MS_E_PROTOCOL, "Register.node_id");
    free(reg.node_id);
}
END_TEST

START_TEST(control_bytes_are_refused_outside_of_prose)
{
    Ms__Leave leave = MS__LEAVE__INIT;
    Ms__NodeQuery query = MS__NODE_QUERY__INIT;
    Ms__Ok ok = MS__OK__INIT;

    query.node_id = (char *)"w\n3";
    ck_ms_fails(unpack_raw(MS_MSG_NODE_QUERY, &query.base, err), MS_E_PROTOCOL, "0x0a");
    query.node_id = (char *)"w\x7f";
    ck_ms_fails(unpack_raw(MS_MSG_NODE_QUERY, &query.base, err), MS_E_PROTOCOL, "0x7f");
    query.node_id = (char *)"w\xc3\xa9"; /* letters of other languages are fine */
    ck_ms_ok(unpack_raw(MS_MSG_NODE_QUERY, &query.base, err));
    ok.text = (char *)"line one\n\tline two";
    ck_ms_ok(unpack_raw(MS_MSG_OK, &ok.base, err));
    leave.reason = (char *)"\x1b[2J"; /* would clear the reader's screen */
    ck_ms_fails(unpack_raw(MS_MSG_LEAVE, &leave.base, err), MS_E_PROTOCOL, "0x1b");
}
END_TEST

START_TEST(a_reason_with_a_newline_forges_no_line)
{
    Ms__Cancel cancel = MS__CANCEL__INIT;
    Ms__Leave leave = MS__LEAVE__INIT;
    cancel.reason = (char *)"done\n<3>job.lost job=1";
    leave.reason = cancel.reason;
    ck_ms_fails(unpack_raw(MS_MSG_CANCEL, &cancel.base, err), MS_E_PROTOCOL, "Cancel.reason");
    ck_ms_fails(unpack_raw(MS_MSG_LEAVE, &leave.base, err), MS_E_PROTOCOL, "Leave.reason");
}
END_TEST

START_TEST(strings_that_are_no_text_are_refused)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"w\xff", "NodeQuery.node_id is not UTF-8 at byte 1"},
        {"w\xed\xa0\x80", "not UTF-8"}, /* a surrogate */
        {"w\xc0\xaf", "not UTF-8"},     /* an overlong slash */
        {"w\xc3", "not UTF-8"},         /* cut */
        {"w\xc2\x9b", "U+009B"},        /* CSI of C1 */
        {"w\xe2\x80\xae", "U+202E"},    /* right-to-left override */
        {"w\xe2\x81\xa6", "U+2066"},    /* isolate */
        {"w\xd8\x9c", "U+061C"},        /* Arabic letter mark */
        {"w\xe2\x80\x8f", "U+200F"},    /* right-to-left mark */
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        Ms__NodeQuery query = MS__NODE_QUERY__INIT;
        query.node_id = (char *)cases[i].text;
        ck_ms_fails(unpack_raw(MS_MSG_NODE_QUERY, &query.base, err), MS_E_PROTOCOL, cases[i].word);
    }
}
END_TEST

START_TEST(prose_is_mended_by_its_sender_and_names_are_not)
{
    Ms__RankDone done = MS__RANK_DONE__INIT;
    ProtobufCMessage *got = NULL;
    done.text = (char *)"cannot open /data/caf\xe9\nline two \xc3"; /* Latin-1, and cut */
    done.log_path = (char *)"/run/caf\xe9/w.log";
    struct frame frame = pack(MS_MSG_RANK_DONE, &done.base);
    ck_ms_ok(ms_wire_unpack(MS_MSG_RANK_DONE, frame.bytes + MS_WIRE_HEADER,
                            frame.size - MS_WIRE_HEADER, &got, err));
    ck_assert_str_eq(((Ms__RankDone *)got)->text, "cannot open /data/caf? line two ?");
    ck_assert_str_eq(((Ms__RankDone *)got)->log_path, "/run/caf?/w.log");
    ms_wire_free(got);
    free(frame.bytes);

    Ms__NodeQuery query = MS__NODE_QUERY__INIT;
    uint8_t buf[64];
    query.node_id = (char *)"w\xe9";
    ck_ms_fails(
        ms_wire_pack(MS_MSG_NODE_QUERY, 1, &query.base, buf, ms_wire_size(&query.base), err),
        MS_E_INVALID, "NodeQuery.node_id");
}
END_TEST

START_TEST(a_nul_inside_a_string_is_refused_although_c_would_hide_it)
{
    ck_ms_fails(unpack_bytes(MS_MSG_NODE_QUERY,
                             "\x0a\x05"
                             "ab\0cd",
                             7, err),
                MS_E_PROTOCOL, "NodeQuery.node_id holds the control byte 0x00");
}
END_TEST

START_TEST(a_token_has_32_bytes_or_none)
{
    Ms__Assign assign = MS__ASSIGN__INIT;
    uint8_t token[64] = {0};
    assign.token.data = token;
    for (size_t n = 0; n <= sizeof(token); n++) {
        assign.token.len = n;
        if (n == 0 || n == MS_TOKEN_LEN) {
            ck_ms_ok(unpack_raw(MS_MSG_ASSIGN, &assign.base, err));
        } else {
            ck_ms_fails(unpack_raw(MS_MSG_ASSIGN, &assign.base, err), MS_E_PROTOCOL,
                        "Assign.token");
        }
    }
}
END_TEST

START_TEST(repeated_fields_are_counted)
{
    Ms__Assign assign = MS__ASSIGN__INIT;
    Ms__Member member = MS__MEMBER__INIT;
    Ms__Member *members[MS_WORKERS_MAX + 1];
    for (size_t i = 0; i < MS_ARRAY_SIZE(members); i++) {
        members[i] = &member;
    }
    member.node_id = (char *)"node";
    member.data_address = (char *)"127.0.0.1:8200";
    assign.members = members;

    assign.n_members = MS_WORKERS_MAX;
    ck_ms_ok(unpack_raw(MS_MSG_ASSIGN, &assign.base, err));
    assign.n_members = MS_WORKERS_MAX + 1;
    ck_ms_fails(unpack_raw(MS_MSG_ASSIGN, &assign.base, err), MS_E_PROTOCOL,
                "Assign.members occurs more than 1024 times");
}
END_TEST

START_TEST(a_singular_field_given_twice_is_refused)
{
    /* protobuf-c merges repeated singular messages, copying what they hold each time */
    ck_ms_fails(unpack_bytes(MS_MSG_JOB_UPDATE, "\x0a\x00\x0a\x00", 4, err), MS_E_PROTOCOL,
                "JobUpdate.job occurs more than 1 times");
    ck_ms_fails(unpack_bytes(MS_MSG_START, "\x08\x01\x08\x02", 4, err), MS_E_PROTOCOL,
                "Start.job occurs");
}
END_TEST

START_TEST(a_few_unknown_fields_are_a_newer_peer_and_many_are_an_attack)
{
    uint8_t bytes[2 * 2000];
    for (size_t i = 0; i < sizeof(bytes); i += 2) {
        bytes[i] = 15 << 3; /* field 15, varint */
        bytes[i + 1] = 1;
    }
    ck_ms_ok(unpack_bytes(MS_MSG_START, bytes, 2 * (size_t)MS_UNKNOWN_FIELDS, err));
    ck_ms_fails(unpack_bytes(MS_MSG_START, bytes, 2 * (MS_UNKNOWN_FIELDS + 1), err), MS_E_PROTOCOL,
                "unknown fields");
    ck_ms_fails(unpack_bytes(MS_MSG_START, bytes, sizeof(bytes), err), MS_E_PROTOCOL,
                "unknown fields");
}
END_TEST

START_TEST(damaged_bytes_are_refused)
{
    ck_ms_fails(unpack_bytes(MS_MSG_START, "\x08", 1, err), MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_START, "\x08\xff\xff", 3, err), MS_E_PROTOCOL, "damaged");
    ck_ms_fails(
        unpack_bytes(MS_MSG_START, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, err),
        MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_START, "\x00\x01", 2, err), MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_START, "\x0b\x0c", 2, err), MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_LEAVE, "\x0a\x7f", 2, err), MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_LEAVE, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, err),
                MS_E_PROTOCOL, "damaged");
    ck_ms_fails(unpack_bytes(MS_MSG_LEAVE, "\x08\x01", 2, err), MS_E_PROTOCOL, "wrong type");
}
END_TEST

START_TEST(a_frame_that_unpacks_into_too_much_memory_is_refused)
{
    /* a thousand empty jobs: 4 KiB that ask for half a megabyte */
    static uint8_t bytes[2 * MS_LIST_PAGE_MAX];
    for (size_t i = 0; i < sizeof(bytes); i += 2) {
        bytes[i] = 1 << 3 | 2;
        bytes[i + 1] = 0;
    }
    ck_ms_fails(unpack_bytes(MS_MSG_JOB_LIST, bytes, sizeof(bytes), err), MS_E_PROTOCOL,
                "more memory than allowed");
}
END_TEST

START_TEST(the_largest_honest_lists_fit)
{
    static Ms__JobInfo jobs[MS_LIST_PAGE_MAX];
    static Ms__NodeInfo nodes[MS_LIST_PAGE_MAX];
    static Ms__RankInfo ranks[MS_WORKERS_MAX];
    Ms__JobInfo *job_list[MS_LIST_PAGE_MAX];
    Ms__NodeInfo *node_list[MS_LIST_PAGE_MAX];
    Ms__RankInfo *rank_list[MS_WORKERS_MAX];
    for (size_t i = 0; i < MS_LIST_PAGE_MAX; i++) { /* the least that a queued job has */
        ms__job_info__init(&jobs[i]);
        jobs[i].id = i + 1;
        jobs[i].name = (char *)"j";
        jobs[i].state = (char *)"QUEUED";
        jobs[i].reason = (char *)"1 of 2 nodes";
        jobs[i].workers = 1;
        jobs[i].submitted_ms = 1700000000000;
        job_list[i] = &jobs[i];
        ms__node_info__init(&nodes[i]);
        nodes[i].node_id = (char *)"w1";
        nodes[i].host_name = (char *)"h";
        nodes[i].state = (char *)"REGISTERED";
        nodes[i].activity = (char *)"idle";
        nodes[i].address = (char *)"10.0.0.1:1";
        node_list[i] = &nodes[i];
    }
    char *path = text_of(MS_PATH_MAX, 'p');
    for (size_t i = 0; i < MS_WORKERS_MAX; i++) {
        ms__rank_info__init(&ranks[i]);
        ranks[i].rank = (uint32_t)i;
        ranks[i].node_id = (char *)"w1";
        ranks[i].state = (char *)"waiting";
        ranks[i].log_path = path;
        rank_list[i] = &ranks[i];
    }
    Ms__JobList job_reply = MS__JOB_LIST__INIT;
    job_reply.n_jobs = MS_LIST_PAGE_MAX;
    job_reply.jobs = job_list;
    Ms__NodeList node_reply = MS__NODE_LIST__INIT;
    node_reply.n_nodes = MS_LIST_PAGE_MAX;
    node_reply.nodes = node_list;
    Ms__JobUpdate update = MS__JOB_UPDATE__INIT;
    update.job = &jobs[0];

    ck_ms_ok(unpack_raw(MS_MSG_JOB_LIST, &job_reply.base, err));
    ck_ms_ok(unpack_raw(MS_MSG_NODE_LIST, &node_reply.base, err));
    jobs[0].n_ranks = MS_WORKERS_MAX;
    jobs[0].ranks = rank_list;
    ck_ms_ok(unpack_raw(MS_MSG_JOB_UPDATE, &update.base, err));
    for (size_t i = 0; i < MS_WORKERS_MAX; i++) {
        ranks[i].log_path = (char *)"";
    }
    ck_ms_ok(unpack_raw(MS_MSG_JOB_UPDATE, &update.base, err));
    free(path);
}
END_TEST

START_TEST(an_empty_message_and_no_message_are_fine)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        ProtobufCMessage *msg = NULL;
        ck_ms_ok(ms_wire_unpack(ms_wire_at(i)->type, NULL, 0, &msg, err));
        ck_assert_ptr_eq(msg->descriptor, ms_wire_at(i)->descriptor);
        ms_wire_free(msg);
    }
    ms_wire_free(NULL);
}
END_TEST

START_TEST(every_cut_of_a_frame_is_refused_or_valid_and_never_more)
{
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *row = ms_wire_at(i);
        struct frame frame = pack(row->type, fill_message(row->descriptor));
        for (size_t n = 0; n < frame.size - MS_WIRE_HEADER; n++) {
            struct ms_err err = {0, ""};
            int rc = unpack_bytes(row->type, frame.bytes + MS_WIRE_HEADER, n, &err);
            ck_assert(rc == MS_OK || rc == MS_E_PROTOCOL);
        }
        free(frame.bytes);
        fill_free();
    }
}
END_TEST

/* ---- frozen frames ---- */

/* tests/golden/frames/NAME.VERSION.bin holds one frame of each type as a release sent it, with
 * every field filled by fill.h. All must decode and encode to the same bytes for ever; the last
 * version is what this tree sends. A new field is a new file beside the old one, written by this
 * test when MSCHED_GOLDEN_WRITE is set. */
static size_t read_golden(const char *name, int version, uint8_t *buf, size_t size)
{
    char path[512];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/frames/%s.%d.bin", root != NULL ? root : ".",
             name, version);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    size_t n = fread(buf, 1, size, file);
    fclose(file);
    return n;
}

static void write_golden(const char *name, int version, const struct frame *frame)
{
    char path[512];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/frames/%s.%d.bin", root != NULL ? root : ".",
             name, version);
    FILE *file = fopen(path, "wx");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(frame->bytes, 1, frame->size, file), frame->size);
    ck_assert_int_eq(fclose(file), 0);
}

static void check_frozen(const uint8_t *bytes, size_t size)
{
    struct ms_wire_header head;
    ProtobufCMessage *msg = NULL;
    ck_assert_uint_ge(size, MS_WIRE_HEADER);
    ck_ms_ok(ms_wire_parse_header(bytes, &head, err));
    ck_assert_uint_eq(head.length, size - MS_WIRE_HEADER);
    ck_ms_ok(ms_wire_unpack(head.type, bytes + MS_WIRE_HEADER, head.length, &msg, err));
    struct frame again = pack(head.type, msg);
    ck_assert_uint_eq(again.size, size);
    ck_assert_mem_eq(again.bytes, bytes, size);
    free(again.bytes);
    ms_wire_free(msg);
}

START_TEST(frozen_frames_decode_and_are_what_we_send)
{
    static uint8_t bytes[65536];
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *row = ms_wire_at(i);
        struct frame now = pack(row->type, fill_message(row->descriptor));
        size_t last = 0;
        int version = 1;
        for (size_t n = 0; (n = read_golden(row->name, version, bytes, sizeof(bytes))) > 0;
             version++) {
            check_frozen(bytes, n);
            last = n;
        }
        int same = last == now.size;
        if (same) {
            (void)read_golden(row->name, version - 1, bytes, sizeof(bytes));
            same = memcmp(bytes, now.bytes, last) == 0;
        }
        if (!same && getenv("MSCHED_GOLDEN_WRITE") != NULL) {
            write_golden(row->name, version, &now);
        } else {
            ck_assert_msg(same,
                          "the bytes of %s changed: if that is on purpose, run this test with "
                          "MSCHED_GOLDEN_WRITE=1 and commit the new file and docs/protocol.md",
                          row->name);
        }
        free(now.bytes);
        fill_free();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *table = tcase_create("table");
    TCase *header = tcase_create("header");
    TCase *hostile = tcase_create("hostile");
    TCase *golden = tcase_create("golden");

    tcase_add_test(table, every_message_of_the_schema_is_a_type_or_a_part_of_one);
    tcase_add_test(table, the_table_is_consistent);
    tcase_add_test(table, what_release_0_1_knew_is_level_0_and_nothing_else_is);
    tcase_add_test(table, the_document_has_the_table_as_it_is);
    tcase_add_test(table, every_string_and_repeated_field_of_the_schema_has_a_limit);
    tcase_add_test(table, roles_send_what_the_protocol_gives_them);
    tcase_add_test(header, a_header_comes_back_as_it_was_packed);
    tcase_add_test(header, strangers_are_described);
    tcase_add_test(header, wrong_headers_name_what_is_wrong);
    tcase_add_test(header, a_message_above_its_limit_is_not_packed);
    tcase_add_test(header, a_head_and_what_is_shared_are_one_message);
    tcase_add_test(header, a_message_that_the_peer_would_refuse_is_not_packed);
    tcase_add_test(hostile, strings_over_their_limit_are_refused);
    tcase_add_test(hostile, control_bytes_are_refused_outside_of_prose);
    tcase_add_test(hostile, a_reason_with_a_newline_forges_no_line);
    tcase_add_test(hostile, strings_that_are_no_text_are_refused);
    tcase_add_test(hostile, prose_is_mended_by_its_sender_and_names_are_not);
    tcase_add_test(hostile, a_nul_inside_a_string_is_refused_although_c_would_hide_it);
    tcase_add_test(hostile, a_token_has_32_bytes_or_none);
    tcase_add_test(hostile, repeated_fields_are_counted);
    tcase_add_test(hostile, a_singular_field_given_twice_is_refused);
    tcase_add_test(hostile, a_few_unknown_fields_are_a_newer_peer_and_many_are_an_attack);
    tcase_add_test(hostile, damaged_bytes_are_refused);
    tcase_add_test(hostile, a_frame_that_unpacks_into_too_much_memory_is_refused);
    tcase_add_test(hostile, the_largest_honest_lists_fit);
    tcase_add_test(hostile, an_empty_message_and_no_message_are_fine);
    tcase_add_test(hostile, every_cut_of_a_frame_is_refused_or_valid_and_never_more);
    tcase_add_test(golden, frozen_frames_decode_and_are_what_we_send);
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, header);
    suite_add_tcase(suite, hostile);
    suite_add_tcase(suite, golden);
    return test_run(suite);
}
