/* doorway.c - the half-open connections of one listener */
#include "daemon/doorway.h"

#include <netinet/in.h>
#include <string.h>

void doorway_init(struct doorway *door, size_t max)
{
    list_init(&door->line);
    door->n = 0;
    door->max = max;
}

static void set_net(uint8_t net[9], const struct sockaddr *addr)
{
    memset(net, 0, 9);
    if (addr != NULL && addr->sa_family == AF_INET) {
        net[0] = 4;
        memcpy(net + 1, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
    } else if (addr != NULL && addr->sa_family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr;
        net[0] = IN6_IS_ADDR_V4MAPPED(at) ? 4 : 6;
        memcpy(net + 1, net[0] == 4 ? at->s6_addr + 12 : at->s6_addr, net[0] == 4 ? 4 : 8);
    }
}

void doorway_enter(struct doorway *door, struct guest *guest, const struct sockaddr *addr,
                   int64_t now_ms)
{
    set_net(guest->net, addr);
    guest->since_ms = now_ms;
    guest->has_spoken = 0;
    guest->is_in = 1;
    list_add_tail(&door->line, &guest->line);
    door->n++;
}

void doorway_leave(struct doorway *door, struct guest *guest)
{
    if (guest->is_in) {
        guest->is_in = 0;
        list_remove(&guest->line);
        door->n--;
    }
}

int doorway_is_full(const struct doorway *door)
{
    return door->n >= door->max;
}

void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms)
{
    if (guest->is_in) {
        guest->has_spoken = 1;
        guest->since_ms = now_ms;
        list_remove(&guest->line);
        list_add_tail(&door->line, &guest->line);
    }
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

/* Of those that may be sent away, the oldest of the network that holds the most places. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms)
{
    struct guest *found = NULL;
    size_t most = 0;
    for (struct list *at = door->line.next; at != &door->line && doorway_is_full(door);
         at = at->next) {
        struct guest *guest = list_item(at, struct guest, line);
        size_t n = 0;
        if (patience_ms(guest, now_ms) > 0) {
            continue;
        }
        for (struct list *other = door->line.next; other != &door->line; other = other->next) {
            n += memcmp(list_item(other, struct guest, line)->net, guest->net,
                        sizeof(guest->net)) == 0;
        }
        if (n > most) {
            most = n;
            found = guest;
        }
    }
    return found;
}
