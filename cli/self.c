/* self.c - how this msctl was called: what commands that people copy begin with */
#include "cli/self.h"

#include "cli/shell_word.h"

#include <stdlib.h>
#include <string.h>

static char *word; /* owned, as long as the process lives; NULL: a shell finds it */

void cli_self_set(const char *called)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = called != NULL && strchr(called, '/') != NULL ? open_memstream(&text, &size) : NULL;
    if (out != NULL) {
        cli_shell_word(out, called);
        fclose(out);
    }
    free(word);
    word = text;
}

const char *cli_self(void)
{
    return word != NULL ? word : "msctl";
}

static void put_option(FILE *out, const char *option, const char *value)
{
    if (value != NULL) {
        fprintf(out, " %s ", option);
        cli_shell_word(out, value);
    }
}

char *cli_self_there(const char *config, const char *server)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fputs(cli_self(), out);
    put_option(out, "--config", config);
    put_option(out, "-s", server);
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}
