/* fuzz_store.c - a database out of any bytes: it opens and loads, or is refused in words
 *
 * Whatever it is, the bytes of a file that was refused stay as they were. One that opened is tried
 * a second time with the digests and sums of its plans made anew: else nothing behind them would
 * ever see a plan that is not whole. */
#include "daemon/store/store.h"
#include "daemon/store/sum.h"
#include "proto/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/store_ask.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 20 };

/* In place of the core: what is loaded must be what sched.h promises. */
static size_t rows;

static void check_text(const char *text, size_t size)
{
    FUZZ_CHECK(memchr(text, 0, size) != NULL);
}

int sched_load_job(struct sched *sched, const struct sched_job_row *row, struct ms_err *err)
{
    (void)sched;
    (void)err;
    rows++;
    FUZZ_CHECK(row->state >= JOB_QUEUED && row->state < JOB_STATES);
    FUZZ_CHECK(row->spec != NULL || row->spec_bytes == 0);
    check_text(row->name, sizeof(row->name));
    check_text(row->owner, sizeof(row->owner));
    check_text(row->reason, sizeof(row->reason));
    check_text(row->key, sizeof(row->key));
    check_text(row->run_dir, sizeof(row->run_dir));
    check_text(row->cancel_text, sizeof(row->cancel_text));
    FUZZ_CHECK(row->results != NULL || row->results_bytes == 0);
    check_text(row->weights_sha256, sizeof(row->weights_sha256));
    check_text(row->plan_sha256, sizeof(row->plan_sha256));
    check_text(row->plan, sizeof(row->plan));
    FUZZ_CHECK(row->plan_text == NULL || strlen(row->plan_text) <= MS_PLAN_MAX);
    uint8_t *copy = (uint8_t *)malloc(row->spec_bytes + 1); /* readable to its last byte */
    FUZZ_CHECK(copy != NULL);
    if (row->spec_bytes > 0) {
        memcpy(copy, row->spec, row->spec_bytes);
    }
    free(copy);
    return 0;
}

int sched_load_aside(struct sched *sched, const struct sched_aside_row *row, struct ms_err *err)
{
    (void)sched;
    (void)err;
    rows++;
    check_text(row->key, sizeof(row->key));
    check_text(row->name, sizeof(row->name));
    check_text(row->why, sizeof(row->why));
    return 0;
}

int sched_load_plan(struct sched *sched, const struct sched_plan_row *row, struct ms_err *err)
{
    (void)sched;
    (void)err;
    rows++;
    check_text(row->sha256, sizeof(row->sha256));
    FUZZ_CHECK(row->bytes <= MS_PLAN_MAX && row->text[row->bytes] == '\0');
    return 0;
}

int sched_load_member(struct sched *sched, const struct sched_member_row *row, struct ms_err *err)
{
    (void)sched;
    (void)err;
    rows++;
    check_text(row->node_id, sizeof(row->node_id));
    check_text(row->host_name, sizeof(row->host_name));
    check_text(row->log_path, sizeof(row->log_path));
    check_text(row->principal, sizeof(row->principal));
    check_text(row->state, sizeof(row->state));
    return 0;
}

int sched_load_meta(struct sched *sched, const char *key, uint64_t value, struct ms_err *err)
{
    (void)sched;
    (void)value;
    (void)err;
    check_text(key, MS_NAME_MAX + 1);
    return 0;
}

int sched_load_event(struct sched *sched, const struct sched_event_row *row, struct ms_err *err)
{
    (void)sched;
    (void)err;
    check_text(row->kind, MS_NAME_MAX + 1);
    check_text(row->principal, MS_PRINCIPAL_MAX + 1);
    return 0;
}

int sched_effect_is_durable(enum sched_effect_kind kind)
{
    return kind >= SCHED_DO_PUT_JOB && kind <= SCHED_DO_PUT_META;
}

static char path[128];

static void remove_all(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock", ".reserve"};
    char one[160];
    for (size_t i = 0; i < MS_ARRAY_SIZE(suffixes); i++) {
        snprintf(one, sizeof(one), "%s%s", path, suffixes[i]);
        unlink(one);
    }
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

static void make_folder(void)
{
    if (path[0] == '\0') { /* memory, where there is some: thousands of files are written */
        snprintf(path, sizeof(path), "%s/msched-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(path) != NULL);
        memcpy(path + strlen(path), "/state.db", sizeof("/state.db"));
        atexit(remove_all);
    }
}

static void write_database(const uint8_t *data, size_t size)
{
    char wal[160];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    unlink(wal);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static int is_unchanged(const uint8_t *data, size_t size)
{
    static uint8_t now[INPUT_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, now, sizeof(now));
    close(fd);
    return n == (ssize_t)size && memcmp(now, data, size) == 0;
}

/* The jobs keep their sums, which hold no more where their plans got other digests: plans are
 * loaded before them. False where SQLite refuses a statement. */
static int seal_plans(void)
{
    static const char statements[] =
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA trusted_schema=OFF;"
        "UPDATE job SET plan = sha256_hex((SELECT text FROM plan WHERE sha256 = job.plan))"
        "  WHERE plan IN (SELECT sha256 FROM plan);"
        "UPDATE plan SET sha256 = sha256_hex(text), sum = row_sum(sha256_hex(text));"
        /* in halves: sum() gives up where it overflows */
        "UPDATE ledger SET (rows, sum) = (SELECT count(*), (sum(sum & 4294967295) +"
        "  ((sum(sum >> 32) & 1073741823) << 32)) & 4611686018427387903 FROM plan)"
        "  WHERE name = 'plan';";
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        rc = store_add_functions(db);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, statements, NULL, NULL, NULL);
    }
    sqlite3_close(db);
    return rc == SQLITE_OK;
}

/* What `msctl show` and `msctl show --plan` ask for: a frame that a client takes, whatever the row
 * holds. */
static void read_job(struct store *store, enum sched_read_kind kind, uint64_t id)
{
    struct ms_wire_header header;
    ProtobufCMessage *msg = NULL;
    size_t size = 0;
    uint8_t *frame = store_ask(store, kind, 1, id, &size);
    FUZZ_CHECK(frame != NULL && ms_wire_parse_header(frame, &header, NULL) == 0);
    FUZZ_CHECK(header.type == MS_MSG_JOB_LIST || header.type == MS_MSG_ERROR);
    FUZZ_CHECK(size == MS_WIRE_HEADER + (size_t)header.length);
    FUZZ_CHECK(ms_wire_unpack(header.type, frame + MS_WIRE_HEADER, header.length, &msg, NULL) == 0);
    ms_wire_free(msg);
    free(frame);
}

/* False: it was refused, in words. */
static int open_and_load(const uint8_t *data, size_t size)
{
    struct store *store = NULL;
    struct ms_err err = {0, ""};
    int rc = store_open(path, &store, &err);
    if (rc < 0) {
        FUZZ_CHECK(err.text[0] != '\0' && store == NULL);
        /* a legal header in WAL mode may be written by the opening; a foreign file never is */
        FUZZ_CHECK(rc == MS_E_CONFIG || rc == MS_E_IO || rc == MS_E_NOMEM || rc == MS_E_EXISTS);
        FUZZ_CHECK(size < 16 || memcmp(data, "SQLite format 3", 16) == 0 ||
                   is_unchanged(data, size));
        return 0;
    }
    rc = store_load(store, NULL, &err);
    FUZZ_CHECK(rc == 0 || err.text[0] != '\0');
    for (uint64_t id = 1; id <= 4; id++) { /* those of the corpus */
        read_job(store, SCHED_READ_SPEC, id);
        read_job(store, SCHED_READ_PLAN, id);
    }
    static const char spec[] = "{}";
    struct sched_job_row job = {
        .id = 1, .workers = 1, .spec = (const uint8_t *)spec, .spec_bytes = 2};
    struct sched_effect effect = {.kind = SCHED_DO_PUT_JOB, .job = &job};
    rc = store_commit(store, &effect, 1, &err);
    FUZZ_CHECK(rc >= 0 || err.text[0] != '\0');
    store_close(store);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    make_folder();
    write_database(data, size);
    if (open_and_load(data, size)) {
        write_database(data, size);
        if (seal_plans()) {
            open_and_load(data, size);
        }
    }
    return 0;
}
