/* anew.c - the program runs again from its beginning, as the same process */
#include "libworker/train/anew.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";
static char **original; /* and a place for one more */
static size_t n_original;

void anew_keep(int argc, char **argv)
{
    original = calloc((size_t)argc + 2, sizeof(*original));
    n_original = original != NULL ? (size_t)argc : 0;
    if (original != NULL) {
        memcpy(original, argv, n_original * sizeof(*original));
    }
}

int anew_may(void)
{
    posix_spawn_file_actions_t quiet;
    char check[] = "--check-config=self";
    int status = -1;
    pid_t pid = -1;
    if (n_original == 0 || posix_spawn_file_actions_init(&quiet) != 0) {
        return 0;
    }
    original[n_original] = check;
    int why = posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    why = why != 0 ? why : posix_spawn(&pid, self, &quiet, NULL, original, environ);
    original[n_original] = NULL;
    posix_spawn_file_actions_destroy(&quiet);
    return why == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int anew_run(struct ms_err *err)
{
    if (n_original > 0) {
        (void)execv(self, original);
    }
    return ms_fail_errno(err, MS_E_IO, "this process cannot run %s again", self);
}
