/* link_tls.c - one connection to a peer as a stream of bytes: plain socket or TLS, never blocking
 */
#include "libworker/comm/link.h"

#include "libworker/comm/lack.h"
#include "proto/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Four records a read: a system call costs about as much as the copy of a record. */
enum { READ_AHEAD = 4 * (16384 + 256) };

void link_init(struct link *link, int fd)
{
    *link = (struct link){.fd = fd, .read_wants = POLLIN, .write_wants = POLLOUT};
}

/* ---- a BIO over the socket that sends with MSG_NOSIGNAL ---- */

/* The descriptor itself, so that a struct link may move. */
static int bio_fd(BIO *bio)
{
    return (int)(intptr_t)BIO_get_data(bio);
}

/* What is short passes, or not: TLS itself is whole, and goes on where it was. */
static int may_go_on(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || lack_is(error);
}

static int bio_write(BIO *bio, const char *data, int size)
{
    BIO_clear_retry_flags(bio);
    ssize_t n = send(bio_fd(bio), data, (size_t)size, MSG_NOSIGNAL);
    if (n < 0 && may_go_on(errno)) {
        BIO_set_retry_write(bio);
    }
    return (int)n;
}

static int bio_read(BIO *bio, char *data, int size)
{
    BIO_clear_retry_flags(bio);
    ssize_t n = recv(bio_fd(bio), data, (size_t)size, 0);
    if (n < 0 && may_go_on(errno)) {
        BIO_set_retry_read(bio);
    }
    if (n == 0) {
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    return (int)n;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)num;
    (void)ptr;
    if (cmd == BIO_CTRL_EOF) {
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    }
    return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

static BIO *bio_new(struct link *link)
{
    link->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "msched data plane");
    if (link->bio == NULL) {
        return NULL;
    }
    BIO_meth_set_write(link->bio, bio_write);
    BIO_meth_set_read(link->bio, bio_read);
    BIO_meth_set_ctrl(link->bio, bio_ctrl);
    BIO *bio = BIO_new(link->bio);
    if (bio != NULL) {
        BIO_set_data(bio, (void *)(intptr_t)link->fd);
        BIO_set_init(bio, 1);
    }
    return bio;
}

int link_use_tls(struct link *link, SSL_CTX *ctx, int server, struct ms_err *err)
{
    SSL *ssl = ms_tls_new(ctx, server, NULL); /* the certificate's name is compared instead */
    BIO *bio = ssl == NULL ? NULL : bio_new(link);
    if (bio == NULL) {
        SSL_free(ssl);
        return ms_fail(err, MS_E_NOMEM, "out of memory for TLS to a peer");
    }
    SSL_set_bio(ssl, bio, bio);
    /* The payload lies in buffers that never move, but where a write resumes is computed anew. */
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* An end without close_notify is an end: frames have lengths, a clean leave is a frame. */
    SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_set_read_ahead(ssl, 1);
    SSL_set_default_read_buffer_len(ssl, READ_AHEAD);
    link->ssl = ssl;
    return 0;
}

/* Forgets what OpenSSL had to say: 1 if it was, somewhere, that there is no memory. */
static int take_lack_of_memory(void)
{
    int lacks = 0;
    for (unsigned long error = ERR_get_error(); error != 0; error = ERR_get_error()) {
        lacks |= ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    }
    return lacks;
}

int link_handshake(struct link *link, const char *who, struct ms_err *err)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(link->ssl);
    const int error = errno;
    if (rc == 1) {
        link->read_wants = POLLIN;
        return 1;
    }
    int why = SSL_get_error(link->ssl, rc);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        link->read_wants = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return lack_found(err, error, "cannot shake hands with a rank");
    }
    if (why != SSL_ERROR_SSL) {
        return ms_fail(err, MS_E_CLOSED, "%s closed the connection within the TLS handshake", who);
    }
    char text[MS_TEXT_MAX];
    int code = ms_tls_describe(link->ssl, ERR_peek_error(), who, text, sizeof(text));
    return take_lack_of_memory() ? ms_fail(err, MS_E_NOMEM, "out of memory for TLS with %s", who)
                                 : ms_fail(err, code, "%s", text);
}

void link_close(struct link *link)
{
    SSL_free(link->ssl);
    BIO_meth_free(link->bio);
    if (link->fd >= 0) {
        close(link->fd);
    }
    link_init(link, -1);
}

/* error: errno of the call. */
static ssize_t tls_result(struct link *link, int rc, int error, short *wants)
{
    int why = SSL_get_error(link->ssl, rc);
    errno = error;
    switch (why) {
    case SSL_ERROR_WANT_READ:
        *wants = POLLIN;
        return lack_is(error) ? LINK_SHORT : LINK_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        *wants = POLLOUT;
        return lack_is(error) ? LINK_SHORT : LINK_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return LINK_EOF;
    default:
        errno = take_lack_of_memory() ? ENOMEM : lack_is(error) ? 0 : error;
        return LINK_BROKEN;
    }
}

static ssize_t plain_result(ssize_t n)
{
    if (n > 0) {
        return n;
    }
    if (n == 0) {
        return LINK_EOF;
    }
    return lack_is(errno) ? LINK_SHORT : may_go_on(errno) ? LINK_AGAIN : LINK_BROKEN;
}

ssize_t link_read(struct link *link, void *data, size_t size)
{
    if (link->ssl == NULL) {
        ssize_t got = plain_result(recv(link->fd, data, size, 0));
        link->received += got > 0 ? (uint64_t)got : 0;
        return got;
    }
    ERR_clear_error();
    errno = 0;
    size_t n = 0;
    int rc = SSL_read_ex(link->ssl, data, size, &n);
    return rc == 1 ? (ssize_t)n : tls_result(link, rc, errno, &link->read_wants);
}

ssize_t link_write(struct link *link, const void *head, size_t head_size, const void *body,
                   size_t body_size)
{
    if (link->ssl == NULL) {
        struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = head_size},
                                 {.iov_base = (void *)(uintptr_t)body, .iov_len = body_size}};
        struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t put = plain_result(sendmsg(link->fd, &msg, MSG_NOSIGNAL));
        link->sent += put > 0 ? (uint64_t)put : 0;
        return put;
    }
    ERR_clear_error();
    errno = 0;
    size_t n = 0;
    int rc = SSL_write_ex(link->ssl, head_size > 0 ? head : body,
                          head_size > 0 ? head_size : body_size, &n);
    return rc == 1 ? (ssize_t)n : tls_result(link, rc, errno, &link->write_wants);
}

uint64_t link_sent(const struct link *link)
{
    return link->ssl == NULL ? link->sent : BIO_number_written(SSL_get_wbio(link->ssl));
}

uint64_t link_received(const struct link *link)
{
    return link->ssl == NULL ? link->received : BIO_number_read(SSL_get_rbio(link->ssl));
}

int link_is_hung_up(const struct link *link)
{
    struct pollfd fd = {.fd = link->fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

int link_has_pending(const struct link *link)
{
    return link->ssl != NULL && SSL_has_pending(link->ssl);
}
