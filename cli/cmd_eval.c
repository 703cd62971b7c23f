/* cmd_eval.c - msctl eval: what an evaluation of trained weights counts */
#include "cli/answer.h"
#include "cli/eval_name.h"
#include "cli/eval_table.h"
#include "cli/format.h"
#include "cli/trained.h"

#include <math.h>

const struct cli_option cmd_eval_options[] = {
    TRAINED_OPTIONS,
    {NULL, 0, NULL, NULL, NULL},
};

/* As many digits as metrics.jsonl has: the same text for the same numbers. */
enum { DIGITS = 9 };

static void print_json(FILE *out, const struct trained *trained, const char *data, json_t *result)
{
    json_object_set_new(result, "weights", json_string(trained->weights));
    json_object_set_new(result, "data", json_string(data));
    json_dumpf(result, out,
               JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION((size_t)DIGITS));
    fputc('\n', out);
}

static void print_table(FILE *out, const struct trained *trained, const char *data,
                        const json_t *result)
{
    char rows[CLI_FORMAT_MAX];
    const json_t *accuracy = json_object_get(result, "accuracy");
    const json_t *loss = json_object_get(result, "eval_loss");
    cli_format_count(rows, (uint64_t)json_integer_value(json_object_get(result, "rows")));
    fprintf(out, "%s: %s samples by %s\n", trained->job.name, rows, trained->weights);
    eval_table_print_loss(out, json_is_number(loss) ? json_number_value(loss) : (double)NAN,
                          json_is_number(accuracy) ? json_number_value(accuracy) : (double)NAN,
                          data);
    eval_table_print(out, result, trained->job.dataset.class_names);
}

int cmd_eval(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    static struct trained trained; /* a job has 90 KiB */
    char data[CLI_EVAL_NAME_MAX];
    json_t *result = NULL;
    int rc = trained_find(args, &trained, err);
    const struct answer_ask ask = {.job = &trained.job,
                                   .weights = trained.weights,
                                   .plan = trained.plan[0] != '\0' ? trained.plan : NULL,
                                   .what = "evaluated",
                                   .mode = "--evaluate",
                                   .to = -1};
    rc = rc < 0 ? rc : answer_run(cli, &ask, &result, err);
    if (rc < 0) {
        return rc;
    }
    cli_eval_name_here(data, &trained.job);
    if (cli->json) {
        print_json(cli->out, &trained, data, result);
    } else {
        print_table(cli->out, &trained, data, result);
    }
    json_decref(result);
    return MS_OK;
}
