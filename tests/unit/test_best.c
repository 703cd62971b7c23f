/* test_best.c - the weights of the best evaluations: which are kept, in which files, and what a
 * process finds of one before it, or puts there when it wakes up behind one after it
 *
 * The linker hands the test what gives names to files, and takes them (--wrap). */
#include "libworker/train/best.h"
#include "libworker/train/best_files.h"
#include "libworker/train/train_impl.h"
#include "proto/rng.h"
#include "tests/unit/train_case.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAG "0123456789abcdef0123456789abcdef"

static struct job job;
static const char *dir;

static void setup(void)
{
    dir = test_dir_make();
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static char *path(const char *name)
{
    static char paths[4][400];
    static int next;
    char *buf = paths[next++ % 4];
    snprintf(buf, sizeof(paths[0]), "%s/%s", dir, name);
    return buf;
}

/* ---- which ---- */

/* All evaluations are gone through each time: of equal values the earlier step is the better. */
START_TEST(the_best_are_kept_as_by_a_plain_model)
{
    enum { N = 40 };
    static struct best_list list;
    for (uint64_t turn = 0; turn < 200; turn++) {
        const int more = (int)(turn % 2);
        const size_t keep = 1 + turn % 7;
        double values[N];
        memset(&list, 0, sizeof(list));
        for (int i = 0; i < N; i++) {
            values[i] = 0.25 * (double)ms_rng_below(turn, (uint64_t)i, 16);
            best_take(&list, keep, more, (uint64_t)i + 1, values[i]);
            list.n = list.n < keep ? list.n : keep;
            for (size_t k = 0; k < list.n; k++) {
                const struct best_one *one = &list.ones[k];
                size_t better = 0;
                for (int j = 0; j <= i; j++) {
                    const int is_one = (uint64_t)j + 1 == one->step;
                    better += values[j] != one->value ? (values[j] > one->value) == more
                                                      : !is_one && (uint64_t)j + 1 < one->step;
                }
                ck_assert_uint_eq(better, k);
                ck_assert_double_eq(values[one->step - 1], one->value);
            }
            ck_assert_uint_eq(list.n, (size_t)(i + 1) < keep ? (size_t)(i + 1) : keep);
        }
    }
}
END_TEST

START_TEST(a_step_is_there_once)
{
    static struct best_list list;
    ck_assert_uint_eq(best_take(&list, 3, 1, 10, 0.5), 0);
    ck_assert_uint_eq(best_take(&list, 3, 1, 20, 0.75), 0);
    ck_assert_uint_eq(best_take(&list, 3, 1, 10, 0.875), 0);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(list.ones[0].step, 10);
}
END_TEST

START_TEST(names_are_read_as_they_are_written)
{
    static const char *const none[] = {
        "best.safetensors",     "best-.safetensors",    "best-0.safetensors",
        "best-012.safetensors", "best-12.safetensors~", "best-12.json",
        "best-+12.safetensors", "best--1.safetensors",  "best-99999999999999999999.safetensors"};
    char name[BEST_NAME_MAX];
    ck_assert_str_eq(best_file_name(12, name), "best-12.safetensors");
    ck_assert_uint_eq(best_file_step("best-12.safetensors"), 12);
    for (size_t i = 0; i < MS_ARRAY_SIZE(none); i++) {
        ck_assert_msg(best_file_step(none[i]) == 0, "%s", none[i]);
    }
}
END_TEST

/* ---- calls ---- */

static int calls_until_sleep; /* 0: there is none */
static int steals;            /* names for the moment that go before they are renamed */
static int rooms = -1;        /* so many files of weights get their names still; -1: all */
static int room_comes_after;  /* so many files had none */
/* one that is taken away is another process's by then, and no file can be opened */
static enum { NONE, NEXT, REPLACED } replaces;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __real_unlink(const char *name);
int __wrap_unlink(const char *name);

static void come_to_call(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL ? slash + 1 : name;
    if ((strncmp(last, "best", 4) == 0 || strncmp(last, ".msched-new-", 12) == 0) &&
        calls_until_sleep > 0 && --calls_until_sleep == 0) {
        raise(SIGSTOP);
    }
}

static int is_of_weights(const char *name)
{
    const char *last = strrchr(name, '/') + 1;
    return strncmp(last, "best", 4) == 0 || strcmp(last, TRAIN_WEIGHTS_FILE) == 0;
}

static void limit_files(rlim_t n)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void replace(const char *from)
{
    char best[400];
    snprintf(best, sizeof(best), "%.*s/%s", (int)(strrchr(from, '/') - from), from,
             TRAIN_BEST_FILE);
    ck_assert_int_eq(__real_unlink(from), 0);
    ck_assert_int_eq(__real_link(best, from), 0);
    limit_files(0);
}

int __wrap_rename(const char *from, const char *to)
{
    come_to_call(to);
    if (rooms >= 0 && is_of_weights(to) && rooms-- == 0) {
        rooms = --room_comes_after == 0 ? -1 : 0;
        errno = ENOSPC;
        return -1;
    }
    if (replaces == NEXT && is_of_weights(from)) {
        replaces = REPLACED;
        replace(from);
    }
    if (steals > 0 && strstr(to, "/best") != NULL) {
        steals--;
        __real_unlink(from);
    }
    return __real_rename(from, to);
}

int __wrap_link(const char *from, const char *to)
{
    come_to_call(to);
    return __real_link(from, to);
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    come_to_call(to);
    return __real_linkat(from_fd, from, to_fd, to, flags);
}

int __wrap_unlink(const char *name)
{
    come_to_call(name);
    if (replaces == REPLACED) {
        replaces = NONE;
        limit_files(1024);
    }
    return __real_unlink(name);
}

/* ---- files ---- */

static char notes[4096];

static void on_note(void *arg, const char *text)
{
    (void)arg;
    snprintf(notes + strlen(notes), sizeof(notes) - strlen(notes), "%s\n", text);
}

/* Epochs of ten steps, an evaluation each. */
static void train_for(int epochs, const char *tag, const char *best)
{
    char length[32];
    const char *const sets[] = {length, "evaluate={dataset: {kind: nonlinear, samples: 64}}", best};
    struct train_info info;
    struct train_result result;
    snprintf(length, sizeof(length), "epochs=%d", epochs);
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    struct train_config cfg = train_case_config(&job, dir);
    cfg.job_tag = tag;
    cfg.on_note = on_note;
    notes[0] = '\0';
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    ck_assert_uint_eq(result.steps, 10 * (uint64_t)epochs);
    train_destroy(train);
}

static void train_as(const char *tag, const char *best)
{
    train_for(8, tag, best);
}

/* Step of the evaluation whose loss is number n, from 1, of the least. */
static uint64_t step_of_best(int n)
{
    char line[4096];
    double losses[16];
    int count = 0;
    FILE *file = fopen(path("metrics.jsonl"), "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL && count < 8) {
        const char *at = strstr(line, "\"eval_loss\":");
        if (at != NULL) {
            losses[count++] = strtod(at + strlen("\"eval_loss\":"), NULL);
        }
    }
    fclose(file);
    ck_assert_int_eq(count, 8);
    for (int i = 0; i < count; i++) {
        int before = 0;
        for (int j = 0; j < count; j++) {
            before += losses[j] < losses[i] || (losses[j] == losses[i] && j < i);
        }
        if (before == n - 1) {
            return 10 * ((uint64_t)i + 1);
        }
    }
    ck_abort_msg("no evaluation is number %d", n);
    return 0;
}

static int is_there(uint64_t step)
{
    char name[BEST_NAME_MAX];
    return access(path(best_file_name(step, name)), F_OK) == 0;
}

static int count_files(void)
{
    DIR *folder = opendir(dir);
    int n = 0;
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        n += strncmp(entry->d_name, "best", 4) == 0;
        ck_assert_msg(strncmp(entry->d_name, ".msched-new-", 12) != 0, "%s", entry->d_name);
    }
    closedir(folder);
    return n;
}

/* best.safetensors, and those of the n best, of which the first is the same file. */
static void ck_keeps(int n)
{
    char name[BEST_NAME_MAX];
    struct best_file best;
    struct stat a;
    struct stat b;
    ck_assert_int_eq(count_files(), 1 + n);
    for (int i = 1; i <= n; i++) {
        ck_assert_msg(is_there(step_of_best(i)), "number %d, of step %llu", i,
                      (unsigned long long)step_of_best(i));
        ck_assert(best_file_read(path(best_file_name(step_of_best(i), name)), &best));
        ck_assert_uint_eq(best.best.step, step_of_best(i));
        ck_assert_str_eq(best.training, TAG);
    }
    ck_assert(best_file_read(path(TRAIN_BEST_FILE), &best));
    ck_assert_uint_eq(best.best.step, step_of_best(1));
    ck_assert_int_eq(stat(path(TRAIN_BEST_FILE), &a), 0);
    if (n > 0) {
        ck_assert_int_eq(stat(path(best_file_name(step_of_best(1), name)), &b), 0);
        ck_assert_uint_eq(a.st_ino, b.st_ino);
    }
}

START_TEST(one_is_kept_in_one_file)
{
    train_as(TAG, "best={}");
    ck_keeps(0);
    ck_assert_str_eq(notes, "");
}
END_TEST

/* ---- the end ---- */

static int log_fd = -1;

/* Of a job that recovers. more: a key more. */
static struct train *train_to_end(const char *best, const char *more, struct train_result *ret)
{
    const char *const sets[] = {
        "evaluate={dataset: {kind: nonlinear, samples: 64}, metrics: [mae]}", "recovery=true", best,
        more};
    struct train_info info;
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    struct train_config cfg = train_case_config(&job, dir);
    cfg.job_tag = TAG;
    cfg.on_note = on_note;
    cfg.log_fd = log_fd;
    notes[0] = '\0';
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, ret, err));
    return train;
}

static void make_rank_1(struct train *train, const char *folder)
{
    memset(&train->kept, 0, sizeof(train->kept));
    train->has_kept = 0;
    train->cfg.rank = 1;
    train->cfg.run_dir = folder;
}

static const char *make_own(void)
{
    static char own[400];
    snprintf(own, sizeof(own), "%s", path("own"));
    ck_assert_int_eq(mkdir(own, 0700), 0);
    return own;
}

/* In a folder of rank 1's; 0: none. */
static uint64_t best_step_in(const char *folder)
{
    char own[500];
    struct best_file best;
    snprintf(own, sizeof(own), "%s/%s", folder, TRAIN_BEST_FILE);
    return best_file_read(own, &best) ? best.best.step : 0;
}

/* Rank 0 died between the last evaluation and its file; or while it was made again, and was given
 * up: then nobody has sums of all ranks any more. */
START_TEST(who_ends_in_the_place_of_rank_0_keeps_them)
{
    const int is_given_up = _i == 1;
    struct train_result result;
    struct train *train = train_to_end("best={metric: mae}", "epochs=2", &result);
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    make_rank_1(train, dir);
    train->has_scores = !is_given_up;

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_uint_eq(best_step_in(dir), is_given_up ? 0 : 20);
    train_destroy(train);
}
END_TEST

/* Rank 0's disk is full, and it has kept the weights of step 10. */
START_TEST(who_ends_in_the_place_of_rank_0_keeps_no_worse_ones)
{
    struct train_result result;
    struct train *train = train_to_end("best={mode: max}", "epochs=2", &result);
    const char *own = make_own();
    ck_assert_uint_eq(best_step_in(dir), 10);
    make_rank_1(train, own);

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_uint_eq(best_step_in(own), 0);
    ck_assert_str_eq(notes, "");
    ck_assert_ptr_null(strstr(result.kept, "best"));
    train_destroy(train);
}
END_TEST

/* Of several the last may be the second best: where rank 0 has kept the others it is kept. */
START_TEST(who_ends_in_the_folder_of_rank_0_keeps_what_is_among_the_best)
{
    struct train_result result;
    const int is_elsewhere = _i == 1;
    struct train *train = train_to_end("best={mode: max, keep: 2}", "epochs=2", &result);
    char name[BEST_NAME_MAX];
    ck_assert_int_eq(unlink(path(best_file_name(20, name))), 0);
    make_rank_1(train, is_elsewhere ? make_own() : dir);

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_int_eq(is_there(20), !is_elsewhere);
    ck_assert_uint_eq(best_step_in(train->cfg.run_dir), is_elsewhere ? 0 : 10);
    train_destroy(train);
}
END_TEST

/* It came behind the first evaluation; or the training began in a job before this one. What
 * early_stop counts came with the state, where that judges alike. */
START_TEST(who_cannot_know_that_they_are_the_best_keeps_none)
{
    static const struct {
        const char *early_stop;
        int came_later, was_resumed, keeps;
    } cases[] = {{"early_stop=null", 1, 0, 0},
                 {"early_stop=null", 0, 1, 0},
                 {"early_stop={patience: 5}", 1, 0, 1},
                 {"early_stop={patience: 5}", 1, 1, 0},
                 {"early_stop={patience: 5, min_delta: 0.1}", 1, 0, 0},
                 {"early_stop={patience: 5, metric: mae}", 1, 0, 0}};
    static const char said[] = "are not kept as the best so far: rank 1 has not seen all "
                               "evaluations of the training";
    struct train_result result;
    struct train *train = train_to_end("best={}", cases[_i].early_stop, &result);
    const char *own = make_own();
    make_rank_1(train, own);
    train->record.since = cases[_i].came_later ? 15 : 0;
    snprintf(train->first_tag, sizeof(train->first_tag), "%s",
             cases[_i].was_resumed ? "ffffffffffffffffffffffffffffffff" : "");

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_uint_eq(best_step_in(own), cases[_i].keeps ? 20 : 0);
    ck_assert_int_eq(strstr(notes, said) == NULL, cases[_i].keeps);
    ck_assert_int_eq(strstr(result.kept, "rank 1 has not seen all evaluations") == NULL,
                     cases[_i].keeps);
    train_destroy(train);
}
END_TEST

/* Rank 0 knew it, and has kept them in the folder of both. */
START_TEST(who_cannot_know_it_says_nothing_of_what_is_kept)
{
    struct train_result result;
    struct train *train = train_to_end("best={}", "epochs=2", &result);
    make_rank_1(train, dir);
    train->record.since = 15;

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_uint_eq(best_step_in(dir), 20);
    ck_assert_str_eq(notes, "");
    ck_assert_ptr_null(strstr(result.kept, "are not kept"));
    train_destroy(train);
}
END_TEST

/* Rank 0 died behind the evaluation, and the job is cancelled. */
START_TEST(who_saves_at_a_cancel_in_the_place_of_rank_0_keeps_them)
{
    struct train_result result;
    struct train *train = train_to_end("best={}", "epochs=2", &result);
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    make_rank_1(train, dir);
    train->known.steps_total = 40;

    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert(result.stopped);
    ck_assert_uint_eq(best_step_in(dir), 20);
    train_destroy(train);
}
END_TEST

/* The first evaluation is that of the last step; or it ends the training, and the first one has its
 * file. Where room comes they are kept. */
START_TEST(weights_of_the_end_get_the_room_before_the_best_ones)
{
    static const char early[] = "early_stop={mode: max, patience: 1}";
    const int ends_early = _i == 1;
    struct train_result result;
    rooms = 1 + ends_early;
    struct train *train = train_to_end("best={}", ends_early ? early : "epochs=1", &result);

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_int_eq(access(path(TRAIN_WEIGHTS_FILE), F_OK), 0);
    ck_assert_uint_eq(best_step_in(dir), ends_early ? 10 : 0);
    ck_assert_ptr_nonnull(strstr(notes, "the best so far, are not kept: "));
    ck_assert_ptr_nonnull(strstr(result.kept, "; as the best ones they are not kept: "));

    rooms = -1;
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    ck_assert_uint_eq(best_step_in(dir), ends_early ? 20 : 10);
    ck_assert_ptr_null(strstr(result.kept, "are not kept"));
    train_destroy(train);
}
END_TEST

/* Who saves instead has room for one; or for both, where rank 0 had it for the weights, and died.
 */
START_TEST(who_saves_in_the_place_of_rank_0_saves_what_has_room)
{
    const int n = 1 + _i;
    struct train_result result;
    struct train *train = train_to_end("best={}", "epochs=1", &result);
    const char *own = make_own();
    make_rank_1(train, own);

    rooms = n;
    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_ptr_nonnull(strstr(result.kept, "the weights of step 10, the last, are saved: "));
    ck_assert_uint_eq(best_step_in(own), n == 2 ? 10 : 0);
    ck_assert_int_eq(strstr(result.kept, "; as the best ones they are not kept: ") != NULL, n == 1);
    train_destroy(train);
}
END_TEST

/* At the last step nothing had room, and a later try finds it. */
START_TEST(best_weights_that_had_no_room_are_kept_when_it_comes)
{
    struct train_result result;
    rooms = 0;
    struct train *train = train_to_end("best={}", "epochs=2", &result);
    ck_assert_int_lt(result.unsaved, 0);
    ck_ms_ok(train_stop_here(train, 1, &result, err));
    ck_assert_int_lt(result.unsaved, 0);

    rooms = -1;
    ck_ms_ok(train_stop_here(train, 1, &result, err));

    ck_assert_int_eq(result.unsaved, 0);
    ck_assert_uint_eq(best_step_in(dir), 20);
    train_destroy(train);
}
END_TEST

static const char *said(FILE *log)
{
    static char text[16384];
    rewind(log);
    text[fread(text, 1, sizeof(text) - 1, log)] = '\0';
    return text;
}

/* The greatest loss, which is wanted here, is the first one; its weights have no room. Those of the
 * next, at the end, have. */
START_TEST(what_is_kept_behind_better_ones_that_had_no_room_is_not_called_the_best)
{
    char name[BEST_NAME_MAX];
    struct train_result result;
    const int keep = 1 + _i;
    FILE *log = tmpfile();
    ck_assert_ptr_nonnull(log);
    rooms = 0;
    room_comes_after = 1;
    log_fd = fileno(log);
    struct train *train = train_to_end(keep == 1 ? "best={mode: max}" : "best={mode: max, keep: 2}",
                                       "epochs=2", &result);
    const struct best_one lost = train->unkept;

    ck_assert_uint_eq(lost.step, 10);
    ck_assert_uint_eq(best_step_in(dir), 20);
    ck_assert_int_eq(access(path(best_file_name(20, name)), F_OK) == 0, keep == 2);
    ck_assert_ptr_nonnull(strstr(notes, "the weights of step 10, the best so far, are not kept: "));
    ck_assert_ptr_nonnull(strstr(said(log), " after step 20, the best of what is kept (it was "));
    ck_assert_ptr_null(strstr(said(log), " after step 20, the best so far"));
    ck_assert_ptr_nonnull(strstr(result.kept, "the best weights, of step 10 (loss "));
    ck_assert_ptr_nonnull(
        strstr(result.kept, "), are not kept: best.safetensors has those of step 20 ("));

    train->progress.step = 10; /* as it is made again */
    train->progress.eval_loss = lost.value;
    ck_ms_ok(train_keep_best(train, err));
    ck_assert_uint_eq(best_step_in(dir), 10);
    ck_assert_uint_eq(train->unkept.step, 0);
    train_destroy(train);
    fclose(log);
}
END_TEST

/* As where a peer was lost behind an evaluation on the way. */
START_TEST(evaluation_whose_weights_had_no_room_is_tried_anew)
{
    struct train_result result;
    struct train *train = train_to_end("best={}", "epochs=2", &result);
    train->known.steps_total = 40;
    train->kept = (struct best_list){.is_found = 1};
    rooms = 0;
    ck_assert_int_eq(train_keep_best(train, NULL), MS_E_IO);
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);

    rooms = -1;
    ck_ms_ok(train_keep_best(train, err));

    ck_assert_uint_eq(best_step_in(dir), 20);
    train_destroy(train);
}
END_TEST

/* ... and not by the name that it has for the moment. */
START_TEST(what_has_no_room_is_said_by_the_name_that_it_would_have)
{
    struct train_result result;
    struct ms_err why = {0, ""};
    struct train *train = train_to_end("best={}", "epochs=2", &result);
    const struct rlimit small = {100, RLIM_INFINITY};
    const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    train->kept = (struct best_list){.is_found = 1};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);

    ck_assert_int_lt(train_keep_best(train, &why), 0);

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &any), 0);
    ck_assert_str_eq(why.text, "best.safetensors cannot be written: File too large");
    ck_assert_ptr_nonnull(strstr(notes, "the best so far, are not kept: best.safetensors cannot"));
    train_destroy(train);
}
END_TEST

START_TEST(several_are_kept_with_their_steps)
{
    train_as(TAG, "best={keep: 3}");
    ck_keeps(3);
    ck_assert_str_eq(notes, "");
}
END_TEST

/* What was written of one that a kill kept from its second name, and what the name leads to. */
START_TEST(who_comes_next_finds_them)
{
    char name[BEST_NAME_MAX];
    train_as(TAG, "best={keep: 3}");
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    train_as(TAG, "best={keep: 3}");
    ck_keeps(3);
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0); /* it leads to the second best */
    ck_assert_int_eq(link(path(best_file_name(step_of_best(2), name)), path(TRAIN_BEST_FILE)), 0);
    train_as(TAG, "best={keep: 3}");
    ck_keeps(3);
}
END_TEST

/* ... and is a job that keeps one. */
START_TEST(who_comes_next_and_keeps_one_finds_the_best)
{
    char name[BEST_NAME_MAX];
    struct best_file best;
    train_as(TAG, "best={keep: 3}");
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    if (_i == 1) { /* it leads to the second best */
        ck_assert_int_eq(link(path(best_file_name(step_of_best(2), name)), path(TRAIN_BEST_FILE)),
                         0);
    }

    train_as(TAG, "best={}");

    ck_assert(best_file_read(path(TRAIN_BEST_FILE), &best));
    ck_assert_uint_eq(best.best.step, step_of_best(1));
    ck_assert_int_eq(count_files(), 1 + 1);
    ck_assert_str_eq(notes, "");
}
END_TEST

START_TEST(more_or_fewer_are_kept_from_then_on)
{
    train_as(TAG, "best={}");
    const uint64_t best = step_of_best(1);
    train_as(TAG, "best={keep: 4}");
    ck_assert(is_there(best)); /* it got a name with its step */
    ck_keeps(4);
    ck_assert_int_eq(unlink(path("metrics.jsonl")), 0);
    train_as(TAG, "best={keep: 2}");
    ck_keeps(2); /* although nothing better came */
    train_as(TAG, "best={mode: max, keep: 2}");
    ck_assert_int_eq(count_files(), 1 + 2);
}
END_TEST

START_TEST(those_of_another_training_stay_and_count_for_nothing)
{
    static const char other[] = "ffffffffffffffffffffffffffffffff";
    train_as(other, "best={keep: 2}");
    const uint64_t theirs[] = {step_of_best(1), step_of_best(2)};
    ck_assert_int_eq(unlink(path("metrics.jsonl")), 0);
    train_as(TAG, "best={mode: max, keep: 2}");
    ck_assert(is_there(theirs[0]) && is_there(theirs[1]));
    ck_assert(is_there(step_of_best(7)) && is_there(step_of_best(8)));
    ck_assert_int_eq(count_files(), 1 + 2 + 2);
    struct saved_best *files = NULL;
    size_t n = 0;
    ck_assert_int_eq(best_files_look(dir, TAG, "loss", &files, &n), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_gt(files[0].step, files[1].step);
    free(files);
}
END_TEST

/* A folder has the name of a file that would be written: that one is not kept, and it is said. */
START_TEST(what_cannot_be_written_is_said)
{
    char name[BEST_NAME_MAX];
    train_as(TAG, "best={keep: 3}");
    const uint64_t best = step_of_best(1);
    ck_assert_int_eq(unlink(path(best_file_name(best, name))), 0);
    ck_assert_int_eq(unlink(path(TRAIN_BEST_FILE)), 0);
    ck_assert_int_eq(mkdir(path(best_file_name(best, name)), 0700), 0);
    train_as(TAG, "best={keep: 3}");
    char *said = strstr(notes, "the best so far, are not kept: ");
    ck_assert_msg(said != NULL, "%s", notes);
    struct best_file file;
    ck_assert(best_file_read(path(TRAIN_BEST_FILE), &file));
    ck_assert_uint_eq(file.best.step, step_of_best(2));
    ck_assert_int_eq(rmdir(path(best_file_name(best, name))), 0);
}
END_TEST

/* ---- processes of one time ---- */

/* In one of its own, for threads of a training do not go over into a copy. call: that it falls
 * asleep before; 0: none. */
static pid_t start_training(int epochs, const char *best, int call)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        calls_until_sleep = call;
        train_for(epochs, TAG, best);
        _exit(notes[0] != '\0');
    }
    return pid;
}

static int wait_until_it_sleeps_or_ends(pid_t pid)
{
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSTOPPED(status);
}

/* One sleeps before each of its calls in turn; another one trains all the way; it wakes up. */
static void sleep_before_each_call(const char *best, int keeps)
{
    int has_slept = 1;
    int call = 0;
    while (has_slept) {
        test_dir_remove(dir);
        dir = test_dir_make();
        pid_t sleeper = start_training(4, best, ++call);
        has_slept = wait_until_it_sleeps_or_ends(sleeper);
        if (has_slept) {
            ck_assert(!wait_until_it_sleeps_or_ends(start_training(8, best, 0)));
            ck_assert_int_eq(kill(sleeper, SIGCONT), 0);
            ck_assert(!wait_until_it_sleeps_or_ends(sleeper));
            fprintf(stderr, "%s, call %d\n", best, call);
            ck_keeps(keeps);
        }
    }
    ck_assert_int_gt(call, 4);
}

START_TEST(who_slept_puts_nothing_over_better_ones)
{
    sleep_before_each_call("best={}", 0);
    sleep_before_each_call("best={keep: 2}", 2);
    sleep_before_each_call("best={keep: 3}", 3);
}
END_TEST

/* One is killed before each of its calls in turn; who comes next finds nothing better. */
START_TEST(what_a_killed_one_left_too_many_goes)
{
    int is_killed = 1;
    int call = 0;
    while (is_killed) {
        test_dir_remove(dir);
        dir = test_dir_make();
        pid_t pid = start_training(8, "best={keep: 2}", ++call);
        is_killed = wait_until_it_sleeps_or_ends(pid);
        if (is_killed) {
            ck_assert_int_eq(kill(pid, SIGKILL), 0);
            ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
            ck_assert(unlink(path("metrics.jsonl")) == 0 || errno == ENOENT);
            ck_assert(!wait_until_it_sleeps_or_ends(start_training(8, "best={keep: 2}", 0)));
            fprintf(stderr, "call %d\n", call);
            ck_keeps(2);
        }
    }
    ck_assert_int_gt(call, 8);
}
END_TEST

/* Of a step that has no place any more, and nobody can look at it just then. */
START_TEST(file_of_another_process_stays_where_it_cannot_be_read)
{
    replaces = NEXT;
    train_as(TAG, "best={keep: 2}");

    ck_assert_int_eq(replaces, NONE);
    ck_assert(is_there(step_of_best(8)));
    ck_assert_int_eq(count_files(), 1 + 2 + 1);
}
END_TEST

START_TEST(file_that_another_process_takes_away_is_written_again)
{
    steals = 5;
    train_as(TAG, "best={keep: 3}");
    ck_assert_int_eq(steals, 0);
    ck_keeps(3);
    ck_assert_str_eq(notes, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("best");
    TCase *tc = tcase_create("best");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_best_are_kept_as_by_a_plain_model);
    tcase_add_test(tc, a_step_is_there_once);
    tcase_add_test(tc, names_are_read_as_they_are_written);
    tcase_add_test(tc, one_is_kept_in_one_file);
    tcase_add_loop_test(tc, who_ends_in_the_place_of_rank_0_keeps_them, 0, 2);
    tcase_add_test(tc, who_ends_in_the_place_of_rank_0_keeps_no_worse_ones);
    tcase_add_loop_test(tc, who_ends_in_the_folder_of_rank_0_keeps_what_is_among_the_best, 0, 2);
    tcase_add_loop_test(tc, who_cannot_know_that_they_are_the_best_keeps_none, 0, 6);
    tcase_add_test(tc, who_cannot_know_it_says_nothing_of_what_is_kept);
    tcase_add_test(tc, who_saves_at_a_cancel_in_the_place_of_rank_0_keeps_them);
    tcase_add_loop_test(tc, weights_of_the_end_get_the_room_before_the_best_ones, 0, 2);
    tcase_add_loop_test(tc, who_saves_in_the_place_of_rank_0_saves_what_has_room, 0, 2);
    tcase_add_test(tc, best_weights_that_had_no_room_are_kept_when_it_comes);
    tcase_add_loop_test(tc, what_is_kept_behind_better_ones_that_had_no_room_is_not_called_the_best,
                        0, 2);
    tcase_add_test(tc, evaluation_whose_weights_had_no_room_is_tried_anew);
    tcase_add_test(tc, what_has_no_room_is_said_by_the_name_that_it_would_have);
    tcase_add_test(tc, several_are_kept_with_their_steps);
    tcase_add_test(tc, who_comes_next_finds_them);
    tcase_add_loop_test(tc, who_comes_next_and_keeps_one_finds_the_best, 0, 2);
    tcase_add_test(tc, more_or_fewer_are_kept_from_then_on);
    tcase_add_test(tc, those_of_another_training_stay_and_count_for_nothing);
    tcase_add_test(tc, what_cannot_be_written_is_said);
    tcase_add_test(tc, who_slept_puts_nothing_over_better_ones);
    tcase_add_test(tc, what_a_killed_one_left_too_many_goes);
    tcase_add_test(tc, file_of_another_process_stays_where_it_cannot_be_read);
    tcase_add_test(tc, file_that_another_process_takes_away_is_written_again);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
