/* zip.h - where in a zip archive a file lies, by the directory at its end
 *
 * APPNOTE.TXT 6.3.10 (PKWARE): end of central directory (4.3.16), its zip64 form (4.3.14, 4.3.15),
 * file headers (4.3.12, 4.3.7). Stored and deflated members, of any size; no encryption, no parts
 * on other disks. Names are compared and nothing else is done with them: no member is ever a path.
 */
#ifndef DATA_ZIP_H
#define DATA_ZIP_H

#include "proto/err.h"

#include <stdint.h>

struct zip_member {
    int is_deflated; /* else its bytes stand in the archive as they are */
    int64_t at;      /* of the archive: its first byte */
    int64_t packed;  /* bytes there */
    int64_t size;    /* bytes unpacked */
    uint32_t crc;    /* of those */
};

/* MS_E_NOT_FOUND: the archive is sound, and has no such member. path is for errors. */
int zip_find(int fd, const char *path, const char *name, struct zip_member *ret,
             struct ms_err *err);
/* The names in it, ", " between, as many as size has room for; "" where none can be read. */
void zip_list(int fd, const char *path, char *buf, int size);

#endif
