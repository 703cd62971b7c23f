/* job.c - a job from a file, and the paths inside it */
#include "libworker/job/job.h"
#include "libworker/job/job_schema.h"

#include "libworker/data/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A device or a huge file cannot fill memory. */
int job_read_text(const char *what, const char *path, char **ret, size_t *ret_size,
                  struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us */
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_INVALID, "%s %.160s cannot be opened", what, path);
    }
    struct stat st;
    char *text = NULL;
    int rc = MS_OK;
    size_t size = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = ms_fail(err, MS_E_INVALID, "%s %.160s is no regular file", what, path);
        goto out;
    }
    if (st.st_size > (off_t)MS_JOB_FILE_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "%s %.160s has %lld bytes; at most %u are read", what, path,
                     (long long)st.st_size, MS_JOB_FILE_MAX);
        goto out;
    }
    text = malloc(MS_JOB_FILE_MAX + 1);
    if (text == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%s %.160s: no memory to read it", what, path);
        goto out;
    }
    while (size <= MS_JOB_FILE_MAX) {
        ssize_t got = read(fd, text + size, MS_JOB_FILE_MAX + 1 - size);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno != EINTR) {
            rc = ms_fail_errno(err, MS_E_IO, "%s %.160s cannot be read", what, path);
            goto out;
        }
        size += got > 0 ? (size_t)got : 0;
    }
    *ret = text;
    *ret_size = size;
    text = NULL;
out:
    free(text);
    close(fd);
    return rc;
}

/* The folder that holds path, absolute. Not that of a link's target: the user wrote the paths
 * where the link lies. Returns owned, or NULL with errno. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    char *real = folder != NULL ? realpath(folder, NULL) : NULL;
    free(folder);
    return real;
}

int job_load(const char *path, const struct job_override *overrides, size_t n, int workers,
             struct job *ret, struct ms_err *err)
{
    char *text = NULL;
    size_t size = 0;
    if (strcmp(path, "-") == 0) { /* its paths would be relative to no folder */
        return ms_fail(err, MS_E_INVALID,
                       "a job comes from a file, not from standard input; name one, and change "
                       "single keys with --set KEY=VALUE");
    }
    int rc = job_read_text("job file", path, &text, &size, err);
    if (rc < 0) {
        return rc;
    }
    char *folder = folder_of(path);
    if (folder == NULL) {
        rc = ms_fail_errno(err, MS_E_IO, "the folder of job file %.160s cannot be found", path);
    } else {
        rc = job_parse(text, size, path, folder, overrides, n, workers, ret, err);
    }
    free(folder);
    free(text);
    return rc;
}

int job_load_kept(const char *path, struct job *ret, struct ms_err *err)
{
    char *text = NULL;
    size_t size = 0;
    int rc = job_read_text("job file", path, &text, &size, err);
    rc = rc < 0 ? rc : job_parse(text, size, path, NULL, NULL, 0, 0, ret, err);
    free(text);
    return rc;
}

int job_expand_path(const char *path, char *dst, size_t size, struct ms_err *err)
{
    return data_path_expand(path, dst, size, err);
}
