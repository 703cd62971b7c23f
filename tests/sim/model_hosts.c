/* model_hosts.c - the model's hosts: which of them get no rank for a while, and whose fault a loss
 * is
 *
 * What the scheduler remembers of a host without a registered node may be forgotten with the nodes,
 * of which it keeps few: then both is legal, and the model keeps the least and the most. */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

enum { SLACK_MS = 5, LATE_MS = 70 /* timers of the driver are late by 50 */ };

uint32_t m_host_key(struct model *m, const struct m_node *node)
{
    char key[MS_HOST_MAX + 2];
    if (m->w->certificate_ids && strncmp(node->owner, "worker:", 7) == 0) {
        snprintf(key, sizeof(key), "=%s", node->owner); /* what it says of its host is no proof */
        return m_name(m, key);
    }
    const char *id = node->host_id;
    snprintf(key, sizeof(key), "%s%s", id[0] != '\0' ? "#" : "@",
             id[0] != '\0' ? id : node->host_name);
    return m_name(m, key);
}

static struct m_host *host_find(const struct model *m, const struct m_node *node)
{
    const size_t host = m_name_at(m, node->host)->host;
    return host != 0 ? &m->hosts.at[host - 1] : NULL;
}

static struct m_host *host_add(struct model *m, uint32_t key)
{
    struct m_host *host = M_MORE(m->hosts, struct m_host);
    host->key = key;
    m_name_at(m, key)->host = m->hosts.n;
    return host;
}

static bool is_surely_over(const struct model *m, int64_t until)
{
    return m->mono >= until + LATE_MS && m->mono > m->busy_until;
}

enum m_pause m_pause_of(const struct model *m, const struct m_node *node)
{
    const struct m_host *host = host_find(m, node);
    if (host == NULL || is_surely_over(m, host->until)) {
        return M_NOT_PAUSED;
    }
    return m->mono + SLACK_MS < host->from ? M_PAUSED : M_PERHAPS;
}

bool m_is_paused_now(const struct model *m, const struct m_node *node)
{
    const struct m_host *host = host_find(m, node);
    return host != NULL && host->paused_at == m->mono;
}

/* An hour from the last of two within one. 0: there are none. */
static int64_t aside_until(const struct m_host *host, bool surely)
{
    int64_t last = INT64_MIN / 2;
    int64_t before = INT64_MIN / 2;
    for (size_t i = 0; i < host->n_losses; i++) {
        if (!surely || !host->losses[i].perhaps) {
            before = last;
            last = host->losses[i].at;
        }
    }
    return before >= 0 && last - before < MS_HOST_ASIDE_MS ? last + MS_HOST_ASIDE_MS : 0;
}

bool m_is_aside(const struct model *m, const struct m_node *node, bool surely)
{
    const struct m_host *host = host_find(m, node);
    return host != NULL && m->mono < aside_until(host, surely);
}

static void lose(struct m_host *host, size_t i)
{
    host->n_losses--;
    memmove(&host->losses[i], &host->losses[i + 1], (host->n_losses - i) * sizeof(host->losses[0]));
}

static struct m_host_loss *note_loss(struct m_host *host, int64_t at, bool perhaps)
{
    if (host->n_losses == M_HOST_LOSSES) {
        lose(host, 0);
    }
    struct m_host_loss *loss = &host->losses[host->n_losses++];
    *loss = (struct m_host_loss){.at = at, .perhaps = perhaps};
    return loss;
}

void m_host_lost(struct model *m, const struct m_node *node, const struct m_job *job,
                 const struct m_rank *r)
{
    struct m_host *host = host_find(m, node);
    if (m->w->mode != SCHED_STANDING) {
        return;
    }
    if (host == NULL) {
        host = host_add(m, node->host);
        host->from = host->until = INT64_MIN / 2;
    }
    struct m_host_loss *loss = note_loss(host, m->mono, false);
    snprintf(loss->node, sizeof(loss->node), "%s", r->node);
    snprintf(loss->owner, sizeof(loss->owner), "%s", r->owner);
    loss->incarnation = r->incarnation;
    loss->job = job->id;
    loss->rank = (uint32_t)(r - job->ranks);
}

static bool is_of(const struct m_host_loss *loss, const struct m_node *node,
                  const struct m_hold *claim)
{
    return loss->incarnation == node->incarnation && loss->job == claim->job &&
           loss->rank == claim->rank && strcmp(loss->node, node->id) == 0 &&
           strcmp(loss->owner, node->owner) == 0;
}

void m_host_excused(struct model *m, const struct m_node *node, const struct m_hold *claim)
{
    struct m_host *host = host_find(m, node);
    size_t i = host != NULL ? host->n_losses : 0;
    while (i > 0 && !is_of(&host->losses[i - 1], node, claim)) {
        i--;
    }
    if (i > 0) {
        lose(host, i - 1);
    }
}

void m_aside_stored(struct model *m, const char *key, bool is_aside)
{
    const uint32_t name = m_name(m, key);
    if (m->w->disk.spent) {
        sim_fail(m->w, "model: whether host %s is set aside takes room that ends may need", key);
    }
    if (m_name_at(m, name)->host == 0) {
        struct m_host *host = host_add(m, name);
        host->from = host->until = INT64_MIN / 2;
    }
    m->hosts.at[m_name_at(m, name)->host - 1].is_stored = is_aside;
}

/* Whoever came back set no host aside; and who lost two is. The row of it may wait for room. */
void m_judge_asides(struct model *m)
{
    const bool had_room = m->no_room_until == INT64_MIN;
    if (!had_room && (m->mono < m->no_room_until + LATE_MS || m->mono <= m->busy_until ||
                      m->event->kind != SCHED_EV_TIME)) {
        return;
    }
    for (size_t i = 0; i < m->hosts.n; i++) {
        const struct m_host *host = &m->hosts.at[i];
        const int64_t most = aside_until(host, false);
        const int64_t least = aside_until(host, true);
        const bool is_over = m->mono >= most + LATE_MS && m->mono > m->busy_until;
        if (host->is_stored ? most == 0 || is_over : m->mono + SLACK_MS < least) {
            sim_fail(m->w, "model: host %s is%s set aside, and has%s lost two processes",
                     m_name_at(m, host->key)->text, host->is_stored ? "" : " not",
                     host->is_stored ? " not" : "");
        }
    }
}

/* Who is set aside still is, unless the wall clock has jumped over the end of it. */
void m_hosts_restart(struct model *m)
{
    const struct sim_disk *disk = &m->w->disk;
    for (size_t i = 0; i < m->hosts.n; i++) {
        m_name_at(m, m->hosts.at[i].key)->host = 0;
    }
    m->hosts.n = 0;
    for (size_t i = 0; i < disk->n_asides; i++) {
        struct m_host *host = host_add(m, m_name(m, disk->asides[i].key));
        host->from = host->until = INT64_MIN / 2;
        host->is_stored = true;
        (void)note_loss(host, m->mono, true);
        (void)note_loss(host, m->mono, true);
    }
}

/* The loss that it is for is told next. */
void m_judge_set_aside(struct model *m)
{
    bool any = false;
    for (size_t i = 0; i < m->hosts.n; i++) {
        any = any || m->hosts.at[i].n_losses > 0;
    }
    if (!any || m->w->mode != SCHED_STANDING) {
        sim_fail(m->w, "model: a host is set aside, and none has lost two ranks");
    }
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
        m_name_at(m, m->hosts.at[i].key)->is_here = false;
    }
    for (size_t i = 0; i < m->nodes.n && m->hosts.n > 0; i++) {
        if (m->nodes.at[i].conn != 0) {
            m_name_at(m, m->nodes.at[i].host)->is_here = true;
        }
    }
    for (size_t i = 0; i < m->hosts.n; i++) {
        struct m_host *host = &m->hosts.at[i];
        if (!m_name_at(m, host->key)->is_here) {
            host->vain_least = 0;
            for (size_t k = 0; k < host->n_losses; k++) {
                host->losses[k].perhaps = true;
            }
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
        host = host_add(m, node->host);
    }
    bool must = host->vain_least > 0 && others_work(m, host, job->workers, true);
    bool may = host->vain_most > 0 && others_work(m, host, job->workers, false);
    if (must || (may && row->n_tries < job->tries)) {
        job->tries--; /* it is the host's fault */
    }
    if (m->mono + SLACK_MS < host->from) {
        return; /* it is paused: several were lost together */
    }
    if (is_surely_over(m, host->until)) { /* its timer has fired */
        host->from = m->mono + pause_ms(host->vain_least++);
    } else if (host->vain_least == 0 && is_surely_over(m, host->worked_until)) {
        host->vain_least = 1; /* else it may be paused for losses that do not count any more */
    }
    const int64_t until = m->mono + pause_ms(host->vain_most++);
    host->until = until > host->until ? until : host->until; /* a longer one may still go on */
    host->paused_at = m->mono;
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
            host->worked_until = host->until;
        }
    }
}
