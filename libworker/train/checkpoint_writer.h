/* checkpoint_writer.h - writes checkpoints beside the training: one thread, one spare copy
 *
 *     trainer:  state -> spare copy, wakes the thread           (or writes, where there is no
 * spare) thread:   spare copy -> data, manifest -> durable -> the oldest go
 *
 * What cannot be written is said once and tried anew with the next one; nothing older goes for it.
 */
#ifndef CHECKPOINT_WRITER_H
#define CHECKPOINT_WRITER_H

#include "libworker/train/judge.h"
#include "libworker/train/replica.h"

struct checkpoint_writer;

struct checkpoint_writer_config { /* all borrowed for the writer's life */
    const struct replica *replica;
    const struct job *job;
    const char *folder;    /* absolute, or from the working directory; made where it is not there */
    const char *tag;       /* of the job, "" none */
    const char *first_tag; /* as checkpoint_writer_descend's */
    const char *plan, *plan_sha256;
    struct data_identity dataset; /* of training */
    int has_spare;                /* memory for a copy of the state was found */
    /* One is durable, and it is the newest; on the thread that wrote it. NULL allowed. */
    void (*on_saved)(void *arg, uint64_t step);
    void *arg;
};

struct checkpoint_facts { /* of the step that is saved; see checkpoint_manifest.h */
    uint64_t step;
    int64_t epoch, step_in_epoch;
    float loss;
    int evaluates, stopped;
    double seconds;
    struct watch watch;
};

/* Starts the thread, on the caller's CPUs. The folder may be of no use. */
int checkpoint_writer_create(const struct checkpoint_writer_config *cfg,
                             struct checkpoint_writer **ret, struct ms_err *err);
void checkpoint_writer_destroy(struct checkpoint_writer *writer); /* after the write under way */

/* The replica's thread: saves its state. 0: the writer is busy with one, and nothing was done. */
int checkpoint_writer_take(struct checkpoint_writer *writer, const struct checkpoint_facts *facts);
/* Before the first take: whose training it is. first_tag: of the job that began it; "", NULL: this
 * one. */
void checkpoint_writer_descend(struct checkpoint_writer *writer, const char *first_tag);
/* While no write is under way: can anything be written there? MS_E_IO: never. */
int checkpoint_writer_make_folder(const struct checkpoint_writer *writer, struct ms_err *err);
/* ... and may it? MS_E_REFUSED: what lies there is another training's, or is being written; says
 * whose. What may pass is said by the write. */
int checkpoint_writer_claim(struct checkpoint_writer *writer, struct ms_err *err);
/* Is there a complete one of that step that is this job's? */
int checkpoint_writer_has(const struct checkpoint_writer *writer, uint64_t step);
/* Of whatever step up to that one, the newest; 0: there is none. */
uint64_t checkpoint_writer_newest(const struct checkpoint_writer *writer, uint64_t step);
/* Before the first take: takes away what a writer of this job left that was killed. step: where the
 * training is. */
void checkpoint_writer_tidy(const struct checkpoint_writer *writer, uint64_t step);
/* Until no write is under way. */
void checkpoint_writer_wait(struct checkpoint_writer *writer);
/* The step of the last one that is durable; 0: none yet. */
uint64_t checkpoint_writer_saved(struct checkpoint_writer *writer);
/* What there is to say since the last call; 0: nothing. */
int checkpoint_writer_words(struct checkpoint_writer *writer, char *ret, size_t size);

#endif
