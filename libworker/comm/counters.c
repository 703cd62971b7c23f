/* counters.c - how many bytes went between this rank and the others */
#include "libworker/comm/group.h"

static void add(struct mesh_traffic *sum, const struct mesh_traffic *traffic)
{
    sum->payload_out += traffic->payload_out;
    sum->payload_in += traffic->payload_in;
    sum->wire_out += traffic->wire_out;
    sum->wire_in += traffic->wire_in;
}

void group_counters(const struct group *group, struct mesh_counters *ret,
                    struct mesh_traffic *ret_peers)
{
    *ret = (struct mesh_counters){0};
    for (int i = 0; i < group->n_ranks; i++) {
        const struct peer *peer = &group->peers[i];
        struct mesh_traffic traffic = stream_traffic(&peer->stream);
        add(&ret->all, &traffic);
        if (peer->local < 0) {
            add(&ret->remote, &traffic);
        }
        if (ret_peers != NULL) {
            ret_peers[i] = traffic;
        }
    }
}
