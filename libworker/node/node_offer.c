/* node_offer.c - what a host offers, as messages carry it */
#include "libworker/node/node_offer.h"

void node_offer_write(const struct host_offer *offer, Ms__Offer *ret)
{
    ms__offer__init(ret);
    ret->cores = (uint32_t)offer->cores;
    ret->physical = (uint32_t)offer->physical;
    ret->numa = (uint32_t)offer->numa;
    ret->cpu_milli = offer->cpu_milli;
    ret->cpu_pool = offer->cpu_pool;
    ret->cpuset.data = (uint8_t *)offer->cpus.bits;
    ret->cpuset.len = cpuset_bytes(&offer->cpus);
    ret->l1d_bytes = offer->cache_bytes[0];
    ret->l2_bytes = offer->cache_bytes[1];
    ret->l3_bytes = offer->cache_bytes[2];
    ret->memory_bytes = offer->memory_bytes;
}

struct host_offer node_offer_read(const Ms__Offer *msg)
{
    struct host_offer offer = {.cores = 0};
    if (msg == NULL) {
        return offer;
    }
    offer.cpus = cpuset_of_bytes(msg->cpuset.data, msg->cpuset.len);
    const int n = cpuset_count(&offer.cpus);
    if (msg->physical == 0 || msg->physical > (uint32_t)n || msg->numa > (uint32_t)n) {
        return offer;
    }
    offer.cores = n;
    offer.physical = (int)msg->physical;
    offer.numa = (int)msg->numa;
    offer.cpu_milli = msg->cpu_milli;
    offer.cpu_pool = msg->cpu_pool;
    offer.cache_bytes[0] = msg->l1d_bytes;
    offer.cache_bytes[1] = msg->l2_bytes;
    offer.cache_bytes[2] = msg->l3_bytes;
    offer.memory_bytes = msg->memory_bytes;
    return offer;
}
