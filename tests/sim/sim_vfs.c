/* sim_vfs.c - files of SQLite in memory, on a disk that lies as disks do */
#include "tests/sim/sim_vfs.h"

#include "proto/macros.h"
#include "proto/rng.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 8, SECTOR = 512, NAME_MAX_BYTES = 64 };

struct image {
    uint8_t *bytes;
    int64_t size, room;
};

struct pending { /* since the last sync; size < 0: a truncation to offset */
    int64_t offset, size;
    uint8_t *bytes;
};

struct file {
    char name[NAME_MAX_BYTES];
    bool exists;
    struct image now, durable;
    struct pending *pending;
    size_t n_pending, pending_room;
};

struct handle { /* what SQLite holds; its first member is SQLite's */
    sqlite3_file base;
    struct file *file;
};

static struct {
    struct file files[FILES_MAX];
    uint64_t rng;
    uint32_t die_after; /* 0: never */
    bool dead, fail_sync;
} disk;

static uint64_t draw(uint64_t n)
{
    return ms_rng_mix(disk.rng++) % n;
}

static void *must_have(void *p)
{
    if (p == NULL) {
        abort();
    }
    return p;
}

/* ---- images -------------------------------------------------------------------------------------
 */

static void image_resize(struct image *image, int64_t size)
{
    if (size > image->room) {
        image->room = 2 * size;
        image->bytes = must_have(realloc(image->bytes, (size_t)image->room));
    }
    if (size > image->size) {
        memset(image->bytes + image->size, 0, (size_t)(size - image->size));
    }
    image->size = size;
}

static void image_write(struct image *image, int64_t offset, const uint8_t *bytes, int64_t size)
{
    if (offset + size > image->size) {
        image_resize(image, offset + size);
    }
    memcpy(image->bytes + offset, bytes, (size_t)size);
}

static void image_apply(struct image *image, const struct pending *op)
{
    if (op->size < 0) {
        image_resize(image, op->offset);
    } else {
        image_write(image, op->offset, op->bytes, op->size);
    }
}

/* All of it, nothing, or some sectors. */
static void image_apply_perhaps(struct image *image, const struct pending *op)
{
    uint64_t fate = draw(3);
    if (fate == 0 || (fate == 1 && op->size < 0)) {
        return;
    }
    if (fate == 2) {
        image_apply(image, op);
        return;
    }
    for (int64_t at = 0; at < op->size;) {
        int64_t rest = SECTOR - (op->offset + at) % SECTOR;
        int64_t n = rest < op->size - at ? rest : op->size - at;
        if (draw(2) == 0) {
            image_write(image, op->offset + at, op->bytes + at, n);
        }
        at += n;
    }
}

static void pending_add(struct file *file, int64_t offset, const void *bytes, int64_t size)
{
    if (file->n_pending == file->pending_room) {
        file->pending_room = file->pending_room == 0 ? 16 : 2 * file->pending_room;
        file->pending =
            must_have(realloc(file->pending, file->pending_room * sizeof(struct pending)));
    }
    struct pending *op = &file->pending[file->n_pending++];
    *op = (struct pending){.offset = offset, .size = size};
    if (size > 0) {
        op->bytes = must_have(malloc((size_t)size));
        memcpy(op->bytes, bytes, (size_t)size);
    }
    image_apply(&file->now, op);
}

/* perhaps: the disk decides, and not for the better. */
static void pending_settle(struct file *file, bool perhaps)
{
    for (size_t i = 0; i < file->n_pending; i++) {
        if (perhaps) {
            image_apply_perhaps(&file->durable, &file->pending[i]);
        } else {
            image_apply(&file->durable, &file->pending[i]);
        }
        free(file->pending[i].bytes);
    }
    file->n_pending = 0;
}

/* ---- faults -------------------------------------------------------------------------------------
 */

void vfs_die_after(uint32_t writes)
{
    disk.die_after = writes;
}

void vfs_fail_sync(void)
{
    disk.fail_sync = true;
}

bool vfs_sync_is_failing(void)
{
    return disk.fail_sync;
}

void vfs_forgive_sync(void)
{
    disk.fail_sync = false;
}

bool vfs_is_dead(void)
{
    return disk.dead;
}

void vfs_revive(void)
{
    disk.dead = disk.fail_sync = false;
    disk.die_after = 0;
}

static bool dies_now(void)
{
    if (disk.die_after > 0 && --disk.die_after == 0) {
        disk.dead = true;
    }
    return disk.dead;
}

void vfs_power_cut(void)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct file *file = &disk.files[i];
        pending_settle(file, true);
        image_resize(&file->now, 0);
        if (file->durable.size > 0) {
            image_write(&file->now, 0, file->durable.bytes, file->durable.size);
        }
    }
}

void vfs_format(uint64_t seed)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct file *file = &disk.files[i];
        pending_settle(file, false);
        image_resize(&file->now, 0);
        image_resize(&file->durable, 0);
        file->exists = false;
    }
    disk.rng = ms_rng_mix(seed ^ 0xd15cU);
    vfs_revive();
}

/* ---- files --------------------------------------------------------------------------------------
 */

static struct file *file_of(sqlite3_file *base)
{
    return ((struct handle *)(void *)base)->file;
}

static int on_close(sqlite3_file *base)
{
    (void)base;
    return SQLITE_OK;
}

static int on_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 offset)
{
    const struct image *image = &file_of(base)->now;
    int64_t n = offset < image->size ? image->size - offset : 0;
    n = n < size ? n : size;
    if (n > 0) {
        memcpy(bytes, image->bytes + offset, (size_t)n);
    }
    memset((uint8_t *)bytes + n, 0, (size_t)(size - n));
    return n < size ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int on_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset)
{
    struct file *file = file_of(base);
    bool was_dead = disk.dead;
    if (dies_now()) {
        if (!was_dead) { /* the write that it died of may have got somewhere */
            pending_add(file, offset, bytes, (int64_t)draw((uint64_t)size) + 1);
        }
        return SQLITE_IOERR_WRITE;
    }
    pending_add(file, offset, bytes, size);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    if (dies_now()) {
        return SQLITE_IOERR_TRUNCATE;
    }
    pending_add(file_of(base), size, NULL, -1);
    return SQLITE_OK;
}

static int on_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    if (dies_now()) {
        return SQLITE_IOERR_FSYNC;
    }
    bool fails = disk.fail_sync;
    disk.fail_sync = false;
    pending_settle(file_of(base), fails); /* a failed one forgets: a second sync proves nothing */
    return fails ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int on_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    *ret = file_of(base)->now.size;
    return SQLITE_OK;
}

static int on_lock(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int on_reserved(sqlite3_file *base, int *ret)
{
    (void)base;
    *ret = 0;
    return SQLITE_OK;
}

static int on_control(sqlite3_file *base, int op, void *arg)
{
    (void)base;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int on_sector(sqlite3_file *base)
{
    (void)base;
    return SECTOR;
}

static int on_traits(sqlite3_file *base)
{
    (void)base;
    return 0;
}

/* ---- the file system ----------------------------------------------------------------------------
 */

static struct file *find(const char *name, bool make)
{
    struct file *unused = NULL;
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct file *file = &disk.files[i];
        if (file->exists && strcmp(file->name, name) == 0) {
            return file;
        }
        unused = !file->exists && unused == NULL ? file : unused;
    }
    if (!make || unused == NULL) {
        return NULL;
    }
    snprintf(unused->name, sizeof(unused->name), "%s", name);
    unused->exists = true;
    return unused;
}

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret)
{
    static const sqlite3_io_methods methods = {.iVersion = 1,
                                               .xClose = on_close,
                                               .xRead = on_read,
                                               .xWrite = on_write,
                                               .xTruncate = on_truncate,
                                               .xSync = on_sync,
                                               .xFileSize = on_size,
                                               .xLock = on_lock,
                                               .xUnlock = on_lock,
                                               .xCheckReservedLock = on_reserved,
                                               .xFileControl = on_control,
                                               .xSectorSize = on_sector,
                                               .xDeviceCharacteristics = on_traits};
    struct handle *handle = (struct handle *)(void *)base;
    (void)vfs;
    base->pMethods = NULL;
    handle->file = find(name != NULL ? name : "temporary", (flags & SQLITE_OPEN_CREATE) != 0);
    if (handle->file == NULL) {
        return SQLITE_CANTOPEN;
    }
    base->pMethods = &methods;
    if (ret != NULL) {
        *ret = flags;
    }
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    struct file *file = find(name, false);
    (void)vfs;
    (void)sync_folder;
    if (disk.dead) {
        return SQLITE_IOERR_DELETE;
    }
    if (file == NULL) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    pending_settle(file, false);
    image_resize(&file->now, 0);
    image_resize(&file->durable, 0);
    file->exists = false;
    return SQLITE_OK;
}

static int on_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    (void)vfs;
    (void)flags;
    *ret = find(name, false) != NULL;
    return SQLITE_OK;
}

static int on_full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    snprintf(ret, (size_t)size, "%s", name);
    return SQLITE_OK;
}

static int on_random(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    for (int i = 0; i < size; i++) {
        ret[i] = (char)draw(256);
    }
    return size;
}

static int on_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int on_time(sqlite3_vfs *vfs, double *ret)
{
    (void)vfs;
    *ret = 2460000.5; /* a day of 2023: nothing depends on it */
    return SQLITE_OK;
}

static int on_last_error(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    (void)size;
    (void)ret;
    return 0;
}

int vfs_register(void)
{
    static sqlite3_vfs vfs = {.iVersion = 1,
                              .szOsFile = sizeof(struct handle),
                              .mxPathname = NAME_MAX_BYTES - 1,
                              .zName = SIM_VFS_NAME,
                              .xOpen = on_open,
                              .xDelete = on_delete,
                              .xAccess = on_access,
                              .xFullPathname = on_full_path,
                              .xRandomness = on_random,
                              .xSleep = on_sleep,
                              .xCurrentTime = on_time,
                              .xGetLastError = on_last_error};
    return sqlite3_vfs_register(&vfs, 0);
}
