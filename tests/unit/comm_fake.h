/* comm_fake.h - a real rank in a thread, and a peer of it that is made of bytes */
#ifndef COMM_FAKE_H
#define COMM_FAKE_H

#include "libworker/comm/frame.h"
#include "libworker/comm/hello.h"
#include "libworker/comm/join.h"
#include "tests/unit/comm_case.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- a real rank in a thread
 * ------------------------------------------------------------------------- */

struct maker {
    struct mesh_config cfg;
    int barriers;
    int gate_fd; /* > 0: once the mesh stands, the barriers wait for a byte */
    int rc;
    struct ms_err err;
    pthread_t thread;
};

static inline void *maker_main(void *arg)
{
    struct maker *maker = arg;
    struct mesh *mesh = NULL;
    char byte = 0;
    maker->rc = mesh_create(&maker->cfg, &mesh, &maker->err);
    if (maker->rc == 0 && maker->gate_fd > 0 && read(maker->gate_fd, &byte, 1) != 1) {
        maker->rc = ms_fail(&maker->err, MS_E_IO, "the test's gate is gone");
    }
    for (int i = 0; maker->rc == 0 && i < maker->barriers; i++) {
        maker->rc = mesh_barrier(mesh, &maker->err);
    }
    mesh_destroy(mesh);
    return NULL;
}

static inline void maker_start(struct maker *maker, const struct comm_case *c, int rank)
{
    if (maker->cfg.world == 0) {
        maker->cfg = comm_case_config(c, rank, 100);
    }
    ck_assert_int_eq(pthread_create(&maker->thread, NULL, maker_main, maker), 0);
}

static inline void maker_join(struct maker *maker)
{
    ck_assert_int_eq(pthread_join(maker->thread, NULL), 0);
}

static inline void check_failed(const struct maker *maker, int code, const char *part)
{
    ck_assert_msg(maker->rc == code && strstr(maker->err.text, part) != NULL, "%s: %s",
                  ms_code_name(maker->rc), maker->err.text);
}

/* ---- a peer made of bytes
 * ----------------------------------------------------------------------------- */

static inline int fake_dial_tcp(const struct comm_case *c, int rank)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port =
                                 htons((uint16_t)comm_listener_port(c->ranks.listeners[rank])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static inline int fake_dial_unix(const struct comm_case *c, int rank)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *name = comm_listener_unix(c->ranks.listeners[rank]);
    memcpy(sa.sun_path + 1, name, strlen(name));
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, len), 0);
    return fd;
}

/* The hello that a rank owes to rank 0. */
static inline struct hello fake_hello_of(const struct comm_case *c, int rank)
{
    struct mesh_config cfg = comm_case_config(c, rank, 100);
    struct hello hello = {
        .version = HELLO_VERSION,
        .type = HELLO_ASK,
        .job = cfg.job,
        .generation = cfg.generation,
        .rank = (uint32_t)rank,
        .peer = 0,
        .world = (uint32_t)cfg.world,
        .exchange_count = 100,
        .segment_bytes = cfg.force_remote ? 0 : segment_bytes(MS_F32, 100),
    };
    memcpy(hello.token, cfg.token, MS_TOKEN_LEN);
    return hello;
}

static inline struct hello fake_hello(const struct comm_case *c)
{
    return fake_hello_of(c, 1);
}

static inline void fake_send(int fd, const struct hello *hello)
{
    uint8_t bytes[HELLO_BYTES];
    hello_encode(hello, bytes);
    ck_assert_int_eq(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), HELLO_BYTES);
}

/* The answer's type; 0: the connection was closed without one. */
static inline int fake_answer(int fd, struct hello *ret)
{
    uint8_t bytes[HELLO_BYTES];
    if (recv(fd, bytes, sizeof(bytes), MSG_WAITALL) != HELLO_BYTES) {
        return 0;
    }
    ck_ms_ok(hello_decode(bytes, ret, err));
    return ret->type;
}

static inline int fake_join_as(const struct comm_case *c, int rank)
{
    struct hello hello = fake_hello_of(c, rank);
    struct hello answer;
    int fd = fake_dial_tcp(c, 0);
    fake_send(fd, &hello);
    ck_assert_int_eq(fake_answer(fd, &answer), HELLO_WELCOME);
    ck_assert_uint_eq(answer.rank, 0);
    ck_assert_uint_eq(answer.peer, (uint32_t)rank);
    ck_assert_int_eq(memcmp(answer.token, hello.token, MS_TOKEN_LEN), 0);
    return fd;
}

static inline int fake_join(const struct comm_case *c)
{
    return fake_join_as(c, 1);
}

#endif
