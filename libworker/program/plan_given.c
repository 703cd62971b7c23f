/* plan_given.c - read and judged before the worker registers, so that nobody waits for it in vain
 */
#include "libworker/program/plan_given.h"

#include "libworker/plan/spec.h"
#include "proto/limits.h"
#include "proto/regular.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_all(const char *path, char *text, size_t *ret_size, struct ms_err *err)
{
    FILE *file = NULL;
    int rc = ms_regular_open(path, "the plan ", &file, err);
    if (rc < 0) {
        return rc;
    }
    *ret_size = fread(text, 1, MS_PLAN_MAX + 1, file);
    rc = ferror(file) ? ms_fail_errno(err, MS_E_IO, "cannot read the plan %s", path) : 0;
    fclose(file);
    return rc;
}

static int judge(const char *path, const char *text, size_t size, struct ms_err *err)
{
    struct plan_spec *spec = NULL;
    int rc = plan_spec_parse(text, size, &spec, err);
    plan_spec_destroy(spec);
    return rc < 0 ? ms_err_prefix(err, "--plan %.150s", path) : 0;
}

int plan_given_read(const char *path, char **ret, struct ms_err *err)
{
    size_t size = 0;
    char *text = malloc(MS_PLAN_MAX + 2);
    int rc = text != NULL ? read_all(path, text, &size, err)
                          : ms_fail(err, MS_E_NOMEM, "no memory for the plan %s", path);
    rc = rc < 0 ? rc : judge(path, text, size, err);
    if (rc < 0) {
        free(text);
        return rc;
    }
    text[size] = '\0';
    *ret = text;
    return 0;
}
