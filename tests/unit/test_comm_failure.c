/* test_comm_failure.c - a rank dies, stops, leaves, disagrees or is told to stop: who says what */
#include "tests/unit/comm_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

enum { FLOATS = 200000 };

static const enum comm_mode modes[] = {MODE_SHM, MODE_TCP, MODE_TLS, MODE_MIXED};

struct failure {
    struct comm_case *c;
    int victim;
    size_t count;
    int timeout_ms;
    int signal;        /* that the victim sends itself ... */
    int is_late;       /* ... some time after it has begun, else before its sum */
    _Atomic int woken; /* in shared memory */
    char texts[RANKS_MAX][MS_ERR_TEXT_MAX];
    int codes[RANKS_MAX];
    int n_told; /* rank 0 heard so often that it waits, at last: */
    char told[MS_ERR_TEXT_MAX];
};

static struct failure *failure_open(enum comm_mode mode, int world)
{
    struct failure *f =
        mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(f, MAP_FAILED);
    f->c = comm_case_open(mode, world);
    f->timeout_ms = 120000;
    f->count = 1000;
    return f;
}

static void failure_close(struct failure *f)
{
    comm_case_close(f->c);
    munmap(f, sizeof(*f));
}

static int failed_with(struct failure *f, int rank, int code, const struct ms_err *err)
{
    f->codes[rank] = code;
    snprintf(f->texts[rank], sizeof(f->texts[rank]), "%s", err->text);
    return 0;
}

static void *signal_late(void *arg)
{
    struct failure *f = arg;
    uint64_t turns = ms_rng_below((uint64_t)getpid(), 0, 40);
    for (uint64_t i = 0; i < turns; i++) {
        sched_yield();
    }
    kill(getpid(), f->signal);
    return NULL;
}

static void signal_oneself(struct failure *f)
{
    pthread_t thread;
    if (!f->is_late) {
        kill(getpid(), f->signal);
    } else if (pthread_create(&thread, NULL, signal_late, f) == 0) {
        pthread_detach(thread);
    }
}

static void hear_of_wait(void *arg, const char *text)
{
    struct failure *f = arg;
    f->n_told++;
    snprintf(f->told, sizeof(f->told), "%s", text);
}

/* Sums until it fails; the victim signals itself in its tenth step, before or within the sum of the
 * others, who are there already or not. */
static int sum_until_failure(int rank, void *arg)
{
    struct failure *f = arg;
    struct mesh_config cfg = comm_case_config(f->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct ms_err why;
    const void *result = NULL;
    cfg.timeout_ms = f->timeout_ms;
    cfg.on_wait = rank == 0 ? hear_of_wait : NULL;
    cfg.arg = f;
    cfg.warn_ms = f->timeout_ms / 7;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    f->n_told = rank == 0 ? 0 : f->n_told;
    for (uint64_t step = 1; step < 1000000; step++) {
        comm_noise(rank, step);
        if (step == 10 && rank == f->victim) {
            signal_oneself(f);
        }
        int rc = mesh_step_begin(mesh, step, &why);
        rc = rc == 0 ? mesh_all_reduce_sum(mesh, 0, f->count, &result, &why) : rc;
        if (rc < 0) {
            int again = mesh_barrier(mesh, NULL);
            CHILD_TRUE(again == rc, "a mesh that failed goes on: %d", again);
            mesh_destroy(mesh);
            return failed_with(f, rank, rc, &why);
        }
    }
    return 1;
}

/* Runs all; the victim is killed at the latest when the others are through. */
static void run_failure(struct failure *f, int (*fn)(int rank, void *arg))
{
    struct ranks *ranks = &f->c->ranks;
    for (int i = 0; i < ranks->world; i++) {
        ranks->pids[i] = ranks_fork(fn, i, f);
    }
    for (int i = 0; i < ranks->world; i++) {
        int status = 0;
        if (i != f->victim) {
            ck_assert_int_eq(waitpid(ranks->pids[i], &status, 0), ranks->pids[i]);
            ck_assert_msg(status == 0, "rank %d ended with status %d", i, status);
        }
    }
    if (f->victim >= 0) {
        kill(ranks->pids[f->victim], SIGKILL);
        waitpid(ranks->pids[f->victim], NULL, 0);
    }
}

static void check_named(const struct failure *f, int code)
{
    char name[32];
    snprintf(name, sizeof(name), "rank %d (node w%d on host localhost)", f->victim, f->victim);
    for (int i = 0; i < f->c->ranks.world; i++) {
        if (i != f->victim) {
            ck_assert_msg(f->codes[i] == code && strstr(f->texts[i], name) != NULL,
                          "mode %d, %zu floats: rank %d says %s: %s", (int)f->c->mode, f->count, i,
                          ms_code_name(f->codes[i]), f->texts[i]);
        }
    }
}

START_TEST(all_others_name_a_rank_that_was_killed)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        for (int large = 0; large <= 1; large++) {
            struct failure *f = failure_open(modes[m], 4);
            f->victim = 1 + large;
            f->signal = SIGKILL;
            f->count = large ? FLOATS : 1000;

            run_failure(f, sum_until_failure);

            check_named(f, MS_E_CLOSED);
            failure_close(f);
        }
    }
}
END_TEST

/* Two ranks: nobody else can have told. */
START_TEST(a_rank_that_stalls_is_named_with_what_was_waited_for)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct failure *f = failure_open(modes[m], 2);
        f->victim = 1;
        f->signal = SIGSTOP;
        f->timeout_ms = 2000; /* they have to connect within it, too */

        run_failure(f, sum_until_failure);

        check_named(f, MS_E_TIMEOUT);
        ck_assert_msg(strstr(f->texts[0], "all_reduce of 1000 floats") != NULL, "%s", f->texts[0]);
        ck_assert_msg(strstr(f->texts[0], "step 10") != NULL, "%s", f->texts[0]);
        ck_assert_msg(strstr(f->texts[0], "waited ") != NULL, "%s", f->texts[0]);
        ck_assert_int_eq(f->n_told, 1); /* once, before it is too late */
        ck_assert_msg(strstr(f->told, "s for rank 1 (node w1 on host localhost) to ") != NULL &&
                          strstr(f->told, "all_reduce of 1000 floats from 0 at step 10; given "
                                          "up after 2.0 s") != NULL,
                      "%s", f->told);
        failure_close(f);
    }
}
END_TEST

static int is_named_with(const struct failure *f, int rank, int code)
{
    char name[32];
    snprintf(name, sizeof(name), "rank %d (node w%d", f->victim, f->victim);
    return f->codes[rank] == code && strstr(f->texts[rank], name) != NULL;
}

/* Whoever waits for it is out of patience first, and tells the others. */
static void check_named_by_all(const struct failure *f)
{
    for (int r = 0; r < f->c->ranks.world; r++) {
        ck_assert_msg(r == f->victim || is_named_with(f, r, MS_E_CLOSED) ||
                          (f->signal == SIGSTOP && is_named_with(f, r, MS_E_TIMEOUT)),
                      "victim %d: rank %d says %s: %s", f->victim, r, ms_code_name(f->codes[r]),
                      f->texts[r]);
    }
}

/* Three hosts of two ranks: those who share the victim's memory wait for it, and send nothing. */
START_TEST(a_rank_that_never_comes_is_named_by_every_host)
{
    for (int victim = 0; victim < 6; victim += 5) {
        struct failure *f = failure_open(MODE_MIXED, 6);
        for (int i = 0; i < 6; i++) {
            snprintf(f->c->hosts[i], sizeof(f->c->hosts[i]), "host%d", i / 2);
        }
        f->victim = victim;
        f->signal = SIGSTOP;
        f->timeout_ms = 2000; /* they have to connect within it, too */
        f->count = FLOATS;

        run_failure(f, sum_until_failure);

        check_named_by_all(f);
        failure_close(f);
    }
}
END_TEST

START_TEST(a_rank_that_stops_or_dies_within_a_sum_over_hosts_is_named)
{
    for (int i = 0; i < 12; i++) {
        struct failure *f = failure_open(i % 3 == 0 ? MODE_MIXED_TLS : MODE_MIXED, 4 + i % 2);
        f->victim = i % 4;
        f->signal = i % 4 < 2 ? SIGSTOP : SIGKILL;
        f->is_late = 1;
        f->timeout_ms = 2000; /* they have to connect within it, too */
        f->count = FLOATS;

        run_failure(f, sum_until_failure);

        check_named_by_all(f);
        failure_close(f);
    }
}
END_TEST

/* Everybody but the victim is in a barrier to which the victim never comes. */
static void *abort_main(void *arg)
{
    struct mesh *mesh = arg;
    for (int i = 0; i < 100; i++) {
        sched_yield();
    }
    mesh_abort(mesh, "generation 6 has begun");
    return NULL;
}

static int wait_for_abort(int rank, void *arg)
{
    struct failure *f = arg;
    struct mesh_config cfg = comm_case_config(f->c, rank, 16);
    struct mesh *mesh = NULL;
    struct ms_err why;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    if (rank == f->victim) { /* stays, and never comes */
        pause();
    }
    pthread_t thread;
    CHILD_TRUE(pthread_create(&thread, NULL, abort_main, mesh) == 0, "thread");
    int rc = mesh_barrier(mesh, &why);
    pthread_join(thread, NULL);
    CHILD_TRUE(mesh_step_begin(mesh, 1, NULL) == MS_E_ABORTED, "an abort is for good");
    atomic_fetch_add(&f->woken, 1);
    while (atomic_load(&f->woken) < f->c->ranks.world - 1) {
        sched_yield(); /* nobody leaves before all were woken by their own abort */
    }
    mesh_destroy(mesh);
    f->codes[rank] = rc;
    snprintf(f->texts[rank], sizeof(f->texts[rank]), "%s", why.text);
    return 0;
}

START_TEST(an_abort_wakes_whoever_waits)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct failure *f = failure_open(modes[m], 3);
        f->victim = 2;

        run_failure(f, wait_for_abort);

        for (int i = 0; i < 2; i++) {
            ck_assert_msg(f->codes[i] == MS_E_ABORTED, "%s: %s", ms_code_name(f->codes[i]),
                          f->texts[i]);
            ck_assert_str_eq(f->texts[i], "generation 6 has begun");
        }
        failure_close(f);
    }
}
END_TEST

/* Rank 0 is through and goes; the others need a while to notice that they are through as well. */
static int leave_early(int rank, void *arg)
{
    struct failure *f = arg;
    struct mesh_config cfg = comm_case_config(f->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    const void *result = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    for (uint64_t step = 1; step <= 5; step++) {
        comm_noise(rank, step);
        CHILD_OK(mesh_all_reduce_sum(mesh, 0, f->count, &result, err));
    }
    mesh_destroy(mesh);
    return 0;
}

START_TEST(a_rank_that_is_through_may_leave_before_the_others)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        for (int large = 0; large <= 1; large++) {
            for (int i = 0; i < 10; i++) {
                struct failure *f = failure_open(modes[m], 4);
                f->victim = -1;
                f->count = large ? FLOATS : 1000;
                run_failure(f, leave_early);
                failure_close(f);
            }
        }
    }
}
END_TEST

/* The victim leaves in good order, but the others go on. */
static int go_on_without(int rank, void *arg)
{
    struct failure *f = arg;
    struct mesh_config cfg = comm_case_config(f->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct ms_err why;
    const void *result = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_OK(mesh_barrier(mesh, err));
    int rc = rank == f->victim ? 0 : mesh_all_reduce_sum(mesh, 0, f->count, &result, &why);
    mesh_destroy(mesh);
    return rank == f->victim ? 0 : failed_with(f, rank, rc, &why);
}

START_TEST(a_rank_that_left_too_early_is_named)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct failure *f = failure_open(modes[m], 3);
        f->victim = 1;

        run_failure(f, go_on_without);

        check_named(f, MS_E_CLOSED);
        failure_close(f);
    }
}
END_TEST

static int disagree(int rank, void *arg)
{
    struct failure *f = arg;
    struct mesh_config cfg = comm_case_config(f->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct ms_err why;
    const void *result = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int rc = rank == 0 ? mesh_barrier(mesh, &why)
                       : mesh_all_reduce_sum(mesh, 0, f->count, &result, &why);
    f->codes[rank] = rc;
    snprintf(f->texts[rank], sizeof(f->texts[rank]), "%s", why.text);
    mesh_destroy(mesh);
    return rc < 0 ? 0 : 1;
}

START_TEST(ranks_that_do_different_things_are_told)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct failure *f = failure_open(modes[m], 2);
        f->victim = -1;

        run_failure(f, disagree);

        int told = 0;
        for (int i = 0; i < 2; i++) { /* the other one may see that this one has given up */
            ck_assert(f->codes[i] == MS_E_PROTOCOL || f->codes[i] == MS_E_CLOSED);
            told += f->codes[i] == MS_E_PROTOCOL && strstr(f->texts[i], "barrier") != NULL &&
                    strstr(f->texts[i], "all_reduce") != NULL;
        }
        ck_assert_msg(told >= 1, "%s / %s", f->texts[0], f->texts[1]);
        failure_close(f);
    }
}
END_TEST

static int count_open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static int file_mentions(const char *path, const char *part)
{
    char line[1024];
    int found = 0;
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        found |= strstr(line, part) != NULL;
    }
    fclose(file);
    return found;
}

static int leave_nothing(int rank, void *arg)
{
    struct failure *f = arg;
    int before = count_open_files();
    for (int i = 0; i < 3; i++) {
        struct mesh_config cfg = comm_case_config(f->c, rank, FLOATS);
        struct mesh *mesh = NULL;
        cfg.generation = 5 + (uint64_t)i;
        CHILD_OK(mesh_create(&cfg, &mesh, err));
        if (mesh_local_ranks(mesh) > 1) {
            CHILD_TRUE(file_mentions("/proc/self/maps", "memfd:msched-17"), "no shared memory");
        }
        CHILD_OK(mesh_barrier(mesh, err));
        mesh_destroy(mesh);
    }
    CHILD_TRUE(count_open_files() == before, "%d files instead of %d", count_open_files(), before);
    CHILD_TRUE(!file_mentions("/proc/self/maps", "memfd:msched"), "memory stays mapped");
    return 0;
}

START_TEST(nothing_is_left_behind)
{
    for (size_t m = 0; m < MS_ARRAY_SIZE(modes); m++) {
        struct failure *f = failure_open(modes[m], 3);
        char name[64];
        snprintf(name, sizeof(name), "%s", f->c->ranks.members[1].data_unix);
        f->victim = -1;
        ck_assert(file_mentions("/proc/net/unix", name));

        run_failure(f, leave_nothing);
        failure_close(f);

        /* The thread that closes what strangers left has a table of its own, which the kernel may
         * close a moment after the thread was joined. */
        while (file_mentions("/proc/net/unix", name)) {
            sched_yield();
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_failure");
    TCase *tc = tcase_create("failure");
    tcase_add_test(tc, all_others_name_a_rank_that_was_killed);
    tcase_add_test(tc, a_rank_that_stalls_is_named_with_what_was_waited_for);
    tcase_add_test(tc, a_rank_that_never_comes_is_named_by_every_host);
    tcase_add_test(tc, a_rank_that_stops_or_dies_within_a_sum_over_hosts_is_named);
    tcase_add_test(tc, an_abort_wakes_whoever_waits);
    tcase_add_test(tc, a_rank_that_is_through_may_leave_before_the_others);
    tcase_add_test(tc, a_rank_that_left_too_early_is_named);
    tcase_add_test(tc, ranks_that_do_different_things_are_told);
    tcase_add_test(tc, nothing_is_left_behind);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
