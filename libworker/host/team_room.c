/* team_room.c - threads that wait for each other, and end: as many as OpenMP is about to make
 *
 * No limit alone tells: a user's threads, a control group's and the system's are counted across
 * processes, and addresses may be too few for the stacks. */
#include "libworker/host/team_room.h"

#include "libworker/host/cgroup.h"
#include "libworker/host/team_stack.h"
#include "proto/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GONE_TRIES = 10000,  /* looks at a thread that has ended: the kernel needs one or two */
    TURN_MS = 5000,      /* a team of a thousand needs a few dozen */
    STACK_TRY = 8 << 20, /* what a stack is where nobody says otherwise */
};

struct hand {
    pthread_t thread;
    pthread_mutex_t *gate; /* closed until all are there */
    pid_t tid;
};

static void *wait_at_the_gate(void *arg)
{
    struct hand *hand = (struct hand *)arg;
    hand->tid = (pid_t)syscall(SYS_gettid);
    (void)pthread_mutex_lock(hand->gate);
    (void)pthread_mutex_unlock(hand->gate);
    return NULL;
}

/* ---- which limit --------------------------------------------------------------------------------
 */

static void find_full(void *arg, const char *folder, enum cgroup_version version)
{
    uint64_t max = 0;
    uint64_t current = 0;
    (void)version;
    if (cgroup_read(folder, "pids.max", "", &max) == 0 &&
        cgroup_read(folder, "pids.current", "", &current) == 0 && current >= max) {
        *(uint64_t *)arg = max;
    }
}

/* 0: it has none, or it is none for us. */
static unsigned long long limit_of(__rlimit_resource_t which)
{
    struct rlimit limit = {0, 0};
    return getrlimit(which, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? (unsigned long long)limit.rlim_cur
               : 0;
}

static int can_map(size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map != MAP_FAILED && munmap(map, bytes) == 0;
}

/* While those that could be made are there. */
static void tell_limit(size_t stack_bytes, char why[TEAM_ROOM_WHY_MAX])
{
    const unsigned long long addresses = limit_of(RLIMIT_AS);
    const unsigned long long of_user = geteuid() != 0 ? limit_of(RLIMIT_NPROC) : 0;
    uint64_t full = 0;
    cgroup_walk(&cgroup_files_of_host, "pids", find_full, &full);
    if (full > 0) {
        snprintf(why, TEAM_ROOM_WHY_MAX,
                 "its control group has pids.max %llu: raise TasksMax= or the container's limit",
                 (unsigned long long)full);
    } else if (addresses > 0 && !can_map(stack_bytes > 0 ? stack_bytes : STACK_TRY)) {
        snprintf(why, TEAM_ROOM_WHY_MAX,
                 "RLIMIT_AS is %llu MiB, too little for their stacks: raise `ulimit -v`",
                 addresses >> 20);
    } else if (of_user > 0) {
        snprintf(why, TEAM_ROOM_WHY_MAX,
                 "user %lu has RLIMIT_NPROC %llu: raise `ulimit -u` (LimitNPROC=)",
                 (unsigned long)geteuid(), of_user);
    } else {
        snprintf(why, TEAM_ROOM_WHY_MAX,
                 "the system has no more: see kernel.threads-max, kernel.pid_max, "
                 "vm.max_map_count");
    }
}

/* ---- the try ------------------------------------------------------------------------------------
 */

static int make(struct hand *hands, int n, size_t stack_bytes, pthread_mutex_t *gate)
{
    pthread_attr_t attr;
    int made = 0;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) {
        errno = rc;
        return 0;
    }
    if (stack_bytes > 0) {
        (void)pthread_attr_setstacksize(&attr, stack_bytes);
    }
    while (made < n && rc == 0) {
        hands[made].gate = gate;
        rc = ms_thread_start_as(&attr, &hands[made].thread, wait_at_the_gate, &hands[made]);
        made += rc == 0;
    }
    (void)pthread_attr_destroy(&attr);
    errno = rc;
    return made;
}

/* A thread that was joined still counts for a moment, until the kernel has forgotten its id. */
static void await_the_end(const struct hand *hands, int n)
{
    for (int i = 0; i < n; i++) {
        (void)pthread_join(hands[i].thread, NULL);
    }
    for (int i = 0; i < n; i++) {
        int tries = 0;
        while (tries++ < GONE_TRIES && syscall(SYS_tgkill, getpid(), hands[i].tid, 0) == 0) {
            (void)sched_yield();
        }
    }
}

int team_room_count(int n, size_t stack_bytes, char why[TEAM_ROOM_WHY_MAX])
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    struct hand *hands = calloc((size_t)n, sizeof(*hands));
    if (hands == NULL) {
        if (why != NULL) {
            snprintf(why, TEAM_ROOM_WHY_MAX, "out of memory");
        }
        return 0;
    }
    (void)pthread_mutex_lock(&gate);
    const int made = make(hands, n, stack_bytes, &gate);
    const int reason = errno;
    if (made < n && why != NULL) {
        tell_limit(stack_bytes, why);
    }
    (void)pthread_mutex_unlock(&gate);
    await_the_end(hands, made);
    (void)pthread_mutex_destroy(&gate);
    free(hands);
    errno = reason;
    return made;
}

/* ---- the team -----------------------------------------------------------------------------------
 */

/* At once: what was proven holds for the moment. */
static int make_team(int threads)
{
#ifdef _OPENMP
    int made = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp atomic
        made++;
    }
    return made;
#else
    return threads;
#endif
}

/* Ranks of one host begin together: what one has proven another one must not take before the team
 * is made. All can open the system's own limit, so a lock on it is their queue. Who cannot, or has
 * waited for long, goes on without. Returns a descriptor to close, or -1. */
static int await_turn(void)
{
    int fd = open("/proc/sys/kernel/threads-max", O_RDONLY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < TURN_MS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
            break;
        }
        (void)poll(NULL, 0, 1);
    }
    return fd;
}

static int grow_team(int *has, int threads, struct ms_err *err)
{
    char why[TEAM_ROOM_WHY_MAX];
    const int more = threads - *has;
    const int made = team_room_count(more, team_stack_bytes(), why);
    if (made < more) {
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "this process can have %d thread%s for a team, and a rank has %d; %s, or "
                       "lower `threads`",
                       *has + made, *has + made == 1 ? "" : "s", threads, why);
    }
    *has = make_team(threads);
    return 0;
}

int team_room_take(int threads, struct ms_err *err)
{
    static _Thread_local int has = 1; /* the calling thread is one of its team */
    if (threads < has) {
        has = make_team(threads);
    } else if (threads > has) {
        const int turn = await_turn();
        const int rc = grow_team(&has, threads, err);
        if (turn >= 0) {
            close(turn);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return has == threads
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "OpenMP made a team of %d threads, and a rank has %d", has, threads);
}
