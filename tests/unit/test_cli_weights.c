/* test_cli_weights.c - the digest of a file of weights is over its values, in the order of names */
#include "cli/weights.h"

#include "libworker/data/safetensors.h"
#include "tests/test.h"

static const float a[] = {1, 2, 3, 4};
static const float b[] = {5};

static void put_file(const char *path, int b_first)
{
    struct safetensors_entry entries[2] = {{.name = "b", .n_dims = 1, .dim = {1}},
                                           {.name = "a", .n_dims = 2, .dim = {2, 2}}};
    struct safetensors_writer *writer = NULL;
    const char *const metadata[] = {"epoch", b_first ? "1" : "22"}; /* the header may differ */
    ck_ms_ok(safetensors_create(path, entries, 2, metadata, 1, &writer, err));
    ck_ms_ok(safetensors_put(writer, b_first ? "b" : "a", b_first ? b : a, b_first ? 1 : 4, err));
    ck_ms_ok(safetensors_put(writer, b_first ? "a" : "b", b_first ? a : b, b_first ? 4 : 1, err));
    ck_ms_ok(safetensors_finish(writer, NULL, err));
}

START_TEST(digest_is_over_the_values_in_the_order_of_names)
{
    const char *root = test_dir_make();
    const float values[] = {1, 2, 3, 4, 5};
    uint8_t digest[MS_SHA256_BYTES];
    char want[MS_SHA256_HEX];
    char got[MS_SHA256_HEX];
    char path[300];
    ms_sha256(values, sizeof(values), digest);
    ms_sha256_hex(digest, want);
    for (int b_first = 0; b_first <= 1; b_first++) {
        snprintf(path, sizeof(path), "%s/w%d", root, b_first);
        put_file(path, b_first);

        ck_ms_ok(cli_weights_digest(path, got, err));

        ck_assert_str_eq(got, want);
    }
    test_dir_remove(root);
}
END_TEST

START_TEST(file_of_something_else_has_no_digest)
{
    const char *root = test_dir_make();
    char path[300];
    char hex[MS_SHA256_HEX];
    snprintf(path, sizeof(path), "%s/w", root);
    FILE *file = fopen(path, "w");
    fputs("no weights at all", file);
    fclose(file);

    ck_assert_int_lt(cli_weights_digest(path, hex, NULL), 0);
    ck_assert_int_lt(cli_weights_digest("/nonexistent", hex, NULL), 0);
    test_dir_remove(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_weights");
    TCase *tc = tcase_create("weights");
    tcase_add_test(tc, digest_is_over_the_values_in_the_order_of_names);
    tcase_add_test(tc, file_of_something_else_has_no_digest);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
