/* restart.c - whether a child of `msctl run` that died is started again, and when; pure */
#include "cli/restart.h"

#include <sys/wait.h>

enum { EXIT_USAGE = 2, EXIT_CONFIG = 78 };

/* Before the second start, the third, ... */
static const int pauses_ms[RESTART_DEATHS_MAX - 1] = {0, 100, 500, 2000, 5000, 5000, 5000};

static int would_do_it_again(const struct restart_facts *facts)
{
    if (!WIFEXITED(facts->status)) {
        return 0;
    }
    int status = WEXITSTATUS(facts->status);
    return facts->is_forming || status == EXIT_USAGE || status == EXIT_CONFIG;
}

static int was_of_use(const struct restart *restart, const struct restart_facts *facts)
{
    return restart->ready_ms > 0 && facts->now_ms - restart->ready_ms >= RESTART_OF_USE_MS;
}

/* Steps that others made say nothing of a process that there never was. */
static int is_first(const struct restart *restart, const struct restart_facts *facts)
{
    return facts->status != RESTART_NOT_STARTED &&
           (was_of_use(restart, facts) || facts->step != restart->step);
}

/* Who was of use, and was killed by somebody, is none of those that die of something else later. */
static void count(struct restart *restart, const struct restart_facts *facts)
{
    const int first = is_first(restart, facts);
    const int is_like_last = !first && facts->status == restart->status;
    restart->deaths = first ? 1 : restart->deaths + 1;
    restart->alike = first && restart->ready_ms > 0 ? 0 : is_like_last ? restart->alike + 1 : 1;
    restart->status = facts->status;
    restart->step = facts->status == RESTART_NOT_STARTED ? restart->step : facts->step;
}

int restart_judge(struct restart *restart, const struct restart_facts *facts)
{
    count(restart, facts);
    restart->due_ms = 0;
    const int is_last = restart->deaths >= RESTART_DEATHS_MAX;
    if (would_do_it_again(facts) || (is_last && !facts->is_spare)) {
        return -1;
    }
    int pause_ms = pauses_ms[is_last ? RESTART_DEATHS_MAX - 2 : restart->deaths - 1];
    restart->is_unsure = facts->is_worker && WIFEXITED(facts->status);
    if (restart->is_unsure && pause_ms < RESTART_WORD_MS) {
        pause_ms = RESTART_WORD_MS;
    }
    restart->due_ms = facts->now_ms + pause_ms;
    return pause_ms;
}

void restart_begin(struct restart *restart)
{
    restart->due_ms = 0;
    restart->ready_ms = 0;
}

void restart_ready(struct restart *restart, int64_t now_ms)
{
    restart->ready_ms = restart->ready_ms > 0 ? restart->ready_ms : now_ms;
}
