/* file_write.c - a file written whole or not at all
 *
 * What is written has no name (O_TMPFILE), so that a kill leaves nothing, no key above all. Only to
 * replace another file it needs one for the moment before the rename: drawn by lot, for any that
 * could be guessed may be somebody's, and locked, so that who finds one without a lock knows that
 * its writer was killed. A file that goes has such a name for the moment, too, which says what was
 * to go from which name: no lock could be on the one that comes there at the last moment. */
#include "proto/file_write.h"

#include "proto/folder.h"
#include "proto/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STEP_DIGITS = 16,
    STEP_PATH_MAX = MS_FILE_STEP_MAX,
    GOING_NAME_MAX = NAME_MAX - (sizeof(MS_STEP_PREFIX) - 1) - 2 * (STEP_DIGITS + 1)
};

int ms_file_append(const char *path, int access, mode_t mode, struct ms_err *err)
{
    struct stat st;
    int fd = open(path, access | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
    if (fd < 0 && errno != ENXIO) {
        return ms_fail_errno(err, MS_E_IO, "cannot open %s", path);
    }
    const int is_known = fd >= 0 && fstat(fd, &st) == 0;
    if (is_known && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)) &&
        fcntl(fd, F_SETFL, access | O_APPEND) == 0) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return ms_fail(err, MS_E_INVALID, "%s is no file: move it away", path);
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -1;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* ---- the name for a moment ----------------------------------------------------------------------
 */

static int draw_step(const char *path, char buf[STEP_PATH_MAX])
{
    char folder[MS_PATH_MAX + 1];
    uint64_t lot = 0;
    if (getrandom(&lot, sizeof(lot), 0) != (ssize_t)sizeof(lot)) {
        return -1;
    }
    snprintf(buf, STEP_PATH_MAX, "%s/" MS_STEP_PREFIX "%016" PRIx64,
             ms_folder_of(path, folder, sizeof(folder)), lot);
    return 0;
}

/* Of a file that is to go: with its number, and the name that it had, whoever finds it can do what
 * its process had to. A name that leaves no room for that has a lot alone. */
static int draw_going(const char *path, int fd, char buf[STEP_PATH_MAX])
{
    const char *name = ms_name_of(path);
    struct stat st;
    const int rc = draw_step(path, buf);
    if (rc == 0 && strlen(name) <= GOING_NAME_MAX && fstat(fd, &st) == 0) {
        const size_t n = strlen(buf);
        snprintf(buf + n, STEP_PATH_MAX - n, "-%016" PRIx64 "-%s", (uint64_t)st.st_ino, name);
    }
    return rc;
}

/* Behind a lot, or a number; NULL: it is none. */
static const char *skip_digits(const char *text)
{
    return strspn(text, "0123456789abcdef") == STEP_DIGITS ? text + STEP_DIGITS : NULL;
}

/* of: the name that it had, where it is a file that was to go; else NULL. */
static int is_step(const char *name, uint64_t *ret_number, const char **ret_of)
{
    const size_t prefix = strlen(MS_STEP_PREFIX);
    const char *at = strncmp(name, MS_STEP_PREFIX, prefix) == 0 ? skip_digits(name + prefix) : NULL;
    *ret_of = NULL;
    if (at == NULL || *at == '\0') {
        return at != NULL;
    }
    const char *behind = *at == '-' ? skip_digits(at + 1) : NULL;
    if (behind == NULL || behind[0] != '-' || behind[1] == '\0') {
        return 0;
    }
    *ret_number = strtoull(at + 1, NULL, 16);
    *ret_of = behind + 1;
    return 1;
}

/* Under its old name again, where that is free. */
static void give_back(int folder, const char *step, const char *name)
{
    const int why = errno;
    if (linkat(folder, step, folder, name, 0) == 0 || errno == EEXIST) {
        (void)unlinkat(folder, step, 0);
    } else { /* a folder, or a file system without links */
        (void)renameat(folder, step, folder, name);
    }
    errno = why;
}

/* One that nobody holds any more is of a writer that was killed. Of a file that was to go it may be
 * another one, which came to its name at the last moment, and nobody looked any more. */
static void drop_left_over(int folder, const char *name)
{
    struct stat st;
    uint64_t number = 0;
    const char *of = NULL;
    if (!is_step(name, &number, &of)) {
        return;
    }
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
        if (of != NULL && st.st_ino != number) {
            give_back(folder, name, of);
        } else if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            (void)unlinkat(folder, name, 0);
        }
    }
    close(fd);
}

void ms_file_clear(const char *path)
{
    int fd = ms_folder_open(path);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        drop_left_over(fd, entry->d_name);
    }
    closedir(folder);
}

/* ---- writing ------------------------------------------------------------------------------------
 */

/* A file in the folder of path; step is its name, "" where it has none. A file system, or a root
 * without /proc, that cannot do without gives it one. */
static int open_new(const char *path, mode_t mode, char step[STEP_PATH_MAX])
{
    char folder[MS_PATH_MAX + 1];
    int fd = -1;
    step[0] = '\0';
    if (access("/proc/self/fd", X_OK) == 0) {
        fd = open(ms_folder_of(path, folder, sizeof(folder)), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                  mode);
    }
    if (fd < 0 && draw_step(path, step) == 0) {
        fd = open(step, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    }
    if (fd >= 0) {
        (void)flock(fd,
                    LOCK_EX); /* nobody else has it; where there are no locks nobody cleans up */
    }
    return fd;
}

static int give_name(int fd, const char *path)
{
    char from[64];
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Makes path lead to what was written. step is "" again where nothing is left of it. */
static int put_in_place(int fd, char step[STEP_PATH_MAX], const char *path, int exclusive)
{
    if (exclusive) { /* a link refuses what a rename would replace */
        return step[0] == '\0' ? give_name(fd, path) : link(step, path);
    }
    if (step[0] == '\0' && (draw_step(path, step) != 0 || give_name(fd, step) != 0)) {
        step[0] = '\0';
        return -1;
    }
    int rc = rename(step, path);
    if (rc == 0) {
        step[0] = '\0';
    }
    return rc;
}

/* A rename would put a file in the place of /dev/null, or of the FIFO that somebody reads. */
static int check_replaced(const char *path, struct ms_err *err)
{
    struct stat st;
    return stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)
               ? MS_OK /* of a folder the rename says so */
               : ms_fail(err, MS_E_INVALID,
                         "%s is a device, a pipe or a socket, and no file that could be replaced: "
                         "name a file",
                         path);
}

int ms_file_begin(const char *path, mode_t mode, struct ms_file_new *ret, struct ms_err *err)
{
    struct ms_file_new file;
    if (strlen(path) > MS_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID, "the path %.64s... is longer than %d bytes", path,
                       MS_PATH_MAX);
    }
    int rc = check_replaced(path, err);
    if (rc < 0) {
        return rc;
    }
    ms_file_clear(path);
    file.fd = open_new(path, mode, file.step);
    if (file.fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot write %s", path);
    }
    snprintf(file.path, sizeof(file.path), "%s", path);
    *ret = file;
    return MS_OK;
}

static int fail_writing(const struct ms_file_new *file, int exclusive, struct ms_err *err)
{
    return exclusive && errno == EEXIST
               ? ms_fail(err, MS_E_EXISTS, "%s exists already: move it away or choose another name",
                         file->path)
               : ms_fail_errno(err, MS_E_IO, "cannot write %s", file->path);
}

int ms_file_put(const struct ms_file_new *file, const void *bytes, size_t size, struct ms_err *err)
{
    return write_all(file->fd, bytes, size) == 0 ? MS_OK : fail_writing(file, 0, err);
}

int ms_file_end(struct ms_file_new *file, int exclusive, struct ms_err *err)
{
    int failed =
        fsync(file->fd) != 0 || put_in_place(file->fd, file->step, file->path, exclusive) != 0;
    int rc = failed ? fail_writing(file, exclusive, err) : MS_OK;
    ms_file_drop(file);
    return rc;
}

static int end_unless(int failed, struct ms_file_new *file, int exclusive, struct ms_err *err)
{
    if (!failed) {
        return ms_file_end(file, exclusive, err);
    }
    int rc = fail_writing(file, 0, err);
    ms_file_drop(file);
    return rc;
}

void ms_file_drop(struct ms_file_new *file)
{
    const int why = errno; /* for who asks of what kind the failure was */
    if (file->step[0] != '\0') {
        unlink(file->step);
    }
    close(file->fd);
    errno = why;
}

int ms_file_write(const char *path, const void *bytes, size_t size, mode_t mode, int exclusive,
                  struct ms_err *err)
{
    return ms_file_write_for(path, bytes, size, mode, (uid_t)-1, (gid_t)-1, exclusive, err);
}

int ms_file_write_for(const char *path, const void *bytes, size_t size, mode_t mode, uid_t owner,
                      gid_t group, int exclusive, struct ms_err *err)
{
    struct ms_file_new file;
    int rc = ms_file_begin(path, 0600, &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    int failed =
        write_all(file.fd, (const char *)bytes, size) != 0 ||
        ((owner != (uid_t)-1 || group != (gid_t)-1) && fchown(file.fd, owner, group) != 0) ||
        fchmod(file.fd, mode) != 0; /* behind chown, which takes bits away */
    return end_unless(failed, &file, exclusive, err);
}

int ms_file_save(const char *path, const void *bytes, size_t size, struct ms_err *err)
{
    struct ms_file_new file;
    int rc = ms_file_begin(path, 0666, &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    return end_unless(write_all(file.fd, (const char *)bytes, size) != 0, &file, 0, err);
}

static int is_one_file(const char *a, const char *b)
{
    struct stat x;
    struct stat y;
    return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int ms_file_link(const char *from, const char *path, struct ms_err *err)
{
    if (link(from, path) == 0) {
        return MS_OK;
    }
    const int has_none = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS ||
                         errno == EMLINK || errno == EXDEV;
    return ms_fail_errno(err,
                         has_none          ? MS_E_UNSUPPORTED
                         : errno == ENOENT ? MS_E_NOT_FOUND
                                           : MS_E_IO,
                         "cannot link %s to %s", path, from);
}

int ms_file_move(const char *from, const char *path, struct ms_err *err)
{
    int rc = check_replaced(path, err);
    if (rc < 0) {
        return rc;
    }
    const int is_there = is_one_file(from, path); /* of two names of one a rename leaves both */
    if (is_there ? unlink(from) != 0 : rename(from, path) != 0) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "cannot write %s",
                             path);
    }
    return ms_folder_sync(path, err);
}

static int fail_others(const char *path, struct ms_err *err)
{
    return ms_fail(err, MS_E_EXISTS, "%s is another process's by now", path);
}

/* Where no other name can be had, as on a disk that fails: what comes between look and end is lost.
 */
static int remove_at_once(const char *path, struct ms_err *err)
{
    return unlink(path) == 0 ? ms_folder_sync(path, err)
                             : ms_fail_errno(err, MS_E_IO, "cannot take away %s", path);
}

static int is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 || errno != ENOENT;
}

/* Meanwhile whoever cleaned up saw to the file: it is gone, or has its name again. */
static int end_as_others_did(const char *path, struct ms_err *err)
{
    return is_there(path) ? fail_others(path, err) : ms_folder_sync(path, err);
}

int ms_file_remove(const char *path, int fd, struct ms_err *err)
{
    char step[STEP_PATH_MAX];
    if (!is_there(path)) {
        return MS_OK;
    }
    if (!ms_name_leads_to(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, fd)) {
        return fail_others(path, err);
    }
    if (draw_going(path, fd, step) != 0 || rename(path, step) != 0) {
        return errno == ENOENT ? MS_OK : remove_at_once(path, err);
    }
    if (!ms_name_leads_to(AT_FDCWD, step, AT_SYMLINK_NOFOLLOW, fd)) {
        if (!is_there(step)) {
            return end_as_others_did(path, err);
        }
        give_back(AT_FDCWD, step, path);
        return fail_others(path, err);
    }
    if (unlink(step) != 0 && errno != ENOENT) {
        give_back(AT_FDCWD, step, path);
        return ms_fail_errno(err, MS_E_IO, "cannot take away %s", path);
    }
    return ms_folder_sync(path, err);
}

int ms_folder_sync(const char *path, struct ms_err *err)
{
    char folder[MS_PATH_MAX + 1];
    int fd = ms_folder_open(path);
    int failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL); /* EINVAL: it has no such thing */
    int rc = failed ? ms_fail_errno(err, MS_E_IO, "cannot sync the folder %s",
                                    ms_folder_of(path, folder, sizeof(folder)))
                    : MS_OK;
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int ms_file_sync(const char *path, struct ms_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int failed = fd < 0 || fsync(fd) != 0;
    int rc = failed ? ms_fail_errno(err, MS_E_IO, "cannot sync %s", path) : MS_OK;
    if (fd >= 0) {
        close(fd);
    }
    return rc < 0 ? rc : ms_folder_sync(path, err);
}
