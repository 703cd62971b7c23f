/* saved.c - what a job has saved on the nodes that it has or had: checkpoints, the best weights */
#include "cli/saved.h"

#include "cli/format.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "libworker/train/best_files.h"
#include "proto/grow.h"
#include "proto/state_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void cli_saved_free(struct cli_saved *saved)
{
    free(saved->nodes);
    free(saved->ones);
    free(saved->bests);
    memset(saved, 0, sizeof(*saved));
}

/* ---- asking ---- */

static void copy_key(const json_t *section, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(section, key));
    snprintf(ret, size, "%s", text != NULL && strlen(text) < size ? text : "");
}

static void read_job(const Ms__JobInfo *job, struct cli_saved *ret)
{
    json_t *spec = json_loadb((const char *)job->job_json.data, job->job_json.len, 0, NULL);
    const json_t *section = json_object_get(spec, "checkpoint");
    const uint64_t told = cli_progress_step(job);
    ret->job = job->id;
    ret->last_step = job->steps > told ? job->steps : told;
    copy_key(section, "directory", ret->directory, sizeof(ret->directory));
    copy_key(section, "prefix", ret->prefix, sizeof(ret->prefix));
    json_decref(spec);
}

/* Copies of one checkpoint have the same data; each is had from the first rank that has it. */
static int is_known(const struct cli_saved *saved, const struct saved_entry *entry)
{
    for (size_t i = 0; i < saved->n; i++) {
        if (saved->ones[i].entry.step == entry->step &&
            strcmp(saved->ones[i].entry.sum, entry->sum) == 0) {
            return 1;
        }
    }
    return 0;
}

static int add_entries(struct cli_saved *saved, size_t *room, const struct saved_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (is_known(saved, &list->entries[i])) {
            continue;
        }
        struct cli_saved_one *grown = ms_grow(saved->ones, saved->n, 1, sizeof(*grown), room);
        if (grown == NULL) {
            return MS_E_NOMEM;
        }
        saved->ones = grown;
        saved->ones[saved->n++] =
            (struct cli_saved_one){.entry = list->entries[i], .node = saved->n_nodes - 1};
    }
    return MS_OK;
}

struct asking {
    struct cli *cli;
    struct cli_saved *saved;
    size_t nodes_room, ones_room;
    unsigned n_answers;
    int has_rank_0; /* its node is among them */
    int away_code;  /* of the first that cannot say what it has; one that has nothing says so */
    struct ms_err first; /* of a node that gave none */
};

static int take(struct asking *a, uint32_t rank, unsigned what, const struct fetch_result *of,
                struct saved_list *list, struct ms_err *err)
{
    struct cli_saved *saved = a->saved;
    struct cli_saved_node *grown =
        ms_grow(saved->nodes, saved->n_nodes, 1, sizeof(*grown), &a->nodes_room);
    if (grown == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the checkpoints of a job");
    }
    saved->nodes = grown;
    struct cli_saved_node *node = &saved->nodes[saved->n_nodes++];
    memset(node, 0, sizeof(*node));
    node->rank = rank;
    node->what = what;
    snprintf(node->node_id, sizeof(node->node_id), "%s", of->node_id);
    snprintf(node->host_name, sizeof(node->host_name), "%s", of->host_name);
    snprintf(node->folder, sizeof(node->folder), "%s", list->folder);
    saved->n_damaged += list->n_damaged;
    if (saved->best.step == 0 && list->best.step > 0) {
        saved->best = list->best;
        saved->best_node = saved->n_nodes - 1;
        saved->bests = list->bests;
        saved->n_bests = list->n_bests;
        list->bests = NULL;
    }
    return add_entries(saved, &a->ones_room, list) == MS_OK
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "no memory for the checkpoints of a job");
}

static int is_taken(const struct cli_saved *saved, const char *node_id)
{
    for (size_t i = 0; i < saved->n_nodes; i++) {
        if (strcmp(saved->nodes[i].node_id, node_id) == 0) {
            return 1;
        }
    }
    return 0;
}

/* By its rank: its node now, or the one with the newest of the job, as what says. */
static int ask_node(struct asking *a, uint32_t rank, unsigned what, struct ms_err *err)
{
    const struct fetch_saved wanted = {.what = MS_SAVED_LIST,
                                       .directory = a->saved->directory,
                                       .prefix = a->saved->prefix,
                                       .name = "the list of checkpoints"};
    const struct fetch_wish wish = {a->saved->job, rank, what, &wanted};
    struct fetch_result of;
    struct saved_list list;
    char *text = NULL;
    size_t size = 0;
    memset(&of, 0, sizeof(of));
    int rc = fetch_text(a->cli, &wish, &text, &size, &of, err);
    rc = rc == MS_OK ? saved_list_parse(text, size, of.node_id, &list, err) : rc;
    free(text);
    if (rc == MS_OK) {
        a->n_answers++;
        a->has_rank_0 |= rank == 0 && what == MS_FETCH_LOG;
        rc = is_taken(a->saved, of.node_id) ? MS_OK : take(a, rank, what, &of, &list, err);
        saved_list_fini(&list);
    }
    return rc;
}

/* A node that had several ranks has one folder of the job. */
static int was_asked(const Ms__JobInfo *job, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(job->ranks[i]->node_id, job->ranks[at]->node_id) == 0) {
            return 1;
        }
    }
    return 0;
}

static int by_step(const void *a, const void *b)
{
    const struct cli_saved_one *x = a;
    const struct cli_saved_one *y = b;
    return x->entry.step != y->entry.step ? (x->entry.step < y->entry.step ? 1 : -1)
                                          : (x->node > y->node) - (x->node < y->node);
}

/* Of one that gave none. Below 0: which no other node changes. */
static int note_away(struct asking *a, int rc, const struct ms_err *why, struct ms_err *err)
{
    if (rc == MS_E_REFUSED || rc == MS_E_NOMEM || client_get_state(a->cli->client) != CLIENT_OPEN) {
        *err = *why;
        return rc;
    }
    a->away_code = a->away_code == 0 && rc != MS_E_NOT_FOUND ? rc : a->away_code;
    if (a->first.code != 0) {
        cli_say(a->cli, "%s", why->text);
    } else {
        a->first = *why;
    }
    return MS_OK;
}

/* Had its rank 0, and may have none any more. A scheduler of before says that it knows of no such
 * result, and one that knows of no such node that there is none. */
static int ask_home(struct asking *a, const Ms__JobInfo *job, struct ms_err *err)
{
    struct ms_err why = {0, ""};
    const int may_be = job->n_ranks > 0 && job->ranks_lost + job->recoveries > 0;
    const int rc = may_be ? ask_node(a, 0, MS_FETCH_SAVED, &why) : MS_OK;
    return rc == MS_OK || rc == MS_E_NOT_FOUND || rc == MS_E_INVALID ? MS_OK
                                                                     : note_away(a, rc, &why, err);
}

static int ask_all(struct asking *a, const Ms__JobInfo *job, struct ms_err *err)
{
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < job->n_ranks; i++) {
        struct ms_err why = {0, ""};
        const int asked =
            was_asked(job, i) ? MS_OK : ask_node(a, job->ranks[i]->rank, MS_FETCH_LOG, &why);
        rc = asked == MS_OK ? MS_OK : note_away(a, asked, &why, err);
    }
    return rc == MS_OK ? ask_home(a, job, err) : rc;
}

/* A cancel saves the step at which the job stops: rank 0's own list has it, where there was room.
 */
static int has_end(const struct cli_saved *saved, const Ms__JobInfo *job)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < saved->n; i++) {
        newest = saved->ones[i].entry.step > newest ? saved->ones[i].entry.step : newest;
    }
    return newest >= job->steps || strcmp(job->state, MS_JOB_STATE_CANCELLED) != 0;
}

/* Rank 0 saves; another one where it was lost, or another process had its rank before, or it had no
 * room at the end. */
static int has_all(const struct asking *a, const Ms__JobInfo *job)
{
    return a->has_rank_0 && job->ranks_lost == 0 && job->recoveries == 0 && has_end(a->saved, job);
}

int cli_saved_find(struct cli *cli, const Ms__JobInfo *job, struct cli_saved *ret,
                   struct ms_err *err)
{
    struct cli_saved saved;
    struct asking a = {.cli = cli, .saved = &saved};
    memset(&saved, 0, sizeof(saved));
    read_job(job, &saved);
    int rc = ask_all(&a, job, err);
    if (rc == MS_OK && a.n_answers == 0 && a.first.code != 0) {
        *err = a.first;
        rc = a.first.code;
    }
    if (rc != MS_OK) {
        cli_saved_free(&saved);
        return rc;
    }
    if (a.first.code != 0) {
        cli_say(cli, "%s", a.first.text);
    }
    saved.away_code = has_all(&a, job) ? MS_OK : a.away_code;
    if (saved.n > 0) {
        qsort(saved.ones, saved.n, sizeof(*saved.ones), by_step);
    }
    *ret = saved;
    return MS_OK;
}

/* ---- choosing ---- */

const char *cli_saved_name(const struct cli_saved *saved, size_t i, char buf[CLI_SAVED_NAME_MAX])
{
    snprintf(buf, CLI_SAVED_NAME_MAX, "%s-%" PRIu64, saved->prefix, saved->ones[i].entry.step);
    return buf;
}

const char *cli_saved_other_name(const struct cli_saved *saved, size_t i,
                                 char buf[CLI_SAVED_NAME_MAX])
{
    const struct saved_entry *entry = &saved->ones[i].entry;
    snprintf(buf, CLI_SAVED_NAME_MAX, "%s-%" PRId64 "_%" PRId64, saved->prefix, entry->epoch,
             entry->step_in_epoch);
    return buf;
}

static int is_named(const struct cli_saved *saved, size_t i, const char *word)
{
    static const char *const ends[] = {"", ".json", ".safetensors"};
    char name[CLI_SAVED_NAME_MAX];
    char step[32];
    snprintf(step, sizeof(step), "%" PRIu64, saved->ones[i].entry.step);
    const char *other = cli_saved_other_name(saved, i, name);
    if (strcmp(word, step) == 0 || strcmp(word, other) == 0 ||
        strcmp(word, other + strlen(saved->prefix) + 1) == 0) { /* column EPOCH_STEP */
        return 1;
    }
    const size_t n = strlen(cli_saved_name(saved, i, name));
    int is = 0;
    for (size_t k = 0; k < MS_ARRAY_SIZE(ends); k++) {
        is |= strncmp(word, name, n) == 0 && strcmp(word + n, ends[k]) == 0;
    }
    return is;
}

int cli_saved_choose_best(const struct cli_saved *saved, const char *word, size_t *ret)
{
    char name[BEST_NAME_MAX];
    for (size_t i = 0; i < saved->n_bests; i++) {
        const size_t n = strlen(best_file_name(saved->bests[i].step, name));
        const size_t stem = n - strlen(".safetensors");
        if (strcmp(word, name) == 0 || (strlen(word) == stem && strncmp(word, name, stem) == 0)) {
            *ret = i;
            return 1;
        }
    }
    return 0;
}

/* A folder that no job has for itself is one for all nodes. */
int cli_saved_lacks(const struct cli_saved *saved)
{
    return saved->away_code != 0 && saved->directory[0] != '\0' && saved->directory[0] != '/';
}

int cli_saved_fail_away(const struct cli_saved *saved, struct ms_err *err)
{
    return ms_fail(err, saved->away_code,
                   "job %llu may have saved more: a node that had a rank of it is away (see "
                   "above), and what it has is not known until it is back: bring it back",
                   (unsigned long long)saved->job);
}

static int fail_none(const struct cli_saved *saved, struct ms_err *err)
{
    if (cli_saved_lacks(saved)) {
        return cli_saved_fail_away(saved, err);
    }
    return saved->directory[0] == '\0'
               ? ms_fail(err, MS_E_NOT_FOUND,
                         "job %llu keeps no checkpoints: its file has no section checkpoint",
                         (unsigned long long)saved->job)
               : ms_fail(err, MS_E_NOT_FOUND,
                         "job %llu has no checkpoint on the nodes of its ranks%s: it has saved "
                         "none yet, or they lie on a node that lost its rank (msctl events %llu)",
                         (unsigned long long)saved->job,
                         saved->n_damaged > 0 ? " that is whole" : "",
                         (unsigned long long)saved->job);
}

/* It was not meant by "the newest" where the job came further. */
static int fail_older(const struct cli_saved *saved, struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX];
    char came[64] = "";
    if (saved->last_step > 0) {
        snprintf(came, sizeof(came), " (the job came to step %" PRIu64 ")", saved->last_step);
    }
    return ms_fail(err, saved->away_code,
                   "the newest checkpoint of job %llu that can be had is %s%s: a node that had a "
                   "rank of it is away (see above), and may have newer ones; bring it back, or "
                   "name this one, by its step %" PRIu64,
                   (unsigned long long)saved->job, cli_saved_name(saved, 0, name), came,
                   saved->ones[0].entry.step);
}

/* Is the first of those that are known older than one that a node that is away may have? */
static int may_be_older(const struct cli_saved *saved)
{
    return cli_saved_lacks(saved) &&
           (saved->last_step == 0 || saved->ones[0].entry.step < saved->last_step);
}

int cli_saved_choose(const struct cli_saved *saved, const char *word, size_t *ret,
                     struct ms_err *err)
{
    char newest[CLI_SAVED_NAME_MAX];
    char oldest[CLI_SAVED_NAME_MAX];
    if (saved->n == 0) {
        return fail_none(saved, err);
    }
    const int is_latest = strcmp(word, "latest") == 0;
    if (is_latest && may_be_older(saved)) {
        return fail_older(saved, err);
    }
    for (size_t i = 0; i < saved->n; i++) {
        if (is_latest || is_named(saved, i, word)) {
            *ret = i;
            return MS_OK;
        }
    }
    if (cli_saved_lacks(saved)) {
        return cli_saved_fail_away(saved, err);
    }
    cli_saved_name(saved, 0, newest);
    if (saved->n == 1) {
        return ms_fail(err, MS_E_NOT_FOUND,
                       "job %llu has no checkpoint called %.60s: it has %s alone",
                       (unsigned long long)saved->job, word, newest);
    }
    return ms_fail(err, MS_E_NOT_FOUND,
                   "job %llu has no checkpoint called %.60s: it has %zu, from %s to %s; msctl "
                   "fetch --list %llu names them",
                   (unsigned long long)saved->job, word, saved->n,
                   cli_saved_name(saved, saved->n - 1, oldest), newest,
                   (unsigned long long)saved->job);
}

/* ---- showing ---- */

static const struct cli_column columns[] = {
    {"NAME", CLI_LEFT, 0, 0},  {"STEP", CLI_RIGHT, 0, 0}, {"EPOCH_STEP", CLI_RIGHT, 3, 0},
    {"SIZE", CLI_RIGHT, 2, 0}, {"AGE", CLI_RIGHT, 0, 0},  {"METRIC", CLI_LEFT, 0, 0},
    {"NODE", CLI_LEFT, 1, 8},
};

static int add_row(struct cli_table *table, const char *name, uint64_t step, const char *position,
                   uint64_t bytes, int64_t age_s, const char *metric, const char *node,
                   struct ms_err *err)
{
    char shown_step[CLI_FORMAT_MAX];
    char size[CLI_FORMAT_MAX];
    char age[CLI_FORMAT_MAX];
    const char *const cells[] = {name,
                                 cli_format_count(shown_step, step),
                                 position,
                                 cli_format_bytes(size, bytes),
                                 cli_format_eta(age, (double)age_s),
                                 metric,
                                 node};
    return cli_table_add(table, cells, err);
}

static int add_best(struct cli_table *table, const struct cli_saved *saved, const char *name,
                    const struct saved_best *best, struct ms_err *err)
{
    char number[CLI_FORMAT_MAX];
    char metric[CLI_FORMAT_MAX + SAVED_METRIC_MAX + 2];
    snprintf(metric, sizeof(metric), "%s %s", best->metric, cli_format_real(number, best->value));
    return add_row(table, name, best->step, NULL, best->bytes, best->age_s, metric,
                   saved->nodes[saved->best_node].node_id, err);
}

static int add_rows(struct cli_table *table, const struct cli_saved *saved, struct ms_err *err)
{
    char name[CLI_SAVED_NAME_MAX];
    char number[CLI_FORMAT_MAX];
    char metric[CLI_FORMAT_MAX + SAVED_METRIC_MAX + 2];
    char position[48];
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < saved->n; i++) {
        const struct saved_entry *entry = &saved->ones[i].entry;
        snprintf(position, sizeof(position), "%" PRId64 "_%" PRId64, entry->epoch,
                 entry->step_in_epoch);
        snprintf(metric, sizeof(metric), "loss %s", cli_format_real(number, (double)entry->loss));
        rc = add_row(table, cli_saved_name(saved, i, name), entry->step, position,
                     entry->bytes + entry->manifest_bytes, entry->age_s, metric,
                     saved->nodes[saved->ones[i].node].node_id, err);
    }
    rc = rc == MS_OK && saved->best.step > 0 ? add_best(table, saved, "best", &saved->best, err)
                                             : rc;
    for (size_t i = 0; rc == MS_OK && i < saved->n_bests; i++) {
        snprintf(name, sizeof(name), "best-%" PRIu64, saved->bests[i].step);
        rc = add_best(table, saved, name, &saved->bests[i], err);
    }
    return rc;
}

int cli_saved_print(struct cli *cli, const struct cli_saved *saved, struct ms_err *err)
{
    if (saved->n == 0 && saved->best.step == 0) {
        return fail_none(saved, err);
    }
    struct cli_table *table = cli_table_create(columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? add_rows(table, saved, err)
                           : ms_fail(err, MS_E_NOMEM, "no memory for the list of checkpoints");
    if (rc == MS_OK) {
        cli_table_print(table, cli->out, cli->width, cli->colour);
    }
    if (rc == MS_OK && saved->n_damaged > 0) {
        cli_say(cli, "%zu more there %s damaged: nothing goes on from such", saved->n_damaged,
                saved->n_damaged == 1 ? "is" : "are");
    }
    cli_table_destroy(table);
    return rc;
}

static void set_node(json_t *object, const struct cli_saved_node *node, int with_folder)
{
    json_object_set_new(object, "node", json_string(node->node_id));
    json_object_set_new(object, "host", json_string(node->host_name));
    if (with_folder) {
        json_object_set_new(object, "folder", json_string(node->folder));
    }
}

static json_t *best_json(const struct saved_best *best)
{
    return json_pack("{s:I, s:s, s:f, s:I, s:I}", "step", (json_int_t)best->step, "metric",
                     best->metric, "value", best->value, "bytes", (json_int_t)best->bytes, "age_s",
                     (json_int_t)best->age_s);
}

json_t *cli_saved_json(const struct cli_saved *saved)
{
    char name[CLI_SAVED_NAME_MAX];
    json_t *list = json_array();
    json_t *best = json_null();
    json_t *bests = json_array();
    for (size_t i = 0; i < saved->n; i++) {
        const struct saved_entry *entry = &saved->ones[i].entry;
        json_t *object = json_pack(
            "{s:s, s:I, s:I, s:I, s:f, s:I, s:I}", "name", cli_saved_name(saved, i, name), "step",
            (json_int_t)entry->step, "epoch", (json_int_t)entry->epoch, "step_in_epoch",
            (json_int_t)entry->step_in_epoch, "loss", (double)entry->loss, "bytes",
            (json_int_t)(entry->bytes + entry->manifest_bytes), "age_s", (json_int_t)entry->age_s);
        json_object_set_new(object, "mindspore_name",
                            json_string(cli_saved_other_name(saved, i, name)));
        set_node(object, &saved->nodes[saved->ones[i].node], 1);
        json_array_append_new(list, object);
    }
    if (saved->best.step > 0) {
        best = best_json(&saved->best);
        set_node(best, &saved->nodes[saved->best_node], 0);
    }
    for (size_t i = 0; i < saved->n_bests; i++) {
        json_array_append_new(bests, best_json(&saved->bests[i]));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:b}", "id", (json_int_t)saved->job, "checkpoints",
                     list, "best", best, "bests", bests, "damaged", (json_int_t)saved->n_damaged,
                     "complete", !cli_saved_lacks(saved));
}
