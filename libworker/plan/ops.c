/* ops.c - the rows of all ops: which fuse, how each is lowered */
#include "libworker/plan/ops.h"

#include "proto/macros.h"

#include <assert.h>

static const struct plan_op rows[] = {
    {OP_CONV2D, fuse_relu, lower_conv},
    {OP_CONV_TRANSPOSE2D, NULL, lower_transposed},
    {OP_BIAS, NULL, lower_bias},
    {OP_EMBEDDING, NULL, lower_embedding},
    {OP_TOKENS, NULL, lower_tokens},
    {OP_ATTENTION, NULL, lower_attention},
    {OP_LSTM, NULL, lower_recurrent},
    {OP_GRU, NULL, lower_recurrent},
    {OP_BATCH_NORM, fuse_batch_norm, lower_batch_norm},
    {OP_LAYER_NORM, NULL, lower_norm},
    {OP_GROUP_NORM, NULL, lower_norm},
    {OP_RELU, NULL, lower_elementwise},
    {OP_RELU6, NULL, lower_elementwise},
    {OP_LEAKY_RELU, NULL, lower_activation},
    {OP_ELU, NULL, lower_activation},
    {OP_GELU, NULL, lower_activation},
    {OP_GELU_TANH, NULL, lower_activation},
    {OP_SILU, NULL, lower_activation},
    {OP_HARD_SWISH, NULL, lower_activation},
    {OP_SIGMOID, NULL, lower_activation},
    {OP_TANH, NULL, lower_activation},
    {OP_SOFTMAX, NULL, lower_softmax},
    {OP_DROPOUT, NULL, lower_dropout},
    {OP_ADD, fuse_relu, lower_elementwise},
    {OP_MUL, NULL, lower_elementwise},
    {OP_GATE, NULL, lower_gate},
    {OP_SCALE, NULL, lower_scale},
    {OP_LINEAR, NULL, lower_linear},
    {OP_MAX_POOL, NULL, lower_pool},
    {OP_AVG_POOL, NULL, lower_pool},
    {OP_PAD, NULL, lower_resample},
    {OP_UPSAMPLE, NULL, lower_resample},
    {OP_CONCAT, NULL, lower_concat},
    {OP_SLICE, NULL, lower_moved},
    {OP_SHUFFLE, NULL, lower_moved},
    {OP_CLASS_TOKEN, NULL, lower_class_token},
    {OP_FLATTEN, NULL, lower_same},
    {OP_DENSE, fuse_relu, lower_dense},
    {OP_SOFTMAX_CE, NULL, lower_loss},
    {OP_MSE, NULL, lower_loss},
    {OP_L1, NULL, lower_loss},
    {OP_HUBER, NULL, lower_loss},
    {OP_BCE, NULL, lower_loss},
    {OP_CONV2D_BWD_DATA, NULL, lower_conv_bwd_data},
    {OP_CONV2D_BWD_WEIGHTS, NULL, lower_conv_bwd_weights},
    {OP_CONV_TRANSPOSE2D_BWD_DATA, NULL, lower_transposed_bwd_data},
    {OP_CONV_TRANSPOSE2D_BWD_WEIGHTS, NULL, lower_transposed_bwd_weights},
    {OP_BIAS_BWD, NULL, lower_bias_bwd},
    {OP_EMBEDDING_BWD, NULL, lower_embedding_bwd},
    {OP_TOKENS_BWD, NULL, lower_tokens_bwd},
    {OP_ATTENTION_BWD, NULL, lower_attention_bwd},
    {OP_RECURRENT_BWD, NULL, lower_recurrent_bwd},
    {OP_BATCH_NORM_BWD, NULL, lower_batch_norm_bwd},
    {OP_NORM_BWD, NULL, lower_norm_bwd},
    {OP_RELU_BWD, fuse_mask, lower_relu_bwd},
    {OP_ACTIVATION_BWD, NULL, lower_activation_bwd},
    {OP_SOFTMAX_BWD, NULL, lower_softmax_bwd},
    {OP_DROPOUT_BWD, NULL, lower_dropout},
    {OP_MUL_BWD, NULL, lower_elementwise},
    {OP_GATE_BWD_DATA, NULL, lower_gate},
    {OP_GATE_BWD, NULL, lower_gate_bwd},
    {OP_SCALE_BWD_DATA, NULL, lower_scale},
    {OP_SCALE_BWD_WEIGHTS, NULL, lower_scale_bwd_weights},
    {OP_LINEAR_BWD, NULL, lower_linear},
    {OP_MAX_POOL_BWD, NULL, lower_pool_bwd},
    {OP_AVG_POOL_BWD, NULL, lower_pool_bwd},
    {OP_PAD_BWD, NULL, lower_resample},
    {OP_UPSAMPLE_BWD, NULL, lower_resample},
    {OP_CONCAT_BWD, NULL, lower_concat_bwd},
    {OP_SLICE_BWD, NULL, lower_moved},
    {OP_SHUFFLE_BWD, NULL, lower_moved},
    {OP_CLASS_TOKEN_BWD_DATA, NULL, lower_class_token},
    {OP_CLASS_TOKEN_BWD_WEIGHTS, NULL, lower_class_token_bwd},
    {OP_FLATTEN_BWD, NULL, lower_same},
    {OP_DENSE_BWD_DATA, NULL, lower_dense_bwd_data},
    {OP_DENSE_BWD_WEIGHTS, NULL, lower_dense_bwd_weights},
    {OP_SOFTMAX_CE_BWD, fuse_loss, NULL},
    {OP_TARGET_BWD, fuse_loss, NULL},
    {OP_SUM, NULL, lower_sum},
};

const struct plan_op *plan_op(enum op_kind kind)
{
    size_t i = 0;
    while (i < MS_ARRAY_SIZE(rows) && rows[i].kind != kind) {
        i++;
    }
    assert(i < MS_ARRAY_SIZE(rows)); /* every kind has a row */
    return &rows[i];
}
