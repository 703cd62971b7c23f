/* test_cli_submit_resume.c - is a job one that may go on, and does it get a node that has the
 * checkpoint? */
#include "cli/resume.h"
#include "cli/submit_resume.h"
#include "tests/test.h"

/* Of tests/golden: by a plan with one thread. */
static void read_golden(struct checkpoint_manifest *ret)
{
    char path[1100];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/checkpoint/linear-13.json",
             root != NULL ? root : ".");
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_NAMED, ret, err));
}

START_TEST(job_with_other_threads_than_the_plan_is_refused_by_key_with_both)
{
    static struct job job;
    struct checkpoint_manifest m;
    const struct job_override threads = {.key_value = "threads=2"};
    read_golden(&m);
    ck_ms_ok(job_parse(m.job, strlen(m.job), "m.json", NULL, &threads, 1, 0, &job, err));
    job.epochs = 2;

    ck_ms_fails(resume_check(&job, &m, "checkpoint linear-13", err), MS_E_REFUSED,
                "checkpoint linear-13 is of a plan with threads: 1, and this job has threads: 2");
    job.threads = 1;
    ck_ms_ok(resume_check(&job, &m, "checkpoint linear-13", err));
    job.threads = 0;
    ck_ms_ok(resume_check(&job, &m, "checkpoint linear-13", err));
    checkpoint_manifest_fini(&m);
}
END_TEST

static int may_miss(const char *const (*rows)[2], size_t n, uint32_t workers)
{
    Ms__NodeInfo infos[8];
    Ms__NodeInfo *nodes[8];
    for (size_t i = 0; i < n; i++) {
        ms__node_info__init(&infos[i]);
        infos[i].host_name = (char *)rows[i][0];
        infos[i].state = (char *)rows[i][1];
        nodes[i] = &infos[i];
    }
    return submit_resume_may_miss(nodes, n, "h1", workers);
}

START_TEST(job_that_takes_all_nodes_has_one_there)
{
    static const char *const rows[][2] = {
        {"h1", "REGISTERED"}, {"h2", "REGISTERED"}, {"h3", "REGISTERED"}};
    ck_assert(!may_miss(rows, 3, 3));
    ck_assert(may_miss(rows, 3, 2));
    ck_assert(may_miss(rows, 3, 1));
}
END_TEST

START_TEST(nodes_that_are_not_there_do_not_count)
{
    static const char *const rows[][2] = {
        {"h1", "REGISTERED"}, {"h1", "REGISTERED"}, {"h2", "LOST"}, {"h3", "LEFT"}};
    ck_assert(!may_miss(rows, 4, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("submit_resume");
    TCase *tc = tcase_create("submit_resume");
    tcase_add_test(tc, job_with_other_threads_than_the_plan_is_refused_by_key_with_both);
    tcase_add_test(tc, job_that_takes_all_nodes_has_one_there);
    tcase_add_test(tc, nodes_that_are_not_there_do_not_count);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
