/* revoke.c - certificates looked at and taken back: inspection and the revocation list */
#include "proto/ca.h"
#include "proto/certfile.h"
#include "proto/file_write.h"
#include "proto/limits.h"
#include "proto/regular.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SKEW_S = 3600 };

int ms_cert_read(const char *path, const char *password, X509 **ret, struct ms_err *err)
{
    struct ms_whole file;
    struct ms_p12 p12;
    int rc = ms_whole_read(path, "", &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    /* a DER file begins with a SEQUENCE; PEM may have text before its first line */
    if (file.size > 0 && file.bytes[0] != 0x30) {
        rc = ms_pem_of(&file, ret, err);
    } else if ((rc = ms_p12_of(&file, password, &p12, err)) == MS_OK) {
        *ret = p12.cert;
        p12.cert = NULL;
        ms_p12_fini(&p12);
    }
    ms_whole_fini(&file);
    return rc;
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
    char *hosts = ms_x509_hosts(cert);
    snprintf(ret->hosts, sizeof(ret->hosts), "%s", hosts != NULL ? hosts : "");
    free(hosts);
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

int ms_ca_owns(const struct ms_ca *ca, X509 *cert)
{
    int ours = X509_NAME_cmp(X509_get_issuer_name(cert), X509_get_subject_name(ca->cert)) == 0 &&
               X509_verify(cert, ca->key) == 1;
    ERR_clear_error();
    return ours;
}

/* The list so far; *ret stays NULL where there is none yet. */
static int read_crl(const struct ms_ca *ca, const char *path, X509_CRL **ret, struct ms_err *err)
{
    FILE *file = NULL;
    int rc = ms_regular_open(path, "", &file, err);
    if (rc != MS_OK) {
        return rc == MS_E_NOT_FOUND ? MS_OK : rc;
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

/* Puts what is not in the list yet into it, and frees the batch. The list is sorted by OpenSSL when
 * it is searched, so all is looked up before anything is added. */
static int merge(X509_CRL *crl, STACK_OF(X509_REVOKED) * batch)
{
    int n = sk_X509_REVOKED_num(batch);
    int ok = batch != NULL;
    for (int i = 0; i < n; i++) {
        X509_REVOKED *one = sk_X509_REVOKED_value(batch, i);
        X509_REVOKED *known = NULL;
        ASN1_INTEGER *serial = (ASN1_INTEGER *)(uintptr_t)X509_REVOKED_get0_serialNumber(one);
        if (X509_CRL_get0_by_serial(crl, &known, serial) != 0) {
            X509_REVOKED_free(one);
            sk_X509_REVOKED_set(batch, i, NULL);
        }
    }
    for (int i = 0; i < n; i++) {
        X509_REVOKED *one = sk_X509_REVOKED_value(batch, i);
        if (one != NULL && (!ok || X509_CRL_add0_revoked(crl, one) != 1)) {
            X509_REVOKED_free(one);
            ok = 0;
        }
    }
    sk_X509_REVOKED_free(batch);
    return ok;
}

/* Adds one to a batch; at: Unix time. */
static int push_revoked(STACK_OF(X509_REVOKED) * batch, const ASN1_INTEGER *serial, time_t at)
{
    X509_REVOKED *one = X509_REVOKED_new();
    ASN1_TIME *when = ASN1_TIME_set(NULL, at);
    int ok = batch != NULL && serial != NULL && one != NULL && when != NULL &&
             X509_REVOKED_set_serialNumber(one, (ASN1_INTEGER *)(uintptr_t)serial) == 1 &&
             X509_REVOKED_set_revocationDate(one, when) == 1 &&
             sk_X509_REVOKED_push(batch, one) > 0;
    ASN1_TIME_free(when);
    if (!ok) {
        X509_REVOKED_free(one);
    }
    return ok;
}

/* Entries of another list. *number becomes its number, where that is higher. */
static int merge_list(X509_CRL *crl, X509_CRL *old, int64_t *number)
{
    STACK_OF(X509_REVOKED) *list = X509_CRL_get_REVOKED(old);
    STACK_OF(X509_REVOKED) *batch = sk_X509_REVOKED_new_null();
    for (int i = 0; batch != NULL && i < sk_X509_REVOKED_num(list); i++) {
        X509_REVOKED *copy = X509_REVOKED_dup(sk_X509_REVOKED_value(list, i));
        if (copy == NULL || sk_X509_REVOKED_push(batch, copy) <= 0) {
            X509_REVOKED_free(copy);
            sk_X509_REVOKED_pop_free(batch, X509_REVOKED_free);
            return 0;
        }
    }
    int64_t its = 0;
    ASN1_INTEGER *was = (ASN1_INTEGER *)X509_CRL_get_ext_d2i(old, NID_crl_number, NULL, NULL);
    if (was != NULL && ASN1_INTEGER_get_int64(&its, was) == 1 && its > *number) {
        *number = its;
    }
    ASN1_INTEGER_free(was);
    return merge(crl, batch);
}

static int merge_index(X509_CRL *crl, const struct ms_ca_index *index)
{
    STACK_OF(X509_REVOKED) *batch = sk_X509_REVOKED_new_null();
    int ok = batch != NULL;
    for (size_t i = 0; ok && index != NULL && i < index->n; i++) {
        const struct ms_ca_entry *entry = &index->entries[i];
        if (entry->revoked == 0) {
            continue;
        }
        BIGNUM *number = NULL;
        BN_hex2bn(&number, entry->serial);
        ASN1_INTEGER *serial = number != NULL ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
        ok = push_revoked(batch, serial, entry->revoked);
        ASN1_INTEGER_free(serial);
        BN_free(number);
    }
    if (!ok) {
        sk_X509_REVOKED_pop_free(batch, X509_REVOKED_free);
        return 0;
    }
    return merge(crl, batch);
}

static int merge_victim(X509_CRL *crl, const X509 *victim)
{
    STACK_OF(X509_REVOKED) *batch = sk_X509_REVOKED_new_null();
    if (!push_revoked(batch, X509_get0_serialNumber(victim), time(NULL))) {
        sk_X509_REVOKED_free(batch);
        return 0;
    }
    return merge(crl, batch);
}

/* While a cluster changes its CA, programs hold two lists, and two CAs of one host have one name:
 * only the key tells whose list it is. */
static int add_key_id(const struct ms_ca *ca, X509_CRL *crl)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, ca->cert, NULL, NULL, crl, 0);
    X509_EXTENSION *ext =
        X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier, "keyid:always");
    int ok = ext != NULL && X509_CRL_add_ext(crl, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
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
             add_key_id(ca, crl) && X509_CRL_sort(crl) == 1 &&
             X509_CRL_sign(crl, ca->key, EVP_sha256()) != 0;
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
        rc = rc == MS_OK ? ms_folder_sync(path, err) : rc;
    }
    BIO_free(bio);
    return rc;
}

int ms_crl_make(const struct ms_ca *ca, const struct ms_crl_plan *plan, struct ms_err *err)
{
    if (plan->days < 1 || plan->days > MS_CRL_DAYS_MAX) {
        return ms_fail(err, MS_E_INVALID, "revocation list for %d days: must be 1 to %d",
                       plan->days, MS_CRL_DAYS_MAX);
    }
    X509_CRL *crl = X509_CRL_new();
    int64_t number = -1;
    int ok = crl != NULL;
    int rc = MS_OK;
    for (size_t i = 0; ok && rc == MS_OK && i < MS_ARRAY_SIZE(plan->sources); i++) {
        X509_CRL *old = NULL;
        if (plan->sources[i] != NULL) {
            rc = read_crl(ca, plan->sources[i], &old, err);
        }
        if (old != NULL) {
            ok = merge_list(crl, old, &number);
            X509_CRL_free(old);
        }
    }
    if (rc != MS_OK) {
        goto out;
    }
    if (!ok || !merge_index(crl, plan->index) ||
        (plan->victim != NULL && !merge_victim(crl, plan->victim)) ||
        !finish_crl(ca, crl, number + 1, plan->days)) {
        rc = ssl_fail(err, "cannot make the revocation list");
        goto out;
    }
    rc = write_crl(plan->path, crl, err);
out:
    X509_CRL_free(crl);
    return rc;
}

int ms_crl_import(const struct ms_ca *ca, const char *path, struct ms_ca_index *index,
                  struct ms_err *err)
{
    X509_CRL *crl = NULL;
    int rc = read_crl(ca, path, &crl, err);
    const STACK_OF(X509_REVOKED) *list = crl != NULL ? X509_CRL_get_REVOKED(crl) : NULL;
    for (int i = 0; rc == MS_OK && i < sk_X509_REVOKED_num(list); i++) {
        const X509_REVOKED *one = sk_X509_REVOKED_value(list, i);
        struct ms_ca_entry entry = {
            .revoked = ms_x509_time(X509_REVOKED_get0_revocationDate(one)),
        };
        ms_serial_text(X509_REVOKED_get0_serialNumber(one), entry.serial, sizeof(entry.serial));
        rc = ms_ca_index_add(index, &entry, err);
        rc = rc == MS_E_EXISTS ? MS_OK : rc;
    }
    X509_CRL_free(crl);
    return rc;
}

int ms_ca_read_own(const struct ms_ca *ca, const char *path, const char *password, X509 **ret,
                   struct ms_err *err)
{
    X509 *cert = NULL;
    int rc = ms_cert_read(path, password, &cert, err);
    if (rc == MS_OK && !ms_ca_owns(ca, cert)) {
        X509_free(cert);
        return ms_fail(err, MS_E_REFUSED,
                       "%s was issued by another CA: only its own CA can revoke or renew it", path);
    }
    if (rc == MS_OK) {
        *ret = cert;
    }
    return rc;
}

int ms_ca_revoke(const struct ms_ca *ca, const char *cert_path, const char *password,
                 const char *crl_path, int days, struct ms_err *err)
{
    X509 *cert = NULL;
    int rc = cert_path != NULL ? ms_ca_read_own(ca, cert_path, password, &cert, err) : MS_OK;
    if (rc == MS_OK) {
        const struct ms_crl_plan plan = {
            .sources = {crl_path}, .victim = cert, .path = crl_path, .days = days};
        rc = ms_crl_make(ca, &plan, err);
    }
    X509_free(cert);
    return rc;
}
