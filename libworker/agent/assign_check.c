/* assign_check.c - is an Assign one that can be carried out?
 *
 * The wire's limits say how long each field may be; only here is known which fields must agree. A
 * scheduler of another release, or one that only pretends to be a scheduler, gets words. */
#include "libworker/agent/assign_check.h"

#include "proto/addr.h"
#include "proto/limits.h"
#include "proto/wire.h"

#include <inttypes.h>

static int check_numbers(const Ms__Assign *assign, struct ms_err *err)
{
    if (assign->job == 0 || assign->generation == 0) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "generation %" PRIu64 " of job %" PRIu64 ": both count "
                       "from 1",
                       assign->generation, assign->job);
    }
    if (assign->world_size == 0 || assign->world_size > MS_WORKERS_MAX) {
        return ms_fail(err, MS_E_PROTOCOL, "%u ranks: a job has 1 to %d", assign->world_size,
                       MS_WORKERS_MAX);
    }
    if (assign->rank >= assign->world_size) {
        return ms_fail(err, MS_E_PROTOCOL, "rank %u of %u: ranks count from 0", assign->rank,
                       assign->world_size);
    }
    return 0;
}

static int check_plan_from(const Ms__Assign *assign, struct ms_err *err)
{
    if (assign->plan_from > MS_PLAN_GIVEN) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "its plan comes from a place with the number %u, which this release does "
                       "not know",
                       assign->plan_from);
    }
    return 0;
}

static int check_bytes(const Ms__Assign *assign, struct ms_err *err)
{
    if (assign->token.len != MS_TOKEN_LEN) {
        return ms_fail(err, MS_E_PROTOCOL, "a token of %zu bytes: it has %d", assign->token.len,
                       MS_TOKEN_LEN);
    }
    if (assign->job_json.len == 0) {
        return ms_fail(err, MS_E_PROTOCOL, "no job file");
    }
    return 0;
}

/* Our own address is not dialled. */
static int check_address(const Ms__Assign *assign, uint32_t rank, struct ms_err *err)
{
    const char *address = assign->members[rank]->data_address;
    struct ms_addr addr;
    if (rank != assign->rank && (ms_addr_parse(address, 0, &addr, NULL) < 0 || addr.is_unix)) {
        return ms_fail(err, MS_E_PROTOCOL,
                       "rank %u (node %s) is said to listen at '%.80s': other "
                       "hosts are reached at HOST:PORT only",
                       rank, assign->members[rank]->node_id, address);
    }
    return 0;
}

static int check_members(const Ms__Assign *assign, struct ms_err *err)
{
    if (assign->n_members != assign->world_size) {
        return ms_fail(err, MS_E_PROTOCOL, "%zu members for %u ranks", assign->n_members,
                       assign->world_size);
    }
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < assign->world_size; i++) {
        if (assign->members[i]->rank != i) {
            return ms_fail(err, MS_E_PROTOCOL, "member %u is said to be rank %u", i,
                           assign->members[i]->rank);
        }
        rc = check_address(assign, i, err);
    }
    return rc;
}

int assign_check(const Ms__Assign *assign, struct ms_err *err)
{
    static int (*const checks[])(const Ms__Assign *assign, struct ms_err *err) = {
        check_numbers, check_plan_from, check_bytes, check_members};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < MS_ARRAY_SIZE(checks); i++) {
        rc = checks[i](assign, err);
    }
    if (rc < 0) {
        (void)ms_err_prefix(
            err, "the scheduler sent a rank of job %" PRIu64 " that cannot be taken", assign->job);
    }
    return rc;
}
