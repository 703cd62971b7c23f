/* options_table.c - every setting of msschedd, and which of them with which defaults a mode has */
#include "daemon/options_private.h"

#include "config.h"
#include "proto/limits.h"
#include "proto/macros.h"

#include <stdlib.h>
#include <string.h>

#define TLS_DIR MSCHED_SYSCONFDIR "/tls"

/* The standing cluster. Private mode takes the same rows with other defaults, see
 * options_private_rows. */
const struct ms_setting options_rows[] = {
    {"listen", "--listen", "MSCHED_LISTEN", MS_SET_STRING, 0, 0, NULL, "[::]:8118", 0,
     "TCP address for workers and remote clients; none: only the Unix socket"},
    {"socket", "--socket", "MSCHED_SOCKET", MS_SET_STRING, 0, 0, NULL, "/run/msched/msschedd.sock",
     0, "Unix socket for clients on this host; none: only TCP"},
    {"socket_group", "--socket-group", "MSCHED_SOCKET_GROUP", MS_SET_STRING, 0, 0, NULL,
     "msched-users", 0, "group that may use the socket; the built-in one may be missing"},
    {"database", "--database", "MSCHED_DATABASE", MS_SET_STRING, 0, 0, NULL,
     "/var/lib/msched/state.db", 0, "file that keeps the jobs"},
    {"lease_ms", "--lease-ms", "MSCHED_LEASE_MS", MS_SET_INT, MS_LEASE_MIN_MS, MS_LEASE_MAX_MS,
     NULL, "10000", 1, "a node that is silent for longer is lost"},
    {"topo_timeout_s", "--topo-timeout-s", "MS_TOPO_TIMEOUT", MS_SET_INT, -1, 604800, NULL, "1800",
     0, "time for a job's ranks to get ready; -1: for ever"},
    {"tls", "--tls", "MS_ENABLE_SSL", MS_SET_ENUM, 0, 0, "auto|off|on|0|1", "auto", 0,
     "auto: TLS, plain only on loopback without certificates; off: plain TCP everywhere"},
    {"tls_config", "--tls-config", "MS_TLS_CONFIG", MS_SET_STRING, 0, 0, NULL, NULL, 1,
     "JSON with server_cert_path, ca_cert_path, ...; replaces the tls_ settings below"},
    {"tls_ca", "--tls-ca", "MSCHED_TLS_CA", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/ca.crt", 1,
     "certificate of the CA, PEM"},
    {"tls_cert", "--tls-cert", "MSCHED_TLS_CERT", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/node.p12", 1,
     "certificate and key of this scheduler, PKCS#12"},
    {"tls_crl", "--tls-crl", "MSCHED_TLS_CRL", MS_SET_STRING, 0, 0, NULL, TLS_DIR "/crl.pem", 1,
     "revoked certificates, PEM; the built-in one may be missing"},
    {"tls_password_file", "--tls-password-file", "MSCHED_TLS_PASSWORD_FILE", MS_SET_STRING, 0, 0,
     NULL, NULL, 1, "file with the password of tls_cert; else the credential p12-password"},
    {"tls_expire_warning_days", "--tls-expire-warning-days", NULL, MS_SET_INT, 7, 180, NULL, "90",
     1, "warn so long before a certificate expires"},
    {"anyone", "--anyone", "MSCHED_ANYONE", MS_SET_STRING, 0, 0, NULL, "worker user admin", 1,
     "what anyone without TLS may be: worker, user, admin, or none"},
    {"user_map", "--user-map", "MSCHED_USER_MAP", MS_SET_STRING, 0, 0, NULL, "", 1,
     "NAME=UID ...: names of uids on the Unix socket; others have the system's (NSS)"},
    {"priority_users", "--priority-users", "MSCHED_PRIORITY_USERS", MS_SET_STRING, 0, 0, NULL,
     "-100..100", 1, "priorities that users may give to jobs; admins may -1000..1000"},
    {"node_ids", "--node-ids", "MSCHED_NODE_IDS", MS_SET_ENUM, 0, 0, "certificate|free",
     "certificate", 1,
     "certificate: a node id is its certificate's name, NAME-NUMBER or NAME:WORD; free: any"},
    {"nodes_per_certificate", "--nodes-per-certificate", "MSCHED_NODES_PER_CERTIFICATE", MS_SET_INT,
     1, MS_NODES_MAX, NULL, "64", 1, "nodes that one certificate may register"},
    {"specs_mib", "--specs-mib", "MSCHED_SPECS_MIB", MS_SET_INT, 1, MS_SPECS_MIB_MAX, NULL, "256",
     1, "MiB that the descriptions of all jobs that wait or run may take"},
    {"specs_owner_mib", "--specs-owner-mib", "MSCHED_SPECS_OWNER_MIB", MS_SET_INT, 1,
     MS_SPECS_MIB_MAX, NULL, "64", 1, "... and of the jobs of one owner"},
    {"log_level", "--log-level", "MSCHED_LOG_LEVEL", MS_SET_ENUM, 0, 0,
     "error|warning|notice|info|debug", "info", 1, "lines above this level are dropped"},
    {NULL, NULL, NULL, MS_SET_STRING, 0, 0, NULL, NULL, 0, NULL},
};
enum { ROWS = MS_ARRAY_SIZE(options_rows) };

/* A dynamic cluster is set up by MS_*; only what it has no word for is set here. */
static const char *const dynamic_keys[] = {"anyone", "log_level"};

const struct ms_setting *options_dynamic_rows(void)
{
    static struct ms_setting few[MS_ARRAY_SIZE(dynamic_keys) + 1];
    size_t n = 0;
    for (size_t i = 0; i + 1 < ROWS; i++) {
        for (size_t k = 0; k < MS_ARRAY_SIZE(dynamic_keys); k++) {
            if (strcmp(options_rows[i].key, dynamic_keys[k]) == 0) {
                few[n++] = options_rows[i];
            }
        }
    }
    few[n] = options_rows[ROWS - 1];
    return few;
}

/* Rows of the private scheduler: paths below the run directory, loopback, and TLS or nothing. */
struct options_private_rows {
    struct ms_setting rows[ROWS];
    char paths[5][MS_PATH_MAX + 32];
};

static int fill(const char *run_dir, struct options_private_rows *private, struct ms_err *err)
{
    static const struct {
        const char *key, *path;
    } below[] = {{"socket", "scheduler.sock"},
                 {"database", "scheduler.db"},
                 {"tls_ca", "tls/ca.crt"},
                 {"tls_cert", "tls/scheduler.p12"},
                 {"tls_crl", "tls/crl.pem"}};
    if (strlen(run_dir) > MS_PATH_MAX - 32) {
        return ms_fail(err, MS_E_INVALID, "--run-dir is longer than %d bytes", MS_PATH_MAX - 32);
    }
    memcpy(private->rows, options_rows, sizeof(options_rows));
    for (size_t i = 0; i + 1 < ROWS; i++) {
        struct ms_setting *row = &private->rows[i];
        for (size_t k = 0; k < MS_ARRAY_SIZE(below); k++) {
            if (strcmp(row->key, below[k].key) == 0) {
                snprintf(private->paths[k], sizeof(private->paths[k]), "%s/%s", run_dir,
                         below[k].path);
                row->builtin = private->paths[k];
            }
        }
        if (strcmp(row->key, "log_level") != 0) {
            row->env = NULL; /* the environment sets up a standing cluster, not this one */
        }
        if (strcmp(row->key, "listen") == 0) {
            row->builtin = "127.0.0.1:0";
        }
        if (strcmp(row->key, "socket_group") == 0) {
            row->builtin = "none"; /* whoever runs it, nobody else */
        }
        if (strcmp(row->key, "tls") == 0) {
            row->builtin = "on";
        }
    }
    return 0;
}

int options_private_rows(const char *run_dir, struct options *options,
                         const struct ms_setting **ret, struct ms_err *err)
{
    struct options_private_rows *private = calloc(1, sizeof(*private));
    if (private == NULL) {
        return ms_fail(err, MS_E_NOMEM, "no memory for the settings");
    }
    options->private_rows = private;
    int rc = fill(run_dir, private, err);
    if (rc == 0) {
        *ret = private->rows;
    }
    return rc;
}
