/* client.h - what clients ask for: jobs, lists, watches, waiting cancels, logs */
#ifndef SCHED_CLIENT_H
#define SCHED_CLIENT_H

#include "daemon/sched/list.h"
#include "daemon/sched/sched.h"
#include "daemon/sched/table.h"
#include "daemon/sched/timer.h"

#include <stdbool.h>

struct conn;
struct job;
struct node;
struct run;

struct watch {
    struct list by_job, by_conn, all;
    struct list stir; /* in sched.stirred, or in conn.muted, while there is news to tell */
    struct conn *conn;
    struct job *job;
    uint32_t frame_id;
    uint64_t told; /* hash of the state and reason that were sent last */
};

struct waiter {
    struct list by_job, by_conn;
    struct job *job;
    struct conn *conn;
    uint32_t frame_id;
};

struct route {
    struct table_link link;
    struct timer timer;
    uint64_t number;
    uint64_t client; /* conn, and with it ... */
    const struct conn *asker;
    uint32_t frame_id;
    struct node *node;
    uint64_t job;
    uint32_t rank;
    unsigned fetch; /* enum ms_fetch: a FetchGrant is out; 0: a LogRead */
};

void on_submit(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_cancel(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_job_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_node_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_status_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_watch(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_log_query(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_log_chunk(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_fetch(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_fetch_read(struct sched *s, struct conn *conn, const struct sched_event *event);
void on_fetch_ready(struct sched *s, struct conn *conn, const struct sched_event *event);

void waiters_answer(struct sched *s, struct job *job);
void waiter_drop(struct waiter *waiter);           /* its client has gone, or its job */
void watch_stir(struct sched *s, struct job *job); /* its watchers are told by watch_settle */
void watch_settle(struct sched *s);                /* as many as a tick may tell */
void watch_mute(struct sched *s, struct conn *conn, bool is_clogged);
void watch_last(struct sched *s, struct job *job); /* before it is forgotten: at once, all */
void watch_news(struct sched *s);                  /* reasons of waiting jobs may have changed */
void watch_tell_news(struct sched *s, struct timer *timer); /* TIMER_NEWS */
void watch_drop(struct watch *watch);
void route_timeout(struct sched *s, struct route *route);
void routes_drop_conn(struct sched *s, uint64_t client);
struct route *route_find(const struct sched *s, uint64_t number);
/* A question to node for the client on conn; NULL, and refused, where too many are out. */
struct route *route_open(struct sched *s, const struct conn *conn, uint32_t frame_id,
                         struct node *node, uint64_t job, uint32_t rank);
void route_drop(struct sched *s, struct route *route);
void route_fail(struct sched *s, struct route *route, int code, const char *cause);
/* The node whose process had the rank (what: enum ms_fetch); NULL: *ret_code and *ret_text say why
 * there is none. */
struct node *result_holder(struct sched *s, uint64_t job, uint32_t rank, unsigned what,
                           int *ret_code, const char **ret_text);
const char *result_name(unsigned what); /* "log", "weights", "metrics", "checkpoints" */
/* Where a result lies on its node, for who must look there; the job has a run. */
const char *result_words(struct sched *s, const struct job *job, uint32_t rank, unsigned what);
/* The log that it lies beside, or is; "": not known. */
const char *result_log(const struct run *run, uint32_t rank, unsigned what);
void routes_drop_node(struct sched *s, const struct node *node, const char *reason);

/* What info_job and its frame may take of tick memory. */
size_t info_bytes(const struct job *job);
enum info_part { INFO_ROW, INFO_WATCH, INFO_PLAN, INFO_ALL };
/* In tick memory; points into the job, so pack it at once. */
Ms__JobInfo *info_job(struct sched *s, const struct job *job, enum info_part part);
Ms__NodeInfo *info_node(struct sched *s, const struct node *node);

#endif
