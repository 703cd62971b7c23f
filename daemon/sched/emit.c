/* emit.c - what an event leads to: effects, and the tick memory that they point into */
#include "daemon/sched/cost.h"
#include "daemon/sched/state.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_BLOCK = 64 << 10,
    LOG_MAX = 1536,
    EFFECTS_KEPT = 4096,
    EVENT_ROW_BYTES = 600 + MS_FACTS_MAX, /* of a frame: a long text, names, numbers */
};

static void add_block(struct sched *s, struct tick_block *block, size_t size)
{
    block->size = size;
    block->used = 0;
    block->next = s->blocks;
    s->blocks = block;
}

bool emit_reserve(struct sched *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (s->blocks != NULL && s->blocks->size - s->blocks->used >= bytes) {
        return true;
    }
    size_t size = bytes > TICK_BLOCK ? bytes : TICK_BLOCK;
    struct tick_block *block = memory_is_spent() ? NULL : malloc(sizeof(*block) + 16 + size);
    if (block == NULL) {
        return false;
    }
    add_block(s, block, size);
    return true;
}

void *emit_alloc(struct sched *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct tick_block *block = s->blocks;
    if (block == NULL || block->size - block->used < bytes) {
        size_t size = bytes > TICK_BLOCK ? bytes : TICK_BLOCK;
        add_block(s, memory_take(sizeof(*block) + 16 + size), size);
        block = s->blocks;
    }
    s->tick_bytes += bytes;
    uint8_t *base = (uint8_t *)(((uintptr_t)(block + 1) + 15) & ~(uintptr_t)15);
    void *p = base + block->used;
    block->used += bytes;
    return p;
}

size_t sched_tick_bytes(const struct sched *s)
{
    return s->tick_bytes;
}

size_t sched_tick_stored(const struct sched *s)
{
    return s->store_bytes;
}

int sched_tick_is_full(const struct sched *s)
{
    return s->store_bytes >= MS_TURN_STORE;
}

/* The block that stays from tick to tick: not the large one of a rare list. */
static void keep_small(struct sched *s)
{
    if (s->blocks != NULL && s->blocks->size > TICK_BLOCK) {
        free(s->blocks);
        s->blocks = NULL;
    }
}

void sched_begin_tick(struct sched *s)
{
    s->n_effects = 0;
    s->tick_bytes = 0;
    s->store_bytes = 0;
    s->stored_job = 0;
    s->news_bytes = 0;
    s->event_reads = 0;
    s->tick_writes = false;
    while (s->blocks != NULL && s->blocks->next != NULL) {
        struct tick_block *next = s->blocks->next;
        free(s->blocks);
        s->blocks = next;
    }
    keep_small(s);
    if (s->blocks != NULL) {
        s->blocks->used = 0;
    }
    if (s->effects_room > EFFECTS_KEPT) {
        free(s->effects);
        s->effects = NULL;
        s->effects_room = 0;
    }
    memory_reserve();
}

int sched_is_starved(const struct sched *s)
{
    (void)s;
    return memory_is_spent();
}

void emit_fini(struct sched *s)
{
    sched_begin_tick(s);
    free(s->blocks);
    free(s->effects);
}

int sched_effect_acknowledges(enum sched_effect_kind kind)
{
    return sched_effect_is_durable(kind) && kind != SCHED_DO_PUT_EVENT &&
           kind != SCHED_DO_DROP_EVENT && kind != SCHED_DO_PUT_ASIDE && kind != SCHED_DO_DROP_ASIDE;
}

static struct sched_effect *emit(struct sched *s, enum sched_effect_kind kind)
{
    if (sched_effect_acknowledges(kind)) {
        stamp_count(s);
    }
    if (s->n_effects == s->effects_room) {
        size_t room = s->effects_room == 0 ? 64 : 2 * s->effects_room;
        s->effects = memory_resize(s->effects, room * sizeof(*s->effects));
        s->effects_room = room;
    }
    struct sched_effect *effect = &s->effects[s->n_effects++];
    memset(effect, 0, sizeof(*effect));
    effect->kind = kind;
    return effect;
}

/* One that the database gets: what it takes there counts (cost.h). */
static void emit_stored(struct sched *s, const struct sched_effect *what)
{
    struct sched_effect *effect = emit(s, what->kind);
    *effect = *what;
    s->store_bytes += sched_effect_cost(effect);
}

const struct sched_effect *sched_effects(const struct sched *s, size_t *ret_n)
{
    *ret_n = s->n_effects;
    return s->effects;
}

int sched_effect_is_durable(enum sched_effect_kind kind)
{
    return kind == SCHED_DO_PUT_JOB || kind == SCHED_DO_PUT_MEMBER ||
           kind == SCHED_DO_DROP_MEMBERS || kind == SCHED_DO_DROP_JOB ||
           kind == SCHED_DO_PUT_PLAN || kind == SCHED_DO_DROP_PLAN || kind == SCHED_DO_PUT_EVENT ||
           kind == SCHED_DO_DROP_EVENT || kind == SCHED_DO_PUT_META || kind == SCHED_DO_PUT_ASIDE ||
           kind == SCHED_DO_DROP_ASIDE;
}

MS_PRINTF(3, 0)
static const char *emit_vtext(struct sched *s, size_t max, const char *fmt, va_list args)
{
    char buf[LOG_MAX];
    int wanted = vsnprintf(buf, max + 1 < sizeof(buf) ? max + 1 : sizeof(buf), fmt, args);
    if (wanted < 0) {
        return "";
    }
    size_t n = strlen(buf);
    n = (size_t)wanted > n ? ms_text_whole(buf, n) : n;
    ms_text_mend((uint8_t *)buf, n, MS_TEXT_LINE); /* texts quote what others said, and cut it */
    char *text = memcpy(emit_alloc(s, n + 1), buf, n);
    text[n] = '\0';
    return text;
}

const char *emit_text(struct sched *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = emit_vtext(s, MS_TEXT_MAX, fmt, args);
    va_end(args);
    return text;
}

const char *emit_quote(struct sched *s, const char *text)
{
    size_t size = 4 * strlen(text) + 3;
    if (size > LOG_MAX / 2) {
        size = LOG_MAX / 2;
    }
    return ms_log_quote(emit_alloc(s, size), size, text);
}

void emit_log(struct sched *s, enum ms_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = emit_vtext(s, LOG_MAX - 1, fmt, args);
    va_end(args);
    struct sched_effect *effect = emit(s, SCHED_DO_LOG);
    effect->level = level;
    effect->text = text;
}

void emit_error(struct sched *s, uint64_t conn, uint32_t id, int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = emit_vtext(s, MS_TEXT_MAX, fmt, args);
    va_end(args);
    Ms__Error msg = MS__ERROR__INIT;
    msg.code = code;
    msg.text = (char *)text;
    emit_send(s, conn, MS_MSG_ERROR, id, &msg.base);
}

static void send_unsent(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
                        const struct ms_err *err)
{
    /* too large or not sendable: the asker learns that, instead of waiting */
    emit_log(s, MS_LOG_ERR, "frame.unsent type=%u reason=%s", type, emit_quote(s, err->text));
    if (type != MS_MSG_ERROR) {
        emit_error(s, conn, id, err->code, "the answer cannot be sent: %s", err->text);
    }
}

/* To a node whose release would drop the line, and its rank with it, over a type it does not know.
 * Who sends such a type asks before and says something better: this is the net below. */
static bool is_too_new(struct sched *s, uint64_t id, uint16_t type)
{
    unsigned since = ms_wire_since(type);
    const struct conn *conn = since > 0 ? conn_find(s, id) : NULL;
    return conn != NULL && conn->node != NULL && conn->node->info.level < since;
}

void emit_send_shared(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
                      const ProtobufCMessage *own, const uint8_t *tail, size_t tail_bytes)
{
    struct ms_err err = {0, ""};
    if (is_too_new(s, conn, type)) {
        emit_log(s, MS_LOG_ERR, "frame.unsent type=%u reason=\"the node's release knows it not\"",
                 type);
        return;
    }
    size_t size = ms_wire_size(own);
    uint8_t *frame = emit_alloc(s, size);
    if (ms_wire_pack_head(type, id, own, tail_bytes, frame, size, &err) < 0) {
        send_unsent(s, conn, type, id, &err);
        return;
    }
    struct sched_effect *effect = emit(s, SCHED_DO_SEND);
    effect->conn = conn;
    effect->frame = frame;
    effect->frame_bytes = size;
    effect->tail = tail;
    effect->tail_bytes = tail_bytes;
}

void emit_send(struct sched *s, uint64_t conn, uint16_t type, uint32_t id,
               const ProtobufCMessage *msg)
{
    emit_send_shared(s, conn, type, id, msg, NULL, 0);
}

const uint8_t *emit_share(struct sched *s, uint16_t type, const ProtobufCMessage *msg,
                          size_t *ret_bytes, struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    uint8_t *frame = emit_alloc(s, size);
    if (ms_wire_pack(type, 0, msg, frame, size, err) < 0) {
        return NULL;
    }
    *ret_bytes = size - MS_WIRE_HEADER;
    return frame + MS_WIRE_HEADER;
}

void sched_effect_join(const struct sched_effect *effect, uint8_t *ret)
{
    memcpy(ret, effect->frame, effect->frame_bytes);
    if (effect->tail_bytes > 0) {
        memcpy(ret + effect->frame_bytes, effect->tail, effect->tail_bytes);
    }
}

void emit_ok(struct sched *s, uint64_t conn, uint32_t id, const char *text)
{
    Ms__Ok msg = MS__OK__INIT;
    msg.text = (char *)text;
    emit_send(s, conn, MS_MSG_OK, id, &msg.base);
}

void emit_close(struct sched *s, uint64_t conn)
{
    emit(s, SCHED_DO_CLOSE)->conn = conn;
}

void emit_put_job(struct sched *s, const struct job *job, bool with_spec)
{
    struct sched_job_row *row = emit_alloc(s, sizeof(*row));
    memset(row, 0, sizeof(*row));
    row->id = job->id;
    row->state = job->state;
    ms_text_copy(row->name, sizeof(row->name), job->name);
    ms_text_copy(row->owner, sizeof(row->owner), job->owner);
    ms_text_copy(row->reason, sizeof(row->reason), job->reason);
    ms_text_copy(row->key, sizeof(row->key), job->key);
    ms_text_copy(row->run_dir, sizeof(row->run_dir), job->run_dir);
    row->workers = job->workers;
    row->n_tries = job->n_tries;
    row->priority = job->priority;
    row->recovery = job->recovery;
    row->code = job->code;
    row->generation = job->generation;
    row->submitted_ms = job->submitted_ms;
    row->started_ms = job->started_ms;
    row->ended_ms = job->ended_ms;
    row->steps = job->steps;
    row->seconds = job->seconds;
    ms_text_copy(row->weights_sha256, sizeof(row->weights_sha256), job->weights_sha256);
    ms_text_copy(row->plan_sha256, sizeof(row->plan_sha256), job->plan_sha256);
    if (job->run != NULL &&
        (job_is_ended(job) || job->run->n_ranks_lost > 0 || job->run->n_evals > 0 ||
         last_is_known(job->run) || job->run->home.step > 0)) {
        results_pack(s, job->run, row);
    }
    if (job->run != NULL && job->run->cancelling) {
        row->cancel_at_step = true;
        ms_text_copy(row->cancel_text, sizeof(row->cancel_text), job->run->cancel_text);
    }
    ms_text_copy(row->plan, sizeof(row->plan), job->plan != NULL ? job->plan->sha256 : "");
    row->plan_given = job->plan_given;
    ms_text_copy(row->spec_sha256, sizeof(row->spec_sha256), job->spec_sha256);
    row->spec_bytes = job->spec_bytes;
    if (with_spec) { /* in tick memory: the job may be dropped before the tick is carried out */
        uint8_t *spec = emit_alloc(s, job->spec_bytes);
        memcpy(spec, job->spec, job->spec_bytes);
        row->spec = spec;
    }
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_PUT_JOB, .job = row});
}

void emit_put_member(struct sched *s, struct job *job, uint32_t rank)
{
    struct member *member = &job->run->members[rank];
    struct sched_member_row *row = emit_alloc(s, sizeof(*row));
    memset(row, 0, sizeof(*row));
    member->unstored = false;
    row->job = job->id;
    row->rank = rank;
    row->incarnation = member->incarnation;
    ms_text_copy(row->node_id, sizeof(row->node_id), member->node_id);
    ms_text_copy(row->host_name, sizeof(row->host_name), member->host_name);
    ms_text_copy(row->log_path, sizeof(row->log_path), member->log_path);
    ms_text_copy(row->principal, sizeof(row->principal), member->principal);
    ms_text_copy(row->state, sizeof(row->state), rank_state_name(member->state));
    row->generation = job->generation;
    row->step = member->step;
    row->pid = member->pid;
    if (s->stored_job != job->id) { /* beside no other that is written */
        s->stored_job = job->id;
        s->store_bytes += MS_STORE_PAGE;
    }
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_PUT_MEMBER, .member = row});
}

void emit_drop_members(struct sched *s, const struct job *job)
{
    emit_stored(s, &(struct sched_effect){
                       .kind = SCHED_DO_DROP_MEMBERS, .job_id = job->id, .workers = job->workers});
}

void emit_drop_job(struct sched *s, uint64_t job)
{
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_DROP_JOB, .job_id = job});
}

void emit_put_plan(struct sched *s, const char *sha256, const char *text, size_t bytes)
{
    struct sched_plan_row *row = emit_alloc(s, sizeof(*row));
    ms_text_copy(row->sha256, sizeof(row->sha256), sha256);
    row->text = memcpy(emit_alloc(s, bytes + 1), text, bytes + 1); /* as a spec: it may go before */
    row->bytes = bytes;
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_PUT_PLAN, .plan = row});
}

void emit_drop_plan(struct sched *s, const char *sha256)
{
    struct sched_plan_row *row = emit_alloc(s, sizeof(*row));
    *row = (struct sched_plan_row){.text = NULL};
    ms_text_copy(row->sha256, sizeof(row->sha256), sha256);
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_DROP_PLAN, .plan = row});
}

void emit_put_aside(struct sched *s, const struct sched_aside_row *aside)
{
    struct sched_aside_row *row = emit_alloc(s, sizeof(*row));
    *row = *aside;
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_PUT_ASIDE, .aside = row});
}

void emit_drop_aside(struct sched *s, const char *key)
{
    struct sched_aside_row *row = emit_alloc(s, sizeof(*row));
    *row = (struct sched_aside_row){.until_ms = 0};
    ms_text_copy(row->key, sizeof(row->key), key);
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_DROP_ASIDE, .aside = row});
}

void emit_put_event(struct sched *s, const struct sched_event_row *row)
{
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_PUT_EVENT, .event = row});
}

void emit_drop_event(struct sched *s, uint64_t seq)
{
    emit_stored(s, &(struct sched_effect){.kind = SCHED_DO_DROP_EVENT, .event_seq = seq});
}

void emit_put_meta(struct sched *s, const char *key, uint64_t value)
{
    emit_stored(
        s, &(struct sched_effect){.kind = SCHED_DO_PUT_META, .meta_key = key, .meta_value = value});
}

static void *tick_alloc(void *s, size_t bytes)
{
    return emit_alloc(s, bytes);
}

static void tick_free(void *s, void *p)
{
    (void)s; /* with the tick */
    (void)p;
}

/* A copy of a message that lies in tick memory down to its texts. */
static ProtobufCMessage *tick_copy(struct sched *s, const ProtobufCMessage *msg)
{
    ProtobufCAllocator tick = {tick_alloc, tick_free, s};
    size_t size = protobuf_c_message_get_packed_size(msg);
    uint8_t *bytes = emit_alloc(s, size);
    protobuf_c_message_pack(msg, bytes);
    ProtobufCMessage *copy = protobuf_c_message_unpack(msg->descriptor, &tick, size, bytes);
    assert(copy != NULL); /* these are the bytes that we packed */
    return copy;
}

/* The driver packs the answer after the tick, when the job may be gone: nothing of it is borrowed.
 */
void emit_read_job(struct sched *s, uint64_t conn, uint32_t id, enum sched_read_kind what,
                   const Ms__JobList *list)
{
    struct sched_read *read = emit_alloc(s, sizeof(*read));
    *read = (struct sched_read){.kind = what,
                                .frame_id = id,
                                .job = list->jobs[0]->id,
                                .list = (Ms__JobList *)tick_copy(s, &list->base)};
    struct sched_effect *effect = emit(s, SCHED_DO_READ);
    effect->conn = conn;
    effect->read = read;
}

void emit_read_events(struct sched *s, uint64_t conn, const struct sched_read *from)
{
    struct sched_read *read = emit_alloc(s, sizeof(*read));
    *read = *from;
    read->node_id = emit_text(s, "%s", from->node_id);
    const size_t bytes = (size_t)read->limit * EVENT_ROW_BYTES;
    s->tick_bytes += bytes < MS_EVENTS_BYTES ? bytes : MS_EVENTS_BYTES;
    struct sched_effect *effect = emit(s, SCHED_DO_READ);
    effect->conn = conn;
    effect->read = read;
}

void emit_exit(struct sched *s, int status, const char *text)
{
    struct sched_effect *effect = emit(s, SCHED_DO_EXIT);
    effect->status = status;
    effect->text = emit_text(s, "%s", text);
}
