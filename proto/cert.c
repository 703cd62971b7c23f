/* cert.c - the in-house certificate authority: make a CA, issue, inspect */
#include "proto/cert.h"

#include "proto/ca.h"
#include "proto/certfile.h"
#include "proto/limits.h"
#include "proto/principal.h"
#include "proto/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DAYS_MAX = 36500,
    SKEW_S = 3600,              /* clocks of hosts differ: certificates begin in the past */
    KDF_ROUNDS = 2048,          /* of a PKCS#12 with a password: a few milliseconds */
    KDF_ROUNDS_NO_PASSWORD = 1, /* nothing to protect by rounds: the file's mode does it */
    HOSTS_MAX = 64,
};

static int ssl_fail(struct ms_err *err, const char *what)
{
    char reason[128];
    ms_ssl_error(reason, sizeof(reason));
    return ms_fail(err, MS_E_TLS, "%s: %s", what, reason);
}

static int check_days(int days, struct ms_err *err)
{
    if (days == 0 || days > DAYS_MAX || days < -DAYS_MAX) {
        return ms_fail(err, MS_E_INVALID, "certificate lifetime of %d days: must be 1 to %d", days,
                       DAYS_MAX);
    }
    return MS_OK;
}

static int set_times(X509 *cert, int days)
{
    /* negative: a certificate that has expired already, for tests */
    time_t now = time(NULL);
    int start_days = days < 0 ? days - 1 : 0;
    return X509_time_adj_ex(X509_getm_notBefore(cert), start_days, -SKEW_S, &now) != NULL &&
           X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, &now) != NULL;
}

static int set_serial(X509 *cert)
{
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        return 0;
    }
    bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40); /* positive and always 16 bytes */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    int ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return ok;
}

static int set_name(X509 *cert, const char *common_name)
{
    X509_NAME *name = X509_get_subject_name(cert);
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)common_name, -1,
                                      -1, 0) == 1;
}

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    int ok = ext != NULL && X509_add_ext(cert, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

static int check_name(const char *what, const char *name, struct ms_err *err)
{
    if (name == NULL || !ms_principal_is_name(name)) {
        return ms_fail(err, MS_E_INVALID,
                       "%s '%.80s': must be 1 to %d letters, digits and . - _ @ +", what,
                       name != NULL ? name : "", MS_NAME_MAX);
    }
    return MS_OK;
}

static EVP_PKEY *make_key(void)
{
    return EVP_EC_gen("P-256");
}

int ms_ca_create(const char *common_name, int days, struct ms_ca **ret, struct ms_err *err)
{
    size_t n = strlen(common_name);
    if (n == 0 || n > MS_NAME_MAX) {
        return ms_fail(err, MS_E_INVALID, "the name of the CA must have 1 to %d bytes",
                       MS_NAME_MAX);
    }
    int rc = check_days(days, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct ms_ca *ca = (struct ms_ca *)calloc(1, sizeof(*ca));
    if (ca == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a CA");
    }
    ca->key = make_key();
    ca->cert = X509_new();
    if (ca->key == NULL || ca->cert == NULL || X509_set_version(ca->cert, X509_VERSION_3) != 1 ||
        !set_serial(ca->cert) || !set_times(ca->cert, days) || !set_name(ca->cert, common_name) ||
        X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert)) != 1 ||
        X509_set_pubkey(ca->cert, ca->key) != 1 ||
        !add_extension(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(ca->cert, ca->cert, NID_subject_key_identifier, "hash") ||
        X509_sign(ca->cert, ca->key, EVP_sha256()) == 0) {
        rc = ssl_fail(err, "cannot make a CA");
        ms_ca_destroy(ca);
        return rc;
    }
    *ret = ca;
    return MS_OK;
}

void ms_ca_destroy(struct ms_ca *ca)
{
    if (ca != NULL) {
        EVP_PKEY_free(ca->key);
        X509_free(ca->cert);
        free(ca);
    }
}

static int write_pem(const char *path, X509 *cert, int exclusive, struct ms_err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    int rc = MS_OK;
    if (bio == NULL || PEM_write_bio_X509(bio, cert) != 1) {
        rc = ssl_fail(err, "cannot encode the certificate of the CA");
    } else {
        size_t size = (size_t)BIO_get_mem_data(bio, &bytes);
        rc = ms_file_write(path, bytes, size, 0644, exclusive, err);
    }
    BIO_free(bio);
    return rc;
}

static int write_key(const char *path, EVP_PKEY *key, struct ms_err *err)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    char *bytes = NULL;
    int rc = MS_OK;
    if (bio == NULL || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1) {
        rc = ssl_fail(err, "cannot encode the key of the CA");
    } else {
        size_t size = (size_t)BIO_get_mem_data(bio, &bytes);
        rc = ms_file_write(path, bytes, size, 0600, 1, err);
        OPENSSL_cleanse(bytes, size);
    }
    BIO_free(bio);
    return rc;
}

static int join(char *buf, size_t size, const char *directory, const char *name, struct ms_err *err)
{
    int n = snprintf(buf, size, "%s/%s", directory, name);
    return n > 0 && (size_t)n < size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "the path %.64s... is too long", directory);
}

int ms_ca_save(const struct ms_ca *ca, const char *directory, struct ms_err *err)
{
    char key_path[MS_PATH_MAX + 1];
    char cert_path[MS_PATH_MAX + 1];
    int rc = join(key_path, sizeof(key_path), directory, "ca.key", err);
    if (rc != MS_OK || (rc = join(cert_path, sizeof(cert_path), directory, "ca.crt", err)) != 0) {
        return rc;
    }
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        return ms_fail_errno(err, MS_E_IO, "cannot make the directory %s", directory);
    }
    struct stat st;
    if (lstat(cert_path, &st) == 0) {
        return ms_fail(err, MS_E_EXISTS, "%s exists already: there is a CA in %s", cert_path,
                       directory);
    }
    rc = write_key(key_path, ca->key, err);
    return rc != MS_OK ? rc : write_pem(cert_path, ca->cert, 1, err);
}

int ms_ca_export(const struct ms_ca *ca, const char *path, struct ms_err *err)
{
    return write_pem(path, ca->cert, 0, err);
}

int ms_ca_load(const char *directory, struct ms_ca **ret, struct ms_err *err)
{
    char key_path[MS_PATH_MAX + 1];
    char cert_path[MS_PATH_MAX + 1];
    int rc = join(key_path, sizeof(key_path), directory, "ca.key", err);
    if (rc != MS_OK || (rc = join(cert_path, sizeof(cert_path), directory, "ca.crt", err)) != 0 ||
        (rc = ms_secret_check(key_path, 077, err)) != MS_OK) {
        return rc;
    }
    struct ms_ca *ca = (struct ms_ca *)calloc(1, sizeof(*ca));
    if (ca == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a CA");
    }
    FILE *file = fopen(key_path, "re");
    if (file == NULL) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot read %s", key_path);
    } else {
        ca->key = PEM_read_PrivateKey(file, NULL, NULL, (void *)"");
        fclose(file);
        ERR_clear_error();
        if (ca->key == NULL) {
            rc = ms_fail(err, MS_E_TLS, "%s holds no private key in PEM form", key_path);
        }
    }
    if (rc == MS_OK) {
        rc = ms_pem_read(cert_path, &ca->cert, err);
    }
    if (rc == MS_OK && X509_check_private_key(ca->cert, ca->key) != 1) {
        ERR_clear_error();
        rc = ms_fail(err, MS_E_TLS,
                     "%s does not belong to %s: both come from one 'msctl certs init'", key_path,
                     cert_path);
    }
    if (rc != MS_OK) {
        ms_ca_destroy(ca);
        return rc;
    }
    *ret = ca;
    return MS_OK;
}

/* ---- issue ---- */

static int push_name(GENERAL_NAMES *names, int type, const char *text)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    if (name == NULL) {
        return 0;
    }
    ASN1_STRING *string = NULL;
    if (type == GEN_IPADD) {
        string = a2i_IPADDRESS(text);
    } else {
        string = ASN1_IA5STRING_new();
        if (string != NULL && ASN1_STRING_set(string, text, -1) != 1) {
            ASN1_STRING_free(string);
            string = NULL;
        }
    }
    if (string == NULL) {
        GENERAL_NAME_free(name);
        return 0;
    }
    GENERAL_NAME_set0_value(name, type, string);
    if (sk_GENERAL_NAME_push(names, name) == 0) {
        GENERAL_NAME_free(name);
        return 0;
    }
    return 1;
}

static int is_ip(const char *text)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static int check_host(const char *host, struct ms_err *err)
{
    static const char legal[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*";
    size_t n = strlen(host);
    if (!is_ip(host) && (n == 0 || n > MS_HOST_MAX || strspn(host, legal) != n)) {
        return ms_fail(err, MS_E_INVALID, "'%.80s' is neither a host name nor an IP address", host);
    }
    return MS_OK;
}

static int add_alt_names(X509 *cert, const struct ms_cert_request *req, struct ms_err *err)
{
    char uri[MS_NAME_MAX + 32];
    snprintf(uri, sizeof(uri), "ms://%s/%s", ms_role_name(req->role), req->name);
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    int ok = names != NULL && push_name(names, GEN_URI, uri);
    int rc = MS_OK;
    for (size_t i = 0; ok && rc == MS_OK && req->hosts != NULL && req->hosts[i] != NULL; i++) {
        rc = i < HOSTS_MAX
                 ? check_host(req->hosts[i], err)
                 : ms_fail(err, MS_E_INVALID, "more than %d hosts in one certificate", HOSTS_MAX);
        if (rc == MS_OK) {
            ok = push_name(names, is_ip(req->hosts[i]) ? GEN_IPADD : GEN_DNS, req->hosts[i]);
        }
    }
    if (rc == MS_OK &&
        (!ok || X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_APPEND) != 1)) {
        rc = ssl_fail(err, "cannot write the names into the certificate");
    }
    GENERAL_NAMES_free(names);
    return rc;
}

static int build(const struct ms_ca *ca, const struct ms_cert_request *req, EVP_PKEY *key,
                 X509 *cert, struct ms_err *err)
{
    if (X509_set_version(cert, X509_VERSION_3) != 1 || !set_serial(cert) ||
        !set_times(cert, req->days) || !set_name(cert, req->name) ||
        X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) != 1 ||
        X509_set_pubkey(cert, key) != 1 ||
        !add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, ca->cert, NID_key_usage, "critical,digitalSignature") ||
        /* every process dials and listens: workers do both on the data plane */
        !add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth,clientAuth") ||
        !add_extension(cert, ca->cert, NID_subject_key_identifier, "hash") ||
        !add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid:always")) {
        return ssl_fail(err, "cannot make a certificate");
    }
    int rc = add_alt_names(cert, req, err);
    if (rc == MS_OK && X509_sign(cert, ca->key, EVP_sha256()) == 0) {
        rc = ssl_fail(err, "cannot sign the certificate");
    }
    return rc;
}

static int write_p12(const char *path, const struct ms_cert_request *req, EVP_PKEY *key, X509 *cert,
                     struct ms_err *err)
{
    const char *password = req->password != NULL ? req->password : "";
    int rounds = password[0] != '\0' ? KDF_ROUNDS : KDF_ROUNDS_NO_PASSWORD;
    uint8_t *bytes = NULL;
    PKCS12 *bag = PKCS12_create(password, req->name, key, cert, NULL, NID_aes_256_cbc,
                                NID_aes_256_cbc, rounds, rounds, 0);
    int size = bag != NULL ? i2d_PKCS12(bag, &bytes) : -1;
    PKCS12_free(bag);
    if (size < 0) {
        return ssl_fail(err, "cannot make a PKCS#12");
    }
    int rc = ms_file_write(path, bytes, (size_t)size, 0600, 0, err);
    OPENSSL_cleanse(bytes, (size_t)size);
    OPENSSL_free(bytes);
    return rc;
}

void ms_serial_hex(const X509 *cert, char *buf, size_t size)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
    char *hex = number != NULL ? BN_bn2hex(number) : NULL;
    snprintf(buf, size, "%s", hex != NULL ? hex : "?");
    OPENSSL_free(hex);
    BN_free(number);
}

int ms_ca_issue(const struct ms_ca *ca, const struct ms_cert_request *req, const char *p12_path,
                char *ret_serial, struct ms_err *err)
{
    if (ms_role_name(req->role) == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "a certificate is for one role: worker, user, admin or scheduler");
    }
    int rc = check_name("certificate name", req->name, err);
    if (rc != MS_OK || (rc = check_days(req->days, err)) != MS_OK) {
        return rc;
    }
    EVP_PKEY *key = make_key();
    X509 *cert = X509_new();
    if (key == NULL || cert == NULL) {
        rc = ssl_fail(err, "cannot make a key");
    } else {
        rc = build(ca, req, key, cert, err);
    }
    if (rc == MS_OK) {
        rc = write_p12(p12_path, req, key, cert, err);
    }
    if (rc == MS_OK && ret_serial != NULL) {
        ms_serial_hex(cert, ret_serial, MS_SERIAL_HEX);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc;
}
