/* host_copy.c - joins a copy of this host or begins it, and reads from it */
#include "libworker/data/host_copy_impl.h"
#include "proto/clock.h"
#include "proto/discard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRIES = 20, /* between a maker's bind and its listen others find neither */
    TRY_MS = 1,
    LOOK_MS = 1
};

static int identify(const struct host_copy_file *file, struct host_copy_id *ret)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0) {
        return -1;
    }
    *ret = (struct host_copy_id){.uid = (int64_t)geteuid(),
                                 .device = (int64_t)st.st_dev,
                                 .inode = (int64_t)st.st_ino,
                                 .size = (int64_t)st.st_size,
                                 .modified_s = (int64_t)st.st_mtim.tv_sec,
                                 .modified_ns = (int64_t)st.st_mtim.tv_nsec,
                                 .changed_s = (int64_t)st.st_ctim.tv_sec,
                                 .changed_ns = (int64_t)st.st_ctim.tv_nsec,
                                 .packed = !file->is_packed ? 0 : 1 + file->member.at,
                                 .skip = file->skip,
                                 .bytes = file->bytes};
    return 0;
}

/* Takes the descriptor. NULL: it is not the memory of a copy of this file. */
static struct host_copy_head *map_memory(const struct host_copy_id *id, int memory)
{
    enum { NEEDED = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE };
    const size_t size = host_copy_mapped(id->bytes);
    const int seals = fcntl(memory, F_GET_SEALS);
    struct host_copy_head *head = MAP_FAILED;
    struct stat st;
    if (seals >= 0 && (seals & NEEDED) == NEEDED && fstat(memory, &st) == 0 &&
        (size_t)st.st_size == size) {
        head = mmap(NULL, size, PROT_READ, MAP_SHARED, memory, 0);
    }
    close(memory);
    if (head == MAP_FAILED) {
        return NULL;
    }
    if (memcmp(head->magic, HOST_COPY_MAGIC, sizeof(head->magic)) != 0 ||
        memcmp(&head->id, id, sizeof(*id)) != 0) {
        munmap(head, size);
        return NULL;
    }
    return head;
}

/* ---- who did not answer ---- */

enum { SILENT_MAX = 8 };

/* A maker is known by its process, which is silent for all its files. Where its number is not ours
 * to see (another pid namespace: 0), each file has a maker of its own. */
struct silent_maker {
    pid_t pid;
    struct host_copy_id id;
    int64_t until_ms; /* 0: none */
};

/* Makers that let this process wait in vain: whoever opens a file asks more than once. */
static struct {
    pthread_mutex_t lock;
    struct silent_maker makers[SILENT_MAX];
} silent = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int is_maker(const struct silent_maker *maker, pid_t pid, const struct host_copy_id *id)
{
    return maker->pid == pid && (pid != 0 || memcmp(&maker->id, id, sizeof(*id)) == 0);
}

/* In its own place, or in that of who is forgotten first. */
static void note_silence(pid_t pid, const struct host_copy_id *id)
{
    pthread_mutex_lock(&silent.lock);
    struct silent_maker *place = &silent.makers[0];
    for (size_t i = 0; i < SILENT_MAX; i++) {
        struct silent_maker *maker = &silent.makers[i];
        if (maker->until_ms != 0 && is_maker(maker, pid, id)) {
            place = maker;
            break;
        }
        place = maker->until_ms < place->until_ms ? maker : place;
    }
    *place = (struct silent_maker){
        .pid = pid, .id = *id, .until_ms = ms_mono_ms() + HOST_COPY_SILENT_MS};
    pthread_mutex_unlock(&silent.lock);
}

static int was_silent(pid_t pid, const struct host_copy_id *id)
{
    int was = 0;
    const int64_t now_ms = ms_mono_ms();
    pthread_mutex_lock(&silent.lock);
    for (size_t i = 0; i < SILENT_MAX && !was; i++) {
        const struct silent_maker *maker = &silent.makers[i];
        was = now_ms < maker->until_ms && is_maker(maker, pid, id);
    }
    pthread_mutex_unlock(&silent.lock);
    return was;
}

/* A connection to who has the name: the maker, or a stranger. */
static int join(struct host_copy *copy, int fd)
{
    pid_t pid = 0;
    if (!copy_link_is_ours(fd, &pid) || was_silent(pid, &copy->id)) {
        ms_discard_fds(&fd, 1);
        return -1;
    }
    const int memory = copy_link_receive(fd, HOST_COPY_ANSWER_MS);
    if (memory < 0 && errno == ETIMEDOUT) {
        note_silence(pid, &copy->id);
    }
    copy->head = memory >= 0 ? map_memory(&copy->id, memory) : NULL;
    if (copy->head == NULL) {
        close(fd);
        return -1;
    }
    copy->socket = fd;
    return 0;
}

static int join_or_begin(struct host_copy *copy)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = copy_link_connect(&copy->id);
        if (fd >= 0) {
            return join(copy, fd);
        }
        if (errno != ECONNREFUSED) {
            return -1;
        }
        fd = copy_link_listen(&copy->id);
        if (fd >= 0) {
            copy->maker = copy_maker_start(&copy->file, &copy->id, fd, &copy->head);
            return copy->maker != NULL ? 0 : -1;
        }
        if (errno != EADDRINUSE) {
            return -1;
        }
        (void)poll(NULL, 0, TRY_MS);
    }
    return -1;
}

struct host_copy *host_copy_open(const struct host_copy_file *file)
{
    struct host_copy *copy = calloc(1, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    copy->file = *file;
    copy->socket = -1;
    if (identify(file, &copy->id) < 0 || join_or_begin(copy) < 0) {
        free(copy);
        return NULL;
    }
    return copy;
}

static void leave(const struct host_copy *copy)
{
    munmap(copy->head, host_copy_mapped(copy->file.bytes));
    if (copy->socket >= 0) {
        close(copy->socket);
    }
}

int64_t host_copy_done(const struct host_copy_file *file)
{
    struct host_copy copy = {.file = *file, .socket = -1};
    const int fd = identify(file, &copy.id) == 0 ? copy_link_connect(&copy.id) : -1;
    if (fd < 0 || join(&copy, fd) < 0) {
        return 0;
    }
    const int64_t done = atomic_load(&copy.head->done);
    leave(&copy);
    return done;
}

void host_copy_close(struct host_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    copy_maker_stop(copy->maker);
    leave(copy);
    free(copy);
}

/* Waits a moment. 0: the maker has ended. */
static int is_made(const struct host_copy *copy)
{
    struct pollfd wait = {.fd = copy->socket, .events = POLLIN}; /* -1: only waits */
    return poll(&wait, 1, LOOK_MS) <= 0;
}

/* Until `need` bytes are there; 0: they will not be. */
static int wait_for(const struct host_copy *copy, int64_t need)
{
    int64_t done = atomic_load(&copy->head->done);
    int64_t moved_ms = ms_mono_ms();
    while (done < need) {
        const int goes_on = is_made(copy) && !atomic_load(&copy->head->failed);
        const int64_t now = atomic_load(&copy->head->done);
        if (now == done && (!goes_on || ms_mono_ms() - moved_ms > HOST_COPY_STALL_MS)) {
            return 0;
        }
        moved_ms = now != done ? ms_mono_ms() : moved_ms;
        done = now;
    }
    return 1;
}

const uint8_t *host_copy_get(struct host_copy *copy, int64_t at, int64_t size, int waits)
{
    if (atomic_load(&copy->head->done) < at + size && !(waits && wait_for(copy, at + size))) {
        return NULL;
    }
    return host_copy_bytes(copy->head) + at;
}
