/* job_schedule.c - how long a job is, in steps, and whether its schedule goes by that */
#include "libworker/job/job.h"

uint64_t job_total_steps(const struct job *job, int64_t steps_per_epoch)
{
    const uint64_t whole = (uint64_t)steps_per_epoch * (uint64_t)job->epochs;
    return job->steps > 0 && (uint64_t)job->steps < whole ? (uint64_t)job->steps : whole;
}

int job_schedule_is_as_long(const struct job *job)
{
    const struct job_schedule *schedule = &job->optimizer.schedule;
    const int has_length = schedule->kind == JOB_COSINE || schedule->kind == JOB_POLYNOMIAL ||
                           schedule->kind == JOB_ONE_CYCLE;
    return job->optimizer.has_schedule && has_length && schedule->length == 0;
}
