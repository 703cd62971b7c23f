/* fuzz_csv.c - a table out of any bytes: opened as data, some records read */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct data_spec spec = {.kind = DATA_CSV, .has_header = size % 2 == 0};
    spec.shape.classes = size % 3 == 1 ? 2 : 0; /* held against the rows */
    spec.shape.target_width = size % 3 == 2;
    fuzz_source(&spec, data, size);
    return 0;
}
