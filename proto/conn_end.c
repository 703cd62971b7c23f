/* conn_end.c - how a connection ends: at once, in order, or because its time is over */
#include "proto/clock.h"
#include "proto/conn_private.h"
#include "proto/limits.h"

#include <event2/buffer.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { STALL_MS = 500 }; /* a deadline that comes so much later found this process asleep */

void ms_conn_free(struct ms_conn *conn)
{
    if (conn->is_grown) {
        conn->has_shrunk(conn->arg);
    }
    ms_dial_destroy(conn->dial);
    if (conn->bev != NULL) {
        bufferevent_free(conn->bev); /* and fd and SSL with it */
    }
    if (conn->fresh != NULL) {
        evbuffer_free(conn->fresh);
    }
    if (conn->deadline != NULL) {
        event_free(conn->deadline);
    }
    if (conn->end != NULL) {
        event_free(conn->end);
    }
    SSL_CTX_free(conn->tls);
    ERR_clear_error();
    free(conn);
}

void ms_conn_on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct ms_conn *conn = (struct ms_conn *)arg;
    if (!conn->is_silent && conn->handler.on_close != NULL) {
        conn->depth++; /* ms_conn_destroy from on_close is harmless */
        conn->handler.on_close(conn, conn->code, conn->reason, conn->arg);
    }
    ms_conn_free(conn);
}

static void set_reason(struct ms_conn *conn, int code, const char *fmt, va_list args)
    MS_PRINTF(3, 0);

static void set_reason(struct ms_conn *conn, int code, const char *fmt, va_list args)
{
    char text[sizeof(conn->reason)]; /* arguments may point into conn */
    vsnprintf(text, sizeof(text), fmt, args);
    memcpy(conn->reason, text, sizeof(text));
    conn->code = code;
}

/* From here on nothing but the end event touches the handler. */
static void go_over(struct ms_conn *conn)
{
    conn->state = MS_CONN_OVER;
    if (conn->is_grown) {
        conn->is_grown = 0;
        conn->has_shrunk(conn->arg);
    }
    ms_dial_destroy(conn->dial);
    conn->dial = NULL;
    if (conn->bev != NULL) {
        bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
        bufferevent_setcb(conn->bev, NULL, NULL, NULL, NULL);
    }
    event_del(conn->deadline);
    event_active(conn->end, EV_TIMEOUT, 0);
}

void ms_conn_end(struct ms_conn *conn, int code, const char *fmt, ...)
{
    if (conn->state == MS_CONN_OVER) {
        return;
    }
    if (conn->state != MS_CONN_CLOSING) { /* the reason to close stays the reason */
        va_list args;
        va_start(args, fmt);
        set_reason(conn, code, fmt, args);
        va_end(args);
    }
    go_over(conn);
}

/* Says good-bye on the socket. Unread bytes would turn our close into a reset, which can overtake
 * the last frame or alert on its way: read them away. */
void ms_conn_say_bye(struct ms_conn *conn)
{
    char scratch[4096];
    int fd = bufferevent_getfd(conn->bev);
    if (conn->ssl != NULL && SSL_is_init_finished(conn->ssl)) {
        ERR_clear_error();
        SSL_set_shutdown(conn->ssl, SSL_RECEIVED_SHUTDOWN); /* nobody waits for the peer's */
        SSL_shutdown(conn->ssl);
        ERR_clear_error();
    }
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 64 && recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0; i++) {
    }
}

void ms_conn_arm_deadline(struct ms_conn *conn, int ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
    conn->deadline_at_ms = ms_mono_ms() + ms;
    event_add(conn->deadline, &tv);
}

void ms_conn_finish_close(struct ms_conn *conn)
{
    ms_conn_say_bye(conn);
    go_over(conn);
}

void ms_conn_end_orderly(struct ms_conn *conn, int code, const char *fmt, ...)
{
    if (conn->state >= MS_CONN_CLOSING) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    set_reason(conn, code, fmt, args);
    va_end(args);
    if (conn->bev == NULL || conn->state == MS_CONN_HANDSHAKE) {
        go_over(conn); /* nothing could be sent yet */
        return;
    }
    ms_conn_spill(conn);
    conn->state = MS_CONN_CLOSING;
    bufferevent_disable(conn->bev, EV_READ);
    if (conn->is_deaf || evbuffer_get_length(bufferevent_get_output(conn->bev)) == 0) {
        ms_conn_finish_close(conn);
        return;
    }
    bufferevent_setwatermark(conn->bev, EV_WRITE, 0, 0);
    ms_conn_arm_deadline(conn, conn->handshake_ms);
}

void ms_conn_on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct ms_conn *conn = (struct ms_conn *)arg;
    if (ms_mono_ms() - conn->deadline_at_ms > STALL_MS) {
        /* we slept, so the answer may be here already: judge nobody by our own sleep */
        ms_conn_arm_deadline(conn, conn->state == MS_CONN_OPEN ? MS_FRAME_MS : conn->handshake_ms);
        return;
    }
    int seconds = (conn->handshake_ms + 999) / 1000;
    switch (conn->state) {
    case MS_CONN_DIALING:
    case MS_CONN_HANDSHAKE:
        ms_conn_end(conn, conn->is_server ? MS_E_TIMEOUT : MS_E_UNREACHABLE,
                    "%s did not finish the TLS handshake within %d s", conn->who, seconds);
        break;
    case MS_CONN_HELLO:
        ms_conn_end(conn, conn->is_server ? MS_E_TIMEOUT : MS_E_UNREACHABLE,
                    conn->is_server ? "%s sent no Hello within %d s"
                                    : "%s answered no Welcome within %d s: is it a scheduler?",
                    conn->who, seconds);
        break;
    case MS_CONN_OPEN:
        if (conn->is_deaf) {
            ms_conn_broke(conn, conn->deaf_errno);
            break;
        }
        ms_conn_end(conn, MS_E_TIMEOUT, "%s sent half a frame and not the rest within %d s",
                    conn->who, MS_FRAME_MS / 1000);
        break;
    default:
        ms_conn_end(conn, MS_E_TIMEOUT, "%s did not take our last words", conn->who);
        break;
    }
}
