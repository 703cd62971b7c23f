/* clean.h - what others wrote, before a terminal sees it
 *
 * A peer's names and reasons are valid text already (proto/text.h, on the wire), but prose may hold
 * newlines, with which a reason could forge a line of ours. Logs are bytes of anybody's making. */
#ifndef CLI_CLEAN_H
#define CLI_CLEAN_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Makes one line of every string in a received message, in place, those of its parts too. */
void cli_clean_message(ProtobufCMessage *msg);

/* A log on its way to a terminal: what is no text (escape sequences, controls, bytes that are no
 * UTF-8) becomes '?'; newline and tab stay. A character may be torn between two pieces. */
struct cli_filter {
    uint8_t torn[4]; /* the beginning of a character */
    size_t n_torn;
};
/* Writes the piece to out. last: nothing follows, a torn character is none. */
void cli_filter_write(struct cli_filter *filter, FILE *out, const void *bytes, size_t n, int last);

#endif
