/* still.c - how long a job stood still at its end: of one that has ended the scheduler counts only
 * what was over before */
#include "cli/still.h"

#include "cli/progress.h"
#include "proto/state_words.h"

#include <string.h>

static int is_of(const Ms__EventInfo *event, const char *kind)
{
    return strcmp(event->kind, kind) == 0;
}

/* While no scheduler was there nobody saw it go. */
static int was_missing(const Ms__EventInfo *event)
{
    return strstr(event->facts, "\"how\":\"missing\"") != NULL;
}

int cli_still_look(struct cli_still *still, const Ms__EventInfo *event, int64_t ended_ms)
{
    if (is_of(event, "job.started") || is_of(event, "job.recovered")) {
        still->is_known = 1;
        return 1;
    }
    if (is_of(event, "job.cancel_asked")) {
        still->ms = 0; /* who was lost after that kept nobody: all were stopping */
    } else if (is_of(event, "job.rank_lost") && event->at_ms < ended_ms) {
        still->ms = (uint64_t)(ended_ms - event->at_ms);
        still->is_least = was_missing(event);
    }
    return 0;
}

int cli_still_stood(const struct cli_still *still, const Ms__JobInfo *job)
{
    if (!cli_job_is_ended(job) || strcmp(job->state, MS_JOB_STATE_SUCCEEDED) == 0) {
        return 0;
    }
    if (still != NULL && still->is_known) {
        return still->ms > 0;
    }
    return cli_job_has_rank_in(job, MS_RANK_STATE_LOST) || job->recoveries == 0;
}

/* One page, from *before back. True: there is more to look at. */
static int look_at_page(struct cli *cli, const Ms__JobInfo *job, uint64_t *before,
                        struct cli_still *still)
{
    Ms__EventQuery query = MS__EVENT_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    struct ms_err why = {0, ""};
    int is_over = 0;
    query.job = job->id;
    query.before = *before;
    if (client_call(cli->client, MS_MSG_EVENT_QUERY, &query.base, MS_MSG_EVENT_LIST, &msg, &why) !=
        MS_OK) {
        return 0; /* what is known without them is shown */
    }
    const Ms__EventList *page = (const Ms__EventList *)msg;
    for (size_t i = 0; i < page->n_events && !is_over; i++) {
        is_over = cli_still_look(still, page->events[i], job->ended_ms);
    }
    const int more = !is_over && page->more && page->at > 0 && page->at < *before;
    *before = page->at;
    ms_wire_free(msg);
    return more;
}

void cli_still_ask(struct cli *cli, const Ms__JobInfo *job, struct cli_still *ret)
{
    uint64_t before = UINT64_MAX;
    memset(ret, 0, sizeof(*ret));
    if (!cli_job_is_ended(job) || job->ranks_lost == 0) {
        return;
    }
    while (look_at_page(cli, job, &before, ret)) {
    }
    if (!ret->is_known && ret->ms > 0) { /* older events are not kept any more */
        ret->is_known = ret->is_least = 1;
    }
}
