/* eval_name.c - on which data an accuracy was measured */
#include "cli/eval_name.h"

#include "libworker/job/job.h"
#include "proto/macros.h"
#include "proto/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last part of the path; what has none is made by the kind itself. */
static void name_folder(char *dst, size_t size, const char *path, const char *kind)
{
    size_t n = path != NULL ? strlen(path) : 0;
    while (n > 0 && path[n - 1] == '/') {
        n--;
    }
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    int length = n - begin < 80 ? (int)(n - begin) : 80;
    if (length == 0) {
        snprintf(dst, size, "%.32s", kind);
    } else if ((size_t)length == strlen(kind) && strncmp(path + begin, kind, n - begin) == 0) {
        snprintf(dst, size, "%.32s", kind);
    } else {
        snprintf(dst, size, "%.*s (%.32s files)", length, path + begin, kind);
    }
}

/* Of what was made ready where it was submitted: one place has one text then. */
static int has_same_records(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"kind",  "path",   "usage",   "samples",  "seed",
                                       "split", "inputs", "targets", "arguments"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys); i++) {
        const json_t *one = json_object_get(a, keys[i]);
        const json_t *two = json_object_get(b, keys[i]);
        if (one != two && (one == NULL || two == NULL || !json_equal(one, two))) {
            return 0;
        }
    }
    return 1;
}

const char *cli_eval_name(char *buf, const void *job_json, size_t n)
{
    char folder[128];
    json_t *job = n > 0 ? json_loadb((const char *)job_json, n, 0, NULL) : NULL;
    const json_t *data = json_object_get(json_object_get(job, "evaluate"), "dataset");
    const char *kind = json_string_value(json_object_get(data, "kind"));
    const char *usage = json_string_value(json_object_get(data, "usage"));
    if (kind == NULL) {
        snprintf(buf, CLI_EVAL_NAME_MAX, "the evaluation data");
        json_decref(job);
        return buf;
    }
    if (has_same_records(data, json_object_get(job, "dataset"))) {
        snprintf(buf, CLI_EVAL_NAME_MAX, "the training data");
        json_decref(job);
        return buf;
    }
    name_folder(folder, sizeof(folder), json_string_value(json_object_get(data, "path")), kind);
    if (usage == NULL || strcmp(usage, "all") == 0) {
        snprintf(buf, CLI_EVAL_NAME_MAX, "all of %s", folder);
    } else {
        snprintf(buf, CLI_EVAL_NAME_MAX, "the %.16s set of %s", usage, folder);
    }
    ms_text_mend((uint8_t *)buf, strlen(buf), MS_TEXT_LINE); /* a name may be cut in a letter */
    json_decref(job);
    return buf;
}

const char *cli_eval_name_here(char *buf, const struct job *job)
{
    static struct job shown; /* 90 KiB */
    size_t n = 0;
    shown = *job;
    char *path = shown.evaluate_dataset.path;
    (void)job_expand_path(job->evaluate_dataset.path, path, sizeof(shown.evaluate_dataset.path),
                          NULL);
    char *json = job_format(&shown, &n);
    cli_eval_name(buf, json, json != NULL ? n : 0);
    free(json);
    return buf;
}
