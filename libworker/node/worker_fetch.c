/* worker_fetch.c - results of this node's jobs, for those whom the scheduler sends */
#include "libworker/node/worker_impl.h"

#include "libworker/train/lent.h"
#include "libworker/train/saved.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Name of a result in the folder of its job. */
static int result_name(unsigned what, uint32_t rank, char *buf, size_t size)
{
    switch (what) {
    case MS_FETCH_WEIGHTS:
        snprintf(buf, size, TRAIN_WEIGHTS_FILE);
        return 1;
    case MS_FETCH_METRICS:
        snprintf(buf, size, "metrics.jsonl");
        return 1;
    case MS_FETCH_LOG:
        snprintf(buf, size, "worker_%u.log", rank);
        return 1;
    default:
        return 0;
    }
}

static int find_folder(const struct worker *worker, const struct fetch_want *want,
                       char folder[MS_PATH_MAX + 1], struct ms_err *err)
{
    worker_job_folder(worker, want->job, folder, MS_PATH_MAX + 1);
    if (folder[0] == '\0') {
        return ms_fail(err, MS_E_NOT_FOUND, "this node keeps no such result");
    }
    return worker_folder_is_of(worker, folder, want->job_tag)
               ? MS_OK
               : ms_fail(err, MS_E_NOT_FOUND, "%.200s holds results of another job of this number",
                         folder);
}

static int open_file(void *arg, const struct fetch_want *want, struct ms_err *err)
{
    const struct worker *worker = arg;
    char folder[MS_PATH_MAX + 1];
    char path[MS_PATH_MAX + 64];
    char name[48];
    if (!result_name(want->what, want->rank, name, sizeof(name))) {
        return ms_fail(err, MS_E_NOT_FOUND, "this node keeps no such result");
    }
    int rc = find_folder(worker, want, folder, err);
    if (rc < 0) {
        return rc;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = fetch_open(path, err);
    return fd != MS_E_NOT_FOUND
               ? fd
               : ms_fail(err, fd,
                         "there is no %.200s: the job wrote none, or its folder was cleaned", path);
}

/* ---- what the job has saved ---- */

static int fill(int fd, const char *text, size_t size, struct ms_err *err)
{
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(fd, text + at, size - at);
        if (n < 0) {
            return ms_fail_errno(err, MS_E_IO, "cannot keep the list of checkpoints");
        }
        at += (size_t)n;
    }
    return MS_OK;
}

/* As a file, for what is served is one. */
static int open_list(const struct saved_place *place, struct ms_err *err)
{
    struct saved_list list;
    size_t size = 0;
    int rc = saved_look(place, &list, err);
    if (rc < 0) {
        return rc;
    }
    char *text = saved_list_format(&list, &size);
    saved_list_fini(&list);
    const int fd = text != NULL ? memfd_create("saved", MFD_CLOEXEC) : -1;
    rc = text == NULL ? ms_fail(err, MS_E_NOMEM, "no memory on the node for its checkpoints")
         : fd < 0     ? ms_fail_errno(err, MS_E_IO, "cannot keep the list of checkpoints")
                      : fill(fd, text, size, err);
    free(text);
    if (rc < 0 && fd >= 0) {
        close(fd);
    }
    return rc < 0 ? rc : fd;
}

static int open_saved(void *arg, const struct fetch_want *want, const struct fetch_saved *saved,
                      struct ms_err *err)
{
    const struct worker *worker = arg;
    char folder[MS_PATH_MAX + 1];
    int rc = find_folder(worker, want, folder, err);
    if (rc < 0) {
        return rc;
    }
    const struct saved_place place = {.folder = folder,
                                      .directory = saved->directory,
                                      .prefix = saved->prefix,
                                      .tag = want->job_tag};
    switch (saved->what) {
    case MS_SAVED_LIST:
        return open_list(&place, err);
    case MS_SAVED_DATA:
        return saved->step == 0 ? saved_open_best(&place, 0, err)
                                : saved_open(&place, saved->step, 0, err);
    case MS_SAVED_MANIFEST:
        return saved_open(&place, saved->step, 1, err);
    case MS_SAVED_BEST:
        return saved_open_best(&place, saved->step, err);
    case MS_SAVED_LEND:
        rc = lent_give(folder, saved->borrower, err);
        return rc < 0 ? rc : saved_open(&place, saved->step, 1, err);
    default:
        return ms_fail(err, MS_E_UNSUPPORTED, "this node does not know what is asked for: %u",
                       saved->what);
    }
}

static void answer(void *arg, const Ms__FetchReady *ready)
{
    struct worker *worker = arg;
    struct ms_err err = {0, ""};
    if (agent_send(worker->agent, MS_MSG_FETCH_READY, &ready->base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "fetch.answer_failed reason=%s, ignoring", MS_QUOTE(err.text));
    }
}

static SSL_CTX *get_tls(void *arg)
{
    return worker_tls(arg);
}

int worker_start_serving(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    struct fetch_serve *serve = NULL;
    struct fetch_serve_config config = {.bind_ip = worker->identity.ip,
                                        .port_min = cfg->port_min,
                                        .port_max = cfg->port_max,
                                        .get_tls = get_tls,
                                        .software = cfg->software,
                                        .open_file = open_file,
                                        .open_saved = open_saved,
                                        .answer = answer,
                                        .arg = worker};
    int rc = fetch_serve_create(&config, &serve, err);
    if (rc == 0) {
        pthread_mutex_lock(&worker->lock);
        worker->serve = serve;
        pthread_mutex_unlock(&worker->lock);
    }
    return rc;
}

void worker_stop_serving(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    struct fetch_serve *serve = worker->serve;
    worker->serve = NULL; /* a grant that comes now is not answered: the scheduler hears Leave */
    pthread_mutex_unlock(&worker->lock);
    fetch_serve_destroy(serve);
}

void worker_on_fetch(void *arg, const Ms__FetchGrant *grant)
{
    struct worker *worker = arg;
    pthread_mutex_lock(&worker->lock);
    if (worker->serve != NULL) {
        fetch_serve_ask(worker->serve, grant);
    }
    pthread_mutex_unlock(&worker->lock);
}
