/* file_write.h - files written whole or not at all, and files that grow. Any thread. */
#ifndef MS_FILE_WRITE_H
#define MS_FILE_WRITE_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <sys/types.h>

/* Writes size bytes and syncs them before path leads to them, so that path is never half written.
 * exclusive: an existing path is MS_E_EXISTS. No other file of the folder is touched, but for what
 * a call that was killed left there under a name of its own (MS_STEP_PREFIX and 16 digits, and more
 * for ms_file_remove).
 * MS_E_INVALID: path leads to a device, a pipe or a socket, which stays. */
int ms_file_write(const char *path, const void *bytes, size_t size, mode_t mode, int exclusive,
                  struct ms_err *err);
/* Likewise, for an owner and a group (-1: that of a new file) that have it before path leads there:
 * nobody who may write in the folder can have another file change hands. MS_E_IO where we may not.
 */
int ms_file_write_for(const char *path, const void *bytes, size_t size, mode_t mode, uid_t owner,
                      gid_t group, int exclusive, struct ms_err *err);

/* Likewise, for who may read it by the umask alone (0666 less that): what people find beside other
 * results of theirs. */
int ms_file_save(const char *path, const void *bytes, size_t size, struct ms_err *err);

#define MS_STEP_PREFIX ".msched-new-"

enum { MS_FILE_STEP_MAX = MS_PATH_MAX + 48 };

struct ms_file_new { /* a file in the making, for who does not have all of it at once */
    int fd;          /* to write to, in any order */
    char path[MS_PATH_MAX + 1], step[MS_FILE_STEP_MAX];
};

/* Likewise in pieces: nothing leads to the file before ms_file_end, and a kill leaves at most what
 * the next begin in that folder takes away. mode is that of open(2), less the umask. */
int ms_file_begin(const char *path, mode_t mode, struct ms_file_new *ret, struct ms_err *err);
/* Writes behind what is there. MS_E_IO names the path. */
int ms_file_put(const struct ms_file_new *file, const void *bytes, size_t size, struct ms_err *err);
/* Syncs and gives it its name. Over in any case, as after ms_file_drop. */
int ms_file_end(struct ms_file_new *file, int exclusive, struct ms_err *err);
void ms_file_drop(struct ms_file_new *file);
/* Takes away what writers that were killed left in the folder that path lies in, and ends what they
 * removed: ms_file_remove. */
void ms_file_clear(const char *path);

/* Makes path, which there is not yet, another name of the file `from`. MS_E_UNSUPPORTED: the file
 * system has no such names, or none more for it. MS_E_NOT_FOUND: nor is there `from`. */
int ms_file_link(const char *from, const char *path, struct ms_err *err);
/* Puts a file that is whole, `from`, in the place of path in its folder, and syncs the folder: at
 * no moment there is none. MS_E_NOT_FOUND: `from` is not there any more. MS_E_INVALID as above. */
int ms_file_move(const char *from, const char *path, struct ms_err *err);
/* Takes the name path from the file that fd has open (O_PATH is enough). MS_E_EXISTS: it leads to
 * another one, which another process has put there, and keeps it: it is looked at under a name for
 * the moment, so that nobody who sleeps in between takes away what came after his look. Where a
 * kill comes before that look, ms_file_clear makes it. MS_OK also where there is none. */
int ms_file_remove(const char *path, int fd, struct ms_err *err);

/* Opens a file to append to, and makes it where there is none: access is O_WRONLY or O_RDWR, mode
 * that of open(2), less the umask. MS_E_IO, or MS_E_INVALID where it is neither a file nor a
 * device: a FIFO that nobody reads would hold up whoever writes to it. */
int ms_file_append(const char *path, int access, mode_t mode, struct ms_err *err);

/* Syncs the folder that path lies in, so that a name written or replaced there survives a power
 * cut. */
int ms_folder_sync(const char *path, struct ms_err *err);
/* That file and its name, whoever wrote them. */
int ms_file_sync(const char *path, struct ms_err *err);

#endif
