/* op.c - the rows of all ops */
#include "libworker/graph/op.h"

#include "libworker/graph/graph_impl.h"

#include <assert.h>
#include <stddef.h>

const struct op_row *op_row(enum op_kind kind)
{
    static const struct op_family *const families[] = {
        &op_conv,     &op_transposed, &op_norm,        &op_sample_norm, &op_pool,
        &op_dense,    &op_loss,       &op_elementwise, &op_activation,  &op_concat,
        &op_channels, &op_resample,   &op_sequence,    &op_recurrent,   &op_product};
    const struct op_row *found = NULL;
    for (size_t f = 0; f < MS_ARRAY_SIZE(families) && found == NULL; f++) {
        for (int i = 0; i < families[f]->n; i++) {
            found = families[f]->rows[i].kind == kind ? &families[f]->rows[i] : found;
        }
    }
    assert(found != NULL); /* every kind has a row */
    return found;
}
