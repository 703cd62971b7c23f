/* home.c - the node with the checkpoints of a job of which no process holds the state
 *
 * Rank 0 writes them on its own node, into the run directory there, unless their folder has an
 * absolute path, which is taken for that of one folder of all nodes. While a process holds the
 * state they are of no account. Where none does, the job goes on from the newest one that a rank
 * can read: so one of its ranks is for the node that had rank 0 when it last started, as long as
 * that may come back, and only then for another one, on which the training may begin anew. Where
 * it is back, and the job lacks other nodes, the queue waits, too. Dynamic clusters have no nodes
 * to spare, and those of a run are on one host. */
#include "daemon/sched/state.h"

#include <string.h>

/* In canonical JSON, where the folder is the section's first key. */
bool home_is_named(const uint8_t *spec, size_t size)
{
    static const char words[] = "\"checkpoint\":{\"directory\":\"";
    const uint8_t *at = size > 0 ? memmem(spec, size, words, sizeof(words) - 1) : NULL;
    const uint8_t *path = at != NULL ? at + sizeof(words) - 1 : NULL;
    return path != NULL && path < spec + size && *path != '/';
}

void home_note(struct run *run)
{
    const struct member *first = &run->members[0];
    ms_text_copy(run->home.node_id, sizeof(run->home.node_id), first->node_id);
    ms_text_copy(run->home.principal, sizeof(run->home.principal), first->principal);
}

int64_t home_until_ms(const struct sched *s, const struct run *run)
{
    const int64_t bound_ms = ready_bound_ms(s);
    const int64_t most_ms = bound_ms >= 0 ? bound_ms : MS_TOPO_TIMEOUT_S * INT64_C(1000);
    return run->lost_ms + most_ms / 2;
}

static bool is_home_of(const struct run *run, const char *node_id, const char *principal)
{
    return strcmp(node_id, run->home.node_id) == 0 &&
           !principal_is_anothers(run->home.principal, principal);
}

/* A process holds the state, or one is at home, and reads it there. */
static bool is_held(const struct run *run)
{
    bool is = formers_here(run) > 0;
    for (uint32_t rank = 0; !is && rank < run->job->workers; rank++) {
        const struct member *member = &run->members[rank];
        is = run_holds_state(run, rank) ||
             (member->hold != NULL && is_home_of(run, member->node_id, member->principal));
    }
    return is;
}

uint32_t home_rank(const struct sched *s, const struct run *run)
{
    uint32_t rank = 0;
    if (!run->job->has_home || !s->mode->places_anew || run->home.node_id[0] == '\0' ||
        s->now.mono_ms >= home_until_ms(s, run) || is_held(run)) {
        return MS_WORKERS_MAX;
    }
    while (rank < run->job->workers && run->members[rank].hold != NULL) {
        rank++;
    }
    return rank < run->job->workers ? rank : MS_WORKERS_MAX;
}

bool home_is(const struct run *run, const struct node *node)
{
    return is_home_of(run, node->info.node_id, node->info.principal);
}

bool home_is_kept(const struct sched *s, const struct run *run)
{
    const struct node *node = node_find(s, run->home.node_id);
    return node != NULL && vacant_can_serve(run, node) && home_is(run, node) &&
           home_rank(s, run) < run->job->workers;
}

const char *home_words(struct sched *s, const struct run *run)
{
    const int64_t left_ms = home_until_ms(s, run) - s->now.mono_ms;
    return emit_text(s,
                     "no process holds the state any more, and the checkpoints are on node %s: "
                     "waits for it, %lld s more at the most, before another node begins anew. ",
                     run->home.node_id, (long long)((left_ms + 999) / 1000));
}
