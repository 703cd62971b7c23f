/* nearest.c - the word that was meant */
#include "proto/nearest.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* '-', '_' and case are how the same word is written elsewhere: they cost nothing. */
static int fold(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

/* Optimal string alignment: insert, delete, replace, swap of neighbours, one each.
 * https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][MS_NEAREST_MAX + 1];
    for (size_t j = 0; j <= nb; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replace = above[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            row[j] = min3(above[j] + 1, row[j - 1] + 1, replace);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]) && two_above[j - 2] + 1 < row[j]) {
                row[j] = two_above[j - 2] + 1;
            }
        }
    }
    return rows[na % 3][nb];
}

const char *ms_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t length = strlen(word);
    if (length == 0 || length > MS_NEAREST_MAX) {
        return NULL;
    }
    size_t best = SIZE_MAX;
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = candidates[i] != NULL ? strlen(candidates[i]) : 0;
        if (other == 0 || other > MS_NEAREST_MAX) {
            continue;
        }
        size_t distance = edit_distance(word, length, candidates[i], other);
        if (distance < best && distance * 3 <= (length > other ? length : other)) {
            best = distance;
            found = candidates[i];
        }
    }
    return found;
}
