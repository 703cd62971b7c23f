/* test_comm_short.c - a rank has too little of something for a new mesh, or within a collective,
 * for a moment or for good
 *
 * The linker hands the calls that can fail so to this file (--wrap): in one rank of three, each a
 * process, one kind of them fails. What is short at one rank is never another one's fault. */
#include "tests/unit/comm_fake.h"

#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

enum { WORLD = 3, FOR_EVER = 1 << 30 };

enum call {
    NO_CALL,
    MAP,       /* the memory of another rank of this host */
    ACCEPT,    /* a descriptor for a rank that connects */
    SOCKET,    /* ... to connect */
    TAKE,      /* ... for the memory that a rank passes */
    PASS,      /* room to send one on its way, or a hello */
    HEAR,      /* room to read one */
    HEAR_OVER, /* likewise, on TCP */
    SAY_OVER,  /* room to send what TLS has made */
    READ,      /* memory for TLS, where a frame comes */
    TLS,       /* memory for it ... */
    HANDSHAKE, /* ... within OpenSSL */
};

static struct {
    enum call call;
    int skip; /* so many of them go well ... */
    int left; /* ... and then so many fail */
    int error;
} lack;
static int is_in_handshake;

static int fails(enum call call)
{
    if (lack.call != call || lack.skip-- > 0 || lack.left <= 0) {
        return 0;
    }
    lack.skip = 0;
    lack.left--;
    errno = lack.error;
    return 1;
}

void *__real_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_link_read(struct link *link, void *data, size_t size);
ssize_t __wrap_link_read(struct link *link, void *data, size_t size);
int __real_link_use_tls(struct link *link, SSL_CTX *ctx, int server, struct ms_err *err);
int __wrap_link_use_tls(struct link *link, SSL_CTX *ctx, int server, struct ms_err *err);
int __real_link_handshake(struct link *link, const char *who, struct ms_err *err);
int __wrap_link_handshake(struct link *link, const char *who, struct ms_err *err);

void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    if ((flags & MAP_SHARED) != 0 && fd >= 0 && fails(MAP)) {
        return MAP_FAILED;
    }
    return __real_mmap64(at, size, prot, flags, fd, offset);
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
    return fails(ACCEPT) ? -1 : __real_accept4(fd, sa, len, flags);
}

int __wrap_socket(int family, int type, int protocol)
{
    return fails(SOCKET) ? -1 : __real_socket(family, type, protocol);
}

/* The kernel drops a descriptor for which there is no room, and says so. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
    if (fails(HEAR)) {
        return -1;
    }
    struct msghdr with_no_room = *msg;
    with_no_room.msg_control = NULL;
    with_no_room.msg_controllen = 0;
    struct msghdr *used = fails(TAKE) ? &with_no_room : msg;
    ssize_t n = __real_recvmsg(fd, used, flags);
    if (used == &with_no_room) {
        msg->msg_flags = with_no_room.msg_flags;
        msg->msg_controllen = 0;
    }
    return n;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return fails(PASS) ? -1 : __real_sendmsg(fd, msg, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    return fails(HEAR_OVER) ? -1 : __real_recv(fd, bytes, size, flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    return fails(SAY_OVER) ? -1 : __real_send(fd, bytes, size, flags);
}

/* OpenSSL has all that it needs by then: for a frame it asks for memory as good as never. */
ssize_t __wrap_link_read(struct link *link, void *data, size_t size)
{
    return fails(READ) ? LINK_BROKEN : __real_link_read(link, data, size);
}

int __wrap_link_use_tls(struct link *link, SSL_CTX *ctx, int server, struct ms_err *err)
{
    return fails(TLS) ? ms_fail(err, MS_E_NOMEM, "out of memory for TLS to a peer")
                      : __real_link_use_tls(link, ctx, server, err);
}

int __wrap_link_handshake(struct link *link, const char *who, struct ms_err *err)
{
    is_in_handshake = 1;
    int rc = __real_link_handshake(link, who, err);
    is_in_handshake = 0;
    return rc;
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return is_in_handshake && fails(HANDSHAKE) ? NULL : malloc(size);
}

static void *openssl_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return realloc(old, size);
}

static void openssl_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    free(memory);
}

/* ---- three ranks --------------------------------------------------------------------------------
 */

static const struct {
    enum comm_mode mode;
    int rank; /* 0: all others connect to it; 2: it connects to all others */
    enum call call;
    int skip;
    int error;
    int at_once; /* it is the end at the first failure */
    int n_hear;  /* so many of the others had it among those that had come, and hear why it left */
    const char *words;
} cases[] = {
    {MODE_SHM, 0, MAP, 1, ENOMEM, 1, 0, "exchange memory of rank"}, /* the first is its own */
    {MODE_SHM, 0, MAP, 2, ENOMEM, 1, 1, "exchange memory of rank"}, /* one has joined */
    {MODE_SHM, 1, MAP, 1, ENOMEM, 1, 0, "exchange memory of rank"},
    {MODE_SHM, 2, MAP, 1, ENOMEM, 1, 1, "has let this rank in"},
    {MODE_SHM, 2, MAP, 2, ENOMEM, 1, 2, "has let this rank in"},
    {MODE_SHM, 0, ACCEPT, 0, EMFILE, 0, 0, "cannot take a connection: Too many open files (raise"},
    {MODE_TCP, 1, ACCEPT, 0, ENFILE, 0, 0, "Too many open files in system (raise fs.file-max)"},
    {MODE_SHM, 2, SOCKET, 0, EMFILE, 0, 0, "cannot make a Unix socket: Too many open files"},
    {MODE_TCP, 2, SOCKET, 0, ENOBUFS, 0, 0, "cannot make a socket: No buffer space"},
    {MODE_SHM, 0, TAKE, 0, 0, 0, 0, "cannot take the memory of a rank: Too many open files"},
    {MODE_SHM, 2, TAKE, 0, 0, 1, 1, "has let this rank in"},
    {MODE_SHM, 0, PASS, 0, ETOOMANYREFS, 0, 0, "cannot say hello to a rank"},
    {MODE_SHM, 2, PASS, 0, ENOBUFS, 0, 0, "cannot say hello to a rank: No buffer space"},
    {MODE_TCP, 0, PASS, 0, ENOBUFS, 0, 0, "cannot say hello to a rank: No buffer space"},
    {MODE_SHM, 0, HEAR, 0, ENOMEM, 0, 0, "cannot hear a rank's hello: Cannot allocate memory"},
    {MODE_TCP, 0, HEAR_OVER, 0, ENOMEM, 0, 0, "cannot hear a rank's hello"},
    {MODE_SHM, 2, HEAR, 0, ENOMEM, 0, 1, "cannot hear a rank's hello"}, /* and is let in */
    {MODE_TCP, 2, HEAR_OVER, 0, ENOBUFS, 0, 1, "cannot hear a rank's hello"},
    {MODE_TLS, 0, HEAR_OVER, 0, ENOMEM, 0, 0, "cannot shake hands with a rank"},
    {MODE_TLS, 2, SAY_OVER, 0, ENOBUFS, 0, 0, "cannot shake hands with a rank: No buffer space"},
    {MODE_TLS, 0, TLS, 0, 0, 0, 0, "out of memory for TLS"},
    {MODE_TLS, 2, TLS, 0, 0, 0, 0, "out of memory for TLS"},
    {MODE_TLS, 0, HANDSHAKE, 0, ENOMEM, 0, 0, "out of memory for TLS"},
    {MODE_TLS, 2, HANDSHAKE, 0, ENOMEM, 0, 0, "out of memory for TLS"},
};
enum { CASES = MS_ARRAY_SIZE(cases) };

enum { STANDS, IS_TO_BLAME, BLAMES_IT, IS_WRONG };

struct trial {
    struct comm_case *c;
    int nth;
    int times;
};

/* In a child: the mesh, and what the first collective says of those who have left it. */
static int make_mesh(int rank, void *arg)
{
    const struct trial *trial = arg;
    const int bad = cases[trial->nth].rank;
    struct mesh_config cfg = comm_case_config(trial->c, rank, 100);
    struct mesh *mesh = NULL;
    struct ms_err err = {0};
    int culprit = -1;
    cfg.ret_culprit = &culprit;
    if (rank == bad) {
        lack.skip = cases[trial->nth].skip;
        lack.left = trial->times;
        lack.error = cases[trial->nth].error;
        lack.call = cases[trial->nth].call;
    }
    int rc = mesh_create(&cfg, &mesh, &err);
    const int was_made = rc == 0;
    rc = rc == 0 ? mesh_barrier(mesh, &err) : rc;
    culprit = was_made ? mesh_culprit(mesh) : culprit;
    mesh_destroy(mesh);
    if (rc == 0) {
        return STANDS;
    }
    if (rank == bad && culprit == bad && rc == MS_E_NOMEM &&
        strstr(err.text, cases[trial->nth].words) != NULL) {
        return IS_TO_BLAME;
    }
    if (rank != bad && culprit == bad) {
        return BLAMES_IT;
    }
    fprintf(stderr, "case %d, rank %d blames rank %d: %s: %s\n", trial->nth, rank, culprit,
            ms_code_name(rc), err.text);
    return IS_WRONG;
}

/* How that one ended, or the next of all that are left: it is not among them any more. */
static int wait_for(pid_t pids[WORLD], pid_t pid)
{
    int status = 0;
    pid = waitpid(pid, &status, 0);
    ck_assert_int_gt(pid, 0);
    for (int rank = 0; rank < WORLD; rank++) {
        pids[rank] = pids[rank] == pid ? 0 : pids[rank];
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : IS_WRONG;
}

START_TEST(a_rank_that_is_short_for_good_blames_itself_and_nobody_else_is)
{
    struct trial trial = {.c = comm_case_open(cases[_i].mode, WORLD), .nth = _i, .times = FOR_EVER};
    pid_t pids[WORLD];
    const time_t begun = time(NULL);
    for (int rank = 0; rank < WORLD; rank++) {
        pids[rank] = ranks_fork(make_mesh, rank, &trial);
    }
    ck_assert_int_eq(wait_for(pids, pids[cases[_i].rank]), IS_TO_BLAME);
    for (int i = 0; i < cases[_i].n_hear; i++) {
        ck_assert_int_eq(wait_for(pids, -1), BLAMES_IT);
    }
    ck_assert_int_lt(time(NULL) - begun, 60);  /* half of their patience */
    for (int rank = 0; rank < WORLD; rank++) { /* who waits for others yet */
        if (pids[rank] != 0) {
            kill(pids[rank], SIGKILL);
            (void)wait_for(pids, pids[rank]);
        }
    }
    comm_case_close(trial.c);
}
END_TEST

START_TEST(a_rank_that_is_short_for_a_moment_joins)
{
    if (cases[_i].at_once) {
        return;
    }
    struct trial trial = {.c = comm_case_open(cases[_i].mode, WORLD), .nth = _i, .times = 2};
    ck_assert_int_eq(ranks_run(&trial.c->ranks, make_mesh, &trial), 0);
    comm_case_close(trial.c);
}
END_TEST

static int welcome_in_vain(int rank, void *arg)
{
    const struct trial *trial = arg;
    struct mesh_config cfg = comm_case_config(trial->c, rank, 100);
    struct mesh *mesh = NULL;
    struct ms_err why = {0};
    if (rank == 1) {
        lack.skip = cases[trial->nth].skip;
        lack.left = FOR_EVER;
        lack.error = cases[trial->nth].error;
        lack.call = cases[trial->nth].call;
        CHILD_TRUE(mesh_create(&cfg, &mesh, &why) < 0, "it lacked nothing");
        return 0;
    }
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_TRUE(mesh_barrier(mesh, &why) == MS_E_CLOSED, "%s", why.text);
    CHILD_TRUE(strstr(why.text, "rank 1 (node w1 on host localhost) reports a shortage of its own "
                                "during barrier") != NULL,
               "%s", why.text);
    mesh_destroy(mesh);
    return 0;
}

static int is_welcomed(int nth)
{
    const int cannot_hear = cases[nth].call == HEAR || cases[nth].call == HEAR_OVER;
    return cases[nth].rank != 0 && cases[nth].skip <= 1 && (cases[nth].at_once || cannot_hear);
}

/* It has it among those that have come. */
START_TEST(who_welcomes_a_rank_that_is_short_hears_why_it_goes)
{
    if (!is_welcomed(_i)) {
        return;
    }
    struct trial trial = {.c = comm_case_open(cases[_i].mode, 2), .nth = _i};
    ck_assert_int_eq(ranks_run(&trial.c->ranks, welcome_in_vain, &trial), 0);
    comm_case_close(trial.c);
}
END_TEST

/* ---- within a collective ------------------------------------------------------------------------
 */

enum { FLOATS = 100000, SHORT_ONE = 1 };

static const struct {
    enum comm_mode mode;
    enum call call;
    int error;
    int at_once;
    int can_say; /* the others hear why, of itself or of each other; else its end alone */
} sums[] = {
    {MODE_TCP, PASS, ENOBUFS, 0, 0},    {MODE_TCP, HEAR_OVER, ENOMEM, 0, 1},
    {MODE_TLS, SAY_OVER, ENOMEM, 0, 0}, {MODE_TLS, HEAR_OVER, ENOBUFS, 0, 1},
    {MODE_TLS, READ, ENOMEM, 1, 1},
};
enum { SUMS = MS_ARRAY_SIZE(sums) };

static int check_blame(const struct trial *trial, int rank, int rc, int culprit, const char *text)
{
    CHILD_TRUE(culprit == SHORT_ONE, "it blames rank %d: %s", culprit, text);
    if (rank == SHORT_ONE) {
        CHILD_TRUE(rc == MS_E_NOMEM, "%s: %s", ms_code_name(rc), text);
        CHILD_TRUE(strstr(text, "cannot exchange data with rank") != NULL &&
                       strstr(text, strerror(sums[trial->nth].error)) != NULL,
                   "%s", text);
    } else {
        CHILD_TRUE(rc == MS_E_CLOSED, "%s: %s", ms_code_name(rc), text);
        CHILD_TRUE(!sums[trial->nth].can_say || strstr(text, "has died") == NULL, "%s", text);
    }
    return 0;
}

/* In a child: a sum, in which rank 1 is short as often as the trial says. */
static int sum_up(int rank, void *arg)
{
    const struct trial *trial = arg;
    struct mesh_config cfg = comm_case_config(trial->c, rank, FLOATS);
    struct mesh *mesh = NULL;
    struct ms_err why = {0};
    const void *sum = NULL;
    int failed = 0;
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_OK(mesh_step_begin(mesh, 1, err));
    float *values = mesh_exchange(mesh);
    for (int i = 0; i < FLOATS; i++) {
        values[i] = (float)(rank + 1);
    }
    CHILD_OK(mesh_barrier(mesh, err));
    if (rank == SHORT_ONE) {
        lack.left = trial->times;
        lack.error = sums[trial->nth].error;
        lack.call = sums[trial->nth].call;
    }
    int rc = mesh_all_reduce_sum(mesh, 0, FLOATS, &sum, &why);
    if (trial->times == FOR_EVER) {
        failed = check_blame(trial, rank, rc, mesh_culprit(mesh), why.text);
    } else {
        CHILD_TRUE(rc == 0, "%s", why.text);
        for (int i = 0; i < FLOATS; i++) {
            CHILD_TRUE(((const float *)sum)[i] == 6.0F, "float %d", i);
        }
        CHILD_OK(mesh_barrier(mesh, err));
    }
    mesh_destroy(mesh);
    return failed;
}

START_TEST(a_rank_that_is_short_within_a_sum_blames_itself_and_nobody_else_is)
{
    struct trial trial = {.c = comm_case_open(sums[_i].mode, WORLD), .nth = _i, .times = FOR_EVER};
    ck_assert_int_eq(ranks_run(&trial.c->ranks, sum_up, &trial), 0);
    comm_case_close(trial.c);
}
END_TEST

START_TEST(a_rank_that_is_short_for_a_moment_within_a_sum_goes_on)
{
    if (sums[_i].at_once) {
        return;
    }
    struct trial trial = {.c = comm_case_open(sums[_i].mode, WORLD), .nth = _i, .times = 7};
    ck_assert_int_eq(ranks_run(&trial.c->ranks, sum_up, &trial), 0);
    comm_case_close(trial.c);
}
END_TEST

/* ---- between two collectives --------------------------------------------------------------------
 */

static int give_up(int rank, void *arg)
{
    const struct trial *trial = arg;
    struct mesh_config cfg = comm_case_config(trial->c, rank, 100);
    struct mesh *mesh = NULL;
    struct ms_err why = {0};
    CHILD_OK(mesh_create(&cfg, &mesh, err));
    CHILD_OK(mesh_barrier(mesh, err));
    if (rank == SHORT_ONE) {
        mesh_give_up(mesh, MS_E_NOMEM, "no memory to agree");
    }
    int rc = mesh_barrier(mesh, &why);
    CHILD_TRUE(rc == (rank == SHORT_ONE ? MS_E_NOMEM : MS_E_CLOSED), "%s", why.text);
    CHILD_TRUE(mesh_culprit(mesh) == SHORT_ONE, "%s", why.text);
    CHILD_TRUE(rank != SHORT_ONE || strcmp(why.text, "no memory to agree") == 0, "%s", why.text);
    CHILD_TRUE(strstr(why.text, "has died") == NULL && strstr(why.text, "on purpose") == NULL, "%s",
               why.text);
    mesh_destroy(mesh);
    return 0;
}

START_TEST(a_rank_that_is_short_between_two_collectives_is_named_by_all)
{
    struct trial trial = {.c = comm_case_open(_i == 0 ? MODE_SHM : MODE_TCP, WORLD)};
    ck_assert_int_eq(ranks_run(&trial.c->ranks, give_up, &trial), 0);
    comm_case_close(trial.c);
}
END_TEST

/* ---- a rank that was asked ----------------------------------------------------------------------
 */

static int accept_from(int listener)
{
    struct pollfd door = {.fd = listener, .events = POLLIN};
    ck_assert_int_eq(poll(&door, 1, 60000), 1);
    int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void take_bytes(int fd, void *bytes, size_t size)
{
    ck_assert_int_eq(recv(fd, bytes, size, MSG_WAITALL), (ssize_t)size);
}

/* Rank 2 asks rank 0, which is about to let it in, and cannot ask rank 1. */
START_TEST(who_was_asked_by_a_rank_that_is_short_hears_why_it_goes)
{
    struct comm_case *c = comm_case_open(_i == 0 ? MODE_SHM : MODE_TCP, WORLD);
    const struct comm_listener *asked = c->ranks.listeners[0];
    struct maker maker = {.barriers = 1};
    uint8_t ask[HELLO_BYTES];
    uint8_t head[FRAME_HEADER];
    struct hello hello;
    struct frame bye;
    lack.skip = 1;
    lack.left = FOR_EVER;
    lack.error = EMFILE;
    lack.call = SOCKET;

    maker_start(&maker, c, 2);
    int fd = accept_from(_i == 0 ? asked->unix_fd : asked->tcp_fd);
    take_bytes(fd, ask, sizeof(ask));
    ck_ms_ok(hello_decode(ask, &hello, err));
    take_bytes(fd, head, sizeof(head));

    ck_ms_ok(frame_decode(head, &bye, err));
    ck_assert_int_eq(bye.type, FRAME_BYE);
    ck_assert_int_eq(bye.phase, FRAME_BYE_ABORTED);
    ck_assert_uint_eq(bye.begin, 2);
    maker_join(&maker);
    check_failed(&maker, MS_E_NOMEM, "Too many open files");
    lack.call = NO_CALL;
    close(fd);
    comm_case_close(c);
}
END_TEST

int main(void)
{
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1) {
        return 1;
    }
    Suite *suite = suite_create("comm_short");
    TCase *tc = tcase_create("short");
    tcase_add_loop_test(tc, a_rank_that_is_short_for_good_blames_itself_and_nobody_else_is, 0,
                        CASES);
    tcase_add_loop_test(tc, a_rank_that_is_short_for_a_moment_joins, 0, CASES);
    tcase_add_loop_test(tc, who_welcomes_a_rank_that_is_short_hears_why_it_goes, 0, CASES);
    tcase_add_loop_test(tc, a_rank_that_is_short_within_a_sum_blames_itself_and_nobody_else_is, 0,
                        SUMS);
    tcase_add_loop_test(tc, a_rank_that_is_short_for_a_moment_within_a_sum_goes_on, 0, SUMS);
    tcase_add_loop_test(tc, a_rank_that_is_short_between_two_collectives_is_named_by_all, 0, 2);
    tcase_add_loop_test(tc, who_was_asked_by_a_rank_that_is_short_hears_why_it_goes, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
