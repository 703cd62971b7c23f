/* test_cli_client.c - questions and answers over a connection that may end at any moment */
#include "cli/cli.h"
#include "cli/client.h"
#include "proto/addr.h"
#include "proto/clock.h"
#include "proto/cluster.pb-c.h"
#include "tests/test.h"

/* What the server of a test does with a frame. */
enum manner {
    ANSWERS,   /* StatusInfo */
    REFUSES,   /* Error */
    CONFUSES,  /* another type */
    HANGS_UP,  /* closes */
    IS_SILENT, /* nothing */
    FLOODS,    /* more frames than an inbox takes */
};

static char root[64];
static char address[128];
static struct event_base *base;
static struct event *accept_event;
static int listen_fd;
static enum manner manner;
static int refusal; /* code of REFUSES */
static unsigned asked;
static struct client *client;

static void answer(struct ms_conn *conn, uint32_t id)
{
    Ms__StatusInfo info = MS__STATUS_INFO__INIT;
    info.jobs_queued = 7;
    ck_ms_ok(ms_conn_send(conn, MS_MSG_STATUS_INFO, id, &info.base, err));
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    Ms__Error error = MS__ERROR__INIT;
    Ms__Ok good = MS__OK__INIT;
    (void)bytes;
    (void)arg;
    asked++;
    switch (manner) {
    case ANSWERS:
        answer(conn, head->id);
        break;
    case REFUSES:
        error.code = refusal;
        error.text = (char *)"not you";
        ck_ms_ok(ms_conn_send(conn, MS_MSG_ERROR, head->id, &error.base, err));
        break;
    case CONFUSES:
        ck_ms_ok(ms_conn_send(conn, MS_MSG_OK, head->id, &good.base, err));
        break;
    case HANGS_UP:
        ms_conn_close(conn);
        break;
    case IS_SILENT:
        break;
    case FLOODS:
        for (int i = 0; i <= CLIENT_INBOX_MAX; i++) {
            answer(conn, head->id + 1);
        }
        break;
    }
}

static const struct ms_conn_handler server_handler = {.on_frame = on_frame};

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct ms_conn *conn = NULL;
    struct ms_conn_options options;
    (void)what;
    (void)arg;
    memset(&options, 0, sizeof(options));
    options.software = "test";
    options.cluster = "standing";
    options.owner_uid = (unsigned)getuid();
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(accepted, 0);
    ck_ms_ok(ms_conn_accept(base, accepted, &options, &server_handler, NULL, &conn, err));
}

static void listen_again(void)
{
    struct ms_addr addr;
    ck_ms_ok(ms_addr_parse(address, 0, &addr, err));
    listen_fd = ms_addr_listen(&addr, 16, NULL);
    ck_assert_int_ge(listen_fd, 0);
    accept_event = event_new(base, listen_fd, EV_READ | EV_PERSIST, on_accept, NULL);
    event_add(accept_event, NULL);
}

static void stop_listening(void)
{
    event_free(accept_event);
    accept_event = NULL;
    close(listen_fd);
    unlink(address + strlen("unix:"));
}

static void setup(void)
{
    snprintf(root, sizeof(root), "%s", test_dir_make());
    snprintf(address, sizeof(address), "unix:%s/s.sock", root);
    asked = 0;
    refusal = MS_E_REFUSED;
    base = event_base_new();
    listen_again();
    client = client_create(base, address, NULL, NULL);
    ck_ms_ok(client_connect(client, err));
    ck_ms_ok(client_wait_open(client, err));
}

static void teardown(void)
{
    client_destroy(client);
    if (accept_event != NULL) {
        stop_listening();
    }
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
    test_dir_remove(root);
}

static int ask(ProtobufCMessage **ret, struct ms_err *err)
{
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    return client_call(client, MS_MSG_STATUS_QUERY, &query.base, MS_MSG_STATUS_INFO, ret, err);
}

START_TEST(a_question_gets_its_answer)
{
    ProtobufCMessage *msg = NULL;
    manner = ANSWERS;

    for (int i = 0; i < 3; i++) {
        ck_ms_ok(ask(&msg, err));
        ck_assert_uint_eq(((const Ms__StatusInfo *)msg)->jobs_queued, 7);
        ms_wire_free(msg);
    }

    ck_assert_uint_eq(asked, 3);
}
END_TEST

START_TEST(an_error_frame_fails_with_its_code_and_text)
{
    ProtobufCMessage *msg = NULL;
    manner = REFUSES;

    ck_ms_fails(ask(&msg, err), MS_E_REFUSED, "not you");
    ck_assert_int_eq(client_get_state(client), CLIENT_OPEN); /* the connection lives on */
}
END_TEST

/* The scheduler answers, and what it says is of a node: nobody must look for the scheduler, and
 * nothing must be asked again as if it had gone. */
START_TEST(what_an_answer_says_of_a_node_is_not_about_the_scheduler)
{
    static const int codes[] = {MS_E_TIMEOUT, MS_E_CLOSED, MS_E_UNREACHABLE};
    ProtobufCMessage *msg = NULL;
    manner = REFUSES;
    refusal = codes[_i];

    ck_ms_fails(ask(&msg, err), MS_E_UNAVAILABLE, "not you");
    ck_assert(!cli_is_lost(MS_E_UNAVAILABLE));
    ck_assert_int_eq(client_get_state(client), CLIENT_OPEN);
}
END_TEST

/* 124 is for waits that the user bounded, 5 for jobs that were cancelled: no node says so. */
START_TEST(what_a_node_says_of_a_file_is_no_more_than_that)
{
    static const struct {
        int code, want;
    } cases[] = {{MS_E_NOT_FOUND, MS_E_NOT_FOUND}, {MS_E_IO, MS_E_IO},
                 {MS_E_NOMEM, MS_E_NOMEM},         {MS_E_TIMEOUT, MS_E_UNAVAILABLE},
                 {MS_E_CLOSED, MS_E_UNAVAILABLE},  {MS_E_CANCELLED, MS_E_UNAVAILABLE},
                 {MS_E_CONFIG, MS_E_UNAVAILABLE},  {-1000, MS_E_UNAVAILABLE}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        ck_ms_fails(client_node_error(cases[i].code, "no log", err), cases[i].want, "no log");
    }
}
END_TEST

START_TEST(another_type_than_asked_for_is_a_protocol_error)
{
    ProtobufCMessage *msg = NULL;
    manner = CONFUSES;

    ck_ms_fails(ask(&msg, err), MS_E_PROTOCOL, "Ok frame");
}
END_TEST

START_TEST(a_connection_that_ends_ends_the_wait_and_can_be_made_again)
{
    ProtobufCMessage *msg = NULL;
    manner = HANGS_UP;

    ck_ms_fails(ask(&msg, err), MS_E_CLOSED, "");
    ck_assert_int_eq(client_get_state(client), CLIENT_CLOSED);
    ck_ms_fails(ask(&msg, err), MS_E_CLOSED, ""); /* and does not hang the second time */

    manner = ANSWERS;
    ck_ms_ok(client_connect(client, err));
    ck_ms_ok(client_wait_open(client, err));
    ck_ms_ok(ask(&msg, err));
    ms_wire_free(msg);
}
END_TEST

START_TEST(nobody_there_is_unreachable)
{
    stop_listening();

    ck_ms_ok(client_connect(client, err));
    ck_ms_fails(client_wait_open(client, err), MS_E_UNREACHABLE, "s.sock");

    listen_again();
    ck_ms_ok(client_connect(client, err));
    ck_ms_ok(client_wait_open(client, err));
}
END_TEST

START_TEST(a_deadline_ends_a_wait_and_nothing_else)
{
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    uint32_t id = 0;
    manner = IS_SILENT;
    ck_ms_ok(client_send(client, MS_MSG_STATUS_QUERY, &query.base, &id, err));

    ck_ms_fails(client_await(client, id, MS_MSG_STATUS_INFO, ms_mono_ms() + 20, &msg, err),
                MS_E_TIMEOUT, "");

    ck_assert_int_eq(client_get_state(client), CLIENT_OPEN);
    manner = ANSWERS;
    ck_ms_ok(ask(&msg, err)); /* the late one would have another id */
    ms_wire_free(msg);
}
END_TEST

START_TEST(answers_are_told_apart_by_their_id)
{
    Ms__StatusQuery query = MS__STATUS_QUERY__INIT;
    ProtobufCMessage *msg = NULL;
    uint16_t type = 0;
    uint32_t first = 0;
    uint32_t second = 0;
    manner = ANSWERS;
    ck_ms_ok(client_send(client, MS_MSG_STATUS_QUERY, &query.base, &first, err));
    ck_ms_ok(client_send(client, MS_MSG_STATUS_QUERY, &query.base, &second, err));

    ck_ms_ok(client_await(client, second, MS_MSG_STATUS_INFO, -1, &msg, err));
    ms_wire_free(msg);
    ck_assert_int_eq(client_take(client, second, &type, &msg), 0);
    ck_assert_int_eq(client_take(client, first, &type, &msg), 1);
    ms_wire_free(msg);
    ck_ms_ok(ask(&msg, err)); /* the inbox is whole after a take from its front */
    ms_wire_free(msg);
}
END_TEST

START_TEST(a_flood_that_nobody_asked_for_ends_the_connection)
{
    ProtobufCMessage *msg = NULL;
    manner = FLOODS;

    ck_ms_fails(ask(&msg, err), MS_E_PROTOCOL, "nobody asked for");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_client");
    TCase *tc = tcase_create("client");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_question_gets_its_answer);
    tcase_add_test(tc, an_error_frame_fails_with_its_code_and_text);
    tcase_add_loop_test(tc, what_an_answer_says_of_a_node_is_not_about_the_scheduler, 0, 3);
    tcase_add_test(tc, what_a_node_says_of_a_file_is_no_more_than_that);
    tcase_add_test(tc, another_type_than_asked_for_is_a_protocol_error);
    tcase_add_test(tc, a_connection_that_ends_ends_the_wait_and_can_be_made_again);
    tcase_add_test(tc, nobody_there_is_unreachable);
    tcase_add_test(tc, a_deadline_ends_a_wait_and_nothing_else);
    tcase_add_test(tc, answers_are_told_apart_by_their_id);
    tcase_add_test(tc, a_flood_that_nobody_asked_for_ends_the_connection);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
