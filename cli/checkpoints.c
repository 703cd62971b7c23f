/* checkpoints.c - the checkpoints that a run leaves, and how one goes on from them */
#include "cli/checkpoints.h"

#include "cli/format.h"
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

static int is_ours(const struct cli_run_facts *facts, const char *first_tag, const char *path)
{
    struct checkpoint_manifest m;
    if (checkpoint_read(path, CHECKPOINT_OWN, &m, NULL) < 0) {
        return 0;
    }
    const char *tag = facts->tag != NULL ? facts->tag : "";
    const int is =
        (tag[0] != '\0' && strcmp(m.tag, tag) == 0) ||
        (first_tag[0] != '\0' && strcmp(checkpoint_manifest_first_tag(&m), first_tag) == 0);
    checkpoint_manifest_fini(&m);
    return is;
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
    for (size_t i = 0; i < entries.n && ret->step == 0; i++) {
        if (is_ours(facts, first_tag, entries.entries[i].path)) {
            ret->step = entries.entries[i].step;
            memcpy(ret->newest, entries.entries[i].path, sizeof(ret->newest));
        }
    }
    checkpoint_entries_fini(&entries);
}

/* ---- what rank 0 says of its writes: libworker/train/checkpoint_writer.c ---- */

/* "... rank.note job=1 rank=0 text="no checkpoint of step 7: ..."": what is quoted. */
static const char *note_of(const char *line)
{
    static const char key[] = " text=\"";
    const char *note = strstr(line, " rank.note ");
    const char *text = note != NULL ? strstr(note, key) : NULL;
    return text != NULL ? text + strlen(key) : "";
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Without what is for those who read on, and what could steer a terminal. */
static void take_trouble(const char *text, char *dst, size_t size)
{
    const char *rest = strstr(text, "; the training goes on");
    const size_t length = rest != NULL ? (size_t)(rest - text) : strcspn(text, "\"\n");
    snprintf(dst, size, "%.*s", (int)(length < size ? length : size), text);
    for (char *c = dst; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
}

/* Why the last one could not be written; "": it was. */
static const char *find_trouble(const char *run_dir, char *dst, size_t size)
{
    char path[MS_PATH_MAX + 32];
    char *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "%s/worker_0.log", run_dir);
    FILE *log = fopen(path, "re");
    dst[0] = '\0';
    while (log != NULL && getline(&line, &room, log) >= 0) {
        const char *text = note_of(line);
        if (begins(text, "no checkpoint of step ")) {
            take_trouble(text, dst, size);
        } else if (begins(text, "checkpoints are written again")) {
            dst[0] = '\0';
        }
    }
    free(line);
    if (log != NULL) {
        fclose(log);
    }
    return dst;
}

static void print_trouble(FILE *out, const struct cli_run_facts *facts, int is_first)
{
    char trouble[MS_ERR_TEXT_MAX];
    if (facts == NULL || facts->job == NULL || !facts->job->has_checkpoint ||
        find_trouble(facts->run_dir, trouble, sizeof(trouble))[0] == '\0') {
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
