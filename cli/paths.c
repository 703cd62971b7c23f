/* paths.c - the input paths of a job, and arguments of its programs, seen from where it is
 * submitted */
#include "cli/paths.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUTS = 7 };

struct input {
    const char *key;
    char *text; /* in the job */
    size_t size;
    int is_path; /* else a list, LF between: an argument may be anything */
};

static int list(struct job *job, struct input ret[INPUTS])
{
    struct data_spec *data = &job->dataset;
    struct data_spec *eval = &job->evaluate_dataset;
    int n = 0;
    ret[n++] = (struct input){"dataset.path", data->path, sizeof(data->path), 1};
    ret[n++] = (struct input){"dataset.vocabulary", data->vocabulary, sizeof(data->vocabulary), 1};
    ret[n++] = (struct input){"dataset.arguments", data->arguments, sizeof(data->arguments), 0};
    if (job->has_evaluate) {
        ret[n++] = (struct input){"evaluate.dataset.path", eval->path, sizeof(eval->path), 1};
        ret[n++] = (struct input){"evaluate.dataset.arguments", eval->arguments,
                                  sizeof(eval->arguments), 0};
    }
    ret[n++] =
        (struct input){"initial_weights", job->initial_weights, sizeof(job->initial_weights), 1};
    ret[n++] = (struct input){"resume", job->resume, sizeof(job->resume), 1};
    return n;
}

/* ---- texts of a bounded size ---- */

struct bounded {
    char *text;
    size_t used, size;
};

/* Appends n bytes; 0 where they do not fit. */
static int append(struct bounded *dst, const char *text, size_t n)
{
    if (n >= dst->size - dst->used) {
        return 0;
    }
    memcpy(dst->text + dst->used, text, n);
    dst->used += n;
    dst->text[dst->used] = '\0';
    return 1;
}

/* ---- variables ---- */

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

/* Appends to what is in dst; 0 where it does not fit. */
static int expand(const char *text, int is_path, struct bounded *dst)
{
    const size_t begin = dst->used;
    int fits = 1;
    while (*text != '\0' && fits) {
        size_t length = 1;
        const char *value = strncmp(text, "${", 2) == 0 ? value_at(text, &length) : NULL;
        if (value != NULL) {
            char here[PATH_MAX];
            if (is_path && dst->used == begin && value[0] != '/' &&
                getcwd(here, sizeof(here)) != NULL) {
                fits = append(dst, here, strlen(here)) && append(dst, "/", 1);
            }
            fits = fits && append(dst, value, strlen(value));
            text += length;
        } else {
            fits = append(dst, text, 1);
            text++;
        }
    }
    return fits;
}

/* A ${NAME} is left, which has no value here. */
static int has_variable(const char *text)
{
    const char *open = strstr(text, "${");
    const char *close = open != NULL ? strchr(open, '}') : NULL;
    return close != NULL && close > open + 2;
}

/* ---- inputs ---- */

struct said {
    const struct cli *cli;
    int is_left; /* that a variable is left to the nodes, once: it is the same one, as a rule */
};

static void say(struct said *said, const char *key, const char *text, const char *made)
{
    if (has_variable(made) && !said->is_left) {
        said->is_left = 1;
        cli_say(said->cli,
                "%s: %s is not set here, so each node uses its own (its operator sets it: "
                "Environment= in a drop-in of msworker@.service)",
                key, made);
    }
    if (strcmp(made, text) != 0) {
        cli_say(said->cli, "%s: %s is %s, from your environment", key, text, made);
    }
}

/* One path or argument, behind what is in dst. */
static int expand_one(const struct input *input, const char *text, struct said *said,
                      struct bounded *dst, struct ms_err *err)
{
    const char *made = dst->text + dst->used;
    if (!expand(text, input->is_path, dst)) {
        return ms_fail(err, MS_E_INVALID, "%s: %.120s is longer than %zu bytes when expanded",
                       input->key, text, input->size - 1);
    }
    if (!input->is_path && strchr(made, '\n') != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "%s: %.120s has a line break when expanded: give a value "
                       "of one line",
                       input->key, text);
    }
    say(said, input->key, text, made);
    return MS_OK;
}

static int expand_input(const struct input *input, struct said *said, struct ms_err *err)
{
    enum { SIZE = MS_PATH_MAX > DATA_ARGUMENTS_MAX ? MS_PATH_MAX + 1 : DATA_ARGUMENTS_MAX + 1 };
    char made[SIZE] = "";
    char one[SIZE];
    struct bounded dst = {made, 0, input->size};
    for (const char *at = input->text; *at != '\0';) {
        const size_t length = input->is_path ? strlen(at) : strcspn(at, "\n");
        memcpy(one, at, length);
        one[length] = '\0';
        int rc = expand_one(input, one, said, &dst, err);
        at += length;
        if (rc == MS_OK && *at == '\n') {
            at++;
            rc = append(&dst, "\n", 1)
                     ? MS_OK
                     : ms_fail(err, MS_E_INVALID, "%s are longer than %zu bytes when expanded",
                               input->key, input->size - 1);
        }
        if (rc < 0) {
            return rc;
        }
    }
    memcpy(input->text, made, dst.used + 1);
    return MS_OK;
}

int cli_paths_expand(const struct cli *cli, struct job *job, struct ms_err *err)
{
    struct input inputs[INPUTS];
    struct said said = {cli, 0};
    const int n = list(job, inputs);
    int rc = MS_OK;
    for (int i = 0; rc == MS_OK && i < n; i++) {
        rc = expand_input(&inputs[i], &said, err);
    }
    return rc;
}
