/* node_words.c - what a node does, and what is wrong with it; pure */
#include "cli/node_words.h"

#include "cli/format.h"
#include "proto/state_words.h"

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

/* 0 is what a scheduler says that does not know, too; of a node that is there, or left with a word,
 * it does. */
int cli_node_is_heard(const Ms__NodeInfo *node)
{
    return node->last_seen_ms > 0 || (strcmp(node->state, MS_NODE_STATE_NEW) != 0 &&
                                      strcmp(node->state, MS_NODE_STATE_LOST) != 0);
}

const char *cli_node_seen(char *buf, const Ms__NodeInfo *node)
{
    buf[0] = '\0';
    if (!cli_node_is_heard(node)) {
        return buf;
    }
    return cli_format_duration(buf, (double)node->last_seen_ms / 1000);
}
