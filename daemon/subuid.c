/* subuid.c - who owns a subordinate uid: lines of "alice:100000:65536" */
#include "daemon/subuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line; what is no range is none, as newuidmap(1) has it. */
static int is_in(char *line, unsigned uid, unsigned *ret_first, char owner[MS_NAME_MAX + 1])
{
    unsigned long first = 0;
    unsigned long n = 0;
    char *colon = strchr(line, ':');
    if (colon == NULL || colon == line || colon - line > MS_NAME_MAX ||
        sscanf(colon, ":%lu:%lu", &first, &n) != 2 || uid < first || uid - first >= n) {
        return 0;
    }
    *colon = '\0';
    snprintf(owner, MS_NAME_MAX + 1, "%s", line);
    *ret_first = (unsigned)first;
    return 1;
}

int subuid_find(const char *file, unsigned uid, unsigned *ret_first, char owner[MS_NAME_MAX + 1])
{
    FILE *stream = uid >= SUBUID_LEAST ? fopen(file, "re") : NULL;
    char *line = NULL;
    size_t size = 0;
    int found = 0;
    while (stream != NULL && !found && getline(&line, &size, stream) > 0) {
        found = is_in(line, uid, ret_first, owner);
    }
    free(line);
    if (stream != NULL) {
        fclose(stream);
    }
    return found;
}
