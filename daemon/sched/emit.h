/* emit.h - effects, and the tick memory that they point into */
#ifndef SCHED_EMIT_H
#define SCHED_EMIT_H

#include "daemon/sched/sched.h"
#include "proto/macros.h"
#include "proto/text.h" /* ms_text_copy: what all parts write their texts with */

#include <stdbool.h>
#include <stddef.h>

struct job;
struct sched;

struct tick_block {
    struct tick_block *next;
    size_t size, used;
};

/* Room for an answer of so many bytes; false: refuse the request. Never touches the reserve of
 * memory.h. */
bool emit_reserve(struct sched *s, size_t bytes);
void *emit_alloc(struct sched *s, size_t bytes);
const char *emit_text(struct sched *s, const char *fmt, ...) MS_PRINTF(2, 3); /* <= MS_TEXT_MAX */
const char *emit_quote(struct sched *s, const char *text);
void emit_log(struct sched *s, enum ms_log_level level, const char *fmt, ...) MS_PRINTF(3, 4);
void emit_send(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
               const ProtobufCMessage *msg);
/* What the frames of many readers have in common, packed and checked once; NULL: it cannot be sent,
 * err says why. */
const uint8_t *emit_share(struct sched *s, uint16_t type, const ProtobufCMessage *msg,
                          size_t *ret_bytes, struct ms_err *err);
/* One of those frames: own has the fields that are different for each, the shared ones unset. */
void emit_send_shared(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
                      const ProtobufCMessage *own, const uint8_t *tail, size_t tail_bytes);
void emit_error(struct sched *s, uint64_t conn, uint32_t id, int code, const char *fmt, ...)
    MS_PRINTF(5, 6);
void emit_ok(struct sched *s, uint64_t conn, uint32_t id, const char *text);
void emit_close(struct sched *s, uint64_t conn);
void emit_put_job(struct sched *s, const struct job *job, bool with_spec);
void emit_put_member(struct sched *s, struct job *job, uint32_t rank);
void emit_drop_members(struct sched *s, const struct job *job);
void emit_drop_job(struct sched *s, uint64_t job);
void emit_put_plan(struct sched *s, const char *sha256, const char *text, size_t bytes);
void emit_drop_plan(struct sched *s, const char *sha256);
void emit_put_aside(struct sched *s, const struct sched_aside_row *aside); /* copied */
void emit_drop_aside(struct sched *s, const char *key);
void emit_put_event(struct sched *s, const struct sched_event_row *row); /* in tick memory */
void emit_drop_event(struct sched *s, uint64_t seq);
void emit_put_meta(struct sched *s, const char *key, uint64_t value);
/* list holds one job that lacks its spec, or its plan, and is in tick memory. */
void emit_read_job(struct sched *s, uint64_t conn, uint32_t id, enum sched_read_kind what,
                   const Ms__JobList *list);
/* The bytes of such an answer are not taken here, and count all the same. */
void emit_read_events(struct sched *s, uint64_t conn, const struct sched_read *read);
void emit_exit(struct sched *s, int status, const char *text);
void emit_fini(struct sched *s);
char *dup_text(const char *text); /* from memory.h: never NULL */

#endif
