/* self.h - how this msctl was called: what commands that people copy begin with */
#ifndef CLI_SELF_H
#define CLI_SELF_H

/* argv[0], once, before anything is printed. */
void cli_self_set(const char *called);
/* A word for a shell: the path by which it was called, else "msctl", which a shell looks up. */
const char *cli_self(void);
/* ... and by which options it came to its scheduler (--config, --server: NULL where they were not
 * given), for a command that has to come to the same one. Returns owned; NULL: no memory. */
char *cli_self_there(const char *config, const char *server);

#endif
