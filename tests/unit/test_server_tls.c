/* test_server_tls.c - who was revoked while his handshake was under way */
#include "tests/unit/server_world.h"

#include "proto/cert.h"
#include "proto/certfile.h"

#include <openssl/ssl.h>

static const char *in_dir(const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void issue(const struct ms_ca *ca, enum ms_role role, const char *name, const char *file)
{
    static const char *const hosts[] = {"127.0.0.1", NULL};
    struct ms_cert_request req = {role, name, hosts, 10, ""};
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir(file), NULL, err));
}

/* ---- a client that holds back what it has to send ---- */

static SSL *client_new(SSL_CTX **ret_ctx)
{
    struct ms_tls_config cfg = {
        .p12_path = in_dir("alice.p12"), .p12_password = "", .ca_path = in_dir("ca/ca.crt")};
    ck_ms_ok(ms_tls_context(&cfg, ret_ctx, NULL, err));
    SSL *ssl = SSL_new(*ret_ctx);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl);
    return ssl;
}

static void flush(SSL *ssl, int fd)
{
    uint8_t bytes[16384];
    int n;
    while ((n = BIO_read(SSL_get_wbio(ssl), bytes, sizeof(bytes))) > 0) {
        put(fd, bytes, (size_t)n);
    }
}

/* 0: the other end is gone. */
static ssize_t feed(SSL *ssl, int fd)
{
    uint8_t bytes[16384];
    ck_assert(is_readable(fd, 60000));
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n > 0) {
        BIO_write(SSL_get_rbio(ssl), bytes, (int)n);
    }
    return n;
}

/* Ends with its own certificate made and not sent. */
static void shake_hands(SSL *ssl, int fd)
{
    int rc = SSL_do_handshake(ssl);
    while (rc != 1) {
        ck_assert_int_eq(SSL_get_error(ssl, rc), SSL_ERROR_WANT_READ);
        flush(ssl, fd);
        ck_assert_int_gt(feed(ssl, fd), 0);
        rc = SSL_do_handshake(ssl);
    }
}

static size_t read_all(SSL *ssl, int fd, uint8_t *bytes, size_t size)
{
    size_t have = 0;
    do {
        int n = SSL_read(ssl, bytes + have, (int)(size - have));
        while (n > 0) {
            have += (size_t)n;
            n = SSL_read(ssl, bytes + have, (int)(size - have));
        }
    } while (feed(ssl, fd) > 0);
    return have;
}

START_TEST(who_is_revoked_amid_his_handshake_is_refused_at_his_hello)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    struct ms_ca *ca = NULL;
    struct ms_wire_header head;
    ProtobufCMessage *msg = NULL;
    SSL_CTX *ctx = NULL;
    char settings[1024];
    uint8_t buf[4096];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = hello.protocol_max = MS_PROTOCOL_VERSION;
    hello.software = (char *)(uintptr_t) "test";
    ck_ms_ok(ms_ca_create("ca", 10, &ca, err));
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));
    issue(ca, MS_ROLE_SCHEDULER, "head", "head.p12");
    issue(ca, MS_ROLE_USER, "alice", "alice.p12");
    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("crl.pem"), 30, err)); /* nobody yet */
    snprintf(settings, sizeof(settings), "tls_ca = %s\ntls_cert = %s\ntls_crl = %s\n",
             in_dir("ca/ca.crt"), in_dir("head.p12"), in_dir("crl.pem"));
    configure(settings);
    int passed = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(passed, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(listen(passed, 16), 0);
    ck_assert_int_eq(getsockname(passed, (struct sockaddr *)&at, &size), 0);
    serve_tls = "on";
    stage->may_reload = 1;
    start(passed, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, size), 0);
    SSL *ssl = client_new(&ctx);
    shake_hands(ssl, fd);

    ck_ms_ok(ms_ca_revoke(ca, in_dir("alice.p12"), "", in_dir("crl.pem"), 30, err));
    order_reload(settings);
    ck_assert_int_gt(SSL_write(ssl, buf, (int)pack(MS_MSG_HELLO, 0, &hello.base, buf)), 0);
    flush(ssl, fd);

    ck_assert_uint_gt(read_all(ssl, fd, buf, sizeof(buf)), MS_WIRE_HEADER);
    ck_ms_ok(ms_wire_parse_header(buf, &head, err));
    ck_assert_uint_eq(head.type, MS_MSG_ERROR);
    ck_ms_ok(ms_wire_unpack(head.type, buf + MS_WIRE_HEADER, head.length, &msg, err));
    ck_assert_msg(strstr(((Ms__Error *)msg)->text, "revoked") != NULL, "%s",
                  ((Ms__Error *)msg)->text);
    ms_wire_free(msg);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    ms_ca_destroy(ca);
    close(fd);
    close(passed);
}
END_TEST

/* What the daemon logs while it loads its certificates, into text. */
static void load_logged(const char *words, char *text, size_t size)
{
    static char program[] = "msschedd";
    static char flag[] = "--config";
    char *argv[] = {program, flag, (char *)(uintptr_t)words, NULL};
    struct options *options = NULL;
    int fd = open(in_dir("log"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_ms_ok(options_load(3, argv, &options, err));
    ms_log_init(fd, MS_LOG_INFO, 0);
    ck_ms_ok(server_check_options(options, err));
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, 0);
    ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    options_destroy(options);
    close(fd);
}

/* MindSpore's own has none: whoever took it over would trust the revoked without a word. */
START_TEST(a_tls_json_without_a_list_beside_one_is_warned_of)
{
    struct ms_ca *ca = NULL;
    char settings[512];
    char text[4096];
    ck_ms_ok(ms_ca_create("ca", 400, &ca, err));
    ck_ms_ok(ms_ca_save(ca, in_dir("ca"), err));
    struct ms_cert_request req = {MS_ROLE_SCHEDULER, "head", NULL, 200, ""};
    ck_ms_ok(ms_ca_issue(ca, &req, in_dir("head.p12"), NULL, err));
    FILE *file = fopen(in_dir("tls.json"), "w");
    fputs("{\"server_cert_path\": \"head.p12\", \"ca_cert_path\": \"ca/ca.crt\"}", file);
    fclose(file);
    snprintf(settings, sizeof(settings), "tls_config = %s\n", in_dir("tls.json"));
    configure(settings);
    load_logged(config_path, text, sizeof(text));
    ck_assert_msg(strstr(text, "tls.no_list") == NULL, "%s", text);

    ck_ms_ok(ms_ca_revoke(ca, NULL, "", in_dir("ca/crl.pem"), 30, err));
    ms_ca_destroy(ca);
    load_logged(config_path, text, sizeof(text));
    ck_assert_msg(strstr(text, "warning tls.no_list folder=") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "ca/crl.pem") != NULL && strstr(text, "crl_path") != NULL, "%s",
                  text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server_tls");
    TCase *tcase = tcase_create("server_tls");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, who_is_revoked_amid_his_handshake_is_refused_at_his_hello);
    tcase_add_test(tcase, a_tls_json_without_a_list_beside_one_is_warned_of);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
