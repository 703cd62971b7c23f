/* write_node.c - nodes of an ONNX file, their attributes, and the numbers that they read */
#include "libworker/onnx/file.h"
#include "libworker/onnx/write_impl.h"

#include "libworker/graph/op.h"

#include <stdio.h>

/* AttributeProto.AttributeType */
enum { OF_FLOAT = 1, OF_INT = 2, OF_STRING = 3, OF_TENSOR = 4, OF_INTS = 7, OF_STRINGS = 8 };

/* ---- a node ---- */

void write_begin(struct write *w, const char *type)
{
    ms_message_clear(&w->node);
    ms_message_put_text(&w->node, NODE_OP_TYPE, type);
}

void write_in(struct write *w, const char *name)
{
    ms_message_put_text(&w->node, NODE_INPUT, name);
}

void write_in_tensor(struct write *w, int tensor)
{
    char name[WRITE_NAME_MAX];
    write_in(w, write_name(w, tensor, name));
}

void write_end(struct write *w, const char *makes)
{
    ms_message_put_text(&w->node, NODE_OUTPUT, makes);
    ms_message_put_text(&w->node, NODE_NAME, makes);
    ms_message_put(&w->nodes, GRAPH_NODE, &w->node);
}

void write_end_op(struct write *w, const struct op *op)
{
    char name[WRITE_NAME_MAX];
    write_end(w, write_name(w, op->out[0], name));
}

const char *write_part_of(const struct op *op, const char *part, char buf[WRITE_NAME_MAX])
{
    snprintf(buf, WRITE_NAME_MAX, "/%s_%d/%s", op_row(op->kind)->name, op->out[0], part);
    return buf;
}

/* ---- attributes ---- */

static void put_attribute(struct write *w, struct ms_message *attribute, const char *name, int type)
{
    ms_message_put_text(attribute, ATTRIBUTE_NAME, name);
    ms_message_put_int(attribute, ATTRIBUTE_TYPE, type);
    ms_message_put(&w->node, NODE_ATTRIBUTE, attribute);
    ms_message_fini(attribute);
}

void write_put_ints(struct write *w, const char *name, const int64_t *values, int n)
{
    struct ms_message attribute = {.bytes = NULL};
    for (int i = 0; i < n; i++) {
        ms_message_put_int(&attribute, ATTRIBUTE_INTS, values[i]);
    }
    put_attribute(w, &attribute, name, OF_INTS);
}

void write_put_int(struct write *w, const char *name, int64_t value)
{
    struct ms_message attribute = {.bytes = NULL};
    ms_message_put_int(&attribute, ATTRIBUTE_I, value);
    put_attribute(w, &attribute, name, OF_INT);
}

void write_put_real(struct write *w, const char *name, double value)
{
    struct ms_message attribute = {.bytes = NULL};
    ms_message_put_float(&attribute, ATTRIBUTE_F, (float)value);
    put_attribute(w, &attribute, name, OF_FLOAT);
}

void write_put_text(struct write *w, const char *name, const char *value)
{
    struct ms_message attribute = {.bytes = NULL};
    ms_message_put_text(&attribute, ATTRIBUTE_S, value);
    put_attribute(w, &attribute, name, OF_STRING);
}

void write_put_texts(struct write *w, const char *name, const char *value, int n)
{
    struct ms_message attribute = {.bytes = NULL};
    for (int i = 0; i < n; i++) {
        ms_message_put_text(&attribute, ATTRIBUTE_STRINGS, value);
    }
    put_attribute(w, &attribute, name, OF_STRINGS);
}

/* ---- numbers that nodes read ---- */

/* n < 0: a scalar. */
static void put_tensor(struct ms_message *to, unsigned field, const char *name, int type, int n,
                       const void *bytes, size_t size)
{
    struct ms_message tensor = {.bytes = NULL};
    if (n >= 0) {
        ms_message_put_int(&tensor, TENSOR_DIMS, n);
    }
    ms_message_put_int(&tensor, TENSOR_DATA_TYPE, type);
    ms_message_put_text(&tensor, TENSOR_NAME, name);
    ms_message_put_bytes(&tensor, TENSOR_RAW_DATA, bytes, size);
    ms_message_put(to, field, &tensor);
    ms_message_fini(&tensor);
}

void write_constant_ints(struct write *w, const char *name, const int64_t *values, int n)
{
    put_tensor(&w->constants, GRAPH_INITIALIZER, name, ONNX_INT64, n, values,
               (n < 0 ? 1 : (size_t)n) * sizeof(*values));
}

void write_constant_reals(struct write *w, const char *name, const float *values, int n)
{
    put_tensor(&w->constants, GRAPH_INITIALIZER, name, ONNX_FLOAT, n, values,
               (size_t)n * sizeof(*values));
}

void write_constant_real(struct write *w, const char *name, double value)
{
    const float real = (float)value;
    put_tensor(&w->constants, GRAPH_INITIALIZER, name, ONNX_FLOAT, -1, &real, sizeof(real));
}

const char *write_filled(struct write *w, const struct op *op, const char *part,
                         const struct shape *shape, double value, char buf[WRITE_NAME_MAX])
{
    char of[WRITE_NAME_MAX];
    struct ms_message attribute = {.bytes = NULL};
    const float real = (float)value;
    snprintf(buf, WRITE_NAME_MAX, "%s_shape", part);
    write_part_of(op, buf, of);
    write_constant_ints(w, of, shape->dim, shape->n_dims);
    write_begin(w, "ConstantOfShape");
    write_in(w, of);
    put_tensor(&attribute, ATTRIBUTE_T, "", ONNX_FLOAT, 1, &real, sizeof(real));
    put_attribute(w, &attribute, "value", OF_TENSOR);
    write_end(w, write_part_of(op, part, buf));
    return buf;
}

void write_transpose(struct write *w, const char *x, const int64_t *perm, int n, const char *makes)
{
    write_begin(w, "Transpose");
    write_in(w, x);
    write_put_ints(w, "perm", perm, n);
    write_end(w, makes);
}

void write_reshape(struct write *w, const struct op *op, const char *x, const char *part,
                   const int64_t *sizes, int n, const char *makes)
{
    char name[WRITE_NAME_MAX];
    write_constant_ints(w, write_part_of(op, part, name), sizes, n);
    write_begin(w, "Reshape");
    write_in(w, x);
    write_in(w, name);
    write_end(w, makes);
}
