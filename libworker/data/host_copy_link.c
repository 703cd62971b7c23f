/* host_copy_link.c - the abstract Unix socket by which ranks of a host find a copy */
#include "libworker/data/host_copy_impl.h"
#include "proto/discard.h"
#include "proto/rng.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

/* The name only has to differ where files do: who gets memory compares the whole id in it. */
static socklen_t make_address(const struct host_copy_id *id, struct sockaddr_un *ret)
{
    const int64_t words[] = {id->device,      id->inode,     id->size,       id->modified_s,
                             id->modified_ns, id->changed_s, id->changed_ns, id->packed,
                             id->skip,        id->bytes};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash = ms_rng_mix(hash ^ (uint64_t)words[i]);
    }
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "msched-data-%lld-%016llx",
                          (long long)id->uid, (unsigned long long)hash);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int copy_link_listen(const struct host_copy_id *id)
{
    struct sockaddr_un address;
    const socklen_t size = make_address(id, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, size) < 0 ||
        listen(fd, BACKLOG) < 0) {
        int saved = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = saved;
        return -1;
    }
    return fd;
}

/* Nobody can connect any more, and who waits in the backlog is no longer there: the close that
 * frees the name waits for nobody. */
void copy_link_end(int socket)
{
    (void)shutdown(socket, SHUT_RDWR);
    for (int fd; (fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        ms_discard_fds(&fd, 1);
    }
    close(socket);
}

int copy_link_connect(const struct host_copy_id *id)
{
    struct sockaddr_un address;
    const socklen_t size = make_address(id, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size) < 0) {
        int saved = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = saved;
        return -1;
    }
    return fd;
}

int copy_link_is_ours(int fd, pid_t *ret_pid)
{
    struct ucred cred;
    socklen_t size = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0 || cred.uid != geteuid()) {
        return 0;
    }
    if (ret_pid != NULL) {
        *ret_pid = cred.pid;
    }
    return 1;
}

union control { /* room for one descriptor */
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int copy_link_send(int fd, int memory)
{
    union control control = {.bytes = {0}};
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(cmsg), &memory, sizeof(int));
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* There is room for one descriptor: what else comes, the kernel closes. */
int copy_link_receive(int fd, int timeout_ms)
{
    union control control;
    char byte = 0;
    int memory = -1;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = CMSG_LEN(sizeof(int))};
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const int n = poll(&wait, 1, timeout_ms);
    if (n == 0) {
        errno = ETIMEDOUT;
        return -1;
    }
    if (n < 0 || recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != 1) {
        return -1;
    }
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS &&
        cmsg->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&memory, CMSG_DATA(cmsg), sizeof(int));
    }
    return memory;
}
