/* allowed.h - inside of path.h: the operator's lists of variables and folders */
#ifndef ALLOWED_H
#define ALLOWED_H

/* No lists hold. */
int allowed_is_open(void);
int allowed_variable(const char *name);
const char *allowed_variables(void); /* the list, for people */

#endif
