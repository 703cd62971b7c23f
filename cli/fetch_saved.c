/* fetch_saved.c - msctl fetch --list, --checkpoint: what a job has saved */
#include "cli/fetch_run.h"
#include "cli/json.h"
#include "libworker/train/checkpoint_folder.h"

#include <string.h>

int fetch_saved_list(struct fetch_run *run, struct ms_err *err)
{
    struct cli_saved saved;
    int rc = cli_saved_find(run->cli, fetch_run_info(run), &saved, err);
    if (rc != MS_OK) {
        return rc;
    }
    if (run->cli->json) {
        cli_json_print(run->cli->out, cli_saved_json(&saved));
    } else {
        rc = cli_saved_print(run->cli, &saved, err);
    }
    cli_saved_free(&saved);
    return rc;
}

int fetch_saved_check(const struct cli_saved *saved, const char *which, struct ms_err *err)
{
    size_t i = 0;
    if (which == NULL || (strcmp(which, "all") == 0 && saved->n + saved->best.step > 0)) {
        return MS_OK;
    }
    if (strcmp(which, "best") != 0) {
        return cli_saved_choose(saved, strcmp(which, "all") == 0 ? "latest" : which, &i, err);
    }
    return saved->best.step > 0
               ? MS_OK
               : ms_fail(err, MS_E_NOT_FOUND,
                         "job %llu has no best weights: a job with the section best keeps them "
                         "from its first evaluation on",
                         (unsigned long long)saved->job);
}

/* The bytes are those of the node's files; are they a checkpoint? */
static void check_whole(struct fetch_run *run, const char *manifest)
{
    char path[CHECKPOINT_PATH_MAX];
    struct checkpoint_manifest m;
    struct ms_err why = {0, ""};
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", run->dir_fd, manifest);
    int rc = checkpoint_read(path, CHECKPOINT_OWN, &m, &why);
    if (rc == MS_OK) {
        rc = checkpoint_verify(path, CHECKPOINT_OWN, &m, &why);
        checkpoint_manifest_fini(&m);
    }
    if (rc != MS_OK) {
        char text[MS_ERR_TEXT_MAX];
        snprintf(text, sizeof(text),
                 "%.120s/%s came as it is on the node, and is not whole: %.200s", run->dir,
                 manifest, why.text);
        fetch_run_tell_bad(run, MS_E_FAILED, text, 1);
    }
}

static int get(struct fetch_run *run, const struct cli_saved *saved, size_t node, unsigned what,
               const struct saved_entry *entry, const char *name, int *ret_came)
{
    const int is_manifest = what == MS_SAVED_MANIFEST;
    const struct fetch_saved wanted = {.what = what,
                                       .directory = saved->directory,
                                       .prefix = saved->prefix,
                                       .step = entry != NULL ? entry->step : 0,
                                       .bytes = entry == NULL ? saved->best.bytes
                                                : is_manifest ? entry->manifest_bytes
                                                              : entry->bytes,
                                       .name = name,
                                       .folder = saved->nodes[node].folder};
    const struct fetch_wish wish = {run->job, saved->nodes[node].rank, MS_FETCH_LOG, &wanted};
    struct fetch_result got;
    return fetch_run_get(run, &wish, 1, &got, ret_came);
}

/* The manifest comes last: until then nothing here looks like a checkpoint. */
static int get_checkpoint(struct fetch_run *run, const struct cli_saved *saved, size_t i)
{
    char stem[CLI_SAVED_NAME_MAX];
    char data[DOWNLOAD_NAME_MAX];
    char manifest[DOWNLOAD_NAME_MAX];
    const struct cli_saved_one *one = &saved->ones[i];
    int came = 0;
    cli_saved_name(saved, i, stem);
    snprintf(data, sizeof(data), "%.96s.safetensors", stem);
    snprintf(manifest, sizeof(manifest), "%.96s.json", stem);
    int rc = get(run, saved, one->node, MS_SAVED_DATA, &one->entry, data, &came);
    if (rc == MS_OK && came) {
        rc = get(run, saved, one->node, MS_SAVED_MANIFEST, &one->entry, manifest, &came);
        if (came) {
            check_whole(run, manifest);
        }
    }
    return rc;
}

int fetch_saved_all(struct fetch_run *run, const struct cli_saved *saved, const char *which)
{
    const int wants_all = strcmp(which, "all") == 0;
    const int wants_best = strcmp(which, "best") == 0 || (wants_all && saved->best.step > 0);
    size_t chosen = 0;
    int rc = MS_OK;
    int came = 0;
    if (!wants_all && !wants_best) {
        rc = cli_saved_choose(saved, which, &chosen, &run->err);
        return rc == MS_OK ? get_checkpoint(run, saved, chosen) : rc;
    }
    for (size_t i = 0; wants_all && rc == MS_OK && i < saved->n; i++) {
        rc = get_checkpoint(run, saved, i);
    }
    return rc == MS_OK && wants_best
               ? get(run, saved, saved->best_node, MS_SAVED_DATA, NULL, "best.safetensors", &came)
               : rc;
}
