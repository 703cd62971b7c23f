/* places.c - who may hold how many of the daemon's connections, and of its room for large frames
 */
#include "daemon/places.h"

#include "proto/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct holder {
    struct holder *next;
    enum place_class class;
    size_t n, n_large;
    char who[MS_PRINCIPAL_MAX + 1];
};

void places_init(struct places *places, size_t max)
{
    *places = (struct places){.max = max};
    size_t floor = max / 8 < MS_CONNS_ADMIN ? max / 8 : MS_CONNS_ADMIN;
    places->others_max = max - floor;
    places->users_max = max / 4 < MS_CONNS_USERS ? max / 4 : MS_CONNS_USERS;
    places->user_max =
        places->users_max / 2 < MS_CONNS_USER ? places->users_max / 2 : MS_CONNS_USER;
    places->users_max += places->users_max == 0;
    places->user_max += places->user_max == 0;
    places->nodes_max = places->others_max - places->users_max;
    places->nodes_max += places->nodes_max == 0;
}

/* A host that lost its power comes back while its old connections still seem to stand. */
void places_set_nodes(struct places *places, uint32_t nodes_per_certificate)
{
    enum { SPARE = 8 };
    places->node_max = nodes_per_certificate > 0 ? 2 * (size_t)nodes_per_certificate + SPARE : 0;
}

void places_fini(struct places *places)
{
    for (size_t i = 0; i < PLACES_SLOTS; i++) {
        while (places->slots[i] != NULL) {
            struct holder *holder = places->slots[i];
            places->slots[i] = holder->next;
            free(holder);
        }
    }
}

size_t places_used(const struct places *places)
{
    return places->n[PLACE_USER] + places->n[PLACE_NODE] + places->n[PLACE_ADMIN];
}

enum place_class places_class(const struct ms_peer *peer)
{
    int is_vouched = peer->cert_name[0] != '\0' || peer->uid != (unsigned)-1;
    if (is_vouched && (peer->who.roles & MS_ROLE_ADMIN) != 0) {
        return PLACE_ADMIN;
    }
    return (peer->who.roles & MS_ROLE_WORKER) != 0 ? PLACE_NODE : PLACE_USER;
}

static struct holder **find_slot(struct places *places, enum place_class class, const char *who)
{
    uint32_t hash = 2166136261U;
    for (const char *p = who; *p != '\0'; p++) {
        hash = (hash ^ (uint8_t)*p) * 16777619U;
    }
    struct holder **at = &places->slots[hash % PLACES_SLOTS];
    while (*at != NULL && ((*at)->class != class || strcmp((*at)->who, who) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

/* NULL: nobody holds any. */
static const struct holder *largest(const struct places *places, enum place_class class)
{
    const struct holder *found = NULL;
    for (size_t i = 0; i < PLACES_SLOTS; i++) {
        for (const struct holder *at = places->slots[i]; at != NULL; at = at->next) {
            found = at->class == class && (found == NULL || at->n > found->n) ? at : found;
        }
    }
    return found;
}

/* All of a class, or what admins leave to all others. */
static int full(const struct places *places, enum place_class class, struct ms_err *err)
{
    const struct holder *most = class == PLACE_ADMIN ? NULL : largest(places, class);
    char text[MS_PRINCIPAL_MAX + 32] = "";
    if (most != NULL) {
        snprintf(text, sizeof(text), ", %zu of them %s", most->n, most->who);
    }
    if (class != PLACE_ADMIN && places->n[class] > 0) {
        return ms_fail(err, MS_E_FULL,
                       "%s hold %zu connections%s, which is all that there is for them: try again "
                       "in a moment, or let the service have more descriptors (LimitNOFILE)",
                       class == PLACE_USER ? "users" : "nodes", places->n[class], text);
    }
    return ms_fail(err, MS_E_FULL,
                   "the scheduler holds %zu connections already, which is its limit "
                   "(MS_CONNS_MAX, or LimitNOFILE of its service)",
                   places_used(places));
}

static int take_share(struct places *places, enum place_class class, const struct ms_peer *peer,
                      struct holder **ret, struct ms_err *err)
{
    size_t share = class == PLACE_USER ? places->user_max : places->node_max;
    int is_one = class == PLACE_USER || peer->cert_name[0] != '\0';
    struct holder **at = find_slot(places, class, peer->who.id);
    if (*at != NULL && is_one && share > 0 && (*at)->n >= share) {
        return ms_fail(err, MS_E_FULL,
                       class == PLACE_USER
                           ? "%s holds %zu connections already, which is the limit for one user: "
                             "close some"
                           : "%s holds %zu connections already, which is the limit for one "
                             "certificate: raise nodes_per_certificate, or see who uses its key",
                       peer->who.id, share);
    }
    if (*at == NULL) {
        *at = calloc(1, sizeof(**at));
        if (*at == NULL) {
            return ms_fail(err, MS_E_NOMEM, "no memory for a connection of %s", peer->who.id);
        }
        (*at)->class = class;
        snprintf((*at)->who, sizeof((*at)->who), "%s", peer->who.id);
    }
    (*at)->n++;
    *ret = *at;
    return 0;
}

int places_take(struct places *places, const struct ms_peer *peer, struct place *ret,
                struct ms_err *err)
{
    const size_t most[PLACE_CLASSES] = {[PLACE_USER] = places->users_max,
                                        [PLACE_NODE] = places->nodes_max,
                                        [PLACE_ADMIN] = places->max};
    struct place place = {.class = places_class(peer), .is_held = 1};
    size_t limit = place.class == PLACE_ADMIN ? places->max : places->others_max;
    int rc = 0;
    if (places_used(places) >= limit || places->n[place.class] >= most[place.class]) {
        rc = full(places, place.class, err);
    } else if (place.class != PLACE_ADMIN) {
        rc = take_share(places, place.class, peer, &place.holder, err);
    }
    if (rc == 0) {
        places->n[place.class]++;
        *ret = place;
    }
    return rc;
}

void places_give(struct places *places, struct place *place)
{
    if (!place->is_held) {
        return;
    }
    places_shrink(places, place);
    place->is_held = 0;
    places->n[place->class]--;
    struct holder *holder = place->holder;
    if (holder != NULL && --holder->n == 0) {
        struct holder **at = find_slot(places, holder->class, holder->who);
        *at = holder->next;
        free(holder);
    }
}

int places_may_grow(const struct places *places, const struct place *place)
{
    size_t most = MS_BIG_FRAMES - (place->class == PLACE_ADMIN ? 0 : MS_BIG_FRAMES_ADMIN);
    return place->class == PLACE_NODE ||
           (places->n_large < most &&
            (place->holder == NULL || place->holder->n_large < MS_BIG_FRAMES_USER));
}

int places_grow(struct places *places, struct place *place)
{
    if (!places_may_grow(places, place)) {
        return 0;
    }
    if (place->class != PLACE_NODE && !place->is_large) {
        place->is_large = 1;
        places->n_large++;
        if (place->holder != NULL) {
            place->holder->n_large++;
        }
    }
    return 1;
}

void places_shrink(struct places *places, struct place *place)
{
    if (place->is_large) {
        place->is_large = 0;
        places->n_large--;
        if (place->holder != NULL) {
            place->holder->n_large--;
        }
    }
}

size_t places_free_large(const struct places *places)
{
    return MS_BIG_FRAMES - places->n_large;
}

void places_say_large(const struct places *places, const struct place *place, char *ret,
                      size_t size)
{
    int n = snprintf(ret, size, "%zu of %d places for requests above %u KiB are taken",
                     places->n_large, MS_BIG_FRAMES, MS_FRAME_SMALL / 1024);
    if (place->holder != NULL && n > 0 && (size_t)n < size) {
        snprintf(ret + n, size - (size_t)n, ", %zu by %s (%d are the limit of one)",
                 place->holder->n_large, place->holder->who, MS_BIG_FRAMES_USER);
    }
}
