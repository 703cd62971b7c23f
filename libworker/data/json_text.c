/* json_text.c - a JSON value as text, whole or not at all */
#include "libworker/data/json_text.h"

#include <stdlib.h>

/* Into a buffer of the right size, jansson has no memory to ask for in the middle of a key. */
char *json_text(const json_t *root, size_t flags, size_t *ret_size)
{
    size_t size = root != NULL ? json_dumpb(root, NULL, 0, flags) : 0;
    char *text = size > 0 ? malloc(size + 1) : NULL;
    if (text == NULL) {
        return NULL;
    }
    if (json_dumpb(root, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    if (ret_size != NULL) {
        *ret_size = size;
    }
    return text;
}
