/* job_format.c - a job as canonical JSON: every key that applies, sorted, one line */
#include "libworker/data/json_text.h"
#include "libworker/job/job_schema.h"

char *job_format(const struct job *job, size_t *ret_size)
{
    json_t *root = table_write(&job_table, job);
    char *text = json_text(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), ret_size);
    json_decref(root);
    return text;
}
