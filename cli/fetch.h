/* fetch.h - one result of a job: a ticket from the scheduler, the bytes from the node
 *
 *     Fetch -> ticket -> connect to the node -> token -> pieces ... digest -> the file has its name
 *                ^------------ the connection tore: again, from where it tore -------------' */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "cli/cli.h"
#include "cli/download.h"

/* What of a job's is wanted that its node has saved: not a result, but checkpoints (saved.h). */
struct fetch_saved {
    unsigned what;                  /* enum ms_saved */
    const char *directory, *prefix; /* of its checkpoints, as its file says */
    uint64_t step;                  /* 0: the best weights, or of a list */
    uint64_t borrower;              /* MS_SAVED_LEND: to which job */
    uint64_t bytes;                 /* of the file, as the list has it; of a list 0 */
    const char *name;               /* that the file gets here */
    const char *folder;             /* where it lies there, for people */
};

struct fetch_wish {
    uint64_t job;
    uint32_t rank;
    unsigned what;                   /* enum ms_fetch */
    const struct fetch_saved *saved; /* NULL: that; else of the node of what, in its place */
};

struct fetch_result {
    uint64_t bytes;
    uint64_t resumed; /* bytes that were there from an earlier time */
    int was_there;    /* all of them: nothing was fetched */
    char sha256[MS_SHA256_HEX];
    char node_id[MS_NAME_MAX + 1];
    char host_name[MS_HOST_MAX + 1];
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

/* Gets a small file of what a node has saved of the job, the list among others, as text (malloc'ed,
 * *ret_size bytes without the NUL), and which node that is. MS_E_UNSUPPORTED: it runs a release
 * that has none. */
int fetch_text(struct cli *cli, const struct fetch_wish *wish, char **ret, size_t *ret_size,
               struct fetch_result *ret_of, struct ms_err *err);

#endif
