/* fuzz.h - what a fuzzer has in common with the two drivers that can run it */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's entry point (https://llvm.org/docs/LibFuzzer.html): must not keep anything. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* assert that stays on and names the property that broke. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
