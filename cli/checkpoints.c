/* checkpoints.c - the checkpoints that a run leaves, and how one goes on from them */
#include "cli/checkpoints.h"

#include "cli/format.h"
#include "cli/rank_notes.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

/* Below the run directory, or wherever the job says. */
static void name_folder(const struct cli_run_facts *facts, struct cli_checkpoints *ret)
{
    const char *directory = facts->job->checkpoint_directory;
    while (strncmp(directory, "./", 2) == 0) {
        directory++;
        directory += strspn(directory, "/");
    }
    if (directory[0] == '/') {
        snprintf(ret->folder, sizeof(ret->folder), "%s", directory);
        ret->place = ret->folder;
    } else {
        snprintf(ret->folder, sizeof(ret->folder), "%s/%s", facts->run_dir, directory);
        ret->place = strchr(directory, '/') == NULL ? facts->run_dir : ret->folder;
    }
}

/* Of the job with which the training began that was resumed; "": it was not. */
static void find_first_tag(const struct cli_run_facts *facts, char ret[MS_JOB_TAG_LEN + 1])
{
    struct checkpoint_entries entries;
    struct checkpoint_manifest m;
    ret[0] = '\0';
    if (facts->job->resume[0] == '\0' ||
        checkpoint_search(facts->job->resume, &entries, NULL) < 0) {
        return;
    }
    if (entries.n > 0 &&
        checkpoint_read(entries.entries[0].path, CHECKPOINT_NAMED, &m, NULL) == 0) {
        ms_text_copy(ret, MS_JOB_TAG_LEN + 1, checkpoint_manifest_first_tag(&m));
        checkpoint_manifest_fini(&m);
    }
    checkpoint_entries_fini(&entries);
}

enum whose { OTHERS, OF_TRAINING, OF_JOB };

static enum whose whose(const struct cli_run_facts *facts, const char *first_tag, const char *path)
{
    struct checkpoint_manifest m;
    if (checkpoint_read(path, CHECKPOINT_OWN, &m, NULL) < 0) {
        return OTHERS;
    }
    const char *tag = facts->tag != NULL ? facts->tag : "";
    const int is_job = tag[0] != '\0' && strcmp(m.tag, tag) == 0;
    const int is_training =
        first_tag[0] != '\0' && strcmp(checkpoint_manifest_first_tag(&m), first_tag) == 0;
    checkpoint_manifest_fini(&m);
    return is_job ? OF_JOB : is_training ? OF_TRAINING : OTHERS;
}

void cli_checkpoints_look(const struct cli_run_facts *facts, struct cli_checkpoints *ret)
{
    struct checkpoint_entries entries;
    char first_tag[MS_JOB_TAG_LEN + 1];
    memset(ret, 0, sizeof(*ret));
    if (facts == NULL || facts->job == NULL || !facts->job->has_checkpoint) {
        return;
    }
    name_folder(facts, ret);
    if (checkpoint_list(ret->folder, facts->job->checkpoint_prefix, &entries, NULL) < 0) {
        return;
    }
    find_first_tag(facts, first_tag);
    for (size_t i = 0; i < entries.n && ret->own_step == 0; i++) {
        const struct checkpoint_entry *entry = &entries.entries[i];
        const enum whose is = whose(facts, first_tag, entry->path);
        if (is != OTHERS && ret->step == 0) {
            ret->step = entry->step;
            memcpy(ret->newest, entry->path, sizeof(ret->newest));
        }
        ret->own_step = is == OF_JOB ? entry->step : 0;
    }
    checkpoint_entries_fini(&entries);
}

/* libworker/train/checkpoint_writer.c says it. */
static void print_trouble(FILE *out, const struct cli_run_facts *facts, int is_first)
{
    char trouble[MS_ERR_TEXT_MAX];
    if (facts == NULL || facts->job == NULL || !facts->job->has_checkpoint ||
        cli_rank_trouble(facts->run_dir, "no checkpoint of step ", "checkpoints are written again",
                         trouble, sizeof(trouble))[0] == '\0') {
        return;
    }
    fprintf(out, "  %-11s %s (rank 0's log)\n", is_first ? "checkpoints" : "", trouble);
}

void cli_checkpoints_print(FILE *out, const struct cli_run_facts *facts, int can_go_on)
{
    struct cli_checkpoints found;
    char step[CLI_FORMAT_MAX];
    cli_checkpoints_look(facts, &found);
    if (found.step == 0) {
        print_trouble(out, facts, 1);
        return;
    }
    fprintf(out, "  checkpoints %s: the newest is of step %s\n", found.folder,
            cli_format_count(step, found.step));
    print_trouble(out, facts, 0);
    if (can_go_on) {
        fprintf(out, "              go on with: msctl run --resume %s %s\n", found.place,
                facts->again);
    }
}

void cli_checkpoints_json(json_t *object, const struct cli_run_facts *facts)
{
    struct cli_checkpoints found;
    cli_checkpoints_look(facts, &found);
    json_object_set_new(object, "checkpoint",
                        found.step > 0 ? json_string(found.newest) : json_null());
    json_object_set_new(object, "checkpoint_step",
                        found.step > 0 ? json_integer((json_int_t)found.step) : json_null());
}
