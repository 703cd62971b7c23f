/* test_listen.c - listening sockets: addresses as bound, adopted ones, off and on, no descriptors
 */
#include "daemon/listen.h"
#include "proto/addr.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char *dir;
static char socket_address[160];
static struct event_base *base;
static struct listener *listener;
static int accepted, troubles;
static char trouble[MS_TEXT_MAX + 1];

static void on_accept(struct listener *which, int fd, void *arg)
{
    ck_assert_ptr_eq(which, listener);
    ck_assert_ptr_eq(arg, &accepted);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    accepted++;
    close(fd);
}

static void on_trouble(struct listener *which, const char *text, void *arg)
{
    (void)which;
    (void)arg;
    troubles++;
    snprintf(trouble, sizeof(trouble), "%s", text);
}

static const struct listener_handler handler = {on_accept, on_trouble, &accepted};

static void setup(void)
{
    dir = test_dir_make();
    snprintf(socket_address, sizeof(socket_address), "unix:%s/s.sock", dir);
    base = event_base_new();
    ck_assert_ptr_nonnull(base);
}

static void teardown(void)
{
    listener_close(listener);
    listener = NULL;
    event_base_free(base);
    test_dir_remove(dir);
}

static void open_it(const char *address)
{
    ck_ms_ok(listener_open(base, address, 0660, (gid_t)-1, &handler, &listener, err));
}

static int dial(void)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t length = 0;
    ck_ms_ok(ms_addr_parse(listener_address(listener), 0, &addr, err));
    ck_ms_ok(ms_addr_resolve(&addr, &sa, &length, err));
    int fd = socket(sa.ss_family, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, length), 0);
    return fd;
}

/* Runs the loop until n connections were accepted; the retry's timer is part of it. */
static void run_until_accepted(int n)
{
    while (accepted < n) {
        event_base_loop(base, EVLOOP_ONCE);
    }
}

START_TEST(the_port_that_the_kernel_chose_is_told)
{
    open_it("127.0.0.1:0");
    ck_assert_int_eq(strncmp(listener_address(listener), "127.0.0.1:", 10), 0);
    ck_assert_str_ne(listener_address(listener), "127.0.0.1:0");
    ck_assert(!listener_is_unix(listener));
    ck_assert(listener_is_loopback(listener));
    listener_close(listener);

    open_it("0.0.0.0:0");
    ck_assert(!listener_is_loopback(listener));
}
END_TEST

START_TEST(a_unix_socket_has_its_mode_and_goes_with_its_listener)
{
    struct stat st;
    umask(0077);
    open_it(socket_address);
    ck_assert_str_eq(listener_address(listener), socket_address);
    ck_assert(listener_is_unix(listener) && listener_is_loopback(listener));
    ck_assert_int_eq(stat(socket_address + 5, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_uint_eq(umask(022), 0077); /* as it was */

    listener_close(listener);
    listener = NULL;

    ck_assert_int_ne(stat(socket_address + 5, &st), 0);
}
END_TEST

START_TEST(a_unix_socket_belongs_to_the_group_that_may_use_it)
{
    struct stat st;
    if (geteuid() != 0) {
        return; /* only root can give a file to any group */
    }
    ck_ms_ok(listener_open(base, socket_address, 0660, 4711, &handler, &listener, err));
    ck_assert_int_eq(stat(socket_address + 5, &st), 0);
    ck_assert_uint_eq(st.st_gid, 4711);
    ck_assert_uint_eq(st.st_uid, 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
}
END_TEST

START_TEST(an_occupied_port_names_the_command_that_finds_who)
{
    struct listener *second = NULL;
    open_it("127.0.0.1:0");
    ck_ms_fails(
        listener_open(base, listener_address(listener), 0, (gid_t)-1, &handler, &second, err),
        MS_E_EXISTS, "ss -ltnp 'sport = :");
    ck_assert_ptr_null(second);
}
END_TEST

START_TEST(an_adopted_socket_keeps_its_file)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_address + 5);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0); /* blocking, as systemd passes it */
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 8), 0);

    ck_ms_ok(listener_adopt(base, fd, &handler, &listener, err));

    ck_assert_str_eq(listener_address(listener), socket_address);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    listener_set(listener, 1);
    close(dial());
    run_until_accepted(1);
    listener_close(listener);
    listener = NULL;
    ck_assert_int_eq(access(at.sun_path, F_OK), 0);
}
END_TEST

START_TEST(what_is_no_listening_stream_socket_is_refused_and_closed)
{
    int fds[] = {open("/dev/null", O_RDONLY), socket(AF_INET, SOCK_STREAM, 0),
                 socket(AF_INET, SOCK_DGRAM, 0)};
    for (size_t i = 0; i < MS_ARRAY_SIZE(fds); i++) {
        ck_ms_fails(listener_adopt(base, fds[i], &handler, &listener, err), MS_E_CONFIG,
                    "ListenStream=");
        ck_assert_int_eq(fcntl(fds[i], F_GETFD), -1);
        ck_assert_ptr_null(listener);
    }
}
END_TEST

START_TEST(off_leaves_connections_in_the_queue_on_takes_them)
{
    open_it("127.0.0.1:0");
    int a = dial();
    int b = dial();
    event_base_loop(base, EVLOOP_NONBLOCK);
    ck_assert_int_eq(accepted, 0);

    listener_set(listener, 1);
    run_until_accepted(2);

    listener_set(listener, 0);
    int c = dial();
    event_base_loop(base, EVLOOP_NONBLOCK);
    ck_assert_int_eq(accepted, 2);
    close(a);
    close(b);
    close(c);
}
END_TEST

START_TEST(a_crowd_is_taken_in_turns_with_others)
{
    enum { CROWD = 50, BATCH_MAX = 16 };
    int fds[CROWD];
    open_it("127.0.0.1:0");
    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial();
    }
    listener_set(listener, 1);

    event_base_loop(base, EVLOOP_ONCE);

    ck_assert_int_gt(accepted, 0);
    ck_assert_int_le(accepted, BATCH_MAX);
    run_until_accepted(CROWD);
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
}
END_TEST

START_TEST(without_descriptors_it_says_so_once_and_tries_again)
{
    enum { HELD = 4096 };
    static int held[HELD];
    int n = 0;
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
    open_it("127.0.0.1:0");
    listener_set(listener, 1);
    int client = dial();
    setrlimit(RLIMIT_NOFILE, &limit);
    for (n = 0; n < HELD && (held[n] = dup(0)) >= 0; n++) {
    }

    for (int i = 0; i < 4; i++) { /* the first try, and three by the timer */
        event_base_loop(base, EVLOOP_ONCE);
    }

    ck_assert_int_eq(accepted, 0);
    ck_assert_int_eq(troubles, 1);
    ck_assert_ptr_nonnull(strstr(trouble, "Too many open files"));
    ck_assert_ptr_nonnull(strstr(trouble, listener_address(listener)));
    while (n > 0) {
        close(held[--n]);
    }
    run_until_accepted(1);
    ck_assert_int_eq(troubles, 1);
    close(client);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listen");
    TCase *tcase = tcase_create("listen");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_port_that_the_kernel_chose_is_told);
    tcase_add_test(tcase, a_unix_socket_has_its_mode_and_goes_with_its_listener);
    tcase_add_test(tcase, a_unix_socket_belongs_to_the_group_that_may_use_it);
    tcase_add_test(tcase, an_occupied_port_names_the_command_that_finds_who);
    tcase_add_test(tcase, an_adopted_socket_keeps_its_file);
    tcase_add_test(tcase, what_is_no_listening_stream_socket_is_refused_and_closed);
    tcase_add_test(tcase, off_leaves_connections_in_the_queue_on_takes_them);
    tcase_add_test(tcase, a_crowd_is_taken_in_turns_with_others);
    tcase_add_test(tcase, without_descriptors_it_says_so_once_and_tries_again);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
