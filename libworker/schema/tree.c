/* tree.c - one YAML (or JSON) document as a tree whose every node knows where it stands */
#include "libworker/schema/tree.h"

#include "proto/grow.h"
#include "proto/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { ORIGIN_SHOWN_MAX = 120 };

struct builder {
    const char *text;
    size_t size;
    const char *origin;
    int with_lines;
    struct tree_node *root;
    struct tree_node *stack[MS_DOCUMENT_DEPTH_MAX];
    char *key[MS_DOCUMENT_DEPTH_MAX]; /* of the map at this depth: read, its value not yet */
    yaml_mark_t key_mark[MS_DOCUMENT_DEPTH_MAX];
    size_t depth;
    size_t n_nodes;
};

/* ---- errors ---- */

static int fail_va(const char *origin, size_t line, size_t column, struct ms_err *err,
                   const char *fmt, va_list args) MS_PRINTF(5, 0);
static int fail_va(const char *origin, size_t line, size_t column, struct ms_err *err,
                   const char *fmt, va_list args)
{
    char text[MS_ERR_TEXT_MAX];
    vsnprintf(text, sizeof(text), fmt, args);
    size_t length = strlen(origin);
    const char *tail = length > ORIGIN_SHOWN_MAX ? origin + length - ORIGIN_SHOWN_MAX : origin;
    const char *dots = tail != origin ? "..." : "";
    if (line == 0) {
        return ms_fail(err, MS_E_INVALID, "%s%s: %s", dots, tail, text);
    }
    return ms_fail(err, MS_E_INVALID, "%s%s:%zu:%zu: %s", dots, tail, line, column, text);
}

int tree_fail(const struct tree_node *node, struct ms_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_va(node->origin, node->line, node->column, err, fmt, args);
    va_end(args);
    return rc;
}

int tree_fail_at(const char *origin, size_t line, size_t column, struct ms_err *err,
                 const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_va(origin, line, column, err, fmt, args);
    va_end(args);
    return rc;
}

static int fail_mark(const struct builder *b, yaml_mark_t mark, struct ms_err *err, const char *fmt,
                     ...) MS_PRINTF(4, 5);
static int fail_mark(const struct builder *b, yaml_mark_t mark, struct ms_err *err, const char *fmt,
                     ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_va(b->origin, b->with_lines ? mark.line + 1 : 0, mark.column + 1, err, fmt, args);
    va_end(args);
    return rc;
}

/* Line and column of a byte: libyaml's reader, which finds bad bytes, knows offsets only. */
static void locate(const struct builder *b, size_t offset, yaml_mark_t *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (size_t i = 0; i < offset && i < b->size; i++) {
        ret->column++;
        if (b->text[i] == '\n') {
            ret->line++;
            ret->column = 0;
        }
    }
}

/* libyaml counts characters, not bytes, within a line and in mark.index. */
static char byte_at(const struct builder *b, const yaml_mark_t *mark)
{
    size_t i = 0;
    for (size_t line = 0; i < b->size && line < mark->line; i++) {
        line += b->text[i] == '\n';
    }
    for (size_t column = 0; i < b->size && column < mark->column; column++) {
        do {
            i++;
        } while (i < b->size && ((unsigned char)b->text[i] & 0xC0U) == 0x80U);
    }
    return i < b->size ? b->text[i] : '\0';
}

/* A ${ before this place of its line that no quotation mark precedes: the likeliest slip of a job
 * file, for { ends a plain word within a list or a section on one line. */
static int has_bare_variable(const struct builder *b, const yaml_mark_t *mark)
{
    size_t i = 0;
    for (size_t line = 0; i < b->size && line < mark->line; i++) {
        line += b->text[i] == '\n';
    }
    char before = '\0';
    for (size_t column = 0; i < b->size && b->text[i] != '\n' && column <= mark->column; column++) {
        if (b->text[i] == '{' && before == '$') {
            return i < 2 || strchr("\"'", b->text[i - 2]) == NULL;
        }
        before = b->text[i++];
    }
    return 0;
}

/* libyaml's words for a tab are "found character that cannot start any token". */
static int fail_parser(const struct builder *b, const yaml_parser_t *parser, struct ms_err *err)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", b->origin);
    }
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) {
        locate(b, parser->problem_offset, &mark);
        if (parser->problem != NULL && strstr(parser->problem, "control") != NULL) {
            return fail_mark(b, mark, err,
                             "a control character (0x%02x) has no place in a document",
                             (unsigned)parser->problem_value);
        }
        return fail_mark(b, mark, err, "the bytes are not UTF-8; save the file as UTF-8 text");
    }
    if (byte_at(b, &mark) == '\t') {
        return fail_mark(b, mark, err, "a tab cannot indent YAML; use spaces");
    }
    /* a colon is missed on the next line, where something else begins */
    int is_key = parser->context != NULL && strstr(parser->context, "simple key") != NULL;
    return fail_mark(
        b, is_key ? parser->context_mark : mark, err, "no valid YAML: %s%s%s%s",
        parser->context != NULL ? parser->context : "", parser->context != NULL ? ", " : "",
        parser->problem != NULL ? parser->problem : "syntax error",
        has_bare_variable(b, &mark) ? "; within { } or [ ] put \"${...}\" into quotes" : "");
}

/* ---- nodes ---- */

void tree_destroy(struct tree_node *node)
{
    if (node == NULL) {
        return;
    }
    for (size_t i = 0; i < node->n_items; i++) {
        free(node->items[i].key);
        tree_destroy(node->items[i].value); /* at most MS_DOCUMENT_DEPTH_MAX deep */
    }
    free(node->items);
    free(node->text);
    free(node);
}

static struct tree_node *node_create(enum tree_kind kind, const char *origin)
{
    struct tree_node *node = calloc(1, sizeof(*node));
    if (node != NULL) {
        node->kind = kind;
        node->origin = origin;
    }
    return node;
}

/* Takes key and value, on failure too. */
static int append(struct tree_node *parent, char *key, size_t line, size_t column,
                  struct tree_node *value, struct ms_err *err)
{
    struct tree_item *grown =
        ms_grow(parent->items, parent->n_items, 1, sizeof(*grown), &parent->items_room);
    if (grown == NULL) {
        free(key);
        tree_destroy(value);
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", parent->origin);
    }
    parent->items = grown;
    parent->items[parent->n_items++] = (struct tree_item){key, line, column, value};
    return MS_OK;
}

struct tree_item *tree_find(const struct tree_node *map, const char *key)
{
    for (size_t i = 0; map != NULL && map->kind == TREE_MAP && i < map->n_items; i++) {
        if (strcmp(map->items[i].key, key) == 0) {
            return &map->items[i];
        }
    }
    return NULL;
}

int tree_is_null(const struct tree_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != TREE_SCALAR || !node->plain) {
        return 0;
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(nulls); i++) {
        if (strcmp(node->text, nulls[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* ---- events to nodes ---- */

/* Hangs a finished or begun node where the document is; takes it. */
static int attach(struct builder *b, struct tree_node *node, struct ms_err *err)
{
    if (b->depth == 0) {
        b->root = node; /* a second root cannot come: the stream has one document */
        return MS_OK;
    }
    size_t top = b->depth - 1;
    char *key = b->key[top];
    b->key[top] = NULL;
    yaml_mark_t mark = b->key_mark[top];
    return append(b->stack[top], key, b->with_lines ? mark.line + 1 : 0, mark.column + 1, node,
                  err);
}

static int begin_node(struct builder *b, const yaml_event_t *event, enum tree_kind kind,
                      struct tree_node **ret, struct ms_err *err)
{
    if (++b->n_nodes > MS_DOCUMENT_NODES_MAX) {
        return fail_mark(b, event->start_mark, err, "more than %d values: too many for a document",
                         MS_DOCUMENT_NODES_MAX);
    }
    if (kind != TREE_SCALAR && b->depth == MS_DOCUMENT_DEPTH_MAX) {
        return fail_mark(b, event->start_mark, err, "nested deeper than %d levels",
                         MS_DOCUMENT_DEPTH_MAX);
    }
    struct tree_node *node = node_create(kind, b->origin);
    if (node == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", b->origin);
    }
    if (b->with_lines) {
        node->line = event->start_mark.line + 1;
        node->column = event->start_mark.column + 1;
    }
    *ret = node;
    return MS_OK;
}

/* Anchors and tags on any event that could carry them. */
static int check_plainness(const struct builder *b, const yaml_event_t *event, const char *anchor,
                           const char *tag, struct ms_err *err)
{
    if (anchor != NULL) {
        return fail_mark(b, event->start_mark, err,
                         "anchors (&%.40s) and aliases are not used here; write it out", anchor);
    }
    if (tag != NULL) {
        return fail_mark(b, event->start_mark, err, "tags (%.40s) are not used here; leave it out",
                         tag);
    }
    return MS_OK;
}

static int on_key(struct builder *b, const yaml_event_t *event, char *key, struct ms_err *err)
{
    size_t top = b->depth - 1;
    const struct tree_item *old = tree_find(b->stack[top], key);
    if (old != NULL) {
        int rc = fail_mark(b, event->start_mark, err, "%.60s stands twice: first on line %zu", key,
                           old->line);
        free(key);
        return rc;
    }
    b->key[top] = key;
    b->key_mark[top] = event->start_mark;
    return MS_OK;
}

static int on_scalar(struct builder *b, const yaml_event_t *event, struct ms_err *err)
{
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length) {
        return fail_mark(b, event->start_mark, err, "a NUL byte has no place in a document");
    }
    char *text = strdup(value);
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", b->origin);
    }
    if (b->depth > 0 && b->stack[b->depth - 1]->kind == TREE_MAP && b->key[b->depth - 1] == NULL) {
        return on_key(b, event, text, err);
    }
    struct tree_node *node = NULL;
    int rc = begin_node(b, event, TREE_SCALAR, &node, err);
    if (rc < 0) {
        free(text);
        return rc;
    }
    node->text = text;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return attach(b, node, err);
}

static int on_begin(struct builder *b, const yaml_event_t *event, enum tree_kind kind,
                    struct ms_err *err)
{
    if (b->depth > 0 && b->stack[b->depth - 1]->kind == TREE_MAP && b->key[b->depth - 1] == NULL) {
        return fail_mark(b, event->start_mark, err,
                         "a key must be a word, not a list or a section");
    }
    struct tree_node *node = NULL;
    int rc = begin_node(b, event, kind, &node, err);
    if (rc == MS_OK) {
        rc = attach(b, node, err);
    }
    if (rc == MS_OK) {
        b->stack[b->depth++] = node;
    }
    return rc;
}

static int on_event(struct builder *b, const yaml_event_t *event, struct ms_err *err)
{
    int rc = MS_OK;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return fail_mark(b, event->start_mark, err,
                         "aliases (*%.40s) are not used here; write the value out",
                         (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        rc = check_plainness(b, event, (const char *)event->data.scalar.anchor,
                             (const char *)event->data.scalar.tag, err);
        return rc < 0 ? rc : on_scalar(b, event, err);
    case YAML_SEQUENCE_START_EVENT:
        rc = check_plainness(b, event, (const char *)event->data.sequence_start.anchor,
                             (const char *)event->data.sequence_start.tag, err);
        return rc < 0 ? rc : on_begin(b, event, TREE_LIST, err);
    case YAML_MAPPING_START_EVENT:
        rc = check_plainness(b, event, (const char *)event->data.mapping_start.anchor,
                             (const char *)event->data.mapping_start.tag, err);
        return rc < 0 ? rc : on_begin(b, event, TREE_MAP, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return MS_OK;
    case YAML_DOCUMENT_START_EVENT:
        return b->root == NULL ? MS_OK
                               : fail_mark(b, event->start_mark, err,
                                           "a second document begins; one file holds one job");
    default:
        return MS_OK;
    }
}

int tree_parse(const char *text, size_t size, const char *origin, int with_lines,
               struct tree_node **ret, struct ms_err *err)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* of byte order: editors of Windows begin with it */
    if (size >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0) {
        text += sizeof(mark) - 1;
        size -= sizeof(mark) - 1;
    }
    struct builder b = {.text = text, .size = size, .origin = origin, .with_lines = with_lines};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory to read it", origin);
    }
    /* no bytes may come without a place for them; libyaml wants one */
    yaml_parser_set_input_string(&parser, (const unsigned char *)(size > 0 ? text : ""), size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    int rc = MS_OK;
    for (int more = 1; more && rc == MS_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = fail_parser(&b, &parser, err);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        rc = on_event(&b, &event, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < MS_DOCUMENT_DEPTH_MAX; i++) {
        free(b.key[i]);
    }
    if (rc == MS_OK && b.root == NULL) {
        rc = tree_fail_at(origin, 0, 0, err, "the file is empty; examples/ has jobs to start from");
    }
    if (rc < 0) {
        tree_destroy(b.root);
        return rc;
    }
    *ret = b.root;
    return MS_OK;
}

/* ---- overrides ---- */

/* The map below parent at key, made when missing or null. */
static int descend(struct tree_node *parent, const char *key, size_t length, const char *origin,
                   struct tree_node **ret, struct ms_err *err)
{
    char *name = strndup(key, length);
    struct tree_node *map = node_create(TREE_MAP, origin);
    struct tree_item *item = name != NULL ? tree_find(parent, name) : NULL;
    int rc = MS_OK;
    if (name == NULL || map == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.120s: no memory", origin);
    } else if (item == NULL) {
        rc = append(parent, name, 0, 0, map, err); /* takes both */
        *ret = rc == MS_OK ? map : *ret;
        return rc;
    } else if (item->value->kind == TREE_MAP) {
        *ret = item->value;
    } else if (tree_is_null(item->value)) {
        tree_destroy(item->value);
        item->value = map;
        item->line = 0; /* errors now point at the override */
        *ret = map;
        map = NULL;
    } else {
        rc = tree_fail_at(origin, 0, 0, err, "%.60s is %s, so nothing can be set below it", name,
                          item->value->kind == TREE_LIST ? "a list (give it whole: KEY=[...])"
                                                         : "a value");
    }
    free(name);
    tree_destroy(map);
    return rc;
}

int tree_set(struct tree_node *root, const char *path, struct tree_node *value, struct ms_err *err)
{
    const char *origin = value->origin;
    struct tree_node *map = root;
    const char *dot = NULL;
    for (int depth = 1; (dot = strchr(path, '.')) != NULL; depth++) {
        if (dot == path || depth == MS_DOCUMENT_DEPTH_MAX) {
            tree_destroy(value);
            return tree_fail_at(origin, 0, 0, err, "the key is no dotted path of names");
        }
        int rc = descend(map, path, (size_t)(dot - path), origin, &map, err);
        if (rc < 0) {
            tree_destroy(value);
            return rc;
        }
        path = dot + 1;
    }
    if (*path == '\0') {
        tree_destroy(value);
        return tree_fail_at(origin, 0, 0, err, "the key is no dotted path of names");
    }
    struct tree_item *item = tree_find(map, path);
    if (item != NULL) {
        tree_destroy(item->value);
        item->value = value;
        item->line = 0;
        return MS_OK;
    }
    char *name = strdup(path);
    if (name == NULL) {
        tree_destroy(value);
        return ms_fail(err, MS_E_NOMEM, "%.120s: no memory", origin);
    }
    return append(map, name, 0, 0, value, err);
}

int tree_append(struct tree_node *list, struct tree_node *value, struct ms_err *err)
{
    return append(list, NULL, 0, 0, value, err);
}
