/* spec.c - the descriptions of jobs: which are kept in memory */
#include "daemon/sched/spec.h"

#include "daemon/sched/state.h"
#include "proto/digest.h"

#include <stdlib.h>
#include <string.h>

/* Nobody but a database can give it back later; a dynamic cluster's next start needs its bytes. */
static bool is_released(const struct sched *s)
{
    return s->cfg.has_database && s->cfg.mode != SCHED_DYNAMIC;
}

int spec_take(const struct sched *s, struct job *job, const struct sched_job_row *row)
{
    uint8_t digest[MS_SHA256_BYTES];
    job->spec_bytes = row->spec_bytes;
    if (row->spec_sha256[0] != '\0') {
        ms_text_copy(job->spec_sha256, sizeof(job->spec_sha256), row->spec_sha256);
    } else {
        ms_sha256(row->spec_bytes > 0 ? row->spec : digest, row->spec_bytes, digest);
        ms_sha256_hex(digest, job->spec_sha256);
    }
    if (job_is_ended(job) && is_released(s)) {
        return 0;
    }
    job->spec = malloc(row->spec_bytes + 1);
    if (job->spec == NULL) {
        return MS_E_NOMEM;
    }
    if (row->spec_bytes > 0) {
        memcpy(job->spec, row->spec, row->spec_bytes);
    }
    return 0;
}

bool spec_says(const void *spec, size_t bytes, const char *words)
{
    return bytes > 0 && memmem(spec, bytes, words, strlen(words)) != NULL;
}

bool spec_is(const struct job *job, const uint8_t *bytes, size_t size)
{
    uint8_t digest[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];
    if (job->spec_bytes != size) {
        return false;
    }
    ms_sha256(bytes, size, digest);
    ms_sha256_hex(digest, hex);
    return strcmp(job->spec_sha256, hex) == 0;
}

void spec_settle(struct sched *s, struct job *job)
{
    if (is_released(s)) {
        free(job->spec);
        job->spec = NULL;
    }
}
