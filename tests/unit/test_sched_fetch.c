/* test_sched_fetch.c - who gets a job's results: its owner and admins, from the node that has them
 */
#include "daemon/sched/state.h"
#include "tests/unit/sched_fixture.h"

static uint8_t token[MS_TOKEN_LEN] = {1, 2, 3};

static void ask(uint64_t conn, uint64_t job, uint32_t rank, unsigned what)
{
    Ms__Fetch msg = MS__FETCH__INIT;
    msg.job = job;
    msg.rank = rank;
    msg.what = what;
    fix_say(conn, MS_MSG_FETCH, &msg.base);
}

static void answer(uint64_t worker, uint64_t route, int code, const char *text)
{
    Ms__FetchReady msg = MS__FETCH_READY__INIT;
    msg.route = route;
    msg.code = code;
    msg.text = (char *)text;
    if (code == 0) {
        msg.token.data = token;
        msg.token.len = sizeof(token);
        msg.address = (char *)"10.0.0.7:8201";
        msg.cert_sha256 = (char *)"ab";
        msg.size = 1234;
    }
    fix_say(worker, MS_MSG_FETCH_READY, &msg.base);
}

static uint64_t granted(uint64_t worker)
{
    const Ms__FetchGrant *grant = fix_heard(worker, MS_MSG_FETCH_GRANT);
    ck_assert_ptr_nonnull(grant);
    return grant->route;
}

static void refused(uint64_t conn, int code, const char *part)
{
    const Ms__Error *error = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, code);
    ck_assert_msg(strstr(error->text, part) != NULL, "'%s' lacks '%s'", error->text, part);
}

START_TEST(owner_is_sent_to_the_node_that_has_the_file)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    uint32_t frame = fix.frame;
    const Ms__FetchGrant *grant = fix_heard(conns[0], MS_MSG_FETCH_GRANT);
    ck_assert_ptr_nonnull(grant);
    ck_assert_uint_eq(grant->job, 1);
    ck_assert_uint_eq(grant->what, MS_FETCH_WEIGHTS);
    ck_assert_str_eq(grant->asker, "user:alice"); /* whose share of the node's places it takes */
    ck_assert(!grant->admin);
    ck_assert_str_eq(grant->principal, "user:alice"); /* not the name alone: roles may share it */
    answer(conns[0], grant->route, 0, "");

    const Ms__FetchTicket *ticket = fix_heard(alice, MS_MSG_FETCH_TICKET);
    ck_assert_ptr_nonnull(ticket);
    ck_assert_uint_eq(fix_find(alice, MS_MSG_FETCH_TICKET)->id, frame);
    ck_assert_mem_eq(ticket->token.data, token, sizeof(token));
    ck_assert_str_eq(ticket->address, "10.0.0.7:8201");
    ck_assert_str_eq(ticket->node_id, "w0");
    ck_assert_uint_eq(ticket->size, 1234);
}
END_TEST

/* What the node is told the job by, in all three ways. */
static void collect_tags(uint8_t secret, int64_t later_ms, char tags[3][MS_JOB_TAG_LEN + 1])
{
    struct sched_config cfg = fix_config(SCHED_STANDING, 0);
    cfg.has_database = 1;
    memset(cfg.stamp_secret, secret, sizeof(cfg.stamp_secret));
    fix_create(&cfg);
    ck_ms_ok(sched_load_done(fix.s, fix.now, err));
    fix.now.wall_ms += later_ms;
    uint64_t node = fix_register("w0", 1);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit job = fix_job(1);
    fix_say(alice, MS_MSG_SUBMIT, &job.base);
    const Ms__Assign *assign = fix_heard(node, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    snprintf(tags[0], sizeof(tags[0]), "%s", assign->job_tag);
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    const Ms__FetchGrant *grant = fix_heard(node, MS_MSG_FETCH_GRANT);
    ck_assert_ptr_nonnull(grant);
    snprintf(tags[1], sizeof(tags[1]), "%s", grant->job_tag);
    Ms__LogQuery query = MS__LOG_QUERY__INIT;
    query.job = 1;
    fix_say(alice, MS_MSG_LOG_QUERY, &query.base);
    const Ms__LogRead *read = fix_heard(node, MS_MSG_LOG_READ);
    ck_assert_ptr_nonnull(read);
    snprintf(tags[2], sizeof(tags[2]), "%s", read->job_tag);
}

START_TEST(a_job_is_told_by_more_than_its_number)
{
    char here[3][MS_JOB_TAG_LEN + 1];
    char again[3][MS_JOB_TAG_LEN + 1];
    char elsewhere[3][MS_JOB_TAG_LEN + 1];
    char later[3][MS_JOB_TAG_LEN + 1];

    collect_tags(9, 0, here);
    collect_tags(9, 0, again);
    collect_tags(8, 0, elsewhere);
    collect_tags(9, 1, later);

    ck_assert_uint_eq(strlen(here[0]), MS_JOB_TAG_LEN);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(here[i], here[0]);
        ck_assert_str_eq(again[i], here[0]); /* the same database, whatever the process */
        ck_assert_str_eq(elsewhere[i], elsewhere[0]);
    }
    ck_assert_str_ne(elsewhere[0], here[0]);
    ck_assert_str_ne(later[0], here[0]); /* another job of that number */
}
END_TEST

START_TEST(log_comes_from_the_node_of_its_rank)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    ask(alice, 1, 1, MS_FETCH_LOG);

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_FETCH_GRANT));
    ck_assert_uint_ne(granted(conns[1]), 0);
}
END_TEST

START_TEST(another_user_is_refused_and_no_node_hears_of_it)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");

    for (unsigned what = MS_FETCH_WEIGHTS; what <= MS_FETCH_LOG; what++) {
        ask(bob, 1, 0, what);
        refused(bob, MS_E_REFUSED, "only its owner or an admin may fetch its results");
        ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_FETCH_GRANT));
    }
}
END_TEST

START_TEST(admin_may_fetch_what_others_submitted)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");
    struct ms_peer peer = {.uid = 0};
    ms_principal_from_uid(0, "root", 0, MS_ROLE_WORKER, &peer.who); /* over the Unix socket */
    struct sched_event opened = {.kind = SCHED_EV_OPENED, .conn = ++fix.conns, .peer = &peer};
    fix_apply(&opened);
    uint64_t both = fix.conns;

    ask(root, 1, 0, MS_FETCH_METRICS);
    ck_assert_uint_ne(granted(conns[0]), 0);
    ck_assert(((const Ms__FetchGrant *)fix_heard(conns[0], MS_MSG_FETCH_GRANT))->admin);
    ask(both, 1, 0, MS_FETCH_METRICS);

    ck_assert_uint_ne(granted(conns[0]), 0);
}
END_TEST

START_TEST(node_of_release_0_1_hears_nothing_that_it_does_not_know)
{
    uint64_t conns[2];
    fix_level = 0;
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    for (unsigned what = MS_FETCH_WEIGHTS; what <= MS_FETCH_LOG; what++) {
        ask(alice, 1, 0, what);

        refused(alice, MS_E_UNSUPPORTED, "node w0 on host h runs a release that hands no results");
        ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_FETCH_GRANT));
    }
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    refused(alice, MS_E_UNSUPPORTED, "copy by hand; its weights: /run/weights.safetensors");
}
END_TEST

START_TEST(frame_that_a_node_cannot_know_never_leaves)
{
    uint64_t conns[2];
    Ms__FetchGrant grant = MS__FETCH_GRANT__INIT;
    fix_level = 0;
    fix_running(conns);
    uint64_t newer = fix_open(MS_ROLE_WORKER, "host-certificate");
    fix_level = MS_WIRE_LEVEL;
    Ms__Register msg = fix_node("newer", 9);
    fix_say(newer, MS_MSG_REGISTER, &msg.base);

    sched_begin_tick(fix.s);
    fix_drop_answers();
    emit_send(fix.s, conns[0], MS_MSG_FETCH_GRANT, 0, &grant.base);
    emit_send(fix.s, newer, MS_MSG_FETCH_GRANT, 0, &grant.base);
    fix_collect();

    ck_assert_ptr_null(fix_heard(conns[0], MS_MSG_FETCH_GRANT));
    ck_assert_ptr_nonnull(fix_heard(newer, MS_MSG_FETCH_GRANT));
}
END_TEST

START_TEST(what_cannot_be_is_refused_in_words)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    ask(alice, 9, 0, MS_FETCH_WEIGHTS);
    refused(alice, MS_E_NOT_FOUND, "job 9 does not exist");
    ask(alice, 1, 0, 5);
    refused(alice, MS_E_INVALID, "result 5 of job 1");
    ask(alice, 1, 1, MS_FETCH_SAVED);
    refused(alice, MS_E_INVALID, "the checkpoints of job 1 are rank 0's");
    ask(alice, 1, 1, MS_FETCH_WEIGHTS);
    refused(alice, MS_E_INVALID, "the weights of job 1 are rank 0's");
    ask(alice, 1, 5, MS_FETCH_LOG);
    refused(alice, MS_E_INVALID, "its ranks are 0 to 1");
}
END_TEST

START_TEST(node_that_is_gone_is_named_with_host_and_path)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_close(conns[0]);

    ask(alice, 1, 0, MS_FETCH_WEIGHTS);

    refused(alice, MS_E_UNREACHABLE,
            "node w0 on host h is not connected; its weights: /run/weights.safetensors");
}
END_TEST

/* It is back in some tenths of a second: whoever asks is to ask again, and no longer than that. */
START_TEST(node_that_begins_anew_is_told_from_one_that_is_gone)
{
    uint64_t conns[2];
    Ms__Leave leave = MS__LEAVE__INIT;
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    leave.reason = (char *)"begins anew: it has served with the instruction set avx2";
    leave.returns = 1;
    fix_say(conns[0], MS_MSG_LEAVE, &leave.base);
    leave.reason = (char *)"the worker process ends";
    leave.returns = 0;
    fix_say(conns[1], MS_MSG_LEAVE, &leave.base);

    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    refused(alice, MS_E_UNAVAILABLE,
            "node w0 on host h begins anew for another job, and comes back in a moment: try again; "
            "its weights: /run/weights.safetensors");
    ask(alice, 1, 1, MS_FETCH_LOG);
    refused(alice, MS_E_UNREACHABLE, "node w1 on host h is not connected");

    fix_pass(FIX_LEASE_MS + 1);
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    refused(alice, MS_E_UNREACHABLE, "node w0 on host h is not connected");
    uint64_t back = fix_register("w0", 77);
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    ck_assert_uint_ne(granted(back), 0);
}
END_TEST

/* The id is free once its node has gone: whoever takes it has not run the job. */
START_TEST(somebody_elses_node_with_the_same_id_is_not_asked)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_close(conns[0]);
    uint64_t other = fix_open(MS_ROLE_WORKER, "another-certificate");
    Ms__Register msg = fix_node("w0", 77);
    fix_say(other, MS_MSG_REGISTER, &msg.base);
    ck_assert_ptr_nonnull(fix_heard(other, MS_MSG_REGISTERED));

    ask(alice, 1, 0, MS_FETCH_WEIGHTS);

    ck_assert_ptr_null(fix_heard(other, MS_MSG_FETCH_GRANT));
    refused(alice, MS_E_UNREACHABLE,
            "node w0 is worker:another-certificate's now, and was worker:host-certificate's");
    fix_close(other);
    uint64_t back = fix_register("w0", 78);
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    ck_assert_uint_ne(granted(back), 0);
}
END_TEST

START_TEST(node_that_has_no_such_file_says_so_to_the_client)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);

    answer(conns[0], granted(conns[0]), MS_E_NOT_FOUND, "there is no /jobs/1/weights.safetensors");

    refused(alice, MS_E_NOT_FOUND,
            "weights of job 1 rank 0: node w0 on host h says: there is no /jobs/1/weights");
}
END_TEST

START_TEST(ticket_of_another_node_is_not_forwarded)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    uint64_t route = granted(conns[0]);

    answer(conns[1], route, 0, "");

    ck_assert_ptr_null(fix_heard(alice, MS_MSG_FETCH_TICKET));
}
END_TEST

START_TEST(log_read_is_no_ticket_and_the_other_way_round)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    Ms__LogQuery query = MS__LOG_QUERY__INIT;
    query.job = 1;
    fix_say(alice, MS_MSG_LOG_QUERY, &query.base);
    uint64_t route = ((const Ms__LogRead *)fix_heard(conns[0], MS_MSG_LOG_READ))->route;

    answer(conns[0], route, 0, "");

    ck_assert_ptr_null(fix_heard(alice, MS_MSG_FETCH_TICKET));
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    chunk.route = granted(conns[0]);
    fix_say(conns[0], MS_MSG_LOG_CHUNK, &chunk.base);
    ck_assert_ptr_null(fix_heard(alice, MS_MSG_LOG_CHUNK));
}
END_TEST

START_TEST(bytes_are_not_the_schedulers_to_give)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    Ms__FetchRead read = MS__FETCH_READ__INIT;

    fix_say(alice, MS_MSG_FETCH_READ, &read.base);

    refused(alice, MS_E_REFUSED, "come from the node that a ticket names");
}
END_TEST

START_TEST(silent_node_ends_the_question)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    ask(alice, 1, 0, MS_FETCH_WEIGHTS);
    fix_pass(MS_LOG_READ_MS / 2);
    fix_beat(conns[0]);
    fix_beat(conns[1]);

    fix_pass(MS_LOG_READ_MS / 2);

    refused(alice, MS_E_TIMEOUT, "weights of job 1 rank 0: node w0 did not answer");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_fetch");
    TCase *t = tcase_create("fetch");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, owner_is_sent_to_the_node_that_has_the_file);
    tcase_add_test(t, a_job_is_told_by_more_than_its_number);
    tcase_add_test(t, log_comes_from_the_node_of_its_rank);
    tcase_add_test(t, another_user_is_refused_and_no_node_hears_of_it);
    tcase_add_test(t, admin_may_fetch_what_others_submitted);
    tcase_add_test(t, node_of_release_0_1_hears_nothing_that_it_does_not_know);
    tcase_add_test(t, frame_that_a_node_cannot_know_never_leaves);
    tcase_add_test(t, what_cannot_be_is_refused_in_words);
    tcase_add_test(t, node_that_is_gone_is_named_with_host_and_path);
    tcase_add_test(t, node_that_begins_anew_is_told_from_one_that_is_gone);
    tcase_add_test(t, somebody_elses_node_with_the_same_id_is_not_asked);
    tcase_add_test(t, node_that_has_no_such_file_says_so_to_the_client);
    tcase_add_test(t, ticket_of_another_node_is_not_forwarded);
    tcase_add_test(t, log_read_is_no_ticket_and_the_other_way_round);
    tcase_add_test(t, bytes_are_not_the_schedulers_to_give);
    tcase_add_test(t, silent_node_ends_the_question);
    suite_add_tcase(suite, t);
    return test_run(suite);
}
