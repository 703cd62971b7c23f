/* peer_uid.c - whose the other end of a TCP connection is, where it is on this host */
#include "daemon/peer_uid.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int peer_uid_open(void)
{
    return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 req;
};

/* IPv4 by another name is IPv4 to the socket at the other end. Returns the family, 0: neither. */
static uint8_t split(const struct sockaddr_storage *name, __be32 ret_address[4], __be16 *ret_port)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)name;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)name;
    memset(ret_address, 0, 4 * sizeof(*ret_address));
    if (name->ss_family == AF_INET) {
        ret_address[0] = in->sin_addr.s_addr;
        *ret_port = in->sin_port;
        return AF_INET;
    }
    if (name->ss_family != AF_INET6) {
        return 0;
    }
    *ret_port = in6->sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        memcpy(ret_address, in6->sin6_addr.s6_addr + 12, 4);
        return AF_INET;
    }
    memcpy(ret_address, in6->sin6_addr.s6_addr, 16);
    return AF_INET6;
}

/* The socket for which the two ends have changed places. */
static int make_question(int fd, struct question *ret)
{
    struct sockaddr_storage peer;
    struct sockaddr_storage own;
    socklen_t peer_size = sizeof(peer);
    socklen_t own_size = sizeof(own);
    *ret = (struct question){.head = {.nlmsg_len = sizeof(*ret),
                                      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                      .nlmsg_flags = NLM_F_REQUEST},
                             .req = {.sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U}};
    struct inet_diag_sockid *id = &ret->req.id;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_size) != 0) {
        return -1;
    }
    ret->req.sdiag_family = split(&peer, id->idiag_src, &id->idiag_sport);
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    int is_tcp = ret->req.sdiag_family != 0 &&
                 split(&own, id->idiag_dst, &id->idiag_dport) == ret->req.sdiag_family;
    return is_tcp ? 0 : -1;
}

int peer_uid_find(int asker, int fd, unsigned *ret_uid)
{
    struct question question;
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg msg;
        uint8_t more[1024];
    } answer;
    memset(&answer, 0, sizeof(answer));
    if (asker < 0 || make_question(fd, &question) < 0) {
        return -1;
    }
    while (recv(asker, &answer, sizeof(answer), 0) > 0) { /* of a question that failed half-way */
    }
    if (send(asker, &question, sizeof(question), 0) != (ssize_t)sizeof(question)) {
        return -1;
    }
    ssize_t n = recv(asker, &answer, sizeof(answer), 0); /* it was answered inside of send */
    size_t least = sizeof(answer.head) + sizeof(answer.msg);
    if (n < (ssize_t)least || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
        return -1;
    }
    /* a socket that only listens at that port is another one; one that was closed is nobody's */
    int is_it = answer.msg.id.idiag_sport == question.req.id.idiag_sport &&
                answer.msg.id.idiag_dport == question.req.id.idiag_dport;
    if (!is_it || answer.msg.idiag_inode == 0) {
        return -1;
    }
    *ret_uid = answer.msg.idiag_uid;
    return 0;
}
