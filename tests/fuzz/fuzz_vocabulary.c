/* fuzz_vocabulary.c - words out of any bytes: what is accepted finds each of its words, and cuts
 * any text that it can into words that are there */
#include "libworker/data/vocabulary.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const struct vocabulary *v, const uint8_t *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t length = 0;
        const int32_t word = vocabulary_match(v, text + at, size - at, &length);
        FUZZ_CHECK(word >= -1 && word < vocabulary_words(v));
        FUZZ_CHECK((word < 0) == (length == 0) && length <= size - at);
        FUZZ_CHECK(length <= VOCABULARY_WORD_MAX);
        at += length > 0 ? length : 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vocabulary *v = NULL;
    struct ms_err err = {0, ""};
    const int rc = vocabulary_parse((const char *)data, size, "v", &v, &err);
    if (rc == MS_OK) {
        FUZZ_CHECK(vocabulary_words(v) > 0);
        check_text(v, data, size);
    } else {
        FUZZ_CHECK(rc == MS_E_INVALID && err.text[0] != '\0');
    }
    vocabulary_destroy(v);
    return 0;
}
