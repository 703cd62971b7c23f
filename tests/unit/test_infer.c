/* test_infer.c - trained weights answer with the bits of their training; what does not fit is named
 */
#include "libworker/infer/infer.h"
#include "libworker/train/model_copy.h"
#include "tests/unit/array_files.h"
#include "tests/unit/train_case.h"

#include <math.h>

/* Batch norm and dropout: an evaluation does not do as a step does. 41 rows: the last batch is
 * short. */
#define NET                                                                                        \
    "network:\n  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}\n"                      \
    "  - batch_norm: {name: bn1}\n  - relu\n  - dropout: {rate: 0.5}\n  - global_avg_pool\n"       \
    "  - dense: {name: fc, out: classes}\n"
#define JOB                                                                                        \
    NET "dataset: {kind: shapes, samples: 64}\n"                                                   \
        "evaluate: {dataset: {kind: shapes, usage: test, samples: 41}, batch_size: 8, metrics: "   \
        "[top5]}\n"                                                                                \
        "transforms: [random_horizontal_flip: {prob: 1}, rescale: {scale: 0.0039, shift: "         \
        "0}]\nbatch_size: 16\noptimizer: {kind: sgd, learning_rate: 0.1}\n"

static const char *dir;
static char weights[512];
static struct job job;
static char *plan;
static struct train_result trained;

static void read_job(const char *text, struct job *ret)
{
    ck_ms_ok(job_parse(text, strlen(text), "the case", "/", NULL, 0, 0, ret, err));
}

static void setup(void)
{
    struct train_info info;
    dir = test_dir_make();
    snprintf(weights, sizeof(weights), "%s/weights.safetensors", dir);
    read_job(JOB, &job);
    const struct train_config cfg = train_case_config(&job, dir);
    struct train *train = train_create(&cfg);
    ck_ms_ok(train_prepare(train, &info, err));
    plan = strdup(train_plan_text(train));
    ck_assert_ptr_nonnull(plan);
    ck_ms_ok(train_run(train, &trained, err));
    train_destroy(train);
}

static void teardown(void)
{
    free(plan);
    test_dir_remove(dir);
}

static char noted[1024];

static void on_note(void *arg, const char *text)
{
    (void)arg;
    const size_t used = strlen(noted);
    snprintf(noted + used, sizeof(noted) - used, "%s\n", text);
}

static int64_t seen, seen_of;

static void on_progress(void *arg, int64_t rows, int64_t of)
{
    (void)arg;
    ck_assert_int_gt(rows, seen);
    seen = rows;
    seen_of = of;
}

static struct infer_config config(void)
{
    seen = 0;
    noted[0] = '\0';
    return (struct infer_config){.job = &job,
                                 .weights = weights,
                                 .plan = plan,
                                 .on_progress = on_progress,
                                 .on_note = on_note};
}

START_TEST(numbers_are_those_of_the_training_to_the_bit)
{
    const struct infer_config cfg = config();
    struct infer_evaluated evaluated;

    ck_ms_ok(infer_evaluate(&cfg, &evaluated, err));

    ck_assert(evaluated.loss == trained.eval_loss);
    ck_assert(evaluated.accuracy == trained.accuracy);
    ck_assert_int_eq(evaluated.rows, 41);
    ck_assert(evaluated.is_as_planned);
    ck_assert_ptr_nonnull(strstr(evaluated.members, "\"eval_loss\":"));
    ck_assert_ptr_nonnull(strstr(evaluated.members, ",\"top5\":"));
    ck_assert_str_eq(noted, "");
    ck_assert_int_eq(seen, 41);
    ck_assert_int_eq(seen_of, 41);
    free(evaluated.members);
}
END_TEST

/* Three shards of 14, 14 and 13 rows: what each counts is the same, but for the order of sums. */
START_TEST(ranks_of_the_training_have_their_shards)
{
    struct infer_evaluated one, three;
    struct infer_config cfg = config();
    ck_ms_ok(infer_evaluate(&cfg, &one, err));
    job.workers = 3;
    cfg = config();

    ck_ms_ok(infer_evaluate(&cfg, &three, err));

    ck_assert_double_eq_tol(one.loss, three.loss, 1e-9);
    ck_assert(one.accuracy == three.accuracy);
    ck_assert_int_eq(three.rows, 41);
    ck_assert_int_eq(seen, 41);
    free(one.members);
    free(three.members);
}
END_TEST

/* Fewer rows than ranks: some have none. */
START_TEST(a_shard_may_be_empty)
{
    struct infer_evaluated evaluated;
    job.workers = 5;
    job.evaluate_dataset.samples = 3;
    const struct infer_config cfg = config();

    ck_ms_ok(infer_evaluate(&cfg, &evaluated, err));

    ck_assert_int_eq(evaluated.rows, 3);
    ck_assert_int_eq(seen, 3);
    free(evaluated.members);
}
END_TEST

START_TEST(without_its_plan_one_is_chosen)
{
    static char other[] = "format 7\n";
    struct infer_evaluated evaluated;
    struct infer_config cfg = config();
    char *const plans[] = {NULL, other};

    for (size_t i = 0; i < MS_ARRAY_SIZE(plans); i++) {
        cfg.plan = plans[i];
        noted[0] = '\0';
        seen = 0;
        ck_ms_ok(infer_evaluate(&cfg, &evaluated, err));
        ck_assert_double_eq_tol(evaluated.loss, trained.eval_loss, 1e-5);
        ck_assert(!evaluated.is_as_planned);
        ck_assert_int_eq(strstr(noted, "the plan of the training is not taken") != NULL, i == 1);
        free(evaluated.members);
    }
}
END_TEST

/* A plan whose evaluation has other batches has the layouts all the same. */
START_TEST(other_batches_are_planned_beside_the_training)
{
    struct infer_evaluated evaluated;
    job.evaluate_batch_size = 5;
    const struct infer_config cfg = config();

    ck_ms_ok(infer_evaluate(&cfg, &evaluated, err));

    ck_assert_double_eq_tol(evaluated.loss, trained.eval_loss, 1e-5);
    ck_assert(!evaluated.is_as_planned);
    ck_assert_str_eq(noted, "");
    free(evaluated.members);
}
END_TEST

/* ---- predictions ---- */

static char *predict(const struct infer_config *cfg, struct rows_format wish, int64_t *ret_rows)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_ms_ok(infer_predict(cfg, &wish, out, ret_rows, err));
    fclose(out);
    return text;
}

/* By hand: the log of the probability that the label has. */
START_TEST(probabilities_are_those_that_the_loss_is_made_of)
{
    const struct infer_config cfg = config();
    int64_t rows = 0;
    double sum = 0;
    int64_t right = 0;
    char *text = predict(&cfg, (struct rows_format){.kind = ROWS_PROBABILITIES}, &rows);

    char *line = strchr(text, '\n') + 1;
    for (int64_t i = 0; i < rows; i++) {
        char *at = line;
        ck_assert_int_eq(strtoll(at, &at, 10), i);
        const long label = strtol(at + 1, &at, 10);
        right += label == strtol(at + 1, &at, 10);
        double p = 0, all = 0;
        for (long c = 0; c < 10; c++) {
            const double x = strtod(at + 1, &at);
            p = c == label ? x : p;
            all += x;
        }
        ck_assert_double_eq_tol(all, 1, 1e-6);
        sum -= log(p);
        ck_assert(*at == '\n');
        line = at + 1;
    }

    ck_assert_int_eq(rows, 41);
    ck_assert(*line == '\0');
    ck_assert_double_eq_tol(sum / 41, trained.eval_loss, 1e-5);
    ck_assert_double_eq_tol((double)right / 41, trained.accuracy, 1e-12);
    free(text);
}
END_TEST

START_TEST(each_pass_says_the_same)
{
    const struct rows_format wish = {.kind = ROWS_RAW, .is_json = 1};
    int64_t rows = 0;
    struct infer_config cfg = config();
    char *once = predict(&cfg, wish, &rows);
    cfg = config();
    char *again = predict(&cfg, wish, &rows);

    ck_assert_str_eq(once, again);
    ck_assert_int_eq(strncmp(once, "{\"sample\":0,\"label\":", 20), 0);
    free(once);
    free(again);
}
END_TEST

/* ---- what does not fit ---- */

static void refuse(const char *text, int code, const char *want)
{
    struct infer_evaluated evaluated;
    if (text != NULL) {
        read_job(text, &job);
    }
    const struct infer_config cfg = config();
    ck_ms_fails(infer_evaluate(&cfg, &evaluated, err), code, want);
}

START_TEST(weights_of_another_network_are_named)
{
    char text[2048];
    const char *data = strstr(JOB, "dataset:");
    snprintf(text, sizeof(text), "network: lenet5\n%s", data);
    refuse(text, MS_E_INVALID, "is not in the network lenet5; are these weights of another");
    snprintf(text, sizeof(text),
             "network:\n  - conv2d: {name: conv1, out: 3, kernel: 3, padding: same}\n"
             "  - batch_norm: {name: bn1}\n  - global_avg_pool\n"
             "  - dense: {name: fc, out: classes}\n%s",
             data);
    refuse(text, MS_E_INVALID, "has shape (4, 3, 3, 3), the network wants (3, 3, 3, 3)");
}
END_TEST

START_TEST(data_of_another_shape_are_refused)
{
    job.evaluate_dataset = (struct data_spec){.kind = DATA_NONLINEAR, .samples = 16};
    job.n_transforms = 0;
    refuse(NULL, MS_E_INVALID, "evaluate.dataset: its samples are 2x1x1, and the network was");
}
END_TEST

START_TEST(other_data_without_labels_are_refused)
{
    struct infer_config cfg = config();
    const struct rows_format wish = {.kind = ROWS_RAW};
    int64_t rows = 0;
    cfg.has_no_labels = 1;
    ck_ms_fails(infer_predict(&cfg, &wish, stdout, &rows, err), MS_E_INVALID,
                "--no-labels is for data of kind csv, numpy and safetensors");
}
END_TEST

static void write_file(const char *name, const char *text)
{
    file_write(dir, name, text, strlen(text));
}

/* It would be answered for, and wrongly. */
START_TEST(a_table_is_not_read_by_position_where_nobody_knows_the_columns)
{
    char text[2048];
    struct infer_config cfg = config();
    const struct rows_format wish = {.kind = ROWS_RAW};
    int64_t rows = 0;
    write_file("swapped.csv", "b,a,c\n1,2,0\n3,4,1\n");
    snprintf(text, sizeof(text),
             "network: [flatten, dense: {out: classes}]\nbatch_size: 2\n"
             "optimizer: {kind: sgd, learning_rate: 0.1}\n"
             "dataset: {kind: csv, path: /nowhere/t.csv, shape: [2], classes: 2}\n"
             "evaluate: {dataset: {kind: csv, path: %s/swapped.csv}}\n",
             dir);
    refuse(text, MS_E_NOT_FOUND,
           "evaluate.dataset: which columns were trained is not known (/nowhere/t.csv cannot be "
           "opened");
    for (cfg.has_no_labels = 0; cfg.has_no_labels < 2; cfg.has_no_labels++) {
        ck_ms_fails(infer_predict(&cfg, &wish, stdout, &rows, err), MS_E_NOT_FOUND,
                    "evaluate.dataset: which columns were trained is not known");
    }
}
END_TEST

/* Of two inputs and two classes, all zero. */
static void write_dense(void)
{
    static const char header[] =
        "{\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]}}";
    uint8_t bytes[512] = {sizeof(header) - 1};
    memcpy(bytes + 8, header, sizeof(header) - 1);
    file_write(dir, "weights.safetensors", bytes, 8 + sizeof(header) - 1 + 24);
}

/* Every other row before the eighth is long, so that who reads the other ones is ahead. */
static void write_rows(void)
{
    enum { DIGITS = 1 << 20 };
    char *long_one = malloc(DIGITS + 1);
    char path[512];
    ck_assert_ptr_nonnull(long_one);
    memset(long_one, '0', DIGITS);
    long_one[DIGITS] = '\0';
    snprintf(path, sizeof(path), "%s/rows.csv", dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("a,b,c\n", file);
    for (int i = 0; i < 64; i++) {
        fprintf(file, "%s,%s,%d\n", i == 7 || i == 8 ? "x" : "1",
                i % 2 == 1 && i < 7 ? long_one : "0", i % 2);
    }
    fclose(file);
    free(long_one);
}

/* Of two passes the one that has the eighth row comes to it after the other one to the ninth. */
START_TEST(the_first_row_that_cannot_be_read_is_named)
{
    char text[2048];
    struct infer_config cfg = config();
    const struct rows_format wish = {.kind = ROWS_RAW};
    int64_t n = 0;
    FILE *out = fopen("/dev/null", "w");
    ck_assert_ptr_nonnull(out);
    write_rows();
    snprintf(text, sizeof(text),
             "network: [flatten, dense: {name: fc, out: classes}]\nbatch_size: 16\nthreads: 1\n"
             "optimizer: {kind: sgd, learning_rate: 0.1}\n"
             "dataset: {kind: csv, path: %s/rows.csv}\n"
             "evaluate: {dataset: {kind: csv, path: %s/rows.csv}}\n",
             dir, dir);
    read_job(text, &job);
    write_dense();
    cfg.plan = NULL;
    for (int i = 0; i < 3; i++) {
        ck_ms_fails(infer_predict(&cfg, &wish, out, &n, err), MS_E_INVALID, "rows.csv:9:");
    }
    fclose(out);
}
END_TEST

START_TEST(where_predictions_cannot_be_written_is_named)
{
    struct infer_config cfg = config();
    const struct rows_format wish = {.kind = ROWS_RAW};
    int64_t n = 0;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        return;
    }
    cfg.out_name = "rows.csv";
    ck_ms_fails(infer_predict(&cfg, &wish, full, &n, err), MS_E_IO,
                "cannot write predictions to rows.csv: No space left on device");
    fclose(full);
}
END_TEST

#define TYPED                                                                                      \
    "network: [flatten, dense: {out: classes}]\nbatch_size: 2\n"                                   \
    "optimizer: {kind: sgd, learning_rate: 0.1}\n"                                                 \
    "dataset: {kind: program, path: /nowhere/p, shape: [1, 2, 2], classes: 2%s}\n"                 \
    "evaluate: {dataset: {kind: numpy, path: %s}}\n"

START_TEST(floats_are_no_data_for_a_network_of_bytes)
{
    static const float numbers[8] = {1, 2, 3, 4};
    static const int32_t labels[2] = {0, 1};
    char text[2048];
    npy_write(dir, "x.npy", "<f4", "(2, 2, 2)", numbers, sizeof(numbers));
    npy_write(dir, "y.npy", "<i4", "(2,)", labels, sizeof(labels));
    snprintf(text, sizeof(text), TYPED, ", values: bytes", dir);
    refuse(text, MS_E_INVALID, "has numbers (float32), and what is trained on bytes (uint8)");
    ck_assert_str_eq(noted, "");
    snprintf(text, sizeof(text), TYPED, "", dir);
    refuse(text, MS_E_INVALID, "are these weights of another");
    ck_assert_ptr_nonnull(strstr(noted, "the job does not say whether bytes or floats were trained "
                                        "on (dataset.values), and its data are not here to tell "
                                        "it: these are floats"));
    job.dataset = job.evaluate_dataset; /* in whose place there are floats */
    refuse(NULL, MS_E_INVALID, "are these weights of another");
    ck_assert_ptr_null(strstr(noted, "bytes or floats"));
}
END_TEST

START_TEST(files_that_are_missing_are_named)
{
    snprintf(weights, sizeof(weights), "%s/nowhere.safetensors", dir);
    refuse(NULL, MS_E_NOT_FOUND, "nowhere.safetensors");
    job.evaluate_dataset = (struct data_spec){.kind = DATA_MNIST, .path = "/nonexistent"};
    refuse(NULL, MS_E_NOT_FOUND, "evaluate.dataset: ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer");
    TCase *tc = test_case_create("infer");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, numbers_are_those_of_the_training_to_the_bit);
    tcase_add_test(tc, ranks_of_the_training_have_their_shards);
    tcase_add_test(tc, a_shard_may_be_empty);
    tcase_add_test(tc, without_its_plan_one_is_chosen);
    tcase_add_test(tc, other_batches_are_planned_beside_the_training);
    tcase_add_test(tc, probabilities_are_those_that_the_loss_is_made_of);
    tcase_add_test(tc, each_pass_says_the_same);
    tcase_add_test(tc, weights_of_another_network_are_named);
    tcase_add_test(tc, data_of_another_shape_are_refused);
    tcase_add_test(tc, other_data_without_labels_are_refused);
    tcase_add_test(tc, a_table_is_not_read_by_position_where_nobody_knows_the_columns);
    tcase_add_test(tc, the_first_row_that_cannot_be_read_is_named);
    tcase_add_test(tc, where_predictions_cannot_be_written_is_named);
    tcase_add_test(tc, floats_are_no_data_for_a_network_of_bytes);
    tcase_add_test(tc, files_that_are_missing_are_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
