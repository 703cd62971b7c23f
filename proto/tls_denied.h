/* tls_denied.h - a certificate that we may not read: who keeps us out, and what gives it to us
 *
 * Inside of proto: for tls.c. Any thread; it may ask NSS for the name of our group, for the words
 * of an error only. */
#ifndef MS_TLS_DENIED_H
#define MS_TLS_DENIED_H

#include "proto/tls.h"

/* rc and err are of the reading of path, a file of cfg. Where modes keep us from it, MS_E_REFUSED
 * with the next step, for waiting does not make it readable; else rc as it is. */
int ms_tls_denied(const struct ms_tls_config *cfg, const char *path, int rc, struct ms_err *err);

#endif
