/* test_store_events.c - the table of events: what is kept of it, and pages read back as answers */
#include "daemon/store/store.h"
#include "tests/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static struct store *store;
static const char *dir;
static char path[300];

static void setup(void)
{
    dir = test_dir_make();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    ck_ms_ok(store_open(path, &store, err));
}

static void teardown(void)
{
    store_close(store);
    store = NULL;
    test_dir_remove(dir);
}

static const char *facts = "{\"generation\":1}";

/* Nodes are w0 to w2, jobs 0 to 6, by number. */
static int put(uint64_t first, uint64_t n)
{
    enum { BITE = 1000 };
    static struct sched_event_row rows[BITE];
    static struct sched_effect effects[BITE];
    static const char *const nodes[] = {"w0", "w1", "w2"};
    int rc = 0;
    for (uint64_t done = 0; done < n && rc == 0;) {
        size_t bite = 0;
        for (; bite < BITE && done < n; bite++, done++) {
            uint64_t seq = first + done;
            rows[bite] = (struct sched_event_row){seq,      1700000000000,  "job.started",
                                                  seq % 7,  nodes[seq % 3], "user:alice",
                                                  "plan ä", facts};
            effects[bite] = (struct sched_effect){.kind = SCHED_DO_PUT_EVENT, .event = &rows[bite]};
        }
        rc = store_commit(store, effects, bite, NULL);
    }
    return rc;
}

/* The answer as its asker unpacks it; owned. */
static ProtobufCMessage *read_back(const struct sched_read *read, uint16_t want)
{
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    size_t size = 0;
    uint8_t *frame = store_answer(store, read, &size);
    ck_assert_ptr_nonnull(frame);
    ck_ms_ok(ms_wire_parse_header(frame, &header, err));
    ck_assert_uint_eq(MS_WIRE_HEADER + header.length, size);
    ck_assert_uint_eq(header.id, read->frame_id);
    ck_assert_uint_eq(header.type, want);
    ck_ms_ok(ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, err));
    free(frame);
    return msg;
}

static struct sched_read question(uint64_t after, uint64_t before, uint64_t last)
{
    return (struct sched_read){.kind = SCHED_READ_EVENTS,
                               .frame_id = 5,
                               .after = after,
                               .before = before,
                               .last = last,
                               .node_id = "",
                               .limit = MS_EVENTS_PAGE};
}

/* Asks until there is no more; numbers in the order in which they came, at most max. */
static size_t read_all(struct sched_read read, uint64_t *ret, size_t max, unsigned *ret_asked)
{
    size_t n = 0;
    int more = 1;
    *ret_asked = 0;
    while (more) {
        Ms__EventList *list = (Ms__EventList *)read_back(&read, MS_MSG_EVENT_LIST);
        ck_assert_uint_le(list->n_events, read.limit);
        ck_assert_uint_eq(list->last, read.last);
        for (size_t i = 0; i < list->n_events; i++) {
            ck_assert_uint_lt(n, max);
            ret[n++] = list->events[i]->number;
        }
        more = list->more;
        read.after = read.before == 0 ? list->at : read.after;
        read.before = read.before == 0 ? 0 : list->at;
        ms_wire_free(&list->base);
        ck_assert_uint_lt(++*ret_asked, 1000);
    }
    return n;
}

START_TEST(an_event_comes_back_as_it_was_written)
{
    ck_assert_int_eq(put(1, 5), 0);
    struct sched_read read = question(3, 0, 4); /* 5 was written after the question */

    Ms__EventList *list = (Ms__EventList *)read_back(&read, MS_MSG_EVENT_LIST);

    ck_assert_uint_eq(list->n_events, 1);
    ck_assert_uint_eq(list->events[0]->number, 4);
    ck_assert_int_eq(list->events[0]->at_ms, 1700000000000);
    ck_assert_str_eq(list->events[0]->kind, "job.started");
    ck_assert_uint_eq(list->events[0]->job, 4);
    ck_assert_str_eq(list->events[0]->node_id, "w1");
    ck_assert_str_eq(list->events[0]->text, "plan ä");
    ck_assert_str_eq(list->events[0]->facts, facts);
    ck_assert_uint_eq(list->at, 4);
    ck_assert_uint_eq(list->first, 1);
    ck_assert(!list->more);
    ms_wire_free(&list->base);
}
END_TEST

/* A page is as long as a frame may be: fewer events then, and none is left out. */
START_TEST(large_facts_make_shorter_pages)
{
    static char large[MS_FACTS_MAX + 1];
    static uint64_t numbers[6000];
    unsigned asked = 0;
    memset(large, 'f', MS_FACTS_MAX);
    facts = large;
    ck_assert_int_eq(put(1, 100), 0);
    facts = "";
    ck_assert_int_eq(put(101, 100), 0);
    facts = "{\"generation\":1}";

    for (int backwards = 0; backwards < 2; backwards++) {
        size_t n = read_all(question(0, backwards ? UINT64_MAX : 0, 200), numbers, 6000, &asked);
        ck_assert_uint_eq(n, 200);
        for (size_t i = 0; i < n; i++) {
            ck_assert_uint_eq(numbers[i], backwards ? 200 - i : i + 1);
        }
        ck_assert_uint_ge(asked, 100 * MS_FACTS_MAX / MS_EVENTS_BYTES);
        ck_assert_uint_le(asked, 8);
    }
    struct sched_read read = question(99, 0, 200);
    Ms__EventList *list = (Ms__EventList *)read_back(&read, MS_MSG_EVENT_LIST);
    ck_assert_uint_eq(list->n_events, 101);
    ck_assert_str_eq(list->events[0]->facts, large);
    ck_assert_str_eq(list->events[1]->facts, "");
    ms_wire_free(&list->base);
}
END_TEST

START_TEST(pages_lead_through_all_events_in_both_directions)
{
    static uint64_t numbers[6000];
    unsigned asked = 0;
    ck_assert_int_eq(put(1, 450), 0);
    ck_assert_int_eq(put(1000000001, 50), 0); /* a copy was put back in between */

    size_t n = read_all(question(0, 0, 1000000050), numbers, 6000, &asked);
    ck_assert_uint_eq(n, 500);
    ck_assert_uint_eq(asked, 3);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(numbers[i], i < 450 ? i + 1 : 1000000001 + i - 450);
    }

    n = read_all(question(0, UINT64_MAX, 1000000050), numbers, 6000, &asked);
    ck_assert_uint_eq(n, 500);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(numbers[i], i < 50 ? 1000000050 - i : 500 - i);
    }
    struct sched_read few = question(UINT64_MAX, 0, 1000000050);
    ck_assert_uint_eq(read_all(few, numbers, 6000, &asked), 0);
}
END_TEST

START_TEST(a_question_about_one_job_or_node_looks_at_so_many_rows_and_no_more)
{
    static uint64_t numbers[6000];
    unsigned asked = 0;
    ck_assert_int_eq(put(1, 5000), 0);
    struct sched_read read = question(0, 0, 5000);
    read.job = 3;
    read.node_id = "w1";

    size_t n = read_all(read, numbers, 6000, &asked);

    ck_assert_uint_eq(n, 238); /* 10, 31, 52 ... */
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(numbers[i], 10 + 21 * i);
    }
    ck_assert_uint_eq(asked, 3); /* 2,000 rows each */
    read.job = 99;
    ck_assert_uint_eq(read_all(read, numbers, 6000, &asked), 0);
    ck_assert_uint_eq(asked, 3);
    read = question(0, UINT64_MAX, 5000);
    read.job = 3;
    read.limit = 10;
    Ms__EventList *list = (Ms__EventList *)read_back(&read, MS_MSG_EVENT_LIST);
    ck_assert_uint_eq(list->n_events, 10);
    ck_assert_uint_eq(list->events[0]->number, 4994);
    ck_assert_uint_eq(list->events[9]->number, 4994 - 9 * 7);
    ck_assert(list->more);
    ms_wire_free(&list->base);
}
END_TEST

static void spoil(const char *text)
{
    sqlite3 *db = NULL;
    store_close(store);
    store = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    /* the triggers of the ledger stay as they are: they need no function of ours */
    ck_assert_int_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_ms_ok(store_open(path, &store, err));
}

START_TEST(an_event_that_is_damaged_is_named_and_not_told)
{
    ck_assert_int_eq(put(1, 5), 0);
    spoil("UPDATE event SET text = 'all is well' WHERE seq = 4");
    struct sched_read read = question(0, 0, 5);

    Ms__Error *error = (Ms__Error *)read_back(&read, MS_MSG_ERROR);

    ck_assert_int_eq(error->code, MS_E_IO);
    ck_assert_ptr_nonnull(strstr(error->text, "event 4 of database"));
    ms_wire_free(&error->base);
    read.last = 3;
    ms_wire_free(read_back(&read, MS_MSG_EVENT_LIST));
}
END_TEST

static int drop(uint64_t seq)
{
    struct sched_effect effect = {.kind = SCHED_DO_DROP_EVENT, .event_seq = seq};
    return store_commit(store, &effect, 1, NULL);
}

/* The number from which on nothing is missing, as who asks hears it. */
static uint64_t first_of(uint64_t last)
{
    struct sched_read read = question(0, 0, last);
    Ms__EventList *list = (Ms__EventList *)read_back(&read, MS_MSG_EVENT_LIST);
    uint64_t first = list->first;
    ms_wire_free(&list->base);
    return first;
}

static void reopen(void)
{
    struct sched *sched = NULL;
    struct sched_config cfg = {.lease_ms = 1000, .topo_timeout_ms = -1, .has_database = 1};
    store_close(store);
    store = NULL;
    ck_ms_ok(store_open(path, &store, err));
    sched = sched_create(&cfg, (struct sched_time){1000, 1000});
    ck_ms_ok(store_load(store, sched, err));
    sched_destroy(sched);
}

START_TEST(an_event_that_is_dropped_is_gone_and_who_asks_hears_from_where_on_all_are_there)
{
    uint64_t numbers[16];
    unsigned asked = 0;
    ck_assert_int_eq(put(1, 9), 0);
    ck_assert_uint_eq(first_of(9), 1);

    ck_assert_int_eq(drop(6), 0);
    ck_assert_int_eq(drop(3), 0);

    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(first_of(9), 7);
        ck_assert_uint_eq(read_all(question(0, 0, 9), numbers, 16, &asked), 7);
        ck_assert_uint_eq(numbers[2], 4);
        ck_assert_uint_eq(numbers[4], 7);
        reopen(); /* it knows that from its rows */
    }
    ck_assert_int_eq(put(10, 2), 0);
    ck_assert_uint_eq(first_of(11), 7);
}
END_TEST

/* What happened between a copy and its loss is not there: whoever saw the number before hears so.
 */
START_TEST(numbers_that_are_left_out_count_as_missing)
{
    ck_assert_int_eq(put(1, 5), 0);
    ck_assert_int_eq(put(1000001, 5), 0);
    ck_assert_uint_eq(first_of(1000005), 1000001);
    reopen();
    ck_assert_uint_eq(first_of(1000005), 1000001);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store_events");
    TCase *t = tcase_create("events");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_event_comes_back_as_it_was_written);
    tcase_add_test(t, pages_lead_through_all_events_in_both_directions);
    tcase_add_test(t, large_facts_make_shorter_pages);
    tcase_add_test(t, a_question_about_one_job_or_node_looks_at_so_many_rows_and_no_more);
    tcase_add_test(t, an_event_that_is_damaged_is_named_and_not_told);
    tcase_add_test(t,
                   an_event_that_is_dropped_is_gone_and_who_asks_hears_from_where_on_all_are_there);
    tcase_add_test(t, numbers_that_are_left_out_count_as_missing);
    suite_add_tcase(s, t);
    return test_run(s);
}
