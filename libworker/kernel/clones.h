/* clones.h - one function compiled for several instruction sets, of which the linker takes one */
#ifndef CLONES_H
#define CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KERNEL_CLONES_OF(...) __attribute__((target_clones(__VA_ARGS__)))
#else
#define KERNEL_CLONES_OF(...)
#endif

#define KERNEL_CLONES KERNEL_CLONES_OF("avx512f", "avx2", "default")

#endif
