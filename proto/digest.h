/* digest.h - SHA-256 of byte strings, as bytes and as hex */
#ifndef MS_DIGEST_H
#define MS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { MS_SHA256_BYTES = 32, MS_SHA256_HEX = 65 };

struct ms_sha256; /* one digest in the making; not shared between threads */

/* Returns owned, or NULL without memory. */
struct ms_sha256 *ms_sha256_create(void);
void ms_sha256_add(struct ms_sha256 *sha, const void *data, size_t size);
/* Writes the digest and destroys sha. */
void ms_sha256_finish(struct ms_sha256 *sha, uint8_t ret_digest[MS_SHA256_BYTES]);
/* One call for one buffer. */
void ms_sha256(const void *data, size_t size, uint8_t ret_digest[MS_SHA256_BYTES]);
/* Lower-case hex with a NUL. */
void ms_sha256_hex(const uint8_t digest[MS_SHA256_BYTES], char ret_hex[MS_SHA256_HEX]);

#endif
