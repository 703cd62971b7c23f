/* test_cli_rates.c - two rates of this host, of which nothing is known but that they are some */
#include "cli/rates.h"
#include "tests/test.h"

#include <math.h>

START_TEST(a_host_computes_and_moves_something)
{
    struct roofline rates = {0, 0};

    ck_ms_ok(cli_rates_measure(&rates, err));

    ck_assert(isfinite(rates.products_per_s) && isfinite(rates.bytes_per_s));
    ck_assert_double_gt(rates.products_per_s, 1); /* of any host, and below any sanitizer */
    ck_assert_double_gt(rates.bytes_per_s, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_rates");
    TCase *tc = tcase_create("rates");
    tcase_add_test(tc, a_host_computes_and_moves_something);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
