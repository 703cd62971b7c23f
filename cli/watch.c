/* watch.c - follow one job over a connection that may be lost and found again */
#include "cli/watch.h"
#include "proto/clock.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* How it stands is told to whoever has no time at all: "has it ended?". */
enum { FIRST_ANSWER_MS = 5000 };

static int64_t first_deadline(const struct cli_watch *watch)
{
    int64_t least_ms = ms_mono_ms() + FIRST_ANSWER_MS;
    return watch->deadline_ms >= 0 && watch->deadline_ms < least_ms ? least_ms : watch->deadline_ms;
}

/* One connection's worth: until the job ended, or the connection did. */
static int follow(struct cli *cli, uint64_t job, const struct cli_watch *watch, Ms__JobUpdate **ret,
                  struct ms_err *err)
{
    Ms__Watch request = MS__WATCH__INIT;
    uint32_t id = 0;
    request.job = job;
    int64_t deadline_ms = first_deadline(watch);
    int rc = client_send(cli->client, MS_MSG_WATCH, &request.base, &id, err);
    while (rc == MS_OK) {
        ProtobufCMessage *msg = NULL;
        rc = client_await(cli->client, id, MS_MSG_JOB_UPDATE, deadline_ms, &msg, err);
        if (rc != MS_OK) {
            return rc;
        }
        deadline_ms = watch->deadline_ms;
        Ms__JobUpdate *update = (Ms__JobUpdate *)msg;
        if (update->job == NULL) {
            ms_wire_free(msg);
            return ms_fail(err, MS_E_PROTOCOL, "the scheduler sent an update without a job");
        }
        rc = watch->on_update != NULL ? watch->on_update(update, watch->arg, err) : MS_OK;
        if (rc == MS_OK && update->ended) {
            *ret = update;
            return MS_OK;
        }
        ms_wire_free(msg);
    }
    return rc;
}

int cli_watch(struct cli *cli, uint64_t job, const struct cli_watch *watch, Ms__JobUpdate **ret,
              struct ms_err *err)
{
    for (;;) {
        int rc = follow(cli, job, watch, ret, err);
        if (!cli_is_lost(rc)) {
            return rc;
        }
        if (watch->on_lost != NULL) {
            watch->on_lost(watch->arg);
        }
        int64_t give_up_ms = ms_mono_ms() + CLI_COMEBACK_MS;
        int bounded = watch->deadline_ms >= 0 && watch->deadline_ms < give_up_ms;
        rc = cli_reconnect(cli, bounded ? watch->deadline_ms : give_up_ms, err);
        if (rc != MS_OK) {
            return bounded && cli_is_lost(rc)
                       ? ms_fail(err, MS_E_TIMEOUT, "the time is over, and the scheduler gone")
                       : rc;
        }
    }
}

/* ---- a reader that goes ---- */

static struct event *reader; /* lives as long as the process */

static void on_reader(evutil_socket_t fd, short what, void *arg)
{
    struct pollfd out = {.fd = fd};
    (void)what;
    (void)arg;
    if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0) {
        _exit(CLI_PIPE_STATUS); /* nobody is there to be told anything */
    }
    event_del(reader); /* a socket on which he talks: what he says is not for us */
}

/* Pipes and sockets only: files have no readers, and a terminal that goes sends HUP. */
static int watch_reader(struct cli *cli, struct ms_err *err)
{
    struct stat st;
    int fd = fileno(cli->out);
    if (fstat(fd, &st) != 0 || (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))) {
        return MS_OK;
    }
    reader = event_new(cli->base, fd, EV_READ | EV_PERSIST, on_reader, NULL);
    return reader != NULL && event_add(reader, NULL) == 0
               ? MS_OK
               : ms_fail(err, MS_E_NOMEM, "cannot watch the reader of the output");
}

/* ---- Ctrl-C ---- */

static struct {
    void (*before_exit)(void *arg);
    void *arg;
} detach;

int cli_hears_signal(int number)
{
    struct sigaction old;
    return number != SIGHUP || sigaction(number, NULL, &old) != 0 || old.sa_handler != SIG_IGN;
}

/* A client owes nobody anything: the job lives in the scheduler. */
static void on_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    (void)arg;
    if (detach.before_exit != NULL) {
        detach.before_exit(detach.arg);
    }
    fflush(NULL);
    _exit(128 + (int)number);
}

int cli_on_detach(struct cli *cli, void (*before_exit)(void *arg), void *arg, struct ms_err *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    static struct event *events[MS_ARRAY_SIZE(numbers)]; /* live as long as the process */
    detach.before_exit = before_exit;
    detach.arg = arg;
    for (size_t i = 0; i < MS_ARRAY_SIZE(numbers); i++) {
        if (!cli_hears_signal(numbers[i])) {
            continue;
        }
        events[i] = evsignal_new(cli->base, numbers[i], on_signal, NULL);
        if (events[i] == NULL || event_add(events[i], NULL) != 0) {
            return ms_fail(err, MS_E_NOMEM, "cannot watch signals");
        }
    }
    return watch_reader(cli, err);
}
