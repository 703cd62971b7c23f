/* test_job_evaluate.c - what a job is evaluated on, next to what it trains on: the other part of
 * one place however its path is written, records that are alike, and what is refused; what it says
 * of its data, held against them */
#include "cli/eval_name.h"
#include "libworker/job/job.h"
#include "tests/unit/image_files.h"

#include <unistd.h>

static const char *dir;

/* "@" in what is given is the folder. */
static int parse_at(const char *base_dir, const char *dataset, const char *evaluate,
                    struct job *ret, struct ms_err *err)
{
    char text[4096];
    size_t used = 0;
    char lines[2048];
    snprintf(lines, sizeof(lines),
             "network: [flatten, dense: {out: classes}]\n"
             "dataset: {%s}\n"
             "evaluate: {dataset: {%s}}\n"
             "optimizer: {kind: sgd, learning_rate: 0.1}\n",
             dataset, evaluate);
    for (const char *at = lines; *at != '\0'; at++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, *at == '@' ? "%s" : "%.1s",
                                 *at == '@' ? dir : at);
    }
    return job_parse(text, strlen(text), "job.yaml", base_dir, NULL, 0, 0, ret, err);
}

static int parse(const char *dataset, const char *evaluate, struct job *ret, struct ms_err *err)
{
    return parse_at(dir, dataset, evaluate, ret, err);
}

static void link_to(const char *target, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(symlink(target, path), 0);
}

static void make_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static const char *path_below(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    file_write(dir, name, text, strlen(text));
}

static void write_arrays(const char *folder, const char *x, const char *y)
{
    static const float values[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const int32_t labels[10] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, folder);
    npy_write(path, x, "<f4", "(10, 1)", values, sizeof(values));
    npy_write(path, y, "<i4", "(10,)", labels, sizeof(labels));
}

static void write_images(const char *root)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, root);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d.png", i);
        png_write(path, i % 2 ? "one" : "two", name, 2, 2, i);
    }
}

#define TABLE "a;b;c\n1;2;0\n3;4;1\n5;6;0\n7;8;1\n9;1;0\n"

static void make_dir(void)
{
    static const char *const folders[] = {
        "sub",    "table", "parts",     "x",       "x/y",  "plain",      "arrays", "other",
        "images", "img",   "img/train", "img/val", "only", "only/train", "high",   "high/images"};
    dir = test_dir_make();
    for (size_t i = 0; i < MS_ARRAY_SIZE(folders); i++) {
        make_folder(folders[i]);
    }
    write_text("t.csv", TABLE);
    write_text("u.csv", TABLE);
    write_text("other.csv", "c;extra;b;a\n1;7;2;3\n0;7;5;6\n");
    write_text("bare.csv", "1;2;0\n3;4;1\n");
    write_text("missing.csv", "b; a;c\n1;2;0\n3;4;1\n");
    write_text("label.csv", "b;a;label\n1;2;0\n3;4;1\n");
    write_text("table/train.csv", TABLE);
    write_text("parts/train.csv", TABLE);
    write_text("parts/test.csv", TABLE);
    write_arrays("plain", "x.npy", "y.npy");
    write_arrays("other", "x.npy", "y.npy");
    write_arrays("other", "v.npy", "w.npy");
    write_arrays("arrays", "x_train.npy", "y_train.npy");
    write_arrays("arrays", "x_test.npy", "y_test.npy");
    write_images("images");
    write_images("img/train");
    write_images("img/val");
    write_images("only/train");
    png_write(path_below("high/images"), "two", "1.png", 2, 2, 1);
    write_text("one.csv", "a,b\n1,cat\n2,cat\n");
    write_text("zeros.csv", "a,b\n1,0\n2,0\n");
    link_to("t.csv", "link.csv");
    link_to("plain", "linked");
    link_to("x/y", "deep");
}

static void remove_dir(void)
{
    test_dir_remove(dir);
}

#define CSV "kind: csv, separator: semicolon, "

static const struct {
    const char *dataset, *evaluate;
} places[] = {
    {CSV "path: '@/t.csv', split: {test: 0.4, seed: 9}", "kind: csv, path: '@/t.csv'"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: '@/link.csv'"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: sub/../t.csv"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: './/t.csv'"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: '${OF_TEST}/t.csv'"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: t.csv, split: null"},
    {CSV "path: t.csv, split: {test: 0.4, seed: 9}",
     "kind: csv, path: link.csv, split: {test: 0.4, seed: 9}"},
    {CSV "path: table, split: {test: 0.4, seed: 9}", "kind: csv, path: table/train.csv"},
    {CSV "path: table/train.csv, split: {test: 0.4, seed: 9}", "kind: csv, path: table/"},
    {"kind: numpy, path: plain, split: {test: 0.4, seed: 9}", "kind: numpy, path: '@/plain/'"},
    {"kind: numpy, path: plain, split: {test: 0.4, seed: 9}", "kind: numpy, path: linked"},
    {"kind: image_folder, path: images, split: {test: 0.4, seed: 9}",
     "kind: image_folder, path: plain/../images"},
    {"kind: image_folder, path: only, split: {test: 0.4, seed: 9}",
     "kind: image_folder, path: only/train"},
    /* not to be had here: as text */
    {"kind: csv, path: /nowhere/t.csv, shape: [2], classes: 2, split: {test: 0.4, seed: 9}",
     "kind: csv, path: /nowhere//x/./../t.csv"},
    {"kind: csv, path: '${NO_TEST}/t.csv', shape: [2], classes: 2, split: {test: 0.4, seed: 9}",
     "kind: csv, path: '${NO_TEST}//t.csv'"},
};

START_TEST(one_place_has_one_split_however_it_is_written)
{
    static struct job job;
    static struct job again;
    size_t size = 0;
    setenv("OF_TEST", dir, 1);
    ck_ms_ok(parse(places[_i].dataset, places[_i].evaluate, &job, err));
    ck_assert_int_eq(job.evaluate_dataset.has_split, 1);
    ck_assert_double_eq(job.evaluate_dataset.split.test, 0.4);
    ck_assert_uint_eq(job.evaluate_dataset.split.seed, 9);
    ck_assert_int_eq(job.evaluate_dataset.usage, DATA_TEST);
    ck_assert_str_eq(job.evaluate_dataset.path, job.dataset.path);

    char *text = job_format(&job, &size); /* where it is sent, the text says it all */
    ck_ms_ok(job_parse(text, size, "job 7", NULL, NULL, 0, 0, &again, err));
    ck_assert_int_eq(memcmp(&job, &again, sizeof(job)), 0);
    free(text);
}
END_TEST

static const struct {
    const char *dataset, *evaluate;
} others[] = {
    {CSV "path: t.csv, split: {test: 0.4}", CSV "path: u.csv"},
    /* .. leads out of where the link goes */
    {CSV "path: t.csv, split: {test: 0.4}", CSV "path: deep/../t.csv"},
    {CSV "path: parts/train.csv, split: {test: 0.4}", CSV "path: parts"},
    {"kind: numpy, path: plain, split: {test: 0.4}", "kind: numpy, path: other"},
    {"kind: numpy, path: other, inputs: x, targets: y, split: {test: 0.4}",
     "kind: numpy, path: other, inputs: v, targets: w"},
};

START_TEST(another_place_is_evaluated_whole)
{
    static struct job job;
    ck_ms_ok(parse(others[_i].dataset, others[_i].evaluate, &job, err));
    ck_assert_int_eq(job.evaluate_dataset.has_split, 0);
    ck_assert_int_eq(job.evaluate_dataset.usage, DATA_TEST);
}
END_TEST

START_TEST(a_table_is_read_as_the_training_s)
{
    static struct job job;
    const struct data_spec *data = &job.evaluate_dataset;
    static const char plain[] =
        "kind: csv, header: false, separator: tab, columns: [0, 1], target: "
        "2, target_kind: class, path: /nowhere/a, shape: [2], classes: 2";
    ck_ms_ok(parse(plain, "kind: csv, path: /nowhere/b", &job, err));
    ck_assert_int_eq(data->has_header, 0);
    ck_assert_int_eq(data->separator, DATA_TAB);
    ck_assert_int_eq(data->target_kind, DATA_TARGET_CLASS);
    ck_assert_str_eq(data->columns, "0\n1");
    ck_assert_str_eq(data->target, "2");
    ck_ms_ok(parse(plain,
                   "kind: csv, path: /nowhere/b, header: true, separator: comma, "
                   "columns: [a, b], target: k, target_kind: auto",
                   &job, err));
    ck_assert_int_eq(data->has_header, 1);
    ck_assert_int_eq(data->separator, DATA_COMMA);
    ck_assert_int_eq(data->target_kind, DATA_TARGET_AUTO);
    ck_assert_str_eq(data->columns, "a\nb"); /* of a file with names */
    ck_assert_str_eq(data->target, "k");
}
END_TEST

/* The first record's values and label; the training's table is not looked at any more. */
static void check_first(const struct job *job, float a, float b, int label)
{
    struct data_source *source = NULL;
    struct data_record record;
    ck_ms_ok(data_open(&job->evaluate_dataset, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(data_get_info(source)->channels, 2);
    ck_assert_mem_eq(record.values, ((const float[]){a, b}), 8);
    ck_assert_int_eq(record.label, label);
    data_close(source);
}

START_TEST(columns_are_found_by_the_names_of_the_training)
{
    static struct job job;
    static struct job again;
    size_t size = 0;
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: other.csv", &job, err));
    ck_assert_str_eq(job.dataset.column_names, "a\nb\nc");
    ck_assert_str_eq(job.evaluate_dataset.target, "c");
    check_first(&job, 3, 2, 1);
    char *text = job_format(&job, &size);
    ck_ms_ok(job_parse(text, size, "job 7", NULL, NULL, 0, 0, &again, err));
    ck_assert_int_eq(memcmp(&job, &again, sizeof(job)), 0);
    free(text);
    ck_ms_ok(parse(CSV "path: t.csv, columns: [1, 0], target: 2", "kind: csv, path: other.csv",
                   &job, err));
    ck_assert_str_eq(job.dataset.column_names, "b\na\nc");
    check_first(&job, 2, 3, 1);
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: label.csv, target: label", &job, err));
    check_first(&job, 2, 1, 0);
}
END_TEST

START_TEST(a_table_without_a_header_goes_by_position)
{
    static struct job job;
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: bare.csv, header: false", &job, err));
    check_first(&job, 1, 2, 0);
    ck_ms_ok(parse(CSV "path: bare.csv, header: false", "kind: csv, path: t.csv, header: true",
                   &job, err));
    ck_assert_str_eq(job.dataset.column_names, "");
    check_first(&job, 1, 2, 0);
}
END_TEST

static void forget_columns(struct job *job)
{
    memset(job->dataset.column_names, 0, sizeof(job->dataset.column_names));
    memset(job->evaluate_dataset.column_names, 0, sizeof(job->evaluate_dataset.column_names));
    memset(job->evaluate_dataset.target, 0, sizeof(job->evaluate_dataset.target));
}

static void check_beside(const struct job *job, float a, float b, int label)
{
    struct data_source *source = NULL;
    struct data_record record;
    ck_ms_ok(data_open_beside(&job->evaluate_dataset, &job->dataset, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_mem_eq(record.values, ((const float[]){a, b}), 8);
    ck_assert_int_eq(record.label, label);
    data_close(source);
}

/* Also where the job says what a record is: nothing is looked at when it is read, so that it is the
 * same on all hosts, and the columns are found where both files are. */
START_TEST(columns_are_found_where_the_shape_is_given)
{
    static struct job job;
    ck_ms_ok(
        parse(CSV "path: t.csv, shape: [2], classes: 2", "kind: csv, path: other.csv", &job, err));
    ck_assert_str_eq(job.dataset.column_names, "");
    check_beside(&job, 3, 2, 1);
    ck_ms_ok(job_check_inputs(&job, err));
    ck_ms_ok(parse(CSV "path: t.csv, shape: [2], classes: 2, column_names: [b, a, c]",
                   "kind: csv, path: other.csv", &job, err));
    ck_assert_str_eq(job.dataset.column_names, "b\na\nc");
}
END_TEST

/* By position it would be an answer, and a wrong one. */
START_TEST(columns_that_the_job_does_not_have_are_looked_for_in_the_training_s_table)
{
    static struct job job;
    struct data_source *source = NULL;
    ck_ms_ok(
        parse(CSV "path: t.csv, shape: [2], classes: 2", "kind: csv, path: other.csv", &job, err));
    forget_columns(&job); /* as it was submitted from elsewhere */
    check_beside(&job, 3, 2, 1);
    ck_ms_ok(job_check_inputs(&job, err)); /* "extra" is no feature */
    job.evaluate_dataset.has_no_labels = 1;
    ck_ms_ok(data_open_beside(&job.evaluate_dataset, &job.dataset, &source, err));
    ck_assert_int_eq(data_get_info(source)->channels, 2);
    data_close(source);

    ck_ms_ok(parse(CSV "path: /nowhere/t.csv, shape: [2], classes: 2", "kind: csv, path: label.csv",
                   &job, err));
    ck_ms_fails(data_open_beside(&job.evaluate_dataset, &job.dataset, &source, err), MS_E_NOT_FOUND,
                "which columns were trained is not known (");
    ck_ms_fails(data_open_beside(&job.evaluate_dataset, &job.dataset, &source, err), MS_E_NOT_FOUND,
                "name them in dataset.column_names");
    ck_ms_ok(parse(CSV "path: /nowhere/t.csv, shape: [2], classes: 2, columns: [a, b], target: c",
                   "kind: csv, path: other.csv", &job, err));
    check_beside(&job, 3, 2, 1); /* all of them have names */
    ck_ms_ok(parse(CSV "path: /nowhere/t.csv, shape: [2], classes: 2, columns: [a, b]",
                   "kind: csv, path: other.csv", &job, err));
    ck_ms_fails(data_open_beside(&job.evaluate_dataset, &job.dataset, &source, err), MS_E_NOT_FOUND,
                "which columns were trained is not known (");
    ck_ms_ok(parse(CSV "path: /nowhere/t.csv, header: false, shape: [2], classes: 2",
                   "kind: csv, path: t.csv, header: true", &job, err));
    check_beside(&job, 1, 2, 0);
}
END_TEST

START_TEST(columns_of_other_names_are_refused_with_both_lists)
{
    static struct job job;
    struct data_source *source = NULL;
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: missing.csv", &job, err));
    ck_ms_fails(data_open(&job.evaluate_dataset, &source, err), MS_E_INVALID,
                "missing.csv has no column 'a': the network is trained on 'a', 'b', and the first "
                "line here has 'b', ' a', 'c'; rename columns");
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: label.csv", &job, err));
    ck_ms_fails(data_open(&job.evaluate_dataset, &source, err), MS_E_INVALID,
                "label.csv has no column 'c' (dataset.target)");
    ck_ms_ok(parse(CSV "path: t.csv", "kind: csv, path: other.csv, target: a", &job, err));
    ck_ms_fails(data_open(&job.evaluate_dataset, &source, err), MS_E_INVALID,
                "column 'a' is the target here, and a feature in the training; name the column");
}
END_TEST

START_TEST(images_and_arrays_are_read_as_the_training_s)
{
    static struct job job;
    const struct data_spec *data = &job.evaluate_dataset;
    ck_ms_ok(parse("kind: image_folder, path: images, size: [1, 2], colours: grey",
                   "kind: image_folder, path: /nowhere/b", &job, err));
    ck_assert_int_eq(data->height, 1);
    ck_assert_int_eq(data->width, 2);
    ck_assert_int_eq(data->colours, DATA_GREY);
    ck_ms_ok(parse("kind: image_folder, path: images, size: 2",
                   "kind: image_folder, path: /nowhere/b, size: 0", &job, err));
    ck_assert_int_eq(data->height, 0);
    ck_ms_ok(parse("kind: numpy, path: other, inputs: v, targets: w, layout: nhwc",
                   "kind: numpy, path: /nowhere/b", &job, err));
    ck_assert_str_eq(data->inputs, "v");
    ck_assert_str_eq(data->targets, "w");
    ck_assert_int_eq(data->layout, DATA_LAYOUT_NHWC);
    ck_ms_ok(parse("kind: numpy, path: other, inputs: v, targets: w, split: {test: 0.5}",
                   "kind: numpy, path: other", &job, err));
    ck_assert_str_eq(data->inputs, "v");
    /* without a split these would be what it was trained on: x_test is */
    ck_ms_ok(parse("kind: numpy, path: arrays, inputs: x_train, targets: y_train",
                   "kind: numpy, path: arrays", &job, err));
    ck_assert_str_eq(data->inputs, "");
    ck_assert_int_eq(data->usage, DATA_TEST);
}
END_TEST

static int parse_sized(const char *size, const char *transforms, struct job *ret,
                       struct ms_err *err)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "network: [flatten, dense: {out: classes}]\n"
             "dataset: {kind: image_folder, path: %s/images, size: 4}\n"
             "evaluate: {dataset: {kind: image_folder, path: %s/img, size: %s}}\n"
             "transforms: [%s]\noptimizer: {kind: sgd, learning_rate: 0.1}\n",
             dir, dir, size, transforms);
    return job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, ret, err);
}

/* As where boxes of larger images are trained. */
START_TEST(images_of_another_size_are_evaluated_where_transforms_make_them_alike)
{
    static struct job job;
    static struct job again;
    struct data_source *source = NULL;
    size_t size = 0;
    ck_ms_ok(parse_sized("2", "random_crop: {size: 2}, centre_crop: {size: 2}", &job, err));
    ck_ms_ok(data_open_beside(&job.evaluate_dataset, &job.dataset, &source, err));
    ck_assert_int_eq(data_get_info(source)->height, 2);
    data_close(source);
    ck_ms_ok(job_check_inputs(&job, err));
    char *text = job_format(&job, &size);
    ck_ms_ok(job_parse(text, size, "job 7", NULL, NULL, 0, 0, &again, err));
    ck_assert_int_eq(memcmp(&job, &again, sizeof(job)), 0);
    free(text);
    ck_ms_ok(parse_sized("[2, 4]", "resize: {size: [3, 3]}", &job, err));

    ck_ms_fails(parse_sized("2", "", &job, err), MS_E_INVALID,
                "evaluate.dataset.size: images of 2x2 are 2x2 behind the transforms of an "
                "evaluation, and those of the training 4x4, of 4x4 (dataset.size); leave it out");
    ck_ms_fails(parse_sized("2", "centre_crop: {size: 3}", &job, err), MS_E_INVALID,
                "evaluate.dataset.size: ");
}
END_TEST

static void check_words(const struct job *job, const char *words, const char *want)
{
    struct data_source *source = NULL;
    write_text("words", words);
    if (want != NULL) {
        ck_ms_fails(data_open_beside(&job->evaluate_dataset, &job->dataset, &source, err),
                    MS_E_INVALID, want);
        ck_ms_fails(data_open_asked(&job->evaluate_dataset, &job->dataset, &source, err),
                    MS_E_INVALID, want);
    } else {
        ck_ms_ok(data_open_beside(&job->evaluate_dataset, &job->dataset, &source, err));
        data_close(source);
    }
}

/* Of other words the tokens would be other ones, and as many. */
START_TEST(words_are_those_that_were_trained)
{
    static struct job job;
    static struct job read;
    char text[512];
    size_t size = 0;
    write_text("words", "a\nb\nab\n");
    write_text("t.txt", "ababbaabab");
    snprintf(text, sizeof(text),
             "network: [embedding: {words: 3, size: 2}, dense: {out: classes}]\ndataset: {%s}\n"
             "evaluate: {dataset: {kind: text, path: t.txt}}\n"
             "optimizer: {kind: sgd, learning_rate: 0.1}\n",
             "kind: text, path: t.txt, tokens: 2, vocabulary: words");
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", dir, NULL, 0, 0, &job, err));
    ck_assert_uint_eq(strlen(job.dataset.vocabulary_sum), 32);
    char *kept = job_format(&job, &size); /* as it is left beside its weights */
    ck_ms_ok(job_parse(kept, size, "job.json", NULL, NULL, 0, 0, &read, err));
    ck_assert_int_eq(memcmp(&job, &read, sizeof(job)), 0);
    free(kept);

    check_words(&read, "a\nb\nab\n", NULL);
    check_words(&read, "\\x61\nb\nab", NULL); /* written in another way */
    check_words(&read, "b\na\nab\n",
                "/words has other words, or another order of them, than those");
    check_words(&read, "a\nb\nba\n", "than those that are trained (digest ");
    read.dataset.vocabulary_sum[0] = '\0';
    read.evaluate_dataset.vocabulary_sum[0] = '\0';
    check_words(&read, "a\nb\nba\n", NULL); /* a job of before */
}
END_TEST

/* By position it would be an answer, and a wrong one. */
START_TEST(folders_are_the_training_s_by_name)
{
    static struct job job;
    static struct job read;
    struct data_source *source = NULL;
    struct data_record record;
    size_t size = 0;
    make_folder("pick");
    make_folder("swap");
    png_write(path_below("pick"), "two", "1.png", 2, 2, 1);
    png_write(path_below("swap"), "one", "1.png", 2, 2, 1);
    png_write(path_below("swap"), "three", "1.png", 2, 2, 1);
    ck_ms_ok(
        parse("kind: image_folder, path: images", "kind: image_folder, path: pick", &job, err));
    ck_assert_str_eq(job.dataset.class_names, "one\ntwo");
    ck_ms_ok(job_check_inputs(&job, err));
    char *text = job_format(&job, &size); /* as it is left beside its weights */
    ck_ms_ok(job_parse(text, size, "job.json", NULL, NULL, 0, 0, &read, err));
    free(text);
    snprintf(read.dataset.path, sizeof(read.dataset.path), "/nowhere/images");
    ck_ms_ok(data_open_beside(&read.evaluate_dataset, &read.dataset, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(record.label, 1);
    data_close(source);

    ck_ms_ok(
        parse("kind: image_folder, path: images", "kind: image_folder, path: swap", &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_INVALID,
                "/swap: class three is not among the 2 that are trained (one, two)");
}
END_TEST

static int check(const char *dataset, const char *evaluate, struct ms_err *err)
{
    static struct job job;
    const int rc = parse(dataset, evaluate, &job, err);
    return rc < 0 ? rc : job_check_inputs(&job, err);
}

static void write_pixels(void)
{
    static const uint8_t pixels[48] = {1, 2, 3, 4};
    static const int32_t labels[4] = {0, 1, 0, 1};
    make_folder("pixels");
    npy_write(path_below("pixels"), "x.npy", "|u1", "(4, 3, 2, 2)", pixels, sizeof(pixels));
    npy_write(path_below("pixels"), "y.npy", "<i4", "(4,)", labels, sizeof(labels));
}

/* Their alphabetical order is not that of the numbers. */
START_TEST(folders_are_no_test_of_numbers_that_nobody_named)
{
    static struct job job;
    static struct job read;
    static const char numbers[] = "kind: numpy, path: pixels";
    struct data_source *source = NULL;
    struct data_record record;
    size_t size = 0;
    write_pixels();

    ck_ms_fails(check(numbers, "kind: image_folder, path: images", err), MS_E_INVALID,
                "its classes have names (one, two), and those that are trained are numbers: which "
                "is which? name them in the order of the numbers in evaluate.dataset.class_names");
    ck_ms_fails(check(numbers, "kind: image_folder, path: images, class_names: [a, b, c]", err),
                MS_E_INVALID, "evaluate.dataset.class_names: 3 names, and dataset has 2 classes");
    ck_ms_fails(check(numbers, "kind: image_folder, path: images, class_names: [two, on]", err),
                MS_E_INVALID, "class one is not among the 2 that are trained (two, on)");

    ck_ms_ok(
        parse(numbers, "kind: image_folder, path: images, class_names: [two, one]", &job, err));
    char *text = job_format(&job, &size);
    ck_ms_ok(job_parse(text, size, "job 7", NULL, NULL, 0, 0, &read, err));
    free(text);
    ck_ms_ok(data_open_beside(&read.evaluate_dataset, &read.dataset, &source, err));
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_uint_eq(*(const uint8_t *)record.values, 0); /* two/0.png */
    ck_assert_int_eq(record.label, 0);
    ck_ms_ok(data_read(source, 3, &record, err));
    ck_assert_int_eq(record.label, 1);
    data_close(source);
}
END_TEST

START_TEST(numbers_are_no_test_of_folders_that_nobody_numbered)
{
    static const char folders[] = "kind: image_folder, path: images";
    write_pixels();

    ck_ms_fails(check(folders, "kind: numpy, path: pixels", err), MS_E_INVALID,
                "its labels are numbers, and the classes that are trained have names (one, two): "
                "which is which?");
    ck_ms_fails(check(folders, "kind: numpy, path: pixels, class_names: [two, one]", err),
                MS_E_INVALID, "evaluate.dataset.class_names: others than dataset.class_names");
    ck_ms_ok(check(folders, "kind: numpy, path: pixels, class_names: [one, two]", err));

    write_text("w.csv", "a,kind\n1,no\n2,yes\n");
    ck_ms_fails(check("kind: csv, path: w.csv", "kind: numpy, path: plain", err), MS_E_INVALID,
                "the classes that are trained have names (no, yes)");
    ck_ms_ok(
        check("kind: csv, path: w.csv", "kind: numpy, path: plain, class_names: [no, yes]", err));
}
END_TEST

/* They say themselves which is which. */
START_TEST(folders_that_are_called_by_numbers_are_those)
{
    write_pixels();
    make_folder("digits");
    png_write(path_below("digits"), "0", "a.png", 2, 2, 1);
    png_write(path_below("digits"), "1", "a.png", 2, 2, 2);
    make_folder("odd");
    png_write(path_below("odd"), "1", "a.png", 2, 2, 1);
    png_write(path_below("odd"), "2", "a.png", 2, 2, 2);

    ck_ms_ok(check("kind: numpy, path: pixels", "kind: image_folder, path: digits", err));
    ck_ms_ok(check("kind: image_folder, path: digits", "kind: numpy, path: pixels", err));
    ck_ms_fails(check("kind: numpy, path: pixels", "kind: image_folder, path: odd", err),
                MS_E_INVALID, "its classes have names (1, 2)");
}
END_TEST

/* Older releases know no such key. */
START_TEST(words_of_a_table_are_written_once)
{
    static struct job job;
    size_t size = 0;
    write_text("w.csv", "a,kind\n1,no\n2,yes\n");

    ck_ms_ok(parse("kind: csv, path: w.csv", "kind: csv, path: w.csv", &job, err));

    ck_assert_str_eq(job.evaluate_dataset.class_names, "no\nyes");
    char *text = job_format(&job, &size);
    const char *first = strstr(text, "\"class_names\"");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "\"class_names\""));
    free(text);
    ck_ms_fails(check("kind: csv, path: w.csv",
                      "kind: csv, path: w.csv, class_names: [\"yes\", \"no\"]", err),
                MS_E_INVALID, "others than dataset.class_names");
}
END_TEST

/* Such names are no words of a job: the folders alone say them. */
START_TEST(folders_that_cannot_stand_in_a_job_do_not)
{
    static struct job job;
    static const char *const names[] = {
        "b\xff", "b\n", "a234567890123456789012345678901234567890123456789012345678901234567890"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        char root[16];
        snprintf(root, sizeof(root), "odd%zu", i);
        make_folder(root);
        png_write(path_below(root), "a", "1.png", 2, 2, 1);
        png_write(path_below(root), names[i], "1.png", 2, 2, 1);
        char dataset[64];
        snprintf(dataset, sizeof(dataset), "kind: image_folder, path: %s", root);
        ck_ms_ok(parse(dataset, dataset, &job, err));
        ck_assert_str_eq(job.dataset.class_names, "");
        ck_ms_ok(job_check_inputs(&job, err));
    }
}
END_TEST

static void write_pictures(const char *folder, const char *part, int has_bytes)
{
    static const uint8_t pixels[16] = {1, 2, 3, 4};
    static const float numbers[16] = {1, 2, 3, 4};
    static const int32_t labels[4] = {0, 1, 0, 1};
    char name[32];
    snprintf(name, sizeof(name), "x_%s.npy", part);
    npy_write(path_below(folder), name, has_bytes ? "|u1" : "<f4", "(4, 2, 2)",
              has_bytes ? (const void *)pixels : numbers,
              has_bytes ? sizeof(pixels) : sizeof(numbers));
    snprintf(name, sizeof(name), "y_%s.npy", part);
    npy_write(path_below(folder), name, "<i4", "(4,)", labels, sizeof(labels));
}

/* The same transforms would make something else of them. */
START_TEST(bytes_are_not_evaluated_as_numbers)
{
    static struct job job;
    make_folder("bytes");
    make_folder("numbers");
    write_pictures("bytes", "train", 1);
    write_pictures("bytes", "test", 1);
    write_pictures("numbers", "train", 0);
    write_pictures("numbers", "test", 0);

    ck_ms_ok(parse("kind: numpy, path: bytes", "kind: numpy, path: bytes", &job, err));
    ck_assert_int_eq(job.dataset.values, DATA_BYTES);
    ck_ms_ok(job_check_inputs(&job, err));
    ck_ms_ok(parse("kind: numpy, path: numbers", "kind: numpy, path: numbers", &job, err));
    ck_assert_int_eq(job.dataset.values, DATA_NUMBERS);
    ck_ms_ok(job_check_inputs(&job, err));
    ck_ms_ok(parse("kind: numpy, path: bytes", "kind: numpy, path: numbers", &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_INVALID,
                "has numbers (float32), and what is trained on bytes (uint8)");
    ck_ms_ok(parse("kind: numpy, path: numbers", "kind: numpy, path: bytes", &job, err));
    ck_ms_fails(job_check_inputs(&job, err), MS_E_INVALID,
                "has bytes (uint8), and what is trained on numbers (float32)");
}
END_TEST

START_TEST(labels_are_the_training_s)
{
    static struct job job;
    const char *train = "kind: cifar100, path: /nowhere/a, labels: coarse";
    ck_ms_ok(parse(train, "kind: cifar100, path: /nowhere/b", &job, err));
    ck_assert_int_eq(job.evaluate_dataset.labels, DATA_COARSE);
    ck_assert_int_eq(data_shape_of(&job.evaluate_dataset).classes, 20);
    ck_ms_fails(parse(train, "kind: cifar100, path: /nowhere/b, labels: fine", &job, err),
                MS_E_INVALID, "evaluate.dataset.labels: other classes");
}
END_TEST

#define MADE                                                                                       \
    "kind: program, shape: [2], classes: 2, path: /nowhere/a, arguments: [x, 'two words'], "       \
    "timeout: 7"

/* Another program has arguments of its own. */
START_TEST(a_program_has_the_training_s_arguments)
{
    static struct job job;
    ck_ms_ok(parse(MADE, "kind: program, path: /nowhere/a", &job, err));
    ck_assert_str_eq(job.evaluate_dataset.arguments, "x\ntwo words");
    ck_assert_int_eq(job.evaluate_dataset.usage, DATA_TEST);
    ck_assert_int_eq(job.evaluate_dataset.timeout, 7);
    ck_ms_ok(parse(MADE, "kind: program, path: /nowhere/b", &job, err));
    ck_assert_str_eq(job.evaluate_dataset.arguments, "");
    ck_ms_ok(parse(MADE, "kind: program, path: /nowhere/a, arguments: [z], timeout: 9", &job, err));
    ck_assert_str_eq(job.evaluate_dataset.arguments, "z");
    ck_assert_int_eq(job.evaluate_dataset.timeout, 9);
}
END_TEST

static const struct {
    const char *dataset, *evaluate, *words;
} refused[] = {
    {CSV "path: t.csv", "kind: csv, path: link.csv, split: {test: 0.25, seed: 3}",
     "job.yaml:3:56: evaluate.dataset.split: dataset has the same place and no split, so that all "
     "of its records are trained on; give dataset.split: {test: 0.25, seed: 3}, and leave this one "
     "out"},
    {CSV "path: t.csv, split: {test: 0.25, seed: 3}",
     "kind: csv, path: link.csv, split: {test: 0.25}",
     "job.yaml:3:56: evaluate.dataset.split: {test: 0.25, seed: 1}, and dataset splits the same "
     "place with {test: 0.25, seed: 3}"},
    {CSV "path: t.csv, split: {test: 0.25}", "kind: csv, path: t.csv, split: {test: 0.5}",
     "{test: 0.5, seed: 1}, and dataset splits the same place with {test: 0.25, seed: 1}"},
    {"kind: numpy, path: plain, split: {test: 0.5}",
     "kind: numpy, path: plain, inputs: x, targets: y",
     "job.yaml:3:56: evaluate.dataset.inputs: dataset splits arrays of the same place"},
};

START_TEST(parts_with_records_in_common_are_refused_with_their_place)
{
    static struct job job;
    ck_ms_fails(parse(refused[_i].dataset, refused[_i].evaluate, &job, err), MS_E_INVALID,
                refused[_i].words);
}
END_TEST

#define AWAY "kind: csv, path: /nowhere/a, shape: [2], classes: 2"

static const struct {
    const char *dataset, *evaluate, *words; /* NULL: it is good */
} columns[] = {
    {AWAY ", columns: [a, b]", "kind: csv, path: /nowhere/b, columns: [b, c]",
     "job.yaml:3:60: evaluate.dataset.columns: [b, c], and the network is trained on [a, b] "
     "(dataset.columns), in this order; give both the same, or leave this one out"},
    {AWAY ", columns: [a, b]", "kind: csv, path: /nowhere/b, columns: [b, a]",
     "[b, a], and the network is trained on [a, b]"},
    {AWAY, "kind: csv, path: /nowhere/b, columns: [a, b]",
     "[a, b], and the network is trained on [all others]"},
    {AWAY ", columns: [a, b]", "kind: csv, path: /nowhere/b, columns: [a, b]", NULL},
    {AWAY ", columns: [a, b]", "kind: csv, path: /nowhere/b", NULL},
    {"kind: text, path: /nowhere/a, shape: [8], classes: 256, tokens: 8",
     "kind: text, path: /nowhere/b, tokens: 4",
     "job.yaml:3:60: evaluate.dataset.tokens: 4, and the network is trained on windows of 8 "
     "(dataset.tokens); leave it out"},
    {AWAY ", columns: [a, b]", "kind: csv, path: /nowhere/b, header: false, columns: [0, 2]", NULL},
};

START_TEST(other_columns_and_windows_are_refused)
{
    static struct job job;
    if (columns[_i].words == NULL) {
        ck_ms_ok(parse(columns[_i].dataset, columns[_i].evaluate, &job, err));
        return;
    }
    ck_ms_fails(parse(columns[_i].dataset, columns[_i].evaluate, &job, err), MS_E_INVALID,
                columns[_i].words);
}
END_TEST

static const struct {
    const char *dataset, *evaluate, *name;
} named[] = {
    {CSV "path: t.csv", "kind: csv, path: link.csv", "the training data"},
    {CSV "path: table", "kind: csv, path: table/train.csv", "the training data"},
    {CSV "path: table, split: {test: 0.4}", "kind: csv, path: table, usage: train",
     "the training data"},
    {CSV "path: table, split: {test: 0.4}", "kind: csv, path: table",
     "the test set of table (csv files)"},
    {CSV "path: parts", "kind: csv, path: parts", "the test set of parts (csv files)"},
    {CSV "path: parts", "kind: csv, path: parts, usage: train", "the training data"},
    {CSV "path: parts, usage: test", "kind: csv, path: parts/train.csv",
     "the test set of train.csv (csv files)"},
    {CSV "path: t.csv", "kind: csv, path: u.csv", "the test set of u.csv (csv files)"},
    {"kind: numpy, path: plain", "kind: numpy, path: linked", "the training data"},
    {"kind: numpy, path: arrays", "kind: numpy, path: arrays/",
     "the test set of arrays (numpy files)"},
    {"kind: image_folder, path: images", "kind: image_folder, path: images", "the training data"},
    {"kind: image_folder, path: img", "kind: image_folder, path: img",
     "the test set of img (image_folder files)"},
    {"kind: shapes", "kind: shapes", "the test set of shapes"},
    {"kind: shapes", "kind: shapes, usage: train", "the training data"},
    {"kind: shapes", "kind: shapes, usage: train, samples: 100", "the train set of shapes"},
};

START_TEST(what_was_trained_on_is_not_called_a_test)
{
    static struct job job;
    char buf[CLI_EVAL_NAME_MAX];
    size_t size = 0;
    ck_ms_ok(parse(named[_i].dataset, named[_i].evaluate, &job, err));
    char *text = job_format(&job, &size);
    ck_assert_str_eq(cli_eval_name(buf, text, size), named[_i].name);
    free(text);
}
END_TEST

static const struct {
    const char *dataset, *words;
} said[] = {
    {"kind: image_folder, path: images, classes: 4",
     "job.yaml:2:10: dataset: data set @/images has 2 classes, and the job says 4 "
     "(dataset.classes)"},
    {"kind: numpy, path: plain, classes: 1", "has label 1, and the job has 1 classes, 0 to 0"},
    {"kind: numpy, path: plain, target_width: 2",
     "has 2 classes, and the job says 2 (dataset.target_width)"},
    {"kind: csv, separator: semicolon, path: t.csv, target_width: 2",
     "has 1 numbers a row as targets, and the job says 2 (dataset.target_width)"},
    {"kind: numpy, path: plain, shape: [3]", "the job says 3x1x1 (dataset.shape)"},
};

/* @ in words becomes the folder of the test. */
static const char *with_dir(const char *words, char *buf, size_t size)
{
    const char *at = strchr(words, '@');
    snprintf(buf, size, "%.*s%s%s", at != NULL ? (int)(at - words) : 0, words,
             at != NULL ? dir : "", at != NULL ? at + 1 : words);
    return buf;
}

/* Also where the job does not say all of it. */
START_TEST(what_the_job_says_of_its_data_is_held_against_them)
{
    static struct job job;
    char want[512];
    ck_ms_fails(parse(said[_i].dataset, "kind: csv, path: /nowhere/b", &job, err), MS_E_INVALID,
                with_dir(said[_i].words, want, sizeof(want)));
}
END_TEST

static const struct {
    const char *dataset, *words;
} of_one_class[] = {
    {"kind: image_folder, path: high",
     "job.yaml:2:37: dataset: @/high has one class alone, the folder images, and a network over "
     "one class can learn nothing; is dataset.path one level too high (the classes in images/)?"},
    {"kind: csv, path: one.csv",
     "job.yaml:2:10: dataset: 'cat' is the one class of @/one.csv, and a network over one class "
     "can learn nothing; is another column the target (dataset.target)?"},
    {"kind: csv, path: zeros.csv", "dataset: label 0 is the one class of @/zeros.csv"},
    {"kind: numpy, path: /nowhere, shape: [3], classes: 1",
     "label 0 is the one class of /nowhere, and a network over one class can learn nothing; is "
     "another array the targets"},
    {"kind: program, path: /nowhere, shape: [3], classes: 1", "give dataset.classes as many"},
};

/* Its loss is 0 and its accuracy 100 %, without a word. */
START_TEST(one_class_alone_is_refused_with_its_name)
{
    static struct job job;
    char want[512];
    ck_ms_fails(parse(of_one_class[_i].dataset, "kind: csv, path: /nowhere/b", &job, err),
                MS_E_INVALID, with_dir(of_one_class[_i].words, want, sizeof(want)));
}
END_TEST

START_TEST(data_of_one_class_train_a_network_of_more)
{
    static struct job job;
    ck_ms_ok(parse("kind: csv, path: one.csv}\nclasses: 2\naverage: {decay: 0.9",
                   "kind: csv, path: one.csv", &job, err));
    ck_assert_int_eq(job.classes, 2);
}
END_TEST

/* Below 0 a whole number is no class, and its column not one of classes. */
START_TEST(a_label_below_zero_may_be_one_that_does_not_count)
{
    static struct job job;
    write_text("t.csv", "a;b;c\n1;2;0\n3;4;1\n5;6;-1\n");
    ck_ms_fails(parse(CSV "path: t.csv}\nloss: softmax_cross_entropy\naverage: {decay: 0.9",
                      "kind: csv, path: t.csv", &job, err),
                MS_E_INVALID,
                "dataset kind csv has a number as target; use mse, or ignored_label: N where N, "
                "below 0, is a label that does not count");
    ck_ms_ok(parse(CSV "path: t.csv}\nignored_label: -1\naverage: {decay: 0.9",
                   "kind: csv, path: t.csv", &job, err));
    ck_assert_int_eq(job.dataset.shape.classes, 2);
}
END_TEST

START_TEST(a_loss_of_numbers_says_how_whole_numbers_are_none)
{
    static struct job job;
    ck_ms_fails(
        parse(CSV "path: t.csv}\nloss: mse\ntransforms: []\naverage: {decay: 0.9",
              "kind: csv, path: t.csv", &job, err),
        MS_E_INVALID,
        "job.yaml:3:7: loss: mse wants numbers as targets, and dataset kind csv has classes; "
        "use softmax_cross_entropy, or give dataset.target_kind: number where its whole "
        "numbers are no classes");
    ck_ms_fails(parse("kind: numpy, path: plain}\nloss: l1\naverage: {decay: 0.9",
                      "kind: numpy, path: plain", &job, err),
                MS_E_INVALID,
                "or write y.astype('float32') where its whole numbers are no classes");
    ck_ms_fails(parse("kind: image_folder, path: images}\nloss: huber\naverage: {decay: 0.9",
                      "kind: image_folder, path: images", &job, err),
                MS_E_INVALID, "has classes; use softmax_cross_entropy");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_evaluate");
    TCase *tc = tcase_create("job_evaluate");
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_loop_test(tc, one_place_has_one_split_however_it_is_written, 0,
                        (int)MS_ARRAY_SIZE(places));
    tcase_add_loop_test(tc, another_place_is_evaluated_whole, 0, (int)MS_ARRAY_SIZE(others));
    tcase_add_test(tc, a_table_is_read_as_the_training_s);
    tcase_add_test(tc, columns_are_found_by_the_names_of_the_training);
    tcase_add_test(tc, a_table_without_a_header_goes_by_position);
    tcase_add_test(tc, columns_are_found_where_the_shape_is_given);
    tcase_add_test(tc, columns_that_the_job_does_not_have_are_looked_for_in_the_training_s_table);
    tcase_add_test(tc, columns_of_other_names_are_refused_with_both_lists);
    tcase_add_test(tc, images_and_arrays_are_read_as_the_training_s);
    tcase_add_test(tc, images_of_another_size_are_evaluated_where_transforms_make_them_alike);
    tcase_add_test(tc, words_are_those_that_were_trained);
    tcase_add_test(tc, folders_are_the_training_s_by_name);
    tcase_add_test(tc, folders_are_no_test_of_numbers_that_nobody_named);
    tcase_add_test(tc, numbers_are_no_test_of_folders_that_nobody_numbered);
    tcase_add_test(tc, folders_that_are_called_by_numbers_are_those);
    tcase_add_test(tc, words_of_a_table_are_written_once);
    tcase_add_test(tc, folders_that_cannot_stand_in_a_job_do_not);
    tcase_add_test(tc, bytes_are_not_evaluated_as_numbers);
    tcase_add_test(tc, labels_are_the_training_s);
    tcase_add_test(tc, a_program_has_the_training_s_arguments);
    tcase_add_loop_test(tc, parts_with_records_in_common_are_refused_with_their_place, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_loop_test(tc, other_columns_and_windows_are_refused, 0, (int)MS_ARRAY_SIZE(columns));
    tcase_add_loop_test(tc, what_was_trained_on_is_not_called_a_test, 0, (int)MS_ARRAY_SIZE(named));
    tcase_add_loop_test(tc, what_the_job_says_of_its_data_is_held_against_them, 0,
                        (int)MS_ARRAY_SIZE(said));
    tcase_add_test(tc, data_of_one_class_train_a_network_of_more);
    tcase_add_loop_test(tc, one_class_alone_is_refused_with_its_name, 0,
                        (int)MS_ARRAY_SIZE(of_one_class));
    tcase_add_test(tc, a_label_below_zero_may_be_one_that_does_not_count);
    tcase_add_test(tc, a_loss_of_numbers_says_how_whole_numbers_are_none);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
