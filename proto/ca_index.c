/* ca_index.c - what a certificate authority has issued: a text file, one certificate a line */
#include "proto/ca_index.h"

#include "proto/certfile.h"
#include "proto/file_write.h"
#include "proto/grow.h"
#include "proto/regular.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD  "# msched CA index 1"
#define SINCE "# since "

enum { COLUMNS = 7, TIME_TEXT = 24 };

/* ---- times ---- */

static const char *format_time(char buf[TIME_TEXT], time_t at)
{
    struct tm tm;
    if (at == 0 || gmtime_r(&at, &tm) == NULL ||
        strftime(buf, TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        return "-";
    }
    return buf;
}

static int parse_time(const char *text, time_t *ret)
{
    struct tm tm = {.tm_isdst = 0};
    if (strcmp(text, "-") == 0) {
        *ret = 0;
        return 1;
    }
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (end == NULL || *end != '\0') {
        return 0;
    }
    *ret = timegm(&tm);
    return *ret > 0; /* 0 is "not": no certificate is as old as that */
}

/* A time and whatever is said behind it. */
static int parse_since(char *text, time_t *ret)
{
    text[strcspn(text, " ")] = '\0';
    return parse_time(text, ret) && *ret != 0;
}

/* ---- entries ---- */

void ms_ca_index_fini(struct ms_ca_index *index)
{
    while (index->n > 0) {
        ms_ca_index_drop_last(index);
    }
    free(index->entries);
    memset(index, 0, sizeof(*index));
}

void ms_ca_index_drop_last(struct ms_ca_index *index)
{
    if (index->n > 0) {
        free(index->entries[--index->n].hosts);
    }
}

static int grow(struct ms_ca_index *index, struct ms_err *err)
{
    if (index->n >= MS_CA_ISSUED_MAX) {
        return ms_fail(err, MS_E_FULL,
                       "this CA has issued %d certificates: make a new one with msctl certs init",
                       MS_CA_ISSUED_MAX);
    }
    struct ms_ca_entry *entries = (struct ms_ca_entry *)ms_grow(index->entries, index->n, 1,
                                                                sizeof(*entries), &index->capacity);
    if (entries == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %zu certificates", index->n + 1);
    }
    index->entries = entries;
    return MS_OK;
}

static int append(struct ms_ca_index *index, const struct ms_ca_entry *entry, struct ms_err *err)
{
    int rc = grow(index, err);
    if (rc != MS_OK) {
        return rc;
    }
    struct ms_ca_entry copy = *entry;
    if (entry->hosts != NULL && (copy.hosts = strdup(entry->hosts)) == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the hosts of a certificate");
    }
    index->entries[index->n++] = copy;
    return MS_OK;
}

int ms_ca_index_add(struct ms_ca_index *index, const struct ms_ca_entry *entry, struct ms_err *err)
{
    if (ms_ca_index_serial(index, entry->serial) != NULL) {
        return ms_fail(err, MS_E_EXISTS, "the serial number %s was issued already", entry->serial);
    }
    return append(index, entry, err);
}

int ms_ca_serial(const char *text, char buf[MS_SERIAL_HEX])
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        if (*text == ':' || (n == 0 && *text == '0' && text[1] != '\0')) {
            continue;
        }
        if (!isxdigit((unsigned char)*text) || n + 1 >= MS_SERIAL_HEX) {
            return 0;
        }
        buf[n++] = (char)toupper((unsigned char)*text);
    }
    buf[n] = '\0';
    return n > 0;
}

struct ms_ca_entry *ms_ca_index_serial(const struct ms_ca_index *index, const char *text)
{
    char serial[MS_SERIAL_HEX];
    if (!ms_ca_serial(text, serial)) {
        return NULL;
    }
    for (size_t i = 0; i < index->n; i++) {
        char other[MS_SERIAL_HEX];
        if (ms_ca_serial(index->entries[i].serial, other) && strcmp(serial, other) == 0) {
            return &index->entries[i];
        }
    }
    return NULL;
}

int ms_ca_entry_is(const struct ms_ca_entry *entry, const char *who)
{
    const char *colon = strchr(who, ':');
    if (entry->name[0] == '\0') {
        return 0;
    }
    if (colon == NULL) {
        return strcmp(entry->name, who) == 0;
    }
    size_t n = (size_t)(colon - who);
    return strlen(entry->role) == n && strncmp(entry->role, who, n) == 0 &&
           strcmp(entry->name, colon + 1) == 0;
}

/* ---- the file ---- */

/* A column into a buffer, "-" as "". No control bytes: the list is printed on terminals. */
static int take(char *dst, size_t size, const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || n >= size) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f) {
            return 0;
        }
    }
    memcpy(dst, text, n + 1);
    if (strcmp(dst, "-") == 0) {
        dst[0] = '\0';
    }
    return 1;
}

/* What is wrong with the line, or NULL. Changes line. */
static const char *parse_line(char *line, char *hosts, size_t size, struct ms_ca_entry *ret)
{
    char *columns[COLUMNS];
    char *rest = line;
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = strsep(&rest, "\t");
        if (columns[i] == NULL) {
            return "fewer than seven columns";
        }
    }
    char serial[MS_SERIAL_HEX];
    if (rest != NULL) {
        return "more than seven columns";
    }
    if (!ms_ca_serial(columns[0], serial) || strlen(columns[0]) >= sizeof(ret->serial)) {
        return "the serial number is no hex number of 20 bytes at the most";
    }
    memcpy(ret->serial, columns[0], strlen(columns[0]) + 1); /* as openssl prints it */
    if (!take(ret->role, sizeof(ret->role), columns[1]) ||
        !take(ret->name, sizeof(ret->name), columns[2]) || !take(hosts, size, columns[3])) {
        return "role, name or hosts are empty, too long or hold what cannot be printed";
    }
    if (!parse_time(columns[4], &ret->from) || !parse_time(columns[5], &ret->to) ||
        !parse_time(columns[6], &ret->revoked)) {
        return "a time is not like 2026-11-21T17:40:00Z";
    }
    ret->hosts = hosts[0] != '\0' ? hosts : NULL;
    return NULL;
}

/* What a line may not be, whatever it says, a comment or not; NULL: it is whole. A file that was
 * torn by a power cut ends within a line, or in bytes of zero. */
static const char *damage_of(const char *line, size_t n)
{
    if (memchr(line, '\0', n) != NULL) {
        return "bytes of zero, as a power cut leaves them";
    }
    return line[n - 1] != '\n' ? "the line has no end" : NULL;
}

static int read_lines(const char *path, FILE *file, struct ms_ca_index *index, struct ms_err *err)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n = 0;
    size_t number = 0;
    int rc = MS_OK;
    while (rc == MS_OK && (n = getline(&line, &capacity, file)) > 0) {
        number++;
        const char *damage = damage_of(line, (size_t)n);
        if (damage != NULL) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%s is damaged, line %zu: %s; put back a copy, or take the line out", path,
                         number, damage);
            break;
        }
        line[n - 1] = '\0';
        if (number == 1 && strcmp(line, HEAD) != 0) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%s does not begin with \"" HEAD "\": it is not ours, or of a newer "
                         "version; move it away and a new one is begun",
                         path);
        }
        if (rc == MS_OK && strncmp(line, SINCE, strlen(SINCE)) == 0 &&
            !parse_since(line + strlen(SINCE), &index->since)) {
            rc = ms_fail(err, MS_E_INVALID,
                         "%s, line %zu: \"" SINCE "\" and no time; put back a copy", path, number);
        }
        if (line[0] == '#' || rc != MS_OK) {
            continue;
        }
        struct ms_ca_entry entry = {.hosts = NULL};
        char *hosts = (char *)malloc((size_t)n + 1);
        const char *wrong =
            hosts == NULL ? "no memory for it" : parse_line(line, hosts, (size_t)n + 1, &entry);
        rc = wrong == NULL ? append(index, &entry, err)
                           : ms_fail(err, MS_E_INVALID,
                                     "%s, line %zu: %s; put back a copy, or take the line out",
                                     path, number, wrong);
        free(hosts);
    }
    if (rc == MS_OK && ferror(file)) {
        rc = ms_fail_errno(err, MS_E_IO, "cannot read %s", path);
    }
    free(line);
    if (rc == MS_OK && number == 0) { /* we never write an empty one */
        rc = ms_fail(err, MS_E_INVALID, "%s is empty: put back a copy, or remove it", path);
    }
    return rc;
}

int ms_ca_index_read(const char *path, struct ms_ca_index *ret, struct ms_err *err)
{
    struct ms_ca_index index = {.n = 0};
    FILE *file = NULL;
    int rc = ms_regular_open(path, "", &file, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = read_lines(path, file, &index, err);
    fclose(file);
    if (rc != MS_OK) {
        ms_ca_index_fini(&index);
        return rc;
    }
    *ret = index;
    return MS_OK;
}

static const char *or_dash(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : "-";
}

int ms_ca_index_write(const char *path, const struct ms_ca_index *index, struct ms_err *err)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    if (file == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    }
    fputs(HEAD "\n", file);
    if (index->since != 0) {
        char since[TIME_TEXT];
        fprintf(file, SINCE "%s what was issued before is not listed\n",
                format_time(since, index->since));
    }
    fputs("# serial\trole\tname\thosts\tfrom\tto\trevoked\n", file);
    for (size_t i = 0; i < index->n; i++) {
        const struct ms_ca_entry *entry = &index->entries[i];
        char times[3][TIME_TEXT];
        fprintf(file, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", entry->serial, or_dash(entry->role),
                or_dash(entry->name), or_dash(entry->hosts), format_time(times[0], entry->from),
                format_time(times[1], entry->to), format_time(times[2], entry->revoked));
    }
    int rc = fclose(file) == 0 ? ms_file_write(path, bytes, size, 0600, 0, err)
                               : ms_fail(err, MS_E_NOMEM, "no memory for %s", path);
    free(bytes);
    return rc == MS_OK ? ms_folder_sync(path, err) : rc;
}
