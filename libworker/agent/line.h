/* line.h - the connection to the scheduler: connect, register, beat, knock again
 *
 *     DOWN --retry--> CONNECTING --Welcome--> REGISTERING --Registered--> UP --agent_destroy-->
 * LEAVING ^----------------- any end, with its reason -----------------'
 *
 * The agent's thread only. */
#ifndef LINE_H
#define LINE_H

#include "libworker/agent/agent.h"
#include "libworker/agent/retry.h"
#include "proto/conn.h"

#include <event2/event.h>

enum line_state { LINE_DOWN, LINE_CONNECTING, LINE_REGISTERING, LINE_UP, LINE_LEAVING };

enum { LINE_REGISTER_ID = 1 }; /* frame id of the only request that the agent makes */

struct line {
    enum line_state state;
    struct ms_conn *conn;
    struct event *beat, *retry, *deadline; /* deadline: see connect_timeout_ms */
    int is_late;                           /* it is over but for an answer that is awaited */
    int64_t contact_ms, down_since_ms, waited_log_ms, other_log_ms;
    int64_t beat_due_ms;
    int64_t
        register_due_ms; /* REGISTERING: the answer has come by then; 0: or soon, for we leave */
    int64_t lease_ms, beat_ms;
    int ever_registered, lost_told, silence_told, held_told;
    struct retry tries;
    uint64_t jitter, draws;
    uint8_t stamp[MS_STAMP_LEN]; /* the last one that a scheduler told, to be brought back */
    size_t stamp_bytes;          /* 0: none yet */
    char last[MS_TEXT_MAX + 1];  /* why the last attempt failed */
};

int line_init(struct line *line, struct agent *agent, struct ms_err *err);
void line_fini(struct line *line);

/* Begins to connect. */
void line_connect(struct agent *agent);
/* A heartbeat out of turn: what the rank in hand does has changed. Nothing where the line is down.
 */
void line_beat(struct agent *agent);
/* Something was heard. */
void line_heard(struct line *line);
/* Registered has come. */
void line_up(struct agent *agent, const Ms__Registered *msg);
/* The times of a heartbeat's answer; what no scheduler of ours says is ignored. */
void line_set_times(struct line *line, uint64_t lease_ms, uint64_t beat_ms);
/* Proof of what the scheduler has acknowledged. */
void line_take_stamp(struct line *line, const ProtobufCBinaryData *stamp);
/* Register was answered with an Error. */
void line_refused(struct agent *agent, const Ms__Error *msg);
/* Another certificate: a line that is down tries it at once. */
void line_hurry(struct agent *agent);
/* The process ends: Leave, where there is a line, then the loop ends. May be called again. */
void line_leave(struct agent *agent);

#endif
