/* msw_locale.c - the locale of the library in a program that has another one
 *
 * Jobs, tables, metrics and checkpoints have points in their numbers, and the C library reads and
 * prints commas where setlocale said so. msworker never says so, and what is said here is the
 * thread's alone: the library runs in the locale in which msworker does, "C", and the program's own
 * functions in theirs. */
#include "libworker/msw_impl.h"

#include <pthread.h>

static pthread_once_t is_made = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* is never freed: threads that end behind a call have it, too */

/* Cannot fail for want of memory: a C library has this one ready. */
static void make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t locale_enter(void)
{
    pthread_once(&is_made, make);
    return uselocale(c_locale);
}

void locale_leave(locale_t before)
{
    uselocale(before);
}
