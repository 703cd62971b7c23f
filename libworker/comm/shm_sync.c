/* shm_sync.c - waiting for the ranks of this host
 *
 * Each rank counts its arrivals in its own segment. Who finds everybody there goes on; the last one
 * to arrive rings the bell, and only if somebody sleeps: a sync costs at most one wake-up call, and
 * none where all are awake. A sleeper announces itself, reads the bell, looks once more and then
 * sleeps on the bell's value, so a ring in between is never lost (all of this is sequentially
 * consistent). A tick of 50 ms looks for dead peers and covers whoever died before it could ring.
 */
#include "libworker/comm/group.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_NS = 30000, /* about ten context switches: more would only warm the room */
    SPIN_LOOKS = 32, /* looks, about a microsecond, between two offers of the core */
    YIELDS = 2,      /* with more ranks than cores, the one we wait for may just need this core */
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static int missing_at_sync(struct group *group, uint64_t target)
{
    while (group->scan < group->n_locals &&
           atomic_load(&group->counters[group->scan]->sequence) >= target) {
        group->scan++;
    }
    return group->scan < group->n_locals ? group->scan : -1;
}

void shm_wake_all(struct group *group)
{
    struct shm_counters *first = group->counters[0];
    atomic_fetch_add(&first->bell, 1);
    (void)futex(&first->bell, FUTEX_WAKE, INT_MAX, NULL);
}

void shm_ring(struct group *group)
{
    if (atomic_load(&group->counters[0]->sleepers) > 0) {
        shm_wake_all(group);
    }
}

uint8_t *shm_slot(struct group *group, int local)
{
    return group->segments[local].base + SHM_SLOTS_AT +
           (group->slots % SHM_SLOTS) * (size_t)SHM_SLOT_BYTES;
}

static uint64_t op_word(const struct group *group)
{
    return ((uint64_t)group->op.kind << 32) | (group->op.begin & UINT32_MAX);
}

void shm_arrive(struct group *group)
{
    struct shm_counters *own = group->counters[group->self];
    uint64_t sequence = ++group->syncs;
    struct shm_stamp *stamp = &own->stamps[sequence & 1];
    atomic_store_explicit(&stamp->step, group->step, memory_order_relaxed);
    atomic_store_explicit(&stamp->what, op_word(group), memory_order_relaxed);
    atomic_store_explicit(&stamp->size, group->op.size, memory_order_relaxed);
    group->scan = 0;
    atomic_store(&own->sequence, sequence);
}

/* Everybody is at the same sync of the generation: is it the same collective? */
static int check_stamps(struct group *group, struct ms_err *err)
{
    for (int i = 0; i < group->n_locals; i++) {
        struct shm_stamp *stamp = &group->counters[i]->stamps[group->syncs & 1];
        uint64_t what = atomic_load_explicit(&stamp->what, memory_order_relaxed);
        uint64_t size = atomic_load_explicit(&stamp->size, memory_order_relaxed);
        if (what != op_word(group) || size != group->op.size) {
            struct group_op theirs = {
                .kind = (enum mesh_kind)(what >> 32), .begin = what & UINT32_MAX, .size = size};
            return group_disagree(group, group->locals[i], &theirs,
                                  atomic_load_explicit(&stamp->step, memory_order_relaxed), err);
        }
    }
    return 0;
}

int shm_await(struct group *group, struct ms_err *err)
{
    if (missing_at_sync(group, group->syncs) < 0) {
        shm_ring(group);
    } else {
        int rc = shm_wait(group, missing_at_sync, group->syncs, err);
        if (rc < 0) {
            return rc;
        }
    }
    return check_stamps(group, err);
}

/* "waited 10.0 s for rank 3 (..) to come to barrier ..", in a buffer of MS_ERR_TEXT_MAX. */
static void print_wait(const struct group *group, int rank, uint64_t waited_ms, const char *why,
                       char *buf)
{
    char who[MESH_WHO_MAX];
    char what[GROUP_WHAT_MAX];
    snprintf(buf, MS_ERR_TEXT_MAX, "waited %.1f s for %s to come to %s%s", (double)waited_ms / 1e3,
             group_who(group, rank, who), group_what(group, what, sizeof(what)), why);
}

/* One that has not come for so long: 0, told where that is due, or MS_E_TIMEOUT. */
static int check_wait(struct group *group, const struct patience *patience, uint64_t now_ms,
                      struct ms_err *err)
{
    char elsewhere[MS_ERR_TEXT_MAX];
    char text[MS_ERR_TEXT_MAX];
    const int rank = patience->rank;
    int is_over = patience->silent_ms > (uint64_t)group->mesh->cfg.timeout_ms;
    if (!is_over &&
        (patience->total_ms <= group_patience(group) || !group_may_tell(group, now_ms))) {
        return 0;
    }
    patience_print_elsewhere(group, rank, elsewhere, sizeof(elsewhere));
    if (is_over) {
        print_wait(group, rank, patience->waited_ms, elsewhere, text);
        return group_blame(group, group->peers[rank].member, err, MS_E_TIMEOUT, "%s; %s", text,
                           elsewhere[0] != '\0'
                               ? "see the log of that rank"
                               : "it hangs or was stopped: see the log of that rank");
    }
    int is_afar = patience->first_ms != patience->start_ms;
    print_wait(group, rank, patience->total_ms,
               is_afar ? ", while it waited for ranks of other hosts" : elsewhere, text);
    group_tell(group, text, is_afar ? "without a sign of them " : "");
    return 0;
}

/* Awake for a moment: 1 when nobody is missing any more. */
static int watch(struct group *group, shm_missing_fn *missing, uint64_t target)
{
    if (group->mesh->cfg.spin) {
        uint64_t start = mesh_now_ns();
        while (mesh_now_ns() - start < SPIN_NS) {
            for (int i = 0; i < SPIN_LOOKS; i++) {
                if (missing(group, target) < 0) {
                    return 1;
                }
                cpu_relax();
            }
            sched_yield(); /* the kernel may have put the other one on this very core */
        }
        return 0;
    }
    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
        if (missing(group, target) < 0) {
            return 1;
        }
    }
    return 0;
}

/* Sleeps until the bell rings, at most a tick. Returns 1 after a tick. */
static int sleep_once(struct group *group, shm_missing_fn *missing, uint64_t target)
{
    struct shm_counters *first = group->counters[0];
    const struct timespec tick = {.tv_nsec = MESH_TICK_MS * 1000000L};
    int ticked = 0;
    atomic_fetch_add(&first->sleepers, 1);
    uint32_t bell = atomic_load(&first->bell);
    if (missing(group, target) >= 0 && atomic_load(&group->mesh->status) == 0) {
        ticked = futex(&first->bell, FUTEX_WAIT, bell, &tick) < 0 && errno == ETIMEDOUT;
    }
    atomic_fetch_sub(&first->sleepers, 1);
    return ticked;
}

/* Somebody was missing: looks again after one sleep. 1: nobody is any more; 0: not yet; or an
 * error.
 */
static int look_again(struct group *group, shm_missing_fn *missing, uint64_t target,
                      struct patience *patience, struct ms_err *err)
{
    int ticked = sleep_once(group, missing, target);
    int rc = mesh_check(group->mesh, err);
    if (rc < 0) {
        return rc;
    }
    if (ticked) { /* first who is dead, then who is missing: who went on may leave meanwhile */
        rc = group_check_peers(group, err);
    }
    uint64_t now_ms = group_clock(group);
    int local = missing(group, target);
    if (local < 0) {
        group->blamed = -1; /* who is dead is not wanted any more */
        return 1;
    }
    if (rc < 0) {
        return rc;
    }
    patience_show(group, group->op.kind, group->locals[local]);
    patience_look(group, group->locals[local], now_ms, patience);
    return check_wait(group, patience, now_ms, err);
}

static int wait_asleep(struct group *group, shm_missing_fn *missing, uint64_t target,
                       struct ms_err *err)
{
    struct patience patience = {.rank = -1};
    int rc = 0;
    while (rc == 0) {
        rc = look_again(group, missing, target, &patience, err);
    }
    patience_show_none(group);
    return rc < 0 ? rc : 0;
}

int shm_wait(struct group *group, shm_missing_fn *missing, uint64_t target, struct ms_err *err)
{
    if (missing(group, target) < 0) {
        return 0;
    }
    group_clock_start(group);
    uint64_t start = group->looked_ns;
    int rc = watch(group, missing, target) ? 0 : wait_asleep(group, missing, target, err);
    atomic_fetch_add(&group->mesh->wait_ns, mesh_now_ns() - start);
    return rc;
}
