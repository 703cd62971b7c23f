/* server_tick.c - the end of an iteration: what was decided becomes durable, then visible */
#include "daemon/server_state.h"

#include "daemon/sched/memory.h"
#include "daemon/store/files.h"
#include "proto/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE_MS = 100,        /* this long without a commit is idle */
    STATUS_MS = 1000,     /* a change shows in systemctl status after this */
    FULL_RETRY_MS = 1000, /* look for free disk again */
    FULL_SAY_MS = 300000, /* and say so every five minutes */
};

static void refuse_writes(struct server *server)
{
    struct ms_err why = {0, ""};
    int64_t now = server_mono_ms();
    const int has_room = store_has_room(server->store); /* first: the words say what is left */
    server->refusal = store_refusal(server->store, &why);
    sched_refuse_writes(server->sched, why.text, has_room);
    if (!server->is_refusing || now - server->refusal_said_ms > FULL_SAY_MS) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "%s text=%s",
               server->refusal == MS_E_FULL ? "store.full" : "store.no_reserve",
               ms_log_quote(quoted, sizeof(quoted), why.text));
        server->refusal_said_ms = now;
    }
    server->is_refusing = 1;
}

static void accept_writes(struct server *server)
{
    if (server->is_refusing) {
        server->is_refusing = 0;
        sched_refuse_writes(server->sched, "", 1);
        ms_log(MS_LOG_NOTICE, "store.space text=\"there is space again, taking new work\"");
    }
}

void server_look_at_disk(struct server *server)
{
    if (server->store == NULL) {
        return;
    }
    if (store_idle(server->store) == 1) {
        refuse_writes(server);
        server_arm(server->idle, FULL_RETRY_MS);
    } else {
        accept_writes(server);
    }
}

void server_look_at_room(struct server *server)
{
    if (server->is_refusing) {
        refuse_writes(server);
    }
}

static void warn_of_store(struct server *server)
{
    struct ms_err what = {0, ""};
    char quoted[2 * MS_ERR_TEXT_MAX];
    if (store_take_warning(server->store, &what)) {
        ms_log(MS_LOG_WARNING, "store.warning text=%s",
               ms_log_quote(quoted, sizeof(quoted), what.text));
    }
}

static int commit(struct server *server, const struct sched_effect *effects, size_t n,
                  struct ms_err *err)
{
    size_t durable = 0;
    for (size_t i = 0; i < n; i++) {
        durable += sched_effect_is_durable(effects[i].kind) != 0;
    }
    if (durable == 0 || server->store == NULL) {
        return 0;
    }
    int64_t began = server_mono_us();
    int rc = store_commit(server->store, effects, n, err);
    if (rc == MS_E_NOMEM && memory_spend()) { /* decided already: the reserve is for this, too */
        rc = store_commit(server->store, effects, n, err);
    }
    server->commit_last_us = (uint64_t)(server_mono_us() - began);
    histogram_add(&server->commits, server->commit_last_us);
    warn_of_store(server);
    if (rc < 0) {
        return rc;
    }
    const int was_refusing = server->is_refusing;
    if (rc == 1) {
        refuse_writes(server);
    }
    if (!was_refusing || !evtimer_pending(server->idle, NULL)) {
        server_arm(server->idle, server->is_refusing ? FULL_RETRY_MS : IDLE_MS);
    } /* else commits without a pause would put off for ever the look that ends it */
    return 0;
}

/* Effects that share a tail follow each other: its copy lives until another one, or the tick's end.
 */
static struct ms_shared *tail_of(struct server *server, const struct sched_effect *effect)
{
    if (server->tail == NULL || server->tail_source != effect->tail) {
        ms_shared_unref(server->tail);
        server->tail = ms_shared_create(effect->tail, effect->tail_bytes);
        server->tail_source = effect->tail;
    }
    return server->tail;
}

static void tail_drop(struct server *server)
{
    ms_shared_unref(server->tail);
    server->tail = NULL;
}

static void send_frame(struct server *server, const struct client *client,
                       const struct sched_effect *effect)
{
    /* above the hard limit it closes itself, and on_close says why */
    if (effect->tail_bytes == 0) {
        (void)ms_conn_send_bytes(client->conn, effect->frame, effect->frame_bytes, NULL);
        return;
    }
    struct ms_shared *tail = tail_of(server, effect);
    if (tail == NULL || ms_conn_send_shared(client->conn, effect->frame, effect->frame_bytes, tail,
                                            NULL) == MS_E_NOMEM) {
        ms_conn_close(client->conn); /* half told is worse: it registers again */
    }
}

static void send_answer(struct server *server, const struct sched_effect *effect)
{
    struct client *client = clients_find(&server->clients, effect->conn);
    size_t size = 0;
    uint8_t *frame = client != NULL && server->store != NULL
                         ? store_answer(server->store, effect->read, &size)
                         : NULL;
    if (frame != NULL) {
        (void)ms_conn_send_bytes(client->conn, frame, size, NULL);
        server_sent(server, client);
    } else if (client != NULL) {
        ms_conn_close(client->conn); /* no memory even to say so */
    }
    free(frame);
}

static void carry_out(struct server *server, const struct sched_effect *effect)
{
    struct client *client = NULL;
    switch (effect->kind) {
    case SCHED_DO_SEND:
        client = clients_find(&server->clients, effect->conn);
        if (client != NULL) {
            send_frame(server, client, effect);
            server_sent(server, client);
        }
        break;
    case SCHED_DO_CLOSE:
        client = clients_find(&server->clients, effect->conn);
        if (client != NULL) {
            ms_conn_close(client->conn);
        }
        break;
    case SCHED_DO_LOG:
        server_log(server, effect->level, "%s", effect->text);
        break;
    case SCHED_DO_READ:
        send_answer(server, effect);
        break;
    case SCHED_DO_EXIT:
        ms_log(effect->status == 0 ? MS_LOG_NOTICE : MS_LOG_ERR, "scheduler.exit status=%d %s",
               effect->status, effect->text);
        server_stop(server, effect->status, SERVER_DRAIN_MS,
                    effect->status == 0 ? "the job is over" : effect->text);
        break;
    case SCHED_DO_PUT_JOB:
    case SCHED_DO_PUT_MEMBER:
    case SCHED_DO_DROP_MEMBERS:
    case SCHED_DO_DROP_JOB:
    case SCHED_DO_PUT_PLAN:
    case SCHED_DO_DROP_PLAN:
    case SCHED_DO_PUT_ASIDE:
    case SCHED_DO_DROP_ASIDE:
    case SCHED_DO_PUT_EVENT:
    case SCHED_DO_DROP_EVENT:
    case SCHED_DO_PUT_META:
        break; /* committed already */
    }
}

static struct sched_times times_of(const struct histogram *histogram)
{
    return (struct sched_times){.n = histogram->n,
                                .p50_us = histogram_at(histogram, 500),
                                .p99_us = histogram_at(histogram, 990),
                                .p999_us = histogram_at(histogram, 999),
                                .max_us = histogram->max};
}

void server_tell_times(struct server *server)
{
    sched_set_driver_stats(server->sched, &(struct sched_driver_stats){
                                              .ticks = times_of(&server->ticks),
                                              .ticks_cpu = times_of(&server->ticks_cpu),
                                              .commits = times_of(&server->commits),
                                              .commit_last_us = server->commit_last_us,
                                              .clients = (uint32_t)places_used(&server->places)});
}

static void apply_time(struct server *server)
{
    if (sched_deadline(server->sched) <= server_mono_ms() && !server->is_stopping) {
        server_apply(server, &(struct sched_event){.kind = SCHED_EV_TIME});
    }
}

int server_tick(struct server *server, struct ms_err *err)
{
    server_reap(server);
    server_look_at_output(server);
    server_tell_crowd(server);
    server_judge_standstill(server, server_mono_ms());
    apply_time(server);
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(server->sched, &n);
    int rc = commit(server, effects, n, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        carry_out(server, &effects[i]);
    }
    server_flush(server);
    tail_drop(server);
    const int was_full = sched_tick_is_full(server->sched);
    sched_begin_tick(server->sched);
    /* What is due goes before requests, or those would always fill the turn; but not twice running:
     * nobody is read meanwhile, and nodes whose heartbeats wait would lose their leases. */
    server->due_went_first = was_full && !server->due_went_first;
    if (server->due_went_first) {
        server_reap(server);
        apply_time(server);
    }
    if (n > 0 && !evtimer_pending(server->idle, NULL)) {
        server_arm(server->idle, STATUS_MS);
    }
    if (server->is_stopping && !server->closing_sent) {
        server->closing_sent = 1;
        server_close_clients(server);
    }
    server_adjust_listeners(server);
    if (server->tick_began_us != 0) {
        histogram_add(&server->ticks, (uint64_t)(server_mono_us() - server->tick_began_us));
        histogram_add(&server->ticks_cpu, (uint64_t)(server_cpu_us() - server->tick_cpu_us));
    }
    server_turn_end(server);
    if (server->watchdog_due) {
        server->watchdog_due = 0;
        ms_notify("WATCHDOG=1");
    }
    return 0;
}
