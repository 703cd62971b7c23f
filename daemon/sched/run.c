/* run.c - the run of a placed job: its ranks, their states and their words */
#include "daemon/sched/state.h"

#include "proto/state_words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_SHOWN = 160 /* of a path: its end is what differs */ };

struct run *run_create(struct job *job)
{
    struct run *run = memory_take(sizeof(*run));
    run->members = memory_take(job->workers * sizeof(struct member));
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        run->members[rank].host_name = dup_text("");
        run->members[rank].principal = dup_text("");
        run->members[rank].log_path = dup_text("");
    }
    run->job = job;
    list_init(&run->recovering);
    run->n_in[RANK_MISSING] = job->workers;
    job->run = run;
    return run;
}

void run_free(struct run *run)
{
    if (run == NULL) {
        return;
    }
    for (uint32_t rank = 0; rank < run->job->workers; rank++) {
        free(run->members[rank].host_name);
        free(run->members[rank].principal);
        free(run->members[rank].log_path);
    }
    run_forget_mends(run);
    links_forget(run);
    free(run->formers);
    free(run->members);
    free(run->evals);
    free(run->home.log_path);
    free(run);
}

struct mend *run_mend(struct run *run, uint32_t rank)
{
    if (run->mends == NULL) {
        run->mends = memory_take(run->job->workers * sizeof(*run->mends));
    }
    return &run->mends[rank];
}

void run_forget_mends(struct run *run)
{
    for (uint32_t rank = 0; run->mends != NULL && rank < run->job->workers; rank++) {
        free(run->mends[rank].since.causes);
        free(run->mends[rank].wall.causes);
        free(run->mends[rank].before.since.causes);
        free(run->mends[rank].before.wall.causes);
        free(run->mends[rank].last);
    }
    free(run->mends);
    run->mends = NULL;
}

/* ---- states of ranks ----------------------------------------------------------------------------
 */

static void rank_enter(struct run *run, struct member *member, enum rank_state state)
{
    run->n_in[member->state]--;
    run->n_in[state]++;
    member->state = state;
}

void rank_begin(struct run *run, uint32_t rank, enum rank_state state)
{
    rank_enter(run, &run->members[rank], state);
}

void rank_set(struct run *run, uint32_t rank, enum rank_event event)
{
    struct member *member = &run->members[rank];
    int to = ms_machine_next(&states_of_ranks, (int)member->state, (int)event);
    assert(to >= 0);
    rank_enter(run, member, (enum rank_state)to);
}

bool rank_is_over(const struct member *member)
{
    return member->state >= RANK_DONE;
}

bool run_holds_state(const struct run *run, uint32_t rank)
{
    const struct member *member = &run->members[rank];
    return member->hold != NULL && member->state != RANK_MISSING &&
           run->job->state != JOB_PLACING && (member->has_state || member->has_plan);
}

/* A node id is free once its node has gone, and may be another's now. Rows of release 0.1 name
 * nobody, and without TLS nobody vouched for a name. */
bool principal_is_anothers(const char *before, const char *now)
{
    struct ms_principal anyone;
    ms_principal_anyone(0, &anyone);
    return before[0] != '\0' && strcmp(before, anyone.id) != 0 && strcmp(before, now) != 0;
}

uint32_t run_n_over(const struct run *run)
{
    return run->n_in[RANK_DONE] + run->n_in[RANK_STOPPED] + run->n_in[RANK_FAILED] +
           run->n_in[RANK_LOST];
}

static const char *const names[RANK_STATES] = {
    [RANK_MISSING] = MS_RANK_STATE_MISSING, [RANK_PREPARING] = MS_RANK_STATE_PREPARING,
    [RANK_READY] = MS_RANK_STATE_READY,     [RANK_TRAINING] = MS_RANK_STATE_TRAINING,
    [RANK_DONE] = MS_RANK_STATE_DONE,       [RANK_STOPPED] = MS_RANK_STATE_STOPPED,
    [RANK_FAILED] = MS_RANK_STATE_FAILED,   [RANK_LOST] = MS_RANK_STATE_LOST,
};

const char *rank_state_name(enum rank_state state)
{
    return names[state];
}

bool rank_state_parse(const char *name, enum rank_state *ret)
{
    for (int state = 0; state < RANK_STATES; state++) {
        if (strcmp(name, names[state]) == 0) {
            *ret = (enum rank_state)state;
            return true;
        }
    }
    return false;
}

/* ---- words and messages -------------------------------------------------------------------------
 */

/* Whole words, and no half of what stands in brackets (who killed it a command tells, or nothing).
 */
static size_t cut_at_word(const char *text, size_t max)
{
    size_t n = max;
    while (n > 0 && text[n] != ' ') {
        n--;
    }
    if (n == 0) {
        return ms_text_whole(text, max);
    }
    size_t open = n;
    while (open > n / 2 && text[open - 1] != '(' && text[open - 1] != ')') {
        open--;
    }
    n = open > n / 2 && text[open - 1] == '(' ? open - 1 : n;
    while (n > 1 && strchr(" ,;:", text[n - 1]) != NULL) {
        n--;
    }
    return n;
}

static const char log_begins[] = "; its log: ";

/* Of "<cause>; its log: <path>" the end: all of it, or of a path that leaves the cause too little
 * its own end. "": there is none, or no room. */
static const char *log_end(struct sched *s, const char *text, size_t room)
{
    const size_t before = sizeof(log_begins) - 1;
    const char *end = NULL;
    for (const char *at = strstr(text, log_begins); at != NULL; at = strstr(at + 1, log_begins)) {
        end = at;
    }
    if (end == NULL || room < LOG_SHOWN / 2) {
        return "";
    }
    char path[MS_TEXT_MAX + 1];
    size_t size = room / 2 - before + 1;
    size = size < sizeof(path) ? size : sizeof(path);
    return emit_text(s, "%s%s", log_begins, ms_text_end(path, size, end + before));
}

const char *text_fit(struct sched *s, const char *text, size_t room)
{
    static const char rest[] = "...";
    if (strlen(text) <= room) {
        return text;
    }
    const char *log = log_end(s, text, room);
    const size_t used = strlen(log) + sizeof(rest) - 1;
    return room > used
               ? emit_text(s, "%.*s%s%s", (int)cut_at_word(text, room - used), text, rest, log)
               : "";
}

const char *text_behind(struct sched *s, const char *head, const char *text)
{
    const size_t used = strlen(head);
    return emit_text(s, "%s%s", head,
                     text_fit(s, text, used < MS_TEXT_MAX ? MS_TEXT_MAX - used : 0));
}

const char *rank_words(struct sched *s, const struct job *job, uint32_t rank)
{
    const struct member *member = &job->run->members[rank];
    return emit_text(s, "rank %u (node %s on host %.100s)", rank, member->node_id,
                     member->host_name);
}

/* Who is ready has named its log, and one that it did not name is no file: a worker without a
 * folder of its own. A job that began had all its ranks ready. */
const char *log_words(struct sched *s, const struct job *job, uint32_t rank)
{
    const struct member *member = &job->run->members[rank];
    if (member->log_path[0] != '\0') {
        char path[LOG_SHOWN + 1];
        return emit_text(s, "its log: %s", ms_text_end(path, sizeof(path), member->log_path));
    }
    return job->started_ms > 0 || member->has_plan ? "its log: the standard output of its msworker"
                                                   : "it had opened no log yet";
}

const char *rank_text(struct sched *s, const struct job *job, uint32_t rank, const char *what,
                      const char *cause)
{
    const char *who = rank_words(s, job, rank);
    const char *log = log_words(s, job, rank);
    size_t used = strlen(who) + strlen(what) + strlen(log) + 5;
    cause = text_fit(s, cause, used < MS_TEXT_MAX ? MS_TEXT_MAX - used : 0);
    return emit_text(s, "%s %s: %s; %s", who, what, cause, log);
}

void send_start(struct sched *s, const struct hold *hold)
{
    Ms__Start msg = MS__START__INIT;
    msg.job = hold->job_id;
    msg.generation = hold->generation;
    emit_send(s, hold->node->conn->id, MS_MSG_START, 0, &msg.base);
}

void send_stop(struct sched *s, struct node *node, uint64_t job, uint64_t generation, int code,
               const char *text)
{
    Ms__Stop msg = MS__STOP__INIT;
    msg.job = job;
    msg.generation = generation;
    msg.code = code;
    msg.text = (char *)text;
    if (node->conn != NULL) {
        emit_send(s, node->conn->id, MS_MSG_STOP, 0, &msg.base);
        node->told_end = s->ending;
    }
}

/* A round goes on to its Start while all its ranks are there and know of it; else, or where one has
 * had it and the next round was due, they stand for good, for none begins where a job is to stop.
 */
static bool stands(const struct job *job)
{
    const struct run *run = job->run;
    bool does = job->state == JOB_RECOVERING &&
                (run_n_over(run) > 0 || run->n_in[RANK_TRAINING] > 0 || run->stands_for_good);
    for (uint32_t rank = 0; job->state == JOB_RECOVERING && !does && rank < job->workers; rank++) {
        const struct hold *hold = run->members[rank].hold;
        does = hold == NULL || hold->heard != 0 || hold->generation != job->generation;
    }
    return does;
}

void send_stop_at_step(struct sched *s, const struct hold *hold, int code, const char *text,
                       bool saves)
{
    Ms__Stop msg = MS__STOP__INIT;
    msg.job = hold->job_id;
    msg.generation = hold->generation;
    msg.code = code;
    msg.text = (char *)text;
    msg.at_step = true;
    msg.saves = saves;
    msg.stands = stands(hold->job);
    if (hold->node->conn != NULL) {
        hold->job->run->stands_for_good |= msg.stands && hold->job->run->cancelling;
        emit_send(s, hold->node->conn->id, MS_MSG_STOP, 0, &msg.base);
    }
}
