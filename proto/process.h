/* process.h - what a program of ours asks of the system for itself, before it reads a key */
#ifndef MS_PROCESS_H
#define MS_PROCESS_H

#define MS_SERVICE_USER                                                                            \
    "msched" /* systemd/msched.sysusers.conf: the user of our units, and his group */

/* Once, at the top of main, of each program:
 * - no core dumps, and nobody else of our uid reads our memory: keys and passwords are in it. Under
 *   sanitizers memory stays readable, for the leak check reads it;
 * - a peer or reader that has gone (SIGPIPE) and a file above the limit of size (SIGXFSZ: ulimit
 *   -f, LimitFSIZE=) are errors of the write that met them, which can say what it wrote, and no
 *   silent end of the program;
 * - children can be waited for (SIGCHLD), whatever the program that started us ignores;
 * - the name that ps, pgrep and the kernel's lines show: that of the command, also where the
 *   program began again through /proc/self/exe and was called "exe". */
void ms_process_begin(void);

/* For --check-config as root, without another word: where the user of our units (msched) is there
 * this process becomes him, so that files are judged as the service will meet them; it stays him.
 * Returns a line for people that says as whom is judged, NULL where there is nothing to say. */
const char *ms_process_check_as_service(int is_of_service);

#endif
