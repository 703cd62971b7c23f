/* cmd_nodes.c - msctl nodes, msctl status */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/host_label.h"
#include "cli/json.h"
#include "cli/node_words.h"
#include "cli/pages.h"
#include "cli/table.h"

static const struct cli_column columns[] = {
    {"HOST", CLI_LEFT, 6, 12}, {"CORES", CLI_RIGHT, 4, 0}, {"MEMORY", CLI_RIGHT, 3, 0},
    {"NODE", CLI_LEFT, 7, 12}, {"STATE", CLI_STATE, 0, 0}, {"ACTIVITY", CLI_LEFT, 5, 16},
    {"SEEN", CLI_RIGHT, 8, 0}, {"ISA", CLI_LEFT, 2, 0},    {"ADDRESS", CLI_LEFT, 1, 0},
};

/* "4", or "4/8" where eight hardware threads share four cores; "": its node is expected back, and
 * has yet to say. */
static const char *format_cores(char *buf, size_t size, const Ms__NodeInfo *node)
{
    buf[0] = '\0';
    if (node->physical > 0 && node->physical != node->cores) {
        snprintf(buf, size, "%u/%u", node->physical, node->cores);
    } else if (node->cores > 0) {
        snprintf(buf, size, "%u", node->cores);
    }
    return buf;
}

/* The host's facts stand in the first row of its nodes only; label NULL: it is another one. Cores
 * are a fact of the host where all its nodes have the same: one may be bound to fewer. */
static int add_node(struct cli_table *table, const Ms__NodeInfo *node, const char *label,
                    int is_even, struct ms_err *err)
{
    char cores[32] = "";
    char memory[CLI_FORMAT_MAX] = "";
    char seen[CLI_FORMAT_MAX];
    char words[CLI_NODE_WORDS_MAX];
    if (label != NULL || !is_even) {
        format_cores(cores, sizeof(cores), node);
    }
    if (label != NULL && node->memory_bytes > 0) {
        cli_format_bytes(memory, node->memory_bytes);
    }
    const char *const cells[MS_ARRAY_SIZE(columns)] = {
        label != NULL ? label : "",
        cores,
        memory,
        node->node_id,
        node->state,
        cli_node_words(words, sizeof(words), node),
        cli_node_seen(seen, node),
        node->isa,
        node->address,
    };
    return cli_table_add(table, cells, err);
}

static int print_nodes(struct cli *cli, const Ms__NodeList *list, struct ms_err *err)
{
    struct cli_table *table = cli_table_create(columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the list of nodes");
    for (size_t i = 0; rc == MS_OK && i < list->n_nodes; i++) {
        char label[CLI_HOST_LABEL_MAX];
        rc = add_node(table, list->nodes[i], cli_host_label(list->nodes, list->n_nodes, i, label),
                      cli_host_is_even(list->nodes, list->n_nodes, i), err);
    }
    if (rc == MS_OK) {
        cli_table_print(table, cli->out, cli->width, cli->colour);
    }
    cli_table_destroy(table);
    return rc;
}

int cmd_nodes(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct cli_nodes nodes = CLI_NODES_INIT;
    int rc = cli_need_words(args, 0, 0, "", err);
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        rc = cli_pages_nodes(cli, &nodes, err);
    }
    if (rc != MS_OK) {
        cli_nodes_free(&nodes);
        return rc;
    }
    const Ms__NodeList *list = &nodes.all;
    cli_hosts_sort(list->nodes, list->n_nodes);
    if (cli->json) {
        json_t *array = json_array();
        for (size_t i = 0; i < list->n_nodes; i++) {
            json_array_append_new(array, cli_json_node(list->nodes[i]));
        }
        cli_json_print(cli->out, array);
    } else {
        rc = print_nodes(cli, list, err);
    }
    cli_nodes_free(&nodes);
    return rc;
}

static void print_times(FILE *out, const char *what, uint64_t n, uint64_t p50, uint64_t p99,
                        uint64_t p999, uint64_t max)
{
    if (n > 0) {
        fprintf(out, "%-12s %llu: half within %.1f ms, 99 %% %.1f, 99.9 %% %.1f, longest %.1f\n",
                what, (unsigned long long)n, (double)p50 / 1000, (double)p99 / 1000,
                (double)p999 / 1000, (double)max / 1000);
    }
}

static void print_status(struct cli *cli, const Ms__StatusInfo *s)
{
    char buf[CLI_FORMAT_MAX];
    FILE *out = cli->out;
    fprintf(out, "%-12s %s at %s%s\n", "scheduler", s->software, cli->target.address,
            s->draining ? ", ending" : "");
    fprintf(out, "%-12s %s, generation %llu, up %s\n", "cluster", s->cluster,
            (unsigned long long)s->generation,
            cli_format_duration(buf, (double)s->uptime_ms / 1000));
    if (s->waiting_for[0] != '\0') {
        fprintf(out, "%-12s %s\n", "waits for", s->waiting_for);
    }
    fprintf(out, "%-12s %u registered, %u idle, %u lost or left\n", "nodes", s->nodes_registered,
            s->nodes_idle, s->nodes_lost);
    fprintf(out, "%-12s %u queued, %u running, %llu ended\n", "jobs", s->jobs_queued,
            s->jobs_running, (unsigned long long)s->jobs_ended);
    fprintf(out, "%-12s %u\n", "clients", s->clients);
    if (s->database[0] != '\0') {
        fprintf(out, "%-12s %s, last commit %.1f ms\n", "database", s->database,
                (double)s->commit_last_us / 1000);
    }
    print_times(out, "commits", s->commits, s->commit_p50_us, s->commit_p99_us, s->commit_p999_us,
                s->commit_max_us);
    print_times(out, "ticks", s->ticks, s->tick_p50_us, s->tick_p99_us, s->tick_p999_us,
                s->tick_max_us);
    /* far below the line above: the machine is busy with others, not the scheduler with its work */
    print_times(out, "computing", s->tick_cpu_max_us > 0 ? s->ticks : 0, s->tick_cpu_p50_us,
                s->tick_cpu_p99_us, s->tick_cpu_p999_us, s->tick_cpu_max_us);
}

int cmd_status(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    int rc = cli_need_words(args, 0, 0, "", err);
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK) {
        rc = client_call(cli->client, MS_MSG_STATUS_QUERY, &query.base, MS_MSG_STATUS_INFO, &msg,
                         err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out, cli_json_status((const Ms__StatusInfo *)msg));
    } else {
        print_status(cli, (const Ms__StatusInfo *)msg);
    }
    ms_wire_free(msg);
    return MS_OK;
}
