/* test_sched_facts.c - what events tell programs: a JSON object, bounded, whatever happened */
#include "tests/unit/sched_recover_case.h"

#include "daemon/sched/facts.h"

#include <jansson.h>

/* Of the last event of that kind in this tick. */
static const char *facts(const char *kind)
{
    return event_of(kind)->facts;
}

START_TEST(a_loss_and_what_follows_are_told_in_keys_and_values)
{
    start(SCHED_STANDING, 0);
    conns[0] = fix_register("w0", 1);
    ck_assert_str_eq(facts("node.registered"), "{\"host\":\"h\",\"pid\":1001}");
    conns[1] = fix_register("w1", 2);
    submit(2);
    ck_assert_str_eq(facts("job.submitted"), "{\"workers\":2}");
    ck_assert_str_eq(facts("job.placed"), "{\"generation\":1}");
    fix_plan(conns[0], 1, 1, FIX_PLAN);
    all_ready_at(1, 2, 0);
    char want[160];
    snprintf(want, sizeof(want), "{\"generation\":1,\"plan_sha256\":\"%s\"}", fix_digest(FIX_BITS));
    ck_assert_str_eq(facts("job.started"), want);

    progress(1, 41);
    fix_pass(84);
    fix_close(conns[1]);
    ck_assert_str_eq(facts("node.lost"), "{\"how\":\"closed\",\"silent_ms\":84}");
    ck_assert_str_eq(
        facts("job.rank_lost"),
        "{\"generation\":1,\"rank\":1,\"node\":\"w1\",\"host\":\"h\",\"how\":\"closed\","
        "\"silent_ms\":84,\"step\":41}");

    conns[1] = node_on("w7", 7, "h7");
    ck_assert_str_eq(facts("job.recovering"),
                     "{\"generation\":2,\"ranks\":[{\"rank\":1,\"node\":\"w7\",\"host\":\"h7\"}]}");

    fix_pass(300);
    ready_at(2, 0, 41);
    Ms__RankReady msg = ready_message(2, 1, 41);
    msg.state_from = MS_STATE_PULLED;
    msg.state_bytes = UINT64_MAX; /* whatever it says, a program can read it */
    msg.state_ms = 3;
    msg.prepared_ms = 70;
    msg.joined_ms = 2;
    fix_say(conns[1], MS_MSG_RANK_READY, &msg.base);
    ck_assert_str_eq(
        facts("job.recovered"),
        "{\"generation\":2,\"step\":41,\"from\":\"peer\",\"again_from\":0,"
        "\"again_to\":0,\"stood_still_ms\":300,\"stood_still_least\":false,"
        "\"ranks\":[{\"rank\":1,\"node\":\"w7\",\"from_rank\":0,"
        "\"bytes\":9223372036854775807,\"ms\":3,\"prepared_ms\":70,\"joined_ms\":2}]}");

    fix_done(conns[0], 1, 2, 0, 0, "");
    fix_done(conns[1], 1, 2, 1, 0, "");
    ck_assert_str_eq(facts("job.succeeded"), "{\"generation\":2,\"code\":\"ok\",\"steps\":120}");
}
END_TEST

START_TEST(one_that_ends_early_tells_the_last_step_that_was_reported)
{
    running(2);
    progress(1, 2364);
    const uint64_t admin = fix_open(MS_ROLE_ADMIN, "root");
    Ms__Cancel cancel = MS__CANCEL__INIT;
    cancel.job = 1;
    fix_say(admin, MS_MSG_CANCEL, &cancel.base);
    ck_assert_str_eq(facts("job.cancelled"),
                     "{\"generation\":1,\"code\":\"cancelled\",\"steps\":2364}");

    running(2);
    progress(1, 57);
    fix_done(conns[1], 1, 1, 1, MS_E_FAILED, "a loss that is no number");
    ck_assert_str_eq(facts("job.failed"), "{\"generation\":1,\"code\":\"failed\",\"steps\":57}");

    running(2); /* nobody told of one */
    fix_done(conns[1], 1, 1, 1, MS_E_FAILED, "a loss that is no number");
    ck_assert_str_eq(facts("job.failed"), "{\"generation\":1,\"code\":\"failed\",\"steps\":0}");
}
END_TEST

static const struct {
    uint32_t from;
    uint64_t step;
    const char *words;
} rollbacks[] = {
    {MS_STATE_CHECKPOINT, 40, "\"from\":\"checkpoint\",\"again_from\":41,\"again_to\":57,"},
    {MS_STATE_KEPT, 0, "\"from\":\"beginning\",\"again_from\":1,\"again_to\":57,"},
    {MS_STATE_KEPT, 56, "\"from\":\"peer\",\"again_from\":0,\"again_to\":0,"},
};

START_TEST(where_the_state_is_from_is_told)
{
    running(1);
    progress(1, 57);
    fix_close(conns[0]);
    conns[0] = fix_register("w0", 11);
    Ms__RankReady msg = ready_message(2, 0, rollbacks[_i].step);
    msg.state_from = rollbacks[_i].from;
    fix_say(conns[0], MS_MSG_RANK_READY, &msg.base);

    ck_assert_msg(strstr(facts("job.recovered"), rollbacks[_i].words) != NULL, "%s",
                  facts("job.recovered"));
}
END_TEST

static void is_lost_how(const char *how)
{
    char words[64];
    snprintf(words, sizeof(words), "\"how\":\"%s\"", how);
    ck_assert_msg(strstr(facts("job.rank_lost"), words) != NULL, "%s", facts("job.rank_lost"));
}

START_TEST(how_it_was_noticed_is_a_word)
{
    running(4);
    come_back(1, 2, 0, 0, 0);
    is_lost_how("returned");
    fix_register("w2", 13);
    fix_beat(conns[0]);
    fix_pass(MS_PROBE_MS);
    is_lost_how("replaced");
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS - MS_PROBE_MS);
    is_lost_how("silent");
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_say(conns[0], MS_MSG_LEAVE, &leave.base);
    is_lost_how("left");
    ck_assert_ptr_null(strstr(facts("job.rank_lost"), "silent_ms"));

    running(2);
    peer_report(1, 0, 1);
    fix_pass(MS_BLAME_MS);
    is_lost_how("complaint");
    ck_assert_ptr_nonnull(strstr(facts("job.rank_lost"), "\"by\":0,"));

    load(JOB_RUNNING);
    fix_pass(2 * FIX_LEASE_MS);
    is_lost_how("missing");
    ck_assert_ptr_null(strstr(facts("job.rank_lost"), "silent_ms"));
}
END_TEST

/* All but one of them at once, and the longest names that there are. */
START_TEST(sixty_four_ranks_that_recover_at_once_lose_no_event)
{
    enum { RANKS = 65 };
    static uint64_t nodes[RANKS];
    const int is_long = _i == 1;
    char host[MS_HOST_MAX + 1];
    char id[MS_NAME_MAX + 1];
    memset(host, '"', sizeof(host)); /* each is two bytes there */
    host[is_long ? MS_HOST_MAX : 8] = '\0';
    memset(id, 'w', sizeof(id));
    start(SCHED_STANDING, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        snprintf(id + (is_long ? MS_NAME_MAX - 3 : 8), 4, "%03u", rank);
        nodes[rank] = node_on(id, 1 + rank, host);
    }
    submit(RANKS);
    fix_plan(nodes[0], 1, 1, FIX_PLAN);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        fix_ready_with(nodes[rank], 1, 1, rank, fix_digest(FIX_BITS));
    }
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        fix_close(nodes[rank]);
    }
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        snprintf(id + (is_long ? MS_NAME_MAX - 3 : 8), 4, "%03u", rank);
        nodes[rank] = node_on(id, 100 + rank, host);
    }
    fix_pass(RANKS / 16); /* it waits for more */
    const char *text = facts("job.recovering");
    ck_assert_uint_le(strlen(text), MS_FACTS_MAX);
    json_t *round = json_loads(text, 0, NULL);
    ck_assert_msg(round != NULL, "%s", text);
    const size_t told = json_array_size(json_object_get(round, "ranks"));
    const json_int_t left_out = json_integer_value(json_object_get(round, "ranks_left_out"));
    ck_assert_uint_eq(told + (size_t)left_out, RANKS - 1);
    ck_assert_int_eq(left_out > 0, is_long);
    ck_assert_uint_gt(told, 10);
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(round, "ranks"), told - 1), "host")),
                     host);
    json_decref(round);
}
END_TEST

START_TEST(any_text_is_a_text_there)
{
    struct facts f;
    start(SCHED_STANDING, 0);
    facts_begin(&f);
    facts_text(&f, "host", "a\"b\\c\nd\x01\xc3\xa4");
    facts_flag(&f, "is", true);
    ck_assert_str_eq(facts_end(fix.s, &f),
                     "{\"host\":\"a\\\"b\\\\c\\u000ad\\u0001\xc3\xa4\",\"is\":true}");

    static char large[MS_FACTS_MAX];
    memset(large, 'l', sizeof(large) - 1);
    facts_begin(&f);
    facts_text(&f, "host", large); /* better none than what nobody can read */
    ck_assert_str_eq(facts_end(fix.s, &f), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_facts");
    TCase *t = tcase_create("facts");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, a_loss_and_what_follows_are_told_in_keys_and_values);
    tcase_add_test(t, one_that_ends_early_tells_the_last_step_that_was_reported);
    tcase_add_loop_test(t, where_the_state_is_from_is_told, 0, (int)MS_ARRAY_SIZE(rollbacks));
    tcase_add_test(t, how_it_was_noticed_is_a_word);
    tcase_add_loop_test(t, sixty_four_ranks_that_recover_at_once_lose_no_event, 0, 2);
    tcase_add_test(t, any_text_is_a_text_there);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
