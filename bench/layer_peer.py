#!/usr/bin/python3
"""PyTorch's side of bench_layers: networks of a layer or two, as fast as PyTorch makes them.

usage: layer_peer.py THREADS

Reads requests from standard input, a line each, and answers each with a line:
  layer EVENTS NETWORK   "ok NUMBERS": the norm of the outputs in float32 and their projection on
                         random signs, then those of the input's gradient and of the parameters'.
                         NETWORK is as in a topology, {input, layers}, on one line; weights and
                         derivatives are those of tests/model/program_runner.h, seed 1, and inputs
                         2 x - 1 with its x, or numbers of classes
  run TIMES              "ok SECONDS ...": of a forward pass, and of a backward one to the input and one
                         to the parameters, contiguous and channels last, in float32 and then in
                         bfloat16: twelve means over TIMES runs. nan: there is none
On one thread processor time counts, on more time.
"""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "oracle"))

try:
    import numpy as np
    import torch
    import yaml
except ImportError as error:
    print(f"missing {error} ({sys.executable})", flush=True)
    sys.exit(0)

import philox  # noqa: E402
from torch_network import LAYOUTS, Network, cells_last  # noqa: E402

SEED = 1
BF16_TOLERANCE = 5e-2  # of the norm
NOTHING = float("nan")


def draw(stream, count, low, high):
    u = philox.uniforms(count, seed=SEED, stream=stream)
    return (low + (high - low) * u).astype(np.float32)


def measures(values, number):
    flat = values.detach().double().numpy().reshape(-1)
    signs = np.where(philox.words(flat.size, seed=99, stream=number) & 1 == 1, 1.0, -1.0)
    return np.linalg.norm(flat), float(flat @ signs)


class Way:
    """A network with its inputs in one layout and precision."""

    def __init__(self, description, events, layout, dtype):
        self.network = network = Network(description, layout, dtype)
        sizes = [int(np.prod(shape)) for _, shape, *_ in network.tensors]
        parts = np.split(draw(2, sum(sizes), -0.6, 0.7), np.cumsum(sizes)[:-1])
        network.take([part.reshape(shape) for part, (_, shape, *_) in zip(parts, network.tensors)])
        shape = (events,) + network.input_shape
        values = np.float32(2) * draw(1, int(np.prod(shape)), 0.05, 1.0) - np.float32(1)
        first = network.layers[0]
        self.numbers = first.kind == "embedding"
        if self.numbers:
            values = np.arange(values.size, dtype=np.float32) % first["classes"]
        self.x = network.image(values.reshape(shape)).detach()
        if self.numbers:
            self.x = self.x.float()  # numbers of classes
        self.x.requires_grad_(not self.numbers)
        shape = (events,) + network.shapes[-1]
        dy = draw(10, int(np.prod(shape)), -1.0, 1.0)
        self.dy = network.image(dy.reshape(shape))

    def of(self, what):
        """Gradients of these, or nothing."""
        return list(torch.autograd.grad(self.y, what, self.dy, retain_graph=True)) if what else []

    def forward(self):
        self.y, = self.network.run(self.x)

    def results(self):
        """The output, the gradients of input and parameters, in Troupe's order."""
        self.forward()
        to_input, to_weights = self.of([self.x] * (not self.numbers)), self.of(self.network.parameters)
        flat = [self.network.in_order_of_keras(gradient, role).reshape(-1)
                for gradient, (role, *_) in zip(to_weights, self.network.tensors)]
        return [cells_last(self.y), cells_last(to_input[0]) if to_input else None,
                torch.cat(flat) if flat else None]

    def seconds(self, times, clock):
        sums = [0.0, 0.0, 0.0]
        for _ in range(times):
            marks = [clock()]
            self.forward()
            marks.append(clock())
            self.of([self.x] * (not self.numbers))
            marks.append(clock())
            self.of(self.network.parameters)
            marks.append(clock())
            sums = [s + b - a for s, a, b in zip(sums, marks, marks[1:])]
        wanted = [True, not self.numbers, bool(self.network.parameters)]
        return [s / times if w else NOTHING for s, w in zip(sums, wanted)]


class Case:
    def __init__(self, description, events):
        self.ways, judge = [], None
        for dtype in (torch.float32, torch.bfloat16):
            for layout in LAYOUTS:
                way = Way(description, events, layout, dtype)
                try:
                    results = way.results()
                except RuntimeError:  # not implemented in this precision
                    if dtype == torch.float32:
                        raise
                    way = results = None
                judge = judge or results
                self.ways.append(way if results and self.agree(results, judge) else None)
        self.judge = judge

    @staticmethod
    def agree(results, judge):
        return all(b is None or (a.float() - b).norm() <= BF16_TOLERANCE * b.norm() + 1e-6
                   for a, b in zip(results, judge))

    def numbers(self):
        for number, values in enumerate(self.judge):
            yield from measures(values, number) if values is not None else (NOTHING, NOTHING)

    def seconds(self, times, clock):
        for way in self.ways:
            yield from way.seconds(times, clock) if way else [NOTHING] * 3


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    print("ok PyTorch " + torch.__version__, flush=True)
    case = None
    for request in sys.stdin:
        what, number, *text = request.split(maxsplit=2)
        numbers = []
        if what == "layer":
            case = Case(yaml.safe_load(text[0]), int(number))
            numbers = case.numbers()
        elif what == "run":
            numbers = case.seconds(int(number), clock)
        print("ok " + " ".join(f"{value:.9g}" for value in numbers), flush=True)


if __name__ == "__main__":
    main()
