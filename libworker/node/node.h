/* node.h - who this worker is: names, addresses, cores, memory, instruction set */
#ifndef NODE_H
#define NODE_H

#include "libworker/comm/comm.h"
#include "proto/cluster.pb-c.h"
#include "proto/err.h"
#include "proto/limits.h"

struct node_identity {
    char node_id[MS_NAME_MAX + 1];
    char host_name[MS_HOST_MAX + 1];
    char host_id[MS_NAME_MAX + 1];
    char ip[MS_HOST_MAX + 1]; /* of the data plane */
    char data_address[MS_ADDR_MAX + 1];
    char data_unix[MS_NAME_MAX + 1];
    char isa[32];
    char onednn[32];
    Ms__Offer offer;
};

/* Finds host name, host id and the data plane's IP: worker_ip, or where it is empty the local
 * address from which the scheduler ("host:port") is reached; a loopback address only when the
 * scheduler is on loopback too. An empty node_id is made up: host name, process id and time, so
 * that it is never used twice. */
int node_identify(const char *scheduler, const char *node_id, const char *worker_ip,
                  struct node_identity *ret, struct ms_err *err);

/* Which folder it is, as Register.jobs_folder: it has a number in a file of its own,
 * .msched-folder, made here where there is none. So it is the same after a reboot, on another host
 * too, and another one where somebody has made it anew. 0: it cannot be told. */
uint64_t node_folder(const char *path);

/* Fills the Register message; its strings point into identity. */
int node_describe(struct node_identity *identity, const struct comm_listener *listener,
                  Ms__Register *ret, struct ms_err *err);

#endif
