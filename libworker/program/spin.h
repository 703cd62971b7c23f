/* spin.h - how long OpenMP threads of this program wait for each other by spinning */
#ifndef SPIN_H
#define SPIN_H

/* Where nobody has chosen (GOMP_SPINCOUNT, OMP_WAIT_POLICY), chooses, and runs the program again
 * from its beginning with the same arguments: libgomp reads its environment before main(). The
 * process stays the same one. Returns where there is nothing to do, or where that cannot be done:
 * training is slower then, not wrong. First thing in main(). */
void spin_settle(char **argv);

#endif
