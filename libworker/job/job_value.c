/* job_value.c - one value of a job file: from YAML's text to a checked C value, by type */
#include "libworker/job/job_schema.h"
#include "libworker/job/yaml_tree.h"

#include "proto/settings.h"
#include "proto/text.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_SHOWN_MAX = 48, LEGAL_MAX = 160 };

struct reader { /* what every helper needs to fail well */
    const struct job_field *field;
    const char *shown;
    const char *base_dir;
    struct ms_err *err;
};

/* ---- texts ---- */

static void join_choices(const struct job_field *field, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (const char *const *choice = field->choices; *choice != NULL && used < size; choice++) {
        int n = snprintf(buf + used, size - used, "%s%s", used > 0 ? " | " : "", *choice);
        used += n > 0 ? (size_t)n : 0;
    }
}

void job_value_describe(const struct job_field *field, char *buf, size_t size)
{
    switch (field->type) {
    case JOB_INT:
    case JOB_INT64:
    case JOB_UINT64:
        snprintf(buf, size, "a whole number from %.0f to %.0f", field->min, field->max);
        return;
    case JOB_REAL:
    case JOB_REALS:
        snprintf(buf, size, "%s%s%g %s %g",
                 field->type == JOB_REALS ? "a list of numbers" : "a number",
                 field->flags & JOB_ABOVE ? " above " : " from ", field->min,
                 field->flags & JOB_ABOVE ? "and at most" : "to", field->max);
        return;
    case JOB_BOOL:
        snprintf(buf, size, "true or false");
        return;
    case JOB_ENUM:
    case JOB_NETWORK:
        join_choices(field, buf, size);
        return;
    case JOB_NAME:
        snprintf(buf, size, "at most %d letters, digits, dots, dashes and underscores",
                 MS_NAME_MAX);
        return;
    case JOB_PATH:
        snprintf(buf, size, "a path");
        return;
    case JOB_OUTPUT:
        snprintf(buf, size, "a folder below the run directory, or an absolute path");
        return;
    case JOB_SIZE:
        snprintf(buf, size, "[height, width] or one number, from %.0f to %.0f", field->min,
                 field->max);
        return;
    case JOB_SIZE_PAIR:
        snprintf(buf, size, "[height, width], each from %.0f to %.0f", field->min, field->max);
        return;
    case JOB_PADDING:
        snprintf(buf, size, "[left, top, right, bottom], each from %.0f to %.0f", field->min,
                 field->max);
        return;
    case JOB_TRANSFORMS:
        snprintf(buf, size, "a list of transforms");
        return;
    case JOB_SECTION:
        snprintf(buf, size, "a section");
        return;
    default:
        snprintf(buf, size, "%s", "");
        return;
    }
}

/* The node as a person would quote it: cut, without control bytes. */
static const char *show_node(const struct tree_node *node, char buf[VALUE_SHOWN_MAX + 6])
{
    if (node->kind != TREE_SCALAR) {
        return node->kind == TREE_LIST ? "a list" : "a section";
    }
    size_t n = 0;
    buf[n++] = '\'';
    for (const char *c = node->text; *c != '\0' && n < VALUE_SHOWN_MAX; c++) {
        buf[n++] = (unsigned char)*c < 0x20 || *c == 0x7F ? ' ' : *c;
    }
    snprintf(buf + n, VALUE_SHOWN_MAX + 6 - n, "%s'",
             strlen(node->text) >= VALUE_SHOWN_MAX ? "..." : "");
    return buf;
}

static int fail_value(const struct reader *r, const struct tree_node *node, const char *why)
{
    char legal[LEGAL_MAX];
    char value[VALUE_SHOWN_MAX + 6];
    job_value_describe(r->field, legal, sizeof(legal));
    if (tree_is_null(node)) {
        return tree_fail(node, r->err, "%s has no value; give %s", r->shown, legal);
    }
    return tree_fail(node, r->err, "%s: %s %s; give %s", r->shown, show_node(node, value), why,
                     legal);
}

/* ---- scalars ---- */

static int is_plain(const struct tree_node *node)
{
    return node->kind == TREE_SCALAR && node->plain && !tree_is_null(node);
}

static int read_whole(const struct reader *r, const struct tree_node *node, int64_t *ret)
{
    if (!is_plain(node)) {
        return fail_value(r, node, "is no whole number");
    }
    const char *digits = node->text + (node->text[0] == '-');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return fail_value(r, node, "is no whole number");
    }
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    if (errno == ERANGE || (double)value < r->field->min || (double)value > r->field->max) {
        return fail_value(r, node, "is out of range");
    }
    *ret = value;
    return MS_OK;
}

/* YAML spells the special ones .nan and .inf; people and programs also write nan and inf. */
static int is_not_finite(const char *text)
{
    static const char *const words[] = {".nan", "nan", ".inf", "inf", "infinity"};
    text += *text == '-' || *text == '+';
    for (size_t i = 0; i < MS_ARRAY_SIZE(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int read_real(const struct reader *r, const struct tree_node *node, double *ret)
{
    if (!is_plain(node)) {
        return fail_value(r, node, "is no number");
    }
    if (is_not_finite(node->text)) {
        return fail_value(r, node, "is not finite");
    }
    char *end = NULL;
    double value = strtod(node->text, &end);
    if (end == node->text || *end != '\0' ||
        strspn(node->text, "0123456789+-.eE") != strlen(node->text)) {
        return fail_value(r, node, "is no number");
    }
    const struct job_field *f = r->field;
    if (!isfinite(value) || value < f->min || value > f->max ||
        ((f->flags & JOB_ABOVE) != 0 && value <= f->min)) {
        return fail_value(r, node, "is out of range");
    }
    *ret = value == 0 ? 0 : value; /* no negative zero: equal jobs have equal bytes */
    return MS_OK;
}

static int read_bool(const struct reader *r, const struct tree_node *node, int *ret)
{
    static const struct {
        const char *text;
        int value;
    } words[] = {{"true", 1}, {"True", 1}, {"TRUE", 1}, {"false", 0}, {"False", 0}, {"FALSE", 0}};
    for (size_t i = 0; is_plain(node) && i < MS_ARRAY_SIZE(words); i++) {
        if (strcmp(node->text, words[i].text) == 0) {
            *ret = words[i].value;
            return MS_OK;
        }
    }
    return fail_value(r, node, "is neither true nor false");
}

static int read_choice(const struct reader *r, const struct tree_node *node, int *ret)
{
    const struct job_field *f = r->field;
    if (node->kind != TREE_SCALAR || tree_is_null(node)) {
        return fail_value(r, node, "is no word");
    }
    size_t n = 0;
    for (; f->choices[n] != NULL; n++) {
        if (strcmp(f->choices[n], node->text) == 0) {
            *ret = (int)n;
            return MS_OK;
        }
    }
    char legal[LEGAL_MAX];
    char value[VALUE_SHOWN_MAX + 6];
    join_choices(f, legal, sizeof(legal));
    for (const char *const *later = f->later; later != NULL && *later != NULL; later++) {
        if (strcmp(*later, node->text) == 0) {
            return tree_fail(node, r->err, "%s: %s comes later; this version has %s", r->shown,
                             node->text, legal);
        }
    }
    const char *near = ms_nearest(node->text, f->choices, n);
    return tree_fail(node, r->err, "%s: %s is not known%s%s%s; legal: %s", r->shown,
                     show_node(node, value), near != NULL ? ", did you mean " : "",
                     near != NULL ? near : "", near != NULL ? "?" : "", legal);
}

/* A network is a name; what looks like a file is one day a graph file. */
static int read_network(const struct reader *r, const struct tree_node *node, char *dst)
{
    static const char *const endings[] = {".onnx", ".json", ".yaml", ".pb", ".mindir", ".graph"};
    if (node->kind == TREE_SCALAR) {
        const char *dot = strrchr(node->text, '.');
        int is_file = strchr(node->text, '/') != NULL;
        for (size_t i = 0; dot != NULL && i < MS_ARRAY_SIZE(endings); i++) {
            is_file |= strcmp(dot, endings[i]) == 0;
        }
        if (is_file) {
            char legal[LEGAL_MAX];
            join_choices(r->field, legal, sizeof(legal));
            return tree_fail(node, r->err,
                             "%s: a network from a graph file comes later; this version has %s",
                             r->shown, legal);
        }
    }
    int index = 0;
    int rc = read_choice(r, node, &index);
    if (rc == MS_OK) {
        snprintf(dst, MS_PATH_MAX + 1, "%s", r->field->choices[index]);
    }
    return rc;
}

static int read_name(const struct reader *r, const struct tree_node *node, char *dst)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return fail_value(r, node, "is no name");
    }
    if (strlen(node->text) > MS_NAME_MAX) {
        return fail_value(r, node, "is too long");
    }
    /* it becomes part of names of files and folders */
    if (strchr(".-", node->text[0]) != NULL) {
        return fail_value(r, node, "begins with a dot or a dash");
    }
    if (strspn(node->text, allowed) != strlen(node->text)) {
        return fail_value(r, node, "has a character that names of files here may not have");
    }
    snprintf(dst, MS_NAME_MAX + 1, "%s", node->text);
    return MS_OK;
}

/* Every ${ is closed around a name. */
static int references_are_closed(const char *text)
{
    for (const char *at = strstr(text, "${"); at != NULL; at = strstr(at, "${")) {
        at += 2;
        size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (n == 0 || at[n] != '}') {
            return 0;
        }
    }
    return 1;
}

static int read_path(const struct reader *r, const struct tree_node *node, char *dst)
{
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return fail_value(r, node, "is no path");
    }
    const char *text = node->text;
    if (!ms_text_is_valid(text, MS_TEXT_LINE)) {
        return fail_value(r, node, "has a control character in it");
    }
    if (!references_are_closed(text)) {
        return fail_value(r, node, "has a ${ that no name and } follow");
    }
    if (text[0] == '~') {
        return fail_value(r, node, "begins with ~, which nobody expands; write ${HOME} or");
    }
    const char *dir = "";
    const char *slash = "";
    if (text[0] != '/' && strncmp(text, "${", 2) != 0) {
        if (r->base_dir == NULL) {
            return fail_value(r, node, "is relative and there is no folder it starts from");
        }
        while (strncmp(text, "./", 2) == 0) {
            text += 2;
        }
        dir = r->base_dir;
        slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    }
    if (strlen(dir) + strlen(slash) + strlen(text) > MS_PATH_MAX) {
        return fail_value(r, node, "is too long a path");
    }
    snprintf(dst, MS_PATH_MAX + 1, "%s%s%s", dir, slash, text);
    return MS_OK;
}

/* Written to, on each worker's host: what a variable or a way up may lead to is not for a job. */
static int read_output(const struct reader *r, const struct tree_node *node, char *dst)
{
    enum { OUTPUT_MAX = MS_PATH_MAX - 128 }; /* names of files come behind it */
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return fail_value(r, node, "is no folder");
    }
    if (strlen(node->text) > OUTPUT_MAX) {
        return fail_value(r, node, "is too long a path");
    }
    if (!ms_text_is_valid(node->text, MS_TEXT_LINE)) {
        return fail_value(r, node, "has a control character in it");
    }
    const char *why = job_output_refuse(node->text);
    if (why != NULL) {
        return fail_value(r, node, why);
    }
    snprintf(dst, MS_PATH_MAX + 1, "%s", node->text);
    return MS_OK;
}

/* ---- lists ---- */

static int read_list_whole(const struct reader *r, const struct tree_node *node, size_t n,
                           int64_t *ret)
{
    if (node->kind != TREE_LIST || node->n_items != n) {
        return fail_value(r, node, "does not fit");
    }
    for (size_t i = 0; i < n; i++) {
        int rc = read_whole(r, node->items[i].value, &ret[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return MS_OK;
}

static int read_size(const struct reader *r, const struct tree_node *node, int64_t dst[2])
{
    int64_t size[2] = {0, 0};
    int rc = MS_OK;
    if (r->field->type == JOB_SIZE && node->kind == TREE_SCALAR) {
        rc = read_whole(r, node, &size[0]);
        size[1] = size[0];
    } else {
        rc = read_list_whole(r, node, 2, size);
    }
    if (rc == MS_OK) {
        memcpy(dst, size, sizeof(size));
    }
    return rc;
}

/* MindSpore's short forms: n for all four; [left and right, top and bottom]. */
static int read_padding(const struct reader *r, const struct tree_node *node, int64_t dst[4])
{
    int64_t pad[4] = {0, 0, 0, 0};
    int rc = MS_OK;
    if (node->kind == TREE_SCALAR) {
        rc = read_whole(r, node, &pad[0]);
        pad[1] = pad[2] = pad[3] = pad[0];
    } else if (node->kind == TREE_LIST && node->n_items == 2) {
        rc = read_list_whole(r, node, 2, pad);
        pad[2] = pad[0];
        pad[3] = pad[1];
    } else {
        rc = read_list_whole(r, node, 4, pad);
    }
    if (rc == MS_OK) {
        memcpy(dst, pad, sizeof(pad));
    }
    return rc;
}

static int read_reals(const struct reader *r, const struct tree_node *node, double *dst, int *count)
{
    double values[MS_IMAGE_CHANNEL_MAX] = {0};
    if (node->kind != TREE_LIST || node->n_items == 0) {
        return fail_value(r, node, "is no list of numbers");
    }
    if (node->n_items > MS_IMAGE_CHANNEL_MAX) {
        return tree_fail(node, r->err, "%s has %zu numbers; images have at most %d channels",
                         r->shown, node->n_items, MS_IMAGE_CHANNEL_MAX);
    }
    if (*count != 0 && (size_t)*count != node->n_items) {
        return tree_fail(node, r->err,
                         "%s has %zu numbers where the list before it has %d; give one a channel",
                         r->shown, node->n_items, *count);
    }
    for (size_t i = 0; i < node->n_items; i++) {
        int rc = read_real(r, node->items[i].value, &values[i]);
        if (rc < 0) {
            return rc;
        }
    }
    *count = (int)node->n_items;
    memcpy(dst, values, sizeof(values));
    return MS_OK;
}

int job_value_read(const struct job_field *field, const struct tree_node *node, const char *shown,
                   const char *base_dir, void *base, struct ms_err *err)
{
    const struct reader r = {field, shown, base_dir, err};
    void *dst = (char *)base + field->offset;
    int64_t whole = 0;
    int rc = MS_OK;
    switch (field->type) {
    case JOB_NAME:
        return read_name(&r, node, dst);
    case JOB_PATH:
        return read_path(&r, node, dst);
    case JOB_OUTPUT:
        return read_output(&r, node, dst);
    case JOB_NETWORK:
        return read_network(&r, node, dst);
    case JOB_INT:
        rc = read_whole(&r, node, &whole);
        if (rc == MS_OK) {
            *(int *)dst = (int)whole;
        }
        return rc;
    case JOB_INT64:
        return read_whole(&r, node, dst);
    case JOB_UINT64:
        rc = read_whole(&r, node, &whole);
        if (rc == MS_OK) {
            *(uint64_t *)dst = (uint64_t)whole;
        }
        return rc;
    case JOB_REAL:
        return read_real(&r, node, dst);
    case JOB_BOOL:
        return read_bool(&r, node, dst);
    case JOB_ENUM:
        return read_choice(&r, node, dst);
    case JOB_SIZE:
    case JOB_SIZE_PAIR:
        return read_size(&r, node, dst);
    case JOB_PADDING:
        return read_padding(&r, node, dst);
    case JOB_REALS:
        return read_reals(&r, node, dst, (int *)((char *)base + field->count_offset));
    default:
        assert(0 && "sections and transforms are read by job_parse.c");
        return MS_E_INVALID;
    }
}
