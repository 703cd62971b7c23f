/* test_cert_install.c - one file travels, two lie where the programs look */
#include "proto/cert_install.h"
#include "tests/test.h"

#include <grp.h>
#include <sys/stat.h>

static char dir[64];
static struct ms_ca *ca;
static struct ms_cert_place place;

static const char *in_dir(const char *name)
{
    static char paths[4][160];
    static int at;
    at = (at + 1) % 4;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
    return paths[at];
}

static void issue_locked(const char *name, const char *file, const char *password)
{
    struct ms_cert_request req = {MS_ROLE_WORKER, name, NULL, 30, password};
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir(file), NULL, err));
}

static void issue_for(int days, const char *name, const char *file)
{
    struct ms_cert_request req = {MS_ROLE_WORKER, name, NULL, days, ""};
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir(file), NULL, err));
}

static void issue(const char *name, const char *file)
{
    issue_for(30, name, file);
}

static void setup(void)
{
    static char folder[160];
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    snprintf(folder, sizeof(folder), "%s/tls", dir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_ms_ok(ms_ca_create("lab ca", 365, &ca, err));
    place = (struct ms_cert_place){folder, "node.p12", 0640, (uid_t)-1, (gid_t)-1, 0};
    issue("node7", "n.p12");
}

static void teardown(void)
{
    ms_ca_destroy(ca);
    ca = NULL;
    test_dir_remove(dir);
}

static int put(const char *name, const char *password, struct ms_err *err)
{
    struct ms_whole file;
    int rc = ms_whole_read(in_dir(name), "", &file, err);
    if (rc == MS_OK) {
        rc = ms_cert_install(&file, password, &place, err);
        ms_whole_fini(&file);
    }
    return rc;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

START_TEST(the_file_brings_its_ca_with_it_whatever_the_umask)
{
    struct ms_cert_info info;
    mode_t before = umask(0077);
    ck_ms_ok(put("n.p12", "", err));
    umask(before);

    ck_assert_uint_eq(mode_of(in_dir("tls/ca.crt")), 0644);
    ck_assert_uint_eq(mode_of(in_dir("tls/node.p12")), 0640);
    ck_ms_ok(ms_cert_inspect(in_dir("tls/ca.crt"), "", &info, err));
    ck_assert_str_eq(info.subject, "CN = lab ca");
    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "", &info, err));
    ck_assert_str_eq(info.uri, "ms://worker/node7");
}
END_TEST

START_TEST(a_renewed_one_replaces_its_own_and_nobody_elses)
{
    struct ms_cert_info one;
    struct ms_cert_info two;
    ck_ms_ok(put("n.p12", "", err));
    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "", &one, err));
    issue("node7", "renewed.p12");
    issue("node8", "other.p12");

    ck_ms_ok(put("renewed.p12", "", err));
    ck_ms_fails(put("other.p12", "", err), MS_E_EXISTS,
                "is of ms://worker/node7, not of ms://worker/node8");

    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "", &two, err));
    ck_assert_str_ne(one.serial, two.serial);
    ck_assert_str_eq(two.uri, "ms://worker/node7");
    place.force = 1;
    ck_ms_ok(put("other.p12", "", err));
}
END_TEST

/* After a renewal there are two files of one name, and the old one is easily taken for the new. */
START_TEST(one_that_holds_is_not_replaced_by_one_that_holds_less)
{
    struct ms_cert_info info;
    issue_for(-1, "node7", "expired.p12");
    issue_for(29, "node7", "older.p12");
    ck_ms_fails(put("expired.p12", "", err), MS_E_INVALID, "msctl certs renew NAME");
    ck_ms_ok(put("n.p12", "", err));

    ck_ms_fails(put("expired.p12", "", err), MS_E_INVALID, "expired on");
    ck_ms_fails(put("older.p12", "", err), MS_E_EXISTS, "the one before a renewal");
    ck_ms_ok(put("n.p12", "", err));

    place.force = 1;
    ck_ms_ok(put("older.p12", "", err));
    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "", &info, err));
    ck_assert_int_lt(info.not_after, time(NULL) + 29 * 86400 + 60);
}
END_TEST

/* What stands between two words of a text. */
static const char *between(const char *text, const char *before, char after, char buf[64])
{
    const char *at = strstr(text, before);
    ck_assert_msg(at != NULL, "%s", text);
    at += strlen(before);
    const char *end = strchr(at, after);
    ck_assert_msg(end != NULL && end - at < 64, "%s", text);
    snprintf(buf, 64, "%.*s", (int)(end - at), at);
    return buf;
}

START_TEST(ends_within_a_day_are_told_apart)
{
    struct ms_cert_info older;
    struct ms_cert_info newer;
    char ends[2][64];
    issue("node7", "older.p12");
    ck_ms_ok(ms_cert_inspect(in_dir("older.p12"), "", &older, err));
    do { /* until the clock has gone on by a second */
        unlink(in_dir("newer.p12"));
        issue("node7", "newer.p12");
        ck_ms_ok(ms_cert_inspect(in_dir("newer.p12"), "", &newer, err));
    } while (newer.not_after == older.not_after);
    ck_ms_ok(put("newer.p12", "", err));

    struct ms_err err = {0, ""};
    ck_assert_int_eq(put("older.p12", "", &err), MS_E_EXISTS);

    between(err.text, "is valid until ", ',', ends[0]);
    between(err.text, "only until ", ';', ends[1]);
    ck_assert_str_ne(ends[0], ends[1]);
}
END_TEST

START_TEST(one_that_cannot_be_opened_is_not_called_somebodys)
{
    struct ms_cert_info info;
    issue_locked("node7", "locked.p12", "secret");
    issue_locked("node7", "relocked.p12", "other");
    ck_ms_ok(put("n.p12", "", err));

    /* one without a password is there: it needs none to be opened */
    ck_ms_ok(put("locked.p12", "secret", err));

    ck_ms_fails(put("n.p12", "", err), MS_E_EXISTS, "cannot be told (it has another password");
    ck_ms_fails(put("relocked.p12", "other", err), MS_E_EXISTS,
                "cannot be told (it has another password");
    place.force = 1;
    ck_ms_ok(put("relocked.p12", "other", err));
    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "other", &info, err));
}
END_TEST

START_TEST(another_cas_certificate_does_not_change_whom_we_trust)
{
    struct ms_ca *ours = ca;
    struct ms_cert_info info;
    ck_ms_ok(put("n.p12", "", err));
    ck_ms_ok(ms_ca_create("evil ca", 365, &ca, err));
    issue("node7", "evil.p12");
    ms_ca_destroy(ca);
    ca = ours;

    ck_ms_fails(put("evil.p12", "", err), MS_E_EXISTS, "another CA's");

    ck_ms_ok(ms_cert_inspect(in_dir("tls/ca.crt"), "", &info, err));
    ck_assert_str_eq(info.subject, "CN = lab ca");
    ck_ms_ok(ms_cert_inspect(in_dir("tls/node.p12"), "", &info, err));
    ck_assert_str_eq(info.issuer, "CN = lab ca");
}
END_TEST

/* The text of a file, from where it is in the folder of the test. */
static const char *text_of(const char *name)
{
    static char text[16384];
    FILE *file = fopen(in_dir(name), "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* While a cluster changes its CA, ca.crt holds the old one and the new one. */
START_TEST(a_file_of_several_cas_keeps_them_all)
{
    char before[16384];
    struct ms_ca *ours = ca;
    ck_ms_ok(ms_ca_create("old ca", 365, &ca, err));
    ck_ms_ok(ms_ca_export(ca, in_dir("tls/ca.crt"), err));
    ms_ca_destroy(ca);
    ca = ours;
    ck_ms_ok(ms_ca_export(ca, in_dir("new.crt"), err));
    snprintf(before, sizeof(before), "%s", text_of("new.crt"));
    FILE *file = fopen(in_dir("tls/ca.crt"), "a");
    fputs(before, file);
    fclose(file);
    snprintf(before, sizeof(before), "%s", text_of("tls/ca.crt"));

    ck_ms_ok(put("n.p12", "", err));
    ck_assert_str_eq(text_of("tls/ca.crt"), before);

    place.force = 1;
    ck_ms_ok(put("n.p12", "", err));
    ck_assert_str_eq(text_of("tls/ca.crt"), before);
}
END_TEST

START_TEST(a_ca_behind_a_link_stays_there)
{
    struct stat st;
    ck_ms_ok(ms_ca_export(ca, in_dir("shared.crt"), err));
    ck_assert_int_eq(symlink("../shared.crt", in_dir("tls/ca.crt")), 0);
    ck_ms_ok(put("n.p12", "", err));
    ck_assert_int_eq(lstat(in_dir("tls/ca.crt"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
}
END_TEST

START_TEST(one_that_the_list_beside_revokes_is_not_installed)
{
    struct ms_ca *ours = ca;
    ck_ms_ok(ms_ca_create("other ca", 365, &ca, err));
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("tls/crl.pem"), 30, err));
    ms_ca_destroy(ca);
    ca = ours;
    ck_ms_ok(put("n.p12", "", err)); /* that list is not about it */
    ck_assert_int_eq(unlink(in_dir("tls/crl.pem")), 0);
    ck_ms_ok(ms_ca_revoke(ca, in_dir("n.p12"), "", in_dir("tls/crl.pem"), 30, err));

    ck_ms_fails(put("n.p12", "", err), MS_E_INVALID, "tls/crl.pem: where the CA is");

    issue("node7", "again.p12");
    ck_ms_ok(put("again.p12", "", err));
    place.force = 1;
    ck_ms_ok(put("n.p12", "", err));
}
END_TEST

START_TEST(a_key_that_others_may_read_is_not_installed)
{
    chmod(in_dir("n.p12"), 0644);
    ck_ms_fails(put("n.p12", "", err), MS_E_REFUSED,
                geteuid() != 0 ? "chmod 600" : "chmod 640"); /* a person's is his alone */
    if (geteuid() == 0) {                                    /* root put it into her home */
        enum { ALICE = 64999 };
        struct ms_err why = {0, ""};
        ck_assert_int_eq(chmod(in_dir("."), 0755), 0);
        ck_assert_int_eq(setresgid(ALICE, ALICE, 0) | setgroups(0, NULL) | seteuid(ALICE), 0);
        int rc = put("n.p12", "", &why);
        ck_assert_int_eq(seteuid(0) | setegid(0), 0);
        ck_assert_int_eq(rc, MS_E_REFUSED);
        ck_assert_msg(strstr(why.text, "sudo chown 64999 ") != NULL, "%s", why.text);
        ck_assert_msg(strstr(why.text, "&& chmod 600 ") != NULL, "%s", why.text);
    }
    ck_assert_int_ne(access(in_dir("tls/ca.crt"), F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cert_install");
    TCase *tcase = tcase_create("cert_install");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_file_brings_its_ca_with_it_whatever_the_umask);
    tcase_add_test(tcase, a_renewed_one_replaces_its_own_and_nobody_elses);
    tcase_add_test(tcase, one_that_holds_is_not_replaced_by_one_that_holds_less);
    tcase_add_test(tcase, ends_within_a_day_are_told_apart);
    tcase_add_test(tcase, one_that_cannot_be_opened_is_not_called_somebodys);
    tcase_add_test(tcase, another_cas_certificate_does_not_change_whom_we_trust);
    tcase_add_test(tcase, a_file_of_several_cas_keeps_them_all);
    tcase_add_test(tcase, a_ca_behind_a_link_stays_there);
    tcase_add_test(tcase, one_that_the_list_beside_revokes_is_not_installed);
    tcase_add_test(tcase, a_key_that_others_may_read_is_not_installed);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
