/* text.h - what text is: valid UTF-8 without controls
 *
 * One answer for the wire (wire_check.c), for names in job files and for what is shown on a
 * terminal. Controls are C0, DEL, C1, the line and paragraph separators, and the bidirectional
 * controls, which make a line read other than it is. Invalid are overlong forms, surrogates and
 * code points above U+10FFFF: every other protobuf client refuses a whole list for one such string.
 * Any thread; allocates nothing. */
#ifndef MS_TEXT_H
#define MS_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum ms_text_kind {
    MS_TEXT_LINE,  /* a name, a path, a reason: one line */
    MS_TEXT_LINES, /* prose of several lines: newline and tab are text, too */
};

/* Bytes of the UTF-8 sequence at p, and its code point; 0: none of at most size bytes is valid
 * there. ret_code may be NULL. A NUL is a code point like others. */
size_t ms_utf8_take(const uint8_t *p, size_t size, uint32_t *ret_code);

/* 1 where a code point has no place in text of this kind. */
int ms_text_is_control(uint32_t code, enum ms_text_kind kind);

/* Offset of the first byte that is no text, size where all is. *ret_code (NULL allowed) is its code
 * point, UINT32_MAX where it is not even UTF-8. */
size_t ms_text_check(const uint8_t *bytes, size_t size, enum ms_text_kind kind, uint32_t *ret_code);
/* The same for a string; 1: all of it is text. */
int ms_text_is_valid(const char *text, enum ms_text_kind kind);

/* Puts a '?' over each byte that is no text, a space over newline and tab where these are none. The
 * length stays: a packed message can be mended in place. */
void ms_text_mend(uint8_t *bytes, size_t size, enum ms_text_kind kind);

/* Bytes of text without a letter that stands at its end and is not whole: n, or up to three fewer.
 * For what was cut after n bytes. */
size_t ms_text_whole(const char *text, size_t n);
/* Copies what fits, up to a whole letter: half of one makes the whole message unsendable. size > 0;
 * dst ends with a NUL. */
void ms_text_copy(char *dst, size_t size, const char *src);
/* For a sentence whose end must not be cut: all of src, or what fits of its beginning, or of its
 * end (the name of a file in its path), with "..." for the rest. size >= 8. Returns dst. */
const char *ms_text_begin(char *dst, size_t size, const char *src);
const char *ms_text_end(char *dst, size_t size, const char *src);
/* As ms_text_begin, of whole words: half of a path is another path. " ..." for the rest. */
const char *ms_text_words(char *dst, size_t size, const char *src);

/* One more name of n bytes for a list in a sentence, "a, b, ...": list begins as "", and has size
 * bytes in all, 8 or more. 0: it does not fit with what would stand behind it; the list ends with
 * dots, and is not added to any more. quote: around each name ("'"), or "". */
int ms_text_list(char *list, size_t size, const char *name, size_t n, const char *quote);

#endif
