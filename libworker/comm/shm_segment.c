/* shm_segment.c - the sealed memfd of one rank: made, checked, mapped */
#include "libworker/comm/shm.h"

#include "libworker/comm/lack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PAGE = 4096 };

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

static const char magic[8] = "MSSHM1";

static size_t exchange_offset(size_t exchange_bytes)
{
    size_t rings_end = SHM_SLOTS_AT + SHM_SLOTS * SHM_SLOT_BYTES + SHM_RING_PIECES * SHM_RING_PIECE;
    size_t align = exchange_bytes >= SHM_HUGE ? SHM_HUGE : PAGE;
    return (rings_end + align - 1) / align * align;
}

size_t segment_bytes(enum ms_dtype dtype, size_t exchange_count)
{
    size_t exchange_bytes = exchange_count * ms_dtype_bytes(dtype);
    size_t bytes = exchange_offset(exchange_bytes) + exchange_bytes;
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Maps so that offset exchange_at lies on 2 MiB where it is large, for huge pages. fd -1: private.
 */
static uint8_t *map_aligned(int fd, size_t size, size_t align)
{
    size_t reserved = size + align;
    uint8_t *at =
        mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    uint8_t *base = (uint8_t *)(((uintptr_t)at + align - 1) / align * align);
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (mmap(base, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int saved = errno;
        munmap(at, reserved);
        errno = saved;
        return NULL;
    }
    if (base > at) {
        munmap(at, (size_t)(base - at));
    }
    size_t used = (size_t)(base - at) + size;
    if (used < reserved) {
        munmap(base + size, reserved - used);
    }
    return base;
}

static int map(struct segment *segment, enum ms_dtype dtype, size_t count, const char *who,
               struct ms_err *err)
{
    segment->size = segment_bytes(dtype, count);
    segment->exchange_at = exchange_offset(count * ms_dtype_bytes(dtype));
    size_t align = segment->exchange_at % SHM_HUGE == 0 ? SHM_HUGE : PAGE;
    segment->base = map_aligned(segment->fd, segment->size, align);
    if (segment->base == NULL) {
        return ms_fail_errno(err, MS_E_NOMEM, "cannot map %zu bytes of exchange memory of %s",
                             segment->size, who);
    }
    if (align == SHM_HUGE) { /* where shmem_enabled is advise; elsewhere without effect */
        (void)madvise(segment->base + segment->exchange_at, segment->size - segment->exchange_at,
                      MADV_HUGEPAGE);
    }
    return 0;
}

int segment_create(struct segment *ret, const struct shm_head *head, enum ms_dtype dtype,
                   int shared, struct ms_err *err)
{
    struct segment segment = {.fd = -1};
    size_t count = (size_t)head->exchange_count;
    if (head->exchange_count > (SIZE_MAX >> 3) / ms_dtype_bytes(dtype)) {
        return ms_fail(err, MS_E_INVALID, "an exchange buffer of %llu elements is beyond memory",
                       (unsigned long long)head->exchange_count);
    }
    if (shared) {
        char name[96];
        snprintf(name, sizeof(name), "msched-%llu-%llu-%llu-%llu", (unsigned long long)head->job,
                 (unsigned long long)head->generation, (unsigned long long)head->group,
                 (unsigned long long)head->rank);
        segment.fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (segment.fd < 0 || ftruncate(segment.fd, (off_t)segment_bytes(dtype, count)) < 0 ||
            fcntl(segment.fd, F_ADD_SEALS, SEALS) < 0) {
            int rc = ms_fail(err, MS_E_NOMEM, "cannot make %zu bytes of shared memory: %s%s",
                             segment_bytes(dtype, count), strerror(errno), lack_help(errno));
            segment_fini(&segment);
            return rc;
        }
    }
    int rc = map(&segment, dtype, count, "this rank", err);
    if (rc < 0) {
        segment_fini(&segment);
        return rc;
    }
    struct shm_head *own = (struct shm_head *)(void *)segment.base;
    *own = *head;
    memcpy(own->magic, magic, sizeof(magic));
    own->segment_bytes = segment.size;
    segment_counters(&segment)->generation = head->generation;
    *ret = segment;
    return 0;
}

int segment_map(struct segment *ret, int fd, const struct shm_head *want, enum ms_dtype dtype,
                const char *who, struct ms_err *err)
{
    struct segment segment = {.fd = fd};
    size_t count = (size_t)want->exchange_count;
    struct stat st;
    int rc = 0;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        /* unsealed memory can shrink under us: SIGBUS */
        rc = ms_fail(err, MS_E_REFUSED, "%s passed a file that is no sealed memory", who);
    } else if (fstat(fd, &st) < 0 || (size_t)st.st_size != segment_bytes(dtype, count)) {
        rc = ms_fail(err, MS_E_REFUSED, "%s passed %lld bytes of memory where %zu belong", who,
                     (long long)st.st_size, segment_bytes(dtype, count));
    } else {
        rc = map(&segment, dtype, count, who, err);
    }
    if (rc == 0) {
        const struct shm_head *head = (const struct shm_head *)(void *)segment.base;
        if (memcmp(head->magic, magic, sizeof(magic)) != 0 || head->job != want->job ||
            head->generation != want->generation || head->rank != want->rank ||
            head->world != want->world || head->exchange_count != want->exchange_count ||
            head->group != want->group ||
            segment_counters(&segment)->generation != want->generation) {
            rc = ms_fail(err, MS_E_REFUSED,
                         "the memory that %s passed is not that of its rank, "
                         "group and generation",
                         who);
        }
    }
    if (segment.fd >= 0) { /* the mapping keeps the memory */
        close(segment.fd);
        segment.fd = -1;
    }
    if (rc < 0) {
        segment_fini(&segment);
        return rc;
    }
    *ret = segment;
    return 0;
}

/* shmem_enabled is never unless somebody set it, and then a fault makes a page of 4 KiB whatever
 * was advised: 94 MB cost each rank that maps them 24,000 faults, and as many pages to give back.
 * Who asks for large pages by MADV_COLLAPSE has them all the same (but where it is deny). A piece
 * of 2 MiB is made large if there is a page in it already. */
void segment_populate(const struct segment *segment)
{
    if (segment->exchange_at % SHM_HUGE != 0) {
        return;
    }
    uint8_t *begin = segment_exchange(segment);
    const size_t bytes = (segment->size - segment->exchange_at) / SHM_HUGE * SHM_HUGE;
    for (size_t at = 0; at < bytes; at += SHM_HUGE) {
        if (madvise(begin + at, PAGE, MADV_POPULATE_WRITE) < 0) {
            return;
        }
    }
    (void)madvise(begin, bytes, MADV_COLLAPSE);
}

void segment_fini(struct segment *segment)
{
    if (segment->base != NULL) {
        munmap(segment->base, segment->size);
    }
    if (segment->fd >= 0) {
        close(segment->fd);
    }
    *segment = (struct segment){.fd = -1};
}
