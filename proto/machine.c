/* machine.c - state machines as tables */
#include "proto/machine.h"

int ms_machine_next(const struct ms_machine *machine, int from, int event)
{
    for (size_t i = 0; i < machine->n_rules; i++) {
        if (machine->rules[i].from == from && machine->rules[i].event == event) {
            return machine->rules[i].to;
        }
    }
    return -1;
}
