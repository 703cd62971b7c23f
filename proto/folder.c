/* folder.c - the folder that a path lies in */
#include "proto/folder.h"

#include "proto/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

const char *ms_folder_of(const char *path, char *buf, size_t size)
{
    const char *slash = strrchr(path, '/');
    int n = slash == NULL || slash == path ? 1 : (int)(slash - path);
    snprintf(buf, size, "%.*s", n, slash != NULL ? path : ".");
    return buf;
}

int ms_folder_open(const char *path)
{
    char folder[MS_PATH_MAX + 33];
    return open(ms_folder_of(path, folder, sizeof(folder)), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
