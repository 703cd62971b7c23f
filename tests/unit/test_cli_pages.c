/* test_cli_pages.c - lists that come page by page end, whatever the other end sends */
#include "cli/pages.h"
#include "proto/addr.h"
#include "proto/cluster.pb-c.h"
#include "tests/test.h"

#include <sys/socket.h>
#include <unistd.h>

enum { PAGE = 3, PAGES = 4, LINES_MAX = 100 };

enum manner {
    GOES_ON,
    REPEATS, /* the same page again */
    CIRCLES, /* pages that lead to one another */
    SWELLS,  /* rows without end */
};

static struct {
    struct event_base *base;
    struct event *accept;
    int fd;
    const char *root;
    char address[128];
    struct cli cli;
    enum manner manner;
    unsigned asked, seen;
    uint64_t last;
} w;

static void send_jobs(struct ms_conn *conn, uint32_t id, uint64_t after)
{
    static Ms__JobInfo jobs[PAGE];
    static Ms__JobInfo *rows[PAGE];
    Ms__JobList list = MS__JOB_LIST__INIT;
    uint64_t first = w.manner == REPEATS ? 1 : after + 1;
    for (unsigned i = 0; i < PAGE; i++) {
        ms__job_info__init(&jobs[i]);
        jobs[i].id = w.manner == CIRCLES ? PAGE - i : first + i;
        rows[i] = &jobs[i];
    }
    list.jobs = rows;
    list.n_jobs = PAGE;
    list.more = w.manner != GOES_ON || w.asked < PAGES;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_JOB_LIST, id, &list.base, err));
}

static void send_nodes(struct ms_conn *conn, uint32_t id)
{
    static Ms__NodeInfo node = MS__NODE_INFO__INIT;
    static Ms__NodeInfo *rows[200];
    static char text[] = "forty bytes or so of something about it";
    char next[32];
    Ms__NodeList list = MS__NODE_LIST__INIT;
    node.node_id = (char *)"n1"; /* and more: tiny rows by the hundred are refused as an attack */
    node.host_name = node.state = node.activity = node.address = node.reason = text;
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        rows[i] = &node;
    }
    list.nodes = rows;
    list.n_nodes = w.manner == GOES_ON ? PAGE : MS_ARRAY_SIZE(rows);
    list.more = w.manner != GOES_ON || w.asked < PAGES;
    snprintf(next, sizeof(next), "1:%u",
             w.manner == REPEATS   ? 0
             : w.manner == CIRCLES ? w.asked % 2
                                   : w.asked);
    list.next = next;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_NODE_LIST, id, &list.base, err));
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    ProtobufCMessage *msg = NULL;
    (void)arg;
    ck_ms_ok(ms_wire_unpack(head->type, bytes, head->length, &msg, err));
    w.asked++;
    if (head->type == MS_MSG_JOB_QUERY) {
        send_jobs(conn, head->id, ((const Ms__JobQuery *)msg)->after);
    } else if (head->type == MS_MSG_NODE_QUERY) {
        send_nodes(conn, head->id);
    }
    ms_wire_free(msg);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    static const struct ms_conn_handler handler = {.on_frame = on_frame};
    struct ms_conn *conn = NULL;
    struct ms_conn_options options = {
        .software = "test", .cluster = "standing", .owner_uid = (unsigned)getuid()};
    (void)what;
    (void)arg;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(got, 0);
    ck_ms_ok(ms_conn_accept(w.base, got, &options, &handler, NULL, &conn, err));
}

static void begin(void)
{
    struct ms_addr addr;
    memset(&w, 0, sizeof(w));
    w.root = test_dir_make();
    w.base = event_base_new();
    snprintf(w.address, sizeof(w.address), "unix:%s/s.sock", w.root);
    ck_ms_ok(ms_addr_parse(w.address, 0, &addr, err));
    ck_ms_ok(w.fd = ms_addr_listen(&addr, 16, err));
    w.accept = event_new(w.base, w.fd, EV_READ | EV_PERSIST, on_accept, NULL);
    event_add(w.accept, NULL);
    w.cli.base = w.base;
    w.cli.client = client_create(w.base, w.address, NULL, NULL);
    ck_ms_ok(client_connect(w.cli.client, err));
    ck_ms_ok(client_wait_open(w.cli.client, err));
}

static void end(void)
{
    client_destroy(w.cli.client);
    event_free(w.accept);
    close(w.fd);
    event_base_loop(w.base, EVLOOP_NONBLOCK);
    event_base_free(w.base);
    test_dir_remove(w.root);
}

static int see(void *arg, const Ms__JobInfo *job, struct ms_err *err)
{
    (void)arg;
    (void)err;
    w.last = job->id;
    return ++w.seen < LINES_MAX ? MS_OK : MS_E_FAILED;
}

static int read_jobs(struct ms_err *err)
{
    w.asked = w.seen = 0;
    return cli_pages_jobs(&w.cli, 1, see, NULL, err);
}

static size_t n_nodes;

static int read_nodes(struct ms_err *err)
{
    struct cli_nodes nodes = CLI_NODES_INIT;
    w.asked = 0;
    int rc = cli_pages_nodes(&w.cli, &nodes, err);
    n_nodes = nodes.all.n_nodes;
    cli_nodes_free(&nodes);
    return rc;
}

START_TEST(pages_are_one_list)
{
    ck_ms_ok(read_jobs(err));
    ck_assert_uint_eq(w.seen, PAGE * PAGES);
    ck_assert_uint_eq(w.last, PAGE * PAGES);
    ck_ms_ok(read_nodes(err));
    ck_assert_uint_eq(n_nodes, PAGE * PAGES);
}
END_TEST

START_TEST(pages_of_jobs_that_do_not_go_on_are_a_protocol_error)
{
    w.manner = REPEATS;
    ck_ms_fails(read_jobs(err), MS_E_PROTOCOL, "job 1 comes behind job 3");
    w.manner = CIRCLES; /* within a page */
    ck_ms_fails(read_jobs(err), MS_E_PROTOCOL, "job 2 comes behind job 3");
}
END_TEST

START_TEST(what_the_reader_of_a_list_says_ends_it)
{
    w.manner = SWELLS;
    ck_assert_int_eq(read_jobs(NULL), MS_E_FAILED);
    ck_assert_uint_eq(w.seen, LINES_MAX);
}
END_TEST

START_TEST(pages_of_nodes_that_do_not_go_on_are_a_protocol_error)
{
    w.manner = REPEATS;
    ck_ms_fails(read_nodes(err), MS_E_PROTOCOL, "does not go on behind '1:0'");
    ck_assert_uint_eq(w.asked, 2);
    w.manner = CIRCLES;
    ck_ms_fails(read_nodes(err), MS_E_PROTOCOL, "does not end");
    w.manner = SWELLS;
    ck_ms_fails(read_nodes(err), MS_E_PROTOCOL, "does not end");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_pages");
    TCase *tc = tcase_create("pages");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, pages_are_one_list);
    tcase_add_test(tc, pages_of_jobs_that_do_not_go_on_are_a_protocol_error);
    tcase_add_test(tc, what_the_reader_of_a_list_says_ends_it);
    tcase_add_test(tc, pages_of_nodes_that_do_not_go_on_are_a_protocol_error);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
