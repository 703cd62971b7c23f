/* test_end_weights.c - of a job's steps the latest stays, whoever saves beside this one */
#include "libworker/train/end_weights.h"

#include "libworker/train/metrics.h"
#include "libworker/train/train.h"
#include "tests/unit/train_case.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static const char tag[] = "0123456789abcdef0123456789abcdef";
static const char training[] = "3f2a9c0d1b22";
static const char *dir;
static char path[160];
static struct model_copy *copy;
static void (*meanwhile)(void); /* once, when a file is written, and has no name yet */

int __wrap_fsync(int fd)
{
    struct stat st;
    void (*call)(void) = meanwhile;
    if (call != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        meanwhile = NULL;
        call();
    }
    return __real_fsync(fd);
}

static void setup(void)
{
    static struct job job;
    struct train_info info;
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/%s", dir, TRAIN_WEIGHTS_FILE);
    train_case_job(&job, NULL, 0);
    struct train_config cfg = train_case_config(&job, "");
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(model_copy_make(train_replica(train), 1, &copy, err));
    train_destroy(train);
    meanwhile = NULL;
}

static void teardown(void)
{
    model_copy_destroy(copy);
    test_dir_remove(dir);
}

/* Returns the later step that stays. */
static uint64_t save_as(uint64_t step, const char *job_tag, int is_last)
{
    struct end_weights place;
    uint64_t later = 99;
    const uint64_t had = copy->steps;
    end_weights_init(&place, path, job_tag, training, is_last);
    copy->steps = step;
    ck_ms_ok(end_weights_save(&place, copy, &later, err));
    copy->steps = had;
    end_weights_fini(&place);
    return later;
}

static uint64_t save(uint64_t step, const char *job_tag)
{
    return save_as(step, job_tag, 0);
}

/* The line of the end, as rank 0 writes it. */
static void tell_end(const char *of, uint64_t step)
{
    char lines[200];
    struct metrics *metrics = NULL;
    const struct metrics_step last = {.epoch = 1, .step = step};
    const struct metrics_done done = {.steps = step, .weights_sha256 = "", .plan_sha256 = ""};
    snprintf(lines, sizeof(lines), "%s/" METRICS_FILE, dir);
    ck_ms_ok(metrics_open(lines, of, &metrics, err));
    ck_ms_ok(metrics_put_step(metrics, &last, err));
    ck_ms_ok(metrics_put_done(metrics, &done, err));
    metrics_close(metrics);
}

static void ck_lies_there(uint64_t step, const char *job_tag)
{
    struct safetensors *file = NULL;
    ck_ms_ok(safetensors_open_own(path, &file, err));
    ck_assert_str_eq(safetensors_meta(file, "format"), "msched");
    ck_assert_uint_eq(strtoull(safetensors_meta(file, "steps"), NULL, 10), step);
    const char *of = safetensors_meta(file, "job_tag");
    ck_assert_int_eq(of != NULL, job_tag != NULL);
    if (of != NULL && job_tag != NULL) {
        ck_assert_str_eq(of, job_tag);
    }
    safetensors_close(file);
}

START_TEST(the_latest_step_of_a_job_stays)
{
    ck_assert_uint_eq(save(17, tag), 0);
    ck_assert_uint_eq(save(18, tag), 0);
    ck_lies_there(18, tag);

    ck_assert_uint_eq(save(17, tag), 18);
    ck_lies_there(18, tag);

    copy->values[0][0] += 1; /* as it was: who saves a step again has it from the same training */
    ck_assert_uint_eq(save(18, tag), 0);
    ck_assert_int_eq(model_copy_is_at(copy, path), 1);
}
END_TEST

START_TEST(what_is_not_the_jobs_is_replaced)
{
    static const char other[] = "fedcba9876543210fedcba9876543210";
    ck_assert_uint_eq(save(18, other), 0);
    ck_assert_uint_eq(save(17, tag), 0);
    ck_lies_there(17, tag);

    ck_assert_uint_eq(save(5, ""), 0);
    ck_lies_there(5, NULL);
    ck_assert_uint_eq(save(4, ""), 0);
    ck_lies_there(4, NULL);
    ck_assert_uint_eq(save(3, tag), 0);
    ck_lies_there(3, tag);
}
END_TEST

/* Two runs that made all steps leave the same file. _i: the end of another run, of another step, or
 * none is told beside it. */
START_TEST(what_all_steps_left_stays_where_its_end_is_told)
{
    static const char *const whose[] = {training, "0d1b223f2a9c", training, NULL};
    const uint64_t told[] = {20, 20, 19, 0};
    ck_assert_uint_eq(save_as(20, tag, 1), 0);
    ck_lies_there(20, NULL);
    if (whose[_i] != NULL) {
        tell_end(whose[_i], told[_i]);
    }

    ck_assert_uint_eq(save(19, tag), _i == 0 ? 20 : 0);

    ck_lies_there(_i == 0 ? 20 : 19, _i == 0 ? NULL : tag);
    ck_assert_uint_eq(save_as(20, tag, 1), 0);
    ck_lies_there(20, NULL);
}
END_TEST

START_TEST(so_is_what_cannot_be_read)
{
    ck_assert_uint_eq(save(18, tag), 0);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_uint_eq(save(17, tag), 0);
    ck_lies_there(17, tag);
}
END_TEST

static void save_18(void)
{
    ck_assert_uint_eq(save(18, tag), 0);
}

/* Its disk took five seconds. */
START_TEST(a_later_step_that_comes_while_this_one_is_written_stays)
{
    meanwhile = save_18;
    ck_assert_uint_eq(save(17, tag), 18);
    ck_lies_there(18, tag);
}
END_TEST

/* The line of the end belongs to them. */
START_TEST(the_place_is_held_until_all_is_said)
{
    char lock[220];
    struct end_weights place;
    uint64_t later = 0;
    snprintf(lock, sizeof(lock), "%s/.%s.lock", dir, TRAIN_WEIGHTS_FILE);
    end_weights_init(&place, path, tag, training, 0);
    ck_ms_ok(end_weights_save(&place, copy, &later, err));

    const int fd = open(lock, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(flock(fd, LOCK_EX | LOCK_NB), 0);
    end_weights_fini(&place);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);

    ck_assert_int_ne(access(lock, F_OK), 0);
}
END_TEST

/* Who was killed has left it, and what is no file is no lock. */
START_TEST(a_lock_that_lies_there_keeps_nobody_out)
{
    char lock[220];
    snprintf(lock, sizeof(lock), "%s/.%s.lock", dir, TRAIN_WEIGHTS_FILE);
    if (_i == 0) {
        FILE *file = fopen(lock, "w");
        ck_assert_ptr_nonnull(file);
        fclose(file);
    } else {
        ck_assert_int_eq(mkdir(lock, 0755), 0);
    }
    ck_assert_uint_eq(save(18, tag), 0);
    ck_assert_uint_eq(save(17, tag), 18);
    ck_lies_there(18, tag);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("end_weights");
    TCase *tc = tcase_create("end_weights");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_latest_step_of_a_job_stays);
    tcase_add_test(tc, what_is_not_the_jobs_is_replaced);
    tcase_add_test(tc, so_is_what_cannot_be_read);
    tcase_add_loop_test(tc, what_all_steps_left_stays_where_its_end_is_told, 0, 4);
    tcase_add_test(tc, a_later_step_that_comes_while_this_one_is_written_stays);
    tcase_add_test(tc, the_place_is_held_until_all_is_said);
    tcase_add_loop_test(tc, a_lock_that_lies_there_keeps_nobody_out, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
