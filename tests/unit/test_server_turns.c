/* test_server_turns.c - how much one turn decides, and whose turn the next one is
 *
 * Each turn is one transaction, which the reserve of the database has to take on a full disk. */
#include "tests/unit/server_world.h"

#include <netinet/in.h>

enum { LARGE = 200 << 10, FRAME_MAX = LARGE + 512, SOON_MS = 60000 };

static uint16_t listen_tcp(int *ret_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(at);
    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(*ret_fd, (struct sockaddr *)&at, length), 0);
    ck_assert_int_eq(listen(*ret_fd, 128), 0);
    ck_assert_int_eq(getsockname(*ret_fd, (struct sockaddr *)&at, &length), 0);
    return ntohs(at.sin_port);
}

static int register_node(uint16_t port, int i)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    uint8_t buf[512];
    char id[16];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    greet_over(fd);
    snprintf(id, sizeof(id), "w%d", i);
    Ms__Register msg = MS__REGISTER__INIT;
    msg.node_id = msg.host_name = msg.host_id = id;
    msg.incarnation = (uint64_t)i + 1;
    msg.data_address = (char *)(uintptr_t) "10.0.0.1:8200";
    msg.cores = 1;
    msg.isa = (char *)(uintptr_t) "avx2";
    msg.onednn = (char *)(uintptr_t) "2.6.3";
    msg.pid = 1;
    ck_assert_uint_eq(ask(fd, 0, buf, pack(MS_MSG_REGISTER, 0, &msg.base, buf), NULL, 0),
                      MS_MSG_REGISTERED);
    return fd;
}

/* A Submit with a text of so many bytes. */
static size_t pack_large(size_t bytes, uint8_t buf[FRAME_MAX])
{
    static uint8_t text[LARGE];
    Ms__Submit msg = MS__SUBMIT__INIT;
    memset(text, ' ', sizeof(text));
    msg.job_json.data = text;
    msg.job_json.len = bytes;
    msg.name = (char *)(uintptr_t) "job";
    msg.workers = 1;
    return pack(MS_MSG_SUBMIT, 7, &msg.base, buf);
}

static void submit_large(int fd)
{
    static uint8_t buf[FRAME_MAX];
    ck_assert_uint_eq(ask(fd, 7, buf, pack_large(LARGE, buf), NULL, 0), MS_MSG_SUBMITTED);
}

/* A node and a job of one rank after the other: each job has its node. */
static void place_large(int client, uint16_t port, int *nodes, int n)
{
    for (int i = 0; i < n; i++) {
        nodes[i] = register_node(port, i);
        submit_large(client);
        ck_assert(is_readable(nodes[i], SOON_MS)); /* its Assign */
    }
}

/* The next one is begun and does not end. The clock stands still: no turn is over by it. */
static void hold_commits(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    stage->stands = now.tv_sec * 1000000000LL + now.tv_nsec;
    stage->hold = 1;
}

/* All are closed before the end of the first of them is written, which is held. */
static void close_while_one_is_written(const int *nodes, int n)
{
    hold_commits();
    const int begun = stage->commits;
    close(nodes[0]);
    await_commits(begun + 1);
    for (int i = 1; i < n; i++) {
        close(nodes[i]);
    }
}

/* By a clock that stands no turn takes too long: all that waits would be one transaction. */
START_TEST(what_one_turn_takes_fits_one_transaction)
{
    enum { CLIENTS = 120, TEXT = 60 << 10 };
    static uint8_t buf[FRAME_MAX];
    int fds[CLIENTS];
    const size_t size = pack_large(TEXT, buf);
    start(-1, 0);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = greet();
    }
    settle();
    const int before = stage->jobs;
    hold_commits();
    const int begun = stage->commits;
    put(fds[0], buf, size);
    await_commits(begun + 1);

    for (int i = 1; i < CLIENTS; i++) {
        put(fds[i], buf, size);
    }
    stage->hold = 0;
    for (int i = 0; i < CLIENTS; i++) {
        uint32_t id = 0;
        ProtobufCMessage *answer = NULL;
        ck_assert_uint_eq(get(fds[i], &id, &answer), MS_MSG_SUBMITTED);
        ms_wire_free(answer);
        close(fds[i]);
    }

    ck_assert_int_eq(stage->jobs - before, CLIENTS);
    ck_assert_uint_gt(stage->largest, TEXT);
    ck_assert_uint_le(stage->largest, MS_TURN_STORE + MS_STORE_COST(TEXT + 4096));
}
END_TEST

/* ---- a network that is gone ---------------------------------------------------------------------
 */

static int are_readable(const int *fds, int n, int wait_ms)
{
    int i = 0;
    while (i < n && is_readable(fds[i], wait_ms)) {
        i++;
    }
    return i == n;
}

/* How many commits end until all have an answer; more than most: some have none. */
static int commits_until_readable(const int *fds, int n, int most)
{
    int n_commits = 0;
    while (n_commits <= most && !are_readable(fds, n, 0)) {
        const int held = stage->commits;
        stage->allowed = held;
        while (stage->commits == held && !are_readable(fds, n, 1)) {
        }
        n_commits++;
    }
    return n_commits;
}

/* What they leave to write fills one turn after the other. */
START_TEST(who_lives_is_read_while_others_are_lost)
{
    /* one turn is being written, every other one is for who is there */
    enum { TURNS = 4, MANY = 80, HEALTHY = 20 };
    int nodes[MANY];
    int healthy[HEALTHY];
    uint8_t beat[128];
    int listener = -1;
    const uint16_t port = listen_tcp(&listener);
    start(listener, 0);
    const int client = greet();
    place_large(client, port, nodes, MANY);
    for (int i = 0; i < HEALTHY; i++) {
        healthy[i] = register_node(port, MANY + i);
    }
    close_while_one_is_written(nodes, MANY);
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    for (int i = 0; i < HEALTHY; i++) {
        put(healthy[i], beat, pack(MS_MSG_HEARTBEAT, 3, &msg.base, beat));
    }
    stage->allowed = stage->commits - 1;
    stage->hold = 2;

    ck_assert_int_le(commits_until_readable(healthy, HEALTHY, TURNS), TURNS);

    stage->hold = 0;
    stage->stands = 0;
    for (int i = 0; i < HEALTHY; i++) {
        close(healthy[i]);
    }
    close(client);
}
END_TEST

/* Each takes a job with it whose row is written anew, text and all. */
START_TEST(nodes_whose_connections_close_together_are_lost_in_as_many_turns_as_it_takes)
{
    enum { LOST = 24 };
    int nodes[LOST];
    int listener = -1;
    const uint16_t port = listen_tcp(&listener);
    start(listener, 0);
    const int client = greet();
    place_large(client, port, nodes, LOST);
    const int before = stage->jobs;

    close_while_one_is_written(nodes, LOST);
    stage->hold = 0;
    while (stage->jobs < before + LOST) {
        pause_ms(1);
    }

    ck_assert_uint_gt(stage->largest, MS_TURN_STORE);
    ck_assert_uint_le(stage->largest, MS_TURN_STORE + MS_STORE_COST(LARGE + 4096) + 65536);
    stage->stands = 0;
    close(client);
}
END_TEST

int main(void)
{
    setenv("MSCHED_LEASE_MS", "3600000", 1); /* the nodes are silent for as long as a test takes */
    Suite *suite = suite_create("server_turns");
    TCase *tcase = tcase_create("server_turns");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_one_turn_takes_fits_one_transaction);
    tcase_add_test(tcase, who_lives_is_read_while_others_are_lost);
    tcase_add_test(tcase,
                   nodes_whose_connections_close_together_are_lost_in_as_many_turns_as_it_takes);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
