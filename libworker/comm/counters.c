/* counters.c - how many bytes went between this rank and the others */
#include "libworker/comm/mesh.h"

static void add(struct mesh_traffic *sum, const struct mesh_traffic *traffic)
{
    sum->payload_out += traffic->payload_out;
    sum->payload_in += traffic->payload_in;
    sum->wire_out += traffic->wire_out;
    sum->wire_in += traffic->wire_in;
}

void mesh_counters(const struct mesh *mesh, struct mesh_counters *ret,
                   struct mesh_traffic *ret_peers)
{
    *ret = (struct mesh_counters){0};
    for (int i = 0; i < mesh->world; i++) {
        const struct peer *peer = &mesh->peers[i];
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
