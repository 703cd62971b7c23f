/* environment.h - what variables of OpenMP and oneDNN ask for, and a plan says otherwise */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* Calls note for each variable that is set and counts for nothing, because the plan has so many
 * threads and that instruction set. */
void environment_note(int threads, const char *isa, void (*note)(void *arg, const char *text),
                      void *arg);

#endif
