/* digest.c - SHA-256 of byte strings, as bytes and as hex */
#include "proto/digest.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>

struct ms_sha256 *ms_sha256_create(void)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(ctx);
        ctx = NULL;
    }
    return (struct ms_sha256 *)ctx;
}

void ms_sha256_add(struct ms_sha256 *sha, const void *data, size_t size)
{
    int ok = EVP_DigestUpdate((EVP_MD_CTX *)sha, data, size);
    assert(ok == 1);
}

void ms_sha256_finish(struct ms_sha256 *sha, uint8_t ret_digest[MS_SHA256_BYTES])
{
    unsigned size = 0;
    int ok = EVP_DigestFinal_ex((EVP_MD_CTX *)sha, ret_digest, &size);
    assert(ok == 1 && size == MS_SHA256_BYTES);
    EVP_MD_CTX_free((EVP_MD_CTX *)sha);
}

void ms_sha256(const void *data, size_t size, uint8_t ret_digest[MS_SHA256_BYTES])
{
    int ok = EVP_Digest(data, size, ret_digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
}

void ms_sha256_hex(const uint8_t digest[MS_SHA256_BYTES], char ret_hex[MS_SHA256_HEX])
{
    for (int i = 0; i < MS_SHA256_BYTES; i++) {
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
    }
}
