/* ranks.h - several ranks on this host without a scheduler, for benches and tests of the mesh
 *
 * The parent opens all listeners, so addresses are known before anybody is forked; each child then
 * makes its mesh from its own. Network namespaces stand for hosts where the ranks are to be on
 * several: rank r of n is in number r * n_places / n of them. */
#ifndef RANKS_H
#define RANKS_H

#include "libworker/comm/comm.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 64, PLACES_MAX = 8 };

struct place {
    const char *netns; /* as `ip netns` names it */
    const char *ip;    /* of it, where the others reach it */
};

struct ranks {
    int world;
    int n_places; /* 0: all here, on loopback; set before ranks_open */
    struct place places[PLACES_MAX];
    struct comm_listener *listeners[RANKS_MAX];
    struct mesh_member members[RANKS_MAX];
    char addresses[RANKS_MAX][64];
    char names[RANKS_MAX][16];
    char host_ids[RANKS_MAX][MS_NAME_MAX + 1];
    SSL_CTX *tls[RANKS_MAX]; /* set before ranks_open; NULL: plain */
    pid_t pids[RANKS_MAX];
};

static inline int ranks_place(const struct ranks *ranks, int rank)
{
    return rank * ranks->n_places / ranks->world;
}

/* The calling thread moves to the network of a rank. */
static inline int ranks_enter(const struct ranks *ranks, int rank, struct ms_err *err)
{
    char path[128];
    if (ranks->n_places == 0) {
        return 0;
    }
    snprintf(path, sizeof(path), "/run/netns/%s", ranks->places[ranks_place(ranks, rank)].netns);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 || setns(fd, CLONE_NEWNET) < 0
                 ? ms_fail_errno(err, MS_E_IO, "cannot enter the network of %s", path)
                 : 0;
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

/* Opens listeners, on loopback or in their places (where the calling thread is then). */
static inline int ranks_open(struct ranks *ranks, int world, struct ms_err *err)
{
    int rc = 0;
    ranks->world = world;
    for (int i = 0; rc == 0 && i < world; i++) {
        struct comm_listener_config cfg = {.bind_ip = "127.0.0.1", .tls = ranks->tls[i]};
        if (ranks->n_places > 0) {
            cfg.bind_ip = ranks->places[ranks_place(ranks, i)].ip;
        }
        rc = ranks_enter(ranks, i, err);
        rc = rc == 0 ? comm_host_id(ranks->host_ids[i], sizeof(ranks->host_ids[i]), err) : rc;
        rc = rc == 0 ? comm_listener_create(&cfg, &ranks->listeners[i], err) : rc;
        if (rc < 0) {
            break;
        }
        snprintf(ranks->addresses[i], sizeof(ranks->addresses[i]), "%s:%d", cfg.bind_ip,
                 comm_listener_port(ranks->listeners[i]));
        snprintf(ranks->names[i], sizeof(ranks->names[i]), "w%d", i);
        ranks->members[i] = (struct mesh_member){
            .node_id = ranks->names[i],
            .host_name = "localhost",
            .host_id = ranks->host_ids[i],
            .data_address = ranks->addresses[i],
            .data_unix = comm_listener_unix(ranks->listeners[i]),
            .cert_name = ranks->tls[i] != NULL ? ranks->names[i] : "",
            .uid = (uint32_t)getuid(),
        };
    }
    return rc;
}

static inline void ranks_close(struct ranks *ranks)
{
    for (int i = 0; i < ranks->world; i++) {
        comm_listener_destroy(ranks->listeners[i]);
        ranks->listeners[i] = NULL;
    }
}

static inline struct mesh_config ranks_config(const struct ranks *ranks, int rank, size_t floats)
{
    return (struct mesh_config){
        .job = 17,
        .generation = 5,
        .rank = rank,
        .world = ranks->world,
        .members = ranks->members,
        .token = {1, 2, 3, 4, 5, 6, 7, 8},
        .listener = ranks->listeners[rank],
        .tls = ranks->tls[rank],
        .exchange_count = floats,
        .timeout_ms = 120000,
    };
}

/* Forks a child that runs fn(rank, arg) and ends with its result, and that dies with its parent. */
static inline pid_t ranks_fork(int (*fn)(int rank, void *arg), int rank, void *arg)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int rc = getppid() == parent ? fn(rank, arg) : 1;
        fflush(NULL);
        _exit(rc);
    }
    return pid;
}

/* Runs fn in a child for each rank; returns how many ended otherwise than with 0. */
static inline int ranks_run(struct ranks *ranks, int (*fn)(int rank, void *arg), void *arg)
{
    int failed = 0;
    for (int i = 0; i < ranks->world; i++) {
        ranks->pids[i] = ranks_fork(fn, i, arg);
    }
    for (int i = 0; i < ranks->world; i++) {
        int status = 0;
        if (ranks->pids[i] < 0 || waitpid(ranks->pids[i], &status, 0) < 0 || status != 0) {
            failed++;
        }
    }
    return failed;
}

#endif
