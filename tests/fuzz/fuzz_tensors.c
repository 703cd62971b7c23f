/* fuzz_tensors.c - a .safetensors file out of any bytes: opened as data, some records read */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct data_spec spec = {.kind = DATA_SAFETENSORS};
    fuzz_source(&spec, data, size);
    return 0;
}
