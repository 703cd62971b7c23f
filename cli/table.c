/* table.c - rows of text as aligned columns that fit the terminal */
#include "cli/table.h"

#include "cli/format.h"
#include "proto/grow.h"
#include "proto/state_words.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,
    CELL_MAX = 1024,
    SHORT = 8, /* letters that tell most names apart */
    LEAST = 5, /* ... and that still tell something */
};

struct cli_table {
    const struct cli_column *columns;
    size_t n_columns;
    char **cells; /* rows * n_columns, owned */
    size_t n_rows, rows_max;
};

struct cli_table *cli_table_create(const struct cli_column *columns, size_t n)
{
    struct cli_table *table = (struct cli_table *)calloc(1, sizeof(*table));
    if (table != NULL) {
        table->columns = columns;
        table->n_columns = n;
    }
    return table;
}

void cli_table_destroy(struct cli_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->n_rows * table->n_columns; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    free(table);
}

static int grow(struct cli_table *table, struct ms_err *err)
{
    char **cells = (char **)ms_grow(table->cells, table->n_rows, 1,
                                    table->n_columns * sizeof(*cells), &table->rows_max);
    if (cells == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a table of %zu rows", table->n_rows + 1);
    }
    table->cells = cells;
    return MS_OK;
}

int cli_table_add(struct cli_table *table, const char *const *cells, struct ms_err *err)
{
    int rc = grow(table, err);
    if (rc != MS_OK) {
        return rc;
    }
    char **row = table->cells + table->n_rows * table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++) {
        row[c] = strdup(cells[c] != NULL ? cells[c] : "");
        if (row[c] == NULL) {
            while (c > 0) {
                free(row[--c]);
            }
            return ms_fail(err, MS_E_NOMEM, "no memory for a row of a table");
        }
    }
    table->n_rows++;
    return MS_OK;
}

static const struct {
    const char *word;
    const char *colour;
} state_colours[] = {
    {MS_JOB_STATE_QUEUED, "\x1b[33m"},      {MS_JOB_STATE_PLACING, "\x1b[33m"},
    {MS_JOB_STATE_RUNNING, "\x1b[36m"},     {MS_JOB_STATE_RECOVERING, "\x1b[33m"},
    {MS_JOB_STATE_SUCCEEDED, "\x1b[32m"},   {MS_JOB_STATE_FAILED, "\x1b[31m"},
    {MS_JOB_STATE_CANCELLED, "\x1b[33m"},   {MS_RANK_STATE_MISSING, "\x1b[33m"},
    {MS_RANK_STATE_PREPARING, "\x1b[33m"},  {MS_RANK_STATE_HOLDING, "\x1b[33m"},
    {MS_RANK_STATE_TRAINING, "\x1b[36m"},   {MS_RANK_STATE_DONE, "\x1b[32m"},
    {MS_RANK_STATE_FAILED, "\x1b[31m"},     {MS_RANK_STATE_LOST, "\x1b[31m"},
    {MS_NODE_STATE_REGISTERED, "\x1b[32m"}, {MS_NODE_STATE_LOST, "\x1b[31m"},
    {MS_NODE_STATE_LEFT, "\x1b[2m"},
};

const char *cli_state_colour(const char *state)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(state_colours); i++) {
        if (strcmp(state_colours[i].word, state) == 0) {
            return state_colours[i].colour;
        }
    }
    return "";
}

static size_t column_width(const struct cli_table *table, size_t c)
{
    size_t width = cli_text_columns(table->columns[c].title);
    for (size_t r = 0; r < table->n_rows; r++) {
        size_t n = cli_text_columns(table->cells[r * table->n_columns + c]);
        width = n > width ? n : width;
    }
    return width;
}

static size_t total_width(const size_t *widths, size_t n)
{
    size_t total = 0;
    for (size_t c = 0; c < n; c++) {
        total += widths[c] + (widths[c] > 0 && total > 0 ? GAP : 0);
    }
    return total;
}

/* Index of the column that gives way at this turn, n_columns where there is none. */
static size_t giver(const struct cli_table *table, unsigned turn)
{
    size_t c = 0;
    while (c < table->n_columns && table->columns[c].gives != turn) {
        c++;
    }
    return c;
}

/* The last turn. */
static unsigned turns_of(const struct cli_table *table)
{
    unsigned last = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        last = table->columns[c].gives > last ? table->columns[c].gives : last;
    }
    return last;
}

static void give_back(const struct cli_table *table, size_t *widths, const size_t *wanted,
                      size_t limit)
{
    for (unsigned turn = turns_of(table); turn >= 1; turn--) {
        size_t total = total_width(widths, table->n_columns);
        size_t c = giver(table, turn);
        size_t lacks = c < table->n_columns && widths[c] > 0 ? wanted[c] - widths[c] : 0;
        size_t free = limit > total ? limit - total : 0;
        widths[c < table->n_columns ? c : 0] += lacks < free ? lacks : free;
    }
}

/* 1 where no row has anything there. */
static int is_bare(const struct cli_table *table, size_t c)
{
    for (size_t r = 0; r < table->n_rows; r++) {
        if (table->cells[r * table->n_columns + c][0] != '\0') {
            return 0;
        }
    }
    return table->columns[c].gives != 0;
}

/* Each in its turn, to its min. */
static void give_way(const struct cli_table *table, size_t *widths, size_t limit, int is_dear)
{
    for (unsigned turn = 1; turn <= turns_of(table); turn++) {
        size_t c = giver(table, turn);
        size_t total = total_width(widths, table->n_columns);
        if (total <= limit || c == table->n_columns ||
            (table->columns[c].kind == CLI_DEAR) != is_dear) {
            continue;
        }
        size_t min = table->columns[c].min;
        size_t over = total - limit;
        if (widths[c] > min) {
            widths[c] = min > 0 && widths[c] - min > over ? widths[c] - over : min;
        }
    }
}

/* What is good to read has no room: what gives way last is cut the most. */
static void squeeze(const struct cli_table *table, size_t *widths, size_t limit, size_t least)
{
    for (unsigned turn = turns_of(table); turn >= 1; turn--) {
        size_t c = giver(table, turn);
        size_t total = total_width(widths, table->n_columns);
        if (total <= limit || c == table->n_columns || table->columns[c].min == 0) {
            continue;
        }
        size_t over = total - limit;
        if (widths[c] > least) {
            widths[c] = widths[c] - least > over ? widths[c] - over : least;
        }
    }
}

static void fit(const struct cli_table *table, size_t *widths, const size_t *wanted, size_t limit)
{
    size_t n = table->n_columns;
    for (size_t c = 0; c < n && total_width(widths, n) > limit; c++) {
        widths[c] = is_bare(table, c) ? 0 : widths[c];
    }
    give_way(table, widths, limit, 0);
    squeeze(table, widths, limit, SHORT);
    give_way(table, widths, limit, 1);
    squeeze(table, widths, limit, LEAST);
    give_back(table, widths, wanted, limit);
}

size_t cli_table_width(const struct cli_table *table)
{
    size_t total = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        total += column_width(table, c) + (c > 0 ? GAP : 0);
    }
    return total;
}

static void print_cell(FILE *out, const struct cli_column *column, const char *text, size_t width,
                       int last, const char *colour)
{
    char cell[CELL_MAX];
    cli_text_fit(cell, sizeof(cell), text, width);
    size_t columns = cli_text_columns(cell);
    int pad = columns < width ? (int)(width - columns) : 0;
    if (column->kind == CLI_RIGHT || column->kind == CLI_DEAR) {
        fprintf(out, "%*s", pad, "");
        pad = 0;
    }
    fprintf(out, "%s%s%s", colour, cell, colour[0] != '\0' ? CLI_COLOUR_OFF : "");
    if (!last) {
        fprintf(out, "%*s", pad + GAP, "");
    }
}

/* The column at which the last one's text begins: its own, or the first of the empty cells before
 * it where it would be cut. *ret_width: the room from there on. */
static size_t begin_of_last(const struct cli_table *table, const size_t *widths,
                            const char *const *cells, size_t last, size_t *ret_width)
{
    size_t begin = last;
    *ret_width = widths[last];
    if (table->columns[last].kind != CLI_TEXT) {
        return begin;
    }
    for (size_t c = last; c > 0 && cli_text_columns(cells[last]) > *ret_width; c--) {
        if (widths[c - 1] > 0 && cells[c - 1][0] != '\0') {
            break;
        }
        *ret_width += widths[c - 1] + (widths[c - 1] > 0 ? GAP : 0);
        begin = c - 1;
    }
    return begin;
}

static const char *colour_of(const struct cli_table *table, size_t c, const char *cell, int head)
{
    if (head) {
        return CLI_COLOUR_BOLD;
    }
    return table->columns[c].kind == CLI_STATE ? cli_state_colour(cell) : "";
}

/* One line; cells are texts of all columns. */
static void print_row(const struct cli_table *table, FILE *out, const size_t *widths,
                      const char *const *cells, int head, int colour)
{
    size_t last = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        last = widths[c] > 0 ? c : last;
    }
    size_t width = 0;
    size_t begin = begin_of_last(table, widths, cells, last, &width);
    for (size_t c = 0; c < begin; c++) {
        if (widths[c] > 0) {
            print_cell(out, &table->columns[c], cells[c], widths[c], 0,
                       colour ? colour_of(table, c, cells[c], head) : "");
        }
    }
    print_cell(out, &table->columns[last], cells[last], width, 1,
               colour ? colour_of(table, last, cells[last], head) : "");
    fputc('\n', out);
}

void cli_table_print(const struct cli_table *table, FILE *out, size_t width, int colour)
{
    size_t n = table->n_columns;
    size_t *widths = (size_t *)calloc(2 * n, sizeof(*widths));
    const char **titles = (const char **)calloc(n, sizeof(*titles));
    for (size_t c = 0; widths != NULL && titles != NULL && c < n; c++) {
        widths[c] = widths[n + c] = column_width(table, c);
        titles[c] = table->columns[c].title;
    }
    if (widths != NULL && titles != NULL) {
        if (width > 0) {
            fit(table, widths, widths + n, width);
        }
        print_row(table, out, widths, titles, 1, colour);
        for (size_t r = 0; r < table->n_rows; r++) {
            print_row(table, out, widths, (const char *const *)table->cells + r * n, 0, colour);
        }
    }
    free(widths);
    free((void *)titles);
}
