/* test_checkpoint_manifest.c - the bytes of a checkpoint, and what is read of bytes that are none
 */
#include "libworker/data/json_text.h"
#include "libworker/plan/spec.h"
#include "libworker/train/checkpoint_save.h"
#include "tests/unit/checkpoint_case.h"

static const char *dir;

static void setup(void)
{
    dir = test_dir_make();
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static char *read_file(const char *path, size_t *ret_size)
{
    enum { MOST = 1 << 20 };
    char *bytes = malloc(MOST + 1);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL && bytes != NULL, "%s", path);
    *ret_size = fread(bytes, 1, MOST, file);
    bytes[*ret_size] = '\0';
    fclose(file);
    return bytes;
}

static const char *golden(const char *name)
{
    static char path[1100];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/%s", root != NULL ? root : ".", name);
    return path;
}

static void same_files(const char *made, const char *frozen)
{
    char path[256];
    size_t sizes[2] = {0, 0};
    snprintf(path, sizeof(path), "%s/%s", dir, made);
    char *a = read_file(path, &sizes[0]);
    char *b = read_file(golden(frozen), &sizes[1]);
    ck_assert_msg(sizes[0] == sizes[1] && memcmp(a, b, sizes[0]) == 0,
                  "%s is no longer what tests/golden/%s holds", path, frozen);
    free(a);
    free(b);
}

/* A rank of linear with momentum, whose values nobody trained. */
static struct train *make_replica(struct job *job)
{
    static const char *const sets[] = {
        "name=golden", "optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}",
        "checkpoint={directory: ., prefix: linear}"};
    train_case_job(job, sets, MS_ARRAY_SIZE(sets));
    return checkpoint_case_train(job, dir);
}

static void set_values(struct train *train)
{
    const struct graph *graph = replica_graph(train->replica);
    void *slots = NULL;
    size_t bytes = 0;
    ck_assert(replica_state(train->replica, 2, &slots, &bytes));
    for (int i = 0; i < graph_n_stored(graph); i++) {
        const int tensor = graph_stored_at(graph, i);
        const size_t n = (size_t)shape_count(&graph_tensor(graph, tensor)->shape);
        float values[16];
        ck_assert_uint_le(n, MS_ARRAY_SIZE(values));
        for (size_t k = 0; k < n; k++) {
            values[k] = 0.25F * (float)(k + 1) + (float)i;
        }
        ck_ms_ok(replica_set(train->replica, tensor, values, err));
        for (size_t k = 0; k < n; k++) {
            values[k] = -0.1F * (float)(k + 1);
        }
        ck_ms_ok(replica_set_in(train->replica, tensor, slots, values, err));
    }
}

static void write_checkpoint(struct train *train, const struct job *job)
{
    struct plan_spec *spec = NULL;
    struct checkpoint_save save;
    char sha256[MS_SHA256_HEX];
    size_t size = 0;
    size_t bytes = 0;
    void *state[CHECKPOINT_BUFFERS] = {NULL};
    char *plan = read_file(golden("plan/linear.txt"), &size);
    ck_ms_ok(plan_spec_parse(plan, size, &spec, err));
    ck_ms_ok(plan_spec_digest(spec, sha256, err));
    plan_spec_destroy(spec);
    const struct checkpoint_writer_config cfg = {.replica = train->replica,
                                                 .job = job,
                                                 .folder = dir,
                                                 .tag = CHECKPOINT_CASE_TAG,
                                                 .plan = plan,
                                                 .plan_sha256 = sha256,
                                                 .dataset = train->data.training};
    const struct checkpoint_facts facts = {
        .step = 13, .epoch = 2, .step_in_epoch = 3, .loss = 0.1F, .evaluates = 1, .seconds = 1.5};
    for (int i = 0; replica_state(train->replica, i, &state[i], &bytes); i++) {
    }
    memset(&save, 0, sizeof(save));
    ck_ms_ok(checkpoint_save_init(&save, &cfg, err));
    ck_ms_ok(checkpoint_save_write(&save, state, &facts, err));
    checkpoint_save_fini(&save);
    free(plan);
}

START_TEST(what_is_written_is_what_the_golden_files_hold)
{
    struct job job;
    struct train *train = make_replica(&job);
    set_values(train);

    write_checkpoint(train, &job);

    same_files("linear-13.safetensors", "checkpoint/linear-13.safetensors");
    same_files("linear-13.json", "checkpoint/linear-13.json");
    train_destroy(train);
}
END_TEST

START_TEST(the_golden_files_are_read_and_written_again_alike)
{
    struct job job;
    struct checkpoint_manifest m;
    struct checkpoint_state state;
    struct safetensors *file = NULL;
    struct train *train = make_replica(&job);
    char path[1100];
    char data[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof(path), "%s", golden("checkpoint/linear-13.json"));

    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    ck_ms_ok(checkpoint_verify(path, CHECKPOINT_OWN, &m, err));
    ck_assert_uint_eq(m.step, 13);
    ck_assert_int_eq(m.epoch, 2);
    ck_assert_int_eq(m.step_in_epoch, 3);
    ck_assert(m.loss == 0.1F && m.seconds == 1.5);
    ck_assert(m.evaluates && !m.stopped);
    ck_assert_str_eq(m.name, "golden");
    ck_assert_int_eq(m.samples, 160);
    ck_ms_ok(checkpoint_data_compare(&m, &train->data.training, 10, "m.json", err));
    ck_assert_str_eq(m.tag, CHECKPOINT_CASE_TAG);
    ck_ms_ok(safetensors_open_own(checkpoint_data_path(path, &m, data), &file, err));
    ck_assert_str_eq(safetensors_meta(file, "steps"), "13");
    ck_ms_ok(checkpoint_state_init(&state, train->replica, &job.optimizer, err));
    ck_ms_ok(checkpoint_state_load(&state, train->replica, file, data, err));
    write_checkpoint(train, &job);
    same_files("linear-13.safetensors", "checkpoint/linear-13.safetensors");

    safetensors_close(file);
    checkpoint_state_fini(&state);
    checkpoint_manifest_fini(&m);
    train_destroy(train);
}
END_TEST

/* What releases wrote that did not say which data they had. */
START_TEST(one_that_does_not_name_its_data_is_held_against_their_length)
{
    struct checkpoint_manifest m;
    struct data_identity here = {.rows = 160};
    size_t size = 0;
    const char *path = golden("checkpoint/linear-13-without-dataset.json");
    char *text = read_file(path, &size);
    ck_ms_ok(checkpoint_manifest_parse(text, size, "old.json", &m, err));
    free(text);
    ck_assert_int_eq(m.samples, 0);

    ck_ms_ok(checkpoint_data_compare(&m, &here, 10, "old.json", err));
    ck_ms_ok(checkpoint_data_compare(&m, &here, 0, "old.json", err));
    ck_ms_fails(checkpoint_data_compare(&m, &here, 5, "old.json", err), MS_E_REFUSED,
                "old.json is of other data: its step 13 is step 3 of epoch 2, and with the dataset "
                "of this job an epoch has 5 steps");
    checkpoint_manifest_fini(&m);
}
END_TEST

static void helps(const struct ms_err *err, const char *words)
{
    ck_assert_msg(strstr(err->text, words) != NULL, "%s", err->text);
    ck_assert_uint_le(strlen(err->text), 338); /* others put words around it */
}

/* A path, a key and values of any length, and the next step is there. */
START_TEST(a_refusal_is_never_cut_before_what_helps)
{
    static const char there[] =
        "{\"transforms\":[{\"rescale\":{\"scale\":1}},{\"random_crop\":{\"a_very_long_key_of_a_"
        "later_"
        "release_of_this_program\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}}]}";
    static const char here[] =
        "{\"transforms\":[{\"rescale\":{\"scale\":1}},{\"random_crop\":{\"a_very_long_key_of_a_"
        "later_"
        "release_of_this_program\":"
        "\"0123456789012345678901234567890123456789012345678901234567890\"}}]}";
    struct checkpoint_manifest m = {.samples = INT64_MAX, .step = UINT64_MAX};
    const struct data_identity data = {.rows = INT64_MAX - 1};
    struct ms_err why = {0, ""};
    char path[MS_PATH_MAX];
    memset(path, 'x', sizeof(path));
    snprintf(path + sizeof(path) - 17, 17, "/y/small-30.json");

    ck_assert_int_eq(checkpoint_job_compare(there, here, path, &why), MS_E_REFUSED);
    helps(&why,
          "xx/y/small-30.json is of a job with transforms[1]....a_very_long_key_of_a_later_rel");
    helps(&why, ": [1,2,3,4,5,6,7,8,9,10,11,12,13,14..., and this one has \"0123");
    helps(&why, "give the job that key, or begin anew");
    ck_assert_int_eq(checkpoint_job_compare("{\"epochs\":1000000000000000000}",
                                            "{\"epochs\":1000000000000000001}", path, &why),
                     MS_E_REFUSED);
    helps(&why, "or begin anew with optimizer.schedule.length");
    ck_assert_int_eq(checkpoint_data_compare(&m, &data, 1, path, &why), MS_E_REFUSED);
    helps(&why, "give the job its data, or begin anew");
    m.samples = 0;
    ck_assert_int_eq(checkpoint_data_compare(&m, &data, INT64_MAX, path, &why), MS_E_REFUSED);
    helps(&why, "give the job its data, or begin anew");
}
END_TEST

static char *text_of_job(enum data_kind kind, const char *vocabulary, int64_t timeout,
                         const char *arguments)
{
    static struct job job;
    const char *const sets[] = {"name=golden"};
    train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
    job.dataset.kind = kind;
    job.dataset.tokens = 8;
    job.dataset.timeout = timeout;
    snprintf(job.dataset.vocabulary, sizeof(job.dataset.vocabulary), "%s", vocabulary);
    snprintf(job.dataset.vocabulary_sum, sizeof(job.dataset.vocabulary_sum), "%.2s", vocabulary);
    snprintf(job.dataset.arguments, sizeof(job.dataset.arguments), "%s", arguments);
    char *text = checkpoint_job_text(&job);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* How long a program may think, and where words lie, change no bit; what it is told may. */
START_TEST(what_of_data_decides_no_bits_may_change)
{
    char *program = text_of_job(DATA_PROGRAM, "", 60, "--seed=1");
    char *patient = text_of_job(DATA_PROGRAM, "", 600, "--seed=1");
    char *told = text_of_job(DATA_PROGRAM, "", 60, "--seed=2");
    char *words = text_of_job(DATA_TEXT, "/a/words.txt", 0, "");
    char *moved = text_of_job(DATA_TEXT, "/b/words.txt", 0, "");

    ck_ms_ok(checkpoint_job_compare(program, patient, "m.json", err));
    ck_ms_fails(checkpoint_job_compare(program, told, "m.json", err), MS_E_REFUSED,
                "dataset.arguments[0]: \"--seed=1\", and this one has \"--seed=2\"");
    ck_ms_ok(checkpoint_job_compare(words, moved, "m.json", err));

    free(program);
    free(patient);
    free(told);
    free(words);
    free(moved);
}
END_TEST

static char *text_of_filled(enum data_kind kind, enum data_values values, const char *class_names)
{
    static struct job job;
    train_case_job(&job, NULL, 0);
    job.dataset.kind = kind;
    job.dataset.values = values;
    snprintf(job.dataset.class_names, sizeof(job.dataset.class_names), "%s", class_names);
    char *text = checkpoint_job_text(&job);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* A job that says shape and classes itself is filled with less, and so were those before there was
 * such a key; which label a word is was always said, and is told. */
START_TEST(what_a_job_is_filled_with_may_be_missing)
{
    char *arrays = text_of_filled(DATA_NUMPY, DATA_NUMBERS, "");
    char *bare_arrays = text_of_filled(DATA_NUMPY, DATA_VALUES_AUTO, "");
    char *folders = text_of_filled(DATA_IMAGE_FOLDER, DATA_VALUES_AUTO, "cat\ndog");
    char *bare_folders = text_of_filled(DATA_IMAGE_FOLDER, DATA_VALUES_AUTO, "");
    char *words = text_of_filled(DATA_CSV, DATA_VALUES_AUTO, "cat\ndog");
    char *other_words = text_of_filled(DATA_CSV, DATA_VALUES_AUTO, "dog\ncat");

    ck_ms_ok(checkpoint_job_compare(arrays, bare_arrays, "m.json", err));
    ck_ms_ok(checkpoint_job_compare(bare_folders, folders, "m.json", err));
    ck_ms_fails(checkpoint_job_compare(words, other_words, "m.json", err), MS_E_REFUSED,
                "dataset.class_names");

    free(arrays);
    free(bare_arrays);
    free(folders);
    free(bare_folders);
    free(words);
    free(other_words);
}
END_TEST

/* What of the job's object is not in the manifest's stands in the text about it. */
static void check_left_out(const char *doc, const char *section, const json_t *all,
                           const json_t *kept)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)all, key, value)
    {
        char full[128];
        const json_t *other = json_object_get(kept, key);
        snprintf(full, sizeof(full), "`%s%s`", section, key);
        ck_assert_msg(other != NULL || strstr(doc, full) != NULL, "docs/checkpoint.md lacks %s",
                      full);
        if (section[0] == '\0' && other != NULL && json_is_object(value)) {
            snprintf(full, sizeof(full), "%s.", key);
            check_left_out(doc, full, value, other);
        }
    }
}

START_TEST(every_key_that_is_left_out_stands_in_the_document)
{
    static const enum data_kind kinds[] = {DATA_NUMPY, DATA_IMAGE_FOLDER, DATA_CSV, DATA_PROGRAM,
                                           DATA_TEXT};
    static const char *const sets[] = {
        "network={summary: short, layers: [flatten, dense: {out: classes}]}"};
    static struct job job;
    static char doc[65536];
    char path[1024];
    snprintf(path, sizeof(path), "%s/docs/checkpoint.md", getenv("MSCHED_SOURCE_ROOT"));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(doc, 1, sizeof(doc) - 1, file), 0);
    fclose(file);
    for (size_t i = 0; i < MS_ARRAY_SIZE(kinds); i++) {
        train_case_job(&job, sets, MS_ARRAY_SIZE(sets));
        job.dataset.kind = kinds[i];
        job.dataset.values = DATA_NUMBERS;
        snprintf(job.dataset.class_names, sizeof(job.dataset.class_names), "cat\ndog");
        snprintf(job.dataset.column_names, sizeof(job.dataset.column_names), "a\nb");
        size_t size = 0;
        char *whole = job_format(&job, &size);
        char *text = checkpoint_job_text(&job);
        json_t *all = json_loads(whole, 0, NULL);
        json_t *kept = json_loads(text, 0, NULL);
        check_left_out(doc, "", all, kept);
        json_decref(all);
        json_decref(kept);
        free(whole);
        free(text);
    }
}
END_TEST

/* ---- manifests that are none ---- */

static json_t *golden_json(void)
{
    json_t *root = json_load_file(golden("checkpoint/linear-13.json"), 0, NULL);
    ck_assert_ptr_nonnull(root);
    return root;
}

/* With the digest that such a manifest would have. */
static int parse_sealed(json_t *root, struct ms_err *err)
{
    struct checkpoint_manifest m;
    char hex[SUM_HEX];
    size_t size = 0;
    (void)json_object_del(root, "manifest_xxh3_128");
    char *text = json_text(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), &size);
    struct sum *sum = sum_create();
    sum_add(sum, text, size);
    sum_hex(sum, hex);
    sum_destroy(sum);
    free(text);
    json_object_set_new(root, "manifest_xxh3_128", json_string(hex));
    text = json_text(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17), &size);
    int rc = checkpoint_manifest_parse(text, size, "m.json", &m, err);
    free(text);
    if (rc == 0) {
        checkpoint_manifest_fini(&m);
    }
    return rc;
}

static const struct {
    const char *key, *value; /* NULL: the key is missing */
    int rc;
    const char *says;
} wrong[] = {
    {"format", "\"other\"", MS_E_INVALID, "no JSON object of ours"},
    {"version", "2", MS_E_UNSUPPORTED, "version 2 of checkpoints; this release knows 1"},
    {"version", NULL, MS_E_INVALID, "no JSON object of ours"},
    {"step", "0", MS_E_INVALID, "step is missing or wrong"},
    {"step", "-1", MS_E_INVALID, "step is missing or wrong"},
    {"step", "1.5", MS_E_INVALID, "step is missing or wrong"},
    {"epoch", "\"2\"", MS_E_INVALID, "epoch is missing or wrong"},
    {"step_in_epoch", NULL, MS_E_INVALID, "step_in_epoch is missing or wrong"},
    {"loss", "1e300", MS_E_INVALID, "loss is missing or wrong"},
    {"loss", "null", MS_E_INVALID, "loss is missing or wrong"},
    {"stopped", "0", MS_E_INVALID, "stopped is missing or wrong"},
    {"name", "\"a b\"", MS_E_INVALID, "name is missing or wrong"},
    {"job_tag", "\"0123456789abcdef0123456789abcdef0\"", MS_E_INVALID, "job_tag is missing"},
    {"plan", "7", MS_E_INVALID, "plan is missing or wrong"},
    {"plan_sha256", "\"ff\"", MS_E_INVALID, "plan_sha256 is missing or wrong"},
    {"job", "[]", MS_E_INVALID, "job is missing or wrong"},
    {"job", "{}", MS_E_INVALID, "job_sha256 is missing or wrong"},
    {"dataset", "160", MS_E_INVALID, "dataset is missing or wrong"},
    {"dataset", "{\"xxh3_128\": \"\"}", MS_E_INVALID, "samples is missing or wrong"},
    {"dataset", "{\"samples\": 0, \"xxh3_128\": \"\"}", MS_E_INVALID,
     "samples is missing or wrong"},
    {"dataset", "{\"samples\": 1, \"xxh3_128\": \"zz\"}", MS_E_INVALID, "xxh3_128 is"},
    {"data", "{}", MS_E_INVALID, "file is missing or wrong"},
    {"data", "{\"file\": \"../x\", \"size\": 1, \"xxh3_128\": \"\"}", MS_E_INVALID, "file is"},
    {"data", "{\"file\": \"x\", \"size\": -1, \"xxh3_128\": \"\"}", MS_E_INVALID, "size is"},
    {"data", "{\"file\": \"x\", \"size\": 1, \"xxh3_128\": \"zz\"}", MS_E_INVALID, "xxh3_128 is"},
};

START_TEST(what_is_wrong_is_refused_by_its_key)
{
    json_t *root = golden_json();
    if (wrong[_i].value != NULL) {
        json_object_set_new(root, wrong[_i].key,
                            json_loads(wrong[_i].value, JSON_DECODE_ANY, NULL));
    } else {
        (void)json_object_del(root, wrong[_i].key);
    }

    ck_ms_fails(parse_sealed(root, err), wrong[_i].rc, wrong[_i].says);
    json_decref(root);
}
END_TEST

START_TEST(keys_of_later_releases_are_passed_over)
{
    json_t *root = golden_json();
    json_object_set_new(root, "shards", json_integer(4));
    ck_ms_ok(parse_sealed(root, err));
    json_decref(root);
}
END_TEST

START_TEST(no_bit_may_be_another_one)
{
    size_t size = 0;
    char *text = read_file(golden("checkpoint/linear-13.json"), &size);
    struct checkpoint_manifest m;
    int n_taken = 0;
    for (size_t i = 0; i < 8 * size; i++) {
        text[i / 8] = (char)(text[i / 8] ^ (1 << i % 8));
        if (checkpoint_manifest_parse(text, size, "m", &m, NULL) == 0) {
            n_taken++; /* one blank for another, and the same value */
            checkpoint_manifest_fini(&m);
        }
        text[i / 8] = (char)(text[i / 8] ^ (1 << i % 8));
    }
    ck_assert_int_le(n_taken, 200);
    for (size_t i = 0; i < size; i++) {
        ck_assert_int_lt(checkpoint_manifest_parse(text, i, "m", &m, NULL), 0);
    }
    free(text);
}
END_TEST

START_TEST(a_renamed_one_is_named)
{
    struct job job;
    struct checkpoint_manifest m;
    char from[256];
    char to[256];
    struct train *train = make_replica(&job);
    write_checkpoint(train, &job);
    train_destroy(train);
    snprintf(from, sizeof(from), "%s/linear-13.json", dir);
    snprintf(to, sizeof(to), "%s/linear-14.json", dir);
    ck_assert_int_eq(rename(from, to), 0);
    ck_ms_fails(checkpoint_read(to, CHECKPOINT_OWN, &m, err), MS_E_INVALID,
                "it is of step 13 with the data in linear-13.safetensors: was it renamed?");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_manifest");
    TCase *tc = tcase_create("manifest");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_written_is_what_the_golden_files_hold);
    tcase_add_test(tc, the_golden_files_are_read_and_written_again_alike);
    tcase_add_test(tc, one_that_does_not_name_its_data_is_held_against_their_length);
    tcase_add_test(tc, a_refusal_is_never_cut_before_what_helps);
    tcase_add_test(tc, what_of_data_decides_no_bits_may_change);
    tcase_add_test(tc, what_a_job_is_filled_with_may_be_missing);
    tcase_add_test(tc, every_key_that_is_left_out_stands_in_the_document);
    tcase_add_loop_test(tc, what_is_wrong_is_refused_by_its_key, 0, (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(tc, keys_of_later_releases_are_passed_over);
    tcase_add_test(tc, no_bit_may_be_another_one);
    tcase_add_test(tc, a_renamed_one_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
