/* answer.h - msworker --evaluate and --predict: this process answers by trained weights, and ends
 *
 *     standard input   the job, as JSON
 *     standard output  a line of JSON for each: {"rows":64,"of":10000} now and then, {"note":TEXT},
 *                      and at the end {"result":{...}} or {"error":TEXT,"code":N}
 *     --to FD          predictions
 *
 * For msctl eval and msctl predict. No scheduler, no settings, no files but those that it is told.
 */
#ifndef ANSWER_H
#define ANSWER_H

int answer_is_asked(int argc, char *const *argv);
/* Returns the exit status. */
int answer_main(int argc, char *const *argv);

#endif
