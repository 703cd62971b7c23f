/* fuzz_tls_files.c - the TLS JSON that MS_TLS_CONFIG names, out of any bytes */
#include "proto/tls_files.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_MAX = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size > INPUT_MAX) {
        return 0;
    }
    int fd = memfd_create("tls.json", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    for (int server = 0; server <= 1; server++) {
        struct ms_tls_files files;
        struct ms_tls_config config;
        struct ms_err err = {0, ""};
        int rc = ms_tls_files_parse(path, server, &files, &err);
        FUZZ_CHECK(rc == MS_OK || (rc == MS_E_CONFIG && err.text[0] != '\0'));
        if (rc == MS_OK) {
            ms_tls_files_config(&files, &config);
            FUZZ_CHECK(config.p12_path[0] != '\0' && config.ca_path[0] != '\0');
            FUZZ_CHECK(strlen(config.p12_path) <= MS_PATH_MAX);
            ms_tls_files_wipe(&files);
        }
    }
    close(fd);
    return 0;
}
