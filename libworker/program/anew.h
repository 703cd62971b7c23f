/* anew.h - the program runs again from its beginning, as the same process */
#ifndef ANEW_H
#define ANEW_H

#include "proto/err.h"

/* Keeps the arguments as they came, for the life of the process. Before anything takes some out. */
void anew_keep(int argc, char **argv);
/* With those arguments, on the CPUs that the process was given: OpenMP has bound the thread that
 * runs main to the first of its places, and would find no other one then. Returns where it fails.
 */
void anew_exec(char **argv);
/* Returns where it fails: MS_E_IO. What runs in other threads ends with them. Signals that are
 * blocked stay pending. It is a start like any: settings and files are read as they are now. */
int anew_run(struct ms_err *err);

#endif
