/* cgroup.c - the control groups that this process is in, and what limits its CPU time */
#include "libworker/host/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct cgroup_files cgroup_files_of_host = {"/proc/self/cgroup", "/sys/fs/cgroup"};

enum { FOLDER_MAX = 900 };

int cgroup_read(const char *folder, const char *file, const char *key, uint64_t *ret)
{
    char path[FOLDER_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return -1;
    }
    char line[256];
    int rc = -1;
    while (rc < 0 && fgets(line, sizeof(line), stream) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0) {
            continue;
        }
        const char *at = line + strlen(key);
        char *end = NULL;
        errno = 0;
        long long value = strtoll(at, &end, 10);
        if (errno == 0 && end != at && value >= 0) { /* "max", and -1: no limit */
            *ret = (uint64_t)value;
            rc = 0;
        }
    }
    fclose(stream);
    return rc;
}

/* Upwards from the group at, which is cut. */
static void climb(const char *mount, char *at, enum cgroup_version version, cgroup_visit_fn *visit,
                  void *arg)
{
    char folder[FOLDER_MAX];
    for (;;) {
        snprintf(folder, sizeof(folder), "%s%s", mount, at);
        visit(arg, folder, version);
        char *slash = strrchr(at, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

/* Is name one of the list "cpu,cpuacct"? */
static int lists(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (;; list++) {
        size_t length = strcspn(list, ",");
        if (length == n && memcmp(list, name, n) == 0) {
            return 1;
        }
        list += length;
        if (*list == '\0') {
            return 0;
        }
    }
}

/* A line is "4:cpu,cpuacct:/path" (v1) or "0::/path" (v2). */
static void take_line(const struct cgroup_files *files, char *line, const char *controller,
                      cgroup_visit_fn *visit, void *arg)
{
    char mount[FOLDER_MAX];
    line[strcspn(line, "\n")] = '\0';
    char *list = strchr(line, ':');
    char *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL) {
        return;
    }
    *path++ = '\0';
    list++;
    if (list[0] == '\0') {
        climb(files->mount, path, CGROUP_V2, visit, arg);
    } else if (lists(list, controller)) {
        snprintf(mount, sizeof(mount), "%s/%s", files->mount, controller);
        climb(mount, path, CGROUP_V1, visit, arg);
    }
}

void cgroup_walk(const struct cgroup_files *files, const char *controller, cgroup_visit_fn *visit,
                 void *arg)
{
    FILE *stream = fopen(files->membership, "re");
    char line[512];
    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        take_line(files, line, controller, visit, arg);
    }
    if (stream != NULL) {
        fclose(stream);
    }
}

/* ---- CPU time ---- */

/* "50000 100000" in cpu.max, or two files: microseconds in each period. */
static int read_quota(const char *folder, enum cgroup_version version, uint64_t *ret_quota,
                      uint64_t *ret_period)
{
    if (version == CGROUP_V1) {
        return cgroup_read(folder, "cpu.cfs_quota_us", "", ret_quota) < 0 ||
                       cgroup_read(folder, "cpu.cfs_period_us", "", ret_period) < 0
                   ? -1
                   : 0;
    }
    char key[24];
    if (cgroup_read(folder, "cpu.max", "", ret_quota) < 0) {
        return -1;
    }
    snprintf(key, sizeof(key), "%llu ", (unsigned long long)*ret_quota);
    return cgroup_read(folder, "cpu.max", key, ret_period);
}

static void take_tighter(void *arg, const char *folder, enum cgroup_version version)
{
    struct cgroup_cpu *best = (struct cgroup_cpu *)arg;
    uint64_t quota = 0;
    uint64_t period = 0;
    struct stat stat_of;
    if (read_quota(folder, version, &quota, &period) < 0 || period == 0 || quota > UINT32_MAX ||
        stat(folder, &stat_of) != 0) {
        return;
    }
    const uint64_t milli = quota * 1000 / period;
    if (milli < UINT32_MAX && (best->milli == 0 || milli < best->milli)) {
        best->milli = milli > 0 ? (uint32_t)milli : 1;
        best->pool = (uint64_t)stat_of.st_ino;
    }
}

struct cgroup_cpu cgroup_cpu_limit(const struct cgroup_files *files)
{
    struct cgroup_cpu best = {0, 0};
    cgroup_walk(files, "cpu", take_tighter, &best);
    return best;
}
