/* text.c - what text is: valid UTF-8 without controls */
#include "proto/text.h"

#include <stdio.h>
#include <string.h>

size_t ms_utf8_take(const uint8_t *p, size_t size, uint32_t *ret_code)
{
    /* Table 3-7 of the Unicode standard: the second byte's range depends on the first, which is
     * what keeps out overlong forms (E0, F0), surrogates (ED) and what is above U+10FFFF (F4) */
    if (size == 0) {
        return 0;
    }
    uint8_t first = p[0];
    size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (n == 0 || n > size || first > 0xf4) {
        return 0;
    }
    uint32_t code = n == 1 ? first : first & (0xffU >> (n + 1));
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < n; i++) {
        if (p[i] < low || p[i] > high) {
            return 0;
        }
        code = code << 6 | (p[i] & 0x3fU);
        low = 0x80;
        high = 0xbf;
    }
    if (ret_code != NULL) {
        *ret_code = code;
    }
    return n;
}

int ms_text_is_control(uint32_t code, enum ms_text_kind kind)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };
    if (kind == MS_TEXT_LINES && (code == '\n' || code == '\t')) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        if (code >= controls[i].first && code <= controls[i].last) {
            return 1;
        }
    }
    return 0;
}

size_t ms_text_check(const uint8_t *bytes, size_t size, enum ms_text_kind kind, uint32_t *ret_code)
{
    size_t at = 0;
    while (at < size) {
        uint32_t code = UINT32_MAX;
        size_t n = 1;
        if (bytes[at] < 0x20 || bytes[at] > 0x7e) { /* the rest is plain ASCII: most bytes */
            n = ms_utf8_take(bytes + at, size - at, &code);
            if (n == 0 || ms_text_is_control(code, kind)) {
                if (ret_code != NULL) {
                    *ret_code = code;
                }
                return at;
            }
        }
        at += n;
    }
    return size;
}

int ms_text_is_valid(const char *text, enum ms_text_kind kind)
{
    size_t size = strlen(text);
    return ms_text_check((const uint8_t *)text, size, kind, NULL) == size;
}

void ms_text_mend(uint8_t *bytes, size_t size, enum ms_text_kind kind)
{
    for (size_t at = ms_text_check(bytes, size, kind, NULL); at < size;
         at += ms_text_check(bytes + at, size - at, kind, NULL)) {
        size_t n = ms_utf8_take(bytes + at, size - at, NULL);
        memset(bytes + at, bytes[at] == '\n' || bytes[at] == '\t' ? ' ' : '?', n > 0 ? n : 1);
    }
}

size_t ms_text_whole(const char *text, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)text;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t byte = bytes[n - back];
        if (byte >= 0xc2 && byte <= 0xf4) { /* the first byte of a letter of two to four */
            size_t letter = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
            return letter > back ? n - back : n;
        }
        if ((byte & 0xc0) != 0x80) {
            break;
        }
    }
    return n;
}

void ms_text_copy(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size);
    n = n == size ? ms_text_whole(src, size - 1) : n;
    memcpy(dst, src, n);
    dst[n] = '\0';
}

static const char rest[] = "...";

const char *ms_text_begin(char *dst, size_t size, const char *src)
{
    const size_t room = size - sizeof(rest);
    if (strlen(src) < size) {
        memcpy(dst, src, strlen(src) + 1);
        return dst;
    }
    const size_t n = ms_text_whole(src, room);
    memcpy(dst, src, n);
    memcpy(dst + n, rest, sizeof(rest));
    return dst;
}

const char *ms_text_words(char *dst, size_t size, const char *src)
{
    static const char ends[] = " :"; /* lists of paths have colons, too */
    size_t n = size - sizeof(rest) - 1;
    if (strlen(src) < size) {
        return ms_text_begin(dst, size, src);
    }
    while (n > 0 && strchr(ends, src[n]) == NULL) {
        n--;
    }
    while (n > 0 && strchr(ends, src[n - 1]) != NULL) {
        n--;
    }
    if (n == 0) {
        return ms_text_begin(dst, size, src);
    }
    snprintf(dst, size, "%.*s %s", (int)n, src, rest);
    return dst;
}

const char *ms_text_end(char *dst, size_t size, const char *src)
{
    const size_t length = strlen(src);
    if (length < size) {
        memcpy(dst, src, length + 1);
        return dst;
    }
    const char *at = src + length - (size - sizeof(rest));
    while (((unsigned char)*at & 0xc0) == 0x80) { /* in the middle of a letter */
        at++;
    }
    memcpy(dst, rest, sizeof(rest) - 1);
    memcpy(dst + sizeof(rest) - 1, at, strlen(at) + 1);
    return dst;
}

int ms_text_list(char *list, size_t size, const char *name, size_t n, const char *quote)
{
    const size_t used = strlen(list);
    const char *comma = used > 0 ? ", " : "";
    const size_t more = strlen(comma) + n + 2 * strlen(quote);
    const int fits = used + more + sizeof(", ...") <= size;
    if (fits) {
        snprintf(list + used, size - used, "%s%s%.*s%s", comma, quote, (int)n, name, quote);
    } else {
        snprintf(list + used, size - used, "%s...", comma);
    }
    return fits;
}
