/* wire_check.h - judges the bytes of a message before anything is allocated for it */
#ifndef MS_WIRE_CHECK_H
#define MS_WIRE_CHECK_H

#include "proto/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Walks length packed bytes along a descriptor: every tag, length and varint in bounds, strings
 * within the limit of their field and text as text.h says (a NUL would cut a string silently, a
 * newline forges lines of logs and tables, invalid UTF-8 is refused by other clients), byte fields
 * and repeated fields within their limits, a singular field at most once, at most MS_UNKNOWN_FIELDS
 * unknown ones in a message. MS_E_PROTOCOL names message and field. desc is that of a frame or of a
 * part of one. Allocates nothing. Any thread. */
int ms_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t length,
                  struct ms_err *err);

/* For the sender: puts '?' over what is no text in the fields that people read (reasons, texts,
 * paths that are shown). A message that was cut in the middle of a character, or that quotes a file
 * name of another century, must still arrive; names are left as they are and refused. */
void ms_wire_mend(const ProtobufCMessageDescriptor *desc, uint8_t *bytes, size_t length);

/* 1 where the table of limits has a row for a field of this name: for the test that none is
 * missing. */
int ms_wire_has_limit(const char *field);

#endif
