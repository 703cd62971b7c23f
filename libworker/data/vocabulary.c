/* vocabulary.c - words of a file, sorted by their bytes, and the longest one that a text begins
 * with
 */
#include "libworker/data/vocabulary.h"

#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "proto/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each byte of a word may be written as four, and its line ends. */
#define FILE_MAX ((int64_t)MS_CLASSES_MAX * (4 * VOCABULARY_WORD_MAX + 1))

struct word {
    uint8_t bytes[VOCABULARY_WORD_MAX];
    uint8_t length;
    int32_t number;
};

struct vocabulary {
    struct word *words; /* sorted; in the order of the file while it is read */
    size_t n, room;
    size_t first[257]; /* of those that begin with this byte, up to the next */
    size_t longest[256];
};

void vocabulary_destroy(struct vocabulary *vocabulary)
{
    if (vocabulary != NULL) {
        free(vocabulary->words);
        free(vocabulary);
    }
}

int32_t vocabulary_words(const struct vocabulary *vocabulary)
{
    return (int32_t)vocabulary->n;
}

int vocabulary_sum(const struct vocabulary *vocabulary, char ret[SUM_HEX], struct ms_err *err)
{
    const size_t n = vocabulary->n;
    struct sum *sum = sum_create();
    const struct word **in_order = calloc(n > 0 ? n : 1, sizeof(struct word *));
    if (sum == NULL || in_order == NULL) {
        sum_destroy(sum);
        free(in_order);
        return ms_fail(err, MS_E_NOMEM, "no memory for the digest of %zu words", n);
    }
    for (size_t i = 0; i < n; i++) {
        in_order[vocabulary->words[i].number] = &vocabulary->words[i];
    }
    for (size_t i = 0; i < n; i++) {
        sum_add(sum, &in_order[i]->length, 1);
        sum_add(sum, in_order[i]->bytes, in_order[i]->length);
    }
    sum_hex(sum, ret);
    sum_destroy(sum);
    free(in_order);
    return MS_OK;
}

static int compare(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
    const int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int by_bytes(const void *a, const void *b)
{
    const struct word *x = a;
    const struct word *y = b;
    return compare(x->bytes, x->length, y->bytes, y->length);
}

/* ---- the file ---- */

struct line {
    const char *path, *text;
    size_t size;
    int64_t number; /* from 1 on */
};

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that begins at *at, which moves on; -1: an escape that is none. */
static int next_byte(const struct line *line, size_t *at)
{
    static const char escapes[][2] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}};
    const char *text = line->text;
    if (text[*at] != '\\') {
        return (uint8_t)text[(*at)++];
    }
    const char kind = *at + 1 < line->size ? text[*at + 1] : '\0';
    if (kind == 'x' && *at + 3 < line->size) {
        const int high = hex_of(text[*at + 2]);
        const int low = hex_of(text[*at + 3]);
        *at += 4;
        return high < 0 || low < 0 ? -1 : 16 * high + low;
    }
    *at += 2;
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        if (escapes[i][0] == kind) {
            return (uint8_t)escapes[i][1];
        }
    }
    return -1;
}

static int read_word(const struct line *line, struct word *ret, struct ms_err *err)
{
    size_t n = 0;
    if (line->size > 0 && line->text[line->size - 1] == '\r') {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s:%lld: a carriage return ends the line; end lines with LF alone, or "
                       "write \\r",
                       line->path, (long long)line->number);
    }
    for (size_t at = 0; at < line->size;) {
        const int byte = next_byte(line, &at);
        if (byte < 0) {
            return ms_fail(err, MS_E_INVALID,
                           "%.160s:%lld: of what begins with \\ only \\n, \\t, \\r, \\\\ and "
                           "\\xHH are known",
                           line->path, (long long)line->number);
        }
        if (n == VOCABULARY_WORD_MAX) {
            return ms_fail(err, MS_E_INVALID, "%.160s:%lld: a word has at most %d bytes",
                           line->path, (long long)line->number, VOCABULARY_WORD_MAX);
        }
        ret->bytes[n++] = (uint8_t)byte;
    }
    ret->length = (uint8_t)n;
    return n > 0 ? MS_OK
                 : ms_fail(err, MS_E_INVALID, "%.160s:%lld: a line without a word", line->path,
                           (long long)line->number);
}

static int add_line(struct vocabulary *v, const struct line *line, struct ms_err *err)
{
    if (v->n == MS_CLASSES_MAX) {
        return ms_fail(err, MS_E_INVALID, "%.160s has more than %d words", line->path,
                       MS_CLASSES_MAX);
    }
    struct word *more = ms_grow(v->words, v->n, 1, sizeof(*v->words), &v->room);
    if (more == NULL) {
        return ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its words", line->path);
    }
    v->words = more;
    v->words[v->n] = (struct word){.number = (int32_t)v->n};
    const int rc = read_word(line, &v->words[v->n], err);
    v->n += rc == MS_OK;
    return rc;
}

/* Sorts the words, and knows where those of each first byte are. */
static int sort(struct vocabulary *v, const char *path, struct ms_err *err)
{
    qsort(v->words, v->n, sizeof(*v->words), by_bytes);
    for (size_t i = 1; i < v->n; i++) {
        const struct word *a = &v->words[i - 1];
        const struct word *b = &v->words[i];
        if (by_bytes(a, b) == 0) {
            const int32_t later = a->number > b->number ? a->number : b->number;
            return ms_fail(err, MS_E_INVALID, "%.160s:%d: the word of line %d again", path,
                           later + 1, a->number + b->number - later + 1);
        }
    }
    for (size_t i = 0; i < v->n; i++) {
        const uint8_t byte = v->words[i].bytes[0];
        v->first[byte + 1] = i + 1;
        if (v->words[i].length > v->longest[byte]) {
            v->longest[byte] = v->words[i].length;
        }
    }
    for (size_t byte = 1; byte < 257; byte++) { /* of a byte without words none */
        if (v->first[byte] < v->first[byte - 1]) {
            v->first[byte] = v->first[byte - 1];
        }
    }
    return MS_OK;
}

int vocabulary_parse(const char *text, size_t size, const char *path, struct vocabulary **ret,
                     struct ms_err *err)
{
    struct vocabulary *v = calloc(1, sizeof(*v));
    struct line line = {.path = path, .number = 1};
    int rc = v == NULL   ? ms_fail(err, MS_E_NOMEM, "%.160s: no memory for its words", path)
             : size == 0 ? ms_fail(err, MS_E_INVALID, "%.160s has no words", path)
                         : MS_OK;
    for (size_t at = 0; rc == MS_OK && at < size; at += line.size + 1, line.number++) {
        const char *end = memchr(text + at, '\n', size - at);
        line.text = text + at;
        line.size = end != NULL ? (size_t)(end - line.text) : size - at;
        rc = add_line(v, &line, err);
    }
    rc = rc < 0 ? rc : sort(v, path, err);
    if (rc < 0) {
        vocabulary_destroy(v);
        return rc;
    }
    *ret = v;
    return MS_OK;
}

int vocabulary_open(const char *path, struct vocabulary **ret, struct ms_err *err)
{
    struct stat st;
    int fd = -1;
    char *text = NULL;
    int rc = data_path_check(path, err);
    rc = rc < 0 ? rc : data_file_open(path, &fd, err);
    rc = rc < 0 ? rc : data_check_plain(fd, path, err);
    if (rc == MS_OK && (fstat(fd, &st) != 0 || st.st_size > FILE_MAX)) {
        rc = ms_fail(err, MS_E_INVALID, "%.160s is too large for a vocabulary of %d words", path,
                     MS_CLASSES_MAX);
    }
    if (rc == MS_OK && (text = malloc((size_t)st.st_size + 1)) == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "%.160s: no memory to read it", path);
    }
    rc = rc < 0 ? rc : source_pread(fd, text, (size_t)st.st_size, 0, path, err);
    rc = rc < 0 ? rc : vocabulary_parse(text, (size_t)st.st_size, path, ret, err);
    free(text);
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* ---- words of a text ---- */

/* That very word among [low, high). */
static const struct word *find(const struct vocabulary *v, size_t low, size_t high,
                               const uint8_t *bytes, size_t length)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct word *word = &v->words[middle];
        const int order = compare(bytes, length, word->bytes, word->length);
        if (order == 0) {
            return word;
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

int32_t vocabulary_match(const struct vocabulary *v, const uint8_t *text, size_t size,
                         size_t *ret_length)
{
    const uint8_t byte = text[0];
    size_t length = v->longest[byte] < size ? v->longest[byte] : size;
    const struct word *word = NULL;
    while (length > 0 &&
           (word = find(v, v->first[byte], v->first[byte + 1], text, length)) == NULL) {
        length--;
    }
    *ret_length = length;
    return word != NULL ? word->number : -1;
}
