/* crl_targets.c - where the programs of this host look for their list of revoked certificates */
#include "cli/crl_targets.h"

#include "proto/folder.h"
#include "proto/grow.h"
#include "proto/settings_file.h"
#include "proto/tls_files.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PLACE_MAX = MS_PATH_MAX + 64
}; /* a path and what lies there; too long ones are told by it */

static int add_row(struct crl_targets *targets, const char *list, const char *ca,
                   struct ms_err *err)
{
    if (strlen(list) > MS_PATH_MAX || strlen(ca) > MS_PATH_MAX) {
        return ms_fail(err, MS_E_INVALID, "the path %.64s... is too long", list);
    }
    for (size_t i = 0; i < targets->n; i++) {
        if (strcmp(targets->rows[i].list, list) == 0) {
            return MS_OK;
        }
    }
    struct crl_target *rows =
        (struct crl_target *)ms_grow(targets->rows, targets->n, 1, sizeof(*rows), &targets->room);
    if (rows == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the folders of certificates");
    }
    targets->rows = rows;
    snprintf(rows[targets->n].list, sizeof(rows->list), "%s", list);
    snprintf(rows[targets->n++].ca, sizeof(rows->ca), "%s", ca);
    return MS_OK;
}

int crl_targets_folder(const char *folder, struct crl_targets *ret, struct ms_err *err)
{
    char list[PLACE_MAX];
    char ca[PLACE_MAX];
    snprintf(list, sizeof(list), "%s/crl.pem", folder);
    snprintf(ca, sizeof(ca), "%s/ca.crt", folder);
    return add_row(ret, list, ca, err);
}

void crl_targets_fini(struct crl_targets *targets)
{
    free(targets->rows);
    targets->rows = NULL;
    targets->n = 0;
}

struct finding {
    const struct cli *cli;
    const char *dir;
    struct crl_targets *targets;
};

/* ---- what one setting names ----
 * What it is about goes before each word: "tls_dir in /etc/msched/msworker.conf". */

static int leave_out(const struct finding *finding, const char *what, const char *path,
                     const char *why)
{
    cli_say(finding->cli, "%s names %.200s, %s; nothing is installed there", what, path, why);
    return MS_OK;
}

/* What may not be looked at is there: the try to install something beside it says so. */
static int is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* A list is known by the real path of its folder, however its name was written. */
static int add(const struct finding *finding, const char *what, const char *list, const char *ca,
               struct ms_err *err)
{
    char folder[PLACE_MAX];
    char real_list[2 * PLACE_MAX];
    if (list[0] != '/' || ca[0] != '/') {
        return leave_out(finding, what, list[0] != '/' ? list : ca,
                         "which is relative to where its program runs: see --to");
    }
    if (strlen(list) > MS_PATH_MAX || strlen(ca) > MS_PATH_MAX) {
        return leave_out(finding, what, list, "a path that is too long, or its CA's is");
    }
    char *real = realpath(ms_folder_of(list, folder, sizeof(folder)), NULL);
    if (real == NULL) {
        return leave_out(finding, what, list, "whose folder cannot be looked at");
    }
    if (!is_there(ca)) {
        free(real);
        return leave_out(finding, what, list, "but the CA that it is judged by is not there");
    }
    snprintf(real_list, sizeof(real_list), "%s/%s", real, strrchr(list, '/') + 1);
    free(real);
    if (strlen(real_list) > MS_PATH_MAX) {
        return leave_out(finding, what, list, "whose real path is too long");
    }
    return add_row(finding->targets, real_list, ca, err);
}

static int add_folder(const struct finding *finding, const char *what, const char *folder,
                      struct ms_err *err)
{
    char list[PLACE_MAX];
    char ca[PLACE_MAX];
    if (strlen(folder) > MS_PATH_MAX) {
        return leave_out(finding, what, folder, "a path that is too long");
    }
    snprintf(list, sizeof(list), "%s/crl.pem", folder);
    snprintf(ca, sizeof(ca), "%s/ca.crt", folder);
    return add(finding, what, list, ca, err);
}

/* ---- the programs' settings ---- */

enum { TLS, CONFIG, CERT, CA, CRL, N_KEYS };

static int is_one_of(const char *value, const char *a, const char *b)
{
    return value != NULL && (strcmp(value, a) == 0 || strcmp(value, b) == 0);
}

static int add_json(const struct finding *finding, const char *json, struct ms_err *err)
{
    struct ms_tls_files files;
    struct ms_err why = {.code = MS_OK};
    int rc = MS_OK;
    if (ms_tls_files_parse(json, 1, &files, &why) != MS_OK) {
        cli_say(finding->cli, "%s; no list is installed for it", why.text);
    } else if (files.crl_path[0] != '\0') {
        rc = add(finding, json, files.crl_path, files.ca_path, err);
    } else if (strlen(json) <= MS_PATH_MAX) {
        struct crl_target *unnamed = &finding->targets->unnamed;
        snprintf(unnamed->list, sizeof(unnamed->list), "%s", json);
        snprintf(unnamed->ca, sizeof(unnamed->ca), "%s", files.ca_path);
    }
    ms_tls_files_wipe(&files);
    return rc;
}

/* As daemon/options_values.c takes them: what is not said is a place below tls. */
static int add_scheduler(const struct finding *finding, const char *file, char *const *values,
                         struct ms_err *err)
{
    char what[PLACE_MAX];
    char ca[PLACE_MAX];
    char list[PLACE_MAX];
    if (is_one_of(values[TLS], "off", "0") || is_one_of(values[CERT], "none", "")) {
        return MS_OK;
    }
    if (values[CONFIG] != NULL && values[CONFIG][0] != '\0') {
        return add_json(finding, values[CONFIG], err);
    }
    if (is_one_of(values[CRL], "none", "")) {
        cli_say(finding->cli,
                "msschedd heeds no list of revoked certificates: tls_crl = none in %s", file);
        return MS_OK;
    }
    if (values[CA] == NULL && values[CRL] == NULL) {
        return MS_OK;
    }
    snprintf(what, sizeof(what), "%s in %s", values[CRL] != NULL ? "tls_crl" : "tls_ca", file);
    snprintf(ca, sizeof(ca), "%s/tls/ca.crt", finding->dir);
    snprintf(list, sizeof(list), "%s/tls/crl.pem", finding->dir);
    return add(finding, what, values[CRL] != NULL ? values[CRL] : list,
               values[CA] != NULL ? values[CA] : ca, err);
}

static int add_worker(const struct finding *finding, const char *file, char *const *values,
                      struct ms_err *err)
{
    char what[PLACE_MAX];
    snprintf(what, sizeof(what), "tls_dir in %s", file);
    return values[0] != NULL && values[0][0] != '\0' ? add_folder(finding, what, values[0], err)
                                                     : MS_OK;
}

typedef int add_fn(const struct finding *finding, const char *file, char *const *values,
                   struct ms_err *err);

static int look_into(const struct finding *finding, const char *name, const char *const *keys,
                     size_t n, add_fn *fn, struct ms_err *err)
{
    char file[PLACE_MAX];
    char *values[N_KEYS] = {NULL};
    struct ms_err why = {.code = MS_OK};
    snprintf(file, sizeof(file), "%s/%s", finding->dir, name);
    int rc = ms_settings_file_find(file, keys, values, n, &why);
    if (rc != MS_OK) {
        if (rc != MS_E_NOT_FOUND) {
            cli_say(finding->cli, "%s; no list is installed where it may name one", why.text);
        }
        return MS_OK;
    }
    rc = fn(finding, file, values, err);
    for (size_t i = 0; i < n; i++) {
        free(values[i]);
    }
    return rc;
}

static int add_beside(const struct finding *finding, struct ms_err *err)
{
    char place[PLACE_MAX];
    glob_t found;
    int rc = MS_OK;
    snprintf(place, sizeof(place), "%s/tls*", finding->dir);
    if (glob(place, GLOB_ONLYDIR, NULL, &found) != 0) {
        return MS_OK;
    }
    for (size_t i = 0; i < found.gl_pathc && rc == MS_OK; i++) {
        char ca[2 * PLACE_MAX];
        snprintf(ca, sizeof(ca), "%s/ca.crt", found.gl_pathv[i]);
        if (is_there(ca)) { /* else it is no folder of certificates */
            rc = add_folder(finding, place, found.gl_pathv[i], err);
        }
    }
    globfree(&found);
    return rc;
}

int crl_targets_find(const struct cli *cli, const char *dir, struct crl_targets *ret,
                     struct ms_err *err)
{
    static const char *const scheduler[N_KEYS] = {"tls", "tls_config", "tls_cert", "tls_ca",
                                                  "tls_crl"};
    static const char *const worker[] = {"tls_dir"};
    const struct finding finding = {cli, dir, ret};
    int rc = look_into(&finding, "msschedd.conf", scheduler, N_KEYS, add_scheduler, err);
    if (rc == MS_OK) {
        rc = look_into(&finding, "msworker.conf", worker, 1, add_worker, err);
    }
    return rc == MS_OK ? add_beside(&finding, err) : rc;
}
