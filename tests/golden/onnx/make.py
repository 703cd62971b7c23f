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
from onnx import external_data_helper, helper, numpy_helper
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


class Next(nn.Module):
    """ConvNeXt's block between a gated one, with stochastic depth, numbers, and dropout in place, as torchvision writes them."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.squeeze, self.excite = nn.Conv2d(6, 2, 1), nn.Conv2d(2, 6, 1)
        self.norm, self.wide, self.narrow = nn.LayerNorm(6, eps=1e-6), nn.Linear(6, 12), nn.Linear(12, 6)
        self.depthwise = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.layer_scale = nn.Parameter(torch.ones(6, 1, 1))
        self.dropout = nn.Dropout(0.2, inplace=True)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        x = f.silu(self.stem(x))
        x = f.hardsigmoid(self.excite(f.relu(self.squeeze(f.adaptive_avg_pool2d(x, 1))))) * x
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.layer_scale * self.narrow(f.gelu(self.wide(y))).permute(0, 3, 1, 2)
        if self.training:
            y = y * torch.empty([y.shape[0], 1, 1, 1], dtype=y.dtype).bernoulli_(0.75).div_(0.75)
        x = 0.5 * (x + y) + 0.25 - torch.sigmoid(x)
        return self.fc(self.dropout(f.hardswish(pooled(x))))


class Frozen(nn.BatchNorm2d):
    def train(self, mode=True):
        return super().train(False)


class Shuffled(nn.Module):
    """Halves of channels, of which one is left as it is, and a shuffle of both, as ShuffleNet has them; three groups beside."""

    def __init__(self):
        super().__init__()
        self.stem, self.middle, self.fc = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False), nn.Linear(12, 4)

    @staticmethod
    def shuffle(x, groups):
        n, c, h, w = x.size()
        return x.view(n, groups, c // groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)

    def forward(self, x):
        for groups in 2, 3:
            x = self.stem(x) if groups == 2 else x
            left, right = x.chunk(2, dim=1)
            x = self.shuffle(torch.cat((left, f.relu(self.middle(right)) if groups == 2 else f.relu6(right)), 1), groups)
        return self.fc(x.mean([2, 3]))


class Patches(nn.Module):
    """A vision transformer as torchvision writes it."""

    def __init__(self, size=8, heads=2):
        super().__init__()
        self.proj, self.token = nn.Conv2d(3, size, 4, stride=4), nn.Parameter(torch.zeros(1, 1, size))
        self.places = nn.Parameter(torch.zeros(1, 7, size))
        self.ln_1, self.ln_2, self.attention = nn.LayerNorm(size), nn.LayerNorm(size), nn.MultiheadAttention(size, heads, batch_first=True)
        self.wide, self.narrow, self.fc = nn.Linear(size, 12), nn.Linear(12, size), nn.Linear(size, 5)

    def forward(self, x):
        n = x.shape[0]
        x = self.proj(x).reshape(n, 8, 6).permute(0, 2, 1)
        x = torch.cat([self.token.expand(n, -1, -1), x], dim=1) + self.places
        y = self.ln_1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.narrow(f.gelu(self.wide(self.ln_2(x))))
        return self.fc(x[:, 0])


class LastPooled(nn.Module):
    """ConvNeXt's end: means of what lies with its channels last, which the newer exporter gathers one by one."""

    def __init__(self):
        super().__init__()
        self.conv, self.wide, self.norm, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 5)

    def forward(self, x):
        x = self.wide(self.conv(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = f.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), 1))


class Resampled(nn.Module):
    """Images that become larger, in each way, and zeros around them: those before the first convolution are its padding."""

    def __init__(self):
        super().__init__()
        self.first, self.up, self.second, self.fc = nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2), nn.Conv2d(4, 4, 3), nn.Linear(4, 5)

    def forward(self, x):
        x = self.up(self.first(f.pad(x, (1, 1, 2, 2))))
        x = f.relu(f.interpolate(x, scale_factor=(1, 2), mode="bilinear"))
        x = f.interpolate(x, size=(32, 40), mode="bilinear", align_corners=True)
        return self.fc(self.second(f.pad(x, (0, 1, 2, 0))).mean([2, 3]))


class Halved(nn.Module):
    """Channels that are cut off, read by a function first and by a layer then."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.fc = nn.Conv2d(3, 6, 3), nn.Conv2d(3, 3, 3, padding=1), nn.Linear(3, 5)

    def forward(self, x):
        half = self.first(x)[:, :3]
        more = half + 1
        return self.fc(pooled(self.second(half) * torch.sigmoid(more)))


class Words(nn.Module):
    """Two blocks of a language model: one whose queries, keys and values are one product, and one of three."""

    def __init__(self, words=7, tokens=6, size=8):
        super().__init__()
        self.word, self.place, self.norm, self.head = nn.Embedding(words, size), nn.Embedding(tokens, size), nn.LayerNorm(size), nn.Linear(size, words, bias=False)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.q, self.k, self.v = nn.Linear(size, size, bias=False), nn.Linear(size, size), nn.Linear(size, size)

    @staticmethod
    def heads(x):
        return x.view(x.size(0), x.size(1), 2, x.size(2) // 2).transpose(1, 2)

    def forward(self, x):
        x = self.word(x) + self.place(torch.arange(x.size(1)))
        q, k, v = map(self.heads, self.qkv(x).split(8, dim=2))
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(x.size()))
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        y = torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1) @ v
        return self.head(self.norm(x + y.transpose(1, 2).reshape(x.size())))


class Tied(nn.Module):
    """An embedding whose weight the last layer has, too, and a module that is called twice."""

    def __init__(self, words=7, size=8):
        super().__init__()
        self.word, self.inner, self.norm, self.head = nn.Embedding(words, size), nn.Linear(size, size), nn.LayerNorm(size), nn.Linear(size, words)
        self.head.weight = self.word.weight

    def forward(self, x):
        x = torch.tanh(self.inner(self.word(x)))
        return self.head(self.norm(x + self.inner(x)))


class Recurrent(nn.Module):
    """Two layers in both directions, one whose samples come second and that has no bias, and what a third one ends with."""

    def __init__(self, words=7, size=5):
        super().__init__()
        self.word, self.lstm = nn.Embedding(words, size), nn.LSTM(size, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.tail, self.fc = nn.GRU(8, 6, bias=False), nn.LSTM(6, 3, bidirectional=True, batch_first=True), nn.Linear(6, 5)
        self.last = nn.GRU(6, 6, num_layers=2, batch_first=True)

    def forward(self, x):
        x = self.lstm(self.word(x))[0]
        x = self.gru(x.transpose(0, 1))[0].transpose(0, 1)
        y, (h, _) = self.tail(x)
        return self.fc(torch.cat([h[-2], h[-1]], 1) + y[:, 0] + self.last(x)[1][-1])


class Plain(nn.Module):
    """Cells of one gate: two layers in both directions, and one of the other function whose samples come second and that has no bias."""

    def __init__(self, words=7, size=5):
        super().__init__()
        self.word, self.rnn = nn.Embedding(words, size), nn.RNN(size, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.relu, self.fc = nn.RNN(8, 6, nonlinearity="relu", bias=False), nn.Linear(6, 5)

    def forward(self, x):
        x = self.rnn(self.word(x))[0]
        y, h = self.relu(x.transpose(0, 1))
        return self.fc(y[0] + h[-1])


class Whole(nn.Module):
    """Attention that the exporter writes as one op from opset 23 on: of all tokens, and causal."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 2)
        self.both = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for i, layer in enumerate(self.both):
            q, k, v = (part.reshape(x.size(0), 20, 2, 4).transpose(1, 2) for part in layer(x).chunk(3, -1))
            x = f.scaled_dot_product_attention(q, k, v, is_causal=i == 1).transpose(1, 2).reshape(x.size(0), 20, 8)
        return self.fc(x[:, 3])


class Begun(nn.Module):
    """A GRU whose first state, of a batch that the file says, is a constant of more than 64 zeros."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 7, batch_first=True)
        self.fc = nn.Linear(7, 4)

    def forward(self, x):
        return self.fc(self.gru(x.flatten(2).transpose(1, 2))[1][0])


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


def words_of(shape, words):
    return ((batch(shape).double() * 0.499 + 0.5) * words).long()


def keep(name, model, shape, how, is_training=False, opset=17, drops=False, words=0, **more):
    """drops: what it makes is told of evaluation, for what is dropped in training is drawn at random. words: it reads so many."""
    if not is_wanted(name):
        return
    model.train(is_training)
    x = words_of(shape, words) if words else batch(shape)
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
    model.train(is_training and not drops)
    with torch.no_grad():
        logits[name] = {"input": list(shape), "is_training": is_training and not drops, "logits": [round(v, 6) for v in model(x).flatten().tolist()], **({"words": words} if words else {})}


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


def type_of(values):
    return values.dtype if getattr(values, "dtype", numpy.dtype("f")).kind in "bi" else numpy.float32


def put_beside(name, tensors, is_there=True):
    """Those initializers of a model by hand lie in a file beside it."""
    if not is_wanted(name):
        return
    path = os.path.join(here, name + ".onnx")
    model = onnx.load(path)
    data = b""
    for tensor in model.graph.initializer:
        if tensor.name in tensors:
            values = numpy_helper.to_array(tensor).tobytes()
            tensor.raw_data = values
            external_data_helper.set_external_data(tensor, name + ".onnx.data", offset=len(data), length=len(values))
            tensor.ClearField("raw_data")
            data += values
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    if is_there:
        with open(path + ".data", "wb") as file:
            file.write(data)


def by_hand(name, nodes, initializers, shape=(None, 3, 6, 5), outputs=("y",), producer="pytorch", opset=17, change=None):
    """A graph that no exporter makes, or none without more ado. nodes: op, inputs (a list, where one is left out), outputs, attributes."""
    if not is_wanted(name):
        return
    made = [helper.make_node(op, reads if isinstance(reads, list) else reads.split(), makes.split(), **attributes) for op, reads, makes, attributes in nodes]
    random = numpy.random.RandomState(1)
    tensors = [numpy_helper.from_array(numpy.asarray(random.randn(*of) if isinstance(of, tuple) else of, dtype=type_of(of)), key) for key, of in initializers.items()]
    graph = helper.make_graph(made, "graph", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None) for output in outputs], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name=producer)
    if change is not None:
        change(model)
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
    groups = lambda: Of(lambda s, x: s.last(f.relu(s.rows(s.first(torch.flatten(s.plain(f.relu(s.norm(s.conv(x)))), 1))))), conv=nn.Conv2d(3, 6, 1, bias=False),
                        norm=nn.GroupNorm(2, 6, eps=1e-3), plain=nn.GroupNorm(3, 6, affine=False), first=nn.Linear(180, 4), rows=nn.GroupNorm(2, 4), last=nn.Linear(4, 3))
    keep("groups-torchscript", randomized(groups(), 26), images, "torchscript", opset=13)
    keep("groups-dynamo", randomized(groups(), 27), images, "dynamo", opset=18)
    keep("groups-dynamo-static", randomized(groups(), 27), images, "dynamo", opset=18, dynamic_shapes=None)
    whole = lambda *of: {"value": numpy_helper.from_array(numpy.asarray(of, numpy.int64))}
    ones, zeros = ({"value": numpy_helper.from_array(numpy.full(3, of, numpy.float32))} for of in (1, 0))
    grouped = [("Constant", "", "g", whole(0, 3, -1)), ("Constant", "", "o", ones), ("Constant", "", "z", zeros), ("Constant", "", "a", whole(1, 2)), ("Constant", "", "s", whole(0, 6, 6, 5)),
               ("Reshape", "x g", "r", {}), ("InstanceNormalization", "r o z", "i", {}), ("Reshape", "i s", "n", {}), ("Unsqueeze", "c.weight a", "w", {}), ("Mul", "n w", "m", {})]
    by_hand("groups-read-before", [*grouped, ("Add", "m n", "h", {}), ("Flatten", "h", "f", {}), ("Gemm", "f b.weight", "y", {"transB": 1})],
            {"c.weight": (6,), "b.weight": (4, 180)}, shape=(None, 6, 6, 5))
    keep("norm-of-width-torchscript", nn.Sequential(nn.LayerNorm(5), nn.Flatten(), nn.Linear(90, 4)), images, "torchscript")
    keep("norm-half-dynamo", Of(lambda s, x: s.fc(pooled(f.instance_norm(x, weight=torch.full((3,), 0.5), bias=torch.zeros(3)))), fc=nn.Linear(3, 4)), images, "dynamo", opset=18)
    conv = lambda out=3: nn.Conv2d(3, out, 3, padding=1)
    twice = lambda: Of(lambda s, x: s.fc(pooled(s.norm(f.relu(s.norm(s.conv(x)))))), conv=conv(), norm=nn.BatchNorm2d(3), fc=nn.Linear(3, 4))
    keep("norm-twice-torchscript", twice(), images, "torchscript", True)
    keep("norm-twice-dynamo", twice(), images, "dynamo", True, opset=18)
    alike = Of(lambda s, x: s.fc(pooled(s.second(f.relu(s.first(s.conv(x)))))), conv=conv(), first=nn.BatchNorm2d(3), second=nn.BatchNorm2d(3), fc=nn.Linear(3, 4))
    keep("norms-alike-torchscript", alike, images, "torchscript")
    keep("called-input-dynamo", randomized(Of(lambda s, x: s.fc(pooled(f.relu(x + s.input(x)))), input=conv(), fc=nn.Linear(3, 4)), 8), images, "dynamo", opset=18)
    keep("called-input-torchscript", randomized(Of(lambda s, x: s.fc(pooled(torch.cat([s.input(x), s.other(x), x], 1))), input=conv(), other=conv(2), fc=nn.Linear(8, 4)), 9),
         images, "torchscript")
    relus = Of(lambda s, x: s.fc(pooled(f.relu(s.relu1(f.relu(s.relu3(x))) + x) + f.relu(x))), relu1=conv(), relu3=conv(), fc=nn.Linear(3, 4))
    keep("called-relu1-dynamo", randomized(relus, 10), images, "dynamo", opset=18)
    called = Of(lambda s, x: (lambda h: s.fc(torch.cat([h[-2], h[-1]], 1)))(s.lstm1(s.word(x))[1][0]), word=nn.Embedding(7, 3),
                lstm1=nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True), fc=nn.Linear(4, 5))
    keep("called-lstm1-dynamo", randomized(called, 29), (3, 6), "dynamo", True, opset=18, words=7)
    chain = nn.Sequential(nn.Flatten(), nn.Linear(90, 4), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Softmax(1), nn.Linear(4, 4))
    keep("chain-torchscript", chain, images, "torchscript")
    clip("clip-0-20-torchscript", 0.0, 20.0)
    clip("clip-30-torchscript", -30.0, 30.0)
    clip("clip-5000-torchscript", -1e30, 5000.0)
    scaled = lambda scale: Of(lambda s, x: s.fc(pooled(f.relu(s.conv(x)) * s.scale)), conv=conv(), scale=nn.Parameter(scale), fc=nn.Linear(3, 4))
    keep("scale-dynamo", randomized(scaled(torch.ones(1)), 15), images, "dynamo", opset=18)
    keep("scale-torchscript", scaled(torch.tensor(1.0)), images, "torchscript")
    rezero = Of(lambda s, x: (lambda h: s.fc(pooled(h + s.alpha * f.relu(s.more(h)))))(f.relu(s.conv(x))), conv=conv(), more=conv(), alpha=nn.Parameter(torch.zeros(1)), fc=nn.Linear(3, 4))
    keep("rezero-dynamo", randomized(rezero, 16), images, "dynamo", opset=18)
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
    sizes = numpy_helper.from_array(numpy.array([-1, 1, 1], numpy.int64))
    by_hand("slope-learned", [("Constant", "", "o", {"value": sizes}), ("Reshape", "slope o", "r", {}), ("PRelu", "x r", "p", {}), ("Flatten", "p", "f", {}),
                              ("Gemm", "f a.weight a.bias", "y", {"transB": 1})], {"slope": (3,), **{key: weights[key] for key in ("a.weight", "a.bias")}})
    even = numpy_helper.from_array(numpy.full((65,), 2, numpy.float32))
    by_hand("even-cast", [("Constant", "", "k", {"value": even}), ("Cast", "k", "i", {"to": 7}), ("Add", "i i", "t", {}), ("Flatten", "x", "f", {}),
                          ("Gemm", "f a.weight a.bias", "y", {"transB": 1})], {key: weights[key] for key in ("a.weight", "a.bias")})
    whole = lambda *of: {"value": numpy_helper.from_array(numpy.array(of, numpy.int64))}
    group = [("Constant", "", "o", {"value": numpy_helper.from_array(numpy.ones(2, numpy.float32))}), ("Constant", "", "z", {"value": numpy_helper.from_array(numpy.zeros(2, numpy.float32))}),
             ("Constant", "", "q", whole(0, 2, -1)), ("Constant", "", "r", whole(1, 4, 4, 4)), ("Reshape", "x q", "g", {}), ("InstanceNormalization", "g o z", "n", {"epsilon": 1e-5}),
             ("Reshape", "n r", "b", {}), ("Constant", "", "e", whole(4, 1, 4)), ("Expand", "w e", "v", {}), ("Mul", "b v", "m", {}), ("Flatten", "m", "f", {}),
             ("Gemm", "f a.weight a.bias", "y", {"transB": 1})]
    by_hand("group-of-columns", group, {"w": (4,), "a.weight": (4, 64), "a.bias": (4,)}, (1, 4, 4, 4))
    convs = {"c.weight": (8, 3, 3, 3), "d.weight": (4, 8, 1, 1), "b.weight": (4, 4), "b.bias": (4,)}
    ones = numpy_helper.from_array(numpy.ones((1, 1, 2, 2), numpy.float32))
    by_hand("number-repeated", [("Conv", "x c.weight", "h", {}), ("GlobalAveragePool", "h", "p", {}), ("Constant", "", "o", {"value": ones}), ("Mul", "p o", "m", {}),
                                ("Conv", "m d.weight", "e", {}), ("Flatten", "e", "s", {}), *head], convs)
    norms = {"c.weight": (4, 3, 3, 3), "n.weight": (4,), "n.bias": (4,), "n.running_mean": (4,), "n.running_var": (4,), "b.weight": (4, 4), "b.bias": (4,)}
    by_hand("epsilon-nan", [("Conv", "x c.weight", "h", {}), ("BatchNormalization", "h n.weight n.bias n.running_mean n.running_var", "g", {"epsilon": math.nan}),
                            ("GlobalAveragePool", "g", "p", {}), ("Flatten", "p", "s", {}), *head], norms)
    by_hand("elu-infinite", [("Flatten", "x", "f", {}), ("Elu", "f", "e", {"alpha": math.inf}), ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    half = numpy_helper.from_array(numpy.asarray(0.5, numpy.float32))
    nan = numpy_helper.from_array(numpy.asarray(math.nan, numpy.float32))
    by_hand("clip-nan", [("Flatten", "x", "f", {}), ("Constant", "", "o", {"value": nan}), ("Clip", "f o", "e", {}), ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    drawn = [("Flatten", "x", "f", {}), ("RandomUniformLike", "f", "r", {}), ("Constant", "", "o", {"value": half}), ("Less", "r o", "l", {}), ("Cast", "l", "k", {"to": 1})]
    by_hand("noise-unscaled", [*drawn, ("Mul", "f k", "e", {}), ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    by_hand("noise-halved", [*drawn, ("Constant", "", "h", {"value": numpy_helper.from_array(numpy.asarray(0.25, numpy.float32))}), ("Div", "k h", "d", {}), ("Mul", "f d", "e", {}),
                             ("Gemm", "e a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    ones = numpy_helper.from_array(numpy.ones(2, numpy.int64))
    by_hand("noise-of-channels", [("Shape", "x", "n", {"end": 2}), ("Constant", "", "w", {"value": ones}), ("Concat", "n w", "g", {"axis": 0}), ("ConstantOfShape", "g", "z", {}),
                                  ("RandomUniformLike", "z", "r", {}), ("Constant", "", "o", {"value": half}), ("Less", "r o", "l", {}), ("Cast", "l", "k", {"to": 1}),
                                  ("Div", "k o", "d", {}), ("Mul", "x d", "e", {}), ("Flatten", "e", "s", {}), ("Gemm", "s a.weight", "y", {"transB": 1})], {"a.weight": (4, 90)})
    whole = lambda *of: {"value": numpy_helper.from_array(numpy.asarray(of, numpy.int64))}
    dense = ("Gemm", "f a.weight", "y", {"transB": 1})
    by_hand("noise-reshaped", [("Flatten", "x", "f", {}), ("RandomUniformLike", "x", "r", {}), ("Constant", "", "g", whole(0, -1)), ("Reshape", "r g", "q", {}), dense], {"a.weight": (4, 90)})
    by_hand("noise-of-pixels", [("Flatten", "x", "f", {}), ("RandomUniformLike", "f", "r", {}), ("Constant", "", "g", whole(0, 90, 1, 1)), ("Reshape", "r g", "q", {}), dense], {"a.weight": (4, 90)})
    by_hand("cast-of-nothing", [("Cast", [""], "n", {"to": 1}), ("Relu", "n", "r", {}), ("Flatten", "x", "f", {}), dense], {"a.weight": (4, 90)})
    by_hand("softmax-without-output", [("Flatten", "x", "f", {}), ("Softmax", "f", "s", {"axis": 1})], {}, outputs=())
    for mode, said in (("unsaid", {}), ("floor", {"ceil_mode": 0}), ("ceil", {"ceil_mode": 1})):
        window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 2, 1], **said}
        by_hand("pool-padded-" + mode, [("MaxPool", "x", "p", window), ("Flatten", "p", "f", {}), ("Gemm", "f a.weight", "y", {"transB": 1})], {"a.weight": (4, 36)})
    kernel = [("Constant", "", "g", whole(-2, -1)), ("Unsqueeze", "c.weight g", "k", {})]
    matrix = {"c.weight": (4, 3), "a.weight": (4, 120)}
    ends = [("Flatten", "h", "f", {}), dense]
    by_hand("matrix-of-pixels", [*kernel, ("Conv", "x k c.bias", "h", {}), *ends], {**matrix, "c.bias": (4,)})
    by_hand("matrix-strided", [*kernel, ("Conv", "x k", "h", {"strides": [2, 1]}), *ends], matrix)
    by_hand("matrix-in-groups", [*kernel, ("Conv", "x k", "h", {"group": 2}), *ends], {"c.weight": (4, 1), "a.weight": (4, 120)}, shape=(None, 2, 6, 5))
    by_hand("matrix-transposed", [*kernel, ("ConvTranspose", "x k", "h", {}), *ends], {"c.weight": (3, 4), "a.weight": (4, 120)})
    by_hand("matrix-as-factor", [*kernel, ("Mul", "x k", "h", {}), *ends], {"c.weight": (1, 3), "a.weight": (4, 90)})
    by_hand("matrix-behind", [("Constant", "", "g", whole(0, 1)), ("Unsqueeze", "c.weight g", "k", {}), ("Conv", "x k", "h", {}), *ends], matrix)
    by_hand("channels-last", [("Conv", "x c.weight", "h", {}), ("Transpose", "h", "t", {"perm": [0, 2, 3, 1]}), ("Flatten", "t", "s", {}), ("Gemm", "s a.weight", "y", {"transB": 1})],
            {"c.weight": (3, 3, 1, 1), "a.weight": (4, 90)})
    seen = [("Constant", "", "g", whole(0, 3, 30)), ("Reshape", "x g", "k", {}), ("Transpose", "k", "q", {"perm": [0, 2, 1]})]
    weighed = [("MatMul", "q k", "r", {})]
    number = lambda of: {"value": numpy_helper.from_array(numpy.asarray(of, numpy.float32))}
    scaled = [*weighed, ("Constant", "", "o", number(3 ** 0.5)), ("Div", "r o", "d", {})]
    answer = [("MatMul", "p q", "h", {}), ("Flatten", "h", "f", {}), dense]
    for_rows = {"a.weight": (4, 90)}
    triangle = numpy.triu(numpy.full((30, 30), -1e10), 1)
    by_hand("attention-buffer", [*seen, *scaled, ("Add", "mask d", "m", {}), ("Softmax", "m", "s", {"axis": -1}), ("Dropout", "s", "p", {}), *answer], {**for_rows, "mask": triangle})
    by_hand("attention-unscaled", [*seen, *weighed, ("Softmax", "r", "p", {"axis": -1}), *answer], for_rows)
    by_hand("attention-unsoft", [*seen, *scaled, ("MatMul", "d q", "h", {}), ("Flatten", "h", "f", {}), dense], for_rows)
    by_hand("attention-backwards", [*seen, *scaled, ("Add", "d mask", "m", {}), ("Softmax", "m", "p", {"axis": -1}), *answer], {**for_rows, "mask": triangle.T})
    for name, mask in ("attention-turned", triangle), ("attention-turned-back", triangle.T):
        by_hand(name, [*seen, *scaled, ("Transpose", "mask", "n", {}), ("Add", "d n", "m", {}), ("Softmax", "m", "p", {"axis": -1}), *answer], {**for_rows, "mask": mask})
    by_hand("attention-over-queries", [*seen, *scaled, ("Softmax", "d", "p", {"axis": 1}), *answer], for_rows)
    by_hand("attention-of-itself", [*seen, ("MatMul", "q q", "h", {}), ("Flatten", "h", "f", {}), dense], for_rows)
    patch = [("Conv", "x c.weight", "e", {}), ("Constant", "", "g", whole(0, 2, 3, 30)), ("Reshape", "e g", "k", {}), ("Transpose", "k", "q", {"perm": [0, 1, 3, 2]})]
    back = [("Transpose", "h", "t", {"perm": [0, 2, 1, 3]}), ("Flatten", "t", "f", {}), ("Gemm", "f a.weight", "y", {"transB": 1})]
    of_heads = {"c.weight": (6, 3, 1, 1), "a.weight": (4, 180)}
    by_hand("attention-whole", [*patch, ("Attention", "q q q", "h", {"is_causal": 1}), *back], of_heads, opset=23)
    by_hand("attention-scaled", [*patch, ("Attention", "q q q", "h", {"scale": 0.25}), *back], of_heads, opset=23)
    by_hand("attention-masked", [*patch, ("Attention", "q q q mask", "h", {}), *back], {**of_heads, "mask": triangle.T}, opset=23)
    by_hand("scale-turned", [("Constant", "", "g", whole(0, 3, 3)), ("Reshape", "x g", "k", {}), ("Transpose", "k", "q", {"perm": [0, 2, 1]}), ("Transpose", "w", "v", {}),
                             ("LayerNormalization", "q v", "h", {"axis": 1}), *ends], {"w": (3, 3), "a.weight": (4, 9)}, shape=(None, 3, 1, 3))
    channels = {"c.weight": (4, 3, 1, 1), "a.weight": (4, 4)}
    means = [("GlobalAveragePool", "s", "p", {}), ("Flatten", "p", "f", {}), dense]
    by_hand("softmax-12-channels", [("Conv", "x c.weight", "e", {}), ("Softmax", "e", "s", {"axis": 1}), *means], channels, opset=12)
    by_hand("softmax-11-unsaid", [("Conv", "x c.weight", "e", {}), ("Softmax", "e", "s", {}), *means], channels, opset=11)
    by_hand("softmax-12-pixels", [("Conv", "x c.weight", "e", {}), ("GlobalAveragePool", "e", "g", {}), ("Softmax", "g", "w", {}), ("Mul", "e w", "s", {}), *means], channels, opset=12)
    by_hand("softmax-12-rows", [("Flatten", "x", "e", {}), ("Gemm", "e a.weight", "h", {"transB": 1}), ("Softmax", "h", "s", {}), ("Gemm", "s b.weight", "y", {"transB": 1})],
            {"a.weight": (4, 90), "b.weight": (4, 4)}, opset=12)
    by_hand("attention-12", [*seen, *scaled, ("Softmax", "d", "p", {}), *answer], for_rows, opset=12)
    by_hand("reshape-to-nothing", [("Constant", "", "g", whole(0, -1)), ("Reshape", "x g", "f", {"allowzero": 1}), dense], for_rows)
    damaged = numpy_helper.from_array(numpy.zeros(1, numpy.float32))
    damaged.dims[:] = [-1]
    by_hand("constant-of-no-shape", [("Constant", "", "o", {"value": damaged}), ("Mul", "x o", "h", {}), *ends], for_rows)
    lower = numpy.tril(numpy.ones((30, 30), bool))
    by_hand("attention-of-bools", [*patch, ("Attention", "q q q mask", "h", {}), *back], {**of_heads, "mask": lower}, opset=23)
    for_images = {"c.weight": (4, 3, 1, 1), "a.weight": (4, 120)}
    by_hand("bias-of-nothing", [("Conv", "x c.weight nobody", "h", {}), *ends], for_images)
    by_hand("bias-of-nothing-gemm", [("Flatten", "x", "f", {}), ("Gemm", "f a.weight nobody", "y", {"transB": 1})], for_rows)
    by_hand("ratio-of-nothing", [("Dropout", "x nobody", "h", {}), *ends], for_rows)
    by_hand("places-many", [("Flatten", "x", "s", {}), ("Gather", "s places", "f", {"axis": 1}), dense], {"a.weight": (4, 100), "places": numpy.arange(100) % 90})
    bounds = {"min_val_cast": 0.0, "max_val_cast": 6.0}
    for name in "bounds-beside", "bounds-away":
        by_hand(name, [("Conv", "x c.weight", "e", {}), ("Clip", "e min_val_cast max_val_cast", "h", {}), *ends], {**for_images, **bounds})
        put_beside(name, bounds, name == "bounds-beside")
    attend = lambda name, *more, **attributes: by_hand(name, [*patch, ("Attention", ["q", "q", "q", "", *more], "h", attributes), *back], of_heads, opset=23)
    attend("attention-capped", softcap=2.0)
    attend("attention-halved", softmax_precision=10)
    attend("attention-goes-on", "k", "k")
    line = [("Constant", "", "g", whole(-1)), ("Reshape", "x g", "l", {}), *[("Constant", "", name, number(of)) for name, of in (("o", 0.0), ("s", 1.0), ("n", 2.0), ("c", 3.0), ("p", 30.0), ("m", 90.0))],
            ("Range", "o n s", "of_n", {}), ("Range", "o c s", "of_c", {}), ("Range", "o p s", "of_p", {}), ("Constant", "", "i", whole(1, 2)), ("Constant", "", "k", whole(1))]
    places = [("Mul", "of_n m", "by_n", {}), ("Unsqueeze", "by_n i", "at_n", {}), ("Unsqueeze", "of_p k", "at_p", {}), ("Add", "at_n at_p", "half", {})]
    taken = [("Gather", "l at", "t", {}), ("Transpose", "t", "u", {"perm": [0, 2, 1]}), ("Flatten", "u", "f", {}), dense]
    two = (2, 3, 6, 5)
    by_hand("places-turned", [*line, *places, ("Mul", "p of_c", "at_c", {}), ("Add", "half at_c", "at", {}), *taken], for_rows, shape=two)
    by_hand("places-apart", [*line, *places, ("Mul", "m of_c", "at_c", {}), ("Add", "half at_c", "at", {}), *taken], for_rows, shape=two)
    by_hand("places-later", [*line, *places, ("Add", "p of_c", "at_c", {}), ("Add", "half at_c", "at", {}), *taken], for_rows, shape=two)
    by_hand("places-together", [*line, *places, ("Add", "half half", "at", {}), *taken], for_rows, shape=two)
    by_hand("part-of-height", [("Constant", "", "g", whole(1)), ("Constant", "", "i", whole(3)), ("Constant", "", "j", whole(2)), ("Slice", "x g i j", "h", {}), ("Flatten", "h", "f", {}), dense],
            {"a.weight": (4, 30)})
    by_hand("reshape-across", [("Constant", "", "g", whole(0, 5, 18)), ("Reshape", "x g", "h", {}), ("Flatten", "h", "f", {}), dense], for_rows)
    by_hand("two-orders", [("Transpose", "x", "t", {"perm": [0, 1, 3, 2]}), ("Add", "t x", "h", {}), ("Flatten", "h", "f", {}), dense], {"a.weight": (4, 75)}, shape=(None, 3, 5, 5))
    by_hand("heads-apart", [("Constant", "", "g", whole(0, 2, 3, 6, 5)), ("Reshape", "x g", "h", {}), ("Transpose", "h", "t", {"perm": [0, 2, 1, 3, 4]}), ("Relu", "t", "e", {}), ("Flatten", "e", "f", {}), dense],
            {"a.weight": (4, 180)}, shape=(None, 6, 6, 5))
    tokens = [("Constant", "", "g", whole(0, 3, 30)), ("Reshape", "x g", "r", {}), ("Transpose", "r", "t", {"perm": [2, 0, 1]})]
    gates = {"w": (8, 3), "r.w": (8, 2)}
    rows = lambda key, *cuts: [*(("Slice", f"{key} n{a} n{b} n0", f"{key}.{a}", {}) for a, b in cuts),
                               ("Concat", [f"{key}.{a}" for a, _ in cuts], key + ".c", {"axis": 0}), ("Unsqueeze", key + ".c n0", key + ".d", {})]
    cut = lambda *cuts: [*tokens, *(("Constant", "", f"n{at}", whole(at)) for at in (0, 2, 6, 8)), *rows("w", *cuts), *rows("r.w", *cuts)]
    behind = [("Transpose", "h", "i", {"perm": [2, 0, 1, 3]}), ("Flatten", "i", "f", {}), ("Gemm", "f b.weight", "y", {"transB": 1})]
    folded = {"w": (1, 8, 3), "r.w": (1, 8, 2), "b.weight": (4, 60)}
    by_hand("recurrent-folded", [*tokens, ("LSTM", "t w r.w", "h", {"hidden_size": 2}), *behind], folded)
    by_hand("recurrent-as-torch", [*cut((0, 2), (2, 8)), ("LSTM", "t w.d r.w.d", "h", {"hidden_size": 2}), *behind], {**gates, "b.weight": (4, 60)})
    by_hand("recurrent-cells", [*cut((0, 2), (6, 8), (2, 6)), ("LSTM", "t w.d r.w.d", "h k c", {"hidden_size": 2}), ("Squeeze", "c n0", "d", {}), *behind], {**gates, "b.weight": (4, 60)})
    by_hand("recurrent-reset-first", [*tokens, ("GRU", "t w r.w", "h", {"hidden_size": 2}), *behind], folded)
    by_hand("recurrent-backwards", [*tokens, ("LSTM", "t w r.w", "h", {"hidden_size": 2, "direction": "reverse"}), *behind], folded)
    by_hand("recurrent-clipped", [*tokens, ("LSTM", "t w r.w", "h", {"hidden_size": 2, "clip": 3.0}), *behind], folded)
    by_hand("recurrent-begun", [*tokens, ("LSTM", ["t", "w", "r.w", "", "", "s"], "h", {"hidden_size": 2}), *behind], {**folded, "s": (1, 1, 2)})
    by_hand("recurrent-of-lengths", [*cut((0, 2), (6, 8), (2, 6)), ("LSTM", ["t", "w.d", "r.w.d", "", "lengths"], "h", {"hidden_size": 2}), *behind],
            {**gates, "b.weight": (4, 60), "lengths": numpy.full(80, 3, numpy.int32)}, shape=(80, 3, 6, 5))
    wide = [*tokens, ("Constant", "", "n0", whole(0)), ("Unsqueeze", "w n0", "w.d", {}), ("Unsqueeze", "r.w n0", "r.d", {})]
    by_hand("plain-sine", [*wide, ("RNN", "t w.d r.d", "h", {"hidden_size": 2, "activations": ["Sin"]}), *behind], {"w": (2, 3), "r.w": (2, 2), "b.weight": (4, 60)})
    by_hand("plain-of-rows", [*wide, ("RNN", "t w.d r.d", "h", {"hidden_size": 3}), *behind], {"w": (2, 3), "r.w": (2, 2), "b.weight": (4, 90)})
    larger = [("Flatten", "h", "f", {}), ("Gemm", "f a.weight", "y", {"transB": 1})]
    twice = {"value": numpy_helper.from_array(numpy.asarray((1, 1, 2, 3), numpy.float32))}
    by_hand("resized-by-axes", [("Constant", "", "o", twice), ("Resize", ["x", "", "o"], "h", {"mode": "linear", "axes": [0, 1, 3, 2]}), *larger], {"a.weight": (4, 540)}, opset=18)
    by_hand("resized-by-policy", [("Constant", "", "o", whole(2, 3, 12, 15)), ("Resize", ["x", "", "", "o"], "h", {"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}), *larger],
            {"a.weight": (4, 360)}, (2, 3, 6, 5), opset=18)
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
    by_hand("weights-factor", [("Gemm", "x fc.weight fc.bias", "h", {"transB": 1}), ("Mul", "h factor", "y", {})], {**fc, "factor": (1,)}, two)
    by_hand("weights-in-out-gemm", [("Gemm", "x fc.weight fc.bias", "y", {})], fc, two)
    by_hand("weights-in-out-matmul", [("MatMul", "x fc.weight", "h", {}), ("Add", "h fc.bias", "y", {})], fc, two)
    by_hand("weights-in-out-twice", [("Transpose", "fc.weight", "t", {}), ("Gemm", "x t fc.bias", "y", {"transB": 1})], fc, two)
    one = ("Conv", "x c.weight", "h", {"kernel_shape": [3, 3]})
    by_hand("kernel-other", [one, ("Flatten", "h", "f", {}), dense], {"c.weight": (3, 3, 1, 1), "a.weight": (4, 90)})
    by_hand("attribute-twice", [("Flatten", "x", "f", {"axis": 1}), dense], for_rows, change=lambda model: model.graph.node[0].attribute.append(helper.make_attribute("axis", 2)))
    keep("same-torchscript", randomized(Of(lambda s, x: s.fc(pooled(f.relu(s.conv(x)))), conv=nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)), fc=nn.Linear(4, 3)), 30), images, "torchscript")
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
    following = randomized(Next(), 17)
    keep("next-torchscript", following, (3, 3, 8, 7), "torchscript", True, drops=True)
    keep("next-dynamo", following, (3, 3, 8, 7), "dynamo", True, opset=18, drops=True)
    keep("next-dynamo-eval", following, (3, 3, 8, 7), "dynamo", opset=18)
    for how in "torchscript", "dynamo":
        keep("shuffled-" + how, randomized(Shuffled(), 18), (3, 3, 5, 4), how, True, opset=18)
        keep("patches-" + how, randomized(Patches(), 19), (3, 3, 8, 12), how, True, opset=18)
        keep("words-" + how, randomized(Words(), 20), (3, 6), how, True, opset=18, words=7)
        keep("recurrent-" + how, randomized(Recurrent(), 21), (3, 6), how, True, opset=18, words=7)
        keep("tied-" + how, randomized(Tied(), 24), (3, 6), how, True, opset=18, words=7)
        keep("plain-" + how, randomized(Plain(), 23), (3, 6), how, True, opset=18, words=7)
    keep("whole-dynamo", randomized(Whole(), 25), (3, 3, 6, 5), "dynamo", True, opset=23)
    keep("begun-torchscript", randomized(Begun(), 26), (10, 3, 2, 2), "torchscript", True, opset=18, dynamic_axes=None)
    keep("last-pooled-torchscript", randomized(LastPooled(), 21), (3, 3, 6, 5), "torchscript", True)
    keep("last-pooled-dynamo", randomized(LastPooled(), 21), (3, 3, 6, 5), "dynamo", True, opset=18)
    for how in "torchscript", "dynamo":
        keep("halved-" + how, randomized(Halved(), 25), (3, 3, 6, 5), how, True, opset=18)
        keep("resampled-" + how, randomized(Resampled(), 22), (2, 3, 6, 5), how, True, opset=18)
    pools = lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.AvgPool2d(3, 2, 1), nn.AvgPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True), nn.AvgPool2d(2, padding=(0, 1), count_include_pad=False),
                                  nn.Flatten(), nn.Linear(4 * 2 * 2, 3))
    keep("pools-torchscript", randomized(pools(), 28), (2, 3, 12, 7), "torchscript")
    keep("pools-dynamo", randomized(pools(), 28), (2, 3, 12, 7), "dynamo", opset=18)
    keep("pool-begun-behind-torchscript", nn.Sequential(nn.Conv2d(3, 4, 1), nn.AvgPool2d(2, 2, 1, ceil_mode=True), nn.Flatten(), nn.Linear(48, 3)), (2, 3, 5, 7), "torchscript")
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
