/* width.h - how many columns of a terminal a text takes; any locale, any thread
 *
 * Our own, because wcwidth() answers for the locale of the process only, and texts are always
 * UTF-8. East Asian wide and fullwidth characters and emoji take two columns, combining ones none.
 */
#ifndef CLI_WIDTH_H
#define CLI_WIDTH_H

#include <stddef.h>

/* Columns of the whole text; a byte that is no UTF-8 counts as one. */
size_t cli_text_columns(const char *text);
/* Bytes of the longest beginning that fits into columns; combining characters go with the one that
 * they belong to. */
size_t cli_text_bytes_of(const char *text, size_t columns);

#endif
