/* folder.c - the folder that a path lies in */
#include "proto/folder.h"

#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *ms_folder_of(const char *path, char *buf, size_t size)
{
    const char *slash = strrchr(path, '/');
    int n = slash == NULL || slash == path ? 1 : (int)(slash - path);
    snprintf(buf, size, "%.*s", n, slash != NULL ? path : ".");
    return buf;
}

const char *ms_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int ms_folder_open(const char *path)
{
    char folder[MS_PATH_MAX + 33];
    return open(ms_folder_of(path, folder, sizeof(folder)), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int ms_folder_try(const char *folder)
{
    struct stat st;
    if (stat(folder, &st) != 0) {
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS);
}

int ms_name_leads_to(int dir_fd, const char *name, int flags, int fd)
{
    struct stat held;
    struct stat named;
    return fstat(fd, &held) == 0 && fstatat(dir_fd, name, &named, flags) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}
