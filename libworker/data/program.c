/* program.c - a program whose standard output delivers records, each when it is asked for
 *
 * The worker writes which records it wants, the program answers in that order (program_stream.h).
 * So order, shards, splits and the place to go on from are the loader's, as of any other data: a
 * program that ended is started again and asked from the first record on that did not come. */
#include "libworker/data/source.h"

#include "libworker/data/allowed.h"
#include "libworker/data/given.h"
#include "libworker/data/path.h"
#include "libworker/data/program_child.h"
#include "libworker/data/program_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    TRIES = 3,        /* starts without a record in between: it ends for a reason of its own */
    END_MS = 1000,    /* that it has to end by itself, once its input is closed */
    LAST_WORDS = 120, /* bytes of its last line in an error */
    ARGUMENTS_MAX = (DATA_ARGUMENTS_MAX + 1) / 2, /* an LF between */
    EXPANDED_MAX = 8192
};

#define USAGE "MSCHED_USAGE" /* the variable that tells it which part is wanted */

struct program {
    struct data_source base;
    char path[PATH_MAX], folder[PATH_MAX]; /* without links */
    char name[MS_NAME_MAX + 1];            /* for people */
    char given[DATA_ARGUMENTS_MAX + 1];    /* arguments as the job has them */
    char arguments[EXPANDED_MAX];          /* a NUL behind each */
    char *argv[ARGUMENTS_MAX + 2];
    char **envp; /* owned, with its strings */
    struct program_command command;
    enum data_usage usage;
    int timeout_ms;

    struct program_words words;
    int wake;                    /* eventfd: nobody wants more */
    struct program_child *child; /* NULL: none runs */
    uint8_t header[PROGRAM_HEADER_BYTES];
    uint8_t *record;
    size_t record_bytes;

    struct given_queue wanted; /* the child was asked for those before asked */
    int failures;              /* since the last record */
};

/* ---- what it is started with ---- */

static int set_arguments(struct program *p, struct ms_err *err)
{
    char one[DATA_ARGUMENTS_MAX + 1];
    char *dst = p->arguments;
    int n = 0;
    p->argv[n++] = p->path;
    for (const char *at = p->given; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        memcpy(one, at, length);
        one[length] = '\0';
        const int rc = data_path_expand(one, dst, (size_t)(p->arguments + EXPANDED_MAX - dst), err);
        if (rc < 0) {
            return ms_err_prefix(err, "arguments of program %.60s", p->name);
        }
        p->argv[n++] = dst;
        dst += strlen(dst) + 1;
        at += length + (at[length] == '\n');
    }
    p->argv[n] = NULL;
    return MS_OK;
}

/* A program of a worker that serves others gets what jobs may name, and what every program needs:
 * the worker's environment is none of theirs. */
static int may_have(const char *variable)
{
    static const char *const all[] = {"PATH", "HOME", "LANG", "TZ", "TMPDIR"};
    char name[128];
    const size_t length = strcspn(variable, "=");
    if (length >= sizeof(name)) {
        return allowed_is_open();
    }
    memcpy(name, variable, length);
    name[length] = '\0';
    if (strcmp(name, USAGE) == 0) { /* ours comes behind it, and the first one counts */
        return 0;
    }
    int is = allowed_variable(name);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        is |= strcmp(name, all[i]) == 0;
    }
    return is;
}

/* A copy: the process that we live in may change its own. */
static int set_environment(struct program *p)
{
    static const char *const own[] = {USAGE "=train", USAGE "=test", USAGE "=all"};
    size_t n = 0;
    size_t k = 0;
    while (environ[n] != NULL) {
        n++;
    }
    p->envp = calloc(n + 2, sizeof(*p->envp));
    int is_whole = p->envp != NULL;
    for (size_t i = 0; is_whole && i < n; i++) {
        if (may_have(environ[i])) {
            p->envp[k] = strdup(environ[i]);
            is_whole = p->envp[k++] != NULL;
        }
    }
    if (is_whole) {
        p->envp[k] = strdup(own[p->usage]);
        is_whole = p->envp[k] != NULL;
    }
    return is_whole ? 0 : -1;
}

/* ---- its life ---- */

/* Puts what it said last behind the text. */
static int fail_with_words(struct program *p, int code, const char *text, struct ms_err *err)
{
    char last[LAST_WORDS];
    program_words_last(&p->words, last, sizeof(last));
    return ms_fail(err, code, "program %.100s %s%s%s", p->name, text,
                   last[0] != '\0' ? "; its last words: " : "", last);
}

/* What program_child_read said, in words; ends the process. */
static int give_up(struct program *p, int rc, const char *what, struct ms_err *err)
{
    char how[64];
    char text[160];
    program_child_stop(p->child, rc == MS_E_CLOSED ? END_MS : 0, how, sizeof(how));
    p->child = NULL;
    if (rc == MS_E_ABORTED) {
        return ms_fail(err, rc, "nobody waits for program %.100s any more", p->name);
    }
    if (rc == MS_E_TIMEOUT) {
        snprintf(text, sizeof(text), "has written nothing for %d s, and %s was wanted",
                 p->timeout_ms / 1000, what);
    } else if (rc == MS_E_CLOSED) {
        snprintf(text, sizeof(text), "ended %s before %s", how, what);
    } else {
        snprintf(text, sizeof(text), "cannot be read from, and %s was wanted", what);
    }
    /* no MS_E_TIMEOUT: to a rank that is what a peer did not do in time */
    return fail_with_words(p, MS_E_IO, text, err);
}

/* Starts it and reads its header, which has to be the same each time. */
static int start(struct program *p, struct ms_err *err)
{
    uint8_t header[PROGRAM_HEADER_BYTES];
    int rc = program_child_start(&p->command, &p->words, &p->child, err);
    if (rc < 0) {
        return rc;
    }
    p->wanted.asked = p->wanted.begun;
    rc = program_child_read(p->child, header, sizeof(header), p->timeout_ms, p->wake);
    if (rc < 0) {
        return give_up(p, rc, "its header", err);
    }
    if (p->record == NULL) {
        memcpy(p->header, header, sizeof(header));
    } else if (memcmp(p->header, header, sizeof(header)) != 0) {
        program_child_stop(p->child, 0, NULL, 0);
        p->child = NULL;
        return ms_fail(err, MS_E_INVALID,
                       "program %.100s: its header is another one than when it was started first",
                       p->name);
    }
    return MS_OK;
}

static int ask(struct program *p, struct ms_err *err)
{
    for (; p->wanted.asked < p->wanted.n; p->wanted.asked++) {
        const struct wanted *w = &p->wanted.at[p->wanted.asked];
        char line[80];
        const int n = snprintf(line, sizeof(line), "%lld %llu %llu\n", (long long)w->row,
                               (unsigned long long)w->epoch, (unsigned long long)w->seed);
        if (program_child_ask(p->child, line, (size_t)n) < 0) {
            return ms_fail(err, MS_E_NOMEM, "program %.100s: no memory to ask it", p->name);
        }
    }
    return MS_OK;
}

/* One try for the first record that is wanted. */
static int fetch(struct program *p, struct ms_err *err)
{
    char what[48];
    int rc = p->child == NULL ? start(p, err) : MS_OK;
    rc = rc < 0 ? rc : ask(p, err);
    if (rc < 0) {
        return rc;
    }
    rc = program_child_read(p->child, p->record, p->record_bytes, p->timeout_ms, p->wake);
    if (rc == MS_OK) {
        return rc;
    }
    snprintf(what, sizeof(what), "record %lld", (long long)p->wanted.at[p->wanted.begun].row);
    return give_up(p, rc, what, err);
}

/* Its end, or silence, may be somebody else's doing; what it writes is its own. */
static int may_pass(int rc)
{
    return rc == MS_E_IO;
}

/* As often as it may fail without a record in between. */
static int try_at_last(struct program *p, int (*step)(struct program *p, struct ms_err *err),
                       struct ms_err *err)
{
    struct ms_err why = {0, ""};
    int rc = step(p, &why);
    while (rc < 0 && may_pass(rc) && ++p->failures < TRIES) {
        char line[PROGRAM_LINE_MAX];
        snprintf(line, sizeof(line), "is started again: %.280s", why.text);
        program_words_note(&p->words, line);
        rc = step(p, &why);
    }
    if (rc < 0 && may_pass(rc)) {
        return ms_fail(err, rc, "%.300s (%d times)", why.text, TRIES);
    }
    return rc < 0 ? ms_fail(err, rc, "%s", why.text) : MS_OK;
}

static int fetch_at_last(struct program *p, struct ms_err *err)
{
    int rc = try_at_last(p, fetch, err);
    p->failures = rc < 0 ? p->failures : 0;
    return rc;
}

/* ---- the source ---- */

static int program_expect(struct data_source *source, int64_t row, uint64_t epoch, uint64_t seed,
                          struct ms_err *err)
{
    struct program *p = (struct program *)source;
    const struct wanted wanted = {row, epoch, seed};
    char name[160];
    snprintf(name, sizeof(name), "program %.100s", p->name);
    return given_expect(&p->wanted, &wanted, name, err);
}

static int program_read(struct data_source *source, int64_t row, struct data_record *ret,
                        struct ms_err *err)
{
    struct program *p = (struct program *)source;
    int rc = p->wanted.begun == p->wanted.n ? program_expect(source, row, 0, 0, err) : MS_OK;
    if (rc < 0) {
        return rc;
    }
    assert(p->wanted.at[p->wanted.begun].row == row);
    rc = fetch_at_last(p, err);
    if (rc < 0) {
        return rc;
    }
    p->wanted.begun++;
    return program_record_read(&source->info, p->record, p->name, row, ret, err);
}

/* What it was asked for and did not come yet nobody takes: it begins anew. */
static void program_forget(struct data_source *source)
{
    struct program *p = (struct program *)source;
    eventfd_t n;
    if (p->wanted.begun < p->wanted.asked) {
        program_child_stop(p->child, 0, NULL, 0);
        p->child = NULL;
    }
    given_forget(&p->wanted);
    p->failures = 0;
    (void)eventfd_read(p->wake, &n);
}

static void program_interrupt(struct data_source *source)
{
    (void)eventfd_write(((struct program *)source)->wake, 1);
}

static int program_hear(struct data_source *source, char *buf, size_t size)
{
    struct program *p = (struct program *)source;
    char line[PROGRAM_LINE_MAX + 1];
    const int has = program_words_hear(&p->words, line, sizeof(line));
    if (has) {
        snprintf(buf, size, "program %s: %s", p->name, line);
    }
    return has;
}

static void program_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    snprintf(buf, size, "program %s: record %lld", ((const struct program *)source)->name,
             (long long)row);
}

/* Its records are what its file, arguments and usage make of their numbers. */
static int program_identify(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    const struct program *p = (const struct program *)source;
    char hex[SUM_HEX];
    uint64_t size = 0;
    const int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES ? MS_OK /* executable only */ : data_open_fail(p->path, err);
    }
    const int rc = sum_file(fd, p->path, &size, hex, err);
    close(fd);
    sum_add(sum, hex, sizeof(hex));
    sum_add(sum, p->given, strlen(p->given) + 1);
    sum_add(sum, &p->usage, sizeof(p->usage));
    sum_add(sum, p->header, sizeof(p->header));
    return rc;
}

/* One that still makes what it was asked for has no end of its own. */
static void program_finish(struct data_source *source)
{
    struct program *p = (struct program *)source;
    program_child_stop(p->child, p->wanted.begun < p->wanted.asked ? 0 : END_MS, NULL, 0);
    p->child = NULL;
}

static void program_close(struct data_source *source)
{
    struct program *p = (struct program *)source;
    program_finish(source);
    program_words_free(&p->words);
    if (p->wake >= 0) {
        close(p->wake);
    }
    for (size_t i = 0; p->envp != NULL && p->envp[i] != NULL; i++) {
        free(p->envp[i]);
    }
    free(p->envp);
    free(p->record);
    given_fini(&p->wanted);
    free(p);
}

static int set_up(struct program *p, const struct data_spec *spec, const char *path,
                  struct ms_err *err)
{
    int rc = data_program_check(path, p->path, sizeof(p->path), err);
    if (rc < 0) {
        return rc;
    }
    char *slash = strrchr(p->path, '/');
    snprintf(p->name, sizeof(p->name), "%s", slash + 1);
    memcpy(p->folder, p->path, (size_t)(slash - p->path));
    if (slash == p->path) {
        snprintf(p->folder, sizeof(p->folder), "/");
    }
    p->usage = spec->usage;
    p->timeout_ms = (int)spec->timeout * 1000;
    memcpy(p->given, spec->arguments, sizeof(p->given));
    rc = set_arguments(p, err);
    if (rc < 0) {
        return rc;
    }
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (program_words_init(&p->words) < 0 || p->wake < 0 || set_environment(p) < 0) {
        return ms_fail(err, MS_E_NOMEM, "program %.200s: no memory", path);
    }
    p->command = (struct program_command){p->path, p->folder, p->argv, p->envp};
    return MS_OK;
}

int program_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                 struct ms_err *err)
{
    struct program *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return ms_fail(err, MS_E_NOMEM, "program %.200s: no memory", path);
    }
    p->wake = -1;
    p->base = (struct data_source){.read = program_read,
                                   .identify = program_identify,
                                   .expect = program_expect,
                                   .forget = program_forget,
                                   .interrupt = program_interrupt,
                                   .hear = program_hear,
                                   .finish = program_finish,
                                   .name = program_name,
                                   .close = program_close};
    int rc = set_up(p, spec, path, err);
    rc = rc < 0 ? rc : try_at_last(p, start, err);
    rc = rc < 0 ? rc : program_header_read(p->header, p->name, &p->base.info, err);
    if (rc == MS_OK) {
        p->base.info.ignored = spec->ignored;
        p->record_bytes = program_record_bytes(&p->base.info);
        p->record = aligned_alloc(8, (p->record_bytes + 7) / 8 * 8);
        rc = p->record != NULL
                 ? MS_OK
                 : ms_fail(err, MS_E_NOMEM, "program %.100s: no memory for a record", p->name);
    }
    if (rc < 0) {
        program_close(&p->base);
        return rc;
    }
    *ret = &p->base;
    return MS_OK;
}
