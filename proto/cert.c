/* cert.c - the in-house certificate authority: make a CA, issue, inspect */
#include "proto/cert.h"

#include "proto/ca.h"
#include "proto/certfile.h"
#include "proto/file_write.h"
#include "proto/limits.h"
#include "proto/principal.h"
#include "proto/tls.h"

#include <arpa/inet.h>
#include <ctype.h>
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
#include <unistd.h>

enum {
    DAYS_MAX = 36500,
    SKEW_S = 3600,              /* clocks of hosts differ: certificates begin in the past */
    KDF_ROUNDS = 2048,          /* of a PKCS#12 with a password: a few milliseconds */
    KDF_ROUNDS_NO_PASSWORD = 1, /* nothing to protect by rounds: the file's mode does it */
};

static int ssl_fail(struct ms_err *err, const char *what)
{
    char reason[128];
    ms_ssl_error(reason, sizeof(reason));
    return ms_fail(err, MS_E_TLS, "%s: %s", what, reason);
}

static int check_days(int days, struct ms_err *err)
{
    if (days == MS_CERT_ANY_TIME) {
        return MS_OK;
    }
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
    if (days == MS_CERT_ANY_TIME) {
        return ASN1_TIME_set(X509_getm_notBefore(cert), 0) != NULL &&
               X509_time_adj_ex(X509_getm_notAfter(cert), DAYS_MAX, 0, &now) != NULL;
    }
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

int ms_cert_name_check(const char *name, struct ms_err *err)
{
    /* the first one: no option, no hidden file, and a node id that may begin so */
    if (name == NULL || !ms_principal_is_name(name) || !isalnum((unsigned char)name[0])) {
        return ms_fail(err, MS_E_INVALID,
                       "certificate name '%.80s': must be 1 to %d letters, digits and . - _ @ +, "
                       "and begin with a letter or a digit",
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
    int is_clean = 1;
    for (size_t i = 0; i < n; i++) {
        is_clean &= (unsigned char)common_name[i] >= ' ' && common_name[i] != 0x7f;
    }
    if (n == 0 || n > MS_NAME_MAX || !is_clean) {
        return ms_fail(err, MS_E_INVALID,
                       "the name of the CA must have 1 to 64 bytes and no control characters");
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

static int is_missing(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

/* An authority is both files. One without the other is what an init left that was killed, or has
 * lost what only a copy can bring back: which of the two, the operator knows. */
static int check_whole(const char *directory, const char *key_path, const char *cert_path,
                       struct ms_err *err)
{
    int no_key = is_missing(key_path);
    int no_cert = is_missing(cert_path);
    if (no_key && no_cert) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "there is no authority in %s: name its folder with --dir, or make one with "
                       "'msctl certs init'",
                       directory);
    }
    if (no_key || no_cert) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "the authority in %s is not whole: %s is there, %s is missing; put the "
                       "missing one back from a copy, or, where nothing was issued yet, remove the "
                       "other one and run 'msctl certs init' again",
                       directory, no_key ? "ca.crt" : "ca.key", no_key ? "ca.key" : "ca.crt");
    }
    return MS_OK;
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
    if (lstat(cert_path, &st) == 0 && lstat(key_path, &st) == 0) {
        return ms_fail(err, MS_E_EXISTS, "%s exists already: there is a CA in %s", cert_path,
                       directory);
    }
    if (!is_missing(cert_path) || !is_missing(key_path)) {
        return check_whole(directory, key_path, cert_path, err);
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
        (rc = check_whole(directory, key_path, cert_path, err)) != MS_OK) {
        return rc;
    }
    struct ms_ca *ca = (struct ms_ca *)calloc(1, sizeof(*ca));
    if (ca == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a CA");
    }
    FILE *file = NULL;
    rc = ms_secret_open(key_path, 077, &file, err);
    if (rc == MS_OK) {
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
    int is_word = n > 0 && (isalnum((unsigned char)host[0]) || host[0] == '*' || host[0] == '_');
    if (!is_ip(host) && (!is_word || n > MS_HOST_MAX || strspn(host, legal) != n)) {
        return ms_fail(err, MS_E_INVALID, "'%.80s' is neither a host name nor an IP address", host);
    }
    if (!is_ip(host) && strchr(host, '.') != NULL && strspn(host, "0123456789.") == n) {
        return ms_fail(err, MS_E_INVALID,
                       "'%.80s' looks like an IPv4 address and is none, and no host has such a "
                       "name: an address is four numbers from 0 to 255",
                       host);
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
        rc = i < MS_CERT_HOSTS_MAX
                 ? check_host(req->hosts[i], err)
                 : ms_fail(err, MS_E_INVALID, "more than %d hosts in one certificate",
                           MS_CERT_HOSTS_MAX);
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

int ms_ca_deliver(const struct ms_ca *ca, const struct ms_cert_request *req,
                  const struct ms_p12 *p12, const char *path, struct ms_err *err)
{
    const char *password = req->password != NULL ? req->password : "";
    int rounds = password[0] != '\0' ? KDF_ROUNDS : KDF_ROUNDS_NO_PASSWORD;
    uint8_t *bytes = NULL;
    /* whoever gets the file gets what to trust with it */
    STACK_OF(X509) *chain = sk_X509_new_null();
    PKCS12 *bag = NULL;
    if (chain != NULL && sk_X509_push(chain, ca->cert) > 0) {
        bag = PKCS12_create(password, req->name, p12->key, p12->cert, chain, NID_aes_256_cbc,
                            NID_aes_256_cbc, rounds, rounds, 0);
    }
    int size = bag != NULL ? i2d_PKCS12(bag, &bytes) : -1;
    PKCS12_free(bag);
    sk_X509_free(chain);
    if (size < 0) {
        return ssl_fail(err, "cannot make a PKCS#12");
    }
    int rc = ms_file_write(path, bytes, (size_t)size, 0600, 0, err);
    OPENSSL_cleanse(bytes, (size_t)size);
    OPENSSL_free(bytes);
    return rc;
}

void ms_serial_text(const ASN1_INTEGER *serial, char *buf, size_t size)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(serial, NULL);
    char *hex = number != NULL ? BN_bn2hex(number) : NULL;
    snprintf(buf, size, "%s", hex != NULL ? hex : "?");
    OPENSSL_free(hex);
    BN_free(number);
}

void ms_serial_hex(const X509 *cert, char *buf, size_t size)
{
    ms_serial_text(X509_get0_serialNumber(cert), buf, size);
}

int ms_ca_sign(const struct ms_ca *ca, const struct ms_cert_request *req, struct ms_p12 *ret,
               struct ms_err *err)
{
    if (ms_role_name(req->role) == NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "a certificate is for one role: worker, user, admin or scheduler");
    }
    int rc = ms_cert_name_check(req->name, err);
    if (rc != MS_OK || (rc = check_days(req->days, err)) != MS_OK) {
        return rc;
    }
    struct ms_p12 p12 = {.key = make_key(), .cert = X509_new()};
    if (p12.key == NULL || p12.cert == NULL) {
        rc = ssl_fail(err, "cannot make a key");
    } else {
        rc = build(ca, req, p12.key, p12.cert, err);
    }
    if (rc != MS_OK) {
        ms_p12_fini(&p12);
        return rc;
    }
    *ret = p12;
    return MS_OK;
}

int ms_ca_issue(const struct ms_ca *ca, const struct ms_cert_request *req, const char *p12_path,
                char *ret_serial, struct ms_err *err)
{
    struct ms_p12 p12;
    int rc = ms_ca_sign(ca, req, &p12, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = ms_ca_deliver(ca, req, &p12, p12_path, err);
    if (rc == MS_OK && ret_serial != NULL) {
        ms_serial_hex(p12.cert, ret_serial, MS_SERIAL_HEX);
    }
    ms_p12_fini(&p12);
    return rc;
}

void ms_ca_describe(const X509 *cert, struct ms_ca_entry *ret)
{
    char uri[MS_NAME_MAX + 32];
    struct ms_ca_entry entry = {
        .from = ms_x509_time(X509_get0_notBefore(cert)),
        .to = ms_x509_time(X509_get0_notAfter(cert)),
        .hosts = ms_x509_hosts(cert),
    };
    ms_serial_hex(cert, entry.serial, sizeof(entry.serial));
    if (ms_x509_uri(cert, uri, sizeof(uri))) {
        const char *role = uri + strlen("ms://");
        const char *slash = strchr(role, '/');
        if (slash != NULL && slash - role <= MS_CA_ROLE_MAX && strlen(slash + 1) <= MS_NAME_MAX) {
            snprintf(entry.role, sizeof(entry.role), "%.*s", (int)(slash - role), role);
            snprintf(entry.name, sizeof(entry.name), "%s", slash + 1);
        }
    }
    *ret = entry;
}
