/* sim_people.c - who connects: users by certificate and by uid, admins, combined roles */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

/* The last PEOPLE_ADMINS of them may do what others may not. Two doors lead to one person. */
static const struct {
    uint32_t who;
    const char *name;
    unsigned role; /* of the certificate; 0: came over the Unix socket, as */
    unsigned uid;
} people[PEOPLE] = {
    {0, "alice", MS_ROLE_USER, 0}, {1, "bob", MS_ROLE_USER, 0},   {2, "", 0, 1000},
    {0, "alice", 0, 1001},         {3, "root", MS_ROLE_ADMIN, 0}, {3, "root", 0, 0},
};

void person_peer(uint32_t person, struct ms_peer *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->uid = people[person].role != 0 ? (unsigned)-1 : people[person].uid;
    if (people[person].role != 0) {
        ms_principal_from_certificate(people[person].role, people[person].name, &ret->who);
        snprintf(ret->cert_name, sizeof(ret->cert_name), "%s", people[person].name);
    } else {
        ms_principal_from_uid(people[person].uid, people[person].name, 990, MS_ROLE_WORKER,
                              &ret->who);
    }
}

uint32_t person_who(uint32_t person)
{
    return people[person].who;
}

/* Users have a hundred up and down, admins a thousand. */
bool person_is_refused(bool is_admin, int32_t priority)
{
    int32_t most = is_admin ? 1000 : 100;
    return priority > most || priority < -most;
}

/* Workers are nobody's owner: each is somebody of its own. */
uint32_t world_who(const struct world *w, uint32_t number)
{
    const struct sim_link *link = &w->links[number - 1];
    return link->is_node   ? 1000 + link->actor
           : link->is_evil ? w->evils[link->actor].who
                           : people[w->ops[link->actor].person].who;
}

bool world_is_evil(const struct world *w, uint32_t number)
{
    return w->links[number - 1].is_evil;
}

/* Secrets of clusters differ, so their tokens do: some of each are remembered. */
bool world_token_is_new(const uint8_t *token, uint64_t seed)
{
    static struct {
        uint8_t token[MS_TOKEN_LEN];
        uint64_t seed;
    } seen[256];
    size_t slot = token[0];
    bool is_new = memcmp(seen[slot].token, token, MS_TOKEN_LEN) != 0 || seen[slot].seed == seed;
    memcpy(seen[slot].token, token, MS_TOKEN_LEN);
    seen[slot].seed = seed;
    return is_new;
}
