/* whole.c - a file that was given, read once and whole */
#include "proto/whole.h"

#include "proto/regular.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST_SIZE = 16 << 10, WHOLE_MAX = 64 << 20 };

/* realloc() would leave bytes of a key behind. */
static int grow(struct ms_whole *file, size_t *capacity, struct ms_err *err)
{
    size_t size = *capacity == 0 ? FIRST_SIZE : *capacity * 2;
    if (*capacity >= WHOLE_MAX) {
        return ms_fail(err, MS_E_INVALID, "%s is larger than 64 MiB: no certificate and no list is",
                       file->path);
    }
    uint8_t *bytes = (uint8_t *)malloc(size + 1);
    if (bytes == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", file->path);
    }
    if (file->bytes != NULL) {
        memcpy(bytes, file->bytes, file->size);
        explicit_bzero(file->bytes, file->size);
        free(file->bytes);
    }
    file->bytes = bytes;
    *capacity = size;
    return MS_OK;
}

static int read_all(FILE *from, struct ms_whole *file, struct ms_err *err)
{
    size_t capacity = 0;
    int rc = MS_OK;
    while (rc == MS_OK && !feof(from)) {
        rc = file->size < capacity ? MS_OK : grow(file, &capacity, err);
        if (rc == MS_OK) {
            file->size += fread(file->bytes + file->size, 1, capacity - file->size, from);
        }
        if (rc == MS_OK && ferror(from)) {
            rc = ms_fail_errno(err, MS_E_IO, "cannot read %s", file->path);
        }
    }
    return rc;
}

int ms_whole_read(const char *path, const char *what, struct ms_whole *ret, struct ms_err *err)
{
    struct ms_whole file = {.path = path};
    struct stat st;
    FILE *from = NULL;
    int rc = ms_regular_open(path, what, &from, err);
    if (rc != MS_OK) {
        return rc;
    }
    (void)setvbuf(from, NULL, _IONBF, 0); /* no second copy of a key */
    rc = fstat(fileno(from), &st) == 0 ? read_all(from, &file, err)
                                       : ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
    fclose(from);
    if (rc != MS_OK) {
        ms_whole_fini(&file);
        return rc;
    }
    file.bytes[file.size] = '\0';
    file.mode = S_ISREG(st.st_mode) ? st.st_mode & 07777 : 0;
    file.uid = st.st_uid;
    file.gid = st.st_gid;
    *ret = file;
    return MS_OK;
}

void ms_whole_fini(struct ms_whole *file)
{
    if (file->bytes != NULL) {
        explicit_bzero(file->bytes, file->size);
        free(file->bytes);
    }
    memset(file, 0, sizeof(*file));
}
