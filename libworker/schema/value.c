/* value.c - one value of a document: from YAML's text to a checked C value, by type */
#include "libworker/schema/field.h"

#include "proto/limits.h"
#include "proto/nearest.h"
#include "proto/text.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_SHOWN_MAX = 48, LEGAL_MAX = 160 };

/* ---- texts ---- */

static void join_choices(const struct field *field, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (const char *const *choice = field->choices; *choice != NULL && used < size; choice++) {
        int n = snprintf(buf + used, size - used, "%s%s", used > 0 ? " | " : "", *choice);
        used += n > 0 ? (size_t)n : 0;
    }
}

int field_is_key(const struct field *field)
{
    return field->type != FIELD_LATER && field->type != FIELD_MOVED;
}

int field_applies(const struct field *field, const void *base)
{
    if (field->when_mask == 0) {
        return 1;
    }
    int value = 0;
    memcpy(&value, (const char *)base + field->when_offset, sizeof(value));
    return (field->when_mask >> value & 1U) != 0;
}

void field_describe(const struct field *field, char *buf, size_t size)
{
    switch (field->type) {
    case FIELD_INT:
    case FIELD_INT64:
    case FIELD_UINT64:
        snprintf(buf, size, "a whole number from %.0f to %.0f", field->min, field->max);
        return;
    case FIELD_REAL:
    case FIELD_REALS:
        snprintf(buf, size, "%s%s%g %s %g",
                 field->type == FIELD_REALS ? "a list of numbers" : "a number",
                 field->flags & FIELD_ABOVE ? " above " : " from ", field->min,
                 field->flags & FIELD_ABOVE ? "and at most" : "to", field->max);
        return;
    case FIELD_BOOL:
        snprintf(buf, size, "true or false");
        return;
    case FIELD_ENUM:
        join_choices(field, buf, size);
        return;
    case FIELD_OWN:
        if (field->own->legal != NULL) {
            snprintf(buf, size, "%s", field->own->legal);
        } else {
            join_choices(field, buf, size);
        }
        return;
    case FIELD_NAME:
        snprintf(buf, size, "at most %d letters, digits, dots, dashes and underscores",
                 MS_NAME_MAX);
        return;
    case FIELD_PATH:
        snprintf(buf, size, "a path");
        return;
    case FIELD_SIZE:
        snprintf(buf, size, "[height, width] or one number, from %.0f to %.0f", field->min,
                 field->max);
        return;
    case FIELD_SIZE_PAIR:
        snprintf(buf, size, "[height, width], each from %.0f to %.0f", field->min, field->max);
        return;
    case FIELD_PADDING:
        snprintf(buf, size, "[left, top, right, bottom], each from %.0f to %.0f", field->min,
                 field->max);
        return;
    case FIELD_SECTION:
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

int field_fail(const struct field_reader *r, const struct tree_node *node, const char *why)
{
    char legal[LEGAL_MAX];
    char value[VALUE_SHOWN_MAX + 6];
    field_describe(r->field, legal, sizeof(legal));
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

int field_read_whole(const struct field_reader *r, const struct tree_node *node, int64_t *ret)
{
    if (!is_plain(node)) {
        return field_fail(r, node, "is no whole number");
    }
    const char *digits = node->text + (node->text[0] == '-');
    if (*digits == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return field_fail(r, node, "is no whole number");
    }
    errno = 0;
    long long value = strtoll(node->text, NULL, 10);
    if (errno == ERANGE || (double)value < r->field->min || (double)value > r->field->max) {
        return field_fail(r, node, "is out of range");
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

int field_read_real(const struct field_reader *r, const struct tree_node *node, double *ret)
{
    if (!is_plain(node)) {
        return field_fail(r, node, "is no number");
    }
    if (is_not_finite(node->text)) {
        return field_fail(r, node, "is not finite");
    }
    char *end = NULL;
    double value = strtod(node->text, &end);
    if (end == node->text || *end != '\0' ||
        strspn(node->text, "0123456789+-.eE") != strlen(node->text)) {
        return field_fail(r, node, "is no number");
    }
    const struct field *f = r->field;
    if (!isfinite(value) || value < f->min || value > f->max ||
        ((f->flags & FIELD_ABOVE) != 0 && value <= f->min)) {
        return field_fail(r, node, "is out of range");
    }
    *ret = value == 0 ? 0 : value; /* no negative zero: equal jobs have equal bytes */
    return MS_OK;
}

static int read_bool(const struct field_reader *r, const struct tree_node *node, int *ret)
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
    return field_fail(r, node, "is neither true nor false");
}

int field_read_choice(const struct field_reader *r, const struct tree_node *node, int *ret)
{
    const struct field *f = r->field;
    if (node->kind != TREE_SCALAR || tree_is_null(node)) {
        return field_fail(r, node, "is no word");
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

static int read_name(const struct field_reader *r, const struct tree_node *node, char *dst)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return field_fail(r, node, "is no name");
    }
    if (strlen(node->text) > MS_NAME_MAX) {
        return field_fail(r, node, "is too long");
    }
    /* it becomes part of names of files and folders */
    if (strchr(".-", node->text[0]) != NULL) {
        return field_fail(r, node, "begins with a dot or a dash");
    }
    if (strspn(node->text, allowed) != strlen(node->text)) {
        return field_fail(r, node, "has a character that names of files here may not have");
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

int field_read_path(const struct field_reader *r, const struct tree_node *node, char *dst)
{
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return field_fail(r, node, "is no path");
    }
    const char *text = node->text;
    if (!ms_text_is_valid(text, MS_TEXT_LINE)) {
        return field_fail(r, node, "has a control character in it");
    }
    if (!references_are_closed(text)) {
        return field_fail(r, node, "has a ${ that no name and } follow");
    }
    if (text[0] == '~') {
        return field_fail(r, node, "begins with ~, which nobody expands (write ${HOME})");
    }
    const char *dir = "";
    const char *slash = "";
    if (text[0] != '/' && strncmp(text, "${", 2) != 0) {
        if (r->base_dir == NULL) {
            return field_fail(r, node, "is relative and there is no folder it starts from");
        }
        while (strncmp(text, "./", 2) == 0) {
            text += 2;
        }
        dir = r->base_dir;
        slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    }
    if (strlen(dir) + strlen(slash) + strlen(text) > MS_PATH_MAX) {
        return field_fail(r, node, "is too long a path");
    }
    snprintf(dst, MS_PATH_MAX + 1, "%s%s%s", dir, slash, text);
    return MS_OK;
}

/* ---- lists ---- */

static int read_list_whole(const struct field_reader *r, const struct tree_node *node, size_t n,
                           int64_t *ret)
{
    if (node->kind != TREE_LIST || node->n_items != n) {
        return field_fail(r, node, "does not fit");
    }
    for (size_t i = 0; i < n; i++) {
        int rc = field_read_whole(r, node->items[i].value, &ret[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return MS_OK;
}

int field_read_size(const struct field_reader *r, const struct tree_node *node, int64_t dst[2])
{
    int64_t size[2] = {0, 0};
    int rc = MS_OK;
    if (r->field->type != FIELD_SIZE_PAIR && node->kind == TREE_SCALAR) {
        rc = field_read_whole(r, node, &size[0]);
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
int field_read_padding(const struct field_reader *r, const struct tree_node *node, int64_t dst[4])
{
    int64_t pad[4] = {0, 0, 0, 0};
    int rc = MS_OK;
    if (node->kind == TREE_SCALAR) {
        rc = field_read_whole(r, node, &pad[0]);
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

static int read_reals(const struct field_reader *r, const struct tree_node *node, double *dst,
                      int *count)
{
    double values[MS_IMAGE_CHANNEL_MAX] = {0};
    if (node->kind != TREE_LIST || node->n_items == 0) {
        return field_fail(r, node, "is no list of numbers");
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
        int rc = field_read_real(r, node->items[i].value, &values[i]);
        if (rc < 0) {
            return rc;
        }
    }
    *count = (int)node->n_items;
    memcpy(dst, values, sizeof(values));
    return MS_OK;
}

int field_read(const struct field_reader *r, const struct tree_node *node, void *base)
{
    const struct field *field = r->field;
    void *dst = (char *)base + field->offset;
    int64_t whole = 0;
    int rc = MS_OK;
    switch (field->type) {
    case FIELD_NAME:
        return read_name(r, node, dst);
    case FIELD_PATH:
        return field_read_path(r, node, dst);
    case FIELD_OWN:
        return field->own->read(r, node, base);
    case FIELD_INT:
        rc = field_read_whole(r, node, &whole);
        if (rc == MS_OK) {
            *(int *)dst = (int)whole;
        }
        return rc;
    case FIELD_INT64:
        return field_read_whole(r, node, dst);
    case FIELD_UINT64:
        rc = field_read_whole(r, node, &whole);
        if (rc == MS_OK) {
            *(uint64_t *)dst = (uint64_t)whole;
        }
        return rc;
    case FIELD_REAL:
        return field_read_real(r, node, dst);
    case FIELD_BOOL:
        return read_bool(r, node, dst);
    case FIELD_ENUM:
        return field_read_choice(r, node, dst);
    case FIELD_SIZE:
    case FIELD_SIZE_PAIR:
        return field_read_size(r, node, dst);
    case FIELD_PADDING:
        return field_read_padding(r, node, dst);
    case FIELD_REALS:
        return read_reals(r, node, dst, (int *)((char *)base + field->count_offset));
    default:
        assert(0 && "sections are read by table_read.c");
        return MS_E_INVALID;
    }
}
