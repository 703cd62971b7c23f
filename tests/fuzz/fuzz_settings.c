/* fuzz_settings.c - a settings file and a command line, behind a NUL, out of the same bytes */
#include "proto/settings.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARGS_MAX = 16, INPUT_MAX = 65536 };

static const struct ms_setting table[] = {
    {"lease_ms", "--lease-ms", NULL, MS_SET_INT, 1000, 3600000, NULL, "10000", 1, "a lease"},
    {"server", "--server", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, "host:port"},
    {"plain", "--plain", NULL, MS_SET_BOOL, 0, 0, NULL, "false", 0, "no TLS"},
    {"log_level", "--log-level", NULL, MS_SET_ENUM, 0, 0, "error|info|debug", "info", 1, "log"},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};

static void check_values(const struct ms_settings *s)
{
    int64_t lease = ms_settings_int(s, "lease_ms");
    int64_t level = ms_settings_int(s, "log_level");
    FUZZ_CHECK(lease >= 1000 && lease <= 3600000);
    FUZZ_CHECK(level >= 0 && level <= 2);
    FUZZ_CHECK(ms_settings_string(s, "plain") != NULL);
    FILE *sink = fopen("/dev/null", "we");
    if (sink != NULL) {
        ms_settings_print(s, sink);
        fclose(sink);
    }
}

static int split(char *text, size_t size, char *argv[ARGS_MAX + 2])
{
    int argc = 0;
    argv[argc++] = (char *)"prog";
    for (size_t at = 0; at < size && argc <= ARGS_MAX;) {
        argv[argc++] = text + at;
        at += strlen(text + at) + 1;
    }
    argv[argc] = NULL;
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    char *argv[ARGS_MAX + 2];
    struct ms_settings *s = NULL;
    struct ms_err err = {0, ""};
    if (size > INPUT_MAX) {
        return 0;
    }
    const uint8_t *nul = (const uint8_t *)memchr(data, 0, size);
    size_t file_size = nul != NULL ? (size_t)(nul - data) : size;
    size_t words_size = nul != NULL ? size - file_size - 1 : 0;
    char *words = (char *)calloc(1, words_size + 1);
    int fd = memfd_create("settings", MFD_CLOEXEC);
    FUZZ_CHECK(words != NULL && fd >= 0);
    memcpy(words, nul != NULL ? nul + 1 : data, words_size);
    FUZZ_CHECK(write(fd, data, file_size) == (ssize_t)file_size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    int argc = split(words, words_size, argv);
    int before = argc;
    int rc = ms_settings_load(table, path, 1, &argc, argv, &s, &err);
    if (rc == MS_OK) {
        FUZZ_CHECK(argc >= 1 && argc <= before && argv[argc] == NULL);
        check_values(s);
    } else {
        FUZZ_CHECK((rc == MS_E_INVALID || rc == MS_E_CONFIG) && err.text[0] != '\0');
    }
    ms_settings_destroy(s);
    close(fd);
    free(words);
    return 0;
}
