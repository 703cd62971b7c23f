/* saved.h - what a job has saved on the nodes that it has or had: checkpoints, the best weights */
#ifndef CLI_SAVED_H
#define CLI_SAVED_H

#include "cli/cli.h"
#include "cli/fetch.h"
#include "libworker/train/saved_list.h"

#include <jansson.h>

struct cli_saved_node { /* that has something */
    uint32_t rank;      /* by which it is asked, ... */
    unsigned what;      /* ... and by what: enum ms_fetch */
    char node_id[MS_NAME_MAX + 1];
    char host_name[MS_HOST_MAX + 1];
    char folder[MS_PATH_MAX + 1];
};

struct cli_saved_one {
    struct saved_entry entry;
    size_t node;
};

struct cli_saved {
    uint64_t job;
    char directory[MS_PATH_MAX + 1]; /* its key checkpoint.directory; "": it keeps none */
    char prefix[MS_NAME_MAX + 1];
    struct cli_saved_node *nodes; /* in the order of ranks; owned, as ones */
    size_t n_nodes;
    struct cli_saved_one *ones; /* the highest step first; copies of one only once */
    size_t n;
    size_t n_damaged;
    int away_code;            /* not 0: a node that may have more of it is away, which was said */
    uint64_t last_step;       /* that the job made, as far as is known */
    struct saved_best best;   /* of the first node that has some; step 0: none has */
    struct saved_best *bests; /* of that node, where the job keeps several: the best first; owned */
    size_t n_bests;
    size_t best_node;
};

/* Asks each node of the job's ranks once and, where it lost some, the node with the newest that the
 * scheduler knows of. Nodes that do not answer are said on cli->err, unless all
 * are such: then the first one's error. A job that saved nothing is no error. */
int cli_saved_find(struct cli *cli, const Ms__JobInfo *job, struct cli_saved *ret,
                   struct ms_err *err);
void cli_saved_free(struct cli_saved *saved);

/* Could a node that is away have checkpoints that the others have not? */
int cli_saved_lacks(const struct cli_saved *saved);
/* Its away_code, and in words that there may be more. */
int cli_saved_fail_away(const struct cli_saved *saved, struct ms_err *err);

/* Position of the checkpoint that a word names: latest, its step, or its name, also as MindSpore
 * would call it. MS_E_NOT_FOUND names what there is; MS_E_INVALID: the word is none. The code of a
 * node that is away, and may have the one that is meant, goes before. */
int cli_saved_choose(const struct cli_saved *saved, const char *word, size_t *ret,
                     struct ms_err *err);

/* Position among bests of those that a word names: "best-1200", also with .safetensors. False: it
 * names none. */
int cli_saved_choose_best(const struct cli_saved *saved, const char *word, size_t *ret);

enum { CLI_SAVED_NAME_MAX = MS_NAME_MAX + 48 };
/* "lenet-1875", and MindSpore's "lenet-1_1875". Both return buf. */
const char *cli_saved_name(const struct cli_saved *saved, size_t i, char buf[CLI_SAVED_NAME_MAX]);
const char *cli_saved_other_name(const struct cli_saved *saved, size_t i,
                                 char buf[CLI_SAVED_NAME_MAX]);

/* As a table for people, or in words where there is none. */
int cli_saved_print(struct cli *cli, const struct cli_saved *saved, struct ms_err *err);
json_t *cli_saved_json(const struct cli_saved *saved); /* owned */

#endif
