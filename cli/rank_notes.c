/* rank_notes.c - what rank 0 of a run said in its log of files that it could not write */
#include "cli/rank_notes.h"

#include "proto/limits.h"
#include "proto/regular.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *cli_rank_trouble(const char *run_dir, const char *trouble, const char *over, char *dst,
                             size_t size)
{
    char path[MS_PATH_MAX + 32];
    char *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "%s/worker_0.log", run_dir);
    FILE *log = NULL; /* who makes it may have left something else there: nobody waits for that */
    (void)ms_regular_open(path, "", &log, NULL);
    dst[0] = '\0';
    while (log != NULL && getline(&line, &room, log) >= 0) {
        const char *text = note_of(line);
        if (begins(text, trouble)) {
            take_trouble(text, dst, size);
        } else if (begins(text, over)) {
            dst[0] = '\0';
        }
    }
    free(line);
    if (log != NULL) {
        fclose(log);
    }
    return dst;
}
