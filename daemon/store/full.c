/* full.c - a full disk: what is done for room, and what is said of it */
#include "daemon/store/store_private.h"

#include <errno.h>
#include <stdio.h>

/* ---- words --------------------------------------------------------------------------------------
 */

enum { WORDS_MAX = 160 };

/* The system's word for free space knows of no quota, and of other limits as little: it is given
 * only where it is the cause. */
static const char *words_of(const struct store *store, char buf[WORDS_MAX])
{
    const uint64_t held = store_reserve_held(store->path);
    const uint64_t whole = held < MS_STORE_RESERVE ? MS_STORE_RESERVE - held : 0;
    const uint64_t missing = (whole + MS_STORE_SPARE) / 1024;
    const uint64_t left = store_free_bytes(store->path) / 1024;
    if (store->is_quota) {
        snprintf(buf, WORDS_MAX,
                 "a quota on the disk of the database is reached (new work needs %llu KiB)",
                 (unsigned long long)missing);
    } else if (left < missing) {
        snprintf(buf, WORDS_MAX,
                 "the disk of the database is full (%llu KiB free, new work needs %llu KiB)",
                 (unsigned long long)left, (unsigned long long)missing);
    } else {
        snprintf(buf, WORDS_MAX, "the disk of the database is full, though it shows free space");
    }
    return buf;
}

int store_refusal(const struct store *store, struct ms_err *err)
{
    const struct ms_err *why = &store->no_reserve;
    char words[WORDS_MAX];
    if (store->has_reserve) {
        return 0;
    }
    if (why->code != MS_E_FULL) {
        return ms_fail(err, why->code,
                       "%.240s; without it a full disk would come without a warning: make way for "
                       "it; no new work until then, running jobs go on",
                       why->text);
    }
    return ms_fail(err, MS_E_FULL, "%s: %.200s; %s; running jobs go on", words_of(store, words),
                   why->text,
                   store->is_quota ? "raise the quota, or free space" : "free space there");
}

int store_fail_full(const struct store *store, struct ms_err *err)
{
    char words[WORDS_MAX];
    return ms_fail(err, MS_E_FULL, "database %s: the reserve is used up: %s", store->path,
                   words_of(store, words));
}

/* ---- room ---------------------------------------------------------------------------------------
 */

/* Begins the log anew in the room that it has: 1 if there was anything to fold in, and it went.
 * The database may have to grow for it, and find no room: that is no error. */
static int begin_log_anew(struct store *store)
{
    const int had_pages = store->wal_pages > 0;
    if (had_pages) {
        store_fold(store, SQLITE_CHECKPOINT_RESTART);
    }
    return had_pages && store->wal_pages == 0 && !store->broken;
}

/* The log grows by each commit, the rows that it holds seldom need more room than they had: in a
 * log that is never folded in while commits come, they would eat the reserve. */
int store_make_room(struct store *store)
{
    if (begin_log_anew(store)) {
        return 1;
    }
    if (store->broken || !store->has_files ||
        !store_reserve_give(store->path, &store->no_reserve)) {
        return 0;
    }
    store->has_reserve = 0;
    /* the database has of the piece first, or the log would take it all and never be folded in */
    (void)begin_log_anew(store);
    return !store->broken;
}

void store_keep_foldable(struct store *store)
{
    const uint64_t most = store->has_reserve ? MS_STORE_UNFOLDED : MS_STORE_PIECE;
    if (!store_has_unfolded(store, most)) {
        return;
    }
    while (!begin_log_anew(store) && !store->broken && store->has_files &&
           store_reserve_give(store->path, &store->no_reserve)) {
        store->has_reserve = 0;
    }
}

static void note_reserve(struct store *store, int rc)
{
    if (rc == MS_E_FULL) {
        store->is_quota = errno == EDQUOT;
    }
}

void store_want_reserve(struct store *store, uint64_t spare_bytes)
{
    const int rc = store_reserve_make(store->path, spare_bytes, &store->no_reserve);
    note_reserve(store, rc);
    store->has_reserve = rc == 0;
}

int store_has_room(struct store *store)
{
    struct ms_err why = {0, ""};
    if (store->has_reserve || store_reserve_held(store->path) >= MS_STORE_LAST) {
        return 1;
    }
    const int rc = store_reserve_hold(store->path, MS_STORE_LAST, &why);
    note_reserve(store, rc);
    if (rc < 0 && rc != MS_E_FULL) { /* what is in its way says nothing of room */
        return store_reserve_held(store->path) + store_free_bytes(store->path) >= MS_STORE_LAST;
    }
    if (rc == MS_E_FULL || store->no_reserve.code == MS_E_FULL) {
        store_reserve_left(store->path, &store->no_reserve);
    }
    return rc == 0;
}

/* A log that is emptied is room for whoever fills the disk. So while that is full it stays, unless
 * it is so large that without it the reserve might be whole. */
void store_fold_away(struct store *store)
{
    const uint64_t log = store_log_bytes(store);
    if (!store->has_reserve && log <= MS_STORE_PIECE) {
        (void)begin_log_anew(store);
    } else if (log > 0) {
        store_fold(store, SQLITE_CHECKPOINT_TRUNCATE);
    }
}

int store_idle(struct store *store)
{
    if (!store->broken) {
        store_fold_away(store);
    }
    if (!store->has_reserve) {
        store_want_reserve(store, MS_STORE_SPARE);
        if (store->has_reserve && !store->broken) {
            store_fold_away(store);
        }
    }
    return store->has_reserve ? 0 : 1;
}
