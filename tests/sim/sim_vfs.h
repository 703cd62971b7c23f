/* sim_vfs.h - files of SQLite in memory, on a disk that lies as disks do
 *
 * What was written and not synced may be there after a power cut, or not, or in part, sector by
 * sector and in any order. A sync that fails drops what it should have kept, and nobody is told
 * again. One thread; one disk at a time. */
#ifndef SIM_VFS_H
#define SIM_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_VFS_NAME "sim"

int vfs_register(void);              /* once a process; SQLite's code */
void vfs_format(uint64_t seed);      /* an empty disk; all files must be closed */
void vfs_die_after(uint32_t writes); /* the n-th write or sync from now on, and all later, fail */
void vfs_fail_sync(void);            /* the next one */
bool vfs_sync_is_failing(void);      /* there was none since */
void vfs_forgive_sync(void);
bool vfs_is_dead(void);
void vfs_power_cut(void); /* files must be closed; what was not synced is decided now */
void vfs_revive(void);    /* the next process may open them */

#endif
