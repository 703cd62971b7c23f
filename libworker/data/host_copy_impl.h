/* host_copy_impl.h - between the files of host_copy: what lies in the memory, who holds what */
#ifndef DATA_HOST_COPY_IMPL_H
#define DATA_HOST_COPY_IMPL_H

#include "libworker/data/host_copy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

/* Which file, and which of its bytes: equal where two processes mean the same. */
struct host_copy_id {
    int64_t uid, device, inode, size;
    int64_t modified_s, modified_ns, changed_s, changed_ns;
    int64_t packed; /* 0: plain, 1: gzip, else 1 + where in the file the member begins */
    int64_t skip, bytes;
};

#define HOST_COPY_MAGIC "MSDATA1" /* another layout, another number */

/* The memory begins with it (docs/host-copy.md). Written by the maker only. */
struct host_copy_head {
    char magic[8];
    struct host_copy_id id;
    _Atomic int64_t done; /* bytes that are there: they never change again */
    _Atomic int failed;   /* no more will come */
};

enum { HOST_COPY_HEAD = 4096 }; /* bytes before the copy; a page */
_Static_assert(offsetof(struct host_copy_head, done) == 96 &&
                   offsetof(struct host_copy_head, failed) == 104,
               "the layout is documented");
_Static_assert(sizeof(struct host_copy_head) <= HOST_COPY_HEAD, "the head has a page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the counter works between processes");

struct host_copy {
    struct host_copy_file file;
    struct host_copy_id id;
    struct host_copy_head *head;   /* the mapping */
    int socket;                    /* to the maker; -1: that is this process */
    struct host_copy_maker *maker; /* NULL: somebody else is */
};

static inline size_t host_copy_mapped(int64_t bytes)
{
    return HOST_COPY_HEAD + (size_t)bytes;
}

static inline uint8_t *host_copy_bytes(struct host_copy_head *head)
{
    return (uint8_t *)head + HOST_COPY_HEAD;
}

/* ---- host_copy_link.c: the socket, and what goes over it. -1: no, errno says why ---- */

int copy_link_listen(const struct host_copy_id *id);  /* EADDRINUSE: there is a maker */
int copy_link_connect(const struct host_copy_id *id); /* ECONNREFUSED: there is none */
void copy_link_end(int socket);                       /* that listened: its name is free then */
/* Is the other end the same user's? Its process, or who listened for it: 0 where that has no number
 * here. NULL allowed. */
int copy_link_is_ours(int fd, pid_t *ret_pid);
int copy_link_send(int fd, int memory);
/* Returns the descriptor, owned; -1 with ETIMEDOUT: the other end says nothing. */
int copy_link_receive(int fd, int timeout_ms);

/* ---- host_copy_make.c: the thread that fills the memory and hands it over ---- */

/* Takes the socket. NULL: no thread, no memory; the socket is closed. */
struct host_copy_maker *copy_maker_start(const struct host_copy_file *file,
                                         const struct host_copy_id *id, int socket,
                                         struct host_copy_head **ret);
void copy_maker_stop(struct host_copy_maker *maker); /* joins; the mapping stays. NULL allowed */

#endif
