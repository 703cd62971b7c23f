/* dynamic.c - the dynamic cluster: exactly one job, brought by its workers
 *
 * As MindSpore has it (MS_WORKER_NUM, MS_NODE_ID, MS_TOPO_TIMEOUT), with two differences: values
 * that must agree are compared at registration, and whoever is missing is named. */
#include "daemon/sched/check.h"
#include "daemon/sched/state.h"

#include "proto/digest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_SHOWN = 12 };

void dynamic_start(struct sched *s)
{
    if (s->cfg.topo_timeout_ms >= 0) {
        timer_arm(s, &s->topo_timer, TIMER_TOPOLOGY, after_ms(s, s->cfg.topo_timeout_ms));
    }
}

uint32_t dynamic_expected(const struct sched *s)
{
    return s->cfg.worker_num;
}

bool id_is_rank(const char *node_id, uint64_t *ret_rank)
{
    uint64_t rank = 0;
    size_t n = strlen(node_id);
    if (n == 0 || n > 18 || (n > 1 && node_id[0] == '0')) { /* "01" is a name: it would equal "1" */
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (node_id[i] < '0' || node_id[i] > '9') {
            return false;
        }
        rank = 10 * rank + (uint64_t)(node_id[i] - '0');
    }
    *ret_rank = rank;
    return true;
}

static void spec_digest(const Ms__Register *msg, char ret_hex[65])
{
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(msg->job_json.data, msg->job_json.len, digest);
    ms_sha256_hex(digest, ret_hex);
}

static const char *spec_refusal(struct sched *s, const struct node_info *info,
                                const Ms__Register *msg)
{
    char digest[65];
    if (msg->job_json.len == 0) {
        return emit_text(s, "worker %s brought no job: start it with the job file of the others",
                         info->node_id);
    }
    if (s->spec == NULL) {
        return NULL;
    }
    spec_digest(msg, digest);
    if (strcmp(digest, s->spec_digest) == 0) {
        return NULL;
    }
    if (s->spec_node[0] == '\0') {
        return emit_text(
            s,
            "the job of worker %s (digest %.*s) is not the one that has not ended in %.150s "
            "(digest %.*s): start all workers with that job's file and options, or, to forget it, "
            "the scheduler with another MS_RECOVERY_PATH",
            info->node_id, DIGEST_SHOWN, digest, s->database, DIGEST_SHOWN, s->spec_digest);
    }
    return emit_text(
        s,
        "the job of worker %s (digest %.*s) is not that of worker %s, which came first "
        "(digest %.*s): start all workers with the same job file and options",
        info->node_id, DIGEST_SHOWN, digest, s->spec_node, DIGEST_SHOWN, s->spec_digest);
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-", c) != NULL);
}

/* As standing clusters know it; "dynamic" where the workers brought none that could be one. */
static void take_name(const struct sched *s, char *dst, size_t size)
{
    static const char key[] = "\"name\":\"";
    const char *end = (const char *)s->spec + s->spec_bytes;
    const char *name = memmem(s->spec, s->spec_bytes, key, sizeof(key) - 1);
    size_t n = 0;
    name = name != NULL ? name + sizeof(key) - 1 : end;
    while (name + n < end && n < size && is_of_name(name[n])) {
        n++;
    }
    if (n > 0 && n < size && name + n < end && name[n] == '"') {
        memcpy(dst, name, n);
        dst[n] = '\0';
    } else {
        ms_text_copy(dst, size, "dynamic");
    }
}

/* MS_ENABLE_RECOVERY of the worker is in the job that it brings. */
static const char *recovery_refusal(struct sched *s, const struct node_info *info,
                                    const Ms__Register *msg)
{
    const bool ours = s->cfg.recovery != 0;
    if (ours && info->level < ms_wire_since(MS_MSG_PLAN)) {
        return emit_text(s,
                         "MS_ENABLE_RECOVERY is 1, and worker %s (host %.100s, pid %u) is of a "
                         "release (0.1) that cannot go on after a loss: update msworker there, or "
                         "set it to 0 on all processes",
                         info->node_id, info->host_name, info->pid);
    }
    if (!spec_says(msg->job_json.data, msg->job_json.len,
                   ours ? "\"recovery\":false" : "\"recovery\":true")) {
        return NULL;
    }
    return emit_text(s,
                     "MS_ENABLE_RECOVERY is %d on worker %s (host %.100s, pid %u) and %d on the "
                     "scheduler: set the same value on all processes",
                     !ours, info->node_id, info->host_name, info->pid, ours);
}

/* Those that are here, and those that have to come back and may: nobody else takes their places. */
static uint32_t n_workers(const struct sched *s)
{
    uint32_t n = s->n_registered;
    for (const struct list *at = s->placed.next; at != &s->placed; at = at->next) {
        const struct job *job = list_item(at, struct job, lane);
        for (uint32_t rank = 0; rank < job->workers; rank++) {
            const struct hold *hold = job->run->members[rank].hold;
            n += hold != NULL && hold->node->state == NODE_NEW;
        }
    }
    return n;
}

/* It was a rank of the job that has ended, and comes to hear of it. */
static bool comes_to_hear(const struct sched *s, const Ms__Register *msg)
{
    return msg->job != 0 && msg->job == s->ended_job;
}

const char *dynamic_refusal(struct sched *s, const struct node_info *info, const Ms__Register *msg,
                            int *ret_code)
{
    uint64_t rank = 0;
    *ret_code = MS_E_REFUSED;
    if (msg->worker_num != s->cfg.worker_num) {
        return emit_text(s,
                         "MS_WORKER_NUM is %u on worker %s (host %.100s, pid %u) and %u on the "
                         "scheduler: set the same value on all processes",
                         msg->worker_num, info->node_id, info->host_name, info->pid,
                         s->cfg.worker_num);
    }
    if (id_is_rank(info->node_id, &rank) && rank >= s->cfg.worker_num) {
        return emit_text(s,
                         "MS_NODE_ID is %s, and numeric ids are ranks from 0 to %u here "
                         "(MS_WORKER_NUM is %u): choose one of those or a name",
                         info->node_id, s->cfg.worker_num - 1, s->cfg.worker_num);
    }
    const char *text = recovery_refusal(s, info, msg);
    if (text != NULL) {
        return text;
    }
    const struct node *node = node_find(s, info->node_id);
    bool known = comes_to_hear(s, msg) || recover_comes_to_stop(s, info, msg->job, msg->rank) ||
                 (node != NULL && (node->state == NODE_REGISTERED || hold_first(node) != NULL));
    if (!known && s->ending) {
        return text_behind(
            s, emit_text(s, "worker %s comes too late: the cluster has ended: ", info->node_id),
            s->exit_text);
    }
    if (!known && s->topo == TOPO_INITIALIZING && s->n_registered >= s->cfg.worker_num) {
        return emit_text(s, "worker %s is extra: all %u ranks are taken", info->node_id,
                         s->cfg.worker_num);
    }
    const bool has_room =
        !known && n_workers(s) < s->cfg.worker_num && recover_has_room(s, info->node_id);
    text = spec_refusal(s, info, msg);
    const bool may_yield = !known && !has_room && s->topo == TOPO_INITIALIZED && text == NULL;
    if (may_yield && recover_has_room(s, info->node_id) && formers_yield(s)) {
        return emit_text(s,
                         "worker %s comes a moment too soon: the process that has its place keeps "
                         "the state of another rank, and lets go of it now; start it again in some "
                         "seconds",
                         info->node_id);
    }
    if (!known && s->topo != TOPO_INITIALIZING && !has_room) { /* whatever it claims */
        return emit_text(s, "worker %s is extra: all %u ranks are taken, and the job has started",
                         info->node_id, s->cfg.worker_num);
    }
    return text;
}

/* It outlives its scheduler, and whoever began one in its place by mistake may still begin the
 * right one. */
const char *dynamic_lets_be(struct sched *s, const Ms__Register *msg)
{
    if (msg->job == 0 || job_find(s, msg->job) != NULL ||
        !spec_says(msg->job_json.data, msg->job_json.len, "\"recovery\":true")) {
        return NULL;
    }
    const char *text = emit_text(
        s,
        "worker %.64s (host %.50s, pid %u) has rank %u of job %llu, which this scheduler does not "
        "know, and is let be: to go on with that job start the scheduler again with "
        "MS_ENABLE_RECOVERY=1 and the MS_RECOVERY_PATH that it had; if it had none nobody knows "
        "the job any more: then, or to begin anew, end that job's workers",
        msg->node_id, msg->host_name, msg->pid, msg->rank, (unsigned long long)msg->job);
    if (s->now.mono_ms >= s->let_be_ms) { /* each of them comes again and again */
        s->let_be_ms = after_ms(s, MS_LET_BE_LOG_MS);
        emit_log(s, MS_LOG_WARNING, "topology.let_be node=%s text=%s", emit_quote(s, msg->node_id),
                 emit_quote(s, text));
    }
    return text;
}

void dynamic_take_spec(struct sched *s, const struct node_info *info, const Ms__Register *msg)
{
    if (s->spec != NULL) {
        return;
    }
    s->spec = memory_take(msg->job_json.len);
    memcpy(s->spec, msg->job_json.data, msg->job_json.len);
    s->spec_bytes = msg->job_json.len;
    spec_digest(msg, s->spec_digest);
    ms_text_copy(s->spec_node, sizeof(s->spec_node), info->node_id);
}

static void topo_set(struct sched *s, enum topo_event event)
{
    int to = ms_machine_next(&states_of_topologies, (int)s->topo, (int)event);
    assert(to >= 0);
    s->topo = (enum topo_state)to;
    timer_stop(s, &s->topo_timer);
}

/* A restarted scheduler has the job already: running, or in the queue because its ranks were still
 * getting ready. Jobs that have ended are another run's. */
int dynamic_load(struct sched *s, struct ms_err *err)
{
    const struct job *job = NULL;
    if (!list_empty(&s->placed)) {
        job = list_item(s->placed.next, struct job, lane);
        topo_set(s, TOPO_ON_COMPLETE);
    } else if (queue_n(s) > 0) {
        job = queue_first(s);
    } else if (job_ids_left(s) && generations_left(s)) {
        return 0;
    } else {
        return ms_fail(err, MS_E_CONFIG,
                       "database %s has given away its last job id or generation: name another "
                       "MS_RECOVERY_PATH",
                       s->database);
    }
    if (job->workers != s->cfg.worker_num) {
        return ms_fail(err, MS_E_CONFIG,
                       "MS_WORKER_NUM is %u, and job %llu in %s has %u workers: set it to %u, or "
                       "name another MS_RECOVERY_PATH",
                       s->cfg.worker_num, (unsigned long long)job->id, s->database, job->workers,
                       job->workers);
    }
    s->spec = malloc(job->spec_bytes + 1);
    if (s->spec == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for job %llu", (unsigned long long)job->id);
    }
    memcpy(s->spec, job->spec, job->spec_bytes);
    s->spec_bytes = job->spec_bytes;
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(s->spec, s->spec_bytes, digest);
    ms_sha256_hex(digest, s->spec_digest);
    s->spec_node[0] = '\0'; /* nobody's: it was there */
    return 0;
}

/* All are here: their job begins. */
static void complete(struct sched *s)
{
    if (queue_n(s) > 0) { /* it waits there since the scheduler's restart */
        topo_set(s, TOPO_ON_COMPLETE);
        return;
    }
    struct sched_job_row *row = emit_alloc(s, sizeof(*row));
    memset(row, 0, sizeof(*row));
    row->id = s->next_job++;
    row->state = JOB_QUEUED;
    take_name(s, row->name, sizeof(row->name));
    ms_text_copy(row->owner, sizeof(row->owner),
                 list_item(s->beating.next, struct node, beating)->info.principal);
    row->workers = s->cfg.worker_num;
    row->recovery = s->cfg.recovery != 0;
    row->submitted_ms = s->now.wall_ms;
    row->spec = s->spec;
    row->spec_bytes = s->spec_bytes;
    struct job *job = job_create(s, row);
    if (job == NULL && memory_spend()) {
        job = job_create(s, row);
    }
    if (job == NULL) {
        abort(); /* memory.h */
    }
    if (job_index(s, job) < 0) {
        abort();
    }
    topo_set(s, TOPO_ON_COMPLETE);
    emit_put_meta(s, "next_job", s->next_job);
    emit_put_job(s, job, true);
    queue_add(s, job);
}

/* Ranks that have to hear of the end, and have no connection. */
static uint32_t n_away(const struct sched *s)
{
    uint32_t n = s->n_unheard;
    for (const struct list *at = s->beating.next; at != &s->beating && n > 0; at = at->next) {
        const struct node *node = list_item(at, struct node, beating);
        n -= node->end_rank > 0 && s->ends[node->end_rank - 1].is_unheard;
    }
    return n;
}

/* Until when it waits, if nobody comes or leaves. */
static int64_t ends_at(const struct sched *s)
{
    const int64_t leave = s->n_registered > 0 ? s->ending_until_ms : s->now.mono_ms;
    const int64_t hear = n_away(s) > 0 ? s->unheard_until_ms : s->now.mono_ms;
    return leave > hear ? leave : hear;
}

/* Whoever has no rank, and waits for one, and whoever let go of his since. */
static void tell_end(struct sched *s)
{
    for (struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        struct node *node = list_item(at, struct node, beating);
        if (list_empty(&node->holds) && !node->told_end) {
            send_stop(s, node, 0, 0, s->exit_code, s->exit_text);
        }
    }
}

/* Who comes back to hear of it has as long to leave as those that were there. */
static void note_arrivals(struct sched *s)
{
    if (s->n_registered > s->n_leaving && s->now.mono_ms < s->unheard_until_ms) {
        s->ending_until_ms = after_ms(s, s->leave_ms);
    }
    s->n_leaving = s->n_registered;
}

static void end_now(struct sched *s)
{
    s->exited = true;
    timer_stop(s, &s->ending_timer);
    if (s->n_registered > 0) {
        emit_log(s, MS_LOG_WARNING,
                 "topology.left_behind nodes=%u: they did not leave within %lld "
                 "ms, ignoring",
                 s->n_registered, (long long)s->leave_ms);
    }
    if (n_away(s) > 0) {
        emit_log(s, MS_LOG_WARNING,
                 "topology.unheard workers=%u: they did not come back within %lld s to hear of the "
                 "end; one that is still there knocks on: end it",
                 n_away(s), (long long)(s->now.mono_ms - s->ended_ms) / 1000);
    }
    emit_exit(s, s->exit_status, s->exit_text);
}

static void wait_or_exit(struct sched *s)
{
    note_arrivals(s);
    const int64_t at = ends_at(s);
    if (at <= s->now.mono_ms) {
        end_now(s);
    } else if (s->said_who_stays || at < s->ending_timer.at_ms) {
        timer_arm(s, &s->ending_timer, TIMER_ENDING, at);
    }
}

void dynamic_settle(struct sched *s)
{
    if (s->topo == TOPO_INITIALIZING) {
        if (s->n_registered == 0 && queue_n(s) == 0 &&
            s->spec != NULL) { /* the next first one brings the job */
            free(s->spec);
            s->spec = NULL;
        }
        if (s->n_registered == s->cfg.worker_num && s->n_idle == s->cfg.worker_num &&
            s->refusal[0] == '\0' && !s->draining) {
            complete(s);
        }
    }
    if (s->ending) {
        tell_end(s); /* whoever registers in the turn in which we go, too */
    }
    if (s->ending && !s->exited) {
        wait_or_exit(s);
    }
}

/* ---- who is missing -----------------------------------------------------------------------------
 */

static bool all_numeric(const struct sched *s)
{
    uint64_t rank = 0;
    for (const struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        if (!id_is_rank(list_item(at, struct node, beating)->info.node_id, &rank)) {
            return false;
        }
    }
    return s->n_registered > 0;
}

static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    if (used + strlen(word) + 5 < size) {
        snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", word);
    } else if (used >= 3 && strcmp(text + used - 3, "...") != 0) {
        snprintf(text + used, size - used, " ...");
    }
}

static const char *missing_words(struct sched *s)
{
    if (!all_numeric(s)) {
        return emit_text(s, "missing: %u", s->cfg.worker_num - s->n_registered);
    }
    char list[121] = "";
    for (uint32_t rank = 0; rank < s->cfg.worker_num; rank++) {
        char id[16];
        snprintf(id, sizeof(id), "%u", rank);
        const struct node *node = node_find(s, id);
        if (node == NULL || node->state != NODE_REGISTERED) {
            append(list, sizeof(list), id);
        }
    }
    return emit_text(s, "missing ranks: %s", list);
}

static int compare_ids(const void *a, const void *b)
{
    return natural_compare(*(const char *const *)a, *(const char *const *)b);
}

static const char *present_words(struct sched *s)
{
    if (s->n_registered == 0) {
        return "present: none";
    }
    const char **ids = emit_alloc(s, s->n_registered * sizeof(*ids));
    size_t n = 0;
    for (const struct list *at = s->beating.next; at != &s->beating; at = at->next) {
        ids[n++] = list_item(at, struct node, beating)->info.node_id;
    }
    qsort(ids, n, sizeof(*ids), compare_ids);
    char list[121] = "";
    for (size_t i = 0; i < n; i++) {
        append(list, sizeof(list), ids[i]);
    }
    return emit_text(s, "present%s: %s", all_numeric(s) ? " ranks" : "", list);
}

/* "2 workers to leave (0 on host a, pid 17; 3 on host b, pid 4); 1 that is away to hear of the end"
 */
static const char *leaving_words(struct sched *s)
{
    enum { SHOWN = 4 };
    const uint32_t away = n_away(s);
    const char *hears = away == 0 ? ""
                                  : emit_text(s, "%u that %s away to hear of the end", away,
                                              away == 1 ? "is" : "are");
    if (s->n_registered == 0) {
        return hears;
    }
    const char *list = "";
    uint32_t n = 0;
    for (const struct list *at = s->beating.next; at != &s->beating && n < SHOWN; at = at->next) {
        const struct node_info *info = &list_item(at, struct node, beating)->info;
        list = emit_text(s, "%s%s%.40s on host %.40s, pid %u", list, n > 0 ? "; " : "",
                         info->node_id, info->host_name, info->pid);
        n++;
    }
    return emit_text(s, "%u worker%s to leave (%s%s)%s%s", s->n_registered,
                     s->n_registered == 1 ? "" : "s", list, s->n_registered > SHOWN ? "; ..." : "",
                     away > 0 ? "; " : "", hears);
}

static long long ending_left_s(const struct sched *s)
{
    return (long long)(ends_at(s) - s->now.mono_ms + 999) / 1000;
}

const char *dynamic_waiting_for(struct sched *s)
{
    if (s->ending) {
        return emit_text(s, "%s, for %lld s at most", leaving_words(s), ending_left_s(s));
    }
    if (s->topo != TOPO_INITIALIZING) {
        return awaited_words(s);
    }
    return emit_text(s, "%u of %u workers; %s; %s", s->cfg.worker_num - s->n_registered,
                     s->cfg.worker_num, present_words(s), missing_words(s));
}

/* ---- the end ------------------------------------------------------------------------------------
 */

/* We stood still, or judge sooner from now on. */
void dynamic_stretch(struct sched *s, int64_t ms)
{
    if (s->ending) {
        s->ending_until_ms += ms;
        s->unheard_until_ms += ms;
    }
}

/* Members have leave_ms to go, and never longer than a lease. */
static void begin_ending(struct sched *s, int code, const char *text, int64_t leave_ms)
{
    s->ending = true;
    s->exit_status = code == MS_OK ? 0 : 1;
    s->exit_code = code;
    ms_text_copy(s->exit_text, sizeof(s->exit_text), text);
    s->leave_ms = leave_ms < s->cfg.lease_ms ? leave_ms : s->cfg.lease_ms;
    s->ending_until_ms = after_ms(s, s->leave_ms);
    s->n_leaving = s->n_registered;
    s->ended_ms = s->now.mono_ms;
    s->unheard_until_ms = after_ms(s, MS_UNHEARD_MS);
    timer_arm(s, &s->ending_timer, TIMER_ENDING,
              after_ms(s, s->leave_ms < MS_LEAVE_SAY_MS ? s->leave_ms : MS_LEAVE_SAY_MS));
}

/* Who has not left by then has a reason, and people wonder what the scheduler is there for. */
void dynamic_say_who_stays(struct sched *s, struct timer *timer)
{
    (void)timer;
    if (ends_at(s) <= s->now.mono_ms) {
        return; /* it goes at the end of this event */
    }
    emit_log(s, MS_LOG_WARNING,
             "topology.waits_for_end for_s=%lld for=%s: end %s to wait no longer", ending_left_s(s),
             emit_quote(s, leaving_words(s)),
             s->n_registered + n_away(s) == 1 ? "that process" : "those processes");
    s->said_who_stays = true;
}

void dynamic_timeout(struct sched *s, struct timer *timer)
{
    (void)timer;
    const char *text = emit_text(
        s,
        "%u of %u workers registered after %lld s; %s; %s; start the missing ones sooner, or "
        "raise MS_TOPO_TIMEOUT",
        s->n_registered, s->cfg.worker_num, (long long)(s->cfg.topo_timeout_ms / 1000),
        present_words(s), missing_words(s));
    emit_log(s, MS_LOG_ERR, "topology.failed reason=%s", emit_quote(s, text));
    topo_set(s, TOPO_ON_TIMEOUT);
    begin_ending(s, MS_E_TIMEOUT, text, MS_TOPO_LEAVE_MS);
}

static bool is_process_of(const struct node *node, const struct member *member)
{
    return node != NULL && node->info.incarnation == member->incarnation;
}

/* Those that were to come back, and those that are here, or whose connection ended meanwhile: they
 * knock, and know nothing of the job's end. Where a job without recovery failed who is gone has
 * died, or goes with the others; and so has the one whose loss was too many. */
static bool may_be_there(const struct job *job, uint32_t rank, const struct node *node)
{
    const struct run *run = job->run;
    const struct member *member = &run->members[rank];
    const struct mend *mend = run->mends != NULL ? &run->mends[rank] : NULL;
    const bool outlives = job->state == JOB_SUCCEEDED || job->recovery;
    const bool has_died = job->state == JOB_FAILED && run->ended_by == rank + 1;
    if (node != NULL && node->state == NODE_NEW) {
        return true;
    }
    if (!is_process_of(node, member)) { /* it is forgotten, or another one has its id */
        return job->recovery && !has_died && member->state == RANK_LOST && mend != NULL &&
               !mend->is_over;
    }
    return outlives && (node->state == NODE_REGISTERED || (node->state == NODE_LOST && !has_died));
}

/* is_found: an earlier scheduler ended it, and who has heard of it then is not known. */
static void expect_ranks(struct sched *s, const struct job *job, bool is_found)
{
    s->ends = memory_take(job->workers * sizeof(*s->ends));
    s->ended_job = job->id;
    s->n_unheard = is_found ? job->workers : 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        s->ends[rank].is_unheard = is_found;
        s->ends[rank].incarnation = is_found ? 0 : job->run->members[rank].incarnation;
    }
    for (uint32_t rank = 0; rank < job->workers && !is_found; rank++) {
        const struct member *member = &job->run->members[rank];
        struct node *node = node_find(s, member->node_id);
        s->ends[rank].is_unheard = may_be_there(job, rank, node);
        s->n_unheard += s->ends[rank].is_unheard;
        if (s->ends[rank].is_unheard && node != NULL && node->state == NODE_REGISTERED &&
            is_process_of(node, member)) {
            node->end_rank = rank + 1;
        }
    }
}

static void end_with(struct sched *s, const struct job *job, bool is_found)
{
    if (s->topo == TOPO_INITIALIZING) { /* we are not the scheduler that saw it complete */
        topo_set(s, TOPO_ON_COMPLETE);
    }
    topo_set(s, job->state == JOB_SUCCEEDED ? TOPO_ON_SUCCESS : TOPO_ON_FAILURE);
    begin_ending(s, job->state == JOB_SUCCEEDED ? MS_OK : job->code, job->reason,
                 MS_STOP_ANSWER_MS);
    if (is_found || job->run != NULL) { /* else it had no ranks yet */
        expect_ranks(s, job, is_found);
    }
    tell_end(s); /* before its ranks: those that they let go of hear it from there */
}

void dynamic_job_ended(struct sched *s, const struct job *job)
{
    if (!s->ending) {
        end_with(s, job, false);
    }
}

void dynamic_found_ended(struct sched *s, const struct job *job, struct node *node,
                         const struct claim *claim)
{
    const bool is_rank = claim->generation == job->generation && claim->rank < job->workers;
    if (s->topo == TOPO_INITIALIZING && is_rank && s->n_idle == 0 &&
        queue_n(s) == 0) { /* else another job forms, or is there */
        end_with(s, job, true);
    }
    if (job->id == s->ended_job && claim->rank < job->workers &&
        (is_rank || s->ends[claim->rank].incarnation == node->info.incarnation)) {
        node->end_rank = claim->rank + 1; /* it may not have heard of the last round */
    }
}

void dynamic_left(struct sched *s, const struct node *node)
{
    if (node->end_rank > 0 && s->ends[node->end_rank - 1].is_unheard) {
        s->ends[node->end_rank - 1].is_unheard = false;
        s->n_unheard--;
    }
}

static bool stops(const struct sched *s)
{
    return !list_empty(&s->placed) && list_item(s->placed.next, struct job, lane)->run->cancelling;
}

int dynamic_check(const struct sched *s, struct ms_err *err)
{
    bool forming = s->topo == TOPO_INITIALIZING;
    HOLDS(!forming || s->n_placed == 0, "a job is placed and the topology is not complete");
    HOLDS(timer_is_armed(&s->topo_timer) == (forming && s->cfg.topo_timeout_ms >= 0),
          "nothing will end the wait for workers");
    HOLDS(s->ending == (s->topo == TOPO_FINISHED || s->topo == TOPO_FAILED),
          "the topology has ended and the scheduler goes on");
    HOLDS(timer_is_armed(&s->ending_timer) == (s->ending && !s->exited),
          "nothing will end the scheduler");
    HOLDS(s->ended_job != 0 || stops(s) || n_workers(s) <= s->cfg.worker_num,
          "more workers than MS_WORKER_NUM"); /* but for who comes to hear, or to save */
    return 0;
}
