/* cores.h - the cores that this process may use */
#ifndef CORES_H
#define CORES_H

/* Of its affinity mask; at least 1. Any thread. */
int host_cores(void);

#endif
