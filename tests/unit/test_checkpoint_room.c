/* test_checkpoint_room.c - where checkpoints cannot be looked for, or written */
#include "tests/unit/checkpoint_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Which descriptor lacks: for the folder itself, and for the one that lies in it. */
START_TEST(a_search_that_lacks_descriptors_says_what_lacks_where)
{
    enum { FEW = 64 };
    struct checkpoint_entries entries = {NULL, 0};
    struct ms_err why = {0, ""};
    struct rlimit enough;
    int fds[FEW];
    int n = 0;
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &enough), 0);
    const struct rlimit few = {FEW, enough.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < FEW && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        n++;
    }
    if (_i == 1) {
        close(fds[--n]);
    }

    int rc = checkpoint_search(dir, &entries, &why);

    while (n > 0) {
        close(fds[--n]);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &enough), 0);
    ck_assert_int_eq(rc, MS_E_NOMEM);
    ck_assert_int_eq(why.code, MS_E_NOMEM);
    ck_assert_msg(strstr(why.text, strerror(EMFILE)) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, _i == 1 ? folder : dir) != NULL, "%s", why.text);
}
END_TEST

/* It has to write there, and to know what lies there. */
START_TEST(rank_0_that_may_not_look_into_its_folder_says_so_before_the_first_step)
{
    struct job job;
    struct train_info info;
    make_job(&job, &kinds[1], "{directory: ckpt}");
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    snprintf(job.checkpoint_directory, sizeof(job.checkpoint_directory), "%s", folder);
    struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);
    become_nobody();
    ck_assert_int_eq(chmod(folder, 0300), 0);

    ck_ms_fails(train_prepare(train, &info, err), MS_E_IO,
                "(checkpoint.directory): Permission denied");

    become_again();
    train_destroy(train);
}
END_TEST

START_TEST(what_keeps_rank_0_from_making_its_folder_is_said)
{
    struct job job;
    struct train_info info;
    make_job(&job, &kinds[1], "{directory: ckpt}");
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    snprintf(job.checkpoint_directory, sizeof(job.checkpoint_directory), "%s/a/b", folder);
    struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);
    become_nobody();
    ck_assert_int_eq(chmod(folder, 0500), 0);

    ck_ms_fails(train_prepare(train, &info, err), MS_E_IO,
                "(checkpoint.directory): Permission denied");

    become_again();
    train_destroy(train);
}
END_TEST

START_TEST(a_folder_that_cannot_be_is_refused_before_the_first_step)
{
    struct job job;
    char file[256];
    make_job(&job, &kinds[1], "{directory: ckpt}");
    snprintf(file, sizeof(file), "%s/ckpt", dir);
    FILE *stream = fopen(file, "w");
    ck_assert_ptr_nonnull(stream);
    fclose(stream);
    struct train_config cfg = checkpoint_case_config(&job, dir);
    struct train_info info;
    struct train *train = train_create(&cfg);
    ck_ms_fails(train_prepare(train, &info, err), MS_E_IO, "(checkpoint.directory)");
    train_destroy(train);
    cfg.run_dir = "";
    train = train_create(&cfg);
    ck_ms_fails(train_prepare(train, &info, err), MS_E_INVALID, "has no run directory");
    train_destroy(train);
}
END_TEST

/* Nothing can be written there, by nobody, not even root. */
static void put_file_for_folder(void)
{
    ck_assert(rmdir(folder) == 0 || errno == ENOENT);
    FILE *stream = fopen(folder, "w");
    ck_assert_ptr_nonnull(stream);
    fclose(stream);
}

/* As who takes rank 0 over: its checkpoints are not open yet. */
static void forget_checkpoints(struct train *train)
{
    checkpoint_close(train->checkpoint);
    train->checkpoint = NULL;
}

static void mend_folder_at_12(void *arg, const struct train_progress *progress)
{
    if (progress->has_step && progress->step == 12) {
        ck_assert_int_eq(unlink(folder), 0);
    }
    case_on_progress(arg, progress);
}

/* It took rank 0 over where others train on: that it cannot save is no end of that. */
START_TEST(who_takes_over_where_no_folder_can_be_trains_on)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    struct train *train = checkpoint_case_train(&job, dir);
    train->cfg.on_progress = mend_folder_at_12;
    forget_checkpoints(train);
    put_file_for_folder();
    ck_ms_ok(checkpoint_open(train, err));
    ck_ms_fails(checkpoint_settle(train, err), MS_E_IO, "(checkpoint.directory): Not a directory");
    train->known.state_from = MS_STATE_PULLED;

    ck_ms_ok(checkpoint_settle(train, err));

    ck_assert_uint_eq(checkpoint_case_go(train).steps, 20);
    train_destroy(train);
    ck_assert_msg(strstr(case_notes, "no checkpoint of step 5: ") != NULL, "%s", case_notes);
    ck_assert_int_eq(count_notes("no checkpoint of step"), 1);
    ck_assert_ptr_nonnull(strstr(case_notes, "are written again: that of step 15 is"));
    ck_assert(!is_there("x-10.json") && is_there("x-15.json") && is_there("x-20.json"));
}
END_TEST

/* A mesh that ended before it could look there, and the next one, in which it has what it took. */
START_TEST(nor_is_it_where_it_had_the_state_before)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    struct train *train = checkpoint_case_train(&job, dir);
    forget_checkpoints(train);
    put_file_for_folder();
    train->progress.step = 7;
    ck_ms_ok(checkpoint_open(train, err));

    train->known.state_from = MS_STATE_CHECKPOINT; /* nobody had it */
    ck_ms_fails(checkpoint_settle(train, err), MS_E_IO, "(checkpoint.directory): Not a directory");
    train->known.state_from = MS_STATE_KEPT;
    ck_ms_ok(checkpoint_settle(train, err));

    train_destroy(train);
}
END_TEST

/* The ranks agree on it with the next step. */
static void stop_after_7(void *arg, const struct train_progress *progress)
{
    if (progress->has_step && progress->step == 6) {
        train_stop_at_step(case_train);
    }
    case_on_progress(arg, progress);
}

/* Of who had opened its checkpoints, and of who is asked in the place of rank 0. */
START_TEST(where_no_folder_can_be_the_weights_are_saved)
{
    struct job job;
    char weights[160];
    struct train_result result;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 1000000}");
    struct train *train = checkpoint_case_train(&job, dir);
    train->cfg.on_progress = stop_after_7;
    result = checkpoint_case_go(train);
    ck_assert_ptr_nonnull(strstr(result.kept, "step 7 is saved: "));
    snprintf(weights, sizeof(weights), "%s/%s", dir, TRAIN_WEIGHTS_FILE);
    ck_assert_int_eq(unlink(weights), 0);
    train_destroy(train);

    train = checkpoint_case_train(&job, dir); /* goes on from there */
    ck_assert_uint_eq(train->progress.step, 7);
    train->progress.step = 8;
    if (_i == 1) {
        forget_checkpoints(train);
    }
    test_dir_remove(folder);
    put_file_for_folder();
    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_msg(strstr(result.kept, "the weights of step 8 are saved; its checkpoint is not: "
                                      "checkpoints cannot be written to ") == result.kept,
                  "%s", result.kept);
    ck_assert_ptr_nonnull(strstr(result.kept, "(checkpoint.directory): Not a directory"));
    ck_assert_int_eq(access(weights, F_OK), 0);
    train->cfg.run_dir = ""; /* others may have a place */
    struct ms_err why = {0, ""};
    ck_assert_int_lt(train_stop_here(train, 1, &result, &why), 0);
    train_destroy(train);
}
END_TEST

/* They lack for a moment, and the folder is made with the first checkpoint. */
START_TEST(descriptors_that_lack_are_no_reason_not_to_train)
{
    enum { FEW = 64 };
    struct job job;
    struct rlimit enough;
    int fds[FEW];
    int n = 0;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    struct train *train = checkpoint_case_train(&job, dir);
    forget_checkpoints(train);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &enough), 0);
    const struct rlimit few = {FEW, enough.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (n < FEW && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        n++;
    }

    struct ms_err why = {0, ""};
    int rc = checkpoint_open(train, &why);
    rc = rc < 0 ? rc : checkpoint_settle(train, &why);

    while (n > 0) {
        close(fds[--n]);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &enough), 0);
    ck_assert_msg(rc == 0, "%s", why.text);
    checkpoint_case_go(train);
    train_destroy(train);
    ck_assert(is_there("x-5.json") && is_there("x-20.json"));
    ck_assert_str_eq(case_notes, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_room");
    TCase *tc = tcase_create("checkpoint_room");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_search_that_lacks_descriptors_says_what_lacks_where, 0, 2);
    tcase_add_test(tc, rank_0_that_may_not_look_into_its_folder_says_so_before_the_first_step);
    tcase_add_test(tc, what_keeps_rank_0_from_making_its_folder_is_said);
    tcase_add_test(tc, a_folder_that_cannot_be_is_refused_before_the_first_step);
    tcase_add_test(tc, who_takes_over_where_no_folder_can_be_trains_on);
    tcase_add_test(tc, nor_is_it_where_it_had_the_state_before);
    tcase_add_loop_test(tc, where_no_folder_can_be_the_weights_are_saved, 0, 2);
    tcase_add_test(tc, descriptors_that_lack_are_no_reason_not_to_train);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
