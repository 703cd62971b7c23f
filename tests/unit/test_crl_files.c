/* test_crl_files.c - the list of revoked certificates, put where those are that it judges */
#include "proto/ca.h"
#include "proto/cert.h"
#include "proto/certfile.h"
#include "proto/crl_files.h"
#include "tests/test.h"

#include <sys/stat.h>

static char dir[64];
static struct ms_ca *ca;

static const char *in_dir(const char *name)
{
    static char paths[8][160];
    static int at;
    at = (at + 1) % 8;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
    return paths[at];
}

static void setup(void)
{
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    ck_assert_int_eq(mkdir(in_dir("tls"), 0700), 0);
    ck_assert_int_eq(mkdir(in_dir("tls-worker"), 0700), 0);
    ck_ms_ok(ms_ca_create("lab ca", 365, &ca, err));
    ck_ms_ok(ms_ca_export(ca, in_dir("tls/ca.crt"), err));
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("list.pem"), 30, err));
}

static void teardown(void)
{
    ms_ca_destroy(ca);
    ca = NULL;
    test_dir_remove(dir);
}

static int install(const char *name, const char *folder, int force, struct ms_err *err)
{
    struct ms_whole file;
    char ca_path[160];
    char target[160];
    snprintf(ca_path, sizeof(ca_path), "%s/%s/ca.crt", dir, folder);
    snprintf(target, sizeof(target), "%s/%s/crl.pem", dir, folder);
    int rc = ms_whole_read(in_dir(name), "", &file, err);
    if (rc == MS_OK) {
        rc = ms_crl_install(&file, ca_path, target, force, err);
        ms_whole_fini(&file);
    }
    return rc;
}

static int put(int force, struct ms_err *err)
{
    return install("list.pem", "tls", force, err);
}

static int is_list(const char *name)
{
    struct ms_whole file;
    ck_ms_ok(ms_whole_read(in_dir(name), "", &file, err));
    int is = ms_crl_is(&file);
    ms_whole_fini(&file);
    return is;
}

START_TEST(a_list_is_told_from_a_certificate)
{
    ck_assert_int_eq(is_list("list.pem"), 1);
    ck_assert_int_eq(is_list("tls/ca.crt"), 0);
    FILE *file = fopen(in_dir("text.pem"), "w"); /* as openssl crl -text writes it */
    fputs("Certificate Revocation List (CRL):\n-----BEGIN X509 CRL-----\n", file);
    fclose(file);
    ck_assert_int_eq(is_list("text.pem"), 1);
}
END_TEST

START_TEST(everybody_may_read_it_whatever_the_umask)
{
    struct stat st;
    mode_t before = umask(0077);
    ck_ms_ok(put(0, err));
    umask(before);
    ck_assert_int_eq(stat(in_dir("tls/crl.pem"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
}
END_TEST

START_TEST(another_cas_list_and_one_that_has_expired_are_refused)
{
    struct ms_ca *other = NULL;
    ck_ms_ok(ms_ca_create("other ca", 365, &other, err));
    ck_ms_ok(ms_ca_export(other, in_dir("tls-worker/ca.crt"), err));
    ms_ca_destroy(other);
    ck_ms_fails(install("list.pem", "tls-worker", 1, err), MS_E_REFUSED, "signed by another CA");
    ck_ms_fails(install("tls/ca.crt", "tls", 1, err), MS_E_INVALID, "no revocation list");
    ck_assert_int_ne(access(in_dir("tls-worker/crl.pem"), F_OK), 0);
}
END_TEST

START_TEST(a_newer_list_gives_way_to_force_only)
{
    ck_ms_ok(put(0, err));
    ck_ms_ok(put(0, err)); /* the same */
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("tls/crl.pem"), 30, err));

    ck_ms_fails(put(0, err), MS_E_EXISTS, "crl.pem is newer than");
    ck_ms_ok(put(1, err));
}
END_TEST

/* A cluster that changes its CA has the lists of both in one file, and the programs read them all.
 */
START_TEST(one_list_does_not_take_the_place_of_several)
{
    char text[16384];
    FILE *from = fopen(in_dir("list.pem"), "r");
    size_t n = fread(text, 1, sizeof(text), from);
    fclose(from);
    FILE *both = fopen(in_dir("both.pem"), "w");
    ck_assert_uint_eq(fwrite(text, 1, n, both) + fwrite(text, 1, n, both), 2 * n);
    fclose(both);

    ck_ms_fails(install("both.pem", "tls", 1, err), MS_E_UNSUPPORTED, "holds several lists");
    ck_assert_int_eq(rename(in_dir("both.pem"), in_dir("tls/crl.pem")), 0);
    ck_ms_fails(put(0, err), MS_E_EXISTS, "holds several lists");
    ck_ms_ok(put(1, err));
}
END_TEST

/* A copy of a file for two CAs that was cut short. */
START_TEST(a_torn_list_behind_a_whole_one_is_damage_and_not_the_end)
{
    char bytes[16384];
    SSL_CTX *ctx = NULL;
    X509 *cert = NULL;
    X509 *signer = NULL;
    struct ms_cert_request req = {MS_ROLE_WORKER, "w1", NULL, 30, ""};
    FILE *from = fopen(in_dir("list.pem"), "r");
    size_t n = fread(bytes, 1, sizeof(bytes), from);
    fclose(from);
    FILE *torn = fopen(in_dir("torn.pem"), "w");
    ck_assert_uint_eq(fwrite(bytes, 1, n, torn) + fwrite(bytes, 1, n / 2, torn), n + n / 2);
    fclose(torn);

    ck_ms_fails(install("torn.pem", "tls", 1, err), MS_E_UNSUPPORTED, "torn.pem is damaged");

    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("w1.p12"), NULL, err));
    ck_ms_ok(ms_cert_read(in_dir("w1.p12"), "", &cert, err));
    ck_ms_ok(ms_pem_read(in_dir("tls/ca.crt"), &signer, err));
    ck_assert_int_eq(ms_crl_revokes(in_dir("list.pem"), cert, signer, NULL), 0);
    ck_ms_fails(ms_crl_revokes(in_dir("torn.pem"), cert, signer, err), MS_E_INVALID, "is damaged");
    X509_free(cert);
    X509_free(signer);
    struct ms_tls_config cfg = {.p12_path = in_dir("w1.p12"),
                                .p12_password = "",
                                .ca_path = in_dir("tls/ca.crt"),
                                .crl_path = in_dir("torn.pem")};
    ck_ms_fails(ms_tls_context(&cfg, &ctx, NULL, err), MS_E_TLS, "torn.pem is damaged");
}
END_TEST

START_TEST(a_torn_ca_behind_a_whole_one_is_damage_too)
{
    char bytes[4096];
    STACK_OF(X509) *all = NULL;
    FILE *file = fopen(in_dir("tls/ca.crt"), "r+");
    size_t n = fread(bytes, 1, sizeof(bytes), file);
    ck_assert_uint_eq(fwrite(bytes, 1, n / 2, file), n / 2);
    fclose(file);
    ck_ms_fails(ms_pem_read_all(in_dir("tls/ca.crt"), &all, err), MS_E_TLS, "ca.crt is damaged");
    ck_ms_fails(put(0, err), MS_E_TLS, "ca.crt is damaged");
    struct ms_cert_request req = {MS_ROLE_WORKER, "w1", NULL, 30, ""};
    SSL_CTX *ctx = NULL;
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("w1.p12"), NULL, err));
    struct ms_tls_config cfg = {
        .p12_path = in_dir("w1.p12"), .p12_password = "", .ca_path = in_dir("tls/ca.crt")};
    ck_ms_fails(ms_tls_context(&cfg, &ctx, NULL, err), MS_E_TLS, "ca.crt is damaged");
}
END_TEST

static void append(const char *name, const char *to)
{
    char bytes[16384];
    FILE *from = fopen(in_dir(name), "r");
    FILE *file = fopen(in_dir(to), "a");
    ck_assert(from != NULL && file != NULL);
    size_t n = fread(bytes, 1, sizeof(bytes), from);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(from);
    fclose(file);
}

/* While a cluster changes its CA: both were made on the head node, and have its name. */
START_TEST(two_cas_of_one_name_and_their_lists_go_together)
{
    static const char *const lists[][2] = {{"list.pem", "next.pem"}, {"next.pem", "list.pem"}};
    struct ms_cert_request req = {MS_ROLE_WORKER, "w1", NULL, 30, ""};
    struct ms_ca *next = NULL;
    ck_ms_ok(ms_ca_create("lab ca", 365, &next, err));
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("w1.p12"), NULL, err));
    ck_ms_ok(ms_ca_issue(next, &req, in_dir("w2.p12"), NULL, err));
    ck_ms_ok(ms_ca_issue(next, &req, in_dir("gone.p12"), NULL, err));
    ck_ms_ok(ms_ca_revoke(next, in_dir("gone.p12"), "", in_dir("next.pem"), 30, err));
    ck_ms_ok(ms_ca_export(next, in_dir("next.crt"), err));
    append("next.crt", "tls/ca.crt");
    append(lists[_i][0], "both.pem");
    append(lists[_i][1], "both.pem");
    struct ms_tls_config cfg = {
        .p12_password = "", .ca_path = in_dir("tls/ca.crt"), .crl_path = in_dir("both.pem")};
    static const char *const good[] = {"w1.p12", "w2.p12"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(good); i++) {
        SSL_CTX *ctx = NULL;
        cfg.p12_path = in_dir(good[i]);
        ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
        SSL_CTX_free(ctx);
    }
    SSL_CTX *none = NULL;
    cfg.p12_path = in_dir("gone.p12");
    ck_ms_fails(ms_tls_context(&cfg, &none, NULL, err), MS_E_TLS, "is revoked by");
    ms_ca_destroy(next);
}
END_TEST

static int has_list(const char *name)
{
    struct stat st;
    return lstat(in_dir(name), &st) == 0 && S_ISREG(st.st_mode) && is_list(name);
}

/* Who has the list looked for in two places made the link for that. */
START_TEST(a_link_is_followed_to_the_list_that_it_leads_to)
{
    struct stat st;
    char place[160];
    struct ms_whole before;
    struct ms_whole after;
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("shared.pem"), 30, err));
    ck_ms_ok(ms_whole_read(in_dir("shared.pem"), "", &before, err));
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("list.pem"), 30, err)); /* newer */
    ck_assert_int_eq(symlink("../shared.pem", in_dir("tls/crl.pem")), 0);

    ck_ms_ok(put(0, err));

    ck_assert_int_eq(lstat(in_dir("tls/crl.pem"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode) && has_list("shared.pem"));
    ck_ms_ok(ms_whole_read(in_dir("shared.pem"), "", &after, err));
    ck_assert(before.size != after.size || memcmp(before.bytes, after.bytes, after.size) != 0);
    ms_whole_fini(&before);
    ms_whole_fini(&after);
    ck_ms_ok(ms_crl_place(in_dir("tls/crl.pem"), place, sizeof(place), err));
    ck_assert_ptr_nonnull(strstr(place, "/shared.pem"));
}
END_TEST

START_TEST(a_link_to_what_is_no_list_is_left_as_it_is)
{
    struct stat st;
    ck_assert_int_eq(symlink("../none.pem", in_dir("tls/crl.pem")), 0);
    ck_ms_fails(put(1, err), MS_E_EXISTS, "leads to no file");
    ck_assert_int_eq(unlink(in_dir("tls/crl.pem")) + symlink("ca.crt", in_dir("tls/crl.pem")), 0);
    ck_ms_fails(put(1, err), MS_E_EXISTS, "/tls/ca.crt, which is no list of revoked certificates");
    if (geteuid() == 0) {
        ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("shared.pem"), 30, err));
        ck_assert_int_eq(unlink(in_dir("tls/crl.pem")), 0);
        ck_assert_int_eq(symlink("../shared.pem", in_dir("tls/crl.pem")), 0);
        ck_assert_int_eq(lchown(in_dir("tls/crl.pem"), 65534, 65534), 0);
        ck_ms_fails(put(1, err), MS_E_EXISTS, "of another user (uid 65534)");
    }
    ck_assert_int_eq(lstat(in_dir("tls/crl.pem"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
}
END_TEST

/* While a cluster changes its CA, ca.crt holds both. */
START_TEST(any_ca_of_the_file_is_known_and_the_lists_of_the_others_are_kept)
{
    struct ms_ca *other = NULL;
    char text[8192];
    ck_ms_ok(ms_ca_create("new ca", 365, &other, err));
    ck_ms_ok(ms_ca_export(other, in_dir("new.crt"), err));
    ck_ms_ok(ms_ca_revoke(other, NULL, "", in_dir("new.pem"), 30, err));
    ms_ca_destroy(other);
    FILE *both = fopen(in_dir("tls/ca.crt"), "a");
    FILE *from = fopen(in_dir("new.crt"), "r");
    size_t n = fread(text, 1, sizeof(text), from);
    ck_assert_uint_eq(fwrite(text, 1, n, both), n);
    fclose(from);
    fclose(both);

    ck_ms_ok(install("new.pem", "tls", 0, err));
    ck_ms_fails(put(0, err), MS_E_EXISTS, "is the list of another CA that is trusted there");
    ck_ms_ok(put(1, err));
}
END_TEST

START_TEST(a_list_that_no_ca_of_the_folder_signed_is_foreign)
{
    struct ms_ca *other = NULL;
    ck_assert_int_eq(ms_crl_is_foreign(in_dir("tls/crl.pem"), in_dir("tls/ca.crt")), 0); /* none */
    ck_ms_ok(put(0, err));
    ck_assert_int_eq(ms_crl_is_foreign(in_dir("tls/crl.pem"), in_dir("tls/ca.crt")), 0);
    ck_ms_ok(ms_ca_create("lab ca", 365, &other, err));
    ck_assert_int_eq(unlink(in_dir("tls/ca.crt")), 0);
    ck_ms_ok(ms_ca_export(other, in_dir("tls/ca.crt"), err));
    ms_ca_destroy(other);
    ck_assert_int_eq(ms_crl_is_foreign(in_dir("tls/crl.pem"), in_dir("tls/ca.crt")), 1);
}
END_TEST

START_TEST(a_list_beside_is_seen)
{
    char found[160] = "";
    ck_assert_int_eq(ms_crl_beside(in_dir("tls-worker"), found, sizeof(found)), 0);
    ck_ms_ok(put(0, err));
    ck_assert_int_eq(ms_crl_beside(in_dir("tls-worker"), found, sizeof(found)), 1);
    ck_assert_str_eq(found, in_dir("tls/crl.pem"));
    ck_assert_int_eq(ms_crl_beside("/nowhere/tls", found, sizeof(found)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crl_files");
    TCase *tc = tcase_create("crl_files");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_list_is_told_from_a_certificate);
    tcase_add_test(tc, everybody_may_read_it_whatever_the_umask);
    tcase_add_test(tc, another_cas_list_and_one_that_has_expired_are_refused);
    tcase_add_test(tc, a_newer_list_gives_way_to_force_only);
    tcase_add_test(tc, one_list_does_not_take_the_place_of_several);
    tcase_add_test(tc, a_torn_list_behind_a_whole_one_is_damage_and_not_the_end);
    tcase_add_test(tc, a_torn_ca_behind_a_whole_one_is_damage_too);
    tcase_add_loop_test(tc, two_cas_of_one_name_and_their_lists_go_together, 0, 2);
    tcase_add_test(tc, a_link_is_followed_to_the_list_that_it_leads_to);
    tcase_add_test(tc, a_link_to_what_is_no_list_is_left_as_it_is);
    tcase_add_test(tc, any_ca_of_the_file_is_known_and_the_lists_of_the_others_are_kept);
    tcase_add_test(tc, a_list_that_no_ca_of_the_folder_signed_is_foreign);
    tcase_add_test(tc, a_list_beside_is_seen);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
