/* table.h - rows of text as aligned columns that fit the terminal; pure but for the FILE */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "proto/err.h"

#include <stddef.h>
#include <stdio.h>

enum cli_column_kind {
    CLI_LEFT,
    CLI_RIGHT, /* numbers */
    CLI_STATE, /* left, coloured by its word */
    CLI_DEAR,  /* numbers that texts are cut for before they go */
    CLI_TEXT, /* left, the last column: what does not fit takes the room of empty cells before it */
};

/* Where the terminal is too narrow columns give way in the order of `gives`: to min columns, or
 * wholly where min is 0 (a number is shown as it is or not at all); before them goes what has
 * nothing but a title, after them what is dear. What is free then goes back to those that were cut,
 * the last one first. */
struct cli_column {
    const char *title;
    enum cli_column_kind kind;
    unsigned gives; /* 1: first; 0: never */
    size_t min;
};

struct cli_table;

/* columns is borrowed for the table's life. Returns owned, NULL without memory. */
struct cli_table *cli_table_create(const struct cli_column *columns, size_t n);
void cli_table_destroy(struct cli_table *table); /* NULL allowed */

/* Appends a row of n cells, copied; NULL is an empty cell. */
int cli_table_add(struct cli_table *table, const char *const *cells, struct ms_err *err);

/* Columns of the terminal that it takes where nothing is cut. */
size_t cli_table_width(const struct cli_table *table);

/* Prints head and rows. width: columns of the terminal, 0: no limit (a pipe, where nothing is cut).
 * colour: escape sequences around states and the head. */
void cli_table_print(const struct cli_table *table, FILE *out, size_t width, int colour);

/* Escape sequence for a word of state (RUNNING, FAILED, idle, lost...) or "" where it has none. */
const char *cli_state_colour(const char *state);
#define CLI_COLOUR_BOLD "\x1b[1m"
#define CLI_COLOUR_OFF  "\x1b[0m"

#endif
