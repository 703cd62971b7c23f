/* test_worker_recovery.c - a whole worker whose job recovers, against a scheduler's end: rounds,
 * and waits without limit */
#include "tests/unit/worker_case.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of `msctl run`: one job, in one folder. */
static void begin_run(struct life *life, struct desk *desk)
{
    life->cfg.mode = WORKER_RUN;
    meet(desk, life);
}

/* The last word on a job that all have finished. */
static void release_all(struct desk *desk, uint64_t generation)
{
    Ms__Stop stop = MS__STOP__INIT;
    send_stop_as(desk, generation, stop);
}

/* Of a process that serves one job: after the last word it ends by itself. */
static void ends_with(struct life *life, struct desk *desk, int rc)
{
    until(desk, desk->n_leaves == 1 && desk->n_closed >= 1);
    ck_assert_int_eq(pthread_join(life->thread, NULL), 0);
    ck_assert_msg(life->rc == rc, "%d: %s", life->rc, life->err.text);
    desk_shut(desk);
}

/* A round, of which everybody is given the plan that was heard. */
static void send_round(struct desk *desk, uint64_t generation, uint32_t world, const char *json)
{
    plan_from = MS_PLAN_GIVEN;
    send_rank(desk, generation, world, json);
    send_plan(desk, generation, desk->plan);
}

static const struct { /* ends of the log's name, too */
    enum worker_mode mode;
    const char *log;
} modes[] = {{WORKER_RUN, "worker_0.log"}, {WORKER_STANDING, "7/worker_0.log"}};

START_TEST(assign_while_it_plans_begins_anew_in_the_same_process)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan(&desk, 3, JOB(1));

    hear_plan(&desk, 4, JOB(1)); /* before all had heard the first */
    send_plan(&desk, 4, desk.plan);
    until(&desk, desk.n_ready == 1);
    ck_assert_uint_eq(desk.ready_generation, 4);
    send_start(&desk, 4);
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 4);

    ck_assert_int_eq(desk.done[desk.n_done - 1].code, 0);
    ck_assert_int_eq(desk.n_registers, 1);
    release_all(&desk, 4);
    ends_with(&life, &desk, 0);
}
END_TEST

START_TEST(process_of_one_job_takes_another_rank_of_it)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan_of(&desk, 3, 2, JOB(2));

    assigned_rank = 1;
    send_rank(&desk, 4, 2, JOB(2));
    assigned_rank = 0;
    send_plan(&desk, 4, desk.plan);
    until(&desk, strstr(read_log_at("worker_1.log"), "plan: from rank 0, sha256 ") != NULL);

    send_stop(&desk, 4, 0);
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 4);
    ck_assert_int_eq(desk.n_plans, 1); /* it is not its part any more */
    ends_with(&life, &desk, MS_E_CANCELLED);
}
END_TEST

START_TEST(another_job_is_not_for_a_process_of_one_job)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan(&desk, 3, JOB(1));

    assigned_job = 8;
    send_rank(&desk, 4, 1, JOB(1));
    assigned_job = 7;
    until(&desk, desk.n_done == 1);

    ck_assert_uint_eq(desk.done[0].job, 8);
    ck_assert_int_eq(desk.done[0].code, MS_E_FULL);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    stop_rank(&desk, 3);
    ends_with(&life, &desk, MS_E_CANCELLED);
}
END_TEST

START_TEST(the_same_assign_twice_changes_nothing)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan(&desk, 3, JOB(1));

    send_rank(&desk, 3, 1, JOB(1));
    send_rank(&desk, 2, 1, JOB(1));
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    send_rank(&desk, 3, 1, JOB(1));
    send_start(&desk, 3);
    until(&desk, desk.n_done == 1);

    ck_assert_uint_eq(desk.done[0].generation, 3);
    ck_assert_int_eq(desk.done[0].code, 0);
    ck_assert_int_eq(desk.n_plans, 1);
    send_rank(&desk, 3, 1, JOB(1));
    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
}
END_TEST

/* Waits for the other rank, which nobody started: its plan is made. */
static void join_alone(struct desk *desk, uint64_t generation, const char *log)
{
    hear_plan_of(desk, generation, 2, JOB(2));
    send_plan(desk, generation, desk->plan);
    until(desk, strstr(read_log_at(log), "plan: chosen here, sha256 ") != NULL);
}

START_TEST(rank_that_waits_for_its_peers_goes_on_with_the_plan_that_it_has)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.mode = modes[_i].mode}};
    meet(&desk, &life);
    join_alone(&desk, 3, modes[_i].log);

    send_round(&desk, 4, 2, JOB(2));
    send_round(&desk, 5, 2, JOB(2)); /* and before he may have come back */
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    stop_rank(&desk, 5);

    ck_assert_int_eq(desk.n_done, 1); /* nothing was given up */
    ck_assert_uint_eq(desk.done[0].generation, 5);
    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);
    ck_assert_int_eq(desk.n_plans, 1);
    if (modes[_i].mode == WORKER_RUN) {
        ends_with(&life, &desk, MS_E_CANCELLED);
    } else {
        end(&life, &desk);
    }
}
END_TEST

START_TEST(round_with_another_plan_fails_a_rank_that_obeys_one_already)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    join_alone(&desk, 3, "worker_0.log");

    plan_from = MS_PLAN_GIVEN;
    send_rank(&desk, 4, 2, JOB(2));
    send_plan(&desk, 4, "another one");
    until(&desk, desk.n_done == 1);

    ck_assert_uint_eq(desk.done[0].generation, 4);
    ck_assert_int_eq(desk.done[0].code, MS_E_PROTOCOL);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "two plans that differ"));
    send_stop(&desk, 4, 0);
    ends_with(&life, &desk, MS_E_FAILED);
}
END_TEST

START_TEST(rank_that_waits_for_start_goes_on_and_trains)
{
    struct desk desk;
    struct life life = {.rc = 1};
    char undisturbed[MS_SHA256_HEX];
    train_long(0, undisturbed);
    begin_run(&life, &desk);
    hear_plan(&desk, 3, LONG_JOB);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);

    send_round(&desk, 4, 1, LONG_JOB);
    until(&desk, desk.n_ready == 2);
    send_start(&desk, 4);
    until(&desk, desk.n_done == 1);

    ck_assert_uint_eq(desk.done[0].generation, 4);
    ck_assert_str_eq(desk.done[0].weights, undisturbed);
    ck_assert_int_eq(desk.n_plans, 1);
    release_all(&desk, 4);
    ends_with(&life, &desk, 0);
}
END_TEST

/* What is told each 200 ms else: the scheduler counts losses with no step in between. */
START_TEST(first_step_of_a_round_is_told_at_once)
{
    static const char job[] =
        "{\"name\": \"x\", \"workers\": 1, \"network\": \"linear\", \"dataset\": {\"kind\": "
        "\"nonlinear\", \"samples\": 160000}, \"batch_size\": 16, \"epochs\": 100, \"loss\": "
        "\"mse\", \"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}}";
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan(&desk, 3, job);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    send_start(&desk, 3);
    until(&desk, desk.first_step > 0);

    send_round(&desk, 4, 1, job);
    until(&desk, desk.n_ready == 2);
    send_start(&desk, 4);
    until(&desk, desk.first_step > 0);

    ck_assert_uint_gt(desk.ready_step, 0);
    ck_assert_uint_eq(desk.first_step, desk.ready_step + 1);
    stop_rank(&desk, 4);
    ends_with(&life, &desk, MS_E_CANCELLED);
}
END_TEST

/* Away until told otherwise. */
static void go_away(struct desk *desk)
{
    event_del(desk->listen_event);
    ms_conn_destroy(desk->conn);
    desk->conn = NULL;
}

START_TEST(rank_that_lost_a_peer_is_held_without_limit_and_says_for_what)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.peer_timeout_ms = 200}};
    begin_run(&life, &desk);
    join_alone(&desk, 3, "worker_0.log");
    until(&desk, desk.n_reports == 1);
    ck_assert_uint_eq(desk.report_generation, 3);
    ck_assert_uint_eq(desk.report_peer, 1);

    until(&desk,
          strstr(read_log_at("worker_0.log"),
                 "rank 0 holds, and waits for a node to take the rank that is gone ") != NULL);
    go_away(&desk);
    until(&desk, strstr(read_log_at("worker_0.log"), ", which is away") != NULL);
    event_add(desk.listen_event, NULL);
    until(&desk, desk.n_reports == 2); /* once more, to whoever is there now */
    ck_assert_int_eq(desk.n_done, 0);

    send_round(&desk, 4, 2, JOB(2)); /* whose rank 1 does not come either */
    until(&desk, desk.n_reports == 3);
    ck_assert_uint_eq(desk.report_generation, 4);
    ck_assert_int_eq(desk.n_done, 0);
    stop_rank(&desk, 4);
    ck_assert_uint_eq(desk.done[0].generation, 4);
    ends_with(&life, &desk, MS_E_CANCELLED);
}
END_TEST

/* Who trained, and waits for the last word. */
static void finish_long(struct desk *desk)
{
    send_rank(desk, 3, 1, LONG_JOB);
    until(desk, desk->n_ready == 1);
    send_start(desk, 3);
    until(desk, desk->n_done == 1);
    ck_assert_msg(desk->done[0].code == 0, "%s", desk->done[0].text);
}

/* Nobody lets go of a state before all have confirmed the last step. */
START_TEST(rank_that_is_done_is_in_hand_until_the_last_word)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    finish_long(&desk);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats > beats + 1);
    ck_assert_uint_eq(desk.last_job, 7);

    desk.refuse = MS_E_FOREIGN; /* a scheduler that is not its own does not end it */
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    until(&desk, desk.n_registers >= 3);
    desk.refuse = 0;
    until(&desk, desk.n_done == 2);

    ck_assert_uint_eq(desk.last_generation, 3);
    ck_assert_int_ne(desk.last_running, 0);
    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
}
END_TEST

/* A stop after the step becomes a hard one where the trainer does not end it in time: he did. */
START_TEST(rank_that_stopped_has_time_to_wait_for_the_others)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.grace_ms = 300}};
    begin_run(&life, &desk);
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.n_ready == 1);
    send_stop(&desk, 3, 1);
    send_start(&desk, 3);
    until(&desk, desk.n_done > 0);
    send_stop(&desk, 3, 1);
    int beats = desk.n_beats;
    until(&desk, desk.n_beats >= beats + 40);
    ck_assert_int_eq(desk.n_leaves, 0);

    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
}
END_TEST

static void ends_alone(struct life *life, struct desk *desk)
{
    go_away(desk);
    ck_assert_int_eq(pthread_join(life->thread, NULL), 0);
    ck_assert_int_eq(life->rc, MS_E_UNREACHABLE);
    ck_assert_msg(strstr(life->err.text, "rank 0 of job 7 does nothing more without") != NULL, "%s",
                  life->err.text);
    desk_shut(desk);
}

START_TEST(rank_that_is_done_waits_for_its_scheduler_so_long)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.word_ms = 400}};
    begin_run(&life, &desk);
    finish_long(&desk);
    ends_alone(&life, &desk);
}
END_TEST

/* Which another rank was to choose: it has nothing to say itself. */
START_TEST(rank_that_waits_for_a_plan_waits_for_its_scheduler_so_long)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.word_ms = 400}};
    begin_run(&life, &desk);
    plan_from = MS_PLAN_GIVEN;
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.last_job == 7);
    ends_alone(&life, &desk);
}
END_TEST

/* All that are open stay; returns what was allowed. */
static struct rlimit take_descriptors_away(void)
{
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = STDERR_FILENO + 1, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

START_TEST(rank_that_lacks_descriptors_for_a_round_keeps_its_state_and_says_so)
{
    struct desk desk;
    struct life life = {.rc = 1};
    char undisturbed[MS_SHA256_HEX];
    train_long(0, undisturbed);
    begin_run(&life, &desk);
    hear_plan(&desk, 3, LONG_JOB);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);

    struct rlimit enough = take_descriptors_away();
    send_start(&desk, 3);
    send_round(&desk, 4, 1, LONG_JOB);
    until(&desk, desk.n_reports == 1 || desk.n_done > 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &enough), 0);
    ck_assert_msg(desk.n_done == 0, "%s", desk.done[0].text);
    ck_assert_uint_eq(desk.report_generation, 4);
    ck_assert_uint_eq(desk.report_peer, 0); /* itself */
    until(&desk,
          strstr(read_log_at("worker_0.log"),
                 "rank 0 holds what it has, and waits until the scheduler lets it try again: "
                 "cannot make an eventfd") != NULL);

    send_round(&desk, 5, 1, LONG_JOB);
    until(&desk, desk.n_ready == 2);
    send_start(&desk, 5);
    until(&desk, desk.n_done == 1);
    ck_assert_str_eq(desk.done[0].weights, undisturbed);
    release_all(&desk, 5);
    ends_with(&life, &desk, 0);
}
END_TEST

START_TEST(without_recovery_a_rank_that_lost_a_peer_ends_by_itself)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.peer_timeout_ms = 200}};
    static const char json[] =
        "{\"name\": \"x\", \"workers\": 2, \"network\": \"linear\", \"dataset\": {\"kind\": "
        "\"nonlinear\", \"samples\": 64}, \"batch_size\": 16, \"epochs\": 1, \"loss\": \"mse\", "
        "\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}, \"recovery\": false}";
    begin_run(&life, &desk);
    send_rank(&desk, 3, 2, json);
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.n_reports, 1);
    ck_assert_int_eq(desk.done[0].code, MS_E_TIMEOUT);
    send_stop(&desk, 3, 0);
    ends_with(&life, &desk, MS_E_FAILED);
}
END_TEST

static int is_there(const char *pattern)
{
    char path[128];
    glob_t found;
    snprintf(path, sizeof(path), "%s/%s", jobs_dir, pattern);
    const int is = glob(path, 0, NULL, &found) == 0;
    globfree(&found);
    return is;
}

START_TEST(term_ends_a_rank_that_holds)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.peer_timeout_ms = 200}};
    begin_run(&life, &desk);
    join_alone(&desk, 3, "worker_0.log");
    until(&desk, desk.n_reports == 1);

    worker_leave(SIGTERM);
    until(&desk, desk.n_done == 1);

    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);
    ck_assert_int_ne(desk.done[0].leaving, 0);
    ck_assert_str_eq(desk.done[0].text, "its worker was asked to end by signal 15 (Terminated)");
    ends_with(&life, &desk, MS_E_CANCELLED);
    ck_assert_str_eq(desk.farewell,
                     "the worker process was asked to end by signal 15 (Terminated)");
}
END_TEST

/* `msctl run` gives up: with its workers goes all that was trained. */
START_TEST(term_without_a_scheduler_saves_what_is_held)
{
    static const char endless[] =
        "{\"name\": \"x\", \"workers\": 1, \"network\": \"linear\", \"dataset\": {\"kind\": "
        "\"nonlinear\", \"samples\": 64}, \"batch_size\": 16, \"epochs\": 1000000, \"loss\": "
        "\"mse\", \"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}, "
        "\"checkpoint\": {\"directory\": \"kept\", \"every_steps\": 1000000}}";
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    send_rank(&desk, 3, 1, endless);
    until(&desk, desk.n_ready == 1);
    send_start(&desk, 3);
    until(&desk, desk.last_step > 10);
    desk.refuse = MS_E_FOREIGN; /* it is away: whoever is in its place knows nothing of the job */
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    until(&desk, desk.n_registers >= 3);

    worker_leave(SIGTERM);
    ck_assert_int_eq(pthread_join(life.thread, NULL), 0);

    ck_assert_msg(life.rc == 0, "%s", life.err.text);
    ck_assert_int_eq(is_there("weights.safetensors"), 1);
    ck_assert_int_eq(is_there("kept/*.json"), 1);
    desk_shut(&desk);
}
END_TEST

/* A folder in the place of the weights, as good as a full disk: all steps are made, and the rank
 * waits for the last word. */
static void waits_for_room(struct desk *desk, struct life *life, const char *json)
{
    begin_run(life, desk);
    send_rank(desk, 3, assigned_rank + 1, json);
    until(desk, desk->n_ready == 1);
    send_start(desk, 3);
    until(desk, desk->n_done == 1);
}

static void forget_log(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/worker_0.log", jobs_dir);
    ck_assert_int_eq(unlink(path), 0);
}

static void block(char path[128])
{
    snprintf(path, 128, "%s/weights.safetensors", jobs_dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

/* Nobody is there who would ask it again. */
START_TEST(rank_that_could_not_save_tries_again_before_it_ends)
{
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        char path[128];
        struct desk desk;
        struct life life = {.rc = 1, .cfg = {.word_ms = is_asked ? -1 : 400}};
        block(path);
        waits_for_room(&desk, &life, LONG_JOB);
        ck_assert_int_eq(desk.done[0].code, MS_E_IO);
        ck_assert_int_eq(rmdir(path), 0);

        go_away(&desk);
        if (is_asked) {
            worker_leave(SIGTERM);
        }
        ck_assert_int_eq(pthread_join(life.thread, NULL), 0);

        ck_assert_int_eq(life.rc, is_asked ? MS_E_CANCELLED : MS_E_UNREACHABLE);
        ck_assert_int_eq(is_there("weights.safetensors"), 1);
        ck_assert_ptr_nonnull(strstr(read_log_at("worker_0.log"), "the last, are saved: "));
        ck_assert_int_eq(unlink(path), 0);
        forget_log();
        desk_shut(&desk);
    }
}
END_TEST

/* Another rank saved them. */
START_TEST(rank_that_could_not_save_and_hears_the_last_word_does_not)
{
    char path[128];
    struct desk desk;
    struct life life = {.rc = 1};
    block(path);
    waits_for_room(&desk, &life, LONG_JOB);
    ck_assert_int_eq(rmdir(path), 0);
    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
    ck_assert_int_eq(is_there("weights.safetensors"), 0);
}
END_TEST

/* The disk of a folder may have room but once: it is for rank 0, or the last one that is there.
 * That it is one of two the scheduler says, and no other one is here to connect to. */
START_TEST(rank_that_shares_a_folder_leaves_the_weights_to_who_is_there_still)
{
    static const char alone[] =
        "{\"name\": \"x\", \"workers\": 1, \"network\": \"linear\", \"dataset\": {\"kind\": "
        "\"nonlinear\", \"samples\": 64}, \"batch_size\": 16, \"epochs\": 1, \"loss\": \"mse\", "
        "\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}, "
        "\"parallel\": {\"mode\": \"stand_alone\"}}";
    assigned_rank = 1;
    for (int is_last = 0; is_last < 2; is_last++) {
        char path[128];
        struct desk desk;
        struct life life = {.rc = 1};
        Ms__Stop stop = MS__STOP__INIT;
        int other = open(jobs_dir, O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(flock(other, LOCK_SH), 0);
        block(path);
        waits_for_room(&desk, &life, alone);
        stop.text = NULL;
        stop.at_step = stop.saves = desk.saves_late = 1;
        send_stop_as(&desk, 3, stop);
        until(&desk, desk.n_done > 1 && desk.done[desk.n_done - 1].code == MS_E_IO);
        ck_assert_int_eq(rmdir(path), 0);
        if (is_last) {
            close(other);
        }

        go_away(&desk);
        worker_leave(SIGTERM);
        ck_assert_int_eq(pthread_join(life.thread, NULL), 0);

        ck_assert_int_eq(is_there("weights.safetensors"), is_last);
        ck_assert_ptr_nonnull(
            strstr(read_log_at("worker_1.log"),
                   is_last ? "the last, are saved: " : "another rank is in this folder still"));
        if (!is_last) {
            close(other);
        }
        desk_shut(&desk);
    }
    assigned_rank = 0;
}
END_TEST

static void send_no_step_follows(struct desk *desk, uint64_t generation)
{
    Ms__Stop stop = MS__STOP__INIT;
    stop.text = NULL;
    stop.at_step = stop.stands = 1;
    send_stop_as(desk, generation, stop);
}

START_TEST(rank_that_waits_for_a_start_that_never_comes_stops_at_once)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    hear_plan(&desk, 3, LONG_JOB);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);

    send_stop(&desk, 3, 1);
    send_no_step_follows(&desk, 3);
    until(&desk, desk.n_done == 1);
    ck_assert_int_eq(desk.done[0].code, 0);
    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
}
END_TEST

/* Its peers are waited for no longer: within its step's patience nothing would be heard. */
START_TEST(rank_that_waits_for_its_peers_in_vain_stops_at_once)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    join_alone(&desk, 3, "worker_0.log");

    send_no_step_follows(&desk, 3);
    until(&desk, desk.n_done == 1);
    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);
    ends_with(&life, &desk, MS_E_CANCELLED);
}
END_TEST

/* Rank 0, which was to save, turned out to be lost: this one has ended, and has all that it needs.
 */
START_TEST(rank_that_has_stopped_saves_if_it_is_asked_to_after_its_end)
{
    struct desk desk;
    struct life life = {.rc = 1};
    begin_run(&life, &desk);
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.n_ready == 1);
    send_stop(&desk, 3, 1);
    send_start(&desk, 3);
    until(&desk, desk.n_done == 1);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "but the weights of step 1:"));

    Ms__Stop stop = MS__STOP__INIT;
    stop.text = NULL;
    stop.at_step = stop.saves = desk.saves_late = 1;
    send_stop_as(&desk, 3, stop);
    until(&desk, desk.n_done > 1);

    ck_assert_int_eq(desk.done[desk.n_done - 1].code, 0);
    ck_assert_str_eq(desk.done[desk.n_done - 1].weights, desk.done[0].weights);
    ck_assert_ptr_nonnull(strstr(desk.done[desk.n_done - 1].text, "but the weights of step 1:"));
    release_all(&desk, 3);
    ends_with(&life, &desk, 0);
}
END_TEST

/* It stood still, and somebody else has its rank. */
static void send_somebody_else(struct desk *desk, uint64_t generation)
{
    char text[] = "job 7 runs in generation 4 without this process";
    Ms__Stop stop = MS__STOP__INIT;
    stop.code = MS_E_ABORTED;
    stop.text = text;
    send_stop_as(desk, generation, stop);
}

START_TEST(process_whose_rank_is_somebody_elses_ends_or_is_idle_again)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.mode = modes[_i].mode}};
    meet(&desk, &life);
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.n_ready == 1);
    send_start(&desk, 3);
    ms_conn_destroy(desk.conn);
    desk.conn = NULL;
    until(&desk, desk.n_registers == 2);

    send_somebody_else(&desk, 3);
    until(&desk, desk.n_done > 0);

    if (modes[_i].mode == WORKER_RUN) {
        ends_with(&life, &desk, MS_E_FAILED);
        ck_assert_str_eq(life.err.text, "job 7 runs in generation 4 without this process");
        return;
    }
    send_rank(&desk, 5, 1, JOB(1)); /* of which it is one */
    until(&desk, desk.n_ready == 2);
    stop_rank(&desk, 5);
    end(&life, &desk);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_recovery");
    TCase *tc = tcase_create("worker_recovery");
    const int n_modes = (int)MS_ARRAY_SIZE(modes);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, assign_while_it_plans_begins_anew_in_the_same_process);
    tcase_add_test(tc, process_of_one_job_takes_another_rank_of_it);
    tcase_add_test(tc, another_job_is_not_for_a_process_of_one_job);
    tcase_add_test(tc, the_same_assign_twice_changes_nothing);
    tcase_add_loop_test(tc, rank_that_waits_for_its_peers_goes_on_with_the_plan_that_it_has, 0,
                        n_modes);
    tcase_add_test(tc, round_with_another_plan_fails_a_rank_that_obeys_one_already);
    tcase_add_test(tc, rank_that_waits_for_start_goes_on_and_trains);
    tcase_add_test(tc, first_step_of_a_round_is_told_at_once);
    tcase_add_test(tc, rank_that_lost_a_peer_is_held_without_limit_and_says_for_what);
    tcase_add_test(tc, rank_that_is_done_is_in_hand_until_the_last_word);
    tcase_add_test(tc, rank_that_stopped_has_time_to_wait_for_the_others);
    tcase_add_test(tc, rank_that_is_done_waits_for_its_scheduler_so_long);
    tcase_add_test(tc, rank_that_waits_for_a_plan_waits_for_its_scheduler_so_long);
    tcase_add_test(tc, rank_that_lacks_descriptors_for_a_round_keeps_its_state_and_says_so);
    tcase_add_test(tc, without_recovery_a_rank_that_lost_a_peer_ends_by_itself);
    tcase_add_test(tc, term_ends_a_rank_that_holds);
    tcase_add_test(tc, term_without_a_scheduler_saves_what_is_held);
    tcase_add_test(tc, rank_that_could_not_save_tries_again_before_it_ends);
    tcase_add_test(tc, rank_that_could_not_save_and_hears_the_last_word_does_not);
    tcase_add_test(tc, rank_that_shares_a_folder_leaves_the_weights_to_who_is_there_still);
    tcase_add_test(tc, rank_that_waits_for_a_start_that_never_comes_stops_at_once);
    tcase_add_test(tc, rank_that_waits_for_its_peers_in_vain_stops_at_once);
    tcase_add_test(tc, rank_that_has_stopped_saves_if_it_is_asked_to_after_its_end);
    tcase_add_loop_test(tc, process_whose_rank_is_somebody_elses_ends_or_is_idle_again, 0, n_modes);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
