/* err.h - status codes and the text that goes with them
 *
 * A function that can fail returns 0 or a negative enum ms_code. Where a human will read the reason
 * its last parameter is a struct ms_err. The text names the object, the cause and the next step. */
#ifndef MS_ERR_H
#define MS_ERR_H

#include "proto/macros.h"

/* The numbers go on the wire (Error.code) and decide the exit status: never renumber. */
enum ms_code {
    MS_OK = 0,
    MS_E_INVALID = -1,      /* input that can never work: usage, a job file, a value out of range */
    MS_E_NOT_FOUND = -2,    /* the named object does not exist */
    MS_E_EXISTS = -3,       /* it exists already: node id, run directory */
    MS_E_REFUSED = -4,      /* understood and not allowed: certificate, role, owner, mismatch */
    MS_E_UNREACHABLE = -5,  /* nobody answers at the address */
    MS_E_TIMEOUT = -6,      /* the wait that the text names took too long */
    MS_E_CLOSED = -7,       /* the peer closed the connection or died */
    MS_E_PROTOCOL = -8,     /* bytes that are no valid frame or message */
    MS_E_TLS = -9,          /* handshake or certificate trouble on this side */
    MS_E_IO = -10,          /* file or device */
    MS_E_FULL = -11,        /* no space, or a limit of limits.h is reached */
    MS_E_NOMEM = -12,       /* out of memory, or of descriptors */
    MS_E_ABORTED = -13,     /* a newer generation or a stop woke the waiter */
    MS_E_FAILED = -14,      /* the job failed */
    MS_E_CONFIG = -15,      /* a daemon's configuration: exit 78 */
    MS_E_UNSUPPORTED = -16, /* valid, but this build or machine cannot do it */
    MS_E_CANCELLED = -17,   /* the job was cancelled */
    MS_E_UNAVAILABLE = -18, /* whom it is about is away, and somebody else is there and says so */
    MS_E_FOREIGN = -19,     /* the stamp that was brought is of another database than this one */
};

enum { MS_ERR_TEXT_MAX = 384 }; /* a path of 255 bytes, the cause and a command that helps */

/* In the reason of a job that ended so, MindSpore's words: who repeats it comes to the same end. */
#define MS_TEXT_NOT_FINITE "loss is NAN or INF"

struct ms_err {
    int code; /* enum ms_code */
    char text[MS_ERR_TEXT_MAX];
};

/* Fills err (NULL allowed) and returns code, so that a failure is one line:
 *     return ms_fail(err, MS_E_EXISTS, "node %s is registered already", id);
 * Text that does not fit is cut after a whole letter. Any thread. */
int ms_fail(struct ms_err *err, int code, const char *fmt, ...) MS_PRINTF(3, 4);

/* As ms_fail, and appends ": " and the text of errno as it was on entry. Where descriptors or
 * memory were short, that is the code, MS_E_NOMEM: it passes, and nothing that people wrote is
 * wrong. */
int ms_fail_errno(struct ms_err *err, int code, const char *fmt, ...) MS_PRINTF(3, 4);

/* Puts "<context>: " before the text already in err and returns its code. */
int ms_err_prefix(struct ms_err *err, const char *fmt, ...) MS_PRINTF(2, 3);

/* Text and code in err for whoever passes them on; err NULL: "" and MS_E_FAILED. An err that
 * somebody else gave may be NULL: in proto and libworker nobody else looks into one (the test
 * layers). */
const char *ms_err_text(const struct ms_err *err);
int ms_err_code(const struct ms_err *err);

/* Gives another code to what err says already (NULL allowed), unless that is MS_E_NOMEM; returns
 * the code. */
int ms_err_recode(struct ms_err *err, int code);

/* Short lower-case name of a code ("refused"), never NULL. */
const char *ms_code_name(int code);

/* Exit status of a command line tool for a code: 0 1 2 3 4 5 124 (docs/design.md, exit statuses).
 */
int ms_code_exit_status(int code);

#endif
