/* mailbox.c - what the trainer leaves for the scheduler */
#include "libworker/agent/mailbox.h"

#include "proto/clock.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <stdlib.h>

struct parcel { /* a packed frame */
    struct parcel *next;
    uint16_t type;
    int is_passing; /* the next one of its kind tells more */
    size_t size;
    uint8_t bytes[];
};

void mailbox_init(struct mailbox *box)
{
    *box = (struct mailbox){.first = NULL};
    pthread_mutex_init(&box->lock, NULL);
}

void mailbox_fini(struct mailbox *box)
{
    while (box->first != NULL) {
        struct parcel *next = box->first->next;
        free(box->first);
        box->first = next;
    }
    free(box->sticky);
    box->sticky = NULL;
    pthread_mutex_destroy(&box->lock);
}

static int is_sticky(uint16_t type)
{
    return type == MS_MSG_RANK_PLAN || type == MS_MSG_RANK_READY || type == MS_MSG_PEER_REPORT ||
           type == MS_MSG_RANK_DONE;
}

/* Progress, but for the one that has an evaluation: no other tells of that again. */
static int is_passing(uint16_t type, const ProtobufCMessage *msg)
{
    return type == MS_MSG_PROGRESS && !((const Ms__Progress *)msg)->has_eval;
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
    parcel->is_passing = is_passing(type, msg);
    parcel->size = size;
    if (ms_wire_pack(type, 0, msg, parcel->bytes, size, err) < 0) {
        free(parcel);
        return NULL;
    }
    return parcel;
}

/* The oldest that the next one makes up for, else the oldest Progress, which has an evaluation that
 * the scheduler would not keep either (MS_EVALS_MAX), else the oldest of all. Under the lock. */
static void make_room(struct mailbox *box)
{
    struct parcel **progress = NULL;
    struct parcel **victim = NULL;
    for (struct parcel **at = &box->first; victim == NULL && *at != NULL; at = &(*at)->next) {
        victim = (*at)->is_passing ? at : NULL;
        progress = progress == NULL && (*at)->type == MS_MSG_PROGRESS ? at : progress;
    }
    victim = victim != NULL ? victim : progress != NULL ? progress : &box->first;
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
    box->sticky_sent = 0;
}

int mailbox_put(struct mailbox *box, uint16_t type, const ProtobufCMessage *msg, struct ms_err *err)
{
    struct ms_err local;
    err = err != NULL ? err : &local;
    struct parcel *parcel = pack(type, msg, err);
    if (parcel == NULL) {
        return ms_err_code(err);
    }
    pthread_mutex_lock(&box->lock);
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
    box->sticky_sent = 0;
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
    if (box->sticky != NULL && box->sticky->type == MS_MSG_RANK_READY && box->sticky_sent) {
        free(box->sticky); /* an end that crossed it is not answered by that */
        box->sticky = NULL;
    }
    pthread_mutex_unlock(&box->lock);
}
