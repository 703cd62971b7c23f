/* test_peer_uid.c - whose the other end of a connection on this host is */
#include "daemon/peer_uid.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static int asker, listener, near_fd, far_fd;
static unsigned uid;

static int begin(void)
{
    asker = peer_uid_open();
    uid = 4711;
    return asker;
}

static void meet(int family, const char *from, const char *to)
{
    struct sockaddr_storage at;
    struct sockaddr_in *in = (struct sockaddr_in *)&at;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;
    socklen_t size = sizeof(at);
    const char *const names[] = {to, from};
    int fds[2];
    int off = 0;
    for (int i = 0; i < 2; i++) {
        memset(&at, 0, sizeof(at));
        int is_v4 = inet_pton(AF_INET, names[i], &in->sin_addr) == 1;
        at.ss_family = is_v4 ? AF_INET : AF_INET6;
        ck_assert(is_v4 || inet_pton(AF_INET6, names[i], &in6->sin6_addr) == 1);
        fds[i] = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fds[i], IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        ck_assert_int_eq(bind(fds[i], (struct sockaddr *)&at, sizeof(at)), 0);
    }
    listener = fds[0];
    far_fd = fds[1];
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    if (family == AF_INET && at.ss_family == AF_INET6) { /* IPv4 to a socket of both */
        in_port_t port = in6->sin6_port;
        memset(&at, 0, sizeof(at));
        *in = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        size = sizeof(*in);
    }
    ck_assert_int_eq(connect(far_fd, (struct sockaddr *)&at, size), 0);
    near_fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(near_fd, 0);
}

static void part(void)
{
    close(near_fd);
    close(far_fd);
    close(listener);
}

START_TEST(the_other_end_is_known_by_its_uid)
{
    if (begin() < 0) {
        printf("skip: no sock_diag here\n");
        return;
    }
    meet(AF_INET, "127.7.8.9", "127.0.0.1");
    ck_assert_int_eq(peer_uid_find(asker, near_fd, &uid), 0);
    ck_assert_uint_eq(uid, getuid());
    part();
    meet(AF_INET, "127.7.8.9", "::");
    ck_assert_int_eq(peer_uid_find(asker, near_fd, &uid), 0); /* ::ffff:127.7.8.9 to us */
    part();
    meet(AF_INET6, "::1", "::1");
    ck_assert_int_eq(peer_uid_find(asker, near_fd, &uid), 0);
    ck_assert_uint_eq(uid, getuid());
    part();
    close(asker);
}
END_TEST

START_TEST(it_is_the_uid_of_who_made_it_and_not_ours)
{
    if (begin() < 0 || geteuid() != 0) {
        printf("skip: not root, or no sock_diag here\n");
        return;
    }
    ck_assert_int_eq(seteuid(NOBODY), 0);
    meet(AF_INET, "127.0.0.1", "127.0.0.1");
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(peer_uid_find(asker, near_fd, &uid), 0);
    ck_assert_uint_eq(uid, NOBODY);
    part();
    close(asker);
}
END_TEST

START_TEST(who_has_gone_or_is_no_tcp_peer_is_nobody)
{
    int pair[2];
    begin();
    meet(AF_INET, "127.0.0.1", "127.0.0.1");
    ck_assert_int_lt(peer_uid_find(-1, near_fd, &uid), 0);
    close(far_fd);
    far_fd = -1;
    ck_assert_int_lt(peer_uid_find(asker, near_fd, &uid), 0);
    part();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_lt(peer_uid_find(asker, pair[0], &uid), 0);
    ck_assert_uint_eq(uid, 4711); /* untouched */
    close(pair[0]);
    close(pair[1]);
    close(asker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("peer_uid");
    TCase *tcase = tcase_create("peer_uid");
    tcase_add_test(tcase, the_other_end_is_known_by_its_uid);
    tcase_add_test(tcase, it_is_the_uid_of_who_made_it_and_not_ours);
    tcase_add_test(tcase, who_has_gone_or_is_no_tcp_peer_is_nobody);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
