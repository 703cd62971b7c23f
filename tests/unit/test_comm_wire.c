/* test_comm_wire.c - bytes of the data plane: golden files, round trips, everything that is refused
 */
#include "libworker/comm/group.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <stddef.h>

/* Frozen bytes: tests/golden/data-plane/<name>.bin. */
static void check_golden(const char *name, const uint8_t *bytes, size_t size)
{
    char path[1024];
    uint8_t want[256] = {0};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/data-plane/%s.bin", root != NULL ? root : ".",
             name);
    if (getenv("MSCHED_GOLDEN_WRITE") != NULL) { /* a new format: look at the difference */
        FILE *out = fopen(path, "we");
        ck_assert_ptr_nonnull(out);
        ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
        fclose(out);
    }
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    size_t n = fread(want, 1, sizeof(want), file);
    fclose(file);
    ck_assert_uint_eq(n, size);
    ck_assert_msg(memcmp(bytes, want, size) == 0, "%s: the bytes have changed", name);
}

static struct hello sample_hello(void)
{
    struct hello hello = {
        .version = HELLO_VERSION,
        .type = HELLO_ASK,
        .job = 0x0102030405060708,
        .generation = 0x1112131415161718,
        .rank = 0x21222324,
        .peer = 0x31323334,
        .world = 0x41424344,
        .exchange_count = 0x5152535455565758,
        .segment_bytes = 0x6162636465666768,
        .group = 0x71727374,
    };
    for (int i = 0; i < MS_TOKEN_LEN; i++) {
        hello.token[i] = (uint8_t)(0x80 + i);
    }
    return hello;
}

START_TEST(hello_bytes_are_those_of_the_documents)
{
    uint8_t bytes[HELLO_BYTES];
    struct hello back;
    struct hello hello = sample_hello();
    hello_encode(&hello, bytes);
    check_golden("hello-ask", bytes, sizeof(bytes));
    ck_ms_ok(hello_decode(bytes, &back, err));
    ck_assert_uint_eq(back.job, hello.job);
    ck_assert_uint_eq(back.generation, hello.generation);
    ck_assert_uint_eq(back.rank, hello.rank);
    ck_assert_uint_eq(back.peer, hello.peer);
    ck_assert_uint_eq(back.world, hello.world);
    ck_assert_uint_eq(back.exchange_count, hello.exchange_count);
    ck_assert_uint_eq(back.segment_bytes, hello.segment_bytes);
    ck_assert_uint_eq(back.group, hello.group);
    ck_assert_int_eq(memcmp(back.token, hello.token, MS_TOKEN_LEN), 0);
    hello.type = HELLO_WELCOME;
    hello_encode(&hello, bytes);
    check_golden("hello-welcome", bytes, sizeof(bytes));
    hello.type = HELLO_REFUSED;
    hello.reason = HELLO_OLD_GENERATION;
    memset(hello.token, 0, sizeof(hello.token));
    hello_encode(&hello, bytes);
    check_golden("hello-refused", bytes, sizeof(bytes));
}
END_TEST

START_TEST(frame_bytes_are_those_of_the_documents)
{
    uint8_t bytes[FRAME_HEADER];
    struct frame back;
    struct frame frame = {
        .type = FRAME_DATA,
        .kind = 1,
        .phase = 1,
        .generation = 0x0102030405060708,
        .step = 0x1112131415161718,
        .sequence = 0x2122232425262728,
        .begin = 0x3132333435363738,
        .offset = 0x4142434445464748,
        .length = 0x00098765,
        .group = 0x51525354,
    };
    frame_encode(&frame, bytes);
    check_golden("frame-data", bytes, sizeof(bytes));
    ck_ms_ok(frame_decode(bytes, &back, err));
    ck_assert_uint_eq(back.kind, frame.kind);
    ck_assert_uint_eq(back.phase, frame.phase);
    ck_assert_uint_eq(back.generation, frame.generation);
    ck_assert_uint_eq(back.step, frame.step);
    ck_assert_uint_eq(back.sequence, frame.sequence);
    ck_assert_uint_eq(back.begin, frame.begin);
    ck_assert_uint_eq(back.offset, frame.offset);
    ck_assert_uint_eq(back.length, frame.length);
    ck_assert_uint_eq(back.group, frame.group);
    frame = (struct frame){.type = FRAME_BYE,
                           .phase = FRAME_BYE_ABORTED,
                           .generation = 7,
                           .step = 100,
                           .sequence = 205,
                           .begin = 3};
    frame_encode(&frame, bytes);
    check_golden("frame-bye", bytes, sizeof(bytes));
    frame.phase = FRAME_BYE_DONE;
    frame.begin = FRAME_NOBODY;
    frame_encode(&frame, bytes);
    check_golden("frame-bye-done", bytes, sizeof(bytes));
}
END_TEST

START_TEST(the_head_of_a_segment_lies_as_documented)
{
    struct segment segment;
    struct shm_head head = {
        .job = 1, .generation = 2, .rank = 3, .world = 4, .exchange_count = 1000, .group = 5};
    ck_ms_ok(segment_create(&segment, &head, MS_F32, 1, err));
    check_golden("segment-head", segment.base, sizeof(head));
    ck_assert_uint_eq(segment_counters(&segment)->generation, 2);
    ck_assert_uint_eq((uintptr_t)segment_exchange(&segment) % 64, 0);
    ck_assert_uint_eq(segment.exchange_at, 8192 + 2 * 65536 + 16 * 262144);
    segment_fini(&segment);
    head.exchange_count = 1 << 20;
    ck_ms_ok(segment_create(&segment, &head, MS_F32, 1, err));
    ck_assert_uint_eq(segment.exchange_at, 6 << 20);
    ck_assert_uint_eq((uintptr_t)segment_exchange(&segment) % (2 << 20), 0);
    segment_fini(&segment);
    ck_assert_uint_eq(offsetof(struct shm_counters, published), 64);
    ck_assert_uint_eq(offsetof(struct shm_counters, consumed), 128);
    ck_assert_uint_eq(offsetof(struct shm_counters, waits), 192);
    ck_assert_uint_eq(offsetof(struct shm_counters, bell), 256);
    ck_assert_uint_eq(offsetof(struct shm_counters, sleepers), 320);
    ck_assert_uint_eq(offsetof(struct shm_counters, places), 384);
    ck_assert_uint_eq(sizeof(struct shm_wait), 64);
    struct shm_wait wait = {.waited_ns = 0x0102030405060708,
                            .group = 0x11121314,
                            .whom = ((uint64_t)MESH_BARRIER << 32) | 0x21222324};
    check_golden("segment-wait", (const uint8_t *)&wait, 24); /* nothing in the rest */
}
END_TEST

START_TEST(any_other_bytes_are_refused_or_read_back_alike)
{
    struct hello hello = sample_hello();
    uint8_t good[HELLO_BYTES];
    hello_encode(&hello, good);
    for (uint64_t i = 0; i < 20000; i++) {
        uint8_t bytes[HELLO_BYTES];
        uint8_t again[HELLO_BYTES];
        memcpy(bytes, good, sizeof(bytes));
        for (uint64_t k = 0; k <= i % 3; k++) {
            bytes[ms_rng_below(1, i * 3 + k, sizeof(bytes))] = (uint8_t)ms_rng_u64(2, i * 3 + k);
        }
        if (hello_decode(bytes, &hello, NULL) == 0) {
            hello_encode(&hello, again);
            ck_assert_int_eq(memcmp(bytes, again, sizeof(bytes)), 0);
        }
    }
    struct frame frame = {.type = FRAME_DATA, .length = 5};
    uint8_t head[FRAME_HEADER];
    for (uint64_t i = 0; i < 20000; i++) {
        uint8_t again[FRAME_HEADER];
        frame = (struct frame){.type = FRAME_DATA, .length = 5};
        frame_encode(&frame, head);
        head[ms_rng_below(3, i, sizeof(head))] = (uint8_t)ms_rng_u64(4, i);
        if (frame_decode(head, &frame, NULL) == 0) {
            ck_assert_uint_le(frame.length, MS_DATA_FRAME_MAX);
            frame_encode(&frame, again);
            ck_assert_int_eq(memcmp(head, again, sizeof(head)), 0);
        }
    }
}
END_TEST

START_TEST(what_is_wrong_with_bytes_is_said)
{
    uint8_t bytes[HELLO_BYTES];
    struct hello hello = sample_hello();
    struct frame frame = {.type = 9};
    hello_encode(&hello, bytes);
    memcpy(bytes, "GET ", 4);
    ck_ms_fails(hello_decode(bytes, &hello, err), MS_E_PROTOCOL, "47 45 54 20");
    hello = sample_hello();
    hello.type = 4;
    hello_encode(&hello, bytes);
    ck_ms_fails(hello_decode(bytes, &hello, err), MS_E_PROTOCOL, "type 4");
    hello = sample_hello();
    hello_encode(&hello, bytes);
    bytes[63] = 1;
    ck_ms_fails(hello_decode(bytes, &hello, err), MS_E_PROTOCOL, "values");
    frame_encode(&frame, bytes);
    ck_ms_fails(frame_decode(bytes, &frame, err), MS_E_PROTOCOL, "type 9");
    frame = (struct frame){.type = FRAME_BYE, .length = 1};
    frame_encode(&frame, bytes);
    ck_ms_fails(frame_decode(bytes, &frame, err), MS_E_PROTOCOL, "length");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_wire");
    TCase *tc = tcase_create("wire");
    tcase_add_test(tc, hello_bytes_are_those_of_the_documents);
    tcase_add_test(tc, frame_bytes_are_those_of_the_documents);
    tcase_add_test(tc, the_head_of_a_segment_lies_as_documented);
    tcase_add_test(tc, any_other_bytes_are_refused_or_read_back_alike);
    tcase_add_test(tc, what_is_wrong_with_bytes_is_said);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
