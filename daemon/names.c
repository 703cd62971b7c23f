/* names.c - accounts of uids from the system's user database, which may be a directory far away */
#include "daemon/names.h"

#include "proto/clock.h"
#include "proto/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SLOTS = 1024,      /* people at work on a head node; beyond, the oldest is asked for again */
    NEAR = 8,          /* slots in which a uid may lie */
    ASKED_MAX = 64,    /* questions under way */
    KEEP_MS = 600000,  /* a name that was changed counts after ten minutes, or a reload */
    FAILED_MS = 5000,  /* a directory that is down is not asked with each connection */
    PATIENCE_MS = 4000 /* below MS_HANDSHAKE_MS: the client shall hear why */
};

struct slot {
    enum { EMPTY, KNOWN, PENDING, FAILED } state;
    unsigned uid;
    int64_t until_ms;
    struct ms_account account; /* when KNOWN */
};

/* Shared with the thread; the last one of the two frees it. */
struct room {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    names_lookup_fn *lookup;
    unsigned asked[ASKED_MAX];
    size_t n_asked;
    struct {
        unsigned uid;
        int rc;
        struct ms_account account;
    } answers[ASKED_MAX];
    size_t n_answers;
    int fd; /* readable when there are answers */
    int is_over;
    int users;
};

struct names {
    struct room *room;
    struct event *answered, *late;
    void (*on_answer)(void *arg);
    void *arg;
    size_t n_pending;
    struct slot slots[SLOTS];
};

/* ---- the thread ---------------------------------------------------------------------------------
 */

static void room_leave(struct room *room)
{
    pthread_mutex_lock(&room->lock);
    int left = --room->users;
    room->is_over = 1;
    pthread_cond_signal(&room->wake);
    pthread_mutex_unlock(&room->lock);
    if (left == 0) {
        close(room->fd);
        pthread_cond_destroy(&room->wake);
        pthread_mutex_destroy(&room->lock);
        free(room);
    }
}

static void *ask(void *arg)
{
    struct room *room = arg;
    const uint64_t one = 1;
    pthread_mutex_lock(&room->lock);
    while (!room->is_over) {
        if (room->n_asked == 0) {
            pthread_cond_wait(&room->wake, &room->lock);
            continue;
        }
        unsigned uid = room->asked[0];
        memmove(room->asked, room->asked + 1, --room->n_asked * sizeof(room->asked[0]));
        pthread_mutex_unlock(&room->lock);
        struct ms_account account = {.uid = uid};
        int rc = room->lookup(uid, &account);
        pthread_mutex_lock(&room->lock);
        if (room->n_answers < ASKED_MAX) { /* always: a question takes the place of its answer */
            room->answers[room->n_answers].uid = uid;
            room->answers[room->n_answers].rc = rc;
            room->answers[room->n_answers].account = account;
            room->n_answers++;
        }
        ssize_t written = write(room->fd, &one, sizeof(one));
        (void)written;
    }
    pthread_mutex_unlock(&room->lock);
    room_leave(room);
    return NULL;
}

/* ---- the loop's side ----------------------------------------------------------------------------
 */

static struct slot *find_slot(struct names *names, unsigned uid)
{
    for (unsigned i = 0; i < NEAR; i++) {
        struct slot *slot = &names->slots[(uid + i) % SLOTS];
        if (slot->state != EMPTY && slot->uid == uid) {
            return slot;
        }
    }
    return NULL;
}

/* The one that may be forgotten first; NULL: all wait for an answer. */
static struct slot *free_slot(struct names *names, unsigned uid)
{
    struct slot *best = NULL;
    for (unsigned i = 0; i < NEAR; i++) {
        struct slot *slot = &names->slots[(uid + i) % SLOTS];
        if (slot->state == EMPTY) {
            return slot;
        }
        if (slot->state != PENDING && (best == NULL || slot->until_ms < best->until_ms)) {
            best = slot;
        }
    }
    return best;
}

static void settle(struct names *names, struct slot *slot, int rc, const struct ms_account *account)
{
    slot->state = rc < 0 ? FAILED : KNOWN;
    slot->until_ms = ms_mono_ms() + (rc < 0 ? FAILED_MS : KEEP_MS);
    slot->account = *account;
    names->n_pending--;
}

static void on_answered(evutil_socket_t fd, short what, void *arg)
{
    struct names *names = arg;
    struct room *room = names->room;
    uint64_t count = 0;
    (void)what;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got;
    pthread_mutex_lock(&room->lock);
    for (size_t i = 0; i < room->n_answers; i++) {
        struct slot *slot = find_slot(names, room->answers[i].uid);
        if (slot != NULL && slot->state == PENDING) { /* else it came too late */
            settle(names, slot, room->answers[i].rc, &room->answers[i].account);
        }
    }
    room->n_answers = 0;
    pthread_mutex_unlock(&room->lock);
    names->on_answer(names->arg);
}

static void arm(struct names *names)
{
    const struct timeval later = {PATIENCE_MS / 1000, 100000};
    if (names->n_pending > 0 && !event_pending(names->late, EV_TIMEOUT, NULL)) {
        event_add(names->late, &later);
    }
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct names *names = arg;
    int64_t now = ms_mono_ms();
    (void)fd;
    (void)what;
    for (size_t i = 0; i < SLOTS; i++) {
        if (names->slots[i].state == PENDING && names->slots[i].until_ms <= now) {
            settle(names, &names->slots[i], MS_E_TIMEOUT,
                   &(struct ms_account){.uid = names->slots[i].uid});
        }
    }
    arm(names);
    names->on_answer(names->arg);
}

enum names_answer names_find(struct names *names, unsigned uid, struct ms_account *ret)
{
    struct slot *slot = find_slot(names, uid);
    int64_t now = ms_mono_ms();
    if (slot != NULL && slot->state == PENDING) {
        return NAMES_PENDING;
    }
    if (slot != NULL && slot->until_ms > now) {
        *ret = slot->account;
        return slot->state == KNOWN ? NAMES_KNOWN : NAMES_FAILED;
    }
    slot = slot != NULL ? slot : free_slot(names, uid);
    struct room *room = names->room;
    pthread_mutex_lock(&room->lock);
    int has_room = slot != NULL && room->n_asked + room->n_answers + 1 < ASKED_MAX;
    if (has_room) { /* + 1: the one that the thread has in hand */
        room->asked[room->n_asked++] = uid;
        pthread_cond_signal(&room->wake);
    }
    pthread_mutex_unlock(&room->lock);
    if (!has_room) {
        return NAMES_FAILED;
    }
    *slot = (struct slot){.state = PENDING, .uid = uid, .until_ms = now + PATIENCE_MS};
    names->n_pending++;
    arm(names);
    return NAMES_PENDING;
}

void names_forget(struct names *names)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (names->slots[i].state != PENDING) {
            names->slots[i].state = EMPTY;
        }
    }
}

int names_create(struct event_base *base, names_lookup_fn *lookup, void (*on_answer)(void *arg),
                 void *arg, struct names **ret, struct ms_err *err)
{
    struct names *names = calloc(1, sizeof(*names));
    struct room *room = calloc(1, sizeof(*room));
    if (names == NULL || room == NULL) {
        free(names);
        free(room);
        return ms_fail(err, MS_E_NOMEM, "no memory for the names of users");
    }
    room->lookup = lookup;
    room->users = 1;
    room->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->wake, NULL);
    names->room = room;
    names->on_answer = on_answer;
    names->arg = arg;
    names->answered =
        room->fd >= 0 ? event_new(base, room->fd, EV_READ | EV_PERSIST, on_answered, names) : NULL;
    names->late = evtimer_new(base, on_late, names);
    int rc = names->answered == NULL || names->late == NULL || event_add(names->answered, NULL) != 0
                 ? ms_fail_errno(err, MS_E_IO, "no event for the names of users")
                 : 0;
    if (rc == 0) {
        room->users = 2;
        errno = ms_thread_start(NULL, ask, room);
        if (errno != 0) {
            room->users = 1;
            rc = ms_fail_errno(err, MS_E_IO, "no thread for the names of users");
        }
    }
    if (rc < 0) {
        names_destroy(names);
        return rc;
    }
    *ret = names;
    return 0;
}

void names_destroy(struct names *names)
{
    if (names == NULL) {
        return;
    }
    if (names->answered != NULL) {
        event_free(names->answered);
    }
    if (names->late != NULL) {
        event_free(names->late);
    }
    room_leave(names->room);
    free(names);
}
