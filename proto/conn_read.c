/* conn_read.c - frames in: whole, within the limit of their type, from a role that may send them */
#include "proto/cluster.pb-c.h"
#include "proto/conn_private.h"
#include "proto/limits.h"

#include <event2/buffer.h>
#include <stdio.h>

static int role_may_send(const struct ms_conn *conn, const struct ms_wire_type *type)
{
    unsigned role = conn->is_server ? conn->peer.who.roles & ~(unsigned)MS_ROLE_SCHEDULER
                                    : conn->peer.who.roles | MS_ROLE_SCHEDULER;
    return (type->senders & role) != 0;
}

static void role_text(const struct ms_conn *conn, const struct ms_wire_type *type, char *buf,
                      size_t size)
{
    snprintf(buf, size, "%s may not send %s: it takes the certificate of a%s (msctl certs issue)",
             conn->who, type->name,
             (type->senders & MS_ROLE_WORKER) != 0      ? " worker"
             : (type->senders & MS_ROLE_SCHEDULER) != 0 ? " scheduler"
                                                        : " user or an admin");
}

/* Judges a header before the bytes behind it are waited for; 0: refused, the connection ends. */
static int may_come(struct ms_conn *conn, const struct ms_wire_header *head)
{
    const struct ms_wire_type *type = ms_wire_find(head->type);
    char text[MS_ERR_TEXT_MAX];
    if (conn->state == MS_CONN_HELLO) {
        uint16_t want = conn->is_server ? MS_MSG_HELLO : MS_MSG_WELCOME;
        if (head->type == want || (!conn->is_server && head->type == MS_MSG_ERROR)) {
            return 1;
        }
        snprintf(text, sizeof(text), "the first frame is %s, not %s", type->name,
                 ms_wire_find(want)->name);
        ms_conn_refuse(conn, head->id, MS_E_PROTOCOL, text);
        return 0;
    }
    if (head->length <= MS_FRAME_SMALL || role_may_send(conn, type)) {
        return 1;
    }
    /* not worth the memory of being read and answered in peace */
    role_text(conn, type, text, sizeof(text));
    ms_conn_refuse(conn, head->id, MS_E_REFUSED, text);
    return 0;
}

/* Refuses what a peer's role may not send; the connection lives on. */
static int may_send(struct ms_conn *conn, const struct ms_wire_header *head)
{
    const struct ms_wire_type *type = ms_wire_find(head->type);
    if (role_may_send(conn, type)) {
        return 1;
    }
    char text[MS_ERR_TEXT_MAX];
    role_text(conn, type, text, sizeof(text));
    Ms__Error error = MS__ERROR__INIT;
    error.code = MS_E_REFUSED;
    error.text = text;
    ms_conn_put(conn, MS_MSG_ERROR, head->id, &error.base, NULL);
    return 0;
}

static void take_frame(struct ms_conn *conn, const struct ms_wire_header *head,
                       const uint8_t *bytes)
{
    if (conn->state == MS_CONN_HELLO) {
        ms_conn_take_hello(conn, head, bytes);
        return;
    }
    conn->refusal_code = 0;
    if (head->type == MS_MSG_ERROR && head->id == 0) {
        ms_conn_note_refusal(conn, head, bytes);
    }
    if (head->type == MS_MSG_HELLO || head->type == MS_MSG_WELCOME) {
        ms_conn_refuse(conn, head->id, MS_E_PROTOCOL, "a second Hello or Welcome");
    } else if (may_send(conn, head) && conn->state == MS_CONN_OPEN) {
        conn->depth++;
        conn->handler.on_frame(conn, head, bytes, conn->arg);
        conn->depth--;
    }
}

static void hold(struct ms_conn *conn)
{
    conn->is_held = 1;
    bufferevent_disable(conn->bev, EV_READ);
}

/* Large frames are few at a time, or half ones would fill the memory. */
static int may_grow(struct ms_conn *conn, const struct ms_wire_header *head)
{
    if (head->length <= MS_FRAME_SMALL || conn->is_grown || conn->may_grow == NULL) {
        return 1;
    }
    if (!conn->may_grow(conn->arg)) {
        hold(conn);
        return 0;
    }
    conn->is_grown = 1;
    return 1;
}

/* The next whole frame of the input: 1, or 0 when more bytes are needed or the bytes are wrong. */
static int next_frame(struct ms_conn *conn, struct evbuffer *input, struct ms_wire_header *ret_head,
                      const uint8_t **ret_bytes)
{
    uint8_t start[MS_WIRE_HEADER];
    struct ms_err err = {0, ""};
    ev_ssize_t n = evbuffer_copyout(input, start, sizeof(start));
    int rc = n >= 4 ? ms_wire_check_magic(start, &err) : MS_OK;
    if (rc == MS_OK && n < MS_WIRE_HEADER) {
        return 0;
    }
    if (rc == MS_OK) {
        rc = ms_wire_parse_header(start, ret_head, &err);
    }
    if (rc != MS_OK) {
        ms_conn_refuse(conn, 0, rc, err.text);
        return 0;
    }
    if (!may_come(conn, ret_head) || !may_grow(conn, ret_head)) {
        return 0;
    }
    size_t size = MS_WIRE_HEADER + (size_t)ret_head->length;
    if (evbuffer_get_length(input) < size) {
        return 0;
    }
    const uint8_t *bytes = evbuffer_pullup(input, (ev_ssize_t)size);
    if (bytes == NULL) {
        ms_conn_end(conn, MS_E_NOMEM, "no memory for a frame of %zu bytes from %s", size,
                    conn->who);
        return 0;
    }
    *ret_bytes = bytes + MS_WIRE_HEADER;
    return 1;
}

/* A frame that begins has to end: its deadline runs from the first look at it. Only what lies with
 * the peer is held against it. */
static void watch_partial(struct ms_conn *conn, int is_partial)
{
    if (!conn->is_server || conn->state != MS_CONN_OPEN || conn->is_deaf ||
        is_partial == conn->is_partial) {
        return;
    }
    conn->is_partial = is_partial;
    if (is_partial) {
        ms_conn_arm_deadline(conn, MS_FRAME_MS);
    } else {
        event_del(conn->deadline);
    }
}

static void shrink(struct ms_conn *conn)
{
    if (conn->is_grown) {
        conn->is_grown = 0;
        conn->has_shrunk(conn->arg);
    }
}

void ms_conn_read_frames(struct ms_conn *conn)
{
    struct evbuffer *input = bufferevent_get_input(conn->bev);
    struct ms_wire_header head;
    const uint8_t *bytes = NULL;
    while (conn->state == MS_CONN_HELLO || conn->state == MS_CONN_OPEN) {
        if (ms_conn_unsent(conn) > MS_OUTPUT_SOFT) {
            /* whoever asks without reading the answers waits until he has read them; half a large
             * frame does not wait with him, for others want its place */
            ms_conn_spill(conn); /* the loop says when it is read */
            conn->is_paused = 1;
            watch_partial(conn, conn->is_grown);
            bufferevent_disable(conn->bev, EV_READ);
            return;
        }
        if (conn->is_held) {
            return;
        }
        if (!next_frame(conn, input, &head, &bytes)) {
            watch_partial(conn, !conn->is_held && evbuffer_get_length(input) > 0);
            return;
        }
        watch_partial(conn, 0);
        if (conn->state == MS_CONN_OPEN && conn->may_take != NULL && !conn->may_take(conn->arg)) {
            hold(conn);
            return;
        }
        take_frame(conn, &head, bytes);
        shrink(conn);
        if (conn->state != MS_CONN_OVER) {
            evbuffer_drain(input, MS_WIRE_HEADER + (size_t)head.length);
        }
    }
}
