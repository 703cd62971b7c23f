/* model_hosts.c - the model's hosts: which of them get no rank for a while, and whose fault a loss
 * is
 *
 * What the scheduler remembers of a host without a registered node may be forgotten with the nodes,
 * of which it keeps few: then both is legal, and the model keeps the least and the most. */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

enum { SLACK_MS = 5, LATE_MS = 70 /* timers of the driver are late by 50 */ };

static void key_of(const struct model *m, const struct m_node *node, char key[MS_HOST_MAX + 2])
{
    if (m->w->certificate_ids && strncmp(node->owner, "worker:", 7) == 0) {
        snprintf(key, MS_HOST_MAX + 2, "=%s",
                 node->owner); /* what it says of its host is no proof */
        return;
    }
    const char *id = node->host_id;
    snprintf(key, MS_HOST_MAX + 2, "%s%s", id[0] != '\0' ? "#" : "@",
             id[0] != '\0' ? id : node->host_name);
}

static struct m_host *host_find(const struct model *m, const struct m_node *node)
{
    char key[MS_HOST_MAX + 2];
    key_of(m, node, key);
    for (size_t i = 0; i < m->hosts.n; i++) {
        if (strcmp(m->hosts.at[i].key, key) == 0) {
            return &m->hosts.at[i];
        }
    }
    return NULL;
}

enum m_pause m_pause_of(const struct model *m, const struct m_node *node)
{
    const struct m_host *host = host_find(m, node);
    if (host == NULL || (m->mono >= host->until + LATE_MS && m->mono > m->busy_until)) {
        return M_NOT_PAUSED;
    }
    return m->mono + SLACK_MS < host->from ? M_PAUSED : M_PERHAPS;
}

uint32_t m_count_idle(const struct model *m, bool at_most)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        enum m_pause pause = m_is_idle(node) ? m_pause_of(m, node) : M_PAUSED;
        n += pause == M_NOT_PAUSED || (at_most && pause == M_PERHAPS);
    }
    return n;
}

void m_hosts_forget(struct model *m)
{
    for (size_t i = 0; i < m->hosts.n; i++) {
        struct m_host *host = &m->hosts.at[i];
        bool has_nodes = false;
        for (size_t k = 0; k < m->nodes.n && !has_nodes; k++) {
            char key[MS_HOST_MAX + 2];
            key_of(m, &m->nodes.at[k], key);
            has_nodes = m->nodes.at[k].conn != 0 && strcmp(key, host->key) == 0;
        }
        if (!has_nodes) {
            host->vain_least = 0;
            host->from = INT64_MIN;
        }
    }
}

static int64_t pause_ms(uint32_t times)
{
    int64_t ms = MS_HOST_PAUSE_MS;
    while (times-- > 0 && ms < MS_HOST_PAUSE_MAX_MS) {
        ms *= 2;
    }
    return ms;
}

/* Are there so many nodes that a job could get on hosts that (surely) lost nothing in vain? */
static bool others_work(const struct model *m, const struct m_host *bad, uint32_t workers,
                        bool surely)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->nodes.n; i++) {
        const struct m_node *node = &m->nodes.at[i];
        const struct m_host *host = host_find(m, node);
        n += m_is_usable(m, node, !surely) && host != bad &&
             (host == NULL || (surely ? host->vain_most : host->vain_least) == 0);
    }
    return n >= workers;
}

/* The node whose loss ended the placing of a job, as its reason names it; NULL: another cause. */
static const struct m_node *lost_node(struct model *m, const struct m_job *job, const char *reason)
{
    char words[2 * MS_NAME_MAX];
    unsigned rank = 0;
    if (sscanf(reason, "rank %u (node ", &rank) != 1 || rank >= job->n_ranks) {
        return NULL;
    }
    const struct m_node *node = m_node_find(m, job->ranks[rank].node);
    if (node == NULL) {
        return NULL;
    }
    snprintf(words, sizeof(words), "rank %u (node %s on host ", rank, node->id);
    size_t n = strlen(words);
    const char *behind = strncmp(reason, words, n) == 0 ? strchr(reason + n, ')') : NULL;
    if (behind == NULL || strncmp(behind, ") was lost: ", 12) != 0) {
        return NULL;
    }
    unsigned peer = 0;
    return sscanf(behind, ") was lost: rank %u (node", &peer) == 1 ? NULL : node; /* hearsay */
}

void m_host_blame(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    const struct m_node *node = lost_node(m, job, row->reason);
    if (node == NULL || m->w->mode != SCHED_STANDING || m->fresh) {
        return;
    }
    struct m_host *host = host_find(m, node);
    if (host == NULL) {
        host = M_MORE(m->hosts, struct m_host);
        key_of(m, node, host->key);
    }
    bool must = host->vain_least > 0 && others_work(m, host, job->workers, true);
    bool may = host->vain_most > 0 && others_work(m, host, job->workers, false);
    if (must || (may && row->n_tries < job->tries)) {
        job->tries--; /* it is the host's fault */
    }
    if (m->mono + SLACK_MS < host->from) {
        return; /* it is paused: several were lost together */
    }
    if (m->mono >= host->until + LATE_MS) {
        host->from = m->mono + pause_ms(host->vain_least++);
    } else if (host->vain_least == 0) {
        host->vain_least = 1;
    }
    host->until = m->mono + pause_ms(host->vain_most++);
}

/* It is placed: among so many nodes, those that are lost in this event counted or not. */
void m_leaving_meet(const struct model *m, struct m_job *job)
{
    uint32_t most = m_count(m);
    uint32_t least = most;
    for (size_t i = 0; i < m->nodes.n; i++) {
        least -= m_is_overdue(m, &m->nodes.at[i]);
    }
    job->met_least = least > job->met_least ? least : job->met_least;
    job->met_most = most > job->met_most ? most : job->met_most;
}

/* A process that has to begin anew is no fault of the job, as often as there are nodes. */
void m_leaving_excuse(const struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    bool leaving = false;
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        leaving = leaving || (job->ranks[rank].done && job->ranks[rank].leaving);
    }
    bool must = job->leaves < job->met_least;
    bool may = job->leaves < job->met_most;
    if (leaving && m->w->mode == SCHED_STANDING && !m->fresh &&
        (must || (may && row->n_tries < job->tries))) {
        job->tries--;
        job->leaves++;
    }
}

void m_hosts_work(struct model *m, const struct m_job *job)
{
    for (uint32_t rank = 0; rank < job->n_ranks; rank++) {
        const struct m_node *node = m_node_find(m, job->ranks[rank].node);
        struct m_host *host = node != NULL ? host_find(m, node) : NULL;
        if (host != NULL) {
            host->vain_least = host->vain_most = 0;
        }
    }
}
