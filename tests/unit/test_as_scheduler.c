/* test_as_scheduler.c - MS_ROLE=MS_SCHED: when msworker becomes msschedd, which one, in what words
 */
#include "libworker/program/as_scheduler.h"

#include "config.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 32 };

static const struct ms_setting settings[] = {
    {"run_dir", "--run-dir", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, ""},
    {"plan", "--plan", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, ""},
    {"log_level", "--log-level", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, ""},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};

static int split(char *text, char **argv)
{
    char *state = NULL;
    int n = 0;
    for (char *word = strtok_r(text, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        argv[n++] = word;
    }
    argv[n] = NULL;
    return n;
}

static int is_asked(const char *line)
{
    char text[128];
    char *argv[WORDS_MAX];
    snprintf(text, sizeof(text), "%s", line);
    const int argc = split(text, argv);
    return as_scheduler_is_asked(settings, argc, argv);
}

START_TEST(the_role_decides_but_for_a_worker_of_msctl_run_and_a_question)
{
    unsetenv("MS_ROLE");
    ck_assert(!is_asked("msworker net.yaml"));
    setenv("MS_ROLE", "MS_WORKER", 1);
    ck_assert(!is_asked("msworker net.yaml"));
    setenv("MS_ROLE", "MS_SCHED", 1);
    ck_assert(is_asked("msworker net.yaml"));
    ck_assert(is_asked("msworker"));
    ck_assert(is_asked("msworker --run-dir device net.yaml"));
    ck_assert(is_asked("msworker net.yaml --run-dir=device"));
    ck_assert(!is_asked("msworker --run-dir device"));
    ck_assert(!is_asked("msworker --run-dir=device --log-level info"));
    ck_assert(!is_asked("msworker --help"));
    ck_assert(!is_asked("msworker net.yaml --version"));
    unsetenv("MS_ROLE");
}
END_TEST

static const struct {
    const char *given, *passed;
} lines[] = {
    {"msworker net.yaml", "msschedd net.yaml"},
    {"msworker --run-dir device --plan=plan.txt net.yaml", "msschedd net.yaml"},
    {"msworker --log-level debug net.yaml", "msschedd --log-level debug net.yaml"},
    {"msworker --log-level=debug --plan p", "msschedd --log-level=debug"},
    {"msworker --check-config", "msschedd --check-config"},
    {"msworker --anyone worker net.yaml", "msschedd --anyone worker net.yaml"},
    {"msworker net.yaml --plan", "msschedd net.yaml"},
    {"msworker", "msschedd"},
};

START_TEST(settings_of_a_worker_are_left_out_the_rest_stays_in_order)
{
    char text[128];
    char got[128] = "";
    char *argv[WORDS_MAX];
    const char *words[WORDS_MAX];
    snprintf(text, sizeof(text), "%s", lines[_i].given);
    const int argc = split(text, argv);

    const int n = as_scheduler_words(settings, argc, argv, words);

    for (int i = 0; i < n; i++) {
        const size_t used = strlen(got);
        snprintf(got + used, sizeof(got) - used, "%s%s", i > 0 ? " " : "", words[i]);
    }
    ck_assert_str_eq(got, lines[_i].passed);
    ck_assert_ptr_null(words[n]);
}
END_TEST

START_TEST(it_is_found_beside_the_name_by_which_we_were_started)
{
    const char *dir = test_dir_make();
    char self[256];
    char other[256];
    char got[512];
    snprintf(self, sizeof(self), "%s/msworker", dir);
    snprintf(other, sizeof(other), "%s/msschedd", dir);
    fclose(fopen(other, "w"));

    if (access(MSCHED_BINDIR "/msschedd", X_OK) != 0) { /* what cannot be run is not it */
        ck_ms_fails(as_scheduler_find(self, got, sizeof(got), err), MS_E_NOT_FOUND,
                    "tests/unit/msschedd nor " MSCHED_BINDIR "/msschedd");
    }
    ck_assert_int_eq(chmod(other, 0700), 0);
    ck_ms_ok(as_scheduler_find(self, got, sizeof(got), err));

    ck_assert_str_eq(got, other);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("as_scheduler");
    TCase *tcase = tcase_create("as_scheduler");
    tcase_add_test(tcase, the_role_decides_but_for_a_worker_of_msctl_run_and_a_question);
    tcase_add_loop_test(tcase, settings_of_a_worker_are_left_out_the_rest_stays_in_order, 0,
                        (int)MS_ARRAY_SIZE(lines));
    tcase_add_test(tcase, it_is_found_beside_the_name_by_which_we_were_started);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
