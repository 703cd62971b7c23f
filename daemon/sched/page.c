/* page.c - lists of jobs and nodes, a page at a time: memory for the page, not for the list */
#include "daemon/sched/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row takes: the message, the texts that are made for it, and its part of the frame. */
enum { JOB_ROW_BYTES = 3584, NODE_ROW_BYTES = 4096 };

static uint32_t page_size(uint32_t limit)
{
    return limit > 0 && limit < MS_LIST_PAGE_MAX ? limit : MS_LIST_PAGE_MAX;
}

static void refuse_nomem(struct sched *s, const struct conn *conn, uint32_t frame_id)
{
    emit_error(s, conn->id, frame_id, MS_E_NOMEM,
               "no memory for this list: try again in a moment, or ask for fewer rows");
}

/* ---- jobs ---------------------------------------------------------------------------------------
 */

static void reply_jobs(struct sched *s, const struct conn *conn, uint32_t frame_id,
                       Ms__JobInfo **infos, size_t n, bool more)
{
    Ms__JobList msg = MS__JOB_LIST__INIT;
    msg.jobs = infos;
    msg.n_jobs = n;
    msg.more = more;
    emit_send(s, conn->id, MS_MSG_JOB_LIST, frame_id, &msg.base);
}

/* With its description, or its plan: what is not in memory the database adds. */
static void show_job(struct sched *s, const struct conn *conn, uint32_t frame_id,
                     const struct job *job, bool plan)
{
    Ms__JobInfo **infos = emit_alloc(s, sizeof(Ms__JobInfo *));
    infos[0] = info_job(s, job, plan ? INFO_PLAN : INFO_ALL);
    const size_t spec_bytes = job->spec == NULL ? job->spec_bytes : 0;
    const size_t plan_bytes = job->plan != NULL && job->plan->text == NULL ? job->plan->bytes : 0;
    const size_t missing = plan ? plan_bytes : spec_bytes;
    if (missing == 0) {
        reply_jobs(s, conn, frame_id, infos, 1, false);
        return;
    }
    Ms__JobList list = MS__JOB_LIST__INIT;
    list.jobs = infos;
    list.n_jobs = 1;
    s->tick_bytes += missing; /* the driver packs it: it counts all the same */
    emit_read_job(s, conn->id, frame_id, plan ? SCHED_READ_PLAN : SCHED_READ_SPEC, &list);
}

static void reply_job(struct sched *s, const struct conn *conn, uint32_t frame_id,
                      const Ms__JobQuery *msg)
{
    const struct job *job = job_find(s, msg->job);
    if (job == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOT_FOUND,
                   "job %llu does not exist: msctl jobs --all lists them",
                   (unsigned long long)msg->job);
    } else if (!emit_reserve(s, info_bytes(job))) {
        refuse_nomem(s, conn, frame_id);
    } else {
        show_job(s, conn, frame_id, job, msg->plan);
    }
}

void on_job_query(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__JobQuery *msg = (const Ms__JobQuery *)event->msg;
    if (msg->job != 0) {
        reply_job(s, conn, event->id, msg);
        return;
    }
    uint32_t limit = page_size(msg->limit);
    size_t first = job_slot_after(s, msg->after);
    size_t rows = s->n_jobs - first < limit ? s->n_jobs - first : limit;
    if (!emit_reserve(s, (rows + 1) * JOB_ROW_BYTES)) {
        refuse_nomem(s, conn, event->id);
        return;
    }
    Ms__JobInfo **infos = emit_alloc(s, (rows + 1) * sizeof(Ms__JobInfo *));
    uint32_t n = 0;
    bool more = false;
    for (size_t i = first; i < s->n_jobs && !more; i++) {
        const struct job_slot *slot = &s->jobs[i];
        if (slot->job == NULL || (slot->ended && !msg->all)) {
            continue;
        }
        if (n == limit) {
            more = true;
        } else {
            infos[n++] = info_job(s, slot->job, INFO_ROW);
        }
    }
    reply_jobs(s, conn, event->id, infos, n, more);
}

/* ---- nodes --------------------------------------------------------------------------------------
 *
 * In the order of host and id, as people count: w2 before w10. There is no such list in memory; a
 * page is the smallest rows above the cursor, which one walk over the table finds. */

struct place_in_list {
    char host[MS_HOST_MAX + 1];
    char node_id[MS_NAME_MAX + 1];
};

/* "LENGTH:hostid": opaque to clients. */
static bool cursor_parse(const char *text, struct place_in_list *ret)
{
    char *end = NULL;
    unsigned long length = strtoul(text, &end, 10);
    if (end == text || *end != ':' || length > MS_HOST_MAX || strlen(end + 1) < length ||
        strlen(end + 1) - length > MS_NAME_MAX) {
        return false;
    }
    memcpy(ret->host, end + 1, length);
    ret->host[length] = '\0';
    ms_text_copy(ret->node_id, sizeof(ret->node_id), end + 1 + length);
    return true;
}

static int compare(const char *host, const char *node_id, const char *other_host,
                   const char *other_id)
{
    int order = natural_compare(host, other_host);
    return order != 0 ? order : natural_compare(node_id, other_id);
}

static int compare_nodes(const struct node *x, const struct node *y)
{
    return compare(x->info.host_name, x->info.node_id, y->info.host_name, y->info.node_id);
}

static int by_host_and_id(const void *a, const void *b)
{
    return compare_nodes(*(struct node *const *)a, *(struct node *const *)b);
}

/* The largest of the page is at the top, and leaves when a smaller one comes. */
static void sink(struct node **page, size_t n)
{
    for (size_t i = 0, child = 1; child < n; i = child, child = 2 * i + 1) {
        if (child + 1 < n && compare_nodes(page[child], page[child + 1]) < 0) {
            child++;
        }
        if (compare_nodes(page[child], page[i]) <= 0) {
            return;
        }
        struct node *node = page[i];
        page[i] = page[child];
        page[child] = node;
    }
}

static void rise(struct node **page, size_t i)
{
    for (size_t up = (i - 1) / 2; i > 0 && compare_nodes(page[up], page[i]) < 0;
         i = up, up = (i - 1) / 2) {
        struct node *node = page[i];
        page[i] = page[up];
        page[up] = node;
    }
}

/* Fills page with the first limit nodes above after, in order. */
static size_t take_page(struct sched *s, const struct place_in_list *after, struct node **page,
                        size_t limit, bool *ret_more)
{
    size_t n = 0;
    size_t slot = 0;
    *ret_more = false;
    struct table_link *link = table_walk(&s->nodes, &slot, NULL);
    for (; link != NULL; link = table_walk(&s->nodes, &slot, link)) {
        struct node *node = list_item(link, struct node, link);
        if (after != NULL &&
            compare(node->info.host_name, node->info.node_id, after->host, after->node_id) <= 0) {
            continue;
        }
        if (n < limit) {
            page[n] = node;
            rise(page, n++);
        } else {
            *ret_more = true;
            if (compare_nodes(node, page[0]) < 0) {
                page[0] = node;
                sink(page, n);
            }
        }
    }
    qsort(page, n, sizeof(*page), by_host_and_id);
    return n;
}

static void reply_nodes(struct sched *s, const struct conn *conn, uint32_t frame_id,
                        struct node **nodes, size_t n, bool more)
{
    Ms__NodeList list = MS__NODE_LIST__INIT;
    char next[MS_CURSOR_MAX + 1];
    list.nodes = emit_alloc(s, (n + 1) * sizeof(Ms__NodeInfo *));
    for (size_t i = 0; i < n; i++) {
        list.nodes[list.n_nodes++] = info_node(s, nodes[i]);
    }
    list.more = more;
    if (more) {
        const struct node_info *last = &nodes[n - 1]->info;
        snprintf(next, sizeof(next), "%zu:%s%s", strlen(last->host_name), last->host_name,
                 last->node_id);
        list.next = next;
    }
    emit_send(s, conn->id, MS_MSG_NODE_LIST, frame_id, &list.base);
}

static void reply_node(struct sched *s, const struct conn *conn, uint32_t frame_id, const char *id)
{
    struct node *node = node_find(s, id);
    if (node == NULL) {
        emit_error(s, conn->id, frame_id, MS_E_NOT_FOUND,
                   "node %s is not known: msctl nodes lists them", id);
        return;
    }
    reply_nodes(s, conn, frame_id, &node, 1, false);
}

void on_node_query(struct sched *s, struct conn *conn, const struct sched_event *event)
{
    const Ms__NodeQuery *msg = (const Ms__NodeQuery *)event->msg;
    struct place_in_list after;
    if (msg->node_id[0] != '\0') {
        reply_node(s, conn, event->id, msg->node_id);
        return;
    }
    if (msg->after[0] != '\0' && !cursor_parse(msg->after, &after)) {
        emit_error(s, conn->id, event->id, MS_E_INVALID,
                   "'%.64s' is no place in the list of nodes: send NodeList.next back as it came",
                   msg->after);
        return;
    }
    size_t limit = page_size(msg->limit);
    size_t rows = s->nodes.n < limit ? s->nodes.n : limit;
    if (!emit_reserve(s, (rows + 1) * NODE_ROW_BYTES)) {
        refuse_nomem(s, conn, event->id);
        return;
    }
    bool more = false;
    struct node **page = emit_alloc(s, (rows + 1) * sizeof(struct node *));
    size_t n = take_page(s, msg->after[0] != '\0' ? &after : NULL, page, limit, &more);
    reply_nodes(s, conn, event->id, page, n, more);
}
