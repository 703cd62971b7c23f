/* message.h - protobuf messages written field by field, for files whose schema is another's
 *
 * A message grows in memory; values that are large go behind its head, straight into a file. Room
 * that cannot be had is said once, at the end: ms_message_failed. One thread a message. */
#ifndef MS_MESSAGE_H
#define MS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

struct ms_message { /* {0}: an empty one */
    uint8_t *bytes; /* owned */
    size_t n, room;
    int failed;
};

void ms_message_fini(struct ms_message *message);
/* Empty again, with its room. */
void ms_message_clear(struct ms_message *message);
/* Was there no memory for a part of it? Then its bytes are of no use. */
int ms_message_failed(const struct ms_message *message);

/* Appends the field of that number, from 1. */
void ms_message_put_int(struct ms_message *message, unsigned field, int64_t value);
void ms_message_put_float(struct ms_message *message, unsigned field, float value);
void ms_message_put_text(struct ms_message *message, unsigned field, const char *text);
void ms_message_put_bytes(struct ms_message *message, unsigned field, const void *bytes,
                          size_t size);
/* ... up to its size bytes, which whoever writes the message puts behind it. */
void ms_message_put_head(struct ms_message *message, unsigned field, uint64_t size);
/* ... a message in it; failed, if that has. */
void ms_message_put(struct ms_message *message, unsigned field, const struct ms_message *inner);
/* ... that ends with `more` bytes which come behind these. */
void ms_message_put_begin(struct ms_message *message, unsigned field,
                          const struct ms_message *inner, uint64_t more);

#endif
