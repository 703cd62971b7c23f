/* err.c - status codes and the text that goes with them */
#include "proto/err.h"

#include "proto/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code;
    const char *name;
    int exit_status;
} codes[] = {
    {MS_OK, "ok", 0},
    {MS_E_INVALID, "invalid", 2},
    {MS_E_NOT_FOUND, "not found", 4},
    {MS_E_EXISTS, "exists", 4},
    {MS_E_REFUSED, "refused", 4},
    {MS_E_UNREACHABLE, "unreachable", 3},
    {MS_E_TIMEOUT, "timeout", 124},
    {MS_E_CLOSED, "closed", 3},
    {MS_E_PROTOCOL, "protocol error", 3},
    {MS_E_TLS, "tls error", 3},
    {MS_E_IO, "i/o error", 1},
    {MS_E_FULL, "full", 4},
    {MS_E_NOMEM, "out of memory", 1},
    {MS_E_ABORTED, "aborted", 1},
    {MS_E_FAILED, "failed", 1},
    {MS_E_CONFIG, "configuration", 78},
    {MS_E_UNSUPPORTED, "unsupported", 2},
    {MS_E_CANCELLED, "cancelled", 5},
    {MS_E_UNAVAILABLE, "unavailable", 3},
    {MS_E_FOREIGN, "of another database", 4},
};

/* text was made beside err: its arguments may point into err itself. */
static void keep(struct ms_err *err, int code, const char *text)
{
    err->code = code;
    ms_text_copy(err->text, sizeof(err->text), text);
}

int ms_fail(struct ms_err *err, int code, const char *fmt, ...)
{
    if (err != NULL) {
        char text[MS_ERR_TEXT_MAX + 1]; /* one more: that it was cut has to be seen */
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        keep(err, code, text);
    }
    return code;
}

/* What it tried says nothing of any file or setting. */
static int is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

int ms_fail_errno(struct ms_err *err, int code, const char *fmt, ...)
{
    int saved = errno;
    code = is_shortage(saved) ? MS_E_NOMEM : code;
    if (err != NULL) {
        char text[MS_ERR_TEXT_MAX + 1];
        va_list args;
        va_start(args, fmt);
        int used = vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        if (used >= 0 && (size_t)used < sizeof(text)) {
            snprintf(text + used, sizeof(text) - (size_t)used, ": %s", strerror(saved));
        }
        keep(err, code, text);
    }
    errno = saved;
    return code;
}

int ms_err_prefix(struct ms_err *err, const char *fmt, ...)
{
    if (err == NULL) {
        return MS_E_FAILED;
    }
    char text[MS_ERR_TEXT_MAX + 1];
    va_list args;
    va_start(args, fmt);
    int used = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(text)) {
        snprintf(text + used, sizeof(text) - (size_t)used, ": %s", err->text);
    }
    keep(err, err->code, text);
    return err->code;
}

const char *ms_err_text(const struct ms_err *err)
{
    return err != NULL ? err->text : "";
}

int ms_err_code(const struct ms_err *err)
{
    return err != NULL ? err->code : MS_E_FAILED;
}

int ms_err_recode(struct ms_err *err, int code)
{
    if (err != NULL && err->code == MS_E_NOMEM) {
        return MS_E_NOMEM;
    }
    if (err != NULL) {
        err->code = code;
    }
    return code;
}

const char *ms_code_name(int code)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(codes); i++) {
        if (codes[i].code == code) {
            return codes[i].name;
        }
    }
    return "unknown";
}

int ms_code_exit_status(int code)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(codes); i++) {
        if (codes[i].code == code) {
            return codes[i].exit_status;
        }
    }
    return 1;
}
