/* head.h - certificates and a scheduler of its own for a benchmark that plays nodes */
#ifndef BENCH_HEAD_H
#define BENCH_HEAD_H

#include "proto/tls.h"

#include <stddef.h>
#include <sys/types.h>

struct head {
    const char *bench; /* whose: begins what it says of failures */
    char dir[512];     /* of certificates, database, log */
    char address[64], unix_address[600];
    pid_t pid;    /* 0: it does not run */
    int database; /* number of the one it has */
};

_Noreturn void head_die(struct head *head, const char *what);

/* Makes a folder and, in it, certificates of the scheduler "head" and of the worker "w". */
void head_init(struct head *head, const char *bench);
/* A path in the folder. Returns owned. */
char *head_path(const struct head *head, const char *name);
/* TLS as the worker w has it, or as the scheduler. Returns owned. */
SSL_CTX *head_tls(struct head *head, const char *p12);

/* Starts msschedd with what its database holds and waits until it listens; it takes nodes_max nodes
 * of one certificate. As root it runs at the priority of its unit. */
void head_start(struct head *head, const char *listen, size_t nodes_max);
void head_kill(struct head *head); /* as kill -9 does */
/* One that is started from now on knows nothing. */
void head_forget(struct head *head);
/* Ends it, and takes the folder away. */
void head_fini(struct head *head);

double head_cpu_s(struct head *head);     /* what it has computed so far */
size_t head_rss_bytes(struct head *head); /* what it holds in memory */

#endif
