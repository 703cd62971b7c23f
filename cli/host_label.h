/* host_label.h - which nodes stand together in a list, and under what name
 *
 * What a node says of its host is free, its certificate is not: nodes of two certificates that give
 * one host name stand apart, and the certificate beside the name says which is which. */
#ifndef CLI_HOST_LABEL_H
#define CLI_HOST_LABEL_H

#include "proto/cluster.pb-c.h"
#include "proto/limits.h"

#include <stddef.h>

enum { CLI_HOST_LABEL_MAX = MS_HOST_MAX + MS_NAME_MAX + 4 };

/* By host, certificate and node id; those without a certificate (not heard of yet) come first. */
void cli_hosts_sort(Ms__NodeInfo **nodes, size_t n);
/* Of a node in a sorted list: NULL: it stands below the one before; else buf, the host's name. */
const char *cli_host_label(Ms__NodeInfo *const *nodes, size_t n, size_t i,
                           char buf[CLI_HOST_LABEL_MAX]);
/* Do all nodes that stand together with this one offer the same cores? */
int cli_host_is_even(Ms__NodeInfo *const *nodes, size_t n, size_t i);

#endif
