/* test_ca_index.c - the index of a certificate authority: its text, and what is refused */
#include "proto/ca_index.h"
#include "tests/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *dir;
static char path[160];
static struct ms_ca_index table;

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/index.txt", dir);
    memset(&table, 0, sizeof(table));
}

static void teardown(void)
{
    ms_ca_index_fini(&table);
    test_dir_remove(dir);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static char *whole(const char *of)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(of, "r");
    ck_assert_msg(file != NULL, "%s", of);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    return text;
}

static const char *golden(void)
{
    static char file[512];
    snprintf(file, sizeof(file), "%s/tests/golden/ca-index-v1.txt", getenv("MSCHED_SOURCE_ROOT"));
    return file;
}

START_TEST(the_first_version_is_read_for_ever_and_written_just_so)
{
    ck_ms_ok(ms_ca_index_read(golden(), &table, err));

    ck_assert_uint_eq(table.n, 3);
    ck_assert_str_eq(table.entries[0].role, "scheduler");
    ck_assert_str_eq(table.entries[0].name, "head");
    ck_assert_str_eq(table.entries[0].hosts, "head.example,10.0.0.1");
    ck_assert_int_eq(table.entries[0].from, 1795279550);
    ck_assert_int_eq(table.entries[0].revoked, 0);
    ck_assert_ptr_null(table.entries[1].hosts);
    ck_assert_int_eq(table.entries[1].revoked, 1796112000);
    ck_assert_str_eq(table.entries[2].name, "");
    ck_ms_ok(ms_ca_index_write(path, &table, err));
    char *was = whole(golden());
    char *is = whole(path);
    ck_assert_str_eq(is, was);
    free(was);
    free(is);
}
END_TEST

/* What an authority gets that issued before it kept one. */
START_TEST(an_index_that_began_later_says_so_for_ever)
{
    char file[512];
    snprintf(file, sizeof(file), "%s/tests/golden/ca-index-v1-since.txt",
             getenv("MSCHED_SOURCE_ROOT"));
    ck_ms_ok(ms_ca_index_read(golden(), &table, err));
    ck_assert_int_eq(table.since, 0);
    ms_ca_index_fini(&table);
    ck_ms_ok(ms_ca_index_read(file, &table, err));

    ck_assert_int_eq(table.since, 1795282800);
    ck_assert_uint_eq(table.n, 1);
    ck_ms_ok(ms_ca_index_write(path, &table, err));
    char *was = whole(file);
    char *is = whole(path);
    ck_assert_str_eq(is, was);
    free(was);
    free(is);
}
END_TEST

START_TEST(a_serial_number_is_found_however_it_is_written)
{
    ck_ms_ok(ms_ca_index_read(golden(), &table, err));
    const char *const same[] = {
        "59A65FFDCA633EBBB0705256085CE7B3", "59a65ffdca633ebbb0705256085ce7b3",
        "59:A6:5F:FD:CA:63:3E:BB:B0:70:52:56:08:5C:E7:B3", "0059A65FFDCA633EBBB0705256085CE7B3"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(same); i++) {
        ck_assert_ptr_eq(ms_ca_index_serial(&table, same[i]), &table.entries[1]);
    }
    ck_assert_ptr_eq(ms_ca_index_serial(&table, "a"), &table.entries[2]);
    ck_assert_ptr_null(ms_ca_index_serial(&table, "59A65FFDCA633EBBB0705256085CE7"));
    ck_assert_ptr_null(ms_ca_index_serial(&table, "alice"));
    ck_assert_ptr_null(ms_ca_index_serial(&table, ""));
}
END_TEST

START_TEST(a_name_means_all_its_roles_and_a_role_with_it_one)
{
    ck_ms_ok(ms_ca_index_read(golden(), &table, err));
    ck_assert(ms_ca_entry_is(&table.entries[1], "alice"));
    ck_assert(ms_ca_entry_is(&table.entries[1], "user:alice"));
    ck_assert(!ms_ca_entry_is(&table.entries[1], "use:alice"));
    ck_assert(!ms_ca_entry_is(&table.entries[1], "admin:alice"));
    ck_assert(!ms_ca_entry_is(&table.entries[1], "alic"));
    ck_assert(!ms_ca_entry_is(&table.entries[2], "")); /* nobody knows its name */
    ck_assert(!ms_ca_entry_is(&table.entries[2], ":"));
}
END_TEST

START_TEST(a_serial_number_is_never_entered_twice)
{
    struct ms_ca_entry entry = {.serial = "59a65ffdca633ebbb0705256085ce7b3", .name = "eve"};
    ck_ms_ok(ms_ca_index_read(golden(), &table, err));
    ck_ms_fails(ms_ca_index_add(&table, &entry, err), MS_E_EXISTS, "issued already");
    ck_assert_uint_eq(table.n, 3);
}
END_TEST

#define HEAD "# msched CA index 1\n"
static const struct {
    const char *text, *says;
} damaged[] = {
    {"", "is empty"},
    {"# msched CA index 2\n", "does not begin with"},
    {"V\t27\n", "does not begin with"},
    {HEAD "AB\tuser\ta\t-\t-\t-\n", "line 2: fewer than seven columns"},
    {HEAD "AB\tuser\ta\t-\t-\t-\t-\t-\n", "more than seven columns"},
    {HEAD "AB\tuser\ta\t-\t-\t-\t-", "no end"}, /* torn */
    {HEAD "# x\nxy\tuser\ta\t-\t-\t-\t-\n", "line 3: the serial number"},
    {HEAD "\tuser\ta\t-\t-\t-\t-\n", "the serial number"},
    {HEAD "AB\tuser\ta\x1b[2J\t-\t-\t-\t-\n", "cannot be printed"},
    {HEAD "AB\t\ta\t-\t-\t-\t-\n", "empty"},
    {HEAD "AB\tuser\ta\t-\t-\t-\tsoon\n", "a time is not like"},
    {HEAD "AB\tuser\ta\t-\t-\t-\t1970-01-01T00:00:00Z\n", "a time is not like"},
    {HEAD "AB\tuser\ta\t-\t2026-11-21T16:45:50Z?\t-\t-\n", "a time is not like"},
};

START_TEST(a_damaged_line_is_named_and_nothing_is_guessed)
{
    put(damaged[_i].text);
    ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_INVALID, damaged[_i].says);
    ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_INVALID, "index.txt");
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

/* A power cut can leave zeros where bytes were to be, with a head before them or not. */
START_TEST(zeros_are_damage_and_no_empty_list)
{
    static const char zeros[64];
    static const char *const heads[] = {"", HEAD, HEAD "# serial\tr", "# msched CA index 1"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(heads); i++) {
        FILE *file = fopen(path, "w");
        fwrite(heads[i], 1, strlen(heads[i]), file);
        fwrite(zeros, 1, sizeof(zeros), file);
        fputs(i % 2 == 0 ? "\n" : "", file);
        fclose(file);
        ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_INVALID,
                    "index.txt is damaged, line");
    }
    put(HEAD "# serial\tr"); /* torn amid a comment */
    ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_INVALID, "no end");
    put("# msched CA index 1");
    ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_INVALID, "no end");
}
END_TEST

START_TEST(no_index_is_not_found)
{
    ck_ms_fails(ms_ca_index_read(path, &table, err), MS_E_NOT_FOUND, "index.txt");
}
END_TEST

START_TEST(a_full_disk_leaves_the_index_as_it_was)
{
    struct ms_ca_entry entry = {.serial = "AB", .name = "one"};
    ck_ms_ok(ms_ca_index_add(&table, &entry, err));
    ck_ms_ok(ms_ca_index_write(path, &table, err));
    char *was = whole(path);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){8, RLIM_INFINITY});
    ck_assert_str_eq(entry.name, "one");

    ck_ms_fails(ms_ca_index_write(path, &table, err), MS_E_IO, "index.txt");

    setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    char *is = whole(path);
    ck_assert_str_eq(is, was);
    free(was);
    free(is);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ca_index");
    TCase *tcase = tcase_create("ca_index");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_first_version_is_read_for_ever_and_written_just_so);
    tcase_add_test(tcase, an_index_that_began_later_says_so_for_ever);
    tcase_add_test(tcase, a_serial_number_is_found_however_it_is_written);
    tcase_add_test(tcase, a_name_means_all_its_roles_and_a_role_with_it_one);
    tcase_add_test(tcase, a_serial_number_is_never_entered_twice);
    tcase_add_loop_test(tcase, a_damaged_line_is_named_and_nothing_is_guessed, 0,
                        (int)MS_ARRAY_SIZE(damaged));
    tcase_add_test(tcase, zeros_are_damage_and_no_empty_list);
    tcase_add_test(tcase, no_index_is_not_found);
    tcase_add_test(tcase, a_full_disk_leaves_the_index_as_it_was);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
