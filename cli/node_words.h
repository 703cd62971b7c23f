/* node_words.h - what a node does, and what is wrong with it; pure */
#ifndef CLI_NODE_WORDS_H
#define CLI_NODE_WORDS_H

#include "proto/cluster.pb-c.h"

#include <stddef.h>

enum { CLI_NODE_WORDS_MAX = 512 };

/* "job 3 rank 1", "idle"; behind it, or where there is nothing to say before, what is wrong: "job 3
 * rank 1; set aside: ...", "set aside: ...". */
const char *cli_node_words(char *dst, size_t size, const Ms__NodeInfo *node);
/* The scheduler has heard of it since it started: last_seen_ms is known. */
int cli_node_is_heard(const Ms__NodeInfo *node);
/* How long ago that was, "": it was not. buf: CLI_FORMAT_MAX. */
const char *cli_node_seen(char *buf, const Ms__NodeInfo *node);

#endif
