/* job_pattern.c - patterns of names: matched, read, written, and which names are nearest to one */
#include "libworker/job/job_pattern.h"

#include "libworker/job/job.h"
#include "proto/text.h"

#include <stdio.h>
#include <string.h>

/* The last star is the only one to come back to: what was before it has its place already. */
int job_glob(const char *pattern, const char *name)
{
    const char *star = NULL;
    const char *behind = NULL; /* what of the name that star does not stand for */
    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            behind = name;
        } else if (*pattern != '\0' && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++behind;
        } else {
            return 0;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

int job_pattern_read(const struct field_reader *r, const struct tree_node *node,
                     char dst[MS_PATTERN_MAX + 1])
{
    if (node->kind != TREE_SCALAR || node->text[0] == '\0') {
        return field_fail(r, node, "is no pattern");
    }
    if (strlen(node->text) > MS_PATTERN_MAX) {
        return field_fail(r, node, "is longer than any name");
    }
    if (!ms_text_is_valid(node->text, MS_TEXT_LINE)) {
        return field_fail(r, node, "has a control character in it");
    }
    snprintf(dst, MS_PATTERN_MAX + 1, "%s", node->text);
    return MS_OK;
}

int job_patterns_read(const struct field_reader *r, const struct tree_node *node,
                      char (*dst)[MS_PATTERN_MAX + 1], int max, int *ret_n)
{
    const size_t n = node->kind == TREE_LIST ? node->n_items : 1;
    if (n == 0 || n > (size_t)max) {
        return tree_fail(node, r->err, "%s has %zu patterns; give 1 to %d", r->shown, n, max);
    }
    for (size_t i = 0; i < n; i++) {
        const struct tree_node *one = node->kind == TREE_LIST ? node->items[i].value : node;
        int rc = job_pattern_read(r, one, dst[i]);
        if (rc < 0) {
            return rc;
        }
    }
    *ret_n = (int)n;
    return MS_OK;
}

json_t *job_patterns_write(const char (*patterns)[MS_PATTERN_MAX + 1], int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        list = list_append(list, json_string(patterns[i]));
    }
    return list;
}

static size_t distance(const char *pattern, const char *name)
{
    size_t row[JOB_NEAREST_NAME];
    const size_t n = strnlen(name, JOB_NEAREST_NAME - 1);
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (; *pattern != '\0'; pattern++) {
        size_t above = row[0]; /* of the row before, one to the left */
        row[0] += *pattern != '*';
        for (size_t j = 1; j <= n; j++) {
            const size_t kept = row[j];
            const int is_same = *pattern == '?' || *pattern == name[j - 1];
            size_t best = above + !is_same;
            best = kept + (*pattern != '*') < best ? kept + (*pattern != '*') : best;
            best = row[j - 1] + (*pattern != '*') < best ? row[j - 1] + (*pattern != '*') : best;
            row[j] = best;
            above = kept;
        }
    }
    return row[n];
}

void job_nearest_offer(struct job_nearest *near, const char *name)
{
    const size_t edits = distance(near->pattern, name);
    int at = near->n;
    while (at > 0 && edits < near->edits[at - 1]) {
        at--;
    }
    if (at == JOB_NEAREST) {
        return;
    }
    near->n += near->n < JOB_NEAREST;
    const size_t rest = (size_t)(near->n - 1 - at);
    memmove(&near->names[at + 1], &near->names[at], rest * sizeof(near->names[0]));
    memmove(&near->edits[at + 1], &near->edits[at], rest * sizeof(near->edits[0]));
    near->names[at] = name;
    near->edits[at] = edits;
}

void job_nearest_say(const struct job_nearest *near, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < near->n && used < size; i++) {
        int wrote = snprintf(buf + used, size - used, "%s%s", i > 0 ? ", " : "", near->names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
