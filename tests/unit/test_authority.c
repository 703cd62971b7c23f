/* test_authority.c - the directory of a CA: everything that was issued is known, whatever happens
 */
#include "proto/authority.h"
#include "proto/certfile.h"
#include "tests/test.h"

#include <openssl/pem.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];
static struct ms_authority *authority;

static const char *in_dir(const char *name)
{
    static char paths[4][160];
    static int at;
    at = (at + 1) % 4;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
    return paths[at];
}

static void setup(void)
{
    struct ms_ca *ca = NULL;
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    ck_ms_ok(ms_ca_create("lab ca", 365, &ca, err));
    ck_ms_ok(ms_authority_create(in_dir("ca"), ca, err));
    ms_ca_destroy(ca);
    ck_ms_ok(ms_authority_open(in_dir("ca"), &authority, err));
}

static void teardown(void)
{
    ms_authority_close(authority);
    authority = NULL;
    test_dir_remove(dir);
}

static void again(void)
{
    ms_authority_close(authority);
    authority = NULL;
    ck_ms_ok(ms_authority_open(in_dir("ca"), &authority, err));
}

static int issue(enum ms_role role, const char *name, const char *file, struct ms_err *err)
{
    static const char *const hosts[] = {"node7.lab", "10.1.2.3", NULL};
    const struct ms_ca_entry *entry = NULL;
    struct ms_cert_request req = {role, name, hosts, 30, ""};
    return ms_authority_issue(authority, &req, in_dir(file), &entry, err);
}

static int take_back(const char *who, const char *copy, size_t *ret_n, struct ms_err *err)
{
    const struct ms_authority_who whom = {who, ""};
    *ret_n = 0;
    return ms_authority_revoke(authority, who != NULL ? &whom : NULL, 30, copy, ret_n, err);
}

static int renew(const char *who, const char *file, struct ms_err *err)
{
    const struct ms_authority_who whom = {who, ""};
    const struct ms_ca_entry *entry = NULL;
    struct ms_cert_request req = {.password = ""};
    return ms_authority_renew(authority, &whom, &req, in_dir(file), 0, &entry, err);
}

/* How many serial numbers a list holds, and whether the i-th row of the index is one of them. */
static int listed(const char *path, int row, int *ret_n)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    X509_CRL *crl = PEM_read_X509_CRL(file, NULL, NULL, NULL);
    fclose(file);
    ck_assert_ptr_nonnull(crl);
    STACK_OF(X509_REVOKED) *list = X509_CRL_get_REVOKED(crl);
    int found = 0;
    *ret_n = list != NULL ? sk_X509_REVOKED_num(list) : 0;
    for (int i = 0; i < *ret_n; i++) {
        BIGNUM *number = ASN1_INTEGER_to_BN(
            X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(list, i)), NULL);
        char *hex = BN_bn2hex(number);
        found |= strcmp(hex, ms_authority_index(authority)->entries[row].serial) == 0;
        OPENSSL_free(hex);
        BN_free(number);
    }
    X509_CRL_free(crl);
    return found;
}

/* What init leaves where it was killed between its two files, or who lost one of them. */
START_TEST(half_an_authority_is_named_and_gets_no_index)
{
    static const struct {
        const char *gone[2];
        const char *words;
    } halves[] = {
        {{"ca/ca.crt", NULL}, "is not whole: ca.key is there, ca.crt is missing"},
        {{"ca/ca.key", "ca/ca.crt"}, "there is no authority in"},
    };
    struct ms_authority *got = NULL;
    ms_authority_close(authority);
    authority = NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(halves); i++) {
        unlink(in_dir("ca/index.txt"));
        for (size_t j = 0; j < 2 && halves[i].gone[j] != NULL; j++) {
            unlink(in_dir(halves[i].gone[j]));
        }
        ck_ms_fails(ms_authority_open(in_dir("ca"), &got, err), MS_E_NOT_FOUND, halves[i].words);
        ck_assert_int_ne(access(in_dir("ca/index.txt"), F_OK), 0);
    }
}
END_TEST

START_TEST(an_authority_whose_index_cannot_be_written_is_none)
{
    struct ms_ca *ca = NULL;
    ck_assert_int_eq(mkdir(in_dir("other"), 0700), 0);
    ck_assert_int_eq(mkdir(in_dir("other/index.txt"), 0700), 0);
    ck_ms_ok(ms_ca_create("other ca", 365, &ca, err));
    ck_ms_fails(ms_authority_create(in_dir("other"), ca, err), MS_E_IO, "index.txt");
    ck_assert_int_eq(rmdir(in_dir("other/index.txt")), 0);

    ck_ms_ok(ms_authority_create(in_dir("other"), ca, err));

    ms_ca_destroy(ca);
}
END_TEST

START_TEST(what_was_issued_is_in_the_index)
{
    struct ms_cert_info info;
    ck_ms_ok(issue(MS_ROLE_WORKER, "node7", "n.p12", err));
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));

    again();

    const struct ms_ca_index *list = ms_authority_index(authority);
    ck_assert_uint_eq(list->n, 2);
    ck_ms_ok(ms_cert_inspect(in_dir("n.p12"), "", &info, err));
    ck_assert_str_eq(list->entries[0].serial, info.serial);
    ck_assert_str_eq(list->entries[0].role, "worker");
    ck_assert_str_eq(list->entries[0].name, "node7");
    ck_assert_str_eq(list->entries[0].hosts, "node7.lab,10.1.2.3");
    ck_assert_int_eq(list->entries[0].to, info.not_after);
    ck_assert_str_eq(list->entries[1].name, "alice");
}
END_TEST

START_TEST(a_certificate_that_nobody_got_is_not_in_the_index)
{
    ck_ms_fails(issue(MS_ROLE_USER, "alice", "nowhere/a.p12", err), MS_E_IO, "nowhere/a.p12");
    ck_assert_uint_eq(ms_authority_index(authority)->n, 0);
    again();
    ck_assert_uint_eq(ms_authority_index(authority)->n, 0);
}
END_TEST

START_TEST(a_name_revokes_all_its_certificates_a_serial_number_one)
{
    size_t n = 0;
    int in_list = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "b.p12", err));
    ck_ms_ok(issue(MS_ROLE_USER, "bob", "c.p12", err));
    char serial[MS_SERIAL_HEX];
    memcpy(serial, ms_authority_index(authority)->entries[2].serial, sizeof(serial));

    ck_ms_ok(take_back("alice", NULL, &n, err));
    ck_assert_uint_eq(n, 2);
    ck_assert(listed(in_dir("ca/crl.pem"), 0, &in_list) &&
              listed(in_dir("ca/crl.pem"), 1, &in_list));
    ck_assert_int_eq(in_list, 2);
    ck_ms_ok(take_back("alice", NULL, &n, err)); /* again: the list is only made anew */
    ck_assert_uint_eq(n, 0);

    ck_ms_ok(take_back(serial, NULL, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert(listed(in_dir("ca/crl.pem"), 2, &in_list));
    ck_assert_int_eq(in_list, 3);
    again();
    ck_assert_int_ne(ms_authority_index(authority)->entries[2].revoked, 0);
}
END_TEST

START_TEST(a_name_of_two_roles_asks_which)
{
    size_t n = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(issue(MS_ROLE_ADMIN, "alice", "b.p12", err));
    ck_ms_fails(take_back("alice", NULL, &n, err), MS_E_INVALID, "say user:alice or admin:alice");
    ck_ms_fails(renew("alice", "c.p12", err), MS_E_INVALID, "user:alice or admin:alice");
    ck_ms_ok(take_back("admin:alice", NULL, &n, err));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(ms_authority_index(authority)->entries[0].revoked, 0);
    ck_ms_fails(take_back("carol", NULL, &n, err), MS_E_NOT_FOUND, "msctl certs list");
}
END_TEST

START_TEST(a_crash_between_index_and_list_is_made_good_by_the_next_list)
{
    struct ms_ca_index half;
    size_t n = 0;
    int in_list = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(take_back(NULL, NULL, &n, err));
    ck_ms_ok(ms_ca_index_read(in_dir("ca/index.txt"), &half, err));
    half.entries[0].revoked = 1796112000; /* the index was written, and then the power went */
    ck_ms_ok(ms_ca_index_write(in_dir("ca/index.txt"), &half, err));
    ms_ca_index_fini(&half);
    again();
    ck_assert(!listed(in_dir("ca/crl.pem"), 0, &in_list));

    ck_ms_ok(take_back(NULL, NULL, &n, err));

    ck_assert(listed(in_dir("ca/crl.pem"), 0, &in_list));
}
END_TEST

START_TEST(a_copy_of_the_list_lies_where_the_authority_is_and_holds_all)
{
    size_t n = 0;
    int in_list = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(issue(MS_ROLE_USER, "bob", "b.p12", err));
    ck_ms_ok(take_back("alice", NULL, &n, err));

    ck_ms_ok(take_back("bob", "nodes.pem", &n, err)); /* not in whatever folder we are in */

    ck_assert(listed(in_dir("ca/nodes.pem"), 0, &in_list)); /* the earlier ones, too */
    ck_assert(listed(in_dir("ca/nodes.pem"), 1, &in_list));
    ck_assert(listed(in_dir("ca/crl.pem"), 1, &in_list));
    ck_ms_fails(take_back("bob", "nowhere/x.pem", &n, err), MS_E_IO, "ca/nowhere/x.pem");
}
END_TEST

START_TEST(an_authority_without_an_index_goes_on)
{
    struct ms_ca *ca = NULL;
    size_t n = 0;
    int in_list = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(issue(MS_ROLE_WORKER, "node7", "n.p12", err));
    ck_ms_ok(issue(MS_ROLE_USER, "bob", "b.p12", err));
    ck_ms_ok(ms_ca_load(in_dir("ca"), &ca, err));
    ck_ms_ok(ms_ca_revoke(ca, in_dir("a.p12"), "", in_dir("ca/crl.pem"), 30, err));
    ms_ca_destroy(ca);
    ck_assert_int_eq(unlink(in_dir("ca/index.txt")), 0);

    again(); /* as an older msctl left it */

    ck_assert_uint_eq(ms_authority_index(authority)->n, 1); /* of the list */
    ck_assert_str_eq(ms_authority_index(authority)->entries[0].name, "");
    ck_ms_ok(take_back(in_dir("b.p12"), NULL, &n, err)); /* by file, which the index learns */
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(ms_authority_index(authority)->entries[1].name, "bob");
    ck_assert(listed(in_dir("ca/crl.pem"), 0, &in_list) &&
              listed(in_dir("ca/crl.pem"), 1, &in_list));
    ck_ms_ok(renew(in_dir("n.p12"), "n2.p12", err));
    ck_ms_fails(renew(in_dir("a.p12"), "a2.p12", err), MS_E_REFUSED, "revoked");
}
END_TEST

/* Certificates of a version that kept no index: a name finds only what came later, and says so; the
 * serial number, which logs have, is enough. */
START_TEST(what_is_older_than_the_index_is_revoked_by_its_serial_number)
{
    struct ms_cert_info info;
    size_t n = 0;
    int in_list = 0;
    ck_ms_ok(issue(MS_ROLE_USER, "alice", "a.p12", err));
    ck_ms_ok(ms_cert_inspect(in_dir("a.p12"), "", &info, err));
    ck_ms_fails(take_back("57D86069D5A76ECFCFE86B58A0E64EDF", NULL, &n, err), MS_E_NOT_FOUND,
                "no serial number in"); /* all that was issued is known: it is a slip */
    ck_assert_int_eq(ms_authority_index(authority)->since, 0);
    ck_assert_int_eq(unlink(in_dir("ca/index.txt")), 0);
    again();
    ck_assert_int_ne(ms_authority_index(authority)->since, 0);
    ck_ms_fails(take_back("alice", NULL, &n, err), MS_E_NOT_FOUND, "since the index is kept");
    ck_ms_fails(take_back("1234567", NULL, &n, err), MS_E_NOT_FOUND, "no serial number in");

    ck_ms_ok(take_back(info.serial, NULL, &n, err));
    ck_assert_uint_eq(n, 1);
    again();

    ck_assert_int_ne(ms_authority_index(authority)->since, 0);
    ck_assert(listed(in_dir("ca/crl.pem"), 0, &in_list));
    ck_ms_fails(renew(info.serial, "a2.p12", err), MS_E_REFUSED, "revoked");
}
END_TEST

START_TEST(a_renewed_certificate_is_like_the_one_before)
{
    struct ms_cert_info one;
    struct ms_cert_info two;
    ck_ms_ok(issue(MS_ROLE_WORKER, "node7", "n.p12", err));

    ck_ms_ok(renew("node7", "m.p12", err));

    ck_ms_ok(ms_cert_inspect(in_dir("n.p12"), "", &one, err));
    ck_ms_ok(ms_cert_inspect(in_dir("m.p12"), "", &two, err));
    ck_assert_str_eq(two.uri, "ms://worker/node7");
    ck_assert_str_eq(two.hosts, one.hosts);
    ck_assert_str_ne(two.serial, one.serial);
    ck_assert_int_eq((two.not_after - two.not_before) / 86400, 30);
    ck_assert_uint_eq(ms_authority_index(authority)->n, 2);
    ck_assert_int_eq(ms_authority_index(authority)->entries[0].revoked,
                     0); /* valid until it ends */
    ck_ms_fails(renew("node7", "m.p12", err), MS_E_EXISTS, "--force");
}
END_TEST

START_TEST(a_certificate_that_the_index_learned_of_late_is_not_the_newest)
{
    static const char *const hosts[2][2] = {{"old.lab", NULL}, {"new.lab", NULL}};
    static const char *const files[] = {"old.p12", "new.p12"};
    struct ms_cert_info made;
    struct ms_ca_index half;
    for (int i = 0; i < 2; i++) {
        const struct ms_ca_entry *entry = NULL;
        struct ms_cert_request req = {MS_ROLE_WORKER, "node7", hosts[i], 30, ""};
        ck_ms_ok(ms_authority_issue(authority, &req, in_dir(files[i]), &entry, err));
    }
    ck_ms_ok(ms_ca_index_read(in_dir("ca/index.txt"), &half, err));
    struct ms_ca_entry first = half.entries[0]; /* of a time without an index */
    half.entries[0] = half.entries[1];
    half.entries[0].from += 3600;
    half.n = 1;
    ck_ms_ok(ms_ca_index_write(in_dir("ca/index.txt"), &half, err));
    half.entries[1] = first;
    half.n = 2;
    ms_ca_index_fini(&half);
    again();
    ck_ms_fails(renew(in_dir("old.p12"), "new.p12", err), MS_E_EXISTS, "--force"); /* entered */
    ck_assert_uint_eq(ms_authority_index(authority)->n, 2);

    ck_ms_ok(renew("node7", "renewed.p12", err));

    ck_ms_ok(ms_cert_inspect(in_dir("renewed.p12"), "", &made, err));
    ck_assert_str_eq(made.hosts, "new.lab");
}
END_TEST

START_TEST(another_authoritys_certificate_is_neither_revoked_nor_entered)
{
    struct ms_ca *other = NULL;
    size_t n = 0;
    struct ms_cert_request req = {MS_ROLE_USER, "mallory", NULL, 30, ""};
    ck_ms_ok(ms_ca_create("lab ca", 365, &other, err));
    ck_ms_ok(ms_ca_issue(other, &req, in_dir("m.p12"), NULL, err));
    ms_ca_destroy(other);
    ck_ms_fails(take_back(in_dir("m.p12"), NULL, &n, err), MS_E_REFUSED, "another CA");
    ck_assert_uint_eq(ms_authority_index(authority)->n, 0);
}
END_TEST

START_TEST(two_at_once_lose_nothing)
{
    enum { PEOPLE = 4, EACH = 5 };
    ms_authority_close(authority);
    authority = NULL;
    for (int i = 0; i < PEOPLE; i++) {
        if (fork() == 0) {
            int bad = 0;
            for (int k = 0; k < EACH; k++) {
                char name[16];
                snprintf(name, sizeof(name), "u%d-%d", i, k);
                struct ms_cert_request req = {MS_ROLE_USER, name, NULL, 30, ""};
                const struct ms_ca_entry *entry = NULL;
                bad |= ms_authority_open(in_dir("ca"), &authority, NULL) != 0 ||
                       ms_authority_issue(authority, &req, in_dir(name), &entry, NULL) != 0;
                ms_authority_close(authority);
                authority = NULL;
            }
            _exit(bad);
        }
    }
    for (int i = 0; i < PEOPLE; i++) {
        int status = 1;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    ck_ms_ok(ms_authority_open(in_dir("ca"), &authority, err));
    ck_assert_uint_eq(ms_authority_index(authority)->n, PEOPLE * EACH);
}
END_TEST

static const char *const names[] = {"",    ".hidden", "-dash", "_x",   "@x",     "a/b",
                                    "a b", "a\nb",    "a\x1b", "a\tb", "ümlaut", "a:b"};

START_TEST(a_name_begins_as_a_node_id_does_and_holds_no_control)
{
    ck_ms_fails(issue(MS_ROLE_USER, names[_i], "x.p12", err), MS_E_INVALID, "letter or a digit");
    ck_assert_uint_eq(ms_authority_index(authority)->n, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("authority");
    TCase *tcase = tcase_create("authority");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, half_an_authority_is_named_and_gets_no_index);
    tcase_add_test(tcase, an_authority_whose_index_cannot_be_written_is_none);
    tcase_add_test(tcase, what_was_issued_is_in_the_index);
    tcase_add_test(tcase, a_certificate_that_nobody_got_is_not_in_the_index);
    tcase_add_test(tcase, a_name_revokes_all_its_certificates_a_serial_number_one);
    tcase_add_test(tcase, a_name_of_two_roles_asks_which);
    tcase_add_test(tcase, a_crash_between_index_and_list_is_made_good_by_the_next_list);
    tcase_add_test(tcase, a_copy_of_the_list_lies_where_the_authority_is_and_holds_all);
    tcase_add_test(tcase, an_authority_without_an_index_goes_on);
    tcase_add_test(tcase, what_is_older_than_the_index_is_revoked_by_its_serial_number);
    tcase_add_test(tcase, a_renewed_certificate_is_like_the_one_before);
    tcase_add_test(tcase, a_certificate_that_the_index_learned_of_late_is_not_the_newest);
    tcase_add_test(tcase, another_authoritys_certificate_is_neither_revoked_nor_entered);
    tcase_add_test(tcase, two_at_once_lose_nothing);
    tcase_add_loop_test(tcase, a_name_begins_as_a_node_id_does_and_holds_no_control, 0,
                        (int)MS_ARRAY_SIZE(names));
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
