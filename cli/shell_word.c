/* shell_word.c - words of a command that people copy into a shell */
#include "cli/shell_word.h"

#include <ctype.h>
#include <string.h>

static int is_plain(unsigned char c)
{
    return isalnum(c) || strchr("_./,:=@%+-", c) != NULL;
}

static int is_control(unsigned char c)
{
    return c < ' ' || c == 127;
}

/* '...' but for a quote and what is spelt out, each a piece of its own. */
static void put_quoted(FILE *out, const char *text)
{
    int is_open = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        const int opens = *c != '\'' && !is_control(*c);
        if (opens != is_open) {
            fputc('\'', out);
            is_open = opens;
        }
        if (*c == '\'') {
            fputs("\\'", out);
        } else if (is_control(*c)) {
            fprintf(out, "$'\\%03o'", *c);
        } else {
            fputc(*c, out);
        }
    }
    if (is_open) {
        fputc('\'', out);
    }
}

void cli_shell_word(FILE *out, const char *text)
{
    const char *end = text;
    while (*end != '\0' && is_plain((unsigned char)*end)) {
        end++;
    }
    if (text[0] == '\0') {
        fputs("''", out);
    } else if (*end == '\0') {
        fputs(text, out);
    } else {
        put_quoted(out, text);
    }
}
