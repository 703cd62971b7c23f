/* decoded_keep.c - a thread that serves the memory of decoded records, or notices that its server
 * ended, and serves it on */
#include "libworker/data/decoded_impl.h"

#include "proto/discard.h"
#include "proto/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    GUESTS_MAX = 64, /* who is one more decodes for himself */
    RETRY_MS = 100,
    TRIES = 1000, /* of a starved host: between a bind and its listen there is nobody */
    TRY_MS = 1
};

enum role {
    SERVER, /* socket listens */
    GUEST,  /* socket is a connection to who serves: it closes when that ends */
    ALONE   /* somebody serves other memory of this set: ours is for who has it */
};

struct decoded_keeper {
    struct host_copy_id id;
    int memory; /* borrowed */
    enum role role;
    int socket, stop;       /* eventfd */
    int guests[GUESTS_MAX]; /* open until we end: they notice */
    int n_guests;
    pthread_t thread;
};

/* ---- a server ---- */

static void drop_gone(struct decoded_keeper *k)
{
    for (int i = k->n_guests - 1; i >= 0; i--) {
        struct pollfd look = {.fd = k->guests[i], .events = POLLIN};
        if (poll(&look, 1, 0) > 0) {
            close(k->guests[i]);
            k->guests[i] = k->guests[--k->n_guests];
        }
    }
}

static void serve_one(struct decoded_keeper *k, int fd)
{
    drop_gone(k);
    if (!copy_link_is_ours(fd, NULL)) {
        ms_discard_fds(&fd, 1);
    } else if (k->n_guests < GUESTS_MAX && copy_link_send(fd, k->memory) == 0) {
        k->guests[k->n_guests++] = fd;
    } else {
        close(fd);
    }
}

static void serve(struct decoded_keeper *k, struct pollfd *stop)
{
    const int fd = accept4(k->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        serve_one(k, fd);
    } else { /* no descriptor is free: again, but not at once */
        (void)poll(stop, 1, RETRY_MS);
    }
}

/* ---- a guest ---- */

static int is_same_memory(int a, int b)
{
    struct stat x;
    struct stat y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Another guest was faster, or somebody who came anew. False: it was the one that ends, whose name
 * goes last. */
static int follow(struct decoded_keeper *k, int fd)
{
    if (!copy_link_is_ours(fd, NULL)) {
        ms_discard_fds(&fd, 1);
        return 1;
    }
    errno = 0;
    const int memory = copy_link_receive(fd, HOST_COPY_ANSWER_MS);
    const int has_answered = memory >= 0 || errno == ETIMEDOUT;
    if (memory >= 0 && is_same_memory(memory, k->memory)) {
        k->role = GUEST;
        k->socket = fd;
    } else {
        close(fd);
    }
    if (memory >= 0) {
        close(memory);
    }
    return has_answered;
}

/* 1: it is decided what we are. */
static int try_over(struct decoded_keeper *k)
{
    int fd = copy_link_listen(&k->id);
    if (fd >= 0) {
        k->role = SERVER;
        k->socket = fd;
        return 1;
    }
    if (errno != EADDRINUSE) {
        return 1;
    }
    fd = copy_link_connect(&k->id);
    return fd >= 0 && follow(k, fd);
}

/* Its server has ended. */
static void take_over(struct decoded_keeper *k)
{
    close(k->socket);
    k->socket = -1;
    k->role = ALONE;
    for (int i = 0; i < TRIES && !try_over(k); i++) {
        struct pollfd stop = {.fd = k->stop, .events = POLLIN};
        if (poll(&stop, 1, TRY_MS) > 0) {
            return;
        }
    }
}

/* ---- its life ---- */

static void *keeper_main(void *arg)
{
    struct decoded_keeper *k = arg;
    for (;;) {
        struct pollfd wait[2] = {{.fd = k->stop, .events = POLLIN},
                                 {.fd = k->socket, .events = POLLIN}}; /* -1: is passed over */
        const int n = poll(wait, 2, -1);
        if (wait[0].revents != 0 || (n < 0 && errno != EINTR)) {
            return NULL;
        }
        if (n > 0 && wait[1].revents != 0 && k->role == SERVER) {
            serve(k, wait);
        } else if (n > 0 && wait[1].revents != 0) {
            take_over(k);
        }
    }
}

static void close_socket(int socket, enum role role)
{
    if (socket >= 0 && role == SERVER) {
        copy_link_end(socket);
    } else if (socket >= 0) {
        close(socket);
    }
}

static void keeper_free(struct decoded_keeper *k)
{
    close_socket(k->socket, k->role); /* before the guests hear of it, the name is free */
    while (k->n_guests > 0) {
        close(k->guests[--k->n_guests]);
    }
    if (k->stop >= 0) {
        close(k->stop);
    }
    free(k);
}

struct decoded_keeper *decoded_keeper_start(const struct host_copy_id *id, int memory, int socket,
                                            int is_server)
{
    const enum role role = is_server ? SERVER : GUEST;
    struct decoded_keeper *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        close_socket(socket, role);
        return NULL;
    }
    k->id = *id;
    k->memory = memory;
    k->role = role;
    k->socket = socket;
    k->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (k->stop < 0 || ms_thread_start(&k->thread, keeper_main, k) != 0) {
        keeper_free(k);
        return NULL;
    }
    return k;
}

void decoded_keeper_stop(struct decoded_keeper *keeper)
{
    if (keeper != NULL) {
        (void)eventfd_write(keeper->stop, 1);
        pthread_join(keeper->thread, NULL);
        keeper_free(keeper);
    }
}
