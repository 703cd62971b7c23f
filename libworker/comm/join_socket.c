/* join_socket.c - system calls of the handshake: connect, credentials, descriptors passed along */
#include "libworker/comm/join.h"

#include "libworker/comm/lack.h"
#include "proto/addr.h"
#include "proto/discard.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Room for more than the one that is wanted: what does not fit the kernel closes, in our time. */
enum { DESCRIPTORS_MAX = 253 }; /* SCM_MAX_FD of the kernel: it never passes more at once */

/* Of a call that failed. */
static int fail_call(struct ms_err *err, int code, const char *what)
{
    int rc = lack_found(err, errno, what);
    return rc < 0 ? rc : ms_fail_errno(err, code, "%s", what);
}

static int fail_connect(struct ms_err *err, const char *to)
{
    char what[MS_ADDR_MAX + 64];
    snprintf(what, sizeof(what), "cannot connect to %s", to);
    return fail_call(err, MS_E_UNREACHABLE, what);
}

static int dial_unix(const char *name, struct ms_err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if (len > sizeof(sa.sun_path) - 1) {
        return ms_fail(err, MS_E_INVALID, "the name of the socket @%s is too long", name);
    }
    memcpy(sa.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fail_call(err, MS_E_IO, "cannot make a Unix socket");
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    if (connect(fd, (struct sockaddr *)&sa, size) < 0) { /* EAGAIN: the backlog is full */
        char to[sizeof(sa.sun_path) + 16];
        snprintf(to, sizeof(to), "the socket @%s", name);
        int rc = fail_connect(err, to);
        close(fd);
        return rc;
    }
    return fd;
}

/* Names are looked up by way of files and sockets, and what the library says of a lack of them is
 * that there is no such name. */
static int resolve(const char *address, struct sockaddr_storage *sa, socklen_t *len,
                   struct ms_err *err)
{
    struct ms_addr addr;
    int rc = ms_addr_parse(address, 0, &addr, err);
    rc = rc == 0 ? ms_addr_resolve(&addr, sa, len, err) : rc;
    if (rc < 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            int lacks = lack_found(err, errno, "cannot make a socket");
            return lacks < 0 ? lacks : rc;
        }
        close(fd);
    }
    return rc;
}

static int dial_tcp(const char *address, struct ms_err *err)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = 0;
    int on = 1;
    int rc = resolve(address, &sa, &len, err);
    if (rc < 0) {
        return rc;
    }
    int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fail_call(err, MS_E_IO, "cannot make a socket");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS) {
        rc = fail_connect(err, address);
        close(fd);
        return rc;
    }
    return fd;
}

int join_dial(const struct mesh_member *member, int is_unix, struct ms_err *err)
{
    return is_unix ? dial_unix(member->data_unix, err) : dial_tcp(member->data_address, err);
}

int join_uid(int fd, uint32_t *ret)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
        return -1;
    }
    *ret = cred.uid;
    return 0;
}

int join_uid_is(int fd, uint32_t uid)
{
    uint32_t theirs = 0;
    return join_uid(fd, &theirs) == 0 && theirs == uid;
}

int join_send_memory(int fd, const void *bytes, size_t size, int memory)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(cmsg), &memory, sizeof(int));
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)size ? 1 : -1;
}

/* At most one descriptor on a connection: more is nobody we know, and none of them is kept. */
static int take_descriptors(struct msghdr *msg, int *memory)
{
    int fds[DESCRIPTORS_MAX];
    size_t n = 0;
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t came = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came && n < DESCRIPTORS_MAX; i++) {
            memcpy(&fds[n++], CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
        }
    }
    if (n == 1 && *memory < 0 && (msg->msg_flags & MSG_CTRUNC) == 0) {
        *memory = fds[0];
        return 0;
    }
    ms_discard_fds(fds, n);
    if (n == 0 && *memory < 0 && (msg->msg_flags & MSG_CTRUNC) != 0) {
        *memory = JOIN_NO_DESCRIPTOR; /* there is room for it in msg */
    }
    return n == 0 && (msg->msg_flags & MSG_CTRUNC) == 0 ? 0 : -1;
}

ssize_t join_receive_memory(int fd, void *bytes, size_t size, int *memory)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0) {
        return lack_is(errno)                      ? LINK_SHORT
               : errno == EAGAIN || errno == EINTR ? LINK_AGAIN
                                                   : LINK_BROKEN;
    }
    if (take_descriptors(&msg, memory) < 0) {
        errno = *memory == JOIN_NO_DESCRIPTOR ? EMFILE : 0;
        return LINK_BROKEN;
    }
    return n == 0 ? LINK_EOF : n;
}
