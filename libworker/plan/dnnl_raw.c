/* dnnl_raw.c - the one file with two versions: oneDNN 2.x and 3.x */
#include "libworker/plan/dnnl_raw.h"

#include <stdio.h>
#include <string.h>

static dnnl_prop_kind_t forward_prop(const struct dn_spec *s)
{
    return s->inference ? dnnl_forward_inference : dnnl_forward_training;
}

static dnnl_alg_kind_t pool_alg(const struct dn_spec *s)
{
    int max = s->kind == DN_MAX_POOL_FWD || s->kind == DN_MAX_POOL_BWD;
    return max ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
}

/* Those that 2.6 and 3.x both have. The numbers of hardswish are a part of its 3.x form, and
 * ignored by 2.x. */
static const struct function_row {
    dnnl_alg_kind_t alg;
    float alpha, beta;
    int has_alpha; /* the spec's */
} functions[DN_FUNCTIONS] = {
    [DN_LEAKY_RELU] = {dnnl_eltwise_relu, 0.0F, 0.0F, 1},
    [DN_ELU] = {dnnl_eltwise_elu, 0.0F, 0.0F, 1},
    [DN_GELU] = {dnnl_eltwise_gelu_erf, 0.0F, 0.0F, 0},
    [DN_GELU_TANH] = {dnnl_eltwise_gelu_tanh, 0.0F, 0.0F, 0},
    [DN_SILU] = {dnnl_eltwise_swish, 1.0F, 0.0F, 0},
    [DN_HARD_SWISH] = {dnnl_eltwise_hardswish, 1.0F / 6.0F, 0.5F, 0},
    [DN_SIGMOID] = {dnnl_eltwise_logistic, 0.0F, 0.0F, 0},
    [DN_TANH] = {dnnl_eltwise_tanh, 0.0F, 0.0F, 0},
};

static float function_alpha(const struct dn_spec *s)
{
    const struct function_row *row = &functions[s->function];
    return row->has_alpha ? (float)s->alpha : row->alpha;
}

const char *raw_pd_impl(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success) {
        return "unknown";
    }
    return name;
}

static void add_offer(struct raw_offers *offers, const char *impl)
{
    size_t room = sizeof(offers->text) - offers->size;
    int n = snprintf(offers->text + offers->size, room, "%s%s", offers->size > 0 ? ", " : "", impl);
    if (n > 0 && (size_t)n < room) {
        offers->size += (size_t)n;
    } else {
        offers->text[offers->size] = '\0';
    }
}

static const dnnl_data_type_t data_types[MS_DTYPES] = {
    [MS_F32] = dnnl_f32, [MS_BF16] = dnnl_bf16, [MS_I32] = dnnl_s32, [MS_U8] = dnnl_u8};

static enum ms_dtype dtype_of(dnnl_data_type_t type)
{
    int dtype = 0;
    while (dtype < MS_DTYPES && data_types[dtype] != type) {
        dtype++;
    }
    return dtype < MS_DTYPES ? (enum ms_dtype)dtype : MS_U8;
}

#if DNNL_VERSION_MAJOR >= 3

RAW_VIEW raw_view(const struct dn_md *md)
{
    return md == NULL ? NULL : md->desc;
}

dnnl_status_t raw_md_by_tag(dnnl_memory_desc_t *ret, enum ms_dtype dtype, int n_dims,
                            const int64_t *dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(ret, n_dims, dims, data_types[dtype], tag);
}

dnnl_status_t raw_md_part(dnnl_memory_desc_t *ret, RAW_VIEW whole, const int64_t *dims,
                          const int64_t *offsets)
{
    return dnnl_memory_desc_create_submemory(ret, whole, dims, offsets);
}

enum ms_dtype raw_md_dtype(RAW_VIEW view)
{
    dnnl_data_type_t type = dnnl_data_type_undef;
    (void)dnnl_memory_desc_query(view, dnnl_query_data_type, &type);
    return dtype_of(type);
}

dnnl_status_t raw_md_copy(dnnl_memory_desc_t *ret, RAW_VIEW from)
{
    return dnnl_memory_desc_clone(ret, from);
}

void raw_md_free(dnnl_memory_desc_t *desc)
{
    (void)dnnl_memory_desc_destroy(*desc);
}

int raw_md_dims(RAW_VIEW view, int64_t *dims)
{
    int n_dims = 0;
    const dnnl_dims_t *from = NULL;
    if (dnnl_memory_desc_query(view, dnnl_query_ndims_s32, &n_dims) != dnnl_success ||
        dnnl_memory_desc_query(view, dnnl_query_dims, &from) != dnnl_success) {
        return 0;
    }
    for (int d = 0; d < n_dims && d < DN_DIMS_MAX; d++) {
        dims[d] = (*from)[d];
    }
    return n_dims;
}

RAW_VIEW raw_pd_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    RAW_VIEW view = dnnl_primitive_desc_query_md(pd, what, index);
    int64_t dims[DN_DIMS_MAX];
    return view == NULL || raw_md_dims(view, dims) == 0 ? NULL : view;
}

dnnl_status_t raw_append_relu(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_eltwise(post_ops, dnnl_eltwise_relu, 0.0F, 0.0F);
}

dnnl_status_t raw_pd_create(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                            const struct dn_spec *s, const_dnnl_primitive_desc_t hint,
                            const_dnnl_primitive_attr_t attr)
{
    static const dnnl_dims_t zero = {0};
    RAW_VIEW src = raw_view(s->src);
    RAW_VIEW weights = raw_view(s->weights);
    RAW_VIEW bias = raw_view(s->bias);
    RAW_VIEW dst = raw_view(s->dst);
    dnnl_alg_kind_t conv = dnnl_convolution_direct;
    switch (s->kind) {
    case DN_CONV_FWD:
        return dnnl_convolution_forward_primitive_desc_create(
            ret, engine, forward_prop(s), conv, src, weights, bias, dst, s->stride, s->gap,
            s->pad_begin, s->pad_end, attr);
    case DN_CONV_BWD_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            ret, engine, conv, src, weights, dst, s->stride, s->gap, s->pad_begin, s->pad_end, hint,
            attr);
    case DN_CONV_BWD_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            ret, engine, conv, src, weights, bias, dst, s->stride, s->gap, s->pad_begin, s->pad_end,
            hint, attr);
    case DN_DENSE_FWD:
        return dnnl_inner_product_forward_primitive_desc_create(ret, engine, forward_prop(s), src,
                                                                weights, bias, dst, attr);
    case DN_DENSE_BWD_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(ret, engine, src, weights,
                                                                      dst, hint, attr);
    case DN_DENSE_BWD_WEIGHTS:
        return dnnl_inner_product_backward_weights_primitive_desc_create(ret, engine, src, weights,
                                                                         bias, dst, hint, attr);
    case DN_MAX_POOL_FWD:
    case DN_AVG_POOL_FWD:
        return dnnl_pooling_forward_primitive_desc_create(ret, engine, forward_prop(s), pool_alg(s),
                                                          src, dst, s->stride, s->kernel, zero,
                                                          s->pad_begin, s->pad_end, attr);
    case DN_MAX_POOL_BWD:
    case DN_AVG_POOL_BWD:
        return dnnl_pooling_backward_primitive_desc_create(ret, engine, pool_alg(s), src, dst,
                                                           s->stride, s->kernel, zero, s->pad_begin,
                                                           s->pad_end, hint, attr);
    case DN_ELTWISE_FWD:
        return dnnl_eltwise_forward_primitive_desc_create(
            ret, engine, forward_prop(s), functions[s->function].alg, src, src, function_alpha(s),
            functions[s->function].beta, attr);
    case DN_ELTWISE_BWD:
        return dnnl_eltwise_backward_primitive_desc_create(ret, engine, functions[s->function].alg,
                                                           src, src, src, function_alpha(s),
                                                           functions[s->function].beta, hint, attr);
    case DN_REORDER:
        return dnnl_reorder_primitive_desc_create(ret, src, engine, dst, engine, attr);
    case DN_KINDS:
        break;
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t raw_pd_create_named(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const struct dn_spec *spec, const_dnnl_primitive_desc_t hint,
                                  const_dnnl_primitive_attr_t attr, const char *impl,
                                  struct raw_offers *offers)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = raw_pd_create(&pd, engine, spec, hint, attr);
    while (status == dnnl_success && strcmp(raw_pd_impl(pd), impl) != 0) {
        add_offer(offers, raw_pd_impl(pd));
        status = dnnl_primitive_desc_next_impl(pd);
    }
    if (status == dnnl_success) {
        *ret = pd;
        return status;
    }
    if (pd != NULL) {
        (void)dnnl_primitive_desc_destroy(pd);
    }
    return status == dnnl_last_impl_reached ? dnnl_unimplemented : status;
}

#else /* 2.x */

RAW_VIEW raw_view(const struct dn_md *md)
{
    return md == NULL ? NULL : &md->desc;
}

dnnl_status_t raw_md_by_tag(dnnl_memory_desc_t *ret, enum ms_dtype dtype, int n_dims,
                            const int64_t *dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(ret, n_dims, dims, data_types[dtype], tag);
}

dnnl_status_t raw_md_part(dnnl_memory_desc_t *ret, RAW_VIEW whole, const int64_t *dims,
                          const int64_t *offsets)
{
    return dnnl_memory_desc_init_submemory(ret, whole, dims, offsets);
}

enum ms_dtype raw_md_dtype(RAW_VIEW view)
{
    return dtype_of(view->data_type);
}

dnnl_status_t raw_md_copy(dnnl_memory_desc_t *ret, RAW_VIEW from)
{
    *ret = *from;
    return dnnl_success;
}

void raw_md_free(dnnl_memory_desc_t *desc)
{
    (void)desc;
}

int raw_md_dims(RAW_VIEW view, int64_t *dims)
{
    for (int d = 0; d < view->ndims && d < DN_DIMS_MAX; d++) {
        dims[d] = view->dims[d];
    }
    return view->ndims;
}

RAW_VIEW raw_pd_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index)
{
    RAW_VIEW view = dnnl_primitive_desc_query_md(pd, what, index);
    return view == NULL || view->ndims == 0 ? NULL : view;
}

dnnl_status_t raw_append_relu(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_eltwise(post_ops, 1.0F, dnnl_eltwise_relu, 0.0F, 0.0F);
}

/* 2.x first fills a descriptor of the operation; its descriptors have no common type. */
union raw_op {
    dnnl_convolution_desc_t conv;
    dnnl_inner_product_desc_t dense;
    dnnl_pooling_desc_t pool;
    dnnl_eltwise_desc_t eltwise;
};

static dnnl_status_t init_op(union raw_op *op, const struct dn_spec *s)
{
    RAW_VIEW src = raw_view(s->src);
    RAW_VIEW weights = raw_view(s->weights);
    RAW_VIEW bias = raw_view(s->bias);
    RAW_VIEW dst = raw_view(s->dst);
    dnnl_alg_kind_t conv = dnnl_convolution_direct;
    switch (s->kind) {
    case DN_CONV_FWD:
        return dnnl_dilated_convolution_forward_desc_init(&op->conv, forward_prop(s), conv, src,
                                                          weights, bias, dst, s->stride, s->gap,
                                                          s->pad_begin, s->pad_end);
    case DN_CONV_BWD_DATA:
        return dnnl_dilated_convolution_backward_data_desc_init(
            &op->conv, conv, src, weights, dst, s->stride, s->gap, s->pad_begin, s->pad_end);
    case DN_CONV_BWD_WEIGHTS:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            &op->conv, conv, src, weights, bias, dst, s->stride, s->gap, s->pad_begin, s->pad_end);
    case DN_DENSE_FWD:
        return dnnl_inner_product_forward_desc_init(&op->dense, forward_prop(s), src, weights, bias,
                                                    dst);
    case DN_DENSE_BWD_DATA:
        return dnnl_inner_product_backward_data_desc_init(&op->dense, src, weights, dst);
    case DN_DENSE_BWD_WEIGHTS:
        return dnnl_inner_product_backward_weights_desc_init(&op->dense, src, weights, bias, dst);
    case DN_MAX_POOL_FWD:
    case DN_AVG_POOL_FWD:
        return dnnl_pooling_forward_desc_init(&op->pool, forward_prop(s), pool_alg(s), src, dst,
                                              s->stride, s->kernel, s->pad_begin, s->pad_end);
    case DN_MAX_POOL_BWD:
    case DN_AVG_POOL_BWD:
        return dnnl_pooling_backward_desc_init(&op->pool, pool_alg(s), src, dst, s->stride,
                                               s->kernel, s->pad_begin, s->pad_end);
    case DN_ELTWISE_FWD:
        return dnnl_eltwise_forward_desc_init(&op->eltwise, forward_prop(s),
                                              functions[s->function].alg, src, function_alpha(s),
                                              functions[s->function].beta);
    case DN_ELTWISE_BWD:
        return dnnl_eltwise_backward_desc_init(&op->eltwise, functions[s->function].alg, src, src,
                                               function_alpha(s), functions[s->function].beta);
    case DN_REORDER:
    case DN_KINDS:
        break;
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t raw_pd_create(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                            const struct dn_spec *spec, const_dnnl_primitive_desc_t hint,
                            const_dnnl_primitive_attr_t attr)
{
    if (spec->kind == DN_REORDER) {
        return dnnl_reorder_primitive_desc_create(ret, raw_view(spec->src), engine,
                                                  raw_view(spec->dst), engine, attr);
    }
    union raw_op op;
    dnnl_status_t status = init_op(&op, spec);
    return status != dnnl_success ? status
                                  : dnnl_primitive_desc_create(ret, &op, attr, engine, hint);
}

/* The first from where the iterator stands. */
static dnnl_status_t find_named(dnnl_primitive_desc_iterator_t at, const char *impl,
                                struct raw_offers *offers, dnnl_primitive_desc_t *ret)
{
    dnnl_status_t status = dnnl_success;
    while (status == dnnl_success) {
        dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(at);
        if (pd == NULL) {
            return dnnl_out_of_memory;
        }
        if (strcmp(raw_pd_impl(pd), impl) == 0) {
            *ret = pd;
            return dnnl_success;
        }
        add_offer(offers, raw_pd_impl(pd));
        (void)dnnl_primitive_desc_destroy(pd);
        status = dnnl_primitive_desc_iterator_next(at);
    }
    return status == dnnl_iterator_ends ? dnnl_unimplemented : status;
}

dnnl_status_t raw_pd_create_named(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const struct dn_spec *spec, const_dnnl_primitive_desc_t hint,
                                  const_dnnl_primitive_attr_t attr, const char *impl,
                                  struct raw_offers *offers)
{
    union raw_op op;
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t status = init_op(&op, spec);
    if (status == dnnl_success) {
        status = dnnl_primitive_desc_iterator_create(&at, &op, attr, engine, hint);
    }
    if (status == dnnl_success) {
        status = find_named(at, impl, offers, ret);
        (void)dnnl_primitive_desc_iterator_destroy(at);
    }
    return status;
}

#endif
