/* lack.c - what this process or its system has too little of, by errno */
#include "libworker/comm/lack.h"

#include <errno.h>
#include <string.h>

const char *lack_help(int error)
{
    switch (error) {
    case EMFILE:
        return " (raise `ulimit -n`, LimitNOFILE=)";
    case ETOOMANYREFS: /* counted for its user */
        return " (too many descriptors are on their way; raise `ulimit -n`, LimitNOFILE=)";
    case ENFILE:
        return " (raise fs.file-max)";
    default:
        return "";
    }
}

int lack_is(int error)
{
    switch (error) {
    case EMFILE:
    case ETOOMANYREFS:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return 1;
    default:
        return 0;
    }
}

int lack_found(struct ms_err *err, int error, const char *what)
{
    return lack_is(error)
               ? ms_fail(err, MS_E_NOMEM, "%s: %s%s", what, strerror(error), lack_help(error))
               : 0;
}
