/* cmd_certs_list.c - msctl certs list, show, revoke, crl: what was issued, and what is not valid
 * any more */
#include "cli/certs.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"

#include "proto/authority.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct cli_column columns[] = {
    {"NAME", CLI_LEFT, 2, 12}, {"ROLE", CLI_LEFT, 0, 0},   {"STATE", CLI_LEFT, 0, 0},
    {"UNTIL", CLI_LEFT, 0, 0}, {"SERIAL", CLI_LEFT, 3, 0}, {"HOSTS", CLI_LEFT, 1, 8},
};

const char *certs_state(const struct ms_ca_entry *entry, time_t now)
{
    if (entry->revoked != 0) {
        return "revoked";
    }
    return entry->to != 0 && entry->to < now ? "expired" : "valid";
}

static json_t *seconds_or_null(time_t at)
{
    return at != 0 ? json_integer((json_int_t)at) : json_null();
}

json_t *certs_json(const struct ms_ca_entry *entry)
{
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o}", "serial", entry->serial, "role", entry->role, "name",
        entry->name, "hosts", entry->hosts != NULL ? entry->hosts : "", "state",
        certs_state(entry, time(NULL)), "not_before", seconds_or_null(entry->from), "not_after",
        seconds_or_null(entry->to), "revoked", seconds_or_null(entry->revoked));
}

static int by_name(const void *a, const void *b)
{
    const struct ms_ca_entry *x = *(const struct ms_ca_entry *const *)a;
    const struct ms_ca_entry *y = *(const struct ms_ca_entry *const *)b;
    int order = strverscmp(x->name, y->name);
    order = order != 0 ? order : strcmp(x->role, y->role);
    return order != 0 ? order : (x > y) - (x < y); /* the order of issuing */
}

static int add_row(struct cli_table *table, const struct ms_ca_entry *entry, struct ms_err *err)
{
    char until[CLI_FORMAT_MAX];
    cli_format_time(until, (int64_t)entry->to * 1000);
    until[strcspn(until, " ")] = '\0'; /* the day is enough */
    const char *const cells[MS_ARRAY_SIZE(columns)] = {
        entry->name[0] != '\0' ? entry->name : "-",
        entry->role[0] != '\0' ? entry->role : "-",
        certs_state(entry, time(NULL)),
        until,
        entry->serial,
        entry->hosts != NULL ? entry->hosts : "",
    };
    return cli_table_add(table, cells, err);
}

/* What an authority issued before it kept an index must not look as if it were not there. */
static void say_since(struct cli *cli, time_t since)
{
    char day[CLI_FORMAT_MAX];
    if (since != 0 && !cli->json) {
        fprintf(cli->out,
                "what was issued before %s is not in the index: revoke that by its serial number "
                "or file\n",
                cli_format_time(day, (int64_t)since * 1000));
    }
}

static int print_list(struct cli *cli, const struct ms_ca_entry *const *rows, size_t n,
                      struct ms_err *err)
{
    if (cli->json) {
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++) {
            json_array_append_new(list, certs_json(rows[i]));
        }
        cli_json_print(cli->out, list);
        return MS_OK;
    }
    struct cli_table *table = cli_table_create(columns, MS_ARRAY_SIZE(columns));
    int rc = table != NULL ? MS_OK : ms_fail(err, MS_E_NOMEM, "no memory for the list");
    for (size_t i = 0; rc == MS_OK && i < n; i++) {
        rc = add_row(table, rows[i], err);
    }
    if (rc == MS_OK && n > 0) {
        cli_table_print(table, cli->out, cli->width, cli->colour);
    } else if (rc == MS_OK) {
        fprintf(cli->out, "nothing was issued yet: msctl certs issue ROLE NAME\n");
    }
    cli_table_destroy(table);
    return rc;
}

int certs_list(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_authority *authority = NULL;
    int rc = cli_need_words(args, 1, 2, "", err);
    if (rc == MS_OK) {
        rc = ms_authority_open(certs_dir(args), &authority, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const struct ms_ca_index *index = ms_authority_index(authority);
    const struct ms_ca_entry **rows =
        (const struct ms_ca_entry **)calloc(index->n + 1, sizeof(*rows));
    size_t n = 0;
    for (size_t i = 0; rows != NULL && i < index->n; i++) {
        if (args->n_words == 1 || ms_ca_entry_is(&index->entries[i], args->words[1])) {
            rows[n++] = &index->entries[i];
        }
    }
    if (rows == NULL) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for the list");
    } else if (n == 0 && args->n_words == 2) {
        rc = ms_fail(err, MS_E_NOT_FOUND,
                     "nothing was issued to '%.80s'; without a name, msctl "
                     "certs list shows all",
                     args->words[1]);
    } else {
        qsort(rows, n, sizeof(*rows), by_name);
        rc = print_list(cli, rows, n, err);
        if (rc == MS_OK) {
            say_since(cli, index->since);
        }
    }
    free(rows);
    ms_authority_close(authority);
    return rc;
}

int certs_show(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    struct ms_cert_info info;
    struct ms_tls_files files;
    char from[CLI_FORMAT_MAX];
    char to[CLI_FORMAT_MAX];
    int rc = cli_need_words(args, 2, 2, "FILE", err);
    if (rc == MS_OK) {
        rc = certs_password(args, &files, err);
    }
    if (rc == MS_OK) {
        rc = ms_cert_inspect(args->words[1], files.password, &info, err);
        ms_tls_files_wipe(&files);
    }
    if (rc != MS_OK) {
        return rc;
    }
    if (cli->json) {
        cli_json_print(cli->out,
                       json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:I}", "subject", info.subject, "uri",
                                 info.uri, "issuer", info.issuer, "serial", info.serial, "hosts",
                                 info.hosts, "not_before", (json_int_t)info.not_before, "not_after",
                                 (json_int_t)info.not_after));
        return MS_OK;
    }
    double days = difftime(info.not_after, time(NULL)) / 86400;
    double whole = (double)(long long)((days < 0 ? -days : days) + 0.5);
    fprintf(cli->out, "subject     %s\nidentity    %s\nissuer      %s\nserial      %s\n",
            info.subject, info.uri[0] != '\0' ? info.uri : "-", info.issuer, info.serial);
    fprintf(cli->out, "hosts       %s\nvalid       %s to %s (%s%.0f day%s)\n",
            info.hosts[0] != '\0' ? info.hosts : "-",
            cli_format_time(from, (int64_t)info.not_before * 1000),
            cli_format_time(to, (int64_t)info.not_after * 1000), days < 0 ? "over since " : "",
            whole, whole == 1 ? "" : "s");
    return MS_OK;
}

static void say_revoked(struct cli *cli, const struct cli_args *args, const char *who, size_t n,
                        int64_t days)
{
    const char *dir = certs_dir(args);
    const char *out = cli_value(args, "out");
    char path[MS_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/crl.pem", dir);
    if (out != NULL) {
        snprintf(path, sizeof(path), "%s%s%s", out[0] == '/' ? "" : dir, out[0] == '/' ? "" : "/",
                 out);
    }
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:I,s:I}", "crl", path, "revoked", (json_int_t)n,
                                           "days", (json_int_t)days));
        return;
    }
    if (who != NULL && n > 0) {
        fprintf(cli->out, "%s: %zu certificate%s revoked\n", who, n, n == 1 ? "" : "s");
    } else if (who != NULL) {
        fprintf(cli->out, "%s: was revoked already\n", who);
    }
    fprintf(cli->out,
            "the list %s is valid for %lld day%s; msctl certs crl makes it anew\n"
            "next, here and, with a copy of it, on every node: sudo msctl certs install %s && "
            "sudo " CERTS_RELOAD "\n",
            path, (long long)days, days == 1 ? "" : "s", path);
}

static int make_list(struct cli *cli, const struct cli_args *args, const char *who,
                     struct ms_err *err)
{
    struct ms_tls_files files;
    struct ms_authority *authority = NULL;
    int64_t days = 0;
    size_t n = 0;
    int rc = cli_number(args, "days", 1, MS_CRL_DAYS_MAX, 30, &days, err);
    if (rc == MS_OK) {
        rc = certs_password(args, &files, err);
    }
    if (rc != MS_OK) {
        return rc;
    }
    const struct ms_authority_who whom = {who, files.password};
    rc = ms_authority_open(certs_dir(args), &authority, err);
    if (rc == MS_OK) {
        rc = ms_authority_revoke(authority, who != NULL ? &whom : NULL, (int)days,
                                 cli_value(args, "out"), &n, err);
    }
    if (rc == MS_OK) {
        say_revoked(cli, args, who, n, days);
    }
    if (rc == MS_OK && who != NULL) {
        say_since(cli, ms_authority_index(authority)->since);
    }
    ms_authority_close(authority);
    ms_tls_files_wipe(&files);
    return rc;
}

int certs_revoke(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    int rc = cli_need_words(args, 2, 2, "NAME, SERIAL or FILE", err);
    return rc == MS_OK ? make_list(cli, args, args->words[1], err) : rc;
}

int certs_crl(struct cli *cli, const struct cli_args *args, struct ms_err *err)
{
    int rc = cli_need_words(args, 1, 1, "", err);
    return rc == MS_OK ? make_list(cli, args, NULL, err) : rc;
}
