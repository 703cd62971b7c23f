/* nearest.h - the word that was meant, for everything that refuses an unknown name */
#ifndef MS_NEAREST_H
#define MS_NEAREST_H

#include <stddef.h>

enum { MS_NEAREST_MAX = 64 }; /* bytes: longer words are near to none */

/* The nearest of n candidates (NULL: none) to word, or NULL: edit distance with swaps of
 * neighbours, at most a third of the longer one; case, '-' and '_' cost nothing. Any thread. */
const char *ms_nearest(const char *word, const char *const *candidates, size_t n);

#endif
