/* sim.c - runs simulated clusters
 *
 *     sim [--seed S] [--clusters N] [--mode standing|dynamic|run|mixed] [--nodes N|N-M]
 *         [--blind] [-v]
 *
 * --nodes: so many in each cluster; of a range, as its seed says.
 * --blind: the core's own state is not looked at, only what leaves it. tests/mutation/run plants
 * bugs and says which this program does not find.
 * Exit status 0: all clusters hold. 1: one does not. */
#include "tests/sim/sim.h"

#include "proto/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    _exit(1);
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

static bool parse_nodes(const char *text)
{
    char *end = NULL;
    const unsigned long min = strtoul(text, &end, 10);
    const unsigned long max = *end == '-' ? strtoul(end + 1, &end, 10) : min;
    if (*end != '\0' || min < 2 || max < min || max > SIM_NODES_MAX - 2) {
        return false;
    }
    world_nodes_min = (uint32_t)min;
    world_nodes_max = (uint32_t)max;
    return true;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed S] [--clusters N] [--mode standing|dynamic|run|mixed] "
                    "[--nodes N|N-M] [--blind] [-v]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    uint64_t clusters = 1000;
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
        } else if (strcmp(argv[i], "--nodes") == 0 && parse_nodes(value)) {
            i++;
        } else if (strcmp(argv[i], "--mode") == 0 && (current_mode = parse_mode(value)) > -2) {
            i++;
        } else {
            return usage();
        }
    }
    signal(SIGABRT, on_abort);
    int rc = 0;
    double since_s = ms_mono_s();
    uint64_t held = run(seed, clusters, verbose);
    double s = ms_mono_s() - since_s;
    if (held < clusters) {
        report_failure(held);
        rc = 1;
    } else {
        printf("sim: %llu clusters hold, %.0f a second\n", (unsigned long long)clusters,
               (double)clusters / s);
    }
    world_fini(&world);
    free(world.memory);
    free(world.links);
    free(world.frame);
    disk_fini(&world.disk);
    disk_fini(&world.disk_after);
    disk_fini(&world.disk_found);
    disk_fini(&world.copy);
    heap_fini(&world.events);
    return rc;
}
