/* authority.c - the directory of a certificate authority, and what is done with it */
#include "proto/authority.h"

#include "proto/ca.h"
#include "proto/limits.h"
#include "proto/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { DAY_S = 86400 };

struct ms_authority {
    struct ms_ca *ca;
    struct ms_ca_index index;
    int lock_fd;
    char directory[MS_PATH_MAX - 15]; /* with room for a file's name */
    char index_path[MS_PATH_MAX + 1];
    char crl_path[MS_PATH_MAX + 1];
};

/* ---- the directory ---- */

static int lock(struct ms_authority *authority, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    snprintf(path, sizeof(path), "%s/index.lock", authority->directory);
    authority->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (authority->lock_fd < 0) {
        return ms_fail_errno(err, MS_E_IO, "cannot open %s", path);
    }
    while (flock(authority->lock_fd, LOCK_EX) != 0) { /* the other one needs milliseconds */
        if (errno != EINTR) {
            return ms_fail_errno(err, MS_E_IO, "cannot lock %s", path);
        }
    }
    return MS_OK;
}

/* An authority that is older than its index gets one: only what was revoked is known. */
static int read_index(struct ms_authority *authority, struct ms_err *err)
{
    int rc = ms_ca_index_read(authority->index_path, &authority->index, err);
    if (rc != MS_E_NOT_FOUND) {
        return rc;
    }
    authority->index.since = time(NULL);
    rc = ms_crl_import(authority->ca, authority->crl_path, &authority->index, err);
    return rc == MS_OK ? ms_ca_index_write(authority->index_path, &authority->index, err) : rc;
}

/* What a later attempt would take for a CA that is there. */
static void take_back(const char *directory)
{
    static const char *const made[] = {"ca.key", "ca.crt"};
    char path[MS_PATH_MAX + 1];
    for (size_t i = 0; i < MS_ARRAY_SIZE(made); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, made[i]);
        unlink(path);
    }
}

int ms_authority_create(const char *directory, const struct ms_ca *ca, struct ms_err *err)
{
    static const struct ms_ca_index empty;
    char path[MS_PATH_MAX + 1];
    int rc = ms_ca_save(ca, directory, err);
    if (rc != MS_OK) {
        return rc;
    }
    snprintf(path, sizeof(path), "%s/index.txt", directory);
    rc = ms_ca_index_write(path, &empty, err);
    if (rc != MS_OK) {
        take_back(directory);
    }
    return rc;
}

int ms_authority_open(const char *directory, struct ms_authority **ret, struct ms_err *err)
{
    struct ms_authority *authority = (struct ms_authority *)calloc(1, sizeof(*authority));
    if (authority == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for a CA");
    }
    authority->lock_fd = -1;
    int rc = MS_OK;
    if (strlen(directory) >= sizeof(authority->directory)) {
        rc = ms_fail(err, MS_E_INVALID, "the path %.64s... is too long", directory);
        goto out;
    }
    memcpy(authority->directory, directory, strlen(directory) + 1);
    snprintf(authority->index_path, sizeof(authority->index_path), "%s/index.txt", directory);
    snprintf(authority->crl_path, sizeof(authority->crl_path), "%s/crl.pem", directory);
    rc = ms_ca_load(directory, &authority->ca, err);
    if (rc == MS_OK) {
        rc = lock(authority, err);
    }
    if (rc == MS_OK) {
        rc = read_index(authority, err);
    }
out:
    if (rc != MS_OK) {
        ms_authority_close(authority);
        return rc;
    }
    *ret = authority;
    return MS_OK;
}

void ms_authority_close(struct ms_authority *authority)
{
    if (authority == NULL) {
        return;
    }
    ms_ca_destroy(authority->ca);
    ms_ca_index_fini(&authority->index);
    if (authority->lock_fd >= 0) {
        close(authority->lock_fd); /* and with it the lock */
    }
    free(authority);
}

const struct ms_ca_index *ms_authority_index(const struct ms_authority *authority)
{
    return &authority->index;
}

/* ---- issue ---- */

static int enter(struct ms_authority *authority, const X509 *cert, struct ms_err *err)
{
    struct ms_ca_entry entry;
    ms_ca_describe(cert, &entry);
    int rc = ms_ca_index_add(&authority->index, &entry, err);
    free(entry.hosts);
    if (rc == MS_OK) {
        rc = ms_ca_index_write(authority->index_path, &authority->index, err);
        if (rc != MS_OK) {
            ms_ca_index_drop_last(&authority->index);
        }
    }
    return rc;
}

int ms_authority_issue(struct ms_authority *authority, const struct ms_cert_request *req,
                       const char *p12_path, const struct ms_ca_entry **ret, struct ms_err *err)
{
    struct ms_p12 p12;
    int rc = ms_ca_sign(authority->ca, req, &p12, err);
    if (rc != MS_OK) {
        return rc;
    }
    rc = enter(authority, p12.cert, err);
    if (rc == MS_OK) {
        rc = ms_ca_deliver(authority->ca, req, &p12, p12_path, err);
        if (rc != MS_OK) { /* nobody has it: no row; where that fails too, it is one too many */
            ms_ca_index_drop_last(&authority->index);
            (void)ms_ca_index_write(authority->index_path, &authority->index, NULL);
        }
    }
    ms_p12_fini(&p12);
    if (rc == MS_OK) {
        *ret = &authority->index.entries[authority->index.n - 1];
    }
    return rc;
}

/* ---- who is meant ---- */

static int is_meant(const struct ms_ca_entry *entry, const struct ms_ca_entry *serial,
                    const char *text)
{
    return entry == serial || (serial == NULL && ms_ca_entry_is(entry, text));
}

/* Enters the certificate of a file of ours that the index does not know: it is older than the
 * index. Fills *ret with its row. */
static int find_file(struct ms_authority *authority, const struct ms_authority_who *who,
                     struct ms_ca_entry **ret, struct ms_err *err)
{
    X509 *cert = NULL;
    char serial[MS_SERIAL_HEX];
    int rc = ms_ca_read_own(authority->ca, who->text, who->password, &cert, err);
    if (rc != MS_OK) {
        return rc;
    }
    ms_serial_hex(cert, serial, sizeof(serial));
    *ret = ms_ca_index_serial(&authority->index, serial);
    if (*ret == NULL) {
        rc = enter(authority, cert, err);
        *ret = rc == MS_OK ? &authority->index.entries[authority->index.n - 1] : NULL;
    }
    X509_free(cert);
    return rc;
}

/* One NAME with two roles is two people: which one must be said. */
static int check_roles(const struct ms_authority *authority, const char *text, size_t *ret_n,
                       struct ms_err *err)
{
    const struct ms_ca_entry *first = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < authority->index.n; i++) {
        const struct ms_ca_entry *entry = &authority->index.entries[i];
        if (!ms_ca_entry_is(entry, text)) {
            continue;
        }
        *ret_n += 1;
        first = first != NULL ? first : entry;
        if (strcmp(first->role, entry->role) != 0) {
            return ms_fail(err, MS_E_INVALID,
                           "'%.64s' is a %s and a %s: say %s:%.64s or %s:%.64s, or a serial number "
                           "(msctl certs list)",
                           text, first->role, entry->role, first->role, text, entry->role, text);
        }
    }
    return MS_OK;
}

/* Who is meant: *ret_one is a single row, or NULL where all rows are meant that text names. A path
 * is a file; another word is a serial number, a name, and only then a file. */
static int resolve(struct ms_authority *authority, const struct ms_authority_who *who,
                   struct ms_ca_entry **ret_one, struct ms_err *err)
{
    size_t n = 0;
    *ret_one = NULL;
    if (strchr(who->text, '/') == NULL) {
        *ret_one = ms_ca_index_serial(&authority->index, who->text);
        int rc = *ret_one == NULL ? check_roles(authority, who->text, &n, err) : MS_OK;
        if (rc != MS_OK || *ret_one != NULL || n > 0) {
            return rc;
        }
    }
    if (access(who->text, F_OK) != 0) {
        return ms_fail(
            err, MS_E_NOT_FOUND,
            "'%.100s' is no name and no serial number in %.200s, and no file; msctl certs "
            "list shows what was issued%s",
            who->text, authority->index_path,
            authority->index.since != 0 ? " since the index is kept: for what is older name the "
                                          "file, or to revoke it the serial number"
                                        : "");
    }
    return find_file(authority, who, ret_one, err);
}

/* ---- renew ---- */

static int role_of(const char *name, enum ms_role *ret)
{
    static const enum ms_role roles[] = {MS_ROLE_WORKER, MS_ROLE_USER, MS_ROLE_ADMIN,
                                         MS_ROLE_SCHEDULER};
    for (size_t i = 0; i < MS_ARRAY_SIZE(roles); i++) {
        if (strcmp(ms_role_name(roles[i]), name) == 0) {
            *ret = roles[i];
            return 1;
        }
    }
    return 0;
}

/* By its own dates: the index may have learned of an old one late. */
static int is_newer(const struct ms_ca_entry *entry, const struct ms_ca_entry *than)
{
    return than == NULL || entry->from >= than->from; /* the same second: issued later */
}

/* The newest that is meant and not revoked. */
static int find_model(struct ms_authority *authority, const struct ms_authority_who *who,
                      const struct ms_ca_entry **ret, struct ms_err *err)
{
    struct ms_ca_entry *one = NULL;
    const struct ms_ca_entry *model = NULL;
    enum ms_role unused;
    int rc = resolve(authority, who, &one, err);
    for (size_t i = 0; rc == MS_OK && i < authority->index.n; i++) {
        const struct ms_ca_entry *entry = &authority->index.entries[i];
        if (entry->revoked == 0 && is_meant(entry, one, who->text) && is_newer(entry, model)) {
            model = entry;
        }
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (model == NULL) {
        return ms_fail(
            err, MS_E_REFUSED,
            "'%.100s' is revoked, so it is not renewed: msctl certs issue ROLE NAME makes "
            "a new one",
            who->text);
    }
    if (!role_of(model->role, &unused) || model->name[0] == '\0') {
        return ms_fail(
            err, MS_E_INVALID,
            "'%.100s' says no role and no name of ours: issue a new one with msctl certs "
            "issue ROLE NAME",
            who->text);
    }
    *ret = model;
    return MS_OK;
}

/* hosts of a row as a list that ends with NULL; words is cut up. */
static void split_hosts(char *words, const char **list, size_t max)
{
    size_t n = 0;
    for (char *one = strsep(&words, ","); one != NULL && n + 1 < max; one = strsep(&words, ",")) {
        list[n++] = one;
    }
    list[n] = NULL;
}

int ms_authority_renew(struct ms_authority *authority, const struct ms_authority_who *who,
                       struct ms_cert_request *req, const char *p12_path, int may_replace,
                       const struct ms_ca_entry **ret, struct ms_err *err)
{
    const struct ms_ca_entry *model = NULL;
    const char *list[MS_CERT_HOSTS_MAX + 1] = {NULL};
    char name[MS_NAME_MAX + 1];
    char path[MS_NAME_MAX + 8];
    int rc = find_model(authority, who, &model, err);
    if (rc != MS_OK) {
        return rc;
    }
    snprintf(name, sizeof(name), "%s", model->name);
    snprintf(path, sizeof(path), "%s.p12", name);
    p12_path = p12_path != NULL ? p12_path : path;
    if (!may_replace && access(p12_path, F_OK) == 0) {
        return ms_fail(err, MS_E_EXISTS,
                       "%.200s exists already: remove it, name another with --out, or replace it "
                       "with --force",
                       p12_path);
    }
    char *hosts = model->hosts != NULL ? strdup(model->hosts) : NULL;
    if (model->hosts != NULL && hosts == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the hosts of a certificate");
    }
    if (hosts != NULL) {
        split_hosts(hosts, list, MS_ARRAY_SIZE(list));
    }
    (void)role_of(model->role, &req->role);
    int64_t life = (int64_t)model->to - (int64_t)model->from;
    req->days = req->days != 0 ? req->days : life >= DAY_S ? (int)(life / DAY_S) : 1;
    req->name = name;
    req->hosts = list;
    rc = ms_authority_issue(authority, req, p12_path, ret, err);
    req->name = NULL;
    req->hosts = NULL;
    free(hosts);
    return rc;
}

/* ---- revoke ---- */

/* A serial number of ours is 16 random bytes: with less than half of them it is a slip. */
enum { SERIAL_DIGITS_MIN = 16 };

/* Where certificates are older than the index, a serial number (of a log, or a list of somebody's)
 * is enough to revoke. Enters a row that knows nothing else. */
static int enter_serial(struct ms_authority *authority, const char *text, struct ms_err *err)
{
    struct ms_ca_entry entry = {.hosts = NULL};
    if (authority->index.since == 0 || !ms_ca_serial(text, entry.serial) ||
        strlen(entry.serial) < SERIAL_DIGITS_MIN) {
        return MS_E_NOT_FOUND; /* as resolve says it */
    }
    return ms_ca_index_add(&authority->index, &entry, err);
}

/* Marks all that are meant, and writes the index where that changes it. */
static int mark(struct ms_authority *authority, const struct ms_authority_who *who, size_t *ret_n,
                struct ms_err *err)
{
    struct ms_ca_entry *one = NULL;
    time_t now = time(NULL);
    size_t n = 0;
    int rc = resolve(authority, who, &one, err);
    if (rc == MS_E_NOT_FOUND && (rc = enter_serial(authority, who->text, err)) == MS_OK) {
        one = &authority->index.entries[authority->index.n - 1];
    }
    if (rc != MS_OK) {
        return rc;
    }
    for (size_t i = 0; i < authority->index.n; i++) {
        struct ms_ca_entry *entry = &authority->index.entries[i];
        if (entry->revoked == 0 && is_meant(entry, one, who->text)) {
            entry->revoked = now;
            n++;
        }
    }
    rc = n > 0 ? ms_ca_index_write(authority->index_path, &authority->index, err) : MS_OK;
    if (rc == MS_OK) {
        *ret_n = n;
    }
    return rc;
}

static int copy_path(const struct ms_authority *authority, const char *copy, char *buf, size_t size,
                     struct ms_err *err)
{
    int n = snprintf(buf, size, "%s%s%s", copy[0] == '/' ? "" : authority->directory,
                     copy[0] == '/' ? "" : "/", copy);
    return n > 0 && (size_t)n < size
               ? MS_OK
               : ms_fail(err, MS_E_INVALID, "the path %.64s... is too long", copy);
}

int ms_authority_revoke(struct ms_authority *authority, const struct ms_authority_who *who,
                        int days, const char *copy, size_t *ret_n, struct ms_err *err)
{
    char other[MS_PATH_MAX + 1] = "";
    size_t n = 0;
    int rc = copy != NULL ? copy_path(authority, copy, other, sizeof(other), err) : MS_OK;
    if (rc == MS_OK && (days < 1 || days > MS_CRL_DAYS_MAX)) {
        rc = ms_fail(err, MS_E_INVALID, "revocation list for %d days: must be 1 to %d", days,
                     MS_CRL_DAYS_MAX);
    }
    if (rc == MS_OK && who != NULL) {
        rc = mark(authority, who, &n, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    struct ms_crl_plan plan = {.sources = {authority->crl_path, other[0] != '\0' ? other : NULL},
                               .index = &authority->index,
                               .path = authority->crl_path,
                               .days = days};
    rc = ms_crl_make(authority->ca, &plan, err);
    if (rc == MS_OK && other[0] != '\0') {
        plan.path = other; /* numbered on once more: whoever has both takes the later one */
        rc = ms_crl_make(authority->ca, &plan, err);
    }
    if (rc == MS_OK) {
        *ret_n = n;
    }
    return rc;
}
