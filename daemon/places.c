/* places.c - who may hold how many of the daemon's connections, and of its room for large frames
 */
#include "daemon/places.h"

#include "proto/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct holder {
    struct holder *next;
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

static struct holder **find_slot(struct places *places, const char *who)
{
    uint32_t hash = 2166136261U;
    for (const char *p = who; *p != '\0'; p++) {
        hash = (hash ^ (uint8_t)*p) * 16777619U;
    }
    struct holder **at = &places->slots[hash % PLACES_SLOTS];
    while (*at != NULL && strcmp((*at)->who, who) != 0) {
        at = &(*at)->next;
    }
    return at;
}

static int take_user(struct places *places, const struct ms_peer *peer, struct holder **ret,
                     struct ms_err *err)
{
    const char *who = peer->who.id;
    if (places->n[PLACE_USER] >= places->users_max) {
        return ms_fail(err, MS_E_FULL,
                       "users hold %zu connections, which is all that nodes and admins leave to "
                       "them: try again in a moment",
                       places->users_max);
    }
    struct holder **at = find_slot(places, who);
    if (*at != NULL && (*at)->n >= places->user_max) {
        return ms_fail(err, MS_E_FULL,
                       "%s holds %zu connections already, which is the limit for one user: close "
                       "some",
                       peer->who.id, places->user_max);
    }
    if (*at == NULL) {
        *at = calloc(1, sizeof(**at));
        if (*at == NULL) {
            return ms_fail(err, MS_E_NOMEM, "no memory for a connection of %s", peer->who.id);
        }
        snprintf((*at)->who, sizeof((*at)->who), "%s", who);
    }
    (*at)->n++;
    *ret = *at;
    return 0;
}

int places_take(struct places *places, const struct ms_peer *peer, struct place *ret,
                struct ms_err *err)
{
    struct place place = {.class = places_class(peer), .is_held = 1};
    size_t limit = place.class == PLACE_ADMIN ? places->max : places->others_max;
    if (places_used(places) >= limit) {
        return ms_fail(err, MS_E_FULL,
                       "the scheduler holds %zu connections already, which is its limit "
                       "(MS_CONNS_MAX, or LimitNOFILE of its service)",
                       limit);
    }
    int rc = place.class == PLACE_USER ? take_user(places, peer, &place.holder, err) : 0;
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
        struct holder **at = find_slot(places, holder->who);
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
