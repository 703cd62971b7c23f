/* fuzz_job.c - a job file and an override, behind a NUL; what is accepted must survive its own JSON
 */
#include "libworker/job/job.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Equal jobs have equal bytes: job_parse begins with a cleared struct. */
static void check_round_trip(const struct job *job)
{
    struct job again;
    struct ms_err err = {0, ""};
    size_t size = 0;
    char *text = job_format(job, &size);
    FUZZ_CHECK(text != NULL && strlen(text) == size);
    int rc = job_parse(text, size, "again", NULL, NULL, 0, 0, &again, &err);
    if (rc != MS_OK) {
        fprintf(stderr, "%s\n%s\n", err.text, text);
    }
    FUZZ_CHECK(rc == MS_OK);
    FUZZ_CHECK(memcmp(job, &again, sizeof(again)) == 0);
    free(text);
}

static void check_values(const struct job *job)
{
    FUZZ_CHECK(job->workers >= 1 && job->workers <= MS_WORKERS_MAX);
    FUZZ_CHECK(job->batch_size >= 1 && job->batch_size <= MS_BATCH_MAX);
    FUZZ_CHECK(job->accumulate >= 1 && job->accumulate <= MS_ACCUMULATE_MAX);
    FUZZ_CHECK(job->n_groups >= 0 && job->n_groups <= MS_GROUPS_MAX);
    FUZZ_CHECK(job->epochs >= 1 && job->epochs <= MS_EPOCHS_MAX);
    FUZZ_CHECK(job->n_transforms >= 0 && job->n_transforms <= MS_TRANSFORMS_MAX);
    FUZZ_CHECK(job->optimizer.learning_rate >= 0 && job->optimizer.learning_rate <= 1000);
    FUZZ_CHECK(job->optimizer.weight_decay >= 0 && job->optimizer.weight_decay <= 1000);
    FUZZ_CHECK(job->optimizer.schedule.n_milestones >= 0 &&
               job->optimizer.schedule.n_milestones <= MS_MILESTONES_MAX);
    FUZZ_CHECK(job->n_class_weights >= 0 && job->n_class_weights <= MS_CLASS_WEIGHTS_MAX);
    FUZZ_CHECK(job->name[0] != '\0' && strchr(job->name, '/') == NULL);
    FUZZ_CHECK(job->network[0] != '\0');
    FUZZ_CHECK(job->recovery == 0 || job->recovery == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job job;
    struct ms_err err = {0, ""};
    const uint8_t *nul = memchr(data, 0, size);
    size_t text_size = nul != NULL ? (size_t)(nul - data) : size;
    size_t set_size = nul != NULL ? size - text_size - 1 : 0;
    char *set = calloc(1, set_size + 1);
    FUZZ_CHECK(set != NULL);
    memcpy(set, nul != NULL ? nul + 1 : data, set_size);
    struct job_override override = {set};
    memset(&job, 0x5A, sizeof(job));

    int rc = job_parse((const char *)data, text_size, "fuzz.yaml", "/base", &override,
                       set_size > 0 ? 1 : 0, 0, &job, &err);
    if (rc == MS_OK) {
        check_values(&job);
        check_round_trip(&job);
    } else {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
    }
    free(set);
    return 0;
}
