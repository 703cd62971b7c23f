/* options.c - what msschedd was asked to be: flags, environment and file, judged and in one struct
 */
#include "daemon/options.h"

#include "config.h"
#include "daemon/socket_group.h"
#include "proto/addr.h"
#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CONFIG_FILE MSCHED_SYSCONFDIR "/msschedd.conf"
#define TLS_DIR     MSCHED_SYSCONFDIR "/tls"

/* The standing cluster. Private mode takes the same rows with other defaults, see private_rows. */
static const struct ms_setting rows[] = {
    {"listen", "--listen", "MSCHED_LISTEN", MS_SET_STRING, 0, 0, NULL, "[::]:8118", 0,
     "TCP address for workers and remote clients; none: only the Unix socket"},
    {"socket", "--socket", "MSCHED_SOCKET", MS_SET_STRING, 0, 0, NULL, "/run/msched/msschedd.sock",
     0, "Unix socket for clients on this host; none: only TCP"},
    {"socket_group", "--socket-group", "MSCHED_SOCKET_GROUP", MS_SET_STRING, 0, 0, NULL,
     "msched-users", 0, "group that may use the socket; the built-in one may be missing"},
    {"database", "--database", "MSCHED_DATABASE", MS_SET_STRING, 0, 0, NULL,
     "/var/lib/msched/state.db", 0, "file that keeps the jobs"},
    {"lease_ms", "--lease-ms", "MSCHED_LEASE_MS", MS_SET_INT, MS_LEASE_MIN_MS, MS_LEASE_MAX_MS,
     NULL, "10000", 1, "a node that is silent for longer is lost"},
    {"topo_timeout_s", "--topo-timeout-s", "MS_TOPO_TIMEOUT", MS_SET_INT, -1, 604800, NULL, "1800",
     0, "time for a job's nodes to come together; -1: for ever"},
    {"tls", "--tls", "MS_ENABLE_SSL", MS_SET_ENUM, 0, 0, "auto|off|on|0|1", "auto", 0,
     "auto: TLS, plain only on loopback without certificates; off: plain TCP everywhere"},
    {"tls_config", "--tls-config", "MS_TLS_CONFIG", MS_SET_STRING, 0, 0, NULL, NULL, 1,
     "JSON with server_cert_path, ca_cert_path, ...; replaces the tls_ settings below"},
    {"tls_ca", "--tls-ca", "MSCHED_TLS_CA", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/ca.crt", 1,
     "certificate of the CA, PEM"},
    {"tls_cert", "--tls-cert", "MSCHED_TLS_CERT", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/node.p12", 1,
     "certificate and key of this scheduler, PKCS#12"},
    {"tls_crl", "--tls-crl", "MSCHED_TLS_CRL", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/crl.pem", 1,
     "revoked certificates, PEM; the built-in one may be missing"},
    {"tls_password_file", "--tls-password-file", "MSCHED_TLS_PASSWORD_FILE", MS_SET_STRING, 0, 0,
     NULL, NULL, 1, "file with the password of tls_cert; else the credential p12-password"},
    {"tls_expire_warning_days", "--tls-expire-warning-days", NULL, MS_SET_INT, 7, 180, NULL, "90",
     1, "warn so long before a certificate expires"},
    {"anyone", "--anyone", "MSCHED_ANYONE", MS_SET_STRING, 0, 0, NULL, "worker user admin", 1,
     "what anyone without TLS may be: worker, user, admin, or none"},
    {"user_map", "--user-map", "MSCHED_USER_MAP", MS_SET_STRING, 0, 0, NULL, "", 1,
     "NAME=UID ...: names of uids on the Unix socket; others have the system's (NSS)"},
    {"priority_users", "--priority-users", "MSCHED_PRIORITY_USERS", MS_SET_STRING, 0, 0, NULL,
     "-100..100", 1, "priorities that users may give to jobs; admins may -1000..1000"},
    {"node_ids", "--node-ids", "MSCHED_NODE_IDS", MS_SET_ENUM, 0, 0, "certificate|free",
     "certificate", 1, "certificate: a node id begins with its certificate's name; free: any"},
    {"nodes_per_certificate", "--nodes-per-certificate", "MSCHED_NODES_PER_CERTIFICATE", MS_SET_INT,
     1, MS_NODES_MAX, NULL, "64", 1, "nodes that one certificate may register"},
    {"log_level", "--log-level", "MSCHED_LOG_LEVEL", MS_SET_ENUM, 0, 0,
     "error|warning|notice|info|debug", "info", 1, "lines above this level are dropped"},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};
enum { ROWS = MS_ARRAY_SIZE(rows) };

/* A dynamic cluster is set up by MS_*; only what it has no word for is set here. */
static const char *const dynamic_keys[] = {"anyone", "log_level"};

/* Control words: no settings, for no file may hold them. */
struct control {
    const char *config, *run_dir;
    enum options_action action;
    int accepts_loss;
};

static const struct {
    const char *flag;
    int has_value;
    const char *help;
} controls[] = {
    {"--config", 1, "FILE  settings file; default " CONFIG_FILE},
    {"--run-dir", 1, "DIR  private scheduler of `msctl run`: everything below DIR"},
    {"--check-config", 0, "print every setting and where it came from, and end"},
    {"--version", 0, "print the version, and end"},
    {"--accept-loss", 0, "for one start: serve although acknowledged writes are missing"},
    {"--help", 0, "print this, and end"},
};

/* Takes the control words out of a copy of argv, the rest stays for ms_settings_load. */
static int take_controls(int *argc, char **argv, struct control *ret, struct ms_err *err)
{
    int kept = 1;
    for (int at = 1; at < *argc; at++) {
        size_t which = 0;
        size_t length = strcspn(argv[at], "=");
        while (which < MS_ARRAY_SIZE(controls) &&
               (strlen(controls[which].flag) != length ||
                strncmp(argv[at], controls[which].flag, length) != 0)) {
            which++;
        }
        if (which == MS_ARRAY_SIZE(controls)) {
            argv[kept++] = argv[at];
            continue;
        }
        const char *value = argv[at][length] == '=' ? argv[at] + length + 1 : NULL;
        if (controls[which].has_value && value == NULL) {
            value = ++at < *argc ? argv[at] : NULL;
        }
        if (controls[which].has_value && (value == NULL || value[0] == '\0')) {
            return ms_fail(err, MS_E_INVALID, "option %s needs a value: %s", controls[which].flag,
                           controls[which].help);
        }
        switch (which) {
        case 0:
            ret->config = value;
            break;
        case 1:
            ret->run_dir = value;
            break;
        case 2:
            ret->action = OPTIONS_CHECK;
            break;
        case 3:
            ret->action = OPTIONS_VERSION;
            break;
        case 4:
            ret->accepts_loss = 1;
            break;
        default:
            ret->action = OPTIONS_HELP;
            break;
        }
    }
    *argc = kept;
    argv[kept] = NULL;
    return 0;
}

static int put(char *buf, size_t size, const char *what, const char *text, struct ms_err *err)
{
    if (text == NULL || strcmp(text, "none") == 0) {
        text = "";
    }
    if (strlen(text) >= size) {
        return ms_fail(err, MS_E_CONFIG, "%s is longer than %zu bytes", what, size - 1);
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

/* A built-in path is a place to look at, a path that somebody wrote must exist. */
static int is_there(const struct ms_settings *settings, const char *key)
{
    const char *path = ms_settings_string(settings, key);
    return path != NULL && path[0] != '\0' && strcmp(path, "none") != 0 &&
           (ms_settings_source(settings, key) != MS_FROM_BUILTIN || access(path, F_OK) == 0);
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
    int rc = put(files->p12_path, sizeof(files->p12_path), "tls_cert",
                 ms_settings_string(settings, "tls_cert"), err);
    if (rc == 0) {
        rc = put(files->ca_path, sizeof(files->ca_path), "tls_ca",
                 ms_settings_string(settings, "tls_ca"), err);
    }
    if (rc == 0 && is_there(settings, "tls_crl")) {
        rc = put(files->crl_path, sizeof(files->crl_path), "tls_crl",
                 ms_settings_string(settings, "tls_crl"), err);
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
                   "%s can be reached by others and there is no certificate%s%s: name one with "
                   "MS_TLS_CONFIG=/path/to/tls.json (msctl certs makes them), or switch TLS off on "
                   "both sides with MS_ENABLE_SSL=0",
                   address, place != NULL ? " at " : "", place != NULL ? place : "");
}

int options_check_s(const struct options *options)
{
    int hours = options->files.check_interval_hours;
    return (hours > 0 ? hours : 24) * 3600;
}

/* ---- the three modes ----------------------------------------------------------------------------
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
        sched->certificate_ids = ms_settings_int(settings, "node_ids") == 0;
        sched->nodes_per_certificate = (uint32_t)ms_settings_int(settings, "nodes_per_certificate");
    }
    return rc;
}

static int from_settings(struct options *options, struct ms_err *err)
{
    const struct ms_settings *settings = options->settings;
    int rc = put(options->listen, sizeof(options->listen), "listen",
                 ms_settings_string(settings, "listen"), err);
    if (rc == 0) {
        rc = put(options->socket, sizeof(options->socket), "socket",
                 ms_settings_string(settings, "socket"), err);
    }
    if (rc == 0) {
        rc = put(options->database, sizeof(options->database), "database",
                 ms_settings_string(settings, "database"), err);
    }
    if (rc == 0 && options->database[0] == '\0') {
        rc = ms_fail(err, MS_E_CONFIG, "database is empty: name the file that keeps the jobs");
    }
    if (rc == 0 && options->listen[0] == '\0' && options->socket[0] == '\0') {
        rc = ms_fail(err, MS_E_CONFIG, "listen and socket are both none: nobody could connect");
    }
    if (rc == 0 && options->listen[0] != '\0') {
        struct ms_addr unused;
        rc = ms_addr_parse(options->listen, MS_SCHED_PORT, &unused, err);
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
static int settle_socket(struct options *options, struct ms_err *err)
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

static int load_standing(struct options *options, const struct control *control, int *argc,
                         char **argv, struct ms_err *err)
{
    options->sched.mode = SCHED_STANDING;
    int rc = ms_settings_load(rows, control->config != NULL ? control->config : CONFIG_FILE,
                              control->config != NULL, argc, argv, &options->settings, err);
    if (rc == 0) {
        rc = settle_socket(options, err);
    }
    return rc < 0 ? rc : from_settings(options, err);
}

/* Rows of the private scheduler: paths below the run directory, loopback, and TLS or nothing. */
struct private_rows {
    struct ms_setting rows[ROWS];
    char paths[5][MS_PATH_MAX + 32];
};

static int make_private_rows(const char *run_dir, struct private_rows *private, struct ms_err *err)
{
    static const struct {
        const char *key, *path;
    } below[] = {{"socket", "scheduler.sock"},
                 {"database", "scheduler.db"},
                 {"tls_ca", "tls/ca.crt"},
                 {"tls_cert", "tls/scheduler.p12"},
                 {"tls_crl", "tls/crl.pem"}};
    if (strlen(run_dir) > MS_PATH_MAX - 32) {
        return ms_fail(err, MS_E_INVALID, "--run-dir is longer than %d bytes", MS_PATH_MAX - 32);
    }
    memcpy(private->rows, rows, sizeof(rows));
    for (size_t i = 0; i + 1 < ROWS; i++) {
        struct ms_setting *row = &private->rows[i];
        for (size_t k = 0; k < MS_ARRAY_SIZE(below); k++) {
            if (strcmp(row->key, below[k].key) == 0) {
                snprintf(private->paths[k], sizeof(private->paths[k]), "%s/%s", run_dir,
                         below[k].path);
                row->builtin = private->paths[k];
            }
        }
        if (strcmp(row->key, "listen") == 0) {
            row->builtin = "127.0.0.1:0";
        }
        if (strcmp(row->key, "socket_group") == 0) {
            row->builtin = "none"; /* whoever runs it, nobody else */
        }
        if (strcmp(row->key, "tls") == 0) {
            row->builtin = "on";
        }
    }
    return 0;
}

static int load_private(struct options *options, const struct control *control, int *argc,
                        char **argv, struct ms_err *err)
{
    if (control->config != NULL) {
        return ms_fail(err, MS_E_INVALID, "--run-dir and --config exclude each other");
    }
    struct private_rows *private = calloc(1, sizeof(*private));
    if (private == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the settings");
    }
    options->sched.mode = SCHED_RUN;
    options->private_rows = private;
    int rc = make_private_rows(control->run_dir, private, err);
    if (rc == 0) {
        rc = ms_settings_load(private->rows, NULL, 0, argc, argv, &options->settings, err);
    }
    if (rc == 0) {
        rc = settle_socket(options, err);
    }
    return rc < 0 ? rc : from_settings(options, err);
}

static int from_environment(struct options *options, struct ms_err *err)
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
    options->tls = OPTIONS_TLS_AUTO;
    if (env->value[MS_ENV_ENABLE_SSL].is_set) {
        options->tls = ms_env_int(env, MS_ENV_ENABLE_SSL) ? OPTIONS_TLS_ON : OPTIONS_TLS_OFF;
    }
    if (options->tls != OPTIONS_TLS_OFF && env->value[MS_ENV_TLS_CONFIG].is_set) {
        return ms_tls_files_parse(ms_env_text(env, MS_ENV_TLS_CONFIG), 1, &options->files, err);
    }
    return 0;
}

static int load_dynamic(struct options *options, const struct control *control, int *argc,
                        char **argv, struct ms_err *err)
{
    static struct ms_setting few[MS_ARRAY_SIZE(dynamic_keys) + 1];
    size_t n = 0;
    for (size_t i = 0; i + 1 < ROWS; i++) {
        for (size_t k = 0; k < MS_ARRAY_SIZE(dynamic_keys); k++) {
            if (strcmp(rows[i].key, dynamic_keys[k]) == 0) {
                few[n++] = rows[i];
            }
        }
    }
    few[n] = rows[ROWS - 1];
    if (control->config != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "MS_ROLE is set: a dynamic cluster takes its settings from the MS_* "
                       "environment, not from --config; unset MS_ROLE for a standing cluster");
    }
    options->sched.mode = SCHED_DYNAMIC;
    int rc = ms_settings_load(few, NULL, 0, argc, argv, &options->settings, err);
    if (rc < 0) {
        return rc;
    }
    options->env = calloc(1, sizeof(*options->env));
    if (options->env == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the environment");
    }
    rc = who_parse_roles(ms_settings_string(options->settings, "anyone"), &options->anyone_roles,
                         err);
    if (rc == 0) {
        rc = ms_env_load(MS_ENV_SCHEDULER, options->env, err);
    }
    return rc < 0 ? rc : from_environment(options, err);
}

/* MindSpore's start scripts give all roles the same words: `msschedd ./net.yaml`. The job comes
 * with the workers, so the file is not read; but a word that names none is a mistake. */
static int skip_job_file(int *argc, char **argv)
{
    if (*argc == 2 && access(argv[1], R_OK) == 0) {
        *argc = 1;
    }
    return *argc == 1;
}

static int load_mode(struct options *options, const struct control *control, int *argc, char **argv,
                     struct ms_err *err)
{
    int rc;
    if (control->run_dir != NULL) { /* before MS_ROLE: `msctl run` may stand in a job's script */
        rc = load_private(options, control, argc, argv, err);
    } else if (ms_env_is_dynamic()) {
        rc = load_dynamic(options, control, argc, argv, err);
    } else {
        rc = load_standing(options, control, argc, argv, err);
    }
    int is_scripted = options->sched.mode == SCHED_DYNAMIC && skip_job_file(argc, argv);
    if (rc == 0 && *argc > 1 && !is_scripted) {
        rc = ms_fail(err, MS_E_INVALID, "unexpected word '%.80s'; see --help", argv[1]);
    }
    return rc;
}

static void finish(struct options *options)
{
    static const enum ms_log_level levels[] = {MS_LOG_ERR, MS_LOG_WARNING, MS_LOG_NOTICE,
                                               MS_LOG_INFO, MS_LOG_DEBUG};
    options->log_level = levels[ms_settings_int(options->settings, "log_level")];
    options->sched.software = "msschedd " MSCHED_VERSION;
    options->sched.database = options->database[0] != '\0' ? options->database : "none";
}

int options_load(int argc, char *const *argv, struct options **ret, struct ms_err *err)
{
    struct control control = {.action = OPTIONS_RUN};
    struct options *options = calloc(1, sizeof(*options));
    char **words = calloc((size_t)argc + 1, sizeof(*words));
    int rc =
        options == NULL || words == NULL ? ms_fail(err, MS_E_NOMEM, "no memory for options") : 0;
    if (rc == 0) {
        memcpy(words, argv, (size_t)argc * sizeof(*words));
        rc = take_controls(&argc, words, &control, err);
    }
    if (rc == 0 && control.action != OPTIONS_HELP && control.action != OPTIONS_VERSION) {
        rc = load_mode(options, &control, &argc, words, err);
        if (rc == 0) {
            finish(options);
        }
    }
    if (rc == 0 && getrandom(options->sched.secret, sizeof(options->sched.secret), 0) !=
                       (ssize_t)sizeof(options->sched.secret)) {
        rc = ms_fail_errno(err, MS_E_IO, "no random bytes for the group token");
    }
    free(words);
    if (rc < 0) {
        options_destroy(options);
        return rc;
    }
    options->action = control.action;
    options->accepts_loss = control.accepts_loss;
    *ret = options;
    return 0;
}

void options_destroy(struct options *options)
{
    if (options == NULL) {
        return;
    }
    ms_settings_destroy(options->settings);
    ms_tls_files_wipe(&options->files);
    explicit_bzero(options->sched.secret, sizeof(options->sched.secret));
    free(options->env);
    free(options->private_rows);
    free(options);
}

/* ---- for people ---------------------------------------------------------------------------------
 */

const char *options_mode_name(enum sched_mode mode)
{
    static const char *const names[] = {
        [SCHED_STANDING] = "standing", [SCHED_DYNAMIC] = "dynamic", [SCHED_RUN] = "run"};
    return names[mode];
}

void options_help(FILE *out)
{
    fputs("usage: msschedd [option]...\n"
          "The scheduler of a training cluster: a service (standing cluster), or with\n"
          "MS_ROLE=MS_SCHED MS_SCHED_HOST=... MS_SCHED_PORT=... MS_WORKER_NUM=... one job's\n"
          "scheduler (dynamic cluster). A flag counts more than the environment, that more than\n"
          "the file, that more than what is built in. See msschedd(8).\n\n",
          out);
    for (size_t i = 0; i < MS_ARRAY_SIZE(controls); i++) {
        fprintf(out, "  %s %s%s\n", controls[i].flag, controls[i].has_value ? "" : "  ",
                controls[i].help);
    }
    fputs("\n", out);
    ms_settings_usage(rows, out);
}

void options_print(const struct options *options, FILE *out)
{
    fprintf(out, "# mode: %s\n", options_mode_name(options->sched.mode));
    if (options->env != NULL) {
        ms_env_print(options->env, out);
    }
    ms_settings_print(options->settings, out);
}

const char *options_format(const struct options *options, char *buf, size_t size)
{
    char quoted[3][MS_PATH_MAX + 8];
    if (options->env != NULL) {
        char *at = buf;
        int n = snprintf(buf, size, "mode=dynamic ");
        return n > 0 && (size_t)n < size
                   ? (ms_env_format(options->env, at + n, size - (size_t)n), buf)
                   : buf;
    }
    snprintf(buf, size,
             "mode=%s listen=%s socket=%s database=%s lease_ms=%lld topo_timeout_ms=%lld "
             "tls=%s",
             options_mode_name(options->sched.mode),
             ms_log_quote(quoted[0], sizeof(quoted[0]), options->listen),
             ms_log_quote(quoted[1], sizeof(quoted[1]), options->socket),
             ms_log_quote(quoted[2], sizeof(quoted[2]), options->database),
             (long long)options->sched.lease_ms, (long long)options->sched.topo_timeout_ms,
             options->files.p12_path[0] != '\0' ? "on" : "off");
    return buf;
}

const char *options_fixed_changes(const struct options *before, const struct options *after,
                                  char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    if (before->env != NULL || after->env != NULL) {
        return buf; /* the environment of a process does not change */
    }
    for (size_t i = 0; i + 1 < ROWS; i++) {
        const char *a = ms_settings_string(before->settings, rows[i].key);
        const char *b = ms_settings_string(after->settings, rows[i].key);
        int same = a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
        if (same || rows[i].reloadable) {
            continue;
        }
        int n = snprintf(buf + used, size - used, "%s%s", used == 0 ? "" : " ", rows[i].key);
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    }
    return buf;
}
