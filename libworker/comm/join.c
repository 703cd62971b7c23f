/* join.c - the ranks of a new mesh find each other
 *
 * The rank with the higher number connects. One poll loop makes outgoing connections, accepts
 * incoming ones and takes all of them through TLS and hello at once; whoever is slow, silent, a
 * stranger or of another generation holds up nobody. What a connection went through:
 *
 *     connect: DIAL -> [TLS ->] ASK (hello sent) -> joined
 *     accept:          [TLS ->] HEAR (hello read, WELCOME or REFUSED sent) -> joined
 */
#include "libworker/comm/join.h"

#include "libworker/comm/discard.h"

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
    ACCEPT_PAUSE_MS = 100, /* out of descriptors: wait until some are free */
};

static uint64_t now_ms(const struct join *join)
{
    return join->mesh->clock_ns / 1000000U;
}

void join_drop(struct guest *guest)
{
    if (guest->is_unix) { /* what lies in its queue, and what came out, may linger */
        int fds[2];
        size_t n = 0;
        if (guest->link.fd >= 0) {
            fds[n++] = guest->link.fd;
        }
        if (guest->memory >= 0) {
            fds[n++] = guest->memory;
        }
        discard_fds(fds, n);
    } else {
        link_close(&guest->link);
    }
    *guest = (struct guest){.stage = GUEST_NONE, .memory = -1};
    link_init(&guest->link, -1);
}

void join_redial(struct join *join, struct guest *guest)
{
    struct caller *caller = &join->callers[guest->rank];
    uint64_t wait = caller->wait_ms == 0 ? RETRY_MIN_MS : 2 * (uint64_t)caller->wait_ms;
    caller->wait_ms = wait < RETRY_MAX_MS ? (int)wait : RETRY_MAX_MS;
    caller->next_ms = now_ms(join) + (uint64_t)caller->wait_ms;
    caller->busy = 0;
    join_drop(guest);
}

/* Ranks give up at about the same time: that one hung up in the middle says nothing about why it
 * was not let in before. */
void join_note(struct join *join, int rank, const struct ms_err *err)
{
    struct caller *caller = &join->callers[rank];
    if (ms_err_code(err) != MS_E_CLOSED || caller->note[0] == '\0') {
        snprintf(caller->note, sizeof(caller->note), "%s", ms_err_text(err));
    }
}

void join_look_for_leavers(struct join *join)
{
    for (int r = 0; r < join->mesh->world; r++) {
        struct stream *stream = &join->mesh->peers[r].stream;
        if (r == join->mesh->rank || stream->link.fd < 0 || !link_is_hung_up(&stream->link)) {
            continue;
        }
        /* the first collective will name who left in good order; none expects bytes yet */
        enum stream_fate fate = FATE_UNKNOWN;
        (void)stream_fate(join->mesh, &join->mesh->peers[r], &fate, NULL);
        if (fate != FATE_LEFT) {
            struct caller *caller = &join->callers[r];
            stream_fini(stream);
            snprintf(caller->note, sizeof(caller->note), "it had come, and has gone again");
            caller->busy = 0;
            caller->next_ms = now_ms(join) + RETRY_MIN_MS;
            join->joined--;
        }
    }
}

/* ---- connections
 * ------------------------------------------------------------------------------------- */

static struct guest *free_guest(struct join *join)
{
    struct guest *oldest = NULL;
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->stage == GUEST_NONE) {
            return guest;
        }
        if (guest->rank < 0 && (oldest == NULL || guest->since_ms < oldest->since_ms)) {
            oldest = guest;
        }
    }
    if (oldest != NULL) { /* a flood: who is honest needs a few milliseconds only */
        join_drop(oldest);
    }
    return oldest;
}

/* The next connection; -1: none. */
static int take_connection(struct join *join, int fd)
{
    int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (conn < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        join->accept_ms = now_ms(join) + ACCEPT_PAUSE_MS;
    }
    return conn;
}

static struct guest *seat(struct join *join, int conn, enum guest_stage stage)
{
    struct guest *guest = free_guest(join);
    if (guest != NULL) {
        link_init(&guest->link, conn);
        guest->rank = -1;
        guest->since_ms = now_ms(join);
        guest->stage = stage;
    }
    return guest;
}

/* A stranger is turned away before a byte, or a descriptor, of his is received. */
static void accept_unix(struct join *join)
{
    int strangers[MS_HALF_OPEN_MAX];
    size_t n = 0;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        int conn = take_connection(join, join->cfg->listener->unix_fd);
        if (conn < 0) {
            break;
        }
        struct guest *guest = join_knows_uid(join, conn) ? seat(join, conn, GUEST_HEAR) : NULL;
        if (guest != NULL) {
            guest->is_unix = 1;
        } else {
            strangers[n++] = conn;
        }
    }
    discard_fds(strangers, n);
}

static void accept_tcp(struct join *join)
{
    enum guest_stage first = join->cfg->tls != NULL ? GUEST_TLS : GUEST_HEAR;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        int conn = take_connection(join, join->cfg->listener->tcp_fd);
        if (conn < 0) {
            return;
        }
        struct guest *guest = seat(join, conn, first);
        if (guest == NULL) {
            close(conn);
            return;
        }
        if (first == GUEST_TLS &&
            link_use_tls(&guest->link, join->cfg->listener->tls, 1, NULL) < 0) {
            join_drop(guest);
        }
    }
}

static void dial(struct join *join, int rank)
{
    struct guest *guest = free_guest(join);
    struct ms_err why;
    if (guest == NULL) {
        return;
    }
    guest->rank = rank;
    guest->since_ms = now_ms(join);
    guest->is_unix = join->mesh->peers[rank].local >= 0;
    join->callers[rank].busy = 1;
    int fd = join_dial(&join->cfg->members[rank], guest->is_unix, &why);
    if (fd < 0) {
        join_note(join, rank, &why);
        join_redial(join, guest);
        return;
    }
    link_init(&guest->link, fd);
    guest->link.read_wants = POLLOUT; /* until it is connected */
    guest->stage = GUEST_DIAL;
}

static int is_connected(struct join *join, struct guest *guest)
{
    int error = 0;
    socklen_t len = sizeof(error);
    struct ms_err why;
    if (getsockopt(guest->link.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
        errno = error;
        (void)ms_fail_errno(&why, MS_E_UNREACHABLE, "cannot connect to %s",
                            guest->is_unix ? join->cfg->members[guest->rank].data_unix
                                           : join->cfg->members[guest->rank].data_address);
        join_note(join, guest->rank, &why);
        return 0;
    }
    return 1;
}

/* The system has connected: TLS next, or the hello. 0, or < 0 with the reason. */
static int begin(struct join *join, struct guest *guest, const char *who, struct ms_err *why)
{
    if (!is_connected(join, guest)) {
        return MS_E_UNREACHABLE;
    }
    if (guest->is_unix && !join_uid_is(guest->link.fd, join->cfg->members[guest->rank].uid)) {
        return ms_fail(why, MS_E_REFUSED, "somebody else's process listens at the socket of %s",
                       who);
    }
    if (!guest->is_unix && join->cfg->tls != NULL) {
        guest->stage = GUEST_TLS;
        return link_use_tls(&guest->link, join->cfg->tls, 0, why);
    }
    return join_ask(join, guest);
}

/* 1: done, the hello is next; 0: not yet; < 0 with the reason. */
static int shake_hands(struct join *join, struct guest *guest, const char *who, struct ms_err *why)
{
    int rc = link_handshake(&guest->link, who, why);
    if (rc != 1) {
        return rc;
    }
    if (guest->rank < 0) {
        guest->stage = GUEST_HEAR;
        return join_knows_certificate(join, guest) ? 1 : MS_E_REFUSED;
    }
    rc = join_check_certificate(join, guest, guest->rank, why); /* before the token is shown */
    rc = rc == 0 ? join_ask(join, guest) : rc;
    return rc == 0 ? 1 : rc;
}

/* As far as a connection gets: 1: the other's hello is there; 0: not yet; < 0: over. */
static int go_on(struct join *join, struct guest *guest, struct ms_err *why)
{
    char who[MESH_WHO_MAX] = "a peer";
    int rc = 0;
    if (guest->rank >= 0) {
        mesh_who(join->mesh, guest->rank, who);
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
    return rc < 0 ? rc : join_hear(guest);
}

/* One step of a connection: its guest is dropped, joins or waits again. Fails where the whole mesh
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
    if (guest->rank < 0) {
        join_drop(guest);
        return 0;
    }
    if (why.text[0] != '\0') {
        join_note(join, guest->rank, &why);
    }
    join_redial(join, guest);
    return 0;
}

/* ---- the loop
 * ---------------------------------------------------------------------------------------- */

static int name_the_missing(struct join *join, uint64_t waited_ms, struct ms_err *err)
{
    const struct mesh *mesh = join->mesh;
    char text[MS_ERR_TEXT_MAX] = "";
    char who[MESH_WHO_MAX];
    size_t used = 0;
    int missing = 0;
    for (int r = 0; r < mesh->world; r++) {
        if (r == mesh->rank || mesh->peers[r].stream.link.fd >= 0) {
            continue;
        }
        if (++missing > 3 || used >= sizeof(text)) { /* the first few say it */
            continue;
        }
        const char *why = join->callers[r].note;
        int n =
            snprintf(text + used, sizeof(text) - used, "%s%s to %s%s%s%s", missing > 1 ? ", " : "",
                     mesh_who(mesh, r, who), r < mesh->rank ? "answer" : "connect",
                     why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
        used += (size_t)n;
    }
    if (missing > 3) {
        return ms_fail(err, MS_E_TIMEOUT, "waited %.1f s for %d ranks: %s ...",
                       (double)waited_ms / 1e3, missing, text);
    }
    return ms_fail(err, MS_E_TIMEOUT, "waited %.1f s for %s", (double)waited_ms / 1e3, text);
}

static nfds_t list_fds(struct join *join)
{
    const struct comm_listener *listener = join->cfg->listener;
    struct pollfd *fds = join->fds;
    int open = now_ms(join) >= join->accept_ms;
    fds[0] = (struct pollfd){.fd = listener->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = open ? listener->tcp_fd : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = open ? listener->unix_fd : -1, .events = POLLIN};
    for (int i = 0; i < join->n_guests; i++) {
        const struct guest *guest = &join->guests[i];
        fds[3 + i] = (struct pollfd){.fd = guest->stage != GUEST_NONE ? guest->link.fd : -1,
                                     .events = guest->link.read_wants};
    }
    return (nfds_t)(3 + join->n_guests);
}

/* Returns whether an attempt waits for its time. */
static int dial_who_is_due(struct join *join)
{
    int waits = 0;
    for (int r = 0; r < join->mesh->rank; r++) {
        struct caller *caller = &join->callers[r];
        if (join->mesh->peers[r].stream.link.fd >= 0 || caller->busy) {
            continue;
        }
        if (now_ms(join) >= caller->next_ms) {
            dial(join, r);
        }
        waits |= !caller->busy;
    }
    return waits;
}

static void drop_the_silent(struct join *join)
{
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (guest->stage != GUEST_NONE && guest->rank < 0 &&
            now_ms(join) - guest->since_ms > MS_HANDSHAKE_MS) {
            join_drop(guest);
        }
    }
}

static int turn(struct join *join, struct ms_err *err)
{
    int soon = dial_who_is_due(join);
    nfds_t n = list_fds(join);
    int ready = poll(join->fds, n, soon ? RETRY_MIN_MS : MESH_TICK_MS);
    (void)mesh_clock(join->mesh);
    if ((join->fds[0].revents & POLLIN) != 0) {
        return ms_fail(err, MS_E_ABORTED, "the wait for the other ranks was cancelled");
    }
    for (int i = 0; ready > 0 && i < join->n_guests; i++) {
        if (join->fds[3 + i].revents != 0) {
            int rc = advance(join, &join->guests[i], err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    if (ready > 0 && (join->fds[1].revents & POLLIN) != 0) {
        accept_tcp(join);
    }
    if (ready > 0 && (join->fds[2].revents & POLLIN) != 0) {
        accept_unix(join);
    }
    drop_the_silent(join);
    if (ready == 0) {
        join_look_for_leavers(join);
    }
    return 0;
}

static int join_all(struct join *join, struct ms_err *err)
{
    struct mesh *mesh = join->mesh;
    mesh_clock_start(mesh);
    uint64_t start = now_ms(join);
    while (join->joined < mesh->world - 1) {
        int rc = turn(join, err);
        if (rc < 0) {
            return rc;
        }
        uint64_t waited = now_ms(join) - start;
        if (join->joined < mesh->world - 1 && waited > (uint64_t)mesh->timeout_ms) {
            return name_the_missing(join, waited, err);
        }
    }
    return 0;
}

int mesh_join(struct mesh *mesh, const struct mesh_config *cfg, struct ms_err *err)
{
    struct join join = {.mesh = mesh, .cfg = cfg};
    int idle = 0;
    if (!atomic_compare_exchange_strong(&cfg->listener->busy, &idle, 1)) {
        return ms_fail(err, MS_E_INVALID, "another mesh is being made on this listener");
    }
    int rc = 0;
    join.n_guests = MS_HALF_OPEN_MAX + mesh->rank;
    join.guests = calloc((size_t)join.n_guests, sizeof(*join.guests));
    join.callers = calloc((size_t)mesh->world, sizeof(*join.callers));
    join.fds = calloc((size_t)join.n_guests + 3, sizeof(*join.fds));
    if (join.guests == NULL || join.callers == NULL || join.fds == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "out of memory for the connections of %d ranks", mesh->world);
        goto out;
    }
    for (int i = 0; i < join.n_guests; i++) {
        join.guests[i].memory = -1;
        link_init(&join.guests[i].link, -1);
    }
    rc = join_all(&join, err);
out:
    for (int i = 0; join.guests != NULL && i < join.n_guests; i++) {
        if (join.guests[i].stage != GUEST_NONE) {
            join_drop(&join.guests[i]);
        }
    }
    free(join.guests);
    free(join.callers);
    free(join.fds);
    atomic_store(&cfg->listener->busy, 0);
    return rc;
}
