/* test_addr.c - addresses as people write them, and listening sockets */
#include "proto/addr.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char *round_trip(const char *text, int default_port)
{
    static char buf[MS_ADDR_MAX + 1];
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse(text, default_port, &addr, err));
    return ms_addr_format(&addr, buf);
}

START_TEST(addresses_are_read_and_written)
{
    ck_assert_str_eq(round_trip("head:8118", 0), "head:8118");
    ck_assert_str_eq(round_trip("head", 8118), "head:8118");
    ck_assert_str_eq(round_trip("10.0.0.7:0", 8118), "10.0.0.7:0");
    ck_assert_str_eq(round_trip("[::1]:65535", 0), "[::1]:65535");
    ck_assert_str_eq(round_trip("[::]", 8118), "[::]:8118");
    ck_assert_str_eq(round_trip("[fe80::1%eth0]", 8118), "[fe80::1%eth0]:8118");
    ck_assert_str_eq(round_trip("::1", 8118), "[::1]:8118");
    ck_assert_str_eq(round_trip("unix:/run/x.sock", 0), "unix:/run/x.sock");
    ck_assert_str_eq(round_trip("/run/x.sock", 0), "unix:/run/x.sock");
}
END_TEST

static int parse(const char *text, int default_port, struct ms_err *err)
{
    struct ms_addr addr;
    return ms_addr_parse(text, default_port, &addr, err);
}

START_TEST(wrong_addresses_are_named_with_the_right_form)
{
    char big[400];
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    ck_ms_fails(parse("head", 0, err), MS_E_INVALID, "the port is missing");
    ck_ms_fails(parse("head:", 0, err), MS_E_INVALID, "the port ''");
    ck_ms_fails(parse("head:http", 0, err), MS_E_INVALID, "'http'");
    ck_ms_fails(parse("head:65536", 0, err), MS_E_INVALID, "0 to 65535");
    ck_ms_fails(parse("head:-1", 0, err), MS_E_INVALID, "0 to 65535");
    ck_ms_fails(parse("head:1x", 0, err), MS_E_INVALID, "0 to 65535");
    ck_ms_fails(parse("head:99999999999999999999", 0, err), MS_E_INVALID, "0 to 65535");
    ck_ms_fails(parse(":8118", 0, err), MS_E_INVALID, "the host is missing");
    ck_ms_fails(parse("8119", 8118, err), MS_E_INVALID, "write host:port ([::]:8119 for all");
    ck_ms_fails(parse("8118:8118", 0, err), MS_E_INVALID, "a number alone is no host");
    ck_ms_fails(parse("", 8118, err), MS_E_INVALID, "the host is missing");
    ck_ms_fails(parse("::1:8118:x", 0, err), MS_E_INVALID, "[address]:port");
    ck_ms_fails(parse("[::1", 8118, err), MS_E_INVALID, "[v6 address]:port");
    ck_ms_fails(parse("[::1]x", 8118, err), MS_E_INVALID, "[v6 address]:port");
    ck_ms_fails(parse("he ad:1", 0, err), MS_E_INVALID, "0x20");
    ck_ms_fails(parse("unix:sock", 0, err), MS_E_INVALID, "begins with /");
    ck_ms_fails(parse(big, 1, err), MS_E_INVALID, "the limit is");
    big[0] = '/';
    ck_ms_fails(parse(big, 1, err), MS_E_INVALID, "shorter directory");
}
END_TEST

START_TEST(loopback_is_recognised_in_all_families)
{
    static const struct {
        const char *text;
        int is_loopback;
    } rows[] = {{"127.0.0.1:1", 1},          {"127.9.9.9:1", 1},
                {"10.0.0.1:1", 0},           {"[::1]:1", 1},
                {"[fe80::1]:1", 0},          {"unix:/tmp/x", 1},
                {"[::ffff:127.0.0.1]:1", 1}, {"[::ffff:8.8.8.8]:1", 0}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_addr addr;
        struct sockaddr_storage sa;
        socklen_t len = 0;
        ck_ms_ok(ms_addr_parse(rows[i].text, 0, &addr, err));
        ck_ms_ok(ms_addr_resolve(&addr, &sa, &len, err));
        ck_assert_msg(ms_addr_is_loopback((struct sockaddr *)&sa) == rows[i].is_loopback, "%s",
                      rows[i].text);
    }
}
END_TEST

START_TEST(loopback_by_its_words_is_nobody_elses)
{
    static const struct {
        const char *text;
        int is_loopback;
    } rows[] = {{"127.0.0.1:1", 1},
                {"127.9.9.9:1", 1},
                {"[::1]:1", 1},
                {"localhost:1", 1},
                {"127.0.0.1.example:1", 0},
                {"127.example:1", 0},
                {"localhost.example:1", 0},
                {"head:1", 0},
                {"10.0.0.1:1", 0},
                {"[fe80::1]:1", 0},
                {"[::ffff:127.0.0.1]:1", 0},
                {"unix:/tmp/x", 0}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_addr addr;
        ck_ms_ok(ms_addr_parse(rows[i].text, 0, &addr, err));
        ck_assert_msg(ms_addr_names_loopback(&addr) == rows[i].is_loopback, "%s", rows[i].text);
    }
}
END_TEST

START_TEST(socket_addresses_are_printed_for_people)
{
    static const char *const rows[][2] = {{"10.1.2.3:45", "10.1.2.3:45"},
                                          {"[::1]:56", "[::1]:56"},
                                          {"[::ffff:10.1.2.3]:7", "10.1.2.3:7"},
                                          {"unix:/tmp/x", "unix"}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct ms_addr addr;
        struct sockaddr_storage sa;
        socklen_t len = 0;
        char buf[MS_ADDR_MAX + 1];
        ck_ms_ok(ms_addr_parse(rows[i][0], 0, &addr, err));
        ck_ms_ok(ms_addr_resolve(&addr, &sa, &len, err));
        ck_assert_str_eq(ms_addr_print((struct sockaddr *)&sa, len, buf), rows[i][1]);
    }
}
END_TEST

START_TEST(an_unknown_host_is_named)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t len = 0;
    struct ms_err why = {0, ""};
    ck_ms_ok(ms_addr_parse("no-such-host.invalid:1", 0, &addr, err));

    int rc = ms_addr_resolve(&addr, &sa, &len, &why);

    ck_assert(rc == MS_E_NOT_FOUND || rc == MS_E_UNREACHABLE); /* without DNS: the latter */
    ck_assert_ptr_nonnull(strstr(why.text, "'no-such-host.invalid'"));
}
END_TEST

START_TEST(an_interface_is_no_host)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t len = 0;
    ck_ms_ok(ms_addr_parse("lo:1", 0, &addr, err));
    ck_ms_fails(ms_addr_resolve(&addr, &sa, &len, err), MS_E_INVALID,
                "'lo' is the name of an interface");
    ck_ms_fails(ms_addr_resolve(&addr, &sa, &len, err), MS_E_INVALID, "ip -br addr show lo");
}
END_TEST

START_TEST(an_occupied_port_is_named_with_the_command_that_finds_its_owner)
{
    struct ms_addr addr;
    struct sockaddr_in in;
    socklen_t size = sizeof(in);
    char part[64];
    int fd = -1;
    ck_ms_ok(ms_addr_parse("127.0.0.1:0", 0, &addr, err));
    ck_ms_ok(fd = ms_addr_listen(&addr, 4, err));
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    addr.port = ntohs(in.sin_port);

    snprintf(part, sizeof(part), "ss -ltnp 'sport = :%d'", addr.port);
    ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_EXISTS, part);
    close(fd);
}
END_TEST

START_TEST(an_address_of_another_host_cannot_be_listened_on)
{
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse("192.0.2.1:0", 0, &addr, err)); /* RFC 5737: nobody's */
    ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_INVALID, "no interface of this host");
}
END_TEST

START_TEST(all_addresses_are_listened_on_in_both_families)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t size = sizeof(sa);
    struct sockaddr_in to;
    int fd = -1;
    ck_ms_ok(ms_addr_parse("[::]:0", 0, &addr, err));
    ck_ms_ok(fd = ms_addr_listen(&addr, 4, err));
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &size), 0);
    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                           : ((struct sockaddr_in *)&sa)->sin_port;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    int client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
    close(client);
    close(fd);
}
END_TEST

START_TEST(a_stale_unix_socket_is_replaced_and_a_live_one_is_not)
{
    const char *dir = test_dir_make();
    char text[128];
    struct ms_addr addr;
    struct stat st;
    int fd = -1;
    snprintf(text, sizeof(text), "unix:%s/s", dir);
    ck_ms_ok(ms_addr_parse(text, 0, &addr, err));

    ck_ms_ok(fd = ms_addr_listen(&addr, 4, err));
    ck_assert_int_eq(stat(addr.host, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_EXISTS, "another process listens");
    close(fd); /* the file stays, as after kill -9 */
    ck_assert_int_eq(stat(addr.host, &st), 0);
    ck_ms_ok(fd = ms_addr_listen(&addr, 4, err));
    close(fd);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
    const char *dir = test_dir_make();
    char text[128];
    struct ms_addr addr;
    snprintf(text, sizeof(text), "unix:%s/precious", dir);
    ck_ms_ok(ms_addr_parse(text, 0, &addr, err));
    FILE *file = fopen(addr.host, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);

    ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_EXISTS, "is no socket");
    ck_assert_int_eq(access(addr.host, F_OK), 0);
    test_dir_remove(dir);
}
END_TEST

START_TEST(a_missing_directory_is_named)
{
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse("unix:/nonexistent-msched/s", 0, &addr, err));
    ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_NOT_FOUND, "directory does not exist");
}
END_TEST

START_TEST(without_descriptors_there_is_no_word_of_what_this_machine_cannot_do)
{
    static const char *const addresses[] = {"[::]:0", "127.0.0.1:0", "unix:/tmp/msched-none/s"};
    int lowest = dup(0);
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit limit = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    close(lowest);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(addresses); i++) {
        struct ms_addr addr;
        ck_ms_ok(ms_addr_parse(addresses[i], 0, &addr, err));
        ck_ms_fails(ms_addr_listen(&addr, 4, err), MS_E_NOMEM, "Too many open files");
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* the look for leaks needs some */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("addr");
    TCase *text = tcase_create("text");
    TCase *listen = tcase_create("listen");

    tcase_add_test(text, addresses_are_read_and_written);
    tcase_add_test(text, wrong_addresses_are_named_with_the_right_form);
    tcase_add_test(text, loopback_is_recognised_in_all_families);
    tcase_add_test(text, loopback_by_its_words_is_nobody_elses);
    tcase_add_test(text, socket_addresses_are_printed_for_people);
    tcase_add_test(text, an_unknown_host_is_named);
    tcase_add_test(text, an_interface_is_no_host);
    tcase_add_test(listen, an_occupied_port_is_named_with_the_command_that_finds_its_owner);
    tcase_add_test(listen, an_address_of_another_host_cannot_be_listened_on);
    tcase_add_test(listen, all_addresses_are_listened_on_in_both_families);
    tcase_add_test(listen, a_stale_unix_socket_is_replaced_and_a_live_one_is_not);
    tcase_add_test(listen, a_file_that_is_no_socket_is_left_alone);
    tcase_add_test(listen, a_missing_directory_is_named);
    tcase_add_test(listen, without_descriptors_there_is_no_word_of_what_this_machine_cannot_do);
    suite_add_tcase(suite, text);
    suite_add_tcase(suite, listen);
    return test_run(suite);
}
