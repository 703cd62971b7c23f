/* width.c - how many columns of a terminal a text takes */
#include "cli/width.h"

#include "proto/macros.h"
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

/* Unicode 15, EastAsianWidth W and F, blocks run together where what lies between is unassigned. */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f265},
    {0x1f300, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
    {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d},
    {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596},
    {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc},
    {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

/* The combining blocks, joiners and variation selectors: they take no column of their own. */
static const struct range none[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},   {0x064b, 0x065f},
    {0x06d6, 0x06dc}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0x302a, 0x302d},   {0x3099, 0x309a},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static int is_in(const struct range *ranges, size_t n, uint32_t code)
{
    for (size_t low = 0; low < n;) {
        size_t mid = (low + n) / 2;
        if (code < ranges[mid].first) {
            n = mid;
        } else if (code > ranges[mid].last) {
            low = mid + 1;
        } else {
            return 1;
        }
    }
    return 0;
}

/* Bytes of the character at text, and its columns. */
static size_t take(const char *text, size_t size, size_t *ret_columns)
{
    uint32_t code = 0;
    size_t n = ms_utf8_take((const uint8_t *)text, size, &code);
    *ret_columns = n == 0                                   ? 1
                   : code < 0x300                           ? 1
                   : is_in(none, MS_ARRAY_SIZE(none), code) ? 0
                   : is_in(wide, MS_ARRAY_SIZE(wide), code) ? 2
                                                            : 1;
    return n > 0 ? n : 1;
}

size_t cli_text_columns(const char *text)
{
    size_t size = strlen(text);
    size_t sum = 0;
    for (size_t at = 0; at < size;) {
        size_t columns = 0;
        at += take(text + at, size - at, &columns);
        sum += columns;
    }
    return sum;
}

size_t cli_text_bytes_of(const char *text, size_t columns)
{
    size_t size = strlen(text);
    size_t sum = 0;
    size_t at = 0;
    while (at < size) {
        size_t one = 0;
        size_t n = take(text + at, size - at, &one);
        if (sum + one > columns) {
            break;
        }
        sum += one;
        at += n;
    }
    return at;
}
