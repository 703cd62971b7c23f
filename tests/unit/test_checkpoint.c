/* test_checkpoint.c - trainings that are saved, and go on from there as if nothing had been */
#include "tests/unit/checkpoint_jobs.h"

#include "libworker/data/path.h"

#include <sys/stat.h>

/* ---- going on ---- */

START_TEST(a_training_goes_on_from_any_of_its_checkpoints_bit_for_bit)
{
    struct job job;
    make_job(&job, &kinds[_i], NULL);
    const struct train_result whole = checkpoint_case_run(&job, "");
    make_job(&job, &kinds[_i], "{directory: ckpt, prefix: x, every_steps: 3, keep_max: 100}");
    const struct train_result saving = checkpoint_case_run(&job, dir);
    ck_assert_str_eq(saving.weights_sha256, whole.weights_sha256);
    ck_assert_str_eq(case_notes, "");

    job.has_checkpoint = 0; /* nothing new */
    snprintf(job.resume, sizeof(job.resume), "%s", dir);
    const size_t n = (size_t)whole.steps / 3;
    for (size_t i = 0; i < n; i++) {
        struct train *train = checkpoint_case_train(&job, "");
        struct checkpoint_list list = find(train);
        ck_assert_uint_eq(list.n, n);
        ck_assert_uint_eq(list.infos[i].step, 3 * (n - i));
        checkpoint_case_stand(train, &list.infos[i]);
        const struct train_result result = checkpoint_case_go(train);
        ck_assert_msg(strcmp(result.weights_sha256, whole.weights_sha256) == 0,
                      "%s: from step %d on other weights", kinds[_i].name, (int)list.infos[i].step);
        ck_assert(result.loss == whole.loss && result.eval_loss == whole.eval_loss);
        checkpoint_list_fini(&list);
        train_destroy(train);
    }
}
END_TEST

START_TEST(a_checkpoint_is_a_file_of_initial_weights)
{
    struct job job;
    make_job(&job, &kinds[3], "{directory: ckpt, prefix: x, every_steps: 3}");
    const struct train_result saving = checkpoint_case_run(&job, dir);
    job.has_checkpoint = 0;
    job.steps = 1;
    snprintf(job.initial_weights, sizeof(job.initial_weights), "%s/x-12.safetensors", folder);
    ck_assert_uint_eq(saving.steps, 12);
    struct train *train = checkpoint_case_train(&job, "");
    train_destroy(train);
}
END_TEST

/* kinds[0] makes 20 steps, of which 10 are an epoch's: of each, with which a name ends. */
START_TEST(a_checkpoint_is_found_by_the_names_that_people_have)
{
    static const struct {
        const char *name;
        uint64_t step; /* 0: none is called so */
    } names[] = {
        {"x-6", 6},      {"x-1_6", 6},         {"x-2_2", 12}, {"x-2_2.ckpt", 12}, {"x-2_3", 0},
        {"y-2_2", 0},    {"x-2_2.json", 0},    {"x-2_", 0},   {"x_2-2", 0},       {"-2_2", 0},
        {"x-9.json", 9}, {"x-2_2.ckpt.gz", 0}, {"x-7", 0},    {"ckpt", 0},
    };
    struct job job;
    make_job(&job, &kinds[0], "{directory: ckpt, prefix: x, every_steps: 3, keep_max: 100}");
    const struct train_result saving = checkpoint_case_run(&job, dir);
    ck_assert_uint_eq(saving.steps, 20);
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        char path[256];
        struct checkpoint_entries entries = {NULL, 0};
        snprintf(path, sizeof(path), "%s/%s", folder, names[i].name);
        const int rc = checkpoint_search(path, &entries, NULL);
        const uint64_t step = entries.n == 1 ? entries.entries[0].step : 0;
        ck_assert_msg(step == names[i].step && (rc == MS_OK) == (step > 0), "%s: %d, step %d",
                      names[i].name, rc, (int)step);
        checkpoint_entries_fini(&entries);
    }
}
END_TEST

/* ---- which stay ---- */

START_TEST(the_oldest_go_and_what_is_not_of_this_job_stays)
{
    struct job job;
    char path[256];
    FILE *file = NULL;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 2, keep_max: 3}");
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    static const char *const others[] = {"x-1.json", "y-1.json", "x-1.safetensors", "x-01.json",
                                         "x-2-1.json"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, others[i]);
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs("somebody's", file);
        fclose(file);
    }

    checkpoint_case_run(&job, dir);

    ck_assert(is_there("x-20.json") && is_there("x-18.json") && is_there("x-16.json"));
    ck_assert(is_there("x-16.safetensors") && !is_there("x-14.json"));
    ck_assert(!is_there("x-14.safetensors") && !is_there("x-2.json"));
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        ck_assert_msg(is_there(others[i]), "%s", others[i]);
    }
}
END_TEST

/* What the newest that proves good is worth: the damaged one above it does not push it out. */
START_TEST(a_damaged_one_of_a_higher_step_does_not_count)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10, keep_max: 1}");
    checkpoint_case_run(&job, dir);
    ck_assert(is_there("x-20.json") && !is_there("x-10.json"));
    job.checkpoint_every_steps = 9;
    job.steps = 9;

    checkpoint_case_run(&job, dir);

    ck_assert(is_there("x-9.json") && is_there("x-20.json"));
}
END_TEST

START_TEST(a_stop_saves_its_step_once)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 0}");
    struct train *train = checkpoint_case_train(&job, dir);
    train_stop_at_step(train);
    const struct train_result result = checkpoint_case_go(train);
    ck_assert(result.stopped);
    ck_assert_uint_eq(result.steps, 1);
    struct checkpoint_list list = find(train);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_uint_eq(list.infos[0].step, 1);
    ck_assert(list.infos[0].manifest.stopped);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

START_TEST(the_end_saves_nothing_that_is_not_due)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 7}");
    checkpoint_case_run(&job, dir);
    ck_assert(is_there("x-14.json") && !is_there("x-20.json"));
}
END_TEST

/* With a disk that is slower than the steps: one is due at the last of them, too. */
START_TEST(the_end_waits_for_the_disk_and_saves_what_is_due_still)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 1, keep_max: 1}");
    case_is_hasty = 1;
    checkpoint_case_run(&job, dir);
    case_is_hasty = 0;
    ck_assert(is_there("x-20.json") && is_there("x-20.safetensors"));
}
END_TEST

/* ---- who takes over ---- */

/* Its predecessor was killed between data and manifest, and in the middle of a file, and before the
 * oldest went. */
START_TEST(who_takes_rank_0_over_clears_up_behind_its_predecessor)
{
    struct job job;
    char path[256];
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 3, keep_max: 9}");
    checkpoint_case_run(&job, dir);
    snprintf(path, sizeof(path), "%s/x-15.json", folder);
    ck_assert_int_eq(unlink(path), 0);
    make_file(".msched-new-0123456789abcdef", "half");
    make_file("x-1.json", "somebody's");
    make_file("x-2.safetensors", "somebody's");
    job.checkpoint_keep_max = 3;

    struct train *train = checkpoint_case_train(&job, dir);

    ck_assert_uint_eq(train->progress.step, 18);
    ck_assert(is_there("x-18.json") && is_there("x-12.json") && is_there("x-9.json"));
    ck_assert(!is_there("x-6.json") && !is_there("x-3.safetensors"));
    ck_assert_msg(!is_there("x-15.safetensors"), "data without a manifest stay");
    ck_assert(!is_there(".msched-new-0123456789abcdef"));
    ck_assert(is_there("x-1.json") && is_there("x-2.safetensors"));
    train_destroy(train);
}
END_TEST

START_TEST(who_takes_rank_0_over_on_a_host_without_a_checkpoint_saves_one_at_once)
{
    static const struct {
        uint64_t step;
        enum ms_state_from from;
        int saves;
    } starts[] = {{5, MS_STATE_KEPT, 0}, {7, MS_STATE_PULLED, 1}, {17, MS_STATE_PULLED, 0}};
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 1000000}");
    for (size_t i = 0; i < MS_ARRAY_SIZE(starts); i++) {
        char name[32];
        struct train *train = checkpoint_case_train(&job, dir);
        train->progress.step = starts[i].step;
        train->progress.epoch = 1;
        train->progress.step_in_epoch = (int64_t)starts[i].step;
        train->known.state_from = starts[i].from;
        ck_ms_ok(checkpoint_settle(train, err));
        train_destroy(train); /* and with it its writer, which ends what it began */
        snprintf(name, sizeof(name), "x-%d.json", (int)starts[i].step);
        ck_assert_msg(is_there(name) == starts[i].saves, "step %d", (int)starts[i].step);
    }
}
END_TEST

/* The state came from elsewhere at a step that is due, and the last one. */
START_TEST(a_due_step_that_was_taken_over_is_saved_once)
{
    struct job job;
    char there[128];
    char path[256];
    struct stat first;
    struct stat again;
    make_job(&job, &kinds[3], "{directory: ckpt, prefix: x, every_steps: 4}");
    const struct train_result whole = checkpoint_case_run(&job, dir);
    struct checkpoint_manifest want = read_manifest("x-12.json");
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    snprintf(there, sizeof(there), "%s/there", dir);
    snprintf(folder, sizeof(folder), "%s/ckpt", there);
    ck_assert_int_eq(mkdir(there, 0755), 0);
    snprintf(path, sizeof(path), "%s/x-12.json", folder);

    ck_assert_str_eq(checkpoint_case_run(&job, there).weights_sha256, whole.weights_sha256);

    struct checkpoint_manifest have = read_manifest("x-12.json");
    ck_assert_str_eq(have.data_sum, want.data_sum);
    ck_assert(have.loss == want.loss && have.seconds == want.seconds);
    ck_assert(have.epoch == want.epoch && have.step_in_epoch == want.step_in_epoch);
    ck_assert_int_eq(have.evaluates, want.evaluates);
    ck_assert_int_eq(stat(path, &first), 0);
    checkpoint_case_run(&job, there);
    ck_assert_int_eq(stat(path, &again), 0);
    ck_assert_uint_eq(first.st_ino, again.st_ino);
    checkpoint_manifest_fini(&want);
    checkpoint_manifest_fini(&have);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *tc = tcase_create("checkpoint");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_training_goes_on_from_any_of_its_checkpoints_bit_for_bit, 0,
                        (int)MS_ARRAY_SIZE(kinds));
    tcase_add_test(tc, a_checkpoint_is_a_file_of_initial_weights);
    tcase_add_test(tc, the_oldest_go_and_what_is_not_of_this_job_stays);
    tcase_add_test(tc, a_damaged_one_of_a_higher_step_does_not_count);
    tcase_add_test(tc, a_stop_saves_its_step_once);
    tcase_add_test(tc, the_end_saves_nothing_that_is_not_due);
    tcase_add_test(tc, the_end_waits_for_the_disk_and_saves_what_is_due_still);
    tcase_add_test(tc, who_takes_rank_0_over_clears_up_behind_its_predecessor);
    tcase_add_test(tc, who_takes_rank_0_over_on_a_host_without_a_checkpoint_saves_one_at_once);
    tcase_add_test(tc, a_due_step_that_was_taken_over_is_saved_once);
    tcase_add_test(tc, a_checkpoint_is_found_by_the_names_that_people_have);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
