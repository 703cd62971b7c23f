/* cgroup.h - the control groups that this process is in, and what limits its CPU time
 *
 * Either hierarchy: the unified one (v2), and that of a controller of its own (v1). A limit holds
 * for all groups below the one that has it, so every question goes up from the process's own group
 * to the root of the mount, which in a container is the container's. */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdint.h>

struct cgroup_files {       /* where the kernel tells of groups */
    const char *membership; /* "/proc/self/cgroup" */
    const char *mount;      /* "/sys/fs/cgroup" */
};

extern const struct cgroup_files cgroup_files_of_host;

enum cgroup_version { CGROUP_V1 = 1, CGROUP_V2 = 2 };

/* folder: of one group, borrowed for the call. */
typedef void cgroup_visit_fn(void *arg, const char *folder, enum cgroup_version version);

/* Visits the groups that hold for controller ("memory", "cpu"), from the process's own upwards. A
 * folder that is visited need not be there: a container sees the names of its host. Any thread. */
void cgroup_walk(const struct cgroup_files *files, const char *controller, cgroup_visit_fn *visit,
                 void *arg);

/* The number in a file of a folder: the first one, or that behind key (its blank included) at a
 * line's begin. -1 where there is none: no such file, or "max", which is no limit. */
int cgroup_read(const char *folder, const char *file, const char *key, uint64_t *ret);

struct cgroup_cpu {
    uint32_t milli; /* thousandths of a CPU; 0: no limit */
    uint64_t pool;  /* which group has the limit: the same for all processes that share it */
};

/* The tightest limit of CPU time on the way up: cpu.max, or cpu.cfs_quota_us. One above it that is
 * wider for this process may be tighter for several of its group: share.h. Any thread. */
struct cgroup_cpu cgroup_cpu_limit(const struct cgroup_files *files);

#endif
