/* memory.h - memory for decisions: a reserve that is spent when the system has none left
 *
 * A request that finds no memory is refused (MS_E_NOMEM). A decision about running jobs, once
 * begun, cannot be: it takes what it needs from here. When malloc fails, the reserve is given back
 * to the system first and the call repeated; from then on memory_is_spent, the driver takes no more
 * requests, and every tick tries to fill the reserve again. Only when the reserve was not enough
 * for one tick's decisions does the process abort: nothing of that tick was acknowledged, a restart
 * loses nothing.
 *
 * One reserve for the process, as there is one memory. Loop thread. */
#ifndef SCHED_MEMORY_H
#define SCHED_MEMORY_H

#include <stddef.h>

/* Fills the reserve where it is empty; 0 where there is no memory for that. */
int memory_reserve(void);
void memory_release(void); /* gives it back for good */
int memory_is_spent(void);

/* Gives the reserve back to the system; 0: it was spent before. For calls that are to be repeated.
 */
int memory_spend(void);
void *memory_take(size_t bytes); /* zeroed, never NULL; free() it */
void *memory_resize(void *p, size_t bytes);

#endif
