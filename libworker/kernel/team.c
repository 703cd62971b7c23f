/* team.c - threads that compute: denormal numbers are flushed to zero, work is shared in pieces */
#include "libworker/kernel/kernel.h"

#if defined(__SSE2__)
#include <immintrin.h>

enum { FLUSH_DENORMALS = 0x8040 }; /* FTZ and DAZ of MXCSR */

static _Thread_local int team; /* threads of this thread's team that are known to flush */

unsigned kernel_float_enter(int threads)
{
    unsigned old = _mm_getcsr();
    _mm_setcsr(old | FLUSH_DENORMALS);
    if (team != threads) {
#pragma omp parallel num_threads(threads)
        _mm_setcsr(_mm_getcsr() | FLUSH_DENORMALS);
        team = threads;
    }
    return old;
}

void kernel_float_leave(unsigned old)
{
    _mm_setcsr(old);
}

void kernel_float_forget(void)
{
    team = 0;
}
#else
unsigned kernel_float_enter(int threads)
{
    (void)threads;
    return 0;
}

void kernel_float_leave(unsigned old)
{
    (void)old;
}

void kernel_float_forget(void)
{
}
#endif

void kernel_in_pieces(size_t count, void (*fn)(const void *arg, size_t at, size_t n),
                      const void *arg, int threads)
{
    const unsigned mode = kernel_float_enter(threads);
    const int64_t pieces = (int64_t)((count + KERNEL_PIECE - 1) / KERNEL_PIECE);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        const size_t at = (size_t)i * KERNEL_PIECE;
        fn(arg, at, count - at < KERNEL_PIECE ? count - at : KERNEL_PIECE);
    }
    kernel_float_leave(mode);
}

void kernel_team_each(int threads, void (*fn)(const void *arg), const void *arg)
{
    (void)threads; /* where OpenMP is left out */
#pragma omp parallel num_threads(threads) if (threads > 1)
    fn(arg);
}
