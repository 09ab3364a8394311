#!/usr/bin/python3
"""A network of the layers besides the 3DGANs' in PyTorch float64: the judge of Troupe's.

usage: layers_case.py OUT.txt

The network is that of tests/model/layers_oracle_test.cpp; numbers come from the same counters as there.
OUT.txt gets, of the output and of each gradient, the L2 norm and 8 projections on random signs.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import philox

SEED = 5
BATCH = 2
IMAGE = (12, 10, 9, 2)
PROJECTIONS = 8

# (name, Keras shape), in the order of the layers.
PARAMETERS = [
    ("entry/kernel", (3, 3, 3, 2, 4)), ("entry/bias", (4,)),
    ("down/kernel", (4, 3, 5, 4, 8)), ("down/bias", (8,)),
    ("group/gamma", (8,)), ("group/beta", (8,)),
    ("dilated/kernel", (3, 3, 3, 8, 8)), ("dilated/bias", (8,)),
    ("instance/gamma", (8,)), ("instance/beta", (8,)),
    ("grouped/kernel", (3, 2, 3, 2, 8)), ("grouped/bias", (8,)),
    ("layer/gamma", (8,)), ("layer/beta", (8,)),
    ("looks/kernel", (1, 1, 1, 8, 24)), ("looks/bias", (24,)),
    ("up/kernel", (4, 3, 5, 4, 8)), ("up/bias", (4,)),
    ("gate/kernel", (4, 8)), ("gate/bias", (8,)),
    ("valid/kernel", (3, 2, 4, 3, 8)), ("valid/bias", (3,)),
    ("last/kernel", (2, 3, 2, 3, 4)),
    ("padded/kernel", (3, 4, 2, 2, 4)), ("padded/bias", (2,)),
    ("both/kernel", (3, 2, 3, 1, 4)), ("both/bias", (4,)),
]


def uniforms(stream, shape, low, high):
    u = philox.uniforms(int(np.prod(shape)), seed=SEED, stream=stream)
    values = (low + (high - low) * u).astype(np.float32).astype(np.float64)
    return torch.tensor(values.reshape(shape))


def channels_first(image):
    return image.permute(0, 4, 1, 2, 3)


def convolution(x, kernel, bias=None, stride=(1, 1, 1), dilation=(1, 1, 1), groups=1, same=False):
    """x: (n, c, x, y, z); kernel in the order of Keras; padding as Keras has it."""
    if same:
        pads = []
        for cells, k, s, d in zip(x.shape[2:], kernel.shape, stride, dilation):
            total = max((-(-cells // s) - 1) * s + (k - 1) * d + 1 - cells, 0)
            pads.append((total // 2, total - total // 2))
        x = F.pad(x, (*pads[2], *pads[1], *pads[0]))
    return F.conv3d(x, kernel.permute(4, 3, 0, 1, 2), bias, stride, 0, dilation, groups)


def same_pool(pool, x, size, stride, outside):
    """padding as Keras has it, of cells with the number `outside`."""
    pads = []
    for cells, k, s in reversed(list(zip(x.shape[2:], size, stride))):
        total = max((-(-cells // s) - 1) * s + k - cells, 0)
        pads += [total // 2, total - total // 2]
    return pool(F.pad(x, pads, value=outside), size, stride)


def same_average(x, size, stride):
    inside = same_pool(F.avg_pool3d, torch.ones_like(x), size, stride, 0.0)
    return same_pool(F.avg_pool3d, x, size, stride, 0.0) / inside


def transposed(x, kernel, bias, stride, same):
    """The kernel is (x, y, z, out, in)."""
    k = np.array(kernel.shape[:3])
    y = F.conv_transpose3d(x, kernel.permute(4, 3, 0, 1, 2), None, stride)
    cells = np.array(x.shape[2:]) * np.array(stride)
    if not same:
        cells = cells + np.maximum(k - np.array(stride), 0)
    before = np.maximum(k - np.array(stride), 0) // 2 if same else np.zeros(3, dtype=int)
    after = np.array(y.shape[2:]) - before - cells  # negative: cells that no window reaches
    y = F.pad(y, (-before[2], -after[2], -before[1], -after[1], -before[0], -after[0]))
    return y + bias.view(1, -1, 1, 1, 1)


def attention(x, heads):
    """x: (n, 3 c, x, y, z): queries, keys and values."""
    n, channels = x.shape[0], x.shape[1] // 3
    query, key, value = x.reshape(n, 3, heads, channels // heads, -1).unbind(1)
    weights = torch.softmax(torch.einsum("nhdi,nhdj->nhij", query, key)
                            / np.sqrt(channels // heads), dim=-1)
    return torch.einsum("nhij,nhdj->nhdi", weights, value).reshape(n, channels, *x.shape[2:])


def network(x, p):
    entry = F.softplus(convolution(x, p["entry/kernel"], p["entry/bias"], same=True))
    down = convolution(entry, p["down/kernel"], p["down/bias"], stride=(2, 2, 2), same=True)
    down = F.silu(F.group_norm(down, 4, p["group/gamma"], p["group/beta"], 1e-3))
    middle = convolution(down, p["dilated/kernel"], p["dilated/bias"], dilation=(2, 1, 2), same=True)
    middle = F.gelu(F.instance_norm(middle, weight=p["instance/gamma"], bias=p["instance/beta"],
                                    eps=1e-3), approximate="tanh")
    middle = F.elu(convolution(middle, p["grouped/kernel"], p["grouped/bias"], groups=4,
                               stride=(1, 1, 1), same=True))
    middle = F.layer_norm(middle.permute(0, 2, 3, 4, 1), (8,), p["layer/gamma"], p["layer/beta"],
                          1e-3).permute(0, 4, 1, 2, 3)
    looks = attention(convolution(middle, p["looks/kernel"], p["looks/bias"]), 2)
    summed = looks + down + middle
    up = transposed(summed, p["up/kernel"], p["up/bias"], (2, 2, 2), same=True)[:, :, :, :, 1:10]
    joined = torch.cat([up, entry], dim=1)
    gate = torch.sigmoid(entry.mean(dim=(2, 3, 4)) @ p["gate/kernel"] + p["gate/bias"])
    smooth = same_average(joined * gate.view(BATCH, 8, 1, 1, 1), (2, 3, 4), (1, 1, 1))
    peaks = same_pool(F.max_pool3d, smooth, (3, 3, 2), (1, 1, 1), -np.inf)
    pooled = same_average(F.max_pool3d(peaks, (3, 2, 2), 2), (3, 2, 2), (1, 1, 3))
    valid = transposed(pooled, p["valid/kernel"], p["valid/bias"], (1, 3, 2), same=False)
    turned = valid.permute(0, 1, 3, 2, 4)[:, :, 1:, :-2, 2:-1]
    softened = F.pad(torch.softmax(turned, dim=1), (0, 1, 1, 0, 0, 2))
    last = convolution(softened, p["last/kernel"], stride=(1, 2, 1), dilation=(2, 1, 1))
    padded = F.conv_transpose3d(last, p["padded/kernel"].permute(4, 3, 0, 1, 2), p["padded/bias"],
                                stride=(2, 3, 1), padding=(1, 2, 0), output_padding=(1, 2, 0))
    both = convolution(F.pad(padded, (1, 3, 2, 0, 0, 1)), p["both/kernel"], p["both/bias"],
                       stride=(2, 1, 2), dilation=(1, 3, 2), groups=2, same=True)
    return both.permute(0, 2, 3, 4, 1)


def line(name, number, tensor):
    flat = tensor.detach().numpy().reshape(-1)
    values = []
    for j in range(PROJECTIONS):
        bits = philox.words(flat.size, seed=99, micro_batch=j, stream=number) & 1
        values.append(f"{float(np.dot(flat, np.where(bits == 1, 1.0, -1.0))):.12g}")
    return f"{name} {flat.size} {np.linalg.norm(flat):.12g} {' '.join(values)}\n"


def main():
    image = uniforms(1, (BATCH,) + IMAGE, 0.05, 1.0).requires_grad_()
    sizes = [int(np.prod(shape)) for _, shape in PARAMETERS]
    weights = uniforms(2, (sum(sizes),), -0.6, 0.7)
    parameters = {name: part.reshape(shape).clone().requires_grad_()
                  for (name, shape), part in zip(PARAMETERS, torch.split(weights, sizes))}
    output = network(channels_first(image), parameters)
    derivative = uniforms(10, tuple(output.shape), -1.0, 1.0)
    (output * derivative).sum().backward()
    with open(sys.argv[1], "w") as out:
        out.write(line("output", 0, output.contiguous()))
        out.write(line("input", 1, image.grad))
        for number, (name, _) in enumerate(PARAMETERS):
            out.write(line(name, 2 + number, parameters[name].grad))


if __name__ == "__main__":
    main()
