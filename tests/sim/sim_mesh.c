/* sim_mesh.c - the data plane of a generation: who is there, who reaches whom, who sees whom go */
#include "tests/sim/sim.h"

#include <string.h>

struct sim_generation *mesh_of(struct world *w, const struct sim_node *node)
{
    for (uint32_t i = w->n_generations; i > 0 && node->mesh != 0; i--) {
        if (w->generations[i - 1].generation == node->mesh) {
            return &w->generations[i - 1];
        }
    }
    return NULL;
}

/* NULL: that process is no more, or has left. */
struct sim_node *mesh_node(struct world *w, const struct sim_generation *mesh, uint32_t rank)
{
    const struct sim_seat *seat = &mesh->seats[rank];
    struct sim_node *node = &w->nodes[seat->node];
    return seat->here && !seat->gone && node->alive && node->epoch == seat->epoch &&
                   node->mesh == mesh->generation
               ? node
               : NULL;
}

static bool is_beyond(const struct world *w, uint32_t i)
{
    const struct sim_node *lone = &w->nodes[w->split.lone];
    return i == w->split.lone || (w->split.whole_host && strcmp(w->nodes[i].host, lone->host) == 0);
}

void mesh_split(struct world *w, const struct sim_node *node)
{
    enum { ROUNDS = 8, ROUND_MS = 1500 }; /* time enough for both ends to move */
    bool has_spare = false;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        const struct sim_node *other = &w->nodes[i];
        has_spare = has_spare || (other->alive && other->registered && other->job == 0);
    }
    if (!w->split.is_due || !has_spare || node->workers < 2 || w->now >= w->faults_end) {
        return;
    }
    w->split.is_due = false;
    w->split.lone = (uint32_t)(node - w->nodes);
    w->split.whole_host = sim_chance(w, 30);
    w->split.from = w->now + (int64_t)sim_below(w, 400);
    w->split.until = w->split.from + ROUNDS * (w->peer_ms + ROUND_MS);
    sim_trace(w, "%s %s is cut off from the others from %lld to %lld ms",
              w->split.whole_host ? "the host of node" : "node", node->id, (long long)w->split.from,
              (long long)w->split.until);
}

bool mesh_reaches(const struct world *w, const struct sim_generation *mesh, uint32_t a, uint32_t b)
{
    const uint32_t from = mesh->seats[a].node;
    const uint32_t to = mesh->seats[b].node;
    if (w->now >= w->split.from && w->now < w->split.until &&
        is_beyond(w, from) != is_beyond(w, to)) {
        return false;
    }
    for (uint32_t i = 0; i < w->n_cuts; i++) {
        const struct sim_cut *cut = &w->cuts[i];
        if (w->now >= cut->from && w->now < cut->until &&
            ((cut->a == from && cut->b == to) || (cut->a == to && cut->b == from))) {
            return false;
        }
    }
    return true;
}

static void see_gone(struct world *w, struct sim_node *node, uint32_t rank, uint64_t within_ms)
{
    const int64_t at = w->now + 1 + (int64_t)sim_below(w, within_ms);
    if (at < node->notice_at) {
        node->notice_at = at;
        node->notice = rank;
        node_work_at(w, node, node->work_at);
    }
}

void mesh_join(struct world *w, struct sim_node *node)
{
    node->mesh = node->generation;
    node->seat = node->rank;
    struct sim_generation *mesh = mesh_of(w, node);
    if (mesh == NULL || mesh->job != node->job) {
        sim_fail(w, "node %s joins the mesh of generation %llu, which it was never told of",
                 node->id, (unsigned long long)node->generation);
        node->mesh = 0;
        return;
    }
    struct sim_seat *seat = &mesh->seats[node->rank];
    *seat =
        (struct sim_seat){.node = (uint32_t)(node - w->nodes), .epoch = node->epoch, .here = true};
    node->peer_until = w->now + w->peer_ms + (int64_t)sim_below(w, 1000);
    node->notice_at = SIM_FOREVER;
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        if (mesh->seats[rank].gone) {
            see_gone(w, node, rank, 50);
        }
    }
}

bool mesh_stands(struct world *w, struct sim_generation *mesh)
{
    for (uint32_t rank = 0; rank < mesh->workers; rank++) {
        const struct sim_node *node = mesh_node(w, mesh, rank);
        if (node == NULL || node->hung) {
            return false;
        }
        for (uint32_t peer = 0; peer < rank; peer++) {
            if (!mesh_reaches(w, mesh, rank, peer)) {
                return false;
            }
        }
    }
    return true;
}

void mesh_leave(struct world *w, struct sim_node *node, bool is_seen)
{
    struct sim_generation *mesh = mesh_of(w, node);
    node->mesh = 0;
    node->notice_at = SIM_FOREVER;
    node->peer_until = SIM_FOREVER;
    if (mesh == NULL) {
        return;
    }
    mesh->seats[node->seat].gone = true;
    for (uint32_t rank = 0; rank < mesh->workers && is_seen; rank++) {
        struct sim_node *peer = mesh_node(w, mesh, rank);
        if (peer != NULL && mesh_reaches(w, mesh, rank, node->seat)) {
            see_gone(w, peer, node->seat, 8);
        }
    }
}
