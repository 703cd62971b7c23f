/* fuzz_plan.c - the text of a plan; what is read must be written again as it came */
#include "libworker/plan/spec.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_lists(const struct plan_spec *spec)
{
    int64_t end = 0;
    for (int i = 0; i < spec->n_params; i++) {
        FUZZ_CHECK(spec->params[i].offset == end && spec->params[i].count > 0);
        FUZZ_CHECK(shape_count(&spec->params[i].shape) <= GRAPH_ELEMENTS_MAX);
        end += spec->params[i].count;
    }
    FUZZ_CHECK(end <= GRAPH_ELEMENTS_MAX);
    size_t begin = 0;
    for (int i = 0; i < spec->n_buckets; i++) {
        FUZZ_CHECK(spec->buckets[i].begin == begin && spec->buckets[i].count > 0);
        begin += spec->buckets[i].count;
    }
    int n_uses = 0;
    for (int use = 0; use < PLAN_USES; use++) {
        n_uses += spec->uses[use].batch.n_dims > 0;
        for (int i = 1; i < spec->uses[use].n_ops; i++) {
            FUZZ_CHECK(spec->uses[use].ops[i].op > spec->uses[use].ops[i - 1].op);
        }
    }
    FUZZ_CHECK(n_uses > 0 && spec->world >= 1 && spec->world <= MS_WORKERS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_spec *spec = NULL;
    struct ms_err err = {0, ""};
    int rc = plan_spec_parse((const char *)data, size, &spec, &err);
    if (rc != MS_OK) {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0' && spec == NULL);
        return 0;
    }
    check_lists(spec);
    char *text = NULL;
    char digest[MS_SHA256_HEX];
    size_t text_size = 0;
    FUZZ_CHECK(plan_spec_format(spec, &text, &text_size, &err) == MS_OK);
    FUZZ_CHECK(text_size == size && memcmp(text, data, size) == 0);
    FUZZ_CHECK(plan_spec_digest(spec, digest, &err) == MS_OK);
    free(text);
    plan_spec_destroy(spec);
    return 0;
}
