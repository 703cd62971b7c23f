/* test_rejoin.c - ranks that lose each other go on under another generation, as if nothing had been
 *
 * Each rank is a process; the linker hands us what fails at a chosen place. */
#include "bench/ranks.h"
#include "libworker/train/train_impl.h"
#include "tests/unit/program_case.h"
#include "tests/unit/train_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { WORLD_MAX = 3, STEPS = 20, GENERATIONS_MAX = 6 };

enum trouble {
    NONE,
    HELD_AFTER_A_STEP,     /* by itself, as an order would */
    HELD_IN_A_STEP,        /* ... before its last gradients are out */
    HELD_IN_EVALUATION,    /* ... before its part is said */
    LINK_BREAKS_AT_COMMIT, /* the others make the commit that this rank misses */
    SOURCE_DIES,           /* ... and what it pulls breaks off once */
    STOPPED_AT_COMMIT,     /* ... as they were asked to stop with it */
    STOPPED_BEHIND,        /* ... and this rank is asked to stop before it has it */
    HELD_FOR_A_RECORD,     /* while it waits for one, which comes once it goes on */
    FALLS_BEHIND,          /* it is where no rank can be */
};

static struct shared {
    struct ranks ranks;
    char dir[64];
    struct job job;
    int force_remote;
    char program[256]; /* whose records they are; "": of no program */
    int accumulate;
    /* the case */
    enum trouble trouble;
    int who;
    uint64_t when;
    /* what became of it */
    char weights[WORLD_MAX][MS_SHA256_HEX];
    int generations[WORLD_MAX], pulled[WORLD_MAX];
    int waited_undigested[WORLD_MAX]; /* for the others, in a generation after the first */
    char refusal[WORLD_MAX][MS_ERR_TEXT_MAX];
} * all;

/* ---- a rank, in a process of its own ---- */

static struct {
    int rank, broken, broadcasts, digested;
    _Atomic uint64_t step;
    struct train *train;
} self;

int __real_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err);
int __wrap_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err);
void __real_reducer_post(struct reducer *reducer, int bucket);
void __wrap_reducer_post(struct reducer *reducer, int bucket);
int __real_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                          struct ms_err *err);
int __wrap_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root,
                          struct ms_err *err);

int __real_mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err);
int __wrap_mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err);
int __real_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err);
int __wrap_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err);

static int is_here(enum trouble trouble)
{
    return all->trouble == trouble && all->who == self.rank && !self.broken;
}

/* Behind the last byte of the step: all others have what they need for the commit. */
int __wrap_reducer_wait(struct reducer *reducer, const void **ret_results, struct ms_err *err)
{
    int rc = __real_reducer_wait(reducer, ret_results, err);
    int breaks = is_here(LINK_BREAKS_AT_COMMIT) || is_here(SOURCE_DIES) || is_here(FALLS_BEHIND) ||
                 is_here(STOPPED_AT_COMMIT) || is_here(STOPPED_BEHIND);
    if (rc == 0 && breaks && self.train->progress.step + 1 == all->when) {
        self.broken = 1;
        return ms_fail(err, MS_E_CLOSED, "the link broke");
    }
    return rc;
}

static void hold(void)
{
    self.broken = 1;
    train_hold(self.train, "held");
}

static void put_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", all->dir, name);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fclose(file);
    }
}

static int has_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", all->dir, name);
    return access(path, F_OK) == 0;
}

/* As a control thread does, once nothing but that record is waited for; before that it would be
 * held, too. */
static void *hold_for_a_record(void *arg)
{
    while (!has_file("asked") || atomic_load(&self.step) + 1 < all->when) {
        usleep(1000);
    }
    usleep(200000);
    hold();
    return arg;
}

void __wrap_reducer_post(struct reducer *reducer, int bucket)
{
    if (is_here(HELD_IN_A_STEP) && self.train->progress.step + 1 == all->when &&
        bucket == self.train->sizes.n_buckets - 1) {
        hold();
    }
    __real_reducer_post(reducer, bucket);
}

int __wrap_mesh_broadcast(struct mesh *mesh, void *data, size_t bytes, int root, struct ms_err *err)
{
    self.broadcasts++;
    if (all->trouble == SOURCE_DIES && self.broken == 1 && self.broadcasts == 2) {
        self.broken = 2;
        memset(data, 0xff, bytes / 2); /* as far as it came */
        return ms_fail(err, MS_E_CLOSED, "the source died");
    }
    return __real_mesh_broadcast(mesh, data, bytes, root, err);
}

int __wrap_state_digest(const struct replica *replica, uint64_t step, uint8_t *ret,
                        struct ms_err *err)
{
    self.digested++;
    return __real_state_digest(replica, step, ret, err);
}

int __wrap_mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err)
{
    all->waited_undigested[self.rank] += cfg->generation > 1 && self.digested == 0;
    return __real_mesh_create(cfg, ret, err);
}

static void on_progress(void *arg, const struct train_progress *progress)
{
    (void)arg;
    atomic_store(&self.step, progress->step);
    int is_step = progress->phase == TRAIN_TRAINING && progress->step == all->when;
    if (all->trouble == STOPPED_AT_COMMIT && self.rank == 0 && progress->step + 1 == all->when) {
        train_stop_at_step(self.train);
    }
    int is_evaluation = progress->phase == TRAIN_EVALUATING && !progress->has_eval;
    if ((is_here(HELD_AFTER_A_STEP) && is_step) || (is_here(HELD_IN_EVALUATION) && is_evaluation)) {
        hold();
    }
}

static struct train_peers peers_of(int generation)
{
    struct train_peers peers = {.members = all->ranks.members,
                                .generation = (uint64_t)generation,
                                .tls = all->ranks.tls[self.rank]};
    memset(peers.token, generation, sizeof(peers.token));
    return peers;
}

/* Until it trains again, under the first generation that holds. */
static int go_on(struct ms_err *err)
{
    struct train_info again;
    int rc;
    do {
        uint64_t before = self.train->progress.step;
        int generation = ++all->generations[self.rank];
        if (all->trouble == FALLS_BEHIND && self.rank == all->who) {
            self.train->progress.step -= 1;
        }
        struct train_peers peers = peers_of(generation);
        train_unhold(self.train);
        if (all->trouble == HELD_FOR_A_RECORD && self.rank == all->who) {
            put_file("goes on");
        }
        if (all->trouble == STOPPED_BEHIND && self.rank == all->who) {
            train_stop_at_step(self.train);
        }
        self.digested = 0;
        rc = train_rejoin(self.train, &peers, &again, err);
        all->pulled[self.rank] += rc == 0 && self.train->progress.step > before;
    } while ((rc == MS_E_CLOSED || rc == MS_E_TIMEOUT) &&
             all->generations[self.rank] < GENERATIONS_MAX);
    return rc;
}

/* Who is asked to stop behind a commit may have a batch still, and makes that step. */
static int ends_in_time(uint64_t steps)
{
    return all->trouble == STOPPED_BEHIND
               ? steps == all->when || steps == all->when + 1
               : steps == (all->trouble == STOPPED_AT_COMMIT ? all->when : STEPS);
}

static int train_rank(int rank, void *arg)
{
    pthread_t holder;
    const int is_held = all->trouble == HELD_FOR_A_RECORD && rank == all->who;
    struct train_config cfg = train_case_config(&all->job, rank == 0 ? all->dir : "");
    struct train_peers first;
    struct train_info info;
    struct train_result result;
    struct ms_err err = {0, ""};
    (void)arg;
    self.rank = rank;
    cfg.rank = rank;
    cfg.world = all->ranks.world;
    cfg.members = all->ranks.members;
    cfg.listener = all->ranks.listeners[rank];
    cfg.force_remote = all->force_remote;
    cfg.on_progress = on_progress;
    all->generations[rank] = 1;
    first = peers_of(1);
    memcpy(cfg.token, first.token, sizeof(cfg.token));
    self.train = train_create(&cfg);
    int rc = train_prepare(self.train, &info, &err);
    if (is_held) {
        pthread_create(&holder, NULL, hold_for_a_record, NULL);
    }
    rc = rc == 0 ? train_run(self.train, &result, &err) : rc;
    while (
        ((rc == MS_E_CLOSED || rc == MS_E_ABORTED) && all->generations[rank] < GENERATIONS_MAX) ||
        (all->trouble == STOPPED_AT_COMMIT && all->generations[rank] == 1)) { /* done, or not */
        rc = go_on(&err);
        rc = rc == 0 ? train_run(self.train, &result, &err) : rc;
    }
    snprintf(all->refusal[rank], sizeof(all->refusal[rank]), "%s", err.text);
    if (rc == 0) {
        memcpy(all->weights[rank], result.weights_sha256, sizeof(all->weights[rank]));
        rc = ends_in_time(result.steps) ? 0 : 1;
    }
    if (is_held) {
        pthread_join(holder, NULL);
    }
    train_destroy(self.train);
    return rc < 0 ? 2 : rc;
}

/* ---- the cases ---- */

static char undisturbed[WORLD_MAX + 1][MS_SHA256_HEX];

/* 12 records, of which the ranks read one a batch. */
static void make_program_job(int world)
{
    char text[1024];
    snprintf(
        text, sizeof(text),
        "network: linear\nworkers: %d\nbatch_size: 1\naccumulate: %d\nepochs: 10\n"
        "steps: %d\nloss: softmax_cross_entropy\noptimizer: {kind: sgd, learning_rate: 0.001}\n"
        "dataset: {kind: program, path: %s, timeout: 1000, shuffle: false, shape: [2, 1, 1], "
        "classes: 10}\n",
        world, all->accumulate, STEPS, all->program);
    ck_ms_ok(job_parse(text, strlen(text), "the case", "/", NULL, 0, 0, &all->job, err));
}

static void open_case(int world, int force_remote)
{
    static const char *const sets[] = {
        "workers=",
        "batch_size=4",
        "optimizer.kind=momentum",
        "optimizer.learning_rate=0.01",
        "dataset.samples=",
        "evaluate={dataset: {kind: nonlinear, samples: 30}, batch_size: 8}"};
    const char *with[MS_ARRAY_SIZE(sets)];
    char workers[16];
    char samples[32];
    memcpy(with, sets, sizeof(with));
    snprintf(workers, sizeof(workers), "workers=%d", world);
    snprintf(samples, sizeof(samples), "dataset.samples=%d", 40 * world);
    with[0] = workers;
    with[4] = samples;
    memset(all->weights, 0, sizeof(all->weights));
    memset(all->generations, 0, sizeof(all->generations));
    memset(all->pulled, 0, sizeof(all->pulled));
    memset(all->waited_undigested, 0, sizeof(all->waited_undigested));
    if (all->program[0] != '\0') {
        make_program_job(world);
    } else {
        train_case_job(&all->job, with, MS_ARRAY_SIZE(with));
    }
    all->force_remote = force_remote;
    ck_ms_ok(ranks_open(&all->ranks, world, err));
}

static int count_in_metrics(const char *part)
{
    char path[128];
    char line[1024];
    int n = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", all->dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        n += strstr(line, part) != NULL;
    }
    fclose(file);
    return n;
}

/* All ranks end well, with the weights of ranks that nothing befell; each step is told once. */
static void train_through(int world, int force_remote, enum trouble trouble, int who, uint64_t when)
{
    all->trouble = trouble;
    all->who = who;
    all->when = when;
    open_case(world, force_remote);
    int failed = ranks_run(&all->ranks, train_rank, NULL);
    ranks_close(&all->ranks);
    for (int i = 0; i < world; i++) {
        ck_assert_msg(failed == 0, "trouble %d of rank %d of %d at step %d: rank %d: %s", trouble,
                      who, world, (int)when, i, all->refusal[i]);
        if (trouble == NONE) {
            memcpy(undisturbed[world], all->weights[i], MS_SHA256_HEX);
        }
        ck_assert_msg(strcmp(all->weights[i], undisturbed[world]) == 0,
                      "trouble %d of rank %d of %d at step %d: rank %d has other weights", trouble,
                      who, world, (int)when, i);
    }
    ck_assert_int_eq(count_in_metrics("\"step_ms\""), STEPS);
    char path[128];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", all->dir);
    unlink(path);
}

static void setup(void)
{
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(all, MAP_FAILED);
    snprintf(all->dir, sizeof(all->dir), "%s", test_dir_make());
}

static void teardown(void)
{
    test_dir_remove(all->dir);
    munmap(all, sizeof(*all));
}

START_TEST(held_ranks_go_on_and_have_the_weights_of_undisturbed_ones)
{
    for (int world = 1; world <= WORLD_MAX; world++) {
        train_through(world, 0, NONE, 0, 0);
        for (int who = 0; who < world; who++) {
            train_through(world, who % 2, HELD_AFTER_A_STEP, who, 1 + 6 * (uint64_t)who);
            train_through(world, 0, HELD_IN_EVALUATION, who, 0);
        }
    }
    for (uint64_t when = 1; when < STEPS; when += 3) {
        train_through(3, when % 2 == 0, HELD_IN_A_STEP, (int)when % 3, when);
    }
}
END_TEST

START_TEST(ranks_that_go_on_digest_their_state_before_they_wait_for_the_others)
{
    train_through(3, 0, NONE, 0, 0);
    train_through(3, 0, HELD_AFTER_A_STEP, 1, 7);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_gt(all->generations[i], 1);
        ck_assert_int_eq(all->waited_undigested[i], 0);
    }
}
END_TEST

START_TEST(rank_that_missed_the_last_commit_takes_it_from_the_others)
{
    train_through(3, 0, NONE, 0, 0);
    for (int who = 0; who < 3; who++) {
        train_through(3, who % 2, LINK_BREAKS_AT_COMMIT, who, 5 + (uint64_t)who);
        ck_assert_int_eq(all->pulled[who], 1);
        ck_assert_int_eq(all->pulled[(who + 1) % 3], 0);
    }
    train_through(3, 0, LINK_BREAKS_AT_COMMIT, 1, STEPS / 2); /* an epoch's last */
}
END_TEST

START_TEST(rank_that_missed_the_last_commit_of_all_stops_with_the_others)
{
    all->trouble = STOPPED_AT_COMMIT;
    all->who = 2;
    all->when = 7;
    open_case(3, 0);
    int failed = ranks_run(&all->ranks, train_rank, NULL);
    ranks_close(&all->ranks);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(failed == 0, "rank %d: %s", i, all->refusal[i]);
        ck_assert_str_eq(all->weights[i], all->weights[0]);
    }
    ck_assert_int_eq(all->pulled[2], 1);
}
END_TEST

/* Two ranks, of which rank 1 has row 7. */
static void use_program(const char *text, int accumulate)
{
    all->accumulate = accumulate;
    program_case_write(all->dir, "make.sh", text, all->program, sizeof(all->program));
}

START_TEST(rank_that_waits_for_a_record_is_held_at_once)
{
    use_program(SH "header; while read row epoch seed; do\n"
                   "if [ $row = 7 ] && [ -e slow ]; then\n"
                   ": >asked; while [ ! -e 'goes on' ]; do sleep 0.01; done; fi\n"
                   "record $row $epoch; done\n",
                1);
    train_through(2, 0, NONE, 0, 0);
    put_file("slow");
    train_through(2, 0, HELD_FOR_A_RECORD, 1, 4); /* of rows 1, 3, 5, 7 */
    ck_assert_int_gt(all->generations[1], 1);
}
END_TEST

/* The batch of the commit that it pulls is none that it has: nobody reads one for it any more. */
START_TEST(rank_that_missed_the_last_commit_and_is_to_stop_takes_it_without_its_batch)
{
    for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
        use_program(SERVE, accumulate);
        all->trouble = STOPPED_BEHIND;
        all->who = 1;
        all->when = 7;
        open_case(2, 0);
        int failed = ranks_run(&all->ranks, train_rank, NULL);
        ranks_close(&all->ranks);
        ck_assert_msg(failed == 0, "%s; %s", all->refusal[0], all->refusal[1]);
        ck_assert_str_eq(all->weights[1], all->weights[0]);
        ck_assert_int_eq(all->pulled[1], 1);
    }
}
END_TEST

START_TEST(pull_that_breaks_off_leaves_the_old_state_whole)
{
    train_through(2, 0, NONE, 0, 0);
    train_through(2, 0, SOURCE_DIES, 1, 7);
    ck_assert_int_ge(all->generations[1], 3);
    ck_assert_int_eq(all->pulled[1], 1);
}
END_TEST

START_TEST(rank_that_is_further_behind_is_refused_by_name)
{
    all->trouble = FALLS_BEHIND;
    all->who = 1;
    all->when = 7;
    open_case(2, 0);
    ck_assert_int_eq(ranks_run(&all->ranks, train_rank, NULL), 2);
    ranks_close(&all->ranks);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(strstr(all->refusal[i], "rank 1 is at step 5 and rank 0 at step 7") != NULL,
                      "rank %d says: %s", i, all->refusal[i]);
    }
}
END_TEST

START_TEST(rank_that_never_comes_is_to_blame)
{
    struct train_info info;
    struct ms_err why = {0, ""};
    open_case(2, 0);
    struct train_config cfg = train_case_config(&all->job, all->dir);
    cfg.world = 2;
    cfg.members = all->ranks.members;
    cfg.listener = all->ranks.listeners[0];
    cfg.peer_timeout_ms = 200;
    struct train *train = train_create(&cfg);
    ck_assert_ptr_nonnull(train);
    ck_assert_int_eq(train_culprit(train), -1);

    int rc = train_prepare(train, &info, &why);

    ck_assert_msg(rc == MS_E_TIMEOUT, "%s: %s", ms_code_name(rc), why.text);
    ck_assert_int_eq(train_culprit(train), 1);
    train_destroy(train);
    ranks_close(&all->ranks);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rejoin");
    TCase *tc = tcase_create("rejoin");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, held_ranks_go_on_and_have_the_weights_of_undisturbed_ones);
    tcase_add_test(tc, ranks_that_go_on_digest_their_state_before_they_wait_for_the_others);
    tcase_add_test(tc, rank_that_missed_the_last_commit_takes_it_from_the_others);
    tcase_add_test(tc, rank_that_missed_the_last_commit_of_all_stops_with_the_others);
    tcase_add_test(tc, rank_that_waits_for_a_record_is_held_at_once);
    tcase_add_test(tc, rank_that_missed_the_last_commit_and_is_to_stop_takes_it_without_its_batch);
    tcase_add_test(tc, pull_that_breaks_off_leaves_the_old_state_whole);
    tcase_add_test(tc, rank_that_is_further_behind_is_refused_by_name);
    tcase_add_test(tc, rank_that_never_comes_is_to_blame);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
