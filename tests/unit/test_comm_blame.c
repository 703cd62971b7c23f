/* test_comm_blame.c - who is named where a group, or the whole mesh, could not be made
 *
 * A rank hangs, or cannot reach another one, in the middle of a join. Joins go through the test,
 * and so does their clock: rank 0 is out of patience when the test wants it, and never before. */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum { FLOATS = 500, FOR_EVER_MS = 120000 };

static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_TLS, MODE_MIXED};

struct blame {
    struct comm_case *c;
    uint32_t number;        /* of the group that cannot be made */
    int stops;              /* rank 2 stops within its join; else it cannot reach rank 0 */
    int join_ms;            /* patience of rank 0 once the test lets it lose it ... */
    int barrier_ms;         /* ... and of rank 3 once it is in no group; 0: for ever */
    _Atomic int is_through; /* rank 1 has joined */
    _Atomic int has_named;  /* ... and has said whom it blames */
    int codes[4], culprits[4];
    char texts[4][MS_ERR_TEXT_MAX];
};

static struct blame *blame;

int __real_group_join(struct group *group, struct ms_err *err);
int __wrap_group_join(struct group *group, struct ms_err *err);
uint64_t __real_group_clock(struct group *group);
uint64_t __wrap_group_clock(struct group *group);

int __wrap_group_join(struct group *group, struct ms_err *err)
{
    struct mesh_config *cfg = &group->mesh->cfg;
    if (cfg->rank == 2 && group->number == blame->number) {
        struct mesh_member *first = (struct mesh_member *)(uintptr_t)cfg->members;
        if (blame->stops) {
            kill(getpid(), SIGSTOP);
        }
        first->data_unix = "msched-nobody";
        first->data_address = "127.0.0.1:1";
    }
    return __real_group_join(group, err);
}

static int has_joined(const struct group *group, int rank)
{
    return group->peers[rank].stream.link.fd >= 0;
}

uint64_t __wrap_group_clock(struct group *group)
{
    struct mesh_config *cfg = &group->mesh->cfg;
    if (cfg->rank == 0 && group->number == blame->number && has_joined(group, 1) &&
        (blame->stops || atomic_load(&blame->is_through))) {
        cfg->timeout_ms = blame->join_ms;
    }
    return __real_group_clock(group);
}

static struct blame *blame_open(enum comm_mode mode, int world, uint32_t number)
{
    blame = mmap(NULL, sizeof(*blame), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(blame, MAP_FAILED);
    blame->c = comm_case_open(mode, world);
    blame->number = number;
    blame->join_ms = 100;
    for (int i = 0; i < 4; i++) {
        blame->culprits[i] = -2;
    }
    return blame;
}

static void blame_close(void)
{
    comm_case_close(blame->c);
    munmap(blame, sizeof(*blame));
}

/* The mesh, the group of the first three, a barrier of it: as far as it goes. */
static int make_both(const struct mesh_config *cfg, struct mesh **mesh, struct ms_err *why)
{
    const int ranks[] = {0, 1, 2};
    struct group *group = NULL;
    int rc = mesh_create(cfg, mesh, why);
    if (rc == 0 && blame->number > 0) {
        rc = group_create(*mesh, ranks, cfg->rank < 3 ? 3 : 0, MS_F32, FLOATS, &group, why);
    }
    if (rc == 0 && cfg->rank == 1) {
        atomic_store(&blame->is_through, 1);
    }
    if (rc == 0 && cfg->rank == 3 && blame->barrier_ms > 0) {
        (*mesh)->cfg.timeout_ms = blame->barrier_ms;
    }
    return rc == 0 ? group_barrier(group != NULL ? group : mesh_all(*mesh), why) : rc;
}

static int try_to_make(int rank, void *arg)
{
    struct mesh_config cfg = comm_case_config(blame->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct ms_err why = {0};
    (void)arg;
    cfg.timeout_ms = FOR_EVER_MS;
    cfg.ret_culprit = &blame->culprits[rank];
    int rc = make_both(&cfg, &mesh, &why);
    blame->codes[rank] = rc;
    snprintf(blame->texts[rank], sizeof(blame->texts[rank]), "%s", why.text);
    if (mesh != NULL) {
        blame->culprits[rank] = mesh_culprit(mesh);
    }
    if (rank == 1) {
        atomic_store(&blame->has_named, 1);
    }
    while (rank == 0 && !blame->stops && !atomic_load(&blame->has_named)) {
        sched_yield(); /* the group alone has said goodbye, the mesh not yet */
    }
    mesh_destroy(mesh);
    return 0;
}

/* All but rank 2, which is killed then. */
static void run(void)
{
    struct ranks *ranks = &blame->c->ranks;
    for (int i = 0; i < ranks->world; i++) {
        ranks->pids[i] = ranks_fork(try_to_make, i, NULL);
    }
    for (int i = 0; i < ranks->world; i++) {
        int status = 0;
        if (i != 2) {
            ck_assert_int_eq(waitpid(ranks->pids[i], &status, 0), ranks->pids[i]);
            ck_assert_int_eq(status, 0);
        }
    }
    kill(ranks->pids[2], SIGKILL);
    waitpid(ranks->pids[2], NULL, 0);
}

static void check_names_rank_2(int rank, int code, const char *part)
{
    ck_assert_msg(blame->codes[rank] == code && blame->culprits[rank] == 2 &&
                      strstr(blame->texts[rank], "rank 2 (node w2 on host localhost)") != NULL &&
                      strstr(blame->texts[rank], part) != NULL,
                  "mode %d, group %u: rank %d blames %d: %s: %s", (int)blame->c->mode,
                  blame->number, rank, blame->culprits[rank], ms_code_name(blame->codes[rank]),
                  blame->texts[rank]);
}

START_TEST(a_rank_that_hangs_while_a_group_is_made_is_blamed_by_all)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        blame_open(modes[m], 4, 1);
        blame->stops = 1;

        run();

        check_names_rank_2(0, MS_E_TIMEOUT, "to connect");
        check_names_rank_2(1, MS_E_CLOSED, "is lost, as rank "); /* it joins, too */
        check_names_rank_2(3, MS_E_CLOSED, "is lost, as rank "); /* it is in no group */
        blame_close();
    }
}
END_TEST

/* Rank 3 waits in group 0 for those who join, and has less patience than they. */
START_TEST(who_waits_for_ranks_that_make_a_group_lets_them_name_who_hangs)
{
    blame_open(MODE_SHM, 4, 1);
    blame->stops = 1;
    blame->join_ms = 2000;
    blame->barrier_ms = 1500;

    run();

    check_names_rank_2(0, MS_E_TIMEOUT, "to connect");
    check_names_rank_2(3, MS_E_CLOSED, "is lost, as rank ");
    blame_close();
}
END_TEST

START_TEST(a_rank_that_never_comes_to_the_mesh_is_blamed)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        blame_open(modes[m], 3, 0);
        struct mesh_config cfg = comm_case_config(blame->c, 0, FLOATS);
        struct mesh *mesh = NULL;
        struct ms_err why = {0};
        int culprit = -2;
        cfg.timeout_ms = 200;
        cfg.ret_culprit = &culprit;

        int rc = mesh_create(&cfg, &mesh, &why);

        ck_assert_int_eq(rc, MS_E_TIMEOUT);
        ck_assert_int_eq(culprit, 1); /* the first of two */
        blame_close();
    }
}
END_TEST

/* Rank 2 has joined rank 1, and so rank 1 is through; it does not reach rank 0, which gives up. */
static void check_half_made(uint32_t number)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        blame_open(modes[m], 3, number);

        run();

        check_names_rank_2(0, MS_E_TIMEOUT, "to connect");
        check_names_rank_2(1, MS_E_CLOSED, "is lost, as rank 0 reports, during barrier");
        blame_close();
    }
}

START_TEST(the_goodbye_of_a_group_that_could_not_be_made_names_the_culprit)
{
    check_half_made(1);
}
END_TEST

START_TEST(the_goodbye_of_a_mesh_that_could_not_be_made_names_the_culprit)
{
    check_half_made(0);
}
END_TEST

START_TEST(nobody_is_blamed_where_nobody_is_at_fault)
{
    blame_open(MODE_TCP, 2, 0);
    struct mesh_config cfg = comm_case_config(blame->c, 0, FLOATS);
    struct mesh *mesh = NULL;
    int culprit = -2;
    cfg.ret_culprit = &culprit;
    comm_listener_abort(cfg.listener);

    ck_assert_int_eq(mesh_create(&cfg, &mesh, NULL), MS_E_ABORTED);
    ck_assert_int_eq(culprit, -1);
    cfg.world = 0;
    culprit = -2;
    ck_assert_int_eq(mesh_create(&cfg, &mesh, NULL), MS_E_INVALID);
    ck_assert_int_eq(culprit, -1);
    blame_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_blame");
    TCase *tc = tcase_create("blame");
    tcase_add_test(tc, a_rank_that_hangs_while_a_group_is_made_is_blamed_by_all);
    tcase_add_test(tc, who_waits_for_ranks_that_make_a_group_lets_them_name_who_hangs);
    tcase_add_test(tc, a_rank_that_never_comes_to_the_mesh_is_blamed);
    tcase_add_test(tc, the_goodbye_of_a_group_that_could_not_be_made_names_the_culprit);
    tcase_add_test(tc, the_goodbye_of_a_mesh_that_could_not_be_made_names_the_culprit);
    tcase_add_test(tc, nobody_is_blamed_where_nobody_is_at_fault);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
