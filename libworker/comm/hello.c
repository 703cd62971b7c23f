/* hello.c - the first bytes on every data-plane connection, and who is let in */
#include "libworker/comm/hello.h"

#include "libworker/comm/bytes.h"

#include <openssl/crypto.h>
#include <string.h>

static const uint8_t magic[4] = {'M', 'S', 'H', '1'};

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES])
{
    memcpy(bytes, magic, sizeof(magic));
    put_u16(bytes + 4, hello->version);
    put_u16(bytes + 6, hello->type);
    put_u64(bytes + 8, hello->job);
    put_u64(bytes + 16, hello->generation);
    put_u32(bytes + 24, hello->rank);
    put_u32(bytes + 28, hello->peer);
    put_u32(bytes + 32, hello->world);
    put_u32(bytes + 36, hello->reason);
    put_u64(bytes + 40, hello->exchange_count);
    put_u64(bytes + 48, hello->segment_bytes);
    put_u32(bytes + 56, hello->group);
    put_u32(bytes + 60, 0);
    memcpy(bytes + 64, hello->token, MS_TOKEN_LEN);
}

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *ret, struct ms_err *err)
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "the first bytes are %02x %02x %02x %02x, no hello of the data plane",
                       bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    struct hello hello = {
        .version = get_u16(bytes + 4),
        .type = get_u16(bytes + 6),
        .job = get_u64(bytes + 8),
        .generation = get_u64(bytes + 16),
        .rank = get_u32(bytes + 24),
        .peer = get_u32(bytes + 28),
        .world = get_u32(bytes + 32),
        .reason = get_u32(bytes + 36),
        .exchange_count = get_u64(bytes + 40),
        .segment_bytes = get_u64(bytes + 48),
        .group = get_u32(bytes + 56),
    };
    memcpy(hello.token, bytes + 64, MS_TOKEN_LEN);
    if (hello.type < HELLO_ASK || hello.type > HELLO_REFUSED) {
        return ms_fail(err, MS_E_PROTOCOL, "hello of the unknown type %u", hello.type);
    }
    if (get_u32(bytes + 60) != 0 || hello.reason >= HELLO_REASONS ||
        (hello.reason != HELLO_OK) != (hello.type == HELLO_REFUSED)) {
        return ms_fail(err, MS_E_PROTOCOL, "hello with values that its type does not have");
    }
    *ret = hello;
    return 0;
}

enum hello_reason hello_judge(const struct hello *mine, const struct hello *theirs)
{
    if (theirs->version != mine->version) {
        return HELLO_BAD_VERSION;
    }
    if (theirs->job != mine->job) {
        return HELLO_BAD_JOB;
    }
    if (theirs->generation != mine->generation) {
        return theirs->generation < mine->generation ? HELLO_OLD_GENERATION : HELLO_NEW_GENERATION;
    }
    if (CRYPTO_memcmp(theirs->token, mine->token, MS_TOKEN_LEN) != 0) {
        return HELLO_BAD_TOKEN;
    }
    if (theirs->group != mine->group) {
        return HELLO_BAD_GROUP;
    }
    if (theirs->world != mine->world) {
        return HELLO_BAD_WORLD;
    }
    if (theirs->rank != mine->peer || theirs->peer != mine->rank) {
        return HELLO_BAD_RANK;
    }
    if (theirs->exchange_count != mine->exchange_count) {
        return HELLO_BAD_EXCHANGE;
    }
    if (theirs->segment_bytes != mine->segment_bytes) {
        return HELLO_BAD_TRANSPORT;
    }
    return HELLO_OK;
}

int hello_may_retry(enum hello_reason reason)
{
    /* a job that the other still winds up, a generation it has not heard of yet, a connection of
     * ours whose end it has not seen yet */
    return reason == HELLO_BAD_JOB || reason == HELLO_NEW_GENERATION || reason == HELLO_DUPLICATE;
}

int hello_fail(enum hello_reason reason, const struct hello *mine, const struct hello *theirs,
               const char *who, struct ms_err *err)
{
    unsigned long long a = 0;
    unsigned long long b = 0;
    const char *what = NULL;
    switch (reason) {
    case HELLO_BAD_VERSION:
        what = "version of the data plane; install the same release on all nodes";
        a = theirs->version;
        b = mine->version;
        break;
    case HELLO_BAD_JOB:
        what = "job";
        a = theirs->job;
        b = mine->job;
        break;
    case HELLO_OLD_GENERATION:
    case HELLO_NEW_GENERATION:
        what = "generation of the job";
        a = theirs->generation;
        b = mine->generation;
        break;
    case HELLO_BAD_WORLD:
        what = "number of ranks";
        a = theirs->world;
        b = mine->world;
        break;
    case HELLO_BAD_GROUP:
        what = "number of the group of ranks; the programs of the ranks differ";
        a = theirs->group;
        b = mine->group;
        break;
    case HELLO_BAD_EXCHANGE:
        what = "size of the exchange buffer in elements; the plans of the ranks differ";
        a = theirs->exchange_count;
        b = mine->exchange_count;
        break;
    case HELLO_BAD_TRANSPORT:
        what = "bytes of shared memory; one of the two takes the other for a rank of its host";
        a = theirs->segment_bytes;
        b = mine->segment_bytes;
        break;
    case HELLO_BAD_TOKEN:
        return ms_fail(err, MS_E_REFUSED,
                       "%s presents another token for generation %llu of job %llu", who,
                       (unsigned long long)mine->generation, (unsigned long long)mine->job);
    case HELLO_BAD_RANK:
        return ms_fail(err, MS_E_REFUSED,
                       "%s speaks as rank %u to rank %u, but this is rank %u: two nodes hold the "
                       "same address",
                       who, theirs->rank, theirs->peer, mine->rank);
    case HELLO_DUPLICATE:
        return ms_fail(err, MS_E_REFUSED, "%s has a connection to this rank already", who);
    case HELLO_OK:
    case HELLO_REASONS:
        return ms_fail(err, MS_E_REFUSED, "%s refused without a reason", who);
    }
    const int code = reason == HELLO_OLD_GENERATION ? MS_E_ABORTED : MS_E_REFUSED;
    return ms_fail(err, code, "%s and this rank disagree: %llu there, %llu here (%s)", who, a, b,
                   what);
}
