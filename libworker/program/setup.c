/* setup.c - what settings, files and environment make of a worker */
#include "libworker/comm/comm.h"
#include "libworker/data/path.h"
#include "libworker/host/team_stack.h"
#include "libworker/node/image_memory.h"
#include "libworker/node/job_folders.h"
#include "libworker/plan/plan.h"
#include "libworker/program/plan_given.h"
#include "libworker/program/program.h"
#include "proto/addr.h"
#include "proto/log.h"
#include "proto/ms_env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where data lie by the customs of hosts and clusters; not /etc, not /var/lib/msched with its keys
 * and other people's jobs, not /tmp, where anybody may put a link. */
#define DATA_ROOTS    "/data /datasets /srv /mnt /media /scratch /opt /home /var/lib/msched/data"
#define NODE_P12      "node.p12"
#define JOB_VARIABLES "DATA_PATH DATA_DIR DATASET_PATH MS_DATA_*"

const struct ms_setting program_settings[] = {
    {"server", "--server", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "scheduler, host:port (MS_SCHED_HOST and MS_SCHED_PORT beat the file)"},
    {"node_id", "--node-id", "MS_NODE_ID", MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "unique name of this node; default: in a standing cluster the certificate's name (the host's "
     "without one) and the slot, else made up"},
    {"slot", "--slot", NULL, MS_SET_INT, 0, 4095, NULL, "0", 0,
     "number of this worker on its host (the instance of msworker@.service)"},
    {"worker_ip", "--worker-ip", "MS_WORKER_IP", MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "address of the data plane; default: the one from which the scheduler is reached"},
    {"data_port_min", "--data-port-min", NULL, MS_SET_INT, 0, 65535, NULL, "8200", 0,
     "first port of the data plane; 0: any"},
    {"data_port_max", "--data-port-max", NULL, MS_SET_INT, 0, 65535, NULL, "8455", 0,
     "last port of the data plane"},
    {"run_dir", "--run-dir", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "folder of the one job that `msctl run` started this worker for"},
    {"plan", "--plan", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "dynamic cluster: train by this plan (plan.txt of a run), or not at all; the same on all "
     "workers"},
    {"jobs_dir", "--jobs-dir", NULL, MS_SET_STRING, 0, 0, NULL, "/var/lib/msched/jobs", 0,
     "standing cluster: folder with one folder a job"},
    {"job_keep_days", "--job-keep-days", NULL, MS_SET_INT, 0, 36500, NULL, "30", 0,
     "folders of jobs that wrote nothing for so long are taken away; 0: none for its age"},
    {"job_keep_count", "--job-keep-count", NULL, MS_SET_INT, 0, 1000000, NULL, "1000", 0,
     "the newest so many stay; 0: all"},
    {"data_roots", "--data-roots", NULL, MS_SET_STRING, 0, 0, NULL, DATA_ROOTS, 0,
     "standing cluster: jobs read their data below these folders only; any: everywhere"},
    {"data_programs", "--data-programs", NULL, MS_SET_STRING, 0, 0, NULL, "none", 0,
     "standing cluster: jobs run programs that deliver their data (kind: program) below these "
     "folders only, as this process's user; none: they run none; any: any"},
    {"job_variables", "--job-variables", NULL, MS_SET_STRING, 0, 0, NULL, JOB_VARIABLES, 0,
     "standing cluster: variables of this process that jobs may name in paths; any: all"},
    {"tls", "--tls", "MS_ENABLE_SSL", MS_SET_ENUM, 0, 0, "auto|off|on|0|1", "auto", 0,
     "auto: TLS, plain only to a scheduler on loopback without certificates; off: plain TCP"},
    {"tls_dir", "--tls-dir", NULL, MS_SET_STRING, 0, 0, NULL, MSCHED_SYSCONFDIR "/tls", 0,
     "folder with ca.crt, node.p12 and, if there, crl.pem; their content is read again on SIGHUP"},
    {"tls_password_file", "--tls-password-file", NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0,
     "file with the password of node.p12; default: the systemd credential p12-password, else none"},
    {"lease_ms", "--lease-ms", NULL, MS_SET_INT, MS_LEASE_MIN_MS, MS_LEASE_MAX_MS, NULL, "10000", 0,
     "until the scheduler says another"},
    {"peer_timeout_ms", "--peer-timeout-ms", NULL, MS_SET_INT, 1000, 3600000, NULL, "600000", 0,
     "a peer that makes no progress for so long is given up"},
    {"log_level", "--log-level", NULL, MS_SET_ENUM, 0, 0, "error|warning|notice|info|debug", "info",
     0, "what goes to standard error"},
    {"isa", "--isa", NULL, MS_SET_ENUM, 0, 0,
     "best|sse41|avx|avx2|avx512_core|avx512_core_vnni|avx512_core_bf16|avx512_core_amx", "best", 0,
     "instruction set at the most; in a cluster of mixed machines the least of all, on all nodes"},
    {"bind_cpus", "--bind-cpus", "MSCHED_BIND_CPUS", MS_SET_ENUM, 0, 0, "on|off", "on", 0,
     "on: the ranks of a job on this host compute on cores of their own, where there are enough"},
    IMAGE_MEMORY_SETTING,
    {"transport", "--transport", "MSCHED_TRANSPORT", MS_SET_ENUM, 0, 0, "auto|remote", "auto", 0,
     "remote: treat peers of this host as remote ones (for tests and measurements)"},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};

/* ---- certificates ---- */

static int load_certs(struct program *program, const char *folder, const char *p12,
                      struct ms_err *err)
{
    program->certs.kind = CERTS_FOLDER;
    program->certs.folder = folder;
    program->certs.p12 = p12;
    program->certs.password_file = ms_settings_string(program->settings, "tls_password_file");
    return certs_load(&program->certs, &program->tls, err);
}

/* As msschedd serves it: on loopback, and where neither the built-in folder has certificates nor
 * anybody named another one. */
static int may_be_plain(struct program *program, const char *folder)
{
    struct ms_addr addr;
    if (strcmp(ms_settings_string(program->settings, "tls"), "auto") != 0 ||
        ms_settings_source(program->settings, "tls_dir") != MS_FROM_BUILTIN ||
        ms_addr_parse(program->server, 0, &addr, NULL) != 0 || !ms_addr_names_loopback(&addr) ||
        !certs_are_missing(folder, NODE_P12)) {
        return 0;
    }
    snprintf(program->plain_by, sizeof(program->plain_by), "no certificate in %.100s", folder);
    return 1;
}

static int tls_standing(struct program *program, struct ms_err *err)
{
    const char *word = ms_settings_string(program->settings, "tls");
    const char *folder = ms_settings_string(program->settings, "tls_dir");
    if (strcmp(word, "off") == 0 || strcmp(word, "0") == 0 || may_be_plain(program, folder)) {
        return 0;
    }
    return load_certs(program, folder, NODE_P12, err);
}

/* ---- the three ways to be a worker ---- */

static int setup_dynamic(struct program *program, const char *job_path, struct ms_err *err)
{
    struct worker_config *worker = &program->worker;
    char line[1024];
    int rc = dynamic_load(&program->dynamic, err);
    if (rc < 0) {
        return rc;
    }
    if (program->dynamic.tls != NULL) { /* loaded already; looked at once a day */
        program->certs.kind = CERTS_JSON;
        program->certs.json = ms_env_text(&program->dynamic.env, MS_ENV_TLS_CONFIG);
        program->certs.check_hours = program->dynamic.check_hours;
    }
    if (program->dynamic.warning[0] != '\0') {
        ms_log(MS_LOG_WARNING, "tls.certificate warning=%s, ignoring",
               MS_QUOTE(program->dynamic.warning));
    }
    ms_log(MS_LOG_INFO, "worker.settings %s",
           ms_env_format(&program->dynamic.env, line, sizeof(line)));
    int worker_num = (int)ms_env_int(&program->dynamic.env, MS_ENV_WORKER_NUM);
    rc = job_load(job_path, NULL, 0, worker_num, &program->job, err);
    rc = rc < 0 ? rc : dynamic_take_job(&program->dynamic, &program->job, err);
    if (rc < 0) {
        return rc;
    }
    dynamic_fill(&program->dynamic, &program->job, worker);
    const char *run_dir = ms_settings_string(program->settings, "run_dir");
    worker->run_dir = run_dir != NULL ? run_dir : ".";
    worker->log_to_file = run_dir != NULL;
    const char *plan = ms_settings_string(program->settings, "plan");
    rc = plan != NULL ? plan_given_read(plan, &program->plan, err) : 0;
    worker->plan = program->plan;
    return rc;
}

static int find_server(struct program *program, struct ms_err *err)
{
    const char *server = ms_settings_string(program->settings, "server");
    const char *host = getenv("MS_SCHED_HOST");
    const char *port = getenv("MS_SCHED_PORT");
    int from_flag = ms_settings_source(program->settings, "server") == MS_FROM_FLAG;
    if (!from_flag && host != NULL && host[0] != '\0') {
        struct ms_addr addr;
        char text[MS_ADDR_MAX + 16];
        snprintf(text, sizeof(text), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host,
                 port != NULL && port[0] != '\0' ? port : "8118");
        int rc = ms_addr_parse(text, 0, &addr, err);
        if (rc < 0) {
            ms_err_prefix(err, "MS_SCHED_HOST and MS_SCHED_PORT");
            return MS_E_CONFIG;
        }
        ms_addr_format(&addr, program->server);
        return 0;
    }
    if (server == NULL) {
        return ms_fail(err, MS_E_CONFIG,
                       "no scheduler: say where it is with --server HOST:PORT, MS_SCHED_HOST and "
                       "MS_SCHED_PORT, or `server = HOST:PORT` in " MSCHED_SYSCONFDIR
                       "/msworker.conf");
    }
    struct ms_addr addr;
    int rc = ms_addr_parse(server, MS_SCHED_PORT, &addr, err);
    if (rc < 0) {
        ms_err_prefix(err, "server");
        return MS_E_CONFIG;
    }
    ms_addr_format(&addr, program->server);
    return 0;
}

/* The scheduler wants ids that are the name of their certificate and a slot; without one the
 * host's.
 */
static int name_node(struct program *program, struct ms_err *err)
{
    const char *node_id = ms_settings_string(program->settings, "node_id");
    int64_t slot = ms_settings_int(program->settings, "slot");
    char host[MS_NAME_MAX / 2] = "";
    struct ms_principal own;
    const char *name = host;
    gethostname(host, sizeof(host) - 1);
    if (program->tls != NULL && ms_tls_own(program->tls, &own)) {
        name = strchr(own.id, ':') + 1;
    }
    int n = node_id != NULL
                ? snprintf(program->node_id, sizeof(program->node_id), "%s", node_id)
                : snprintf(program->node_id, sizeof(program->node_id), "%s-%" PRId64, name, slot);
    if (n < 0 || (size_t)n >= sizeof(program->node_id)) {
        return ms_fail(err, MS_E_CONFIG, "the node id %s... is longer than %d bytes: set --node-id",
                       program->node_id, MS_NAME_MAX);
    }
    return 0;
}

static int setup_standing(struct program *program, struct ms_err *err)
{
    const struct ms_settings *settings = program->settings;
    struct worker_config *worker = &program->worker;
    const char *run_dir = ms_settings_string(settings, "run_dir");
    int rc = find_server(program, err);
    if (rc < 0) {
        return rc;
    }
    worker->worker_ip = ms_settings_string(settings, "worker_ip");
    worker->lease_ms = ms_settings_int(settings, "lease_ms");
    worker->patience_ms = MS_PATIENCE_MS;
    worker->connect_timeout_ms = -1;
    if (run_dir != NULL) {
        static char folder[MS_PATH_MAX + 8]; /* certs borrows it */
        snprintf(folder, sizeof(folder), "%s/tls", run_dir);
        worker->run_dir = run_dir;
        worker->connect_timeout_ms = worker->word_ms = MS_TOPO_TIMEOUT_S * 1000LL;
        worker->port_min = worker->port_max = 0;
        rc = load_certs(program, folder, "worker.p12", err);
        return rc < 0 ? rc : name_node(program, err);
    }
    worker->run_dir = ms_settings_string(settings, "jobs_dir");
    worker->keep_days = ms_settings_int(settings, "job_keep_days");
    worker->keep_count = ms_settings_int(settings, "job_keep_count");
    worker->log_to_file = 1;
    rc = data_path_restrict(ms_settings_string(settings, "job_variables"),
                            ms_settings_string(settings, "data_roots"),
                            ms_settings_string(settings, "data_programs"), err);
    rc = rc < 0 ? rc : tls_standing(program, err);
    if (rc == 0 &&
        (!program->checks || ms_settings_source(settings, "jobs_dir") != MS_FROM_BUILTIN)) {
        rc = (program->checks ? job_folders_judge : job_folders_try)(worker->run_dir, err);
    }
    return rc < 0 ? rc : name_node(program, err);
}

/* By the words alone: what follows may fail, and the exit status depends on it. A job without a
 * cluster, and a cluster without a job, are for the dynamic one to refuse. */
static enum worker_mode mode_of(const struct program *program, int argc)
{
    if (argc > 1) {
        return WORKER_DYNAMIC;
    }
    if (ms_settings_string(program->settings, "run_dir") != NULL) {
        return WORKER_RUN;
    }
    return ms_env_is_dynamic() ? WORKER_DYNAMIC : WORKER_STANDING;
}

/* Where the data plane will listen. */
static int judge_data_plane(const struct program *program, struct ms_err *err)
{
    const struct worker_config *worker = &program->worker;
    const int is_setting = worker->mode != WORKER_DYNAMIC &&
                           ms_settings_source(program->settings, "worker_ip") != MS_FROM_ENV;
    int is_away = 0;
    int rc = comm_listener_check_ports(worker->port_min, worker->port_max, err);
    if (rc == 0 && worker->worker_ip != NULL && worker->worker_ip[0] != '\0') {
        rc = comm_listener_check_ip(worker->worker_ip, err);
        is_away = rc == MS_E_CONFIG;
        if (rc < 0) {
            ms_err_prefix(err, is_setting ? "worker_ip" : "MS_WORKER_IP");
        }
    }
    /* an interface may come later than we do, at a boot: a service is started again until it does
     */
    const int waits = is_away && worker->mode == WORKER_STANDING && !program->checks;
    return rc == 0 ? 0 : waits ? ms_err_recode(err, MS_E_IO) : ms_err_recode(err, MS_E_CONFIG);
}

/* Of a child that was ended by somebody else, or for memory: no stack does that. 0: another end. */
static int signal_from_outside(int status)
{
    const int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return by == SIGSEGV || by == SIGBUS || by == SIGABRT ? 0 : by;
}

/* team_stack_bytes, measured in a process of its own, for OpenMP ends one where it can make no
 * thread with the stack that it was told. 0: that is so; -1: it was ended by *ret_signal. */
static int measure_once(size_t *ret_bytes, int *ret_signal)
{
    int status = 0;
    int ends[2];
    *ret_bytes = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return 1;
    }
    (void)fflush(NULL); /* else the child, which OpenMP may end, writes it once more */
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO); /* we say it */
        const size_t bytes = team_stack_bytes();
        _exit(write(ends[1], &bytes, sizeof(bytes)) != sizeof(bytes));
    }
    close(ends[1]);
    ssize_t n;
    do { /* until the child has told, or ended */
        n = read(ends[0], ret_bytes, sizeof(*ret_bytes));
    } while (n < 0 && errno == EINTR);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    *ret_signal = signal_from_outside(status);
    return pid < 0 || n == sizeof(*ret_bytes) ? 1 : *ret_signal != 0 ? -1 : 0;
}

static int measure_stacks(size_t *ret_bytes, struct ms_err *err)
{
    enum { TRIES = 3 };
    int by = 0;
    int told = -1;
    for (int i = 0; i < TRIES && told < 0; i++) {
        told = measure_once(ret_bytes, &by);
    }
    return told >= 0 ? told
                     : ms_fail(err, MS_E_NOMEM,
                               "the process that measures the stacks of OpenMP's threads was "
                               "ended by signal %d (%s), %d times: start this worker again",
                               by, strsignal(by), TRIES);
}

/* Before anybody counts on this node: a thread that runs off its stack takes the process with it.
 */
static int judge_stacks(struct ms_err *err)
{
    const char *name = getenv("OMP_STACKSIZE") != NULL ? "OMP_STACKSIZE" : "GOMP_STACKSIZE";
    const char *value = getenv(name);
    size_t bytes = 0;
    const int told = measure_stacks(&bytes, err);
    if (told < 0) {
        return told;
    }
    if (told == 0) {
        return value != NULL
                   ? ms_fail(err, MS_E_CONFIG,
                             "%s=%.40s: OpenMP can make no thread with such a stack here: unset "
                             "it, or lower it",
                             name, value)
                   : ms_fail(err, MS_E_CONFIG,
                             "OpenMP can make no thread with the stack of `ulimit -s` here: lower "
                             "it, raise `ulimit -v`, or set OMP_STACKSIZE=8M");
    }
    if (bytes == 0 || bytes >= MS_TEAM_STACK_MIN) {
        return 0;
    }
    if (value != NULL) {
        return ms_fail(err, MS_E_CONFIG,
                       "%s=%.40s: threads of OpenMP get stacks of %zu KiB here, and kernels need "
                       "%u: unset it, or raise it",
                       name, value, bytes / 1024, MS_TEAM_STACK_MIN / 1024);
    }
    return ms_fail(err, MS_E_CONFIG,
                   "threads of OpenMP get stacks of %zu KiB here by `ulimit -s`, and kernels need "
                   "%u: raise it, or set OMP_STACKSIZE=1M",
                   bytes / 1024, MS_TEAM_STACK_MIN / 1024);
}

int program_setup(struct program *program, int argc, char **argv, struct ms_err *err)
{
    struct worker_config *worker = &program->worker;
    const struct ms_settings *settings = program->settings;
    worker->mode = mode_of(program, argc);
    worker->software = SOFTWARE;
    worker->port_min = (int)ms_settings_int(settings, "data_port_min");
    worker->port_max = (int)ms_settings_int(settings, "data_port_max");
    worker->peer_timeout_ms = ms_settings_int(settings, "peer_timeout_ms");
    worker->stays_unbound = strcmp(ms_settings_string(settings, "bind_cpus"), "off") == 0;
    worker->image_bytes = image_memory(settings);
    worker->force_remote = strcmp(ms_settings_string(settings, "transport"), "remote") == 0;
    int rc;
    const char *isa = ms_settings_string(settings, "isa");
    rc = strcmp(isa, "best") != 0 ? plan_cap_isa(isa, err) : 0;
    if (rc < 0) {
        ms_err_prefix(err, "isa");
        return MS_E_CONFIG;
    }
    rc = judge_stacks(err);
    if (rc < 0) {
        return rc;
    }
    if (argc > 2) {
        return ms_fail(err, MS_E_INVALID, "one job file at the most, but there is also %s",
                       argv[2]);
    }
    if (argc == 2) {
        rc = setup_dynamic(program, argv[1], err);
    } else if (worker->mode == WORKER_DYNAMIC) {
        rc = ms_fail(err, MS_E_INVALID,
                     "MS_ROLE is set, so this is a worker of a dynamic cluster, which brings its "
                     "job: msworker JOB.yaml; unset MS_ROLE for a worker of a standing cluster");
    } else if (ms_settings_string(settings, "plan") != NULL) {
        rc = ms_fail(err, MS_E_CONFIG,
                     "plan: only a worker of a dynamic cluster brings one, with its job; others "
                     "hear it from the scheduler: msctl submit --plan, msctl run --plan");
    } else {
        rc = setup_standing(program, err);
    }
    if (rc == 0) {
        rc = judge_data_plane(program, err);
    }
    if (worker->mode != WORKER_DYNAMIC) {
        worker->scheduler = program->server;
        worker->node_id = program->node_id;
        worker->tls = program->tls;
        worker->plain_by = program->plain_by;
    }
    return rc;
}
