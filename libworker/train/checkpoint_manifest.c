/* checkpoint_manifest.c - what a checkpoint says of itself: docs/checkpoint.md */
#include "libworker/train/checkpoint_manifest.h"

#include "libworker/data/json_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys in the order of the alphabet, numbers that read back as the same bits: what is digested. */
enum { CANONICAL = JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17) };
enum { READABLE = JSON_SORT_KEYS | JSON_INDENT(1) | JSON_REAL_PRECISION(17) };

void checkpoint_manifest_fini(struct checkpoint_manifest *manifest)
{
    free(manifest->job);
    free(manifest->plan);
    manifest->job = manifest->plan = NULL;
}

const char *checkpoint_manifest_first_tag(const struct checkpoint_manifest *manifest)
{
    return manifest->first_tag[0] != '\0' ? manifest->first_tag : manifest->tag;
}

/* "accuracy max" */
static void name_judge(const struct job_judge *judge, char ret[CHECKPOINT_JUDGE_MAX + 1])
{
    snprintf(ret, CHECKPOINT_JUDGE_MAX + 1, "%s-%s", job_judge_metric(judge),
             job_judge_wants_more(judge) ? "max" : "min");
}

struct watch checkpoint_manifest_watch(const struct checkpoint_manifest *manifest,
                                       const struct job *job)
{
    const struct watch none = {0};
    char name[CHECKPOINT_JUDGE_MAX + 1];
    name_judge(&job->early_stop, name);
    return job->has_early_stop && strcmp(name, manifest->watch_of) == 0 ? manifest->watch : none;
}

void checkpoint_manifest_set_watch(struct checkpoint_manifest *manifest, const struct job *job,
                                   const struct watch *watch)
{
    if (job->has_early_stop) {
        name_judge(&job->early_stop, manifest->watch_of);
        manifest->watch = *watch;
    }
}

static int digest(const char *text, size_t size, char ret[SUM_HEX])
{
    struct sum *sum = text != NULL ? sum_create() : NULL;
    if (sum == NULL) {
        return MS_E_NOMEM;
    }
    sum_add(sum, text, size);
    sum_hex(sum, ret);
    sum_destroy(sum);
    return MS_OK;
}

/* Over all keys but its own. */
static int digest_of(json_t *root, char ret[SUM_HEX])
{
    size_t size = 0;
    char *text = json_text(root, CANONICAL, &size);
    int rc = digest(text, size, ret);
    free(text);
    return rc;
}

/* ---- writing ---- */

static json_t *to_json(const struct checkpoint_manifest *m, json_t *job)
{
    return json_pack("{s:s, s:i, s:I, s:I, s:I, s:f, s:b, s:b, s:f, s:s, s:s, s:o, s:s, s:s, s:s, "
                     "s:{s:s, s:I, s:s}}",
                     "format", CHECKPOINT_FORMAT, "version", (int)CHECKPOINT_VERSION, "step",
                     (json_int_t)m->step, "epoch", (json_int_t)m->epoch, "step_in_epoch",
                     (json_int_t)m->step_in_epoch, "loss", (double)m->loss, "evaluates",
                     m->evaluates, "stopped", m->stopped, "seconds", m->seconds, "name", m->name,
                     "job_tag", m->tag, "job", job, "job_sha256", m->job_sha256, "plan", m->plan,
                     "plan_sha256", m->plan_sha256, "data", "file", m->data, "size",
                     (json_int_t)m->data_size, "xxh3_128", m->data_sum);
}

/* Keys that not every manifest has. */
static int add_optional(json_t *root, const struct checkpoint_manifest *m)
{
    int rc = 0;
    if (m->first_tag[0] != '\0') {
        rc = json_object_set_new(root, "first_tag", json_string(m->first_tag));
    }
    if (rc == 0 && m->samples > 0) {
        rc = json_object_set_new(
            root, "dataset",
            json_pack("{s:I, s:s}", "samples", (json_int_t)m->samples, "xxh3_128", m->samples_sum));
    }
    if (rc == 0 && m->watch_of[0] != '\0') {
        rc = json_object_set_new(root, "early_stop",
                                 json_pack("{s:s, s:I, s:I, s:f, s:I}", "judge", m->watch_of,
                                           "seen", (json_int_t)m->watch.seen, "step",
                                           (json_int_t)m->watch.step, "best", m->watch.best, "bad",
                                           (json_int_t)m->watch.bad));
    }
    return rc;
}

char *checkpoint_manifest_format(const struct checkpoint_manifest *manifest, size_t *ret_size)
{
    char sum[SUM_HEX];
    char *text = NULL;
    json_t *job = json_loads(manifest->job, JSON_REJECT_DUPLICATES, NULL);
    json_t *root = job != NULL ? to_json(manifest, job) : NULL;
    if (root != NULL && add_optional(root, manifest) != 0) {
        json_decref(root);
        return NULL;
    }
    if (root != NULL && digest_of(root, sum) == MS_OK &&
        json_object_set_new(root, "manifest_xxh3_128", json_string(sum)) == 0) {
        text = json_text(root, READABLE, ret_size);
    }
    json_decref(root);
    return text;
}

/* ---- reading ---- */

struct reader {
    const json_t *root;
    const char *origin;
    struct ms_err *err;
};

static int fail(const struct reader *r, const char *why)
{
    return ms_fail(r->err, MS_E_INVALID, "%.200s: %s: the manifest is damaged, or none", r->origin,
                   why);
}

static int fail_key(const struct reader *r, const char *key)
{
    char why[64];
    snprintf(why, sizeof(why), "%s is missing or wrong", key);
    return fail(r, why);
}

static int read_whole(const struct reader *r, const json_t *object, const char *key, int64_t min,
                      uint64_t *ret)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < min) {
        return fail_key(r, key);
    }
    *ret = (uint64_t)json_integer_value(value);
    return MS_OK;
}

static int read_real(const struct reader *r, const json_t *object, const char *key, double *ret)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value) || !isfinite(json_number_value(value))) {
        return fail_key(r, key);
    }
    *ret = json_number_value(value);
    return MS_OK;
}

static int read_flag(const struct reader *r, const char *key, int *ret)
{
    const json_t *value = json_object_get(r->root, key);
    if (!json_is_boolean(value)) {
        return fail_key(r, key);
    }
    *ret = json_is_true(value);
    return MS_OK;
}

/* Of printable characters without blanks: it is printed, and used as a name. */
static int read_word(const struct reader *r, const json_t *object, const char *key, char *ret,
                     size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL || strlen(text) >= size) {
        return fail_key(r, key);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || *c == '/') {
            return fail_key(r, key);
        }
    }
    memcpy(ret, text, strlen(text) + 1);
    return MS_OK;
}

static int read_hex(const struct reader *r, const json_t *object, const char *key, char *ret,
                    size_t size)
{
    int rc = read_word(r, object, key, ret, size);
    return rc < 0 || (strlen(ret) == size - 1 && strspn(ret, "0123456789abcdef") == size - 1)
               ? rc
               : fail_key(r, key);
}

static int read_numbers(const struct reader *r, struct checkpoint_manifest *m)
{
    uint64_t epoch = 0;
    uint64_t step_in_epoch = 0;
    double loss = 0;
    int rc = read_whole(r, r->root, "step", 1, &m->step);
    rc = rc < 0 ? rc : read_whole(r, r->root, "epoch", 1, &epoch);
    rc = rc < 0 ? rc : read_whole(r, r->root, "step_in_epoch", 1, &step_in_epoch);
    rc = rc < 0 ? rc : read_real(r, r->root, "loss", &loss);
    rc = rc < 0 ? rc : read_real(r, r->root, "seconds", &m->seconds);
    rc = rc < 0 ? rc : read_flag(r, "evaluates", &m->evaluates);
    rc = rc < 0 ? rc : read_flag(r, "stopped", &m->stopped);
    m->epoch = (int64_t)epoch;
    m->step_in_epoch = (int64_t)step_in_epoch;
    m->loss = (float)loss;
    return rc < 0 || isfinite(m->loss) ? rc : fail_key(r, "loss");
}

static int read_words(const struct reader *r, struct checkpoint_manifest *m)
{
    const json_t *data = json_object_get(r->root, "data");
    int rc = read_word(r, r->root, "name", m->name, sizeof(m->name));
    rc = rc < 0 ? rc : read_word(r, r->root, "job_tag", m->tag, sizeof(m->tag));
    if (rc == 0 && json_object_get(r->root, "first_tag") != NULL) { /* it was resumed */
        rc = read_word(r, r->root, "first_tag", m->first_tag, sizeof(m->first_tag));
    }
    rc = rc < 0 ? rc : read_hex(r, r->root, "job_sha256", m->job_sha256, sizeof(m->job_sha256));
    rc = rc < 0 ? rc : read_hex(r, r->root, "plan_sha256", m->plan_sha256, sizeof(m->plan_sha256));
    rc = rc < 0 ? rc : read_word(r, data, "file", m->data, sizeof(m->data));
    rc = rc < 0 ? rc : read_whole(r, data, "size", 0, &m->data_size);
    return rc < 0 ? rc : read_hex(r, data, "xxh3_128", m->data_sum, sizeof(m->data_sum));
}

static int read_dataset(const struct reader *r, struct checkpoint_manifest *m)
{
    const json_t *dataset = json_object_get(r->root, "dataset");
    uint64_t samples = 0;
    int rc = dataset == NULL || json_is_object(dataset) ? MS_OK : fail_key(r, "dataset");
    if (rc < 0 || dataset == NULL) {
        return rc;
    }
    rc = read_whole(r, dataset, "samples", 1, &samples);
    m->samples = (int64_t)samples;
    return rc < 0 ? rc : read_hex(r, dataset, "xxh3_128", m->samples_sum, sizeof(m->samples_sum));
}

static int read_watch(const struct reader *r, struct checkpoint_manifest *m)
{
    const json_t *object = json_object_get(r->root, "early_stop");
    uint64_t bad = 0;
    if (object == NULL) {
        return MS_OK;
    }
    int rc = read_word(r, object, "judge", m->watch_of, sizeof(m->watch_of));
    rc = rc < 0 ? rc : read_whole(r, object, "seen", 0, &m->watch.seen);
    rc = rc < 0 ? rc : read_whole(r, object, "step", 0, &m->watch.step);
    rc = rc < 0 ? rc : read_real(r, object, "best", &m->watch.best);
    rc = rc < 0 ? rc : read_whole(r, object, "bad", 0, &bad);
    m->watch.bad = (int64_t)bad;
    const int is_sound = m->watch.seen <= m->step && m->watch.step <= m->watch.seen;
    return rc < 0 || is_sound ? rc : fail_key(r, "early_stop");
}

static int read_texts(const struct reader *r, struct checkpoint_manifest *m)
{
    uint8_t bytes[MS_SHA256_BYTES];
    char hex[MS_SHA256_HEX];
    const json_t *job = json_object_get(r->root, "job");
    const char *plan = json_string_value(json_object_get(r->root, "plan"));
    if (!json_is_object(job) || plan == NULL || strlen(plan) > MS_PLAN_MAX) {
        return fail_key(r, plan == NULL ? "plan" : "job");
    }
    m->job = json_text(job, CANONICAL, NULL);
    m->plan = strdup(plan);
    if (m->job == NULL || m->plan == NULL) {
        return ms_fail(r->err, MS_E_NOMEM, "%.200s: no memory to read it", r->origin);
    }
    ms_sha256(m->job, strlen(m->job), bytes);
    ms_sha256_hex(bytes, hex);
    return strcmp(hex, m->job_sha256) == 0 ? MS_OK : fail_key(r, "job_sha256");
}

static int check_format(const struct reader *r)
{
    const char *format = json_string_value(json_object_get(r->root, "format"));
    const json_t *version = json_object_get(r->root, "version");
    if (format == NULL || strcmp(format, CHECKPOINT_FORMAT) != 0 || !json_is_integer(version)) {
        return fail(r, "it is no JSON object of ours");
    }
    return json_integer_value(version) == CHECKPOINT_VERSION
               ? MS_OK
               : ms_fail(r->err, MS_E_UNSUPPORTED,
                         "%.200s: version %lld of checkpoints; this release knows %d", r->origin,
                         (long long)json_integer_value(version), CHECKPOINT_VERSION);
}

/* root without its digest from here on. */
static int check_digest(const struct reader *r, json_t *root)
{
    char there[SUM_HEX];
    char here[SUM_HEX];
    int rc = read_hex(r, root, "manifest_xxh3_128", there, sizeof(there));
    if (rc < 0) {
        return rc;
    }
    (void)json_object_del(root, "manifest_xxh3_128");
    return digest_of(root, here) < 0
               ? ms_fail(r->err, MS_E_NOMEM, "%.200s: no memory to read it", r->origin)
           : strcmp(there, here) == 0 ? MS_OK
                                      : fail(r, "its digest is another one");
}

int checkpoint_manifest_parse(const char *text, size_t size, const char *origin,
                              struct checkpoint_manifest *ret, struct ms_err *err)
{
    struct checkpoint_manifest m = {.job = NULL};
    json_t *root =
        size <= MS_CHECKPOINT_MAX ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const struct reader r = {root, origin, err};
    int rc = check_format(&r);
    rc = rc < 0 ? rc : check_digest(&r, root);
    rc = rc < 0 ? rc : read_numbers(&r, &m);
    rc = rc < 0 ? rc : read_words(&r, &m);
    rc = rc < 0 ? rc : read_dataset(&r, &m);
    rc = rc < 0 ? rc : read_watch(&r, &m);
    rc = rc < 0 ? rc : read_texts(&r, &m);
    json_decref(root);
    if (rc < 0) {
        checkpoint_manifest_fini(&m);
        return rc;
    }
    *ret = m;
    return MS_OK;
}
