/* test_cli_crl.c - the list of revoked ones gets wherever the programs of a host look for it */
#include "cli/certs.h"
#include "proto/cert.h"
#include "tests/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static char etc[96];
static struct ms_ca *ca;
static struct cli cli;
static char *out;
static size_t n_out;

static const char *in(const char *name)
{
    static char paths[4][200];
    static int at;
    at = (at + 1) % 4;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", root, name);
    return paths[at];
}

static void make_folder(const char *name, struct ms_ca *of)
{
    char file[100];
    ck_assert_int_eq(mkdir(in(name), 0700), 0);
    snprintf(file, sizeof(file), "%s/ca.crt", name);
    ck_ms_ok(ms_ca_export(of, in(file), err));
}

static void make_foreign(const char *name)
{
    struct ms_ca *other = NULL;
    ck_ms_ok(ms_ca_create("other ca", 365, &other, err));
    make_folder(name, other);
    ms_ca_destroy(other);
}

/* A file of settings; %s in its text stands for the folder of the test. */
static void set(const char *name, const char *format)
{
    FILE *file = fopen(in(name), "w");
    ck_assert_ptr_nonnull(file);
    for (const char *p = format; *p != '\0'; p++) {
        if (p[0] == '%') {
            fputs(root, file);
        } else {
            fputc(*p, file);
        }
    }
    fclose(file);
}

static void setup(void)
{
    snprintf(root, sizeof(root), "%s", test_dir_make());
    snprintf(etc, sizeof(etc), "%s/etc", root);
    ck_assert_int_eq(mkdir(etc, 0700), 0);
    ck_ms_ok(ms_ca_create("lab ca", 365, &ca, err));
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in("list.pem"), 30, err));
    make_folder("etc/tls", ca);
    make_folder("wtls", ca);
    memset(&cli, 0, sizeof(cli));
    cli.out = open_memstream(&out, &n_out);
    ck_assert_ptr_nonnull(cli.out);
    cli.err = cli.out;
}

static void teardown(void)
{
    fclose(cli.out);
    free(out);
    ms_ca_destroy(ca);
    ca = NULL;
    test_dir_remove(root);
}

static int install(struct ms_err *err)
{
    struct ms_whole file;
    rewind(cli.out);
    ck_assert_int_eq(ms_whole_read(in("list.pem"), "", &file, err), MS_OK);
    int rc = certs_install_below(&cli, etc, &file, 0, err);
    ms_whole_fini(&file);
    fputc('\0', cli.out);
    fflush(cli.out);
    return rc;
}

static int has(const char *name)
{
    return access(in(name), F_OK) == 0;
}

static int said(const char *text)
{
    return strstr(out, text) != NULL;
}

START_TEST(a_setting_is_read_as_its_program_reads_it)
{
    set("etc/msworker.conf", "server = head:8118\ntls_dir = \"%/wtls\" # in quotes\n");
    ck_ms_ok(install(err));
    ck_assert(has("etc/tls/crl.pem") && has("wtls/crl.pem"));
}
END_TEST

START_TEST(a_value_may_hold_what_begins_no_comment)
{
    make_folder("w#tls", ca);
    set("etc/msworker.conf", "tls_dir = %/w#tls\n");
    ck_ms_ok(install(err));
    ck_assert(has("w#tls/crl.pem"));
}
END_TEST

START_TEST(a_value_of_any_length_does_no_harm)
{
    char text[1200] = "tls_dir=";
    memset(text + 8, '/', 1070);
    set("etc/msworker.conf", text);
    ck_ms_ok(install(err));
    ck_assert(said("tls_dir in") && said("a path that is too long"));
    ck_assert(has("etc/tls/crl.pem"));

    memcpy(text, "tls_ca =", 8);
    set("etc/msschedd.conf", text);
    ck_ms_ok(install(err));
    ck_assert(said("tls_ca in") && said("its CA's is"));
}
END_TEST

START_TEST(the_schedulers_own_settings_name_a_list)
{
    set("etc/msschedd.conf", "tls_ca = %/wtls/ca.crt\ntls_cert = %/wtls/node.p12\n"
                             "tls_crl = %/wtls/revoked.pem\n");
    ck_ms_ok(install(err));
    ck_assert(has("etc/tls/crl.pem") && has("wtls/revoked.pem"));
    ck_assert(said("/wtls/revoked.pem"));
}
END_TEST

START_TEST(tls_ca_judges_the_built_in_list)
{
    make_foreign("foreign");
    set("etc/msschedd.conf", "tls_ca = %/foreign/ca.crt\n");
    ck_ms_fails(install(err), MS_E_REFUSED, "another CA");
    ck_assert(!has("etc/tls/crl.pem"));
}
END_TEST

START_TEST(a_json_names_a_list_too)
{
    set("tls.json", "{\"server_cert_path\": \"s.p12\", \"ca_cert_path\": \"wtls/ca.crt\", "
                    "\"crl_path\": \"wtls/json.pem\"}");
    set("etc/msschedd.conf", "tls_config = %/tls.json\n");
    ck_ms_ok(install(err));
    ck_assert(has("wtls/json.pem") && has("etc/tls/crl.pem"));
}
END_TEST

START_TEST(a_json_that_names_no_list_is_no_success_where_it_matters)
{
    set("tls.json", "{\"server_cert_path\": \"s.p12\", \"ca_cert_path\": \"wtls/ca.crt\", "
                    "\"crl_path\": \"\"}");
    set("etc/msschedd.conf", "tls_config = %/tls.json\n");
    ck_ms_fails(install(err), MS_E_CONFIG, "msschedd goes on trusting who was revoked: ");
    ck_ms_fails(install(err), MS_E_CONFIG, "/wtls/crl.pem\" there");
    ck_assert(has("etc/tls/crl.pem")); /* the worker beside it heeds it */
    cli.json = 1;
    ck_ms_fails(install(err), MS_E_CONFIG, "says no crl_path");
    ck_assert(said("\"state\":\"names no list\""));
    cli.json = 0;

    ck_assert_int_eq(unlink(in("wtls/ca.crt")) + rmdir(in("wtls")), 0);
    make_foreign("wtls");
    ck_ms_ok(install(err)); /* it trusts others, whom this list does not revoke */
    ck_assert(said("msschedd heeds no list of revoked certificates: ") &&
              said("/tls.json says no crl_path"));
}
END_TEST

START_TEST(no_tls_and_no_list_are_no_places)
{
    set("etc/msschedd.conf", "tls = off\ntls_ca = %/wtls/ca.crt\ntls_crl = %/wtls/crl.pem\n");
    ck_ms_ok(install(err));
    ck_assert(!has("wtls/crl.pem"));
    set("etc/msschedd.conf", "tls_ca = %/wtls/ca.crt\ntls_crl = none\n");
    ck_ms_ok(install(err));
    ck_assert(said("msschedd heeds no list"));
}
END_TEST

START_TEST(a_folder_of_another_ca_stops_nothing)
{
    make_foreign("etc/tls-old");
    make_folder("etc/tls-worker", ca);
    ck_ms_ok(install(err));
    ck_assert(has("etc/tls/crl.pem") && has("etc/tls-worker/crl.pem"));
    ck_assert(!has("etc/tls-old/crl.pem"));
    ck_assert(said("left alone: ") && said("/tls-old/ca.crt is another CA"));
}
END_TEST

START_TEST(nothing_but_other_cas_is_a_failure)
{
    ck_assert_int_eq(unlink(in("etc/tls/ca.crt")), 0);
    make_foreign("etc/tls-a");
    make_foreign("etc/tls-b");
    ck_ms_fails(install(err), MS_E_REFUSED, "installed nowhere");
}
END_TEST

START_TEST(one_that_cannot_be_written_is_a_failure_behind_which_it_goes_on)
{
    make_folder("etc/tls-worker", ca);
    ck_assert_int_eq(mkdir(in("etc/tls/crl.pem"), 0700), 0);
    ck_ms_fails(install(err), MS_E_IO, "1 of 2 places of this host did not get the list");
    ck_assert(said("not installed as ") && said("/etc/tls/crl.pem: "));
    ck_assert(has("etc/tls-worker/crl.pem"));
}
END_TEST

START_TEST(a_pipe_in_its_place_stays_one)
{
    make_folder("etc/tls-worker", ca);
    ck_assert_int_eq(mkfifo(in("etc/tls-worker/crl.pem"), 0600), 0);
    ck_ms_fails(install(err), MS_E_INVALID, "1 of 2 places of this host did not get the list");
    ck_assert(said("crl.pem is a device, a pipe or a socket"));
}
END_TEST

START_TEST(what_cannot_be_looked_at_is_said)
{
    ck_assert_int_eq(mkfifo(in("etc/msschedd.conf"), 0600), 0);
    set("etc/msworker.conf", "tls_dir = %/nowhere\n");
    ck_ms_ok(install(err));
    ck_assert(said("msschedd.conf is no regular file"));
    ck_assert(said("/nowhere/crl.pem, whose folder cannot be looked at"));
}
END_TEST

START_TEST(json_says_what_became_of_each)
{
    make_foreign("etc/tls-old");
    make_folder("etc/tls-worker", ca);
    set("etc/tls-worker/crl.pem", "an older one\n"); /* replaced */
    cli.json = 1;
    ck_ms_ok(install(err));
    ck_assert(said("\"state\":\"of another CA\"") && said("\"state\":\"written\""));
    ck_assert_msg(said("/etc/tls-worker\"]"), "folders are not sorted: %s", out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_crl");
    TCase *tc = tcase_create("cli_crl");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_setting_is_read_as_its_program_reads_it);
    tcase_add_test(tc, a_value_may_hold_what_begins_no_comment);
    tcase_add_test(tc, a_value_of_any_length_does_no_harm);
    tcase_add_test(tc, the_schedulers_own_settings_name_a_list);
    tcase_add_test(tc, tls_ca_judges_the_built_in_list);
    tcase_add_test(tc, a_json_names_a_list_too);
    tcase_add_test(tc, a_json_that_names_no_list_is_no_success_where_it_matters);
    tcase_add_test(tc, no_tls_and_no_list_are_no_places);
    tcase_add_test(tc, a_folder_of_another_ca_stops_nothing);
    tcase_add_test(tc, nothing_but_other_cas_is_a_failure);
    tcase_add_test(tc, one_that_cannot_be_written_is_a_failure_behind_which_it_goes_on);
    tcase_add_test(tc, a_pipe_in_its_place_stays_one);
    tcase_add_test(tc, what_cannot_be_looked_at_is_said);
    tcase_add_test(tc, json_says_what_became_of_each);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
