/* weights_names.c - what tensors are called by others */
#include "libworker/data/weights_names.h"

#include "proto/macros.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *ours, *torch;
} parts[] = {{".gamma", ".weight"},
             {".beta", ".bias"},
             {".moving_mean", ".running_mean"},
             {".moving_variance", ".running_var"}};

/* "" where it has none. */
static const char *part_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot : "";
}

static const char *with_part(const char *name, const char *part, char *buf, size_t size)
{
    snprintf(buf, size, "%.*s%s", (int)(strlen(name) - strlen(part_of(name))), name, part);
    return buf;
}

const char *weights_name_to_torch(const char *name, char *buf, size_t size)
{
    const char *part = part_of(name);
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        if (strcmp(part_of(name), parts[i].ours) == 0) {
            part = parts[i].torch;
        }
    }
    return with_part(name, part, buf, size);
}

const char *weights_name_from_torch(const char *name, char *buf, size_t size)
{
    const char *part = part_of(name);
    for (size_t i = 0; i < MS_ARRAY_SIZE(parts); i++) {
        if (strcmp(part_of(name), parts[i].torch) == 0) {
            part = parts[i].ours;
        }
    }
    return with_part(name, part, buf, size);
}

/* The word before the first dot is one of those. */
static const char *behind_word(const char *name, const char *const *words, size_t n_words)
{
    const char *dot = strchr(name, '.');
    for (size_t i = 0; dot != NULL && i < n_words; i++) {
        const size_t n = strlen(words[i]);
        if (strncmp(name, words[i], n) == 0 && name + n == dot) {
            return dot + 1;
        }
    }
    return NULL;
}

const char *weights_name_of_slot(const char *name)
{
    static const char *const words[] = {"moments",     "moment1",       "moment2",
                                        "mean_square", "mean_gradient", "average"};
    return behind_word(name, words, MS_ARRAY_SIZE(words));
}

/* MindSpore 2.10: Momentum, SGD, Adam, AdamWeightDecay, RMSProp, Adagrad, FTRL, Lamb. */
const char *weights_name_of_their_slot(const char *name)
{
    static const char *const words[] = {"moments", "moment", "moment1",    "moment2", "accum",
                                        "stat",    "linear", "mean_grad",  "lamb_m",  "lamb_v",
                                        "adam_m",  "adam_v", "mean_square"};
    return behind_word(name, words, MS_ARRAY_SIZE(words));
}

const char *weights_name_of_average(const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "average.%s", name);
    return buf;
}

int weights_name_is_count(const char *name)
{
    return strcmp(part_of(name), ".num_batches_tracked") == 0;
}
