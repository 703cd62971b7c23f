/* zip.c - where in a zip archive a file lies, by the directory at its end */
#include "libworker/data/zip.h"

#include "libworker/data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    END_BYTES = 22,
    COMMENT_MAX = 65535,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46, /* before its name */
    LOCAL_BYTES = 30,
    DIRECTORY_MAX = 16 << 20, /* of some 200,000 members */
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    FLAG_ENCRYPTED = 1,
    /* No stream of deflate unpacks to more than 1032 times its size. */
    RATIO_MAX = 1040
};

#define SIGNATURE_END     0x06054B50U
#define SIGNATURE_END64   0x06064B50U
#define SIGNATURE_LOCATOR 0x07064B50U
#define SIGNATURE_ENTRY   0x02014B50U
#define SIGNATURE_LOCAL   0x04034B50U
#define IN_ZIP64          0xFFFFFFFFU /* the number stands in an extra field */

struct directory {
    uint8_t *bytes;
    int64_t size;
    int64_t n; /* entries */
    int64_t at;
};

struct entry {
    const uint8_t *name;
    size_t name_length;
    unsigned flags, method;
    uint32_t crc;
    int64_t packed, size, local; /* local: where its own header is */
};

static uint32_t u16_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

/* What does not fit becomes -1, which no check lets pass. */
static int64_t i64_at(const uint8_t *at)
{
    const uint64_t value = (uint64_t)u32_at(at) | (uint64_t)u32_at(at + 4) << 32;
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static int fail(const char *path, const char *what, int64_t at, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.160s is no whole zip archive: %s (byte %lld); write the file again", path,
                   what, (long long)at);
}

/* ---- the end ---- */

/* Where the end record is: before a comment, the last place whose comment reaches the file's end.
 */
static int find_end(int fd, const char *path, int64_t file_size, uint8_t end[END_BYTES],
                    int64_t *ret_at, struct ms_err *err)
{
    const int64_t most = END_BYTES + COMMENT_MAX;
    const int64_t size = file_size < most ? file_size : most;
    const int64_t from = file_size - size;
    if (size < END_BYTES) {
        return fail(path, "it has fewer bytes than the directory's end", file_size, err);
    }
    uint8_t *tail = malloc((size_t)size);
    int rc = tail == NULL ? ms_fail(err, MS_E_NOMEM, "%.200s: no memory", path)
                          : source_pread(fd, tail, (size_t)size, from, path, err);
    int64_t i = size - END_BYTES;
    while (rc == MS_OK && i >= 0 &&
           (u32_at(tail + i) != SIGNATURE_END || i + END_BYTES + u16_at(tail + i + 20) != size)) {
        i--;
    }
    if (rc == MS_OK && i < 0) {
        rc = fail(path, "the directory's end is missing, as where a download broke off", file_size,
                  err);
    }
    if (rc == MS_OK) {
        memcpy(end, tail + i, END_BYTES);
        *ret_at = from + i;
    }
    free(tail);
    return rc;
}

static int read_end64(int fd, const char *path, int64_t end_at, struct directory *dir,
                      struct ms_err *err)
{
    uint8_t locator[LOCATOR_BYTES];
    uint8_t end[END64_BYTES] = {0};
    if (end_at < LOCATOR_BYTES) {
        return fail(path, "the place of its zip64 directory is missing", end_at, err);
    }
    int rc = source_pread(fd, locator, sizeof(locator), end_at - LOCATOR_BYTES, path, err);
    if (rc < 0) {
        return rc;
    }
    const int64_t at = i64_at(locator + 8);
    if (u32_at(locator) != SIGNATURE_LOCATOR || at < 0 ||
        at > end_at - LOCATOR_BYTES - END64_BYTES) {
        return fail(path, "the place of its zip64 directory is wrong", end_at - LOCATOR_BYTES, err);
    }
    rc = source_pread(fd, end, sizeof(end), at, path, err);
    if (rc == MS_OK && u32_at(end) != SIGNATURE_END64) {
        rc = fail(path, "its zip64 directory is not where it should be", at, err);
    }
    if (rc == MS_OK) {
        dir->n = i64_at(end + 32);
        dir->size = i64_at(end + 40);
        dir->at = i64_at(end + 48);
    }
    return rc;
}

static int read_directory(int fd, const char *path, struct directory *ret, struct ms_err *err)
{
    struct stat st;
    uint8_t end[END_BYTES] = {0};
    int64_t end_at = 0;
    struct directory dir = {.bytes = NULL};
    if (fstat(fd, &st) != 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", path);
    }
    int rc = find_end(fd, path, st.st_size, end, &end_at, err);
    if (rc < 0) {
        return rc;
    }
    dir.n = u16_at(end + 10);
    dir.size = u32_at(end + 12);
    dir.at = u32_at(end + 16);
    if (dir.n == 0xFFFF || dir.size == IN_ZIP64 || dir.at == IN_ZIP64) {
        rc = read_end64(fd, path, end_at, &dir, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (dir.size < 0 || dir.at < 0 || dir.n < 0 || dir.at > end_at || dir.size > end_at - dir.at ||
        dir.n > dir.size / ENTRY_BYTES) {
        return fail(path, "its directory is said to lie outside of the file", end_at, err);
    }
    if (dir.size > DIRECTORY_MAX) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: the directory of this archive has %lld bytes, at most %d are read; "
                       "put the arrays into an archive of their own",
                       path, (long long)dir.size, DIRECTORY_MAX);
    }
    dir.bytes = malloc((size_t)dir.size + 1);
    rc = dir.bytes == NULL ? ms_fail(err, MS_E_NOMEM, "%.200s: no memory", path)
                           : source_pread(fd, dir.bytes, (size_t)dir.size, dir.at, path, err);
    if (rc < 0) {
        free(dir.bytes);
        return rc;
    }
    *ret = dir;
    return MS_OK;
}

/* ---- entries ---- */

/* Numbers that did not fit, in the order in which APPNOTE 4.5.3 has them. */
static void read_zip64(const uint8_t *extra, size_t size, struct entry *entry)
{
    size_t at = 0;
    while (at + 4 <= size) {
        const size_t length = u16_at(extra + at + 2);
        if (length > size - at - 4) {
            return;
        }
        if (u16_at(extra + at) == 1) {
            int64_t *const numbers[] = {&entry->size, &entry->packed, &entry->local};
            size_t used = 0;
            for (int i = 0; i < 3; i++) {
                if (*numbers[i] == IN_ZIP64 && used + 8 <= length) {
                    *numbers[i] = i64_at(extra + at + 4 + used);
                    used += 8;
                }
            }
            return;
        }
        at += 4 + length;
    }
}

/* The entry at byte *at of the directory, which goes on to the next; 0: there is none. */
static int next_entry(const struct directory *dir, int64_t *at, struct entry *ret)
{
    const uint8_t *bytes = dir->bytes + *at;
    if (dir->size - *at < ENTRY_BYTES || u32_at(bytes) != SIGNATURE_ENTRY) {
        return 0;
    }
    const size_t name = u16_at(bytes + 28);
    const size_t extra = u16_at(bytes + 30);
    const int64_t whole = ENTRY_BYTES + (int64_t)name + (int64_t)extra + u16_at(bytes + 32);
    if (dir->size - *at < whole) {
        return 0;
    }
    *ret = (struct entry){.name = bytes + ENTRY_BYTES,
                          .name_length = name,
                          .flags = u16_at(bytes + 8),
                          .method = u16_at(bytes + 10),
                          .crc = u32_at(bytes + 16),
                          .packed = u32_at(bytes + 20),
                          .size = u32_at(bytes + 24),
                          .local = u32_at(bytes + 42)};
    read_zip64(bytes + ENTRY_BYTES + name, extra, ret);
    *at += whole;
    return 1;
}

/* Sizes and method, where the bytes begin, and that they lie before the directory. */
static int locate(int fd, const char *path, const char *name, const struct directory *dir,
                  const struct entry *entry, struct zip_member *ret, struct ms_err *err)
{
    uint8_t local[LOCAL_BYTES];
    if ((entry->flags & FLAG_ENCRYPTED) != 0 ||
        (entry->method != METHOD_STORED && entry->method != METHOD_DEFLATED)) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: %.60s is %s; write the archive with np.savez or "
                       "np.savez_compressed",
                       path, name,
                       (entry->flags & FLAG_ENCRYPTED) != 0 ? "encrypted"
                                                            : "packed with an unusual method");
    }
    const int is_deflated = entry->method == METHOD_DEFLATED;
    if (entry->packed < 0 || entry->size < 0 || entry->local < 0 ||
        entry->local > dir->at - LOCAL_BYTES ||
        (is_deflated ? entry->size / RATIO_MAX > entry->packed : entry->size != entry->packed)) {
        return fail(path, "sizes in its directory contradict each other", dir->at, err);
    }
    int rc = source_pread(fd, local, sizeof(local), entry->local, path, err);
    if (rc < 0) {
        return rc;
    }
    const int64_t at = entry->local + LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
    if (u32_at(local) != SIGNATURE_LOCAL || u16_at(local + 8) != entry->method || at > dir->at ||
        entry->packed > dir->at - at) {
        return fail(path, "what its directory names is not there", entry->local, err);
    }
    *ret = (struct zip_member){is_deflated, at, entry->packed, entry->size, entry->crc};
    return MS_OK;
}

int zip_find(int fd, const char *path, const char *name, struct zip_member *ret, struct ms_err *err)
{
    struct directory dir;
    struct entry entry;
    int64_t at = 0;
    int64_t n = 0;
    int rc = read_directory(fd, path, &dir, err);
    if (rc < 0) {
        return rc;
    }
    const size_t length = strlen(name);
    struct entry found = {.local = 0};
    int n_found = 0;
    while (n < dir.n && next_entry(&dir, &at, &entry)) {
        n++;
        if (entry.name_length == length && memcmp(entry.name, name, length) == 0) {
            found = entry;
            n_found++;
        }
    }
    if (n < dir.n) {
        rc = fail(path, "its directory is damaged", dir.at + at, err);
    } else if (n_found == 0) {
        rc = ms_fail(err, MS_E_NOT_FOUND, "%.200s has no %.60s", path, name);
    } else if (n_found > 1) { /* which one counts readers do not agree on */
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s has %.60s %d times; write the archive anew with one of them", path,
                     name, n_found);
    } else {
        rc = locate(fd, path, name, &dir, &found, ret, err);
    }
    free(dir.bytes);
    return rc;
}

void zip_list(int fd, const char *path, char *buf, int size)
{
    struct directory dir;
    struct entry entry;
    int64_t at = 0;
    int used = 0;
    buf[0] = '\0';
    if (read_directory(fd, path, &dir, NULL) < 0) {
        return;
    }
    while (used < size && next_entry(&dir, &at, &entry)) {
        char name[65];
        const size_t length = entry.name_length < sizeof(name) ? entry.name_length : 64;
        memcpy(name, entry.name, length);
        name[length] = '\0';
        for (size_t i = 0; i < length; i++) { /* a person reads it */
            name[i] =
                (unsigned char)name[i] < 0x20 || (unsigned char)name[i] >= 0x7F ? '?' : name[i];
        }
        used += snprintf(buf + used, (size_t)(size - used), "%s%s", used > 0 ? ", " : "", name);
    }
    free(dir.bytes);
}
