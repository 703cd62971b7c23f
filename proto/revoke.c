/* revoke.c - certificates looked at and taken back: inspection and the revocation list */
#include "proto/ca.h"
#include "proto/certfile.h"
#include "proto/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SKEW_S = 3600, CRL_DAYS_MAX = 3650 };

int ms_cert_read(const char *path, const char *password, X509 **ret, struct ms_err *err)
{
    char head[12] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return ms_fail_errno(err, errno == ENOENT ? MS_E_NOT_FOUND : MS_E_IO, "cannot read %s",
                             path);
    }
    size_t n = fread(head, 1, sizeof(head) - 1, file);
    fclose(file);
    /* a DER file begins with a SEQUENCE; PEM may have text before its first line */
    if (n > 0 && head[0] != 0x30) {
        return ms_pem_read(path, ret, err);
    }
    struct ms_p12 p12;
    int rc = ms_p12_read(path, password, &p12, err);
    if (rc == MS_OK) {
        *ret = p12.cert;
        p12.cert = NULL;
        ms_p12_fini(&p12);
    }
    return rc;
}

static void host_text(const GENERAL_NAME *name, char buf[MS_HOST_MAX + 1])
{
    buf[0] = '\0';
    if (name->type == GEN_DNS) {
        snprintf(buf, MS_HOST_MAX + 1, "%.*s", ASN1_STRING_length(name->d.dNSName),
                 (const char *)ASN1_STRING_get0_data(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
        int size = ASN1_STRING_length(name->d.iPAddress);
        const uint8_t *bytes = ASN1_STRING_get0_data(name->d.iPAddress);
        if (size == 4 || size == 16) {
            inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, buf, MS_HOST_MAX);
        }
    }
}

static void list_hosts(const X509 *cert, char *buf, size_t size)
{
    GENERAL_NAMES *names =
        (GENERAL_NAMES *)X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && used < size; i++) {
        char one[MS_HOST_MAX + 1];
        host_text(sk_GENERAL_NAME_value(names, i), one);
        if (one[0] != '\0') {
            int n = snprintf(buf + used, size - used, "%s%s", used > 0 ? "," : "", one);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    GENERAL_NAMES_free(names);
}

int ms_cert_inspect(const char *path, const char *password, struct ms_cert_info *ret,
                    struct ms_err *err)
{
    X509 *cert = NULL;
    int rc = ms_cert_read(path, password, &cert, err);
    if (rc != MS_OK) {
        return rc;
    }
    memset(ret, 0, sizeof(*ret));
    ms_x509_name(X509_get_subject_name(cert), ret->subject, sizeof(ret->subject));
    ms_x509_name(X509_get_issuer_name(cert), ret->issuer, sizeof(ret->issuer));
    ms_x509_uri(cert, ret->uri, sizeof(ret->uri));
    ms_serial_hex(cert, ret->serial, sizeof(ret->serial));
    list_hosts(cert, ret->hosts, sizeof(ret->hosts));
    ret->not_before = ms_x509_time(X509_get0_notBefore(cert));
    ret->not_after = ms_x509_time(X509_get0_notAfter(cert));
    X509_free(cert);
    return MS_OK;
}

/* ---- the revocation list ---- */

static int ssl_fail(struct ms_err *err, const char *what)
{
    char reason[128];
    ms_ssl_error(reason, sizeof(reason));
    return ms_fail(err, MS_E_TLS, "%s: %s", what, reason);
}

static int is_ours(const struct ms_ca *ca, X509 *cert)
{
    int ours = X509_NAME_cmp(X509_get_issuer_name(cert), X509_get_subject_name(ca->cert)) == 0 &&
               X509_verify(cert, ca->key) == 1;
    ERR_clear_error();
    return ours;
}

/* The list so far; *ret stays NULL where there is none yet. */
static int read_crl(const struct ms_ca *ca, const char *path, X509_CRL **ret, struct ms_err *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? MS_OK : ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
    }
    X509_CRL *crl = PEM_read_X509_CRL(file, NULL, NULL, NULL);
    fclose(file);
    if (crl == NULL) {
        ERR_clear_error();
        return ms_fail(err, MS_E_TLS, "%s holds no revocation list in PEM form: move it away",
                       path);
    }
    if (X509_CRL_verify(crl, ca->key) != 1) {
        ERR_clear_error();
        X509_CRL_free(crl);
        return ms_fail(err, MS_E_REFUSED,
                       "the revocation list %s was signed by another CA: move it away", path);
    }
    *ret = crl;
    return MS_OK;
}

static int push_revoked(X509_CRL *crl, const ASN1_INTEGER *serial)
{
    X509_REVOKED *one = X509_REVOKED_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
    int ok = one != NULL && now != NULL &&
             X509_REVOKED_set_serialNumber(one, (ASN1_INTEGER *)serial) == 1 &&
             X509_REVOKED_set_revocationDate(one, now) == 1 && X509_CRL_add0_revoked(crl, one) == 1;
    ASN1_TIME_free(now);
    if (!ok) {
        X509_REVOKED_free(one);
    }
    return ok;
}

/* Copies the entries of old, all but serial's, and returns the number after old's, or -1. */
static int64_t copy_revoked(X509_CRL *crl, X509_CRL *old, const ASN1_INTEGER *serial)
{
    int64_t number = 0;
    if (old == NULL) {
        return 1;
    }
    const STACK_OF(X509_REVOKED) *list = X509_CRL_get_REVOKED(old);
    for (int i = 0; i < sk_X509_REVOKED_num(list); i++) {
        X509_REVOKED *one = sk_X509_REVOKED_value(list, i);
        if (serial != NULL && ASN1_INTEGER_cmp(X509_REVOKED_get0_serialNumber(one), serial) == 0) {
            continue;
        }
        X509_REVOKED *copy = X509_REVOKED_dup(one);
        if (copy == NULL || X509_CRL_add0_revoked(crl, copy) != 1) {
            X509_REVOKED_free(copy);
            return -1;
        }
    }
    ASN1_INTEGER *was = (ASN1_INTEGER *)X509_CRL_get_ext_d2i(old, NID_crl_number, NULL, NULL);
    if (was != NULL && ASN1_INTEGER_get_int64(&number, was) != 1) {
        number = 0;
    }
    ASN1_INTEGER_free(was);
    return number + 1;
}

static int finish_crl(const struct ms_ca *ca, X509_CRL *crl, int64_t number, int days)
{
    time_t now = time(NULL);
    ASN1_TIME *from = X509_time_adj_ex(NULL, 0, -SKEW_S, &now);
    ASN1_TIME *to = X509_time_adj_ex(NULL, days, 0, &now);
    ASN1_INTEGER *count = ASN1_INTEGER_new();
    int ok = from != NULL && to != NULL && count != NULL &&
             ASN1_INTEGER_set_int64(count, number) == 1 &&
             X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1 &&
             X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert)) == 1 &&
             X509_CRL_set1_lastUpdate(crl, from) == 1 && X509_CRL_set1_nextUpdate(crl, to) == 1 &&
             X509_CRL_add1_ext_i2d(crl, NID_crl_number, count, 0, X509V3_ADD_APPEND) == 1 &&
             X509_CRL_sort(crl) == 1 && X509_CRL_sign(crl, ca->key, EVP_sha256()) != 0;
    ASN1_INTEGER_free(count);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
    return ok;
}

static int write_crl(const char *path, X509_CRL *crl, struct ms_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    int rc = MS_OK;
    if (bio == NULL || PEM_write_bio_X509_CRL(bio, crl) != 1) {
        rc = ssl_fail(err, "cannot encode the revocation list");
    } else {
        size_t size = (size_t)BIO_get_mem_data(bio, &bytes);
        rc = ms_file_write(path, bytes, size, 0644, 0, err);
    }
    BIO_free(bio);
    return rc;
}

/* Reads the certificate to revoke and makes sure that it is one of ours. */
static int read_victim(const struct ms_ca *ca, const char *path, const char *password, X509 **ret,
                       struct ms_err *err)
{
    X509 *cert = NULL;
    int rc = ms_cert_read(path, password, &cert, err);
    if (rc == MS_OK && !is_ours(ca, cert)) {
        X509_free(cert);
        return ms_fail(err, MS_E_REFUSED,
                       "%s was issued by another CA: only its own CA can revoke it", path);
    }
    if (rc == MS_OK) {
        *ret = cert;
    }
    return rc;
}

int ms_ca_revoke(const struct ms_ca *ca, const char *cert_path, const char *password,
                 const char *crl_path, int days, struct ms_err *err)
{
    if (days < 1 || days > CRL_DAYS_MAX) {
        return ms_fail(err, MS_E_INVALID, "revocation list for %d days: must be 1 to %d", days,
                       CRL_DAYS_MAX);
    }
    X509 *cert = NULL;
    X509_CRL *old = NULL;
    X509_CRL *crl = NULL;
    int rc = cert_path != NULL ? read_victim(ca, cert_path, password, &cert, err) : MS_OK;
    if (rc == MS_OK) {
        rc = read_crl(ca, crl_path, &old, err);
    }
    if (rc != MS_OK) {
        goto out;
    }
    const ASN1_INTEGER *serial = cert != NULL ? X509_get0_serialNumber(cert) : NULL;
    crl = X509_CRL_new();
    int64_t number = crl != NULL ? copy_revoked(crl, old, serial) : -1;
    if (number < 0 || (serial != NULL && !push_revoked(crl, serial)) ||
        !finish_crl(ca, crl, number, days)) {
        rc = ssl_fail(err, "cannot make the revocation list");
        goto out;
    }
    rc = write_crl(crl_path, crl, err);
out:
    X509_CRL_free(crl);
    X509_CRL_free(old);
    X509_free(cert);
    return rc;
}
