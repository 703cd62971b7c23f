/* recovery_path.c - MS_RECOVERY_PATH: the folder in which a dynamic cluster's scheduler keeps its
 * database */
#include "daemon/recovery_path.h"

#include "proto/denied.h"
#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, struct ms_err *err)
{
    const int is_no_folder = errno == ENOTDIR; /* no mode makes it one */
    int rc = ms_fail_errno(err, MS_E_CONFIG,
                           "MS_RECOVERY_PATH=%.200s: name a folder in which this user may keep the "
                           "scheduler's database",
                           path);
    return is_no_folder ? rc : ms_denied(path, W_OK | X_OK, rc, err);
}

/* One that anybody writes to may hold anybody's database by the name of ours. */
static int judge_there(const char *path, struct ms_err *err)
{
    struct stat st;
    if (ms_folder_try(path) != 0) {
        return fail(path, err);
    }
    if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH) != 0) {
        return ms_fail(err, MS_E_CONFIG,
                       "MS_RECOVERY_PATH=%.200s: everybody may write to that folder: name one of "
                       "your own below it, which is made where it is missing",
                       path);
    }
    return 0;
}

/* A power cut must not take away the folder of what was acknowledged. Who may make it in a folder
 * that he may not read cannot sync that. */
static int make_one(const char *path)
{
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST ? 0 : -1;
    }
    return ms_folder_sync(path, NULL) == 0 || errno == EACCES ? 0 : -1;
}

int recovery_path_make(const char *path, struct ms_err *err)
{
    char part[MS_PATH_MAX + 1];
    const size_t length = strlen(path);
    for (size_t n = 1; n <= length; n++) { /* behind the first slash */
        if (path[n] != '/' && path[n] != '\0') {
            continue;
        }
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        if (access(part, F_OK) != 0 && make_one(part) != 0) {
            return fail(path, err);
        }
    }
    return judge_there(path, err);
}

int recovery_path_judge(const char *path, struct ms_err *err)
{
    char part[MS_PATH_MAX + 1];
    if (access(path, F_OK) == 0) {
        return judge_there(path, err);
    }
    snprintf(part, sizeof(part), "%s", path);
    while (access(part, F_OK) != 0 && errno == ENOENT && strcmp(part, "/") != 0) {
        char above[MS_PATH_MAX + 1];
        memcpy(part, ms_folder_of(part, above, sizeof(above)), sizeof(part));
    }
    return ms_folder_try(part) == 0 ? 0 : fail(path, err);
}
