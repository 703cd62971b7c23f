/* test_path.c - which variables and files a standing worker takes from a job, and what it tells */
#include "libworker/data/data.h"
#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], root[96], outside[96], buf[1100];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* dir/root holds data, dir/outside a secret; every case runs in a process of its own. */
static void setup(void)
{
    char path[160];
    snprintf(dir, sizeof(dir), "%s", test_dir_make());
    snprintf(root, sizeof(root), "%s/root", dir);
    snprintf(outside, sizeof(outside), "%s/outside", dir);
    ck_assert_int_eq(mkdir(root, 0755) | mkdir(outside, 0755), 0);
    snprintf(path, sizeof(path), "%s/inside", root);
    write_file(path, "data");
    snprintf(path, sizeof(path), "%s/secret", outside);
    write_file(path, "hunter2hunter2hunter2");
    setenv("DATA_PATH", root, 1);
    setenv("SECRET", "hunter2", 1);
    setenv("MS_DATA_HOME", root, 1);
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static void restrict_to_root(void)
{
    char roots[256];
    snprintf(roots, sizeof(roots), "/nowhere:%s/", root);
    ck_ms_ok(data_path_restrict("DATA_PATH MS_DATA_*", roots, "any", err));
}

static const char *in(const char *folder, const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

START_TEST(without_lists_everything_is_open)
{
    int fd = -1;
    ck_ms_ok(data_path_expand("${SECRET}/x", buf, sizeof(buf), err));
    ck_assert_str_eq(buf, "hunter2/x");
    ck_ms_ok(data_file_open(in(outside, "secret"), &fd, err));
    close(fd);
}
END_TEST

START_TEST(only_listed_variables_are_expanded_and_no_value_is_told)
{
    struct ms_err said = {0, ""};
    restrict_to_root();
    ck_ms_ok(data_path_expand("${DATA_PATH}/m", buf, sizeof(buf), err));
    ck_assert_str_eq(buf, in(root, "m"));
    ck_ms_ok(data_path_expand("${MS_DATA_HOME}", buf, sizeof(buf), err));
    static const char *const refused[] = {"${SECRET}",       "/x/${SECRET}", "${UNSET_ANYWHERE}",
                                          "${DATA_PATH_OF}", "${MS_DATA}",   "${DATA_PAT}",
                                          "${MS_TLS_CONFIG}"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(refused); i++) {
        ck_assert_int_eq(data_path_expand(refused[i], buf, sizeof(buf), &said), MS_E_REFUSED);
        ck_assert_ptr_null(strstr(said.text, "hunter2"));
        ck_assert_ptr_nonnull(strstr(said.text, "DATA_PATH MS_DATA_*"));
    }
}
END_TEST

START_TEST(a_file_outside_is_refused_whether_it_is_there_or_not)
{
    struct ms_err there = {0, ""};
    struct ms_err missing = {0, ""};
    int fd = -1;
    restrict_to_root();
    ck_assert_int_eq(data_file_open(in(outside, "secret"), &fd, &there), MS_E_REFUSED);
    ck_assert_int_eq(data_file_open(in(outside, "no-one"), &fd, &missing), MS_E_REFUSED);
    ck_assert_str_eq(strstr(there.text, ": jobs read"), strstr(missing.text, ": jobs read"));
    ck_ms_fails(data_file_open("/etc/shadow", &fd, err), MS_E_REFUSED, "data_roots");
    ck_ms_fails(data_file_open("relative", &fd, err), MS_E_REFUSED, "data_roots");
    ck_ms_ok(data_file_open(in(root, "inside"), &fd, err));
    close(fd);
    ck_ms_fails(data_file_open(in(root, "no-one"), &fd, err), MS_E_NOT_FOUND, "cannot be opened");
    char sibling[128];
    snprintf(sibling, sizeof(sibling), "%s-not", root); /* begins like the root */
    ck_assert_int_eq(mkdir(sibling, 0755), 0);
    write_file(in(sibling, "f"), "x");
    ck_ms_fails(data_file_open(in(sibling, "f"), &fd, err), MS_E_REFUSED, "data_roots");
}
END_TEST

/* The first mistake on a new node: nothing is mounted there yet. */
START_TEST(root_that_is_not_there_is_named)
{
    int fd = -1;
    restrict_to_root();
    ck_ms_fails(data_file_open("/nowhere/mnist/x", &fd, err), MS_E_NOT_FOUND,
                "there is no /nowhere on this host");
    ck_ms_fails(data_file_open("/nowhere/../etc/shadow", &fd, err), MS_E_REFUSED, "data_roots");
    ck_ms_fails(data_file_open("/nowherelse/x", &fd, err), MS_E_REFUSED, "data_roots");
}
END_TEST

/* "/" for "/home" would be another list. */
START_TEST(roots_that_are_too_many_are_named_to_the_end_of_a_word)
{
    static const char roots[] =
        "/mnt/an-archive-of-all-that-was-ever-measured-here /mnt/an-archive-of-all-that-was-made-"
        "of-it /srv/pictures /opt/of-us /home";
    int fd = -1;
    ck_ms_ok(data_path_restrict("any", roots, "any", err));
    ck_ms_fails(data_file_open("/etc/passwd", &fd, err), MS_E_REFUSED,
                "/srv/pictures ...: put what is read there");
}
END_TEST

START_TEST(links_and_dots_are_followed_before_judging)
{
    int fd = -1;
    char link[160];
    restrict_to_root();
    snprintf(link, sizeof(link), "%s/link", root);
    ck_assert_int_eq(symlink(in(outside, "secret"), link), 0);
    ck_ms_fails(data_file_open(link, &fd, err), MS_E_REFUSED, "data_roots");
    ck_ms_fails(data_file_open(in(root, "../outside/secret"), &fd, err), MS_E_REFUSED,
                "data_roots");
    ck_ms_fails(data_file_open(in(root, "none/../../outside/secret"), &fd, err), MS_E_REFUSED,
                "data_roots");
    ck_ms_fails(data_file_open(in(root, ".."), &fd, err), MS_E_REFUSED, "data_roots");
    snprintf(link, sizeof(link), "%s/into",
             outside); /* from outside into the root: it lies there */
    ck_assert_int_eq(symlink(in(root, "inside"), link), 0);
    ck_ms_ok(data_file_open(link, &fd, err));
    close(fd);
    snprintf(link, sizeof(link), "%s/loop", root);
    ck_assert_int_eq(symlink(link, link), 0);
    ck_ms_fails(data_file_open(link, &fd, err), MS_E_REFUSED, "data_roots");
}
END_TEST

START_TEST(a_root_may_be_a_link_itself)
{
    int fd = -1;
    char link[128];
    snprintf(link, sizeof(link), "%s/data", dir);
    ck_assert_int_eq(symlink(root, link), 0);
    ck_ms_ok(data_path_restrict("any", link, "any", err));
    ck_ms_ok(data_file_open(in(link, "inside"), &fd, err));
    close(fd);
    ck_ms_fails(data_file_open(in(outside, "secret"), &fd, err), MS_E_REFUSED, "data_roots");
}
END_TEST

/* Somebody's home folder, as distributions make it. */
START_TEST(folder_that_may_not_be_entered_is_called_that)
{
    int fd = -1;
    char path[160];
    restrict_to_root();
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert_int_eq(mkdir(in(root, "alice"), 0700), 0);
    snprintf(path, sizeof(path), "%s/alice/mnist", root);
    uid_t us = geteuid();
    if (us == 0) {
        ck_assert_int_eq(seteuid(65534), 0);
    } else {
        ck_assert_int_eq(chmod(in(root, "alice"), 0), 0);
    }

    ck_ms_fails(data_file_open(path, &fd, err), MS_E_REFUSED, "may not enter");
    ck_ms_fails(data_file_open(in(root, "alice/../../outside"), &fd, err), MS_E_REFUSED,
                "data_roots");

    ck_assert_int_eq(seteuid(us), 0);
    ck_assert_int_eq(chmod(in(root, "alice"), 0700), 0);
}
END_TEST

/* Root reads everything; of somebody else's data it is said who the reader is. */
START_TEST(data_that_the_worker_may_not_read_name_its_user)
{
    enum { NOBODY = 65534 };
    int fd = -1;
    struct data_source *source = NULL;
    struct data_spec spec = {.kind = DATA_MNIST, .usage = DATA_TRAIN};
    if (geteuid() != 0) {
        return;
    }
    snprintf(spec.path, sizeof(spec.path), "%s", root);
    write_file(in(root, "train-images-idx3-ubyte"), "x");
    ck_assert_int_eq(chmod(dir, 0755) | chmod(in(root, "train-images-idx3-ubyte"), 0600), 0);
    ck_assert_int_eq(chmod(in(root, "inside"), 0600), 0);

    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_ms_fails(data_file_open(in(root, "inside"), &fd, err), MS_E_IO,
                "Permission denied for the worker's user (uid 65534): let him read it");
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "idx3-ubyte cannot be opened: Permission");

    ck_assert_int_eq(seteuid(0) | chmod(root, 0700) | seteuid(NOBODY), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "root cannot be opened: Permission");
    spec.kind = DATA_CIFAR10;
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "root cannot be opened: Permission");
    ck_assert_int_eq(seteuid(0) | chmod(root, 0711) | seteuid(NOBODY), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "(uid 65534)");
    ck_assert_int_eq(seteuid(0) | chmod(dir, 0700) | seteuid(NOBODY), 0);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_IO, "enter the folders above it");
    ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(what_is_no_regular_file_is_not_waited_for)
{
    int fd = -1;
    restrict_to_root();
    ck_assert_int_eq(mkfifo(in(root, "fifo"), 0600), 0);
    ck_ms_fails(data_file_open(in(root, "fifo"), &fd, err), MS_E_INVALID, "no regular file");
    ck_ms_fails(data_file_open(root, &fd, err), MS_E_INVALID, "no regular file");
}
END_TEST

START_TEST(a_data_set_outside_is_refused_and_one_inside_names_no_value)
{
    struct data_source *source = NULL;
    struct data_spec spec = {.kind = DATA_MNIST, .usage = DATA_TRAIN};
    struct ms_err said = {0, ""};
    restrict_to_root();
    snprintf(spec.path, sizeof(spec.path), "%s", outside);
    ck_ms_fails(data_open(&spec, &source, err), MS_E_REFUSED, "data_roots");

    snprintf(spec.path, sizeof(spec.path), "${DATA_PATH}/mnist");
    ck_assert_int_eq(data_open(&spec, &source, &said), MS_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(said.text, "${DATA_PATH}/mnist"));
    ck_assert_ptr_null(strstr(said.text, root));

    spec.kind = DATA_CIFAR10; /* a file of the right name is a link out of the root */
    snprintf(spec.path, sizeof(spec.path), "%s", root);
    char secret[160];
    snprintf(secret, sizeof(secret), "%s", in(outside, "secret"));
    ck_assert_int_eq(symlink(secret, in(root, "data_batch_1.bin")), 0);
    ck_assert_int_eq(data_open(&spec, &source, &said), MS_E_REFUSED);
}
END_TEST

START_TEST(no_byte_of_a_wrong_file_is_repeated)
{
    struct safetensors *file = NULL;
    struct data_source *source = NULL;
    struct data_spec spec = {.kind = DATA_MNIST, .usage = DATA_TRAIN};
    struct ms_err said = {0, ""};
    static const struct {
        const char *text;
        size_t size;
    } files[] = {
#define BYTES(text) {text, sizeof(text) - 1}
        BYTES("root:$6$hunter2$hash:19000:0:99999:7:::\n"), /* its first bytes as a length */
        BYTES("\x1e\0\0\0\0\0\0\0{\"hunter2\": {\"password\": 1}}  "), /* JSON of something else */
        BYTES("\x1c\0\0\0\0\0\0\0{\"x\": hunter2hunter2hunter2 "),     /* and what is none */
#undef BYTES
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(files); i++) {
        FILE *out = fopen(in(root, "w.safetensors"), "w");
        fwrite(files[i].text, 1, files[i].size, out);
        fclose(out);
        ck_assert_int_lt(safetensors_open(in(root, "w.safetensors"), &file, &said), 0);
        ck_assert_msg(strstr(said.text, "hunter2") == NULL, "%s", said.text);
        ck_assert_msg(strstr(said.text, "password") == NULL, "%s", said.text);
        ck_assert_msg(strstr(said.text, "4194304") == NULL && strstr(said.text, "3761") == NULL,
                      "%s", said.text);
        ck_assert_msg(i == 0 || strstr(said.text, "header") != NULL, "%s", said.text);
    }
    write_file(in(root, "train-images-idx3-ubyte"), "hunter2hunter2hunter2hunter2");
    write_file(in(root, "train-labels-idx1-ubyte"), "hunter2hunter2hunter2hunter2");
    snprintf(spec.path, sizeof(spec.path), "%s", root);
    ck_assert_int_lt(data_open(&spec, &source, &said), 0);
    ck_assert_msg(strstr(said.text, "1752526452") == NULL, "%s",
                  said.text); /* "hunt" as a number */
}
END_TEST

START_TEST(a_list_that_is_none_is_configuration)
{
    ck_ms_fails(data_path_restrict("", "/data", "any", err), MS_E_CONFIG, "job_variables");
    ck_ms_fails(data_path_restrict("A", " ", "any", err), MS_E_CONFIG, "data_roots");
    ck_ms_fails(data_path_restrict("A", "/data srv", "any", err), MS_E_CONFIG,
                "srv is no absolute path");
    ck_ms_ok(data_path_restrict("any", "any", "any", err));
    ck_ms_ok(data_path_expand("${SECRET}", buf, sizeof(buf), err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("path");
    TCase *tc = tcase_create("path");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, without_lists_everything_is_open);
    tcase_add_test(tc, only_listed_variables_are_expanded_and_no_value_is_told);
    tcase_add_test(tc, a_file_outside_is_refused_whether_it_is_there_or_not);
    tcase_add_test(tc, root_that_is_not_there_is_named);
    tcase_add_test(tc, roots_that_are_too_many_are_named_to_the_end_of_a_word);
    tcase_add_test(tc, links_and_dots_are_followed_before_judging);
    tcase_add_test(tc, a_root_may_be_a_link_itself);
    tcase_add_test(tc, what_is_no_regular_file_is_not_waited_for);
    tcase_add_test(tc, folder_that_may_not_be_entered_is_called_that);
    tcase_add_test(tc, data_that_the_worker_may_not_read_name_its_user);
    tcase_add_test(tc, a_data_set_outside_is_refused_and_one_inside_names_no_value);
    tcase_add_test(tc, no_byte_of_a_wrong_file_is_repeated);
    tcase_add_test(tc, a_list_that_is_none_is_configuration);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
