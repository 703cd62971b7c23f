/* wire_check.h - judges the bytes of a message before anything is allocated for it */
#ifndef MS_WIRE_CHECK_H
#define MS_WIRE_CHECK_H

#include "proto/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Walks length packed bytes along a descriptor: every tag, length and varint in bounds, strings
 * within the limit of their field and without control bytes (a NUL would cut a string silently;
 * only the fields that carry prose may hold newlines and tabs), byte fields and repeated fields
 * within theirs, a singular field at most once, at most MS_UNKNOWN_FIELDS unknown ones in a
 * message. MS_E_PROTOCOL names message and field. Allocates nothing. Any thread. */
int ms_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t length,
                  struct ms_err *err);

/* 1 where the table of limits has a row for a field of this name: for the test that none is
 * missing. */
int ms_wire_has_limit(const char *field);

#endif
