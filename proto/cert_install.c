/* cert_install.c - a certificate put where the programs look for it, with what they trust beside it
 */
#include "proto/cert_install.h"

#include "proto/certfile.h"
#include "proto/crl_files.h"
#include "proto/file_write.h"
#include "proto/limits.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int join(char buf[MS_PATH_MAX + 1], const char *folder, const char *name, struct ms_err *err)
{
    int n = snprintf(buf, MS_PATH_MAX + 1, "%s/%s", folder, name);
    return n > 0 && n <= MS_PATH_MAX
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "the path %.64s... is too long", folder);
}

/* The one of the chain that signed the certificate; borrowed from p12. */
static int find_ca(const char *path, const struct ms_p12 *p12, X509 **ret, struct ms_err *err)
{
    for (int i = 0; i < sk_X509_num(p12->chain); i++) {
        X509 *ca = sk_X509_value(p12->chain, i);
        if (X509_verify(p12->cert, X509_get0_pubkey(ca)) == 1) {
            *ret = ca;
            return MS_OK;
        }
    }
    ERR_clear_error();
    return ms_fail(
        err, MS_E_NOT_FOUND,
        "%s does not hold the certificate of its CA, as those of an older msctl: issue it "
        "again (msctl certs renew), or copy it and ca.crt yourself",
        path);
}

enum { MOMENT_TEXT = 32 };

static const char *moment_of(char buf[MOMENT_TEXT], const ASN1_TIME *at, int with_time)
{
    time_t time = ms_x509_time(at);
    struct tm tm;
    if (gmtime_r(&time, &tm) == NULL ||
        (with_time ? strftime(buf, MOMENT_TEXT, "%Y-%m-%d %H:%M:%S UTC", &tm)
                   : strftime(buf, MOMENT_TEXT, "%Y-%m-%d", &tm)) == 0) {
        snprintf(buf, MOMENT_TEXT, "?");
    }
    return buf;
}

static const char *day_of(char buf[MOMENT_TEXT], const ASN1_TIME *at)
{
    return moment_of(buf, at, 0);
}

/* One that does not hold today would stop what runs with the one before. */
static int check_life(const char *path, const X509 *cert, struct ms_err *err)
{
    char day[MOMENT_TEXT];
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0) {
        return ms_fail(err, MS_E_INVALID,
                       "the certificate in %s expired on %s: where the CA is: msctl certs renew "
                       "NAME",
                       path, day_of(day, X509_get0_notAfter(cert)));
    }
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        return ms_fail(err, MS_E_INVALID,
                       "the certificate in %s is not valid before %s: is this host's clock right? "
                       "--force installs it all the same",
                       path, day_of(day, X509_get0_notBefore(cert)));
    }
    return MS_OK;
}

/* Of a certificate that ends sooner than the one that is there. */
static int refuse_older(const char *path, const ASN1_TIME *end, const char *from,
                        const ASN1_TIME *sooner, struct ms_err *err)
{
    char ends[2][MOMENT_TEXT];
    if (strcmp(day_of(ends[0], end), day_of(ends[1], sooner)) == 0) { /* days do not tell them */
        moment_of(ends[0], end, 1);
        moment_of(ends[1], sooner, 1);
    }
    return ms_fail(err, MS_E_EXISTS,
                   "%s is valid until %s, %s only until %s: it looks like the one before a "
                   "renewal; --force installs it all the same",
                   path, ends[0], from, ends[1]);
}

static int compare_old(const char *path, const struct ms_p12 *old, const char *from,
                       const struct ms_p12 *p12, struct ms_err *err)
{
    char uri[2][MS_NAME_MAX + 32] = {"somebody", "somebody else"};
    const ASN1_TIME *ends[2] = {X509_get0_notAfter(old->cert), X509_get0_notAfter(p12->cert)};
    ms_x509_uri(old->cert, uri[0], sizeof(uri[0]));
    ms_x509_uri(p12->cert, uri[1], sizeof(uri[1]));
    if (strcmp(uri[0], uri[1]) != 0) {
        return ms_fail(err, MS_E_EXISTS,
                       "%s is of %s, not of %s: name another folder with --to, or replace it with "
                       "--force",
                       path, uri[0], uri[1]);
    }
    return ASN1_TIME_compare(ends[1], ends[0]) < 0 ? refuse_older(path, ends[0], from, ends[1], err)
                                                   : MS_OK;
}

/* Whoever is there may be replaced by himself only, and not by one who ends sooner. His password
 * may be another one than the new file's: none, or one that nobody gave. */
static int check_old(const char *path, const char *from, const char *password,
                     const struct ms_p12 *p12, struct ms_err *err)
{
    struct ms_p12 old;
    struct ms_err why = {0, ""};
    if (access(path, F_OK) != 0) {
        return MS_OK;
    }
    int rc = ms_p12_read(path, password, &old, &why);
    if (rc != MS_OK && password != NULL && password[0] != '\0') {
        rc = ms_p12_read(path, "", &old, NULL);
    }
    if (rc != MS_OK) {
        return ms_fail(err, MS_E_EXISTS,
                       "%s is there, and whose it is cannot be told (%.150s): replace it with "
                       "--force, or name another folder with --to",
                       path,
                       why.code == MS_E_TLS ? "it has another password, or is damaged" : why.text);
    }
    rc = compare_old(path, &old, from, p12, err);
    ms_p12_fini(&old);
    return rc;
}

static int has_ca(const STACK_OF(X509) * cas, const X509 *ca)
{
    int i = 0;
    while (i < sk_X509_num(cas) && X509_cmp(sk_X509_value(cas, i), ca) != 0) {
        i++;
    }
    return i < sk_X509_num(cas);
}

/* *ret_stays: it knows this CA, and more than we would write: others beside it, as while a cluster
 * changes its CA, or it is a link to where everybody has it from. */
static int check_old_ca(const char *path, const X509 *ca, int force, int *ret_stays,
                        struct ms_err *err)
{
    STACK_OF(X509) *cas = NULL;
    struct stat st;
    int is_there = access(path, F_OK) == 0;
    int is_known = is_there && ms_pem_read_all(path, &cas, NULL) == MS_OK && has_ca(cas, ca);
    int n = sk_X509_num(cas);
    sk_X509_pop_free(cas, X509_free);
    *ret_stays = is_known && (n > 1 || (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)));
    return is_known || !is_there || force
               ? MS_OK
               : ms_fail(err, MS_E_EXISTS,
                         "%s is another CA's than the one of this certificate: name another folder "
                         "with --to, or replace both with --force",
                         path);
}

/* Its own programs would refuse it at their next start. */
static int check_revoked(const char *path, const char *list, X509 *cert, X509 *ca,
                         struct ms_err *err)
{
    int rc = ms_crl_revokes(list, cert, ca, err);
    return rc == 1
               ? ms_fail(
                     err, MS_E_INVALID,
                     "the certificate in %s is revoked by %s: where the CA is, msctl certs issue "
                     "ROLE NAME makes another one; --force installs it all the same",
                     path, list)
               : rc;
}

static int write_ca(const char *path, X509 *ca, struct ms_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    int rc = bio != NULL && PEM_write_bio_X509(bio, ca) == 1
                 ? MS_OK
                 : ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    if (rc == MS_OK) {
        size_t size = (size_t)BIO_get_mem_data(bio, &bytes);
        rc = ms_file_write(path, bytes, size, 0644, 0, err);
    }
    BIO_free(bio);
    return rc;
}

static int write_key(const char *path, const struct ms_whole *file,
                     const struct ms_cert_place *place, struct ms_err *err)
{
    int rc = ms_file_write_for(path, file->bytes, file->size, place->mode, place->owner,
                               place->group, 0, err);
    return rc == MS_OK ? ms_folder_sync(path, err) : rc;
}

int ms_cert_who(const struct ms_whole *file, const char *password, char *buf, size_t size,
                struct ms_err *err)
{
    struct ms_p12 p12;
    int rc = ms_p12_of(file, password, &p12, err);
    buf[0] = '\0';
    if (rc == MS_OK) {
        ms_x509_uri(p12.cert, buf, size);
        ms_p12_fini(&p12);
    }
    return rc;
}

int ms_cert_install(const struct ms_whole *file, const char *password,
                    const struct ms_cert_place *place, struct ms_err *err)
{
    const char *path = file->path;
    char key_path[MS_PATH_MAX + 1];
    char ca_path[MS_PATH_MAX + 1];
    char list_path[MS_PATH_MAX + 1];
    struct ms_p12 p12;
    X509 *ca = NULL;
    int ca_stays = 0;
    int rc = join(key_path, place->folder, place->name, err);
    if (rc != MS_OK || (rc = join(ca_path, place->folder, "ca.crt", err)) != MS_OK ||
        (rc = join(list_path, place->folder, "crl.pem", err)) != MS_OK ||
        (rc = ms_p12_of(file, password, &p12, err)) != MS_OK) {
        return rc;
    }
    rc = find_ca(path, &p12, &ca, err);
    if (rc == MS_OK && !place->force) {
        rc = check_life(path, p12.cert, err);
        rc = rc == MS_OK ? check_revoked(path, list_path, p12.cert, ca, err) : rc;
        rc = rc == MS_OK ? check_old(key_path, path, password, &p12, err) : rc;
    }
    if (rc == MS_OK) {
        rc = check_old_ca(ca_path, ca, place->force, &ca_stays, err);
    }
    if (rc == MS_OK && !ca_stays) {
        rc = write_ca(ca_path, ca, err);
    }
    if (rc == MS_OK) {
        rc = write_key(key_path, file, place, err);
    }
    ms_p12_fini(&p12);
    return rc;
}
