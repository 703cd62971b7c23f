/* process.c - what a program of ours asks of the system for itself, before it reads a key */
#include "proto/process.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { DUMPABLE = 1 };
#else
enum { DUMPABLE = 0 };
#endif

static void hide(void)
{
    static const struct rlimit none = {0, 0};
    /* neither can fail in a way that somebody could mend: both lower what we may */
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0);
}

void ms_process_begin(void)
{
    hide();
    if (program_invocation_short_name[0] != '\0') {
        (void)prctl(PR_SET_NAME, program_invocation_short_name, 0, 0, 0);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* who started us may ignore it, and we wait for children */
}

const char *ms_process_check_as_service(int is_of_service)
{
    if (geteuid() != 0) {
        return NULL;
    }
    const struct passwd *user = is_of_service ? getpwnam(MS_SERVICE_USER) : NULL;
    if (user == NULL || initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0) {
        return "judged as root: whether the user of a service may read and write these files is "
               "not looked at";
    }
    return "judged as the user " MS_SERVICE_USER ", whom the service runs as";
}
