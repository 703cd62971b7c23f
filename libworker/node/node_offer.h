/* node_offer.h - what a host offers, as messages carry it */
#ifndef NODE_OFFER_H
#define NODE_OFFER_H

#include "libworker/host/offer.h"
#include "proto/cluster.pb-c.h"

/* ret's CPUs are borrowed from offer. */
void node_offer_write(const struct host_offer *offer, Ms__Offer *ret);

/* msg as it came, NULL allowed. cores is 0 where it offers nothing that could be believed: CPUs
 * that are none, or fewer than the cores that they are said to be. */
struct host_offer node_offer_read(const Ms__Offer *msg);

#endif
