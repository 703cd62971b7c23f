/* rank_notes.h - what rank 0 of a run said in its log of files that it could not write */
#ifndef CLI_RANK_NOTES_H
#define CLI_RANK_NOTES_H

#include <stddef.h>

/* Of notes that begin with trouble the last one that no later note which begins with over has
 * ended: "no checkpoint of step 7: cannot write ...: No space left on device". "": there is none.
 * Returns dst. */
const char *cli_rank_trouble(const char *run_dir, const char *trouble, const char *over, char *dst,
                             size_t size);

#endif
