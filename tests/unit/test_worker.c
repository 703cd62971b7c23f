/* test_worker.c - a whole worker against a scheduler's end: orders that cross, certificates */
#include "tests/unit/worker_case.h"

#include <stdatomic.h>
#include <sys/stat.h>

/* oneDNN is fixed for the life of a process: the desk must know before it gives the node a rank. */
START_TEST(worker_that_served_with_another_instruction_set_leaves_to_begin_anew)
{
    struct desk desk;
    struct life life = {.rc = -1};
    if (strcmp(plan_isa(), "sse41") == 0 || strcmp(plan_isa(), "other") == 0) {
        return; /* there is none */
    }
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    send_rank(&desk, 1, 1, JOB(1));
    until(&desk, desk.n_ready == 1);
    send_stop(&desk, 1, 0);
    until(&desk, desk.n_done == 1);
    ck_assert(!desk.done[0].leaving); /* who waited for that end comes for the results */

    least_isa = "sse41";
    send_rank(&desk, 2, 1, JOB(1));
    least_isa = NULL;
    until(&desk, desk.n_done == 2);
    ck_assert(desk.done[1].leaving);
    ck_assert_int_eq(desk.done[1].code, MS_E_REFUSED);
    send_stop(&desk, 2, 0);
    until(&desk, desk.n_leaves == 1 && desk.n_closed >= 1);
    ck_assert_int_eq(pthread_join(life.thread, NULL), 0);
    ck_assert_int_eq(life.rc, WORKER_ANEW);
    ck_assert_int_eq(desk.returns, 1);
    desk_shut(&desk);
}
END_TEST

START_TEST(certificates_that_come_while_it_starts_are_its_first_ones)
{
    struct desk desk;
    struct life life = {.rc = 1};
    struct ms_ca *ours = NULL;
    struct ms_ca *foreign = NULL;
    const char *dir = jobs_dir;
    desk_open(&desk);
    ck_ms_ok(ms_ca_create("ours", 1, &ours, err));
    ck_ms_ok(ms_ca_create("foreign", 1, &foreign, err));
    desk.tls = desk_issue(ours, dir, MS_ROLE_SCHEDULER, "head");
    SSL_CTX *bad = desk_issue(foreign, dir, MS_ROLE_WORKER, "w1");
    SSL_CTX *good = desk_issue(ours, dir, MS_ROLE_WORKER, "w1");
    life.cfg.tls = bad;

    worker_set_tls(good); /* nobody lives yet */
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1 || desk.n_closed >= 2);

    ck_assert_int_eq(desk.n_closed, 0);
    ck_assert_int_eq(desk.n_registers, 1);
    end(&life, &desk);
    SSL_CTX_free(bad);
    SSL_CTX_free(good);
    ms_ca_destroy(ours);
    ms_ca_destroy(foreign);
}
END_TEST

START_TEST(a_stop_for_nobody_does_not_stop_the_next_rank)
{
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);

    send_stop(&desk, 0, 0); /* whatever it holds: nothing */
    send_rank(&desk, 3, 1, JOB(1));
    until(&desk, desk.n_ready + desk.n_done == 1);

    ck_assert_msg(desk.n_ready == 1, "the rank ended at once: %s", desk.done[0].text);
    send_stop(&desk, 0, 0); /* and now it is that rank */
    until(&desk, desk.n_done == 1);
    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);
    end(&life, &desk);
}
END_TEST

/* Another database counts from 1 again. */
START_TEST(the_same_generation_of_another_job_is_another_rank)
{
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    send_rank(&desk, 3, 1, JOB(1));
    until(&desk, desk.n_ready == 1);
    send_stop(&desk, 3, 0);
    until(&desk, desk.n_done == 1 && desk.last_job == 0);

    assigned_job = 8;
    send_rank(&desk, 3, 1, JOB(1));
    assigned_job = 7;
    until(&desk, desk.n_ready == 2);
    send_stop(&desk, 0, 0);
    until(&desk, desk.n_done == 2);

    ck_assert_uint_eq(desk.done[0].job, 7);
    ck_assert_uint_eq(desk.done[1].job, 8);
    end(&life, &desk);
}
END_TEST

START_TEST(an_assign_in_the_place_of_a_stop_ends_the_rank_in_hand_and_is_served)
{
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);

    send_rank(&desk, 3, 2, JOB(2)); /* its peer never comes: it would wait for a minute */
    send_rank(&desk, 4, 1, "{}");
    until(&desk, desk.n_done >= 2 || desk.done[0].generation == 4);

    ck_assert_uint_eq(desk.done[0].generation, 3);
    ck_assert_int_eq(desk.done[0].code, MS_E_ABORTED);
    ck_assert_msg(strstr(desk.done[0].text, "had let go of rank 0") != NULL, "says: \"%s\"",
                  desk.done[0].text);
    ck_assert_uint_eq(desk.done[1].generation, 4); /* and the next one is served */
    send_stop(&desk, 4, 0);
    end(&life, &desk);
}
END_TEST

/* Its last word and the Assign of a round cross: it is said again, of that generation, or nobody
 * would listen to it. */
START_TEST(a_failure_that_no_stop_has_answered_is_said_of_the_next_generation)
{
    struct desk desk;
    struct life life = {.rc = 1};
    meet(&desk, &life);
    plan_from = MS_PLAN_GIVEN;
    send_rank(&desk, 3, 1, JOB(1));
    send_plan(&desk, 3, "no plan at all");
    until(&desk, desk.n_done == 1);
    ck_assert_int_ne(desk.done[0].code, 0);

    send_rank(&desk, 4, 1, JOB(1));
    until(&desk, desk.n_done == 2);
    ck_assert_uint_eq(desk.done[1].generation, 4);
    ck_assert_int_eq(desk.done[1].code, desk.done[0].code);
    ck_assert_str_eq(desk.done[1].text, desk.done[0].text);
    ck_assert_uint_eq(desk.last_step, 0); /* nor does it claim what is lost */

    send_stop(&desk, 4, 0);
    until(&desk, desk.last_job == 0);
    plan_from = MS_PLAN_OWN;
    send_rank(&desk, 5, 1, JOB(1)); /* what was heard is no hindrance */
    until(&desk, desk.n_ready == 1);
    ck_assert_int_eq(desk.n_done, 2);
    stop_rank(&desk, 5);
    end(&life, &desk);
}
END_TEST

/* Of a process that was frozen, say: all that was sent to it meanwhile comes at once. */
START_TEST(many_generations_at_once_of_a_rank_that_fails_before_it_begins)
{
    struct desk desk;
    struct life life = {.rc = 1};
    uint64_t generation = 3;
    meet(&desk, &life);
    for (int burst = 0; burst < 30; burst++) {
        for (int i = 0; i < 50; i++) {
            send_rank(&desk, generation++, 1, "{}");
        }
        desk.n_done = 0;
        until(&desk, desk.n_done > 0);
        send_stop(&desk, generation - 1, 0);
    }
    send_rank(&desk, generation, 1, JOB(1));
    until(&desk, desk.n_ready == 1);
    stop_rank(&desk, generation);
    end(&life, &desk);
}
END_TEST

/* Where it is when the next generation comes is left to chance: in a step, between two, or done. */
START_TEST(rank_that_is_given_again_goes_on_with_the_weights_that_it_has)
{
    char undisturbed[MS_SHA256_HEX];
    char gone_on[MS_SHA256_HEX];
    train_long(0, undisturbed);
    train_long(3, gone_on);
    ck_assert_uint_eq(strlen(undisturbed), MS_SHA256_HEX - 1);
    ck_assert_str_eq(gone_on, undisturbed);
}
END_TEST

/* The trainer waits: he may not have begun with the first when the second is there. */
/* Their data may be other ones. */
START_TEST(weights_of_a_rank_that_trains_for_itself_are_its_own)
{
    static const char job[] =
        "{\"name\": \"x\", \"workers\": 2, \"network\": \"linear\", \"dataset\": {\"kind\": "
        "\"nonlinear\", \"samples\": 64}, \"batch_size\": 16, \"epochs\": 1, \"loss\": \"mse\", "
        "\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 0.0001}, "
        "\"parallel\": {\"mode\": \"stand_alone\"}}";
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const int n_done = desk.n_done;
        assigned_rank = rank;
        send_rank(&desk, 3 + rank, 2, job);
        until(&desk, desk.n_ready == 1 + (int)rank);
        send_start(&desk, 3 + rank);
        until(&desk, desk.n_done > n_done);
        ck_assert_msg(desk.done[n_done].code == 0, "%s", desk.done[n_done].text);
        ck_assert_uint_eq(strlen(desk.done[n_done].weights), rank == 0 ? 64 : 0);
        send_stop(&desk, 3 + rank, 0);
        until(&desk, desk.last_job == 0);
    }
    assigned_rank = 0;
    end(&life, &desk);
}
END_TEST

START_TEST(two_generations_that_come_at_once_are_one_to_go_on_with)
{
    struct desk desk;
    struct life life = {.rc = 1};
    char undisturbed[MS_SHA256_HEX];
    train_long(0, undisturbed);
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.n_ready == 1);
    send_start(&desk, 3);
    send_rank(&desk, 4, 1, LONG_JOB);
    until(&desk, desk.ready_generation == 4);

    send_rank(&desk, 5, 1, LONG_JOB);
    send_rank(&desk, 6, 1, LONG_JOB);
    until(&desk, desk.ready_generation == 6);
    send_start(&desk, 6);
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 6);

    ck_assert_str_eq(desk.done[desk.n_done - 1].weights, undisturbed);
    send_stop(&desk, 6, 0);
    end(&life, &desk);
}
END_TEST

static atomic_int hangs;

static void on_hang(const char *text)
{
    (void)text;
    atomic_fetch_add(&hangs, 1);
}

START_TEST(rank_that_goes_on_has_no_grace_of_the_generation_before)
{
    struct desk desk;
    struct life life = {.rc = 1, .cfg = {.grace_ms = 500, .on_hang = on_hang}};
    atomic_store(&hangs, 0);
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    send_rank(&desk, 3, 1, LONG_JOB);
    until(&desk, desk.n_ready == 1);
    send_start(&desk, 3);

    send_stop(&desk, 3, 1);
    send_rank(&desk, 4, 1, LONG_JOB);
    until(&desk, desk.n_ready == 2);
    int beats = desk.n_beats;
    until(&desk,
          desk.n_beats >= beats + 80); /* more than the time after the step and the hard one */

    ck_assert_int_eq(atomic_load(&hangs), 0);
    send_stop(&desk, 4, 0);
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 4);
    end(&life, &desk);
}
END_TEST

/* ---- the plan that travels ---- */

/* Its heartbeats come, and it is where it was. */
static void waits_on(struct desk *desk)
{
    int n_ready = desk->n_ready;
    int n_beats = desk->n_beats;
    until(desk, desk->n_beats > n_beats + 1);
    ck_assert_int_eq(desk->n_ready, n_ready);
    ck_assert_int_eq(desk->n_done, 0);
}

/* The next rank is given the plan; what its end says. */
static const char *end_with_plan(struct desk *desk, uint64_t generation, const char *text)
{
    int n = desk->n_done;
    plan_from = MS_PLAN_GIVEN;
    send_rank(desk, generation, 1, JOB(1));
    send_plan(desk, generation, text);
    until(desk, desk->n_done > n || desk->ready_generation == generation);
    ck_assert_int_gt(desk->n_done, n);
    send_stop(desk, generation, 0);
    return desk->done[n].text;
}

START_TEST(rank_0_says_its_plan_and_waits_until_all_obey_it)
{
    struct desk desk;
    struct life life = {.rc = 1};
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    ck_assert_int_eq(strncmp(desk.plan, "msched plan 1\n", 14), 0);
    send_plan(&desk, 2, desk.plan); /* of a generation that is over */
    send_plan(&desk, 4, desk.plan);
    waits_on(&desk);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    send_plan(&desk, 3, desk.plan); /* after a reconnect, say */
    waits_on(&desk);

    const char *said = strstr(read_log(), "plan: chosen here, sha256 ");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_eq(strncmp(said + 26, desk.ready_plan, MS_SHA256_HEX - 1), 0);
    stop_rank(&desk, 3);
    end(&life, &desk);
}
END_TEST

START_TEST(given_plan_is_obeyed_though_it_comes_before_anything_was_looked_at)
{
    struct desk desk;
    struct life life = {.rc = 1};
    char chosen[MS_SHA256_HEX];
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    snprintf(chosen, sizeof(chosen), "%s", desk.ready_plan);
    stop_rank(&desk, 3);

    plan_from = MS_PLAN_GIVEN;
    send_rank(&desk, 4, 1, JOB(1));
    send_plan(&desk, 4, desk.plan);
    send_plan(&desk, 4, desk.plan);
    until(&desk, desk.n_ready == 2);

    ck_assert_int_eq(desk.n_plans, 1); /* nobody chose anything */
    ck_assert_str_eq(desk.ready_plan, chosen);
    ck_assert_ptr_nonnull(strstr(read_log(), "plan: given, sha256 "));
    stop_rank(&desk, 4);
    end(&life, &desk);
}
END_TEST

START_TEST(stop_ends_the_wait_for_a_plan_that_never_comes)
{
    struct desk desk;
    struct life life = {.rc = 1};
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    stop_rank(&desk, 3);
    ck_assert_int_eq(desk.done[0].code, MS_E_CANCELLED);

    hear_plan(&desk, 4, JOB(1));
    end(&life, &desk); /* as TERM does */
    ck_assert_int_eq(desk.done[1].code, MS_E_CANCELLED);
}
END_TEST

START_TEST(plan_that_cannot_be_obeyed_fails_its_rank_by_the_line)
{
    struct desk desk;
    struct life life = {.rc = 1};
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    char *line = strstr(desk.plan, "\nworld 1\n");
    ck_assert_ptr_nonnull(line);
    line[7] = '2';
    send_plan(&desk, 3, desk.plan); /* not what it chose */
    until(&desk, desk.n_done == 1);
    ck_assert_msg(strstr(desk.done[0].text, "plan line 4: world 2: the job trains with 1 rank") !=
                      NULL,
                  "%s", desk.done[0].text);
    ck_assert_msg(strstr(desk.done[0].text, "(this node: isa ") != NULL, "%s", desk.done[0].text);
    send_stop(&desk, 3, 0);

    ck_assert_ptr_nonnull(strstr(end_with_plan(&desk, 4, ""), "plan line 1: "));
    ck_assert_ptr_nonnull(strstr(end_with_plan(&desk, 5, "msched plan 9\n"), "plan line 1: "));
    end(&life, &desk);
}
END_TEST

START_TEST(rank_that_hears_two_plans_fails)
{
    struct desk desk;
    struct life life = {.rc = 1};
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    send_plan(&desk, 3, "another one");
    until(&desk, desk.n_done == 1);
    ck_assert_int_eq(desk.done[0].code, MS_E_PROTOCOL);
    ck_assert_ptr_nonnull(strstr(desk.done[0].text, "two plans that differ"));
    send_stop(&desk, 3, 0);

    plan_from = MS_PLAN_OWN; /* and the next one is served */
    send_rank(&desk, 4, 1, JOB(1));
    until(&desk, desk.n_ready == 2);
    stop_rank(&desk, 4);
    end(&life, &desk);
}
END_TEST

/* oneDNN would have to be another one in this process; the next process can. */
START_TEST(plan_for_another_instruction_set_is_the_next_process_s)
{
    struct desk desk;
    struct life life = {.rc = -1};
    if (strcmp(plan_isa(), "sse41") == 0 || strcmp(plan_isa(), "other") == 0) {
        return; /* there is none */
    }
    meet(&desk, &life);
    hear_plan(&desk, 3, JOB(1));
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    stop_rank(&desk, 3);
    const size_t size = strlen(desk.plan) + 16;
    const char *isa = strstr(desk.plan, "\nisa ") + 5;
    char *other = malloc(size);
    snprintf(other, size, "%.*ssse41%s", (int)(isa - desk.plan), desk.plan, strchr(isa, '\n'));

    ck_assert_ptr_nonnull(strstr(end_with_plan(&desk, 4, other), "plan line 6: isa sse41"));
    ck_assert(desk.done[1].leaving);
    until(&desk, desk.n_leaves == 1 && desk.n_closed >= 1);
    ck_assert_int_eq(pthread_join(life.thread, NULL), 0);
    ck_assert_int_eq(life.rc, WORKER_ANEW);
    free(other);
    desk_shut(&desk);
}
END_TEST

/* Whether the scheduler says it once more, or not, is the same to it. */
START_TEST(rank_that_goes_on_keeps_the_plan_that_it_has)
{
    struct desk desk;
    struct life life = {.rc = 1};
    char chosen[MS_SHA256_HEX];
    char undisturbed[MS_SHA256_HEX];
    train_long(0, undisturbed);
    meet(&desk, &life);
    hear_plan(&desk, 3, LONG_JOB);
    send_plan(&desk, 3, desk.plan);
    until(&desk, desk.n_ready == 1);
    snprintf(chosen, sizeof(chosen), "%s", desk.ready_plan);
    send_start(&desk, 3);
    plan_from = MS_PLAN_GIVEN;
    for (uint64_t generation = 4; generation < 7; generation++) {
        send_rank(&desk, generation, 1, LONG_JOB);
        if (generation != 5) {
            send_plan(&desk, generation, desk.plan);
        }
        until(&desk, desk.ready_generation == generation || desk.n_done > 1);
        ck_assert_str_eq(desk.ready_plan, chosen);
        send_start(&desk, generation);
    }
    until(&desk, desk.n_done > 0 && desk.done[desk.n_done - 1].generation == 6);
    ck_assert_msg(desk.done[desk.n_done - 1].code == 0, "%s", desk.done[desk.n_done - 1].text);
    ck_assert_str_eq(desk.done[desk.n_done - 1].weights, undisturbed);
    ck_assert_int_eq(desk.n_plans, 1);
    send_stop(&desk, 6, 0);
    end(&life, &desk);
}
END_TEST

/* The job did nothing wrong: its rank is lost with the node, before it started, and placed anew. */
START_TEST(a_node_that_cannot_open_the_folder_of_a_job_leaves_instead_of_failing_it)
{
    struct desk desk;
    struct life life = {.rc = 1};
    desk_open(&desk);
    begin(&life, &desk);
    until(&desk, desk.n_registers == 1);
    test_dir_remove(jobs_dir); /* unmounted, say */

    send_rank(&desk, 3, 1, JOB(1));
    until(&desk, desk.n_leaves + desk.n_done == 1);

    ck_assert_msg(desk.n_done == 0, "the job fails: %s", desk.done[0].text);
    ck_assert_msg(strstr(desk.farewell, jobs_dir) != NULL, "%s", desk.farewell);
    ck_assert_int_eq(pthread_join(life.thread, NULL), 0);
    ck_assert_int_eq(life.rc, MS_E_IO); /* 75: started again, it tries the folder first */
    ck_assert_int_eq(mkdir(jobs_dir, 0700), 0);
    desk_shut(&desk);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tc = tcase_create("worker");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, worker_that_served_with_another_instruction_set_leaves_to_begin_anew);
    tcase_add_test(tc, certificates_that_come_while_it_starts_are_its_first_ones);
    tcase_add_test(tc, a_stop_for_nobody_does_not_stop_the_next_rank);
    tcase_add_test(tc, an_assign_in_the_place_of_a_stop_ends_the_rank_in_hand_and_is_served);
    tcase_add_test(tc, the_same_generation_of_another_job_is_another_rank);
    tcase_add_test(tc, weights_of_a_rank_that_trains_for_itself_are_its_own);
    tcase_add_test(tc, two_generations_that_come_at_once_are_one_to_go_on_with);
    tcase_add_test(tc, a_failure_that_no_stop_has_answered_is_said_of_the_next_generation);
    tcase_add_test(tc, many_generations_at_once_of_a_rank_that_fails_before_it_begins);
    tcase_add_test(tc, rank_that_is_given_again_goes_on_with_the_weights_that_it_has);
    tcase_add_test(tc, rank_that_goes_on_has_no_grace_of_the_generation_before);
    tcase_add_test(tc, rank_0_says_its_plan_and_waits_until_all_obey_it);
    tcase_add_test(tc, given_plan_is_obeyed_though_it_comes_before_anything_was_looked_at);
    tcase_add_test(tc, stop_ends_the_wait_for_a_plan_that_never_comes);
    tcase_add_test(tc, plan_that_cannot_be_obeyed_fails_its_rank_by_the_line);
    tcase_add_test(tc, rank_that_hears_two_plans_fails);
    tcase_add_test(tc, plan_for_another_instruction_set_is_the_next_process_s);
    tcase_add_test(tc, rank_that_goes_on_keeps_the_plan_that_it_has);
    tcase_add_test(tc, a_node_that_cannot_open_the_folder_of_a_job_leaves_instead_of_failing_it);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
