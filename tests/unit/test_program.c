/* test_program.c - programs that deliver records: what they write is checked byte by byte; they
 * end, hang and die, and the records are the same; nobody outlives anybody */
#include "libworker/data/data.h"
#include "libworker/data/path.h"
#include "libworker/data/program_stream.h"
#include "proto/clock.h"
#include "proto/macros.h"
#include "tests/unit/data_files.h"
#include "tests/unit/program_case.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROWS = 12, CLASSES = 10, PIXELS = 2 };

static const char *dir;

static struct data_spec spec_of(const char *text)
{
    struct data_spec spec = {.kind = DATA_PROGRAM, .timeout = 60};
    program_case_write(dir, "make.sh", text, spec.path, sizeof(spec.path));
    return spec;
}

static struct data_source *opened(const struct data_spec *spec)
{
    struct data_source *source = NULL;
    ck_ms_ok(data_open(spec, &source, err));
    return source;
}

static struct loader_config config_of(struct data_source *source)
{
    return (struct loader_config){
        .source = source, .batch = 3, .rank = 1, .world = 2, .shuffle = 1, .seed = 5, .epochs = 3};
}

/* Each record of each batch is the one of the plain functions of order.c. */
static void check_batches(struct loader *loader, struct data_source *source, int64_t first_step,
                          int n)
{
    int64_t perm[ROWS];
    struct batch batch;
    const int64_t rows = data_get_info(source)->rows;
    const struct data_shard shard = {
        .rows = rows, .rank = 1, .world = 2, .shuffle = 1, .seed = 5, .wrap = 1};
    for (int i = 0; i < n; i++) {
        const int64_t at = first_step + i;
        struct ms_err err = {0, ""};
        ck_assert_msg(loader_next(loader, &batch, &err) == 1, "%s", err.text);
        ck_assert_int_eq(batch.epoch, at / 2);
        data_permute(&shard, (uint64_t)batch.epoch, perm);
        for (int64_t k = 0; k < batch.rows; k++) {
            const int64_t row = data_shard_row(&shard, perm, at % 2 * 3 + k);
            ck_assert_int_eq(((const int32_t *)batch.labels.values)[k], row % CLASSES);
            ck_assert_float_eq(((const float *)batch.images.values)[PIXELS * k], (float)row * 2);
            ck_assert_float_eq(((const float *)batch.images.values)[PIXELS * k + 1],
                               (float)batch.epoch);
        }
        loader_release(loader);
    }
}

static void check_epochs(struct data_source *source)
{
    const struct loader_config cfg = config_of(source);
    struct loader *loader = NULL;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    check_batches(loader, source, 0, 6);
    loader_destroy(loader);
}

/* ---- it delivers ---- */

START_TEST(records_come_in_the_order_of_the_loader)
{
    const struct data_spec spec = spec_of(SERVE);
    struct data_source *source = opened(&spec);
    const struct data_info *info = data_get_info(source);
    ck_assert_int_eq(info->rows, ROWS);
    ck_assert_int_eq(info->channels, PIXELS);
    ck_assert_int_eq(info->classes, CLASSES);
    check_epochs(source);
    data_close(source);
}
END_TEST

START_TEST(it_goes_on_from_the_exact_record)
{
    const struct data_spec spec = spec_of(SERVE);
    struct data_source *source = opened(&spec);
    struct loader_config cfg = config_of(source);
    struct loader *loader = NULL;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    check_batches(loader, source, 0, 1);
    loader_destroy(loader); /* two batches were asked for, and nobody takes them */
    cfg.first_epoch = 1;
    cfg.first_step = 1;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    check_batches(loader, source, 3, 3);
    loader_destroy(loader);
    data_close(source);
}
END_TEST

START_TEST(a_split_is_made_of_all_records)
{
    struct data_spec spec =
        spec_of(SH "echo $MSCHED_USAGE >usage\n"
                   "header; while read row epoch seed; do record $row 7; done\n");
    spec.has_split = 1;
    spec.split = (struct data_spec_split){.test = 0.25, .seed = 1};
    spec.usage = DATA_TEST;
    struct data_source *source = opened(&spec);
    ck_assert_int_eq(data_get_info(source)->rows, 3);
    int64_t last = -1;
    for (int64_t i = 0; i < 3; i++) {
        struct data_record record;
        ck_ms_ok(data_read(source, i, &record, err));
        const uint8_t *pixels = record.values;
        ck_assert_int_gt(pixels[0] / 2, last);
        last = pixels[0] / 2;
    }
    char path[256];
    char usage[8] = "";
    snprintf(path, sizeof(path), "%s/usage", dir); /* its folder is the program's */
    const int fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, usage, sizeof(usage) - 1), 4);
    ck_assert_str_eq(usage, "all\n");
    close(fd);
    data_close(source);
}
END_TEST

START_TEST(arguments_are_its_own)
{
    struct data_spec spec =
        spec_of(SH "[ \"$1\" = 'two words' ] && [ \"$2\" = b ] && [ $# = 2 ] || exit 5\n"
                   "header; while read row epoch seed; do record $row 0; done\n");
    snprintf(spec.arguments, sizeof(spec.arguments), "two words\nb");
    data_close(opened(&spec));
    snprintf(spec.arguments, sizeof(spec.arguments), "two words\nb\nc");
    struct data_source *source = NULL;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "ended with status 5 before its header");
}
END_TEST

/* Other arguments, another text or another usage may be other records. */
START_TEST(what_it_is_tells_it_from_others)
{
    struct data_spec spec = spec_of(SERVE);
    struct data_identity ids[4];
    const char *const texts[] = {SERVE, SERVE, SERVE "# other\n", SERVE};
    for (int i = 0; i < 4; i++) {
        spec = spec_of(texts[i]);
        spec.usage = i == 3 ? DATA_TEST : DATA_TRAIN;
        snprintf(spec.arguments, sizeof(spec.arguments), "%s", i == 1 ? "x" : "");
        struct data_source *source = opened(&spec);
        ck_ms_ok(data_identify(source, &ids[i], err));
        data_close(source);
    }
    spec = spec_of(SERVE);
    struct data_source *source = opened(&spec);
    struct data_identity again;
    ck_ms_ok(data_identify(source, &again, err));
    data_close(source);
    ck_assert(data_identity_is_same(&ids[0], &again));
    for (int i = 1; i < 4; i++) {
        ck_assert(!data_identity_is_same(&ids[0], &ids[i]));
    }
}
END_TEST

START_TEST(its_usage_is_the_job_s_whatever_the_worker_has)
{
    char usage[32] = "";
    char other[32];
    char path[256];
    struct data_spec spec =
        spec_of(SH "tr '\\0' '\\n' </proc/$$/environ | grep ^MSCHED_USAGE= >usage\n"
                   "header; read row epoch seed\n");
    spec.usage = DATA_TEST;
    ck_assert_int_eq(setenv("MSCHED_USAGE", "train", 1), 0);
    data_close(opened(&spec));
    snprintf(path, sizeof(path), "%s/usage", dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%31s %31s", usage, other), 1); /* each reader takes its own */
    fclose(file);
    ck_assert_str_eq(usage, "MSCHED_USAGE=test");
}
END_TEST

/* ---- it ends ---- */

static int said(struct data_source *source, const char *part)
{
    char line[512];
    int n = 0;
    while (data_hear(source, line, sizeof(line))) {
        n += strstr(line, part) != NULL;
    }
    return n;
}

static const char *const mortals[] = {
    SH "header; for i in 1 2 3 4 5; do read row epoch seed; record $row $epoch; done; kill -9 $$\n",
    SH "header; for i in 1 2 3 4 5; do read row epoch seed; record $row $epoch; done; exit 3\n",
    /* within a record */
    SH "header; for i in 1 2 3 4 5; do read row epoch seed; record $row $epoch; done; byte 1; exit "
       "0\n",
};

START_TEST(one_that_ends_is_started_again_at_the_exact_record)
{
    const struct data_spec spec = spec_of(mortals[_i]);
    struct data_source *source = opened(&spec);
    check_epochs(source);
    ck_assert_int_ge(said(source, "program make.sh: is started again: program make.sh ended "), 3);
    data_close(source);
}
END_TEST

START_TEST(what_one_says_at_its_end_is_heard)
{
    const struct data_spec spec = spec_of(SH "header; read row epoch seed; record $row $epoch; "
                                             "read more || echo made 1 record >&2\n");
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_ok(data_read(source, 7, &record, err));
    data_finish(source);
    ck_assert_int_eq(said(source, "program make.sh: made 1 record"), 1);
    data_finish(source); /* there is none any more */
    ck_assert_int_eq(said(source, ""), 0);
    data_close(source);
}
END_TEST

START_TEST(one_that_ends_each_time_fails_with_its_last_words)
{
    const struct data_spec spec = spec_of(SH "header; echo no disk >&2; exit 3\n");
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_fails(data_read(source, 7, &record, err), MS_E_IO,
                "program make.sh ended with status 3 before record 7; its last words: no disk (3 "
                "times)");
    data_close(source);
}
END_TEST

static const struct {
    const char *text;
    int code;
    const char *why;
} unopened[] = {
    {SH "exit 3\n", MS_E_IO, "ended with status 3 before its header"},
    {SH "kill -TERM $$\n", MS_E_IO, "ended by signal 15 (Terminated) before its header"},
    {SH "echo no module >&2; exit 1\n", MS_E_IO, "its last words: no module"},
    {SH "exec >&-; exec sleep 1000\n", MS_E_IO,
     "ended its output, and not itself, before its header"},
    {SH "yes >&2 & exit 3\n", MS_E_IO, "ended with status 3 before its header"}, /* who talks on */
    {SH "printf MSDATA; exit 0\n", MS_E_IO, "ended with status 0 before its header"},
    {SH "echo reading the files, please wait, this may take a moment or two .........\n",
     MS_E_INVALID, "what is for people belongs on standard error"},
    {"#!/nowhere/python\n", MS_E_IO, "its last words: cannot execute "},
};

START_TEST(what_does_not_begin_is_refused)
{
    const struct data_spec spec = spec_of(unopened[_i].text);
    struct data_source *source = NULL;
    ck_ms_fails(data_open(&spec, &source, err), unopened[_i].code, unopened[_i].why);
}
END_TEST

/* At the beginning as behind it: its end may be somebody else's doing. */
START_TEST(one_that_dies_before_its_header_is_started_again)
{
    const struct data_spec spec =
        spec_of(SH "echo >>starts; [ $(wc -l <starts) -gt 2 ] || kill -KILL $$\n"
                   "header; while read row epoch seed; do record $row $epoch; done\n");
    struct data_source *source = opened(&spec);
    check_epochs(source);
    ck_assert_int_eq(said(source, "program make.sh: is started again: program make.sh ended by "),
                     2);
    data_close(source);
}
END_TEST

START_TEST(another_header_the_second_time_is_refused)
{
    const struct data_spec spec =
        spec_of(SH "if [ -e once ]; then header | tr '\\014' '\\015'; else header; fi; : >once\n");
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_fails(data_read(source, 0, &record, err), MS_E_INVALID, "its header is another one");
    data_close(source);
}
END_TEST

START_TEST(silence_has_an_end)
{
    struct data_spec spec = spec_of(SH "header; sleep 1000\n");
    spec.timeout = 5; /* its header is in time on a busy machine, too */
    struct data_source *source = opened(&spec);
    struct data_record record;
    ck_ms_fails(data_read(source, 4, &record, err), MS_E_IO,
                "has written nothing for 5 s, and record 4 was wanted");
    data_close(source);
}
END_TEST

static void *abort_soon(void *arg)
{
    usleep(200000);
    loader_abort(arg);
    return NULL;
}

START_TEST(an_abort_waits_for_no_program)
{
    struct data_spec spec = spec_of(SH "header; sleep 1000\n");
    spec.timeout = 1000;
    struct data_source *source = opened(&spec);
    const struct loader_config cfg = config_of(source);
    struct loader *loader = NULL;
    struct batch batch;
    pthread_t thread;
    const double begun = ms_mono_s();
    ck_ms_ok(loader_create(&cfg, &loader, err));
    ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, loader), 0);
    ck_ms_fails(loader_next(loader, &batch, err), MS_E_ABORTED, "");
    pthread_join(thread, NULL);
    loader_destroy(loader);
    data_close(source);
    ck_assert_double_lt(ms_mono_s() - begun, 60);
}
END_TEST

/* ---- what it says ---- */

START_TEST(who_talks_without_end_is_heard_for_a_while)
{
    const struct data_spec spec = spec_of(
        SH "header; read row epoch seed; i=0\n"
           "while [ $i -lt 12000 ]; do echo line $i; i=$((i + 1)); done >&2\n"
           "record $row $epoch; read row epoch seed; echo bye >&2; record $row $epoch; read row\n");
    struct data_source *source = opened(&spec);
    struct data_record record;
    char line[512];
    int n = 0;
    ck_ms_ok(data_read(source, 0, &record, err));
    ck_ms_ok(data_read(source, 1, &record, err));
    while (data_hear(source, line, sizeof(line))) {
        n++;
    }
    ck_assert_str_eq(line, "program make.sh: (after 10000 lines it is not listened to any more)");
    ck_assert_int_eq(n, 256 + 2);
    data_close(source);
}
END_TEST

/* ---- nobody is left ---- */

static pid_t pid_in(const char *name)
{
    char path[256];
    long pid = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (int i = 0; i < 20000 && pid == 0; i++) {
        FILE *file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%ld", &pid) != 1) {
            pid = 0;
        }
        if (file != NULL) {
            fclose(file);
        }
        usleep(pid == 0 ? 10000 : 0);
    }
    ck_assert_int_gt(pid, 0);
    return (pid_t)pid;
}

static int ends_soon(pid_t pid)
{
    for (int i = 0; i < 20000; i++) {
        char path[64];
        char text[256] = "";
        snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
        const int fd = open(path, O_RDONLY);
        const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (fd >= 0) {
            close(fd);
        }
        if (n <= 0 || strstr(text, ") Z ") != NULL) { /* a zombie is for init to take */
            return 1;
        }
        usleep(10000);
    }
    return 0;
}

START_TEST(what_it_has_started_ends_with_it)
{
    const struct data_spec spec =
        spec_of(SH "header; sleep 1000 & echo $! >helper; echo $$ >self; wait\n");
    struct data_source *source = opened(&spec);
    const pid_t helper = pid_in("helper");
    const pid_t self = pid_in("self");
    ck_assert_int_eq(kill(self, 0), 0);
    data_close(source);
    ck_assert_int_eq(kill(self, 0), -1);
    ck_assert_int_eq(errno, ESRCH);
    ck_assert(ends_soon(helper));
}
END_TEST

START_TEST(a_worker_that_is_killed_takes_it_along)
{
    const struct data_spec spec = spec_of("#!/bin/sh\necho $$ >self\nexec sleep 1000\n");
    const pid_t worker = fork();
    if (worker == 0) {
        struct data_source *source = NULL;
        (void)data_open(&spec, &source, NULL);
        _exit(0);
    }
    const pid_t self = pid_in("self");
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_assert_int_eq(waitpid(worker, NULL, 0), worker);
    ck_assert(ends_soon(self));
}
END_TEST

/* ---- who may run what ---- */

START_TEST(a_worker_for_others_runs_what_its_operator_lists)
{
    const struct data_spec spec = spec_of(SERVE);
    struct data_source *source = NULL;
    ck_ms_ok(data_path_restrict("any", "any", "none", err));
    ck_ms_fails(data_open(&spec, &source, err), MS_E_REFUSED,
                "jobs run programs below data_programs of the worker alone, here none");
    ck_ms_ok(data_path_restrict("any", "any", "/usr/local/lib /opt", err));
    ck_ms_fails(data_open(&spec, &source, err), MS_E_REFUSED, "data_programs");
    struct data_spec absent = spec;
    snprintf(absent.path, sizeof(absent.path), "%s/none.sh", dir);
    ck_ms_fails(data_open(&absent, &source, err), MS_E_REFUSED, "data_programs");
    ck_ms_ok(data_path_restrict("any", "any", dir, err));
    data_close(opened(&spec));

    char link[256]; /* judged where it leads */
    snprintf(link, sizeof(link), "%s/sh", dir);
    ck_assert_int_eq(symlink("/bin/sh", link), 0);
    snprintf(absent.path, sizeof(absent.path), "%s", link);
    ck_ms_fails(data_open(&absent, &source, err), MS_E_REFUSED, "data_programs");
    ck_ms_fails(data_path_restrict("any", "any", "relative", err), MS_E_CONFIG,
                "data_programs: relative is no absolute path");
    ck_ms_ok(data_path_restrict("any", "any", "any", err));
}
END_TEST

START_TEST(a_worker_for_others_keeps_its_environment)
{
    const struct data_spec spec =
        spec_of(SH "[ -z \"$SECRET\" ] || exit 6\n[ \"$DATA\" = here ] || exit 7\n"
                   "[ \"$MSCHED_USAGE\" = train ] || exit 8\nheader; read row\n");
    setenv("SECRET", "s", 1);
    setenv("DATA", "here", 1);
    ck_ms_ok(data_path_restrict("DATA", "any", "any", err));
    data_close(opened(&spec));
    ck_ms_ok(data_path_restrict("any", "any", "any", err));
    struct data_source *source = NULL;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "status 6");
    unsetenv("SECRET");
    unsetenv("DATA");
}
END_TEST

START_TEST(what_cannot_be_executed_is_named)
{
    struct data_spec spec = spec_of(SERVE);
    struct data_source *source = NULL;
    ck_assert_int_eq(chmod(spec.path, 0600), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "no file that can be executed");
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_INVALID, "no file that can be executed");
    snprintf(spec.path, sizeof(spec.path), "%s/none", dir);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_NOT_FOUND, "check dataset.path");
}
END_TEST

/* ---- bytes ---- */

static const uint8_t golden[PROGRAM_HEADER_BYTES] = {
    'M', 'S', 'D', 'A', 'T', 'A', '\r', '\n', 1, 0, 0, 0, 1, 0, 0, 0,  /* f32 */
    3,   0,   0,   0,   0,   0,   0,    0,    2, 0, 0, 0, 1, 0, 0, 0,  /* 3 of 2 x 1 x 1 */
    1,   0,   0,   0,   0,   0,   0,    0,    2, 0, 0, 0, 0, 0, 0, 0}; /* two targets */

static const struct {
    int at, value;
    const char *why;
} bad_headers[] = {
    {0, 'X', "does not begin with a header"},
    {8, 2, "version 2 of the format"},
    {12, 2, "values of type 2"},
    {16, 0, "0 records; from 1"},
    {23, 1, "records; from 1"},
    {24, 0, "records of 0x1x1"},
    {31, 1, "sides are from 1"},
    {36, 5, "5 classes and 2 targets"},
    {40, 0, "0 classes and 0 targets"},
    {43, 1, "targets a row; at most"},
    {44, 1, "byte 44 of its header is 1"},
    {63, 9, "byte 63 of its header is 9"},
};

START_TEST(a_header_that_cannot_be_is_refused)
{
    uint8_t bytes[PROGRAM_HEADER_BYTES];
    struct data_info info;
    memcpy(bytes, golden, sizeof(bytes));
    bytes[bad_headers[_i].at] = (uint8_t)bad_headers[_i].value;
    ck_ms_fails(program_header_read(bytes, "p", &info, err), MS_E_INVALID, bad_headers[_i].why);
}
END_TEST

START_TEST(a_record_has_its_row_targets_and_values)
{
    struct data_info info;
    struct data_record record;
    _Alignas(8) uint8_t bytes[24] = {2};
    const float numbers[] = {1.5F, -2, 3, 0.25F};
    ck_ms_ok(program_header_read(golden, "p", &info, err));
    ck_assert_uint_eq(program_record_bytes(&info), sizeof(bytes));
    memcpy(bytes + 8, numbers, sizeof(numbers));
    ck_ms_ok(program_record_read(&info, bytes, "p", 2, &record, err));
    ck_assert_int_eq(record.label, -1);
    ck_assert_mem_eq(record.targets, numbers, 2 * sizeof(float));
    ck_assert_mem_eq(record.values, numbers + 2, 2 * sizeof(float));
    ck_ms_fails(program_record_read(&info, bytes, "p", 1, &record, err), MS_E_INVALID,
                "record 1 was asked for, and record 2 came");
    const float bad[] = {NAN, INFINITY};
    memcpy(bytes + 12, &bad[0], sizeof(float));
    ck_ms_fails(program_record_read(&info, bytes, "p", 2, &record, err), MS_E_INVALID,
                "record 2: target 1 is ");
    memcpy(bytes + 12, numbers, sizeof(float));
    memcpy(bytes + 16, &bad[1], sizeof(float));
    ck_ms_fails(program_record_read(&info, bytes, "p", 2, &record, err), MS_E_INVALID,
                "record 2: value 0 is inf");
}
END_TEST

START_TEST(a_label_is_one_of_the_classes)
{
    struct data_info info = {
        .rows = 3, .channels = 1, .height = 1, .width = 1, .dtype = MS_U8, .classes = 4};
    _Alignas(8) uint8_t bytes[16] = {1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9};
    struct data_record record;
    ck_assert_uint_eq(program_record_bytes(&info), 13);
    ck_ms_ok(program_record_read(&info, bytes, "p", 1, &record, err));
    ck_assert_int_eq(record.label, 3);
    ck_assert_int_eq(*(const uint8_t *)record.values, 9);
    bytes[8] = 4;
    ck_ms_fails(program_record_read(&info, bytes, "p", 1, &record, err), MS_E_INVALID,
                "record 1 has label 4; its header says 4 classes, 0 to 3");
    memset(bytes + 8, 0xFF, 4);
    ck_ms_fails(program_record_read(&info, bytes, "p", 1, &record, err), MS_E_INVALID, "label -1");
    info.ignored = (struct data_ignored){.is_there = 1, .label = -1};
    ck_ms_ok(program_record_read(&info, bytes, "p", 1, &record, err));
    ck_assert_int_eq(record.label, -1);
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
    Suite *suite = suite_create("program");
    TCase *tc = test_case_create("program");
    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, records_come_in_the_order_of_the_loader);
    tcase_add_test(tc, it_goes_on_from_the_exact_record);
    tcase_add_test(tc, a_split_is_made_of_all_records);
    tcase_add_test(tc, arguments_are_its_own);
    tcase_add_test(tc, what_it_is_tells_it_from_others);
    tcase_add_test(tc, its_usage_is_the_job_s_whatever_the_worker_has);
    tcase_add_loop_test(tc, one_that_ends_is_started_again_at_the_exact_record, 0,
                        (int)MS_ARRAY_SIZE(mortals));
    tcase_add_test(tc, what_one_says_at_its_end_is_heard);
    tcase_add_test(tc, one_that_ends_each_time_fails_with_its_last_words);
    tcase_add_loop_test(tc, what_does_not_begin_is_refused, 0, (int)MS_ARRAY_SIZE(unopened));
    tcase_add_test(tc, one_that_dies_before_its_header_is_started_again);
    tcase_add_test(tc, another_header_the_second_time_is_refused);
    tcase_add_test(tc, silence_has_an_end);
    tcase_add_test(tc, an_abort_waits_for_no_program);
    tcase_add_test(tc, who_talks_without_end_is_heard_for_a_while);
    tcase_add_test(tc, what_it_has_started_ends_with_it);
    tcase_add_test(tc, a_worker_that_is_killed_takes_it_along);
    tcase_add_test(tc, a_worker_for_others_runs_what_its_operator_lists);
    tcase_add_test(tc, a_worker_for_others_keeps_its_environment);
    tcase_add_test(tc, what_cannot_be_executed_is_named);
    tcase_add_loop_test(tc, a_header_that_cannot_be_is_refused, 0, (int)MS_ARRAY_SIZE(bad_headers));
    tcase_add_test(tc, a_record_has_its_row_targets_and_values);
    tcase_add_test(tc, a_label_is_one_of_the_classes);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
