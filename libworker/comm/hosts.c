/* hosts.c - how the ranks sit on hosts, and which brackets of the summation tree lie on one
 *
 * Every rank works this out from the members' list alone, so all come to the same. */
#include "libworker/comm/mesh.h"

static int is_on_one_host(const struct mesh *mesh, int lo, int hi)
{
    for (int r = lo + 1; r < hi; r++) {
        if (mesh->peers[r].host != mesh->peers[lo].host) {
            return 0;
        }
    }
    return 1;
}

/* The largest brackets within T(lo, hi) that lie on one host each, in rank order. */
static void find_subtrees(struct mesh *mesh, int lo, int hi)
{
    if (is_on_one_host(mesh, lo, hi)) {
        int host = mesh->peers[lo].host;
        mesh->subtrees[lo] =
            (struct subtree){.lo = lo, .hi = hi, .host = host, .nth = mesh->peers[host].subtrees++};
        return;
    }
    int mid = lo + (hi - lo + 1) / 2;
    find_subtrees(mesh, lo, mid);
    find_subtrees(mesh, mid, hi);
}

/* Bytes between hosts, as multiples of range / world. Directly, each rank sends its part of every
 * slice that another host owns, and each owner sends its sum to every rank of the other hosts. Else
 * each host sends the sums of its subtrees, and each owner its sum to every other host. */
static int sums_of_hosts_are_less(const struct mesh *mesh, int n_hosts)
{
    int64_t directly = 0;
    int64_t by_host = (int64_t)mesh->world * (n_hosts - 1);
    for (int r = 0; r < mesh->world; r++) {
        directly += 2 * (int64_t)(mesh->world - mesh->peers[r].seats);
    }
    for (int lo = 0; lo < mesh->world; lo = mesh->subtrees[lo].hi) {
        by_host += mesh->world - mesh->peers[lo].seats;
    }
    return by_host < directly;
}

void hosts_find(struct mesh *mesh)
{
    int n_hosts = 0;
    for (int r = 0; r < mesh->world; r++) {
        struct peer *first = &mesh->peers[mesh->peers[r].host];
        n_hosts += first->rank == r;
        mesh->peers[r].seat = first->seats++;
    }
    find_subtrees(mesh, 0, mesh->world);
    for (int r = 0; r < mesh->world; r++) {
        struct peer *peer = &mesh->peers[r];
        peer->seats = mesh->peers[peer->host].seats;
        peer->subtrees = mesh->peers[peer->host].subtrees;
    }
    mesh->sums_by_host = sums_of_hosts_are_less(mesh, n_hosts);
}
