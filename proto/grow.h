/* grow.h - arrays that grow: twice the room each time, so that n elements cost 2 n copies at most
 */
#ifndef MS_GROW_H
#define MS_GROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { MS_GROW_FIRST = 16 }; /* elements that the first room is for */

/* The array with room for `more` elements behind its first n, each of size bytes (not 0). *room:
 * elements that there is room for; 0 of an array that is NULL. NULL without memory: array and *room
 * are as they were. What is new is not initialised. The result takes the place of array; free().
 * Any thread. */
static inline void *ms_grow(void *array, size_t n, size_t more, size_t size, size_t *room)
{
    if (*room > 0 && more <= *room - n) {
        return array;
    }
    if (more > PTRDIFF_MAX - n || *room > PTRDIFF_MAX / 2) {
        return NULL;
    }
    size_t larger = *room > 0 ? 2 * *room : MS_GROW_FIRST;
    larger = larger > n + more ? larger : n + more;
    void *grown = larger <= PTRDIFF_MAX / size ? realloc(array, larger * size) : NULL;
    if (grown != NULL) {
        *room = larger;
    }
    return grown;
}

#endif
