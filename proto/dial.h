/* dial.h - connects to the first address of a host that answers; inside of proto */
#ifndef MS_DIAL_H
#define MS_DIAL_H

#include "proto/addr.h"
#include "proto/err.h"

#include <event2/event.h>

struct ms_dial;

/* fd >= 0: connected, non-blocking, the callee owns it. Else code and text say why not, with a next
 * step. Called once, from the loop; the dial is gone then. */
typedef void ms_dial_fn(int fd, int code, const char *text, void *arg);

/* Looks the host up (blocks), then tries its addresses one after the other within timeout_ms in
 * all. Returns owned until on_done is called. Loop thread. */
int ms_dial_start(struct event_base *base, const struct ms_addr *addr, int timeout_ms,
                  ms_dial_fn *on_done, void *arg, struct ms_dial **ret, struct ms_err *err);
void ms_dial_destroy(struct ms_dial *dial);

#endif
