/* test_states.c - the transition tables, and that docs/states.md says the same */
#include "tests/test.h"

#include "daemon/sched/states.h"
#include "libworker/node/life.h"

static const struct ms_machine *const machines[] = {
    &states_of_nodes, &states_of_ranks, &states_of_topologies, &states_of_jobs, &life_machine};

START_TEST(names_of_job_states_are_those_of_the_interface)
{
    ck_assert_str_eq(sched_job_state_name(JOB_QUEUED), "QUEUED");
    ck_assert_str_eq(sched_job_state_name(JOB_PLACING), "PLACING");
    ck_assert_str_eq(sched_job_state_name(JOB_RUNNING), "RUNNING");
    ck_assert_str_eq(sched_job_state_name(JOB_RECOVERING), "RECOVERING");
    ck_assert_str_eq(sched_job_state_name(JOB_SUCCEEDED), "SUCCEEDED");
    ck_assert_str_eq(sched_job_state_name(JOB_FAILED), "FAILED");
    ck_assert_str_eq(sched_job_state_name(JOB_CANCELLED), "CANCELLED");
    ck_assert_str_eq(sched_job_state_name((enum sched_job_state)99), "?");
}
END_TEST

START_TEST(every_state_and_event_has_a_name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(machines); i++) {
        for (int state = 0; state < machines[i]->n_states; state++) {
            ck_assert_ptr_nonnull(machines[i]->states[state]);
        }
        for (int event = 0; event < machines[i]->n_events; event++) {
            ck_assert_ptr_nonnull(machines[i]->events[event]);
        }
    }
}
END_TEST

START_TEST(no_rule_stands_twice)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(machines); i++) {
        const struct ms_machine *m = machines[i];
        for (size_t a = 0; a < m->n_rules; a++) {
            for (size_t b = 0; b < a; b++) {
                ck_assert_int_eq(m->rules[a].from == m->rules[b].from &&
                                     m->rules[a].event == m->rules[b].event,
                                 0);
            }
        }
    }
}
END_TEST

START_TEST(ended_jobs_stay_ended)
{
    static const int ended[] = {JOB_SUCCEEDED, JOB_FAILED, JOB_CANCELLED};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ended); i++) {
        for (int event = 0; event < JOB_EVENTS; event++) {
            ck_assert_int_eq(ms_machine_next(&states_of_jobs, ended[i], event), -1);
        }
    }
}
END_TEST

START_TEST(next_follows_the_table)
{
    ck_assert_int_eq(ms_machine_next(&states_of_jobs, JOB_QUEUED, JOB_ON_PLACE), JOB_PLACING);
    ck_assert_int_eq(ms_machine_next(&states_of_jobs, JOB_QUEUED, JOB_ON_SUCCESS), -1);
    ck_assert_int_eq(ms_machine_next(&states_of_nodes, NODE_LOST, NODE_ON_REGISTER),
                     NODE_REGISTERED);
    ck_assert_int_eq(ms_machine_next(&states_of_topologies, TOPO_FAILED, TOPO_ON_COMPLETE), -1);
}
END_TEST

static char *read_docs(void)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[4096];
    snprintf(path, sizeof(path), "%s/docs/states.md", root != NULL ? root : ".");
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read: set MSCHED_SOURCE_ROOT", path);
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    ck_assert_uint_gt(n, 0);
    fclose(f);
    return text;
}

START_TEST(docs_have_every_rule_and_no_other)
{
    char *text = read_docs();
    size_t rules = 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(machines); i++) {
        const struct ms_machine *m = machines[i];
        for (size_t j = 0; j < m->n_rules; j++) {
            char line[128];
            snprintf(line, sizeof(line), "| %s | %s | %s | %s |", m->name,
                     m->states[m->rules[j].from], m->events[m->rules[j].event],
                     m->states[m->rules[j].to]);
            ck_assert_msg(strstr(text, line) != NULL, "docs/states.md lacks '%s'", line);
        }
        rules += m->n_rules;
    }
    size_t lines = 0;
    static const char *const starts[] = {"\n| node | ", "\n| rank | ", "\n| topology | ",
                                         "\n| job | ", "\n| life | "};
    for (size_t i = 0; i < MS_ARRAY_SIZE(starts); i++) {
        for (const char *at = strstr(text, starts[i]); at != NULL; at = strstr(at + 1, starts[i])) {
            lines++;
        }
    }
    ck_assert_uint_eq(lines, rules);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("states");
    TCase *t = tcase_create("tables");
    tcase_add_test(t, names_of_job_states_are_those_of_the_interface);
    tcase_add_test(t, every_state_and_event_has_a_name);
    tcase_add_test(t, no_rule_stands_twice);
    tcase_add_test(t, ended_jobs_stay_ended);
    tcase_add_test(t, next_follows_the_table);
    tcase_add_test(t, docs_have_every_rule_and_no_other);
    suite_add_tcase(s, t);
    return test_run(s);
}
