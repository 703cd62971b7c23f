/* process.h - what a program of ours asks of the system for itself, before it reads a key */
#ifndef MS_PROCESS_H
#define MS_PROCESS_H

/* No core dumps, and nobody else of our uid reads our memory: keys and passwords are in it. Once,
 * at the top of main. Under sanitizers memory stays readable, for the leak check reads it. */
void ms_process_hide(void);

#endif
