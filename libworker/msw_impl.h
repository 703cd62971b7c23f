/* msw_impl.h - what the files of the public library share; nothing of it is visible outside */
#ifndef MSW_IMPL_H
#define MSW_IMPL_H

#include "libworker/job/job.h"
#include "libworker/msworker.h"
#include "libworker/train/model_copy.h"
#include "libworker/train/train.h"

#include <locale.h>

enum { MSW_TRAIN_DATA, MSW_TEST_DATA, MSW_DATA_SETS };

struct msw_job {
    struct job job;
    /* of one that a program made: its data, by the job's pointers */
    struct msw_data data[MSW_DATA_SETS];
    struct data_callback callbacks[MSW_DATA_SETS];
};

/* Text and code for the program, where rc is below 0; to NULL allowed. Returns rc. */
int api_give_error(const struct ms_err *from, int rc, struct msw_error *to);
int api_new_job(struct msw_job **ret, struct ms_err *err); /* zeroes; owned */

/* ---- the locale ---- */

/* Each function of msworker.h that reads or writes is between the two, on the thread that does it;
 * others may copy texts. The first returns what the thread's locale was, for the second. */
locale_t locale_enter(void);
void locale_leave(locale_t before);

/* ---- a training, in this process or as a rank of a cluster ---- */

struct session {
    const struct msw_job *job; /* borrowed */
    int is_alone;
    struct msw_options options;
    locale_t locale;     /* of the program, on the thread that trains */
    int64_t image_bytes; /* of memory for decoded images of this host, at the most */
    /* after each step and evaluation; non-zero: no more */
    int (*on_step)(void *arg, const struct msw_progress *progress);
    void *arg;
    struct train *train; /* of the rank in hand, while on_step is called */
    int rank, ranks;
    int want_model;
    struct model_copy *model;
    int model_rc;
    struct ms_err model_err;
};

/* Blocks until it has ended. */
int session_run(struct session *session, struct ms_err *err);
/* What a program gets of it; rc and err are session_run's. */
int session_finish(struct session *session, int rc, struct msw_model **ret_model,
                   const struct ms_err *err, struct msw_error *error);

/* ---- a network of functions ---- */

struct tree_node;

/* The layers as a list that job_parse reads. Each stands for its name in errors; it borrows the
 * network. Returns owned, or what was wrong with the first call of a function that was. */
int net_layers(const struct msw_net *net, struct tree_node **ret, struct ms_err *err);
/* Puts a layer behind the others. typed: keys that are arguments of a function, "out: 6"; keys:
 * those of the program, NULL none. Returns its number, or a negative code. */
int net_add(struct msw_net *net, const char *kind, const int *inputs, int n, const char *typed,
            const char *keys);

#endif
