/* eval_table.h - what an evaluation counted beside loss and accuracy, as lines of the summary */
#ifndef CLI_EVAL_TABLE_H
#define CLI_EVAL_TABLE_H

#include <jansson.h>
#include <stdio.h>

/* Loss and accuracy, 0 to 1 (below, or NaN: there is none), on data that are called so. */
void eval_table_print_loss(FILE *out, double loss, double accuracy, const char *data);

/* line: an evaluation's, of metrics.jsonl, which may be anybody's; NULL: nothing is printed. Of
 * more classes than a screen has lines: how many, and the means. names: of classes, LF between, as
 * in a job; they stand beside their numbers, cut to what a screen has room for; "": there are none.
 */
void eval_table_print(FILE *out, const json_t *line, const char *names);

#endif
