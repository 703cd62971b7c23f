/* test_plan_spec.c - plans as text: what is written is read again, and nothing else is */
#include "tests/unit/golden_plan.h"
#include "tests/unit/plan_job.h"

#include <inttypes.h>

static struct plan_spec *spec_of(int i, int threads, enum plan_recompute recompute, int world)
{
    struct job job = job_of(i, threads, recompute, world);
    struct plan_spec *spec = job.spec;
    job.spec = NULL;
    job_fini(&job);
    return spec;
}

static char *text_of(int i, int threads, enum plan_recompute recompute, int world)
{
    struct plan_spec *spec = spec_of(i, threads, recompute, world);
    char *text = format(spec);
    plan_spec_destroy(spec);
    return text;
}

START_TEST(machines_that_differ_in_their_caches_are_written_down_as_that)
{
    struct plan_spec *spec = spec_of(LINEAR, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_spec *read = NULL;
    spec->machine.mixed_caches = 1;
    char *text = format(spec);

    ck_assert_ptr_nonnull(strstr(text, "\ncaches mixed\n"));
    ck_ms_ok(plan_spec_parse(text, strlen(text), &read, err));
    ck_assert_int_eq(read->machine.mixed_caches, 1);
    char *again = format(read);
    ck_assert_str_eq(text, again);
    plan_spec_destroy(read);
    char *other = with_line(text, 8, "caches mixes");
    ck_ms_fails(plan_spec_parse(other, strlen(other), &read, err), MS_E_INVALID, "plan line 8: ");
    free(other);
    free(again);
    free(text);
    plan_spec_destroy(spec);
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    struct plan_spec *spec = spec_of(_i, 1, PLAN_RECOMPUTE_ON, 8);
    char *text = format(spec);
    struct plan_spec *read = NULL;
    char digests[2][MS_SHA256_HEX];

    ck_ms_ok(plan_spec_parse(text, strlen(text), &read, err));

    char *again = format(read);
    ck_assert_str_eq(text, again);
    ck_ms_ok(plan_spec_digest(spec, digests[0], err));
    ck_ms_ok(plan_spec_digest(read, digests[1], err));
    ck_assert_str_eq(digests[0], digests[1]);
    printf("%s: a plan of %zu bytes\n", networks[_i].name, strlen(text));
    ck_assert_uint_lt(2 * strlen(text), MS_PLAN_MAX);
    free(again);
    free(text);
    plan_spec_destroy(read);
    plan_spec_destroy(spec);
}
END_TEST

START_TEST(a_digest_is_the_same_for_the_same_bits_only)
{
    const struct {
        int threads, world, same;
        enum plan_recompute recompute;
    } rows[] = {
        {1, 8, 1, PLAN_RECOMPUTE_OFF},
        {1, 8, 1, PLAN_RECOMPUTE_ON},
        {2, 8, 0, PLAN_RECOMPUTE_OFF},
        {1, 4, 0, PLAN_RECOMPUTE_OFF},
    };
    char first[MS_SHA256_HEX] = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plan_spec *spec =
            spec_of(RESNET50, rows[i].threads, rows[i].recompute, rows[i].world);
        char digest[MS_SHA256_HEX];
        ck_ms_ok(plan_spec_digest(spec, digest, err));
        char *text = format(spec);
        ck_assert_int_eq(strstr(text, "\nagain train ") != NULL,
                         rows[i].recompute == PLAN_RECOMPUTE_ON);
        ck_assert_ptr_nonnull(strstr(text, "\nop 0 conv2d head.conv1 "));
        ck_assert_ptr_nonnull(strstr(text, "\nparameter layer4.c.conv3.weight "));
        ck_assert_ptr_null(strstr(text, " ref"));
        if (i > 0) {
            ck_assert_int_eq(strcmp(first, digest) == 0, rows[i].same);
        } else {
            memcpy(first, digest, sizeof(first));
        }
        free(text);
        plan_spec_destroy(spec);
    }
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------------
 */

/* The text must be refused; exactly: with this line, else with this or a later one. */
static void check_refused(const char *text, int line, int exactly, const char *what)
{
    struct plan_spec *spec = NULL;
    struct ms_err err = {0, ""};
    int rc = plan_spec_parse(text, strlen(text), &spec, &err);
    ck_assert_msg(rc == MS_E_INVALID, "line %d, %s: was read", line, what);
    int named = 0;
    ck_assert_msg(sscanf(err.text, "plan line %d: ", &named) == 1, "%s", err.text);
    ck_assert_msg(exactly ? named == line : named >= line, "line %d, %s: %s", line, what, err.text);
    ck_assert_ptr_null(spec);
}

/* `line` with its first `cut` bytes replaced by `front` and `back` at its end. */
static void check_damaged(const char *text, int line, size_t cut, const char *front,
                          const char *back)
{
    size_t size = strlen(text);
    char *damaged = malloc(size + 64);
    ck_assert_ptr_nonnull(damaged);
    const char *at = line_at(text, line);
    const char *lf = strchr(at, '\n');
    snprintf(damaged, size + 64, "%.*s%s%.*s%s%s", (int)(at - text), text, front,
             (int)(lf - at - (long)cut), at + cut, back, lf);
    check_refused(damaged, line, 1, back[0] != '\0' ? "longer" : "another beginning");
    free(damaged);
}

static void check_without(const char *text, int line)
{
    size_t size = strlen(text);
    char *damaged = malloc(size + 1);
    ck_assert_ptr_nonnull(damaged);
    const char *at = line_at(text, line);
    snprintf(damaged, size + 1, "%.*s%s", (int)(at - text), text, strchr(at, '\n') + 1);
    /* what is kept, or reordered, instead is another plan, a good one */
    if (strncmp(at, "again ", 6) != 0 && strncmp(at, "mirror ", 7) != 0) {
        check_refused(damaged, line, 0, "without it");
    }
    free(damaged);
}

START_TEST(a_line_that_is_damaged_is_named)
{
    char *text = text_of(_i, 1, PLAN_RECOMPUTE_ON, 8);
    for (int line = 1; line <= count_lines(text); line++) {
        check_damaged(text, line, 0, "", " x");
        check_damaged(text, line, 0, "", " ");
        check_damaged(text, line, 0, " ", "");
        check_damaged(text, line, 1, "#", "");
        check_damaged(text, line, 0, "\n", "");
        check_without(text, line);
    }
    free(text);
}
END_TEST

START_TEST(a_text_that_was_cut_is_refused)
{
    char *text = text_of(LINEAR, 1, PLAN_RECOMPUTE_OFF, 1);
    struct plan_spec *spec = NULL;
    for (size_t size = 0; size < strlen(text); size++) {
        ck_ms_fails(plan_spec_parse(text, size, &spec, err), MS_E_INVALID, "plan line ");
    }
    ck_ms_fails(plan_spec_parse(text, MS_PLAN_MAX + 1, &spec, err), MS_E_INVALID, "at most 262144");
    free(text);
}
END_TEST

static const struct other {
    const char *from, *to, *part;
} others[] = {
    {"world 8", "world 08", "plan line 4: is not as msched writes it"},
    {"world 8", "world 0", "plan line 4: world must be a number from 1 to 1024"},
    {"world 8", "world 99999999999999999999", "plan line 4: world must be"},
    {"threads 1", "threads -1", "plan line 5: threads must be"},
    {"precision fp32", "precision f32", "plan line 9: precision must be fp32 or bf16"},
    {"statistics 0", "statistics 1", "must be 'statistic' with 2 values"},
    {"bucket 0+", "bucket 16+", "a bucket begins where the last one ends"},
    {"use tail", "use train", "uses are train, tail and evaluation, in this order"},
    {"end\n", "again train 9999\nend\n", "names an op that the use has not"},
    {"end\n", "again tail 4\nagain train 6\nend\n",
     "what is made again comes in the order of the ops"},
    {"end\n", "end\nend\n", "stands after the end"},
    {" 0+16 ", " 0+18446744073709551615 ", "the place must begin"},
};

START_TEST(another_value_is_refused_in_words)
{
    char *text = text_of(LINEAR, 1, PLAN_RECOMPUTE_OFF, 8);
    const struct other *row = &others[_i];
    char *at = strstr(text, row->from);
    ck_assert_msg(at != NULL, "no '%s' in:\n%s", row->from, text);
    size_t size = strlen(text) + 64;
    char *changed = malloc(size);
    ck_assert_ptr_nonnull(changed);
    snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, row->to, at + strlen(row->from));
    struct plan_spec *spec = NULL;
    ck_ms_fails(plan_spec_parse(changed, strlen(changed), &spec, err), MS_E_INVALID, row->part);
    free(changed);
    free(text);
}
END_TEST

START_TEST(items_are_on_the_lines_that_they_are_said_to_be_on)
{
    struct plan_spec *spec = spec_of(RESNET50, 1, PLAN_RECOMPUTE_OFF, 8);
    char *text = format(spec);
    char want[128];
    snprintf(want, sizeof(want), "isa %s\n", spec->machine.isa);
    const char *at = line_at(text, plan_spec_line(spec, PLAN_ITEM_MACHINE, 0));
    ck_assert_int_eq(strncmp(at, want, strlen(want)), 0);
    for (int i = 0; i < spec->n_params; i++) {
        snprintf(want, sizeof(want), "parameter %s ", spec->params[i].name);
        at = line_at(text, plan_spec_line(spec, PLAN_ITEM_PARAM, i));
        ck_assert_int_eq(strncmp(at, want, strlen(want)), 0);
    }
    for (int i = 0; i < spec->n_stats; i++) {
        snprintf(want, sizeof(want), "statistic %s ", spec->stats[i].name);
        at = line_at(text, plan_spec_line(spec, PLAN_ITEM_STAT, i));
        ck_assert_int_eq(strncmp(at, want, strlen(want)), 0);
    }
    for (int i = 0; i < spec->n_buckets; i++) {
        snprintf(want, sizeof(want), "bucket %zu+", spec->buckets[i].begin);
        at = line_at(text, plan_spec_line(spec, PLAN_ITEM_BUCKET, i));
        ck_assert_int_eq(strncmp(at, want, strlen(want)), 0);
    }
    for (int use = 0; use < PLAN_USES; use++) {
        for (int i = -1; i < spec->uses[use].n_ops; i++) {
            at = line_at(text, plan_spec_op_line(spec, (enum plan_use)use, i));
            snprintf(want, sizeof(want), "use %s ", plan_use_name((enum plan_use)use));
            if (i >= 0) {
                snprintf(want, sizeof(want), "op %d ", spec->uses[use].ops[i].op);
            }
            ck_assert_int_eq(strncmp(at, want, strlen(want)), 0);
        }
    }
    free(text);
    plan_spec_destroy(spec);
}
END_TEST

/* ---- plans of a spec ----------------------------------------------------------------------------
 */

START_TEST(who_chooses_twice_chooses_the_same)
{
    char *first = text_of(_i, 1, PLAN_RECOMPUTE_OFF, 8);
    char *second = text_of(_i, 1, PLAN_RECOMPUTE_OFF, 8);

    ck_assert_str_eq(first, second);

    free(first);
    free(second);
}
END_TEST

START_TEST(a_plan_is_made_of_what_was_read)
{
    for (int recompute = PLAN_RECOMPUTE_OFF; recompute <= PLAN_RECOMPUTE_ON; recompute++) {
        struct job job = job_of(_i, 1, (enum plan_recompute)recompute, 8);
        char *text = format(job.spec);
        struct plan_spec *read = NULL;
        ck_ms_ok(plan_spec_parse(text, strlen(text), &read, err));
        for (int use = 0; use < PLAN_USES; use++) {
            struct plan *plan = NULL;
            ck_ms_ok(plan_create(job.graphs[use], read, (enum plan_use)use, NULL, &plan, err));
            plan_destroy(plan);
        }
        free(text);
        plan_spec_destroy(read);
        job_fini(&job);
    }
}
END_TEST

static struct plan_spec_op *find_op(struct plan_spec *spec, const char *kind)
{
    struct plan_spec_use *use = &spec->uses[PLAN_TRAIN];
    for (int i = 0; i < use->n_ops; i++) {
        if (strcmp(use->ops[i].kind, kind) == 0) {
            return &use->ops[i];
        }
    }
    ck_abort_msg("no op %s", kind);
}

static int create(const struct job *job, struct ms_err *err)
{
    struct plan *plan = NULL;
    int rc = plan_create(job->graphs[PLAN_TRAIN], job->spec, PLAN_TRAIN, NULL, &plan, err);
    plan_destroy(plan);
    return rc;
}

/* Reference code is what nobody would choose. */
START_TEST(a_spec_is_obeyed_where_oneDNN_would_take_other_code)
{
    struct job job = job_of(LENET5, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_spec_op *op = find_op(job.spec, "conv2d_bwd_weights");
    ck_assert_ptr_null(strstr(op->impl, "ref"));
    snprintf(op->impl, sizeof(op->impl), "ref:any");
    ck_ms_ok(create(&job, err));

    snprintf(op->impl, sizeof(op->impl), "jit:of_tomorrow");
    char line[160];
    snprintf(line, sizeof(line), "plan line %d: conv2d_bwd_weights %s: jit:of_tomorrow: ",
             plan_spec_op_line(job.spec, PLAN_TRAIN, (int)(op - job.spec->uses[PLAN_TRAIN].ops)),
             op->name);
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, line);
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, " here offers ");
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, "ref:any");
    job_fini(&job);
}
END_TEST

START_TEST(a_spec_of_another_machine_is_refused)
{
    struct job job = job_of(LINEAR, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_machine here = job.spec->machine;
    snprintf(job.spec->machine.isa, PLAN_TOKEN_MAX, "avx1024");
    ck_ms_fails(create(&job, err), MS_E_INVALID, "plan line 6: isa 'avx1024' is unknown");
    job.spec->machine = here;
    snprintf(job.spec->machine.library, PLAN_TOKEN_MAX, "1.2.3");
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, "plan line 7: onednn 1.2.3: this machine has");
    job.spec->machine = here;
    job.spec->machine.mixed_caches = 1; /* then this machine's do not count */
    ck_ms_ok(create(&job, err));
    job.spec->machine.mixed_caches = 0;
    job.spec->machine.caches[1]++;
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, "plan line 8: caches ");
    job.spec->machine = here;
    ck_ms_ok(create(&job, err));
    job_fini(&job);
}
END_TEST

START_TEST(a_precision_that_nothing_computes_with_is_refused_by_tensor_and_type)
{
    struct job job = job_of(LENET5, 1, PLAN_RECOMPUTE_OFF, 8);
    const struct graph *graph = job.graphs[PLAN_TRAIN];
    struct plan_request request = {
        .world = 8, .threads = 1, .graphs = {graph}, .precision = MS_BF16};
    struct plan_spec *other = NULL;
    char want[160];
    snprintf(want, sizeof(want), "tensor %s of graph lenet5 would be bf16",
             graph_tensor(graph, graph_data_index(graph))->name);

    ck_ms_fails(plan_choose(&request, &other, err), MS_E_UNSUPPORTED, want);
    ck_assert_ptr_null(other);
    job.spec->precision = MS_BF16;
    char *text = format(job.spec);
    ck_assert_ptr_nonnull(strstr(text, "\nprecision bf16\n"));
    ck_ms_ok(plan_spec_parse(text, strlen(text), &other, err));
    ck_assert_int_eq(other->precision, MS_BF16);
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, want);
    ck_ms_fails(create(&job, err), MS_E_UNSUPPORTED, "plan line 9: precision bf16: ");
    free(text);
    plan_spec_destroy(other);
    job_fini(&job);
}
END_TEST

/* What is not chosen follows from the graph, and must be what the line says. */
START_TEST(a_line_that_is_not_the_graphs_is_named)
{
    struct job job = job_of(LENET5, 1, PLAN_RECOMPUTE_OFF, 8);
    struct plan_spec_use *use = &job.spec->uses[PLAN_TRAIN];
    struct plan_spec_op *conv = find_op(job.spec, "conv2d");
    struct plan_spec_op *relu = find_op(job.spec, "relu_bwd");
    struct plan_spec_op kept[2] = {*conv, *relu};

    snprintf(conv->weights, sizeof(conv->weights), "of_stone");
    ck_ms_fails(create(&job, err), MS_E_INVALID, "conv2d conv1: cannot have weights=of_stone here");
    *conv = kept[0];
    snprintf(relu->impl, sizeof(relu->impl), "kernel:sigmoid");
    ck_ms_fails(create(&job, err), MS_E_INVALID, "kernel:relu_backward");
    *relu = kept[1];
    conv->again = 1;
    ck_ms_fails(create(&job, err), MS_E_INVALID,
                "op 0 conv1 cannot be made again: it is no batch norm");
    *conv = kept[0];
    use->n_ops--;
    ck_ms_fails(create(&job, err), MS_E_INVALID,
                "before it op 29, conv2d_bwd_weights: its line is missing");
    use->n_ops++;
    job.spec->params[2].shape.dim[1]++;
    ck_ms_fails(create(&job, err), MS_E_INVALID,
                "parameter fc2.weight is (84, 121) there, and (84, 120) in this job");
    job.spec->params[2].shape.dim[1]--;
    job.spec->buckets[0].count += 16;
    ck_ms_fails(create(&job, err), MS_E_INVALID, "bucket 0 of 1 is ");
    job.spec->buckets[0].count -= 16;
    use->batch.dim[0]++;
    ck_ms_fails(create(&job, err), MS_E_INVALID,
                "the batch of graph lenet5 for train is (4, 1, 32");
    use->batch.n_dims = 0;
    ck_ms_fails(create(&job, err), MS_E_INVALID, "before it a use train is missing");
    job_fini(&job);
}
END_TEST

/* ---- a text that was kept -----------------------------------------------------------------------
 */

START_TEST(a_plan_is_what_it_was)
{
    if (golden_plan_begin()) {
        struct plan_spec *spec = spec_of(_i, 1, PLAN_RECOMPUTE_OFF, 8);
        ck_golden_plan(spec, networks[_i].name);
        plan_spec_destroy(spec);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_spec");
    TCase *tc = tcase_create("texts");
    tcase_add_test(tc, machines_that_differ_in_their_caches_are_written_down_as_that);
    tcase_add_loop_test(tc, what_is_written_is_read_again, 0, N_NETWORKS);
    tcase_add_test(tc, a_digest_is_the_same_for_the_same_bits_only);
    tcase_add_loop_test(tc, a_line_that_is_damaged_is_named, 0, N_NETWORKS);
    tcase_add_test(tc, a_text_that_was_cut_is_refused);
    tcase_add_loop_test(tc, another_value_is_refused_in_words, 0,
                        sizeof(others) / sizeof(others[0]));
    tcase_add_test(tc, items_are_on_the_lines_that_they_are_said_to_be_on);
    tcase_add_loop_test(tc, who_chooses_twice_chooses_the_same, 0, N_NETWORKS);
    tcase_add_loop_test(tc, a_plan_is_made_of_what_was_read, 0, N_NETWORKS);
    tcase_add_test(tc, a_spec_is_obeyed_where_oneDNN_would_take_other_code);
    tcase_add_test(tc, a_spec_of_another_machine_is_refused);
    tcase_add_test(tc, a_precision_that_nothing_computes_with_is_refused_by_tensor_and_type);
    tcase_add_test(tc, a_line_that_is_not_the_graphs_is_named);
    tcase_add_loop_test(tc, a_plan_is_what_it_was, LINEAR, LENET5 + 1);
    tcase_add_loop_test(tc, a_plan_is_what_it_was, LAYERS, LAYERS + 1);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
