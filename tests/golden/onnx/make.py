#!/usr/bin/env python3
"""make.py - the models of this folder, by PyTorch's own exporters, and what they make of one batch

    make.py [NAME...]  writes *.onnx, *.onnx.data and logits.json into the folder that it stands in; names: only those

Made with torch 2.15.0, onnx 1.23.2 and onnxscript 0.7.2. Traces of the call stack, which have paths of the machine, are taken out."""
import contextlib
import json
import logging
import math
import os
import sys
import warnings

import numpy
import onnx
import torch
from onnx import helper, numpy_helper
from torch import nn
from torch.nn import functional as f

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
here = os.path.dirname(os.path.abspath(__file__))
logits = {}


class Net(nn.Module):
    """What convolutional networks are made of, with each way to say a GELU, SiLU and hard swish."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.depthwise = nn.Conv2d(8, 8, (3, 5), padding=(1, 2), groups=8)
        self.dilated = nn.Conv2d(8, 6, 3, padding=2, dilation=2, bias=False)
        self.norm = nn.BatchNorm2d(6, eps=1e-3, momentum=0.2)
        self.inner = nn.Conv2d(6, 6, 1)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.drop = nn.Dropout(0.0)
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        x = self.stem(x)
        x = f.hardswish(self.norm(self.dilated(f.silu(f.silu(self.depthwise(x)) + x))))
        y = self.inner(x)
        x = torch.cat([y * 0.5 * (1.0 + torch.erf(y / math.sqrt(2.0))) + x, x * torch.sigmoid(x), f.gelu(y, approximate="tanh"), torch.tanh(y)], 1)
        x = f.gelu(self.pool(x))
        x = f.adaptive_avg_pool2d(x, 1)
        x = x.view(x.size(0), -1)
        return self.fc(self.drop(x))


class Rows(nn.Module):
    """Dense layers alone, on rows; one without a bias."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 9, bias=False)
        self.second = nn.Linear(9, 7)
        self.last = nn.Linear(7, 4)

    def forward(self, x):
        x = f.elu(self.first(x), 0.7)
        x = f.leaky_relu(self.second(x), 0.2)
        return self.last(torch.sigmoid(x))


class Dense(nn.Module):
    """A block of DenseNet: each layer reads all before it."""

    def __init__(self, layers=9):
        super().__init__()
        self.stem = nn.Conv2d(1, 2, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(2 + i, 1, 3, padding=1, bias=False) for i in range(layers))
        self.fc = nn.Linear(2 + layers, 3)

    def forward(self, x):
        made = [self.stem(x)]
        for layer in self.layers:
            made.append(f.relu(layer(torch.cat(made, 1))))
        x = torch.cat(made, 1)
        return self.fc(x.mean([2, 3]))


class Functional(nn.Module):
    """Parameters that no module has a name for."""

    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(4, 2, 3, 3))
        self.shift = nn.Parameter(torch.randn(4))
        self.out = nn.Parameter(torch.randn(3, 4 * 4 * 4))

    def forward(self, x):
        x = f.avg_pool2d(f.relu(f.conv2d(x, self.kernel, self.shift, padding=1)), 2)
        return f.linear(torch.flatten(x, 1), self.out)


class Gated(nn.Module):
    """Squeeze-and-excitation, which is not known."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.gate = nn.Conv2d(4, 4, 1)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = self.conv(x)
        x = x * torch.sigmoid(self.gate(f.adaptive_avg_pool2d(x, 1)))
        return self.fc(torch.flatten(f.adaptive_avg_pool2d(x, 1), 1))


class Upwards(nn.Module):
    """Transposed convolutions, of each number that they have."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2)
        self.norm = nn.BatchNorm2d(6)
        self.wide = nn.ConvTranspose2d(6, 2, 3, dilation=2, bias=False)
        self.fc = nn.Linear(2 * 12 * 20, 3)

    def forward(self, x):
        return self.fc(torch.flatten(self.wide(f.relu(self.norm(self.up(x)))), 1))


class Of(nn.Module):
    """A function, with the modules and parameters that it has."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.function(self, x)


def pooled(x):
    return torch.flatten(f.adaptive_avg_pool2d(x, 1), 1)


class Frozen(nn.BatchNorm2d):
    def train(self, mode=True):
        return super().train(False)


def randomized(model, seed):
    torch.manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if tensor.dtype.is_floating_point:
            is_positive = name.endswith("running_var") or (tensor.dim() == 1 and name.endswith("weight"))
            tensor.copy_(torch.rand_like(tensor) + 0.5 if is_positive else torch.randn_like(tensor) * 0.4)
    return model


def batch(shape):
    """sin(0.37 i) of the i-th value."""
    return torch.sin(0.37 * torch.arange(math.prod(shape), dtype=torch.float64)).float().reshape(shape)


def is_wanted(name):
    return len(sys.argv) == 1 or name in sys.argv[1:]


def keep(name, model, shape, how, is_training=False, opset=17, **more):
    if not is_wanted(name):
        return
    model.train(is_training)
    x = batch(shape)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    path = os.path.join(here, name + ".onnx")
    mode = torch.onnx.TrainingMode.TRAINING if is_training else torch.onnx.TrainingMode.EVAL
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        if how == "torchscript":
            torch.onnx.export(model, (x,), path, dynamo=False, opset_version=opset, training=mode,
                              **{"do_constant_folding": False, "input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}, **more})
        else:
            torch.onnx.export(model, (x,), path, dynamo=True, opset_version=opset, verbose=False,
                              **{"optimize": False, "external_data": False, "dynamic_shapes": ({0: torch.export.Dim("batch")},), **more})
    strip(path)
    model.load_state_dict(state)
    with torch.no_grad():
        logits[name] = {"input": list(shape), "is_training": is_training, "logits": [round(v, 6) for v in model(x).flatten().tolist()]}


def strip(path):
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key == "pkg.onnxscript.rewriter.rule_name"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output):
        del value.metadata_props[:]
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def by_hand(name, nodes, initializers, shape=(None, 3, 6, 5), outputs=("y",), producer="pytorch"):
    """A graph that no exporter makes, or none without more ado. nodes: op, inputs, outputs, attributes."""
    if not is_wanted(name):
        return
    made = [helper.make_node(op, reads.split(), makes.split(), **attributes) for op, reads, makes, attributes in nodes]
    random = numpy.random.RandomState(1)
    tensors = [numpy_helper.from_array(numpy.asarray(random.randn(*of) if isinstance(of, tuple) else of, dtype=numpy.float32), key) for key, of in initializers.items()]
    graph = helper.make_graph(made, "graph", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None) for output in outputs], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=producer)
    with open(os.path.join(here, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString())


def clip(name, low, high):
    keep(name, Of(lambda s, x: s.fc(pooled(f.hardtanh(s.conv(x), low, high))), conv=nn.Conv2d(3, 2, 3), fc=nn.Linear(2, 4)), (2, 3, 6, 5), "torchscript")


def main_traps():
    """What was read wrongly, and may be again."""
    images = (2, 3, 6, 5)
    torch.manual_seed(7)
    norm = Of(lambda s, x: s.last(f.relu(s.norm(s.first(torch.flatten(x, 1))))), first=nn.Linear(90, 5), norm=nn.BatchNorm1d(5), last=nn.Linear(5, 4))
    keep("norm-of-rows-dynamo-optimized", norm, images, "dynamo", opset=18, optimize=True)
    keep("norm-of-rows-dynamo", norm, images, "dynamo", True, opset=18)
    norms = lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm([4, 6, 5], eps=1e-3), nn.InstanceNorm2d(4), nn.Flatten(),
                                  nn.LayerNorm(120), nn.Linear(120, 4), nn.LayerNorm(4, elementwise_affine=False))
    keep("norms-torchscript", randomized(norms(), 13), images, "torchscript")
    keep("norms-dynamo", randomized(norms(), 14), images, "dynamo", opset=18)
    keep("norms-dynamo-optimized", randomized(norms(), 14), images, "dynamo", opset=18, optimize=True)
    keep("norm-of-width-torchscript", nn.Sequential(nn.LayerNorm(5), nn.Flatten(), nn.Linear(90, 4)), images, "torchscript")
    keep("norm-half-dynamo", Of(lambda s, x: s.fc(pooled(f.instance_norm(x, weight=torch.full((3,), 0.5), bias=torch.zeros(3)))), fc=nn.Linear(3, 4)), images, "dynamo", opset=18)
    conv = lambda out=3: nn.Conv2d(3, out, 3, padding=1)
    keep("called-input-dynamo", randomized(Of(lambda s, x: s.fc(pooled(f.relu(x + s.input(x)))), input=conv(), fc=nn.Linear(3, 4)), 8), images, "dynamo", opset=18)
    keep("called-input-torchscript", randomized(Of(lambda s, x: s.fc(pooled(torch.cat([s.input(x), s.other(x), x], 1))), input=conv(), other=conv(2), fc=nn.Linear(8, 4)), 9),
         images, "torchscript")
    relus = Of(lambda s, x: s.fc(pooled(f.relu(s.relu1(f.relu(s.relu3(x))) + x) + f.relu(x))), relu1=conv(), relu3=conv(), fc=nn.Linear(3, 4))
    keep("called-relu1-dynamo", randomized(relus, 10), images, "dynamo", opset=18)
    clip("clip-0-20-torchscript", 0.0, 20.0)
    clip("clip-30-torchscript", -30.0, 30.0)
    clip("clip-5000-torchscript", -1e30, 5000.0)
    scaled = lambda scale: Of(lambda s, x: s.fc(pooled(f.relu(s.conv(x)) * s.scale)), conv=conv(), scale=nn.Parameter(scale), fc=nn.Linear(3, 4))
    keep("scale-dynamo", scaled(torch.ones(1)), images, "dynamo", opset=18)
    keep("scale-torchscript", scaled(torch.tensor(1.0)), images, "torchscript")
    rezero = Of(lambda s, x: (lambda h: s.fc(pooled(h + s.alpha * f.relu(s.more(h)))))(f.relu(s.conv(x))), conv=conv(), more=conv(), alpha=nn.Parameter(torch.zeros(1)), fc=nn.Linear(3, 4))
    keep("rezero-dynamo", rezero, images, "dynamo", opset=18)
    constants = Of(lambda s, x: s.fc(pooled(torch.sigmoid(torch.tensor(1.0) * s.conv(x)) / 1.0)), conv=conv(), fc=nn.Linear(3, 4))
    keep("constants-dynamo", randomized(constants, 11), images, "dynamo", opset=18)
    relu6 = Of(lambda s, x: s.fc(pooled(f.hardtanh(s.more(s.conv(x)), 0.0, 6.0))), conv=conv(), more=conv(), fc=nn.Linear(3, 4))
    keep("relu6-dynamo-optimized", randomized(relu6, 12), images, "dynamo", opset=18, optimize=True)
    frozen = Of(lambda s, x: s.fc(pooled(f.relu(s.frozen(s.norm(s.conv(x)))))), conv=conv(), norm=nn.BatchNorm2d(3), frozen=Frozen(3), fc=nn.Linear(3, 4))
    keep("frozen-torchscript", frozen, images, "torchscript", True)
    keep("frozen-dynamo", frozen, images, "dynamo", True, opset=18)
    keep("cloned-dynamo", Of(lambda s, x: (lambda h: s.fc(f.relu(h.clone() + s.shift) + h))(s.first(pooled(x))), first=nn.Linear(3, 5, bias=False), shift=nn.Parameter(torch.randn(5)),
                             fc=nn.Linear(5, 4)), images, "dynamo", opset=18)
    rows = [("Flatten", "x", "f", {}), ("Transpose", "a.weight", "t", {"perm": [1, 0]}), ("MatMul", "f t", "h", {})]
    head = [("Gemm", "s b.weight b.bias", "y", {"transB": 1})]
    weights = {"a.weight": (4, 90), "a.bias": (4,), "b.weight": (4, 4), "b.bias": (4,)}
    skip = [("Relu", "p", "q", {}), ("Add", "q h", "s", {})]
    by_hand("copy-identity", [*rows, ("Identity", "h", "i", {}), ("Add", "i a.bias", "p", {}), *skip, *head], weights)
    by_hand("copy-cast", [*rows, ("Cast", "h", "i", {"to": 1}), ("Add", "i a.bias", "p", {}), *skip, *head], weights)
    by_hand("copy-flatten", [*rows, ("Flatten", "h", "i", {}), ("Add", "i a.bias", "p", {}), *skip, *head], weights)
    by_hand("behind-the-output", [("Flatten", "x", "f", {}), ("Gemm", "f a.weight a.bias", "y", {"transB": 1}), ("Gemm", "y b.weight b.bias", "z", {"transB": 1})], weights)
    convs = {"c.weight": (8, 3, 3, 3), "d.weight": (4, 8, 1, 1), "b.weight": (4, 4), "b.bias": (4,)}
    ones = numpy_helper.from_array(numpy.ones((1, 1, 2, 2), numpy.float32))
    by_hand("number-repeated", [("Conv", "x c.weight", "h", {}), ("GlobalAveragePool", "h", "p", {}), ("Constant", "", "o", {"value": ones}), ("Mul", "p o", "m", {}),
                                ("Conv", "m d.weight", "e", {}), ("Flatten", "e", "s", {}), *head], convs)
    norms = {"c.weight": (4, 3, 3, 3), "n.weight": (4,), "n.bias": (4,), "n.running_mean": (4,), "n.running_var": (4,), "b.weight": (4, 4), "b.bias": (4,)}
    by_hand("epsilon-nan", [("Conv", "x c.weight", "h", {}), ("BatchNormalization", "h n.weight n.bias n.running_mean n.running_var", "g", {"epsilon": math.nan}),
                            ("GlobalAveragePool", "g", "p", {}), ("Flatten", "p", "s", {}), *head], norms)
    by_hand("elu-infinite", [("Flatten", "x", "f", {}), ("Elu", "f", "e", {"alpha": math.inf}), ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    nan = numpy_helper.from_array(numpy.asarray(math.nan, numpy.float32))
    by_hand("clip-nan", [("Flatten", "x", "f", {}), ("Constant", "", "o", {"value": nan}), ("Clip", "f o", "e", {}), ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    by_hand("producer-long", [("Flatten", "x", "f", {}), ("Gemm", "f a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)}, producer="x" * 39 + "\u00e9")
    fc = {"fc.weight": (1, 2), "fc.bias": (1,)}
    gemm = ("Gemm", "x fc.weight fc.bias", "h", {"transB": 1})
    more = [("Relu", "h", "r", {}), ("Gemm", "r more.weight", "y", {"transB": 1})]
    turned = [("Transpose", "fc.weight", "t", {}), ("MatMul", "x t", "h", {}), ("Add", "h fc.bias", "y", {})]
    two = (None, 2)
    by_hand("weights-gemm", [gemm], fc, two, ["h"])
    by_hand("weights-matmul", turned, fc, two)
    by_hand("weights-more", [gemm, *more], {**fc, "more.weight": (1, 1)}, two)
    by_hand("weights-shift", [("Gemm", "x fc.weight fc.bias", "h", {"transB": 1}), ("Add", "h shift", "y", {})], {**fc, "shift": (2,)}, two)
    by_hand("weights-in-out-gemm", [("Gemm", "x fc.weight fc.bias", "y", {})], fc, two)
    by_hand("weights-in-out-matmul", [("MatMul", "x fc.weight", "h", {}), ("Add", "h fc.bias", "y", {})], fc, two)
    by_hand("weights-in-out-twice", [("Transpose", "fc.weight", "t", {}), ("Gemm", "x t fc.bias", "y", {"transB": 1})], fc, two)
    by_hand("channels-32", [("Conv", "x c.weight", "h", {}), ("GlobalAveragePool", "h", "p", {}), ("Flatten", "p", "s", {}), *head],
            {"c.weight": (4, 32, 3, 3), "b.weight": (4, 4), "b.bias": (4,)}, shape=(None, 32, 6, 5))


def main():
    if len(sys.argv) > 1:
        with open(os.path.join(here, "logits.json")) as file:
            logits.update(json.load(file))
    net = randomized(Net(), 1)
    images = (4, 3, 20, 16)
    keep("net-torchscript-train", net, images, "torchscript", True)
    keep("net-torchscript-eval-13", net, images, "torchscript", opset=13)
    keep("net-torchscript-static", net, images, "torchscript", dynamic_axes=None)
    keep("net-torchscript-sizes", net, images, "torchscript", dynamic_axes={"x": {0: "batch", 2: "height", 3: "width"}})
    keep("net-torchscript-folded", net, images, "torchscript", do_constant_folding=True)
    keep("net-dynamo-train", net, images, "dynamo", True, opset=18)
    keep("net-dynamo-eval-20", net, images, "dynamo", opset=20)
    keep("net-dynamo-static", net, images, "dynamo", opset=18, dynamic_shapes=None)
    keep("net-dynamo-external", net, images, "dynamo", opset=18, external_data=True)
    keep("net-dynamo-optimized", net, images, "dynamo", opset=18, optimize=True)
    rows = randomized(Rows(), 2)
    keep("rows-torchscript", rows, (5, 12), "torchscript")
    keep("rows-dynamo", rows, (5, 12), "dynamo", opset=18)
    keep("rows-dynamo-optimized", rows, (5, 12), "dynamo", opset=18, optimize=True)
    keep("dense-torchscript", randomized(Dense(), 3), (3, 1, 7, 7), "torchscript", True)
    keep("functional-dynamo", randomized(Functional(), 4), (3, 2, 8, 8), "dynamo", opset=18)
    keep("gated-torchscript", randomized(Gated(), 5), (3, 3, 8, 8), "torchscript")
    upwards = randomized(Upwards(), 6)
    keep("upwards-torchscript", upwards, (3, 4, 4, 5), "torchscript")
    keep("upwards-dynamo", upwards, (3, 4, 4, 5), "dynamo", True, opset=18)
    keep("upwards-dynamo-optimized", upwards, (3, 4, 4, 5), "dynamo", opset=18, optimize=True)
    main_traps()
    with open(os.path.join(here, "logits.json"), "w") as file:
        json.dump(logits, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
