/* newcomers.h - ranks that are killed while they train, and processes that take their places
 *
 * Each rank is a process. It is killed where the case says, by itself; the parent is what a
 * scheduler is: it fills all places that are vacant, tells every rank of the next generation, and
 * lets nobody end before all of one generation are done. A thread of each rank hears it, and holds
 * the rank. */
#ifndef NEWCOMERS_H
#define NEWCOMERS_H

#include "bench/ranks.h"
#include "libworker/train/state.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/train_case.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    WORLD_MAX = 4,
    KILLS_MAX = 7,
    STEPS = 20,
    SAVED_MAX = 2,
    SAVED_BYTES = 4096,
    LINES_LEFT = 5
};

enum where {
    AFTER_A_STEP,       /* it is in the log, and not in the metrics yet */
    IN_A_STEP,          /* before its last gradients are out */
    AT_COMMIT,          /* the others make the commit that it misses */
    IN_EVALUATION,      /* before its part is said */
    AFTER_EVALUATION,   /* before its line is written */
    WHILE_IT_GIVES,     /* before that piece of the state that others take from it */
    WHILE_IT_TAKES,     /* likewise, as one of those */
    BEFORE_IT_JOINS,    /* its plan is made, and the others wait in the mesh */
    WHEN_IT_IS_DONE,    /* its training is over, and not yet confirmed */
    ITS_LINK_BREAKS,    /* no death: AT_COMMIT, and it lives on one step behind */
    ITS_SUMS_ARE_LOST,  /* no death: of the evaluation, which the others have */
    ITS_MEMORY_ROTS,    /* no death: after a step a bit of its weights is another one */
    IT_LOSES_TWO_STEPS, /* no death: after a step */
    IT_CLAIMS_A_STEP,   /* no death: when it joins again, to be at all->claim */
    IT_CLAIMS_A_STOP,   /* no death: when it joins again, that it was asked to */
    IT_SAVES_A_CLAIM,   /* IT_SAVES, as if it were of step all->claim */
    IT_HAS_A_COPY, /* no death: after a step, of another one, of which it made no step itself */
    IT_COMES_WITH_A_COPY, /* likewise, in the place of who died with what all evaluated */
    IT_HAS_OTHER_DATA,    /* in that life of its; who is refused ends */
    IT_HAS_OTHER_TESTS,   /* likewise, of its evaluation */
    IT_IS_REFUSED,        /* likewise: what lies where the job began is not for it */
    IT_SAVES,             /* no death: a checkpoint of a step that only this rank can read */
    IT_WAS_RESUMED,       /* ... what it would be, had it been resumed from that */
    IT_SAVES_DAMAGED,     /* ... and whose load fails */
    IT_CANNOT_READ,       /* no death: a checkpoint of that step, for now */
    IT_HAS_NO_LOADER,     /* no death: to go on from that step with */
    AND_IS_HELD,          /* ... and the next generation has begun */
    IT_FINDS_NO_LINES,    /* in that life of its: behind LINES_LEFT steps, in its metrics and log */
    ITS_DISK_IS_FULL,     /* no death: from that step on, and ... */
    AND_HAS_ROOM,
    IT_HAS_NO_ROOM,   /* no death: in the agreement of that step, for the places of the others */
    IT_HAS_NO_DIGEST, /* no death: of what it holds at that step, before it joins */
};

struct kill {
    int who;
    enum where where;
    uint64_t when; /* the step, or the piece; 0: any */
};

struct end { /* of a rank */
    int code;
    uint64_t steps;
    char weights[MS_SHA256_HEX];
    char text[MS_ERR_TEXT_MAX];
    struct record record;
};

struct saved { /* a checkpoint */
    uint64_t step;
    int is_damaged, is_named;
    float loss;
    double seconds;
    size_t n;
    uint8_t bytes[SAVED_BYTES];
};

static struct shared {
    struct ranks ranks;
    struct job job;
    char dir[64];
    int force_remote;
    /* the case */
    int n_kills;
    struct kill kills[KILLS_MAX];
    atomic_int is_done[KILLS_MAX];
    uint64_t claim; /* a step behind the last one, that is told with its right digest */
    /* orders: the generation; 0: all may end */
    atomic_ullong generation;
    sem_t heard[WORLD_MAX];
    /* what became of it */
    struct end ends[WORLD_MAX];
    int lives[WORLD_MAX];
    struct train_info last[WORLD_MAX];             /* of the last join */
    char first_tag[WORLD_MAX][MS_JOB_TAG_LEN + 1]; /* by which they knew their training then */
    struct saved saved[WORLD_MAX][SAVED_MAX];      /* the newest first */
    char refusals[WORLD_MAX][MS_ERR_TEXT_MAX];     /* of its data, or of where the job began */
    atomic_int n_evaluated;                        /* ranks that have what all evaluated, so far */
    atomic_int n_notes;
    char notes[4096];            /* of rank 0 about its lines and a stop, one a line */
    atomic_int n_own;            /* failures of a rank's own, which end its job */
    atomic_int n_joins, n_calls; /* ... and collectives beside those of the steps */
} * all;

static struct {
    int rank, pieces;
    int has_trained;
    int is_refused; /* as long as it lives */
    struct train *train;
    pthread_mutex_t lock; /* what follows, and the life of train */
    pthread_cond_t changed;
    unsigned long long generation; /* as heard */
} self;

/* ---- dying ---- */

/* Is it this rank's turn to do so now? Once. */
static int is_due(enum where where, uint64_t step)
{
    for (int i = 0; i < all->n_kills; i++) {
        const struct kill *kill = &all->kills[i];
        int none = 0;
        if (kill->who == self.rank && kill->where == where &&
            (kill->when == step || kill->when == 0) &&
            atomic_compare_exchange_strong(&all->is_done[i], &none, 1)) {
            return 1;
        }
    }
    return 0;
}

static void die_if(enum where where, uint64_t step)
{
    if (is_due(where, step)) {
        raise(SIGKILL);
    }
}

int __real_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err);
int __wrap_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err);
void __real_reducer_post(struct reducer *reducer, int bucket);
void __wrap_reducer_post(struct reducer *reducer, int bucket);
int __real_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                          struct ms_err *err);
int __wrap_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                          struct ms_err *err);
int __real_mesh_all_reduce_sum_f64(struct mesh *mesh, double *values, size_t count,
                                   struct ms_err *err);
int __wrap_mesh_all_reduce_sum_f64(struct mesh *mesh, double *values, size_t count,
                                   struct ms_err *err);
int __real_mesh_all_gather(struct mesh *mesh, const void *mine, size_t bytes, void *gathered,
                           struct ms_err *err);
int __wrap_mesh_all_gather(struct mesh *mesh, const void *mine, size_t bytes, void *gathered,
                           struct ms_err *err);

int __wrap_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err)
{
    int rc = __real_reducer_wait(reducer, ret_results, err);
    const uint64_t step = self.train->progress.step + 1;
    if (rc == 0) {
        die_if(AT_COMMIT, step);
    }
    return rc == 0 && is_due(ITS_LINK_BREAKS, step) ? ms_fail(err, MS_E_CLOSED, "the link broke")
                                                    : rc;
}

void __wrap_reducer_post(struct reducer *reducer, int bucket)
{
    if (bucket == self.train->sizes.n_buckets - 1) {
        die_if(IN_A_STEP, self.train->progress.step + 1);
    }
    __real_reducer_post(reducer, bucket);
}

/* The state goes in pieces, a buffer each here. */
int __wrap_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root, struct ms_err *err)
{
    self.pieces++;
    die_if(self.train->has_state ? WHILE_IT_GIVES : WHILE_IT_TAKES, self.pieces);
    atomic_fetch_add(&all->n_calls, 1);
    return __real_mesh_broadcast(mesh, data, bytes, root, err);
}

/* Every agreement begins with one. */
int __wrap_mesh_all_gather(struct mesh *mesh, const void *mine, size_t bytes, void *gathered,
                           struct ms_err *err)
{
    self.pieces = 0;
    atomic_fetch_add(&all->n_calls, 1);
    return __real_mesh_all_gather(mesh, mine, bytes, gathered, err);
}

/* Of another step, of which it made none itself. */
static void have_a_copy(void)
{
    void *weights;
    size_t bytes;
    replica_state(self.train->replica, 0, &weights, &bytes);
    memset(weights, 1, bytes);
    self.train->progress.step = 2;
    self.train->progress.has_eval = 0;
    self.train->evaluates = 0;
    self.train->has_scores = 1; /* of that one */
    self.train->is_copy = 1;
    train_hold(self.train, "it has a copy");
}

/* Of those of an evaluation. */
static int is_last_sum(const double *values)
{
    size_t n = 0;
    return self.train->scores == NULL || values == scores_sums(self.train->scores, &n);
}

int __wrap_mesh_all_reduce_sum_f64(struct mesh *mesh, double *values, size_t count,
                                   struct ms_err *err)
{
    int rc = __real_mesh_all_reduce_sum_f64(mesh, values, count, err);
    if (rc == 0 && is_last_sum(values) && is_due(IT_COMES_WITH_A_COPY, self.train->progress.step)) {
        while (atomic_load(&all->n_evaluated) == 0) {
            usleep(1000);
        }
        have_a_copy();
        return ms_fail(err, MS_E_CLOSED, "it has a copy");
    }
    return rc == 0 && is_due(ITS_SUMS_ARE_LOST, self.train->progress.step)
               ? ms_fail(err, MS_E_CLOSED, "the link broke")
               : rc;
}

/* ---- its memory ---- */

static _Thread_local int is_agreeing;

int __real_train_agree(struct train *train, struct ms_err *err);
int __wrap_train_agree(struct train *train, struct ms_err *err);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err);
int __wrap_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err);

int __wrap_train_agree(struct train *train, struct ms_err *err)
{
    is_agreeing = 1;
    int rc = __real_train_agree(train, err);
    is_agreeing = 0;
    const int has_taken = train->known.state_from == MS_STATE_PULLED && train->is_copy;
    ck_assert(rc < 0 || !has_taken || !train->has_scores);
    return rc;
}

void *__wrap_calloc(size_t n, size_t size)
{
    const int fails = is_agreeing && is_due(IT_HAS_NO_ROOM, self.train->progress.step);
    return fails ? NULL : __real_calloc(n, size);
}

int __wrap_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err)
{
    return is_due(IT_HAS_NO_DIGEST, step) ? ms_fail(err, MS_E_NOMEM, "no memory for the digest")
                                          : __real_state_digest(replica, step, ret, err);
}

/* ---- a rank's checkpoint ---- */

static void save(int is_damaged)
{
    const struct train_progress *progress = &self.train->progress;
    struct saved *saved = all->saved[self.rank];
    const void *state;
    size_t bytes;
    memmove(&saved[1], &saved[0], (SAVED_MAX - 1) * sizeof(*saved));
    *saved = (struct saved){.step = progress->step,
                            .is_damaged = is_damaged,
                            .loss = progress->loss,
                            .seconds = self.train->seconds};
    for (int i = 0; replica_view_state(self.train->replica, i, &state, &bytes); i++) {
        ck_assert_uint_le(saved->n + bytes, SAVED_BYTES);
        memcpy(saved->bytes + saved->n, state, bytes);
        saved->n += bytes;
    }
}

static int load(struct train *train, const struct train_checkpoint *from, struct ms_err *err)
{
    const struct saved *saved = &all->saved[self.rank][from->place];
    const uint8_t *at = saved->bytes;
    void *state;
    size_t bytes;
    if (is_due(IT_CANNOT_READ, from->step)) {
        return ms_fail(err, MS_E_NOMEM, "no descriptor");
    }
    if (saved->step != from->step || saved->is_damaged) {
        return ms_fail(err, MS_E_INVALID, "it is damaged");
    }
    for (int i = 0; replica_state(train->replica, i, &state, &bytes); i++) {
        memcpy(state, at, bytes);
        at += bytes;
    }
    return 0;
}

/* ---- its loader ---- */

int __real_train_place_loader(struct train *train, uint64_t step, struct ms_err *err);
int __wrap_train_place_loader(struct train *train, uint64_t step, struct ms_err *err);

int __wrap_train_place_loader(struct train *train, uint64_t step, struct ms_err *err)
{
    if (step > STEPS && step == all->saved[self.rank][0].step) {
        return 0; /* whose claim it is has to live to tell it */
    }
    if (!is_due(IT_HAS_NO_LOADER, step)) {
        return __real_train_place_loader(train, step, err);
    }
    if (is_due(AND_IS_HELD, step)) {
        train_hold(train, "the job goes on under another generation");
    }
    return ms_fail(err, MS_E_NOMEM, "no thread for the loader");
}

/* ---- ... and which there are ---- */

int __wrap_train_find_checkpoints(struct train *train, struct ms_err *err);
struct train_checkpoint __wrap_train_checkpoint_at(const struct train *train, size_t place);

int __wrap_train_find_checkpoints(struct train *train, struct ms_err *err)
{
    (void)err;
    const struct saved *newest = &all->saved[self.rank][0];
    train->found.has_own = newest->step > 0 && !newest->is_named;
    self.is_refused |= is_due(IT_IS_REFUSED, (uint64_t)all->lives[self.rank]);
    if (self.is_refused) {
        ms_fail(&train->found.refusal, MS_E_INVALID, "another training lies there");
    }
    return 0;
}

struct train_checkpoint __wrap_train_checkpoint_at(const struct train *train, size_t place)
{
    struct train_checkpoint checkpoint = {.step = 0};
    const struct saved *saved = place < SAVED_MAX ? &all->saved[self.rank][place] : NULL;
    (void)train;
    if (saved != NULL && saved->step > 0) {
        checkpoint = (struct train_checkpoint){.step = saved->step,
                                               .place = place,
                                               .is_own = !saved->is_named,
                                               .loss = saved->loss,
                                               .seconds = saved->seconds,
                                               .load = load};
        snprintf(checkpoint.first_tag, sizeof(checkpoint.first_tag), "of rank %d", self.rank);
    }
    return checkpoint;
}

static void on_note(void *arg, const char *text)
{
    (void)arg;
    if (strstr(text, "the checkpoint of step 8 is passed over: it is damaged") != NULL) {
        atomic_fetch_add(&all->n_notes, 1);
    }
    if (self.rank == 0 && (strstr(text, "metrics ") != NULL || strstr(text, "lines ") != NULL ||
                           strstr(text, "stop") != NULL)) {
        const size_t n = strlen(all->notes);
        snprintf(all->notes + n, sizeof(all->notes) - n, "%s\n", text);
    }
}

/* ---- its lines ---- */

static void cut_lines(const char *name, const char *mark)
{
    char path[128];
    char line[1024];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", all->dir, name);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    while (n < LINES_LEFT && fgets(line, sizeof(line), file) != NULL) {
        n += strstr(line, mark) != NULL;
    }
    ck_assert_int_eq(ftruncate(fileno(file), ftell(file)), 0);
    fclose(file);
}

/* Of the bytes that metrics.jsonl has, no file gets more. */
static void fill_disk(int is_full)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", all->dir);
    ck_assert_int_eq(stat(path, &st), 0);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {is_full ? (rlim_t)st.st_size : RLIM_INFINITY, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void on_progress(void *arg, const struct train_progress *progress)
{
    (void)arg;
    if (progress->phase == TRAIN_EVALUATING) {
        atomic_fetch_add(&all->n_evaluated, progress->has_eval);
        die_if(progress->has_eval ? AFTER_EVALUATION : IN_EVALUATION, progress->step);
    } else if (progress->phase == TRAIN_TRAINING) {
        if (is_due(IT_SAVES, progress->step)) {
            save(0);
        }
        if (is_due(IT_WAS_RESUMED, progress->step)) {
            save(0);
            all->saved[self.rank][0].is_named = 1;
        }
        if (is_due(IT_SAVES_DAMAGED, progress->step)) {
            save(1);
        }
        if (is_due(IT_SAVES_A_CLAIM, progress->step)) {
            save(0);
            all->saved[self.rank][0].step = all->claim;
        }
        die_if(AFTER_A_STEP, progress->step);
        if (is_due(ITS_DISK_IS_FULL, progress->step)) {
            fill_disk(1);
        }
        if (is_due(AND_HAS_ROOM, progress->step)) {
            fill_disk(0);
        }
        if (is_due(ITS_MEMORY_ROTS, progress->step)) {
            void *weights;
            size_t bytes;
            replica_state(self.train->replica, 0, &weights, &bytes);
            ((uint8_t *)weights)[bytes / 2] ^= 1;
        }
        if (is_due(IT_LOSES_TWO_STEPS, progress->step)) {
            self.train->progress.step -= 2;
            train_hold(self.train, "it lost two steps");
        }
        if (is_due(IT_HAS_A_COPY,
                   progress->step)) { /* as of a begin anew, while nobody was there */
            have_a_copy();
        }
    }
}

/* ---- a rank ---- */

static void *listen_to_orders(void *arg)
{
    (void)arg;
    for (;;) {
        while (sem_wait(&all->heard[self.rank]) != 0) {
        }
        const unsigned long long generation = atomic_load(&all->generation);
        pthread_mutex_lock(&self.lock);
        if (generation != self.generation && generation != 0 && self.train != NULL) {
            train_hold(self.train, "the job goes on under another generation");
        }
        self.generation = generation;
        pthread_cond_signal(&self.changed);
        pthread_mutex_unlock(&self.lock);
        if (generation == 0) {
            return NULL;
        }
    }
}

/* One that is of an older generation than the last that was heard is held. */
static void set_train(struct train *train, unsigned long long generation)
{
    pthread_mutex_lock(&self.lock);
    self.train = train;
    if (train != NULL && generation != self.generation) {
        train_hold(train, "the job goes on under another generation");
    }
    pthread_mutex_unlock(&self.lock);
}

/* 0: it is over. */
static unsigned long long await_generation(unsigned long long after)
{
    pthread_mutex_lock(&self.lock);
    while (self.generation == after) {
        pthread_cond_wait(&self.changed, &self.lock);
    }
    const unsigned long long generation = self.generation;
    if (generation != 0 && self.train != NULL) {
        train_unhold(self.train); /* what comes after that holds what comes now */
    }
    pthread_mutex_unlock(&self.lock);
    return generation;
}

static void fill_token(uint8_t token[MS_TOKEN_LEN], unsigned long long generation)
{
    memset(token, (int)generation, MS_TOKEN_LEN);
}

static struct train *make_train(unsigned long long generation, int log_fd)
{
    struct train_config cfg = train_case_config(&all->job, all->dir);
    cfg.rank = self.rank;
    cfg.world = all->ranks.world;
    cfg.members = all->ranks.members;
    cfg.listener = all->ranks.listeners[self.rank];
    cfg.force_remote = all->force_remote;
    cfg.generation = generation;
    cfg.job_tag = "0123456789abcdef0123456789abcdef";
    cfg.log_fd = log_fd;
    cfg.on_progress = on_progress;
    cfg.on_note = on_note;
    fill_token(cfg.token, generation);
    comm_listener_resume(cfg.listener);
    return train_create(&cfg);
}

/* Or of the mesh, in which a survivor can try again. */
static int is_of_peers(int rc)
{
    return rc == MS_E_CLOSED || rc == MS_E_TIMEOUT || rc == MS_E_ABORTED ||
           (rc == MS_E_NOMEM && self.has_trained && train_is_of_mesh(self.train, rc));
}

/* Is this the life in which it has others than the rest? */
static int mix_data_up(void)
{
    const uint64_t life = (uint64_t)all->lives[self.rank];
    const int trains_on_others = is_due(IT_HAS_OTHER_DATA, life);
    const int is_tested_by_others = is_due(IT_HAS_OTHER_TESTS, life);
    self.train->data.training.sum[0] ^= (uint8_t)trains_on_others;
    self.train->data.evaluation.sum[DATA_SUM_BYTES - 1] ^= (uint8_t)is_tested_by_others;
    return trains_on_others || is_tested_by_others;
}

static void die_refused(const struct ms_err *err)
{
    snprintf(all->refusals[self.rank], MS_ERR_TEXT_MAX, "%s", err->text);
    raise(SIGKILL);
}

static int prepare(struct train_info *info, struct ms_err *err)
{
    const char *text;
    if (is_due(IT_FINDS_NO_LINES, (uint64_t)all->lives[self.rank])) {
        char log[32];
        snprintf(log, sizeof(log), "worker_%d.log", self.rank);
        cut_lines("metrics.jsonl", "\"step\":");
        cut_lines(log, "loss is");
    }
    int rc = train_open(self.train, err);
    const int is_mixed_up = rc == 0 && mix_data_up();
    rc = rc == 0 ? train_choose(self.train, &text, err) : rc;
    rc = rc == 0 ? train_obey(self.train, NULL, err) : rc;
    if (rc == 0) {
        die_if(BEFORE_IT_JOINS, 0);
    }
    rc = rc == 0 ? train_join(self.train, info, err) : rc;
    if ((is_mixed_up || self.is_refused) && rc == MS_E_INVALID) {
        die_refused(err);
    }
    return rc;
}

static int go_on(unsigned long long generation, struct train_info *info, struct ms_err *err)
{
    struct train_peers peers = {.members = all->ranks.members, .generation = generation};
    fill_token(peers.token, generation);
    if (is_due(IT_CLAIMS_A_STEP, self.train->progress.step)) {
        self.train->progress.step = all->claim;
    }
    self.train->stopped |= is_due(IT_CLAIMS_A_STOP, self.train->progress.step);
    return train_rejoin(self.train, &peers, info, err);
}

/* One generation: from where it is to the end, or to a failure. */
static int live(unsigned long long generation, int log_fd, struct train_result *result,
                struct ms_err *err)
{
    struct train_info info;
    int rc;
    if (self.train != NULL && train_plan_sha256(self.train)[0] == '\0') { /* held before its plan */
        struct train *train = self.train;
        set_train(NULL, generation);
        train_destroy(train);
    }
    if (self.train == NULL) {
        set_train(make_train(generation, log_fd), generation);
        rc = prepare(&info, err);
    } else {
        rc = go_on(generation, &info, err);
    }
    if (rc < 0) {
        return rc;
    }
    all->last[self.rank] = info;
    memcpy(all->first_tag[self.rank], self.train->first_tag, sizeof(self.train->first_tag));
    atomic_fetch_add(&all->n_joins, 1);
    self.has_trained = 1;
    rc = train_run(self.train, result, err);
    if (rc == 0) {
        die_if(WHEN_IT_IS_DONE, 0);
    }
    return rc;
}

struct word { /* to the parent */
    unsigned long long generation;
    int is_done; /* or failed by itself; not so: its peers are gone */
};

static void tell_parent(int fd, unsigned long long generation, int is_done)
{
    struct word word = {.generation = generation, .is_done = is_done};
    ssize_t n = write(fd, &word, sizeof(word));
    (void)n; /* a parent that is gone kills us */
}

/* fd: to the parent. */
static int live_on(int rank, int fd)
{
    struct train_result result = {0};
    struct end *end = &all->ends[rank];
    char path[128];
    pthread_t listener;
    unsigned long long generation = atomic_load(&all->generation);
    int rc = 0;
    self.rank = rank;
    self.generation = generation;
    pthread_mutex_init(&self.lock, NULL);
    pthread_cond_init(&self.changed, NULL);
    snprintf(path, sizeof(path), "%s/worker_%d.log", all->dir, rank);
    int log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    pthread_create(&listener, NULL, listen_to_orders, NULL);
    do {
        struct ms_err err = {0, ""};
        rc = live(generation, log_fd, &result, &err);
        end->code = rc;
        snprintf(end->text, sizeof(end->text), "%s", err.text);
        if (rc == 0) {
            end->steps = result.steps;
            memcpy(end->weights, result.weights_sha256, sizeof(end->weights));
            end->record = self.train->record;
        }
        atomic_fetch_add(&all->n_own, rc < 0 && !is_of_peers(rc));
        tell_parent(fd, generation, !is_of_peers(rc));
        generation = await_generation(generation);
    } while (generation != 0);
    pthread_join(listener, NULL);
    train_destroy(self.train);
    close(log_fd);
    return 0;
}

/* ---- the parent ---- */

struct parent {
    pid_t pids[WORLD_MAX];
    int fds[WORLD_MAX];
    struct word words[WORLD_MAX]; /* the last ones */
};

static void start_rank(struct parent *parent, int rank)
{
    int fds[2];
    pid_t mother = getpid();
    ck_assert_int_eq(pipe(fds), 0);
    fflush(NULL);
    all->lives[rank]++;
    parent->pids[rank] = fork();
    ck_assert_int_ge(parent->pids[rank], 0);
    if (parent->pids[rank] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getppid() == mother ? live_on(rank, fds[1]) : 1);
    }
    close(fds[1]); /* the end of the pipe is that of the process */
    parent->fds[rank] = fds[0];
    parent->words[rank] = (struct word){0, 0};
}

static void say_to_all(unsigned long long generation)
{
    atomic_store(&all->generation, generation);
    for (int i = 0; i < all->ranks.world; i++) {
        sem_post(&all->heard[i]);
    }
}

/* Until something is heard of a rank, or ms are over: 0. */
static int hear(struct parent *parent, int ms)
{
    struct pollfd polls[WORLD_MAX];
    for (int i = 0; i < all->ranks.world; i++) {
        polls[i] = (struct pollfd){parent->fds[i], POLLIN, 0};
    }
    int n = poll(polls, (nfds_t)all->ranks.world, ms);
    for (int i = 0; n > 0 && i < all->ranks.world; i++) {
        if (polls[i].revents != 0 &&
            read(parent->fds[i], &parent->words[i], sizeof(parent->words[i])) <= 0) {
            int status = 0;
            close(parent->fds[i]);
            parent->fds[i] = -1;
            waitpid(parent->pids[i], &status, 0);
            ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                          "rank %d ended with status %x", i, (unsigned)status);
        }
    }
    return n > 0;
}

static int is_over(const struct parent *parent, unsigned long long generation)
{
    int over = 1;
    for (int i = 0; i < all->ranks.world; i++) {
        over &= parent->fds[i] >= 0 && parent->words[i].is_done &&
                parent->words[i].generation == generation;
    }
    return over;
}

static int is_troubled(const struct parent *parent, unsigned long long generation)
{
    int troubled = 0;
    for (int i = 0; i < all->ranks.world; i++) {
        const struct word *word = &parent->words[i];
        troubled |= parent->fds[i] < 0 || (word->generation == generation && !word->is_done);
    }
    return troubled;
}

/* Trouble seldom comes alone: a round begins when nothing was heard for so long. Nothing but which
 * of them are met by the same round depends on it. */
enum { QUIET_MS = 60 };

static void begin_round(struct parent *parent, unsigned long long generation)
{
    atomic_store(&all->generation, generation);
    for (int i = 0; i < all->ranks.world; i++) {
        if (parent->fds[i] < 0) {
            start_rank(parent, i);
        }
    }
    say_to_all(generation);
}

/* Runs the case to its end. Returns the last generation. */
static unsigned long long run_ranks(void)
{
    struct parent parent;
    unsigned long long generation = 1;
    memset(&parent, 0, sizeof(parent));
    for (int i = 0; i < all->ranks.world; i++) {
        ck_assert_int_eq(sem_init(&all->heard[i], 1, 0), 0);
        parent.fds[i] = -1;
    }
    begin_round(&parent, generation);
    while (!is_over(&parent, generation)) {
        const int troubled = is_troubled(&parent, generation);
        if (!hear(&parent, troubled ? QUIET_MS : -1)) {
            begin_round(&parent, ++generation);
        }
    }
    say_to_all(0);
    for (int i = 0; i < all->ranks.world; i++) {
        int status = 0;
        waitpid(parent.pids[i], &status, 0);
        close(parent.fds[i]);
        ck_assert_msg(status == 0, "rank %d ended with status %x", i, (unsigned)status);
    }
    return generation;
}

#endif
