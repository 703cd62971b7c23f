/* path.c - ${NAME} in paths: expanded where the path is used, from that machine's environment */
#include "libworker/data/path.h"

#include "libworker/data/allowed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE_MAX = 128 };

static int append(char *dst, size_t size, size_t *used, const char *text, size_t length,
                  const char *path, struct ms_err *err)
{
    if (length >= size - *used) {
        return ms_fail(err, MS_E_INVALID, "path %.120s: more than %zu bytes when expanded", path,
                       size - 1);
    }
    memcpy(dst + *used, text, length);
    *used += length;
    dst[*used] = '\0';
    return MS_OK;
}

/* at: behind "${". Appends the variable's value; *ret_rest: behind "}". */
static int append_variable(char *dst, size_t size, size_t *used, const char *at, const char *path,
                           const char **ret_rest, struct ms_err *err)
{
    const char *close = strchr(at, '}');
    size_t length = close != NULL ? (size_t)(close - at) : 0;
    if (length == 0 || length > VARIABLE_MAX) {
        return ms_fail(err, MS_E_INVALID, "path %.120s: a ${ that no name and } follow", path);
    }
    char name[VARIABLE_MAX + 1];
    memcpy(name, at, length);
    name[length] = '\0';
    if (!allowed_variable(name)) { /* set or not: nobody learns which */
        return ms_fail(err, MS_E_REFUSED,
                       "path %.120s: jobs may not use the variable %s here, only %.120s (setting "
                       "job_variables of the worker)",
                       path, name, allowed_variables());
    }
    const char *value = getenv(name);
    if (value == NULL || *value == '\0') {
        return ms_fail(err, MS_E_INVALID,
                       "path %.120s: the environment has no %s here: export %s=/path before the "
                       "program starts (a service: Environment=%s=/path in its unit)",
                       path, name, name, name);
    }
    *ret_rest = close + 1;
    return append(dst, size, used, value, strlen(value), path, err);
}

int data_path_expand(const char *path, char *dst, size_t size, struct ms_err *err)
{
    size_t used = 0;
    const char *at = path;
    dst[0] = '\0';
    while (*at != '\0') {
        const char *open = strstr(at, "${");
        size_t plain = open != NULL ? (size_t)(open - at) : strlen(at);
        int rc = append(dst, size, &used, at, plain, path, err);
        if (rc < 0) {
            return rc;
        }
        at += plain;
        if (open != NULL) {
            rc = append_variable(dst, size, &used, open + 2, path, &at, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return MS_OK;
}

void data_path_hide(const char *expanded, const char *path, struct ms_err *err)
{
    enum { SURE = 100 }; /* messages cut paths at 140 bytes and more */
    char text[MS_ERR_TEXT_MAX];
    size_t want = strlen(expanded);
    if (err == NULL || want == 0 || strcmp(expanded, path) == 0 || allowed_is_open()) {
        return;
    }
    char head[SURE + 1];
    size_t sure = want < SURE ? want : SURE;
    memcpy(head, expanded, sure);
    head[sure] = '\0';
    const char *said = ms_err_text(err);
    for (const char *at = strstr(said, head); at != NULL; at = strstr(said, head)) {
        size_t same = sure;
        while (same < want && at[same] == expanded[same]) {
            same++;
        }
        size_t before = (size_t)(at - said);
        int n = snprintf(text, sizeof(text), "%.*s%.120s%s", (int)before, said, path, at + same);
        if (n < 0 || strstr(path, head) != NULL) {
            return;
        }
        (void)ms_fail(err, ms_err_code(err), "%s", text);
    }
}
