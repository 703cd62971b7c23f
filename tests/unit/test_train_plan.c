/* test_train_plan.c - a rank obeys the plan that it is given, or names the line that it cannot */
#include "libworker/host/memory.h"
#include "libworker/host/offer.h"
#include "libworker/plan/plan.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/train_case.h"

static uint64_t memory = MEMORY_UNKNOWN;

uint64_t __wrap_memory_available(void);

uint64_t __wrap_memory_available(void)
{
    return memory;
}

/* Batch norm with ReLU, a smaller last batch, evaluation: all that a plan may have. */
static const char *const net[] = {"network=cifar_small",
                                  "dataset={kind: shapes, samples: 72}",
                                  "batch_size=32",
                                  "epochs=1",
                                  "loss=softmax_cross_entropy",
                                  "evaluate={dataset: {kind: shapes, samples: 32}}"};

static struct job job;
static char notes[1024];

static void on_note(void *arg, const char *text)
{
    (void)arg;
    snprintf(notes + strlen(notes), sizeof(notes) - strlen(notes), "%s\n", text);
}

static void setup(void)
{
    memory = MEMORY_UNKNOWN;
    notes[0] = '\0';
    unsetenv("OMP_NUM_THREADS");
    unsetenv("DNNL_MAX_CPU_ISA");
    unsetenv("ONEDNN_MAX_CPU_ISA");
    train_case_job(&job, net, MS_ARRAY_SIZE(net));
}

static int is_plan_given;

static struct train *open_case(void)
{
    struct train_config cfg = train_case_config(&job, "");
    cfg.cores = 0;
    cfg.is_plan_given = is_plan_given;
    cfg.on_note = on_note;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_open(train, err));
    return train;
}

/* What a rank chooses for that job. Malloc'ed. */
static char *chosen(void)
{
    struct train *train = open_case();
    const char *text = NULL;
    ck_ms_ok(train_choose(train, &text, err));
    char *copy = strdup(text);
    train_destroy(train);
    return copy;
}

/* With the text (NULL: the own one), to the end. */
static int run(const char *text, struct train_result *ret, struct ms_err *err)
{
    struct train *train = open_case();
    struct train_info info;
    int rc = train_obey(train, text, err);
    rc = rc < 0 ? rc : train_join(train, &info, err);
    rc = rc < 0 ? rc : train_run(train, ret, err);
    if (rc == 0) {
        ck_assert_str_eq(info.plan_sha256, ret->plan_sha256);
    }
    train_destroy(train);
    return rc;
}

/* The text with the first `from` made `to`. Malloc'ed. */
static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "the plan has no \"%s\"", from);
    size_t size = strlen(text) + strlen(to) + 1;
    char *copy = malloc(size);
    snprintf(copy, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return copy;
}

START_TEST(who_obeys_gets_the_weights_of_who_chose)
{
    struct train *train = open_case();
    struct train_info info;
    struct train_result own;
    struct train_result other;
    const char *text = NULL;
    ck_ms_ok(train_choose(train, &text, err));
    char *copy = strdup(text);
    ck_ms_ok(train_obey(train, NULL, err));
    ck_ms_ok(train_join(train, &info, err));
    ck_ms_ok(train_run(train, &own, err));
    train_destroy(train);

    ck_ms_ok(run(copy, &other, err));

    ck_assert_str_eq(other.plan_sha256, own.plan_sha256);
    ck_assert_str_eq(other.weights_sha256, own.weights_sha256);
    ck_assert_str_eq(notes, "");
    free(copy);
}
END_TEST

START_TEST(who_chose_keeps_what_it_made_when_its_own_plan_comes_back)
{
    struct train *train = open_case();
    const char *text = NULL;
    ck_ms_ok(train_choose(train, &text, err));
    const struct replica *made = train_replica(train);
    char *copy = strdup(text);

    ck_ms_ok(train_obey(train, copy, err));
    ck_assert_ptr_eq(train_replica(train), made);

    free(copy);
    train_destroy(train);
}
END_TEST

START_TEST(threads_are_those_of_the_plan_even_where_there_are_no_cores_for_them)
{
    struct train_result one;
    struct train_result many;
    char *text = chosen();
    const char *line = strstr(text, "\nthreads ");
    char from[32];
    char to[32];
    snprintf(from, sizeof(from), "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
    snprintf(to, sizeof(to), "threads %d", host_get()->offer.cores + 1);
    char *with_one = changed(text, from, "threads 1");
    char *with_many = changed(text, from, to);

    ck_ms_ok(run(with_one, &one, err));
    ck_assert_str_eq(notes, "");
    ck_ms_ok(run(with_many, &many, err));

    ck_assert_ptr_nonnull(strstr(notes, "they take turns"));
    ck_assert_str_ne(one.plan_sha256, many.plan_sha256);
    free(text);
    free(with_one);
    free(with_many);
}
END_TEST

static const struct row {
    const char *from, *to, *says;
} rows[] = {
    {"msched plan 1\n", "", "plan line 1"},
    {"network cifar_small", "network resnet50",
     "plan line 3: network resnet50: the job trains cifar_small"},
    {"world 1", "world 2", "plan line 4: world 2: the job trains with 1 rank"},
    {"onednn ", "onednn 9", "plan line 7: onednn 9"},
    {"\ncaches ", "\ncaches 1", "plan line 8: caches 1"},
    {"precision fp32", "precision bf16", "plan line 9: precision bf16: "},
    {"use tail 8x3", "use tail 9x3", "for tail is (8, 3"},
    {" relu=1", "", "plan line"},
    {"kernel:batch_norm ", "kernel:batch_nor ", "plan line"},
    {"\nend\n", "\n", "plan line"},
};

/* A number more in the word, another word: whatever it is, the line is named, and what is here. */
START_TEST(line_that_cannot_be_obeyed_is_named_with_what_this_node_has)
{
    const struct row *row = &rows[_i / 2];
    struct train_result result;
    struct ms_err why = {0, ""};
    is_plan_given = _i % 2; /* with the job, or what rank 0 chose */
    char *text = chosen();
    char *other = changed(text, row->from, row->to);

    int rc = run(other, &result, &why);

    ck_assert_msg(rc == MS_E_INVALID || rc == MS_E_UNSUPPORTED, "%d, %s", rc, why.text);
    ck_assert_msg(strstr(why.text, row->says) != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, "(this node: isa ") != NULL, "%s", why.text);
    ck_assert_msg(strstr(why.text, plan_library()) != NULL, "%s", why.text);
    const int is_advised = strstr(why.text, "without --plan rank 0 chooses one") != NULL;
    ck_assert_msg(is_advised == is_plan_given, "%s", why.text);
    free(text);
    free(other);
}
END_TEST

/* One plan for all ranks, whatever the environment of each of them is. */
START_TEST(variables_that_the_plan_overrules_are_named)
{
    struct train_result result;
    char *text = chosen();
    setenv("OMP_NUM_THREADS", "77", 1);
    setenv("DNNL_MAX_CPU_ISA", "OF_TOMORROW", 1);
    setenv("ONEDNN_MAX_CPU_ISA", "ALL", 1);
    ck_ms_ok(run(text, &result, err));

    ck_assert_ptr_nonnull(
        strstr(notes, "OMP_NUM_THREADS=77 counts for nothing here: the plan has"));
    ck_assert_ptr_nonnull(strstr(notes, "DNNL_MAX_CPU_ISA=OF_TOMORROW counts for nothing here: the "
                                        "plan has isa "));
    ck_assert_ptr_null(strstr(notes, "ALL"));
    free(text);
}
END_TEST

START_TEST(hostile_bytes_are_a_plan_that_cannot_be_obeyed)
{
    static const char *const texts[] = {"", "\n", "msched plan 1", "msched plan 2\n",
                                        "msched plan 1\nsection bits\nnetwork \xff\n"};
    struct train_result result;
    for (size_t i = 0; i < MS_ARRAY_SIZE(texts); i++) {
        ck_ms_fails(run(texts[i], &result, err), MS_E_INVALID, "plan line");
    }
}
END_TEST

START_TEST(plan_without_a_use_that_the_job_needs_is_refused_by_its_line)
{
    struct train_result result;
    static const char *const whole[] = {"network=cifar_small",
                                        "dataset={kind: shapes, samples: 64}", "batch_size=32",
                                        "epochs=1", "loss=softmax_cross_entropy"};
    char *more = chosen();
    train_case_job(&job, whole, MS_ARRAY_SIZE(whole));
    char *less = chosen();

    ck_ms_fails(run(more, &result, err), MS_E_INVALID, "use tail is none that the job has");
    setup();
    ck_ms_fails(run(less, &result, err), MS_E_INVALID, "use tail is missing");

    free(more);
    free(less);
}
END_TEST

START_TEST(threads_that_the_job_fixes_are_held_against_the_plan)
{
    struct train_result result;
    char *text = chosen();
    job.threads = 63;
    ck_ms_fails(run(text, &result, err), MS_E_INVALID, ": the job says 63");
    free(text);
}
END_TEST

START_TEST(mixed_caches_are_those_of_any_machine)
{
    struct train_result result;
    char *text = chosen();
    const char *line = strstr(text, "\ncaches ") + 1;
    char from[64];
    snprintf(from, sizeof(from), "%.*s", (int)strcspn(line, "\n"), line);
    char *mixed = changed(text, from, "caches mixed");
    ck_ms_ok(run(mixed, &result, err));
    free(text);
    free(mixed);
}
END_TEST

/* The smallest network whose activations can be made again. */
static void residual_job(int workers)
{
    static const char *const resnet[] = {
        "network=resnet50", "dataset={kind: shapes, samples: 4}", "batch_size=2", "epochs=1",
        "steps=1",          "loss=softmax_cross_entropy",         "threads=1"};
    train_case_job(&job, resnet, MS_ARRAY_SIZE(resnet));
    job.workers = workers;
}

/* The arena of a plan that keeps all its activations is more than there is room for. */
static uint64_t too_little(const char *text)
{
    struct train *train = open_case();
    struct train_info info;
    ck_ms_ok(train_obey(train, text, err));
    ck_ms_ok(train_join(train, &info, err));
    train_destroy(train);
    return info.peak_bytes + info.peak_bytes / 20; /* below the tenth that is to stay free */
}

/* That plan, with weights in a second layout where this machine wants any. Malloc'ed. */
static char *chosen_with_mirrors(void)
{
    const struct replica_wish wish = {.threads = 1, .isa = "", .mirrors = 1};
    struct train *train = open_case();
    const char *text = NULL;
    char *copy = NULL;
    ck_ms_ok(train_choose(train, &text, err));
    ck_ms_ok(replica_choose(train->replica, &wish, err));
    ck_ms_ok(replica_plan_text(train->replica, &copy, err));
    train_destroy(train);
    return copy;
}

/* First what was wanted only; where there is none of it, activations go at once. */
START_TEST(rank_with_less_memory_does_without_and_has_the_same_bits)
{
    struct train_result kept;
    residual_job(1);
    char *text = chosen_with_mirrors();
    const int has_mirrors = strstr(text, "\nmirror ") != NULL;
    ck_ms_ok(run(text, &kept, err));
    for (int less = has_mirrors ? 0 : 1; less < 2; less++) {
        struct train_result result;
        memory = too_little(text);

        ck_ms_ok(run(text, &result, err));

        ck_assert_ptr_nonnull(
            strstr(notes, less == 0 ? "reorders weights in each step" : "makes activations again"));
        ck_assert_str_eq(result.plan_sha256, kept.plan_sha256);
        ck_assert_str_eq(result.weights_sha256, kept.weights_sha256);
    }
    free(text);
}
END_TEST

/* A rank of another host, which offered less: it would have to do otherwise than the others. */
START_TEST(the_least_memory_of_all_ranks_decides_what_is_made_again)
{
    struct mesh_member members[2] = {{.host_id = "a"}, {.host_id = "b"}};
    struct host_offer offers[2] = {host_get()->offer, host_get()->offer};
    const char *text = NULL;
    int again[2];
    residual_job(2);
    for (int i = 0; i < 2; i++) {
        offers[1].memory_bytes = i == 0 ? 0 : 16U << 20; /* not known; not enough */
        struct train_config cfg = train_case_config(&job, "");
        cfg.world = 2;
        cfg.members = members;
        cfg.offers = offers;
        struct train *train = train_create(&cfg);
        ck_ms_ok(train_open(train, err));
        ck_ms_ok(train_choose(train, &text, err));
        again[i] = strstr(text, "\nagain train ") != NULL;
        train_destroy(train);
    }
    ck_assert_int_eq(again[0], 0);
    ck_assert_int_eq(again[1], 1);
}
END_TEST

START_TEST(abort_has_the_last_word_on_a_plan)
{
    struct train *train = open_case();
    const char *text = NULL;
    train_abort(train, "cancelled by alice");
    ck_ms_fails(train_choose(train, &text, err), MS_E_ABORTED, "cancelled by alice");
    ck_ms_fails(train_obey(train, "", err), MS_E_ABORTED, "cancelled by alice");
    train_destroy(train);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_plan");
    TCase *tc = tcase_create("train_plan");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, who_obeys_gets_the_weights_of_who_chose);
    tcase_add_test(tc, who_chose_keeps_what_it_made_when_its_own_plan_comes_back);
    tcase_add_test(tc, threads_are_those_of_the_plan_even_where_there_are_no_cores_for_them);
    tcase_add_loop_test(tc, line_that_cannot_be_obeyed_is_named_with_what_this_node_has, 0,
                        2 * (int)MS_ARRAY_SIZE(rows));
    tcase_add_test(tc, variables_that_the_plan_overrules_are_named);
    tcase_add_test(tc, hostile_bytes_are_a_plan_that_cannot_be_obeyed);
    tcase_add_test(tc, plan_without_a_use_that_the_job_needs_is_refused_by_its_line);
    tcase_add_test(tc, threads_that_the_job_fixes_are_held_against_the_plan);
    tcase_add_test(tc, mixed_caches_are_those_of_any_machine);
    tcase_add_test(tc, rank_with_less_memory_does_without_and_has_the_same_bits);
    tcase_add_test(tc, the_least_memory_of_all_ranks_decides_what_is_made_again);
    tcase_add_test(tc, abort_has_the_last_word_on_a_plan);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
