/* test_cli_submit_resume.c - does a job that goes on get a node that has the checkpoint? */
#include "cli/submit_resume.h"
#include "tests/test.h"

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
    tcase_add_test(tc, job_that_takes_all_nodes_has_one_there);
    tcase_add_test(tc, nodes_that_are_not_there_do_not_count);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
