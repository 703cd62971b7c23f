/* cert_install.c - a certificate put where the programs look for it, with what they trust beside it
 */
#include "proto/cert_install.h"

#include "proto/certfile.h"
#include "proto/limits.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 }; /* a PKCS#12 of ours has 2 KiB */

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

/* Whoever is there may be replaced by himself only. */
static int check_old(const char *path, const char *password, const struct ms_p12 *p12,
                     struct ms_err *err)
{
    char uri[2][MS_NAME_MAX + 32] = {"somebody", "somebody else"};
    struct ms_p12 old;
    if (access(path, F_OK) != 0) {
        return MS_OK;
    }
    if (ms_p12_read(path, password, &old, NULL) == MS_OK) {
        ms_x509_uri(old.cert, uri[0], sizeof(uri[0]));
        ms_p12_fini(&old);
    }
    ms_x509_uri(p12->cert, uri[1], sizeof(uri[1]));
    if (strcmp(uri[0], uri[1]) == 0) {
        return MS_OK;
    }
    return ms_fail(
        err, MS_E_EXISTS,
        "%s is of %s, not of %s: name another folder with --to, or replace it with --force", path,
        uri[0], uri[1]);
}

static int check_old_ca(const char *path, X509 *ca, struct ms_err *err)
{
    X509 *old = NULL;
    int rc = access(path, F_OK) == 0 ? ms_pem_read(path, &old, NULL) : MS_E_NOT_FOUND;
    int same = rc == MS_E_NOT_FOUND || (rc == MS_OK && X509_cmp(old, ca) == 0);
    X509_free(old);
    return same
               ? MS_OK
               : ms_fail(err, MS_E_EXISTS,
                         "%s is another CA's than the one of this certificate: name another folder "
                         "with --to, or replace both with --force",
                         path);
}

static int read_whole(const char *path, uint8_t **ret, size_t *ret_size, struct ms_err *err)
{
    FILE *file = fopen(path, "re");
    uint8_t *bytes = (uint8_t *)malloc(FILE_MAX);
    size_t size = file != NULL && bytes != NULL ? fread(bytes, 1, FILE_MAX, file) : 0;
    int rc = MS_OK;
    if (bytes == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    } else if (file == NULL || ferror(file)) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
    } else if (size == FILE_MAX) {
        rc = ms_fail(err, MS_E_INVALID, "%s is larger than 1 MiB: no certificate is", path);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (rc != MS_OK) {
        free(bytes);
        return rc;
    }
    *ret = bytes;
    *ret_size = size;
    return MS_OK;
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

/* 0600 until it has its group. */
static int write_key(const char *path, const char *from, const struct ms_cert_place *place,
                     struct ms_err *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    int rc = read_whole(from, &bytes, &size, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = ms_file_write(path, bytes, size, 0600, 0, err);
    explicit_bzero(bytes, size);
    free(bytes);
    if (rc == MS_OK && place->group != (gid_t)-1 && chown(path, (uid_t)-1, place->group) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot give %s to its group", path);
    }
    if (rc == MS_OK && chmod(path, place->mode) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot set the mode of %s", path);
    }
    return rc == MS_OK ? ms_folder_sync(path, err) : rc;
}

int ms_cert_install(const char *path, const char *password, const struct ms_cert_place *place,
                    struct ms_err *err)
{
    char key_path[MS_PATH_MAX + 1];
    char ca_path[MS_PATH_MAX + 1];
    struct ms_p12 p12;
    X509 *ca = NULL;
    int rc = join(key_path, place->folder, place->name, err);
    if (rc != MS_OK || (rc = join(ca_path, place->folder, "ca.crt", err)) != MS_OK ||
        (rc = ms_p12_read(path, password, &p12, err)) != MS_OK) {
        return rc;
    }
    rc = find_ca(path, &p12, &ca, err);
    if (rc == MS_OK && !place->force) {
        rc = check_old(key_path, password, &p12, err);
        rc = rc == MS_OK ? check_old_ca(ca_path, ca, err) : rc;
    }
    if (rc == MS_OK) {
        rc = write_ca(ca_path, ca, err);
    }
    if (rc == MS_OK) {
        rc = write_key(key_path, path, place, err);
    }
    ms_p12_fini(&p12);
    return rc;
}
