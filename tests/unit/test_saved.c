/* test_saved.c - what of a job's folder goes out to who may fetch it: its own, and nothing else */
#include "libworker/data/path.h"
#include "libworker/train/saved.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAG "0123456789abcdef0123456789abcdef" /* of tests/golden/checkpoint */

static const char *dir;

static void ck_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "%s", text);
}

/* DIR/job/{checkpoints/linear-13.*,secret}; DIR/checkpoints/linear-13.* beside it. */
static void copy(const char *name, const char *to)
{
    char from[1100];
    char bytes[1 << 16];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(from, sizeof(from), "%s/tests/golden/checkpoint/%s", root != NULL ? root : ".", name);
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    ck_assert_msg(in != NULL && out != NULL, "%s", from);
    const size_t n = fread(bytes, 1, sizeof(bytes), in);
    ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    fclose(in);
    fclose(out);
}

static char *path(const char *name)
{
    static char paths[4][1200];
    static int next;
    char *buf = paths[next++ % 4];
    snprintf(buf, sizeof(paths[0]), "%s/%s", dir, name);
    return buf;
}

static void put_both(const char *folder)
{
    char name[300];
    ck_assert_int_eq(mkdir(path(folder), 0700), 0);
    snprintf(name, sizeof(name), "%s/linear-13.json", folder);
    copy("linear-13.json", path(name));
    snprintf(name, sizeof(name), "%s/linear-13.safetensors", folder);
    copy("linear-13.safetensors", path(name));
}

static struct saved_place place;

static void setup(void)
{
    static char folder[1200];
    dir = test_dir_make();
    snprintf(folder, sizeof(folder), "%s/job", dir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    put_both("job/checkpoints");
    put_both("checkpoints");
    place = (struct saved_place){
        .folder = folder, .directory = "checkpoints", .prefix = "linear", .tag = TAG};
}

static void teardown(void)
{
    test_dir_remove(dir);
}

static void ck_opens(int is_manifest, const char *name)
{
    struct stat there;
    struct stat got;
    int fd = -1;
    ck_ms_ok(fd = saved_open(&place, 13, is_manifest, err));
    ck_assert_int_eq(fstat(fd, &got), 0);
    ck_assert_int_eq(stat(path(name), &there), 0);
    ck_assert_uint_eq(got.st_ino, there.st_ino);
    close(fd);
}

static size_t count(void)
{
    struct saved_list list;
    ck_ms_ok(saved_look(&place, &list, err));
    const size_t n = list.n;
    saved_list_fini(&list);
    return n;
}

START_TEST(checkpoint_of_the_job_is_listed_and_opened)
{
    struct saved_list list;
    struct stat st;
    ck_ms_ok(saved_look(&place, &list, err));
    ck_assert_uint_eq(list.n, 1);
    ck_assert_uint_eq(list.entries[0].step, 13);
    ck_assert_int_eq(stat(path("job/checkpoints/linear-13.safetensors"), &st), 0);
    ck_assert_uint_eq(list.entries[0].bytes, (uint64_t)st.st_size);
    ck_assert_int_eq(stat(path("job/checkpoints/linear-13.json"), &st), 0);
    ck_assert_uint_eq(list.entries[0].manifest_bytes, (uint64_t)st.st_size);
    ck_assert_uint_eq(list.best.step, 0);
    saved_list_fini(&list);

    ck_opens(0, "job/checkpoints/linear-13.safetensors");
    ck_opens(1, "job/checkpoints/linear-13.json");
}
END_TEST

START_TEST(checkpoint_of_another_job_is_neither_listed_nor_opened)
{
    struct ms_err err = {0, ""};
    place.tag = "ffffffffffffffffffffffffffffffff";
    ck_assert_uint_eq(count(), 0);
    ck_assert_int_eq(saved_open(&place, 13, 0, &err), MS_E_NOT_FOUND);
    ck_has(err.text, "of another job");
    place.tag = "";
    ck_assert_uint_eq(count(), 0);
}
END_TEST

START_TEST(nothing_outside_of_the_jobs_folder_is_opened)
{
    static const char *const out[] = {"../checkpoints", "checkpoints/../../checkpoints",
                                      "./../checkpoints", "${HOME}", "~"};
    struct saved_list list;
    struct ms_err err = {0, ""};
    for (size_t i = 0; i < MS_ARRAY_SIZE(out); i++) {
        place.directory = out[i];
        ck_assert_int_eq(saved_look(&place, &list, &err), MS_E_REFUSED);
        ck_assert_int_eq(saved_open(&place, 13, 0, &err), MS_E_REFUSED);
    }
    place.directory = "checkpoints";
    place.prefix = "../../checkpoints/linear";
    ck_assert_int_lt(saved_open(&place, 13, 0, &err), 0);
}
END_TEST

START_TEST(links_are_not_followed)
{
    struct ms_err err = {0, ""};
    struct saved_list list;
    ck_assert_int_eq(symlink(path("checkpoints"), path("job/linked")), 0);
    place.directory = "linked";
    ck_assert_int_lt(saved_look(&place, &list, &err), 0);
    ck_assert_int_lt(saved_open(&place, 13, 1, &err), 0);

    place.directory = "checkpoints";
    ck_assert_int_eq(unlink(path("job/checkpoints/linear-13.safetensors")), 0);
    ck_assert_int_eq(symlink(path("checkpoints/linear-13.safetensors"),
                             path("job/checkpoints/linear-13.safetensors")),
                     0);
    ck_opens(1, "job/checkpoints/linear-13.json");
    ck_assert_int_lt(saved_open(&place, 13, 0, &err), 0);
    ck_assert_int_eq(symlink("/etc/hostname", path("job/best.safetensors")), 0);
    ck_assert_int_lt(saved_open_best(&place, 0, &err), 0);
}
END_TEST

START_TEST(damaged_one_is_counted_and_not_listed)
{
    struct saved_list list;
    ck_assert_int_eq(truncate(path("job/checkpoints/linear-13.safetensors"), 10), 0);
    ck_ms_ok(saved_look(&place, &list, err));
    ck_assert_uint_eq(list.n, 0);
    ck_assert_uint_eq(list.n_damaged, 1);
    saved_list_fini(&list);
}
END_TEST

START_TEST(folder_that_is_not_there_has_none)
{
    place.directory = "elsewhere";
    ck_assert_uint_eq(count(), 0);
    place.directory = "";
    ck_assert_uint_eq(count(), 0);
}
END_TEST

/* The lists are for the whole process: last, and in a process of its own. */
START_TEST(absolute_folder_is_looked_into_only_where_jobs_may_write_to_one)
{
    struct saved_list list;
    struct ms_err err = {0, ""};
    place.directory = path("checkpoints");
    ck_assert_uint_eq(count(), 1);
    ck_assert_int_eq(data_path_restrict("DATA", dir, "none", &err), MS_OK);
    ck_assert_int_eq(saved_look(&place, &list, &err), MS_E_REFUSED);
    ck_assert_int_eq(saved_open(&place, 13, 0, &err), MS_E_REFUSED);
}
END_TEST

/* ---- the list as text ---- */

START_TEST(list_comes_back_as_it_was_written)
{
    struct saved_entry entry = {.step = 1875,
                                .epoch = 2,
                                .step_in_epoch = 938,
                                .loss = 0.1F,
                                .bytes = 4096,
                                .manifest_bytes = 900,
                                .age_s = 12,
                                .sum = "00112233445566778899aabbccddeeff"};
    struct saved_best bests[] = {{1800, "accuracy", 0.75, 2048, 60},
                                 {1200, "accuracy", 0.5, 2048, 90}};
    struct saved_list list = {.folder = "/jobs/7/checkpoints",
                              .entries = &entry,
                              .n = 1,
                              .n_damaged = 3,
                              .best = {1800, "accuracy", 0.75, 2048, 60},
                              .bests = bests,
                              .n_bests = 2};
    struct saved_list got;
    size_t size = 0;
    char *text = saved_list_format(&list, &size);
    ck_ms_ok(saved_list_parse(text, size, "n1", &got, err));
    free(text);

    ck_assert_str_eq(got.folder, list.folder);
    ck_assert_uint_eq(got.n, 1);
    ck_assert_uint_eq(got.n_damaged, 3);
    ck_assert_uint_eq(got.entries[0].step, 1875);
    ck_assert_int_eq(got.entries[0].step_in_epoch, 938);
    ck_assert(got.entries[0].loss == 0.1F);
    ck_assert_str_eq(got.entries[0].sum, entry.sum);
    ck_assert_str_eq(got.best.metric, "accuracy");
    ck_assert(got.best.value == 0.75);
    ck_assert_uint_eq(got.n_bests, 2);
    ck_assert_uint_eq(got.bests[1].step, 1200);
    ck_assert(got.bests[1].value == 0.5);
    saved_list_fini(&got);
}
END_TEST

START_TEST(what_is_no_list_is_refused_with_its_node)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"folder\":\"/j\",\"damaged\":0}",
        "{\"folder\":\"/j\\u001b[2J\",\"damaged\":0,\"checkpoints\":[]}",
        "{\"folder\":\"/j\",\"damaged\":-1,\"checkpoints\":[]}",
        "{\"folder\":\"/j\",\"damaged\":0,\"checkpoints\":[{\"step\":0}]}",
        "{\"folder\":\"/j\",\"damaged\":0,\"checkpoints\":[],\"best\":{\"step\":1}}",
        "{\"folder\":\"/j\",\"damaged\":0,\"checkpoints\":[],\"bests\":[]}",
        "{\"folder\":\"/"
        "j\",\"damaged\":0,\"checkpoints\":[],\"best\":{\"step\":1,\"metric\":\"loss\","
        "\"value\":1,\"bytes\":1,\"age_s\":1},\"bests\":[null]}",
    };
    struct saved_list list;
    for (size_t i = 0; i < MS_ARRAY_SIZE(wrong); i++) {
        struct ms_err err = {0, ""};
        ck_assert_int_eq(saved_list_parse(wrong[i], strlen(wrong[i]), "node n1", &list, &err),
                         MS_E_INVALID);
        ck_has(err.text, "node n1");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("saved");
    TCase *tc = tcase_create("saved");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, checkpoint_of_the_job_is_listed_and_opened);
    tcase_add_test(tc, checkpoint_of_another_job_is_neither_listed_nor_opened);
    tcase_add_test(tc, nothing_outside_of_the_jobs_folder_is_opened);
    tcase_add_test(tc, links_are_not_followed);
    tcase_add_test(tc, damaged_one_is_counted_and_not_listed);
    tcase_add_test(tc, folder_that_is_not_there_has_none);
    tcase_add_test(tc, absolute_folder_is_looked_into_only_where_jobs_may_write_to_one);
    tcase_add_test(tc, list_comes_back_as_it_was_written);
    tcase_add_test(tc, what_is_no_list_is_refused_with_its_node);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
