/* stored.c - bytes in a file, as they stand there or deflated as a member of a zip archive */
#include "libworker/data/stored.h"

#include "libworker/data/host_copy.h"
#include "libworker/data/source.h"

#include <stdlib.h>
#include <string.h>

/* Below, a copy is not worth its thread. */
#define COPY_BYTES_MIN (INT64_C(1) << 20)

struct stored {
    struct stored_config cfg;
    struct host_copy *copy;
    int has_tried; /* to have a copy */
    int is_sound;  /* a member that is not deflated: its checksum was right */
    /* deflated, without one: */
    struct unpacking unpacking;
    int is_unpacking;
    uint8_t *unpacked; /* size of them, filled up to done; pages are touched as they come */
    int64_t done;
};

struct stored *stored_create(const struct stored_config *cfg)
{
    struct stored *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->cfg = *cfg;
    }
    return s;
}

void stored_destroy(struct stored *stored)
{
    if (stored == NULL) {
        return;
    }
    host_copy_close(stored->copy);
    if (stored->is_unpacking) {
        unpack_end(&stored->unpacking);
    }
    free(stored->unpacked);
    free(stored);
}

int64_t stored_copied(const struct stored *stored)
{
    return stored->cfg.is_deflated && stored->cfg.size >= COPY_BYTES_MIN ? stored->cfg.size : 0;
}

static struct host_copy_file file_of(const struct stored *s)
{
    return (struct host_copy_file){.fd = s->cfg.fd,
                                   .is_packed = 1,
                                   .member = s->cfg.member,
                                   .skip = s->cfg.skip,
                                   .bytes = s->cfg.size};
}

int64_t stored_in_memory(const struct stored *stored)
{
    const struct host_copy_file file = file_of(stored);
    return stored_copied(stored) > 0 ? host_copy_done(&file) : 0;
}

static int fail_damaged(const struct stored *s, int64_t at, struct ms_err *err)
{
    return ms_fail(err, MS_E_INVALID,
                   "%.160s is truncated or damaged: unpacking stops near byte %lld of an array; "
                   "write the file again",
                   s->cfg.path, (long long)at);
}

static int begin(const struct stored *s, struct unpacking *u, struct ms_err *err)
{
    if (unpack_begin_member(u, &s->cfg.member) < 0) {
        return ms_fail(err, MS_E_NOMEM, "%.200s: no memory to unpack it", s->cfg.path);
    }
    if (unpack_skip(u, s->cfg.fd, s->cfg.skip) < 0) {
        unpack_end(u);
        return fail_damaged(s, 0, err);
    }
    return MS_OK;
}

/* The piece in this host's copy; NULL: not there. */
static const uint8_t *find_in_copy(struct stored *s, int64_t at, int64_t size)
{
    if (!s->has_tried && stored_copied(s) > 0) {
        const struct host_copy_file file = file_of(s);
        s->copy = host_copy_open(&file);
    }
    s->has_tried = 1;
    const uint8_t *bytes = s->copy != NULL ? host_copy_get(s->copy, at, size, 1) : NULL;
    if (bytes == NULL) { /* it never will be: alone from here on */
        host_copy_close(s->copy);
        s->copy = NULL;
    }
    return bytes;
}

/* For itself, up to byte `need`, in pieces worth the call. */
static int unpack_to(struct stored *s, int64_t need, struct ms_err *err)
{
    enum { PIECE = 64 << 10 };
    if (!s->is_unpacking) {
        s->unpacked = s->unpacked != NULL ? s->unpacked : malloc((size_t)s->cfg.size);
        if (s->unpacked == NULL) {
            return ms_fail(err, MS_E_NOMEM,
                           "%.200s: no memory for %lld unpacked bytes; write it with np.savez, "
                           "which packs nothing",
                           s->cfg.path, (long long)s->cfg.size);
        }
        const int rc = begin(s, &s->unpacking, err);
        if (rc < 0) {
            return rc;
        }
        s->is_unpacking = 1;
    }
    while (s->done < need) {
        const int64_t rest = s->cfg.size - s->done;
        const int64_t size = rest < PIECE ? rest : PIECE;
        if (unpack_next(&s->unpacking, s->cfg.fd, s->unpacked + s->done, (size_t)size) != size ||
            (size == rest && !unpack_is_at_end(&s->unpacking, s->cfg.fd))) {
            return fail_damaged(s, s->done, err);
        }
        s->done += size;
    }
    return MS_OK;
}

int stored_read(struct stored *stored, void *dst, int64_t size, int64_t at, struct ms_err *err)
{
    const struct stored_config *cfg = &stored->cfg;
    if (!cfg->is_deflated) {
        return source_pread(cfg->fd, dst, (size_t)size, cfg->skip + at, cfg->path, err);
    }
    const uint8_t *copied = find_in_copy(stored, at, size);
    if (copied == NULL) {
        const int rc = unpack_to(stored, at + size, err);
        if (rc < 0) {
            return rc;
        }
        copied = stored->unpacked + at;
    }
    memcpy(dst, copied, (size_t)size);
    return MS_OK;
}

/* What nobody unpacks, nobody holds against the checksum of the archive but here. */
static int check_member(struct stored *s, struct ms_err *err)
{
    enum { PIECE = 256 << 10 };
    const struct unpack_member *member = &s->cfg.member;
    uint8_t *piece = malloc(PIECE);
    uint32_t crc = 0;
    int rc = piece != NULL ? MS_OK
                           : ms_fail(err, MS_E_NOMEM, "%.200s: no memory to read it", s->cfg.path);
    for (int64_t at = 0; rc == MS_OK && at < member->packed; at += PIECE) {
        const int64_t rest = member->packed - at;
        const size_t size = rest < PIECE ? (size_t)rest : PIECE;
        rc = source_pread(s->cfg.fd, piece, size, member->at + at, s->cfg.path, err);
        crc = rc == MS_OK ? (uint32_t)crc32_z(crc, piece, size) : crc;
    }
    free(piece);
    if (rc == MS_OK && crc != member->crc) {
        rc = ms_fail(err, MS_E_INVALID,
                     "%.160s is damaged: its checksum is %08x, the archive says %08x; write the "
                     "file again",
                     s->cfg.path, crc, member->crc);
    }
    s->is_sound = rc == MS_OK;
    return rc;
}

int stored_verify(struct stored *stored, struct ms_err *err)
{
    if (!stored->cfg.is_deflated) {
        return stored->cfg.member.packed == 0 || stored->is_sound ? MS_OK
                                                                  : check_member(stored, err);
    }
    if (!stored->has_tried || find_in_copy(stored, stored->cfg.size - 1, 1) != NULL) {
        return MS_OK; /* the last piece of a copy is there once the checksum was right */
    }
    return unpack_to(stored, stored->cfg.size, err);
}

/* ---- from the front to the back ---- */

struct cursor {
    const struct stored *stored;
    struct unpacking unpacking; /* deflated */
    int64_t here;               /* how far it came */
};

static int cursor_begin(struct cursor *c, const struct stored *stored, struct ms_err *err)
{
    *c = (struct cursor){.stored = stored};
    return stored->cfg.is_deflated ? begin(stored, &c->unpacking, err) : MS_OK;
}

static void cursor_end(struct cursor *c)
{
    if (c->stored->cfg.is_deflated) {
        unpack_end(&c->unpacking);
    }
}

static int cursor_read(struct cursor *c, void *dst, int64_t size, int64_t at, struct ms_err *err)
{
    const struct stored_config *cfg = &c->stored->cfg;
    struct unpacking *u = &c->unpacking;
    if (!cfg->is_deflated) {
        return source_pread(cfg->fd, dst, (size_t)size, cfg->skip + at, cfg->path, err);
    }
    if (unpack_skip(u, cfg->fd, at - c->here) < 0 ||
        unpack_next(u, cfg->fd, dst, (size_t)size) != size ||
        (at + size == cfg->size && !unpack_is_at_end(u, cfg->fd))) {
        return fail_damaged(c->stored, c->here, err);
    }
    c->here = at + size;
    return MS_OK;
}

int stored_walk(const struct stored *stored, const int64_t *at, int64_t n, int64_t size, void *room,
                int (*take)(void *arg, int64_t i, const void *bytes), void *arg, struct ms_err *err)
{
    struct cursor cursor;
    int rc = cursor_begin(&cursor, stored, err);
    if (rc < 0) {
        return rc;
    }
    for (int64_t i = 0; rc == MS_OK && i < n; i++) {
        rc = cursor_read(&cursor, room, size, at[i], err);
        rc = rc == MS_OK ? take(arg, i, room) : rc;
    }
    cursor_end(&cursor);
    return rc;
}

int stored_pass(const struct stored *stored, int64_t piece, void *room,
                int (*take)(void *arg, int64_t at, const void *bytes, int64_t size), void *arg,
                struct ms_err *err)
{
    struct cursor cursor;
    int rc = cursor_begin(&cursor, stored, err);
    if (rc < 0) {
        return rc;
    }
    for (int64_t at = 0; rc == MS_OK && at < stored->cfg.size; at += piece) {
        const int64_t rest = stored->cfg.size - at;
        const int64_t size = rest < piece ? rest : piece;
        rc = cursor_read(&cursor, room, size, at, err);
        rc = rc == MS_OK ? take(arg, at, room, size) : rc;
    }
    cursor_end(&cursor);
    return rc;
}
