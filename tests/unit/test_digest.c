/* test_digest.c - SHA-256 against the vectors of FIPS 180-4 */
#include "proto/digest.h"
#include "tests/test.h"

START_TEST(abc_gives_the_published_digest)
{
    uint8_t digest[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];

    ms_sha256("abc", 3, digest);

    ms_sha256_hex(digest, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(pieces_give_the_digest_of_the_whole)
{
    uint8_t whole[MS_SHA256_BYTES];
    uint8_t pieces[MS_SHA256_BYTES];
    ms_sha256("hello world", 11, whole);

    struct ms_sha256 *sha = ms_sha256_create();
    ms_sha256_add(sha, "hello", 5);
    ms_sha256_add(sha, "", 0);
    ms_sha256_add(sha, " world", 6);
    ms_sha256_finish(sha, pieces);

    ck_assert_mem_eq(whole, pieces, sizeof(whole));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("digest");
    TCase *tc = tcase_create("digest");
    tcase_add_test(tc, abc_gives_the_published_digest);
    tcase_add_test(tc, pieces_give_the_digest_of_the_whole);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
