/* child.c - processes of `msctl run`: they never outlive it, and every end is known */
#include "cli/child.h"

#include "proto/file_write.h"
#include "proto/line_out.h"
#include "proto/macros.h"
#include "proto/ms_env.h"
#include "proto/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_PASSED_FD = 3, ENV_MAX = 4096, LISTEN_PID_BYTES = 32 };

extern char **environ;

/* ---- programs ---- */

static int is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_in_path(const char *name, char *ret, size_t size)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ":");
        int used = snprintf(ret, size, "%.*s/%s", (int)n, at, name);
        if (n > 0 && used > 0 && (size_t)used < size && is_program(ret)) {
            return 1;
        }
        at += at[n] == ':' ? n + 1 : n;
    }
    return 0;
}

int child_find_program(const char *name, const char *variable, const char *build_dir, char *ret,
                       size_t size, struct ms_err *err)
{
    char self[PATH_MAX];
    const char *wanted = getenv(variable);
    if (wanted != NULL && wanted[0] != '\0') {
        if (!is_program(wanted)) {
            return ms_fail(err, MS_E_NOT_FOUND, "%s=%.200s is no program", variable, wanted);
        }
        snprintf(ret, size, "%s", wanted);
        return MS_OK;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
        snprintf(ret, size, "%s/../%s/%s", self, build_dir, name);
        if (is_program(ret)) {
            return MS_OK;
        }
        snprintf(ret, size, "%s/%s", self, name);
        if (is_program(ret)) {
            return MS_OK;
        }
    }
    if (find_in_path(name, ret, size)) {
        return MS_OK;
    }
    return ms_fail(
        err, MS_E_NOT_FOUND,
        "cannot find the program %s: it is not in %.120s/../%s, not beside msctl and not "
        "in PATH (was it built and installed?); name it with %s=/path/to/%s",
        name, self, build_dir, variable, name);
}

/* ---- start ---- */

/* What the surroundings of msctl mean for msctl must not reach its children: a cluster that a
 * script set up, sockets and watchdogs of a service manager. */
static int is_passed_on(const char *entry)
{
    static const char *const dropped[] = {
        "MSCHED_LISTEN=",   "MSCHED_SOCKET=",
        "MSCHED_DATABASE=", "MSCHED_TLS",
        "MSCHED_LEASE_",    "LISTEN_",
        "NOTIFY_SOCKET=",   "WATCHDOG_",
        "JOURNAL_STREAM=",  "CREDENTIALS_DIRECTORY=",
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(dropped); i++) {
        if (strncmp(entry, dropped[i], strlen(dropped[i])) == 0) {
            return 0;
        }
    }
    for (size_t i = 0; i < MS_ENV_COUNT;
         i++) { /* others, MS_DATA_DIR say, may be in a job's paths */
        const char *name = ms_env_var((enum ms_env_id)i)->name;
        size_t n = strlen(name);
        if (strncmp(entry, name, n) == 0 && entry[n] == '=') {
            return 0;
        }
    }
    return 1;
}

struct start {
    const struct child_spec *spec;
    const char *envp[ENV_MAX];
    char listen_fds[32];
    char listen_pid[LISTEN_PID_BYTES];
    int log_fd;
    pid_t parent;
};

static int fill_env(struct start *start, struct ms_err *err)
{
    size_t n = 0;
    for (char **e = environ; *e != NULL; e++) {
        if (is_passed_on(*e)) {
            if (n + CHILD_ENV_MAX + 4 >= ENV_MAX) {
                return ms_fail(err, MS_E_FULL, "the environment has more than %d variables",
                               ENV_MAX);
            }
            start->envp[n++] = *e;
        }
    }
    for (size_t i = 0; start->spec->env != NULL && start->spec->env[i] != NULL; i++) {
        start->envp[n++] = start->spec->env[i];
    }
    if (start->spec->n_fds > 0) {
        snprintf(start->listen_fds, sizeof(start->listen_fds), "LISTEN_FDS=%zu",
                 start->spec->n_fds);
        start->envp[n++] = start->listen_fds;
        start->envp[n++] = start->listen_pid; /* written in the child, which alone knows its pid */
    }
    start->envp[n] = NULL;
    return MS_OK;
}

/* Puts the fds to 3, 4, ... where some of them may stand in each other's way. */
static int place_fds(const struct child_spec *spec)
{
    int moved[CHILD_FDS_MAX];
    for (size_t i = 0; i < spec->n_fds; i++) {
        moved[i] = fcntl(spec->fds[i], F_DUPFD_CLOEXEC, FIRST_PASSED_FD + CHILD_FDS_MAX);
        if (moved[i] < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < spec->n_fds; i++) {
        if (dup2(moved[i], FIRST_PASSED_FD + (int)i) < 0) {
            return -1;
        }
    }
    return 0;
}

static void in_child(struct start *start)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->parent) {
        _exit(1); /* msctl died before the line above */
    }
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(start->log_fd, STDOUT_FILENO) < 0 ||
        dup2(start->log_fd, STDERR_FILENO) < 0 || place_fds(start->spec) != 0) {
        dprintf(start->log_fd, "cannot give %s its descriptors: %s\n", start->spec->program,
                strerror(errno));
        _exit(126);
    }
    snprintf(start->listen_pid, sizeof(start->listen_pid), "LISTEN_PID=%ld", (long)getpid());
    execve(start->spec->program, (char *const *)start->spec->argv, (char *const *)start->envp);
    dprintf(STDERR_FILENO, "cannot execute %s: %s\n", start->spec->program, strerror(errno));
    _exit(127);
}

int child_start(struct child *child, const struct child_spec *spec, struct ms_err *err)
{
    static struct start start; /* 32 KiB; one start at a time */
    memset(&start, 0, sizeof(start));
    start.spec = spec;
    start.parent = getpid();
    restart_begin(&child->restart);
    int rc = fill_env(&start, err);
    if (rc != MS_OK) {
        return rc;
    }
    start.log_fd = ms_file_append(child->log, O_WRONLY, 0666, err);
    if (start.log_fd < 0) {
        return ms_err_prefix(err, "the log of the %s", child->name);
    }
    ms_line_drop_torn(start.log_fd);
    /* a signal that comes between fork and the reset of handlers would run ours in the child, and
     * tell the event loop of msctl, through the pipe that both have, that msctl got it */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        in_child(&start);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        rc = ms_fail_errno(err, MS_E_FULL, "cannot start the %s: fork", child->name);
    } else {
        child->pid = pid;
        child->is_over = 0;
        child->sent = 0;
        child->lost_s = child->is_left_alone = 0;
    }
    close(start.log_fd);
    return rc;
}

/* ---- end ---- */

int child_is_alive(const struct child *child)
{
    return child->pid > 0 && !child->is_over;
}

int child_reap(struct child *child)
{
    if (!child_is_alive(child) || waitpid(child->pid, &child->status, WNOHANG) != child->pid) {
        return 0;
    }
    child->is_over = 1;
    return 1;
}

void child_signal(struct child *child, int number)
{
    if (child_is_alive(child)) { /* not reaped: the pid is still ours */
        kill(child->pid, number);
        child->sent = number;
    }
}

int child_was_killed(const struct child *child)
{
    return child->is_over && WIFSIGNALED(child->status) && WTERMSIG(child->status) != child->sent;
}

/* What the kernel says of it behind a key of /proc/PID/status that is among the first lines. */
static long status_of(pid_t pid, const char *key, char *ret_letter)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, key);
    at = at != NULL ? at + strlen(key) : "";
    *ret_letter = at[strspn(at, "\t ")];
    return strtol(at, NULL, 10);
}

long child_tracer(const struct child *child)
{
    char letter = '\0';
    return status_of(child->pid, "\nTracerPid:", &letter);
}

int child_waits_for_disk(const struct child *child)
{
    char letter = '\0';
    (void)status_of(child->pid, "\nState:", &letter);
    return letter == 'D';
}

const char *child_status_text(const struct child *child, char *buf, size_t size)
{
    if (WIFSIGNALED(child->status)) {
        int number = WTERMSIG(child->status);
        snprintf(buf, size, "was killed by signal %d (%s)", number, strsignal(number));
    } else {
        snprintf(buf, size, "exited with status %d", WEXITSTATUS(child->status));
    }
    return buf;
}

const char *child_log_tail(const struct child *child, char *buf, size_t size, size_t lines)
{
    char text[2048];
    FILE *log = NULL;
    struct stat st;
    buf[0] = '\0';
    if (ms_regular_open(child->log, "", &log, NULL) < 0) {
        return buf;
    }
    const off_t size_of_log = fstat(fileno(log), &st) == 0 ? st.st_size : 0;
    const off_t room = (off_t)sizeof(text) - 1;
    ssize_t n = pread(fileno(log), text, (size_t)room, size_of_log > room ? size_of_log - room : 0);
    fclose(log);
    while (n > 0 && text[n - 1] == '\n') {
        n--;
    }
    if (n <= 0) {
        return buf;
    }
    text[n] = '\0';
    char *begin = text + n;
    for (size_t found = 0; begin > text; begin--) {
        if (begin[-1] == '\n' && ++found == lines) {
            break;
        }
    }
    size_t used = 0;
    while (*begin != '\0' && used < size) {
        size_t length = strcspn(begin, "\n");
        used += (size_t)snprintf(buf + used, size - used, "    | %.*s\n", (int)length, begin);
        begin += begin[length] == '\n' ? length + 1 : length;
    }
    return buf;
}
