/* certkind.c - what a file is that holds no certificate, or none with its key: in words */
#include "proto/certkind.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define ADVICE "what is installed and read is the .p12 file that msctl certs issue made"

static int holds(const struct ms_whole *file, const char *text)
{
    return memmem(file->bytes, file->size, text, strlen(text)) != NULL;
}

/* Does the first block of PEM, with text before it or not, begin so? */
static int begins_with(const struct ms_whole *file, const char *label)
{
    static const char begin[] = "-----BEGIN ";
    const uint8_t *at = (const uint8_t *)memmem(file->bytes, file->size, begin, sizeof(begin) - 1);
    return at != NULL && strncmp((const char *)at + sizeof(begin) - 1, label, strlen(label)) == 0;
}

int ms_cert_is_list(const struct ms_whole *file)
{
    return begins_with(file, "X509 CRL-----");
}

/* Bytes that the first element of DER says it has; 0: it is none, or does not say. */
static size_t der_size(const struct ms_whole *file)
{
    size_t n_length = file->size > 1 ? file->bytes[1] & 0x7f : 0;
    size_t size = 0;
    if (file->size < 2 || file->bytes[0] != 0x30) {
        return 0;
    }
    if ((file->bytes[1] & 0x80) == 0) {
        return 2 + n_length;
    }
    if (n_length == 0 || n_length > 4 || file->size < 2 + n_length) {
        return 0;
    }
    for (size_t i = 0; i < n_length; i++) {
        size = size << 8 | file->bytes[2 + i];
    }
    return 2 + n_length + size;
}

static int is_authority(const struct ms_whole *file)
{
    BIO *bio = BIO_new_mem_buf(file->bytes, (int)file->size);
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    int is = cert != NULL && X509_check_ca(cert) > 0;
    X509_free(cert);
    BIO_free(bio);
    ERR_clear_error();
    return is;
}

/* A word about PEM never names the file itself as the output of a command. */
static int say_pem(const struct ms_whole *file, struct ms_err *err)
{
    int has_cert = holds(file, "-----BEGIN CERTIFICATE");
    if (holds(file, "PRIVATE KEY-----")) {
        return ms_fail(err, MS_E_TLS,
                       "%s is PEM and no PKCS#12 file; make one: openssl pkcs12 -export %s %s%s "
                       "-out NEW.p12",
                       file->path, has_cert ? "-in" : "-inkey", file->path,
                       has_cert ? "" : " -in CERT");
    }
    if (has_cert) {
        return ms_fail(err, MS_E_TLS,
                       "%s is no PKCS#12 file but %s in PEM form, without a key: " ADVICE "%s",
                       file->path, is_authority(file) ? "a CA's certificate" : "a certificate",
                       is_authority(file) ? "; it brings its CA along" : "");
    }
    return ms_cert_is_list(file)
               ? ms_fail(err, MS_E_TLS,
                         "%s is no PKCS#12 file but a list of revoked certificates: " ADVICE,
                         file->path)
               : ms_fail(err, MS_E_TLS, "%s is no PKCS#12 file: " ADVICE, file->path);
}

int ms_cert_no_p12(const struct ms_whole *file, struct ms_err *err)
{
    size_t size = der_size(file);
    if (file->size == 0) {
        return ms_fail(err, MS_E_TLS, "%s is empty: copy it again from where it was issued",
                       file->path);
    }
    if (size > file->size) {
        return ms_fail(err, MS_E_TLS,
                       "%s is cut off, %zu of %zu bytes: copy it again from where it was issued",
                       file->path, file->size, size);
    }
    if (holds(file, "-----BEGIN ")) {
        return say_pem(file, err);
    }
    return ms_fail(err, MS_E_TLS,
                   "%s is no PKCS#12 file, or damaged: copy it again; of a key and a certificate "
                   "openssl pkcs12 -export -inkey KEY -in CERT -out NEW.p12 makes one",
                   file->path);
}

int ms_cert_no_pem(const struct ms_whole *file, struct ms_err *err)
{
    if (ms_cert_is_list(file)) {
        return ms_fail(err, MS_E_TLS,
                       "%s is a list of revoked certificates and holds none itself: openssl crl "
                       "-noout -text -in %s shows it; where the CA is, msctl certs list says whose "
                       "they were",
                       file->path, file->path);
    }
    return file->size == 0
               ? ms_fail(err, MS_E_TLS, "%s is empty: copy it again from where it was made",
                         file->path)
               : ms_fail(err, MS_E_TLS, "%s holds no certificate in PEM form", file->path);
}
