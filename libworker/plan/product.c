/* product.c - a matrix product in the middle of one of our kernels, by oneDNN's code for it */
#include "libworker/plan/dnnl.h"

#include "libworker/kernel/kernel.h"

#include <oneapi/dnnl/dnnl.h>

int dn_product(const struct kernel_product *p)
{
    const dnnl_status_t status =
        dnnl_sgemm(p->is_a_turned ? 'T' : 'N', p->is_b_turned ? 'T' : 'N', p->m, p->n, p->k,
                   p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
    return status == dnnl_success ? 0 : MS_E_FAILED;
}
