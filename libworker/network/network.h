/* network.h - networks as lists of layers: read, written, and built into a graph
 *
 *     known/            the networks that have a name, in the program
 *     layer_kinds.c     what a layer of each kind may say, and the ops that it is
 *     inputs.c          what a layer reads by name
 *     network.c         the document around the list
 *
 * A network is a YAML or JSON document: a list of layers, or a map with that list under `layers`.
 * docs/networks.md describes it. Documents are read by one thread; a graph depends on the text,
 * the input and nothing else. */
#ifndef NETWORK_H
#define NETWORK_H

#include "libworker/graph/graph.h"
#include "libworker/schema/tree.h"

#include <jansson.h>
#include <stddef.h>

enum network_loss {
    NETWORK_LOSS_SOFTMAX_CE,
    NETWORK_LOSS_MSE,
    NETWORK_LOSS_L1,
    NETWORK_LOSS_HUBER,
    NETWORK_LOSS_BCE
};

struct network_input { /* what one batch looks like */
    int64_t batch;
    int64_t channels, height, width; /* images; features: channels = features, height = width = 1 */
    int64_t classes;                 /* or target width of the other losses */
    double label_smoothing;          /* of classes, in training: 0 none */
    const double *class_weights;     /* NULL: 1 each; borrowed for the graph's life */
    int64_t n_class_weights;         /* as many as classes */
    int has_soft_labels; /* of a sample a share of each class, not its number; no tokens */
    int has_ignored;     /* a label that does not count */
    int32_t ignored;
    double huber_delta; /* of that loss, above 0 */
    int64_t tokens;     /* of a sample, each with a class; 0: a sample has one */
};

struct network; /* opaque */

/* The name of a network that the program has: row i, or NULL past the end. */
const char *network_known(size_t i);

/* The one of that name; MS_E_INVALID names those that there are. Returns owned. */
int network_by_name(const char *name, struct network **ret, struct ms_err *err);

/* What a document says; node is borrowed for the life of the network. name: what it is called where
 * the document does not say it. Errors begin with the place. Returns owned. */
int network_read(const struct tree_node *node, const char *name, struct network **ret,
                 struct ms_err *err);
/* The same from text; origin stands for the file in errors, and is borrowed, too. */
int network_parse(const char *text, size_t size, const char *origin, const char *name,
                  struct network **ret, struct ms_err *err);

void network_destroy(struct network *network); /* NULL allowed */

/* What the document calls it, or what it was given; for messages and files. Borrowed. */
const char *network_name(const struct network *network);
/* One line about it for people; "" where the document has none. Borrowed. */
const char *network_summary(const struct network *network);

/* An object with all defaults; network_read of its text makes the same graph. NULL without memory.
 * Owned. */
json_t *network_write(const struct network *network);
/* The same as canonical text, with sorted keys. Returns owned (malloc), or NULL without memory;
 * *ret_size without the NUL. */
char *network_format(const struct network *network, size_t *ret_size);

/* Forward ops from the data to the output, label, and loss; the caller differentiates. Errors
 * (MS_E_INVALID) name the place and the layer, with the shapes that it gets and wants, or what the
 * network wants of its input and what that is. Returns owned. */
int network_build(const struct network *network, const struct network_input *input,
                  enum network_loss loss, struct graph **ret, struct ms_err *err);

/* A layer that makes something of its own, which lists do not. */
struct network_layer {
    char *name;       /* "layer1.a.conv1"; without a name its kind and number: "layer1.a.relu2" */
    const char *kind; /* "conv2d"; borrowed from the program */
    int first_op;     /* of the graph; a residual has its addition, not the ops of its lists */
    int n_ops;
    int output; /* the tensor that it makes */
};

struct network_layers {
    struct network_layer *at; /* in the order of their ops; those of a repeat each time */
    size_t n, room;
};

/* network_build, and which layer each op is of; those of the loss are no layer's. Both owned. */
int network_build_layers(const struct network *network, const struct network_input *input,
                         enum network_loss loss, struct network_layers **ret_layers,
                         struct graph **ret, struct ms_err *err);
void network_layers_destroy(struct network_layers *layers); /* NULL allowed */

/* Of one that is known by its name. */
int network_build_known(const char *name, const struct network_input *input, enum network_loss loss,
                        struct graph **ret, struct ms_err *err);

#endif
