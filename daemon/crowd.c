/* crowd.c - who comes together: the connections before Welcome, counted by where they come from */
#include "daemon/crowd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum crowd_kind { KIND_UNKNOWN, KIND_UID, KIND_HERE, KIND_IPV4, KIND_IPV6 };

/* Bytes that those of one crowd have in common. */
static const uint8_t common[][CROWD_LEVELS + 1] = {
    [KIND_UNKNOWN] = {0, 0, 0, 0}, [KIND_UID] = {0, 4, 4, 4},  [KIND_HERE] = {0, 0, 4, 8},
    [KIND_IPV4] = {0, 2, 3, 4},    [KIND_IPV6] = {0, 4, 6, 8},
};

/* ---- who is who ---------------------------------------------------------------------------------
 */

/* uid, and four bytes of the address: all of an IPv4 one, and ::1 has no others beside it. */
static struct crowd_who of_here(const uint8_t at[4], unsigned uid)
{
    struct crowd_who who = {.kind = KIND_HERE};
    memcpy(who.at, &uid, 4);
    memcpy(who.at + 4, at, 4);
    return who;
}

/* NULL: it is none. */
static const uint8_t *ipv4_of(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET) {
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)addr)->sin_addr;
    }
    const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
    return addr->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(at) ? at->s6_addr + 12 : NULL;
}

struct crowd_who crowd_who_here(const struct sockaddr *addr, unsigned uid)
{
    const uint8_t *ipv4 = ipv4_of(addr);
    if (ipv4 == NULL && addr->sa_family == AF_INET6) {
        ipv4 = ((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr.s6_addr + 12;
    }
    return of_here(ipv4 != NULL ? ipv4 : (const uint8_t[4]){0}, uid);
}

struct crowd_who crowd_who_net(const struct sockaddr *addr)
{
    struct crowd_who who = {.kind = KIND_UNKNOWN};
    const uint8_t *ipv4 = addr != NULL ? ipv4_of(addr) : NULL;
    if (ipv4 != NULL && ipv4[0] == 127) {
        return of_here(ipv4, (unsigned)CROWD_UID_UNKNOWN);
    }
    if (ipv4 != NULL) {
        who.kind = KIND_IPV4;
        memcpy(who.at, ipv4, 4);
    } else if (addr != NULL && addr->sa_family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
        if (IN6_IS_ADDR_LOOPBACK(at)) {
            return of_here(at->s6_addr + 12, (unsigned)CROWD_UID_UNKNOWN);
        }
        who.kind = KIND_IPV6;
        memcpy(who.at, at->s6_addr, sizeof(who.at));
    }
    return who;
}

struct crowd_who crowd_who_uid(unsigned uid, int is_kept)
{
    struct crowd_who who = {.kind = KIND_UID, .is_kept = (uint8_t)(is_kept != 0)};
    memcpy(who.at, &uid, sizeof(uid));
    return who;
}

/* "uid 1000", "127.0.0.1 of uid 1000". */
static void name_here(const struct crowd *crowd, char buf[CROWD_NAME_MAX])
{
    char text[INET_ADDRSTRLEN] = "?";
    char whose[32] = "an unknown uid";
    unsigned uid = 0;
    memcpy(&uid, crowd->who.at, sizeof(uid));
    if (uid != (unsigned)CROWD_UID_UNKNOWN) {
        snprintf(whose, sizeof(whose), "uid %u", uid);
    }
    inet_ntop(AF_INET, crowd->who.at + 4, text, sizeof(text));
    if (crowd->level == 1) {
        snprintf(buf, CROWD_NAME_MAX, "this host");
    } else if (crowd->level < CROWD_LEVELS) {
        snprintf(buf, CROWD_NAME_MAX, "%s", whose);
    } else {
        snprintf(buf, CROWD_NAME_MAX, "%s of %s", text[0] == '0' ? "::1" : text, whose);
    }
}

const char *crowd_name(const struct crowd *crowd, char buf[CROWD_NAME_MAX])
{
    char text[INET6_ADDRSTRLEN] = "?";
    struct in6_addr six = {.s6_addr = {0}};
    unsigned bits = 8U * common[crowd->who.kind][crowd->level];
    unsigned uid = 0;
    switch (crowd->level == 0 ? KIND_UNKNOWN : crowd->who.kind) {
    case KIND_HERE:
        name_here(crowd, buf);
        break;
    case KIND_IPV4:
        inet_ntop(AF_INET, crowd->who.at, text, sizeof(text));
        if (bits < 32) {
            snprintf(buf, CROWD_NAME_MAX, "%s/%u", text, bits);
        } else {
            snprintf(buf, CROWD_NAME_MAX, "%s", text);
        }
        break;
    case KIND_IPV6:
        memcpy(six.s6_addr, crowd->who.at, sizeof(crowd->who.at));
        inet_ntop(AF_INET6, &six, text, sizeof(text));
        snprintf(buf, CROWD_NAME_MAX, "%s/%u", text, bits);
        break;
    case KIND_UID:
        memcpy(&uid, crowd->who.at, sizeof(uid));
        snprintf(buf, CROWD_NAME_MAX, "uid %u", uid);
        break;
    default:
        snprintf(buf, CROWD_NAME_MAX, "?");
        break;
    }
    return buf;
}

/* ---- the tree -----------------------------------------------------------------------------------
 */

static void init(struct crowd *crowd)
{
    list_init(&crowd->siblings);
    list_init(&crowd->parts);
    list_init(&crowd->turn);
    list_init(&crowd->turns);
    for (int i = 0; i < CROWD_STATES; i++) {
        list_init(&crowd->members[i]);
    }
}

void crowds_init(struct crowds *crowds)
{
    *crowds = (struct crowds){.slots = {NULL}};
    init(&crowds->all);
}

void crowds_fini(struct crowds *crowds)
{
    for (size_t i = 0; i < CROWD_SLOTS; i++) {
        while (crowds->slots[i] != NULL) {
            struct crowd *crowd = crowds->slots[i];
            crowds->slots[i] = crowd->next;
            free(crowd);
        }
    }
}

static int is_same(const struct crowd_who *one, const struct crowd_who *two)
{
    return one->kind == two->kind && memcmp(one->at, two->at, sizeof(one->at)) == 0;
}

static struct crowd **find_slot(struct crowds *crowds, const struct crowd_who *who, unsigned level)
{
    uint32_t hash = (2166136261U ^ who->kind ^ level << 8) * 16777619U;
    for (size_t i = 0; i < sizeof(who->at); i++) {
        hash = (hash ^ who->at[i]) * 16777619U;
    }
    struct crowd **at = &crowds->slots[hash % CROWD_SLOTS];
    while (*at != NULL && ((*at)->level != level || !is_same(&(*at)->who, who))) {
        at = &(*at)->next;
    }
    return at;
}

static struct crowd *add_part(struct crowds *crowds, struct crowd *above,
                              const struct crowd_who *who)
{
    struct crowd_who cut = {.kind = who->kind, .is_kept = who->is_kept};
    memcpy(cut.at, who->at, common[who->kind][above->level + 1]);
    struct crowd **at = find_slot(crowds, &cut, above->level + 1);
    if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL) {
        init(*at);
        (*at)->above = above;
        (*at)->level = above->level + 1;
        (*at)->who = cut;
        list_add_tail(&above->parts, &(*at)->siblings);
    }
    return *at;
}

struct crowd *crowds_get(struct crowds *crowds, const struct crowd_who *who)
{
    struct crowd *crowd = &crowds->all;
    while (crowd->level < CROWD_LEVELS) {
        struct crowd *part = add_part(crowds, crowd, who);
        if (part == NULL) {
            crowd_drop(crowds, crowd);
            return NULL;
        }
        crowd = part;
    }
    return crowd;
}

static int is_empty(const struct crowd *crowd)
{
    return crowd->waiting[CROWD_SILENT] + crowd->waiting[CROWD_READY] + crowd->standing == 0;
}

void crowd_drop(struct crowds *crowds, struct crowd *crowd)
{
    while (crowd->level > 0 && is_empty(crowd)) {
        struct crowd *above = crowd->above;
        list_remove(&crowd->siblings);
        *find_slot(crowds, &crowd->who, crowd->level) = crowd->next;
        free(crowd);
        crowd = above;
    }
}

const struct crowd *crowd_at(const struct crowd *crowd, unsigned level)
{
    while (crowd->level > level) {
        crowd = crowd->above;
    }
    return crowd;
}

unsigned crowd_parting(const struct crowd *one, const struct crowd *two)
{
    unsigned level = CROWD_LEVELS + 1;
    for (; one != two; one = one->above, two = two->above) {
        level = one->level;
    }
    return level;
}

/* ---- turns --------------------------------------------------------------------------------------
 */

static int has_turns(const struct crowd *crowd)
{
    return crowd->level < CROWD_LEVELS ? !list_empty(&crowd->turns)
                                       : crowd->waiting[CROWD_READY] > 0 && !crowd->is_held;
}

/* Whoever is let in whatever the others do has the first turn, too. */
static void queue_up(struct crowd *crowd)
{
    struct list *line = &crowd->above->turns;
    list_add_tail(crowd->who.is_kept ? line->next : line, &crowd->turn);
}

/* In line where it has turns, and in none where it has not; to_end: it has had one. */
static void settle_turns(struct crowd *crowd, int to_end)
{
    for (; crowd->level > 0; crowd = crowd->above) {
        int stays = has_turns(crowd);
        if (to_end || !stays) {
            list_remove(&crowd->turn);
        }
        if (stays && list_empty(&crowd->turn)) {
            queue_up(crowd);
        }
    }
}

void crowd_add(struct crowd *crowd, struct member *member, enum crowd_state state)
{
    member->crowd = crowd;
    member->state = state;
    for (struct crowd *at = crowd; at != NULL; at = at->above) {
        list_add_tail(&at->members[state], &member->line[at->level]);
        at->waiting[state]++;
    }
    settle_turns(crowd, 0);
}

void crowd_remove(struct member *member)
{
    struct crowd *crowd = member->crowd;
    int was_first = crowd_first(crowd, CROWD_READY) == member;
    member->crowd = NULL;
    for (struct crowd *at = crowd; at != NULL; at = at->above) {
        list_remove(&member->line[at->level]);
        at->waiting[member->state]--;
    }
    settle_turns(crowd, was_first);
}

void crowd_stand(struct crowd *crowd, int n)
{
    for (; crowd != NULL; crowd = crowd->above) {
        crowd->standing += (size_t)n;
    }
}

/* The member whose line this is, at that level. */
static struct member *member_of(struct list *line, unsigned level)
{
    return list_item(line - level, struct member, line);
}

struct member *crowd_first(const struct crowd *crowd, enum crowd_state state)
{
    const struct list *members = &crowd->members[state];
    return list_empty(members) ? NULL : member_of(members->next, crowd->level);
}

struct member *crowds_next(const struct crowds *crowds)
{
    const struct crowd *crowd = &crowds->all;
    while (crowd->level < CROWD_LEVELS) {
        if (list_empty(&crowd->turns)) {
            return NULL;
        }
        crowd = list_item(crowd->turns.next, struct crowd, turn);
    }
    return crowd_first(crowd, CROWD_READY);
}

void crowd_hold(struct crowd *crowd)
{
    crowd->is_held = 1;
    settle_turns(crowd, 0);
}

void crowds_release(struct crowds *crowds)
{
    for (size_t i = 0; i < CROWD_SLOTS; i++) {
        for (struct crowd *crowd = crowds->slots[i]; crowd != NULL; crowd = crowd->next) {
            crowd->is_held = 0;
            if (crowd->level == CROWD_LEVELS) {
                settle_turns(crowd, 0);
            }
        }
    }
}

/* ---- too many of one crowd ----------------------------------------------------------------------
 */

static struct crowd *largest_part(const struct crowd *crowd, enum crowd_state state)
{
    struct crowd *found = NULL;
    for (const struct list *at = crowd->parts.next; at != &crowd->parts; at = at->next) {
        struct crowd *part = list_item(at, struct crowd, siblings);
        if (!part->who.is_kept && (found == NULL || part->waiting[state] > found->waiting[state])) {
            found = part;
        }
    }
    return found;
}

/* Large enough to be judged by itself, or NULL. */
static const struct crowd *crowded_part(const struct crowd *crowd, enum crowd_state state,
                                        size_t above)
{
    const struct crowd *part = crowd->level < CROWD_LEVELS ? largest_part(crowd, state) : NULL;
    return part != NULL && part->waiting[state] > above ? part : NULL;
}

/* Of silent ones the oldest, of others the newest: with kept 0 nobody who is let in anyway. */
static struct member *who_goes(const struct crowd *crowd, enum crowd_state state, int kept)
{
    const struct list *members = &crowd->members[state];
    int is_silent = state == CROWD_SILENT;
    for (struct list *at = is_silent ? members->next : members->prev; at != members;
         at = is_silent ? at->next : at->prev) {
        struct member *member = member_of(at, crowd->level);
        if (kept || !member->crowd->who.is_kept) {
            return member;
        }
    }
    return NULL;
}

struct member *crowds_surplus(const struct crowds *crowds, enum crowd_state state, size_t above)
{
    const struct crowd *crowd = &crowds->all;
    for (const struct crowd *part; (part = crowded_part(crowd, state, above)) != NULL;) {
        crowd = part;
    }
    struct member *member = who_goes(crowd, state, 0);
    return member != NULL ? member : who_goes(crowd, state, 1);
}
