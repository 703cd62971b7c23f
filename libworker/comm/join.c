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

#include "proto/addr.h"
#include "proto/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
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

static void drop(struct guest *guest)
{
    link_close(&guest->link);
    if (guest->memory >= 0) {
        close(guest->memory);
    }
    *guest = (struct guest){.stage = GUEST_NONE, .memory = -1};
    link_init(&guest->link, -1);
}

/* An outgoing attempt that failed, and may be made again. */
static void redial(struct join *join, struct guest *guest)
{
    struct caller *caller = &join->callers[guest->rank];
    uint64_t wait = caller->wait_ms == 0 ? RETRY_MIN_MS : 2 * (uint64_t)caller->wait_ms;
    caller->wait_ms = wait < RETRY_MAX_MS ? (int)wait : RETRY_MAX_MS;
    caller->next_ms = now_ms(join) + (uint64_t)caller->wait_ms;
    caller->busy = 0;
    drop(guest);
}

/* Keeps the reason for the error of the timeout. */
static void note(struct join *join, int rank, const struct ms_err *err)
{
    snprintf(join->callers[rank].note, sizeof(join->callers[rank].note), "%s", err->text);
}

static struct hello own_hello(const struct join *join, int peer, enum hello_type type)
{
    const struct mesh *mesh = join->mesh;
    struct hello hello = {
        .version = HELLO_VERSION,
        .type = (uint16_t)type,
        .job = mesh->job,
        .generation = mesh->generation,
        .rank = (uint32_t)mesh->rank,
        .peer = (uint32_t)peer,
        .world = (uint32_t)mesh->world,
        .exchange_floats = mesh->exchange_floats,
        .segment_bytes = mesh->peers[peer].local >= 0 ? mesh->segments[mesh->self].size : 0,
    };
    memcpy(hello.token, join->cfg->token, MS_TOKEN_LEN);
    return hello;
}

/* ---- joined
 * ------------------------------------------------------------------------------------------ */

static int adopt(struct join *join, struct guest *guest, int rank, struct ms_err *err)
{
    struct mesh *mesh = join->mesh;
    struct peer *peer = &mesh->peers[rank];
    if (peer->local >= 0) {
        char who[MESH_WHO_MAX];
        struct shm_head want = {
            .job = mesh->job,
            .generation = mesh->generation,
            .rank = (uint64_t)rank,
            .world = (uint64_t)mesh->world,
            .exchange_floats = mesh->exchange_floats,
        };
        if (guest->memory < 0) {
            return ms_fail(err, MS_E_REFUSED, "%s passed no memory", mesh_who(mesh, rank, who));
        }
        int memory = guest->memory;
        guest->memory = -1;
        segment_fini(&mesh->segments[peer->local]);
        int rc = segment_map(&mesh->segments[peer->local], memory, &want, mesh_who(mesh, rank, who),
                             err);
        if (rc < 0) {
            return rc;
        }
    }
    stream_init(&peer->stream, &guest->link);
    link_init(&guest->link, -1); /* moved */
    join->joined++;
    return 0;
}

/* A peer that joined and went again while others are awaited: it may come back. */
static void look_for_leavers(struct join *join)
{
    for (int r = 0; r < join->mesh->world; r++) {
        struct stream *stream = &join->mesh->peers[r].stream;
        if (r != join->mesh->rank && stream->link.fd >= 0 && link_is_hung_up(&stream->link) &&
            stream_fate(join->mesh, &join->mesh->peers[r]) !=
                FATE_LEFT) { /* the first collective will name who left */
            struct caller *caller = &join->callers[r];
            stream_fini(stream);
            snprintf(caller->note, sizeof(caller->note), "it had come, and has gone again");
            caller->busy = 0;
            caller->next_ms = now_ms(join) + RETRY_MIN_MS;
            join->joined--;
        }
    }
}

/* ---- hello
 * -------------------------------------------------------------------------------------------- */

/* 1: sent; else the connection is useless. 96 bytes always fit an empty socket. */
static int say(struct join *join, struct guest *guest, const struct hello *hello)
{
    uint8_t bytes[HELLO_BYTES];
    hello_encode(hello, bytes);
    if (guest->is_unix && hello->type != HELLO_REFUSED) {
        return join_send_memory(guest->link.fd, bytes, sizeof(bytes),
                                join->mesh->segments[join->mesh->self].fd);
    }
    return link_write(&guest->link, bytes, sizeof(bytes), NULL, 0) == (ssize_t)sizeof(bytes);
}

/* 1: all 96 bytes are there; 0: not yet; < 0: over. Reads no byte more. */
static int hear(struct guest *guest)
{
    while (guest->have < HELLO_BYTES) {
        ssize_t n = guest->is_unix ? join_receive_memory(guest->link.fd, guest->bytes + guest->have,
                                                         HELLO_BYTES - guest->have, &guest->memory)
                                   : link_read(&guest->link, guest->bytes + guest->have,
                                               HELLO_BYTES - guest->have);
        if (n <= 0) {
            return n == LINK_AGAIN ? 0 : -1;
        }
        guest->have += (size_t)n;
    }
    return 1;
}

static int check_certificate(struct join *join, struct guest *guest, int rank, struct ms_err *err)
{
    const char *want = join->cfg->members[rank].cert_name;
    struct ms_peer who = {0};
    char name[MESH_WHO_MAX];
    if (guest->link.ssl == NULL) {
        return 0;
    }
    int rc = ms_tls_peer(guest->link.ssl, &who, err);
    if (rc < 0) {
        return rc;
    }
    if (who.role != MS_ROLE_WORKER || strcmp(who.cert_name, want) != 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "the certificate of %s is that of \"%s\", but \"%s\" was registered; issue "
                       "one with: msctl certs issue worker %s",
                       mesh_who(join->mesh, rank, name), who.cert_name, want, want);
    }
    return 0;
}

/* ASK came in on an accepted connection. */
static int answer(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct mesh *mesh = join->mesh;
    struct hello theirs;
    struct ms_err why;
    char who[MESH_WHO_MAX];
    if (hello_decode(guest->bytes, &theirs, &why) < 0 || theirs.type != HELLO_ASK) {
        return 0; /* a stranger gets no answer */
    }
    int rank = (int)theirs.rank;
    int fits = theirs.rank > (uint32_t)mesh->rank && theirs.rank < (uint32_t)mesh->world;
    struct hello mine = own_hello(join, fits ? rank : mesh->rank, HELLO_REFUSED);
    mine.peer = theirs.rank;
    enum hello_reason reason = hello_judge(&mine, &theirs);
    if (!fits && (reason == HELLO_OK || reason == HELLO_BAD_TRANSPORT)) {
        reason = HELLO_BAD_RANK;
    }
    if (reason == HELLO_OK && (mesh->peers[rank].local >= 0) != guest->is_unix) {
        reason = HELLO_BAD_TRANSPORT;
    }
    if (reason == HELLO_OK && guest->is_unix &&
        !join_uid_is(guest->link.fd, join->cfg->members[rank].uid)) {
        return 0;
    }
    if (reason == HELLO_OK && check_certificate(join, guest, rank, &why) < 0) {
        note(join, rank, &why);
        return 0;
    }
    if (reason == HELLO_OK && mesh->peers[rank].stream.link.fd >= 0) {
        look_for_leavers(join);
        reason = mesh->peers[rank].stream.link.fd >= 0 ? HELLO_DUPLICATE : HELLO_OK;
    }
    if (reason != HELLO_OK) {
        mine.reason = reason;
        memset(mine.token, 0, sizeof(mine.token));
        (void)say(join, guest, &mine);
        atomic_fetch_add(&join->cfg->listener->refused, 1);
        if (fits) {
            (void)hello_fail(reason, &mine, &theirs, mesh_who(mesh, rank, who), &why);
            note(join, rank, &why);
        }
        /* The token was right, and it can never fit: nobody should wait for the timeout. */
        int hopeless = reason == HELLO_BAD_WORLD || reason == HELLO_BAD_EXCHANGE;
        return hopeless && fits ? ms_fail(err, MS_E_REFUSED, "%s", why.text) : 0;
    }
    mine = own_hello(join, rank, HELLO_WELCOME);
    if (say(join, guest, &mine) != 1) {
        return 0;
    }
    if (adopt(join, guest, rank, &why) < 0) {
        note(join, rank, &why);
    }
    return 0;
}

/* WELCOME or REFUSED came in on a connection that this rank made. */
static int take_answer(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct mesh *mesh = join->mesh;
    int rank = guest->rank;
    struct hello mine = own_hello(join, rank, HELLO_ASK);
    struct hello theirs;
    struct ms_err why;
    char who[MESH_WHO_MAX];
    mesh_who(mesh, rank, who);
    int rc = hello_decode(guest->bytes, &theirs, &why);
    if (rc < 0 || theirs.type == HELLO_ASK) {
        note(join, rank, &why);
        redial(join, guest);
        return 0;
    }
    enum hello_reason reason = theirs.type == HELLO_REFUSED ? (enum hello_reason)theirs.reason
                                                            : hello_judge(&mine, &theirs);
    if (reason != HELLO_OK) {
        rc = hello_fail(reason, &mine, &theirs, who, &why);
        note(join, rank, &why);
        int again = theirs.type == HELLO_REFUSED && hello_may_retry(reason);
        redial(join, guest);
        return again ? 0 : ms_fail(err, rc, "%s", why.text);
    }
    rc = adopt(join, guest, rank, err);
    drop(guest);
    return rc;
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
        drop(oldest);
    }
    return oldest;
}

static void accept_from(struct join *join, int fd, int is_unix)
{
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (conn < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                join->accept_ms = now_ms(join) + ACCEPT_PAUSE_MS;
            }
            return;
        }
        struct guest *guest = free_guest(join);
        if (guest == NULL) {
            close(conn);
            return;
        }
        link_init(&guest->link, conn);
        guest->rank = -1;
        guest->is_unix = is_unix;
        guest->since_ms = now_ms(join);
        guest->stage = GUEST_HEAR;
        if (!is_unix && join->cfg->tls != NULL) {
            guest->stage = GUEST_TLS;
            if (link_use_tls(&guest->link, join->cfg->listener->tls, 1, NULL) < 0) {
                drop(guest);
            }
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
        note(join, rank, &why);
        redial(join, guest);
        return;
    }
    link_init(&guest->link, fd);
    guest->link.read_wants = POLLOUT; /* until it is connected */
    guest->stage = GUEST_DIAL;
}

static int ask(struct join *join, struct guest *guest)
{
    struct hello hello = own_hello(join, guest->rank, HELLO_ASK);
    guest->stage = GUEST_ASK;
    guest->link.read_wants = POLLIN;
    return say(join, guest, &hello) == 1 ? 0 : -1;
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
        note(join, guest->rank, &why);
        return 0;
    }
    return 1;
}

/* One step of a connection; its guest is dropped, joined or waits again. Fails where the whole mesh
 * can never be. */
static int advance(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct ms_err why = {0};
    char who[MESH_WHO_MAX] = "a peer";
    int rc = 0;
    if (guest->rank >= 0) {
        mesh_who(join->mesh, guest->rank, who);
    }
    if (guest->stage == GUEST_DIAL) {
        rc = is_connected(join, guest) ? 0 : -1;
        if (rc == 0 && guest->is_unix &&
            !join_uid_is(guest->link.fd, join->cfg->members[guest->rank].uid)) {
            rc = ms_fail(&why, MS_E_REFUSED, "somebody else's process listens at the socket of %s",
                         who);
        } else if (rc == 0 && !guest->is_unix && join->cfg->tls != NULL) {
            rc = link_use_tls(&guest->link, join->cfg->tls, 0, &why);
            guest->stage = GUEST_TLS;
        } else if (rc == 0) {
            rc = ask(join, guest);
        }
    }
    if (rc == 0 && guest->stage == GUEST_TLS) {
        rc = link_handshake(&guest->link, who, &why);
        if (rc == 0) {
            return 0;
        }
        if (rc == 1 && guest->rank >= 0) {
            rc = check_certificate(join, guest, guest->rank, &why);
            rc = rc == 0 ? ask(join, guest) : rc;
        } else if (rc == 1) {
            guest->stage = GUEST_HEAR;
            rc = 0;
        }
    }
    if (rc == 0) {
        rc = hear(guest);
        if (rc == 0) {
            return 0;
        }
    }
    if (rc == 1 && guest->rank >= 0) {
        return take_answer(join, guest, err);
    }
    if (rc == 1) {
        rc = answer(join, guest, err);
        drop(guest);
        return rc;
    }
    if (why.text[0] != '\0' && guest->rank >= 0) {
        note(join, guest->rank, &why);
    }
    if (guest->rank >= 0) {
        redial(join, guest);
    } else {
        drop(guest);
    }
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
        accept_from(join, join->cfg->listener->tcp_fd, 0);
    }
    if (ready > 0 && (join->fds[2].revents & POLLIN) != 0) {
        accept_from(join, join->cfg->listener->unix_fd, 1);
    }
    for (int i = 0; i < join->n_guests; i++) { /* strangers that say nothing */
        struct guest *guest = &join->guests[i];
        if (guest->stage != GUEST_NONE && guest->rank < 0 &&
            now_ms(join) - guest->since_ms > MS_HANDSHAKE_MS) {
            drop(guest);
        }
    }
    if (ready == 0) {
        look_for_leavers(join);
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
            drop(&join.guests[i]);
        }
    }
    free(join.guests);
    free(join.callers);
    free(join.fds);
    atomic_store(&cfg->listener->busy, 0);
    return rc;
}
