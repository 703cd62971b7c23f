/* store_ask.h - a client's question for what the database keeps of a job */
#ifndef TESTS_STORE_ASK_H
#define TESTS_STORE_ASK_H

#include "daemon/store/store.h"

/* The frame that answers it, of *ret_size bytes; malloc'ed. */
static inline uint8_t *store_ask(struct store *store, enum sched_read_kind kind, uint32_t frame_id,
                                 uint64_t job, size_t *ret_size)
{
    Ms__JobInfo info = MS__JOB_INFO__INIT;
    Ms__JobInfo *infos[] = {&info};
    Ms__JobList list = MS__JOB_LIST__INIT;
    const struct sched_read read = {.kind = kind, .frame_id = frame_id, .job = job, .list = &list};
    info.id = job;
    list.jobs = infos;
    list.n_jobs = 1;
    return store_answer(store, &read, ret_size);
}

#endif
