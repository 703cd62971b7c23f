/* conn_flush.c - frames that wait for the end of a turn, and are written there at once
 *
 *     frame -> fresh -> ms_conn_flush: into the socket
 *                |         what that does not take
 *                v                 v
 *              the bufferevent's output, which the loop writes
 *
 * A bufferevent asks the kernel whether it may write, waits for a turn of the loop to hear so,
 * writes, and takes the question back: for one small answer that is three system calls and a turn
 * too many. At most one of the two buffers holds something, so that frames keep their order. */
#include "proto/conn_private.h"

#include <event2/buffer.h>
#include <openssl/err.h>
#include <sys/socket.h>

enum {
    FLUSH_BYTES = 16384
}; /* one TLS record: more is written in pieces, between which others
      have their turn */

static struct evbuffer *output_of(const struct ms_conn *conn)
{
    return bufferevent_get_output(conn->bev);
}

static size_t fresh_bytes(const struct ms_conn *conn)
{
    return conn->fresh != NULL ? evbuffer_get_length(conn->fresh) : 0;
}

struct evbuffer *ms_conn_queue(struct ms_conn *conn)
{
    return conn->fresh != NULL && evbuffer_get_length(output_of(conn)) == 0 ? conn->fresh
                                                                            : output_of(conn);
}

size_t ms_conn_unsent(const struct ms_conn *conn)
{
    return conn->bev != NULL && !conn->is_deaf
               ? fresh_bytes(conn) + evbuffer_get_length(output_of(conn))
               : 0;
}

void ms_conn_spill(struct ms_conn *conn)
{
    if (conn->bev != NULL && fresh_bytes(conn) > 0) {
        evbuffer_add_buffer(output_of(conn), conn->fresh); /* moves: it takes no memory */
    }
}

/* How many of the bytes are out; 0: the loop will find out why. It may not offer fewer of them to
 * OpenSSL then, which has begun a record: they stay together, in front of all others. */
static size_t write_now(const struct ms_conn *conn, const uint8_t *bytes, size_t size)
{
    ssize_t n = 0;
    if (conn->ssl == NULL) {
        n = send(bufferevent_getfd(conn->bev), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (!SSL_want_write(conn->ssl)) { /* else a read has begun a record */
        ERR_clear_error();
        n = SSL_write(conn->ssl, bytes, (int)size);
        ERR_clear_error();
    }
    return n > 0 ? (size_t)n : 0;
}

void ms_conn_flush(struct ms_conn *conn, int at_once)
{
    size_t size = fresh_bytes(conn);
    if (at_once && conn->state == MS_CONN_OPEN && !conn->is_deaf && size > 0 &&
        size <= FLUSH_BYTES) {
        const uint8_t *bytes = evbuffer_pullup(conn->fresh, -1); /* one record for all */
        evbuffer_drain(conn->fresh, bytes != NULL ? write_now(conn, bytes, size) : 0);
    }
    ms_conn_spill(conn);
}
