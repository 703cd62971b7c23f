/* sim.c - runs simulated clusters, and finds bugs that were planted on purpose
 *
 *     sim [--seed S] [--clusters N] [--mode standing|dynamic|run|mixed] [--plant NAME|all]
 * [--blind] [-v]
 *
 * --blind: only the world outside the core is judged, not its own state.
 * Exit status 0: all clusters hold; with --plant: the bug was found. 1: not so. */
#include "tests/sim/sim.h"

#include "daemon/sched/state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *sched_planted;

int sched_is_planted(const char *name)
{
    return sched_planted != NULL && strcmp(sched_planted, name) == 0;
}

static const char *const planted[] = {
    "reply_before_commit",
    "place_busy_node",
    "generation_not_raised",
    "generation_not_durable",
    "lease_never_judged",
    "lost_idempotence_key",
    "rank_twice",
    "survivor_not_stopped",
    "forget_rank_on_requeue",
    "start_before_all_ready",
    "digests_not_compared",
    "cancel_answered_early",
};

static struct world world;
static uint64_t current_seed;
static int current_mode = -1;

/* An assertion of the core: as good as a broken invariant. */
static void on_abort(int signal_number)
{
    (void)signal_number;
    static const char text[] = "sim: the core gave up; its assertion stands above\n";
    ssize_t n = write(STDOUT_FILENO, text, sizeof(text) - 1);
    (void)n;
    _exit(sched_planted != NULL ? 0 : 1);
}

static void report_failure(uint64_t clusters)
{
    char failure[sizeof(world.failure)];
    memcpy(failure, world.failure, sizeof(failure));
    world_fini(&world);
    world_run(&world, current_seed, current_mode, true);
    printf("sim: seed %llu fails (after %llu clusters): %s\n", (unsigned long long)current_seed,
           (unsigned long long)clusters, failure);
    printf("sim: the last events of it (mode %d, chaos %d, lease %lld ms):\n", (int)world.mode,
           world.chaos, (long long)world.lease_ms);
    world_print_trace(&world);
    if (strcmp(failure, world.failure) != 0) {
        printf("sim: the second run ended otherwise: %s\n", world.failure);
    }
}

/* Returns the number of clusters that held before the first that did not. */
static uint64_t run(uint64_t seed, uint64_t clusters, int verbose)
{
    for (uint64_t i = 0; i < clusters; i++) {
        current_seed = seed + i;
        world_run(&world, current_seed, current_mode, verbose > 1);
        if (verbose > 1) {
            world_print_trace(&world);
        }
        if (world.failed) {
            return i;
        }
        world_fini(&world);
    }
    return clusters;
}

static void plant(const char *name)
{
    sim_driver_bug = strcmp(name, "reply_before_commit") == 0 ? name : NULL;
    sched_planted = name;
}

static int plant_one(const char *name, uint64_t seed, uint64_t clusters, int verbose)
{
    plant(name);
    uint64_t held = run(seed, clusters, 0);
    if (held == clusters) {
        printf("sim: %s was not found in %llu clusters\n", name, (unsigned long long)clusters);
        return 1;
    }
    printf("sim: %s found in cluster %llu: %s\n", name, (unsigned long long)held + 1,
           world.failure);
    if (verbose > 0) {
        report_failure(held);
    }
    world_fini(&world);
    return 0;
}

/* A process for each: an assertion of the core ends it. */
static int plant_all(uint64_t seed, uint64_t clusters)
{
    int failed = 0;
    for (size_t i = 0; i < MS_ARRAY_SIZE(planted); i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int rc = plant_one(planted[i], seed, clusters, 0);
            fflush(stdout);
            _exit(rc);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            printf("sim: planted bug %s: not found, or the simulator broke (status %d)\n",
                   planted[i], status);
            failed = 1;
        }
    }
    return failed;
}

static int parse_mode(const char *text)
{
    static const char *const names[] = {"standing", "dynamic", "run"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return strcmp(text, "mixed") == 0 ? -1 : -2;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed S] [--clusters N] [--mode standing|dynamic|run|mixed] "
                    "[--plant NAME|all] [--blind] [-v]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    uint64_t clusters = 1000;
    const char *bug = NULL;
    int verbose = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--blind") == 0) {
            sim_blind = true;
        } else if (strcmp(argv[i], "-v") == 0) {
            verbose++;
        } else if (value == NULL) {
            return usage();
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--clusters") == 0) {
            clusters = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--plant") == 0) {
            bug = argv[++i];
        } else if (strcmp(argv[i], "--mode") == 0 && (current_mode = parse_mode(value)) > -2) {
            i++;
        } else {
            return usage();
        }
    }
    signal(SIGABRT, on_abort);
    int rc = 0;
    if (bug != NULL) {
        rc = strcmp(bug, "all") == 0 ? plant_all(seed, clusters)
                                     : plant_one(bug, seed, clusters, verbose);
    } else {
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        uint64_t held = run(seed, clusters, verbose);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        double s = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
        if (held < clusters) {
            report_failure(held);
            rc = 1;
        } else {
            printf("sim: %llu clusters hold, %.0f a second\n", (unsigned long long)clusters,
                   (double)clusters / s);
        }
        world_fini(&world);
    }
    free(world.memory);
    heap_fini(&world.events);
    return rc;
}
