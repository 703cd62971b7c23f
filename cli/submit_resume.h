/* submit_resume.h - msctl submit --resume: a new job goes on from a checkpoint of one that has
 * ended
 *
 *     list, manifest of it -> its file, or a new one, held against the manifest -> Submit, with the
 *     plan -> the old job's node lends what lies in its folder to the new job's number */
#ifndef CLI_SUBMIT_RESUME_H
#define CLI_SUBMIT_RESUME_H

#include "cli/saved.h"
#include "libworker/job/job.h"
#include "libworker/train/checkpoint_folder.h"

struct submit_resume {
    uint64_t job;           /* that has ended */
    ProtobufCMessage *info; /* a JobList with it alone; owned */
    struct cli_saved saved;
    size_t chosen; /* of saved.ones */
    struct checkpoint_manifest manifest;
};

/* word: a job's number, and behind a colon which of its checkpoints, the newest unless given. Its
 * manifest comes from the node. MS_E_REFUSED: the job has not ended. Fini in any case. */
int submit_resume_open(struct cli *cli, const char *word, struct submit_resume *ret,
                       struct ms_err *err);
void submit_resume_fini(struct submit_resume *resume);

/* The job's own file again, with the options of args. */
int submit_resume_load(const struct submit_resume *resume, const struct cli_args *args,
                       struct job *ret, struct ms_err *err);
/* Makes the job go on from there, by the checkpoint's plan (taken into *ret_plan) where it is
 * evaluated as that says. MS_E_REFUSED: it is another training, or ends before. */
int submit_resume_set(struct submit_resume *resume, struct job *job, char **ret_plan,
                      struct ms_err *err);
/* May all ranks of a job get nodes of other hosts? */
int submit_resume_may_miss(Ms__NodeInfo *const *nodes, size_t n, const char *host,
                           uint32_t workers);
/* Lends, and says on cli->err from where it goes on, and where it may get no node that has it. */
int submit_resume_lend(struct cli *cli, const struct submit_resume *resume, uint64_t job,
                       uint32_t workers, struct ms_err *err);

#endif
