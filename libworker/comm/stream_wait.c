/* stream_wait.c - waiting for peers elsewhere: who stalls, who is told of it, when it is over */
#include "libworker/comm/group.h"

#include <poll.h>
#include <stdio.h>

enum {
    LACK_PAUSE_MS = 10, /* poll does not tell when it has passed */
    LACK_MS = 1000,     /* what passes by itself has passed by then */
};

/* So much longer for a rank that shares memory with others: they know better whom to name. */
enum { HOST_FIRST_MS = 4 * MESH_TICK_MS };

/* "waited 10.0 s for rank 3 (..) to send data of all_reduce of ..", in a buffer of MS_ERR_TEXT_MAX.
 */
static const char *print_wait(const struct group *group, const struct peer *peer,
                              uint64_t waited_ms, char *buf)
{
    const struct stream *stream = &peer->stream;
    char who[MESH_WHO_MAX];
    char what[GROUP_WHAT_MAX];
    char skipped[96] = "";
    if (stream->skipped_frames > 0) {
        snprintf(skipped, sizeof(skipped), " (%llu frames of the older generation %llu skipped)",
                 (unsigned long long)stream->skipped_frames,
                 (unsigned long long)stream->skipped_generation);
    }
    snprintf(buf, MS_ERR_TEXT_MAX, "waited %.1f s for %s to %s data of %s%s",
             (double)waited_ms / 1e3, group_who(group, peer->rank, who),
             stream->n_rx > 0 ? "send" : "take", group_what(group, what, sizeof(what)), skipped);
    return buf;
}

/* Milliseconds for which nothing has moved that is to move. */
static uint64_t stalled_for(const struct group *group, const struct stream *stream, uint64_t now)
{
    if (stream->n_rx == 0 && !stream_is_sending(stream)) {
        return 0;
    }
    if (stream_cannot_send(stream) != 0 || stream_cannot_hear(stream) != 0) {
        return 0; /* it is this process that stalls */
    }
    return now - (stream->moved_ms > group->op.start_ms ? stream->moved_ms : group->op.start_ms);
}

/* Who has stalled for longer than so much. Where several have, most of them wait for one: the one
 * that said nothing in this collective, or that stopped first. If they share memory, they know best
 * which, and are left to say it. NULL: none. */
static struct peer *find_stalled(struct group *group, uint64_t now, uint64_t most_ms,
                                 uint64_t *ret_ms)
{
    int silent = 0;
    struct peer *worst = NULL;
    for (int i = 0; i < group->n_ranks; i++) {
        struct peer *peer = &group->peers[i];
        uint64_t stalled = stalled_for(group, &peer->stream, now);
        int is_silent = peer->stream.n_rx > 0 && peer->stream.heard_in != group->op.sequence;
        uint64_t most = most_ms + (peer->seats > 1 ? HOST_FIRST_MS : 0);
        if (stalled > most &&
            (worst == NULL || is_silent > silent || (is_silent == silent && stalled > *ret_ms))) {
            worst = peer;
            *ret_ms = stalled;
            silent = is_silent;
        }
    }
    return worst;
}

static int check_stalls(struct group *group, struct ms_err *err)
{
    const struct mesh_config *cfg = &group->mesh->cfg;
    char text[MS_ERR_TEXT_MAX];
    uint64_t now = group_clock(group);
    uint64_t waited = 0;
    const struct peer *peer = find_stalled(group, now, (uint64_t)cfg->timeout_ms, &waited);
    if (peer != NULL) {
        return group_blame(group, peer->member, err, MS_E_TIMEOUT,
                           "%s; it hangs, was stopped, or the network between the two is cut",
                           print_wait(group, peer, waited, text));
    }
    peer = find_stalled(group, now, group_patience(group), &waited);
    if (peer != NULL && group_may_tell(group, now)) {
        group_tell(group, print_wait(group, peer, waited, text), "");
    }
    return 0;
}

static int is_over(const struct shortage *shortage, uint64_t now)
{
    return now - shortage->since_ms >= LACK_MS;
}

/* What is short for a moment is no error. */
static int check_shortages(struct group *group, struct ms_err *err)
{
    const uint64_t now = group->clock_ns / 1000000U;
    int rc = 0;
    for (int i = 0; rc == 0 && i < group->n_ranks; i++) {
        const struct peer *peer = &group->peers[i];
        const struct stream *stream = &peer->stream;
        if (stream_cannot_send(stream) != 0 && is_over(&stream->short_out, now)) {
            rc = stream_lacks(group, peer, stream->short_out.error, err);
        } else if (stream_cannot_hear(stream) != 0 && is_over(&stream->short_in, now)) {
            rc = stream_lacks(group, peer, stream->short_in.error, err);
        }
    }
    return rc;
}

/* What it waits for; *ret_is_short: something that poll cannot tell, too. */
static int events_of(const struct stream *stream, int *ret_is_short)
{
    const int cannot_send = stream_cannot_send(stream) != 0;
    const int cannot_hear = stream_cannot_hear(stream) != 0;
    *ret_is_short |= cannot_send || cannot_hear;
    return (stream->n_rx > 0 && !cannot_hear ? stream->link.read_wants : 0) |
           (stream_is_sending(stream) && !cannot_send ? stream->link.write_wants : 0);
}

int streams_wait(struct group *group, struct ms_err *err)
{
    struct pollfd *fds = group->polls;
    nfds_t n = 0;
    int first = -1;
    int is_short = 0;
    fds[n++] = (struct pollfd){.fd = group->mesh->wake_fd, .events = POLLIN};
    for (int i = 0; i < group->n_ranks; i++) {
        const struct stream *stream = &group->peers[i].stream;
        int events = events_of(stream, &is_short);
        if (events != 0) {
            first = first < 0 ? i : first;
            fds[n++] = (struct pollfd){.fd = stream->link.fd, .events = (short)events};
        }
    }
    atomic_fetch_add(&group->counters[group->self]->waits, 1);
    if (first >= 0) {
        patience_show(group, group->op.kind, first);
    }
    group_clock_start(group);
    uint64_t start = group->looked_ns;
    int ready = mesh_poll(fds, n, is_short ? LACK_PAUSE_MS : MESH_TICK_MS, err);
    int rc = ready < 0 ? ready : mesh_check(group->mesh, err);
    if (rc == 0 && ready == 0) {
        rc = group_check_peers(group, err);
    }
    if (rc == 0) {
        rc = check_stalls(group, err);
    }
    if (rc == 0 && is_short) {
        rc = check_shortages(group, err);
    }
    patience_show_none(group);
    atomic_fetch_add(&group->mesh->wait_ns, mesh_now_ns() - start);
    return rc;
}

int streams_finish(struct group *group, struct ms_err *err)
{
    while (!streams_are_done(group)) {
        int rc = streams_progress(group, err);
        if (rc == 0) {
            rc = streams_wait(group, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
