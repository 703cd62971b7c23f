/* server_tls.c - the daemon's certificates: load, load again, warn before they expire */
#include "daemon/recovery_path.h"
#include "daemon/server_state.h"

#include "daemon/store/place.h"
#include "proto/addr.h"
#include "proto/crl_files.h"
#include "proto/folder.h"

#include <stdio.h>
#include <sys/socket.h>

/* Of two folders of one host one is easily forgotten, and so is the line in a TLS JSON. */
static void warn_of_missing_list(const struct options *options, SSL_CTX *loaded)
{
    char folder[MS_PATH_MAX + 1];
    char list[MS_PATH_MAX + 1];
    char quoted[2][2 * MS_PATH_MAX];
    if (!ms_tls_has_list(loaded) && ms_crl_is_forgotten(&options->files, list, sizeof(list))) {
        ms_folder_of(options->files.p12_path, folder, sizeof(folder));
        ms_log(MS_LOG_WARNING,
               "tls.no_list folder=%s beside=%s text=\"who was revoked is trusted here: %s, and "
               "reload\"",
               ms_log_quote(quoted[0], sizeof(quoted[0]), folder),
               ms_log_quote(quoted[1], sizeof(quoted[1]), list),
               options->files.crl_is_unnamed ? "name the list as crl_path in the TLS JSON"
                                             : "msctl certs install the list");
    }
}

/* before: the one in force, or NULL. What takes its place, or would, may not know less. */
static int load(const struct options *options, SSL_CTX *before, SSL_CTX **ret, struct ms_err *err)
{
    struct ms_tls_config cfg;
    char warning[MS_TEXT_MAX + 1] = "";
    ms_tls_files_config(&options->files, &cfg);
    cfg.roles = MS_ROLE_SCHEDULER;
    cfg.crl_may_miss &= before == NULL || !ms_tls_has_list(before);
    int rc = ms_tls_context(&cfg, ret, warning, err);
    if (rc == MS_E_NOT_FOUND && err != NULL) {
        char why[MS_ERR_TEXT_MAX];
        snprintf(why, sizeof(why), "%s", err->text);
        rc = ms_fail(err, MS_E_CONFIG, "%s; %s", why, options_tls_advice(options));
    }
    if (rc == 0 && warning[0] != '\0') {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_WARNING, "tls.warning text=%s",
               ms_log_quote(quoted, sizeof(quoted), warning));
    }
    if (rc == 0) {
        warn_of_missing_list(options, *ret);
    }
    return rc;
}

int server_load_tls(const struct options *options, SSL_CTX **ret, struct ms_err *err)
{
    return load(options, NULL, ret, err);
}

void server_arm_check(struct server *server)
{
    struct timeval wait = {.tv_sec = options_check_s(server->options)};
    event_add(server->check, &wait); /* persistent: armed anew, it takes the new interval */
}

/* Once a day, or as often as the TLS JSON says. The context is thrown away: only a SIGHUP changes
 * certificates, so that the operator decides when. What it warns about is in the log by then. */
void server_check_expiry(struct server *server)
{
    SSL_CTX *context = NULL;
    struct ms_err err = {0, ""};
    if (server->tls == NULL) {
        return;
    }
    if (load(server->options, server->tls, &context, &err) < 0) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "tls.unusable text=%s", ms_log_quote(quoted, sizeof(quoted), err.text));
        return;
    }
    SSL_CTX_free(context);
}

int server_take_options(struct server *server, const struct options *options, struct ms_err *err)
{
    SSL_CTX *context = NULL;
    if (server->needs_tls) {
        if (options->files.p12_path[0] == '\0') {
            return ms_fail(err, MS_E_CONFIG,
                           "TLS cannot be switched off by a reload: restart for that");
        }
        int rc = load(options, server->tls, &context, err);
        if (rc < 0) {
            return rc;
        }
        SSL_CTX_free(server->tls); /* live connections hold it by reference */
        server->tls = context;
    }
    if (!server->needs_tls && options->files.p12_path[0] != '\0' &&
        server_address(server)[0] != '\0') {
        return ms_fail(err, MS_E_CONFIG,
                       "there is a certificate now, %s, but TLS cannot be switched on by a reload: "
                       "restart for that",
                       options->files.p12_path);
    }
    if (options->sched.lease_ms != server->options->sched.lease_ms) {
        sched_set_lease(server->sched, options->sched.lease_ms);
    }
    sched_set_policy(server->sched, &options->sched);
    server_names_forget(server);
    server->options = options;
    places_set_nodes(&server->places, options->sched.nodes_per_certificate);
    server_recheck(server);
    server_arm_check(server);
    return 0;
}

static int check_address(const struct options *options, struct ms_err *err)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t length = 0;
    SSL_CTX *context = NULL;
    if (options->listen[0] == '\0') {
        return 0; /* a Unix socket needs no certificate */
    }
    int rc = ms_addr_parse(options->listen, MS_SCHED_PORT, &addr, err);
    if (rc == 0) {
        rc = ms_addr_resolve(&addr, &sa, &length, err);
    }
    if (rc == 0) {
        rc = options_use_tls(options, options->listen, ms_addr_is_loopback((struct sockaddr *)&sa),
                             err);
    }
    if (rc > 0) {
        rc = server_load_tls(options, &context, err);
        SSL_CTX_free(context);
    }
    return rc;
}

/* What somebody wrote. The folders of the built-in paths are made by the unit. */
static int is_written(const struct options *options, const char *key)
{
    return ms_settings_source(options->settings, key) != MS_FROM_BUILTIN;
}

static int check_places(const struct options *options, struct ms_err *err)
{
    char folder[MS_PATH_MAX + 1];
    int rc = options->database[0] != '\0' && is_written(options, "database")
                 ? store_judge_place(options->database, err)
                 : 0;
    if (rc == 0 && options->socket[0] != '\0' && is_written(options, "socket") &&
        ms_folder_try(ms_folder_of(options->socket, folder, sizeof(folder))) != 0) {
        rc = ms_fail_errno(err, MS_E_CONFIG,
                           "socket %s: its folder must exist and belong to the user of msschedd",
                           options->socket);
    }
    return rc;
}

int server_check_options(const struct options *options, struct ms_err *err)
{
    int rc = check_address(options, err);
    if (rc == 0 && options->env != NULL && options->database[0] != '\0') {
        rc = recovery_path_judge(ms_env_recovery_path(options->env), err);
    }
    return rc < 0 || options->sched.mode != SCHED_STANDING ? rc : check_places(options, err);
}
