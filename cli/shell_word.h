/* shell_word.h - words of a command that people copy into a shell */
#ifndef CLI_SHELL_WORD_H
#define CLI_SHELL_WORD_H

#include <stdio.h>

/* Prints text as one word: as it is where a shell takes nothing in it for more than it is, else
 * quoted. What could steer a terminal is spelt out ($'\033'). */
void cli_shell_word(FILE *out, const char *text);

#endif
