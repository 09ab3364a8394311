#!/usr/bin/python3
"""generation_peer.py MODEL FOLDER: PyTorch's side of bench_generation.

bench_generation.cpp says what is read, asked and answered. The network is that of torch_network.py.
"""

import pathlib
import sys
import time

import training_peer  # ends with "missing ..." without PyTorch
from training_peer import np, torch, torch_network

BATCHES = (1, 8, 32)


def latent_size(model):
    return torch_network.zoo(model)["generator"]["latent"]["size"]


class Generator:
    def __init__(self, model, folder, layout):
        description = torch_network.zoo(model)["generator"]
        self.network = torch_network.Network(dict(description, input=[latent_size(model)]), layout)
        self.load(folder)

    def load(self, folder):
        """Both files have the order of Keras, the moving statistics mean and variance in turn."""
        sizes = [int(np.prod(shape)) for _, shape, *_ in self.network.tensors]
        weights = np.fromfile(folder / "weights.f32", dtype="<f4")
        assert sum(sizes) == len(weights), (sum(sizes), len(weights))
        parts = np.split(weights, np.cumsum(sizes)[:-1])
        self.network.take([part.reshape(shape) for part, (_, shape, *_)
                           in zip(parts, self.network.tensors)])
        moving, at = np.fromfile(folder / "moving.f32", dtype="<f4"), 0
        for pair in self.network.moving:
            for statistic in pair:
                statistic.copy_(torch.tensor(moving[at:at + len(statistic)]))
                at += len(statistic)
        assert at == len(moving), (at, len(moving))

    def make(self, latents, batch):
        with torch.inference_mode():
            return [self.network.run(some, False)[0] for some in latents.split(batch)]


class Peer:
    def __init__(self, model, folder):
        torch.set_num_threads(1)
        self.folder = pathlib.Path(folder)
        size = latent_size(model)
        latents = np.fromfile(self.folder / "latents.f32", dtype="<f4").reshape(-1, size)
        self.latents = torch.tensor(latents)
        self.generators = {layout: Generator(model, self.folder, layout)
                           for layout in training_peer.LAYOUTS}
        self.way = next(iter(self.generators)), BATCHES[0]

    def make(self):
        layout, batch = self.way
        return self.generators[layout].make(self.latents, batch)

    def seconds(self):
        start = time.process_time()
        self.make()
        return time.process_time() - start

    def choose(self):
        found = {}
        for layout in self.generators:
            for batch in BATCHES:
                self.way = layout, batch
                self.seconds()  # the first call chooses kernels and allocates
                found[self.way] = self.seconds()
        ranking = sorted(found, key=found.get)
        self.way = ranking[0]
        return ", ".join(f"{layout} batches of {batch} {found[layout, batch]:.2f} s"
                         for layout, batch in ranking)

    def answer(self, request):
        if request == "choose":
            return f"ok {self.choose()}"
        if request == "time":
            return f"ok {self.seconds()}"
        if request != "make":
            return f"error what is {request}"
        showers = torch.cat([part[:, 0] for part in self.make()])
        showers.contiguous().numpy().astype("<f4").tofile(self.folder / "showers.f32")
        return "ok"


def main():
    training_peer.keep_memory()
    peer = Peer(*sys.argv[1:])
    print("ok " + training_peer.version(), flush=True)
    for request in sys.stdin:
        print(peer.answer(request.strip()), flush=True)


main()
