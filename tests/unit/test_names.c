/* test_names.c - names of uids: asked once, by a thread, and the loop goes on when nobody answers
 */
#include "daemon/names.h"
#include "tests/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct event_base *base;
static struct names *names;
static atomic_int asked;
static int answers;
static int gate[2]; /* uid 7000 is known when somebody writes here */

static int lookup(unsigned uid, struct ms_account *ret)
{
    char byte = 0;
    asked++;
    if (uid == 7000 && read(gate[0], &byte, 1) != 1) {
        return MS_E_IO;
    }
    if (uid == 7001) {
        return MS_E_IO;
    }
    if (uid != 7002) {
        snprintf(ret->name, sizeof(ret->name), "u%u", uid);
    }
    return 0;
}

static void on_answer(void *arg)
{
    (void)arg;
    answers++;
}

static void setup(void)
{
    asked = 0;
    answers = 0;
    ck_assert_int_eq(pipe(gate), 0);
    base = event_base_new();
    ck_ms_ok(names_create(base, lookup, on_answer, NULL, &names, err));
}

static void teardown(void)
{
    close(gate[1]); /* a thread that still reads goes on */
    names_destroy(names);
    event_base_free(base);
}

static enum names_answer wait_for(unsigned uid, struct ms_account *ret)
{
    enum names_answer answer;
    while ((answer = names_find(names, uid, ret)) == NAMES_PENDING) {
        event_base_loop(base, EVLOOP_ONCE);
    }
    return answer;
}

START_TEST(a_name_is_asked_for_once)
{
    struct ms_account account;
    ck_assert_int_eq(names_find(names, 1000, &account), NAMES_PENDING);
    ck_assert_int_eq(wait_for(1000, &account), NAMES_KNOWN);
    ck_assert_str_eq(account.name, "u1000");
    ck_assert_int_eq(names_find(names, 1000, &account), NAMES_KNOWN);
    ck_assert_int_eq(asked, 1);

    names_forget(names);
    ck_assert_int_eq(wait_for(1000, &account), NAMES_KNOWN);
    ck_assert_int_eq(asked, 2);
}
END_TEST

START_TEST(a_uid_without_a_name_is_known_to_have_none)
{
    struct ms_account account = {0, "x"};
    ck_assert_int_eq(wait_for(7002, &account), NAMES_KNOWN);
    ck_assert_str_eq(account.name, "");
}
END_TEST

START_TEST(an_error_is_no_name_and_is_not_asked_for_again_at_once)
{
    struct ms_account account;
    ck_assert_int_eq(wait_for(7001, &account), NAMES_FAILED);
    ck_assert_int_eq(names_find(names, 7001, &account), NAMES_FAILED);
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(a_directory_that_hangs_costs_patience_and_not_the_loop)
{
    struct ms_account account;
    ck_assert_int_eq(wait_for(1000, &account), NAMES_KNOWN);

    ck_assert_int_eq(wait_for(7000, &account), NAMES_FAILED); /* nobody wrote into the gate */

    ck_assert_int_eq(names_find(names, 1000, &account), NAMES_KNOWN);
    ck_assert_int_eq(names_find(names, 1001, &account), NAMES_PENDING);
    ck_assert_int_eq(write(gate[1], "g", 1), 1);
    ck_assert_int_eq(wait_for(1001, &account), NAMES_KNOWN);
}
END_TEST

START_TEST(questions_have_a_limit)
{
    struct ms_account account;
    int failed = 0;
    ck_assert_int_eq(names_find(names, 7000, &account), NAMES_PENDING);
    for (unsigned uid = 0; uid < 200; uid++) {
        failed += names_find(names, uid, &account) == NAMES_FAILED;
    }
    ck_assert_int_ge(failed, 200 - 64);
    ck_assert_int_lt(failed, 200);
}
END_TEST

START_TEST(many_uids_in_few_places_all_get_their_names)
{
    for (unsigned i = 0; i < 50; i++) {
        struct ms_account account;
        char want[MS_NAME_MAX + 1];
        unsigned uid = 100000 + 1024 * i;
        snprintf(want, sizeof(want), "u%u", uid);
        ck_assert_int_eq(wait_for(uid, &account), NAMES_KNOWN);
        ck_assert_str_eq(account.name, want);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *tc = tcase_create("names");
    tcase_set_timeout(tc, 60); /* one waits for the patience to end */
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_name_is_asked_for_once);
    tcase_add_test(tc, a_uid_without_a_name_is_known_to_have_none);
    tcase_add_test(tc, an_error_is_no_name_and_is_not_asked_for_again_at_once);
    tcase_add_test(tc, a_directory_that_hangs_costs_patience_and_not_the_loop);
    tcase_add_test(tc, questions_have_a_limit);
    tcase_add_test(tc, many_uids_in_few_places_all_get_their_names);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
