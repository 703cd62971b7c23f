/* node_words.c - what a node does, and what is wrong with it; pure */
#include "cli/node_words.h"

#include <stdio.h>
#include <string.h>

const char *cli_node_words(char *dst, size_t size, const Ms__NodeInfo *node)
{
    int has_reason = node->reason[0] != '\0';
    int has_work =
        node->activity[0] != '\0' && (!has_reason || strcmp(node->activity, "idle") != 0);
    snprintf(dst, size, "%s%s%s", has_work ? node->activity : "",
             has_work && has_reason ? "; " : "", node->reason);
    return dst;
}
