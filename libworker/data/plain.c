/* plain.c - is a file the text that it is taken for? */
#include "libworker/data/source.h"
#include "proto/macros.h"

#include <string.h>
#include <unistd.h>

/* What spreadsheets and shells may have made of it. */
int data_check_plain(int fd, const char *path, struct ms_err *err)
{
    static const struct {
        const char *magic, *what;
    } starts[] = {{"\x1F\x8B", "is packed; unpack it with gunzip"},
                  {"PK\3\4", "is a zip archive or a workbook; unpack it, or save the sheet as CSV"},
                  {"\xFF\xFE", "is UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8"},
                  {"\xFE\xFF", "is UTF-16; write it as UTF-8: iconv -f UTF-16 -t UTF-8"}};
    char magic[5] = {0};
    if (pread(fd, magic, sizeof(magic) - 1, 0) < 0) {
        return ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", path);
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(starts); i++) {
        if (strncmp(magic, starts[i].magic, strlen(starts[i].magic)) == 0) {
            return ms_fail(err, MS_E_INVALID, "%.200s %s", path, starts[i].what);
        }
    }
    return MS_OK;
}
