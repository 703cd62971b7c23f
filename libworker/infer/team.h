/* team.h - passes side by side, each with a network and data of its own, as many as the host has
 * cores and memory for
 *
 * A plan has the threads of a rank of its training; where the host has more, several networks
 * answer at once, as several ranks did. What comes of it does not depend on how many they are. */
#ifndef INFER_TEAM_H
#define INFER_TEAM_H

#include "libworker/infer/pass.h"

struct team {
    struct pass_common common;
    struct pass *passes;
    int n;
};

/* most: of which use would be, >= 1. Fills; after a failure there is nothing to close. */
int team_open(struct team *team, const struct infer_config *cfg, int is_judged, int most,
              struct ms_err *err);
void team_close(struct team *team);

/* What member i does, in a thread of its own; the first one in the caller's. */
typedef int team_fn(void *arg, int member, struct pass *pass, struct ms_err *err);
/* All of them, until all are done. The first that fails stops the others, and its error is that of
 * all; on_stop (NULL allowed), by it, wakes who waits. */
int team_run(struct team *team, team_fn *fn, void (*on_stop)(void *arg), void *arg,
             struct ms_err *err);

#endif
