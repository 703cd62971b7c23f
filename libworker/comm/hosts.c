/* hosts.c - how the ranks sit on hosts, and which brackets of the summation tree lie on one
 *
 * Every rank works this out from the members' list alone, so all come to the same. */
#include "libworker/comm/group.h"

static int is_on_one_host(const struct group *group, int lo, int hi)
{
    for (int r = lo + 1; r < hi; r++) {
        if (group->peers[r].host != group->peers[lo].host) {
            return 0;
        }
    }
    return 1;
}

/* The largest brackets within T(lo, hi) that lie on one host each, in rank order. */
static void find_subtrees(struct group *group, int lo, int hi)
{
    if (is_on_one_host(group, lo, hi)) {
        int host = group->peers[lo].host;
        group->subtrees[lo] = (struct subtree){
            .lo = lo, .hi = hi, .host = host, .nth = group->peers[host].subtrees++};
        return;
    }
    int mid = lo + (hi - lo + 1) / 2;
    find_subtrees(group, lo, mid);
    find_subtrees(group, mid, hi);
}

/* Bytes between hosts, as multiples of range / world. Directly, each rank sends its part of every
 * slice that another host owns, and each owner sends its sum to every rank of the other hosts. Else
 * each host sends the sums of its subtrees, and each owner its sum to every other host. */
static int sums_of_hosts_are_less(const struct group *group, int n_hosts)
{
    int64_t directly = 0;
    int64_t by_host = (int64_t)group->n_ranks * (n_hosts - 1);
    for (int r = 0; r < group->n_ranks; r++) {
        directly += 2 * (int64_t)(group->n_ranks - group->peers[r].seats);
    }
    for (int lo = 0; lo < group->n_ranks; lo = group->subtrees[lo].hi) {
        by_host += group->n_ranks - group->peers[lo].seats;
    }
    return by_host < directly;
}

void hosts_find(struct group *group)
{
    int n_hosts = 0;
    for (int r = 0; r < group->n_ranks; r++) {
        struct peer *first = &group->peers[group->peers[r].host];
        n_hosts += first->rank == r;
        group->peers[r].seat = first->seats++;
    }
    find_subtrees(group, 0, group->n_ranks);
    for (int r = 0; r < group->n_ranks; r++) {
        struct peer *peer = &group->peers[r];
        peer->seats = group->peers[peer->host].seats;
        peer->subtrees = group->peers[peer->host].subtrees;
    }
    group->sums_by_host = sums_of_hosts_are_less(group, n_hosts);
}
