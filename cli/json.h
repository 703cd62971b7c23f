/* json.h - messages as JSON objects, for --json: names and units as in cluster.proto */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "proto/cluster.pb-c.h"

#include <jansson.h>
#include <stdio.h>

struct cli_still;

/* All return owned references; numbers that JSON cannot hold (NaN) become null. */
json_t *cli_json_job(const Ms__JobInfo *job);
/* Of a job that ended in a stand-still: the same object, that counted. still: of still.h, or NULL.
 */
json_t *cli_json_still(json_t *object, const Ms__JobInfo *job, const struct cli_still *still);
json_t *cli_json_node(const Ms__NodeInfo *node);
json_t *cli_json_event(const Ms__EventInfo *event);
json_t *cli_json_status(const Ms__StatusInfo *status);
json_t *cli_json_progress(const Ms__Progress *progress);
json_t *cli_json_real(double x);

/* Writes the object on one line and drops the reference. */
void cli_json_print(FILE *out, json_t *value);

#endif
