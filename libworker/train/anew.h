/* anew.h - the program runs again from its beginning, as the same process */
#ifndef ANEW_H
#define ANEW_H

#include "proto/err.h"

/* Keeps the arguments as they came, for the life of the process. Before anything takes some out. */
void anew_keep(int argc, char **argv);
/* Would a start from here come to its end? Files may have changed since ours, and a reload that
 * refused them was no reason to end. Runs the program with --check-config=self (as
 * whom it runs, where the plain word judges as the service's user) and waits for it; what is wrong
 * it writes to our standard error. */
int anew_may(void);
/* Returns where it fails: MS_E_IO. What runs in other threads ends with them. Signals that are
 * blocked stay pending. */
int anew_run(struct ms_err *err);

#endif
