/* worker.c - the life of a node: register, take a rank, give it back, leave */
#include "libworker/node/worker_impl.h"

#include "libworker/node/job_folders.h"
#include "libworker/plan/plan.h"
#include "proto/clock.h"
#include "proto/log.h"
#include "proto/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLEAN_EVERY_MS = 24 * 3600 * 1000, CLEAN_SOON_MS = 5000 };

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next four */
static struct worker *living;                                 /* of the worker_run that runs */
static int leave_asked;                                       /* of it, or of the next one */
static int leave_signal;                                      /* ... by that; 0: by the program */
static SSL_CTX *next_tls; /* came while nobody lived: of the next worker_run */

int worker_must_leave(void)
{
    pthread_mutex_lock(&life_lock);
    int asked = leave_asked;
    pthread_mutex_unlock(&life_lock);
    return asked;
}

/* "": nobody sent a signal. */
static const char *leave_words(char *buf, size_t size)
{
    pthread_mutex_lock(&life_lock);
    const int number = leave_signal;
    pthread_mutex_unlock(&life_lock);
    buf[0] = '\0';
    if (number > 0) {
        snprintf(buf, size, "signal %d (%s)", number, strsignal(number));
    }
    return buf;
}

/* What it asks for may take a while, and may leave no other trace where there is no rank. */
void worker_leave(int signal)
{
    pthread_mutex_lock(&life_lock);
    const int is_first = !leave_asked;
    leave_signal = is_first ? signal : leave_signal;
    leave_asked = 1;
    if (living != NULL) {
        agent_leave(living->agent);
    }
    pthread_mutex_unlock(&life_lock);
    if (is_first && signal > 0) {
        ms_log(MS_LOG_NOTICE, "worker.leaves reason=\"asked to end by signal %d (%s)\"", signal,
               strsignal(signal));
    }
}

/* What was kept for it, if something was. Under life_lock. */
static void renew(struct worker *worker)
{
    SSL_CTX *tls = next_tls;
    next_tls = NULL;
    if (tls == NULL || worker->tls == NULL) { /* nothing new, or a plain worker */
        SSL_CTX_free(tls);
        return;
    }
    pthread_mutex_lock(&worker->lock);
    SSL_CTX_free(worker->tls);
    worker->tls = tls;
    pthread_mutex_unlock(&worker->lock);
    if (worker->agent != NULL) {
        agent_set_tls(worker->agent, tls);
    }
}

void worker_set_tls(SSL_CTX *tls)
{
    SSL_CTX_up_ref(tls);
    pthread_mutex_lock(&life_lock);
    SSL_CTX_free(next_tls);
    next_tls = tls;
    if (living != NULL) {
        renew(living);
    }
    pthread_mutex_unlock(&life_lock);
}

/* From here on TERM and new certificates reach the worker. */
static void live_as(struct worker *worker)
{
    pthread_mutex_lock(&life_lock);
    living = worker;
    renew(worker); /* what was faster than we */
    if (leave_asked) {
        agent_leave(worker->agent);
    }
    pthread_mutex_unlock(&life_lock);
}

/* Whoever asked it to leave got what he wanted, unless it lives on as another process. */
static void live_no_more(int is_anew)
{
    pthread_mutex_lock(&life_lock);
    living = NULL;
    leave_asked = leave_asked && is_anew;
    pthread_mutex_unlock(&life_lock);
}

/* Its certificates before it has an agent: those of its configuration, or newer ones. */
static void take_tls(struct worker *worker)
{
    worker->tls = worker->cfg->tls;
    if (worker->tls != NULL) {
        SSL_CTX_up_ref(worker->tls);
    }
    pthread_mutex_lock(&life_lock);
    renew(worker);
    pthread_mutex_unlock(&life_lock);
}

SSL_CTX *worker_tls(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    SSL_CTX *tls = worker->tls;
    if (tls != NULL) {
        SSL_CTX_up_ref(tls);
    }
    pthread_mutex_unlock(&worker->lock);
    return tls;
}

/* ---- orders, and what became of work ---- */

/* Which Assign is that of the rank in hand, and which plan. Under the lock. */
static void settle_assigns(struct worker *worker)
{
    uint64_t in_hand = worker->life.generation;
    if (worker->assign != NULL && worker->assign->generation != in_hand) {
        ms_wire_free(&worker->assign->base);
        worker->assign = NULL;
        worker_leave_plan(worker);
    }
    if (worker->kept != NULL && worker->kept->generation == in_hand) {
        worker->assign = worker->kept;
        worker->kept = NULL;
        worker_next_plan(worker);
    }
}

/* There was none before, or it is of no use any more. Under the lock. */
static void keep(struct worker *worker, Ms__Assign *assign)
{
    if (worker->kept != NULL) {
        ms_wire_free(&worker->kept->base);
        worker_drop_kept_plan(worker);
    }
    worker->kept = assign;
}

int worker_apply(struct worker *worker, const struct life_input *input, Ms__Assign *assign)
{
    int answer = life_apply(&worker->life, input);
    if (assign != NULL && !(answer & (LIFE_DECLINED | LIFE_STALE))) {
        keep(worker, assign);
    }
    settle_assigns(worker);
    if ((answer & LIFE_INTERRUPT) && worker->train != NULL) {
        train_abort(worker->train, worker->life.verdict.text);
    }
    if ((answer & LIFE_HOLD) && worker->train != NULL) {
        train_hold(worker->train, worker->life.at_step
                                      ? "the job stops, and a rank of it is gone"
                                      : "the job goes on under another generation");
    }
    if ((answer & LIFE_STEP) && worker->train != NULL) {
        train_stop_at_step(worker->train);
    }
    pthread_cond_signal(&worker->changed);
    return answer;
}

int worker_tell(struct worker *worker, const struct life_input *input)
{
    pthread_mutex_lock(&worker->lock);
    int answer = worker_apply(worker, input, NULL);
    pthread_mutex_unlock(&worker->lock);
    return answer;
}

struct life_verdict worker_verdict(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    struct life_verdict verdict = worker->life.verdict;
    pthread_mutex_unlock(&worker->lock);
    return verdict;
}

/* What the file of the job says, where it is one: else its rank ends before it begins. */
static int recovers(const Ms__Assign *assign)
{
    struct job *job = malloc(sizeof(*job));
    int rc = job == NULL ? MS_E_NOMEM
                         : job_parse((const char *)assign->job_json.data, assign->job_json.len,
                                     "the job", NULL, NULL, 0, 0, job, NULL);
    int yes = rc == 0 && job->recovery;
    free(job);
    return yes;
}

static struct life_input input_of(const struct agent_order *order)
{
    static const enum life_event events[] = {[AGENT_ASSIGN] = LIFE_ASSIGN,
                                             [AGENT_START] = LIFE_START,
                                             [AGENT_STOP] = LIFE_STOP,
                                             [AGENT_LOST] = LIFE_LOST,
                                             [AGENT_LEAVE] = LIFE_LEAVE};
    struct life_input input = {.event = events[order->kind],
                               .job = order->job,
                               .generation = order->generation,
                               .code = order->code,
                               .text = order->text};
    if (order->kind == AGENT_STOP && order->at_step) {
        input.event = LIFE_AT_STEP;
        input.saves = order->saves;
        input.stands = order->stands;
    }
    if (order->assign != NULL) {
        input.rank = order->assign->rank;
        input.plan_from = order->assign->plan_from;
        input.recovers = recovers(order->assign);
    }
    return input;
}

/* `msctl run` gives up, whose scheduler cannot be started again: with the workers goes all that was
 * trained. Elsewhere the job goes on when its scheduler is back. */
static int leaves_alone(struct worker *worker, const struct agent_order *order)
{
    return order->kind == AGENT_LEAVE && worker->cfg->mode == WORKER_RUN &&
           agent_is_away(worker->agent);
}

/* For agent_config.on_order: agent's thread. */
static int on_order(void *arg, const struct agent_order *order)
{
    struct worker *worker = arg;
    if (order->kind == AGENT_PLAN) {
        return worker_take_plan(worker, order->plan);
    }
    char by[64];
    struct life_input input = input_of(order);
    if (order->kind == AGENT_LEAVE) {
        input.text = leave_words(by, sizeof(by));
    }
    input.saves |= leaves_alone(worker, order);
    pthread_mutex_lock(&worker->lock);
    uint64_t job = worker->life.job;
    int answer = worker_apply(worker, &input, order->assign);
    /* of a rank that has ended nothing is left for a generation that does not go on with it */
    const int anew = order->kind == AGENT_ASSIGN && worker->life.state == LIFE_FINISHING;
    pthread_mutex_unlock(&worker->lock);
    int supersedes = order->kind == AGENT_ASSIGN && (answer & LIFE_INTERRUPT);
    if (supersedes) {
        ms_log(MS_LOG_WARNING, "rank.superseded job=%" PRIu64 " by_job=%" PRIu64 ", ignoring", job,
               order->job);
    }
    if (answer & (LIFE_DECLINED | LIFE_STALE)) {
        return MS_E_FULL;
    }
    return (supersedes ? AGENT_SUPERSEDES : 0) | (input.recovers ? AGENT_RECOVERS : 0) |
           (anew ? AGENT_ANEW : 0);
}

static void on_hang(void *arg, const char *text)
{
    const struct worker *worker = arg;
    if (worker->cfg->on_hang != NULL) {
        worker->cfg->on_hang(text);
    }
}

void worker_job_folder(const struct worker *worker, uint64_t job, char *buf, size_t size)
{
    if (worker->cfg->mode == WORKER_STANDING) {
        snprintf(buf, size, "%s/%" PRIu64, worker->cfg->run_dir, job);
    } else {
        snprintf(buf, size, "%s", worker->cfg->run_dir);
    }
}

int worker_folder_is_of(const struct worker *worker, const char *folder, const char *job_tag)
{
    return worker->cfg->mode != WORKER_STANDING || job_folder_is_of(folder, job_tag);
}

static int find_log(void *arg, const Ms__LogRead *request, char *buf, size_t size)
{
    struct worker *worker = arg;
    char folder[MS_PATH_MAX + 1];
    worker_job_folder(worker, request->job, folder, sizeof(folder));
    if (folder[0] == '\0' || !worker_folder_is_of(worker, folder, request->job_tag)) {
        return 0;
    }
    snprintf(buf, size, "%s/worker_%u.log", folder, request->rank);
    return access(buf, R_OK) == 0;
}

static void on_folder(void *arg, uint64_t job, const char *text)
{
    (void)arg;
    ms_log(MS_LOG_NOTICE, "job_folder.old job=%" PRIu64 " reason=%s", job, MS_QUOTE(text));
}

static void clean_folders(const struct worker *worker)
{
    const struct job_folders_rule rule = {worker->cfg->keep_days, worker->cfg->keep_count};
    if (worker->cfg->mode == WORKER_STANDING) {
        job_folders_clean(worker->cfg->run_dir, &rule, (int64_t)time(NULL), on_folder, NULL);
    }
}

/* ---- the trainer's thread ---- */

int worker_await_word(struct worker *worker, int64_t ms)
{
    const struct life *life = &worker->life;
    struct timespec until = ms_mono_after(ms);
    int rc = 0;
    int holds = 1;
    pthread_mutex_lock(&worker->lock);
    while ((holds = life_duty(life) == LIFE_DO_HOLD && life->generation == worker->generation) &&
           rc != ETIMEDOUT) { /* by its number, too: it may hold again by now */
        rc = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    pthread_mutex_unlock(&worker->lock);
    return !holds;
}

/* What is to be done next, and of which generation the rank in hand is then: by the time that it is
 * done another one may be in hand. LIFE_WAIT: nothing, and idle for idle_ms. */
static enum life_duty await_duty(struct worker *worker, int64_t idle_ms, uint64_t *ret_generation)
{
    struct timespec until = ms_mono_after(idle_ms > 0 ? idle_ms : 0);
    enum life_duty duty;
    int rc = 0;
    pthread_mutex_lock(&worker->lock);
    agent_await_word(worker->agent, life_duty(&worker->life) == LIFE_WAIT);
    while ((duty = life_duty(&worker->life)) == LIFE_WAIT &&
           (rc != ETIMEDOUT || worker->life.state != LIFE_IDLE)) {
        if (worker->life.state == LIFE_IDLE) {
            rc = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
        } else {
            pthread_cond_wait(&worker->changed, &worker->lock);
        }
    }
    agent_await_word(worker->agent, 0);
    if (duty == LIFE_DO_PULL) { /* under the lock: another hold is one of what is pulled now */
        train_unhold(worker->train);
    }
    *ret_generation = worker->life.generation;
    pthread_mutex_unlock(&worker->lock);
    return duty;
}

/* A rank that has made its plan may be given again at any time, so that nothing but PULL looks at
 * its Assign from then on: one that has not stays what it is. */
static void do_duty(struct worker *worker, enum life_duty duty, uint64_t generation)
{
    static void (*const duties[])(struct worker * worker) = {
        [LIFE_DO_PLAN] = rank_plan, [LIFE_DO_JOIN] = rank_join,  [LIFE_DO_TRAIN] = rank_train,
        [LIFE_DO_HOLD] = rank_hold, [LIFE_DO_STOP] = rank_stop,  [LIFE_DO_PULL] = rank_pull,
        [LIFE_DO_SAY] = rank_say,   [LIFE_DO_CLEAN] = rank_clean};
    const int is_end = duty == LIFE_DO_SAY || duty == LIFE_DO_STOP;
    if (worker->generation != generation && worker->generation != 0 && is_end) {
        rank_go_on(worker, generation); /* ended as it was to go on */
    } else if (worker->generation != generation && worker->train == NULL) {
        rank_begin(worker);
    } else if (duty == LIFE_DO_TRAIN && worker->generation != generation) {
        rank_come_back(worker, generation); /* held before he had begun to pull it */
        return;
    }
    duties[duty](worker);
}

/* Whoever was alone left by a peer has a job that failed. A scheduler that is gone is told apart.
 */
static int one_job_result(const struct life *life, struct ms_err *err)
{
    static const int echoes[] = {MS_E_CLOSED,      MS_E_TIMEOUT,  MS_E_ABORTED,
                                 MS_E_UNREACHABLE, MS_E_PROTOCOL, MS_E_TLS};
    int is_scheduler_gone = life->leaves && life->leave_event == LIFE_LOST;
    if (life->verdict.code == 0) {
        return 0;
    }
    int rc = ms_fail(err, life->verdict.code, "%s", life->verdict.text);
    for (size_t i = 0; i < MS_ARRAY_SIZE(echoes) && !is_scheduler_gone; i++) {
        if (rc == echoes[i]) {
            rc = ms_err_recode(err, MS_E_FAILED);
        }
    }
    return rc;
}

/* To leave when asked to is a success, whatever became of the job. */
static int leave_result(struct worker *worker, const struct life *life, struct ms_err *err)
{
    if (life->leave_event == LIFE_LEAVE) {
        return 0;
    }
    if (life->leave_event == LIFE_UNFIT) { /* else it would take job after job, and fail each */
        agent_farewell(worker->agent, life->leave.text, 0);
    }
    return ms_fail(err, life->leave.code, "%s", life->leave.text);
}

/* After a job that needs another process. */
static int begin_anew(struct worker *worker)
{
    char text[MS_TEXT_MAX];
    snprintf(text, sizeof(text),
             "begins anew: it has served with the instruction set %s, and job %" PRIu64
             " needs another one",
             plan_isa(), worker->job_id);
    ms_log(MS_LOG_NOTICE, "worker.renews reason=%s", MS_QUOTE(text));
    agent_farewell(worker->agent, text, 1);
    return WORKER_ANEW;
}

static void say_who_asked(struct worker *worker, const struct life *life)
{
    if (life->leaves && life->leave_event == LIFE_LEAVE && life->leave.text[0] != '\0') {
        char text[MS_TEXT_MAX];
        snprintf(text, sizeof(text), "the worker process was asked to end by %.100s",
                 life->leave.text);
        agent_farewell(worker->agent, text, 0);
    }
}

static int result(struct worker *worker, struct ms_err *err)
{
    pthread_mutex_lock(&worker->lock);
    struct life life = worker->life;
    pthread_mutex_unlock(&worker->lock);
    say_who_asked(worker, &life);
    if (life.one_job && !(life.leaves && !worker->has_served)) {
        return one_job_result(&life, err);
    }
    return life.leaves ? leave_result(worker, &life, err) : begin_anew(worker);
}

/* Folders are looked through when no job has come for a moment, for the next one must not wait for
 * that; where job follows job between two of them; and once a day. */
static int live(struct worker *worker, struct ms_err *err)
{
    int64_t clean_ms = ms_mono_ms() + CLEAN_SOON_MS;
    for (;;) {
        uint64_t generation = 0;
        enum life_duty duty = await_duty(worker, clean_ms - ms_mono_ms(), &generation);
        if (duty == LIFE_DO_END) {
            return result(worker, err);
        }
        int64_t now = ms_mono_ms();
        int is_between = duty == LIFE_WAIT || duty == LIFE_DO_PLAN;
        if (is_between && now >= clean_ms) {
            clean_folders(worker);
            clean_ms = now + CLEAN_EVERY_MS;
        }
        if (duty == LIFE_WAIT) {
            continue;
        }
        do_duty(worker, duty, generation);
        now = ms_mono_ms();
        clean_ms = clean_ms < now + CLEAN_SOON_MS ? clean_ms : now + CLEAN_SOON_MS;
    }
}

static int start_listener(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    struct comm_listener_config listener = {.bind_ip = worker->identity.ip,
                                            .port_min = cfg->port_min,
                                            .port_max = cfg->port_max,
                                            .tls = worker->tls};
    return comm_listener_create(&listener, &worker->listener, err);
}

static int start_agent(struct worker *worker, struct ms_err *err)
{
    const struct worker_config *cfg = worker->cfg;
    Ms__Register node = MS__REGISTER__INIT;
    char *json = NULL;
    int rc = node_describe(&worker->identity, worker->listener, &node, err);
    if (rc == 0 && cfg->mode == WORKER_DYNAMIC) {
        json = job_format(cfg->job, &node.job_json.len);
        node.job_json.data = (uint8_t *)json;
        node.worker_num = cfg->worker_num;
    } else if (rc == 0 && cfg->mode == WORKER_STANDING) {
        node.jobs_folder = node_folder(cfg->run_dir);
        if (node.jobs_folder == 0) {
            ms_log(MS_LOG_WARNING,
                   "worker.folder_unknown jobs_dir=%s reason=\"its .msched-folder can neither be "
                   "read nor made: remove it, and start again; until then the scheduler knows the "
                   "folder by this node's name alone\"",
                   MS_QUOTE(cfg->run_dir));
        }
    }
    struct agent_config agent = {.address = cfg->scheduler,
                                 .tls = worker->tls,
                                 .plain_by = cfg->plain_by,
                                 .software = cfg->software,
                                 .node = &node,
                                 .connect_timeout_ms = cfg->connect_timeout_ms,
                                 .connect_by = cfg->connect_by,
                                 .word_ms = cfg->word_ms,
                                 .word_by = cfg->word_by,
                                 .lease_ms = cfg->lease_ms,
                                 .patience_ms = cfg->patience_ms,
                                 .grace_ms = cfg->grace_ms,
                                 .is_standing = cfg->mode == WORKER_STANDING,
                                 .on_order = on_order,
                                 .on_hang = on_hang,
                                 .log_path = find_log,
                                 .on_fetch = worker_on_fetch,
                                 .arg = worker};
    if (rc == 0) {
        rc = agent_create(&agent, &worker->agent, err);
    }
    free(json);
    return rc;
}

static void init_waiting(struct worker *worker)
{
    ms_cond_init(&worker->changed);
    pthread_mutex_init(&worker->lock, NULL);
}

static void fini_waiting(struct worker *worker)
{
    if (worker->assign != NULL) {
        ms_wire_free(&worker->assign->base);
    }
    if (worker->kept != NULL) {
        ms_wire_free(&worker->kept->base);
    }
    worker_drop_plans(worker);
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->changed);
}

int worker_run(const struct worker_config *cfg, struct ms_err *err)
{
    struct worker worker = {.cfg = cfg,
                            .life = {.one_job = cfg->mode != WORKER_STANDING},
                            .log_fd = STDOUT_FILENO,
                            .folder_fd = -1};
    init_waiting(&worker);
    take_tls(&worker);
    int rc = node_identify(cfg->scheduler, cfg->node_id, cfg->worker_ip, &worker.identity, err);
    if (rc == 0) {
        rc = start_listener(&worker, err);
    }
    if (rc == 0) {
        rc = start_agent(&worker, err);
    }
    if (rc == 0) {
        rc = worker_start_serving(&worker, err);
    }
    if (rc == 0) {
        live_as(&worker);
        rc = live(&worker, err);
        live_no_more(rc == WORKER_ANEW);
    }
    worker_stop_serving(&worker);
    agent_destroy(worker.agent);
    comm_listener_destroy(worker.listener);
    SSL_CTX_free(worker.tls);
    fini_waiting(&worker);
    return rc;
}
