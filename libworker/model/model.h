/* model.h - the named networks, built from layers, exactly as the MindSpore samples define them */
#ifndef MODEL_H
#define MODEL_H

#include "libworker/graph/graph.h"

enum model_loss { MODEL_LOSS_SOFTMAX_CE, MODEL_LOSS_MSE };

struct model_input { /* what one batch looks like */
    int64_t batch;
    int64_t channels, height, width; /* images; features: channels = features, height = width = 1 */
    int64_t classes;                 /* or target width for mse */
};

/* Names: resnet50, lenet5, mnist, linear, and cifar_small (the quickstart's convolutional network).
 * Row i or NULL past the end. */
struct model_info {
    const char *name;
    const char *summary; /* one line for people */
};
const struct model_info *model_at(size_t i);

/* Builds forward ops, loss and output; the caller differentiates. Errors name the network, what it
 * needs (lenet5: Cx32x32) and what it got. Returns owned. */
int model_build(const char *name, const struct model_input *input, enum model_loss loss,
                struct graph **ret, struct ms_err *err);

#endif
