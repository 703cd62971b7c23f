/* cmd_certs.c - msctl certs: the cluster's certificate authority, in files */
#include "cli/format.h"
#include "cli/json.h"

#include "cli/certs.h"
#include "config.h"
#include "proto/authority.h"
#include "proto/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct cli_option cmd_certs_options[] = {
    {"dir", 'd', "DIR", "of the authority; " MSCHED_SYSCONFDIR "/ca unless given", NULL},
    {"host", 0, "HOST", "issue: name or address of the machine; may be given again", NULL},
    {"out", 'o', "FILE",
     "the PKCS#12 file, NAME.p12 unless given; of revoke and crl: one more copy of the list", NULL},
    {"to", 0, "DIR", "install: the folder; that of the programs unless given", NULL},
    {"days", 0, "N", "how long it is valid: CA 3650, certificates 365, list of revoked ones 30",
     NULL},
    {"password-file", 0, "FILE", "its first line protects the PKCS#12 file", NULL},
    {"force", 0, NULL, "issue, renew, install: replace what exists", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const char *certs_dir(const struct cli_args *args)
{
    const char *dir = cli_value(args, "dir");
    return dir != NULL ? dir : MSCHED_SYSCONFDIR "/ca";
}

int certs_password(const struct cli_args *args, struct ms_tls_files *files, struct ms_err *err)
{
    const char *path = cli_value(args, "password-file");
    memset(files, 0, sizeof(*files));
    if (path == NULL) {
        return MS_OK;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_CONFIG, "password file %s", path);
    }
    int rc = ms_tls_files_password_of(fd, path, files, err);
    close(fd);
    return rc;
}

int certs_make_folder(const char *path, mode_t parents, mode_t last, struct ms_err *err)
{
    char part[MS_PATH_MAX + 2];
    size_t n = strlen(path);
    if (n == 0 || n > MS_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID, "the path of a folder must have 1 to %d bytes",
                       MS_PATH_MAX);
    }
    snprintf(part, sizeof(part), "%s/", path);
    mode_t before = umask(0); /* root's umask of 077 would lock the daemons out */
    int rc = MS_OK;
    for (char *slash = strchr(part + 1, '/'); slash != NULL && rc == MS_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(part, slash[1] == '\0' ? last : parents) != 0;
        int why = errno;
        if (failed && access(part, F_OK) != 0) {
            errno = why;
            rc = ms_fail_errno(err, MS_E_IO, "cannot make the folder %.200s", part);
        }
        *slash = '/';
    }
    umask(before);
    return rc;
}

static int certs_init(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_ca *ca = NULL;
    int64_t days = 0;
    char name[MS_NAME_MAX + 1];
    char host[MS_NAME_MAX - 16] = "";
    int rc = cli_need_words(args, 1, 2, "init", err);
    if (rc == MS_OK) {
        rc = cli_number(args, "days", 1, CERTS_DAYS_MAX, 3650, &days, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const char *dir = args->n_words == 2 ? args->words[1] : certs_dir(args);
    (void)gethostname(host, sizeof(host) - 1); /* it only helps people to tell authorities apart */
    snprintf(name, sizeof(name), "msched CA %s", host);
    rc = certs_make_folder(dir, 0755, 0700, err);
    if (rc == MS_OK) {
        rc = ms_ca_create(name, (int)days, &ca, err);
    }
    if (rc == MS_OK) {
        rc = ms_authority_create(dir, ca, err);
    }
    ms_ca_destroy(ca);
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s}", "directory", dir));
    } else {
        const char *flag = strcmp(dir, MSCHED_SYSCONFDIR "/ca") != 0 ? " -d " : "";
        const char *where = flag[0] != '\0' ? dir : "";
        fprintf(cli->out,
                "made the authority in %s; ca.key stays there, and a copy in a safe\n"
                "next, here:      msctl certs issue scheduler THIS-HOST%s%s && msctl certs install "
                "THIS-HOST.p12\n"
                "for each node:   msctl certs issue worker HOST%s%s; copy HOST.p12 to it; there: "
                "msctl certs install HOST.p12\n",
                dir, flag, where, flag, where);
    }
    return MS_OK;
}

static const struct {
    const char *name;
    enum ms_role role;
    int is_host; /* others connect to it, and its name is most often the host's */
} roles[] = {
    {"worker", MS_ROLE_WORKER, 1},
    {"user", MS_ROLE_USER, 0},
    {"admin", MS_ROLE_ADMIN, 0},
    {"scheduler", MS_ROLE_SCHEDULER, 1},
};

/* *ret: its row above. */
static int parse_role(const char *text, size_t *ret, struct ms_err *err)
{
    const char *names[MS_ARRAY_SIZE(roles)];
    for (size_t i = 0; i < MS_ARRAY_SIZE(roles); i++) {
        names[i] = roles[i].name;
        if (strcmp(roles[i].name, text) == 0) {
            *ret = i;
            return MS_OK;
        }
    }
    const char *near = ms_nearest(text, names, MS_ARRAY_SIZE(roles));
    return ms_fail(err, MS_E_INVALID,
                   "'%.80s' is no role%s%s%s; it must be worker, user, admin or scheduler", text,
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

static void say_issued(struct cli *cli, const char *path, const struct ms_ca_entry *entry)
{
    char until[CLI_FORMAT_MAX];
    if (cli->json) {
        json_t *row = certs_json(entry);
        json_object_set_new(row, "file", json_string(path));
        cli_json_print(cli->out, row);
        return;
    }
    fprintf(cli->out, "%s: %s %s, valid until %s, serial %s\n", path, entry->role, entry->name,
            cli_format_time(until, (int64_t)entry->to * 1000), entry->serial);
    fprintf(cli->out, "next: copy it to where it is used, and there: msctl certs install %s\n",
            path);
}

/* Days, and the password into files; the request borrows it. */
static int fill_request(const struct cli_args *args, int64_t days_default,
                        struct ms_tls_files *files, struct ms_cert_request *req, struct ms_err *err)
{
    int64_t days = 0;
    memset(req, 0, sizeof(*req));
    int rc = cli_number(args, "days", 1, CERTS_DAYS_MAX, days_default, &days, err);
    if (rc == MS_OK) {
        rc = certs_password(args, files, err);
    }
    req->days = (int)days;
    req->password = files->password;
    return rc;
}

static int certs_issue(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_cert_request request;
    struct ms_tls_files files;
    struct ms_authority *authority = NULL;
    const struct ms_ca_entry *entry = NULL;
    const char *hosts[MS_CERT_HOSTS_MAX + 2]; /* one too many is seen by the CA */
    char path[MS_PATH_MAX + 8];
    size_t role = 0;
    int rc = cli_need_words(args, 3, 3, "ROLE NAME", err);
    if (rc == MS_OK) {
        rc = parse_role(args->words[1], &role, err);
    }
    if (rc == MS_OK) {
        rc = ms_cert_name_check(args->words[2], err);
    }
    if (rc == MS_OK) {
        rc = fill_request(args, 365, &files, &request, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    request.role = roles[role].role;
    request.name = args->words[2];
    size_t n = cli_values(args, "host", hosts, MS_CERT_HOSTS_MAX + 1);
    if (n == 0 && roles[role].is_host) {
        hosts[n++] = request.name; /* `issue worker HOST` is the common case */
    }
    hosts[n] = NULL;
    request.hosts = hosts;
    const char *out = cli_value(args, "out");
    snprintf(path, sizeof(path), "%s%s", out != NULL ? out : request.name,
             out != NULL ? "" : ".p12");
    if (!cli_has(args, "force") && access(path, F_OK) == 0) {
        rc = ms_fail(err, MS_E_EXISTS,
                     "%.200s exists already: remove it, name another with "
                     "--out, or replace it with --force",
                     path);
    }
    if (rc == MS_OK) {
        rc = ms_authority_open(certs_dir(args), &authority, err);
    }
    if (rc == MS_OK) {
        rc = ms_authority_issue(authority, &request, path, &entry, err);
    }
    if (rc == MS_OK) {
        say_issued(cli, path, entry);
    }
    ms_authority_close(authority);
    ms_tls_files_wipe(&files);
    return rc;
}

static int certs_renew(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_cert_request request;
    struct ms_tls_files files;
    struct ms_authority *authority = NULL;
    const struct ms_ca_entry *entry = NULL;
    char path[MS_NAME_MAX + 8];
    int rc = cli_need_words(args, 2, 2, "NAME, SERIAL or FILE", err);
    if (rc == MS_OK) {
        rc = fill_request(args, 0, &files, &request, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const struct ms_authority_who who = {args->words[1], files.password};
    const char *out = cli_value(args, "out");
    rc = ms_authority_open(certs_dir(args), &authority, err);
    if (rc == MS_OK) {
        rc =
            ms_authority_renew(authority, &who, &request, out, cli_has(args, "force"), &entry, err);
    }
    if (rc == MS_OK) {
        snprintf(path, sizeof(path), "%s.p12", entry->name);
        say_issued(cli, out != NULL ? out : path, entry);
    }
    ms_authority_close(authority);
    ms_tls_files_wipe(&files);
    return rc;
}

static const struct {
    const char *name;
    cli_command_fn *run;
} actions[] = {
    {"init", certs_init}, {"issue", certs_issue}, {"install", certs_install},
    {"list", certs_list}, {"renew", certs_renew}, {"revoke", certs_revoke},
    {"crl", certs_crl},   {"show", certs_show},
};

/* The authority of the system is root's; who is not root has sudo, or makes one of his own. */
static int say_whose(const struct cli_args *args, int rc, struct ms_err *err)
{
    char why[MS_ERR_TEXT_MAX];
    int is_system = cli_value(args, "dir") == NULL && args->n_words > 0 &&
                    strcmp(args->words[0], "install") != 0 && strcmp(args->words[0], "show") != 0 &&
                    strstr(err->text, MSCHED_SYSCONFDIR) != NULL;
    if (rc != MS_E_IO || geteuid() == 0 || !is_system) {
        return rc;
    }
    snprintf(why, sizeof(why), "%s", err->text);
    return ms_fail(err, rc, "%.240s; that authority is root's: sudo, or -d DIR for one of your own",
                   why);
}

int cmd_certs(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    static const char all[] = "init, issue, install, list, renew, revoke, crl or show";
    const char *names[MS_ARRAY_SIZE(actions)];
    int rc = cli_need_words(args, 1, CLI_WORDS_MAX, all, err);
    if (rc != MS_OK) {
        return rc;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(actions); i++) {
        names[i] = actions[i].name;
        if (strcmp(actions[i].name, args->words[0]) == 0) {
            rc = say_whose(args, actions[i].run(cli, args, err), err);
            return rc == MS_E_TLS ? MS_E_INVALID : rc; /* of a file: no scheduler was looked for */
        }
    }
    const char *near = ms_nearest(args->words[0], names, MS_ARRAY_SIZE(actions));
    return ms_fail(err, MS_E_INVALID, "msctl certs: unknown action '%.80s'%s%s%s; it must be %s",
                   args->words[0], near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "", all);
}
