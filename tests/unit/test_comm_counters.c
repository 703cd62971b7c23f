/* test_comm_counters.c - the bytes that a mesh counts against those that its collectives must move
 */
#include "libworker/comm/group.h"
#include "tests/unit/comm_case.h"

enum { FLOATS = 1 << 20, TLS_RECORD_MIN = 5 + 1 + 16 }; /* header, type, tag of a record */

/* What the collective before last did to the counters, for one rank. */
struct counted {
    struct mesh_counters total;
    struct mesh_traffic peers[RANKS_MAX];
};

static uint64_t frames_of(uint64_t bytes)
{
    return (bytes + MS_DATA_FRAME_MAX - 1) / MS_DATA_FRAME_MAX;
}

/* Since `before`, this much went out to a peer and came in from it, each in whole frames. */
static int check_peer(int rank, const struct comm_case *c, int peer, const struct counted *before,
                      const struct counted *after, uint64_t out, uint64_t in)
{
    const struct mesh_traffic *b = &before->peers[peer];
    const struct mesh_traffic *a = &after->peers[peer];
    uint64_t wire_out = out + frames_of(out) * FRAME_HEADER;
    uint64_t wire_in = in + frames_of(in) * FRAME_HEADER;
    CHILD_TRUE(a->payload_out - b->payload_out == out && a->payload_in - b->payload_in == in,
               "peer %d: %llu out, %llu in instead of %llu, %llu", peer,
               (unsigned long long)(a->payload_out - b->payload_out),
               (unsigned long long)(a->payload_in - b->payload_in), (unsigned long long)out,
               (unsigned long long)in);
    if (comm_mode_has_tls(c->mode)) { /* how many records is OpenSSL's choice, and how it reads */
        CHILD_TRUE(out == 0 || a->wire_out - b->wire_out >= wire_out + TLS_RECORD_MIN,
                   "peer %d: nothing is added by TLS", peer);
        CHILD_TRUE(a->wire_in >= a->payload_in, "peer %d: less came in than was read", peer);
        return 0;
    }
    CHILD_TRUE(a->wire_out - b->wire_out == wire_out && a->wire_in - b->wire_in == wire_in,
               "peer %d: %llu bytes out, %llu in on the wire", peer,
               (unsigned long long)(a->wire_out - b->wire_out),
               (unsigned long long)(a->wire_in - b->wire_in));
    return 0;
}

/* The totals are the sums over peers, and over those without shared memory. */
static int check_total(int rank, struct mesh *mesh, const struct counted *counted)
{
    struct mesh_counters sum = {0};
    for (int i = 0; i < mesh_world(mesh); i++) {
        sum.all.payload_out += counted->peers[i].payload_out;
        sum.all.payload_in += counted->peers[i].payload_in;
        sum.all.wire_out += counted->peers[i].wire_out;
        sum.all.wire_in += counted->peers[i].wire_in;
        if (mesh_all(mesh)->peers[i].local < 0) {
            sum.remote.payload_out += counted->peers[i].payload_out;
            sum.remote.payload_in += counted->peers[i].payload_in;
            sum.remote.wire_out += counted->peers[i].wire_out;
            sum.remote.wire_in += counted->peers[i].wire_in;
        }
    }
    CHILD_TRUE(memcmp(&sum, &counted->total, sizeof(sum)) == 0, "the totals are no sums");
    return 0;
}

static int take(int rank, struct mesh *mesh, struct counted *ret)
{
    mesh_counters(mesh, &ret->total, ret->peers);
    return check_total(rank, mesh, ret);
}

/* A broadcast goes from the root to one rank of each other host, and nowhere else. */
static int count_broadcast(int rank, struct comm_case *c, struct mesh *mesh, int root)
{
    struct counted before;
    struct counted after;
    size_t bytes = ((size_t)1 << 20) + 17;
    uint8_t *data = calloc(bytes, 1);
    CHILD_TRUE(data != NULL, "memory");
    CHILD_TRUE(take(rank, mesh, &before) == 0, "totals");
    CHILD_OK(mesh_broadcast(mesh, data, bytes, root, err));
    CHILD_TRUE(take(rank, mesh, &after) == 0, "totals");
    free(data);
    for (int i = 0; i < mesh_world(mesh); i++) {
        int other_host = mesh_all(mesh)->peers[i].host != mesh_all(mesh)->peers[rank].host;
        uint64_t out = rank == root && other_host && mesh_all(mesh)->peers[i].host == i ? bytes : 0;
        uint64_t in =
            i == root && other_host && mesh_all(mesh)->peers[rank].host == rank ? bytes : 0;
        if (check_peer(rank, c, i, &before, &after, out, in) != 0) {
            return 1;
        }
    }
    return 0;
}

/* Everybody's part to everybody elsewhere. */
static int count_gather(int rank, struct comm_case *c, struct mesh *mesh)
{
    struct counted before;
    struct counted after;
    uint8_t mine[999] = {0};
    uint8_t all[999 * RANKS_MAX];
    CHILD_TRUE(take(rank, mesh, &before) == 0, "totals");
    CHILD_OK(mesh_all_gather(mesh, mine, sizeof(mine), all, err));
    CHILD_TRUE(take(rank, mesh, &after) == 0, "totals");
    for (int i = 0; i < mesh_world(mesh); i++) {
        uint64_t bytes = mesh_all(mesh)->peers[i].local < 0 ? sizeof(mine) : 0;
        if (check_peer(rank, c, i, &before, &after, bytes, bytes) != 0) {
            return 1;
        }
    }
    return 0;
}

/* A small sum is a gather of the range; a large one is sent to the owners of its slices, whose sums
 * come back. Here every rank is alone on its host, or all are on one. */
static int count_sum(int rank, struct comm_case *c, struct mesh *mesh, size_t count)
{
    struct counted before;
    struct counted after;
    const void *result = NULL;
    int large = count * sizeof(float) > MESH_SMALL_MAX;
    CHILD_TRUE(take(rank, mesh, &before) == 0, "totals");
    CHILD_OK(mesh_step_begin(mesh, 1, err));
    CHILD_OK(mesh_all_reduce_sum(mesh, 0, count, &result, err));
    CHILD_TRUE(take(rank, mesh, &after) == 0, "totals");
    struct slice mine = slice_of(0, count, rank, mesh_world(mesh));
    for (int i = 0; i < mesh_world(mesh); i++) {
        struct slice theirs = slice_of(0, count, i, mesh_world(mesh));
        uint64_t bytes =
            large ? (mine.count + theirs.count) * sizeof(float) : count * sizeof(float);
        const struct mesh_traffic *b = &before.peers[i];
        const struct mesh_traffic *a = &after.peers[i];
        bytes = mesh_all(mesh)->peers[i].local < 0 ? bytes : 0;
        CHILD_TRUE(
            a->payload_out - b->payload_out == bytes && a->payload_in - b->payload_in == bytes,
            "mode %d, %zu floats, peer %d: %llu bytes instead of %llu", (int)c->mode, count, i,
            (unsigned long long)(a->payload_out - b->payload_out), (unsigned long long)bytes);
    }
    return 0;
}

static int count_all(int rank, void *arg)
{
    struct comm_case *c = arg;
    struct mesh_config cfg = comm_case_config(c, rank, FLOATS);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    int failed = 0;
    for (int root = 0; root < c->ranks.world && !failed; root++) {
        failed = count_broadcast(rank, c, mesh, root);
    }
    failed = failed || count_gather(rank, c, mesh);
    if (c->mode != MODE_MIXED && c->mode != MODE_MIXED_TLS) {
        failed = failed || count_sum(rank, c, mesh, 1000) || count_sum(rank, c, mesh, FLOATS);
    }
    CHILD_OK(mesh_barrier(mesh, err));
    mesh_destroy(mesh);
    return failed;
}

START_TEST(bytes_are_counted_by_peer_and_by_host)
{
    for (int mode = 0; mode < MODES; mode++) {
        struct comm_case *c = comm_case_open((enum comm_mode)mode, 4);
        int failed = ranks_run(&c->ranks, count_all, c);
        ck_assert_msg(failed == 0, "mode %d: %d ranks failed", mode, failed);
        comm_case_close(c);
    }
}
END_TEST

/* ---- between hosts
 * --------------------------------------------------------------------------------- */

enum { LARGE_FLOATS = 94 << 18 }; /* 94 MiB: the gradients of ResNet-50 */

struct placement {
    struct comm_case *c;
    size_t floats;
    uint64_t by_host[RANKS_MAX], directly[RANKS_MAX]; /* bytes to other hosts */
};

static struct placement *placement_open(const int *hosts, int world, size_t floats)
{
    struct placement *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    p->c = comm_case_open(MODE_MIXED, world);
    p->floats = floats;
    for (int r = 0; r < world; r++) {
        snprintf(p->c->hosts[r], sizeof(p->c->hosts[r]), "host%d", hosts[r]);
    }
    return p;
}

static void placement_close(struct placement *p)
{
    comm_case_close(p->c);
    munmap(p, sizeof(*p));
}

/* Sums of small whole numbers have no rounding. */
static int sum_once(int rank, struct mesh *mesh, size_t floats, uint64_t *ret_bytes)
{
    struct mesh_counters before;
    struct mesh_counters after;
    const void *result = NULL;
    float *mine = mesh_exchange(mesh);
    CHILD_OK(mesh_step_begin(mesh, 1, err));
    for (size_t i = 0; i < floats; i++) {
        mine[i] = (float)((i & 255) + (size_t)rank);
    }
    mesh_counters(mesh, &before, NULL);
    CHILD_OK(mesh_all_reduce_sum(mesh, 0, floats, &result, err));
    mesh_counters(mesh, &after, NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < floats; i++) {
        int want =
            (int)(i & 255) * mesh_world(mesh) + mesh_world(mesh) * (mesh_world(mesh) - 1) / 2;
        wrong += ((const float *)result)[i] != (float)want;
    }
    CHILD_TRUE(wrong == 0, "%zu sums are wrong", wrong);
    *ret_bytes = after.remote.payload_out - before.remote.payload_out;
    return 0;
}

static int sum_twice(int rank, void *arg)
{
    struct placement *p = arg;
    struct mesh_config cfg = comm_case_config(p->c, rank, p->floats);
    struct mesh *mesh = NULL;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_TRUE(strcmp(allreduce_name(mesh_all(mesh), p->floats * sizeof(float)), "host") == 0,
               "its name");
    int failed = sum_once(rank, mesh, p->floats, &p->by_host[rank]);
    mesh_all(mesh)->sums_by_host = 0;
    failed = failed || sum_once(rank, mesh, p->floats, &p->directly[rank]);
    mesh_destroy(mesh);
    return failed;
}

/* Runs both ways: bytes between hosts in all, those that say "here" left out. */
static void count_between_hosts(struct placement *p, uint64_t *ret_by_host, uint64_t *ret_directly)
{
    const struct ranks *ranks = &p->c->ranks;
    ck_assert_int_eq(ranks_run(&p->c->ranks, sum_twice, p), 0);
    *ret_by_host = 0;
    *ret_directly = 0;
    for (int r = 0; r < ranks->world; r++) {
        for (int i = 0; i < ranks->world; i++) {
            *ret_by_host -= strcmp(p->c->hosts[r], p->c->hosts[i]) != 0 ? sizeof(uint64_t) : 0;
        }
        *ret_by_host += p->by_host[r];
        *ret_directly += p->directly[r];
    }
}

START_TEST(two_hosts_of_two_ranks_move_half_the_bytes)
{
    static const int hosts[] = {0, 0, 1, 1};
    struct placement *p = placement_open(hosts, 4, LARGE_FLOATS);
    uint64_t by_host = 0;
    uint64_t directly = 0;

    count_between_hosts(p, &by_host, &directly);

    ck_assert_uint_eq(by_host, 2 * (uint64_t)LARGE_FLOATS * sizeof(float));
    ck_assert_uint_eq(2 * by_host, directly);
    placement_close(p);
}
END_TEST

/* T(0, 8) over 3 + 5 ranks: T(0, 2) and rank 2 here, rank 3 and T(4, 8) there. So each host sends
 * two partial sums of what the other owns, and one sum of what it owns. */
START_TEST(a_host_sends_each_of_its_subtrees_once)
{
    static const int hosts[] = {0, 0, 0, 1, 1, 1, 1, 1};
    const uint64_t part = 1 << 14; /* floats: of a rank, whole units of slices */
    struct placement *p = placement_open(hosts, 8, 8 * part);
    uint64_t by_host = 0;
    uint64_t directly = 0;

    count_between_hosts(p, &by_host, &directly);

    ck_assert_uint_eq(by_host, (2 * 5 + 3 + 2 * 3 + 5) * part * sizeof(float));
    ck_assert_uint_eq(directly, 2 * (3 * 5 + 5 * 3) * part * sizeof(float));
    placement_close(p);
}
END_TEST

/* 2 + 1: one partial sum and one sum of a third and of two thirds. */
START_TEST(a_host_of_one_rank_sends_and_gets_everything_once)
{
    static const int hosts[] = {0, 0, 1};
    const uint64_t part = 1 << 14;
    struct placement *p = placement_open(hosts, 3, 3 * part);
    uint64_t by_host = 0;
    uint64_t directly = 0;

    count_between_hosts(p, &by_host, &directly);

    ck_assert_uint_eq(by_host, 2 * 3 * part * sizeof(float));
    ck_assert_uint_eq(directly, 2 * 4 * part * sizeof(float));
    placement_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("comm_counters");
    TCase *tc = tcase_create("counters");
    tcase_add_test(tc, bytes_are_counted_by_peer_and_by_host);
    tcase_add_test(tc, two_hosts_of_two_ranks_move_half_the_bytes);
    tcase_add_test(tc, a_host_sends_each_of_its_subtrees_once);
    tcase_add_test(tc, a_host_of_one_rank_sends_and_gets_everything_once);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
