/* program_words.c - what a program says on standard error, until somebody puts it into a log */
#include "libworker/data/program_words.h"

#include "proto/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int program_words_init(struct program_words *words)
{
    *words = (struct program_words){.first = 0};
    pthread_mutex_init(&words->lock, NULL);
    words->lines = malloc(PROGRAM_WAITING_MAX * sizeof(*words->lines));
    return words->lines != NULL ? 0 : -1;
}

void program_words_free(struct program_words *words)
{
    free(words->lines);
    words->lines = NULL;
    pthread_mutex_destroy(&words->lock);
}

/* Under the lock. */
static void put(struct program_words *words, const char *line)
{
    words->said += words->said <= PROGRAM_LINES_MAX;
    if (words->said > PROGRAM_LINES_MAX) {
        words->is_over = 1;
    } else if (words->n == PROGRAM_WAITING_MAX) {
        words->lost++;
    } else {
        char *at = words->lines[(words->first + words->n) % PROGRAM_WAITING_MAX];
        snprintf(at, PROGRAM_LINE_MAX + 1, "%s", line);
        words->n++;
    }
}

void program_words_say(struct program_words *words, const char *line, size_t size)
{
    char mended[PROGRAM_LINE_MAX + 1];
    const size_t fit = size <= PROGRAM_LINE_MAX ? size : ms_text_whole(line, PROGRAM_LINE_MAX);
    memcpy(mended, line, fit);
    mended[fit] = '\0';
    ms_text_mend((uint8_t *)mended, fit, MS_TEXT_LINE);
    pthread_mutex_lock(&words->lock);
    memcpy(words->last, mended, fit + 1);
    put(words, mended);
    pthread_mutex_unlock(&words->lock);
}

void program_words_note(struct program_words *words, const char *text)
{
    pthread_mutex_lock(&words->lock);
    words->last[0] = '\0';
    put(words, text);
    pthread_mutex_unlock(&words->lock);
}

int program_words_hear(struct program_words *words, char *buf, size_t size)
{
    int has = 0;
    pthread_mutex_lock(&words->lock);
    if (words->n > 0) {
        snprintf(buf, size, "%s", words->lines[words->first]);
        words->first = (words->first + 1) % PROGRAM_WAITING_MAX;
        words->n--;
        has = 1;
    } else if (words->lost > 0) { /* behind those that came before them */
        snprintf(buf, size, "(%zu lines were left out)", words->lost);
        words->lost = 0;
        has = 1;
    } else if (words->is_over && !words->is_over_told) {
        snprintf(buf, size, "(after %d lines it is not listened to any more)", PROGRAM_LINES_MAX);
        words->is_over_told = has = 1;
    }
    pthread_mutex_unlock(&words->lock);
    return has;
}

void program_words_last(struct program_words *words, char *buf, size_t size)
{
    pthread_mutex_lock(&words->lock);
    ms_text_copy(buf, size, words->last);
    pthread_mutex_unlock(&words->lock);
}
