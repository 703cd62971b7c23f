/* dnnl.c - engine, interned memory descriptors and primitives */
#include "libworker/plan/dnnl.h"

#include "libworker/plan/dnnl_raw.h"
#include "proto/macros.h"

#include <oneapi/dnnl/dnnl_debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MD_LISTS = 64 };

struct dn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct dn_md *mds[MD_LISTS]; /* by md_list */
    struct dn_md *twins;         /* no two of them are asked for in one place: a list will do */
};

struct dn_pd {
    dnnl_primitive_desc_t pd;
    enum dn_kind kind;
};

struct dn_prim {
    dnnl_primitive_t prim;
    int n_args;
    dnnl_exec_arg_t args[DN_ROLES];
    enum dn_role roles[DN_ROLES];
    const struct dn_md *mds[DN_ROLES];
};

#define BIT(role) (1U << (role))

/* Which arguments a primitive of a kind has; those that its descriptor leaves empty drop out. */
static const struct kind_row {
    const char *name;
    unsigned roles;
} kinds[DN_KINDS] = {
    [DN_CONV_FWD] = {"convolution", BIT(DN_SRC) | BIT(DN_WEIGHTS) | BIT(DN_BIAS) | BIT(DN_DST)},
    [DN_CONV_BWD_DATA] = {"convolution backward data",
                          BIT(DN_DIFF_SRC) | BIT(DN_WEIGHTS) | BIT(DN_DIFF_DST)},
    [DN_CONV_BWD_WEIGHTS] = {"convolution backward weights", BIT(DN_SRC) | BIT(DN_DIFF_WEIGHTS) |
                                                                 BIT(DN_DIFF_BIAS) |
                                                                 BIT(DN_DIFF_DST)},
    [DN_DENSE_FWD] = {"inner product", BIT(DN_SRC) | BIT(DN_WEIGHTS) | BIT(DN_BIAS) | BIT(DN_DST)},
    [DN_DENSE_BWD_DATA] = {"inner product backward data",
                           BIT(DN_DIFF_SRC) | BIT(DN_WEIGHTS) | BIT(DN_DIFF_DST)},
    [DN_DENSE_BWD_WEIGHTS] = {"inner product backward weights", BIT(DN_SRC) | BIT(DN_DIFF_WEIGHTS) |
                                                                    BIT(DN_DIFF_BIAS) |
                                                                    BIT(DN_DIFF_DST)},
    [DN_MAX_POOL_FWD] = {"max pooling", BIT(DN_SRC) | BIT(DN_DST) | BIT(DN_WORKSPACE)},
    [DN_MAX_POOL_BWD] = {"max pooling backward",
                         BIT(DN_DIFF_SRC) | BIT(DN_DIFF_DST) | BIT(DN_WORKSPACE)},
    [DN_AVG_POOL_FWD] = {"average pooling", BIT(DN_SRC) | BIT(DN_DST)},
    [DN_AVG_POOL_BWD] = {"average pooling backward", BIT(DN_DIFF_SRC) | BIT(DN_DIFF_DST)},
    [DN_ELTWISE_FWD] = {"function of elements", BIT(DN_SRC) | BIT(DN_DST)},
    [DN_ELTWISE_BWD] = {"function of elements backward",
                        BIT(DN_SRC) | BIT(DN_DIFF_SRC) | BIT(DN_DIFF_DST)},
    [DN_REORDER] = {"reorder", BIT(DN_SRC) | BIT(DN_DST)},
};

/* How an argument is called in a primitive and where its descriptor is asked for. */
static const struct role_row {
    int arg;
    dnnl_query_t what;
    int index;
} roles[DN_ROLES] = {
    [DN_SRC] = {DNNL_ARG_SRC_0, dnnl_query_src_md, 0},
    [DN_WEIGHTS] = {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
    [DN_BIAS] = {DNNL_ARG_BIAS, dnnl_query_weights_md, 1},
    [DN_DST] = {DNNL_ARG_DST, dnnl_query_dst_md, 0},
    [DN_DIFF_SRC] = {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0},
    [DN_DIFF_WEIGHTS] = {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0},
    [DN_DIFF_BIAS] = {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1},
    [DN_DIFF_DST] = {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
    [DN_WORKSPACE] = {DNNL_ARG_WORKSPACE, dnnl_query_workspace_md, 0},
    [DN_SCRATCHPAD] = {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, 0},
};

int dn_create(struct dn **ret, struct ms_err *err)
{
    struct dn *dn = calloc(1, sizeof(*dn));
    if (dn == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for oneDNN's engine");
    }
    dnnl_status_t status = dnnl_engine_create(&dn->engine, dnnl_cpu, 0);
    if (status == dnnl_success) {
        status = dnnl_stream_create(&dn->stream, dn->engine, dnnl_stream_default_flags);
    }
    if (status != dnnl_success) {
        dn_destroy(dn);
        return ms_fail(err, MS_E_UNSUPPORTED, "oneDNN %s: no CPU engine: %s", dn_version(),
                       dnnl_status2str(status));
    }
    *ret = dn;
    return 0;
}

static void free_mds(struct dn_md *list)
{
    while (list != NULL) {
        struct dn_md *md = list;
        list = md->next;
        raw_md_free(&md->desc);
        free(md);
    }
}

void dn_destroy(struct dn *dn)
{
    if (dn == NULL) {
        return;
    }
    for (int i = 0; i < MD_LISTS; i++) {
        free_mds(dn->mds[i]);
    }
    free_mds(dn->twins);
    if (dn->stream != NULL) {
        (void)dnnl_stream_destroy(dn->stream);
    }
    if (dn->engine != NULL) {
        (void)dnnl_engine_destroy(dn->engine);
    }
    free(dn);
}

/* Which list holds the descriptors of these dimensions: a plan has some hundreds. */
static int md_list(int n_dims, const int64_t *dims)
{
    uint64_t hash = (uint64_t)n_dims;
    for (int d = 0; d < n_dims; d++) {
        hash = hash * 31 + (uint64_t)dims[d];
    }
    return (int)((hash ^ hash >> 6 ^ hash >> 12) % MD_LISTS);
}

/* ---- names of layouts ---------------------------------------------------------------------------
 *
 * oneDNN has 600 of them and finds none quickly: those that its fp32 code for CPUs likes come
 * first.
 */

static const struct usual_row {
    const char *name;
    dnnl_format_tag_t tag;
    int n_dims;
} usual[] = {
    {"a", dnnl_a, 1},
    {"ab", dnnl_ab, 2},
    {"ba", dnnl_ba, 2},
    {"AB16b16a", dnnl_AB16b16a, 2},
    {"AB16b32a", dnnl_AB16b32a, 2},
    {"AB16b64a", dnnl_AB16b64a, 2},
    {"abcd", dnnl_abcd, 4},
    {"acdb", dnnl_acdb, 4},
    {"aBcd16b", dnnl_aBcd16b, 4},
    {"aBcd8b", dnnl_aBcd8b, 4},
    {"ABcd16b16a", dnnl_ABcd16b16a, 4},
    {"ABcd16a16b", dnnl_ABcd16a16b, 4},
    {"BAcd16a16b", dnnl_BAcd16a16b, 4},
    {"Acdb16a", dnnl_Acdb16a, 4},
    {"Abcd16a", dnnl_Abcd16a, 4},
    {"ABcd8b8a", dnnl_ABcd8b8a, 4},
    {"ABcd8a8b", dnnl_ABcd8a8b, 4},
    {"Acdb8a", dnnl_Acdb8a, 4},
    {"Abcd8a", dnnl_Abcd8a, 4},
};

static dnnl_format_tag_t tag_named(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(usual); i++) {
        if (strcmp(usual[i].name, name) == 0) {
            return usual[i].tag;
        }
    }
    int tag = dnnl_format_tag_any + 1;
    while (tag < dnnl_format_tag_last &&
           strcmp(dnnl_fmt_tag2str((dnnl_format_tag_t)tag), name) != 0) {
        tag++;
    }
    return tag < dnnl_format_tag_last ? (dnnl_format_tag_t)tag : dnnl_format_tag_undef;
}

static int is_called(const struct dn_md *md, dnnl_format_tag_t tag)
{
    struct dn_md probe = {0};
    if (raw_md_by_tag(&probe.desc, md->dtype, md->n_dims, md->dims, tag) != dnnl_success) {
        return 0;
    }
    int equal = dnnl_memory_desc_equal(raw_view(&probe), raw_view(md));
    raw_md_free(&probe.desc);
    return equal;
}

/* Where a dimension is 1 several names are one layout: the first of them. */
static const char *find_name(const struct dn_md *md)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(usual); i++) {
        if (usual[i].n_dims == md->n_dims && is_called(md, usual[i].tag)) {
            return usual[i].name;
        }
    }
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++) {
        if (is_called(md, (dnnl_format_tag_t)tag)) {
            return dnnl_fmt_tag2str((dnnl_format_tag_t)tag);
        }
    }
    return NULL;
}

const char *dn_md_name(struct dn *dn, const struct dn_md *md)
{
    /* md is one of them: what is found is kept */
    struct dn_md *own = dn->mds[md_list(md->n_dims, md->dims)];
    while (own != md) {
        own = own->next;
    }
    if (!own->is_looked_up) {
        own->name = find_name(own);
        own->is_looked_up = 1;
    }
    return own->name;
}

int dn_md_is_named(struct dn *dn, const struct dn_md *md, const char *name)
{
    const char *own = md == NULL ? NULL : dn_md_name(dn, md);
    return own != NULL && strcmp(own, name) == 0;
}

/* ---- memory descriptors -------------------------------------------------------------------------
 */

static dnnl_format_tag_t format_tag(int n_dims, enum dn_tag tag)
{
    static const dnnl_format_tag_t plain[DN_DIMS_MAX + 1] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    switch (tag) {
    case DN_ANY:
        return dnnl_format_tag_any;
    case DN_PLAIN:
        return plain[n_dims];
    case DN_NCHW8C:
        return n_dims == 4 ? dnnl_nChw8c : dnnl_format_tag_undef;
    case DN_NCHW16C:
        return n_dims == 4 ? dnnl_nChw16c : dnnl_format_tag_undef;
    case DN_NHWC:
        return n_dims == 4 ? dnnl_nhwc : dnnl_format_tag_undef;
    case DN_OTHER:
        break;
    }
    return dnnl_format_tag_undef;
}

/* The first of our layouts that the descriptor is. */
static enum dn_tag recognise(RAW_VIEW view, enum ms_dtype dtype, int n_dims, const int64_t *dims)
{
    static const enum dn_tag tags[] = {DN_PLAIN, DN_NCHW16C, DN_NCHW8C, DN_NHWC};
    enum dn_tag found = DN_OTHER;
    for (size_t i = 0; i < MS_ARRAY_SIZE(tags) && found == DN_OTHER; i++) {
        dnnl_format_tag_t format = format_tag(n_dims, tags[i]);
        dnnl_memory_desc_t desc;
        if (format == dnnl_format_tag_undef ||
            raw_md_by_tag(&desc, dtype, n_dims, dims, format) != dnnl_success) {
            continue;
        }
        struct dn_md probe = {.desc = desc};
        if (dnnl_memory_desc_equal(raw_view(&probe), view)) {
            found = tags[i];
        }
        raw_md_free(&desc);
    }
    return found;
}

static const struct dn_md *find_any(const struct dn *dn, enum ms_dtype dtype, int n_dims,
                                    const int64_t *dims)
{
    const struct dn_md *md = dn->mds[md_list(n_dims, dims)];
    for (; md != NULL; md = md->next) {
        if (md->tag == DN_ANY && md->dtype == dtype && md->n_dims == n_dims &&
            memcmp(md->dims, dims, (size_t)n_dims * sizeof(*dims)) == 0) {
            return md;
        }
    }
    return NULL;
}

static const struct dn_md *find_equal(const struct dn *dn, RAW_VIEW view, int list, size_t bytes)
{
    for (const struct dn_md *md = dn->mds[list]; md != NULL; md = md->next) {
        if (md->tag != DN_ANY && md->bytes == bytes && dnnl_memory_desc_equal(raw_view(md), view)) {
            return md;
        }
    }
    return NULL;
}

static const struct dn_md *intern(struct dn *dn, RAW_VIEW view, int any)
{
    int64_t dims[DN_DIMS_MAX] = {0};
    int n_dims = raw_md_dims(view, dims);
    if (n_dims < 1 || n_dims > DN_DIMS_MAX) {
        return NULL;
    }
    size_t bytes = any ? 0 : dnnl_memory_desc_get_size(view);
    int list = md_list(n_dims, dims);
    enum ms_dtype dtype = raw_md_dtype(view);
    const struct dn_md *found =
        any ? find_any(dn, dtype, n_dims, dims) : find_equal(dn, view, list, bytes);
    if (found != NULL) {
        return found;
    }
    struct dn_md *md = calloc(1, sizeof(*md));
    if (md == NULL || raw_md_copy(&md->desc, view) != dnnl_success) {
        free(md);
        return NULL;
    }
    md->dtype = dtype;
    md->bytes = bytes;
    md->n_dims = n_dims;
    memcpy(md->dims, dims, sizeof(dims));
    md->tag = any ? DN_ANY : recognise(view, dtype, n_dims, dims);
    md->next = dn->mds[list];
    dn->mds[list] = md;
    return md;
}

const struct dn_md *dn_md(struct dn *dn, enum ms_dtype dtype, int n_dims, const int64_t *dims,
                          enum dn_tag tag)
{
    if (n_dims < 1 || n_dims > DN_DIMS_MAX) {
        return NULL;
    }
    struct dn_md probe = {0};
    dnnl_format_tag_t format = format_tag(n_dims, tag);
    if (format == dnnl_format_tag_undef ||
        raw_md_by_tag(&probe.desc, dtype, n_dims, dims, format) != dnnl_success) {
        return NULL;
    }
    const struct dn_md *md = intern(dn, raw_view(&probe), tag == DN_ANY);
    raw_md_free(&probe.desc);
    return md;
}

int dn_md_fail(struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "plan: no memory for a layout");
}

const struct dn_md *dn_md_named(struct dn *dn, enum ms_dtype dtype, int n_dims, const int64_t *dims,
                                const char *name)
{
    struct dn_md probe = {0};
    dnnl_format_tag_t tag = tag_named(name);
    if (tag == dnnl_format_tag_undef || n_dims < 1 || n_dims > DN_DIMS_MAX ||
        raw_md_by_tag(&probe.desc, dtype, n_dims, dims, tag) != dnnl_success) {
        return NULL;
    }
    const struct dn_md *md = intern(dn, raw_view(&probe), 0);
    raw_md_free(&probe.desc);
    return md;
}

const struct dn_md *dn_md_as(struct dn *dn, const struct dn_md *md, enum dn_tag tag)
{
    return dn_md(dn, md->dtype, md->n_dims, md->dims, tag);
}

const struct dn_md *dn_md_as_named(struct dn *dn, const struct dn_md *md, const char *name)
{
    return dn_md_named(dn, md->dtype, md->n_dims, md->dims, name);
}

const struct dn_md *dn_md_twin(struct dn *dn, const struct dn_md *md, enum dn_tag tag)
{
    const dnnl_format_tag_t format = format_tag(md->n_dims, tag);
    if (md->tag == DN_ANY || format == dnnl_format_tag_undef || !is_called(md, format)) {
        return NULL;
    }
    for (const struct dn_md *twin = dn->twins; twin != NULL; twin = twin->next) {
        if (twin->tag == tag && twin->dtype == md->dtype && twin->n_dims == md->n_dims &&
            memcmp(twin->dims, md->dims, sizeof(md->dims)) == 0) {
            return twin;
        }
    }
    struct dn_md *twin = malloc(sizeof(*twin));
    if (twin == NULL) {
        return NULL;
    }
    *twin = *md;
    if (raw_md_by_tag(&twin->desc, md->dtype, md->n_dims, md->dims, format) != dnnl_success) {
        free(twin);
        return NULL;
    }
    twin->tag = tag;
    twin->next = dn->twins;
    dn->twins = twin;
    return twin;
}

const struct dn_md *dn_md_part(struct dn *dn, const struct dn_md *md, const int64_t *dims,
                               const int64_t *offsets)
{
    struct dn_md probe = {0};
    if (raw_md_part(&probe.desc, raw_view(md), dims, offsets) != dnnl_success) {
        return NULL;
    }
    const struct dn_md *part = intern(dn, raw_view(&probe), 0);
    raw_md_free(&probe.desc);
    return part;
}

enum ms_dtype dn_md_dtype(const struct dn_md *md)
{
    return md->dtype;
}

size_t dn_md_count(const struct dn_md *md)
{
    return md->bytes / ms_dtype_bytes(md->dtype);
}

size_t dn_md_bytes(const struct dn_md *md)
{
    return md->bytes;
}

int dn_md_n_dims(const struct dn_md *md)
{
    return md->n_dims;
}

const int64_t *dn_md_dims(const struct dn_md *md)
{
    return md->dims;
}

enum dn_tag dn_md_tag(const struct dn_md *md)
{
    return md->tag;
}

/* ---- primitive descriptors ----------------------------------------------------------------------
 */

const char *dn_kind_name(enum dn_kind kind)
{
    return kinds[kind].name;
}

static dnnl_status_t make_attr(const struct dn_spec *spec, dnnl_primitive_attr_t *ret)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    }
    if (status == dnnl_success && spec->relu &&
        (spec->kind == DN_CONV_FWD || spec->kind == DN_DENSE_FWD)) {
        status = dnnl_post_ops_create(&post_ops);
        if (status == dnnl_success) {
            status = raw_append_relu(post_ops);
        }
        if (status == dnnl_success) {
            status = dnnl_primitive_attr_set_post_ops(attr, post_ops);
        }
    }
    if (post_ops != NULL) {
        (void)dnnl_post_ops_destroy(post_ops);
    }
    if (status != dnnl_success && attr != NULL) {
        (void)dnnl_primitive_attr_destroy(attr);
        attr = NULL;
    }
    *ret = attr;
    return status;
}

/* impl NULL: whichever oneDNN takes. */
static dnnl_status_t make_pd(struct dn *dn, const struct dn_spec *spec, const char *impl,
                             struct raw_offers *offers, struct dn_pd *pd)
{
    const_dnnl_primitive_desc_t hint = spec->hint != NULL ? spec->hint->pd : NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = make_attr(spec, &attr);
    if (status != dnnl_success) {
        return status;
    }
    pd->kind = spec->kind;
    status = impl == NULL
                 ? raw_pd_create(&pd->pd, dn->engine, spec, hint, attr)
                 : raw_pd_create_named(&pd->pd, dn->engine, spec, hint, attr, impl, offers);
    (void)dnnl_primitive_attr_destroy(attr);
    return status;
}

static int no_pd(const struct dn_spec *spec, dnnl_status_t status, const char *impl,
                 const struct raw_offers *offers, struct ms_err *err)
{
    if (status == dnnl_out_of_memory) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a oneDNN primitive");
    }
    if (impl != NULL) {
        return ms_fail(err, MS_E_UNSUPPORTED, "%s: oneDNN %s here offers %s for this %s", impl,
                       dn_version(), offers->size > 0 ? offers->text : "nothing",
                       kinds[spec->kind].name);
    }
    return ms_fail(err, MS_E_UNSUPPORTED, "oneDNN %s cannot do this %s: %s", dn_version(),
                   kinds[spec->kind].name, dnnl_status2str(status));
}

static int create_pd(struct dn *dn, const struct dn_spec *spec, const char *impl,
                     struct dn_pd **ret, struct ms_err *err)
{
    struct raw_offers offers = {0, ""};
    struct dn_pd *pd = calloc(1, sizeof(*pd));
    dnnl_status_t status = pd == NULL ? dnnl_out_of_memory : make_pd(dn, spec, impl, &offers, pd);
    if (status != dnnl_success) {
        free(pd);
        return no_pd(spec, status, impl, &offers, err);
    }
    *ret = pd;
    return 0;
}

int dn_pd_create(struct dn *dn, const struct dn_spec *spec, struct dn_pd **ret, struct ms_err *err)
{
    return create_pd(dn, spec, NULL, ret, err);
}

int dn_pd_create_named(struct dn *dn, const struct dn_spec *spec, const char *impl,
                       struct dn_pd **ret, struct ms_err *err)
{
    return create_pd(dn, spec, impl, ret, err);
}

void dn_pd_destroy(struct dn_pd *pd)
{
    if (pd != NULL) {
        (void)dnnl_primitive_desc_destroy(pd->pd);
        free(pd);
    }
}

const struct dn_md *dn_pd_md(struct dn *dn, const struct dn_pd *pd, enum dn_role role)
{
    RAW_VIEW view = raw_pd_md(pd->pd, roles[role].what, roles[role].index);
    return view == NULL ? NULL : intern(dn, view, 0);
}

const struct dn_md *dn_pd_tensor(struct dn *dn, const struct dn_pd *pd, enum dn_role role)
{
    enum dn_role gradient = role == DN_SRC       ? DN_DIFF_SRC
                            : role == DN_WEIGHTS ? DN_DIFF_WEIGHTS
                                                 : DN_DIFF_DST;
    unsigned has = kinds[pd->kind].roles;
    return (has & BIT(role)) != 0       ? dn_pd_md(dn, pd, role)
           : (has & BIT(gradient)) != 0 ? dn_pd_md(dn, pd, gradient)
                                        : NULL;
}

/* A scratchpad that is not needed has none. oneDNN 2.6 says of parts that they have no bytes. */
static int has_elements(const struct dn_md *md)
{
    int64_t least = 1;
    for (int d = 0; d < md->n_dims; d++) {
        least = md->dims[d] < least ? md->dims[d] : least;
    }
    return least > 0;
}

int dn_pd_args(struct dn *dn, const struct dn_pd *pd, struct dn_arg ret[DN_ROLES])
{
    int n = 0;
    for (int role = 0; role < DN_ROLES; role++) {
        if (((kinds[pd->kind].roles | BIT(DN_SCRATCHPAD)) & BIT(role)) == 0) {
            continue;
        }
        const struct dn_md *md = dn_pd_md(dn, pd, (enum dn_role)role);
        if (md != NULL && has_elements(md)) {
            ret[n++] = (struct dn_arg){(enum dn_role)role, md};
        }
    }
    return n;
}

const char *dn_pd_impl(const struct dn_pd *pd)
{
    return raw_pd_impl(pd->pd);
}

int dn_pd_rank(const struct dn_pd *pd)
{
    const char *name = dn_pd_impl(pd);
    if (strstr(name, "ref") != NULL || strstr(name, "simple") != NULL) {
        return 0;
    }
    int dense = pd->kind == DN_DENSE_FWD || pd->kind == DN_DENSE_BWD_DATA ||
                pd->kind == DN_DENSE_BWD_WEIGHTS;
    return strstr(name, "gemm") != NULL && strstr(name, "brgemm") == NULL && !dense ? 1 : 2;
}

/* ---- primitives ---------------------------------------------------------------------------------
 */

static int add_args(struct dn *dn, const struct dn_pd *pd, struct dn_prim *prim)
{
    struct dn_arg args[DN_ROLES];
    int n = dn_pd_args(dn, pd, args);
    for (int i = 0; i < n; i++) {
        prim->args[i].arg = roles[args[i].role].arg;
        prim->roles[i] = args[i].role;
        prim->mds[i] = args[i].md;
        if (dnnl_memory_create(&prim->args[i].memory, raw_view(args[i].md), dn->engine,
                               DNNL_MEMORY_NONE) != dnnl_success) {
            return MS_E_NOMEM;
        }
        prim->n_args++;
    }
    return 0;
}

int dn_prim_create(struct dn *dn, const struct dn_pd *pd, struct dn_prim **ret, struct ms_err *err)
{
    struct dn_prim *prim = calloc(1, sizeof(*prim));
    if (prim == NULL || add_args(dn, pd, prim) != 0) {
        dn_prim_destroy(prim);
        return ms_fail(err, MS_E_NOMEM, "no memory for a oneDNN %s", kinds[pd->kind].name);
    }
    dnnl_status_t status = dnnl_primitive_create(&prim->prim, pd->pd);
    if (status != dnnl_success) {
        dn_prim_destroy(prim);
        return ms_fail(err, status == dnnl_out_of_memory ? MS_E_NOMEM : MS_E_UNSUPPORTED,
                       "oneDNN %s cannot create its %s (%s): %s", dn_version(),
                       kinds[pd->kind].name, dn_pd_impl(pd), dnnl_status2str(status));
    }
    *ret = prim;
    return 0;
}

void dn_prim_destroy(struct dn_prim *prim)
{
    if (prim == NULL) {
        return;
    }
    for (int i = 0; i < prim->n_args; i++) {
        (void)dnnl_memory_destroy(prim->args[i].memory);
    }
    if (prim->prim != NULL) {
        (void)dnnl_primitive_destroy(prim->prim);
    }
    free(prim);
}

int dn_prim_n_args(const struct dn_prim *prim)
{
    return prim->n_args;
}

enum dn_role dn_prim_role(const struct dn_prim *prim, int arg)
{
    return prim->roles[arg];
}

const struct dn_md *dn_prim_md(const struct dn_prim *prim, int arg)
{
    return prim->mds[arg];
}

int dn_prim_set(struct dn_prim *prim, int arg, void *data)
{
    return dnnl_memory_set_data_handle(prim->args[arg].memory, data) == dnnl_success ? 0
                                                                                     : MS_E_INVALID;
}

int dn_prim_run(struct dn *dn, struct dn_prim *prim)
{
    dnnl_status_t status = dnnl_primitive_execute(prim->prim, dn->stream, prim->n_args, prim->args);
    return status == dnnl_success ? 0 : MS_E_FAILED;
}
