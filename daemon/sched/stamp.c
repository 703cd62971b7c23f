/* stamp.c - proof that the database still holds what was acknowledged */
#include "daemon/sched/stamp.h"

#include "daemon/sched/state.h"
#include "proto/digest.h"

#include <string.h>

enum { NUMBER = 8, SEAL = MS_STAMP_LEN - NUMBER, BLOCK = 64, EXIT_CONFIG = 78 };

typedef unsigned long long ull;

static void keyed(const uint8_t key[MS_TOKEN_LEN], uint8_t pad, const void *data, size_t size,
                  uint8_t ret[MS_SHA256_BYTES])
{
    uint8_t bytes[BLOCK + 64];
    memset(bytes, pad, BLOCK);
    for (size_t i = 0; i < MS_TOKEN_LEN; i++) {
        bytes[i] ^= key[i];
    }
    memcpy(bytes + BLOCK, data, size);
    ms_sha256(bytes, BLOCK + size, ret);
}

/* HMAC (RFC 2104) of one short text. */
static void hmac(const uint8_t key[MS_TOKEN_LEN], const void *text, size_t size, uint8_t ret[SEAL])
{
    uint8_t inner[MS_SHA256_BYTES];
    uint8_t outer[MS_SHA256_BYTES];
    keyed(key, 0x36, text, size, inner);
    keyed(key, 0x5c, inner, sizeof(inner), outer);
    memcpy(ret, outer, SEAL);
}

static void seal(const struct sched *s, const uint8_t number[NUMBER], uint8_t ret[SEAL])
{
    static const char what[] = "msched stamp";
    uint8_t text[sizeof(what) - 1 + NUMBER];
    memcpy(text, what, sizeof(what) - 1);
    memcpy(text + sizeof(what) - 1, number, NUMBER);
    hmac(s->cfg.stamp_secret, text, sizeof(text), ret);
}

static void put_number(uint8_t ret[NUMBER], uint64_t value)
{
    for (size_t i = 0; i < NUMBER; i++) {
        ret[i] = (uint8_t)(value >> (8 * (NUMBER - 1 - i)));
    }
}

/* Without a database no number outlives this process, and neither does its secret. */
const char *job_tag(struct sched *s, const struct job *job)
{
    static const char what[] = "msched job";
    uint8_t text[sizeof(what) - 1 + 2 * NUMBER];
    uint8_t tag[SEAL];
    _Static_assert(MS_JOB_TAG_LEN == 2 * SEAL, "a tag is a seal in hexadecimal");
    memcpy(text, what, sizeof(what) - 1);
    put_number(text + sizeof(what) - 1, job->id);
    put_number(text + sizeof(what) - 1 + NUMBER, (uint64_t)job->submitted_ms);
    hmac(s->cfg.has_database ? s->cfg.stamp_secret : s->cfg.secret, text, sizeof(text), tag);
    char *hex = emit_alloc(s, MS_JOB_TAG_LEN + 1);
    for (size_t i = 0; i < SEAL; i++) {
        hex[2 * i] = "0123456789abcdef"[tag[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[tag[i] & 15];
    }
    hex[MS_JOB_TAG_LEN] = '\0';
    return hex;
}

void stamp_count(struct sched *s)
{
    if (!s->tick_writes && s->cfg.has_database) {
        s->tick_writes = true;
        s->ticks++;
        emit_put_meta(s, "ticks", s->ticks);
    }
}

ProtobufCBinaryData stamp_now(struct sched *s)
{
    ProtobufCBinaryData stamp = {0, NULL};
    if (!s->cfg.has_database) {
        return stamp;
    }
    if (!s->stamp_made || s->stamp_ticks != s->ticks) { /* ten thousand nodes are told the same */
        put_number(s->stamp, s->ticks);
        seal(s, s->stamp, s->stamp + NUMBER);
        s->stamp_ticks = s->ticks;
        s->stamp_made = true;
    }
    stamp.data = memcpy(emit_alloc(s, MS_STAMP_LEN), s->stamp, MS_STAMP_LEN);
    stamp.len = MS_STAMP_LEN;
    return stamp;
}

static void stop_for_loss(struct sched *s, const char *who, uint64_t ticks)
{
    const char *text =
        emit_text(s,
                  "the database lacks writes that were acknowledged: it is at %llu, and %.100s was "
                  "told %llu. Put the newest copy back, or accept the loss: start once with "
                  "--accept-loss (msschedd(8) has the line)",
                  (ull)s->ticks, who, (ull)ticks);
    emit_log(s, MS_LOG_ERR, "scheduler.writes_missing ticks=%llu told=%llu peer=%s text=%s",
             (ull)s->ticks, (ull)ticks, emit_quote(s, who), emit_quote(s, text));
    ms_text_copy(s->refusal, sizeof(s->refusal), text);
    s->refuses_ends = true;
    s->draining = true;
    s->loss_proved = true;
    emit_exit(s, EXIT_CONFIG, text);
}

bool stamp_is_foreign(const struct sched *s, const ProtobufCBinaryData *stamp)
{
    uint8_t want[SEAL];
    if (stamp->len == 0 || !s->cfg.has_database) {
        return false;
    }
    uint8_t differ = stamp->len != MS_STAMP_LEN;
    if (!differ) {
        seal(s, stamp->data, want);
        for (size_t i = 0; i < SEAL; i++) {
            differ |= (uint8_t)(want[i] ^ stamp->data[NUMBER + i]);
        }
    }
    return differ != 0;
}

void stamp_refuse_foreign(struct sched *s, const struct conn *conn, uint32_t frame_id)
{
    emit_log(s, MS_LOG_WARNING, "conn.foreign_stamp peer=%s text=\"refused\"",
             emit_quote(s, conn->peer.who.id));
    emit_error(s, conn->id, frame_id, MS_E_FOREIGN,
               "what this scheduler is said to have acknowledged was not sealed by its "
               "database: another database is in its place (a new one, one that is not "
               "mounted), or somebody made it up");
}

bool stamp_is_ahead(struct sched *s, const struct conn *conn, uint32_t frame_id,
                    const ProtobufCBinaryData *stamp)
{
    uint64_t ticks = 0;
    if (stamp->len == 0 || !s->cfg.has_database) {
        return false;
    }
    for (size_t i = 0; i < NUMBER; i++) {
        ticks = ticks << 8 | stamp->data[i];
    }
    if (ticks <= s->ticks) {
        return false;
    }
    if (!s->loss_proved) {
        stop_for_loss(s, conn->peer.who.id, ticks);
    }
    emit_error(s, conn->id, frame_id, MS_E_CLOSED, "%s", s->refusal);
    return true;
}

bool stamp_refused(struct sched *s, const struct conn *conn, uint32_t frame_id,
                   const ProtobufCBinaryData *stamp)
{
    if (!stamp_is_foreign(s, stamp)) {
        return stamp_is_ahead(s, conn, frame_id, stamp);
    }
    stamp_refuse_foreign(s, conn, frame_id);
    return true;
}
