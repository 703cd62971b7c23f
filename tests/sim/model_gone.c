/* model_gone.c - the model's lost nodes: whose the scheduler must still name
 *
 * It says nowhere that it forgets one. But somebody with one lost node only has the most of them
 * only where all others have one, too: as long as there were no more losers than places, his must
 * be there. Counted is too much, never too little: also nodes that were forgotten. */
#include "tests/sim/model.h"

#include <stdio.h>
#include <string.h>

static void gone_forget(struct model *m, const char *id)
{
    for (size_t i = m->gone.n; i > 0; i--) {
        if (strcmp(m->gone.at[i - 1].id, id) == 0) {
            m->gone.at[i - 1] = m->gone.at[--m->gone.n];
        }
    }
}

static bool is_loser(const struct model *m, const char *owner)
{
    bool is = false;
    for (size_t i = 0; i < m->gone.n; i++) {
        is = is || strcmp(m->gone.at[i].owner, owner) == 0;
    }
    return is;
}

static uint32_t count_losers(const struct model *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->gone.n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) {
            first = strcmp(m->gone.at[k].owner, m->gone.at[i].owner) != 0;
        }
        n += first;
    }
    return n;
}

/* "node.lost node="w3" host=...", or node.left */
void m_node_gone(struct model *m, const char *log)
{
    char id[MS_NAME_MAX + 1];
    if ((sscanf(log, "node.lost node=\"%64[^\"]", id) != 1 &&
         sscanf(log, "node.left node=\"%64[^\"]", id) != 1) ||
        m->w->lost_nodes_max == 0 || m->w->large) {
        return;
    }
    const struct m_node *node = m_node_find(m, id);
    m->gone_unknown = m->gone_unknown || node == NULL || node->owner[0] == '\0';
    if (m->gone_unknown) {
        return;
    }
    gone_forget(m, id);
    bool is_first = !is_loser(m, node->owner);
    for (size_t i = 0; i < m->gone.n; i++) {
        struct m_gone *gone = &m->gone.at[i];
        gone->losers += is_first;
        gone->alone = gone->alone && strcmp(gone->owner, node->owner) != 0;
    }
    struct m_gone *gone = M_MORE(m->gone, struct m_gone);
    snprintf(gone->id, sizeof(gone->id), "%s", node->id);
    snprintf(gone->owner, sizeof(gone->owner), "%s", node->owner);
    gone->at = m->mono;
    gone->alone = is_first;
    gone->losers = count_losers(m);
}

void m_node_back(struct model *m, const char *id)
{
    gone_forget(m, id);
}

/* The whole list. */
void m_judge_gone(struct model *m, const Ms__NodeList *msg)
{
    for (size_t i = 0; i < m->gone.n && !m->gone_unknown; i++) {
        const struct m_gone *gone = &m->gone.at[i];
        bool told = !gone->alone || gone->losers > m->w->lost_nodes_max ||
                    m->mono - gone->at >= MS_LOST_KEEP_MS;
        for (size_t k = 0; k < msg->n_nodes && !told; k++) {
            told = strcmp(msg->nodes[k]->node_id, gone->id) == 0;
        }
        if (!told) {
            sim_fail(m->w, "model: lost node %s, all that %s lost, is no longer told of", gone->id,
                     gone->owner);
        }
    }
}
