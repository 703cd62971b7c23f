/* states.c - the transition tables */
#include "daemon/sched/states.h"

#include "proto/state_words.h"

static const char *const node_states[NODE_STATES] = {
    [NODE_NEW] = MS_NODE_STATE_NEW,
    [NODE_REGISTERED] = MS_NODE_STATE_REGISTERED,
    [NODE_LOST] = MS_NODE_STATE_LOST,
    [NODE_LEFT] = MS_NODE_STATE_LEFT,
};
static const char *const node_events[NODE_EVENTS] = {"register", "loss", "leave", "away"};
static const struct ms_rule node_rules[] = {
    {NODE_NEW, NODE_ON_REGISTER, NODE_REGISTERED},
    {NODE_NEW, NODE_ON_LOSS, NODE_LOST},
    {NODE_REGISTERED, NODE_ON_REGISTER, NODE_REGISTERED},
    {NODE_REGISTERED, NODE_ON_LOSS, NODE_LOST},
    {NODE_REGISTERED, NODE_ON_LEAVE, NODE_LEFT},
    {NODE_REGISTERED, NODE_ON_AWAY, NODE_NEW},
    {NODE_LOST, NODE_ON_REGISTER, NODE_REGISTERED},
    {NODE_LEFT, NODE_ON_REGISTER, NODE_REGISTERED},
};

/* A rank that is over can still be lost while its job goes on: its node is. */
static const char *const rank_states[RANK_STATES] = {"MISSING", "PREPARING", "READY",  "TRAINING",
                                                     "DONE",    "STOPPED",   "FAILED", "LOST"};
static const char *const rank_events[RANK_EVENTS] = {
    "assign", "return", "resume", "ready", "start", "done", "stop", "failure", "away", "loss"};
static const struct ms_rule rank_rules[] = {
    {RANK_LOST, RANK_ON_ASSIGN, RANK_PREPARING},
    {RANK_LOST, RANK_ON_RESUME, RANK_TRAINING},
    {RANK_PREPARING, RANK_ON_ASSIGN, RANK_PREPARING},
    {RANK_READY, RANK_ON_ASSIGN, RANK_PREPARING},
    {RANK_TRAINING, RANK_ON_ASSIGN, RANK_PREPARING},
    {RANK_DONE, RANK_ON_ASSIGN, RANK_PREPARING},
    {RANK_DONE, RANK_ON_AWAY, RANK_MISSING},
    {RANK_MISSING, RANK_ON_RETURN, RANK_PREPARING},
    {RANK_MISSING, RANK_ON_RESUME, RANK_TRAINING},
    {RANK_MISSING, RANK_ON_STOP, RANK_LOST},
    {RANK_MISSING, RANK_ON_LOSS, RANK_LOST},
    {RANK_PREPARING, RANK_ON_READY, RANK_READY},
    {RANK_PREPARING, RANK_ON_RESUME, RANK_TRAINING}, /* its round is called off */
    {RANK_PREPARING, RANK_ON_DONE, RANK_DONE},
    {RANK_PREPARING, RANK_ON_STOP, RANK_STOPPED},
    {RANK_PREPARING, RANK_ON_FAILURE, RANK_FAILED},
    {RANK_PREPARING, RANK_ON_AWAY, RANK_MISSING},
    {RANK_PREPARING, RANK_ON_LOSS, RANK_LOST},
    {RANK_READY, RANK_ON_START, RANK_TRAINING},
    {RANK_READY, RANK_ON_RESUME, RANK_TRAINING},
    {RANK_READY, RANK_ON_STOP, RANK_STOPPED},
    {RANK_READY, RANK_ON_FAILURE, RANK_FAILED},
    {RANK_READY, RANK_ON_AWAY, RANK_MISSING},
    {RANK_READY, RANK_ON_LOSS, RANK_LOST},
    {RANK_TRAINING, RANK_ON_DONE, RANK_DONE},
    {RANK_TRAINING, RANK_ON_STOP, RANK_STOPPED},
    {RANK_TRAINING, RANK_ON_FAILURE, RANK_FAILED},
    {RANK_TRAINING, RANK_ON_AWAY, RANK_MISSING},
    {RANK_TRAINING, RANK_ON_LOSS, RANK_LOST},
    {RANK_DONE, RANK_ON_LOSS, RANK_LOST},
    {RANK_STOPPED, RANK_ON_LOSS, RANK_LOST},
    {RANK_FAILED, RANK_ON_LOSS, RANK_LOST},
};

static const char *const topo_states[TOPO_STATES] = {"INITIALIZING", "INITIALIZED", "FINISHED",
                                                     "FAILED"};
static const char *const topo_events[TOPO_EVENTS] = {"complete", "timeout", "success", "failure"};
static const struct ms_rule topo_rules[] = {
    {TOPO_INITIALIZING, TOPO_ON_COMPLETE, TOPO_INITIALIZED},
    {TOPO_INITIALIZING, TOPO_ON_TIMEOUT, TOPO_FAILED},
    {TOPO_INITIALIZED, TOPO_ON_SUCCESS, TOPO_FINISHED},
    {TOPO_INITIALIZED, TOPO_ON_FAILURE, TOPO_FAILED},
};

static const char *const job_states[JOB_STATES] = {
    [JOB_QUEUED] = MS_JOB_STATE_QUEUED,       [JOB_PLACING] = MS_JOB_STATE_PLACING,
    [JOB_RUNNING] = MS_JOB_STATE_RUNNING,     [JOB_RECOVERING] = MS_JOB_STATE_RECOVERING,
    [JOB_SUCCEEDED] = MS_JOB_STATE_SUCCEEDED, [JOB_FAILED] = MS_JOB_STATE_FAILED,
    [JOB_CANCELLED] = MS_JOB_STATE_CANCELLED,
};
static const char *const job_events[JOB_EVENTS] = {"place",   "ready",   "loss",  "requeue",
                                                   "success", "failure", "cancel"};
static const struct ms_rule job_rules[] = {
    {JOB_QUEUED, JOB_ON_PLACE, JOB_PLACING},        {JOB_QUEUED, JOB_ON_CANCEL, JOB_CANCELLED},
    {JOB_PLACING, JOB_ON_READY, JOB_RUNNING},       {JOB_PLACING, JOB_ON_REQUEUE, JOB_QUEUED},
    {JOB_PLACING, JOB_ON_FAILURE, JOB_FAILED},      {JOB_PLACING, JOB_ON_CANCEL, JOB_CANCELLED},
    {JOB_RUNNING, JOB_ON_SUCCESS, JOB_SUCCEEDED},   {JOB_RUNNING, JOB_ON_FAILURE, JOB_FAILED},
    {JOB_RUNNING, JOB_ON_CANCEL, JOB_CANCELLED},    {JOB_RUNNING, JOB_ON_LOSS, JOB_RECOVERING},
    {JOB_RECOVERING, JOB_ON_READY, JOB_RUNNING},    {JOB_RECOVERING, JOB_ON_FAILURE, JOB_FAILED},
    {JOB_RECOVERING, JOB_ON_CANCEL, JOB_CANCELLED}, {JOB_RECOVERING, JOB_ON_SUCCESS, JOB_SUCCEEDED},
};

const struct ms_machine states_of_nodes = {"node",
                                           node_states,
                                           node_events,
                                           NODE_STATES,
                                           NODE_EVENTS,
                                           node_rules,
                                           MS_ARRAY_SIZE(node_rules)};
const struct ms_machine states_of_ranks = {"rank",
                                           rank_states,
                                           rank_events,
                                           RANK_STATES,
                                           RANK_EVENTS,
                                           rank_rules,
                                           MS_ARRAY_SIZE(rank_rules)};
const struct ms_machine states_of_topologies = {"topology",
                                                topo_states,
                                                topo_events,
                                                TOPO_STATES,
                                                TOPO_EVENTS,
                                                topo_rules,
                                                MS_ARRAY_SIZE(topo_rules)};
const struct ms_machine states_of_jobs = {
    "job", job_states, job_events, JOB_STATES, JOB_EVENTS, job_rules, MS_ARRAY_SIZE(job_rules)};
