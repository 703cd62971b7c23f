/* paths.c - the input paths of a job, seen from where it is submitted */
#include "cli/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATHS = 4 };

struct input {
    const char *key;
    char *path; /* MS_PATH_MAX + 1 bytes, in the job */
};

static void list(struct job *job, struct input ret[PATHS])
{
    ret[0] = (struct input){"dataset.path", job->dataset.path};
    ret[1] = (struct input){"evaluate.dataset.path",
                            job->has_evaluate ? job->evaluate_dataset.path : job->dataset.path};
    ret[2] = (struct input){"initial_weights", job->initial_weights};
    ret[3] = (struct input){"resume", job->resume};
}

/* The value of the variable at "${NAME}...", or NULL; *ret_length is that of "${NAME}". */
static const char *value_at(const char *at, size_t *ret_length)
{
    char name[128];
    const char *close = strchr(at, '}');
    size_t n = close != NULL ? (size_t)(close - at) - 2 : 0;
    if (n == 0 || n >= sizeof(name)) {
        return NULL;
    }
    memcpy(name, at + 2, n);
    name[n] = '\0';
    *ret_length = n + 3;
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Appends n bytes; 0 where they do not fit. */
static int append(char *dst, size_t *used, const char *text, size_t n)
{
    if (n > MS_PATH_MAX - *used) {
        return 0;
    }
    memcpy(dst + *used, text, n);
    *used += n;
    dst[*used] = '\0';
    return 1;
}

static int expand(const char *path, char *dst)
{
    size_t used = 0;
    int fits = 1;
    dst[0] = '\0';
    while (*path != '\0' && fits) {
        size_t length = 1;
        const char *value = strncmp(path, "${", 2) == 0 ? value_at(path, &length) : NULL;
        if (value != NULL) {
            char here[PATH_MAX];
            if (used == 0 && value[0] != '/' && getcwd(here, sizeof(here)) != NULL) {
                fits = append(dst, &used, here, strlen(here)) && append(dst, &used, "/", 1);
            }
            fits = fits && append(dst, &used, value, strlen(value));
            path += length;
        } else {
            fits = append(dst, &used, path, 1);
            path++;
        }
    }
    return fits;
}

/* A ${NAME} is left, which has no value here. */
static int has_variable(const char *path)
{
    const char *open = strstr(path, "${");
    const char *close = open != NULL ? strchr(open, '}') : NULL;
    return close != NULL && close > open + 2;
}

int cli_paths_expand(const struct cli *cli, struct job *job, struct ms_err *err)
{
    struct input inputs[PATHS];
    int was_said = 0; /* once: it is the same variable, as a rule */
    list(job, inputs);
    for (size_t i = 0; i < PATHS; i++) {
        char path[MS_PATH_MAX + 1];
        if (strstr(inputs[i].path, "${") == NULL) {
            continue;
        }
        if (!expand(inputs[i].path, path)) {
            return ms_fail(err, MS_E_INVALID, "%s: %.120s is longer than %d bytes when expanded",
                           inputs[i].key, inputs[i].path, MS_PATH_MAX);
        }
        if (has_variable(path) && !was_said) {
            was_said = 1;
            cli_say(cli,
                    "%s: %s is not set here, so each node uses its own (its operator sets it: "
                    "Environment= in a drop-in of msworker@.service)",
                    inputs[i].key, path);
        }
        if (strcmp(path, inputs[i].path) != 0) {
            cli_say(cli, "%s: %s is %s, from your environment", inputs[i].key, inputs[i].path,
                    path);
            memcpy(inputs[i].path, path, sizeof(path));
        }
    }
    return MS_OK;
}
