/* loader.c - samples/s of the loader alone: nobody trains, the batches are let go at once
 *
 *     DATA_PATH=.../mnist build/bench/loader [--quick]
 *
 * One rank reads epochs of files that the bench writes itself, in MNIST's and CIFAR-10's formats
 * and sizes, and of shapes that are drawn as they are asked for: the first epoch for itself, then
 * the median of the rest; and the CPU time of a sample in the epoch where it was least, which other
 * work on the machine disturbs less. Then ranks of this host read a folder of PNG images of 96x96,
 * resized and cut to 64x64, for some epochs, each decoding what it reads, and sharing what was
 * decoded: CPU time of the first epoch and of the later ones, and how many times less it is. Where
 * DATA_PATH names MNIST's .gz files, 1, 2 and 8 ranks of this host read an epoch of them at once:
 * how long, and how much CPU time all of them took. */
#include "libworker/data/data.h"

#include "bench/run.h"
#include "proto/clock.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EPOCHS = 6, EPOCHS_QUICK = 2, BATCH = 32, SHARE_QUICK = 20 };

struct load {
    const char *name;
    enum data_kind kind;
    int shuffle;
    const struct transform *transforms;
    int n_transforms;
};

static const struct transform mnist_list[] = {
    {.kind = TRANSFORM_RESCALE, .scale = 1.0 / 255},
    {.kind = TRANSFORM_NORMALIZE, .n_channels = 1, .mean = {0.1307}, .std = {0.3081}},
};
static const struct transform cifar_list[] = {
    {.kind = TRANSFORM_RANDOM_CROP,
     .height = 32,
     .width = 32,
     .pad_left = 4,
     .pad_top = 4,
     .pad_right = 4,
     .pad_bottom = 4},
    {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 0.5},
    {.kind = TRANSFORM_RESCALE, .scale = 1.0 / 255},
    {.kind = TRANSFORM_NORMALIZE,
     .n_channels = 3,
     .mean = {0.4914, 0.4822, 0.4465},
     .std = {0.2023, 0.1994, 0.2010}},
};
static const struct load loads[] = {
    {"mnist, file order", DATA_MNIST, 0, mnist_list, 2},
    {"mnist, shuffled", DATA_MNIST, 1, mnist_list, 2},
    {"cifar10, crop and flip", DATA_CIFAR10, 1, cifar_list, 4},
    {"shapes", DATA_SHAPES, 1, cifar_list + 2, 2},
};

static int fail(const char *what, const struct ms_err *err)
{
    fprintf(stderr, "loader: %s: %s\n", what, err->text);
    return -1;
}

/* ---- files ---- */

/* header bytes, then n records of record bytes: a class below 10 where there is a label, noise. */
static int write_file(const char *dir, const char *name, const uint8_t *header, size_t header_size,
                      int64_t n, size_t record, int has_label)
{
    char path[RUN_PATH_BYTES];
    uint8_t bytes[1 + 3 * 32 * 32];
    uint32_t state = 1;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "wbe");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    size_t written = fwrite(header, 1, header_size, file);
    for (int64_t i = 0; i < n; i++) {
        for (size_t p = 0; p < record; p++) {
            state = state * 1664525U + 1013904223U;
            bytes[p] = (uint8_t)(state >> 24);
        }
        bytes[0] = has_label ? (uint8_t)(bytes[0] % 10) : bytes[0];
        written += fwrite(bytes, 1, record, file);
    }
    return fclose(file) == 0 && written == header_size + (size_t)n * record ? 0 : -1;
}

static int write_files(const char *dir, int share)
{
    const uint32_t n = 60000U / (uint32_t)share;
    const uint8_t count[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                              (uint8_t)n};
    uint8_t images[16] = {0, 0, 8, 3, [11] = 28, [15] = 28};
    uint8_t labels[8] = {0, 0, 8, 1};
    char name[32];
    memcpy(images + 4, count, sizeof(count));
    memcpy(labels + 4, count, sizeof(count));
    int rc = write_file(dir, "train-images-idx3-ubyte", images, sizeof(images), n, 784, 0);
    if (rc == 0) {
        rc = write_file(dir, "train-labels-idx1-ubyte", labels, sizeof(labels), n, 1, 1);
    }
    for (int i = 1; rc == 0 && i <= 5; i++) {
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        rc = write_file(dir, name, labels, 0, 10000 / share, 3073, 1);
    }
    return rc;
}

/* ---- one rank ---- */

static int open_source(const struct load *load, const char *dir, struct data_source **ret)
{
    struct ms_err err = {0, ""};
    struct data_spec spec = {.kind = load->kind, .shuffle = load->shuffle, .seed = 1};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    return data_open(&spec, ret, &err) == 0 ? 0 : fail(load->name, &err);
}

static double cpu_s(int who)
{
    struct rusage use;
    getrusage(who, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

struct times { /* of epochs */
    double seconds[EPOCHS], cpu_seconds[EPOCHS];
};

/* Reads all epochs; their times in ret where it is not NULL. Returns samples an epoch. */
static int64_t read_epochs(const struct load *load, struct data_source *source, int rank, int world,
                           int epochs, struct times *ret)
{
    struct ms_err err = {0, ""};
    struct loader *loader = NULL;
    struct batch batch;
    int64_t rows = 0;
    const struct loader_config cfg = {.source = source,
                                      .transforms = load->transforms,
                                      .n_transforms = load->n_transforms,
                                      .batch = BATCH,
                                      .rank = rank,
                                      .world = world,
                                      .shuffle = load->shuffle,
                                      .seed = 1,
                                      .epochs = epochs};
    double begin = ms_mono_s();
    double cpu_begin = cpu_s(RUSAGE_SELF);
    int rc = loader_create(&cfg, &loader, &err);
    while (rc >= 0 && (rc = loader_next(loader, &batch, &err)) == 1) {
        rows += batch.rows;
        if (batch.last_of_epoch && ret != NULL) {
            ret->seconds[batch.epoch] = ms_mono_s() - begin;
            ret->cpu_seconds[batch.epoch] = cpu_s(RUSAGE_SELF) - cpu_begin;
            begin = ms_mono_s();
            cpu_begin = cpu_s(RUSAGE_SELF);
        }
        loader_release(loader);
    }
    loader_destroy(loader);
    return rc < 0 ? fail(load->name, &err) : rows / epochs;
}

static int measure(const struct load *load, const char *dir, int epochs)
{
    struct data_source *source = NULL;
    struct times times;
    if (open_source(load, dir, &source) < 0) {
        return -1;
    }
    const double rows = (double)read_epochs(load, source, 0, 1, epochs, &times);
    data_close(source);
    if (rows < 0) {
        return -1;
    }
    const double first = times.seconds[0];
    qsort(times.seconds + 1, (size_t)epochs - 1, sizeof(double), by_value);
    qsort(times.cpu_seconds, (size_t)epochs, sizeof(double), by_value);
    printf("%s: first epoch %.0f samples/s, then %.0f samples/s; %.2f us of CPU a sample\n",
           load->name, rows / first, rows / times.seconds[1 + (epochs - 1) / 2],
           times.cpu_seconds[0] / rows * 1e6);
    fflush(stdout);
    return 0;
}

/* ---- ranks of one host, packed files ---- */

static int read_as_rank(const char *dir, int rank, int world)
{
    const struct load load = {"mnist, packed", DATA_MNIST, 0, mnist_list, 2};
    struct data_source *source = NULL;
    if (open_source(&load, dir, &source) < 0) {
        return 1;
    }
    const int64_t rows = read_epochs(&load, source, rank, world, 1, NULL);
    data_close(source);
    return rows > 0 ? 0 : 1;
}

static int measure_packed(const char *dir, int world)
{
    const double begin = ms_mono_s();
    const double before = cpu_s(RUSAGE_CHILDREN);
    int started = 0;
    int failed = 0;
    for (; started < world; started++) {
        pid_t pid = fork();
        if (pid == 0) {
            _exit(read_as_rank(dir, started, world));
        }
        if (pid < 0) {
            perror("fork");
            failed++;
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        int status = 0;
        failed += wait(&status) < 0 || status != 0;
    }
    if (failed > 0) {
        return -1;
    }
    printf("mnist, packed, %d ranks: first epoch %.3f s, %.3f s of CPU\n", world,
           ms_mono_s() - begin, cpu_s(RUSAGE_CHILDREN) - before);
    fflush(stdout);
    return 0;
}

/* ---- ranks of one host, images ---- */

enum { IMAGE_SIDE = 96, IMAGES = 2000, IMAGE_RANKS = 4, IMAGE_EPOCHS = 3 };

static void put_number(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

/* CRC-32 of PNG, four bits at a time. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t size)
{
    static uint32_t table[16];
    for (uint32_t i = 0; table[1] == 0 && i < 16; i++) {
        table[15 - i] = 15 - i;
        for (int bit = 0; bit < 4; bit++) {
            table[15 - i] = table[15 - i] >> 1 ^ (table[15 - i] & 1 ? 0xEDB88320U : 0);
        }
    }
    for (size_t i = 0; i < 2 * size; i++) {
        const uint32_t four = (uint32_t)bytes[i / 2] >> (i % 2 == 0 ? 0 : 4);
        crc = crc >> 4 ^ table[(crc ^ four) & 15];
    }
    return crc;
}

static int put_chunk(FILE *file, const char *kind, const uint8_t *bytes, size_t size)
{
    uint8_t number[4];
    const uint32_t crc = crc_add(crc_add(UINT32_MAX, (const uint8_t *)kind, 4), bytes, size);
    put_number(number, (uint32_t)size);
    size_t n = fwrite(number, 1, 4, file) + fwrite(kind, 1, 4, file) + fwrite(bytes, 1, size, file);
    put_number(number, ~crc);
    n += fwrite(number, 1, 4, file);
    return n == size + 12 ? 0 : -1;
}

/* A PNG of soft colours, as those of photographs, that change from image to image; its lines are
 * not packed (one stored block of RFC 1951), which is the quickest to decode. */
static int write_image(const char *path, int number)
{
    enum { LINE = 1 + 3 * IMAGE_SIDE, LINES = IMAGE_SIDE * LINE, BEFORE = 7, BEHIND = 4 };
    static const char signature[] = "\x89PNG\r\n\x1A\n";
    static uint8_t data[BEFORE + LINES + BEHIND] = {
        0x78, 0x01, 1, LINES & 255, LINES >> 8, ~LINES & 255, (~LINES >> 8) & 255};
    uint8_t head[13] = {[8] = 8, [9] = 2}; /* bits, colours */
    uint32_t a = 1;                        /* Adler-32 */
    uint32_t b = 0;
    put_number(head, IMAGE_SIDE);
    put_number(head + 4, IMAGE_SIDE);
    for (int i = 0; i < LINES; i++) {
        const int x = i % LINE - 1;
        const int y = i / LINE;
        const int value = x * (number % 7 + 1) + y * (number % 5 + 1) + (x * y) / 16;
        data[BEFORE + i] = x < 0 ? 0 : (uint8_t)value;
        a = (a + data[BEFORE + i]) % 65521;
        b = (b + a) % 65521;
    }
    put_number(data + BEFORE + LINES, b << 16 | a);
    FILE *file = fopen(path, "wbe");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    const int is_put =
        fwrite(signature, 1, 8, file) == 8 && put_chunk(file, "IHDR", head, sizeof(head)) == 0 &&
        put_chunk(file, "IDAT", data, sizeof(data)) == 0 && put_chunk(file, "IEND", data, 0) == 0;
    return fclose(file) == 0 && is_put ? 0 : -1;
}

static int write_images(const char *dir, int n)
{
    char path[RUN_PATH_BYTES];
    int rc = 0;
    for (int class = 0; rc == 0 && class < 2; class ++) {
        snprintf(path, sizeof(path), "%s/%d", dir, class);
        rc = mkdir(path, 0700);
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        snprintf(path, sizeof(path), "%s/%d/%d.png", dir, i % 2, i);
        rc = write_image(path, i);
    }
    return rc;
}

/* CPU time of the first epoch, and of the later ones together. */
static int read_images(const char *dir, int rank, int64_t memory, double ret[2])
{
    static const struct load load = {"images", DATA_IMAGE_FOLDER, 1, mnist_list, 1};
    struct ms_err err = {0, ""};
    struct data_source *source = NULL;
    struct times times;
    struct data_spec spec = {
        .kind = DATA_IMAGE_FOLDER, .shuffle = 1, .seed = 1, .height = 64, .width = 64};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    if (data_open(&spec, &source, &err) < 0) {
        return fail(load.name, &err);
    }
    data_keep_decoded(source, memory);
    const int64_t rows = read_epochs(&load, source, rank, IMAGE_RANKS, IMAGE_EPOCHS, &times);
    ret[0] = times.cpu_seconds[0];
    ret[1] = 0;
    for (int i = 1; i < IMAGE_EPOCHS; i++) {
        ret[1] += times.cpu_seconds[i];
    }
    data_close(source);
    return rows > 0 ? 0 : -1;
}

/* Of all ranks. Their epochs are not in step: what one decodes in its second another may find in
 * its first. */
static int read_images_at_once(const char *dir, int64_t memory, double ret[2])
{
    int fds[2];
    int started = 0;
    int failed = 0;
    double of[2];
    if (pipe(fds) != 0) {
        return -1;
    }
    for (; started < IMAGE_RANKS; started++) {
        const pid_t pid = fork();
        if (pid <= 0) {
            const int rc = pid == 0 ? read_images(dir, started, memory, of) : -1;
            if (pid == 0) {
                _exit(rc == 0 && write(fds[1], of, sizeof(of)) == (ssize_t)sizeof(of) ? 0 : 1);
            }
            failed++;
            break;
        }
    }
    close(fds[1]);
    ret[0] = ret[1] = 0;
    while (read(fds[0], of, sizeof(of)) == (ssize_t)sizeof(of)) {
        ret[0] += of[0];
        ret[1] += of[1];
    }
    close(fds[0]);
    for (int i = 0; i < started; i++) {
        int status = 0;
        failed += wait(&status) < 0 || status != 0;
    }
    return failed == 0 ? 0 : -1;
}

static int measure_images(const char *root, int n)
{
    char dir[RUN_PATH_BYTES];
    double alone[2];
    double shared[2];
    snprintf(dir, sizeof(dir), "%s/images", root);
    if (mkdir(dir, 0700) != 0 || write_images(dir, n) != 0 ||
        read_images_at_once(dir, 0, alone) != 0 ||
        read_images_at_once(dir, INT64_C(1) << 30, shared) != 0) {
        return -1;
    }
    const double epochs = IMAGE_EPOCHS - 1;
    printf("images, %d ranks: first epoch %.3f s of CPU, then %.3f s; shared %.3f s, then %.3f s: "
           "%.2f and %.2f times less\n",
           IMAGE_RANKS, alone[0], alone[1] / epochs, shared[0], shared[1] / epochs,
           alone[0] / shared[0], alone[1] / shared[1]);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"quick", no_argument, NULL, 'q'}, {NULL, 0, NULL, 0}};
    const char *data = getenv("DATA_PATH");
    char dir[] = "/tmp/msched-bench-XXXXXX";
    int is_quick = 0;
    int opt;
    while ((opt = getopt_long(argc, argv, "q", options, NULL)) != -1) {
        if (opt != 'q') {
            fprintf(stderr, "usage: loader [--quick]\n");
            return 2;
        }
        is_quick = 1;
    }
    if (mkdtemp(dir) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int rc = write_files(dir, is_quick ? SHARE_QUICK : 1);
    for (size_t i = 0; rc == 0 && i < sizeof(loads) / sizeof(loads[0]); i++) {
        rc = measure(&loads[i], dir, is_quick ? EPOCHS_QUICK : EPOCHS);
    }
    rc = rc == 0 ? measure_images(dir, is_quick ? IMAGES / SHARE_QUICK : IMAGES) : rc;
    for (int world = 1; rc == 0 && data != NULL && data[0] != '\0' && world <= 8;
         world = world < 2 ? 2 : world * 4) {
        rc = measure_packed(data, world);
    }
    nftw(dir, run_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc == 0 ? 0 : 1;
}
