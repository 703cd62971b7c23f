/* stream.c - frames to and from peers over their connections, all of them at once
 *
 * Collectives say what goes out and what comes in (spans); this file moves it straight from and
 * into that memory. Every connection is progressed whenever it can move, so two ranks that send to
 * each other never wait for each other. What arrives for a later collective stays in the socket:
 * a frame's header is read only where a span is expected. Waiting is in stream_wait.c. */
#include "libworker/comm/group.h"

#include "libworker/comm/lack.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A peer that is always ready must not keep the others waiting. */
enum { PULL_BUDGET = MS_DATA_FRAME_MAX };

enum { SKIPPED_MIN = 16 << 20 };

void stream_init(struct stream *stream, const struct link *link)
{
    *stream = (struct stream){.link = *link};
}

void stream_fini(struct stream *stream)
{
    free(stream->stage);
    stream->stage = NULL;
    link_close(&stream->link);
}

struct mesh_traffic stream_traffic(const struct stream *stream)
{
    return (struct mesh_traffic){
        .payload_out = stream->payload_out,
        .payload_in = stream->payload_in,
        .wire_out = link_sent(&stream->link),
        .wire_in = link_received(&stream->link),
    };
}

size_t stream_unsent(const struct stream *stream)
{
    size_t bytes = stream->stage_size - stream->stage_done;
    for (int i = 0; i < stream->n_tx; i++) {
        bytes += stream->tx[i].size - stream->tx[i].done;
    }
    return bytes;
}

static void append(struct span *spans, int *n, struct span span)
{
    struct span *last = *n > 0 ? &spans[*n - 1] : NULL;
    if (last != NULL && last->phase == span.phase && last->begin == span.begin &&
        last->data + last->size == span.data) {
        last->size += span.size;
        return;
    }
    assert(*n < STREAM_SPANS && span.size > 0);
    spans[(*n)++] = span;
}

void stream_send(struct stream *stream, const void *data, size_t size, uint8_t phase,
                 uint64_t begin, uint64_t offset)
{
    struct span span = {.data = (uint8_t *)(uintptr_t)data,
                        .size = size,
                        .begin = begin,
                        .offset = offset,
                        .phase = phase};
    append(stream->tx, &stream->n_tx, span);
}

void stream_receive(struct stream *stream, void *data, size_t size, uint8_t phase, uint64_t begin)
{
    append(stream->rx, &stream->n_rx,
           (struct span){.data = data, .size = size, .begin = begin, .phase = phase});
}

size_t stream_received(const struct stream *stream, uint8_t phase, uint64_t begin, size_t size)
{
    for (int i = 0; i < stream->n_rx; i++) {
        if (stream->rx[i].phase == phase && stream->rx[i].begin == begin) {
            return stream->rx[i].done;
        }
    }
    return size;
}

static void pop(struct span *spans, int *n)
{
    memmove(spans, spans + 1, (size_t)(*n - 1) * sizeof(*spans));
    (*n)--;
}

int stream_is_sending(const struct stream *stream)
{
    return stream->n_tx > 0 || stream->stage_done < stream->stage_size;
}

int streams_are_done(const struct group *group)
{
    for (int i = 0; i < group->n_ranks; i++) {
        const struct stream *stream = &group->peers[i].stream;
        if (stream->n_rx > 0 || stream_is_sending(stream)) {
            return 0;
        }
    }
    return 1;
}

/* The connection has ended: the cause may be somebody else's death. */
static int gone(struct group *group, struct peer *peer, struct ms_err *err)
{
    char who[MESH_WHO_MAX];
    char what[GROUP_WHAT_MAX];
    int rc = mesh_check(group->mesh, err);
    if (rc == 0) {
        rc = group_check_peers(group, err);
    }
    if (rc < 0) {
        return rc;
    }
    return group_blame(group, peer->member, err, MS_E_CLOSED,
                       "%s has died or was cut off: its connection ended during %s; see the log of "
                       "that rank",
                       group_who(group, peer->rank, who), group_what(group, what, sizeof(what)));
}

/* ---- what this process is short of
 * ---------------------------------------------------------------------- */

/* Nothing is lost: the same bytes are tried again. */
static void note_shortage(const struct group *group, struct shortage *shortage)
{
    const int error = errno;
    if (shortage->error == 0 || shortage->sequence != group->op.sequence) {
        shortage->sequence = group->op.sequence;
        shortage->since_ms = group->clock_ns / 1000000U;
    }
    shortage->error = error;
}

int stream_lacks(const struct group *group, const struct peer *peer, int error, struct ms_err *err)
{
    char what[GROUP_WHAT_MAX];
    char text[GROUP_WHAT_MAX + 64];
    snprintf(text, sizeof(text), "cannot exchange data with rank %d in %s", peer->member,
             group_what(group, what, sizeof(what)));
    return lack_found(err, error, text);
}

int stream_cannot_send(const struct stream *stream)
{
    return stream_is_sending(stream) ? stream->short_out.error : 0;
}

int stream_cannot_hear(const struct stream *stream)
{
    return stream->n_rx > 0 ? stream->short_in.error : 0;
}

/* ---- out
 * -------------------------------------------------------------------------------------------- */

static int make_stage(struct stream *stream, struct ms_err *err)
{
    if (stream->stage == NULL && (stream->stage = malloc(STREAM_STAGE)) == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a frame");
    }
    return 0;
}

int stream_stage(struct stream *stream, const struct frame *frame, struct ms_err *err)
{
    assert(!stream_is_sending(stream) && stream->tx_left == 0);
    int rc = make_stage(stream, err);
    if (rc == 0) {
        frame_encode(frame, stream->stage);
        stream->stage_size = FRAME_HEADER;
        stream->stage_done = 0;
    }
    return rc;
}

/* The next frame of the first span. With TLS the header shares its record with the first payload
 * bytes: a record costs a system call at either end. */
static int begin_frame(struct group *group, struct stream *stream, struct ms_err *err)
{
    int rc = make_stage(stream, err);
    if (rc < 0) {
        return rc;
    }
    struct span *span = &stream->tx[0];
    size_t length = span->size - span->done;
    length = length < MS_DATA_FRAME_MAX ? length : MS_DATA_FRAME_MAX;
    struct frame frame = {
        .type = FRAME_DATA,
        .kind = (uint8_t)group->op.kind,
        .phase = (uint8_t)span->phase,
        .generation = group->mesh->cfg.generation,
        .step = group->step,
        .sequence = group->op.sequence,
        .begin = span->begin,
        .offset = span->offset + span->done,
        .length = (uint32_t)length,
        .group = group->number,
    };
    frame_encode(&frame, stream->stage);
    size_t staged = 0;
    if (stream->link.ssl != NULL) {
        staged = STREAM_STAGE - FRAME_HEADER;
        staged = length < staged ? length : staged;
        memcpy(stream->stage + FRAME_HEADER, span->data + span->done, staged);
    }
    span->done += staged;
    stream->stage_size = FRAME_HEADER + staged;
    stream->stage_done = 0;
    stream->tx_left = length - staged;
    stream->payload_out += length;
    if (span->done == span->size) {
        pop(stream->tx, &stream->n_tx);
    }
    return 0;
}

int stream_push(struct group *group, struct peer *peer, struct ms_err *err)
{
    struct stream *stream = &peer->stream;
    int moved = 0;
    while (stream_is_sending(stream)) {
        if (stream->stage_done == stream->stage_size && stream->tx_left == 0) {
            int rc = begin_frame(group, stream, err);
            if (rc < 0) {
                return rc;
            }
        }
        struct span *span = &stream->tx[0];
        size_t head = stream->stage_size - stream->stage_done;
        const uint8_t *body = stream->tx_left > 0 ? span->data + span->done : NULL;
        ssize_t n = link_write(&stream->link, stream->stage + stream->stage_done, head, body,
                               stream->tx_left);
        if (n == LINK_SHORT) {
            note_shortage(group, &stream->short_out);
            break;
        }
        stream->short_out.error = 0;
        if (n == LINK_AGAIN) {
            break;
        }
        if (n < 0) {
            return stream_lacks(group, peer, errno, err) < 0 ? MS_E_NOMEM : MS_E_CLOSED;
        }
        moved = 1;
        size_t of_head = (size_t)n < head ? (size_t)n : head;
        stream->stage_done += of_head;
        if ((size_t)n > of_head) {
            stream->tx_left -= (size_t)n - of_head;
            span->done += (size_t)n - of_head;
            if (span->done == span->size) {
                pop(stream->tx, &stream->n_tx);
            }
        }
    }
    return moved;
}

/* ---- in
 * --------------------------------------------------------------------------------------------- */

/* A frame of an older generation, of a peer that had not heard of the newer one when it was sent:
 * no more of them than the collective that it was in. */
static int skip(struct group *group, struct peer *peer, const struct frame *frame,
                struct ms_err *err)
{
    struct stream *stream = &peer->stream;
    const uint64_t most =
        SKIPPED_MIN + 2 * (uint64_t)group->exchange_count * ms_dtype_bytes(group->exchange_dtype);
    char who[MESH_WHO_MAX];
    stream->skip_left = frame->length;
    stream->skipped_frames++;
    stream->skipped_bytes += FRAME_HEADER + frame->length;
    stream->skipped_generation = frame->generation;
    if (stream->skipped_bytes > most) {
        return group_blame(group, peer->member, err, MS_E_PROTOCOL,
                           "%s sends data of the older generation %llu without end (%llu frames, "
                           "%llu bytes): it has missed that this is generation %llu",
                           group_who(group, peer->rank, who), (unsigned long long)frame->generation,
                           (unsigned long long)stream->skipped_frames,
                           (unsigned long long)stream->skipped_bytes,
                           (unsigned long long)group->mesh->cfg.generation);
    }
    return 0;
}

/* A header that was read: what to do with the payload. */
static int take_header(struct group *group, struct peer *peer, struct ms_err *err)
{
    struct stream *stream = &peer->stream;
    struct frame frame;
    char who[MESH_WHO_MAX];
    struct ms_err why;
    int rc = frame_decode(stream->head, &frame, &why);
    if (rc < 0) {
        return group_blame(group, peer->member, err, rc, "%s sent: %s",
                           group_who(group, peer->rank, who), why.text);
    }
    stream->head_have = 0;
    if (frame.generation < group->mesh->cfg.generation) {
        return skip(group, peer, &frame, err);
    }
    if (frame.generation > group->mesh->cfg.generation) {
        return group_blame(group, peer->member, err, MS_E_ABORTED,
                           "%s is at generation %llu of the job, this rank at %llu",
                           group_who(group, peer->rank, who), (unsigned long long)frame.generation,
                           (unsigned long long)group->mesh->cfg.generation);
    }
    if (frame.group != group->number) {
        return group_blame(group, peer->member, err, MS_E_PROTOCOL,
                           "%s sent a frame of group %u on the connection of group %u",
                           group_who(group, peer->rank, who), frame.group, group->number);
    }
    if (frame.type == FRAME_BYE) {
        stream->has_left = 1;
        stream->bye = frame;
        return 0;
    }
    const struct span *span = &stream->rx[0];
    if (frame.sequence != group->op.sequence || frame.kind != group->op.kind ||
        frame.phase != span->phase || frame.begin != span->begin ||
        frame.offset != span->offset + span->done || frame.length > span->size - span->done) {
        char what[GROUP_WHAT_MAX];
        return group_blame(
            group, peer->member, err, MS_E_PROTOCOL,
            "%s sent a frame of %s, number %llu (step %llu, phase %u, begin %llu, offset %llu, "
            "length %u), while this rank does %s, number %llu: their plans differ",
            group_who(group, peer->rank, who), mesh_kind_name(frame.kind),
            (unsigned long long)frame.sequence, (unsigned long long)frame.step, frame.phase,
            (unsigned long long)frame.begin, (unsigned long long)frame.offset, frame.length,
            group_what(group, what, sizeof(what)), (unsigned long long)group->op.sequence);
    }
    stream->rx_left = frame.length;
    return 0;
}

/* Where the next bytes go. */
static uint8_t *next_target(struct stream *stream, uint8_t *junk, size_t junk_size, size_t *ret)
{
    if (stream->skip_left > 0) {
        *ret = stream->skip_left < junk_size ? stream->skip_left : junk_size;
        return junk;
    }
    if (stream->rx_left > 0) {
        *ret = stream->rx_left;
        return stream->rx[0].data + stream->rx[0].done;
    }
    *ret = FRAME_HEADER - stream->head_have;
    return stream->head + stream->head_have;
}

/* 1: they are what is waited for. Headers are not, nor what belongs to an older generation: who
 * sends nothing else hangs, for this rank. */
static int account(struct stream *stream, size_t n)
{
    if (stream->skip_left > 0) {
        stream->skip_left -= n;
    } else if (stream->rx_left > 0) {
        stream->rx_left -= n;
        stream->payload_in += n;
        stream->rx[0].done += n;
        if (stream->rx[0].done == stream->rx[0].size) {
            pop(stream->rx, &stream->n_rx);
        }
        return 1;
    } else {
        stream->head_have += n;
    }
    return 0;
}

/* Reads what is there for the spans, until BYE or the end. *ret_read: bytes of any kind. 1: some of
 * them were for the spans. */
static int pull(struct group *group, struct peer *peer, size_t *ret_read, struct ms_err *err)
{
    struct stream *stream = &peer->stream;
    uint8_t junk[4096];
    int moved = 0;
    *ret_read = 0;
    while (stream->n_rx > 0 && *ret_read < PULL_BUDGET && !stream->has_left && !stream->eof) {
        if (stream->head_have == FRAME_HEADER) {
            int rc = take_header(group, peer, err);
            if (rc < 0) {
                return rc;
            }
            continue;
        }
        size_t room = 0;
        uint8_t *target = next_target(stream, junk, sizeof(junk), &room);
        ssize_t n = link_read(&stream->link, target, room);
        if (n == LINK_SHORT) {
            note_shortage(group, &stream->short_in);
            break;
        }
        stream->short_in.error = 0;
        if (n == LINK_AGAIN) {
            break;
        }
        if (n == LINK_BROKEN && stream_lacks(group, peer, errno, err) < 0) {
            return MS_E_NOMEM;
        }
        if (n < 0) {
            stream->eof = 1;
            break;
        }
        moved |= account(stream, (size_t)n);
        *ret_read += (size_t)n;
    }
    return moved;
}

int streams_progress(struct group *group, struct ms_err *err)
{
    int moved = mesh_check(group->mesh, err); /* data that flows on ends at an abort, too */
    if (moved < 0) {
        return moved;
    }
    for (int i = 0; i < group->n_ranks; i++) {
        struct peer *peer = &group->peers[i];
        int out = stream_is_sending(&peer->stream) ? stream_push(group, peer, err) : 0;
        if (out < 0) {
            return out == MS_E_CLOSED ? gone(group, peer, err) : out;
        }
        size_t read = 0;
        int in = peer->stream.n_rx > 0 ? pull(group, peer, &read, err) : 0;
        if (in >= 0 && peer->stream.n_rx > 0 && (peer->stream.has_left || peer->stream.eof)) {
            in = gone(group, peer, err);
        }
        if (in < 0) {
            return in;
        }
        if (out || in) {
            moved = 1;
            peer->stream.moved_ms = group->clock_ns / 1000000U;
            peer->stream.heard_in = in ? group->op.sequence : peer->stream.heard_in;
        }
    }
    return moved;
}

/* ---- the end
 * ---------------------------------------------------------------------------------------- */

int stream_fate(struct group *group, struct peer *peer, enum stream_fate *ret, struct ms_err *err)
{
    struct stream *stream = &peer->stream;
    size_t read = 0;
    do { /* what it sent for this collective lies before BYE */
        int rc = pull(group, peer, &read, err);
        if (rc < 0) {
            return rc;
        }
    } while (read > 0);
    while (!stream->has_left && !stream->eof && stream->n_rx == 0 &&
           stream->head_have < FRAME_HEADER) {
        ssize_t n = link_read(&stream->link, stream->head + stream->head_have,
                              FRAME_HEADER - stream->head_have);
        if (n == LINK_AGAIN || n == LINK_SHORT) {
            break;
        }
        if (n == LINK_BROKEN && stream_lacks(group, peer, errno, err) < 0) {
            return MS_E_NOMEM;
        }
        stream->eof = n < 0;
        stream->head_have += n > 0 ? (size_t)n : 0;
    }
    struct frame frame; /* of a later collective: stays for pull() */
    if (stream->head_have == FRAME_HEADER && frame_decode(stream->head, &frame, NULL) == 0 &&
        frame.type == FRAME_BYE && frame.generation == group->mesh->cfg.generation) {
        stream->has_left = 1;
        stream->bye = frame;
    }
    *ret = stream->has_left ? FATE_LEFT : stream->eof ? FATE_DEAD : FATE_UNKNOWN;
    return 0;
}
