/* cmd_logs.c - msctl logs: the log of a rank, pulled through the scheduler */
#include "cli/clean.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/watch.h"
#include "proto/clock.h"

#include <stdlib.h>
#include <string.h>

const struct cli_option cmd_logs_options[] = {
    {"follow", 'f', NULL, "go on until the job has ended", NULL},
    {"rank", 'r', "R", "of which rank; 0 unless given", NULL},
    {"raw", 0, NULL, "every byte as it is, on a terminal too", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* A log has no notice of growth: it is asked again this often while followed. */
enum { FOLLOW_EVERY_MS = 300 };

struct reading {
    struct cli *cli;
    uint64_t job;
    uint32_t rank;
    uint64_t offset;
    int follow;
    uint32_t watch_id;
    int ended; /* the job: what is in the log now is all */
    int is_raw;
    struct cli_filter filter;
};

static void on_leave(void *arg)
{
    struct reading *r = (struct reading *)arg;
    fprintf(r->cli->err, "\ndetached; job %llu goes on\n", (unsigned long long)r->job);
}

static int begin_watch(struct reading *r, struct ms_err *err)
{
    Ms__Watch request = MS__WATCH__INIT;
    request.job = r->job;
    return client_send(r->cli->client, MS_MSG_WATCH, &request.base, &r->watch_id, err);
}

/* Takes the updates that have come meanwhile. */
static int read_updates(struct reading *r, struct ms_err *err)
{
    uint16_t type = 0;
    ProtobufCMessage *msg = NULL;
    int rc = MS_OK;
    while (rc == MS_OK && r->watch_id != 0 &&
           client_take(r->cli->client, r->watch_id, &type, &msg)) {
        if (type == MS_MSG_ERROR) {
            rc = client_error(msg, err);
        } else if (type == MS_MSG_JOB_UPDATE) {
            r->ended = ((const Ms__JobUpdate *)msg)->ended;
        }
        ms_wire_free(msg);
    }
    return rc;
}

/* JSON holds text alone: what is none is shown as on a terminal. */
static json_t *text_of(struct reading *r, const Ms__LogChunk *chunk)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    cli_filter_write(&r->filter, out, chunk->data.data, chunk->data.len,
                     chunk->at_end && !r->follow);
    fclose(out);
    json_t *value = text != NULL ? json_stringn(text, size) : NULL;
    free(text);
    return value;
}

static void put_chunk(struct reading *r, const Ms__LogChunk *chunk)
{
    if (chunk->data.len == 0) {
        return;
    }
    if (r->cli->json) {
        json_t *object = json_object();
        json_t *text = text_of(r, chunk);
        json_object_set_new(object, "offset", json_integer((json_int_t)chunk->offset));
        json_object_set_new(object, "rank", json_integer(r->rank));
        json_object_set_new(object, "data", text != NULL ? text : json_string("?"));
        cli_json_print(r->cli->out, object);
    } else if (r->is_raw) {
        fwrite(chunk->data.data, 1, chunk->data.len, r->cli->out);
    } else {
        cli_filter_write(&r->filter, r->cli->out, chunk->data.data, chunk->data.len,
                         chunk->at_end && !r->follow);
    }
    r->offset = chunk->offset + chunk->data.len;
}

/* One chunk: 1 there is more now, 0 this is the end for now. */
static int read_chunk(struct reading *r, struct ms_err *err)
{
    Ms__LogQuery query = MS__LOG_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    query.job = r->job;
    query.rank = r->rank;
    query.offset = r->offset;
    query.bytes_max = MS_LOG_CHUNK_MAX;
    int rc = client_call_of_node(r->cli->client, MS_MSG_LOG_QUERY, &query.base, MS_MSG_LOG_CHUNK,
                                 &msg, err);
    if (rc != MS_OK) {
        return rc;
    }
    const Ms__LogChunk *chunk = (const Ms__LogChunk *)msg;
    if (chunk->code < 0) {
        rc = client_node_error(chunk->code, chunk->text, err);
    } else {
        put_chunk(r, chunk);
        rc = cli_check_output(r->cli->out, err);
        rc = rc == MS_OK ? !chunk->at_end && chunk->data.len > 0 : rc;
    }
    ms_wire_free(msg);
    return rc;
}

/* While a job waits for its place, or its node is away, a follower waits with it. */
static int may_come(const struct reading *r, int code)
{
    return r->follow && !r->ended &&
           (code == MS_E_NOT_FOUND || code == MS_E_UNREACHABLE || code == MS_E_UNAVAILABLE);
}

static int read_log(struct reading *r, struct ms_err *err)
{
    for (;;) {
        int rc = read_updates(r, err);
        if (rc != MS_OK) {
            return rc;
        }
        int was_ended = r->ended; /* before the chunk: what is read now is complete then */
        rc = read_chunk(r, err);
        if (rc < 0 && client_get_state(r->cli->client) != CLIENT_OPEN && r->follow) {
            rc = cli_reconnect(r->cli, ms_mono_ms() + CLI_COMEBACK_MS, err);
            rc = rc == MS_OK ? begin_watch(r, err) : rc;
        } else if (rc < 0 && may_come(r, rc)) {
            rc = 0;
        } else if (rc == 0 && (!r->follow || was_ended)) {
            return MS_OK;
        }
        if (rc < 0) {
            return rc;
        }
        if (rc == 0) {
            cli_pause(r->cli, FOLLOW_EVERY_MS);
        }
    }
}

int cmd_logs(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct reading r = {.cli = cli, .follow = cli_has(args, "follow")};
    int64_t rank = 0;
    int rc = cli_need_words(args, 1, 1, "JOB", err);
    if (rc == MS_OK) {
        rc = cli_parse_job(args->words[0], &r.job, err);
    }
    if (rc == MS_OK) {
        rc = cli_number(args, "rank", 0, MS_WORKERS_MAX - 1, 0, &rank, err);
    }
    if (rc == MS_OK) {
        rc = cli_connect(cli, args, err);
    }
    if (rc == MS_OK && r.follow) {
        rc = cli_on_detach(cli, on_leave, &r, err);
    }
    if (rc == MS_OK && r.follow) {
        rc = begin_watch(&r, err);
    }
    r.rank = (uint32_t)rank;
    r.is_raw = cli->width == 0 || cli_has(args, "raw"); /* a file or a pipe gets what there is */
    return rc == MS_OK ? read_log(&r, err) : rc;
}
