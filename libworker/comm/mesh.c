/* mesh.c - the life of a mesh: made, ended by the first error or an abort, destroyed */
#include "libworker/comm/mesh.h"

#include "libworker/comm/group.h"
#include "libworker/comm/lack.h"
#include "libworker/comm/listener.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

uint64_t mesh_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

const char *mesh_who(const struct mesh *mesh, int rank, char *buf)
{
    const struct mesh_member *member = &mesh->cfg.members[rank];
    snprintf(buf, MESH_WHO_MAX, "rank %d (node %s on host %s)", rank, member->node_id,
             member->host_name);
    return buf;
}

int mesh_are_local(const struct mesh *mesh, int a, int b)
{
    const struct mesh_member *x = &mesh->cfg.members[a];
    const struct mesh_member *y = &mesh->cfg.members[b];
    return a == b ||
           (!mesh->cfg.force_remote && x->host_id[0] != '\0' && x->data_unix[0] != '\0' &&
            y->data_unix[0] != '\0' && x->uid == y->uid && strcmp(x->host_id, y->host_id) == 0);
}

int mesh_free_place(struct mesh *mesh)
{
    int place = 0;
    pthread_mutex_lock(&mesh->lock);
    while (place < MESH_GROUPS_MAX && mesh->groups[place] != NULL) {
        place++;
    }
    pthread_mutex_unlock(&mesh->lock);
    return place < MESH_GROUPS_MAX ? place : -1;
}

int mesh_poll(struct pollfd *fds, nfds_t n, int timeout_ms, struct ms_err *err)
{
    int ready = poll(fds, n, timeout_ms);
    if (ready >= 0 || errno == EINTR) {
        return ready > 0 ? ready : 0;
    }
    const int error = errno;
    int rc = lack_found(err, error, "cannot wait for the connections of other ranks");
    errno = error;
    return rc < 0 ? rc
                  : ms_fail_errno(err, MS_E_IO, "cannot wait for %lu connections of other ranks",
                                  (unsigned long)n);
}

/* ---- how it ends
 * ------------------------------------------------------------------------------------- */

int mesh_check(struct mesh *mesh, struct ms_err *err)
{
    int code = atomic_load(&mesh->status);
    if (code == 0) {
        return 0;
    }
    pthread_mutex_lock(&mesh->lock);
    (void)ms_fail(err, code, "%s", mesh->text);
    pthread_mutex_unlock(&mesh->lock);
    return code;
}

void mesh_end(struct mesh *mesh, int code, int culprit, const char *text)
{
    uint64_t one = 1;
    pthread_mutex_lock(&mesh->lock);
    if (atomic_load(&mesh->status) == 0) {
        snprintf(mesh->text, sizeof(mesh->text), "%s", text);
        atomic_store(&mesh->culprit, culprit < 0 ? FRAME_NOBODY : (uint64_t)culprit);
        atomic_store(&mesh->status, code);
    }
    (void)!write(mesh->wake_fd, &one, sizeof(one)); /* full: readable already */
    for (int i = 0; i < MESH_GROUPS_MAX; i++) {
        if (mesh->groups[i] != NULL && mesh->groups[i]->n_locals > 1) {
            shm_wake_all(mesh->groups[i]);
        }
    }
    pthread_mutex_unlock(&mesh->lock);
}

void mesh_abort(struct mesh *mesh, const char *text)
{
    mesh_end(mesh, MS_E_ABORTED, -1, text);
}

void mesh_give_up(struct mesh *mesh, int code, const char *text)
{
    mesh_end(mesh, code, mesh->cfg.rank, text);
}

int mesh_culprit(const struct mesh *mesh)
{
    uint64_t rank = atomic_load(&mesh->culprit);
    return rank < (uint64_t)mesh->cfg.world ? (int)rank : -1;
}

int mesh_status(const struct mesh *mesh)
{
    return atomic_load(&mesh->status);
}

/* ---- made and destroyed
 * ------------------------------------------------------------------------------ */

static int check_config(const struct mesh_config *cfg, struct ms_err *err)
{
    if (cfg->world < 1 || cfg->world > MS_WORKERS_MAX || cfg->rank < 0 || cfg->rank >= cfg->world) {
        return ms_fail(err, MS_E_INVALID, "rank %d of %d ranks: a job has 1 to %d", cfg->rank,
                       cfg->world, MS_WORKERS_MAX);
    }
    if (cfg->timeout_ms <= 0) {
        return ms_fail(err, MS_E_INVALID, "a data-plane timeout of %d ms: it must be positive",
                       cfg->timeout_ms);
    }
    if (cfg->world > 1 && (cfg->tls == NULL) != (cfg->listener->tls == NULL)) {
        return ms_fail(err, MS_E_INVALID, "TLS is %s on the data plane's listener only",
                       cfg->tls == NULL ? "on" : "off");
    }
    return group_check_dtype(cfg->exchange_dtype, err);
}

enum { MEMBER_WORDS = 6 };

/* The strings of a member, one by one. */
static const char **word_of(struct mesh_member *member, int i)
{
    const char **words[MEMBER_WORDS] = {&member->node_id,   &member->host_name,
                                        &member->host_id,   &member->data_address,
                                        &member->data_unix, &member->cert_name};
    return words[i];
}

/* Copies the strings of all members to `at`, which NULL only counts. Returns the bytes. */
static size_t copy_words(struct mesh_member *members, int world, char *at)
{
    size_t bytes = 0;
    for (int i = 0; i < world * MEMBER_WORDS; i++) {
        const char **word = word_of(&members[i / MEMBER_WORDS], i % MEMBER_WORDS);
        size_t size = strlen(*word) + 1;
        if (at != NULL) {
            *word = memcpy(at + bytes, *word, size);
        }
        bytes += size;
    }
    return bytes;
}

/* A copy of the configuration: groups that are made later ask for members and certificates. */
static int keep_config(struct mesh *mesh, const struct mesh_config *cfg, struct ms_err *err)
{
    size_t world = (size_t)cfg->world;
    mesh->cfg = *cfg;
    mesh->cfg.members = NULL;
    mesh->cfg.ret_culprit = NULL; /* the caller's, for the call alone */
    if (cfg->tls != NULL) {
        (void)SSL_CTX_up_ref(cfg->tls);
    }
    struct mesh_member *members = malloc(world * sizeof(*members));
    if (members != NULL) {
        mesh->cfg.members = memcpy(members, cfg->members, world * sizeof(*members));
        mesh->words = malloc(copy_words(members, cfg->world, NULL));
    }
    if (mesh->words == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a mesh of %d ranks", cfg->world);
    }
    (void)copy_words(members, cfg->world, mesh->words);
    return 0;
}

static int open_world(struct mesh *mesh, struct ms_err *err)
{
    int members[MS_WORKERS_MAX];
    for (int i = 0; i < mesh->cfg.world; i++) {
        members[i] = i;
    }
    mesh->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (mesh->wake_fd < 0) {
        return ms_fail(err, MS_E_IO, "cannot make an eventfd for the mesh: %s%s", strerror(errno),
                       lack_help(errno));
    }
    return group_open(mesh, mesh->n_made++, members, mesh->cfg.world, mesh->cfg.exchange_dtype,
                      mesh->cfg.exchange_count, &mesh->groups[0], err);
}

static int make(const struct mesh_config *cfg, int *ret_culprit, struct mesh **ret,
                struct ms_err *err)
{
    int rc = check_config(cfg, err);
    if (rc < 0) {
        return rc;
    }
    struct mesh *mesh = calloc(1, sizeof(*mesh));
    if (mesh == NULL) {
        return ms_fail(err, MS_E_NOMEM, "out of memory for a mesh");
    }
    mesh->wake_fd = -1;
    mesh->culprit = FRAME_NOBODY;
    pthread_mutex_init(&mesh->lock, NULL);
    rc = keep_config(mesh, cfg, err);
    rc = rc == 0 ? open_world(mesh, err) : rc;
    if (rc < 0) {
        *ret_culprit = mesh_culprit(mesh);
        mesh_destroy(mesh);
        return rc;
    }
    *ret = mesh;
    return 0;
}

int mesh_create(const struct mesh_config *cfg, struct mesh **ret, struct ms_err *err)
{
    struct ms_err local_err;
    int culprit = -1;
    int rc = make(cfg, &culprit, ret, err != NULL ? err : &local_err);
    if (rc < 0 && cfg->ret_culprit != NULL) {
        *cfg->ret_culprit = culprit;
    }
    return rc;
}

void mesh_destroy(struct mesh *mesh)
{
    if (mesh == NULL) {
        return;
    }
    for (int i = MESH_GROUPS_MAX - 1; i >= 0; i--) {
        group_close(mesh->groups[i]);
    }
    if (mesh->wake_fd >= 0) {
        close(mesh->wake_fd);
    }
    SSL_CTX_free(mesh->cfg.tls);
    pthread_mutex_destroy(&mesh->lock);
    free((void *)(uintptr_t)mesh->cfg.members);
    free(mesh->words);
    free(mesh);
}

struct group *mesh_all(struct mesh *mesh)
{
    return mesh->groups[0];
}

int mesh_rank(const struct mesh *mesh)
{
    return mesh->cfg.rank;
}

int mesh_world(const struct mesh *mesh)
{
    return mesh->cfg.world;
}

uint64_t mesh_take_wait_ns(struct mesh *mesh)
{
    return atomic_exchange(&mesh->wait_ns, 0);
}
