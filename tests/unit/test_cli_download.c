/* test_cli_download.c - a file gets its name when it is whole and right, and not before */
#include "cli/download.h"

#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *root;
static int dir_fd;

static void begin(void)
{
    root = test_dir_make();
    dir_fd = open(root, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dir_fd, 0);
}

static void end(void)
{
    close(dir_fd);
    test_dir_remove(root);
}

static const char *sha_of(const char *text)
{
    static char hex[MS_SHA256_HEX];
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, strlen(text), digest);
    ms_sha256_hex(digest, hex);
    return hex;
}

static void put(const char *name, const char *text)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const char *content(const char *name)
{
    static char text[64];
    int fd = openat(dir_fd, name, O_RDONLY);
    if (fd < 0) {
        return "(nothing)";
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    return text;
}

START_TEST(whole_file_gets_its_name_and_is_its_owners)
{
    struct download d;
    struct stat st;
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    ck_ms_ok(download_add(&d, "abc", 3, err));
    ck_assert_str_eq(content("w"), "(nothing)");
    ck_ms_ok(download_add(&d, "def", 3, err));

    ck_ms_ok(download_finish(&d, sha_of("abcdef"), err));

    ck_assert_str_eq(content("w"), "abcdef");
    ck_assert_str_eq(content(".w.part"), "(nothing)");
    ck_assert_int_eq(fstatat(dir_fd, "w", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    download_close(&d);
}
END_TEST

START_TEST(torn_download_goes_on)
{
    struct download d;
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    ck_ms_ok(download_add(&d, "abc", 3, err));
    download_close(&d);

    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    ck_assert_uint_eq(d.have, 3);
    ck_assert_uint_eq(d.resumed, 3);
    ck_ms_ok(download_add(&d, "def", 3, err));
    ck_ms_ok(download_finish(&d, sha_of("abcdef"), err));

    ck_assert_str_eq(content("w"), "abcdef");
    download_close(&d);
}
END_TEST

START_TEST(wrong_digest_gives_no_name)
{
    struct download d;
    struct ms_err why = {0, ""};
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    ck_ms_ok(download_add(&d, "abX", 3, err));

    ck_assert_int_eq(download_finish(&d, sha_of("abc"), &why), MS_E_PROTOCOL);
    ck_assert_msg(strstr(why.text, "came damaged") != NULL, "%s", why.text);
    ck_assert_str_eq(content("w"), "(nothing)");
    ck_ms_ok(download_restart(&d, err));
    ck_ms_ok(download_add(&d, "abc", 3, err));
    ck_ms_ok(download_finish(&d, sha_of("abc"), err));

    ck_assert_str_eq(content("w"), "abc");
    download_close(&d);
}
END_TEST

START_TEST(what_is_there_is_replaced_by_force_only)
{
    struct download d;
    put("w", "mine");
    ck_assert_int_eq(download_open(dir_fd, "w", 0, &d, NULL), MS_E_EXISTS);
    ck_ms_ok(download_open(dir_fd, "w", 1, &d, err));
    ck_ms_ok(download_add(&d, "abc", 3, err));
    ck_ms_ok(download_finish(&d, sha_of("abc"), err));
    ck_assert_str_eq(content("w"), "abc");
    download_close(&d);
}
END_TEST

START_TEST(what_came_meanwhile_is_not_replaced)
{
    struct download d;
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    ck_ms_ok(download_add(&d, "abc", 3, err));
    put("w", "mine");

    ck_assert_int_eq(download_finish(&d, sha_of("abc"), NULL), MS_E_EXISTS);

    ck_assert_str_eq(content("w"), "mine");
    download_close(&d);
}
END_TEST

START_TEST(links_and_other_files_in_the_way_are_refused)
{
    struct download d;
    put("victim", "");
    ck_assert_int_eq(symlinkat("victim", dir_fd, ".a.part"), 0);
    ck_assert_int_eq(linkat(dir_fd, "victim", dir_fd, ".b.part", 0), 0);
    ck_assert_int_eq(mkfifoat(dir_fd, ".c.part", 0600), 0);

    ck_assert_int_lt(download_open(dir_fd, "a", 0, &d, NULL), 0);
    ck_assert_int_eq(download_open(dir_fd, "b", 0, &d, NULL), MS_E_REFUSED);
    ck_assert_int_eq(download_open(dir_fd, "c", 0, &d, NULL), MS_E_REFUSED);
    ck_assert_str_eq(content("victim"), "");
}
END_TEST

START_TEST(nothing_is_left_of_what_never_began)
{
    struct download d;
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    download_close(&d);
    ck_assert_str_eq(content(".w.part"), "(nothing)");
}
END_TEST

START_TEST(full_disk_is_said_in_words)
{
    struct download d;
    struct ms_err why = {0, ""};
    int full = open("/dev/full", O_WRONLY);
    if (full < 0) {
        return; /* a chroot without it */
    }
    ck_ms_ok(download_open(dir_fd, "w", 0, &d, err));
    close(d.fd);
    d.fd = full;

    ck_assert_int_eq(download_add(&d, "abc", 3, &why), MS_E_FULL);

    ck_assert_msg(strstr(why.text, "No space left on device") != NULL, "%s", why.text);
    download_close(&d);
}
END_TEST

START_TEST(two_at_once_do_not_write_into_one_file)
{
    struct download first;
    struct download second;
    ck_ms_ok(download_open(dir_fd, "w", 0, &first, err));
    ck_ms_fails(download_open(dir_fd, "w", 0, &second, err), MS_E_EXISTS, "is being fetched");
    ck_ms_fails(download_open(dir_fd, "w", 1, &second, err), MS_E_EXISTS, "is being fetched");

    ck_ms_ok(download_add(&first, "abc", 3, err)); /* its part was left alone */
    ck_ms_ok(download_finish(&first, sha_of("abc"), err));
    ck_assert_str_eq(content("w"), "abc");
    download_close(&first);
    ck_ms_ok(download_open(dir_fd, "w", 1, &second, err));
    download_close(&second);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_download");
    TCase *tc = tcase_create("download");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, whole_file_gets_its_name_and_is_its_owners);
    tcase_add_test(tc, torn_download_goes_on);
    tcase_add_test(tc, wrong_digest_gives_no_name);
    tcase_add_test(tc, what_is_there_is_replaced_by_force_only);
    tcase_add_test(tc, what_came_meanwhile_is_not_replaced);
    tcase_add_test(tc, links_and_other_files_in_the_way_are_refused);
    tcase_add_test(tc, nothing_is_left_of_what_never_began);
    tcase_add_test(tc, full_disk_is_said_in_words);
    tcase_add_test(tc, two_at_once_do_not_write_into_one_file);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
