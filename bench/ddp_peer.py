#!/usr/bin/python3
"""PyTorch's DistributedDataParallel over Gloo on the training of training_peer.py: the same iteration,
every process with EVENTS events of its own and one thread.

usage: ddp_peer.py MODEL PROCESSES EVENTS ITERATIONS

Prints "seconds S" of ITERATIONS iterations after one that is not timed, when all processes hold the
same parameters afterwards; "error ..." otherwise, and "missing ..." without PyTorch.
"""

import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import training_peer  # noqa: E402  ("missing" and exit without PyTorch)

import torch  # noqa: E402
import torch.distributed  # noqa: E402
import torch.multiprocessing  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


class AsModule(torch.nn.Module):
    """A Network whose forward pass is DistributedDataParallel's to call."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        network.parameters = [torch.nn.Parameter(p.detach().clone(memory_format=torch.preserve_format))
                              for p in network.parameters]
        self.weights = torch.nn.ParameterList(network.parameters)
        network.optimiser = training_peer.make_optimiser(network.parameters, "rmsprop",
                                                         training_peer.EPSILON)

    def forward(self, *arguments):
        return tuple(self.network.run(*arguments))


class Parallel:
    """In the place of a Network: through DistributedDataParallel where its weights are trained."""

    def __init__(self, network):
        self.module = AsModule(network)
        self.wrapped = DistributedDataParallel(self.module, broadcast_buffers=False,
                                               gradient_as_bucket_view=True)
        self.network = network

    def __getattr__(self, name):
        return getattr(self.network, name)

    def run(self, x, training=True, drop=None, conditions=None):
        trained = training and torch.is_grad_enabled() and self.parameters[0].requires_grad
        return list((self.wrapped if trained else self.module)(x, training, drop, conditions))


def work(rank, model, processes, events, iterations, folder):
    torch.set_num_threads(1)
    training_peer.keep_memory()
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank,
                                         world_size=processes)
    iteration = training_peer.Iteration(model, events, "channels_last", 1, False)
    if processes > 1:
        iteration.g, iteration.d = Parallel(iteration.g), Parallel(iteration.d)
    torch.manual_seed(rank)
    iteration.run()
    torch.distributed.barrier()
    start = time.perf_counter()
    for _ in range(iterations):
        iteration.run()
    torch.distributed.barrier()
    seconds = time.perf_counter() - start
    own = torch.cat([p.detach().reshape(-1) for n in (iteration.g, iteration.d)
                     for p in n.parameters])
    lowest, highest = own.clone(), own.clone()
    torch.distributed.all_reduce(lowest, op=torch.distributed.ReduceOp.MIN)
    torch.distributed.all_reduce(highest, op=torch.distributed.ReduceOp.MAX)
    if rank == 0:
        same = torch.equal(lowest, highest) and bool(torch.isfinite(own).all())
        print(f"seconds {seconds:.6f}" if same else "error the processes hold different weights",
              flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()  # its threads may not see the process end


def main():
    model, processes, events, iterations = sys.argv[1], *map(int, sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (model, processes, events, iterations, folder),
                                    nprocs=processes)


if __name__ == "__main__":
    main()
