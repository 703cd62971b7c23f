/* test_regular.c - files of configuration are opened at once, whatever stands in their place */
#include "proto/regular.h"

#include "proto/ca.h"
#include "proto/cert.h"
#include "proto/certfile.h"
#include "proto/settings.h"
#include "proto/tls.h"
#include "proto/tls_files.h"
#include "tests/test.h"

#include <fcntl.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *dir;
static char path[128];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/file", dir);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static int open_it(const char *name, struct ms_err *err)
{
    FILE *file = NULL;
    int rc = ms_regular_open(name, "the file ", &file, err);
    ck_assert((rc == MS_OK) == (file != NULL));
    if (file != NULL) {
        fclose(file);
    }
    return rc;
}

START_TEST(a_file_and_a_link_to_one_are_opened)
{
    char link[160];
    snprintf(link, sizeof(link), "%s.link", path);
    fclose(fopen(path, "w"));
    ck_assert_int_eq(symlink(path, link), 0);
    ck_ms_ok(open_it(path, err));
    ck_ms_ok(open_it(link, err));
    ck_ms_ok(open_it("/dev/null", err)); /* --config /dev/null: no settings */
}
END_TEST

START_TEST(what_is_not_there_is_told_from_what_cannot_be_read)
{
    ck_ms_fails(open_it(path, err), MS_E_NOT_FOUND, "cannot read the file ");
    ck_assert_int_eq(symlink("file", path), 0);
    ck_ms_fails(open_it(path, err), MS_E_IO, "cannot read the file ");
}
END_TEST

START_TEST(whatever_is_no_file_is_refused_at_once)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_ms_fails(open_it(path, err), MS_E_INVALID, "file is no regular file");
    ck_ms_fails(open_it(dir, err), MS_E_INVALID, "is a folder and no file: name the file itself");
    ck_ms_fails(open_it("/dev/zero", err), MS_E_INVALID, "is no regular file");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s.sock", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_ms_fails(open_it(address.sun_path, err), MS_E_INVALID, "is no regular file");
    close(fd);
}
END_TEST

/* Each reader of what a daemon reads again: with a FIFO there it would never come back. */
START_TEST(no_reader_of_configuration_waits_for_a_fifo)
{
    static const struct ms_setting rows[] = {
        {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL}};
    struct ms_settings *settings = NULL;
    struct ms_tls_files files;
    struct ms_p12 p12;
    X509 *cert = NULL;
    SSL_CTX *ctx = NULL;
    struct ms_ca *ca = NULL;
    char p12_path[160];
    char ca_path[160];
    int argc = 1;
    char program[] = "program";
    char *argv[] = {program, NULL};
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_ms_fails(ms_settings_load(rows, path, 1, &argc, argv, &settings, err), MS_E_CONFIG,
                "is no regular file");
    ck_ms_fails(ms_settings_load(rows, path, 0, &argc, argv, &settings, err), MS_E_CONFIG,
                "is no regular file");
    ck_ms_fails(ms_tls_files_parse(path, 1, &files, err), MS_E_CONFIG, "is no regular file");
    ck_ms_fails(ms_tls_files_password(path, &files, err), MS_E_CONFIG, "is no regular file");
    ck_ms_fails(ms_p12_read(path, "", &p12, err), MS_E_INVALID, "is no regular file");
    ck_ms_fails(ms_pem_read(path, &cert, err), MS_E_INVALID, "is no regular file");

    snprintf(p12_path, sizeof(p12_path), "%s.p12", path);
    snprintf(ca_path, sizeof(ca_path), "%s.crt", path);
    struct ms_cert_request request = {
        .role = MS_ROLE_WORKER, .name = "w1", .days = 30, .password = ""};
    ck_ms_ok(ms_ca_create("test", 400, &ca, err));
    ck_ms_ok(ms_ca_export(ca, ca_path, err));
    ck_ms_ok(ms_ca_issue(ca, &request, p12_path, NULL, err));
    ms_ca_destroy(ca);
    struct ms_tls_config config = {.p12_path = p12_path, .p12_password = "", .ca_path = path};
    ck_ms_fails(ms_tls_context(&config, &ctx, NULL, err), MS_E_INVALID, "is no regular file");
    config.ca_path = ca_path;
    config.crl_path = path;
    config.crl_may_miss = 1;
    ck_ms_fails(ms_tls_context(&config, &ctx, NULL, err), MS_E_INVALID, "is no regular file");
    config.ca_path = dir; /* as a container makes what it was to mount and did not find */
    ck_ms_fails(ms_tls_context(&config, &ctx, NULL, err), MS_E_INVALID,
                "put it there in place of the folder");
}
END_TEST

/* A pipe that holds the file and that nobody writes to any more; returns its name in buf. */
static const char *pipe_of(const char *file, char *buf, size_t size)
{
    uint8_t bytes[8192]; /* a pipe takes that much without a reader */
    int ends[2];
    FILE *from = fopen(file, "r");
    ck_assert_ptr_nonnull(from);
    size_t n = fread(bytes, 1, sizeof(bytes), from);
    fclose(from);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], bytes, n), (ssize_t)n);
    close(ends[1]);
    snprintf(buf, size, "/proc/self/fd/%d", ends[0]);
    return buf;
}

static void *write_late(void *arg)
{
    FILE *file = fopen(arg, "w"); /* waits for the reader */
    fputs("late", file);
    fclose(file);
    return NULL;
}

/* Last: it holds for the process. */
START_TEST(a_program_that_may_wait_reads_pipes)
{
    static const struct ms_setting rows[] = {
        {"key", NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
        {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL}};
    struct ms_settings *settings = NULL;
    char name[64];
    char text[16] = "";
    char p12_path[160];
    char program[] = "program";
    char *argv[] = {program, NULL};
    int argc = 1;
    struct ms_ca *ca = NULL;
    X509 *cert = NULL;
    FILE *file = NULL;
    pthread_t writer;
    struct ms_cert_request request = {
        .role = MS_ROLE_WORKER, .name = "w1", .days = 30, .password = ""};
    ms_regular_take_pipes();

    file = fopen(path, "w");
    fputs("key = value\n", file);
    fclose(file);
    ck_ms_ok(
        ms_settings_load(rows, pipe_of(path, name, sizeof(name)), 1, &argc, argv, &settings, err));
    ck_assert_str_eq(ms_settings_string(settings, "key"), "value");
    ms_settings_destroy(settings);

    snprintf(p12_path, sizeof(p12_path), "%s.p12", path);
    ck_ms_ok(ms_ca_create("test", 400, &ca, err));
    ck_ms_ok(ms_ca_export(ca, path, err));
    ck_ms_ok(ms_ca_issue(ca, &request, p12_path, NULL, err));
    ms_ca_destroy(ca);
    ck_ms_ok(ms_cert_read(pipe_of(path, name, sizeof(name)), "", &cert, err));
    X509_free(cert);
    ck_ms_ok(ms_cert_read(pipe_of(p12_path, name, sizeof(name)), "", &cert, err));
    X509_free(cert);

    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_ms_fails(open_it(path, err), MS_E_INVALID, "is no regular file"); /* nobody may ever write */
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd); /* as a shell gives one */
    ck_assert_int_eq(pthread_create(&writer, NULL, write_late, path), 0);
    ck_ms_ok(ms_regular_open(name, "", &file, err));
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_str_eq(text, "late");
    fclose(file);
    pthread_join(writer, NULL);
    close(fd);
    ck_ms_fails(open_it(dir, err), MS_E_INVALID, "is a folder and no file: name the file itself");
    ck_ms_fails(open_it("/dev/zero", err), MS_E_INVALID, "is no regular file");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("regular");
    TCase *tcase = test_case_create("regular");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_file_and_a_link_to_one_are_opened);
    tcase_add_test(tcase, what_is_not_there_is_told_from_what_cannot_be_read);
    tcase_add_test(tcase, whatever_is_no_file_is_refused_at_once);
    tcase_add_test(tcase, no_reader_of_configuration_waits_for_a_fifo);
    tcase_add_test(tcase, a_program_that_may_wait_reads_pipes);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
