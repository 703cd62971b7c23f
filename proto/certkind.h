/* certkind.h - what a file is that holds no certificate, or none with its key: in words
 *
 * Inside of proto. Any thread. */
#ifndef MS_CERTKIND_H
#define MS_CERTKIND_H

#include "proto/whole.h"

/* 1: it is PEM, and its first block is a list of revoked certificates. */
int ms_cert_is_list(const struct ms_whole *file);

/* The error (MS_E_TLS) of a file that should be a PKCS#12 and is none: empty, cut off, PEM, ... */
int ms_cert_no_p12(const struct ms_whole *file, struct ms_err *err);
/* The error (MS_E_TLS) of a file that should hold a certificate in PEM form and holds none. */
int ms_cert_no_pem(const struct ms_whole *file, struct ms_err *err);

#endif
