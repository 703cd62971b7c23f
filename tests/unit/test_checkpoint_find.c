/* test_checkpoint_find.c - which checkpoints a training goes on from, and which it refuses */
#include "tests/unit/checkpoint_jobs.h"

#include "libworker/data/path.h"

#include <sys/stat.h>

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
    {COSINE "}",
     {COSINE "}", "steps=15"},
     "with steps: 0, and this one has 15: optimizer.schedule has no length and goes by the job's"},
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

/* It is evaluated, and no rate is of any use. */
START_TEST(a_job_that_ends_with_the_step_trains_by_no_schedule)
{
    struct job job;
    struct kind kind = {"", {kinds[1].sets[0], COSINE "}"}};
    make_job(&job, &kind, "{directory: ckpt, prefix: x, every_steps: 10}");
    checkpoint_case_run(&job, dir);
    kind.sets[2] = "steps=10";
    make_job(&job, &kind, NULL);
    snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);

    struct train *train = checkpoint_case_train(&job, "");

    ck_assert_uint_eq(train->progress.step, 10);
    ck_assert_uint_eq(checkpoint_case_go(train).steps, 10);
    train_destroy(train);
    job.steps = 11;
    struct train_config cfg = checkpoint_case_config(&job, "");
    train = train_create(&cfg);
    ck_is_refused(train, "with steps: 0, and this one has 11: optimizer.schedule has no length");
    job.steps = 10;
    job.seed = 2;
    ck_is_refused(train, "with seed: 1, and this one has 2: its training would be another one");
    /* in a folder it may be another training's, that is as long as this job */
    job.seed = 1;
    snprintf(job.resume, sizeof(job.resume), "%s", folder);
    ck_is_refused(train, "with steps: 0, and this one has 10: optimizer.schedule has no length");
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

int main(void)
{
    Suite *suite = suite_create("checkpoint_find");
    TCase *tc = tcase_create("checkpoint_find");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_damaged_one_is_named_and_changes_nothing);
    tcase_add_test(tc, one_whose_size_is_not_that_of_the_state_is_refused_before_it_is_read);
    tcase_add_test(tc, a_damaged_one_hides_no_whole_one_of_its_step);
    tcase_add_loop_test(tc, another_training_is_refused_by_key_and_both_values, 0,
                        (int)MS_ARRAY_SIZE(others));
    tcase_add_loop_test(
        tc, another_schedule_is_another_training_and_so_is_another_end_of_one_that_has_none, 0,
        (int)MS_ARRAY_SIZE(schedules));
    tcase_add_test(tc, a_job_that_ends_with_the_step_trains_by_no_schedule);
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
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
