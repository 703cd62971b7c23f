/* isa.c - the cap on oneDNN's instruction set, and what this machine has without asking oneDNN
 *
 * oneDNN freezes its cap at the first question about it. A worker must report what its machine has
 * before the scheduler knows the least of all members, so that question goes to cpuid. */
#include "libworker/plan/dnnl.h"
#include "libworker/plan/plan.h"
#include "proto/macros.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* From the least to the most: a row includes all above it. */
static const struct isa_row {
    const char *name;
    dnnl_cpu_isa_t isa;
} isas[] = {
    {"sse41", dnnl_cpu_isa_sse41},
    {"avx", dnnl_cpu_isa_avx},
    {"avx2", dnnl_cpu_isa_avx2},
    {"avx512_core", dnnl_cpu_isa_avx512_core},
    {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
    {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
    {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *fixed; /* NULL: oneDNN has not been asked yet */
static const char *most;  /* NULL: what the machine has */

#if defined(__x86_64__)
static unsigned long long os_state(void)
{
    unsigned lo = 0;
    unsigned hi = 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (unsigned long long)hi << 32 | lo;
}

/* Index into isas of the best that the processor and its kernel have; -1: not even sse4.1. */
static int machine_isa(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_SSE4_1) == 0) {
        return -1;
    }
    unsigned long long state = (c & bit_OSXSAVE) != 0 ? os_state() : 0;
    if ((c & bit_AVX) == 0 || (state & 0x6U) != 0x6U) {
        return 0;
    }
    unsigned fma = c & bit_FMA;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & bit_AVX2) == 0 || fma == 0) {
        return 1;
    }
    unsigned core = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    if ((b & core) != core || (state & 0xe6U) != 0xe6U) {
        return 2;
    }
    unsigned vnni = c & bit_AVX512VNNI;
    unsigned amx = d & (1U << 24 /* tile */ | 1U << 25 /* int8 */ | 1U << 22 /* bf16 */);
    unsigned amx_all = 1U << 24 | 1U << 25 | 1U << 22;
    if (vnni == 0) {
        return 3;
    }
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || (a & (1U << 5)) == 0) {
        return 4;
    }
    return amx == amx_all && (state & 0x60000U) == 0x60000U ? 6 : 5;
}
#else
static int machine_isa(void)
{
    return -1;
}
#endif

static const char *effective_isa(void)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    const char *name = "other";
    for (size_t i = 0; i < MS_ARRAY_SIZE(isas); i++) {
        if (isas[i].isa == isa) {
            name = isas[i].name;
        }
    }
    return name;
}

const char *dn_isa(void)
{
    (void)pthread_mutex_lock(&lock);
    const char *name = fixed != NULL ? fixed : most;
    (void)pthread_mutex_unlock(&lock);
    int machine = name == NULL ? machine_isa() : 0;
    if (name == NULL) {
        name = machine < 0 ? "other" : isas[machine].name;
    }
    return name;
}

static int find_isa(const char *name, const struct isa_row **ret, struct ms_err *err)
{
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(isas) && strcmp(isas[i].name, name) != 0) {
        i++;
    }
    if (i == MS_ARRAY_SIZE(isas)) {
        return ms_fail(err, MS_E_INVALID,
                       "isa '%s' is unknown; known are sse41, avx, avx2, avx512_core, "
                       "avx512_core_vnni, avx512_core_bf16, avx512_core_amx",
                       name);
    }
    *ret = &isas[i];
    return 0;
}

/* Has this machine that row? */
static int judge_isa(const struct isa_row *row, struct ms_err *err)
{
    int machine = machine_isa();
    return row - isas <= machine
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED, "isa %s: this machine has only %s", row->name,
                         machine < 0 ? "less than sse41" : isas[machine].name);
}

/* Is it more than this process says it has? */
static int judge_cap(const struct isa_row *row, struct ms_err *err)
{
    const struct isa_row *cap = NULL;
    return most == NULL || (find_isa(most, &cap, NULL) == 0 && row <= cap)
               ? 0
               : ms_fail(err, MS_E_UNSUPPORTED,
                         "isa %s: this node serves %s at the most (`isa` of its msworker)",
                         row->name, most);
}

static int fix_isa(const char *name, struct ms_err *err)
{
    const struct isa_row *row = NULL;
    int rc = find_isa(name, &row, err);
    if (rc < 0) {
        return rc;
    }
    if (fixed != NULL) {
        return strcmp(fixed, name) == 0
                   ? 0
                   : ms_fail(err, MS_E_REFUSED,
                             "isa %s: this process runs with %s already, and oneDNN changes it "
                             "only at a start",
                             name, fixed);
    }
    rc = judge_isa(row, err);
    rc = rc < 0 ? rc : judge_cap(row, err);
    if (rc < 0) {
        return rc;
    }
    dnnl_status_t status = dnnl_set_max_cpu_isa(row->isa);
    fixed = effective_isa();
    if (status != dnnl_success || strcmp(fixed, name) != 0) {
        return ms_fail(err, MS_E_UNSUPPORTED, "isa %s: oneDNN %s stays at %s", name, dn_version(),
                       fixed);
    }
    return 0;
}

int dn_isa_set(const char *name, struct ms_err *err)
{
    int rc = 0;
    (void)pthread_mutex_lock(&lock);
    if (name != NULL && name[0] != '\0') {
        rc = fix_isa(name, err);
    } else if (fixed == NULL && most != NULL) {
        rc = fix_isa(most, err);
    } else if (fixed == NULL) {
        fixed = effective_isa();
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

int dn_isa_cap(const char *name, struct ms_err *err)
{
    const struct isa_row *row = NULL;
    int rc = find_isa(name, &row, err);
    rc = rc == 0 ? judge_isa(row, err) : rc;
    if (rc == 0) {
        (void)pthread_mutex_lock(&lock);
        most = row->name;
        (void)pthread_mutex_unlock(&lock);
    }
    return rc;
}

const char *dn_version(void)
{
    static char text[32];
    const dnnl_version_t *version = dnnl_version();
    (void)pthread_mutex_lock(&lock);
    snprintf(text, sizeof(text), "%d.%d.%d", version->major, version->minor, version->patch);
    (void)pthread_mutex_unlock(&lock);
    return text;
}

static long cache_bytes[2];

static void read_caches(void)
{
    cache_bytes[0] = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    cache_bytes[1] = sysconf(_SC_LEVEL2_CACHE_SIZE);
}

int64_t plan_cache_bytes(int level)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* where cores differ it may not say it again */
    (void)pthread_once(&once, read_caches);
    return cache_bytes[level - 1] > 0 ? cache_bytes[level - 1] : 0;
}
