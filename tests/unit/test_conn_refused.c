/* test_conn_refused.c - connections that must not be: nobody there, certificates, the wrong kind */
#include "tests/unit/conn_world.h"

#include <grp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* ---- nobody there ---- */

static void check_dial_fails(struct world *w, int code, const char *part)
{
    dial(w);
    ck_assert_int_eq(w->self.closed, 0); /* never from inside the call */
    run_until(w, &w->self.closed);
    ck_assert_int_eq(w->self.opened, 0);
    ck_assert_msg(w->self.code == code, "%s: %s", ms_code_name(w->self.code), w->self.reason);
    ck_contains(w->self.reason, part);
    ck_contains(w->self.reason, w->address);
}

START_TEST(a_refused_connection_names_the_address_and_the_next_step)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    event_free(w.listener);
    close(w.listen_fd);
    w.listener = NULL;

    check_dial_fails(&w, MS_E_UNREACHABLE, "connection refused");
    ck_contains(w.self.reason, "start msschedd");
    world_fini(&w);
}
END_TEST

/* A socket of root and of one group, and what a stranger hears of it. */
static void check_closed(unsigned mode, gid_t group, const char *part)
{
    struct world w;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    world_init(&w, NULL);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/closed", w.dir);
    snprintf(w.address, sizeof(w.address), "unix:%s", at.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(chown(at.sun_path, 0, group), 0);
    ck_assert_int_eq(chmod(at.sun_path, mode), 0);
    ck_assert_int_eq(chmod(w.dir, 0711), 0);
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(setegid(65534), 0);
    ck_assert_int_eq(seteuid(65534), 0);

    check_dial_fails(&w, MS_E_REFUSED, part);

    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setegid(0), 0);
    close(fd);
    world_fini(&w);
}

/* "its group may" was said of sockets of mode 0600, and of other groups than the one to join. */
START_TEST(who_may_not_use_a_socket_hears_what_would_help)
{
    enum { SOME_GROUP = 1, NO_GROUP = 54321 };
    char part[128];
    if (geteuid() != 0) {
        printf("skip: only root can come as another uid\n");
        return;
    }
    const struct group *group = getgrgid(SOME_GROUP);
    ck_assert_ptr_nonnull(group);
    snprintf(part, sizeof(part), "usermod -aG %s NAME", group->gr_name);
    check_closed(0660, SOME_GROUP, part);
    check_closed(0660, NO_GROUP, "the number 54321");
    check_closed(0600, SOME_GROUP, "only its owner (uid 0)");
}
END_TEST

START_TEST(a_missing_unix_socket_is_named)
{
    struct world w;
    world_init(&w, NULL);
    snprintf(w.address, sizeof(w.address), "unix:%s/none", w.dir);

    check_dial_fails(&w, MS_E_UNREACHABLE, "no such socket");
    world_fini(&w);
}
END_TEST

START_TEST(a_host_that_does_not_exist_is_refused_at_once)
{
    struct world w;
    world_init(&w, NULL);

    ck_ms_fails(
        ms_conn_connect(w.base, "no such host", &w.client, &handler, &w.self, &w.self.conn, err),
        MS_E_INVALID, "no such host");
    ck_ms_fails(
        ms_conn_connect(w.base, "unix:relative", &w.client, &handler, &w.self, &w.self.conn, err),
        MS_E_INVALID, "begins with /");
    world_fini(&w);
}
END_TEST

START_TEST(a_listener_that_never_answers_ends_with_a_timeout)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    event_del(w.listener); /* the kernel accepts, nobody reads */
    w.client.handshake_ms = 100;

    check_dial_fails(&w, MS_E_UNREACHABLE, "no Welcome");
    world_fini(&w);
}
END_TEST

/* ---- certificates that do not fit ---- */

START_TEST(a_client_of_another_ca_learns_in_words_that_it_was_refused)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    /* the client trusts the server's CA, but its own certificate comes from another */
    make_ca(&w, "other");
    issue(&w, "other", MS_ROLE_WORKER, "stranger", 10);
    SSL_CTX_free(w.client.tls);
    w.client.tls = context(&w, "other", "stranger");
    char ca[256];
    snprintf(ca, sizeof(ca), "%s/ca/ca.crt", w.dir);
    ck_assert_int_eq(SSL_CTX_load_verify_file(w.client.tls, ca), 1);

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "the scheduler at 127.0.0.1:");
    ck_contains(w.self.reason, "refused our certificate (unknown ca)");
    ck_contains(w.self.reason, "msctl certs issue");
    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "issued by a CA that we do not know");
    world_fini(&w);
}
END_TEST

START_TEST(a_server_of_another_ca_is_refused_and_learns_it)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    make_ca(&w, "other");
    issue(&w, "other", MS_ROLE_SCHEDULER, "impostor", 10);
    SSL_CTX_free(w.server.tls);
    w.server.tls = context(&w, "other", "impostor");

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused the certificate of the scheduler at 127.0.0.1:");
    ck_contains(w.self.reason, "a CA that we do not know");
    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "refused our certificate (unknown ca)");
    world_fini(&w);
}
END_TEST

/* A TLS client context that shows no certificate at all. */
static SSL_CTX *bare_context(const struct world *w)
{
    char ca[256];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    snprintf(ca, sizeof(ca), "%s/ca/ca.crt", w->dir);
    ck_assert_int_eq(SSL_CTX_load_verify_file(ctx, ca), 1);
    return ctx;
}

START_TEST(a_client_without_a_certificate_is_refused_in_words)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.client.tls);
    w.client.tls = bare_context(&w);

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused our certificate (none was shown)");
    ck_contains(w.ends[0].reason, "showed no certificate");
    world_fini(&w);
}
END_TEST

/* Loads a certificate that ms_tls_context would refuse. */
static SSL_CTX *unchecked_context(const struct world *w, const char *name)
{
    char path[256];
    struct ms_p12 p12;
    SSL_CTX *ctx = bare_context(w);
    snprintf(path, sizeof(path), "%s/%s.p12", w->dir, name);
    ck_ms_ok(ms_p12_read(path, "", &p12, err));
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, p12.cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, p12.key), 1);
    ms_p12_fini(&p12);
    return ctx;
}

START_TEST(an_expired_client_certificate_is_named_at_both_ends)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    issue(&w, "ca", MS_ROLE_WORKER, "old", -2);
    SSL_CTX_free(w.client.tls);
    w.client.tls = unchecked_context(&w, "old");

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "refused our certificate (expired)");
    ck_contains(w.ends[0].reason, "it has expired");
    world_fini(&w);
}
END_TEST

START_TEST(a_certificate_for_another_host_is_refused_with_the_name_that_was_asked_for)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    w.client.tls_host = "head.example";

    dial(&w);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "is not made for 'head.example'");
    world_fini(&w);
}
END_TEST

START_TEST(a_worker_that_poses_as_scheduler_is_refused)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.server.tls);
    w.server.tls = context(&w, "ca", "w3");

    dial(&w);
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "certificate of a worker (w3), not of a scheduler");
    world_fini(&w);
}
END_TEST

/* No host is checked where a node is named: its certificate is all that tells it from others. */
static void dial_node(struct world *w, const char *shows, const char *wanted)
{
    SSL_CTX_free(w->server.tls);
    w->server.tls = context(w, "ca", shows);
    w->client.tls_host = NULL;
    w->client.require_scheduler = 0;
    w->client.require_worker = wanted;
    memset(&w->self, 0, sizeof(w->self));
    w->self.world = w;
    dial(w);
}

START_TEST(another_node_than_the_named_one_is_refused)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_USER);
    issue(&w, "ca", MS_ROLE_WORKER, "n1", 10);
    issue(&w, "ca", MS_ROLE_WORKER, "n2", 10);

    dial_node(&w, "n2", "n1");
    run_until(&w, &w.self.closed);
    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "certificate of worker n2, not of worker n1");

    dial_node(&w, "n1", "n1");
    run_until(&w, &w.self.opened);
    ms_conn_destroy(w.self.conn);
    w.self.conn = NULL;
    world_fini(&w);
}
END_TEST

START_TEST(a_scheduler_of_the_nodes_name_is_not_the_node)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_USER);

    dial_node(&w, "head", "head");
    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "certificate of scheduler head, not of worker head");
    world_fini(&w);
}
END_TEST

/* ---- the wrong kind of peer ---- */

START_TEST(a_plain_client_on_a_tls_port_is_told_so)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.client.tls);
    w.client.tls = NULL;

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_contains(w.self.reason, "TLS only");
    ck_contains(w.self.reason, "take back tls = off or MS_ENABLE_SSL=0");
    ck_contains(w.self.reason, "or say the same on this one"); /* not cut off */
    ck_contains(w.self.reason, w.address);
    ck_contains(w.ends[0].reason, "does not speak TLS");
    world_fini(&w);
}
END_TEST

START_TEST(a_tls_client_on_a_plain_port_is_told_so)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.server.tls);
    w.server.tls = NULL;

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_contains(w.self.reason, "does not speak TLS");
    ck_contains(w.ends[0].reason, "TLS handshake");
    ck_assert_int_eq(w.ends[0].code, MS_E_PROTOCOL);
    world_fini(&w);
}
END_TEST

/* Sends bytes from a raw socket; the server must close with a reason that contains part. */
static void check_raw(const void *bytes, size_t size, int tls, int code, const char *part)
{
    struct world w;
    char answer[1024];
    if (tls) {
        world_init_tls(&w, MS_ROLE_WORKER);
    } else {
        world_init(&w, "127.0.0.1:0");
    }
    int fd = raw_connect(&w);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);

    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].opened, 0);
    ck_assert_msg(w.ends[0].code == code, "%s: %s", ms_code_name(w.ends[0].code), w.ends[0].reason);
    ck_contains(w.ends[0].reason, part);
    ck_contains(w.ends[0].reason, "127.0.0.1:");
    while (read(fd, answer, sizeof(answer)) > 0) { /* ends: the server has closed */
    }
    close(fd);
    world_fini(&w);
}

START_TEST(garbage_on_the_port_is_described)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char rpc[] = "RPC0aaaaaaaaaaaaaaaa";
    static const char noise[] = "\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c";

    check_raw(http, sizeof(http) - 1, 0, MS_E_PROTOCOL, "HTTP request");
    check_raw(rpc, sizeof(rpc) - 1, 0, MS_E_PROTOCOL, "MindSpore");
    check_raw(noise, sizeof(noise) - 1, 0, MS_E_PROTOCOL, "de ad be ef");
    check_raw("\x15\x03\x03\x00\x02\x02\x30", 7, 0, MS_E_PROTOCOL, "TLS alert");
    check_raw(http, sizeof(http) - 1, 1, MS_E_TLS, "HTTP request");
    check_raw(noise, sizeof(noise) - 1, 1, MS_E_TLS, "does not speak TLS");
}
END_TEST

START_TEST(a_frame_above_its_limit_is_refused_before_its_bytes_come)
{
    static const uint8_t huge[16] = {'M', 'S', 'C', '1', 0, 1, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0};

    check_raw(huge, sizeof(huge), 0, MS_E_PROTOCOL, "Hello frame of 2147418112 bytes, the limit");
}
END_TEST

START_TEST(a_first_frame_that_is_no_hello_is_refused)
{
    static const uint8_t beat[16] = {'M', 'S', 'C', '1', 0, 11};

    check_raw(beat, sizeof(beat), 0, MS_E_PROTOCOL, "Heartbeat, not Hello");
}
END_TEST

START_TEST(a_large_frame_of_the_wrong_role_is_refused_before_its_bytes_come)
{
    static const uint8_t jobs[16] = {'M', 'S', 'C', '1', 0, 71, 0, 0, 0, 0, 0, 9, 0, 0x40, 0, 0};
    struct world w;
    check_raw(jobs, sizeof(jobs), 0, MS_E_PROTOCOL, "JobList, not Hello");

    world_init(&w, "127.0.0.1:0");
    w.server.plain_role = MS_ROLE_WORKER;
    int fd = raw_connect(&w);
    raw_hello(fd);
    run_until(&w, &w.ends[0].opened);
    ck_assert_int_eq(write(fd, jobs, sizeof(jobs)), sizeof(jobs));
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "may not send JobList");
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(a_peer_that_says_nothing_is_cut_off)
{
    struct world w;
    for (int tls = 0; tls < 2; tls++) {
        if (tls) {
            world_init_tls(&w, MS_ROLE_WORKER);
        } else {
            world_init(&w, "127.0.0.1:0");
        }
        w.server.handshake_ms = 100;
        int fd = raw_connect(&w);

        run_until(&w, &w.ends[0].closed);

        ck_assert_int_eq(w.ends[0].code, MS_E_TIMEOUT);
        ck_contains(w.ends[0].reason, tls ? "TLS handshake" : "no Hello");
        close(fd);
        world_fini(&w);
    }
}
END_TEST

START_TEST(another_protocol_version_is_refused_with_both_ranges)
{
    struct world w;
    uint8_t frame[128];
    uint8_t answer[1024];
    Ms__Hello hello = MS__HELLO__INIT;
    hello.protocol_min = 7;
    hello.protocol_max = 9;
    hello.software = (char *)"msctl 9.0";
    world_init(&w, "127.0.0.1:0");
    int fd = raw_connect(&w);
    size_t size = ms_wire_size(&hello.base);
    ck_ms_ok(ms_wire_pack(MS_MSG_HELLO, 0, &hello.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, size), (ssize_t)size);

    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_REFUSED);
    ck_contains(w.ends[0].reason, "'msctl 9.0' speaks the protocol versions 7 to 9");
    ck_contains(w.ends[0].reason, "1 to 1");
    ssize_t n = read(fd, answer, sizeof(answer));
    ck_assert_int_gt(n, MS_WIRE_HEADER);
    ck_assert_int_eq(answer[5], MS_MSG_ERROR);
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(a_type_that_the_role_may_not_send_is_answered_and_not_handed_on)
{
    struct world w;
    Ms__Submit submit = MS__SUBMIT__INIT;
    world_init_tls(&w, MS_ROLE_WORKER);
    dial(&w);
    run_until(&w, &w.self.opened);

    ck_ms_ok(ms_conn_send(w.self.conn, MS_MSG_SUBMIT, 42, &submit.base, err));
    run_until(&w, &w.self.frames);

    ck_assert_uint_eq(w.self.last_type, MS_MSG_ERROR);
    ck_assert_uint_eq(w.self.last_id, 42);
    ck_contains(w.self.last_text, "worker w3 at");
    ck_contains(w.self.last_text, "may not send Submit");
    ck_assert_int_eq(w.ends[0].frames, 0);
    ck_assert_int_eq(w.ends[0].closed, 0);
    world_fini(&w);
}
END_TEST

START_TEST(a_second_hello_ends_the_connection)
{
    struct world w;
    world_init(&w, "127.0.0.1:0");
    int fd = raw_connect(&w);
    raw_hello(fd);
    raw_hello(fd);

    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.ends[0].code, MS_E_PROTOCOL);
    ck_contains(w.ends[0].reason, "a second Hello");
    close(fd);
    world_fini(&w);
}
END_TEST

START_TEST(a_server_that_chose_another_version_is_refused)
{
    struct world w;
    uint8_t frame[64];
    Ms__Welcome welcome = MS__WELCOME__INIT;
    welcome.protocol = 9;
    welcome.software = (char *)"msschedd 9.0";
    size_t size = ms_wire_size(&welcome.base);
    world_init(&w, "127.0.0.1:0");
    event_del(w.listener); /* the server is this function */
    dial(&w);
    event_base_loop(w.base, EVLOOP_ONCE);
    int fd = -1;
    while ((fd = accept(w.listen_fd, NULL, NULL)) < 0) {
        event_base_loop(w.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
    ck_ms_ok(ms_wire_pack(MS_MSG_WELCOME, 0, &welcome.base, frame, size, err));
    ck_assert_int_eq(write(fd, frame, size), (ssize_t)size);

    run_until(&w, &w.self.closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "('msschedd 9.0') chose the protocol version 9");
    close(fd);
    world_fini(&w);
}
END_TEST

/* Signs a certificate that verifies but does not say who it belongs to. */
static SSL_CTX *nameless_context(const struct world *w)
{
    char path[256];
    struct ms_p12 p12;
    SSL_CTX *ctx = bare_context(w);
    snprintf(path, sizeof(path), "%s/ca/ca.key", w->dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    fclose(file);
    snprintf(path, sizeof(path), "%s/w3.p12", w->dir);
    ck_ms_ok(ms_p12_read(path, "", &p12, err));
    int at = X509_get_ext_by_NID(p12.cert, NID_subject_alt_name, -1);
    ck_assert_int_ge(at, 0);
    X509_EXTENSION_free(X509_delete_ext(p12.cert, at));
    ck_assert_int_ne(X509_sign(p12.cert, key, EVP_sha256()), 0);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, p12.cert), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, p12.key), 1);
    ms_p12_fini(&p12);
    EVP_PKEY_free(key);
    return ctx;
}

START_TEST(a_certificate_that_says_no_role_is_refused_in_words)
{
    struct world w;
    world_init_tls(&w, MS_ROLE_WORKER);
    SSL_CTX_free(w.client.tls);
    w.client.tls = nameless_context(&w);

    dial(&w);
    run_until(&w, &w.self.closed);
    run_until(&w, &w.ends[0].closed);

    ck_assert_int_eq(w.self.opened, 0);
    ck_assert_int_eq(w.self.code, MS_E_REFUSED);
    ck_contains(w.self.reason, "CN = w3) has no URI ms://ROLE/NAME");
    ck_contains(w.ends[0].reason, "has no URI");
    world_fini(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_refused");
    TCase *dead = tcase_create("nobody there");
    TCase *cert = tcase_create("certificates");
    TCase *wrong = tcase_create("wrong kind of peer");

    tcase_add_test(dead, a_refused_connection_names_the_address_and_the_next_step);
    tcase_add_test(dead, who_may_not_use_a_socket_hears_what_would_help);
    tcase_add_test(dead, a_missing_unix_socket_is_named);
    tcase_add_test(dead, a_host_that_does_not_exist_is_refused_at_once);
    tcase_add_test(dead, a_listener_that_never_answers_ends_with_a_timeout);
    tcase_add_test(cert, a_client_of_another_ca_learns_in_words_that_it_was_refused);
    tcase_add_test(cert, a_server_of_another_ca_is_refused_and_learns_it);
    tcase_add_test(cert, a_client_without_a_certificate_is_refused_in_words);
    tcase_add_test(cert, an_expired_client_certificate_is_named_at_both_ends);
    tcase_add_test(cert,
                   a_certificate_for_another_host_is_refused_with_the_name_that_was_asked_for);
    tcase_add_test(cert, a_worker_that_poses_as_scheduler_is_refused);
    tcase_add_test(cert, another_node_than_the_named_one_is_refused);
    tcase_add_test(cert, a_scheduler_of_the_nodes_name_is_not_the_node);
    tcase_add_test(cert, a_certificate_that_says_no_role_is_refused_in_words);
    tcase_add_test(wrong, a_second_hello_ends_the_connection);
    tcase_add_test(wrong, a_server_that_chose_another_version_is_refused);
    tcase_add_test(wrong, a_plain_client_on_a_tls_port_is_told_so);
    tcase_add_test(wrong, a_tls_client_on_a_plain_port_is_told_so);
    tcase_add_test(wrong, garbage_on_the_port_is_described);
    tcase_add_test(wrong, a_frame_above_its_limit_is_refused_before_its_bytes_come);
    tcase_add_test(wrong, a_first_frame_that_is_no_hello_is_refused);
    tcase_add_test(wrong, a_large_frame_of_the_wrong_role_is_refused_before_its_bytes_come);
    tcase_add_test(wrong, a_peer_that_says_nothing_is_cut_off);
    tcase_add_test(wrong, another_protocol_version_is_refused_with_both_ranges);
    tcase_add_test(wrong, a_type_that_the_role_may_not_send_is_answered_and_not_handed_on);
    suite_add_tcase(suite, dead);
    suite_add_tcase(suite, cert);
    suite_add_tcase(suite, wrong);
    return test_run(suite);
}
