/* home.c - is this the file that the rows were written to, with all that lay beside it? */
#include "daemon/store/home.h"

#include "daemon/store/files.h"
#include "proto/digest.h"
#include "proto/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MARKS = 2, /* the one that holds, and the one that is being made */
    MARK_TEXT = 17,
    MARK_PATH_MAX = MS_PATH_MAX + 16,
    LOCK_PATH_MAX = MS_PATH_MAX + 16,
};

const char *const home_keys[HOME_PARTS] = {
    [HOME_INO] = "home_ino",           [HOME_BORN] = "home_born_ns",
    [HOME_LOCK_INO] = "home_lock_ino", [HOME_LOCK_BORN] = "home_lock_born_ns",
    [HOME_PLACE] = "home_place",       [HOME_MARK] = "home_mark",
    [HOME_MARK_INO] = "home_mark_ino", [HOME_MARK_AT] = "home_mark_at_ns",
};

static void set(struct home *home, enum home_part part, uint64_t value)
{
    home->parts[part] = value & INT64_MAX; /* SQLite's integers are signed */
    home->known |= 1U << part;
}

static uint64_t ns_of(const struct statx_timestamp *time)
{
    return (uint64_t)time->tv_sec * 1000000000U + time->tv_nsec;
}

/* Inode and time of birth of a file; no two that were ever there have the same ones. */
static int look_at_file(const char *path, enum home_part ino, enum home_part born, struct home *ret)
{
    struct statx st;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) != 0) {
        return MS_E_IO;
    }
    set(ret, ino, st.stx_ino);
    set(ret, born, (st.stx_mask & STATX_BTIME) != 0 ? ns_of(&st.stx_btime) : 0);
    return 0;
}

int home_look(const char *database, struct home *ret)
{
    char lock[LOCK_PATH_MAX];
    uint8_t digest[MS_SHA256_BYTES];
    uint64_t place = 0;
    *ret = (struct home){.slot = 0};
    char *path = realpath(database, NULL);
    int rc = path != NULL ? look_at_file(path, HOME_INO, HOME_BORN, ret) : MS_E_IO;
    if (rc == 0) {
        snprintf(lock, sizeof(lock), "%s.lock", database);
        rc = look_at_file(lock, HOME_LOCK_INO, HOME_LOCK_BORN, ret);
    }
    if (rc == 0) {
        ms_sha256(path, strlen(path), digest);
        memcpy(&place, digest, sizeof(place));
        set(ret, HOME_PLACE, place);
    }
    free(path);
    return rc;
}

/* ---- the mark -----------------------------------------------------------------------------------
 */

static const char *mark_path(const char *database, int slot, char buf[MARK_PATH_MAX])
{
    snprintf(buf, MARK_PATH_MAX, "%s.mark.%d", database, slot);
    return buf;
}

static int look_at_mark(int fd, struct home *ret)
{
    char text[MARK_TEXT + 1];
    struct statx st;
    ssize_t n = pread(fd, text, MARK_TEXT, 0);
    if (n < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_CTIME, &st) != 0) {
        return MS_E_IO;
    }
    text[n] = '\0';
    set(ret, HOME_MARK, strtoull(text, NULL, 16));
    set(ret, HOME_MARK_INO, st.stx_ino);
    set(ret, HOME_MARK_AT, ns_of(&st.stx_ctime));
    return 0;
}

static int open_mark(const char *database, int slot, int flags)
{
    char path[MARK_PATH_MAX];
    return store_open_beside(mark_path(database, slot, path), database, flags);
}

static int agree(const struct home *a, const struct home *b, unsigned parts)
{
    for (unsigned part = 0; part < HOME_PARTS; part++) {
        unsigned bit = 1U << part;
        if ((parts & a->known & b->known & bit) != 0 && a->parts[part] != b->parts[part]) {
            return 0;
        }
    }
    return 1;
}

int home_matches(const char *database, struct home *stored, const struct home *here)
{
    static const unsigned file = 1U << HOME_INO | 1U << HOME_BORN | 1U << HOME_LOCK_INO |
                                 1U << HOME_LOCK_BORN | 1U << HOME_PLACE;
    stored->slot = 0;
    for (int slot = 1; slot <= MARKS; slot++) {
        struct home mark = {.slot = slot};
        int fd = open_mark(database, slot, O_RDONLY);
        if (fd >= 0) {
            int is_ours = look_at_mark(fd, &mark) == 0 && agree(stored, &mark, ~file);
            stored->slot = is_ours ? slot : stored->slot;
            close(fd);
        }
    }
    int has_mark = (stored->known & 1U << HOME_MARK) != 0;
    return agree(stored, here, file) && (!has_mark || stored->slot != 0);
}

static int sync_folder(const char *database)
{
    int fd = ms_folder_open(database);
    int rc = fd >= 0 ? fsync(fd) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* Its time of change is noted behind the sync: nothing touches it from then on. */
static int write_mark(int fd, const char *database, struct home *ret)
{
    char text[MARK_TEXT + 1];
    uint64_t id = 0;
    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
        return -1;
    }
    snprintf(text, sizeof(text), "%016" PRIx64 "\n", id & INT64_MAX);
    return pwrite(fd, text, MARK_TEXT, 0) == MARK_TEXT && fsync(fd) == 0 &&
                   sync_folder(database) == 0 && look_at_mark(fd, ret) == 0
               ? 0
               : -1;
}

int home_make_mark(const char *database, const struct home *stored, struct home *ret,
                   struct ms_err *err)
{
    int slot = stored->slot == 1 ? 2 : 1;
    struct home made = {.slot = slot};
    home_drop_mark(database, slot); /* of a start that did not come to its commit */
    int fd = open_mark(database, slot, O_RDWR | O_CREAT | O_EXCL);
    int rc = fd >= 0 ? write_mark(fd, database, &made) : -1;
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (rc < 0) {
        char path[MARK_PATH_MAX];
        home_drop_mark(database, slot);
        errno = why;
        return ms_fail_errno(err, why == ENOSPC || why == EDQUOT ? MS_E_FULL : MS_E_IO, "%s",
                             mark_path(database, slot, path));
    }
    for (int part = HOME_MARK; part <= HOME_MARK_AT; part++) {
        set(ret, (enum home_part)part, made.parts[part]);
    }
    ret->slot = slot;
    return 0;
}

void home_drop_mark(const char *database, int slot)
{
    char path[MARK_PATH_MAX];
    if (slot != 0) {
        unlink(mark_path(database, slot, path));
    }
}
