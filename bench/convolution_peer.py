#!/usr/bin/python3
"""PyTorch's side of bench_kernels: single convolutions, as fast as PyTorch makes them, on one thread.

Reads requests from standard input, a line each, and answers each with a line:
  layer DIRECTION SLOPE N X Y Z KX KY KZ BX BY BZ AX AY AZ IN OUT
        "ok MEAN": of the sizes of the result, in float32. DIRECTION is forward, input or kernel;
        X Y Z is the image, B and A what is padded before and behind, SLOPE that of the activation
        for the comparison alone.
  run   "ok SECONDS SECONDS SECONDS SECONDS": of one run in float32 as NCDHW and channels last, and
        in bfloat16 as both
Contents are those of the bench's own arrays. What is padded by different numbers before and behind
is padded before the time is taken.
"""

import sys
import time

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"missing {error} ({sys.executable})", flush=True)
    sys.exit(0)

LAYOUTS = [torch.contiguous_format, torch.channels_last_3d]


def pattern(shape, number):
    """As Arrays in bench_kernels.cpp fills array `number`."""
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(count, 1664525, np.uint32), dtype=np.uint32)
        sums = np.cumsum(np.concatenate([[np.uint32(1)], powers[:-1]]), dtype=np.uint32)
        states = powers * np.uint32(12345 + number) + sums * np.uint32(1013904223)
    values = (states >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return torch.from_numpy(values.reshape(shape))


def image(shape, number):
    return pattern(shape, number).permute(0, 4, 1, 2, 3)


class Layer:
    def __init__(self, words):
        self.direction, slope, sizes = words[0], float(words[1]), [int(w) for w in words[2:]]
        n, space, taps = sizes[0], sizes[1:4], sizes[4:7]
        before, behind, (inputs, outputs) = sizes[7:10], sizes[10:13], sizes[13:15]
        out = [s + b + a - k + 1 for s, b, a, k in zip(space, before, behind, taps)]
        forward, kernel = self.direction == "forward", self.direction == "kernel"
        x = image([n] + space + [inputs], 0)
        dy = image([n] + out + [outputs], 1 if kernel else 0)
        weights = pattern(taps + [inputs, outputs], 1).permute(4, 3, 0, 1, 2)
        self.bias = pattern([outputs], 2) if forward else None
        self.padding = before
        if before != behind:
            self.padding = [0, 0, 0]
            x = F.pad(x, (before[2], behind[2], before[1], behind[1], before[0], behind[0]))
        self.ways = [[t.to(kind).contiguous(memory_format=layout) for t in (x, weights, dy)]
                     for kind in (torch.float32, torch.bfloat16) for layout in LAYOUTS]
        result = self.run(self.ways[0])
        if forward and slope != 1.0:
            result = F.leaky_relu(result, slope)
        if self.direction == "input" and before != behind:
            result = result[(slice(None), slice(None)) + tuple(
                slice(b, b + s) for b, s in zip(before, space))]
        self.mean = result.abs().mean(dtype=torch.float64).item()
        for way in self.ways[1:]:
            self.run(way)

    def run(self, way):
        x, weights, dy = way
        if self.direction == "forward":
            return F.conv3d(x, weights, self.bias.to(x.dtype), padding=self.padding)
        wanted = [self.direction == "input", self.direction == "kernel", self.direction == "kernel"]
        gradients = torch.ops.aten.convolution_backward(
            dy, x, weights, [weights.shape[0]], [1, 1, 1], self.padding, [1, 1, 1], False,
            [0, 0, 0], 1, wanted)
        return gradients[0] if wanted[0] else gradients[1]

    def seconds(self, way):
        start = time.thread_time()
        self.run(way)
        return time.thread_time() - start


def main():
    torch.set_num_threads(1)
    print("ok PyTorch " + torch.__version__, flush=True)
    layer = None
    for request in sys.stdin:
        words = request.split()
        if words[0] == "layer":
            layer = Layer(words[1:])
            print(f"ok {layer.mean:.9g}", flush=True)
        elif words[0] == "run":
            print("ok " + " ".join(f"{layer.seconds(way):.9f}" for way in layer.ways), flush=True)
        else:
            print("error what is " + request, flush=True)


if __name__ == "__main__":
    main()
