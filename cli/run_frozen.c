/* run_frozen.c - workers of `msctl run` that live and are lost to the scheduler
 *
 *     its rank is lost, it lives  -> RUN_FROZEN_S seconds in which it may come back by itself
 *     the scheduler says of its very process that it is LOST
 *                                 -> killed, and run_restart.c starts it again
 *     ... or of one before it, for it never heard this one: RUN_UNHEARD_S
 *
 * Seconds are counted by a timer that begins anew each time: one in which all of us stood still
 * (a machine that was suspended, a container that was frozen) is one, however long it was. What a
 * debugger holds is left alone, and so is who may be the last that holds the training: only its
 * owner knows whether it can wake up. Both are said once. */
#include "cli/format.h"
#include "cli/run.h"
#include "proto/state_words.h"

#include <string.h>

enum { SECOND_MS = 1000 };

static const Ms__RankInfo *rank_of(const struct run *run, size_t index)
{
    const Ms__JobInfo *job = run->last != NULL ? run->last->job : NULL;
    return job != NULL && index - 1 < job->n_ranks ? job->ranks[index - 1] /* ranks are node ids */
                                                   : NULL;
}

static int is_lost(const struct run *run, size_t index)
{
    const Ms__RankInfo *rank = rank_of(run, index);
    return rank != NULL && strcmp(rank->state, MS_RANK_STATE_LOST) == 0 && run_needs(run, index) &&
           child_is_alive(&run->children[index]) && run->children[index].sent == 0;
}

/* Since it is of use it holds what all have computed. */
static int is_holder(const struct run *run, size_t index)
{
    const struct child *child = &run->children[index];
    const Ms__RankInfo *rank = rank_of(run, index);
    return rank != NULL && child_is_alive(child) && rank->pid == (uint32_t)child->pid &&
           child->restart.ready_ms > 0 && strcmp(rank->state, MS_RANK_STATE_LOST) != 0 &&
           strcmp(rank->state, MS_RANK_STATE_MISSING) != 0;
}

static int has_holder(const struct run *run)
{
    int has = 0;
    for (size_t i = 1; i < run->n_children; i++) {
        has |= is_holder(run, i);
    }
    return has;
}

/* ---- asking ---- */

static void ask(struct run *run)
{
    Ms__NodeQuery request = MS__NODE_QUERY__INIT;
    struct ms_err why = {0, ""};
    if (run->nodes_id == 0 &&
        client_send(run->cli->client, MS_MSG_NODE_QUERY, &request.base, &run->nodes_id, &why) < 0) {
        run->nodes_id = 0; /* the connection is lost: the next second asks again */
    }
}

/* While there is no scheduler nobody can come back to it. */
static int can_ask(const struct run *run)
{
    return run->cli->client != NULL && client_get_state(run->cli->client) == CLIENT_OPEN;
}

void run_frozen_look(struct run *run)
{
    const int is_over = run->fired[RUN_TIMER_FROZEN] && can_ask(run);
    int n_lost = 0;
    int is_due = 0;
    for (size_t i = 1; i < run->n_children; i++) {
        struct child *child = &run->children[i];
        if (!is_lost(run, i)) {
            child->lost_s = child->is_left_alone = 0;
            continue;
        }
        n_lost++;
        child->lost_s += is_over;
        is_due |= is_over && child->lost_s >= RUN_FROZEN_S;
    }
    if (is_due) {
        ask(run);
    }
    if (n_lost > 0 &&
        (run->fired[RUN_TIMER_FROZEN] || !evtimer_pending(run->timers[RUN_TIMER_FROZEN], NULL))) {
        run_timer_set(run, RUN_TIMER_FROZEN, SECOND_MS);
    }
}

/* ---- judging ---- */

/* silent_ms 0: this scheduler never heard of it. */
static void say(struct run *run, const struct child *child, uint64_t silent_ms, const char *what)
{
    char text[512];
    char silent[CLI_FORMAT_MAX + 8] = "by the scheduler that is there now";
    char time[CLI_FORMAT_MAX];
    if (silent_ms > 0) {
        snprintf(silent, sizeof(silent), "for %s",
                 cli_format_duration(time, (double)silent_ms / SECOND_MS));
    }
    snprintf(text, sizeof(text), "%s (pid %ld) lives, but was not heard of %s: %s", child->name,
             (long)child->pid, silent, what);
    cli_display_note(&run->display, text);
}

static void leave_alone(struct run *run, struct child *child, uint64_t silent_ms, long tracer)
{
    char what[320];
    const long pid = (long)child->pid;
    if (child->is_left_alone) {
        return;
    }
    child->is_left_alone = 1;
    if (tracer > 0) {
        snprintf(what, sizeof(what), "process %ld debugs it, and it is left alone", tracer);
    } else {
        snprintf(what, sizeof(what),
                 "it is left alone, for no other worker holds the training. kill -CONT %ld wakes "
                 "one that was stopped; kill -KILL %ld has it started again, from the newest "
                 "checkpoint",
                 pid, pid);
    }
    say(run, child, silent_ms, what);
}

static void judge(struct run *run, size_t index, uint64_t silent_ms)
{
    struct child *child = &run->children[index];
    const long tracer = child_tracer(child);
    if (tracer > 0 || !has_holder(run)) {
        leave_alone(run, child, silent_ms, tracer);
        return;
    }
    say(run, child, silent_ms, "it is killed");
    child_signal(child, SIGKILL);
}

/* Here a node's id is its place among the workers. */
static int is_node_of(const Ms__NodeInfo *node, size_t index)
{
    char id[32];
    snprintf(id, sizeof(id), "%zu", index - 1);
    return strcmp(node->node_id, id) == 0;
}

static void look_at(struct run *run, const Ms__NodeInfo *node, size_t index)
{
    const struct child *child = &run->children[index];
    const int is_known = node->pid == (uint32_t)child->pid;
    if (strcmp(node->state, MS_NODE_STATE_LOST) == 0 && is_lost(run, index) &&
        child->lost_s >= (is_known ? RUN_FROZEN_S : RUN_UNHEARD_S)) {
        judge(run, index, is_known ? node->last_seen_ms : 0);
    }
}

void run_frozen_take(struct run *run, uint16_t type, const ProtobufCMessage *msg)
{
    const Ms__NodeList *list = (const Ms__NodeList *)msg;
    run->nodes_id = 0;
    if (type != MS_MSG_NODE_LIST) {
        return; /* no memory for it at the moment, say */
    }
    for (size_t n = 0; n < list->n_nodes; n++) {
        for (size_t i = 1; i < run->n_children; i++) {
            if (is_node_of(list->nodes[n], i)) {
                look_at(run, list->nodes[n], i);
            }
        }
    }
}
