/* notify.h - sd_notify(3) and socket activation without libsystemd: one datagram, two variables */
#ifndef MS_NOTIFY_H
#define MS_NOTIFY_H

#include <stdint.h>

/* Sends state ("READY=1\nSTATUS=...") to $NOTIFY_SOCKET; nothing without one. */
void ms_notify(const char *state);
/* Microseconds of the watchdog for this process, 0: off. */
uint64_t ms_notify_watchdog_us(void);
/* Number of sockets passed by LISTEN_FDS (first is fd 3), CLOEXEC set; 0 without. */
int ms_notify_listen_fds(void);

#endif
