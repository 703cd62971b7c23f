/* decoded.c - records that were decoded, in memory, once a host for all ranks of one user */
#include "libworker/data/decoded_impl.h"

#include "proto/discard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 20, /* between a server's bind and its listen others find neither */
    TRY_MS = 1,
    HEAD = 4096, /* bytes before the marks; a page */
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW,
    IS_IMAGES = -1 /* where a copy of a file says how it is packed */
};
_Static_assert(sizeof(struct decoded_head) <= HEAD, "the head has a page");

/* ---- the memory ---- */

static int64_t marks_bytes(int64_t rows)
{
    const int64_t bytes = rows * (int64_t)sizeof(struct decoded_mark);
    return (bytes + HEAD - 1) / HEAD * HEAD;
}

static int64_t memory_bytes(int64_t rows, int64_t record)
{
    return HEAD + marks_bytes(rows) + rows * record;
}

static struct host_copy_id identify(const struct decoded_set *set)
{
    return (struct host_copy_id){.uid = (int64_t)geteuid(),
                                 .device = set->device,
                                 .inode = set->inode,
                                 .size = set->rows,
                                 .modified_s = set->channels,
                                 .modified_ns = set->height,
                                 .changed_s = set->width,
                                 .changed_ns = (int64_t)set->names,
                                 .packed = IS_IMAGES};
}

static int64_t rows_that_fit(const struct decoded_set *set, int64_t record)
{
    const int64_t each = record + (int64_t)sizeof(struct decoded_mark);
    const int64_t rows = (set->bytes_max - 2 * HEAD) / each;
    return rows < set->rows ? rows : set->rows;
}

static int map(struct decoded *d, size_t size)
{
    d->head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, d->memory, 0);
    if (d->head == MAP_FAILED) {
        d->head = NULL;
        return -1;
    }
    d->mapped = size;
    return 0;
}

/* rows was judged against the size: what stands in the head may change. */
static void find_parts(struct decoded *d, int64_t rows)
{
    uint8_t *bytes = (uint8_t *)d->head;
    d->rows = rows;
    d->marks = (struct decoded_mark *)(void *)(bytes + HEAD);
    d->records = bytes + HEAD + marks_bytes(rows);
}

/* Head and marks are there from the beginning; memory for a record comes with it. */
static int make_memory(struct decoded *d, int64_t rows)
{
    const int64_t size = memory_bytes(rows, d->record);
    d->memory = memfd_create("msched-images", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (d->memory < 0 || ftruncate(d->memory, (off_t)size) < 0 ||
        fallocate(d->memory, 0, 0, (off_t)(HEAD + marks_bytes(rows))) < 0 ||
        fcntl(d->memory, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0 || map(d, (size_t)size) < 0) {
        return -1;
    }
    memcpy(d->head->magic, DECODED_MAGIC, sizeof(d->head->magic));
    d->head->id = d->id;
    d->head->rows = rows;
    find_parts(d, rows);
    return 0;
}

/* What came from another process, and is d's from now on. -1: it is none of this set. */
static int take_memory(struct decoded *d, const struct decoded_set *set, int memory)
{
    struct stat st;
    d->memory = memory;
    const int seals = fcntl(memory, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || (seals & F_SEAL_WRITE) != 0 ||
        fstat(memory, &st) != 0 || st.st_size < HEAD || map(d, (size_t)st.st_size) < 0) {
        return -1;
    }
    const int64_t rows = d->head->rows;
    if (memcmp(d->head->magic, DECODED_MAGIC, sizeof(d->head->magic)) != 0 ||
        memcmp(&d->head->id, &d->id, sizeof(d->id)) != 0 || rows < 1 || rows > set->rows ||
        st.st_size != memory_bytes(rows, d->record)) {
        return -1;
    }
    find_parts(d, rows);
    return 0;
}

/* ---- joining ---- */

/* 1: who served ended meanwhile. */
static int join(struct decoded *d, const struct decoded_set *set, int fd)
{
    if (!copy_link_is_ours(fd, NULL)) {
        ms_discard_fds(&fd, 1);
        return -1;
    }
    errno = 0;
    const int memory = copy_link_receive(fd, HOST_COPY_ANSWER_MS);
    if (memory < 0 || take_memory(d, set, memory) < 0) {
        const int has_ended = memory < 0 && errno != ETIMEDOUT;
        close(fd);
        return has_ended ? 1 : -1;
    }
    d->keeper = decoded_keeper_start(&d->id, d->memory, fd, 0);
    return d->keeper != NULL ? 0 : -1;
}

static int begin(struct decoded *d, const struct decoded_set *set, int fd)
{
    const int64_t rows = rows_that_fit(set, d->record);
    if (rows < 1 || make_memory(d, rows) < 0) {
        copy_link_end(fd);
        return -1;
    }
    d->keeper = decoded_keeper_start(&d->id, d->memory, fd, 1);
    return d->keeper != NULL ? 0 : -1;
}

static int join_or_begin(struct decoded *d, const struct decoded_set *set)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = copy_link_connect(&d->id);
        const int rc = fd >= 0 ? join(d, set, fd) : errno == ECONNREFUSED ? 1 : -1;
        if (rc <= 0) {
            return rc;
        }
        fd = copy_link_listen(&d->id);
        if (fd >= 0) {
            return begin(d, set, fd);
        }
        if (errno != EADDRINUSE) {
            return -1;
        }
        (void)poll(NULL, 0, TRY_MS);
    }
    return -1;
}

struct decoded *decoded_open(const struct decoded_set *set)
{
    struct decoded *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return NULL;
    }
    d->memory = -1;
    d->record = set->channels * set->height * set->width;
    d->id = identify(set);
    if (join_or_begin(d, set) < 0) {
        decoded_close(d);
        return NULL;
    }
    return d;
}

void decoded_close(struct decoded *decoded)
{
    if (decoded == NULL) {
        return;
    }
    decoded_keeper_stop(decoded->keeper);
    if (decoded->head != NULL) {
        munmap(decoded->head, decoded->mapped);
    }
    if (decoded->memory >= 0) {
        close(decoded->memory);
    }
    free(decoded);
}

/* ---- records ---- */

static int is_of(const struct decoded_mark *mark, const struct stat *file)
{
    return mark->device == (int64_t)file->st_dev && mark->inode == (int64_t)file->st_ino &&
           mark->size == (int64_t)file->st_size &&
           mark->modified_s == (int64_t)file->st_mtim.tv_sec &&
           mark->modified_ns == (int64_t)file->st_mtim.tv_nsec &&
           mark->changed_s == (int64_t)file->st_ctim.tv_sec &&
           mark->changed_ns == (int64_t)file->st_ctim.tv_nsec;
}

const uint8_t *decoded_find(const struct decoded *decoded, int64_t row, const struct stat *file)
{
    if (row >= decoded->rows) {
        return NULL;
    }
    const struct decoded_mark *mark = &decoded->marks[row];
    return atomic_load_explicit(&mark->state, memory_order_acquire) == DECODED_THERE &&
                   is_of(mark, file)
               ? decoded->records + row * decoded->record
               : NULL;
}

static void write_record(struct decoded *d, int64_t row, const struct stat *file,
                         const uint8_t *record)
{
    struct decoded_mark *mark = &d->marks[row];
    uint8_t *to = d->records + row * d->record;
    /* in the mapping alone memory that cannot be had would be a SIGBUS */
    if (fallocate(d->memory, 0, (off_t)(to - (uint8_t *)d->head), (off_t)d->record) < 0) {
        atomic_store(&mark->state, DECODED_EMPTY);
        atomic_store(&d->is_full, errno != EINTR);
        return;
    }
    memcpy(to, record, (size_t)d->record);
    mark->device = (int64_t)file->st_dev;
    mark->inode = (int64_t)file->st_ino;
    mark->size = (int64_t)file->st_size;
    mark->modified_s = (int64_t)file->st_mtim.tv_sec;
    mark->modified_ns = (int64_t)file->st_mtim.tv_nsec;
    mark->changed_s = (int64_t)file->st_ctim.tv_sec;
    mark->changed_ns = (int64_t)file->st_ctim.tv_nsec;
    atomic_store_explicit(&mark->state, DECODED_THERE, memory_order_release);
    atomic_fetch_add(&d->head->count, 1);
}

/* A file that changes twice within a tick of its file system's clock has the same times. */
static int is_settled(const struct stat *file)
{
    enum { TICKS_NS = 20000000 };
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return 0;
    }
    const int64_t seconds = (int64_t)(now.tv_sec - file->st_ctim.tv_sec);
    const int64_t ns = (int64_t)(now.tv_nsec - file->st_ctim.tv_nsec);
    return seconds > 1 || (seconds >= -1 && seconds * 1000000000 + ns > TICKS_NS);
}

void decoded_keep(struct decoded *decoded, int64_t row, const struct stat *file,
                  const uint8_t *record)
{
    uint32_t was = DECODED_EMPTY;
    if (row < decoded->rows && !atomic_load(&decoded->is_full) && is_settled(file) &&
        atomic_compare_exchange_strong(&decoded->marks[row].state, &was, DECODED_BUSY)) {
        write_record(decoded, row, file, record);
    }
}

int64_t decoded_count(const struct decoded *decoded)
{
    return atomic_load(&decoded->head->count);
}
