/* test_sched_client.c - who may send what, lists, watches, progress, logs, status */
#include "tests/unit/sched_fixture.h"

#include "daemon/sched/may.h"

/* ---- roles --------------------------------------------------------------------------------------
 */

START_TEST(every_type_is_refused_from_roles_that_may_not_send_it)
{
    static const enum ms_role roles[] = {MS_ROLE_NONE, MS_ROLE_WORKER, MS_ROLE_USER, MS_ROLE_ADMIN,
                                         MS_ROLE_SCHEDULER};
    fix_standing();
    for (size_t i = 0; ms_wire_at(i) != NULL; i++) {
        const struct ms_wire_type *type = ms_wire_at(i);
        ProtobufCMessage *msg = malloc(type->descriptor->sizeof_message);
        protobuf_c_message_init(type->descriptor, msg);
        for (size_t j = 0; j < MS_ARRAY_SIZE(roles); j++) {
            uint64_t conn = fix_open(roles[j], "somebody");
            fix_say(conn, type->type, msg);
            const Ms__Error *refusal = fix_heard(conn, MS_MSG_ERROR);
            int by_role = refusal != NULL && strstr(refusal->text, "is not for a") != NULL;
            /* what only a scheduler says is nobody's to say to one, whatever the wire allows */
            int is_answer = may_action_of(type->type) == MAY_ANSWER;
            int is_ours = (roles[j] & MS_ROLE_SCHEDULER) != 0;
            ck_assert_msg(by_role ==
                              ((type->senders & (unsigned)roles[j]) == 0 || is_answer || is_ours),
                          "%s from role %d: %s", type->name, (int)roles[j],
                          refusal != NULL ? refusal->text : "not refused");
        }
        free(msg);
    }
}
END_TEST

START_TEST(refusal_names_type_role_and_peer)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Register msg = fix_node("w0", 1);

    fix_say(conn, MS_MSG_REGISTER, &msg.base);

    fix_refused(conn, MS_E_REFUSED,
                "Register is not for a user to send (this connection is "
                "user:alice)");
}
END_TEST

START_TEST(messages_of_closed_connections_are_ignored)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    fix_close(conn);

    fix_beat(conn);

    size_t n = 0;
    sched_effects(fix.s, &n);
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- lists --------------------------------------------------------------------------------------
 */

static const Ms__JobList *list_jobs(uint64_t after, uint32_t limit, int all)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery msg = MS__JOB_QUERY__INIT;
    msg.after = after;
    msg.limit = limit;
    msg.all = all;
    fix_say(conn, MS_MSG_JOB_QUERY, &msg.base);
    return fix_heard(conn, MS_MSG_JOB_LIST);
}

START_TEST(jobs_are_listed_page_by_page)
{
    fix_standing();
    for (int i = 0; i < 5; i++) {
        fix_submit(1, 0);
    }

    const Ms__JobList *page = list_jobs(0, 2, 0);
    ck_assert_uint_eq(page->n_jobs, 2);
    ck_assert_uint_eq(page->jobs[1]->id, 2);
    ck_assert_int_eq(page->more, 1);
    page = list_jobs(4, 2, 0);

    ck_assert_uint_eq(page->n_jobs, 1);
    ck_assert_uint_eq(page->jobs[0]->id, 5);
    ck_assert_int_eq(page->more, 0);
}
END_TEST

START_TEST(ended_jobs_are_listed_on_request)
{
    fix_standing();
    fix_submit(1, 0);
    fix_submit(1, 0);
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), 1, 0);

    const Ms__JobList *some = list_jobs(0, 0, 0);
    ck_assert_uint_eq(some->n_jobs, 1);
    ck_assert_uint_eq(some->jobs[0]->id, 2);
    const Ms__JobList *all = list_jobs(0, 0, 1);

    ck_assert_uint_eq(all->n_jobs, 2);
    ck_assert_str_eq(all->jobs[0]->state, "CANCELLED");
}
END_TEST

START_TEST(page_of_the_longest_jobs_fits_a_frame)
{
    fix_standing();
    char text[MS_TEXT_MAX + 1];
    memset(text, 'x', MS_TEXT_MAX);
    text[MS_TEXT_MAX] = '\0';
    uint64_t root = fix_open(MS_ROLE_ADMIN, "root");
    for (int i = 0; i < MS_LIST_PAGE_MAX; i++) {
        Ms__Cancel cancel = MS__CANCEL__INIT;
        cancel.job = fix_submit(1, 0);
        cancel.reason = text;
        fix_say(root, MS_MSG_CANCEL, &cancel.base);
    }

    ck_assert_uint_eq(list_jobs(0, 0, 1)->n_jobs, MS_LIST_PAGE_MAX);
}
END_TEST

START_TEST(one_job_is_shown_with_everything)
{
    uint64_t conns[2];
    fix_running(conns);

    const Ms__JobInfo *info = fix_show(1);

    ck_assert_str_eq(info->name, "mnist");
    ck_assert_str_eq(info->owner, "user:alice");
    ck_assert_uint_eq(info->job_json.len, 2);
    ck_assert_uint_eq(info->n_ranks, 2);
    ck_assert_uint_eq(info->ranks[1]->rank, 1);
    ck_assert_str_eq(info->ranks[1]->node_id, "w1");
    ck_assert_str_eq(info->ranks[1]->state, "training");
    ck_assert_str_eq(info->ranks[1]->log_path, "/run/worker_1.log");
    ck_assert_uint_eq(info->ranks[1]->pid, 1002);
}
END_TEST

START_TEST(unknown_job_and_node_are_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery job = MS__JOB_QUERY__INIT;
    job.job = 7;
    fix_say(conn, MS_MSG_JOB_QUERY, &job.base);
    fix_refused(conn, MS_E_NOT_FOUND, "job 7 does not exist: msctl jobs --all");
    Ms__NodeQuery node = MS__NODE_QUERY__INIT;
    node.node_id = (char *)"w7";

    fix_say(conn, MS_MSG_NODE_QUERY, &node.base);

    fix_refused(conn, MS_E_NOT_FOUND, "node w7 is not known");
}
END_TEST

START_TEST(nodes_are_listed_in_natural_order)
{
    fix_standing();
    uint8_t cpus[1] = {0x0f};
    Ms__Offer offer = MS__OFFER__INIT;
    Ms__Register offers = fix_node("w10", 1);
    offer.physical = 2;
    offer.cpuset.data = cpus;
    offer.cpuset.len = sizeof(cpus);
    offers.offer = &offer;
    fix_say(fix_open(MS_ROLE_WORKER, "host-certificate"), MS_MSG_REGISTER, &offers.base);
    fix_register("w9", 2);
    fix_submit(1, 0);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__NodeQuery msg = MS__NODE_QUERY__INIT;

    fix_say(conn, MS_MSG_NODE_QUERY, &msg.base);

    const Ms__NodeList *list = fix_heard(conn, MS_MSG_NODE_LIST);
    ck_assert_uint_eq(list->n_nodes, 2);
    ck_assert_str_eq(list->nodes[0]->node_id, "w9");
    ck_assert_str_eq(list->nodes[0]->activity, "job 1 rank 0");
    ck_assert_str_eq(list->nodes[1]->activity, "idle");
    ck_assert_str_eq(list->nodes[1]->isa, "avx2");
    ck_assert_str_eq(list->nodes[1]->cert_name, "host-certificate");
    ck_assert_uint_eq(list->nodes[1]->cores, 4);
    ck_assert_uint_eq(list->nodes[1]->physical, 2);
    ck_assert_uint_eq(list->nodes[0]->physical, 0); /* it offered nothing */
    ck_assert_str_eq(list->nodes[1]->address, "10.0.0.1:8200");
}
END_TEST

START_TEST(status_says_that_no_new_work_is_taken)
{
    Ms__StatusQuery msg = MS__STATUS_QUERY__INIT;
    fix_start(SCHED_STANDING, 0);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    sched_refuse_writes(fix.s, "no space left", 1);
    fix_say(conn, MS_MSG_STATUS_QUERY, &msg.base);
    const Ms__StatusInfo *info = fix_heard(conn, MS_MSG_STATUS_INFO);
    ck_assert_str_eq(info->waiting_for, "disk space: no space left");

    sched_refuse_writes(fix.s, "", 1);
    fix_say(conn, MS_MSG_STATUS_QUERY, &msg.base);
    info = fix_heard(conn, MS_MSG_STATUS_INFO);
    ck_assert_str_eq(info->waiting_for, "");
}
END_TEST

START_TEST(status_counts)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_register("w2", 3);
    fix_submit(9, 0);
    sched_set_driver_stats(fix.s,
                           &(struct sched_driver_stats){
                               .ticks = {.max_us = 11},
                               .ticks_cpu = {.p50_us = 5, .p99_us = 6, .p999_us = 7, .max_us = 8},
                               .commit_last_us = 22,
                               .clients = 33});
    fix.now.mono_ms += 500;
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__StatusQuery msg = MS__STATUS_QUERY__INIT;

    fix_say(conn, MS_MSG_STATUS_QUERY, &msg.base);

    const Ms__StatusInfo *info = fix_heard(conn, MS_MSG_STATUS_INFO);
    ck_assert_str_eq(info->software, "msschedd 0.1.0");
    ck_assert_str_eq(info->cluster, "standing");
    ck_assert_uint_eq(info->nodes_registered, 3);
    ck_assert_uint_eq(info->nodes_idle, 1);
    ck_assert_uint_eq(info->jobs_queued, 1);
    ck_assert_uint_eq(info->jobs_running, 1);
    ck_assert_uint_eq(info->generation, 1);
    ck_assert_uint_eq(info->uptime_ms, 500);
    ck_assert_uint_eq(info->tick_max_us, 11);
    ck_assert_uint_eq(info->tick_cpu_p50_us, 5);
    ck_assert_uint_eq(info->tick_cpu_p99_us, 6);
    ck_assert_uint_eq(info->tick_cpu_p999_us, 7);
    ck_assert_uint_eq(info->tick_cpu_max_us, 8);
    ck_assert_uint_eq(info->commit_last_us, 22);
    ck_assert_uint_eq(info->clients, 33);
}
END_TEST

START_TEST(nodes_come_in_pages_each_once_and_in_order)
{
    enum { N = 25 };
    char seen[N][16];
    size_t n = 0;
    char next[MS_CURSOR_MAX + 1] = "";
    fix_standing();
    for (uint64_t i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%llu", (unsigned long long)(i * 7 % N));
        fix_register(id, i + 1);
    }
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    for (int more = 1; more;) {
        Ms__NodeQuery query = MS__NODE_QUERY__INIT;
        query.limit = 4;
        query.after = next;
        fix_say(conn, MS_MSG_NODE_QUERY, &query.base);
        const Ms__NodeList *list = fix_heard(conn, MS_MSG_NODE_LIST);
        ck_assert_ptr_nonnull(list);
        ck_assert_uint_le(list->n_nodes, 4);
        for (size_t i = 0; i < list->n_nodes; i++) {
            ck_assert_uint_lt(n, N);
            snprintf(seen[n++], sizeof(seen[0]), "%s", list->nodes[i]->node_id);
        }
        more = list->more;
        snprintf(next, sizeof(next), "%s", list->next);
    }
    ck_assert_uint_eq(n, N);
    for (size_t i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%zu", i);
        ck_assert_str_eq(seen[i], id);
    }
}
END_TEST

START_TEST(a_wrong_place_in_the_list_of_nodes_is_refused)
{
    static const char *const wrong[] = {"x",
                                        ":",
                                        "3",
                                        "99:h",
                                        "999999999999999999999:h",
                                        "-1:h",
                                        ("0:12345678901234567890123456789012345678901234567890"
                                         "123456789012345")};
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    for (size_t i = 0; i < MS_ARRAY_SIZE(wrong); i++) {
        Ms__NodeQuery query = MS__NODE_QUERY__INIT;
        query.after = (char *)wrong[i];
        fix_say(conn, MS_MSG_NODE_QUERY, &query.base);
        fix_refused(conn, MS_E_INVALID, "no place in the list of nodes");
    }
}
END_TEST

/* ---- watches ------------------------------------------------------------------------------------
 */

static uint64_t watch(uint64_t job)
{
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__Watch msg = MS__WATCH__INIT;
    msg.job = job;
    fix_say(conn, MS_MSG_WATCH, &msg.base);
    return conn;
}

static const Ms__JobUpdate *update(uint64_t conn)
{
    return fix_heard(conn, MS_MSG_JOB_UPDATE);
}

START_TEST(watch_tells_now_and_at_every_change_until_the_end)
{
    uint64_t conns[2];
    fix_placed(conns);

    uint64_t conn = watch(1);
    uint32_t frame = fix.frame;
    ck_assert_str_eq(update(conn)->job->state, "PLACING");
    fix_ready(conns[0], 1, 1, 0);
    fix_ready(conns[1], 1, 1, 1);
    ck_assert_str_eq(update(conn)->job->state, "RUNNING");
    ck_assert_uint_eq(fix_find(conn, MS_MSG_JOB_UPDATE)->id, frame);
    fix_done(conns[1], 1, 1, 1, 0, "");
    ck_assert_str_eq(update(conn)->job->ranks[1]->state, "done");
    fix_close(conns[0]);
    ck_assert_str_eq(update(conn)->job->state, "FAILED");
    ck_assert_int_eq(update(conn)->ended, 1);
    fix_done(conns[1], 1, 1, 1, MS_E_ABORTED, "");

    ck_assert_ptr_null(update(conn));
}
END_TEST

START_TEST(watch_of_an_ended_job_is_told_once)
{
    fix_standing();
    fix_submit(1, 0);
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), 1, 0);

    uint64_t conn = watch(1);

    ck_assert_int_eq(update(conn)->ended, 1);
    ck_assert_str_eq(update(conn)->job->reason, "cancelled by root");
}
END_TEST

START_TEST(watchers_of_waiting_jobs_hear_new_reasons)
{
    fix_standing();
    fix_submit(3, 0);
    uint64_t conn = watch(1);
    ck_assert_str_eq(update(conn)->job->reason, "waits for 3 idle nodes: 0 registered, 0 idle");

    fix_register("w0", 1);
    ck_assert_ptr_null(update(conn)); /* gathered: nodes come in crowds */
    fix_register("w1", 2);
    fix_pass(MS_NEWS_MS);

    ck_assert_str_eq(update(conn)->job->reason, "waits for 3 idle nodes: 2 registered, 2 idle");
}
END_TEST

static void set_clogged(uint64_t conn, int is_clogged)
{
    fix_apply(&(struct sched_event){.kind = is_clogged ? SCHED_EV_CLOGGED : SCHED_EV_CLEARED,
                                    .conn = conn});
}

START_TEST(a_watcher_that_does_not_read_is_told_the_newest_state_when_it_has)
{
    uint64_t conns[2];
    fix_placed(conns);
    uint64_t conn = watch(1);
    set_clogged(conn, 1);

    fix_ready(conns[0], 1, 1, 0);
    fix_ready(conns[1], 1, 1, 1);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_JOB_UPDATE));
    fix_done(conns[1], 1, 1, 1, MS_E_FAILED, "no more");
    fix_pass(MS_NEWS_MS + 1000);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_JOB_UPDATE));

    set_clogged(conn, 0);
    const Ms__JobUpdate *update = fix_heard(conn, MS_MSG_JOB_UPDATE);
    ck_assert_ptr_nonnull(update);
    ck_assert_uint_eq(fix_count(MS_MSG_JOB_UPDATE), 1);
    ck_assert_str_eq(update->job->state, "FAILED");
    ck_assert(update->ended);
    set_clogged(conn, 1);
    set_clogged(conn, 0);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_JOB_UPDATE)); /* it was the last one */
}
END_TEST

START_TEST(a_clogged_watcher_that_leaves_is_forgotten)
{
    uint64_t conns[2];
    fix_placed(conns);
    uint64_t conn = watch(1);
    set_clogged(conn, 1);
    fix_ready(conns[0], 1, 1, 0);
    fix_close(conn);
    fix_ready(conns[1], 1, 1, 1);
    fix_job_is(1, "RUNNING", "");
}
END_TEST

/* 200 connections with 64 watches each held 770 MiB after 33 s. */
START_TEST(news_for_many_watchers_is_spread_over_ticks)
{
    enum { CONNS = 40 };
    uint64_t conns[2];
    size_t told = 0;
    size_t ticks = 0;
    fix_placed(conns);
    for (int i = 0; i < CONNS; i++) {
        uint64_t conn = watch(1);
        Ms__Watch again = MS__WATCH__INIT;
        again.job = 1;
        for (int k = 1; k < MS_WATCHES_MAX; k++) {
            fix_say(conn, MS_MSG_WATCH, &again.base);
        }
    }
    fix_ready(conns[0], 1, 1, 0);
    fix_drop_answers();
    Ms__RankReady ready = MS__RANK_READY__INIT;
    ready.job = 1;
    ready.generation = 1;
    ready.rank = 1;
    ready.log_path = (char *)"/run/w.log";
    ready.plan_sha256 = (char *)fix_digest(FIX_BITS);
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conns[1], .type = MS_MSG_RANK_READY, .msg = &ready.base};
    for (; told < CONNS * MS_WATCHES_MAX && ticks < 1000; ticks++) {
        size_t n = 0;
        sched_begin_tick(fix.s);
        sched_apply(fix.s, &event, fix.now);
        const struct sched_effect *effects = sched_effects(fix.s, &n);
        for (size_t i = 0; i < n; i++) {
            struct ms_wire_header head = {0};
            told += effects[i].kind == SCHED_DO_SEND &&
                    ms_wire_parse_header(effects[i].frame, &head, NULL) == MS_OK &&
                    head.type == MS_MSG_JOB_UPDATE;
        }
        ck_assert_uint_lt(sched_tick_bytes(fix.s), 2 * MS_NEWS_BYTES);
        ck_assert(!fix_logged("scheduler.skipped_ahead")); /* which is due for another reason */
        event = (struct sched_event){.kind = SCHED_EV_TIME};
    }
    ck_assert_uint_eq(told, CONNS * MS_WATCHES_MAX);
    ck_assert_uint_gt(ticks, 1);
}
END_TEST

START_TEST(unchanged_reasons_cost_a_job_once_and_not_a_watcher)
{
    fix_standing();
    uint64_t job = fix_submit(1, 0);
    for (int i = 0; i < 8; i++) {
        uint64_t client = fix_open(MS_ROLE_USER, "bob");
        for (int j = 0; j < MS_WATCHES_MAX; j++) {
            Ms__Watch msg = MS__WATCH__INIT;
            msg.job = job;
            fix_say(client, MS_MSG_WATCH, &msg.base);
        }
    }
    ck_assert_uint_eq(fix_submit(1, 0), job + 1); /* behind it: news for nobody who watches */

    fix_pass(MS_NEWS_MS);

    ck_assert_uint_eq(fix.n_answers, 0);
    ck_assert_uint_le(sched_tick_bytes(fix.s), 4096);
}
END_TEST

START_TEST(watch_of_nothing_is_refused)
{
    fix_standing();

    uint64_t conn = watch(5);

    fix_refused(conn, MS_E_NOT_FOUND, "job 5 does not exist");
}
END_TEST

START_TEST(watches_of_a_connection_are_limited)
{
    fix_standing();
    fix_submit(1, 0);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    Ms__Watch msg = MS__WATCH__INIT;
    msg.job = 1;

    for (int i = 0; i < MS_WATCHES_MAX; i++) {
        fix_say(conn, MS_MSG_WATCH, &msg.base);
        ck_assert_ptr_nonnull(update(conn));
    }
    fix_say(conn, MS_MSG_WATCH, &msg.base);

    fix_refused(conn, MS_E_FULL, "watches 64 jobs already");
}
END_TEST

static void progress(uint64_t conn, uint32_t epoch, int has_eval)
{
    Ms__Progress msg = MS__PROGRESS__INIT;
    msg.job = 1;
    msg.generation = 1;
    msg.step = 10 * (uint64_t)epoch;
    msg.steps_total = 100;
    msg.epoch = epoch;
    msg.loss = 2.3;
    msg.phase = (char *)"training";
    msg.has_eval = has_eval;
    msg.accuracy = 0.01 * epoch;
    fix_say(conn, MS_MSG_PROGRESS, &msg.base);
}

START_TEST(progress_reaches_watchers)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = watch(1);

    progress(conns[0], 2, 0);

    const Ms__Progress *got = update(conn)->job->progress;
    ck_assert_uint_eq(got->step, 20);
    ck_assert_double_eq(got->loss, 2.3);
    ck_assert_str_eq(got->phase, "training");
    ck_assert_uint_eq(update(conn)->job->ranks[0]->step, 20);
}
END_TEST

/* Half a letter in one row made every list with that job unsendable, for ever. */
START_TEST(the_longest_phase_of_the_wire_is_shown_whole)
{
    char phase[MS_NAME_MAX + 1];
    uint64_t conns[2];
    fix_running(conns);
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    Ms__JobQuery query = MS__JOB_QUERY__INIT;
    query.all = 1;

    for (size_t size = 2; size <= MS_NAME_MAX; size++) {
        memset(phase, 'p', sizeof(phase));
        snprintf(phase + size - 2, 3, "\xc3\xa9");
        Ms__Progress msg = MS__PROGRESS__INIT;
        msg.job = 1;
        msg.generation = 1;
        msg.phase = phase;
        fix_say(conns[0], MS_MSG_PROGRESS, &msg.base);
        fix_say(bob, MS_MSG_JOB_QUERY, &query.base);
        const Ms__JobList *list = fix_heard(bob, MS_MSG_JOB_LIST);
        ck_assert_msg(list != NULL, "no list with a phase of %zu bytes", size);
        ck_assert_str_eq(list->jobs[0]->progress->phase, phase);
    }
}
END_TEST

START_TEST(evaluations_are_kept_one_an_epoch_and_a_hundred_at_most)
{
    uint64_t conns[2];
    fix_running(conns);

    progress(conns[0], 1, 1);
    progress(conns[0], 1, 1);
    progress(conns[0], 2, 0);
    ck_assert_uint_eq(fix_show(1)->n_evals, 1);
    for (uint32_t epoch = 3; epoch < 150; epoch++) {
        progress(conns[0], epoch, 1);
    }

    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->n_evals, MS_EVALS_MAX);
    ck_assert_uint_eq(info->evals[MS_EVALS_MAX - 1]->epoch, 149);
    ck_assert_uint_eq(info->evals[0]->epoch, 50);
}
END_TEST

static void ck_epochs(uint32_t first, uint32_t step, uint32_t n)
{
    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->n_evals, n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(info->evals[i]->epoch, first + i * step);
    }
}

/* As after a reconnect: the scheduler may not have read what it was told. */
START_TEST(an_evaluation_that_is_told_again_takes_its_place_and_moves_nothing)
{
    uint64_t conns[2];
    fix_running(conns);
    progress(conns[0], 1, 1);
    progress(conns[0], 4, 1);
    progress(conns[0], 5, 0);

    for (uint32_t epoch = 1; epoch < 5; epoch++) {
        progress(conns[0], epoch, 1);
    }

    ck_epochs(1, 1, 4);
    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->progress->step, 50);
    ck_assert_uint_eq(info->ranks[0]->step, 50);
    ck_assert(!info->progress->has_eval);
}
END_TEST

START_TEST(of_too_many_evaluations_that_are_told_again_the_oldest_are_not_kept)
{
    uint64_t conns[2];
    fix_running(conns);
    for (uint32_t epoch = 4; epoch <= 2 * MS_EVALS_MAX; epoch += 2) {
        progress(conns[0], epoch, 1);
    }
    ck_epochs(4, 2, MS_EVALS_MAX - 1);

    progress(conns[0], 2, 1);
    ck_epochs(2, 2, MS_EVALS_MAX);
    progress(conns[0], 1, 1);
    ck_epochs(2, 2, MS_EVALS_MAX);
    progress(conns[0], 5, 1);

    const Ms__JobInfo *info = fix_show(1);
    ck_assert_uint_eq(info->n_evals, MS_EVALS_MAX);
    ck_assert_uint_eq(info->evals[0]->epoch, 4);
    ck_assert_uint_eq(info->evals[1]->epoch, 5);
    ck_assert_uint_eq(info->evals[MS_EVALS_MAX - 1]->epoch, 2 * MS_EVALS_MAX);
}
END_TEST

/* ---- logs ---------------------------------------------------------------------------------------
 */

static void ask_log(uint64_t conn, uint64_t job, uint32_t rank)
{
    Ms__LogQuery msg = MS__LOG_QUERY__INIT;
    msg.job = job;
    msg.rank = rank;
    msg.offset = 5;
    msg.bytes_max = 1 << 30;
    fix_say(conn, MS_MSG_LOG_QUERY, &msg.base);
}

static void answer_log(uint64_t worker, uint64_t route)
{
    Ms__LogChunk msg = MS__LOG_CHUNK__INIT;
    msg.route = route;
    msg.offset = 5;
    msg.data.data = (uint8_t *)"loss";
    msg.data.len = 4;
    msg.at_end = 1;
    fix_say(worker, MS_MSG_LOG_CHUNK, &msg.base);
}

START_TEST(log_is_read_through_the_node_that_has_it)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");

    ask_log(conn, 1, 1);
    uint32_t frame = fix.frame;
    const Ms__LogRead *read = fix_heard(conns[1], MS_MSG_LOG_READ);
    ck_assert_ptr_nonnull(read);
    ck_assert_uint_eq(read->rank, 1);
    ck_assert_uint_eq(read->offset, 5);
    ck_assert_uint_le(read->bytes_max, MS_LOG_CHUNK_MAX);
    answer_log(conns[1], read->route);

    const Ms__LogChunk *chunk = fix_heard(conn, MS_MSG_LOG_CHUNK);
    ck_assert_ptr_nonnull(chunk);
    ck_assert_mem_eq(chunk->data.data, "loss", 4);
    ck_assert_uint_eq(fix_find(conn, MS_MSG_LOG_CHUNK)->id, frame);
}
END_TEST

START_TEST(log_of_an_ended_job_can_be_read)
{
    uint64_t conns[2];
    fix_running(conns);
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");

    ask_log(conn, 1, 0);

    ck_assert_ptr_nonnull(fix_heard(conns[0], MS_MSG_LOG_READ));
}
END_TEST

START_TEST(log_that_no_node_can_read_is_refused_in_words)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t queued = fix_submit(4, 0);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");

    ask_log(conn, 9, 0);
    fix_refused(conn, MS_E_NOT_FOUND, "job 9 does not exist");
    ask_log(conn, 1, 2);
    fix_refused(conn, MS_E_INVALID, "job 1 has no rank 2: its ranks are 0 to 1");
    ask_log(conn, queued, 0);
    fix_refused(conn, MS_E_NOT_FOUND, "job 2 has no log yet: it waits for 4 idle nodes");
    fix_cancel(fix_open(MS_ROLE_ADMIN, "root"), queued, 0);
    ask_log(conn, queued, 0);
    fix_refused(conn, MS_E_NOT_FOUND, "it never started");
    fix_close(conns[1]);
    ask_log(conn, 1, 1);

    fix_refused(conn, MS_E_UNREACHABLE,
                "node w1 on host h is not connected; its log: /run/worker_1.log");
}
END_TEST

START_TEST(log_read_that_is_not_answered_ends)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    ask_log(conn, 1, 1);
    fix_pass(MS_LOG_READ_MS / 2);
    fix_beat(conns[0]);
    fix_beat(conns[1]);

    fix_pass(MS_LOG_READ_MS / 2);

    const Ms__Error *answer = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->code, MS_E_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(answer->text, "node w1 did not answer within 10 s"));
}
END_TEST

START_TEST(log_read_waits_longer_when_the_scheduler_stood_still)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    ask_log(conn, 1, 1);

    sched_stood_still(fix.s, 3000);
    fix_pass(MS_LOG_READ_MS + 2999);
    ck_assert_ptr_null(fix_heard(conn, MS_MSG_ERROR));
    fix_pass(1);

    ck_assert_ptr_nonnull(fix_heard(conn, MS_MSG_ERROR));
}
END_TEST

START_TEST(log_read_ends_with_its_node)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    ask_log(conn, 1, 1);

    fix_close(conns[1]);

    const Ms__Error *answer = fix_heard(conn, MS_MSG_ERROR);
    ck_assert_ptr_nonnull(answer);
    ck_assert_ptr_nonnull(strstr(answer->text, "was lost: connection closed by peer"));
}
END_TEST

START_TEST(chunk_of_another_node_is_not_forwarded)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = fix_open(MS_ROLE_USER, "bob");
    ask_log(conn, 1, 1);
    uint64_t route = ((const Ms__LogRead *)fix_heard(conns[1], MS_MSG_LOG_READ))->route;

    answer_log(conns[0], route);

    ck_assert_ptr_null(fix_heard(conn, MS_MSG_LOG_CHUNK));
}
END_TEST

START_TEST(client_that_hangs_up_is_forgotten)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t conn = watch(1);
    ask_log(conn, 1, 1);
    uint64_t route = ((const Ms__LogRead *)fix_heard(conns[1], MS_MSG_LOG_READ))->route;
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(alice, 1, 1);

    fix_close(conn);
    fix_close(alice);
    answer_log(conns[1], route);
    fix_close(conns[0]);

    for (size_t i = 0; i < fix.n_answers; i++) {
        ck_assert_uint_eq(fix.answers[i].conn, conns[1]);
    }
}
END_TEST

static TCase *list_cases(void)
{
    TCase *t = tcase_create("roles and lists");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, every_type_is_refused_from_roles_that_may_not_send_it);
    tcase_add_test(t, refusal_names_type_role_and_peer);
    tcase_add_test(t, messages_of_closed_connections_are_ignored);
    tcase_add_test(t, jobs_are_listed_page_by_page);
    tcase_add_test(t, ended_jobs_are_listed_on_request);
    tcase_add_test(t, page_of_the_longest_jobs_fits_a_frame);
    tcase_add_test(t, one_job_is_shown_with_everything);
    tcase_add_test(t, unknown_job_and_node_are_refused);
    tcase_add_test(t, nodes_are_listed_in_natural_order);
    tcase_add_test(t, status_says_that_no_new_work_is_taken);
    tcase_add_test(t, status_counts);
    return t;
}

static TCase *watch_cases(void)
{
    TCase *t = tcase_create("watches");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, nodes_come_in_pages_each_once_and_in_order);
    tcase_add_test(t, a_wrong_place_in_the_list_of_nodes_is_refused);
    tcase_add_test(t, watch_tells_now_and_at_every_change_until_the_end);
    tcase_add_test(t, watch_of_an_ended_job_is_told_once);
    tcase_add_test(t, watchers_of_waiting_jobs_hear_new_reasons);
    tcase_add_test(t, a_watcher_that_does_not_read_is_told_the_newest_state_when_it_has);
    tcase_add_test(t, a_clogged_watcher_that_leaves_is_forgotten);
    tcase_add_test(t, news_for_many_watchers_is_spread_over_ticks);
    tcase_add_test(t, unchanged_reasons_cost_a_job_once_and_not_a_watcher);
    tcase_add_test(t, watch_of_nothing_is_refused);
    tcase_add_test(t, watches_of_a_connection_are_limited);
    tcase_add_test(t, progress_reaches_watchers);
    tcase_add_test(t, the_longest_phase_of_the_wire_is_shown_whole);
    tcase_add_test(t, evaluations_are_kept_one_an_epoch_and_a_hundred_at_most);
    tcase_add_test(t, an_evaluation_that_is_told_again_takes_its_place_and_moves_nothing);
    tcase_add_test(t, of_too_many_evaluations_that_are_told_again_the_oldest_are_not_kept);
    return t;
}

static TCase *log_cases(void)
{
    TCase *t = tcase_create("logs");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, log_is_read_through_the_node_that_has_it);
    tcase_add_test(t, log_of_an_ended_job_can_be_read);
    tcase_add_test(t, log_that_no_node_can_read_is_refused_in_words);
    tcase_add_test(t, log_read_that_is_not_answered_ends);
    tcase_add_test(t, log_read_waits_longer_when_the_scheduler_stood_still);
    tcase_add_test(t, log_read_ends_with_its_node);
    tcase_add_test(t, chunk_of_another_node_is_not_forwarded);
    tcase_add_test(t, client_that_hangs_up_is_forgotten);
    return t;
}

int main(void)
{
    Suite *s = suite_create("sched_client");
    suite_add_tcase(s, list_cases());
    suite_add_tcase(s, watch_cases());
    suite_add_tcase(s, log_cases());
    return test_run(s);
}
