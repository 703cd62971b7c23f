/* hold.c - which ranks a node has, bound to a placed job or waiting to be let go of */
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdlib.h>

struct hold *hold_add(struct sched *s, struct node *node, uint64_t job, uint64_t generation,
                      uint32_t rank)
{
    struct hold *hold = memory_take(sizeof(*hold));
    hold->node = node;
    hold->job_id = job;
    hold->generation = generation;
    hold->rank = rank;
    list_add_tail(&node->holds, &hold->by_node);
    node_idle_update(s, node);
    return hold;
}

void hold_bind(struct hold *hold, struct job *job)
{
    assert(hold->job == NULL && job->run->members[hold->rank].hold == NULL);
    hold->job = job;
    job->run->members[hold->rank].hold = hold;
}

void hold_unbind(struct hold *hold)
{
    if (hold->job != NULL) {
        hold->job->run->members[hold->rank].hold = NULL;
        hold->job = NULL;
    }
}

void hold_settle(struct hold *hold)
{
    if (hold->heard != 0) {
        hold->generation = hold->heard;
        hold->heard = 0;
    }
}

void hold_let_go(struct sched *s, struct hold *hold)
{
    hold_unbind(hold);
    hold->stopping_ms = s->now.mono_ms;
    timer_arm(s, &hold->answer, TIMER_STOP_ANSWER, after_ms(s, MS_STOP_ANSWER_MS));
}

void hold_overdue(struct sched *s, struct timer *timer)
{
    struct hold *hold = list_item(timer, struct hold, answer);
    const struct node_info *info = &hold->node->info;
    hold->overdue = true;
    s->n_stuck++;
    emit_log(s, MS_LOG_WARNING,
             "node.stuck node=%s host=%s pid=%u job=%llu rank=%u since_ms=%d: it was told to let "
             "go of the rank and does not answer; it gets no work until it does",
             emit_quote(s, info->node_id), emit_quote(s, info->host_name), info->pid,
             (unsigned long long)hold->job_id, hold->rank, MS_STOP_ANSWER_MS);
    node_idle_update(s, hold->node);
}

void hold_drop(struct sched *s, struct hold *hold)
{
    struct node *node = hold->node;
    hold_unbind(hold);
    former_gone(s, hold);
    timer_stop(s, &hold->answer);
    list_remove(&hold->by_node);
    s->n_stuck -= hold->overdue;
    free(hold);
    node_idle_update(s, node);
}

struct hold *hold_first(const struct node *node)
{
    return list_empty(&node->holds) ? NULL : list_item(node->holds.next, struct hold, by_node);
}

struct hold *hold_find(const struct node *node, uint64_t job, uint64_t generation, uint32_t rank)
{
    for (struct list *at = node->holds.next; at != &node->holds; at = at->next) {
        struct hold *hold = list_item(at, struct hold, by_node);
        if (hold->job_id == job && hold->generation == generation && hold->rank == rank) {
            return hold;
        }
    }
    return NULL;
}
