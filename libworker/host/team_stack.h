/* team_stack.h - how large the stacks are on which OpenMP's threads compute */
#ifndef TEAM_STACK_H
#define TEAM_STACK_H

#include <stddef.h>

/* Of a thread that OpenMP makes, as OMP_STACKSIZE or `ulimit -s` have it. 0: not known, or OpenMP
 * makes none, or none can be made. Any thread; it leaves no thread behind. */
size_t team_stack_bytes(void);

#endif
