/* test_loader.c - the thread that stays ahead: order, last batches, errors, stopping, restarting */
#include "libworker/data/data.h"
#include "libworker/data/mixup.h"
#include "proto/rng.h"
#include "tests/unit/data_files.h"

#include <pthread.h>

/* A set of n records whose label is row % 10 and whose pixels tell the row. */
struct fixture {
    const char *dir;
    struct data_source *source;
};

static struct fixture fixture_make(int n)
{
    struct fixture f = {test_dir_make(), NULL};
    uint8_t *bytes = cifar_make(n, 0);
    for (int i = 0; i < n; i++) {
        bytes[i * 3073 + 1] = (uint8_t)(i / 256);
        bytes[i * 3073 + 2] = (uint8_t)(i % 256);
    }
    file_write(f.dir, "data_batch_1.bin", bytes, (size_t)n * 3073);
    free(bytes);
    struct data_spec spec = {.kind = DATA_CIFAR10};
    snprintf(spec.path, sizeof(spec.path), "%s", f.dir);
    ck_ms_ok(data_open(&spec, &f.source, err));
    return f;
}

static void fixture_remove(const struct fixture *f)
{
    data_close(f->source);
    test_dir_remove(f->dir);
}

static const float *floats_of(const struct batch_tensor *tensor)
{
    ck_assert_int_eq(tensor->dtype, MS_F32);
    return tensor->values;
}

static int32_t label_of(const struct batch *batch, int64_t k)
{
    ck_assert_int_eq(batch->labels.dtype, MS_I32);
    ck_assert_uint_lt(k, batch->labels.count);
    return ((const int32_t *)batch->labels.values)[k];
}

static int64_t row_of(const struct batch *batch, int64_t k)
{
    ck_assert_uint_le(3072 * (size_t)(k + 1), batch->images.count);
    const float *image = floats_of(&batch->images) + k * 3072;
    return (int64_t)image[0] * 256 + (int64_t)image[1];
}

/* Reads to the end into rows (at most max); returns how many. */
static int64_t read_all(struct loader *loader, int64_t *rows, int64_t max)
{
    struct batch batch;
    int64_t n = 0;
    int rc = 0;
    struct ms_err err = {0, ""};
    while ((rc = loader_next(loader, &batch, &err)) == 1) {
        for (int64_t k = 0; k < batch.rows; k++) {
            ck_assert_int_lt(n, max);
            rows[n] = row_of(&batch, k);
            ck_assert_int_eq(label_of(&batch, k), rows[n] % 10);
            n++;
        }
        loader_release(loader);
    }
    ck_assert_msg(rc == 0, "%s", err.text);
    return n;
}

START_TEST(batches_come_in_file_order_without_shuffle)
{
    struct fixture f = fixture_make(10);
    const struct loader_config cfg = {.source = f.source, .batch = 4, .world = 1, .epochs = 2};
    struct loader *loader = NULL;
    struct loader_info info;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    loader_get_info(loader, &info);
    ck_assert_int_eq(info.rows, 10);
    ck_assert_int_eq(info.steps_per_epoch, 3);
    ck_assert_int_eq(info.last_rows, 2);
    ck_assert_int_eq(info.channels * info.height * info.width, 3072);
    ck_assert_int_eq(info.classes, 10);

    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int64_t step = 0; step < 3; step++) {
            struct batch batch;
            ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
            ck_assert_int_eq(batch.epoch, epoch);
            ck_assert_int_eq(batch.step, step);
            ck_assert_int_eq(batch.last_of_epoch, step == 2);
            ck_assert_int_eq(batch.rows, step == 2 ? 2 : 4);
            ck_assert_uint_eq(batch.images.count, 4 * 3072);
            ck_assert_uint_eq(batch.labels.count, 4);
            for (int64_t k = 0; k < batch.rows; k++) {
                ck_assert_int_eq(row_of(&batch, k), step * 4 + k);
            }
            for (int64_t k = batch.rows * 3072; k < 4 * 3072; k++) {
                ck_assert_float_eq(floats_of(&batch.images)[k], 0);
            }
            ck_assert(step < 2 || (label_of(&batch, 2) == 0 && label_of(&batch, 3) == 0));
            loader_release(loader);
        }
    }
    struct batch batch;
    ck_assert_int_eq(loader_next(loader, &batch, NULL), 0);
    ck_assert_int_eq(loader_next(loader, &batch, NULL), 0);
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

START_TEST(measuring_says_what_a_loader_would_give_and_refuses_what_it_would_refuse)
{
    struct fixture f = fixture_make(10);
    struct loader_config cfg = {.source = f.source, .batch = 4, .world = 1, .epochs = 1};
    struct loader *loader = NULL;
    struct loader_info measured;
    struct loader_info real;
    memset(&measured, 0, sizeof(measured));
    memset(&real, 0, sizeof(real));

    ck_ms_ok(loader_measure(&cfg, &measured, err));
    ck_ms_ok(loader_create(&cfg, &loader, err));

    loader_get_info(loader, &real);
    ck_assert_mem_eq(&measured, &real, sizeof(real));
    loader_destroy(loader);
    cfg.batch = 0;
    ck_ms_fails(loader_measure(&cfg, &measured, err), MS_E_INVALID, "batch_size 0");
    fixture_remove(&f);
}
END_TEST

START_TEST(shuffled_epochs_differ_and_each_has_every_row)
{
    struct fixture f = fixture_make(50);
    const struct loader_config cfg = {
        .source = f.source, .batch = 7, .world = 1, .epochs = 2, .shuffle = 1, .seed = 4};
    struct loader *loader = NULL;
    int64_t rows[100];
    ck_ms_ok(loader_create(&cfg, &loader, err));

    ck_assert_int_eq(read_all(loader, rows, 100), 100);

    ck_assert_mem_ne(rows, rows + 50, 50 * sizeof(rows[0]));
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[50] = {0};
        for (int i = 0; i < 50; i++) {
            seen[rows[epoch * 50 + i]]++;
        }
        for (int i = 0; i < 50; i++) {
            ck_assert_int_eq(seen[i], 1);
        }
    }
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

/* N workers with batch b read what one worker with batch N b reads, step by step. */
START_TEST(four_workers_read_together_what_one_reads)
{
    enum { ROWS = 64, WORLD = 4, BATCH = 4 };
    struct fixture f = fixture_make(ROWS);
    int64_t alone[ROWS];
    struct loader_config cfg = {.source = f.source,
                                .batch = WORLD * BATCH,
                                .world = 1,
                                .epochs = 1,
                                .shuffle = 1,
                                .seed = 8};
    struct loader *loader = NULL;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    ck_assert_int_eq(read_all(loader, alone, ROWS), ROWS);
    loader_destroy(loader);

    cfg.batch = BATCH;
    cfg.world = WORLD;
    for (int rank = 0; rank < WORLD; rank++) {
        int64_t rows[ROWS / WORLD];
        cfg.rank = rank;
        ck_ms_ok(loader_create(&cfg, &loader, err));
        ck_assert_int_eq(read_all(loader, rows, ROWS / WORLD), ROWS / WORLD);
        loader_destroy(loader);
        for (int i = 0; i < ROWS / WORLD; i++) {
            ck_assert_int_eq(rows[i], alone[i * WORLD + rank]);
        }
    }
    fixture_remove(&f);
}
END_TEST

START_TEST(drop_remainder_leaves_the_short_batch_out)
{
    struct fixture f = fixture_make(10);
    const struct loader_config cfg = {
        .source = f.source, .batch = 4, .world = 1, .epochs = 1, .drop_remainder = 1};
    struct loader *loader = NULL;
    struct loader_info info;
    int64_t rows[10];
    ck_ms_ok(loader_create(&cfg, &loader, err));
    loader_get_info(loader, &info);
    ck_assert_int_eq(info.steps_per_epoch, 2);
    ck_assert_int_eq(info.last_rows, 4);
    ck_assert_int_eq(read_all(loader, rows, 10), 8);
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

/* k batches of b have the rows that one of k b would have, in its order, on every rank; whoever
 * begins at a step sees the same. */
START_TEST(batches_of_a_step_have_the_rows_of_one_that_is_as_large)
{
    for (uint64_t round = 0; round < 60; round++) {
        const int n = 8 + (int)ms_rng_below(1, round, 60);
        const int64_t k = 1 + (int64_t)ms_rng_below(2, round, 5);
        const int64_t b = 1 + (int64_t)ms_rng_below(3, round, 4);
        struct fixture f = fixture_make(n);
        struct fixture g = fixture_make(n); /* a source has one reader */
        struct loader_config cfg = {.source = f.source,
                                    .batch = k * b,
                                    .world = 1 + (int)ms_rng_below(4, round, 3),
                                    .shuffle = round % 2 == 0,
                                    .drop_remainder = round % 3 == 0,
                                    .seed = 5,
                                    .epochs = 2};
        cfg.rank = (int)ms_rng_below(5, round, (uint64_t)cfg.world);
        struct loader_info whole, parts;
        struct loader *one = NULL;
        struct loader *several = NULL;
        struct batch large, small;
        if (loader_measure(&cfg, &whole, NULL) < 0) { /* nothing is left */
            cfg.batch = b;
            cfg.accumulate = k;
            ck_ms_fails(loader_measure(&cfg, &parts, err), MS_E_INVALID, "leaves nothing");
            fixture_remove(&f);
            fixture_remove(&g);
            continue;
        }
        cfg.first_step = (int64_t)ms_rng_below(6, round, (uint64_t)whole.steps_per_epoch);
        ck_ms_ok(loader_create(&cfg, &one, err));
        cfg.source = g.source;
        cfg.batch = b;
        cfg.accumulate = k;
        ck_ms_ok(loader_measure(&cfg, &parts, err));
        ck_ms_ok(loader_create(&cfg, &several, err));
        ck_assert_int_eq(parts.steps_per_epoch, whole.steps_per_epoch);
        while (loader_next(one, &large, NULL) == 1) {
            int64_t done = 0;
            for (int64_t part = 0; done < large.rows; part++) {
                ck_assert_int_eq(loader_next(several, &small, NULL), 1);
                ck_assert_int_eq(small.part, part);
                ck_assert_int_eq(small.n_parts, (large.rows + b - 1) / b);
                ck_assert_int_eq(small.epoch, large.epoch);
                ck_assert_int_eq(small.step, large.step);
                ck_assert_int_eq(small.step_rows, large.rows);
                ck_assert(small.rows == b || small.rows == parts.last_rows);
                for (int64_t i = 0; i < small.rows; i++, done++) {
                    ck_assert_int_eq(row_of(&small, i), row_of(&large, done));
                }
                ck_assert(small.last_of_epoch == (large.last_of_epoch && done == large.rows));
                loader_release(several);
            }
            ck_assert_int_eq(done, large.rows);
            ck_assert_int_eq(large.part, 0);
            ck_assert_int_eq(large.n_parts, 1);
            loader_release(one);
        }
        ck_assert_int_eq(loader_next(several, &small, NULL), 0);
        loader_destroy(one);
        loader_destroy(several);
        fixture_remove(&f);
        fixture_remove(&g);
    }
}
END_TEST

START_TEST(evaluation_reads_every_row_once_in_file_order)
{
    enum { ROWS = 11, WORLD = 3 };
    struct fixture f = fixture_make(ROWS);
    int seen[ROWS] = {0};
    for (int rank = 0; rank < WORLD; rank++) {
        const struct loader_config cfg = {.source = f.source,
                                          .batch = 3,
                                          .rank = rank,
                                          .world = WORLD,
                                          .epochs = 9,
                                          .drop_remainder = 1,
                                          .shuffle = 1,
                                          .evaluation = 1};
        struct loader *loader = NULL;
        int64_t rows[ROWS];
        ck_ms_ok(loader_create(&cfg, &loader, err));
        int64_t n = read_all(loader, rows, ROWS);
        ck_assert_int_eq(n, rank < 2 ? 4 : 3);
        for (int64_t i = 0; i < n; i++) {
            ck_assert_int_eq(rows[i], i * WORLD + rank);
            seen[rows[i]]++;
        }
        loader_destroy(loader);
    }
    for (int i = 0; i < ROWS; i++) {
        ck_assert_int_eq(seen[i], 1);
    }
    fixture_remove(&f);
}
END_TEST

START_TEST(a_rank_without_rows_to_evaluate_ends_at_once)
{
    struct fixture f = fixture_make(2);
    const struct loader_config cfg = {
        .source = f.source, .batch = 3, .rank = 2, .world = 3, .evaluation = 1};
    struct loader *loader = NULL;
    struct batch batch;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    ck_assert_int_eq(loader_next(loader, &batch, NULL), 0);
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

/* What recovery needs: any later start sees the rest exactly, augmentation included. */
START_TEST(a_later_start_sees_what_the_dead_one_would_have_seen)
{
    struct fixture f = fixture_make(30);
    const struct transform transforms[] = {
        {.kind = TRANSFORM_RANDOM_CROP,
         .height = 32,
         .width = 32,
         .pad_left = 4,
         .pad_top = 4,
         .pad_right = 4,
         .pad_bottom = 4},
        {.kind = TRANSFORM_RANDOM_HORIZONTAL_FLIP, .probability = 0.5},
    };
    struct loader_config cfg = {.source = f.source,
                                .transforms = transforms,
                                .n_transforms = 2,
                                .batch = 4,
                                .rank = 1,
                                .world = 2,
                                .epochs = 3,
                                .shuffle = 1,
                                .seed = 6};
    enum { STEPS = 4, EPOCHS = 3, SIZE = 4 * 3072 };
    static float images[EPOCHS * STEPS][SIZE];
    struct loader *loader = NULL;
    struct batch batch;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    for (int i = 0; i < EPOCHS * STEPS; i++) {
        ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
        memcpy(images[i], batch.images.values, sizeof(images[i]));
        loader_release(loader);
    }
    loader_destroy(loader);

    for (int start = 0; start < EPOCHS * STEPS; start++) {
        cfg.first_epoch = start / STEPS;
        cfg.first_step = start % STEPS;
        ck_ms_ok(loader_create(&cfg, &loader, err));
        for (int i = start; i < EPOCHS * STEPS; i++) {
            ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
            ck_assert_int_eq(batch.epoch, i / STEPS);
            ck_assert_int_eq(batch.step, i % STEPS);
            ck_assert_mem_eq(images[i], batch.images.values, sizeof(images[i]));
            loader_release(loader);
        }
        ck_assert_int_eq(loader_next(loader, &batch, NULL), 0);
        loader_destroy(loader);
    }
    fixture_remove(&f);
}
END_TEST

START_TEST(a_batch_stays_as_it_is_until_released)
{
    struct fixture f = fixture_make(40);
    const struct loader_config cfg = {
        .source = f.source, .batch = 2, .world = 1, .epochs = 1, .depth = 1};
    struct loader *loader = NULL;
    float copy[2 * 3072];
    ck_ms_ok(loader_create(&cfg, &loader, err));
    for (int64_t step = 0; step < 20; step++) {
        struct batch batch;
        ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
        memcpy(copy, batch.images.values, sizeof(copy));
        for (int i = 0; i < 200; i++) { /* the thread fills the next one meanwhile */
            ck_assert_mem_eq(copy, batch.images.values, sizeof(copy));
        }
        ck_assert_int_eq(row_of(&batch, 1), 2 * step + 1);
        loader_release(loader);
    }
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

START_TEST(targets_come_instead_of_labels)
{
    const struct data_spec spec = {.kind = DATA_NONLINEAR, .samples = 5};
    struct data_source *source = NULL;
    struct loader *loader = NULL;
    struct batch batch;
    ck_ms_ok(data_open(&spec, &source, err));
    const struct loader_config cfg = {.source = source, .batch = 3, .world = 1, .epochs = 1};
    ck_ms_ok(loader_create(&cfg, &loader, err));
    for (int step = 0; step < 2; step++) {
        ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
        ck_assert_uint_eq(batch.images.count, 3 * 2);
        ck_assert_uint_eq(batch.labels.count, 3);
        for (int64_t k = 0; k < 3; k++) {
            ck_assert_int_eq(floats_of(&batch.labels)[k] != 0, k < batch.rows);
        }
        loader_release(loader);
    }
    loader_destroy(loader);
    data_close(source);
}
END_TEST

START_TEST(an_error_comes_after_the_batches_before_it)
{
    const char *dir = test_dir_make();
    uint8_t *bytes = cifar_make(10, 0);
    bytes[9 * 3073] = 77;
    file_write(dir, "data_batch_1.bin", bytes, 10 * 3073);
    free(bytes);
    struct data_spec spec = {.kind = DATA_CIFAR10};
    snprintf(spec.path, sizeof(spec.path), "%s", dir);
    struct data_source *source = NULL;
    struct loader *loader = NULL;
    struct batch batch;
    ck_ms_ok(data_open(&spec, &source, err));
    const struct loader_config cfg = {
        .source = source, .batch = 3, .world = 1, .epochs = 1, .depth = 8};
    ck_ms_ok(loader_create(&cfg, &loader, err));

    for (int step = 0; step < 3; step++) {
        ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
        ck_assert_int_eq(batch.rows, 3);
        loader_release(loader);
    }
    ck_ms_fails(loader_next(loader, &batch, err), MS_E_INVALID, "record 9 has label 77");
    ck_ms_fails(loader_next(loader, &batch, err), MS_E_INVALID, "record 9 has label 77");
    loader_destroy(loader);
    data_close(source);
    test_dir_remove(dir);
}
END_TEST

static void *abort_it(void *loader)
{
    loader_abort(loader);
    return NULL;
}

START_TEST(abort_wakes_whoever_waits)
{
    struct fixture f = fixture_make(200);
    const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = 500, .width = 500};
    const struct loader_config cfg = {.source = f.source,
                                      .transforms = &resize,
                                      .n_transforms = 1,
                                      .batch = 200, /* long enough to be aborted in between */
                                      .world = 1,
                                      .epochs = 1000};
    struct loader *loader = NULL;
    struct batch batch;
    pthread_t thread;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    ck_assert_int_eq(pthread_create(&thread, NULL, abort_it, loader), 0);
    int rc = 0;
    while ((rc = loader_next(loader, &batch, NULL)) == 1) {
        loader_release(loader);
    }
    ck_assert_int_eq(rc, MS_E_ABORTED);
    ck_ms_fails(loader_next(loader, &batch, err), MS_E_ABORTED, "stopped");
    pthread_join(thread, NULL);
    loader_destroy(loader);
    fixture_remove(&f);
}
END_TEST

START_TEST(a_loader_may_go_at_any_moment)
{
    struct fixture f = fixture_make(100);
    for (int taken = 0; taken < 6; taken++) {
        const struct loader_config cfg = {
            .source = f.source, .batch = 10, .world = 1, .epochs = 100, .depth = 3};
        struct loader *loader = NULL;
        struct batch batch;
        ck_ms_ok(loader_create(&cfg, &loader, err));
        for (int i = 0; i < taken; i++) {
            ck_assert_int_eq(loader_next(loader, &batch, NULL), 1);
            if (i < taken - 1) { /* the last is still borrowed */
                loader_release(loader);
            }
        }
        loader_destroy(loader);
    }
    loader_destroy(NULL);
    fixture_remove(&f);
}
END_TEST

START_TEST(what_cannot_work_is_refused_before_the_thread_starts)
{
    struct fixture f = fixture_make(10);
    const struct transform crop = {.kind = TRANSFORM_RANDOM_CROP, .height = 99, .width = 1};
    struct loader_config cfg = {
        .source = f.source, .batch = 6, .world = 2, .epochs = 1, .drop_remainder = 1};
    struct loader *loader = NULL;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID,
                "batch_size 6 with drop_remainder leaves nothing: each of 2 workers has 5");
    cfg.batch = 0;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "batch_size 0");
    cfg.batch = MS_BATCH_MAX + 1;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "from 1 to 65536");
    cfg.batch = 5;
    cfg.transforms = &crop;
    cfg.n_transforms = 1;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "larger than the padded image");
    const struct transform resize = {.kind = TRANSFORM_RESIZE, .height = 4096, .width = 4096};
    cfg.transforms = &resize;
    cfg.batch = 60000;
    cfg.drop_remainder = 0;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "more than 16 GiB");
    cfg.n_transforms = MS_TRANSFORMS_MAX + 1;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "17 transforms");
    cfg.n_transforms = 0;
    cfg.depth = 65;
    ck_ms_fails(loader_create(&cfg, &loader, err), MS_E_INVALID, "65 batches ahead");
    fixture_remove(&f);
}
END_TEST

/* Of each record its sample and its labels are the same whatever rank reads it, in whatever batch:
 * two, mixed by what mixup.h draws. */
static void ck_mixed(const struct fixture *f, int rank, int world, int64_t batch_size)
{
    static const struct transform list[] = {{.kind = TRANSFORM_RESCALE, .scale = 2},
                                            {.kind = TRANSFORM_MIXUP, .alpha = 0.4}};
    const struct loader_config cfg = {.source = f->source,
                                      .transforms = list,
                                      .n_transforms = 2,
                                      .batch = batch_size,
                                      .rank = rank,
                                      .world = world,
                                      .seed = 3,
                                      .epochs = 2};
    struct loader *loader = NULL;
    struct batch batch;
    ck_ms_ok(loader_create(&cfg, &loader, err));
    int64_t at = 0;
    while (loader_next(loader, &batch, NULL) == 1) {
        ck_assert(batch.others != NULL && batch.shares != NULL);
        for (int64_t k = 0; k < batch.rows; k++, at++) {
            const int64_t row = at % (300 / world) * world + rank;
            const struct mixup mixup = mixup_draw(0.4, 3, (uint64_t)batch.epoch, row, 300);
            const float *image = floats_of(&batch.images) + k * 3072;
            ck_assert_int_eq(label_of(&batch, k), row % 10);
            ck_assert_int_eq(batch.others[k], mixup.other % 10);
            ck_assert_float_eq(batch.shares[k], mixup.share);
            const float low[] = {(float)(2 * (row % 256)), (float)(2 * (mixup.other % 256))};
            ck_assert_float_eq(image[1], mixup.share * low[0] + (1 - mixup.share) * low[1]);
        }
        loader_release(loader);
    }
    ck_assert_int_eq(at, 2 * 300 / world);
    loader_destroy(loader);
}

START_TEST(mixed_samples_do_not_depend_on_who_reads_them)
{
    struct fixture f = fixture_make(300);
    ck_mixed(&f, 0, 1, 16);
    ck_mixed(&f, 0, 2, 8);
    ck_mixed(&f, 1, 2, 25);
    fixture_remove(&f);
}
END_TEST

/* Numbers are mixed as values are, and the batch has one of each. */
START_TEST(targets_that_are_numbers_are_mixed_in_the_batch)
{
    static const struct transform list[] = {{.kind = TRANSFORM_MIXUP, .alpha = 1}};
    const struct data_spec spec = {.kind = DATA_NONLINEAR, .samples = 64};
    struct data_source *source = NULL;
    struct loader *plain = NULL;
    struct loader *mixed = NULL;
    struct batch before, after;
    ck_ms_ok(data_open(&spec, &source, err));
    struct loader_config cfg = {.source = source, .batch = 64, .world = 1, .seed = 5, .epochs = 1};
    ck_ms_ok(loader_create(&cfg, &plain, err));
    ck_assert_int_eq(loader_next(plain, &before, NULL), 1);
    const float *targets = floats_of(&before.labels);
    float want[64];
    for (int64_t i = 0; i < 64; i++) {
        const struct mixup mixup = mixup_draw(1, 5, 0, i, 64);
        want[i] = mixup.share * targets[i] + (1 - mixup.share) * targets[mixup.other];
    }
    loader_destroy(plain);
    cfg.transforms = list;
    cfg.n_transforms = 1;
    ck_ms_ok(loader_create(&cfg, &mixed, err));
    ck_assert_int_eq(loader_next(mixed, &after, NULL), 1);
    ck_assert(after.others == NULL && after.shares == NULL);
    ck_assert_mem_eq(after.labels.values, want, sizeof(want));
    loader_destroy(mixed);
    data_close(source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loader");
    TCase *tc = tcase_create("loader");
    tcase_add_test(tc, batches_come_in_file_order_without_shuffle);
    tcase_add_test(tc, mixed_samples_do_not_depend_on_who_reads_them);
    tcase_add_test(tc, targets_that_are_numbers_are_mixed_in_the_batch);
    tcase_add_test(tc, measuring_says_what_a_loader_would_give_and_refuses_what_it_would_refuse);
    tcase_add_test(tc, shuffled_epochs_differ_and_each_has_every_row);
    tcase_add_test(tc, four_workers_read_together_what_one_reads);
    tcase_add_test(tc, drop_remainder_leaves_the_short_batch_out);
    tcase_add_test(tc, batches_of_a_step_have_the_rows_of_one_that_is_as_large);
    tcase_add_test(tc, evaluation_reads_every_row_once_in_file_order);
    tcase_add_test(tc, a_rank_without_rows_to_evaluate_ends_at_once);
    tcase_add_test(tc, a_later_start_sees_what_the_dead_one_would_have_seen);
    tcase_add_test(tc, a_batch_stays_as_it_is_until_released);
    tcase_add_test(tc, targets_come_instead_of_labels);
    tcase_add_test(tc, an_error_comes_after_the_batches_before_it);
    tcase_add_test(tc, abort_wakes_whoever_waits);
    tcase_add_test(tc, a_loader_may_go_at_any_moment);
    tcase_add_test(tc, what_cannot_work_is_refused_before_the_thread_starts);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
