/* test_assign_check.c - which Assigns a node takes */
#include "libworker/agent/assign_check.h"
#include "proto/limits.h"
#include "tests/test.h"

#include <string.h>

/* A good Assign of rank 1 of 2, which each row spoils in one place. */
struct sent {
    Ms__Assign assign;
    Ms__Member members[3];
    Ms__Member *list[3];
    char address[64];
    uint8_t token[MS_TOKEN_LEN + 1];
};

static void fill(struct sent *sent)
{
    static uint8_t json[] = "{}";
    static char id[] = "w", isa[] = "sse41";
    memset(sent, 0, sizeof(*sent));
    snprintf(sent->address, sizeof(sent->address), "10.0.0.1:8200");
    for (uint32_t i = 0; i < 3; i++) {
        ms__member__init(&sent->members[i]);
        sent->members[i].rank = i;
        sent->members[i].node_id = id;
        sent->members[i].data_address = sent->address;
        sent->list[i] = &sent->members[i];
    }
    ms__assign__init(&sent->assign);
    sent->assign.job = 7;
    sent->assign.generation = 3;
    sent->assign.rank = 1;
    sent->assign.world_size = 2;
    sent->assign.n_members = 2;
    sent->assign.members = sent->list;
    sent->assign.token = (ProtobufCBinaryData){MS_TOKEN_LEN, sent->token};
    sent->assign.job_json = (ProtobufCBinaryData){2, json};
    sent->assign.isa = isa;
}

static void whole(struct sent *s)
{
    (void)s;
}
static void no_job(struct sent *s)
{
    s->assign.job = 0;
}
static void no_generation(struct sent *s)
{
    s->assign.generation = 0;
}
static void no_ranks(struct sent *s)
{
    s->assign.world_size = 0;
    s->assign.n_members = 0;
}
static void many_ranks(struct sent *s)
{
    s->assign.world_size = UINT32_C(1) << 31;
}
static void one_rank_too_many(struct sent *s)
{
    s->assign.world_size = MS_WORKERS_MAX + 1;
}
static void rank_above(struct sent *s)
{
    s->assign.rank = 2;
}
static void rank_far_above(struct sent *s)
{
    s->assign.rank = UINT32_MAX;
}
static void no_token(struct sent *s)
{
    s->assign.token = (ProtobufCBinaryData){0, NULL};
}
static void short_token(struct sent *s)
{
    s->assign.token.len = MS_TOKEN_LEN - 1;
}
static void long_token(struct sent *s)
{
    s->assign.token.len = MS_TOKEN_LEN + 1;
}
static void no_json(struct sent *s)
{
    s->assign.job_json = (ProtobufCBinaryData){0, NULL};
}
static void no_members(struct sent *s)
{
    s->assign.members = NULL;
    s->assign.n_members = 0;
}
static void few_members(struct sent *s)
{
    s->assign.n_members = 1;
}
static void many_members(struct sent *s)
{
    s->assign.n_members = 3;
}
static void members_out_of_order(struct sent *s)
{
    s->members[0].rank = 1;
    s->members[1].rank = 0;
}
static void member_twice(struct sent *s)
{
    s->members[1].rank = 0;
}
static void address_is_socket(struct sent *s)
{
    snprintf(s->address, sizeof(s->address), "unix:/run/secret.sock");
}
static void address_is_path(struct sent *s)
{
    snprintf(s->address, sizeof(s->address), "/run/secret.sock");
}
static void no_address(struct sent *s)
{
    s->address[0] = '\0';
}
static void plan_from_nowhere(struct sent *s)
{
    s->assign.plan_from = 3;
}
static void plan_is_given(struct sent *s)
{
    s->assign.plan_from = 2;
}
static void own_address_only(struct sent *s)
{
    static char none[] = "";
    s->members[1].data_address = none;
}
static void one_rank_alone(struct sent *s)
{
    s->assign.rank = 0;
    s->assign.world_size = 1;
    s->assign.n_members = 1;
    s->address[0] = '\0';
}

static const struct row {
    const char *name;
    void (*spoil)(struct sent *sent);
    const char *says; /* NULL: it is taken */
} rows[] = {
    {"whole", whole, NULL},
    {"its own address is nobody's to dial", own_address_only, NULL},
    {"one rank alone", one_rank_alone, NULL},
    {"a plan that comes later", plan_is_given, NULL},
    {"a plan from a place of a later release", plan_from_nowhere, "the number 3"},
    {"no job", no_job, "count from 1"},
    {"no generation", no_generation, "count from 1"},
    {"no ranks", no_ranks, "0 ranks: a job has 1 to"},
    {"2^31 ranks", many_ranks, "2147483648 ranks"},
    {"a rank too many", one_rank_too_many, "ranks: a job has 1 to"},
    {"a rank above the others", rank_above, "rank 2 of 2"},
    {"a rank far above", rank_far_above, "rank 4294967295 of 2"},
    {"no token", no_token, "a token of 0 bytes"},
    {"a short token", short_token, "a token of 31 bytes"},
    {"a long token", long_token, "a token of 33 bytes"},
    {"no job file", no_json, "no job file"},
    {"no members", no_members, "0 members for 2 ranks"},
    {"few members", few_members, "1 members for 2 ranks"},
    {"many members", many_members, "3 members for 2 ranks"},
    {"members out of order", members_out_of_order, "member 0 is said to be rank 1"},
    {"a member twice", member_twice, "member 1 is said to be rank 0"},
    {"a socket of this host", address_is_socket, "HOST:PORT only"},
    {"a path", address_is_path, "HOST:PORT only"},
    {"no address", no_address, "HOST:PORT only"},
};

START_TEST(what_contradicts_itself_is_refused_in_words)
{
    const struct row *row = &rows[_i];
    struct sent sent;
    struct ms_err err = {0, ""};
    fill(&sent);
    row->spoil(&sent);

    int rc = assign_check(&sent.assign, &err);

    if (row->says == NULL) {
        ck_assert_msg(rc == 0, "%s: %s", row->name, err.text);
        return;
    }
    ck_assert_msg(rc == MS_E_PROTOCOL && strstr(err.text, row->says) != NULL &&
                      strstr(err.text, "the scheduler sent a rank of job") != NULL,
                  "%s: %d, %s", row->name, rc, err.text);
    ck_assert_int_eq(assign_check(&sent.assign, NULL), MS_E_PROTOCOL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("assign_check");
    TCase *tc = tcase_create("assign");
    tcase_add_loop_test(tc, what_contradicts_itself_is_refused_in_words, 0,
                        (int)MS_ARRAY_SIZE(rows));
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
