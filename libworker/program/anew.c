/* anew.c - the program runs again from its beginning, as the same process */
#include "libworker/program/anew.h"

#include "libworker/host/cpuset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";
static char **original;

void anew_keep(int argc, char **argv)
{
    original = calloc((size_t)argc + 1, sizeof(*original));
    if (original != NULL) {
        memcpy(original, argv, (size_t)argc * sizeof(*original));
    }
}

void anew_exec(char **argv)
{
    const struct cpuset given = cpuset_of_team();
    (void)cpuset_bind_thread(&given);
    (void)execv(self, argv);
}

int anew_run(struct ms_err *err)
{
    if (original != NULL) {
        anew_exec(original);
    }
    return ms_fail_errno(err, MS_E_IO, "this process cannot run %s again", self);
}
