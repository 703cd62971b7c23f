/* join_hello.c - what the two sides of a new connection say to each other, and who is let in */
#include "libworker/comm/join.h"

#include "libworker/comm/lack.h"
#include "proto/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static struct hello own_hello(const struct join *join, int peer, enum hello_type type)
{
    const struct group *group = join->group;
    struct hello hello = {
        .version = HELLO_VERSION,
        .type = (uint16_t)type,
        .job = join->cfg->job,
        .generation = join->cfg->generation,
        .rank = (uint32_t)group->rank,
        .peer = (uint32_t)peer,
        .world = (uint32_t)group->n_ranks,
        .exchange_count = group->exchange_count,
        .group = group->number,
        .segment_bytes = group->peers[peer].local >= 0 ? group->segments[group->self].size : 0,
    };
    memcpy(hello.token, join->cfg->token, MS_TOKEN_LEN);
    return hello;
}

/* The memory of a rank of this host. MS_E_NOMEM: this one has no room for it. */
static int take_memory(struct join *join, struct guest *guest, int rank, struct ms_err *err)
{
    struct group *group = join->group;
    const struct peer *peer = &group->peers[rank];
    char who[MESH_WHO_MAX];
    if (peer->local < 0) {
        return 0;
    }
    if (guest->memory < 0) {
        return ms_fail(err, MS_E_REFUSED, "%s passed no memory", group_who(group, rank, who));
    }
    struct shm_head want = group_head(group, rank);
    int memory = guest->memory;
    guest->memory = -1;
    segment_fini(&group->segments[peer->local]);
    return segment_map(&group->segments[peer->local], memory, &want, group->exchange_dtype,
                       group_who(group, rank, who), err);
}

static void take_link(struct join *join, struct guest *guest, int rank)
{
    stream_init(&join->group->peers[rank].stream, &guest->link);
    link_init(&guest->link, -1); /* moved */
    join->joined++;
    join->lack[0] = '\0'; /* not so little that nobody can join */
}

static int blame_itself(struct join *join, int code, const char *text, struct ms_err *err)
{
    struct group *group = join->group;
    return group_blame(group, group->peers[group->rank].member, err, code, "%s", text);
}

/* 0, or the connection is useless: MS_E_NOMEM, with the reason, for this process's sake. 96 bytes
 * always fit an empty socket. */
static int say(struct join *join, struct guest *guest, const struct hello *hello,
               struct ms_err *err)
{
    uint8_t bytes[HELLO_BYTES];
    int is_sent = 0;
    hello_encode(hello, bytes);
    errno = 0;
    if (guest->is_unix && hello->type != HELLO_REFUSED) {
        is_sent = join_send_memory(guest->link.fd, bytes, sizeof(bytes),
                                   join->group->segments[join->group->self].fd) == 1;
    } else {
        is_sent = link_write(&guest->link, bytes, sizeof(bytes), NULL, 0) == (ssize_t)sizeof(bytes);
    }
    if (is_sent) {
        return 0;
    }
    return lack_found(err, errno, "cannot say hello to a rank") < 0 ? MS_E_NOMEM : MS_E_CLOSED;
}

int join_ask(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct hello hello = own_hello(join, guest->rank, HELLO_ASK);
    guest->stage = GUEST_ASK;
    guest->link.read_wants = POLLIN;
    return say(join, guest, &hello, err);
}

int join_hear(struct guest *guest, struct ms_err *err)
{
    while (guest->have < HELLO_BYTES) {
        ssize_t n = guest->is_unix ? join_receive_memory(guest->link.fd, guest->bytes + guest->have,
                                                         HELLO_BYTES - guest->have, &guest->memory)
                                   : link_read(&guest->link, guest->bytes + guest->have,
                                               HELLO_BYTES - guest->have);
        if ((n == LINK_SHORT || n == LINK_BROKEN) &&
            lack_found(err, errno,
                       guest->memory == JOIN_NO_DESCRIPTOR ? "cannot take the memory of a rank"
                                                           : "cannot hear a rank's hello") < 0) {
            return MS_E_NOMEM;
        }
        if (n <= 0) {
            return n == LINK_AGAIN ? 0 : MS_E_CLOSED;
        }
        guest->have += (size_t)n;
    }
    return 1;
}

int join_check_certificate(struct join *join, struct guest *guest, int rank, struct ms_err *err)
{
    const char *want = join_member(join, rank)->cert_name;
    struct ms_peer who = {0};
    char name[MESH_WHO_MAX];
    if (guest->link.ssl == NULL) {
        return 0;
    }
    int rc = ms_tls_peer(guest->link.ssl, &who, err);
    if (rc < 0) {
        return rc;
    }
    if ((who.who.roles & MS_ROLE_WORKER) == 0 || strcmp(who.cert_name, want) != 0) {
        return ms_fail(err, MS_E_REFUSED,
                       "the certificate of %s is that of \"%s\", but \"%s\" was registered; issue "
                       "one with: msctl certs issue worker %s",
                       group_who(join->group, rank, name), who.cert_name, want, want);
    }
    return 0;
}

int join_knows_uid(const struct join *join, int fd)
{
    const struct group *group = join->group;
    uint32_t uid = 0;
    if (join_uid(fd, &uid) < 0) {
        return 0;
    }
    int known = 0;
    for (int r = group->rank + 1; r < group->n_ranks && !known; r++) {
        known = group->peers[r].local >= 0 && join_member(join, r)->uid == uid;
    }
    return known;
}

int join_knows_certificate(struct join *join, const struct guest *guest)
{
    const struct group *group = join->group;
    struct ms_peer who = {0};
    struct ms_err why = {0};
    int rc = ms_tls_peer(guest->link.ssl, &who, &why);
    for (int r = group->rank + 1;
         rc == 0 && (who.who.roles & MS_ROLE_WORKER) != 0 && r < group->n_ranks; r++) {
        if (strcmp(who.cert_name, join_member(join, r)->cert_name) == 0) {
            return 1;
        }
    }
    if (rc == 0) {
        (void)ms_fail(&why, MS_E_REFUSED,
                      "somebody with the certificate of \"%s\", which none of the ranks has, was "
                      "turned away",
                      who.cert_name);
    }
    for (int r = group->rank + 1; r < group->n_ranks; r++) {
        if (group->peers[r].stream.link.fd < 0) {
            join_note(join, r, &why);
        }
    }
    return 0;
}

/* Is the one who speaks the one who was registered for the rank that he names? */
static int is_the_registered(struct join *join, struct guest *guest, int rank, struct ms_err *why)
{
    if (guest->is_unix && !join_uid_is(guest->link.fd, join_member(join, rank)->uid)) {
        (void)ms_fail(why, MS_E_REFUSED, "another user's process came in its place");
        return 0;
    }
    return join_check_certificate(join, guest, rank, why) == 0;
}

/* What ASK deserves. First who it is, then what he says: -1, with the reason, for those who get no
 * answer. Without TLS only the token says who somebody is: wrong numbers are a stranger's there. */
static int judge(struct join *join, struct guest *guest, const struct hello *mine,
                 const struct hello *theirs, struct ms_err *why)
{
    struct group *group = join->group;
    int rank = (int)theirs->rank;
    int fits = theirs->rank > (uint32_t)group->rank && theirs->rank < (uint32_t)group->n_ranks;
    if (fits && !is_the_registered(join, guest, rank, why)) {
        return -1;
    }
    enum hello_reason reason = hello_judge(mine, theirs);
    int is_known = guest->is_unix || guest->link.ssl != NULL;
    if (!is_known && reason >= HELLO_BAD_JOB && reason <= HELLO_BAD_TOKEN) {
        (void)ms_fail(why, MS_E_REFUSED, "somebody without the token was turned away");
        return -1;
    }
    if (!fits && (reason == HELLO_OK || reason == HELLO_BAD_TRANSPORT)) {
        return HELLO_BAD_RANK;
    }
    if (reason != HELLO_OK) {
        return (int)reason;
    }
    if ((group->peers[rank].local >= 0) != guest->is_unix) {
        return HELLO_BAD_TRANSPORT;
    }
    if (group->peers[rank].stream.link.fd >= 0) {
        join_look_for_leavers(join);
    }
    return group->peers[rank].stream.link.fd >= 0 ? HELLO_DUPLICATE : HELLO_OK;
}

/* The refusal with our numbers; a version says nothing about the job, so it is told alone. */
static void refuse(struct join *join, struct guest *guest, const struct hello *mine, int reason)
{
    struct hello answer = *mine;
    if (reason == HELLO_BAD_VERSION) {
        answer = (struct hello){.version = mine->version, .type = HELLO_REFUSED};
    }
    answer.reason = (uint32_t)reason;
    memset(answer.token, 0, sizeof(answer.token));
    (void)say(join, guest, &answer, NULL);
    atomic_fetch_add(&join->cfg->listener->refused, 1);
}

/* Its memory first: who is welcomed counts on us, and asks no more. */
static int let_in(struct join *join, struct guest *guest, int rank, struct ms_err *err)
{
    struct hello welcome = own_hello(join, rank, HELLO_WELCOME);
    struct ms_err why = {0};
    int rc = take_memory(join, guest, rank, &why);
    if (rc == MS_E_NOMEM) {
        return blame_itself(join, rc, why.text, err);
    }
    if (rc == 0 && say(join, guest, &welcome, &why) == 0) {
        take_link(join, guest, rank);
        return 0;
    }
    if (rc == 0 && guest->is_unix) {
        segment_fini(&join->group->segments[join->group->peers[rank].local]);
    }
    if (why.text[0] != '\0') {
        join_note(join, rank, &why);
    }
    return 0;
}

int join_answer(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct group *group = join->group;
    struct hello theirs;
    struct ms_err why = {0};
    char who[MESH_WHO_MAX];
    if (hello_decode(guest->bytes, &theirs, &why) < 0 || theirs.type != HELLO_ASK) {
        return 0; /* a stranger gets no answer */
    }
    int rank = (int)theirs.rank;
    int fits = theirs.rank > (uint32_t)group->rank && theirs.rank < (uint32_t)group->n_ranks;
    struct hello mine = own_hello(join, fits ? rank : group->rank, HELLO_REFUSED);
    mine.peer = theirs.rank;
    int reason = judge(join, guest, &mine, &theirs, &why);
    if (reason > HELLO_OK) {
        refuse(join, guest, &mine, reason);
        group_who(group, fits ? rank : group->rank, who);
        (void)hello_fail((enum hello_reason)reason, &mine, &theirs, who, &why);
        /* The token was right, and it can never fit: nobody should wait for the timeout. */
        if (fits && (reason == HELLO_BAD_WORLD || reason == HELLO_BAD_EXCHANGE)) {
            return ms_fail(err, MS_E_REFUSED, "%s", why.text);
        }
    } else if (reason == HELLO_OK) {
        return let_in(join, guest, rank, err);
    }
    if (fits && why.text[0] != '\0') {
        join_note(join, rank, &why);
    }
    return 0;
}

int join_take_answer(struct join *join, struct guest *guest, struct ms_err *err)
{
    struct group *group = join->group;
    int rank = guest->rank;
    struct hello mine = own_hello(join, rank, HELLO_ASK);
    struct hello theirs;
    struct ms_err why;
    char who[MESH_WHO_MAX];
    group_who(group, rank, who);
    int rc = hello_decode(guest->bytes, &theirs, &why);
    if (rc == 0 && theirs.type == HELLO_ASK) {
        rc = ms_fail(&why, MS_E_PROTOCOL, "it answered with a question");
    }
    if (rc < 0) {
        join_note(join, rank, &why);
        join_redial(join, guest);
        return 0;
    }
    enum hello_reason reason = theirs.type == HELLO_REFUSED ? (enum hello_reason)theirs.reason
                                                            : hello_judge(&mine, &theirs);
    if (reason != HELLO_OK) {
        rc = hello_fail(reason, &mine, &theirs, who, &why);
        join_note(join, rank, &why);
        int again = theirs.type == HELLO_REFUSED && hello_may_retry(reason);
        join_redial(join, guest);
        if (rc == MS_E_ABORTED) { /* it is gone from this generation, as one that is lost */
            return group_blame(group, group->peers[rank].member, err, rc, "%s", why.text);
        }
        return again ? 0 : ms_fail(err, rc, "%s", why.text);
    }
    rc = take_memory(join, guest, rank, &why);
    if (rc == 0) {
        take_link(join, guest, rank);
    }
    rc = rc == MS_E_NOMEM ? join_fail_welcomed(join, guest, &why, err)
         : rc < 0         ? ms_fail(err, rc, "%s", why.text)
                          : 0;
    join_drop(guest);
    return rc;
}

int join_fail_welcomed(struct join *join, struct guest *guest, const struct ms_err *why,
                       struct ms_err *err)
{
    char text[MS_ERR_TEXT_MAX];
    char who[MESH_WHO_MAX];
    const int rank = guest->rank;
    take_link(join, guest, rank);
    snprintf(text, sizeof(text), "%s, though %s has let this rank in", ms_err_text(why),
             group_who(join->group, rank, who));
    return blame_itself(join, MS_E_NOMEM, text, err);
}
