/* read.c - answers that need what only the database has */
#include "daemon/store/store_private.h"
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

/* Returns owned; NULL without memory, or too large for a frame. */
static uint8_t *pack(const struct sched_read *read, uint16_t type, const ProtobufCMessage *msg,
                     size_t *ret_bytes, struct ms_err *err)
{
    size_t size = ms_wire_size(msg);
    uint8_t *frame = malloc(size);
    if (frame == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for an answer of %zu bytes", size);
        return NULL;
    }
    if (ms_wire_pack(type, read->frame_id, msg, frame, size, err) < 0) {
        free(frame);
        return NULL;
    }
    *ret_bytes = size;
    return frame;
}

/* Of a job that is in the list: what it lacks goes into its place, packed before the next step. */
static uint8_t *pack_job(const struct sched_read *read, sqlite3_stmt *statement, size_t *ret_bytes,
                         struct ms_err *err)
{
    Ms__JobInfo *info = read->list->jobs[0];
    if (read->kind == SCHED_READ_PLAN) {
        info->plan = (char *)sqlite3_column_text(statement, 0);
    } else {
        struct reader reader = {.statement = statement};
        size_t size = 0;
        info->job_json.data = (uint8_t *)read_blob(&reader, &size);
        info->job_json.len = size;
    }
    return pack(read, MS_MSG_JOB_LIST, &read->list->base, ret_bytes, err);
}

static uint8_t *answer_job(struct store *store, const struct sched_read *read, size_t *ret_bytes,
                           struct ms_err *err)
{
    const int is_plan = read->kind == SCHED_READ_PLAN;
    struct binder binder = bind_begin(store, is_plan ? ST_READ_PLAN : ST_READ_SPEC);
    uint8_t *frame = NULL;
    bind_int(&binder, (int64_t)read->job);
    int rc = binder.rc == SQLITE_OK ? sqlite3_step(binder.statement) : binder.rc;
    int is_whole = rc == SQLITE_ROW && sqlite3_column_int(binder.statement, 1) == 1;
    if (is_whole) {
        const Ms__JobInfo lacking = *read->list->jobs[0];
        frame = pack_job(read, binder.statement, ret_bytes, err);
        *read->list->jobs[0] = lacking;
    } else if (rc == SQLITE_DONE) { /* the tick that asked let it go */
        ms_fail(err, MS_E_NOT_FOUND,
                "job %llu does not exist any more: newer ones have taken its place in the history",
                (unsigned long long)read->job);
    } else {
        ms_fail(err, MS_E_IO, "the %s of job %llu cannot be read from database %s: %s",
                is_plan ? "plan" : "description", (unsigned long long)read->job, store->path,
                rc == SQLITE_ROW ? "it does not match its digest" : sqlite3_errstr(rc));
    }
    sqlite3_reset(binder.statement);
    sqlite3_clear_bindings(binder.statement);
    return frame;
}

/* ---- events -------------------------------------------------------------------------------------
 */

enum { EVENT_IS_WHOLE = 8 }; /* the column behind those of the row */

/* A row with its texts: those of SQLite live until the next step. */
struct event_copy {
    Ms__EventInfo info;
    char kind[MS_NAME_MAX + 1], node_id[MS_NAME_MAX + 1], text[MS_TEXT_MAX + 1];
};

struct page {
    Ms__EventList list;
    Ms__EventInfo *infos[MS_EVENTS_PAGE];
    struct event_copy copies[MS_EVENTS_PAGE];
    size_t bytes; /* of all, as they are sent */
    size_t facts_used;
    char facts[MS_EVENTS_BYTES + MS_EVENTS_PAGE + MS_FACTS_MAX + 1]; /* and of one that is not */
};

enum { EVENT_HEAD = 4 }; /* of one in the list: its number and its size */

static int take_event(const struct store *store, sqlite3_stmt *statement, struct page *page,
                      struct ms_err *err)
{
    struct reader reader = {.statement = statement};
    struct event_copy *copy = &page->copies[page->list.n_events];
    char *facts = page->facts + page->facts_used;
    ms__event_info__init(&copy->info);
    copy->info.number = (uint64_t)read_int(&reader);
    copy->info.at_ms = read_int(&reader);
    read_text(&reader, copy->kind, sizeof(copy->kind));
    copy->info.job = (uint64_t)read_int(&reader);
    read_text(&reader, copy->node_id, sizeof(copy->node_id));
    reader.index++; /* of whom it is */
    read_text(&reader, copy->text, sizeof(copy->text));
    read_text(&reader, facts, MS_FACTS_MAX + 1);
    if (reader.bad || read_int(&reader) != 1) {
        return ms_fail(err, MS_E_IO, "event %llu of database %s does not match its checksum",
                       (unsigned long long)copy->info.number, store->path);
    }
    copy->info.kind = copy->kind;
    copy->info.node_id = copy->node_id;
    copy->info.text = copy->text;
    copy->info.facts = facts;
    return MS_OK;
}

/* False: it belongs to the next page. */
static int keep_event(struct page *page)
{
    Ms__EventInfo *info = &page->copies[page->list.n_events].info;
    const size_t bytes = EVENT_HEAD + ms__event_info__get_packed_size(info);
    if (page->bytes + bytes > MS_EVENTS_BYTES) {
        return 0;
    }
    page->bytes += bytes;
    page->facts_used += strlen(info->facts) + 1;
    page->infos[page->list.n_events++] = info;
    return 1;
}

/* Steps over the range until the page is full or enough was looked at. */
static int take_events(const struct store *store, const struct sched_read *read,
                       sqlite3_stmt *statement, struct page *page, struct ms_err *err)
{
    int rc = MS_OK;
    int step = SQLITE_OK;
    unsigned looked = 0;
    while (rc == MS_OK && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        int is_asked_for = sqlite3_column_type(statement, EVENT_IS_WHOLE) != SQLITE_NULL;
        if (looked == MS_EVENTS_LOOK || (is_asked_for && page->list.n_events == read->limit)) {
            page->list.more = 1;
            break;
        }
        rc = is_asked_for ? take_event(store, statement, page, err) : MS_OK;
        if (rc == MS_OK && is_asked_for && !keep_event(page)) {
            page->list.more = 1;
            break;
        }
        looked++;
        page->list.at = (uint64_t)sqlite3_column_int64(statement, 0);
    }
    if (rc == MS_OK && step != SQLITE_ROW && step != SQLITE_DONE) {
        return ms_fail(err, MS_E_IO, "the events of database %s cannot be read: %s", store->path,
                       sqlite3_errstr(step));
    }
    if (!page->list.more && read->before == 0) {
        page->list.at = read->last;
    }
    return rc;
}

static int fill_page(struct store *store, const struct sched_read *read, struct page *page,
                     struct ms_err *err)
{
    uint64_t to = read->before != 0 && read->before <= read->last ? read->before - 1 : read->last;
    struct binder binder =
        bind_begin(store, read->before != 0 ? ST_READ_EVENTS_BACKWARDS : ST_READ_EVENTS);
    bind_count(&binder, read->after);
    bind_count(&binder, to);
    bind_count(&binder, read->job);
    bind_text(&binder, read->node_id);
    bind_int(&binder, MS_EVENTS_LOOK + 1);
    int rc = binder.rc == SQLITE_OK
                 ? take_events(store, read, binder.statement, page, err)
                 : ms_fail(err, MS_E_IO, "database %s: %s", store->path, sqlite3_errstr(binder.rc));
    sqlite3_reset(binder.statement);
    sqlite3_clear_bindings(binder.statement);
    return rc;
}

static uint8_t *answer_events(struct store *store, const struct sched_read *read, size_t *ret_bytes,
                              struct ms_err *err)
{
    struct page *page = malloc(sizeof(*page));
    uint8_t *frame = NULL;
    if (page == NULL) {
        ms_fail(err, MS_E_NOMEM, "no memory for a list of events: try again");
        return NULL;
    }
    ms__event_list__init(&page->list);
    page->bytes = page->facts_used = 0;
    page->list.events = page->infos;
    page->list.last = read->last;
    if (fill_page(store, read, page, err) == MS_OK) {
        page->list.first = store->events_whole_from;
        frame = pack(read, MS_MSG_EVENT_LIST, &page->list.base, ret_bytes, err);
    }
    free(page);
    return frame;
}

uint8_t *store_answer(struct store *store, const struct sched_read *read, size_t *ret_bytes)
{
    struct ms_err err = {0, ""};
    uint8_t *frame = read->kind == SCHED_READ_EVENTS ? answer_events(store, read, ret_bytes, &err)
                                                     : answer_job(store, read, ret_bytes, &err);
    if (frame == NULL) {
        Ms__Error msg = MS__ERROR__INIT;
        msg.code = err.code;
        msg.text = err.text;
        frame = pack(read, MS_MSG_ERROR, &msg.base, ret_bytes, NULL);
    }
    return frame;
}
