/* cmd_certs_crl.c - msctl certs install crl.pem: the list of revoked ones, for all programs of this
 * host */
#include "cli/certs.h"
#include "cli/json.h"

#include "config.h"
#include "proto/crl_files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS_MAX = 16 };

/* The folders of this host that hold certificates: one that was forgotten goes on trusting whom the
 * others do not. */
struct folders {
    char paths[FOLDERS_MAX][MS_PATH_MAX + 1];
    size_t n;
};

static void add_folder(struct folders *folders, const char *folder)
{
    char ca[MS_PATH_MAX + 16];
    char *path = realpath(folder, NULL);
    if (path == NULL || strlen(path) > MS_PATH_MAX || folders->n == FOLDERS_MAX) {
        free(path);
        return;
    }
    snprintf(ca, sizeof(ca), "%s/ca.crt", path);
    int is_new = access(ca, F_OK) == 0;
    for (size_t i = 0; i < folders->n; i++) {
        is_new &= strcmp(folders->paths[i], path) != 0;
    }
    if (is_new) {
        snprintf(folders->paths[folders->n++], MS_PATH_MAX + 1, "%s", path);
    }
    free(path);
}

/* What a file of settings calls tls_dir; the programs judge the file, here it is only looked at. */
static void add_setting(struct folders *folders, const char *settings)
{
    char line[MS_PATH_MAX + 64];
    char value[MS_PATH_MAX + 1];
    FILE *file = fopen(settings, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, " tls_dir = %4096[^#\r\n]", value) == 1) {
            size_t n = strlen(value);
            while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t')) {
                value[--n] = '\0';
            }
            add_folder(folders, value);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void find_folders(struct folders *folders)
{
    glob_t found;
    if (glob(MSCHED_SYSCONFDIR "/tls*", GLOB_ONLYDIR, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            add_folder(folders, found.gl_pathv[i]);
        }
        globfree(&found);
    }
    add_setting(folders, MSCHED_SYSCONFDIR "/msschedd.conf");
    add_setting(folders, MSCHED_SYSCONFDIR "/msworker.conf");
}

static void say(struct cli *cli, const struct folders *folders)
{
    json_t *list = json_array();
    for (size_t i = 0; i < folders->n; i++) {
        json_array_append_new(list, json_string(folders->paths[i]));
        if (!cli->json) {
            fprintf(cli->out, "the list of revoked certificates is in %s/crl.pem\n",
                    folders->paths[i]);
        }
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:o}", "file", "crl.pem", "folders", list));
        return;
    }
    json_decref(list);
    fprintf(cli->out, "next, so that the daemons of this host heed it: sudo " CERTS_RELOAD "\n");
}

int certs_install_list(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct folders folders = {.n = 0};
    const char *to = cli_value(args, "to");
    if (to != NULL) {
        snprintf(folders.paths[folders.n++], MS_PATH_MAX + 1, "%s", to);
    } else {
        find_folders(&folders);
    }
    if (folders.n == 0) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "no folder of certificates is here: " MSCHED_SYSCONFDIR
                       "/tls has no ca.crt; name another with --to");
    }
    int rc = MS_OK;
    for (size_t i = 0; i < folders.n && rc == MS_OK; i++) {
        rc = ms_crl_install(args->words[1], folders.paths[i], cli_has(args, "force"), err);
    }
    if (rc == MS_OK) {
        say(cli, &folders);
    }
    return rc;
}
