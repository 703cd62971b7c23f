/* options_private.h - what the files of options share; nothing else includes it
 *
 *   options_words.c   words of the command line that are no settings
 *   options_table.c   every setting; which of them a mode has, and with which defaults
 *   options_values.c  the values, judged
 *   options.c         the three modes put together; reload and words for people
 */
#ifndef OPTIONS_PRIVATE_H
#define OPTIONS_PRIVATE_H

#include "daemon/options.h"

#define OPTIONS_CONFIG_FILE MSCHED_SYSCONFDIR "/msschedd.conf" /* config.h */

struct options_words {
    const char *config, *run_dir; /* point into argv; NULL: not said */
    enum options_action action;
    int accepts_loss;
};

/* Takes these words out of a copy of argv, the rest stays for ms_settings_load. */
int options_take_words(int *argc, char **argv, struct options_words *ret, struct ms_err *err);

/* The standing cluster's, ended by a row without a key. */
extern const struct ms_setting options_rows[];
/* The few of a dynamic cluster. */
const struct ms_setting *options_dynamic_rows(void);
/* The same as the standing cluster's, everything below run_dir. options owns them. */
int options_private_rows(const char *run_dir, struct options *options,
                         const struct ms_setting **ret, struct ms_err *err);

/* From options->settings, or options->env, into options. */
int options_from_settings(struct options *options, struct ms_err *err);
int options_from_environment(struct options *options, struct ms_err *err);
int options_settle_socket(struct options *options, struct ms_err *err);

#endif
