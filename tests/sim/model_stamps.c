/* model_stamps.c - the model's stamps: what was acknowledged is proved by who was told */
#include "tests/sim/model.h"

#include <string.h>

typedef unsigned long long ull;

enum { NUMBER = 8 };

static uint64_t number_of(const ProtobufCBinaryData *stamp)
{
    uint64_t n = 0;
    for (size_t i = 0; i < NUMBER; i++) {
        n = n << 8 | stamp->data[i];
    }
    return n;
}

static const struct m_seal *find(const struct model *m, uint64_t number)
{
    for (size_t i = m->seals.n; i > 0; i--) {
        if (m->seals.at[i - 1].number == number) {
            return &m->seals.at[i - 1];
        }
    }
    return NULL;
}

/* It covers all that this tick wrote, nothing that it did not, and looks like no other. */
void m_judge_stamp(struct model *m, const char *who, const ProtobufCBinaryData *stamp)
{
    if (stamp->len != MS_STAMP_LEN || number_of(stamp) != m->ticks) {
        sim_fail(m->w, "model: %s is told a stamp of %zu bytes about tick %llu, and this is %llu",
                 who, stamp->len, stamp->len >= NUMBER ? (ull)number_of(stamp) : 0, (ull)m->ticks);
        return;
    }
    const struct m_seal *seal = find(m, m->ticks);
    const struct m_seal *before = m->ticks > 0 ? find(m, m->ticks - 1) : NULL;
    if ((seal != NULL && memcmp(seal->bytes, stamp->data, MS_STAMP_LEN) != 0) ||
        (before != NULL &&
         memcmp(before->bytes + NUMBER, stamp->data + NUMBER, MS_STAMP_LEN - NUMBER) == 0)) {
        sim_fail(m->w, "model: the stamp of tick %llu is sealed wrongly", (ull)m->ticks);
    } else if (seal == NULL) {
        struct m_seal *more = M_MORE(m->seals, struct m_seal);
        more->number = m->ticks;
        memcpy(more->bytes, stamp->data, MS_STAMP_LEN);
    }
}

/* Nobody was told this: who brings it made it up. */
bool m_stamp_is_false(const struct model *m, const ProtobufCBinaryData *stamp)
{
    const struct m_seal *seal = stamp->len == MS_STAMP_LEN ? find(m, number_of(stamp)) : NULL;
    return stamp->len > 0 && (seal == NULL || memcmp(seal->bytes, stamp->data, MS_STAMP_LEN) != 0);
}
