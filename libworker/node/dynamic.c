/* dynamic.c - a worker's place in MindSpore's dynamic cluster, as the MS_* environment says it */
#include "libworker/node/dynamic.h"

#include "proto/addr.h"

#include <stdio.h>
#include <string.h>

static int is_loopback(const char *server)
{
    struct ms_addr addr;
    struct sockaddr_storage sa;
    socklen_t len = 0;
    return ms_addr_parse(server, 0, &addr, NULL) == 0 &&
           ms_addr_resolve(&addr, &sa, &len, NULL) == 0 &&
           ms_addr_is_loopback((struct sockaddr *)&sa);
}

/* A context from the JSON's files; the password is wiped. */
static int load_json(struct dynamic *dynamic, const char *path, struct ms_err *err)
{
    struct ms_tls_files files;
    struct ms_tls_config cfg;
    int rc = ms_tls_files_parse(path, 0, &files, err);
    if (rc < 0) {
        return rc;
    }
    dynamic->check_hours = files.check_interval_hours;
    ms_tls_files_config(&files, &cfg);
    cfg.roles = MS_ROLE_WORKER;
    rc = ms_tls_context(&cfg, &dynamic->tls, dynamic->warning, err);
    ms_tls_files_wipe(&files);
    /* our own files: no waiting mends them */
    return rc < 0 && rc != MS_E_NOMEM ? ms_err_recode(err, MS_E_CONFIG) : rc;
}

static int load_certificates(struct dynamic *dynamic, struct ms_err *err)
{
    const struct ms_env *env = &dynamic->env;
    const char *config = ms_env_text(env, MS_ENV_TLS_CONFIG);
    int off = env->value[MS_ENV_ENABLE_SSL].is_set &&
              strcmp(ms_env_text(env, MS_ENV_ENABLE_SSL), "0") == 0;
    if (off) {
        return 0;
    }
    if (config[0] != '\0') {
        return load_json(dynamic, config, err);
    }
    if (is_loopback(dynamic->server)) {
        return 0;
    }
    return ms_fail(err, MS_E_CONFIG,
                   "no certificates for the scheduler at %s, which is another host: name them with "
                   "MS_TLS_CONFIG=<the TLS JSON>, or switch TLS off on both sides with "
                   "MS_ENABLE_SSL=0",
                   dynamic->server);
}

int dynamic_load(struct dynamic *dynamic, struct ms_err *err)
{
    memset(dynamic, 0, sizeof(*dynamic));
    int rc = ms_env_load(MS_ENV_WORKER, &dynamic->env, err);
    if (rc < 0) {
        return rc;
    }
    struct ms_addr addr = {.port = (int)ms_env_int(&dynamic->env, MS_ENV_SCHED_PORT)};
    snprintf(addr.host, sizeof(addr.host), "%s", ms_env_text(&dynamic->env, MS_ENV_SCHED_HOST));
    ms_addr_format(&addr, dynamic->server);
    snprintf(dynamic->node_id, sizeof(dynamic->node_id), "%s",
             ms_env_text(&dynamic->env, MS_ENV_NODE_ID));
    return load_certificates(dynamic, err);
}

void dynamic_fini(struct dynamic *dynamic)
{
    SSL_CTX_free(dynamic->tls);
    dynamic->tls = NULL;
}

int dynamic_take_job(const struct dynamic *dynamic, struct job *job, struct ms_err *err)
{
    const char *key = NULL;
    job->workers = (int)ms_env_int(&dynamic->env, MS_ENV_WORKER_NUM);
    job->recovery = ms_env_int(&dynamic->env, MS_ENV_ENABLE_RECOVERY) == 1;
    const char *why = job_refuse_split(job, &key);
    if (why == NULL) {
        return MS_OK;
    }
    const int is_recovery = strcmp(key, "recovery") == 0;
    return ms_fail(err, MS_E_INVALID,
                   "%s%s: in mode stand_alone each of the %d workers has a training of its own, "
                   "and %s; %suse data_parallel",
                   is_recovery ? "MS_ENABLE_RECOVERY=1" : "key ", is_recovery ? "" : key,
                   job->workers, why, is_recovery ? "set it to 0 on all processes, or " : "");
}

void dynamic_fill(const struct dynamic *dynamic, const struct job *job,
                  struct worker_config *worker)
{
    const struct ms_env *env = &dynamic->env;
    int64_t lease_ms = ms_env_ms(env, MS_ENV_NODE_TIMEOUT);
    int is_patient = lease_ms < 0 || ms_env_int(env, MS_ENV_DISABLE_HEARTBEAT) == 1;
    int64_t peer_ms = ms_env_ms(env, MS_ENV_RECEIVE_MSG_TIMEOUT);
    worker->mode = WORKER_DYNAMIC;
    worker->scheduler = dynamic->server;
    worker->node_id = dynamic->node_id;
    worker->worker_ip = ms_env_text(env, MS_ENV_WORKER_IP);
    worker->tls = dynamic->tls;
    worker->connect_timeout_ms = ms_env_register_ms(env);
    worker->connect_by = ms_env_register_by(env);
    worker->word_ms = ms_env_word_ms(env);
    worker->word_by = ms_env_word_by(env);
    worker->lease_ms = lease_ms < 0 ? INT32_MAX : lease_ms;
    worker->patience_ms = is_patient ? INT32_MAX : 0; /* whatever lease the scheduler tells */
    worker->peer_timeout_ms = peer_ms < 0 ? INT32_MAX : peer_ms;
    worker->worker_num = (uint32_t)ms_env_int(env, MS_ENV_WORKER_NUM);
    worker->job = job;
}
