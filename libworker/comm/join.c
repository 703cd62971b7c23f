/* join.c - the ranks of a new group find each other
 *
 * The rank with the higher number connects. One poll loop makes outgoing connections, accepts
 * incoming ones (join_door.c) and takes all of them through TLS and hello at once; whoever is slow,
 * silent, a stranger or of another generation holds up nobody. What a connection went through:
 *
 *     connect: DIAL -> [TLS ->] ASK (hello sent) -> joined
 *     accept:          [TLS ->] HEAR (hello read, WELCOME or REFUSED sent) -> joined
 */
#include "libworker/comm/join.h"

#include "proto/discard.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    RETRY_MIN_MS = 10, /* a peer that is just about to listen, or to hear of the generation */
    RETRY_MAX_MS = 250,
    LACK_AGAIN_MS = 4 * RETRY_MAX_MS, /* it is met with each attempt: else it had passed */
    HEAR_PAUSE_MS = 50,               /* poll does not tell when there is room again */
    FIRST_GUEST = 4, /* in the list for poll(); before: two wake-ups and the listeners */
    /* Handshakes of one turn, for a third of a millisecond each: whoever floods, the connections
     * that this rank makes are served in every turn, and the expected before the strangers. */
    KNOWN_STEPS = 16,
    STRANGERS_STEPS = 4,
};

uint64_t join_now_ms(const struct join *join)
{
    return join->group->clock_ns / 1000000U;
}

void join_redial(struct join *join, struct guest *guest)
{
    struct caller *caller = &join->callers[guest->rank];
    uint64_t wait = caller->wait_ms == 0 ? RETRY_MIN_MS : 2 * (uint64_t)caller->wait_ms;
    caller->wait_ms = wait < RETRY_MAX_MS ? (int)wait : RETRY_MAX_MS;
    caller->next_ms = join_now_ms(join) + (uint64_t)caller->wait_ms;
    caller->busy = 0;
    caller->out = 0;
    join_drop(guest);
}

/* Ranks give up at about the same time: that one hung up in the middle says nothing about why it
 * was not let in before. */
void join_note(struct join *join, int rank, const struct ms_err *err)
{
    struct caller *caller = &join->callers[rank];
    if (ms_err_code(err) == MS_E_NOMEM) {
        join_note_lack(join, err);
    } else if (ms_err_code(err) != MS_E_CLOSED || caller->note[0] == '\0') {
        snprintf(caller->note, sizeof(caller->note), "%s", ms_err_text(err));
        caller->note_code = ms_err_code(err);
    }
}

void join_note_lack(struct join *join, const struct ms_err *err)
{
    const uint64_t now_ms = join_now_ms(join);
    const int is_new = join->lack[0] == '\0' || now_ms - join->lack_ms > LACK_AGAIN_MS;
    if (is_new || join_door_is_held(join)) {
        join->short_ms = now_ms;
    }
    snprintf(join->lack, sizeof(join->lack), "%s", ms_err_text(err));
    join->lack_ms = now_ms;
}

void join_look_for_leavers(struct join *join)
{
    for (int r = 0; r < join->group->n_ranks; r++) {
        struct stream *stream = &join->group->peers[r].stream;
        if (r == join->group->rank || stream->link.fd < 0 || !link_is_hung_up(&stream->link)) {
            continue;
        }
        /* the first collective will name who left in good order; none expects bytes yet */
        enum stream_fate fate = FATE_UNKNOWN;
        (void)stream_fate(join->group, &join->group->peers[r], &fate, NULL);
        if (fate != FATE_LEFT) {
            struct caller *caller = &join->callers[r];
            stream_fini(stream);
            snprintf(caller->note, sizeof(caller->note), "it had come, and has gone again");
            caller->busy = 0;
            caller->out = 0;
            caller->next_ms = join_now_ms(join) + RETRY_MIN_MS;
            join->joined--;
        }
    }
}

/* ---- connections
 * ------------------------------------------------------------------------------------- */

static void dial(struct join *join, int rank)
{
    struct guest *guest = join_free_guest(join);
    struct ms_err why;
    if (guest == NULL) {
        return;
    }
    guest->rank = rank;
    guest->since_ms = join_now_ms(join);
    guest->is_unix = join->group->peers[rank].local >= 0;
    join->callers[rank].busy = 1;
    int fd = join_dial(join_member(join, rank), guest->is_unix, &why);
    if (fd < 0) {
        join_note(join, rank, &why);
        join_redial(join, guest);
        return;
    }
    link_init(&guest->link, fd);
    guest->link.read_wants = POLLOUT; /* until it is connected */
    guest->stage = GUEST_DIAL;
}

static int check_connected(struct join *join, const struct guest *guest, struct ms_err *err)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(guest->link.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
        errno = error;
        return ms_fail_errno(err, MS_E_UNREACHABLE, "cannot connect to %s",
                             guest->is_unix ? join_member(join, guest->rank)->data_unix
                                            : join_member(join, guest->rank)->data_address);
    }
    join->callers[guest->rank].out = 1;
    return 0;
}

/* The system has connected: TLS next, or the hello. 0, or < 0 with the reason. */
static int begin(struct join *join, struct guest *guest, const char *who, struct ms_err *why)
{
    int rc = check_connected(join, guest, why);
    if (rc < 0) {
        return rc;
    }
    if (guest->is_unix && !join_uid_is(guest->link.fd, join_member(join, guest->rank)->uid)) {
        return ms_fail(why, MS_E_REFUSED, "somebody else's process listens at the socket of %s",
                       who);
    }
    if (!guest->is_unix && join->cfg->tls != NULL) {
        guest->stage = GUEST_TLS;
        return link_use_tls(&guest->link, join->cfg->tls, 0, why);
    }
    return join_ask(join, guest, why);
}

/* 1: done, the hello is next; 0: not yet; < 0 with the reason. */
static int shake_hands(struct join *join, struct guest *guest, const char *who, struct ms_err *why)
{
    int rc = guest->link.ssl == NULL ? join_begin_tls(join, guest, why) : 0;
    rc = rc == 0 ? link_handshake(&guest->link, who, why) : rc;
    if (rc != 1) {
        return rc;
    }
    if (guest->rank < 0) {
        guest->stage = GUEST_HEAR;
        return join_knows_certificate(join, guest) ? 1 : MS_E_REFUSED;
    }
    rc = join_check_certificate(join, guest, guest->rank, why); /* before the token is shown */
    rc = rc == 0 ? join_ask(join, guest, why) : rc;
    return rc == 0 ? 1 : rc;
}

/* Whoever was asked may have let this rank in by now, and takes no other connection of it: this one
 * stays, whatever keeps this process from reading. */
static int hear(struct join *join, struct guest *guest, struct ms_err *why)
{
    int rc = join_hear(guest, why);
    if (rc == MS_E_NOMEM && guest->stage == GUEST_ASK && guest->memory != JOIN_NO_DESCRIPTOR) {
        join_note_lack(join, why);
        guest->again_ms = join_now_ms(join) + HEAR_PAUSE_MS;
        return 0;
    }
    return rc;
}

/* As far as a connection gets: 1: the other's hello is there; 0: not yet; < 0: over. */
static int go_on(struct join *join, struct guest *guest, struct ms_err *why)
{
    char who[MESH_WHO_MAX] = "a peer";
    int rc = 0;
    if (guest->rank >= 0) {
        group_who(join->group, guest->rank, who);
    }
    if (guest->stage == GUEST_DIAL) {
        rc = begin(join, guest, who, why);
    }
    if (rc == 0 && guest->stage == GUEST_TLS) {
        rc = shake_hands(join, guest, who, why);
        if (rc == 0) {
            return 0;
        }
    }
    return rc < 0 ? rc : hear(join, guest, why);
}

/* A connection was in vain. */
static void give_up(struct join *join, struct guest *guest, const struct ms_err *why)
{
    const int rank = guest->rank;
    if (rank >= 0) {
        join_redial(join, guest);
    } else {
        join_drop(guest);
    }
    if (rank >= 0 && ms_err_text(why)[0] != '\0') {
        join_note(join, rank, why);
    } else if (ms_err_code(why) == MS_E_NOMEM) { /* of a stranger nothing else is told */
        join_note_lack(join, why);
    }
}

/* One step of a connection: its guest is dropped, joins or waits again. Fails where the whole group
 * can never be. */
static int advance(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct ms_err why = {0};
    int rc = go_on(join, guest, &why);
    if (rc == 0) {
        return 0;
    }
    if (rc == 1 && guest->rank >= 0) {
        return join_take_answer(join, guest, err);
    }
    if (rc == 1) {
        rc = join_answer(join, guest, err);
        join_drop(guest);
        return rc;
    }
    if (guest->memory == JOIN_NO_DESCRIPTOR && guest->rank >= 0) {
        return join_fail_welcomed(join, guest, &why, err);
    }
    give_up(join, guest, &why);
    return 0;
}

/* ---- the loop
 * ---------------------------------------------------------------------------------------- */

static int has_not_begun(const struct guest *guest)
{
    return guest->stage == GUEST_TLS && guest->party != NULL && !guest->has_begun;
}

/* What can be waited for now: no more places than there are descriptors, for poll() refuses more of
 * them than the process may have. */
static nfds_t list_fds(struct join *join)
{
    const struct comm_listener *listener = join->cfg->listener;
    struct pollfd *fds = join->fds;
    int open = join_now_ms(join) >= join->accept_ms;
    nfds_t n = FIRST_GUEST;
    fds[0] = (struct pollfd){.fd = listener->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = open ? listener->tcp_fd : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = open ? listener->unix_fd : -1, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = join->group->mesh->wake_fd, .events = POLLIN};
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->stage != GUEST_NONE && join_now_ms(join) >= guest->again_ms) {
            join->waiting[n - FIRST_GUEST] = guest;
            short hung_up = has_not_begun(guest) ? POLLRDHUP : 0;
            fds[n++] = (struct pollfd){.fd = guest->link.fd,
                                       .events = (short)(guest->link.read_wants | hung_up)};
        }
    }
    return n;
}

/* Returns whether an attempt waits for its time. */
static int dial_who_is_due(struct join *join)
{
    int waits = 0;
    for (int r = 0; r < join->group->rank; r++) {
        struct caller *caller = &join->callers[r];
        if (join->group->peers[r].stream.link.fd >= 0 || caller->busy) {
            continue;
        }
        if (join_now_ms(join) >= caller->next_ms) {
            dial(join, r);
        }
        waits |= !caller->busy;
    }
    return waits;
}

/* The system would go on for two minutes, and say nothing. */
static void give_up_dialling(struct join *join, struct guest *guest)
{
    struct ms_err why;
    (void)ms_fail(&why, MS_E_UNREACHABLE, "no answer from %s within %.1f s",
                  guest->is_unix ? join_member(join, guest->rank)->data_unix
                                 : join_member(join, guest->rank)->data_address,
                  MS_HANDSHAKE_MS / 1e3);
    join_note(join, guest->rank, &why);
    join_redial(join, guest);
}

static void drop_the_silent(struct join *join)
{
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->stage == GUEST_NONE || join_now_ms(join) - guest->since_ms <= MS_HANDSHAKE_MS) {
            continue;
        }
        if (guest->rank < 0) {
            join_drop(guest);
        } else if (guest->stage == GUEST_DIAL) {
            give_up_dialling(join, guest);
        }
    }
}

/* Who has gone before his first bytes were looked at gets no work done for them. */
static void note_who_is_ready(struct join *join, nfds_t n)
{
    for (nfds_t i = FIRST_GUEST; i < n; i++) {
        struct guest *guest = join->waiting[i - FIRST_GUEST];
        short seen = join->fds[i].revents;
        guest->is_ready = seen != 0;
        if ((seen & (POLLRDHUP | POLLHUP | POLLERR)) != 0 && has_not_begun(guest)) {
            join_drop(guest);
        }
    }
}

static int serve_dialled(struct join *join, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; i < join->n_guests && rc >= 0; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->is_ready && guest->party == NULL) {
            guest->is_ready = 0;
            rc = advance(join, guest, err);
        }
    }
    return rc;
}

/* A turn goes round the seats, however many of them are ready at once. */
static int serve(struct join *join, int is_known, int has_begun, int steps, struct ms_err *err)
{
    int *next = &join->next[is_known][has_begun];
    const int first = *next;
    int rc = 0;
    for (int i = 0; i < join->n_guests && steps > 0 && rc >= 0; i++) {
        int at = (first + i) % join->n_guests;
        struct guest *guest = &join->guests[at];
        if (guest->is_ready && guest->party != NULL && guest->party->is_known == is_known &&
            guest->has_begun == has_begun) {
            guest->is_ready = 0;
            *next = at + 1;
            steps--;
            rc = advance(join, guest, err);
        }
    }
    return rc;
}

/* Half for those whose handshake is under way: newcomers, however many, do not make it grow old. */
static int serve_side(struct join *join, int is_known, int steps, struct ms_err *err)
{
    int rc = serve(join, is_known, 1, steps / 2, err);
    return rc < 0 ? rc : serve(join, is_known, 0, steps / 2, err);
}

static int serve_guests(struct join *join, nfds_t n, struct ms_err *err)
{
    note_who_is_ready(join, n);
    int rc = serve_dialled(join, err);
    rc = rc < 0 ? rc : serve_side(join, 1, KNOWN_STEPS, err);
    return rc < 0 ? rc : serve_side(join, 0, STRANGERS_STEPS, err);
}

/* Of a group that is made within a mesh: who has died there will not come here. */
static int look_at_the_mesh(struct join *join, struct ms_err *err)
{
    struct group *all = join->group->mesh->groups[0];
    int rc = all != NULL ? group_check_peers(all, err) : 0;
    if (rc < 0) {
        join->group->blamed = all->blamed;
    }
    return rc;
}

static int turn(struct join *join, struct ms_err *err)
{
    int soon = dial_who_is_due(join);
    nfds_t n = list_fds(join);
    int ready = mesh_poll(join->fds, n, soon ? RETRY_MIN_MS : MESH_TICK_MS, err);
    (void)group_clock(join->group);
    if (ready < 0) {
        return ready;
    }
    if ((join->fds[0].revents & POLLIN) != 0) {
        return ms_fail(err, MS_E_ABORTED, "the wait for the other ranks was cancelled");
    }
    int rc = mesh_check(join->group->mesh, err);
    rc = rc == 0 && ready > 0 ? serve_guests(join, n, err) : rc;
    if (rc < 0) {
        return rc;
    }
    if (ready > 0 && (join->fds[1].revents & POLLIN) != 0) {
        join_accept_tcp(join);
    }
    if (ready > 0 && (join->fds[2].revents & POLLIN) != 0) {
        join_accept_unix(join);
    }
    drop_the_silent(join);
    if (ready == 0) {
        join_look_for_leavers(join);
        rc = look_at_the_mesh(join, err);
    }
    return rc;
}

static int join_all(struct join *join, struct ms_err *err)
{
    struct group *group = join->group;
    group_clock_start(group);
    uint64_t start = join_now_ms(join);
    while (join->joined < group->n_ranks - 1) {
        patience_show(group, MESH_GROUP, join_first_missing(join));
        int rc = turn(join, err);
        patience_show_none(group);
        if (rc < 0) {
            return rc;
        }
        uint64_t waited = join_now_ms(join) - start;
        if (join->joined < group->n_ranks - 1 &&
            (waited > (uint64_t)group->mesh->cfg.timeout_ms || join_is_short(join))) {
            return join_blame_the_missing(join, waited, err);
        }
        if (join->joined < group->n_ranks - 1) {
            join_tell_who_waits(join, waited);
        }
    }
    return 0;
}

/* Whoever was asked may have let this rank in by now, and counts on it then: BYE says why it goes.
 */
static void keep_for_goodbye(struct join *join)
{
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->stage == GUEST_ASK && join->group->peers[guest->rank].stream.link.fd < 0) {
            stream_init(&join->group->peers[guest->rank].stream, &guest->link);
            link_init(&guest->link, -1); /* moved */
        }
    }
}

int group_join(struct group *group, struct ms_err *err)
{
    const struct mesh_config *cfg = &group->mesh->cfg;
    struct join join = {.group = group, .cfg = cfg};
    int idle = 0;
    if (!atomic_compare_exchange_strong(&cfg->listener->busy, &idle, 1)) {
        return ms_fail(err, MS_E_INVALID, "another mesh or group is being made on this listener");
    }
    int rc = 0;
    join.n_guests = MS_HALF_OPEN_MAX + group->rank;
    join.guests = calloc((size_t)join.n_guests, sizeof(*join.guests));
    join.callers = calloc((size_t)group->n_ranks, sizeof(*join.callers));
    join.fds = calloc((size_t)join.n_guests + FIRST_GUEST, sizeof(*join.fds));
    join.waiting = calloc((size_t)join.n_guests, sizeof(struct guest *));
    if (join.guests == NULL || join.callers == NULL || join.fds == NULL || join.waiting == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "out of memory for the connections of %d ranks",
                     group->n_ranks);
        goto out;
    }
    for (int i = 0; i < join.n_guests; i++) {
        join.guests[i].memory = -1;
        link_init(&join.guests[i].link, -1);
    }
    rc = join_door_open(&join, err);
    rc = rc == 0 ? join_all(&join, err) : rc;
    if (rc < 0) {
        keep_for_goodbye(&join);
    }
out:
    for (int i = 0; join.guests != NULL && i < join.n_guests; i++) {
        if (join.guests[i].stage != GUEST_NONE) {
            join_drop(&join.guests[i]);
        }
    }
    free(join.guests);
    free(join.callers);
    free(join.addresses);
    free(join.fds);
    free(join.waiting);
    atomic_store(&cfg->listener->busy, 0);
    return rc;
}
