/* comm_case.h - what the tests of the mesh share: transports, ranks as processes, checks in a child
 */
#ifndef COMM_CASE_H
#define COMM_CASE_H

#include "bench/ranks.h"
#include "proto/cert.h"
#include "proto/rng.h"
#include "proto/tls.h"
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <sys/mman.h>

/* In a child: prints and makes the rank fail. */
#define CHILD_OK(call)                                                                             \
    do {                                                                                           \
        struct ms_err child_err_ = {0, ""};                                                        \
        struct ms_err *err = &child_err_;                                                          \
        int child_rc_ = (call);                                                                    \
        if (child_rc_ < 0) {                                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank,                  \
                    ms_code_name(child_rc_), err->text);                                           \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#define CHILD_TRUE(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, rank, #condition);         \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* How the ranks reach each other. */
enum comm_mode { MODE_SHM, MODE_TCP, MODE_TLS, MODE_MIXED, MODE_MIXED_TLS, MODES };

struct comm_case {
    struct ranks ranks;
    enum comm_mode mode;
    int uses_tls;
    char hosts[RANKS_MAX][16];
    char dir[64]; /* certificates */
    struct ms_ca *ca;
};

static inline int comm_mode_has_tls(enum comm_mode mode)
{
    return mode == MODE_TLS || mode == MODE_MIXED_TLS;
}

/* A context of a new certificate of the case's CA. */
static inline SSL_CTX *comm_case_issue(struct comm_case *c, const char *name, enum ms_role role)
{
    char p12[128];
    char ca[128];
    SSL_CTX *ctx = NULL;
    snprintf(p12, sizeof(p12), "%s/%s-%d.p12", c->dir, name, (int)role);
    snprintf(ca, sizeof(ca), "%s/ca.crt", c->dir);
    if (c->ca == NULL) {
        ck_ms_ok(ms_ca_create("test", 1, &c->ca, err));
        ck_ms_ok(ms_ca_export(c->ca, ca, err));
    }
    struct ms_cert_request req = {.role = role, .name = name, .days = 1, .password = ""};
    struct ms_tls_config cfg = {.p12_path = p12, .p12_password = "", .ca_path = ca};
    ck_ms_ok(ms_ca_issue(c->ca, &req, p12, NULL, err));
    ck_ms_ok(ms_tls_context(&cfg, &ctx, NULL, err));
    return ctx;
}

/* A case of world ranks. Mixed: hosts of different sizes, ranks of one host not side by side. */
static inline struct comm_case *comm_case_open(enum comm_mode mode, int world)
{
    struct comm_case *c =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(c, MAP_FAILED);
    c->mode = mode;
    if (comm_mode_has_tls(mode)) {
        snprintf(c->dir, sizeof(c->dir), "%s", test_dir_make());
        for (int i = 0; i < world; i++) {
            char name[16];
            snprintf(name, sizeof(name), "w%d", i);
            c->ranks.tls[i] = comm_case_issue(c, name, MS_ROLE_WORKER);
        }
    }
    ck_ms_ok(ranks_open(&c->ranks, world, err));
    for (int i = 0; i < world; i++) {
        if (mode == MODE_MIXED || mode == MODE_MIXED_TLS) {
            snprintf(c->hosts[i], sizeof(c->hosts[i]), "host%d", (i * i + 1) % 3);
            c->ranks.members[i].host_id = c->hosts[i];
        }
    }
    return c;
}

static inline void comm_case_close(struct comm_case *c)
{
    ranks_close(&c->ranks);
    for (int i = 0; i < RANKS_MAX; i++) {
        SSL_CTX_free(c->ranks.tls[i]);
    }
    ms_ca_destroy(c->ca);
    if (c->dir[0] != '\0') {
        test_dir_remove(c->dir);
    }
    munmap(c, sizeof(*c));
}

static inline struct mesh_config comm_case_config(const struct comm_case *c, int rank,
                                                  size_t floats)
{
    struct mesh_config cfg = ranks_config(&c->ranks, rank, floats);
    cfg.force_remote = c->mode == MODE_TCP || c->mode == MODE_TLS;
    return cfg;
}

/* Values of many magnitudes: another order of summation gives other bits. */
static inline float comm_value(int rank, uint64_t step, size_t i)
{
    uint64_t bits = ms_rng_mix(((uint64_t)rank << 56) + (step << 40) + i);
    float v = (float)((int64_t)(bits >> 40) - (1 << 23));
    return v * (float)(1U << (bits & 31));
}

static inline void comm_noise(int rank, uint64_t step)
{
    uint64_t n = ms_rng_below(ms_rng_stream((uint64_t)rank, step, 5), 0, 16);
    for (uint64_t i = 8; i < n; i++) { /* in half of the cases up to seven turns late */
        sched_yield();
    }
}

#endif
