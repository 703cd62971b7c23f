/* handshake.c - what a handshake over mutual TLS computes, and nothing beside it */
#include "bench/handshake.h"

#include <openssl/bio.h>
#include <time.h>

enum { A_ROUND = 20, STEPS_MAX = 10 };

static double cpu_s(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* As far as it comes with what the other end has said; adds what it computed. */
static void step(SSL *ssl, double *sum_s)
{
    double began = cpu_s();
    (void)SSL_do_handshake(ssl);
    *sum_s += cpu_s() - began;
}

static int shake(SSL *client, SSL *server, struct handshake_cost *sum)
{
    BIO *here = NULL;
    BIO *there = NULL;
    if (BIO_new_bio_pair(&here, 0, &there, 0) != 1) {
        return -1;
    }
    SSL_set_bio(client, here, here);
    SSL_set_bio(server, there, there);
    for (int i = 0; i < STEPS_MAX; i++) {
        step(client, &sum->client_s);
        step(server, &sum->server_s);
        if (SSL_is_init_finished(client) && SSL_is_init_finished(server)) {
            return 0;
        }
    }
    return -1;
}

static int one(SSL_CTX *client, SSL_CTX *server, struct handshake_cost *sum)
{
    double began = cpu_s();
    SSL *here = ms_tls_new(client, 0, "127.0.0.1");
    sum->client_s += cpu_s() - began;
    began = cpu_s();
    SSL *there = ms_tls_new(server, 1, NULL);
    sum->server_s += cpu_s() - began;
    int rc = here != NULL && there != NULL ? shake(here, there, sum) : -1;
    SSL_free(here);
    SSL_free(there);
    return rc;
}

int handshake_measure(SSL_CTX *client, SSL_CTX *server, int rounds, struct handshake_cost *ret)
{
    struct handshake_cost least = {1e9, 1e9};
    for (int round = 0; round < rounds; round++) {
        struct handshake_cost sum = {0, 0};
        for (int i = 0; i < A_ROUND; i++) {
            if (one(client, server, &sum) < 0) {
                return -1;
            }
        }
        least.client_s = sum.client_s < least.client_s ? sum.client_s : least.client_s;
        least.server_s = sum.server_s < least.server_s ? sum.server_s : least.server_s;
    }
    *ret = (struct handshake_cost){least.client_s / A_ROUND, least.server_s / A_ROUND};
    return 0;
}
