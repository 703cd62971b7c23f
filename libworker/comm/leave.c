/* leave.c - how a rank says goodbye, so that the others know whether it died
 *
 * A frame that has begun is finished, the rest is dropped, then BYE. A rank that gave up because
 * another one died says so: without BYE it would look dead itself, and the wrong rank would be
 * blamed. TCP throws unsent bytes away when a socket is closed with unread ones, so what comes in
 * is read off meanwhile. All of it within a bounded time: a peer that is computing does not read.
 * One that has gone already is no fault of anybody: those who left a group in good order do so in
 * any order.
 */
#include "libworker/comm/group.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

enum {
    LINGER_MS = 250, /* for one megabyte, the most that a begun frame still has to send */
    POLL_MS = 5,     /* nothing tells when sent bytes have arrived */
};

static int is_within_frame(const struct stream *stream)
{
    return stream->stage_done < stream->stage_size || stream->tx_left > 0;
}

/* Keeps only what belongs to the frame that has begun. */
static void drop_spans(struct stream *stream)
{
    if (stream->tx_left > 0) {
        stream->tx[0].size = stream->tx[0].done + stream->tx_left;
        stream->n_tx = 1;
    } else {
        stream->n_tx = 0;
    }
    stream->n_rx = 0;
}

static int say_bye(struct group *group, struct peer *peer, int aborted)
{
    struct frame bye = {
        .type = FRAME_BYE,
        .phase = aborted ? FRAME_BYE_ABORTED : FRAME_BYE_DONE,
        .generation = group->mesh->cfg.generation,
        .step = group->step,
        .sequence = group->op.sequence,
        .group = group->number,
        .begin = aborted ? atomic_load(&group->mesh->culprit) : FRAME_NOBODY,
    };
    peer->stream.said_bye = 1;
    int rc = stream_stage(&peer->stream, &bye, NULL);
    return rc < 0 ? rc : stream_push(group, peer, NULL);
}

static void read_off(struct stream *stream)
{
    uint8_t junk[4096];
    for (size_t n = 0; n < MS_DATA_FRAME_MAX / sizeof(junk); n++) {
        if (link_read(&stream->link, junk, sizeof(junk)) <= 0) {
            return;
        }
    }
}

/* Have all bytes reached the other end's kernel? Between processes of a host they always have. */
static int has_arrived(const struct peer *peer)
{
    int unsent = 0;
    return peer->local >= 0 || ioctl(peer->stream.link.fd, SIOCOUTQ, &unsent) < 0 || unsent == 0;
}

/* 1 when nothing is left to do for a peer. */
static int part_with(struct group *group, struct peer *peer, int aborted)
{
    struct stream *stream = &peer->stream;
    if (stream->link.fd < 0 || stream->eof) {
        return 1;
    }
    int rc = stream_push(group, peer, NULL);
    if (rc >= 0 && !stream->said_bye && !is_within_frame(stream)) {
        rc = say_bye(group, peer, aborted);
    }
    if (rc < 0) {
        stream->eof = 1;
        return 1;
    }
    if (is_within_frame(stream)) {
        read_off(stream); /* it may be waiting to get rid of its own frame first */
        return 0;
    }
    if (aborted) {
        read_off(stream);
    }
    return !aborted || has_arrived(peer);
}

void streams_leave(struct group *group)
{
    int aborted = atomic_load(&group->mesh->status) != 0;
    for (int i = 0; i < group->n_ranks; i++) {
        drop_spans(&group->peers[i].stream);
    }
    group_clock_start(group);
    uint64_t start = group_clock(group);
    for (;;) {
        nfds_t n = 0;
        for (int i = 0; i < group->n_ranks; i++) {
            struct peer *peer = &group->peers[i];
            if (!part_with(group, peer, aborted)) {
                group->polls[n++] = (struct pollfd){.fd = peer->stream.link.fd, .events = POLLIN};
                if (is_within_frame(&peer->stream) && stream_cannot_send(&peer->stream) == 0) {
                    group->polls[n - 1].events |= peer->stream.link.write_wants;
                }
            }
        }
        if (n == 0 || group_clock(group) - start > LINGER_MS) {
            return;
        }
        if (mesh_poll(group->polls, n, POLL_MS, NULL) < 0) {
            return;
        }
    }
}
