/* folder.h - the folder that a path lies in, and its name there. Any thread. */
#ifndef MS_FOLDER_H
#define MS_FOLDER_H

#include <stddef.h>

/* "/a/b" lies in "/a", "/a" in "/", "a" in ".". Cut where buf is too small. Returns buf. */
const char *ms_folder_of(const char *path, char *buf, size_t size);

/* "b" of "/a/b" and of "b", "" of "/a/": within path. */
const char *ms_name_of(const char *path);

/* Opens it for reading: to sync or to lock it. A path of up to MS_PATH_MAX + 32 bytes. -1 with
 * errno set. */
int ms_folder_open(const char *path);

/* Does name, in the folder dir_fd (AT_FDCWD: from where we are), lead to what fd has open? flags of
 * fstatat: AT_SYMLINK_NOFOLLOW, or 0. A lock on a file whose name was taken away keeps nobody out.
 * 0, too, where one of them cannot be looked at. */
int ms_name_leads_to(int dir_fd, const char *name, int flags, int fd);

/* May files be made in this folder, by its mode and ours? -1 with errno set. Nothing is made. */
int ms_folder_try(const char *folder);

#endif
