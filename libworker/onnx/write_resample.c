/* write_resample.c - images of another size as nodes of ONNX, with PyTorch's conventions */
#include "libworker/onnx/write_impl.h"

int write_pad(struct write *w, int index)
{
    const struct op *op = graph_op(w->graph, index);
    const struct op_window *of = &op->window;
    const int64_t pads[8] = {0, 0, of->pad_top, of->pad_left, 0, 0, of->pad_bottom, of->pad_right};
    char name[WRITE_NAME_MAX];
    write_constant_ints(w, write_part_of(op, "pads", name), pads, 8);
    write_begin(w, "Pad");
    write_in_tensor(w, op->in[0]);
    write_in(w, name);
    write_put_text(w, "mode", "constant");
    write_end_op(w, op);
    return index + 1;
}

int write_upsample(struct write *w, int index)
{
    static const char *const places[] = {
        [UPSAMPLE_NEAREST] = "asymmetric",
        [UPSAMPLE_LINEAR] = "half_pixel",
        [UPSAMPLE_LINEAR_CORNERS] = "align_corners",
    };
    const struct op *op = graph_op(w->graph, index);
    const float scales[4] = {1, 1, (float)op->window.stride_h, (float)op->window.stride_w};
    char name[WRITE_NAME_MAX];
    write_constant_reals(w, write_part_of(op, "scales", name), scales, 4);
    write_begin(w, "Resize");
    write_in_tensor(w, op->in[0]);
    write_in(w, "");
    write_in(w, name);
    write_put_text(w, "mode", op->mode == UPSAMPLE_NEAREST ? "nearest" : "linear");
    write_put_text(w, "coordinate_transformation_mode", places[op->mode]);
    write_put_text(w, "nearest_mode", "floor");
    write_end_op(w, op);
    return index + 1;
}
