/* machine.h - state machines as tables: which event leads from one state to another
 *
 * docs/states.md is the prose of all of them; a test compares the two. */
#ifndef MS_MACHINE_H
#define MS_MACHINE_H

#include <stddef.h>

struct ms_rule {
    int from;
    int event;
    int to;
};

struct ms_machine {
    const char *name; /* "job" */
    const char *const *states;
    const char *const *events;
    int n_states, n_events;
    const struct ms_rule *rules;
    size_t n_rules;
};

/* The state after event, or -1: the table has no such rule. Any thread. */
int ms_machine_next(const struct ms_machine *machine, int from, int event);

#endif
