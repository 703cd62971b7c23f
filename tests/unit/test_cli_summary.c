/* test_cli_summary.c - how a job ended: speeds over the whole job, accuracy with its data, and
 * files that are none */
#include "cli/summary.h"

#include "cli/checkpoints.h"
#include "cli/eval_name.h"
#include "cli/json.h"
#include "cli/metrics.h"
#include "cli/self.h"
#include "cli/shell_word.h"
#include "libworker/data/sum.h"
#include "libworker/train/checkpoint_folder.h"
#include "proto/clock.h"
#include "tests/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static Ms__JobInfo job;
static Ms__Progress progress, eval;
static Ms__Progress *evals[] = {&eval};

static void begin(void)
{
    ms__job_info__init(&job);
    ms__progress__init(&progress);
    ms__progress__init(&eval);
    job.id = 7;
    job.name = (char *)"mnist";
    job.state = (char *)"SUCCEEDED";
    job.steps = 1000;
    job.seconds = 50;
    progress.step = 1000;
    progress.samples_per_s = 400; /* of the last, slow step: 64 samples in 160 ms */
    progress.step_ms = 160;
    eval.accuracy = 0.95;
    eval.eval_loss = 0.2;
    job.progress = &progress;
    job.evals = evals;
    job.n_evals = 1;
}

START_TEST(a_command_to_be_copied_comes_to_the_same_scheduler)
{
    static const struct {
        const char *called, *config, *server, *want;
    } rows[] = {
        {"msctl", NULL, NULL, "msctl"},
        {"msctl", NULL, "unix:ws/s.sock", "msctl -s unix:ws/s.sock"},
        {"b/msctl", "my.conf", "head:8118", "b/msctl --config my.conf -s head:8118"},
        {"msctl", NULL, "unix:my run/s.sock", "msctl -s 'unix:my run/s.sock'"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        cli_self_set(rows[i].called);
        char *there = cli_self_there(rows[i].config, rows[i].server);
        ck_assert_str_eq(there, rows[i].want);
        free(there);
    }
    cli_self_set("msctl");
}
END_TEST

START_TEST(speed_is_an_average_over_the_job_and_not_the_last_step)
{
    struct cli_metrics none = {0};

    struct cli_speed speed = cli_summary_speed(&job, &none, NULL);

    ck_assert_double_eq_tol(speed.step_ms, 50, 1e-9);
    ck_assert_double_eq_tol(speed.samples_per_s, 64 / 0.05, 1e-6);
    ck_assert(isnan(speed.median_ms));
    ck_assert_int_eq(speed.with_evaluations, 1);
}
END_TEST

/* Nine quick steps, and one that waited for another process: the samples of ten in 100 ms. */
START_TEST(speed_of_a_short_job_is_its_samples_by_the_time_of_its_steps)
{
    const char *root = test_dir_make();
    char path[160];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 9; i++) { /* 16 samples each */
        fputs("{\"loss\":1,\"samples_per_s\":16000,\"step_ms\":1}\n", file);
    }
    fputs("{\"epoch\":1,\"eval_loss\":1,\"accuracy\":1}\n", file);
    fputs("{\"loss\":1,\"samples_per_s\":175.824176,\"step_ms\":91}\n", file);
    fputs("{\"loss\":1,\"samples_per_s\":null,\"step_ms\":1}\n", file);
    fclose(file);
    ck_ms_ok(cli_metrics_read(path, &metrics, err));

    struct cli_speed speed = cli_summary_speed(&job, &metrics, NULL);

    ck_assert_double_eq_tol(speed.samples_per_s, 1600, 0.01);
    ck_assert_double_eq_tol(speed.step_ms, 10, 1e-6);
    ck_assert_double_eq_tol(speed.median_ms, 1, 1e-6);
    ck_assert_int_eq(speed.with_evaluations, 0);
    cli_metrics_free(&metrics);
    test_dir_remove(root);
}
END_TEST

START_TEST(job_that_never_stepped_has_no_speed)
{
    struct cli_metrics none = {0};
    job.steps = 0;
    job.progress = NULL;

    ck_assert(isnan(cli_summary_speed(&job, &none, NULL).step_ms));
}
END_TEST

START_TEST(job_that_was_cancelled_tells_programs_how_far_it_came)
{
    job.state = (char *)"CANCELLED";
    job.steps = 0;
    job.seconds = 0;
    job.started_ms = 1000;
    job.ended_ms = 52900;
    progress.step = 755;

    json_t *object = cli_summary_json(&job, NULL, NULL, NULL);

    ck_assert_int_eq(json_integer_value(json_object_get(object, "steps")), 755);
    ck_assert_double_eq_tol(json_real_value(json_object_get(object, "seconds")), 51.9, 1e-9);
    json_decref(object);
}
END_TEST

static double seconds_told(void)
{
    json_t *object = cli_json_job(&job);
    const double seconds = json_real_value(json_object_get(object, "seconds"));
    json_decref(object);
    return seconds;
}

START_TEST(job_that_runs_tells_programs_for_how_long)
{
    job.state = (char *)"RUNNING";
    job.steps = 0;
    job.seconds = 0;
    job.started_ms = ms_wall_ms() - 11400;

    ck_assert_double_ge(seconds_told(), 11.4);
    ck_assert_double_lt(seconds_told(), 3600);

    job.started_ms = ms_wall_ms() + 3600000; /* by a clock that goes ahead of ours */
    ck_assert_double_eq_tol(seconds_told(), 0, 1e-9);
    job.started_ms = 0;
    ck_assert_double_eq_tol(seconds_told(), 0, 1e-9);
}
END_TEST

START_TEST(accuracy_stands_with_its_data_set)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    cli_summary_print(out, 0, &job, "the test set of mnist", NULL, NULL);
    fclose(out);

    ck_assert_msg(strstr(text, "accuracy    95.00 % on the test set of mnist, loss 0.2000\n") !=
                      NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "50.0 ms a step (average of the job with its evaluations)") != NULL,
                  "%s", text);
    free(text);
}
END_TEST

START_TEST(digest_of_weights_is_not_taken_for_the_sum_of_the_file)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    char path[300];
    char *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/weights.safetensors", root);
    FILE *file = fopen(path, "w");
    fputs("abc", file);
    fclose(file);
    job.weights_sha256 = (char *)"0123";
    FILE *out = open_memstream(&text, &size);

    cli_summary_print(out, 0, &job, NULL, NULL, &facts);
    fclose(out);

    ck_assert_msg(strstr(text, "weights     digest 0123\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "not of the file") != NULL, "%s", text);
    /* sha256sum of "abc": NIST's example */
    ck_assert_msg(strstr(text, "weights.safetensors\n              sha256 ba7816bf8f01cfea414140de5"
                               "dae2223b00361a396177a9cb410ff61f20015ad\n") != NULL,
                  "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

/* ... with what is saved. */
static char *text_of(const struct cli_run_facts *facts)
{
    char *text = NULL;
    size_t size = 0;
    struct cli_checkpoints saved;
    struct cli_run_facts all = *facts;
    cli_checkpoints_look(facts, &saved);
    all.saved = &saved;
    FILE *out = open_memstream(&text, &size);
    cli_summary_print(out, 0, &job, NULL, NULL, &all);
    fclose(out);
    return text;
}

static json_t *object_of(const struct cli_run_facts *facts)
{
    struct cli_checkpoints saved;
    struct cli_run_facts all = *facts;
    cli_checkpoints_look(facts, &saved);
    all.saved = &saved;
    return cli_summary_json(&job, NULL, NULL, &all);
}

START_TEST(a_folder_in_the_place_of_the_weights_was_not_saved)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    char path[300];
    snprintf(path, sizeof(path), "%s/weights.safetensors", root);
    ck_assert_int_eq(mkdir(path, 0755), 0);

    char *text = text_of(&facts);
    json_t *object = cli_summary_json(&job, NULL, NULL, &facts);

    ck_assert_msg(strstr(text, "saved") == NULL, "%s", text);
    ck_assert(json_is_null(json_object_get(object, "weights")));
    json_decref(object);
    free(text);
    test_dir_remove(root);
}
END_TEST

static void touch(const char *dir, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void put(const char *dir, const char *name, const char *text, size_t size)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    fclose(file);
}

static const char *sum_of_data(void)
{
    static char sum[SUM_HEX];
    uint64_t size = 0;
    const int fd = memfd_create("data", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "data", 4), 4);
    ck_ms_ok(sum_file(fd, "data", &size, sum, err));
    close(fd);
    return sum;
}

/* A checkpoint of the job with that tag; first: that of the one that it was resumed from. */
static void save(const char *dir, const char *prefix, uint64_t step, const char *tag,
                 const char *first)
{
    struct checkpoint_manifest m = {.step = step,
                                    .epoch = 1,
                                    .step_in_epoch = 1,
                                    .name = "mnist",
                                    .job = (char *)"{}",
                                    .plan = (char *)"plan",
                                    .data_size = 4};
    uint8_t digest[MS_SHA256_BYTES];
    char name[100];
    size_t size = 0;
    ms_sha256(m.job, strlen(m.job), digest);
    ms_sha256_hex(digest, m.job_sha256);
    ms_sha256(m.plan, strlen(m.plan), digest);
    ms_sha256_hex(digest, m.plan_sha256);
    snprintf(m.data_sum, sizeof(m.data_sum), "%s", sum_of_data());
    snprintf(m.tag, sizeof(m.tag), "%s", tag);
    snprintf(m.first_tag, sizeof(m.first_tag), "%s", first);
    snprintf(m.data, sizeof(m.data), "%s-%" PRIu64 ".safetensors", prefix, step);
    put(dir, m.data, "data", 4);
    char *text = checkpoint_manifest_format(&m, &size);
    ck_assert_ptr_nonnull(text);
    snprintf(name, sizeof(name), "%s-%" PRIu64 ".json", prefix, step);
    put(dir, name, text, size);
    free(text);
}

START_TEST(who_stopped_a_job_is_told_where_and_how_it_goes_on)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    char want[400];
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/saves", root);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    save(folder, "small", 90, "ours", "");
    save(folder, "small", 1110, "ours", "");
    save(folder, "other", 9999, "ours", "");
    touch(folder, "small-1200.json"); /* nothing can go on from it */
    touch(root, "metrics.jsonl");
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "./saves");
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    job.state = (char *)"CANCELLED";
    job.steps = 0;
    progress.step = 1108; /* told before the last one was made */
    progress.steps_total = 2000;

    char *text = text_of(&facts);
    json_t *object = object_of(&facts);

    ck_assert_msg(strstr(text, "  steps       1,110 of 2,000\n") != NULL, "%s", text);
    snprintf(want, sizeof(want),
             "  checkpoints %s/saves: the newest is of step 1,110\n"
             "              go on with: msctl run --resume %s job.yaml\n",
             root, root);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    ck_assert_msg(strstr(text, "  not saved   the weights: the newest checkpoint has them\n") !=
                      NULL,
                  "%s", text);
    progress.step = 1112;
    free(text);
    text = text_of(&facts);
    progress.step = 1108;
    ck_assert_msg(strstr(text, "  not saved   the weights: what was trained after the newest "
                               "checkpoint is lost\n") != NULL,
                  "%s", text);
    free(text);
    cli_self_set("my build/cli/msctl"); /* no shell would find that by its name */
    text = text_of(&facts);
    cli_self_set("msctl");
    ck_assert_msg(strstr(text, "go on with: 'my build/cli/msctl' run --resume ") != NULL, "%s",
                  text);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "checkpoint_step")), 1110);
    snprintf(want, sizeof(want), "%s/saves/small-1110.json", root);
    ck_assert_str_eq(json_string_value(json_object_get(object, "checkpoint")), want);
    free(text);

    job.state = (char *)"SUCCEEDED";
    job.steps = 2000;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", folder);
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "the newest is of step 1,110\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    json_decref(object);
    free(text);
    test_dir_remove(root);
}
END_TEST

/* Its size is right, and no rank would go on from it. */
static void damage(const char *dir, const char *name)
{
    put(dir, name, "dAta", 4);
}

START_TEST(what_is_damaged_is_not_what_one_goes_on_from)
{
    static struct job spec;
    const char *root = test_dir_make();
    struct cli_run_facts facts = {.run_dir = root,
                                  .seconds = 1,
                                  .job = &spec,
                                  .again = "-n 2 job.yaml",
                                  .tag = "ours",
                                  .resumed_step = 30};
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", root);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    snprintf(spec.resume, sizeof(spec.resume), "/before/it's-30.json");
    save(root, "small", 90, "ours", "");
    save(root, "small", 100, "ours", "");
    save(root, "small", 110, "ours", "");
    damage(root, "small-110.safetensors");
    job.state = (char *)"CANCELLED";
    job.steps = 0;
    progress.step = 0;

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, ": the newest that is whole is of step 100 (that of step 110 is "
                               "damaged)\n              go on with: msctl run --resume /") != NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "  steps       110\n") != NULL, "%s", text);
    free(text);

    damage(root, "small-100.safetensors");
    damage(root, "small-90.safetensors");
    text = text_of(&facts);
    ck_assert_msg(strstr(text, ": 3 are damaged, the newest of step 110; none is whole\n"
                               "              go on with: msctl run --resume "
                               "'/before/it'\\''s-30.json' -n 2 job.yaml\n") != NULL,
                  "%s", text);
    free(text);
    json_t *object = object_of(&facts);
    ck_assert(json_is_null(json_object_get(object, "checkpoint")));
    json_decref(object);
    facts.resumed_step = 0;
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_job_that_has_the_key_goes_on_by_the_key)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .job = &spec, .again = "job.yaml", .again_by_key = 1, .tag = "ours"};
    char want[400];
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/it's: #1", root);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", folder);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    save(folder, "small", 90, "ours", "");
    job.state = (char *)"CANCELLED";

    char *text = text_of(&facts);

    snprintf(want, sizeof(want),
             "go on with: msctl run job.yaml --set 'resume=\"%s/it'\\''s: #1\"'\n", root);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(words_are_quoted_for_a_shell)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"optimizer.learning_rate=0.1", "optimizer.learning_rate=0.1"},
        {"", "''"},
        {"checkpoint={directory: ckpt}", "'checkpoint={directory: ckpt}'"},
        {"it's $HOME", "'it'\\''s $HOME'"},
        {"~/x", "'~/x'"},
        {"a\033[2Jb", "'a'$'\\033''[2Jb'"},
        {"gr\xc3\xbcn", "'gr\xc3\xbcn'"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        char *word = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&word, &size);
        cli_shell_word(out, rows[i].text);
        fclose(out);
        ck_assert_str_eq(word, rows[i].word);
        free(word);
    }
}
END_TEST

static void say(const char *root, const char *lines)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/worker_0.log", root);
    FILE *log = fopen(path, "ae");
    ck_assert_ptr_nonnull(log);
    fputs(lines, log);
    fclose(log);
}

/* The job was refused, for the folder is another training's. */
START_TEST(checkpoints_of_another_training_are_not_shown)
{
    static struct job spec;
    const char *root = test_dir_make();
    struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", root);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    save(root, "small", 1850, "theirs", "");
    job.state = (char *)"FAILED";
    job.steps = 0;

    char *text = text_of(&facts);
    json_t *object = object_of(&facts);

    ck_assert_msg(strstr(text, "checkpoints") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    ck_assert(json_is_null(json_object_get(object, "checkpoint")));
    ck_assert(json_is_null(json_object_get(object, "checkpoint_step")));
    json_decref(object);
    free(text);

    facts.tag = ""; /* nobody has heard of the job */
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    free(text);

    save(root, "small", 90, "ours", "");
    facts.tag = "ours";
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "the newest is of step 90\n") != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(those_of_the_training_that_was_resumed_are_shown)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", root);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    snprintf(spec.resume, sizeof(spec.resume), "%s/small-40.json", root);
    save(root, "small", 40, "second", "first");
    save(root, "small", 60, "first", "");
    save(root, "small", 80, "theirs", "");
    job.state = (char *)"CANCELLED";
    job.steps = 0;

    char *text = text_of(&facts);

    ck_assert_msg(strstr(text, "the newest is of step 60\n") != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_fifo_in_the_place_of_a_log_holds_nobody)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    char path[300];
    spec.has_checkpoint = 1;
    snprintf(path, sizeof(path), "%s/worker_0.log", root);
    ck_assert_int_eq(mkfifo(path, 0600), 0);

    char *text = text_of(&facts);

    ck_assert_msg(strstr(text, "checkpoints") == NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_checkpoint_that_could_not_be_written_is_told)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    char folder[300];
    snprintf(folder, sizeof(folder), "%s/saves", root);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "saves");
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    say(root, "2026-01-02 03:04:05.678 rank.note job=1 rank=0 text=\"no checkpoint of step 7: "
              "cannot write x; \033[2J: No space left on device; the "
              "training goes on, older checkpoints stay\"\nepoch: 1 step: 8\n");

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, "  checkpoints no checkpoint of step 7: cannot write x; ?[2J: No "
                               "space left on device (rank 0's log)\n") != NULL,
                  "%s", text);
    free(text);
    save(folder, "small", 14, "ours", "");
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "the newest is of step 14\n              no checkpoint of step 7: "
                               "cannot write") != NULL,
                  "%s", text);
    free(text);
    say(root, "2026-01-02 03:04:05.678 rank.note job=1 rank=0 text=\"checkpoints are written "
              "again: that of step 14 is\"\n");
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "no checkpoint of") == NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_run_without_a_verdict_tells_what_is_left)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    char *text = NULL;
    size_t size = 0;
    touch(root, "metrics.jsonl");
    job.state = (char *)"RECOVERING";
    job.steps = 0;
    progress.step = 112;
    progress.steps_total = 156;
    FILE *out = open_memstream(&text, &size);

    cli_summary_print_left(out, &job, &facts);
    fclose(out);

    ck_assert_msg(strstr(text, "steps       112 of 156\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "  not saved   the weights: what was trained is lost\n") != NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "metrics.jsonl\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "worker_<rank>.log and scheduler.log\n") != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

static void put_metrics(const char *root, int first, int last)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    for (int i = first; i <= last; i++) {
        fprintf(file, "{\"step\":%d,\"loss\":1,\"samples_per_s\":100,\"step_ms\":1}\n", i);
    }
    fclose(file);
}

/* The disk was full for some time, and the process that kept them for it is gone. */
START_TEST(metrics_with_a_hole_are_told)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 1107);
    put_metrics(root, 1675, 2814);
    job.steps = 2814;
    job.seconds = 28.14;

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, "567 steps in front of it have no line, the first is 1,108\n") !=
                      NULL,
                  "%s", text);
    ck_assert_msg(strstr(text, "10.0 ms a step") != NULL, "%s", text); /* the job's, not theirs */
    free(text);
    json_t *object = cli_summary_json(&job, NULL, NULL, &facts);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "metrics_lacking")), 567);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "metrics_step")), 2814);
    json_decref(object);

    put_metrics(root, 1108, 1673); /* trained again, and one is lacking still */
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "1 step in front of it has no line, the first is 1,674\n") != NULL,
                  "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

/* Room came and went again: some of those that waited were written behind what the note says. */
START_TEST(step_that_the_metrics_lack_first_is_behind_their_last_one)
{
    static const struct {
        int noted;
        const char *want;
    } cases[] = {
        {66, "its last step is 87 of 200: no metrics from step 88 on: cannot write x: No space "
             "left on device (rank 0's log)\n"},
        {88, "its last step is 87 of 200: no metrics from step 88 on: cannot write x: "},
        {90, "its last step is 87 of 200: no metrics from step 88 on: cannot write x: "},
    };
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 87);
    job.steps = 0;
    progress.step = 200;
    progress.steps_total = 200;
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        char line[200];
        snprintf(
            line, sizeof(line),
            "2026-01-02 03:04:05.678 rank.note job=1 rank=0 text=\"no metrics from step %d on: "
            "cannot write x: No space left on device; the training goes on, and they wait\"\n",
            cases[i].noted);
        say(root, line);
        char *text = text_of(&facts);
        ck_assert_msg(strstr(text, cases[i].want) != NULL, "%s", text);
        free(text);
    }
    test_dir_remove(root);
}
END_TEST

/* The disk was full to the end, and the log on it may say why, or not. */
START_TEST(metrics_that_end_before_the_job_are_told)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 1503);
    job.state = (char *)"FAILED";
    job.reason = (char *)"rank 0 failed: cannot write x/weights.safetensors: No space left";
    job.steps = 0;
    progress.step = 1600;
    progress.steps_total = 1600;

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, "metrics.jsonl\n              its last step is 1,503 of 1,600\n") !=
                      NULL,
                  "%s", text);
    free(text);
    say(root, "2026-01-02 03:04:05.678 rank.note job=1 rank=0 text=\"no metrics from step 1504 on: "
              "cannot write x: No space left on device; the training goes on, and they wait\"\n");
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "its last step is 1,503 of 1,600: no metrics from step 1504 on: "
                               "cannot write x: No space left on device (rank 0's log)\n") != NULL,
                  "%s", text);
    free(text);
    json_t *object = cli_summary_json(&job, NULL, NULL, &facts);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "metrics_step")), 1503);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "steps")), 1600);
    json_decref(object);

    put_metrics(root, 1504, 1600);
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "its last step") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "no line") == NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

static int says(const struct cli_run_facts *facts, const char *words)
{
    char *text = text_of(facts);
    const int does = strstr(text, words) != NULL;
    if (!does) {
        fprintf(stderr, "%s", text);
    }
    free(text);
    return does;
}

/* 261 steps have a line, of 1 ms each; there were 1,000, in 50 s. */
START_TEST(metrics_that_end_early_do_not_give_the_speed_of_the_job)
{
    const char *root = test_dir_make();
    struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 261);
    progress.loss = 0.25;

    ck_assert(says(&facts, "50.0 ms a step (average of the job with its evaluations)\n"));
    ck_assert(says(&facts, " 1.0000 (step 261), then 0.2500 (step 1,000)\n"));
    json_t *object = object_of(&facts);
    ck_assert_double_eq_tol(json_real_value(json_object_get(object, "step_ms")), 50, 1e-6);
    ck_assert_double_eq_tol(json_real_value(json_object_get(object, "samples_per_s")), 0.1 / 0.05,
                            1e-6);
    json_decref(object);

    job.state = (char *)"CANCELLED"; /* its seconds are not known */
    job.steps = 0;
    job.seconds = 0;
    ck_assert(says(&facts, "1.0000 ms a step (average of steps 1 to 261; median 1.0000 ms)\n"));

    put_metrics(root, 262, 1000);
    ck_assert(says(&facts, "1.0000 ms a step (average of the job; median 1.0000 ms)\n"));
    ck_assert(says(&facts, " 1.0000\n"));
    facts.resumed_step = 500;
    progress.step = 1001;
    ck_assert(says(&facts, "(average of steps 501 to 1,000; median"));
    test_dir_remove(root);
}
END_TEST

static double seconds_of(const struct cli_run_facts *facts)
{
    json_t *object = object_of(facts);
    const double seconds = json_number_value(json_object_get(object, "seconds"));
    json_decref(object);
    return seconds;
}

START_TEST(a_resumed_job_that_was_stopped_tells_the_time_of_its_whole_training)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 3, .resumed_step = 500, .resumed_s = 24.76};
    job.state = (char *)"CANCELLED";
    job.steps = 0;
    job.seconds = 0;
    job.started_ms = 1000;
    job.ended_ms = 3300;
    put_metrics(root, 501, 1000);

    ck_assert_double_eq_tol(seconds_of(&facts), 27.06, 1e-6); /* rank 0 was killed, say */
    ck_assert(says(&facts, " CANCELLED after 27.1 s, 2.30 s since step 500\n"));

    static const char done[] = "{\"done\":true,\"steps\":1000,\"seconds\":26.760}\n";
    char path[300];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    fputs(done, file);
    fclose(file);
    ck_assert_double_eq_tol(seconds_of(&facts), 26.76, 1e-6);
    ck_assert(says(&facts, " CANCELLED after 26.8 s of training, 2.00 s since step 500\n"));

    put_metrics(root, 1001, 1001); /* it was not the end */
    ck_assert_double_eq_tol(seconds_of(&facts), 27.06, 1e-6);
    test_dir_remove(root);
}
END_TEST

/* One tensor of one number: the digest is of its bytes alone. */
START_TEST(the_digest_of_what_a_stopped_run_has_saved_is_told)
{
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    char bytes[8 + sizeof(header) - 1 + 4] = {(char)(sizeof(header) - 1)};
    char hex[MS_SHA256_HEX];
    uint8_t digest[MS_SHA256_BYTES];
    memcpy(bytes + 8, header, sizeof(header) - 1);
    put(root, "weights.safetensors", bytes, sizeof(bytes));
    ms_sha256(bytes + sizeof(bytes) - 4, 4, digest);
    ms_sha256_hex(digest, hex);
    job.state = (char *)"CANCELLED";
    job.steps = 0;

    json_t *object = object_of(&facts);
    ck_assert_str_eq(json_string_value(json_object_get(object, "weights_sha256")), hex);
    json_decref(object);
    ck_assert(says(&facts, "  weights     digest "));

    put(root, "weights.safetensors", "torn", 4);
    object = object_of(&facts);
    ck_assert_str_eq(json_string_value(json_object_get(object, "weights_sha256")), "");
    json_decref(object);
    test_dir_remove(root);
}
END_TEST

/* The others saved the step whose line rank 0 had not written. */
START_TEST(a_kill_between_a_step_and_its_line_is_told)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 999);
    job.state = (char *)"CANCELLED";
    job.steps = 0;

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, "its last step is 999 of 1,000: rank 0 ended before it wrote that "
                               "line\n") != NULL,
                  "%s", text);
    free(text);

    Ms__RankInfo rank = MS__RANK_INFO__INIT;
    Ms__RankInfo *ranks[] = {&rank};
    rank.state = (char *)"lost";
    job.ranks = ranks;
    job.n_ranks = 1;
    text = text_of(&facts);
    ck_assert_msg(strstr(text,
                         "its last step is 999 of 1,000: rank 0 was lost, and no other writes "
                         "it\n") != NULL,
                  "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_has_all_its_steps_and_no_advice_to_repeat_it)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {
        .run_dir = root, .seconds = 1, .job = &spec, .again = "job.yaml", .tag = "ours"};
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", root);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    save(root, "small", 5, "ours", "");
    put_metrics(root, 1, 8);
    job.state = (char *)"FAILED";
    job.reason = (char *)"rank 0 failed: In epoch: 1 step: 9, loss is NAN or INF, training process "
                         "cannot continue. A smaller learning rate is the usual cure";
    job.steps = 0;
    progress.step = 5; /* told 200 ms before */
    progress.steps_total = 400;

    char *text = text_of(&facts);
    json_t *object = cli_summary_json(&job, NULL, NULL, &facts);

    ck_assert_msg(strstr(text, "  steps       8 of 400\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "the newest is of step 5\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "steps")), 8);
    json_decref(object);
    free(text);

    job.reason = (char *)"rank 1 was lost";
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "go on with") != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

/* It went back to the checkpoint of step 100, and its file of metrics has what came before that. */
START_TEST(steps_are_not_those_that_were_to_be_trained_again)
{
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root, .seconds = 1};
    put_metrics(root, 1, 137);
    job.state = (char *)"FAILED";
    job.steps = 0;
    job.again_from = 101;
    job.again_to = 137;
    progress.step = 110;
    progress.steps_total = 400;

    char *text = text_of(&facts);
    ck_assert_msg(strstr(text, "  steps       110 of 400\n") != NULL, "%s", text);
    free(text);
    put_metrics(root, 138, 150);
    text = text_of(&facts);
    ck_assert_msg(strstr(text, "  steps       150 of 400\n") != NULL, "%s", text);
    free(text);
    test_dir_remove(root);
}
END_TEST

/* Another run of the training writes there, and this one was refused before its first step. */
START_TEST(a_run_that_trained_nothing_lost_nothing_and_has_no_steps_of_others)
{
    static struct job spec;
    const char *root = test_dir_make();
    const struct cli_run_facts facts = {.run_dir = root,
                                        .seconds = 1,
                                        .job = &spec,
                                        .again = "job.yaml",
                                        .tag = "ours",
                                        .resumed_step = 40};
    spec.has_checkpoint = 1;
    snprintf(spec.checkpoint_directory, sizeof(spec.checkpoint_directory), "%s", root);
    snprintf(spec.checkpoint_prefix, sizeof(spec.checkpoint_prefix), "small");
    snprintf(spec.resume, sizeof(spec.resume), "%s/small-40.json", root);
    save(root, "small", 40, "theirs", "");
    save(root, "small", 100, "theirs", "");
    touch(root, "metrics.jsonl");
    job.state = (char *)"FAILED";
    job.reason = (char *)"rank 0 failed: checkpoints: another process writes there";
    job.steps = 0;
    job.seconds = 0;
    progress.step = 40; /* rank 0's beat tells of the step that it took over */
    progress.steps_total = 0;

    char *text = text_of(&facts);
    json_t *object = cli_summary_json(&job, NULL, NULL, &facts);

    ck_assert_msg(strstr(text, "  steps ") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "not saved") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "go on with") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "its last step") == NULL, "%s", text);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "steps")), 0);
    json_decref(object);
    free(text);
    test_dir_remove(root);
}
END_TEST

START_TEST(time_of_a_resumed_job_is_told_apart_from_that_of_the_run)
{
    const struct cli_run_facts facts = {
        .run_dir = "/nonexistent", .seconds = 1, .resumed_step = 990, .resumed_s = 49.5};

    char *text = text_of(&facts);
    json_t *object = object_of(&facts);

    ck_assert_int_eq(json_integer_value(json_object_get(object, "resumed_step")), 990);
    ck_assert_double_eq(json_real_value(json_object_get(object, "resumed_seconds")), 49.5);
    json_decref(object);
    ck_assert_msg(strstr(text, "SUCCEEDED after 50.0 s of training, 0.50 s since step 990\n") !=
                      NULL,
                  "%s", text);
    free(text);
}
END_TEST

START_TEST(data_of_an_evaluation_is_named_from_the_job)
{
    static const char cifar[] =
        "{\"evaluate\": {\"dataset\": {\"kind\": \"cifar10\", \"usage\": \"test\"}}}";
    static const char all[] =
        "{\"evaluate\": {\"dataset\": {\"kind\": \"mnist\", \"usage\": \"all\", "
        "\"path\": \"/data/mnist/\"}}}";
    static const char drawn[] = "{\"evaluate\": {\"dataset\": {\"kind\": \"cifar10\", "
                                "\"usage\": \"test\", \"path\": \"/build/quickstart/shapes\"}}}";
    static const char variable[] = "{\"evaluate\": {\"dataset\": {\"kind\": \"mnist\", "
                                   "\"usage\": \"test\", \"path\": \"${DATA_PATH}\"}}}";
    char buf[CLI_EVAL_NAME_MAX];

    ck_assert_str_eq(cli_eval_name(buf, cifar, strlen(cifar)), "the test set of cifar10");
    ck_assert_str_eq(cli_eval_name(buf, all, strlen(all)), "all of mnist");
    ck_assert_str_eq(cli_eval_name(buf, drawn, strlen(drawn)),
                     "the test set of shapes (cifar10 files)"); /* nothing of CIFAR-10 in it */
    ck_assert_str_eq(cli_eval_name(buf, variable, strlen(variable)),
                     "the test set of ${DATA_PATH} (mnist files)");
    ck_assert_str_eq(cli_eval_name(buf, "{}", 2), "the evaluation data");
    ck_assert_str_eq(cli_eval_name(buf, NULL, 0), "the evaluation data");
    ck_assert_str_eq(cli_eval_name(buf, "\xff", 1), "the evaluation data");
}
END_TEST

START_TEST(metrics_that_are_no_plain_file_are_not_waited_for)
{
    const char *root = test_dir_make();
    char path[300];
    char link[300];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    ck_assert_int_eq(mkfifo(path, 0600), 0);

    ck_assert_int_lt(cli_metrics_read(path, &metrics, NULL), 0); /* at once: nobody writes there */
    snprintf(link, sizeof(link), "%s/link", root);
    ck_assert_int_eq(symlink("/etc/passwd", link), 0);
    ck_assert_int_lt(cli_metrics_read(link, &metrics, NULL), 0);
    ck_assert_int_lt(cli_metrics_read("/dev/zero", &metrics, NULL), 0);
    ck_assert_int_lt(cli_metrics_read(root, &metrics, NULL), 0);
    test_dir_remove(root);
}
END_TEST

START_TEST(lines_that_are_too_long_are_passed_over)
{
    const char *root = test_dir_make();
    char path[300];
    struct cli_metrics metrics;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);
    FILE *file = fopen(path, "w");
    fprintf(file, "{\"step\": 1, \"loss\": 3}\n");
    for (int i = 0; i < 100000; i++) {
        fputc('x', file);
    }
    fprintf(file, "\n{\"step\": 2, \"loss\": 2}\n{\"step\": 3, \"lo");
    fclose(file);

    ck_ms_ok(cli_metrics_read(path, &metrics, err));

    ck_assert_uint_eq(metrics.n, 2);
    ck_assert_double_eq_tol(metrics.loss[1], 2, 1e-12);
    cli_metrics_free(&metrics);
    test_dir_remove(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_summary");
    TCase *tc = tcase_create("summary");
    tcase_add_checked_fixture(tc, begin, NULL);
    tcase_add_test(tc, a_command_to_be_copied_comes_to_the_same_scheduler);
    tcase_add_test(tc, speed_is_an_average_over_the_job_and_not_the_last_step);
    tcase_add_test(tc, speed_of_a_short_job_is_its_samples_by_the_time_of_its_steps);
    tcase_add_test(tc, job_that_never_stepped_has_no_speed);
    tcase_add_test(tc, job_that_runs_tells_programs_for_how_long);
    tcase_add_test(tc, job_that_was_cancelled_tells_programs_how_far_it_came);
    tcase_add_test(tc, accuracy_stands_with_its_data_set);
    tcase_add_test(tc, digest_of_weights_is_not_taken_for_the_sum_of_the_file);
    tcase_add_test(tc, a_folder_in_the_place_of_the_weights_was_not_saved);
    tcase_add_test(tc, who_stopped_a_job_is_told_where_and_how_it_goes_on);
    tcase_add_test(tc, what_is_damaged_is_not_what_one_goes_on_from);
    tcase_add_test(tc, a_job_that_has_the_key_goes_on_by_the_key);
    tcase_add_test(tc, words_are_quoted_for_a_shell);
    tcase_add_test(tc, checkpoints_of_another_training_are_not_shown);
    tcase_add_test(tc, those_of_the_training_that_was_resumed_are_shown);
    tcase_add_test(tc, a_fifo_in_the_place_of_a_log_holds_nobody);
    tcase_add_test(tc, a_checkpoint_that_could_not_be_written_is_told);
    tcase_add_test(tc, a_run_without_a_verdict_tells_what_is_left);
    tcase_add_test(tc, step_that_the_metrics_lack_first_is_behind_their_last_one);
    tcase_add_test(tc, metrics_that_end_before_the_job_are_told);
    tcase_add_test(tc, metrics_with_a_hole_are_told);
    tcase_add_test(tc, metrics_that_end_early_do_not_give_the_speed_of_the_job);
    tcase_add_test(tc, a_resumed_job_that_was_stopped_tells_the_time_of_its_whole_training);
    tcase_add_test(tc, the_digest_of_what_a_stopped_run_has_saved_is_told);
    tcase_add_test(tc, a_kill_between_a_step_and_its_line_is_told);
    tcase_add_test(tc, a_loss_that_is_not_finite_has_all_its_steps_and_no_advice_to_repeat_it);
    tcase_add_test(tc, steps_are_not_those_that_were_to_be_trained_again);
    tcase_add_test(tc, a_run_that_trained_nothing_lost_nothing_and_has_no_steps_of_others);
    tcase_add_test(tc, time_of_a_resumed_job_is_told_apart_from_that_of_the_run);
    tcase_add_test(tc, data_of_an_evaluation_is_named_from_the_job);
    tcase_add_test(tc, metrics_that_are_no_plain_file_are_not_waited_for);
    tcase_add_test(tc, lines_that_are_too_long_are_passed_over);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
