/* checkpoints.c - the checkpoints that a run leaves, and how one goes on from them */
#include "cli/checkpoints.h"

#include "cli/format.h"
#include "cli/rank_notes.h"
#include "cli/self.h"
#include "cli/shell_word.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

enum { DAMAGED_MAX = 8 }; /* their data are read: older ones are not looked at any more */

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

/* How it is called decides nothing: what is damaged, or another training's, may be called alike. */
static enum whose whose(const struct cli_run_facts *facts, const char *first_tag,
                        const struct checkpoint_manifest *m)
{
    const char *tag = facts->tag != NULL ? facts->tag : "";
    const int is_job = tag[0] != '\0' && strcmp(m->tag, tag) == 0;
    const int is_training =
        first_tag[0] != '\0' && strcmp(checkpoint_manifest_first_tag(m), first_tag) == 0;
    return is_job ? OF_JOB : is_training ? OF_TRAINING : OTHERS;
}

static int is_found(const struct cli_checkpoints *found)
{
    return found->step > 0 || found->n_damaged == DAMAGED_MAX;
}

static void look_at(const struct cli_run_facts *facts, const char *first_tag,
                    const struct checkpoint_entry *entry, struct cli_checkpoints *ret)
{
    struct checkpoint_manifest m;
    if (checkpoint_read(entry->path, CHECKPOINT_OWN, &m, NULL) < 0) {
        return;
    }
    const enum whose is = whose(facts, first_tag, &m);
    if (is == OF_JOB && ret->own_step == 0) {
        ret->own_step = entry->step;
    }
    if (is != OTHERS && !is_found(ret)) {
        const int rc = checkpoint_verify(entry->path, CHECKPOINT_OWN, &m, NULL);
        if (rc == MS_OK || rc == MS_E_NOMEM) { /* of which nothing follows: who goes on reads it */
            ret->step = entry->step;
            memcpy(ret->newest, entry->path, sizeof(ret->newest));
        } else if (ret->n_damaged++ == 0) {
            ret->damaged_step = entry->step;
        }
    }
    checkpoint_manifest_fini(&m);
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
    for (size_t i = 0; i < entries.n && !(is_found(ret) && ret->own_step > 0); i++) {
        look_at(facts, first_tag, &entries.entries[i], ret);
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

/* A path as YAML has it, for --set. */
static void put_key(FILE *out, const char *place)
{
    char *real = realpath(place, NULL);
    char word[2 * CHECKPOINT_PATH_MAX];
    const char *path = real != NULL ? real : place;
    const int is_plain = strpbrk(path, " \"\\#,:[]{}&*!|>'%@`") == NULL;
    size_t used = (size_t)snprintf(word, sizeof(word), "resume=%s", is_plain ? "" : "\"");
    for (const char *c = path; *c != '\0' && used + 4 < sizeof(word); c++) {
        if (!is_plain && (*c == '"' || *c == '\\')) {
            word[used++] = '\\';
        }
        word[used++] = *c;
    }
    snprintf(word + used, sizeof(word) - used, "%s", is_plain ? "" : "\"");
    cli_shell_word(out, word);
    free(real);
}

static void print_again(FILE *out, const struct cli_run_facts *facts, const char *place)
{
    fprintf(out, "              go on with: %s run ", cli_self());
    if (facts->again_by_key) {
        fprintf(out, "%s --set ", facts->again);
        put_key(out, place);
    } else {
        fputs("--resume ", out);
        cli_shell_word(out, place);
        fprintf(out, " %s", facts->again);
    }
    fputc('\n', out);
}

/* "that of step 300 is damaged", "2 are damaged, the newest of step 300" */
static const char *damaged_words(char *dst, size_t size, const struct cli_checkpoints *found)
{
    char step[CLI_FORMAT_MAX];
    cli_format_count(step, found->damaged_step);
    if (found->n_damaged == 1) {
        snprintf(dst, size, "that of step %s is damaged", step);
    } else {
        snprintf(dst, size, "%u are damaged, the newest of step %s", found->n_damaged, step);
    }
    return dst;
}

static void print_found(FILE *out, const struct cli_checkpoints *found)
{
    char step[CLI_FORMAT_MAX];
    char damaged[96];
    cli_format_count(step, found->step);
    fprintf(out, "  checkpoints %s: ", found->folder);
    if (found->n_damaged == 0) {
        fprintf(out, "the newest is of step %s\n", step);
    } else if (found->step > 0) {
        fprintf(out, "the newest that is whole is of step %s (%s)\n", step,
                damaged_words(damaged, sizeof(damaged), found));
    } else {
        fprintf(out, "%s; none is whole\n", damaged_words(damaged, sizeof(damaged), found));
    }
}

void cli_checkpoints_print(FILE *out, const struct cli_run_facts *facts, int can_go_on)
{
    const struct cli_checkpoints *found = facts->saved;
    if (found == NULL || (found->step == 0 && found->n_damaged == 0)) {
        print_trouble(out, facts, 1);
        return;
    }
    print_found(out, found);
    print_trouble(out, facts, 0);
    if (can_go_on && found->step > 0) {
        print_again(out, facts, found->place);
    } else if (can_go_on && facts->resumed_step > 0) { /* that one is whole: it was read */
        print_again(out, facts, facts->job->resume);
    }
}

void cli_checkpoints_json(json_t *object, const struct cli_run_facts *facts)
{
    const struct cli_checkpoints *found = facts->saved;
    const int is_there = found != NULL && found->step > 0;
    json_object_set_new(object, "checkpoint", is_there ? json_string(found->newest) : json_null());
    json_object_set_new(object, "checkpoint_step",
                        is_there ? json_integer((json_int_t)found->step) : json_null());
}
