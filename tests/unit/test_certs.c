/* test_certs.c - a worker program's certificates: whose trouble is whose, and how often it looks */
#include "libworker/program/certs.h"
#include "proto/ca.h"
#include "proto/cert.h"
#include "proto/log.h"
#include "tests/test.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <time.h>

static char dir[64], text[4096];
static struct ms_ca *ca;
static struct certs certs;

static int skew_s; /* of the clock by which OpenSSL judges dates */

MS_API time_t time(time_t *ret);
time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL) {
        *ret = now.tv_sec + skew_s;
    }
    return now.tv_sec + skew_s;
}

static const char *in(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void issue(enum ms_role role, int days)
{
    struct ms_cert_request req = {.role = role, .name = "w1", .days = days, .password = ""};
    unlink(in("node.p12"));
    ck_ms_ok(ms_ca_issue(ca, &req, in("node.p12"), NULL, err));
}

/* A list in the folder that begins and ends so many days from now. */
static void list_of_day(const struct ms_ca *of, int day)
{
    unlink(in("crl.pem"));
    ck_ms_ok(ms_ca_revoke(of, NULL, "", in("crl.pem"), 30, err));
    FILE *file = fopen(in("crl.pem"), "r+");
    X509_CRL *list = PEM_read_X509_CRL(file, NULL, NULL, NULL);
    ASN1_TIME *end = X509_time_adj_ex(NULL, day, 0, NULL);
    ck_assert_int_eq(X509_CRL_set1_lastUpdate(list, end), 1);
    ck_assert_int_eq(X509_CRL_set1_nextUpdate(list, end), 1);
    ck_assert_int_gt(X509_CRL_sign(list, of->key, EVP_sha256()), 0);
    rewind(file);
    ck_assert_int_eq(PEM_write_X509_CRL(file, list), 1);
    fclose(file);
    ASN1_TIME_free(end);
    X509_CRL_free(list);
}

static void setup(void)
{
    skew_s = 0;
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    unsetenv("CREDENTIALS_DIRECTORY");
    ck_ms_ok(ms_ca_create("test", 400, &ca, err));
    ck_ms_ok(ms_ca_export(ca, in("ca.crt"), err));
    certs = (struct certs){.kind = CERTS_FOLDER, .folder = dir, .p12 = "node.p12"};
}

static void teardown(void)
{
    ms_ca_destroy(ca);
    test_dir_remove(dir);
}

/* What was logged since. */
static const char *log_of(void (*act)(struct certs *certs))
{
    int fd = open(in("log"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ms_log_init(fd, MS_LOG_INFO, 0);
    act(&certs);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);
    close(fd);
    return text;
}

START_TEST(our_own_files_are_configuration_with_the_next_step)
{
    SSL_CTX *tls = NULL;
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "msctl certs issue worker");
    issue(MS_ROLE_USER, 100);
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "that of user:w1");
    issue(MS_ROLE_WORKER, 100);
    chmod(in("node.p12"), 0644);
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "chmod");
    chmod(in("node.p12"), 0600);
    ck_ms_ok(certs_load(&certs, &tls, err));
    ck_assert_ptr_nonnull(tls);
    SSL_CTX_free(tls);
    certs.kind = CERTS_NONE;
    ck_ms_ok(certs_load(&certs, &tls, err));
    ck_assert_ptr_null(tls);
}
END_TEST

START_TEST(a_list_that_is_out_of_date_may_be_mended_by_waiting)
{
    SSL_CTX *tls = NULL;
    issue(MS_ROLE_WORKER, 100);
    list_of_day(ca, -1);
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_TIMEOUT, "crl.pem is out of date");
    list_of_day(ca, 1); /* a clock that is behind */
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_TIMEOUT, "not yet valid");
    unlink(in("node.p12")); /* but where more is wrong, that is said */
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "node.p12");
}
END_TEST

/* At the start of a machine whose clock is set by its network only later. */
START_TEST(a_certificate_that_is_not_valid_yet_may_be_mended_by_waiting)
{
    SSL_CTX *tls = NULL;
    issue(MS_ROLE_WORKER, 100);
    skew_s = -2 * 86400;
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_TIMEOUT, "is this host's clock right?");
    skew_s = 0;
    ck_ms_ok(certs_load(&certs, &tls, err));
    SSL_CTX_free(tls);
}
END_TEST

START_TEST(no_next_list_mends_a_revocation_another_cas_list_or_garbage)
{
    SSL_CTX *tls = NULL;
    struct ms_ca *other = NULL;
    issue(MS_ROLE_WORKER, 100);
    snprintf(text, sizeof(text), "%s", in("node.p12"));
    ck_ms_ok(ms_ca_revoke(ca, text, "", in("crl.pem"), 30, err));
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "is revoked by");

    unlink(in("crl.pem"));
    ck_ms_ok(ms_ca_create("other", 400, &other, err));
    ck_ms_ok(ms_ca_revoke(other, NULL, "", in("crl.pem"), 30, err));
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "crl.pem has no list of the CA");
    list_of_day(other, -1);
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "crl.pem");
    ms_ca_destroy(other);

    FILE *file = fopen(in("crl.pem"), "w");
    fputs("half a li", file);
    fclose(file);
    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "crl.pem");
}
END_TEST

START_TEST(a_list_that_was_loaded_is_not_lost_by_a_reload)
{
    SSL_CTX *tls = NULL;
    issue(MS_ROLE_WORKER, 100);
    ck_ms_ok(certs_load(&certs, &tls, err)); /* no list yet: none is asked for */
    SSL_CTX_free(tls);
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in("crl.pem"), 30, err));
    ck_ms_ok(certs_load(&certs, &tls, err));
    SSL_CTX_free(tls);

    ck_assert_int_eq(unlink(in("crl.pem")), 0);

    ck_ms_fails(certs_load(&certs, &tls, err), MS_E_CONFIG, "crl.pem is missing");
    ck_assert_ptr_nonnull(strstr(log_of(certs_check), "crl.pem is missing"));
}
END_TEST

static void load(struct certs *it)
{
    SSL_CTX *tls = NULL;
    ck_ms_ok(certs_load(it, &tls, err));
    SSL_CTX_free(tls);
}

START_TEST(a_folder_that_was_forgotten_when_somebody_was_revoked_is_named)
{
    char worker[96];
    snprintf(worker, sizeof(worker), "%s", in("tls-worker"));
    ck_assert_int_eq(mkdir(worker, 0700), 0);
    ck_assert_int_eq(mkdir(in("tls"), 0700), 0);
    issue(MS_ROLE_WORKER, 100);
    snprintf(text, sizeof(text), "%s/node.p12", worker);
    ck_assert_int_eq(rename(in("node.p12"), text), 0);
    ck_ms_ok(ms_ca_export(ca, in("tls-worker/ca.crt"), err));
    certs.folder = worker;
    ck_assert_str_eq(log_of(load), "");

    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in("tls/crl.pem"), 30, err));
    log_of(load);
    ck_assert_msg(strstr(text, "warning tls.no_list folder=") != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "/tls/crl.pem"));

    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in("tls-worker/crl.pem"), 30, err));
    ck_assert_str_eq(log_of(load), "");
}
END_TEST

/* MindSpore's own has none. */
START_TEST(a_json_that_names_no_list_beside_one_is_said)
{
    char json[128];
    FILE *file = fopen(in("tls.json"), "w");
    fputs("{\"server_cert_path\": \"s.p12\", \"client_cert_path\": \"node.p12\", "
          "\"ca_cert_path\": \"ca.crt\", \"crl_path\": \"\"}",
          file);
    fclose(file);
    snprintf(json, sizeof(json), "%s", in("tls.json"));
    certs = (struct certs){.kind = CERTS_JSON, .json = json};
    issue(MS_ROLE_WORKER, 100);
    ck_assert_str_eq(log_of(load), "");

    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in("crl.pem"), 30, err));

    log_of(load);
    ck_assert_msg(strstr(text, "warning tls.no_list folder=") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "name the list as crl_path in the TLS JSON") != NULL, "%s", text);
}
END_TEST

START_TEST(it_looks_daily_or_as_the_json_says_and_says_what_no_longer_holds)
{
    SSL_CTX *tls = NULL;
    issue(MS_ROLE_WORKER, 100);
    ck_assert_int_eq(certs_check_ms(&certs), 24 * 3600000LL);
    ck_assert_str_eq(log_of(certs_check), "");
    unlink(in("node.p12"));
    ck_assert_ptr_nonnull(strstr(log_of(certs_check), "tls.unusable"));

    FILE *file = fopen(in("tls.json"), "w");
    fputs("{\"server_cert_path\": \"s.p12\", \"client_cert_path\": \"node.p12\", "
          "\"ca_cert_path\": \"ca.crt\", \"cert_check_interval_in_hour\": 3, "
          "\"cert_expire_warning_time_in_day\": 180}",
          file);
    fclose(file);
    char json[128];
    snprintf(json, sizeof(json), "%s", in("tls.json"));
    certs = (struct certs){.kind = CERTS_JSON, .json = json};
    issue(MS_ROLE_WORKER, 100);
    ck_ms_ok(certs_load(&certs, &tls, err));
    SSL_CTX_free(tls);
    ck_assert_int_eq(certs_check_ms(&certs), 3 * 3600000LL);
    ck_assert_str_eq(log_of(certs_check), "");
    issue(MS_ROLE_SCHEDULER, 100);
    ck_assert_ptr_nonnull(strstr(log_of(certs_check), "that of scheduler:w1"));
}
END_TEST

START_TEST(each_look_warns_of_a_certificate_that_is_about_to_expire)
{
    issue(MS_ROLE_WORKER,
          90); /* of which it has lived some minutes; warned from 90 days before on */
    for (int day = 0; day < 2; day++) {
        log_of(certs_check);
        ck_assert_msg(strstr(text, "warning tls.certificate warning=") != NULL, "%s", text);
        ck_assert_msg(strstr(text, "node.p12 expires in ") != NULL, "%s", text);
        ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1); /* one line a look */
    }
}
END_TEST

START_TEST(a_folder_lacks_certificates_only_where_it_has_none)
{
    ck_assert(!certs_are_missing(dir, "node.p12")); /* the CA's is there */
    unlink(in("ca.crt"));
    ck_assert(certs_are_missing(dir, "node.p12"));
    issue(MS_ROLE_WORKER, 30);
    ck_assert(!certs_are_missing(dir, "node.p12"));
    ck_assert(certs_are_missing(in("nowhere"), "node.p12"));
    ck_assert(certs_are_missing(in("node.p12"), "node.p12"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("certs");
    TCase *tc = tcase_create("certs");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, our_own_files_are_configuration_with_the_next_step);
    tcase_add_test(tc, a_list_that_is_out_of_date_may_be_mended_by_waiting);
    tcase_add_test(tc, a_certificate_that_is_not_valid_yet_may_be_mended_by_waiting);
    tcase_add_test(tc, no_next_list_mends_a_revocation_another_cas_list_or_garbage);
    tcase_add_test(tc, a_list_that_was_loaded_is_not_lost_by_a_reload);
    tcase_add_test(tc, a_folder_that_was_forgotten_when_somebody_was_revoked_is_named);
    tcase_add_test(tc, a_json_that_names_no_list_beside_one_is_said);
    tcase_add_test(tc, it_looks_daily_or_as_the_json_says_and_says_what_no_longer_holds);
    tcase_add_test(tc, each_look_warns_of_a_certificate_that_is_about_to_expire);
    tcase_add_test(tc, a_folder_lacks_certificates_only_where_it_has_none);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
