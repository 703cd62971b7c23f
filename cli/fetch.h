/* fetch.h - one result of a job: a ticket from the scheduler, the bytes from the node
 *
 *     Fetch -> ticket -> connect to the node -> token -> pieces ... digest -> the file has its name
 *                ^------------ the connection tore: again, from where it tore -------------' */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "cli/cli.h"
#include "cli/download.h"

struct fetch_wish {
    uint64_t job;
    uint32_t rank;
    unsigned what; /* enum ms_fetch */
};

struct fetch_result {
    uint64_t bytes;
    uint64_t resumed; /* bytes that were there from an earlier time */
    int was_there;    /* all of them: nothing was fetched */
    char sha256[MS_SHA256_HEX];
    char node_id[MS_NAME_MAX + 1];
};

/* The name that a result gets: "weights.safetensors", "metrics.jsonl", "worker_<rank>.log". */
const char *fetch_name(const struct fetch_wish *wish, char *buf, size_t size);

/* Gets one result into the folder; one that is there already and the same as on the node is left
 * as it is; metrics and logs that have grown since go on where it ends; a different one is
 * MS_E_EXISTS unless forced. on_progress (NULL allowed) hears of
 * bytes. The scheduler's refusal comes as it is; MS_E_UNREACHABLE, MS_E_CLOSED: the node cannot be
 * reached, its host and the file's path there are named, and what came is kept. */
int fetch_one(struct cli *cli, const struct fetch_wish *wish, int dir_fd, int force,
              void (*on_progress)(void *arg, uint64_t have, uint64_t size), void *arg,
              struct fetch_result *ret, struct ms_err *err);

#endif
