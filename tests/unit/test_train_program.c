/* test_train_program.c - one rank that trains on a program: it is asked to stop while it waits for
 * a record that does not come, and has what the program says in its log */
#include "libworker/train/train.h"
#include "proto/clock.h"
#include "tests/unit/program_case.h"
#include "tests/unit/train_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static const char *dir;
static struct train *train;
static struct train_result result;
static int is_silent; /* what the test waits for goes on */
static void (*order)(void);
static _Atomic uint64_t steps_made;

static void setup(void)
{
    dir = test_dir_make();
}

static void teardown(void)
{
    test_dir_remove(dir);
}

/* Gives `records` records, tells so with a file and gives no more. */
#define SILENT_AFTER(records)                                                                      \
    SH "header; n=0; while read row epoch seed; do\n"                                              \
       "[ $n -lt " records " ] || { : >silent; exec sleep 1000; }\n"                               \
       "record $row $epoch; n=$((n + 1)); done\n"

static void stop(void)
{
    train_stop_at_step(train);
}

static void on_progress(void *arg, const struct train_progress *progress)
{
    (void)arg;
    atomic_store(&steps_made, progress->step);
}

/* The program is silent, and what was read before is trained. */
static void *order_when_silent(void *arg)
{
    const uint64_t *steps = arg;
    char path[256];
    snprintf(path, sizeof(path), "%s/silent", dir);
    for (int i = 0; i < 20000 && (access(path, F_OK) != 0 || atomic_load(&steps_made) < *steps);
         i++) {
        usleep(10000);
    }
    is_silent = access(path, F_OK) == 0;
    order();
    return NULL;
}

static void make_job(struct job *ret, const char *program, const char *evaluated)
{
    char text[2048];
    char evaluate[512] = "";
    if (evaluated != NULL) {
        snprintf(evaluate, sizeof(evaluate),
                 "evaluate: {dataset: {kind: program, path: %s, timeout: 1000}}\n", evaluated);
    }
    snprintf(text, sizeof(text),
             "network: linear\nworkers: 1\nbatch_size: 4\nepochs: 2\n%s"
             "dataset: {kind: program, path: %s, timeout: 1000, shape: [2, 1, 1], classes: 10}\n"
             "loss: softmax_cross_entropy\noptimizer: {kind: sgd, learning_rate: 0.05}\n"
             "checkpoint: {directory: %s}\n",
             evaluate, program, dir);
    ck_ms_ok(job_parse(text, strlen(text), "the case", "/", NULL, 0, 0, ret, err));
}

static int run(const struct job *job, uint64_t steps, void (*what)(void), struct ms_err *err)
{
    pthread_t thread;
    struct train_info info;
    const double begun = ms_mono_s();
    struct train_config cfg = train_case_config(job, dir);
    cfg.on_progress = on_progress;
    atomic_store(&steps_made, 0);
    train = train_create(&cfg);
    order = what;
    ck_assert_int_eq(pthread_create(&thread, NULL, order_when_silent, &steps), 0);
    int rc = train_prepare(train, &info, err);
    rc = rc == 0 ? train_run(train, &result, err) : rc;
    pthread_join(thread, NULL);
    train_destroy(train);
    ck_assert(is_silent);
    ck_assert_double_lt(ms_mono_s() - begun, 500); /* the program is silent for longer */
    return rc;
}

static const struct {
    const char *program, *evaluated; /* NULL: no evaluation */
    uint64_t steps;
} cases[] = {
    {SILENT_AFTER("8"), NULL, 2},
    {SILENT_AFTER("9"), NULL, 2}, /* within a batch */
    {SILENT_AFTER("0"), NULL, 0},
    {SERVE, SILENT_AFTER("5"), 3},
};

START_TEST(a_stop_waits_for_no_record_and_saves_the_last_step)
{
    static struct job job;
    char program[256];
    char evaluated[256];
    char saved[32];
    program_case_write(dir, "make.sh", cases[_i].program, program, sizeof(program));
    if (cases[_i].evaluated != NULL) {
        program_case_write(dir, "test.sh", cases[_i].evaluated, evaluated, sizeof(evaluated));
    }
    make_job(&job, program, cases[_i].evaluated != NULL ? evaluated : NULL);
    ck_ms_ok(run(&job, cases[_i].steps, stop, err));
    ck_assert_int_eq(result.stopped, 1);
    ck_assert_uint_eq(result.steps, cases[_i].steps);
    snprintf(saved, sizeof(saved), "step %d is saved", (int)cases[_i].steps);
    ck_assert_msg(cases[_i].steps == 0 || strstr(result.kept, saved) != NULL, "%s", result.kept);
}
END_TEST

/* 320 x, the second line begins where the first one ends. */
START_TEST(what_it_says_is_in_the_log_line_by_line)
{
    static struct job job;
    static char text[8192];
    char program[256];
    char path[256];
    char xs[321];
    char want[512];
    memset(xs, 'x', 320);
    xs[320] = '\0';
    program_case_write(dir, "make.sh",
                       SH "header; printf '%0320d\\n' 0 | tr 0 x >&2; echo next >&2\n"
                          "while read row epoch seed; do record $row $epoch; done\n",
                       program, sizeof(program));
    make_job(&job, program, NULL);
    struct train_config cfg = train_case_config(&job, dir);
    snprintf(path, sizeof(path), "%s/log", dir);
    cfg.log_fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    ck_assert_int_ge(cfg.log_fd, 0);
    train = train_create(&cfg);
    struct train_info info;
    ck_ms_ok(train_prepare(train, &info, err));
    ck_ms_ok(train_run(train, &result, err));
    train_destroy(train);
    const ssize_t n = pread(cfg.log_fd, text, sizeof(text) - 1, 0);
    close(cfg.log_fd);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    snprintf(want, sizeof(want), "program make.sh: %s\nprogram make.sh: next\n", xs);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
}
END_TEST

static void abort_it(void)
{
    train_abort(train, "somebody said so");
}

START_TEST(an_abort_waits_for_no_record_of_an_evaluation)
{
    static struct job job;
    char program[256];
    char evaluated[256];
    program_case_write(dir, "make.sh", SERVE, program, sizeof(program));
    program_case_write(dir, "test.sh", SILENT_AFTER("5"), evaluated, sizeof(evaluated));
    make_job(&job, program, evaluated);
    ck_ms_fails(run(&job, 0, abort_it, err), MS_E_ABORTED, "somebody said so");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("train_program");
    TCase *tc = tcase_create("stop");
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_stop_waits_for_no_record_and_saves_the_last_step, 0,
                        (int)MS_ARRAY_SIZE(cases));
    tcase_add_test(tc, an_abort_waits_for_no_record_of_an_evaluation);
    tcase_add_test(tc, what_it_says_is_in_the_log_line_by_line);
    suite_add_tcase(s, tc);
    return test_run(s);
}
