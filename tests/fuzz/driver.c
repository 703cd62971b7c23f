/* driver.c - runs a fuzzer over its corpus and over seeded mutations of it, where libFuzzer is not
 *
 *     fuzz_wire FOLDER...      every file of the folders, then FUZZ_RUNS (20000) mutations
 *     fuzz_wire FILE           just that input, for example one that a crash left behind
 *
 * Everything follows from FUZZ_SEED (1): the same command makes the same inputs. The input that
 * crashes is written to crash-PID.bin in the current directory. */
#include "proto/macros.h"
#include "proto/rng.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEEDS_MAX = 1024, INPUT_MAX = 1 << 16, ROUNDS_DEFAULT = 20000 };

struct input {
    uint8_t *bytes;
    size_t size;
};

static struct input seeds[SEEDS_MAX];
static size_t n_seeds;

/* The input in work, for the handler of a crash. */
static const uint8_t *now_bytes;
static size_t now_size;
static char crash_path[64];

static void on_crash(int number)
{
    int fd = open(crash_path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    static const char text[] = "the input is in crash-PID.bin\n";
    ssize_t n = fd >= 0 ? write(fd, now_bytes, now_size) : 0;
    n += write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n;
    signal(number, SIG_DFL);
    raise(number);
}

static void run(const uint8_t *bytes, size_t size)
{
    /* a block of its own size: sanitizers then see the first byte behind it */
    uint8_t *copy = (uint8_t *)malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, bytes, size);
    now_bytes = copy;
    now_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void add_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL || n_seeds == SEEDS_MAX) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    uint8_t *bytes = (uint8_t *)malloc(INPUT_MAX);
    if (bytes == NULL) {
        abort();
    }
    seeds[n_seeds].size = fread(bytes, 1, INPUT_MAX, file);
    seeds[n_seeds].bytes = bytes;
    n_seeds++;
    fclose(file);
}

static void add_folder(const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort); /* the same order everywhere */
    if (n < 0) {
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        char file[1024];
        struct stat st;
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode)) {
            add_file(file);
        }
        free(names[i]);
    }
    free(names);
}

/* ---- mutations ---- */

struct mutator {
    uint64_t stream;
    uint64_t at;
    uint8_t bytes[INPUT_MAX];
    size_t size;
};

static size_t below(struct mutator *m, size_t n)
{
    return n > 0 ? (size_t)ms_rng_below(m->stream, m->at++, n) : 0;
}

static void insert(struct mutator *m, size_t at, const uint8_t *bytes, size_t n)
{
    if (m->size + n > INPUT_MAX) {
        return;
    }
    memmove(m->bytes + at + n, m->bytes + at, m->size - at);
    memmove(m->bytes + at, bytes, n);
    m->size += n;
}

static void flip_bit(struct mutator *m)
{
    if (m->size > 0) {
        m->bytes[below(m, m->size)] ^= (uint8_t)(1U << below(m, 8));
    }
}

static void set_byte(struct mutator *m)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, '\n', '"', '0', '-', '{', ':', ' '};
    if (m->size > 0) {
        m->bytes[below(m, m->size)] =
            below(m, 4) == 0 ? (uint8_t)below(m, 256) : values[below(m, sizeof(values))];
    }
}

static void set_number(struct mutator *m)
{
    static const uint64_t values[] = {0,          1,           0x7fffffff, 0x80000000,
                                      0xffffffff, 0x100000000, UINT64_MAX, (uint64_t)1 << 63};
    uint64_t value = below(m, 2) == 0 ? values[below(m, MS_ARRAY_SIZE(values))] : below(m, 70000);
    size_t n = (size_t)1 << below(m, 4);
    int big = (int)below(m, 2);
    if (m->size < n) {
        return;
    }
    size_t at = below(m, m->size - n + 1);
    for (size_t i = 0; i < n; i++) {
        m->bytes[at + i] = (uint8_t)(value >> (8 * (big ? n - 1 - i : i)));
    }
}

static void delete_block(struct mutator *m)
{
    size_t at = below(m, m->size);
    size_t n = below(m, m->size - at < 32 ? m->size - at + 1 : 33);
    memmove(m->bytes + at, m->bytes + at + n, m->size - at - n);
    m->size -= n;
}

static void repeat_block(struct mutator *m)
{
    uint8_t block[256];
    size_t at = below(m, m->size);
    size_t n = below(m, m->size - at < sizeof(block) ? m->size - at + 1 : sizeof(block));
    size_t times = (size_t)1 << below(m, 7);
    memcpy(block, m->bytes + at, n);
    for (size_t i = 0; i < times; i++) {
        insert(m, at, block, n);
    }
}

static void insert_noise(struct mutator *m)
{
    uint8_t block[16];
    size_t n = 1 + below(m, sizeof(block));
    for (size_t i = 0; i < n; i++) {
        block[i] = (uint8_t)below(m, 256);
    }
    insert(m, below(m, m->size + 1), block, n);
}

static void splice_seed(struct mutator *m)
{
    const struct input *other = &seeds[below(m, n_seeds)];
    size_t from = below(m, other->size);
    size_t n = below(m, other->size - from < 512 ? other->size - from + 1 : 512);
    insert(m, below(m, m->size + 1), other->bytes + from, n);
}

static void cut(struct mutator *m)
{
    m->size = below(m, m->size + 1);
}

static void (*const mutations[])(struct mutator *) = {
    flip_bit,     flip_bit,     set_byte,     set_byte,    set_number, set_number,
    delete_block, repeat_block, insert_noise, splice_seed, cut,
};

static void mutate(struct mutator *m, uint64_t seed, uint64_t round)
{
    m->stream = ms_rng_stream(seed, round, 0);
    m->at = 0;
    const struct input *from = &seeds[below(m, n_seeds)];
    memcpy(m->bytes, from->bytes, from->size);
    m->size = from->size;
    size_t n = 1 + below(m, 6);
    for (size_t i = 0; i < n; i++) {
        mutations[below(m, MS_ARRAY_SIZE(mutations))](m);
    }
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    static struct mutator m;
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    uint64_t rounds = setting("FUZZ_RUNS", ROUNDS_DEFAULT);
    uint64_t seed = setting("FUZZ_SEED", 1);
    snprintf(crash_path, sizeof(crash_path), "crash-%d.bin", (int)getpid());
    for (size_t i = 0; i < MS_ARRAY_SIZE(signals); i++) {
        signal(signals[i], on_crash);
    }
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISREG(st.st_mode)) {
            add_file(argv[i]);
            rounds = 0;
        } else {
            add_folder(argv[i]);
        }
    }
    if (n_seeds == 0) {
        fprintf(stderr, "usage: %s FOLDER...: the folders hold no file\n", argv[0]);
        return 1;
    }
    for (size_t i = 0; i < n_seeds; i++) {
        run(seeds[i].bytes, seeds[i].size);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        mutate(&m, seed, round);
        run(m.bytes, m.size);
    }
    printf("%zu seeds, %llu mutations\n", n_seeds, (unsigned long long)rounds);
    for (size_t i = 0; i < n_seeds; i++) {
        free(seeds[i].bytes);
    }
    return 0;
}
