/* test_cli_finder.c - which scheduler msctl talks to, and as whom */
#include "cli/finder.h"
#include "proto/cert.h"
#include "tests/test.h"

#include <sys/stat.h>

static char root[64];
static char user_dir[96];
static char system_dir[96];
static struct finder_places places;
static struct finder_target target;

static void setup(void)
{
    snprintf(root, sizeof(root), "%s", test_dir_make());
    snprintf(user_dir, sizeof(user_dir), "%s/user", root);
    snprintf(system_dir, sizeof(system_dir), "%s/system", root);
    mkdir(user_dir, 0700);
    mkdir(system_dir, 0700);
    memset(&places, 0, sizeof(places));
    places.user_dir = user_dir;
    places.system_dir = system_dir;
    places.socket_path = "/run/x.sock";
}

static void teardown(void)
{
    finder_target_wipe(&target);
    test_dir_remove(root);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(nothing_said_means_the_local_socket)
{
    ck_ms_ok(finder_find(&places, &target, err));

    ck_assert_str_eq(target.address, "unix:/run/x.sock");
    ck_assert_int_eq(target.is_unix, 1);
    ck_assert_int_eq(target.use_tls, 0);
}
END_TEST

START_TEST(the_first_place_that_says_something_decides)
{
    write_file(system_dir, "msctl.conf", "server = system:1\ntls = off\n");
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_str_eq(target.address, "system:1");

    write_file(user_dir, "msctl.conf", "server = user:2\n");
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_str_eq(target.address, "user:2");

    places.env_host = "environment";
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_str_eq(target.address, "environment:8118");

    places.env_port = "6667";
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_str_eq(target.address, "environment:6667");

    places.flag = "flag:3";
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_str_eq(target.address, "flag:3");
}
END_TEST

START_TEST(an_ipv6_host_of_the_environment_gets_brackets)
{
    places.env_host = "::1";
    places.env_port = "6667";

    ck_ms_ok(finder_find(&places, &target, err));

    ck_assert_str_eq(target.address, "[::1]:6667");
}
END_TEST

START_TEST(all_that_was_looked_at_is_told)
{
    write_file(system_dir, "msctl.conf", "# nothing\n");

    ck_ms_ok(finder_find(&places, &target, err));

    const char *const parts[] = {"--server",
                                 "not given",
                                 "MS_SCHED_HOST",
                                 "not set",
                                 "user/msctl.conf does not exist",
                                 "system/msctl.conf names no server",
                                 "unix:/run/x.sock"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        ck_assert_msg(strstr(target.tried, parts[i]) != NULL, "%s lacks %s", target.tried,
                      parts[i]);
    }
}
END_TEST

START_TEST(a_file_that_was_named_must_be_there)
{
    places.config = "/nonexistent/msctl.conf";
    ck_ms_fails(finder_find(&places, &target, err), MS_E_CONFIG, "/nonexistent/msctl.conf");
}
END_TEST

START_TEST(a_wrong_key_comes_with_file_line_and_the_nearest)
{
    write_file(user_dir, "msctl.conf", "\nsevrer = a:1\n");
    ck_ms_fails(finder_find(&places, &target, err), MS_E_CONFIG, "line 2");
    ck_ms_fails(finder_find(&places, &target, err), MS_E_CONFIG, "'server'");
}
END_TEST

START_TEST(loopback_needs_no_certificate_and_other_hosts_do)
{
    places.flag = "127.0.0.1:8118";
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_int_eq(target.use_tls, 0);

    places.flag = "head:8118";
    ck_ms_fails(finder_find(&places, &target, err), MS_E_TLS, "msctl certs issue user");
    ck_assert_str_eq(target.plain_by, "");
    places.env_ssl = "0";
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_int_eq(target.use_tls, 0);
    ck_assert_str_eq(target.plain_by, "MS_ENABLE_SSL=0");
    places.env_ssl = "1";
    places.flag = "127.0.0.1:8118";
    ck_ms_fails(finder_find(&places, &target, err), MS_E_TLS, "client.p12");
    places.env_ssl = "yes";
    ck_ms_fails(finder_find(&places, &target, err), MS_E_CONFIG, "MS_ENABLE_SSL");
}
END_TEST

START_TEST(certificates_are_found_beside_the_settings_and_used)
{
    struct ms_ca *ca = NULL;
    char path[160];
    char warning[MS_TEXT_MAX + 1];
    SSL_CTX *ctx = NULL;
    struct ms_cert_request request = {MS_ROLE_USER, "ann", NULL, 400, ""};
    ck_ms_ok(ms_ca_create("test", 400, &ca, err));
    snprintf(path, sizeof(path), "%s/ca.crt", user_dir);
    ck_ms_ok(ms_ca_export(ca, path, err));
    snprintf(path, sizeof(path), "%s/client.p12", user_dir);
    ck_ms_ok(ms_ca_issue(ca, &request, path, NULL, err));
    ms_ca_destroy(ca);
    places.flag = "head:8118";

    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_int_eq(target.use_tls, 1);
    ck_assert_str_eq(target.tls_host, "head");
    ck_ms_ok(finder_tls(&target, &ctx, warning, err));

    ck_assert_ptr_nonnull(ctx);
    SSL_CTX_free(ctx);
}
END_TEST

START_TEST(wrong_addresses_are_refused)
{
    const char *const bad[] = {"head:99999", "he ad:1", "unix:", ":1"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(bad); i++) {
        places.flag = bad[i];
        ck_ms_fails(finder_find(&places, &target, err), MS_E_INVALID, "address");
    }
    places.flag = NULL;
    write_file(user_dir, "msctl.conf", "server = unix:relative.sock\n");
    ck_ms_fails(finder_find(&places, &target, err), MS_E_INVALID, "must begin with /");
}
END_TEST

START_TEST(a_relative_socket_on_the_command_line_counts_from_here)
{
    char here[1024];
    char want[1100];
    places.flag = "unix:run-1/scheduler.sock"; /* as `msctl run` shows its folder */

    ck_ms_ok(finder_find(&places, &target, err));

    snprintf(want, sizeof(want), "unix:%s/run-1/scheduler.sock", getcwd(here, sizeof(here)));
    ck_assert_str_eq(target.address, want);
}
END_TEST

START_TEST(places_behind_the_first_are_not_taken_for_tried)
{
    write_file(user_dir, "msctl.conf", "server = head:8118\ntls = off\n");
    places.flag = "head:8119";

    ck_ms_ok(finder_find(&places, &target, err));

    ck_assert_msg(strstr(target.tried, "server = head:8118 (not asked") != NULL, "%s",
                  target.tried);
    ck_assert_msg(strncmp(target.plain_by, "tls = off in /", 14) == 0 &&
                      strstr(target.plain_by, "/msctl.conf") != NULL,
                  "%s", target.plain_by);
    places.flag = NULL;
    ck_ms_ok(finder_find(&places, &target, err));
    ck_assert_msg(strstr(target.tried, "not asked") == NULL, "%s", target.tried);
}
END_TEST

START_TEST(what_is_missing_beside_a_certificate_is_named)
{
    write_file(user_dir, "client.p12", "something");
    places.flag = "head:8118";

    ck_ms_fails(finder_find(&places, &target, err), MS_E_TLS, "no ca.crt");
    ck_ms_fails(finder_find(&places, &target, err), MS_E_TLS, "user/client.p12");
}
END_TEST

START_TEST(a_long_socket_path_goes_through_its_directory)
{
    char dir[300];
    char address[400];
    char shortened[128];
    int fd = -1;
    snprintf(dir, sizeof(dir), "%s/", root);
    memset(dir + strlen(dir), 'd', 150);
    dir[strlen(root) + 151] = '\0';
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(address, sizeof(address), "unix:%s/s.sock", dir);

    ck_ms_ok(finder_short_path(address, shortened, sizeof(shortened), &fd, err));
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(strstr(shortened, "/proc/self/fd/"));
    write_file(dir, "s.sock", "here");
    ck_assert_int_eq(access(shortened + strlen("unix:"), F_OK), 0);
    close(fd);

    ck_ms_ok(finder_short_path("unix:/run/x.sock", shortened, sizeof(shortened), &fd, err));
    ck_assert_int_eq(fd, -1);
    ck_assert_str_eq(shortened, "unix:/run/x.sock");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_finder");
    TCase *tc = tcase_create("finder");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nothing_said_means_the_local_socket);
    tcase_add_test(tc, the_first_place_that_says_something_decides);
    tcase_add_test(tc, an_ipv6_host_of_the_environment_gets_brackets);
    tcase_add_test(tc, all_that_was_looked_at_is_told);
    tcase_add_test(tc, a_file_that_was_named_must_be_there);
    tcase_add_test(tc, a_wrong_key_comes_with_file_line_and_the_nearest);
    tcase_add_test(tc, loopback_needs_no_certificate_and_other_hosts_do);
    tcase_add_test(tc, certificates_are_found_beside_the_settings_and_used);
    tcase_add_test(tc, wrong_addresses_are_refused);
    tcase_add_test(tc, a_relative_socket_on_the_command_line_counts_from_here);
    tcase_add_test(tc, places_behind_the_first_are_not_taken_for_tried);
    tcase_add_test(tc, what_is_missing_beside_a_certificate_is_named);
    tcase_add_test(tc, a_long_socket_path_goes_through_its_directory);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
