/* test_agree.c - ranks of which some were killed come to one step, as if nothing had been */
#include "tests/unit/newcomers.h"

#include "libworker/train/best_files.h"
#include "proto/rng.h"

/* ---- what is the same whatever happens ---- */

struct course { /* of a training that nothing befell */
    char weights[MS_SHA256_HEX];
    char losses[STEPS][32];
    char lines[WORLD_MAX][STEPS][64]; /* of the ranks' logs, with their own losses */
    char evaluations[2][1024];
    struct saved_best best; /* where it is kept */
};

static char optimizer[96];
static const char *network; /* "": one dense layer on numbers */
static const char *counts;  /* metrics of evaluations; "": none */
static int64_t saves_every; /* steps; 0: no checkpoints */
static const char *average; /* decay; "": none */
static const char *best;    /* of which evaluation the weights are kept; "null": none */
static int is_early;        /* all steps are two of three epochs */
static int accumulate;      /* batches of a step, which has four samples a rank */

static void make_job(int world)
{
    char workers[16];
    char samples[128];
    char net[64];
    char evaluate[160];
    char batch[32];
    char batches[48];
    char kept[32];
    const int has_images = network[0] != '\0';
    const char *const sets[] = {is_early ? "epochs=3" : "epochs=2",
                                is_early ? "early_stop={patience: 1}" : "early_stop=null",
                                workers,
                                batch,
                                batches,
                                optimizer,
                                samples,
                                evaluate,
                                kept,
                                net,
                                "loss=softmax_cross_entropy"};
    snprintf(workers, sizeof(workers), "workers=%d", world);
    snprintf(kept, sizeof(kept), "best=%s", best);
    snprintf(batch, sizeof(batch), "batch_size=%d", 4 / accumulate);
    if (average[0] == '\0') {
        snprintf(batches, sizeof(batches), "accumulate=%d", accumulate);
    } else {
        snprintf(batches, sizeof(batches), "average={decay: %s}", average);
    }
    snprintf(evaluate, sizeof(evaluate),
             "evaluate={dataset: {kind: %s, samples: 30}, batch_size: 8, metrics: [%s]}",
             has_images ? "shapes" : "nonlinear", counts);
    snprintf(net, sizeof(net), "network=%s", network);
    snprintf(samples, sizeof(samples),
             has_images ? "dataset={kind: shapes, samples: %d}" : "dataset.samples=%d", 40 * world);
    train_case_job(&all->job, sets, MS_ARRAY_SIZE(sets) - (has_images ? 0 : 2));
    all->job.has_checkpoint = saves_every > 0;
    all->job.checkpoint_every_steps = saves_every;
    all->job.checkpoint_keep_max = STEPS;
    snprintf(all->job.checkpoint_directory, sizeof(all->job.checkpoint_directory), "ckpt");
    snprintf(all->job.checkpoint_prefix, sizeof(all->job.checkpoint_prefix), "x");
}

static void open_case(int world)
{
    memset(all->ends, 0, sizeof(all->ends));
    memset(all->lives, 0, sizeof(all->lives));
    memset(all->last, 0, sizeof(all->last));
    memset(all->is_done, 0, sizeof(all->is_done));
    memset(all->refusals, 0, sizeof(all->refusals));
    memset(all->saved, 0, sizeof(all->saved));
    memset(all->notes, 0, sizeof(all->notes));
    atomic_store(&all->n_notes, 0);
    atomic_store(&all->n_evaluated, 0);
    make_job(world);
    ck_ms_ok(ranks_open(&all->ranks, world, err));
}

static FILE *open_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", all->dir, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    return file;
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", all->dir, name);
    unlink(path);
}

/* Each step once and in order; two evaluations, one end. */
static void read_metrics(char losses[STEPS][32], char evaluated[2][1024])
{
    char line[1024];
    unsigned long step = 0;
    int evaluations = 0;
    int ends = 0;
    FILE *file = open_file("metrics.jsonl");
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *number = strstr(line, "\"step\":");
        const char *loss = strstr(line, "\"loss_hex\":\"");
        if (number != NULL) {
            ck_assert_msg(strtoul(number + 7, NULL, 10) == ++step, "step %lu is not %s", step,
                          line);
            ck_assert_uint_le(step, STEPS);
            ck_assert_ptr_nonnull(loss);
            snprintf(losses[step - 1], sizeof(losses[0]), "%.*s", (int)strcspn(loss + 12, "\""),
                     loss + 12);
        }
        if (strstr(line, "\"eval_loss\"") != NULL) {
            ck_assert_int_lt(evaluations, 2);
            memcpy(evaluated[evaluations++], line, sizeof(line));
        }
        ends += strstr(line, "\"done\":true") != NULL;
    }
    fclose(file);
    ck_assert_uint_eq(step, STEPS);
    ck_assert_int_eq(evaluations, 2);
    ck_assert_int_eq(ends, 1);
}

static void read_log(int rank, char lines[STEPS][64])
{
    char name[32];
    char line[256];
    char want[64];
    int step = 0;
    snprintf(name, sizeof(name), "worker_%d.log", rank);
    FILE *file = open_file(name);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, ", loss is ") != NULL) {
            snprintf(want, sizeof(want), "epoch: %d step: %d, loss is ", step / 10 + 1,
                     step % 10 + 1);
            ck_assert_msg(strncmp(line, want, strlen(want)) == 0, "rank %d says %s where %s is due",
                          rank, line, want);
            ck_assert_int_lt(step, STEPS);
            snprintf(lines[step], sizeof(lines[0]), "%.63s", line);
            step++;
        }
    }
    fclose(file);
    ck_assert_int_eq(step, STEPS);
}

static void check_ranks(const struct course *undisturbed)
{
    for (int i = 0; i < all->ranks.world; i++) {
        const struct end *end = &all->ends[i];
        ck_assert_msg(end->code == 0, "rank %d ended with %d: %s", i, end->code, end->text);
        ck_assert_uint_eq(end->steps, STEPS);
        ck_assert_msg(undisturbed == NULL || strcmp(end->weights, undisturbed->weights) == 0,
                      "rank %d of %d has other weights", i, all->ranks.world);
        ck_assert_uint_eq(all->last[i].step, all->last[0].step);
        ck_assert_int_eq(all->last[i].has_digest, 1);
        ck_assert_mem_eq(all->last[i].state_digest, all->last[0].state_digest, MS_STATE_DIGEST_LEN);
        char lines[STEPS][64];
        read_log(i, lines);
        for (int step = 0; undisturbed != NULL && step < STEPS; step++) {
            ck_assert_str_eq(lines[step], undisturbed->lines[i][step]);
        }
    }
}

static void clean(void)
{
    char name[32];
    remove_file("metrics.jsonl");
    remove_file(TRAIN_BEST_FILE);
    for (int i = 0; i < WORLD_MAX; i++) {
        snprintf(name, sizeof(name), "worker_%d.log", i);
        remove_file(name);
    }
}

static void print_case(int world)
{
    fprintf(stderr, "world %d, %s:", world, optimizer);
    for (int i = 0; i < all->n_kills; i++) {
        fprintf(stderr, " rank %d where %d step %d", all->kills[i].who, (int)all->kills[i].where,
                (int)all->kills[i].when);
    }
    fprintf(stderr, "\n");
}

static struct course *course_of(int world);

static int keeps_best(void)
{
    return strcmp(best, "null") != 0;
}

static void read_best(struct saved_best *ret)
{
    char path[128];
    struct best_file file;
    snprintf(path, sizeof(path), "%s/%s", all->dir, TRAIN_BEST_FILE);
    ck_assert_msg(best_file_read(path, &file), "%s is missing", path);
    *ret = file.best;
}

/* Whoever counted all evaluations knows what rank 0 kept. */
static void ck_records(int world, const struct saved_best *kept)
{
    for (int i = 0; i < world; i++) {
        const struct record *record = &all->ends[i].record;
        if (record->since <= STEPS / 2) {
            ck_assert_uint_eq(record->watch.step, kept->step);
            ck_assert(record->watch.best == kept->value);
        }
    }
}

/* The case in hand: all ranks end well, with the weights and the lines of undisturbed ones. */
static unsigned long long train_through(int world)
{
    char losses[STEPS][32];
    struct course *course = all->n_kills > 0 ? course_of(world) : NULL;
    print_case(world);
    open_case(world);
    unsigned long long generations = run_ranks();
    ranks_close(&all->ranks);
    check_ranks(course);
    char evaluations[2][1024];
    read_metrics(losses, evaluations);
    for (int i = 0; course != NULL && i < 2; i++) {
        ck_assert_str_eq(evaluations[i], course->evaluations[i]);
    }
    ck_assert_str_eq(all->notes, "");
    for (int i = 0; course != NULL && i < STEPS; i++) {
        ck_assert_str_eq(losses[i], course->losses[i]);
    }
    if (course != NULL && keeps_best()) {
        struct saved_best kept;
        read_best(&kept);
        ck_assert_uint_eq(kept.step, course->best.step);
        ck_assert(kept.value == course->best.value);
        ck_records(world, &kept);
    }
    for (int i = 0; i < all->n_kills; i++) {
        ck_assert_msg(atomic_load(&all->is_done[i]), "trouble %d did not come", i);
    }
    return generations;
}

/* Made once for each world and optimizer. */
static struct course *course_of(int world)
{
    static struct course courses[WORLD_MAX + 1];
    static char of[WORLD_MAX + 1][128];
    char name[sizeof(of[0])];
    struct course *course = &courses[world];
    snprintf(name, sizeof(name), "%s %s %s %d %s %s %d", network, optimizer, counts, accumulate,
             average, best, is_early);
    if (strcmp(of[world], name) != 0) {
        const int n = all->n_kills;
        all->n_kills = 0;
        (void)train_through(world);
        memcpy(course->weights, all->ends[0].weights, sizeof(course->weights));
        read_metrics(course->losses, course->evaluations);
        if (keeps_best()) {
            read_best(&course->best);
        }
        for (int i = 0; i < world; i++) {
            read_log(i, course->lines[i]);
        }
        clean();
        all->n_kills = n;
        memcpy(of[world], name, sizeof(name));
    }
    return course;
}

static unsigned long long kill_and_train(int world, int n, const struct kill *kills)
{
    all->n_kills = n;
    memcpy(all->kills, kills, (size_t)n * sizeof(*kills));
    unsigned long long generations = train_through(world);
    clean();
    return generations;
}

static unsigned long long kill_one(int world, int who, enum where where, uint64_t when)
{
    const struct kill kill = {who, where, when};
    unsigned long long generations = kill_and_train(world, 1, &kill);
    ck_assert_int_eq(all->lives[who], 2);
    return generations;
}

static void setup(void)
{
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(all, MAP_FAILED);
    snprintf(all->dir, sizeof(all->dir), "%s", test_dir_make());
    snprintf(optimizer, sizeof(optimizer),
             "optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}");
    network = counts = "";
    saves_every = 0;
    best = "null";
    is_early = 0;
    accumulate = 1;
    average = "";
}

static void teardown(void)
{
    test_dir_remove(all->dir);
    munmap(all, sizeof(*all));
}

static void use_adam(void)
{
    snprintf(optimizer, sizeof(optimizer), "optimizer={kind: adam, learning_rate: 0.01}");
}

/* ---- the cases ---- */

/* Wherever in a step; a first, a last and a middle step, and those of evaluations. */
static void kill_each(int world, int who)
{
    static const enum where places[] = {AFTER_A_STEP, IN_A_STEP, AT_COMMIT};
    const uint64_t stream = ms_rng_stream(17, (uint64_t)world, (uint64_t)who);
    for (size_t i = 0; i < MS_ARRAY_SIZE(places); i++) {
        const uint64_t when = 1 + ms_rng_below(stream, i, STEPS);
        (void)kill_one(world, who, places[i], when);
        const enum ms_state_from from = all->last[who].state_from;
        ck_assert_int_eq(from, MS_STATE_PULLED);
        ck_assert_int_eq(all->last[who].state_rank, who == 0 ? 1 : 0);
        ck_assert_uint_gt(all->last[who].state_bytes, 0);
        ck_assert_int_eq(all->last[who == 0 ? 1 : 0].state_from, MS_STATE_KEPT);
    }
}

START_TEST(newcomer_takes_the_place_of_a_rank_that_was_killed)
{
    for (int world = 2; world <= WORLD_MAX; world++) {
        kill_each(world, 0);
        kill_each(world, world - 1);
    }
}
END_TEST

START_TEST(newcomer_gets_both_slots_of_adam)
{
    use_adam();
    kill_each(2, 0);
    kill_each(3, 1);
}
END_TEST

/* lenet5 has layouts that pad: equal digests say that padding is the same on all ranks. */
START_TEST(newcomer_gets_the_average_of_the_weights)
{
    average = "0.9";
    kill_each(2, 0);
    kill_each(3, 2);
}
END_TEST

START_TEST(newcomer_gets_all_slots_of_rmsprop_and_the_lengths_of_lamb)
{
    snprintf(optimizer, sizeof(optimizer),
             "optimizer={kind: rmsprop, learning_rate: 0.01, momentum: 0.9, centered: true}");
    kill_each(2, 0);
    snprintf(optimizer, sizeof(optimizer), "optimizer={kind: lamb, learning_rate: 0.01}");
    kill_each(3, 1);
}
END_TEST

START_TEST(newcomer_gets_moving_statistics_and_weights_with_padding)
{
    static const char *const networks[] = {"cifar_small", "lenet5"};
    for (size_t i = 0; i < MS_ARRAY_SIZE(networks); i++) {
        const struct kill kills[] = {{0, ITS_LINK_BREAKS, 9}, {2, AT_COMMIT, 9}};
        network = networks[i];
        snprintf(optimizer, sizeof(optimizer), "optimizer={kind: %s, learning_rate: 0.01}",
                 i == 0 ? "momentum" : "adam");
        (void)kill_and_train(3, 2, kills);
    }
}
END_TEST

/* Whoever has to begin such a step anew reads its batches again; who is given its commit by another
 * rank goes on behind all of them. */
START_TEST(step_of_several_batches_begins_anew_with_its_first)
{
    const struct kill kills[] = {{0, ITS_LINK_BREAKS, 9}, {2, AT_COMMIT, 9}};
    accumulate = _i == 0 ? 4 : 2;
    network = _i == 0 ? "" : "cifar_small";
    kill_each(2, 0);
    kill_each(3, 2);
    (void)kill_and_train(3, 2, kills);
}
END_TEST

START_TEST(newcomer_comes_where_ranks_are_of_several_hosts)
{
    all->force_remote = 1;
    kill_each(2, 1);
    kill_each(3, 0);
}
END_TEST

START_TEST(newcomer_takes_part_in_the_evaluation_that_is_due)
{
    for (int who = 0; who < 2; who++) {
        (void)kill_one(2, who, IN_EVALUATION, 10);
        (void)kill_one(3, who, AFTER_EVALUATION, 10);
        (void)kill_one(3, who, IN_EVALUATION, STEPS);
        (void)kill_one(2, who, AFTER_EVALUATION, STEPS);
    }
}
END_TEST

/* The lines of evaluations are those of undisturbed ranks, to the letter; what was counted, nobody
 * but those who did knows. */
START_TEST(what_an_evaluation_counts_is_told_whoever_dies)
{
    for (int i = 0; i < 2; i++) {
        network = i == 0 ? "" : "cifar_small";
        counts = i == 0 ? "mae" : "top5, per_class, confusion, perplexity";
        for (int who = 0; who < 2; who++) {
            (void)kill_one(2, who, IN_EVALUATION, 10);
            (void)kill_one(2, who, AFTER_EVALUATION, 10);
            (void)kill_one(2, who, AFTER_EVALUATION, STEPS);
        }
        const char *told = course_of(2)->evaluations[1];
        ck_assert_msg(strstr(told, i == 0 ? ",\"mae\":" : ",\"confusion\":[[") != NULL, "%s", told);
        const struct kill sums = {0, ITS_SUMS_ARE_LOST, 10};
        (void)kill_and_train(2, 1, &sums);
        const struct kill copy = {0, IT_COMES_WITH_A_COPY, 10};
        (void)kill_and_train(2, 1, &copy);
    }
}
END_TEST

/* Also where rank 0 told of the evaluation, or could not any more, and died before its file. */
START_TEST(best_weights_are_kept_whoever_dies)
{
    static const uint64_t steps[] = {10, STEPS}; /* the loss rises */
    for (size_t i = 0; i < MS_ARRAY_SIZE(steps); i++) {
        best = i == 0 ? "{}" : "{mode: max}";
        for (int who = 0; who < 2; who++) {
            (void)kill_one(2, who, IN_EVALUATION, steps[i]);
            (void)kill_one(2, who, AFTER_EVALUATION, steps[i]);
        }
        ck_assert_uint_eq(course_of(2)->best.step, steps[i]);
    }
}
END_TEST

/* Its files bear the tag of the job that began the training, which the newcomer hears from others.
 */
START_TEST(best_weights_of_a_resumed_training_are_known_to_who_comes)
{
    const struct kill kills[] = {
        {0, IT_SAVES, 5}, {0, AFTER_A_STEP, 6}, {1, AFTER_A_STEP, 6}, {0, AFTER_EVALUATION, STEPS}};
    best = "{}"; /* that of step 10 */
    (void)kill_and_train(2, 4, kills);
    ck_assert_str_eq(all->first_tag[0], "of rank 0");
    ck_assert_uint_eq(course_of(2)->best.step, 10);
}
END_TEST

/* ... and who has its place makes the evaluation again: the last step is that of the others all the
 * same, which tells the scheduler that all were made. */
START_TEST(end_that_is_early_is_one_for_who_comes_behind_it)
{
    is_early = 1;
    for (int i = 0; i < 2; i++) {
        counts = i == 0 ? "" : "mae";
        (void)kill_one(2, 0, WHEN_IT_IS_DONE, 0);
        ck_assert_uint_eq(all->last[0].steps_total, STEPS);
        ck_assert_uint_eq(all->last[1].steps_total, STEPS);
    }
}
END_TEST

START_TEST(rank_that_dies_before_it_joined_or_after_its_end_is_replaced)
{
    for (int who = 0; who < 3; who++) {
        (void)kill_one(3, who, BEFORE_IT_JOINS, 0);
        (void)kill_one(3, who, WHEN_IT_IS_DONE, 0);
    }
}
END_TEST

START_TEST(several_newcomers_come_at_once)
{
    const struct kill two[] = {{0, AT_COMMIT, 7}, {2, AT_COMMIT, 7}};
    const struct kill apart[] = {{1, AFTER_A_STEP, 3}, {3, IN_A_STEP, 14}, {1, AT_COMMIT, STEPS}};
    const struct kill all_but_one[] = {
        {0, AFTER_A_STEP, 12}, {1, AFTER_A_STEP, 12}, {3, AFTER_A_STEP, 12}};

    (void)kill_and_train(3, 2, two);
    (void)kill_and_train(4, 3, apart);
    (void)kill_and_train(4, 3, all_but_one);

    ck_assert_int_eq(all->lives[2], 1);
    ck_assert_int_eq(all->last[2].state_from, MS_STATE_KEPT);
}
END_TEST

START_TEST(source_or_newcomer_that_dies_in_the_middle_takes_nothing_with_it)
{
    const struct kill source[] = {{2, AFTER_A_STEP, 7}, {0, WHILE_IT_GIVES, 2}};
    const struct kill newcomer[] = {{2, AFTER_A_STEP, 8}, {2, WHILE_IT_TAKES, 2}};
    const struct kill last[] = {{1, AFTER_A_STEP, 9}, {0, WHILE_IT_GIVES, 3}};

    ck_assert_uint_ge(kill_and_train(3, 2, source), 3);
    ck_assert_int_eq(all->last[1].state_from, MS_STATE_KEPT);
    ck_assert_uint_ge(kill_and_train(3, 2, newcomer), 3);
    ck_assert_int_eq(all->lives[2], 3);
    use_adam();                                       /* the first slot came */
    ck_assert_uint_ge(kill_and_train(2, 2, last), 3); /* none is left: from the beginning */
    ck_assert_uint_eq(all->last[1].step, 0);
}
END_TEST

START_TEST(survivor_one_step_behind_takes_its_part_beside_a_newcomer)
{
    use_adam();
    for (uint64_t when = 1; when <= STEPS; when += 5) {
        const struct kill kills[] = {{0, ITS_LINK_BREAKS, when}, {2, AT_COMMIT, when}};
        (void)kill_and_train(4, 2, kills);
    }
}
END_TEST

START_TEST(evaluation_that_one_rank_knows_nothing_of_is_made_again_by_all)
{
    for (int who = 0; who < 3; who++) {
        const struct kill kills[] = {{who, ITS_SUMS_ARE_LOST, 10}, {(who + 1) % 3, IN_A_STEP, 11}};
        (void)kill_and_train(3, 2, kills);
    }
}
END_TEST

START_TEST(ranks_that_are_all_killed_begin_again_and_tell_each_step_once)
{
    const struct kill alone = {0, AFTER_A_STEP, 13};
    const struct kill both[] = {{0, AFTER_A_STEP, 11}, {1, AFTER_A_STEP, 11}};

    (void)kill_and_train(1, 1, &alone);
    ck_assert_uint_eq(all->last[0].step, 0);
    (void)kill_and_train(2, 2, both);
}
END_TEST

static int count_lines(const char *name, const char *part)
{
    char line[512];
    int n = 0;
    FILE *file = open_file(name);
    while (fgets(line, sizeof(line), file) != NULL) {
        n += strstr(line, part) != NULL;
    }
    fclose(file);
    return n;
}

/* The one that holds the checkpoint has read it, whoever that is; rank 0 may have taken it. */
START_TEST(what_is_trained_again_is_said_once_where_a_newcomer_dies_as_it_takes)
{
    for (int holder = 0; holder < 2; holder++) {
        const struct kill kills[] = {{holder, IT_SAVES, 5},
                                     {0, AFTER_A_STEP, 11},
                                     {1, AFTER_A_STEP, 11},
                                     {2, AFTER_A_STEP, 11},
                                     {2, WHILE_IT_TAKES, 3}};
        (void)course_of(3);
        all->n_kills = MS_ARRAY_SIZE(kills);
        memcpy(all->kills, kills, sizeof(kills));
        (void)train_through(3);
        ck_assert_int_eq(count_lines("worker_0.log", "steps 6 to 10 are trained again"), 1);
        ck_assert_int_eq(count_lines("worker_0.log", "trained again"), 1);
        ck_assert_uint_eq(all->last[0].told, 10);
        clean();
    }
}
END_TEST

START_TEST(ranks_that_are_all_killed_go_on_from_the_newest_checkpoint_that_is_whole)
{
    const struct kill kills[] = {{1, IT_SAVES, 5},         {2, IT_SAVES, 4},
                                 {0, IT_SAVES_DAMAGED, 8}, {0, AFTER_A_STEP, 11},
                                 {1, AFTER_A_STEP, 11},    {2, AFTER_A_STEP, 11}};
    use_adam();

    (void)kill_and_train(3, 6, kills);

    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(all->last[i].step, 5);
        ck_assert_int_eq(all->last[i].state_from, MS_STATE_CHECKPOINT);
        ck_assert_int_eq(all->last[i].state_rank, 1);
        ck_assert_str_eq(all->first_tag[i],
                         "of rank 1"); /* whose training it is, they have as well */
    }
    ck_assert_int_eq(atomic_load(&all->n_notes), 1); /* the one of step 8 is passed over */
}
END_TEST

/* On another host than where they lie. */
START_TEST(ranks_that_are_all_killed_go_on_from_their_own_before_what_they_were_resumed_from)
{
    const struct kill kills[] = {{0, IT_WAS_RESUMED, 8}, {1, IT_SAVES, 4},
                                 {2, IT_SAVES, 5},       {0, AFTER_A_STEP, 11},
                                 {1, AFTER_A_STEP, 11},  {2, AFTER_A_STEP, 11}};
    (void)kill_and_train(3, 6, kills);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(all->last[i].step, 5);
        ck_assert_int_eq(all->last[i].state_rank, 2);
    }
}
END_TEST

/* Of one step a rank may have its own and one that it was resumed from. */
START_TEST(whole_checkpoint_is_taken_behind_damaged_ones_of_its_step)
{
    const struct kill kills[] = {
        {0, IT_SAVES_DAMAGED, 8}, {1, IT_SAVES, 8},      {1, IT_SAVES_DAMAGED, 8}, {2, IT_SAVES, 5},
        {0, AFTER_A_STEP, 11},    {1, AFTER_A_STEP, 11}, {2, AFTER_A_STEP, 11}};

    (void)kill_and_train(3, 7, kills);

    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(all->last[i].step, 8);
        ck_assert_int_eq(all->last[i].state_rank, 1);
    }
    ck_assert_int_eq(atomic_load(&all->n_notes), 2);
}
END_TEST

START_TEST(evaluation_that_is_owed_after_a_checkpoint_is_told_once)
{
    const struct kill kills[] = {{0, IT_SAVES, 10}, {0, AFTER_EVALUATION, 10}, {0, IN_A_STEP, 15}};

    (void)kill_and_train(1, 3, kills);
    ck_assert_uint_eq(all->last[0].step, 10);
}
END_TEST

static void take_saved(uint64_t step)
{
    struct checkpoint_manifest m;
    char path[128];
    snprintf(path, sizeof(path), "%s/ckpt/x-%d.json", all->dir, (int)step);
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    ck_ms_ok(checkpoint_verify(path, CHECKPOINT_OWN, &m, err));
    ck_assert_uint_eq(m.step, step);
    checkpoint_manifest_fini(&m);
    checkpoint_remove(path);
}

/* Killed, or held, after the commit and before the state was copied: nobody offers that step again.
 */
START_TEST(step_that_is_due_is_saved_by_the_rank_0_that_takes_it_from_another)
{
    static const struct kill cases[] = {{0, AFTER_A_STEP, STEPS},
                                        {0, AT_COMMIT, STEPS},
                                        {0, ITS_LINK_BREAKS, STEPS},
                                        {0, AT_COMMIT, 11}};
    (void)course_of(2);
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        saves_every = (int64_t)cases[i].when;
        (void)kill_and_train(2, 1, &cases[i]);
        take_saved(cases[i].when);
    }
}
END_TEST

/* They waited in the memory of the process that was killed, whose disk was full. */
START_TEST(lines_that_died_with_their_process_are_named_by_who_takes_its_place)
{
    static const struct kill kills[] = {{0, AT_COMMIT, 12},
                                        {0, IT_FINDS_NO_LINES, 2},
                                        {0, ITS_DISK_IS_FULL, 14},
                                        {0, AND_HAS_ROOM, 17}};
    static const char *const words[] = {
        "no metrics of steps 6 to 11 here: the process that had rank 0 before ended while they "
        "waited for room on the disk",
        "no loss lines of steps 6 to 12 here: the process that had rank 0 before ended while they "
        "waited for room on the disk",
        "no metrics from step 14 on: ",
        "metrics are written again: those of steps 6 to 11 are missing, as was said\n"};

    all->n_kills = MS_ARRAY_SIZE(kills);
    memcpy(all->kills, kills, sizeof(kills));
    open_case(2);
    (void)run_ranks();
    ranks_close(&all->ranks);

    for (size_t i = 0; i < MS_ARRAY_SIZE(words); i++) {
        ck_assert_msg(strstr(all->notes, words[i]) != NULL, "'%s' is not in: %s", words[i],
                      all->notes);
    }
    ck_assert_ptr_null(strstr(all->notes, "none is missing"));
    ck_assert_int_eq(count_lines("metrics.jsonl", "\"step\":12,"), 1); /* with its state */
    clean();
}
END_TEST

static void refuse(int world, int n, const struct kill *kills, const char *words)
{
    all->n_kills = n;
    memcpy(all->kills, kills, (size_t)n * sizeof(*kills));
    print_case(world);
    open_case(world);
    (void)run_ranks();
    ranks_close(&all->ranks);
    clean();
    for (int i = 0; i < world; i++) {
        ck_assert_int_lt(all->ends[i].code, 0);
        ck_assert_msg(strstr(all->ends[i].text, words) != NULL, "rank %d says: %s", i,
                      all->ends[i].text);
    }
}

START_TEST(ranks_of_one_step_with_other_weights_are_refused_by_name)
{
    const struct kill kills[] = {{1, ITS_MEMORY_ROTS, 6}, {3, AFTER_A_STEP, 6}};

    refuse(4, 2, kills, "rank 0 and rank 1 are at step 6, and their weights differ");
}
END_TEST

START_TEST(rank_that_is_further_behind_is_refused_by_name)
{
    const struct kill kills[] = {{1, IT_LOSES_TWO_STEPS, 6}};

    refuse(3, 1, kills, "rank 1 is at step 4 and rank 0 at step 6");
}
END_TEST

/* As numbers of a loader they would be negative, or those of a longer training. */
static const uint64_t claims[] = {(uint64_t)1 << 63, UINT64_MAX, (uint64_t)1 << 62, STEPS + 1};

static void refuse_claim(uint64_t claim, int n, const struct kill *kills, const char *what)
{
    char words[128];
    snprintf(words, sizeof(words),
             "rank 1 says that %s step %" PRIu64 ", and this job ends with step %d: ", what, claim,
             STEPS);
    all->claim = claim;
    refuse(3, n, kills, words);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(all->ends[i].code, MS_E_REFUSED);
    }
}

START_TEST(rank_at_a_step_behind_the_last_is_refused_by_name)
{
    const struct kill kills[] = {{1, IT_CLAIMS_A_STEP, 6}, {0, IN_A_STEP, 7}, {2, IN_A_STEP, 7}};

    for (size_t i = 0; i < MS_ARRAY_SIZE(claims); i++) {
        refuse_claim(claims[i], 3, kills, "it holds");
        refuse_claim(claims[i], 2, kills, "it holds"); /* rank 2 is at a step of its own */
    }
}
END_TEST

START_TEST(checkpoint_of_a_step_behind_the_last_is_refused_by_the_name_of_its_rank)
{
    const struct kill kills[] = {
        {1, IT_SAVES_A_CLAIM, 5}, {0, AFTER_A_STEP, 8}, {1, AFTER_A_STEP, 8}, {2, AFTER_A_STEP, 8}};

    for (size_t i = 0; i < MS_ARRAY_SIZE(claims); i++) {
        refuse_claim(claims[i], 4, kills, "its checkpoint is of");
    }
}
END_TEST

/* The scheduler may have asked nobody. */
START_TEST(rank_that_says_it_was_to_stop_is_named_by_those_who_stop_with_it)
{
    const struct kill kills[] = {{1, IT_CLAIMS_A_STOP, 6}, {2, IN_A_STEP, 7}};
    all->n_kills = 2;
    memcpy(all->kills, kills, sizeof(kills));
    open_case(3);
    (void)run_ranks();
    ranks_close(&all->ranks);

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(all->ends[i].code, 0);
        ck_assert_uint_eq(all->ends[i].steps, 6);
    }
    ck_assert_str_eq(all->notes,
                     "rank 1 says that a rank was asked to stop, and that step 6 is the "
                     "last one: the training ends with it here, too\n");
    clean();
}
END_TEST

/* It began anew for nobody who held more was there, and then somebody came back. */
START_TEST(rank_that_made_no_step_of_its_copy_takes_the_state_of_who_holds_more)
{
    for (int who = 0; who < 3; who += 2) {
        const struct kill kills[] = {{who, IT_HAS_A_COPY, 6}, {1, ITS_LINK_BREAKS, 12}};
        const struct kill last[] = {{who, IT_HAS_A_COPY, 6}};

        (void)kill_and_train(3, 2, kills);
        (void)kill_and_train(3, 1, last);
        ck_assert_int_eq(all->last[who].state_from, MS_STATE_PULLED);
        ck_assert_uint_ge(all->last[who].step, 5);
        ck_assert_int_eq(all->last[1].state_from, MS_STATE_KEPT);
    }
}
END_TEST

/* Nor of an older one: its next process reads this one. */
START_TEST(rank_that_lacks_what_reading_a_checkpoint_takes_does_not_begin_anew)
{
    const struct kill kills[] = {
        {0, IT_SAVES, 5}, {0, IT_SAVES, 8}, {0, AFTER_A_STEP, 11}, {0, IT_CANNOT_READ, 8}};

    refuse(1, 4, kills, "the checkpoint of step 8: no descriptor");
    ck_assert_int_eq(atomic_load(&all->n_notes), 0);
}
END_TEST

/* It is not the checkpoint's fault, and another one, or none, would be no better. */
START_TEST(rank_that_cannot_go_on_from_a_whole_checkpoint_does_not_begin_anew)
{
    const struct kill kills[] = {{0, IT_SAVES, 8}, {0, AFTER_A_STEP, 11}, {0, IT_HAS_NO_LOADER, 8}};

    refuse(1, 3, kills, "no thread for the loader");
    ck_assert_int_eq(atomic_load(&all->n_notes), 0);
}
END_TEST

/* What came to it is of a step at which it does not stand: it holds nothing, and takes it again. */
START_TEST(newcomer_that_is_held_before_it_stands_takes_the_state_again)
{
    const struct kill newcomer[] = {
        {1, AFTER_A_STEP, 9}, {1, IT_HAS_NO_LOADER, 9}, {1, AND_IS_HELD, 9}};
    const struct kill all_of_them[] = {{1, IT_SAVES, 8},         {0, AFTER_A_STEP, 11},
                                       {1, AFTER_A_STEP, 11},    {2, AFTER_A_STEP, 11},
                                       {1, IT_HAS_NO_LOADER, 8}, {1, AND_IS_HELD, 8}};

    (void)kill_and_train(3, 3, newcomer);
    ck_assert_int_eq(all->last[1].state_from, MS_STATE_PULLED);
    (void)kill_and_train(3, 6, all_of_them);
    ck_assert_int_eq(all->last[1].state_from, MS_STATE_CHECKPOINT);
}
END_TEST

/* It may be the only one that holds the training. */
START_TEST(survivor_that_is_short_of_memory_to_agree_tries_again)
{
    static const enum where places[] = {IT_HAS_NO_ROOM, IT_HAS_NO_DIGEST};
    for (size_t i = 0; i < MS_ARRAY_SIZE(places); i++) {
        const struct kill kills[] = {{1, AFTER_A_STEP, 9}, {0, places[i], 9}};
        const unsigned long long generations = kill_and_train(2, 2, kills);

        ck_assert_int_eq(atomic_load(&all->n_own), 0);
        ck_assert_uint_ge(generations, 3);
        ck_assert_int_eq(all->lives[0], 1);
        ck_assert_int_eq(all->lives[1], 2);
        ck_assert_int_eq(all->last[1].state_from, MS_STATE_PULLED);
    }
}
END_TEST

/* The others keep what they hold, and go on with the next one. */
START_TEST(newcomer_with_other_data_is_refused_and_the_next_one_takes_its_place)
{
    static const struct {
        struct kill kills[2];
        const char *words;
    } cases[] = {
        {{{1, AFTER_A_STEP, 5}, {1, IT_HAS_OTHER_DATA, 2}}, "dataset"},
        {{{0, IN_A_STEP, 15}, {0, IT_HAS_OTHER_DATA, 2}}, "where rank 1 is"},
        {{{2, AT_COMMIT, 7}, {2, IT_HAS_OTHER_TESTS, 2}}, "evaluate.dataset"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        const int who = cases[i].kills[0].who;
        (void)kill_and_train(3, 2, cases[i].kills);
        ck_assert_int_eq(all->lives[who], 3);
        ck_assert_msg(strstr(all->refusals[who], cases[i].words) != NULL, "rank %d says: %s", who,
                      all->refusals[who]);
    }
}
END_TEST

START_TEST(ranks_that_begin_have_the_data_of_rank_0_or_of_whose_checkpoint_it_is)
{
    static const struct kill first[] = {{2, IT_HAS_OTHER_DATA, 1}};
    static const struct kill again[] = {
        {1, IT_SAVES, 8}, {0, AFTER_A_STEP, 12}, {1, AFTER_A_STEP, 12}, {0, IT_HAS_OTHER_DATA, 2}};

    (void)kill_and_train(3, 1, first);
    ck_assert_ptr_nonnull(strstr(all->refusals[2], "where rank 0 is"));

    (void)kill_and_train(2, 4, again);
    ck_assert_ptr_nonnull(strstr(all->refusals[0], "where rank 1 is"));
}
END_TEST

/* Which rank's host has them is nobody's merit: all go on, or none does. */
START_TEST(what_lies_where_the_job_began_refuses_no_rank_of_one_that_has_saved_itself)
{
    for (int who = 0; who < 3; who++) {
        const struct kill kills[] = {{1, IT_SAVES, 8},
                                     {0, AFTER_A_STEP, 11},
                                     {1, AFTER_A_STEP, 11},
                                     {2, AFTER_A_STEP, 11},
                                     {who, IT_IS_REFUSED, 2}};

        (void)kill_and_train(3, MS_ARRAY_SIZE(kills), kills);

        for (int i = 0; i < 3; i++) {
            ck_assert_uint_eq(all->last[i].step, 8);
            ck_assert_int_eq(all->last[i].state_rank, 1);
            ck_assert_str_eq(all->refusals[i], "");
        }
    }
}
END_TEST

/* The others have nothing to say of it, and wait for the next one. */
START_TEST(what_lies_where_the_job_begins_refuses_it_by_the_rank_that_found_it)
{
    static const struct kill first[] = {{2, IT_IS_REFUSED, 1}};
    static const struct kill again[] = {{1, IT_SAVES_DAMAGED, 8},
                                        {0, AFTER_A_STEP, 11},
                                        {1, AFTER_A_STEP, 11},
                                        {2, AFTER_A_STEP, 11},
                                        {2, IT_IS_REFUSED, 2}};

    (void)kill_and_train(3, MS_ARRAY_SIZE(first), first);
    ck_assert_str_eq(all->refusals[2], "another training lies there");
    ck_assert_int_eq(all->lives[2], 2);

    (void)kill_and_train(3, MS_ARRAY_SIZE(again), again);
    ck_assert_str_eq(all->refusals[2], "another training lies there");
    ck_assert_int_eq(all->lives[2], 3);
    ck_assert_int_eq(all->lives[0] + all->lives[1], 4);
    ck_assert_int_eq(atomic_load(&all->n_own), 0);
}
END_TEST

START_TEST(undisturbed_ranks_say_nothing_to_each_other_but_their_sums)
{
    atomic_store(&all->n_calls, 0);
    all->n_kills = 0;

    ck_assert_uint_eq(train_through(3), 1);

    /* where they stand, that none has a checkpoint, the initial weights; then no more */
    ck_assert_int_eq(atomic_load(&all->n_calls), 3 * 3);
    ck_assert_int_eq(atomic_load(&all->n_joins), 3);
}
END_TEST

START_TEST(rank_that_trains_for_itself_says_no_digest)
{
    static const char *const modes[] = {"parallel.mode=data_parallel", "parallel.mode=stand_alone"};
    for (int i = 0; i < 2; i++) {
        struct train_info info;
        train_case_job(&all->job, &modes[i], 1);
        struct train_config cfg = train_case_config(&all->job, "");
        cfg.world = 1 + i;
        struct train *train = train_create(&cfg);
        ck_assert_ptr_nonnull(train);
        self.train = train;

        ck_ms_ok(train_prepare(train, &info, err));

        ck_assert_int_eq(info.has_digest, i == 0);
        ck_assert_uint_eq(info.step, 0);
        ck_assert_int_eq(info.state_from, MS_STATE_KEPT);
        train_destroy(train);
    }
}
END_TEST

/* It is rank 0 of a mesh of its own, and that of the job is somebody else. */
START_TEST(rank_that_trains_for_itself_and_is_short_blames_itself)
{
    const char *const mode = "parallel.mode=stand_alone";
    struct train_info info;
    struct ms_err why = {0, ""};
    train_case_job(&all->job, &mode, 1);
    struct train_config cfg = train_case_config(&all->job, "");
    cfg.rank = 1;
    cfg.world = 2;
    self.rank = 1;
    self.train = train_create(&cfg);
    ck_assert_ptr_nonnull(self.train);
    all->kills[0] = (struct kill){1, IT_HAS_NO_ROOM, 0};
    all->n_kills = 1;

    ck_assert_int_eq(train_prepare(self.train, &info, &why), MS_E_NOMEM);

    ck_assert_int_eq(train_culprit(self.train), 1);
    ck_assert_int_eq(train_is_of_mesh(self.train, MS_E_NOMEM), 1);
    train_destroy(self.train);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("agree");
    TCase *tc = tcase_create("agree");
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, newcomer_takes_the_place_of_a_rank_that_was_killed);
    tcase_add_test(tc, newcomer_gets_both_slots_of_adam);
    tcase_add_test(tc, newcomer_gets_the_average_of_the_weights);
    tcase_add_test(tc, newcomer_gets_all_slots_of_rmsprop_and_the_lengths_of_lamb);
    tcase_add_test(tc, newcomer_gets_moving_statistics_and_weights_with_padding);
    tcase_add_loop_test(tc, step_of_several_batches_begins_anew_with_its_first, 0, 2);
    tcase_add_test(tc, newcomer_comes_where_ranks_are_of_several_hosts);
    tcase_add_test(tc, newcomer_takes_part_in_the_evaluation_that_is_due);
    tcase_add_test(tc, what_an_evaluation_counts_is_told_whoever_dies);
    tcase_add_test(tc, best_weights_are_kept_whoever_dies);
    tcase_add_test(tc, best_weights_of_a_resumed_training_are_known_to_who_comes);
    tcase_add_test(tc, end_that_is_early_is_one_for_who_comes_behind_it);
    tcase_add_test(tc, rank_that_dies_before_it_joined_or_after_its_end_is_replaced);
    tcase_add_test(tc, several_newcomers_come_at_once);
    tcase_add_test(tc, source_or_newcomer_that_dies_in_the_middle_takes_nothing_with_it);
    tcase_add_test(tc, survivor_one_step_behind_takes_its_part_beside_a_newcomer);
    tcase_add_test(tc, evaluation_that_one_rank_knows_nothing_of_is_made_again_by_all);
    tcase_add_test(tc, ranks_that_are_all_killed_begin_again_and_tell_each_step_once);
    tcase_add_test(tc, what_is_trained_again_is_said_once_where_a_newcomer_dies_as_it_takes);
    tcase_add_test(tc, ranks_that_are_all_killed_go_on_from_the_newest_checkpoint_that_is_whole);
    tcase_add_test(
        tc, ranks_that_are_all_killed_go_on_from_their_own_before_what_they_were_resumed_from);
    tcase_add_test(tc, whole_checkpoint_is_taken_behind_damaged_ones_of_its_step);
    tcase_add_test(tc, rank_that_lacks_what_reading_a_checkpoint_takes_does_not_begin_anew);
    tcase_add_test(tc, evaluation_that_is_owed_after_a_checkpoint_is_told_once);
    tcase_add_test(tc, step_that_is_due_is_saved_by_the_rank_0_that_takes_it_from_another);
    tcase_add_test(tc, lines_that_died_with_their_process_are_named_by_who_takes_its_place);
    tcase_add_test(tc, ranks_of_one_step_with_other_weights_are_refused_by_name);
    tcase_add_test(tc, rank_that_is_further_behind_is_refused_by_name);
    tcase_add_test(tc, rank_at_a_step_behind_the_last_is_refused_by_name);
    tcase_add_test(tc, checkpoint_of_a_step_behind_the_last_is_refused_by_the_name_of_its_rank);
    tcase_add_test(tc, rank_that_says_it_was_to_stop_is_named_by_those_who_stop_with_it);
    tcase_add_test(tc, rank_that_made_no_step_of_its_copy_takes_the_state_of_who_holds_more);
    tcase_add_test(tc, rank_that_cannot_go_on_from_a_whole_checkpoint_does_not_begin_anew);
    tcase_add_test(tc, newcomer_that_is_held_before_it_stands_takes_the_state_again);
    tcase_add_test(tc, newcomer_with_other_data_is_refused_and_the_next_one_takes_its_place);
    tcase_add_test(tc, ranks_that_begin_have_the_data_of_rank_0_or_of_whose_checkpoint_it_is);
    tcase_add_test(tc, what_lies_where_the_job_began_refuses_no_rank_of_one_that_has_saved_itself);
    tcase_add_test(tc, what_lies_where_the_job_begins_refuses_it_by_the_rank_that_found_it);
    tcase_add_test(tc, undisturbed_ranks_say_nothing_to_each_other_but_their_sums);
    tcase_add_test(tc, rank_that_trains_for_itself_says_no_digest);
    tcase_add_test(tc, rank_that_trains_for_itself_and_is_short_blames_itself);
    suite_add_tcase(suite, tc);
    tc = tcase_create("short");
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, survivor_that_is_short_of_memory_to_agree_tries_again);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
