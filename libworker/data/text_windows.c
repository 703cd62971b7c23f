/* text_windows.c - text as windows of tokens, each with the token behind it as its label
 *
 * A token is a byte, or a word of a vocabulary: at each place the longest that is there. A file of
 * n tokens has (n - 1) / tokens windows, one behind the other; windows do not go on in the next
 * file. Bytes are read where they lie: ranks of a host share the page cache, and a window is a
 * pread. Words are looked up when the file is opened, and kept, in as few bytes each as it takes.
 */
#include "libworker/data/path.h"
#include "libworker/data/source.h"
#include "libworker/data/targets.h"
#include "libworker/data/vocabulary.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 256, BYTES = 256 };

/* Of a file whose words are looked up, and which is in memory as long as that takes. */
#define TEXT_MAX ((int64_t)1 << 32)

struct text_file {
    char *path; /* owned */
    int fd;
    int64_t first; /* row of the whole */
    int64_t rows;
    struct label_list words; /* of a vocabulary; bytes NULL: tokens are bytes */
};

struct text {
    struct data_source base;
    struct text_file *files;
    int n_files;
    int64_t tokens;
    struct vocabulary *vocabulary; /* NULL: bytes */
    uint8_t *window;               /* tokens and one more */
    char words_sum[SUM_HEX];
    float *values; /* tokens, of a vocabulary */
    int32_t *labels;
};

static void text_close(struct data_source *source)
{
    struct text *set = (struct text *)source;
    for (int i = 0; i < set->n_files; i++) {
        free(set->files[i].path);
        label_list_free(&set->files[i].words);
        if (set->files[i].fd >= 0) {
            close(set->files[i].fd);
        }
    }
    free(set->files);
    vocabulary_destroy(set->vocabulary);
    free(set->window);
    free(set->values);
    free(set->labels);
    free(set);
}

/* ---- windows ---- */

static const struct text_file *file_of(const struct text *set, int64_t row)
{
    int low = 0;
    int high = set->n_files - 1;
    while (low < high) { /* the last one that begins at row, or before it */
        const int middle = (low + high + 1) / 2;
        if (set->files[middle].first <= row) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return &set->files[low];
}

static int text_read(struct data_source *source, int64_t row, struct data_record *ret,
                     struct ms_err *err)
{
    struct text *set = (struct text *)source;
    const struct text_file *file = file_of(set, row);
    const int64_t at = (row - file->first) * set->tokens;
    if (set->vocabulary != NULL) {
        for (int64_t i = 0; i < set->tokens; i++) {
            set->values[i] = (float)label_list_get(&file->words, at + i);
            set->labels[i] = label_list_get(&file->words, at + i + 1);
        }
        *ret = (struct data_record){.values = set->values, .labels = set->labels, .label = -1};
        return MS_OK;
    }
    int rc = source_pread(file->fd, set->window, (size_t)set->tokens + 1, at, file->path, err);
    if (rc < 0) {
        return rc;
    }
    for (int64_t i = 0; i < set->tokens; i++) {
        set->labels[i] = set->window[i + 1];
    }
    *ret = (struct data_record){.values = set->window, .labels = set->labels, .label = -1};
    return MS_OK;
}

static void text_name(const struct data_source *source, int64_t row, char *buf, size_t size)
{
    const struct text *set = (const struct text *)source;
    const struct text_file *file = file_of(set, row);
    const char *what = set->vocabulary != NULL ? "word" : "byte";
    snprintf(buf, size, "%s: the %lld %ss from %s %lld on", file->path, (long long)set->tokens,
             what, what, (long long)((row - file->first) * set->tokens));
}

/* ---- words ---- */

/* Line and column as editors count them, and the byte. */
static int fail_word(const char *path, const uint8_t *text, size_t at, struct ms_err *err)
{
    int64_t line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at; i++) {
        line += text[i] == '\n';
        begin = text[i] == '\n' ? i + 1 : begin;
    }
    return ms_fail(err, MS_E_INVALID,
                   "%.160s:%lld:%zu: no word of dataset.vocabulary fits what begins with the byte "
                   "0x%02X; give it one",
                   path, (long long)line, at - begin + 1, text[at]);
}

/* Counts the words of a text, and puts them down where words is not NULL. */
static int64_t cut(const struct text *set, const char *path, const uint8_t *text, size_t size,
                   struct label_list *words, struct ms_err *err)
{
    int64_t n = 0;
    for (size_t at = 0; at < size; n++) {
        size_t length = 0;
        const int32_t word = vocabulary_match(set->vocabulary, text + at, size - at, &length);
        if (word < 0) {
            return fail_word(path, text, at, err);
        }
        if (words != NULL && label_list_put(words, n, word) < 0) {
            return ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its words", path);
        }
        at += length;
    }
    return n;
}

/* Returns how many words the file has. */
static int64_t look_up(struct text *set, struct text_file *file, int64_t size, struct ms_err *err)
{
    uint8_t *text = size < TEXT_MAX ? malloc((size_t)size + 1) : NULL;
    if (text == NULL) {
        return ms_fail(err, MS_E_NOMEM,
                       "%.160s: no memory to look up the words of its %lld bytes; make several "
                       "files of it",
                       file->path, (long long)size);
    }
    int64_t n = source_pread(file->fd, text, (size_t)size, 0, file->path, err);
    n = n < 0 ? n : cut(set, file->path, text, (size_t)size, NULL, err);
    if (n > 0 && label_list_make(&file->words, n, vocabulary_words(set->vocabulary)) < 0) {
        n = ms_fail(err, MS_E_NOMEM, "%.200s: no memory for its words", file->path);
    }
    n = n <= 0 ? n : cut(set, file->path, text, (size_t)size, &file->words, err);
    set->base.info.held_bytes += n > 0 ? label_list_bytes(&file->words) : 0;
    free(text);
    return n;
}

/* ---- files ---- */

static int add_file(struct text *set, const char *path, struct ms_err *err)
{
    struct stat st;
    struct text_file *file = &set->files[set->n_files];
    *file = (struct text_file){.path = strdup(path), .fd = -1, .first = set->base.info.rows};
    set->n_files += file->path != NULL;
    int rc = file->path == NULL ? ms_fail(err, MS_E_NOMEM, "%.200s: no memory", path)
                                : data_file_open(path, &file->fd, err);
    rc = rc < 0 ? rc : data_check_plain(file->fd, path, err);
    if (rc == MS_OK && fstat(file->fd, &st) != 0) {
        rc = ms_fail_errno(err, MS_E_IO, "%.200s cannot be read", path);
    }
    const int64_t n = rc < 0                    ? rc
                      : set->vocabulary != NULL ? look_up(set, file, st.st_size, err)
                                                : st.st_size;
    if (n < 0) {
        return (int)n;
    }
    file->rows = n > 0 ? (n - 1) / set->tokens : 0;
    if (file->rows == 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has %lld %s; a window of %lld tokens wants one more (dataset."
                       "tokens)",
                       path, (long long)n, set->vocabulary != NULL ? "words" : "bytes",
                       (long long)set->tokens);
    }
    set->base.info.rows += file->rows;
    return MS_OK;
}

static int is_text(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".txt") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a folder's texts in the order of their bytes, owned; returns how many. */
static int list_folder(const char *path, char **names, struct ms_err *err)
{
    DIR *folder = NULL;
    const struct dirent *entry;
    int n = 0;
    int rc = data_folder_open(path, &folder, err);
    while (rc == MS_OK && (entry = readdir(folder)) != NULL) {
        if (!is_text(entry)) {
            continue;
        }
        if (n == FILES_MAX) {
            rc = ms_fail(err, MS_E_INVALID,
                         "data set %.160s has more than %d texts; join them with cat", path,
                         FILES_MAX);
        } else if ((names[n] = strdup(entry->d_name)) == NULL) {
            rc = ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
        } else {
            n++;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (rc < 0) {
        while (n > 0) {
            free(names[--n]);
        }
        return rc;
    }
    qsort(names, (size_t)n, sizeof(*names), by_name);
    return n;
}

static int add_folder(struct text *set, const char *path, struct ms_err *err)
{
    char *names[FILES_MAX];
    const int n = list_folder(path, names, err);
    int rc = n == 0 ? ms_fail(err, MS_E_NOT_FOUND,
                              "data set %.160s has no text; put files there whose names end in "
                              ".txt, or give one as dataset.path",
                              path)
                    : n;
    for (int i = 0; i < n; i++) {
        char file[MS_PATH_MAX + MS_PATH_MAX];
        snprintf(file, sizeof(file), "%s/%s", path, names[i]);
        rc = rc < 0 ? rc : add_file(set, file, err);
        free(names[i]);
    }
    return rc < 0 ? rc : MS_OK;
}

/* A file, the file of a part, or all texts of a folder. */
static int add_files(struct text *set, const struct data_spec *spec, const char *path,
                     struct ms_err *err)
{
    struct stat st;
    struct data_parts parts;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return add_file(set, path, err);
    }
    int rc = data_parts_at(spec, path, &parts, err);
    if (rc < 0 || parts.usages == 0) {
        return rc < 0 ? rc : add_folder(set, path, err);
    }
    char file[MS_PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/%s.txt", path, spec->usage == DATA_TEST ? "test" : "train");
    return add_file(set, file, err);
}

static int open_words(const char *given, struct vocabulary **ret, char ret_sum[SUM_HEX],
                      struct ms_err *err)
{
    char path[MS_PATH_MAX + 1];
    struct vocabulary *vocabulary = NULL;
    int rc = data_path_expand(given, path, sizeof(path), err);
    rc = rc < 0 ? rc : vocabulary_open(path, &vocabulary, err);
    rc = rc < 0 ? rc : vocabulary_sum(vocabulary, ret_sum, err);
    if (rc < 0) {
        vocabulary_destroy(vocabulary);
        data_path_hide(path, given, err);
        return rc;
    }
    *ret = vocabulary;
    return MS_OK;
}

static int take_vocabulary(struct text *set, const struct data_spec *spec, struct ms_err *err)
{
    const char *want = spec->vocabulary_sum;
    if (spec->vocabulary[0] == '\0') {
        return MS_OK;
    }
    const int rc = open_words(spec->vocabulary, &set->vocabulary, set->words_sum, err);
    if (rc < 0) {
        return rc;
    }
    if (want[0] != '\0' && strcmp(want, set->words_sum) != 0) {
        return ms_fail(err, MS_E_INVALID,
                       "%.160s has other words, or another order of them, than those that are "
                       "trained (digest %.8s, and theirs is %.8s); give their file, or leave out "
                       "dataset.vocabulary_sum for a training of these",
                       spec->vocabulary, set->words_sum, want);
    }
    set->base.info.vocabulary_sum = set->words_sum;
    set->base.info.classes = vocabulary_words(set->vocabulary);
    set->base.info.dtype = MS_F32;
    return MS_OK;
}

static int make(struct text *set, const struct data_spec *spec, const char *path,
                struct ms_err *err)
{
    set->tokens = spec->tokens;
    set->files = calloc(FILES_MAX, sizeof(*set->files));
    set->window = malloc((size_t)set->tokens + 1);
    set->values = malloc((size_t)set->tokens * sizeof(*set->values));
    set->labels = malloc((size_t)set->tokens * sizeof(*set->labels));
    if (set->files == NULL || set->window == NULL || set->values == NULL || set->labels == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base.info.channels = set->tokens;
    set->base.info.tokens = set->tokens;
    int rc = take_vocabulary(set, spec, err);
    rc = rc < 0 ? rc : add_files(set, spec, path, err);
    return rc < 0 ? rc : data_check_shape(path, &set->base.info, err);
}

int text_open(const struct data_spec *spec, const char *path, struct data_source **ret,
              struct ms_err *err)
{
    if (spec->tokens < 1 || spec->tokens > MS_TOKENS_MAX) {
        return ms_fail(err, MS_E_INVALID, "data set %.160s: %lld tokens a window; from 1 to %d",
                       path, (long long)spec->tokens, MS_TOKENS_MAX);
    }
    struct text *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set %.200s: no memory", path);
    }
    set->base =
        (struct data_source){.info = {.height = 1, .width = 1, .dtype = MS_U8, .classes = BYTES},
                             .read = text_read,
                             .name = text_name,
                             .close = text_close};
    int rc = make(set, spec, path, err);
    if (rc < 0) {
        text_close(&set->base);
        return rc;
    }
    *ret = &set->base;
    return MS_OK;
}
