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
/* What is behind the word of an optimizer of MindSpore's; NULL: there is none. */
const char *weights_name_of_slot(const char *name);
/* Does torch count batches there? */
int weights_name_is_count(const char *name);

#endif
