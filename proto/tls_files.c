/* tls_files.c - where the certificates lie: the seed's TLS JSON (MS_TLS_CONFIG), or a folder */
#include "proto/tls_files.h"

#include "proto/nearest.h"
#include "proto/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JSON_MAX = 64 << 10 }; /* the sample has 1 KiB */

enum json_kind { KEY_PATH, KEY_TEXT, KEY_NUMBER, KEY_UNUSED };

/* who: 1 server, 2 client, 3 both. least and most: of a number. */
static const struct {
    const char *name;
    enum json_kind kind;
    unsigned who;
    int required;
    size_t offset, size;
    int least, most;
} keys[] = {
    {"server_cert_path", KEY_PATH, 1, 1, offsetof(struct ms_tls_files, p12_path), MS_PATH_MAX + 1,
     0, 0},
    {"client_cert_path", KEY_PATH, 2, 1, offsetof(struct ms_tls_files, p12_path), MS_PATH_MAX + 1,
     0, 0},
    {"ca_cert_path", KEY_PATH, 3, 1, offsetof(struct ms_tls_files, ca_path), MS_PATH_MAX + 1, 0, 0},
    {"crl_path", KEY_PATH, 3, 0, offsetof(struct ms_tls_files, crl_path), MS_PATH_MAX + 1, 0, 0},
    {"cipher_list", KEY_TEXT, 3, 0, offsetof(struct ms_tls_files, cipher_list),
     MS_TLS_CIPHERS_MAX + 1, 0, 0},
    {"cert_expire_warning_time_in_day", KEY_NUMBER, 3, 0,
     offsetof(struct ms_tls_files, expire_warning_days), 0, 7, 180},
    /* a month at the most: whoever looks more rarely misses the end of a certificate */
    {"cert_check_interval_in_hour", KEY_NUMBER, 3, 0,
     offsetof(struct ms_tls_files, check_interval_hours), 0, 1, 720},
    {"password_file", KEY_UNUSED, 3, 0, 0, 0, 0, 0},  /* read on its own, see below */
    {"connection_num", KEY_UNUSED, 3, 0, 0, 0, 0, 0}, /* MS_CONNS_MAX instead */
};

static int check_keys(const json_t *root, const char *path, struct ms_err *err)
{
    const char *names[MS_ARRAY_SIZE(keys)];
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys); i++) {
        names[i] = keys[i].name;
    }
    for (void *it = json_object_iter((json_t *)(uintptr_t)root); it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)root, it)) {
        const char *name = json_object_iter_key(it);
        int known = 0;
        for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
            known |= strcmp(name, names[i]) == 0;
        }
        if (!known) {
            const char *nearest = ms_nearest(name, names, MS_ARRAY_SIZE(names));
            return ms_fail(err, MS_E_CONFIG, "%s: unknown key \"%.64s\"%s%s%s", path, name,
                           nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"?" : "");
        }
    }
    return 0;
}

/* Puts the JSON's folder before a relative path. */
static int put_path(const char *json_path, const char *value, char *buf, size_t size,
                    struct ms_err *err)
{
    const char *slash = strrchr(json_path, '/');
    int folder =
        value[0] != '/' && value[0] != '\0' && slash != NULL ? (int)(slash - json_path) + 1 : 0;
    int n = snprintf(buf, size, "%.*s%s", folder, json_path, value);
    if (n < 0 || (size_t)n >= size) {
        return ms_fail(err, MS_E_CONFIG, "%s: a path in it is longer than %zu bytes", json_path,
                       size - 1);
    }
    return 0;
}

static int put_key(const json_t *root, size_t i, const char *path, struct ms_tls_files *files,
                   struct ms_err *err)
{
    const char *name = keys[i].name;
    const json_t *value = json_object_get(root, name);
    char *target = (char *)files + keys[i].offset;
    if (value == NULL && !keys[i].required) {
        return 0;
    }
    if (keys[i].kind == KEY_NUMBER) {
        json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
        if (number < keys[i].least || number > keys[i].most) {
            return ms_fail(err, MS_E_CONFIG, "%s: %s must be a whole number, %d to %d", path, name,
                           keys[i].least, keys[i].most);
        }
        memcpy(target, &(int){(int)number}, sizeof(int));
        return 0;
    }
    const char *text = json_string_value(value);
    if (text == NULL || (keys[i].required && text[0] == '\0')) {
        return ms_fail(err, MS_E_CONFIG, "%s: %s must be %s", path, name,
                       keys[i].kind == KEY_PATH ? "the path of a file" : "a text");
    }
    if (keys[i].kind == KEY_PATH) {
        return put_path(path, text, target, keys[i].size, err);
    }
    if (strlen(text) >= keys[i].size) {
        return ms_fail(err, MS_E_CONFIG, "%s: %s is longer than %zu bytes", path, name,
                       keys[i].size - 1);
    }
    memcpy(target, text, strlen(text) + 1);
    return 0;
}

static int put_password(const json_t *root, const char *path, struct ms_tls_files *files,
                        struct ms_err *err)
{
    const json_t *value = json_object_get(root, "password_file");
    if (value != NULL && !json_is_string(value)) {
        return ms_fail(err, MS_E_CONFIG, "%s: password_file must be the path of a file", path);
    }
    char password_path[MS_PATH_MAX + 1] = "";
    if (value != NULL) {
        int rc =
            put_path(path, json_string_value(value), password_path, sizeof(password_path), err);
        if (rc < 0) {
            return rc;
        }
    }
    return ms_tls_files_password(password_path, files, err);
}

static int load_json(const char *path, json_t **ret, struct ms_err *err)
{
    FILE *file = NULL;
    struct stat st;
    if (ms_regular_open(path, "the TLS configuration ", &file, err) < 0) {
        return ms_err_recode(err, MS_E_CONFIG);
    }
    if (fstat(fileno(file), &st) != 0 || st.st_size > JSON_MAX) {
        fclose(file);
        return ms_fail(err, MS_E_CONFIG, "TLS configuration %s is no JSON file (over 64 KiB)",
                       path);
    }
    json_error_t why;
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &why);
    fclose(file);
    if (root == NULL) {
        return ms_fail(err, MS_E_CONFIG, "TLS configuration %s, line %d: %.100s", path, why.line,
                       why.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return ms_fail(err, MS_E_CONFIG, "TLS configuration %s: it must be an object {...}", path);
    }
    *ret = root;
    return 0;
}

int ms_tls_files_parse(const char *json_path, int server, struct ms_tls_files *ret,
                       struct ms_err *err)
{
    json_t *root = NULL;
    int rc = load_json(json_path, &root, err);
    if (rc < 0) {
        return rc;
    }
    struct ms_tls_files files = {.expire_warning_days = 0};
    rc = check_keys(root, json_path, err);
    for (size_t i = 0; i < MS_ARRAY_SIZE(keys) && rc == 0; i++) {
        if (keys[i].kind != KEY_UNUSED && (keys[i].who & (server ? 1U : 2U)) != 0) {
            rc = put_key(root, i, json_path, &files, err);
        }
    }
    if (rc == 0) {
        rc = put_password(root, json_path, &files, err);
    }
    if (rc == 0) {
        *ret = files;
        ret->crl_is_unnamed = files.crl_path[0] == '\0';
    }
    ms_tls_files_wipe(&files);
    json_decref(root);
    return rc;
}

static int read_password(int fd, const char *path, char *buf, size_t size, struct ms_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return ms_fail_errno(err, MS_E_CONFIG, "password file %s", path);
    }
    if ((st.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
        return ms_fail(err, MS_E_CONFIG,
                       "password file %s can be read by others (mode %04o); mend it with: chmod "
                       "0600 %s",
                       path, (unsigned)st.st_mode & 07777U, path);
    }
    ssize_t n = read(fd, buf, size);
    if (n < 0) {
        return ms_fail_errno(err, MS_E_CONFIG, "password file %s", path);
    }
    if ((size_t)n == size) {
        return ms_fail(err, MS_E_CONFIG, "password file %s is longer than %d bytes", path,
                       MS_TLS_PASSWORD_MAX);
    }
    buf[n] = '\0';
    buf[strcspn(buf, "\r\n")] = '\0';
    return 0;
}

int ms_tls_files_password_of(int fd, const char *path, struct ms_tls_files *files,
                             struct ms_err *err)
{
    char buf[MS_TLS_PASSWORD_MAX + 1];
    int rc = read_password(fd, path, buf, sizeof(buf), err);
    if (rc == 0) {
        memcpy(files->password, buf, sizeof(buf));
    }
    explicit_bzero(buf, sizeof(buf));
    return rc;
}

int ms_tls_files_password(const char *path, struct ms_tls_files *files, struct ms_err *err)
{
    char credential[MS_PATH_MAX + 1];
    if (path == NULL || path[0] == '\0') {
        const char *folder = getenv("CREDENTIALS_DIRECTORY");
        files->password[0] = '\0';
        if (folder == NULL) {
            return 0;
        }
        snprintf(credential, sizeof(credential), "%s/p12-password", folder);
        if (access(credential, F_OK) != 0) {
            return 0;
        }
        path = credential;
    }
    FILE *file = NULL;
    if (ms_regular_open(path, "the password file ", &file, err) < 0) {
        return ms_err_recode(err, MS_E_CONFIG);
    }
    int rc = ms_tls_files_password_of(fileno(file), path, files, err);
    fclose(file);
    return rc;
}

void ms_tls_files_config(const struct ms_tls_files *files, struct ms_tls_config *ret)
{
    *ret = (struct ms_tls_config){
        .p12_path = files->p12_path,
        .p12_password = files->password,
        .ca_path = files->ca_path,
        .crl_path = files->crl_path[0] != '\0' ? files->crl_path : NULL,
        .crl_may_miss = files->crl_may_miss,
        .cipher_list = files->cipher_list[0] != '\0' ? files->cipher_list : NULL,
        .expire_warning_days = files->expire_warning_days,
    };
}

void ms_tls_files_wipe(struct ms_tls_files *files)
{
    explicit_bzero(files, sizeof(*files));
}
