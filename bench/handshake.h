/* handshake.h - what a handshake over mutual TLS computes, and nothing beside it */
#ifndef BENCH_HANDSHAKE_H
#define BENCH_HANDSHAKE_H

#include "proto/tls.h"

struct handshake_cost {
    double client_s, server_s; /* CPU time of one */
};

/* The least of a few rounds, through memory. 0, or below 0 where the two do not agree. */
int handshake_measure(SSL_CTX *client, SSL_CTX *server, int rounds, struct handshake_cost *ret);

#endif
