/* tree.h - one YAML (or JSON) document as a tree whose every node knows where it stands
 *
 * The subset that a job needs: maps with plain keys, lists, scalars. Anchors, aliases and tags are
 * refused: they buy nothing in a file of forty lines, and a chain of aliases is a bomb. Built from
 * libyaml's events; one thread. */
#ifndef SCHEMA_TREE_H
#define SCHEMA_TREE_H

#include "proto/err.h"

#include <stddef.h>

enum tree_kind { TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree_node;

struct tree_item { /* an entry of a map, or of a list (key NULL) */
    char *key;
    size_t line, column; /* of the key */
    struct tree_node *value;
};

struct tree_node {
    enum tree_kind kind;
    const char *origin;  /* borrowed: the file's name, or "--set KEY" */
    size_t line, column; /* from 1; 0: of an override, which has none */
    char *text;          /* TREE_SCALAR: without NUL bytes inside */
    int plain;           /* TREE_SCALAR: not quoted, so it may be a number, a boolean or null */
    struct tree_item *items;
    size_t n_items, items_room;
};

/* Parses exactly one document. origin is borrowed for the tree's life. with_lines 0: nodes keep no
 * line. Errors (MS_E_INVALID) begin with origin:line:column. Returns owned. */
int tree_parse(const char *text, size_t size, const char *origin, int with_lines,
               struct tree_node **ret, struct ms_err *err);
void tree_destroy(struct tree_node *node); /* NULL allowed */

/* The item of a map, or NULL. */
struct tree_item *tree_find(const struct tree_node *map, const char *key);
/* null, ~ or nothing at all. */
int tree_is_null(const struct tree_node *node);

/* Puts value at a dotted path below root, making maps on the way and replacing what is there.
 * Takes value in any case. */
int tree_set(struct tree_node *root, const char *path, struct tree_node *value, struct ms_err *err);

/* Puts value behind the last one of a list. Takes value in any case. */
int tree_append(struct tree_node *list, struct tree_node *value, struct ms_err *err);

/* ms_fail with "origin:line:column: " before the text; the head of a long origin is left out. */
int tree_fail(const struct tree_node *node, struct ms_err *err, const char *fmt, ...)
    MS_PRINTF(3, 4);
int tree_fail_at(const char *origin, size_t line, size_t column, struct ms_err *err,
                 const char *fmt, ...) MS_PRINTF(5, 6);

#endif
