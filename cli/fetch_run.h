/* fetch_run.h - inside of msctl fetch: what one call of it brings, and how that went */
#ifndef CLI_FETCH_RUN_H
#define CLI_FETCH_RUN_H

#include "cli/fetch.h"
#include "cli/saved.h"

struct fetch_run {
    struct cli *cli;
    uint64_t job;
    ProtobufCMessage *info; /* a JobList with it alone; owned */
    char dir[MS_PATH_MAX + 1];
    int dir_fd;
    int has_ended; /* the job: what is not there will not come */
    char state[16];
    uint32_t workers;
    int is_good; /* it succeeded: everything is there */
    int resumes; /* ... from a checkpoint of another training: its metrics begin behind that */
    uint64_t steps;
    int made_dir; /* by us: goes again where nothing comes into it */
    int force;
    json_t *files, *missing; /* NULL: for people */
    int64_t drawn_ms;
    char name[DOWNLOAD_NAME_MAX]; /* in hand */
    int rc;                       /* of the first failure */
    struct ms_err err;
    unsigned n_good;
    char last[MS_ERR_TEXT_MAX];         /* why the last one did not come */
    int is_same;                        /* ... which was said before, word by word */
    char weights_sha256[MS_SHA256_HEX]; /* that the job ended with; "": unknown */
};

static inline const Ms__JobInfo *fetch_run_info(const struct fetch_run *run)
{
    return ((const Ms__JobList *)run->info)->jobs[0];
}

/* Gets one file and says how that went. counts: that it is missing is a failure. Returns below 0
 * where nothing more can come. */
int fetch_run_get(struct fetch_run *run, const struct fetch_wish *wish, int counts,
                  struct fetch_result *ret, int *ret_came);
/* Of the file in hand, which came, or was there already. As cli_check_output. */
int fetch_run_tell_good(struct fetch_run *run, const struct fetch_result *got);
/* Of the file in hand. counts: it is a failure of the whole. */
void fetch_run_tell_bad(struct fetch_run *run, int code, const char *text, int counts);

/* ---- fetch_job.c: the job itself ---- */

/* Its job.json, and its plan.txt where it has a plan, as msctl run leaves them beside results: what
 * came can be evaluated, exported and gone on from. counts: as fetch_run_tell_bad. As
 * fetch_run_get.
 */
int fetch_job_files(struct fetch_run *run, int counts);

/* ---- fetch_saved.c: what the job has saved ---- */

/* Is there what the word names? NULL: nothing is asked for. */
int fetch_saved_check(const struct cli_saved *saved, const char *which, struct ms_err *err);
/* Brings that, data before manifests, and looks whether it is whole. As fetch_run_get. */
int fetch_saved_all(struct fetch_run *run, const struct cli_saved *saved, const char *which);
/* Prints what there is. */
int fetch_saved_list(struct fetch_run *run, struct ms_err *err);

#endif
