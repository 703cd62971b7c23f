/* program_stream.h - what a program of kind `program` writes: a header, then records
 *
 * The bytes are in docs/program-data.md, version 1: little-endian, all records of one size, which
 * follows from the header. Bytes are foreign: nothing is taken for granted but their number. */
#ifndef DATA_PROGRAM_STREAM_H
#define DATA_PROGRAM_STREAM_H

#include "libworker/data/data.h"

enum { PROGRAM_STREAM_VERSION = 1, PROGRAM_HEADER_BYTES = 64 };

/* What its records are: all limits of a user's data hold. name: of the program, for errors.
 * MS_E_INVALID. */
int program_header_read(const uint8_t bytes[PROGRAM_HEADER_BYTES], const char *name,
                        struct data_info *ret, struct ms_err *err);

/* Of one record: row, label or targets, values. */
size_t program_record_bytes(const struct data_info *info);

/* One record of so many bytes, aligned for 8, which has to be `row`: ret points into them.
 * MS_E_INVALID names the program, the row and what is wrong: another row, a label that is none of
 * the classes, a value that is no finite number. */
int program_record_read(const struct data_info *info, const uint8_t *bytes, const char *name,
                        int64_t row, struct data_record *ret, struct ms_err *err);

#endif
