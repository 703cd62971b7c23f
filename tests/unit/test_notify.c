/* test_notify.c - sd_notify, the watchdog's variables, passed sockets */
#include "proto/notify.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int bind_to(const char *name, size_t length)
{
    struct sockaddr_un un;
    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;
    memcpy(un.sun_path, name, length);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, size), 0);
    return fd;
}

static void check_datagram(int fd, const char *want)
{
    char buf[256] = "";
    ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);
    ck_assert_int_eq(n, (ssize_t)strlen(want));
    ck_assert_str_eq(buf, want);
}

START_TEST(a_state_goes_to_the_socket_of_the_service_manager)
{
    const char *dir = test_dir_make();
    char path[128];
    snprintf(path, sizeof(path), "%s/notify", dir);
    int fd = bind_to(path, strlen(path));
    setenv("NOTIFY_SOCKET", path, 1);

    ms_notify("READY=1\nSTATUS=3 jobs");

    check_datagram(fd, "READY=1\nSTATUS=3 jobs");
    close(fd);
    test_dir_remove(dir);
}
END_TEST

START_TEST(abstract_sockets_work_too)
{
    char name[64];
    int n = snprintf(name, sizeof(name), "@msched-test-%d", (int)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    name[0] = '\0';
    int fd = bind_to(name, (size_t)n);

    ms_notify("STOPPING=1");

    check_datagram(fd, "STOPPING=1");
    close(fd);
}
END_TEST

START_TEST(without_a_socket_or_with_nonsense_nothing_happens)
{
    char big[300];
    memset(big, '/', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    unsetenv("NOTIFY_SOCKET");
    ms_notify("READY=1");
    setenv("NOTIFY_SOCKET", "relative", 1);
    ms_notify("READY=1");
    setenv("NOTIFY_SOCKET", "@", 1);
    ms_notify("READY=1");
    setenv("NOTIFY_SOCKET", big, 1);
    ms_notify("READY=1");
    setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    ms_notify("READY=1");
    int fd = dup(0); /* no descriptor was lost on the way */
    ck_assert_int_lt(fd, 32);
    close(fd);
}
END_TEST

static void set_number(const char *name, long long value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", value);
    setenv(name, text, 1);
}

START_TEST(the_watchdog_is_for_the_process_that_its_pid_names)
{
    unsetenv("WATCHDOG_USEC");
    ck_assert_uint_eq(ms_notify_watchdog_us(), 0);
    set_number("WATCHDOG_USEC", 30000000);
    unsetenv("WATCHDOG_PID");
    ck_assert_uint_eq(ms_notify_watchdog_us(), 30000000);
    set_number("WATCHDOG_PID", getpid());
    ck_assert_uint_eq(ms_notify_watchdog_us(), 30000000);
    set_number("WATCHDOG_PID", getppid());
    ck_assert_uint_eq(ms_notify_watchdog_us(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "soon", 1);
    ck_assert_uint_eq(ms_notify_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "-5", 1);
    ck_assert_uint_eq(ms_notify_watchdog_us(), 0);
}
END_TEST

START_TEST(passed_sockets_are_counted_and_closed_on_exec)
{
    /* descriptors 3 and 4 may be in use by the runner: this case has a process of its own */
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_ge(dup2(pair[0], 60), 0);
    ck_assert_int_ge(dup2(pair[1], 61), 0);
    ck_assert_int_eq(dup2(60, 3), 3);
    ck_assert_int_eq(dup2(61, 4), 4);
    set_number("LISTEN_FDS", 2);

    unsetenv("LISTEN_PID");
    ck_assert_int_eq(ms_notify_listen_fds(), 0);
    set_number("LISTEN_PID", getppid());
    ck_assert_int_eq(ms_notify_listen_fds(), 0);
    ck_assert_int_eq(fcntl(3, F_GETFD) & FD_CLOEXEC, 0);
    set_number("LISTEN_PID", getpid());
    ck_assert_int_eq(ms_notify_listen_fds(), 2);
    ck_assert_int_ne(fcntl(3, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(4, F_GETFD) & FD_CLOEXEC, 0);
    set_number("LISTEN_FDS", 9999);
    ck_assert_int_eq(ms_notify_listen_fds(), 0);
    setenv("LISTEN_FDS", "two", 1);
    ck_assert_int_eq(ms_notify_listen_fds(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notify");
    TCase *tc = tcase_create("notify");
    tcase_add_test(tc, a_state_goes_to_the_socket_of_the_service_manager);
    tcase_add_test(tc, abstract_sockets_work_too);
    tcase_add_test(tc, without_a_socket_or_with_nonsense_nothing_happens);
    tcase_add_test(tc, the_watchdog_is_for_the_process_that_its_pid_names);
    tcase_add_test(tc, passed_sockets_are_counted_and_closed_on_exec);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
