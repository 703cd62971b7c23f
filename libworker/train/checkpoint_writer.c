/* checkpoint_writer.c - writes checkpoints beside the training: one thread, one spare copy */
#include "libworker/train/checkpoint_writer.h"

#include "libworker/host/memory.h"
#include "libworker/kernel/kernel.h"
#include "libworker/train/checkpoint_keep.h"
#include "libworker/train/checkpoint_save.h"
#include "libworker/train/checkpoint_state.h"
#include "proto/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint_writer {
    struct checkpoint_writer_config cfg;
    struct checkpoint_save save;
    void *spare[CHECKPOINT_BUFFERS];
    struct checkpoint_facts facts; /* of what is in the spare copy */

    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int busy, ends;
    uint64_t saved;
    char trouble[MS_ERR_TEXT_MAX]; /* the cause that was said; "" : the last one was written */
    char words[MS_ERR_TEXT_MAX];
    int told_small; /* that there is no room for as many as the job keeps */
};

/* ---- writing ---- */

/* An error's last part is the system's: the same cause, whatever file it met. */
static const char *cause_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon != NULL ? colon : text;
}

static void note_result(struct checkpoint_writer *w, uint64_t step, int rc,
                        const struct ms_err *why)
{
    char *known = w->trouble;
    pthread_mutex_lock(&w->lock);
    if (rc == 0) {
        w->saved = step;
        if (known[0] != '\0') {
            snprintf(w->words, sizeof(w->words),
                     "checkpoints are written again: that of step %" PRIu64 " is", step);
        } else if (w->save.gave_way && !w->told_small) {
            w->told_small = 1;
            snprintf(w->words, sizeof(w->words),
                     "%.100s has no room for %d checkpoints (checkpoint.keep_max): the oldest went "
                     "for that of step %" PRIu64 ", and will for later ones",
                     w->cfg.folder, (int)w->cfg.job->checkpoint_keep_max, step);
        }
        known[0] = '\0';
    } else if (strcmp(known, cause_of(ms_err_text(why))) != 0) {
        snprintf(known, sizeof(w->trouble), "%s", cause_of(ms_err_text(why)));
        snprintf(w->words, sizeof(w->words),
                 "no checkpoint of step %" PRIu64 ": %.200s; the training goes on, %s", step,
                 ms_err_text(why),
                 w->save.gave_way ? "the oldest checkpoint went for it" : "older checkpoints stay");
    }
    pthread_mutex_unlock(&w->lock);
}

static void write_one(struct checkpoint_writer *w, void *const *buffers,
                      const struct checkpoint_facts *facts)
{
    struct ms_err why = {0, ""};
    int rc = checkpoint_save_write(&w->save, buffers, facts, &why);
    note_result(w, facts->step, rc, &why);
    if (rc == 0 && w->cfg.on_saved != NULL) {
        w->cfg.on_saved(w->cfg.arg, facts->step);
    }
}

static void *run(void *arg)
{
    struct checkpoint_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->ends || w->busy) {
        if (!w->busy) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        write_one(w, w->spare, &w->facts);
        pthread_mutex_lock(&w->lock);
        w->busy = 0;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- taking ---- */

struct copy {
    void *to;
    const void *from;
};

static void copy_piece(const void *arg, size_t at, size_t n)
{
    const struct copy *copy = arg;
    memcpy((char *)copy->to + at, (const char *)copy->from + at, n);
}

static void copy_state(struct checkpoint_writer *w)
{
    struct copy copy;
    size_t bytes = 0;
    for (int i = 0; replica_view_state(w->cfg.replica, i, &copy.from, &bytes); i++) {
        copy.to = w->spare[i];
        kernel_in_pieces(bytes, copy_piece, &copy, replica_threads(w->cfg.replica));
    }
}

/* The step pays the write. */
static void write_here(struct checkpoint_writer *w, const struct checkpoint_facts *facts)
{
    union {
        const void *seen;
        void *lent; /* oneDNN takes no pointer to const, and leaves it as it is */
    } buffer;
    void *buffers[CHECKPOINT_BUFFERS] = {NULL};
    size_t bytes = 0;
    for (int i = 0; replica_view_state(w->cfg.replica, i, &buffer.seen, &bytes); i++) {
        buffers[i] = buffer.lent;
    }
    write_one(w, buffers, facts);
}

static int is_busy(struct checkpoint_writer *w)
{
    pthread_mutex_lock(&w->lock);
    int busy = w->busy;
    pthread_mutex_unlock(&w->lock);
    return busy;
}

int checkpoint_writer_take(struct checkpoint_writer *writer, const struct checkpoint_facts *facts)
{
    if (!writer->has_thread) {
        write_here(writer, facts);
        return 1;
    }
    if (is_busy(writer)) {
        return 0;
    }
    copy_state(writer);
    pthread_mutex_lock(&writer->lock);
    writer->facts = *facts;
    writer->busy = 1;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return 1;
}

void checkpoint_writer_descend(struct checkpoint_writer *writer, const char *first_tag)
{
    checkpoint_save_descend(&writer->save, first_tag);
}

int checkpoint_writer_make_folder(const struct checkpoint_writer *writer, struct ms_err *err)
{
    return checkpoint_save_make_folder(&writer->save, err);
}

int checkpoint_writer_claim(struct checkpoint_writer *writer, struct ms_err *err)
{
    return checkpoint_save_claim(&writer->save, err);
}

int checkpoint_writer_has(const struct checkpoint_writer *writer, uint64_t step)
{
    return checkpoint_save_has(&writer->save, step);
}

uint64_t checkpoint_writer_newest(const struct checkpoint_writer *writer, uint64_t step)
{
    return checkpoint_keep_newest(&writer->save, step);
}

void checkpoint_writer_tidy(const struct checkpoint_writer *writer, uint64_t step)
{
    checkpoint_save_tidy(&writer->save, step);
}

void checkpoint_writer_wait(struct checkpoint_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    while (writer->busy) {
        pthread_cond_wait(&writer->changed, &writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
}

uint64_t checkpoint_writer_saved(struct checkpoint_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    uint64_t saved = writer->saved;
    pthread_mutex_unlock(&writer->lock);
    return saved;
}

int checkpoint_writer_words(struct checkpoint_writer *writer, char *ret, size_t size)
{
    pthread_mutex_lock(&writer->lock);
    int n = snprintf(ret, size, "%s", writer->words);
    writer->words[0] = '\0';
    pthread_mutex_unlock(&writer->lock);
    return n > 0;
}

/* ---- its life ---- */

static int start_thread(struct checkpoint_writer *w, struct ms_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < w->save.state.n_buffers; i++) {
        rc = memory_alloc(w->save.state.bytes[i], "the copy of the state for checkpoints",
                          &w->spare[i], err);
    }
    if (rc == 0) {
        int failed = ms_thread_start(&w->thread, run, w);
        w->has_thread = failed == 0;
        rc = failed == 0
                 ? 0
                 : ms_fail(err, MS_E_NOMEM, "no thread for checkpoints: %s", strerror(failed));
    }
    return rc;
}

int checkpoint_writer_create(const struct checkpoint_writer_config *cfg,
                             struct checkpoint_writer **ret, struct ms_err *err)
{
    struct checkpoint_writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for checkpoints");
    }
    w->cfg = *cfg;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int rc = checkpoint_save_init(&w->save, &w->cfg, err);
    rc = rc == 0 && cfg->has_spare ? start_thread(w, err) : rc;
    if (rc < 0) {
        checkpoint_writer_destroy(w);
        return rc;
    }
    *ret = w;
    return 0;
}

void checkpoint_writer_destroy(struct checkpoint_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->has_thread) {
        pthread_mutex_lock(&writer->lock);
        writer->ends = 1;
        pthread_cond_broadcast(&writer->changed);
        pthread_mutex_unlock(&writer->lock);
        pthread_join(writer->thread, NULL);
    }
    for (int i = 0; i < CHECKPOINT_BUFFERS; i++) {
        memory_free(writer->spare[i], writer->save.state.bytes[i]);
    }
    checkpoint_save_fini(&writer->save);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}
