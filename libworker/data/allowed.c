/* allowed.c - what a standing worker reads for others: the operator's lists of variables and
 * folders
 */
#include "libworker/data/allowed.h"

#include "libworker/data/path.h"
#include "proto/limits.h"
#include "proto/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLANKS " \t,"

enum { LIST_MAX = 1024 };

static struct {
    char variables[LIST_MAX + 1], roots[LIST_MAX + 1]; /* "": no limit */
    char programs[LIST_MAX + 1];                       /* likewise; NO_PROGRAMS: none */
} lists;

#define NO_PROGRAMS "none"

int allowed_is_open(void)
{
    return lists.variables[0] == '\0' && lists.roots[0] == '\0';
}

const char *allowed_variables(void)
{
    return lists.variables;
}

/* The next word of a list; NULL at its end. */
static const char *next_word(const char *at, const char *blanks, size_t *ret_length)
{
    at += strspn(at, blanks);
    *ret_length = strcspn(at, blanks);
    return *ret_length > 0 ? at : NULL;
}

int allowed_variable(const char *name)
{
    size_t length = 0;
    if (lists.variables[0] == '\0') {
        return 1;
    }
    for (const char *word = lists.variables; (word = next_word(word, BLANKS, &length)) != NULL;
         word += length) {
        int is_pattern = word[length - 1] == '*';
        size_t fixed = length - (size_t)is_pattern;
        if (strncmp(name, word, fixed) == 0 && (is_pattern || name[fixed] == '\0')) {
            return 1;
        }
    }
    return 0;
}

/* ---- folders ---- */

static int is_below(const char *path, const char *root, size_t length)
{
    while (length > 1 && root[length - 1] == '/') {
        length--;
    }
    if (length == 1 && root[0] == '/') {
        return 1;
    }
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* real: without links. A root may be a link itself, as /data often is. */
static int is_below_one(const char *real, const char *roots)
{
    size_t length = 0;
    if (roots[0] == '\0') {
        return 1;
    }
    for (const char *word = roots; (word = next_word(word, BLANKS ":", &length)) != NULL;
         word += length) {
        char root[LIST_MAX + 1];
        char target[PATH_MAX];
        memcpy(root, word, length);
        root[length] = '\0';
        if (is_below(real, root, length) ||
            (realpath(root, target) != NULL && is_below(real, target, strlen(target)))) {
            return 1;
        }
    }
    return 0;
}

static int is_allowed(const char *real)
{
    return is_below_one(real, lists.roots);
}

/* Is there a root that it lies below by its name, and that is not there? Fills buf. */
static int has_missing_root(const char *path, char buf[LIST_MAX + 1])
{
    size_t length = 0;
    for (const char *word = lists.roots; (word = next_word(word, BLANKS ":", &length)) != NULL;
         word += length) {
        memcpy(buf, word, length);
        buf[length] = '\0';
        if (is_below(path, buf, length) && access(buf, F_OK) != 0 && errno == ENOENT) {
            return 1;
        }
    }
    return 0;
}

static int refuse(const char *path, struct ms_err *err)
{
    char root[LIST_MAX + 1];
    if (strstr(path, "/..") == NULL && has_missing_root(path, root)) {
        return ms_fail(
            err, MS_E_NOT_FOUND,
            "path %.120s: there is no %.64s on this host: is the data mounted there, and "
            "the path right?",
            path, root);
    }
    char roots[121];
    return ms_fail(err, MS_E_REFUSED,
                   "path %.120s: jobs read below data_roots of the worker alone, here %s: put "
                   "what is read there, or have the operator add the folder",
                   path, ms_text_words(roots, sizeof(roots), lists.roots));
}

/* Most often a home folder. Said only of what lies below a root by its name alone. */
static int refuse_entry(const char *path, struct ms_err *err)
{
    if (strstr(path, "/..") != NULL || !is_allowed(path)) {
        return refuse(path, err);
    }
    return ms_fail(
        err, MS_E_REFUSED,
        "path %.140s: the worker's user (uid %u) may not enter a folder on the way: open "
        "it (chmod o+x, or setfacl), or put the data below another of data_roots",
        path, (unsigned)geteuid());
}

int data_path_check(const char *path, struct ms_err *err)
{
    char above[PATH_MAX];
    char real[PATH_MAX];
    if (lists.roots[0] == '\0') {
        return 0;
    }
    if (path[0] != '/' || strlen(path) >= sizeof(above)) {
        return refuse(path, err);
    }
    memcpy(above, path, strlen(path) + 1);
    while (realpath(above, real) == NULL) { /* what is not there is judged by where it would be */
        char *slash = strrchr(above, '/');
        if (errno == EACCES) {
            return refuse_entry(path, err);
        }
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(slash, "/..") == 0) {
            return refuse(path, err);
        }
        slash[slash == above] = '\0';
    }
    return is_allowed(real) ? 0 : refuse(path, err);
}

/* Where an open file lies, as the kernel sees it. */
static int judge_open(int fd, const char *path, struct ms_err *err)
{
    char link[64];
    char real[PATH_MAX];
    if (lists.roots[0] == '\0') {
        return 0;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, sizeof(real) - 1);
    if (n <= 0 || n >= (ssize_t)sizeof(real) - 1) {
        return refuse(path, err);
    }
    real[n] = '\0';
    return is_allowed(real) ? 0 : refuse(path, err);
}

int data_open_fail(const char *path, struct ms_err *err)
{
    if (errno == EACCES) {
        return ms_fail(err, MS_E_IO,
                       "%.200s cannot be opened: Permission denied for the worker's user (uid %u): "
                       "let him read it and enter the folders above it (chmod a+rX, or setfacl)",
                       path, (unsigned)geteuid());
    }
    return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "%.200s cannot be opened",
                         path);
}

int data_file_open(const char *path, int *ret_fd, struct ms_err *err)
{
    struct stat st;
    int rc = data_path_check(path, err);
    if (rc < 0) {
        return rc;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* no FIFO holds us */
    if (fd < 0) {
        return data_open_fail(path, err);
    }
    rc = judge_open(fd, path, err);
    if (rc == 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        rc = ms_fail(err, MS_E_INVALID, "%.200s is no regular file", path);
    }
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int data_folder_open(const char *path, DIR **ret, struct ms_err *err)
{
    int rc = data_path_check(path, err);
    if (rc < 0) {
        return rc;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOCTTY);
    if (fd < 0) {
        return data_open_fail(path, err);
    }
    rc = judge_open(fd, path, err);
    DIR *dir = rc == 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        rc = rc < 0 ? rc : ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", path);
        close(fd);
        return rc;
    }
    *ret = dir;
    return 0;
}

/* ---- programs ---- */

static int refuse_program(const char *path, struct ms_err *err)
{
    return ms_fail(
        err, MS_E_REFUSED,
        "program %.140s: jobs run programs below data_programs of the worker alone, here "
        "%.120s: have the operator put it there, or name its folder",
        path, lists.programs);
}

/* Where a list holds, what is not below it is not told apart from what does not exist. */
int data_program_check(const char *path, char *ret, size_t size, struct ms_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    const int is_found = path[0] == '/' && realpath(path, real) != NULL;
    if (strcmp(lists.programs, NO_PROGRAMS) == 0 ||
        (lists.programs[0] != '\0' && (!is_found || !is_below_one(real, lists.programs)))) {
        return refuse_program(path, err);
    }
    if (!is_found || strlen(real) >= size) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO,
                             "program %.200s is not to be had; check dataset.path", path);
    }
    if (stat(real, &st) != 0 || !S_ISREG(st.st_mode) ||
        faccessat(AT_FDCWD, real, X_OK, AT_EACCESS) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "program %.200s is no file that can be executed here: chmod +x, and let its "
                       "first line name what runs it (#!/usr/bin/env python3)",
                       path);
    }
    snprintf(ret, size, "%s", real);
    return MS_OK;
}

/* ---- the lists ---- */

static int take_list(char *list, const char *key, const char *text, struct ms_err *err)
{
    if (text == NULL || strspn(text, BLANKS ":") == strlen(text)) {
        return ms_fail(err, MS_E_CONFIG, "%s is empty: name what jobs may use, or `any`", key);
    }
    if (strlen(text) > LIST_MAX) {
        return ms_fail(err, MS_E_CONFIG, "%s is longer than %d bytes", key, LIST_MAX);
    }
    memcpy(list, strcmp(text, "any") == 0 ? "" : text,
           strcmp(text, "any") == 0 ? 1 : strlen(text) + 1);
    return 0;
}

static int check_absolute(const char *list, const char *key, struct ms_err *err)
{
    size_t length = 0;
    for (const char *word = list; (word = next_word(word, BLANKS ":", &length)) != NULL;
         word += length) {
        if (word[0] != '/') {
            return ms_fail(err, MS_E_CONFIG, "%s: %.*s is no absolute path", key, (int)length,
                           word);
        }
    }
    return 0;
}

int data_path_restrict(const char *variables, const char *roots, const char *programs,
                       struct ms_err *err)
{
    int rc = take_list(lists.variables, "job_variables", variables, err);
    if (rc == 0) {
        rc = take_list(lists.roots, "data_roots", roots, err);
    }
    rc = rc < 0 ? rc : check_absolute(lists.roots, "data_roots", err);
    rc = rc < 0 ? rc : take_list(lists.programs, "data_programs", programs, err);
    return rc < 0 || strcmp(lists.programs, NO_PROGRAMS) == 0
               ? rc
               : check_absolute(lists.programs, "data_programs", err);
}
