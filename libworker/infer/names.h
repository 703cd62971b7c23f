/* names.h - what classes, and the files of samples, are called */
#ifndef INFER_NAMES_H
#define INFER_NAMES_H

#include "libworker/data/data.h"
#include "libworker/job/job.h"

struct names {
    const char **list; /* of each class, clean UTF-8; NULL: they have none */
    char *text;        /* in which they stand */
    int are_gone;      /* they had some, which are not known here any more */
};

/* Those of the training for n classes: words, or folders of the job's data set; of classes that are
 * numbers, what the job says that those of its evaluation are called in this order. What the data
 * have by themselves may stand for other classes. */
int names_find(const struct job *job, const struct data_source *source, int64_t n,
               struct names *ret, struct ms_err *err);
/* Folders of the data, in the order of their labels; NULL: they have none. */
int names_of_data(const struct data_source *source, struct names *ret, struct ms_err *err);
void names_free(struct names *names);

/* Of sample i of a source of folders, clean UTF-8. */
enum { NAMES_FILE_MAX = 2 * MS_PATH_MAX };
void names_of_file(const struct data_source *source, int64_t i, char ret[NAMES_FILE_MAX]);

#endif
