/* test_plan_dtype.c - types of tensors in a plan: by role, in memory descriptors, and refused */
#include "libworker/plan/internal.h"
#include "tests/test.h"

#include <stdio.h>

/* ---- roles --------------------------------------------------------------------------------------
 */

START_TEST(values_have_the_precision_and_what_is_summed_is_f32)
{
    static const enum ms_dtype precisions[] = {MS_F32, MS_BF16};
    for (size_t i = 0; i < MS_ARRAY_SIZE(precisions); i++) {
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_DATA), precisions[i]);
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_VALUE), precisions[i]);
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_PARAM), MS_F32);
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_GRAD), MS_F32);
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_STAT), MS_F32);
        ck_assert_int_eq(plan_dtype(precisions[i], TENSOR_STATE), MS_F32);
    }
}
END_TEST

static int dtypes_of(enum ms_dtype precision, enum ms_dtype label, struct ms_err *err)
{
    struct shape images = {4, {2, 3, 8, 8}};
    struct shape rows = {1, {2}};
    struct plan plan = {.graph = NULL};
    struct graph *graph = graph_create("g");
    ck_assert_int_ge(graph_data(graph, "image", &images, NULL), 0);
    ck_assert_int_ge(graph_label(graph, "label", &rows, label, NULL), 0);
    plan.graph = graph;
    int rc = plan_set_dtypes(&plan, precision, err);
    if (rc == 0) {
        ck_assert_int_eq(plan.precision, precision);
        ck_assert_int_eq(plan.weights_dtype, MS_F32);
        ck_assert_int_eq(plan.exchange_dtype, MS_F32);
        ck_assert_int_eq(plan.stats_dtype, MS_F32);
    }
    graph_destroy(graph);
    return rc;
}

START_TEST(types_without_code_are_refused_by_tensor_and_type)
{
    ck_ms_ok(dtypes_of(MS_F32, MS_I32, err));
    ck_ms_ok(dtypes_of(MS_F32, MS_F32, err));
    ck_ms_fails(dtypes_of(MS_BF16, MS_I32, err), MS_E_UNSUPPORTED,
                "tensor image of graph g would be bf16");
    ck_ms_fails(dtypes_of(MS_U8, MS_I32, err), MS_E_UNSUPPORTED,
                "tensor image of graph g would be u8");
    ck_ms_fails(dtypes_of(MS_F32, MS_U8, err), MS_E_UNSUPPORTED,
                "tensor label of graph g would be u8");
}
END_TEST

/* ---- memory descriptors -------------------------------------------------------------------------
 */

static struct dn *dn;
static const int64_t dims[] = {2, 6, 5, 4}; /* 6 channels: 16 with their padding */

static void setup(void)
{
    ck_ms_ok(dn_create(&dn, err));
}

static void teardown(void)
{
    dn_destroy(dn);
}

START_TEST(a_descriptor_counts_elements_of_its_type)
{
    for (int i = 0; i < MS_DTYPES; i++) {
        enum ms_dtype dtype = (enum ms_dtype)i;
        const struct dn_md *plain = dn_md(dn, dtype, 4, dims, DN_PLAIN);
        const struct dn_md *blocked = dn_md(dn, dtype, 4, dims, DN_NCHW16C);
        ck_assert_ptr_nonnull(plain);
        ck_assert_int_eq(dn_md_dtype(plain), dtype);
        ck_assert_int_eq(dn_md_tag(blocked), DN_NCHW16C);
        ck_assert_uint_eq(dn_md_count(plain), 2 * 6 * 5 * 4);
        ck_assert_uint_eq(dn_md_count(blocked), 2 * 16 * 5 * 4);
        ck_assert_uint_eq(dn_md_bytes(blocked), ms_dtype_size(dtype, 2 * 16 * 5 * 4));
        ck_assert_str_eq(dn_md_name(dn, blocked), "aBcd16b");
    }
}
END_TEST

START_TEST(descriptors_of_other_types_are_others)
{
    static const enum dn_tag tags[] = {DN_ANY, DN_PLAIN, DN_NHWC};
    for (size_t i = 0; i < MS_ARRAY_SIZE(tags); i++) {
        const struct dn_md *f32 = dn_md(dn, MS_F32, 4, dims, tags[i]);
        const struct dn_md *bf16 = dn_md(dn, MS_BF16, 4, dims, tags[i]);
        ck_assert_ptr_ne(f32, bf16);
        ck_assert_ptr_eq(dn_md(dn, MS_F32, 4, dims, tags[i]), f32);
        ck_assert_ptr_eq(dn_md(dn, MS_BF16, 4, dims, tags[i]), bf16);
    }
}
END_TEST

START_TEST(another_layout_keeps_the_type)
{
    const struct dn_md *plain = dn_md(dn, MS_BF16, 4, dims, DN_PLAIN);

    ck_assert_ptr_eq(dn_md_as(dn, plain, DN_NHWC), dn_md(dn, MS_BF16, 4, dims, DN_NHWC));
    ck_assert_ptr_eq(dn_md_as_named(dn, plain, "acdb"), dn_md(dn, MS_BF16, 4, dims, DN_NHWC));
    ck_assert_ptr_eq(dn_md_as(dn, dn_md_as(dn, plain, DN_ANY), DN_PLAIN), plain);
    ck_assert_ptr_null(dn_md_as_named(dn, plain, "no such layout"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_dtype");
    TCase *roles = tcase_create("roles");
    tcase_add_test(roles, values_have_the_precision_and_what_is_summed_is_f32);
    tcase_add_test(roles, types_without_code_are_refused_by_tensor_and_type);
    suite_add_tcase(suite, roles);
    TCase *mds = tcase_create("descriptors");
    tcase_add_checked_fixture(mds, setup, teardown);
    tcase_add_test(mds, a_descriptor_counts_elements_of_its_type);
    tcase_add_test(mds, descriptors_of_other_types_are_others);
    tcase_add_test(mds, another_layout_keeps_the_type);
    suite_add_tcase(suite, mds);
    return test_run(suite);
}
