/* ca_index.h - what a certificate authority has issued: a text file, one certificate a line
 *
 *     # msched CA index 1
 *     serial TAB role TAB name TAB hosts TAB from TAB to TAB revoked
 *
 * The serial number is upper-case hex, hosts are comma separated, times are UTC as
 * 2026-11-21T17:40:00Z; "-" is what there is not: no hosts, not revoked, and role, name and times
 * of a certificate of which only a revocation list was left. Lines of '#' are comments, but
 * for "# since TIME": what was issued before, by a version that kept no index, is not listed. The
 * order is that of entering: issuing, but for those that were older than the index. Not thread
 * safe. */
#ifndef MS_CA_INDEX_H
#define MS_CA_INDEX_H

#include "proto/err.h"
#include "proto/limits.h"

#include <stddef.h>
#include <time.h>

enum {
    MS_SERIAL_HEX = 41,         /* 20 bytes is what RFC 5280 allows, and a NUL */
    MS_CA_ROLE_MAX = 15,        /* "scheduler" */
    MS_CA_ISSUED_MAX = 1000000, /* a certificate a day and node for years; 200 MB of text */
};

struct ms_ca_entry {
    char serial[MS_SERIAL_HEX];
    char role[MS_CA_ROLE_MAX + 1]; /* "": not known */
    char name[MS_NAME_MAX + 1];    /* "": not known */
    char *hosts;                   /* owned; NULL: none */
    time_t from, to;               /* 0: not known */
    time_t revoked;                /* 0: not revoked */
};

struct ms_ca_index {
    struct ms_ca_entry *entries;
    size_t n, capacity;
    time_t since; /* what was issued before is not in it; 0: all is */
};

/* Reads the file. MS_E_NOT_FOUND where there is none, MS_E_INVALID names the line. Fills ret, to be
 * freed with ms_ca_index_fini. */
int ms_ca_index_read(const char *path, struct ms_ca_index *ret, struct ms_err *err);
/* Replaces the file, synced, so that a crash leaves the old one or the new one. */
int ms_ca_index_write(const char *path, const struct ms_ca_index *index, struct ms_err *err);
void ms_ca_index_fini(struct ms_ca_index *index);

/* Appends a copy. MS_E_EXISTS: the serial number is in it already. */
int ms_ca_index_add(struct ms_ca_index *index, const struct ms_ca_entry *entry, struct ms_err *err);
/* Takes the last one away again. */
void ms_ca_index_drop_last(struct ms_ca_index *index);

/* By serial number (hex of any case, colons allowed). NULL: none. Returns borrowed until the next
 * add. */
struct ms_ca_entry *ms_ca_index_serial(const struct ms_ca_index *index, const char *text);
/* Upper-case hex without colons and leading zeros; 0 where text is no serial number. */
int ms_ca_serial(const char *text, char buf[MS_SERIAL_HEX]);
/* Does NAME or ROLE:NAME mean this entry? */
int ms_ca_entry_is(const struct ms_ca_entry *entry, const char *who);

#endif
