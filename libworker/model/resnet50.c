/* resnet50.c - ResNet-50 (He et al., 2015) as MindSpore's CPU sample defines it
 *
 *     head     conv 7x7/2, 64; batch norm; ReLU; max pool 3x3/2
 *     layer1   3 blocks   64 ->  256    stride 1
 *     layer2   4 blocks  256 ->  512    stride 2 in the first 1x1 convolution of the first block
 *     layer3   6 blocks  512 -> 1024    stride 2
 *     layer4   3 blocks 1024 -> 2048    stride 2
 *     fc       mean over the image, dense
 *
 * 'Same' padding everywhere; gamma uniform, not one; convolutions without bias. */
#include "libworker/model/layers.h"

#include <stdio.h>

static const struct init xavier = {INIT_XAVIER_UNIFORM, 0};
static const struct init uniform = {INIT_UNIFORM, 0.07}; /* MindSpore's "Uniform" */

struct stage {
    const char *name;
    int blocks;
    int64_t mid_c, out_c, stride;
};

static const struct stage stages[] = {
    {"layer1", 3, 64, 256, 1},
    {"layer2", 4, 128, 512, 2},
    {"layer3", 6, 256, 1024, 2},
    {"layer4", 3, 512, 2048, 2},
};

/* <prefix>.conv<suffix>, then <prefix>.bn<suffix>. */
static int conv_norm(const struct layers *l, int x, const char *prefix, const char *suffix,
                     int64_t out_c, int64_t kernel, int64_t stride)
{
    char name[GRAPH_NAME_MAX];
    snprintf(name, sizeof(name), "%s.conv%s", prefix, suffix);
    x = layer_conv(l, x, name, out_c, kernel, stride, PADDING_SAME, xavier);
    snprintf(name, sizeof(name), "%s.bn%s", prefix, suffix);
    return layer_batch_norm(l, x, name, 0.99, 1e-5, uniform);
}

static int block(const struct layers *l, int x, const struct stage *stage, int index)
{
    char prefix[GRAPH_NAME_MAX];
    snprintf(prefix, sizeof(prefix), "%s.%c", stage->name, 'a' + index);
    int64_t stride = index == 0 ? stage->stride : 1;
    int y = conv_norm(l, x, prefix, "1", stage->mid_c, 1, stride);
    y = graph_relu(l->graph, y, l->err);
    y = graph_relu(l->graph, conv_norm(l, y, prefix, "2", stage->mid_c, 3, 1), l->err);
    y = conv_norm(l, y, prefix, "3", stage->out_c, 1, 1);
    int shortcut = x;
    if (index == 0) {
        shortcut = y < 0 ? y : conv_norm(l, x, prefix, "_down_sample", stage->out_c, 1, stride);
    }
    return graph_relu(l->graph, graph_add(l->graph, y, shortcut, l->err), l->err);
}

int network_resnet50(const struct layers *l, const struct model_input *input, int x)
{
    x = graph_relu(l->graph, conv_norm(l, x, "head", "1", 64, 7, 2), l->err);
    x = layer_max_pool(l, x, 3, 2, PADDING_SAME);
    for (size_t s = 0; s < MS_ARRAY_SIZE(stages); s++) {
        for (int i = 0; i < stages[s].blocks; i++) {
            x = block(l, x, &stages[s], i);
        }
    }
    x = layer_global_mean(l, x);
    return layer_dense(l, x, "fc", input->classes, xavier, uniform);
}
