/* as_scheduler.c - MS_ROLE=MS_SCHED: this process becomes the scheduler */
#include "libworker/program/as_scheduler.h"

#include "config.h"
#include "libworker/host/cpuset.h"
#include "proto/folder.h"
#include "proto/macros.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char program[] = "msschedd";
static const char installed[] = MSCHED_BINDIR "/msschedd";

/* ---- words --------------------------------------------------------------------------------------
 */

/* The setting that a word names; all have a value, behind = or in the next word. */
static const struct ms_setting *setting_of(const struct ms_setting *settings, const char *word)
{
    const size_t n = strcspn(word, "=");
    for (; settings->key != NULL; settings++) {
        if (settings->flag != NULL && strlen(settings->flag) == n &&
            strncmp(settings->flag, word, n) == 0) {
            return settings;
        }
    }
    return NULL;
}

static int is_scheduler_too(const struct ms_setting *setting)
{
    return strcmp(setting->key, "log_level") == 0;
}

int as_scheduler_words(const struct ms_setting *settings, int argc, char *const *argv,
                       const char **ret)
{
    int n = 0;
    ret[n++] = program;
    for (int at = 1; at < argc; at++) {
        const struct ms_setting *setting = setting_of(settings, argv[at]);
        const int has_next = setting != NULL && strchr(argv[at], '=') == NULL && at + 1 < argc;
        if (setting == NULL || is_scheduler_too(setting)) {
            ret[n++] = argv[at];
            if (has_next) {
                ret[n++] = argv[at + 1];
            }
        }
        at += has_next;
    }
    ret[n] = NULL;
    return n;
}

/* A worker of `msctl run` is told its folder and no job. */
static int is_of_run(const struct ms_setting *settings, int argc, char *const *argv)
{
    int has_folder = 0;
    int has_job = 0;
    for (int at = 1; at < argc; at++) {
        const struct ms_setting *setting = setting_of(settings, argv[at]);
        has_folder |= setting != NULL && strcmp(setting->key, "run_dir") == 0;
        has_job |= setting == NULL && argv[at][0] != '-';
        at += setting != NULL && strchr(argv[at], '=') == NULL;
    }
    return has_folder && !has_job;
}

static int is_about_msworker(int argc, char *const *argv)
{
    static const char *const words[] = {"--help", "-h", "--version"};
    for (int at = 1; at < argc; at++) {
        for (size_t i = 0; i < MS_ARRAY_SIZE(words); i++) {
            if (strcmp(argv[at], words[i]) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

int as_scheduler_is_asked(const struct ms_setting *settings, int argc, char *const *argv)
{
    const char *role = getenv("MS_ROLE");
    return role != NULL && strcmp(role, "MS_SCHED") == 0 && !is_about_msworker(argc, argv) &&
           !is_of_run(settings, argc, argv);
}

/* ---- where it is --------------------------------------------------------------------------------
 */

static int is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* ret: below/msschedd in the folder of the program self. */
static int try_beside(const char *self, const char *below, char *ret, size_t size)
{
    char folder[PATH_MAX];
    const int n =
        snprintf(ret, size, "%s/%s%s", ms_folder_of(self, folder, sizeof(folder)), below, program);
    return n > 0 && (size_t)n < size && is_program(ret);
}

int as_scheduler_find(const char *argv0, char *ret, size_t size, struct ms_err *err)
{
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        self[0] = '\0';
    }
    const char *own = self[0] != '\0' ? self : argv0;
    if ((strchr(argv0, '/') != NULL && try_beside(argv0, "", ret, size)) ||
        try_beside(own, "../daemon/", ret, size) || try_beside(own, "", ret, size)) {
        return 0;
    }
    const int rc = ms_fail(err, MS_E_NOT_FOUND,
                           "MS_ROLE=MS_SCHED makes this process the scheduler, msschedd, which is "
                           "neither %.120s nor %.100s: install it there, or start it by its path",
                           ret, installed);
    snprintf(ret, size, "%s", installed);
    return is_program(ret) ? 0 : rc;
}

int as_scheduler_run(const struct ms_setting *settings, int argc, char *const *argv,
                     struct ms_err *err)
{
    char path[PATH_MAX + 32];
    int rc = as_scheduler_find(argv[0] != NULL ? argv[0] : "", path, sizeof(path), err);
    if (rc < 0) {
        return rc;
    }
    const char **words = calloc((size_t)argc + 1, sizeof(*words));
    if (words == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory to run %.200s", path);
    }
    as_scheduler_words(settings, argc, argv, words);
    const struct cpuset given = cpuset_of_team(); /* OpenMP has bound us to its first place */
    (void)cpuset_bind_thread(&given);
    (void)execv(path, (char *const *)words);
    rc = ms_fail_errno(err, MS_E_IO, "MS_ROLE=MS_SCHED: cannot run %.200s", path);
    free(words);
    return rc;
}
