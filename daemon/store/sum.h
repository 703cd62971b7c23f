/* sum.h - functions that our SQL calls: the checksum of a row, digests, owners of release 0.1
 *
 *     row_sum(value, ...)         62 bits over types, lengths and bytes of all values
 *     sha256_hex(blob)            as text
 *     principal_from_0_1(text)    today's form of an owner, for migration 2 alone
 *
 * docs/store.md says how the sum is made: it is part of the format. */
#ifndef STORE_SUM_H
#define STORE_SUM_H

#include <sqlite3.h>

/* A result of SQLite. */
int store_add_functions(sqlite3 *db);

#endif
