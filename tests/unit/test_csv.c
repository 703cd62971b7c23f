/* test_csv.c - tables as data: columns, classes by number and by name, quoting; errors with file,
 * line and column */
#include "libworker/data/csv_text.h"
#include "libworker/data/data.h"
#include "tests/unit/data_files.h"

#include <fcntl.h>
#include <unistd.h>

static const char *dir;

static struct data_spec spec_of(const char *text, size_t size)
{
    struct data_spec spec = {.kind = DATA_CSV, .has_header = 1};
    snprintf(spec.path, sizeof(spec.path), "%s/t.csv", dir);
    file_write(dir, "t.csv", text, size);
    return spec;
}

static struct data_spec spec_with(const char *text)
{
    return spec_of(text, strlen(text));
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

/* ---- records and fields ---- */

static const struct {
    const char *text;
    size_t n;
    const char *fields[4];
} splits[] = {
    {"a,b,c", 3, {"a", "b", "c"}},
    {",", 2, {"", ""}},
    {"\"a,b\",c", 2, {"a,b", "c"}},
    {"\"a\"\"b\",\"\",\"\"\"\"", 3, {"a\"b", "", "\""}},
    {"\"two\nlines\",2", 2, {"two\nlines", "2"}},
    {" a , b ", 2, {" a ", " b "}},
};

START_TEST(fields_are_split_as_the_rfc_says)
{
    struct csv_fields fields = {.n = 0};
    size_t column = 0;
    const char *why = NULL;
    const char *text = splits[_i].text;
    ck_assert_int_eq(csv_split(text, strlen(text), ',', &fields, &column, &why), MS_OK);
    ck_assert_uint_eq(fields.n, splits[_i].n);
    for (size_t i = 0; i < fields.n; i++) {
        ck_assert_str_eq(fields.field[i].text, splits[_i].fields[i]);
    }
    csv_fields_free(&fields);
}
END_TEST

static const struct {
    const char *text, *why;
    size_t column;
} bad_splits[] = {
    {"a,b\"c", "quote within", 4},
    {"\"a\"b,c", "text behind", 4},
    {"a,\"b", "not closed", 4},
};

START_TEST(quotes_where_none_may_be_are_refused_with_their_column)
{
    struct csv_fields fields = {.n = 0};
    size_t column = 0;
    const char *why = NULL;
    const char *text = bad_splits[_i].text;
    ck_assert_int_eq(csv_split(text, strlen(text), ',', &fields, &column, &why), MS_E_INVALID);
    ck_assert_ptr_nonnull(strstr(why, bad_splits[_i].why));
    ck_assert_uint_eq(column, bad_splits[_i].column);
    csv_fields_free(&fields);
}
END_TEST

/* ---- data ---- */

START_TEST(features_and_a_number)
{
    const struct data_spec spec =
        spec_with("\xEF\xBB\xBFx,\"y, or so\",z\r\n1,2.5,-3e2\r\n\r\n 4 ,5,0.25\r\n");
    struct data_source *source = opened(&spec);
    const struct data_info *info = data_get_info(source);
    struct data_record record;
    ck_assert_int_eq(info->rows, 2);
    ck_assert_int_eq(info->channels, 2);
    ck_assert_int_eq(info->classes, 0);
    ck_assert_int_eq(info->target_width, 1);
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_float_eq(((const float *)record.values)[0], 4);
    ck_assert_float_eq(((const float *)record.values)[1], 5);
    ck_assert_float_eq(record.targets[0], 0.25F);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_float_eq(record.targets[0], -300);
    data_close(source);
}
END_TEST

START_TEST(whole_numbers_are_classes_unless_they_are_said_to_be_numbers)
{
    struct data_spec spec = spec_with("1,0\n2,3\n3,1");
    struct data_record record;
    spec.has_header = 0;
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 4);
    ck_assert_ptr_nonnull(data_get_info(source)->class_names);
    ck_assert_str_eq(data_get_info(source)->class_names, "");
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_int_eq(record.label, 3);
    data_close(source);
    spec.target_kind = DATA_TARGET_NUMBER;
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->target_width, 1);
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_float_eq(record.targets[0], 3);
    data_close(source);
}
END_TEST

START_TEST(an_ignored_label_is_none_of_the_classes)
{
    struct data_spec spec = spec_with("1,0\n2,-1\n3,1");
    struct data_record record;
    spec.has_header = 0;
    spec.ignored = (struct data_ignored){.is_there = 1, .label = -1};
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 2);
    ck_ms_ok(data_read(source, 1, &record, err));
    ck_assert_int_eq(record.label, -1);
    data_close(source);
}
END_TEST

START_TEST(words_are_classes_in_their_order)
{
    struct data_spec spec =
        spec_with("kind;a;b\nsetosa;1;2\n\"virgin;ica\";3;4\nalba;5;6\nsetosa;7;8\n");
    struct data_record record;
    spec.separator = DATA_SEMICOLON;
    snprintf(spec.target, sizeof(spec.target), "kind");
    struct data_source *source = opened(&spec);
    static const int32_t want[] = {1, 2, 0, 1};
    ck_assert_int_eq(data_get_info(source)->classes, 3);
    ck_assert_str_eq(data_get_info(source)->class_names, "alba\nsetosa\nvirgin;ica");
    for (int i = 0; i < 4; i++) {
        ck_ms_ok(data_read(source, i, &record, err));
        ck_assert_int_eq(record.label, want[i]);
        ck_assert_float_eq(((const float *)record.values)[1], (float)(2 * i + 2));
    }
    data_close(source);

    snprintf(spec.class_names, sizeof(spec.class_names), "setosa\nalba"); /* of the training */
    source = opened(&spec);
    ck_ms_ok(data_read(source, 2, &record, err));
    ck_assert_int_eq(record.label, 1);
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID,
                "t.csv:3:1: column kind: 'virgin;ica' is none of dataset.class_names ('setosa', "
                "'alba')");
    data_close(source);
}
END_TEST

static const struct {
    const char *text, *target;
    enum data_separator separator;
    const char *part;
} parted_otherwise[] = {
    {"len;width;height;kind\n1;2;3;a\n", "kind", DATA_COMMA,
     "has no column 'kind' (dataset.target): its first line is one field, 'len;width;height;kind'; "
     "is it separated otherwise? Give dataset.separator: semicolon"},
    {"a\tb\n1\t0\n", "b", DATA_COMMA, "Give dataset.separator: tab"},
    {"a,b\n1,0\n", "b", DATA_TAB, "Give dataset.separator: comma"},
    {"a;b\n1;0\n", "", DATA_COMMA,
     "has one column, and needs a target and features: is it separated otherwise? Give "
     "dataset.separator: semicolon"},
    {"a b\n1\n", "", DATA_COMMA, "is the separator right (dataset.separator)?"},
};

START_TEST(another_separator_is_named)
{
    struct data_spec spec = spec_with(parted_otherwise[_i].text);
    struct data_source *source = NULL;
    spec.separator = parted_otherwise[_i].separator;
    snprintf(spec.target, sizeof(spec.target), "%s", parted_otherwise[_i].target);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, parted_otherwise[_i].part);
}
END_TEST

/* Words of a feature's column, and not those of a target. */
START_TEST(a_column_of_words_may_be_left_out)
{
    struct data_spec spec = spec_with("a,city,y\n1,Rome,0.5\n");
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "column city: 'Rome' is no finite number: where its column has words, name the "
                "others in dataset.columns");
    data_close(source);
}
END_TEST

/* What is predicted needs no labels, and who has none hears of it. */
START_TEST(labels_that_are_missing_may_be_missing)
{
    static const char hint[] = "; data without labels are predicted with --no-labels";
    char want[256];
    struct data_source *source = NULL;
    struct data_record record;
    struct data_spec spec = spec_with("a,b\n1,2\n");
    snprintf(spec.target, sizeof(spec.target), "kind");
    spec.shape = (struct data_shape){2, 1, 1, 2, 0};
    for (spec.may_lack_labels = 0; spec.may_lack_labels < 2; spec.may_lack_labels++) {
        struct ms_err why = {0, ""};
        snprintf(want, sizeof(want), "has no column 'kind' (dataset.target); it has 'a', 'b'%s",
                 spec.may_lack_labels ? hint : "");
        ck_assert_int_eq(data_open(&spec, &source, &why), MS_E_INVALID);
        ck_assert_str_eq(strstr(why.text, "has no"), want);
    }
    spec = spec_with("1,2\n");
    spec.may_lack_labels = 1;
    spec.has_header = 0;
    spec.shape = (struct data_shape){2, 1, 1, 2, 0};
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                "has 2 columns, and 2 features and a target are wanted; data without labels");
    spec = spec_with("a,kind\n1,rosa\n");
    spec.may_lack_labels = 1;
    snprintf(spec.class_names, sizeof(spec.class_names), "alba\nsetosa");
    source = opened(&spec);
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "'rosa' is none of dataset.class_names ('alba', 'setosa'); data without labels");
    data_close(source);
}
END_TEST

static const struct {
    const char *text, *words; /* NULL: the first line has names */
} first_lines[] = {
    {"5.1,3.5,1.4,setosa\n4.9,3,1.4,setosa\n7,3.2,4.7,versicolor\n",
     "t.csv:1: the first line should have the names of columns, and has numbers for all features, "
     "and 'setosa', which is a label of other records; give dataset.header: false"},
    {"1,2,3,no\n4,5,6,no\n4,5,6,yes\n", "and 'no', which is a label of other records"},
    {"4000,3998,3996,kind\n5.1,3.5,1.4,setosa\n4.9,3,1.4,other\n", NULL},
    {"2023,2021,2022,kind\n5.1,3.5,1.4,setosa\n4.9,3,1.4,other\n", NULL},
    {"0,1,2,kind\n5.1,3.5,1.4,setosa\n4.9,3,1.4,other\n", NULL},
    {"400.5,410,419.5,kind\n5.1,3.5,1.4,setosa\n4.9,3,1.4,other\n", NULL},
    {"1,1,b,kind\n5.1,3.5,1.4,setosa\n4.9,3,1.4,other\n", NULL},
    {"3,2,1,kind\n5.1,3.5,1.4,0\n4.9,3,1.4,1\n", NULL},
};

START_TEST(a_record_with_a_word_is_no_header)
{
    struct data_spec spec = spec_with(first_lines[_i].text);
    struct data_source *source = NULL;
    if (first_lines[_i].words != NULL) {
        ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, first_lines[_i].words);
        spec.has_header = 0;
    }
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, first_lines[_i].words != NULL ? 3 : 2);
    data_close(source);
}
END_TEST

START_TEST(words_beside_classes_that_are_said_may_be_named)
{
    struct data_spec spec = spec_with("a,b\n1,red\n2,7\n3,-1\n");
    struct data_source *source = NULL;
    struct data_record record;
    spec.shape = (struct data_shape){.channels = 1, .height = 1, .width = 1, .classes = 2};
    source = opened(&spec);
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "t.csv:2:3: column b: 'red' is no class (dataset.classes): where labels are words, "
                "name them in dataset.class_names");
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID,
                "'7' is no class (dataset.classes): the job has 2, 0 to 1; give dataset.classes: 8 "
                "if there are more");
    ck_ms_fails(data_read(source, 2, &record, err), MS_E_INVALID,
                "'-1' is no class (dataset.classes): they are 0, 1, 2 ..., and one label that does "
                "not count is named: ignored_label: -1");
    data_close(source);
}
END_TEST

/* As one of commas alone. */
START_TEST(a_line_of_tabs_is_a_row_without_values)
{
    struct data_spec spec = spec_with("a\tb\tc\n1\t2\t0\n \n\t\t\n3\t4\t1\n");
    struct data_source *source = NULL;
    spec.separator = DATA_TAB;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "t.csv:4:3: column c: '' is empty");
}
END_TEST

/* Most of them decide; and names that are given, whatever they look like. */
START_TEST(a_few_words_are_numbers_or_all_are_named)
{
    struct data_spec spec = spec_with("a,b\n1,x\n2,y\n3,3\n");
    struct data_record record;
    struct data_source *source = opened(&spec);
    ck_assert_str_eq(data_get_info(source)->class_names, "3\nx\ny");
    data_close(source);
    spec = spec_with("a,b\n1,0\n1,10\n1,NA\n1,2\n");
    snprintf(spec.class_names, sizeof(spec.class_names), "0\n2\n10\nNA");
    source = opened(&spec);
    ck_ms_ok(data_read(source, 2, &record, err));
    ck_assert_int_eq(record.label, 3);
    data_close(source);
}
END_TEST

START_TEST(columns_are_chosen_by_name_or_number)
{
    struct data_spec spec = spec_with("a,b,c,d\n1,2,3,4\n");
    struct data_record record;
    struct data_source *source = NULL;
    snprintf(spec.columns, sizeof(spec.columns), "c\n-4\nc");
    snprintf(spec.target, sizeof(spec.target), "1");
    source = opened(&spec);
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_assert_int_eq(data_get_info(source)->channels, 3);
    ck_assert_mem_eq(record.values, ((const float[]){3, 1, 3}), 12);
    ck_assert_int_eq(record.label, 2);
    data_close(source);
    snprintf(spec.columns, sizeof(spec.columns), "a\nb");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "column 'b' is the target");
    snprintf(spec.columns, sizeof(spec.columns), "e");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "no column 'e' (dataset.columns)");
    snprintf(spec.target, sizeof(spec.target), "4");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "no column '4' (dataset.target)");
}
END_TEST

/* Names that do not tell one column, or are too many for a job. */
START_TEST(columns_that_cannot_be_named_are_told_by_a_checksum)
{
    static const char *const first[] = {"a,a,k", ",b,k", "a,\xFF,k"};
    static const char *const other[] = {"a,b,k", "b,,k", "\xFF,a,k"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(first); i++) {
        char text[64];
        char kept[DATA_COLUMN_NAMES_MAX + 1];
        snprintf(text, sizeof(text), "%s\n1,2,0\n", first[i]);
        struct data_spec spec = spec_with(text);
        struct data_source *source = opened(&spec);
        snprintf(kept, sizeof(kept), "%s", data_get_info(source)->column_names);
        ck_assert_int_eq(strncmp(kept, "xxh3-128:", 9), 0);
        data_close(source);
        memcpy(spec.column_names, kept, sizeof(kept));
        data_close(opened(&spec));
        snprintf(text, sizeof(text), "%s\n1,2,0\n", other[i]);
        spec = spec_with(text);
        memcpy(spec.column_names, kept, sizeof(kept));
        ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID,
                    "has columns with other names than those that the network is trained on, or");
    }
}
END_TEST

START_TEST(names_of_many_columns_are_a_checksum)
{
    enum { COLUMNS = 2000 };
    static char text[16 * COLUMNS];
    size_t used = 0;
    for (int i = 0; i < COLUMNS; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "pixel%d,", i);
    }
    used += (size_t)snprintf(text + used, sizeof(text) - used, "k\n");
    for (int i = 0; i < COLUMNS; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "1,");
    }
    snprintf(text + used, sizeof(text) - used, "0\n");
    struct data_spec spec = spec_with(text);
    struct data_source *source = opened(&spec);
    snprintf(spec.column_names, sizeof(spec.column_names), "%s",
             data_get_info(source)->column_names);
    ck_assert_uint_eq(strlen(spec.column_names), 9 + 32);
    data_close(source);
    data_close(opened(&spec));
    text[0] = 'q';
    file_write(dir, "t.csv", text, strlen(text));
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "has columns with other names than");
}
END_TEST

START_TEST(a_name_that_two_columns_have_is_refused)
{
    struct data_spec spec = spec_with("a,b,a,k\n1,2,3,0\n");
    struct data_source *source = NULL;
    snprintf(spec.column_names, sizeof(spec.column_names), "b\na\nk");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "has two columns 'a', which");
}
END_TEST

START_TEST(a_folder_has_a_file_a_part)
{
    struct data_spec spec = spec_with("");
    struct data_source *source = NULL;
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    file_write(dir, "train.csv", "a,b\n1,0\n2,1\n", 12);
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 2);
    data_close(source);
    spec.usage = DATA_TEST;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "test.csv");
}
END_TEST

/* What a number is no other than, in whatever column it stands: found when the row is read. */
static const struct {
    const char *text, *part;
} bad_rows[] = {
    {"a,b\n1,0\nx,0\n", "t.csv:3:1: column a: 'x' is no finite number"},
    {"a,b\n1,0\n\n\"4\n\",0\n1 2,0\n", "t.csv:4:1: column a: '4\n' is no finite number"},
    {"a,b\n1,0\n,0\n", "t.csv:3:1: column a: '' is empty"},
    {"a,b\n1,0\nnan,0\n", "'nan' is no finite number: fill it in, or leave the row out"},
    {"a,b\n1,0\n -Inf,0\n", "' -Inf' is no finite number: fill it in"},
    {"a,b\n1,0\n\"1,5\",0\n", "'1,5' is no finite number: fractions are written with a point"},
    {"a,b\n1,0\n0x10,0\n", "'0x10' is no finite number"},
    {"a,b\n1,0\n1e99,0\n", "'1e99' is no finite number"},
    {"a,b\n1,0\n1 2,0\n", "'1 2' is no finite number"},
};

START_TEST(what_is_no_number_is_named_with_its_place)
{
    struct data_spec spec = spec_with(bad_rows[_i].text);
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID, bad_rows[_i].part);
    data_close(source);
}
END_TEST

static const struct {
    const char *text, *part;
    int no_header;
    enum data_target_kind kind;
    int64_t classes, target_width; /* as the job says */
} bad_files[] = {
    {"", "t.csv has no rows", 0, 0, 0, 0},
    {"a,b\n", "t.csv has no rows", 0, 0, 0, 0},
    {"a,b\r1,2\r", "t.csv has one line, with carriage returns in it: lines end with LF or CR LF", 0,
     0, 0, 0},
    {"a\n1\n", "has one column", 0, 0, 0, 0},
    {"1,2\n3,4\n", "dataset.header: false", 0, 0, 0, 0},
    {"a,b\n1,2,3\n", "t.csv:2: 3 fields, and 2 in the first line", 0, 0, 0, 0},
    {"a,b\n1,2\n\"3,4\n", "t.csv:3: a quote (\") in this record is not closed", 0, 0, 0, 0},
    {"a,b\n1,2\n3,4\"\n\"", "t.csv:3:4: a quote within", 0, 0, 0, 0},
    {"a,b\n1,2.5\n3,word\n", "t.csv:3:3: column b: 'word' is no number, as", 0, 0, 0, 0},
    {"a,b\n1,\n", "t.csv:2:3: column b: '' is empty", 0, 0, 0, 0},
    {"a,b\n1,200000\n", "dataset.target_kind: number", 0, 0, 0, 0},
    {"a,b\n1,-1\n", "dataset.target_kind is class", 0, DATA_TARGET_CLASS, 0, 0},
    {"a,b\n1,x\n", "dataset.target_kind is number", 0, DATA_TARGET_NUMBER, 0, 0},
    {"a,b\n1,0\n1,10\n1,NA\n1,2\n",
     "t.csv:4:3: the target 'NA' is a word, and 3 of 4 rows have whole numbers", 0, 0, 0, 0},
    {"a,b\n1,0\n1,1\n", "t.csv:1:3: the target 'b' is a word", 1, DATA_TARGET_CLASS, 0, 0},
    {"a,b\n1,9223372036854775807\n", "targets go up to 9223372036854775807", 0, 0, 0, 0},
    {"\x1F\x8B", "unpack it with gunzip", 0, 0, 0, 0},
    {"PK\3\4", "a zip archive or a workbook", 0, 0, 0, 0},
    {"\xFF\xFE"
     "a",
     "UTF-16; write it as UTF-8", 0, 0, 0, 0},
    {"\xFE\xFF", "UTF-16; write it as UTF-8", 0, 0, 0, 0},
    {"a,b\n1,0\n1,3\n", "targets are classes up to 3, and the job says 2 (dataset.classes)", 0, 0,
     2, 0},
    {"a,b\n1,0\n1,0.5\n", "targets have fractions or are below 0", 0, 0, 2, 0},
    {"a,b\n1,x\n1,y\n1,z\n", "has 3 classes, and the job says 2 (dataset.classes)", 0, 0, 2, 0},
    {"a,b\n1,x\n1,y\n1,z\n", "has 3 classes, and the job says 4 (dataset.classes)", 0, 0, 4, 0},
    {"a,b\n1,1\n", "has 1 numbers a row as targets, and the job says 2 (dataset.classes)", 0,
     DATA_TARGET_NUMBER, 2, 0},
    {"a,b\n1,1\n", "has 1 numbers a row as targets, and the job says 2 (dataset.target_width)", 0,
     0, 0, 2},
    {"a,b\n1,x\n", "dataset.target_width wants numbers", 0, 0, 0, 1},
};

START_TEST(a_file_that_is_no_table_is_refused)
{
    struct data_spec spec = spec_with(bad_files[_i].text);
    struct data_source *source = NULL;
    spec.has_header = !bad_files[_i].no_header;
    spec.target_kind = bad_files[_i].kind;
    spec.shape.classes = bad_files[_i].classes;
    spec.shape.target_width = bad_files[_i].target_width;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, bad_files[_i].part);
}
END_TEST

/* Fields end with one of ours: '1' and a NUL and '2' would be 1. */
START_TEST(a_nul_byte_is_named_with_its_place)
{
    static const char table[] = "a,b\n1,0\n1\0002,0\n";
    static const char header[] = "a\0,b\n1,0\n";
    struct data_source *source = NULL;
    struct data_spec spec = spec_of(table, sizeof(table) - 1);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "t.csv:3:2: a NUL byte");
    spec = spec_of(header, sizeof(header) - 1);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "t.csv:1:2: a NUL byte");
}
END_TEST

START_TEST(blank_lines_take_no_memory)
{
    enum { BLANKS = 48 << 20, KIB_MAX = 16 << 10 };
    static const char rows[] = "a,b\n1,0\n2,1\r\n";
    const size_t n = sizeof(rows) - 1;
    char *text = malloc(n + BLANKS);
    ck_assert_ptr_nonnull(text);
    memset(text, '\n', n + BLANKS);
    memcpy(text, rows, n);
    memcpy(text + n + BLANKS - 4, "3,4\n", 4);
    const struct data_spec spec = spec_of(text, n + BLANKS);
    struct data_record record;
    const long before = peak_kib();

    struct data_source *source = opened(&spec);
    for (int i = 0; i < 3; i++) {
        ck_ms_ok(data_read(source, i, &record, err));
        ck_assert_float_eq(*(const float *)record.values, (float)(i + 1));
    }

    ck_assert_int_lt(peak_kib() - before, KIB_MAX);
    data_close(source);
    free(text);
}
END_TEST

/* An empty field at the end is a field, whatever the separator. */
START_TEST(the_last_field_may_be_empty)
{
    struct data_source *source = NULL;
    struct data_record record;
    struct data_spec spec = spec_with("a\tb\tc\n7\t2\t\n\n \n8\t1\t3\n");
    spec.separator = DATA_TAB;
    snprintf(spec.target, sizeof(spec.target), "b");
    source = opened(&spec);
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID,
                "t.csv:2:5: column c: '' is empty");
    ck_ms_ok(data_read(source, 1, &record, err));
    data_close(source);
}
END_TEST

START_TEST(what_the_job_says_of_targets_may_be_more_than_the_rows_have)
{
    struct data_spec spec = spec_with("a,b\n1,0\n1,1\n");
    spec.shape.classes = 5;
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 5);
    data_close(source);
    spec.shape = (struct data_shape){.target_width = 1};
    source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->classes, 0);
    ck_assert_int_eq(data_get_info(source)->target_width, 1);
    data_close(source);
}
END_TEST

/* Of what is predicted: the target's column is not there, or is left out by its name. */
START_TEST(without_labels_a_number_is_no_feature)
{
    static const struct {
        const char *text, *target;
    } tables[] = {
        {"a,b\n1,2\n3,4\n", "-1"},         {"a,b\n1,2\n3,4\n", "1"},
        {"a,b,kind\n1,2,x\n3,4,\n", "-1"}, {"a,kind,b\n1,x,2\n3,,4\n", "1"},
        {"a,b,kind\n1,2,x\n3,4,\n", ""},   {"a,b\n1,2\n3,4\n", ""},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(tables); i++) {
        struct data_spec spec = spec_with(tables[i].text);
        struct data_record record;
        spec.has_no_labels = 1;
        spec.shape = (struct data_shape){2, 1, 1, 2, 0};
        snprintf(spec.target, sizeof(spec.target), "%s", tables[i].target);
        struct data_source *source = opened(&spec);
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_float_eq(((const float *)record.values)[0], 3);
        ck_assert_float_eq(((const float *)record.values)[1], 4);
        data_close(source);
    }
}
END_TEST

START_TEST(a_table_may_have_no_labels)
{
    static const char *const texts[] = {"a,b\n1,2\n3,4\n", "a,kind,b\n1,x,2\n3,,4\n"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(texts); i++) {
        struct data_spec spec = spec_with(texts[i]);
        struct data_record record;
        spec.has_no_labels = 1;
        spec.shape = (struct data_shape){2, 1, 1, 2, 0};
        snprintf(spec.target, sizeof(spec.target), "kind");
        snprintf(spec.class_names, sizeof(spec.class_names), "cat\ndog");
        struct data_source *source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->classes, 2);
        ck_ms_ok(data_read(source, 1, &record, err));
        ck_assert_float_eq(((const float *)record.values)[0], 3);
        ck_assert_float_eq(((const float *)record.values)[1], 4);
        ck_assert_int_eq(record.label, 0);
        ck_assert_ptr_null(record.targets);
        data_close(source);
        spec.class_names[0] = '\0';
        spec.shape = (struct data_shape){2, 1, 1, 0, 1};
        source = opened(&spec);
        ck_assert_int_eq(data_get_info(source)->target_width, 1);
        ck_ms_ok(data_read(source, 0, &record, err));
        ck_assert_float_eq(record.targets[0], 0);
        data_close(source);
    }
}
END_TEST

START_TEST(a_label_out_of_range_is_named)
{
    struct data_spec spec = spec_with("a,b\n1,0\n1,5\n");
    struct data_record record;
    spec.shape = (struct data_shape){1, 1, 1, 3, 0};
    struct data_source *source = opened(&spec);
    ck_ms_fails(data_read(source, 1, &record, err), MS_E_INVALID,
                "t.csv:3:3: column b: '5' is no class");
    data_close(source);
}
END_TEST

/* Records on both sides of each piece that is read, quoted ends of lines among them. */
START_TEST(a_file_of_many_pieces_has_all_its_rows)
{
    enum { ROWS = 150000 };
    char path[256];
    snprintf(path, sizeof(path), "%s/t.csv", dir);
    struct data_spec spec = spec_with("");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "\"a\nb\",c,d\n");
    for (int i = 0; i < ROWS; i++) {
        fprintf(file, "%d,\"%d\"\"\",%d\n", i, i, i % 7);
    }
    fclose(file);
    snprintf(spec.columns, sizeof(spec.columns), "0");
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_assert_int_eq(data_get_info(source)->rows, ROWS);
    ck_assert_int_eq(data_get_info(source)->classes, 7);
    for (int i = 0; i < ROWS; i += 997) {
        ck_ms_ok(data_read(source, i, &record, err));
        ck_assert_float_eq(*(const float *)record.values, (float)i);
        ck_assert_int_eq(record.label, i % 7);
    }
    data_close(source);
}
END_TEST

static void make_dir(void)
{
    dir = test_dir_make();
}

static void remove_dir(void)
{
    test_dir_remove(dir);
}

int main(void)
{
    Suite *suite = suite_create("csv");
    TCase *tc = test_case_create("csv");
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_loop_test(tc, fields_are_split_as_the_rfc_says, 0, (int)MS_ARRAY_SIZE(splits));
    tcase_add_loop_test(tc, quotes_where_none_may_be_are_refused_with_their_column, 0,
                        (int)MS_ARRAY_SIZE(bad_splits));
    tcase_add_test(tc, features_and_a_number);
    tcase_add_test(tc, whole_numbers_are_classes_unless_they_are_said_to_be_numbers);
    tcase_add_test(tc, an_ignored_label_is_none_of_the_classes);
    tcase_add_test(tc, words_are_classes_in_their_order);
    tcase_add_loop_test(tc, a_record_with_a_word_is_no_header, 0, (int)MS_ARRAY_SIZE(first_lines));
    tcase_add_test(tc, words_beside_classes_that_are_said_may_be_named);
    tcase_add_test(tc, a_line_of_tabs_is_a_row_without_values);
    tcase_add_test(tc, a_few_words_are_numbers_or_all_are_named);
    tcase_add_test(tc, columns_are_chosen_by_name_or_number);
    tcase_add_test(tc, columns_that_cannot_be_named_are_told_by_a_checksum);
    tcase_add_test(tc, names_of_many_columns_are_a_checksum);
    tcase_add_test(tc, a_name_that_two_columns_have_is_refused);
    tcase_add_test(tc, a_folder_has_a_file_a_part);
    tcase_add_loop_test(tc, what_is_no_number_is_named_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(bad_rows));
    tcase_add_loop_test(tc, a_file_that_is_no_table_is_refused, 0, (int)MS_ARRAY_SIZE(bad_files));
    tcase_add_test(tc, a_nul_byte_is_named_with_its_place);
    tcase_add_test(tc, blank_lines_take_no_memory);
    tcase_add_test(tc, the_last_field_may_be_empty);
    tcase_add_test(tc, what_the_job_says_of_targets_may_be_more_than_the_rows_have);
    tcase_add_test(tc, a_table_may_have_no_labels);
    tcase_add_test(tc, without_labels_a_number_is_no_feature);
    tcase_add_test(tc, a_label_out_of_range_is_named);
    tcase_add_test(tc, a_file_of_many_pieces_has_all_its_rows);
    tcase_add_loop_test(tc, another_separator_is_named, 0, (int)MS_ARRAY_SIZE(parted_otherwise));
    tcase_add_test(tc, a_column_of_words_may_be_left_out);
    tcase_add_test(tc, labels_that_are_missing_may_be_missing);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
