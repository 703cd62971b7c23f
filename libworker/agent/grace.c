/* grace.c - the bound on a trainer that was told to end and does not */
#include "libworker/agent/agent_impl.h"

#include "proto/clock.h"
#include "proto/log.h"
#include "proto/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int64_t grace_ms(const struct agent *agent)
{
    return agent->cfg.grace_ms > 0 ? agent->cfg.grace_ms : MS_CANCEL_GRACE_MS;
}

/* Of a stop after the step: the scheduler counts, and begins anew where a rank is lost meanwhile.
 * This is for one that is gone. */
static int64_t soft_ms(const struct agent *agent)
{
    return GRACES_SOFT * grace_ms(agent);
}

static void give_up(struct agent *agent, const struct agent_order *order,
                    const struct holding *rank)
{
    char text[MS_TEXT_MAX + 1];
    snprintf(text, sizeof(text),
             "rank %u of job %" PRIu64 " hangs: it was told to end %" PRId64
             " s ago (%.200s); its process ends now, so that the node is free again",
             rank->rank, rank->job, grace_ms(agent) / 1000,
             order->kind == AGENT_LEAVE ? "the worker was asked to leave" : order->text);
    if (agent->cfg.on_hang != NULL) {
        agent->cfg.on_hang(agent->cfg.arg, text);
    }
}

/* One tick, or until something changed. True after a whole tick. Under the lock. */
static int wait_tick(struct agent *agent)
{
    struct grace *grace = &agent->grace;
    struct timespec until = ms_mono_after(grace_ms(agent) / GRACE_TICKS);
    return pthread_cond_timedwait(&grace->changed, &grace->lock, &until) == ETIMEDOUT;
}

/* A tick is over. Under the lock, which give_up is called without. */
static void count_tick(struct agent *agent)
{
    struct grace *grace = &agent->grace;
    if (hand_is_at_rest(&agent->hand, grace->rank.generation)) {
        grace->left = 0; /* in time */
        return;
    }
    if (--grace->left > 0) {
        return;
    }
    if (grace->is_soft) {
        grace->is_soft = 0;
        grace->left = GRACE_TICKS;
        atomic_store(&agent->harden, 1);
        agent_wake(agent);
        return;
    }
    struct agent_order order = grace->order;
    struct holding rank = grace->rank;
    pthread_mutex_unlock(&grace->lock);
    give_up(agent, &order, &rank);
    pthread_mutex_lock(&grace->lock);
}

static void *grace_main(void *arg)
{
    struct agent *agent = arg;
    struct grace *grace = &agent->grace;
    pthread_mutex_lock(&grace->lock);
    while (!grace->ending) {
        if (grace->left == 0) {
            pthread_cond_wait(&grace->changed, &grace->lock);
        } else if (wait_tick(agent) && !grace->ending && grace->left > 0) {
            count_tick(agent);
        }
    }
    pthread_mutex_unlock(&grace->lock);
    return NULL;
}

void grace_harden(struct agent *agent)
{
    struct grace *grace = &agent->grace;
    pthread_mutex_lock(&grace->lock);
    struct agent_order hard = grace->order;
    pthread_mutex_unlock(&grace->lock);
    hard.at_step = 0;
    hard.code = MS_E_CANCELLED;
    snprintf(hard.text, sizeof(hard.text),
             "the step did not end within %" PRId64 " s of the request to stop after it",
             soft_ms(agent) / 1000);
    agent_give(agent, &hard);
}

void grace_init(struct grace *grace)
{
    ms_cond_init(&grace->changed);
    pthread_mutex_init(&grace->lock, NULL);
}

void grace_fini(struct grace *grace)
{
    if (grace->runs) {
        pthread_mutex_lock(&grace->lock);
        grace->ending = 1;
        pthread_cond_signal(&grace->changed);
        pthread_mutex_unlock(&grace->lock);
        pthread_join(grace->thread, NULL);
    }
    pthread_mutex_destroy(&grace->lock);
    pthread_cond_destroy(&grace->changed);
}

static void begin(struct agent *agent, const struct holding *rank, const struct agent_order *order)
{
    struct grace *grace = &agent->grace;
    int is_soft = order->kind == AGENT_STOP && order->at_step;
    pthread_mutex_lock(&grace->lock);
    int is_repeated = grace->left > 0 && grace->rank.generation == rank->generation &&
                      !grace->is_soft; /* the first request to end counts, the last one to stop */
    if (!is_repeated) {
        grace->left = is_soft ? GRACES_SOFT * GRACE_TICKS : GRACE_TICKS;
        grace->is_soft = is_soft;
        grace->rank = *rank;
        grace->order = *order;
        pthread_cond_signal(&grace->changed);
    }
    if (!grace->runs) {
        grace->runs = ms_thread_start(&grace->thread, grace_main, agent) == 0;
        if (!grace->runs) {
            ms_log(MS_LOG_WARNING, "agent.no_grace reason=\"no thread for it\", ignoring");
        }
    }
    pthread_mutex_unlock(&grace->lock);
}

void grace_begin(struct agent *agent, const struct agent_order *order)
{
    struct holding rank = hand_look(&agent->hand);
    int concerns = order->kind != AGENT_STOP || order->generation == rank.generation;
    if (rank.generation != 0 && concerns && !hand_is_at_rest(&agent->hand, rank.generation)) {
        begin(agent, &rank, order);
    }
}

void grace_begin_superseded(struct agent *agent, const struct holding *rank)
{
    struct agent_order order = {.kind = AGENT_STOP,
                                .job = rank->job,
                                .generation = rank->generation,
                                .code = MS_E_ABORTED,
                                .text = "the scheduler gave this node another rank"};
    begin(agent, rank, &order);
}

void grace_end(struct agent *agent)
{
    struct grace *grace = &agent->grace;
    pthread_mutex_lock(&grace->lock);
    grace->left = 0;
    pthread_mutex_unlock(&grace->lock);
    atomic_store(&agent->harden, 0);
}
