/* test_msw.c - the public library, as a program outside of this tree uses it */
#include "libworker/msworker.h"

#include "tests/test.h"
#include "tests/unit/image_files.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const char text[] = "network: linear\nworkers: 3\n"
                           "dataset: {kind: nonlinear, shuffle: false, samples: 160}\n"
                           "batch_size: 16\nepochs: 2\nloss: mse\n"
                           "optimizer: {kind: sgd, learning_rate: 0.05}\n";

static struct msw_job *job;

static void setup(void)
{
    struct msw_error error;
    ck_assert_msg(msw_job_parse(text, "/", &job, &error) == MSW_OK, "%s", error.text);
}

static void teardown(void)
{
    msw_job_destroy(job);
}

struct seen {
    int calls, stop_after;
    uint64_t last_step;
    float loss;
};

static int watch(void *arg, const struct msw_progress *progress)
{
    struct seen *seen = arg;
    seen->calls++;
    seen->last_step = progress->step;
    seen->loss = progress->loss;
    ck_assert_uint_eq(progress->steps_total, 20);
    ck_assert_int_eq(progress->epochs, 2);
    return seen->calls == seen->stop_after;
}

START_TEST(a_program_trains_and_reads_the_weights)
{
    struct seen seen = {0};
    struct msw_options options = {.threads = 1, .on_progress = watch, .arg = &seen};
    struct msw_model *model = NULL;
    struct msw_error error;
    size_t count = 0;
    int64_t dims[4] = {0};

    int rc = msw_train(job, &options, &model, &error);

    ck_assert_msg(rc == MSW_OK, "%s", error.text);
    ck_assert_int_eq(seen.calls, 20);
    ck_assert_uint_eq(seen.last_step, 20);
    ck_assert_uint_eq(msw_model_count(model), 2);
    ck_assert_str_eq(msw_model_name(model, 0), "fc.bias");
    ck_assert_ptr_null(msw_model_name(model, 2));
    ck_assert_ptr_nonnull(msw_model_values(model, "fc.weight", &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_null(msw_model_values(model, "nothing", &count));
    ck_assert_int_eq(msw_model_shape(model, "fc.weight", dims), 2);
    ck_assert_int_eq(dims[0], 1);
    ck_assert_int_eq(dims[1], 2);
    ck_assert_int_eq(msw_model_shape(model, "nothing", dims), -1);
    ck_assert_uint_eq(strlen(msw_model_sha256(model)), 64);
    msw_model_destroy(model);
}
END_TEST

START_TEST(non_zero_from_on_progress_stops_after_the_step_and_is_no_failure)
{
    struct seen seen = {.stop_after = 5};
    struct msw_options options = {.threads = 1, .on_progress = watch, .arg = &seen};
    struct msw_model *model = NULL;
    struct msw_error error;

    int rc = msw_train(job, &options, &model, &error);

    ck_assert_msg(rc == MSW_OK, "%s", error.text);
    ck_assert_uint_ge(seen.last_step, 5);
    ck_assert_uint_le(seen.last_step, 6);
    ck_assert_ptr_nonnull(model);
    msw_model_destroy(model);
}
END_TEST

START_TEST(two_jobs_in_a_row_give_the_same)
{
    struct msw_model *a = NULL;
    struct msw_model *b = NULL;

    ck_assert_int_eq(msw_train(job, NULL, &a, NULL), MSW_OK);
    ck_assert_int_eq(msw_train(job, NULL, &b, NULL), MSW_OK);

    ck_assert_str_eq(msw_model_sha256(a), msw_model_sha256(b));
    msw_model_destroy(a);
    msw_model_destroy(b);
}
END_TEST

START_TEST(a_model_need_not_be_wanted)
{
    ck_assert_int_eq(msw_train(job, NULL, NULL, NULL), MSW_OK);
}
END_TEST

START_TEST(a_run_directory_gets_metrics_and_weights)
{
    const char *dir = test_dir_make();
    char path[128];
    struct msw_options options = {.run_dir = dir, .threads = 1};

    ck_assert_int_eq(msw_train(job, &options, NULL, NULL), MSW_OK);

    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    ck_assert_int_eq(access(path, R_OK), 0);
    snprintf(path, sizeof(path), "%s/weights.safetensors", dir);
    ck_assert_int_eq(access(path, R_OK), 0);
    test_dir_remove(dir);
}
END_TEST

/* No scheduler's reason could say so. /dev/full opens, and takes nothing. */
START_TEST(metrics_that_cannot_be_written_are_said)
{
    const char *dir = test_dir_make();
    char path[128];
    struct msw_error error = {0, ""};
    struct msw_options options = {.run_dir = dir, .threads = 1};
    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    ck_assert_int_eq(symlink("/dev/full", path), 0);

    ck_assert_int_lt(msw_train(job, &options, NULL, &error), 0);

    ck_assert_msg(strstr(error.text, "metrics.jsonl") != NULL, "%s", error.text);
    snprintf(path, sizeof(path), "%s/weights.safetensors", dir);
    ck_assert_int_eq(access(path, R_OK), 0);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_model_is_saved_and_a_path_that_cannot_be_written_is_named)
{
    const char *dir = test_dir_make();
    char path[128];
    struct msw_model *model = NULL;
    struct msw_error error = {0, ""};
    ck_assert_int_eq(msw_train(job, NULL, &model, NULL), MSW_OK);
    snprintf(path, sizeof(path), "%s/m.safetensors", dir);

    ck_assert_int_eq(msw_model_save(model, path, &error), MSW_OK);
    ck_assert_int_eq(access(path, R_OK), 0);
    ck_assert_int_lt(msw_model_save(model, "/nonexistent/m.safetensors", &error), 0);

    ck_assert_ptr_nonnull(strstr(error.text, "/nonexistent/m.safetensors"));
    msw_model_destroy(model);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_wrong_job_is_refused_with_line_and_nearest_key)
{
    struct msw_job *none = NULL;
    struct msw_error error = {0, ""};

    int rc = msw_job_parse("network: linear\nbatchsize: 3\n", NULL, &none, &error);

    ck_assert_int_eq(rc, MSW_INVALID);
    ck_assert_int_eq(error.code, MSW_INVALID);
    ck_assert_ptr_nonnull(strstr(error.text, "batch_size"));
    ck_assert_ptr_null(none);
    ck_assert_int_eq(msw_job_parse("network: linear\nbatchsize: 3\n", NULL, &none, NULL),
                     MSW_INVALID);
}
END_TEST

struct last {
    uint64_t step;
};

static int note_last(void *arg, const struct msw_progress *progress)
{
    ((struct last *)arg)->step = progress->step;
    return 0;
}

START_TEST(a_job_file_is_loaded_with_overrides)
{
    const char *dir = test_dir_make();
    char path[128];
    const char *sets[] = {"epochs=1", "steps=3"};
    struct msw_job *loaded = NULL;
    struct msw_error error = {0, ""};
    struct last last = {0};
    struct msw_options options = {.on_progress = note_last, .arg = &last};
    snprintf(path, sizeof(path), "%s/job.yaml", dir);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);

    ck_assert_msg(msw_job_load(path, sets, 2, &loaded, &error) == MSW_OK, "%s", error.text);
    ck_assert_int_eq(msw_train(loaded, &options, NULL, &error), MSW_OK);
    ck_assert_uint_eq(last.step, 3);
    ck_assert_int_lt(msw_job_load("/nonexistent.yaml", NULL, 0, &loaded, &error), 0);

    ck_assert_ptr_nonnull(strstr(error.text, "/nonexistent.yaml"));
    msw_job_destroy(loaded);
    test_dir_remove(dir);
}
END_TEST

/* Of this process, by the name that the kernel shows for such memory. */
static int has_image_memory(void)
{
    int has = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char target[256] = "";
        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0) {
            has |= strstr(target, "msched-images") != NULL;
        }
    }
    closedir(dir);
    return has;
}

static int note_images(void *arg, const struct msw_progress *progress)
{
    (void)progress;
    *(int *)arg = has_image_memory();
    return 0;
}

/* As msworker does, and by its variable. */
START_TEST(images_of_a_folder_are_kept_decoded_unless_the_environment_says_no)
{
    const char *dir = test_dir_make();
    struct msw_job *images = NULL;
    struct msw_error error = {0, ""};
    int has = -1;
    struct msw_options options = {.threads = 1, .on_progress = note_images, .arg = &has};
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d.png", i);
        png_write(dir, i % 2 == 0 ? "a" : "b", name, 2, 2, i);
    }
    ck_assert_msg(msw_job_parse("network: [flatten, {dense: {out: classes}}]\n"
                                "dataset: {kind: image_folder, path: .}\nbatch_size: 4\n"
                                "epochs: 1\noptimizer: {kind: sgd, learning_rate: 0.05}\n",
                                dir, &images, &error) == MSW_OK,
                  "%s", error.text);

    ck_assert_msg(msw_train(images, &options, NULL, &error) == MSW_OK, "%s", error.text);
    ck_assert_int_eq(has, 1);
    setenv("MSCHED_IMAGE_MEMORY", "0", 1);
    ck_assert_msg(msw_train(images, &options, NULL, &error) == MSW_OK, "%s", error.text);
    ck_assert_int_eq(has, 0);
    setenv("MSCHED_IMAGE_MEMORY", "much", 1);
    ck_assert_int_lt(msw_train(images, &options, NULL, &error), 0);

    ck_assert_msg(strstr(error.text, "MSCHED_IMAGE_MEMORY") != NULL, "%s", error.text);
    msw_job_destroy(images);
    test_dir_remove(dir);
}
END_TEST

START_TEST(to_join_without_the_environment_names_the_variable)
{
    struct msw_error error = {0, ""};
    unsetenv("MS_ROLE");
    unsetenv("MS_SCHED_HOST");

    int rc = msw_join(job, NULL, NULL, &error);

    ck_assert_int_lt(rc, 0);
    ck_assert_int_eq(error.code, rc);
    ck_assert_msg(strstr(error.text, "MS_") != NULL, "%s", error.text);
}
END_TEST

START_TEST(to_join_where_nobody_is_says_so)
{
    struct msw_error error = {0, ""};
    /* a port that is bound, so that nobody else takes it, but not listened at */
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    char port[8];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    snprintf(port, sizeof(port), "%d", ntohs(addr.sin_port));
    setenv("MS_ROLE", "MS_WORKER", 1);
    setenv("MS_SCHED_HOST", "127.0.0.1", 1);
    setenv("MS_SCHED_PORT", port, 1);
    setenv("MS_WORKER_NUM", "1", 1);
    setenv("MS_TOPO_TIMEOUT", "1", 1);

    int rc = msw_join(job, NULL, NULL, &error);

    ck_assert_msg(rc == MSW_UNREACHABLE, "%d: %s", rc, error.text);
    ck_assert_ptr_nonnull(strstr(error.text, port));
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("msw");
    TCase *tc = tcase_create("msw");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_program_trains_and_reads_the_weights);
    tcase_add_test(tc, non_zero_from_on_progress_stops_after_the_step_and_is_no_failure);
    tcase_add_test(tc, two_jobs_in_a_row_give_the_same);
    tcase_add_test(tc, a_model_need_not_be_wanted);
    tcase_add_test(tc, a_run_directory_gets_metrics_and_weights);
    tcase_add_test(tc, metrics_that_cannot_be_written_are_said);
    tcase_add_test(tc, a_model_is_saved_and_a_path_that_cannot_be_written_is_named);
    tcase_add_test(tc, a_wrong_job_is_refused_with_line_and_nearest_key);
    tcase_add_test(tc, a_job_file_is_loaded_with_overrides);
    tcase_add_test(tc, images_of_a_folder_are_kept_decoded_unless_the_environment_says_no);
    tcase_add_test(tc, to_join_without_the_environment_names_the_variable);
    tcase_add_test(tc, to_join_where_nobody_is_says_so);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
