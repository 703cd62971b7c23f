/* causes.c - why a rank was lost, several times, in one reason that people read
 *
 *     "node 1: the peer closed the connection (3 times); it was silent for 10 s; its log: <path>"
 *
 * Of each loss only the cause: which port the process had is nothing that differs, and what helps
 * to find more is said of the last one. Equal ones are said once. All are cut alike, until they
 * fit. */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

enum { CAUSES_MAX = MS_RESTARTS_MAX + 1, CUT_STEP = 4 };

/* Of "host:4711" and what follows: where the port begins, and how long it is; 0: there is none. */
static size_t find_port(const char *address, const char **ret)
{
    const char *colon = address + strcspn(address, " ");
    size_t n = 0;
    while (colon > address && strchr(",;:)", colon[-1]) != NULL) {
        colon--;
    }
    while (colon > address && colon[-1] >= '0' && colon[-1] <= '9') {
        colon--;
        n++;
    }
    *ret = colon - 1;
    return n > 0 && colon > address && colon[-1] == ':' ? n + 1 : 0;
}

static bool ends_with(const char *text, size_t n, const char *words)
{
    const size_t length = strlen(words);
    return n >= length && memcmp(text + n - length, words, length) == 0 &&
           (n == length || text[n - length - 1] == ' ');
}

/* "the peer", "worker", "worker node-7": so the scheduler calls a node's process. */
static bool is_own_process(const char *text, size_t n)
{
    size_t word = n;
    while (word > 0 && text[word - 1] != ' ') {
        word--;
    }
    return ends_with(text, n, "the peer") || ends_with(text, n, "worker") ||
           (word > 0 && ends_with(text, word - 1, "worker"));
}

/* "worker node-7 at 127.0.0.1:4711 closed": whoever it was, it was the rank's process, which has
 * another port each time. Of others (a rank, a server) it is said where they are. */
static void drop_addresses(char *text)
{
    static const char before[] = " at ";
    for (char *at = strstr(text, before); at != NULL; at = strstr(at + 1, before)) {
        const char *port = NULL;
        const size_t n = find_port(at + strlen(before), &port);
        if (n > 0) {
            char *from = is_own_process(text, (size_t)(at - text)) ? at : text + (port - text);
            memmove(from, port + n, strlen(port + n) + 1);
        }
    }
}

/* What helps to find more: how rank_text, why_closed and silence_text end. */
static const char log_end[] = "; its log: ";

static size_t without_advice(const char *text)
{
    static const char *const ends[] = {log_end, "; it had opened no log yet", " (killed? ",
                                       " (is its host down", "; waited "};
    size_t n = strlen(text);
    for (size_t i = 0; i < MS_ARRAY_SIZE(ends); i++) {
        const char *end = strstr(text, ends[i]);
        n = end != NULL && (size_t)(end - text) < n ? (size_t)(end - text) : n;
    }
    return n;
}

static void drop_advice(char *text)
{
    text[without_advice(text)] = '\0';
}

const char *causes_bare(struct sched *s, const char *text)
{
    char bare[MS_TEXT_MAX + 1];
    ms_text_copy(bare, sizeof(bare), text);
    drop_advice(bare);
    return emit_text(s, "%s", bare);
}

/* The rank is known, and that it speaks of itself. */
static void write_cause(struct cause *dst, const char *node_id, enum fault fault, const char *text)
{
    const char *before = recover_is_own_link(fault) ? " reports: " : ": ";
    const char *cause = strstr(text, before);
    char whole[MS_TEXT_MAX + 1];
    ms_text_copy(whole, sizeof(whole), cause != NULL ? cause + strlen(before) : text);
    drop_advice(whole);
    drop_addresses(whole);
    ms_text_copy(dst->node_id, sizeof(dst->node_id), node_id);
    ms_text_copy(dst->text, sizeof(dst->text), whole);
    dst->times = 1;
    dst->fault = fault;
}

void causes_add(struct losses *losses, const char *node_id, enum fault fault, const char *text)
{
    if (losses->causes == NULL) {
        losses->causes = memory_take(MS_RESTARTS_MAX * sizeof(*losses->causes));
    }
    if (losses->n_causes == MS_RESTARTS_MAX) {
        causes_keep_last(losses, MS_RESTARTS_MAX - 1);
    }
    write_cause(&losses->causes[losses->n_causes++], node_id, fault, text);
}

bool causes_are_own(const struct losses *losses)
{
    bool are = true;
    for (uint32_t i = 0; i < losses->n_causes; i++) {
        are = are && recover_is_own_link(losses->causes[i].fault);
    }
    return are;
}

bool causes_are_of_mesh(const struct losses *losses)
{
    bool are = true;
    uint32_t n = 0;
    for (uint32_t i = 0; i < losses->n_causes; i++) {
        const enum fault fault = losses->causes[i].fault;
        are = are && recover_is_of_links(fault);
        n += fault != FAULT_COMPLAINT; /* what others alone say may be a step that hangs */
    }
    return are && n > 0;
}

void causes_keep_last(struct losses *losses, uint32_t n)
{
    if (losses->n_causes > n) {
        memmove(losses->causes, losses->causes + losses->n_causes - n, n * sizeof(*losses->causes));
        losses->n_causes = n;
    }
}

/* ---- one text -----------------------------------------------------------------------------------
 */

static uint32_t merge(struct cause *list, uint32_t n, const struct cause *cause)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i].text, cause->text) == 0 &&
            strcmp(list[i].node_id, cause->node_id) == 0) {
            list[i].times++;
            return n;
        }
    }
    list[n] = *cause;
    return n + 1;
}

/* Which node is said where it changes. */
static const char *format(struct sched *s, const struct cause *list, uint32_t n, size_t cut)
{
    const char *words = "";
    for (uint32_t i = 0; i < n; i++) {
        const struct cause *cause = &list[i];
        const bool is_same = i > 0 && strcmp(cause->node_id, list[i - 1].node_id) == 0;
        const bool is_cut = strlen(cause->text) > cut;
        const size_t shown = is_cut ? ms_text_whole(cause->text, cut) : strlen(cause->text);
        words = emit_text(s, "%s%s%s%.*s%s%s", words, i > 0 ? "; " : "",
                          is_same ? "" : emit_text(s, "node %.20s: ", cause->node_id), (int)shown,
                          cause->text, is_cut ? "..." : "",
                          cause->times > 1 ? emit_text(s, " (%u times)", cause->times) : "");
    }
    return words;
}

/* NULL: they do not fit where each has least bytes. */
static const char *fit(struct sched *s, const struct cause *list, uint32_t n, size_t room,
                       size_t least)
{
    size_t cut = sizeof(list->text) - 1;
    const char *words = format(s, list, n, cut);
    while (strlen(words) > room && cut > least) {
        cut -= CUT_STEP;
        words = format(s, list, n, cut);
    }
    return strlen(words) <= room ? words : NULL;
}

/* The log alone, or the end of its path. */
static const char *log_of(struct sched *s, const char *advice, size_t shown)
{
    char path[MS_TEXT_MAX + 1];
    const char *log = strstr(advice, log_end);
    return log == NULL ? ""
                       : emit_text(s, "%s%s", log_end,
                                   ms_text_end(path, shown + 1, log + sizeof(log_end) - 1));
}

const char *causes_words(struct sched *s, const struct losses *losses, const char *node_id,
                         enum fault fault, const char *text, size_t room)
{
    enum { LOG_LEAST = 40, CUT_ALL = 96, CUT_LOG = 48, CUT_LEAST = 28 };
    struct cause list[CAUSES_MAX];
    struct cause last;
    uint32_t n = 0;
    for (uint32_t i = 0; i < losses->n_causes; i++) {
        n = merge(list, n, &losses->causes[i]);
    }
    write_cause(&last, node_id, fault, text);
    n = merge(list, n, &last);
    const char *advice = text + without_advice(text);
    const struct {
        const char *end;
        size_t least;
    } ways[] = {{advice, CUT_ALL},
                {log_of(s, advice, MS_TEXT_MAX), CUT_LOG},
                {log_of(s, advice, LOG_LEAST), CUT_LEAST}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ways); i++) {
        const size_t used = strlen(ways[i].end);
        const char *words = used < room ? fit(s, list, n, room - used, ways[i].least) : NULL;
        if (words != NULL) {
            return emit_text(s, "%s%s", words, ways[i].end);
        }
    }
    return text_fit(s, format(s, list, n, CUT_LEAST), room);
}
