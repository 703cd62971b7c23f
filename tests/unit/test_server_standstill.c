/* test_server_standstill.c - a server that stands still where it does not wait for anybody: while
 * it starts, and within a commit */
#include "tests/unit/server_world.h"

enum { STILL_MS = 60000 };

/* Job 1 runs on node w0, which has to come back within a lease. */
static void load_running_job(struct sched *sched)
{
    struct sched_job_row job = {.id = 1,
                                .state = JOB_RUNNING,
                                .name = "job",
                                .owner = "user:alice",
                                .workers = 1,
                                .generation = 3,
                                .spec = (const uint8_t *)"{}",
                                .spec_bytes = 2};
    struct sched_member_row member = {
        .job = 1, .node_id = "w0", .incarnation = 7, .host_name = "h"};
    struct ms_err why = {0, ""};
    if (sched_load_job(sched, &job, &why) < 0 || sched_load_member(sched, &member, &why) < 0) {
        _exit(103);
    }
}

static void job_waits_for_its_node(int fd)
{
    uint8_t buf[256];
    uint32_t id = 0;
    ProtobufCMessage *answer = NULL;
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.job = 1;
    put(fd, buf, pack(MS_MSG_JOB_QUERY, 5, &query.base, buf));
    ck_assert_uint_eq(get(fd, &id, &answer), MS_MSG_JOB_LIST);
    const Ms__JobInfo *job = ((Ms__JobList *)answer)->jobs[0];
    ck_assert_msg(strcmp(job->state, "RUNNING") == 0, "%s: %s", job->state, job->reason);
    ck_assert_ptr_nonnull(strstr(job->reason, "waits for the nodes of rank 0 to come back"));
    ms_wire_free(answer);
}

START_TEST(who_could_not_be_heard_while_it_started_is_waited_for)
{
    load = load_running_job;
    stage->start_ms = STILL_MS;
    start(-1, 0);

    job_waits_for_its_node(greet());
}
END_TEST

START_TEST(who_could_not_be_heard_within_a_commit_is_waited_for)
{
    load = load_running_job;
    start(-1, 0);
    int fd = greet();
    job_waits_for_its_node(fd);
    const int begun = stage->commits;
    stage->hold = 1;
    uint8_t buf[512];
    put(fd, buf, pack_submit(7, buf));
    await_commits(begun + 1);

    stage->skew_ms += STILL_MS;
    stage->hold = 0;
    uint32_t id = 0;
    ProtobufCMessage *answer = NULL;
    ck_assert_uint_eq(get(fd, &id, &answer), MS_MSG_SUBMITTED);
    ms_wire_free(answer);
    job_waits_for_its_node(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server_standstill");
    TCase *tcase = tcase_create("server_standstill");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, who_could_not_be_heard_while_it_started_is_waited_for);
    tcase_add_test(tcase, who_could_not_be_heard_within_a_commit_is_waited_for);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
