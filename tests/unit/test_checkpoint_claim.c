/* test_checkpoint_claim.c - two trainings never write checkpoints of the same names to one folder
 */
#include "tests/unit/checkpoint_case.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define ANOTHER_TAG "fedcba9876543210fedcba9876543210"
#define THIRD_TAG   "00000000000000000000000000000003"

static const char *dir;
static char folder[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(folder, sizeof(folder), "%s/shared", dir);
    case_notes[0] = '\0';
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* Of an absolute directory, 20 steps. */
static void make_job(struct job *ret, const char *name, const char *set, int every, int keep)
{
    char checkpoint[256];
    char named[64];
    snprintf(checkpoint, sizeof(checkpoint),
             "checkpoint={directory: %s, prefix: x, every_steps: %d, keep_max: %d}", folder, every,
             keep);
    snprintf(named, sizeof(named), "name=%s", name);
    const char *sets[] = {checkpoint, named, set != NULL ? set : "seed=1"};
    train_case_job(ret, sets, MS_ARRAY_SIZE(sets));
}

static struct train *begin(const struct job *job, const char *tag)
{
    struct train_config cfg = checkpoint_case_config(job, "");
    struct train_info info;
    cfg.job_tag = tag;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_prepare(train, &info, err));
    return train;
}

static struct train_result run(const struct job *job, const char *tag)
{
    struct train *train = begin(job, tag);
    const struct train_result result = checkpoint_case_go(train);
    train_destroy(train);
    return result;
}

static struct ms_err refusal; /* the last one */

static void is_refused(const struct job *job, const char *tag, const char *words)
{
    struct train_config cfg = checkpoint_case_config(job, "");
    struct train_info info;
    cfg.job_tag = tag;
    struct train *train = train_create(&cfg);
    memset(&refusal, 0, sizeof(refusal));
    ck_assert_int_eq(train_prepare(train, &info, &refusal), MS_E_REFUSED);
    ck_assert_msg(strstr(refusal.text, words) != NULL, "'%s' lacks '%s'", refusal.text, words);
    ck_assert_ptr_nonnull(strstr(refusal.text, folder));
    ck_assert_ptr_nonnull(strstr(refusal.text, "write another checkpoint.prefix"));
    train_destroy(train);
}

/* One byte of it, and not its size. */
static void damage(const char *name)
{
    char path[512];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(pwrite(fd, "\xff", 1, st.st_size - 1), 1);
    close(fd);
}

static ino_t file_of(const char *name)
{
    struct stat st;
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int is_there(const char *name)
{
    return file_of(name) != 0;
}

/* ---- one after the other ---- */

static const struct {
    const char *name, *set, *tag, *words;
} others[] = {
    {"first", NULL, ANOTHER_TAG, "x-20.json there is a checkpoint of another run of job first;"},
    {"second", NULL, ANOTHER_TAG, "x-20.json there is a checkpoint of job first;"},
    {"second", "seed=2", ANOTHER_TAG, "x-20.json there is a checkpoint of job first;"},
    {"first", NULL, "", "x-20.json there is a checkpoint of another run of job first;"},
};

START_TEST(another_job_is_refused_before_it_trains)
{
    struct job job;
    make_job(&job, "first", NULL, 5, 5);
    run(&job, CHECKPOINT_CASE_TAG);
    const ino_t before[] = {file_of("x-5.json"), file_of("x-20.safetensors")};
    make_job(&job, others[_i].name, others[_i].set, 5, 1);

    is_refused(&job, others[_i].tag, others[_i].words);

    const int is_alike = others[_i].set == NULL;
    ck_assert((strstr(refusal.text, "go on from it (msctl run --resume") != NULL) == is_alike);
    ck_assert(before[0] != 0 && file_of("x-5.json") == before[0]);
    ck_assert(before[1] != 0 && file_of("x-20.safetensors") == before[1]);
    snprintf(job.checkpoint_prefix, sizeof(job.checkpoint_prefix), "y");
    run(&job, others[_i].tag);
    ck_assert(is_there("x-5.json") && is_there("y-20.json") && !is_there("y-15.json"));
}
END_TEST

START_TEST(the_same_job_writes_on)
{
    struct job job;
    static const char *const tags[] = {CHECKPOINT_CASE_TAG, ""};
    make_job(&job, "first", NULL, 5, 2);
    run(&job, tags[_i]);
    run(&job, tags[_i]);
    ck_assert(is_there("x-20.json") && is_there("x-15.json") && !is_there("x-10.json"));
}
END_TEST

/* Where it began counts, however often it was resumed: the oldest go. */
START_TEST(a_resumed_job_counts_those_from_before)
{
    struct job job;
    make_job(&job, "first", "steps=10", 2, 3);
    run(&job, CHECKPOINT_CASE_TAG);
    ck_assert(is_there("x-10.json") && is_there("x-6.json") && !is_there("x-4.json"));
    snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);
    job.steps = 12;
    run(&job, ANOTHER_TAG);
    ck_assert(is_there("x-12.json") && is_there("x-8.json") && !is_there("x-6.json"));
    snprintf(job.resume, sizeof(job.resume), "%s/x-12.json", folder);
    job.steps = 18;
    run(&job, THIRD_TAG);
    ck_assert(is_there("x-18.json") && is_there("x-14.json") && !is_there("x-12.json"));
    job.steps = 20; /* what it was resumed from has gone, and its ranks were all lost */

    struct train *train = begin(&job, THIRD_TAG);

    ck_assert_uint_eq(train->progress.step, 18);
    checkpoint_case_go(train);
    train_destroy(train);
    ck_assert(is_there("x-20.json") && is_there("x-16.json") && !is_there("x-14.json"));
    job.resume[0] = '\0';
    is_refused(&job, ANOTHER_TAG, "another run of job first");
}
END_TEST

static struct checkpoint_manifest read_manifest(const char *name)
{
    struct checkpoint_manifest m;
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    ck_ms_ok(checkpoint_verify(path, CHECKPOINT_OWN, &m, err));
    checkpoint_manifest_fini(&m);
    return m;
}

static int is_of(const char *name, const char *tag)
{
    const struct checkpoint_manifest m = read_manifest(name);
    ck_assert_str_eq(checkpoint_manifest_first_tag(&m), CHECKPOINT_CASE_TAG);
    return strcmp(m.tag, tag) == 0;
}

/* It goes on from an earlier one, and comes to the steps again: with the same bits. */
START_TEST(what_is_whole_of_the_same_training_is_not_written_again)
{
    struct job job;
    make_job(&job, "first", "steps=10", 5, 3);
    run(&job, CHECKPOINT_CASE_TAG);
    const ino_t data = file_of("x-10.safetensors");
    ck_assert(data != 0 && is_of("x-10.json", CHECKPOINT_CASE_TAG));
    snprintf(job.resume, sizeof(job.resume), "%s/x-5.json", folder);

    run(&job, ANOTHER_TAG);

    ck_assert_uint_eq(file_of("x-10.safetensors"), data);
    ck_assert(is_of("x-10.json", ANOTHER_TAG)); /* it is the newest that this job came to */
    const ino_t manifest = file_of("x-10.json");
    run(&job, ANOTHER_TAG);
    ck_assert_uint_eq(file_of("x-10.json"), manifest);
    damage("x-10.safetensors");
    run(&job, THIRD_TAG);
    ck_assert(file_of("x-10.safetensors") != data && is_of("x-10.json", THIRD_TAG));
}
END_TEST

/* Of a job that made no step, by no schedule: who trains by one that is longer still goes on. */
START_TEST(one_of_another_length_of_the_schedule_stays_its_jobs)
{
    static const char schedule[] = "optimizer.schedule={kind: cosine, by: step}";
    struct job job;
    make_job(&job, "first", schedule, 5, 9);
    const struct train_result whole = run(&job, CHECKPOINT_CASE_TAG);
    const ino_t manifest = file_of("x-10.json");
    snprintf(job.resume, sizeof(job.resume), "%s/x-10.json", folder);
    job.steps = 10;

    ck_assert_uint_eq(run(&job, ANOTHER_TAG).steps, 10);

    ck_assert_uint_eq(file_of("x-10.json"), manifest);
    ck_assert(is_of("x-10.json", CHECKPOINT_CASE_TAG));
    job.steps = 0;
    ck_assert_str_eq(run(&job, THIRD_TAG).weights_sha256, whole.weights_sha256);
}
END_TEST

/* A training of that tag, to a step, in a folder of its own. */
static struct checkpoint_manifest make_aside(const char *name, const char *set, int steps)
{
    struct job job;
    char here[128];
    snprintf(here, sizeof(here), "%s", folder);
    snprintf(folder, sizeof(folder), "%s/%s", dir, name);
    make_job(&job, "first", set, 5, 9);
    job.steps = steps;
    run(&job, CHECKPOINT_CASE_TAG);
    const struct checkpoint_manifest m = read_manifest("x-10.json");
    snprintf(folder, sizeof(folder), "%s", here);
    return m;
}

static void move_here(const char *from, const char *name)
{
    char old[256];
    char new[256];
    snprintf(old, sizeof(old), "%s/%s/%s", dir, from, name);
    snprintf(new, sizeof(new), "%s/%s", folder, name);
    ck_assert_int_eq(rename(old, new), 0);
}

/* Whatever it says of itself: its data were others, or somebody's machine was not sound. */
START_TEST(what_has_other_bits_is_never_taken_for_the_same_step)
{
    struct job job;
    make_job(&job, "first", "steps=5", 5, 9);
    run(&job, CHECKPOINT_CASE_TAG);
    const struct checkpoint_manifest right = make_aside("right", NULL, 10);
    const struct checkpoint_manifest wrong = make_aside("wrong", "seed=2", 10);
    ck_assert_str_ne(right.data_sum, wrong.data_sum);
    move_here("wrong", "x-10.json");
    move_here("wrong", "x-10.safetensors");
    snprintf(job.resume, sizeof(job.resume), "%s/x-5.json", folder);
    job.steps = 10;

    run(&job, ANOTHER_TAG);

    ck_assert(is_of("x-10.json", ANOTHER_TAG));
    ck_assert_str_eq(read_manifest("x-10.json").data_sum, right.data_sum);
}
END_TEST

/* ---- resumed in the folder of its predecessor, which came further ---- */

/* Steps 12 to 20 of the first run are there, and another one is resumed from the 12th. */
static void make_resumed(struct job *ret, int every, int keep, int steps)
{
    struct job job;
    make_job(&job, "first", NULL, 2, 5);
    run(&job, CHECKPOINT_CASE_TAG);
    ck_assert(is_there("x-12.json") && !is_there("x-10.json") && is_there("x-20.json"));
    make_job(ret, "first", NULL, every, keep);
    snprintf(ret->resume, sizeof(ret->resume), "%s/x-12.json", folder);
    ret->steps = steps;
    run(ret, ANOTHER_TAG);
}

/* keep_max, and whether what it was resumed from stays. */
static const struct {
    int keep, stays;
} keeps[] = {{1, 0}, {5, 1}};

START_TEST(all_ranks_die_and_it_goes_on_from_the_last_step_that_it_came_to)
{
    struct job job;
    make_resumed(&job, 2, keeps[_i].keep, 16);
    ck_assert_int_eq(is_there("x-12.json"), keeps[_i].stays);
    ck_assert(is_of("x-16.json", ANOTHER_TAG) && is_of("x-18.json", CHECKPOINT_CASE_TAG));
    job.steps = 20;

    struct train *train = begin(&job, ANOTHER_TAG);

    ck_assert_uint_eq(train->progress.step, 16); /* and no further: 17 is not trained yet */
    checkpoint_case_go(train);
    train_destroy(train);
    ck_assert(is_of("x-20.json", ANOTHER_TAG));
    ck_assert_int_eq(is_there("x-18.json"), keeps[_i].stays);
}
END_TEST

/* Another process is rank 0 then. */
static void take_rank_0_over(struct train *train)
{
    checkpoint_close(train->checkpoint);
    train->checkpoint = NULL;
    ck_ms_ok(checkpoint_open(train, err));
    ck_ms_ok(checkpoint_settle(train, err));
}

/* The others have the state: they know whose training it is, though no file tells any more. */
START_TEST(rank_0_dies_and_its_successor_writes_on)
{
    struct job job;
    char path[256];
    make_resumed(&job, 2, keeps[_i].keep, 16);
    job.steps = 17;
    struct train *train = begin(&job, ANOTHER_TAG);
    checkpoint_case_go(train);
    static const char *const own[] = {"x-12.json", "x-14.json", "x-16.json"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(own); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, own[i]);
        (void)unlink(path);
    }
    ck_assert_uint_eq(train->progress.step, 17);
    train->known.state_from = MS_STATE_KEPT;

    take_rank_0_over(train);

    train_destroy(train);
    ck_assert(is_of("x-18.json", CHECKPOINT_CASE_TAG) && is_there("x-20.json"));
}
END_TEST

/* At step 15 with its own of step 12: that of step 14 is its predecessor's, and no refuge. */
START_TEST(what_it_would_go_on_from_never_goes_for_anothers)
{
    struct job job;
    make_resumed(&job, 4, 1, 15);
    ck_assert(is_of("x-12.json", ANOTHER_TAG) && is_of("x-14.json", CHECKPOINT_CASE_TAG));
    struct train *train = begin(&job, ANOTHER_TAG);
    ck_assert_uint_eq(train->progress.step, 12);
    checkpoint_case_go(train);

    take_rank_0_over(train);

    train_destroy(train);
    ck_assert(is_of("x-12.json", ANOTHER_TAG));
    job.steps = 20;
    run(&job, ANOTHER_TAG);
    ck_assert(is_of("x-20.json", ANOTHER_TAG) && !is_there("x-12.json") && !is_there("x-18.json"));
}
END_TEST

START_TEST(the_last_one_that_is_whole_goes_for_none_that_is_damaged)
{
    struct job job;
    make_job(&job, "first", "steps=10", 5, 2);
    run(&job, CHECKPOINT_CASE_TAG);
    damage("x-10.safetensors");
    job.checkpoint_keep_max = 1;

    struct train *train = begin(&job, CHECKPOINT_CASE_TAG); /* rank 0 clears up first */

    ck_assert_uint_eq(train->progress.step, 5);
    ck_assert(is_there("x-5.json"));
    checkpoint_case_go(train);
    train_destroy(train);
    ck_assert(is_there("x-10.json") && !is_there("x-5.json"));
}
END_TEST

/* ---- at once ---- */

START_TEST(what_is_no_file_in_the_place_of_the_lock_is_refused)
{
    struct job job;
    char path[256];
    make_job(&job, "first", NULL, 5, 5);
    snprintf(path, sizeof(path), "%s/.msched-lock-x", folder);
    ck_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
    ck_assert_int_eq(_i == 0 ? mkdir(path, 0755) : symlink("/dev/null", path), 0);

    is_refused(&job, CHECKPOINT_CASE_TAG, ".msched-lock-x is no file");

    ck_assert_int_eq(_i == 0 ? rmdir(path) : unlink(path), 0);
    run(&job, CHECKPOINT_CASE_TAG);
}
END_TEST

START_TEST(of_two_that_live_the_second_is_refused_until_the_first_ends)
{
    struct job job;
    char words[64];
    static const char *const tags[][2] = {{CHECKPOINT_CASE_TAG, ANOTHER_TAG}, {"", ""}};
    make_job(&job, "first", NULL, 5, 5);
    struct train *first = begin(&job, tags[_i][0]);
    ck_assert(!is_there("x-5.json"));

    snprintf(words, sizeof(words), "process %ld on ", (long)getpid());
    is_refused(&job, tags[_i][1], words);

    ck_assert_ptr_nonnull(strstr(refusal.text, "(job first) writes checkpoints x-* there now"));
    ck_assert(is_there(".msched-lock-x"));
    train_destroy(first);
    ck_assert(!is_there(".msched-lock-x"));
    run(&job, tags[_i][1]);
    ck_assert(is_there("x-20.json") && !is_there(".msched-lock-x"));
}
END_TEST

/* It hangs, and its generation is over. */
START_TEST(an_older_process_of_the_job_keeps_nobody_out)
{
    struct job job;
    make_job(&job, "first", NULL, 5, 5);
    struct train *older = begin(&job, CHECKPOINT_CASE_TAG);
    run(&job, CHECKPOINT_CASE_TAG);
    ck_assert(is_there("x-20.json"));
    train_destroy(older);
    ck_assert(!is_there(".msched-lock-x"));
}
END_TEST

/* Somebody tidies up, and the lock goes with the folder. */
static void remove_folder(void)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/.msched-lock-x", folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(who_writes_on_where_its_folder_was_removed_holds_the_lock_again)
{
    struct job job;
    make_job(&job, "first", NULL, 5, 5);
    struct train *train = begin(&job, CHECKPOINT_CASE_TAG);
    remove_folder();

    checkpoint_case_go(train);

    ck_assert(is_there("x-20.json") && is_there(".msched-lock-x"));
    is_refused(&job, ANOTHER_TAG, "(job first) writes checkpoints x-* there now");
    train_destroy(train);
    ck_assert(!is_there(".msched-lock-x"));
}
END_TEST

START_TEST(who_came_where_the_folder_was_removed_is_not_written_over)
{
    struct job job;
    struct job second;
    make_job(&job, "first", NULL, 5, 5);
    make_job(&second, "second", NULL, 5, 5);
    struct train *train = begin(&job, CHECKPOINT_CASE_TAG);
    remove_folder();
    struct train *other = begin(&second, ANOTHER_TAG);
    case_notes[0] = '\0';

    checkpoint_case_go(train);

    ck_assert(!is_there("x-5.json") && !is_there("x-20.json"));
    ck_assert_ptr_nonnull(strstr(case_notes, "(job second) writes checkpoints x-* there now"));
    train_destroy(train);
    ck_assert(is_there(".msched-lock-x"));
    checkpoint_case_go(other);
    ck_assert(is_there("x-20.json"));
    train_destroy(other);
}
END_TEST

static void make_lock(const char *text)
{
    char path[256];
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    snprintf(path, sizeof(path), "%s/.msched-lock-x", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_lock_whose_holder_was_killed_is_none)
{
    struct job job;
    make_job(&job, "first", NULL, 5, 5);
    make_lock(ANOTHER_TAG " 1 somewhere second\n");
    run(&job, CHECKPOINT_CASE_TAG);
    ck_assert(is_there("x-20.json") && !is_there(".msched-lock-x"));
}
END_TEST

/* ---- what comes later ---- */

START_TEST(one_that_came_meanwhile_is_left_as_it_is)
{
    struct job job;
    struct job second;
    char here[128];
    char from[256];
    char to[256];
    make_job(&job, "first", NULL, 5, 5);
    struct train *train = begin(&job, CHECKPOINT_CASE_TAG);
    snprintf(here, sizeof(here), "%s", folder);
    snprintf(folder, sizeof(folder), "%s/elsewhere", dir);
    make_job(&second, "second", NULL, 10, 5);
    case_notes[0] = '\0';
    struct train *other = begin(&second, ANOTHER_TAG);
    checkpoint_case_go(other);
    train_destroy(other);
    static const char *const names[] = {"x-10.json", "x-10.safetensors"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        snprintf(from, sizeof(from), "%s/%s", folder, names[i]);
        snprintf(to, sizeof(to), "%s/%s", here, names[i]);
        ck_assert_int_eq(rename(from, to), 0);
    }
    snprintf(folder, sizeof(folder), "%s", here);
    const ino_t before = file_of("x-10.safetensors");

    checkpoint_case_go(train);

    train_destroy(train);
    ck_assert_uint_eq(file_of("x-10.safetensors"), before);
    ck_assert(is_there("x-5.json") && is_there("x-15.json") && is_there("x-20.json"));
    ck_assert_ptr_nonnull(strstr(case_notes, "no checkpoint of step 10: checkpoint.directory"));
    ck_assert_ptr_nonnull(strstr(case_notes, "a checkpoint of job second"));
}
END_TEST

/* It took rank 0 over where others train on: that it cannot save is no end of that. */
START_TEST(who_takes_over_where_anothers_lie_trains_on)
{
    struct job job;
    struct job second;
    make_job(&job, "first", NULL, 5, 1);
    make_job(&second, "second", NULL, 5, 5);
    struct train *train = begin(&job, CHECKPOINT_CASE_TAG);
    checkpoint_close(train->checkpoint);
    train->checkpoint = NULL;
    run(&second, ANOTHER_TAG);
    const ino_t before = file_of("x-10.safetensors");
    case_notes[0] = '\0';
    ck_ms_ok(checkpoint_open(train, err));
    ck_ms_fails(checkpoint_settle(train, err), MS_E_REFUSED, "a checkpoint of job second");
    train->known.state_from = MS_STATE_PULLED;

    ck_ms_ok(checkpoint_settle(train, err));

    ck_assert_uint_eq(checkpoint_case_go(train).steps, 20);
    train_destroy(train);
    ck_assert_ptr_nonnull(strstr(case_notes, "no checkpoint of step 5: checkpoint.directory"));
    ck_assert_ptr_null(strstr(case_notes, "step 10")); /* said once */
    ck_assert_uint_eq(file_of("x-10.safetensors"), before);
    ck_assert(is_there("x-5.json") && is_there("x-20.json"));
}
END_TEST

/* ---- the run directory's own ---- */

static const struct {
    const char *below;
    int is_taken;
} places[] = {
    {"tls", 1},          {"/./tls//keys", 1}, {"scheduler.db-wal/x", 1},
    {"worker_1.log", 1}, {"run.lock", 1},     {"", 0},
    {"ckpt", 0},         {"ckpt/tls", 0},     {"tls2", 0},
};

/* By its own path, or through a link. */
START_TEST(a_folder_that_the_run_directory_has_for_itself_is_refused)
{
    struct job job;
    char run_dir[128];
    char link[128];
    snprintf(run_dir, sizeof(run_dir), "%s/run", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    ck_assert_int_eq(mkdir(run_dir, 0755), 0);
    ck_assert_int_eq(symlink(run_dir, link), 0);
    make_job(&job, "first", NULL, 5, 5);
    for (int i = 0; i < 2; i++) {
        snprintf(job.checkpoint_directory, sizeof(job.checkpoint_directory), "%s/%s",
                 i == 0 ? run_dir : link, places[_i].below);
        struct train_config cfg = checkpoint_case_config(&job, i == 0 ? link : run_dir);
        struct train_info info;
        struct train *train = train_create(&cfg);
        if (places[_i].is_taken) {
            ck_ms_fails(train_prepare(train, &info, err), MS_E_INVALID,
                        "in the run directory, which has it for itself");
        } else {
            ck_ms_ok(train_prepare(train, &info, err));
        }
        train_destroy(train);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_claim");
    TCase *tc = tcase_create("checkpoint_claim");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, another_job_is_refused_before_it_trains, 0, (int)MS_ARRAY_SIZE(others));
    tcase_add_loop_test(tc, the_same_job_writes_on, 0, 2);
    tcase_add_test(tc, a_resumed_job_counts_those_from_before);
    tcase_add_test(tc, what_is_whole_of_the_same_training_is_not_written_again);
    tcase_add_test(tc, one_of_another_length_of_the_schedule_stays_its_jobs);
    tcase_add_test(tc, what_has_other_bits_is_never_taken_for_the_same_step);
    tcase_add_loop_test(tc, all_ranks_die_and_it_goes_on_from_the_last_step_that_it_came_to, 0,
                        (int)MS_ARRAY_SIZE(keeps));
    tcase_add_loop_test(tc, rank_0_dies_and_its_successor_writes_on, 0, (int)MS_ARRAY_SIZE(keeps));
    tcase_add_test(tc, what_it_would_go_on_from_never_goes_for_anothers);
    tcase_add_test(tc, the_last_one_that_is_whole_goes_for_none_that_is_damaged);
    tcase_add_loop_test(tc, what_is_no_file_in_the_place_of_the_lock_is_refused, 0, 2);
    tcase_add_loop_test(tc, of_two_that_live_the_second_is_refused_until_the_first_ends, 0, 2);
    tcase_add_test(tc, an_older_process_of_the_job_keeps_nobody_out);
    tcase_add_test(tc, who_writes_on_where_its_folder_was_removed_holds_the_lock_again);
    tcase_add_test(tc, who_came_where_the_folder_was_removed_is_not_written_over);
    tcase_add_test(tc, a_lock_whose_holder_was_killed_is_none);
    tcase_add_test(tc, one_that_came_meanwhile_is_left_as_it_is);
    tcase_add_test(tc, who_takes_over_where_anothers_lie_trains_on);
    tcase_add_loop_test(tc, a_folder_that_the_run_directory_has_for_itself_is_refused, 0,
                        (int)MS_ARRAY_SIZE(places));
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
