/* states.h - which states nodes, ranks, topologies and jobs have, and which events lead from one to
 * another
 *
 * docs/states.md is the prose; a test compares the two. Nothing else in the core writes a state. */
#ifndef STATES_H
#define STATES_H

#include "daemon/sched/sched.h"
#include "proto/machine.h"

enum node_state {
    NODE_NEW, /* expected: not heard of since the scheduler started, or stood still */
    NODE_REGISTERED,
    NODE_LOST,
    NODE_LEFT,
    NODE_STATES
};

enum node_event {
    NODE_ON_REGISTER, /* Register was accepted, first or again */
    NODE_ON_LOSS,     /* its connection closed, its lease ended, another process took its id over */
    NODE_ON_LEAVE,    /* it said Leave */
    NODE_ON_AWAY,     /* its connection closed after the scheduler had stood still */
    NODE_EVENTS
};

enum rank_state {
    RANK_MISSING, /* its node has to come back: the scheduler restarted, or stood still */
    RANK_PREPARING,
    RANK_READY,
    RANK_TRAINING,
    RANK_DONE, /* this and what follows: over */
    RANK_STOPPED,
    RANK_FAILED,
    RANK_LOST,
    RANK_STATES
};

enum rank_event {
    RANK_ON_ASSIGN,  /* it has a node for the job's next generation */
    RANK_ON_RETURN,  /* its node came back; not started yet */
    RANK_ON_RESUME,  /* ... and its job runs */
    RANK_ON_READY,   /* RankReady */
    RANK_ON_START,   /* every rank of the job is ready */
    RANK_ON_DONE,    /* RankDone with code 0 */
    RANK_ON_STOP,    /* it let go as it was asked to, or its job ended or was placed anew */
    RANK_ON_FAILURE, /* RankDone with another code */
    RANK_ON_AWAY,    /* its node may have given up on a scheduler that stood still */
    RANK_ON_LOSS,    /* its node is gone, or holds the rank no more */
    RANK_EVENTS
};

enum topo_state { /* of the dynamic cluster */
                  TOPO_INITIALIZING,
                  TOPO_INITIALIZED,
                  TOPO_FINISHED,
                  TOPO_FAILED,
                  TOPO_STATES
};

enum topo_event {
    TOPO_ON_COMPLETE, /* all workers are registered */
    TOPO_ON_TIMEOUT,  /* they were not in time */
    TOPO_ON_SUCCESS,  /* its job SUCCEEDED */
    TOPO_ON_FAILURE,  /* its job FAILED or was CANCELLED */
    TOPO_EVENTS
};

enum job_event {
    JOB_ON_PLACE,   /* enough nodes are idle; generation + 1 */
    JOB_ON_READY,   /* every rank said RankReady */
    JOB_ON_LOSS,    /* a rank was lost, and the job recovers */
    JOB_ON_REQUEUE, /* while ranks were getting ready one was lost, or the scheduler restarted */
    JOB_ON_SUCCESS, /* every rank said RankDone with code 0 */
    JOB_ON_FAILURE, /* a rank failed or was lost */
    JOB_ON_CANCEL,
    JOB_EVENTS
};

extern const struct ms_machine states_of_nodes, states_of_ranks, states_of_topologies,
    states_of_jobs;

#endif
