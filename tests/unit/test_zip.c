/* test_zip.c - members of zip archives are found by name, and archives that contradict themselves
 * refused */
#include "libworker/data/zip.h"
#include "tests/unit/array_files.h"

#include <fcntl.h>
#include <unistd.h>

static int open_bytes(const char *dir, const struct bytes *b)
{
    char path[256];
    file_write(dir, "a.zip", b->at, b->size);
    snprintf(path, sizeof(path), "%s/a.zip", dir);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static struct bytes text_of(const char *text)
{
    struct bytes b = {NULL, 0};
    bytes_add(&b, text, strlen(text));
    return b;
}

static struct bytes make(int with_zip64)
{
    struct archive a = {.with_zip64 = with_zip64};
    archive_add(&a, "x.npy", text_of("stored as it is"), 0);
    archive_add(&a, "y.npy", text_of("packed packed packed packed packed packed"), 1);
    return archive_end(&a);
}

START_TEST(members_are_found_stored_and_deflated)
{
    const char *dir = test_dir_make();
    struct bytes b = make(_i);
    const int fd = open_bytes(dir, &b);
    struct zip_member member;
    char list[64];

    ck_ms_ok(zip_find(fd, "a.zip", "x.npy", &member, err));
    ck_assert_int_eq(member.is_deflated, 0);
    ck_assert_int_eq(member.size, 15);
    ck_assert_mem_eq(b.at + member.at, "stored as it is", 15);
    ck_ms_ok(zip_find(fd, "a.zip", "y.npy", &member, err));
    ck_assert_int_eq(member.is_deflated, 1);
    ck_assert_int_eq(member.size, 41);
    ck_assert_int_lt(member.packed, 30);
    ck_ms_fails(zip_find(fd, "a.zip", "z.npy", &member, err), MS_E_NOT_FOUND, "a.zip has no z.npy");
    zip_list(fd, "a.zip", list, sizeof(list));
    ck_assert_str_eq(list, "x.npy, y.npy");

    close(fd);
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

/* NumPy reads the last one, and others the first. */
START_TEST(two_members_of_one_name_are_refused)
{
    const char *dir = test_dir_make();
    struct archive a = {.with_zip64 = 0};
    archive_add(&a, "x.npy", text_of("one"), 0);
    archive_add(&a, "y.npy", text_of("two"), 0);
    archive_add(&a, "x.npy", text_of("three"), 0);
    struct bytes b = archive_end(&a);
    const int fd = open_bytes(dir, &b);
    struct zip_member member;

    ck_ms_fails(zip_find(fd, "a.zip", "x.npy", &member, err), MS_E_INVALID,
                "a.zip has x.npy 2 times; write the archive anew");
    ck_ms_ok(zip_find(fd, "a.zip", "y.npy", &member, err));

    close(fd);
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

START_TEST(an_archive_with_a_comment_is_read)
{
    const char *dir = test_dir_make();
    struct bytes b = make(0);
    b.at[b.size - 2] = 5;
    bytes_add(&b, "hello", 5);
    const int fd = open_bytes(dir, &b);
    struct zip_member member;
    ck_ms_ok(zip_find(fd, "a.zip", "y.npy", &member, err));
    close(fd);
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

/* However much of it is missing at its end, it is not whole, and nothing is read beyond it. */
START_TEST(a_truncated_archive_is_refused)
{
    const char *dir = test_dir_make();
    struct bytes b = make(_i);
    const size_t whole = b.size;
    for (b.size = 0; b.size < whole; b.size++) {
        const int fd = open_bytes(dir, &b);
        struct zip_member member;
        ck_ms_fails(zip_find(fd, "a.zip", "x.npy", &member, err), MS_E_INVALID, "no whole zip");
        close(fd);
    }
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

/* Where in the directory's first entry, before the end: what becomes what. */
static const struct {
    size_t at;
    uint8_t value;
    const char *part;
} damages[] = {
    {8, 1, "is encrypted"},
    {10, 14, "unusual method"},
    {20, 99, "contradict"}, /* packed size: not the size of what is stored */
    {24, 99, "contradict"},
    {45, 0x7F, "contradict"}, /* its own header lies behind the directory */
    {42, 1, "is not there"},  /* no header is where it should be */
    {0, 'Q', "directory is damaged"},
    {29, 0xFF, "directory is damaged"}, /* a name longer than the directory */
};

START_TEST(a_directory_that_contradicts_itself_is_refused)
{
    const char *dir = test_dir_make();
    struct bytes b = make(0);
    size_t entry = 0;
    while (memcmp(b.at + entry, "PK\1\2", 4) != 0) {
        entry++;
    }
    b.at[entry + damages[_i].at] = damages[_i].value;
    const int fd = open_bytes(dir, &b);
    struct zip_member member;
    ck_ms_fails(zip_find(fd, "a.zip", "x.npy", &member, err), MS_E_INVALID, damages[_i].part);
    close(fd);
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

/* 41 bytes are said to be a GiB: no deflated stream unpacks to so much. */
START_TEST(what_no_packing_can_hold_is_refused_unread)
{
    const char *dir = test_dir_make();
    struct bytes b = make(0);
    size_t entry = b.size - 22;
    while (memcmp(b.at + entry, "PK\1\2", 4) != 0) {
        entry--;
    }
    b.at[entry + 27] = 0x40;
    const int fd = open_bytes(dir, &b);
    struct zip_member member;
    ck_ms_fails(zip_find(fd, "a.zip", "y.npy", &member, err), MS_E_INVALID, "contradict");
    close(fd);
    free(b.at);
    test_dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zip");
    TCase *tc = test_case_create("zip");
    tcase_add_loop_test(tc, members_are_found_stored_and_deflated, 0, 2);
    tcase_add_test(tc, two_members_of_one_name_are_refused);
    tcase_add_test(tc, an_archive_with_a_comment_is_read);
    tcase_add_loop_test(tc, a_truncated_archive_is_refused, 0, 2);
    tcase_add_loop_test(tc, a_directory_that_contradicts_itself_is_refused, 0,
                        (int)MS_ARRAY_SIZE(damages));
    tcase_add_test(tc, what_no_packing_can_hold_is_refused_unread);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
