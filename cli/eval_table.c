/* eval_table.c - what an evaluation counted beside loss and accuracy, as lines of the summary */
#include "cli/eval_table.h"

#include "cli/format.h"
#include "cli/progress.h"
#include "cli/width.h"
#include "proto/limits.h"
#include "proto/text.h"

#include <math.h>
#include <string.h>

enum { CLASSES_SHOWN = 20, CONFUSION_SHOWN = 12 };
enum { NAME_LEAST = 8, NAME_MOST = 20 }; /* columns; more only where the screen has them */
enum { SCREEN = 80, BEFORE_COUNTS = 14 + 5 + 2, COUNT = 8 };

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

/* ---- what classes are called ---- */

struct names {
    const char *text; /* LF between */
    size_t columns;   /* that the longest one takes, with the gap before it; 0: there are none */
};

/* Of class i; "": it has none. Returns its columns. */
static size_t name_of(const char *text, size_t i, size_t most, char ret[MS_NAME_MAX + 8])
{
    static const char dots[] = "...";
    while (i > 0 && *text != '\0') {
        i -= *text++ == '\n';
    }
    snprintf(ret, MS_NAME_MAX + 1, "%.*s", (int)strcspn(text, "\n"), text);
    ms_text_mend((uint8_t *)ret, strlen(ret), MS_TEXT_LINE);
    if (cli_text_columns(ret) > most) {
        snprintf(ret + cli_text_bytes_of(ret, most - strlen(dots)), sizeof(dots), "%s", dots);
    }
    return cli_text_columns(ret);
}

static struct names find_names(const char *text, size_t n, size_t most)
{
    struct names names = {text, 0};
    char name[MS_NAME_MAX + 8];
    for (size_t i = 0; i < n; i++) {
        const size_t columns = name_of(text, i, most, name);
        names.columns = columns > names.columns ? columns : names.columns;
    }
    return names;
}

static void print_class(FILE *out, const struct names *names, size_t i)
{
    char name[MS_NAME_MAX + 8];
    fprintf(out, INDENT "%5zu", i);
    if (names->columns > 0) {
        const size_t columns = name_of(names->text, i, names->columns, name);
        fprintf(out, "  %s%*s", name, (int)(names->columns - columns), "");
    }
}

/* As wide as what print_class puts behind the number. */
static void print_gap(FILE *out, const struct names *names)
{
    fprintf(out, "%*s", names->columns > 0 ? (int)names->columns + 2 : 0, "");
}

/* ---- tables ---- */

static void print_classes(FILE *out, const json_t *precision, const json_t *recall,
                          const char *text)
{
    const size_t n = json_array_size(precision);
    if (n == 0 || json_array_size(recall) != n) {
        return;
    }
    const struct names names = find_names(n <= CLASSES_SHOWN ? text : "", n, NAME_MOST);
    fprintf(out, "  classes     %5s", "");
    print_gap(out, &names);
    fprintf(out, "  %11s  %11s\n", "precision", "recall");
    for (size_t i = 0; i < n && n <= CLASSES_SHOWN; i++) {
        print_class(out, &names, i);
        print_share(out, number(json_array_get(precision, i)));
        print_share(out, number(json_array_get(recall, i)));
        fputc('\n', out);
    }
    fputs(INDENT " mean", out);
    print_gap(out, &names);
    print_share(out, mean_of(precision));
    print_share(out, mean_of(recall));
    fputc('\n', out);
    if (n > CLASSES_SHOWN) {
        fprintf(out, INDENT "of %zu classes: metrics.jsonl has each\n", n);
    }
}

static void print_confusion(FILE *out, const json_t *rows, const char *text)
{
    const size_t n = json_array_size(rows);
    if (n == 0 || n > CONFUSION_SHOWN) {
        return;
    }
    const size_t used = BEFORE_COUNTS + n * COUNT;
    const size_t most = used + NAME_LEAST >= SCREEN  ? NAME_LEAST
                        : used + NAME_MOST >= SCREEN ? SCREEN - used
                                                     : NAME_MOST;
    const struct names names = find_names(text, n, most);
    fputs("  confusion   rows of a class (lines) by the predicted one (columns)\n" INDENT "     ",
          out);
    print_gap(out, &names);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, " %7zu", i);
    }
    for (size_t i = 0; i < n; i++) {
        fputc('\n', out);
        print_class(out, &names, i);
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

void eval_table_print(FILE *out, const json_t *line, const char *names)
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
    print_classes(out, json_object_get(line, "precision"), json_object_get(line, "recall"), names);
    print_confusion(out, json_object_get(line, "confusion"), names);
}
