/* test_store_large.c - large texts and many rows on a disk that gets full: what one turn decides is
 * stored, whatever it is, and what runs can still end */
#include "daemon/sched/cost.h"
#include "daemon/store/files.h"
#include "proto/digest.h"
#include "tests/unit/store_fixture.h"

#include <unistd.h>

static char text[MS_SPEC_MAX > MS_PLAN_MAX ? MS_SPEC_MAX + 1 : MS_PLAN_MAX + 1];

static void setup_large(void)
{
    setup();
    memset(text, 'x', sizeof(text) - 1);
}

/* A submit with a job file of so many bytes, awaited: nothing else is in its transaction. */
static int submit(uint64_t id, size_t bytes)
{
    struct sched_job_row job = make_job(id);
    job.spec = (const uint8_t *)text;
    job.spec_bytes = bytes;
    return put(&job);
}

/* The ends of so many jobs, as ranks report them. */
static void end_jobs(uint64_t n)
{
    for (uint64_t id = 1; id <= n; id++) {
        struct sched_job_row job = make_job(id);
        job.state = JOB_FAILED;
        job.spec = NULL;
        snprintf(job.reason, sizeof(job.reason), "rank 1 on w%llu was lost: %0200d",
                 (unsigned long long)id, 0);
        ck_assert_int_ge(put(&job), 0);
    }
}

/* Nobody pauses, so that the log is not folded in by the way: what waits in it has to go into the
 * database one day, and finds the room for that. */
START_TEST(awaited_submits_with_large_texts_end_in_a_refusal_not_in_the_end)
{
    static const struct {
        int64_t room;
        size_t bytes;
    } cases[] = {{1 << 20, MS_SPEC_MAX}, {8 << 20, 60 << 10},     {8 << 20, MS_SPEC_MAX},
                 {30 << 20, 60 << 10},   {30 << 20, MS_SPEC_MAX}, {90 << 20, 60 << 10},
                 {8 << 20, 100},         {90 << 20, MS_SPEC_MAX}};
    const int whys[] = {ENOSPC, EDQUOT};
    uint64_t id = 0;
    int rc = 0;
    full_errno = whys[_i % 2];
    disk_left = cases[_i / 2].room;

    while (rc == 0) {
        rc = submit(++id, cases[_i / 2].bytes);
        ck_assert_uint_lt(id, 1000000);
    }

    ck_assert_int_eq(rc, 1);
    ck_assert_uint_ge(store_reserve_held(path), MS_STORE_ENDS);
    disk_left = 100; /* and somebody takes what it left */
    end_jobs(id < 200 ? id : 200);
    disk_left = INT64_MAX;
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_int_eq(submit(id + 1, MS_SPEC_MAX), 0);
    reopen();
    ck_assert_uint_eq(loaded.jobs_n, id + 1);
}
END_TEST

/* New work is refused, and what ends goes on into the room that comes and goes: none of it waits in
 * the log for more than is left of the reserve. */
START_TEST(ends_with_large_results_do_not_wait_in_the_log_for_room_that_is_gone)
{
    enum { ENDS = 40, RESULTS = 60 << 10 };
    char reserve[160];
    uint64_t id = 0;
    snprintf(reserve, sizeof(reserve), "%s.reserve", path);
    while (id < ENDS) {
        ck_assert_int_eq(submit(++id, 100), 0);
    }
    ck_assert_int_eq(store_idle(store), 0);
    disk_left = 100;
    ck_assert_int_eq(submit(++id, MS_SPEC_MAX), 1);
    ck_assert_int_eq(truncate(reserve, MS_STORE_LAST), 0);
    disk_left = 2 * ENDS * RESULTS;

    for (uint64_t end = 1; end <= ENDS; end++) {
        struct sched_job_row job = make_job(end);
        job.state = JOB_FAILED;
        job.spec = NULL;
        job.results = (const uint8_t *)text;
        job.results_bytes = RESULTS;
        disk_left = end == ENDS ? 100 : disk_left; /* somebody took it */
        ck_assert_int_eq(put(&job), 1);
    }

    ck_assert_uint_ge(store_reserve_held(path), MS_STORE_LAST - MS_STORE_PIECE);
}
END_TEST

/* ---- what one transaction may be ----------------------------------------------------------------
 */

enum { EFFECTS_MAX = 4096 };

static struct sched_effect effects[EFFECTS_MAX];
static struct sched_job_row jobs[EFFECTS_MAX];
static struct sched_member_row members[MS_WORKERS_MAX];
static struct sched_plan_row plan;
static size_t n_effects, n_jobs, cost;

static void add(struct sched_effect effect)
{
    ck_assert_uint_lt(n_effects, EFFECTS_MAX);
    effects[n_effects++] = effect;
    cost += sched_effect_cost(&effect);
}

static void begin(void)
{
    n_effects = n_jobs = cost = 0;
}

static void fill_text(char *buf, size_t size, char c)
{
    memset(buf, c, size - 1);
    buf[size - 1] = '\0';
}

static void add_job(uint64_t id, size_t bytes)
{
    struct sched_job_row *job = &jobs[n_jobs++];
    *job = make_job(id);
    fill_text(job->run_dir, sizeof(job->run_dir), 'd');
    job->spec = (const uint8_t *)text;
    job->spec_bytes = bytes;
    add((struct sched_effect){.kind = SCHED_DO_PUT_JOB, .job = job});
}

static void add_plan(void)
{
    plan = (struct sched_plan_row){.text = text, .bytes = MS_PLAN_MAX};
    uint8_t digest[MS_SHA256_BYTES];
    ms_sha256(text, MS_PLAN_MAX, digest);
    ms_sha256_hex(digest, plan.sha256);
    add((struct sched_effect){.kind = SCHED_DO_PUT_PLAN, .plan = &plan});
}

/* All ranks of a job, with the longest names that there are. */
static void add_members(uint64_t job)
{
    for (uint32_t rank = 0; rank < MS_WORKERS_MAX; rank++) {
        struct sched_member_row *member = &members[rank];
        *member = (struct sched_member_row){.job = job, .rank = rank, .incarnation = UINT64_MAX};
        fill_text(member->node_id, sizeof(member->node_id), 'n');
        fill_text(member->host_name, sizeof(member->host_name), 'h');
        fill_text(member->log_path, sizeof(member->log_path), 'l');
        fill_text(member->principal, sizeof(member->principal), 'p');
        fill_text(member->state, sizeof(member->state), 's');
        add((struct sched_effect){.kind = SCHED_DO_PUT_MEMBER, .member = member});
    }
}

/* All nodes of a job are lost with it. */
static void add_losses(void)
{
    static struct sched_event_row losses[MS_WORKERS_MAX];
    static char node[MS_NAME_MAX + 1], principal[MS_PRINCIPAL_MAX + 1], words[120];
    fill_text(node, sizeof(node), 'n');
    fill_text(principal, sizeof(principal), 'p');
    fill_text(words, sizeof(words), 'w');
    for (uint32_t i = 0; i < MS_WORKERS_MAX; i++) {
        losses[i] = (struct sched_event_row){.seq = 1 + i,
                                             .kind = "node.lost",
                                             .node = node,
                                             .principal = principal,
                                             .text = words,
                                             .facts = "{\"how\":\"missing\"}"};
        add((struct sched_effect){.kind = SCHED_DO_PUT_EVENT, .event = &losses[i]});
    }
}

/* Of as many events as one turn may hold, each tells of 64 ranks. */
static void add_rounds(void)
{
    enum { ROUNDS = 100 };
    static struct sched_event_row rounds[ROUNDS];
    static char facts[MS_FACTS_MAX + 1], words[MS_TEXT_MAX + 1];
    fill_text(facts, sizeof(facts), 'f');
    fill_text(words, sizeof(words), 'w');
    for (uint32_t i = 0; i < ROUNDS; i++) {
        rounds[i] = (struct sched_event_row){.seq = 1 + i,
                                             .kind = "job.recovering",
                                             .job = 1,
                                             .node = "",
                                             .principal = "user:alice",
                                             .text = words,
                                             .facts = facts};
        add((struct sched_effect){.kind = SCHED_DO_PUT_EVENT, .event = &rounds[i]});
    }
}

static off_t size_of_log(void)
{
    char log[160];
    struct stat st;
    snprintf(log, sizeof(log), "%s-wal", path);
    return stat(log, &st) == 0 ? st.st_size : 0;
}

static uint64_t add_jobs(uint64_t id, size_t bytes, size_t up_to)
{
    while (cost < up_to) {
        add_job(++id, bytes);
    }
    return id;
}

/* Where it were less, the sizes in limits.h would follow from nothing. */
START_TEST(a_row_takes_no_more_of_the_log_than_it_is_said_to_cost)
{
    enum { META = 64 << 10 }; /* the ledger, numbers of the store's own */
    ck_assert_int_eq(submit(1, 100), 0);
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_int_eq(size_of_log(), 0);
    begin();
    switch (_i) {
    case 0:
        add_jobs(1, MS_SPEC_MAX, MS_TURN_STORE);
        break;
    case 1:
        add_jobs(1, 60, MS_TURN_STORE);
        break;
    case 2:
        add_jobs(1, 3000, MS_TURN_STORE);
        break;
    case 3:
        add_jobs(1, 4200, MS_TURN_STORE);
        break;
    case 4:
        add_members(1);
        break;
    case 5:
        add_losses();
        break;
    case 6:
        add_rounds();
        break;
    default:
        add_plan();
        break;
    }

    ck_assert_int_eq(store_commit(store, effects, n_effects, NULL), 0);

    ck_assert_uint_le((uint64_t)size_of_log(), cost + META);
    ck_assert_uint_gt((uint64_t)size_of_log(), cost / 3); /* and not out of all proportion */
}
END_TEST

/* A job that is put again as it stands: its text is written once more where its words change. */
START_TEST(an_update_of_a_job_costs_its_text_too)
{
    ck_assert_int_eq(submit(1, MS_SPEC_MAX), 0);
    ck_assert_int_eq(store_idle(store), 0);
    begin();
    add_job(1, MS_SPEC_MAX);
    jobs[0].spec = NULL;
    cost = sched_effect_cost(&effects[0]);

    ck_assert_int_eq(store_commit(store, effects, n_effects, NULL), 0);

    ck_assert_uint_gt((uint64_t)size_of_log(), MS_SPEC_MAX);
    ck_assert_uint_le((uint64_t)size_of_log(), cost + (16 << 10));
}
END_TEST

/* What goes costs less than what comes: pages that become free are not written, or seldom. */
START_TEST(what_goes_takes_no_more_than_it_is_said_to_cost)
{
    begin();
    add_job(1, MS_SPEC_MAX);
    add_members(1);
    if (_i == 3) {
        add_rounds();
    } else {
        add_losses();
    }
    const uint64_t n_events = _i == 3 ? 100 : MS_WORKERS_MAX;
    ck_assert_int_eq(store_commit(store, effects, n_effects, NULL), 0);
    ck_assert_int_eq(store_idle(store), 0);
    begin();
    if (_i >= 2) {
        for (uint64_t seq = 1; seq <= n_events; seq++) {
            add((struct sched_effect){.kind = SCHED_DO_DROP_EVENT, .event_seq = seq});
        }
    } else {
        add((struct sched_effect){
            .kind = SCHED_DO_DROP_MEMBERS, .job_id = 1, .workers = MS_WORKERS_MAX});
    }
    if (_i == 1) {
        add((struct sched_effect){.kind = SCHED_DO_DROP_JOB, .job_id = 1});
    }

    ck_assert_int_eq(store_commit(store, effects, n_effects, NULL), 0);

    ck_assert_uint_le((uint64_t)size_of_log(), cost + (64 << 10));
}
END_TEST

/* Nothing else than the reserve is left, and the log before it is as long as it may be. */
START_TEST(the_largest_turn_fits_the_reserve_and_leaves_what_ends_need)
{
    uint64_t id = 0;
    while (size_of_log() < MS_STORE_UNFOLDED - (100 << 10)) {
        ck_assert_int_eq(submit(++id, 60 << 10), 0);
    }
    begin();
    id = add_jobs(id, _i == 0 ? MS_SPEC_MAX : 100, MS_TURN_STORE);
    add_job(++id, MS_SPEC_MAX);
    add_plan();
    add_members(id);
    add_losses();
    ck_assert_uint_ge(cost, MS_STORE_BATCH - (512 << 10));
    disk_left = 100;

    ck_assert_int_eq(store_commit(store, effects, n_effects, NULL), 1);

    ck_assert_uint_ge(store_reserve_held(path), MS_STORE_ENDS);
    disk_left = 100;
    ck_assert_int_eq(store_idle(store), 1);
    end_jobs(10);
    disk_left = INT64_MAX;
    ck_assert_int_eq(store_idle(store), 0);
    ck_assert_int_eq(submit(++id, 100), 0);
    reopen();
    ck_assert_uint_eq(loaded.jobs_n, id);
    ck_assert_uint_eq(loaded.members_n, MS_WORKERS_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_large");
    TCase *tcase = tcase_create("store_large");
    tcase_add_checked_fixture(tcase, setup_large, teardown);
    tcase_add_loop_test(tcase, awaited_submits_with_large_texts_end_in_a_refusal_not_in_the_end, 0,
                        16);
    tcase_add_test(tcase, ends_with_large_results_do_not_wait_in_the_log_for_room_that_is_gone);
    tcase_add_loop_test(tcase, a_row_takes_no_more_of_the_log_than_it_is_said_to_cost, 0, 8);
    tcase_add_test(tcase, an_update_of_a_job_costs_its_text_too);
    tcase_add_loop_test(tcase, what_goes_takes_no_more_than_it_is_said_to_cost, 0, 4);
    tcase_add_loop_test(tcase, the_largest_turn_fits_the_reserve_and_leaves_what_ends_need, 0, 2);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
