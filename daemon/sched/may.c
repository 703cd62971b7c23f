/* may.c - who may do what, as one table; docs/security.md prints it */
#include "daemon/sched/may.h"

#include "proto/macros.h"

#include <string.h>

enum { WORKER = MS_ROLE_WORKER, USER = MS_ROLE_USER, ADMIN = MS_ROLE_ADMIN };

static const struct may_row rows[] = {
    {MAY_TALK, WORKER, MAY_OF_ALL},       {MAY_TALK, USER, MAY_OF_ALL},
    {MAY_TALK, ADMIN, MAY_OF_ALL},        {MAY_REGISTER, WORKER, MAY_OF_OWN_OR_FREE},
    {MAY_REPORT, WORKER, MAY_OF_OWN},     {MAY_SUBMIT, USER, MAY_OF_ALL},
    {MAY_SUBMIT, ADMIN, MAY_OF_ALL},      {MAY_PRIORITY, ADMIN, MAY_OF_ALL},
    {MAY_LAST_PLACES, ADMIN, MAY_OF_ALL}, {MAY_LOOK, USER, MAY_OF_ALL},
    {MAY_LOOK, ADMIN, MAY_OF_ALL},        {MAY_READ_LOG, USER, MAY_OF_ALL},
    {MAY_READ_LOG, ADMIN, MAY_OF_ALL},    {MAY_FETCH, USER, MAY_OF_OWN},
    {MAY_FETCH, ADMIN, MAY_OF_ALL},       {MAY_CANCEL, USER, MAY_OF_OWN},
    {MAY_CANCEL, ADMIN, MAY_OF_ALL},      {MAY_ASK_NODE, USER, MAY_OF_OWN},
    {MAY_ASK_NODE, ADMIN, MAY_OF_ALL},
};

static const struct {
    const char *name, *meaning;
} names[MAY_ACTIONS] = {
    [MAY_TALK] = {"talk", "Hello, Ok, Error"},
    [MAY_REGISTER] = {"register", "take a node id"},
    [MAY_REPORT] = {"report", "speak for a node: heartbeats, ranks, logs, leave"},
    [MAY_SUBMIT] = {"submit", "queue a job"},
    [MAY_PRIORITY] = {"priority", "submit with a priority outside `priority_users`"},
    [MAY_LAST_PLACES] = {"last_places", "submit when only what is kept for admins is left"},
    [MAY_LOOK] = {"look", "list, show and watch jobs, nodes, status, events"},
    [MAY_READ_LOG] = {"read_log", "read the log of a rank"},
    [MAY_FETCH] = {"fetch", "have the results of a job"},
    [MAY_CANCEL] = {"cancel", "end a job"},
    [MAY_ASK_NODE] = {"ask_node", "read a granted file from its node, with the token"},
    [MAY_ANSWER] = {"answer", "say what only a scheduler says"},
};

static const struct {
    uint16_t type;
    enum may_action action;
} asks[] = {
    {MS_MSG_HELLO, MAY_TALK},          {MS_MSG_OK, MAY_TALK},
    {MS_MSG_ERROR, MAY_TALK},          {MS_MSG_REGISTER, MAY_REGISTER},
    {MS_MSG_HEARTBEAT, MAY_REPORT},    {MS_MSG_RANK_READY, MAY_REPORT},
    {MS_MSG_PROGRESS, MAY_REPORT},     {MS_MSG_RANK_DONE, MAY_REPORT},
    {MS_MSG_PEER_REPORT, MAY_REPORT},  {MS_MSG_LOG_CHUNK, MAY_REPORT},
    {MS_MSG_LEAVE, MAY_REPORT},        {MS_MSG_FETCH_READY, MAY_REPORT},
    {MS_MSG_SUBMIT, MAY_SUBMIT},       {MS_MSG_JOB_QUERY, MAY_LOOK},
    {MS_MSG_WATCH, MAY_LOOK},          {MS_MSG_NODE_QUERY, MAY_LOOK},
    {MS_MSG_STATUS_QUERY, MAY_LOOK},   {MS_MSG_LOG_QUERY, MAY_READ_LOG},
    {MS_MSG_CANCEL, MAY_CANCEL},       {MS_MSG_FETCH, MAY_FETCH},
    {MS_MSG_FETCH_READ, MAY_ASK_NODE}, {MS_MSG_FETCH_CHUNK, MAY_ANSWER},
    {MS_MSG_EVENT_QUERY, MAY_LOOK},    {MS_MSG_RANK_PLAN, MAY_REPORT},
};

static bool reaches(const struct ms_principal *who, enum may_of of, const char *object)
{
    if (object == NULL || of == MAY_OF_ALL) {
        return true;
    }
    if (object[0] == '\0') {
        return of == MAY_OF_OWN_OR_FREE;
    }
    return strcmp(object, who->id) == 0;
}

bool may(const struct ms_principal *who, enum may_action action, const char *object)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        if (rows[i].action == action && (rows[i].role & who->roles) != 0 &&
            reaches(who, rows[i].of, object)) {
            return true;
        }
    }
    return false;
}

enum may_action may_action_of(uint16_t type)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(asks); i++) {
        if (asks[i].type == type) {
            return asks[i].action;
        }
    }
    return MAY_ANSWER;
}

const struct may_row *may_at(size_t i)
{
    return i < MS_ARRAY_SIZE(rows) ? &rows[i] : NULL;
}

const char *may_action_name(enum may_action action, const char **ret_meaning)
{
    *ret_meaning = names[action].meaning;
    return names[action].name;
}
