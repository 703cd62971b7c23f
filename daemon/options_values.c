/* options_values.c - what the settings of a mode come to: each value judged, with its next step */
#include "daemon/options_private.h"

#include "config.h"
#include "daemon/socket_group.h"
#include "proto/addr.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Nothing behind the = is more often a forgotten value than a wish: who wants none says so.
 * instead: what belongs there. */
static int put(const struct ms_settings *settings, const char *key, const char *instead, char *buf,
               size_t size, struct ms_err *err)
{
    const char *text = ms_settings_string(settings, key);
    if (text != NULL && text[0] == '\0') {
        return ms_fail(err, MS_E_CONFIG, "%s is empty: write %s", key, instead);
    }
    if (text == NULL || strcmp(text, "none") == 0) {
        text = "";
    }
    if (strlen(text) >= size) {
        return ms_fail(err, MS_E_CONFIG, "%s is longer than %zu bytes", key, size - 1);
    }
    memcpy(buf, text, strlen(text) + 1);
    return 0;
}

/* ---- certificates -------------------------------------------------------------------------------
 */

static enum options_tls tls_of(const char *word)
{
    if (strcmp(word, "off") == 0 || strcmp(word, "0") == 0) {
        return OPTIONS_TLS_OFF;
    }
    return strcmp(word, "auto") == 0 ? OPTIONS_TLS_AUTO : OPTIONS_TLS_ON;
}

/* A built-in path is a place to look at, a path that somebody wrote must exist. What is there and
 * may not be looked at is there: its reader says so. */
static int is_place(const struct ms_settings *settings, const char *key)
{
    return ms_settings_source(settings, key) == MS_FROM_BUILTIN;
}

static int is_there(const struct ms_settings *settings, const char *key)
{
    const char *path = ms_settings_string(settings, key);
    return path != NULL && strcmp(path, "none") != 0 &&
           (!is_place(settings, key) || access(path, F_OK) == 0 ||
            (errno != ENOENT && errno != ENOTDIR));
}

static int read_files(struct options *options, struct ms_err *err)
{
    const struct ms_settings *settings = options->settings;
    struct ms_tls_files *files = &options->files;
    const char *json = ms_settings_string(settings, "tls_config");
    if (options->tls == OPTIONS_TLS_OFF) {
        return 0;
    }
    if (json != NULL && json[0] != '\0') {
        return ms_tls_files_parse(json, 1, files, err);
    }
    if (options->tls == OPTIONS_TLS_AUTO && !is_there(settings, "tls_cert")) {
        return 0;
    }
    files->expire_warning_days = (int)ms_settings_int(settings, "tls_expire_warning_days");
    int rc = put(settings, "tls_cert",
                 "the path of certificate and key (node.p12), or none, which allows plain TCP on "
                 "loopback only",
                 files->p12_path, sizeof(files->p12_path), err);
    if (rc == 0) {
        rc = put(settings, "tls_ca", "the path of the CA's certificate (ca.crt)", files->ca_path,
                 sizeof(files->ca_path), err);
    }
    if (rc == 0) {
        files->crl_may_miss = is_place(settings, "tls_crl");
        rc = put(settings, "tls_crl",
                 "the path of the list of revoked certificates (crl.pem), or none: then who was "
                 "revoked gets in",
                 files->crl_path, sizeof(files->crl_path), err);
    }
    if (rc == 0) {
        rc = ms_tls_files_password(ms_settings_string(settings, "tls_password_file"), files, err);
    }
    return rc;
}

int options_use_tls(const struct options *options, const char *address, int is_loopback,
                    struct ms_err *err)
{
    if (options->tls == OPTIONS_TLS_OFF) {
        return 0;
    }
    if (options->files.p12_path[0] != '\0') {
        return 1;
    }
    if (options->tls == OPTIONS_TLS_AUTO && is_loopback) {
        return 0;
    }
    const char *place = options->settings != NULL && options->env == NULL
                            ? ms_settings_string(options->settings, "tls_cert")
                            : NULL;
    return ms_fail(err, MS_E_CONFIG,
                   "%s can be reached by others and there is no certificate%s%s: %s", address,
                   place != NULL ? " at " : "", place != NULL ? place : "",
                   options_tls_advice(options));
}

const char *options_tls_advice(const struct options *options)
{
    return options->env != NULL
               ? "name one with MS_TLS_CONFIG=/path/to/tls.json (msctl certs makes them), or "
                 "switch TLS off on both sides with MS_ENABLE_SSL=0"
               : "msctl certs init, certs issue scheduler HOST and certs install HOST.p12 make "
                 "and place one, or say tls = off in " OPTIONS_CONFIG_FILE " and on all nodes";
}

int options_check_s(const struct options *options)
{
    int hours = options->files.check_interval_hours;
    return (hours > 0 ? hours : 24) * 3600;
}

/* ---- all of a mode ------------------------------------------------------------------------------
 */

/* Who is who, and who may what. Nodes of `msctl run` share a certificate and have numbers for ids.
 */
static int read_who(struct options *options, struct ms_err *err)
{
    const struct ms_settings *settings = options->settings;
    struct sched_config *sched = &options->sched;
    int rc = who_parse_roles(ms_settings_string(settings, "anyone"), &options->anyone_roles, err);
    if (rc == 0) {
        rc = who_parse_map(ms_settings_string(settings, "user_map"), &options->user_map, err);
    }
    if (rc == 0) {
        rc = who_parse_range(ms_settings_string(settings, "priority_users"),
                             &sched->priority_users_min, &sched->priority_users_max, err);
    }
    if (sched->mode == SCHED_STANDING) {
        sched->specs_mib = (uint32_t)ms_settings_int(settings, "specs_mib");
        sched->specs_owner_mib = (uint32_t)ms_settings_int(settings, "specs_owner_mib");
        sched->certificate_ids = ms_settings_int(settings, "node_ids") == 0;
        sched->nodes_per_certificate = (uint32_t)ms_settings_int(settings, "nodes_per_certificate");
    }
    return rc;
}

int options_from_settings(struct options *options, struct ms_err *err)
{
    const struct ms_settings *settings = options->settings;
    int rc = put(settings, "listen",
                 "host:port ([::]:port for all addresses of this host), or none for the Unix "
                 "socket alone",
                 options->listen, sizeof(options->listen), err);
    if (rc == 0) {
        rc = put(settings, "socket",
                 "an absolute path (/run/msched/msschedd.sock), or none for TCP alone",
                 options->socket, sizeof(options->socket), err);
    }
    if (rc == 0) {
        rc = put(settings, "database", "the path of the file that keeps the jobs",
                 options->database, sizeof(options->database), err);
    }
    if (rc == 0 && options->database[0] == '\0') {
        rc = ms_fail(err, MS_E_CONFIG,
                     "database is none: write the path of the file that keeps the jobs");
    }
    if (rc == 0 && options->listen[0] == '\0' && options->socket[0] == '\0') {
        rc = ms_fail(err, MS_E_CONFIG, "listen and socket are both none: nobody could connect");
    }
    if (rc == 0 && options->socket[0] != '\0' && options->socket[0] != '/' &&
        !is_place(settings, "socket")) {
        rc = ms_fail(err, MS_E_CONFIG,
                     "socket = %.80s: write an absolute path, which begins with / "
                     "(/run/msched/msschedd.sock), or none",
                     options->socket);
    }
    if (rc == 0 && options->listen[0] != '\0') {
        struct ms_addr unused;
        rc = ms_addr_parse(options->listen, MS_SCHED_PORT, &unused, err);
        if (rc < 0) {
            ms_err_prefix(err, "listen");
        }
    }
    if (rc < 0) {
        return rc;
    }
    int64_t topo_s = ms_settings_int(settings, "topo_timeout_s");
    if (topo_s == 0) {
        return ms_fail(err, MS_E_CONFIG,
                       "topo_timeout_s = 0: it must be 1 to 604800 seconds, or -1 for ever");
    }
    options->sched.topo_timeout_ms = topo_s < 0 ? -1 : topo_s * 1000;
    options->sched.lease_ms = ms_settings_int(settings, "lease_ms");
    options->tls = tls_of(ms_settings_string(settings, "tls"));
    rc = read_who(options, err);
    return rc < 0 ? rc : read_files(options, err);
}

/* A group that somebody wrote must be there; without the built-in one the socket is ours alone. */
int options_settle_socket(struct options *options, struct ms_err *err)
{
    int is_builtin = ms_settings_source(options->settings, "socket_group") == MS_FROM_BUILTIN;
    int rc = socket_group_find(ms_settings_string(options->settings, "socket_group"),
                               &options->socket_gid, is_builtin ? NULL : err);
    if (rc < 0) {
        options->socket_gid = SOCKET_GROUP_NONE;
    }
    options->socket_mode = options->socket_gid != SOCKET_GROUP_NONE ? 0660 : 0600;
    return is_builtin ? 0 : rc;
}

static int place_database(struct options *options, struct ms_err *err)
{
    const char *path = ms_env_recovery_path(options->env);
    if (path[0] == '\0') {
        return 0;
    }
    int n = snprintf(options->database, sizeof(options->database), "%s/state.db", path);
    if (n < 0 || (size_t)n > MS_PATH_MAX - 16) { /* SQLite and the store add to the name */
        return ms_fail(err, MS_E_CONFIG, "MS_RECOVERY_PATH is longer than %d bytes",
                       MS_PATH_MAX - 32);
    }
    return 0;
}

int options_from_environment(struct options *options, struct ms_err *err)
{
    const struct ms_env *env = options->env;
    struct ms_addr addr = {.port = (int)ms_env_int(env, MS_ENV_SCHED_PORT)};
    snprintf(addr.host, sizeof(addr.host), "%s", ms_env_text(env, MS_ENV_SCHED_HOST));
    ms_addr_format(&addr, options->listen);

    struct sched_config *sched = &options->sched;
    sched->worker_num = (uint32_t)ms_env_int(env, MS_ENV_WORKER_NUM);
    sched->topo_timeout_ms = ms_env_ms(env, MS_ENV_TOPO_TIMEOUT);
    sched->lease_ms = ms_env_ms(env, MS_ENV_NODE_TIMEOUT);
    sched->disable_heartbeat = (int)ms_env_int(env, MS_ENV_DISABLE_HEARTBEAT);
    sched->recovery = (int)ms_env_int(env, MS_ENV_ENABLE_RECOVERY);
    if (sched->lease_ms < 0) { /* silence for ever: nobody is judged, but heartbeats go on */
        sched->lease_ms = MS_LEASE_MAX_MS;
        sched->disable_heartbeat = 1;
    }
    int rc = place_database(options, err);
    if (rc < 0) {
        return rc;
    }
    options->tls = OPTIONS_TLS_AUTO;
    if (env->value[MS_ENV_ENABLE_SSL].is_set) {
        options->tls = ms_env_int(env, MS_ENV_ENABLE_SSL) ? OPTIONS_TLS_ON : OPTIONS_TLS_OFF;
    }
    if (options->tls != OPTIONS_TLS_OFF && env->value[MS_ENV_TLS_CONFIG].is_set) {
        return ms_tls_files_parse(ms_env_text(env, MS_ENV_TLS_CONFIG), 1, &options->files, err);
    }
    return 0;
}
