/* test_kernel_team.c - every thread that computes flushes denormal numbers */
#include "libworker/kernel/kernel.h"
#include "tests/test.h"

#include <stdatomic.h>

static atomic_int looked, slow;

/* Does this thread make a denormal number of two normal ones? */
static void look(const void *arg)
{
    volatile float small = *(const float *)arg;
    volatile float half = 0.5F;
    volatile float product = small * half;
    atomic_fetch_add(&looked, 1);
    atomic_fetch_add(&slow, product != 0);
}

static void nothing(const void *arg)
{
    (void)arg;
}

/* OpenMP ends six of the eight and makes them anew, outside of our hands. */
START_TEST(threads_that_were_made_anew_flush_as_well)
{
    const float least = 1.17549435e-38F; /* FLT_MIN */
    kernel_float_leave(kernel_float_enter(8));
    kernel_team_each(2, nothing, NULL);
    kernel_team_each(8, nothing, NULL);

    kernel_float_forget();
    unsigned mode = kernel_float_enter(8);
    kernel_team_each(8, look, &least);
    kernel_float_leave(mode);

    ck_assert_int_ge(atomic_load(&looked), 1); /* one, where OpenMP is left out */
#if defined(__SSE2__)                          /* elsewhere nothing is flushed */
    ck_assert_int_eq(atomic_load(&slow), 0);
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_team");
    TCase *tc = tcase_create("kernel_team");
    tcase_add_test(tc, threads_that_were_made_anew_flush_as_well);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
