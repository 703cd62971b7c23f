/* ms_env.h - the MS_* environment of MindSpore's dynamic cluster, as one table
 *
 * Both msschedd and msworker read it here, so that a variable means the same on both sides. The
 * table holds meaning, default and legal range; a value outside is refused with variable, value and
 * range. docs/man and the start-up line come from the same rows. What is in force goes into that
 * line; what is set in vain goes into another one (ms_env_unused). */
#ifndef MS_ENV_H
#define MS_ENV_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ms_env_id {
    MS_ENV_ROLE,
    MS_ENV_SCHED_HOST,
    MS_ENV_SCHED_PORT,
    MS_ENV_WORKER_NUM,
    MS_ENV_SERVER_NUM,
    MS_ENV_NODE_ID,
    MS_ENV_WORKER_IP,
    MS_ENV_TOPO_TIMEOUT,
    MS_ENV_NODE_TIMEOUT,
    MS_ENV_RECEIVE_MSG_TIMEOUT,
    MS_ENV_DISABLE_HEARTBEAT,
    MS_ENV_ENABLE_RECOVERY,
    MS_ENV_RECOVERY_PATH,
    MS_ENV_ENABLE_SSL,
    MS_ENV_TLS_CONFIG,
    MS_ENV_CLUSTER_RETRY_NUM,
    MS_ENV_RETRY_INTERVAL_LOWER,
    MS_ENV_RETRY_INTERVAL_UPPER,
    MS_ENV_HCCL_CM_INIT,
    MS_ENV_COUNT
};

/* Which process reads the environment; a bit each, as `required` and `used_by` have them. */
enum ms_env_reader { MS_ENV_SCHEDULER = 1, MS_ENV_WORKER = 2 };

enum ms_env_type { MS_ENV_TEXT, MS_ENV_NAME, MS_ENV_IP, MS_ENV_INT, MS_ENV_SECONDS, MS_ENV_ONE_OF };

struct ms_env_var {
    const char *name;
    enum ms_env_type type;
    int64_t min, max;    /* INT, SECONDS (negative SECONDS always mean "without limit") */
    const char *choices; /* ONE_OF: "0|1" */
    const char *builtin; /* NULL: none */
    unsigned required;   /* enum ms_env_reader, or-ed */
    unsigned used_by;    /* likewise: whose doings it changes; 0: legal, and of no effect */
    const char *legal;   /* the range in words */
    const char *meaning; /* one line, for the man pages */
    const char *refused; /* a legal value that this version cannot honour ... */
    const char *why;     /* ... and why not, with the next step */
};

struct ms_env_value {
    char text[MS_PATH_MAX + 1]; /* "" when neither set nor built in */
    int64_t number;             /* INT, SECONDS; ONE_OF: index of the choice; else 0 */
    int is_set;                 /* in the environment, and not empty */
};

struct ms_env {
    enum ms_env_reader reader;
    struct ms_env_value value[MS_ENV_COUNT];
};

/* Row of the table; never NULL for a legal id. Any thread. */
const struct ms_env_var *ms_env_var(enum ms_env_id id);

/* True when MS_ROLE is set and not empty: the process belongs to a dynamic cluster. */
int ms_env_is_dynamic(void);

/* Reads and validates every variable of the table. An empty variable counts as unset, as in
 * MindSpore. MS_E_CONFIG names variable, value and legal range. */
int ms_env_load(enum ms_env_reader reader, struct ms_env *ret, struct ms_err *err);

const char *ms_env_text(const struct ms_env *env, enum ms_env_id id); /* "" when unset */
int64_t ms_env_int(const struct ms_env *env, enum ms_env_id id);
/* SECONDS as milliseconds; -1: without limit. */
int64_t ms_env_ms(const struct ms_env *env, enum ms_env_id id);

/* Milliseconds within which a worker must have registered: MS_TOPO_TIMEOUT, and where it is set
 * MS_CLUSTER_RETRY_NUM times MS_CLUSTER_RETRY_S; the less of them. -1: without limit. */
int64_t ms_env_register_ms(const struct ms_env *env);
/* The name of that one which decided. */
const char *ms_env_register_by(const struct ms_env *env);
/* Milliseconds for which a worker that has a rank, and does nothing more without its scheduler's
 * word, waits for that one: MS_TOPO_TIMEOUT, at least what is built in, for a short one is meant
 * for the beginning; or, where it is set, MS_CLUSTER_RETRY_NUM times MS_CLUSTER_RETRY_S. 0: without
 * limit. */
int64_t ms_env_word_ms(const struct ms_env *env);
const char *ms_env_word_by(const struct ms_env *env); /* likewise */
/* Folder for the scheduler's database; "": none is kept. */
const char *ms_env_recovery_path(const struct ms_env *env);

/* The values that are in force in this process as `NAME=value` pairs on one line, quoted where
 * needed, for the start-up log line; cut to fit. Returns buf. */
const char *ms_env_format(const struct ms_env *env, char *buf, size_t size);
/* One line a variable: NAME = value   # from: environment, built-in, unset. For --check-config. */
void ms_env_print(const struct ms_env *env, FILE *out);

/* A variable of the environment that begins with MS_, is not in the table, but is so near to one of
 * its rows that it looks mistyped: returns its name (borrowed from environ) and the row's, or NULL.
 * start: 0, then the last *ret_next. */
const char *ms_env_mistyped(size_t start, size_t *ret_next, const char **ret_nearest);

/* What a start script sets and no program of msched uses, with what replaces it: "RANK_ID
 * (MS_NODE_ID instead), GRAPH_OP_RUN"; "" nothing of that. Of the variables of MindSpore's other
 * ways to start, and in a dynamic cluster of the table above; cut to fit. Returns buf. */
const char *ms_env_unused(char *buf, size_t size);

#endif
