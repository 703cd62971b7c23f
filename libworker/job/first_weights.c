/* first_weights.c - which tensors of a file become which parameters: names, shapes, patterns */
#include "libworker/job/first_weights.h"

#include "libworker/data/weights_file.h"
#include "libworker/data/weights_names.h"
#include "libworker/job/job_pattern.h"
#include "libworker/network/network.h"
#include "libworker/onnx/onnx.h"
#include "proto/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the file: one of the two, or neither. */
struct place {
    const struct safetensors_entry *entry;
    const struct onnx_tensor *tensor;
};

struct first_weights {
    char path[MS_PATH_MAX + 1];
    const struct job_take *take;
    int is_whole; /* nothing may be left out */
    const struct graph *graph;
    struct weights_file *file; /* one of the two */
    struct onnx_file *model;
    struct place *places; /* of each stored tensor */
    char *is_of_norm;     /* of each tensor of the graph */
};

static int is_there(const struct place *place)
{
    return place->entry != NULL || place->tensor != NULL;
}

static struct place find(const struct first_weights *w, const char *name)
{
    return (struct place){.entry = w->file != NULL ? weights_file_find(w->file, name) : NULL,
                          .tensor = w->model != NULL ? onnx_find(w->model, name) : NULL};
}

static const struct tensor *stored(const struct first_weights *w, int i)
{
    return graph_tensor(w->graph, graph_stored_at(w->graph, i));
}

/* ---- names ---- */

/* A name that one pattern matches as the other one would have it. */
static void exchange(const char *pattern, const char *name, const char *other, char *buf,
                     size_t size)
{
    const char *star = strchr(pattern, '*');
    const char *hole = strchr(other, '*');
    if (star == NULL || hole == NULL) {
        snprintf(buf, size, "%s", other);
        return;
    }
    const size_t n = strlen(name) + 1 - strlen(pattern); /* for which the star stands */
    snprintf(buf, size, "%.*s%.*s%s", (int)(hole - other), other, (int)n, name + (star - pattern),
             hole + 1);
}

/* The rename that holds for a tensor of the file; -1: none. */
static int rename_of(const struct job_take *take, const char *name)
{
    int k = 0;
    while (k < take->n_rename && !job_glob(take->rename[k].from, name)) {
        k++;
    }
    return k < take->n_rename ? k : -1;
}

/* What the network calls a tensor of the file. */
static const char *renamed(const struct job_take *take, const char *name,
                           char buf[SAFETENSORS_NAME_MAX])
{
    const int k = rename_of(take, name);
    if (k < 0) {
        return name;
    }
    exchange(take->rename[k].from, name, take->rename[k].to, buf, SAFETENSORS_NAME_MAX);
    return buf;
}

/* Parts of norms, and the factor of a scale, which has the name of one: MindSpore and torch call
 * them otherwise. All else that has a weight or a bias has it in both. */
static void mark_norms(struct first_weights *w)
{
    for (int i = 0; i < graph_n_forward_ops(w->graph); i++) {
        const struct op *op = graph_op(w->graph, i);
        const int is_norm = op->kind == OP_BATCH_NORM || op->kind == OP_LAYER_NORM ||
                            op->kind == OP_GROUP_NORM || op->kind == OP_SCALE;
        for (int k = 1; is_norm && k < op->n_in; k++) {
            w->is_of_norm[op->in[k]] = 1;
        }
    }
}

enum { SPELLINGS = 3 };

/* A name as it is, as torch has it, and what torch calls so. */
static void spell(const char *name, char ret[SPELLINGS][SAFETENSORS_NAME_MAX])
{
    snprintf(ret[0], SAFETENSORS_NAME_MAX, "%s", name);
    (void)weights_name_to_torch(name, ret[1], SAFETENSORS_NAME_MAX);
    (void)weights_name_from_torch(name, ret[2], SAFETENSORS_NAME_MAX);
}

/* The tensor of the graph that is called so, or is a norm's that others call so; -1: none. */
static int known(const struct first_weights *w, const char *name)
{
    char names[SPELLINGS][SAFETENSORS_NAME_MAX];
    int index = graph_find(w->graph, name);
    spell(name, names);
    for (int s = 1; s < SPELLINGS && index < 0; s++) {
        const int other = graph_find(w->graph, names[s]);
        index = other >= 0 && w->is_of_norm[other] ? other : -1;
    }
    return index;
}

/* How many of its spellings a tensor of the graph has; -1: one that is not in it. */
static int n_spellings(const struct first_weights *w, int index)
{
    return index >= 0 && w->is_of_norm[index] ? SPELLINGS : 1;
}

static int matches(const struct first_weights *w, const char *pattern, const char *name)
{
    char names[SPELLINGS][SAFETENSORS_NAME_MAX];
    const int n = n_spellings(w, known(w, name));
    int is = 0;
    spell(name, names);
    for (int s = 0; s < n; s++) {
        is |= job_glob(pattern, names[s]);
    }
    return is;
}

static int is_excluded(const struct first_weights *w, const char *name)
{
    const struct job_take *take = w->take;
    int k = 0;
    while (k < take->n_exclude && !matches(w, take->exclude[k], name)) {
        k++;
    }
    return k < take->n_exclude;
}

/* ---- tensors for parameters ---- */

/* Takes a tensor of that name into place, where the renames make `want` of it. */
static int offer(const struct first_weights *w, const char *name, const char *want,
                 char taken[SAFETENSORS_NAME_MAX], struct place *place, struct ms_err *err)
{
    char buf[SAFETENSORS_NAME_MAX];
    const struct place other = find(w, name);
    if (!is_there(&other) || strcmp(renamed(w->take, name, buf), want) != 0 ||
        strcmp(taken, name) == 0) {
        return MS_OK;
    }
    if (is_there(place)) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s: %.60s and %.60s would both be %.60s; mend initial_weights.rename",
                       w->path, taken, name, want);
    }
    *place = other;
    snprintf(taken, SAFETENSORS_NAME_MAX, "%s", name);
    return MS_OK;
}

static int find_one(const struct first_weights *w, const char *want, struct place *place,
                    struct ms_err *err)
{
    char taken[SAFETENSORS_NAME_MAX] = "";
    int rc = offer(w, want, want, taken, place, err);
    for (int k = 0; k < w->take->n_rename && rc == MS_OK; k++) {
        const struct job_rename *rename = &w->take->rename[k];
        char name[SAFETENSORS_NAME_MAX];
        if (job_glob(rename->to, want)) {
            exchange(rename->to, want, rename->from, name, sizeof(name));
            rc = offer(w, name, want, taken, place, err);
        }
    }
    return rc;
}

static void format_dims(const int64_t *dim, int n, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "(");
    for (int i = 0; i < n && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64, i > 0 ? ", " : "", dim[i]);
    }
    if (used < size) {
        snprintf(buf + used, size - used, ")");
    }
}

/* What helps where all has to be there. */
static const char other_job[] = "are these weights of another network, or job?";

static int check_place(const struct first_weights *w, const struct place *place,
                       const struct tensor *tensor, struct ms_err *err)
{
    char have[96];
    char want[96];
    const int64_t *dim = place->entry != NULL ? place->entry->dim : place->tensor->dim;
    const int n_dims = place->entry != NULL ? place->entry->n_dims : place->tensor->n_dims;
    if (n_dims != tensor->shape.n_dims ||
        memcmp(dim, tensor->shape.dim, (size_t)n_dims * sizeof(*dim)) != 0) {
        format_dims(dim, n_dims, have, sizeof(have));
        format_dims(tensor->shape.dim, tensor->shape.n_dims, want, sizeof(want));
        return ms_fail(err, MS_E_INVALID,
                       "%.200s: tensor %s has shape %s, the network wants %s; %s", w->path,
                       tensor->name, have, want,
                       w->is_whole ? other_job : "initial_weights.exclude leaves it out");
    }
    if (place->entry != NULL && strcmp(place->entry->dtype, "F32") != 0) {
        return ms_fail(err, MS_E_INVALID, "%s: tensor %s is %s, the network wants F32; convert it",
                       w->path, place->entry->name, place->entry->dtype);
    }
    return MS_OK;
}

static int choose_one(const struct first_weights *w, int i, struct ms_err *err)
{
    const struct tensor *tensor = stored(w, i);
    struct place *place = &w->places[i];
    char names[SPELLINGS][SAFETENSORS_NAME_MAX];
    int rc = MS_OK;
    if (is_excluded(w, tensor->name)) {
        return MS_OK;
    }
    spell(tensor->name, names);
    const int n = n_spellings(w, graph_stored_at(w->graph, i));
    for (int s = 0; s < n && rc == MS_OK && !is_there(place); s++) {
        rc = find_one(w, names[s], place, err);
    }
    const int is_state = tensor->role == TENSOR_STATE;
    if (rc < 0 || (!is_there(place) && is_state && !w->is_whole)) { /* it begins anew */
        return rc;
    }
    if (!is_there(place)) {
        return ms_fail(err, MS_E_INVALID, "%.200s: %s %s of the network is missing; %s", w->path,
                       is_state ? "the moving statistic" : "parameter", tensor->name,
                       w->is_whole ? other_job
                                   : "initial_weights.exclude lets it begin by its init");
    }
    if (place->entry != NULL) { /* of a checkpoint with moving averages: those that were evaluated
                                 */
        place->entry = weights_file_source(w->file, place->entry);
    }
    return check_place(w, place, tensor, err);
}

/* ---- tensors that nobody wants, patterns that match none ---- */

typedef int each_fn(void *arg, const char *name, const struct safetensors_entry *entry,
                    struct ms_err *err);

struct each {
    each_fn *fn;
    void *arg;
};

static int each_of_model(void *arg, const struct onnx_tensor *tensor, struct ms_err *err)
{
    const struct each *each = arg;
    return each->fn(each->arg, tensor->name, NULL, err);
}

static int each_tensor(const struct first_weights *w, each_fn *fn, void *arg, struct ms_err *err)
{
    struct each each = {fn, arg};
    int rc = w->model != NULL ? onnx_each_parameter(w->model, each_of_model, &each, err) : MS_OK;
    for (size_t i = 0; rc == MS_OK && w->file != NULL && i < weights_file_count(w->file); i++) {
        const struct safetensors_entry *entry = weights_file_at(w->file, i);
        rc = fn(arg, entry->name, entry, err);
    }
    return rc;
}

struct use { /* of what stands in the job */
    const struct first_weights *weights;
    struct ms_err unwanted; /* the first tensor that nobody wants */
    char exclude[MS_WEIGHT_PATTERNS_MAX], rename[MS_WEIGHT_PATTERNS_MAX];
};

static int note_exclude(struct use *use, const char *name)
{
    const struct job_take *take = use->weights->take;
    int is = 0;
    for (int k = 0; k < take->n_exclude; k++) {
        const int is_match = matches(use->weights, take->exclude[k], name);
        use->exclude[k] = (char)(use->exclude[k] | is_match);
        is |= is_match;
    }
    return is;
}

/* What an optimizer or a counter left there. */
static int is_passed_over(const struct first_weights *w, const struct safetensors_entry *entry)
{
    const char *of_slot = weights_name_of_slot(entry->name);
    return (of_slot != NULL && known(w, of_slot) >= 0) || weights_file_is_aside(w->file, entry);
}

/* A module that stood in another one, as under DistributedDataParallel, has its name before all. */
static const char *what_helps(const struct first_weights *w, const char *name, char *buf,
                              size_t size)
{
    const char *dot = strchr(name, '.');
    if (w->is_whole) {
        return other_job;
    }
    if (dot == NULL || known(w, dot + 1) < 0) {
        return "is it another network's file? initial_weights.exclude leaves it out";
    }
    snprintf(buf, size, "initial_weights.rename: [{from: \"%.*s.*\", to: \"*\"}] takes those names",
             (int)(dot - name < 60 ? dot - name : 60), name);
    return buf;
}

static int judge_tensor(void *arg, const char *name, const struct safetensors_entry *entry,
                        struct ms_err *err)
{
    (void)err;
    struct use *use = arg;
    const struct first_weights *w = use->weights;
    char buf[SAFETENSORS_NAME_MAX];
    char help[160];
    const int is_named = strcmp(graph_name(w->graph), "network") != 0; /* a list is called so */
    const int k = rename_of(w->take, name);
    const char *as = renamed(w->take, name, buf);
    if (k >= 0) {
        use->rename[k] = 1;
    }
    if (note_exclude(use, as) || known(w, as) >= 0 || (entry != NULL && is_passed_over(w, entry))) {
        return MS_OK;
    }
    if (use->unwanted.code == 0) {
        ms_fail(&use->unwanted, MS_E_INVALID,
                "%.200s: tensor %.100s%s%.80s%s is not in the network%s%s; %s", w->path, name,
                k >= 0 ? " (renamed " : "", k >= 0 ? as : "", k >= 0 ? ")" : "",
                is_named ? " " : "", is_named ? graph_name(w->graph) : "",
                what_helps(w, as, help, sizeof(help)));
    }
    return MS_OK;
}

static int offer_unknown(void *arg, const char *name, const struct safetensors_entry *entry,
                         struct ms_err *err)
{
    struct job_nearest *near = ((void **)arg)[0];
    const struct first_weights *w = ((void **)arg)[1];
    (void)entry;
    (void)err;
    if (w == NULL || known(w, name) < 0) {
        job_nearest_offer(near, name);
    }
    return MS_OK;
}

static int fail_exclude(const struct first_weights *w, const char *pattern, struct ms_err *err)
{
    struct job_nearest near = {.pattern = pattern};
    char names[JOB_NEAREST_TEXT];
    void *arg[] = {&near, (void *)w};
    for (int i = 0; i < graph_n_stored(w->graph); i++) {
        job_nearest_offer(&near, stored(w, i)->name);
    }
    (void)each_tensor(w, offer_unknown, arg, NULL);
    job_nearest_say(&near, names, sizeof(names));
    return ms_fail(err, MS_E_INVALID,
                   "exclude: '%s' matches no parameter of network %s and no tensor of %.160s; "
                   "nearest: %s",
                   pattern, graph_name(w->graph), w->path, names);
}

static int fail_rename(const struct first_weights *w, int k, struct ms_err *err)
{
    const char *from = w->take->rename[k].from;
    struct job_nearest near = {.pattern = from};
    char names[JOB_NEAREST_TEXT];
    void *arg[] = {&near, NULL};
    (void)each_tensor(w, offer_unknown, arg, NULL);
    job_nearest_say(&near, names, sizeof(names));
    return ms_fail(err, MS_E_INVALID,
                   "rename[%d]: '%s' matches no tensor of %.160s that no rename before it takes; "
                   "nearest: %s",
                   k, from, w->path, names);
}

static int judge(const struct first_weights *w, struct ms_err *err)
{
    struct use use = {.weights = w};
    for (int i = 0; i < graph_n_stored(w->graph); i++) {
        (void)note_exclude(&use, stored(w, i)->name);
    }
    int rc = each_tensor(w, judge_tensor, &use, err);
    /* a pattern that was mistyped is the likely cause of a tensor that nobody wants */
    for (int k = 0; k < w->take->n_rename && rc == MS_OK; k++) {
        rc = use.rename[k] ? MS_OK : fail_rename(w, k, err);
    }
    for (int k = 0; k < w->take->n_exclude && rc == MS_OK; k++) {
        rc = use.exclude[k] ? MS_OK : fail_exclude(w, w->take->exclude[k], err);
    }
    return rc == MS_OK && use.unwanted.code < 0
               ? ms_fail(err, use.unwanted.code, "%s", use.unwanted.text)
               : rc;
}

/* ---- all of it ---- */

static int n_taken(const struct first_weights *w, enum tensor_role role, int *ret_all)
{
    int n = 0;
    *ret_all = 0;
    for (int i = 0; i < graph_n_stored(w->graph); i++) {
        const int is = stored(w, i)->role == role;
        *ret_all += is;
        n += is && is_there(&w->places[i]);
    }
    return n;
}

/* A model may have the values of what is taken in a file of their own. */
static int look_beside(const struct first_weights *w, struct ms_err *err)
{
    int rc = MS_OK;
    for (int i = 0; rc == MS_OK && i < graph_n_stored(w->graph); i++) {
        const struct onnx_tensor *tensor = w->places[i].tensor;
        if (tensor != NULL) {
            rc = onnx_look(w->model, tensor, (size_t)shape_count(&stored(w, i)->shape), err);
        }
    }
    return rc;
}

static int choose(const struct first_weights *w, struct ms_err *err)
{
    int all = 0;
    int rc = judge(w, err);
    for (int i = 0; rc == MS_OK && i < graph_n_stored(w->graph); i++) {
        rc = choose_one(w, i, err);
    }
    rc = rc < 0 ? rc : look_beside(w, err);
    return rc == MS_OK && n_taken(w, TENSOR_PARAM, &all) == 0
               ? ms_fail(err, MS_E_INVALID,
                         "exclude leaves nothing that would be taken of %.200s; leave "
                         "initial_weights out",
                         w->path)
               : rc;
}

int first_weights_open(const char *path, const struct job_take *take, const struct graph *graph,
                       struct first_weights **ret, struct ms_err *err)
{
    struct first_weights *w = calloc(1, sizeof(*w));
    struct place *places = calloc((size_t)graph_n_stored(graph) + 1, sizeof(*places));
    char *is_of_norm = calloc((size_t)graph_n_tensors(graph) + 1, sizeof(*is_of_norm));
    if (w == NULL || places == NULL || is_of_norm == NULL) {
        free(w);
        free(places);
        free(is_of_norm);
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", path);
    }
    static const struct job_take whole;
    snprintf(w->path, sizeof(w->path), "%s", path);
    w->take = take != NULL ? take : &whole;
    w->is_whole = take == NULL;
    w->graph = graph;
    w->places = places;
    w->is_of_norm = is_of_norm;
    mark_norms(w);
    int rc = onnx_is_path(path) ? onnx_open(path, &w->model, err)
                                : weights_file_open(path, &w->file, err);
    rc = rc < 0 ? rc : choose(w, err);
    if (rc < 0) {
        first_weights_close(w);
        return rc;
    }
    *ret = w;
    return MS_OK;
}

void first_weights_close(struct first_weights *w)
{
    if (w != NULL) {
        weights_file_close(w->file);
        onnx_close(w->model);
        free(w->places);
        free(w->is_of_norm);
        free(w);
    }
}

int first_weights_has(const struct first_weights *w, int i)
{
    return is_there(&w->places[i]);
}

int first_weights_read(const struct first_weights *w, int i, float *values, size_t count,
                       struct ms_err *err)
{
    const struct place *place = &w->places[i];
    return place->entry != NULL ? weights_file_read(w->file, place->entry, values, count, err)
                                : onnx_read(w->model, place->tensor, values, count, err);
}

/* ---- for people ---- */

static void say_rest(const struct first_weights *w, int n_rest, char *buf, size_t size)
{
    enum { NAMED = 4 };
    size_t used = 0;
    int named = 0;
    buf[0] = '\0';
    for (int i = 0; i < graph_n_stored(w->graph) && named < NAMED && used < size; i++) {
        if (!is_there(&w->places[i]) && stored(w, i)->role == TENSOR_PARAM) {
            used += (size_t)snprintf(buf + used, size - used, "%s%s", named > 0 ? ", " : "; ",
                                     stored(w, i)->name);
            named++;
        }
    }
    if (n_rest > 0 && used < size) {
        char more[32] = "";
        if (n_rest > named) {
            snprintf(more, sizeof(more), " and %d more", n_rest - named);
        }
        snprintf(buf + used, size - used, "%s begin%s by %s init", more, n_rest == 1 ? "s" : "",
                 n_rest == 1 ? "its" : "their");
    }
}

void first_weights_say(const struct first_weights *w, char *buf, size_t size)
{
    char rest[5 * GRAPH_NAME_MAX];
    char statistics[64] = "";
    int params = 0;
    int states = 0;
    const int params_taken = n_taken(w, TENSOR_PARAM, &params);
    const int states_taken = n_taken(w, TENSOR_STATE, &states);
    if (states > 0) {
        snprintf(statistics, sizeof(statistics), ", %d of %d moving statistics", states_taken,
                 states);
    }
    say_rest(w, params - params_taken, rest, sizeof(rest));
    snprintf(buf, size, "%d of %d parameters%s%s", params_taken, params, statistics, rest);
}
