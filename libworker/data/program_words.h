/* program_words.h - what a program says on standard error, until somebody puts it into a log
 *
 * One thread says, another one hears; lines beyond the room are counted and dropped, and so are
 * those of a program that never stops talking. */
#ifndef DATA_PROGRAM_WORDS_H
#define DATA_PROGRAM_WORDS_H

#include <pthread.h>
#include <stddef.h>

enum {
    PROGRAM_LINE_MAX = 320,    /* bytes of a line; the rest of it is left out */
    PROGRAM_WAITING_MAX = 256, /* lines that wait */
    PROGRAM_LINES_MAX = 10000, /* of a data set, after which it is not listened to: 3 MB of a log */
};

struct program_words {
    pthread_mutex_t lock;                /* all below */
    char (*lines)[PROGRAM_LINE_MAX + 1]; /* a ring of PROGRAM_WAITING_MAX */
    size_t first, n;
    size_t said, lost;               /* lines so far; of them dropped and not told yet */
    int is_over, is_over_told;       /* it said too many */
    char last[PROGRAM_LINE_MAX + 1]; /* "": none */
};

int program_words_init(struct program_words *words); /* -1: no memory */
void program_words_free(struct program_words *words);

/* A line of size bytes, mended where it is no text. Any thread. */
void program_words_say(struct program_words *words, const char *line, size_t size);
/* A line of ours about it, among its own; what it said last is another process's from now on. Any
 * thread. */
void program_words_note(struct program_words *words, const char *text);
/* The oldest line that waits, into buf; 0: none. Any thread. */
int program_words_hear(struct program_words *words, char *buf, size_t size);
/* The last one that it said, heard or not; "": none. Any thread. */
void program_words_last(struct program_words *words, char *buf, size_t size);

#endif
