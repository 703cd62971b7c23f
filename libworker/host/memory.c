/* memory.c - large buffers, and how much memory a job may take */
#include "libworker/host/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t bytes)
{
    size_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;
    return (bytes + unit - 1) / unit * unit;
}

int memory_alloc(size_t bytes, const char *what, void **ret, struct ms_err *err)
{
    size_t size = round_up(bytes > 0 ? bytes : 1);
    size_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    uint8_t *map = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        char text[32];
        return ms_fail_errno(err, MS_E_NOMEM, "cannot map %s for %s",
                             memory_format(size, text, sizeof(text)), what);
    }
    size_t head = slack != 0 ? (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE : 0;
    if (head > 0) {
        munmap(map, head);
    }
    if (slack > head) {
        munmap(map + head + size, slack - head);
    }
    if (slack != 0) {
        (void)madvise(map + head, size, MADV_HUGEPAGE); /* a hint */
    }
    *ret = map + head;
    return 0;
}

void memory_free(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, round_up(bytes > 0 ? bytes : 1));
    }
}

/* What a version of control groups calls the limit of memory, and what is used. `given_back` are
 * keys of memory.stat: what counts as used, and the kernel takes back before it kills. Those of the
 * folder and of all below, as the use that they are taken from. */
struct memory_files {
    const char *limit, *used, *given_back[3];
};

static const struct memory_files files_v1 = {
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    {"total_inactive_file ", "total_active_file ", NULL},
};

static const struct memory_files files_v2 = {
    "memory.max",
    "memory.current",
    {"inactive_file ", "active_file ", "slab_reclaimable "},
};

/* What is used in a folder and stays used: a data set that was read, or results that were written,
 * fill the page cache up to the limit, and keep nobody from anything. */
static uint64_t kept_of(const char *folder, const struct memory_files *files, uint64_t used)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(files->given_back) && files->given_back[i] != NULL; i++) {
        uint64_t bytes = 0;
        if (cgroup_read(folder, "memory.stat", files->given_back[i], &bytes) == 0) {
            used -= bytes < used ? bytes : used;
        }
    }
    return used;
}

/* The least that a limit on the way up leaves: any of them may be the one that kills. */
static void take_less(void *arg, const char *folder, enum cgroup_version version)
{
    const struct memory_files *files = version == CGROUP_V1 ? &files_v1 : &files_v2;
    uint64_t *best = (uint64_t *)arg;
    uint64_t limit = 0;
    uint64_t used = 0;
    if (cgroup_read(folder, files->limit, "", &limit) < 0 ||
        cgroup_read(folder, files->used, "", &used) < 0) {
        return;
    }
    const uint64_t kept = kept_of(folder, files, used);
    const uint64_t left = limit > kept ? limit - kept : 0;
    *best = left < *best ? left : *best;
}

uint64_t memory_left(const struct cgroup_files *files, uint64_t best)
{
    cgroup_walk(files, "memory", take_less, &best);
    return best;
}

uint64_t memory_available(void)
{
    uint64_t kib = 0;
    uint64_t best =
        cgroup_read("/proc", "meminfo", "MemAvailable:", &kib) == 0 ? kib * 1024 : MEMORY_UNKNOWN;
    return memory_left(&cgroup_files_of_host, best);
}

const char *memory_format(uint64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < MS_ARRAY_SIZE(units)) {
        value /= 1000;
        unit++;
    }
    snprintf(buf, size, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return buf;
}
