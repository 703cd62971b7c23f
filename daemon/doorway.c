/* doorway.c - the connections of one listener that are no peers yet: who waits in front of the
 * door, who stands in it, who gives way */
#include "daemon/doorway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void doorway_init(struct doorway *door, size_t max, size_t waiting_max)
{
    *door = (struct doorway){.max = max, .waiting_max = waiting_max};
    list_init(&door->line);
    list_init(&door->turns);
}

void doorway_fini(struct doorway *door)
{
    for (size_t i = 0; i < DOORWAY_SLOTS; i++) {
        while (door->slots[i] != NULL) {
            struct crowd *crowd = door->slots[i];
            door->slots[i] = crowd->next;
            free(crowd);
        }
    }
}

/* ---- crowds -------------------------------------------------------------------------------------
 */

struct doorway_who doorway_who_net(const struct sockaddr *addr)
{
    struct doorway_who who = {.is_kept = 0};
    if (addr != NULL && addr->sa_family == AF_INET) {
        who.key[0] = 4;
        memcpy(who.key + 1, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
    } else if (addr != NULL && addr->sa_family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
        int is_v4 = IN6_IS_ADDR_V4MAPPED(at);
        who.key[0] = is_v4 ? 4 : 6;
        memcpy(who.key + 1, is_v4 ? at->s6_addr + 12 : at->s6_addr, is_v4 ? 4 : 8);
    }
    return who;
}

struct doorway_who doorway_who_uid(unsigned uid, int is_kept)
{
    struct doorway_who who = {.key = {1}, .is_kept = (uint8_t)(is_kept != 0)};
    memcpy(who.key + 1, &uid, sizeof(uid));
    return who;
}

const char *doorway_name(const struct doorway_who *who, char buf[DOORWAY_NAME_MAX])
{
    char text[INET6_ADDRSTRLEN] = "?";
    struct in6_addr six = {.s6_addr = {0}};
    unsigned uid = 0;
    switch (who->key[0]) {
    case 4:
        inet_ntop(AF_INET, who->key + 1, text, sizeof(text));
        snprintf(buf, DOORWAY_NAME_MAX, "%s", text);
        break;
    case 6:
        memcpy(six.s6_addr, who->key + 1, 8);
        inet_ntop(AF_INET6, &six, text, sizeof(text));
        snprintf(buf, DOORWAY_NAME_MAX, "%s/64", text);
        break;
    default:
        memcpy(&uid, who->key + 1, sizeof(uid));
        snprintf(buf, DOORWAY_NAME_MAX, "uid %u", uid);
        break;
    }
    return buf;
}

static struct crowd **find_slot(struct doorway *door, const struct doorway_who *who)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < sizeof(who->key); i++) {
        hash = (hash ^ who->key[i]) * 16777619U;
    }
    struct crowd **at = &door->slots[hash % DOORWAY_SLOTS];
    while (*at != NULL && memcmp((*at)->who.key, who->key, sizeof(who->key)) != 0) {
        at = &(*at)->next;
    }
    return at;
}

/* NULL: no memory. */
static struct crowd *find_crowd(struct doorway *door, const struct doorway_who *who)
{
    struct crowd **at = find_slot(door, who);
    if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL) {
        (*at)->who = *who;
        list_init(&(*at)->turn);
        list_init(&(*at)->waiting);
    }
    return *at;
}

static void drop_empty(struct doorway *door, struct crowd *crowd)
{
    if (crowd->waiting_n + crowd->standing_n == 0) {
        *find_slot(door, &crowd->who) = crowd->next;
        free(crowd);
    }
}

/* Whoever is let in whatever the others do has the first turn, too. */
static void give_turn(struct doorway *door, struct crowd *crowd)
{
    if (crowd->waiting_n > 0 && !crowd->is_held && list_empty(&crowd->turn)) {
        list_add_tail(crowd->who.is_kept ? door->turns.next : &door->turns, &crowd->turn);
    }
}

/* ---- coming and going ---------------------------------------------------------------------------
 */

int doorway_wait(struct doorway *door, struct guest *guest, const struct doorway_who *who)
{
    struct crowd *crowd = find_crowd(door, who);
    if (crowd == NULL) {
        return -1;
    }
    *guest = (struct guest){.crowd = crowd, .is_waiting = 1};
    list_add_tail(&crowd->waiting, &guest->line);
    crowd->waiting_n++;
    door->waiting_n++;
    give_turn(door, crowd);
    return 0;
}

int doorway_enter(struct doorway *door, struct guest *guest, const struct doorway_who *who,
                  int64_t now_ms)
{
    struct crowd *crowd = find_crowd(door, who);
    if (crowd == NULL) {
        return -1;
    }
    *guest = (struct guest){.crowd = crowd, .since_ms = now_ms};
    list_add_tail(&door->line, &guest->line);
    crowd->standing_n++;
    door->n++;
    return 0;
}

void doorway_leave(struct doorway *door, struct guest *guest)
{
    struct crowd *crowd = guest->crowd;
    if (crowd == NULL) {
        return;
    }
    int was_first = crowd->waiting.next == &guest->line;
    guest->crowd = NULL;
    list_remove(&guest->line);
    if (guest->is_waiting) {
        guest->is_waiting = 0;
        crowd->waiting_n--;
        door->waiting_n--;
        if (was_first) { /* its crowd has had its turn */
            list_remove(&crowd->turn);
            give_turn(door, crowd);
        }
    } else {
        crowd->standing_n--;
        door->n--;
    }
    drop_empty(door, crowd);
}

void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms)
{
    if (guest->crowd != NULL && !guest->is_waiting) {
        guest->has_spoken = 1;
        guest->since_ms = now_ms;
        list_remove(&guest->line);
        list_add_tail(&door->line, &guest->line);
    }
}

/* ---- in front of the door -----------------------------------------------------------------------
 */

static struct guest *first_of(const struct crowd *crowd)
{
    return list_item(crowd->waiting.next, struct guest, line);
}

struct guest *doorway_next(struct doorway *door)
{
    return list_empty(&door->turns) ? NULL
                                    : first_of(list_item(door->turns.next, struct crowd, turn));
}

void doorway_hold(struct doorway *door, struct guest *guest)
{
    (void)door;
    guest->crowd->is_held = 1;
    list_remove(&guest->crowd->turn);
}

void doorway_release(struct doorway *door)
{
    for (size_t i = 0; i < DOORWAY_SLOTS; i++) {
        for (struct crowd *crowd = door->slots[i]; crowd != NULL; crowd = crowd->next) {
            crowd->is_held = 0;
            give_turn(door, crowd);
        }
    }
}

/* Whoever is let in whatever the others do is the last to be turned away. */
static size_t weight(const struct crowd *crowd)
{
    return crowd->waiting_n == 0 || crowd->who.is_kept ? crowd->waiting_n > 0
                                                       : crowd->waiting_n + 1;
}

/* NULL: nobody waits. */
static struct crowd *largest_waiting(const struct doorway *door)
{
    struct crowd *found = NULL;
    for (size_t i = 0; i < DOORWAY_SLOTS; i++) {
        for (struct crowd *crowd = door->slots[i]; crowd != NULL; crowd = crowd->next) {
            if (weight(crowd) > (found == NULL ? 0 : weight(found))) {
                found = crowd;
            }
        }
    }
    return found;
}

static struct guest *last_of(const struct crowd *crowd)
{
    return list_item(crowd->waiting.prev, struct guest, line);
}

struct guest *doorway_waiting(const struct doorway *door)
{
    const struct crowd *crowd = largest_waiting(door);
    return crowd == NULL ? NULL : last_of(crowd);
}

struct guest *doorway_surplus(const struct doorway *door)
{
    return door->waiting_n > door->waiting_max ? doorway_waiting(door) : NULL;
}

int doorway_is_packed(const struct doorway *door)
{
    return door->waiting_n >= door->waiting_max && door->waiting_n > 0 &&
           largest_waiting(door)->waiting_n <= 1;
}

/* ---- in the door --------------------------------------------------------------------------------
 */

int doorway_is_full(const struct doorway *door)
{
    return door->n >= door->max;
}

/* How long it may stay as it is; 0: it may be sent away. */
static int64_t patience_ms(const struct guest *guest, int64_t now_ms)
{
    int64_t grace = guest->has_spoken ? DOORWAY_SPOKEN_MS : DOORWAY_GRACE_MS;
    int64_t age = now_ms - guest->since_ms;
    return age < grace ? grace - age : 0;
}

int64_t doorway_wait_ms(const struct doorway *door, int64_t now_ms)
{
    int64_t least = doorway_is_full(door) ? DOORWAY_SPOKEN_MS : 0;
    for (struct list *at = door->line.next; at != &door->line && least > 0; at = at->next) {
        int64_t wait = patience_ms(list_item(at, struct guest, line), now_ms);
        least = wait < least ? wait : least;
    }
    return least;
}

/* Of those that may be sent away, the oldest of the crowd that holds the most places. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms)
{
    struct guest *found = NULL;
    for (struct list *at = door->line.next; at != &door->line && doorway_is_full(door);
         at = at->next) {
        struct guest *guest = list_item(at, struct guest, line);
        if (patience_ms(guest, now_ms) == 0 &&
            (found == NULL || guest->crowd->standing_n > found->crowd->standing_n)) {
            found = guest;
        }
    }
    return found;
}

/* Of the largest crowd that is not let in whatever comes: the oldest, silent ones first. */
struct guest *doorway_yields(const struct doorway *door, const struct guest *waiting)
{
    struct guest *found = NULL;
    for (struct list *at = door->line.next; at != &door->line && doorway_is_full(door);
         at = at->next) {
        struct guest *guest = list_item(at, struct guest, line);
        size_t n = guest->crowd->standing_n;
        size_t most = found == NULL ? 0 : found->crowd->standing_n;
        int is_better = n > most || (n == most && found->has_spoken && !guest->has_spoken &&
                                     found->crowd == guest->crowd);
        found = is_better && !guest->crowd->who.is_kept ? guest : found;
    }
    if (found == NULL || waiting->crowd->who.is_kept) {
        return found;
    }
    size_t most = found->crowd->standing_n;
    return 2 * most > door->max && 2 * waiting->crowd->standing_n < most ? found : NULL;
}
