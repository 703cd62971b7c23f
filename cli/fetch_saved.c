/* fetch_saved.c - msctl fetch --list, --checkpoint: what a job has saved */
#include "cli/fetch_run.h"
#include "cli/json.h"
#include "libworker/train/best_files.h"
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
    if (rc == MS_OK && cli_saved_lacks(&saved)) {
        rc = cli_saved_fail_away(&saved, err); /* what there is was said all the same */
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
    if (strcmp(which, "best") != 0 && cli_saved_choose_best(saved, which, &i)) {
        return MS_OK;
    }
    if (strcmp(which, "best") != 0) {
        return cli_saved_choose(saved, strcmp(which, "all") == 0 ? "latest" : which, &i, err);
    }
    return saved->best.step > 0 ? MS_OK
           : saved->away_code != 0
               ? cli_saved_fail_away(saved, err)
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

static int get(struct fetch_run *run, size_t node, const struct cli_saved *saved,
               struct fetch_saved wanted, int *ret_came)
{
    wanted.directory = saved->directory;
    wanted.prefix = saved->prefix;
    wanted.folder = saved->nodes[node].folder;
    const struct fetch_wish wish = {run->job, saved->nodes[node].rank, saved->nodes[node].what,
                                    &wanted};
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
    int rc = get(run, one->node, saved,
                 (struct fetch_saved){.what = MS_SAVED_DATA,
                                      .step = one->entry.step,
                                      .bytes = one->entry.bytes,
                                      .name = data},
                 &came);
    if (rc == MS_OK && came) {
        rc = get(run, one->node, saved,
                 (struct fetch_saved){.what = MS_SAVED_MANIFEST,
                                      .step = one->entry.step,
                                      .bytes = one->entry.manifest_bytes,
                                      .name = manifest},
                 &came);
        if (came) {
            check_whole(run, manifest);
        }
    }
    return rc;
}

static int get_best(struct fetch_run *run, const struct cli_saved *saved)
{
    int came = 0;
    return get(run, saved->best_node, saved,
               (struct fetch_saved){
                   .what = MS_SAVED_DATA, .bytes = saved->best.bytes, .name = TRAIN_BEST_FILE},
               &came);
}

/* One of several. */
static int get_one_best(struct fetch_run *run, const struct cli_saved *saved, size_t i)
{
    char name[BEST_NAME_MAX];
    int came = 0;
    return get(run, saved->best_node, saved,
               (struct fetch_saved){.what = MS_SAVED_BEST,
                                    .step = saved->bests[i].step,
                                    .bytes = saved->bests[i].bytes,
                                    .name = best_file_name(saved->bests[i].step, name)},
               &came);
}

static int get_all(struct fetch_run *run, const struct cli_saved *saved)
{
    int rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < saved->n; i++) {
        rc = get_checkpoint(run, saved, i);
    }
    rc = rc == MS_OK && saved->best.step > 0 ? get_best(run, saved) : rc;
    for (size_t i = 0; rc == MS_OK && i < saved->n_bests; i++) {
        rc = get_one_best(run, saved, i);
    }
    return rc;
}

/* Of what came: is it all, and are the best weights those of the whole training? Rank 0 keeps them.
 */
static void look_who_is_away(struct fetch_run *run, const struct cli_saved *saved, int is_all)
{
    struct ms_err why = {0, ""};
    const int may_be_older = saved->best.step > 0 && saved->nodes[saved->best_node].rank != 0;
    if (saved->away_code != 0 && (may_be_older || (is_all && cli_saved_lacks(saved)))) {
        (void)cli_saved_fail_away(saved, &why);
        snprintf(run->name, sizeof(run->name), "%s", is_all ? "all" : TRAIN_BEST_FILE);
        fetch_run_tell_bad(run, why.code, why.text, 1);
    }
}

int fetch_saved_all(struct fetch_run *run, const struct cli_saved *saved, const char *which)
{
    size_t chosen = 0;
    const int is_all = strcmp(which, "all") == 0;
    if (is_all || strcmp(which, "best") == 0) {
        const int got = is_all ? get_all(run, saved) : get_best(run, saved);
        look_who_is_away(run, saved, is_all);
        return got;
    }
    if (cli_saved_choose_best(saved, which, &chosen)) {
        return get_one_best(run, saved, chosen);
    }
    const int rc = cli_saved_choose(saved, which, &chosen, &run->err);
    return rc == MS_OK ? get_checkpoint(run, saved, chosen) : rc;
}
