/* test_checkpoint.c - trainings that are saved, and go on from there as if nothing had been */
#include "tests/unit/checkpoint_case.h"

#include "libworker/data/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *dir;
static char folder[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(folder, sizeof(folder), "%s/ckpt", dir);
    case_notes[0] = '\0';
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* ---- jobs ---- */

enum { SETS_MAX = 8, NOBODY = 65534 };

static const struct kind {
    const char *name;
    const char *sets[SETS_MAX];
} kinds[] = {
    {"sgd", {"optimizer={kind: sgd, learning_rate: 0.05}"}},
    {"momentum", {"optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}"}},
    {"adam", {"optimizer={kind: adam, learning_rate: 0.01}", "dataset.shuffle=true"}},
    {"moving statistics, tails and evaluations",
     {"network=cifar_small", "dataset={kind: shapes, samples: 40}", "loss=softmax_cross_entropy",
      "optimizer={kind: adam, learning_rate: 0.01}", "batch_size=16", "epochs=4",
      "evaluate={dataset: {kind: shapes, samples: 20}}"}},
    {"drawn at random",
     {"network=lenet5", "dataset={kind: shapes, samples: 64}", "loss=softmax_cross_entropy",
      "transforms=[{random_crop: {size: 32, padding: 4}}, {random_horizontal_flip: {}}]",
      "optimizer={kind: momentum, learning_rate: 0.01}", "batch_size=8", "epochs=2"}},
    {"adamw, and a rate that rises and falls",
     {"optimizer={kind: adamw, learning_rate: 0.01, weight_decay: 0.1, schedule: {kind: one_cycle, "
      "max_learning_rate: 0.05, min_learning_rate: 0.001, by: step, warmup: 4}}"}},
    {"nesterov, and a rate that falls with the epochs",
     {"optimizer={kind: momentum, learning_rate: 0.01, nesterov: true, weight_decay: 0.01, "
      "schedule: {kind: polynomial, power: 0.9, by: epoch, warmup: 1, warmup_from: 0.1}}",
      "epochs=3"}},
};

/* The job of a kind, with checkpoints (NULL: none). */
static void make_job(struct job *ret, const struct kind *kind, const char *checkpoint)
{
    const char *sets[SETS_MAX + 1];
    char set[256];
    size_t n = 0;
    while (n < SETS_MAX && kind->sets[n] != NULL) {
        sets[n] = kind->sets[n];
        n++;
    }
    if (checkpoint != NULL) {
        snprintf(set, sizeof(set), "checkpoint=%s", checkpoint);
        sets[n++] = set;
    }
    train_case_job(ret, sets, n);
}

static int is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct checkpoint_list find(struct train *train)
{
    struct checkpoint_list list;
    ck_ms_ok(checkpoint_find(train, &list, err));
    return list;
}

/* What the job names keeps it from beginning. */
static void ck_is_refused(struct train *train, const char *want)
{
    struct checkpoint_list list = find(train);
    ck_assert_int_eq(ms_err_code(&list.refusal), MS_E_INVALID);
    ck_assert_msg(strstr(ms_err_text(&list.refusal), want) != NULL, "%s",
                  ms_err_text(&list.refusal));
    checkpoint_list_fini(&list);
}

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

static void make_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

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

static struct checkpoint_manifest read_manifest(const char *name)
{
    struct checkpoint_manifest m;
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    ck_ms_ok(checkpoint_verify(path, CHECKPOINT_OWN, &m, err));
    return m;
}

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

/* ---- which are found ---- */

static void damage(const char *name, long at)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(file);
    ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
    fputc(c ^ 4, file);
    fclose(file);
}

static uint64_t sum_state(const struct train *train)
{
    uint64_t sum = 0;
    const void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; replica_view_state(train->replica, i, &state, &bytes); i++) {
        for (size_t k = 0; k < bytes; k++) {
            sum = sum * 31 + ((const uint8_t *)state)[k];
        }
    }
    return sum;
}

START_TEST(a_damaged_one_is_named_and_changes_nothing)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5, keep_max: 9}");
    const struct train_result whole = checkpoint_case_run(&job, dir);
    damage("x-20.json", 100);
    damage("x-15.safetensors", -5);
    char path[256];
    snprintf(path, sizeof(path), "%s/x-10.safetensors", folder);
    ck_assert_int_eq(truncate(path, 100), 0);
    case_notes[0] = '\0';

    struct train *train = checkpoint_case_train(&job, dir);
    struct checkpoint_list list = find(train);

    ck_assert_uint_eq(list.n, 2); /* digests are for who loads */
    ck_assert_uint_eq(list.infos[0].step, 15);
    ck_assert_ptr_nonnull(strstr(case_notes, "x-20.json"));
    ck_assert_ptr_nonnull(strstr(case_notes, "x-10.safetensors is damaged: 100 bytes"));
    const uint64_t before = sum_state(train);
    ck_ms_fails(checkpoint_load(train, &list.infos[0], err), MS_E_INVALID, "x-15.safetensors is");
    ck_assert_uint_eq(sum_state(train), before);
    checkpoint_case_stand(train, &list.infos[1]);
    ck_assert_str_eq(checkpoint_case_go(train).weights_sha256, whole.weights_sha256);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

/* To digest what a few bytes of a manifest say could take hours. */
START_TEST(one_whose_size_is_not_that_of_the_state_is_refused_before_it_is_read)
{
    static const uint64_t sizes[] = {0, 8, UINT64_C(64) << 30, UINT64_MAX};
    struct job job;
    char words[128];
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    struct train *train = checkpoint_case_train(&job, dir);
    struct checkpoint_list list = find(train);

    for (size_t i = 0; i < MS_ARRAY_SIZE(sizes); i++) {
        struct checkpoint_info info = list.infos[0];
        info.manifest.data_size = sizes[i];
        snprintf(words, sizeof(words), "x-20.safetensors has %" PRIu64 " bytes, and the state of ",
                 sizes[i]);
        ck_ms_fails(checkpoint_load(train, &info, err), MS_E_INVALID, words);
    }
    ck_ms_ok(checkpoint_load(train, &list.infos[0], err));
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

/* The job has its own of that step, and one that it was resumed from. */
START_TEST(a_damaged_one_hides_no_whole_one_of_its_step)
{
    struct job job;
    char there[128];
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    const struct train_result whole = checkpoint_case_run(&job, dir);
    snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);
    snprintf(there, sizeof(there), "%s/there", dir);
    snprintf(folder, sizeof(folder), "%s/ckpt", there);
    ck_assert_int_eq(mkdir(there, 0755), 0);
    job.steps = 11;
    checkpoint_case_run(&job, there);
    ck_assert(is_there("x-10.json"));
    damage("x-10.safetensors", -5);
    job.steps = 0;
    case_notes[0] = '\0';

    struct train *train = checkpoint_case_train(&job, there);

    ck_assert_uint_eq(train->progress.step, 10);
    ck_assert_ptr_nonnull(strstr(case_notes, "the checkpoint of step 10 is passed over"));
    checkpoint_finish(train);
    struct checkpoint_manifest anew = read_manifest("x-10.json"); /* this step is due */
    checkpoint_manifest_fini(&anew);
    ck_assert_str_eq(checkpoint_case_go(train).weights_sha256, whole.weights_sha256);
    train_destroy(train);
}
END_TEST

static const struct {
    const char *set, *key, *there, *here;
} others[] = {
    {"seed=2", "seed", "1", "2"},
    {"batch_size=8", "batch_size", "16", "8"},
    {"workers=2", "workers", "1", "2"},
    {"optimizer.learning_rate=0.5", "optimizer.learning_rate", "0.01", "0.5"},
    {"optimizer.momentum=0.5", "optimizer.momentum", "0.9,", "0.5:"},
    {"optimizer.learning_rate=0.1", "optimizer.learning_rate", "0.01,", "0.1:"},
    {"optimizer.learning_rate=0.010000000000000002", "optimizer.learning_rate", "0.01",
     "0.010000000000000002:"},
    {"dataset.samples=320", "dataset.samples", "160", "320"},
    {"drop_remainder=true", "drop_remainder", "false", "true"},
};

START_TEST(another_training_is_refused_by_key_and_both_values)
{
    struct job job;
    struct checkpoint_list list;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    const char *sets[] = {kinds[1].sets[0], others[_i].set};
    train_case_job(&job, sets, 2);
    struct train_config cfg = checkpoint_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    char want[128];

    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    snprintf(want, sizeof(want), "is of a job with %s: %s", others[_i].key, others[_i].there);
    ck_is_refused(train, want);
    snprintf(want, sizeof(want), ", and this one has %s", others[_i].here);
    ck_is_refused(train, want);

    job.resume[0] = '\0'; /* merely lying there */
    job.has_checkpoint = 1;
    snprintf(job.checkpoint_directory, sizeof(job.checkpoint_directory), "ckpt");
    snprintf(job.checkpoint_prefix, sizeof(job.checkpoint_prefix), "x");
    list = find(train);
    ck_assert_uint_eq(list.n, 0);
    ck_assert_ptr_nonnull(strstr(case_notes, others[_i].key));
    train_destroy(train);
}
END_TEST

/* One whose schedule is as long as the job, then one whose schedule says how long it is. */
#define COSINE "optimizer.schedule={kind: cosine, by: step, warmup: 3"
static const struct {
    const char *there, *here[3], *words; /* NULL: it goes on */
} schedules[] = {
    {COSINE "}", {"optimizer.schedule=null"}, "with optimizer.schedule: {\"by\":\"step\""},
    {"optimizer.schedule=null", {COSINE "}"}, "with optimizer.schedule: none, and this one has {"},
    {COSINE "}", {COSINE "}", "optimizer.schedule.warmup=4"}, "optimizer.schedule.warmup: 3, and"},
    {COSINE "}", {COSINE "}", "optimizer.schedule.length=40"}, "optimizer.schedule.length: 0, and"},
    {COSINE "}", {COSINE "}", "epochs=7"}, "with epochs: 2, and this one has 7"},
    {COSINE "}", {COSINE "}", "steps=15"}, "with steps: 0, and this one has 15"},
    {COSINE "}",
     {COSINE "}", "optimizer.weight_decay=0.1"},
     "weight_decay: none, and this one has 0.1"},
    {COSINE "}", {COSINE "}", "optimizer.nesterov=true"}, "nesterov: none, and this one has true"},
    {COSINE "}", {COSINE "}", "seed=1"}, NULL},
    {COSINE ", length: 40}", {COSINE ", length: 40}", "epochs=7"}, NULL},
    {"optimizer.schedule={kind: exponential, by: epoch, gamma: 0.5}",
     {"optimizer.schedule={kind: exponential, by: epoch, gamma: 0.5}", "epochs=7", "steps=60"},
     NULL},
};

START_TEST(another_schedule_is_another_training_and_so_is_another_end_of_one_that_has_none)
{
    struct job job;
    struct checkpoint_list list;
    struct kind kind = {"", {kinds[1].sets[0], schedules[_i].there}};
    make_job(&job, &kind, "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    for (int i = 0; i < 3; i++) {
        kind.sets[1 + i] = schedules[_i].here[i];
    }
    make_job(&job, &kind, NULL);
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);

    if (schedules[_i].words != NULL) {
        ck_is_refused(train, schedules[_i].words);
    } else {
        list = find(train);
        ck_assert_uint_eq(list.n, 2);
        checkpoint_list_fini(&list);
    }
    train_destroy(train);
}
END_TEST

/* The path may be the same, and what lies there not. */
START_TEST(those_of_other_data_are_refused_with_both_numbers)
{
    struct job job;
    struct checkpoint_list list;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    struct train_config cfg = checkpoint_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_open(train, err));
    list = find(train);
    ck_assert_uint_eq(list.n, 2);
    checkpoint_list_fini(&list);
    train->data.training.sum[3] ^= 0x10;

    /* its own: the job is right, and the data are not */
    ck_ms_fails(checkpoint_find(train, &list, err), MS_E_REFUSED,
                "is of a dataset with 160 samples (digest ");

    job.has_checkpoint = 0;
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    ck_is_refused(train, "and that of this job has 160 (");
    train->data.training.rows = 80;
    ck_is_refused(train, "and that of this job has 80 (");
    train_destroy(train);
}
END_TEST

START_TEST(those_of_another_run_are_taken_only_where_they_are_named)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    static const char *const tags[] = {"", "fedcba9876543210fedcba9876543210", CHECKPOINT_CASE_TAG};
    for (size_t i = 0; i < MS_ARRAY_SIZE(tags); i++) {
        struct train_config cfg = checkpoint_case_config(&job, dir);
        cfg.job_tag = tags[i];
        case_notes[0] = '\0';
        job.resume[0] = '\0';
        struct train *train = train_create(&cfg);
        struct checkpoint_list list = find(train);
        ck_assert_uint_eq(list.n, i == 2 ? 2 : 0);
        ck_assert((strstr(case_notes, "is of another run") == NULL) == (i == 2));
        checkpoint_list_fini(&list);
        snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);
        list = find(train);
        ck_assert_uint_eq(list.n, i == 2 ? 2 : 1); /* a file that it may take twice is one */
        ck_assert_uint_eq(list.infos[list.n - 1].step, 10);
        checkpoint_list_fini(&list);
        train_destroy(train);
    }
}
END_TEST

static int count_notes(const char *text)
{
    int n = 0;
    for (const char *at = strstr(case_notes, text); at != NULL; at = strstr(at + 1, text)) {
        n++;
    }
    return n;
}

START_TEST(those_that_are_passed_over_are_told_once_and_not_where_the_job_names_their_place)
{
    struct job job;
    char places[3][160];
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    checkpoint_case_run(&job, dir);
    struct train_config cfg = checkpoint_case_config(&job, dir);
    cfg.job_tag = "fedcba9876543210fedcba9876543210";
    case_notes[0] = '\0';
    struct train *train = train_create(&cfg);
    for (int i = 0; i < 2; i++) {
        struct checkpoint_list list = find(train);
        ck_assert_uint_eq(list.n, 0);
    }
    ck_assert_msg(count_notes("x-20.json is of another run of the job; it and 3 more are passed "
                              "over, --resume would take it\n") == 1,
                  "%s", case_notes);
    ck_assert_int_eq(count_notes("\n"), 1);
    train_destroy(train);

    snprintf(places[0], sizeof(places[0]), "%s", dir);
    snprintf(places[1], sizeof(places[1]), "%s", folder);
    snprintf(places[2], sizeof(places[2]), "%s/./x-10.json", folder);
    for (int i = 0; i < 3; i++) {
        case_notes[0] = '\0';
        snprintf(job.resume, sizeof(job.resume), "%s", places[i]);
        train = train_create(&cfg);
        struct checkpoint_list list = find(train);
        ck_assert_uint_eq(list.n, i < 2 ? 4 : 1);
        ck_assert_str_eq(case_notes, "");
        checkpoint_list_fini(&list);
        train_destroy(train);
    }
}
END_TEST

static const struct {
    const char *set, *text;
} ends[] = {
    {"steps=12", "x-20.json is of step 20, and this job ends with step 12: give it more steps, or "
                 "name an older checkpoint"},
    {"epochs=1", "x-20.json is of step 20, and this job ends with step 10: give it more epochs, or "
                 "name an older checkpoint"},
};

/* It would end at once with an older one, as if it had trained. */
START_TEST(a_job_that_ends_before_the_newest_that_it_names_is_refused)
{
    struct job job;
    struct train_info info;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5, keep_max: 9}");
    checkpoint_case_run(&job, dir);
    const char *sets[] = {kinds[1].sets[0], ends[_i].set};
    train_case_job(&job, sets, 2);
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    const struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);

    ck_ms_fails(train_prepare(train, &info, err), MS_E_INVALID, ends[_i].text);

    train_destroy(train);
    snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);
    train = checkpoint_case_train(&job, "");
    ck_assert_uint_eq(train->progress.step, 10);
    train_destroy(train);
}
END_TEST

/* Whoever trains in the place that it names may have come further since it began, or another
 * training lies there now, or what is no checkpoint. */
static const struct {
    const char *set, *name, *note;
} meanwhile[] = {
    {"seed=1", "there", "x-20.json is of step 20, and this job ends with step 12"},
    {"seed=2", "there", "is of a job with seed: 2, and this one has 1"},
    {"seed=2", "there/x-20.safetensors", "is no manifest of a checkpoint"},
};

START_TEST(a_job_that_has_saved_itself_goes_on_whatever_lies_where_it_began)
{
    struct job job;
    char there[160];
    const struct kind other = {"", {kinds[1].sets[0], meanwhile[_i].set}};
    make_job(&job, &other, "{directory: there, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    snprintf(there, sizeof(there), "%s/%s", dir, meanwhile[_i].name);
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    job.steps = 10;
    checkpoint_case_run(&job, dir);
    job.steps = 12;
    snprintf(job.resume, sizeof(job.resume), "%s", there);

    case_notes[0] = '\0';

    struct train *train = checkpoint_case_train(&job, dir);

    ck_assert_uint_eq(train->progress.step, 10);
    ck_assert_msg(strstr(case_notes, meanwhile[_i].note) != NULL, "%s", case_notes);
    train_destroy(train);

    struct train_info info; /* who has not is refused, by the same words */
    job.has_checkpoint = 0;
    const struct train_config cfg = checkpoint_case_config(&job, "");
    train = train_create(&cfg);
    ck_ms_fails(train_prepare(train, &info, err), MS_E_INVALID, meanwhile[_i].note);
    train_destroy(train);
}
END_TEST

/* As where it resumed from a job that trains on. */
START_TEST(a_job_that_has_saved_itself_takes_no_later_step_from_where_it_began)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: there, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 5}");
    job.steps = 10;
    checkpoint_case_run(&job, dir);
    job.steps = 0;
    snprintf(job.resume, sizeof(job.resume), "%s/there", dir);

    struct train *train = checkpoint_case_train(&job, dir);

    ck_assert_uint_eq(train->progress.step, 10);
    struct checkpoint_list list = find(train);
    ck_assert_uint_eq(list.n, 4); /* 10 and 5 of its own, 20 and 10 from there */
    ck_assert(list.infos[0].owner == CHECKPOINT_OWN && list.infos[1].owner == CHECKPOINT_OWN);
    ck_assert_uint_eq(list.infos[2].step, 20);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

/* end: how the reason ends where it has no room for all that was found. */
static void refuse_to_begin_with(const struct job *job, const char *found, const char *end)
{
    struct train_info info;
    struct ms_err why = {0, ""};
    char want[400];
    const struct train_config cfg = checkpoint_case_config(job, "");
    struct train *train = train_create(&cfg);
    case_notes[0] = '\0';
    snprintf(want, sizeof(want), "resume: no rank has a complete checkpoint in %s: %s", job->resume,
             found);
    ck_assert_int_eq(train_prepare(train, &info, &why), MS_E_NOT_FOUND);
    ck_assert_msg(strstr(why.text, want) != NULL && strstr(why.text, end) != NULL, "%s", why.text);
    snprintf(want, sizeof(want), "resume: %s: %s", job->resume, found);
    ck_assert_msg(strstr(case_notes, want) != NULL, "%s", case_notes);
    train_destroy(train);
}

static void refuse_to_begin(const struct job *job, const char *found)
{
    refuse_to_begin_with(job, found, "");
}

START_TEST(who_has_nothing_to_go_on_from_says_what_lies_in_the_place_that_is_named)
{
    struct job job;
    make_job(&job, &kinds[1], NULL);
    snprintf(job.resume, sizeof(job.resume), "%s/nowhere", dir);
    refuse_to_begin(&job, "there is no such place here");

    /* where it may not look: the operator of another rank's node may let it */
    ck_ms_ok(data_path_restrict("any", dir, "any", err));
    snprintf(job.resume, sizeof(job.resume), "/var/lib");
    refuse_to_begin(&job, "path /var/lib: jobs read below ");
    ck_ms_ok(data_path_restrict("any",
                                "/data/sets /mnt/one /mnt/two /mnt/three /srv/models "
                                "/usr/share/data /opt /home /media",
                                "any", err));
    refuse_to_begin_with(&job, "path /var/lib: jobs read below ", " /usr/share/data ...");
    ck_ms_ok(data_path_restrict("any", "any", "any", err));

    ck_assert_int_eq(mkdir(folder, 0755), 0);
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    refuse_to_begin(&job, "no file there is called <prefix>-<step>.json, nor in a folder there");

    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    damage("x-20.json", 100);
    damage("x-10.json", 100);
    job.has_checkpoint = 0;
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    refuse_to_begin(&job, "2 of its 2 checkpoints are damaged; the newest: ");

    damage("x-10.json", 100); /* which mends it */
    damage("x-10.safetensors", -5);
    refuse_to_begin(&job, "the checkpoint of step 10 is passed over: checkpoint ");
}
END_TEST

START_TEST(other_lengths_names_and_evaluations_are_the_same_training)
{
    struct job job;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    const char *sets[] = {kinds[1].sets[0], "epochs=7",   "steps=100",
                          "name=other",     "priority=3", "threads=1"};
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    snprintf(job.resume, sizeof(job.resume), "%s", dir);
    struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);
    struct checkpoint_list list = find(train);
    ck_assert_uint_eq(list.n, 2);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

/* The evaluation of the checkpoint's job (two threads a rank, which nobody would choose), and that
 * of who goes on. */
static const struct {
    const char *there, *here;
} evaluations[] = {{"evaluate={dataset: {kind: shapes, samples: 20}}", "evaluate=null"},
                   {"evaluate={dataset: {kind: shapes, samples: 20}}",
                    "evaluate={dataset: {kind: shapes, samples: 20}, batch_size: 5}"},
                   {"evaluate=null", "evaluate={dataset: {kind: shapes, samples: 20}}"}};

START_TEST(who_is_evaluated_otherwise_goes_on_by_the_same_plan)
{
    struct job job;
    struct kind kind = {"",
                        {"network=cifar_small", "dataset={kind: shapes, samples: 40}",
                         "loss=softmax_cross_entropy", "epochs=4", evaluations[_i].there,
                         "threads=2"}};
    make_job(&job, &kind, "{directory: ckpt, prefix: x, every_steps: 7}");
    const struct train_result whole = checkpoint_case_run(&job, dir);
    kind.sets[4] = evaluations[_i].here;
    kind.sets[5] = NULL;
    make_job(&job, &kind, NULL);
    snprintf(job.resume, sizeof(job.resume), "%s", dir);

    struct train *train = checkpoint_case_train(&job, "");
    struct checkpoint_list list = find(train);
    ck_assert_uint_eq(list.n, 1);
    checkpoint_case_stand(train, &list.infos[0]);
    train->evaluates = 0;
    const struct train_result result = checkpoint_case_go(train);

    ck_assert_str_ne(result.plan_sha256, whole.plan_sha256);
    ck_assert_str_eq(result.weights_sha256, whole.weights_sha256);
    ck_assert_int_eq(result.steps, whole.steps);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

START_TEST(a_place_that_this_host_lacks_is_anothers_to_read)
{
    struct job job;
    make_job(&job, &kinds[1], NULL);
    snprintf(job.resume, sizeof(job.resume), "%s/nowhere", dir);
    struct train_config cfg = checkpoint_case_config(&job, "");
    struct train *train = train_create(&cfg);
    struct checkpoint_list list = find(train);
    ck_assert_uint_eq(list.n, 0);
    train_destroy(train);
}
END_TEST

/* Root may look everywhere: the folder is given to who may not. */
static void become_nobody(void)
{
    ck_assert_int_eq(chmod(dir, 0755), 0);
    if (getuid() == 0) {
        ck_assert_int_eq(chown(folder, NOBODY, NOBODY), 0);
        ck_assert_int_eq(seteuid(NOBODY), 0);
    }
}

static void become_again(void)
{
    ck_assert(getuid() != 0 || seteuid(0) == 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
}

START_TEST(a_folder_that_this_rank_may_not_look_into_is_anothers_to_read)
{
    struct job job;
    struct checkpoint_list list;
    make_job(&job, &kinds[1], "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    snprintf(job.resume, sizeof(job.resume), "%s", _i == 0 ? "" : folder);
    case_notes[0] = '\0';
    struct train_config cfg = checkpoint_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    become_nobody();
    ck_assert_int_eq(chmod(folder, 0300), 0);

    ck_ms_ok(checkpoint_find(train, &list, err));

    become_again();
    ck_assert_uint_eq(list.n, 0);
    ck_assert_ptr_nonnull(strstr(case_notes, "cannot look for checkpoints in "));
    ck_assert_ptr_nonnull(strstr(case_notes, "Permission denied; another rank may"));
    list = find(train);
    ck_assert_uint_eq(list.n, 2);
    checkpoint_list_fini(&list);
    train_destroy(train);
}
END_TEST

/* ---- where they cannot be written ---- */

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
    tcase_add_test(tc, a_damaged_one_is_named_and_changes_nothing);
    tcase_add_test(tc, one_whose_size_is_not_that_of_the_state_is_refused_before_it_is_read);
    tcase_add_test(tc, a_damaged_one_hides_no_whole_one_of_its_step);
    tcase_add_loop_test(tc, another_training_is_refused_by_key_and_both_values, 0,
                        (int)MS_ARRAY_SIZE(others));
    tcase_add_loop_test(
        tc, another_schedule_is_another_training_and_so_is_another_end_of_one_that_has_none, 0,
        (int)MS_ARRAY_SIZE(schedules));
    tcase_add_test(tc, those_of_other_data_are_refused_with_both_numbers);
    tcase_add_test(tc, those_of_another_run_are_taken_only_where_they_are_named);
    tcase_add_test(
        tc, those_that_are_passed_over_are_told_once_and_not_where_the_job_names_their_place);
    tcase_add_loop_test(tc, a_job_that_ends_before_the_newest_that_it_names_is_refused, 0,
                        MS_ARRAY_SIZE(ends));
    tcase_add_loop_test(tc, a_job_that_has_saved_itself_goes_on_whatever_lies_where_it_began, 0,
                        MS_ARRAY_SIZE(meanwhile));
    tcase_add_test(tc, a_job_that_has_saved_itself_takes_no_later_step_from_where_it_began);
    tcase_add_test(tc, who_has_nothing_to_go_on_from_says_what_lies_in_the_place_that_is_named);
    tcase_add_test(tc, other_lengths_names_and_evaluations_are_the_same_training);
    tcase_add_loop_test(tc, who_is_evaluated_otherwise_goes_on_by_the_same_plan, 0,
                        (int)MS_ARRAY_SIZE(evaluations));
    tcase_add_test(tc, a_place_that_this_host_lacks_is_anothers_to_read);
    tcase_add_loop_test(tc, a_folder_that_this_rank_may_not_look_into_is_anothers_to_read, 0, 2);
    tcase_add_test(tc, a_checkpoint_is_found_by_the_names_that_people_have);
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
