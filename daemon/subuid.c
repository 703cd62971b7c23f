/* subuid.c - who owns a subordinate uid: lines of "alice:100000:65536" */
#include "daemon/subuid.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int subuid_number(const char *text, unsigned *ret)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number >= UINT32_MAX) {
        return 0;
    }
    *ret = (unsigned)number;
    return 1;
}

/* One line; what is no range is none, as newuidmap(1) has it: "alice:100000:65536". */
static int is_in(char *line, unsigned uid, unsigned *ret_first, char owner[MS_NAME_MAX + 1])
{
    unsigned first = 0;
    unsigned n = 0;
    line[strcspn(line, "\n")] = '\0';
    char *start = strchr(line, ':');
    char *count = start != NULL ? strchr(start + 1, ':') : NULL;
    if (count == NULL || start == line || start - line > MS_NAME_MAX) {
        return 0;
    }
    *start++ = '\0';
    *count++ = '\0';
    if (!subuid_number(start, &first) || !subuid_number(count, &n) || n > UINT32_MAX - first ||
        uid < first || uid - first >= n) {
        return 0;
    }
    snprintf(owner, MS_NAME_MAX + 1, "%s", line);
    *ret_first = first < SUBUID_LEAST ? SUBUID_LEAST : first;
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
