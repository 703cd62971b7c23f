/* test_tls_files.c - the seed's TLS JSON and password files */
#include "proto/tls_files.h"
#include "tests/test.h"

#include <sys/stat.h>

static const char *dir;
static char json[128];
static struct ms_tls_files files;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(json, sizeof(json), "%s/tls.json", dir);
    unsetenv("CREDENTIALS_DIRECTORY");
    memset(&files, 0, sizeof(files));
}

static void teardown(void)
{
    unsetenv("CREDENTIALS_DIRECTORY");
    test_dir_remove(dir);
}

static void write_file(const char *name, const char *text, unsigned mode)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    chmod(path, (mode_t)mode);
}

/* The document's example, cipher list with its stray blank included. */
static const char seed[] =
    "{\"server_cert_path\": \"server.p12\", \"crl_path\": \"\", \"client_cert_path\": "
    "\"/abs/client.p12\", \"ca_cert_path\": \"ca.crt\", \"cipher_list\": "
    "\"ECDHE-R SA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256\", "
    "\"cert_expire_warning_time_in_day\": 90}";

START_TEST(the_seeds_file_is_read_for_a_server)
{
    char want[192];
    write_file("tls.json", seed, 0644);

    ck_ms_ok(ms_tls_files_parse(json, 1, &files, err));

    snprintf(want, sizeof(want), "%s/server.p12", dir); /* relative to the JSON's folder */
    ck_assert_str_eq(files.p12_path, want);
    snprintf(want, sizeof(want), "%s/ca.crt", dir);
    ck_assert_str_eq(files.ca_path, want);
    ck_assert_str_eq(files.crl_path, "");
    ck_assert_str_eq(files.password, "");
    ck_assert_int_eq(files.expire_warning_days, 90);
    ck_assert_ptr_nonnull(strstr(files.cipher_list, "ECDHE-ECDSA"));
}
END_TEST

START_TEST(the_interval_between_two_looks_at_the_certificates_is_heeded)
{
    write_file("tls.json", seed, 0644);
    ck_ms_ok(ms_tls_files_parse(json, 1, &files, err));
    ck_assert_int_eq(files.check_interval_hours, 0); /* not said: the default */

    write_file("tls.json",
               "{\"server_cert_path\":\"a\",\"client_cert_path\":\"b\",\"ca_cert_path\":\"c\","
               "\"cert_check_interval_in_hour\":168}",
               0644);
    ck_ms_ok(ms_tls_files_parse(json, 0, &files, err));
    ck_assert_int_eq(files.check_interval_hours, 168);
}
END_TEST

START_TEST(a_client_takes_its_own_certificate)
{
    write_file("tls.json", seed, 0644);
    ck_ms_ok(ms_tls_files_parse(json, 0, &files, err));
    ck_assert_str_eq(files.p12_path, "/abs/client.p12");
}
END_TEST

START_TEST(the_config_borrows_and_leaves_out_what_is_empty)
{
    struct ms_tls_config config;
    write_file("tls.json", seed, 0644);
    ck_ms_ok(ms_tls_files_parse(json, 1, &files, err));

    ms_tls_files_config(&files, &config);

    ck_assert_ptr_eq(config.p12_path, files.p12_path);
    ck_assert_ptr_null(config.crl_path);
    ck_assert_ptr_nonnull(config.cipher_list);
}
END_TEST

START_TEST(the_password_comes_from_a_file_without_its_newline)
{
    write_file("password", "se cret\r\nsecond line\n", 0600);
    write_file("tls.json",
               "{\"server_cert_path\":\"a\",\"client_cert_path\":\"b\",\"ca_cert_path\":\"c\","
               "\"password_file\":\"password\"}",
               0644);
    ck_ms_ok(ms_tls_files_parse(json, 1, &files, err));
    ck_assert_str_eq(files.password, "se cret");

    ms_tls_files_wipe(&files);

    for (size_t i = 0; i < sizeof(files); i++) {
        ck_assert_int_eq(((const char *)&files)[i], 0);
    }
}
END_TEST

START_TEST(a_password_that_others_can_read_is_refused_with_the_command)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/password", dir);
    write_file("password", "secret\n", 0604);
    ck_ms_fails(ms_tls_files_password(path, &files, err), MS_E_CONFIG, "chmod 0600");
    chmod(path, 0620);
    ck_ms_fails(ms_tls_files_password(path, &files, err), MS_E_CONFIG, "mode 0620");
    chmod(path, 0640); /* root:msched, as the others beside it */
    ck_ms_ok(ms_tls_files_password(path, &files, err));
}
END_TEST

START_TEST(a_systemd_credential_serves_where_no_file_is_named)
{
    write_file("p12-password", "from systemd", 0400);
    ck_ms_ok(ms_tls_files_password(NULL, &files, err));
    ck_assert_str_eq(files.password, "");
    setenv("CREDENTIALS_DIRECTORY", dir, 1);

    ck_ms_ok(ms_tls_files_password("", &files, err));

    ck_assert_str_eq(files.password, "from systemd");
}
END_TEST

START_TEST(a_missing_password_file_is_named)
{
    ck_ms_fails(ms_tls_files_password("/nonexistent/p", &files, err), MS_E_CONFIG,
                "/nonexistent/p: No such file");
}
END_TEST

START_TEST(a_password_of_any_length_fits_or_is_refused)
{
    char path[192];
    char text[MS_TLS_PASSWORD_MAX + 2];
    snprintf(path, sizeof(path), "%s/password", dir);
    memset(text, 'a', sizeof(text));
    text[MS_TLS_PASSWORD_MAX] = '\0';
    write_file("password", text, 0600);
    ck_ms_ok(ms_tls_files_password(path, &files, err));
    ck_assert_uint_eq(strlen(files.password), MS_TLS_PASSWORD_MAX);

    text[MS_TLS_PASSWORD_MAX] = 'a';
    text[MS_TLS_PASSWORD_MAX + 1] = '\0';
    write_file("password", text, 0600);
    ck_ms_fails(ms_tls_files_password(path, &files, err), MS_E_CONFIG, "longer than 256");
}
END_TEST

#define START "{\"server_cert_path\":\"a\",\"client_cert_path\":\"b\",\"ca_cert_path\":\"c\""

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "tls.json, line"},
    {"[1]", "must be an object"},
    {"{\"server_cert_path\": \"a\",", "line 1"},
    {START ",\"server_cert_pth\":\"x\"}", "did you mean \"server_cert_path\"?"},
    {START ",\"password\":\"123456\"}", "unknown key \"password\""},
    {START ",\"zzz\":1}", "unknown key \"zzz\""},
    {START ",\"crl_path\":5}", "crl_path must be the path of a file"},
    {START ",\"cipher_list\":[]}", "cipher_list must be a text"},
    {START ",\"password_file\":{}}", "password_file must be"},
    {START ",\"cert_expire_warning_time_in_day\":6}", "7 to 180"},
    {START ",\"cert_expire_warning_time_in_day\":181}", "7 to 180"},
    {START ",\"cert_expire_warning_time_in_day\":\"90\"}", "whole number"},
    {START ",\"cert_check_interval_in_hour\":0}",
     "cert_check_interval_in_hour must be a whole number, 1 to 720"},
    {START ",\"cert_check_interval_in_hour\":721}", "1 to 720"},
    {START ",\"cert_check_interval_in_hour\":24.0}", "1 to 720"},
    {START ",\"ca_cert_path\":\"again\"}", "duplicate"},
    {"{\"server_cert_path\":\"a\",\"client_cert_path\":\"b\"}", "ca_cert_path must be"},
    {"{\"ca_cert_path\":\"a\",\"server_cert_path\":\"\"}", "server_cert_path must be"},
};

START_TEST(a_wrong_file_is_refused_with_the_place)
{
    write_file("tls.json", wrong[_i].text, 0644);
    ck_ms_fails(ms_tls_files_parse(json, 1, &files, err), MS_E_CONFIG, wrong[_i].says);
    ck_ms_fails(ms_tls_files_parse(json, 1, &files, err), MS_E_CONFIG, "tls.json");
    ck_assert_str_eq(files.ca_path, ""); /* nothing was written */
}
END_TEST

START_TEST(a_missing_file_a_folder_and_a_giant_are_refused)
{
    ck_ms_fails(ms_tls_files_parse("/nonexistent.json", 1, &files, err), MS_E_CONFIG,
                "/nonexistent.json: No such file");
    ck_ms_fails(ms_tls_files_parse(dir, 1, &files, err), MS_E_CONFIG, "is a folder and no file");
    write_file("tls.json", "", 0644);
    ck_assert_int_eq(truncate(json, 1 << 20), 0);
    ck_ms_fails(ms_tls_files_parse(json, 1, &files, err), MS_E_CONFIG, "over 64 KiB");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls_files");
    TCase *tcase = tcase_create("tls_files");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_seeds_file_is_read_for_a_server);
    tcase_add_test(tcase, the_interval_between_two_looks_at_the_certificates_is_heeded);
    tcase_add_test(tcase, a_client_takes_its_own_certificate);
    tcase_add_test(tcase, the_config_borrows_and_leaves_out_what_is_empty);
    tcase_add_test(tcase, the_password_comes_from_a_file_without_its_newline);
    tcase_add_test(tcase, a_password_that_others_can_read_is_refused_with_the_command);
    tcase_add_test(tcase, a_systemd_credential_serves_where_no_file_is_named);
    tcase_add_test(tcase, a_missing_password_file_is_named);
    tcase_add_test(tcase, a_password_of_any_length_fits_or_is_refused);
    tcase_add_loop_test(tcase, a_wrong_file_is_refused_with_the_place, 0,
                        (int)MS_ARRAY_SIZE(wrong));
    tcase_add_test(tcase, a_missing_file_a_folder_and_a_giant_are_refused);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
