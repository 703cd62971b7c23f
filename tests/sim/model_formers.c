/* model_formers.c - the model's cut links: which end may give way, and who keeps the state
 * meanwhile
 *
 *     two ranks do not reach each other     the first time all try again; then one of them moves
 *     its process holds the state           it is told nothing, and keeps it
 *     the job runs, or ends                 it hears Stop
 *     nobody else has the state             it has its rank again */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

enum { LATE_MS = 70 /* timers of the driver are late by 50 */ };

/* ---- links --------------------------------------------------------------------------------------
 */

static void drop_pair(struct m_job *job, uint32_t i)
{
    memmove(&job->pairs[i], &job->pairs[i + 1], (--job->n_pairs - i) * sizeof(job->pairs[0]));
}

static uint32_t note_pair(struct m_job *job, const struct m_rank *x, const struct m_rank *y,
                          bool firm)
{
    const uint64_t a = x->incarnation;
    const uint64_t b = y->incarnation;
    uint32_t i = 0;
    while (i < job->n_pairs && !(job->pairs[i].a == a && job->pairs[i].b == b) &&
           !(job->pairs[i].a == b && job->pairs[i].b == a)) {
        i++;
    }
    if (i == MS_LINKS_MAX) {
        drop_pair(job, 0);
        i--;
    }
    if (i == job->n_pairs) {
        struct m_pair *pair = &job->pairs[job->n_pairs++];
        *pair = (struct m_pair){.a = a, .b = b};
        memcpy(pair->machine_a, x->machine, sizeof(pair->machine_a));
        memcpy(pair->machine_b, y->machine, sizeof(pair->machine_b));
    }
    job->pairs[i].step = job->furthest;
    job->pairs[i].is_new = true;
    job->pairs[i].firm = firm;
    return ++job->pairs[i].n;
}

/* Since the job made its last step, as far as anybody told. */
void m_pairs_made_good(struct m_job *job)
{
    for (uint32_t i = job->n_pairs; i > 0; i--) {
        struct m_pair *pair = &job->pairs[i - 1];
        if (job->furthest > pair->step && job->stands && pair->is_new) {
            pair->step = job->furthest; /* it was told late */
        } else if (job->furthest > pair->step) {
            drop_pair(job, i - 1);
        }
    }
}

void m_pairs_start(struct m_job *job)
{
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        struct m_pair *pair = &job->pairs[i];
        pair->is_new = false;
        pair->step = pair->step < job->furthest ? pair->step : job->furthest;
    }
}

static bool has_rank(const struct m_job *job, uint64_t process)
{
    bool has = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        has = has || (!r->vacant && !r->lost && r->incarnation == process);
    }
    return has;
}

static bool has_one(const struct m_job *job, uint64_t process)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        const struct m_pair *pair = &job->pairs[i];
        n += pair->a != pair->b && (pair->a == process || pair->b == process);
    }
    return n == 1;
}

/* Beside another one of its machine who has given way elsewhere does not count. */
static uint32_t n_bad(const struct m_job *job, const struct m_rank *r, const struct m_rank *other)
{
    const bool is_near = strcmp(r->machine, other->machine) == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        const struct m_pair *pair = &job->pairs[i];
        if (pair->a == pair->b || (pair->a != r->incarnation && pair->b != r->incarnation)) {
            continue;
        }
        const uint64_t far = pair->a == r->incarnation ? pair->b : pair->a;
        n += !is_near || strcmp(pair->machine_a, pair->machine_b) == 0 || has_rank(job, far);
    }
    return n;
}

/* It does not reach one that has a rank. */
bool m_is_unreached(const struct m_job *job, uint64_t process)
{
    bool is = false;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        const struct m_pair *pair = &job->pairs[i];
        const uint64_t other = pair->a == process ? pair->b : pair->a;
        is = is || ((pair->a == process || pair->b == process) &&
                    (other == process || has_rank(job, other)));
    }
    return is;
}

const char *m_machine(const struct m_node *node)
{
    return node->host_id[0] != '\0' ? node->host_id : node->host_name;
}

bool m_is_cut_off(const struct m_job *job, const char *machine)
{
    bool is = false;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        const struct m_pair *pair = &job->pairs[i];
        const char *other = strcmp(pair->machine_a, machine) == 0   ? pair->machine_b
                            : strcmp(pair->machine_b, machine) == 0 ? pair->machine_a
                                                                    : "";
        for (uint32_t rank = 0;
             other[0] != '\0' && strcmp(other, machine) != 0 && rank < job->workers; rank++) {
            is = is || (!job->ranks[rank].vacant && strcmp(job->ranks[rank].machine, other) == 0);
        }
    }
    return is;
}

bool m_moves_along(const struct model *m, const struct m_job *job, uint32_t rank, const char *log)
{
    return job->linked_at == m->mono &&
           strstr(log, "its host does not reach another one") != NULL &&
           m_is_cut_off(job, job->ranks[rank].machine);
}

bool m_is_last_copy(const struct m_job *job, uint32_t rank)
{
    bool is = m_holds(job, rank);
    for (uint32_t i = 0; is && i < job->workers; i++) {
        is = i == rank || !m_holds(job, i);
    }
    for (uint32_t i = 0; is && i < job->n_formers; i++) {
        is = !job->formers[i].here;
    }
    return is;
}

static void judge_itself(struct model *m, struct m_job *job, uint32_t rank, bool moves)
{
    const struct m_rank *r = &job->ranks[rank];
    /* started by hand it ends alone, before one more loss ends its job */
    const bool is_worn = m->w->mode == SCHED_DYNAMIC && m_is_spent(m, job, r, M_COMPLAINT);
    const bool is_again = note_pair(job, r, r, true) > 1;
    const bool may_move = (is_again || is_worn) && !m_is_last_copy(job, rank);
    const bool may_stay = !may_move || m->w->mode == SCHED_DYNAMIC;
    if (moves ? !may_move : !may_stay) {
        sim_fail(m->w, "model: rank %u of job %llu lost its mesh, and %s", rank, (ull)job->id,
                 moves ? "moves at once" : "tries again and again");
    }
}

static bool is_firmly_bad(const struct m_job *job, uint64_t process)
{
    bool is = false;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        const struct m_pair *pair = &job->pairs[i];
        is = is || (pair->a != pair->b && pair->firm && (pair->a == process || pair->b == process));
    }
    return is;
}

/* 2: it trained with the others; 1: it says that it took what they hold. */
static int standing(const struct m_job *job, uint32_t rank)
{
    return !m_holds(job, rank) ? 0 : job->ranks[rank].has_state ? 2 : 1;
}

/* Who would not be started again, and holds nothing that others do not. */
static bool tries_on(const struct model *m, const struct m_job *job, uint32_t rank)
{
    return m->w->mode == SCHED_DYNAMIC && standing(job, rank) < 2 && !m_is_last_copy(job, rank);
}

bool m_is_worn_out(const struct model *m, const struct m_job *job, uint32_t rank, const char *log)
{
    const bool tries = job->blamed == job->blamed_by || tries_on(m, job, rank);
    return m->w->mode == SCHED_DYNAMIC && tries && strstr(log, " then=again ") == NULL &&
           m_is_spent(m, job, &job->ranks[rank], M_COMPLAINT);
}

void m_judge_link(struct model *m, struct m_job *job, uint32_t rank, bool moves)
{
    const uint32_t by = job->blamed_by;
    const struct m_rank *a = &job->ranks[by];
    const struct m_rank *b = &job->ranks[job->blamed];
    if (by == job->blamed) {
        judge_itself(m, job, rank, moves);
        return;
    }
    if (a->missing || b->missing) {
        return; /* it is waited for */
    }
    const int as = standing(job, by);
    const int bs = standing(job, job->blamed);
    const uint32_t n = note_pair(job, a, b, as == 2 && bs == 2);
    const uint32_t n_as = n_bad(job, a, b);
    const uint32_t n_bs = n_bad(job, b, a);
    const bool is_first =
        n == 1 && has_one(job, a->incarnation) && has_one(job, b->incarnation) && as == bs;
    const uint32_t low = as < bs ? by : job->blamed;
    const uint32_t high = as < bs ? job->blamed : by;
    const bool is_high_bad =
        is_firmly_bad(job, job->ranks[high].incarnation) && (as < bs ? n_bs > n_as : n_as > n_bs);
    const bool has_sides = as == 2 && bs == 2 && strcmp(a->machine, b->machine) != 0;
    job->linked_at = moves ? m->mono : job->linked_at;
    const uint32_t worse = as != bs ? (is_high_bad ? high : low) : n_as > n_bs ? by : job->blamed;
    if (is_first == moves && !(tries_on(m, job, rank) && !moves)) {
        sim_fail(m->w, "model: rank %u of job %llu %s, and the link between ranks %u and %u %s",
                 rank, (ull)job->id, moves ? "moves" : "stays", by, job->blamed,
                 moves ? "was not tried twice" : "was tried before");
    } else if (moves && m_is_last_copy(job, rank)) {
        sim_fail(m->w, "model: rank %u of job %llu moves, and holds the state alone", rank,
                 (ull)job->id);
    } else if (moves && !has_sides && (as != bs || n_as != n_bs) && rank != worse &&
               !m_is_last_copy(job, worse)) {
        sim_fail(m->w, "model: rank %u of job %llu moves, and rank %u reaches fewer, or has less",
                 rank, (ull)job->id, worse);
    }
}

/* ---- who keeps the state ------------------------------------------------------------------------
 */

bool m_holds(const struct m_job *job, uint32_t rank)
{
    const struct m_rank *r = &job->ranks[rank];
    return !r->vacant && !r->missing && !r->lost && job->state != JOB_PLACING &&
           (r->has_state || r->has_plan);
}

static void drop_former(struct m_job *job, uint32_t i)
{
    memmove(&job->formers[i], &job->formers[i + 1],
            (--job->n_formers - i) * sizeof(job->formers[0]));
}

static struct m_former *add(struct m_job *job)
{
    const uint32_t most = job->workers + MS_FORMERS_MORE;
    uint32_t i = 0;
    while (i < job->n_formers && job->formers[i].here) {
        i++;
    }
    if (job->n_formers == most && i < job->n_formers) {
        drop_former(job, i);
    }
    if (job->n_formers == most) {
        return NULL;
    }
    struct m_former *former = &job->formers[job->n_formers++];
    memset(former, 0, sizeof(*former));
    return former;
}

struct m_former *m_former_of(const struct model *m, const struct m_node *node)
{
    struct m_job *job = m_job_find((struct model *)m, node->hold.job);
    for (uint32_t i = 0; job != NULL && m_is_placed(job) && i < job->n_formers; i++) {
        struct m_former *former = &job->formers[i];
        if (former->here && former->incarnation == node->incarnation &&
            former->rank == node->hold.rank && strcmp(former->node, node->id) == 0) {
            return former;
        }
    }
    return NULL;
}

bool m_former_forget(struct m_job *job, uint64_t incarnation)
{
    bool was_ready = false;
    for (uint32_t i = job->n_formers; i > 0; i--) {
        if (job->formers[i - 1].incarnation == incarnation) {
            was_ready = was_ready || job->formers[i - 1].was_ready;
            drop_former(job, i - 1);
        }
    }
    return was_ready;
}

void m_former_gone(struct model *m, const struct m_node *node)
{
    struct m_former *former = m_former_of(m, node);
    if (former != NULL) {
        former->here = false;
        m_job_find(m, node->hold.job)->home_late_at = m->mono;
    }
}

bool m_former_leaves(struct model *m, struct m_job *job, uint32_t rank, bool is_here)
{
    const struct m_rank *r = &job->ranks[rank];
    const struct m_node *node = m_node_find(m, r->node);
    const bool may_hold = r->has_state || r->has_plan || r->unknown;
    (void)m_former_forget(job, r->incarnation);
    struct m_former *former = may_hold && job->state != JOB_PLACING ? add(job) : NULL;
    if (former == NULL) {
        return false;
    }
    former->rank = rank;
    former->incarnation = r->incarnation;
    former->step = r->step;
    snprintf(former->node, sizeof(former->node), "%s", r->node);
    snprintf(former->owner, sizeof(former->owner), "%s", r->owner);
    former->said = r->done || r->has_said;
    former->was_ready = r->has_state || r->has_plan;
    former->has_state = r->has_state;
    former->here =
        is_here && node != NULL && node->conn != 0 && node->incarnation == r->incarnation;
    return former->here;
}

/* Those that trained are one step apart; who was only ready says at which step. */
static bool is_held(const struct m_job *job, const struct m_former *former)
{
    const uint64_t furthest = former->step > job->furthest ? former->step : job->furthest;
    bool is = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        is = is || (m_holds(job, rank) && (r->has_state || r->step + 1 >= furthest));
    }
    return is;
}

bool m_is_missed(const struct m_job *job, const struct m_former *former)
{
    bool missing = false;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        missing = missing || job->ranks[rank].missing;
    }
    return former->here && !missing && !is_held(job, former);
}

/* A restart waits for those that its database names, where nobody else has the state. */
bool m_formers_are_awaited(const struct model *m, const struct m_job *job, bool perhaps)
{
    const int64_t until = job->formers_until + m->stretch - job->formers_stretch;
    const bool is_late = m->event->kind != SCHED_EV_TIME || m->mono <= m->busy_until;
    bool are = false;
    bool here = false;
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        are = are || (former->awaited && !former->here && !is_held(job, former));
        here = here || former->here;
    }
    return are && !here && (m->mono < until || (perhaps && (is_late || m->mono < until + LATE_MS)));
}

void m_formers_note(struct model *m, const struct m_node *asked)
{
    for (size_t i = 0; i < m->jobs.n; i++) {
        struct m_job *job = &m->jobs.at[i];
        for (uint32_t k = 0; k < job->n_formers; k++) {
            struct m_former *former = &job->formers[k];
            former->awaited = former->awaited && strcmp(former->node, asked->id) != 0;
        }
    }
}

struct m_former *m_claim_is_former(struct model *m, const struct m_conn *conn)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    if (job == NULL || job->state != JOB_RECOVERING || conn->claim.generation > job->generation) {
        return NULL;
    }
    const bool says_so = conn->claim_runs || conn->claim_step > 0;
    for (uint32_t i = 0; i < job->n_formers; i++) {
        struct m_former *former = &job->formers[i];
        if (former->rank == conn->claim.rank && former->incarnation == conn->asked.incarnation &&
            strcmp(former->node, conn->asked.id) == 0 &&
            strcmp(former->owner, conn->asked.owner) == 0 && (says_so || former->was_ready)) {
            return former;
        }
    }
    return NULL;
}

void m_former_comes(struct model *m, const struct m_conn *conn, struct m_former *former,
                    bool was_kept)
{
    struct m_job *job = m_job_find(m, conn->claim.job);
    former->said = former->said && was_kept; /* else it says so again */
    former->here = true;
    former->step = conn->claim_step > former->step ? conn->claim_step : former->step;
    former->has_state = former->has_state || conn->claim_runs || conn->claim_step > 0;
    m_saw_step(job, conn->claim_step);
    if (m_stops_at_step(job)) {
        m_stop_look(m, job);
    } else if (!job->round_due && m_is_missed(job, former)) {
        m_stands_still(m, job);
    }
}

/* It keeps nothing any more. */
static void stop_former(struct model *m, const struct m_former *former, const struct m_stop *stop)
{
    struct m_node *node = m_node_find(m, former->node);
    if (node == NULL || node->conn == 0) {
        return;
    }
    struct m_stop own = *stop;
    own.generation = node->hold.generation;
    m_stop_expect(m, node->conn, &own);
    if (former->said) {
        node->hold = (struct m_hold){0};
    }
}

void m_formers_stop(struct model *m, struct m_job *job, const struct m_stop *stop)
{
    for (uint32_t i = 0; i < job->n_formers; i++) {
        if (job->formers[i].here) {
            stop_former(m, &job->formers[i], stop);
        }
    }
    job->n_formers = 0;
}

void m_former_said(struct model *m, struct m_former *former, const Ms__RankDone *msg)
{
    struct m_job *job = m_job_find(m, msg->job);
    const struct m_stop stop = {.job = job->id, .code = MS_E_ABORTED, .any_text = true};
    const struct m_node *node = m_node_find(m, former->node);
    const bool has_ended =
        msg->code == MS_OK || (msg->steps > 0 && (node == NULL || !node->leaving));
    former->said = true;
    if (!has_ended || msg->stopped) {
        stop_former(m, former, &stop);
        job->home_late_at = m->mono;
        drop_former(job, (uint32_t)(former - job->formers));
    }
}

/* "job.rank_yields job=3 rank=1 node=w2": a newcomer gives way to who has the state. */
void m_rank_yields(struct model *m, const char *log)
{
    ull id = 0;
    unsigned rank = 0;
    if (sscanf(log, "job.rank_yields job=%llu rank=%u", &id, &rank) != 2) {
        return;
    }
    struct m_job *job = m_job_find(m, id);
    if (job == NULL || job->state != JOB_RECOVERING || rank >= job->n_ranks ||
        job->ranks[rank].vacant) {
        sim_fail(m->w, "model: rank %u of job %llu yields, and is nobody's", rank, id);
        return;
    }
    bool may = false;
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        const struct m_node *node = m_node_find(m, former->node);
        const bool is_welcome = !m_holds(job, rank) && !m_is_unreached(job, former->incarnation) &&
                                !(node != NULL && m_is_cut_off(job, m_machine(node)));
        may = may ||
              (former->rank == rank && former->here && (m_is_missed(job, former) || is_welcome));
    }
    if (!may) {
        sim_fail(m->w, "model: rank %u of job %llu yields to nobody, or holds the state", rank, id);
    }
    job->not_back = m->mono + MS_FORMER_WAIT_MS;
    job->not_back_stretch = m->stretch;
    job->ranks[rank].plan_told = 0; /* it may have come back just now */
    job->ranks[rank].came_now = false;
    m_vacate(m, job, &job->ranks[rank], true, MS_E_ABORTED);
}

void m_may_spare_after(const struct model *m, struct m_job *job)
{
    job->spare_at = m->mono + MS_FORMER_SPARE_MS;
    job->spare_stretch = m->stretch;
}

/* Besides it: ranks, and others that are kept. */
static uint32_t n_others(const struct m_job *job, const struct m_former *former)
{
    const uint64_t furthest = former->step > job->furthest ? former->step : job->furthest;
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        const struct m_rank *r = &job->ranks[rank];
        n += m_holds(job, rank) && (r->has_state || r->step + 1 >= furthest);
    }
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former *other = &job->formers[i];
        n += other != former && other->here && (other->has_state || other->step + 1 >= furthest);
    }
    return n;
}

/* Its mesh ended for reasons of its own, and others hold the state: it begins anew. */
bool m_is_worn(const struct model *m, const struct m_job *job, const struct m_former *former)
{
    bool is = false;
    for (uint32_t i = 0; i < job->n_pairs; i++) {
        is = is ||
             (job->pairs[i].a == former->incarnation && job->pairs[i].b == former->incarnation);
    }
    return is && m->w->mode != SCHED_DYNAMIC && is_held(job, former);
}

/* Nodes that are idle, who has his own rank back, and who lets go, of the last ones first: enough
 * for the vacant ranks? at_most: whoever might. */
static bool would_do(const struct model *m, const struct m_job *job, bool at_most)
{
    uint32_t n_vacant = 0;
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        bool has_former = false;
        for (uint32_t i = 0; i < job->n_formers; i++) {
            const struct m_former *former = &job->formers[i];
            has_former =
                has_former || (former->here && former->rank == rank && !m_is_worn(m, job, former));
        }
        n_vacant += job->ranks[rank].vacant;
        n += job->ranks[rank].vacant && has_former;
    }
    for (size_t i = 0; i < m->nodes.n; i++) {
        n += m_is_idle(&m->nodes.at[i]);
    }
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        const bool is_needed = job->ranks[former->rank].vacant && !m_is_worn(m, job, former);
        n += former->here && is_held(job, former) && (at_most || !is_needed);
    }
    return n >= n_vacant;
}

/* One that lives may have been about to come back, and be the only one. */
static bool is_let_go_early(const struct model *m, const struct m_job *job,
                            const struct m_former *former)
{
    const uint32_t n = n_others(job, former);
    const bool is_soon = m->mono < job->spare_at && job->let_go_at != m->mono;
    if (m->w->mode == SCHED_DYNAMIC) { /* for a process that was turned away in this event */
        bool is_behind = !job->ranks[former->rank].vacant;
        for (uint32_t i = 0; !is_behind && &job->formers[i] != former; i++) {
            is_behind = job->formers[i].here && job->formers[i].rank == former->rank;
        }
        return is_soon || n < 1 || !is_behind || m->event->kind == SCHED_EV_TIME;
    }
    return is_soon || n < (m->mono < job->wants_until && !m_is_worn(m, job, former) ? 2U : 1U);
}

/* "job.state_let_go job=3 rank=1 node=w2": it may have any rank of it, then. */
void m_state_let_go(struct model *m, const char *log)
{
    ull id = 0;
    unsigned rank = 0;
    char node[MS_NAME_MAX + 1];
    if (sscanf(log, "job.state_let_go job=%llu rank=%u node=\"%64[^\"]", &id, &rank, node) != 3) {
        return;
    }
    struct m_job *job = m_job_find(m, id);
    uint32_t i = 0;
    while (job != NULL && i < job->n_formers &&
           !(job->formers[i].here && job->formers[i].rank == rank &&
             strcmp(job->formers[i].node, node) == 0)) {
        i++;
    }
    if (job == NULL || !job->round_due || !m_has_vacant(job) || i == job->n_formers ||
        !(is_held(job, &job->formers[i]) || n_others(job, &job->formers[i]) > 0)) {
        sim_fail(m->w, "model: node %s is told to let go of the state of job %llu, which needs it",
                 node, id);
        return;
    }
    if (is_let_go_early(m, job, &job->formers[i])) {
        sim_fail(m->w, "model: node %s is told to let go of the state of job %llu too early", node,
                 id);
        return;
    }
    if (m->w->mode != SCHED_DYNAMIC && job->let_go_at != m->mono && !would_do(m, job, true)) {
        sim_fail(m->w, "model: node %s lets go of the state of job %llu, which cannot run with it",
                 node, id);
    }
    job->let_go_at = m->mono;
    m_may_spare_after(m, job);
    const struct m_stop stop = {.job = id, .code = MS_E_ABORTED, .any_text = true};
    stop_former(m, &job->formers[i], &stop);
    job->home_late_at = m->mono;
    drop_former(job, i);
}

bool m_keeps_what_it_lacks(const struct model *m, const struct m_job *job)
{
    bool keeps = false;
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        keeps = keeps || (former->here && is_held(job, former) &&
                          (!job->ranks[former->rank].vacant || m_is_worn(m, job, former)));
    }
    for (size_t i = 0; keeps && i < m->nodes.n; i++) {
        keeps = !m_is_idle(&m->nodes.at[i]);
    }
    return keeps && m->w->mode != SCHED_DYNAMIC && m_has_vacant(job) && would_do(m, job, false) &&
           m->event->kind == SCHED_EV_TIME && m->mono > m->busy_until &&
           m->mono >= job->wants_until + m->stretch - job->wants_until_stretch + LATE_MS &&
           m->mono >= job->spare_at + m->stretch - job->spare_stretch + LATE_MS &&
           m->mono >= job->not_back + m->stretch - job->not_back_stretch + LATE_MS;
}

/* Where nobody else has the state, and the job is to stop. */
void m_formers_step_in(struct model *m, struct m_job *job)
{
    for (uint32_t i = 0; i < job->n_formers; i++) {
        const struct m_former former = job->formers[i];
        struct m_rank *r = &job->ranks[former.rank];
        const struct m_node *node = m_node_find(m, former.node);
        if (!m_is_missed(job, &former)) {
            continue;
        }
        if (!r->vacant) {
            m_vacate(m, job, r, true, MS_E_ABORTED);
        }
        drop_former(job, i);
        m_former_takes(r, &former, node);
        i = UINT32_MAX;
    }
}

/* "job.rank_back job=3 rank=1 node=w2: with all that it holds": of a job that stops, at once. */
void m_rank_back(struct model *m, const char *log)
{
    ull id = 0;
    if (sscanf(log, "job.rank_back job=%llu", &id) != 1) {
        return;
    }
    struct m_job *job = m_job_find(m, id);
    if (job != NULL && m_is_placed(job) && m_stops_at_step(job)) {
        m_formers_step_in(m, job);
    }
}

/* It has its rank again. */
void m_former_takes(struct m_rank *r, const struct m_former *former, const struct m_node *node)
{
    snprintf(r->node, sizeof(r->node), "%s", node->id);
    memcpy(r->owner, node->owner, sizeof(r->owner));
    memcpy(r->host, node->host_name, sizeof(r->host));
    r->ready_in = r->incarnation == node->incarnation ? r->ready_in : 0;
    r->steps = r->incarnation == node->incarnation ? r->steps : 0;
    r->incarnation = node->incarnation;
    r->pid = node->pid;
    snprintf(r->machine, sizeof(r->machine), "%s", m_machine(node));
    r->step = former->step;
    r->has_state = former->has_state;
    r->has_plan = r->may_lack_plan = !former->has_state;
    r->vacant = r->missing = r->lost = false;
    r->has_said = former->said;
}

/* As the disk has them. */
void m_formers_reload(struct model *m, struct m_job *job, const struct sched_job_row *row)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    job->n_formers = job->n_pairs = 0;
    for (size_t i = 0; msg != NULL && i < msg->n_formers && row->state == JOB_RECOVERING; i++) {
        struct m_former *former = add(job);
        former->rank = msg->formers[i]->rank;
        former->incarnation = msg->formers[i]->incarnation;
        former->step = msg->formers[i]->step;
        former->awaited = true;
        former->was_ready = msg->formers[i]->was_ready;
        snprintf(former->node, sizeof(former->node), "%s", msg->formers[i]->node_id);
        snprintf(former->owner, sizeof(former->owner), "%s", msg->formers[i]->principal);
    }
    job->formers_until = m->mono + m->lease_ms + (int64_t)m->n_expected * MS_ADOPT_NODE_MS;
    job->formers_stretch = m->stretch;
    ms__job_results__free_unpacked(msg, NULL);
}

static bool is_named(const Ms__JobResults *msg, const struct m_former *former)
{
    bool is = false;
    for (size_t i = 0; i < msg->n_formers; i++) {
        const Ms__Former *one = msg->formers[i];
        is = is || (one->rank == former->rank && one->incarnation == former->incarnation &&
                    strcmp(one->node_id, former->node) == 0 &&
                    strcmp(one->principal, former->owner) == 0);
    }
    return is;
}

/* It registered, and said of none of it. */
static bool begins_anew(const struct model *m, const struct m_former *former)
{
    const struct m_node *node = m_node_find((struct model *)m, former->node);
    return !former->here && node != NULL && node->conn != 0 &&
           node->incarnation == former->incarnation;
}

/* A restart has to know of them; not of one that has its rank again with this round. */
void m_judge_formers(struct model *m, const struct m_job *job, const struct sched_job_row *row)
{
    Ms__JobResults *msg = ms__job_results__unpack(NULL, row->results_bytes, row->results);
    const bool goes_on = row->state == JOB_RECOVERING;
    size_t n = 0;
    for (uint32_t i = 0; msg != NULL && i < job->n_formers; i++) {
        const struct m_former *former = &job->formers[i];
        const bool is = is_named(msg, former);
        n += is;
        const bool is_chosen = former->here && job->ranks[former->rank].vacant;
        if (goes_on && !is && msg->n_formers < MS_FORMERS_STORED && !is_chosen &&
            !begins_anew(m, former)) {
            sim_fail(m->w, "model: job %llu is stored without node %s, which has its state",
                     (ull)job->id, former->node);
        }
    }
    if (msg == NULL || n != msg->n_formers || (!goes_on && n > 0)) {
        sim_fail(m->w, "model: job %llu is stored with nodes that have not its state",
                 (ull)job->id);
    }
    ms__job_results__free_unpacked(msg, NULL);
}
