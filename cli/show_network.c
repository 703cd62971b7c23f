/* show_network.c - a job's network as a table: a line a layer, with what it makes and costs
 *
 * All numbers are the graph's that the job will train, built for its data's shapes. A repeat shows
 * each of its turns: their names are those of parameters, in files of weights and in plans, the
 * first may have another shape than the rest, and lines add up to the totals. Time is an estimate,
 * for a core with the rates that the caller has measured. */
#include "cli/show_network.h"

#include "cli/format.h"
#include "cli/json.h"
#include "cli/step_time.h"
#include "cli/table.h"
#include "libworker/graph/cost.h"
#include "libworker/job/first_weights.h"
#include "libworker/network/network.h"
#include "proto/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXACT_MAX 9007199254740992.0 /* 2^53: a double above it may be off by one */

struct picture {
    const struct network *network;
    const struct network_layers *layers;
    const struct graph *graph;
    struct graph_cost *costs; /* of each layer */
    struct graph_cost total;
    const struct roofline *rates;
    double *seconds; /* of each layer in a step */
    double step_seconds;
    int64_t batch;
    const char *first; /* path of the initial weights; "": none */
    char taken[512];   /* what is taken of them */
};

/* ---- numbers ---- */

/* Of values, whatever the precision of the job: so networks can be compared. */
static uint64_t fp32_bytes(int64_t count)
{
    return (uint64_t)count * ms_dtype_bytes(MS_F32);
}

static double macs_of(const struct picture *p, const struct graph_cost *cost)
{
    return cost->products / (double)p->batch;
}

static uint64_t bytes_of(const struct picture *p, const struct graph_cost *cost)
{
    return fp32_bytes(cost->values / p->batch);
}

/* Of all that layers make. */
static double share_of(const struct picture *p, const struct graph_cost *cost)
{
    return p->total.values > 0 ? (double)cost->values / (double)p->total.values : 0;
}

/* Of a step. */
static double time_share_of(const struct picture *p, size_t i)
{
    return p->step_seconds > 0 ? p->seconds[i] / p->step_seconds : 0;
}

static const char *percent_text(char buf[CLI_FORMAT_MAX], double share)
{
    snprintf(buf, CLI_FORMAT_MAX, "%.1f %%", 100 * share);
    return buf;
}

static const char *macs_text(char buf[CLI_FORMAT_MAX], double macs)
{
    if (macs <= EXACT_MAX) {
        return cli_format_count(buf, (uint64_t)llround(macs));
    }
    snprintf(buf, CLI_FORMAT_MAX, "%.3g", macs);
    return buf;
}

/* Without the batch: "64x112x112". */
static const char *sample_text(const struct tensor *tensor, char *buf, size_t size)
{
    const struct shape *shape = &tensor->shape;
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 1; i < shape->n_dims && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%lld", i > 1 ? "x" : "",
                                 (long long)shape->dim[i]);
    }
    return buf;
}

static json_t *sample_json(const struct tensor *tensor)
{
    json_t *list = json_array();
    for (int i = 1; i < tensor->shape.n_dims; i++) {
        json_array_append_new(list, json_integer(tensor->shape.dim[i]));
    }
    return list;
}

static json_t *macs_json(double macs)
{
    return macs <= EXACT_MAX ? json_integer(llround(macs)) : cli_json_real(macs);
}

/* ---- for programs ---- */

static void put_cost(json_t *object, const struct picture *p, const struct graph_cost *cost)
{
    json_object_set_new(object, "parameters", json_integer(cost->parameters));
    json_object_set_new(object, "moving_statistics", json_integer(cost->states));
    json_object_set_new(object, "macs", macs_json(macs_of(p, cost)));
    json_object_set_new(object, "activation_bytes", json_integer((json_int_t)bytes_of(p, cost)));
}

static json_t *layer_json(const struct picture *p, size_t i)
{
    const struct network_layer *layer = &p->layers->at[i];
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(layer->name));
    json_object_set_new(object, "kind", json_string(layer->kind));
    json_object_set_new(object, "output", sample_json(graph_tensor(p->graph, layer->output)));
    put_cost(object, p, &p->costs[i]);
    json_object_set_new(object, "activation_share", cli_json_real(share_of(p, &p->costs[i])));
    json_object_set_new(object, "time_share", cli_json_real(time_share_of(p, i)));
    return object;
}

static json_t *picture_json(const struct picture *p)
{
    const struct tensor *data = graph_tensor(p->graph, graph_data_index(p->graph));
    json_t *object = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < p->layers->n; i++) {
        json_array_append_new(list, layer_json(p, i));
    }
    json_object_set_new(object, "network", json_string(network_name(p->network)));
    json_object_set_new(object, "summary", json_string(network_summary(p->network)));
    json_object_set_new(object, "input", sample_json(data));
    json_object_set_new(object, "batch_size", json_integer(p->batch));
    json_object_set_new(object, "layers", list);
    if (p->first[0] != '\0') {
        json_object_set_new(object, "initial_weights",
                            json_pack("{s:s, s:s}", "file", p->first, "taken", p->taken));
    }
    put_cost(object, p, &p->total);
    json_object_set_new(object, "parameter_bytes",
                        json_integer((json_int_t)fp32_bytes(p->total.parameters)));
    json_object_set_new(object, "expected_step_seconds", cli_json_real(p->step_seconds));
    json_object_set_new(object, "macs_per_second", cli_json_real(p->rates->products_per_s));
    json_object_set_new(object, "memory_bytes_per_second", cli_json_real(p->rates->bytes_per_s));
    return object;
}

/* ---- for people ---- */

static const struct cli_column columns[] = {
    {"LAYER", CLI_LEFT, 2, 16},      {"KIND", CLI_LEFT, 1, 0},  {"OUTPUT", CLI_LEFT, 7, 0},
    {"PARAMETERS", CLI_RIGHT, 0, 0}, {"MACS", CLI_RIGHT, 5, 0}, {"ACTIVATIONS", CLI_RIGHT, 3, 0},
    {"SHARE", CLI_RIGHT, 4, 0},      {"TIME", CLI_RIGHT, 6, 0},
};

static int add_layer(const struct picture *p, size_t i, struct cli_table *table, struct ms_err *err)
{
    const struct network_layer *layer = &p->layers->at[i];
    const struct graph_cost *cost = &p->costs[i];
    char output[96];
    char parameters[CLI_FORMAT_MAX];
    char macs[CLI_FORMAT_MAX];
    char bytes[CLI_FORMAT_MAX];
    char share[CLI_FORMAT_MAX];
    char time[CLI_FORMAT_MAX];
    const char *const cells[MS_ARRAY_SIZE(columns)] = {
        layer->name,
        layer->kind,
        sample_text(graph_tensor(p->graph, layer->output), output, sizeof(output)),
        cli_format_count(parameters, (uint64_t)cost->parameters),
        macs_text(macs, macs_of(p, cost)),
        cli_format_bytes(bytes, bytes_of(p, cost)),
        percent_text(share, share_of(p, cost)),
        percent_text(time, time_share_of(p, i)),
    };
    return cli_table_add(table, cells, err);
}

static void print_head(const struct cli *cli, const struct picture *p)
{
    char text[512];
    char input[96];
    const char *summary = network_summary(p->network);
    snprintf(text, sizeof(text), "%s%s%s", network_name(p->network), summary[0] != '\0' ? ": " : "",
             summary);
    cli_fact(cli, "network", text);
    snprintf(text, sizeof(text), "%s, batches of %lld",
             sample_text(graph_tensor(p->graph, graph_data_index(p->graph)), input, sizeof(input)),
             (long long)p->batch);
    cli_fact(cli, "input", text);
    fputc('\n', cli->out);
}

/* Of an estimate two digits tell enough: "0.38 ms", "64 ms", "0.73 s". */
static const char *about_text(char buf[CLI_FORMAT_MAX], double seconds)
{
    if (seconds >= 99.5) {
        return cli_format_duration(buf, seconds);
    }
    const int is_short = seconds < 0.0995;
    snprintf(buf, CLI_FORMAT_MAX, "%.2g %s", is_short ? 1e3 * seconds : seconds,
             is_short ? "ms" : "s");
    return buf;
}

static void print_time(const struct cli *cli, const struct picture *p)
{
    char text[256];
    char time[CLI_FORMAT_MAX];
    char bytes[CLI_FORMAT_MAX];
    snprintf(text, sizeof(text), "about %s a step of a rank on one core of this host",
             about_text(time, p->step_seconds));
    cli_fact(cli, "time", text);
    snprintf(text, sizeof(text), "estimated for %.3g billion macs and %s of memory a second",
             1e-9 * p->rates->products_per_s,
             cli_format_bytes(bytes, (uint64_t)llround(p->rates->bytes_per_s)));
    cli_fact(cli, "", text);
}

static void print_totals(const struct cli *cli, const struct picture *p)
{
    char text[256];
    char count[CLI_FORMAT_MAX];
    char bytes[CLI_FORMAT_MAX];
    const struct graph_cost *total = &p->total;
    fputc('\n', cli->out);
    cli_fact(cli, "layers", cli_format_count(count, p->layers->n));
    snprintf(text, sizeof(text), "%s, %s as fp32",
             cli_format_count(count, (uint64_t)total->parameters),
             cli_format_bytes(bytes, fp32_bytes(total->parameters)));
    cli_fact(cli, "parameters", text);
    snprintf(text, sizeof(text), "%s moving means and variances",
             cli_format_count(count, (uint64_t)total->states));
    cli_fact(cli, "statistics", total->states > 0 ? text : "");
    snprintf(text, sizeof(text), "%s a sample", macs_text(count, macs_of(p, total)));
    cli_fact(cli, "macs", text);
    snprintf(text, sizeof(text), "%s a sample, %s a batch",
             cli_format_bytes(count, bytes_of(p, total)),
             cli_format_bytes(bytes, bytes_of(p, total) * (uint64_t)p->batch));
    cli_fact(cli, "activations", text);
    print_time(cli, p);
    if (p->first[0] != '\0') {
        char first[MS_PATH_MAX + sizeof(p->taken) + 8];
        snprintf(first, sizeof(first), "%s: %s", p->first, p->taken);
        cli_fact(cli, "begins with", first);
    }
}

static int print_table(const struct cli *cli, const struct picture *p, struct ms_err *err)
{
    struct cli_table *table = cli_table_create(columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the list of layers");
    for (size_t i = 0; rc == MS_OK && i < p->layers->n; i++) {
        rc = add_layer(p, i, table, err);
    }
    if (rc == MS_OK) {
        print_head(cli, p);
        cli_table_print(table, cli->out, cli->width, cli->colour);
        print_totals(cli, p);
    }
    cli_table_destroy(table);
    return rc;
}

/* ---- from a job ---- */

/* Fills costs, of p->layers->n. */
static void measure(struct picture *p)
{
    int n_ops = 0;
    for (size_t i = 0; i < p->layers->n; i++) {
        const struct network_layer *layer = &p->layers->at[i];
        graph_cost(p->graph, layer->first_op, layer->n_ops, &p->costs[i]);
        n_ops += layer->n_ops;
    }
    graph_cost(p->graph, 0, n_ops, &p->total); /* behind them is the loss */
}

static int put_times(const struct job *job, struct picture *p, struct ms_err *err)
{
    int rc = cli_step_time(job, p->layers, p->graph, p->rates, p->seconds, err);
    for (size_t i = 0; rc == MS_OK && i < p->layers->n; i++) {
        p->step_seconds += p->seconds[i];
    }
    return rc;
}

static int show_graph(struct cli *cli, const struct job *job, struct picture *p, struct ms_err *err)
{
    p->batch = graph_tensor(p->graph, graph_data_index(p->graph))->shape.dim[0];
    p->costs = calloc(p->layers->n + 1, sizeof(*p->costs));
    p->seconds = calloc(p->layers->n + 1, sizeof(*p->seconds));
    int rc = p->costs != NULL && p->seconds != NULL
                 ? put_times(job, p, err)
                 : ms_fail(err, MS_E_NOMEM, "no memory for the list of layers");
    if (rc == MS_OK) {
        measure(p);
        if (cli->json) {
            cli_json_print(cli->out, picture_json(p));
        } else {
            rc = print_table(cli, p, err);
        }
    }
    free(p->costs);
    free(p->seconds);
    return rc;
}

/* What is wrong is told now; where the file is on the workers' hosts alone, they look. */
static int look_at_weights(const struct job *job, struct picture *p, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    struct first_weights *weights = NULL;
    p->first = job->initial_weights;
    if (p->first[0] == '\0') {
        return MS_OK;
    }
    int rc = job_expand_path(p->first, path, sizeof(path), NULL);
    const int is_elsewhere = rc < 0 || access(path, F_OK) != 0;
    if (is_elsewhere) {
        snprintf(p->taken, sizeof(p->taken), "not on this host; the workers look at it");
        return MS_OK;
    }
    rc = first_weights_open(path, &job->take, p->graph, &weights, err);
    if (rc < 0) {
        ms_err_prefix(err, "initial_weights");
        return rc;
    }
    first_weights_say(weights, p->taken, sizeof(p->taken));
    first_weights_close(weights);
    return MS_OK;
}

int show_network(struct cli *cli, const struct job *job, const struct roofline *rates,
                 struct ms_err *err)
{
    struct network *network = NULL;
    struct network_layers *layers = NULL;
    struct graph *graph = NULL;
    int rc = job_network_create(job, &network, err);
    rc = rc < 0 ? rc : job_network_build(job, network, &layers, &graph, err);
    rc = rc < 0 ? rc : graph_differentiate(graph, err);
    if (rc == MS_OK) {
        struct picture picture = {
            .network = network, .layers = layers, .graph = graph, .rates = rates};
        rc = look_at_weights(job, &picture, err);
        rc = rc < 0 ? rc : show_graph(cli, job, &picture, err);
    }
    graph_destroy(graph);
    network_layers_destroy(layers);
    network_destroy(network);
    return rc;
}

int show_network_job(const Ms__JobInfo *info, struct job *ret, struct ms_err *err)
{
    char origin[32];
    struct ms_err why = {0, ""};
    snprintf(origin, sizeof(origin), "job %llu", (unsigned long long)info->id);
    int rc = job_parse((const char *)info->job_json.data, info->job_json.len, origin, NULL, NULL, 0,
                       0, ret, &why);
    return rc < 0 ? ms_fail(err, rc,
                            "%s; if another release has submitted it, the msctl of that one shows "
                            "its network",
                            why.text)
                  : MS_OK;
}
