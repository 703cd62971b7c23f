/* info.c - jobs and nodes as clients see them */
#include "daemon/sched/state.h"

#include "proto/state_words.h"

#include <time.h>

static Ms__Progress *info_progress(struct sched *s, const struct progress *progress)
{
    Ms__Progress *msg = emit_alloc(s, sizeof(*msg));
    *msg = progress->msg;
    msg->phase = (char *)progress->phase;
    return msg;
}

static void info_ranks(struct sched *s, const struct job *job, Ms__JobInfo *info)
{
    Ms__RankInfo *ranks = emit_alloc(s, job->workers * sizeof(*ranks));
    info->ranks = emit_alloc(s, job->workers * sizeof(Ms__RankInfo *));
    info->n_ranks = job->workers;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct member *member = &job->run->members[rank];
        ms__rank_info__init(&ranks[rank]);
        ranks[rank].rank = rank;
        ranks[rank].node_id = (char *)member->node_id;
        ranks[rank].host_name = member->host_name;
        ranks[rank].state = (char *)(job->run->stands_still && member->state == RANK_TRAINING
                                         ? MS_RANK_STATE_HOLDING /* a lost one keeps it */
                                         : rank_state_name(member->state));
        ranks[rank].log_path = member->log_path;
        ranks[rank].step = member->step;
        ranks[rank].pid = member->pid;
        info->ranks[rank] = &ranks[rank];
    }
}

static void info_run(struct sched *s, const struct job *job, Ms__JobInfo *info)
{
    const struct run *run = job->run;
    info_ranks(s, job, info);
    info->evals = emit_alloc(s, (run->n_evals + 1) * sizeof(Ms__Progress *));
    info->n_evals = run->n_evals;
    for (size_t i = 0; i < run->n_evals; i++) {
        info->evals[i] = info_progress(s, &run->evals[i]);
    }
}

/* Texts of a rank (names, host, path) in the message's bytes, and in a copy of it, rounded up. */
enum { RANK_BYTES = 2 * (MS_NAME_MAX + MS_HOST_MAX + MS_PATH_MAX) + 64 };

size_t info_bytes(const struct job *job)
{
    size_t bytes = 16384 + 2 * job->spec_bytes + 2 * (job->plan != NULL ? job->plan->bytes : 0);
    if (job->run != NULL) {
        bytes += job->workers * (2 * sizeof(Ms__RankInfo) + RANK_BYTES);
        bytes += job->run->n_evals * (2 * sizeof(Ms__Progress) + 512);
    }
    return bytes;
}

Ms__JobInfo *info_job(struct sched *s, const struct job *job, enum info_part part)
{
    Ms__JobInfo *info = emit_alloc(s, sizeof(*info));
    ms__job_info__init(info);
    info->id = job->id;
    info->name = (char *)job->name;
    info->owner = (char *)job->owner;
    info->state = (char *)sched_job_state_name(job->state);
    info->reason = (char *)job_reason(s, job);
    info->workers = job->workers;
    info->priority = job->priority;
    info->generation = job->generation;
    info->submitted_ms = job->submitted_ms;
    info->started_ms = job->started_ms;
    info->ended_ms = job->ended_ms;
    info->weights_sha256 = (char *)job->weights_sha256;
    info->plan_sha256 = (char *)job->plan_sha256;
    info->code = job->code;
    info->seconds = job->seconds;
    info->steps = job->steps;
    if (job->run != NULL && job->run->has_progress) {
        info->progress = info_progress(s, &job->run->progress);
    }
    if (job->run != NULL) {
        info->recoveries = job->run->n_recoveries;
        info->ranks_lost = job->run->n_ranks_lost;
        info->recovering_ms = job->run->recovering_ms;
        info->recovering_least = job->run->recovering_least;
        info->went_on_from = job->run->went_on_from;
        info->again_from = job->run->again_from;
        info->again_to = job->run->again_to;
        if (job->state == JOB_RECOVERING && job->run->stands_still) { /* it goes on */
            info->recovering_ms += (uint64_t)(s->now.mono_ms - job->run->still_ms);
            info->recovering_least |= job->run->stall.is_least;
        }
    }
    if (s->mode->names_run_dir) { /* the checkpoints are the client's, and he looks for them */
        info->tag = (char *)job_tag(s, job);
    }
    info->plan_given = job->plan_given;
    if (part == INFO_PLAN && job->plan != NULL && job->plan->text != NULL) {
        info->plan = job->plan->text;
    }
    if (job->run != NULL && part != INFO_ROW) {
        info_run(s, job, info);
    }
    if (part == INFO_ALL && job->spec != NULL) {
        info->job_json.data = (uint8_t *)job->spec;
        info->job_json.len = job->spec_bytes;
    }
    return info;
}

/* The name of a host is free: that of a certificate tells whose it is. */
static const char *paused_words(struct sched *s, const struct host *host)
{
    const char *principal = host_principal(host);
    const char *whose = principal[0] != '\0' ? emit_text(s, ", that of %s,", principal) : "";
    return emit_text(s, "paused: its host%s lost a node while a job got ready; goes on by itself",
                     whose);
}

static const char *node_activity(struct sched *s, const struct node *node)
{
    const struct hold *hold = hold_first(node);
    if (hold == NULL) {
        return node->state != NODE_REGISTERED ? ""
               : node->leaving                ? "leaving: its process ends, or begins anew"
               : node->host->drained ? emit_text(s, "drained by %s: %s", node->host->drained_by,
                                                 node->host->drained_why)
               : node->host->paused  ? paused_words(s, node->host)
               : timer_is_armed(&node->rest)
                   ? "rests: it lacked memory or descriptors for a job; gets the next one soon"
                   : "idle";
    }
    if (hold->job != NULL) {
        return emit_text(s, "job %llu rank %u", (unsigned long long)hold->job_id, hold->rank);
    }
    if (hold->keeps != NULL) {
        return emit_text(s, "job %llu: keeps the state of rank %u until another node has it",
                         (unsigned long long)hold->job_id, hold->rank);
    }
    return emit_text(s, "stopping job %llu rank %u since %lld s", (unsigned long long)hold->job_id,
                     hold->rank, (long long)(s->now.mono_ms - hold->stopping_ms) / 1000);
}

/* Until when as a clock says it, and how long that is: whose clock and place are not the
 * scheduler's has the second. */
static const char *aside_words(struct sched *s, const struct host *host)
{
    const int64_t left_ms = host_aside_end_ms(host) - s->now.mono_ms;
    const time_t end = (time_t)((s->now.wall_ms + left_ms) / 1000);
    char clock[32] = "";
    struct tm tm;
    if (gmtime_r(&end, &tm) != NULL) {
        strftime(clock, sizeof(clock), "until %H:%M UTC, ", &tm);
    }
    return text_behind(
        s,
        emit_text(s,
                  "set aside %sfor %lld min: its host lost two ranks within an hour, and gets "
                  "others only where no other host can; the last: ",
                  clock, (long long)(left_ms + 59999) / 60000),
        host_aside_why(host));
}

/* What is wrong with it. */
static const char *node_reason(struct sched *s, const struct node *node)
{
    const struct hold *hold = hold_first(node);
    if (node->state == NODE_NEW) {
        return emit_text(s, "not heard of since %s", node->expected);
    }
    if (hold != NULL && hold->overdue) {
        return emit_text(s,
                         "it does not let go of job %llu rank %u, and gets no work until it does: "
                         "end process %u on host %.100s",
                         (unsigned long long)hold->job_id, hold->rank, node->info.pid,
                         node->info.host_name);
    }
    if (node->state == NODE_REGISTERED && host_is_aside(node->host)) {
        return aside_words(s, node->host);
    }
    return node->reason;
}

Ms__NodeInfo *info_node(struct sched *s, const struct node *node)
{
    Ms__NodeInfo *info = emit_alloc(s, sizeof(*info));
    ms__node_info__init(info);
    info->node_id = (char *)node->info.node_id;
    info->host_name = (char *)node->info.host_name;
    info->state = (char *)states_of_nodes.states[node->state];
    info->activity = (char *)node_activity(s, node);
    info->cores = node->info.cores;
    info->physical = node->info.has_offer ? node->info.offer.physical : 0;
    info->memory_bytes = node->info.memory_bytes;
    info->address = (char *)node->info.data_address;
    info->last_seen_ms = (uint64_t)(s->now.mono_ms > node->seen_ms && node->seen_ms > 0
                                        ? s->now.mono_ms - node->seen_ms
                                        : 0);
    info->isa = (char *)node->info.isa;
    info->onednn = (char *)node->info.onednn;
    info->pid = node->info.pid;
    info->reason = (char *)node_reason(s, node);
    info->cert_name = (char *)node->info.cert_name;
    return info;
}
