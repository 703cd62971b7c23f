/* certfile.c - certificates and keys as files: PKCS#12 and PEM in, names and dates out */
#include "proto/certfile.h"

#include "proto/certkind.h"
#include "proto/denied.h"
#include "proto/limits.h"
#include "proto/regular.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *ms_ssl_error(char *buf, size_t size)
{
    unsigned long code = ERR_get_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    snprintf(buf, size, "%s", reason != NULL ? reason : "no reason given");
    ERR_clear_error();
    return buf;
}

static int check_mode(const char *path, mode_t mode, uid_t uid, gid_t gid, unsigned forbidden,
                      struct ms_err *err)
{
    char help[MS_PATH_MAX + 64];
    if ((mode & forbidden) == 0) {
        return MS_OK;
    }
    const uid_t we = geteuid();
    /* a person's own is for nobody else; one of the system may be for the daemons' group */
    if (forbidden == 077 || (uid == we && we != 0)) {
        snprintf(help, sizeof(help), "chmod 600 ");
    } else if (we == 0 || group_member(gid) || ms_denied_is_services(path, uid, gid)) {
        snprintf(help, sizeof(help), "%schmod 640 ", we == 0 ? "" : "sudo ");
    } else {
        snprintf(help, sizeof(help), "if it is meant to be yours: sudo chown %u %s && chmod 600 ",
                 (unsigned)we, path);
    }
    return ms_fail(err, MS_E_REFUSED,
                   "%s holds a private key and has mode %04o: others may read or change it; %s%s",
                   path, (unsigned)mode & 07777, help, path);
}

int ms_secret_open(const char *path, unsigned forbidden, FILE **ret, struct ms_err *err)
{
    struct stat st;
    FILE *file = NULL;
    int rc = ms_regular_open(path, "", &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = fstat(fileno(file), &st) == 0
             ? check_mode(path, st.st_mode, st.st_uid, st.st_gid, forbidden, err)
             : ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
    if (rc != MS_OK) {
        fclose(file);
        return rc;
    }
    *ret = file;
    return MS_OK;
}

/* Words for a PKCS#12 that did not open; the error queue holds the cause. */
static int p12_fail(const char *path, const char *password, struct ms_err *err)
{
    int is_legacy = 0;
    int is_password = 0;
    int is_short = 0;
    for (unsigned long code = ERR_get_error(); code != 0; code = ERR_get_error()) {
        int reason = ERR_GET_REASON(code);
        is_legacy |= reason == ERR_R_UNSUPPORTED ||
                     (ERR_GET_LIB(code) == ERR_LIB_EVP && reason == EVP_R_UNSUPPORTED_ALGORITHM);
        is_password |= ERR_GET_LIB(code) == ERR_LIB_PKCS12 && reason == PKCS12_R_MAC_VERIFY_FAILURE;
        is_short |= reason == ERR_R_MALLOC_FAILURE;
    }
    if (is_short) {
        return ms_fail(err, MS_E_NOMEM, "no memory to decrypt %s", path);
    }
    if (is_password && password[0] == '\0') {
        return ms_fail(err, MS_E_TLS,
                       "%s needs a password and none was given: name a file that holds it "
                       "(tls_password_file; of msctl password_file or --password-file); what a "
                       "unit gives (LoadCredential=p12-password:) is seen inside of it only",
                       path);
    }
    if (is_password) {
        return ms_fail(err, MS_E_TLS, "the password given for %s is wrong", path);
    }
    if (is_legacy) {
        return ms_fail(err, MS_E_TLS,
                       "%s uses an old encryption (RC2 or the like); convert it: openssl pkcs12 "
                       "-legacy -in OLD -nodes | openssl pkcs12 -export -out NEW",
                       path);
    }
    return ms_fail(err, MS_E_TLS,
                   "%s cannot be decrypted or is damaged; issue it again: msctl certs issue", path);
}

static int p12_parse(const char *path, const char *password, PKCS12 *bag, struct ms_p12 *ret,
                     struct ms_err *err)
{
    struct ms_p12 p12 = {NULL, NULL, NULL};
    if (PKCS12_parse(bag, password, &p12.key, &p12.cert, &p12.chain) != 1) {
        return p12_fail(path, password, err);
    }
    int rc = MS_OK;
    if (p12.key == NULL) {
        rc = ms_fail(err, MS_E_TLS, "%s holds no private key: export it with its key", path);
    } else if (p12.cert == NULL && sk_X509_num(p12.chain) > 0) {
        rc = ms_fail(err, MS_E_TLS,
                     "the private key in %s does not belong to its certificate: export both anew",
                     path);
    } else if (p12.cert == NULL) {
        rc = ms_fail(err, MS_E_TLS, "%s holds no certificate", path);
    } else if (X509_check_private_key(p12.cert, p12.key) != 1) {
        rc = ms_fail(err, MS_E_TLS,
                     "the private key in %s does not belong to its certificate: export both anew",
                     path);
    }
    if (rc != MS_OK) {
        ms_p12_fini(&p12);
        return rc;
    }
    *ret = p12;
    return MS_OK;
}

/* What it is comes first: a certificate without a key may be read by everybody. */
int ms_p12_of(const struct ms_whole *file, const char *password, struct ms_p12 *ret,
              struct ms_err *err)
{
    const uint8_t *at = file->bytes;
    ERR_clear_error();
    PKCS12 *bag = d2i_PKCS12(NULL, &at, (long)file->size);
    if (bag == NULL) {
        ERR_clear_error();
        return ms_cert_no_p12(file, err);
    }
    int rc = check_mode(file->path, file->mode, file->uid, file->gid, 037, err);
    if (rc == MS_OK) {
        rc = p12_parse(file->path, password != NULL ? password : "", bag, ret, err);
    }
    PKCS12_free(bag);
    ERR_clear_error();
    return rc;
}

int ms_p12_read(const char *path, const char *password, struct ms_p12 *ret, struct ms_err *err)
{
    struct ms_whole file;
    int rc = ms_whole_read(path, "", &file, err);
    if (rc == MS_OK) {
        rc = ms_p12_of(&file, password, ret, err);
        ms_whole_fini(&file);
    }
    return rc;
}

void ms_p12_fini(struct ms_p12 *p12)
{
    EVP_PKEY_free(p12->key);
    X509_free(p12->cert);
    sk_X509_pop_free(p12->chain, X509_free);
    memset(p12, 0, sizeof(*p12));
}

int ms_pem_of(const struct ms_whole *file, X509 **ret, struct ms_err *err)
{
    BIO *bio = BIO_new_mem_buf(file->bytes, (int)file->size);
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (cert == NULL) {
        return ms_cert_no_pem(file, err);
    }
    *ret = cert;
    return MS_OK;
}

int ms_pem_read(const char *path, X509 **ret, struct ms_err *err)
{
    struct ms_whole file;
    int rc = ms_whole_read(path, "the certificate ", &file, err);
    if (rc == MS_OK) {
        rc = ms_pem_of(&file, ret, err);
        ms_whole_fini(&file);
    }
    return rc;
}

int ms_pem_has_ended(void)
{
    const unsigned long error = ERR_peek_last_error();
    ERR_clear_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

int ms_pem_fail_torn(const char *path, struct ms_err *err)
{
    return ms_fail(err, MS_E_TLS,
                   "a certificate in %s is damaged, or was copied in part: copy it again from "
                   "where it was made",
                   path);
}

int ms_pem_read_all(const char *path, STACK_OF(X509) * *ret, struct ms_err *err)
{
    struct ms_whole file;
    int rc = ms_whole_read(path, "the certificate ", &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(file.bytes, (int)file.size);
    X509 *cert = NULL;
    while (all != NULL && bio != NULL && rc == MS_OK &&
           (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (sk_X509_push(all, cert) <= 0) {
            X509_free(cert);
            rc = ms_fail(err, MS_E_NOMEM, "no memory for the certificates of %s", path);
        }
    }
    const int is_torn = !ms_pem_has_ended();
    BIO_free(bio);
    if (rc == MS_OK && sk_X509_num(all) <= 0) {
        rc = ms_cert_no_pem(&file, err);
    } else if (rc == MS_OK && is_torn) {
        rc = ms_pem_fail_torn(path, err);
    }
    ms_whole_fini(&file);
    if (rc != MS_OK) {
        sk_X509_pop_free(all, X509_free);
        return rc;
    }
    *ret = all;
    return MS_OK;
}

const char *ms_x509_name(const X509_NAME *name, char *buf, size_t size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    int n = 0;
    if (bio != NULL &&
        X509_NAME_print_ex(bio, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) >= 0) {
        n = BIO_read(bio, buf, (int)size - 1);
    }
    buf[n > 0 ? n : 0] = '\0';
    BIO_free(bio);
    return buf;
}

time_t ms_x509_time(const ASN1_TIME *at)
{
    struct tm tm;
    if (at == NULL || ASN1_TIME_to_tm(at, &tm) != 1) {
        return (time_t)-1;
    }
    return timegm(&tm);
}

/* A NUL inside would make one name look like another, a control would forge lines of logs. */
static int is_printable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f) {
            return 0;
        }
    }
    return 1;
}

int ms_x509_uri(const X509 *cert, char *buf, size_t size)
{
    GENERAL_NAMES *names =
        (GENERAL_NAMES *)X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    int found = 0;
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_URI) {
            const char *text =
                (const char *)ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
            size_t length = (size_t)ASN1_STRING_length(name->d.uniformResourceIdentifier);
            if (length > 5 && length < size && memcmp(text, "ms://", 5) == 0 &&
                is_printable(text, length)) {
                memcpy(buf, text, length);
                buf[length] = '\0';
                found = 1;
            }
        }
    }
    GENERAL_NAMES_free(names);
    return found;
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

char *ms_x509_hosts(const X509 *cert)
{
    GENERAL_NAMES *names =
        (GENERAL_NAMES *)X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    for (int i = 0; file != NULL && i < sk_GENERAL_NAME_num(names); i++) {
        char one[MS_HOST_MAX + 1];
        host_text(sk_GENERAL_NAME_value(names, i), one);
        if (one[0] != '\0' && is_printable(one, strlen(one))) {
            fprintf(file, "%s%s", ftell(file) > 0 ? "," : "", one);
        }
    }
    GENERAL_NAMES_free(names);
    if (file != NULL && (fclose(file) != 0 || size == 0)) {
        free(text);
        text = NULL;
    }
    return text;
}
