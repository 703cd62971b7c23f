/* cmd_certs_install.c - msctl certs install: a certificate put where the programs look for it */
#include "cli/certs.h"
#include "cli/json.h"

#include "config.h"
#include "proto/cert_install.h"
#include "proto/crl_files.h"
#include "proto/denied.h"
#include "proto/folder.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAEMON_GROUP "msched"

int certs_needs_sudo(const struct ms_err *err)
{
    return geteuid() != 0 && err->code == MS_E_IO && strstr(err->text, strerror(EACCES)) != NULL;
}

static int say_sudo(int rc, struct ms_err *err)
{
    char why[MS_ERR_TEXT_MAX];
    if (rc == MS_OK || !certs_needs_sudo(err)) {
        return rc;
    }
    snprintf(why, sizeof(why), "%s", err->text);
    return ms_fail(err, rc, "%.300s: sudo, or --to DIR for one of your own", why);
}

/* A daemon's: root's, and readable for the group of the daemons. */
static int place_daemon(struct ms_cert_place *place, struct ms_err *err)
{
    place->name = "node.p12";
    if (geteuid() != 0) { /* a folder of one's own, for daemons that one starts oneself */
        int rc = certs_make_folder(place->folder, 0755, 0700, err);
        return rc == MS_OK && access(place->folder, W_OK | X_OK) != 0
                   ? ms_fail_errno(err, MS_E_IO, "cannot write in the folder %s", place->folder)
                   : rc;
    }
    const struct group *group = getgrnam(DAEMON_GROUP);
    if (group == NULL) {
        return ms_fail(err, MS_E_CONFIG,
                       "there is no group " DAEMON_GROUP ", as which the daemons read their key: "
                       "systemd-sysusers makes it");
    }
    place->group = group->gr_gid;
    place->mode = 0640;
    struct stat before;
    int is_new = stat(place->folder, &before) != 0;
    int rc = certs_make_folder(place->folder, 0755, 0750, err);
    if (rc == MS_OK && is_new && chown(place->folder, (uid_t)-1, place->group) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot give %s to its group", place->folder);
    }
    return rc;
}

/* A folder that root makes in somebody's would keep him out. */
static int refuse_to_make(const char *folder, struct ms_err *err)
{
    char above[MS_PATH_MAX + 1];
    char name[MS_NAME_MAX + 1];
    struct stat st;
    ms_folder_of(folder, above, sizeof(above));
    while (stat(above, &st) != 0 && strcmp(above, "/") != 0 && strcmp(above, ".") != 0) {
        char lower[MS_PATH_MAX + 1];
        memcpy(lower, above, sizeof(lower));
        ms_folder_of(lower, above, sizeof(above));
    }
    if (stat(above, &st) != 0 || st.st_uid == 0) {
        return MS_OK;
    }
    ms_denied_name(st.st_uid, name, sizeof(name));
    return ms_fail(err, MS_E_REFUSED,
                   "there is no folder %.200s, and one of root's would keep %s out: sudo -u %s "
                   "mkdir -p -m 700 %.200s, and again",
                   folder, name, name, folder);
}

/* Root may do it for somebody, whose folder it is: he alone could use it. */
static int place_person(struct ms_cert_place *place, struct ms_err *err)
{
    struct stat folder;
    place->name = "client.p12";
    if (geteuid() == 0 && stat(place->folder, &folder) != 0 &&
        refuse_to_make(place->folder, err) != MS_OK) {
        return MS_E_REFUSED;
    }
    int rc = certs_make_folder(place->folder, 0700, 0700, err);
    if (rc == MS_OK && geteuid() == 0 && stat(place->folder, &folder) == 0) {
        place->owner = folder.st_uid;
        place->group = folder.st_gid;
    }
    return rc;
}

/* The folder where nothing says another. */
static int find_folder(const struct cli_args *args, int is_daemon, char *buf, size_t size,
                       const char **ret, struct ms_err *err)
{
    const char *to = cli_value(args, "to");
    const char *folder = to != NULL  ? to
                         : is_daemon ? MSCHED_SYSCONFDIR "/tls"
                                     : cli_user_dir(buf, size);
    if (folder == NULL) {
        return ms_fail(err, MS_E_CONFIG, "HOME is not set: name the folder with --to");
    }
    *ret = folder;
    return MS_OK;
}

static void say_installed(struct cli *cli, const struct ms_cert_place *place, const char *uri)
{
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:s,s:s}", "folder", place->folder, "file",
                                           place->name, "identity", uri));
        return;
    }
    fprintf(cli->out,
            "%s is in %s/%s, its CA in ca.crt beside it; the copy that travelled can be "
            "removed\n",
            uri, place->folder, place->name);
}

/* Where the CA was made anew, and an older list lies beside. */
static void warn_of_foreign_list(const struct cli *cli, const char *folder)
{
    char list[MS_PATH_MAX + 1];
    char ca[MS_PATH_MAX + 1];
    snprintf(list, sizeof(list), "%.*s/crl.pem", MS_PATH_MAX - 8, folder);
    snprintf(ca, sizeof(ca), "%.*s/ca.crt", MS_PATH_MAX - 7, folder);
    if (ms_crl_is_foreign(list, ca)) {
        int is_system = strncmp(folder, MSCHED_SYSCONFDIR "/", sizeof(MSCHED_SYSCONFDIR)) == 0;
        cli_say(cli,
                "%s is the list of another CA, and no program starts beside it: where the CA is: "
                "msctl certs crl; here: msctl certs install crl.pem%s%s, or remove the list if "
                "nobody was revoked",
                list, is_system ? "" : " --to ", is_system ? "" : folder);
    }
}

static int install_cert(struct cli *cli, const struct cli_args *args, const struct ms_whole *file,
                        const char *password, struct ms_err *err)
{
    char uri[MS_NAME_MAX + 32];
    char user_dir[MS_PATH_MAX + 1];
    struct ms_cert_place place = {
        .mode = 0600, .owner = (uid_t)-1, .group = (gid_t)-1, .force = cli_has(args, "force")};
    int rc = ms_cert_who(file, password, uri, sizeof(uri), err);
    int is_daemon = rc == MS_OK && (strncmp(uri, "ms://worker/", 12) == 0 ||
                                    strncmp(uri, "ms://scheduler/", 15) == 0);
    if (rc == MS_OK) {
        rc = find_folder(args, is_daemon, user_dir, sizeof(user_dir), &place.folder, err);
    }
    if (rc == MS_OK) {
        rc = is_daemon ? say_sudo(place_daemon(&place, err), err) : place_person(&place, err);
    }
    if (rc == MS_OK) {
        rc = ms_cert_install(file, password, &place, err);
    }
    if (rc == MS_OK) {
        say_installed(cli, &place, uri);
        warn_of_foreign_list(cli, place.folder);
    }
    return rc;
}

int certs_install(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_whole file;
    struct ms_tls_files files;
    int rc = cli_need_words(args, 2, 2, "FILE", err);
    if (rc == MS_OK) {
        rc = certs_password(args, &files, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    rc = ms_whole_read(args->words[1], "", &file, err);
    if (rc == MS_OK) {
        rc = ms_crl_is(&file) ? say_sudo(certs_install_list(cli, args, &file, err), err)
                              : install_cert(cli, args, &file, files.password, err);
        ms_whole_fini(&file);
    }
    ms_tls_files_wipe(&files);
    return rc;
}
