/* spec.c - a spec as text, and its digest */
#include "libworker/plan/spec.h"

#include "libworker/plan/spec_text.h"
#include "proto/limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const use_names[PLAN_USES] = {"train", "tail", "evaluation"};

/* As job files say it. */
static const char *const precision_names[MS_DTYPES] = {[MS_F32] = "fp32", [MS_BF16] = "bf16"};

const char *spec_precision_name(enum ms_dtype dtype)
{
    return precision_names[dtype];
}

const char *plan_use_name(enum plan_use use)
{
    return use_names[use];
}

void plan_spec_destroy(struct plan_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    for (int use = 0; use < PLAN_USES; use++) {
        free(spec->uses[use].ops);
    }
    free(spec->params);
    free(spec->stats);
    free(spec->buckets);
    free(spec);
}

/* ---- lines --------------------------------------------------------------------------------------
 */

/* Head: version, section, network, world, threads, isa, onednn, caches, precision, denormals,
 * sum_tree, bucket_bytes. Then lists, each after a line with its length. */
enum { LINE_NETWORK = 3, LINE_ISA = 6, LINES_HEAD = 12 };

int plan_spec_line(const struct plan_spec *spec, enum plan_spec_item item, int i)
{
    switch (item) {
    case PLAN_ITEM_NETWORK: /* then world, threads */
        return LINE_NETWORK + i;
    case PLAN_ITEM_BUCKET_BYTES:
        return LINES_HEAD;
    case PLAN_ITEM_MACHINE:
        return LINE_ISA + i;
    case PLAN_ITEM_PARAM:
        return LINES_HEAD + 2 + i;
    case PLAN_ITEM_STAT:
        return LINES_HEAD + 3 + spec->n_params + i;
    case PLAN_ITEM_BUCKET:
        break;
    }
    return LINES_HEAD + 4 + spec->n_params + spec->n_stats + i;
}

int plan_spec_op_line(const struct plan_spec *spec, enum plan_use use, int op)
{
    int line = plan_spec_line(spec, PLAN_ITEM_BUCKET, spec->n_buckets);
    for (int before = 0; before < (int)use; before++) {
        const struct plan_spec_use *other = &spec->uses[before];
        line += other->batch.n_dims > 0 ? 1 + other->n_ops : 0;
    }
    return line + 1 + op;
}

int plan_spec_mirror_line(const struct plan_spec *spec, int param)
{
    int line = plan_spec_op_line(spec, PLAN_USES, 0); /* behind "section memory" */
    for (int i = 0; i < param; i++) {
        line += spec->params[i].mirror[0] != '\0';
    }
    return line;
}

int plan_spec_again_line(const struct plan_spec *spec, enum plan_use use, int op)
{
    int line = plan_spec_mirror_line(spec, spec->n_params);
    for (int u = 0; u <= (int)use; u++) {
        for (int i = 0; i < (u < (int)use ? spec->uses[u].n_ops : op); i++) {
            line += spec->uses[u].ops[i].again;
        }
    }
    return line;
}

/* ---- writing ------------------------------------------------------------------------------------
 */

struct writer {
    char *text;
    size_t size; /* > MS_PLAN_MAX: it did not fit */
};

static void put(struct writer *w, const char *fmt, ...) MS_PRINTF(2, 3);

static void put(struct writer *w, const char *fmt, ...)
{
    if (w->size > MS_PLAN_MAX) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->text + w->size, MS_PLAN_MAX + 1 - w->size, fmt, args);
    va_end(args);
    w->size += (size_t)n;
}

static void put_shape(struct writer *w, const struct shape *shape)
{
    for (int d = 0; d < shape->n_dims; d++) {
        put(w, "%c%" PRId64, d == 0 ? ' ' : 'x', shape->dim[d]);
    }
}

static void put_head(struct writer *w, const struct plan_spec *spec)
{
    const struct plan_machine *m = &spec->machine;
    put(w, "%s\n%s\n", SPEC_VERSION, SPEC_BITS);
    put(w, "network %s\nworld %d\nthreads %d\n", spec->network, spec->world, spec->threads);
    put(w, "isa %s\nonednn %s\n", m->isa, m->library);
    if (m->mixed_caches) {
        put(w, "caches mixed\n");
    } else {
        put(w, "caches %" PRId64 " %" PRId64 "\n", m->caches[0], m->caches[1]);
    }
    put(w, "precision %s\n", precision_names[spec->precision]);
    put(w, "%s\n%s\n", SPEC_DENORMALS, SPEC_SUM_TREE);
    put(w, "bucket_bytes %" PRId64 "\n", spec->bucket_bytes);
}

static void put_param(struct writer *w, const struct plan_spec_param *p)
{
    put(w, "parameter %s %" PRId64 "+%" PRId64 " %s", p->name, p->offset, p->count, p->layout);
    put_shape(w, &p->shape);
    if (p->columns[0] != '\0') {
        put(w, " columns %s", p->columns);
        put_shape(w, &p->columns_shape);
    }
    put(w, "\n");
}

static void put_lists(struct writer *w, const struct plan_spec *spec)
{
    put(w, "parameters %d\n", spec->n_params);
    for (int i = 0; i < spec->n_params; i++) {
        put_param(w, &spec->params[i]);
    }
    put(w, "statistics %d\n", spec->n_stats);
    for (int i = 0; i < spec->n_stats; i++) {
        const struct plan_spec_stat *s = &spec->stats[i];
        put(w, "statistic %s %" PRId64 "+%" PRId64 "\n", s->name, s->offset, s->count);
    }
    put(w, "buckets %d\n", spec->n_buckets);
    for (int i = 0; i < spec->n_buckets; i++) {
        put(w, "bucket %zu+%zu\n", spec->buckets[i].begin, spec->buckets[i].count);
    }
}

static void put_op(struct writer *w, const struct plan_spec_op *op)
{
    put(w, "op %d %s %s %s", op->op, op->kind, op->name, op->impl);
    if (op->relu != 0) {
        put(w, " relu=%d", op->relu);
    }
    if (op->src[0] != '\0') {
        put(w, " src=%s", op->src);
    }
    if (op->weights[0] != '\0') {
        put(w, " weights=%s", op->weights);
    }
    if (op->dst[0] != '\0') {
        put(w, " dst=%s", op->dst);
    }
    if (op->channels != 0) {
        put(w, " channels=%" PRId64, op->channels);
    }
    put(w, "\n");
}

static void put_bits(struct writer *w, const struct plan_spec *spec)
{
    put_head(w, spec);
    put_lists(w, spec);
    for (int u = 0; u < PLAN_USES; u++) {
        const struct plan_spec_use *use = &spec->uses[u];
        if (use->batch.n_dims == 0) {
            continue;
        }
        put(w, "use %s", use_names[u]);
        put_shape(w, &use->batch);
        put(w, " %d\n", use->n_ops);
        for (int i = 0; i < use->n_ops; i++) {
            put_op(w, &use->ops[i]);
        }
    }
}

static void put_memory(struct writer *w, const struct plan_spec *spec)
{
    put(w, "%s\n", SPEC_MEMORY);
    for (int i = 0; i < spec->n_params; i++) {
        if (spec->params[i].mirror[0] != '\0') {
            put(w, "mirror %s %s\n", spec->params[i].name, spec->params[i].mirror);
        }
    }
    for (int u = 0; u < PLAN_USES; u++) {
        for (int i = 0; i < spec->uses[u].n_ops; i++) {
            if (spec->uses[u].ops[i].again) {
                put(w, "again %s %d\n", use_names[u], spec->uses[u].ops[i].op);
            }
        }
    }
    put(w, "%s\n", SPEC_END);
}

static int writer_init(struct writer *w, struct ms_err *err)
{
    *w = (struct writer){.text = malloc(MS_PLAN_MAX + 1)};
    return w->text != NULL ? 0 : ms_fail(err, MS_E_NOMEM, "plan: no memory for its text");
}

static int check_size(const struct writer *w, const struct plan_spec *spec, struct ms_err *err)
{
    return w->size <= MS_PLAN_MAX
               ? 0
               : ms_fail(
                     err, MS_E_FULL,
                     "the plan of network %s is a text of more than %u bytes; split the network",
                     spec->network, MS_PLAN_MAX);
}

int plan_spec_format(const struct plan_spec *spec, char **ret, size_t *ret_size, struct ms_err *err)
{
    struct writer w;
    int rc = writer_init(&w, err);
    if (rc < 0) {
        return rc;
    }
    put_bits(&w, spec);
    put_memory(&w, spec);
    rc = check_size(&w, spec, err);
    char *text = rc < 0 ? NULL : realloc(w.text, w.size + 1);
    if (text == NULL) {
        free(w.text);
        return rc < 0 ? rc : ms_fail(err, MS_E_NOMEM, "plan: no memory for its text");
    }
    *ret = text;
    *ret_size = w.size;
    return 0;
}

size_t plan_spec_training_size(const char *text)
{
    const char *end = strstr(text, "\nuse evaluation ");
    end = end != NULL ? end : strstr(text, "\n" SPEC_MEMORY "\n");
    return end != NULL ? (size_t)(end - text) : strlen(text);
}

int plan_spec_digest(const struct plan_spec *spec, char ret_hex[MS_SHA256_HEX], struct ms_err *err)
{
    struct writer w;
    int rc = writer_init(&w, err);
    if (rc < 0) {
        return rc;
    }
    put_bits(&w, spec);
    rc = check_size(&w, spec, err);
    if (rc == 0) {
        uint8_t digest[MS_SHA256_BYTES];
        ms_sha256(w.text, w.size, digest);
        ms_sha256_hex(digest, ret_hex);
    }
    free(w.text);
    return rc;
}
