/* host_copy_make.c - the thread that fills a copy, piece by piece, and hands it over meanwhile */
#include "libworker/data/host_copy_impl.h"
#include "libworker/data/unpack.h"
#include "proto/discard.h"
#include "proto/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE = 256 << 10,
    RETRY_MS = 100,
    GUESTS_MAX = 64, /* that wait for the rest; who is one more reads for himself */
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL
};

struct host_copy_maker {
    struct host_copy_file file;
    struct host_copy_head *head;
    int memory, socket, stop; /* memfd, listening, eventfd */
    int guests[GUESTS_MAX];   /* open while the copy is not whole: they notice when we end */
    int n_guests;
    pthread_t thread;
};

/* ---- hand over ---- */

/* Who only asked how much is there has left, as has who ended: their places are free. */
static void drop_gone(struct host_copy_maker *m)
{
    for (int i = m->n_guests - 1; i >= 0; i--) {
        struct pollfd look = {.fd = m->guests[i], .events = POLLIN};
        if (poll(&look, 1, 0) > 0) {
            close(m->guests[i]);
            m->guests[i] = m->guests[--m->n_guests];
        }
    }
}

static void serve_one(struct host_copy_maker *m, int fd)
{
    const int is_whole = atomic_load(&m->head->done) == m->file.bytes;
    if (m->n_guests == GUESTS_MAX) {
        drop_gone(m);
    }
    if (!copy_link_is_ours(fd, NULL)) {
        ms_discard_fds(&fd, 1);
    } else if (!is_whole && m->n_guests < GUESTS_MAX && copy_link_send(fd, m->memory) == 0) {
        m->guests[m->n_guests++] = fd;
    } else {
        if (is_whole) { /* whether it arrives is the guest's business */
            (void)copy_link_send(fd, m->memory);
        }
        close(fd);
    }
}

static void close_guests(struct host_copy_maker *m)
{
    while (m->n_guests > 0) {
        close(m->guests[--m->n_guests]);
    }
}

/* Serves who is there, or comes within timeout_ms (-1: ever). 0: the copy's owner closes it. */
static int serve(struct host_copy_maker *m, int timeout_ms)
{
    struct pollfd wait[2] = {{.fd = m->stop, .events = POLLIN},
                             {.fd = m->socket, .events = POLLIN}};
    const int n = poll(wait, 2, timeout_ms);
    if (n < 0) {
        return errno == EINTR;
    }
    if (wait[0].revents != 0) {
        return 0;
    }
    if (wait[1].revents != 0) {
        const int fd = accept4(m->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            serve_one(m, fd);
        } else if (timeout_ms != 0) { /* no descriptor is free: again, but not at once */
            (void)poll(wait, 1, RETRY_MS);
        }
    }
    return 1;
}

/* ---- fill ---- */

/* Exactly size bytes of the file, or -1. */
static int read_exactly(int fd, void *dst, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, (char *)dst + done, size - done, offset + (int64_t)done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

/* The bytes from `at` on; u is NULL for plain files. The last piece of a packed file is good only
 * where the file ends behind it: who unpacks alone takes no second packed file behind the first for
 * a part of it, either. */
static int read_piece(const struct host_copy_maker *m, struct unpacking *u, int64_t at,
                      int64_t size)
{
    uint8_t *dst = host_copy_bytes(m->head) + at;
    if (u == NULL) {
        return read_exactly(m->file.fd, dst, (size_t)size, m->file.skip + at);
    }
    if (unpack_next(u, m->file.fd, dst, (size_t)size) != size) {
        return -1;
    }
    return at + size < m->file.bytes || unpack_is_at_end(u, m->file.fd) ? 0 : -1;
}

/* Memory that cannot be had is an error here; in the mapping alone it would be a SIGBUS. */
static int64_t fill_piece(struct host_copy_maker *m, struct unpacking *u, int64_t at)
{
    const int64_t rest = m->file.bytes - at;
    const int64_t size = rest < PIECE ? rest : PIECE;
    if (fallocate(m->memory, 0, HOST_COPY_HEAD + at, size) < 0 || read_piece(m, u, at, size) < 0) {
        return -1;
    }
    atomic_store(&m->head->done, at + size);
    return at + size;
}

/* 0: it was stopped. */
static int fill(struct host_copy_maker *m, struct unpacking *u)
{
    int64_t at = u != NULL && unpack_skip(u, m->file.fd, m->file.skip) < 0 ? -1 : 0;
    while (at >= 0 && at < m->file.bytes) {
        at = fill_piece(m, u, at);
        if (!serve(m, 0)) {
            return 0;
        }
    }
    if (at < 0) {
        atomic_store(&m->head->failed, 1);
    }
    close_guests(m);
    return 1;
}

static int fill_packed(struct host_copy_maker *m)
{
    const struct host_copy_file *file = &m->file;
    struct unpacking u;
    if ((file->member.at > 0 ? unpack_begin_member(&u, &file->member) : unpack_begin(&u)) < 0) {
        atomic_store(&m->head->failed, 1);
        return 1;
    }
    int rc = fill(m, &u);
    unpack_end(&u);
    return rc;
}

static void *copy_maker_main(void *arg)
{
    struct host_copy_maker *m = arg;
    int goes_on = m->file.is_packed ? fill_packed(m) : fill(m, NULL);
    if (atomic_load(&m->head->failed)) { /* whoever asks tries for himself */
        copy_link_end(m->socket);
        m->socket = -1;
        return NULL;
    }
    while (goes_on) {
        goes_on = serve(m, -1);
    }
    return NULL;
}

/* ---- begin, end ---- */

static struct host_copy_head *make_memory(const struct host_copy_id *id, int *ret_memory)
{
    const size_t size = host_copy_mapped(id->bytes);
    const int fd = memfd_create("msched-data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return NULL;
    }
    struct host_copy_head *head = MAP_FAILED;
    if (ftruncate(fd, (off_t)size) == 0 && fallocate(fd, 0, 0, HOST_COPY_HEAD) == 0) {
        head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (head == MAP_FAILED || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
        if (head != MAP_FAILED) {
            munmap(head, size);
        }
        close(fd);
        return NULL;
    }
    memcpy(head->magic, HOST_COPY_MAGIC, sizeof(head->magic));
    head->id = *id;
    atomic_init(&head->done, 0);
    atomic_init(&head->failed, 0);
    *ret_memory = fd;
    return head;
}

static int start_thread(struct host_copy_maker *m)
{
    return ms_thread_start(&m->thread, copy_maker_main, m) == 0 ? 0 : -1;
}

static void copy_maker_free(struct host_copy_maker *m)
{
    close_guests(m);
    if (m->socket >= 0) {
        copy_link_end(m->socket);
    }
    if (m->memory >= 0) {
        close(m->memory);
    }
    if (m->stop >= 0) {
        close(m->stop);
    }
    free(m);
}

struct host_copy_maker *copy_maker_start(const struct host_copy_file *file,
                                         const struct host_copy_id *id, int socket,
                                         struct host_copy_head **ret)
{
    struct host_copy_maker *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        copy_link_end(socket);
        return NULL;
    }
    m->file = *file;
    m->memory = -1;
    m->socket = socket;
    m->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->head = m->stop >= 0 ? make_memory(id, &m->memory) : NULL;
    if (m->head == NULL || start_thread(m) < 0) {
        if (m->head != NULL) {
            munmap(m->head, host_copy_mapped(id->bytes));
        }
        copy_maker_free(m);
        return NULL;
    }
    *ret = m->head;
    return m;
}

void copy_maker_stop(struct host_copy_maker *maker)
{
    if (maker == NULL) {
        return;
    }
    (void)eventfd_write(maker->stop, 1);
    pthread_join(maker->thread, NULL);
    copy_maker_free(maker);
}
