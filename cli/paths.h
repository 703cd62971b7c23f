/* paths.h - the input paths of a job, and arguments of its programs, seen from where it is
 * submitted */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "cli/cli.h"
#include "libworker/job/job.h"

/* Replaces ${NAME} by this process's environment where it has a value, and says so on cli->err.
 * What it has not is left to the workers, which is said, too. A path whose value is relative counts
 * from here; an argument gets the value as it is. MS_E_INVALID where the result is too long, or an
 * argument of several lines. */
int cli_paths_expand(const struct cli *cli, struct job *job, struct ms_err *err);

#endif
