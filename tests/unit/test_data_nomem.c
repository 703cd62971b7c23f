/* test_data_nomem.c - every allocation of job files, tensors, sources and the loader fails once
 *
 * As test_nomem.c: the linker redirects our calls (--wrap), and jansson gets the same functions.
 * Nothing may crash, leak (AddressSanitizer watches) or look like a success. */
#include "libworker/data/data.h"
#include "libworker/data/host_copy.h"
#include "libworker/data/safetensors.h"
#include "libworker/job/job.h"
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "tests/unit/image_files.h"

#include <fcntl.h>
#include <jansson.h>

static long countdown = -1; /* -1: nothing fails; 0: the next one does; main thread only */
static int has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);

static int fails_now(void)
{
    if (countdown < 0 || countdown-- > 0) {
        return 0;
    }
    has_failed = 1;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return fails_now() ? NULL : __real_strndup(text, size);
}

static void arm(long n)
{
    has_failed = 0;
    countdown = n;
}

/* 1 when the failure was reached: there may be more behind it. */
static int disarm(void)
{
    countdown = -1;
    return has_failed;
}

#define REST                                                                                       \
    "dataset: {kind: mnist, path: /data/mnist}\n"                                                  \
    "transforms: [{resize: {size: [32, 32]}}, {rescale: {scale: 0.5}}, "                           \
    "{normalize: {mean: [0.1], std: [0.3]}}]\n"                                                    \
    "optimizer: {kind: momentum, learning_rate: 0.01}\n"                                           \
    "evaluate: {dataset: {kind: mnist, path: test}}\n"
static const char *const texts[] = {
    "network: lenet5\n" REST,
    "network: [conv2d: {out: 2, kernel: 3}, batch_norm, relu, repeat: {times: 2, layers: [relu]}, "
    "flatten, dense: {out: classes}]\n" REST,
    "network: [batch_norm: {name: a, parameters: torch}, relu, add: {from: [a, input]}, concat: "
    "{from: [add1, relu1]}, flatten, dense: {out: classes, parameters: {weight: w}}]\n" REST,
};

START_TEST(jobs_are_refused_or_read_whole)
{
    const struct job_override sets[] = {{"parallel.mode=stand_alone"}, {"steps=7"}};
    struct job job;
    int more = 1;
    for (long n = 0; more; n++) {
        memset(&job, 0, sizeof(job));
        arm(n);
        int rc =
            job_parse(texts[_i], strlen(texts[_i]), "job.yaml", "/base", sets, 2, 0, &job, NULL);
        more = disarm();
        ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
        ck_assert_int_eq(job.workers, more ? 0 : 1);
    }
    ck_assert_int_eq(job.steps, 7);
}
END_TEST

START_TEST(layers_are_listed_whole_or_not_at_all)
{
    struct job job;
    int more = 1;
    ck_ms_ok(job_parse(texts[_i], strlen(texts[_i]), "job.yaml", "/base", NULL, 0, 0, &job, err));
    for (long n = 0; more; n++) {
        struct network *network = NULL;
        struct network_layers *layers = NULL;
        struct graph *graph = NULL;
        struct ms_err why = {0, ""};
        arm(n);
        int rc = job_network_create(&job, &network, &why);
        rc = rc < 0 ? rc : job_network_build(&job, network, &layers, &graph, &why);
        more = disarm();
        ck_assert_msg(rc == (more ? MS_E_NOMEM : MS_OK), "%ld: %d %s", n, rc, why.text);
        ck_assert_int_eq(layers == NULL, more);
        ck_assert_int_eq(graph == NULL, more);
        network_layers_destroy(layers);
        graph_destroy(graph);
        network_destroy(network);
    }
}
END_TEST

/* Its graph as a list, and a tensor of it. */
START_TEST(models_are_read_whole_or_not_at_all)
{
    static const char *const models[] = {"net-dynamo-external", "rows-dynamo", "dense-torchscript"};
    static const char *const tensors[] = {"dilated.weight", "last.weight", "fc.weight"};
    static const size_t counts[] = {6 * 8 * 9, 4 * 7, 3 * 11};
    static float values[6 * 8 * 9];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    json_t *want = NULL;
    int more = 1;
    snprintf(path, sizeof(path), "%s/tests/golden/onnx/%s.onnx", root != NULL ? root : ".",
             models[_i]);
    json_set_alloc_funcs(__wrap_malloc, free);
    for (long n = -1; more; n++) { /* once without a failure */
        struct onnx_file *file = NULL;
        json_t *document = NULL;
        struct ms_err why = {0, ""};
        arm(n);
        int rc = onnx_open(path, &file, &why);
        rc = rc < 0 ? rc : onnx_network(file, &document, &why);
        rc = rc < 0 ? rc : onnx_read(file, onnx_find(file, tensors[_i]), values, counts[_i], &why);
        more = n < 0 || disarm();
        ck_assert_msg(rc == MS_OK || (more && rc == MS_E_NOMEM), "%ld: %d %s", n, rc, why.text);
        want = n < 0 ? json_incref(document) : want;
        ck_assert(rc < 0 || json_equal(document, want)); /* jansson survives a few by itself */
        json_decref(document);
        onnx_close(file);
    }
    json_decref(want);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

START_TEST(canonical_json_is_whole_or_not_there)
{
    struct job job;
    int more = 1;
    int n_null = 0;
    json_set_alloc_funcs(__wrap_malloc, free);
    ck_ms_ok(job_parse(texts[_i], strlen(texts[_i]), "job.yaml", "/base", NULL, 0, 0, &job, err));
    char *want = job_format(&job, NULL);
    ck_assert_ptr_nonnull(want);
    for (long n = 0; more; n++) {
        arm(n);
        char *json = job_format(&job, NULL);
        more = disarm();
        ck_assert_msg(json == NULL || strcmp(json, want) == 0, "%ld: %s", n, json);
        ck_assert(more || json != NULL);
        n_null += json == NULL;
        free(json);
    }
    ck_assert_int_gt(n_null, 50); /* jansson survives a few failures by itself */
    free(want);
    json_set_alloc_funcs(malloc, free);
}
END_TEST

static int write_tensors(const char *path)
{
    const struct safetensors_entry entries[] = {{.name = "b", .n_dims = 1, .dim = {2}},
                                                {.name = "a", .n_dims = 0}};
    const char *const metadata[] = {"k", "v"};
    const float values[2] = {1, 2};
    struct safetensors_writer *writer = NULL;
    int rc = safetensors_create(path, entries, 2, metadata, 1, &writer, NULL);
    if (rc < 0) {
        return rc;
    }
    rc = safetensors_put(writer, "a", values, 1, NULL);
    if (rc == MS_OK) {
        rc = safetensors_put(writer, "b", values, 2, NULL);
    }
    if (rc < 0) {
        safetensors_abandon(writer);
        return rc;
    }
    return safetensors_finish(writer, NULL, NULL);
}

START_TEST(tensors_are_written_and_read_whole_or_not_at_all)
{
    const char *dir = test_dir_make();
    char path[128];
    int more = 1;
    snprintf(path, sizeof(path), "%s/w.safetensors", dir);
    json_set_alloc_funcs(__wrap_malloc, free);
    for (long n = 0; more; n++) {
        unlink(path);
        arm(n);
        int rc = write_tensors(path);
        more = disarm();
        ck_assert(more || rc == MS_OK);
        int is_there = access(path, F_OK) == 0;
        ck_assert(is_there || rc < 0);
        if (is_there) { /* jansson survives a few failures, and a file may only lack its sync */
            struct safetensors *file = NULL;
            ck_ms_ok(safetensors_open(path, &file, err));
            ck_assert_uint_eq(safetensors_count(file), 2);
            safetensors_close(file);
        }
    }
    more = 1;
    for (long n = 0; more; n++) {
        struct safetensors *file = NULL;
        arm(n);
        int rc = safetensors_open(path, &file, NULL);
        more = disarm();
        ck_assert(more || rc == MS_OK);
        ck_assert_int_eq(file != NULL, rc == MS_OK);
        ck_assert_uint_eq(file != NULL ? safetensors_count(file) : 2, 2);
        safetensors_close(file);
    }
    json_set_alloc_funcs(malloc, free);
    test_dir_remove(dir);
}
END_TEST

/* What is decoded allocates when it is read. */
static int read_one(struct data_source *source)
{
    struct data_reader *reader = NULL;
    struct data_record record;
    int rc = data_reader_create(source, &reader, NULL);
    if (rc == MS_OK) {
        rc = data_reader_read(reader, 0, &record, NULL);
    }
    data_reader_destroy(reader);
    return rc;
}

/* Only the opening and the creation allocate, so the loader's thread never fails here. */
static int open_and_load(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    struct loader *loader = NULL;
    int rc = data_open(spec, &source, NULL);
    if (rc == MS_OK && data_get_info(source)->is_decoded) {
        rc = read_one(source);
    } else if (rc == MS_OK) {
        const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = 9, .width = 9};
        const struct loader_config cfg = {.source = source,
                                          .transforms = &resize,
                                          .n_transforms = data_get_info(source)->height > 1,
                                          .batch = 2,
                                          .world = 1,
                                          .epochs = 1,
                                          .shuffle = 1};
        rc = loader_create(&cfg, &loader, NULL);
    }
    loader_destroy(loader);
    data_close(source);
    return rc;
}

START_TEST(sources_and_loaders_are_refused_or_made_whole)
{
    const char *dir = test_dir_make();
    const int is_made = _i == DATA_NONLINEAR || _i == DATA_SHAPES;
    struct data_spec spec = {.kind = _i > DATA_CIFAR100 ? DATA_SAFETENSORS : (enum data_kind)_i,
                             .samples = is_made ? 4 : 0,
                             .has_split = _i == DATA_NUMPY,
                             .split = {0.3, 1}};
    if (!is_made) {
        snprintf(spec.path, sizeof(spec.path), "%s", dir);
    }
    size_t size = 0;
    cifar_write(dir, "data_batch_1.bin", 3, 0);
    uint8_t *images = idx_make(2051, 3, 28, 28, 251, &size);
    file_write(dir, "train-images-idx3-ubyte", images, size);
    uint8_t *labels = idx_make(2049, 3, 0, 0, 10, &size);
    file_write_gz(dir, "train-labels-idx1-ubyte.gz", labels, size, 0);
    npy_write(dir, "x.npy", "|u1", "(3, 28, 28)", images + 16, 3 * 28 * 28);
    npy_write(dir, "y.npy", "|u1", "(3,)", labels + 8, 3);
    struct bytes tensors = {NULL, 0};
    static const char head[] =
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[3,28,28],\"data_offsets\":[0,2352]},"
        "\"y\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2352,2355]}}";
    bytes_number(&tensors, sizeof(head) - 1, 8);
    bytes_add(&tensors, head, sizeof(head) - 1);
    bytes_add(&tensors, images + 16, 3 * 28 * 28);
    bytes_add(&tensors, labels + 8, 3);
    file_write(dir, "train.safetensors", tensors.at, tensors.size);
    free(tensors.at);
    free(images);
    free(labels);
    static const uint8_t fine[2 * 3074];
    file_write(dir, "train_1.bin", fine, sizeof(fine));
    file_write(dir, "train.csv", "1,x\n2,y\n3,x\n", 12);
    png_write(dir, "train", "none", 1, 1, 0); /* makes the folder */
    png_write(dir, "train/a", "1.png", 3, 3, 0);
    png_write(dir, "train/b", "2.png", 3, 3, 0);
    int more = 1;
    long n = 0;
    for (; more; n++) {
        arm(n);
        int rc = open_and_load(&spec);
        more = disarm();
        ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
    }
    ck_assert_int_gt(n, 8);
    test_dir_remove(dir);
}
END_TEST

START_TEST(packed_data_are_identified_or_refused)
{
    const char *dir = test_dir_make();
    struct data_spec spec = {.kind = DATA_MNIST};
    struct data_source *source = NULL;
    struct data_identity want;
    size_t size = 0;
    uint8_t *images = idx_make(2051, 3, 28, 28, 251, &size);
    file_write_gz(dir, "train-images-idx3-ubyte.gz", images, size, 0);
    uint8_t *labels = idx_make(2049, 3, 0, 0, 10, &size);
    file_write(dir, "train-labels-idx1-ubyte", labels, size);
    free(images);
    free(labels);
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    ck_ms_ok(data_open(&spec, &source, err));
    ck_ms_ok(data_identify(source, &want, err));
    int more = 1;
    long n = 0;
    for (; more; n++) {
        struct data_identity have = {0, {0}};
        arm(n);
        int rc = data_identify(source, &have, NULL);
        more = disarm();
        ck_assert_int_eq(rc, more ? MS_E_NOMEM : MS_OK);
        ck_assert_int_eq(data_identity_is_same(&have, &want), !more);
    }
    ck_assert_int_gt(n, 2);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

/* A plain file: what is packed allocates in the thread. */
START_TEST(a_copy_is_whole_or_not_there)
{
    enum { BYTES = 1 << 20 };
    const char *dir = test_dir_make();
    char path[128];
    uint8_t *bytes = calloc(BYTES, 1);
    ck_assert_ptr_nonnull(bytes);
    bytes[BYTES - 1] = 7;
    file_write(dir, "file", bytes, BYTES);
    free(bytes);
    snprintf(path, sizeof(path), "%s/file", dir);
    const struct host_copy_file file = {.fd = open(path, O_RDONLY | O_CLOEXEC), .bytes = BYTES};
    ck_assert_int_ge(file.fd, 0);
    int more = 1;
    long n = 0;
    for (; more; n++) {
        arm(n);
        struct host_copy *copy = host_copy_open(&file);
        more = disarm();
        ck_assert_int_eq(copy == NULL, more);
        const uint8_t *last = copy != NULL ? host_copy_get(copy, BYTES - 1, 1, 1) : NULL;
        ck_assert(more || (last != NULL && *last == 7));
        host_copy_close(copy);
    }
    ck_assert_int_gt(n, 2);
    close(file.fd);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_nomem");
    TCase *tc = tcase_create("data_nomem");
    tcase_add_loop_test(tc, jobs_are_refused_or_read_whole, 0, (int)MS_ARRAY_SIZE(texts));
    tcase_add_loop_test(tc, layers_are_listed_whole_or_not_at_all, 0, (int)MS_ARRAY_SIZE(texts));
    tcase_add_loop_test(tc, canonical_json_is_whole_or_not_there, 0, (int)MS_ARRAY_SIZE(texts));
    tcase_add_loop_test(tc, models_are_read_whole_or_not_at_all, 0, 3);
    tcase_add_test(tc, tensors_are_written_and_read_whole_or_not_at_all);
    tcase_add_loop_test(tc, sources_and_loaders_are_refused_or_made_whole, 0, DATA_CIFAR100 + 2);
    tcase_add_test(tc, packed_data_are_identified_or_refused);
    tcase_add_test(tc, a_copy_is_whole_or_not_there);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
