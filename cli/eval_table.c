/* eval_table.c - what an evaluation counted beside loss and accuracy, as lines of the summary */
#include "cli/eval_table.h"

#include "cli/format.h"
#include "cli/progress.h"

#include <math.h>

enum { CLASSES_SHOWN = 20, CONFUSION_SHOWN = 12 };

#define INDENT "              " /* of what belongs to the line before */

static double number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* "  87.50 %", "       -" where it has no meaning. */
static void print_share(FILE *out, double share)
{
    if (isfinite(share)) {
        fprintf(out, "  %9.2f %%", 100 * share);
    } else {
        fprintf(out, "  %11s", "-");
    }
}

/* Over those that have one. */
static double mean_of(const json_t *list)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const double share = number(json_array_get(list, i));
        sum += isfinite(share) ? share : 0;
        n += isfinite(share) != 0;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

static void print_classes(FILE *out, const json_t *precision, const json_t *recall)
{
    const size_t n = json_array_size(precision);
    if (n == 0 || json_array_size(recall) != n) {
        return;
    }
    fprintf(out, "  classes     %5s  %11s  %11s\n", "", "precision", "recall");
    for (size_t i = 0; i < n && n <= CLASSES_SHOWN; i++) {
        fprintf(out, INDENT "%5zu", i);
        print_share(out, number(json_array_get(precision, i)));
        print_share(out, number(json_array_get(recall, i)));
        fputc('\n', out);
    }
    fputs(INDENT " mean", out);
    print_share(out, mean_of(precision));
    print_share(out, mean_of(recall));
    fputc('\n', out);
    if (n > CLASSES_SHOWN) {
        fprintf(out, INDENT "of %zu classes: metrics.jsonl has each\n", n);
    }
}

static void print_confusion(FILE *out, const json_t *rows)
{
    const size_t n = json_array_size(rows);
    if (n == 0 || n > CONFUSION_SHOWN) {
        return;
    }
    fputs("  confusion   rows of a class (lines) by the predicted one (columns)\n" INDENT "     ",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, " %7zu", i);
    }
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "\n" INDENT "%5zu", i);
        for (size_t k = 0; k < n; k++) {
            fprintf(out, " %7.0f", number(json_array_get(json_array_get(rows, i), k)));
        }
    }
    fputc('\n', out);
}

void eval_table_print_loss(FILE *out, double loss, double accuracy, const char *data)
{
    char shown[CLI_FORMAT_MAX];
    cli_format_real(shown, loss);
    if (cli_has_accuracy(accuracy)) {
        fprintf(out, "  accuracy    %.2f %% on %s, loss %s\n", accuracy * 100, data, shown);
    } else {
        fprintf(out, "  evaluation  loss %s on %s\n", shown, data);
    }
}

void eval_table_print(FILE *out, const json_t *line)
{
    const double top5 = number(json_object_get(line, "top5"));
    const double perplexity = number(json_object_get(line, "perplexity"));
    const double mae = number(json_object_get(line, "mae"));
    if (isfinite(top5)) {
        fprintf(out, "  top-5       %.2f %%\n", 100 * top5);
    }
    if (isfinite(perplexity)) {
        fprintf(out, "  perplexity  %.6g\n", perplexity);
    }
    if (isfinite(mae)) {
        fprintf(out, "  mae         %.6g\n", mae);
    }
    print_classes(out, json_object_get(line, "precision"), json_object_get(line, "recall"));
    print_confusion(out, json_object_get(line, "confusion"));
}
