/* test_cert.c - the certificate authority: what it makes, how it is kept, what it takes back */
#include "proto/cert.h"
#include "proto/certfile.h"
#include "tests/test.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <time.h>

static char dir[64];

static void setup(void)
{
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static const char *in_dir(const char *name)
{
    static char paths[4][160]; /* a few at a time */
    static int at;
    at = (at + 1) % 4;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
    return paths[at];
}

static struct ms_ca *make_ca(const char *name)
{
    struct ms_ca *ca = NULL;
    ck_ms_ok(ms_ca_create(name, 365, &ca, err));
    return ca;
}

static int issue(const struct ms_ca *ca, enum ms_role role, const char *name, int days,
                 const char *file, struct ms_err *err)
{
    static const char *const hosts[] = {"node7.lab", "10.1.2.3", "::1", NULL};
    struct ms_cert_request req = {role, name, hosts, days, ""};
    return ms_ca_issue(ca, &req, in_dir(file), NULL, err);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

START_TEST(a_ca_is_saved_with_care_and_loaded_again)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_ca *again = NULL;
    struct ms_cert_info info;

    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));

    ck_assert_uint_eq(mode_of(in_dir("ca")), 0700);
    ck_assert_uint_eq(mode_of(in_dir("ca/ca.key")), 0600);
    ck_assert_uint_eq(mode_of(in_dir("ca/ca.crt")), 0644);
    ck_ms_ok(ms_ca_load(in_dir("ca"), &again, err));
    ck_ms_ok(ms_ca_export(again, in_dir("out.crt"), err));
    ck_ms_ok(ms_cert_inspect(in_dir("out.crt"), "", &info, err));
    ck_assert_str_eq(info.subject, "CN = lab ca");
    ck_assert_str_eq(info.issuer, "CN = lab ca");
    ck_assert_str_eq(info.uri, "");
    ms_ca_destroy(again);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(a_ca_is_never_overwritten)
{
    struct ms_ca *ca = make_ca("one");
    struct ms_ca *other = make_ca("two");
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));

    ck_ms_fails(ms_ca_save(other, in_dir("ca"), err), MS_E_EXISTS, "there is a CA");
    ck_assert_int_eq(unlink(in_dir("ca/ca.crt")), 0);
    ck_ms_fails(ms_ca_save(other, in_dir("ca"), err), MS_E_NOT_FOUND,
                "ca.key is there, ca.crt is missing");
    ms_ca_destroy(other);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(a_ca_that_is_not_whole_is_not_loaded)
{
    struct ms_ca *ca = make_ca("one");
    struct ms_ca *other = make_ca("two");
    struct ms_ca *got = NULL;
    ck_ms_fails(ms_ca_load(in_dir("none"), &got, err), MS_E_NOT_FOUND, "there is no authority in");
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));
    ck_assert_int_eq(chmod(in_dir("ca/ca.key"), 0640), 0);
    ck_ms_fails(ms_ca_load(in_dir("ca"), &got, err), MS_E_REFUSED, "chmod 600");
    ck_assert_int_eq(chmod(in_dir("ca/ca.key"), 0600), 0);
    ck_ms_ok(ms_ca_export(other, in_dir("ca/ca.crt"), err));
    ck_ms_fails(ms_ca_load(in_dir("ca"), &got, err), MS_E_TLS, "does not belong to");
    ms_ca_destroy(other);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(a_certificate_holds_role_name_hosts_and_life)
{
    static const char *const hosts[] = {"node7.lab", "10.1.2.3", "::1", NULL};
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_cert_request req = {MS_ROLE_WORKER, "node7", hosts, 30, "secret"};
    struct ms_cert_info info;
    char serial[41];

    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("n.p12"), serial, err));
    ck_ms_ok(ms_cert_inspect(in_dir("n.p12"), "secret", &info, err));

    ck_assert_uint_eq(mode_of(in_dir("n.p12")), 0600);
    ck_assert_str_eq(info.subject, "CN = node7");
    ck_assert_str_eq(info.issuer, "CN = lab ca");
    ck_assert_str_eq(info.uri, "ms://worker/node7");
    ck_assert_str_eq(info.hosts, "node7.lab,10.1.2.3,::1");
    ck_assert_str_eq(info.serial, serial);
    ck_assert_uint_eq(strlen(serial), 32); /* 128 bits */
    time_t now = time(NULL);
    ck_assert_int_le(info.not_before, now - 3000);
    ck_assert_int_ge(info.not_after, now + 30 * 86400 - 600);
    ck_assert_int_le(info.not_after, now + 30 * 86400 + 600);
    ms_ca_destroy(ca);
}
END_TEST

static int has_extension(const X509 *cert, int nid, int critical)
{
    int at = X509_get_ext_by_NID(cert, nid, -1);
    return at >= 0 && X509_EXTENSION_get_critical(X509_get_ext(cert, at)) == critical;
}

START_TEST(a_certificate_of_any_time_outlives_corrections_of_the_clock)
{
    struct ms_ca *ca = NULL;
    struct ms_cert_info info;
    const time_t century = (time_t)36500 * 86400;
    ck_ms_ok(ms_ca_create("run", MS_CERT_ANY_TIME, &ca, err));
    ck_ms_ok(ms_ca_export(ca, in_dir("any.crt"), err));
    ck_ms_ok(issue(ca, MS_ROLE_WORKER, "n7", MS_CERT_ANY_TIME, "n.p12", err));
    ms_ca_destroy(ca);
    const char *const files[] = {"any.crt", "n.p12"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        ck_ms_ok(ms_cert_inspect(in_dir(files[i]), "", &info, err));
        ck_assert_int_eq(info.not_before, 0);
        ck_assert_int_ge(info.not_after, time(NULL) + century - 60);
    }
}
END_TEST

START_TEST(a_certificate_serves_both_ends_and_nothing_else)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_p12 p12;
    ck_ms_ok(issue(ca, MS_ROLE_SCHEDULER, "head", 30, "h.p12", err));
    ck_ms_ok(ms_p12_read(in_dir("h.p12"), "", &p12, err));

    ck_assert_int_eq(X509_check_purpose(p12.cert, X509_PURPOSE_SSL_SERVER, 0), 1);
    ck_assert_int_eq(X509_check_purpose(p12.cert, X509_PURPOSE_SSL_CLIENT, 0), 1);
    ck_assert_int_eq(X509_check_ca(p12.cert), 0);
    ck_assert(has_extension(p12.cert, NID_basic_constraints, 1));
    ck_assert(has_extension(p12.cert, NID_key_usage, 1));
    ck_assert(has_extension(p12.cert, NID_subject_key_identifier, 0));
    ck_assert(has_extension(p12.cert, NID_authority_key_identifier, 0));
    char group[32] = "";
    ck_assert_int_eq(EVP_PKEY_get_group_name(p12.key, group, sizeof(group), NULL), 1);
    ck_assert_str_eq(group, "prime256v1");
    ms_p12_fini(&p12);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(two_certificates_never_share_a_serial_number)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_cert_request req = {MS_ROLE_USER, "anna", NULL, 30, ""};
    char one[41];
    char two[41];
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("a.p12"), one, err));
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("a.p12"), two, err)); /* replaces the file */
    ck_assert_str_ne(one, two);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(requests_that_make_no_sense_are_refused)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_ca *none = NULL;
    static const char *const no_addresses[] = {"10.0.0.300", "10.0.0", "10.0.0.1.2", "10.0.0.01"};
    const char *bad[] = {"a b", NULL};
    struct ms_cert_request req = {MS_ROLE_USER, "anna", bad, 30, ""};

    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "", 30, "x", err), MS_E_INVALID, "certificate name ''");
    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "a/b", 30, "x", err), MS_E_INVALID, "'a/b'");
    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "a\nb", 30, "x", err), MS_E_INVALID, "letters, digits");
    ck_ms_fails(issue(ca, (enum ms_role)3, "a", 30, "x", err), MS_E_INVALID, "one role");
    ck_ms_fails(issue(ca, MS_ROLE_NONE, "a", 30, "x", err), MS_E_INVALID, "one role");
    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "a", 0, "x", err), MS_E_INVALID, "1 to 36500");
    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "a", 99999, "x", err), MS_E_INVALID, "1 to 36500");
    ck_ms_fails(ms_ca_issue(ca, &req, in_dir("x"), NULL, err), MS_E_INVALID, "'a b' is neither");
    for (size_t i = 0; i < MS_ARRAY_SIZE(no_addresses); i++) {
        bad[0] = no_addresses[i];
        ck_ms_fails(ms_ca_issue(ca, &req, in_dir("x"), NULL, err), MS_E_INVALID,
                    "looks like an IPv4 address and is none");
    }
    ck_ms_fails(ms_ca_create("", 30, &none, err), MS_E_INVALID, "1 to 64 bytes");
    ck_ms_fails(issue(ca, MS_ROLE_WORKER, "a", 30, "no/such/dir", err), MS_E_IO, "no/such/dir");
    ck_assert_int_ne(access(in_dir("x"), F_OK), 0); /* nothing was written */
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(files_that_are_no_certificates_are_named)
{
    struct ms_cert_info info;
    FILE *file = fopen(in_dir("junk"), "w");
    ck_assert_ptr_nonnull(file);
    fputs("hello", file);
    fclose(file);

    ck_ms_fails(ms_cert_inspect(in_dir("none"), "", &info, err), MS_E_NOT_FOUND, "none");
    ck_ms_fails(ms_cert_inspect(in_dir("junk"), "", &info, err), MS_E_TLS, "no certificate");
    file = fopen(in_dir("junk.p12"), "w");
    ck_assert_ptr_nonnull(file);
    fputs("0\x08zzzzzzzz", file);
    fclose(file);
    ck_assert_int_eq(chmod(in_dir("junk.p12"), 0600), 0);
    ck_ms_fails(ms_cert_inspect(in_dir("junk.p12"), "", &info, err), MS_E_TLS, "no PKCS#12");
}
END_TEST

/* Of the first n bytes of a file another one, which everybody may read. */
static const char *copy_of(const char *from, const char *to, size_t n)
{
    static uint8_t bytes[8192];
    FILE *file = fopen(in_dir(from), "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, n < sizeof(bytes) ? n : sizeof(bytes), file);
    fclose(file);
    file = fopen(in_dir(to), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    ck_assert_int_eq(chmod(in_dir(to), 0644), 0);
    return in_dir(to);
}

/* What to do next differs: copied in part, the CA's file, a key that wants another form. */
START_TEST(what_is_no_pkcs12_is_told_by_its_kind_and_never_named_as_the_output)
{
    struct ms_ca *ca = NULL;
    struct ms_p12 p12;
    struct ms_cert_info info;
    struct ms_err why = {0, ""};
    ck_ms_ok(ms_ca_create("test", 400, &ca, err));
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));
    ck_ms_ok(issue(ca, MS_ROLE_WORKER, "w", 30, "w.p12", err));
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("crl.pem"), 30, err));

    ck_ms_fails(ms_p12_read(copy_of("w.p12", "cut", 500), "", &p12, err), MS_E_TLS,
                "is cut off, 500 of ");
    ck_ms_fails(ms_cert_inspect(in_dir("cut"), "", &info, err), MS_E_TLS, "copy it again");
    ck_ms_fails(ms_p12_read(copy_of("w.p12", "none", 0), "", &p12, err), MS_E_TLS,
                "is empty: copy");
    ck_ms_fails(ms_cert_inspect(in_dir("none"), "", &info, err), MS_E_TLS, "is empty");
    ck_ms_fails(ms_p12_read(copy_of("w.p12", "open", 8192), "", &p12, err), MS_E_REFUSED, "chmod");
    ck_ms_fails(ms_p12_read(copy_of("ca/ca.crt", "ca.pem", 8192), "", &p12, err), MS_E_TLS,
                "is no PKCS#12 file but a CA's certificate in PEM form, without a key");
    ck_ms_fails(ms_p12_read(copy_of("crl.pem", "list", 8192), "", &p12, err), MS_E_TLS,
                "no PKCS#12 file but a list of revoked certificates");
    ck_ms_fails(ms_cert_inspect(in_dir("list"), "", &info, err), MS_E_TLS,
                "openssl crl -noout -text -in");

    ck_assert_int_eq(ms_p12_read(copy_of("ca/ca.key", "key", 8192), "", &p12, &why), MS_E_TLS);
    ck_assert_msg(strstr(why.text, "-inkey ") != NULL && strstr(why.text, "-out NEW.p12") != NULL,
                  "%s", why.text);
    ms_ca_destroy(ca);
}
END_TEST

/* ---- revocation ---- */

static int count_revoked(const char *path, const char *serial)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    X509_CRL *crl = PEM_read_X509_CRL(file, NULL, NULL, NULL);
    fclose(file);
    ck_assert_ptr_nonnull(crl);
    const STACK_OF(X509_REVOKED) *list = X509_CRL_get_REVOKED(crl);
    int n = 0;
    for (int i = 0; i < sk_X509_REVOKED_num(list); i++) {
        const ASN1_INTEGER *number = X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(list, i));
        BIGNUM *big = ASN1_INTEGER_to_BN(number, NULL);
        char *hex = BN_bn2hex(big);
        n += serial == NULL || strcmp(hex, serial) == 0;
        OPENSSL_free(hex);
        BN_free(big);
    }
    X509_CRL_free(crl);
    return n;
}

START_TEST(revocations_add_up_and_are_listed_once)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct ms_cert_request req = {MS_ROLE_USER, "anna", NULL, 30, ""};
    char one[41];
    char two[41];
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("a.p12"), one, err));
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("b.p12"), two, err));

    ck_ms_ok(ms_ca_revoke(ca, NULL, NULL, in_dir("crl.pem"), 30, err));
    ck_assert_int_eq(count_revoked(in_dir("crl.pem"), NULL), 0);
    ck_ms_ok(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("crl.pem"), 30, err));
    ck_ms_ok(ms_ca_revoke(ca, in_dir("b.p12"), "", in_dir("crl.pem"), 30, err));
    ck_ms_ok(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("crl.pem"), 30, err));

    ck_assert_int_eq(count_revoked(in_dir("crl.pem"), NULL), 2);
    ck_assert_int_eq(count_revoked(in_dir("crl.pem"), one), 1);
    ck_assert_int_eq(count_revoked(in_dir("crl.pem"), two), 1);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(only_the_ca_that_issued_a_certificate_can_revoke_it)
{
    struct ms_ca *ca = make_ca("same name");
    struct ms_ca *other = make_ca("same name");
    ck_ms_ok(issue(ca, MS_ROLE_USER, "anna", 30, "a.p12", err));
    ck_ms_ok(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("crl.pem"), 30, err));

    ck_ms_fails(ms_ca_revoke(other, in_dir("a.p12"), "", in_dir("o.pem"), 30, err), MS_E_REFUSED,
                "another CA");
    ck_ms_fails(ms_ca_revoke(other, NULL, "", in_dir("crl.pem"), 30, err), MS_E_REFUSED,
                "signed by another CA");
    ck_ms_fails(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("crl.pem"), 0, err), MS_E_INVALID,
                "1 to 3650");
    ck_ms_fails(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("a.p12"), 30, err), MS_E_TLS,
                "no revocation list");
    ms_ca_destroy(other);
    ms_ca_destroy(ca);
}
END_TEST

START_TEST(making_and_reading_a_throw_away_certificate_is_quick)
{
    struct ms_ca *ca = make_ca("lab ca");
    struct timespec a;
    struct timespec b;
    enum { ROUNDS = 50 };
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < ROUNDS; i++) {
        struct ms_p12 p12;
        ck_ms_ok(issue(ca, MS_ROLE_WORKER, "w", 1, "w.p12", err));
        ck_ms_ok(ms_p12_read(in_dir("w.p12"), "", &p12, err));
        ms_p12_fini(&p12);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double ms =
        ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) / ROUNDS;
    printf("issue and read: %.2f ms of CPU\n", ms);
    ck_assert_msg(ms < 50, "%f ms", ms); /* 1 ms; sanitizers and busy machines take more */
    ms_ca_destroy(ca);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cert");
    TCase *tc = tcase_create("cert");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_ca_is_saved_with_care_and_loaded_again);
    tcase_add_test(tc, a_ca_is_never_overwritten);
    tcase_add_test(tc, a_ca_that_is_not_whole_is_not_loaded);
    tcase_add_test(tc, a_certificate_holds_role_name_hosts_and_life);
    tcase_add_test(tc, a_certificate_of_any_time_outlives_corrections_of_the_clock);
    tcase_add_test(tc, a_certificate_serves_both_ends_and_nothing_else);
    tcase_add_test(tc, two_certificates_never_share_a_serial_number);
    tcase_add_test(tc, requests_that_make_no_sense_are_refused);
    tcase_add_test(tc, files_that_are_no_certificates_are_named);
    tcase_add_test(tc, what_is_no_pkcs12_is_told_by_its_kind_and_never_named_as_the_output);
    tcase_add_test(tc, revocations_add_up_and_are_listed_once);
    tcase_add_test(tc, only_the_ca_that_issued_a_certificate_can_revoke_it);
    tcase_add_test(tc, making_and_reading_a_throw_away_certificate_is_quick);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
