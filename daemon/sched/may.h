/* may.h - who may do what, as one table; docs/security.md prints it
 *
 * Everything that somebody may do is an action. A row gives one action to the bearers of one role:
 * on everything, on what is theirs, or on what is theirs or nobody's. What no row gives is refused.
 * The wire's table of senders (proto/wire.c) is judged earlier and knows no objects; a test walks
 * every message and every kind of principal through both. Pure; any thread. */
#ifndef SCHED_MAY_H
#define SCHED_MAY_H

#include "proto/principal.h"

#include <stdbool.h>
#include <stddef.h>

enum may_action {
    MAY_TALK,     /* Hello, Ok, Error: what every connection says */
    MAY_REGISTER, /* take a node id; its object is whoever holds the id */
    MAY_REPORT,   /* speak for a node; its object is who registered it */
    MAY_SUBMIT,
    MAY_PRIORITY,    /* submit with a priority beyond that of users */
    MAY_LAST_PLACES, /* submit where only what is kept for admins is left */
    MAY_LOOK,        /* jobs, nodes, status, events */
    MAY_READ_LOG,    /* of a rank */
    MAY_FETCH,       /* results of a job; its object is the owner */
    MAY_CANCEL,      /* a job; its object is the owner */
    MAY_ASK_NODE,    /* a node, about a file: the node judges the token */
    MAY_ANSWER,      /* what only a scheduler says: nobody may say it to one */
    MAY_ACTIONS
};

enum may_of {
    MAY_OF_ALL,
    MAY_OF_OWN,
    MAY_OF_OWN_OR_FREE,
};

struct may_row {
    enum may_action action;
    unsigned role; /* one of enum ms_role */
    enum may_of of;
};

/* May who do this to something of `object`, the canonical principal that holds or owns it? "": it
 * is nobody's. NULL: is there anything that he may do this to? */
bool may(const struct ms_principal *who, enum may_action action, const char *object);

/* What a message asks for; MAY_ANSWER for types that are none of a client's or a worker's. */
enum may_action may_action_of(uint16_t type);

/* The table, for the test that compares docs/security.md with it: row i, NULL past the end; and an
 * action's name and meaning. */
const struct may_row *may_at(size_t i);
const char *may_action_name(enum may_action action, const char **ret_meaning);

#endif
