/* grace.c - the bound on a trainer that was told to end and does not */
#include "libworker/agent/agent_impl.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t grace_ms(const struct agent *agent)
{
    return agent->cfg.grace_ms > 0 ? agent->cfg.grace_ms : MS_CANCEL_GRACE_MS;
}

static void next_tick(struct agent *agent)
{
    agent_arm(agent->grace.tick, grace_ms(agent) / GRACE_TICKS);
}

static void harden(struct agent *agent)
{
    const struct grace *grace = &agent->grace;
    struct agent_order hard = grace->order;
    hard.at_step = 0;
    hard.code = MS_E_CANCELLED;
    snprintf(hard.text, sizeof(hard.text),
             "the step did not end within %" PRId64 " s of the request to stop after it",
             grace_ms(agent) / 1000);
    agent_give(agent, &hard);
}

static void give_up(struct agent *agent, const struct holding *holding)
{
    const struct agent_order *order = &agent->grace.order;
    char text[MS_TEXT_MAX + 1];
    snprintf(text, sizeof(text),
             "rank %u of job %" PRIu64 " hangs: it was told to end %" PRId64
             " s ago (%.200s); its process ends now, so that the node is free again",
             holding->rank, holding->job, grace_ms(agent) / 1000,
             order->kind == AGENT_LEAVE ? "the worker was asked to leave" : order->text);
    if (agent->cfg.on_hang != NULL) {
        agent->cfg.on_hang(agent->cfg.arg, text);
    }
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct agent *agent = arg;
    struct grace *grace = &agent->grace;
    struct holding holding = mailbox_holding(&agent->mailbox);
    if (holding.job == 0 || holding.generation != grace->generation) {
        grace->left = 0; /* released in time */
        return;
    }
    if (--grace->left > 0) {
        next_tick(agent);
        return;
    }
    if (grace->is_soft) {
        harden(agent);
        return;
    }
    give_up(agent, &holding);
}

int grace_init(struct agent *agent, struct ms_err *err)
{
    agent->grace.tick = evtimer_new(agent->base, on_tick, agent);
    return agent->grace.tick != NULL ? 0
                                     : ms_fail(err, MS_E_NOMEM, "no memory for the agent's timers");
}

void grace_fini(struct agent *agent)
{
    if (agent->grace.tick != NULL) {
        event_free(agent->grace.tick);
    }
}

void grace_begin(struct agent *agent, const struct agent_order *order)
{
    struct grace *grace = &agent->grace;
    struct holding holding = mailbox_holding(&agent->mailbox);
    int is_soft = order->kind == AGENT_STOP && order->at_step;
    int concerns = order->kind != AGENT_STOP || order->generation == 0 ||
                   order->generation == holding.generation;
    if (holding.job == 0 || !concerns) {
        return;
    }
    if (grace->left > 0 && grace->generation == holding.generation &&
        (is_soft || !grace->is_soft)) {
        return; /* the first request counts: repeating it gives no more time */
    }
    grace->left = GRACE_TICKS;
    grace->is_soft = is_soft;
    grace->generation = holding.generation;
    grace->order = *order;
    next_tick(agent);
}
