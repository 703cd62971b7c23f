/* cmd_certs.c - msctl certs: the cluster's certificate authority, in files */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/json.h"

#include "config.h"
#include "proto/cert.h"
#include "proto/settings.h"
#include "proto/tls_files.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const struct cli_option cmd_certs_options[] = {
    {"dir", 'd', "DIR", "of the authority; " MSCHED_SYSCONFDIR "/ca unless given", NULL},
    {"host", 0, "HOST", "issue: name or address of the machine; may be given again", NULL},
    {"out", 'o', "FILE", "issue: the PKCS#12 file; NAME.p12 unless given. revoke: the CRL", NULL},
    {"days", 0, "N", "how long it is valid: CA 3650, certificates 365, CRL 30", NULL},
    {"password-file", 0, "FILE", "its first line protects the PKCS#12 file", NULL},
    {"force", 0, NULL, "issue: replace the file if it exists", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

enum { HOSTS_MAX = 16, DAYS_MAX = 36500 };

static const char *ca_dir(const struct cli_args *args)
{
    const char *dir = cli_value(args, "dir");
    return dir != NULL ? dir : MSCHED_SYSCONFDIR "/ca";
}

static int read_password(const struct cli_args *args, struct ms_tls_files *files,
                         struct ms_err *err)
{
    const char *path = cli_value(args, "password-file");
    memset(files, 0, sizeof(*files));
    return path != NULL ? ms_tls_files_password(path, files, err) : MS_OK;
}

/* Parents of the authority's folder, for a host where nothing of ours was installed. */
static int make_parents(const char *dir, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    if (strlen(dir) >= sizeof(path)) {
        return ms_fail(err, MS_E_INVALID, "the path of the directory has more than %d bytes",
                       MS_PATH_MAX);
    }
    memcpy(path, dir, strlen(dir) + 1);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && access(path, F_OK) != 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot make the directory %.200s", path);
        }
        *slash = '/';
    }
    return MS_OK;
}

static int certs_init(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_ca *ca = NULL;
    int64_t days = 0;
    char name[MS_NAME_MAX + 1];
    char host[MS_NAME_MAX - 16] = "";
    int rc = cli_need_words(args, 1, 2, "init", err);
    if (rc == MS_OK) {
        rc = cli_number(args, "days", 1, DAYS_MAX, 3650, &days, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const char *dir = args->n_words == 2 ? args->words[1] : ca_dir(args);
    (void)gethostname(host, sizeof(host) - 1); /* it only helps people to tell authorities apart */
    snprintf(name, sizeof(name), "msched CA %s", host);
    rc = make_parents(dir, err);
    if (rc == MS_OK) {
        rc = ms_ca_create(name, (int)days, &ca, err);
    }
    if (rc == MS_OK) {
        rc = ms_ca_save(ca, dir, err);
    }
    ms_ca_destroy(ca);
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s}", "directory", dir));
    } else {
        fprintf(cli->out,
                "made the authority in %s; keep ca.key there\n"
                "next: msctl certs issue scheduler NAME --host THIS-HOST, then one for each node:\n"
                "      msctl certs issue worker HOST; ca.crt goes beside each of them\n",
                dir);
    }
    return MS_OK;
}

static const struct {
    const char *name;
    enum ms_role role;
} roles[] = {
    {"worker", MS_ROLE_WORKER},
    {"user", MS_ROLE_USER},
    {"admin", MS_ROLE_ADMIN},
    {"scheduler", MS_ROLE_SCHEDULER},
};

static int parse_role(const char *text, enum ms_role *ret, struct ms_err *err)
{
    const char *names[MS_ARRAY_SIZE(roles)];
    for (size_t i = 0; i < MS_ARRAY_SIZE(roles); i++) {
        names[i] = roles[i].name;
        if (strcmp(roles[i].name, text) == 0) {
            *ret = roles[i].role;
            return MS_OK;
        }
    }
    const char *near = ms_nearest(text, names, MS_ARRAY_SIZE(roles));
    return ms_fail(err, MS_E_INVALID,
                   "'%.80s' is no role%s%s%s; it must be worker, user, admin or scheduler", text,
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

/* The name is a part of a URI and of a file name: ms://worker/NAME. */
static int check_name(const char *name, struct ms_err *err)
{
    size_t n = strlen(name);
    int good = n > 0 && n <= MS_NAME_MAX && name[0] != '.' && name[0] != '-';
    for (size_t i = 0; good && i < n; i++) {
        good = isalnum((unsigned char)name[i]) || strchr("._-", name[i]) != NULL;
    }
    return good ? MS_OK
                : ms_fail(err, MS_E_INVALID,
                          "'%.80s' is no name for a certificate: 1 to %d letters, digits, dots, "
                          "dashes and underscores, not beginning with a dot or a dash",
                          name, MS_NAME_MAX);
}

static int certs_issue(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_cert_request request;
    struct ms_tls_files files;
    struct ms_ca *ca = NULL;
    const char *hosts[HOSTS_MAX + 2];
    char path[MS_PATH_MAX + 8];
    char serial[64] = "";
    int64_t days = 0;
    memset(&request, 0, sizeof(request));
    int rc = cli_need_words(args, 3, 3, "ROLE NAME", err);
    if (rc == MS_OK) {
        rc = parse_role(args->words[1], &request.role, err);
    }
    if (rc == MS_OK) {
        rc = check_name(args->words[2], err);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "days", 1, DAYS_MAX, 365, &days, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    request.name = args->words[2];
    request.days = (int)days;
    size_t n = cli_values(args, "host", hosts, HOSTS_MAX);
    if (n == 0 && (request.role == MS_ROLE_WORKER || request.role == MS_ROLE_SCHEDULER)) {
        hosts[n++] = request.name; /* `issue worker HOST` is the common case */
    }
    hosts[n] = NULL;
    request.hosts = hosts;
    const char *out = cli_value(args, "out");
    snprintf(path, sizeof(path), "%s%s", out != NULL ? out : request.name,
             out != NULL ? "" : ".p12");
    if (!cli_has(args, "force") && access(path, F_OK) == 0) {
        return ms_fail(err, MS_E_EXISTS,
                       "%.200s exists already: remove it, name another with "
                       "--out, or replace it with --force",
                       path);
    }
    rc = read_password(args, &files, err);
    if (rc == MS_OK) {
        rc = ms_ca_load(ca_dir(args), &ca, err);
    }
    if (rc == MS_OK) {
        request.password = files.password;
        rc = ms_ca_issue(ca, &request, path, serial, err);
    }
    ms_ca_destroy(ca);
    ms_tls_files_wipe(&files);
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:s,s:s,s:s}", "file", path, "role",
                                           args->words[1], "name", request.name, "serial", serial));
    } else {
        fprintf(cli->out, "%s: %s %s, valid for %d days, serial %s\n", path, args->words[1],
                request.name, request.days, serial);
    }
    return MS_OK;
}

static int certs_revoke(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_tls_files files;
    struct ms_ca *ca = NULL;
    char path[MS_PATH_MAX + 16];
    int64_t days = 0;
    int rc = cli_need_words(args, 2, 2, "FILE", err);
    if (rc == MS_OK) {
        rc = cli_number(args, "days", 1, DAYS_MAX, 30, &days, err);
    }
    if (rc == MS_OK) {
        rc = read_password(args, &files, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const char *out = cli_value(args, "out");
    snprintf(path, sizeof(path), "%s%s", out != NULL ? out : ca_dir(args),
             out != NULL ? "" : "/crl.pem");
    rc = ms_ca_load(ca_dir(args), &ca, err);
    if (rc == MS_OK) {
        rc = ms_ca_revoke(ca, args->words[1], files.password, path, (int)days, err);
    }
    ms_ca_destroy(ca);
    ms_tls_files_wipe(&files);
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s}", "crl", path));
    } else {
        fprintf(cli->out,
                "%s is revoked in %s, which is valid for %lld days\n"
                "copy it to every node as tls/crl.pem and reload: systemctl reload msschedd\n",
                args->words[1], path, (long long)days);
    }
    return MS_OK;
}

static int certs_show(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_cert_info info;
    struct ms_tls_files files;
    char from[CLI_FORMAT_MAX];
    char to[CLI_FORMAT_MAX];
    int rc = cli_need_words(args, 2, 2, "FILE", err);
    if (rc == MS_OK) {
        rc = read_password(args, &files, err);
    }
    if (rc == MS_OK) {
        rc = ms_cert_inspect(args->words[1], files.password, &info, err);
        ms_tls_files_wipe(&files);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out,
                       json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:I}", "subject", info.subject, "uri",
                                 info.uri, "issuer", info.issuer, "serial", info.serial, "hosts",
                                 info.hosts, "not_before", (json_int_t)info.not_before, "not_after",
                                 (json_int_t)info.not_after));
        return MS_OK;
    }
    double days = difftime(info.not_after, time(NULL)) / 86400;
    fprintf(cli->out, "subject     %s\nidentity    %s\nissuer      %s\nserial      %s\n",
            info.subject, info.uri[0] != '\0' ? info.uri : "-", info.issuer, info.serial);
    fprintf(cli->out, "hosts       %s\nvalid       %s to %s (%s%.0f days)\n",
            info.hosts[0] != '\0' ? info.hosts : "-",
            cli_format_time(from, (int64_t)info.not_before * 1000),
            cli_format_time(to, (int64_t)info.not_after * 1000), days < 0 ? "over since " : "",
            days < 0 ? -days : days);
    return MS_OK;
}

static const struct {
    const char *name;
    cli_command_fn *run;
} actions[] = {
    {"init", certs_init},
    {"issue", certs_issue},
    {"revoke", certs_revoke},
    {"show", certs_show},
};

int cmd_certs(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    const char *names[MS_ARRAY_SIZE(actions)];
    int rc = cli_need_words(args, 1, CLI_WORDS_MAX, "init, issue, revoke or show", err);
    if (rc != MS_OK) {
        return rc;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(actions); i++) {
        names[i] = actions[i].name;
        if (strcmp(actions[i].name, args->words[0]) == 0) {
            return actions[i].run(cli, args, err);
        }
    }
    const char *near = ms_nearest(args->words[0], names, MS_ARRAY_SIZE(actions));
    return ms_fail(err, MS_E_INVALID,
                   "msctl certs: unknown action '%.80s'%s%s%s; it must be init, issue, revoke or "
                   "show",
                   args->words[0], near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}
