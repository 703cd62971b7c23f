/* sim_clients.c - msctl, many times: each op asks until it has its answer */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_FRAME = 7 };

struct sim_op *op_of_job(struct world *w, uint64_t job)
{
    const struct sched_job_row *row = disk_job(w, job);
    return row != NULL && strncmp(row->name, "job-", 4) == 0
               ? &w->ops[strtoul(row->name + 4, NULL, 10) % SIM_OPS_MAX]
               : NULL;
}

/* The submit that was told this id. */
static struct sim_op *op_told(struct world *w, uint64_t job)
{
    for (uint32_t i = 0; i < w->n_ops; i++) {
        if (w->ops[i].kind == OP_SUBMIT && w->ops[i].job == job && job != 0) {
            return &w->ops[i];
        }
    }
    return NULL;
}

static void op_at(struct world *w, uint32_t i, int64_t at)
{
    sim_at(w, at, SIM_OP, i, ++w->ops[i].stamp, 0);
}

static void hang_up(struct world *w, struct sim_op *op)
{
    if (op->link != 0) {
        net_close_here(w, op->link);
        op->link = 0;
    }
    op->sent = false;
    op->epoch++;
}

static void op_end(struct world *w, struct sim_op *op)
{
    op->done = true;
    hang_up(w, op);
}

/* Msctl without a deadline of its own: it asks for a sign of life now and then, by asking again. */
static bool is_patient(const struct sim_op *op)
{
    return op->kind == OP_WATCH || (op->kind == OP_EVENTS && op->at_step);
}

static bool job_is_over(const struct world *w, uint64_t job)
{
    const struct sched_job_row *row = disk_job(w, job);
    return row == NULL || row->state >= JOB_SUCCEEDED;
}

bool op_is_at_rest(const struct world *w, const struct sim_op *op)
{
    const struct sched_job_row *row = disk_job(w, w->ops[op->submit].job);
    bool waits = op->kind == OP_WATCH ? strcmp(op->last_state, "QUEUED") == 0
                                      : row != NULL && row->state == JOB_QUEUED;
    return op->done || (is_patient(op) && waits);
}

/* ---- questions ----------------------------------------------------------------------------------
 */

/* Checkpoints on the node of rank 0; in a folder of all; none. */
static const char *const checkpoints[] = {"\"checkpoint\":{\"directory\":\"c\"}", "",
                                          "\"checkpoint\":{\"directory\":\"/c\"}",
                                          "\"checkpoint\":null"};

/* Jobs differ in their last byte at least, and are as long as they like. */
static void ask_submit(struct world *w, struct sim_op *op, uint32_t i)
{
    Ms__Submit msg = MS__SUBMIT__INIT;
    char key[24];
    char name[24];
    static char spec[MS_SPEC_MAX];
    snprintf(key, sizeof(key), "key-%u", op->key);
    snprintf(name, sizeof(name), "job-%u", i);
    memset(spec, ' ', op->spec_bytes);
    spec[0] = '{';
    const char *words = checkpoints[op->key % MS_ARRAY_SIZE(checkpoints)];
    if (strlen(words) + 3 <= op->spec_bytes) {
        memcpy(spec + 1, words, strlen(words));
    }
    spec[op->spec_bytes - 2] = (char)('0' + i);
    spec[op->spec_bytes - 1] = '}';
    msg.job_json.data = (uint8_t *)spec;
    msg.job_json.len = op->spec_bytes;
    msg.name = name;
    msg.key = key;
    msg.workers = op->workers;
    msg.priority = op->priority;
    msg.recovery = op->recovery;
    char plan[SIM_PLAN_MAX];
    msg.plan = (char *)(op->plan > 0 ? plan_text(op->plan, plan) : "");
    msg.run_dir = (char *)(w->mode == SCHED_RUN ? "/tmp/run" : "");
    msg.stamp.data = w->stamp_of[op->person];
    msg.stamp.len = w->has_stamp_of[op->person] ? MS_STAMP_LEN : 0;
    net_up(w, op->link, MS_MSG_SUBMIT, OP_FRAME, &msg.base);
}

/* Follows from the last number that it has seen (at_step), or looks somewhere, up or down. */
static void ask_events(struct world *w, const struct sim_op *op, uint64_t job, uint32_t id)
{
    Ms__EventQuery msg = MS__EVENT_QUERY__INIT;
    bool backwards = !op->at_step && op->offset % 2 == 1;
    msg.job = op->rank % 2 == 0 ? job : 0;
    msg.node_id = op->rank == 1 ? w->nodes[0].id : (char *)"";
    msg.after = op->at_step ? op->seen : backwards ? 0 : op->offset % 50;
    msg.before = backwards ? 1 + op->offset % 70 : 0;
    msg.limit = (uint32_t)(op->offset % 5);
    msg.wait = op->at_step;
    net_up(w, op->link, MS_MSG_EVENT_QUERY, id, &msg.base);
}

/* A grace begins anew with each rank that is lost, too: at the worst each is asked to save, and cut
 * off when it hears that. */
static int64_t longer_ms(const struct world *w, const struct sim_op *op)
{
    return 2 * w->lease_ms + (int64_t)w->ops[op->submit].workers * MS_CANCEL_GRACE_MS;
}

static void ask(struct world *w, struct sim_op *op, uint32_t i)
{
    uint64_t job = w->ops[op->submit].job;
    Ms__Cancel cancel = MS__CANCEL__INIT;
    Ms__Watch watch = MS__WATCH__INIT;
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    Ms__LogQuery logs = MS__LOG_QUERY__INIT;
    Ms__NodeQuery nodes = MS__NODE_QUERY__INIT;
    Ms__StatusQuery status = MS__STATUS_QUERY__INIT;
    Ms__Fetch fetch = MS__FETCH__INIT;
    char reason[32];
    snprintf(reason, sizeof(reason), "reason %u", i);
    op->asked = job;
    switch (op->kind) {
    case OP_SUBMIT:
        ask_submit(w, op, i);
        break;
    case OP_CANCEL:
    case OP_STRANGER:
        cancel.job = job;
        cancel.at_step = op->at_step;
        cancel.reason = reason;
        for (uint32_t n = 0; n < op->burst; n++) { /* the last one is what counts */
            net_up(w, op->link, MS_MSG_CANCEL, OP_FRAME + op->burst - 1 - n, &cancel.base);
        }
        break;
    case OP_WATCH:
        watch.job = job;
        net_up(w, op->link, MS_MSG_WATCH, OP_FRAME, &watch.base);
        break;
    case OP_LIST:
        query.job = op->offset % 3 == 0 ? job : 0;
        query.all = op->offset % 2;
        query.limit = (uint32_t)(op->offset % 4);
        query.plan = op->offset % 5 == 0;
        query.after = op->at_step && job > 1 ? job - 1 : 0;
        net_up(w, op->link, MS_MSG_JOB_QUERY, OP_FRAME, &query.base);
        break;
    case OP_LOGS:
        logs.job = job;
        logs.rank = op->rank;
        logs.offset = op->offset;
        logs.bytes_max = op->at_step ? 12 : 0;
        net_up(w, op->link, MS_MSG_LOG_QUERY, OP_FRAME, &logs.base);
        break;
    case OP_NODES:
        nodes.limit = op->at_step ? 1 + (uint32_t)(op->offset % 4) : 0;
        nodes.after = op->cursor;
        net_up(w, op->link, MS_MSG_NODE_QUERY, OP_FRAME, &nodes.base);
        break;
    case OP_STATUS:
        net_up(w, op->link, MS_MSG_STATUS_QUERY, OP_FRAME, &status.base);
        break;
    case OP_FETCH:
        fetch.job = job;
        fetch.what = 1 + (uint32_t)(op->offset % 4) + (op->offset % 20 == 0);
        fetch.rank = fetch.what == MS_FETCH_LOG || op->offset % 20 == 1 ? op->rank : 0;
        net_up(w, op->link, MS_MSG_FETCH, OP_FRAME, &fetch.base);
        break;
    case OP_EVENTS:
        for (uint32_t n = op->at_step ? 1 : op->burst; n > 0; n--) {
            ask_events(w, op, job, OP_FRAME + n - 1);
        }
        break;
    case OP_KINDS:
    default:
        break;
    }
    op->sent = true;
    /* a grace begins anew where somebody is waited for meanwhile */
    const int64_t graces = op->kind == OP_CANCEL ? 6 : 2;
    op->deadline = is_patient(op) ? SIM_FOREVER : w->now + graces * MS_CANCEL_GRACE_MS;
    op->longer_ms = op->kind == OP_CANCEL ? longer_ms(w, op) : 0;
}

void op_cancel_now(struct world *w, uint64_t job)
{
    for (uint32_t i = 0; i < w->n_ops; i++) {
        const struct sim_op *op = &w->ops[i];
        if (op->kind == OP_CANCEL && op->at_step && !op->done && !op->sent &&
            w->ops[op->submit].job == job && sim_chance(w, 50)) {
            op_at(w, i, w->now + (int64_t)sim_below(w, MS_BLAME_MS / 2));
        }
    }
}

void op_wake(struct world *w, uint32_t i)
{
    struct sim_op *op = &w->ops[i];
    if (op->done) {
        return;
    }
    const bool is_healthy = op->sent && !is_patient(op) && net_is_healthy(w, op->link, w->now);
    if (is_healthy && w->now >= op->deadline && op->longer_ms > 0) {
        op->deadline += op->longer_ms; /* else it asks again */
        op->longer_ms = 0;
    }
    if (op->sent && (is_patient(op) || w->now >= op->deadline)) {
        if (is_healthy) {
            sim_fail(w, "op %u (kind %d) had no answer in time", i, (int)op->kind);
        }
        hang_up(w, op);
        if (op->kind == OP_EVENTS && job_is_over(w, w->ops[op->submit].job)) {
            op_end(w, op); /* nothing will happen to it */
            return;
        }
    }
    if (op->kind != OP_SUBMIT && w->ops[op->submit].done && w->ops[op->submit].job == 0) {
        op_end(w, op); /* there never was such a job */
        return;
    }
    if (op->kind != OP_SUBMIT && w->ops[op->submit].job == 0) { /* nothing to ask about yet */
        op_at(w, i, w->now + 500);
        return;
    }
    if (op->link == 0) {
        op->link = net_open(w, false, i, op->epoch);
        if (op->link == 0) {
            op_at(w, i, w->now + 100 + (int64_t)sim_below(w, 500));
            return;
        }
        if (w->chaos > 1 && w->now < w->faults_end && sim_chance(w, 5)) {
            w->links[op->link - 1].stalled_from = w->now + (int64_t)sim_below(w, 20);
        }
        ask(w, op, i);
        if (op->kind == OP_WATCH && sim_chance(w, 40)) { /* it reads slowly */
            int64_t at = w->now + 15 + (int64_t)sim_below(w, 2000);
            sim_at(w, at, SIM_CLOGGED, op->link, w->boot, 0);
            sim_at(w, at + 1 + (int64_t)sim_below(w, 2000), SIM_CLEARED, op->link, w->boot, 0);
        }
        if (w->chaos > 0 && w->now < w->faults_end && sim_chance(w, 10)) {
            hang_up(w, op); /* Ctrl-C at once, and again */
            op_at(w, i, w->now + 300);
            return;
        }
    }
    op_at(w, i, is_patient(op) ? w->now + SIM_WATCH_AGAIN_MS : op->deadline);
}

void op_hung_up(struct world *w, uint32_t i)
{
    struct sim_op *op = &w->ops[i];
    if (!op->done) {
        op->link = 0;
        op->sent = false;
        op->epoch++;
        op_at(w, i, w->now + 50 + (int64_t)sim_below(w, 300));
    }
}

/* ---- answers ------------------------------------------------------------------------------------
 */

static void on_submitted(struct world *w, struct sim_op *op, const Ms__Submitted *msg)
{
    const struct sched_job_row *row = disk_job(w, msg->job);
    const struct sim_op *other = op_told(w, msg->job);
    if (row == NULL && w->jobs_kept_max >= 1000) {
        sim_fail(w, "job %llu was acknowledged and is not stored", (unsigned long long)msg->job);
    } else if (other != NULL && other != op) {
        sim_fail(w, "job id %llu was given twice", (unsigned long long)msg->job);
    } else if (op->job != 0 && op->job != msg->job && w->jobs_kept_max >= 1000) {
        sim_fail(w, "one key got two jobs: %llu and %llu", (unsigned long long)op->job,
                 (unsigned long long)msg->job);
    }
    op->job = msg->job;
    if (msg->stamp.len == MS_STAMP_LEN) {
        memcpy(w->stamp_of[op->person], msg->stamp.data, MS_STAMP_LEN);
        w->has_stamp_of[op->person] = true;
    }
    if (w->chaos > 0 && sim_chance(w, 10)) { /* the answer was lost on the way to the user */
        hang_up(w, op);
        op_at(w, (uint32_t)(op - w->ops), w->now + 100);
    } else {
        op_end(w, op);
    }
}

static void on_update(struct world *w, struct sim_op *op, const Ms__JobUpdate *msg)
{
    const Ms__JobInfo *job = msg->job;
    snprintf(op->last_state, sizeof(op->last_state), "%s", job->state);
    snprintf(op->last_reason, sizeof(op->last_reason), "%s", job->reason);
    if (job->reason[0] == '\0' && strcmp(job->state, "RUNNING") != 0) {
        sim_fail(w, "job %llu is %s without a reason", (unsigned long long)job->id, job->state);
    }
    if (msg->ended) {
        const struct sched_job_row *row = disk_job(w, job->id);
        if (row == NULL ? w->jobs_kept_max >= 1000
                        : strcmp(sched_job_state_name(row->state), job->state) != 0) {
            sim_fail(w, "watchers heard that job %llu is %s before it was stored",
                     (unsigned long long)job->id, job->state);
        }
        op_end(w, op);
    }
}

static void on_error(struct world *w, struct sim_op *op, const Ms__Error *msg)
{
    sim_trace(w, "op %d hears: %s", (int)op->kind, msg->text);
    bool later = msg->code == MS_E_FULL ||
                 (op->kind == OP_SUBMIT && msg->code == MS_E_REFUSED &&
                  !person_is_refused(op->person >= PEOPLE - PEOPLE_ADMINS, op->priority));
    if (msg->text[0] == '\0') {
        sim_fail(w, "op kind %d was refused without words", (int)op->kind);
    } else if (msg->code == MS_E_NOT_FOUND && op->kind != OP_LOGS && op->kind != OP_FETCH &&
               w->jobs_kept_max >= 1000) {
        sim_fail(w, "job %llu was acknowledged and is gone: %s",
                 (unsigned long long)w->ops[op->submit].job, msg->text);
    } else if (later && op->kind == OP_SUBMIT && world_is_tight(w) && sim_chance(w, 30)) {
        op_end(w, op);  /* there may never be a place */
    } else if (later) { /* the disk is full: again when it is not */
        hang_up(w, op);
        op_at(w, (uint32_t)(op - w->ops), w->now + 1000);
    } else {
        op_end(w, op);
    }
}

static void on_ok(struct world *w, struct sim_op *op)
{
    uint64_t job = op->asked;
    const struct sched_job_row *row = disk_job(w, job);
    if (op->kind == OP_STRANGER) {
        sim_fail(w, "a stranger cancelled job %llu", (unsigned long long)job);
    } else if (row == NULL ? w->jobs_kept_max >= 1000 : row->state != JOB_CANCELLED) {
        sim_fail(w, "job %llu was said to be cancelled and is stored as %s",
                 (unsigned long long)job,
                 row != NULL ? sched_job_state_name(row->state) : "nothing");
    }
    op_end(w, op);
}

static void on_log(struct world *w, struct sim_op *op, const Ms__LogChunk *msg)
{
    char want[96];
    size_t n =
        (size_t)snprintf(want, sizeof(want), "job %llu rank %u from %llu",
                         (unsigned long long)op->asked, op->rank, (unsigned long long)op->offset);
    n = op->at_step && n > 12 ? 12 : n;
    bool evil = w->n_evils > 0 && msg->data.len == 4 && memcmp(msg->data.data, "evil", 4) == 0;
    if (!evil && (msg->data.len != n || memcmp(msg->data.data, want, n) != 0)) {
        sim_fail(w, "the log '%s' was asked for, and '%.*s' comes", want, (int)msg->data.len,
                 (const char *)msg->data.data);
    }
    op_end(w, op);
}

/* Whoever follows sees each number once, in order, whatever happens to the scheduler. */
static void on_events(struct world *w, struct sim_op *op, uint32_t i, const Ms__EventList *msg)
{
    for (size_t k = 0; k < msg->n_events && op->at_step; k++) {
        if (msg->events[k]->number <= op->seen) {
            sim_fail(w, "op %u is told of event %llu after event %llu", i,
                     (unsigned long long)msg->events[k]->number, (unsigned long long)op->seen);
        }
        op->seen = msg->events[k]->number;
    }
    if (!op->at_step || (!msg->more && job_is_over(w, w->ops[op->submit].job))) {
        op_end(w, op);
        return;
    }
    if (msg->at < op->seen) {
        sim_fail(w, "op %u has seen event %llu, and is sent back to %llu", i,
                 (unsigned long long)op->seen, (unsigned long long)msg->at);
    }
    op->seen = msg->at;
    ask(w, op, i);
}

void op_frame(struct world *w, uint32_t i, uint16_t type, uint32_t id, const ProtobufCMessage *msg)
{
    struct sim_op *op = &w->ops[i];
    if (op->done || id != OP_FRAME) {
        return;
    }
    switch (type) {
    case MS_MSG_SUBMITTED:
        on_submitted(w, op, (const Ms__Submitted *)msg);
        break;
    case MS_MSG_JOB_UPDATE:
        on_update(w, op, (const Ms__JobUpdate *)msg);
        break;
    case MS_MSG_ERROR:
        on_error(w, op, (const Ms__Error *)msg);
        break;
    case MS_MSG_OK:
        on_ok(w, op);
        break;
    case MS_MSG_LOG_CHUNK:
        on_log(w, op, (const Ms__LogChunk *)msg);
        break;
    case MS_MSG_EVENT_LIST:
        on_events(w, op, i, (const Ms__EventList *)msg);
        break;
    case MS_MSG_NODE_LIST:
        if (((const Ms__NodeList *)msg)->more) {
            snprintf(op->cursor, sizeof(op->cursor), "%s", ((const Ms__NodeList *)msg)->next);
            ask(w, op, i);
        } else {
            op_end(w, op);
        }
        break;
    case MS_MSG_FETCH_TICKET:
    case MS_MSG_JOB_LIST:
    case MS_MSG_STATUS_INFO:
        op_end(w, op);
        break;
    default:
        sim_fail(w, "op %u was answered with message type %u", i, type);
    }
}
