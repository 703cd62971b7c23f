/* ms_env_unused.c - what MindSpore's start scripts set and nothing here uses, with what replaces it
 */
#include "proto/ms_env.h"

#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the other ways to start MindSpore: a rank table, sink mode, the log of glog. */
static const struct {
    const char *name;
    const char *note; /* what replaces it; NULL: nothing, and nothing is missing */
} strangers[] = {
    {"RANK_TABLE_FILE", "MS_SCHED_HOST, MS_SCHED_PORT and MS_NODE_ID instead"},
    {"RANK_ID", "MS_NODE_ID instead"},
    {"RANK_SIZE", "MS_WORKER_NUM instead"},
    {"DEVICE_ID", NULL},
    {"GRAPH_OP_RUN", NULL},
    {"HCCL_WHITELIST_DISABLE", NULL},
    {"GLOG_v", "--log-level instead"},
    {"GLOG_log_dir", "standard error and --run-dir instead"},
};

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

static int find_stranger(const char *name, const char **ret_note)
{
    *ret_note = NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(strangers); i++) {
        if (strcmp(strangers[i].name, name) == 0) {
            *ret_note = strangers[i].note;
            return 1;
        }
    }
    /* all of them are of one library, which is not here; any other character would break the line
     */
    return strncmp(name, "GLOG_", 5) == 0 && name[strspn(name, letters)] == '\0';
}

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

static int recovers(void)
{
    const char *value = getenv(ms_env_var(MS_ENV_ENABLE_RECOVERY)->name);
    return value != NULL && strcmp(value, "1") == 0;
}

/* Cut between two names. */
static void append(char *buf, size_t size, const char *name, const char *note)
{
    const size_t used = strlen(buf);
    const int n =
        snprintf(buf + used, size - used, "%s%s%s%s%s", used > 0 ? ", " : "", name,
                 note != NULL ? " (" : "", note != NULL ? note : "", note != NULL ? ")" : "");
    if (n < 0 || (size_t)n >= size - used) {
        buf[used] = '\0';
    }
}

static void append_strangers(char *buf, size_t size)
{
    for (size_t i = 0; environ[i] != NULL; i++) {
        char name[MS_NAME_MAX];
        const size_t n = strcspn(environ[i], "=");
        if (n >= sizeof(name) || environ[i][n] == '\0') {
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = '\0';
        const char *note = NULL;
        if (find_stranger(name, &note) && is_set(name)) {
            append(buf, size, name, note);
        }
    }
}

const char *ms_env_unused(char *buf, size_t size)
{
    if (size == 0) {
        return buf;
    }
    buf[0] = '\0';
    append_strangers(buf, size);
    for (size_t i = 0; ms_env_is_dynamic() && i < MS_ENV_COUNT; i++) {
        const struct ms_env_var *var = ms_env_var((enum ms_env_id)i);
        if (var->used_by == 0 && is_set(var->name)) {
            append(buf, size, var->name, NULL);
        }
        if (i == MS_ENV_RECOVERY_PATH && is_set(var->name) && !recovers()) {
            append(buf, size, var->name, "without MS_ENABLE_RECOVERY=1");
        }
    }
    return buf;
}
