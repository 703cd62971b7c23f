/* ms_env.c - the MS_* environment of MindSpore's dynamic cluster, as one table */
#include "proto/ms_env.h"

#include "proto/log.h"
#include "proto/nearest.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOTH (MS_ENV_SCHEDULER | MS_ENV_WORKER)

/* Names, meanings and defaults: the dynamic cluster document (its 2.2 edition, whose timeouts are
 * the long ones). Where MindSpore's code is laxer than its document, the document holds. */
static const struct ms_env_var vars[MS_ENV_COUNT] = {
    [MS_ENV_ROLE] = {.name = "MS_ROLE",
                     .type = MS_ENV_ONE_OF,
                     .choices = "MS_SCHED|MS_WORKER|MS_PSERVER",
                     .required = BOTH,
                     .used_by = BOTH,
                     .legal = "MS_SCHED or MS_WORKER",
                     .meaning = "role of this process in a dynamic cluster",
                     .refused = "MS_PSERVER",
                     .why = "there are no parameter servers here: gradients go from worker to "
                            "worker; start this process with MS_ROLE=MS_WORKER"},
    [MS_ENV_SCHED_HOST] = {.name = "MS_SCHED_HOST",
                           .type = MS_ENV_NAME,
                           .max = MS_HOST_MAX,
                           .required = BOTH,
                           .used_by = BOTH,
                           .legal = "an IPv4 or IPv6 address, or a host name",
                           .meaning = "address of the scheduler: it binds it, workers connect"},
    [MS_ENV_SCHED_PORT] = {.name = "MS_SCHED_PORT",
                           .type = MS_ENV_INT,
                           .min = 1024,
                           .max = 65535,
                           .required = BOTH,
                           .used_by = BOTH,
                           .legal = "1024 to 65535",
                           .meaning = "TCP port of the scheduler"},
    [MS_ENV_WORKER_NUM] = {.name = "MS_WORKER_NUM",
                           .type = MS_ENV_INT,
                           .min = 1,
                           .max = MS_WORKERS_MAX,
                           .required = BOTH,
                           .used_by = BOTH,
                           .legal = "1 to 1024",
                           .meaning = "number of workers, the same in every process"},
    [MS_ENV_SERVER_NUM] = {.name = "MS_SERVER_NUM",
                           .type = MS_ENV_INT,
                           .min = 0,
                           .max = 0,
                           .builtin = "0",
                           .used_by = BOTH,
                           .legal = "0, for there are no parameter servers here",
                           .meaning = "number of parameter servers"},
    [MS_ENV_NODE_ID] = {.name = "MS_NODE_ID",
                        .type = MS_ENV_NAME,
                        .max = MS_NAME_MAX,
                        .used_by = MS_ENV_WORKER,
                        .legal = "up to 64 letters, digits, and . _ - :",
                        .meaning = "unique id of this worker; where all are numbers, its rank"},
    [MS_ENV_WORKER_IP] = {.name = "MS_WORKER_IP",
                          .type = MS_ENV_IP,
                          .used_by = MS_ENV_WORKER,
                          .legal = "an IPv4 or IPv6 address of this host",
                          .meaning = "address at which other workers reach this one"},
    [MS_ENV_TOPO_TIMEOUT] = {.name = "MS_TOPO_TIMEOUT",
                             .type = MS_ENV_SECONDS,
                             .min = 1,
                             .max = 604800,
                             .builtin = "1800",
                             .used_by = BOTH,
                             .legal = "1 to 604800 seconds, or negative for ever",
                             .meaning = "time within which all workers must have registered"},
    [MS_ENV_NODE_TIMEOUT] = {.name = "MS_NODE_TIMEOUT",
                             .type = MS_ENV_SECONDS,
                             .min = 1,
                             .max = 3600,
                             .builtin = "600",
                             .used_by = BOTH,
                             .legal = "1 to 3600 seconds, or negative for ever",
                             .meaning = "a node that is silent for longer is lost"},
    [MS_ENV_RECEIVE_MSG_TIMEOUT] = {.name = "MS_RECEIVE_MSG_TIMEOUT",
                                    .type = MS_ENV_SECONDS,
                                    .min = 1,
                                    .max = 86400,
                                    .builtin = "600",
                                    .used_by = MS_ENV_WORKER,
                                    .legal = "1 to 86400 seconds, or negative for ever",
                                    .meaning =
                                        "a worker gives up another one that makes no progress "
                                        "for so long"},
    [MS_ENV_DISABLE_HEARTBEAT] = {.name = "MS_DISABLE_HEARTBEAT",
                                  .type = MS_ENV_ONE_OF,
                                  .choices = "0|1",
                                  .builtin = "0",
                                  .used_by = BOTH,
                                  .legal = "0 or 1",
                                  .meaning =
                                      "1: silence never makes a node lost, nor the scheduler (for "
                                      "debuggers)"},
    [MS_ENV_ENABLE_RECOVERY] = {.name = "MS_ENABLE_RECOVERY",
                                .type = MS_ENV_ONE_OF,
                                .choices = "0|1",
                                .builtin = "0",
                                .used_by = BOTH,
                                .legal = "0 or 1",
                                .meaning = "1: the loss of a worker does not end the job; the "
                                           "same in every process"},
    [MS_ENV_RECOVERY_PATH] = {.name = "MS_RECOVERY_PATH",
                              .type = MS_ENV_TEXT,
                              .max = MS_PATH_MAX,
                              .used_by = MS_ENV_SCHEDULER,
                              .legal = "an absolute path of a folder",
                              .meaning = "folder of the scheduler's database, with which a dead "
                                         "scheduler comes back; for MS_ENABLE_RECOVERY=1"},
    [MS_ENV_ENABLE_SSL] = {.name = "MS_ENABLE_SSL",
                           .type = MS_ENV_ONE_OF,
                           .choices = "0|1",
                           .used_by = BOTH,
                           .legal = "0 or 1",
                           .meaning = "0: plain TCP, in so many words; 1: TLS or nothing; unset: "
                                      "TLS, plain only on loopback without certificates"},
    [MS_ENV_TLS_CONFIG] = {.name = "MS_TLS_CONFIG",
                           .type = MS_ENV_TEXT,
                           .max = MS_PATH_MAX,
                           .used_by = BOTH,
                           .legal = "the path of a JSON file",
                           .meaning = "JSON file with server_cert_path, client_cert_path, "
                                      "ca_cert_path, crl_path, cipher_list, "
                                      "cert_expire_warning_time_in_day, "
                                      "cert_check_interval_in_hour, password_file"},
    [MS_ENV_CLUSTER_RETRY_NUM] = {.name = "MS_CLUSTER_RETRY_NUM",
                                  .type = MS_ENV_INT,
                                  .min = 1,
                                  .max = 1000000,
                                  .used_by = MS_ENV_WORKER,
                                  .legal = "1 to 1000000",
                                  .meaning =
                                      "a worker tries to register for so many times 3 seconds, "
                                      "and not longer than MS_TOPO_TIMEOUT"},
    [MS_ENV_RETRY_INTERVAL_LOWER] = {.name = "MS_RETRY_INTERVAL_LOWER",
                                     .type = MS_ENV_INT,
                                     .min = 0,
                                     .max = 3600,
                                     .legal = "0 to 3600 seconds",
                                     .meaning = "no effect: nothing polls here"},
    [MS_ENV_RETRY_INTERVAL_UPPER] = {.name = "MS_RETRY_INTERVAL_UPPER",
                                     .type = MS_ENV_INT,
                                     .min = 0,
                                     .max = 3600,
                                     .legal = "0 to 3600 seconds",
                                     .meaning = "no effect: nothing polls here"},
    [MS_ENV_HCCL_CM_INIT] = {.name = "MS_HCCL_CM_INIT",
                             .type = MS_ENV_TEXT,
                             .max = 64,
                             .legal = "any text",
                             .meaning = "no effect: it is for Ascend"},
};

const struct ms_env_var *ms_env_var(enum ms_env_id id)
{
    return &vars[id];
}

int ms_env_is_dynamic(void)
{
    const char *role = getenv("MS_ROLE");
    return role != NULL && role[0] != '\0';
}

static int refuse(const struct ms_env_var *var, const char *text, struct ms_err *err)
{
    char quoted[96];
    return ms_fail(err, MS_E_CONFIG, "%s=%s is not legal: it must be %s", var->name,
                   ms_log_quote(quoted, sizeof(quoted), text), var->legal);
}

/* Decimal only: what strtoll takes beyond that (blanks, 0x, a tail) is a typing error here. */
static int parse_number(const char *text, int64_t *ret)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return -1;
    }
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0) {
        return -1;
    }
    *ret = value;
    return 0;
}

/* Index of text in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *text)
{
    size_t want = strlen(text);
    int index = 0;
    for (const char *at = choices; *at != '\0'; index++) {
        size_t n = strcspn(at, "|");
        if (n == want && strncmp(at, text, n) == 0) {
            return index;
        }
        at += at[n] == '|' ? n + 1 : n;
    }
    return -1;
}

static int is_name(const char *text, size_t max)
{
    if (strlen(text) > max) {
        return 0;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && strchr("._-:%", *p) == NULL) {
            return 0;
        }
    }
    return 1;
}

static int is_text(const char *text, size_t max)
{
    if (strlen(text) > max) {
        return 0;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if (iscntrl((unsigned char)*p)) {
            return 0;
        }
    }
    return 1;
}

static int is_ip(const char *text)
{
    struct in6_addr unused;
    return inet_pton(AF_INET, text, &unused) == 1 || inet_pton(AF_INET6, text, &unused) == 1;
}

static int check(const struct ms_env_var *var, const char *text, int64_t *ret_number,
                 struct ms_err *err)
{
    int64_t number = 0;
    int good = 0;
    switch (var->type) {
    case MS_ENV_TEXT:
        good = is_text(text, (size_t)var->max);
        break;
    case MS_ENV_NAME:
        good = is_name(text, (size_t)var->max);
        break;
    case MS_ENV_IP:
        good = is_ip(text);
        break;
    case MS_ENV_INT:
        good = parse_number(text, &number) == 0 && number >= var->min && number <= var->max;
        break;
    case MS_ENV_SECONDS:
        good = parse_number(text, &number) == 0 &&
               (number < 0 || (number >= var->min && number <= var->max));
        break;
    case MS_ENV_ONE_OF:
        number = find_choice(var->choices, text);
        good = number >= 0;
        break;
    }
    if (!good) {
        return refuse(var, text, err);
    }
    if (var->refused != NULL && strcmp(text, var->refused) == 0) {
        return ms_fail(err, MS_E_CONFIG, "%s=%s: %s", var->name, text, var->why);
    }
    *ret_number = number;
    return 0;
}

static int load_one(const struct ms_env_var *var, enum ms_env_reader reader,
                    struct ms_env_value *value, struct ms_err *err)
{
    const char *text = getenv(var->name);
    value->is_set = text != NULL && text[0] != '\0';
    if (!value->is_set) {
        text = var->builtin;
    }
    if (text == NULL) {
        if ((var->required & (unsigned)reader) != 0) {
            return ms_fail(err, MS_E_CONFIG, "%s is not set: set it to %s (%s)", var->name,
                           var->legal, var->meaning);
        }
        return 0;
    }
    int rc = check(var, text, &value->number, err);
    if (rc == 0) {
        snprintf(value->text, sizeof(value->text), "%s", text);
    }
    return rc;
}

/* What needs more than one row. */
static int check_together(const struct ms_env *env, enum ms_env_reader reader, struct ms_err *err)
{
    const char *want = reader == MS_ENV_SCHEDULER ? "MS_SCHED" : "MS_WORKER";
    if (strcmp(ms_env_text(env, MS_ENV_ROLE), want) != 0) {
        return ms_fail(
            err, MS_E_CONFIG, "MS_ROLE=%s, but this program is the %s: set MS_ROLE=%s, or start %s",
            ms_env_text(env, MS_ENV_ROLE), reader == MS_ENV_SCHEDULER ? "scheduler" : "worker",
            want, reader == MS_ENV_SCHEDULER ? "msworker" : "msschedd");
    }
    if (ms_env_int(env, MS_ENV_RETRY_INTERVAL_LOWER) >
            ms_env_int(env, MS_ENV_RETRY_INTERVAL_UPPER) &&
        env->value[MS_ENV_RETRY_INTERVAL_UPPER].is_set) {
        return ms_fail(err, MS_E_CONFIG,
                       "MS_RETRY_INTERVAL_LOWER=%s is above MS_RETRY_INTERVAL_UPPER=%s",
                       ms_env_text(env, MS_ENV_RETRY_INTERVAL_LOWER),
                       ms_env_text(env, MS_ENV_RETRY_INTERVAL_UPPER));
    }
    if (env->value[MS_ENV_RECOVERY_PATH].is_set &&
        ms_env_text(env, MS_ENV_RECOVERY_PATH)[0] != '/') {
        return refuse(&vars[MS_ENV_RECOVERY_PATH], ms_env_text(env, MS_ENV_RECOVERY_PATH), err);
    }
    if (env->value[MS_ENV_ENABLE_SSL].is_set && ms_env_int(env, MS_ENV_ENABLE_SSL) == 1 &&
        !env->value[MS_ENV_TLS_CONFIG].is_set) {
        return ms_fail(err, MS_E_CONFIG,
                       "MS_ENABLE_SSL=1 needs certificates: name them with "
                       "MS_TLS_CONFIG=/path/to/tls.json, or switch TLS off with MS_ENABLE_SSL=0");
    }
    return 0;
}

int ms_env_load(enum ms_env_reader reader, struct ms_env *ret, struct ms_err *err)
{
    struct ms_env *env = calloc(1, sizeof(*env));
    if (env == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the environment");
    }
    int rc = 0;
    env->reader = reader;
    for (size_t i = 0; i < MS_ENV_COUNT && rc == 0; i++) {
        rc = load_one(&vars[i], reader, &env->value[i], err);
    }
    if (rc == 0) {
        rc = check_together(env, reader, err);
    }
    if (rc == 0) {
        *ret = *env;
    }
    free(env);
    return rc;
}

const char *ms_env_text(const struct ms_env *env, enum ms_env_id id)
{
    return env->value[id].text;
}

int64_t ms_env_int(const struct ms_env *env, enum ms_env_id id)
{
    return env->value[id].number;
}

int64_t ms_env_ms(const struct ms_env *env, enum ms_env_id id)
{
    int64_t seconds = env->value[id].number;
    return seconds < 0 ? -1 : seconds * 1000;
}

static int64_t tries_ms_of(const struct ms_env *env)
{
    return ms_env_int(env, MS_ENV_CLUSTER_RETRY_NUM) * MS_CLUSTER_RETRY_S * 1000;
}

int64_t ms_env_register_ms(const struct ms_env *env)
{
    const int64_t topo_ms = ms_env_ms(env, MS_ENV_TOPO_TIMEOUT);
    const int64_t tries_ms = tries_ms_of(env);
    return tries_ms > 0 && (topo_ms < 0 || tries_ms < topo_ms) ? tries_ms : topo_ms;
}

const char *ms_env_register_by(const struct ms_env *env)
{
    const int is_tries = ms_env_register_ms(env) != ms_env_ms(env, MS_ENV_TOPO_TIMEOUT);
    return vars[is_tries ? MS_ENV_CLUSTER_RETRY_NUM : MS_ENV_TOPO_TIMEOUT].name;
}

const char *ms_env_word_by(const struct ms_env *env)
{
    return vars[tries_ms_of(env) > 0 ? MS_ENV_CLUSTER_RETRY_NUM : MS_ENV_TOPO_TIMEOUT].name;
}

int64_t ms_env_word_ms(const struct ms_env *env)
{
    const int64_t tries_ms = tries_ms_of(env);
    const int64_t topo_ms = ms_env_ms(env, MS_ENV_TOPO_TIMEOUT);
    const int64_t least_ms = MS_TOPO_TIMEOUT_S * 1000LL;
    return tries_ms > 0 ? tries_ms : topo_ms < 0 ? 0 : topo_ms > least_ms ? topo_ms : least_ms;
}

const char *ms_env_recovery_path(const struct ms_env *env)
{
    return ms_env_int(env, MS_ENV_ENABLE_RECOVERY) == 1 ? ms_env_text(env, MS_ENV_RECOVERY_PATH)
                                                        : "";
}

static int is_in_force(const struct ms_env *env, size_t i)
{
    return env->value[i].text[0] != '\0' && (vars[i].used_by & (unsigned)env->reader) != 0 &&
           (i != MS_ENV_RECOVERY_PATH || ms_env_recovery_path(env)[0] != '\0');
}

const char *ms_env_format(const struct ms_env *env, char *buf, size_t size)
{
    size_t used = 0;
    if (size == 0) {
        return buf;
    }
    buf[0] = '\0';
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        const struct ms_env_value *value = &env->value[i];
        if (!is_in_force(env, i)) {
            continue;
        }
        char quoted[MS_PATH_MAX + 8];
        const char *text = is_name(value->text, sizeof(value->text))
                               ? value->text
                               : ms_log_quote(quoted, sizeof(quoted), value->text);
        int n =
            snprintf(buf + used, size - used, "%s%s=%s", used == 0 ? "" : " ", vars[i].name, text);
        if (n < 0 || (size_t)n >= size - used) {
            buf[used] = '\0';
            break;
        }
        used += (size_t)n;
    }
    return buf;
}

void ms_env_print(const struct ms_env *env, FILE *out)
{
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        const struct ms_env_value *value = &env->value[i];
        const char *from = value->is_set ? "environment" : vars[i].builtin ? "built-in" : "unset";
        const char *whose = (vars[i].used_by & (unsigned)env->reader) != 0 ? ""
                            : vars[i].used_by == MS_ENV_WORKER             ? "of workers: "
                            : vars[i].used_by == MS_ENV_SCHEDULER          ? "of the scheduler: "
                                                                           : "";
        fprintf(out, "%s = %s   # from: %s; legal: %s; %s%s\n", vars[i].name, value->text, from,
                vars[i].legal, whose, vars[i].meaning);
    }
}

const char *ms_env_mistyped(size_t start, size_t *ret_next, const char **ret_nearest)
{
    const char *names[MS_ENV_COUNT];
    for (size_t i = 0; i < MS_ENV_COUNT; i++) {
        names[i] = vars[i].name;
    }
    for (size_t i = start; environ[i] != NULL; i++) {
        static char name[MS_NAME_MAX];
        size_t n = strcspn(environ[i], "=");
        if (strncmp(environ[i], "MS_", 3) != 0 || n >= sizeof(name)) {
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = '\0';
        int known = 0;
        for (size_t k = 0; k < MS_ENV_COUNT; k++) {
            known |= strcmp(names[k], name) == 0;
        }
        const char *nearest = known ? NULL : ms_nearest(name, names, MS_ENV_COUNT);
        if (nearest != NULL) {
            *ret_next = i + 1;
            *ret_nearest = nearest;
            return name;
        }
    }
    return NULL;
}
