/* tls_files.h - where the certificates lie: the seed's TLS JSON (MS_TLS_CONFIG), or a folder
 *
 *     {"server_cert_path": "server.p12", "client_cert_path": "client.p12",
 *      "ca_cert_path": "ca.crt", "crl_path": "", "cipher_list": "...",
 *      "cert_expire_warning_time_in_day": 90, "cert_check_interval_in_hour": 24,
 *      "password_file": "tls.password"}
 *
 * password_file is ours: MindSpore takes the password as a literal of the user's script. */
#ifndef MS_TLS_FILES_H
#define MS_TLS_FILES_H

#include "proto/err.h"
#include "proto/limits.h"
#include "proto/tls.h"

#define MS_TLS_CIPHERS_MAX  2048 /* the seed's list has 640 bytes */
#define MS_TLS_PASSWORD_MAX 256

struct ms_tls_files {
    char p12_path[MS_PATH_MAX + 1];
    char ca_path[MS_PATH_MAX + 1];
    char crl_path[MS_PATH_MAX + 1]; /* "": no revocation check */
    int crl_may_miss;               /* nobody wrote this path: a place to look at */
    int crl_is_unnamed;             /* a TLS JSON that says no crl_path: none, by nobody's word */
    char cipher_list[MS_TLS_CIPHERS_MAX + 1];
    char password[MS_TLS_PASSWORD_MAX + 1];
    int expire_warning_days;  /* 0: default */
    int check_interval_hours; /* between two looks at how long they last; 0: default, a day */
};

/* Reads the JSON. server: take server_cert_path, else client_cert_path. Relative paths are relative
 * to the JSON's folder. Unknown keys are refused with the nearest known one. MS_E_CONFIG. Destroy
 * with ms_tls_files_wipe, which clears the password. */
int ms_tls_files_parse(const char *json_path, int server, struct ms_tls_files *ret,
                       struct ms_err *err);

/* Reads the first line of a file as the password; refuses one that others can read. NULL or "":
 * the systemd credential `p12-password` where there is one, else the empty password. */
int ms_tls_files_password(const char *path, struct ms_tls_files *files, struct ms_err *err);

/* The same of what is open already; path names it in errors. For a person's program, which may wait
 * for a pipe: msctl certs issue user eve --password-file <(pass show eve). */
int ms_tls_files_password_of(int fd, const char *path, struct ms_tls_files *files,
                             struct ms_err *err);

/* Borrows the strings of files. */
void ms_tls_files_config(const struct ms_tls_files *files, struct ms_tls_config *ret);
void ms_tls_files_wipe(struct ms_tls_files *files);

#endif
