/* environment.c - OMP_NUM_THREADS and the caps of oneDNN: the plan wins, and people hear of it
 *
 * All ranks of a job have one plan, whatever the environment of each of them is. OMP_THREAD_LIMIT
 * is not among these: OpenMP heeds it, so a plan with more threads is refused. */
#include "libworker/train/environment.h"

#include "proto/limits.h"
#include "proto/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void note_threads(int threads, void (*note)(void *arg, const char *text), void *arg)
{
    const char *value = getenv("OMP_NUM_THREADS");
    char text[MS_TEXT_MAX];
    char *end = NULL;
    if (value == NULL || (strtol(value, &end, 10) == threads && *end == '\0')) {
        return;
    }
    snprintf(text, sizeof(text),
             "OMP_NUM_THREADS=%.40s counts for nothing here: the plan has %d thread%s for each "
             "rank, by `threads` of the job or the cores of its nodes",
             value, threads, threads == 1 ? "" : "s");
    note(arg, text);
}

static int is_no_cap(const char *value, const char *isa)
{
    return strcasecmp(value, isa) == 0 || strcasecmp(value, "ALL") == 0 ||
           strcasecmp(value, "DEFAULT") == 0;
}

static void note_isa(const char *isa, void (*note)(void *arg, const char *text), void *arg)
{
    static const char *const variables[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};
    char text[MS_TEXT_MAX];
    for (size_t i = 0; i < MS_ARRAY_SIZE(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value == NULL || is_no_cap(value, isa)) {
            continue;
        }
        snprintf(text, sizeof(text),
                 "%s=%.40s counts for nothing here: the plan has isa %s; `isa` of msworker "
                 "(--isa) caps what this node offers",
                 variables[i], value, isa);
        note(arg, text);
    }
}

void environment_note(int threads, const char *isa, void (*note)(void *arg, const char *text),
                      void *arg)
{
    note_threads(threads, note, arg);
    note_isa(isa, note, arg);
}
