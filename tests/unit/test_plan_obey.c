/* test_plan_obey.c - a text with another value in it is obeyed to the letter, or refused by line */
#include "libworker/plan/internal.h"
#include "tests/unit/plan_job.h"

#include <ctype.h>

enum { WORDS_MAX = 12, WORD_MAX = 160 };

static const char *const layouts[] = {"abcd",       "acdb",       "aBcd16b",    "aBcd8b", "Acdb16a",
                                      "ABcd16b16a", "ABcd16a16b", "BAcd16a16b", "ab",     "ba",
                                      "AB16b16a",   "a",          "of_stone"};
static const char *const names[] = {
    "lenet5",   "linear",      "conv2d",   "relu_bwd",   "jit:avx2",      "x64:gemm:jit",
    "gemm:jit", "ref:any",     "jit:tomo", "simple:any", "kernel:add",    "fc1.weight",
    "fc2.bias", "kernel:relu", "avx2",     "2.6.2",      "conv1",         "head.conv1",
    "bf16",     "mixed",       "train",    "tail",       "head.bn1.gamma"};

/* ---- mutations ----------------------------------------------------------------------------------
 */

struct mutation {
    int line;
    int is_exact; /* the line alone is wrong, not what it says beside others */
    char before[4 * WORD_MAX], after[4 * WORD_MAX];
    char *text;
};

static void words_of(const char *at, char words[WORDS_MAX][WORD_MAX], int *n)
{
    const char *lf = strchr(at, '\n');
    for (*n = 0; at < lf; (*n)++) {
        size_t size = strcspn(at, " \n");
        ck_assert_int_lt(*n, WORDS_MAX);
        snprintf(words[*n], WORD_MAX, "%.*s", (int)size, at);
        at += size + (at[size] == ' ');
    }
}

static void join(char words[WORDS_MAX][WORD_MAX], int n, char *ret, size_t size)
{
    ret[0] = '\0';
    for (int i = 0; i < n; i++) {
        size_t used = strlen(ret);
        snprintf(ret + used, size - used, "%s%s", i > 0 ? " " : "", words[i]);
    }
}

static int is_number(const char *word)
{
    return strspn(word, "0123456789+x") == strlen(word);
}

/* Another number in the place of one of the word's. */
static void other_number(char *word, uint64_t stream)
{
    char other[WORD_MAX];
    size_t starts[8];
    uint64_t n = 0;
    for (size_t i = 0; word[i] != '\0' && n < 8; i++) {
        if (isdigit((unsigned char)word[i]) && (i == 0 || !isdigit((unsigned char)word[i - 1]))) {
            starts[n++] = i;
        }
    }
    size_t at = starts[ms_rng_below(stream, 1, n)];
    char *end = NULL;
    unsigned long long value = strtoull(word + at, &end, 10);
    const unsigned long long values[] = {
        value + 1, value > 0 ? value - 1 : 7, 2 * value, 16, 1, 2147483640, 1ULL << 40};
    snprintf(other, sizeof(other), "%.*s%llu%s", (int)at, word, values[ms_rng_below(stream, 2, 7)],
             end);
    memcpy(word, other, sizeof(other));
}

/* Not what other lines depend on: a layout, code that has one, a place in a row of them, the name
 * of a parameter that has a mirror. */
static int is_alone(char words[WORDS_MAX][WORD_MAX], int word)
{
    static const char *const heads[] = {"network", "isa",       "onednn",
                                        "caches",  "precision", "statistic"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        if (strcmp(words[0], heads[i]) == 0) {
            return strchr(words[word], '+') == NULL;
        }
    }
    return strcmp(words[0], "op") == 0 && (word == 2 || word == 3);
}

static void other_word(char words[WORDS_MAX][WORD_MAX], int word, uint64_t stream)
{
    char *at = words[word];
    char *value = strchr(at, '=') != NULL ? strchr(at, '=') + 1 : at;
    size_t room = WORD_MAX - (size_t)(value - at);
    int is_layout = (strcmp(words[0], "parameter") == 0 && (word == 3 || word == 6)) ||
                    (strcmp(words[0], "mirror") == 0 && word == 2);
    if (is_number(value)) {
        other_number(value, stream);
    } else if (value != at || is_layout) {
        uint64_t n = sizeof(layouts) / sizeof(layouts[0]);
        snprintf(value, room, "%s", layouts[ms_rng_below(stream, 3, n)]);
    } else {
        uint64_t n = sizeof(names) / sizeof(names[0]);
        snprintf(value, room, "%s", names[ms_rng_below(stream, 4, n)]);
    }
}

/* 0: the line has nothing but its key, or the number drew what was there. */
static int mutate(const char *text, int line, uint64_t stream, struct mutation *ret)
{
    char words[WORDS_MAX][WORD_MAX];
    int n = 0;
    words_of(line_at(text, line), words, &n);
    join(words, n, ret->before, sizeof(ret->before));
    if (n < 2) {
        return 0;
    }
    if (strcmp(words[0], "op") == 0 && strncmp(words[n - 1], "channels=", 9) != 0 &&
        n < WORDS_MAX && ms_rng_below(stream, 5, 8) == 0) { /* a fact that it may have */
        snprintf(words[n++], WORD_MAX, "channels=16");
    }
    int word = 1 + (int)ms_rng_below(stream, 0, (uint64_t)n - 1);
    ret->line = line;
    ret->is_exact = is_alone(words, word);
    other_word(words, word, stream);
    join(words, n, ret->after, sizeof(ret->after));
    if (strcmp(ret->before, ret->after) == 0) {
        return 0;
    }
    ret->text = with_line(text, line, ret->after);
    return 1;
}

/* ---- what comes of them -------------------------------------------------------------------------
 */

/* The error names the line; where others depend on it, one behind it may be. */
static void check_named(const struct mutation *m, const struct ms_err *err)
{
    int named = 0;
    int first = 0;
    ck_assert_msg(sscanf(err->text, "plan line %d: ", &first) == 1, "%d: '%s' -> '%s': %s", m->line,
                  m->before, m->after, err->text);
    for (const char *at = err->text; (at = strstr(at, "line ")) != NULL; at++) {
        named |= atoi(at + 5) == m->line;
    }
    ck_assert_msg(named || (!m->is_exact && first > m->line), "%d: '%s' -> '%s': %s", m->line,
                  m->before, m->after, err->text);
}

static void run_once(const struct job *job, struct plan *plan, int use)
{
    struct plan_case c = {.graph = job->graphs[use], .plan = plan};
    case_buffers(&c);
    case_init_values(&c, 5);
    if (use == PLAN_EVALUATE) {
        struct plan_evaluated made;
        ck_ms_ok(plan_evaluate(plan, c.data, case_labels(&c), 1, &made, err));
        ck_assert(isfinite(made.loss_sum));
    } else {
        ck_assert(isfinite(case_step(&c)));
        ck_assert(case_exchange_is_finite(&c));
    }
    c.graph = NULL; /* they are the caller's */
    c.plan = NULL;
    case_fini(&c);
}

static void record(const struct plan *plan, int use, struct plan_spec *ret)
{
    ck_ms_ok(record_use(plan, &ret->uses[use], err));
    ck_ms_ok(use == PLAN_TRAIN ? record_common(plan, ret, err) : 0);
}

/* The plans of a text, written down again. */
static int obey(const struct job *job, const struct plan_spec *spec, struct plan_spec *ret,
                struct ms_err *err)
{
    int rc = 0;
    *ret = *spec;
    ret->n_params = ret->n_stats = ret->n_buckets = 0;
    ret->params = NULL;
    ret->stats = NULL;
    ret->buckets = NULL;
    memset(ret->uses, 0, sizeof(ret->uses));
    for (int use = 0; use < PLAN_USES && rc == 0; use++) {
        struct plan *plan = NULL;
        rc = plan_create(job->graphs[use], spec, (enum plan_use)use, NULL, &plan, err);
        if (rc == 0) {
            record(plan, use, ret);
            run_once(job, plan, use);
        }
        plan_destroy(plan);
    }
    return rc;
}

static void spec_fini(struct plan_spec *spec)
{
    for (int use = 0; use < PLAN_USES; use++) {
        free(spec->uses[use].ops);
    }
    free(spec->params);
    free(spec->stats);
    free(spec->buckets);
}

/* 1: the text was obeyed. */
static int check(const struct job *job, const struct mutation *m)
{
    struct ms_err err = {0, ""};
    struct plan_spec *spec = NULL;
    struct plan_spec again = {.world = 0};
    int rc = plan_spec_parse(m->text, strlen(m->text), &spec, &err);
    rc = rc < 0 ? rc : obey(job, spec, &again, &err);
    if (rc < 0) {
        ck_assert_msg(rc == MS_E_INVALID || rc == MS_E_UNSUPPORTED || rc == MS_E_REFUSED, "%s",
                      err.text);
        check_named(m, &err);
    } else {
        char *text = format(&again);
        ck_assert_msg(strcmp(text, m->text) == 0, "%d: '%s' -> '%s' was taken for another", m->line,
                      m->before, m->after);
        free(text);
    }
    spec_fini(&again);
    plan_spec_destroy(spec);
    return rc == 0;
}

START_TEST(another_value_is_obeyed_or_its_line_is_named)
{
    const int n_samples = _i == RESNET50 ? 40 : 240;
    struct job job = job_of(_i, 1, PLAN_RECOMPUTE_ON, 8);
    char *text = format(job.spec);
    int n_lines = count_lines(text);
    int n_obeyed = 0;
    int n = 0;
    for (uint64_t k = 0; n < n_samples; k++) {
        uint64_t stream = ms_rng_stream(26, (uint64_t)_i, k);
        struct mutation m = {.line = 0};
        if (mutate(text, 1 + (int)ms_rng_below(stream, 9, (uint64_t)n_lines), stream, &m)) {
            n_obeyed += check(&job, &m);
            free(m.text);
            n++;
        }
    }
    printf("%s: %d of %d obeyed\n", networks[_i].name, n_obeyed, n);
    ck_assert_int_lt(n_obeyed, n);
    free(text);
    job_fini(&job);
}
END_TEST

/* Two lines of a kind that change their names: each is well formed, and the sizes may fit. */
static void check_swapped(const struct job *job, const char *text, int line)
{
    char a[WORDS_MAX][WORD_MAX];
    char b[WORDS_MAX][WORD_MAX];
    char kept[WORD_MAX];
    int n_a = 0;
    int n_b = 0;
    struct mutation m = {.line = line, .is_exact = 1};
    words_of(line_at(text, line), a, &n_a);
    words_of(line_at(text, line + 1), b, &n_b);
    memcpy(kept, a[1], sizeof(kept));
    memcpy(a[1], b[1], sizeof(kept));
    memcpy(b[1], kept, sizeof(kept));
    join(a, n_a, m.after, sizeof(m.after));
    join(b, n_b, m.before, sizeof(m.before));
    char *half = with_line(text, line, m.after);
    m.text = with_line(half, line + 1, m.before);
    ck_assert_msg(!check(job, &m), "'%s' was obeyed", m.after);
    free(m.text);
    free(half);
}

START_TEST(names_that_were_swapped_are_refused)
{
    struct job job = job_of(RESNET50, 1, PLAN_RECOMPUTE_OFF, 8);
    char *text = format(job.spec);
    for (int i = 0; i + 1 < 12; i++) {
        check_swapped(&job, text, plan_spec_line(job.spec, PLAN_ITEM_PARAM, i));
        check_swapped(&job, text, plan_spec_line(job.spec, PLAN_ITEM_STAT, i));
    }
    free(text);
    job_fini(&job);
}
END_TEST

START_TEST(columns_of_another_image_are_refused)
{
    struct job job = job_of(LENET5, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_spec_param *p = job.spec->params;
    while (p->columns[0] == '\0' && p < job.spec->params + job.spec->n_params - 1) {
        p++;
    }
    if (p->columns[0] == '\0') { /* instruction sets without blocks of channels */
        job_fini(&job);
        return;
    }
    p->columns_shape.dim[2] *= p->columns_shape.dim[3]; /* as many, and another place for each */
    p->columns_shape.dim[3] = 1;
    char line[96];
    struct plan *plan = NULL;
    snprintf(line, sizeof(line), "columns of fc1.weight in line %d are not those of its source",
             plan_spec_line(job.spec, PLAN_ITEM_PARAM, (int)(p - job.spec->params)));
    ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                MS_E_INVALID, line);
    job_fini(&job);
}
END_TEST

static double loss_of(const struct job *job)
{
    struct plan *plan = NULL;
    ck_ms_ok(plan_create(job->graphs[PLAN_TRAIN], job->spec, PLAN_TRAIN, NULL, &plan, err));
    struct plan_case c = {.graph = job->graphs[PLAN_TRAIN], .plan = plan};
    case_buffers(&c);
    case_init_values(&c, 5);
    double loss = case_step(&c);
    c.graph = NULL;
    case_fini(&c);
    return loss;
}

/* Of one pixel, too: a mean whose batch and channels are swapped in memory is no matrix of rows. */
START_TEST(a_mean_in_any_layout_is_that_of_its_images)
{
    struct job job = job_of(RESNET50, 1, PLAN_RECOMPUTE_OFF, 1);
    struct plan_spec_use *use = &job.spec->uses[PLAN_TRAIN];
    const double loss = loss_of(&job);
    int n = 0;
    for (int i = 0; i < use->n_ops; i++) {
        struct plan_spec_op *op = &use->ops[i];
        if (strncmp(op->kind, "avg_pool", 8) == 0) {
            snprintf(op->impl, sizeof(op->impl), "ref:any");
            snprintf(op->dst, sizeof(op->dst), "bacd");
            n++;
        }
    }
    ck_assert_int_eq(n, 2);

    const double swapped = loss_of(&job);

    ck_assert_msg(fabs(swapped - loss) < 1e-4 * loss, "%.9g, not %.9g", swapped, loss);
    job_fini(&job);
}
END_TEST

START_TEST(a_text_without_parameters_is_not_one_that_may_choose)
{
    struct job job = job_of(LINEAR, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan *plan = NULL;
    int n_params = job.spec->n_params;
    job.spec->n_params = 0;
    ck_ms_fails(plan_create(job.graphs[PLAN_TRAIN], job.spec, PLAN_TRAIN, NULL, &plan, err),
                MS_E_INVALID, "plan line 13: network linear of this job has 2 parameters");
    job.spec->n_params = n_params;
    job_fini(&job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_obey");
    TCase *tc = tcase_create("texts");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, another_value_is_obeyed_or_its_line_is_named, 0, N_NETWORKS);
    tcase_add_test(tc, names_that_were_swapped_are_refused);
    tcase_add_test(tc, columns_of_another_image_are_refused);
    tcase_add_test(tc, a_mean_in_any_layout_is_that_of_its_images);
    tcase_add_test(tc, a_text_without_parameters_is_not_one_that_may_choose);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
