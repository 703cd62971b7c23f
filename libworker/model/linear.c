/* linear.c - one dense layer, for the nonlinear regression sample (its features are x^2 and y^3) */
#include "libworker/model/layers.h"

int network_linear(const struct layers *l, const struct model_input *input, int x)
{
    const struct init normal = {INIT_NORMAL, 0.02}; /* Normal(0.02) for both, as the sample */
    x = graph_flatten(l->graph, x, l->err);
    return layer_dense(l, x, "fc", input->classes, normal, normal);
}
