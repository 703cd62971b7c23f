/* sim_copy.c - an older copy of the database is served: no number is given a second time
 *
 * Now and then somebody starts a scheduler over a copy that is known to be one, and over what that
 * one left; both are thrown away, and the cluster goes on with the newest. Whatever was given away
 * meanwhile counts: the next copy must not give it again. */
#include "tests/sim/model.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { CLIENT = 1, NODE = 2, ID = 5, SECOND_MS = 1000 };

void copy_take(struct world *w)
{
    if (w->mode != SCHED_DYNAMIC && !w->large && !w->real && sim_chance(w, 2)) {
        disk_clear(&w->copy);
        disk_copy(w, &w->copy, &w->disk);
    }
}

/* ---- what comes out -----------------------------------------------------------------------------
 */

/* Above all that was given away before now. */
static void given(struct world *w, const char *what, uint64_t number, uint64_t before,
                  uint64_t *ret_most)
{
    if (number <= before) {
        sim_fail(w, "over a copy %s %llu is given a second time: they were at %llu", what,
                 (ull)number, (ull)before);
    }
    *ret_most = number > *ret_most ? number : *ret_most;
}

/* A job that the copy does not know, and its number again. */
static void tagged(struct world *w, const Ms__Assign *msg)
{
    const struct m_job *job = m_job_find(w->model, msg->job);
    if (job != NULL && msg->job >= w->copy.next_job && strcmp(job->tag, msg->job_tag) == 0) {
        sim_fail(w, "two jobs have the number %llu, and both are tagged %s", (ull)msg->job,
                 job->tag);
    }
}

static void told(struct world *w, const struct sched_effect *effect, bool skips,
                 struct sim_given *most)
{
    struct ms_wire_header header = {0};
    struct ms_err err = {0, ""};
    ProtobufCMessage *msg = NULL;
    size_t size = 0;
    const uint8_t *frame = driver_frame(w, effect, &size);
    if (ms_wire_parse_header(frame, &header, &err) < 0 || header.type != MS_MSG_ASSIGN) {
        return;
    }
    if (ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, &err) < 0) {
        sim_fail(w, "over a copy a bad Assign is sent: %s", err.text);
        return;
    }
    const Ms__Assign *assign = (const Ms__Assign *)msg;
    if (skips) {
        given(w, "generation", assign->generation, w->given.generation, &most->generation);
    } else {
        tagged(w, assign);
    }
    ms_wire_free(msg);
}

/* Carries out what is stored, on the copy. */
static void carry_out(struct world *w, const struct sched *sched, struct sim_disk *disk, bool skips,
                      struct sim_given *most)
{
    size_t n = 0;
    const struct sched_effect *effects = sched_effects(sched, &n);
    for (size_t i = 0; i < n && !w->failed; i++) {
        const struct sched_effect *effect = &effects[i];
        switch (effect->kind) {
        case SCHED_DO_PUT_JOB:
            if (skips && effect->job->spec != NULL) {
                given(w, "job id", effect->job->id, w->given.job, &most->job);
            }
            disk_put_job(w, disk, effect->job);
            break;
        case SCHED_DO_PUT_PLAN:
            disk_put_plan(w, disk, effect->plan->sha256, effect->plan->text);
            break;
        case SCHED_DO_DROP_PLAN:
            disk_drop_plan(disk, effect->plan->sha256);
            break;
        case SCHED_DO_PUT_ASIDE:
            disk_put_aside(w, disk, effect->aside);
            break;
        case SCHED_DO_DROP_ASIDE:
            disk_drop_aside(disk, effect->aside->key);
            break;
        case SCHED_DO_PUT_MEMBER:
            disk_put_member(disk, effect->member);
            break;
        case SCHED_DO_PUT_META:
            if (skips && strcmp(effect->meta_key, "ticks") == 0) {
                given(w, "tick", effect->meta_value, w->given.tick, &most->tick);
            }
            disk_put_meta(disk, effect->meta_key, effect->meta_value);
            break;
        case SCHED_DO_PUT_EVENT:
            if (skips) {
                given(w, "event", effect->event->seq, w->given.event, &most->event);
            }
            disk->last_event = effect->event->seq;
            break;
        case SCHED_DO_SEND:
            told(w, effect, skips, most);
            break;
        case SCHED_DO_CLOSE:
        case SCHED_DO_LOG:
        case SCHED_DO_DROP_MEMBERS:
        case SCHED_DO_DROP_JOB:
        case SCHED_DO_READ:
        case SCHED_DO_EXIT:
        default:
            break;
        }
    }
}

/* ---- who comes ----------------------------------------------------------------------------------
 */

static void arrive(struct sched *sched, struct sched_time now, uint64_t conn,
                   const struct ms_peer *peer)
{
    struct sched_event event = {.kind = SCHED_EV_OPENED, .conn = conn, .peer = peer};
    sched_apply(sched, &event, now);
}

static void say(struct sched *sched, struct sched_time now, uint64_t conn, uint16_t type,
                const ProtobufCMessage *msg)
{
    struct sched_event event = {
        .kind = SCHED_EV_MESSAGE, .conn = conn, .type = type, .id = ID, .msg = msg};
    sched_apply(sched, &event, now);
}

/* A node for it, and a job of an admin before all others. */
static void use(struct sched *sched, struct sched_time now)
{
    struct ms_peer peer;
    memset(&peer, 0, sizeof(peer));
    ms_principal_from_certificate(MS_ROLE_WORKER, "copied", &peer.who);
    strcpy(peer.cert_name, "copied");
    arrive(sched, now, NODE, &peer);
    Ms__Register reg = MS__REGISTER__INIT;
    reg.node_id = (char *)"copied";
    reg.host_name = reg.host_id = (char *)"elsewhere";
    reg.incarnation = 1;
    reg.data_address = (char *)"10.0.0.77:8200";
    reg.isa = (char *)"avx2";
    say(sched, now, NODE, MS_MSG_REGISTER, &reg.base);
    Ms__Submit job = MS__SUBMIT__INIT;
    job.name = job.key = (char *)"over-a-copy";
    job.workers = 1;
    job.priority = MS_PRIORITY_MAX;
    job.job_json.data = (uint8_t *)"{}";
    job.job_json.len = 2;
    say(sched, now, CLIENT, MS_MSG_SUBMIT, &job.base);
}

/* A scheduler over disk, until it is killed. skip: it knows that it is a copy, and when. */
static void serve(struct world *w, struct sim_disk *disk, struct sched_time now, uint64_t skip,
                  bool is_used, bool skips, struct sim_given *most)
{
    struct sched_config cfg;
    struct ms_err err = {0, ""};
    struct sim_disk newest = w->disk;
    driver_config(w, &cfg);
    cfg.skip_ahead = skip;
    struct sched *sched = sched_create(&cfg, now);
    w->disk = *disk;
    int rc = sched != NULL ? disk_load(w, sched, &err) : MS_E_NOMEM;
    w->disk = newest;
    if (rc < 0 || sched_load_done(sched, now, &err) < 0) {
        sim_fail(w, "the scheduler cannot start over a copy: %s", err.text);
        sched_destroy(sched);
        return;
    }
    struct ms_peer peer;
    person_peer(PEOPLE - 1, &peer);
    sched_begin_tick(sched);
    arrive(sched, now, CLIENT, &peer);
    if (is_used) {
        use(sched, now);
    }
    carry_out(w, sched, disk, skips, most);
    sched_destroy(sched);
}

static void raise(uint64_t *number, uint64_t value)
{
    *number = value > *number ? value : *number;
}

static void raise_all(struct sim_given *to, const struct sim_given *from)
{
    raise(&to->job, from->job);
    raise(&to->generation, from->generation);
    raise(&to->event, from->event);
    raise(&to->tick, from->tick);
}

void copy_rehearse(struct world *w, struct sched_time now)
{
    int64_t second = w->now / SECOND_MS;
    if (w->copy.ticks == 0 || second <= w->copy_second) {
        return; /* the time says where numbers go on */
    }
    struct sim_disk disk;
    memset(&disk, 0, sizeof(disk));
    disk_copy(w, &disk, &w->copy);
    const struct sim_given newest = {w->disk.next_job > 0 ? w->disk.next_job - 1 : 0,
                                     w->disk.generation, w->disk.last_event, w->disk.ticks};
    struct sim_given most = newest;
    raise_all(&w->given, &newest);
    if (sim_chance(w, 30)) { /* nobody knows that it is a copy */
        serve(w, &disk, now, 0, true, false, &most);
    } else {
        uint64_t skip = sched_skip_of(1700000000000 + w->now);
        w->copy_second = second;
        serve(w, &disk, now, skip, sim_chance(w, 50), true, &most);
        raise_all(&w->given, &most);
        serve(w, &disk, now, 0, true, true, &most); /* what it had stored is what it goes on from */
        raise_all(&w->given, &most);
    }
    disk_fini(&disk);
}
