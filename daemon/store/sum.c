/* sum.c - functions that our SQL calls: the checksum of a row, digests, owners of release 0.1 */
#include "daemon/store/sum.h"

#include "proto/digest.h"
#include "proto/macros.h"
#include "proto/principal.h"

#include <stdint.h>
#include <string.h>

#define SUM_SEED  0x6d73636865646462ULL /* "mschedbd", so that a row of zeros has no sum of zero */
#define SUM_PRIME 0x9e3779b97f4a7c15ULL
#define SUM_MASK  0x3fffffffffffffffULL /* two of them still add up inside SQLite's integers */

/* Each word goes in by a step that can be undone: one word that changed always changes the sum,
 * several that changed do so but for one chance in 2^62. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * SUM_PRIME;
    return sum ^ (sum >> 29);
}

static uint64_t mix_bytes(uint64_t sum, const uint8_t *bytes, size_t size)
{
    sum = mix(sum, size);
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        for (size_t i = 0; i < 8 && at + i < size; i++) {
            word |= (uint64_t)bytes[at + i] << (8 * i);
        }
        sum = mix(sum, word);
    }
    return sum;
}

static uint64_t mix_value(uint64_t sum, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    sum = mix(sum, (uint64_t)type);
    if (type == SQLITE_INTEGER) {
        return mix(sum, (uint64_t)sqlite3_value_int64(value));
    }
    if (type == SQLITE_FLOAT) {
        double real = sqlite3_value_double(value);
        uint64_t bits;
        memcpy(&bits, &real, sizeof(bits));
        return mix(sum, bits);
    }
    /* the pointer first: it may convert, the size is that of what it converted to */
    const uint8_t *bytes =
        type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    return mix_bytes(sum, bytes, bytes != NULL ? (size_t)sqlite3_value_bytes(value) : 0);
}

static void sql_row_sum(sqlite3_context *context, int n, sqlite3_value **values)
{
    uint64_t sum = mix(SUM_SEED, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        sum = mix_value(sum, values[i]);
    }
    sum = mix(sum, sum >> 32);
    sqlite3_result_int64(context, (sqlite3_int64)(sum & SUM_MASK));
}

static void sql_sha256_hex(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    uint8_t digest[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];
    const void *bytes = sqlite3_value_blob(values[0]);
    int size = sqlite3_value_bytes(values[0]);
    ms_sha256(bytes != NULL ? bytes : "", (size_t)size, digest);
    ms_sha256_hex(digest, hex);
    sqlite3_result_text(context, hex, MS_SHA256_HEX - 1, SQLITE_TRANSIENT);
}

static void sql_principal(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    char out[MS_PRINCIPAL_MAX + 1] = "";
    const char *owner = (const char *)sqlite3_value_text(values[0]);
    ms_principal_from_0_1(owner != NULL ? owner : "", out);
    sqlite3_result_text(context, out, -1, SQLITE_TRANSIENT);
}

int store_add_functions(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments; /* -1: any number */
        void (*run)(sqlite3_context *context, int n, sqlite3_value **values);
    } functions[] = {{"row_sum", -1, sql_row_sum},
                     {"sha256_hex", 1, sql_sha256_hex},
                     {"principal_from_0_1", 1, sql_principal}};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < MS_ARRAY_SIZE(functions) && rc == SQLITE_OK; i++) {
        rc = sqlite3_create_function(db, functions[i].name, functions[i].arguments,
                                     SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, functions[i].run, NULL,
                                     NULL);
    }
    return rc;
}
