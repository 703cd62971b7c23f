/* json.c - messages as JSON objects, for --json */
#include "cli/json.h"

#include "cli/cli.h"
#include "cli/node_words.h"
#include "cli/still.h"
#include "proto/err.h"

#include <math.h>
#include <string.h>

json_t *cli_json_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void put_int(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* 0 says that it is not known. */
static void put_known(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, value > 0 ? json_integer((json_int_t)value) : json_null());
}

/* Text that is no UTF-8 would be dropped silently: it goes out as "?" then. */
static void put_text(json_t *object, const char *key, const char *text)
{
    json_t *value = json_string(text != NULL ? text : "");
    json_object_set_new(object, key, value != NULL ? value : json_string("?"));
}

static void put_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, cli_json_real(value));
}

json_t *cli_json_progress(const Ms__Progress *p)
{
    json_t *o = json_object();
    put_int(o, "generation", p->generation);
    put_int(o, "step", p->step);
    put_int(o, "steps_total", p->steps_total);
    put_int(o, "epoch", p->epoch);
    put_int(o, "epochs", p->epochs);
    put_int(o, "step_in_epoch", p->step_in_epoch);
    put_int(o, "steps_per_epoch", p->steps_per_epoch);
    put_real(o, "loss", p->loss);
    put_real(o, "samples_per_s", p->samples_per_s);
    put_real(o, "step_ms", p->step_ms);
    put_real(o, "comm_wait_ms", p->comm_wait_ms);
    put_text(o, "phase", p->phase);
    return o;
}

static json_t *eval_json(const Ms__Progress *p)
{
    json_t *o = json_object();
    put_int(o, "epoch", p->epoch);
    put_real(o, "eval_loss", p->eval_loss);
    /* a regression has no accuracy */
    put_real(o, "accuracy", p->accuracy >= 0 && p->accuracy <= 1 ? p->accuracy : NAN);
    put_real(o, "unsettled", p->unsettled >= 0 && p->unsettled <= 1 ? p->unsettled : NAN);
    return o;
}

static json_t *ranks_json(const Ms__JobInfo *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_ranks; i++) {
        const Ms__RankInfo *rank = job->ranks[i];
        json_t *o = json_object();
        put_int(o, "rank", rank->rank);
        put_text(o, "node", rank->node_id);
        put_text(o, "host", rank->host_name);
        put_text(o, "state", rank->state);
        put_int(o, "step", rank->step);
        put_known(o, "pid", rank->pid);
        put_text(o, "log", rank->log_path);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *evals_json(const Ms__JobInfo *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_evals; i++) {
        json_array_append_new(list, eval_json(job->evals[i]));
    }
    return list;
}

/* A job that runs, or did not end by itself, has told no result: what was reported last is known.
 */
static uint64_t steps_of(const Ms__JobInfo *job)
{
    return job->steps == 0 && job->progress != NULL ? job->progress->step : job->steps;
}

static double seconds_of(const Ms__JobInfo *job)
{
    return job->seconds > 0 ? job->seconds : fmax(cli_job_seconds(job), 0);
}

json_t *cli_json_job(const Ms__JobInfo *job)
{
    json_t *o = json_object();
    put_int(o, "id", job->id);
    put_text(o, "name", job->name);
    put_text(o, "owner", job->owner);
    put_text(o, "state", job->state);
    put_text(o, "reason", job->reason);
    put_int(o, "workers", job->workers);
    json_object_set_new(o, "priority", json_integer(job->priority));
    put_int(o, "generation", job->generation);
    json_object_set_new(o, "submitted_ms", json_integer(job->submitted_ms));
    json_object_set_new(o, "started_ms", json_integer(job->started_ms));
    json_object_set_new(o, "ended_ms", json_integer(job->ended_ms));
    put_int(o, "steps", steps_of(job));
    put_real(o, "seconds", seconds_of(job));
    put_int(o, "recoveries", job->recoveries);
    put_int(o, "ranks_lost", job->ranks_lost);
    put_int(o, "recovering_ms", job->recovering_ms);
    json_object_set_new(o, "recovering_least", json_boolean(job->recovering_least));
    put_int(o, "again_from", job->again_from);
    put_int(o, "again_to", job->again_to);
    put_text(o, "weights_sha256", job->weights_sha256);
    put_text(o, "plan_sha256", job->plan_sha256);
    json_object_set_new(o, "plan_given", json_boolean(job->plan_given));
    if (job->plan[0] != '\0') { /* who asked for it */
        put_text(o, "plan", job->plan);
    }
    put_text(o, "code", ms_code_name(job->code));
    if (job->progress != NULL) {
        json_object_set_new(o, "progress", cli_json_progress(job->progress));
    }
    json_object_set_new(o, "evals", evals_json(job));
    json_object_set_new(o, "ranks", ranks_json(job));
    if (job->job_json.len > 0) {
        json_t *spec = json_loadb((const char *)job->job_json.data, job->job_json.len, 0, NULL);
        json_object_set_new(o, "job", spec != NULL ? spec : json_null());
    }
    return o;
}

json_t *cli_json_still(json_t *object, const Ms__JobInfo *job, const struct cli_still *still)
{
    if (still != NULL && still->is_known) {
        put_int(object, "recovering_ms", job->recovering_ms + still->ms);
        json_object_set_new(object, "recovering_least",
                            json_boolean(job->recovering_least || still->is_least));
    }
    return object;
}

json_t *cli_json_node(const Ms__NodeInfo *node)
{
    json_t *o = json_object();
    put_text(o, "node", node->node_id);
    put_text(o, "host", node->host_name);
    put_text(o, "state", node->state);
    put_text(o, "activity", node->activity);
    put_text(o, "reason", node->reason);
    put_known(o, "cores", node->cores);
    put_known(o, "physical_cores", node->physical);
    put_known(o, "memory_bytes", node->memory_bytes);
    put_text(o, "address", node->address);
    json_object_set_new(o, "last_seen_ms",
                        cli_node_is_heard(node) ? json_integer((json_int_t)node->last_seen_ms)
                                                : json_null());
    put_text(o, "isa", node->isa);
    put_text(o, "onednn", node->onednn);
    put_known(o, "pid", node->pid);
    put_text(o, "cert_name", node->cert_name);
    return o;
}

json_t *cli_json_event(const Ms__EventInfo *event)
{
    json_t *o = json_object();
    put_int(o, "number", event->number);
    put_int(o, "at_ms", (uint64_t)event->at_ms);
    put_text(o, "kind", event->kind);
    put_int(o, "job", event->job);
    put_text(o, "node", event->node_id);
    put_text(o, "text", event->text);
    json_t *facts = json_loads(event->facts, 0, NULL); /* none of an older database */
    json_object_set_new(o, "facts", json_is_object(facts) ? json_incref(facts) : json_object());
    json_decref(facts);
    return o;
}

json_t *cli_json_status(const Ms__StatusInfo *s)
{
    json_t *o = json_object();
    put_text(o, "software", s->software);
    put_text(o, "cluster", s->cluster);
    put_int(o, "uptime_ms", s->uptime_ms);
    put_int(o, "nodes_registered", s->nodes_registered);
    put_int(o, "nodes_idle", s->nodes_idle);
    put_int(o, "nodes_lost", s->nodes_lost);
    put_int(o, "jobs_queued", s->jobs_queued);
    put_int(o, "jobs_running", s->jobs_running);
    put_int(o, "jobs_ended", s->jobs_ended);
    put_int(o, "generation", s->generation);
    put_text(o, "database", s->database);
    put_int(o, "clients", s->clients);
    put_text(o, "waiting_for", s->waiting_for);
    put_int(o, "ticks", s->ticks);
    put_int(o, "tick_p50_us", s->tick_p50_us);
    put_int(o, "tick_p99_us", s->tick_p99_us);
    put_int(o, "tick_p999_us", s->tick_p999_us);
    put_int(o, "tick_max_us", s->tick_max_us);
    put_int(o, "tick_cpu_p50_us", s->tick_cpu_p50_us);
    put_int(o, "tick_cpu_p99_us", s->tick_cpu_p99_us);
    put_int(o, "tick_cpu_p999_us", s->tick_cpu_p999_us);
    put_int(o, "tick_cpu_max_us", s->tick_cpu_max_us);
    put_int(o, "commits", s->commits);
    put_int(o, "commit_p50_us", s->commit_p50_us);
    put_int(o, "commit_p99_us", s->commit_p99_us);
    put_int(o, "commit_p999_us", s->commit_p999_us);
    put_int(o, "commit_max_us", s->commit_max_us);
    put_int(o, "commit_last_us", s->commit_last_us);
    json_object_set_new(o, "draining", json_boolean(s->draining));
    return o;
}

void cli_json_print(FILE *out, json_t *value)
{
    json_dumpf(value, out, JSON_COMPACT | JSON_PRESERVE_ORDER);
    fputc('\n', out);
    fflush(out);
    json_decref(value);
}
