/* test_comm_segment.c - the memory of an exchange buffer is there at once, and in large pages */
#include "libworker/comm/shm.h"
#include "tests/test.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, FLOATS = 4 * (SHM_HUGE / 4) + 1000, PAGES = 4 * (SHM_HUGE / PAGE) };

static struct shm_head head_of(size_t floats)
{
    return (struct shm_head){
        .job = 1, .generation = 7, .rank = 1, .world = 2, .exchange_count = floats};
}

static struct segment make(size_t floats, int shared)
{
    const struct shm_head head = head_of(floats);
    struct segment segment;
    ck_ms_ok(segment_create(&segment, &head, MS_F32, shared, err));
    return segment;
}

static struct segment map(const struct segment *of, size_t floats)
{
    const struct shm_head want = head_of(floats);
    struct segment segment;
    ck_ms_ok(segment_map(&segment, dup(of->fd), &want, MS_F32, "rank 1", err));
    return segment;
}

/* A kernel from 6.1 on, with large pages that are free and not forbidden. */
static int has_large_pages(void)
{
    const struct segment probe = make(FLOATS, 1);
    struct segment own = probe;
    uint8_t *at = segment_exchange(&own);
    *at = 1;
    const int has = madvise(at, SHM_HUGE, 25 /* MADV_COLLAPSE */) == 0;
    segment_fini(&own);
    return has;
}

/* A sanitizer's own memory would fault, too. */
__attribute__((no_sanitize("thread", "address"))) static long faults_of_touch(uint8_t *at,
                                                                              size_t bytes)
{
    struct rusage before;
    struct rusage after;
    getrusage(RUSAGE_THREAD, &before);
    for (size_t i = 0; i < bytes; i += PAGE) {
        *(volatile uint8_t *)(at + i) = 1;
    }
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_minflt - before.ru_minflt;
}

START_TEST(neither_owner_nor_peer_faults_each_page_of_a_large_one)
{
    const int is_large = has_large_pages();
    struct segment own = make(FLOATS, 1);

    segment_populate(&own);
    struct segment peer = map(&own, FLOATS);
    const size_t bytes = (size_t)PAGES * PAGE;
    const long owner_faults = faults_of_touch(segment_exchange(&own), bytes);
    const long peer_faults = faults_of_touch(segment_exchange(&peer), bytes);

    ck_assert_msg(!is_large || owner_faults < PAGES / 4, "%ld faults of the owner", owner_faults);
    ck_assert_msg(!is_large || peer_faults < PAGES / 4, "%ld faults of the peer", peer_faults);
    segment_fini(&peer);
    segment_fini(&own);
}
END_TEST

START_TEST(what_is_in_it_stays_and_the_rest_is_zero)
{
    struct segment own = make(FLOATS, 1);
    struct segment peer = map(&own, FLOATS);
    float *mine = segment_exchange(&own);
    const float *theirs = segment_exchange(&peer);
    mine[5] = 5.0F;
    mine[FLOATS - 1] = 6.0F;

    segment_populate(&own);
    mine[FLOATS / 2] = 7.0F;

    for (size_t i = 0; i < FLOATS; i++) {
        const float want = i == 5 ? 5.0F : i == FLOATS - 1 ? 6.0F : i == FLOATS / 2 ? 7.0F : 0.0F;
        ck_assert_msg(mine[i] == want && theirs[i] == want, "element %zu", i);
    }
    segment_fini(&own);
    segment_fini(&peer);
}
END_TEST

START_TEST(a_small_one_and_that_of_a_rank_alone_are_what_they_were)
{
    struct segment small = make(1000, 1);
    struct segment alone = make(FLOATS, 0);

    segment_populate(&small);
    segment_populate(&alone);

    ck_assert(((float *)segment_exchange(&small))[999] == 0.0F);
    ck_assert(((float *)segment_exchange(&alone))[FLOATS - 1] == 0.0F);
    segment_fini(&small);
    segment_fini(&alone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_segment");
    TCase *tc = tcase_create("populate");
    tcase_add_test(tc, neither_owner_nor_peer_faults_each_page_of_a_large_one);
    tcase_add_test(tc, what_is_in_it_stays_and_the_rest_is_zero);
    tcase_add_test(tc, a_small_one_and_that_of_a_rank_alone_are_what_they_were);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
