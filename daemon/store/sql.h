/* sql.h - every SQL text of the store, as tables; nothing is built at run time */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "daemon/sched/sched.h"

#include <stddef.h>

#define STORE_APPLICATION_ID 1836278628 /* "mscd", as migration 1 writes it */

enum store_statement {
    ST_BEGIN,
    ST_COMMIT,
    ST_ROLLBACK,
    ST_PUT_JOB,
    ST_UPDATE_JOB,
    ST_PUT_MEMBER,
    ST_DROP_MEMBERS,
    ST_DROP_JOB,
    ST_PUT_PLAN,
    ST_DROP_PLAN,
    ST_PUT_ASIDE,
    ST_DROP_ASIDE,
    ST_PUT_META,
    ST_PUT_SECRET,
    ST_PUT_EVENT,
    ST_DROP_EVENT,
    ST_LOAD_PLANS,
    ST_LOAD_ASIDES,
    ST_LOAD_JOBS,
    ST_LOAD_MEMBERS,
    ST_LOAD_META,
    ST_LOAD_SECRETS,
    ST_LOAD_EVENTS,
    ST_NEWEST,
    ST_LEDGER,
    ST_SCHEMA,
    ST_PAGES,
    ST_READ_SPEC,
    ST_READ_PLAN,
    ST_READ_EVENTS,
    ST_READ_EVENTS_BACKWARDS,
    ST_COUNT
};

/* Prepared once, when the database is opened. */
extern const char *const store_statements[ST_COUNT];

/* Step i brings schema i to i + 1, its version number with it, inside the caller's transaction.
 * What steps do that were released never changes. */
struct store_migration {
    const char *texts[6]; /* run one after the other; NULL: no more. C limits the length of one */
};
extern const struct store_migration store_migrations[];
extern const size_t store_migrations_n;

/* Settings of the connection, and what SQLite must answer when it is asked back. */
struct store_pragma {
    const char *set, *get, *want;
};
extern const struct store_pragma store_pragmas[];
extern const size_t store_pragmas_n;

/* Job states as the database spells them. */
extern const char *const store_states[JOB_STATES];

#endif
