/* dnnl_raw.h - the calls of oneDNN whose form differs between 2.x and 3.x, for dnnl.c only */
#ifndef PLAN_DNNL_RAW_H
#define PLAN_DNNL_RAW_H

#include "libworker/plan/dnnl.h"

#include <oneapi/dnnl/dnnl.h>

/* A borrowed descriptor: 2.x has public structs, 3.x handles. */
#if DNNL_VERSION_MAJOR >= 3
#define RAW_VIEW const_dnnl_memory_desc_t
#else
#define RAW_VIEW const dnnl_memory_desc_t *
#endif

struct dn_md {
    dnnl_memory_desc_t desc;
    enum ms_dtype dtype;
    size_t bytes;
    int n_dims;
    int64_t dims[DN_DIMS_MAX];
    enum dn_tag tag;
    const char *name; /* oneDNN's, once it was looked up; NULL: it has none */
    int is_looked_up;
    struct dn_md *next;
};

/* NULL for NULL, as optional arguments want it. */
RAW_VIEW raw_view(const struct dn_md *md);
dnnl_status_t raw_md_by_tag(dnnl_memory_desc_t *ret, enum ms_dtype dtype, int n_dims,
                            const int64_t *dims, dnnl_format_tag_t tag);
dnnl_status_t raw_md_part(dnnl_memory_desc_t *ret, RAW_VIEW whole, const int64_t *dims,
                          const int64_t *offsets);
/* What has no name among ours is one of oneDNN's own buffers: bytes, MS_U8. */
enum ms_dtype raw_md_dtype(RAW_VIEW view);
dnnl_status_t raw_md_copy(dnnl_memory_desc_t *ret, RAW_VIEW from);
void raw_md_free(dnnl_memory_desc_t *desc);
/* Number of dimensions, 0 for the empty descriptor; at most DN_DIMS_MAX of them into dims. */
int raw_md_dims(RAW_VIEW view, int64_t *dims);
/* NULL: the primitive has no such argument. */
RAW_VIEW raw_pd_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index);
dnnl_status_t raw_append_relu(dnnl_post_ops_t post_ops);
dnnl_status_t raw_pd_create(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                            const struct dn_spec *spec, const_dnnl_primitive_desc_t hint,
                            const_dnnl_primitive_attr_t attr);
const char *raw_pd_impl(const_dnnl_primitive_desc_t pd);
/* Names of implementations, "a, b"; what does not fit is left out. */
struct raw_offers {
    size_t size;
    char text[128];
};
/* The first implementation of this name. dnnl_unimplemented: none; offers has those that there are.
 */
dnnl_status_t raw_pd_create_named(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                  const struct dn_spec *spec, const_dnnl_primitive_desc_t hint,
                                  const_dnnl_primitive_attr_t attr, const char *impl,
                                  struct raw_offers *offers);

#endif
