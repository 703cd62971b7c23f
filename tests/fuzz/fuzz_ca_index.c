/* fuzz_ca_index.c - the index of a certificate authority, out of any bytes: what is read is written
 * just so */
#include "proto/ca_index.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_MAX = 65536 };

static void check_entry(const struct ms_ca_index *index, size_t i)
{
    const struct ms_ca_entry *entry = &index->entries[i];
    FUZZ_CHECK(ms_ca_index_serial(index, entry->serial) != NULL);
    for (const char *p = entry->name; *p != '\0'; p++) { /* it is printed on terminals */
        FUZZ_CHECK(*p > ' ' && *p < 0x7f);
    }
    for (const char *p = entry->hosts != NULL ? entry->hosts : ""; *p != '\0'; p++) {
        FUZZ_CHECK(*p > ' ' && *p < 0x7f);
    }
}

/* The second writing is that of the first, byte by byte. */
static void check_again(const char *folder, const struct ms_ca_index *index)
{
    char path[64];
    struct ms_ca_index again;
    struct ms_err err = {0, ""};
    snprintf(path, sizeof(path), "%s/index.txt", folder);
    FUZZ_CHECK(ms_ca_index_write(path, index, &err) == MS_OK);
    FUZZ_CHECK(ms_ca_index_read(path, &again, &err) == MS_OK);
    FUZZ_CHECK(again.n == index->n);
    for (size_t i = 0; i < again.n; i++) {
        FUZZ_CHECK(strcmp(again.entries[i].serial, index->entries[i].serial) == 0);
        FUZZ_CHECK(strcmp(again.entries[i].name, index->entries[i].name) == 0);
        FUZZ_CHECK(again.entries[i].revoked == index->entries[i].revoked);
    }
    ms_ca_index_fini(&again);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct ms_ca_index index;
    struct ms_err err = {0, ""};
    if (size > INPUT_MAX) {
        return 0;
    }
    int fd = memfd_create("index.txt", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = ms_ca_index_read(path, &index, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc == MS_OK) {
        char folder[] = "/tmp/msched-fuzz-XXXXXX";
        FUZZ_CHECK(mkdtemp(folder) != NULL);
        for (size_t i = 0; i < index.n; i++) {
            check_entry(&index, i);
        }
        check_again(folder, &index);
        FUZZ_CHECK(rmdir(folder) == 0);
        ms_ca_index_fini(&index);
    }
    close(fd);
    return 0;
}
