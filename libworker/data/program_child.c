/* program_child.c - one process of a program that delivers records: its pipes and its end */
#include "libworker/data/program_child.h"

#include "proto/clock.h"
#include "proto/grow.h"
#include "proto/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIPE_BYTES = 1 << 20,  /* a MiB of records is ready while the trainer computes */
    HEARD_BYTES = 1 << 16, /* of words at once: all that is in its pipe when it ends */
};

struct program_child {
    const struct program_command *command;
    struct program_words *words;
    pid_t parent;
    int in, out, talk; /* our ends of its pipes; -1: closed */
    int ends[3];       /* its own ends, until it has them */

    char *asks; /* not written yet: from asks_begun to asks_n */
    size_t asks_begun, asks_n, asks_room;

    pthread_t keeper;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    int is_begun; /* the keeper has tried to start it */
    pid_t pid;    /* -1: there is no process; errno in failed */
    int failed;
    int is_over; /* it was waited for */
    int status;  /* of waitpid; -1: not known */
};

/* ---- the process, between fork and exec: nothing here takes a lock ---- */

static void die(const char *what, const char *path)
{
    const char *parts[] = {what, " ", path, ": ", strerrordesc_np(errno), "\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) {
            break;
        }
    }
    _exit(127);
}

static void in_child(const struct program_child *c)
{
    const struct program_command *command = c->command;
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    setpgid(0, 0); /* what it starts is ended with it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != c->parent) {
        _exit(127); /* the worker died before the line above */
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(c->ends[fd], fd) < 0) {
            _exit(127);
        }
    }
    close_range(3, ~0U, 0);
    if (chdir(command->folder) != 0) {
        die("cannot enter", command->folder);
    }
    execve(command->path, command->argv, command->envp);
    die("cannot execute", command->path);
}

/* ---- the keeper: its parent, to the kernel ---- */

static void close_end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Lines out of what was read; returns how many bytes of the last one are kept at the front. */
static size_t say_lines(struct program_words *words, char *text, size_t n, size_t room, int is_end)
{
    char *begin = text;
    char *newline;
    while ((newline = memchr(begin, '\n', n - (size_t)(begin - text))) != NULL) {
        program_words_say(words, begin, (size_t)(newline - begin));
        begin = newline + 1;
    }
    size_t left = n - (size_t)(begin - text);
    if (left > 0 && (is_end || left == room)) {
        program_words_say(words, begin, left);
        left = 0;
    }
    memmove(text, begin, left);
    return left;
}

/* Hears the process until it ends. Its end is what counts, not that of its standard error, which a
 * process of its own may hold, and fill. */
static void hear(struct program_child *c, int pidfd)
{
    char text[4096];
    size_t n = 0;
    int is_over = 0;
    struct pollfd fds[] = {{.fd = c->talk, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    while (!is_over) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        is_over = (fds[1].revents & POLLIN) != 0;
        ssize_t got = fds[0].fd >= 0;
        for (size_t heard = 0; got > 0 && heard<HEARD_BYTES; heard += got> 0 ? (size_t)got : 0) {
            got = read(c->talk, text + n, sizeof(text) - n);
            n = got > 0 ? say_lines(c->words, text, n + (size_t)got, sizeof(text), 0) : n;
        }
        fds[0].fd = got == 0 ? -1 : fds[0].fd; /* poll passes over what is closed */
    }
    (void)say_lines(c->words, text, n, sizeof(text), 1);
}

static void set_begun(struct program_child *c, pid_t pid, int failed)
{
    pthread_mutex_lock(&c->lock);
    c->pid = pid;
    c->failed = failed;
    c->is_begun = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Its group is ended before it is waited for: until then no other one can have its number. */
static void end_group(struct program_child *c)
{
    int status = -1;
    pid_t got;
    kill(-c->pid, SIGKILL);
    pthread_mutex_lock(&c->lock); /* from now on the number may be another one's */
    do {
        got = waitpid(c->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    c->status = got == c->pid ? status : -1;
    c->is_over = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void *keep(void *arg)
{
    struct program_child *c = arg;
    const pid_t pid = fork();
    if (pid == 0) {
        in_child(c);
    }
    int failed = errno;
    for (int fd = 0; fd < 3; fd++) {
        close_end(&c->ends[fd]);
    }
    if (pid < 0) {
        set_begun(c, -1, failed);
        return NULL;
    }
    setpgid(pid, pid); /* whoever is first: it may be told to end at once */
    const int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) { /* its end could not be seen */
        failed = errno;
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        set_begun(c, -1, failed);
        return NULL;
    }
    set_begun(c, pid, 0);
    hear(c, pidfd);
    close(pidfd);
    end_group(c);
    return NULL;
}

/* ---- start ---- */

static int open_pipes(struct program_child *c)
{
    int *const ours[] = {&c->in, &c->out, &c->talk};
    for (int fd = 0; fd < 3; fd++) {
        int both[2];
        if (pipe2(both, O_CLOEXEC) != 0) {
            return -1;
        }
        const int is_in = fd == 0;
        c->ends[fd] = both[!is_in];
        *ours[fd] = both[is_in];
        if (c->ends[fd] < 3) { /* else dup2 would overwrite it before its turn */
            const int moved = fcntl(c->ends[fd], F_DUPFD_CLOEXEC, 3);
            close(c->ends[fd]);
            c->ends[fd] = moved;
        }
        if (c->ends[fd] < 0 || fcntl(*ours[fd], F_SETFL, O_NONBLOCK) != 0) {
            return -1;
        }
    }
    (void)fcntl(c->out, F_SETPIPE_SZ, PIPE_BYTES); /* where the user's share of them allows it */
    return 0;
}

static void destroy(struct program_child *c)
{
    for (int fd = 0; fd < 3; fd++) {
        close_end(&c->ends[fd]);
    }
    close_end(&c->in);
    close_end(&c->out);
    close_end(&c->talk);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->asks);
    free(c);
}

static struct program_child *make(const struct program_command *command,
                                  struct program_words *words)
{
    struct program_child *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    *c = (struct program_child){.command = command,
                                .words = words,
                                .parent = getpid(),
                                .in = -1,
                                .out = -1,
                                .talk = -1,
                                .ends = {-1, -1, -1},
                                .status = -1};
    pthread_mutex_init(&c->lock, NULL);
    ms_cond_init(&c->changed);
    return c;
}

int program_child_start(const struct program_command *command, struct program_words *words,
                        struct program_child **ret, struct ms_err *err)
{
    struct program_child *c = make(command, words);
    if (c == NULL) {
        return ms_fail(err, MS_E_NOMEM, "program %.200s: no memory", command->path);
    }
    int rc = open_pipes(c) == 0 ? 0 : errno;
    rc = rc == 0 ? ms_thread_start(&c->keeper, keep, c) : rc;
    if (rc != 0) {
        destroy(c);
        return ms_fail(err, MS_E_NOMEM, "program %.200s cannot be started: %s", command->path,
                       strerror(rc));
    }
    pthread_mutex_lock(&c->lock);
    while (!c->is_begun) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    const int failed = c->pid < 0 ? c->failed : 0;
    pthread_mutex_unlock(&c->lock);
    if (failed != 0) {
        pthread_join(c->keeper, NULL);
        destroy(c);
        return ms_fail(err, MS_E_NOMEM, "program %.200s cannot be started: %s", command->path,
                       strerror(failed));
    }
    *ret = c;
    return MS_OK;
}

/* ---- end ---- */

/* 1: it has ended by itself within ms. */
static int wait_for_end(struct program_child *c, int ms)
{
    const struct timespec until = ms_mono_after(ms);
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (!c->is_over && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
    }
    const int is_over = c->is_over;
    if (!is_over) { /* not waited for yet: the number is its own */
        kill(-c->pid, SIGKILL);
    }
    pthread_mutex_unlock(&c->lock);
    return is_over;
}

void program_child_stop(struct program_child *c, int ms, char *buf, size_t size)
{
    if (c == NULL) {
        return;
    }
    close_end(&c->in);
    close_end(&c->out);
    const int is_own = wait_for_end(c, ms);
    pthread_join(c->keeper, NULL);
    if (buf != NULL && !is_own) {
        snprintf(buf, size, "its output, and not itself,");
    } else if (buf != NULL && c->status != -1 && WIFSIGNALED(c->status)) {
        snprintf(buf, size, "by signal %d (%s)", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
    } else if (buf != NULL) {
        snprintf(buf, size, "with status %d", c->status == -1 ? -1 : WEXITSTATUS(c->status));
    }
    destroy(c);
}

/* ---- asks and answers ---- */

int program_child_ask(struct program_child *c, const char *text, size_t size)
{
    if (c->asks_begun > 0) {
        c->asks_n -= c->asks_begun;
        memmove(c->asks, c->asks + c->asks_begun, c->asks_n);
        c->asks_begun = 0;
    }
    char *grown = ms_grow(c->asks, c->asks_n, size, 1, &c->asks_room);
    if (grown == NULL) {
        return -1;
    }
    c->asks = grown;
    memcpy(c->asks + c->asks_n, text, size);
    c->asks_n += size;
    return 0;
}

/* One that does not read its input any more may go on writing: no signal, and no error. */
static void write_asks(struct program_child *c)
{
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t waiting;
    const struct timespec at_once = {0, 0};
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t n = write(c->in, c->asks + c->asks_begun, c->asks_n - c->asks_begun);
    if (n > 0) {
        c->asks_begun += (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR) {
        close_end(&c->in);
        if (errno == EPIPE && !sigismember(&waiting, SIGPIPE)) {
            (void)sigtimedwait(&pipe_signal, NULL, &at_once);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Bytes that were read, 0: not now. */
static ssize_t read_some(struct program_child *c, void *dst, size_t size)
{
    const ssize_t n = read(c->out, dst, size);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : MS_E_IO;
    }
    return n > 0 ? n : MS_E_CLOSED;
}

int program_child_read(struct program_child *c, void *dst, size_t size, int timeout_ms, int wake)
{
    size_t done = 0;
    int64_t until = ms_mono_ms() + timeout_ms;
    while (done < size) {
        const int asks = c->in >= 0 && c->asks_begun < c->asks_n;
        struct pollfd fds[] = {{.fd = wake, .events = POLLIN},
                               {.fd = c->out, .events = POLLIN},
                               {.fd = asks ? c->in : -1, .events = POLLOUT}};
        const int64_t left = until - ms_mono_ms();
        if (poll(fds, 3, left > 0 ? (int)left : 0) < 0 && errno != EINTR) {
            return MS_E_IO;
        }
        if (fds[0].revents != 0) {
            return MS_E_ABORTED;
        }
        if (fds[2].revents != 0) {
            write_asks(c);
        }
        const ssize_t n = fds[1].revents != 0 ? read_some(c, (char *)dst + done, size - done) : 0;
        if (n < 0) {
            return (int)n;
        }
        if (n == 0 && left <= 0) {
            return MS_E_TIMEOUT;
        }
        done += (size_t)n;
        until = n > 0 ? ms_mono_ms() + timeout_ms : until;
    }
    return MS_OK;
}
