/* test_comm_join.c - who is let into a mesh: strangers, liars, latecomers, other generations */
#include "libworker/comm/lack.h"
#include "proto/discard.h"
#include "tests/unit/comm_fake.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/err.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* In a child that makes its tools: no tool, no test. */
#define CHECKED(condition) ((condition) ? (void)0 : _exit(9))

/* A mesh that can never be, made by ranks first to first + n - 1 with ever more patience, until the
 * first of them has met what it is to name: how long that takes is the machine's affair. */
static void make_in_vain(const struct comm_case *c, struct maker *makers, int first, int n,
                         const char *part)
{
    for (int timeout_ms = 300;; timeout_ms *= 2) {
        for (int i = 0; i < n; i++) {
            makers[i].cfg =
                makers[i].cfg.world != 0 ? makers[i].cfg : comm_case_config(c, first + i, 100);
            makers[i].cfg.timeout_ms = timeout_ms;
            maker_start(&makers[i], c, first + i);
        }
        for (int i = 0; i < n; i++) {
            maker_join(&makers[i]);
        }
        if (strstr(makers[0].err.text, part) != NULL || timeout_ms > 60000) {
            return;
        }
    }
}

START_TEST(strangers_do_not_hold_up_the_ranks)
{
    enum { STRANGERS = 150 };
    static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_TLS};
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct comm_case *c = comm_case_open(modes[m], 3);
        struct maker makers[3] = {0};
        int fds[2 * STRANGERS];
        makers[0].barriers = makers[1].barriers = makers[2].barriers = 3;
        maker_start(&makers[0], c, 0);
        for (int i = 0; i < STRANGERS; i++) { /* silent, half a hello, garbage, an odd hello */
            uint8_t bytes[HELLO_BYTES];
            struct hello hello = fake_hello(c);
            hello.type = HELLO_WELCOME;
            hello_encode(&hello, bytes);
            bytes[0] = i % 4 == 2 ? 'X' : bytes[0];
            size_t size = i % 4 == 0 ? 0 : i % 4 == 1 ? 50 : sizeof(bytes);
            fds[2 * i] = fake_dial_tcp(c, 0);
            fds[2 * i + 1] = fake_dial_unix(c, 0);
            (void)send(fds[2 * i], bytes, size, MSG_NOSIGNAL);
            (void)send(fds[2 * i + 1], bytes, size, MSG_NOSIGNAL);
        }
        maker_start(&makers[1], c, 1);
        maker_start(&makers[2], c, 2);

        for (int i = 0; i < 3; i++) {
            maker_join(&makers[i]);
            ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
        }
        for (int i = 0; i < 2 * STRANGERS; i++) {
            close(fds[i]);
        }
        comm_case_close(c);
    }
}
END_TEST

/* Spoils a hello in one of nine ways; returns what the other side ought to say to it. */
static enum hello_reason spoil(struct hello *hello, int way)
{
    switch (way) {
    case 0:
        hello->version = HELLO_VERSION - 1;
        return HELLO_BAD_VERSION;
    case 1:
        hello->job = 18;
        return HELLO_BAD_JOB;
    case 2:
        hello->generation = 4;
        return HELLO_OLD_GENERATION;
    case 3:
        hello->generation = 6;
        return HELLO_NEW_GENERATION;
    case 4:
        hello->token[MS_TOKEN_LEN - 1] ^= 1;
        return HELLO_BAD_TOKEN;
    case 5:
        hello->peer = 1;
        return HELLO_BAD_RANK;
    case 6:
        hello->rank = 7;
        return HELLO_BAD_RANK;
    case 7:
        hello->group = 1;
        return HELLO_BAD_GROUP;
    default:
        hello->segment_bytes = 4242;
        return HELLO_BAD_TRANSPORT;
    }
}

START_TEST(a_hello_that_does_not_fit_is_refused_with_the_reason)
{
    static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP}; /* known by its uid; unknown */
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct comm_case *c = comm_case_open(modes[m], 2);
        struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
        struct hello answer;
        maker_start(&makers[0], c, 0);
        for (int i = 0; i < 9; i++) {
            struct hello hello = fake_hello(c);
            enum hello_reason want = spoil(&hello, i);
            int fd = modes[m] == MODE_SHM ? fake_dial_unix(c, 0) : fake_dial_tcp(c, 0);

            fake_send(fd, &hello);
            int type = fake_answer(fd, &answer);

            if (modes[m] == MODE_TCP && want >= HELLO_BAD_JOB && want <= HELLO_BAD_TOKEN) {
                ck_assert_msg(type == 0, "case %d: who lacks the token is told something", i);
                close(fd);
                continue;
            }
            ck_assert_msg(type == HELLO_REFUSED, "case %d", i);
            ck_assert_msg(answer.reason == want, "case %d: reason %u", i, answer.reason);
            ck_assert_uint_eq(answer.job, want == HELLO_BAD_VERSION ? 0 : 17);
            for (int k = 0; k < MS_TOKEN_LEN; k++) {
                ck_assert_msg(answer.token[k] == 0, "a refusal gives the token away");
            }
            close(fd);
        }
        maker_start(&makers[1], c, 1); /* and who fits is let in afterwards */
        for (int i = 0; i < 2; i++) {
            maker_join(&makers[i]);
            ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
        }
        comm_case_close(c);
    }
}
END_TEST

START_TEST(ranks_with_different_plans_fail_at_once_on_both_sides)
{
    for (int what = 0; what < 2; what++) {
        struct comm_case *c = comm_case_open(what == 0 ? MODE_SHM : MODE_TCP, 2);
        struct maker makers[2] = {0};
        for (int i = 0; i < 2; i++) {
            makers[i].cfg = comm_case_config(c, i, i == 0 ? 100 : 100 + 50000);
            maker_start(&makers[i], c, i);
        }
        maker_join(&makers[0]);
        maker_join(&makers[1]);

        check_failed(&makers[0], MS_E_REFUSED, "rank 1 (node w1 on host localhost)");
        check_failed(&makers[0], MS_E_REFUSED, "50100 there, 100 here");
        ck_assert_int_eq(makers[1].rc, MS_E_REFUSED);
        ck_assert_msg(strstr(makers[1].err.text, "100 there, 50100 here") != NULL, "%s",
                      makers[1].err.text);
        comm_case_close(c);
    }
}
END_TEST

START_TEST(a_rank_of_an_older_generation_is_told_so)
{
    int culprit = -1;
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker makers[2] = {0};
    makers[1].cfg = comm_case_config(c, 1, 100);
    makers[1].cfg.generation = 4;
    makers[1].cfg.ret_culprit = &culprit;
    maker_start(&makers[0], c, 0);
    maker_start(&makers[1], c, 1);

    maker_join(&makers[1]);
    check_failed(&makers[1], MS_E_ABORTED, "generation");
    ck_assert_int_eq(culprit, 0); /* it is gone from that generation: the rank holds */
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&makers[0]);

    check_failed(&makers[0], MS_E_ABORTED, "cancelled");
    comm_case_close(c);
}
END_TEST

START_TEST(a_rank_of_a_newer_generation_waits_for_the_others)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker old = {0};
    struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
    for (int i = 0; i < 2; i++) {
        makers[i].cfg = comm_case_config(c, i, 100);
        makers[i].cfg.generation = 6;
    }
    maker_start(&old, c, 0);
    maker_start(&makers[1], c, 1);
    while (atomic_load(&c->ranks.listeners[0]->refused) == 0) {
        sched_yield();
    }
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&old);
    check_failed(&old, MS_E_ABORTED, "cancelled");

    comm_listener_resume(c->ranks.listeners[0]);
    maker_start(&makers[0], c, 0);

    for (int i = 0; i < 2; i++) {
        maker_join(&makers[i]);
        ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
    }
    comm_case_close(c);
}
END_TEST

START_TEST(an_early_rank_waits_in_the_backlog)
{
    static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_TLS};
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct comm_case *c = comm_case_open(modes[m], 2);
        struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
        const struct comm_listener *listener = c->ranks.listeners[0];
        struct pollfd fd = {.fd = modes[m] == MODE_SHM ? listener->unix_fd : listener->tcp_fd,
                            .events = POLLIN};

        maker_start(&makers[1], c, 1);
        ck_assert_int_eq(poll(&fd, 1, 60000), 1); /* it has connected */
        maker_start(&makers[0], c, 0);

        for (int i = 0; i < 2; i++) {
            maker_join(&makers[i]);
            ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
        }
        comm_case_close(c);
    }
}
END_TEST

START_TEST(ranks_that_do_not_come_are_named)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 6);
    struct maker makers[2] = {0};

    make_in_vain(c, makers, 1, 2, "for 4 ranks");

    check_failed(&makers[0], MS_E_TIMEOUT, "rank 0 (node w0 on host localhost) to answer");
    check_failed(&makers[0], MS_E_TIMEOUT, "rank 3 (node w3 on host localhost) to connect");
    check_failed(&makers[0], MS_E_TIMEOUT, "for 4 ranks");
    check_failed(&makers[0], MS_E_TIMEOUT, "waited ");
    comm_case_close(c);
}
END_TEST

/* Of loopback, with a queue so full that nobody's SYN is answered: as behind a firewall. */
static int silent_listener(char *ret_address, size_t size, int callers[2])
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, len), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    for (int i = 0; i < 2; i++) { /* one is queued; whether two are is the kernel's affair */
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(callers[i], (struct sockaddr *)&sa, len);
    }
    snprintf(ret_address, size, "127.0.0.1:%d", ntohs(sa.sin_port));
    return fd;
}

struct heard {
    int n;
    char text[MS_ERR_TEXT_MAX];
};

static void hear(void *arg, const char *text)
{
    struct heard *heard = arg;
    heard->n++;
    snprintf(heard->text, sizeof(heard->text), "%s", text);
}

START_TEST(a_host_that_does_not_answer_is_named_with_address_and_next_step)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 3);
    struct maker maker = {.cfg = comm_case_config(c, 1, 100)};
    struct heard heard = {0};
    char address[64];
    int callers[2];
    int fd = silent_listener(address, sizeof(address), callers);
    c->ranks.members[0].data_address = address;
    maker.cfg.timeout_ms = MS_HANDSHAKE_MS + 1000;
    maker.cfg.on_wait = hear;
    maker.cfg.arg = &heard;
    maker.cfg.warn_ms = 100;

    maker_start(&maker, c, 1);
    maker_join(&maker);

    char part[160];
    snprintf(part, sizeof(part), "to answer at %s (no answer from %s within 5.0 s)", address,
             address);
    check_failed(&maker, MS_E_TIMEOUT, part);
    snprintf(part, sizeof(part), "rank 2 (node w2 on host localhost) to connect to 127.0.0.1:%d",
             comm_listener_port(c->ranks.listeners[1]));
    check_failed(&maker, MS_E_TIMEOUT, part);
    check_failed(&maker, MS_E_TIMEOUT, "data_port_min");
    ck_assert_int_eq(heard.n, 1); /* at once, and not again within a minute */
    ck_assert_ptr_nonnull(strstr(heard.text, address));
    for (int i = 0; i < 2; i++) {
        close(callers[i]);
    }
    close(fd);
    comm_case_close(c);
}
END_TEST

START_TEST(few_descriptors_are_enough_for_few_ranks)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
    struct rlimit few = {.rlim_cur = 48, .rlim_max = 48}; /* fewer than guests may come */
    ck_assert_int_lt(few.rlim_cur, MS_HALF_OPEN_MAX);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);

    for (int i = 0; i < 2; i++) {
        makers[i].cfg = comm_case_config(c, i, 100);
        makers[i].cfg.timeout_ms = 20000;
        maker_start(&makers[i], c, i);
    }
    for (int i = 0; i < 2; i++) {
        maker_join(&makers[i]);
        ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
    }
    comm_case_close(c);
}
END_TEST

/* What a mesh needs of its own, and so many more. */
static void leave_descriptors(int n)
{
    struct rlimit few = {.rlim_cur = 256, .rlim_max = 256};
    int last = -1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
        last = fd;
    }
    ck_assert_int_eq(errno, EMFILE);
    for (int i = 0; i < n; i++) {
        close(last - i);
    }
}

enum { SAYS_NOTHING, LACKS_TOO_MUCH, LACKS_A_PEER, LACKS_ITS_MEMORY, JOINS };

/* In a child with so many descriptors to spare. */
static int join_with(struct maker *maker, int descriptors)
{
    int culprit = -2;
    maker->cfg.ret_culprit = &culprit;
    leave_descriptors(descriptors);
    (void)maker_main(maker);
    const char *text = maker->err.text;
    if (maker->rc == 0) {
        return JOINS;
    }
    if (strstr(text, strerror(EMFILE)) == NULL || strncmp(text, "waited", 6) == 0) {
        fprintf(stderr, "%d descriptors: %s\n", descriptors, text);
        return SAYS_NOTHING;
    }
    const int is_in = strstr(text, " has let this rank in") != NULL;
    if (strstr(text, "; waited ") == NULL && !is_in) {
        return LACKS_TOO_MUCH;
    }
    CHECKED(maker->rc == MS_E_NOMEM && culprit == maker->cfg.rank);
    return is_in ? LACKS_ITS_MEMORY : LACKS_A_PEER;
}

/* The other rank is a process that waits for long. */
static int try_to_join(enum comm_mode mode, int rank, int descriptors, int timeout_ms)
{
    struct comm_case *c = comm_case_open(mode, 2);
    struct maker makers[2] = {{.cfg = comm_case_config(c, 0, 100)},
                              {.cfg = comm_case_config(c, 1, 100)}};
    int status = 0;
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        makers[i].cfg.timeout_ms = i == rank ? timeout_ms : 120000;
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(join_with(&makers[i], i == rank ? descriptors : 100));
        }
    }
    ck_assert_int_eq(waitpid(pids[rank], &status, 0), pids[rank]);
    kill(pids[1 - rank], SIGKILL);
    ck_assert_int_eq(waitpid(pids[1 - rank], NULL, 0), pids[1 - rank]);
    comm_case_close(c);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= JOINS);
    return WEXITSTATUS(status);
}

/* From too few for the mesh itself to enough: between them the rank can let nobody in, or dial
 * nobody. How soon the other one comes is the machine's affair. */
START_TEST(a_rank_without_descriptors_blames_itself)
{
    const enum comm_mode mode = _i < 2 ? MODE_SHM : MODE_TCP;
    int seen[JOINS + 1] = {0};
    for (int n = 0; seen[JOINS] == 0; n++) {
        int is = SAYS_NOTHING;
        for (int ms = 500; is == SAYS_NOTHING && ms < 60000; ms *= 2) {
            is = try_to_join(mode, _i % 2, n, ms);
        }
        ck_assert_int_ne(is, SAYS_NOTHING);
        seen[is]++;
    }
    ck_assert_int_gt(seen[LACKS_A_PEER] + seen[LACKS_ITS_MEMORY], 0);
    if (mode == MODE_SHM && _i % 2 == 1) { /* it dials: the other one counts it in, and says so */
        ck_assert_int_gt(seen[LACKS_ITS_MEMORY], 0);
    }
}
END_TEST

START_TEST(a_wait_that_the_system_refuses_is_an_error)
{
    struct pollfd fds[64];
    struct ms_err err;
    struct rlimit few = {.rlim_cur = 48, .rlim_max = 48};
    for (size_t i = 0; i < MS_ARRAY_SIZE(fds); i++) {
        fds[i] = (struct pollfd){.fd = -1};
    }
    ck_assert_int_eq(mesh_poll(fds, MS_ARRAY_SIZE(fds), 0, &err), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);

    ck_assert_int_eq(mesh_poll(fds, MS_ARRAY_SIZE(fds), 0, &err), MS_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot wait for 64 connections"));
}
END_TEST

START_TEST(a_rank_that_is_connected_is_not_replaced_while_it_lives)
{
    struct comm_case *c = comm_case_open(MODE_TCP, 3);
    struct maker maker = {0};
    struct hello hello = fake_hello(c);
    struct hello answer;
    maker_start(&maker, c, 0);
    int first = fake_join(c);

    int second = fake_dial_tcp(c, 0);
    fake_send(second, &hello);
    ck_assert_int_eq(fake_answer(second, &answer), HELLO_REFUSED);
    ck_assert_uint_eq(answer.reason, HELLO_DUPLICATE);
    close(second);
    close(first);
    second = fake_join(c);

    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&maker);
    close(second);
    comm_case_close(c);
}
END_TEST

START_TEST(only_the_registered_certificate_opens_the_door)
{
    for (int wrong = 0; wrong < 4; wrong++) { /* the other's name, a user's, another CA's, none */
        struct comm_case *c = comm_case_open(MODE_TLS, 2);
        struct comm_case *other = comm_case_open(MODE_TLS, 1);
        struct maker makers[2] = {0};
        SSL_CTX *ctx = wrong == 0   ? comm_case_issue(c, "w9", MS_ROLE_WORKER)
                       : wrong == 1 ? comm_case_issue(c, "w1", MS_ROLE_USER)
                       : wrong == 2 ? comm_case_issue(other, "w1", MS_ROLE_WORKER)
                                    : SSL_CTX_new(TLS_method());
        makers[1].cfg = comm_case_config(c, 1, 100);
        makers[1].cfg.tls = ctx;

        make_in_vain(c, makers, 0, 2, wrong < 2 ? "certificate" : "");

        check_failed(&makers[0], MS_E_TIMEOUT, "rank 1 (node w1 on host localhost) to connect");
        if (wrong < 2) {
            check_failed(&makers[0], MS_E_TIMEOUT, "certificate");
        }
        ck_assert_int_lt(makers[1].rc, 0);
        SSL_CTX_free(ctx);
        comm_case_close(other);
        comm_case_close(c);
    }
}
END_TEST

/* The hello over TLS; returns how many bytes came back before the end. */
static int answer_over_tls(const struct comm_case *c, SSL_CTX *ctx, const struct hello *hello)
{
    uint8_t bytes[HELLO_BYTES];
    int fd = fake_dial_tcp(c, 0);
    SSL *ssl = ms_tls_new(ctx, 0, NULL);
    signal(SIGPIPE, SIG_IGN);
    hello_encode(hello, bytes);
    SSL_set_fd(ssl, fd);
    int n = 0;
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, bytes, sizeof(bytes)) == HELLO_BYTES) {
        int got = SSL_read(ssl, bytes, sizeof(bytes));
        n = got > 0 ? got : 0;
    }
    ERR_clear_error();
    SSL_free(ssl);
    close(fd);
    return n;
}

START_TEST(a_certificate_that_is_no_ranks_is_told_nothing_and_ends_nothing)
{
    struct comm_case *c = comm_case_open(MODE_TLS, 2);
    SSL_CTX *user = comm_case_issue(c, "w1", MS_ROLE_USER);
    SSL_CTX *other = comm_case_issue(c, "w9", MS_ROLE_WORKER);
    struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
    maker_start(&makers[0], c, 0);
    for (int i = 0; i < 8; i++) {
        struct hello hello = fake_hello(c); /* with the token, even */
        spoil(&hello, i);
        ck_assert_int_eq(answer_over_tls(c, user, &hello), 0);
        ck_assert_int_eq(answer_over_tls(c, other, &hello), 0);
    }
    struct hello hello = fake_hello(c);
    hello.exchange_count = 101; /* of a rank it would be the end of the mesh */
    ck_assert_int_eq(answer_over_tls(c, user, &hello), 0);
    ck_assert_int_eq(answer_over_tls(c, other, &hello), 0);

    maker_start(&makers[1], c, 1);
    for (int i = 0; i < 2; i++) {
        maker_join(&makers[i]);
        ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
    }
    SSL_CTX_free(user);
    SSL_CTX_free(other);
    comm_case_close(c);
}
END_TEST

START_TEST(a_listener_with_a_foreign_certificate_gets_no_token)
{
    struct comm_case *c = comm_case_open(MODE_TLS, 2);
    struct maker mute = {0};
    struct maker maker = {0};
    c->ranks.members[0].cert_name = "w7"; /* what the scheduler says; it shows w0 */
    maker_start(&mute, c, 0);

    make_in_vain(c, &maker, 1, 1, "the certificate of rank 0");

    check_failed(&maker, MS_E_TIMEOUT, "the certificate of rank 0");
    check_failed(&maker, MS_E_TIMEOUT, "\"w0\"");
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&mute);
    check_failed(&mute, MS_E_ABORTED, "cancelled"); /* nobody had joined it */
    comm_case_close(c);
}
END_TEST

START_TEST(the_end_of_a_connection_does_not_hide_why_the_ones_before_failed)
{
    struct caller callers[2] = {{0}, {0}};
    struct join join = {.callers = callers};
    struct ms_err err;

    (void)ms_fail(&err, MS_E_CLOSED, "rank 1 closed the connection within the TLS handshake");
    join_note(&join, 1, &err);
    ck_assert_str_eq(callers[1].note, err.text);
    (void)ms_fail(&err, MS_E_REFUSED, "the certificate of rank 1 is that of \"w7\"");
    join_note(&join, 1, &err);
    ck_assert_str_eq(callers[1].note, err.text);

    struct ms_err late; /* both have run out of patience, it first */
    (void)ms_fail(&late, MS_E_CLOSED, "rank 1 closed the connection within the TLS handshake");
    join_note(&join, 1, &late);

    ck_assert_str_eq(callers[1].note, err.text);
    (void)ms_fail(&late, MS_E_UNREACHABLE, "cannot connect to 127.0.0.1:1");
    join_note(&join, 1, &late);
    ck_assert_str_eq(callers[1].note, late.text);
}
END_TEST

static void lack_at(struct join *join, uint64_t ms)
{
    struct ms_err err;
    ck_assert_int_eq(lack_found(&err, EMFILE, "cannot take a connection"), MS_E_NOMEM);
    join->group->clock_ns = ms * 1000000U;
    join_note_lack(join, &err);
}

/* Where a stranger sits on what it is, it is back when he is dropped. */
START_TEST(a_shortage_counts_from_its_begin_and_not_while_a_stranger_sits)
{
    struct group group = {0};
    struct party party = {0};
    struct guest guest = {0};
    struct join join = {.group = &group, .guests = &guest, .n_guests = 1};
    lack_at(&join, 100);
    ck_assert(!join_is_short(&join));
    for (uint64_t ms = 5000; ms < 6000; ms += 100) { /* nothing was short in between */
        lack_at(&join, ms);
        ck_assert(!join_is_short(&join));
    }
    lack_at(&join, 6000);
    ck_assert(join_is_short(&join));

    guest = (struct guest){.stage = GUEST_TLS, .party = &party, .since_ms = 5990};
    lack_at(&join, 6010); /* he has only come */
    ck_assert(join_is_short(&join));
    for (uint64_t ms = 6500; ms < 10000; ms += 100) {
        lack_at(&join, ms);
        ck_assert(!join_is_short(&join));
    }
    guest.party = NULL; /* a connection that this rank makes, or a free seat */
    lack_at(&join, 10000);
    ck_assert(!join_is_short(&join));
    lack_at(&join, 10900);
    ck_assert(join_is_short(&join));
}
END_TEST

/* As rank 1 on a Unix socket, with a descriptor beside the hello. */
static int fake_pass(const struct comm_case *c, int memory)
{
    uint8_t bytes[HELLO_BYTES];
    struct hello hello = fake_hello(c);
    hello_encode(&hello, bytes);
    int fd = fake_dial_unix(c, 0);
    if (memory < 0) {
        ck_assert_int_eq(send(fd, bytes, sizeof(bytes), 0), HELLO_BYTES);
    } else {
        ck_assert_int_eq(join_send_memory(fd, bytes, sizeof(bytes), memory), 1);
    }
    return fd;
}

static void expect_dropped(int fd)
{
    uint8_t bytes[HELLO_BYTES + 1];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_WAITALL); /* WELCOME at the most, then the end */
    ck_assert_int_le(n, HELLO_BYTES);
    close(fd);
}

START_TEST(memory_that_could_shrink_or_does_not_fit_is_not_mapped)
{
    enum { ALL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker maker = {0};
    maker_start(&maker, c, 0);
    off_t right = (off_t)segment_bytes(MS_F32, 100);
    for (int i = 0; i < 4; i++) {
        int memory = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
        ck_assert_int_eq(ftruncate(memory, i == 1 ? right - 4096 : right), 0);
        if (i != 0) { /* 0: no seals; 1: too small; 2: zeros inside; 3: a plain file */
            ck_assert_int_eq(fcntl(memory, F_ADD_SEALS, ALL), 0);
        }
        int plain = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        expect_dropped(fake_pass(c, i == 3 ? plain : memory));
        close(plain);
        close(memory);
    }
    expect_dropped(fake_pass(c, -1));
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&maker);
    check_failed(&maker, MS_E_ABORTED, "cancelled");

    comm_listener_resume(c->ranks.listeners[0]);
    maker.cfg.timeout_ms = 1;
    do { /* until it is heard within the time */
        int fd = fake_pass(c, -1);
        maker.cfg.timeout_ms *= 2;
        maker_start(&maker, c, 0);
        maker_join(&maker);
        close(fd);
    } while (strstr(maker.err.text, "passed no memory") == NULL && maker.cfg.timeout_ms < 60000);
    check_failed(&maker, MS_E_TIMEOUT, "passed no memory");
    comm_case_close(c);
}
END_TEST

static int connect_as_nobody(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct hello answer;
    CHILD_TRUE(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody");
    int memory = memfd_create("test", MFD_CLOEXEC);
    struct hello hello = fake_hello(c);
    uint8_t bytes[HELLO_BYTES];
    CHILD_TRUE(memory >= 0, "memfd");
    int fd = fake_dial_unix(c, 0);
    hello_encode(&hello, bytes);
    (void)join_send_memory(fd, bytes, sizeof(bytes),
                           memory); /* perhaps he is turned away already */
    CHILD_TRUE(fake_answer(fd, &answer) == 0, "another user got an answer");
    return 0;
}

START_TEST(another_user_of_the_host_is_not_let_in)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker maker = {0};
    if (getuid() != 0) {
        printf("skip: becoming another user needs root\n");
        comm_case_close(c);
        return;
    }
    maker_start(&maker, c, 0);
    int status = 0;
    pid_t pid = ranks_fork(connect_as_nobody, 1, c);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    comm_listener_abort(c->ranks.listeners[0]);
    maker_join(&maker);
    comm_case_close(c);
}
END_TEST

/* A TCP socket that makes who closes it last wait for ten minutes: unsent bytes, SO_LINGER, and an
 * other end that never reads. */
static int lingering_socket(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    struct linger linger = {.l_onoff = 1, .l_linger = 600};
    static char bytes[65536];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECKED(bind(listener, (struct sockaddr *)&sa, len) == 0 && listen(listener, 1) == 0);
    CHECKED(getsockname(listener, (struct sockaddr *)&sa, &len) == 0);
    CHECKED(connect(fd, (struct sockaddr *)&sa, len) == 0 && accept(listener, NULL, NULL) >= 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
    CHECKED(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
    return fd;
}

/* As somebody: connects, passes n such sockets beside a hello, says so on the pipe and stays. */
struct freezer {
    struct comm_case *c;
    unsigned uid;
    int n, ready[2];
};

static int freeze(int rank, void *arg)
{
    const struct freezer *freezer = arg;
    struct hello hello = fake_hello(freezer->c);
    uint8_t bytes[HELLO_BYTES];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    hello_encode(&hello, bytes);
    for (int i = 0; i < freezer->c->ranks.world; i++) { /* or ours would be the last reference */
        close(freezer->c->ranks.listeners[i]->unix_fd);
    }
    CHILD_TRUE(setuid(freezer->uid) == 0, "cannot become the user");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid has cleared it */
    msg.msg_controllen = CMSG_SPACE((size_t)freezer->n * sizeof(int));
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN((size_t)freezer->n * sizeof(int));
    for (int i = 0; i < freezer->n; i++) {
        int fd = lingering_socket();
        memcpy(CMSG_DATA(cmsg) + (size_t)i * sizeof(int), &fd, sizeof(int));
    }
    int fd = fake_dial_unix(freezer->c, 0);
    int may_send[2]; /* when the sockets are closed here */
    CHILD_TRUE(pipe(may_send) == 0, "pipe");
    /* The last reference is the receiver's then: who comes last may be turned away already, and its
     * own close would wait. A process that exits waits for none. */
    pid_t sender = fork();
    CHILD_TRUE(sender >= 0, "cannot fork");
    for (int i = 0; sender > 0 && i < freezer->n; i++) {
        int mine = -1;
        memcpy(&mine, CMSG_DATA(cmsg) + (size_t)i * sizeof(int), sizeof(int));
        close(mine);
    }
    if (sender == 0) {
        char x;
        CHILD_TRUE(read(may_send[0], &x, 1) == 1, "pipe");
        (void)sendmsg(fd, &msg, MSG_NOSIGNAL);
        _exit(0);
    }
    CHILD_TRUE(write(may_send[1], "x", 1) == 1, "pipe");
    waitpid(sender, NULL, 0);
    CHILD_TRUE(write(freezer->ready[1], "x", 1) == 1, "pipe");
    (void)pause();
    return 0;
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

/* Freezers come, then the ranks join: within seconds, and nothing of theirs stays open. */
static void join_among_freezers(unsigned uid, int n)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct freezer freezer = {.c = c, .uid = uid, .n = n};
    struct maker makers[2] = {{.barriers = 1}, {.barriers = 1}};
    pid_t pids[4];
    char x;
    ck_assert_int_eq(pipe(freezer.ready), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(pids); i++) {
        pids[i] = ranks_fork(freeze, 1, &freezer);
        if (i < 3) {
            ck_assert_int_eq(read(freezer.ready[0], &x, 1), 1);
        }
    }
    int before = count_fds();
    time_t begun = time(NULL);
    for (int i = 0; i < 2; i++) {
        maker_start(&makers[i], c, i);
    }
    for (int i = 0; i < 2; i++) {
        maker_join(&makers[i]);
        ck_assert_msg(makers[i].rc == 0, "rank %d: %s", i, makers[i].err.text);
    }
    ck_assert_int_eq(count_fds(), before);
    ck_assert_int_eq(read(freezer.ready[0], &x, 1), 1);
    pid_t late = ranks_fork(freeze, 1, &freezer); /* lies in the backlog of a listener that ends */
    ck_assert_int_eq(read(freezer.ready[0], &x, 1), 1);
    comm_listener_destroy(c->ranks.listeners[0]);
    c->ranks.listeners[0] = NULL;
    ck_assert_int_lt(time(NULL) - begun, 60);

    for (size_t i = 0; i < MS_ARRAY_SIZE(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    kill(late, SIGKILL);
    waitpid(late, NULL, 0);
    close(freezer.ready[0]);
    close(freezer.ready[1]);
    comm_case_close(c);
}

START_TEST(descriptors_of_another_user_cannot_freeze_a_rank)
{
    if (getuid() != 0) {
        printf("skip: becoming another user needs root\n");
        return;
    }
    join_among_freezers(65534, 1);
    join_among_freezers(65534, 64);
}
END_TEST

/* From here on unshare fails in this process, as in containers that know it not. */
static void deny_unshare(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = MS_ARRAY_SIZE(code), .filter = code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(where_unshare_is_denied_another_thread_waits)
{
    int fds[2] = {lingering_socket(), lingering_socket()};
    time_t begun = time(NULL);
    deny_unshare();

    ms_discard_fds(fds, 2);

    ck_assert_int_lt(time(NULL) - begun, 60);
}
END_TEST

START_TEST(too_many_descriptors_are_closed_without_waiting)
{
    join_among_freezers(getuid(), 64);
}
END_TEST

START_TEST(a_socket_that_another_user_listens_at_gets_no_token)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct maker maker = {0};
    c->ranks.members[0].uid = c->ranks.members[1].uid = 4242; /* but we own both */

    make_in_vain(c, &maker, 1, 1, "somebody else's process");

    check_failed(&maker, MS_E_TIMEOUT, "somebody else's process");
    comm_case_close(c);
}
END_TEST

/* ---- the listener
 * -------------------------------------------------------------------------------------- */

START_TEST(the_listener_takes_the_first_free_port)
{
    struct comm_listener *first = NULL;
    struct comm_listener *second = NULL;
    struct comm_listener_config cfg = {.bind_ip = "127.0.0.1"};
    ck_ms_ok(comm_listener_create(&cfg, &first, err));
    cfg.port_min = cfg.port_max = comm_listener_port(first);
    ck_ms_fails(comm_listener_create(&cfg, &second, err), MS_E_EXISTS, "ss -ltnp");
    cfg.port_max = cfg.port_min < 65000 ? cfg.port_min + 500 : 65535;
    ck_ms_ok(comm_listener_create(&cfg, &second, err));
    ck_assert_int_gt(comm_listener_port(second), comm_listener_port(first));
    ck_assert_str_ne(comm_listener_unix(first), comm_listener_unix(second));
    comm_listener_destroy(second);
    comm_listener_destroy(first);
    cfg.port_min = 70000;
    cfg.port_max = 70001;
    ck_ms_fails(comm_listener_create(&cfg, &second, err), MS_E_INVALID,
                "data_port_min 70000 and data_port_max 70001 are no range");
}
END_TEST

START_TEST(the_host_id_names_boot_and_network_namespace)
{
    char first[MS_NAME_MAX + 1];
    char second[MS_NAME_MAX + 1];
    ck_ms_ok(comm_host_id(first, sizeof(first), err));
    ck_ms_ok(comm_host_id(second, sizeof(second), err));
    ck_assert_str_eq(first, second);
    ck_assert_int_eq((int)strcspn(first, "/"), 36); /* a UUID */
    ck_assert_int_gt((int)strlen(first), 38);
}
END_TEST

START_TEST(a_mesh_that_cannot_be_is_refused)
{
    struct comm_case *c = comm_case_open(MODE_SHM, 2);
    struct mesh *mesh = NULL;
    struct mesh_config cfg = comm_case_config(c, 0, 100);
    cfg.rank = 2;
    ck_ms_fails(mesh_create(&cfg, &mesh, err), MS_E_INVALID, "rank 2 of 2");
    cfg.rank = 0;
    cfg.timeout_ms = 0;
    ck_ms_fails(mesh_create(&cfg, &mesh, err), MS_E_INVALID, "timeout");
    cfg = comm_case_config(c, 0, 100);
    cfg.tls = SSL_CTX_new(TLS_method());
    ck_ms_fails(mesh_create(&cfg, &mesh, err), MS_E_INVALID, "TLS");
    SSL_CTX_free(cfg.tls);
    cfg = comm_case_config(c, 0, SIZE_MAX / 4);
    ck_ms_fails(mesh_create(&cfg, &mesh, err), MS_E_INVALID, "beyond memory");
    comm_case_close(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_join");
    TCase *tc = tcase_create("join");
    tcase_add_test(tc, strangers_do_not_hold_up_the_ranks);
    tcase_add_test(tc, a_hello_that_does_not_fit_is_refused_with_the_reason);
    tcase_add_test(tc, ranks_with_different_plans_fail_at_once_on_both_sides);
    tcase_add_test(tc, a_rank_of_an_older_generation_is_told_so);
    tcase_add_test(tc, a_rank_of_a_newer_generation_waits_for_the_others);
    tcase_add_test(tc, an_early_rank_waits_in_the_backlog);
    tcase_add_test(tc, ranks_that_do_not_come_are_named);
    tcase_add_test(tc, a_host_that_does_not_answer_is_named_with_address_and_next_step);
    tcase_add_test(tc, few_descriptors_are_enough_for_few_ranks);
    tcase_add_loop_test(tc, a_rank_without_descriptors_blames_itself, 0, 4);
    tcase_add_test(tc, a_wait_that_the_system_refuses_is_an_error);
    tcase_add_test(tc, a_rank_that_is_connected_is_not_replaced_while_it_lives);
    tcase_add_test(tc, only_the_registered_certificate_opens_the_door);
    tcase_add_test(tc, a_certificate_that_is_no_ranks_is_told_nothing_and_ends_nothing);
    tcase_add_test(tc, a_listener_with_a_foreign_certificate_gets_no_token);
    tcase_add_test(tc, the_end_of_a_connection_does_not_hide_why_the_ones_before_failed);
    tcase_add_test(tc, a_shortage_counts_from_its_begin_and_not_while_a_stranger_sits);
    tcase_add_test(tc, memory_that_could_shrink_or_does_not_fit_is_not_mapped);
    tcase_add_test(tc, another_user_of_the_host_is_not_let_in);
    tcase_add_test(tc, descriptors_of_another_user_cannot_freeze_a_rank);
    tcase_add_test(tc, where_unshare_is_denied_another_thread_waits);
    tcase_add_test(tc, too_many_descriptors_are_closed_without_waiting);
    tcase_add_test(tc, a_socket_that_another_user_listens_at_gets_no_token);
    tcase_add_test(tc, the_listener_takes_the_first_free_port);
    tcase_add_test(tc, the_host_id_names_boot_and_network_namespace);
    tcase_add_test(tc, a_mesh_that_cannot_be_is_refused);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
