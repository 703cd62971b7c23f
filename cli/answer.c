/* answer.c - msworker answers by trained weights: started, fed, heard, and its end known */
#include "cli/answer.h"

#include "cli/child.h"
#include "cli/format.h"
#include "proto/clock.h"
#include "proto/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TO_FD = 3, PLAIN_MS = 5000, BAR_COLUMNS = 22, EXIT_NO_EXEC = 127 };

struct answering {
    struct cli *cli;
    const struct answer_ask *ask;
    char program[MS_PATH_MAX + 1];
    int job_fd;  /* the job's text, from its begin */
    int said_fd; /* what the worker says; for its end */
    FILE *heard;
    pid_t pid;
    json_t *result;    /* NULL: there was none */
    struct ms_err why; /* what the worker said instead */
    int has_line;      /* of progress on the terminal */
    int64_t told_ms;
};

/* ---- start ---- */

/* A file that has no name: whatever the size of the job, nobody waits for who reads it. */
static int put_job(struct answering *a, struct ms_err *err)
{
    size_t size = 0;
    char *text = job_format(a->ask->job, &size);
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the job's text");
    }
    a->job_fd = memfd_create("job", MFD_CLOEXEC);
    size_t put = 0;
    while (a->job_fd >= 0 && put < size) {
        const ssize_t n = write(a->job_fd, text + put, size - put);
        if (n < 0 && errno != EINTR) {
            break;
        }
        put += n > 0 ? (size_t)n : 0;
    }
    int rc = put == size && lseek(a->job_fd, 0, SEEK_SET) == 0
                 ? MS_OK
                 : ms_fail_errno(err, MS_E_IO, "cannot put the job into memory");
    free(text);
    return rc;
}

static void fill_words(const struct answering *a, const char **words)
{
    const struct answer_ask *ask = a->ask;
    size_t n = 0;
    words[n++] = "msworker";
    words[n++] = ask->mode;
    words[n++] = "--weights";
    words[n++] = ask->weights;
    if (ask->plan != NULL) {
        words[n++] = "--plan";
        words[n++] = ask->plan;
    }
    for (size_t i = 0; ask->more != NULL && ask->more[i] != NULL && i < ANSWER_WORDS_MAX; i++) {
        words[n++] = ask->more[i];
    }
    words[n] = NULL;
}

/* It stays in our group: a terminal's Ctrl-C reaches both. */
static void in_child(const struct answering *a, const char *const *words, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int to = a->ask->to >= 0 ? fcntl(a->ask->to, F_DUPFD_CLOEXEC, TO_FD + 1) : -1;
    if (getppid() != parent || dup2(a->job_fd, STDIN_FILENO) < 0 ||
        dup2(a->said_fd, STDOUT_FILENO) < 0 || (to >= 0 && dup2(to, TO_FD) < 0)) {
        _exit(EXIT_NO_EXEC);
    }
    execv(a->program, (char *const *)words);
    _exit(EXIT_NO_EXEC);
}

static int start(struct answering *a, struct ms_err *err)
{
    const char *words[ANSWER_WORDS_MAX + 8];
    int ends[2];
    int rc = put_job(a, err);
    if (rc < 0) {
        return rc;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot make a pipe to msworker");
    }
    a->said_fd = ends[1];
    a->heard = fdopen(ends[0], "r");
    if (a->heard == NULL) {
        close(ends[0]);
        return ms_fail_errno(err, MS_E_NOMEM, "no memory to hear msworker");
    }
    fill_words(a, words);
    const pid_t parent = getpid();
    fflush(NULL); /* nothing of ours is printed twice */
    a->pid = fork();
    if (a->pid == 0) {
        in_child(a, words, parent);
    }
    close(a->said_fd);
    a->said_fd = -1;
    return a->pid > 0 ? MS_OK : ms_fail_errno(err, MS_E_FULL, "cannot start msworker: fork");
}

/* ---- what it says ---- */

static void end_line(struct answering *a)
{
    if (a->has_line) {
        fputs("\r\033[K", a->cli->err);
        a->has_line = 0;
    }
}

static void take_progress(struct answering *a, int64_t rows, int64_t of)
{
    struct cli *cli = a->cli;
    const int64_t now = ms_mono_ms();
    char done[CLI_FORMAT_MAX];
    char all[CLI_FORMAT_MAX];
    char bar[BAR_COLUMNS + 1];
    cli_format_count(done, (uint64_t)rows);
    cli_format_count(all, (uint64_t)of);
    if (cli->live) {
        fprintf(cli->err, "\r\033[K%s %s of %s samples %s",
                cli_bar(bar, sizeof(bar), BAR_COLUMNS, (double)rows / (double)of), done, all,
                a->ask->what);
        fflush(cli->err);
        a->has_line = 1;
    } else if (now - a->told_ms >= PLAIN_MS) {
        cli_say(cli, "%s of %s samples %s", done, all, a->ask->what);
        a->told_ms = now;
    }
}

static void take_line(struct answering *a, const json_t *line)
{
    const json_t *rows = json_object_get(line, "rows");
    const json_t *of = json_object_get(line, "of");
    const char *note = json_string_value(json_object_get(line, "note"));
    const char *error = json_string_value(json_object_get(line, "error"));
    json_t *result = json_object_get(line, "result");
    if (a->ask->what != NULL && json_integer_value(rows) > 0 &&
        json_integer_value(of) >= json_integer_value(rows)) {
        take_progress(a, json_integer_value(rows), json_integer_value(of));
    }
    if (note != NULL) {
        end_line(a);
        cli_say(a->cli, "%s", note);
    }
    if (error != NULL) {
        const json_int_t code = json_integer_value(json_object_get(line, "code"));
        ms_fail(&a->why, code < 0 && code >= MS_E_FOREIGN ? (int)code : MS_E_FAILED, "%s", error);
    }
    if (json_is_object(result) && a->result == NULL) {
        a->result = json_incref(result);
    }
}

static void hear(struct answering *a)
{
    char *text = NULL;
    size_t room = 0;
    a->told_ms = ms_mono_ms();
    while (getline(&text, &room, a->heard) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        take_line(a, line);
        json_decref(line);
    }
    end_line(a);
    free(text);
}

/* ---- its end ---- */

static int await(const struct answering *a, struct ms_err *err)
{
    struct child child = {.pid = a->pid};
    char status[96];
    while (waitpid(a->pid, &child.status, 0) < 0 && errno == EINTR) {
    }
    if (a->why.code < 0) {
        return ms_fail(err, a->why.code, "%s", a->why.text);
    }
    return child.status == 0 && a->result != NULL
               ? MS_OK
               : ms_fail(err, MS_E_FAILED,
                         "%.200s %s before it had answered; was it killed for memory (dmesg)?",
                         a->program, child_status_text(&child, status, sizeof(status)));
}

static void clean(struct answering *a)
{
    if (a->heard != NULL) {
        fclose(a->heard);
    }
    if (a->said_fd >= 0) {
        close(a->said_fd);
    }
    if (a->job_fd >= 0) {
        close(a->job_fd);
    }
    json_decref(a->result);
}

int answer_run(struct cli *cli, const struct answer_ask *ask, json_t **ret, struct ms_err *err)
{
    struct answering a = {.cli = cli, .ask = ask, .job_fd = -1, .said_fd = -1};
    int rc = child_find_program("msworker", "MSCHED_MSWORKER", "libworker", a.program,
                                sizeof(a.program), err);
    rc = rc < 0 ? rc : start(&a, err);
    if (rc == MS_OK) {
        hear(&a);
        rc = await(&a, err);
    }
    if (rc == MS_OK) {
        *ret = json_incref(a.result);
    }
    clean(&a);
    return rc;
}
