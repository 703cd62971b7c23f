/* test_comm_groups.c - groups of ranks: how they are made, what they refuse, whom they blame */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum { FLOATS = 5000 };

static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_TLS, MODE_MIXED};

/* Ranks lo, lo + stride, ... below world. */
static int every(int *ranks, int lo, int stride, int world)
{
    int n = 0;
    for (int r = lo; r < world; r += stride) {
        ranks[n++] = r;
    }
    return n;
}

static int sum_ranks(int rank, struct group *group, float want)
{
    const void *result = NULL;
    float *exchange = group_exchange(group);
    CHILD_OK(group_step_begin(group, 1, err));
    for (size_t i = 0; i < FLOATS; i++) {
        exchange[i] = (float)(rank + 1);
    }
    CHILD_OK(group_all_reduce_sum(group, 0, FLOATS, &result, err));
    for (size_t i = 0; i < FLOATS; i++) {
        CHILD_TRUE(((const float *)result)[i] == want, "element %zu is %g instead of %g", i,
                   (double)((const float *)result)[i], (double)want);
    }
    return 0;
}

/* Rows and columns of a grid of 2 x 3 ranks, then a group without the first rank. */
static int make_a_grid(int rank, void *arg)
{
    const struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *row = NULL;
    struct group *column = NULL;
    struct group *others = NULL;
    int ranks[RANKS_MAX];
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int n = every(ranks, rank % 2, 2, 6);
    CHILD_OK(group_create(mesh, ranks, n, MS_F32, FLOATS, &column, err));
    ranks[0] = rank / 2 * 2;
    ranks[1] = ranks[0] + 1;
    CHILD_OK(group_create(mesh, ranks, 2, MS_F32, FLOATS, &row, err));
    n = every(ranks, 1, 1, 6);
    CHILD_OK(group_create(mesh, ranks, rank == 0 ? 0 : n, MS_F32, FLOATS, &others, err));

    CHILD_TRUE(group_rank(column) == rank / 2 && group_ranks(column) == 3, "its column");
    CHILD_TRUE(group_rank(row) == rank % 2 && group_ranks(row) == 2, "its row");
    CHILD_TRUE((others == NULL) == (rank == 0), "the group of the others");
    CHILD_TRUE(group_mesh(row) == mesh && mesh_all(mesh) != row, "its mesh");
    int failed = sum_ranks(rank, column, rank % 2 == 0 ? 1 + 3 + 5 : 2 + 4 + 6) ||
                 sum_ranks(rank, row, (float)(rank / 2 * 4 + 3)) ||
                 (others != NULL && sum_ranks(rank, others, 20)) ||
                 sum_ranks(rank, mesh_all(mesh), 21);
    mesh_destroy(mesh); /* and all groups */
    return failed;
}

static void run_in_each_mode(int (*run)(int rank, void *arg), int n_ranks)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct comm_case *c = comm_case_open(modes[m], n_ranks);
        ck_assert_int_eq(ranks_run(&c->ranks, run, c), 0);
        comm_case_close(c);
    }
}

START_TEST(each_rank_is_in_the_groups_that_it_names)
{
    run_in_each_mode(make_a_grid, 6);
}
END_TEST

/* A group that is given back makes room; its number is not used again. */
static int make_and_destroy(int rank, void *arg)
{
    const struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *groups[MESH_GROUPS_MAX];
    const int ranks[] = {0, 1, 2};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (uint32_t number = 1; number <= 20; number++) {
        int slot = (int)(number % (MESH_GROUPS_MAX - 1));
        if (number >= MESH_GROUPS_MAX) {
            group_destroy(groups[slot]);
        }
        CHILD_OK(group_create(mesh, ranks, 3, MS_F32, FLOATS, &groups[slot], err));
        CHILD_TRUE(groups[slot]->number == number, "group %u", groups[slot]->number);
        if (sum_ranks(rank, groups[slot], 6) != 0) {
            return 1;
        }
    }
    struct group *one_more = NULL;
    struct ms_err why;
    int rc = group_create(mesh, ranks, 3, MS_F32, FLOATS, &one_more, &why);
    CHILD_TRUE(rc == MS_E_INVALID && strstr(why.text, "at most 8") != NULL, "%s", why.text);
    mesh_destroy(mesh);
    return 0;
}

START_TEST(a_group_that_is_destroyed_makes_room_for_another)
{
    run_in_each_mode(make_and_destroy, 3);
}
END_TEST

/* Who is in as many groups as he can be takes part in making those that he is not in. */
static int fill_up_without_rank_2(int rank, void *arg)
{
    const struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *group = NULL;
    const int full[] = {0, 1};
    const int last[] = {2};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (int i = 1; i < MESH_GROUPS_MAX; i++) {
        CHILD_OK(group_create(mesh, full, rank == 2 ? 0 : 2, MS_F32, FLOATS, &group, err));
    }
    CHILD_OK(group_create(mesh, last, rank == 2 ? 1 : 0, MS_F32, FLOATS, &group, err));
    CHILD_TRUE((group != NULL) == (rank == 2), "a group of rank 2 alone");
    mesh_destroy(mesh);
    return 0;
}

START_TEST(who_has_no_place_left_lets_others_have_their_group)
{
    run_in_each_mode(fill_up_without_rank_2, 3);
}
END_TEST

struct lists {
    struct comm_case *c;
    int ranks[3][4];
    int n[3];
    size_t floats[3];
    int codes[3];
    char texts[3][MS_ERR_TEXT_MAX];
};

static int make_from_lists(int rank, void *arg)
{
    struct lists *lists = arg;
    struct mesh_config cfg = comm_case_config(lists->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *group = NULL;
    struct ms_err why = {0};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    lists->codes[rank] = group_create(mesh, lists->ranks[rank], lists->n[rank], MS_F32,
                                      lists->floats[rank], &group, &why);
    snprintf(lists->texts[rank], sizeof(lists->texts[rank]), "%s", why.text);
    CHILD_TRUE(lists->codes[rank] == 0 || mesh_barrier(mesh, NULL) == lists->codes[rank],
               "a mesh goes on");
    mesh_destroy(mesh);
    return 0;
}

static struct lists *lists_open(void)
{
    struct lists *lists =
        mmap(NULL, sizeof(*lists), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(lists, MAP_FAILED);
    lists->c = comm_case_open(MODE_MIXED, 3);
    for (int r = 0; r < 3; r++) {
        lists->n[r] = 2;
        lists->floats[r] = FLOATS;
        lists->ranks[r][0] = 0;
        lists->ranks[r][1] = 1;
    }
    lists->n[2] = 0;
    return lists;
}

static void lists_close(struct lists *lists)
{
    comm_case_close(lists->c);
    munmap(lists, sizeof(*lists));
}

static void check_says(const struct lists *lists, int rank, int code, const char *part)
{
    ck_assert_msg(lists->codes[rank] == code && strstr(lists->texts[rank], part) != NULL,
                  "rank %d says %s: %s", rank, ms_code_name(lists->codes[rank]),
                  lists->texts[rank]);
}

START_TEST(ranks_with_different_lists_name_each_other)
{
    struct lists *lists = lists_open();
    lists->n[2] = 2; /* wants to be with rank 1, which does not count it in */
    lists->ranks[2][0] = 1;
    lists->ranks[2][1] = 2;

    ck_assert_int_eq(ranks_run(&lists->c->ranks, make_from_lists, lists), 0);

    check_says(lists, 1, MS_E_PROTOCOL, "rank 2 (node w2 on host localhost) has another list");
    check_says(lists, 2, MS_E_PROTOCOL, "rank 1 (node w1 on host localhost) has another list");
    check_says(lists, 0, MS_E_CLOSED, "rank 1"); /* it wanted nothing wrong */
    lists_close(lists);
}
END_TEST

START_TEST(ranks_with_different_exchange_buffers_name_each_other)
{
    struct lists *lists = lists_open();
    lists->floats[1]++;

    ck_assert_int_eq(ranks_run(&lists->c->ranks, make_from_lists, lists), 0);

    check_says(lists, 0, MS_E_PROTOCOL,
               "rank 1 (node w1 on host localhost) has an exchange buffer of 5001 elements");
    check_says(lists, 1, MS_E_PROTOCOL,
               "rank 0 (node w0 on host localhost) has an exchange buffer of 5000 elements");
    lists_close(lists);
}
END_TEST

START_TEST(a_list_that_is_none_is_refused)
{
    static const struct {
        int ranks[2];
        const char *says;
    } cases[] = {
        {{1, 0}, "rank 0 is number 1 of a group"},
        {{0, 0}, "rank 0 is number 1 of a group"},
        {{0, 3}, "rank 3 is number 1 of a group: ranks are 0 to 2"},
        {{-1, 0}, "rank -1 is number 0 of a group"},
        {{1, 2}, "rank 0 makes a group of 2 ranks that it is not in"},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        struct lists *lists = lists_open();
        memcpy(lists->ranks[0], cases[i].ranks, sizeof(cases[i].ranks));

        ck_assert_int_eq(ranks_run(&lists->c->ranks, make_from_lists, lists), 0);

        check_says(lists, 0, MS_E_INVALID, cases[i].says);
        for (int r = 1; r < 3; r++) { /* nobody waits for it */
            check_says(lists, r, MS_E_CLOSED, "rank 0 (node w0 on host localhost)");
        }
        lists_close(lists);
    }
}
END_TEST

/* ---- who is blamed
 * ----------------------------------------------------------------------------------- */

struct loss {
    struct comm_case *c;
    int signal;
    _Atomic int is_known; /* rank 0 has failed */
    int codes[4];
    char texts[4][MS_ERR_TEXT_MAX];
};

/* Ranks 0 and 2, and 1 and 3; rank 2 goes. The others meet in group 0 once its group has said so.
 */
static int lose_rank_2(int rank, void *arg)
{
    struct loss *loss = arg;
    struct mesh_config cfg = comm_case_config(loss->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *half = NULL;
    struct ms_err why = {0};
    const void *result = NULL;
    int ranks[RANKS_MAX];
    cfg.timeout_ms = loss->signal == SIGSTOP ? 700 : 120000;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int n = every(ranks, rank % 2, 2, 4);
    CHILD_OK(group_create(mesh, ranks, n, MS_F32, FLOATS, &half, err));
    int rc = 0;
    for (uint64_t step = 1; rc == 0; step++) {
        if (rank == 2 && step == 7) {
            kill(getpid(), loss->signal);
        }
        rc = group_step_begin(half, step, &why);
        rc = rc == 0 ? group_all_reduce_sum(half, 0, FLOATS, &result, &why) : rc;
        if (rc == 0 && rank % 2 == 1 && atomic_load(&loss->is_known)) {
            rc = mesh_barrier(mesh, &why);
        }
    }
    atomic_store(&loss->is_known, 1);
    loss->codes[rank] = rc;
    snprintf(loss->texts[rank], sizeof(loss->texts[rank]), "%s", why.text);
    mesh_destroy(mesh);
    return 0;
}

static void check_loss(enum comm_mode mode, int signal)
{
    struct loss *loss =
        mmap(NULL, sizeof(*loss), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(loss, MAP_FAILED);
    loss->c = comm_case_open(mode, 4);
    loss->signal = signal;
    struct ranks *ranks = &loss->c->ranks;
    for (int i = 0; i < 4; i++) {
        ranks->pids[i] = ranks_fork(lose_rank_2, i, loss);
    }
    for (int i = 0; i < 4; i++) {
        int status = 0;
        if (i != 2) {
            ck_assert_int_eq(waitpid(ranks->pids[i], &status, 0), ranks->pids[i]);
            ck_assert_int_eq(status, 0);
            ck_assert_msg(strstr(loss->texts[i], "rank 2 (node w2 on host localhost)") != NULL,
                          "mode %d: rank %d says %s: %s", (int)mode, i,
                          ms_code_name(loss->codes[i]), loss->texts[i]);
        }
    }
    ck_assert_msg(strstr(loss->texts[0], "in group 1") != NULL, "%s", loss->texts[0]);
    kill(ranks->pids[2], SIGKILL);
    waitpid(ranks->pids[2], NULL, 0);
    comm_case_close(loss->c);
    munmap(loss, sizeof(*loss));
}

START_TEST(all_name_a_rank_that_a_group_has_lost)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        check_loss(modes[m], SIGKILL);
    }
}
END_TEST

START_TEST(all_name_a_rank_that_a_group_waits_for)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        check_loss(modes[m], SIGSTOP);
    }
}
END_TEST

struct waiter {
    pthread_t thread;
    struct group *group;
    int rc;
    struct ms_err err;
};

static void *wait_main(void *arg)
{
    struct waiter *waiter = arg;
    waiter->rc = group_barrier(waiter->group, &waiter->err);
    return NULL;
}

/* Ranks 0, 1, 2, of which the last one dies; and 0, 1, 3, of which the last one never comes. */
static int wait_in_two_groups(int rank, void *arg)
{
    struct loss *loss = arg;
    struct mesh_config cfg = comm_case_config(loss->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *dies = NULL;
    struct waiter waiter = {0};
    struct ms_err why = {0};
    const void *result = NULL;
    const int with_2[] = {0, 1, 2};
    const int with_3[] = {0, 1, 3};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_OK(group_create(mesh, with_2, rank == 3 ? 0 : 3, MS_F32, FLOATS, &dies, err));
    CHILD_OK(group_create(mesh, with_3, rank == 2 ? 0 : 3, MS_F32, 0, &waiter.group, err));
    int rc = 0;
    if (rank == 3) {
        rc = mesh_barrier(mesh, &why);
    } else if (rank < 2) {
        CHILD_TRUE(pthread_create(&waiter.thread, NULL, wait_main, &waiter) == 0, "thread");
    }
    for (uint64_t step = 1; rc == 0; step++) {
        if (rank == 2 && step == 20) {
            kill(getpid(), SIGKILL);
        }
        rc = group_step_begin(dies, step, &why);
        rc = rc == 0 ? group_all_reduce_sum(dies, 0, FLOATS, &result, &why) : rc;
    }
    if (rank < 2) {
        CHILD_TRUE(pthread_join(waiter.thread, NULL) == 0, "thread");
        CHILD_TRUE(waiter.rc < 0 && strstr(waiter.err.text, "rank 2") != NULL, "%s",
                   waiter.err.text);
    }
    snprintf(loss->texts[rank], sizeof(loss->texts[rank]), "%s", why.text);
    mesh_destroy(mesh);
    return 0;
}

START_TEST(a_failure_in_one_group_ends_what_is_in_flight_in_another)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct loss *loss =
            mmap(NULL, sizeof(*loss), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(loss, MAP_FAILED);
        loss->c = comm_case_open(modes[m], 4);

        int failed = ranks_run(&loss->c->ranks, wait_in_two_groups, loss);

        ck_assert_int_eq(failed, 1); /* the one that was killed */
        for (int i = 0; i < 4; i++) {
            ck_assert_msg(i == 2 || strstr(loss->texts[i], "rank 2 (node w2") != NULL,
                          "mode %d: rank %d says %s", (int)modes[m], i, loss->texts[i]);
        }
        comm_case_close(loss->c);
        munmap(loss, sizeof(*loss));
    }
}
END_TEST

/* Rank 2 dies before it makes a group that the others wait for. */
static int die_before_the_group(int rank, void *arg)
{
    struct loss *loss = arg;
    struct mesh_config cfg = comm_case_config(loss->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct group *group = NULL;
    struct ms_err why = {0};
    const int ranks[] = {0, 1, 2};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_OK(mesh_barrier(mesh, err));
    if (rank == 2) {
        _exit(0);
    }
    loss->codes[rank] = group_create(mesh, ranks, 3, MS_F32, FLOATS, &group, &why);
    snprintf(loss->texts[rank], sizeof(loss->texts[rank]), "%s", why.text);
    mesh_destroy(mesh);
    return 0;
}

START_TEST(a_rank_that_dies_before_a_group_is_made_is_named)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct loss *loss =
            mmap(NULL, sizeof(*loss), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(loss, MAP_FAILED);
        loss->c = comm_case_open(modes[m], 3);

        ck_assert_int_eq(ranks_run(&loss->c->ranks, die_before_the_group, loss), 0);

        for (int i = 0; i < 2; i++) {
            ck_assert_msg(loss->codes[i] == MS_E_CLOSED &&
                              strstr(loss->texts[i], "rank 2") != NULL &&
                              strstr(loss->texts[i], "group_create of group 1") != NULL,
                          "%s", loss->texts[i]);
        }
        comm_case_close(loss->c);
        munmap(loss, sizeof(*loss));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_groups");
    TCase *tc = tcase_create("groups");
    tcase_add_test(tc, each_rank_is_in_the_groups_that_it_names);
    tcase_add_test(tc, a_group_that_is_destroyed_makes_room_for_another);
    tcase_add_test(tc, who_has_no_place_left_lets_others_have_their_group);
    tcase_add_test(tc, ranks_with_different_lists_name_each_other);
    tcase_add_test(tc, ranks_with_different_exchange_buffers_name_each_other);
    tcase_add_test(tc, a_list_that_is_none_is_refused);
    tcase_add_test(tc, all_name_a_rank_that_a_group_has_lost);
    tcase_add_test(tc, all_name_a_rank_that_a_group_waits_for);
    tcase_add_test(tc, a_failure_in_one_group_ends_what_is_in_flight_in_another);
    tcase_add_test(tc, a_rank_that_dies_before_a_group_is_made_is_named);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
