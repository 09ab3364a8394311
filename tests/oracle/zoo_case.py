#!/usr/bin/python3
"""Whole steps of the zoo's other models in PyTorch float64: the judge of Troupe's.

usage: zoo_case.py MODEL OUT.txt [--whole DIR]

The networks, their tasks and their schedules are those of the zoo's files and of its topologies, as
bench/training_peer.py reads them. Numbers come from the same counters as Troupe's. OUT.txt and DIR are
those of make_oracle.py. A schedule of one step is played twice, so that an update counts.
"""

import os
import sys

import torch

import make_oracle

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import training_peer  # noqa: E402
from torch_network import MOMENTUM, Network  # noqa: E402

BATCHES = dict(gan3d_12_dense=2, digits=2, particle_12=2, toy=2, calo_unet_12=1, gan3d_12=2,
               dcgan_mnist=2, calo_unet_25=1)


class Iteration(training_peer.Iteration):
    def __init__(self, name):
        super().__init__(name, BATCHES[name], "contiguous", 1, True)
        self.slots = len(self.schedule)
        self.schedule = self.schedule * (2 if self.slots == 1 else 1)
        self.networks = dict(generator=self.g, discriminator=self.d)

    def moving(self):
        return {name: [value.clone() for pair in network.moving for value in pair]
                for name, network in self.networks.items() if network}

    def step(self, slot):
        """Returns ({term: loss}, [(network name, number, tensor)]) and applies the update."""
        self.iteration, kind = slot // self.slots, self.schedule[slot]
        before = self.moving()
        terms = super().step(slot % self.slots, kind)
        name = "generator" if kind == "g" else "discriminator"
        network = self.networks[name]
        tensors = [(name, i, Network.in_order_of_keras(weight.grad, role).contiguous())
                   for i, (weight, (role, *_)) in enumerate(zip(network.parameters, network.tensors))]
        for name, values in self.moving().items():
            tensors += [(name + "-moving", i, (value - MOMENTUM * old) / (1 - MOMENTUM))
                        for i, (value, old) in enumerate(zip(values, before[name]))
                        if not torch.equal(value, old)]
        self.round_state()
        return {term: value.item() for term, value in terms.items()}, tensors

    def round_state(self):
        """Weights and moving statistics are kept in float32, as in training."""
        with torch.no_grad():
            for network in filter(None, self.networks.values()):
                for value in [*network.parameters, *(v for pair in network.moving for v in pair)]:
                    value.copy_(value.float())


if __name__ == "__main__":
    training_peer.DTYPE = torch.float64
    training_peer.CHECKED_BIAS = 0.0  # as training begins
    make_oracle.write_fixture(__doc__, BATCHES, Iteration)
