#!/usr/bin/python3
"""A worker of torchrun: PyTorch's DistributedDataParallel over Gloo on the training of
training_peer.py, from the newest checkpoint on.

usage: elastic_peer.py --launch WORKERS MODEL EVENTS FOLDER    as torchrun would
       elastic_peer.py MODEL EVENTS FOLDER                     one worker of these

The launcher looks after its workers ten times a second. EVENTS of an iteration, shared out. The first worker writes the number of every finished iteration
to FOLDER/iterations, and every tenth iteration a checkpoint. Runs until it is killed.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ddp_peer  # noqa: E402  ("missing" and exit without PyTorch)
import training_peer  # noqa: E402

import torch  # noqa: E402
import torch.distributed  # noqa: E402

EVERY = 10


def launch(workers, *words):
    # torchrun itself does not start under Python 3.11 with PyTorch 1.13, which does not understand
    # its own default for --redirects.
    from torch.distributed.elastic.multiprocessing import Std
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=int(workers), max_restarts=1000,
                          rdzv_backend="c10d", rdzv_endpoint="localhost:0", run_id="deaths",
                          monitor_interval=0.1, redirects=Std(0), tee=Std(0))
    elastic_launch(config, sys.executable)(os.path.abspath(__file__), *words)


def main():
    if sys.argv[1] == "--launch":
        return launch(*sys.argv[2:])
    model, events, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    iteration = training_peer.Iteration(model, max(events // processes, 1), "channels_last", 1, False)
    iteration.g, iteration.d = ddp_peer.Parallel(iteration.g), ddp_peer.Parallel(iteration.d)
    checkpoint, number = f"{folder}/checkpoint", 0
    if os.path.exists(checkpoint):
        saved = torch.load(checkpoint)
        number = saved["iterations"]
        for network, (weights, optimiser) in zip((iteration.g, iteration.d), saved["networks"]):
            network.module.load_state_dict(weights)
            network.optimiser.load_state_dict(optimiser)
    while True:
        iteration.run()
        number += 1
        if rank != 0:
            continue
        with open(f"{folder}/iterations", "a") as file:
            file.write(f"{number}\n")
        if number % EVERY == 0:
            networks = [(n.module.state_dict(), n.optimiser.state_dict())
                        for n in (iteration.g, iteration.d)]
            torch.save({"iterations": number, "networks": networks}, checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)


if __name__ == "__main__":
    main()
