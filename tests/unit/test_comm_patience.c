/* test_comm_patience.c - how long a rank waits for one that waits itself, in another group or in
 * this one, and whom it names
 *
 * The ranks' patience differs, so who is out of it first is no matter of the machine's speed. */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum { FOR_EVER_MS = 120000 };

static const enum comm_mode same_host[] = {MODE_SHM, MODE_MIXED}; /* ranks 1 and 2 at least */

struct pair {
    const int *ranks;
    int n;
};

struct meeting {
    struct comm_case *c;
    int (*meet)(int rank, struct mesh *mesh, struct group *const *groups, struct ms_err *why);
    struct pair pairs[2]; /* groups 1 and 2 */
    int timeouts_ms[3];
    int victim; /* is stopped, -1: none */
    _Atomic int is_over;
    int codes[3], culprits[3];
    char texts[3][MS_ERR_TEXT_MAX];
};

static int meet(int rank, void *arg)
{
    struct meeting *p = arg;
    struct mesh_config cfg = comm_case_config(p->c, rank, 0);
    struct mesh *mesh = NULL;
    struct group *groups[2] = {NULL, NULL};
    struct ms_err why = {0};
    cfg.timeout_ms = FOR_EVER_MS;
    cfg.arg = p;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (int i = 0; i < 2; i++) {
        int is_in = 0;
        for (int k = 0; k < p->pairs[i].n; k++) {
            is_in |= p->pairs[i].ranks[k] == rank;
        }
        CHILD_OK(group_create(mesh, p->pairs[i].ranks, is_in ? p->pairs[i].n : 0, MS_F32, 0,
                              &groups[i], err));
    }
    mesh->cfg.timeout_ms = p->timeouts_ms[rank]; /* to meet took as long as it took */
    p->codes[rank] = p->meet(rank, mesh, groups, &why);
    snprintf(p->texts[rank], sizeof(p->texts[rank]), "%s", why.text);
    p->culprits[rank] = mesh_culprit(mesh);
    atomic_store(&p->is_over, 1);
    mesh_destroy(mesh);
    return 0;
}

static struct meeting *meeting_open(enum comm_mode mode, int world)
{
    struct meeting *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    p->c = comm_case_open(mode, world);
    p->victim = -1;
    for (int i = 0; i < 3; i++) {
        p->timeouts_ms[i] = FOR_EVER_MS;
    }
    return p;
}

static void run(struct meeting *p)
{
    struct ranks *ranks = &p->c->ranks;
    for (int i = 0; i < ranks->world; i++) {
        ranks->pids[i] = ranks_fork(meet, i, p);
    }
    for (int i = 0; i < ranks->world; i++) {
        int status = 0;
        if (i != p->victim) {
            ck_assert_int_eq(waitpid(ranks->pids[i], &status, 0), ranks->pids[i]);
            ck_assert_int_eq(status, 0);
        }
    }
    if (p->victim >= 0) {
        kill(ranks->pids[p->victim], SIGKILL);
        waitpid(ranks->pids[p->victim], NULL, 0);
    }
}

static void meeting_close(struct meeting *p)
{
    comm_case_close(p->c);
    munmap(p, sizeof(*p));
}

static void check_says(const struct meeting *p, int rank, int code, const char *part)
{
    ck_assert_msg(p->codes[rank] == code && strstr(p->texts[rank], part) != NULL,
                  "mode %d: rank %d says %s: %s", (int)p->c->mode, rank,
                  ms_code_name(p->codes[rank]), p->texts[rank]);
}

/* ---- rank 1 waits in group 1 for rank 2, which is busy in group 2 with rank 0 */

static const int with_2[] = {1, 2};
static const int with_0[] = {0, 2};

static int be_busy_elsewhere(int rank, struct mesh *mesh, struct group *const *groups,
                             struct ms_err *why)
{
    struct meeting *p = mesh->cfg.arg;
    int rc = rank == 1 ? group_barrier(groups[0], why) : 0;
    while (rc == 0 && !atomic_load(&p->is_over)) {
        rc = group_barrier(groups[1], why);
    }
    return rc == 0 ? mesh_barrier(mesh, why) : rc;
}

static void check_waited(const struct meeting *p, int rank)
{
    const char *at = strstr(p->texts[rank], "waited ");
    double waited_ms = at != NULL ? 1e3 * strtod(at + strlen("waited "), NULL) : 0;
    ck_assert_msg(waited_ms >= p->timeouts_ms[rank] && waited_ms < 4.0 * p->timeouts_ms[rank],
                  "rank %d, with %d ms: %s", rank, p->timeouts_ms[rank], p->texts[rank]);
}

START_TEST(what_goes_on_in_another_group_is_no_excuse_for_ever)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(same_host); m++) {
        struct meeting *p = meeting_open(same_host[m], 3);
        p->meet = be_busy_elsewhere;
        p->pairs[0] = (struct pair){with_2, 2};
        p->pairs[1] = (struct pair){with_0, 2};
        p->timeouts_ms[1] = 700;

        run(p);

        check_says(p, 1, MS_E_TIMEOUT, "for rank 2 (node w2 on host localhost) to come to barrier");
        check_says(p, 1, MS_E_TIMEOUT, "in group 1");
        check_waited(p, 1);
        meeting_close(p);
    }
}
END_TEST

/* Rank 0 hangs. Rank 2 finds out last, for rank 1 began to wait before it, and has less patience.
 */
static int wait_for_who_waits(int rank, struct mesh *mesh, struct group *const *groups,
                              struct ms_err *why)
{
    (void)mesh;
    if (rank == 0) {
        kill(getpid(), SIGSTOP);
    }
    if (rank == 1) {
        return group_barrier(groups[0], why);
    }
    while (atomic_load(&groups[0]->counters[groups[0]->peers[0].local]->sequence) == 0) {
        sched_yield(); /* until rank 1 is there */
    }
    return group_barrier(groups[1], why);
}

START_TEST(who_waits_for_a_rank_that_waits_elsewhere_hears_from_it_whom_to_name)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(same_host); m++) {
        struct meeting *p = meeting_open(same_host[m], 3);
        p->meet = wait_for_who_waits;
        p->victim = 0;
        p->pairs[0] = (struct pair){with_2, 2};
        p->pairs[1] = (struct pair){with_0, 2};
        p->timeouts_ms[1] = 1500;
        p->timeouts_ms[2] = 2000;

        run(p);

        check_says(p, 2, MS_E_TIMEOUT, "for rank 0 (node w0 on host localhost)");
        check_says(p, 1, MS_E_CLOSED, "rank 0 (node w0 on host localhost) is lost, as rank 2");
        meeting_close(p);
    }
}
END_TEST

static const int both[] = {0, 1};

static int wait_for_each_other(int rank, struct mesh *mesh, struct group *const *groups,
                               struct ms_err *why)
{
    (void)mesh;
    return group_barrier(groups[rank], why);
}

START_TEST(ranks_that_wait_for_each_other_in_two_groups_end_and_say_so)
{
    static const enum comm_mode ways[] = {MODE_SHM, MODE_TCP};
    for (size_t m = 0; m < MS_ARRAY_SIZE(ways); m++) {
        struct meeting *p = meeting_open(ways[m], 2);
        p->meet = wait_for_each_other;
        p->pairs[0] = (struct pair){both, 2};
        p->pairs[1] = (struct pair){both, 2};
        p->timeouts_ms[0] = 700;

        run(p);

        check_says(p, 0, MS_E_TIMEOUT, "for rank 1 (node w1 on host localhost) to ");
        check_says(p, 0, MS_E_TIMEOUT, "barrier at step 0 in group 1");
        check_says(p, 0, MS_E_TIMEOUT,
                   ways[m] == MODE_SHM
                       ? "while it waited in barrier of group 2 for rank 0 (node w0 on host "
                         "localhost)"
                       : "");
        check_says(p, 1, MS_E_CLOSED, "rank 0 (node w0 on host localhost) gave this rank up");
        check_says(p, 1, MS_E_CLOSED, "barrier at step 0 in group 2");
        check_waited(p, 0);
        meeting_close(p);
    }
}
END_TEST

/* ---- within one group: a broadcast's root, whose ring is full, and what a rank says of itself */

enum { PIECES = 2 * SHM_RING_PIECES, BROADCAST = PIECES * SHM_RING_PIECE };

/* Until a rank of this host has come to the sync that is the next one here. */
static void let_come(const struct group *group, int rank)
{
    while (atomic_load(&group->counters[group->peers[rank].local]->sequence) <= group->syncs) {
        sched_yield();
    }
}

/* Comes to the second broadcast, and neither reads nor writes. */
static int come_and_hang(struct group *all, int root, struct ms_err *why)
{
    int rc = group_enter(all, MESH_BROADCAST, (uint64_t)root, BROADCAST, why);
    shm_arrive(all);
    rc = rc == 0 ? shm_await(all, why) : rc;
    kill(getpid(), SIGSTOP);
    return rc;
}

/* From rank 0, after one from rank 1. */
static int spread(int rank, struct mesh *mesh, struct group *const *groups, struct ms_err *why)
{
    static uint8_t data[BROADCAST];
    struct meeting *p = mesh->cfg.arg;
    (void)groups;
    mesh->cfg.timeout_ms = FOR_EVER_MS;
    int rc = mesh_broadcast(mesh, data, sizeof(data), 1, why);
    if (rc == 0 && rank == p->victim) {
        rc = come_and_hang(mesh_all(mesh), 0, why);
    }
    for (int i = 0; rc == 0 && p->timeouts_ms[rank] < FOR_EVER_MS && i < 3; i++) {
        if (i != rank) {
            let_come(mesh_all(mesh), i);
        }
    }
    mesh->cfg.timeout_ms = p->timeouts_ms[rank];
    return rc == 0 ? mesh_broadcast(mesh, data, sizeof(data), 0, why) : rc;
}

static void check_hangs_in_broadcast(int victim, int finder)
{
    struct meeting *p = meeting_open(MODE_SHM, 3);
    char who[64];
    int other = 3 - victim - finder;
    snprintf(who, sizeof(who), "rank %d (node w%d on host localhost)", victim, victim);
    p->meet = spread;
    p->victim = victim;
    p->timeouts_ms[finder] = 700;

    run(p);

    check_says(p, finder, MS_E_TIMEOUT, who);
    check_says(p, finder, MS_E_TIMEOUT, "it hangs or was stopped");
    check_says(p, other, MS_E_CLOSED, who);
    ck_assert_int_eq(p->culprits[finder], victim);
    ck_assert_int_eq(p->culprits[other], victim);
    meeting_close(p);
}

START_TEST(who_does_not_read_a_broadcast_is_blamed_by_reader_and_root)
{
    check_hangs_in_broadcast(2, 1);
    check_hangs_in_broadcast(2, 0);
    check_hangs_in_broadcast(1, 2);
}
END_TEST

START_TEST(a_root_that_stops_in_a_broadcast_is_blamed)
{
    check_hangs_in_broadcast(0, 1);
}
END_TEST

/* Rank 2 does not come, and says without end that it waits for ranks of other hosts. */
static int lie_about_waits(int rank, struct mesh *mesh, struct group *const *groups,
                           struct ms_err *why)
{
    struct meeting *p = mesh->cfg.arg;
    struct group *all = mesh_all(mesh);
    (void)groups;
    while (rank == 2 && !atomic_load(&p->is_over)) {
        atomic_fetch_add(&all->counters[all->self]->waits, 1);
        sched_yield();
    }
    if (rank == 0) {
        let_come(all, 1);
    }
    return mesh_barrier(mesh, why);
}

START_TEST(where_no_rank_is_of_another_host_nobody_waits_for_one)
{
    struct meeting *p = meeting_open(MODE_SHM, 3);
    p->meet = lie_about_waits;
    p->timeouts_ms[0] = 700;

    run(p);

    check_says(p, 0, MS_E_TIMEOUT, "for rank 2 (node w2 on host localhost) to come to barrier");
    check_waited(p, 0);
    meeting_close(p);
}
END_TEST

static void hear(void *arg, const char *text)
{
    struct meeting *p = arg;
    snprintf(p->texts[2], sizeof(p->texts[2]), "%s", text);
    atomic_store(&p->is_over, 1);
}

/* Rank 1 waits for rank 0, of another host, which comes when rank 2 was told that it waits. */
static int wait_for_who_waits_afar(int rank, struct mesh *mesh, struct group *const *groups,
                                   struct ms_err *why)
{
    struct meeting *p = mesh->cfg.arg;
    uint8_t byte = 0;
    (void)groups;
    if (rank == 2) {
        const struct group *all = mesh_all(mesh);
        const struct shm_wait *places = all->counters[all->peers[1].local]->places;
        while (atomic_load(&places[0].whom) >> 32 != MESH_BROADCAST) {
            sched_yield();
        }
        mesh->cfg.warn_ms = 400;
        mesh->cfg.on_wait = hear;
    }
    while (rank == 0 && !atomic_load(&p->is_over)) {
        sched_yield();
    }
    int rc = mesh_broadcast(mesh, &byte, 1, 0, why);
    snprintf(why->text, sizeof(why->text), "%s", p->texts[rank]);
    return rc;
}

START_TEST(a_long_wait_is_told_also_where_the_other_one_waits_itself)
{
    struct meeting *p = meeting_open(MODE_MIXED, 3);
    p->meet = wait_for_who_waits_afar;

    run(p);

    check_says(p, 2, 0, "for rank 1 (node w1 on host localhost) to come to broadcast");
    check_says(p, 2, 0,
               ", while it waited for ranks of other hosts; without a sign of them given up ");
    meeting_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_patience");
    TCase *tc = tcase_create("patience");
    tcase_add_test(tc, what_goes_on_in_another_group_is_no_excuse_for_ever);
    tcase_add_test(tc, who_waits_for_a_rank_that_waits_elsewhere_hears_from_it_whom_to_name);
    tcase_add_test(tc, ranks_that_wait_for_each_other_in_two_groups_end_and_say_so);
    tcase_add_test(tc, who_does_not_read_a_broadcast_is_blamed_by_reader_and_root);
    tcase_add_test(tc, a_root_that_stops_in_a_broadcast_is_blamed);
    tcase_add_test(tc, where_no_rank_is_of_another_host_nobody_waits_for_one);
    tcase_add_test(tc, a_long_wait_is_told_also_where_the_other_one_waits_itself);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
