/* vocabulary.h - words as a file lists them, and which of them a text begins with
 *
 * A line a word, in the order of their numbers: bytes, among which \n, \t, \r, \\ and \xHH stand
 * for what a line cannot hold. No word is empty, or there twice. Read by one thread, then any. */
#ifndef DATA_VOCABULARY_H
#define DATA_VOCABULARY_H

#include "libworker/data/sum.h"
#include "proto/err.h"

#include <stddef.h>
#include <stdint.h>

enum { VOCABULARY_WORD_MAX = 64 };

struct vocabulary;

/* path is expanded. MS_E_INVALID names file and line. Returns owned. */
int vocabulary_open(const char *path, struct vocabulary **ret, struct ms_err *err);
/* The same from the file's bytes. */
int vocabulary_parse(const char *text, size_t size, const char *path, struct vocabulary **ret,
                     struct ms_err *err);
void vocabulary_destroy(struct vocabulary *vocabulary); /* NULL allowed */
int32_t vocabulary_words(const struct vocabulary *vocabulary);
/* Of its words in the order of their numbers, however the file writes them. MS_E_NOMEM. */
int vocabulary_sum(const struct vocabulary *vocabulary, char ret[SUM_HEX], struct ms_err *err);

/* The number of the longest word that text begins with, and its bytes; -1: there is none. size > 0.
 */
int32_t vocabulary_match(const struct vocabulary *vocabulary, const uint8_t *text, size_t size,
                         size_t *ret_length);

#endif
