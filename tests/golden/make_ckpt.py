"""make_ckpt.py - makes tests/golden/ckpt with MindSpore 2.10 (pip install mindspore): python make_ckpt.py FOLDER

train.ckpt     a network and its optimizer, as ModelCheckpoint writes them
crc.ckpt       the network, with a checksum behind it
sliced.ckpt    a tensor in three pieces: those of 512 MiB made small

Value i of parameter p, counted from 0 in the order of the network, is i / 8 - p."""
import os
import sys

import mindspore as ms
import mindspore.train.serialization as serialization
import numpy as np
from mindspore import Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 3, 3, has_bias=False)
        self.bn1 = nn.BatchNorm2d(3)
        self.fc = nn.Dense(12, 4)

    def construct(self, x):
        return self.fc(self.bn1(self.conv1(x)).reshape((x.shape[0], -1)))


def values(shape, p):
    return Tensor(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) / 8 - p)


net = Net()
for p, parameter in enumerate(net.get_parameters()):
    parameter.set_data(values(parameter.shape, p))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True)), optimizer)
os.chdir(sys.argv[1])
ms.save_checkpoint(train, "train.ckpt", append_info={"epoch_num": 3})
ms.save_checkpoint(net, "crc.ckpt", crc_check=True)
serialization.SLICE_SIZE = 1  # KiB
ms.save_checkpoint([{"name": "fc.weight", "data": values((60, 10), 0)}], "sliced.ckpt")
