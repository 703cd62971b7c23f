/* rank.c - which nodes a job gets, and which rank each of them */
#include "daemon/sched/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- order --------------------------------------------------------------------------------------
 */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int natural_compare(const char *a, const char *b)
{
    const char *const first = a;
    const char *const second = b;
    while (*a != '\0' && *b != '\0') {
        if (is_digit(*a) && is_digit(*b)) {
            while (*a == '0') {
                a++;
            }
            while (*b == '0') {
                b++;
            }
            size_t na = strspn(a, "0123456789");
            size_t nb = strspn(b, "0123456789");
            int order = na != nb ? (na < nb ? -1 : 1) : memcmp(a, b, na);
            if (order != 0) {
                return order;
            }
            a += na;
            b += nb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    if (*a != *b) {
        return *a == '\0' ? -1 : 1;
    }
    return strcmp(first, second); /* "01" and "1" differ still */
}

/* A node on its way into an order: its host's name stands for the host. */
struct candidate {
    struct node *node;
    const char *host;
    uint32_t n_on_host;
};

static int by_host_id(const void *a, const void *b)
{
    const struct candidate *x = (const struct candidate *)a;
    const struct candidate *y = (const struct candidate *)b;
    int order = strcmp(x->node->info.host_id, y->node->info.host_id);
    return order != 0 ? order : natural_compare(x->host, y->host);
}

static int by_host_and_id(const void *a, const void *b)
{
    const struct candidate *x = (const struct candidate *)a;
    const struct candidate *y = (const struct candidate *)b;
    int order = natural_compare(x->host, y->host);
    if (order == 0) {
        order = strcmp(x->node->info.host_id, y->node->info.host_id);
    }
    return order != 0 ? order : natural_compare(x->node->info.node_id, y->node->info.node_id);
}

/* Fullest hosts first: as few hosts as possible carry the job. */
static int by_fullness(const void *a, const void *b)
{
    const struct candidate *x = (const struct candidate *)a;
    const struct candidate *y = (const struct candidate *)b;
    if (x->n_on_host != y->n_on_host) {
        return x->n_on_host > y->n_on_host ? -1 : 1;
    }
    return by_host_and_id(a, b);
}

/* The dynamic cluster orders hosts by address, as MindSpore does; else their names say more. */
static const char *host_of(struct sched *s, const struct node *node)
{
    const struct node_info *info = &node->info;
    const char *colon = strrchr(info->data_address, ':');
    if (s->mode->orders_by_address && colon != NULL) {
        return emit_text(s, "%.*s", (int)(colon - info->data_address), info->data_address);
    }
    return info->host_name;
}

/* One name and one count for all nodes of a host, whatever name each of them uses. */
static void group_hosts(struct candidate *candidates, size_t n)
{
    qsort(candidates, n, sizeof(*candidates), by_host_id);
    size_t first = 0;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && candidates[i].node->info.host_id[0] != '\0' &&
            strcmp(candidates[i].node->info.host_id, candidates[first].node->info.host_id) == 0) {
            candidates[i].host = candidates[first].host;
            continue;
        }
        for (size_t j = first; j < i; j++) {
            candidates[j].n_on_host = (uint32_t)(i - first);
        }
        first = i;
    }
}

/* Best fit: the smallest host that holds all moves to the front. */
static void prefer_one_host(struct candidate *candidates, size_t n, uint32_t want)
{
    size_t best = n;
    for (size_t i = 0; i < n; i += candidates[i].n_on_host) {
        if (candidates[i].n_on_host >= want) {
            best = i; /* fullest first: the last one that fits is the smallest */
        }
    }
    for (uint32_t i = 0; best < n && best > 0 && i < want; i++) {
        struct candidate swap = candidates[i];
        candidates[i] = candidates[best + i];
        candidates[best + i] = swap;
    }
}

/* Ids 0 to want-1 are ranks: MindSpore's meaning of a numeric MS_NODE_ID. */
static bool order_by_numbers(struct node **nodes, uint32_t want, struct node **scratch)
{
    memset(scratch, 0, want * sizeof(struct node *));
    for (uint32_t i = 0; i < want; i++) {
        uint64_t rank = 0;
        if (!id_is_rank(nodes[i]->info.node_id, &rank) || rank >= want || scratch[rank] != NULL) {
            return false;
        }
        scratch[rank] = nodes[i];
    }
    memcpy(nodes, scratch, want * sizeof(struct node *));
    return true;
}

void rank_choose(struct sched *s, struct node **nodes, size_t n, uint32_t want)
{
    struct candidate *candidates = emit_alloc(s, n * sizeof(*candidates));
    for (size_t i = 0; i < n; i++) {
        candidates[i].node = nodes[i];
        candidates[i].n_on_host = 0;
        candidates[i].host = host_of(s, nodes[i]);
    }
    group_hosts(candidates, n);
    if (n > want) {
        qsort(candidates, n, sizeof(*candidates), by_fullness);
        prefer_one_host(candidates, n, want);
    }
    qsort(candidates, want, sizeof(*candidates), by_host_and_id);
    for (uint32_t i = 0; i < want; i++) {
        nodes[i] = candidates[i].node;
    }
    if (s->mode->ids_are_ranks) {
        order_by_numbers(nodes, want, emit_alloc(s, want * sizeof(struct node *)));
    }
}

/* ---- the least instruction set ------------------------------------------------------------------
 *
 * oneDNN's names as sets of features. The order is partial (avx2_vnni is not part of avx512_core),
 * so the least of several is the largest known set that is part of all. Where oneDNN 2 and 3
 * disagree on what a name includes, the smaller reading is taken: a lower cap always runs. */

enum {
    F_SSE41 = 1,
    F_AVX = 2,
    F_AVX2 = 4,
    F_AVX_VNNI = 8,
    F_AVX2_VNNI_2 = 16,
    F_CORE = 32,
    F_VNNI = 64,
    F_BF16 = 128,
    F_FP16 = 256,
    F_AMX = 512,
    F_AMX_FP16 = 1024,
    S_AVX2 = F_SSE41 | F_AVX | F_AVX2,
    S_CORE = S_AVX2 | F_CORE,
    S_BF16 = S_CORE | F_VNNI | F_BF16,
};

static const struct {
    const char *name;
    unsigned features;
} isas[] = {
    {"sse41", F_SSE41},
    {"avx", F_SSE41 | F_AVX},
    {"avx2", S_AVX2},
    {"avx2_vnni", S_AVX2 | F_AVX_VNNI},
    {"avx2_vnni_2", S_AVX2 | F_AVX_VNNI | F_AVX2_VNNI_2},
    {"avx512_core", S_CORE},
    {"avx512_core_vnni", S_CORE | F_VNNI},
    {"avx512_core_bf16", S_BF16},
    {"avx512_core_fp16", S_BF16 | F_FP16 | F_AVX_VNNI},
    {"avx512_core_amx", S_BF16 | F_AMX},
    {"avx512_core_amx_fp16", S_BF16 | F_FP16 | F_AVX_VNNI | F_AMX | F_AMX_FP16},
};

static unsigned isa_features(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(isas); i++) {
        if (strcmp(isas[i].name, name) == 0) {
            return isas[i].features;
        }
    }
    return F_SSE41; /* a name of tomorrow: what every x86-64 of oneDNN's has */
}

const char *isa_least(struct node *const *nodes, uint32_t n)
{
    unsigned common = ~0U;
    bool same = true;
    for (uint32_t i = 0; i < n; i++) {
        same = same && strcmp(nodes[i]->info.isa, nodes[0]->info.isa) == 0;
        common &= isa_features(nodes[i]->info.isa);
    }
    if (same) {
        return nodes[0]->info.isa;
    }
    const char *least = isas[0].name;
    for (size_t i = 0; i < MS_ARRAY_SIZE(isas); i++) {
        if ((isas[i].features & ~common) == 0) {
            least = isas[i].name;
        }
    }
    return least;
}
