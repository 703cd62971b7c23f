/* certs.h - inside of `msctl certs`: what its files share */
#ifndef CLI_CERTS_H
#define CLI_CERTS_H

#include "cli/cli.h"
#include "proto/ca_index.h"
#include "proto/tls_files.h"
#include "proto/whole.h"

#include <jansson.h>
#include <sys/types.h>
#include <time.h>

enum { CERTS_DAYS_MAX = 36500 };

/* Ends well on a head, on a node and on what is both: it leaves alone what does not run. */
#define CERTS_RELOAD "systemctl try-reload-or-restart 'msschedd*' 'msworker@*'"

/* The authority's folder: --dir or the system's. */
const char *certs_dir(const struct cli_args *args);
/* Password of --password-file into files, "" without it; to be wiped with ms_tls_files_wipe. */
int certs_password(const struct cli_args *args, struct ms_tls_files *files, struct ms_err *err);
/* mkdir -p of all but the last part of path, which gets `last` where it is made. */
int certs_make_folder(const char *path, mode_t parents, mode_t last, struct ms_err *err);
/* "valid", "expired", "revoked". */
const char *certs_state(const struct ms_ca_entry *entry, time_t now);
/* 1: err is of what modes keep from us, and would not from root. */
int certs_needs_sudo(const struct ms_err *err);
/* A row of the index as a JSON object; returns owned. */
json_t *certs_json(const struct ms_ca_entry *entry);

/* Puts a list of revoked ones wherever the programs look for one whose settings are below dir
 * (/etc/msched), where its CA is theirs, and says what became of each. An error where one of them
 * could not be written, or none was. */
int certs_install_below(struct cli *cli, const char *dir, const struct ms_whole *file, int force,
                        struct ms_err *err);
/* The same as the command says: below its --to, or the system's. */
int certs_install_list(struct cli *cli, const struct cli_args *args, const struct ms_whole *file,
                       struct ms_err *err);

cli_command_fn certs_list, certs_show, certs_install, certs_revoke, certs_crl;

#endif
