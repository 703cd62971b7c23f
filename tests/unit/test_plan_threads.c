/* test_plan_threads.c - one thread or the whole team, and a team that stays what it is */
#include "libworker/plan/internal.h"
#include "tests/unit/few_threads.h"
#include "tests/unit/plan_case.h"

#include <dirent.h>

static struct graph *network(const char *name, int64_t batch, int64_t channels, int64_t side)
{
    struct graph *graph = case_model(name, batch, channels, side, 10, NETWORK_LOSS_SOFTMAX_CE);
    ck_ms_ok(graph_differentiate(graph, err));
    return graph;
}

START_TEST(small_steps_get_one_thread_and_large_ones_the_team)
{
    static const struct {
        const char *name;
        int64_t batch, channels, side;
        int is_large;
    } rows[] = {{"mnist", 32, 1, 28, 0},       {"lenet5", 32, 1, 32, 0},
                {"cifar_small", 64, 3, 32, 1}, {"resnet50", 8, 3, 224, 1},
                {"resnet50", 32, 3, 224, 1},   {"mnist", 1, 1, 28, 0},
                {"cifar_small", 128, 3, 32, 1}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        struct graph *graph = network(rows[i].name, rows[i].batch, rows[i].channels, rows[i].side);
        for (int most = 1; most <= 64; most *= 2) {
            ck_assert_msg(plan_threads(graph, most) == (rows[i].is_large ? most : 1),
                          "%s of %d: %d threads of %d", rows[i].name, (int)rows[i].batch,
                          plan_threads(graph, most), most);
        }
        graph_destroy(graph);
    }
}
END_TEST

/* Sum of the ids of this process's threads, and how many there are. */
static uint64_t threads_now(int *ret_n)
{
    uint64_t sum = 0;
    *ret_n = 0;
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        sum += strtoull(entry->d_name, NULL, 10);
        *ret_n += entry->d_name[0] != '.';
    }
    closedir(dir);
    return sum;
}

/* Threads that a smaller team leaves over end, and are made anew for the next op. */
START_TEST(a_team_neither_grows_nor_shrinks)
{
    struct case_options options = {.training = 1, .threads = 8};
    struct plan_case c;
    case_init(&c, case_model("cifar_small", 8, 3, 32, 10, NETWORK_LOSS_SOFTMAX_CE), &options);
    float loss = 0;
    int before = 0;
    int after = 0;
    case_fill_batch(&c, 1);
    case_bind(&c);
    ck_ms_ok(plan_train_step(c.plan, c.data, case_labels(&c), NULL, NULL, &loss, err));
    uint64_t first = threads_now(&before);
    for (int i = 0; i < 10; i++) {
        ck_ms_ok(plan_train_step(c.plan, c.data, case_labels(&c), NULL, NULL, &loss, err));
        ck_assert_uint_eq(threads_now(&after), first);
    }
    ck_assert_int_eq(after, before);
    case_fini(&c);
}
END_TEST

/* OpenMP ends a process that asks for a thread which cannot be made. */
static int ask_for_too_many(void)
{
    struct plan_spec *spec = NULL;
    struct plan *plan = NULL;
    struct ms_err why = {0, ""};
    struct graph *graph = network("mnist", 8, 1, 28);
    struct plan_request request = {.graphs = {graph}, .world = 1, .threads = 1};
    int rc = plan_choose(&request, &spec, &why);
    if (rc < 0) {
        return 2;
    }
    spec->threads = 100;
    rc = plan_create(graph, spec, PLAN_TRAIN, NULL, &plan, &why);
    fprintf(stderr, "%d: %s\n", rc, why.text);
    return rc == MS_E_UNSUPPORTED && strncmp(why.text, "plan line ", 10) == 0 &&
                   strstr(why.text, "threads 100: ") != NULL &&
                   strstr(why.text, "RLIMIT_NPROC") != NULL
               ? 0
               : 3;
}

START_TEST(a_team_that_cannot_be_made_is_refused_by_its_line)
{
    ck_assert_int_eq(few_threads_run(few_by_user, 20, ask_for_too_many), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_threads");
    TCase *tc = tcase_create("plan_threads");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, small_steps_get_one_thread_and_large_ones_the_team);
    tcase_add_test(tc, a_team_neither_grows_nor_shrinks);
    tcase_add_test(tc, a_team_that_cannot_be_made_is_refused_by_its_line);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
