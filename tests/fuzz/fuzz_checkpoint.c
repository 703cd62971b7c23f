/* fuzz_checkpoint.c - the manifest of a checkpoint, out of any bytes: what is read is written just
 * so
 *
 * A digest would turn nearly all of them away, so each is tried with the right one, too. */
#include "libworker/data/json_text.h"
#include "libworker/train/checkpoint_manifest.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_words(const struct checkpoint_manifest *m)
{
    const char *const words[] = {m->name, m->tag, m->data, m->data_sum, m->job_sha256};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (const char *c = words[i]; *c != '\0'; c++) { /* printed, and parts of paths */
            FUZZ_CHECK(*c > ' ' && *c < 0x7f && *c != '/');
        }
    }
    FUZZ_CHECK(m->step > 0 && m->epoch > 0 && m->step_in_epoch > 0);
    FUZZ_CHECK(m->job != NULL && m->plan != NULL);
}

static void try_text(const char *text, size_t size)
{
    struct checkpoint_manifest m;
    struct checkpoint_manifest again;
    struct ms_err err = {0, ""};
    if (checkpoint_manifest_parse(text, size, "manifest", &m, &err) < 0) {
        FUZZ_CHECK(err.text[0] != '\0');
        return;
    }
    check_words(&m);
    size_t written = 0;
    char *own = checkpoint_manifest_format(&m, &written);
    FUZZ_CHECK(own != NULL);
    FUZZ_CHECK(checkpoint_manifest_parse(own, written, "own", &again, &err) == 0);
    FUZZ_CHECK(again.step == m.step && strcmp(again.job, m.job) == 0 &&
               strcmp(again.plan, m.plan) == 0);
    (void)checkpoint_job_compare(m.job, "{\"seed\":1}", "manifest", &err);
    checkpoint_manifest_fini(&again);
    checkpoint_manifest_fini(&m);
    free(own);
}

static void seal_and_try(json_t *root)
{
    char hex[SUM_HEX];
    size_t size = 0;
    (void)json_object_del(root, "manifest_xxh3_128");
    char *text = json_text(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17), &size);
    struct sum *sum = sum_create();
    FUZZ_CHECK(text != NULL && sum != NULL);
    sum_add(sum, text, size);
    sum_hex(sum, hex);
    sum_destroy(sum);
    free(text);
    json_object_set_new(root, "manifest_xxh3_128", json_string(hex));
    text = json_text(root, JSON_COMPACT | JSON_REAL_PRECISION(17), &size);
    FUZZ_CHECK(text != NULL);
    try_text(text, size);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = json_loadb((const char *)data, size, 0, NULL);
    try_text((const char *)data, size);
    if (json_is_object(root)) {
        seal_and_try(root);
    }
    json_decref(root);
    return 0;
}
