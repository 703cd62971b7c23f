/* dynamic.h - the dynamic cluster's own rules */
#ifndef SCHED_DYNAMIC_H
#define SCHED_DYNAMIC_H

#include "daemon/sched/sched.h"

#include <stdbool.h>

struct claim;
struct job;
struct node;
struct node_info;
struct timer;

uint32_t dynamic_expected(const struct sched *s);
void dynamic_start(struct sched *s);
int dynamic_load(struct sched *s, struct ms_err *err); /* what the loaded jobs mean for it */
/* NULL, or why this worker is refused. */
const char *dynamic_refusal(struct sched *s, const struct node_info *info, const Ms__Register *msg,
                            int *ret_code);
const char *dynamic_lets_be(struct sched *s, const Ms__Register *msg);
void dynamic_take_spec(struct sched *s, const struct node_info *info, const Ms__Register *msg);
void dynamic_settle(struct sched *s);
void dynamic_timeout(struct sched *s, struct timer *timer);
void dynamic_job_ended(struct sched *s, const struct job *job);
/* A worker came back for a job whose end is stored: this run is the one that ended with it. */
void dynamic_found_ended(struct sched *s, const struct job *job, struct node *node,
                         const struct claim *claim);
void dynamic_left(struct sched *s, const struct node *node);
void dynamic_stretch(struct sched *s, int64_t ms);                /* its deadlines */
void dynamic_say_who_stays(struct sched *s, struct timer *timer); /* timer: unused */
const char *dynamic_waiting_for(struct sched *s);                 /* "" nobody */
bool id_is_rank(const char *node_id, uint64_t *ret_rank);
int dynamic_check(const struct sched *s, struct ms_err *err);

#endif
