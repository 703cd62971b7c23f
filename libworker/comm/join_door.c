/* join_door.c - who comes in: from where, who has a seat, who gives way
 *
 * Anybody can connect to the data port, and each ClientHello costs a signature. The ranks that are
 * expected are known by the addresses they were registered with:
 *
 *     known     from the address of a rank that has not joined, or on the Unix socket; by address
 *     strangers everybody else, by network: perhaps a rank behind NAT, or on a host of two
 * addresses
 *
 * Each side has room of its own and may use what the other leaves. Where seats are short, whose
 * party is the largest loses one; whose turn it is goes round the seats (join.c), so that a party
 * has no more turns than seats. An address proves nothing and shuts nobody out. */
#include "libworker/comm/join.h"

#include "libworker/comm/lack.h"
#include "proto/addr.h"
#include "proto/discard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPT_PAUSE_MS = 100,                /* out of descriptors: wait until some are free */
    QUICK_MS = 250,                       /* a rank that came in has joined by then */
    STRANGERS_MIN = MS_HALF_OPEN_MAX / 4, /* seats that the known leave them */
    NETWORK_V4 = 3,                       /* bytes of an address that make a network: /24 ... */
    NETWORK_V6 = 6,                       /* ... and /48, what one customer has */
};

/* ---- from where
 * --------------------------------------------------------------------------------------- */

static struct origin origin_of(const struct sockaddr *sa)
{
    struct origin from = {.family = (uint8_t)sa->sa_family};
    if (sa->sa_family == AF_INET) {
        memcpy(from.at, &((const struct sockaddr_in *)sa)->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;
        int is_v4 = IN6_IS_ADDR_V4MAPPED(in6);
        from.family = is_v4 ? AF_INET : AF_INET6;
        memcpy(from.at, in6->s6_addr + (is_v4 ? 12 : 0), is_v4 ? 4 : sizeof(from.at));
    }
    return from;
}

static struct origin network_of(const struct origin *from)
{
    struct origin network = {.family = from->family};
    memcpy(network.at, from->at, from->family == AF_INET ? NETWORK_V4 : NETWORK_V6);
    return network;
}

static int is_same(const struct origin *a, const struct origin *b)
{
    return a->family == b->family && memcmp(a->at, b->at, sizeof(a->at)) == 0;
}

/* A name is not looked up: that may take as long as the whole wait, for each of a thousand ranks.
 */
static void note_address(const char *address, struct origin *ret)
{
    struct ms_addr addr;
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {.v6 = {.sin6_family = AF_INET6}};
    if (ms_addr_parse(address, 0, &addr, NULL) < 0 || addr.is_unix) {
        return;
    }
    addr.host[strcspn(addr.host, "%")] = '\0'; /* the zone of a link-local address */
    if (inet_pton(AF_INET6, addr.host, &at.v6.sin6_addr) != 1) {
        at.v4 = (struct sockaddr_in){.sin_family = AF_INET};
        if (inet_pton(AF_INET, addr.host, &at.v4.sin_addr) != 1) {
            return;
        }
    }
    *ret = origin_of(&at.sa);
}

int join_door_open(struct join *join, struct ms_err *err)
{
    const struct group *group = join->group;
    join->addresses = calloc((size_t)group->n_ranks, sizeof(*join->addresses));
    if (join->addresses == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for the addresses of %d ranks",
                       group->n_ranks);
    }
    for (int r = group->rank + 1; r < group->n_ranks; r++) {
        if (group->peers[r].local < 0) {
            note_address(join_member(join, r)->data_address, &join->addresses[r]);
        }
    }
    return 0;
}

static int is_expected(const struct join *join, const struct origin *from)
{
    const struct group *group = join->group;
    for (int r = group->rank + 1; r < group->n_ranks; r++) {
        if (group->peers[r].stream.link.fd < 0 && is_same(&join->addresses[r], from)) {
            return 1;
        }
    }
    return 0;
}

/* ---- seats
 * -------------------------------------------------------------------------------------------- */

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
        ms_discard_fds(fds, n);
    } else {
        link_close(&guest->link);
    }
    if (guest->party != NULL) {
        guest->party->seats--;
        guest->party->begun -= guest->has_begun;
    }
    *guest = (struct guest){.stage = GUEST_NONE, .memory = -1};
    link_init(&guest->link, -1);
}

static int count_seats(const struct join *join, int is_known)
{
    int n = 0;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        n += join->parties[i].is_known == is_known ? join->parties[i].seats : 0;
    }
    return n;
}

/* Of a party the side that has more of its seats gives way, the oldest first: who is honest needs a
 * few milliseconds. So neither a crowd of newcomers undoes the handshakes that are under way, nor
 * do those who never end theirs keep all others out. */
static int may_give_way(const struct guest *guest, int is_known, int seats)
{
    const struct party *party = guest->party;
    return party != NULL && party->is_known == is_known && party->seats == seats &&
           guest->has_begun == (2 * party->begun > party->seats);
}

static void make_room(struct join *join, int for_known)
{
    int strangers = count_seats(join, 0);
    int is_known = for_known ? strangers <= STRANGERS_MIN : strangers < STRANGERS_MIN;
    struct guest *oldest = NULL;
    int most = 0;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        const struct party *party = &join->parties[i];
        most = party->is_known == is_known && party->seats > most ? party->seats : most;
    }
    for (int i = 0; i < join->n_guests; i++) {
        struct guest *guest = &join->guests[i];
        if (may_give_way(guest, is_known, most) &&
            (oldest == NULL || guest->since_ms < oldest->since_ms)) {
            oldest = guest;
        }
    }
    if (oldest != NULL) {
        join_drop(oldest);
    }
}

/* There are as many parties as seats: one without is free. */
static struct party *find_party(struct join *join, const struct origin *from, int is_known)
{
    struct party *unused = NULL;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        struct party *party = &join->parties[i];
        if (party->seats == 0) {
            unused = party;
        } else if (party->is_known == is_known && is_same(&party->from, from)) {
            return party;
        }
    }
    if (unused != NULL) {
        *unused = (struct party){.from = *from, .is_known = is_known};
    }
    return unused;
}

struct guest *join_free_guest(struct join *join)
{
    for (int i = 0; i < join->n_guests; i++) {
        if (join->guests[i].stage == GUEST_NONE) {
            return &join->guests[i];
        }
    }
    return NULL;
}

int join_door_is_held(const struct join *join)
{
    for (int i = 0; i < join->n_guests; i++) {
        const struct guest *guest = &join->guests[i];
        if (guest->stage != GUEST_NONE && guest->party != NULL &&
            join_now_ms(join) - guest->since_ms > QUICK_MS) {
            return 1;
        }
    }
    return 0;
}

static struct guest *seat(struct join *join, int conn, const struct origin *from, int is_known)
{
    if (count_seats(join, 0) + count_seats(join, 1) >= MS_HALF_OPEN_MAX) {
        make_room(join, is_known);
    }
    struct party *party = find_party(join, from, is_known);
    struct guest *guest = party != NULL ? join_free_guest(join) : NULL;
    if (guest != NULL) {
        link_init(&guest->link, conn);
        guest->party = party;
        guest->rank = -1;
        guest->since_ms = join_now_ms(join);
        guest->stage = GUEST_HEAR;
        party->seats++;
    }
    return guest;
}

int join_begin_tls(struct join *join, struct guest *guest, struct ms_err *err)
{
    guest->has_begun = 1;
    guest->party->begun++;
    return link_use_tls(&guest->link, join->cfg->listener->tls, 1, err);
}

/* ---- the two listeners
 * -------------------------------------------------------------------------------- */

/* The system asks for a descriptor before it looks whether it is for anybody. */
static int is_somebody_there(int fd)
{
    struct pollfd listener = {.fd = fd, .events = POLLIN};
    return poll(&listener, 1, 0) > 0;
}

/* The next connection; -1: none. */
static int take_connection(struct join *join, int fd, struct sockaddr_storage *ret)
{
    socklen_t len = sizeof(*ret);
    struct ms_err why;
    int conn = accept4(fd, (struct sockaddr *)ret, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (conn < 0 && lack_found(&why, errno, "cannot take a connection") < 0 &&
        is_somebody_there(fd)) {
        join_note_lack(join, &why);
        join->accept_ms = join_now_ms(join) + ACCEPT_PAUSE_MS;
    }
    return conn;
}

/* A stranger is turned away before a byte, or a descriptor, of his is received. */
void join_accept_unix(struct join *join)
{
    const struct origin here = {.family = AF_UNIX};
    struct sockaddr_storage sa;
    int strangers[MS_HALF_OPEN_MAX];
    size_t n = 0;
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        int conn = take_connection(join, join->cfg->listener->unix_fd, &sa);
        if (conn < 0) {
            break;
        }
        struct guest *guest = join_knows_uid(join, conn) ? seat(join, conn, &here, 1) : NULL;
        if (guest != NULL) {
            guest->is_unix = 1;
        } else {
            strangers[n++] = conn;
        }
    }
    ms_discard_fds(strangers, n);
}

/* TLS begins when something has come: silence costs a seat and nothing else. */
void join_accept_tcp(struct join *join)
{
    struct sockaddr_storage sa = {0};
    for (int i = 0; i < MS_HALF_OPEN_MAX; i++) {
        int conn = take_connection(join, join->cfg->listener->tcp_fd, &sa);
        if (conn < 0) {
            return;
        }
        struct origin from = origin_of((const struct sockaddr *)&sa);
        int is_known = is_expected(join, &from);
        from = is_known ? from : network_of(&from);
        struct guest *guest = seat(join, conn, &from, is_known);
        if (guest == NULL) {
            close(conn);
            return;
        }
        guest->stage = join->cfg->tls != NULL ? GUEST_TLS : GUEST_HEAR;
    }
}
