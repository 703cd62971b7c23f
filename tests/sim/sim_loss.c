/* sim_loss.c - a database that lacks acknowledged writes: whoever was told of them proves it
 *
 * Now and then somebody puts an older copy in the place of the database. The scheduler that starts
 * over it must end with the first who comes back, and give nothing away meanwhile; then the newest
 * copy is put back, and the cluster goes on. */
#include "tests/sim/model.h"

#include <string.h>

typedef unsigned long long ull;

enum { NUMBER = 8, EXIT_CONFIG = 78, CONN = 1, ID = 5 };

static uint64_t number_of(const uint8_t *stamp)
{
    uint64_t n = 0;
    for (size_t i = 0; i < NUMBER; i++) {
        n = n << 8 | stamp[i];
    }
    return n;
}

static void apply(struct sched *sched, const struct sched_event *event, struct sched_time now)
{
    sched_begin_tick(sched);
    sched_apply(sched, event, now);
}

/* What came out: an end, a refusal in words, and nothing that was not there before. */
static void judge(struct world *w, const struct sched *sched, const char *who, bool ends)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(sched, &n);
    bool refused = false;
    bool ended = false;
    for (size_t i = 0; i < n; i++) {
        struct ms_wire_header header = {0};
        struct ms_err err = {0, ""};
        if (effects[i].kind == SCHED_DO_SEND && effects[i].conn == CONN &&
            ms_wire_parse_header(effects[i].frame, &header, &err) == 0) {
            refused = refused || header.type == MS_MSG_ERROR;
            if (header.type != MS_MSG_ERROR) {
                sim_fail(w, "an old copy of the database answers %s with %s", who,
                         ms_wire_find(header.type)->name);
            }
        } else if (effects[i].kind == SCHED_DO_PUT_JOB && effects[i].job->spec != NULL) {
            sim_fail(w, "an old copy of the database takes job %llu", (ull)effects[i].job->id);
        }
        ended = ended || (effects[i].kind == SCHED_DO_EXIT && effects[i].status == EXIT_CONFIG);
    }
    if (!refused || ended != ends) {
        sim_fail(w, "%s proves that the database is an old copy, and the scheduler %s", who,
                 !refused ? "says nothing"
                 : ended  ? "ends twice"
                          : "goes on");
    }
}

static void submit(struct world *w, struct sched *sched, struct sched_time now,
                   const uint8_t *stamp, bool ends)
{
    Ms__Submit msg = MS__SUBMIT__INIT;
    msg.name = msg.key = (char *)"after-a-loss";
    msg.workers = 1;
    msg.job_json.data = (uint8_t *)"{}";
    msg.job_json.len = 2;
    msg.stamp.data = (uint8_t *)stamp;
    msg.stamp.len = stamp != NULL ? MS_STAMP_LEN : 0;
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = CONN, .type = MS_MSG_SUBMIT, .id = ID, .msg = &msg.base};
    apply(sched, &event, now);
    judge(w, sched, "a client", ends);
}

static void come_back(struct world *w, struct sched *sched, struct sched_time now,
                      struct sim_node *node)
{
    Ms__Register msg = MS__REGISTER__INIT;
    msg.node_id = node->id;
    msg.incarnation = node->incarnation;
    msg.host_name = msg.host_id = node->host;
    msg.data_address = (char *)"10.0.0.1:8200";
    msg.isa = (char *)node->isa;
    msg.stamp.data = node->stamp_told;
    msg.stamp.len = MS_STAMP_LEN;
    struct sched_event event = {.kind = SCHED_EV_MESSAGE,
                                .conn = CONN,
                                .type = MS_MSG_REGISTER,
                                .id = ID,
                                .msg = &msg.base};
    apply(sched, &event, now);
    judge(w, sched, node->id, true);
}

/* Over a copy without the last acknowledged writes: their number is what tells it apart. */
static struct sched *start_over_copy(struct world *w, struct sched_time now, uint64_t ticks)
{
    struct sched_config cfg;
    struct ms_err err = {0, ""};
    uint64_t newest = w->disk.ticks;
    driver_config(w, &cfg);
    struct sched *sched = sched_create(&cfg, now);
    w->disk.ticks = ticks;
    if (sched == NULL || disk_load(w, sched, &err) < 0 || sched_load_done(sched, now, &err) < 0) {
        sim_fail(w, "the scheduler cannot start over an older copy: %s", err.text);
    }
    w->disk.ticks = newest;
    return sched;
}

void loss_rehearse(struct world *w, struct sched_time now)
{
    struct sim_node *node = &w->nodes[sim_below(w, w->n_nodes)];
    uint32_t person = (uint32_t)sim_below(w, PEOPLE);
    bool by_node = node->stamp_bytes > 0 && (w->mode == SCHED_DYNAMIC || sim_chance(w, 50));
    const uint8_t *stamp = by_node                   ? node->stamp_told
                           : w->has_stamp_of[person] ? w->stamp_of[person]
                                                     : NULL;
    uint64_t told = stamp != NULL ? number_of(stamp) : 0;
    if (told < 2 || w->large || w->real) {
        return;
    }
    /* its start may be a commit by itself, and looks like the one that is missing */
    struct sched *sched = start_over_copy(w, now, told - 2 - sim_below(w, told < 5 ? told - 1 : 4));
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    person_peer(person, &peer);
    if (by_node) {
        node_peer(node, &peer);
    }
    struct sched_event opened = {.kind = SCHED_EV_OPENED, .conn = CONN, .peer = &peer};
    if (!w->failed) {
        apply(sched, &opened, now);
        if (by_node) {
            come_back(w, sched, now, node);
        } else {
            submit(w, sched, now, stamp, true);
            submit(w, sched, now, NULL, false);
        }
    }
    sched_destroy(sched);
}
