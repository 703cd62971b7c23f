/* team_stack.c - measured, not read: OpenMP takes OMP_STACKSIZE by rules of its own, which the
 * releases of a compiler change */
#include "libworker/host/team_stack.h"

#ifdef _OPENMP
#include "libworker/host/team_room.h"
#include "proto/thread.h"

#include <limits.h>
#include <omp.h>

/* Of the calling thread; 0: not known. */
static size_t own_stack(void)
{
    pthread_attr_t attr;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        return 0;
    }
    if (pthread_attr_getstacksize(&attr, &bytes) != 0) {
        bytes = 0;
    }
    (void)pthread_attr_destroy(&attr);
    return bytes;
}

static void *measure(void *arg)
{
    size_t bytes = 0;
    omp_set_dynamic(0); /* settings of this thread alone */
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
        bytes = own_stack();
    }
    *(size_t *)arg = bytes;
    return NULL;
}

/* By a thread whose team ends with it: one of the caller's would stay. */
size_t team_stack_bytes(void)
{
    pthread_t thread;
    size_t bytes = 0;
    if (team_room_count(2, PTHREAD_STACK_MIN, NULL) < 2) { /* none that OpenMP would take over */
        return 0;
    }
    return ms_thread_start(&thread, measure, &bytes) == 0 && pthread_join(thread, NULL) == 0 ? bytes
                                                                                             : 0;
}
#else
size_t team_stack_bytes(void)
{
    return 0;
}
#endif
