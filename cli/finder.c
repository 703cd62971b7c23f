/* finder.c - which scheduler msctl talks to, and as whom */
#include "cli/finder.h"

#include "proto/addr.h"
#include "proto/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { UNIX_PATH_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

static const struct ms_setting config_table[] = {
    {.key = "server", .help = "address of the scheduler: host:port or unix:/path"},
    {.key = "certificate", .help = "PKCS#12 file with certificate and key"},
    {.key = "password_file", .help = "file whose first line is the password of certificate"},
    {.key = "ca", .help = "PEM file with the CA's certificate"},
    {.key = "crl", .help = "PEM file with what the CA revoked"},
    {.key = "tls",
     .type = MS_SET_ENUM,
     .choices = "auto|on|off",
     .help = "auto: plain only to a loopback address without certificate"},
    {.key = NULL},
};

enum tls_mode { TLS_AUTO, TLS_ON, TLS_OFF };

/* What the places say together, the first source of each. */
struct config {
    char server[MS_PATH_MAX + 1];
    char certificate[MS_PATH_MAX + 1];
    char password_file[MS_PATH_MAX + 1];
    char ca[MS_PATH_MAX + 1];
    char crl[MS_PATH_MAX + 1];
    int tls;                        /* enum tls_mode, -1: unset */
    char tls_file[MS_PATH_MAX + 1]; /* that says so */
};

static void tried(struct finder_target *target, const char *what, const char *fmt, ...)
    MS_PRINTF(3, 4);

static void tried(struct finder_target *target, const char *what, const char *fmt, ...)
{
    size_t used = strlen(target->tried);
    size_t room = sizeof(target->tried) - used;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(target->tried + used, room, "    %-30s %s\n", what, text);
}

static void take(char *dst, size_t size, const struct ms_settings *settings, const char *key)
{
    const char *text = ms_settings_string(settings, key);
    if (text != NULL && dst[0] == '\0') {
        snprintf(dst, size, "%s", text);
    }
}

/* Reads one file; what it says counts where nothing before it did. */
static int read_config(const char *path, int required, struct config *config,
                       struct finder_target *target, struct ms_err *err)
{
    if (!required && access(path, F_OK) != 0) {
        tried(target, path, "%s", errno == ENOENT ? "does not exist" : strerror(errno));
        return MS_OK;
    }
    char program[] = "msctl";
    char *argv[] = {program, NULL};
    int argc = 1;
    struct ms_settings *settings = NULL;
    int rc = ms_settings_load(config_table, path, 1, &argc, argv, &settings, err);
    if (rc != MS_OK) {
        return rc;
    }
    const char *server = ms_settings_string(settings, "server");
    tried(target, path, "%s%s%s", server != NULL ? "server = " : "names no server",
          server != NULL ? server : "",
          server != NULL && config->server[0] != '\0' ? " (not asked: the first place decides)"
                                                      : "");
    take(config->server, sizeof(config->server), settings, "server");
    take(config->certificate, sizeof(config->certificate), settings, "certificate");
    take(config->password_file, sizeof(config->password_file), settings, "password_file");
    take(config->ca, sizeof(config->ca), settings, "ca");
    take(config->crl, sizeof(config->crl), settings, "crl");
    if (config->tls < 0 && ms_settings_string(settings, "tls") != NULL) {
        config->tls = (int)ms_settings_int(settings, "tls");
        snprintf(config->tls_file, sizeof(config->tls_file), "%s", path);
    }
    ms_settings_destroy(settings);
    return MS_OK;
}

static int is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* What stands on the command line counts from where that is given; a file has no such place. */
static int take_flag(const char *flag, struct config *config, struct ms_err *err)
{
    static const char scheme[] = "unix:";
    char here[PATH_MAX];
    const char *path = flag + strlen(scheme);
    if (strncmp(flag, scheme, strlen(scheme)) != 0 || path[0] == '/' || path[0] == '\0') {
        snprintf(config->server, sizeof(config->server), "%s", flag);
        return MS_OK;
    }
    if (getcwd(here, sizeof(here)) == NULL) {
        return ms_fail_errno(err, MS_E_IO, "cannot find the folder that %.200s counts from", flag);
    }
    int used = snprintf(config->server, sizeof(config->server), "%s%s/%s", scheme, here, path);
    return used > 0 && (size_t)used < sizeof(config->server)
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "address '%.200s': the path is longer than %d bytes",
                         flag, MS_PATH_MAX);
}

/* The server from the flag or the environment, in front of the files. */
static int read_first_places(const struct finder_places *places, struct config *config,
                             struct finder_target *target, struct ms_err *err)
{
    tried(target, "--server", "%s", is_set(places->flag) ? places->flag : "not given");
    if (is_set(places->flag)) {
        return take_flag(places->flag, config, err);
    }
    if (places->flag != NULL) { /* a variable of a script that is empty must not mean another one */
        return ms_fail(err, MS_E_INVALID, "--server is empty: give HOST:PORT or unix:PATH");
    }
    if (!is_set(places->env_host)) {
        tried(target, "MS_SCHED_HOST, MS_SCHED_PORT", "%s",
              is_set(places->env_port) ? "a port alone names no host" : "not set");
        return MS_OK;
    }
    const char *host = places->env_host;
    const char *port = is_set(places->env_port) ? places->env_port : "8118";
    int is_v6 = strchr(host, ':') != NULL && host[0] != '[';
    int used = snprintf(config->server, sizeof(config->server), "%s%s%s:%s", is_v6 ? "[" : "", host,
                        is_v6 ? "]" : "", port);
    if (used < 0 || (size_t)used >= sizeof(config->server)) {
        return ms_fail(err, MS_E_INVALID, "MS_SCHED_HOST is longer than %d bytes", MS_HOST_MAX);
    }
    tried(target, "MS_SCHED_HOST, MS_SCHED_PORT", "%s", config->server);
    return MS_OK;
}

static int read_files(const struct finder_places *places, struct config *config,
                      struct finder_target *target, struct ms_err *err)
{
    if (is_set(places->config)) {
        return read_config(places->config, 1, config, target, err);
    }
    const char *const dirs[] = {places->user_dir, places->system_dir};
    for (size_t i = 0; i < MS_ARRAY_SIZE(dirs); i++) {
        char path[MS_PATH_MAX + 16];
        if (dirs[i] == NULL) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/msctl.conf", dirs[i]);
        int rc = read_config(path, 0, config, target, err);
        if (rc != MS_OK) {
            return rc;
        }
    }
    return MS_OK;
}

/* ---- the certificate ---- */

static void default_path(char *dst, size_t size, const char *dir, const char *file)
{
    char path[MS_PATH_MAX + 64];
    if (dst[0] != '\0' || dir == NULL) {
        return;
    }
    int used = snprintf(path, sizeof(path), "%s/%s", dir, file);
    if (used > 0 && (size_t)used < size && access(path, F_OK) == 0) {
        memcpy(dst, path, (size_t)used + 1);
    }
}

static int read_certificates(const struct finder_places *places, struct config *config,
                             struct finder_target *target, struct ms_err *err)
{
    struct ms_tls_files *files = &target->files;
    if (config->certificate[0] == '\0' && is_set(places->env_tls)) {
        return ms_tls_files_parse(places->env_tls, 0, files, err);
    }
    default_path(config->certificate, sizeof(config->certificate), places->user_dir, "client.p12");
    default_path(config->ca, sizeof(config->ca), places->user_dir, "ca.crt");
    default_path(config->ca, sizeof(config->ca), places->system_dir, "tls/ca.crt");
    if (config->certificate[0] != '\0' && config->ca[0] == '\0') {
        return ms_fail(
            err, MS_E_TLS,
            "there is a certificate, %.140s, and no ca.crt beside it to judge the "
            "scheduler by: msctl certs install FILE.p12 puts both there (or ca = FILE in "
            "msctl.conf)",
            config->certificate);
    }
    if (config->certificate[0] == '\0') {
        return MS_OK;
    }
    memcpy(files->p12_path, config->certificate, sizeof(files->p12_path));
    memcpy(files->ca_path, config->ca, sizeof(files->ca_path));
    memcpy(files->crl_path, config->crl, sizeof(files->crl_path));
    return ms_tls_files_password(config->password_file[0] != '\0' ? config->password_file : NULL,
                                 files, err);
}

static int decide_tls(const struct finder_places *places, struct config *config,
                      const struct ms_addr *addr, struct finder_target *target, struct ms_err *err)
{
    int mode = config->tls < 0 ? TLS_AUTO : config->tls;
    if (is_set(places->env_ssl)) {
        if (strcmp(places->env_ssl, "0") != 0 && strcmp(places->env_ssl, "1") != 0) {
            return ms_fail(err, MS_E_CONFIG, "MS_ENABLE_SSL=%.40s is not legal: it must be 0 or 1",
                           places->env_ssl);
        }
        mode = places->env_ssl[0] == '0' ? TLS_OFF : TLS_ON;
    }
    if (mode == TLS_OFF) {
        snprintf(target->plain_by, sizeof(target->plain_by), "%s%s",
                 is_set(places->env_ssl) ? "MS_ENABLE_SSL=0" : "tls = off in ",
                 is_set(places->env_ssl) ? "" : config->tls_file);
        return MS_OK;
    }
    int rc = read_certificates(places, config, target, err);
    if (rc != MS_OK) {
        return rc;
    }
    target->use_tls = target->files.p12_path[0] != '\0';
    if (!target->use_tls && (mode == TLS_ON || !ms_addr_names_loopback(addr))) {
        const char *dir = places->user_dir != NULL ? places->user_dir : "~/.config/msched";
        return ms_fail(
            err, MS_E_TLS,
            "no certificate to show to %.80s (client.p12 in %.60s): on the head node msctl certs "
            "issue user $USER, here msctl certs install $USER.p12; or TLS off on both "
            "sides: MS_ENABLE_SSL=0",
            config->server, dir);
    }
    return MS_OK;
}

/* ---- all together ---- */

static int set_target(const struct finder_places *places, struct config *config,
                      struct finder_target *target, struct ms_err *err)
{
    const char *server = config->server;
    const char *path = strncmp(server, "unix:", 5) == 0 ? server + 5 : server;
    if (path != server || server[0] == '/') {
        /* a long path is made short when it is used (finder_short_path) */
        if (path[0] != '/') {
            return ms_fail(err, MS_E_INVALID, "address '%.200s': the path must begin with /",
                           server);
        }
        target->is_unix = 1;
        snprintf(target->address, sizeof(target->address), "unix:%s", path);
        return MS_OK;
    }
    struct ms_addr addr;
    int rc = ms_addr_parse(server, MS_SCHED_PORT, &addr, err);
    if (rc != MS_OK) {
        return rc;
    }
    char text[MS_ADDR_MAX + 1];
    snprintf(target->address, sizeof(target->address), "%s", ms_addr_format(&addr, text));
    snprintf(target->tls_host, sizeof(target->tls_host), "%s", addr.host);
    return decide_tls(places, config, &addr, target, err);
}

int finder_find(const struct finder_places *places, struct finder_target *ret, struct ms_err *err)
{
    struct config config;
    memset(&config, 0, sizeof(config));
    memset(ret, 0, sizeof(*ret));
    config.tls = -1;
    int rc = read_first_places(places, &config, ret, err);
    if (rc == MS_OK) {
        rc = read_files(places, &config, ret, err);
    }
    if (rc == MS_OK && config.server[0] == '\0') {
        snprintf(config.server, sizeof(config.server), "unix:%s", places->socket_path);
        tried(ret, "the local socket", "%s", config.server);
    }
    if (rc == MS_OK) {
        rc = set_target(places, &config, ret, err);
    }
    return rc;
}

void finder_target_wipe(struct finder_target *target)
{
    ms_tls_files_wipe(&target->files);
}

int finder_tls(const struct finder_target *target, SSL_CTX **ret, char *ret_warning,
               struct ms_err *err)
{
    *ret = NULL;
    ret_warning[0] = '\0';
    if (!target->use_tls) {
        return MS_OK;
    }
    struct ms_tls_config cfg;
    memset(&cfg, 0, sizeof(cfg));
    ms_tls_files_config(&target->files, &cfg);
    cfg.roles = MS_ROLE_USER | MS_ROLE_ADMIN;
    return ms_tls_context(&cfg, ret, ret_warning, err);
}

int finder_short_path(const char *address, char *dst, size_t size, int *ret_fd, struct ms_err *err)
{
    const char *path = address + strlen("unix:");
    if (strncmp(address, "unix:", 5) != 0 || strlen(path) <= UNIX_PATH_BYTES) {
        snprintf(dst, size, "%s", address);
        *ret_fd = -1;
        return MS_OK;
    }
    char dir[MS_PATH_MAX + 8];
    const char *base = strrchr(path, '/') + 1;
    if (strlen(base) > UNIX_PATH_BYTES - 32) {
        return ms_fail(err, MS_E_INVALID, "the name of the socket %.120s is too long", path);
    }
    snprintf(dir, sizeof(dir), "%.*s", (int)(base - path), path);
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_UNREACHABLE, "cannot open the directory %.200s", dir);
    }
    snprintf(dst, size, "unix:/proc/self/fd/%d/%s", fd, base);
    *ret_fd = fd;
    return MS_OK;
}
