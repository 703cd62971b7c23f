/* link.h - one connection to a peer as a stream of bytes: plain socket or TLS, never blocking */
#ifndef LINK_H
#define LINK_H

#include "proto/err.h"

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct link {
    int fd;          /* -1: none */
    SSL *ssl;        /* NULL: plain */
    BIO_METHOD *bio; /* of ssl: sends without SIGPIPE, which a library must not leave to its user */
    short read_wants; /* poll events after LINK_AGAIN; TLS may want the other direction */
    short write_wants;
    uint64_t sent, received; /* plain: bytes so far; with TLS the BIO counts */
};

/* Instead of a number of bytes. LINK_SHORT: as LINK_AGAIN, but what is missing is missing here:
 * this process or its system has too little of it (errno, lack.h), and poll does not tell when that
 * has passed. LINK_BROKEN: the end, and errno says why, where it can; one of lack.h (no memory for
 * TLS) is no fault of the other side either. */
enum { LINK_AGAIN = 0, LINK_EOF = -1, LINK_BROKEN = -2, LINK_SHORT = -3 };

void link_init(struct link *link, int fd);
/* Puts TLS on a connected socket. */
int link_use_tls(struct link *link, SSL_CTX *ctx, int server, struct ms_err *err);
/* Goes on with the TLS handshake: 1 done, 0 wait for read_wants, or MS_E_TLS / MS_E_REFUSED;
 * MS_E_NOMEM for this process's sake. */
int link_handshake(struct link *link, const char *who, struct ms_err *err);
void link_close(struct link *link);

/* Bytes moved (> 0), or one of the above. */
ssize_t link_read(struct link *link, void *data, size_t size);
/* Writes head, then body: one system call where plain. Either may be empty. TLS writes the first
 * that is not empty. */
ssize_t link_write(struct link *link, const void *head, size_t head_size, const void *body,
                   size_t body_size);
/* Bytes that went over it by link_read and link_write, those of the TLS handshake included. */
uint64_t link_sent(const struct link *link);
uint64_t link_received(const struct link *link);
/* Has the other end closed, whatever still lies unread. */
int link_is_hung_up(const struct link *link);
/* Bytes that TLS holds already: poll would not show them. */
int link_has_pending(const struct link *link);

#endif
