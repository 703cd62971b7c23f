/* as_scheduler.h - MS_ROLE=MS_SCHED: this process becomes the scheduler
 *
 * MindSpore's start scripts run one program in all roles, so msworker runs msschedd in its place:
 * the same process, with the same environment. */
#ifndef AS_SCHEDULER_H
#define AS_SCHEDULER_H

#include "proto/err.h"
#include "proto/settings.h"

/* Does the environment ask for it? Not where the words ask about msworker (--help, --version), and
 * not of a worker of `msctl run` (--run-dir and no job), which may stand in a script of a cluster.
 */
int as_scheduler_is_asked(const struct ms_setting *settings, int argc, char *const *argv);

/* Words for msschedd from those for msworker: without the settings of workers (all but
 * --log-level), with the rest in order. ret: room for argc + 1. Returns how many. */
int as_scheduler_words(const struct ms_setting *settings, int argc, char *const *argv,
                       const char **ret);

/* Where msschedd is: beside the name that this program was started by, in the tree that it was
 * built in, beside its file, or where it would be installed. MS_E_NOT_FOUND names the last two. */
int as_scheduler_find(const char *argv0, char *ret, size_t size, struct ms_err *err);

/* Becomes it. Returns where it fails. */
int as_scheduler_run(const struct ms_setting *settings, int argc, char *const *argv,
                     struct ms_err *err);

#endif
