/* msworker.c - the worker program: its words, and how it ends; the rest is worker_run */
#include "libworker/program/anew.h"
#include "libworker/program/answer.h"
#include "libworker/program/as_scheduler.h"
#include "libworker/program/program.h"
#include "libworker/program/spin.h"
#include "proto/log.h"
#include "proto/ms_env.h"
#include "proto/notify.h"
#include "proto/process.h"
#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_TEMPORARY = 75, EXIT_CONFIG = 78 };

static int log_level(const struct ms_settings *settings)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"error", MS_LOG_ERR},
                  {"warning", MS_LOG_WARNING},
                  {"notice", MS_LOG_NOTICE},
                  {"info", MS_LOG_INFO},
                  {"debug", MS_LOG_DEBUG}};
    const char *name = ms_settings_string(settings, "log_level");
    for (size_t i = 0; i < MS_ARRAY_SIZE(levels); i++) {
        if (strcmp(levels[i].name, name) == 0) {
            return levels[i].level;
        }
    }
    return MS_LOG_INFO;
}

static int usage(void)
{
    printf(
        "Usage: msworker [OPTION]... [JOB.yaml]\n\n"
        "The worker of a training cluster. With a job file it is a worker of MindSpore's dynamic\n"
        "cluster (MS_ROLE=MS_WORKER, MS_SCHED_HOST, MS_SCHED_PORT, MS_WORKER_NUM); without one it\n"
        "registers with a standing cluster and waits for jobs. With MS_ROLE=MS_SCHED it becomes\n"
        "msschedd, the scheduler. --evaluate and --predict are for msctl.\n\n");
    ms_settings_usage(program_settings, stdout);
    printf("  --check-config          print every setting and where it came from, read the files\n"
           "  --version, --help\n");
    return 0;
}

static int exit_status(const struct program *program, int rc)
{
    if (rc == 0) {
        return 0;
    }
    if (rc == MS_E_CONFIG) {
        return EXIT_CONFIG;
    }
    if (program->worker.mode == WORKER_STANDING) { /* for systemd: what passes, and what does not */
        return rc == MS_E_TLS || rc == MS_E_REFUSED || rc == MS_E_INVALID ? EXIT_CONFIG
                                                                          : EXIT_TEMPORARY;
    }
    return ms_code_exit_status(rc);
}

/* One line: what a scheduler said may be several. */
static void say_error(const char *text)
{
    char line[MS_ERR_TEXT_MAX];
    if (getenv("JOURNAL_STREAM") != NULL) {
        ms_log(MS_LOG_ERR, "worker.ended reason=%s", MS_QUOTE(text));
    } else {
        ms_text_copy(line, sizeof(line), text);
        ms_text_mend((uint8_t *)line, strlen(line), MS_TEXT_LINE);
        fprintf(stderr, "msworker: %s\n", line);
    }
}

/* The process stays what it is for systemd, and is a new one for the scheduler. A signal is heard
 * by the one or the other. 0: it was told to end. */
static int begin_anew(struct program *program, struct ms_err *err)
{
    signals_leave(program);
    return worker_must_leave() ? 0 : anew_run(err);
}

static enum worker_mode mode_at_hang; /* written before the worker runs */

/* On a thread of its own. The trainer's cannot be ended from outside: the process goes, systemd or
 * a person starts it again, and the scheduler hears of it by the end of the connection. */
static void on_hang(const char *text)
{
    say_error(text);
    _exit(mode_at_hang == WORKER_STANDING ? EXIT_TEMPORARY : 1);
}

/* --help, --version, --check-config; true when there is nothing else to do. */
static int take_words(int *argc, char **argv, int *ret_check)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 1;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf(SOFTWARE "\n");
            return 1;
        }
        if (strcmp(argv[i], "--check-config") == 0) {
            *ret_check = 1;
            memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof(*argv));
            (*argc)--;
            i--;
        }
    }
    return 0;
}

/* No word that the unit does not say. */
static int is_of_service(int argc, char **argv)
{
    return !ms_env_is_dynamic() &&
           (argc == 1 || (argc == 2 && strncmp(argv[1], "--slot=", 7) == 0) ||
            (argc == 3 && strcmp(argv[1], "--slot") == 0));
}

/* Prints what holds, and reads what a start would read; as: as whom, for people. Makes nothing. */
static int check_config(struct program *program, const char *as, int argc, char **argv)
{
    struct ms_err err = {0, ""};
    program->checks = 1;
    if (as != NULL) {
        printf("# %s\n", as);
    }
    ms_settings_print(program->settings, stdout);
    fflush(stdout);
    int rc = program_setup(program, argc, argv, &err);
    if (rc < 0) {
        say_error(err.text);
    }
    return exit_status(program, rc);
}

/* Once, before anything that it may have caused. */
static void say_unused(void)
{
    char names[MS_TEXT_MAX * 2];
    if (ms_env_unused(names, sizeof(names))[0] != '\0') {
        ms_log(MS_LOG_NOTICE, "env.unused text=\"set, and not used by msched: %s\"", names);
    }
}

static int run(struct program *program, int argc, char **argv)
{
    struct ms_err err = {0, ""};
    say_unused();
    signals_block(program);
    int rc = program_setup(program, argc, argv, &err);
    if (rc == 0) {
        rc = signals_take(program, &err);
    }
    if (rc == 0) {
        mode_at_hang = program->worker.mode;
        program->worker.on_hang = on_hang;
        ms_notify("READY=1\nSTATUS=registering");
        rc = worker_run(&program->worker, &err);
        rc = rc == WORKER_ANEW ? begin_anew(program, &err) : rc;
    }
    if (rc < 0) {
        say_error(err.text);
    }
    return exit_status(program, rc);
}

int main(int argc, char **argv)
{
    static struct program program; /* as long as the thread of the signals */
    struct ms_err err = {0, ""};
    int check = 0;
    if (!answer_is_asked(argc, argv) && as_scheduler_is_asked(program_settings, argc, argv)) {
        (void)as_scheduler_run(program_settings, argc, argv, &err);
        say_error(err.text);
        return EXIT_CONFIG;
    }
    spin_settle(argv);
    anew_keep(argc, argv);
    ms_process_begin();
    if (answer_is_asked(argc, argv)) {
        return answer_main(argc, argv);
    }
    ms_log_init(STDERR_FILENO, MS_LOG_INFO, getenv("JOURNAL_STREAM") != NULL);
    if (take_words(&argc, argv, &check)) {
        return 0;
    }
    const char *as = check ? ms_process_check_as_service(is_of_service(argc, argv)) : NULL;
    int rc = ms_settings_load(program_settings, MSCHED_SYSCONFDIR "/msworker.conf", 0, &argc, argv,
                              &program.settings, &err);
    if (rc < 0) {
        say_error(err.text);
        return rc == MS_E_CONFIG ? EXIT_CONFIG : rc == MS_E_NOMEM ? EXIT_TEMPORARY : EXIT_USAGE;
    }
    ms_log_init(STDERR_FILENO, log_level(program.settings), getenv("JOURNAL_STREAM") != NULL);
    if (check) {
        return check_config(&program, as, argc, argv);
    }
    int status = run(&program, argc, argv);
    SSL_CTX_free(program.tls);
    dynamic_fini(&program.dynamic);
    free(program.plan);
    return status; /* settings stay: a signal may be on its way to them */
}
