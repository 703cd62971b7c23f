/* names.c - what classes, and the files of samples, are called */
#include "libworker/infer/names.h"

#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

static size_t count_lines(const char *text)
{
    size_t n = 1;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

/* Folders as csv has its words: LF between. */
static char *join(const char *const *folders, int64_t n)
{
    size_t size = 1;
    for (int64_t i = 0; i < n; i++) {
        size += strlen(folders[i]) + 1;
    }
    char *text = malloc(size);
    size_t used = 0;
    for (int64_t i = 0; text != NULL && i < n; i++) {
        const size_t length = strlen(folders[i]);
        memcpy(text + used, folders[i], length);
        ms_text_mend((uint8_t *)text + used, length, MS_TEXT_LINE);
        used += length;
        text[used++] = '\n';
    }
    if (text != NULL) {
        text[used > 0 ? used - 1 : 0] = '\0';
    }
    return text;
}

/* Takes text, whose lines they become; as many as there are classes, or none. */
static int split(char *text, int64_t n, struct names *ret, struct ms_err *err)
{
    const int is_of_all = text != NULL && (int64_t)count_lines(text) == n;
    const char **list = is_of_all ? calloc((size_t)n, sizeof(*list)) : NULL;
    if (text == NULL || (is_of_all && list == NULL)) {
        free(text);
        return ms_fail(err, MS_E_NOMEM, "no memory for the names of %lld classes", (long long)n);
    }
    if (!is_of_all) {
        free(text);
        return MS_OK;
    }
    char *at = text;
    for (int64_t i = 0; i < n; i++) {
        const size_t length = strcspn(at, "\n");
        list[i] = at;
        at[length] = '\0';
        at += length + 1;
    }
    *ret = (struct names){.list = list, .text = text};
    return MS_OK;
}

int names_of_data(const struct data_source *source, struct names *ret, struct ms_err *err)
{
    const struct data_info *info = data_get_info(source);
    *ret = (struct names){0};
    return info->folders == NULL
               ? MS_OK
               : split(join(info->folders, info->classes), info->classes, ret, err);
}

/* Folders that are named here may be others than those of the classes. */
static int take_folders(const struct job *job, int64_t n, struct names *ret, struct ms_err *err)
{
    struct data_source *trained = NULL;
    if (data_open(&job->dataset, &trained, NULL) < 0) {
        ret->are_gone = 1;
        return MS_OK;
    }
    const struct data_info *info = data_get_info(trained);
    const int rc = split(join(info->folders, info->classes), n, ret, err);
    data_close(trained);
    return rc;
}

int names_find(const struct job *job, const struct data_source *source, int64_t n,
               struct names *ret, struct ms_err *err)
{
    const char *trained = job->dataset.class_names;
    const char *tested = job->evaluate_dataset.class_names;
    *ret = (struct names){0};
    if (data_get_info(source)->target_width > 0 || job->loss != JOB_LOSS_SOFTMAX_CE) {
        return MS_OK;
    }
    if (trained[0] == '\0' && job->dataset.kind == DATA_IMAGE_FOLDER) {
        return take_folders(job, n, ret, err);
    }
    const char *names = trained[0] != '\0' ? trained : job->has_evaluate ? tested : "";
    return names[0] == '\0' ? MS_OK : split(strdup(names), n, ret, err);
}

void names_free(struct names *names)
{
    free(names->list);
    free(names->text);
    *names = (struct names){0};
}

void names_of_file(const struct data_source *source, int64_t i, char ret[NAMES_FILE_MAX])
{
    data_name_record(source, i, ret, NAMES_FILE_MAX);
    ms_text_mend((uint8_t *)ret, strlen(ret), MS_TEXT_LINE);
}
