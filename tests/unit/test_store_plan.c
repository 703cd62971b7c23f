/* test_store_plan.c - plans in the database: each text once, with its digest, as long as it is
 * named
 */
#include "daemon/store/files.h"
#include "proto/digest.h"
#include "proto/wire.h"
#include "tests/store_ask.h"
#include "tests/unit/store_fixture.h"

static const char *sha256_of(const char *text)
{
    static char hex[MS_SHA256_HEX];
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, strlen(text), digest);
    ms_sha256_hex(digest, hex);
    return hex;
}

static struct sched_plan_row make_plan(const char *text)
{
    struct sched_plan_row row = {.text = text, .bytes = strlen(text)};
    snprintf(row.sha256, sizeof(row.sha256), "%s", sha256_of(text));
    return row;
}

static int put_with_plan(uint64_t id, enum sched_job_state state, const char *text)
{
    struct sched_plan_row plan = make_plan(text);
    struct sched_job_row job = make_job(id);
    job.state = state;
    job.plan_given = id % 2 == 1;
    snprintf(job.plan, sizeof(job.plan), "%s", plan.sha256);
    struct sched_effect effects[] = {
        {.kind = SCHED_DO_PUT_JOB, .job = &job}, /* before its plan: one transaction has both */
        {.kind = SCHED_DO_PUT_PLAN, .plan = &plan},
        {.kind = SCHED_DO_PUT_META, .meta_key = "ticks", .meta_value = id}};
    return store_commit(store, effects, 3, NULL);
}

static int drop_plan(const char *text)
{
    struct sched_plan_row plan = make_plan(text);
    struct sched_effect effect = {.kind = SCHED_DO_DROP_PLAN, .plan = &plan};
    return store_commit(store, &effect, 1, NULL);
}

START_TEST(a_text_is_stored_once_and_given_to_jobs_that_wait)
{
    ck_assert_int_eq(put_with_plan(1, JOB_QUEUED, "plan a\n"), 0);
    ck_assert_int_eq(put_with_plan(2, JOB_PLACING, "plan a\n"), 0);

    reopen();

    ck_assert_uint_eq(loaded.plans_n, 1);
    ck_assert_str_eq(loaded.plan, "plan a\n");
    ck_assert_str_eq(loaded.plan_sha256, sha256_of("plan a\n"));
    ck_assert_str_eq(loaded.jobs[0].plan, sha256_of("plan a\n"));
    ck_assert(loaded.jobs[0].plan_given && !loaded.jobs[1].plan_given);
    ck_assert_str_eq(loaded.plan_text, "plan a\n");
}
END_TEST

START_TEST(jobs_that_run_or_have_ended_are_loaded_without_the_text)
{
    static const enum sched_job_state states[] = {JOB_RUNNING, JOB_SUCCEEDED, JOB_FAILED,
                                                  JOB_CANCELLED};
    ck_assert_int_eq(put_with_plan(1, states[_i], "plan a\n"), 0);

    reopen();

    ck_assert_str_eq(loaded.jobs[0].plan, sha256_of("plan a\n"));
    ck_assert_str_eq(loaded.plan_text, "none");
}
END_TEST

START_TEST(a_plan_that_is_dropped_is_gone)
{
    struct sched_job_row job = make_job(1);
    ck_assert_int_eq(put_with_plan(1, JOB_PLACING, "plan a\n"), 0);
    ck_assert_int_eq(put(&job), 0); /* it waits again, and has none */
    ck_assert_int_eq(drop_plan("plan a\n"), 0);

    reopen();

    ck_assert_uint_eq(loaded.plans_n, 0);
    ck_assert_str_eq(loaded.jobs[0].plan, "");
}
END_TEST

/* The frame that answers a question for the plan of the job; ms_wire_free it. */
static ProtobufCMessage *ask(uint64_t job, uint16_t *ret_type)
{
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    size_t size = 0;
    uint8_t *frame = store_ask(store, SCHED_READ_PLAN, 5, job, &size);
    ck_assert_ptr_nonnull(frame);
    ck_ms_ok(ms_wire_parse_header(frame, &header, err));
    ck_ms_ok(ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, err));
    free(frame);
    *ret_type = header.type;
    return msg;
}

START_TEST(the_plan_of_a_job_is_read_back_as_an_answer)
{
    uint16_t type = 0;
    ck_assert_int_eq(put_with_plan(1, JOB_SUCCEEDED, "plan a\n"), 0);

    ProtobufCMessage *msg = ask(1, &type);

    ck_assert_uint_eq(type, MS_MSG_JOB_LIST);
    ck_assert_str_eq(((const Ms__JobList *)msg)->jobs[0]->plan, "plan a\n");
    ck_assert_uint_eq(((const Ms__JobList *)msg)->jobs[0]->job_json.len, 0);
    ms_wire_free(msg);
    msg = ask(2, &type); /* let go by the tick that asked */
    ck_assert_uint_eq(type, MS_MSG_ERROR);
    ck_assert_int_eq(((const Ms__Error *)msg)->code, MS_E_NOT_FOUND);
    ms_wire_free(msg);
}
END_TEST

START_TEST(a_text_that_is_not_its_digest_is_no_answer_and_no_start)
{
    uint16_t type = 0;
    ck_assert_int_eq(put_with_plan(1, JOB_SUCCEEDED, "plan a\n"), 0);
    store_close(store);
    store = NULL;
    ck_ms_ok(store_open(path, &store, err));
    load();
    store_close(store);
    store = NULL;
    sql("UPDATE plan SET text = 'plan b' || char(10)");
    ck_ms_ok(store_open(path, &store, err));

    ProtobufCMessage *msg = ask(1, &type);

    ck_assert_uint_eq(type, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(strstr(((const Ms__Error *)msg)->text, "the plan of job 1"));
    ms_wire_free(msg);
    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG, "of its table plan does not match");
}
END_TEST

START_TEST(a_plan_that_vanished_is_noticed)
{
    ck_assert_int_eq(put_with_plan(1, JOB_SUCCEEDED, "plan a\n"), 0);
    store_close(store);
    store = NULL;
    sql("DROP TRIGGER plan_out; DELETE FROM plan;"
        "CREATE TRIGGER plan_out AFTER DELETE ON plan BEGIN UPDATE ledger SET rows=rows-1,"
        " sum=(sum-old.sum)&4611686018427387903 WHERE name='plan'; END;");
    ck_ms_ok(store_open(path, &store, err));

    ck_ms_fails(store_load(store, &loaded, err), MS_E_CONFIG,
                "its table plan holds 0 rows and its ledger says 1");
}
END_TEST

/* The largest plan, and what is written with it: a piece of the reserve has room for them. */
START_TEST(a_full_disk_has_a_piece_of_the_reserve_for_a_plan)
{
    static char text[MS_PLAN_MAX + 1];
    memset(text, 'x', MS_PLAN_MAX);
    ck_assert_int_eq(put_with_plan(1, JOB_PLACING, "plan a\n"), 0);
    disk_left = 100;

    ck_assert_int_eq(put_with_plan(1, JOB_PLACING, text), 1);

    ck_assert_uint_ge(store_reserve_held(path), MS_STORE_RESERVE - MS_STORE_PIECE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_plan");
    TCase *tcase = tcase_create("plans");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_text_is_stored_once_and_given_to_jobs_that_wait);
    tcase_add_loop_test(tcase, jobs_that_run_or_have_ended_are_loaded_without_the_text, 0, 4);
    tcase_add_test(tcase, a_plan_that_is_dropped_is_gone);
    tcase_add_test(tcase, the_plan_of_a_job_is_read_back_as_an_answer);
    tcase_add_test(tcase, a_text_that_is_not_its_digest_is_no_answer_and_no_start);
    tcase_add_test(tcase, a_plan_that_vanished_is_noticed);
    tcase_add_test(tcase, a_full_disk_has_a_piece_of_the_reserve_for_a_plan);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
