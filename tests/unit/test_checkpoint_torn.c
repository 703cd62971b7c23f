/* test_checkpoint_torn.c - writers that die, and disks that are full or fail, at any byte
 *
 * Writes and names go through the test, which cuts them off where it likes. */
#include "libworker/train/checkpoint_save.h"
#include "proto/file_write.h"
#include "proto/rng.h"
#include "tests/unit/checkpoint_case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

/* ---- what breaks ---- */

enum breakage { NOTHING, FULL, BROKEN, KILLED, SMALL };

static struct {
    enum breakage how;
    long bytes; /* that are written still */
    long names; /* that are given still */
    long bytes_seen, names_seen;
    int syncs;        /* for real */
    ino_t folders[8]; /* that were synced */
    int n_folders;
    int data_room;           /* so many files of data have room, and texts always; 0: any */
    int is_text;             /* what is being written */
    int holds;               /* SMALL: so many checkpoints have room */
    int ends;                /* files that are read end at once, however long they were */
    int has_no_links;        /* that a manifest could be named by */
    void (*meanwhile)(void); /* while the process hangs, once: before it names a manifest, */
    long hangs_at;           /* or before that name or sync, counted from 1, */
    int hangs_as_it_goes;    /* or before a manifest's name goes */
    void (*once_away)(void); /* and once when it is away */
} world;

static int count_manifests(void);
static int count_data(void);

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at);
ssize_t __real_pread64(int fd, void *bytes, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t at);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);

/* How much of size gets through; the first that gets nothing through fails. */
static size_t let_through(size_t size)
{
    if (world.data_room > 0) {
        return world.is_text || count_data() < world.data_room ? size : 0;
    }
    if (world.how == NOTHING) {
        world.bytes_seen += (long)size;
        return size;
    }
    if (world.how == SMALL) {
        return count_manifests() < world.holds ? size : 0;
    }
    size_t n = (long)size <= world.bytes ? size : (size_t)world.bytes;
    world.bytes -= (long)n;
    return n;
}

static ssize_t end(ssize_t n, size_t size)
{
    if (world.how == KILLED && n < (ssize_t)size) {
        _exit(0);
    }
    if (n == 0 && size > 0) {
        errno = world.data_room > 0 || world.how == FULL || world.how == SMALL ? ENOSPC : EIO;
        return -1;
    }
    return n;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    world.is_text = size > 0 && *(const char *)bytes == '{';
    size_t n = let_through(size);
    world.is_text = 0;
    return end(n > 0 ? __real_write(fd, bytes, n) : 0, size);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    size_t n = let_through(size);
    return end(n > 0 ? __real_pwrite64(fd, bytes, n, at) : 0, size);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t at)
{
    return world.ends ? 0 : __real_pread64(fd, bytes, size, at);
}

static void hang(void)
{
    void (*meanwhile)(void) = world.meanwhile;
    world.meanwhile = NULL;
    if (meanwhile != NULL) {
        meanwhile();
    }
}

static int may_name(void)
{
    world.names_seen++;
    if (world.names_seen == world.hangs_at) {
        hang();
    }
    if (world.how == NOTHING || world.how == SMALL || world.names-- > 0) {
        return 1;
    }
    if (world.how == KILLED) {
        _exit(0);
    }
    errno = world.how == FULL ? ENOSPC : EIO;
    return 0;
}

int __wrap_fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) &&
        world.n_folders < (int)MS_ARRAY_SIZE(world.folders)) {
        world.folders[world.n_folders++] = st.st_ino;
    }
    return !may_name() ? -1 : world.syncs ? __real_fsync(fd) : 0;
}

static int is_manifest(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && strcmp(dot, ".json") == 0;
}

static void hang_before(const char *name)
{
    if (world.hangs_at == 0 && !world.hangs_as_it_goes && is_manifest(name)) {
        hang();
    }
}

static void hang_as_it_goes(const char *name)
{
    if (world.hangs_as_it_goes && is_manifest(name)) {
        hang();
    }
}

int __wrap_unlink(const char *path)
{
    hang_as_it_goes(path);
    return __real_unlink(path);
}

int __wrap_rename(const char *from, const char *to)
{
    hang_before(to);
    hang_as_it_goes(from);
    const int rc = may_name() ? __real_rename(from, to) : -1;
    void (*once_away)(void) = is_manifest(from) ? world.once_away : NULL;
    if (once_away != NULL) {
        world.once_away = NULL;
        once_away();
    }
    return rc;
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    hang_before(to);
    if (world.has_no_links && is_manifest(to)) {
        errno = EPERM;
        return -1;
    }
    return may_name() ? __real_linkat(from_fd, from, to_fd, to, flags) : -1;
}

static void arm(enum breakage how, long bytes, long names)
{
    world.how = how;
    world.bytes = bytes;
    world.names = names;
    world.bytes_seen = world.names_seen = 0;
    world.n_folders = 0;
}

/* ---- a writer ---- */

static const char *dir;
static struct job job;
static struct train *train;
static struct checkpoint_save save;
static struct checkpoint_writer_config cfg;
static void *state[CHECKPOINT_BUFFERS];

/* What a thread holds at the moment of a fork, the allocator's lock, say, the child waits for
 * without end. */
static void stop_threads(void)
{
    loader_destroy(train->loader);
    train->loader = NULL;
    checkpoint_close(train->checkpoint); /* and with it its lock, which keeps another job out */
    train->checkpoint = NULL;
}

static void setup(void)
{
    static const char *const sets[] = {
        "optimizer={kind: momentum, learning_rate: 0.01, momentum: 0.9}",
        "checkpoint={directory: ckpt, prefix: x, keep_max: 2}"};
    static char folder[128];
    size_t bytes = 0;
    dir = test_dir_make();
    snprintf(folder, sizeof(folder), "%s/ckpt", dir);
    arm(NOTHING, 0, 0);
    train_case_job(&job, sets, 2);
    train = checkpoint_case_train(&job, dir);
    stop_threads();
    cfg = (struct checkpoint_writer_config){.replica = train->replica,
                                            .job = &job,
                                            .folder = folder,
                                            .tag = CHECKPOINT_CASE_TAG,
                                            .plan = train_plan_text(train),
                                            .plan_sha256 = train_plan_sha256(train)};
    memset(&save, 0, sizeof(save));
    ck_ms_ok(checkpoint_save_init(&save, &cfg, err));
    for (int i = 0; replica_state(train->replica, i, &state[i], &bytes); i++) {
    }
}

static void teardown(void)
{
    checkpoint_save_fini(&save);
    train_destroy(train);
    test_dir_remove(dir);
}

static int write_step(uint64_t step, struct ms_err *err)
{
    const struct checkpoint_facts facts = {
        .step = step, .epoch = 1, .step_in_epoch = 1, .loss = 0.5F};
    return checkpoint_save_write(&save, state, &facts, err);
}

static int is_complete(uint64_t step)
{
    struct checkpoint_manifest m;
    char path[256];
    snprintf(path, sizeof(path), "%s/x-%" PRIu64 ".json", cfg.folder, step);
    if (checkpoint_read(path, CHECKPOINT_OWN, &m, NULL) < 0) {
        return 0;
    }
    int rc = checkpoint_verify(path, CHECKPOINT_OWN, &m, NULL);
    checkpoint_manifest_fini(&m);
    ck_assert_msg(rc == 0, "step %d has a manifest, and other data", (int)step);
    return 1;
}

/* But for the lock of who writes, which goes with the training. */
static int count_files(void)
{
    int n = 0;
    DIR *stream = opendir(cfg.folder);
    ck_assert_ptr_nonnull(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        n += strncmp(entry->d_name, CHECKPOINT_LOCK_PREFIX, strlen(CHECKPOINT_LOCK_PREFIX)) != 0;
    }
    closedir(stream);
    return n - 2; /* . and .. */
}

static int count_manifests(void)
{
    struct checkpoint_entries entries;
    if (checkpoint_list(cfg.folder, "x", &entries, NULL) < 0) {
        return 0;
    }
    const int n = (int)entries.n;
    checkpoint_entries_fini(&entries);
    return n;
}

static int count_data(void)
{
    int n = 0;
    DIR *stream = opendir(cfg.folder);
    ck_assert_ptr_nonnull(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        n += strstr(entry->d_name, ".safetensors") != NULL;
    }
    closedir(stream);
    return n;
}

/* One byte of it, and not its size. */
static void damage(uint64_t step)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof(path), "%s/x-%" PRIu64 ".safetensors", cfg.folder, step);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(pwrite(fd, "\xff", 1, st.st_size - 1), 1);
    close(fd);
}

static int count_threads(void)
{
    int n = 0;
    DIR *stream = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        n += entry->d_name[0] != '.';
    }
    closedir(stream);
    return n;
}

static pid_t fork_writer(void)
{
    while (count_threads() > 1) { /* one that was joined is listed for a moment still */
        (void)sched_yield();
    }
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    return child;
}

static void wait_for(pid_t child)
{
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
}

/* In a process of its own where it is killed. */
static void write_broken(enum breakage how, long bytes, long names)
{
    struct ms_err why = {0, ""};
    if (how == KILLED) {
        pid_t child = fork_writer();
        if (child == 0) {
            arm(how, bytes, names);
            (void)write_step(20, NULL);
            _exit(0);
        }
        wait_for(child);
        return;
    }
    arm(how, bytes, names);
    int rc = write_step(20, &why);
    arm(NOTHING, 0, 0);
    if (rc < 0) {
        ck_assert_msg(strstr(why.text, how == FULL ? "No space left" : "Input/output") != NULL,
                      "%s", why.text);
        /* of step 10, and those of step 20 where they have both their names: data alone would take
         * the room of the next one */
        ck_assert_int_eq(count_files(), is_complete(20) ? 4 : 2);
    }
}

/* The one before is whole whatever happened, and the next one clears up. */
static void check_after(enum breakage how, long at)
{
    ck_assert_msg(is_complete(10), "breakage %d at %ld", how, at);
    const int is_there = is_complete(20);
    ck_ms_ok(write_step(30, err));
    ck_assert(is_complete(30));
    ck_assert_msg(count_files() == 4, "breakage %d at %ld: %d files", how, at, count_files());
    ck_assert_int_eq(is_complete(10), !is_there);
    char path[256];
    static const int steps[] = {20, 30};
    for (size_t i = 0; i < MS_ARRAY_SIZE(steps); i++) {
        snprintf(path, sizeof(path), "%s/x-%d.json", cfg.folder, steps[i]);
        checkpoint_remove(path);
    }
    if (is_there) {
        ck_ms_ok(write_step(10, err));
    }
}

START_TEST(a_full_or_broken_disk_or_a_kill_at_any_byte_leaves_what_was_complete)
{
    const enum breakage how = (enum breakage)_i;
    ck_ms_ok(write_step(10, err));
    const long bytes = world.bytes_seen;
    ck_assert_int_gt(bytes, 1000);
    for (long at = 0; at < bytes; at++) {
        write_broken(how, at, 1000);
        check_after(how, at);
    }
}
END_TEST

START_TEST(and_so_at_any_sync_or_name)
{
    const enum breakage how = (enum breakage)_i;
    ck_ms_ok(write_step(10, err));
    damage(10);
    arm(NOTHING, 0, 0);
    ck_ms_ok(write_step(10, err)); /* replaces: all names that there are */
    const long names = world.names_seen;
    ck_assert_int_ge(names, 6);
    for (long at = 0; at < names; at++) {
        write_broken(how, 1 << 30, at);
        check_after(how, at);
    }
}
END_TEST

/* Replaced by itself, as a training does that went back behind it. */
START_TEST(one_that_is_written_again_stays_whole)
{
    ck_ms_ok(write_step(10, err));
    const long bytes = world.bytes_seen;
    ck_ms_ok(write_step(20, err));
    for (long at = 0; at < bytes; at += 7) {
        write_broken(KILLED, at, 1000);
        ck_assert(is_complete(10) && is_complete(20));
    }
}
END_TEST

/* Of a job that this one was resumed from. */
static void write_as_predecessor(uint64_t step)
{
    snprintf(save.manifest.tag, sizeof(save.manifest.tag), "%s", CHECKPOINT_CASE_TAG);
    checkpoint_save_descend(&save, NULL);
    ck_ms_ok(write_step(step, err));
}

#define HEIR_TAG "fedcba9876543210fedcba9876543210"

static void become_heir(void)
{
    snprintf(save.manifest.tag, sizeof(save.manifest.tag), HEIR_TAG);
    checkpoint_save_descend(&save, CHECKPOINT_CASE_TAG);
}

static void remove_step(uint64_t step)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/x-%" PRIu64 ".json", cfg.folder, step);
    checkpoint_remove(path);
}

static int is_heirs(uint64_t step)
{
    struct checkpoint_manifest m;
    char path[256];
    snprintf(path, sizeof(path), "%s/x-%" PRIu64 ".json", cfg.folder, step);
    ck_ms_ok(checkpoint_read(path, CHECKPOINT_OWN, &m, err));
    checkpoint_manifest_fini(&m);
    return strcmp(m.tag, HEIR_TAG) == 0;
}

/* There is no moment without one. */
START_TEST(one_that_becomes_another_jobs_stays_whole)
{
    static const long strides[][2] = {{97, 0}, {0, 1}}; /* bytes, then names */
    const enum breakage how = (enum breakage)_i;
    write_as_predecessor(10);
    for (size_t i = 0; i < MS_ARRAY_SIZE(strides); i++) {
        int n = 0;
        for (int is_over = 0; !is_over; n++) {
            write_as_predecessor(20);
            become_heir();
            write_broken(how, strides[i][0] > 0 ? n * strides[i][0] : 1 << 30,
                         strides[i][1] > 0 ? n * strides[i][1] : 1000);
            ck_assert(is_complete(10) && is_complete(20));
            is_over = is_heirs(20);
            remove_step(20);
        }
        ck_assert_int_ge(n, 3);
    }
}
END_TEST

/* ---- a writer that hangs, and another process of its job that trains on in its folder ---- */

static const uint64_t *successors_steps;

static void let_successor_write(void)
{
    struct checkpoint_save successor = {.cfg = NULL};
    ck_ms_ok(checkpoint_save_init(&successor, &cfg, err));
    for (const uint64_t *step = successors_steps; *step != 0; step++) {
        const struct checkpoint_facts facts = {
            .step = *step, .epoch = 1, .step_in_epoch = 1, .loss = 0.5F};
        ck_ms_ok(checkpoint_save_write(&successor, state, &facts, err));
    }
    checkpoint_save_fini(&successor);
}

static char *path_of(uint64_t step, const char *tail)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/x-%" PRIu64 "%s", cfg.folder, step, tail);
    return path;
}

static int has_file(uint64_t step, const char *tail)
{
    return access(path_of(step, tail), F_OK) == 0;
}

static void remove_data(void)
{
    ck_assert_int_eq(unlink(path_of(20, ".safetensors")), 0);
}

static void remove_both(void)
{
    remove_step(20);
}

START_TEST(who_hangs_before_its_manifest_keeps_its_data)
{
    static const uint64_t steps[] = {30, 0};
    successors_steps = steps;
    world.meanwhile = let_successor_write;

    ck_ms_ok(write_step(20, err));

    ck_assert(is_complete(20) && is_complete(30));
    ck_assert_int_eq(count_files(), 4);
}
END_TEST

/* Where the file system has no locks. */
START_TEST(who_hung_and_finds_its_data_gone_names_no_manifest)
{
    static void (*const ways[])(void) = {remove_data, remove_both};
    if (_i == 1) {
        write_as_predecessor(20);
        become_heir();
    }
    world.meanwhile = ways[_i];

    ck_ms_fails(write_step(20, err), MS_E_ABORTED, "another one of this job has taken over");

    ck_assert(world.meanwhile == NULL);
    ck_assert_int_eq(count_files(), 0);
    ck_ms_ok(write_step(20, err));
    ck_assert(is_complete(20));
}
END_TEST

/* keep_max took it, or not. */
START_TEST(who_hung_leaves_what_its_successor_wrote_of_the_same_step)
{
    static const uint64_t steps[][4] = {{20, 0}, {20, 30, 40, 0}};
    struct stat st[2];
    successors_steps = steps[_i];
    world.meanwhile = let_successor_write;

    if (_i == 0) { /* or beside it, for another rank is asked to save in its place */
        ck_ms_ok(write_step(20, err));
    } else {
        ck_ms_fails(write_step(20, err), MS_E_ABORTED, "another one of this job has taken over");
    }

    ck_assert_int_eq(is_complete(20), _i == 0);
    ck_assert_int_eq(has_file(20, ".safetensors"), _i == 0);
    const uint64_t newest = _i == 0 ? 20 : 40;
    ck_assert(is_complete(newest));
    ck_assert_int_eq(stat(path_of(newest, ".json"), &st[0]), 0);
    ck_ms_ok(write_step(newest, err)); /* which is there */
    ck_assert_int_eq(stat(path_of(newest, ".json"), &st[1]), 0);
    ck_assert_uint_eq(st[0].st_ino, st[1].st_ino);
}
END_TEST

/* Whatever it was about to do: all that have a manifest are whole. */
START_TEST(who_hangs_at_any_sync_or_name_leaves_its_successor_what_it_wrote)
{
    static const uint64_t steps[][4] = {{20, 0}, {30, 0}, {20, 30, 40, 0}, {10, 20, 0}};
    struct checkpoint_entries entries;
    uint64_t newest = 0;
    successors_steps = steps[_i];
    for (const uint64_t *step = successors_steps; *step != 0; step++) {
        newest = *step;
    }
    long at = 0;
    while (world.meanwhile == NULL) {
        at++;
        arm(NOTHING, 0, 0);
        world.hangs_at = at;
        world.meanwhile = let_successor_write;
        (void)write_step(20, NULL);
        ck_ms_ok(checkpoint_list(cfg.folder, "x", &entries, err));
        for (size_t i = 0; i < entries.n; i++) {
            ck_assert_msg(is_complete(entries.entries[i].step), "hung at %ld: step %d", at,
                          (int)entries.entries[i].step);
            checkpoint_remove(entries.entries[i].path);
        }
        ck_assert_msg(world.meanwhile != NULL ||
                          (entries.n > 0 && entries.entries[0].step == newest),
                      "hung at %ld", at);
        checkpoint_entries_fini(&entries);
        ck_assert_int_eq(count_files(), 0);
    }
    ck_assert_int_ge(at, 6);
    world.meanwhile = NULL;
    world.hangs_at = 0;
}
END_TEST

/* The training went back to the one before it: the room of its data is that of the new ones. */
START_TEST(a_damaged_one_has_no_room_on_a_small_disk)
{
    ck_ms_ok(write_step(20, err));
    ck_ms_ok(write_step(30, err));
    damage(30);
    world.data_room = 2;
    ck_ms_ok(write_step(30, err));
    world.data_room = 0;
    ck_assert(is_complete(20) && is_complete(30));
    ck_assert_int_eq(count_files(), 4);
}
END_TEST

static void let_successor_write_and_fill_the_disk(void)
{
    let_successor_write();
    arm(FULL, 0, 1000);
}

/* ... who came to that step, had to save it, and found it damaged as this one did. */
START_TEST(who_hangs_as_it_makes_way_leaves_its_successor_what_it_wrote)
{
    static const uint64_t steps[] = {20, 0};
    static void (*const ways[])(void) = {let_successor_write,
                                         let_successor_write_and_fill_the_disk};
    successors_steps = steps;
    ck_ms_ok(write_step(20, err));
    damage(20);
    world.hangs_as_it_goes = 1;
    world.meanwhile = ways[_i];

    ck_ms_ok(write_step(20, err)); /* which is there */

    ck_assert(world.meanwhile == NULL);
    world.hangs_as_it_goes = 0;
    arm(NOTHING, 0, 0);
    ck_assert(is_complete(20));
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

static void die(void)
{
    _exit(0);
}

static void clear(void)
{
    ms_file_clear(path_of(20, ".json"));
}

static void let_successor_write_and_die(void)
{
    let_successor_write();
    world.once_away = die;
}

static void let_successor_write_and_clear(void)
{
    let_successor_write();
    world.once_away = clear;
}

/* ... in the moment in which it has taken that one's name, before it looks whose it was. */
START_TEST(who_hung_and_dies_in_the_moment_of_its_look_takes_nothing_along)
{
    static const uint64_t steps[] = {20, 0};
    static void (*const ways[])(void) = {let_successor_write_and_die,
                                         let_successor_write_and_clear};
    successors_steps = steps;
    ck_ms_ok(write_step(20, err));
    damage(20);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        world.hangs_as_it_goes = 1;
        world.meanwhile = ways[_i];
        _exit(write_step(20, NULL) == MS_OK ? 0 : 1); /* it is there */
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);

    clear(); /* as all do who write next */

    ck_assert(is_complete(20));
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

/* A job that was resumed from it, and comes to its step. */
static void descend(void)
{
    snprintf(save.manifest.first_tag, sizeof(save.manifest.first_tag), "%s", CHECKPOINT_CASE_TAG);
    snprintf(save.manifest.tag, sizeof(save.manifest.tag), "%032d", 7);
}

/* Files open until so many descriptors are left. */
static int open_until(int left, int fds[256])
{
    const struct rlimit limit = {200, 4096};
    int n = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < 256 && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        n++;
    }
    while (left-- > 0) {
        close(fds[--n]);
    }
    return n;
}

/* Whether it has these bits nobody can say then: it stays. */
START_TEST(a_lack_of_descriptors_takes_no_checkpoint_away)
{
    int fds[256];
    ck_ms_ok(write_step(20, err));
    descend();
    const int n = open_until(_i, fds);
    struct ms_err why = {0, ""};

    const int rc = write_step(20, &why);

    for (int i = 0; i < n; i++) {
        close(fds[i]);
    }
    ck_assert_msg(rc == 0 || why.text[0] != '\0', "%d without a word", rc);
    ck_assert_msg(is_complete(20), "%d free: %d %s", _i, rc, why.text);
}
END_TEST

static int n_syncs_of_folder(void)
{
    struct stat st;
    int n = 0;
    ck_assert_int_eq(stat(cfg.folder, &st), 0);
    for (int i = 0; i < world.n_folders; i++) {
        n += world.folders[i] == st.st_ino;
    }
    return n;
}

/* A power cut could take the name of the one for which an older one goes. */
START_TEST(what_is_there_counts_when_its_folder_is_synced)
{
    ck_ms_ok(write_step(10, err));
    arm(NOTHING, 0, 0);
    ck_ms_ok(write_step(20, err));
    arm(BROKEN, 1000000000, world.names_seen - 1); /* the last one: that of the folder */
    ck_assert_int_lt(write_step(30, NULL), 0);
    ck_assert(is_complete(30));
    arm(NOTHING, 0, 0);

    ck_ms_ok(write_step(30, err));

    ck_assert_int_ge(n_syncs_of_folder(), 1);
    arm(BROKEN, 1000000000, 0);
    ck_ms_fails(write_step(30, err), MS_E_IO, "cannot sync the folder");
}
END_TEST

/* As where a file system has numbers for a moment only. */
static void copy_data(void)
{
    static char bytes[1 << 20];
    char *path = path_of(20, ".safetensors");
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    const size_t n = fread(bytes, 1, sizeof(bytes), file);
    ck_assert(n > 0 && n < sizeof(bytes));
    fclose(file);
    ck_ms_ok(ms_file_save(path, bytes, n, err));
}

START_TEST(the_same_bytes_in_another_file_are_its_data)
{
    world.meanwhile = copy_data;

    ck_ms_ok(write_step(20, err));

    ck_assert(world.meanwhile == NULL);
    ck_assert(is_complete(20));
}
END_TEST

START_TEST(where_the_file_system_has_no_links_a_manifest_is_named_all_the_same)
{
    world.has_no_links = 1;
    ck_ms_ok(write_step(10, err));
    damage(10);
    ck_ms_ok(write_step(10, err));
    world.has_no_links = 0;
    ck_assert(is_complete(10));
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

/* Of a release that did not look. */
START_TEST(a_manifest_without_data_goes_where_it_is_of_this_training)
{
    static const uint64_t lone[] = {5, 10, 40}; /* the first is another training's */
    job.checkpoint_keep_max = 9;
    for (size_t i = 0; i < MS_ARRAY_SIZE(lone); i++) {
        snprintf(save.manifest.tag, sizeof(save.manifest.tag), "%s",
                 i == 0 ? HEIR_TAG : CHECKPOINT_CASE_TAG);
        ck_ms_ok(write_step(lone[i], err));
    }
    for (size_t i = 0; i < MS_ARRAY_SIZE(lone); i++) {
        ck_assert_int_eq(unlink(path_of(lone[i], ".safetensors")), 0);
    }

    ck_ms_ok(write_step(20, err));

    ck_assert(has_file(5, ".json") && !has_file(10, ".json") && !has_file(40, ".json"));
    ck_assert(is_complete(20));
}
END_TEST

/* A power cut takes no name on the way to the checkpoint that is safe. */
START_TEST(each_folder_on_the_way_is_synced_where_it_was_made)
{
    char paths[4][256];
    struct stat st;
    struct checkpoint_save deep = {.cfg = NULL};
    struct checkpoint_writer_config below = cfg;
    snprintf(paths[0], sizeof(paths[0]), "%s", dir);
    snprintf(paths[1], sizeof(paths[1]), "%s/a", dir);
    snprintf(paths[2], sizeof(paths[2]), "%s/a/b", dir);
    snprintf(paths[3], sizeof(paths[3]), "%s/a/b/ckpt", dir);
    below.folder = paths[3];
    arm(NOTHING, 0, 0);

    ck_ms_ok(checkpoint_save_init(&deep, &below, err));

    ck_ms_ok(checkpoint_save_make_folder(&deep, err));

    ck_assert_int_eq(world.n_folders, 3); /* in this order, for each holds the name of the next */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(stat(paths[i], &st), 0);
        ck_assert_uint_eq(world.folders[i], st.st_ino);
    }
    arm(NOTHING, 0, 0);
    ck_ms_ok(checkpoint_save_make_folder(&deep, err));
    ck_assert_int_eq(world.n_folders, 0);
    checkpoint_save_fini(&deep);
}
END_TEST

/* Who finds it there the next time would not sync it. */
START_TEST(a_folder_whose_name_may_not_last_is_made_again)
{
    char path[256];
    struct stat st;
    struct checkpoint_save next = {.cfg = NULL};
    struct checkpoint_writer_config beside = cfg;
    snprintf(path, sizeof(path), "%s/next", dir);
    beside.folder = path;
    ck_ms_ok(checkpoint_save_init(&next, &beside, err));
    arm(BROKEN, 0, 0);
    ck_ms_ok(checkpoint_save_make_folder(&next, err)); /* it may pass */
    ck_assert_int_eq(world.n_folders, 1);
    arm(NOTHING, 0, 0);

    ck_ms_ok(checkpoint_save_make_folder(&next, err));

    ck_assert_int_eq(world.n_folders, 1);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(world.folders[0], st.st_ino);
    ck_assert_int_eq(access(path, F_OK), 0);
    checkpoint_save_fini(&next);
}
END_TEST

START_TEST(a_kill_at_a_random_moment_leaves_the_newest_ones)
{
    uint64_t last = 1;
    world.syncs = 1;
    ck_ms_ok(write_step(last, err));
    for (uint64_t round = 0; round < 60; round++) {
        pid_t child = fork_writer();
        for (uint64_t step = last; child == 0; step++) {
            (void)write_step(step, NULL);
        }
        (void)usleep((useconds_t)ms_rng_below(7, round, 20000));
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        wait_for(child);
        struct checkpoint_entries entries;
        ck_ms_ok(checkpoint_list(cfg.folder, "x", &entries, err));
        size_t n = 0;
        for (size_t i = 0; i < entries.n; i++) {
            n += (size_t)is_complete(entries.entries[i].step);
        }
        ck_assert_msg(n >= 1 && n == entries.n, "round %d: %d of %d are complete", (int)round,
                      (int)n, (int)entries.n);
        ck_assert_uint_ge(entries.entries[0].step, last);
        last = entries.entries[0].step;
        checkpoint_entries_fini(&entries);
    }
    ck_ms_ok(write_step(last + 1, err));
    ck_assert_int_eq(count_files(), 4);
}
END_TEST

/* ---- a disk that is too small ---- */

START_TEST(where_not_all_have_room_the_oldest_go_for_the_new_one)
{
    job.checkpoint_keep_max = 5;
    arm(SMALL, 0, 0);
    world.holds = 3;

    for (uint64_t step = 10; step <= 60; step += 10) {
        ck_ms_ok(write_step(step, err));
    }

    ck_assert(is_complete(60) && is_complete(50) && is_complete(40));
    ck_assert_int_eq(count_manifests(), 3);
}
END_TEST

START_TEST(the_newest_that_is_whole_never_goes)
{
    job.checkpoint_keep_max = 5;
    for (uint64_t step = 10; step <= 40; step += 10) {
        ck_ms_ok(write_step(step, err));
    }
    damage(40);
    arm(SMALL, 0, 0);
    world.holds = 1;

    ck_ms_fails(write_step(50, err), MS_E_IO, "No space left");

    arm(NOTHING, 0, 0);
    ck_assert(is_complete(30));
    ck_assert(!is_complete(20) && !is_complete(10) && !is_complete(50));
    ck_ms_ok(write_step(60, err));
    ck_assert(is_complete(60) && is_complete(30));
}
END_TEST

/* Its own, else what it was resumed from, whatever else lies there. */
START_TEST(what_a_resumed_job_would_go_on_from_never_goes)
{
    job.checkpoint_keep_max = 5;
    for (uint64_t step = 10; step <= 40; step += 10) {
        write_as_predecessor(step);
    }
    become_heir();
    snprintf(job.resume, sizeof(job.resume), "%s/x-20.json", cfg.folder);
    arm(SMALL, 0, 0);
    world.holds = 1;

    ck_ms_fails(write_step(25, err), MS_E_IO, "No space left");

    ck_assert(is_complete(20) && !is_complete(10));
    ck_assert(is_complete(30)); /* it may come to that */
    arm(NOTHING, 0, 0);
    ck_ms_ok(write_step(30, err));
    arm(SMALL, 0, 0);
    world.holds = 2;
    ck_ms_ok(write_step(50, err)); /* that of step 40 is of no use to this job */
    arm(NOTHING, 0, 0);
    ck_assert(is_heirs(50) && is_heirs(30));
    ck_assert(!is_complete(20) && !is_complete(40));
}
END_TEST

START_TEST(that_the_oldest_go_before_their_turn_is_said_once)
{
    struct checkpoint_writer *writer = NULL;
    char words[MS_ERR_TEXT_MAX];
    job.checkpoint_keep_max = 5;
    cfg.has_spare = _i;
    ck_ms_ok(checkpoint_writer_create(&cfg, &writer, err));
    arm(SMALL, 0, 0);
    world.holds = 2;
    for (uint64_t step = 1; step <= 5; step++) {
        const struct checkpoint_facts facts = {
            .step = step, .epoch = 1, .step_in_epoch = (int64_t)step, .loss = 1};
        ck_assert(checkpoint_writer_take(writer, &facts));
        checkpoint_writer_wait(writer);
        const int n = checkpoint_writer_words(writer, words, sizeof(words));
        ck_assert_msg(n == (step == 3), "%d: %s", (int)step, words);
        ck_assert_msg(n == 0 || strstr(words, "no room for 5 checkpoints") != NULL, "%s", words);
    }
    checkpoint_writer_destroy(writer);
    arm(NOTHING, 0, 0);
    ck_assert(is_complete(5) && is_complete(4));
}
END_TEST

/* ---- what is said ---- */

START_TEST(a_manifest_that_becomes_shorter_while_it_is_read_is_called_that)
{
    struct checkpoint_manifest m;
    char path[256];
    ck_ms_ok(write_step(3, err));
    snprintf(path, sizeof(path), "%s/x-3.json", cfg.folder);
    world.ends = 1;
    errno = ENOSPC; /* of something else */

    ck_ms_fails(checkpoint_read(path, CHECKPOINT_OWN, &m, err), MS_E_IO,
                "x-3.json cannot be read: it became shorter");

    world.ends = 0;
    ck_assert(is_complete(3));
}
END_TEST

START_TEST(a_cause_is_said_once_and_so_is_that_it_passed)
{
    struct checkpoint_writer *writer = NULL;
    char words[MS_ERR_TEXT_MAX];
    cfg.has_spare = _i;
    ck_ms_ok(checkpoint_writer_create(&cfg, &writer, err));
    static const struct {
        enum breakage how;
        const char *says;
    } rows[] = {
        {NOTHING, NULL}, {FULL, "No space left"},  {FULL, NULL},
        {BROKEN, "I"},   {NOTHING, "again: that"}, {NOTHING, NULL},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        const struct checkpoint_facts facts = {
            .step = i + 1, .epoch = 1, .step_in_epoch = (int64_t)i + 1, .loss = 1};
        arm(rows[i].how, 10, 0);
        ck_assert(checkpoint_writer_take(writer, &facts));
        checkpoint_writer_wait(writer);
        int n = checkpoint_writer_words(writer, words, sizeof(words));
        ck_assert_msg(n == (rows[i].says != NULL), "%d: %s", (int)i, words);
        ck_assert_msg(n == 0 || strstr(words, rows[i].says) != NULL, "%s", words);
        ck_assert(rows[i].how != NOTHING || checkpoint_writer_saved(writer) == i + 1);
    }
    checkpoint_writer_destroy(writer);
    arm(NOTHING, 0, 0);
    ck_assert(is_complete(6) && is_complete(5) && !is_complete(1) && !is_complete(2));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_torn");
    TCase *tc = tcase_create("torn");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_full_or_broken_disk_or_a_kill_at_any_byte_leaves_what_was_complete,
                        FULL, KILLED + 1);
    tcase_add_loop_test(tc, and_so_at_any_sync_or_name, FULL, KILLED + 1);
    tcase_add_test(tc, one_that_is_written_again_stays_whole);
    tcase_add_loop_test(tc, one_that_becomes_another_jobs_stays_whole, FULL, KILLED + 1);
    tcase_add_test(tc, who_hangs_before_its_manifest_keeps_its_data);
    tcase_add_loop_test(tc, who_hung_and_finds_its_data_gone_names_no_manifest, 0, 2);
    tcase_add_loop_test(tc, who_hung_leaves_what_its_successor_wrote_of_the_same_step, 0, 2);
    tcase_add_loop_test(tc, a_lack_of_descriptors_takes_no_checkpoint_away, 0, 10);
    tcase_add_test(tc, what_is_there_counts_when_its_folder_is_synced);
    tcase_add_test(tc, a_damaged_one_has_no_room_on_a_small_disk);
    tcase_add_loop_test(tc, who_hangs_as_it_makes_way_leaves_its_successor_what_it_wrote, 0, 2);
    tcase_add_loop_test(tc, who_hung_and_dies_in_the_moment_of_its_look_takes_nothing_along, 0, 2);
    tcase_add_loop_test(tc, who_hangs_at_any_sync_or_name_leaves_its_successor_what_it_wrote, 0, 4);
    tcase_add_test(tc, the_same_bytes_in_another_file_are_its_data);
    tcase_add_test(tc, where_the_file_system_has_no_links_a_manifest_is_named_all_the_same);
    tcase_add_test(tc, a_manifest_without_data_goes_where_it_is_of_this_training);
    tcase_add_test(tc, each_folder_on_the_way_is_synced_where_it_was_made);
    tcase_add_test(tc, a_folder_whose_name_may_not_last_is_made_again);
    tcase_add_test(tc, a_kill_at_a_random_moment_leaves_the_newest_ones);
    tcase_add_test(tc, a_manifest_that_becomes_shorter_while_it_is_read_is_called_that);
    tcase_add_loop_test(tc, a_cause_is_said_once_and_so_is_that_it_passed, 0, 2);
    tcase_add_test(tc, where_not_all_have_room_the_oldest_go_for_the_new_one);
    tcase_add_test(tc, the_newest_that_is_whole_never_goes);
    tcase_add_test(tc, what_a_resumed_job_would_go_on_from_never_goes);
    tcase_add_loop_test(tc, that_the_oldest_go_before_their_turn_is_said_once, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
