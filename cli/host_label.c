/* host_label.c - which nodes stand together in a list, and under what name */
#include "cli/host_label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_host(const void *a, const void *b)
{
    const Ms__NodeInfo *x = *(Ms__NodeInfo *const *)a;
    const Ms__NodeInfo *y = *(Ms__NodeInfo *const *)b;
    int order = strcmp(x->host_name, y->host_name);
    order = order != 0 ? order : strcmp(x->cert_name, y->cert_name);
    return order != 0 ? order : strverscmp(x->node_id, y->node_id);
}

void cli_hosts_sort(Ms__NodeInfo **nodes, size_t n)
{
    if (n > 0) {
        qsort(nodes, n, sizeof(nodes[0]), by_host);
    }
}

static int is_same_host(const Ms__NodeInfo *a, const Ms__NodeInfo *b)
{
    return strcmp(a->host_name, b->host_name) == 0;
}

/* They are sorted: of two neighbours that differ, and have one each. */
static int has_other_certificate(const Ms__NodeInfo *a, const Ms__NodeInfo *b)
{
    return a->cert_name[0] != '\0' && b->cert_name[0] != '\0' &&
           strcmp(a->cert_name, b->cert_name) != 0;
}

static int is_ambiguous(Ms__NodeInfo *const *nodes, size_t n, size_t i)
{
    int is = 0;
    for (size_t k = i; k > 0 && !is && is_same_host(nodes[k - 1], nodes[i]); k--) {
        is = has_other_certificate(nodes[k - 1], nodes[k]);
    }
    for (size_t k = i + 1; k < n && !is && is_same_host(nodes[k], nodes[i]); k++) {
        is = has_other_certificate(nodes[k - 1], nodes[k]);
    }
    return is;
}

const char *cli_host_label(Ms__NodeInfo *const *nodes, size_t n, size_t i,
                           char buf[CLI_HOST_LABEL_MAX])
{
    const Ms__NodeInfo *node = nodes[i];
    int is_first = i == 0 || !is_same_host(nodes[i - 1], node);
    if (!is_first && strcmp(nodes[i - 1]->cert_name, node->cert_name) == 0) {
        return NULL;
    }
    int names_it = node->cert_name[0] != '\0' && is_ambiguous(nodes, n, i);
    if (!is_first && !names_it) {
        return NULL;
    }
    snprintf(buf, CLI_HOST_LABEL_MAX, names_it ? "%s (%s)" : "%s", node->host_name,
             node->cert_name);
    return buf;
}

int cli_host_is_even(Ms__NodeInfo *const *nodes, size_t n, size_t i)
{
    char label[CLI_HOST_LABEL_MAX];
    int is_even = 1;
    while (i > 0 && cli_host_label(nodes, n, i, label) == NULL) {
        i--;
    }
    for (size_t k = i + 1; k < n && cli_host_label(nodes, n, k, label) == NULL; k++) {
        is_even &= nodes[k]->cores == 0 || /* not heard of */
                   (nodes[k]->cores == nodes[i]->cores && nodes[k]->physical == nodes[i]->physical);
    }
    return is_even;
}
