/* cmd_certs_crl.c - msctl certs install crl.pem: the list of revoked ones, for all programs of this
 * host */
#include "cli/certs.h"
#include "cli/crl_targets.h"
#include "cli/json.h"

#include "config.h"
#include "proto/crl_files.h"
#include "proto/folder.h"

#include <string.h>

/* What became of all places of a host: none is a reason to leave out those behind it. */
struct outcome {
    size_t n_written;
    size_t n_failed;
    struct ms_err first; /* failure */
    int is_unheeded;     /* by a program that trusts the CA of the list, and is told of none */
    json_t *folders;     /* with the list, for --json */
    json_t *lists;       /* all, and what became of each */
};

static void note(struct outcome *outcome, const struct crl_target *target, const char *state,
                 const char *why)
{
    json_array_append_new(outcome->lists,
                          json_pack("{s:s,s:s,s:s,s:s*}", "path", target->list, "ca", target->ca,
                                    "state", state, "error", why));
}

/* Of a symbolic link, where it leads: there others have the list from. */
static void say_written(struct cli *cli, const struct crl_target *target)
{
    char place[MS_PATH_MAX + 1];
    int is_link = ms_crl_place(target->list, place, sizeof(place), NULL) == MS_OK &&
                  strcmp(place, target->list) != 0;
    fprintf(cli->out, "the list of revoked certificates is in %s%s%s\n", target->list,
            is_link ? ", which leads to " : "", is_link ? place : "");
}

static void note_written(struct cli *cli, struct outcome *outcome, const struct crl_target *target)
{
    const char *end = strrchr(target->list, '/');
    outcome->n_written++;
    note(outcome, target, "written", NULL);
    json_array_append_new(outcome->folders,
                          json_stringn(target->list, (size_t)(end - target->list)));
    if (!cli->json) {
        say_written(cli, target);
    }
}

static void install(struct cli *cli, struct outcome *outcome, const struct ms_whole *file,
                    int force, const struct crl_target *target)
{
    struct ms_err why = {.code = MS_OK};
    int rc = ms_crl_install(file, target->ca, target->list, force, &why);
    if (rc == MS_OK) {
        note_written(cli, outcome, target);
    } else if (rc == MS_E_REFUSED) {
        note(outcome, target, "of another CA", NULL);
        if (!cli->json) {
            fprintf(cli->out, "left alone: %s, for %s is another CA than the one of this list\n",
                    target->list, target->ca);
        }
    } else {
        note(outcome, target, "failed", why.text);
        cli_say(cli, "not installed as %s: %s", target->list, why.text);
        outcome->first = outcome->n_failed++ == 0 ? why : outcome->first;
    }
}

/* msschedd with a TLS JSON that says no crl_path heeds none, wherever one lies. */
static void judge_unnamed(struct cli *cli, struct outcome *outcome, const struct ms_whole *file,
                          const struct crl_target *unnamed)
{
    struct ms_err why = {.code = MS_OK};
    if (unnamed->list[0] == '\0') {
        return;
    }
    int is_of = ms_crl_is_of(file, unnamed->ca, &why);
    outcome->is_unheeded = is_of > 0;
    note(outcome, unnamed, "names no list", is_of < 0 ? why.text : NULL);
    if (is_of <= 0) {
        cli_say(cli, "msschedd heeds no list of revoked certificates: %s says no crl_path%s%s",
                unnamed->list, is_of < 0 ? "; " : "", is_of < 0 ? why.text : "");
    }
}

static int fail_unheeded(const struct crl_target *unnamed, struct ms_err *err)
{
    char folder[MS_PATH_MAX + 1];
    ms_folder_of(unnamed->ca, folder, sizeof(folder));
    return ms_fail(err, MS_E_CONFIG,
                   "msschedd goes on trusting who was revoked: %.100s says no crl_path; write "
                   "\"crl_path\": \"%.100s/crl.pem\" there, give this command again, and reload",
                   unnamed->list, folder);
}

static int judge(const struct outcome *outcome, const struct crl_targets *targets, const char *path,
                 struct ms_err *err)
{
    if (outcome->n_failed > 0) {
        return ms_fail(err, outcome->first.code,
                       "%zu of %zu places of this host did not get the list %s: see above%s",
                       outcome->n_failed, targets->n, path,
                       certs_needs_sudo(&outcome->first) ? "; sudo is missing" : "");
    }
    if (outcome->is_unheeded) {
        return fail_unheeded(&targets->unnamed, err);
    }
    return outcome->n_written > 0
               ? MS_OK
               : ms_fail(err, MS_E_REFUSED,
                         "the list %s was signed by another CA than those of this host: it is "
                         "installed nowhere",
                         path);
}

/* One place alone: what became of it is the error, or the word about it. */
static int install_one(struct cli *cli, struct outcome *outcome, const struct crl_target *target,
                       const struct ms_whole *file, int force, struct ms_err *err)
{
    int rc = ms_crl_install(file, target->ca, target->list, force, err);
    if (rc == MS_OK) {
        note_written(cli, outcome, target);
    }
    return rc;
}

static void say_all(struct cli *cli, const struct outcome *outcome)
{
    if (cli->json) {
        cli_json_print(cli->out, json_pack("{s:s,s:O,s:O}", "file", "crl.pem", "folders",
                                           outcome->folders, "lists", outcome->lists));
    } else if (outcome->n_written > 0 && !outcome->is_unheeded) { /* else the error says it */
        fprintf(cli->out,
                "next, so that the daemons of this host heed it: sudo " CERTS_RELOAD "\n");
    }
}

static int install_all(struct cli *cli, const struct crl_targets *targets,
                       const struct ms_whole *file, int force, struct ms_err *err)
{
    struct outcome outcome = {.folders = json_array(), .lists = json_array()};
    int rc = MS_OK;
    int is_alone = targets->n == 1 && targets->unnamed.list[0] == '\0';
    if (is_alone) {
        rc = install_one(cli, &outcome, targets->rows, file, force, err);
    }
    for (size_t i = 0; i < targets->n && !is_alone; i++) {
        install(cli, &outcome, file, force, &targets->rows[i]);
    }
    judge_unnamed(cli, &outcome, file, &targets->unnamed);
    if (rc == MS_OK) {
        say_all(cli, &outcome);
        rc = judge(&outcome, targets, file->path, err);
    }
    json_decref(outcome.folders);
    json_decref(outcome.lists);
    return rc;
}

int certs_install_below(struct cli *cli, const char *dir, const struct ms_whole *file, int force,
                        struct ms_err *err)
{
    struct crl_targets targets = {.n = 0};
    int rc = crl_targets_find(cli, dir, &targets, err);
    if (rc == MS_OK && targets.n == 0 && targets.unnamed.list[0] == '\0') {
        rc = ms_fail(err, MS_E_NOT_FOUND,
                     "no folder of certificates is here: %s/tls has no ca.crt; name another with "
                     "--to",
                     dir);
    }
    if (rc == MS_OK) {
        rc = install_all(cli, &targets, file, force, err);
    }
    crl_targets_fini(&targets);
    return rc;
}

int certs_install_list(struct cli *cli, const struct cli_args *args, const struct ms_whole *file,
                       struct ms_err *err)
{
    const char *to = cli_value(args, "to");
    int force = cli_has(args, "force");
    if (to == NULL) {
        return certs_install_below(cli, MSCHED_SYSCONFDIR, file, force, err);
    }
    struct crl_targets targets = {.n = 0};
    int rc = crl_targets_folder(to, &targets, err);
    if (rc == MS_OK) {
        rc = install_all(cli, &targets, file, force, err);
    }
    crl_targets_fini(&targets);
    return rc;
}
