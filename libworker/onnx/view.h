/* view.h - how a value of the graph lies in what a layer makes; inside of onnx.h
 *
 * ONNX cuts and turns tensors; a layer makes one of three forms, images (n, c, h, w), sequences
 * (n, tokens, c) or rows (n, c). A view says for each dimension of a value which axes of the form
 * it runs over, each an atom:
 *
 *     (n, c, h, w)                     n | c | h | w       an image
 *     reshaped to (n, 2, c/2, h, w)    n | c: 2 in steps of c/2 | c: c/2 in steps of 1 | h | w
 *     turned, reshaped to (n, c, h, w) n | c: c/2 in steps of 1, 2 in steps of c/2 | h | w
 *
 * Atoms of one dimension stand in C order, of size 1 there are none. So it is known
 * whether a value is an image again, a sequence, heads of attention, or shuffled channels,
 * whichever ops an exporter took to get there. Functions of what lies in a struct view alone; no
 * memory. */
#ifndef ONNX_VIEW_H
#define ONNX_VIEW_H

#include <stdint.h>

enum { VIEW_ATOMS_MAX = 16, VIEW_DIMS_MAX = 8 };

/* Sizes that are not numbers: what only the data will say, the batch's, and multiples of it, which
 * are SIZE_UNKNOWN + k for k to SIZE_BATCHES_MAX. */
#define SIZE_UNKNOWN     INT64_MIN
#define SIZE_BATCH       (INT64_MIN + 1)
#define SIZE_BATCHES_MAX ((int64_t)1 << 32)

/* Product and exact quotient of sizes; SIZE_UNKNOWN: there is none that is known. */
int64_t size_times(int64_t a, int64_t b);
int64_t size_over(int64_t a, int64_t b);

enum view_form { VIEW_IMAGES, VIEW_SEQUENCE, VIEW_ROWS };
/* Tokens are AXIS_HEIGHT, of one AXIS_WIDTH. */
enum view_axis { AXIS_SAMPLE, AXIS_CHANNEL, AXIS_HEIGHT, AXIS_WIDTH, VIEW_AXES };

struct view_atom {
    enum view_axis axis;
    int64_t size, step;
    int dim; /* in which it is */
};

struct view {
    enum view_form form;
    int64_t size[VIEW_AXES];  /* of what the layer makes */
    int64_t first[VIEW_AXES]; /* where along each axis the value begins */
    int n_dims;
    int n_atoms;
    struct view_atom atom[VIEW_ATOMS_MAX]; /* in the order of dimensions */
};

/* All of a form. size: AXIS_SAMPLE first. */
struct view view_whole(enum view_form form, const int64_t size[VIEW_AXES]);
int64_t view_dim(const struct view *v, int dim);
/* Atoms of a dimension; the first one, and how many. */
int view_atoms(const struct view *v, int dim, const struct view_atom **ret);

/* Each returns 0, or -1 where the value cannot be seen so, and nothing changed. */
int view_transpose(struct view *v, const int64_t *perm, int n);
/* Sizes as Reshape has them: one may be -1, 0 is that of the same dimension. */
int view_reshape(struct view *v, const int64_t *sizes, int n);
void view_flatten(struct view *v); /* the first dimension, and all others as one */
int view_take(struct view *v, int dim, int64_t index);               /* the dimension goes */
int view_cut(struct view *v, int dim, int64_t begin, int64_t count); /* ... stays */

int view_equal(const struct view *a, const struct view *b);
int view_is_whole(const struct view *v, enum view_form form);
int view_is_pixels(const struct view *v); /* (n, h, w, c) of images */
/* The last dimension is all channels, and the others are all the rest, in any order. */
int view_is_tokens(const struct view *v);
/* Are channels cut? first and count; groups more than 1: and shuffled. -1: they are taken apart. */
int view_channels(const struct view *v, int64_t *ret_count, int64_t *ret_groups);
/* Height and width, which stand together, become tokens of a sequence. -1: they do not. */
int view_make_tokens(struct view *v);
/* The form has other channels from now on; what is seen of them stands in one dimension. */
void view_set_channels(struct view *v, int64_t channels);
/* Shuffled channels stand in their order. */
void view_keep_channels(struct view *v);

/* Of queries, keys or values: (n, heads, tokens, width), or (n heads, tokens, width); is_turned:
 * the last two changed places. Which heads there are, and of how many channels; -1: it is none. */
int view_heads(const struct view *v, int is_turned, int64_t *ret_heads, int64_t *ret_width);

#endif
