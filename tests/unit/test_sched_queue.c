/* test_sched_queue.c - submit, the order of the queue, and which nodes a job gets */
#include "tests/unit/sched_fixture.h"

/* ---- submit and queue ---------------------------------------------------------------------------
 */

START_TEST(submit_is_stored_before_it_is_acknowledged)
{
    fix_standing();
    fix.now.wall_ms = 1700000000123;

    ck_assert_uint_eq(fix_submit(2, 5), 1);

    const struct sched_job_row *row = fix_stored(1);
    ck_assert_ptr_nonnull(row);
    ck_assert_int_eq(row->state, JOB_QUEUED);
    ck_assert_str_eq(row->name, "mnist");
    ck_assert_str_eq(row->owner, "user:alice");
    ck_assert_uint_eq(row->workers, 2);
    ck_assert_int_eq(row->priority, 5);
    ck_assert_int_eq(row->submitted_ms, 1700000000123);
    ck_assert_uint_eq(row->spec_bytes, 2);
    ck_assert_mem_eq(row->spec, "{}", 2);
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_META)->meta_key, "next_job");
}
END_TEST

START_TEST(same_key_gives_the_same_job)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    msg.key = (char *)"k";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    ck_assert_uint_eq(((const Ms__Submitted *)fix_heard(conn, MS_MSG_SUBMITTED))->job, 1);
    ck_assert_ptr_null(fix_stored(1));
}
END_TEST

START_TEST(key_of_another_job_is_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    msg.key = (char *)"k";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    msg.workers = 2;

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_refused(conn, MS_E_EXISTS, "key k was used for job 1");
}
END_TEST

START_TEST(keys_of_two_owners_are_two_keys)
{
    fix_standing();
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    uint64_t bob = fix_open(MS_ROLE_USER, "bob");
    Ms__Submit msg = fix_job(1);
    msg.key = (char *)"k";
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);

    fix_say(bob, MS_MSG_SUBMIT, &msg.base);

    ck_assert_uint_eq(((const Ms__Submitted *)fix_heard(bob, MS_MSG_SUBMITTED))->job, 2);
}
END_TEST

START_TEST(no_workers_and_too_many_are_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(0);

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    fix_refused(conn, MS_E_INVALID, "job mnist asks for 0 workers: from 1 to 1024");
    msg.workers = 1000000;
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    fix_refused(conn, MS_E_INVALID, "asks for 1000000 workers");
}
END_TEST

START_TEST(empty_job_is_refused)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    msg.job_json.len = 0;

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    fix_refused(conn, MS_E_INVALID, "described by 0 bytes");
}
END_TEST

START_TEST(run_directory_is_for_private_schedulers)
{
    fix_standing();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);
    msg.run_dir = (char *)"/tmp/x";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    fix_refused(conn, MS_E_INVALID, "only `msctl run` may choose one");

    fix_start(SCHED_RUN, 0);
    uint64_t worker = fix_register("0", 1);
    conn = fix_open(MS_ROLE_USER, "uid0");
    msg.run_dir = (char *)"";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    fix_refused(conn, MS_E_INVALID, "job mnist names no run directory");
    msg.run_dir = (char *)"/tmp/x";
    fix_say(conn, MS_MSG_SUBMIT, &msg.base);

    ck_assert_str_eq(((const Ms__Assign *)fix_heard(worker, MS_MSG_ASSIGN))->run_dir, "/tmp/x");
}
END_TEST

START_TEST(submit_while_draining_is_refused_and_nothing_is_placed)
{
    fix_standing();
    uint64_t job = fix_submit(1, 0);
    fix_drain();
    uint64_t conn = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);

    fix_say(conn, MS_MSG_SUBMIT, &msg.base);
    fix_refused(conn, MS_E_REFUSED, "shutting down");
    fix_register("w0", 1);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_job_is(job, "QUEUED", "waits for the scheduler's next start");
}
END_TEST

START_TEST(full_disk_refuses_new_work_and_lets_the_rest_go_on)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t queued = fix_submit(1, 0);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");
    Ms__Submit msg = fix_job(1);

    sched_refuse_writes(fix.s, "no space left under /var/lib/msched", 1);
    fix_say(alice, MS_MSG_SUBMIT, &msg.base);
    fix_refused(alice, MS_E_FULL, "no space left under /var/lib/msched");
    fix_done(conns[0], 1, 1, 0, 0, "");
    fix_done(conns[1], 1, 1, 1, 0, "");

    fix_job_is(1, "SUCCEEDED", "all 2 ranks finished 120 steps");
    fix_job_is(queued, "QUEUED", "waits for disk space: no space left");
    sched_refuse_writes(fix.s, "", 1);
    ck_assert_int_le(sched_deadline(fix.s), fix.now.mono_ms);
    fix_time();
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 1);
}
END_TEST

START_TEST(full_disk_lets_go_of_jobs_as_long_as_an_end_can_be_stored)
{
    uint64_t conns[2];
    fix_running(conns);
    uint64_t queued[2] = {fix_submit(1, 0), fix_submit(1, 0)};
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    sched_refuse_writes(fix.s, "no space left", 1);
    fix_cancel(alice, queued[0], 0);
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    fix_job_is(queued[0], "CANCELLED", "cancelled by alice");
    sched_refuse_writes(fix.s, "no space left, none at all", 0);
    fix_cancel(alice, queued[1], 0);
    fix_refused(alice, MS_E_FULL, "the end of job 3 cannot be stored: no space left, none at all");
    fix_job_is(queued[1], "QUEUED", "waits for disk space");
    sched_refuse_writes(fix.s, "no space left", 1);
    fix_cancel(alice, 1, 0);
    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));

    fix_job_is(1, "CANCELLED", "cancelled by alice");
}
END_TEST

START_TEST(queued_job_says_what_it_waits_for)
{
    fix_standing();
    fix_register("w0", 1);
    fix_submit(8, 0);
    fix_submit(1, 0);

    fix_job_is(1, "QUEUED", "waits for 8 idle nodes: 1 registered, 1 idle");
    fix_job_is(2, "QUEUED", "waits behind job 1, which waits for 8 idle nodes");
}
END_TEST

START_TEST(nobody_overtakes_within_a_priority)
{
    fix_standing();
    fix_submit(2, 0);
    fix_submit(1, 0);

    fix_register("w0", 1);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 0);
    fix_register("w1", 2);

    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 2);
    fix_job_is(1, "PLACING", "waits for rank 0 (node w0 on host h) to choose the plan");
}
END_TEST

/* Any number of nodes is believed in for a lease, then the cluster has what it has. */
START_TEST(job_larger_than_the_cluster_lets_others_pass)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    uint64_t large = fix_submit(64, 9);
    uint64_t small = fix_submit(1, 0);
    fix_job_is(large, "QUEUED", "waits for 64 idle nodes: 1 registered, 1 idle");
    fix_job_is(small, "QUEUED", "waits behind job 1");

    fix_beat(conn);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conn);
    fix_job_is(small, "QUEUED", "waits behind job 1");
    fix_pass(1);

    fix_job_is(small, "PLACING", "to choose the plan");
    fix_job_is(large, "QUEUED", "needs 64 nodes, the cluster has 1: waits until there are more");
}
END_TEST

START_TEST(large_job_is_first_again_when_it_can_fit)
{
    uint64_t conns[3];
    fix_standing();
    conns[0] = fix_register("w0", 1);
    uint64_t large = fix_submit(2, 0);
    fix_beat(conns[0]);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conns[0]);
    fix_pass(1);
    uint64_t small = fix_submit(1, 0);
    uint64_t next = fix_submit(1, 0);
    fix_job_is(small, "PLACING", "to choose the plan");
    fix_job_is(next, "QUEUED", "waits for 1 idle node");

    conns[1] = fix_register("w1", 2);

    fix_job_is(large, "QUEUED", "waits for 2 idle nodes: 2 registered, 1 idle");
    fix_job_is(next, "QUEUED", "waits behind job 1");
    fix_ready(conns[0], small, 1, 0);
    fix_done(conns[0], small, 1, 0, 0, "");
    ck_assert_ptr_nonnull(fix_heard(conns[1], MS_MSG_ASSIGN));
    fix_job_is(large, "PLACING", "to choose the plan");
}
END_TEST

START_TEST(worker_that_restarts_lets_nobody_pass)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    uint64_t gone = fix_register("w1", 2);
    uint64_t busy = fix_submit(1, 0);
    fix_job_is(busy, "PLACING", "to choose the plan");
    uint64_t large = fix_submit(2, 0);
    uint64_t small = fix_submit(1, 0);

    fix_close(gone);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / 2);
    fix_register("w1", 3);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / 2);

    fix_job_is(large, "QUEUED", "waits for 2 idle nodes: 2 registered, 1 idle");
    fix_job_is(small, "QUEUED", "waits behind");
}
END_TEST

START_TEST(doubt_begins_anew_with_each_loss)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    uint64_t gone = fix_register("w1", 2);
    fix_submit(1, 0);
    uint64_t large = fix_submit(2, 0);
    fix_close(gone);
    fix_pass(FIX_LEASE_MS / 2);
    gone = fix_register("w1", 3);
    fix_beat(conn);
    fix_pass(FIX_LEASE_MS / 2 - 1);

    fix_close(gone);
    fix_pass(1);

    fix_job_is(large, "QUEUED", "waits for 2 idle nodes: 1 registered, 0 idle");
}
END_TEST

START_TEST(job_of_the_clusters_size_is_not_in_doubt)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    uint64_t gone = fix_register("w1", 2);
    fix_submit(1, 0);
    uint64_t large = fix_submit(2, 0);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conn);

    fix_close(gone);
    fix_pass(1);

    fix_job_is(large, "QUEUED", "waits for 2 idle nodes: 1 registered, 0 idle");
}
END_TEST

START_TEST(large_job_that_stepped_aside_can_be_cancelled)
{
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    uint64_t large = fix_submit(64, 0);
    fix_pass(FIX_LEASE_MS - 1);
    fix_beat(conn);
    fix_pass(1);
    fix_job_is(large, "QUEUED", "needs 64 nodes");

    uint64_t client = fix_open(MS_ROLE_USER, "alice");
    fix_cancel(client, large, 0);

    ck_assert_ptr_nonnull(fix_heard(client, MS_MSG_OK));
    fix_job_is(large, "CANCELLED", "cancelled by alice");
}
END_TEST

START_TEST(higher_priority_goes_first)
{
    fix_standing();
    fix_submit(1, -1);
    fix_submit(1, 7);
    fix_submit(1, 7);

    uint64_t conn = fix_register("w0", 1);

    ck_assert_uint_eq(((const Ms__Assign *)fix_heard(conn, MS_MSG_ASSIGN))->job, 2);
}
END_TEST

START_TEST(cancel_of_the_first_lets_the_next_go)
{
    fix_standing();
    fix_register("w0", 1);
    fix_submit(2, 0);
    fix_submit(1, 0);
    uint64_t alice = fix_open(MS_ROLE_USER, "alice");

    fix_cancel(alice, 1, 0);

    ck_assert_ptr_nonnull(fix_heard(alice, MS_MSG_OK));
    ck_assert_int_eq(fix_stored(1)->state, JOB_CANCELLED);
    ck_assert_uint_eq(fix_count(MS_MSG_ASSIGN), 1);
}
END_TEST

/* ---- placement ----------------------------------------------------------------------------------
 */

START_TEST(assign_carries_everything_and_is_stored_first)
{
    fix_standing();
    uint64_t w10 = fix_register("w10", 1);
    uint64_t w2 = fix_register("w2", 2);

    fix_submit(2, 0);

    const Ms__Assign *first = fix_heard(w2, MS_MSG_ASSIGN);
    const Ms__Assign *second = fix_heard(w10, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(second);
    ck_assert_uint_eq(first->rank, 0); /* natural order: w2 before w10 */
    ck_assert_uint_eq(second->rank, 1);
    ck_assert_uint_eq(first->world_size, 2);
    ck_assert_uint_eq(first->generation, 1);
    ck_assert_uint_eq(first->n_members, 2);
    ck_assert_str_eq(first->members[1]->node_id, "w10");
    ck_assert_uint_eq(first->members[1]->incarnation, 1);
    ck_assert_str_eq(first->members[1]->data_address, "10.0.0.1:8200");
    ck_assert_str_eq(first->members[0]->cert_name, "host-certificate");
    ck_assert_uint_eq(first->job, 1);
    ck_assert_uint_eq(first->job_json.len, 2);
    ck_assert_mem_eq(first->job_json.data, "{}", 2);
    ck_assert_uint_eq(first->token.len, MS_TOKEN_LEN);
    ck_assert_mem_eq(first->token.data, second->token.data, MS_TOKEN_LEN);
    ck_assert_str_eq(first->isa, "avx2");
    ck_assert_int_eq(fix_stored(1)->state, JOB_PLACING);
    ck_assert_uint_eq(fix_stored(1)->generation, 1);
    ck_assert_uint_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->rank, 1);
    ck_assert_str_eq(fix_effect(SCHED_DO_PUT_MEMBER)->member->node_id, "w10");
}
END_TEST

START_TEST(each_rank_hears_what_the_hosts_of_all_offer)
{
    fix_standing();
    uint8_t cpus[2] = {0xf0, 0x0f};
    Ms__Offer offer = MS__OFFER__INIT;
    offer.cores = 8;
    offer.physical = 4;
    offer.cpu_milli = 3500;
    offer.cpuset.data = cpus;
    offer.cpuset.len = sizeof(cpus);
    const char *const ids[] = {"w1", "w2", "w3"};
    for (uint64_t i = 0; i < 3; i++) { /* w1 offers, w2 is of an older release, w3 has no CPU */
        uint64_t conn = fix_open(MS_ROLE_WORKER, "host-certificate");
        Ms__Register msg = fix_node(ids[i], i + 1);
        offer.cpuset.len = i == 2 ? 0 : sizeof(cpus);
        msg.offer = i == 1 ? NULL : &offer;
        fix_say(conn, MS_MSG_REGISTER, &msg.base);
    }
    uint64_t last = fix_register("w4", 4);

    fix_submit(4, 0);

    const Ms__Assign *assign = fix_heard(last, MS_MSG_ASSIGN);
    ck_assert_ptr_nonnull(assign);
    const Ms__Offer *heard = assign->members[0]->offer;
    ck_assert_ptr_nonnull(heard);
    ck_assert_uint_eq(heard->cores, 8);
    ck_assert_uint_eq(heard->physical, 4);
    ck_assert_uint_eq(heard->cpu_milli, 3500);
    ck_assert_uint_eq(heard->cpuset.len, sizeof(cpus));
    ck_assert_mem_eq(heard->cpuset.data, cpus, sizeof(cpus));
    ck_assert_ptr_null(assign->members[1]->offer);
    ck_assert_ptr_null(assign->members[2]->offer);
}
END_TEST

START_TEST(tokens_of_two_generations_differ)
{
    uint8_t token[MS_TOKEN_LEN];
    fix_standing();
    uint64_t conn = fix_register("w0", 1);
    fix_submit(1, 0);
    memcpy(token, ((const Ms__Assign *)fix_heard(conn, MS_MSG_ASSIGN))->token.data, MS_TOKEN_LEN);
    fix_done(conn, 1, 1, 0, MS_E_INVALID, "no data");

    fix_submit(1, 0);

    const Ms__Assign *again = fix_heard(conn, MS_MSG_ASSIGN);
    ck_assert_uint_eq(again->generation, 2);
    ck_assert_int_ne(memcmp(token, again->token.data, MS_TOKEN_LEN), 0);
}
END_TEST

static void register_on(const char *id, const char *host, const char *isa)
{
    uint64_t conn = fix_open(MS_ROLE_WORKER, host);
    Ms__Register msg = fix_node(id, fix.conns);
    msg.host_name = (char *)host;
    msg.host_id = (char *)host;
    msg.data_address = (char *)(strcmp(host, "h1") == 0 ? "10.0.0.9:1" : "10.0.0.1:1");
    msg.isa = (char *)isa;
    fix_say(conn, MS_MSG_REGISTER, &msg.base);
}

static const Ms__Assign *any_assign(void)
{
    for (size_t i = 0; i < fix.n_answers; i++) {
        if (fix.answers[i].type == MS_MSG_ASSIGN) {
            return (const Ms__Assign *)(void *)fix.answers[i].msg;
        }
    }
    return NULL;
}

START_TEST(ranks_of_a_host_are_side_by_side)
{
    fix_standing();
    register_on("a", "h2", "avx2");
    register_on("b", "h1", "avx2");
    register_on("c", "h2", "avx2");
    register_on("d", "h1", "avx2");

    fix_submit(4, 0);

    const Ms__Assign *assign = any_assign();
    ck_assert_str_eq(assign->members[0]->node_id, "b");
    ck_assert_str_eq(assign->members[1]->node_id, "d");
    ck_assert_str_eq(assign->members[2]->node_id, "a");
    ck_assert_str_eq(assign->members[3]->node_id, "c");
}
END_TEST

START_TEST(job_goes_to_the_smallest_host_that_holds_it)
{
    fix_standing();
    register_on("a0", "big", "avx2");
    register_on("a1", "big", "avx2");
    register_on("a2", "big", "avx2");
    register_on("b0", "small", "avx2");
    register_on("b1", "small", "avx2");
    register_on("c0", "tiny", "avx2");

    fix_submit(2, 0);

    const Ms__Assign *assign = any_assign();
    ck_assert_str_eq(assign->members[0]->host_name, "small");
    ck_assert_str_eq(assign->members[1]->host_name, "small");
}
END_TEST

START_TEST(isa_is_the_least_of_all_members)
{
    static const struct {
        const char *a, *b, *least;
    } rows[] = {
        {"avx512_core_amx", "avx512_core_amx", "avx512_core_amx"},
        {"avx512_core_amx", "avx512_core", "avx512_core"},
        {"avx512_core_vnni", "avx2_vnni", "avx2"},
        {"avx512_core_fp16", "avx512_core_amx", "avx512_core_bf16"},
        {"avx512_core_fp16", "avx2_vnni", "avx2_vnni"},
        {"avx2", "sse41", "sse41"},
        {"avx9000", "avx2", "sse41"},
        {"avx9000", "avx9000", "avx9000"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        fix_standing();
        register_on("a", "h", rows[i].a);
        register_on("b", "h", rows[i].b);
        fix_submit(2, 0);
        ck_assert_str_eq(any_assign()->isa, rows[i].least);
    }
}
END_TEST

START_TEST(numeric_ids_are_ranks_in_a_private_cluster)
{
    fix_start(SCHED_RUN, 0);
    register_on("1", "h1", "avx2");
    register_on("2", "h0", "avx2");
    register_on("0", "h2", "avx2");

    fix_submit(3, 0);

    const Ms__Assign *assign = any_assign();
    ck_assert_str_eq(assign->members[0]->node_id, "0");
    ck_assert_str_eq(assign->members[1]->node_id, "1");
    ck_assert_str_eq(assign->members[2]->node_id, "2");
}
END_TEST

static TCase *queue_cases(void)
{
    TCase *t = tcase_create("queue");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, submit_is_stored_before_it_is_acknowledged);
    tcase_add_test(t, same_key_gives_the_same_job);
    tcase_add_test(t, key_of_another_job_is_refused);
    tcase_add_test(t, keys_of_two_owners_are_two_keys);
    tcase_add_test(t, no_workers_and_too_many_are_refused);
    tcase_add_test(t, empty_job_is_refused);
    tcase_add_test(t, run_directory_is_for_private_schedulers);
    tcase_add_test(t, submit_while_draining_is_refused_and_nothing_is_placed);
    tcase_add_test(t, full_disk_lets_go_of_jobs_as_long_as_an_end_can_be_stored);
    tcase_add_test(t, full_disk_refuses_new_work_and_lets_the_rest_go_on);
    tcase_add_test(t, queued_job_says_what_it_waits_for);
    tcase_add_test(t, nobody_overtakes_within_a_priority);
    tcase_add_test(t, job_larger_than_the_cluster_lets_others_pass);
    tcase_add_test(t, large_job_is_first_again_when_it_can_fit);
    tcase_add_test(t, worker_that_restarts_lets_nobody_pass);
    tcase_add_test(t, doubt_begins_anew_with_each_loss);
    tcase_add_test(t, job_of_the_clusters_size_is_not_in_doubt);
    tcase_add_test(t, large_job_that_stepped_aside_can_be_cancelled);
    tcase_add_test(t, higher_priority_goes_first);
    tcase_add_test(t, cancel_of_the_first_lets_the_next_go);
    return t;
}

static TCase *place_cases(void)
{
    TCase *t = tcase_create("placement");
    tcase_add_checked_fixture(t, NULL, fix_end);
    tcase_add_test(t, assign_carries_everything_and_is_stored_first);
    tcase_add_test(t, each_rank_hears_what_the_hosts_of_all_offer);
    tcase_add_test(t, tokens_of_two_generations_differ);
    tcase_add_test(t, ranks_of_a_host_are_side_by_side);
    tcase_add_test(t, job_goes_to_the_smallest_host_that_holds_it);
    tcase_add_test(t, isa_is_the_least_of_all_members);
    tcase_add_test(t, numeric_ids_are_ranks_in_a_private_cluster);
    return t;
}

int main(void)
{
    Suite *s = suite_create("sched_queue");
    suite_add_tcase(s, queue_cases());
    suite_add_tcase(s, place_cases());
    return test_run(s);
}
