/* cert_install.h - a certificate put where the programs look for it, with what they trust beside it
 *
 * The PKCS#12 files of our CA hold the CA's certificate: one file is all that travels. Not thread
 * safe. */
#ifndef MS_CERT_INSTALL_H
#define MS_CERT_INSTALL_H

#include "proto/cert.h"
#include "proto/whole.h"

#include <sys/types.h>

struct ms_cert_place {
    const char *folder; /* there already */
    const char *name;   /* of the PKCS#12 file in it; ca.crt lies beside it */
    mode_t mode;        /* of the PKCS#12 file */
    uid_t owner;        /* of the PKCS#12 file, and its group; -1: as it is made */
    gid_t group;
    int force; /* whatever its dates, or revoked; replace what is of somebody else, or of another CA
                */
};

/* Whose certificate a PKCS#12 file holds, its URI ("" where it says none) into buf: an error for
 * whatever ms_cert_install could not install. */
int ms_cert_who(const struct ms_whole *file, const char *password, char *buf, size_t size,
                struct ms_err *err);

/* Writes a PKCS#12 file, and ca.crt (0644, whatever the umask) beside it. A renewed
 * certificate replaces the one before; MS_E_EXISTS where the one that is there is of somebody else,
 * of another CA, or valid for longer. MS_E_INVALID for one that is not valid today, or that the
 * list in the folder revokes. MS_E_NOT_FOUND: the file does not hold its CA's certificate. A ca.crt
 * that knows the CA among others, or is a link, stays as it is. */
int ms_cert_install(const struct ms_whole *file, const char *password,
                    const struct ms_cert_place *place, struct ms_err *err);

#endif
