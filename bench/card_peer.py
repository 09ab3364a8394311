#!/usr/bin/python3
"""PyTorch on a card: the training iteration of training_peer.py, in the fastest of its ways.

usage: card_peer.py MODEL EVENTS PRECISION [SECONDS DEVICE]

EVENTS is the number of events per optimiser step; PRECISION is fp32 (convolutions in tf32, as PyTorch
has it by itself) or bf16: autocast up to the heads. Tries each way for so many SECONDS (5): layouts,
then torch.compile, with CUDA graphs too, of the fastest layout. DEVICE is cuda, or cpu to try the
script itself. Prints a line for each. A way that fails says why and is left out. Exits with 3 where PyTorch finds no card.
"""

import statistics
import sys
import time

import training_peer
from training_peer import torch


def ways(fastest_layout):
    """Names, layouts and how the two networks' passes are compiled."""
    for layout in training_peer.LAYOUTS:
        yield layout, layout, None
    layout = fastest_layout()
    yield "torch.compile", layout, {}
    yield "torch.compile with CUDA graphs", layout, {"mode": "reduce-overhead"}


def synchronise():
    if training_peer.DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds_of(model, events, bf16, layout, compiled, patience):
    """The median of an iteration's seconds."""
    iteration = training_peer.Iteration(model, events, layout, 1, False, bf16)
    if compiled is not None:
        for network in (iteration.g, iteration.d):
            network.run = torch.compile(network.run, **compiled)
    for _ in range(3):  # chooses kernels, allocates, compiles
        iteration.run()
    seconds, begin = [], time.perf_counter()
    while len(seconds) < 3 or time.perf_counter() - begin < patience:
        synchronise()
        start = time.perf_counter()
        iteration.run()
        synchronise()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main():
    model, events, precision = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    patience = float(sys.argv[4]) if len(sys.argv) > 4 else 5.0
    training_peer.DEVICE = sys.argv[5] if len(sys.argv) > 5 else "cuda"
    name = "the processor"
    if training_peer.DEVICE == "cuda":
        if not torch.cuda.is_available():
            print(f"PyTorch {torch.__version__} finds no card")
            sys.exit(3)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        name = torch.cuda.get_device_name(0)
    print(f"PyTorch {torch.__version__}, {name}")
    found = {}
    for name, layout, compiled in ways(lambda: min(found, key=found.get, default="contiguous")):
        try:
            found[name] = seconds_of(model, events, precision == "bf16", layout, compiled, patience)
            print(f"{name}: {events / found[name]:.1f} events/s", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()
