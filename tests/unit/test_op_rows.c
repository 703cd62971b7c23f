/* test_op_rows.c - every op has its rows: shape rule, gradient, lowering, cost, reference, man page
 *
 * A graph is built around each forward op, by what its row says that it wants: sources and
 * parameters of several shapes are offered until its shape rule takes them. So a new op is held to
 * its formula, by finite differences and by its plan, before anybody writes a test of it. */
#include "libworker/graph/op.h"
#include "libworker/plan/ops.h"
#include "tests/unit/gradients.h"
#include "tests/unit/plan_case.h"

#include <stdio.h>

enum { BATCH = 3, OUT = 4, KERNEL = 2, SOURCES = 4, WORDS = 7, TOKENS = 4, PARAM_SHAPES = 9 };

static const struct init normal = {INIT_NORMAL, 0.5};

/* ---- a graph around an op -----------------------------------------------------------------------
 */

struct offer {  /* what the op is offered, counted through */
    int source; /* image, rows, sequence, tokens */
    int params[GRAPH_OP_TENSORS_MAX];
};

static int next_offer(struct offer *offer)
{
    int i = 0;
    while (i < GRAPH_OP_TENSORS_MAX && ++offer->params[i] == PARAM_SHAPES) {
        offer->params[i++] = 0;
    }
    if (i < 3) { /* no op has more parameters that differ */
        return 1;
    }
    *offer = (struct offer){.source = offer->source + 1};
    return offer->source < SOURCES;
}

static int tokens_of(struct graph *g)
{
    const struct shape tokens = {2, {BATCH, TOKENS}};
    return graph_data(g, "tokens", &tokens, NULL);
}

/* Each token as so many channels. */
static int sequence_of(struct graph *g)
{
    const struct shape weight = {2, {WORDS, 12}};
    struct op op = {.kind = OP_EMBEDDING, .in = {tokens_of(g)}};
    op.in[1] = graph_param(g, "stem.weight", &weight, normal, NULL);
    return graph_apply(g, &op, NULL);
}

/* Images that depend on a parameter, or the same as rows, or sequences; tokens depend on nothing.
 */
static int source_of(struct graph *g, int which)
{
    if (which > 1) {
        return which == 2 ? sequence_of(g) : tokens_of(g);
    }
    struct shape images = {4, {BATCH, 2, 6, 6}};
    struct shape weight = {4, {3, 2, 3, 3}};
    int x = graph_data(g, "image", &images, NULL);
    struct op_window same = graph_window_same(g, x, 3, 1);
    int y = graph_conv2d(g, x, graph_param(g, "stem.weight", &weight, normal, NULL), &same, NULL);
    return which == 1 ? graph_flatten(g, y, NULL) : y;
}

static int label_of(struct graph *g, enum ms_dtype dtype, const struct shape *values)
{
    struct shape classes = {1, {BATCH}};
    return graph_label(g, "label", dtype == MS_F32 ? values : &classes, dtype, NULL);
}

/* Of each channel of images. */
static int mean_of(struct graph *g, int source)
{
    const int64_t *dim = graph_tensor(g, source)->shape.dim;
    const struct op_window whole = {
        .kernel_h = dim[2], .kernel_w = dim[3], .stride_h = 1, .stride_w = 1};
    return graph_avg_pool(g, source, &whole, NULL);
}

static int input_of(struct graph *g, char want, int slot, int source, const struct offer *offer)
{
    const struct shape *values = &graph_tensor(g, source)->shape;
    int64_t c = values->dim[shape_is_sequence(values) ? 2 : 1];
    const struct shape shapes[PARAM_SHAPES] = {{1, {c}},
                                               {2, {WORDS, c}},
                                               {1, {OUT}},
                                               {2, {OUT, c}},
                                               {4, {OUT, c, KERNEL, KERNEL}},
                                               {4, {c, OUT, KERNEL, KERNEL}},
                                               {2, {c, (c + 3) / 4}},
                                               {2, {c, (c + 2) / 3}},
                                               {2, {c, c}}};
    char name[32];
    snprintf(name, sizeof(name), "op.%d", slot);
    switch (want) {
    case 'p':
        return graph_param(g, name, &shapes[offer->params[slot - 1]], normal, NULL);
    case 'd':
        return offer->source == 3 ? source : -1;
    case 's':
        return graph_state(g, name, &shapes[0], (struct init){INIT_CONSTANT, 1}, 0.9, NULL);
    case 'l':
    case 'i':
        return label_of(g, MS_I32, values);
    case 'f':
        return label_of(g, MS_F32, values);
    default: /* the second may be a gate */
        return slot > 0 && offer->params[slot - 1] == 1 && values->n_dims == 4 ? mean_of(g, source)
                                                                               : source;
    }
}

/* The loss of what the op made; of a loss itself. */
static int finish(struct graph *g, const struct op_row *row, int source, int y)
{
    int is_rows = graph_tensor(g, y)->shape.n_dims == 2;
    int output = row->is_loss ? source : !is_rows ? graph_flatten(g, y, NULL) : y;
    int loss = y;
    if (!row->is_loss) {
        loss = graph_softmax_ce(g, output, label_of(g, MS_I32, NULL), NULL);
    }
    int rc = graph_set_output(g, output, NULL);
    return rc < 0 ? rc : graph_set_loss(g, loss, NULL);
}

/* NULL: the op does not take what is offered. */
static struct graph *try_offer(const struct op_row *row, const struct offer *offer, int n_in)
{
    struct graph *g = graph_create("around");
    ck_assert_ptr_nonnull(g);
    int source = source_of(g, offer->source);
    struct op op = {.kind = row->kind,
                    .n_in = n_in,
                    .window = graph_window_valid(KERNEL, KERNEL),
                    .epsilon = 1e-5,
                    .rate = 0.25,
                    .smoothing = 0.2,
                    .alpha = 0.3};
    for (int i = 0; i < n_in; i++) {
        op.in[i] = input_of(g, row->wants[i], i, source, offer);
    }
    int y = graph_apply(g, &op, NULL);
    if (y < 0 || finish(g, row, source, y) < 0) {
        graph_destroy(g);
        return NULL;
    }
    return g;
}

/* ... with so many of its inputs. */
static struct graph *graph_around_with(enum op_kind kind, int n_in)
{
    struct offer offer = {.source = 0};
    struct graph *g = NULL;
    do {
        g = try_offer(op_row(kind), &offer, n_in);
    } while (g == NULL && next_offer(&offer));
    ck_assert_msg(g != NULL, "%s takes none of the shapes that this test offers: add one",
                  op_row(kind)->name);
    return g;
}

static struct graph *graph_around(enum op_kind kind)
{
    return graph_around_with(kind, op_row(kind)->n_in);
}

static int is_forward(int kind)
{
    return !op_is_backward(op_row((enum op_kind)kind));
}

/* ---- rows ---------------------------------------------------------------------------------------
 */

static int is_on_page(const struct op_row *row, const char *page)
{
    char line[256];
    snprintf(line, sizeof(line), ".It Sy %s\n%s\n", row->name, row->page);
    return strstr(page, line) != NULL;
}

/* NULL: nothing. */
static const char *missing(const struct op_row *row, const struct plan_op *plan, int has_reference,
                           const char *page)
{
    int forward = !op_is_backward(row);
    const struct {
        int is_there;
        const char *what;
    } parts[] = {
        {row->name != NULL && row->n_in > 0 && row->n_out > 0, "name and arity"},
        {!forward || strlen(row->wants) == (size_t)row->n_in, "roles of its inputs"},
        {!forward || row->infer != NULL, "shape rule"},
        {!forward || (row->gradient != NULL && row->differentiable != 0), "gradient"},
        {plan->lower != NULL || plan->fuse != NULL, "lowering"},
        {row->products != NULL, "cost"},
        {has_reference, "reference"},
        {row->page != NULL, "line of the man page or the mark OP_NOT_FOR_USERS"},
        {row->page == NULL || row->page[0] == '\0' || is_on_page(row, page),
         "line in docs/man/msched-job.5 that is the row's"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        if (!parts[i].is_there) {
            return parts[i].what;
        }
    }
    return NULL;
}

static char *read_page(void)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    snprintf(path, sizeof(path), "%s/docs/man/msched-job.5", root != NULL ? root : ".");
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "no %s: set MSCHED_SOURCE_ROOT", path);
    char *page = calloc(1, 65536);
    ck_assert_ptr_nonnull(page);
    ck_assert_uint_gt(fread(page, 1, 65535, file), 0);
    fclose(file);
    return page;
}

START_TEST(a_row_lacks_nothing)
{
    enum op_kind kind = (enum op_kind)_i;
    char *page = read_page();
    const char *what = missing(op_row(kind), plan_op(kind), ref_graph_knows(kind), page);

    ck_assert_msg(what == NULL, "%s has no %s", op_row(kind)->name, what);

    free(page);
}
END_TEST

START_TEST(a_row_has_a_name_of_its_own)
{
    for (int other = 0; other < _i; other++) {
        ck_assert_str_ne(op_row((enum op_kind)other)->name, op_row((enum op_kind)_i)->name);
    }
    ck_assert_int_eq(op_row((enum op_kind)_i)->kind, _i);
    ck_assert_int_eq(plan_op((enum op_kind)_i)->kind, _i);
}
END_TEST

/* What a table calls the same bytes, the other one does not copy. */
START_TEST(a_view_has_no_step)
{
    const int is_same = plan_op((enum op_kind)_i)->lower == lower_same;
    ck_assert_int_eq(op_row((enum op_kind)_i)->is_view, is_same);
}
END_TEST

START_TEST(what_a_row_lacks_is_named)
{
    const struct op_row *whole = op_row(OP_RELU);
    const struct plan_op *plan = plan_op(OP_RELU);
    const struct plan_op no_lowering = {.kind = OP_RELU};
    struct op_row row = *whole;
    char *page = read_page();

    ck_assert_ptr_null(missing(whole, plan, 1, page));
    ck_assert_str_eq(missing(whole, plan, 0, page), "reference");
    ck_assert_str_eq(missing(whole, &no_lowering, 1, page), "lowering");
    ck_assert_ptr_nonnull(missing(whole, plan, 1, ".It Sy relu\nAnother line.\n"));
    row.gradient = NULL;
    ck_assert_str_eq(missing(&row, plan, 1, page), "gradient");
    row = *whole;
    row.infer = NULL;
    ck_assert_str_eq(missing(&row, plan, 1, page), "shape rule");
    row = *whole;
    row.products = NULL;
    ck_assert_str_eq(missing(&row, plan, 1, page), "cost");
    row = *whole;
    row.page = NULL;
    ck_assert_ptr_nonnull(missing(&row, plan, 1, page));
    row.page = OP_NOT_FOR_USERS;
    ck_assert_ptr_null(missing(&row, plan, 1, page));
    free(page);
}
END_TEST

/* ---- what the rows do ---------------------------------------------------------------------------
 */

START_TEST(gradients_are_those_of_finite_differences)
{
    if (!is_forward(_i)) {
        return;
    }
    const struct op_row *row = op_row((enum op_kind)_i);
    for (int n = row->n_in - row->n_optional; n <= row->n_in; n++) {
        struct graph *g = graph_around_with(row->kind, n);
        ck_ms_ok(graph_differentiate(g, err));

        ck_gradients(g, 20);

        graph_destroy(g);
    }
}
END_TEST

/* Takes graph. */
static void ck_plan(const struct op_row *row, struct graph *graph)
{
    struct plan_case c;
    struct case_options options = {.training = 1, .threads = 1};
    case_init(&c, graph, &options);
    case_reference(&c, 3);
    case_reference_batch(&c);
    ref_graph_run(c.ref);

    double loss = (double)case_step(&c);
    const char *which = NULL;
    double worst = case_worst_gradient(&c, &which);

    double want = ref_graph_loss(c.ref);
    ck_assert_msg(fabs(loss - want) <= 1e-5 * fabs(want), "loss %g, want %g", loss, want);
    ck_assert_msg(worst <= 1e-4, "%s: %s is %.3g off", row->name, which, worst);
    case_fini(&c);
}

START_TEST(plans_compute_what_the_references_do)
{
    if (!is_forward(_i)) {
        return;
    }
    const struct op_row *row = op_row((enum op_kind)_i);
    for (int n = row->n_in - row->n_optional; n <= row->n_in; n++) {
        ck_plan(row, graph_around_with(row->kind, n));
    }
}
END_TEST

START_TEST(every_backward_op_is_made_by_a_gradient)
{
    int is_made[OP_KINDS] = {0};
    for (int kind = 0; kind < OP_KINDS; kind++) {
        if (!is_forward(kind)) {
            continue;
        }
        struct graph *g = graph_around((enum op_kind)kind);
        ck_ms_ok(graph_differentiate(g, err));
        for (int i = graph_n_forward_ops(g); i < graph_n_ops(g); i++) {
            is_made[graph_op(g, i)->kind] = 1;
        }
        graph_destroy(g);
    }
    for (int kind = 0; kind < OP_KINDS; kind++) {
        ck_assert_msg(is_forward(kind) || is_made[kind], "nobody makes %s",
                      op_row((enum op_kind)kind)->name);
    }
}
END_TEST

START_TEST(backward_ops_are_not_for_builders)
{
    struct graph *g = graph_create("g");
    const struct op op = {.kind = OP_RELU_BWD};

    ck_ms_fails(graph_apply(g, &op, err), MS_E_INVALID, "relu_bwd is for graph_differentiate");

    graph_destroy(g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_rows");
    TCase *tc = tcase_create("rows");
    tcase_add_loop_test(tc, a_row_lacks_nothing, 0, OP_KINDS);
    tcase_add_loop_test(tc, a_row_has_a_name_of_its_own, 0, OP_KINDS);
    tcase_add_loop_test(tc, a_view_has_no_step, 0, OP_KINDS);
    tcase_add_test(tc, what_a_row_lacks_is_named);
    tcase_add_loop_test(tc, gradients_are_those_of_finite_differences, 0, OP_KINDS);
    tcase_add_loop_test(tc, plans_compute_what_the_references_do, 0, OP_KINDS);
    tcase_add_test(tc, every_backward_op_is_made_by_a_gradient);
    tcase_add_test(tc, backward_ops_are_not_for_builders);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
