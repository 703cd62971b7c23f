/* doorway.c - the connections of one listener that are no peers yet: who waits in front of the
 * door, who stands in it, who gives way */
#include "daemon/doorway.h"

enum {
    SILENT_SHARE =
        4, /* silent ones keep a part of the places to wait: their bytes are on the way */
    USUAL_SHARE = 128, /* a crowd below this part of the places is none: the slots of one host */
};

void doorway_init(struct doorway *door, size_t max, size_t waiting_max)
{
    *door = (struct doorway){.max = max, .waiting_max = waiting_max};
    list_init(&door->line);
    crowds_init(&door->crowds);
}

void doorway_fini(struct doorway *door)
{
    crowds_fini(&door->crowds);
}

/* ---- coming and going ---------------------------------------------------------------------------
 */

int doorway_wait(struct doorway *door, struct guest *guest, const struct crowd_who *who,
                 int64_t now_ms)
{
    struct crowd *crowd = crowds_get(&door->crowds, who);
    if (crowd == NULL) {
        return -1;
    }
    *guest = (struct guest){.crowd = crowd, .since_ms = now_ms, .is_waiting = 1};
    crowd_add(crowd, &guest->member, CROWD_SILENT);
    return 0;
}

int doorway_enter(struct doorway *door, struct guest *guest, const struct crowd_who *who,
                  int64_t now_ms)
{
    struct crowd *crowd = crowds_get(&door->crowds, who);
    if (crowd == NULL) {
        return -1;
    }
    *guest = (struct guest){.crowd = crowd, .since_ms = now_ms};
    list_add_tail(&door->line, &guest->line);
    crowd_stand(crowd, 1);
    door->n++;
    return 0;
}

void doorway_leave(struct doorway *door, struct guest *guest)
{
    struct crowd *crowd = guest->crowd;
    if (crowd == NULL) {
        return;
    }
    guest->crowd = NULL;
    if (guest->is_waiting) {
        guest->is_waiting = 0;
        crowd_remove(&guest->member);
    } else {
        list_remove(&guest->line);
        crowd_stand(crowd, -1);
        door->n--;
    }
    crowd_drop(&door->crowds, crowd);
}

void doorway_touch(struct doorway *door, struct guest *guest, int64_t now_ms)
{
    if (guest->crowd == NULL) {
        return;
    }
    if (!guest->is_waiting) {
        list_remove(&guest->line);
        list_add_tail(&door->line, &guest->line);
    } else if (!guest->has_spoken) {
        crowd_remove(&guest->member);
        crowd_add(guest->crowd, &guest->member, CROWD_READY);
    }
    guest->has_spoken = 1;
    guest->since_ms = now_ms;
}

/* ---- in front of the door -----------------------------------------------------------------------
 */

static struct guest *guest_of(struct member *member)
{
    return member == NULL ? NULL : list_item(member, struct guest, member);
}

static size_t waiting(const struct doorway *door, enum crowd_state state)
{
    return door->crowds.all.waiting[state];
}

size_t doorway_waiting_n(const struct doorway *door)
{
    return waiting(door, CROWD_SILENT) + waiting(door, CROWD_READY);
}

/* The first of the silent ones whose crowd has turns. */
static struct guest *first_silent(const struct doorway *door)
{
    const struct list *members = &door->crowds.all.members[CROWD_SILENT];
    for (struct list *at = members->next; at != members; at = at->next) {
        struct member *member = list_item(at, struct member, line[0]);
        if (!member->crowd->is_held) {
            return guest_of(member);
        }
    }
    return NULL;
}

struct guest *doorway_next(struct doorway *door)
{
    struct guest *ready = guest_of(crowds_next(&door->crowds));
    return ready != NULL || door->n >= (door->max + 1) / 2 ? ready : first_silent(door);
}

void doorway_hold(struct doorway *door, struct guest *guest)
{
    (void)door;
    crowd_hold(guest->crowd);
}

void doorway_release(struct doorway *door)
{
    crowds_release(&door->crowds);
}

struct guest *doorway_surplus(const struct doorway *door)
{
    size_t silent = waiting(door, CROWD_SILENT);
    int is_silent = silent > door->waiting_max / SILENT_SHARE || waiting(door, CROWD_READY) == 0;
    return doorway_waiting_n(door) <= door->waiting_max
               ? NULL
               : guest_of(crowds_surplus(&door->crowds, is_silent ? CROWD_SILENT : CROWD_READY,
                                         1 + door->waiting_max / USUAL_SHARE));
}

struct guest *doorway_mute(const struct doorway *door, int64_t now_ms)
{
    struct guest *guest = guest_of(crowd_first(&door->crowds.all, CROWD_SILENT));
    return guest != NULL && now_ms - guest->since_ms >= DOORWAY_MUTE_MS ? guest : NULL;
}

struct guest *doorway_waiting(const struct doorway *door)
{
    struct member *ready = crowd_first(&door->crowds.all, CROWD_READY);
    return guest_of(ready != NULL ? ready : crowd_first(&door->crowds.all, CROWD_SILENT));
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

/* Where the crowds of the two part, one's is the larger. */
static int holds_more(const struct guest *one, const struct guest *two)
{
    unsigned level = crowd_parting(one->crowd, two->crowd);
    return level <= CROWD_LEVELS &&
           crowd_at(one->crowd, level)->standing > crowd_at(two->crowd, level)->standing;
}

/* Of those that may be sent away, the oldest of the crowd that holds the most places. */
struct guest *doorway_victim(const struct doorway *door, int64_t now_ms)
{
    struct guest *found = NULL;
    for (struct list *at = door->line.next; at != &door->line && doorway_is_full(door);
         at = at->next) {
        struct guest *guest = list_item(at, struct guest, line);
        if (patience_ms(guest, now_ms) == 0 && (found == NULL || holds_more(guest, found))) {
            found = guest;
        }
    }
    return found;
}

/* It holds more than half of the door, and the other's less than half as much. */
static int is_too_many(const struct doorway *door, const struct guest *guest,
                       const struct guest *waiting)
{
    unsigned level = crowd_parting(guest->crowd, waiting->crowd);
    if (level > CROWD_LEVELS) {
        return 0;
    }
    size_t n = crowd_at(guest->crowd, level)->standing;
    return 2 * n > door->max && 2 * crowd_at(waiting->crowd, level)->standing < n;
}

/* Of the largest crowd that is not let in whatever comes: the oldest, silent ones first. */
struct guest *doorway_yields(const struct doorway *door, const struct guest *waiting)
{
    struct guest *found = NULL;
    for (struct list *at = door->line.next; at != &door->line && doorway_is_full(door);
         at = at->next) {
        struct guest *guest = list_item(at, struct guest, line);
        if (guest->crowd->who.is_kept ||
            (!waiting->crowd->who.is_kept && !is_too_many(door, guest, waiting))) {
            continue;
        }
        int is_quieter =
            found != NULL && found->has_spoken && !guest->has_spoken && !holds_more(found, guest);
        found = found == NULL || holds_more(guest, found) || is_quieter ? guest : found;
    }
    return found;
}
