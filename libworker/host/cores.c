/* cores.c - the cores that this process may use */
#include "libworker/host/cores.h"

#include <sched.h>

int host_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}
