/* discard.h - closes what a stranger had a hand in, without waiting for him
 *
 * Whoever connects to our Unix socket can leave descriptors in its queue, read or not; with our
 * close goes the last reference, and a socket with SO_LINGER then blocks the closing thread for as
 * long as its maker wished. A task that exits is not made to linger: so a thread takes a table of
 * descriptors of its own (unshare), the caller closes his copies, which are no longer the last
 * ones, and the thread ends. */
#ifndef MS_DISCARD_H
#define MS_DISCARD_H

#include <stddef.h>

/* Closes n descriptors; takes them. Any thread; does not wait for anybody. Where unshare is not to
 * be had (some containers), a thread of its own closes them and may wait instead of the caller. */
void ms_discard_fds(const int *fds, size_t n);

#endif
