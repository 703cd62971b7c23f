/* options.c - what msschedd was asked to be: flags, environment and file, judged and in one struct
 */
#include "daemon/options_private.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- the three modes ----------------------------------------------------------------------------
 */

static int load_standing(struct options *options, const struct options_words *words, int *argc,
                         char **argv, struct ms_err *err)
{
    options->sched.mode = SCHED_STANDING;
    int rc =
        ms_settings_load(options_rows, words->config != NULL ? words->config : OPTIONS_CONFIG_FILE,
                         words->config != NULL, argc, argv, &options->settings, err);
    if (rc == 0) {
        rc = options_settle_socket(options, err);
    }
    return rc < 0 ? rc : options_from_settings(options, err);
}

static int load_private(struct options *options, const struct options_words *words, int *argc,
                        char **argv, struct ms_err *err)
{
    if (words->config != NULL) {
        return ms_fail(err, MS_E_INVALID, "--run-dir and --config exclude each other");
    }
    const struct ms_setting *rows = NULL;
    options->sched.mode = SCHED_RUN;
    int rc = options_private_rows(words->run_dir, options, &rows, err);
    if (rc == 0) {
        rc = ms_settings_load(rows, NULL, 0, argc, argv, &options->settings, err);
    }
    if (rc == 0) {
        rc = options_settle_socket(options, err);
    }
    return rc < 0 ? rc : options_from_settings(options, err);
}

static int load_dynamic(struct options *options, const struct options_words *words, int *argc,
                        char **argv, struct ms_err *err)
{
    if (words->config != NULL) {
        return ms_fail(err, MS_E_INVALID,
                       "MS_ROLE is set: a dynamic cluster takes its settings from the MS_* "
                       "environment, not from --config; unset MS_ROLE for a standing cluster");
    }
    options->sched.mode = SCHED_DYNAMIC;
    int rc = ms_settings_load(options_dynamic_rows(), NULL, 0, argc, argv, &options->settings, err);
    if (rc < 0) {
        return rc;
    }
    options->env = calloc(1, sizeof(*options->env));
    if (options->env == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the environment");
    }
    rc = who_parse_roles(ms_settings_string(options->settings, "anyone"), &options->anyone_roles,
                         err);
    if (rc == 0) {
        rc = ms_env_load(MS_ENV_SCHEDULER, options->env, err);
    }
    return rc < 0 ? rc : options_from_environment(options, err);
}

/* MindSpore's start scripts give all roles the same words: `msschedd ./net.yaml`. The job comes
 * with the workers, so the file is not read; but a word that names none is a mistake. */
static int skip_job_file(int *argc, char **argv)
{
    if (*argc == 2 && access(argv[1], R_OK) == 0) {
        *argc = 1;
    }
    return *argc == 1;
}

static int load_mode(struct options *options, const struct options_words *words, int *argc,
                     char **argv, struct ms_err *err)
{
    int rc;
    if (words->run_dir != NULL) { /* before MS_ROLE: `msctl run` may stand in a job's script */
        rc = load_private(options, words, argc, argv, err);
    } else if (ms_env_is_dynamic()) {
        rc = load_dynamic(options, words, argc, argv, err);
    } else {
        rc = load_standing(options, words, argc, argv, err);
    }
    int is_scripted = options->sched.mode == SCHED_DYNAMIC && skip_job_file(argc, argv);
    if (rc == 0 && *argc > 1 && !is_scripted) {
        rc = ms_fail(err, MS_E_INVALID, "unexpected word '%.80s'; see --help", argv[1]);
    }
    return rc;
}

static void finish(struct options *options)
{
    static const enum ms_log_level levels[] = {MS_LOG_ERR, MS_LOG_WARNING, MS_LOG_NOTICE,
                                               MS_LOG_INFO, MS_LOG_DEBUG};
    options->log_level = levels[ms_settings_int(options->settings, "log_level")];
    options->sched.software = "msschedd " MSCHED_VERSION;
    options->sched.database = options->database[0] != '\0' ? options->database : "none";
}

int options_load(int argc, char *const *argv, struct options **ret, struct ms_err *err)
{
    struct options_words words = {.action = OPTIONS_RUN};
    struct options *options = calloc(1, sizeof(*options));
    char **copy = calloc((size_t)argc + 1, sizeof(*copy));
    int rc =
        options == NULL || copy == NULL ? ms_fail(err, MS_E_NOMEM, "no memory for options") : 0;
    if (rc == 0) {
        memcpy(copy, argv, (size_t)argc * sizeof(*copy));
        rc = options_take_words(&argc, copy, &words, err);
    }
    if (rc == 0 && words.action != OPTIONS_HELP && words.action != OPTIONS_VERSION) {
        rc = load_mode(options, &words, &argc, copy, err);
        if (rc == 0) {
            finish(options);
        }
    }
    if (rc == 0 && getrandom(options->sched.secret, sizeof(options->sched.secret), 0) !=
                       (ssize_t)sizeof(options->sched.secret)) {
        rc = ms_fail_errno(err, MS_E_IO, "no random bytes for the group token");
    }
    free(copy);
    if (rc < 0) {
        options_destroy(options);
        return rc;
    }
    options->action = words.action;
    options->accepts_loss = words.accepts_loss;
    *ret = options;
    return 0;
}

void options_destroy(struct options *options)
{
    if (options == NULL) {
        return;
    }
    ms_settings_destroy(options->settings);
    ms_tls_files_wipe(&options->files);
    explicit_bzero(options->sched.secret, sizeof(options->sched.secret));
    free(options->env);
    free(options->private_rows);
    free(options);
}

/* ---- for people ---------------------------------------------------------------------------------
 */

const char *options_mode_name(enum sched_mode mode)
{
    static const char *const names[] = {
        [SCHED_STANDING] = "standing", [SCHED_DYNAMIC] = "dynamic", [SCHED_RUN] = "run"};
    return names[mode];
}

void options_print(const struct options *options, FILE *out)
{
    fprintf(out, "# mode: %s\n", options_mode_name(options->sched.mode));
    if (options->env != NULL) {
        ms_env_print(options->env, out);
    }
    ms_settings_print(options->settings, out);
}

const char *options_format(const struct options *options, char *buf, size_t size)
{
    char quoted[3][MS_PATH_MAX + 8];
    if (options->env != NULL) {
        char *at = buf;
        int n = snprintf(buf, size, "mode=dynamic ");
        return n > 0 && (size_t)n < size
                   ? (ms_env_format(options->env, at + n, size - (size_t)n), buf)
                   : buf;
    }
    snprintf(buf, size,
             "mode=%s listen=%s socket=%s database=%s lease_ms=%lld topo_timeout_ms=%lld "
             "tls=%s",
             options_mode_name(options->sched.mode),
             ms_log_quote(quoted[0], sizeof(quoted[0]), options->listen),
             ms_log_quote(quoted[1], sizeof(quoted[1]), options->socket),
             ms_log_quote(quoted[2], sizeof(quoted[2]), options->database),
             (long long)options->sched.lease_ms, (long long)options->sched.topo_timeout_ms,
             options->files.p12_path[0] != '\0' ? "on"
             : options->tls == OPTIONS_TLS_OFF  ? "off"
                                                : "no-certificate");
    return buf;
}

/* ---- a reload -----------------------------------------------------------------------------------
 */

/* All that options_from_settings makes of the settings, anew. */
static int judge_again(struct options *options, struct ms_err *err)
{
    ms_tls_files_wipe(&options->files);
    memset(&options->files, 0, sizeof(options->files));
    int rc = options_settle_socket(options, err);
    return rc < 0 ? rc : options_from_settings(options, err);
}

int options_keep_fixed(const struct options *running, struct options *fresh, char *buf, size_t size,
                       struct ms_err *err)
{
    size_t used = 0;
    int rc = 0;
    buf[0] = '\0';
    if (running->env != NULL || fresh->env != NULL) {
        return 0; /* the environment of a process does not change */
    }
    for (const struct ms_setting *row = options_rows; rc == 0 && row->key != NULL; row++) {
        const char *a = ms_settings_string(running->settings, row->key);
        const char *b = ms_settings_string(fresh->settings, row->key);
        int same = a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
        if (same || row->reloadable) {
            continue;
        }
        int n = snprintf(buf + used, size - used, "%s%s", used == 0 ? "" : " ", row->key);
        used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
        rc = ms_settings_keep(fresh->settings, running->settings, row->key, err);
    }
    return rc == 0 && used > 0 ? judge_again(fresh, err) : rc;
}
