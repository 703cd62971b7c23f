/* mode.c - the three modes as a table; a cluster with a queue has nothing of its own to do */
#include "daemon/sched/state.h"

static uint32_t any_number(const struct sched *s)
{
    (void)s;
    return 0;
}

static void nothing(struct sched *s)
{
    (void)s;
}

static int nothing_loaded(struct sched *s, struct ms_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

static const char *not_refused(struct sched *s, const struct node_info *info,
                               const Ms__Register *msg, int *ret_code)
{
    (void)s;
    (void)info;
    (void)msg;
    (void)ret_code;
    return NULL;
}

static const char *not_let_be(struct sched *s, const Ms__Register *msg)
{
    (void)s;
    (void)msg;
    return NULL;
}

static void nothing_registered(struct sched *s, const struct node_info *info,
                               const Ms__Register *msg)
{
    (void)s;
    (void)info;
    (void)msg;
}

static void nothing_of(struct sched *s, const struct job *job)
{
    (void)s;
    (void)job;
}

static void nothing_found(struct sched *s, const struct job *job, struct node *node,
                          const struct claim *claim)
{
    (void)s;
    (void)job;
    (void)node;
    (void)claim;
}

static void nothing_left(struct sched *s, const struct node *node)
{
    (void)s;
    (void)node;
}

static int holds(const struct sched *s, struct ms_err *err)
{
    (void)s;
    (void)err;
    return 0;
}

const struct mode modes[] = {
    [SCHED_STANDING] =
        {
            .name = "standing",
            .takers = "start its worker again, or another one",
            .requeues_on_restart = true,
            .places_anew = true,
            .expected = any_number,
            .start = nothing,
            .load = nothing_loaded,
            .refusal = not_refused,
            .lets_be = not_let_be,
            .registered = nothing_registered,
            .settle = nothing,
            .job_ended = nothing_of,
            .found_ended = nothing_found,
            .left = nothing_left,
            .waiting_for = awaited_words,
            .check = holds,
        },
    [SCHED_DYNAMIC] =
        {
            .name = "dynamic",
            .no_submit = "this is a dynamic cluster, which runs the one job that its workers "
                         "brought: submit to a standing cluster, or use msctl run",
            .by_hand = true,
            .takers = "start its worker again",
            .ids_are_ranks = true,
            .orders_by_address = true,
            .expected = dynamic_expected,
            .start = dynamic_start,
            .load = dynamic_load,
            .refusal = dynamic_refusal,
            .lets_be = dynamic_lets_be,
            .registered = dynamic_take_spec,
            .settle = dynamic_settle,
            .job_ended = dynamic_job_ended,
            .found_ended = dynamic_found_ended,
            .left = dynamic_left,
            .waiting_for = dynamic_waiting_for,
            .check = dynamic_check,
        },
    [SCHED_RUN] =
        {
            .name = "run",
            .takers = "its worker if it comes back, or one that msctl run starts in its place",
            .names_run_dir = true,
            .sees_ends = true,
            .requeues_on_restart = true,
            .ids_are_ranks = true,
            .expected = any_number,
            .start = nothing,
            .load = nothing_loaded,
            .refusal = not_refused,
            .lets_be = not_let_be,
            .registered = nothing_registered,
            .settle = nothing,
            .job_ended = nothing_of,
            .found_ended = nothing_found,
            .left = nothing_left,
            .waiting_for = awaited_words,
            .check = holds,
        },
};
