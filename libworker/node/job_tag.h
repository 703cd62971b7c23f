/* job_tag.h - whose a job's folder is: what its file .job_tag says
 *
 * The file is there whole or not at all, whenever the power goes: one that is empty or torn would
 * make the folder another job's, and its results could not be fetched any more. Any thread. */
#ifndef JOB_TAG_H
#define JOB_TAG_H

#include "proto/err.h"

enum job_tag_owner {
    JOB_TAG_OURS,
    JOB_TAG_NOBODYS,  /* yet: it is empty */
    JOB_TAG_ANOTHERS, /* or of something that wrote no tag */
};

/* MS_E_IO: this process cannot look now, as without descriptors: it is nobody else's for that.
 * path: for the error. */
int job_tag_whose(int folder_fd, const char *path, const char *tag, enum job_tag_owner *ret,
                  struct ms_err *err);
/* Is it another's by its word, or cannot be read now? Not where it has no tag, as those of older
 * releases. */
int job_tag_is_anothers(int folder_fd, const char *tag);
/* It is this job's from now on. path: for the error, MS_E_IO. */
int job_tag_write(int folder_fd, const char *path, const char *tag, struct ms_err *err);

#endif
