/* memory.c - large buffers, and how much memory a job may take */
#include "libworker/host/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

static int read_number(const char *path, const char *key, uint64_t *ret)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    char line[256];
    int found = -1;
    while (found < 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *at = line;
        if (key[0] != '\0') {
            if (strncmp(line, key, strlen(key)) != 0) {
                continue;
            }
            at += strlen(key);
        }
        char *end = NULL;
        errno = 0;
        unsigned long long value = strtoull(at, &end, 10);
        if (errno == 0 && end != at) { /* "max" is no number: no limit */
            *ret = value;
            found = 0;
        }
    }
    fclose(file);
    return found;
}

/* Where a hierarchy of cgroups keeps the limit of memory: the unified one, and the controller of
 * its own before that. `lists` is what stands between the colons of its line in /proc/self/cgroup.
 * `given_back` are keys of memory.stat: what counts as used, and the kernel takes back before it
 * kills. Those of the folder and of all below, as the use that they are taken from. */
static const struct hierarchy {
    const char *lists, *mount, *limit, *used, *given_back[3];
} hierarchies[] = {
    {"::",
     "",
     "memory.max",
     "memory.current",
     {"inactive_file ", "active_file ", "slab_reclaimable "}},
    {":memory:",
     "/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file ", NULL}},
};

static int read_of(const char *folder, const char *name, const char *key, uint64_t *ret)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return read_number(path, key, ret);
}

/* What is used in a folder and stays used: a data set that was read, or results that were written,
 * fill the page cache up to the limit, and keep nobody from anything. */
static uint64_t kept_of(const char *folder, const struct hierarchy *h, uint64_t used)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(h->given_back) && h->given_back[i] != NULL; i++) {
        uint64_t bytes = 0;
        if (read_of(folder, "memory.stat", h->given_back[i], &bytes) == 0) {
            used -= bytes < used ? bytes : used;
        }
    }
    return used;
}

/* What is left below the limit of one folder; best where that is less, or where there is none. */
static uint64_t left_in(const char *folder, const struct hierarchy *h, uint64_t best)
{
    uint64_t limit = 0;
    uint64_t used = 0;
    if (read_of(folder, h->limit, "", &limit) < 0 || read_of(folder, h->used, "", &used) < 0) {
        return best;
    }
    uint64_t kept = kept_of(folder, h, used);
    uint64_t left = limit > kept ? limit - kept : 0;
    return left < best ? left : best;
}

/* A limit holds for all folders below it, so that any on the way up may be the one that kills. */
static uint64_t left_on_the_way(const char *mount, const struct hierarchy *h, char *at,
                                uint64_t best)
{
    char folder[900];
    for (;;) {
        snprintf(folder, sizeof(folder), "%s%s%s", mount, h->mount, at);
        best = left_in(folder, h, best);
        char *slash = strrchr(at, '/');
        if (slash == NULL) {
            return best;
        }
        *slash = '\0';
    }
}

uint64_t memory_left(const char *cgroup, const char *mount, uint64_t best)
{
    FILE *file = fopen(cgroup, "re");
    char line[512];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < MS_ARRAY_SIZE(hierarchies); i++) { /* "4:memory:/path", "0::/path" */
            size_t number = strspn(line, "0123456789");
            size_t n = strlen(hierarchies[i].lists);
            if (strncmp(line + number, hierarchies[i].lists, n) == 0) {
                best = left_on_the_way(mount, &hierarchies[i], line + number + n, best);
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return best;
}

uint64_t memory_available(void)
{
    uint64_t kib = 0;
    uint64_t best =
        read_number("/proc/meminfo", "MemAvailable:", &kib) == 0 ? kib * 1024 : MEMORY_UNKNOWN;
    return memory_left("/proc/self/cgroup", "/sys/fs/cgroup", best);
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
