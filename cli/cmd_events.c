/* cmd_events.c - msctl events: what happened, and with -f what happens */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "proto/clock.h"
#include "proto/grow.h"

#include <stdlib.h>
#include <string.h>

enum { NEWEST_DEFAULT = 50, LINE_MAX_BYTES = 1024, NARROW = 120 };

const struct cli_option cmd_events_options[] = {
    {"follow", 'f', NULL, "go on with what happens from now on", NULL},
    {"newest", 'n', "N", "so many of what was; 50 unless given", NULL},
    {"node", 0, "ID", "of this node only", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static const struct cli_column columns[] = {
    {"TIME", CLI_LEFT, 3, 0}, {"EVENT", CLI_LEFT, 4, 8}, {"JOB", CLI_RIGHT, 0, 0},
    {"NODE", CLI_LEFT, 2, 6}, {"WHAT", CLI_TEXT, 1, 12},
};
/* What happened to whom is read here: the day is today's, and few events have long names. */
static const struct cli_column narrow[MS_ARRAY_SIZE(columns)] = {
    {"TIME", CLI_LEFT, 4, 0},  {"EVENT", CLI_LEFT, 1, 16}, {"JOB", CLI_RIGHT, 0, 0},
    {"NODE", CLI_LEFT, 2, 12}, {"WHAT", CLI_TEXT, 3, 12},
};

/* Pages as they came, the newest first in each; one list of their rows. */
struct events {
    struct cli *cli;
    uint64_t job;        /* 0: all */
    const char *node_id; /* "": all */
    int64_t newest;
    ProtobufCMessage **pages;
    size_t n_pages, pages_room;
    Ms__EventInfo **rows;
    size_t n_rows, rows_room;
    uint64_t at; /* everything up to this number was shown */
    int is_all;  /* rows begin with the oldest that is kept */
};

static void events_free(struct events *e)
{
    for (size_t i = 0; i < e->n_pages; i++) {
        ms_wire_free(e->pages[i]);
    }
    free(e->pages);
    free(e->rows);
}

static Ms__EventQuery query_of(const struct events *e)
{
    Ms__EventQuery query = MS__EVENT_QUERY__INIT;
    query.job = e->job;
    query.node_id = (char *)e->node_id;
    return query;
}

/* ---- what was ----------------------------------------------------------------------------------
 */

static int keep_page(struct events *e, ProtobufCMessage *msg, struct ms_err *err)
{
    const Ms__EventList *page = (const Ms__EventList *)msg;
    ProtobufCMessage **pages =
        ms_grow(e->pages, e->n_pages, 1, sizeof(ProtobufCMessage *), &e->pages_room);
    if (pages == NULL) {
        ms_wire_free(msg);
        return ms_fail(err, MS_E_NOMEM, "no memory for the list of events");
    }
    e->pages = pages;
    e->pages[e->n_pages++] = msg;
    Ms__EventInfo **rows =
        ms_grow(e->rows, e->n_rows, page->n_events, sizeof(Ms__EventInfo *), &e->rows_room);
    if (rows == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the list of events");
    }
    e->rows = rows;
    for (size_t i = 0; i < page->n_events; i++) {
        e->rows[e->n_rows++] = page->events[i];
    }
    return MS_OK;
}

static int64_t left(const struct events *e)
{
    return e->newest - (int64_t)e->n_rows;
}

/* From the newest backwards, until there are enough; rows in that order. */
static int read_newest(struct events *e, struct ms_err *err)
{
    Ms__EventQuery query = query_of(e);
    int more = 1;
    query.before = e->newest > 0 ? UINT64_MAX : 0;
    query.after = e->newest > 0 ? 0 : UINT64_MAX; /* only: where is the end? */
    while (more) {
        ProtobufCMessage *msg = NULL;
        query.limit = left(e) < MS_EVENTS_PAGE ? (uint32_t)left(e) : MS_EVENTS_PAGE;
        int rc = client_call(e->cli->client, MS_MSG_EVENT_QUERY, &query.base, MS_MSG_EVENT_LIST,
                             &msg, err);
        const Ms__EventList *page = (const Ms__EventList *)msg;
        if (rc == MS_OK) {
            e->at = e->n_pages == 0 ? page->last : e->at;
            rc = keep_page(e, msg, err);
        }
        if (rc != MS_OK) {
            return rc;
        }
        more = page->more && left(e) > 0 && page->at > 0 && page->at < query.before;
        e->is_all = !page->more && e->newest > 0;
        query.before = page->at;
    }
    return MS_OK;
}

/* ---- how it is shown ---------------------------------------------------------------------------
 */

struct cells {
    char time[CLI_FORMAT_MAX], job[24];
    const char *at[MS_ARRAY_SIZE(columns)];
};

static void make_cells(struct cells *cells, const Ms__EventInfo *event, int is_narrow)
{
    if (is_narrow) {
        cli_format_time_short(cells->time, event->at_ms, ms_wall_ms());
    } else {
        cli_format_time(cells->time, event->at_ms);
    }
    snprintf(cells->job, sizeof(cells->job), "%llu", (unsigned long long)event->job);
    cells->at[0] = cells->time;
    cells->at[1] = event->kind;
    cells->at[2] = event->job != 0 ? cells->job : "";
    cells->at[3] = event->node_id;
    cells->at[4] = event->text;
}

static int make_table(const struct events *e, int is_narrow, struct cli_table **ret,
                      struct ms_err *err)
{
    struct cli_table *table =
        cli_table_create(is_narrow ? narrow : columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the list of events");
    for (size_t i = e->n_rows; rc == MS_OK && i > 0; i--) {
        struct cells cells;
        make_cells(&cells, e->rows[i - 1], is_narrow);
        rc = cli_table_add(table, cells.at, err);
    }
    if (rc != MS_OK) {
        cli_table_destroy(table);
        return rc;
    }
    *ret = table;
    return MS_OK;
}

static int print_table(const struct events *e, struct ms_err *err)
{
    const size_t width = e->cli->width;
    struct cli_table *table = NULL;
    int rc = make_table(e, 0, &table, err);
    if (rc == MS_OK && width > 0 && width < NARROW && cli_table_width(table) > width) {
        cli_table_destroy(table);
        rc = make_table(e, 1, &table, err);
    }
    if (rc == MS_OK) {
        cli_table_print(table, e->cli->out, width, e->cli->colour);
        cli_table_destroy(table);
    }
    return rc;
}

static void print_array(const struct events *e)
{
    json_t *array = json_array();
    for (size_t i = e->n_rows; i > 0; i--) {
        json_array_append_new(array, cli_json_event(e->rows[i - 1]));
    }
    cli_json_print(e->cli->out, array);
}

/* A line a row, for the widths of what comes are not known: on a narrow terminal without today's
 * date, and cut at its edge, which may have moved. */
static void print_line(const struct cli *cli, const Ms__EventInfo *event)
{
    char line[LINE_MAX_BYTES];
    char shown[LINE_MAX_BYTES];
    struct cells cells;
    if (cli->json) {
        cli_json_print(cli->out, cli_json_event(event));
        return;
    }
    size_t width = cli_terminal_width(cli->out);
    make_cells(&cells, event, width > 0 && width < NARROW);
    snprintf(line, sizeof(line), "%-8s  %-20s %6s  %-8s  %s", cells.at[0], cells.at[1], cells.at[2],
             cells.at[3], cells.at[4]);
    fprintf(cli->out, "%s\n", width > 0 ? cli_text_fit(shown, sizeof(shown), line, width) : line);
}

/* ---- what happens ------------------------------------------------------------------------------
 */

/* What cannot be shown any more is said. */
static void judge_gap(struct events *e, const Ms__EventList *list)
{
    if (list->last < e->at) {
        cli_say(e->cli,
                "the scheduler's list ends with event %llu, and event %llu was shown: it has "
                "another database; going on with that one's next event",
                (unsigned long long)list->last, (unsigned long long)e->at);
    } else if (list->first > e->at + 1) {
        cli_say(e->cli,
                "some events between %llu and %llu are not kept any more: the scheduler keeps %d, "
                "and who has the most of them loses his oldest",
                (unsigned long long)e->at, (unsigned long long)list->first, MS_EVENTS_KEPT);
    }
}

static int is_known(const struct events *e, int *ret, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = e->job;
    int rc = client_call(e->cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
    *ret = rc == MS_OK;
    ms_wire_free(msg);
    return rc == MS_E_NOT_FOUND ? MS_OK : rc;
}

/* Of a job whose events went, not even an empty list is shown without a word. */
static int judge_job(const struct events *e, int is_following, struct ms_err *err)
{
    static const char is_submitted[] = "job.submitted"; /* each job's first */
    const unsigned long long job = e->job;
    int known = 1;
    const Ms__EventList *first = (const Ms__EventList *)e->pages[0];
    if (e->job == 0 || e->node_id[0] != '\0' || !e->is_all ||
        (e->n_rows > 0 &&
         (first->first <= 1 || strcmp(e->rows[e->n_rows - 1]->kind, is_submitted) == 0))) {
        return MS_OK;
    }
    int rc = e->n_rows == 0 ? is_known(e, &known, err) : MS_OK;
    if (rc == MS_OK && known) {
        cli_say(e->cli,
                "%s events of job %llu are not kept any more: the scheduler keeps %d of all, and "
                "who has the most of them loses his oldest; what is known of it: msctl show %llu",
                e->n_rows == 0 ? "the" : "older", job, MS_EVENTS_KEPT, job);
    } else if (rc == MS_OK && !is_following) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "job %llu does not exist, and no event of it is kept: msctl jobs --all",
                       job);
    }
    return rc;
}

/* One answer: it comes when something has happened. */
static int read_next(struct events *e, struct ms_err *err)
{
    Ms__EventQuery query = query_of(e);
    ProtobufCMessage *msg = NULL;
    uint32_t id = 0;
    query.after = e->at;
    query.wait = 1;
    int rc = client_send(e->cli->client, MS_MSG_EVENT_QUERY, &query.base, &id, err);
    if (rc == MS_OK) {
        rc = client_await(e->cli->client, id, MS_MSG_EVENT_LIST, -1, &msg, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__EventList *list = (const Ms__EventList *)msg;
    judge_gap(e, list);
    for (size_t i = 0; i < list->n_events; i++) {
        print_line(e->cli, list->events[i]);
    }
    e->at = list->at;
    ms_wire_free(msg);
    return cli_check_output(e->cli->out, err);
}

/* Numbers only grow: over a new connection the list goes on where the old one was cut. */
static int follow(struct events *e, struct ms_err *err)
{
    for (size_t i = e->n_rows; i > 0; i--) {
        print_line(e->cli, e->rows[i - 1]);
    }
    int rc = cli_check_output(e->cli->out, err);
    while (rc == MS_OK) {
        rc = read_next(e, err);
        if (cli_is_lost(rc)) {
            rc = cli_reconnect(e->cli, ms_mono_ms() + CLI_COMEBACK_MS, err);
        }
    }
    return rc;
}

static int read_words(struct events *e, const struct cli_args *args, struct ms_err *err)
{
    int rc = cli_need_words(args, 0, 1, "[JOB]", err);
    if (rc == MS_OK && args->n_words == 1) {
        rc = cli_parse_job(args->words[0], &e->job, err);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "newest", 0, MS_EVENTS_KEPT, NEWEST_DEFAULT, &e->newest, err);
    }
    if (rc == MS_OK && cli_has(args, "node")) {
        e->node_id = cli_value(args, "node");
        rc =
            e->node_id[0] != '\0' && strlen(e->node_id) <= MS_NAME_MAX
                ? MS_OK
                : ms_fail(err, MS_E_INVALID, "'%.80s' is no node id; see: msctl nodes", e->node_id);
    }
    return rc;
}

/* An empty table would look as if nothing had happened to what is only misspelt. */
static int judge_node(const struct events *e, struct ms_err *err)
{
    if (e->n_rows > 0 || e->newest == 0 || e->node_id[0] == '\0') {
        return MS_OK;
    }
    return ms_fail(err, MS_E_NOT_FOUND,
                   "nothing is known of node %.80s%s: there is no such node, or what happened is "
                   "older than the events that are kept",
                   e->node_id, e->job != 0 ? " and that job" : "");
}

int cmd_events(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct events e = {.cli = cli, .node_id = ""};
    int is_following = cli_has(args, "follow");
    int rc = read_words(&e, args, err);
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK && is_following) {
        rc = cli_on_detach(cli, NULL, NULL, err);
    }
    if (rc == MS_OK) {
        rc = read_newest(&e, err);
    }
    if (rc == MS_OK) {
        rc = judge_job(&e, is_following, err);
    }
    if (rc == MS_OK && !is_following) {
        rc = judge_node(&e, err);
    }
    if (rc == MS_OK && is_following) {
        rc = follow(&e, err);
    } else if (rc == MS_OK && cli->json) {
        print_array(&e);
    } else if (rc == MS_OK) {
        rc = print_table(&e, err);
    }
    events_free(&e);
    return rc;
}
