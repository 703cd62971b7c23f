/* fuzz_saved.c - what a node says a job has saved, out of any bytes: what is read can be printed,
 * and is written just so */
#include "libworker/train/saved_list.h"
#include "proto/text.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct saved_list list;
    struct saved_list again;
    struct ms_err err = {0, ""};
    if (saved_list_parse((const char *)data, size, "node", &list, &err) < 0) {
        FUZZ_CHECK(err.text[0] != '\0');
        return 0;
    }
    FUZZ_CHECK(ms_text_is_valid(list.folder, MS_TEXT_LINE) && list.n <= MS_CHECKPOINTS_MAX);
    FUZZ_CHECK(ms_text_is_valid(list.best.metric, MS_TEXT_LINE));
    for (size_t i = 0; i < list.n; i++) {
        FUZZ_CHECK(list.entries[i].step > 0 && list.entries[i].bytes > 0);
    }
    FUZZ_CHECK(list.n_bests <= MS_BEST_MAX && (list.n_bests == 0 || list.best.step > 0));
    for (size_t i = 0; i < list.n_bests; i++) {
        FUZZ_CHECK(list.bests[i].step > 0 && ms_text_is_valid(list.bests[i].metric, MS_TEXT_LINE));
    }
    size_t written = 0;
    char *own = saved_list_format(&list, &written);
    FUZZ_CHECK(own != NULL && saved_list_parse(own, written, "own", &again, &err) == 0);
    FUZZ_CHECK(again.n == list.n && again.best.step == list.best.step &&
               again.n_bests == list.n_bests);
    saved_list_fini(&again);
    saved_list_fini(&list);
    free(own);
    return 0;
}
