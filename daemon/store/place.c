/* place.c - what lies at the path of a database and beside it, before anything is opened or made */
#include "daemon/store/place.h"

#include "daemon/store/sql.h"
#include "daemon/store/wal.h"
#include "proto/denied.h"
#include "proto/folder.h"
#include "proto/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE_PATH_MAX = MS_PATH_MAX + 16 };

/* ---- whose file it is ---------------------------------------------------------------------------
 */

static int follow(const char *link, const char *setting, char **ret, struct ms_err *err)
{
    *ret = realpath(link, NULL);
    return *ret != NULL ? 0
                        : ms_fail_errno(err, MS_E_CONFIG,
                                        "database %s is a symbolic link that leads to no file: "
                                        "mount what it leads to, or name another one with %s",
                                        link, setting);
}

/* The name in its real folder. */
static int make_absolute(const char *database, char **ret, struct ms_err *err)
{
    char folder[MS_PATH_MAX + 1];
    const char *name = ms_name_of(database);
    char *real = realpath(ms_folder_of(database, folder, sizeof(folder)), NULL);
    if (real == NULL) {
        int rc = ms_fail_errno(err, MS_E_CONFIG,
                               "database %s: its folder must exist and belong to the user of "
                               "msschedd",
                               database);
        return ms_denied(database, W_OK, rc, err);
    }
    const int n = asprintf(ret, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    free(real);
    return n >= 0 ? 0 : ms_fail(err, MS_E_NOMEM, "no memory for the path of database %s", database);
}

/* Absolute, so that all who take the path, SQLite's addresses too, mean the same file. */
int store_resolve(const char *database, const char *setting, char ret[MS_PATH_MAX + 1],
                  struct ms_err *err)
{
    char *real = NULL;
    struct stat st;
    if (strncmp(database, "file:", 5) == 0 || database[0] == ':') {
        return ms_fail(err, MS_E_CONFIG,
                       "database %s: SQLite takes this for an address or a name of its own; name a "
                       "file: ./%s",
                       database, database);
    }
    int rc = strlen(database) > MS_PATH_MAX ? 0
             : lstat(database, &st) == 0 && S_ISLNK(st.st_mode)
                 ? follow(database, setting, &real, err)
                 : make_absolute(database, &real, err);
    if (rc == 0 && (real == NULL || strlen(real) > MS_PATH_MAX)) {
        rc = ms_fail(err, MS_E_CONFIG, "the path of the database is longer than %d bytes",
                     MS_PATH_MAX);
    }
    if (rc == 0) {
        memcpy(ret, real, strlen(real) + 1);
    }
    free(real);
    return rc;
}

/* What SQLite or we would open there; it waits for a FIFO as long as nobody writes to it. */
static const char *const opened_beside[] = {"-wal", "-journal", "-shm", ".lock"};

static int look_beside(const char *database, struct ms_err *err)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(opened_beside); i++) {
        char path[SIDE_PATH_MAX];
        struct stat st;
        snprintf(path, sizeof(path), "%s%s", database, opened_beside[i]);
        if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
            return ms_fail(err, MS_E_CONFIG,
                           "%s is no regular file, and what belongs to the database %s is kept "
                           "there: move it away",
                           path, database);
        }
    }
    return 0;
}

/* ---- what is in it ------------------------------------------------------------------------------
 */

enum { HEADER = 108 }; /* of the file, 100 bytes, and of the first page's tree */

static uint32_t number_at(const uint8_t header[HEADER], int at, int bytes)
{
    uint32_t number = 0;
    for (int i = 0; i < bytes; i++) {
        number = number << 8 | header[at + i];
    }
    return number;
}

/* Nothing was ever written to it but its header; what is to be may be in its log. Of the size only
 * the header tells: a power cut amid the first folding of the log leaves more pages behind. */
static int is_unused(const uint8_t header[HEADER])
{
    enum { CHANGES = 24, PAGES = 28, USER_VERSION = 60, VALID_FOR = 92, KIND = 100, CELLS = 103 };
    const uint8_t leaf_of_table = 0x0d;
    const int says_pages = number_at(header, CHANGES, 4) == number_at(header, VALID_FOR, 4);
    return header[KIND] == leaf_of_table && number_at(header, CELLS, 2) == 0 &&
           number_at(header, USER_VERSION, 4) == 0 &&
           (!says_pages || number_at(header, PAGES, 4) <= 1);
}

/* Has it the id that we write with our first transaction, or may that still be in its log? We lock
 * before we write, so a log without a lock is another program's. */
static int judge_header(const char *database, const char *setting, const uint8_t header[HEADER],
                        struct ms_err *err)
{
    enum { APPLICATION = 68 };
    const uint32_t application = number_at(header, APPLICATION, 4);
    char lock[SIDE_PATH_MAX];
    struct stat st;
    int holds = 0;
    int ours = application == STORE_APPLICATION_ID;
    if (application == 0 && is_unused(header)) {
        snprintf(lock, sizeof(lock), "%s.lock", database);
        ours = !wal_is_there(database, &holds) || !holds || lstat(lock, &st) == 0;
    }
    return ours ? 0
                : ms_fail(err, MS_E_CONFIG,
                          "%s is a database of another program (application id %u): name another "
                          "one with %s",
                          database, application, setting);
}

/* A database that can be read only would fail amid its opening, in words of SQLite's. */
static int try_file(const char *database, struct ms_err *err)
{
    if (faccessat(AT_FDCWD, database, R_OK | W_OK, AT_EACCESS) == 0 || errno == ENOENT) {
        return 0;
    }
    int rc = ms_fail_errno(err, MS_E_CONFIG, "database %s cannot be written", database);
    return ms_denied(database, R_OK | W_OK, rc, err);
}

/* Can what is there of it be written? */
static int try_beside(const char *database, struct ms_err *err)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(opened_beside); i++) {
        char path[SIDE_PATH_MAX];
        int rc = 0;
        snprintf(path, sizeof(path), "%s%s", database, opened_beside[i]);
        if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
            rc =
                ms_fail_errno(err, MS_E_CONFIG, "%s, beside the database, cannot be written", path);
            return ms_denied(path, R_OK | W_OK, rc, err);
        }
    }
    return 0;
}

static int look_at(const char *database, const char *setting, int *ret_absent, struct ms_err *err)
{
    static const char magic[16] = "SQLite format 3";
    uint8_t header[HEADER];
    struct stat st;
    int rc = look_beside(database, err);
    if (rc < 0) {
        return rc;
    }
    int fd = open(database, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *ret_absent = fd < 0;
    if (fd < 0) {
        rc = errno == ENOENT ? 0 : ms_fail_errno(err, MS_E_CONFIG, "database %s", database);
        return rc == 0 ? 0 : ms_denied(database, R_OK | W_OK, rc, err);
    }
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, header, HEADER, 0) : -1;
    close(fd);
    if (n < 0) {
        return ms_fail(err, MS_E_CONFIG, "database %s is no regular file: name another one with %s",
                       database, setting);
    }
    if (n == 0) {
        *ret_absent = 1;
        return try_file(database, err);
    }
    if (n < HEADER || memcmp(header, magic, sizeof(magic)) != 0) {
        return ms_fail(
            err, MS_E_CONFIG,
            "%s is no database: name another one with %s; if it was one, put a copy back "
            "(docs: operations, Backup)",
            database, setting);
    }
    rc = judge_header(database, setting, header, err);
    return rc == 0 ? try_file(database, err) : rc;
}

int store_look(const char *database, const char *setting, int *ret_absent, struct ms_err *err)
{
    int rc = look_at(database, setting, ret_absent, err);
    return rc == 0 ? try_beside(database, err) : rc;
}

/* ---- before a start -----------------------------------------------------------------------------
 */

int store_judge_place(const char *database, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    char folder[MS_PATH_MAX + 1];
    int absent = 0;
    int rc = store_resolve(database, STORE_SETTING, path, err);
    if (rc == 0 && ms_folder_try(ms_folder_of(path, folder, sizeof(folder))) != 0) {
        rc = ms_fail_errno(err, MS_E_CONFIG,
                           "database %s: its folder must exist and belong to the user of msschedd",
                           path);
        return ms_denied(folder, W_OK | X_OK, rc, err);
    }
    if (rc == 0) {
        rc = store_look(path, STORE_SETTING, &absent, err);
    }
    return rc;
}
