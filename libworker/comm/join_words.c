/* join_words.c - who is waited for, where, and why it has not come */
#include "libworker/comm/join.h"

#include <stdio.h>

int join_first_missing(const struct join *join)
{
    const struct group *group = join->group;
    int r = 0;
    while (r == group->rank || group->peers[r].stream.link.fd >= 0) {
        r++;
    }
    return r;
}

/* What is known of a rank that has not come: where it is looked for, and what became of that. */
static void tell_one(const struct join *join, int r, char *buf, size_t size)
{
    const struct group *group = join->group;
    const struct caller *caller = &join->callers[r];
    int is_ours = r < group->rank; /* to dial */
    const char *address = group->peers[r].local >= 0
                              ? ""
                              : join_member(join, is_ours ? r : group->rank)->data_address;
    const char *why = caller->note[0] != '\0'                  ? caller->note
                      : is_ours && caller->busy && caller->out ? "connected, and it is silent yet"
                                                               : "";
    char who[MESH_WHO_MAX];
    snprintf(buf, size, "%s to %s%s%s%s%s%s", group_who(group, r, who),
             is_ours ? "answer" : "connect",
             address[0] == '\0' ? ""
             : is_ours          ? " at "
                                : " to ",
             address, why[0] != '\0' ? " (" : "", why, why[0] != '\0' ? ")" : "");
}

/* Packets may have got lost on the way between two hosts: nothing else was heard. */
static int may_be_cut_off(const struct join *join, int r)
{
    const struct caller *caller = &join->callers[r];
    return join->group->peers[r].local < 0 && !caller->out &&
           (caller->note[0] == '\0' || caller->note_code == MS_E_UNREACHABLE);
}

/* "waited 10.0 s for rank 3 (..) to answer at .., rank 4 ..", in a buffer of MS_ERR_TEXT_MAX. */
static void print_missing(const struct join *join, uint64_t waited_ms, char *buf)
{
    enum { NAMED = 3 }; /* the first few say it */
    const struct group *group = join->group;
    char text[MS_ERR_TEXT_MAX] = "";
    char head[32] = "";
    size_t used = 0;
    int missing = 0;
    int cut_off = 0;
    for (int r = 0; r < group->n_ranks; r++) {
        if (r == group->rank || group->peers[r].stream.link.fd >= 0) {
            continue;
        }
        cut_off |= may_be_cut_off(join, r);
        if (++missing > NAMED || used >= sizeof(text)) {
            continue;
        }
        char one[MS_ERR_TEXT_MAX];
        tell_one(join, r, one, sizeof(one));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", missing > 1 ? ", " : "",
                                 one);
    }
    if (missing > NAMED) {
        snprintf(head, sizeof(head), "%d ranks: ", missing);
    }
    snprintf(buf, MS_ERR_TEXT_MAX, "waited %.1f s for %s%s%s%s", (double)waited_ms / 1e3, head,
             text, missing > NAMED ? " ..." : "",
             cut_off ? "; a firewall? nodes reach each other at data_port_min to data_port_max"
                     : "");
}

/* What is short for a moment, for another thread had it, comes back by itself. So it does where
 * strangers hold it: they are dropped, and the count begins anew. */
int join_is_short(const struct join *join)
{
    enum { SHORT_MS = 1000 };
    return join->lack[0] != '\0' && join->lack_ms - join->short_ms >= SHORT_MS;
}

/* Who could not be let in knocks again and again: it is not long ago. */
static int lacks_something(const struct join *join)
{
    return join->lack[0] != '\0' && join_now_ms(join) - join->lack_ms <= MS_HANDSHAKE_MS;
}

/* As print_missing, and before it what this process lacks. */
static void print_wait(const struct join *join, uint64_t waited_ms, char *buf)
{
    char text[MS_ERR_TEXT_MAX];
    print_missing(join, waited_ms, text);
    snprintf(buf, MS_ERR_TEXT_MAX, "%s%s%s", lacks_something(join) ? join->lack : "",
             lacks_something(join) ? "; " : "", text);
}

int join_blame_the_missing(const struct join *join, uint64_t waited_ms, struct ms_err *err)
{
    struct group *group = join->group;
    char text[MS_ERR_TEXT_MAX];
    int first = join_first_missing(join);
    print_wait(join, waited_ms, text);
    if (lacks_something(join)) {
        return group_blame(group, group->peers[group->rank].member, err, MS_E_NOMEM, "%s", text);
    }
    return group_blame(group, group->peers[first].member, err, MS_E_TIMEOUT, "%s", text);
}

void join_tell_who_waits(struct join *join, uint64_t waited_ms)
{
    struct group *group = join->group;
    if (waited_ms >= group_patience(group) && group_may_tell(group, join_now_ms(join))) {
        char text[MS_ERR_TEXT_MAX];
        print_wait(join, waited_ms, text);
        group_tell(group, text, "");
    }
}
