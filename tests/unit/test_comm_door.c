/* test_comm_door.c - the data port under a flood: who has a seat, who gives way */
#include "tests/unit/comm_fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

enum { FLOOD = 2 * MS_HALF_OPEN_MAX + 88 }; /* more than there are seats; fits the backlog */

/* Connects from an address of loopback to rank 0. */
static int dial_from(const struct comm_case *c, const char *source)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)comm_listener_port(c->ranks.listeners[0])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(inet_pton(AF_INET, source, &from.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Without a certificate: a ClientHello each, or nothing at all, and no word more. source NULL:
 * from a network each. */
static void flood_from(const struct comm_case *c, const char *source, int is_silent, int fds[FLOOD])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    for (int i = 0; i < FLOOD; i++) {
        char address[32];
        SSL *ssl = SSL_new(ctx);
        snprintf(address, sizeof(address), "127.%d.%d.9", 1 + i % 250, 1 + i / 250);
        fds[i] = dial_from(c, source != NULL ? source : address);
        ck_assert_int_eq(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
        SSL_set_fd(ssl, fds[i]);
        if (!is_silent) {
            (void)SSL_connect(ssl);
        }
        ERR_clear_error();
        SSL_free(ssl);
    }
    SSL_CTX_free(ctx);
}

static void flood_end(int fds[FLOOD])
{
    for (int i = 0; i < FLOOD; i++) {
        close(fds[i]);
    }
}

static SSL *rank_over(SSL_CTX *ctx, int fd)
{
    SSL *ssl = ms_tls_new(ctx, 0, NULL);
    signal(SIGPIPE, SIG_IGN);
    SSL_set_fd(ssl, fd);
    return ssl;
}

/* The rest of what a rank says: is it let in over this very connection? */
static int is_welcome(const struct comm_case *c, SSL *ssl, int rank)
{
    struct hello hello = fake_hello_of(c, rank);
    struct hello answer = {0};
    uint8_t bytes[HELLO_BYTES];
    hello_encode(&hello, bytes);
    int is_in = SSL_connect(ssl) == 1 && SSL_write(ssl, bytes, HELLO_BYTES) == HELLO_BYTES &&
                SSL_read(ssl, bytes, HELLO_BYTES) == HELLO_BYTES;
    ERR_clear_error();
    if (is_in) {
        ck_ms_ok(hello_decode(bytes, &answer, err));
    }
    return answer.type == HELLO_WELCOME;
}

static void end(struct comm_case *c, struct maker *maker)
{
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(maker);
    check_failed(maker, MS_E_ABORTED, "cancelled");
    comm_case_close(c);
}

START_TEST(a_flood_takes_no_seat_of_somebody_elsewhere)
{
    static const struct {
        const char *rank, *flood;
    } rows[] = {
        {"127.0.0.3", NULL},        /* an expected one, strangers of a network each */
        {"127.0.0.3", "127.0.1.9"}, /* ... of one */
        {"127.0.0.3", "127.0.0.1"}, /* both from addresses of ranks */
        {"127.9.7.7", "127.0.1.9"}, /* a rank behind NAT, strangers of another network */
        {"127.9.7.7", "127.0.0.1"}, /* ... and where a rank is expected */
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct comm_case *c = comm_case_open(MODE_TLS, 3);
        struct maker maker = {0};
        int fds[FLOOD];
        c->ranks.members[2].data_address = "127.0.0.3:1";
        int fd = dial_from(c, rows[i].rank);
        SSL *ssl = rank_over(c->ranks.tls[2], fd);
        flood_from(c, rows[i].flood, 0, fds);

        maker_start(&maker, c, 0);

        ck_assert_msg(is_welcome(c, ssl, 2), "row %zu", i);
        SSL_free(ssl);
        close(fd);
        flood_end(fds);
        end(c, &maker);
    }
}
END_TEST

START_TEST(silent_ones_of_the_same_address_undo_no_handshake)
{
    struct comm_case *c = comm_case_open(MODE_TLS, 3);
    struct maker maker = {0};
    int fds[FLOOD];
    int fd = dial_from(c, "127.0.0.1");
    SSL *ssl = rank_over(c->ranks.tls[1], fd);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    maker_start(&maker, c, 0);
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    if (SSL_connect(ssl) != 1) {
        ck_assert_int_eq(poll(&answered, 1, 60000), 1);
    }

    flood_from(c, "127.0.0.1", 1, fds);
    int gone = 0;
    while (gone == 0) { /* somebody had to give way */
        for (int i = 0; i < FLOOD; i++) {
            struct pollfd one = {.fd = fds[i], .events = POLLRDHUP};
            gone += poll(&one, 1, 0) == 1;
        }
        sched_yield();
    }

    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
    ck_assert(is_welcome(c, ssl, 1));
    SSL_free(ssl);
    close(fd);
    flood_end(fds);
    end(c, &maker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_door");
    TCase *tc = tcase_create("door");
    tcase_add_test(tc, a_flood_takes_no_seat_of_somebody_elsewhere);
    tcase_add_test(tc, silent_ones_of_the_same_address_undo_no_handshake);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
