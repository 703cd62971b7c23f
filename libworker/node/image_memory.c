/* image_memory.c - how much memory decoded images of a host may take */
#include "libworker/node/image_memory.h"

#include <stddef.h>

int64_t image_memory(const struct ms_settings *settings)
{
    return ms_settings_int(settings, "image_memory") << 20;
}

int image_memory_of_environment(int64_t *ret, struct ms_err *err)
{
    static const struct ms_setting table[] = {
        IMAGE_MEMORY_SETTING, {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL}};
    char *argv[2] = {NULL}; /* a name, and no word behind it */
    int argc = 1;
    struct ms_settings *settings = NULL;
    int rc = ms_settings_load(table, NULL, 0, &argc, argv, &settings, err);
    if (rc == MS_OK) {
        *ret = image_memory(settings);
    }
    ms_settings_destroy(settings);
    return rc;
}
