/* test_cli_plan_file.c - a plan that a job brings: read, judged, held against the job */
#include "cli/plan_file.h"
#include "tests/test.h"

#include "proto/limits.h"

static char path[160];
static struct job job;

/* That of tests/golden: network linear, world 8. */
static char *golden(void)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    static char text[MS_PLAN_MAX];
    char name[512];
    snprintf(name, sizeof(name), "%s/tests/golden/plan/linear.txt", root != NULL ? root : ".");
    FILE *file = fopen(name, "r");
    ck_assert_msg(file != NULL, "%s is missing", name);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void write_plan(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    snprintf(path, sizeof(path), "%s/plan.txt", test_dir_make());
    memset(&job, 0, sizeof(job));
    snprintf(job.network, sizeof(job.network), "linear");
    job.workers = 8;
}

static void teardown(void)
{
    *strrchr(path, '/') = '\0';
    test_dir_remove(path);
}

/* Refused with "<path><words>". */
static void refused(const char *words)
{
    char *text = NULL;
    struct ms_err why = {0, ""};
    ck_assert_int_eq(plan_file_read(path, &job, &text, &why), MS_E_INVALID);
    ck_assert_ptr_null(text);
    ck_assert_msg(strncmp(why.text, path, strlen(path)) == 0, "%s", why.text);
    ck_assert_msg(strstr(why.text, words) == why.text + strlen(path), "%s", why.text);
}

START_TEST(a_plan_of_ranks_that_train_alone_is_of_a_world_of_one)
{
    char *text = NULL;
    char *alone = strdup(golden());
    char *world = strstr(alone, "\nworld 8\n");
    ck_assert_ptr_nonnull(world);
    world[7] = '1';
    write_plan(alone);
    refused(" line 4: world 1, and the job has workers: 8");

    job.mode = JOB_STAND_ALONE;
    ck_ms_ok(plan_file_read(path, &job, &text, err));
    free(text);
    write_plan(golden()); /* of as many as there are */
    refused(
        " line 4: world 8, and each worker of a job in mode stand_alone trains alone, by a plan");
    free(alone);
}
END_TEST

START_TEST(a_plan_of_the_job_is_read_byte_by_byte)
{
    char *text = NULL;
    write_plan(golden());

    ck_ms_ok(plan_file_read(path, &job, &text, err));

    ck_assert_str_eq(text, golden());
    free(text);
}
END_TEST

START_TEST(a_plan_of_another_job_is_told_by_its_line)
{
    write_plan(golden());
    job.workers = 3;
    refused(" line 4: world 8, and the job has workers: 3; -n 8 runs it as planned");
    job.workers = 8;
    snprintf(job.network, sizeof(job.network), "resnet50");
    refused(" line 3: network linear, and the job has network: resnet50; without --plan rank 0 "
            "chooses one");
}
END_TEST

START_TEST(what_is_no_plan_is_told_by_its_line)
{
    write_plan("network: linear\nworkers: 8\n");
    refused(
        " line 1: must be 'msched plan 1'; `msctl show --plan JOB` prints a plan as it is read");
    char *text = golden();
    *strstr(text, "world 8") = 'W';
    write_plan(text);
    refused(" line 4: ");
    write_plan("");
    refused(" line 1: ");
}
END_TEST

START_TEST(a_file_that_is_too_large_or_not_there_is_named)
{
    char *text = NULL;
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; i <= MS_PLAN_MAX; i++) {
        fputc('x', file);
    }
    fclose(file);
    refused(" is no plan: it has more than 256 KiB");
    unlink(path);
    ck_ms_fails(plan_file_read(path, &job, &text, err), MS_E_INVALID, "cannot read the plan");
}
END_TEST

START_TEST(a_job_without_a_plan_says_why)
{
    static const struct {
        const char *state, *reason, *words;
        int64_t started_ms;
    } cases[] = {{"QUEUED", "waits for 2 idle nodes", "no plan yet: rank 0 chooses one once", 0},
                 {"PLACING", "waits for rank 0 (node w1) to choose the plan",
                  "has no plan yet: it waits for rank 0 (node w1) to choose the plan", 0},
                 {"CANCELLED", "cancelled by alice", "it ended before it started", 0},
                 {"SUCCEEDED", "all ranks finished", "release 0.1 was among its ranks", 1}};
    Ms__JobInfo info = MS__JOB_INFO__INIT;
    info.id = 7;
    info.state = (char *)cases[_i].state;
    info.reason = (char *)cases[_i].reason;
    info.started_ms = cases[_i].started_ms;

    ck_ms_fails(plan_file_missing(&info, err), MS_E_NOT_FOUND, cases[_i].words);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_plan_file");
    TCase *tcase = tcase_create("plan_file");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_plan_of_the_job_is_read_byte_by_byte);
    tcase_add_test(tcase, a_plan_of_ranks_that_train_alone_is_of_a_world_of_one);
    tcase_add_test(tcase, a_plan_of_another_job_is_told_by_its_line);
    tcase_add_test(tcase, what_is_no_plan_is_told_by_its_line);
    tcase_add_test(tcase, a_file_that_is_too_large_or_not_there_is_named);
    tcase_add_loop_test(tcase, a_job_without_a_plan_says_why, 0, 4);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
