/* mnist.c - the network of MindSpore's startup_method sample: one dense layer, ReLU on the logits
 */
#include "libworker/model/layers.h"

int network_mnist(const struct layers *l, const struct model_input *input, int x)
{
    const struct init normal = {INIT_NORMAL, 0.01}; /* MindSpore's "normal" */
    const struct init zero = {INIT_CONSTANT, 0};
    x = graph_flatten(l->graph, x, l->err);
    x = layer_dense(l, x, "fc", input->classes, normal, zero);
    return graph_relu(l->graph, x, l->err);
}
