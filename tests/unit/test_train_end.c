/* test_train_end.c - a rank that has made all its steps, and has no place, no room or no disk for
 * the weights */
#include "libworker/train/train.h"

#include "libworker/train/model_copy.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/train_case.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static const char *dir;
static char weights[160];
static struct job job;
static struct train_info info;
static struct train_result result;
static mode_t broken; /* S_IFDIR, S_IFREG: of such no sync succeeds; 0: each does */

static void kept_says(const char *part)
{
    ck_assert_msg(strstr(result.kept, part) != NULL, "%s", result.kept);
}

int __wrap_fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == broken) {
        errno = EIO;
        return -1;
    }
    return __real_fsync(fd);
}

static void setup(void)
{
    dir = test_dir_make();
    snprintf(weights, sizeof(weights), "%s/%s", dir, TRAIN_WEIGHTS_FILE);
    memset(&result, 0, sizeof(result));
    broken = 0;
}

static void teardown(void)
{
    broken = 0;
    test_dir_remove(dir);
}

static int is_saved(void)
{
    struct stat st;
    return lstat(weights, &st) == 0 && S_ISREG(st.st_mode);
}

/* All its steps are made. */
static struct train *trained(const char *run_dir)
{
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, run_dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    ck_assert_uint_eq(result.steps, info.steps_total);
    return train;
}

static void is_not_saved_for(const char *why)
{
    ck_assert_int_eq(result.unsaved, MS_E_IO);
    kept_says(why);
}

/* ---- a disk that fails ---- */

/* What has its name, and may be gone after a power cut, others have to save. */
START_TEST(weights_that_are_not_durable_are_not_saved)
{
    broken = S_IFDIR;
    struct train *train = trained(dir);
    is_not_saved_for("cannot sync the folder");
    ck_assert_int_eq(is_saved(), 1); /* as it seems */

    ck_ms_ok(train_stop_here(train, 1, &result, err));
    is_not_saved_for("cannot sync the folder");

    broken = S_IFREG; /* of the file that lies there, too */
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    is_not_saved_for("cannot write");

    broken = 0;
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    ck_assert_int_eq(result.unsaved, 0);
    kept_says("the last, are saved: ");
    train_destroy(train);
}
END_TEST

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* For a second copy there is no room, and the first one is made durable. */
START_TEST(weights_that_are_there_are_saved_once_they_are_durable)
{
    signal(SIGXFSZ, SIG_IGN);
    broken = S_IFDIR;
    struct train *train = trained(dir);
    is_not_saved_for("cannot sync the folder");

    limit_files(64);
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    is_not_saved_for("File too large");
    broken = S_IFREG;
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    is_not_saved_for("File too large");
    broken = 0;
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    limit_files(RLIM_INFINITY);

    ck_assert_int_eq(result.unsaved, 0);
    kept_says("the last, are saved: ");
    train_destroy(train);
}
END_TEST

/* ---- nobody who asks again ---- */

static char noted[1024];

static void note(void *arg, const char *text)
{
    (void)arg;
    snprintf(noted, sizeof(noted), "%s", text);
}

/* A folder in its place, as good as a full disk. */
static struct train *owing(const char *const *sets, size_t n)
{
    train_case_job(&job, sets, n);
    struct train_config cfg = train_case_config(&job, dir);
    cfg.on_note = note;
    cfg.job_tag = "0123456789abcdef0123456789abcdef";
    ck_assert_int_eq(mkdir(weights, 0755), 0);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_assert_int_eq(train_owes(train), 0);
    ck_ms_ok(train_run(train, &result, err));
    is_not_saved_for(TRAIN_WEIGHTS_FILE);
    ck_assert_int_eq(train_owes(train), 1);
    return train;
}

static void noted_says(const char *part)
{
    ck_assert_msg(strstr(noted, part) != NULL, "%s", noted);
}

START_TEST(what_is_owed_is_tried_again_before_the_process_ends)
{
    struct train *train = owing(NULL, 0);
    train_save_owed(train);
    noted_says("the weights of step 20, the last, are not saved; what was trained is lost, unless "
               "another rank saved it: cannot write ");
    ck_assert_int_eq(train_owes(train), 1);

    ck_assert_int_eq(rmdir(weights), 0);
    train_abort(train, "its worker was asked to end");
    train_save_owed(train);
    noted_says("the weights of step 20, the last, are saved: ");
    ck_assert_int_eq(is_saved(), 1);
    ck_assert_int_eq(train_owes(train), 0);
    train_destroy(train);
}
END_TEST

static int count_ends(void)
{
    char line[1024];
    char path[160];
    int n = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        n += strstr(line, "{\"done\":true,") != NULL && strstr(line, result.weights_sha256) != NULL;
    }
    fclose(file);
    return n;
}

START_TEST(end_that_another_rank_saved_is_told_by_rank_0_once)
{
    struct train *train = owing(NULL, 0);
    ck_assert_int_eq(count_ends(), 0);
    train_tell_end(train, &result);
    ck_assert_int_eq(count_ends(), 1);
    train_tell_end(train, &result);
    ck_assert_int_eq(count_ends(), 1);
    train_destroy(train);
}
END_TEST

/* Rank 0 died before its end. Elsewhere than in its folder there are no lines to end. */
START_TEST(end_that_a_rank_saves_in_the_place_of_rank_0_is_told_with_its_lines)
{
    const int is_elsewhere = _i == 1;
    char own[200];
    char lines[220];
    struct train *train = owing(NULL, 0);
    snprintf(own, sizeof(own), "%s/own", dir);
    snprintf(lines, sizeof(lines), "%s/metrics.jsonl", own);
    ck_assert_int_eq(mkdir(own, 0755), 0);
    ck_assert_int_eq(rmdir(weights), 0);
    metrics_close(train->metrics);
    train->metrics = NULL;
    train->cfg.rank = 1;
    train->cfg.run_dir = is_elsewhere ? own : dir;

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_int_eq(count_ends(), !is_elsewhere);
    ck_assert_int_ne(access(lines, F_OK), 0);
    train_destroy(train);
}
END_TEST

/* An evaluation, which waited for room when its process died. */
static void cut_last_line(const char *path)
{
    char line[1024];
    long last = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (long at = 0; fgets(line, sizeof(line), file) != NULL; at = ftell(file)) {
        last = at;
    }
    fclose(file);
    ck_assert_ptr_nonnull(strstr(line, "\"eval_loss\":"));
    ck_assert_int_eq(truncate(path, last), 0);
}

/* Rank 0 may be there still, and write its line behind. */
START_TEST(end_is_not_told_with_lines_that_lack_the_last_evaluation)
{
    static const char *const sets[] = {"evaluate={dataset: {kind: nonlinear, samples: 30}}"};
    const int lacks_it = _i == 1;
    char lines[200];
    struct train *train = owing(sets, MS_ARRAY_SIZE(sets));
    snprintf(lines, sizeof(lines), "%s/metrics.jsonl", dir);
    ck_assert_int_eq(rmdir(weights), 0);
    metrics_close(train->metrics);
    train->metrics = NULL;
    train->cfg.rank = 1;
    if (lacks_it) {
        cut_last_line(lines);
    }

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_int_eq(count_ends(), !lacks_it);
    train_destroy(train);
}
END_TEST

/* The loss of an evaluation falls by less than that. */
START_TEST(an_early_end_is_said_by_who_saves_it_later)
{
    const char *const sets[] = {"epochs=3", "early_stop={patience: 1, min_delta: 1000}",
                                "evaluate={dataset: {kind: nonlinear, samples: 30}}"};
    struct train *train = owing(sets, MS_ARRAY_SIZE(sets));
    ck_assert_int_eq(rmdir(weights), 0);
    train_save_owed(train);
    noted_says("it ended early: loss was ");
    noted_says(" evaluation since then was no better by more than 1000 (early_stop.min_delta)");
    noted_says("; the weights of step 20, the last, are saved: ");
    train_destroy(train);
}
END_TEST

START_TEST(what_is_owed_may_lie_in_a_checkpoint)
{
    char folder[220];
    snprintf(folder, sizeof(folder), "checkpoint={directory: %s/kept, every_steps: 20}", dir);
    const char *const sets[] = {folder};
    struct train *train = owing(sets, 1);
    train_save_owed(train);
    noted_says("the weights of step 20, the last, are not saved; step 20 is saved: ");
    train_destroy(train);
}
END_TEST

/* It has the step from others, or from a checkpoint, and no word to go on. */
START_TEST(who_took_the_last_step_owes_it)
{
    char folder[220];
    snprintf(folder, sizeof(folder), "checkpoint={directory: %s/kept, every_steps: 20}", dir);
    const char *const sets[] = {folder};
    struct train *train = owing(sets, 1);
    train_destroy(train);
    ck_assert_int_eq(rmdir(weights), 0);

    struct train_config cfg = train_case_config(&job, dir);
    cfg.on_note = note;
    cfg.job_tag = "0123456789abcdef0123456789abcdef";
    train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_assert_uint_eq(info.step, info.steps_total);
    ck_assert_int_eq(train_owes(train), 1);
    train_save_owed(train);
    noted_says("the weights of step 20, the last, are saved: ");
    ck_assert_int_eq(train_owes(train), 0);
    train_destroy(train);
}
END_TEST

START_TEST(who_saved_or_was_not_to_owes_nothing)
{
    struct train *train = trained(dir);
    ck_assert_int_eq(train_owes(train), 0);
    train_destroy(train);

    const char *const sets[] = {"recovery=false"};
    struct ms_err why = {0, ""};
    ck_assert_int_eq(unlink(weights), 0);
    ck_assert_int_eq(mkdir(weights, 0755), 0);
    train_case_job(&job, sets, 1);
    struct train_config cfg = train_case_config(&job, dir);
    train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_assert_int_eq(train_run(train, &result, &why), MS_E_IO);
    ck_assert_int_eq(train_owes(train), 0);
    train_destroy(train);
}
END_TEST

/* ---- ranks of one folder that are stopped a step apart ---- */

static uint64_t stops_with;

/* The ranks agree on it with the next step. */
static void stop_with(void *arg, const struct train_progress *progress)
{
    struct train **train = arg;
    if (progress->has_step && progress->step + 1 == stops_with) {
        train_stop_at_step(*train);
    }
}

static struct train *stopped_at(struct train **train, uint64_t step, const char *tag,
                                const char *run_dir)
{
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, run_dir);
    cfg.on_progress = stop_with;
    cfg.arg = train;
    cfg.job_tag = tag;
    stops_with = step;
    *train = train_create(&cfg);
    ck_ms_ok(train_prepare(*train, &info, err));
    ck_ms_ok(train_run(*train, &result, err));
    ck_assert_int_eq(result.stopped, 1);
    ck_assert_uint_eq(result.steps, step);
    return *train;
}

static const char tag[] = "0123456789abcdef0123456789abcdef";
static struct train *first, *second;

static uint64_t step_there(void)
{
    struct safetensors *file = NULL;
    ck_ms_ok(safetensors_open_own(weights, &file, err));
    const uint64_t step = strtoull(safetensors_meta(file, "steps"), NULL, 10);
    safetensors_close(file);
    return step;
}

/* Of those that lie there: rank 1 has made a step more, and saves in the place of rank 0. */
static void save_step_8(char digest[MS_SHA256_HEX])
{
    stopped_at(&second, 8, tag, "");
    second->cfg.rank = 1;
    second->cfg.run_dir = dir;
    ck_ms_ok(train_stop_here(second, 1, &result, err));
    memcpy(digest, result.weights_sha256, MS_SHA256_HEX);
    kept_says("the weights of step 8");
    ck_assert_uint_eq(step_there(), 8);
    train_destroy(second);
}

static void ends_once_with(const char *digest)
{
    char line[1024];
    char path[160];
    int n = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        n += strstr(line, "{\"done\":true,") != NULL;
    }
    fclose(file);
    ck_assert_int_eq(n, 1);
    ck_assert_msg(strstr(line, digest) != NULL, "%s", line); /* the last one */
}

/* Rank 0 made the last step, and died before anybody heard of it. */
START_TEST(weights_of_the_last_step_stay_where_a_rank_before_it_saves)
{
    char digest[MS_SHA256_HEX];
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, dir);
    cfg.job_tag = tag;
    first = train_create(&cfg);
    ck_ms_ok(train_prepare(first, &info, err));
    ck_ms_ok(train_run(first, &result, err));
    memcpy(digest, result.weights_sha256, sizeof(digest));
    train_destroy(first);

    stopped_at(&second, 19, tag, "");
    second->cfg.rank = 1;
    second->cfg.run_dir = dir;
    ck_ms_ok(train_stop_here(second, 1, &result, err));

    kept_says("the weights of step 20 of this job are there already");
    ck_assert_uint_eq(step_there(), 20);
    ends_once_with(digest);
    train_destroy(second);
}
END_TEST

/* ... but for its line, which rank 0 lacks: nobody can tell the end there. */
START_TEST(weights_of_the_last_step_stay_where_no_end_is_told)
{
    stopped_at(&first, 19, tag, "");
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    cfg.job_tag = tag;
    second = train_create(&cfg);
    ck_ms_ok(train_prepare(second, &info, err));
    ck_ms_ok(train_run(second, &result, err));
    second->cfg.rank = 1;
    second->cfg.run_dir = dir;
    ck_ms_ok(train_stop_here(second, 1, &result, err));
    kept_says("the weights of step 20, the last, are saved: ");
    train_destroy(second);

    first->cfg.run_dir = dir;
    ck_ms_ok(train_stop_here(first, 1, &result, err));

    kept_says("the weights of step 20 of this job are there already");
    ck_assert_uint_eq(step_there(), 20);
    train_destroy(first);
}
END_TEST

START_TEST(weights_of_a_later_step_of_the_job_stay)
{
    char digest[MS_SHA256_HEX];
    stopped_at(&first, 7, tag, dir);
    ck_assert_str_eq(result.kept, "nothing is saved but the weights of step 7: no checkpoint is "
                                  "configured");
    ck_assert_uint_eq(step_there(), 7);
    ends_once_with(result.weights_sha256);

    save_step_8(digest);
    ends_once_with(digest);

    ck_ms_ok(train_stop_here(first, 1, &result, err));

    ck_assert_uint_eq(step_there(), 8);
    ends_once_with(digest);
    ck_assert_str_eq(result.kept, "the weights of step 8 of this job are there already: those of "
                                  "step 7 are not saved over them");
    ck_assert_str_eq(result.weights_sha256, ""); /* none of them lie anywhere */
    ck_assert_uint_eq(result.steps, 7);
    train_destroy(first);
}
END_TEST

/* It stopped with the others, and its disk was slow. */
START_TEST(they_stay_where_rank_0_ends_behind_them)
{
    char digest[MS_SHA256_HEX];
    save_step_8(digest);

    stopped_at(&first, 7, tag, dir);

    ck_assert_uint_eq(step_there(), 8);
    ck_assert_msg(strstr(result.kept, "the weights of step 8 of this job are there already") ==
                      result.kept,
                  "%s", result.kept);
    ck_assert_str_eq(result.weights_sha256, "");
    train_destroy(first);
}
END_TEST

/* A run that was resumed from an earlier step in the same folder, or has no name. */
START_TEST(weights_of_another_job_are_replaced)
{
    char digest[MS_SHA256_HEX];
    save_step_8(digest);

    stopped_at(&first, 7, _i == 0 ? "fedcba9876543210fedcba9876543210" : "", dir);

    ck_assert_uint_eq(step_there(), 7);
    ck_assert_str_eq(result.kept, "nothing is saved but the weights of step 7: no checkpoint is "
                                  "configured");
    ends_once_with(result.weights_sha256);
    train_destroy(first);
}
END_TEST

/* They are another training's, though the job is the same. */
START_TEST(ranks_that_train_for_themselves_replace_what_others_saved)
{
    char digest[MS_SHA256_HEX];
    save_step_8(digest);
    stopped_at(&first, 7, tag, "");
    first->cfg.run_dir = dir;
    first->cfg.world = 2; /* in a mesh of one */

    ck_ms_ok(train_stop_here(first, 1, &result, err));

    ck_assert_uint_eq(step_there(), 7);
    ck_assert_str_ne(result.weights_sha256, "");
    kept_says("nothing is saved but the weights of step 7");
    train_destroy(first);
}
END_TEST

/* ---- an evaluation behind the last step ---- */

static void hold_in_last_evaluation(void *arg, const struct train_progress *progress)
{
    struct train **train = arg;
    if (progress->phase == TRAIN_EVALUATING && progress->step == progress->steps_total) {
        train_hold(*train, "a peer is gone");
    }
}

/* It needs the peers, and nobody comes for those that are lost. */
START_TEST(what_the_last_evaluation_lacks_is_no_weights)
{
    const char *const sets[] = {"recovery=true",
                                "evaluate={dataset: {kind: nonlinear, samples: 50}}"};
    struct ms_err why = {0, ""};
    train_case_job(&job, sets, 2);
    struct train_config cfg = train_case_config(&job, dir);
    struct train *train = NULL;
    cfg.on_progress = hold_in_last_evaluation;
    cfg.arg = &train;
    train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_assert_int_eq(train_run(train, &result, &why), MS_E_ABORTED);
    train_unhold(train);
    ck_assert_int_eq(is_saved(), 0);

    train_skip_evaluation(train);
    ck_ms_ok(train_stop_here(train, 0, &result, err));

    ck_assert_int_eq(result.stopped, 0);
    ck_assert_uint_eq(result.steps, info.steps_total);
    ck_assert_int_eq(is_saved(), 1);
    ck_assert_int_eq((int)strlen(result.weights_sha256), 64);
    kept_says("the evaluation behind it was not made");
    train_destroy(train);
}
END_TEST

/* ---- no place ---- */

/* A program saves what it likes itself. */
START_TEST(rank_0_without_a_run_directory_owes_nothing_where_nobody_asked)
{
    struct train *train = trained("");
    ck_ms_ok(train_stop_here(train, 0, &result, err));
    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_int_eq(result.stopped, 0);
    ck_assert_str_eq(result.kept, "");
    train_destroy(train);
}
END_TEST

/* Another rank may have one, and is asked only where this one says that it failed. */
START_TEST(who_is_asked_and_has_no_run_directory_has_not_saved)
{
    struct train *train = trained("");
    ck_assert_int_eq(result.unsaved, 0); /* nobody asked it */

    ck_ms_ok(train_stop_here(train, 1, &result, err));
    ck_assert_int_eq(result.unsaved, MS_E_UNSUPPORTED);
    kept_says("this training has no run directory");
    ck_assert_int_eq(result.stopped, 0);
    ck_assert_int_eq((int)strlen(result.weights_sha256), 64);
    train_destroy(train);
}
END_TEST

static void stop_at_7(void *arg, const struct train_progress *progress)
{
    struct train **train = arg;
    if (progress->phase == TRAIN_TRAINING && progress->step == 7) {
        train_stop_at_step(*train);
    }
}

START_TEST(nor_has_who_is_stopped_before_its_end)
{
    struct ms_err why = {0, ""};
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = NULL;
    cfg.on_progress = stop_at_7;
    cfg.arg = &train;
    train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    ck_assert_int_eq(result.stopped, 1);

    ck_assert_int_eq(train_stop_here(train, 1, &result, &why), MS_E_UNSUPPORTED);
    ck_assert_msg(strstr(why.text, "this training has no run directory") != NULL, "%s", why.text);
    train_destroy(train);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_end");
    TCase *tc = tcase_create("train_end");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, weights_that_are_not_durable_are_not_saved);
    tcase_add_test(tc, what_the_last_evaluation_lacks_is_no_weights);
    tcase_add_test(tc, rank_0_without_a_run_directory_owes_nothing_where_nobody_asked);
    tcase_add_test(tc, weights_that_are_there_are_saved_once_they_are_durable);
    tcase_add_test(tc, what_is_owed_is_tried_again_before_the_process_ends);
    tcase_add_test(tc, end_that_another_rank_saved_is_told_by_rank_0_once);
    tcase_add_loop_test(tc, end_that_a_rank_saves_in_the_place_of_rank_0_is_told_with_its_lines, 0,
                        2);
    tcase_add_loop_test(tc, end_is_not_told_with_lines_that_lack_the_last_evaluation, 0, 2);
    tcase_add_test(tc, an_early_end_is_said_by_who_saves_it_later);
    tcase_add_test(tc, what_is_owed_may_lie_in_a_checkpoint);
    tcase_add_test(tc, who_took_the_last_step_owes_it);
    tcase_add_test(tc, who_saved_or_was_not_to_owes_nothing);
    tcase_add_test(tc, who_is_asked_and_has_no_run_directory_has_not_saved);
    tcase_add_test(tc, nor_has_who_is_stopped_before_its_end);
    tcase_add_test(tc, weights_of_the_last_step_stay_where_a_rank_before_it_saves);
    tcase_add_test(tc, weights_of_the_last_step_stay_where_no_end_is_told);
    tcase_add_test(tc, weights_of_a_later_step_of_the_job_stay);
    tcase_add_test(tc, they_stay_where_rank_0_ends_behind_them);
    tcase_add_loop_test(tc, weights_of_another_job_are_replaced, 0, 2);
    tcase_add_test(tc, ranks_that_train_for_themselves_replace_what_others_saved);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
