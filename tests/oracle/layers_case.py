#!/usr/bin/python3
"""Networks of the layers besides the 3DGANs' in PyTorch float64: the judges of Troupe's.

usage: layers_case.py OUT.txt

The networks are those of tests/model/layers_oracle_test.cpp; numbers come from the same counters as there.
OUT.txt gets, of the output and of each gradient, the L2 norm and 8 projections on random signs.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import philox

SEED = 5
PROJECTIONS = 8
LABELS = 3

# (name, Keras shape), in the order of the layers.
BRANCHING = [
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
    ("padded/kernel", (3, 4, 2, 1, 4)), ("padded/bias", (2,)),
    ("both/kernel", (3, 2, 3, 1, 4)), ("both/bias", (4,)),
]

LINE = [
    ("entry/kernel", (5, 3, 8)), ("entry/bias", (8,)),
    ("down/kernel", (4, 8, 6)), ("down/bias", (6,)),
    ("kind/kernel", (LABELS, 6)),
    ("dilated/kernel", (3, 6, 6)), ("dilated/bias", (6,)),
    ("norm/gamma", (6,)), ("norm/beta", (6,)),
    ("grouped/kernel", (3, 3, 8)), ("grouped/bias", (8,)),
    ("up/kernel", (5, 4, 8)), ("up/bias", (4,)),
    ("spread/kernel", (3, 4, 4)), ("spread/bias", (4,)),
    ("weights/kernel", (16, 5)), ("weights/bias", (5,)),
    ("last/kernel", (3, 10, 5)), ("last/bias", (5,)),
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


def branching(x, p, labels):
    x = channels_first(x)
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
    smooth = same_average(joined * gate.view(-1, 8, 1, 1, 1), (2, 3, 4), (1, 1, 1))
    peaks = same_pool(F.max_pool3d, smooth, (3, 3, 2), (1, 1, 1), -np.inf)
    pooled = same_average(F.max_pool3d(peaks, (3, 2, 2), 2), (3, 2, 2), (1, 1, 3))
    valid = transposed(pooled, p["valid/kernel"], p["valid/bias"], (1, 3, 2), same=False)
    turned = valid.permute(0, 1, 3, 2, 4)[:, :, 1:, :-2, 2:-1]
    softened = F.pad(torch.softmax(turned, dim=1), (0, 1, 1, 0, 0, 2))
    last = convolution(softened, p["last/kernel"], stride=(1, 2, 1), dilation=(2, 1, 1))
    padded = F.conv_transpose3d(last, p["padded/kernel"].permute(4, 3, 0, 1, 2), p["padded/bias"],
                                stride=(2, 3, 1), output_padding=(1, 2, 0), groups=2, dilation=(1, 2, 3))
    padded = padded[:, :, 1:, 2:-3, :-1]
    both = convolution(F.pad(padded, (1, 3, 2, 0, 0, 1)), p["both/kernel"], p["both/bias"],
                       stride=(2, 1, 2), dilation=(1, 3, 2), groups=2, same=True)
    return both.permute(0, 2, 3, 4, 1)


def along(x, kernel, bias, stride=1, dilation=1, groups=1):
    """A convolution of one axis, padded as Keras' same; x: (n, c, x)."""
    cells, window = x.shape[2], (kernel.shape[0] - 1) * dilation + 1
    total = max((-(-cells // stride) - 1) * stride + window - cells, 0)
    return F.conv1d(F.pad(x, (total // 2, total - total // 2)), kernel.permute(2, 1, 0), bias, stride, 0,
                    dilation, groups)


def line_of_cells(x, p, labels):
    x = x.permute(0, 2, 1)
    entry = F.silu(along(x, p["entry/kernel"], p["entry/bias"]))
    kind = F.embedding(labels, p["kind/kernel"])
    told = along(entry, p["down/kernel"], p["down/bias"], stride=2) * kind[:, :, None]
    grown = along(told, p["dilated/kernel"], p["dilated/bias"], dilation=2)
    grown = F.gelu(F.group_norm(grown, 3, p["norm/gamma"], p["norm/beta"], 1e-3), approximate="tanh")
    pooled = F.max_pool1d(along(grown, p["grouped/kernel"], p["grouped/bias"], stride=2, groups=2), 3, 1, 1)
    up = F.conv_transpose1d(pooled, p["up/kernel"].permute(2, 1, 0), p["up/bias"], 2)
    up = up[:, :, 1:-2]  # same
    up = F.conv_transpose1d(up, p["spread/kernel"].permute(2, 1, 0), p["spread/bias"], dilation=2)
    joined = torch.cat([up[:, :, 1:-3][:, :, 1:], grown], dim=1)  # its pads, and the first cell cropped
    seen = torch.cat([joined.amax(dim=2), kind], dim=1)
    last = F.conv1d(joined, p["last/kernel"].permute(2, 1, 0), p["last/bias"])
    return (last * (seen @ p["weights/kernel"] + p["weights/bias"])[:, :, None]).permute(0, 2, 1)


# What makes its output, its parameters, and the shape of its input.
NETWORKS = dict(branching=(branching, BRANCHING, (2, 12, 10, 9, 2)), line=(line_of_cells, LINE, (4, 21, 3)))


def line(name, number, tensor):
    flat = tensor.detach().numpy().reshape(-1)
    values = []
    for j in range(PROJECTIONS):
        bits = philox.words(flat.size, seed=99, micro_batch=j, stream=number) & 1
        values.append(f"{float(np.dot(flat, np.where(bits == 1, 1.0, -1.0))):.12g}")
    return f"{name} {flat.size} {np.linalg.norm(flat):.12g} {' '.join(values)}\n"


def main():
    with open(sys.argv[1], "w") as out:
        for name, (network, parameters, shape) in NETWORKS.items():
            image = uniforms(1, shape, 0.05, 1.0).requires_grad_()
            labels = uniforms(4, shape[:1], 0.0, LABELS).long()
            sizes = [int(np.prod(of)) for _, of in parameters]
            weights = uniforms(2, (sum(sizes),), -0.6, 0.7)
            tensors = {of: part.reshape(extent).clone().requires_grad_()
                       for (of, extent), part in zip(parameters, torch.split(weights, sizes))}
            output = network(image, tensors, labels)
            derivative = uniforms(10, tuple(output.shape), -1.0, 1.0)
            (output * derivative).sum().backward()
            out.write(line(f"tensor {name} output", 0, output.contiguous()))
            out.write(line(f"tensor {name} input", 1, image.grad))
            for number, (of, _) in enumerate(parameters):
                out.write(line(f"tensor {name} {of}", 2 + number, tensors[of].grad))


if __name__ == "__main__":
    main()
