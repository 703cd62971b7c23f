/* main.c - msschedd: options, database, core, server, exit status */
#include "config.h"
#include "daemon/options.h"
#include "daemon/recovery_path.h"
#include "daemon/sched/sched.h"
#include "daemon/server.h"
#include "daemon/store/store.h"
#include "proto/clock.h"
#include "proto/notify.h"
#include "proto/process.h"
#include "proto/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_MAY_PASS = 75, /* sysexits' EX_TEMPFAIL: systemd tries again */
    EXIT_CONFIG = 78,   /* EX_CONFIG: systemd does not */
    LINE_MAX_BYTES = 1800,
};

/* What the reload needs: the command line again, and who owns the options now. */
struct program {
    int argc;
    char *const *argv;
    struct options *options;
};

/* Trouble that waiting may mend, or trouble that somebody must mend. */
static int exit_status_of(int code)
{
    switch (code) {
    case MS_E_INVALID:
    case MS_E_CONFIG:
    case MS_E_TLS:
    case MS_E_UNSUPPORTED:
    case MS_E_NOT_FOUND:
    case MS_E_REFUSED:
        return EXIT_CONFIG;
    default:
        return EXIT_MAY_PASS;
    }
}

static int fail(const struct ms_err *err)
{
    char quoted[2 * MS_ERR_TEXT_MAX];
    char state[2 * MS_ERR_TEXT_MAX];
    int status = exit_status_of(err->code);
    ms_log(MS_LOG_ERR, "scheduler.failed code=%s exit=%d text=%s", ms_code_name(err->code), status,
           ms_log_quote(quoted, sizeof(quoted), err->text));
    snprintf(state, sizeof(state), "STATUS=%s\nERRNO=%d", err->text,
             status == EXIT_CONFIG ? EINVAL : EAGAIN);
    ms_notify(state);
    return status;
}

static struct sched_time now(void)
{
    return (struct sched_time){.mono_ms = ms_mono_ms(), .wall_ms = ms_wall_ms()};
}

static void start_log(const struct options *options)
{
    ms_log_init(STDERR_FILENO, options->log_level, getenv("JOURNAL_STREAM") != NULL);
}

static int reload(void *arg, struct server *server, struct ms_err *err)
{
    struct program *program = arg;
    struct options *options = NULL;
    char names[256] = "";
    int rc = options_load(program->argc, program->argv, &options, err);
    if (rc == 0) {
        rc = options_keep_fixed(program->options, options, names, sizeof(names), err);
    }
    if (rc == 0) {
        rc = server_take_options(server, options, err);
    }
    if (rc < 0) {
        options_destroy(options);
        return rc;
    }
    char line[LINE_MAX_BYTES];
    start_log(options);
    ms_log(MS_LOG_NOTICE, "scheduler.reload %s", options_format(options, line, sizeof(line)));
    if (names[0] != '\0') {
        ms_log(MS_LOG_WARNING,
               "scheduler.reload_incomplete settings=%s text=\"these change "
               "with a restart only, ignoring\"",
               MS_QUOTE(names));
    }
    options_destroy(program->options);
    program->options = options;
    return 0;
}

/* Prints what holds, and judges what a start would: the certificates too. as: as whom, for people.
 */
static int check_config(const struct options *options, const char *as)
{
    struct ms_err err = {0, ""};
    if (as != NULL) {
        printf("# %s\n", as);
    }
    options_print(options, stdout);
    fflush(stdout);
    server_check_names(options);
    return server_check_options(options, &err) < 0 ? fail(&err) : 0;
}

static void warn_mistyped(void)
{
    size_t next = 0;
    const char *nearest = NULL;
    const char *name;
    while ((name = ms_env_mistyped(next, &next, &nearest)) != NULL) {
        ms_log(MS_LOG_WARNING, "env.unknown variable=%s nearest=%s text=\"mistyped? ignoring\"",
               name, nearest);
    }
}

/* Once, and before anything is decided: in the words of whoever wrote the start script. */
static void say_environment(const struct options *options)
{
    char names[LINE_MAX_BYTES / 2];
    if (ms_env_unused(names, sizeof(names))[0] != '\0') {
        ms_log(MS_LOG_NOTICE, "env.unused text=\"set, and not used by msched: %s\"", names);
    }
    if (options->env != NULL) {
        warn_mistyped();
    }
    if (options->sched.recovery && options->database[0] == '\0') {
        ms_log(MS_LOG_NOTICE,
               "scheduler.no_database text=\"workers that are lost are replaced, but "
               "this scheduler cannot come back if it dies: for that set "
               "MS_RECOVERY_PATH to a folder\"");
    }
}

/* Of a dynamic cluster nobody knows a setting `database`. */
static int name_path(const struct options *options, int rc, struct ms_err *err)
{
    return rc < 0 && options->env != NULL ? ms_err_prefix(err, "MS_RECOVERY_PATH") : rc;
}

static int open_store(const struct options *options, struct store **ret, struct ms_err *err)
{
    struct store_setup setup = {
        .path = options->database,
        .accepts_loss = options->accepts_loss,
        .setting = options->env != NULL ? "MS_RECOVERY_PATH" : NULL,
    };
    int rc = options->env != NULL ? recovery_path_make(ms_env_recovery_path(options->env), err) : 0;
    return rc < 0 ? rc : name_path(options, store_open_with(&setup, ret, err), err);
}

/* Database and core; both stay the caller's, whatever comes out. */
static int load_state(const struct options *options, struct store **ret_store,
                      struct sched **ret_sched, struct ms_err *err)
{
    struct sched_time start = now();
    int skips = 0;
    int rc = options->database[0] != '\0' ? open_store(options, ret_store, err) : 0;
    struct sched_config config = options->sched;
    if (rc == 0 && *ret_store != NULL) {
        config.has_database = 1;
        skips = options->accepts_loss || store_is_copy(*ret_store);
        config.skip_ahead = skips ? sched_skip_of(start.wall_ms) : 0;
        memcpy(config.stamp_secret, store_secret(*ret_store), sizeof(config.stamp_secret));
    }
    if (rc == 0 && (*ret_sched = sched_create(&config, start)) == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for the scheduler");
    }
    if (rc == 0 && *ret_store != NULL) {
        rc = name_path(options, store_load(*ret_store, *ret_sched, err), err);
        for (size_t i = 0; store_note(*ret_store, i) != NULL; i++) {
            char quoted[2 * MS_TEXT_MAX];
            ms_log(MS_LOG_WARNING, "store.warning text=%s",
                   ms_log_quote(quoted, sizeof(quoted), store_note(*ret_store, i)));
        }
    }
    if (rc == 0 && skips) {
        rc = store_judge_clock(*ret_store, start.wall_ms, err);
    }
    if (rc == 0) {
        rc = sched_load_done(*ret_sched, now(), err);
    }
    if (rc == 0) {
        struct sched_counts counts;
        sched_count(*ret_sched, &counts);
        ms_log(MS_LOG_INFO,
               "scheduler.loaded jobs_queued=%u jobs_placed=%u jobs_ended=%llu generation=%llu "
               "ms=%lld",
               counts.jobs_queued, counts.jobs_placed, (unsigned long long)counts.jobs_ended,
               (unsigned long long)counts.generation, (long long)(now().mono_ms - start.mono_ms));
    }
    return rc;
}

static int serve(struct program *program)
{
    struct ms_err err = {0, ""};
    struct store *store = NULL;
    struct sched *sched = NULL;
    struct server *server = NULL;
    char line[LINE_MAX_BYTES];
    start_log(program->options);
    ms_log(MS_LOG_NOTICE, "scheduler.start version=%s pid=%ld %s", MSCHED_VERSION, (long)getpid(),
           options_format(program->options, line, sizeof(line)));
    say_environment(program->options);
    int rc = load_state(program->options, &store, &sched, &err);
    if (rc == 0) {
        struct server_setup setup = {.options = program->options,
                                     .sched = sched,
                                     .store = store,
                                     .reload = reload,
                                     .reload_arg = program};
        rc = server_open(&setup, &server, &err);
    }
    if (rc == 0) {
        rc = server_run(server, &err);
    }
    int status = rc < 0 ? fail(&err) : rc;
    char why[MS_TEXT_MAX + 1] = "";
    if (rc >= 0) {
        ms_text_copy(why, sizeof(why), server_exit_text(server));
    }
    server_close(server);
    sched_destroy(sched);
    store_close(store);
    if (rc >= 0) { /* the last line of the log, where people and scripts look for the cause */
        ms_log(status == 0 ? MS_LOG_NOTICE : MS_LOG_ERR, "scheduler.end status=%d reason=%s",
               status, MS_QUOTE(why));
    }
    return status;
}

/* As root `msschedd --check-config` is a question about the service, without a word that its unit
 * does not say. */
static const char *settle_check(int argc, char **argv)
{
    int is_alone = argc == 2 && !ms_env_is_dynamic();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check-config") == 0) {
            return ms_process_check_as_service(is_alone);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct ms_err err = {0, ""};
    struct program program = {.argc = argc, .argv = argv};
    ms_process_begin();
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, getenv("JOURNAL_STREAM") != NULL);
    signal(SIGHUP, SIG_IGN); /* a reload while we start: the settings are read just now */
    umask(0077);             /* the database, the lock, a run directory's socket: ours alone */
    const char *as = settle_check(argc, argv);
    if (options_load(argc, argv, &program.options, &err) < 0) {
        return fail(&err);
    }
    int status = 0;
    switch (program.options->action) {
    case OPTIONS_HELP:
        options_help(stdout);
        break;
    case OPTIONS_VERSION:
        printf("msschedd %s\n", MSCHED_VERSION);
        break;
    case OPTIONS_CHECK:
        status = check_config(program.options, as);
        break;
    case OPTIONS_RUN:
        status = serve(&program);
        break;
    }
    options_destroy(program.options);
    return status;
}
