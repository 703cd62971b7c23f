/* test_train_memory.c - a job is judged by what memory there is: all of it, none, or nobody knows
 */
#include "libworker/host/memory.h"
#include "libworker/host/offer.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/data_files.h"
#include "tests/unit/train_case.h"

static uint64_t memory;

uint64_t __wrap_memory_available(void);

uint64_t __wrap_memory_available(void)
{
    return memory;
}

static struct train_info info;
static int is_plan_given;

static int prepare_batch(uint64_t bytes, int64_t batch, struct ms_err *err)
{
    static const char *const larger[] = {"network=cifar_small", "dataset={kind: shapes}",
                                         "loss=softmax_cross_entropy"};
    static struct job job;
    memory = bytes;
    train_case_job(&job, larger, batch > 0 ? MS_ARRAY_SIZE(larger) : 0);
    job.batch_size = batch > 0 ? batch : job.batch_size;
    struct train_config cfg = train_case_config(&job, "");
    cfg.is_plan_given = is_plan_given;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    int rc = train_prepare(train, &info, err);
    train_destroy(train);
    return rc;
}

static int prepare(uint64_t bytes, struct ms_err *err)
{
    return prepare_batch(bytes, 0, err);
}

START_TEST(where_nothing_is_left_a_job_is_refused)
{
    ck_ms_fails(prepare(0, err), MS_E_FULL, "0 B are free; no batch size fits");
    ck_ms_fails(prepare(9, err), MS_E_FULL, "9 B are free; no batch size fits");
}
END_TEST

/* A plan that came with the job has batches of its own. */
START_TEST(another_batch_is_advised_without_the_plan_that_was_given)
{
    ck_ms_ok(prepare_batch(MEMORY_UNKNOWN, 5000, err));
    const uint64_t bytes = info.peak_bytes / 10;

    ck_ms_fails(prepare_batch(bytes, 5000, err), MS_E_FULL, " fits");
    is_plan_given = 1;
    ck_ms_fails(prepare_batch(bytes, 5000, err), MS_E_FULL, " (without --plan) fits");
}
END_TEST

/* What the evaluation alone asks for is named by its own key, and what it may stay at as well. */
START_TEST(the_batch_of_an_evaluation_is_named_where_it_is_too_large)
{
    static const char *const lines[] = {"network=cifar_small", "dataset={kind: shapes}",
                                        "loss=softmax_cross_entropy", "batch_size=8",
                                        "evaluate={dataset: {kind: shapes}, batch_size: 2048}"};
    struct job job;
    uint64_t peaks[2];
    struct ms_err why = {0, ""};
    for (int i = 0; i < 3; i++) {
        train_case_job(&job, lines, MS_ARRAY_SIZE(lines));
        job.evaluate_batch_size = i == 0 ? 8 : job.evaluate_batch_size;
        memory = i < 2 ? MEMORY_UNKNOWN : (peaks[0] + peaks[1]) / 2;
        struct train_config cfg = train_case_config(&job, "");
        struct train *train = train_create(&cfg);
        ck_assert_ptr_nonnull(train);
        const int rc = train_prepare(train, &info, &why);
        ck_assert_int_eq(rc, i < 2 ? 0 : MS_E_FULL);
        if (i < 2) {
            peaks[i] = info.peak_bytes;
        }
        train_destroy(train);
    }
    ck_assert_uint_lt(peaks[0], peaks[1]);
    ck_assert_msg(strstr(why.text, "; evaluate.batch_size 8 fits") != NULL, "%s", why.text);
}
END_TEST

static char noted[512];

static void on_note(void *arg, const char *text)
{
    (void)arg;
    snprintf(noted, sizeof(noted), "%s", text);
}

/* The bytes of its peak, with that much memory. */
static uint64_t peak_of(const struct job *job, const char *run_dir, uint64_t bytes)
{
    struct train_config cfg = train_case_config(job, run_dir);
    cfg.on_note = on_note;
    memory = bytes;
    noted[0] = '\0';
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_prepare(train, &info, err));
    train_destroy(train);
    return info.peak_bytes;
}

/* It is judged with the rest, and is the first that does without. */
START_TEST(the_spare_copy_of_checkpoints_counts_and_goes_first)
{
    static const char *const sets[] = {"network=cifar_small",
                                       "dataset={kind: shapes}",
                                       "loss=softmax_cross_entropy",
                                       "batch_size=8",
                                       "optimizer={kind: adam, learning_rate: 0.01}",
                                       "checkpoint={directory: c}"};
    const char *run_dir = test_dir_make();
    struct job job;
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets) - 1);
    const uint64_t without = peak_of(&job, run_dir, MEMORY_UNKNOWN);
    ck_assert_str_eq(noted, "");
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    const uint64_t with = peak_of(&job, run_dir, MEMORY_UNKNOWN);
    ck_assert_uint_gt(with, without);
    ck_assert_str_eq(noted, "");

    ck_assert_uint_eq(peak_of(&job, run_dir, without / 9 * 10 + 100), without);

    ck_assert_msg(strstr(noted, "no memory for a spare copy of the state") != NULL, "%s", noted);
    test_dir_remove(run_dir);
}
END_TEST

START_TEST(where_nobody_knows_a_job_is_tried)
{
    ck_ms_ok(prepare(MEMORY_UNKNOWN, err));
}
END_TEST

/* The advice is one that can be followed, however far off the job was, and gives not too little. */
START_TEST(the_batch_that_is_said_to_fit_does)
{
    static const int64_t batches[] = {128, 1000, 5000};
    static const int percent[] = {80, 60, 40, 20, 10};
    int n_told = 0;
    ck_ms_ok(prepare_batch(MEMORY_UNKNOWN, batches[_i], err));
    const uint64_t peak = info.peak_bytes;
    for (size_t i = 0; i < MS_ARRAY_SIZE(percent); i++) {
        struct ms_err why = {0, ""};
        const uint64_t bytes = peak / 100 * (uint64_t)percent[i];
        int rc = prepare_batch(bytes, batches[_i], &why);
        const char *told = strstr(why.text, "batch_size ");
        if (rc == MS_OK ||
            told == NULL) { /* with activations made again it fits, or nothing does */
            continue;
        }
        n_told++;
        const int64_t batch = strtoll(told + strlen("batch_size "), NULL, 10);
        ck_assert_int_lt(batch, batches[_i]);
        ck_ms_ok(prepare_batch(bytes, batch, err));
        /* two of a hundred bytes stay free for the next worker, who finds a little less */
        ck_assert(2 * batch >= batches[_i] ||
                  prepare_batch(bytes - bytes / 50, 2 * batch, NULL) < 0);
    }
    ck_assert_int_gt(n_told, 0);
}
END_TEST

/* ---- the copy of a data set's file, which all ranks of a host share ---- */

enum { IMAGES = 40000, COPY = IMAGES * 28 * 28 };

static const char *dir;
static struct job mnist;
static struct data_source *elsewhere; /* the same files, as another job has them */

static void write_packed(const char *name, uint32_t magic, unsigned modulus)
{
    size_t size = 0;
    uint8_t *bytes = idx_make(magic, IMAGES, 28, 28, modulus, &size);
    file_write_gz(dir, name, bytes, size, 0);
    free(bytes);
}

static void make_job(const char *network, struct job *ret)
{
    char dataset[128];
    const char *const sets[] = {network,
                                dataset,
                                "transforms=[{resize: {size: [32, 32]}}]",
                                "batch_size=8",
                                "steps=1",
                                "epochs=1",
                                "loss=softmax_cross_entropy"};
    snprintf(dataset, sizeof(dataset), "dataset={kind: mnist, path: %s}", dir);
    train_case_job(ret, sets, MS_ARRAY_SIZE(sets));
}

static void setup_mnist(void)
{
    dir = test_dir_make();
    write_packed("train-images-idx3-ubyte.gz", 2051, 251);
    write_packed("train-labels-idx1-ubyte.gz", 2049, 10);
    make_job("network=lenet5", &mnist);
    ck_ms_ok(data_open(&mnist.dataset, &elsewhere, err));
    memory = MEMORY_UNKNOWN;
}

static void teardown_mnist(void)
{
    data_close(elsewhere);
    test_dir_remove(dir);
}

/* Another job has read all. */
static void read_elsewhere(void)
{
    struct data_record record;
    ck_ms_ok(data_read(elsewhere, IMAGES - 1, &record, err));
    ck_assert_int_eq(data_in_memory(elsewhere), COPY);
}

static int prepare_mnist(uint64_t bytes, struct ms_err *err)
{
    const struct train_config cfg = train_case_config(&mnist, "");
    memory = bytes;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    int rc = train_prepare(train, &info, err);
    train_destroy(train);
    return rc;
}

START_TEST(a_copy_that_is_in_memory_already_needs_no_free_memory)
{
    ck_ms_ok(prepare_mnist(MEMORY_UNKNOWN, err));
    const uint64_t peak = info.peak_bytes;
    const uint64_t rest = peak - COPY;
    ck_ms_fails(prepare_mnist(rest + COPY / 2, err), MS_E_FULL, " are free; ");

    read_elsewhere();

    ck_ms_ok(prepare_mnist(rest + COPY / 2, err));
    ck_ms_ok(prepare_mnist(rest, err));
    ck_assert_uint_eq(info.peak_bytes, peak);
    ck_ms_fails(prepare_mnist(rest - 4096, err), MS_E_FULL,
                " are free beside the 31.36 MB of its data that are in memory already; ");
}
END_TEST

/* What a rank of a network whose activations can be made again chooses. Malloc'ed. */
static char *chosen(const struct host_offer *offers, uint64_t *ret_peak)
{
    static struct job job;
    struct train_config cfg = train_case_config(&job, "");
    const char *text = NULL;
    make_job("network=resnet50", &job);
    cfg.offers = offers;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_open(train, err));
    ck_ms_ok(train_choose(train, &text, err));
    char *copy = strdup(text);
    *ret_peak = train->known.peak_bytes;
    train_destroy(train);
    return copy;
}

/* A tenth of what is free is no room for a choice. */
START_TEST(what_this_host_offers_beside_a_copy_is_room_for_the_same_plan)
{
    uint64_t peak = 0;
    uint64_t less = 0;
    char *plenty = chosen(NULL, &peak);
    const struct host_offer tight = {.memory_bytes = peak / 9 * 10 - COPY / 2};
    char *other = chosen(&tight, &less);
    ck_assert_str_ne(other, plenty);
    ck_assert_uint_lt(less, peak);

    read_elsewhere();

    char *same = chosen(&tight, &less);
    ck_assert_str_eq(same, plenty);
    free(plenty);
    free(other);
    free(same);
}
END_TEST

/* Else memory would be short before anybody has said so. */
START_TEST(nothing_is_read_before_the_memory_was_judged)
{
    const struct train_config cfg = train_case_config(&mnist, "");
    struct batch batch;
    const char *text = NULL;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_ms_ok(train_open(train, err));
    ck_ms_ok(train_choose(train, &text, err));
    ck_assert_ptr_null(train->loader);
    memory = 0;
    ck_ms_fails(train_obey(train, NULL, err), MS_E_FULL, "0 B are free");
    ck_assert_ptr_null(train->loader);
    ck_assert_int_eq(data_in_memory(elsewhere), 0);
    train_destroy(train);

    memory = MEMORY_UNKNOWN;
    train = train_create(&cfg);
    ck_ms_ok(train_open(train, err));
    ck_ms_ok(train_choose(train, &text, err));
    ck_ms_ok(train_obey(train, NULL, err));

    ck_assert_ptr_nonnull(train->loader);
    ck_assert_int_eq(loader_next(train->loader, &batch, NULL), 1);
    ck_assert_int_gt(data_in_memory(elsewhere), 0);
    loader_release(train->loader);
    train_destroy(train);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_memory");
    TCase *tc = tcase_create("train_memory");
    tcase_add_test(tc, where_nothing_is_left_a_job_is_refused);
    tcase_add_test(tc, another_batch_is_advised_without_the_plan_that_was_given);
    tcase_add_test(tc, the_batch_of_an_evaluation_is_named_where_it_is_too_large);
    tcase_add_test(tc, the_spare_copy_of_checkpoints_counts_and_goes_first);
    tcase_add_test(tc, where_nobody_knows_a_job_is_tried);
    tcase_add_loop_test(tc, the_batch_that_is_said_to_fit_does, 0, 3);
    suite_add_tcase(suite, tc);
    TCase *copy = tcase_create("host_copy");
    tcase_add_checked_fixture(copy, setup_mnist, teardown_mnist);
    tcase_set_timeout(copy, 120);
    tcase_add_test(copy, a_copy_that_is_in_memory_already_needs_no_free_memory);
    tcase_add_test(copy, what_this_host_offers_beside_a_copy_is_room_for_the_same_plan);
    tcase_add_test(copy, nothing_is_read_before_the_memory_was_judged);
    suite_add_tcase(suite, copy);
    return test_run(suite);
}
