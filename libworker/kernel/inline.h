/* inline.h - functions that are parts of a loop; private to this room */
#ifndef INLINE_H
#define INLINE_H

/* Inlined whatever its size: the copy inside each clone is compiled for the clone's instructions.
 */
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#endif
