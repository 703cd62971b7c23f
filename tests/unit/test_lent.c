/* test_lent.c - what lies in a job's folder is for another job only where that was lent to it */
#include "libworker/train/lent.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAG "0123456789abcdef0123456789abcdef"

static const char *dir;
static char lender[600], here[600], path[700]; /* DIR/3, DIR/7, DIR/3/c/x-1.json */
static char real[MS_PATH_MAX + 1];
static struct lent_borrower us;

static void put(const char *name)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void setup(void)
{
    char below[700];
    dir = test_dir_make();
    snprintf(lender, sizeof(lender), "%s/3", dir);
    snprintf(here, sizeof(here), "%s/7", dir);
    snprintf(below, sizeof(below), "%s/c", lender);
    snprintf(path, sizeof(path), "%s/x-1.json", below);
    ck_assert_int_eq(mkdir(lender, 0700) | mkdir(here, 0700) | mkdir(below, 0700), 0);
    put(path);
    us = (struct lent_borrower){.run_dir = here, .job = 7, .tag = TAG};
}

static void teardown(void)
{
    test_dir_remove(dir);
}

START_TEST(what_was_not_lent_is_refused)
{
    ck_ms_fails(lent_look(path, &us, real, err), MS_E_REFUSED, "has not lent it to job 7");
    ck_ms_ok(lent_give(lender, 8, err));
    ck_ms_fails(lent_look(path, &us, real, err), MS_E_REFUSED, "msctl submit --resume");
}
END_TEST

START_TEST(what_was_lent_is_for_that_job_as_often_as_it_looks)
{
    ck_ms_ok(lent_give(lender, 7, err));
    ck_assert_int_eq(lent_look(path, &us, real, NULL), 1);
    ck_assert_int_eq(lent_look(path, &us, real, NULL), 1);
    ck_ms_ok(lent_give(lender, 7, err)); /* a client that lost its connection asks again */
    ck_assert_int_eq(lent_look(path, &us, real, NULL), 1);
}
END_TEST

START_TEST(job_that_gets_the_number_again_may_not)
{
    struct lent_borrower again = us;
    again.tag = "ffffffffffffffffffffffffffffffff";
    ck_ms_ok(lent_give(lender, 7, err));
    ck_assert_int_eq(lent_look(path, &us, real, NULL), 1);
    ck_assert_int_eq(lent_look(path, &again, real, NULL), MS_E_REFUSED);
}
END_TEST

START_TEST(place_that_is_no_jobs_folder_is_not_judged)
{
    char other[700];
    snprintf(other, sizeof(other), "%s/data", dir);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_eq(lent_look(other, &us, real, NULL), 0);
    ck_assert_int_eq(lent_look("/etc", &us, real, NULL), 0);
    ck_assert_int_eq(lent_look("/nowhere/at/all", &us, real, NULL), 0);
}
END_TEST

START_TEST(link_does_not_lead_out_of_what_was_lent)
{
    char secret[700];
    char link[760];
    snprintf(secret, sizeof(secret), "%s/4", dir);
    ck_assert_int_eq(mkdir(secret, 0700), 0);
    snprintf(secret, sizeof(secret), "%s/4/x-1.json", dir);
    put(secret);
    snprintf(link, sizeof(link), "%s/c/out.json", lender);
    ck_assert_int_eq(symlink(secret, link), 0);
    ck_ms_ok(lent_give(lender, 7, err));

    ck_assert_int_eq(lent_look(link, &us, real, NULL), MS_E_REFUSED); /* it is of job 4's folder */
    snprintf(link, sizeof(link), "%s/c/../../4/x-1.json", lender);
    ck_assert_int_eq(lent_look(link, &us, real, NULL), MS_E_REFUSED);
}
END_TEST

START_TEST(link_that_leads_elsewhere_later_is_not_read)
{
    char data[700];
    char by_link[760];
    snprintf(data, sizeof(data), "%s/data", dir); /* the borrower may write there */
    ck_assert_int_eq(symlink(lender, data), 0);
    snprintf(by_link, sizeof(by_link), "%s/c/x-1.json", data);
    ck_ms_ok(lent_give(lender, 7, err));

    ck_assert_int_eq(lent_look(by_link, &us, real, NULL), 1);
    ck_assert_str_eq(real, path);
}
END_TEST

START_TEST(nothing_is_lent_to_no_job_or_out_of_no_folder)
{
    char none[700];
    ck_ms_fails(lent_give(lender, 0, err), MS_E_INVALID, "to no job");
    snprintf(none, sizeof(none), "%s/5", dir);
    ck_ms_fails(lent_give(none, 7, err), MS_E_IO, "cannot lend");
    snprintf(none, sizeof(none), "%s/.lent-9", lender);
    ck_assert_int_eq(symlink("/etc/hostname", none), 0);
    ck_ms_fails(lent_give(lender, 9, err), MS_E_IO, "cannot lend");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lent");
    TCase *tc = tcase_create("lent");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_was_not_lent_is_refused);
    tcase_add_test(tc, what_was_lent_is_for_that_job_as_often_as_it_looks);
    tcase_add_test(tc, job_that_gets_the_number_again_may_not);
    tcase_add_test(tc, place_that_is_no_jobs_folder_is_not_judged);
    tcase_add_test(tc, link_does_not_lead_out_of_what_was_lent);
    tcase_add_test(tc, link_that_leads_elsewhere_later_is_not_read);
    tcase_add_test(tc, nothing_is_lent_to_no_job_or_out_of_no_folder);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
