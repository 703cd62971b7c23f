/* eval_name.c - on which data an accuracy was measured */
#include "cli/eval_name.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

const char *cli_eval_name(char *buf, const void *job_json, size_t n)
{
    json_t *job = n > 0 ? json_loadb((const char *)job_json, n, 0, NULL) : NULL;
    const json_t *data = json_object_get(json_object_get(job, "evaluate"), "dataset");
    const char *kind = json_string_value(json_object_get(data, "kind"));
    const char *usage = json_string_value(json_object_get(data, "usage"));
    if (kind == NULL) {
        snprintf(buf, CLI_EVAL_NAME_MAX, "the evaluation data");
    } else if (usage == NULL || strcmp(usage, "all") == 0) {
        snprintf(buf, CLI_EVAL_NAME_MAX, "all of %.32s", kind);
    } else {
        snprintf(buf, CLI_EVAL_NAME_MAX, "the %.16s set of %.32s", usage, kind);
    }
    json_decref(job);
    return buf;
}
