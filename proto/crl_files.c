/* crl_files.c - the list of revoked certificates, in the folders of the programs that heed it */
#include "proto/crl_files.h"

#include "proto/certfile.h"
#include "proto/certkind.h"
#include "proto/file_write.h"
#include "proto/folder.h"
#include "proto/limits.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char list_name[] = "crl.pem";

int ms_crl_is(const struct ms_whole *file)
{
    return ms_cert_is_list(file);
}

int ms_crl_fail_torn(const char *path, int code, struct ms_err *err)
{
    return ms_fail(
        err, code,
        "a list in %s is damaged, or was copied in part: copy it again; where the CA is, "
        "msctl certs crl makes it anew",
        path);
}

/* MS_E_UNSUPPORTED: there are several, as while a cluster changes its CA; the programs read them
 * all, and one must not take the place of the others, nor of one that is torn. */
static int parse_list(const struct ms_whole *file, X509_CRL **ret, struct ms_err *err)
{
    BIO *bio = BIO_new_mem_buf(file->bytes, (int)file->size);
    *ret = bio != NULL ? PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL) : NULL;
    X509_CRL *second = *ret != NULL ? PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL) : NULL;
    const int is_torn = second == NULL && !ms_pem_has_ended();
    BIO_free(bio);
    if (*ret == NULL) {
        return is_torn ? ms_crl_fail_torn(file->path, MS_E_INVALID, err)
                       : ms_fail(err, MS_E_INVALID, "%s holds no revocation list in PEM form",
                                 file->path);
    }
    if (second == NULL && !is_torn) {
        return MS_OK;
    }
    X509_CRL_free(second);
    X509_CRL_free(*ret);
    *ret = NULL;
    return is_torn ? ms_crl_fail_torn(file->path, MS_E_UNSUPPORTED, err)
                   : ms_fail(err, MS_E_UNSUPPORTED,
                             "%s holds several lists: put the file in its place by hand (install "
                             "-m 644)",
                             file->path);
}

static int read_list(const char *path, X509_CRL **ret, struct ms_err *err)
{
    struct ms_whole file;
    int rc = ms_whole_read(path, "", &file, err);
    if (rc == MS_OK) {
        rc = parse_list(&file, ret, err);
        ms_whole_fini(&file);
    }
    return rc;
}

static int is_of(X509_CRL *list, X509 *ca)
{
    int is = X509_CRL_verify(list, X509_get0_pubkey(ca)) == 1;
    ERR_clear_error();
    return is;
}

/* Which of them signed it; NULL: none. */
static X509 *signer_of(X509_CRL *list, const STACK_OF(X509) * cas)
{
    for (int i = 0; i < sk_X509_num(cas); i++) {
        if (is_of(list, sk_X509_value(cas, i))) {
            return sk_X509_value(cas, i);
        }
    }
    return NULL;
}

static int64_t number_of(X509_CRL *list)
{
    int64_t number = -1;
    ASN1_INTEGER *value = (ASN1_INTEGER *)X509_CRL_get_ext_d2i(list, NID_crl_number, NULL, NULL);
    if (value == NULL || ASN1_INTEGER_get_int64(&number, value) != 1) {
        number = -1;
    }
    ASN1_INTEGER_free(value);
    return number;
}

/* A list of the same CA that was made later knows more, and one of another CA that is trusted here
 * knows others. */
static int compare(const char *target, X509_CRL *old, const char *path, X509_CRL *list,
                   const STACK_OF(X509) * cas, struct ms_err *err)
{
    const X509 *signer = signer_of(old, cas);
    if (signer != NULL && signer != signer_of(list, cas)) {
        return ms_fail(err, MS_E_EXISTS,
                       "%s is the list of another CA that is trusted there, and this one would "
                       "take its place: put both into one file by hand (cat), or --force",
                       target);
    }
    return signer == NULL || number_of(old) <= number_of(list)
               ? MS_OK
               : ms_fail(err, MS_E_EXISTS,
                         "%s is newer than %s, which may lack whom it revokes; --force installs it "
                         "all the same",
                         target, path);
}

static int check_old(const char *target, const char *path, X509_CRL *list,
                     const STACK_OF(X509) * cas, struct ms_err *err)
{
    X509_CRL *old = NULL;
    int rc = access(target, F_OK) == 0 ? read_list(target, &old, NULL) : MS_E_NOT_FOUND;
    if (rc == MS_E_UNSUPPORTED) {
        return ms_fail(err, MS_E_EXISTS,
                       "%s holds several lists, and this one would take their place: add it by "
                       "hand, or --force",
                       target);
    }
    rc = rc == MS_OK ? compare(target, old, path, list, cas, err) : MS_OK;
    X509_CRL_free(old);
    return rc;
}

static int has_ended(const X509_CRL *list)
{
    const ASN1_TIME *end = X509_CRL_get0_nextUpdate(list);
    return end != NULL && X509_cmp_current_time(end) <= 0;
}

static int check(const char *path, X509_CRL *list, const char *ca_path, const STACK_OF(X509) * cas,
                 struct ms_err *err)
{
    if (signer_of(list, cas) == NULL) {
        return ms_fail(err, MS_E_REFUSED, "the list %s was signed by another CA than %s", path,
                       ca_path);
    }
    if (has_ended(list)) {
        return ms_fail(err, MS_E_INVALID,
                       "the list %s has expired and would fail every handshake; where the CA is: "
                       "msctl certs crl",
                       path);
    }
    return MS_OK;
}

static int write_list(const char *target, X509_CRL *list, struct ms_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    int rc = MS_OK;
    if (bio == NULL || PEM_write_bio_X509_CRL(bio, list) != 1) {
        ERR_clear_error();
        rc = ms_fail(err, MS_E_NOMEM, "no memory for %s", target);
    } else {
        size_t size = (size_t)BIO_get_mem_data(bio, &bytes);
        rc = ms_file_write(target, bytes, size, 0644, 0, err);
        rc = rc == MS_OK ? ms_folder_sync(target, err) : rc;
    }
    BIO_free(bio);
    return rc;
}

static int holds_list(const char *path)
{
    struct ms_whole file;
    int is = ms_whole_read(path, "", &file, NULL) == MS_OK;
    if (is) {
        is = ms_cert_is_list(&file);
        ms_whole_fini(&file);
    }
    return is;
}

int ms_crl_place(const char *target, char *buf, size_t size, struct ms_err *err)
{
    struct stat st;
    if (lstat(target, &st) != 0 || !S_ISLNK(st.st_mode)) {
        snprintf(buf, size, "%s", target);
        return MS_OK;
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) { /* it may lead to any file of ours */
        return ms_fail(
            err, MS_E_EXISTS,
            "%s is a symbolic link of another user (uid %u), and is not followed: remove "
            "it",
            target, (unsigned)st.st_uid);
    }
    char *real = realpath(target, NULL);
    int rc = MS_OK;
    if (real == NULL) {
        rc = ms_fail(err, MS_E_EXISTS,
                     "%s is a symbolic link that leads to no file (%s): remove it, or copy the "
                     "list to where it leads",
                     target, strerror(errno));
    } else if (strlen(real) >= size || strlen(real) > MS_PATH_MAX) {
        rc = ms_fail(err, MS_E_EXISTS, "%s is a symbolic link to a path that is too long", target);
    } else if (!holds_list(real)) {
        rc = ms_fail(err, MS_E_EXISTS,
                     "%s is a symbolic link to %s, which is no list of revoked certificates: "
                     "remove the link",
                     target, real);
    } else {
        snprintf(buf, size, "%s", real);
    }
    free(real);
    return rc;
}

int ms_crl_install(const struct ms_whole *file, const char *ca_path, const char *target, int force,
                   struct ms_err *err)
{
    const char *path = file->path;
    char place[MS_PATH_MAX + 1] = "";
    X509_CRL *list = NULL;
    STACK_OF(X509) *cas = NULL;
    int rc = parse_list(file, &list, err);
    if (rc == MS_OK) {
        rc = ms_pem_read_all(ca_path, &cas, err);
    }
    if (rc == MS_OK) {
        rc = check(path, list, ca_path, cas, err);
    }
    if (rc == MS_OK) {
        rc = ms_crl_place(target, place, sizeof(place), err);
    }
    if (rc == MS_OK && !force) {
        rc = check_old(place, path, list, cas, err);
    }
    if (rc == MS_OK) {
        rc = write_list(place, list, err);
    }
    sk_X509_pop_free(cas, X509_free);
    X509_CRL_free(list);
    return rc;
}

int ms_crl_is_of(const struct ms_whole *file, const char *ca_path, struct ms_err *err)
{
    X509_CRL *list = NULL;
    STACK_OF(X509) *cas = NULL;
    int rc = parse_list(file, &list, err);
    if (rc == MS_OK) {
        rc = ms_pem_read_all(ca_path, &cas, err);
    }
    if (rc == MS_OK) {
        rc = signer_of(list, cas) != NULL;
    }
    sk_X509_pop_free(cas, X509_free);
    X509_CRL_free(list);
    return rc;
}

int ms_crl_is_foreign(const char *path, const char *ca_path)
{
    struct ms_whole file;
    int is = ms_whole_read(path, "", &file, NULL) == MS_OK;
    if (is) {
        is = ms_crl_is_of(&file, ca_path, NULL) == 0;
        ms_whole_fini(&file);
    }
    return is;
}

int ms_crl_revokes(const char *path, X509 *cert, X509 *ca, struct ms_err *err)
{
    struct ms_whole file;
    if (ms_whole_read(path, "", &file, NULL) != MS_OK) {
        return 0;
    }
    BIO *bio = BIO_new_mem_buf(file.bytes, (int)file.size);
    X509_CRL *list = NULL;
    X509_REVOKED *row = NULL;
    int is = 0;
    while (!is && bio != NULL && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        is = is_of(list, ca) && X509_CRL_get0_by_cert(list, &row, cert) == 1;
        X509_CRL_free(list);
    }
    BIO_free(bio);
    ms_whole_fini(&file);
    return ms_pem_has_ended() || is ? is : ms_crl_fail_torn(path, MS_E_INVALID, err);
}

int ms_crl_is_untimely(const char *path, const char *ca_path)
{
    struct ms_whole file;
    STACK_OF(X509) *cas = NULL;
    if (ms_whole_read(path, "", &file, NULL) != MS_OK) {
        return 0;
    }
    BIO *bio = BIO_new_mem_buf(file.bytes, (int)file.size);
    X509_CRL *list = NULL;
    int is = 0;
    int rc = ms_pem_read_all(ca_path, &cas, NULL);
    while (rc == MS_OK && !is && bio != NULL &&
           (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        is = (has_ended(list) || X509_cmp_current_time(X509_CRL_get0_lastUpdate(list)) > 0) &&
             signer_of(list, cas) != NULL;
        X509_CRL_free(list);
    }
    BIO_free(bio);
    ERR_clear_error();
    ms_whole_fini(&file);
    sk_X509_pop_free(cas, X509_free);
    return is;
}

int ms_crl_is_forgotten(const struct ms_tls_files *files, char *buf, size_t size)
{
    char folder[MS_PATH_MAX + 1];
    if (!files->crl_may_miss && !files->crl_is_unnamed) {
        return 0;
    }
    return ms_crl_beside(ms_folder_of(files->p12_path, folder, sizeof(folder)), buf, size) ||
           ms_crl_beside(ms_folder_of(files->ca_path, folder, sizeof(folder)), buf, size);
}

int ms_crl_beside(const char *folder, char *buf, size_t size)
{
    char parent[MS_PATH_MAX + 1];
    char path[MS_PATH_MAX + 300];
    ms_folder_of(folder, parent, sizeof(parent));
    DIR *dir = opendir(parent);
    const struct dirent *entry;
    snprintf(path, sizeof(path), "%s/%s", folder, list_name);
    int found = access(path, R_OK) == 0;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "tls", 3) == 0) {
            snprintf(path, sizeof(path), "%s/%s/%s", parent, entry->d_name, list_name);
            found = access(path, R_OK) == 0;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (found) {
        snprintf(buf, size, "%s", path);
    }
    return found;
}
