/* test_comm_culprit.c - the mesh's culprit is the rank whose fault ended it, and nobody before
 *
 * Peers go where they are not wanted any more, and a later failure has to name another one. */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum { FOR_EVER_MS = 120000 };

struct culprit {
    struct comm_case *c;
    int (*play)(int rank, struct culprit *culprit, struct mesh *mesh);
    int victim;             /* is stopped, or goes without a word */
    _Atomic int has_looked; /* rank 0 knows that rank 2 is gone */
    int codes[3], before[3], after[3];
    char texts[3][MS_ERR_TEXT_MAX];
};

static struct culprit *shared; /* in this process and the ranks */

int __real_group_check_peers(struct group *group, struct ms_err *err);
int __wrap_group_check_peers(struct group *group, struct ms_err *err);

static int has_arrived(const struct group *group, int rank, uint64_t sync)
{
    return atomic_load(&group->counters[group->peers[rank].local]->sequence) >= sync;
}

/* Rank 0 has just found the dead one; before it looks who is missing, the last one comes. */
int __wrap_group_check_peers(struct group *group, struct ms_err *err)
{
    int rc = __real_group_check_peers(group, err);
    if (rc < 0 && group->mesh->cfg.rank == 0 && shared->victim < 0) {
        atomic_store(&shared->has_looked, 1);
        while (!has_arrived(group, 1, group->syncs)) {
            sched_yield();
        }
    }
    return rc;
}

static int enter(int rank, void *arg)
{
    struct mesh_config cfg = comm_case_config(shared->c, rank, 0);
    struct mesh *mesh = NULL;
    (void)arg;
    cfg.timeout_ms = FOR_EVER_MS;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int failed = shared->play(rank, shared, mesh);
    shared->after[rank] = mesh_culprit(mesh);
    mesh_destroy(mesh);
    return failed;
}

static void run(int (*play)(int rank, struct culprit *culprit, struct mesh *mesh), int victim)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    shared->c = comm_case_open(MODE_SHM, 3);
    shared->play = play;
    shared->victim = victim;
    struct ranks *ranks = &shared->c->ranks;
    for (int i = 0; i < 3; i++) {
        shared->before[i] = shared->after[i] = -2;
        ranks->pids[i] = ranks_fork(enter, i, NULL);
    }
    for (int i = 0; i < 3; i++) {
        int status = 0;
        if (i != victim) {
            ck_assert_int_eq(waitpid(ranks->pids[i], &status, 0), ranks->pids[i]);
            ck_assert_int_eq(status, 0);
        }
    }
    if (victim >= 0) {
        kill(ranks->pids[victim], SIGKILL);
        waitpid(ranks->pids[victim], NULL, 0);
    }
}

static void done(void)
{
    comm_case_close(shared->c);
    munmap(shared, sizeof(*shared));
}

/* Rank 1 leaves a group of two first, so that rank 0 cannot say goodbye to it there. */
static void part(int rank, struct group *pair)
{
    if (rank == 0) {
        while (!link_is_hung_up(&pair->peers[1].stream.link)) {
            sched_yield();
        }
    }
    group_destroy(pair);
}

static int part_and_go_on(int rank, struct culprit *culprit, struct mesh *mesh)
{
    const int both[] = {0, 1};
    struct group *pair = NULL;
    struct ms_err why = {0};
    CHILD_OK(group_create(mesh, both, rank < 2 ? 2 : 0, MS_F32, 0, &pair, err));
    if (pair != NULL) {
        part(rank, pair);
    }
    culprit->before[rank] = mesh_culprit(mesh);
    CHILD_OK(mesh_barrier(mesh, err));
    if (rank == culprit->victim) {
        kill(getpid(), SIGSTOP);
    }
    while (rank == 0 && !has_arrived(mesh_all(mesh), 1, mesh_all(mesh)->syncs + 1)) {
        sched_yield();
    }
    mesh->cfg.timeout_ms = rank == 0 ? 300 : FOR_EVER_MS;
    culprit->codes[rank] = mesh_barrier(mesh, &why);
    snprintf(culprit->texts[rank], sizeof(culprit->texts[rank]), "%s", why.text);
    return 0;
}

static void check_blames_2(int rank, int code, const char *part)
{
    ck_assert_msg(shared->codes[rank] == code && shared->after[rank] == 2 &&
                      strstr(shared->texts[rank], "rank 2 (node w2 on host localhost)") != NULL &&
                      strstr(shared->texts[rank], part) != NULL,
                  "rank %d blames %d: %s: %s", rank, shared->after[rank],
                  ms_code_name(shared->codes[rank]), shared->texts[rank]);
}

START_TEST(a_group_that_ended_well_leaves_nobody_to_blame)
{
    run(part_and_go_on, 2);

    ck_assert_int_eq(shared->before[0], -1);
    ck_assert_int_eq(shared->before[1], -1);
    check_blames_2(0, MS_E_TIMEOUT, "waited ");
    check_blames_2(1, MS_E_CLOSED, "is lost, as rank 0 reports");
    done();
}
END_TEST

/* Rank 2 comes to the barrier and is gone at once; rank 1 comes when rank 0 has seen that. */
static int come_and_go(int rank, struct culprit *culprit, struct mesh *mesh)
{
    struct group *all = mesh_all(mesh);
    if (rank == 2) {
        CHILD_OK(group_enter(all, MESH_BARRIER, 0, 0, err));
        shm_arrive(all);
        _exit(0);
    }
    while (rank == 1 && !atomic_load(&culprit->has_looked)) {
        sched_yield();
    }
    CHILD_OK(mesh_barrier(mesh, err));
    return 0;
}

START_TEST(who_has_died_after_it_came_is_not_to_blame_yet)
{
    run(come_and_go, -1);

    ck_assert_int_eq(shared->after[0], -1);
    done();
}
END_TEST

/* An end that is nobody's fault stays so, whatever fails then. */
static int give_up(int rank, struct culprit *culprit, struct mesh *mesh)
{
    if (rank == 2) {
        _exit(0);
    }
    mesh_abort(mesh, "enough");
    culprit->codes[rank] = mesh_barrier(mesh, NULL);
    return 0;
}

START_TEST(an_abort_has_no_culprit)
{
    run(give_up, -1);

    for (int rank = 0; rank < 2; rank++) {
        ck_assert_int_eq(shared->codes[rank], MS_E_ABORTED);
        ck_assert_int_eq(shared->after[rank], -1);
    }
    done();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_culprit");
    TCase *tc = tcase_create("culprit");
    tcase_add_test(tc, a_group_that_ended_well_leaves_nobody_to_blame);
    tcase_add_test(tc, who_has_died_after_it_came_is_not_to_blame_yet);
    tcase_add_test(tc, an_abort_has_no_culprit);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
