/* checkpoint_folder.c - the checkpoints of a folder: which there are, which are complete */
#include "libworker/train/checkpoint_folder.h"

#include "libworker/data/path.h"
#include "libworker/data/safetensors.h"
#include "proto/file_write.h"
#include "proto/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char manifest_end[] = ".json";
static const char data_end[] = ".safetensors";

void checkpoint_entries_fini(struct checkpoint_entries *entries)
{
    free(entries->entries);
    entries->entries = NULL;
    entries->n = 0;
}

/* ---- names ---- */

/* "<prefix>-<step><tail>": 0 for any other name. */
static uint64_t step_in(const char *name, const char *prefix, const char *tail)
{
    enum { DIGITS_MAX = 18 };
    size_t length = strlen(name);
    size_t end = strlen(tail);
    if (length <= end || strcmp(name + length - end, tail) != 0 ||
        length - end + sizeof(data_end) > CHECKPOINT_NAME_MAX) {
        return 0;
    }
    size_t at = length - end;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') {
        at--;
    }
    size_t digits = length - end - at;
    int is_named = at >= 2 && name[at - 1] == '-' && digits >= 1 && digits <= DIGITS_MAX &&
                   name[at] != '0' && name[0] != '.';
    int is_ours =
        prefix == NULL || (strlen(prefix) == at - 1 && strncmp(name, prefix, at - 1) == 0);
    return is_named && is_ours ? strtoull(name + at, NULL, 10) : 0;
}

static uint64_t step_of(const char *name, const char *prefix)
{
    return step_in(name, prefix, manifest_end);
}

int checkpoint_names(const char *name)
{
    return step_of(name, NULL) > 0 || step_in(name, NULL, data_end) > 0 ||
           strncmp(name, MS_STEP_PREFIX, strlen(MS_STEP_PREFIX)) == 0 ||
           strncmp(name, CHECKPOINT_LOCK_PREFIX, strlen(CHECKPOINT_LOCK_PREFIX)) == 0;
}

static int by_step(const void *a, const void *b)
{
    const struct checkpoint_entry *x = a;
    const struct checkpoint_entry *y = b;
    return x->step != y->step ? (x->step < y->step ? 1 : -1) : strcmp(x->path, y->path);
}

static int add(struct checkpoint_entries *list, const char *folder, const char *name, uint64_t step,
               struct ms_err *err)
{
    if (list->n >= MS_CHECKPOINT_FILES) {
        return ms_fail(err, MS_E_FULL, "%.200s holds more than %d checkpoints", folder,
                       MS_CHECKPOINT_FILES);
    }
    if ((list->n & (list->n - 1)) == 0) { /* room is a power of two */
        size_t room = list->n > 0 ? 2 * list->n : 1;
        struct checkpoint_entry *more = realloc(list->entries, room * sizeof(*more));
        if (more == NULL) {
            return ms_fail(err, MS_E_NOMEM, "no memory for the checkpoints of %.200s", folder);
        }
        list->entries = more;
    }
    struct checkpoint_entry *entry = &list->entries[list->n];
    int n = snprintf(entry->path, sizeof(entry->path), "%s/%s", folder, name);
    entry->step = step;
    list->n += n > 0 && (size_t)n < sizeof(entry->path);
    return MS_OK;
}

/* ---- folders ---- */

static int fail_look(const char *folder, struct ms_err *err)
{
    const int code = errno == ENOENT || errno == ENOTDIR ? MS_E_NOT_FOUND
                     : errno == EACCES                   ? MS_E_REFUSED
                                                         : MS_E_IO;
    return ms_fail_errno(err, code, "cannot look for checkpoints in %.200s", folder);
}

static int open_folder(const char *folder, DIR **ret, struct ms_err *err)
{
    *ret = opendir(folder);
    return *ret != NULL || errno == ENOENT || errno == ENOTDIR ? MS_OK : fail_look(folder, err);
}

static int add_folder(const char *folder, const char *prefix, struct checkpoint_entries *list,
                      struct ms_err *err)
{
    DIR *dir = NULL;
    int rc = open_folder(folder, &dir, err);
    const struct dirent *entry = NULL;
    while (rc == MS_OK && dir != NULL && (entry = readdir(dir)) != NULL) {
        uint64_t step = step_of(entry->d_name, prefix);
        rc = step > 0 ? add(list, folder, entry->d_name, step, err) : MS_OK;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return rc;
}

static int end(struct checkpoint_entries *list, int rc, struct checkpoint_entries *ret)
{
    if (rc < 0) {
        checkpoint_entries_fini(list);
        return rc;
    }
    if (list->n > 0) {
        qsort(list->entries, list->n, sizeof(*list->entries), by_step);
    }
    *ret = *list;
    return MS_OK;
}

int checkpoint_list(const char *folder, const char *prefix, struct checkpoint_entries *ret,
                    struct ms_err *err)
{
    struct checkpoint_entries list = {NULL, 0};
    return end(&list, add_folder(folder, prefix, &list, err), ret);
}

/* What cannot be looked into has none for us; where descriptors or memory lack, nobody knows. */
static int add_one_below(const char *folder, struct checkpoint_entries *list, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    int rc = add_folder(folder, NULL, list, &why);
    return rc == MS_OK || rc == MS_E_IO || rc == MS_E_REFUSED ? MS_OK
                                                              : ms_fail(err, rc, "%s", why.text);
}

/* Of its own folders, not of theirs. */
static int add_below(const char *folder, struct checkpoint_entries *list, struct ms_err *err)
{
    DIR *dir = NULL;
    int rc = open_folder(folder, &dir, err);
    const struct dirent *entry = NULL;
    while (rc == MS_OK && dir != NULL && (entry = readdir(dir)) != NULL) {
        char below[CHECKPOINT_PATH_MAX];
        struct stat st;
        int n = snprintf(below, sizeof(below), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && n > 0 && (size_t)n < sizeof(below) &&
            stat(below, &st) == 0 && S_ISDIR(st.st_mode)) {
            rc = add_one_below(below, list, err);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return rc;
}

/* ---- by name ---- */

struct epoch_step {
    char prefix[MS_NAME_MAX + 1];
    int64_t epoch, step;
};

/* "<prefix>-<epoch>_<step>", as MindSpore calls its own. 0 for any other name. */
static int epoch_step_of(const char *name, struct epoch_step *ret)
{
    char epoch[19];
    char step[19];
    char tail[8];
    const char *dash = strrchr(name, '-');
    const size_t length = dash != NULL ? (size_t)(dash - name) : 0;
    if (length == 0 || length > MS_NAME_MAX) {
        return 0;
    }
    const int n = sscanf(dash, "-%18[0-9]_%18[0-9]%7s", epoch, step, tail);
    if (n != 2 && !(n == 3 && strcmp(tail, ".ckpt") == 0)) {
        return 0;
    }
    snprintf(ret->prefix, sizeof(ret->prefix), "%.*s", (int)length, name);
    ret->epoch = strtoll(epoch, NULL, 10);
    ret->step = strtoll(step, NULL, 10);
    return 1;
}

static int is_of(const char *path, const struct epoch_step *wanted)
{
    struct checkpoint_manifest m;
    if (checkpoint_read(path, CHECKPOINT_NAMED, &m, NULL) < 0) {
        return 0;
    }
    const int is = m.epoch == wanted->epoch && m.step_in_epoch == wanted->step;
    checkpoint_manifest_fini(&m);
    return is;
}

int checkpoint_find_named(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    char folder[MS_PATH_MAX + 1];
    const char *name = ms_name_of(path);
    struct checkpoint_entries entries;
    struct epoch_step wanted;
    const int n = snprintf(ret, CHECKPOINT_PATH_MAX, "%s%s", path, manifest_end);
    if (n > 0 && n < CHECKPOINT_PATH_MAX && step_of(ret + (name - path), NULL) > 0 &&
        access(ret, F_OK) == 0) {
        return 1;
    }
    if (!epoch_step_of(name, &wanted) || checkpoint_list(ms_folder_of(path, folder, sizeof(folder)),
                                                         wanted.prefix, &entries, NULL) < 0) {
        return 0;
    }
    size_t i = 0;
    while (i < entries.n && !is_of(entries.entries[i].path, &wanted)) {
        i++;
    }
    const int is_found = i < entries.n;
    if (is_found) {
        memcpy(ret, entries.entries[i].path, CHECKPOINT_PATH_MAX);
    }
    checkpoint_entries_fini(&entries);
    return is_found;
}

/* ---- a place ---- */

int checkpoint_search(const char *path, struct checkpoint_entries *ret, struct ms_err *err)
{
    struct checkpoint_entries list = {NULL, 0};
    char named[CHECKPOINT_PATH_MAX];
    struct stat st;
    if (stat(path, &st) != 0) {
        const int why = errno;
        const int is_named = why == ENOENT && checkpoint_find_named(path, named);
        errno = why;
        if (!is_named) {
            return fail_look(path, err);
        }
        return checkpoint_search(named, ret, err);
    }
    if (!S_ISDIR(st.st_mode)) {
        char folder[MS_PATH_MAX + 1];
        const char *name = ms_name_of(path);
        uint64_t step = step_of(name, NULL);
        return step == 0
                   ? ms_fail(err, MS_E_INVALID,
                             "%.200s is no manifest of a checkpoint: those are called "
                             "<prefix>-<step>.json",
                             path)
                   : end(&list,
                         add(&list, ms_folder_of(path, folder, sizeof(folder)), name, step, err),
                         ret);
    }
    int rc = add_folder(path, NULL, &list, err);
    rc = rc == MS_OK && list.n == 0 ? add_below(path, &list, err) : rc;
    return end(&list, rc, ret);
}

int checkpoint_is_named(const char *path, const struct checkpoint_entries *found)
{
    struct stat st;
    return found->n == 1 && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode));
}

/* ---- one of them ---- */

static int open_file(const char *path, enum checkpoint_owner owner, int *ret, struct ms_err *err)
{
    if (owner == CHECKPOINT_NAMED) {
        return data_file_open(path, ret, err);
    }
    *ret = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return *ret >= 0 ? MS_OK
                     : ms_fail_errno(err, errno == ENOENT ? MS_E_INVALID : MS_E_IO,
                                     "checkpoint %.200s cannot be opened", path);
}

static int read_text(int fd, const char *path, char **ret, size_t *ret_size, struct ms_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)MS_CHECKPOINT_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.200s is no manifest of a checkpoint: %s", path,
                       "no file, or too large a one");
    }
    size_t size = 0;
    size_t want = (size_t)st.st_size;
    char *text = malloc(want + 1);
    while (text != NULL && size < want) {
        ssize_t n = pread(fd, text + size, want - size, (off_t)size);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            free(text);
            return n < 0 ? ms_fail_errno(err, MS_E_IO, "checkpoint %.200s cannot be read", path)
                         : ms_fail(err, MS_E_IO,
                                   "checkpoint %.200s cannot be read: it became shorter", path);
        }
        size += n > 0 ? (size_t)n : 0;
    }
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to read %.200s", path);
    }
    *ret = text;
    *ret_size = size;
    return MS_OK;
}

const char *checkpoint_data_path(const char *path, const struct checkpoint_manifest *manifest,
                                 char ret[CHECKPOINT_PATH_MAX])
{
    snprintf(ret, CHECKPOINT_PATH_MAX, "%.*s%s", (int)(ms_name_of(path) - path), path,
             manifest->data);
    return ret;
}

/* As they are called, whatever the manifest says. Returns ret. */
static const char *name_data(const char *path, char *ret, size_t size)
{
    const size_t stem = strlen(path) - (sizeof(manifest_end) - 1);
    snprintf(ret, size, "%.*s%s", (int)stem, path, data_end);
    return ret;
}

/* Both files are called alike, and after the step. */
static int check_names(const char *path, const struct checkpoint_manifest *m, struct ms_err *err)
{
    const char *name = ms_name_of(path);
    size_t stem = strlen(name) - (sizeof(manifest_end) - 1);
    if (step_of(name, NULL) != m->step || strncmp(name, m->data, stem) != 0 ||
        strcmp(m->data + stem, data_end) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "checkpoint %.200s: it is of step %llu with the data in %.100s: was it "
                       "renamed?",
                       path, (unsigned long long)m->step, m->data);
    }
    return MS_OK;
}

static int check_size(const char *path, const struct checkpoint_manifest *m, struct ms_err *err)
{
    char data[CHECKPOINT_PATH_MAX];
    struct stat st;
    if (stat(checkpoint_data_path(path, m, data), &st) != 0) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_INVALID : MS_E_IO,
                             "checkpoint %.200s has no data", data);
    }
    return S_ISREG(st.st_mode) && (uint64_t)st.st_size == m->data_size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "checkpoint %.200s is damaged: %lld bytes, and its manifest says %llu",
                         data, (long long)st.st_size, (unsigned long long)m->data_size);
}

static int read_manifest(const char *path, enum checkpoint_owner owner,
                         struct checkpoint_manifest *ret, struct ms_err *err)
{
    struct checkpoint_manifest m = {.job = NULL};
    char *text = NULL;
    size_t size = 0;
    int fd = -1;
    int rc = open_file(path, owner, &fd, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(fd, path, &text, &size, err);
    close(fd);
    rc = rc < 0 ? rc : checkpoint_manifest_parse(text, size, path, &m, err);
    free(text);
    if (rc < 0) {
        return rc;
    }
    rc = check_names(path, &m, err);
    if (rc < 0) {
        checkpoint_manifest_fini(&m);
        return rc;
    }
    *ret = m;
    return MS_OK;
}

int checkpoint_read(const char *path, enum checkpoint_owner owner, struct checkpoint_manifest *ret,
                    struct ms_err *err)
{
    struct checkpoint_manifest m;
    int rc = read_manifest(path, owner, &m, err);
    if (rc < 0) {
        return rc;
    }
    rc = check_size(path, &m, err);
    if (rc < 0) {
        checkpoint_manifest_fini(&m);
        return rc;
    }
    *ret = m;
    return MS_OK;
}

/* A link that leads nowhere is a name: its disk may come back. */
int checkpoint_read_lone(const char *path, struct checkpoint_manifest *ret)
{
    char data[CHECKPOINT_PATH_MAX + sizeof(data_end)];
    struct stat st;
    return lstat(name_data(path, data, sizeof(data)), &st) != 0 && errno == ENOENT &&
           read_manifest(path, CHECKPOINT_OWN, ret, NULL) == 0;
}

int checkpoint_verify(const char *path, enum checkpoint_owner owner,
                      const struct checkpoint_manifest *manifest, struct ms_err *err)
{
    char data[CHECKPOINT_PATH_MAX];
    char sum[SUM_HEX];
    uint64_t size = 0;
    int fd = -1;
    int rc = open_file(checkpoint_data_path(path, manifest, data), owner, &fd, err);
    if (rc < 0) {
        return rc;
    }
    rc = sum_file(fd, data, &size, sum, err);
    close(fd);
    if (rc < 0) {
        return rc;
    }
    return size == manifest->data_size && strcmp(sum, manifest->data_sum) == 0
               ? MS_OK
               : ms_fail(err, MS_E_INVALID,
                         "checkpoint %.200s is damaged: its bytes are not those that its manifest "
                         "has the digest of",
                         data);
}

void checkpoint_remove(const char *path)
{
    char data[CHECKPOINT_PATH_MAX + sizeof(data_end)];
    (void)unlink(path);
    (void)unlink(name_data(path, data, sizeof(data)));
}

static int has_manifest(const char *folder, const char *name)
{
    char path[CHECKPOINT_PATH_MAX + sizeof(data_end)];
    size_t stem = strlen(name) - (sizeof(data_end) - 1);
    snprintf(path, sizeof(path), "%s/%.*s%s", folder, (int)stem, name, manifest_end);
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static int says_tag(const char *folder, const char *name, const char *tag)
{
    char path[CHECKPOINT_PATH_MAX + sizeof(data_end)];
    struct safetensors *file = NULL;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (safetensors_open_own(path, &file, NULL) < 0) {
        return 0;
    }
    const char *format = safetensors_meta(file, "format");
    const char *of = safetensors_meta(file, "job_tag");
    int is_ours = format != NULL && of != NULL && strcmp(format, CHECKPOINT_FORMAT) == 0 &&
                  strcmp(of, tag) == 0;
    safetensors_close(file);
    return is_ours;
}

/* Without the lock the manifest of these data is named, or never will be: it is looked for after
 * that. Where the file system has no locks the writer finds its data gone (checkpoint_save.c). */
static void remove_orphan(int dir, const char *folder, const char *name, const char *tag)
{
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return;
    }
    const int is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_held && !has_manifest(folder, name) && says_tag(folder, name, tag) &&
        ms_name_leads_to(dir, name, AT_SYMLINK_NOFOLLOW, fd)) {
        (void)unlinkat(dir, name, 0);
    }
    close(fd);
}

void checkpoint_remove_orphans(const char *folder, const char *prefix, const char *tag)
{
    DIR *dir = tag[0] != '\0' ? opendir(folder) : NULL;
    const struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (step_in(entry->d_name, prefix, data_end) > 0 && !has_manifest(folder, entry->d_name)) {
            remove_orphan(dirfd(dir), folder, entry->d_name, tag);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}
