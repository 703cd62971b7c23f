/* certs.c - the worker program's certificates: where they lie, loaded, loaded again, about to
 * expire
 */
#include "libworker/program/certs.h"

#include "proto/crl_files.h"
#include "proto/folder.h"
#include "proto/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHECK_HOURS = 24, MS_AN_HOUR = 3600000 };

static int find_files(const struct certs *certs, struct ms_tls_files *files, struct ms_err *err)
{
    if (certs->kind == CERTS_JSON) {
        return ms_tls_files_parse(certs->json, 0, files, err);
    }
    memset(files, 0, sizeof(*files));
    if (strlen(certs->folder) + strlen(certs->p12) + 10 > MS_PATH_MAX) {
        return ms_fail(err, MS_E_CONFIG, "tls_dir is longer than %d bytes", MS_PATH_MAX - 32);
    }
    snprintf(files->p12_path, sizeof(files->p12_path), "%s/%s", certs->folder, certs->p12);
    snprintf(files->ca_path, sizeof(files->ca_path), "%s/ca.crt", certs->folder);
    snprintf(files->crl_path, sizeof(files->crl_path), "%s/crl.pem", certs->folder);
    files->crl_may_miss = !certs->has_list;
    return ms_tls_files_password(certs->password_file, files, err);
}

enum fault { FAULT_BESIDE, FAULT_OF_LIST, FAULT_THAT_PASSES };

/* Of files that do not load with the error *why. A list of revoked ones that is out of date, or
 * not valid yet, passes: the next one comes from its CA, or the clock is set; no next one takes
 * back a revocation, or is of another CA. Where more than the list is wrong, *why becomes that. */
static enum fault find_fault(const struct certs *certs, struct ms_err *why)
{
    struct ms_tls_files files;
    struct ms_tls_config cfg;
    SSL_CTX *unused = NULL;
    if (find_files(certs, &files, NULL) < 0 || files.crl_path[0] == '\0') {
        return FAULT_BESIDE;
    }
    int passes = ms_err_code(why) == MS_E_IO || ms_err_code(why) == MS_E_NOMEM ||
                 ms_crl_is_untimely(files.crl_path, files.ca_path);
    files.crl_path[0] = '\0';
    ms_tls_files_config(&files, &cfg);
    cfg.roles = MS_ROLE_WORKER;
    int rc = ms_tls_context(&cfg, &unused, NULL, why);
    ms_tls_files_wipe(&files);
    SSL_CTX_free(unused);
    return rc < 0 ? FAULT_BESIDE : passes ? FAULT_THAT_PASSES : FAULT_OF_LIST;
}

/* Of two folders of one host one is easily forgotten: on a head node that trains, the worker's. */
static void warn_of_missing_list(const struct certs *certs, const struct ms_tls_files *files)
{
    char folder[MS_PATH_MAX + 1];
    char list[MS_PATH_MAX + 1];
    char quoted[2][2 * MS_PATH_MAX];
    if (!certs->has_list && ms_crl_is_forgotten(files, list, sizeof(list))) {
        ms_folder_of(files->p12_path, folder, sizeof(folder));
        ms_log(MS_LOG_WARNING,
               "tls.no_list folder=%s beside=%s text=\"who was revoked is trusted here: %s, and "
               "reload\"",
               ms_log_quote(quoted[0], sizeof(quoted[0]), folder),
               ms_log_quote(quoted[1], sizeof(quoted[1]), list),
               files->crl_is_unnamed ? "name the list as crl_path in the TLS JSON"
                                     : "msctl certs install the list");
    }
}

int certs_load(struct certs *certs, SSL_CTX **ret, struct ms_err *err)
{
    struct ms_tls_files files;
    struct ms_tls_config cfg;
    struct ms_err why = {0, ""};
    char warning[MS_TEXT_MAX] = "";
    if (certs->kind == CERTS_NONE) {
        *ret = NULL;
        return 0;
    }
    int rc = find_files(certs, &files, &why);
    if (rc == 0) {
        certs->check_hours = files.check_interval_hours;
        ms_tls_files_config(&files, &cfg);
        cfg.roles = MS_ROLE_WORKER; /* a head node that trains too has the scheduler's there */
        rc = ms_tls_context(&cfg, ret, warning, &why);
        if (rc == 0) {
            certs->has_list = ms_tls_has_list(*ret);
            warn_of_missing_list(certs, &files);
        }
        ms_tls_files_wipe(&files);
    }
    if (rc < 0) {
        struct ms_err beside = why;
        enum fault fault = find_fault(certs, &beside);
        if (fault == FAULT_THAT_PASSES) {
            return ms_fail(err, MS_E_TIMEOUT, "%s", why.text);
        }
        why = fault == FAULT_BESIDE ? beside : why;
        rc = why.code;
    }
    if (rc == MS_E_NOT_FOUND) {
        return ms_fail(err, MS_E_CONFIG,
                       "%.230s; msctl certs issue worker HOST, on the head node, makes one file of "
                       "all, msctl certs install HOST.p12 puts them here; or say tls = off on both "
                       "sides",
                       why.text);
    }
    if (rc < 0) {
        int code = rc == MS_E_NOMEM ? rc : rc == MS_E_UNAVAILABLE ? MS_E_TIMEOUT : MS_E_CONFIG;
        return ms_fail(err, code, "%s", why.text);
    }
    if (warning[0] != '\0') {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_WARNING, "tls.certificate warning=%s, ignoring",
               ms_log_quote(quoted, sizeof(quoted), warning));
    }
    return 0;
}

static int is_missing(const char *folder, const char *name)
{
    char path[MS_PATH_MAX + 1];
    const int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

int certs_are_missing(const char *folder, const char *p12)
{
    return is_missing(folder, p12) && is_missing(folder, "ca.crt");
}

void certs_check(struct certs *certs)
{
    SSL_CTX *unused = NULL;
    struct ms_err err = {0, ""};
    if (certs_load(certs, &unused, &err) < 0) {
        char quoted[2 * MS_TEXT_MAX];
        ms_log(MS_LOG_ERR, "tls.unusable text=%s", ms_log_quote(quoted, sizeof(quoted), err.text));
    }
    SSL_CTX_free(unused);
}

int64_t certs_check_ms(const struct certs *certs)
{
    return (int64_t)(certs->check_hours > 0 ? certs->check_hours : CHECK_HOURS) * MS_AN_HOUR;
}
