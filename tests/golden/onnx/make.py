#!/usr/bin/env python3
"""make.py - the models of this folder, by PyTorch's own exporters, and what they make of one batch

    make.py            writes *.onnx, *.onnx.data and logits.json into the folder that it stands in

Made with torch 2.15.0, onnx 1.23.2 and onnxscript 0.7.2. Traces of the call stack, which have paths of the machine, are taken out."""
import contextlib
import json
import logging
import math
import os
import sys
import warnings

import onnx
import torch
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
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 2, 2, stride=2)

    def forward(self, x):
        return torch.flatten(self.up(x), 1)


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


def keep(name, model, shape, how, is_training=False, opset=17, **more):
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


def main():
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
    keep("upwards-torchscript", randomized(Upwards(), 6), (3, 3, 4, 4), "torchscript")
    with open(os.path.join(here, "logits.json"), "w") as file:
        json.dump(logits, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
