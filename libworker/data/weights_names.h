/* weights_names.h - what tensors are called by others
 *
 * A network's own names are MindSpore's. torch.nn calls the parts of a norm otherwise:
 *   gamma weight    beta bias    moving_mean running_mean    moving_variance running_var
 * and counts its batches (num_batches_tracked). MindSpore's optimizers put a word before the name
 * of the parameter of which they keep something: `moments.fc.weight`. Pure. */
#ifndef WEIGHTS_NAMES_H
#define WEIGHTS_NAMES_H

#include <stddef.h>

/* As torch calls it, where it is a norm's, in buf of size bytes; returns buf. */
const char *weights_name_to_torch(const char *name, char *buf, size_t size);
/* What torch calls so, where it is a norm's; likewise. */
const char *weights_name_from_torch(const char *name, char *buf, size_t size);
/* What is behind the word of a slot in a checkpoint of ours, or of a moving average; NULL: there is
 * none. train/optimizer.c has the slots. */
const char *weights_name_of_slot(const char *name);
/* Behind the word of an optimizer of MindSpore's. */
const char *weights_name_of_their_slot(const char *name);
/* The tensor's moving average in a checkpoint, in buf of size bytes; returns buf. */
const char *weights_name_of_average(const char *name, char *buf, size_t size);
/* Does torch count batches there? */
int weights_name_is_count(const char *name);

#endif
