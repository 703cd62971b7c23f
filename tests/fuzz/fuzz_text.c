/* fuzz_text.c - any bytes opened as text, some windows read */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct data_spec spec = {.kind = DATA_TEXT, .tokens = size > 0 ? data[0] % 16 : 0};
    fuzz_source(&spec, data, size);
    return 0;
}
