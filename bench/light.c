/* light.c - many nodes in one thread: connections of the code that workers use, and no work */
#include "bench/light.h"

#include "proto/clock.h"
#include "proto/cluster.pb-c.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODES_PER_HOST = 8, REDIAL_MS = 20, BEAT_MS = 1, HANDSHAKE_MS = 20000 };

struct light_node {
    struct light_fleet *fleet;
    struct ms_conn *conn;
    int is_dialing, is_registered, has_rank;
    double beaten_s; /* 0: that was answered */
};

static void on_open(struct ms_conn *conn, void *arg)
{
    struct light_node *node = arg;
    size_t i = (size_t)(node - node->fleet->nodes);
    Ms__Register msg = MS__REGISTER__INIT;
    char id[32];
    char host[32];
    snprintf(id, sizeof(id), "w-%zu", i);
    snprintf(host, sizeof(host), "host%zu", i / NODES_PER_HOST);
    msg.node_id = id;
    msg.incarnation = i + 1;
    msg.host_name = host;
    msg.host_id = host;
    msg.data_address = (char *)"127.0.0.1:1";
    msg.cores = NODES_PER_HOST;
    msg.isa = (char *)"avx2";
    msg.onednn = (char *)"2.6.3";
    msg.pid = 1;
    (void)ms_conn_send(conn, MS_MSG_REGISTER, 1, &msg.base, NULL);
    node->is_dialing = 0;
    node->fleet->dialing--;
}

static void take_answer(struct light_node *node)
{
    struct light_fleet *fleet = node->fleet;
    if (node->beaten_s > 0 && fleet->answers < fleet->waits_max) {
        fleet->waits_s[fleet->answers++] = ms_mono_s() - node->beaten_s;
        node->beaten_s = 0;
    }
}

static void on_frame(struct ms_conn *conn, const struct ms_wire_header *head, const uint8_t *bytes,
                     void *arg)
{
    struct light_node *node = arg;
    (void)conn;
    (void)bytes;
    if (head->type == MS_MSG_REGISTERED && !node->is_registered) {
        node->is_registered = 1;
        node->fleet->registered++;
    } else if (head->type == MS_MSG_ASSIGN && !node->has_rank) {
        node->has_rank = 1;
        node->fleet->ranked++;
    } else if (head->type == MS_MSG_HEARTBEAT_ACK) {
        take_answer(node);
    }
}

static void on_close(struct ms_conn *conn, int code, const char *reason, void *arg)
{
    struct light_node *node = arg;
    struct light_fleet *fleet = node->fleet;
    (void)conn;
    (void)code;
    if (fleet->lost++ == 0) {
        fprintf(stderr, "a connection ended: %s\n", reason);
    }
    fleet->dialing -= (size_t)node->is_dialing;
    fleet->registered -= (size_t)node->is_registered;
    fleet->ranked -= (size_t)node->has_rank;
    *node = (struct light_node){.fleet = fleet};
}

static void dial(struct light_node *node)
{
    static const struct ms_conn_handler handler = {
        .on_open = on_open, .on_frame = on_frame, .on_close = on_close};
    struct ms_conn_options opt = {.tls = node->fleet->tls,
                                  .tls_host = "127.0.0.1",
                                  .software = "bench",
                                  .require_scheduler = 1,
                                  .handshake_ms = HANDSHAKE_MS};
    node->is_dialing = 1;
    node->fleet->dialing++;
    if (ms_conn_connect(node->fleet->base, node->fleet->address, &opt, &handler, node, &node->conn,
                        NULL) < 0) {
        on_close(NULL, 0, "it could not be dialled", node);
    }
}

/* ---- one after the other ---- */

/* Those that are not connected, as many as may dial: round and round. */
static void on_redial(evutil_socket_t fd, short what, void *arg)
{
    struct light_fleet *fleet = arg;
    (void)fd;
    (void)what;
    for (size_t i = 0; i < fleet->n && fleet->dialing < fleet->dialing_max; i++) {
        struct light_node *node = &fleet->nodes[fleet->next_dial];
        fleet->next_dial = (fleet->next_dial + 1) % fleet->n;
        if (node->conn == NULL) {
            dial(node);
        }
    }
}

static void beat(struct light_node *node, double now_s)
{
    Ms__Heartbeat msg = MS__HEARTBEAT__INIT;
    if (node->is_registered) {
        node->beaten_s = now_s;
        node->fleet->beats++;
        (void)ms_conn_send(node->conn, MS_MSG_HEARTBEAT, 0, &msg.base, NULL);
    }
}

/* Those whose moment of the second has come: as of so many hosts, not all at once. */
static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    struct light_fleet *fleet = arg;
    double now_s = ms_mono_s();
    double due = (now_s - fleet->began_s) * (double)fleet->n;
    (void)fd;
    (void)what;
    while ((double)fleet->next_beat < due) {
        beat(&fleet->nodes[fleet->next_beat++ % fleet->n], now_s);
    }
}

static struct event *every(struct light_fleet *fleet, event_callback_fn on_time, int ms)
{
    struct event *event = event_new(fleet->base, -1, EV_PERSIST, on_time, fleet);
    event_add(event, &(struct timeval){.tv_usec = ms * 1000});
    return event;
}

void light_start(struct light_fleet *fleet)
{
    fleet->nodes = calloc(fleet->n, sizeof(*fleet->nodes));
    for (size_t i = 0; i < fleet->n; i++) {
        fleet->nodes[i].fleet = fleet;
    }
    fleet->began_s = ms_mono_s();
    fleet->redial = every(fleet, on_redial, REDIAL_MS);
    fleet->beat = every(fleet, on_beat, BEAT_MS);
    on_redial(-1, 0, fleet);
}

void light_count(struct light_fleet *fleet, double seconds_max)
{
    free(fleet->waits_s);
    fleet->waits_max = (size_t)(seconds_max * 2) * fleet->n;
    fleet->waits_s = calloc(fleet->waits_max, sizeof(*fleet->waits_s));
    fleet->beats = fleet->answers = 0;
    for (size_t i = 0; i < fleet->n; i++) {
        fleet->nodes[i].beaten_s = 0;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double light_wait_s(struct light_fleet *fleet, double part)
{
    if (fleet->answers == 0) {
        return 0;
    }
    qsort(fleet->waits_s, fleet->answers, sizeof(*fleet->waits_s), by_value);
    return fleet->waits_s[(size_t)((double)(fleet->answers - 1) * part)];
}

void light_stop(struct light_fleet *fleet)
{
    event_free(fleet->redial);
    event_free(fleet->beat);
    for (size_t i = 0; i < fleet->n; i++) {
        ms_conn_destroy(fleet->nodes[i].conn);
    }
    free(fleet->nodes);
    free(fleet->waits_s);
}
