/* job_tag.c - whose a job's folder is: what its file .job_tag says */
#include "libworker/node/job_tag.h"

#include "proto/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char tag_file[] = ".job_tag";
static const char new_file[] = ".job_tag.new"; /* of one that lost its power may be left */

/* A link, a socket, or what somebody keeps to himself is no tag that we wrote for this job. What
 * else keeps us from it, as too few descriptors, says nothing about whose it is. */
static int is_no_tag_of_ours(int why)
{
    return why == ELOOP || why == ENXIO || why == EISDIR || why == EACCES || why == EPERM;
}

/* 1 with the tag, "" for one that is no tag of ours or is half-written; 0: there is none; -1 with
 * errno: nobody can tell now. */
static int read_tag(int folder_fd, char ret[MS_JOB_TAG_LEN + 1])
{
    char text[MS_JOB_TAG_LEN + 1];
    int fd = openat(folder_fd, tag_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ret[0] = '\0';
    if (fd < 0) {
        return errno == ENOENT ? 0 : is_no_tag_of_ours(errno) ? 1 : -1;
    }
    ssize_t n = read(fd, text, MS_JOB_TAG_LEN);
    int why = errno;
    if (n == MS_JOB_TAG_LEN) {
        text[MS_JOB_TAG_LEN] = '\0';
        memcpy(ret, text, sizeof(text));
    }
    close(fd);
    errno = why;
    return n >= 0 || is_no_tag_of_ours(why) ? 1 : -1;
}

/* But for what a write of ours may have left. One that we may not look into is not; -1 with errno:
 * nobody can tell now. */
static int is_empty(int folder_fd)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a position of its own */
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = why;
        return is_no_tag_of_ours(why) ? 0 : -1;
    }
    int entries = 0;
    const struct dirent *entry = NULL;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                   strcmp(entry->d_name, new_file) != 0;
    }
    int why = errno;
    closedir(dir);
    errno = why;
    return why != 0 ? -1 : entries == 0;
}

int job_tag_whose(int folder_fd, const char *path, const char *tag, enum job_tag_owner *ret,
                  struct ms_err *err)
{
    char found[MS_JOB_TAG_LEN + 1];
    const int has_tag = read_tag(folder_fd, found);
    const int empty = has_tag == 0 ? is_empty(folder_fd) : 0;
    if (has_tag < 0 || empty < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot tell whose the run directory %s is", path);
    }
    *ret = has_tag && strcmp(found, tag) == 0 ? JOB_TAG_OURS
           : empty                            ? JOB_TAG_NOBODYS
                                              : JOB_TAG_ANOTHERS;
    return 0;
}

int job_tag_is_anothers(int folder_fd, const char *tag)
{
    char found[MS_JOB_TAG_LEN + 1];
    return read_tag(folder_fd, found) != 0 && strcmp(found, tag) != 0;
}

/* On the disk before it has its name, and its name before anything else lies in the folder. */
static int put_tag(int folder_fd, int fd, const char *tag)
{
    ssize_t n = write(fd, tag, strlen(tag));
    if (n >= 0 && n != (ssize_t)strlen(tag)) {
        errno = ENOSPC;
        return -1;
    }
    if (n < 0 || fsync(fd) != 0 || renameat(folder_fd, new_file, folder_fd, tag_file) != 0) {
        return -1;
    }
    return fsync(folder_fd) == 0 || errno == EINVAL ? 0 : -1; /* which some file systems cannot */
}

int job_tag_write(int folder_fd, const char *path, const char *tag, struct ms_err *err)
{
    (void)unlinkat(folder_fd, new_file, 0);
    int fd =
        openat(folder_fd, new_file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int rc = fd >= 0 && put_tag(folder_fd, fd, tag) == 0
                 ? 0
                 : ms_fail_errno(err, MS_E_IO, "cannot write to the run directory %s", path);
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}
