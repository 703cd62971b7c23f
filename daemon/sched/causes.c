/* causes.c - why a rank was lost, several times, in one reason that people read
 *
 *     "node 1: the peer closed the connection (3 times); it was silent for 10 s"
 *
 * Of each loss only the cause: where its log lies stands with the rank, what else helps in the
 * events, and which port the process had is nothing that differs. Equal ones are said once. All are
 * cut alike, until they fit. */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

enum { CAUSES_MAX = MS_RESTARTS_MAX + 1, CUT_MIN = 24, CUT_STEP = 4 };

/* "the peer at 127.0.0.1:4711 closed": whoever it was, it was the rank's process. */
static void drop_address(char *text)
{
    static const char before[] = "the peer";
    char *at = strstr(text, "the peer at ");
    if (at != NULL) {
        at += strlen(before);
        const char *rest = at + strlen(" at ");
        rest += strcspn(rest, " ");
        memmove(at, rest, strlen(rest) + 1);
    }
}

/* What helps to find more: how rank_text, node_killed_words and silence_text end. */
static void drop_advice(char *text)
{
    static const char *const ends[] = {"; its log: ", "; it had opened no log yet", " (killed? ",
                                       " (is its host down", "; waited "};
    for (size_t i = 0; i < MS_ARRAY_SIZE(ends); i++) {
        char *end = strstr(text, ends[i]);
        if (end != NULL) {
            *end = '\0';
        }
    }
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
    const char *before = fault == FAULT_MESH ? " reports: " : ": ";
    const char *cause = strstr(text, before);
    char whole[MS_TEXT_MAX + 1];
    ms_text_copy(whole, sizeof(whole), cause != NULL ? cause + strlen(before) : text);
    drop_advice(whole);
    drop_address(whole);
    ms_text_copy(dst->node_id, sizeof(dst->node_id), node_id);
    ms_text_copy(dst->text, sizeof(dst->text), whole);
    dst->times = 1;
    dst->is_mesh = fault == FAULT_MESH;
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

bool causes_are_of_mesh(const struct losses *losses)
{
    bool are = true;
    for (uint32_t i = 0; i < losses->n_causes; i++) {
        are = are && losses->causes[i].is_mesh;
    }
    return are;
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

const char *causes_words(struct sched *s, const struct losses *losses, const char *node_id,
                         enum fault fault, const char *text, size_t room)
{
    struct cause list[CAUSES_MAX];
    struct cause last;
    uint32_t n = 0;
    for (uint32_t i = 0; i < losses->n_causes; i++) {
        n = merge(list, n, &losses->causes[i]);
    }
    write_cause(&last, node_id, fault, text);
    n = merge(list, n, &last);
    size_t cut = sizeof(last.text) - 1;
    const char *words = format(s, list, n, cut);
    while (strlen(words) > room && cut > CUT_MIN) {
        cut -= CUT_STEP;
        words = format(s, list, n, cut);
    }
    return words;
}
