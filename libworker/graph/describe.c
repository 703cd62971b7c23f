/* describe.c - a graph as text for people */
#include "libworker/graph/graph_impl.h"

#include "proto/grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct text {
    char *buf;
    size_t used, size;
    int failed;
};

static void put(struct text *text, const char *fmt, ...) MS_PRINTF(2, 3);

static void put(struct text *text, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
    char *buf = ms_grow(text->buf, text->used, length + 1, 1, &text->size);
    if (buf == NULL) {
        text->failed = 1;
        return;
    }
    text->buf = buf;
    for (size_t i = 0; i <= length; i++) {
        text->buf[text->used + i] = line[i];
    }
    text->used += length;
}

static void put_tensors(struct text *text, const struct graph *graph, const int *tensors, int n)
{
    for (int i = 0; i < n; i++) {
        char shape[96];
        if (i > 0) {
            put(text, ", ");
        }
        if (tensors[i] < 0) {
            put(text, "-");
            continue;
        }
        const struct tensor *tensor = graph->tensors[tensors[i]];
        put(text, "%s %s", tensor->name, shape_format(&tensor->shape, shape, sizeof(shape)));
    }
}

char *graph_describe(const struct graph *graph)
{
    struct text text = {malloc(4096), 0, 4096, 0};
    if (text.buf == NULL) {
        return NULL;
    }
    int64_t elements = 0;
    for (int i = 0; i < graph->n_params; i++) {
        elements += shape_count(&graph->tensors[graph->params[i]]->shape);
    }
    put(&text, "%s: %d ops, %d parameters with %lld elements, %d states\n", graph->name,
        graph->n_ops, graph->n_params, (long long)elements, graph->n_states);
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = graph->ops[i];
        put(&text, "%4d %s: ", i, op_row(op->kind)->name);
        put_tensors(&text, graph, op->in, op->n_in);
        put(&text, " -> ");
        put_tensors(&text, graph, op->out, op->n_out);
        const struct op_window *w = &op->window;
        if (w->kernel_h > 0) {
            put(&text, " [%lldx%lld / %lldx%lld, pad %lld %lld %lld %lld", (long long)w->kernel_h,
                (long long)w->kernel_w, (long long)w->stride_h, (long long)w->stride_w,
                (long long)w->pad_top, (long long)w->pad_left, (long long)w->pad_bottom,
                (long long)w->pad_right);
            if (w->gap_h > 0 || w->gap_w > 0) {
                put(&text, ", dilation %lldx%lld", (long long)w->gap_h + 1,
                    (long long)w->gap_w + 1);
            }
            if (w->more_h > 0 || w->more_w > 0) {
                put(&text, ", output padding %lldx%lld", (long long)w->more_h,
                    (long long)w->more_w);
            }
            if (op->groups > 1) {
                put(&text, ", %lld groups", (long long)op->groups);
            }
            put(&text, "]");
        }
        if (op->groups > 1 && w->kernel_h == 0) {
            put(&text, " [%lld groups]", (long long)op->groups);
        }
        if (op->kind == OP_PAD) {
            put(&text, " [pad %lld %lld %lld %lld]", (long long)w->pad_top, (long long)w->pad_left,
                (long long)w->pad_bottom, (long long)w->pad_right);
        }
        if (op->kind == OP_UPSAMPLE) {
            static const char *const modes[] = {"nearest", "linear", "linear by corners"};
            put(&text, " [%lldx%lld, %s]", (long long)w->stride_h, (long long)w->stride_w,
                modes[op->mode]);
        }
        if (op->size > 0) {
            put(&text, " [%lld from %lld on]", (long long)op->size, (long long)op->first);
        }
        if (op->of_pixels) {
            put(&text, " [of each pixel]");
        }
        if (op->is_causal) {
            put(&text, " [causal]");
        }
        if (op->is_reversed) {
            put(&text, " [from the last token]");
        }
        if (op->rate > 0) {
            static const char *const of[] = {"", " of channels", " of samples"};
            put(&text, " [rate %g%s]", op->rate, of[op->of]);
        }
        if (op_row(op->kind)->alpha != NULL) {
            put(&text, " [%s %.9g]", op_row(op->kind)->alpha, op->alpha);
        }
        if (op->beta != 0) {
            put(&text, " [plus %.9g]", op->beta);
        }
        put(&text, "\n");
    }
    if (text.failed) {
        free(text.buf);
        return NULL;
    }
    return text.buf;
}
