/* golden_plan.h - plans that were kept as texts in tests/golden/plan: a plan is what it was
 *
 * They are of an instruction set that every x86 has, and of one release of oneDNN. With
 * MSCHED_GOLDEN_WRITE=1 a test writes them: look at the difference, and change docs/plan.md. */
#ifndef TESTS_GOLDEN_PLAN_H
#define TESTS_GOLDEN_PLAN_H

#include "libworker/plan/plan.h"
#include "libworker/plan/spec.h"
#include "proto/limits.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Caps this process, before it has chosen a plan. 0: that cannot be here; says so. */
static inline int golden_plan_begin(void)
{
    const char *fork_mode = getenv("CK_FORK");
    struct ms_err refused = {0, ""};
    if ((fork_mode != NULL && strcmp(fork_mode, "no") == 0) ||
        plan_set_isa("sse41", &refused) < 0 || strcmp(plan_library(), "2.6.3") != 0) {
        printf("skip: needs sse41 and oneDNN 2.6.3 %s\n", refused.text);
        return 0;
    }
    return 1;
}

static inline FILE *golden_plan_open(const char *name, const char *mode)
{
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/golden/plan/%s.txt", root != NULL ? root : ".", name);
    FILE *file = fopen(path, mode);
    ck_assert_msg(file != NULL, "cannot open %s", path);
    return file;
}

/* The caches of the machine become those of the text. */
static inline void ck_golden_plan(struct plan_spec *spec, const char *name)
{
    char *text = NULL;
    size_t size = 0;
    spec->machine.caches[0] = 32768;
    spec->machine.caches[1] = 1048576;
    ck_ms_ok(plan_spec_format(spec, &text, &size, err));
    if (getenv("MSCHED_GOLDEN_WRITE") != NULL) {
        FILE *file = golden_plan_open(name, "w");
        ck_assert_int_ge(fputs(text, file), 0);
        ck_assert_int_eq(fclose(file), 0);
    }
    FILE *file = golden_plan_open(name, "r");
    char *want = calloc(1, MS_PLAN_MAX + 1);
    ck_assert_ptr_nonnull(want);
    ck_assert_uint_gt(fread(want, 1, MS_PLAN_MAX, file), 0);
    (void)fclose(file);
    size_t same = 0;
    while (text[same] != '\0' && text[same] == want[same]) {
        same++;
    }
    ck_assert_msg(text[same] == want[same], "%s, byte %zu: %.80s", name, same, text + same);
    free(want);
    free(text);
}

#endif
