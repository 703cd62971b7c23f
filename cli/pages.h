/* pages.h - lists of the scheduler that come page by page, and end */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "cli/cli.h"

/* Called for each job; below 0 ends the list and is its result. job lives as long as the call. */
typedef int cli_job_fn(void *arg, const Ms__JobInfo *job, struct ms_err *err);

/* All jobs in the order of their ids; all: those that have ended, too. MS_E_PROTOCOL where a page
 * does not go on behind the one before. */
int cli_pages_jobs(struct cli *cli, int all, cli_job_fn *fn, void *arg, struct ms_err *err);

/* The pages of the list of nodes, and one list that borrows their rows. */
struct cli_nodes {
    ProtobufCMessage **msgs;
    size_t n, msgs_room, nodes_room;
    Ms__NodeList all;
};

/* All nodes. ret: set up with CLI_NODES_INIT; to be freed on failure, too. MS_E_PROTOCOL as above,
 * and where there are more than a scheduler holds. */
#define CLI_NODES_INIT ((struct cli_nodes){.msgs = NULL, .all = MS__NODE_LIST__INIT})
int cli_pages_nodes(struct cli *cli, struct cli_nodes *ret, struct ms_err *err);
void cli_nodes_free(struct cli_nodes *nodes);

#endif
