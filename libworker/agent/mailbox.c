/* mailbox.c - what the trainer leaves for the scheduler */
#include "libworker/agent/mailbox.h"

#include "proto/clock.h"
#include "proto/log.h"
#include "proto/text.h"
#include "proto/wire.h"

#include <stdlib.h>

struct parcel { /* a packed frame */
    struct parcel *next;
    uint16_t type;
    size_t size;
    uint8_t bytes[];
};

/* A Progress of which no other one tells again: it goes out anew, under the generation of then. */
struct evaluation {
    struct evaluation *next;
    int sent; /* on this connection, since the last Start */
    Ms__Progress msg;
    char phase[MS_NAME_MAX + 1]; /* of msg */
};

void mailbox_init(struct mailbox *box)
{
    *box = (struct mailbox){.first = NULL};
    pthread_mutex_init(&box->lock, NULL);
}

static void evals_pop(struct mailbox *box)
{
    struct evaluation *gone = box->evals;
    box->evals = gone->next;
    box->n_evals--;
    free(gone);
}

void mailbox_fini(struct mailbox *box)
{
    while (box->evals != NULL) {
        evals_pop(box);
    }
    while (box->first != NULL) {
        struct parcel *next = box->first->next;
        free(box->first);
        box->first = next;
    }
    free(box->saved);
    free(box->sticky);
    box->saved = box->sticky = NULL;
    pthread_mutex_destroy(&box->lock);
}

static int is_sticky(uint16_t type)
{
    return type == MS_MSG_RANK_PLAN || type == MS_MSG_RANK_READY || type == MS_MSG_PEER_REPORT ||
           type == MS_MSG_RANK_DONE;
}

/* Of a checkpoint alone: it says nothing of where the rank is. */
static int is_of_checkpoint(uint16_t type, const ProtobufCMessage *msg)
{
    const Ms__Progress *progress = (const Ms__Progress *)msg;
    return type == MS_MSG_PROGRESS && progress->step == 0 && progress->saved > 0;
}

static struct parcel *pack(uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    struct parcel *parcel = malloc(sizeof(*parcel) + size);
    if (parcel == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for a message of %zu bytes", size);
        return NULL;
    }
    parcel->next = NULL;
    parcel->type = type;
    parcel->size = size;
    if (ms_wire_pack(type, 0, msg, parcel->bytes, size, err) < 0) {
        free(parcel);
        return NULL;
    }
    return parcel;
}

/* The oldest Progress, for the next one tells more, else the oldest of all. Under the lock. */
static void make_room(struct mailbox *box)
{
    struct parcel **victim = &box->first;
    while (*victim != NULL && (*victim)->type != MS_MSG_PROGRESS) {
        victim = &(*victim)->next;
    }
    victim = *victim != NULL ? victim : &box->first;
    struct parcel *gone = *victim;
    *victim = gone->next;
    free(gone);
    box->count--;
    box->dropped++;
}

static void append(struct mailbox *box, struct parcel *parcel)
{
    if (box->count == MAILBOX_MAX) {
        make_room(box);
    }
    struct parcel **tail = &box->first;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = parcel;
    box->count++;
}

/* The end of a rank that is not out yet goes out before the first word of the next one, for the
 * scheduler waits for it; and what was seen of a peer before the end that followed from it. Under
 * the lock. */
static void replace_sticky(struct mailbox *box, struct parcel *parcel)
{
    struct parcel *old = box->sticky;
    box->waits_since_ms = old != NULL ? box->waits_since_ms : ms_mono_ms();
    const int is_news = old != NULL && !box->sticky_sent &&
                        (old->type == MS_MSG_RANK_DONE || old->type == MS_MSG_PEER_REPORT);
    if (is_news) {
        append(box, old);
    } else {
        free(old);
    }
    box->sticky = parcel;
    box->sticky_number++;
    box->sticky_sent = 0;
}

/* ---- evaluations --------------------------------------------------------------------------------
 */

/* Whom the message is of; step: the rank has made none behind it. */
struct about {
    uint64_t job, generation, step;
};

static struct about about_of(uint16_t type, const ProtobufCMessage *msg)
{
    const Ms__Progress *progress = (const Ms__Progress *)msg;
    const Ms__RankReady *ready = (const Ms__RankReady *)msg;
    const Ms__RankPlan *plan = (const Ms__RankPlan *)msg;
    const Ms__PeerReport *report = (const Ms__PeerReport *)msg;
    const Ms__RankDone *done = (const Ms__RankDone *)msg;
    switch (type) {
    case MS_MSG_PROGRESS:
        return (struct about){progress->job, progress->generation, progress->step};
    case MS_MSG_RANK_READY:
        return (struct about){ready->job, ready->generation, ready->step};
    case MS_MSG_RANK_PLAN:
        return (struct about){plan->job, plan->generation, UINT64_MAX};
    case MS_MSG_PEER_REPORT:
        return (struct about){report->job, report->generation, UINT64_MAX};
    case MS_MSG_RANK_DONE:
        return (struct about){done->job, done->generation, UINT64_MAX};
    default:
        return (struct about){0};
    }
}

/* Behind the last one up to this step. Under the lock. */
static struct evaluation **evals_after(struct mailbox *box, uint64_t step)
{
    struct evaluation **at = &box->evals;
    while (*at != NULL && (*at)->msg.step <= step) {
        at = &(*at)->next;
    }
    return at;
}

/* Those of another job concern nobody any more, and those of later steps are made again: the rank
 * went back. Under the lock. */
static void evals_note(struct mailbox *box, uint16_t type, const ProtobufCMessage *msg)
{
    const struct about about = about_of(type, msg);
    if (about.job == 0) {
        return;
    }
    if (box->saved_job != about.job ||
        (type == MS_MSG_RANK_READY && about.step < box->saved_step)) {
        free(box->saved);
        box->saved = NULL;
    }
    while (box->evals != NULL && box->job != about.job) {
        evals_pop(box);
    }
    for (struct evaluation **at = evals_after(box, about.step); *at != NULL;) {
        struct evaluation *gone = *at;
        *at = gone->next;
        box->n_evals--;
        free(gone);
    }
    box->job = about.job;
    box->generation = about.generation;
}

static struct evaluation *evaluation_of(const Ms__Progress *msg, struct ms_err *err)
{
    struct evaluation *eval = malloc(sizeof(*eval));
    if (eval == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for an evaluation");
        return NULL;
    }
    *eval = (struct evaluation){.msg = *msg};
    eval->msg.base.n_unknown_fields = 0;
    eval->msg.base.unknown_fields = NULL;
    ms_text_copy(eval->phase, sizeof(eval->phase), msg->phase);
    eval->msg.phase = eval->phase;
    return eval;
}

/* Of too many the oldest goes, as with the scheduler. */
static int put_eval(struct mailbox *box, const Ms__Progress *msg, struct ms_err *err)
{
    struct evaluation *eval = evaluation_of(msg, err);
    if (eval == NULL) {
        return ms_err_code(err);
    }
    pthread_mutex_lock(&box->lock);
    evals_note(box, MS_MSG_PROGRESS, &msg->base);
    if (box->n_evals == MS_EVALS_MAX) {
        box->dropped += !box->evals->sent;
        evals_pop(box);
    }
    *evals_after(box, UINT64_MAX) = eval;
    box->n_evals++;
    pthread_mutex_unlock(&box->lock);
    return 0;
}

/* The last one says all. Under the lock. */
static void replace_saved(struct mailbox *box, struct parcel *parcel, const Ms__Progress *msg)
{
    free(box->saved);
    box->saved = parcel;
    box->saved_job = msg->job;
    box->saved_step = msg->saved;
    box->saved_sent = 0;
}

/* Under the lock. */
static void evals_unsent(struct mailbox *box)
{
    for (struct evaluation *eval = box->evals; eval != NULL; eval = eval->next) {
        eval->sent = 0;
    }
}

/* Under the lock. */
static void evals_flush(struct mailbox *box, struct ms_conn *conn)
{
    for (struct evaluation *eval = box->evals; eval != NULL; eval = eval->next) {
        struct ms_err err;
        eval->msg.generation = box->generation;
        if (!eval->sent && ms_conn_send(conn, MS_MSG_PROGRESS, 0, &eval->msg.base, &err) < 0) {
            ms_log(MS_LOG_WARNING, "agent.send_failed reason=%s, retrying", MS_QUOTE(err.text));
        }
        eval->sent = 1;
    }
}

/* ---- in and out ---------------------------------------------------------------------------------
 */

int mailbox_put(struct mailbox *box, uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    struct ms_err local;
    err = err != NULL ? err : &local;
    if (type == MS_MSG_PROGRESS && ((const Ms__Progress *)msg)->has_eval) {
        return put_eval(box, (const Ms__Progress *)msg, err);
    }
    struct parcel *parcel = pack(type, msg, err);
    if (parcel == NULL) {
        return ms_err_code(err);
    }
    pthread_mutex_lock(&box->lock);
    if (is_of_checkpoint(type, msg)) {
        replace_saved(box, parcel, (const Ms__Progress *)msg);
        pthread_mutex_unlock(&box->lock);
        return 0;
    }
    evals_note(box, type, msg);
    if (is_sticky(type)) {
        replace_sticky(box, parcel);
    } else {
        append(box, parcel);
    }
    pthread_mutex_unlock(&box->lock);
    return 0;
}

static void send_one(struct ms_conn *conn, const struct parcel *parcel)
{
    struct ms_err err;
    if (ms_conn_send_bytes(conn, parcel->bytes, parcel->size, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.send_failed reason=%s, retrying", MS_QUOTE(err.text));
    }
}

unsigned mailbox_flush(struct mailbox *box, struct ms_conn *conn)
{
    pthread_mutex_lock(&box->lock);
    evals_flush(box, conn);
    if (box->saved != NULL && !box->saved_sent) {
        send_one(conn, box->saved);
        box->saved_sent = 1;
    }
    while (box->first != NULL) {
        struct parcel *parcel = box->first;
        box->first = parcel->next;
        send_one(conn, parcel);
        free(parcel);
    }
    box->count = 0;
    if (box->sticky != NULL && !box->sticky_sent) {
        send_one(conn, box->sticky);
        box->sticky_sent = 1;
    }
    unsigned dropped = box->dropped;
    box->dropped = 0;
    pthread_mutex_unlock(&box->lock);
    return dropped;
}

void mailbox_reconnected(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    evals_unsent(box); /* the scheduler that took them may not have lived to read them */
    box->saved_sent = box->sticky_sent = 0;
    pthread_mutex_unlock(&box->lock);
}

void mailbox_answered(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (box->sticky_sent) { /* else they crossed: it is no answer to that */
        free(box->sticky);
        box->sticky = NULL;
    }
    pthread_mutex_unlock(&box->lock);
}

void mailbox_done_again(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (box->sticky != NULL && box->sticky->type == MS_MSG_RANK_DONE) {
        box->sticky_sent = 0;
    }
    pthread_mutex_unlock(&box->lock);
}

uint64_t mailbox_number(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    const uint64_t number = box->sticky_number;
    pthread_mutex_unlock(&box->lock);
    return number;
}

void mailbox_done_no_more(struct mailbox *box, uint64_t number)
{
    pthread_mutex_lock(&box->lock);
    if (box->sticky != NULL && box->sticky->type == MS_MSG_RANK_DONE &&
        box->sticky_number == number) {
        free(box->sticky);
        box->sticky = NULL;
    }
    pthread_mutex_unlock(&box->lock);
}

void mailbox_planned(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    if (box->sticky != NULL && box->sticky->type == MS_MSG_RANK_PLAN) {
        free(box->sticky);
        box->sticky = NULL;
    }
    pthread_mutex_unlock(&box->lock);
}

int64_t mailbox_waits_since(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    int64_t since_ms = box->sticky != NULL ? box->waits_since_ms : 0;
    pthread_mutex_unlock(&box->lock);
    return since_ms;
}

void mailbox_started(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    evals_unsent(box); /* while ranks stood still they counted for nothing */
    if (box->sticky != NULL && box->sticky->type == MS_MSG_RANK_READY && box->sticky_sent) {
        free(box->sticky); /* an end that crossed it is not answered by that */
        box->sticky = NULL;
    }
    pthread_mutex_unlock(&box->lock);
}
