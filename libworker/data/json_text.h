/* json_text.h - a JSON value as text, whole or not at all */
#ifndef DATA_JSON_TEXT_H
#define DATA_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* As json_dumps, which (jansson 2.14) leaves a key out when memory for it is short and succeeds
 * all the same. NULL root or no memory: NULL. Returns owned (malloc); *ret_size without the NUL,
 * NULL allowed. */
char *json_text(const json_t *root, size_t flags, size_t *ret_size);

#endif
