/* job_group.c - groups of parameters by their names: read, written, held against the network */
#include "libworker/job/job_pattern.h"
#include "libworker/job/job_schema.h"

#include "libworker/network/network.h"

#include <stdio.h>

_Static_assert((int)MS_PATTERN_MAX == (int)GRAPH_NAME_MAX - 1, "a pattern may be a whole name");

static int matches(const struct job_group *group, const char *name)
{
    int i = 0;
    while (i < group->n_match && !job_glob(group->match[i], name)) {
        i++;
    }
    return i < group->n_match;
}

const struct job_group *job_group_of(const struct job *job, const char *parameter)
{
    int i = 0;
    while (i < job->n_groups && !matches(&job->groups[i], parameter)) {
        i++;
    }
    return i < job->n_groups ? &job->groups[i] : NULL;
}

/* ---- one group ---- */

#define IN_GROUP(member) offsetof(struct job_group, member)

static int read_match(const struct field_reader *r, const struct tree_node *node, void *base)
{
    struct job_group *group = base;
    return job_patterns_read(r, node, group->match, MS_GROUP_PATTERNS_MAX, &group->n_match);
}

static json_t *write_match(const struct field *field, const void *base)
{
    const struct job_group *group = base;
    (void)field;
    return job_patterns_write(group->match, group->n_match);
}

static const struct field_own match_type = {
    .legal = "a name of parameters, or a list of names, with * for any text and ? for a character",
    .read = read_match,
    .write = write_match,
};

static const struct field group_rows[] = {
    {.key = "match",
     .type = FIELD_OWN,
     .own = &match_type,
     .flags = FIELD_REQUIRED,
     .offset = IN_GROUP(match),
     .help = "names of parameters, as in files of weights"},
    {.key = "weight_decay",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = IN_GROUP(weight_decay),
     .min = 0,
     .max = 1000,
     .help = "instead of the optimizer's"},
    {.key = "learning_rate",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = IN_GROUP(learning_rate),
     .min = 0,
     .max = 1000,
     .help = "instead of the optimizer's; a schedule scales it as that"},
    {.key = "frozen",
     .type = FIELD_BOOL,
     .flags = FIELD_ADDED,
     .offset = IN_GROUP(frozen),
     .builtin = "false",
     .help = "they stay what they are"},
};
static const struct field_table group_table = {group_rows, MS_ARRAY_SIZE(group_rows),
                                               "a group of parameters"};

/* ---- the list ---- */

static int check_frozen(const struct job_group *group, const char *place,
                        const struct tree_node *node, struct ms_err *err)
{
    const char *const key = group->has_weight_decay ? "weight_decay" : "learning_rate";
    return group->frozen && (group->has_weight_decay || group->has_learning_rate)
               ? tree_fail(node, err,
                           "%s.%s has no meaning with frozen: true, for no step changes these "
                           "parameters; leave one of them out",
                           place, key)
               : MS_OK;
}

static int read_group(const struct field_reader *r, const struct tree_node *node, size_t index,
                      struct job_group *dst)
{
    char place[40];
    char prefix[48];
    snprintf(place, sizeof(place), "%s[%zu]", r->field->key, index);
    snprintf(prefix, sizeof(prefix), "%s.", place);
    if (node->kind != TREE_MAP) {
        return tree_fail(node, r->err, "%s must hold keys; write it as - {match: \"*.bias\", ...}",
                         place);
    }
    const struct table_reader reader = {.table = &group_table, .prefix = prefix, .err = r->err};
    int rc = table_read(&reader, node, dst);
    dst->has_weight_decay = rc == MS_OK && table_has(node, "weight_decay");
    dst->has_learning_rate = rc == MS_OK && table_has(node, "learning_rate");
    return rc < 0 ? rc : check_frozen(dst, place, node, r->err);
}

static int read_groups(const struct field_reader *r, const struct tree_node *list, void *base)
{
    struct job_group *dst = (void *)((char *)base + r->field->offset);
    if (list->kind != TREE_LIST) {
        return tree_fail(list, r->err, "%s must be a list: each line begins with \"- \"", r->shown);
    }
    if (list->n_items > MS_GROUPS_MAX) {
        return tree_fail(list, r->err, "%s has %zu entries; at most %d", r->shown, list->n_items,
                         MS_GROUPS_MAX);
    }
    for (size_t i = 0; i < list->n_items; i++) {
        int rc = read_group(r, list->items[i].value, i, &dst[i]);
        if (rc < 0) {
            return rc;
        }
    }
    *(int *)((char *)base + r->field->count_offset) = (int)list->n_items;
    return MS_OK;
}

static json_t *write_group(const struct job_group *group)
{
    json_t *object = table_write(&group_table, group);
    if (!group->has_weight_decay) {
        (void)json_object_del(object, "weight_decay");
    }
    if (!group->has_learning_rate) {
        (void)json_object_del(object, "learning_rate");
    }
    return object;
}

static json_t *write_groups(const struct field *field, const void *base)
{
    const struct job_group *groups = (const void *)((const char *)base + field->offset);
    const int n = *(const int *)((const char *)base + field->count_offset);
    json_t *list = n > 0 ? json_array() : json_null();
    for (int i = 0; i < n; i++) {
        list = list_append(list, write_group(&groups[i]));
    }
    return list;
}

const struct field_own job_groups = {
    .legal = "a list of groups of parameters",
    .read = read_groups,
    .write = write_groups,
};

/* ---- against the network ---- */

static const char *parameter(const struct graph *graph, int i)
{
    return graph_tensor(graph, graph_param_at(graph, i))->name;
}

static int fail_pattern(const char *pattern, const struct tree_node *node, const char *place,
                        const struct graph *graph, struct ms_err *err)
{
    struct job_nearest near = {.pattern = pattern};
    char names[JOB_NEAREST_TEXT];
    for (int i = 0; i < graph_n_params(graph); i++) {
        job_nearest_offer(&near, parameter(graph, i));
    }
    job_nearest_say(&near, names, sizeof(names));
    return tree_fail(node, err, "%s.match: '%s' matches no parameter of network %s; nearest: %s",
                     place, pattern, graph_name(graph), names);
}

/* The node of pattern k, or the nearest one around it. */
static const struct tree_node *pattern_node(const struct tree_node *group, size_t k)
{
    const struct tree_item *item = tree_find(group, "match");
    if (item == NULL) {
        return group;
    }
    return item->value->kind == TREE_LIST ? item->value->items[k].value : item->value;
}

/* The first group that matches holds: one behind them may have nothing left. */
static int check_held(const struct job *job, const struct job_group *group,
                      const struct tree_node *node, const char *place, const struct graph *graph,
                      struct ms_err *err)
{
    const struct job_group *other = NULL;
    const char *name = "";
    for (int i = 0; i < graph_n_params(graph); i++) {
        const struct job_group *holder = job_group_of(job, parameter(graph, i));
        if (holder == group) {
            return MS_OK;
        }
        if (other == NULL && matches(group, parameter(graph, i))) {
            other = holder;
            name = parameter(graph, i);
        }
    }
    return tree_fail(node, err,
                     "%s: every parameter that it matches belongs to a group before it (%s to "
                     "optimizer.groups[%td]), and the first that matches holds; put it before that",
                     place, name, other - job->groups);
}

static int check_group(const struct job *job, size_t g, const struct tree_node *list,
                       const struct graph *graph, struct ms_err *err)
{
    const struct job_group *group = &job->groups[g];
    const struct tree_node *node = list->kind == TREE_LIST ? list->items[g].value : list;
    char place[40];
    snprintf(place, sizeof(place), "optimizer.groups[%zu]", g);
    if (group->has_learning_rate && job->optimizer.has_schedule &&
        job->optimizer.learning_rate == 0) {
        return tree_fail(node, err,
                         "%s.learning_rate: the schedule scales it as optimizer.learning_rate, "
                         "which is 0; give that another value",
                         place);
    }
    for (int k = 0; k < group->n_match; k++) {
        int i = 0;
        while (i < graph_n_params(graph) && !job_glob(group->match[k], parameter(graph, i))) {
            i++;
        }
        if (i == graph_n_params(graph)) {
            return fail_pattern(group->match[k], pattern_node(node, (size_t)k), place, graph, err);
        }
    }
    return check_held(job, group, node, place, graph, err);
}

static int is_all_frozen(const struct job *job, const struct graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph_n_params(graph); i++) {
        const struct job_group *group = job_group_of(job, parameter(graph, i));
        n += group != NULL && group->frozen;
    }
    return n == graph_n_params(graph);
}

int job_check_groups(const struct job *job, const struct tree_node *list, const struct graph *graph,
                     struct ms_err *err)
{
    int rc = MS_OK;
    for (int g = 0; rc == MS_OK && g < job->n_groups; g++) {
        rc = check_group(job, (size_t)g, list, graph, err);
    }
    return rc == MS_OK && job->n_groups > 0 && is_all_frozen(job, graph)
               ? tree_fail(list, err,
                           "optimizer.groups: all parameters of network %s are frozen: nothing is "
                           "left that could be trained",
                           graph_name(graph))
               : rc;
}
