/* state_words.h - states as messages name them
 *
 * Who says one, and who compares it with what he was told, has it from here: a word of one kind
 * that is written in the letters of another ("LOST" is a node, "lost" a rank) is found by no test
 * that writes it in the same way. What a database says is its own (daemon/store/sql.c). */
#ifndef MS_STATE_WORDS_H
#define MS_STATE_WORDS_H

/* JobInfo.state */
#define MS_JOB_STATE_QUEUED     "QUEUED"
#define MS_JOB_STATE_PLACING    "PLACING"
#define MS_JOB_STATE_RUNNING    "RUNNING"
#define MS_JOB_STATE_RECOVERING "RECOVERING"
#define MS_JOB_STATE_SUCCEEDED  "SUCCEEDED"
#define MS_JOB_STATE_FAILED     "FAILED"
#define MS_JOB_STATE_CANCELLED  "CANCELLED"

/* NodeInfo.state */
#define MS_NODE_STATE_NEW        "NEW"
#define MS_NODE_STATE_REGISTERED "REGISTERED"
#define MS_NODE_STATE_LOST       "LOST"
#define MS_NODE_STATE_LEFT       "LEFT"

/* RankInfo.state */
#define MS_RANK_STATE_MISSING   "missing"
#define MS_RANK_STATE_PREPARING "preparing"
#define MS_RANK_STATE_READY     "ready"
#define MS_RANK_STATE_TRAINING  "training"
#define MS_RANK_STATE_HOLDING   "holding" /* training, while its job stands still */
#define MS_RANK_STATE_DONE      "done"
#define MS_RANK_STATE_STOPPED   "stopped"
#define MS_RANK_STATE_FAILED    "failed"
#define MS_RANK_STATE_LOST      "lost"

/* Progress.phase */
#define MS_PHASE_PREPARING  "preparing"
#define MS_PHASE_TRAINING   "training"
#define MS_PHASE_EVALUATING "evaluating"
#define MS_PHASE_SAVING     "saving"

/* How the reason of a job begins that waits for its weights to be saved; ... for somebody to make
 * room for them. */
#define MS_REASON_ALL_MADE "all steps are made"
#define MS_REASON_UNSAVED  MS_REASON_ALL_MADE ", and "

/* Begins the sentence of a rank's last word that says why its job made fewer steps than it might.
 */
#define MS_TEXT_ENDED_EARLY "it ended early"

#endif
