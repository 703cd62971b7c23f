/* obey.c - oneDNN's descriptors: candidates of who chooses, and what a spec's row says */
#include "libworker/plan/lowering.h"

#include <string.h>

static const enum dn_role tensors[] = {DN_SRC, DN_WEIGHTS, DN_DST};
enum { TENSORS = sizeof(tensors) / sizeof(tensors[0]) };

/* ---- candidates ---------------------------------------------------------------------------------
 */

static int can_be_written(struct plan *plan, const struct dn_pd *pd)
{
    for (int i = 0; i < TENSORS; i++) {
        const struct dn_md *md = dn_pd_tensor(plan->dn, pd, tensors[i]);
        const char *name = md == NULL ? "" : dn_md_name(plan->dn, md);
        if (name == NULL || strlen(name) >= PLAN_TOKEN_MAX) {
            return 0;
        }
    }
    return strlen(dn_pd_impl(pd)) < PLAN_TOKEN_MAX;
}

int lower_only(struct plan *plan, const struct dn_spec *spec, struct dn_pd **ret,
               struct ms_err *err)
{
    struct dn_pd *pd = NULL;
    int rc = dn_pd_create(plan->dn, spec, &pd, err);
    if (rc == 0 && !can_be_written(plan, pd)) {
        rc = ms_fail(err, MS_E_UNSUPPORTED,
                     "oneDNN %s has a %s (%s) only in a layout without a name; change its window "
                     "or channels",
                     dn_version(), dn_kind_name(spec->kind), dn_pd_impl(pd));
        dn_pd_destroy(pd);
    }
    if (rc == 0) {
        *ret = pd;
    }
    return rc;
}

struct dn_pd *lower_try(struct plan *plan, const struct dn_spec *spec)
{
    struct dn_pd *pd = NULL;
    return lower_only(plan, spec, &pd, NULL) == 0 ? pd : NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------
 */

int lower_line(const struct lowering *lo, int op)
{
    const struct plan_spec_use *use = &lo->spec->uses[lo->use];
    int i = 0;
    while (i < use->n_ops && use->ops[i].op < op) {
        i++;
    }
    return plan_spec_op_line(lo->spec, lo->use, i);
}

/* Puts the row's layout where md is free. */
static int take_layout(struct lowering *lo, const char *what, const char *name,
                       const struct dn_md **md, struct ms_err *err)
{
    if (*md == NULL && name[0] == '\0') {
        return 0;
    }
    const struct dn_md *named = *md == NULL ? NULL : dn_md_as_named(lo->plan->dn, *md, name);
    if (named == NULL || (dn_md_tag(*md) != DN_ANY && named != *md)) {
        return name[0] != '\0' ? ms_fail(err, MS_E_INVALID, "cannot have %s=%s here", what, name)
                               : ms_fail(err, MS_E_INVALID, "needs %s=, a layout", what);
    }
    *md = named;
    return 0;
}

static const struct dn_md *freed(struct plan *plan, const struct dn_md *md, int is_free)
{
    return md == NULL || !is_free ? md : dn_md_as(plan->dn, md, DN_ANY);
}

static int is_exact(struct plan *plan, const struct dn_pd *pd, const struct dn_spec *exact)
{
    return dn_pd_tensor(plan->dn, pd, DN_SRC) == exact->src &&
           dn_pd_tensor(plan->dn, pd, DN_WEIGHTS) == exact->weights &&
           dn_pd_tensor(plan->dn, pd, DN_DST) == exact->dst;
}

/* 0: found, with some of the layouts free, and they came out the same. */
static int create_freed(struct plan *plan, const struct dn_spec *exact, const struct dn_md *src,
                        const struct dn_md *dst, const char *impl, struct dn_pd **ret)
{
    for (unsigned free = 0; free < 1U << TENSORS; free++) {
        struct dn_spec some = *exact;
        struct dn_pd *pd = NULL;
        some.src = freed(plan, src, free & 1U);
        some.weights = freed(plan, exact->weights, free & 2U);
        some.dst = freed(plan, dst, free & 4U);
        if (dn_pd_create_named(plan->dn, &some, impl, &pd, NULL) < 0) {
            continue;
        }
        if (is_exact(plan, pd, exact)) {
            *ret = pd;
            return 0;
        }
        dn_pd_destroy(pd);
    }
    return MS_E_UNSUPPORTED;
}

/* By one of its names, 0: its first one; NULL: it has no such name. */
static const struct dn_md *named(struct plan *plan, const struct dn_md *md, int name)
{
    static const enum dn_tag tags[] = {DN_ANY, DN_PLAIN, DN_NHWC, DN_NCHW16C, DN_NCHW8C};
    return name == 0 ? md : md == NULL ? NULL : dn_md_twin(plan->dn, md, tags[name]);
}
enum { NAMES = 5 };

/* Where a dimension is 1 two layouts are one, and an implementation may take it for the wrong one
 * of them when it is given, though it takes it by itself. So what the layouts do not bring is
 * looked for with some of them free, too, and with source and result by their other names. Who
 * chose did no more. */
static int create_exact(struct plan *plan, const struct dn_spec *exact, const char *impl,
                        struct dn_pd **ret, struct ms_err *err)
{
    int rc = dn_pd_create_named(plan->dn, exact, impl, ret, err);
    for (int i = 0; i < NAMES * NAMES && rc == MS_E_UNSUPPORTED; i++) {
        const struct dn_md *src = named(plan, exact->src, i / NAMES);
        const struct dn_md *dst = named(plan, exact->dst, i % NAMES);
        const int is_there =
            (src != NULL || exact->src == NULL) && (dst != NULL || exact->dst == NULL);
        if (is_there && create_freed(plan, exact, src, dst, impl, ret) == 0) {
            return 0;
        }
    }
    return rc;
}

int lower_obey(struct lowering *lo, int op, const struct dn_spec *spec, struct dn_pd **ret,
               struct ms_err *err)
{
    const struct plan_spec_op *row = lo->rows[op];
    if (row == NULL) {
        return ms_fail(err, MS_E_INVALID, "its line is missing");
    }
    struct dn_spec exact = *spec;
    int rc = take_layout(lo, "src", row->src, &exact.src, err);
    rc = rc < 0 ? rc : take_layout(lo, "weights", row->weights, &exact.weights, err);
    rc = rc < 0 ? rc : take_layout(lo, "dst", row->dst, &exact.dst, err);
    return rc < 0 ? rc : create_exact(lo->plan, &exact, row->impl, ret, err);
}
