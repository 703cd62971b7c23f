/* pages.c - lists of the scheduler that come page by page, and end */
#include "cli/pages.h"

#include "proto/grow.h"

#include <stdlib.h>
#include <string.h>

/* Nodes come and go while their list is read: twice what a scheduler holds is no list any more. */
enum { NODES_END = 2 * (MS_NODES_MAX + MS_LOST_NODES_MAX) };

/* ---- jobs ---- */

/* One page; *after becomes its last id. */
static int each_of_page(const Ms__JobList *page, uint64_t *after, cli_job_fn *fn, void *arg,
                        struct ms_err *err)
{
    for (size_t i = 0; i < page->n_jobs; i++) {
        if (page->jobs[i]->id <= *after) {
            return ms_fail(err, MS_E_PROTOCOL,
                           "the scheduler's list of jobs does not go on: job %llu comes behind "
                           "job %llu",
                           (unsigned long long)page->jobs[i]->id, (unsigned long long)*after);
        }
        int rc = fn(arg, page->jobs[i], err);
        if (rc != MS_OK) {
            return rc;
        }
        *after = page->jobs[i]->id;
    }
    return MS_OK;
}

int cli_pages_jobs(struct cli *cli, int all, cli_job_fn *fn, void *arg, struct ms_err *err)
{
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.all = all;
    for (int more = 1; more;) {
        ProtobufCMessage *msg = NULL;
        int rc =
            client_call(cli->client, MS_MSG_JOB_QUERY, &query.base, MS_MSG_JOB_LIST, &msg, err);
        if (rc != MS_OK) {
            return rc;
        }
        const Ms__JobList *page = (const Ms__JobList *)msg;
        rc = each_of_page(page, &query.after, fn, arg, err);
        more = page->more && page->n_jobs > 0;
        ms_wire_free(msg);
        if (rc != MS_OK) {
            return rc;
        }
    }
    return MS_OK;
}

/* ---- nodes ---- */

void cli_nodes_free(struct cli_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        ms_wire_free(nodes->msgs[i]);
    }
    free(nodes->msgs);
    free(nodes->all.nodes);
}

/* Takes msg over. */
static int nodes_add(struct cli_nodes *nodes, ProtobufCMessage *msg, struct ms_err *err)
{
    const Ms__NodeList *page = (const Ms__NodeList *)msg;
    Ms__NodeList *all = &nodes->all;
    ProtobufCMessage **msgs =
        ms_grow(nodes->msgs, nodes->n, 1, sizeof(ProtobufCMessage *), &nodes->msgs_room);
    if (msgs == NULL) {
        ms_wire_free(msg);
        return ms_fail(err, MS_E_NOMEM, "no memory for the list of nodes");
    }
    nodes->msgs = msgs;
    nodes->msgs[nodes->n++] = msg;
    if (all->n_nodes + page->n_nodes > NODES_END) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "the scheduler's list of nodes does not end: more than %d came", NODES_END);
    }
    Ms__NodeInfo **rows = ms_grow(all->nodes, all->n_nodes, page->n_nodes, sizeof(Ms__NodeInfo *),
                                  &nodes->nodes_room);
    if (rows == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the list of nodes");
    }
    all->nodes = rows;
    for (size_t i = 0; i < page->n_nodes; i++) {
        all->nodes[all->n_nodes++] = page->nodes[i];
    }
    return MS_OK;
}

int cli_pages_nodes(struct cli *cli, struct cli_nodes *ret, struct ms_err *err)
{
    Ms__NodeQuery query = MS__NODE_QUERY__INIT;
    for (int more = 1; more;) {
        ProtobufCMessage *msg = NULL;
        int rc =
            client_call(cli->client, MS_MSG_NODE_QUERY, &query.base, MS_MSG_NODE_LIST, &msg, err);
        if (rc == MS_OK) {
            rc = nodes_add(ret, msg, err);
        }
        if (rc != MS_OK) {
            return rc;
        }
        const Ms__NodeList *page = (const Ms__NodeList *)msg;
        more = page->more && page->n_nodes > 0;
        if (more && strcmp(page->next, query.after) == 0) {
            return ms_fail(err, MS_E_PROTOCOL,
                           "the scheduler's list of nodes does not go on behind '%.64s'",
                           page->next);
        }
        query.after = page->next; /* lives as long as its page */
    }
    return MS_OK;
}
