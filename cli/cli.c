/* cli.c - what every command of msctl gets: where to print, whom to ask */
#include "cli/cli.h"

#include "cli/format.h"
#include "config.h"
#include "proto/clock.h"
#include "proto/rng.h"
#include "proto/state_words.h"
#include "proto/text.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t cli_terminal_width(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    if (fd < 0 || !isatty(fd)) {
        return 0;
    }
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int cli_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static int is_drawable(FILE *stream)
{
    const char *term = getenv("TERM");
    return cli_terminal_width(stream) > 0 && term != NULL && strcmp(term, "dumb") != 0;
}

int cli_init(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    const char *no_color = getenv("NO_COLOR"); /* https://no-color.org: any value but nothing */
    memset(cli, 0, sizeof(*cli));
    setlocale(LC_CTYPE, "");
    cli->out = stdout;
    cli->err = stderr;
    cli->json = cli_has(args, "json");
    cli->width = cli_terminal_width(stdout);
    cli->colour = is_drawable(stdout) && (no_color == NULL || no_color[0] == '\0');
    cli->live = is_drawable(cli->json ? stderr : stdout);
    /* the default backend probes for timerfd and others at each start; all we need is epoll */
    cli->base = event_base_new();
    return cli->base != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "cannot make an event loop");
}

void cli_fini(struct cli *cli)
{
    client_destroy(cli->client);
    SSL_CTX_free(cli->tls);
    finder_target_wipe(&cli->target);
    if (cli->base != NULL) {
        event_base_free(cli->base);
    }
    memset(cli, 0, sizeof(*cli));
}

const char *cli_user_dir(char *buf, size_t size)
{
    const char *config_home = getenv("XDG_CONFIG_HOME");
    const struct passwd *self = getenv("HOME") == NULL ? getpwuid(geteuid()) : NULL;
    const char *home = self != NULL ? self->pw_dir : getenv("HOME");
    if (config_home != NULL && config_home[0] == '/') {
        snprintf(buf, size, "%s/msched", config_home);
        return buf;
    }
    if (home != NULL && home[0] == '/') {
        snprintf(buf, size, "%s/.config/msched", home);
        return buf;
    }
    return NULL;
}

static void fill_places(const struct cli_args *args, char *user_dir, size_t size,
                        struct finder_places *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->flag = cli_value(args, "server");
    ret->config = cli_value(args, "config");
    ret->env_host = getenv("MS_SCHED_HOST");
    ret->env_port = getenv("MS_SCHED_PORT");
    ret->env_tls = getenv("MS_TLS_CONFIG");
    ret->env_ssl = getenv("MS_ENABLE_SSL");
    ret->system_dir = MSCHED_SYSCONFDIR;
    ret->socket_path = CLI_SOCKET_DEFAULT;
    ret->user_dir = cli_user_dir(user_dir, size);
}

int cli_connect(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    char user_dir[MS_PATH_MAX + 1];
    char warning[MS_TEXT_MAX + 1] = "";
    struct finder_places places;
    fill_places(args, user_dir, sizeof(user_dir), &places);
    int rc = finder_find(&places, &cli->target, err);
    if (rc == MS_OK) {
        rc = finder_tls(&cli->target, &cli->tls, warning, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (warning[0] != '\0') {
        fprintf(cli->err, "msctl: %s\n", warning);
    }
    const char *address = cli->target.address;
    cli->client = client_create(cli->base, address, cli->tls, cli->target.tls_host);
    if (cli->client == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a connection");
    }
    rc = client_connect(cli->client, err);
    if (rc == MS_OK) {
        rc = client_wait_open(cli->client, err);
    }
    if (rc == MS_E_REFUSED && cli->target.plain_by[0] != '\0') {
        char why[MS_ERR_TEXT_MAX];
        ms_text_copy(why, sizeof(why), ms_err_text(err));
        ms_fail(err, rc, "%s; here stands %s", why, cli->target.plain_by);
    }
    return rc;
}

int cli_is_lost(int code)
{
    return code == MS_E_CLOSED || code == MS_E_UNREACHABLE;
}

static int pipe_closed;

int cli_is_pipe_closed(void)
{
    return pipe_closed;
}

int cli_check_output(FILE *out, struct ms_err *err)
{
    if (fflush(out) == 0 && !ferror(out)) {
        return MS_OK;
    }
    int error = errno;
    struct pollfd pipe = {fileno(out), POLLOUT, 0}; /* an earlier write may have been the first */
    pipe_closed = error == EPIPE || (poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0);
    errno = error;
    return ms_fail_errno(err, MS_E_IO, "cannot write the output");
}

void cli_say(const struct cli *cli, const char *fmt, ...)
{
    char text[2 * MS_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ms_text_mend((uint8_t *)text, strlen(text), MS_TEXT_LINE);
    fprintf(cli->err, "msctl: %s\n", text);
}

void cli_fact(const struct cli *cli, const char *name, const char *text)
{
    enum { INDENT = 13 };
    const size_t room = cli->width > INDENT ? cli->width - INDENT : SIZE_MAX;
    while (text[0] != '\0') {
        size_t n = cli_text_break(text, room);
        fprintf(cli->out, "%-*s%.*s\n", INDENT, name, (int)n, text);
        text += n + strspn(text + n, " ");
        name = "";
    }
}

static void on_pause_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

void cli_pause(struct cli *cli, int64_t ms)
{
    struct timeval tv = {ms / 1000, ms % 1000 * 1000};
    struct event *timer = evtimer_new(cli->base, on_pause_end, NULL);
    if (timer != NULL) {
        evtimer_add(timer, &tv);
        event_base_loop(cli->base, EVLOOP_ONCE);
        event_free(timer);
    }
}

int cli_reconnect(struct cli *cli, int64_t deadline_ms, struct ms_err *err)
{
    int64_t pause_ms = MS_RECONNECT_MIN_MS;
    struct ms_err why = *err;
    fprintf(cli->err, "msctl: the scheduler is gone (%s); trying again\n", why.text);
    for (;;) {
        int rc = client_connect(cli->client, err);
        if (rc == MS_OK) {
            rc = client_wait_open(cli->client, err);
        }
        if (rc == MS_OK || !cli_is_lost(rc)) {
            return rc;
        }
        int64_t left_ms = deadline_ms - ms_mono_ms();
        if (left_ms <= 0) {
            return rc;
        }
        /* jitter, so that many that lost the same scheduler do not come back as one */
        int64_t ms = pause_ms / 2 + (ms_mono_ms() ^ getpid()) % (pause_ms / 2 + 1);
        cli_pause(cli, ms < left_ms ? ms : left_ms);
        pause_ms = pause_ms * 2 < 5000 ? pause_ms * 2 : 5000;
    }
}

int cli_parse_job(const char *text, uint64_t *ret, struct ms_err *err)
{
    int64_t id = 0;
    int rc = cli_parse_number("job id", text, 1, INT64_MAX, &id, err);
    if (rc != MS_OK) {
        return ms_fail(err, rc,
                       "'%.80s' is no job id: ids are whole numbers; see: msctl jobs --all", text);
    }
    *ret = (uint64_t)id;
    return MS_OK;
}

double cli_job_seconds(const Ms__JobInfo *job)
{
    if (job->started_ms <= 0) {
        return -1;
    }
    const int64_t end_ms = job->ended_ms > 0 ? job->ended_ms : ms_wall_ms();
    return (double)(end_ms - job->started_ms) / 1000;
}

int cli_job_status(const Ms__JobInfo *job)
{
    if (strcmp(job->state, MS_JOB_STATE_SUCCEEDED) == 0) {
        return 0;
    }
    return strcmp(job->state, MS_JOB_STATE_CANCELLED) == 0 ? 5 : 1;
}
