/* resumed_plan.c - the plan of a training that goes on: its checkpoint's, however it is evaluated
 */
#include "libworker/train/resumed_plan.h"

#include "libworker/plan/spec.h"
#include "libworker/train/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static int choose_evaluation(const struct train *train, const char *text, char **ret,
                             struct ms_err *err)
{
    struct plan_spec *spec = NULL;
    size_t size = 0;
    int rc = plan_spec_parse(text, strlen(text), &spec, err);
    rc = rc < 0 ? rc
                : plan_choose_use(replica_graph_of(train->replica, PLAN_EVALUATE), spec,
                                  PLAN_EVALUATE, err);
    rc = rc < 0 ? rc : plan_spec_format(spec, ret, &size, err);
    plan_spec_destroy(spec);
    return rc;
}

int resumed_plan(struct train *train, char **ret_text, struct ms_err *err)
{
    struct checkpoint_manifest m;
    char *text = NULL;
    int rc = checkpoint_find_manifest(train, &m);
    if (rc == 1) {
        rc = choose_evaluation(train, m.plan, &text, err);
        checkpoint_manifest_fini(&m);
    }
    if (rc == 0) {
        *ret_text = text;
    }
    return rc;
}

int resumed_plan_is_same(const char *a, const char *b)
{
    const size_t size = plan_spec_training_size(a);
    return size == plan_spec_training_size(b) && memcmp(a, b, size) == 0;
}
