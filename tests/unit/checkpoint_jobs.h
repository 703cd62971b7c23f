/* checkpoint_jobs.h - jobs of each kind that save checkpoints, in a folder of the test's own */
#ifndef CHECKPOINT_JOBS_H
#define CHECKPOINT_JOBS_H

#include "tests/unit/checkpoint_case.h"

static const char *dir;
static char folder[128];

static inline void setup(void)
{
    dir = test_dir_make();
    snprintf(folder, sizeof(folder), "%s/ckpt", dir);
    case_notes[0] = '\0';
}

static inline void teardown(void)
{
    test_dir_remove(dir);
}

enum { SETS_MAX = 8, NOBODY = 65534 };

static const struct kind {
    const char *name;
    const char *sets[SETS_MAX];
} kinds[] = {
    {"sgd", {"optimizer={kind: sgd, learning_rate: 0.05}"}},
    {"momentum", {"optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}"}},
    {"adam", {"optimizer={kind: adam, learning_rate: 0.01}", "dataset.shuffle=true"}},
    {"moving statistics, tails and evaluations",
     {"network=cifar_small", "dataset={kind: shapes, samples: 40}", "loss=softmax_cross_entropy",
      "optimizer={kind: adam, learning_rate: 0.01}", "batch_size=16", "epochs=4",
      "evaluate={dataset: {kind: shapes, samples: 20}}"}},
    {"drawn at random",
     {"network=lenet5", "dataset={kind: shapes, samples: 64}", "loss=softmax_cross_entropy",
      "transforms=[{random_crop: {size: 32, padding: 4}}, {random_horizontal_flip: {}}]",
      "optimizer={kind: momentum, learning_rate: 0.01}", "batch_size=8", "epochs=2"}},
    {"adamw, and a rate that rises and falls",
     {"optimizer={kind: adamw, learning_rate: 0.01, weight_decay: 0.1, schedule: {kind: one_cycle, "
      "max_learning_rate: 0.05, min_learning_rate: 0.001, by: step, warmup: 4}}"}},
    {"nesterov, and a rate that falls with the epochs",
     {"optimizer={kind: momentum, learning_rate: 0.01, nesterov: true, weight_decay: 0.01, "
      "schedule: {kind: polynomial, power: 0.9, by: epoch, warmup: 1, warmup_from: 0.1}}",
      "epochs=3"}},
};

/* The job of a kind, with checkpoints (NULL: none). */
static inline void make_job(struct job *ret, const struct kind *kind, const char *checkpoint)
{
    const char *sets[SETS_MAX + 1];
    char set[256];
    size_t n = 0;
    while (n < SETS_MAX && kind->sets[n] != NULL) {
        sets[n] = kind->sets[n];
        n++;
    }
    if (checkpoint != NULL) {
        snprintf(set, sizeof(set), "checkpoint=%s", checkpoint);
        sets[n++] = set;
    }
    train_case_job(ret, sets, n);
}

static inline int is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static inline struct checkpoint_list find(struct train *train)
{
    struct checkpoint_list list;
    ck_ms_ok(checkpoint_find(train, &list, err));
    return list;
}

/* What the job names keeps it from beginning. */
static inline void ck_is_refused(struct train *train, const char *want)
{
    struct checkpoint_list list = find(train);
    ck_assert_int_eq(ms_err_code(&list.refusal), MS_E_INVALID);
    ck_assert_msg(strstr(ms_err_text(&list.refusal), want) != NULL, "%s",
                  ms_err_text(&list.refusal));
    checkpoint_list_fini(&list);
}

static inline void make_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static inline struct checkpoint_manifest read_manifest(const char *name)
{
    struct checkpoint_manifest m;
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    ck_ms_ok(checkpoint_verify(path, CHECKPOINT_OWN, &m, err));
    return m;
}

static inline void damage(const char *name, long at)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    int c = fgetc(file);
    ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
    fputc(c ^ 4, file);
    fclose(file);
}

static inline uint64_t sum_state(const struct train *train)
{
    uint64_t sum = 0;
    const void *state = NULL;
    size_t bytes = 0;
    for (int i = 0; replica_view_state(train->replica, i, &state, &bytes); i++) {
        for (size_t k = 0; k < bytes; k++) {
            sum = sum * 31 + ((const uint8_t *)state)[k];
        }
    }
    return sum;
}

static inline int count_notes(const char *text)
{
    int n = 0;
    for (const char *at = strstr(case_notes, text); at != NULL; at = strstr(at + 1, text)) {
        n++;
    }
    return n;
}

/* Root may look everywhere: the folder is given to who may not. */
static inline void become_nobody(void)
{
    ck_assert_int_eq(chmod(dir, 0755), 0);
    if (getuid() == 0) {
        ck_assert_int_eq(chown(folder, NOBODY, NOBODY), 0);
        ck_assert_int_eq(seteuid(NOBODY), 0);
    }
}

static inline void become_again(void)
{
    ck_assert(getuid() != 0 || seteuid(0) == 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
}

#endif
