/* test_tls.c - contexts that refuse early and in words, and the identity of a peer */
#include "proto/cert.h"
#include "proto/certfile.h"
#include "proto/tls.h"
#include "tests/test.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];
static struct ms_ca *ca;
static struct ms_ca *other_ca;

static const char *in_dir(const char *name)
{
    static char paths[8][160]; /* a few at a time */
    static int at;
    at = (at + 1) % 8;
    snprintf(paths[at], sizeof(paths[at]), "%s/%s", dir, name);
    return paths[at];
}

static void setup(void)
{
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    ck_ms_ok(ms_ca_create("lab ca", 365, &ca, err));
    ck_ms_ok(ms_ca_create("other ca", 365, &other_ca, err));
    ck_ms_ok(ms_ca_export(ca, in_dir("ca.crt"), err));
    ck_ms_ok(ms_ca_export(other_ca, in_dir("other.crt"), err));
}

static void teardown(void)
{
    ms_ca_destroy(ca);
    ms_ca_destroy(other_ca);
    test_dir_remove(dir);
}

static void issue(const struct ms_ca *from, enum ms_role role, const char *name, int days,
                  const char *password, const char *file)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", NULL};
    struct ms_cert_request req = {role, name, hosts, days, password};
    ck_ms_ok(ms_ca_issue(from, &req, in_dir(file), NULL, err));
}

static struct ms_tls_config config(const char *p12)
{
    static char paths[2][160]; /* of the last configuration */
    struct ms_tls_config cfg = {.p12_path = paths[0], .p12_password = "", .ca_path = paths[1]};
    snprintf(paths[0], sizeof(paths[0]), "%s/%s", dir, p12);
    snprintf(paths[1], sizeof(paths[1]), "%s/ca.crt", dir);
    return cfg;
}

static int make(const struct ms_tls_config *cfg, char *warning, struct ms_err *err)
{
    SSL_CTX *ctx = NULL;
    int rc = ms_tls_context(cfg, &ctx, warning, err);
    SSL_CTX_free(ctx);
    return rc;
}

/* ---- contexts ---- */

START_TEST(a_certificate_of_another_role_is_no_programs_own)
{
    issue(ca, MS_ROLE_WORKER, "w1", 400, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");
    cfg.roles = MS_ROLE_SCHEDULER;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_REFUSED,
                "is no scheduler's but that of worker:w1: issue one with: msctl certs issue "
                "scheduler NAME");
    cfg.roles = MS_ROLE_USER | MS_ROLE_ADMIN;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_REFUSED, "is no user's but that of worker:w1");
    cfg.roles = MS_ROLE_WORKER | MS_ROLE_USER;
    ck_ms_ok(make(&cfg, NULL, err));
}
END_TEST

START_TEST(a_good_certificate_makes_a_context_without_a_warning)
{
    char warning[MS_TEXT_MAX] = "x";
    issue(ca, MS_ROLE_WORKER, "w1", 7, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");

    ck_ms_ok(make(&cfg, warning, err));

    ck_assert_str_eq(warning, ""); /* a week is short, but it has just begun */
}
END_TEST

START_TEST(a_password_is_needed_and_must_be_right)
{
    issue(ca, MS_ROLE_WORKER, "w1", 7, "sesame", "w.p12");
    struct ms_tls_config cfg = config("w.p12");

    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "needs a password");
    cfg.p12_password = "wrong";
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "the password given for");
    cfg.p12_password = "sesame";
    ck_ms_ok(make(&cfg, NULL, err));
    cfg.p12_password = NULL;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "needs a password");
}
END_TEST

START_TEST(a_key_that_others_can_read_is_refused)
{
    static const struct {
        unsigned mode;
        int is_fine;
    } rows[] = {{0600, 1}, {0400, 1}, {0640, 1}, {0440, 1}, {0644, 0},
                {0660, 0}, {0604, 0}, {0606, 0}, {0777, 0}, {0601, 0}};
    issue(ca, MS_ROLE_WORKER, "w1", 7, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        ck_assert_int_eq(chmod(in_dir("w.p12"), rows[i].mode), 0);
        if (rows[i].is_fine) {
            ck_ms_ok(make(&cfg, NULL, err));
        } else {
            ck_ms_fails(make(&cfg, NULL, err), MS_E_REFUSED, "chmod 640");
        }
    }
}
END_TEST

START_TEST(an_expired_certificate_is_refused_with_its_date)
{
    issue(ca, MS_ROLE_WORKER, "w1", -3, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "CN = w1) expired on 2");
}
END_TEST

START_TEST(a_certificate_that_ends_soon_warns)
{
    char warning[MS_TEXT_MAX];
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");

    cfg.expire_warning_days = 30; /* it began an hour ago: hosts differ */
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert(strstr(warning, "expires in 29 days") != NULL ||
              strstr(warning, "expires in 30 days") != NULL);
    cfg.expire_warning_days = 29;
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_str_eq(warning, "");
    cfg.expire_warning_days = 90; /* longer than it lives: then its last third */
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_str_eq(warning, "");
}
END_TEST

START_TEST(a_certificate_of_another_ca_is_named_with_both)
{
    issue(other_ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS,
                "CN = w1, issued by CN = other ca) was not signed by the CA in");
}
END_TEST

START_TEST(missing_and_wrong_files_are_named)
{
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    struct ms_tls_config cfg = config("none.p12");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_NOT_FOUND, "none.p12");
    cfg = config("w.p12");
    cfg.ca_path = in_dir("none.crt");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_NOT_FOUND, "none.crt");
    cfg.ca_path = cfg.p12_path;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "no certificate in PEM form");
    cfg = config("w.p12");
    cfg.p12_path = cfg.ca_path;
    ck_assert_int_eq(chmod(cfg.ca_path, 0600), 0);
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "is no PKCS#12 file");
    cfg.p12_path = NULL;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_INVALID, "no certificate was given");
    cfg = config("w.p12");
    cfg.ca_path = "";
    ck_ms_fails(make(&cfg, NULL, err), MS_E_INVALID, "no certificate of a CA");
    cfg.ca_path = in_dir("ca.crt");
    cfg.p12_path = dir;
    ck_ms_fails(make(&cfg, NULL, err), MS_E_INVALID, "is a folder and no file");
}
END_TEST

/* Packs key and certificate of two files into one PKCS#12, which no honest tool does. */
static void mix(const char *key_file, const char *cert_file, const char *out)
{
    struct ms_p12 a;
    struct ms_p12 b;
    ck_ms_ok(ms_p12_read(in_dir(key_file), "", &a, err));
    ck_ms_ok(ms_p12_read(in_dir(cert_file), "", &b, err));
    STACK_OF(X509) *certs = sk_X509_new_null();
    sk_X509_push(certs, b.cert);
    PKCS12 *bag = PKCS12_create("", "x", a.key, NULL, certs, 0, 0, 1, 1, 0);
    ck_assert_ptr_nonnull(bag);
    FILE *file = fopen(in_dir(out), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(i2d_PKCS12_fp(file, bag), 1);
    fclose(file);
    ck_assert_int_eq(chmod(in_dir(out), 0600), 0);
    PKCS12_free(bag);
    sk_X509_free(certs);
    ms_p12_fini(&a);
    ms_p12_fini(&b);
}

START_TEST(a_key_of_another_certificate_is_refused)
{
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "a.p12");
    issue(ca, MS_ROLE_WORKER, "w2", 30, "", "b.p12");
    mix("a.p12", "b.p12", "mixed.p12");
    struct ms_tls_config cfg = config("mixed.p12");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "does not belong to its certificate");
}
END_TEST

START_TEST(a_certificate_without_our_uri_is_refused)
{
    /* the CA's own certificate with its key: verifies, and says nothing about who we are */
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));
    FILE *file = fopen(in_dir("ca/ca.key"), "r");
    ck_assert_ptr_nonnull(file);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    fclose(file);
    X509 *cert = NULL;
    ck_ms_ok(ms_pem_read(in_dir("ca/ca.crt"), &cert, err));
    PKCS12 *bag = PKCS12_create("", "x", key, cert, NULL, 0, 0, 1, 1, 0);
    file = fopen(in_dir("ca.p12"), "w");
    ck_assert_ptr_nonnull(file);
    i2d_PKCS12_fp(file, bag);
    fclose(file);
    ck_assert_int_eq(chmod(in_dir("ca.p12"), 0600), 0);

    struct ms_tls_config cfg = config("ca.p12");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "no URI ms://ROLE/NAME");
    PKCS12_free(bag);
    X509_free(cert);
    EVP_PKEY_free(key);
}
END_TEST

START_TEST(an_old_encryption_is_answered_with_the_command_that_converts_it)
{
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    struct ms_p12 p12;
    ck_ms_ok(ms_p12_read(in_dir("w.p12"), "", &p12, err));
    char pem[512];
    char cmd[1200];
    snprintf(pem, sizeof(pem), "%s", in_dir("w.pem"));
    FILE *file = fopen(pem, "w");
    ck_assert_ptr_nonnull(file);
    PEM_write_PrivateKey(file, p12.key, NULL, NULL, 0, NULL, NULL);
    PEM_write_X509(file, p12.cert);
    fclose(file);
    ms_p12_fini(&p12);
    snprintf(cmd, sizeof(cmd), "%s", in_dir("old.p12"));
    pid_t pid = fork(); /* only the tool can load the legacy provider without touching ours */
    if (pid == 0) {
        execlp("openssl", "openssl", "pkcs12", "-export", "-legacy", "-in", pem, "-out", cmd,
               "-passout", "pass:old", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) {
        printf("skip: no openssl tool with the legacy provider here\n");
        return;
    }
    ck_assert_int_eq(chmod(cmd, 0600), 0);

    struct ms_tls_config cfg = config("old.p12");
    cfg.p12_password = "old";
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "openssl pkcs12 -legacy");
    cfg.p12_password = "new";
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "the password given for");
}
END_TEST

START_TEST(ciphers_of_tls_1_2_are_dropped_with_a_warning)
{
    char warning[MS_TEXT_MAX];
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    struct ms_tls_config cfg = config("w.p12");

    cfg.cipher_list = "ECDHE-RSA-AES128-GCM-SHA256:DHE-DSS-AES256:PSK-AES128-CBC-SHA";
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_ptr_nonnull(strstr(warning, "ignoring 3 cipher names"));
    cfg.cipher_list = "TLS_AES_256_GCM_SHA384";
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_str_eq(warning, "");
}
END_TEST

START_TEST(a_revoked_certificate_is_refused_by_its_owner_already)
{
    char warning[MS_TEXT_MAX];
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w1.p12");
    issue(ca, MS_ROLE_WORKER, "w2", 30, "", "w2.p12");
    ck_ms_ok(ms_ca_revoke(ca, in_dir("w1.p12"), "", in_dir("crl.pem"), 30, err));

    struct ms_tls_config cfg = config("w1.p12");
    cfg.crl_path = in_dir("crl.pem");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "is revoked by");
    cfg = config("w2.p12");
    cfg.crl_path = in_dir("crl.pem");
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_str_eq(warning, "");
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("crl.pem"), 3, err));
    ck_ms_ok(make(&cfg, warning, err));
    ck_assert_ptr_nonnull(strstr(warning, "must be renewed within 3 days"));
    cfg.crl_path = in_dir("none.pem");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "none.pem is missing");
    cfg.crl_path = in_dir("ca.crt");
    ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "no revocation list");
}
END_TEST

/* Of an authority that was made anew, with the name of the old one, as on its host, or another. */
START_TEST(a_list_of_another_ca_is_named_with_what_takes_its_place)
{
    char words[200];
    struct ms_ca *namesake = NULL;
    ck_ms_ok(ms_ca_create("lab ca", 365, &namesake, err));
    const struct ms_ca *const others[] = {other_ca, namesake};
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w1.p12");
    for (size_t i = 0; i < MS_ARRAY_SIZE(others); i++) {
        struct ms_tls_config cfg = config("w1.p12");
        cfg.crl_path = in_dir("other.pem");
        unlink(cfg.crl_path);
        ck_ms_ok(ms_ca_revoke(others[i], NULL, "", cfg.crl_path, 30, err));
        snprintf(words, sizeof(words),
                 "%s has no list of the CA that issued %s: it is another CA's", cfg.crl_path,
                 cfg.p12_path);
        ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, words);
        ck_ms_fails(make(&cfg, NULL, err), MS_E_TLS, "here: msctl certs install crl.pem");
    }
    ms_ca_destroy(namesake);
}
END_TEST

START_TEST(a_list_that_may_be_missing_is_none_only_where_no_file_is)
{
    SSL_CTX *ctx = NULL;
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w1.p12");
    struct ms_tls_config cfg = config("w1.p12");
    cfg.crl_may_miss = 1;
    cfg.crl_path = in_dir("crl.pem");
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    ck_assert(!ms_tls_has_list(ctx));
    SSL_CTX_free(ctx);

    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("crl.pem"), 30, err));
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    ck_assert(ms_tls_has_list(ctx));
    SSL_CTX_free(ctx);

    ck_assert_int_eq(unlink(in_dir("crl.pem")), 0);
    ck_assert_int_eq(symlink("crl.pem", in_dir("crl.pem")), 0); /* there, but ELOOP */
    ck_ms_fails(make(&cfg, NULL, err), MS_E_IO, "cannot read the revocation list");
}
END_TEST

/* Modes keep out others than root only. */
static int make_as_nobody(const struct ms_tls_config *cfg, struct ms_err *err)
{
    SSL_CTX *ctx = NULL;
    ck_assert_int_eq(seteuid(65534), 0);
    int rc = ms_tls_context(cfg, &ctx, NULL, err);
    ck_assert_int_eq(seteuid(0), 0);
    SSL_CTX_free(ctx);
    return rc;
}

START_TEST(what_may_not_be_read_is_said_with_what_gives_it_to_us)
{
    char words[300];
    if (geteuid() != 0) {
        printf("skip: only root can give its files away\n");
        return;
    }
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w1.p12");
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("crl.pem"), 30, err));
    struct ms_tls_config cfg = config("w1.p12");
    const char *const files[] = {cfg.ca_path, cfg.p12_path, in_dir("crl.pem")};
    cfg.crl_path = files[2];
    cfg.roles = MS_ROLE_WORKER;
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chown(cfg.p12_path, 65534, 0), 0);
    ck_assert_int_eq(chmod(cfg.crl_path, 0644), 0);
    ck_ms_ok(make_as_nobody(&cfg, err));

    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        ck_assert_int_eq(chown(files[i], 0, 0), 0);
        ck_assert_int_eq(chmod(files[i], 0600), 0);
        snprintf(words, sizeof(words), "%s && sudo chmod 640 %s", files[i], files[i]);
        ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, words);
        ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, "Permission denied");
        ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, "sudo msctl certs install FILE");
        ck_assert_int_eq(chown(files[i], 65534, 0), 0);
    }

    ck_assert_int_eq(chmod(dir, 0700), 0);
    snprintf(words, sizeof(words), "may not enter %s: sudo chgrp ", dir);
    ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, words);
    cfg.p12_path = "/etc/msched/tls/node.p12"; /* the CA's is an authority's folder then */
    snprintf(words, sizeof(words), "may not enter %s: sudo msctl certs install NAME.p12", dir);
    ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, words);
    cfg.roles = MS_ROLE_USER;
    ck_ms_fails(make_as_nobody(&cfg, err), MS_E_REFUSED, "as yourself");
}
END_TEST

/* ---- handshakes in memory ---- */

struct pair {
    SSL_CTX *server_ctx;
    SSL_CTX *client_ctx;
    SSL *server;
    SSL *client;
};

static void pair_init(struct pair *pair, const char *server_p12, const char *client_p12,
                      const char *crl, const char *host)
{
    struct ms_tls_config cfg = config(server_p12);
    BIO *a = NULL;
    BIO *b = NULL;
    cfg.crl_path = crl;
    ck_ms_ok(ms_tls_context(&cfg, &pair->server_ctx, NULL, err));
    cfg = config(client_p12);
    ck_ms_ok(ms_tls_context(&cfg, &pair->client_ctx, NULL, err));
    pair->server = ms_tls_new(pair->server_ctx, 1, NULL);
    pair->client = ms_tls_new(pair->client_ctx, 0, host);
    ck_assert_ptr_nonnull(pair->server);
    ck_assert_ptr_nonnull(pair->client);
    ck_assert_int_eq(BIO_new_bio_pair(&a, 0, &b, 0), 1);
    SSL_set_bio(pair->server, a, a);
    SSL_set_bio(pair->client, b, b);
}

static void pair_fini(struct pair *pair)
{
    SSL_free(pair->server);
    SSL_free(pair->client);
    SSL_CTX_free(pair->server_ctx);
    SSL_CTX_free(pair->client_ctx);
}

/* Moves both ends on; texts get the words of the end that failed. 1: both are done. */
static int shake(struct pair *pair, char server_text[MS_TEXT_MAX], char client_text[MS_TEXT_MAX])
{
    int s = 0;
    int c = 0;
    server_text[0] = '\0';
    client_text[0] = '\0';
    for (int i = 0; i < 8; i++) {
        ERR_clear_error();
        c = SSL_do_handshake(pair->client);
        if (c <= 0 && SSL_get_error(pair->client, c) == SSL_ERROR_SSL && client_text[0] == '\0') {
            ms_tls_reason(pair->client, client_text, MS_TEXT_MAX);
        }
        ERR_clear_error();
        s = SSL_do_handshake(pair->server);
        if (s <= 0 && SSL_get_error(pair->server, s) == SSL_ERROR_SSL && server_text[0] == '\0') {
            ms_tls_reason(pair->server, server_text, MS_TEXT_MAX);
        }
    }
    if (c == 1 && s <= 0) { /* TLS 1.3: the server's verdict comes with the first read */
        char byte = 0;
        ERR_clear_error();
        if (SSL_read(pair->client, &byte, 1) <= 0) {
            ms_tls_reason(pair->client, client_text, MS_TEXT_MAX);
        }
    }
    ERR_clear_error();
    return c == 1 && s == 1;
}

START_TEST(both_ends_verify_and_know_each_other)
{
    struct pair pair;
    struct ms_peer peer;
    char texts[2][MS_TEXT_MAX];
    issue(ca, MS_ROLE_SCHEDULER, "head", 30, "", "s.p12");
    issue(ca, MS_ROLE_ADMIN, "root@lab", 30, "", "c.p12");
    pair_init(&pair, "s.p12", "c.p12", NULL, "localhost");

    ck_assert_msg(shake(&pair, texts[0], texts[1]), "%s / %s", texts[0], texts[1]);

    memset(&peer, 0, sizeof(peer));
    ck_ms_ok(ms_tls_peer(pair.server, &peer, err));
    ck_assert_uint_eq(peer.who.roles, MS_ROLE_ADMIN);
    ck_assert_str_eq(peer.who.id, "admin:root@lab");
    ck_assert_str_eq(peer.cert_name, "root@lab");
    ck_ms_ok(ms_tls_peer(pair.client, &peer, err));
    ck_assert_uint_eq(peer.who.roles, MS_ROLE_SCHEDULER);
    ck_assert_str_eq(SSL_get_version(pair.client), "TLSv1.3");
    pair_fini(&pair);
}
END_TEST

START_TEST(no_session_ticket_is_ever_given_out)
{
    struct pair pair;
    char texts[2][MS_TEXT_MAX];
    char byte = 0;
    issue(ca, MS_ROLE_SCHEDULER, "head", 30, "", "s.p12");
    pair_init(&pair, "s.p12", "s.p12", NULL, NULL);
    ck_assert_int_eq(shake(&pair, texts[0], texts[1]), 1);

    ck_assert_int_eq(SSL_read(pair.client, &byte, 1), -1); /* reads what would hold tickets */

    ck_assert_int_eq(SSL_SESSION_has_ticket(SSL_get0_session(pair.client)), 0);
    pair_fini(&pair);
}
END_TEST

START_TEST(a_revoked_peer_is_refused_and_told)
{
    struct pair pair;
    char texts[2][MS_TEXT_MAX];
    issue(ca, MS_ROLE_SCHEDULER, "head", 30, "", "s.p12");
    issue(ca, MS_ROLE_WORKER, "w1", 30, "", "w.p12");
    ck_ms_ok(ms_ca_revoke(ca, in_dir("w.p12"), "", in_dir("crl.pem"), 30, err));
    pair_init(&pair, "s.p12", "w.p12", in_dir("crl.pem"), "127.0.0.1");

    ck_assert_int_eq(shake(&pair, texts[0], texts[1]), 0);

    ck_assert_msg(strstr(texts[0], "it is revoked") != NULL, "%s", texts[0]);
    ck_assert_msg(strstr(texts[1], "refused our certificate (revoked)") != NULL, "%s", texts[1]);
    pair_fini(&pair);
}
END_TEST

START_TEST(the_host_that_was_asked_for_must_be_in_the_certificate)
{
    static const struct {
        const char *host;
        int is_fine;
    } rows[] = {{"localhost", 1},    {"127.0.0.1", 1}, {NULL, 1},         {"", 1},
                {"head.example", 0}, {"127.0.0.2", 0}, {"local.host", 0}, {"10.0.0.9", 0}};
    issue(ca, MS_ROLE_SCHEDULER, "head", 30, "", "s.p12");
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct pair pair;
        char texts[2][MS_TEXT_MAX];
        pair_init(&pair, "s.p12", "s.p12", NULL, rows[i].host);
        ck_assert_int_eq(shake(&pair, texts[0], texts[1]), rows[i].is_fine);
        if (!rows[i].is_fine) {
            ck_assert_msg(strstr(texts[1], "is not made for '") != NULL &&
                              strstr(texts[1], rows[i].host) != NULL &&
                              strstr(texts[1], "but for localhost") != NULL,
                          "%s", texts[1]);
        }
        pair_fini(&pair);
    }
}
END_TEST

START_TEST(no_handshake_no_identity)
{
    struct pair pair;
    struct ms_peer peer;
    issue(ca, MS_ROLE_SCHEDULER, "head", 30, "", "s.p12");
    pair_init(&pair, "s.p12", "s.p12", NULL, NULL);
    ck_ms_fails(ms_tls_peer(pair.server, &peer, err), MS_E_REFUSED, "showed no certificate");
    pair_fini(&pair);
}
END_TEST

START_TEST(errors_without_a_text_of_ours_still_say_something)
{
    char buf[MS_TEXT_MAX];
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL); /* as SSL_CTX_new does */
    ck_assert_int_eq(ms_tls_describe(NULL, 0, "the peer", buf, sizeof(buf)), MS_E_TLS);
    ck_assert_str_eq(buf, "TLS with the peer failed: no reason given");
    ms_tls_describe(NULL, ERR_PACK(ERR_LIB_SSL, 0, SSL_R_BAD_LENGTH), "w", buf, sizeof(buf));
    ck_assert_str_eq(buf, "TLS with w failed: bad length");
    ck_assert_int_eq(ms_tls_describe(NULL,
                                     ERR_PACK(ERR_LIB_SSL, 0, SSL_R_CERTIFICATE_VERIFY_FAILED), "w",
                                     buf, sizeof(buf)),
                     MS_E_REFUSED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls");
    TCase *context = tcase_create("context");
    TCase *peer = tcase_create("peer");
    tcase_add_checked_fixture(context, setup, teardown);
    tcase_add_checked_fixture(peer, setup, teardown);
    tcase_add_test(context, a_certificate_of_another_role_is_no_programs_own);
    tcase_add_test(context, a_good_certificate_makes_a_context_without_a_warning);
    tcase_add_test(context, a_password_is_needed_and_must_be_right);
    tcase_add_test(context, a_key_that_others_can_read_is_refused);
    tcase_add_test(context, an_expired_certificate_is_refused_with_its_date);
    tcase_add_test(context, a_certificate_that_ends_soon_warns);
    tcase_add_test(context, a_certificate_of_another_ca_is_named_with_both);
    tcase_add_test(context, missing_and_wrong_files_are_named);
    tcase_add_test(context, a_key_of_another_certificate_is_refused);
    tcase_add_test(context, a_certificate_without_our_uri_is_refused);
    tcase_add_test(context, an_old_encryption_is_answered_with_the_command_that_converts_it);
    tcase_add_test(context, ciphers_of_tls_1_2_are_dropped_with_a_warning);
    tcase_add_test(context, a_revoked_certificate_is_refused_by_its_owner_already);
    tcase_add_test(context, a_list_of_another_ca_is_named_with_what_takes_its_place);
    tcase_add_test(context, a_list_that_may_be_missing_is_none_only_where_no_file_is);
    tcase_add_test(context, what_may_not_be_read_is_said_with_what_gives_it_to_us);
    tcase_add_test(peer, both_ends_verify_and_know_each_other);
    tcase_add_test(peer, no_session_ticket_is_ever_given_out);
    tcase_add_test(peer, a_revoked_peer_is_refused_and_told);
    tcase_add_test(peer, the_host_that_was_asked_for_must_be_in_the_certificate);
    tcase_add_test(peer, no_handshake_no_identity);
    tcase_add_test(peer, errors_without_a_text_of_ours_still_say_something);
    suite_add_tcase(suite, context);
    suite_add_tcase(suite, peer);
    return test_run(suite);
}
