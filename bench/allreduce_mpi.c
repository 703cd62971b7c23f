/* allreduce_mpi.c - the same as bench/allreduce for MPI_Allreduce (float sum, in place)
 *
 * mpirun -n RANKS allreduce_mpi [BYTES [ITERATIONS]] : one line, as bench/allreduce prints it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_MAX = 4096, REPEAT_BELOW = 512 << 10, REPEATS = 20 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(float *data, size_t bytes, size_t iterations, double *times)
{
    size_t repeat = bytes < REPEAT_BELOW ? REPEATS : 1;
    for (size_t i = 0; i < iterations + 2; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (size_t k = 0; k < repeat; k++) {
            MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD);
        }
        if (i >= 2) { /* the first two warm caches and page tables */
            times[i - 2] = (MPI_Wtime() - start) * 1e6 / (double)repeat;
        }
    }
}

int main(int argc, char **argv)
{
    static double times[TIMES_MAX];
    MPI_Init(&argc, &argv);
    int rank = 0;
    int world = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
    size_t iterations = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
    iterations = iterations < 1 ? 1 : iterations > TIMES_MAX ? TIMES_MAX : iterations;
    float *data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (data == NULL) {
        fprintf(stderr, "allreduce_mpi: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    memset(data, 0, bytes);
    measure(data, bytes, iterations, times);
    if (rank == 0) {
        qsort(times, iterations, sizeof(double), by_value);
        printf("%-7s ranks %d bytes %9zu iterations %5zu min_us %10.1f median_us %10.1f bus_GB/s "
               "%6.2f\n",
               "mpi", world, bytes, iterations, times[0], times[iterations / 2],
               2.0 * (world - 1) / world * (double)bytes / times[0] / 1e3);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
